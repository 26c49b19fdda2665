"""What a solver returns: a named result, and the certificate that says how good it is."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Certificate", "NumericalWarning", "Optimum", "Spectrum"]

Vector = npt.NDArray[np.float64]


class NumericalWarning(UserWarning):
    """The answer is right as far as it goes, but the data leave part of it undetermined or unrepresentable."""


class _Shown:
    """How certificates of every kind show themselves."""

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met."""
        raise TypeError("a certificate supplies this")

    def summary(self) -> list[tuple[str, str]]:
        """Return the rows that every representation shows."""
        raise TypeError("a certificate supplies this")

    def __repr__(self) -> str:
        head = "converged" if self.converged else "NOT converged"
        width = max(len(name) for name, _ in self.summary())
        lines = [f"  {name:<{width}}  {text}" for name, text in self.summary()]
        return "\n".join([f"Certificate: {head}", *lines])

    def _repr_html_(self) -> str:
        """Return the table that notebooks show."""
        colour, head = ("#1b7837", "converged") if self.converged else ("#b2182b", "not converged")
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
            for name, text in self.summary()
        )
        return f"<table><caption style='color:{colour}'>Certificate: {head}</caption>{cells}</table>"


@dataclass(frozen=True, repr=False, eq=False)
class Certificate(_Shown):
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

    @property
    def worst(self) -> float:
        """The largest residual, or the rounding error of the products where that is larger."""
        return max(float(np.max(self.residuals, initial=0.0)), self.rounding)

    @property
    def converged(self) -> bool:
        """Whether every residual met the tolerance (NaN never does)."""
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
        }

    def summary(self) -> list[tuple[str, str]]:
        """Return the rows that every representation shows."""
        met = "met" if self.converged else "NOT met"
        rows = [
            ("method", self.method),
            ("why", self.reason),
            ("passes over the data", str(self.passes)),
            ("components", str(len(self.values))),
            ("largest residual", f"{self.worst:.1e} (tolerance {self.tolerance:.1e} {met})"),
            ("singular values within", f"{float(np.max(self.value_bounds, initial=0.0)):.1e}"),
            ("orthogonality |VᵀV − I|", f"{self.orthogonality:.1e}"),
        ]
        return rows + [("note", note) for note in self.notes]


@dataclass(frozen=True, repr=False, eq=False)
class Optimum(_Shown):
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
