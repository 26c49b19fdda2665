"""Columns of numbers and words as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["text_table"]


def text_table(columns: Mapping[str, Sequence[Any]], digits: int = 6) -> str:
    """Return columns side by side: words to the left, numbers to the right.

    Examples
    --------
    >>> print(text_table({"name": ["a", "bc"], "value": [1.0, 22.5]}))
      name  value
      a         1
      bc     22.5
    """
    shown = {name: [_entry(value, digits) for value in values] for name, values in columns.items()}
    widths = [max(len(name), *(len(v) for v in values)) if values else len(name) for name, values in shown.items()]
    words = [all(isinstance(v, str) for v in values) for values in columns.values()]

    def line(cells: Sequence[str]) -> str:
        placed = [c.ljust(w) if word else c.rjust(w) for c, w, word in zip(cells, widths, words, strict=True)]
        return ("  " + "  ".join(placed)).rstrip()

    return "\n".join([line(list(shown)), *(line(row) for row in zip(*shown.values(), strict=True))])


def _entry(value: Any, digits: int) -> str:
    return value if isinstance(value, str) else f"{float(value):.{digits}g}"
