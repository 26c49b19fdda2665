"""Parallel analysis: eigenvalues against those of the same data without components."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._model import FittedPCA
from gramian.analysis._null_spectra import eigenvalues_of_draws, gaussian_null, permutation_null
from gramian.analysis._rank_inputs import WholeFit, seed_of, whole_fit
from gramian.analysis._spectrum import checked, most, nothing
from gramian.analysis.rank_choice import RankChoice, leading, used_up
from gramian.sources import Source, open_source

__all__ = ["parallel_analysis", "parallel_analysis_of"]

MARGIN = 1e-9  # share by which an eigenvalue must exceed its quantile: more than rounding
CONSTANT = 1e-12  # a column with less than this share of the largest variance does not vary
NULLS = {"permutation": "parallel", "gaussian": "parallel-gaussian"}
Progress = Callable[[int, int], None]
Vector = npt.NDArray[np.float64]


def parallel_analysis(
    pca: FittedPCA,
    X: Any,
    *,
    null: str = "permutation",
    n_draws: int = 100,
    quantile: float = 0.95,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> RankChoice:
    r"""Components whose eigenvalue exceeds that of data without components, drawn many times.

    .. math:: \lambda_k > q_{0.95}\bigl(\lambda_k^{(1)}, \dots, \lambda_k^{(B)}\bigr)

    with :math:`\lambda_k^{(b)}` the k-th eigenvalue of draw b; counting stops at the first that falls short, and one
    that is equal up to rounding does. The columns of a draw are independent of each other: those of the data, each
    permuted by itself, or normal ones of the same variances. With ``PCA(scale=True)`` the draws are standardised too.
    (J. Horn, Psychometrika 30, 179, 1965; A. Buja and N. Eyuboglu, Multivariate Behav. Res. 27, 509, 1992, for
    permutations and quantiles in place of means.)

    Parameters
    ----------
    pca : PCA
        Says whether columns are divided by their standard deviations; it need not be fitted and is not changed.
    X : array-like, sparse matrix, frame, tensor, path or Source
        The data. Permuting needs them in memory; the normal columns need one fit and no rows.
    null : {"permutation", "gaussian"}, default="permutation"
        What the draws are. Permutation holds for columns of any distribution and for exchangeable rows.
    n_draws : int, default=100
        Draws B, at least 1/(1 − quantile).
    quantile : float, default=0.95
        Quantile to exceed.
    sample_weight : array-like of shape (n,), optional
        Frequencies: whole numbers for permutations.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws; None is a fixed seed.
    progress : callable, optional
        Called with (draws made, draws in all).

    Returns
    -------
    RankChoice
        Eigenvalues as ``values``, quantiles of the draws as ``thresholds``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis.parallel_analysis import parallel_analysis
    >>> choice = parallel_analysis(PCA(scale=True), load_iris().data)
    >>> choice.n_components, choice.values.round(3).tolist()
    (1, [2.918, 0.914, 0.147, 0.021])
    >>> bool(1.05 < choice.thresholds[1] < 1.25)
    True
    """
    _check(null, n_draws, quantile)
    source = open_source(X)
    whole = whole_fit(pca, source, sample_weight)
    return parallel_analysis_of(whole, source, null, n_draws, quantile, sample_weight, random_state, progress)


def parallel_analysis_of(
    whole: WholeFit,
    source: Source,
    null: str,
    n_draws: int,
    quantile: float,
    sample_weight: Any,
    random_state: Any,
    progress: Progress | None,
) -> RankChoice:
    """Do as :func:`parallel_analysis`, where the fit of all components is at hand."""
    size = most(whole.n, whole.p)
    lam = checked(whole.eigenvalues)[:size]
    if lam[0] == 0.0:
        return nothing(NULLS[null], lam)
    permuting = null == "permutation"
    if np.count_nonzero(whole.variances > CONSTANT * whole.variances.max()) == 1:
        return _one_column(NULLS[null], lam, permuting)
    draw, numbers = permutation_null(source, whole, sample_weight) if permuting else gaussian_null(whole)
    draws = eigenvalues_of_draws(draw, n_draws, seed_of(random_state), numbers, progress)
    limits = np.quantile(draws[:, :size], quantile, axis=0)
    k = leading(lam > (1 + MARGIN) * limits)
    what = f"the {quantile:g} quantile of {n_draws} draws of {'permuted' if permuting else 'normal'} columns"
    if k == size:
        reason = f"Every eigenvalue exceeds {what}."
    elif lam[k] == 0.0:
        reason = used_up(k)
    else:
        reason = f"λ{k + 1} = {lam[k]:.4g} does not exceed {limits[k]:.4g}, {what}."
    return RankChoice(NULLS[null], k, reason, lam, limits)


def _one_column(rule: str, lam: Vector, permuting: bool) -> RankChoice:
    """Return the answer where draws can have no other eigenvalue than the data."""
    reason = f"Only one column varies, and it cannot be told from itself {'permuted' if permuting else 'drawn anew'}."
    return RankChoice(rule, 0, reason, lam, np.full(len(lam), np.nan))


def _check(null: str, n_draws: int, quantile: float) -> None:
    if null not in NULLS:
        raise ValueError(f"null={null!r} must be one of {', '.join(map(repr, NULLS))}.")
    if not 0 < quantile < 1:
        raise ValueError(f"quantile={quantile!r} must lie between 0 and 1, such as 0.95.")
    if not isinstance(n_draws, Integral) or n_draws * (1 - quantile) < 1 - 1e-9:
        least = int(np.ceil(1 / (1 - quantile) - 1e-9))
        raise ValueError(f"n_draws={n_draws!r} must be a number of at least {least} to show the {quantile:g} quantile.")
