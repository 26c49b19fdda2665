"""What every report is told: the data and the run. It draws nothing, so that it loads no library that does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gramian.results.quality import Quality


@dataclass(frozen=True)
class DataFacts:
    """What was fitted on.

    Attributes
    ----------
    name : str
        Name of the file or data set.
    rows, columns : int
        Its size, as fitted.
    checksum : str
        SHA-256 of the input, in hexadecimal digits; "" where there is none.
    notes : sequence of str
        What was found and done while reading.

    Examples
    --------
    >>> from gramian.display.report import DataFacts
    >>> DataFacts("wine.csv", 178, 13).size
    '178 rows × 13 columns'
    """

    name: str
    rows: int
    columns: int
    checksum: str = ""
    notes: Sequence[str] = ()

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.rows:,} row{'s' * (self.rows != 1)} × {self.columns:,} column{'s' * (self.columns != 1)}"


@dataclass(frozen=True)
class Run:
    """How it was made, and what was said on the way.

    Attributes
    ----------
    command : str
        The whole command line, or the call.
    seed : int or None
        Of what is random.
    seconds : float or None
        How long the fit took.
    warnings : sequence of str
        What the fit warned of.
    quality : sequence of Quality
        How well the model fits the data, the measure that says most first; measured by the report unless given.

    Examples
    --------
    >>> from gramian.display.report import Run
    >>> Run("gramian pca wine.csv -k 3", seed=0).command
    'gramian pca wine.csv -k 3'
    """

    command: str = ""
    seed: int | None = None
    seconds: float | None = None
    warnings: Sequence[str] = ()
    quality: Sequence[Quality] = ()
