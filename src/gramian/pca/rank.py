"""Rules for the number of components by name, as ``PCA(n_components=...)`` takes them."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import gammaln
from sklearn.base import clone

from gramian.compute.devices import to_numpy
from gramian.compute.threads import n_threads, parallel
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


SPECTRUM_RULES: dict[str, Callable[[npt.ArrayLike, float, int], RankChoice]] = {
    # as many pieces as there can be eigenvalues
    "broken-stick": lambda lam, n, p: broken_stick(check_spectrum(lam, n, p)[: max_rank(n, p)]),
    "gavish-donoho": gavish_donoho,
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
    gramian.sources.errors.SourceError: Rules for the number of components need whole rows; row 2 has NaN ...
    """
    if source.sparse or not source.xp.isdtype(source.dtype, "real floating"):
        return
    for block in source.blocks():
        if not bool(source.xp.any(source.xp.isnan(block.values))):
            continue
        i, j = np.argwhere(np.isnan(to_numpy(block.values, float)))[0]
        name = f" ({source.feature_names[j]!r})" if source.feature_names else ""
        raise SourceError(
            f"Rules for the number of components need whole rows; row {block.start + i + 1} has NaN in column "
            f"{j + 1}{name} (from 1). Leave such rows out, or fill them in with PCA(k).fit(X).impute(X) for a k of "
            "your choice.",
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


def gaussian_null(whole: PCAFit) -> tuple[Draw, int]:
    """Covariance matrices of independent normal columns with the variances of the data, and the numbers each takes.

    With no more columns than degrees of freedom ν the scatter matrix is drawn itself, as AAᵀ with A lower triangular,
    √χ²(ν − i) on its diagonal and standard normal below (M. Bartlett, 1933): no rows are needed; ν may be a fraction.
    """
    freedom, p = whole.weight - 1, len(whole.mean)
    spread, scaled = np.sqrt(whole.column_variances), whole.scale is not None

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


def permutation_null(source: Source, whole: PCAFit, sample_weight: Any) -> tuple[Draw, int]:
    """Covariance matrices of the data with each column permuted by itself, and the numbers each takes.

    Means and standard deviations of the columns stay as they are. Sparse columns get their entries moved to other rows.
    """
    if not source.resident:
        raise SourceError(
            Argument("n_components", "parallel"),
            f" (null='permutation') shuffles columns in memory, and {source!r} is read in blocks. Use ",
            Argument("n_components", "parallel-gaussian"),
            " (null='gaussian') or 'tracy-widom', or load the data.",
        )
    w = check_weights(sample_weight, source.shape[0])
    bad = np.flatnonzero(w != np.round(w))
    if len(bad):
        raise ValueError(
            f"n_components='parallel' (null='permutation') repeats rows by their weights, and row {bad[0] + 1} has "
            f"weight {w[bad[0]]:g}, not a whole number. Use n_components='parallel-gaussian' (null='gaussian')."
        )
    index = np.repeat(np.arange(source.shape[0]), w.astype(np.int64))
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
        for f in range(n_folds):
            weights = np.where(folds == f, 0.0, w)
            model = clone(pca).set_params(n_components=max(int(tried), 1), whiten=False)
            models.append(PCAFit.of(model.fit(source, sample_weight=weights)))
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
    "cv": _cross_validate,
    "parallel": lambda pca, X, w: parallel_analysis(pca, X, sample_weight=w, random_state=pca.random_state),
    "parallel-gaussian": lambda pca, X, w: parallel_analysis(
        pca, X, null="gaussian", sample_weight=w, random_state=pca.random_state
    ),
}
