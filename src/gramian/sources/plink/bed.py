"""PLINK's binary files opened: a memory map of two bits a genotype, checked against the names beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from gramian.sources.plink.genotypes import Genotypes
from gramian.sources.plink.tables import read_bim, read_fam

__all__ = ["HEADER", "open_bed"]

MAGIC = b"\x6c\x1b"
SNP_MAJOR, SAMPLE_MAJOR = 1, 0
HEADER = 3  # bytes before the first SNP


def open_bed(path: str | os.PathLike[str], bim: Any = None, fam: Any = None) -> Genotypes:
    """Open a PLINK 1 fileset by its ``.bed`` file, memory-mapped and checked against its ``.bim`` and ``.fam``.

    Parameters
    ----------
    path : path
        The ``.bed`` file.
    bim, fam : path, optional
        The files with the SNPs and the samples, where they are not beside it under the same name.

    Returns
    -------
    Genotypes
        All samples and SNPs.
    """
    bed = Path(path)
    if bed.is_dir():
        raise IsADirectoryError(f"{bed} is a folder; name the .bed file in it.")
    if not bed.exists():
        whole = Path(f"{bed}.bed")
        raise FileNotFoundError(f"{bed}: no such file" + (f"; {whole} is there." if whole.exists() else "."))
    _check_magic(bed)
    samples = read_fam(bed.with_suffix(".fam") if fam is None else Path(fam))
    snps = read_bim(bed.with_suffix(".bim") if bim is None else Path(bim))
    _check_size(bed, len(samples), len(snps))
    width = -(-len(samples) // 4)
    return Genotypes(np.memmap(bed, np.uint8, "r", HEADER, (len(snps), width)), samples, snps, bed)


def _check_magic(bed: Path) -> None:
    with bed.open("rb") as file:
        head = file.read(HEADER)
    if len(head) < HEADER or head[:2] != MAGIC:
        raise ValueError(
            f"{bed}: not a PLINK .bed file: it begins with the bytes {head.hex(' ') or 'of an empty file'}, "
            f"{MAGIC.hex(' ')} 01 was expected."
        )
    if head[2] == SAMPLE_MAJOR:
        raise ValueError(
            f"{bed}: the third byte is 00, a sample-major file; SNP-major files (01) are read. "
            "Convert it: plink1.9 --bfile NAME --make-bed --out NEW."
        )
    if head[2] != SNP_MAJOR:
        raise ValueError(f"{bed}: the third byte is {head[2]:02x}; 01 (SNP-major) was expected.")


def _check_size(bed: Path, n: int, p: int) -> None:
    width, actual = -(-n // 4), bed.stat().st_size
    expected = HEADER + p * width
    if actual == expected:
        return
    rows, rest = divmod(actual - HEADER, width)
    what = "truncated, or its .bim or .fam belongs to another file" if actual < expected else "too long"
    holds = f"It holds {rows} SNPs of {n} samples" + (f" and {rest} bytes." if rest else ".")
    raise ValueError(
        f"{bed}: {what}: {n} samples ({bed.stem}.fam) × {p} SNPs ({bed.stem}.bim) take {expected} bytes, "
        f"the file has {actual}. {holds} Use the three files that were written together."
    )
