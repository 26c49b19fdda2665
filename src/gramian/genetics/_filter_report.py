"""What a set of filters took away, in the order in which they were applied."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from gramian.analysis._elements import text_table
from gramian.genetics._quality_tables import write_tsv
from gramian.sources.plink import Genotypes

__all__ = ["Filtered", "Step"]


@dataclass(frozen=True)
class Step:
    """One filter: its name, whether it is of samples or SNPs, how many it removed and how many it left.

    Attributes
    ----------
    name : str
        The argument of ``Filters``, or ``all_missing`` or ``monomorphic``.
    of : str
        ``samples`` or ``SNPs``.
    removed, left : int
        How many.
    detail : str
        The threshold, and what was removed.
    """

    name: str
    of: str
    removed: int
    left: int
    detail: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Filtered:
    """Genotypes that passed, and an account of those that did not.

    Attributes
    ----------
    source : Genotypes
        A view of the samples and SNPs that are left; no copy.
    shape : tuple of int
        Samples and SNPs there were.
    steps : tuple of Step
        The filters in the order in which they were applied.
    left_out : dict of str to int
        SNPs on each chromosome that was not asked for.
    notes : tuple of str
        What was said of the lists: ids that name nothing, or more than one.
    """

    source: Genotypes
    shape: tuple[int, int]
    steps: tuple[Step, ...]
    left_out: dict[str, int]
    notes: tuple[str, ...]

    @property
    def removed(self) -> dict[str, int]:
        """How many each filter removed, by its name."""
        return {step.name: step.removed for step in self.steps}

    def table(self) -> dict[str, Any]:
        """Return the columns filter, of, removed, left and detail, ready for ``pandas.DataFrame``."""
        names = ("name", "of", "removed", "left", "detail")
        return {"filter" if name == "name" else name: [getattr(step, name) for step in self.steps] for name in names}

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the table between tabs; the file is whole or absent, and replaced only with ``overwrite``."""
        write_tsv(path, self.table(), overwrite)

    def __repr__(self) -> str:
        (n, p), (kept_n, kept_p) = self.shape, self.source.shape
        head = f"Filtered: {n} samples × {p} SNPs → {kept_n} × {kept_p}"
        return "\n".join([head, text_table(self.table(), len(self.steps)), *(f"  {note}" for note in self.notes)])
