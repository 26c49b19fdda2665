"""The base of all certificates, the warning for an unmet one, and the warning for undetermined answers."""

from __future__ import annotations

import html
import sys
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

__all__ = ["Certificate", "NumericalWarning", "caller_level"]

BETWEEN = ("gramian", "joblib", "sklearn")  # packages that call each other between a user's line and ours


class NumericalWarning(UserWarning):
    """The answer is right as far as it goes, but the data leave part of it undetermined or unrepresentable."""


def caller_level() -> int:
    """Return the ``stacklevel`` with which the caller of this function warns at the first line outside the package.

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
    notes : tuple of str
        Anything else a reader should know.
    """

    method: str
    reason: str
    passes: int
    tolerance: float = field(kw_only=True)
    device: str = field(default="cpu", kw_only=True)
    precision: str = field(default="", kw_only=True)
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
            *(("note", note) for note in self.notes),
        ]

    def warn_unless_converged(self, remedy: str, kind: type[Warning] = ConvergenceWarning) -> None:
        """Warn, at the user's line, by how much the tolerance was missed and what to change."""
        if not self.converged:
            warnings.warn(f"{self.method}: {self._shortfall()}. {remedy}", kind, stacklevel=caller_level())

    def _met(self) -> str:
        return f"(tolerance {self.tolerance:.1e} {'met' if self.converged else 'NOT met'})"

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
