"""PLINK 1 files written in blocks of SNPs: three files that appear together or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.genotypes import pack
from gramian.sources.plink import Genotypes, Samples, Snps
from gramian.sources.writing import refuse_existing, write_whole_folder

HEAD = b"\x6c\x1b\x01"  # magic number, and SNP-major
BLOCK = 2**22  # genotypes that are decoded and packed at a time
LAST_BITS = np.array([0xFF, 0x03, 0x0F, 0x3F], dtype=np.uint8)  # of a row's last byte, for n mod 4


class BedWriter:
    """Write ``.bed``, ``.bim`` and ``.fam`` files of any size, a block of SNPs at a time.

    The files are written to a temporary folder next to their place and renamed when the ``with`` block ends well. When
    it does not, on Ctrl-C too, nothing stays behind and files that were there before are untouched. Two bits a genotype
    go to disk; memory holds one block.

    Parameters
    ----------
    path : path
        The ``.bed`` file; the others lie next to it under the same name. Its folder must exist.
    samples : Samples
        The people, in the order of the columns of the calls.
    overwrite : bool, default=False
        Whether files of these names may be replaced.
    companions : dict of str, optional
        Further text files of the same name, by their suffix, that appear with these.

    Attributes
    ----------
    n_snps : int
        SNPs written so far.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.bed_writer import BedWriter
    >>> from gramian.sources.plink import Samples, Snps, open_bed
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "small.bed")
    >>> with BedWriter(path, Samples.numbered(3)) as writer:
    ...     writer.append([[0, 1, 2], [2, -1, 0]], Snps.numbered(2))
    >>> path.read_bytes().hex(" "), open_bed(path).calls(0, 2).tolist()
    ('6c 1b 01 0b 34', [[0, 1, 2], [2, -1, 0]])
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        samples: Samples,
        *,
        overwrite: bool = False,
        companions: Mapping[str, str] | None = None,
    ) -> None:
        self.path = Path(path)
        if self.path.suffix != ".bed":
            raise ValueError(f"{self.path}: the name must end in .bed; .bim and .fam are written next to it.")
        if not len(samples):
            raise ValueError(f"{self.path}: there are no samples to write.")
        _check_text(samples, ("fid", "iid", "father", "mother", "phenotype"), "sample")
        fam = (samples.fid, samples.iid, samples.father, samples.mother, samples.sex.tolist(), samples.phenotype)
        self._companions = {**(companions or {}), ".fam": "".join(map("{} {} {} {} {} {}\n".format, *fam))}
        # .bed last: where it is, the others are
        self._paths = [self.path.with_suffix(suffix) for suffix in (*self._companions, ".bim", ".bed")]
        self._samples, self._overwrite = samples, overwrite
        self.n_snps = 0
        refuse_existing(self._paths, overwrite=overwrite)

    def __enter__(self) -> BedWriter:
        with ExitStack() as stack:
            names = [path.name for path in self._paths]
            folder = stack.enter_context(write_whole_folder(self.path.parent, names, overwrite=self._overwrite))
            *texts, bim, bed = (folder / name for name in names)
            for path, text in zip(texts, self._companions.values(), strict=True):
                path.write_text(text, encoding="utf-8")
            self._bim = stack.enter_context(bim.open("w", encoding="utf-8", newline="\n"))
            self._bed = stack.enter_context(bed.open("wb"))
            self._bed.write(HEAD)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self.n_snps:
            empty = ValueError(f"{self.path}: no SNPs were appended, and a .bed file without SNPs cannot be read.")
            self._stack.__exit__(ValueError, empty, None)
            raise empty
        self._stack.__exit__(kind, error, trace)

    def append(self, calls: npt.ArrayLike, snps: Snps) -> None:
        """Write SNPs × samples with 0, 1, 2 copies of allele A1, −1 where missing."""
        block = _as_calls(calls)
        if block.shape != (len(snps), len(self._samples)):
            raise ValueError(
                f"{self.path}: the calls are {block.shape[0]} × {block.shape[1]}; "
                f"{len(snps)} SNPs × {len(self._samples)} samples were expected."
            )
        self.append_packed(pack(block), snps)

    def append_packed(self, packed: npt.NDArray[np.uint8], snps: Snps) -> None:
        """Write SNPs that are packed already, four samples a byte, as :func:`gramian.compute.genotypes.pack` does."""
        n = len(self._samples)
        if packed.dtype != np.uint8 or packed.shape != (len(snps), -(-n // 4)):
            raise ValueError(
                f"{self.path}: packed rows have shape {packed.shape} and dtype {packed.dtype}; {len(snps)} SNPs of "
                f"{-(-n // 4)} bytes (uint8) were expected."
            )
        if np.any(packed[:, -1] & ~LAST_BITS[n % 4]):
            raise ValueError(f"{self.path}: bits after the last of {n} samples are set; PLINK wants them 0.")
        _check_text(snps, ("chromosome", "id", "a1", "a2"), "SNP", self.n_snps)
        bim = (snps.chromosome, snps.id, snps.cm.tolist(), snps.position.tolist(), snps.a1, snps.a2)
        lines = "".join(map("{}\t{}\t{:.10g}\t{}\t{}\t{}\n".format, *bim))
        self._bed.write(np.ascontiguousarray(packed).data)
        self._bim.write(lines)
        self.n_snps += len(snps)


def write_bed(
    path: str | os.PathLike[str],
    genotypes: Genotypes | npt.ArrayLike,
    samples: Samples | None = None,
    snps: Snps | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """Write genotypes as a PLINK 1 fileset: an array, or the kept samples and SNPs of an open one.

    Parameters
    ----------
    path : path
        The ``.bed`` file; ``.bim`` and ``.fam`` lie next to it.
    genotypes : Genotypes or array-like of shape (SNPs, samples)
        0, 1, 2 copies of allele A1, −1 where missing. Genotypes are copied a block at a time.
    samples, snps : Samples, Snps, optional
        Names, instead of those that Genotypes have; an array's are numbered by default.
    overwrite : bool, default=False
        Whether files of these names may be replaced.

    Returns
    -------
    Path
        The ``.bed`` file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.bed_writer import write_bed
    >>> from gramian.sources.plink import open_bed
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_bed(Path(folder, "small.bed"), [[0, 1, 2], [2, -1, 0]])
    ...     open_bed(path).samples.names
    ['s1', 's2', 's3']
    """
    source = genotypes if isinstance(genotypes, Genotypes) else Genotypes.from_calls(_as_calls(genotypes))
    samples = source.samples if samples is None else samples
    snps = source.snps if snps is None else snps
    n, p = source.shape
    if (len(samples), len(snps)) != (n, p):
        raise ValueError(f"{len(snps)} SNPs and {len(samples)} samples are named; the calls are {p} × {n}.")
    with BedWriter(path, samples, overwrite=overwrite) as writer:
        for start, stop in source.spans(max(1, BLOCK // n)):
            writer.append(source.calls(start, stop), snps.take(slice(start, stop)))
    return writer.path


def _as_calls(calls: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """A table of −1, 0, 1, 2, which other numbers are refused for rather than rounded to."""
    given = np.ma.filled(calls, -1) if isinstance(calls, np.ma.MaskedArray) else np.asarray(calls)
    if given.ndim != 2:
        raise ValueError(f"Genotypes are a table of SNPs × samples, not an array of shape {given.shape}.")
    if given.dtype == np.int8:
        return given  # values are looked at when they are packed
    bad = ~np.isin(given, (-1, 0, 1, 2))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"SNP {row}, sample {column} has the genotype {given[row, column]}: 0, 1 or 2 copies of A1 are written, "
            "and −1 for missing."
        )
    return given.astype(np.int8)


def _check_text(rows: Any, names: Sequence[str], what: str, start: int = 0) -> None:
    """Refuse a field that would be read as none or as two."""
    for name in names:
        column = getattr(rows, name)
        if " ".join(column).split() != list(column):
            at = next(i for i, field in enumerate(column) if field.split() != [field])
            raise ValueError(
                f"{what} {start + at}: {name} is {column[at]!r}; fields of PLINK's files are not empty and hold no "
                "white space."
            )
