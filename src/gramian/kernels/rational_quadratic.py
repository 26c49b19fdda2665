"""The rational quadratic kernel, a mixture of Gaussian kernels of many widths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels._parameters import freeze, is_automatic, known, per_feature, plain, positive
from gramian.kernels._radial import Radial, Scale
from gramian.kernels.bandwidth import median_distance
from gramian.kernels.formula import Formula

__all__ = ["RationalQuadratic"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class RationalQuadratic(Radial):
    r"""k(x, z) = (1 + ‖(x − z)/ℓ‖²/2α)^(−α); as α grows it becomes the Gaussian kernel of bandwidth ℓ.

    Parameters
    ----------
    alpha : float, default=1.0
        α.
    length_scale : float, sequence of float, "median", default=1.0
        ℓ, one value or one for each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import RationalQuadratic
    >>> RationalQuadratic(alpha=0.5)(np.array([[0.0], [np.sqrt(3.0)]]))[0].round(12)
    array([1. , 0.5])
    """

    alpha: float = 1.0
    length_scale: Any = 1.0

    def __post_init__(self) -> None:
        alpha = positive("alpha", self.alpha)
        if isinstance(alpha, tuple):
            raise ValueError(f"alpha is one number, got {self.alpha!r}.")
        freeze(self, alpha=alpha, length_scale=positive("length_scale", self.length_scale, rules=("median",)))

    @property
    def automatic(self) -> bool:
        """Whether ℓ is to be found from data."""
        return is_automatic(self.length_scale)

    def resolved(self, X: Any) -> RationalQuadratic:
        """Return the kernel with ℓ as a number."""
        return RationalQuadratic(self.alpha, median_distance(X)) if self.automatic else self

    def scale(self, p: int) -> Scale:
        """1/(ℓ√(2α)), so that k = (1 + u)^(−α)."""
        return 1.0 / (np.sqrt(2 * self.alpha) * per_feature("length_scale", self.length_scale, p))

    def formula(self, p: int) -> Formula:
        """(1 + u)^(−α)."""
        known(self)
        return Formula("squared", "rational", plain(self.scale(p)), (self.alpha,))

    def profile(self, t: Array) -> Array:
        """(1 − t)^(−α)."""
        np.subtract(1.0, t, out=t)
        if self.alpha == 1.0:
            return np.reciprocal(t, out=t)
        return np.asarray(np.power(t, t.dtype.type(-self.alpha), out=t))

    def near(self, ratio: float) -> float:
        """From |f′| = α(1 + u)^(−α−1)."""
        return float(max(self.alpha * ratio, 1.0) ** (1.0 / (self.alpha + 1.0)) - 1.0)
