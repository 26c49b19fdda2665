"""A spectrum, and the certificate that says how good it is."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.results.certificate import Shown

__all__ = ["Certificate", "Spectrum"]

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Certificate(Shown):
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
    notes : tuple of str
        Anything else a reader should know.
    judged : int, optional
        How many of the leading triplets were to meet the tolerance: all unless given. The directions of the others are
        not determined by the data (they lie in the noise); their residuals are stated and not waited for.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.results import Certificate
    >>> c = Certificate("power", "asked for", 12, np.array([2.0]), np.array([1e-8]), 2.0, 0.0, 1e-6)
    >>> c.converged, bool(c.value_bounds[0] < 2e-8)
    (True, True)
    """

    method: str
    reason: str
    passes: int
    values: Vector
    residuals: Vector
    norm: float
    orthogonality: float
    tolerance: float
    rounding: float = 0.0
    divisor: float = 1.0
    notes: tuple[str, ...] = field(default=())
    judged: int | None = None

    @property
    def worst(self) -> float:
        """The largest residual judged, or the rounding error of the products where that is larger."""
        return max(float(np.max(self.residuals[: self.judged], initial=0.0)), self.rounding)

    @property
    def converged(self) -> bool:
        """Whether every residual judged met the tolerance (NaN never does)."""
        return bool(self.worst <= self.tolerance)

    @property
    def value_bounds(self) -> Vector:
        r"""Bound on :math:`|\hat\sigma-\sigma|`: :math:`\|A\|(\rho/\sqrt2 + \text{rounding})`."""
        return np.asarray(self.norm * (self.residuals / math.sqrt(2) + self.rounding))

    @property
    def eigenvalue_bounds(self) -> Vector:
        r"""Bound on :math:`|\hat\lambda-\lambda|` with λ = σ²/divisor: δ(2σ̂ + δ)/divisor."""
        delta = self.value_bounds
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(delta * ((2 * self.values + delta) / self.divisor))

    def with_(self, **changes: Any) -> Certificate:
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON."""
        return {
            "method": self.method,
            "reason": self.reason,
            "passes": self.passes,
            "converged": self.converged,
            "tolerance": self.tolerance,
            "norm": self.norm,
            "orthogonality": self.orthogonality,
            "rounding": self.rounding,
            "values": self.values.tolist(),
            "residuals": self.residuals.tolist(),
            "value_bounds": self.value_bounds.tolist(),
            "eigenvalue_bounds": self.eigenvalue_bounds.tolist(),
            "notes": list(self.notes),
            "judged": len(self.values) if self.judged is None else self.judged,
        }

    def summary(self) -> list[tuple[str, str]]:
        """Return the rows that every representation shows."""
        met = "met" if self.converged else "NOT met"
        rows = [
            ("method", self.method),
            ("why", self.reason),
            ("passes over the data", str(self.passes)),
            ("components", self._count()),
            ("largest residual", f"{self.worst:.1e} (tolerance {self.tolerance:.1e} {met})"),
            ("singular values within", f"{float(np.max(self.value_bounds[: self.judged], initial=0.0)):.1e}"),
            ("orthogonality |VᵀV − I|", f"{self.orthogonality:.1e}"),
        ]
        return rows + [("note", note) for note in self.notes]

    def _count(self) -> str:
        all_of = len(self.values)
        return str(all_of) if self.judged is None else f"{all_of}, of which {self.judged} separate from the noise"


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
    certificate : Certificate
        How good these are.
    """

    values: Vector
    right: Any
    left: Any
    certificate: Certificate

    @property
    def eigenvalues(self) -> Vector:
        """Eigenvalues σ² of AᵀA."""
        return np.asarray(self.values**2)
