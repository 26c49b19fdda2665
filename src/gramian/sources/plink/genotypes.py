"""Genotypes of two bits each, kept packed: in a file, in memory, or on a device."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute import genotypes as loops
from gramian.compute.devices import gpu, host, is_tensor, put
from gramian.compute.threads import parallel
from gramian.sources.base import Block, Source, memory_budget
from gramian.sources.plink._counting import BLOCK, Counts, device_counts, host_counts
from gramian.sources.plink._reading import COPY, read_file
from gramian.sources.plink.tables import Samples, Snps

__all__ = ["Genotypes"]

Index = npt.NDArray[np.intp]

STRETCH = 4096  # SNPs whose products a card sums in one go
RESIDENT = 2**31  # bytes on a card that are multiplied together: more would need more memory beside them


class Genotypes(Source):
    """Some samples and some SNPs of a packed file or array, without a copy of the genotypes.

    As every source it hands out rows, one for each sample: copies of allele A1, NaN where missing. Genotypes are stored
    SNP by SNP, so that what is made for them reads :meth:`packed` blocks of SNPs instead, two bits a genotype.

    Parameters
    ----------
    bytes : uint8 array, or tensor of torch, of shape (SNPs, width)
        Rows of the file, four genotypes a byte. A tensor is counted and multiplied on its device.
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
        bytes: Any,
        samples: Samples,
        snps: Snps,
        path: Path | None = None,
        sample_index: Index | None = None,
        snp_index: Index | None = None,
    ) -> None:
        self._bytes = bytes if is_tensor(bytes) else np.asarray(bytes)
        self._all_samples, self._all_snps, self.path = samples, snps, path
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

    @classmethod
    def from_packed(cls, packed: Any, n: int, samples: Samples | None = None, snps: Snps | None = None) -> Genotypes:
        """Take packed genotypes of n samples, SNPs × ⌈n/4⌉ bytes as in a ``.bed`` file: an array, or a tensor of torch.

        Nothing is copied. A tensor on a card is counted there, and ``GenotypePCA().fit`` of it runs there.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.sources.plink import Genotypes
        >>> Genotypes.from_packed(np.array([[0b11_10_01_00]], dtype=np.uint8), 3).calls(0, 1)
        array([[ 2, -1,  1]], dtype=int8)
        """
        packed = packed if is_tensor(packed) else np.asarray(packed)
        if packed.ndim != 2 or str(packed.dtype).rpartition(".")[2] != "uint8":
            raise ValueError(
                f"Packed genotypes are a table of bytes (uint8), SNPs × ⌈n/4⌉, not {packed.dtype} of shape "
                f"{tuple(packed.shape)}. Genotypes.from_calls packs copies of an allele."
            )
        p, width = packed.shape
        if width != -(-n // 4):
            raise ValueError(f"{n} samples take {-(-n // 4)} bytes of each SNP; the table has {width}.")
        samples = Samples.numbered(n) if samples is None else samples
        snps = Snps.numbered(p) if snps is None else snps
        if (len(snps), len(samples)) != (p, n):
            raise ValueError(f"{len(snps)} SNPs and {len(samples)} samples are named; the table is of {p} and {n}.")
        return cls(packed, samples, snps)

    @property
    def values(self) -> Any:
        """The packed genotypes of all SNPs, samples left out included, where they are a tensor of torch; else None."""
        return self._bytes if is_tensor(self._bytes) else None

    @property
    def complete(self) -> bool:
        """Whether all samples of the file are kept."""
        return len(self.sample_index) == self.n_file

    @property
    def counted(self) -> npt.NDArray[np.int64] | None:
        """What :meth:`snp_counts` returns, where it is known without a pass."""
        return self._by_snp

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
        """SNPs start to stop, as stored: four of all the file's samples in a byte; a tensor's are fetched."""
        found = self._rows(start, stop)
        return host(found) if is_tensor(found) else found  # type: ignore[no-any-return]

    def _rows(self, start: int, stop: int) -> Any:
        """The same, where they live."""
        if self._run and self.shape[1]:
            first = int(self.snp_index[0])
            return self._bytes[first + start : first + min(stop, self.shape[1])]
        index = self.snp_index[start:stop]
        if self.values is None:
            return self._bytes[index]
        return gpu().uploads.padded_rows(self.values, put(index, self.values.device))

    def read_into(self, start: int, stop: int, out: npt.NDArray[np.uint8]) -> None:
        """Copy SNPs start to stop, as stored, by all threads; of a file, without mapping its pages."""
        mapped = getattr(self._bytes, "base", None)
        if isinstance(mapped, np.memmap) and self._run and self.path is not None and hasattr(os, "preadv"):
            read_file(self.path, mapped.offset + (int(self.snp_index[0]) + start) * self.width, out)
            return
        step = max(1, COPY // max(1, self.width))

        def copy(share: Any) -> None:
            for first in share:
                last = min(first + step, stop)
                out[first - start : last - start] = self.packed(first, last)

        parallel(copy, range(start, stop, step))
        self.give_back()

    def on(self, device: Any) -> Genotypes:
        """These SNPs with their bytes on a device, a ``torch.device``, at whole words; counts that are known stay."""
        on, here = gpu().uploads, self.values is not None and self.values.device == device
        if here and on.aligned(self.values):
            return self
        if here:  # rows of a card's tensor that are read byte by byte are read many times as fast from a padded copy
            bytes_ = on.padded_rows(self.values, put(self.snp_index, device))
        else:
            bytes_ = on.upload(self.read_into, self.shape[1], self.width, device)
        moved = Genotypes(bytes_, self._all_samples, self.snps, sample_index=self.sample_index)
        moved.samples, moved._counts, moved._by_snp = self.samples, self._counts, self._by_snp
        return moved

    def blocks_on(self, device: Any, conveyor: Any = None) -> Iterator[tuple[int, int, Any]]:
        """Yield (start, stop, packed SNPs on a device): views of what is there, else each good until the next but one.

        Parameters
        ----------
        device : torch.device
            Where.
        conveyor : Conveyor, optional
            To go through, where there is one from an earlier pass.
        """
        if self.values is not None and self.values.device == device:
            for start, stop in self.spans(max(STRETCH, RESIDENT // max(1, self.width) // STRETCH * STRETCH)):
                yield start, stop, self._rows(start, stop)
            return
        carry = gpu().uploads.Conveyor(self.width, device, self.shape[1]) if conveyor is None else conveyor
        yield from carry(self.read_into, carry.spans(self.shape[1]))

    def calls(self, start: int, stop: int) -> npt.NDArray[np.int8]:
        """Copies of A1 of SNPs start to stop × samples, −1 where missing."""
        found = loops.calls(self.packed(start, stop), self.n_file)
        return found if self.complete else found[:, self.sample_index]

    def bytes_of(self, start: int, stop: int) -> tuple[slice | Index, Index, int]:
        """Which bytes of a row hold samples start to stop, where in them the samples are, and how many bytes."""
        index = self.sample_index[start:stop]
        held, at = np.unique(index // 4, return_inverse=True)
        one_stretch = held[-1] - held[0] == len(held) - 1
        return slice(int(held[0]), int(held[-1]) + 1) if one_stretch else held, 4 * at + index % 4, len(held)

    def spans(self, rows: int) -> list[tuple[int, int]]:
        """(start, stop) of blocks of SNPs."""
        return [(start, min(start + rows, self.shape[1])) for start in range(0, self.shape[1], rows)]

    def counts(self, device: Any = None) -> Counts:
        """How often each genotype occurs, by SNP and by sample: one pass, once, on a device where one is given."""
        if self._counts is None:
            device = self.values.device if device is None and self.values is not None else device
            on = None if device is None else device_counts(self, self.blocks_on(device), device)
            self._counts = host_counts(self) if on is None else on
            self._by_snp = self._counts.by_snp
        return self._counts

    def snp_counts(self) -> npt.NDArray[np.int64]:
        """How often each genotype occurs, by SNP: known without a pass where a view of more SNPs has counted."""
        return self.counts().by_snp if self._by_snp is None else self._by_snp

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
        pages = getattr(getattr(self._bytes, "base", None), "_mmap", None)
        if pages is not None and self._bytes.nbytes > memory_budget() and hasattr(mmap, "MADV_DONTNEED"):
            pages.madvise(mmap.MADV_DONTNEED)


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
