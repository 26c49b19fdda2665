"""Tables of results as lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def text_table(columns: Mapping[str, Any], *, digits: int = 6, limit: int | None = None) -> str:
    """Columns side by side under their names, the first ``limit`` rows: words to the left, numbers to the right.

    Examples
    --------
    >>> from gramian.results.text import text_table
    >>> print(text_table({"name": ["a", "bc"], "value": [1.0, 22.5]}))
      name  value
      a         1
      bc     22.5
    """
    size = len(next(iter(columns.values())))
    shown = []
    for name, values in columns.items():
        first = list(values[:limit])
        cells = [f"{float(x):.{digits}g}" if isinstance(x, (float, np.floating)) else str(x) for x in first]
        width = max(map(len, [name, *cells]))
        words = all(isinstance(x, str) for x in first)
        shown.append([cell.ljust(width) if words else cell.rjust(width) for cell in (name, *cells)])
    lines = ["  ".join(cells) for cells in zip(*shown, strict=True)]
    more = [f"... and {size - limit} more"] if limit is not None and size > limit else []
    return "\n".join(f"  {line}".rstrip() for line in [*lines, *more])
