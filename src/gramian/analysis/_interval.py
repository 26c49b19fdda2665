"""An estimate with its interval, standard error and bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Interval"]

SHOWN = 12  # entries of a representation


@dataclass(frozen=True, repr=False, eq=False)
class Interval:
    """Estimates and how far to trust them; all arrays have the shape of the estimate.

    Attributes
    ----------
    estimate : ndarray
        What the model found.
    lower, upper : ndarray
        Ends of the interval.
    error : ndarray
        Standard error.
    bias : ndarray
        How much too high the estimate is on average, as far as that is known.
    rows, columns : tuple of str or None
        Names of the entries along the first axis and the second, where they are known.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis._interval import Interval
    >>> one = np.ones(2)
    >>> Interval(one, 0.5 * one, 2 * one, 0.3 * one, 0 * one, ("pca0", "pca1"))
    Interval
            estimate  lower  upper  error  bias
      pca0         1    0.5      2    0.3     0
      pca1         1    0.5      2    0.3     0
    """

    estimate: npt.NDArray[np.float64]
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]
    rows: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None

    def covers(self, value: Any) -> npt.NDArray[np.bool_]:
        """Whether the intervals hold these values."""
        return np.asarray((self.lower <= value) & (value <= self.upper))

    def table(self) -> dict[str, Any]:
        """Return the columns estimate, lower, upper, error and bias, entries in row-major order."""
        names = ("estimate", "lower", "upper", "error", "bias")
        return {name: getattr(self, name).ravel() for name in names}

    def __repr__(self) -> str:
        columns: dict[str, Any] = {name: column[:SHOWN] for name, column in self.table().items()}
        if self.rows is not None or self.columns is not None:
            columns = {"": [self._name(i) for i in range(min(SHOWN, self.estimate.size))]} | columns
        texts = [[name, *(x if isinstance(x, str) else f"{x:.4g}" for x in of)] for name, of in columns.items()]
        widths = [max(map(len, text)) for text in texts]
        # names stand at the left of their column, numbers at the right
        padded = [[x.rjust(w) if text[0] else x.ljust(w) for x in text] for text, w in zip(texts, widths, strict=True)]
        lines = ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
        more = self.estimate.size - SHOWN
        return "\n  ".join(["Interval", *lines, *([f"… and {more} more"] if more > 0 else [])])

    def _name(self, entry: int) -> str:
        """Name of an entry, counted in row-major order; a number along an axis without names."""
        place = np.unravel_index(entry, self.estimate.shape)
        axes = zip(place, (self.rows, self.columns), strict=False)
        return ", ".join(str(i) if names is None else names[i] for i, names in axes)
