"""Standardised genotypes as an operator: decoded inside each product, by NumPy or on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace
from scipy.linalg.blas import dsyrk, ssyrk

from gramian.compute.devices import describe, free_bytes, gpu, refuse_beyond_device, resolve, to_device, torch_dtype
from gramian.compute.executor import HERE, SHARES, Executor, current_executor
from gramian.compute.genotypes import Decoder
from gramian.compute.threads import add_to, n_threads, parallel, parallel_sum, quiet_blas, split_runs
from gramian.operators.base import Operator
from gramian.sources.checkpoint import remember
from gramian.sources.plink import Genotypes

Array = Any
Span = tuple[int, int]

# Bytes of decoded genotypes: larger tiles multiply faster alone, smaller ones when two cores share a cache.
TILE_BYTES = 2**21
SAMPLE_BYTES = 2**26  # of a block of whole rows of Z
TABLE = 1024  # entries of a SNP's table: more than its genotypes where samples are few
LEAST = 32  # SNPs of a tile, however many samples there are
GRAM_ROWS = 1024  # SNPs of one update of a Gram matrix
GRAM_SAMPLES = 512  # up to which a Gram matrix is summed by tiles, one for each thread
GRAM_SUM = 8  # updates that are summed in the operator's dtype before they are added in float64


class GenotypeOperator(Operator):
    r"""Z = (G − 1ḡᵀ) diag(1/s) for packed genotypes G (samples × SNPs), with 0 where a genotype is missing.

    SNPs are stored one after the other, so that ZZᵀU takes one pass, Σ_b Z_b(Z_bᵀU) over blocks of SNPs, each decoded
    once for both products. Sums over blocks are kept in float64.

    Parameters
    ----------
    source : Genotypes
        Samples and SNPs.
    mean, scale : array of shape (p,), optional
        Of each SNP: subtracted, and divided by. The mean copies of A1 and 1 where not given.
    dtype : dtype, default=float32
        Of tiles and products.
    progress : callable, optional
        Called with the number of SNPs in a block and of all, after each block, by whichever thread has done it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import GenotypeOperator
    >>> from gramian.sources.plink import Genotypes
    >>> A = GenotypeOperator(Genotypes.from_calls([[0, 1, 2], [2, -1, 0]]), dtype=np.float64)
    >>> A @ np.ones(2)
    array([0., 0., 0.])
    >>> A.to_dense()
    array([[-1.,  1.],
           [ 0.,  0.],
           [ 1., -1.]])
    """

    by_columns = True
    line: Any  # (1/s, −ḡ/s) of each SNP

    def __init__(
        self,
        source: Genotypes,
        mean: npt.ArrayLike | None = None,
        scale: npt.ArrayLike | None = None,
        *,
        dtype: Any = np.float32,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.source, self.shape = source, source.shape
        self.dtype, self.resident = np.dtype(dtype), source.resident
        self.line = _line(source, mean, scale)
        self.progress = progress
        self._passes = 0

    def calls(self) -> GenotypeOperator:
        """1 where there is a call and 0 where it is missing: its Gram matrix counts the calls that two samples share.

        Examples
        --------
        >>> from gramian.operators import GenotypeOperator
        >>> from gramian.sources.plink import Genotypes
        >>> GenotypeOperator(Genotypes.from_calls([[0, 1, 2], [2, -1, 0]])).calls().cogram()
        array([[2., 1., 2.],
               [1., 1., 1.],
               [2., 1., 2.]])
        """
        A = self._like(np.zeros(self.shape[1]))
        A.line[:, 0], A.line[:, 1] = 0.0, 1.0
        return A

    def _like(self, mean: npt.ArrayLike) -> GenotypeOperator:
        return GenotypeOperator(self.source, mean, dtype=self.dtype, progress=self.progress)

    @property
    def passes(self) -> int:
        """How often the genotypes have been read."""
        return self._passes

    def matmat(self, V: Array) -> Array:
        """Z V, summed over blocks of SNPs."""
        return self._sum_tiles(V.shape[1], _Times(V))

    def rmatmat(self, U: Array) -> Array:
        """Zᵀ U, block by block."""
        out, padded = np.empty((self.shape[1], U.shape[1]), self.dtype), self._pad_rows(U)

        def work(share: Sequence[Span]) -> None:
            for T, start, stop in self._tiles(share):
                np.dot(T, padded, out=out[start:stop])

        def multiply() -> Array:
            executor = self._elsewhere()
            if executor is None:
                parallel(work, self.source.spans(self._step()))
                return out
            shares = self._shares(_join(self.source.spans(self._step()), SHARES))
            found = executor.map(_Adjoint(padded), shares)
            for (start, stop), values in zip(_join(self.source.spans(self._step()), SHARES), found, strict=True):
                out[start:stop] = values
                self._report(stop - start)
            return out

        self._passes += 1
        return remember(f"transposed product with {self!r}", (U, self.line), multiply)

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """Z diag(w) Zᵀ U: each block decoded once for both products, one pass."""
        return self._sum_tiles(U.shape[1], _TimesBoth(self._pad_rows(U), w))

    def cogram(self, w: Array | None = None) -> Array:
        """Z diag(w) Zᵀ in float64: one pass, blocks of SNPs multiplied in the operator's dtype."""
        self._passes += 1
        n = self.shape[0]
        if n <= GRAM_SAMPLES:  # so small that each thread has one: the same bits however many there are
            return self._sum((n, n), _Squares(self.source.sample_index, w))
        executor = self._elsewhere()
        if executor is None:
            blocks = ((first, last, self._snps(first, last)) for first, last in self.source.spans(GRAM_ROWS))
            return self._gram(self.shape[0], blocks, w)
        executor.check_room(3.0 * n * n * self.dtype.itemsize, f"three matrices of {n} x {n}")
        total, groups = np.zeros((n, n), order="F"), self.source.spans(GRAM_ROWS * GRAM_SUM)
        parts = executor.map(_GramPart(w is not None), self._shares(groups, w))
        for (start, stop), part in zip(groups, parts, strict=True):
            total += part
            self._report(stop - start)
        return _mirror(total)

    def gram(self, w: Array | None = None) -> Array:
        """Zᵀ diag(w) Z in float64: one pass by samples, for few SNPs."""
        return self._gram(self.shape[1], self._sample_blocks(), w)

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield blocks of samples of Z V; of Z itself where no V is given."""
        for start, stop, block in self._sample_blocks():
            yield start, stop, block if V is None else block @ V

    def _pad_rows(self, U: Array) -> Array:
        """U with rows of zeros for the samples that are in the bytes and not kept."""
        out = np.zeros((4 * self.source.width, U.shape[1]), self.dtype)
        out[self.source.sample_index] = U
        return out

    def _step(self, width: int | None = None) -> int:
        """SNPs of a tile with so many bytes each, all by default; neither it nor its tables outgrow their share."""
        entries = max(4 * (self.source.width if width is None else width), TABLE)
        return max(LEAST, int(TILE_BYTES // (entries * self.dtype.itemsize)))

    def _sum_tiles(self, k: int, part: Any) -> Array:
        """The sum of k × samples parts, one of each tile, as samples × k."""
        self._passes += 1
        sides = k, 4 * self.source.width
        total = remember(f"product with {self!r}", (part, self.line), lambda: self._sum(sides, part))
        return np.ascontiguousarray(total.T[self.source.sample_index], dtype=self.dtype)

    def _sum(self, sides: tuple[int, int], part: Any) -> Array:
        """The sum of the parts of all tiles, by the threads of this process or the workers of a cluster."""
        spans, executor = self.source.spans(self._step()), self._elsewhere()
        if executor is None:
            return parallel_sum(lambda share: self._add_tiles(sides, part, share), spans, add_to)
        executor.check_room(24.0 * sides[0] * sides[1] + 8 * TILE_BYTES, f"three matrices of {sides[0]} x {sides[1]}")
        runs = [(run[0][0], run[-1][1]) for run in split_runs(spans)]
        shares = [(A, part.cut(start, stop)) for A, (start, stop) in zip(self._shares(runs), runs, strict=True)]
        total: Array = executor.reduce(_SumTiles(sides), shares, _add)
        self._report(self.shape[1])
        return total

    def _add_tiles(self, sides: tuple[int, int], part: Any, share: Sequence[Span]) -> Array:
        total = np.zeros(sides)
        for T, start, stop in self._tiles(share):
            total += part(T, start, stop)
        return total

    def _elsewhere(self) -> Executor | None:
        """Return whose workers read the genotypes; None where this process does."""
        executor = current_executor()
        return None if executor is HERE or not self.shape[1] or not self.source.has_address else executor

    def _shares(self, runs: Sequence[Span], w: Array | None = None) -> list[Any]:
        """Return operators of some SNPs each, with what workers read them by; their weights are kept beside."""
        found = []
        for start, stop in runs:
            share: Any = copy(self)
            share.source, share.line = self.source.share_of_snps(start, stop), self.line[start:stop]
            share.progress = None
            share.shape, share.weights = (self.shape[0], stop - start), None if w is None else w[start:stop]
            found.append(share)
        return found

    def _report(self, snps: int) -> None:
        if self.progress is not None:
            self.progress(snps, self.shape[1])

    def _tiles(self, share: Sequence[Span]) -> Iterator[tuple[Array, int, int]]:
        """Decode the blocks of a share, one after the other, into one buffer."""
        decode = Decoder(self._step(), self.source.width, self.dtype)
        for start, stop in share:
            yield decode(self.source.packed(start, stop), self.line[start:stop]), start, stop
            self.source.give_back()
            if self.progress is not None:
                self.progress(stop - start, self.shape[1])

    def _snps(self, first: int, last: int) -> Array:
        """Decoded SNPs × kept samples, by all threads, for products that BLAS shares out itself."""
        out = np.empty((last - first, self.shape[0]), self.dtype)
        step = max(1, min(self._step(), -(-(last - first) // n_threads())))
        spans = [(start, min(start + step, last)) for start in range(first, last, step)]

        def work(share: Sequence[Span]) -> None:
            for T, start, stop in self._tiles(share):
                np.take(T, self.source.sample_index, axis=1, out=out[start - first : stop - first], mode="clip")

        parallel(work, spans)
        return out

    def _sample_blocks(self) -> Iterator[tuple[int, int, Array]]:
        """Decoded blocks of samples × SNPs."""
        self._passes += 1
        p = self.shape[1]
        for start, stop in self.source.ranges(max(1, SAMPLE_BYTES // max(1, p * self.dtype.itemsize)), 1):
            which, place, width = self.source.bytes_of(start, stop)
            out, step = np.empty((stop - start, p), self.dtype), self._step(width)
            decode = Decoder(step, width, self.dtype)
            for first, last in self.source.spans(step):
                T = decode(self.source.packed(first, last)[:, which], self.line[first:last])
                out[:, first:last] = T.T[place]
                self.source.give_back()
            yield start, stop, out

    def _gram(self, size: int, blocks: Iterator[tuple[int, int, Array]], w: Array | None) -> Array:
        """Σ Mᵀ diag(w) M over blocks of rows M, the lower half by BLAS in the operator's dtype, added in float64."""
        total, part = np.zeros((size, size), order="F"), np.zeros((size, size), self.dtype, order="F")
        for i, (start, stop, M) in enumerate(blocks):
            _add_square(part, M, None if w is None else w[start:stop])
            if i % GRAM_SUM == GRAM_SUM - 1:
                total += part
                part[:] = 0
        total += part
        return _mirror(total)


def _add_square(part: Array, M: Array, w: Array | None) -> None:
    """Add Mᵀ diag(w) M to the lower half of a matrix, by BLAS in its dtype."""
    syrk = ssyrk if part.dtype == np.float32 else dsyrk
    if w is None:
        syrk(1.0, np.ascontiguousarray(M).T, 1.0, part, lower=1, overwrite_c=1)
        return
    root = np.sqrt(np.abs(w)).astype(M.dtype)[:, None]  # those of positive and those of negative weight apart
    for sign, rows in ((1.0, w > 0), (-1.0, w < 0)):
        if rows.any():
            syrk(sign, np.ascontiguousarray(M[rows] * root[rows]).T, 1.0, part, lower=1, overwrite_c=1)


def _mirror(total: Array) -> Array:
    """The upper half from the lower one, in place: a large matrix is there once."""
    for start in range(0, len(total), GRAM_ROWS):
        stop = start + GRAM_ROWS
        own = total[start:stop, start:stop]
        own[:] = np.tril(own) + np.tril(own, -1).T
        total[start:stop, stop:] = total[stop:, start:stop].T
    return total


def _join(spans: Sequence[Span], most: int) -> list[Span]:
    """At most so many stretches of consecutive blocks."""
    count = min(most, len(spans))
    runs = [spans[len(spans) * i // count : len(spans) * (i + 1) // count] for i in range(count)]
    return [(run[0][0], run[-1][1]) for run in runs]


def _add(total: Array, other: Array) -> Array:
    """The sum of two arrays, which are left as they are."""
    return add_to(total.copy(), other)


@dataclass(frozen=True, eq=False)
class _Times:
    """VᵀT of a tile T of decoded SNPs."""

    V: Array

    def __call__(self, T: Array, start: int, stop: int) -> Array:
        return self.V[start:stop].T @ T

    def cut(self, start: int, stop: int) -> _Times:
        return _Times(self.V[start:stop])


@dataclass(frozen=True, eq=False)
class _TimesBoth:
    """(diag(w) T U)ᵀT of a tile T."""

    padded: Array
    w: Array | None

    def __call__(self, T: Array, start: int, stop: int) -> Array:
        W = T @ self.padded
        return (W if self.w is None else self.w[start:stop, None].astype(T.dtype) * W).T @ T

    def cut(self, start: int, stop: int) -> _TimesBoth:
        return _TimesBoth(self.padded, None if self.w is None else self.w[start:stop])


@dataclass(frozen=True, eq=False)
class _Squares:
    """Mᵀ diag(w) M of the kept samples M of a tile."""

    sample_index: Array
    w: Array | None

    def __call__(self, T: Array, start: int, stop: int) -> Array:
        M = T[:, self.sample_index]
        return (M if self.w is None else self.w[start:stop, None].astype(T.dtype) * M).T @ M

    def cut(self, start: int, stop: int) -> _Squares:
        return _Squares(self.sample_index, None if self.w is None else self.w[start:stop])


@dataclass(frozen=True, eq=False)
class _SumTiles:
    """The sum of the parts of all tiles of a share."""

    sides: tuple[int, int]

    def __call__(self, share: tuple[GenotypeOperator, Any]) -> Array:
        A, part = share
        with quiet_blas():
            return A._add_tiles(self.sides, part, _spans(A))

    def describe(self, share: tuple[GenotypeOperator, Any]) -> str:
        return str(share[0].source)


@dataclass(frozen=True, eq=False)
class _Adjoint:
    """T U of a share of SNPs."""

    padded: Array

    def __call__(self, A: GenotypeOperator) -> Array:
        with quiet_blas():
            return np.concatenate([T @ self.padded for T, _, _ in A._tiles(_spans(A))])

    def describe(self, A: GenotypeOperator) -> str:
        return str(A.source)


@dataclass(frozen=True)
class _GramPart:
    """Mᵀ diag(w) M of a share of SNPs, its lower half."""

    weighted: bool

    def __call__(self, A: Any) -> Array:
        part = np.zeros((A.shape[0],) * 2, A.dtype, order="F")
        for start in range(0, A.shape[1], GRAM_ROWS):
            stop = min(start + GRAM_ROWS, A.shape[1])
            _add_square(part, A._snps(start, stop), A.weights[start:stop] if self.weighted else None)
        return part

    def describe(self, A: Any) -> str:
        return str(A.source)


def _spans(A: GenotypeOperator) -> list[Span]:
    """The tiles of a share, as they are cut in the whole."""
    step = A._step()
    return [(start, min(start + step, A.shape[1])) for start in range(0, A.shape[1], step)]


def _line(source: Genotypes, mean: npt.ArrayLike | None, scale: npt.ArrayLike | None) -> npt.NDArray[np.float64]:
    """(1/s, −ḡ/s) of each SNP: z = (g − ḡ)/s as a straight line in g; the mean copies of A1 and 1 where not given."""
    p = source.shape[1]
    if mean is None:
        two, one, none, _ = source.snp_counts().T
        mean = (2.0 * two + one) / np.maximum(two + one + none, 1)  # 0 where there is no call
    mean = np.asarray(mean, dtype=np.float64)
    scale = np.ones(p) if scale is None else np.asarray(scale, dtype=np.float64)
    for name, given in (("mean", mean), ("scale", scale)):
        if given.shape != (p,):
            raise ValueError(f"{name} has the shape {given.shape}; there are {p} SNPs.")
    return np.stack([1 / scale, -mean / scale], axis=1)


SHARE = 0.8  # of a device's free memory that genotypes may take: the rest is for vectors
COLUMNS = 64  # that a solver multiplies at once, as a rule at most
FEWEST = 16  # ... and at least
GRAM_ROWS_DEVICE = 4096  # SNPs of one update of a Gram matrix
PEAK = 8.0  # times the root mean square of a column: no entry of 10⁷ normal numbers is larger
LEANING = 1e-3  # share of a column's length along 1 from which that part is multiplied by itself
WORDS = {
    "double": "float64",
    "accurate": "fp16 tensor cores, two parts, relative error at most 2e-6",
    "fast": "fp16 tensor cores, one part, relative error at most 5e-4",
    "plain": "float32 in tiles, relative error at most 2e-6",
}


def upload_if_room(source: Genotypes, device: Any, columns: int = COLUMNS, mode: str = "accurate") -> Genotypes:
    """The source with its bytes on a device, where the vectors of a solver have room there too; else as it is."""
    (n, p), on = source.shape, gpu()
    if source.values is not None and source.values.device == device and on.uploads.is_aligned(source.values):
        return source
    work = on.genotypes.working_bytes(source.width, 4096, columns, mode) + 64 * n * columns
    need = p * on.uploads.row_bytes(source.width) + 4 * on.uploads.BUFFER
    return source.on(device) if need <= SHARE * (free_bytes(device) - work) else source


class DeviceGenotypeOperator(GenotypeOperator):
    r"""Z = (G − 1ḡᵀ) diag(1/s) for packed genotypes, 0 where missing, multiplied on a device.

    Genotypes that fit are uploaded once and stay packed there; others come through two pinned buffers, the next
    block while the last is multiplied, and ZZᵀU uses each block for both of its products.

    Parameters
    ----------
    source : Genotypes
        Samples and SNPs.
    mean, scale : array of shape (p,), optional
        Of each SNP: subtracted, and divided by. The mean copies of A1 and 1 where not given.
    device : torch.device
        Where to multiply. ``torch.device("cpu")`` does the same with torch on the CPU.
    dtype : dtype, default=float32
        Of products; sums over blocks are in float64.
    tolerance : float, optional
        Of what is computed from the products: from 2e-3 on they are made faster, with an error of at most 5e-4.
    progress : callable, optional
        Called with the number of SNPs in a block and of all, after each block.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from gramian.operators import DeviceGenotypeOperator
    >>> from gramian.sources.plink import Genotypes
    >>> G = Genotypes.from_calls([[0, 1, 2], [2, -1, 0]])
    >>> A = DeviceGenotypeOperator(G, device=torch.device("cpu"), dtype=np.float64)
    >>> A.to_dense()
    tensor([[-1.,  1.],
            [ 0.,  0.],
            [ 1., -1.]], dtype=torch.float64)
    """

    def __init__(
        self,
        source: Genotypes,
        mean: npt.ArrayLike | None = None,
        scale: npt.ArrayLike | None = None,
        *,
        device: Any,
        dtype: Any = np.float32,
        tolerance: float | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.device = resolve(device)
        self.loops, self.dtype = gpu().genotypes, torch_dtype(dtype)
        self.mode = self.loops.choose_mode(self.dtype, tolerance)
        self.source = upload_if_room(source, self.device, mode=self.mode)
        here = self.source.values
        self.shape, self.resident = source.shape, here is not None and here.device == self.device
        self.line = to_device(_line(source, mean, scale), self.device)
        self.xp = array_namespace(self.line)
        self.tolerance, self.progress = tolerance, progress
        self._missing = None if source.counted is None else source.counted[:, 3] > 0
        self._index = None if source.complete else to_device(source.sample_index, self.device)
        self._sums: Array | None = None  # Zᵀ1, once it was needed
        self._passes, self._uploader = 0, None
        if not self.resident:  # streamed through the device, where there is room for buffers and a few columns
            self._uploader = uploader = gpu().uploads.Uploader(source.width, self.device, self.shape[1], padded=True)
            work = self.loops.working_bytes(source.width, uploader.rows, FEWEST, self.mode)
            what = f"Streaming {self.shape[1]:,} SNPs in blocks of {uploader.rows:,}"
            remedy = ("Use ", ("device", "cpu"), ", or free memory there.")
            refuse_beyond_device(work + uploader.nbytes, self.device, what, remedy)

    @property
    def precision(self) -> str:  # type: ignore[override]
        """The device, the mode and its error."""
        tensor = self.mode == "double" or self.loops.uses_triton(self.line)
        words = f"{self.mode} mode: {WORDS[self.mode if tensor else 'plain']}"
        kept = "" if self.resident else ", genotypes streamed through it"
        return f"products on {describe(self.device)} in {words}{kept}"

    @property
    def epsilon(self) -> float:
        """Relative error of the products, by their mode."""
        return float(self.loops.ERRORS[self.mode])

    def _like(self, mean: npt.ArrayLike) -> DeviceGenotypeOperator:
        options = {"device": self.device, "dtype": self.dtype, "progress": self.progress}
        return DeviceGenotypeOperator(self.source, mean, **options)

    def matmat(self, V: Array) -> Array:
        """Z V, summed over blocks of SNPs."""
        total = self._zeros(V.shape[1])
        for start, stop, block, how in self._blocks():
            self.loops.product(block, self.line[start:stop], V[start:stop], **how, out=total)
        return self._take_kept(total)

    def rmatmat(self, U: Array) -> Array:
        """Zᵀ U, block by block."""
        times = self._times(U)
        return self.xp.concat([times(*given) for given in self._blocks()], axis=0)

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """Z diag(w) Zᵀ U: each block is used for both products, one pass."""
        total, times = self._zeros(U.shape[1]), self._times(U)
        for start, stop, block, how in self._blocks():
            W = times(start, stop, block, how)
            W = W if w is None else w[start:stop, None] * W
            self.loops.product(block, self.line[start:stop], W, **how, out=total)
        return self._take_kept(total)

    def cogram(self, w: Array | None = None) -> Array:
        """Z diag(w) Zᵀ in float64: blocks of SNPs decoded and multiplied in the operator's dtype, one pass."""
        n = self.shape[0]
        nbytes = (8 + 2 * self.line.element_size()) * n * n + 16 * GRAM_ROWS_DEVICE * n
        remedy = ("Use ", ("solver", "krylov"), ", or ", ("device", "cpu"), ".")
        refuse_beyond_device(nbytes, self.device, f"The {n}×{n} matrix ZZᵀ", remedy)
        total = self.xp.zeros((n, n), dtype=self.line.dtype, device=self.device)
        for start, stop, block, _ in self._blocks():
            for first in range(start, stop, GRAM_ROWS_DEVICE):
                last = min(first + GRAM_ROWS_DEVICE, stop)
                Z = self._decode_block(block[first - start : last - start], first)
                Z = Z[:, :n] if self._index is None else Z[:, self._index]
                total += self.loops.multiply(Z.T if w is None else Z.T * w[first:last], Z)
        return total

    def gram(self, w: Array | None = None) -> Array:
        """Zᵀ diag(w) Z, for few SNPs."""
        return Operator.gram(self, w)

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield blocks of samples of Z; of Z V all at once."""
        n, p = self.shape
        if V is not None:
            yield 0, n, self.matmat(V)
            return
        for start, stop in self.source.ranges(max(1, SAMPLE_BYTES // max(1, p * 8)), 1):
            which, place, _ = self.source.bytes_of(start, stop)
            where = to_device(place, self.device)
            parts = [self._decode_block(block[:, which], first).T[where] for first, _, block, _ in self._blocks()]
            yield start, stop, self.xp.concat(parts, axis=1)

    def _blocks(self) -> Iterator[tuple[int, int, Array, dict[str, Any]]]:
        """Blocks of SNPs on the device, and how to multiply them: half the work where no genotype is missing."""
        self._passes += 1
        for start, stop, block in self.source.blocks_on(self.device, self._uploader):
            missing = self._missing is None or bool(self._missing[start:stop].any())
            yield start, stop, block, {"mode": self.mode, "missing": missing}
            if self.progress is not None:
                self.progress(stop - start, self.shape[1])

    def _times(self, U: Array) -> Callable[[int, int, Array, dict[str, Any]], Array]:
        """What multiplies the transpose of a block by U.

        A part of U that is the same for all samples is large where z is not centred yet, in the sums inside a product:
        it is taken out, and multiplied by Zᵀ1, which is known exactly. Entries that stand far out of their column are
        multiplied apart, because what a product loses is a share of the largest entry.
        """
        mean = U.mean(axis=0)
        leaning = mean.abs() * self.shape[0] ** 0.5 > LEANING * self.xp.linalg.vector_norm(U, axis=0)
        leans = self.mode != "double" and self.loops.uses_triton(self.line) and bool(leaning.any())
        if leans and self._sums is None:  # sums of small whole numbers, which are exact in any mode
            ones = self.xp.ones((self.shape[0], 1), dtype=self.dtype, device=self.device)
            factor = self.loops.prepare_columns(self._pad_rows(ones), self.source.width, "fast")
            parts = [
                self.loops.adjoint(block, self.line[start:stop], factor, **{**how, "mode": "fast"})
                for start, stop, block, how in self._blocks()
            ]
            self._sums = self.xp.concat(parts, axis=0)[:, 0]
        sums = self._sums if leans else None
        U = U - mean if leans else U
        factors = [self.loops.prepare_columns(self._pad_rows(V), self.source.width, self.mode) for V in self._levels(U)]

        def times(start: int, stop: int, block: Array, how: dict[str, Any]) -> Array:
            W, *more = (self.loops.adjoint(block, self.line[start:stop], factor, **how) for factor in factors)
            W = sum(more, W)
            W = W if sums is None else W + sums[start:stop, None] * mean
            return self.xp.astype(W, self.dtype, copy=False)

        return times

    def _levels(self, U: Array) -> list[Array]:
        """U as a sum: entries up to PEAK root mean squares of their column, what is beyond up to PEAK times that, …"""
        if self.mode != "accurate" or not self.loops.uses_triton(self.line):
            return [U]
        most = PEAK * self.xp.linalg.vector_norm(U, axis=0) / self.shape[0] ** 0.5
        levels = []
        while bool((U.abs() > most).any()) and bool(self.xp.all(self.xp.isfinite(most))):
            levels.append(U.clamp(-most, most))
            U, most = U - levels[-1], PEAK * most
        return [*levels, U]

    def _zeros(self, k: int) -> Array:
        return self.xp.zeros((4 * self.source.width, k), dtype=self.line.dtype, device=self.device)

    def _pad_rows(self, U: Array) -> Array:
        """U with rows of zeros for the samples that are in the bytes and not kept."""
        if self._index is None:
            return U
        out = self.xp.zeros((4 * self.source.width, U.shape[1]), dtype=U.dtype, device=self.device)
        out[self._index] = U
        return out

    def _take_kept(self, Y: Array) -> Array:
        """The rows of the samples that are kept, in the operator's dtype."""
        Y = Y[: self.shape[0]] if self._index is None else Y[self._index]
        return self.xp.astype(Y, self.dtype, copy=False)

    def _decode_block(self, block: Array, start: int) -> Array:
        """Genotypes of SNPs × all samples of the bytes."""
        return self.loops.decode(block, self.line[start : start + block.shape[0]], self.dtype)


def genotype_operator(
    source: Genotypes,
    mean: npt.ArrayLike | None = None,
    scale: npt.ArrayLike | None = None,
    *,
    dtype: Any = np.float32,
    device: Any = None,
    tolerance: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> GenotypeOperator:
    """Return the operator of standardised genotypes where they are to be multiplied.

    Parameters
    ----------
    source, mean, scale, dtype, progress
        As for :class:`GenotypeOperator`.
    device : str, torch.device or None
        None is where the genotypes are, "cpu" NumPy.
    tolerance : float, optional
        Of what is computed from the products, from which their mode follows on a device.

    Returns
    -------
    GenotypeOperator
        The map (G − 1mᵀ) diag(1/s).

    Examples
    --------
    >>> from gramian.operators import genotype_operator
    >>> from gramian.sources.plink import Genotypes
    >>> genotype_operator(Genotypes.from_calls([[0, 1, 2], [2, -1, 0]]))
    GenotypeOperator(3 x 2, float32)
    """
    where = resolve(device, source.values)
    if where is None:
        return GenotypeOperator(source, mean, scale, dtype=dtype, progress=progress)
    options = {"dtype": dtype, "tolerance": tolerance, "progress": progress}
    return DeviceGenotypeOperator(source, mean, scale, device=where, **options)
