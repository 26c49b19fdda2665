"""The bootstrap of a PCA: how much components, scores and variances would differ in another sample of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian.analysis._cards import ground
from gramian.analysis._elements import component_names
from gramian.analysis._interval import Interval
from gramian.analysis._model import FittedPCA, feature_names
from gramian.analysis._quantiles import intervals
from gramian.analysis._replicates import Draws, Progress, Store, each_replicate
from gramian.analysis._resampled import loading_intervals, score_intervals
from gramian.analysis._scored import deviations, incomplete_fit, refuse_no_components, row_names
from gramian.analysis._training import Training, training_rows
from gramian.analysis.limits import check_choice
from gramian.sources import memory_budget

__all__ = ["Bootstrap", "bootstrap"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

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
    swaps: Vector
    variances: Matrix
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
    pca: FittedPCA,
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
    >>> from gramian.analysis.bootstrap import bootstrap
    >>> X = np.random.default_rng(0).normal(size=(300, 3)) * [3.0, 1.0, 0.5]
    >>> found = bootstrap(PCA(n_components=2).fit(X), X, n_replicates=200)
    >>> found.explained_variance.covers([9.0, 1.0])
    array([ True,  True])
    >>> bool(found.swaps.max() == 0), found.scores.error.shape
    (True, (300, 2))
    """
    check_is_fitted(pca)
    pca, X = ground(pca), ground(X)
    _check(pca, n_replicates, level, align, method)
    gaps = incomplete_fit(pca)
    if gaps and scores:
        raise ValueError(
            "The model was fitted where cells were missing: scores of such rows are expectations, and resampling says "
            "little about them. Use scores=False."
        )
    training = training_rows(pca, X, sample_weight, incomplete=True)
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


def _check(pca: FittedPCA, n_replicates: int, level: float, align: str, method: str) -> None:
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


def _refuse_too_large(pca: FittedPCA, training: Training, count: int, scores: bool) -> None:
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


def _gather(pca: FittedPCA, training: Training, store: Store, scores: bool, level: float, method: str) -> Bootstrap:
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


def _notes(store: Store, swaps: Vector, variance: Vector) -> tuple[str, ...]:
    notes = [_note(i, store.order[:, i], variance) for i in range(len(swaps)) if swaps[i] >= OFTEN]
    stuck = int(np.count_nonzero(~store.converged))
    if stuck:
        notes.append(f"{stuck} of {len(store.converged)} fits did not converge: intervals are as good as these fits.")
    return tuple(notes)


def _note(i: int, order: npt.NDArray[np.intp], variance: Vector) -> str:
    """Say which component the i-th was taken for most often."""
    other = order[order != i]
    j = int(np.bincount(other).argmax())
    whom = f"component {j} (variances {variance[i]:.4g} and {variance[j]:.4g})" if j < len(variance) else "one left out"
    return (
        f"component {i} changed places in {len(other) / len(order):.0%} of the replicates, most often with {whom}: "
        "these rows cannot tell the two directions apart, and intervals of their entries and scores say little."
    )
