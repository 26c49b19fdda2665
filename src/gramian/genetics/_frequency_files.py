"""Readers of allele frequencies: PLINK 1.9's ``.frq`` and PLINK 2's ``.afreq``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gramian.genetics._joining import rows_of
from gramian.genetics._text_files import read_lines

__all__ = ["Frequencies", "read_frequencies"]

Text = npt.NDArray[np.object_]
Vector = npt.NDArray[np.float64]

# name, counted allele, the other, its frequency, chromosomes counted
COLUMNS = {
    ".frq": ("SNP", "A1", "A2", "MAF", "NCHROBS"),
    ".afreq": ("ID", "ALT", "REF", "ALT_FREQS", "OBS_CT"),
}


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Frequencies of an allele of each SNP, and the chromosomes in which they were counted."""

    path: Path
    id: Text
    counted: Text
    other: Text
    frequency: Vector
    chromosomes: Vector

    def of(self, id: Text, effect: Text, other: Text) -> tuple[Vector, Vector]:
        """Frequencies of the effect alleles of these SNPs, and the chromosomes counted."""
        if len(id) and effect[0] == "":
            raise ValueError(f"{self.path}: the loadings name no alleles: give the .bim file of the reference as snps.")
        rows = rows_of(id, self.id, self.path, "frequencies")
        a, b = self.counted[rows], self.other[rows]
        same, swapped = (a == effect) & (b == other), (a == other) & (b == effect)
        bad = np.flatnonzero(~(same | swapped))
        if len(bad):
            j = bad[0]
            raise ValueError(
                f"{self.path}: {id[j]} has the alleles {a[j]}/{b[j]}, the loadings have {effect[j]}/{other[j]} "
                f"({len(bad)} such SNPs)."
            )
        f = self.frequency[rows]
        return np.where(same, f, 1 - f), self.chromosomes[rows]


def read_frequencies(path: Path) -> Frequencies:
    """Read a ``.frq`` or ``.afreq`` file, told apart by its header."""
    lines = read_lines(path, lambda fields: fields[0] in ("CHR", "#CHROM"), _number_columns)
    for columns in COLUMNS.values():
        places = [lines.place(name) for name in columns]
        if None not in places:
            name, counted, other, frequency, chromosomes = (j for j in places if j is not None)
            numbers = lines.numbers([frequency, chromosomes])
            return Frequencies(path, lines.text(name), lines.text(counted), lines.text(other), *numbers.T)
    raise ValueError(
        f"{path}: line 1 is not the header of a frequency file: "
        f"{' or '.join(', '.join(columns) for columns in COLUMNS.values())} were expected."
    )


def _number_columns(fields: list[str]) -> list[int]:
    """Where the frequencies and the chromosomes counted are."""
    wanted = {name for columns in COLUMNS.values() for name in columns[3:]}
    return [j for j, name in enumerate(fields) if name in wanted]
