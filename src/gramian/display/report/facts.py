"""What a report must be told: what the data were, and what was run."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

__all__ = ["DataFacts", "Run", "versions"]

PACKAGES = ("gramian", "numpy", "scipy", "scikit-learn", "bokeh")


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


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers and page depend on."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
