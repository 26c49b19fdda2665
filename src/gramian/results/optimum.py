"""How a minimum was approached, and how flat the objective is there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.results.certificate import Certificate

__all__ = ["Optimum"]


@dataclass(frozen=True, repr=False, eq=False)
class Optimum(Certificate):
    r"""How the minimum of an objective was approached, and how flat the objective is there.

    The gradient is measured in the units of the statistics: for a likelihood it is

    .. math:: \sqrt{g^TI^{-1}g}

    with g the score and I the information of the complete data. That is the next step of the algorithm in standard
    errors, so that a gradient of 0.001 leaves the estimate a thousandth of its own uncertainty from where the next
    step would take it.

    Attributes
    ----------
    method, reason : str
        What was run, and why it was chosen.
    passes, iterations : int
        How often the data were read, and how many steps were taken.
    objective : ndarray
        The objective after each accepted step: it never increases.
    gradient, tolerance : float
        Norm of the gradient at the end, and what it was asked to meet.
    determined : bool
        Whether the data determine every parameter: the information is positive definite.
    has_maximum : bool
        Whether the likelihood has a maximum, and does not grow without bound.
    device, precision, notes
        As in every :class:`Certificate`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.results import Optimum
    >>> Optimum("EM", "values are missing", 3, 2, np.array([5.0, 4.0]), 1e-5, tolerance=1e-4).converged
    True
    """

    iterations: int
    objective: npt.NDArray[np.float64]
    gradient: float
    determined: bool = True
    has_maximum: bool = True

    @property
    def worst(self) -> float:
        """The norm of the gradient."""
        return float(self.gradient)

    def _details(self) -> list[tuple[str, str]]:
        return [
            ("iterations", str(self.iterations)),
            ("objective", f"{self.objective[-1]:.6g}" if len(self.objective) else "none"),
            ("gradient", f"{self.gradient:.1e} {self._met()}"),
        ]

    def _shortfall(self) -> str:
        return (
            f"the gradient is {self.gradient:.1e} standard errors after {self.iterations} iterations, and "
            f"{self.tolerance:.1e} was asked for"
        )
