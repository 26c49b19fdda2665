"""Genotypes in PLINK's binary files: a memory map of two bits each, kept packed."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.compute import genotypes as loops
from gramian.compute.threads import parallel
from gramian.sources.base import Block, Source, memory_budget
from gramian.sources.plink.tables import Samples, Snps, read_bim, read_fam

__all__ = ["Counts", "Genotypes", "open_bed"]

Index = npt.NDArray[np.intp]

MAGIC = b"\x6c\x1b"
SNP_MAJOR, SAMPLE_MAJOR = 1, 0
BLOCK = 2**20  # packed bytes looked at together: their temporary arrays stay in a core's cache


class Counts(NamedTuple):
    """How often each genotype occurs: two A1, one, none, missing.

    Attributes
    ----------
    by_snp : ndarray of shape (p, 4)
        Among the samples, for each SNP.
    by_sample : ndarray of shape (n, 4)
        Among the SNPs, for each sample.
    """

    by_snp: npt.NDArray[np.int64]
    by_sample: npt.NDArray[np.int64]


class Genotypes(Source):
    """Some samples and some SNPs of a packed file or array, without a copy of the genotypes.

    As every source it hands out rows, one for each sample: copies of allele A1, NaN where missing. Genotypes are stored
    SNP by SNP, so that what is made for them reads :meth:`packed` blocks of SNPs instead, two bits a genotype.

    Parameters
    ----------
    bytes : ndarray of uint8 of shape (SNPs, width)
        Rows of the file, four genotypes a byte.
    samples, snps : Samples, Snps
        Of the whole file.
    path : Path, optional
        Where the bytes come from.
    sample_index, snp_index : ndarray of int, optional
        The rows of ``samples`` and ``snps`` that are kept, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.sources.plink import Genotypes
    >>> G = Genotypes.from_calls([[0, 1, 2], [2, -1, 0]])
    >>> G.shape, G.counts().by_snp.tolist()
    ((3, 2), [[1, 1, 1, 0], [1, 0, 1, 1]])
    >>> G.select(samples=[True, False, True]).calls(0, 2)
    array([[0, 2],
           [2, 0]], dtype=int8)
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self,
        bytes: npt.NDArray[np.uint8],
        samples: Samples,
        snps: Snps,
        path: Path | None = None,
        sample_index: Index | None = None,
        snp_index: Index | None = None,
    ) -> None:
        self._bytes, self._all_samples, self._all_snps, self.path = np.asarray(bytes), samples, snps, path
        self.n_file = len(samples)
        self.sample_index = np.arange(len(samples)) if sample_index is None else sample_index
        self.snp_index = np.arange(len(snps)) if snp_index is None else snp_index
        self.samples = samples if sample_index is None else samples.take(sample_index)
        self.snps = snps if snp_index is None else snps.take(snp_index)
        self.shape = (len(self.samples), len(self.snps))
        self.resident = path is None
        self._counts: Counts | None = None
        self._by_snp: npt.NDArray[np.int64] | None = None
        # one stretch of the file needs no index to be read
        self._run = self.shape[1] == 0 or bool(self.snp_index[-1] - self.snp_index[0] == self.shape[1] - 1)

    @classmethod
    def from_calls(cls, calls: npt.ArrayLike, samples: Samples | None = None, snps: Snps | None = None) -> Genotypes:
        """Pack an array of SNPs × samples with 0, 1, 2 copies of A1 and −1 for missing."""
        calls = np.asarray(calls)
        if calls.ndim != 2:
            raise ValueError(f"Genotypes are a table of SNPs × samples, not an array of shape {calls.shape}.")
        p, n = calls.shape
        samples = Samples.numbered(n) if samples is None else samples
        snps = Snps.numbered(p) if snps is None else snps
        if (len(snps), len(samples)) != (p, n):
            raise ValueError(f"{len(snps)} SNPs and {len(samples)} samples are named; the calls are {p} × {n}.")
        return cls(loops.pack(calls), samples, snps)

    @property
    def feature_names(self) -> list[str]:  # type: ignore[override]
        """The names of the SNPs."""
        return [str(name) for name in self.snps.id]

    @property
    def width(self) -> int:
        """Bytes of a SNP."""
        return -(-self.n_file // 4)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of the names: which are missing, which are given twice."""
        return (*self.samples.notes(), *self.snps.notes())

    def select(self, samples: Any = None, snps: Any = None) -> Genotypes:
        """A view of some samples and SNPs: masks, or ascending indices, into those of this one."""
        rows = None if samples is None else _index(samples, self.shape[0], "samples")
        columns = None if snps is None else _index(snps, self.shape[1], "snps")
        view = Genotypes(
            self._bytes,
            self._all_samples,
            self._all_snps,
            self.path,
            self.sample_index if rows is None else self.sample_index[rows],
            self.snp_index if columns is None else self.snp_index[columns],
        )
        if rows is None and self._by_snp is not None:  # the same samples: each SNP's counts stay as they are
            view._by_snp = self._by_snp if columns is None else self._by_snp[columns]
        return view

    def packed(self, start: int, stop: int) -> npt.NDArray[np.uint8]:
        """SNPs start to stop, as stored: four of all the file's samples in a byte."""
        if self._run and self.shape[1]:
            first = int(self.snp_index[0])
            return self._bytes[first + start : first + min(stop, self.shape[1])]
        return self._bytes[self.snp_index[start:stop]]

    def calls(self, start: int, stop: int) -> npt.NDArray[np.int8]:
        """Copies of A1 of SNPs start to stop × samples, −1 where missing."""
        found = loops.calls(self.packed(start, stop), self.n_file)
        return found if len(self.sample_index) == self.n_file else found[:, self.sample_index]

    def bytes_of(self, start: int, stop: int) -> tuple[slice | Index, Index, int]:
        """Which bytes of a row hold samples start to stop, where in them the samples are, and how many bytes."""
        index = self.sample_index[start:stop]
        held, at = np.unique(index // 4, return_inverse=True)
        one_stretch = held[-1] - held[0] == len(held) - 1
        return slice(int(held[0]), int(held[-1]) + 1) if one_stretch else held, 4 * at + index % 4, len(held)

    def spans(self, rows: int) -> list[tuple[int, int]]:
        """(start, stop) of blocks of SNPs."""
        return [(start, min(start + rows, self.shape[1])) for start in range(0, self.shape[1], rows)]

    def counts(self) -> Counts:
        """How often each genotype occurs, by SNP and by sample: one pass, once."""
        if self._counts is None:
            self._counts = self._count()
            self._by_snp = self._counts.by_snp
        return self._counts

    def snp_counts(self) -> npt.NDArray[np.int64]:
        """How often each genotype occurs, by SNP: known without a pass where a view of more SNPs has counted."""
        return self.counts().by_snp if self._by_snp is None else self._by_snp

    def _count(self) -> Counts:
        mask = loops.sample_mask(self.sample_index, self.width)
        n = self.shape[0]
        by_snp = np.zeros((self.shape[1], 4), dtype=np.int64)

        def work(share: Any) -> npt.NDArray[np.int64]:
            by_sample = np.zeros((4 * self.width, 4), dtype=np.int64)
            for start, stop in share:
                block = self.packed(start, stop)
                by_snp[start:stop] = loops.snp_counts(block, mask, n)
                by_sample += loops.sample_counts(block)
                self.give_back()
            return by_sample

        spans = self.spans(max(1, BLOCK // max(1, self.width)))
        parts = parallel(work, spans) if spans else [np.zeros((4 * self.width, 4), dtype=np.int64)]
        return Counts(by_snp, np.sum(parts, axis=0)[self.sample_index])

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks of samples: copies of A1 in float64, NaN where missing."""
        for start, stop in self.ranges(rows, 12 * self.shape[1]):
            which, place, width = self.bytes_of(start, stop)
            values = np.empty((stop - start, self.shape[1]))
            for first, last in self.spans(max(1, BLOCK // max(width, self.width if not self._run else 1))):
                found = loops.calls(self.packed(first, last)[:, which], 4 * width).T[place]
                values[:, first:last] = np.where(found < 0, np.nan, found)
                self.give_back()
            yield Block(start, stop, values)

    def give_back(self) -> None:
        """Drop a large map's pages from memory: they count as ours until the system takes them back."""
        pages = getattr(self._bytes.base, "_mmap", None)
        if pages is not None and self._bytes.nbytes > memory_budget() and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)


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
    return Genotypes(np.memmap(bed, np.uint8, "r", 3, (len(snps), width)), samples, snps, bed)


def _check_magic(bed: Path) -> None:
    with bed.open("rb") as file:
        head = file.read(3)
    if len(head) < 3 or head[:2] != MAGIC:
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
    expected = 3 + p * width
    if actual == expected:
        return
    rows, rest = divmod(actual - 3, width)
    what = "truncated, or its .bim or .fam belongs to another file" if actual < expected else "too long"
    holds = f"It holds {rows} SNPs of {n} samples" + (f" and {rest} bytes." if rest else ".")
    raise ValueError(
        f"{bed}: {what}: {n} samples ({bed.stem}.fam) × {p} SNPs ({bed.stem}.bim) take {expected} bytes, "
        f"the file has {actual}. {holds} Use the three files that were written together."
    )


def _index(chosen: Any, size: int, name: str) -> Index:
    """Masks and ascending indices, as indices."""
    given = np.asarray(chosen)
    if given.dtype == bool:
        if given.shape != (size,):
            raise ValueError(f"{name}: a mask of {given.shape} for {size} of them.")
        return np.flatnonzero(given)
    if given.dtype.kind not in "iu" and given.size:
        raise ValueError(
            f"{name}: a mask or indices were expected, not {given.dtype} values such as {given.flat[0]!r}."
        )
    found = given.astype(np.intp).reshape(-1)
    if len(found) and (found[0] < 0 or found[-1] >= size or np.any(np.diff(found) <= 0)):
        raise ValueError(f"{name}: indices must ascend from 0 to {size - 1}, each once.")
    return found
