"""An estimate with its interval, standard error and bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Interval"]


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

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis._interval import Interval
    >>> one = np.ones(2)
    >>> Interval(one, 0.5 * one, 2 * one, 0.3 * one, 0 * one)
    Interval
      estimate  lower  upper  error  bias
             1    0.5      2    0.3     0
             1    0.5      2    0.3     0
    """

    estimate: npt.NDArray[np.float64]
    lower: npt.NDArray[np.float64]
    upper: npt.NDArray[np.float64]
    error: npt.NDArray[np.float64]
    bias: npt.NDArray[np.float64]

    def covers(self, value: Any) -> npt.NDArray[np.bool_]:
        """Whether the intervals hold these values."""
        return np.asarray((self.lower <= value) & (value <= self.upper))

    def table(self) -> dict[str, Any]:
        """Return the columns estimate, lower, upper, error and bias, entries in row-major order."""
        names = ("estimate", "lower", "upper", "error", "bias")
        return {name: getattr(self, name).ravel() for name in names}

    def __repr__(self) -> str:
        columns = self.table()
        shown = 12
        texts = [[name, *(f"{x:.4g}" for x in column[:shown])] for name, column in columns.items()]
        widths = [max(map(len, text)) for text in texts]
        lines = ["  ".join(f"{x:>{w}}" for x, w in zip(line, widths, strict=True)) for line in zip(*texts, strict=True)]
        more = self.estimate.size - shown
        return "\n  ".join(["Interval", *lines, *([f"… and {more} more"] if more > 0 else [])])
