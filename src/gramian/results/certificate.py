"""What every result shares: how its certificate shows itself, and the warning that goes with it."""

from __future__ import annotations

import html

__all__ = ["NumericalWarning", "Shown"]


class NumericalWarning(UserWarning):
    """The answer is right as far as it goes, but the data leave part of it undetermined or unrepresentable."""


class Shown:
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
