"""Alleles for loadings that came without: from the ``.bim`` or ``.snp`` file of the reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gramian.genetics._joining import rows_of
from gramian.genetics._loading_files import Weights
from gramian.genetics._text_files import read_lines
from gramian.sources.plink import read_bim

__all__ = ["with_alleles"]

Text = npt.NDArray[np.object_]


def with_alleles(raw: Weights, path: Path) -> Weights:
    """Add alleles and positions by name; the first allele is the one that is counted."""
    id, position, first, second = _snps(path)
    rows = rows_of(raw.id, id, path, "alleles")
    if raw.effect[0] != "":  # PLINK names the alleles itself
        return replace(raw, position=position[rows])
    return replace(raw, position=position[rows], effect=first[rows], other=second[rows])


def _snps(path: Path) -> tuple[Text, npt.NDArray[np.int64], Text, Text]:
    """Names, positions and both alleles; a ``.snp`` file has name, chromosome, genetic and physical position first."""
    if path.suffix != ".snp":
        snps = read_bim(path)
        return snps.id, snps.position, snps.a1, snps.a2
    lines = read_lines(path, lambda _: False, lambda fields: [3] if len(fields) > 3 else [])
    if len(lines.columns) != 6:
        raise ValueError(f"{path}: line 1 has {len(lines.columns)} fields; six are needed, the alleles last.")
    return lines.text(0), lines.numbers([3])[:, 0].astype(np.int64), lines.text(4), lines.text(5)
