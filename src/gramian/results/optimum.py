"""How a minimum was approached, and how flat the objective is there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.results.certificate import Shown

__all__ = ["Optimum"]

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Optimum(Shown):
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
    notes : tuple of str
        Anything else a reader should know.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.results import Optimum
    >>> Optimum("EM", "values are missing", 3, 2, np.array([5.0, 4.0]), 1e-5, 1e-4).converged
    True
    """

    method: str
    reason: str
    passes: int
    iterations: int
    objective: Vector
    gradient: float
    tolerance: float
    notes: tuple[str, ...] = field(default=())

    @property
    def converged(self) -> bool:
        """Whether the gradient met the tolerance (NaN never does)."""
        return bool(self.gradient <= self.tolerance)

    def with_(self, **changes: Any) -> Optimum:
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON."""
        fields = ("method", "reason", "passes", "iterations", "converged", "gradient", "tolerance")
        values = {name: getattr(self, name) for name in fields}
        return {**values, "objective": self.objective.tolist(), "notes": list(self.notes)}

    def summary(self) -> list[tuple[str, str]]:
        """Return the rows that every representation shows."""
        met = "met" if self.converged else "NOT met"
        last = f"{self.objective[-1]:.6g}" if len(self.objective) else "none"
        rows = [
            ("method", self.method),
            ("why", self.reason),
            ("passes over the data", str(self.passes)),
            ("iterations", str(self.iterations)),
            ("objective", last),
            ("gradient", f"{self.gradient:.1e} (tolerance {self.tolerance:.1e} {met})"),
        ]
        return rows + [("note", note) for note in self.notes]
