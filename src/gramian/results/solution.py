"""The solution of a linear system, and the certificate that says how good it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.results.certificate import Certificate

__all__ = ["Residual", "Solution"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Residual(Certificate):
    r"""How a linear system was solved, and how far the solution can be from the true one.

    For a computed solution :math:`\hat x` of :math:`Ax=b` the residual is

    .. math:: \rho = \|b - A\hat x\|\,/\,\|b\|

    for each right-hand side. What follows from it for the quantity of interest, such as every prediction of a kernel
    ridge regression, is in ``error_bounds``; ``bounded`` says which quantity that is.

    Attributes
    ----------
    method, reason : str
        What was run, and why it was chosen.
    passes, iterations : int
        How often the data, or the kernel matrix, were gone through; steps of an iterative method, 0 for others.
    residuals : ndarray of shape (t,)
        ρ of each right-hand side; 0 where b = 0 and x = 0.
    tolerance : float
        What ρ was asked to meet.
    rounding : float
        Relative error of the products themselves, which no residual can show.
    condition : float or None
        An estimate of the condition number of A, where one was made.
    error_bounds : ndarray of shape (t,) or None
        Bound on the error of what ``bounded`` names, for each right-hand side.
    bounded : str
        What is bounded, as a formula.
    indefinite : bool
        Whether A was found to have a negative eigenvalue: then no bound follows.
    device, precision, notes
        As in every :class:`Certificate`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.results import Residual
    >>> Residual("Cholesky", "asked for", 1, 0, np.array([1e-15]), tolerance=1e-10).converged
    True
    """

    iterations: int
    residuals: Array
    rounding: float = 0.0
    condition: float | None = None
    error_bounds: Array | None = None
    bounded: str = ""
    indefinite: bool = False

    @property
    def worst(self) -> float:
        """The largest residual, or the rounding error of the products where that is larger."""
        return float(np.maximum(np.max(self.residuals, initial=0.0), self.rounding))

    def _details(self) -> list[tuple[str, str]]:
        rows = [
            ("iterations", str(self.iterations)),
            ("right-hand sides", str(len(self.residuals))),
            ("largest residual", f"{self.worst:.1e} {self._met()}"),
        ]
        if self.condition is not None:
            rows.append(("condition number, about", f"{self.condition:.1e}"))
        if self.error_bounds is not None:
            rows.append((self.bounded or "error", f"at most {float(np.max(self.error_bounds, initial=0.0)):.1e}"))
        return rows

    def _shortfall(self) -> str:
        missed = int(np.count_nonzero(~(self.residuals <= self.tolerance)))
        what = f"{missed} of {len(self.residuals)} right-hand sides have a residual above the tolerance"
        what = what if missed else "the products themselves round to more than the tolerance"
        return (
            f"{what} {self.tolerance:.1e}: the largest residual, rounding included, is {self.worst:.1e}, "
            f"{self.worst / self.tolerance:.1f} times what was asked, after {self.iterations} iterations"
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution x of Ax = b, one column for each right-hand side, and how good it is.

    Attributes
    ----------
    values : array of shape (n, t)
        x, in the operator's own array type.
    certificate : Residual
        How good it is.
    """

    values: Any
    certificate: Residual
