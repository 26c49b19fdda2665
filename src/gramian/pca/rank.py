"""Rules for the number of components by name, as ``PCA(n_components=...)`` takes them."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.sparse.linalg import eigsh
from scipy.special import gammaln
from sklearn.base import clone

from gramian.compute.devices import to_numpy
from gramian.compute.factor import eigh, svd
from gramian.compute.threads import n_threads, parallel, quiet_blas
from gramian.inputs.checks import check_choice, check_seed, check_share, check_weights
from gramian.inputs.progress import Progress
from gramian.pca.interpret import dense_rows, refuse_lost_variances
from gramian.pca.problem import PCAFit
from gramian.pca.tracy_widom import (
    check_descending,
    count_leading,
    largest_noise_eigenvalue,
    trace_ratio_critical,
    tracy_widom_quantile,
    tracy_widom_statistics,
)
from gramian.results import NumericalWarning, caller_level
from gramian.results.tables import Tabular
from gramian.sources import Source, open_source
from gramian.sources.base import memory_budget
from gramian.sources.checkpoint import begin_checkpoint
from gramian.sources.errors import Argument, SourceError

if TYPE_CHECKING:
    from gramian.pca.estimator import PCA

Array = npt.NDArray[np.float64]

SHOWN = 8  # rows of a representation
NO_VARIANCE = "All rows are equal: there is no variance, and so no component."


@dataclass(frozen=True, eq=False, repr=False)
class RankChoice(Tabular):
    """The number of components by one rule, and how it came to it.

    Attributes
    ----------
    rule : str
        Name of the rule.
    n_components : int
        Components to keep; 0 where nothing stands out of the noise.
    reason : str
        One sentence: what decided.
    values, thresholds : ndarray of shape (m,)
        What was compared, by component, and what it had to exceed; a threshold is NaN where the rule had stopped.

    Examples
    --------
    >>> from gramian.analysis import broken_stick
    >>> broken_stick([3.0, 0.6, 0.3, 0.1])
    broken-stick: 1 component
      λ2 is 15 % of the variance, and a stick broken at random has a piece 2 of 27.1 % on average.
      component  value  threshold  kept
      1           0.75     0.5208   yes
      2           0.15     0.2708
      3          0.075     0.1458
      4          0.025     0.0625
    """

    rule: str
    n_components: int
    reason: str
    values: Array
    thresholds: Array

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``."""
        number = np.arange(1, len(self.values) + 1)
        compared = {"component": number, "value": self.values, "threshold": self.thresholds}
        return compared | {"kept": number <= self.n_components}

    def _title(self) -> str:
        return f"{self.rule}: {pluralize(self.n_components)}\n  {self.reason}"

    def _shown(self) -> dict[str, Any]:
        shown = max(SHOWN, self.n_components + 2)
        columns = {name: values[:shown] for name, values in self.table().items()}
        last, kept = columns.popitem()
        return columns | {last: ["yes" if x else "" for x in kept]}


def pluralize(k: int) -> str:
    """Return "1 component", "2 components"."""
    return f"{k} component" + "s" * (k != 1)


def say_used_up(k: int) -> str:
    """Return the reason to stop where the eigenvalue after the k-th is 0.

    Examples
    --------
    >>> from gramian.pca.rank import say_used_up
    >>> say_used_up(2)
    'λ3 is 0: the 2 components before it hold all the variance.'
    """
    return f"λ{k + 1} is 0: the {pluralize(k)} before it {'holds' if k == 1 else 'hold'} all the variance."


ROUNDING = 64 * 2.0**-52  # times √p and the largest: what an eigenvalue that is 0 may be computed as


def check_spectrum(eigenvalues: npt.ArrayLike, n: float | None = None, p: int | None = None) -> Array:
    """Return the eigenvalues as an array, rounding put to 0; raise an error where they cannot be a whole spectrum.

    Examples
    --------
    >>> from gramian.pca.rank import check_spectrum
    >>> check_spectrum([2.0, 1.0, -1e-17]).tolist()
    [2.0, 1.0, 0.0]
    """
    rounding = ROUNDING * math.sqrt(np.size(eigenvalues))
    lam = check_descending(eigenvalues, rounding=rounding)
    level = rounding * max(float(lam[0]), 0.0)
    bad = np.flatnonzero(lam < -level)
    if len(bad):
        raise ValueError(
            f"eigenvalues of a covariance matrix are not negative; number {bad[0] + 1} is {lam[bad[0]]:g}."
        )
    if n is not None and p is not None:
        if not (n >= 2 and p >= 1):
            raise ValueError(f"n={n!r} rows and p={p!r} columns have no covariance: two rows and a column are needed.")
        if not max_rank(n, p) <= len(lam) <= p:
            raise ValueError(
                f"{len(lam)} eigenvalues are not those of {n:g} rows and {p} columns: the rule needs all of them, from "
                f"{max_rank(n, p)} to {p}. Fit with n_components=None."
            )
    return np.where(lam > level, lam, 0.0)


def max_rank(n: float, p: int) -> int:
    """Return how many eigenvalues can differ from 0: min(n − 1, p)."""
    return int(min(n - 1 + 1e-9, p))


def choose_none(rule: str, lam: Array, reason: str = NO_VARIANCE) -> RankChoice:
    """Return an answer of 0 components, where all rows are equal unless another reason is given."""
    return RankChoice(rule, 0, reason, lam, np.full(len(lam), np.nan))


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
    >>> from gramian.analysis import gavish_donoho
    >>> gavish_donoho([9.0, 2.3, 1.1, 1.0, 0.9], 101, 5, noise_variance=1.0).n_components
    2
    """
    lam = check_spectrum(eigenvalues, n, p)
    if noise_variance is not None and not 0 <= noise_variance < math.inf:
        raise ValueError(f"noise_variance={noise_variance!r} must be a variance: a number that is not negative.")
    if lam[0] == 0.0:
        return choose_none("gavish-donoho", lam)
    noise = median_noise_variance(lam, n, p) if noise_variance is None else float(noise_variance)
    level = optimal_threshold(_beta(n, p)) ** 2 * max(n - 1, p) / (n - 1) * noise
    k = int(np.count_nonzero(lam > level))
    origin = "from the median eigenvalue" if noise_variance is None else "as given"
    which = "No eigenvalue exceeds" if k == 0 else f"λ{k} is the last above" if k > 1 else "Only λ1 is above"
    reason = f"{which} the optimal threshold {level:.4g}, for noise of variance {noise:.4g} {origin}."
    return RankChoice("gavish-donoho", k, reason, lam, np.full(len(lam), level))


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
    >>> from gramian.pca.rank import median_noise_variance
    >>> X = np.random.default_rng(0).normal(scale=3, size=(400, 200))
    >>> bool(abs(median_noise_variance(np.linalg.eigvalsh(np.cov(X.T))[::-1], 400, 200) / 9 - 1) < 0.02)
    True
    """
    lam = check_spectrum(eigenvalues, n, p)[: max_rank(n, p)]
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
    >>> from gramian.pca.rank import optimal_threshold
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
    >>> from gramian.pca.rank import marchenko_pastur_median
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


SETTLED = 1e-13  # relative change at which the noise variance is taken
ROUNDS = 500


def tracy_widom_rank(
    eigenvalues: npt.ArrayLike, n: float, p: int, alpha: float = 0.05, *, effective: bool = False
) -> RankChoice:
    r"""Components whose eigenvalue is larger than noise makes one, tested one after the other.

    Component k is kept, those before it being signal, where

    .. math:: \lambda_k > \hat\sigma^2_{k-1}\,(\mu_{n-1,\,p-k+1} + s_\alpha\,\sigma_{n-1,\,p-k+1})

    with μ, σ of :func:`~gramian.pca.tracy_widom.largest_noise_eigenvalue`, σ̂² of :func:`noise_variance` and
    s_α of :func:`~gramian.pca.tracy_widom.trace_ratio_critical`. The first that fails ends the test, so that
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
        noise, such as genotypes of linked markers (:func:`~gramian.pca.tracy_widom.tracy_widom_statistics`).

    Returns
    -------
    RankChoice
        Eigenvalues as ``values``; with ``effective`` the statistics and their critical value.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis import tracy_widom_rank
    >>> tracy_widom_rank([4.0, 1.2, 1.1, 1.0, 0.9, 0.8], 200, 6).n_components
    1
    """
    lam = check_spectrum(eigenvalues, n, p)
    if lam[0] == 0.0:
        return choose_none("tracy-widom", lam)
    m = max_rank(n, p)
    if m == 1:
        return choose_none("tracy-widom", lam, "There is one eigenvalue, and no noise to test it against.")
    if effective:
        return _test_with_effective_size(lam[: min(m, int(np.count_nonzero(lam)))], alpha)
    thresholds = np.full(len(lam), np.nan)
    k = 0
    while k < m - 1:
        mu, sigma = largest_noise_eigenvalue(n - 1, p - k)
        critical = trace_ratio_critical(alpha, n - 1, p - k)
        thresholds[k] = noise_variance(lam, n, p, k) * (mu + critical * sigma)
        if lam[k] <= thresholds[k]:
            break
        k += 1
    if lam[k] == 0.0:
        reason = say_used_up(k)
    elif np.isfinite(thresholds[k]):
        chance = f"which noise does with probability {alpha:g}"
        reason = f"λ{k + 1} = {lam[k]:.4g} does not exceed {thresholds[k]:.4g}, {chance}."
    else:
        reason = f"λ{k} exceeds what noise makes, and too few eigenvalues are left to test another."
    return RankChoice("tracy-widom", k, reason, lam, thresholds)


def _test_with_effective_size(lam: Array, alpha: float) -> RankChoice:
    """Patterson's test of the positive eigenvalues, one after the other."""
    if len(lam) < 2:
        return RankChoice("tracy-widom", len(lam), say_used_up(len(lam)), lam, np.zeros(len(lam)))
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
    >>> from gramian.pca.rank import noise_variance
    >>> round(noise_variance([4.0, 1.1, 1.0, 0.9], 101, 4, 1), 3)
    1.014
    """
    lam = check_spectrum(eigenvalues, n, p)
    if not 0 <= k < p:
        raise ValueError(f"k={k!r} must be at least 0 and less than the number of columns, {p}.")
    unit = float(lam[0]) or 1.0  # products of two eigenvalues may not be representable
    rest, signal = float(lam[k:].sum()) / unit, lam[:k] / unit
    variance = rest / (p - k)
    for _ in range(ROUNDS):
        # an eigenvalue inside the noise has no root: the double root at the edge, σ√λ, stands for it
        half = np.maximum((signal + variance * (1 - (p - k) / (n - 1))) / 2, np.sqrt(signal * variance))
        rho = half + np.sqrt(np.maximum(half**2 - signal * variance, 0.0))
        last, variance = variance, (rest + float(np.sum(signal - rho))) / (p - k)
        if abs(variance - last) <= SETTLED * variance:
            break
    return variance * unit


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
    >>> from gramian.analysis import broken_stick
    >>> broken_stick([3.0, 0.6, 0.3, 0.1]).n_components
    1
    """
    lam = check_spectrum(eigenvalues)
    if lam[0] == 0.0:
        return choose_none("broken-stick", lam)
    m = len(lam)
    pieces = np.cumsum(1 / np.arange(m, 0, -1))[::-1] / m
    share = lam / lam.sum()
    k = count_leading(share > pieces)
    # shares and pieces both sum to 1, so that some share falls short: k < m
    piece = f"a stick broken at random has a piece {k + 1} of {100 * pieces[k]:.3g} % on average"
    reason = f"λ{k + 1} is {100 * share[k]:.3g} % of the variance, and {piece}."
    reason = say_used_up(k) if lam[k] == 0.0 else reason
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
    >>> from gramian.analysis import variance_fraction
    >>> variance_fraction([6.0, 3.0, 0.6, 0.4], 0.95).n_components
    3
    """
    lam = check_spectrum(eigenvalues)
    check_share("fraction", fraction)
    if lam[0] == 0.0:
        return choose_none("fraction", lam)
    share = np.cumsum(lam) / lam.sum()
    k = min(int(np.searchsorted(share, fraction, side="right")) + 1, len(lam))
    reason = f"{k} hold {100 * share[k - 1]:.4g} % of the variance, the first to exceed {100 * fraction:g} %."
    return RankChoice("fraction", k, reason, share, np.full(len(lam), float(fraction)))


def minka(spectrum: Array, n: float, p: int) -> int:
    r"""Minka's estimate of the dimension: the k that maximises the evidence of probabilistic PCA.

    .. math::
        \ln p(D|k) = \ln p(U) - \tfrac n2\sum_{i\le k}\ln\lambda_i - \tfrac{n(p-k)}2\ln\hat v
            + \tfrac{m+k}2\ln 2\pi - \tfrac12\ln|A_Z| - \tfrac k2\ln n

    with v̂ the mean of the p − k eigenvalues left over. Eigenvalues beyond the rank count as zeros, so n may be
    smaller than p. (T. Minka, Automatic choice of dimensionality for PCA, 2000.)

    Parameters
    ----------
    spectrum : ndarray
        Eigenvalues, descending; those not given are 0.
    n, p : float, int
        Rows and columns.

    Examples
    --------
    >>> from gramian.pca.rank import minka
    >>> import numpy as np
    >>> minka(np.array([9.0, 7.0, 1.01, 1.0, 0.99]), 1000, 5)
    2
    """
    lam = spectrum[spectrum > max(p, 2) * np.finfo(float).eps * spectrum[0]]
    last = min(len(lam), p - 1)
    return int(np.argmax([_evidence(lam, k, n, p) for k in range(1, last + 1)])) + 1 if last >= 1 else 1


def _evidence(lam: Array, k: int, n: float, p: int) -> float:
    """Minka's equation (30) in Laplace's approximation, for k components; ties floored at rounding."""
    v, eps = float(lam[k:].sum()) / (p - k), np.finfo(float).eps
    if v <= 0:
        return -math.inf
    half = (p - np.arange(k)) / 2
    uniform = -k * math.log(2.0) + float(np.sum(gammaln(half) - math.log(math.pi) * half))
    fit = -n / 2 * float(np.log(lam[:k]).sum()) - n * (p - k) / 2 * math.log(v)
    volume = math.log(2 * math.pi) * (p * k - k * (k + 1) / 2 + k) / 2
    # ln|A_Z| = Σ_{i≤k} Σ_{j>i} ln (1/λ̂_j − 1/λ̂_i)(λ_i − λ_j) n, with λ̂_j = v̂ beyond k and p − len(λ) zeros
    log_hessian, zeros = 0.0, p - len(lam)
    smooth = np.concatenate([lam[:k], np.full(len(lam) - k, v)])
    for i in range(k):
        gaps = np.maximum(lam[i] - lam[i + 1 :], eps * lam[i])
        inverse = np.maximum(1 / smooth[i + 1 :] - 1 / lam[i], eps / lam[i])
        log_hessian += float(np.sum(np.log(gaps) + np.log(inverse) + math.log(n)))
        if zeros:
            lost = max(1 / v - 1 / lam[i], eps / lam[i])
            log_hessian += zeros * (math.log(lam[i]) + math.log(lost) + math.log(n))
    return uniform + fit + volume - log_hessian / 2 - k * math.log(n) / 2


def minka_choice(eigenvalues: npt.ArrayLike, n: float, p: int) -> RankChoice:
    """Minka's estimate as a RankChoice: :func:`minka`, which never answers 0.

    Examples
    --------
    >>> from gramian.pca.rank import minka_choice
    >>> minka_choice([9.0, 7.0, 1.01, 1.0, 0.99], 1000, 5).n_components
    2
    """
    lam = check_spectrum(eigenvalues, n, p)
    if lam[0] == 0.0:
        return choose_none("mle", lam)
    k = minka(lam, n, p)
    most = min(max_rank(n, p), max(p - 1, 1))
    reason = f"The evidence of probabilistic PCA is largest for {k} of 1 to {most} components."
    return RankChoice("mle", k, reason, lam, np.full(len(lam), np.nan))


EDGE_WINDOW = 5  # eigenvalues that show how the noise ends
EDGE_SHARE = 3  # at most m/3 components are looked for: the gaps further down are no edge
EDGE_GAP = 5.0  # slopes: 98 % of 150 sets of white, mildly unlike, AR 0.5, AR 0.8 or rotated noise stay below 3.1


def edge_differences(eigenvalues: npt.ArrayLike, n: float, p: int) -> RankChoice:
    r"""Components before the last gap that is too wide for the end of a noise of any covariance.

    The eigenvalues of noise end as :math:`\lambda_j\approx a-b\,j^{2/3}`, whatever the covariance of its columns, as
    long as that has no outliers itself. b is taken from the five eigenvalues after a gap by least squares, and

    .. math:: k=\max\Bigl\{j\le m/3:\ \frac{\lambda_j-\lambda_{j+1}}{b_j}>5\Bigr\},\qquad m=\min(n-1,p)

    The idea, and the exponent, are those of A. Onatski (Rev. Econ. Stat. 92, 1004, 2010), who takes the slope once and
    asks for two of them. The level of 5 was found by simulation. Nothing is assumed of correlations; columns of *very*
    unlike variances make gaps of their own, so that they should be scaled.

    Parameters
    ----------
    eigenvalues : array-like
        All eigenvalues, descending.
    n, p : float, int
        Rows (the sum of their weights) and columns.

    Returns
    -------
    RankChoice
        Gaps in slopes as ``values`` and the level as ``thresholds``, for the gaps that were looked at.

    Examples
    --------
    >>> from gramian.analysis import edge_differences
    >>> edge_differences([9.0, 8.0, 2.2, 2.1, 2.02, 1.95, 1.9, 1.85, 1.8, 1.75], 101, 10).n_components
    2
    """
    lam = check_spectrum(eigenvalues, n, p)
    if lam[0] == 0.0:
        return choose_none("edge-differences", lam)
    m = max_rank(n, p)
    tried = min(m // EDGE_SHARE, m - EDGE_WINDOW - 1)
    if tried < 1:
        few = f"There are {m} eigenvalues, and {EDGE_WINDOW + 2} are needed to see how the noise ends."
        return RankChoice("edge-differences", 0, few, np.empty(0), np.empty(0))
    x = np.arange(1, EDGE_WINDOW + 1) ** (2 / 3)
    x -= x.mean()
    windows = np.lib.stride_tricks.sliding_window_view(lam[1:m], EDGE_WINDOW)[:tried]
    slopes = -(windows @ x) / (x @ x)
    gaps = lam[:tried] - lam[1 : tried + 1]
    # where the rest is 0 there is no noise, and every gap before it is one
    level = ROUNDING * lam[0]
    measured = np.where(gaps > level, gaps / np.maximum(slopes, 1e-3 * level), 0.0)
    passed = np.flatnonzero(measured > EDGE_GAP)
    k = int(passed[-1]) + 1 if len(passed) else 0
    if k:
        reason = (
            f"The gap after λ{k} is {measured[k - 1]:.3g} times the slope of the eigenvalues after it, the last above"
        )
    else:
        widest = int(np.argmax(measured))
        reason = f"The widest gap, after λ{widest + 1}, is {measured[widest]:.3g} times the slope after it, not above"
    return RankChoice("edge-differences", k, f"{reason} {EDGE_GAP:g}.", measured, np.full(tried, EDGE_GAP))


@quiet_blas()
def screenot(eigenvalues: npt.ArrayLike, n: float, p: int, most: int | None = None) -> RankChoice:
    r"""Components worth keeping for the reconstruction, whatever the covariance of the noise: ScreeNOT.

    The threshold θ of singular values that minimises the error of the reconstruction for large n, p solves

    .. math::
        \theta\Bigl(\frac{\varphi'(\theta)}{\varphi(\theta)}+\frac{\tilde\varphi'(\theta)}{\tilde\varphi(\theta)}\Bigr)=-4,
        \qquad \varphi(y)=\frac1m\sum_i\frac{y}{y^2-z_i^2},\qquad \tilde\varphi=\beta\varphi+\frac{1-\beta}y

    with z the singular values of the noise alone, m = min(n − 1, p) of them. They are taken from those of the data,
    the largest ``most`` put in as the end of a bulk would continue. White noise gives :func:`optimal_threshold`.
    (D. Donoho, M. Gavish and E. Romanov, Ann. Statist. 51, 122, 2023.)

    Parameters
    ----------
    eigenvalues : array-like
        All eigenvalues, descending.
    n, p : float, int
        Rows (the sum of their weights) and columns.
    most : int, optional
        More components than there can be, less than m/2; m/4 where not given.

    Returns
    -------
    RankChoice
        Eigenvalues as ``values``, the one threshold as ``thresholds``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis import screenot
    >>> X = np.random.default_rng(0).normal(size=(300, 40)) * np.sqrt(np.r_[30.0, 20.0, np.ones(38)])
    >>> screenot(np.linalg.eigvalsh(np.cov(X.T))[::-1], 300, 40).n_components
    2
    """
    lam = check_spectrum(eigenvalues, n, p)
    if lam[0] == 0.0:
        return choose_none("screenot", lam)
    m = max_rank(n, p)
    allowed = (m - 1) // 2
    if most is not None and not 1 <= most <= allowed:
        raise ValueError(f"most={most!r} must be between 1 and {allowed}, less than half of the {m} eigenvalues.")
    if allowed < 1:
        few = f"There are {m} eigenvalues, and 3 are needed to tell the noise from what stands out of it."
        return RankChoice("screenot", 0, few, lam, np.full(len(lam), np.nan))
    most = min(max(1, m // 4), allowed) if most is None else int(most)
    unit = math.sqrt(lam[0])
    z = np.sqrt(lam[:m]) / unit
    step = (z[most] - z[2 * most]) / (2 ** (2 / 3) - 1)
    z[:most] = z[most] + (1 - (np.arange(most) / most) ** (2 / 3)) * step
    beta, top = _beta(n, p), float(z[0])
    if top <= math.sqrt(ROUNDING):
        reason = f"Beyond {pluralize(most)} nothing is left, and no noise to cut at."
        return RankChoice("screenot", int(np.count_nonzero(lam)), reason, lam, np.zeros(len(lam)))

    def excess(theta: float) -> float:
        """θ(ln φφ̃)′ + 4: −∞ at the end of the noise, and 2 far away."""
        gap = (theta - z) * (theta + z)
        phi, slope = float(np.mean(theta / gap)), -float(np.mean((theta**2 + z**2) / gap**2))
        other, other_slope = beta * phi + (1 - beta) / theta, beta * slope - (1 - beta) / theta**2
        return theta * (slope / phi + other_slope / other) + 4

    low, high = top * (1 + 1e-9), 16 * top
    theta = float(brentq(excess, low, high, rtol=1e-12)) if excess(low) < 0 else low
    level = (theta * unit) ** 2
    k = int(np.count_nonzero(lam[:m] > level))
    which = "No eigenvalue exceeds" if k == 0 else f"λ{k} is the last above" if k > 1 else "Only λ1 is above"
    reason = f"{which} {level:.4g}, where a component begins to help a reconstruction from noise that ends as this one."
    return RankChoice("screenot", k, reason, lam, np.full(len(lam), level))


SPECTRUM_RULES: dict[str, Callable[[npt.ArrayLike, float, int], RankChoice]] = {
    # as many pieces as there can be eigenvalues
    "broken-stick": lambda lam, n, p: broken_stick(check_spectrum(lam, n, p)[: max_rank(n, p)]),
    "edge-differences": edge_differences,
    "gavish-donoho": gavish_donoho,
    "screenot": screenot,
    "tracy-widom": tracy_widom_rank,
}


def apply_rule(rule: Any, variances: Array, weight: float, p: int) -> tuple[int, str]:
    """Return how many of all components a rule keeps, a fraction or a name, and why where the rule says so."""
    if rule == "mle":
        return minka(variances, int(weight * (1 + 1e-12)), p), ""
    if isinstance(rule, str):
        choice = SPECTRUM_RULES[rule](variances, weight, p)
        return choice.n_components, choice.reason
    # the smallest number whose variance exceeds the fraction, as scikit-learn counts it
    enough = int(np.searchsorted(np.cumsum(variances / variances.sum()), float(rule), side="right")) + 1
    return min(enough, len(variances)), ""


def fit_whole(pca: PCA, source: Source, sample_weight: Any) -> PCAFit:
    """Fit all components with the settings of ``pca``, its solver aside: a part of a spectrum shows no noise.

    Examples
    --------
    >>> import gramian
    >>> from gramian.pca.rank import fit_whole
    >>> fit = fit_whole(gramian.PCA(1), gramian.open([[0.0, 1.0], [2.0, 1.0], [1.0, 4.0]]), None)
    >>> fit.variances.round(6).tolist(), fit.column_variances.round(6).tolist()
    ([3.0, 1.0], [1.0, 3.0])
    """
    refuse_missing(source)
    model = clone(pca).set_params(n_components=None, whiten=False, svd_solver="auto")
    model.fit(source, sample_weight=sample_weight)
    refuse_lost_variances(model)
    return PCAFit.of(model)


def refuse_missing(source: Source) -> None:
    """Raise an error that names the first NaN: a fit would fill it in, and a rule would take that for data.

    Examples
    --------
    >>> import gramian
    >>> from gramian.pca.rank import refuse_missing
    >>> refuse_missing(gramian.open([[1.0, 2.0], [3.0, float("nan")]]))
    Traceback (most recent call last):
    gramian.sources.errors.SourceError: This rule for the number of components needs complete rows; row 2 has NaN ...
    """
    if source.sparse or not source.xp.isdtype(source.dtype, "real floating"):
        return
    for block in source.blocks():
        if not bool(source.xp.any(source.xp.isnan(block.values))):
            continue
        i, j = np.argwhere(np.isnan(to_numpy(block.values, float)))[0]
        name = f" ({source.feature_names[j]!r})" if source.feature_names else ""
        raise SourceError(
            f"This rule for the number of components needs complete rows; row {block.start + i + 1} has NaN in column "
            f"{j + 1}{name} (from 1). Where cells are missing give a number, a fraction, or 'cv', which chooses by "
            "cells held out.",
            missing=True,
        )


Draw = Callable[[np.random.Generator], Array]


def eigenvalues_of_draws(draw: Draw, count: int, seed: int, numbers: int, progress: Progress | None) -> Array:
    """Return the eigenvalues of each draw as a row; a draw holds that many numbers at a time.

    Each draw has a seed of its own, so that the answer does not depend on how many threads share them.
    """
    lock = threading.Lock()
    found: dict[int, Array] = {}

    def work(share: Sequence[int]) -> None:
        for i in share:
            values = draw(np.random.default_rng([seed, i]))
            with lock:
                found[i] = values
                if progress is not None:
                    progress(len(found), count, "draws")

    parallel(work, range(count), serial=8 * numbers * n_threads() > memory_budget())
    return np.array([found[i] for i in range(count)])


def gaussian_null(whole: PCAFit, variances: Array | None = None) -> tuple[Draw, int]:
    """Covariance matrices of independent normal columns with the variances of the data, and the numbers each takes.

    ``variances`` are others, which are not made equal again where the columns are scaled.

    With no more columns than degrees of freedom ν the scatter matrix is drawn itself, as AAᵀ with A lower triangular,
    √χ²(ν − i) on its diagonal and standard normal below (M. Bartlett, 1933): no rows are needed; ν may be a fraction.
    """
    freedom, p = whole.weight - 1, len(whole.mean)
    spread = np.sqrt(whole.column_variances if variances is None else variances)
    scaled = whole.scale is not None and variances is None

    def draw_scatter(rng: np.random.Generator) -> Array:
        A = np.tril(rng.standard_normal((p, p)), -1)
        A[np.diag_indices(p)] = np.sqrt(rng.chisquare(freedom - np.arange(p)))
        A *= (spread / (np.linalg.norm(A, axis=1) if scaled else math.sqrt(freedom)))[:, None]
        return _eigenvalues(A @ A.T)

    rows = max(1, round(freedom))
    width = max(64, 2**20 // rows)

    def draw_rows(rng: np.random.Generator) -> Array:
        """Eigenvalues of the Gram matrix of ``rows`` rows, a few columns at a time: they may be many."""
        G = np.zeros((rows, rows))
        for start in range(0, p, width):
            part = spread[start : start + width]
            A = rng.standard_normal((rows, len(part)))
            A *= part / (np.linalg.norm(A, axis=0) if scaled else math.sqrt(freedom))
            G += A @ A.T
        return _eigenvalues(G)

    return (draw_scatter, 2 * p * p) if p <= freedom else (draw_rows, rows * (rows + width))


def repeat_rows(source: Source, sample_weight: Any, rule: str, null: str, what: str) -> npt.NDArray[np.intp]:
    """Row numbers, each as often as its weight says, of data that a rule moves about in memory.

    Examples
    --------
    >>> import gramian
    >>> from gramian.pca.rank import repeat_rows
    >>> X = gramian.open([[1.0], [2.0], [4.0]])
    >>> repeat_rows(X, [1, 0, 2], "parallel", "permutation", "shuffles columns").tolist()
    [0, 2, 2]
    """
    if not source.resident:
        raise SourceError(
            Argument("n_components", rule),
            f" (null={null!r}) {what} in memory, and {source!r} is read in blocks. Use ",
            Argument("n_components", "parallel-gaussian"),
            " (null='gaussian') or 'tracy-widom', or load the data.",
        )
    w = check_weights(sample_weight, source.shape[0])
    bad = np.flatnonzero(w != np.round(w))
    if len(bad):
        raise ValueError(
            f"n_components={rule!r} (null={null!r}) repeats rows by their weights, and row {bad[0] + 1} has "
            f"weight {w[bad[0]]:g}, not a whole number. Use n_components='parallel-gaussian' (null='gaussian')."
        )
    return np.repeat(np.arange(source.shape[0]), w.astype(np.int64))


def permutation_null(source: Source, whole: PCAFit, sample_weight: Any) -> tuple[Draw, int]:
    """Covariance matrices of the data with each column permuted by itself, and the numbers each takes.

    Means and standard deviations of the columns stay as they are. Sparse columns get their entries moved to other rows.
    """
    index = repeat_rows(source, sample_weight, "parallel", "permutation", "shuffles columns")
    n, p = len(index), len(whole.mean)
    unit, scale = 1.0, whole.scale
    if scale is None:  # squares stay near 1
        unit = 2.0 ** math.frexp(math.sqrt(whole.variances[0]))[1]
        scale = np.full(p, unit)
    if not source.sparse:
        columns = np.ascontiguousarray(((dense_rows(source) - whole.mean) / scale)[index].T)

        def draw_dense(rng: np.random.Generator) -> Array:
            Z = rng.permuted(columns, axis=1)
            return _eigenvalues((Z @ Z.T if p <= n else Z.T @ Z) / (n - 1)) * unit * unit

        return draw_dense, columns.size + min(columns.shape) ** 2
    X, mean = sp.csc_array(source.values[index].astype(np.float64)), whole.mean / scale
    X.data /= np.repeat(scale, np.diff(X.indptr))

    def draw_sparse(rng: np.random.Generator) -> Array:
        """Eigenvalues of (X − 1mᵀ)ᵀ(X − 1mᵀ), or on the side of the rows, without X − 1mᵀ."""
        rows = [rng.choice(n, count, replace=False) for count in np.diff(X.indptr)]
        Z = sp.csc_array((X.data, np.concatenate(rows) if rows else X.indices, X.indptr), shape=X.shape)
        if p <= n:
            S = (Z.T @ Z).toarray() - n * np.outer(mean, mean)
        else:
            c = Z @ mean
            S = (Z @ Z.T).toarray() - c[:, None] - c[None, :] + mean @ mean
        return _eigenvalues(S / (n - 1)) * unit * unit

    return draw_sparse, int(min(X.shape) ** 2 + X.nnz)


def _eigenvalues(S: Array) -> Array:
    """Eigenvalues, descending."""
    return np.asarray(np.maximum(np.linalg.eigvalsh(S)[::-1], 0.0))


MARGIN = 1e-9  # share by which an eigenvalue must exceed its quantile: more than rounding
CONSTANT = 1e-12  # a column with less than this share of the largest variance does not vary
NULLS = {"permutation": "parallel", "gaussian": "parallel-gaussian"}


@quiet_blas()
def parallel_analysis(
    pca: PCA | PCAFit,
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
        Says whether columns are divided by their standard deviations; it need not be fitted and is not changed. The
        :class:`~gramian.pca.problem.PCAFit` of all components, where it is at hand, saves the fit.
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
        Called as ``progress(done, total, message)`` after each draw.

    Returns
    -------
    RankChoice
        Eigenvalues as ``values``, quantiles of the draws as ``thresholds``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis import parallel_analysis
    >>> choice = parallel_analysis(PCA(scale=True), load_iris().data)
    >>> choice.n_components, choice.values.round(3).tolist()
    (1, [2.918, 0.914, 0.147, 0.021])
    >>> bool(1.05 < choice.thresholds[1] < 1.25)
    True
    """
    check_choice("null", null, tuple(NULLS))
    check_share("quantile", quantile)
    if not isinstance(n_draws, Integral) or n_draws * (1 - quantile) < 1 - 1e-9:
        least = int(np.ceil(1 / (1 - quantile) - 1e-9))
        raise ValueError(f"n_draws={n_draws!r} must be a number of at least {least} to show the {quantile:g} quantile.")
    source = open_source(X)
    begin_checkpoint(pca, source, "parallel analysis")
    whole = pca if isinstance(pca, PCAFit) else fit_whole(pca, source, sample_weight)
    size = max_rank(whole.weight, len(whole.mean))
    lam = check_spectrum(whole.variances)[:size]
    if lam[0] == 0.0:
        return choose_none(NULLS[null], lam)
    if np.count_nonzero(whole.column_variances > CONSTANT * whole.column_variances.max()) == 1:
        again = "permuted" if null == "permutation" else "drawn anew"
        return choose_none(NULLS[null], lam, f"Only one column varies, and it cannot be told from itself {again}.")
    if null == "permutation":
        (draw, numbers), kind = permutation_null(source, whole, sample_weight), "permuted"
    else:
        (draw, numbers), kind = gaussian_null(whole), "normal"
    draws = eigenvalues_of_draws(draw, n_draws, check_seed(random_state), numbers, progress)
    limits = np.quantile(draws[:, :size], quantile, axis=0)
    k = count_leading(lam > (1 + MARGIN) * limits)
    what = f"the {quantile:g} quantile of {n_draws} draws of {kind} columns"
    if k == size:
        reason = f"Every eigenvalue exceeds {what}."
    elif lam[k] == 0.0:
        reason = say_used_up(k)
    else:
        reason = f"λ{k + 1} = {lam[k]:.4g} does not exceed {limits[k]:.4g}, {what}."
    return RankChoice(NULLS[null], k, reason, lam, limits)


DRAWS = 20  # of a null whose mean and spread are all that is asked for
LEVEL = 2.547  # (s₀.₉₉ − mean)/deviation of the Tracy–Widom law: one set of noise in a hundred gets a component
LENIENT = 1.723  # ... and one in twenty
LEAST_FREE = 0.05  # of the leverage a cell of a residual has left: below that it is no measure of noise
LARGEST = 400  # order up to which all eigenvalues of a draw are computed, for its largest
DEFLATED = {
    "signs": "sign-flip",
    "normal": "deflated-gaussian",
    "rows": "neighbours",
    "columns": "neighbours",
}
DRAWN = {
    "signs": "with signs drawn anew for every cell",
    "normal": "of normal columns with the same variances",
    "rows": "with the rows of each column shifted, which keeps what ties neighbouring rows",
    "columns": "of normal rows with the same variances and the same mean correlation of columns one, two, … apart",
}


@dataclass(frozen=True, eq=False, repr=False)
class DeflatedAnalysis(RankChoice):
    """The number of components by parallel analysis of what the components before leave.

    Attributes
    ----------
    rule, n_components, reason
        As in :class:`~gramian.pca.rank.RankChoice`.
    values, thresholds : ndarray of shape (m,)
        Eigenvalues, and what the largest of the draws reach that each was compared with.
    at_most : int
        How many noise exceeds once in twenty sets, where ``n_components`` is for once in a hundred.
    excess, deviations : float
        tr S²/(tr S)² of what is left over its mean in the draws, dimensions taken into account, and the difference in
        standard deviations of the draws: 1 and about 0 where nothing ties the columns of the noise together.
    """

    at_most: int
    excess: float
    deviations: float


class CentredRows:
    """Centred (and scaled) rows in memory, in a unit in which squares stay near 1, with their components."""

    def __init__(self, X: Array, components: Array, variances: Array, freedom: float) -> None:
        self.X, self.components, self.variances, self.freedom = X, components, variances, freedom
        self.size = max_rank(freedom + 1, X.shape[1])

    @classmethod
    def of(cls, whole: PCAFit, source: Source, sample_weight: Any, rule: str, null: str, what: str) -> CentredRows:
        """Read the rows of the data that were fitted, each as often as its weight."""
        index = repeat_rows(source, sample_weight, rule, null, what)
        nbytes = 8 * len(index) * source.shape[1]
        if source.sparse and nbytes > memory_budget():
            raise SourceError(
                Argument("n_components", rule),
                f" (null={null!r}) {what} of dense rows, which take {nbytes / 2**30:.3g} GiB here. Use ",
                Argument("n_components", "parallel"),
                " (null='permutation'), which keeps them sparse.",
            )
        unit = 2.0 ** math.frexp(math.sqrt(whole.variances[0]))[1]
        scale = unit if whole.scale is None else whole.scale * unit
        X = ((dense_rows(source) - whole.mean) / scale)[index]
        return cls(X, whole.components, whole.variances / unit**2, len(index) - 1.0)

    @classmethod
    def decompose(cls, X: Array) -> CentredRows:
        """Find the components of centred rows by the Gram matrix of the shorter side."""
        n, p = X.shape
        freedom = n - 1.0
        squares, U = eigh(X.T @ X if p <= n else X @ X.T)
        squares, U = np.maximum(squares[::-1], 0.0), U[:, ::-1]
        rank = min(max_rank(n, p), int(np.count_nonzero(squares > ROUNDING * math.sqrt(len(squares)) * squares[0])))
        V = U[:, :rank].T if p <= n else (U[:, :rank] / np.sqrt(squares[:rank])).T @ X
        return cls(X, V, squares[: max_rank(n, p)] / freedom, freedom)

    def bases(self, k: int) -> tuple[Array, Array]:
        """Orthonormal columns that span what k components take of the rows, and of the columns."""
        V = self.components[:k]
        return (self.X @ V.T) / np.sqrt(self.freedom * np.maximum(self.variances[:k], 1e-300)), V.T

    def residual(self, k: int) -> Array:
        """What k components leave, each cell divided by the root of the share of its variance that they leave."""
        if k == 0:
            return self.X
        V = self.components[:k]
        scores = self.X @ V.T
        h = scores**2 @ (1.0 / (self.freedom * np.maximum(self.variances[:k], 1e-300)))
        g = np.sum(V**2, axis=0)
        R = self.X - scores @ V
        R /= np.sqrt(np.maximum(1.0 - h, LEAST_FREE))[:, None]
        R /= np.sqrt(np.maximum(1.0 - g, LEAST_FREE))[None, :]
        return np.asarray(R)

    def null(self, k: int, kind: str) -> tuple[Draw, int]:
        """Draws of what k components leave: the largest eigenvalue and tr S²/(tr S)² of each."""
        R = self.residual(k)
        n, p = R.shape
        # means are taken out of flipped signs, and with them a share 1/n of the variance
        divisor = self.freedom * (1 - 1 / n) if kind == "signs" else self.freedom
        if kind == "columns":
            spread = np.sqrt(np.mean(R**2, axis=0))
            S = R / np.where(spread > 0, spread, 1.0)
            powers = np.fft.irfft(np.mean(np.abs(np.fft.rfft(S, 2 * p, axis=1)) ** 2, axis=0))[:p]
            apart = np.arange(p)
            # the mean correlation by distance; of the farthest there are too few to average components out
            mean = powers / (p - apart) * np.clip(2 - 4 * apart / p, 0.0, 1.0)
            density = np.maximum(np.fft.rfft(np.concatenate([mean, [0.0], mean[:0:-1]])).real, 0.0)
            density *= 2 * p * mean[0] / (density[0] + 2 * density[1:-1].sum() + density[-1])
            lengths = np.sqrt(np.mean(S**2, axis=1))

        def draw(rng: np.random.Generator) -> Array:
            if kind == "signs":
                Z = R * (2.0 * rng.integers(0, 2, R.shape, dtype=np.int8) - 1.0)
            elif kind == "rows":
                moved: Any = (np.arange(n)[:, None] + np.asarray(rng.integers(0, n, size=p))) % n
                Z = np.take_along_axis(R, moved, axis=0)
            else:
                noise = np.fft.rfft(rng.standard_normal((n, 2 * p)), axis=1)
                Z = np.fft.irfft(noise * np.sqrt(density), 2 * p, axis=1)[:, :p] * spread * lengths[:, None]
            Z -= Z.mean(axis=0)
            return summarize_spectrum(Z.T @ Z if p <= n else Z @ Z.T, divisor)

        return draw, 3 * R.size + min(R.shape) ** 2


def summarize_spectrum(S: Array, divisor: float = 1.0) -> Array:
    """Return the largest eigenvalue of S/divisor and tr S²/(tr S)².

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.rank import summarize_spectrum
    >>> summarize_spectrum(np.diag([6.0, 2.0]), 2.0).tolist()
    [3.0, 0.625]
    """
    if len(S) <= LARGEST:
        largest = float(np.linalg.eigvalsh(S)[-1])
    else:  # to a thousandth of what draws differ by
        largest = float(eigsh(S, k=1, which="LA", tol=1e-6, v0=np.ones(len(S)), return_eigenvectors=False)[0])
    total = float(np.trace(S))
    return np.array([largest / divisor, float(np.sum(S * S)) / total**2 if total > 0 else 0.0])


def count_by_deflation(
    variances: Array,
    freedom: float,
    p: int,
    null: Callable[[int], tuple[Draw, int]],
    seed: int,
    kind: str,
    n_draws: int = DRAWS,
    progress: Progress | None = None,
    start: int = 0,
) -> DeflatedAnalysis:
    """Count eigenvalues above what draws of the residual reach, until no more are found; ``null`` takes a count."""
    m = max_rank(freedom + 1, p)
    lam, thresholds, k, done = variances[:m], np.full(m, np.nan), start, 0
    while True:
        draw, numbers = null(k)

        def report(some: int, _: int, message: str, before: int = done) -> None:
            if progress is not None:
                progress(before + some, before + n_draws, message)

        drawn = eigenvalues_of_draws(draw, n_draws, seed, numbers, report)
        done += n_draws
        largest, spread = drawn.mean(axis=0), drawn.std(axis=0, ddof=1)
        level = (1 + MARGIN) * (largest[0] + LEVEL * spread[0])
        found = k + count_leading(lam[k:] > level)
        thresholds[k:] = level
        if found == k or found >= m - 1:
            break
        # what is left is smaller now, and with it what draws of it reach: all found here would be found one by one
        k = found
    rest = lam[k:]
    total = float(rest.sum())
    excess, deviations = 1.0, 0.0
    if total > 0 and k < min(p, freedom):
        sides = (1 / (p - k) + 1 / (freedom - k)) / (1 / p + 1 / freedom)
        observed = float(np.sum(rest**2)) / total**2 / sides
        excess = float(observed / largest[1])
        deviations = float((observed - largest[1]) / max(spread[1], 1e-12 * largest[1]))
    at_most = max(found, k + count_leading(rest > (1 + MARGIN) * (largest[0] + LENIENT * spread[0])))
    what = f"draws {DRAWN[kind]}"
    if found >= m:
        reason = f"Every eigenvalue exceeds what {what} reach."
    elif lam[found] == 0.0:
        reason = say_used_up(found)
    else:
        before = f"With {pluralize(found)} taken out, " if found else ""
        reason = f"{before}λ{found + 1} = {lam[found]:.4g} does not exceed {level:.4g}, which 1 % of {what} exceed."
    return DeflatedAnalysis(DEFLATED[kind], found, reason, lam, thresholds, at_most, excess, deviations)


@quiet_blas()
def deflated_analysis(
    pca: PCA | PCAFit,
    X: Any,
    *,
    null: str = "signs",
    n_draws: int = DRAWS,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> DeflatedAnalysis:
    r"""Components whose eigenvalue exceeds those of what is left, its signs drawn anew: sign-flip parallel analysis.

    With R the residual of the k components before, each cell of a draw is :math:`\pm r_{ij}` with equal chance, and

    .. math:: \lambda_{k+1} > \bar\lambda_1 + 2.547\,s(\lambda_1)

    with the mean and the standard deviation of the largest eigenvalues of the draws: by the shape of the Tracy–Widom
    law noise exceeds that once in a hundred sets. Flipped signs keep the variance of every column *and* every row, so
    that unlike columns, heavy tails and unlike rows are allowed for; taking out strong components first keeps them from
    covering weak ones. (D. Hong, Y. Sheng and E. Dobriban, arXiv:2012.02985, for the signs; E. Dobriban and A. Owen,
    J. R. Stat. Soc. B 81, 163, 2019, for the deflation.)

    Parameters
    ----------
    pca : PCA
        Says whether columns are divided by their standard deviations; it need not be fitted and is not changed. The
        :class:`~gramian.pca.problem.PCAFit` of all components, where it is at hand, saves the fit.
    X : array-like, sparse matrix, frame, tensor, path or Source
        The data, in memory but for null="normal".
    null : {"signs", "normal", "rows", "columns"}, default="signs"
        What a draw is: signs drawn anew; normal columns of the same variances, for data that are not in memory; for
        noise that is correlated between neighbours, every column turned by a number of rows of its own ("rows", for
        time order), or normal rows with the variances of the columns and their mean correlation by distance ("columns",
        for curves), which keeps these correlations and breaks all others.
    n_draws : int, default=20
        Draws, at least 8.
    sample_weight : array-like of shape (n,), optional
        Frequencies: whole numbers, but for null="normal".
    random_state : int, RandomState, Generator or None, default=None
        Seed of the draws; None is a fixed seed.
    progress : callable, optional
        Called as ``progress(done, total, message)`` after each draw.

    Returns
    -------
    DeflatedAnalysis
        Eigenvalues as ``values``, and what each was compared with.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import deflated_analysis
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(size=(200, 20)) * np.linspace(0.3, 3, 20)          # columns of very unlike noise
    >>> deflated_analysis(PCA(), noise).n_components
    0
    >>> deflated_analysis(PCA(), noise + 5 * rng.normal(size=(200, 1)) @ rng.normal(size=(1, 20))).n_components
    1
    """
    check_choice("null", null, tuple(DEFLATED))
    if isinstance(n_draws, bool) or not isinstance(n_draws, Integral) or n_draws < 8:
        raise ValueError(f"n_draws={n_draws!r} must be a number of at least 8, to show how far the draws spread.")
    source = open_source(X)
    whole = pca if isinstance(pca, PCAFit) else fit_whole(pca, source, sample_weight)
    size = max_rank(whole.weight, len(whole.mean))
    lam = check_spectrum(whole.variances)[:size]
    varying = int(np.count_nonzero(whole.column_variances > CONSTANT * whole.column_variances.max(initial=0.0)))
    if lam[0] == 0.0 or varying == 1 or size < 2:
        reason = NO_VARIANCE if lam[0] == 0.0 else "One column or two rows cannot be told from the same drawn anew."
        return DeflatedAnalysis(DEFLATED[null], 0, reason, lam, np.full(len(lam), np.nan), 0, 1.0, 0.0)
    seed, p = check_seed(random_state), len(whole.mean)
    if null == "normal":
        freedom = whole.weight - 1

        def normal(k: int) -> tuple[Draw, int]:
            free = np.maximum(1 - np.sum(whole.components[:k] ** 2, axis=0), LEAST_FREE)
            left = lam[k:] @ whole.components[k:size] ** 2 / free
            draw, numbers = gaussian_null(whole, left * freedom / max(freedom - k, 1.0))

            def summary(rng: np.random.Generator) -> Array:
                values = draw(rng)
                return np.array([values[0], float(np.sum(values**2)) / float(values.sum()) ** 2])

            return summary, numbers

        return count_by_deflation(lam, freedom, p, normal, seed, null, int(n_draws), progress)
    what = "flips signs" if null == "signs" else "draws rows and columns anew"
    rows = CentredRows.of(whole, source, sample_weight, DEFLATED[null], null, what)
    unit = lam[0] / rows.variances[0]
    of = partial(rows.null, kind=null)
    found = count_by_deflation(rows.variances, rows.freedom, p, of, seed, null, int(n_draws), progress)
    kept = found.n_components
    if kept < len(lam) and lam[kept] > 0:  # the same sentence in the unit of the data
        before = f"With {pluralize(kept)} taken out, " if kept else ""
        level = f"{found.thresholds[kept] * unit:.4g}, which 1 % of draws {DRAWN[null]} exceed."
        found = replace(found, reason=f"{before}λ{kept + 1} = {lam[kept]:.4g} does not exceed {level}")
    return replace(found, values=lam, thresholds=found.thresholds * unit)


REPEATS = 4  # ways of halving rows and columns
MANY_CELLS = 1_000_000  # from which on one way is enough
HALVED = 30  # components tried: half of the columns show fewer than all


@quiet_blas()
def bi_cross_validate(
    pca: PCA | PCAFit,
    X: Any,
    *,
    max_components: int | None = None,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> RankChoice:
    r"""Components that predict a block of cells best from the other rows *and* the other columns.

    Rows and columns are halved at random. With the four blocks A, B, C, D each held out in turn, and D opposite to A,

    .. math:: \hat A_k = B\,D_k^+\,C,\qquad \mathrm{BCV}(k)=\sum\|A-\hat A_k\|_F^2

    with :math:`D_k` the best approximation of D of rank k. No cell takes part in its own prediction. Noise in D costs
    what it costs in a reconstruction, so that components near the edge are left out. (A. Owen and P. Perry, Ann. Appl.
    Stat. 3, 564, 2009.)

    Parameters
    ----------
    pca : PCA
        As in :func:`deflated_analysis`.
    X : array-like, sparse matrix, frame, tensor, path or Source
        The data, in memory.
    max_components : int, optional
        Most components tried; up to 30 where not given.
    sample_weight : array-like of shape (n,), optional
        Frequencies: whole numbers.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the halves; None is a fixed seed.
    progress : callable, optional
        Called as ``progress(done, total, message)`` after each way of halving.

    Returns
    -------
    RankChoice
        BCV(k) over BCV(0) for k = 1, 2, … as ``values``, and that of k − 1 as ``thresholds``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import bi_cross_validate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 20)) * 2 + rng.normal(size=(200, 20))
    >>> bi_cross_validate(PCA(), X).n_components
    2
    """
    source = open_source(X)
    whole = pca if isinstance(pca, PCAFit) else fit_whole(pca, source, sample_weight)
    lam = check_spectrum(whole.variances)
    if lam[0] == 0.0:
        return choose_none("bi-cv", lam)
    rows = CentredRows.of(whole, source, sample_weight, "bi-cv", "halves", "halves rows and columns").X
    n, p = rows.shape
    limit = min(n // 2 - 2, p // 2 - 1)
    if limit < 1:
        raise ValueError(f"bi-cv halves rows and columns, and {n} rows and {p} columns leave too few: use 6 and 4.")
    tried = min(limit, HALVED)
    if max_components is not None:
        if isinstance(max_components, bool) or not isinstance(max_components, Integral) or max_components < 1:
            raise ValueError(f"max_components={max_components!r} must be a number of components, at least 1.")
        tried = min(int(max_components), limit)
    rng, errors = np.random.default_rng(check_seed(random_state)), np.zeros(tried + 1)
    repeats = REPEATS if n * p <= MANY_CELLS else 1
    for repeat in range(repeats):
        top, left = np.zeros(n, bool), np.zeros(p, bool)
        top[rng.permutation(n)[: n // 2]], left[rng.permutation(p)[: p // 2]] = True, True
        for out in (top, ~top):
            for held in (left, ~left):
                mean = rows[~out].mean(axis=0)
                A, B = rows[np.ix_(out, held)] - mean[held], rows[np.ix_(out, ~held)] - mean[~held]
                C, D = rows[np.ix_(~out, held)] - mean[held], rows[np.ix_(~out, ~held)] - mean[~held]
                U, s, Vt = svd(D)
                some = min(tried, int(np.count_nonzero(s > ROUNDING * s[0] * math.sqrt(len(s)))))
                left_side, right_side = B @ Vt[:some].T / s[:some], U[:, :some].T @ C
                errors[0] += float(np.sum(A * A))
                for j in range(tried):
                    if j < some:
                        A -= np.outer(left_side[:, j], right_side[j])
                    errors[j + 1] += float(np.sum(A * A))
        if progress is not None:
            progress(repeat + 1, repeats, "halves")
    share = errors / errors[0]
    k = int(np.argmin(share))
    if k == 0:
        reason = "No number of components predicts a block from the other rows and columns better than the mean."
    else:
        reason = f"{pluralize(k).capitalize()} predict blocks best, with {share[k]:.3g} of the error of the mean."
    return RankChoice("bi-cv", k, reason, share[1:], share[:-1])


MOST = 100  # components tried where the user does not say
ALONE = 1e-8  # 1 − h below this: a variable that is a component by itself
PRESS_ROUNDING = 1e-12  # PRESS within this share of PRESS(0) of the smallest counts as smallest


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(RankChoice):
    """The number of components that predicts held-out cells best.

    Attributes
    ----------
    rule, n_components, reason
        As in :class:`~gramian.pca.rank.RankChoice`.
    values, thresholds : ndarray of shape (K,)
        PRESS(k) for k = 1, …, K and PRESS(k − 1) before it.
    press : ndarray of shape (K + 1,)
        Σ w (x − x̂)² over all cells, for 0, 1, …, K components; NaN where cells cannot be predicted.
    at_the_end : bool
        Whether the least is at the largest number tried, so that it may not be the least of all; ``reason`` says so.
    """

    press: Array
    at_the_end: bool = False

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``."""
        number = np.arange(len(self.press))
        return {"n_components": number, "press": self.press, "chosen": number == self.n_components}


@quiet_blas()
def cross_validate_rank(
    pca: PCA,
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
        Called as ``progress(done, total, message)`` after each fold.

    Returns
    -------
    CrossValidation
        The smallest k with the least PRESS, and PRESS for every k tried.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis import cross_validate_rank
    >>> cross_validate_rank(PCA(), load_iris().data)
    cv: 2 components
      PRESS is least with 2 components, 0.1... of that of the mean, over 7 folds.
      n_components  press  chosen
      0              68...
      1              8...
      2              7...     yes
      3              9...
    """
    source = open_source(X)
    begin_checkpoint(pca, source, "cross-validation")
    refuse_missing(source)
    w = check_weights(sample_weight, source.shape[0])
    rows = np.flatnonzero(w)
    if not isinstance(n_folds, Integral) or not 2 <= n_folds <= len(rows):
        raise ValueError(f"n_folds={n_folds!r} must be between 2 and the number of rows with a weight, {len(rows)}.")
    folds = np.full(len(w), -1)  # rows without a weight are in none
    folds[rows] = np.random.default_rng(check_seed(random_state)).permutation(np.arange(len(rows)) % n_folds)
    p = source.shape[1]
    training = len(rows) - math.ceil(len(rows) / n_folds)  # rows of the smallest training set
    limit = max(0, min(p - 1, training - 1))
    tried = min(limit, MOST)
    if max_components is not None:
        tried = max_components
        if isinstance(tried, bool) or not isinstance(tried, Integral) or not 1 <= tried <= limit:
            raise ValueError(
                f"max_components={tried!r} must be between 1 and {limit}, less than the columns ({p}) and than the "
                f"rows of the smallest training set ({training}, of {n_folds} folds)."
            )
    models = []
    with warnings.catch_warnings():
        # directions beyond the rank are left out below
        warnings.filterwarnings("ignore", "n_components=.* exceeds the rank", NumericalWarning)

        def fit_without(f: int) -> PCAFit:
            model = clone(pca).set_params(n_components=max(int(tried), 1), whiten=False)
            return PCAFit.of(model.fit(source, sample_weight=np.where(folds == f, 0.0, w)))

        for f, model in enumerate(source.map_fits(fit_without, range(n_folds))):
            models.append(model)
            if progress is not None:
                progress(f + 1, n_folds, "folds")
    rank = min(model.rank for model in models)
    # a model knows its rank up to the components it has
    tried, limit = (int(tried), limit) if rank >= tried else (rank, rank)
    press = np.zeros(tried + 1)
    unit = 2.0 ** math.frexp(max(model.singular_values.max(initial=0.0) for model in models))[1]  # squares stay near 1
    for block in source.blocks(max(1, memory_budget() // 16 // (8 * p))):  # few enough rows to be made dense
        here, weights = folds[block.start : block.stop], w[block.start : block.stop]
        for f in np.unique(here[here >= 0]):
            held, model = here == f, models[f]
            D = to_numpy(block.values[np.flatnonzero(held)], float) - model.mean
            D = (D if model.scale is None else D / model.scale) / unit
            press += press_by_components(D, weights[held], model.components[:tried])

    known = np.flatnonzero(np.isfinite(press))
    k = int(np.argmax(press[known] <= press[known].min() + PRESS_ROUNDING * press[0]))
    if press[0] == 0.0:
        reason = NO_VARIANCE
    elif k == 0:
        reason = f"No number of components predicts held-out cells better than the mean, over {n_folds} folds."
    else:
        reason = (
            f"PRESS is least with {pluralize(k)}, {press[k] / press[0]:.3g} of that of the mean, over {n_folds} folds."
        )
    # a PRESS of 0 cannot fall any more
    last = 0 < k == len(press) - 1 and press[k] > PRESS_ROUNDING * press[0]
    if len(known) < len(press):  # name the first k left out and the variable that is the cause
        first = int(np.argmin(np.isfinite(press)))
        free = np.min([1 - np.sum(model.components[:first] ** 2, axis=0) for model in models], axis=0)
        j = int(np.argmin(free))
        name = source.feature_names[j] if source.feature_names else f"x{j}"
        remedy = "" if models[0].scale is not None else " PCA(scale=True) helps where its unit is the cause."
        reason += (
            f" From {first} on they were left out: column {name!r} is all but a component by itself "
            f"(1 − h = {free[j]:.1g}), which the other columns cannot predict.{remedy}"
        )
    elif last and k < limit:
        reason += (
            " It is the largest number tried, and PRESS may still fall: try more with rank_advice(X, max_components=…) "
            "or cross_validate_rank(PCA(), X, max_components=…), and give PCA the number found."
        )
    elif last:
        few = "columns" if k == source.shape[1] - 1 else "independent rows in the smallest training set"
        reason += (
            f" It is the largest number tried, and no more can be with so few {few}: where the components end, cv "
            "cannot say here. Ask another rule, such as 'parallel-gaussian', or give the number."
        )
    with np.errstate(over="ignore", under="ignore"):
        press = press * unit * unit
    return CrossValidation("cv", k, reason, press[1:], press[:-1], press, last)


def press_by_components(D: Array, weights: Array, V: Array) -> Array:
    """Return Σ w e²/(1 − h)² of centred rows D for 0, 1, …, K of the orthonormal rows of V; NaN once some 1 − h is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.rank import press_by_components
    >>> press_by_components(np.array([[1.0, 3.0]]), np.ones(1), np.array([[0.6, 0.8]])).round(4)
    array([10.    ,  4.3403])
    """
    E, free = D.copy(), np.ones(D.shape[1])
    press = [float(weights @ np.sum(E**2, axis=1))]
    for v in V:
        E -= np.outer(E @ v, v)
        free = free - v**2
        press.append(np.nan if free.min() < ALONE else float(weights @ E**2 @ free**-2))
    return np.array(press)


def _cross_validate(pca: PCA, X: Any, sample_weight: Any) -> RankChoice:
    found = cross_validate_rank(pca, X, sample_weight=sample_weight, random_state=pca.random_state)
    if found.at_the_end:
        warnings.warn(f"n_components='cv': {found.reason}", NumericalWarning, stacklevel=caller_level())
    return found


# Those that need the rows; the others, which need the eigenvalues alone, are SPECTRUM_RULES.
DATA_RULES: dict[str, Callable[[Any, Any, Any], RankChoice]] = {
    "bi-cv": lambda pca, X, w: bi_cross_validate(pca, X, sample_weight=w, random_state=pca.random_state),
    "cv": _cross_validate,
    "parallel": lambda pca, X, w: parallel_analysis(pca, X, sample_weight=w, random_state=pca.random_state),
    "parallel-gaussian": lambda pca, X, w: parallel_analysis(
        pca, X, null="gaussian", sample_weight=w, random_state=pca.random_state
    ),
    "sign-flip": lambda pca, X, w: deflated_analysis(pca, X, sample_weight=w, random_state=pca.random_state),
}
