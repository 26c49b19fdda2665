"""Families of bounded numbers: beta on the unit interval, von Mises on the circle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, i0e, i1e, logsumexp, xlog1py, xlogy

from gramian.likelihood.families.base import (
    POSITIVE,
    Boundary,
    Concentration,
    Family,
    NoMaximumError,
    Parameter,
    log_beta_p,
    log_beta_q,
    moments,
    nodes,
)
from gramian.likelihood.sample import INF, Sample

Array = npt.NDArray[np.float64]

PANELS = 4096  # most pieces of an arc that is integrated


class Beta(Family):
    r"""The beta family, :math:`f(x) = x^{a-1}(1-x)^{b-1}/B(a,b)` on (0, 1); parameters ``a``, ``b``.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("beta", [0.2, 0.4, 0.6, 0.8])
    >>> round(est.estimates["a"] - est.estimates["b"], 9) + 0.0
    0.0
    """

    name = generator = "beta"
    parameters = (Parameter("a", POSITIVE), Parameter("b", POSITIVE))
    low, high = 0.0, 1.0
    open_low = open_high = True
    concentration = Concentration("a + b → ∞")

    def log_density(self, x: Array, theta: Array) -> Array:
        """(a−1) ln x + (b−1) ln(1−x) − ln B(a, b)."""
        a, b = theta
        inside = np.clip(x, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            f = xlogy(a - 1.0, inside) + xlog1py(b - 1.0, -inside) - betaln(a, b)
        return np.where((x < 0) | (x > 1), -INF, f)

    def log_cdf(self, x: Array, theta: Array) -> Array:
        """ln I_x(a, b)."""
        return log_beta_p(theta[0], theta[1], np.clip(x, 0.0, 1.0))

    def log_sf(self, x: Array, theta: Array) -> Array:
        """ln(1 − I_x(a, b))."""
        return log_beta_q(theta[0], theta[1], np.clip(x, 0.0, 1.0))

    def score(self, x: Array, theta: Array) -> Array:
        """ln x − ψ(a) + ψ(a+b) and ln(1−x) − ψ(b) + ψ(a+b)."""
        a, b = theta
        return np.array([np.log(x) - digamma(a) + digamma(a + b), np.log1p(-x) - digamma(b) + digamma(a + b)])

    def start(self, sample: Sample) -> Array:
        """The moments: mean m and variance v give a + b = m(1−m)/v − 1."""
        x = np.clip(sample.representatives(0.0, 1.0), 1e-6, 1.0 - 1e-6)
        m, v = moments(x, sample.weight)
        size = max(m * (1.0 - m) / max(v, 1e-12) - 1.0, 0.1)
        return np.array([m * size, (1.0 - m) * size])


class VonMises(Family):
    r"""The von Mises family of angles, :math:`f(x) = e^{\kappa\cos(x-\mu)}/2\pi I_0(\kappa)`.

    Parameters ``mean`` μ in (−π, π] and ``kappa``. For points μ̂ is the direction of the resultant and
    I₁(κ̂)/I₀(κ̂) = R, its length. Intervals are arcs, in radians, no longer than the circle.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> est = fit("von mises", [0.1, 0.4, -0.2, 0.9])
    >>> round(est.estimates["mean"], 4), round(est.estimates["kappa"], 4)
    (0.2963, 6.5012)
    """

    name = "von mises"
    parameters = (Parameter("mean", kind="angle"), Parameter("kappa", POSITIVE))
    concentration = Concentration("kappa → ∞", centre=0, width=1)

    def log_density(self, x: Array, theta: Array) -> Array:
        """κ(cos(x−μ) − 1) − ln 2πI₀(κ)e^(−κ)."""
        if theta[1] == 0.0:
            return np.full_like(x, -np.log(2.0 * np.pi))
        return np.asarray(-2.0 * theta[1] * np.sin(0.5 * (x - theta[0])) ** 2 - np.log(2.0 * np.pi * i0e(theta[1])))

    def log_interval(self, a: Array, b: Array, theta: Array) -> Array:
        """The arc in pieces of the width of the peak, each by Gauss–Legendre quadrature."""
        longest = float(np.max(b - a, initial=0.0))
        pieces = int(min(1.0 + longest * (1.0 + np.sqrt(theta[1])), PANELS))
        cuts = a + (b - a) * np.arange(pieces + 1)[:, None] / pieces
        x, weight = nodes(cuts[:-1].ravel(), cuts[1:].ravel())
        f = self.log_density(x.ravel(), theta).reshape(len(x), pieces, len(a))
        return np.asarray(logsumexp(f, axis=(0, 1), b=weight.reshape(f.shape)))

    def narrow(self, a: Array, b: Array, theta: Array) -> npt.NDArray[np.bool_]:
        """None of them: all are integrated."""
        return np.zeros(len(a), dtype=bool)

    def score(self, x: Array, theta: Array) -> Array:
        """κ sin(x−μ) and cos(x−μ) − I₁(κ)/I₀(κ)."""
        d = x - theta[0]
        return np.array([theta[1] * np.sin(d), _short(theta[1]) - 2.0 * np.sin(0.5 * d) ** 2])

    def closed_form(self, sample: Sample) -> Array:
        """Direction of the resultant, and κ by Newton's method on its length."""
        C, S = sample.weight @ np.cos(sample.lower), sample.weight @ np.sin(sample.lower)
        mean = float(np.arctan2(S, C))
        short = float(np.average(2.0 * np.sin(0.5 * (sample.lower - mean)) ** 2, weights=sample.weight))
        return np.array([mean, _concentration(short)])

    def start(self, sample: Sample) -> Array:
        """The same of the middles of the arcs."""
        x = sample.representatives()
        points = Sample(x, x, sample.weight, sample.left, sample.right)
        mean, kappa = self.closed_form(points)
        return np.array([mean, float(np.clip(kappa, 0.05, 1e6))])

    def boundary(self, sample: Sample) -> Boundary | None:
        """No maximum where R = 1; the uniform distribution where R = 0."""
        seen = sample.observed()
        if not seen.plain:
            turns = np.where(seen.exact, 0.0, seen.upper - seen.lower)
            self._refuse(seen, ~(turns <= 2.0 * np.pi * (1 + 1e-12)), "longer than the circle, and no arc")
            return super().boundary(seen)
        C, S = (seen.weight @ f(seen.lower) / seen.total for f in (np.cos, np.sin))
        mean = float(np.arctan2(S, C))
        if np.all(np.abs(np.sin(0.5 * (seen.lower - mean))) < 1e-15 * (1.0 + np.abs(seen.lower))):
            number = "There is 1 sample" if len(seen.lower) == 1 else "All angles are equal (R = 1)"
            raise NoMaximumError(f"{number}: the likelihood of the von mises family grows without bound as kappa → ∞.")
        if np.hypot(C, S) < 1e-15 * np.sqrt(len(seen.lower)):
            note = (
                "the resultant is 0: the maximum is at kappa = 0, the uniform distribution, which has no mean direction"
            )
            return Boundary(np.array([np.nan, 0.0]), note)
        return None

    def check(self, sample: Sample) -> None:
        """Refuse windows and intervals without ends."""
        for side in (sample.lower, sample.upper, *((sample.left, sample.right) if sample.truncated else ())):
            if np.isinf(side).any():
                raise ValueError("An arc of angles has two finite ends, in radians; one of them is infinite here.")

    def draw(self, theta: Array, size: int, rng: np.random.Generator) -> Array:
        """Angles."""
        return np.asarray(rng.vonmises(0.0 if theta[1] == 0.0 else theta[0], theta[1], size))


def _short(kappa: float) -> float:
    """1 − I₁(κ)/I₀(κ), by its series where the two are nearly equal (DLMF 10.40.1)."""
    if kappa < 500.0:
        return float(1.0 - i1e(kappa) / i0e(kappa))
    v = 1.0 / kappa
    return float(v * (0.5 + v * (0.125 + v * (0.125 + v * (25.0 / 128.0 + v * (13.0 / 32.0))))))


def _concentration(short: float) -> float:
    """κ with 1 − I₁(κ)/I₀(κ) = short, by Newton's method in ln κ from Fisher's approximation."""
    R = 1.0 - short
    if R <= 0.0 or short == 0.0:
        return 0.0 if R <= 0.0 else INF
    kappa = 2.0 * R / (1.0 - R**2) if R < 0.5 else 0.5 / short
    for _ in range(50):
        ratio = 1.0 - _short(kappa)
        slope = 1.0 - ratio / kappa - ratio**2  # d/dκ of I₁/I₀
        if kappa >= 500.0:
            slope = 0.5 / kappa**2 * (1.0 + 0.5 / kappa)
        step = (short - _short(kappa)) / (-slope * kappa)
        kappa *= float(np.exp(np.clip(step, -1.0, 1.0)))
        if abs(step) < 1e-15:
            break
    return float(kappa)
