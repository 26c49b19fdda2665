"""Control limits of T² and Q: upper α points of their distributions under normality."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import betainccinv, chdtri, fdtri, ndtri

__all__ = ["Q_RULES", "T2_RULES", "check_choice", "q_limit", "t2_limit", "weighted_chi2_tail"]

Vector = npt.NDArray[np.float64]

T2_RULES = ("F", "beta", "chi2")
Q_RULES = ("exact", "jackson-mudholkar", "box")

STEP, REACH = 0.05, 14.0  # of the trapezoidal rule, in widths of the saddle: 1e-12 of the value and better


def t2_limit(k: int, n: float, alpha: float = 0.01, rule: str = "F") -> float:
    r"""Upper α point of T² of k components estimated from n rows.

    .. math::
        F:\ \frac{k(n^2-1)}{n(n-k)}F_\alpha(k, n-k),\qquad
        \text{beta}:\ \frac{(n-1)^2}{n}\,\mathrm{Beta}_\alpha\!\Big(\frac k2, \frac{n-k-1}2\Big),\qquad
        \chi^2:\ \chi^2_\alpha(k)

    ``F`` is for rows that had no part in the fit, ``beta`` for the rows of the fit, whose T² is bounded by (n−1)²/n
    because each of them pulls mean and variances towards itself; both tend to ``chi2`` as n grows. They are exact for
    Gaussian rows where the k directions are fixed, as they are with all p components. (Tracy, Young and Mason, J. of
    Quality Technology 24, 1992.)

    Parameters
    ----------
    k : int
        Number of components.
    n : float
        Rows of the fit, Σw.
    alpha : float, default=0.01
        Share of normal rows that raise a false alarm.
    rule : {"F", "beta", "chi2"}, default="F"
        The distribution.

    Returns
    -------
    float
        The limit.

    Examples
    --------
    >>> from gramian.analysis.limits import t2_limit
    >>> [round(t2_limit(2, 20, 0.05, rule), 3) for rule in ("F", "beta", "chi2")]
    [7.879, 5.361, 5.991]
    """
    check_choice("rule", rule, T2_RULES)
    _check_alpha(alpha)
    needed = k + {"F": 0, "beta": 1, "chi2": 0}[rule]
    if k < 1 or n <= needed:
        raise ValueError(
            f"The limit {rule!r} of T² needs 1 ≤ k components and more than {needed} rows; k={k}, n={n:g}."
        )
    if rule == "F":
        # the upper point of F(a, b) is one over the lower point of F(b, a), which keeps its digits for small α
        return float(k * (n**2 - 1) / (n * (n - k)) / fdtri(n - k, k, alpha))
    if rule == "beta":
        return float((n - 1) ** 2 / n * betainccinv(k / 2, (n - k - 1) / 2, alpha))
    return float(chdtri(k, alpha))


def q_limit(variances: Any, alpha: float = 0.01, rule: str = "exact") -> float:
    r"""Upper α point of Q = Σ θ_i χ²_1, the squared distance from the plane, with θ the variances left out.

    With :math:`\theta_r = \sum_i\theta_i^r` and :math:`h_0 = 1 - 2\theta_1\theta_3/3\theta_2^2`,

    .. math::
        \text{Jackson–Mudholkar}:\ \theta_1\Big(1 + \frac{\theta_2h_0(h_0-1)}{\theta_1^2}
            + \frac{z_\alpha h_0\sqrt{2\theta_2}}{\theta_1}\Big)^{1/h_0},\qquad
        \text{Box}:\ \frac{\theta_2}{\theta_1}\chi^2_\alpha\!\Big(\frac{\theta_1^2}{\theta_2}\Big)

    and ``exact`` solves :math:`P(Q > q) = \alpha` by :func:`weighted_chi2_tail`. Jackson and Mudholkar (Technometrics
    21, 1979) take a power of Q as normal: a few per cent too high, and far too high where one variance left out stands
    above the others and h₀ ≤ 0, which is refused. Box (Annals of Mathematical Statistics 25, 1954) matches two moments:
    a few per cent too low, more for small α.

    Parameters
    ----------
    variances : array-like of shape (m,)
        The variances left out, θ.
    alpha : float, default=0.01
        Share of normal rows that raise a false alarm.
    rule : {"exact", "jackson-mudholkar", "box"}, default="exact"
        How the point is found.

    Returns
    -------
    float
        The limit.

    Examples
    --------
    >>> from gramian.analysis.limits import q_limit
    >>> [round(q_limit([5, 4, 3, 2, 1], 0.01, rule), 2) for rule in ("exact", "jackson-mudholkar", "box")]
    [50.3, 51.28, 49.3]
    """
    check_choice("rule", rule, Q_RULES)
    _check_alpha(alpha)
    theta = _positive(variances)
    unit = float(theta.max())  # powers of the variances neither overflow nor vanish
    find = {"exact": _exact, "jackson-mudholkar": _jackson_mudholkar, "box": _box}[rule]
    return unit * find(theta / unit, alpha)


def weighted_chi2_tail(q: float, variances: Any) -> float:
    r"""P(Q > q) of Q = Σ θ_i χ²_1, to rounding.

    .. math:: P(Q > q) = \frac1{2\pi i}\int_{c-i\infty}^{c+i\infty} \frac{e^{K(s)-sq}}s\,ds,\qquad
        K(s) = -\tfrac12\sum_i\ln(1-2s\theta_i)

    The line is bent to the right around the singularities, along the path on which the integrand falls fastest from its
    saddle point c, and summed by the trapezoidal rule, which converges geometrically.

    Parameters
    ----------
    q : float
        A positive number.
    variances : array-like of shape (m,)
        The weights θ, none negative, some positive.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> from gramian.analysis.limits import weighted_chi2_tail
    >>> import math
    >>> math.isclose(weighted_chi2_tail(3.0, [1.0, 1.0]), math.exp(-1.5))
    True
    """
    theta = _positive(variances)
    unit = float(theta.max())
    return _tail(float(q) / unit, theta / unit)


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise an error where the value is none of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}; got {value!r}.")


def _check_alpha(alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}.")


def _positive(variances: Any) -> Vector:
    theta = np.asarray(variances, dtype=np.float64).ravel()
    if not np.all(np.isfinite(theta) & (theta >= 0)) or not np.any(theta > 0):
        raise ValueError("variances must be finite and not negative, and some must be positive.")
    return np.asarray(theta[theta > 0])


def _powers(theta: Vector) -> tuple[float, float, float]:
    return float(theta.sum()), float(np.sum(theta**2)), float(np.sum(theta**3))


def _jackson_mudholkar(theta: Vector, alpha: float) -> float:
    t1, t2, t3 = _powers(theta)
    h0 = 1 - 2 * t1 * t3 / (3 * t2**2)
    base = 1 + t2 * h0 * (h0 - 1) / t1**2 - float(ndtri(alpha)) * h0 * math.sqrt(2 * t2) / t1
    if h0 <= 0 or base <= 0:
        raise ValueError(
            f"Jackson and Mudholkar's limit does not hold here (h₀ = {h0:.2f}): one of the variances left out stands "
            "above the others. Use 'exact' or 'box', or keep one component more."
        )
    return float(t1 * base ** (1 / h0))


def _box(theta: Vector, alpha: float) -> float:
    t1, t2, _ = _powers(theta)
    return float(t2 / t1 * chdtri(t1**2 / t2, alpha))


def _exact(theta: Vector, alpha: float) -> float:
    def excess(log_q: float) -> float:
        return _tail(math.exp(log_q), theta) - alpha

    low = high = math.log(_box(theta, alpha))
    while excess(low) < 0:
        low -= 0.2
    while excess(high) > 0:
        high += 0.2
    return math.exp(brentq(excess, low, high, xtol=1e-13)) if high > low else math.exp(low)


def _tail(q: float, theta: Vector) -> float:
    """P(Q > q) for weights whose largest is 1."""
    if q <= 0.0:
        return 1.0
    c = _between_singularities(q, theta)
    r = theta / (1 - 2 * c * theta)
    second, third = 2 * float(np.sum(r**2)), 8 * float(np.sum(r**3))
    width, bend = second**-0.5, third / (6 * second**1.5)
    t = np.arange(STEP / 2, REACH, STEP)  # the other half of the path gives the conjugate
    s = c + width * (1j * t + bend * t**2)
    K = -0.5 * np.sum(np.log(1 - 2 * np.multiply.outer(s, theta)), axis=1)
    f = np.exp(K - s * q) / s * width * (1 - 2j * bend * t)
    integral = float(np.sum(f.real)) * STEP / math.pi
    return integral if c > 0 else 1.0 + integral  # left of the pole at 0 its residue is missing


def _between_singularities(q: float, theta: Vector) -> float:
    """The saddle point, where K'(s) = Σ θ/(1 − 2sθ) is q; kept away from the pole at 0."""

    def slope(s: float) -> float:
        return float(np.sum(theta / (1 - 2 * s * theta))) - q

    # the largest weight alone gives K' ≥ 1/(1 − 2s), and left of 0 no term exceeds −1/2s
    saddle = float(brentq(slope, -len(theta) / (2 * q) - 1, 0.5 - 0.25 / q))
    apart = 0.4 / math.sqrt(2 * float(np.sum(theta**2)))
    return saddle if abs(saddle) > apart else apart
