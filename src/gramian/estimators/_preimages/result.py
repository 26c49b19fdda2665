"""What a search for pre-images returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Found", "PreImages"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.intp]

SHOWN = 8  # rows that a printed result lists


@dataclass(frozen=True, eq=False)
class Found:
    """What a method returns: points, whether and after how many steps each was found, and why others were not."""

    points: Matrix
    converged: Flags
    iterations: Counts
    trouble: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class PreImages:
    r"""Rows z whose features are near given points P of feature space, and how each search ended.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        z, always finite; the best point seen where the search did not converge.
    converged : ndarray of bool, shape (m,)
        Whether the row met the method's own test: a short enough step for the iterations, for "mds" distances that a
        point can have. "ridge" solves a linear system and always does.
    iterations : ndarray of int, shape (m,)
        Evaluations of the kernel row; 0 for the direct methods.
    objective : ndarray of shape (m,)
        :math:`\|\varphi(z)-P\|^2 = k(z,z)-2\sum_i\gamma_ik(z,x_i)+\gamma^TK\gamma`, without the last term where
        ``absolute`` is false.
    method : str
        How they were found.
    absolute : bool
        Whether the objective is the squared distance itself.
    notes : tuple of str
        What went wrong, for which rows, and what to try.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._preimages import preimages
    >>> from gramian.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> preimages(Gaussian(0.5), X, np.full((1, 3), 1 / 3), method="fixed-point")
    Pre-images by fixed-point: 1 of 1 converged
      row  converged  iterations  ‖φ(z) − P‖²
        0        yes           7      0.07748
    """

    points: Matrix
    converged: Flags
    iterations: Counts
    objective: Vector
    method: str
    absolute: bool = True
    notes: tuple[str, ...] = field(default=())

    def table(self) -> dict[str, Any]:
        """Return one row for each point, ready for ``pandas.DataFrame``."""
        return {
            "row": np.arange(len(self.points)),
            "converged": self.converged,
            "iterations": self.iterations,
            "objective": self.objective,
        }

    def __repr__(self) -> str:
        m = len(self.points)
        head = f"Pre-images by {self.method}: {int(self.converged.sum())} of {m} converged"
        name = "‖φ(z) − P‖²" if self.absolute else "‖φ(z) − P‖² − ‖P‖²"
        lines = [f"  row  converged  iterations  {name}"]
        for i in range(min(m, SHOWN)):
            said = "yes" if self.converged[i] else "NO"
            lines.append(f"  {i:3d}  {said:>9}  {self.iterations[i]:10d}  {self.objective[i]:{len(name)}.4g}")
        lines += [f"  ... {m - SHOWN} more"] if m > SHOWN else []
        return "\n".join([head, *lines, *(f"  note: {note}" for note in self.notes)])
