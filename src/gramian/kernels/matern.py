"""The Matérn kernels of half-integer smoothness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels._parameters import freeze, is_automatic, known, per_feature, plain, positive
from gramian.kernels._radial import Radial, Scale
from gramian.kernels.bandwidth import median_distance
from gramian.kernels.formula import Formula

__all__ = ["Matern"]

Array = npt.NDArray[Any]

SMOOTHNESS = (0.5, 1.5, 2.5)


@dataclass(frozen=True, repr=False)
class Matern(Radial):
    r"""e⁻ˢ, (1 + s)e⁻ˢ or (1 + s + s²/3)e⁻ˢ for ν = 1/2, 3/2, 5/2, with s = √(2ν)‖(x − z)/ℓ‖.

    Parameters
    ----------
    nu : {0.5, 1.5, 2.5}, default=1.5
        Smoothness: functions of the kernel's space have derivatives of every order below ν.
    length_scale : float, sequence of float, "median", default=1.0
        ℓ, one value or one for each feature.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Matern
    >>> Matern(0.5)(np.array([[0.0], [1.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    nu: float = 1.5
    length_scale: Any = 1.0

    def __post_init__(self) -> None:
        if self.nu not in SMOOTHNESS:
            raise ValueError(f"nu must be one of {SMOOTHNESS}, got {self.nu!r}.")
        length = positive("length_scale", self.length_scale, rules=("median",))
        freeze(self, nu=float(self.nu), length_scale=length)

    @property
    def automatic(self) -> bool:
        """Whether ℓ is to be found from data."""
        return is_automatic(self.length_scale)

    def resolved(self, X: Any) -> Matern:
        """Return the kernel with ℓ as a number."""
        return Matern(self.nu, median_distance(X)) if self.automatic else self

    def scale(self, p: int) -> Scale:
        """√(2ν)/ℓ, so that u = s²."""
        return np.sqrt(2 * self.nu) / per_feature("length_scale", self.length_scale, p)

    def formula(self, p: int) -> Formula:
        """The polynomial in r = √u times e⁻ʳ."""
        known(self)
        return Formula("squared", f"matern{round(2 * self.nu)}2", plain(self.scale(p)))

    def profile(self, t: Array) -> Array:
        """The polynomial in s times e⁻ˢ."""
        s = np.sqrt(np.negative(t, out=t), out=t)
        np.minimum(s, -0.999 * np.log(np.finfo(t.dtype).tiny), out=s)  # e⁻ˢ below the normal numbers is slow
        if self.nu == 0.5:
            return np.exp(np.negative(s, out=s), out=s)
        factor = 1 + s if self.nu == 1.5 else 1 + s * (1 + s / 3)
        np.exp(np.negative(s, out=s), out=s)
        return np.multiply(s, factor, out=s)

    def near(self, ratio: float) -> float:
        """From |f′| = e⁻ˢ/2s, e⁻ˢ/2 and (1 + s)e⁻ˢ/6 ≤ e^(−s/2)/4."""
        if self.nu == 0.5:
            return max(min(ratio / 2, 1.0), _log(ratio / 2)) ** 2
        return _log(ratio / 2) ** 2 if self.nu == 1.5 else 4 * _log(ratio / 4) ** 2


def _log(x: float) -> float:
    """ln x, and 0 below 1."""
    return float(np.log(max(x, 1.0)))
