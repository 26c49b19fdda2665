"""A spectrum, and the certificate that says how good it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.results.certificate import Certificate

__all__ = ["SpectralCertificate", "Spectrum"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class SpectralCertificate(Certificate):
    r"""How a spectrum was computed and how far it can be from the truth.

    For a computed triplet :math:`(\hat u, \hat\sigma, \hat v)` of a matrix A the residual is

    .. math:: \rho = \sqrt{\|A\hat v - \hat\sigma\hat u\|^2 + \|A^T\hat u - \hat\sigma\hat v\|^2}\,/\,\|A\|

    and some singular value of A lies within :math:`\rho\|A\|/\sqrt2` of :math:`\hat\sigma` (the residual
    bound for the symmetric matrix with blocks 0, A, Aᵀ, 0). Which one it is, no residual can say.

    Attributes
    ----------
    method, reason : str
        What was run, and why it was chosen.
    passes : int
        How often the data were read from beginning to end, statistics included.
    values, residuals : ndarray of shape (k,)
        Singular values and the residual ρ of each triplet.
    norm : float
        ‖A‖, the largest singular value found.
    orthogonality : float
        Largest entry of |VᵀV − I|.
    tolerance : float
        What ρ was asked to meet.
    rounding : float
        Relative error of the products themselves, which no residual can show.
    divisor : float
        Eigenvalues are σ²/divisor; a PCA puts n − 1 here.
    judged : int, optional
        How many of the leading triplets were to meet the tolerance: all unless given. The directions of the others are
        not determined by the data (they lie in the noise); their residuals are stated and not waited for.
    device, precision, notes
        As in every :class:`Certificate`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.results import SpectralCertificate
    >>> c = SpectralCertificate("power", "asked for", 12, np.array([2.0]), np.array([1e-8]), 2.0, 0.0, tolerance=1e-6)
    >>> c.converged, bool(c.value_bounds[0] < 2e-8)
    (True, True)
    """

    values: Array
    residuals: Array
    norm: float
    orthogonality: float
    rounding: float = 0.0
    divisor: float = 1.0
    judged: int | None = None

    @property
    def worst(self) -> float:
        """The largest residual judged, or the rounding error of the products where that is larger."""
        return max(float(np.max(self.residuals[: self.judged], initial=0.0)), self.rounding)

    @property
    def value_bounds(self) -> Array:
        r"""Bound on :math:`|\hat\sigma-\sigma|`: :math:`\|A\|(\rho/\sqrt2 + \text{rounding})`."""
        return np.asarray(self.norm * (self.residuals / math.sqrt(2) + self.rounding))

    @property
    def eigenvalue_bounds(self) -> Array:
        r"""Bound on :math:`|\hat\lambda-\lambda|` with λ = σ²/divisor: δ(2σ̂ + δ)/divisor."""
        delta = self.value_bounds
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(delta * ((2 * self.values + delta) / self.divisor))

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON."""
        bounds = {name: getattr(self, name).tolist() for name in ("value_bounds", "eigenvalue_bounds")}
        return {**super().as_dict(), **bounds, "judged": len(self.values) if self.judged is None else self.judged}

    def _details(self) -> list[tuple[str, str]]:
        count = str(len(self.values))
        if self.judged is not None:
            count += f", of which {self.judged} separate from the noise"
        return [
            ("components", count),
            ("largest residual", f"{self.worst:.1e} {self._met()}"),
            ("singular values within", f"{float(np.max(self.value_bounds[: self.judged], initial=0.0)):.1e}"),
            ("orthogonality |VᵀV − I|", f"{self.orthogonality:.1e}"),
        ]

    def _shortfall(self) -> str:
        judged = self.residuals[: self.judged]
        missed = int(np.count_nonzero(~(judged <= self.tolerance)))
        if missed:
            what = f"{missed} of {len(judged)} components have a residual above the tolerance"
            found = f"the largest is {np.max(judged):.1e}"
        else:
            what = "the products themselves round to more than the tolerance"
            found = f"by {self.rounding:.1e} relative to the largest singular value"
        times = self.worst / self.tolerance
        return f"{what} {self.tolerance:.1e}: {found}, {times:.1f} times what was asked, after {self.passes} passes"


@dataclass(frozen=True, eq=False)
class Spectrum:
    r"""Leading singular triplets :math:`A \approx \sum_i \sigma_i u_i v_i^T`, largest first.

    Attributes
    ----------
    values : ndarray of shape (k,)
        Singular values σ, descending, in float64.
    right : array of shape (p, k)
        Right singular vectors V as columns, in the operator's own array type.
    left : array of shape (n, k) or None
        Left singular vectors U, where the solver was asked for them.
    certificate : SpectralCertificate
        How good these are.
    """

    values: Array
    right: Any
    left: Any
    certificate: SpectralCertificate

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues σ² of AᵀA."""
        return np.asarray(self.values**2)
