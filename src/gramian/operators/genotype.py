"""The genotype operator: standardised 2-bit genotypes as a linear map, decoded inside the multiply."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dsyrk, ssyrk

from gramian.compute.genotypes import Decoder
from gramian.compute.threads import n_threads, parallel
from gramian.operators.base import Operator
from gramian.sources.plink import Genotypes

__all__ = ["GenotypeOperator", "genotype_line"]

Array = Any
Span = tuple[int, int]

TILE_BYTES = (
    2**21
)  # of decoded genotypes: larger tiles multiply faster alone, smaller ones when two cores share a cache
SAMPLE_BYTES = 2**26  # of a block of whole rows of Z
TABLE = 1024  # entries of a SNP's table: more than its genotypes where samples are few
LEAST = 32  # SNPs of a tile, however many samples there are
GRAM_ROWS = 1024  # SNPs of one update of a Gram matrix
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
        self.line = genotype_line(source, mean, scale)
        self.progress = progress
        self._passes = 0

    @classmethod
    def observed(cls, source: Genotypes, **options: Any) -> GenotypeOperator:
        """1 where there is a call and 0 where it is missing: its Gram matrix counts the calls that two samples share.

        Examples
        --------
        >>> from gramian.operators import GenotypeOperator
        >>> from gramian.sources.plink import Genotypes
        >>> GenotypeOperator.observed(Genotypes.from_calls([[0, 1, 2], [2, -1, 0]])).cogram()
        array([[2., 1., 2.],
               [1., 1., 1.],
               [2., 1., 2.]])
        """
        A = cls(source, np.zeros(source.shape[1]), **options)
        A.line = np.tile([0.0, 1.0], (source.shape[1], 1))
        return A

    def seen(self) -> GenotypeOperator:
        """1 where there is a call and 0 where it is missing, for the same genotypes: see :meth:`observed`."""
        return GenotypeOperator.observed(self.source, dtype=self.dtype, progress=self.progress)

    @property
    def passes(self) -> int:
        """How often the genotypes have been read."""
        return self._passes

    def matmat(self, V: Array) -> Array:
        """Z V, summed over blocks of SNPs."""
        return self._summed(V.shape[1], lambda T, start, stop: V[start:stop].T @ T)

    def rmatmat(self, U: Array) -> Array:
        """Zᵀ U, block by block."""
        out, padded = np.empty((self.shape[1], U.shape[1]), self.dtype), self._padded(U)

        def put(T: Array, start: int, stop: int) -> None:
            np.dot(T, padded, out=out[start:stop])

        self._each(put)
        return out

    def conormal(self, U: Array, w: Array | None = None) -> Array:
        """Z diag(w) Zᵀ U: each block decoded once for both products, one pass."""
        padded = self._padded(U)

        def both(T: Array, start: int, stop: int) -> Array:
            W = T @ padded
            return (W if w is None else w[start:stop, None].astype(self.dtype) * W).T @ T

        return self._summed(U.shape[1], both)

    def cogram(self, w: Array | None = None) -> Array:
        """Z diag(w) Zᵀ in float64: one pass, blocks of SNPs multiplied in the operator's dtype."""
        return self._gram(self.shape[0], self._snp_blocks(), w)

    def gram(self, w: Array | None = None) -> Array:
        """Zᵀ diag(w) Z in float64: one pass by samples, for few SNPs."""
        return self._gram(self.shape[1], self._sample_blocks(), w)

    def rows(self, V: Array | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield blocks of samples of Z V; of Z itself where no V is given."""
        for start, stop, block in self._sample_blocks():
            yield start, stop, block if V is None else block @ V

    def _padded(self, U: Array) -> Array:
        """U with rows of zeros for the samples that are in the bytes and not kept."""
        out = np.zeros((4 * self.source.width, U.shape[1]), self.dtype)
        out[self.source.sample_index] = U
        return out

    def _step(self, width: int | None = None) -> int:
        """SNPs of a tile with so many bytes each, all by default; neither it nor its tables outgrow their share."""
        entries = max(4 * (self.source.width if width is None else width), TABLE)
        return max(LEAST, int(TILE_BYTES // (entries * self.dtype.itemsize)))

    def _summed(self, k: int, part: Callable[[Array, int, int], Array]) -> Array:
        """The sum of k × samples parts, one of each tile, as samples × k."""

        def work(share: Sequence[Span]) -> Array:
            total = np.zeros((k, 4 * self.source.width))
            for T, start, stop in self._tiles(share):
                total += part(T, start, stop)
            return total

        self._passes += 1
        total = sum(parallel(work, self.source.spans(self._step())), np.zeros((k, 4 * self.source.width)))
        return np.ascontiguousarray(total.T[self.source.sample_index], dtype=self.dtype)

    def _each(self, act: Callable[[Array, int, int], None]) -> None:
        """Do something with each tile."""

        def work(share: Sequence[Span]) -> None:
            for T, start, stop in self._tiles(share):
                act(T, start, stop)

        self._passes += 1
        parallel(work, self.source.spans(self._step()))

    def _tiles(self, share: Sequence[Span]) -> Iterator[tuple[Array, int, int]]:
        """Decode the blocks of a share, one after the other, into one buffer."""
        decode = Decoder(self._step(), self.source.width, self.dtype)
        for start, stop in share:
            yield decode(self.source.packed(start, stop), self.line[start:stop]), start, stop
            self.source.give_back()
            if self.progress is not None:
                self.progress(stop - start, self.shape[1])

    def _snp_blocks(self) -> Iterator[tuple[int, int, Array]]:
        """Decoded blocks of SNPs × kept samples, each by all threads, for products that BLAS shares out itself."""
        self._passes += 1
        for first, last in self.source.spans(GRAM_ROWS):
            yield first, last, self._decoded(first, last)

    def _decoded(self, first: int, last: int) -> Array:
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
        syrk = ssyrk if self.dtype == np.float32 else dsyrk
        total, part = np.zeros((size, size), order="F"), np.zeros((size, size), self.dtype, order="F")
        for i, (start, stop, M) in enumerate(blocks):
            for sign, W in _signed(M, None if w is None else w[start:stop]):
                syrk(sign, W.T, 1.0, part, lower=1, overwrite_c=1)
            if i % GRAM_SUM == GRAM_SUM - 1:
                total += part
                part[:] = 0
        total += part
        _mirror(total)
        return total


def _signed(M: Array, w: Array | None) -> list[tuple[float, Array]]:
    """M with √|w| on its rows, those of positive and those of negative weight apart."""
    if w is None:
        return [(1.0, np.ascontiguousarray(M))]
    root = np.sqrt(np.abs(w)).astype(M.dtype)[:, None]
    parts = [(1.0, w > 0), (-1.0, w < 0)]
    return [(sign, np.ascontiguousarray(M[rows] * root[rows])) for sign, rows in parts if rows.any()]


def _mirror(K: Array) -> None:
    """Copy the lower half to the upper one, in place: a large K is there once."""
    for start in range(0, len(K), GRAM_ROWS):
        stop = start + GRAM_ROWS
        own = K[start:stop, start:stop]
        own[:] = np.tril(own) + np.tril(own, -1).T
        K[start:stop, stop:] = K[stop:, start:stop].T


def genotype_line(
    source: Genotypes, mean: npt.ArrayLike | None, scale: npt.ArrayLike | None
) -> npt.NDArray[np.float64]:
    """(1/s, −ḡ/s) of each SNP: z = (g − ḡ)/s as a straight line in g; the mean copies and 1 where not given."""
    p = source.shape[1]
    mean = mean_copies(source) if mean is None else np.asarray(mean, dtype=np.float64)
    scale = np.ones(p) if scale is None else np.asarray(scale, dtype=np.float64)
    for name, given in (("mean", mean), ("scale", scale)):
        if given.shape != (p,):
            raise ValueError(f"{name} has the shape {given.shape}; there are {p} SNPs.")
    return np.stack([1 / scale, -mean / scale], axis=1)


def mean_copies(source: Genotypes) -> npt.NDArray[np.float64]:
    """Mean copies of A1 of each SNP among the samples with a call; 0 where there is none."""
    two, one, none, _ = source.snp_counts().T
    return np.asarray((2.0 * two + one) / np.maximum(two + one + none, 1))
