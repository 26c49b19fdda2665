"""How many eigenvalues are larger than noise makes them: a sequence of Tracy–Widom tests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gramian.analysis._spectrum import checked, most, nothing
from gramian.analysis.eigenvalue_tests import largest_noise_eigenvalue, trace_ratio_critical, tracy_widom_statistics
from gramian.analysis.rank_choice import RankChoice, used_up
from gramian.analysis.tracy_widom import tracy_widom_quantile

__all__ = ["noise_variance", "tracy_widom_rank"]

Vector = npt.NDArray[np.float64]

SETTLED = 1e-13  # relative change at which the noise variance is taken
ROUNDS = 500


def tracy_widom_rank(
    eigenvalues: npt.ArrayLike, n: float, p: int, alpha: float = 0.05, *, effective: bool = False
) -> RankChoice:
    r"""Components whose eigenvalue is larger than noise makes one, tested one after the other.

    Component k is kept, those before it being signal, where

    .. math:: \lambda_k > \hat\sigma^2_{k-1}\,(\mu_{n-1,\,p-k+1} + s_\alpha\,\sigma_{n-1,\,p-k+1})

    with μ, σ of :func:`~gramian.analysis.eigenvalue_tests.largest_noise_eigenvalue`, σ̂² of :func:`noise_variance` and
    s_α of :func:`~gramian.analysis.eigenvalue_tests.trace_ratio_critical`. The first that fails ends the test, so that
    noise is given a component with probability α. Kritchman and Nadler (IEEE Trans. Signal Process. 57, 3930, 2009),
    whose sequence and estimate of the noise these are, take the estimate with λ_k itself counted as signal; noise alone
    then passes more often than α, so it is not done.

    Parameters
    ----------
    eigenvalues : array-like
        All eigenvalues, descending.
    n, p : float, int
        Rows (the sum of their weights) and columns.
    alpha : float, default=0.05
        Probability of a component in pure noise.
    effective : bool, default=False
        Patterson's test instead, with the sample size the eigenvalues show in place of the true one: for correlated
        noise, such as genotypes of linked markers (:func:`~gramian.analysis.eigenvalue_tests.tracy_widom_statistics`).

    Returns
    -------
    RankChoice
        Eigenvalues as ``values``; with ``effective`` the statistics and their critical value.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis.tracy_widom_rank import tracy_widom_rank
    >>> tracy_widom_rank([4.0, 1.2, 1.1, 1.0, 0.9, 0.8], 200, 6).n_components
    1
    """
    lam = checked(eigenvalues, n, p)
    if lam[0] == 0.0:
        return nothing("tracy-widom", lam)
    m = most(n, p)
    if m == 1:
        alone = "There is one eigenvalue, and no noise beside it to test it against."
        return RankChoice("tracy-widom", 0, alone, lam, np.full(len(lam), np.nan))
    if effective:
        return _patterson(lam[: min(m, int(np.count_nonzero(lam)))], alpha)
    thresholds = np.full(len(lam), np.nan)
    k = 0
    while k < m - 1:
        mu, sigma = largest_noise_eigenvalue(n - 1, p - k)
        critical = trace_ratio_critical(alpha, n - 1, p - k)
        thresholds[k] = noise_variance(lam, n, p, k) * (mu + critical * sigma)
        if lam[k] <= thresholds[k]:
            break
        k += 1
    return RankChoice("tracy-widom", k, _test_reason(lam, thresholds, k, alpha), lam, thresholds)


def _patterson(lam: Vector, alpha: float) -> RankChoice:
    """Patterson's test of the positive eigenvalues, sequentially."""
    if len(lam) < 2:
        return RankChoice("tracy-widom", len(lam), used_up(len(lam)), lam, np.zeros(len(lam)))
    tested = tracy_widom_statistics(lam)
    k = tested.significant(alpha)
    critical = np.full(len(tested.statistics), float(tracy_widom_quantile(alpha, upper=True)))
    if k == len(critical):
        reason = f"Every p-value is below {alpha:g}, Patterson's effective sample size taken."
    else:
        reason = (
            f"λ{k + 1} has a p-value of {tested.p_values[k]:.3g}, not below {alpha:g}, with "
            f"{tested.effective_n[k]:.4g} as effective sample size."
        )
    return RankChoice("tracy-widom", k, reason, tested.statistics, critical)


def _test_reason(lam: Vector, thresholds: Vector, k: int, alpha: float) -> str:
    if k < len(lam) and lam[k] == 0.0:
        return used_up(k)
    if k < len(lam) and np.isfinite(thresholds[k]):
        return (
            f"λ{k + 1} = {lam[k]:.4g} does not exceed {thresholds[k]:.4g}, which noise does with probability {alpha:g}."
        )
    return f"λ{k} exceeds what noise makes, and too few eigenvalues are left to test another."


def noise_variance(eigenvalues: npt.ArrayLike, n: float, p: int, k: int) -> float:
    r"""Variance of the noise where k components are signal, by Kritchman and Nadler.

    The mean of the p − k eigenvalues left over is too small, as noise along the signal has gone into the leading ones.
    Adding it back solves

    .. math::
        \sigma^2 = \frac1{p-k}\Bigl[\sum_{j>k}\lambda_j + \sum_{j\le k}(\lambda_j-\rho_j)\Bigr],\qquad
        \rho_j^2 - \rho_j\Bigl(\lambda_j+\sigma^2-\sigma^2\tfrac{p-k}{n-1}\Bigr) + \lambda_j\sigma^2 = 0

    by iteration from the mean, which rises to the answer. (Chemom. Intell. Lab. Syst. 94, 19, 2008.)

    Parameters
    ----------
    eigenvalues : array-like
        All eigenvalues, descending.
    n, p : float, int
        Rows (the sum of their weights) and columns.
    k : int
        Components that are signal, fewer than p.

    Returns
    -------
    float
        σ².

    Examples
    --------
    >>> from gramian.analysis.tracy_widom_rank import noise_variance
    >>> round(noise_variance([4.0, 1.1, 1.0, 0.9], 101, 4, 1), 3)
    1.014
    """
    lam = checked(eigenvalues, n, p)
    if not 0 <= k < p:
        raise ValueError(f"k={k!r} must be at least 0 and less than the number of columns, {p}.")
    rest, signal = float(lam[k:].sum()), lam[:k]
    variance = rest / (p - k)
    for _ in range(ROUNDS):
        # an eigenvalue inside the noise has no root: the double root at the edge, σ√λ, stands for it
        half = np.maximum((signal + variance * (1 - (p - k) / (n - 1))) / 2, np.sqrt(signal * variance))
        rho = half + np.sqrt(np.maximum(half**2 - signal * variance, 0.0))
        last, variance = variance, (rest + float(np.sum(signal - rho))) / (p - k)
        if abs(variance - last) <= SETTLED * variance:
            break
    return variance
