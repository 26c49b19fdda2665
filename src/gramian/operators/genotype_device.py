"""The genotype operator on a device: packed genotypes kept there, or streamed through it block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace

from gramian.compute.devices import describe, free_bytes, gpu, put, refuse_beyond_device, resolve, torch_dtype
from gramian.operators.base import Operator
from gramian.operators.genotype import GenotypeOperator, genotype_line
from gramian.sources.plink import Genotypes

__all__ = ["DeviceGenotypeOperator", "genotype_operator", "placed"]

Array = Any

SHARE = 0.8  # of a device's free memory that genotypes may take: the rest is for vectors
COLUMNS = 64  # that a solver multiplies at once, as a rule at most
FEWEST = 16  # ... and at least
SAMPLE_BYTES = 2**26  # of a block of whole rows of Z
GRAM_ROWS = 4096  # SNPs of one update of a Gram matrix
PEAK = 8.0  # times the root mean square of a column: no entry of 10⁷ normal numbers is larger
LEANING = 1e-3  # share of a column's length along 1 from which that part is multiplied by itself
WORDS = {
    "double": "float64",
    "accurate": "fp16 tensor cores, two parts, relative error at most 2e-6",
    "fast": "fp16 tensor cores, one part, relative error at most 5e-4",
    "plain": "float32 in tiles, relative error at most 2e-6",
}


def placed(source: Genotypes, device: Any, columns: int = COLUMNS, mode: str = "accurate") -> Genotypes:
    """The source with its bytes on a device where they fit beside the vectors of a solver; else as it is."""
    (n, p), on = source.shape, gpu()
    if source.values is not None and source.values.device == device and on.uploads.aligned(source.values):
        return source
    work = on.genotypes.working_bytes(source.width, 4096, columns, mode) + 64 * n * columns
    need = p * on.uploads.row_bytes(source.width) + 4 * on.uploads.BUFFER
    return source.on(device) if need <= SHARE * (free_bytes(device) - work) else source


def genotype_operator(
    source: Genotypes,
    mean: npt.ArrayLike | None = None,
    scale: npt.ArrayLike | None = None,
    *,
    dtype: Any = np.float32,
    device: Any = None,
    tolerance: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> GenotypeOperator | DeviceGenotypeOperator:
    """Return the operator of standardised genotypes where they are to be multiplied.

    Parameters
    ----------
    source, mean, scale, dtype, progress
        As for :class:`GenotypeOperator`.
    device : str, torch.device or None
        None is where the genotypes are, "cpu" NumPy.
    tolerance : float, optional
        Of what is computed from the products, from which their mode follows on a device.

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


class DeviceGenotypeOperator(Operator):
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

    by_columns = True

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
        self.mode = self.loops.mode_for(self.dtype, tolerance)
        self.source = placed(source, self.device, mode=self.mode)
        here = self.source.values
        self.shape, self.resident = source.shape, here is not None and here.device == self.device
        self.line = put(genotype_line(source, mean, scale), self.device)
        self.xp = array_namespace(self.line)
        self.tolerance, self.progress = tolerance, progress
        self._missing = None if source.counted is None else source.counted[:, 3] > 0
        self._index = None if source.complete else put(source.sample_index, self.device)
        self._carry = None if self.resident else self._conveyor()
        self._sums: Array | None = None  # Zᵀ1, once it was needed
        self._passes = 0

    def _conveyor(self) -> Any:
        """What streams the genotypes through the device, where there is room for its buffers and a few columns."""
        carry = gpu().uploads.Conveyor(self.source.width, self.device, self.shape[1])
        work = self.loops.working_bytes(self.source.width, carry.rows, FEWEST, self.mode)
        what = f"Streaming {self.shape[1]:,} SNPs in blocks of {carry.rows:,}"
        refuse_beyond_device(work + carry.nbytes, self.device, what, "Use device='cpu', or free memory there.")
        return carry

    @property
    def precision(self) -> str:  # type: ignore[override]
        """The device, the mode and its error."""
        tensor = self.mode == "double" or self.loops.triton_for(self.line)
        words = f"{self.mode} mode: {WORDS[self.mode if tensor else 'plain']}"
        kept = "" if self.resident else ", genotypes streamed through it"
        return f"products on {describe(self.device)} in {words}{kept}"

    @property
    def epsilon(self) -> float:
        """Relative error of the products, by their mode."""
        return float(self.loops.ERRORS[self.mode])

    @property
    def passes(self) -> int:
        """How often the genotypes have been read."""
        return self._passes

    def seen(self) -> DeviceGenotypeOperator:
        """1 where there is a call and 0 where it is missing, for the same genotypes."""
        options = {"device": self.device, "dtype": self.dtype, "progress": self.progress}
        A = DeviceGenotypeOperator(self.source, np.zeros(self.shape[1]), **options)
        A.line[:, 0], A.line[:, 1] = 0.0, 1.0
        return A

    def matmat(self, V: Array) -> Array:
        """Z V, summed over blocks of SNPs."""
        total = self._zeros(V.shape[1])
        for start, stop, block, how in self._blocks():
            self.loops.product(block, self.line[start:stop], V[start:stop], **how, out=total)
        return self._kept(total)

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
        return self._kept(total)

    def cogram(self, w: Array | None = None) -> Array:
        """Z diag(w) Zᵀ in float64: blocks of SNPs decoded and multiplied in the operator's dtype, one pass."""
        n = self.shape[0]
        nbytes = (8 + 2 * self.line.element_size()) * n * n + 16 * GRAM_ROWS * n
        refuse_beyond_device(nbytes, self.device, f"The {n}×{n} matrix ZZᵀ", "Use solver='krylov', or device='cpu'.")
        total = self.xp.zeros((n, n), dtype=self.line.dtype, device=self.device)
        for start, stop, block, _ in self._blocks():
            for first in range(start, stop, GRAM_ROWS):
                last = min(first + GRAM_ROWS, stop)
                Z = self._samples(self._decoded(block[first - start : last - start], first))
                total += self.loops.exactly(Z.T if w is None else Z.T * w[first:last], Z)
        return total

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield blocks of samples of Z; of Z V all at once."""
        n, p = self.shape
        if V is not None:
            yield 0, n, self.matmat(V)
            return
        for start, stop in self.source.ranges(max(1, SAMPLE_BYTES // max(1, p * 8)), 1):
            which, place, _ = self.source.bytes_of(start, stop)
            where = put(place, self.device)
            parts = [self._decoded(block[:, which], first).T[where] for first, _, block, _ in self._blocks()]
            yield start, stop, self.xp.concat(parts, axis=1)

    def _blocks(self) -> Iterator[tuple[int, int, Array, dict[str, Any]]]:
        """Blocks of SNPs on the device, and how to multiply them: half the work where no genotype is missing."""
        self._passes += 1
        for start, stop, block in self.source.blocks_on(self.device, self._carry):
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
        leans = self.mode != "double" and self.loops.triton_for(self.line) and bool(leaning.any())
        sums = self._ones() if leans else None
        U = U - mean if leans else U
        factors = [self.loops.factor(self._padded(V), self.source.width, self.mode) for V in self._levels(U)]

        def times(start: int, stop: int, block: Array, how: dict[str, Any]) -> Array:
            W, *more = (self.loops.adjoint(block, self.line[start:stop], factor, **how) for factor in factors)
            W = sum(more, W)
            W = W if sums is None else W + sums[start:stop, None] * mean
            return self.xp.astype(W, self.dtype, copy=False)

        return times

    def _levels(self, U: Array) -> list[Array]:
        """U as a sum: entries up to PEAK root mean squares of their column, what is beyond up to PEAK times that, …"""
        if self.mode != "accurate" or not self.loops.triton_for(self.line):
            return [U]
        most = PEAK * self.xp.linalg.vector_norm(U, axis=0) / self.shape[0] ** 0.5
        levels = []
        while bool((U.abs() > most).any()) and bool(self.xp.all(self.xp.isfinite(most))):
            levels.append(U.clamp(-most, most))
            U, most = U - levels[-1], PEAK * most
        return [*levels, U]

    def _ones(self) -> Array:
        """Zᵀ1 in float64: sums of small whole numbers, which are exact in any mode."""
        if self._sums is None:
            ones = self.xp.ones((self.shape[0], 1), dtype=self.dtype, device=self.device)
            factor = self.loops.factor(self._padded(ones), self.source.width, "fast")
            parts = [
                self.loops.adjoint(block, self.line[start:stop], factor, **{**how, "mode": "fast"})
                for start, stop, block, how in self._blocks()
            ]
            self._sums = self.xp.concat(parts, axis=0)[:, 0]
        return self._sums

    def _zeros(self, k: int) -> Array:
        return self.xp.zeros((4 * self.source.width, k), dtype=self.line.dtype, device=self.device)

    def _padded(self, U: Array) -> Array:
        """U with rows of zeros for the samples that are in the bytes and not kept."""
        if self._index is None:
            return U
        out = self.xp.zeros((4 * self.source.width, U.shape[1]), dtype=U.dtype, device=self.device)
        out[self._index] = U
        return out

    def _kept(self, Y: Array) -> Array:
        """The rows of the samples that are kept, in the operator's dtype."""
        Y = Y[: self.shape[0]] if self._index is None else Y[self._index]
        return self.xp.astype(Y, self.dtype, copy=False)

    def _decoded(self, block: Array, start: int) -> Array:
        """Genotypes of SNPs × all samples of the bytes."""
        return self.loops.decoded(block, self.line[start : start + block.shape[0]], self.dtype)

    def _samples(self, Z: Array) -> Array:
        """The columns of the samples that are kept."""
        return Z[:, : self.shape[0]] if self._index is None else Z[:, self._index]
