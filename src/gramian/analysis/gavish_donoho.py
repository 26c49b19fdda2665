"""The optimal hard threshold of singular values: which components make a reconstruction better."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from gramian.analysis._spectrum import checked, most, nothing
from gramian.analysis.rank_choice import RankChoice

__all__ = ["gavish_donoho", "marchenko_pastur_median", "median_noise_variance", "optimal_threshold"]

Vector = npt.NDArray[np.float64]


def gavish_donoho(eigenvalues: npt.ArrayLike, n: float, p: int, noise_variance: float | None = None) -> RankChoice:
    r"""Components whose singular value is worth keeping for the reconstruction: the optimal hard threshold.

    .. math:: \lambda_k > \frac{\max(n-1, p)}{n-1}\,\lambda_*(\beta)^2\,\sigma^2,\qquad
        \beta = \frac{\min(n-1, p)}{\max(n-1, p)}

    with :math:`\lambda_*` of :func:`optimal_threshold`; where σ² is not known, it is that of
    :func:`median_noise_variance`. This minimises the error of the reconstruction for large n, p and white noise. It
    cuts above the edge of detection: a component too noisy to help is left out. (M. Gavish and D. Donoho, IEEE Trans.
    Inf. Theory 60, 5040, 2014.)

    Parameters
    ----------
    eigenvalues : array-like
        All eigenvalues, descending.
    n, p : float, int
        Rows (the sum of their weights) and columns.
    noise_variance : float, optional
        Variance σ² of the noise of one cell, where it is known.

    Returns
    -------
    RankChoice
        Eigenvalues as ``values``, the one threshold as ``thresholds``.

    Examples
    --------
    >>> from gramian.analysis.gavish_donoho import gavish_donoho
    >>> gavish_donoho([9.0, 2.3, 1.1, 1.0, 0.9], 101, 5, noise_variance=1.0).n_components
    2
    """
    lam = checked(eigenvalues, n, p)
    if noise_variance is not None and not 0 <= noise_variance < math.inf:
        raise ValueError(f"noise_variance={noise_variance!r} must be a variance: a number that is not negative.")
    if lam[0] == 0.0:
        return nothing("gavish-donoho", lam)
    noise = median_noise_variance(lam, n, p) if noise_variance is None else float(noise_variance)
    level = optimal_threshold(_beta(n, p)) ** 2 * max(n - 1, p) / (n - 1) * noise
    k = int(np.count_nonzero(lam > level))
    origin = "from the median eigenvalue" if noise_variance is None else "as given"
    reason = f"{_found(k)} the optimal threshold {level:.4g}, for noise of variance {noise:.4g} {origin}."
    return RankChoice("gavish-donoho", k, reason, lam, np.full(len(lam), level))


def _found(k: int) -> str:
    if k == 0:
        return "No eigenvalue exceeds"
    return f"λ{k} is the last above" if k > 1 else "Only λ1 is above"


def _beta(n: float, p: int) -> float:
    return min(n - 1, p) / max(n - 1, p)


def median_noise_variance(eigenvalues: npt.ArrayLike, n: float, p: int) -> float:
    r"""Variance of the noise from the median singular value and that of the Marchenko–Pastur law.

    .. math:: \hat\sigma^2 = \mathrm{med}(\sqrt{\lambda})^2\,\frac{n-1}{\max(n-1, p)\,\mu_\beta}

    with μ_β of :func:`marchenko_pastur_median` and the median taken of min(n − 1, p) eigenvalues. Signal in a few of
    them moves it little.

    Parameters
    ----------
    eigenvalues : array-like
        All eigenvalues, descending.
    n, p : float, int
        Rows (the sum of their weights) and columns.

    Returns
    -------
    float
        σ².

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis.gavish_donoho import median_noise_variance
    >>> X = np.random.default_rng(0).normal(scale=3, size=(400, 200))
    >>> bool(abs(median_noise_variance(np.linalg.eigvalsh(np.cov(X.T))[::-1], 400, 200) / 9 - 1) < 0.02)
    True
    """
    lam = checked(eigenvalues, n, p)[: most(n, p)]
    middle = float(np.median(np.sqrt(lam))) ** 2
    return middle * (n - 1) / (max(n - 1, p) * marchenko_pastur_median(_beta(n, p)))


def optimal_threshold(beta: float) -> float:
    r"""Optimal hard threshold of singular values, in units of √(longer side)·σ: 4/√3 for square matrices.

    .. math:: \lambda_*(\beta) = \sqrt{2(\beta+1) + \frac{8\beta}{\beta+1+\sqrt{\beta^2+14\beta+1}}}

    Noise alone reaches 1 + √β, and a component leaves it from a strength of β^¼ on: the threshold is above both.

    Parameters
    ----------
    beta : float
        Shorter side over longer side, at most 1.

    Returns
    -------
    float
        λ*.

    Examples
    --------
    >>> from gramian.analysis.gavish_donoho import optimal_threshold
    >>> round(optimal_threshold(1.0) * 3**0.5, 12)
    4.0
    """
    _check_beta(beta)
    return math.sqrt(2 * (beta + 1) + 8 * beta / (beta + 1 + math.sqrt(beta**2 + 14 * beta + 1)))


def marchenko_pastur_median(beta: float) -> float:
    r"""Median eigenvalue of a covariance matrix of white noise of variance 1, with β ≤ 1 columns per row.

    It solves :math:`\int_a^\mu \sqrt{(b-t)(t-a)}/(2\pi\beta t)\,dt = \tfrac12` with a, b = (1 ∓ √β)². With
    t = 1 + β − 2√β cos θ the integrand is 2 sin²θ/(πt), and the integral

    .. math::
        \frac2\pi\Bigl[\frac{\sin\theta}{2\sqrt\beta} + \frac{1+\beta}{4\beta}\theta - \frac{1-\beta}{2\beta}
        \arctan\Bigl(\frac{1+\sqrt\beta}{1-\sqrt\beta}\tan\frac\theta2\Bigr)\Bigr]

    Parameters
    ----------
    beta : float
        Columns per row: more than 0, at most 1.

    Returns
    -------
    float
        The median.

    Examples
    --------
    >>> from gramian.analysis.gavish_donoho import marchenko_pastur_median
    >>> round(marchenko_pastur_median(1.0), 6), round(marchenko_pastur_median(0.1), 6)
    (0.652776, 0.966565)
    """
    _check_beta(beta)
    root = math.sqrt(beta)

    def excess(theta: float) -> float:
        turn = math.atan2((1 + root) * math.sin(theta / 2), (1 - root) * math.cos(theta / 2))
        inside = math.sin(theta) / (2 * root) + (1 + beta) * theta / (4 * beta) - (1 - beta) * turn / (2 * beta)
        return 2 / math.pi * inside - 0.5

    theta = float(brentq(excess, 0.0, math.pi, xtol=1e-15, rtol=1e-14))
    return (1 - root) ** 2 + 4 * root * math.sin(theta / 2) ** 2


def _check_beta(beta: float) -> None:
    if not 0 < beta <= 1:
        raise ValueError(f"beta={beta!r} is the shorter side of a matrix over the longer: more than 0, at most 1.")
