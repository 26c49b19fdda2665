"""The Gaussian kernel exp(−γ‖x − z‖²)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels._exponential import RATE, at_least, exponential, lowest
from gramian.kernels._parameters import RULES, freeze, is_automatic, known, per_feature, plain, positive
from gramian.kernels._radial import Radial, Scale
from gramian.kernels.bandwidth import gamma_by_rule
from gramian.kernels.base import as_points
from gramian.kernels.formula import Formula

__all__ = ["Gaussian"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, repr=False)
class Gaussian(Radial):
    r"""k(x, z) = exp(−γ‖x − z‖²) = exp(−‖x − z‖²/2σ²), or exp(−Σ γ_j(x_j − z_j)²) with one value for each feature.

    Parameters
    ----------
    gamma : float, sequence of float, "median", "scale", optional
        γ. "scale" is 1/(p·Var X), "median" is 1/2m² with m the median distance of at most 2,000 of the rows. Without
        any parameter, 1/p.
    beta : the same, optional
        Another name for γ.
    bandwidth : the same, optional
        σ = 1/√(2γ).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> Gaussian(bandwidth=1.0)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    >>> Gaussian("median").resolved(np.array([[0.0], [1.0], [2.0]]))
    Gaussian(gamma=0.5)
    """

    gamma: Any = None
    beta: Any = field(default=None, kw_only=True)
    bandwidth: Any = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in ("gamma", "beta", "bandwidth")}
        given = {name: value for name, value in given.items() if value is not None}
        if len(given) > 1:
            raise ValueError(f"Give one of gamma, beta and bandwidth; got {' and '.join(given)}.")
        freeze(self, **{name: positive(name, value, rules=RULES) for name, value in given.items()})

    @property
    def automatic(self) -> bool:
        """Whether γ is to be found from data."""
        return is_automatic(self._given)

    @property
    def _given(self) -> Any:
        return next((v for v in (self.gamma, self.beta, self.bandwidth) if v is not None), None)

    def resolved(self, X: Any) -> Gaussian:
        """Return the kernel with γ as a number."""
        if self.automatic:
            return Gaussian(gamma_by_rule(self._given, X))
        return self if self._given is not None else Gaussian(1.0 / as_points(X).shape[1])

    def scale(self, p: int) -> Scale:
        """√γ, times what the exponential of this machine needs."""
        return np.sqrt(RATE) * self._root(p)

    def formula(self, p: int) -> Formula:
        """e⁻ᵘ with s = √γ."""
        known(self)
        return Formula("squared", "exp", plain(self._root(p)))

    def _root(self, p: int) -> Scale:
        """√γ."""
        if self._given is None:
            return float(np.sqrt(1.0 / p))
        if self.bandwidth is not None:
            return np.sqrt(0.5) / per_feature("bandwidth", self.bandwidth, p)
        name = "gamma" if self.gamma is not None else "beta"
        return np.sqrt(per_feature(name, getattr(self, name), p))

    def profile(self, t: Array) -> Array:
        """exp(t)."""
        return np.asarray(exponential(at_least(t, lowest(t.dtype)), out=t))

    def near(self, ratio: float) -> float:
        """ln ratio, for f′ = −f."""
        return RATE * float(np.log(max(ratio, 1.0)))
