"""The bootstrap of a PCA: how much components, scores and variances would differ in another sample of rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr, ndtri
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian.compute.threads import n_threads, parallel, quiet_blas
from gramian.inputs.checks import check_choice
from gramian.inputs.devices import convert_to_numpy
from gramian.pca.estimator import PCA
from gramian.pca.interpret import (
    TrainingRows,
    component_names,
    dense_rows,
    deviations,
    feature_names,
    float_rows,
    had_missing_cells,
    loadings,
    open_training_rows,
    plain_scores,
    refuse_no_components,
    row_names,
)
from gramian.pca.missing import fit_incomplete
from gramian.results import NumericalWarning
from gramian.sources import memory_budget

Array = npt.NDArray[np.float64]


SHOWN = 12  # entries of a representation


@dataclass(frozen=True, repr=False, eq=False)
class Interval:
    """Estimates and how far to trust them; all arrays have the shape of the estimate.

    Attributes
    ----------
    estimate : ndarray
        What the model found.
    lower, upper : ndarray
        Ends of the interval.
    error : ndarray
        Standard error.
    bias : ndarray
        How much too high the estimate is on average, as far as that is known.
    rows, columns : tuple of str or None
        Names of the entries along the first axis and the second, where they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.bootstrap import Interval
    >>> one = np.ones(2)
    >>> Interval(one, 0.5 * one, 2 * one, 0.3 * one, 0 * one, ("pca0", "pca1"))
    Interval
            estimate  lower  upper  error  bias
      pca0         1    0.5      2    0.3     0
      pca1         1    0.5      2    0.3     0
    """

    estimate: npt.NDArray[np.float64]
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None

    def covers(self, value: Any) -> npt.NDArray[np.bool_]:
        """Whether the intervals hold these values."""
        return np.asarray((self.lower <= value) & (value <= self.upper))

    def table(self) -> dict[str, Any]:
        """Return the columns estimate, lower, upper, error and bias, entries in row-major order."""
        names = ("estimate", "lower", "upper", "error", "bias")
        return {name: getattr(self, name).ravel() for name in names}

    def __repr__(self) -> str:
        columns: dict[str, Any] = {name: column[:SHOWN] for name, column in self.table().items()}
        if self.rows is not None or self.columns is not None:
            columns = {"": [self._name(i) for i in range(min(SHOWN, self.estimate.size))]} | columns
        texts = [[name, *(x if isinstance(x, str) else f"{x:.4g}" for x in of)] for name, of in columns.items()]
        widths = [max(map(len, text)) for text in texts]
        # names stand at the left of their column, numbers at the right
        padded = [[x.rjust(w) if text[0] else x.ljust(w) for x in text] for text, w in zip(texts, widths, strict=True)]
        lines = ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
        more = self.estimate.size - SHOWN
        return "\n  ".join(["Interval", *lines, *([f"… and {more} more"] if more > 0 else [])])

    def _name(self, entry: int) -> str:
        """Name of an entry, counted in row-major order; a number along an axis without names."""
        place = np.unravel_index(entry, self.estimate.shape)
        axes = zip(place, (self.rows, self.columns), strict=False)
        return ", ".join(str(i) if names is None else names[i] for i, names in axes)


TILE = 2**19  # numbers sorted at a time


def intervals(estimate: Array, replicates: Array, level: float, method: str) -> Interval:
    """Interval, standard error and bias of every entry, from replicates along the first axis."""
    count, shape = len(replicates), estimate.shape
    flat, R = estimate.ravel(), replicates.reshape(count, -1)
    width = max(1, TILE // count)
    tiles = [slice(start, start + width) for start in range(0, flat.size, width)]
    out = np.empty((4, flat.size))

    def work(share: Sequence[slice]) -> None:
        for tile in share:
            out[:, tile] = _four(flat[tile], R[:, tile], level, method)

    parallel(work, tiles)
    lower, upper, error, bias = (x.reshape(shape) for x in out)
    return Interval(estimate, lower, upper, error, bias)


def _four(estimate: Array, R: Array, level: float, method: str) -> tuple[Array, Array, Array, Array]:
    ordered = np.sort(R, axis=0)
    low, high = _shares(estimate, R, level, method)
    bias = np.mean(R - estimate, axis=0)
    return _quantile(ordered, low), _quantile(ordered, high), np.std(R - estimate, axis=0, ddof=1), bias


def _shares(estimate: Array, R: Array, level: float, method: str) -> tuple[Array, Array]:
    """Which quantiles are the ends; bias-corrected ones are Φ(2z₀ ± z) with Φ(z₀) the share below the estimate."""
    tail = (1 - level) / 2
    if method == "percentile":
        return np.full(len(estimate), tail), np.full(len(estimate), 1 - tail)
    count, z = len(R), ndtri(tail)
    below = np.mean((estimate > R) + 0.5 * (estimate == R), axis=0)
    z0 = ndtri(np.clip(below, 1 / (count + 1), count / (count + 1)))  # all to one side: as far as they can tell
    return ndtr(2 * z0 + z), ndtr(2 * z0 - z)


def _quantile(ordered: Array, share: Array) -> Array:
    """Quantile of each column, at a share of its own, between the two nearest order statistics."""
    position = share * (len(ordered) - 1)
    below = np.minimum(position.astype(np.intp), len(ordered) - 2)
    columns = np.arange(ordered.shape[1])
    left, right = ordered[below, columns], ordered[below + 1, columns]
    return np.asarray(left + (position - below) * (right - left))


Progress = Callable[[int, int], Any]

NARROW = 200  # columns up to which a p×p matrix per replicate is quicker than a fit
SAFE = 1e-5  # λ_k/λ₁ down to which a Gram matrix keeps ten digits of λ_k
DUST = 1e-13  # λ/λ₁ up to which an eigenvalue of a Gram matrix may be rounding alone


@dataclass(frozen=True, eq=False)
class Draws:
    """Frequencies of replicates: multinomial, one generator each, so that threads do not change them."""

    seeds: Sequence[np.random.SeedSequence]
    size: int
    shares: Array

    def weights(self, b: int) -> Array:
        """Return the frequencies of replicate b."""
        return np.random.default_rng(self.seeds[b]).multinomial(self.size, self.shares).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Fit:
    """One replicate's PCA: λ, λ/Σλ, V with components as rows, x̄, s where the model scales, the rank seen."""

    variances: Array
    ratios: Array
    components: Array
    mean: Array
    scale: Array | None
    rank: int
    converged: bool = True


class Store:
    """The aligned replicates, each filled in at its place by whichever thread fitted it.

    ``turns`` are the k×k matrices that make aligned loadings √λV of aligned components.
    """

    def __init__(self, V: Array, deviations: Array, count: int, align: str, scaled: bool) -> None:
        k, p = V.shape
        self.V, self.align = V, align
        self.loadings = deviations[:, None] * V
        self.turns, self.converged = np.zeros((count, k, k)), np.ones(count, dtype=np.bool_)
        self.variances, self.ratios = np.empty((count, k)), np.empty((count, k))
        self.components, self.means = np.empty((count, k, p)), np.empty((count, p))
        self.scales = np.empty((count, p)) if scaled else None
        self.order = np.empty((count, k), dtype=np.intp)

    def __call__(self, b: int, fit: Fit) -> None:
        k = len(self.V)
        if fit.rank < k:
            raise ValueError(
                f"Replicate {b} drew rows of rank {fit.rank}, too few for {k} components: fit fewer components, or "
                "bring more rows."
            )
        nearest, self.order[b] = matched(self.V, fit.components[: fit.rank])
        if self.align == "order":
            self.components[b], self.turns[b] = nearest, np.diag(np.sqrt(fit.variances[self.order[b]]))
        else:
            W, spread = fit.components[:k], np.sqrt(fit.variances[:k])[:, None]
            R, Q = turn(self.V, W), turn(self.loadings, spread * W)
            self.components[b], self.turns[b] = R @ W, Q @ (spread * R.T)
        self.converged[b] = fit.converged
        self.variances[b], self.ratios[b], self.means[b] = fit.variances[:k], fit.ratios[:k], fit.mean
        if self.scales is not None:
            self.scales[b] = fit.scale


def each_replicate(
    pca: PCA, training: TrainingRows, draws: Draws, k: int, use: Callable[[int, Fit], None], progress: Progress
) -> None:
    """Call ``use(b, fit)`` with every replicate's fit of k components, and ``progress(done, total)`` in between."""
    fit, threaded = _method(pca, training, k)
    total = len(draws.seeds)
    step = max(n_threads(), -(-total // 100))

    def work(share: Sequence[int]) -> None:
        for b in share:
            use(b, _named_errors(fit, b, draws.weights(b)))

    with quiet_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # of components beyond the rank, which are told by it
        for start in range(0, total, step):
            chunk = range(start, min(start + step, total))
            if threaded:
                parallel(work, chunk)
            else:
                work(chunk)
            progress(chunk.stop, total)


def _named_errors(fit: Callable[[Array], Fit], b: int, w: Array) -> Fit:
    try:
        return fit(w)
    except ValueError as error:  # a column of which no cell was drawn, say
        raise ValueError(f"Replicate {b} could not be fitted: {error}") from error


def _method(pca: PCA, training: TrainingRows, k: int) -> tuple[Callable[[Array], Fit], bool]:
    """Return how to fit one replicate, and whether several may be fitted at once."""
    source = training.source
    n, p = source.shape
    small = p <= NARROW and 8 * n * p * (1 + 2 * n_threads()) <= memory_budget()
    model = clone(pca).set_params(n_components=k, whiten=False)
    if had_missing_cells(pca):
        how = pca._missing_method
        return (lambda w: _fitted(fit_incomplete(clone(model), source, method=how, sample_weight=w))), False
    if source.resident and not source.sparse and small:
        X, scale = dense_rows(source), pca.scale_ is not None
        return (lambda w: refit(X, w, k, scale, pca.n_components_)), True
    return (lambda w: _fitted(clone(model).fit(source, sample_weight=w))), False


def _fitted(model: Any) -> Fit:
    named = (model.explained_variance_, model.explained_variance_ratio_, model.components_, model.mean_)
    variances, ratios, components, mean = (np.asarray(x, dtype=np.float64) for x in named)
    scale = None if model.scale_ is None else np.asarray(model.scale_, dtype=np.float64)
    # the residuals of a complete fit are in its tolerance; an optimum may not have been reached
    converged = not had_missing_cells(model) or model.certificate_.converged
    return Fit(variances, ratios, components, mean, scale, model.rank_, converged)


def refit(X: Array, w: Array, k: int, scale: bool, needed: int) -> Fit:
    """PCA of the rows of X with frequencies w, as ``PCA(k, scale=scale).fit(X, sample_weight=w)`` finds it.

    The first ``needed`` components have all their digits; the others are there to be changed places with.
    """
    used = w > 0
    w, origin = w[used], X[np.argmax(used)]
    D = X[used] - origin  # a column that is constant here becomes exactly 0
    total = float(w.sum())
    m = w @ D / total
    D -= m
    D *= np.sqrt(w)[:, None]
    squares = np.einsum("ij,ij->j", D, D)
    s = np.where(squares > 0, np.sqrt(squares / (total - 1)), 1.0) if scale else None
    D = D if s is None else np.divide(D, s, out=D)
    whole = float(np.sum(squares if s is None else squares / s**2))
    values, V, rank = _leading(D, k, needed)
    return Fit(values / (total - 1), values / (whole or 1.0), V, origin + m, s, rank)


def _leading(D: Array, k: int, needed: int) -> tuple[Array, Array, int]:
    """Squared singular values, right singular vectors as rows, and how many of them are more than rounding."""
    n, p = D.shape
    if n >= p:
        values, vectors = np.linalg.eigh(D.T @ D)
        values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
        if values[needed - 1] > SAFE * values[0]:
            return np.maximum(values, 0.0), vectors.T, int(np.count_nonzero(values > DUST * values[0]))
    _, sigma, right = np.linalg.svd(D, full_matrices=False)
    sigma, right = sigma[:k], right[:k]
    rank = int(np.count_nonzero(sigma > 32 * 2.0**-52 * min(n, p) ** 0.5 * sigma[0]))
    return sigma**2, right, rank


def matched(V: Array, W: Array) -> tuple[Array, npt.NDArray[np.intp]]:
    """Rows of W reordered and turned to lie nearest to those of V: the best signed permutation; and the order."""
    similarity = V @ W.T
    _, order = linear_sum_assignment(-np.abs(similarity))
    signs = np.where(similarity[np.arange(len(V)), order] < 0, -1.0, 1.0)
    return W[order] * signs[:, None], order


def turn(V: Array, W: Array) -> Array:
    """The orthogonal R for which RW is nearest to V: the orthogonal Procrustes problem."""
    left, _, right = np.linalg.svd(V @ W.T)
    return np.asarray(left @ right)


def loading_intervals(pca: PCA, store: Store, level: float, method: str) -> Interval:
    """Intervals of V√λ, variables by rows; one component at a time, as the loadings of all replicates are many."""
    estimate = loadings(pca)
    out = lower, upper, error, bias = [np.empty_like(estimate) for _ in range(4)]
    for l in range(estimate.shape[1]):  # noqa: E741 - the number of a component, as in the formulas
        replicates = np.einsum("bj,bjp->bp", store.turns[:, l], store.components)
        part = intervals(np.ascontiguousarray(estimate[:, l]), replicates, level, method)
        for whole, piece in zip(out, (part.lower, part.upper, part.error, part.bias), strict=True):
            whole[:, l] = piece
    return Interval(estimate, lower, upper, error, bias)


def score_intervals(pca: PCA, training: TrainingRows, store: Store, level: float, method: str) -> Interval:
    """Intervals of Aᵀ_bVᵀ_b(x − x̄_b)/s_b for each row x, a few rows at a time."""
    source, (count, k, p) = training.source, store.components.shape
    if store.scales is not None:
        store.components /= store.scales[:, None, :]  # their own intervals are made by now
    directions = store.components.reshape(count * k, p)
    origin = np.zeros(p) if source.sparse else np.asarray(pca.mean_, dtype=np.float64)
    offsets = np.einsum("bkp,bp->bk", store.components, store.means - origin).ravel()
    estimate = plain_scores(pca, source)
    out = lower, upper, error, bias = [np.empty_like(estimate) for _ in range(4)]
    rows = max(1, memory_budget() // (64 * count * k))
    for block in source.blocks(rows):
        x = float_rows(source, block)
        Z = (x @ directions.T).T if source.sparse else directions @ (x - origin).T
        Z -= offsets[:, None]
        part = intervals(estimate[block.start : block.stop].T, Z.reshape(count, k, -1), level, method)
        for whole, piece in zip(out, (part.lower, part.upper, part.error, part.bias), strict=True):
            whole[block.start : block.stop] = piece.T
    return Interval(estimate, lower, upper, error, bias)


SPARE = 3  # components beyond the k-th that one of the k may change places with
OFTEN = 0.05  # share of replicates from which on a change of places is worth a note


@dataclass(frozen=True, repr=False, eq=False)
class Bootstrap:
    """Intervals of a PCA from resampled rows.

    Attributes
    ----------
    explained_variance, explained_variance_ratio : Interval of shape (k,)
        Of the l-th largest variance in each replicate, whatever its direction.
    components : Interval of shape (k, p)
        Of the entries of the components, after alignment.
    loadings : Interval of shape (p, k)
        Of the loadings V√λ, as ``pca.loadings()`` gives them, after alignment.
    scores : Interval of shape (n, k) or None
        Of the scores of the rows handed in, each row taken as a fixed point.
    swaps : ndarray of shape (k,)
        Share of replicates in which the direction nearest to component l was not the l-th.
    variances : ndarray of shape (n_replicates, k)
        The variances of every replicate.
    level : float
        Coverage aimed at.
    align, method : str
        How directions were matched, and how intervals were made.
    names : tuple of str
        The variables.
    notes : tuple of str
        Which components the rows cannot tell apart, and fits that did not converge.
    """

    explained_variance: Interval
    explained_variance_ratio: Interval
    components: Interval
    loadings: Interval
    scores: Interval | None
    swaps: Array
    variances: Array
    level: float
    align: str
    method: str
    names: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def n_replicates(self) -> int:
        """Return how many samples were drawn."""
        return len(self.variances)

    def table(self) -> dict[str, Any]:
        """Return one line for each component: variance, ratio, their intervals, and swaps."""
        columns: dict[str, Any] = {"component": np.arange(len(self.swaps))}
        for name, part in (("variance", self.explained_variance), ("ratio", self.explained_variance_ratio)):
            columns |= {name: part.estimate, f"{name}_lower": part.lower, f"{name}_upper": part.upper}
            columns |= {f"{name}_error": part.error, f"{name}_bias": part.bias}
        return columns | {"swaps": self.swaps}

    def loadings_table(self) -> dict[str, Any]:
        """Return one line for each component and variable: estimate, lower, upper, error, bias of the loading V√λ."""
        return self._where() | {
            name: column.reshape(len(self.names), -1).T.ravel() for name, column in self.loadings.table().items()
        }

    def components_table(self) -> dict[str, Any]:
        """Return the same for the entries of the components, which are vectors of length 1."""
        return self._where() | self.components.table()

    def _where(self) -> dict[str, Any]:
        k, p = self.components.estimate.shape
        return {"component": np.repeat(np.arange(k), p), "variable": list(self.names) * k}

    def __repr__(self) -> str:
        lines = [f"Bootstrap: {self.n_replicates} replicates, {self.level:.0%} {self.method} intervals, {self.align}"]
        v, r = self.explained_variance, self.explained_variance_ratio
        for i, swaps in enumerate(self.swaps[:12]):
            ratio = f"{r.estimate[i]:.1%} [{r.lower[i]:.1%}, {r.upper[i]:.1%}]"
            variance = f"{v.estimate[i]:.4g} [{v.lower[i]:.4g}, {v.upper[i]:.4g}]"
            lines.append(f"  component {i}  variance {variance}  ratio {ratio}  swaps {swaps:.1%}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def bootstrap(
    pca: PCA,
    X: Any,
    *,
    n_replicates: int = 1000,
    level: float = 0.95,
    align: str = "order",
    method: str = "percentile",
    scores: bool = True,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Bootstrap:
    r"""Draw the rows anew, with replacement, fit each sample, and see how much the answers differ.

    .. math:: w_b \sim \mathrm{Multinomial}(n, w/\textstyle\sum w),\qquad
        z_{ib} = A_b^T V_b^T (x_i - \bar x_b)/s_b

    A replicate is the same rows with frequencies w_b. Its components may come in another order, turned round, or mixed
    where variances are close, so they are aligned with those of the model before they are compared: A_b is the best
    signed permutation (``order``), found among a few more components than k, or the best rotation within the plane of
    the first k (``rotation``; Milan and Whittaker, Applied Statistics 44, 1995). Loadings V√λ follow the order of the
    components, or are rotated to those of the model in their own right. Variances are not aligned: the intervals are
    of the first, the second, … largest.

    A model fitted where cells were missing is fitted anew to each sample in the same way, without spare components;
    take ``scores=False`` then.

    Parameters
    ----------
    pca : PCA
        A fitted PCA.
    X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
        The rows it was fitted on.
    n_replicates : int, default=1000
        Samples to draw.
    level : float, default=0.95
        Coverage of the intervals.
    align : {"order", "rotation"}, default="order"
        How components are matched. ``rotation`` says how well the plane is known, ``order`` each direction.
    method : {"percentile", "bc"}, default="percentile"
        Quantiles of the replicates, or the bias-corrected ones (Efron, J. of the American Statistical Association 82,
        1987), which move them where more than half of the replicates lie to one side of the estimate.
    scores : bool, default=True
        Whether to find intervals for the scores of the rows too; one more pass over the data.
    sample_weight : array-like of shape (n,), optional
        The frequencies the model was fitted with; Σw rows, rounded, are drawn.
    random_state : int, RandomState, Generator or None, default=None
        Seed; None is a fixed one. The result is the same for any number of threads.
    progress : callable, optional
        Called as ``progress(done, total)`` from time to time; what it raises ends the bootstrap.

    Returns
    -------
    Bootstrap
        Intervals, standard errors and biases.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.pca.bootstrap import bootstrap
    >>> X = np.random.default_rng(0).normal(size=(300, 3)) * [3.0, 1.0, 0.5]
    >>> found = bootstrap(PCA(n_components=2).fit(X), X, n_replicates=200)
    >>> found.explained_variance.covers([9.0, 1.0])
    array([ True,  True])
    >>> bool(found.swaps.max() == 0), found.scores.error.shape
    (True, (300, 2))
    """
    check_is_fitted(pca)
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    _check(pca, n_replicates, level, align, method)
    gaps = had_missing_cells(pca)
    if gaps and scores:
        raise ValueError(
            "The model was fitted where cells were missing: scores of such rows are expectations, and resampling says "
            "little about them. Use scores=False."
        )
    training = open_training_rows(pca, X, sample_weight, incomplete=True)
    _refuse_too_large(pca, training, n_replicates, scores)
    draws = Draws(_seeds(random_state, n_replicates), max(2, round(training.total)), training.weights / training.total)
    V = np.asarray(pca.components_, dtype=np.float64)
    store = Store(V, deviations(pca), n_replicates, align, pca.scale_ is not None)
    k = pca.n_components_ if gaps else min(pca.n_components_ + SPARE, *training.source.shape)
    each_replicate(pca, training, draws, k, store, progress or _silent)
    found = _gather(pca, training, store, scores, level, method)
    return found if found.scores is None else replace(found, scores=replace(found.scores, rows=row_names(X)))


def _silent(done: int, total: int) -> None:
    """Say nothing."""


def _check(pca: PCA, n_replicates: int, level: float, align: str, method: str) -> None:
    check_choice("align", align, ("order", "rotation"))
    check_choice("method", method, ("percentile", "bc"))
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
    least = math.ceil(2 / (1 - level) - 1e-9)
    if n_replicates < least:
        raise ValueError(f"n_replicates={n_replicates} is too few for intervals of {level:.4g}: take {least} or more.")
    refuse_no_components(pca)
    if pca.n_components_ > pca.rank_:
        raise ValueError(
            f"The model has {pca.n_components_} components, of which {pca.rank_} have variance: directions without "
            f"variance are arbitrary and have no intervals. Fit PCA(n_components={max(1, pca.rank_)}) or fewer."
        )


def _refuse_too_large(pca: PCA, training: TrainingRows, count: int, scores: bool) -> None:
    (n, p), k = training.source.shape, pca.n_components_
    remedy = "or raise sklearn.set_config(working_memory=...)."
    if 8 * count * p * (k + 2) > memory_budget():
        raise ValueError(
            f"The components of {count} replicates take {8 * count * p * (k + 2) / 2**20:.0f} MiB, more than the "
            f"working memory: ask for fewer replicates or components, {remedy}"
        )
    if scores and 5 * 8 * n * k > memory_budget():
        raise ValueError(
            f"Intervals for the scores of {n} rows take {5 * 8 * n * k / 2**20:.0f} MiB, more than the working memory: "
            f"use scores=False, {remedy}"
        )


def _seeds(random_state: Any, count: int) -> list[np.random.SeedSequence]:
    """One seed for each replicate."""
    if random_state is None:
        entropy = 0
    elif isinstance(random_state, np.random.Generator):
        entropy = int(random_state.integers(2**63))
    elif isinstance(random_state, Integral):
        entropy = int(random_state)
    else:
        entropy = int(check_random_state(random_state).randint(2**31 - 1))
    return np.random.SeedSequence(entropy).spawn(count)


def _gather(pca: PCA, training: TrainingRows, store: Store, scores: bool, level: float, method: str) -> Bootstrap:
    variance, ratio = (
        np.asarray(x, dtype=np.float64) for x in (pca.explained_variance_, pca.explained_variance_ratio_)
    )
    swaps = np.mean(store.order != np.arange(len(variance)), axis=0)
    names, variables = component_names(len(variance)), feature_names(pca)
    return Bootstrap(
        explained_variance=replace(intervals(variance, store.variances, level, method), rows=names),
        explained_variance_ratio=replace(intervals(ratio, store.ratios, level, method), rows=names),
        components=replace(intervals(store.V, store.components, level, method), rows=names, columns=variables),
        loadings=replace(loading_intervals(pca, store, level, method), rows=variables, columns=names),
        # last, as it divides the components by the scales
        scores=replace(score_intervals(pca, training, store, level, method), columns=names) if scores else None,
        swaps=swaps,
        variances=store.variances,
        level=level,
        align=store.align,
        method=method,
        names=variables,
        notes=_notes(store, swaps, variance),
    )


def _notes(store: Store, swaps: Array, variance: Array) -> tuple[str, ...]:
    notes = [_note(i, store.order[:, i], variance) for i in range(len(swaps)) if swaps[i] >= OFTEN]
    stuck = int(np.count_nonzero(~store.converged))
    if stuck:
        notes.append(f"{stuck} of {len(store.converged)} fits did not converge: intervals are as good as these fits.")
    return tuple(notes)


def _note(i: int, order: npt.NDArray[np.intp], variance: Array) -> str:
    """Say which component the i-th was taken for most often."""
    other = order[order != i]
    j = int(np.bincount(other).argmax())
    whom = f"component {j} (variances {variance[i]:.4g} and {variance[j]:.4g})" if j < len(variance) else "one left out"
    return (
        f"component {i} changed places in {len(other) / len(order):.0%} of the replicates, most often with {whom}: "
        "these rows cannot tell the two directions apart, and intervals of their entries and scores say little."
    )
