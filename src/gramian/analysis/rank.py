"""How many components: rules that need the eigenvalues alone.

Eigenvalues are those of the covariance matrix of n rows and p columns with their mean taken out, which costs one
degree of freedom: noise of n rows has n − 1 of them, and at most min(n − 1, p) eigenvalues that are not 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gramian.analysis._spectrum import checked, most, nothing
from gramian.analysis.gavish_donoho import gavish_donoho, marchenko_pastur_median, optimal_threshold
from gramian.analysis.rank_choice import RankAdvice, RankChoice, leading, used_up
from gramian.analysis.tracy_widom_rank import noise_variance, tracy_widom_rank

__all__ = [
    "SPECTRUM_RULES",
    "RankAdvice",
    "RankChoice",
    "broken_stick",
    "gavish_donoho",
    "marchenko_pastur_median",
    "noise_variance",
    "optimal_threshold",
    "tracy_widom_rank",
    "variance_fraction",
]

Vector = npt.NDArray[np.float64]


def broken_stick(eigenvalues: npt.ArrayLike) -> RankChoice:
    r"""Components whose share of the variance exceeds that of a stick broken at random.

    .. math:: \frac{\lambda_k}{\sum_i\lambda_i} > b_k = \frac1m\sum_{i=k}^m\frac1i

    b_k is the mean length of the k-th longest of m pieces of a stick of length 1 (S. Frontier, J. Exp. Mar. Biol. Ecol.
    25, 67, 1976; D. Jackson, Ecology 74, 2204, 1993). Counting stops at the first component that falls short.

    Parameters
    ----------
    eigenvalues : array-like of shape (m,)
        All eigenvalues, descending, without those that are zero because there are fewer rows than columns.

    Returns
    -------
    RankChoice
        Shares of the variance as ``values``, b_k as ``thresholds``.

    Examples
    --------
    >>> from gramian.analysis.rank import broken_stick
    >>> broken_stick([3.0, 0.6, 0.3, 0.1]).n_components
    1
    """
    lam = checked(eigenvalues)
    if lam[0] == 0.0:
        return nothing("broken-stick", lam)
    m = len(lam)
    pieces = np.cumsum(1 / np.arange(m, 0, -1))[::-1] / m
    share = lam / lam.sum()
    k = leading(share > pieces)
    # shares and pieces both sum to 1, so that some share falls short: k < m
    reason = (
        used_up(k)
        if lam[k] == 0.0
        else (
            f"λ{k + 1} is {100 * share[k]:.3g} % of the variance, and a stick broken at random has a piece {k + 1} of "
            f"{100 * pieces[k]:.3g} % on average."
        )
    )
    return RankChoice("broken-stick", k, reason, share, pieces)


def variance_fraction(eigenvalues: npt.ArrayLike, fraction: float = 0.9) -> RankChoice:
    r"""Fewest components that hold more than a fraction f of the variance.

    .. math:: \sum_{i\le k}\lambda_i > f\sum_i\lambda_i

    It measures size, not significance: noise is variance too.

    Parameters
    ----------
    eigenvalues : array-like
        All eigenvalues, descending.
    fraction : float, default=0.9
        Between 0 and 1.

    Returns
    -------
    RankChoice
        Cumulative shares as ``values``; the fraction as ``thresholds``.

    Examples
    --------
    >>> from gramian.analysis.rank import variance_fraction
    >>> variance_fraction([6.0, 3.0, 0.6, 0.4], 0.95).n_components
    3
    """
    lam = checked(eigenvalues)
    if not 0 < fraction < 1:
        raise ValueError(f"fraction={fraction!r} must lie between 0 and 1: the share of the variance to explain.")
    if lam[0] == 0.0:
        return nothing("fraction", lam)
    share = np.cumsum(lam) / lam.sum()
    k = min(int(np.searchsorted(share, fraction, side="right")) + 1, len(lam))
    reason = f"{k} hold {100 * share[k - 1]:.4g} % of the variance, the first to exceed {100 * fraction:g} %."
    return RankChoice("fraction", k, reason, share, np.full(len(lam), float(fraction)))


def _whole_stick(eigenvalues: npt.ArrayLike, n: float, p: int) -> RankChoice:
    """The broken stick of as many pieces as there can be eigenvalues."""
    return broken_stick(checked(eigenvalues, n, p)[: most(n, p)])


SPECTRUM_RULES: dict[str, Callable[[npt.ArrayLike, float, int], RankChoice]] = {
    "broken-stick": _whole_stick,
    "gavish-donoho": gavish_donoho,
    "tracy-widom": tracy_widom_rank,
}
