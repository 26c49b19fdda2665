"""Is an eigenvalue larger than noise would make it? Tests by the Tracy–Widom law."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Chebyshev
from scipy.optimize import brentq
from scipy.special import airy

from gramian.inputs.checks import fetch_numbers
from gramian.results.tables import Tabular

Array = npt.NDArray[np.float64]

NODES = 48  # from 40 on the determinant has settled to rounding for every s between BOTTOM and TOP
DECAY = 63.0  # (2/3)·63 = 42: the interval ends where Ai has fallen by e⁻⁴², below rounding
BOTTOM, TOP = -10.0, 105.0  # F₁(−10) < 1e-20; Ai(105), and with it 1 − F₁(105), is below the smallest float64
LOWEST = 1e-9  # F₁ is right to about 1e-15 that far out, so smaller probabilities on the left say little of s
CHUNK = 128  # determinants at a time: their matrices fit a core's cache many times over, and never fill memory


def tracy_widom_cdf(s: npt.ArrayLike) -> Any:
    r"""Distribution function :math:`F_1(s)`, right to about 1e-13 (absolute) everywhere.

    Parameters
    ----------
    s : array-like
        Where to evaluate it.

    Returns
    -------
    float or ndarray
        Probabilities, in the shape of s. Below s = −10, where they are under 1e-20, they are 0.

    See Also
    --------
    tracy_widom_sf : 1 − F₁, with its digits kept in the right tail.

    Examples
    --------
    >>> from gramian.analysis import tracy_widom_cdf
    >>> round(float(tracy_widom_cdf(0.9793)), 4)
    0.95
    """
    return np.exp(_log_cdf(s))


def tracy_widom_sf(s: npt.ArrayLike) -> Any:
    r"""Survival function :math:`1 - F_1(s)`, the p-value of a statistic s.

    It is −expm1(Σ ln(1 − μ)) with μ the eigenvalues of the kernel, so nothing cancels: the relative error stays below
    1e-12 up to s = 100, where the value is 1e-292. Beyond s = 105 it is less than float64 can hold, and 0.

    Parameters
    ----------
    s : array-like
        Where to evaluate it.

    Returns
    -------
    float or ndarray
        Probabilities, in the shape of s.

    Examples
    --------
    >>> from gramian.analysis import tracy_widom_sf
    >>> f"{tracy_widom_sf(3.2724):.4f} {tracy_widom_sf(30):.3e}"
    '0.0010 2.916e-50'
    """
    return 0.0 - np.expm1(_log_cdf(s))


def tracy_widom_quantile(q: npt.ArrayLike, *, upper: bool = False) -> Any:
    r"""The s with :math:`F_1(s) = q`, or with :math:`1 - F_1(s) = q` if ``upper``: critical values.

    Parameters
    ----------
    q : array-like
        Probabilities, at least 1e-9 in the left tail (F₁ is right to 1e-15 there, no more) and 1e-290 in the right one.
    upper : bool, default=False
        Whether q is the probability of a larger value: small ones keep their digits.

    Returns
    -------
    float or ndarray
        Quantiles, in the shape of q.

    Examples
    --------
    >>> from gramian.analysis import tracy_widom_quantile
    >>> [round(float(tracy_widom_quantile(q, upper=True)), 4) for q in (0.05, 0.01, 0.001)]
    [0.9793, 2.0234, 3.2722]
    """
    given = np.asarray(q, dtype=np.float64)
    found = [_quantile(float(value), upper) for value in given.ravel()]
    return np.reshape(found, given.shape)[()]


def _log_cdf(s: npt.ArrayLike) -> Any:
    """ln F₁ at each s, in the shape of s; NaN where s is NaN."""
    given = np.asarray(s, dtype=np.float64)
    flat = given.ravel()
    log_f = np.where(np.isnan(flat), np.nan, np.where(flat > TOP, 0.0, -np.inf))
    inside = np.flatnonzero((flat >= BOTTOM) & (flat <= TOP))
    for start in range(0, len(inside), CHUNK):
        part = inside[start : start + CHUNK]
        log_f[part] = _log_determinant(flat[part])
    return log_f.reshape(given.shape)[()]


def _log_determinant(s: Array) -> Array:
    """ln det(I − K) = Σ ln(1 − μ) for each s: with the eigenvalues small, their sum keeps its relative accuracy."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    length = 2 * ((np.maximum(s, 0.0) ** 1.5 + DECAY) ** (2 / 3) - s)
    nodes = length[:, None] * (x + 1) / 2
    root = np.sqrt(length[:, None] * w / 2)
    i, j = np.tril_indices(NODES)  # the kernel is symmetric: eigvalsh reads its lower half alone
    K = np.zeros((len(s), NODES, NODES))
    K[:, i, j] = airy((nodes[:, i] + nodes[:, j]) / 2 + s[:, None])[0] / 2 * root[:, i] * root[:, j]
    mu = np.linalg.eigvalsh(K)
    # an eigenvalue that rounding puts at 1 or above belongs to a determinant below 1e-15
    return np.asarray(np.sum(np.log1p(-np.minimum(mu, 1 - np.finfo(float).eps)), axis=1))


def _quantile(q: float, upper: bool) -> float:
    """Solve ln P(s) = ln q for whichever tail is the smaller, where the logarithm is smooth."""
    least = 1e-290 if upper else LOWEST
    most = 1 - LOWEST if upper else 1 - 2.0**-53
    if not least <= q <= most:
        raise ValueError(
            f"q={q!r} must lie between {least:g} and {most:.17g}: beyond that F₁ has no digits. "
            "Give small probabilities of the right tail with upper=True."
        )
    right = q <= 0.5 if upper else q > 0.5
    share = q if upper == right else 1 - q
    tail = tracy_widom_sf if right else tracy_widom_cdf

    def gap(s: float) -> float:
        return float(np.log(max(float(tail(s)), 5e-324)) - np.log(share))

    return float(brentq(gap, BOTTOM, TOP, xtol=1e-14, rtol=1e-14))


MODE = -1.4  # just left of where the density is largest, so that F₁″ > 0
DEGREE = 32  # of the polynomial that stands for ln(1 − F₁) below: 12 digits, and 8 of its second derivative


def largest_noise_eigenvalue(n: float, p: int) -> tuple[float, float]:
    r"""Centre μ and scale σ of the largest eigenvalue of a covariance matrix of white noise of variance 1.

    .. math::
        \mu = \tfrac1n\bigl(\sqrt{n-\tfrac12}+\sqrt{p-\tfrac12}\bigr)^2,\qquad
        \sigma = \tfrac1n\bigl(\sqrt{n-\tfrac12}+\sqrt{p-\tfrac12}\bigr)
            \Bigl(\tfrac1{\sqrt{n-1/2}}+\tfrac1{\sqrt{p-1/2}}\Bigr)^{1/3}

    Johnstone's constants (Ann. Statist. 29, 295, 2001) with the halves of Ma (Bernoulli 18, 322, 2012), which make the
    error of the law of the order of min(n, p) to the power −2/3.

    Parameters
    ----------
    n : float
        Degrees of freedom: rows less 1 where the mean was taken out.
    p : int
        Columns.

    Returns
    -------
    mu, sigma : float
        Centre and scale: (λ₁ − μ)/σ follows the Tracy–Widom law.

    Examples
    --------
    >>> from gramian.pca.tracy_widom import largest_noise_eigenvalue
    >>> [round(x, 4) for x in largest_noise_eigenvalue(400, 100)]
    [2.2444, 0.0398]
    """
    a, b = (n - 0.5) ** 0.5, (p - 0.5) ** 0.5
    return (a + b) ** 2 / n, (a + b) / n * (1 / a + 1 / b) ** (1 / 3)


def trace_ratio_critical(alpha: float, n: float, p: int) -> float:
    r"""Critical value of the largest of p eigenvalues *relative to their mean*, in n degrees of freedom.

    The noise level is unknown and estimated by the mean of the same eigenvalues, with which the largest one varies.
    With the centre μ and scale σ of :func:`largest_noise_eigenvalue`,

    .. math::
        P\{(\lambda_1/\bar\lambda - \mu)/\sigma > s\} \approx 1 - F_1(s) + \frac1{np}\frac{\mu^2}{\sigma^2}F_1''(s)

    (B. Nadler, J. Multivariate Anal. 102, 363, 2011); the s returned makes this α. Many columns need no correction;
    with five the plain quantile would raise a third of the false alarms it may, and miss signals for it. The correction
    is of first order: below α = 0.01 and ten columns two to four times as many false alarms pass as asked.

    Parameters
    ----------
    alpha : float
        Probability of a false alarm, between 1e-12 and 0.4.
    n : float
        Degrees of freedom: rows less 1 where the mean was taken out.
    p : int
        Columns.

    Returns
    -------
    float
        What (λ₁/λ̄ − μ)/σ must exceed.

    Examples
    --------
    >>> from gramian.pca.tracy_widom import trace_ratio_critical
    >>> [round(trace_ratio_critical(0.05, 1000, p), 2) for p in (5, 50, 5000)]
    [0.53, 0.86, 0.96]
    """
    if not 1e-12 <= alpha <= 0.4:
        raise ValueError(f"alpha={alpha!r} must be a probability of false alarms between 1e-12 and 0.4, such as 0.05.")
    mu, sigma = largest_noise_eigenvalue(n, p)
    coefficient = (mu / sigma) ** 2 / (n * p)

    log_tail, slope, bend = _log_tail(float(alpha))

    def excess(s: float) -> float:
        # with L = ln(1 − F₁): F₁″ = −(L′² + L″) exp L
        return float(np.exp(log_tail(s)) * (1 - coefficient * (slope(s) ** 2 + bend(s)))) / alpha - 1.0

    return float(brentq(excess, MODE, log_tail.domain[1], xtol=1e-10))


@cache
def _log_tail(alpha: float) -> tuple[Chebyshev, Chebyshev, Chebyshev]:
    """ln(1 − F₁) between its mode and its critical value, with two derivatives: the law is costly, and asked often."""
    end = float(tracy_widom_quantile(alpha, upper=True)) + 1e-6
    L = Chebyshev.interpolate(lambda s: np.log(tracy_widom_sf(s)), DEGREE, domain=[MODE, end])
    return L, L.deriv(1), L.deriv(2)


def count_leading(above: npt.NDArray[np.bool_]) -> int:
    """Return how many come before the first False.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.tracy_widom import count_leading
    >>> count_leading(np.array([True, True, False, True]))
    2
    """
    return int(len(above) if above.all() else np.argmin(above))


@dataclass(frozen=True, eq=False, repr=False)
class TracyWidomTable(Tabular):
    """Patterson's table: each eigenvalue tested as the largest of those from it on.

    Attributes
    ----------
    eigenvalues : ndarray of shape (m − 1,)
        The eigenvalues tested: all but the last, which nothing is left to compare with.
    statistics, p_values : ndarray of shape (m − 1,)
        Centred and scaled as in :func:`tracy_widom_statistics`, and the probability of a larger value in pure noise.
    effective_n : ndarray of shape (m − 1,)
        Rows of independent columns that would make remaining eigenvalues as unequal as these.
    """

    eigenvalues: Array
    statistics: Array
    p_values: Array
    effective_n: Array

    def significant(self, alpha: float = 0.05) -> int:
        """Return how many leading eigenvalues have p-values below alpha, up to the first that has not."""
        return count_leading(self.p_values < alpha)

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``."""
        tests = {"statistic": self.statistics, "p_value": self.p_values, "effective_n": self.effective_n}
        return {"component": list(range(1, len(self.eigenvalues) + 1)), "eigenvalue": self.eigenvalues} | tests

    def _title(self) -> str:
        return f"Tracy–Widom statistics: {self.significant()} significant at 0.05"


def tracy_widom_statistics(eigenvalues: npt.ArrayLike) -> TracyWidomTable:
    r"""Test each eigenvalue as the largest of those that remain, with Patterson's effective sample size.

    Of the m eigenvalues from the tested one λ on, with :math:`S_1=\sum\lambda_i`, :math:`S_2=\sum\lambda_i^2`,

    .. math::
        n' = \frac{(m+2)S_1^2}{mS_2-S_1^2},\quad L = \frac{m\lambda}{S_1},\quad
        \mu = \frac{(\sqrt{n'-1}+\sqrt m)^2}{n'},\quad
        \sigma = \frac{\sqrt{n'-1}+\sqrt m}{n'}\Bigl(\frac1{\sqrt{n'-1}}+\frac1{\sqrt m}\Bigr)^{1/3}

    and (L − μ)/σ is compared with the Tracy–Widom law. n′ takes the place of the number of independent columns, so
    linked markers or correlated noise are allowed for. (N. Patterson, A. Price, D. Reich, PLoS Genet. 2, e190, 2006.)

    Parameters
    ----------
    eigenvalues : array-like of shape (m,)
        Eigenvalues, descending, without those that are zero by construction; their unit does not matter.

    Returns
    -------
    TracyWidomTable
        Statistics, p-values and effective sample sizes. Where the eigenvalues left are all equal n′ is infinite, the
        statistic NaN and the p-value 1: nothing stands out.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis import tracy_widom_statistics
    >>> noise = np.random.default_rng(0).standard_normal((60, 2000))
    >>> values = np.linalg.eigvalsh(noise @ noise.T)[::-1]
    >>> values[0] *= 2
    >>> tracy_widom_statistics(values).significant()
    1
    """
    given = _check_positive(eigenvalues, 2)
    lam = given / given[0]  # squares of very large or small ones would leave float64
    m = np.arange(len(lam), 1, -1, dtype=np.float64)
    s1, s2 = (np.cumsum(x[::-1])[::-1][:-1] for x in (lam, lam**2))
    return _test_largest(given[:-1], lam[:-1], m, s1, s2)


def tracy_widom_from_sums(eigenvalues: npt.ArrayLike, count: int, total: float, deviation: float) -> TracyWidomTable:
    r"""Do the same for the leading eigenvalues alone, from the sums of all.

    Parameters
    ----------
    eigenvalues : array-like of shape (k,)
        The largest eigenvalues, descending.
    count : int
        How many there are in all, without those that are zero by construction; more than k.
    total, deviation : float
        Σλ and Σ(λ − λ̄)² of all of them. The second, not Σλ², is what estimates should be made of: n′ depends on how
        unequal the eigenvalues are, which is a small difference of large numbers otherwise.

    Returns
    -------
    TracyWidomTable
        Of the k eigenvalues.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.tracy_widom import tracy_widom_from_sums, tracy_widom_statistics
    >>> lam = np.array([9.0, 3.0, 2.0, 1.5, 1.0])
    >>> few = tracy_widom_from_sums(lam[:2], 5, lam.sum(), 5 * lam.var())
    >>> np.allclose(few.statistics, tracy_widom_statistics(lam).statistics[:2])
    True
    """
    given = _check_positive(eigenvalues, 1)
    if count <= len(given):
        raise ValueError(f"count={count}: there must be more eigenvalues in all than the {len(given)} given.")
    lam, unit = given / given[0], given[0]
    before, squares = (np.concatenate([[0.0], np.cumsum(x)[:-1]]) for x in (lam, lam**2))
    m = count - np.arange(len(lam), dtype=np.float64)
    s1 = total / unit - before
    s2 = deviation / unit**2 + (total / unit) ** 2 / count - squares
    return _test_largest(given, lam, m, s1, s2)


def _test_largest(given: Array, lam: Array, m: Array, s1: Array, s2: Array) -> TracyWidomTable:
    """The table of eigenvalues that are each the largest of m, with their sum and sum of squares."""
    spread = m * s2 - s1**2  # m² times the variance of the eigenvalues left
    equal = spread <= 8 * np.finfo(float).eps * m * s2
    n = np.divide((m + 2) * s1**2, spread, out=np.full_like(m, np.inf), where=~equal)
    # (L − μ)/σ; n′ of fewer than two rows would have no spread of its own
    rows = np.where(equal, 2.0, np.maximum(n, 1.0 + 1e-9))
    a, b = np.sqrt(rows - 1), np.sqrt(m)
    x = (m * lam / s1 - (a + b) ** 2 / rows) / ((a + b) / rows * np.cbrt(1 / a + 1 / b))
    p_values = np.where(equal, 1.0, tracy_widom_sf(np.where(equal, 0.0, x)))
    return TracyWidomTable(given, np.where(equal, np.nan, x), p_values, n)


def _check_positive(eigenvalues: npt.ArrayLike, least: int) -> Array:
    """Return eigenvalues, ``least`` or more, all positive and descending."""
    lam = check_descending(eigenvalues, least)
    if lam[-1] <= 0:
        i = int(np.argmax(lam <= 0))
        raise ValueError(
            f"eigenvalues must be positive: number {i + 1} is {lam[i]:g}. Leave out those that are zero by "
            "construction: data with their mean taken out have at most n − 1 others."
        )
    return lam


def check_descending(eigenvalues: npt.ArrayLike, least: int = 1, rounding: float = 0.0) -> Array:
    """Return eigenvalues, ``least`` or more, finite, none exceeding the one before by more than a share of the first.

    Examples
    --------
    >>> from gramian.pca.tracy_widom import check_descending
    >>> check_descending([1.0, 2.0])
    Traceback (most recent call last):
    ValueError: eigenvalues must descend: number 2 exceeds the one before. Sort them.
    """
    lam = np.asarray(fetch_numbers(eigenvalues, "eigenvalues"), dtype=np.float64)
    if lam.ndim != 1 or len(lam) < least:
        raise ValueError(f"eigenvalues must be a list of at least {least} numbers, got shape {lam.shape}.")
    if not np.isfinite(lam).all():
        raise ValueError(f"eigenvalues must be finite: number {np.argmin(np.isfinite(lam)) + 1} is not.")
    rising = np.flatnonzero(np.diff(lam) > rounding * max(float(lam[0]), 0.0))
    if len(rising):
        raise ValueError(f"eigenvalues must descend: number {rising[0] + 2} exceeds the one before. Sort them.")
    return lam
