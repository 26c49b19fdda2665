"""Tables of results as text, and the base of results that print as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

SHOWN = 10  # lines of a table that is printed


def text_table(columns: Mapping[str, Any], limit: int | None = SHOWN, *, digits: int = 4) -> str:
    """Return columns of a table as lines of text, the first ``limit`` of them: names at the left, numbers at the right.

    Examples
    --------
    >>> from gramian.results.tables import text_table
    >>> print(text_table({"name": ["a", "b"], "value": [1.0, 0.25]}))
      name  value
      a         1
      b      0.25
    """
    size = max(map(len, columns.values()))
    cells = [
        [
            name,
            *(
                f"{float(x):.{digits}g}" if isinstance(x, (float, np.floating)) else str(x)
                for x in list(values[:limit])
            ),
        ]
        for name, values in columns.items()
    ]
    widths = [max(map(len, column)) for column in cells]
    first, rest = (cells[0], widths[0]), list(zip(cells[1:], widths[1:], strict=True))
    padded = [[cell.ljust(first[1]) for cell in first[0]], *([cell.rjust(w) for cell in column] for column, w in rest)]
    lines = ["  ".join(line) for line in zip(*padded, strict=True)]
    more = [f"... and {size - limit} more"] if limit is not None and size > limit else []
    return "\n".join(f"  {line}".rstrip() for line in [*lines, *more])


class Tabular:
    """A result that prints as a title, its table and remarks below it."""

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``."""
        raise NotImplementedError

    def _title(self) -> str:
        return type(self).__name__

    def _shown(self) -> Mapping[str, Any]:
        """Columns that are printed."""
        return self.table()

    def _remarks(self) -> list[str]:
        """Lines below the table."""
        return []

    def __repr__(self) -> str:
        return "\n".join([self._title(), text_table(self._shown()), *self._remarks()])
