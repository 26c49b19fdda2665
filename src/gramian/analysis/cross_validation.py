"""Cross-validation of the number of components, cell by cell."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from gramian.analysis._model import FittedPCA
from gramian.analysis._rank_inputs import host, refuse_missing, rows_of, seed_of
from gramian.analysis._weights import frequencies
from gramian.analysis.rank_choice import RankChoice, counted
from gramian.results import NumericalWarning
from gramian.sources import Source, open_source
from gramian.sources.base import memory_budget

__all__ = ["CrossValidation", "cross_validate_rank", "press_by_components"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Folds = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]

MOST = 100  # components tried where the user does not say
ALONE = 1e-8  # 1 − h below this: a variable that is a component by itself
ROUNDING = 1e-12  # PRESS within this share of PRESS(0) of the smallest counts as smallest


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(RankChoice):
    """The number of components that predicts held-out cells best.

    Attributes
    ----------
    rule, n_components, reason
        As in :class:`~gramian.analysis.rank_choice.RankChoice`.
    values, thresholds : ndarray of shape (K,)
        PRESS(k) for k = 1, …, K and PRESS(k − 1) before it.
    press : ndarray of shape (K + 1,)
        Σ w (x − x̂)² over all cells, for 0, 1, …, K components; NaN where cells cannot be predicted.
    at_the_end : bool
        Whether the least is at the largest number tried, so that it may not be the least of all; ``reason`` says so.
    """

    press: Vector
    at_the_end: bool = False

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``."""
        number = np.arange(len(self.press))
        return {"n_components": number, "press": self.press, "chosen": number == self.n_components}

    def _lines(self) -> list[str]:
        lines = [f"  {k:>12} {value:>11.5g}" for k, value in enumerate(self.press)]
        return [f"  {'n_components':>12} {'PRESS':>11}"] + [
            line + "  chosen" * (k == self.n_components) for k, line in enumerate(lines)
        ]


@dataclass(frozen=True, eq=False)
class _Model:
    """What one training set says: V with orthonormal rows, means, divisors, and how many rows of V it determines."""

    components: Matrix
    mean: Vector
    scale: Vector
    rank: int
    scaled: bool


def cross_validate_rank(
    pca: FittedPCA,
    X: Any,
    *,
    n_folds: int = 7,
    max_components: int | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> CrossValidation:
    r"""Components that predict cells best which neither the fit nor the prediction has seen.

    For each fold the components V come from the other rows. Every cell of a held-out row is predicted from the *other*
    cells of that row, by the scores z that fit them best in least squares; its residual has a closed form,

    .. math::
        x_{ij} - \hat x_{ij}^{(-j)} = \frac{e_{ij}}{1-h_j},\qquad e = (I-V_kV_k^T)(x-\bar x),\qquad
        h_j = \sum_{l\le k}v_{jl}^2,\qquad \mathrm{PRESS}(k) = \sum_{ij} w_i \frac{e_{ij}^2}{(1-h_j)^2}

    so that all k cost one projection. PRESS(0) is that of the mean. Leaving out rows alone would let a cell predict
    itself, and never show too many components. (R. Bro, K. Kjeldahl, A. Smilde and H. Kiers, Anal. Bioanal. Chem. 390,
    1241, 2008, call this the eigenvector method.)

    Parameters
    ----------
    pca : PCA
        Settings of the fits, ``scale`` above all; it need not be fitted and is not changed.
    X : array-like, sparse matrix, frame, tensor, path or Source
        The data; a file is read twice more than its fits do.
    n_folds : int, default=7
        Parts the rows are dealt into at random.
    max_components : int, optional
        Most components tried; at most one less than columns or training rows. None tries as many, up to 100.
    sample_weight : array-like of shape (n,), optional
        Frequencies. A row of weight 2 is in one fold twice; one of weight 0 in none.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the folds; None is a fixed seed.
    progress : callable, optional
        Called with (folds fitted, folds in all).

    Returns
    -------
    CrossValidation
        The smallest k with the least PRESS, and PRESS for every k tried.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis.cross_validation import cross_validate_rank
    >>> cross_validate_rank(PCA(), load_iris().data)
    cv: 2 components
      PRESS is least with 2 components, 0.1... of that of the mean, over 7 folds.
      n_components       PRESS
                 0      68...
                 1      8...
                 2      7...  chosen
                 3      9...
    """
    source = open_source(X)
    refuse_missing(source)
    w = frequencies(sample_weight, source.shape[0])
    folds = _deal(w, n_folds, seed_of(random_state))
    most = _most(max_components, source.shape[1], folds, n_folds)
    models = []
    for f in range(n_folds):
        models.append(_fit(pca, source, np.where(folds == f, 0.0, w), most))
        if progress is not None:
            progress(f + 1, n_folds)
    rank = min(model.rank for model in models)
    # a model knows its rank up to the components it has
    most, limit = (most, _limit(source.shape[1], folds)) if rank >= most else (rank, rank)
    return _choice(_press(source, w, folds, models, most), models, source, n_folds, limit)


def press_by_components(D: Matrix, weights: Vector, V: Matrix) -> Vector:
    """Return Σ w e²/(1 − h)² of centred rows D for 0, 1, …, K of the orthonormal rows of V; NaN once some 1 − h is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis.cross_validation import press_by_components
    >>> press_by_components(np.array([[1.0, 3.0]]), np.ones(1), np.array([[0.6, 0.8]])).round(4)
    array([10.    ,  4.3403])
    """
    E, free = D.copy(), np.ones(D.shape[1])
    press = [float(weights @ np.sum(E**2, axis=1))]
    for v in V:
        E -= np.outer(E @ v, v)
        free = free - v**2
        alone = free.min() < ALONE
        press.append(np.nan if alone else float(weights @ E**2 @ free**-2))
    return np.array(press)


def _deal(w: Vector, n_folds: int, seed: int) -> Folds:
    """Deal the rows that have a weight into folds of equal size; −1 marks the others."""
    rows = np.flatnonzero(w)
    if not isinstance(n_folds, Integral) or not 2 <= n_folds <= len(rows):
        raise ValueError(f"n_folds={n_folds!r} must be between 2 and the number of rows with a weight, {len(rows)}.")
    folds = np.full(len(w), -1)
    folds[rows] = np.random.default_rng(seed).permutation(np.arange(len(rows)) % n_folds)
    return folds


def _training(folds: Folds) -> int:
    """Rows of the smallest training set."""
    return int(np.count_nonzero(folds >= 0)) - int(np.bincount(folds[folds >= 0]).max())


def _limit(p: int, folds: Folds) -> int:
    """Most components that can be tried: one less than columns and than rows of the smallest training set."""
    return max(0, min(p - 1, _training(folds) - 1))


def _most(asked: int | None, p: int, folds: Folds, n_folds: int) -> int:
    limit = _limit(p, folds)
    if asked is None:
        return min(limit, MOST)
    if isinstance(asked, bool) or not isinstance(asked, Integral) or not 1 <= asked <= limit:
        raise ValueError(
            f"max_components={asked!r} must be between 1 and {limit}, less than the columns ({p}) and than the rows "
            f"of the smallest training set ({_training(folds)}, of {n_folds} folds)."
        )
    return int(asked)


def _fit(pca: FittedPCA, source: Source, w: Vector, k: int) -> _Model:
    with warnings.catch_warnings():
        # directions beyond the rank are left out below
        warnings.filterwarnings("ignore", "n_components=.* exceeds the rank", NumericalWarning)
        model = clone(pca).set_params(n_components=max(k, 1), whiten=False).fit(source, sample_weight=w)
    mean = host(model.mean_)
    scale = np.ones_like(mean) if model.scale_ is None else host(model.scale_)
    return _Model(host(model.components_), mean, scale, int(model.rank_), model.scale_ is not None)


def _press(source: Source, w: Vector, folds: Folds, models: list[_Model], k: int) -> Vector:
    """Sum PRESS over all folds in one pass over the rows, few enough at a time to be made dense."""
    total = np.zeros(k + 1)
    rows = max(1, memory_budget() // 16 // (8 * source.shape[1]))
    for block in source.blocks(rows):
        here, weights = folds[block.start : block.stop], w[block.start : block.stop]
        for f in np.unique(here[here >= 0]):
            held, model = here == f, models[f]
            D = (rows_of(block.values, held) - model.mean) / model.scale
            total += press_by_components(D, weights[held], model.components[:k])
    return total


def _choice(press: Vector, models: list[_Model], source: Source, n_folds: int, limit: int) -> CrossValidation:
    known = np.flatnonzero(np.isfinite(press))
    k = int(np.argmax(press[known] <= press[known].min() + ROUNDING * press[0]))
    if press[0] == 0.0:
        reason = "All rows are equal: there is no variance, and so no component."
    elif k == 0:
        reason = f"No number of components predicts held-out cells better than the mean, over {n_folds} folds."
    else:
        reason = (
            f"PRESS is least with {counted(k)}, {press[k] / press[0]:.3g} of that of the mean, over {n_folds} folds."
        )
    # a PRESS of 0 cannot fall any more
    last = 0 < k == len(press) - 1 and press[k] > ROUNDING * press[0]
    if len(known) < len(press):
        reason += _excluded(press, models, source)
    elif last:
        reason += _way_out(k, source, limit)
    return CrossValidation("cv", k, reason, press[1:], press[:-1], press, last)


def _way_out(k: int, source: Source, limit: int) -> str:
    """Say what can be done where the last number tried is the best."""
    if k < limit:
        return (
            " It is the largest number tried, and PRESS may still fall: try more with rank_advice(X, max_components=…) "
            "or cross_validate_rank(PCA(), X, max_components=…), and give PCA the number found."
        )
    few = "columns" if k == source.shape[1] - 1 else "independent rows in the smallest training set"
    return (
        f" It is the largest number tried, and no more can be with so few {few}: where the components end, cv cannot "
        "say here. Ask another rule, such as 'parallel-gaussian', or give the number."
    )


def _excluded(press: Vector, models: list[_Model], source: Source) -> str:
    """Name the first k left out and the variable that is the cause."""
    k = int(np.argmin(np.isfinite(press)))
    free = np.min([1 - np.sum(model.components[:k] ** 2, axis=0) for model in models], axis=0)
    j = int(np.argmin(free))
    name = source.feature_names[j] if source.feature_names else f"x{j}"
    remedy = "" if models[0].scaled else " PCA(scale=True) helps where its unit is the cause."
    return (
        f" From {k} on they were left out: column {name!r} is all but a component by itself (1 − h = {free[j]:.1g}), "
        f"which the other columns cannot predict.{remedy}"
    )
