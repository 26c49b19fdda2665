"""Families whose fit is a formula and whose observations are no single numbers: rows, and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from scipy.special import xlogy

from gramian.compute import dense as cpu
from gramian.compute.moments import Moments, block_moments
from gramian.inputs.checks import check_weights
from gramian.likelihood.families.base import FormulaFit, Joint, NoMaximumError, Profile
from gramian.sources import Source, open_source
from gramian.sources.errors import SourceError

Array = npt.NDArray[np.float64]
LOG_2PI = float(np.log(2.0 * np.pi))


class MultivariateNormal(Joint):
    r"""Rows with mean μ and covariance Σ; parameters ``mean[j]`` and ``cov[i,j]`` for i ≤ j.

    .. math:: \hat\mu = \bar x,\quad \hat\Sigma = \tfrac1n\sum_iw_i(x_i-\bar x)(x_i-\bar x)^T,\quad
        \operatorname{Cov}\hat\mu = \hat\Sigma/n,

    .. math:: \operatorname{Cov}(\hat\sigma_{ij},\hat\sigma_{kl})
        = (\hat\sigma_{ik}\hat\sigma_{jl}+\hat\sigma_{il}\hat\sigma_{jk})/n

    The sums are made in one pass over blocks of rows, so files and memory maps may be larger than memory.

    Parameters
    ----------
    columns : sequence of str, optional
        Names for the columns, in place of their numbers; by default those of a data frame.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("multivariate normal", [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 4.0]])
    >>> est.estimates["mean[1]"], est.estimates["cov[0,1]"]
    (1.5, 0.5)
    """

    name = "multivariate normal"

    def __init__(self, columns: Any = None) -> None:
        self.columns = None if columns is None else tuple(str(column) for column in columns)

    def read(self, x: Any) -> Source:
        """A table of numbers."""
        source = open_source(x if not isinstance(x, (list, tuple)) else np.asarray(x, dtype=np.float64))
        if source.sparse:
            raise ValueError("The multivariate normal family takes dense rows: use X.toarray().")
        return source

    def formula(self, data: Any, sample_weight: Any) -> tuple[MultivariateNormal, FormulaFit]:
        """Mean and covariance of the rows."""
        source = self.read(data)
        n, d = source.shape
        w = None if sample_weight is None else check_weights(sample_weight, n)
        if n == 0 or d == 0:
            raise ValueError(f"There is no observation: the data have shape {source.shape}.")

        def statistic(block: Any) -> Moments:
            rows = np.asarray(block.values, dtype=np.float64)
            bad = np.argwhere(~np.isfinite(rows))
            if len(bad):
                i, j = bad[0]
                where = f"Row {block.start + i + 1}, column {j + 1} is {rows[i, j]}"
                text = f"{where}: complete rows of finite numbers are needed."
                raise SourceError(text, missing=bool(np.isnan(rows[i, j])))
            weights = None if w is None else w[block.start : block.stop]
            return block_moments(cpu, rows, weights, np.empty((0, d)), full=True)

        moments: Moments = source.reduce(statistic, Moments.merge)
        mean, S = moments.mean + moments.low, moments.scatter / moments.weight
        columns = self._columns(data, d)
        correlation = _refuse_singular(moments.rows, d, S, columns)
        values = np.concatenate([mean, S[np.triu_indices(d)]])
        total = moments.weight
        log_det = float(np.sum(np.log(np.diag(S)))) + float(np.linalg.slogdet(correlation)[1])
        loglik = -0.5 * total * (d * (LOG_2PI + 1.0) + log_det)
        pairs = [f"cov[{columns[i]},{columns[j]}]" for i, j in zip(*np.triu_indices(d), strict=True)]
        names = (*(f"mean[{column}]" for column in columns), *pairs)
        spread = Ellipse(mean, S, total)
        score = _score(source, w, mean, S, total)
        return self, FormulaFit(names, values, _covariance(S, total), loglik, total, len(values), score, spread)

    def _columns(self, data: Any, d: int) -> tuple[str, ...]:
        names = self.columns if self.columns is not None else getattr(data, "columns", None)
        if names is None or not all(isinstance(name, str) for name in names):
            return tuple(map(str, range(d)))
        if len(names) != d:
            raise ValueError(f"columns names {len(names)} columns; the data have {d}.")
        return tuple(names)

    def log_density(self, x: Any, values: Array) -> Array:
        """−(d ln 2π + ln|Σ| + (x−μ)ᵀΣ⁻¹(x−μ))/2."""
        source = self.read(x)
        mean, S = split_parameters(values, source.shape[1])
        scale = np.sqrt(np.diag(S))
        log_det = np.linalg.slogdet(S / np.outer(scale, scale))[1] + 2.0 * np.sum(np.log(scale))
        whiten = _whitening(mean, S)
        squares = [np.sum(whiten(block) ** 2, axis=0) for block in source.blocks()]
        return np.asarray(-0.5 * (len(mean) * LOG_2PI + log_det + np.concatenate(squares)))

    def draw(self, values: Array, size: int, rng: np.random.Generator) -> Any:
        """Rows."""
        d = int(np.sqrt(2.0 * len(values) + 2.25) - 1.5 + 0.5)
        mean, S = split_parameters(values, d)
        return mean + rng.standard_normal((size, d)) @ np.linalg.cholesky(S).T

    def __repr__(self) -> str:
        return "MultivariateNormal()"


def split_parameters(values: Array, d: int) -> tuple[Array, Array]:
    """Mean and covariance from the parameters."""
    if len(values) != d + d * (d + 1) // 2:
        raise ValueError(f"Rows of {d} columns do not fit a model of {len(values)} parameters.")
    S = np.empty((d, d))
    S[np.triu_indices(d)] = values[d:]
    S.T[np.triu_indices(d)] = values[d:]
    return values[:d], S


def _whitening(mean: Array, S: Array) -> Callable[[Any], Array]:
    """What makes of a block columns Z with ZᵢᵀZᵢ = (xᵢ−μ)ᵀΣ⁻¹(xᵢ−μ)."""
    scale = np.sqrt(np.diag(S))
    L = np.linalg.cholesky(S / np.outer(scale, scale))
    return lambda block: np.asarray(solve_triangular(L, ((block.values - mean) / scale).T, lower=True))


def _score(source: Source, w: Array | None, mean: Array, S: Array, n: float) -> float:
    """√(gᵀI⁻¹g) by a second pass: n δᵀΣ⁻¹δ for the mean and (n/2)‖Σ^(−½)ΔΣ^(−½)‖² for the covariance."""
    whiten = _whitening(mean, S)

    def statistic(block: Any) -> Array:
        Z = whiten(block)
        W = Z if w is None else Z * w[block.start : block.stop]
        return np.column_stack([W.sum(axis=1), W @ Z.T])

    sums = source.reduce(statistic, np.add) / n
    rest = sums[:, 1:] - np.eye(len(mean))
    return float(np.sqrt(n * np.sum(sums[:, 0] ** 2) + 0.5 * n * np.sum(rest**2)))


def _refuse_singular(rows: int, d: int, S: Array, names: tuple[str, ...]) -> Array:
    """The correlation matrix; an error where Σ is singular and the likelihood has no maximum."""
    how = "the likelihood of the multivariate normal family grows without bound as Σ becomes singular"
    if rows <= d:
        number = "There is 1 sample" if rows == 1 else f"There are {rows} rows"
        raise NoMaximumError(f"{number} for {d} columns: {how}. More rows than columns are needed.")
    variance = np.diag(S)
    constant = np.flatnonzero(~(variance > 0))
    if len(constant):
        raise NoMaximumError(f"Column {names[constant[0]]} is constant: {how}. Leave it out.")
    R = S / np.sqrt(np.outer(variance, variance))
    values, vectors = np.linalg.eigh(R)
    if values[0] <= 4 * d * np.finfo(np.float64).eps:
        columns = np.flatnonzero(np.abs(vectors[:, 0]) > 1e-6)
        raise NoMaximumError(
            f"Columns {', '.join(names[j] for j in columns)} are linearly dependent: {how}. Leave one out."
        )
    return np.asarray(R)


def _covariance(S: Array, n: float) -> Array:
    """Of the estimates: Σ/n for the mean, and (σ_ik σ_jl + σ_il σ_jk)/n for the covariances."""
    d = len(S)
    i, j = np.triu_indices(d)
    full = np.zeros((d + len(i),) * 2)
    full[:d, :d] = S / n
    full[d:, d:] = (S[np.ix_(i, i)] * S[np.ix_(j, j)] + S[np.ix_(i, j)] * S[np.ix_(j, i)]) / n
    return full


@dataclass(frozen=True, eq=False)
class Ellipse(Profile):
    """Profiles of the multivariate normal: each parameter's involves its own one or two columns only."""

    mean: Array
    S: Array
    n: float

    def ends(self, j: int, drop: float) -> tuple[float, float]:
        """Where twice the log-likelihood has fallen by ``drop``."""
        d = len(self.mean)
        if j < d:  # the deviance is n ln(1 + (m − x̄)²/s)
            width = float(np.sqrt(self.S[j, j] * np.expm1(drop / self.n)))
            return float(self.mean[j]) - width, float(self.mean[j]) + width
        a, b = (int(index[j - d]) for index in np.triu_indices(d))
        if a == b:  # the deviance is n(s/v − 1 − ln(s/v))
            width = 2.0 * float(np.sqrt(2.0 * drop / self.n) + drop / self.n) + 1.0
            roots = [brentq(lambda u: self.n * (np.expm1(-u) + u) - drop, 0.0, end) for end in (-width, width)]
            return float(self.S[a, a] * np.exp(roots[0])), float(self.S[a, a] * np.exp(roots[1]))
        # in units where both variances are 1: with σ_ab = c both are v, a root of v³ − v² + (2rc − c²)v − c²
        unit = float(np.sqrt(self.S[a, a] * self.S[b, b]))
        r = float(self.S[a, b]) / unit
        top = np.log1p(-r * r) + 2.0

        def excess(c: float) -> float:
            roots = np.roots([1.0, -1.0, 2.0 * r * c - c * c, -c * c])
            v = np.array([float(x.real) for x in roots if abs(x.imag) < 1e-9 and x.real > abs(c)])
            det = v * v - c * c
            best = float(np.min(np.log(det) + 2.0 * (v - r * c) / det))
            return float(self.n * (best - top) - drop)

        step = float(np.sqrt(drop * (1.0 + r * r) / self.n))
        return unit * _find_end(excess, r, -step), unit * _find_end(excess, r, step)


def _find_end(excess: Any, start: float, step: float) -> float:
    """Where the excess is 0, away from the start in the direction of the step."""
    at = step
    while excess(start + at) < 0.0:
        at *= 2.0
    return float(brentq(excess, start, start + at, xtol=1e-14))


class Categorical(Joint):
    r"""Labels of any kind, each with a probability of its own; parameters ``theta[label]``.

    .. math:: \hat\theta_k = n_k/n,\qquad
        \operatorname{Cov}\hat\theta = (\operatorname{diag}\hat\theta - \hat\theta\hat\theta^T)/n

    With θ_k held, the others share what is left as they are observed, so that the profile of θ_k is that of a coin.

    Parameters
    ----------
    labels : sequence, optional
        All possible labels; by default those observed. One that is listed and never observed has θ̂ = 0.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> fit("categorical", ["a", "b", "a", "c"]).estimates
    {'theta[a]': 0.5, 'theta[b]': 0.25, 'theta[c]': 0.25}
    """

    name = "categorical"
    discrete = True

    def __init__(self, labels: Any = None) -> None:
        self.labels = None if labels is None else np.asarray(labels)
        if self.labels is not None and (self.labels.ndim != 1 or len(np.unique(self.labels)) != len(self.labels)):
            raise ValueError("labels must be a list without repetitions.")

    def read(self, x: Any) -> Any:
        """A list of labels; a column is one too."""
        if np.ma.isMaskedArray(x) and np.ma.getmaskarray(x).any():
            raise ValueError("Some labels are masked: leave them out, as data.compressed() does.")
        values = np.asarray(x)
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        if values.ndim != 1 or not len(values):
            raise ValueError(f"data has shape {values.shape}; expected a list of labels.")
        missing = values != values
        if values.dtype == object:
            missing = np.array([v is None or v != v for v in values])
        bad = np.flatnonzero(missing)
        if len(bad):
            raise ValueError(f"Label {bad[0]} is missing ({values[bad[0]]}): leave it out, or give it a name.")
        if values.dtype == object and len({isinstance(v, str) for v in values}) > 1:
            raise ValueError("Some labels are text and some are not, and have no order: make all of them text.")
        return values

    def formula(self, data: Any, sample_weight: Any) -> tuple[Categorical, FormulaFit]:
        """Shares of the labels."""
        values = self.read(data)
        w = check_weights(sample_weight, len(values))
        law = self if self.labels is not None else Categorical(np.unique(values[w > 0]))
        index, kinds = law._index(values[w > 0]), len(np.asarray(law.labels))
        counts = np.asarray(np.bincount(index, w[w > 0], kinds), dtype=np.float64)
        n = float(counts.sum())
        theta = counts / n
        covariance = (np.diag(theta) - np.outer(theta, theta)) / n
        at_end = (theta == 0) | (theta == 1)
        covariance[at_end, :] = covariance[:, at_end] = np.nan
        names = tuple(f"theta[{label}]" for label in np.asarray(law.labels))
        notes = tuple(
            f"{name} is {value:g}: the maximum is at the boundary; interval by profile"
            for name, value in zip(names, theta, strict=True)
            if value in (0.0, 1.0)
        )
        loglik = float(np.sum(xlogy(counts, theta)))
        shares = Shares(counts, n)
        seen = counts > 0
        score = float(np.sqrt(np.sum(theta[seen] * (counts[seen] / theta[seen] - n) ** 2) / n))
        return law, FormulaFit(names, theta, covariance, loglik, n, len(theta) - 1, score, shares, notes)

    def log_density(self, x: Any, values: Array) -> Array:
        """ln θ of each label."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values)[self._index(self.read(x))])

    def draw(self, values: Array, size: int, rng: np.random.Generator) -> Any:
        """Labels."""
        return rng.choice(np.asarray(self.labels), size=size, p=values)

    def _index(self, values: Any) -> npt.NDArray[np.intp]:
        labels = np.asarray(self.labels)
        order = np.argsort(labels)
        place = np.minimum(np.searchsorted(labels, values, sorter=order), len(labels) - 1)
        bad = np.flatnonzero(labels[order[place]] != values)
        if len(bad):
            raise ValueError(f"Label {values[bad[0]]!r} of observation {bad[0]} is none of {labels.tolist()}.")
        return np.asarray(order[place])

    def __repr__(self) -> str:
        return "Categorical()" if self.labels is None else f"Categorical({self.labels.tolist()})"


@dataclass(frozen=True, eq=False)
class Shares(Profile):
    """The profile of one probability: n_k heads in n flips."""

    counts: Array
    n: float

    def ends(self, j: int, drop: float) -> tuple[float, float]:
        """Where the deviance of the coin is ``drop``."""
        heads, tails = float(self.counts[j]), self.n - float(self.counts[j])
        top = float(xlogy(heads, heads / self.n) + xlogy(tails, tails / self.n))

        def excess(t: float) -> float:
            return 2.0 * (top - float(xlogy(heads, t) + xlogy(tails, 1.0 - t))) - drop

        share = heads / self.n
        low = brentq(excess, 1e-300, share, xtol=1e-15) if heads else 0.0
        high = brentq(excess, share, 1.0 - 1e-16, xtol=1e-15) if tails else 1.0
        return float(low), float(high)
