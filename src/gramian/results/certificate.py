"""Certificates: their base, one kind each for spectra, linear systems and optima, and the one way to warn."""

from __future__ import annotations

import html
import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from gramian.compute.executor import describe_use

Array = npt.NDArray[np.float64]

BETWEEN = ("gramian", "joblib", "sklearn")  # packages that call each other between a user's line and ours


class NumericalWarning(UserWarning):
    """The answer is right as far as it goes, but the data leave part of it undetermined or unrepresentable."""


def caller_level() -> int:
    """Return the ``stacklevel`` with which the caller of this function warns at the first line outside the package.

    Returns
    -------
    int
        The level.

    Examples
    --------
    >>> from gramian.results.certificate import caller_level
    >>> caller_level() >= 1
    True
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    return level


def describe_verdict(met: bool, tolerance: float | None) -> str:
    """Return the words in which screen and report say whether the arithmetic is certified, and to which tolerance.

    Parameters
    ----------
    met : bool
        Whether the tolerance was met.
    tolerance : float or None
        The tolerance.

    Returns
    -------
    str
        The words.

    Examples
    --------
    >>> from gramian.results.certificate import describe_verdict
    >>> describe_verdict(True, 1e-8), describe_verdict(False, 2.5e-12)
    ('certified to 1e-8', 'NOT certified to 2.5e-12')
    """
    to = f" to {tolerance:.1e}".replace(".0e", "e").replace("e-0", "e-") if tolerance else ""
    return ("certified" if met else "NOT certified") + to


@dataclass(frozen=True, repr=False, eq=False)
class Certificate(ABC):
    """How a result was computed and whether it is as accurate as was asked for: the base of all certificates.

    Attributes
    ----------
    method, reason : str
        What was run, and why it was chosen.
    passes : int
        How often the data were read from beginning to end.
    tolerance : float
        What the measure of error was asked to meet.
    device : str
        Where the products were computed: ``"cpu"``, ``"cuda:0"``.
    precision : str
        In which arithmetic, where it is not NumPy's own.
    executor : str
        Who made the passes over the data, where it was not this process alone: ``"Dask, 8 workers"``.
    notes : tuple of str
        Anything else a reader should know.
    """

    method: str
    reason: str
    passes: int
    tolerance: float = field(kw_only=True)
    device: str = field(default="cpu", kw_only=True)
    precision: str = field(default="", kw_only=True)
    executor: str = field(default_factory=describe_use, kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    @abstractmethod
    def worst(self) -> float:
        """The measure of error that the tolerance is for."""

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met (NaN never meets it)."""
        return bool(self.worst <= self.tolerance)

    @abstractmethod
    def _details(self) -> list[tuple[str, str]]:
        """Rows of the summary that this kind of certificate has beyond the common ones."""

    @abstractmethod
    def _shortfall(self) -> str:
        """By how much the tolerance was missed, as half a sentence."""

    def with_(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
        return {**plain, "notes": list(self.notes), "converged": self.converged}

    def summary(self) -> list[tuple[str, str]]:
        """Return the rows, name and text, that every representation shows."""
        return [
            ("method", self.method),
            ("why", self.reason),
            ("passes over the data", str(self.passes)),
            *self._details(),
            *([("precision", self.precision)] if self.precision else []),
            *([("passes made by", self.executor)] if self.executor else []),
            *(("note", note) for note in self.notes),
        ]

    def warn_unless_converged(self, remedy: str, kind: type[Warning] = ConvergenceWarning) -> None:
        """Warn, at the user's line, by how much the tolerance was missed and what to change."""
        if not self.converged:
            warnings.warn(f"{self.method}: {self._shortfall()}. {remedy}", kind, stacklevel=caller_level())

    def _met(self) -> str:
        return f"(tolerance {self.tolerance:.1e} {'met' if self.worst <= self.tolerance else 'NOT met'})"

    def __repr__(self) -> str:
        rows = self.summary()
        width = max(len(name) for name, _ in rows)
        lines = [f"  {name:<{width}}  {text}" for name, text in rows]
        return "\n".join([f"Certificate: {'converged' if self.converged else 'NOT converged'}", *lines])

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
class SpectralCertificate(Certificate):
    r"""How a spectrum was computed and how far it can be from the truth.

    For a computed triplet :math:`(\hat u, \hat\sigma, \hat v)` of a matrix A the residual is

    .. math:: \rho = \sqrt{\|A\hat v - \hat\sigma\hat u\|^2 + \|A^T\hat u - \hat\sigma\hat v\|^2}\,/\,\|A\|

    and some singular value of A lies within :math:`\rho\|A\|/\sqrt2` of :math:`\hat\sigma` (the residual
    bound for the symmetric matrix with blocks 0, A, Aᵀ, 0): that is proved. Which one it is, no residual can say. That
    they are the largest follows from an exact decomposition; an iteration from random vectors makes it overwhelmingly
    likely, and ``overlooked`` says how likely. The first i triplets together pair with i
    singular values to within the root of the sum of their squared bounds (Kahan), so that no two of them are taken for
    the same one.

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
    overlooked : float, optional
        Of an iterative method: a bound on the probability that A has a singular value of at least twice the size of
        the smallest one found which is not among them (of a symmetric matrix: an eigenvalue), for data that were not
        made to hide it. None where the method sees all of them.
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
    overlooked: float | None = None

    @property
    def worst(self) -> float:
        """The largest residual judged, or the rounding error of the products where that is larger."""
        return float(np.maximum(np.max(self.residuals[: self.judged], initial=0.0), self.rounding))  # keeps NaN

    @property
    def value_bounds(self) -> Array:
        r"""Bound on :math:`|\hat\sigma_i-\sigma_i|`: ‖A‖ times the root of Σ ρ²/2 of the first i, and the rounding."""
        together = np.sqrt(np.cumsum(np.square(self.residuals)) / 2)
        return np.asarray(self.norm * (together + self.rounding))

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
            *(
                []
                if self.overlooked is None
                else [("not proved, but likely", f"none twice as large is overlooked (chance {self.overlooked:.0e})")]
            ),
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
    proved : bool
        Whether the error of the answer itself is proved to be as small as the tolerance promises; where a method
        promises nothing beyond the residual, True.
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
    proved: bool = True

    @property
    def worst(self) -> float:
        """The largest residual, or the rounding error of the products where that is larger."""
        return float(np.maximum(np.max(self.residuals, initial=0.0), self.rounding))

    @property
    def converged(self) -> bool:
        """Whether the residuals meet the tolerance, and the error is proved to be as small as that promises."""
        return self.proved and super().converged

    def _details(self) -> list[tuple[str, str]]:
        rows = [
            ("iterations", str(self.iterations)),
            ("right-hand sides", str(len(self.residuals))),
            ("largest residual", f"{self.worst:.1e} {self._met()}"),
        ]
        if not self.proved:
            rows.append(("error", "not proved to be as small as the tolerance promises"))
        if self.condition is not None:
            rows.append(("condition number, about", f"{self.condition:.1e}"))
        if self.error_bounds is not None:
            rows.append((self.bounded or "error", f"at most {float(np.max(self.error_bounds, initial=0.0)):.1e}"))
        return rows

    def _shortfall(self) -> str:
        if super().converged:
            bounds = "nothing is proved" if self.error_bounds is None else f"{np.max(self.error_bounds):.1e} is proved"
            return (
                f"the residuals meet the tolerance {self.tolerance:.1e}, but of the error {bounds}, which is too much"
            )
        missed = int(np.count_nonzero(~(self.residuals <= self.tolerance)))
        what = f"{missed} of {len(self.residuals)} right-hand sides have a residual above the tolerance"
        what = what if missed else "the products themselves round to more than the tolerance"
        return (
            f"{what} {self.tolerance:.1e}: the largest residual, rounding included, is {self.worst:.1e}, "
            f"{self.worst / self.tolerance:.1f} times what was asked, after {self.iterations} iterations"
        )


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
    objective: Array
    gradient: float
    determined: bool = True
    has_maximum: bool = True

    @property
    def worst(self) -> float:
        """The norm of the gradient."""
        return float(self.gradient)

    @property
    def converged(self) -> bool:
        """Whether the tolerance was met, at parameters that the data determine."""
        return self.determined and super().converged

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
