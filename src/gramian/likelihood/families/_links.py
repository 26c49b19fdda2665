"""Free coordinates: every parameter as a function of a number that may be anything."""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf

import numpy as np
from scipy.special import expit, logit

__all__ = ["POSITIVE", "REAL", "UNIT", "Link"]


@dataclass(frozen=True)
class Link:
    """A range (low, high) of a parameter θ, and the coordinate φ in which it has no ends.

    θ = φ, low + e^φ, high − e^(−φ) or low + (high − low)/(1 + e^(−φ)), as the ends are infinite or not.

    Examples
    --------
    >>> from gramian.likelihood.families import Link
    >>> Link(0.0, 1.0).natural(0.0)
    0.5
    """

    low: float = -np.inf
    high: float = np.inf

    def natural(self, phi: float) -> float:
        """θ of φ."""
        if isinf(self.low):
            return float(phi if isinf(self.high) else self.high - np.exp(-phi))
        if isinf(self.high):
            return float(self.low + np.exp(phi))
        return float(self.low + (self.high - self.low) * expit(phi))

    def free(self, theta: float) -> float:
        """φ of θ; infinite at the ends of the range."""
        with np.errstate(divide="ignore"):
            if isinf(self.low):
                return float(theta if isinf(self.high) else -np.log(self.high - theta))
            if isinf(self.high):
                return float(np.log(theta - self.low))
            return float(logit((theta - self.low) / (self.high - self.low)))

    def slope(self, phi: float) -> float:
        """dθ/dφ."""
        if isinf(self.low):
            return float(1.0 if isinf(self.high) else np.exp(-phi))
        if isinf(self.high):
            return float(np.exp(phi))
        return float((self.high - self.low) * expit(phi) * expit(-phi))

    def holds(self, theta: float) -> bool:
        """Whether θ lies inside the range."""
        return self.low < theta < self.high


REAL, POSITIVE, UNIT = Link(), Link(0.0), Link(0.0, 1.0)
