"""Tables of results as text, and the base of results that print as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

SHOWN = 10  # lines of a table that is printed
SENTENCE = 40  # characters from which on a column is text


def text_table(columns: Mapping[str, Any], limit: int | None = SHOWN, *, digits: int = 4) -> str:
    """Return columns of a table as lines of text, the first ``limit`` of them.

    Names, in the first column, and sentences stand at the left, numbers at the right.

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
    padded = [
        [cell.ljust(width) if j == 0 or width > SENTENCE else cell.rjust(width) for cell in column]
        for j, (column, width) in enumerate(zip(cells, widths, strict=True))
    ]
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
