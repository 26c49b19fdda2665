r"""Observed information of a mixture and the standard errors that follow from it.

Louis's formula (1982) takes it from quantities of complete data,

.. math:: I = \sum_iw_i\bigl(E[-\partial^2\ell_c\,|\,x_i]-\operatorname{Var}[\partial\ell_c\,|\,x_i]\bigr),

here for rows and for bins whose columns are independent within components. For all other data the gradient, which the
statistics of an expectation step give exactly, is differentiated numerically.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag, expm, null_space

from gramian.compute.devices import to_numpy
from gramian.inputs.checks import check_choice
from gramian.mixture.binned import Bins, truncated_moments
from gramian.mixture.em import Maximiser
from gramian.mixture.models import ROTATING, covariance_axes
from gramian.mixture.parameters import Constraints, Mixture, SufficientStatistics
from gramian.mixture.rows import MixtureRows
from gramian.results import NumericalWarning, caller_level
from gramian.sources import Block, memory_budget

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

STEP = 1e-3


@dataclass(frozen=True, eq=False)
class Chart:
    """Coordinates of the mixtures near one.

    Attributes
    ----------
    base : Mixture
        The mixture at 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import Chart, Mixture
    >>> chart = Chart(Mixture.of([0.5, 0.5], [[0.0], [4.0]], [1.0, 4.0], "V"))
    >>> chart.size, chart.mixture([0.1, 0.0, 1.0, 0.0, 0.0]).means
    (5, array([[0.],
           [6.]]))
    """

    base: Mixture

    @property
    def size(self) -> int:
        """How many parameters are free."""
        return self.base.free_parameters

    @property
    def rotating(self) -> bool:
        """Whether orientations are moved by rotating axes."""
        return self.base.model in ROTATING

    @cached_property
    def frames(self) -> Array:
        """Factors with LLᵀ = Σ in whose columns changes are expressed, of shape (K, d, d)."""
        base = self.base
        if base.diagonal:
            return np.asarray(np.sqrt(base.matrices))
        if not self.rotating:
            return base.factors
        B = covariance_axes(base.covariances, common=base.model[2] == "E")
        spread = np.einsum("kji,kjl,kli->ki", B, base.covariances, B)
        return np.asarray(B * np.sqrt(spread)[:, None, :])

    @cached_property
    def index(self) -> Index:
        """Which coordinate each of a component's own (volume, shape, orientation) is, of shape (K, local)."""
        k, d = self.base.centres.shape
        start, rows = k - 1 + k * d, []
        for letter, many in zip(self.base.model, (1, d - 1, d * (d - 1) // 2), strict=True):
            each = 0 if letter == "I" else many
            shared = letter == "E"
            rows.append(start + np.arange(each) + (0 if shared else each) * np.arange(k)[:, None])
            start += each if shared else k * each
        return np.concatenate([np.broadcast_to(r, (k, r.shape[1])) for r in rows], axis=1)

    @cached_property
    def directions(self) -> Array:
        """The matrices that a component's own coordinates multiply, of shape (local, d, d): F, or f and Ω."""
        d, model = self.base.centres.shape[1], self.base.model
        found = [np.eye(d)]
        if model[1] != "I":
            found += [np.diag(np.eye(d)[j] - np.eye(d)[-1]) for j in range(d - 1)]
        if model[2] != "I":
            sign = -1.0 if self.rotating else 1.0
            unit = np.eye(d)
            found += [
                np.outer(unit[i], unit[j]) + sign * np.outer(unit[j], unit[i])
                for i in range(d)
                for j in range(i + 1, d)
            ]
        return np.stack(found)

    def mixture(self, vector: npt.ArrayLike) -> Mixture:
        """The mixture at some coordinates."""
        v = np.asarray(vector, dtype=np.float64)
        base, (k, d) = self.base, self.base.centres.shape
        if v.shape != (self.size,):
            raise ValueError(f"The model has {self.size} free parameters; got an array of shape {v.shape}.")
        move = np.append(v[: k - 1], -v[: k - 1].sum())
        steps = v[k - 1 : k - 1 + k * d].reshape(k, d)
        centres = base.centres + np.einsum("kij,kj->ki", self.frames, steps)
        spread = np.stack([self._covariance(i, v[self.index[i]]) for i in range(k)])
        if base.diagonal:
            spread = np.diagonal(spread, axis1=1, axis2=2)
        return Mixture.of(base.weights + move, centres, spread, base.model, base.origin)

    def _covariance(self, k: int, local: Array) -> Array:
        L, moves = self.frames[k], local[:, None, None] * self.directions
        if not self.rotating:
            return np.asarray(L @ expm(moves.sum(axis=0)) @ L.T)
        d = len(L)
        spread = np.linalg.norm(L, axis=0)
        turn = expm(moves[d:].sum(axis=0))
        root = (L / spread) @ turn * (spread * np.exp(0.5 * np.diag(moves[:d].sum(axis=0))))
        return np.asarray(root @ root.T)

    def covariance_slopes(self, k: int, local: Array) -> Array:
        """Derivatives of Σ by the component's own coordinates, anywhere, by differences of fourth order."""
        out = np.empty((len(local), *self.frames[k].shape))
        for a in range(len(local)):
            unit = STEP * (np.arange(len(local)) == a)
            ends = [self._covariance(k, local + s * unit) for s in (1, -1, 2, -2)]
            out[a] = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * STEP)
        return out

    def slopes(self, k: int) -> Array:
        """First derivatives of E = L⁻¹ΣL⁻ᵀ − I at 0 by the component's own coordinates, of shape (local, d, d)."""
        if not self.rotating:
            return self.directions
        a, d = np.linalg.norm(self.frames[k], axis=0), len(self.frames[k])
        turns = self.directions[d:] * (a[None, :] / a[:, None])  # A^{-1/2} Ω A^{1/2}
        return np.concatenate([self.directions[:d], turns + turns.transpose(0, 2, 1)])

    def curvature(self, k: int, G: Array) -> Array:
        """Second derivatives of tr(GE) at 0 by the component's own coordinates, of shape (local, local)."""
        if not self.rotating:
            W = np.einsum("aij,bjl,li->ab", self.directions, self.directions, G)
            return np.asarray(0.5 * (W + W.T))
        a, d = np.linalg.norm(self.frames[k], axis=0), len(self.frames[k])
        f = self.directions[:d]
        turns = self.directions[d:] * (a[None, :] / a[:, None])
        ff = np.einsum("aij,bjl,li->ab", f, f, G)
        # E = e^O e^f e^Oᵀ − I with O = A^{-1/2}ΩA^{1/2}: to second order ½O² + ½OᵀOᵀ + OOᵀ + ½f² + Of + fOᵀ
        square = np.einsum("aij,bjl,li->ab", turns, turns, G) + np.einsum("aij,blj,li->ab", turns, turns, G)
        mixed = 2 * np.einsum("aij,bjl,li->ab", turns, f, G)
        return np.block([[0.5 * (ff + ff.T), mixed.T], [mixed, square + square.T]])


def rows_information(data: MixtureRows, chart: Chart) -> tuple[SufficientStatistics, Array]:
    """Statistics at a chart's base and the summed variance of the complete score, in components' own coordinates."""
    base, (k, d) = chart.base, chart.base.centres.shape
    width = 1 + d + chart.index.shape[1]
    inverse = np.linalg.inv(chart.frames)
    share = np.divide(1.0, base.weights, out=np.zeros(k), where=base.weights > 0)

    def statistic(block: Block) -> Array:
        X = to_numpy(block.values, float)
        w = np.ones(len(X)) if data.sample_weight is None else data.sample_weight[block.start : block.stop]
        R = base.responsibilities(X)
        U = np.empty((len(X), k * width))
        blocks = []
        for j in range(k):
            Y = ((X - base.origin) - base.centres[j]) @ inverse[j].T
            E = chart.slopes(j)  # ½ tr E_a(yyᵀ − I) for every row and direction
            scores = 0.5 * (np.einsum("ni,aij,nj->na", Y, E, Y, optimize=True) - np.trace(E, axis1=1, axis2=2))
            u = np.concatenate([np.full((len(X), 1), share[j]), Y, scores], axis=1)
            blocks.append((u * (w * R[:, j])[:, None]).T @ u)
            U[:, j * width : (j + 1) * width] = u * R[:, j, None]
        return np.asarray(block_diag(*blocks) - (U * w[:, None]).T @ U)

    rows = max(1, memory_budget() // 8 // (8 * 4 * k * width))
    spread = data.source.reduce(statistic, np.add, rows)
    return data.expect(base).shift(base.centres), spread


def bins_information(data: Bins, chart: Chart) -> tuple[SufficientStatistics, Array]:
    """The same for bins, where y and its powers are known by their moments within a bin; columns are independent."""
    base, k = chart.base, chart.base.n_components
    slopes = np.stack([np.diagonal(chart.slopes(j), axis1=1, axis2=2) for j in range(k)])  # E_a is diagonal
    expected, squares, joint = [], [], []
    for j in range(k):
        a, b = data.limits(base, j)
        log_p, M = truncated_moments(a, b, 4)
        sigma = np.diag(chart.frames[j])
        joint.append(np.sum(log_p - np.where(a == b, np.log(sigma), 0.0), axis=1))
        e, q = _moments_of_score(M, slopes[j], base.weights[j])
        expected.append(e)
        squares.append(q)
    with np.errstate(divide="ignore"):
        L = np.stack(joint) + np.log(base.weights)[:, None]
    L -= L.max(axis=0)
    R = np.exp(L) / np.exp(L).sum(axis=0)
    U = np.concatenate([r[:, None] * e for r, e in zip(R, expected, strict=True)], axis=1)
    n = data.counts
    within = block_diag(*(np.einsum("b,bij->ij", n * r, q) for r, q in zip(R, squares, strict=True)))
    return data.expect(base), np.asarray(within - (U * n[:, None]).T @ U)


def _moments_of_score(M: Array, slopes: Array, weight: float) -> tuple[Array, Array]:
    """E u and E uuᵀ of shapes (B, width) and (B, width, width), from moments M of shape (5, B, d)."""
    share = 1.0 / weight if weight > 0 else 0.0
    bins, d = M.shape[1:]
    # t = (y, ½(y²−1)) by column; columns are independent, so only equal ones need their joint moments
    mean = np.concatenate([M[1], 0.5 * (M[2] - 1)], axis=1)
    product = mean[:, :, None] * mean[:, None, :]
    j = np.arange(d)
    product[:, j, j] = M[2]
    product[:, j, d + j] = product[:, d + j, j] = 0.5 * (M[3] - M[1])
    product[:, d + j, d + j] = 0.25 * (M[4] - 2 * M[2] + 1)
    T = block_diag(np.eye(d), slopes)  # (y, ½ Σ_j E_jj (y_j² − 1))
    e = np.concatenate([np.full((bins, 1), share), mean @ T.T], axis=1)
    q = np.empty((bins, e.shape[1], e.shape[1]))
    q[:, 0, :] = q[:, :, 0] = share * e
    q[:, 1:, 1:] = T @ product @ T.T
    return e, q


STEP_ERRORS = 2e-3  # of coordinates of size 1, for differences of fourth order
NOTHING = 1e-3  # of the information of as many rows: less is none in any direction
FLAT = 1e-9  # of the largest eigenvalue: less curvature than this leaves a direction undetermined


@dataclass(frozen=True, eq=False, repr=False)
class StandardErrors:
    """Standard errors of the parameters of a mixture.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        Of π.
    means : ndarray of shape (K, d)
        Of μ.
    covariances : ndarray of shape (K, d, d) or (K, d)
        Of the entries of Σ, or of variances.
    deviations : ndarray of shape (K, d)
        Of standard deviations √Σ_jj.
    information, covariance : ndarray of shape (q, q)
        Observed information in the coordinates of the chart, and its inverse where parameters are free.
    chart : Chart
        The coordinates.
    """

    weights: Array
    means: Array
    covariances: Array
    deviations: Array
    information: Array
    covariance: Array
    chart: Chart

    def table(self) -> list[tuple[str, float, float]]:
        """Name, estimate and standard error of every weight, mean and standard deviation."""
        at = self.chart.base
        deviations = np.sqrt(np.diagonal(at.matrices, axis1=1, axis2=2))
        rows = [(f"weight {k}", at.weights[k], self.weights[k]) for k in range(at.n_components)]
        for name, values, errors in (("mean", at.means, self.means), ("deviation", deviations, self.deviations)):
            rows += [(f"{name} {k}, {j}", values[k, j], errors[k, j]) for k, j in np.ndindex(values.shape)]
        return [(name, float(value), float(error)) for name, value, error in rows]

    def __repr__(self) -> str:
        return "\n".join(f"{name:<16}{value:>14.6g} ± {error:.2g}" for name, value, error in self.table())


def standard_errors(
    data: MixtureRows | Bins,
    mixture: Mixture,
    constraints: Constraints | None = None,
    kind: str = "information",
) -> StandardErrors:
    r"""Standard errors at a maximum of the likelihood.

    By the observed information I, or as sandwich :math:`I^{-1}\sum_iw_is_is_i^T\,I^{-1}` with the scores s of the rows,
    which holds where the model does not (Huber 1967, White 1982): then estimates vary about the mixture nearest to the
    true density.

    Where the information is not positive definite, the mixture is not at a maximum or some of its parameters are not
    determined by the data: that is warned of, and all errors are NaN.

    Parameters
    ----------
    data : MixtureRows or Bins
        The data.
    mixture : Mixture
        The maximum.
    constraints : Constraints, optional
        Parameters that were held or tied.
    kind : {"information", "sandwich"}, default="information"
        By which of the two.

    Returns
    -------
    StandardErrors
        Those of weights, means and covariances.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Mixture, MixtureRows, standard_errors
    >>> X = np.array([[1.0], [2.0], [3.0], [6.0]])
    >>> one = Mixture.of([1.0], [[3.0]], [3.5], "V")
    >>> found = standard_errors(MixtureRows.of(gramian.open(X)), one)
    >>> found.means.round(6), (3.5 / 4) ** 0.5
    (array([[0.935414]]), 0.9354143466934853)
    """
    check_choice("kind", kind, ("information", "sandwich"))
    if kind == "sandwich" and isinstance(data, Bins):
        raise ValueError("kind='sandwich' needs the scores of rows; counts in bins have the information alone.")
    chart = Chart(mixture)
    information = observed_information(data, chart)
    T = _free(chart, constraints)
    values, vectors = np.linalg.eigh(T.T @ information @ T) if T.shape[1] else (np.ones(0), np.ones((0, 0)))
    if len(values) and not values[0] > FLAT * values[-1]:
        warnings.warn(
            "The observed information is not positive definite: the mixture is not at a maximum of the likelihood, or "
            "the data do not determine all its parameters. Standard errors are NaN. Fit to a smaller tol, or fewer "
            "components.",
            NumericalWarning,
            stacklevel=caller_level(),
        )
        values = np.full(len(values), np.nan)
    V = T @ (vectors / np.sqrt(values))  # VVᵀ is the covariance of the coordinates
    if kind == "sandwich" and isinstance(data, MixtureRows) and np.isfinite(V).all():
        size, turn = np.linalg.eigh(V.T @ _sum_squared_scores(data, chart) @ V)
        V = V @ (turn * np.sqrt(np.maximum(size, 0.0)))
    k, d = mixture.centres.shape
    M = [_local_map(chart, j) @ V for j in range(k)]
    weights = np.array([np.linalg.norm(m[0]) for m in M])
    means = np.stack([np.linalg.norm(L @ m[1 : d + 1], axis=1) for L, m in zip(chart.frames, M, strict=True)])
    spread = np.empty((k, d, d))
    for j, (L, m) in enumerate(zip(chart.frames, M, strict=True)):
        change = np.einsum("ij,ajl,ml->aim", L, chart.slopes(j), L)
        spread[j] = np.linalg.norm(np.einsum("aim,av->imv", change, m[d + 1 :]), axis=2)
    variances = np.diagonal(mixture.matrices, axis1=1, axis2=2)
    diagonal = np.diagonal(spread, axis1=1, axis2=2)
    shown = diagonal.copy() if mixture.diagonal else spread
    return StandardErrors(weights, means, shown, diagonal / (2 * np.sqrt(variances)), information, V @ V.T, chart)


def is_flat(data: Bins, mixture: Mixture, maximiser: Maximiser) -> bool:
    """Whether counts in bins leave some direction of the parameters undetermined.

    By the information, where Louis's formula gives it; in two correlated columns by counting, as q classes that hold
    something determine q − 1 probabilities.

    Parameters
    ----------
    data : Bins
        The counts.
    mixture : Mixture
        A fit to them.
    maximiser : Maximiser
        The covariance model of the fit.

    Returns
    -------
    bool
        True where some parameters are not determined.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import Bins, Maximiser, Mixture, is_flat
    >>> one = Mixture.of([1.0], [[0.0]], [1.0], "V")
    >>> is_flat(Bins.of([-np.inf, 0.0, np.inf], [10, 10]), one, Maximiser("V"))
    True
    """
    if maximiser.prior is not None and maximiser.prior.counts > 0:
        return False
    if not mixture.diagonal and len(mixture.origin) > 1:
        return bool(np.count_nonzero(data.counts) <= maximiser.constraints.free_parameters(mixture))
    chart = Chart(mixture)
    T = _free(chart, maximiser.constraints)
    if not T.shape[1]:
        return False
    values = np.linalg.eigvalsh(T.T @ observed_information(data, chart) @ T)
    return not bool(values[0] > FLAT * max(values[-1], data.weight * NOTHING))


def observed_information(data: MixtureRows | Bins, chart: Chart) -> Array:
    """Observed information −∂²ℓ in the coordinates of a chart, at its base.

    Parameters
    ----------
    data : MixtureRows or Bins
        The data.
    chart : Chart
        Coordinates of the parameters, with a base.

    Returns
    -------
    ndarray of shape (q, q)
        The information, one row for each coordinate.
    """
    mixture = chart.base
    if isinstance(data, MixtureRows) and not data.incomplete:
        return _louis(chart, *rows_information(data, chart))
    if isinstance(data, Bins) and (mixture.diagonal or len(mixture.origin) == 1):
        return _louis(chart, *bins_information(data, chart))
    return _differences(data, chart)


def _louis(chart: Chart, stats: SufficientStatistics, spread: Array) -> Array:
    """Complete information less the variance of the complete score, from components' own coordinates to the chart's."""
    base, (k, d) = chart.base, chart.base.centres.shape
    blocks, maps, bends = [], [], np.zeros((chart.size, chart.size))
    for j in range(k):
        # counts and first and second moments of y = L⁻¹(x−μ)
        N, L = float(stats.counts[j]), chart.frames[j]
        half = np.linalg.solve(L, np.diag(stats.second[j]) if stats.diagonal else stats.second[j])
        f, S = np.linalg.solve(L, stats.first[j]), np.linalg.solve(L, half.T).T
        E = chart.slopes(j)
        curved = chart.curvature(j, 0.5 * (S - N * np.eye(d)))
        WE = np.einsum("aij,jl,bli->ab", E, S, E)
        second = 0.5 * (WE + WE.T) - 0.5 * N * np.einsum("aij,bji->ab", E, E)
        block = np.zeros((1 + d + len(E), 1 + d + len(E)))
        block[0, 0] = N / base.weights[j] ** 2 if base.weights[j] > 0 else 0.0
        block[1 : d + 1, 1 : d + 1] = N * np.eye(d)
        block[1 : d + 1, d + 1 :] = np.einsum("aij,j->ia", E, f)
        block[d + 1 :, 1 : d + 1] = block[1 : d + 1, d + 1 :].T
        block[d + 1 :, d + 1 :] = second
        blocks.append(block)
        maps.append(_local_map(chart, j))
        bends[np.ix_(chart.index[j], chart.index[j])] += curved
    J = np.concatenate(maps)
    return np.asarray(J.T @ (block_diag(*blocks) - spread) @ J - bends)


def _local_map(chart: Chart, j: int) -> Array:
    """From the chart's coordinates to (π, m, own covariance coordinates) of one component."""
    k, d = chart.base.centres.shape
    local = chart.index.shape[1]
    M = np.zeros((1 + d + local, chart.size))
    M[0, : k - 1] = -1.0 if j == k - 1 else (np.arange(k - 1) == j)
    M[1 + np.arange(d), k - 1 + j * d + np.arange(d)] = 1.0
    M[1 + d + np.arange(local), chart.index[j]] = 1.0
    return M


def _differences(data: MixtureRows | Bins, chart: Chart) -> Array:
    """−∂g by differences of fourth order of the gradient g."""
    out = np.empty((chart.size, chart.size))
    for a in range(chart.size):
        unit, weights = np.zeros(chart.size), chart.base.weights
        unit[a] = STEP_ERRORS * (min(weights[a], weights[-1]) if a < len(weights) - 1 else 1.0)  # weights stay positive
        ends = [_gradient(data, chart, s * unit) for s in (1, -1, 2, -2)]
        out[a] = -(8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * unit[a])
    return np.asarray(0.5 * (out + out.T))


def _sum_squared_scores(data: MixtureRows, chart: Chart) -> Array:
    """Σ w s sᵀ with s the score of a row, by differences of fourth order of its log-density."""
    share = chart.base.weights

    def statistic(block: Block) -> Array:
        X, S = to_numpy(block.values, float), np.empty((block.stop - block.start, chart.size))
        for a in range(chart.size):
            unit = np.zeros(chart.size)
            unit[a] = STEP_ERRORS * (min(share[a], share[-1]) if a < len(share) - 1 else 1.0)
            ends = [chart.mixture(s * unit).log_density(X) for s in (1, -1, 2, -2)]
            S[:, a] = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * unit[a])
        w = data.sample_weight
        used = np.ones(len(X)) if w is None else w[block.start : block.stop]
        return np.asarray((used[:, None] * S).T @ S)

    step = max(1, memory_budget() // 8 // (8 * (chart.size + 8 * len(share)) * max(1, len(data.origin))))
    return data.source.reduce(statistic, np.add, step)


def _gradient(data: MixtureRows | Bins, chart: Chart, v: Array) -> Array:
    """∂ℓ at some coordinates: the statistics there give it by weights, means and covariances, exactly."""
    at = chart.mixture(v)
    stats = data.expect(at).shift(at.centres)
    k, d = at.centres.shape
    P = np.linalg.inv(at.matrices)
    second = stats.second[:, :, None] * np.eye(d) if stats.diagonal else stats.second
    by_mean = np.einsum("kij,kj->ki", P, stats.first)
    by_covariance = 0.5 * (P @ second @ P - stats.counts[:, None, None] * P)
    by_weight = np.divide(stats.counts, at.weights, out=np.zeros(k), where=at.weights > 0)
    g = np.empty(chart.size)
    g[: k - 1] = by_weight[:-1] - by_weight[-1]
    g[k - 1 : k - 1 + k * d] = np.einsum("kij,ki->kj", chart.frames, by_mean).ravel()
    g[k - 1 + k * d :] = 0.0
    for j in range(k):
        local = chart.covariance_slopes(j, v[chart.index[j]])
        np.add.at(g, chart.index[j], np.einsum("aij,ij->a", local, by_covariance[j]))
    return g


def _free(chart: Chart, constraints: Constraints | None) -> Array:
    """A basis of the coordinates that constraints leave free: all are linear in them."""
    if constraints is None:
        return np.eye(chart.size)
    rows = constraints.equations(chart.frames, chart.index, chart.size)
    return np.asarray(null_space(rows)) if len(rows) else np.eye(chart.size)
