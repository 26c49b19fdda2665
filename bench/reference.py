"""The truth a fit is compared with, computed once per data set without Gramian and kept in the cache."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from bench.data import CACHE, block_rows, load
from bench.workloads import Workload

Array = NDArray[np.float64]
DENSE_LIMIT = 6_000


@dataclass(frozen=True)
class Reference:
    """Column means, the leading k + 1 singular values and the leading k right singular vectors (p×k)."""

    mean: Array
    values: Array
    right: Array

    @property
    def norm(self) -> float:
        """Return ‖A‖, the largest singular value."""
        return float(self.values[0])

    @property
    def gap(self) -> float | None:
        """Return (σ_k − σ_{k+1})/σ_1, or None when all components were asked."""
        k = self.right.shape[1]
        return None if self.values.size == k else float((self.values[k - 1] - self.values[k]) / self.norm)


class Centred:
    """The data minus their column means, read in blocks of float64 rows and never held whole."""

    def __init__(self, workload: Workload, cache: Path = CACHE, mean: Array | None = None) -> None:
        self.data, self.step = load(workload, cache), block_rows(workload)
        self.rows, self.cols = workload.rows, workload.cols
        self.sparse = workload.kind == "sparse"
        self.mean = self._column_means() if mean is None else mean

    def blocks(self) -> Iterator[Array]:
        """Yield centred blocks of dense rows."""
        for piece in self._pieces():
            yield (piece.toarray() if self.sparse else _float64(piece)) - self.mean

    def normal(self, v: Array) -> tuple[Array, Array]:
        """Return AᵀAv and the norms ‖Av‖ of the columns, in one pass."""
        if self.sparse:
            u = self.data @ v - self.mean @ v
            return self.data.T @ u - np.outer(self.mean, u.sum(axis=0)), np.linalg.norm(u, axis=0)
        product, square = np.zeros_like(v), np.zeros(v.shape[1])
        for block in self.blocks():
            u = block @ v
            product += block.T @ u
            square += np.einsum("ij,ij->j", u, u)
        return product, np.sqrt(square)

    def _column_means(self) -> Array:
        """Return the means; a sparse matrix is summed whole, being small where its blocks would be dense."""
        pieces = [self.data] if self.sparse else self._pieces()
        total = sum((_float64(piece).sum(axis=0) for piece in pieces), np.zeros(self.cols))
        return np.asarray(total / self.rows, dtype=np.float64)

    def _pieces(self) -> Iterator[Any]:
        """Yield the rows as they are stored, a block at a time."""
        return (self.data[start : start + self.step] for start in range(0, self.rows, self.step))


def _float64(x: Any) -> Any:
    """Return ``x`` in double precision."""
    return x.astype(np.float64, copy=False)


def ensure_reference(workload: Workload, cache: Path = CACHE) -> Reference:
    """Return the reference of ``workload``, from the cache or computed now."""
    file = cache / f"{workload.key}.reference.npz"
    if not file.exists():
        found = _compute(workload, Centred(workload, cache))
        partial = cache / f"{workload.key}.reference.partial.npz"
        np.savez(partial, mean=found.mean, values=found.values, right=found.right)
        partial.replace(file)
    with np.load(file) as stored:
        return Reference(stored["mean"], stored["values"], stored["right"])


def _compute(workload: Workload, a: Centred) -> Reference:
    """Return the leading singular pairs by the exact route that fits in memory."""
    k, small = workload.rank, min(workload.rows, workload.cols)
    wanted = min(k + 1, small)
    if small > DENSE_LIMIT:
        return _lanczos(a, k)
    if workload.cols <= workload.rows:
        gram = sum((block.T @ block for block in a.blocks()), np.zeros((a.cols, a.cols)))
        square, vectors = _leading(gram, wanted)
        return Reference(a.mean, np.sqrt(square), vectors[:, :k])
    whole = np.concatenate(list(a.blocks()))
    square, vectors = _leading(whole @ whole.T, wanted)
    right = np.linalg.qr(whole.T @ vectors[:, :k])[0]
    return Reference(a.mean, np.sqrt(square), right)


def _leading(gram: Array, count: int) -> tuple[Array, Array]:
    """Return the ``count`` largest eigenvalues of a symmetric matrix, descending, and their vectors."""
    m = gram.shape[0]
    square, vectors = la.eigh(gram, subset_by_index=(m - count, m - 1))
    return np.maximum(square[::-1], 0.0), vectors[:, ::-1]


def _lanczos(a: Centred, k: int) -> Reference:
    """Return the leading pairs of AᵀA by ARPACK to machine precision, and check what it returned."""

    def matvec(v: Array) -> Array:
        return a.normal(v.reshape(-1, 1))[0]

    start = np.random.default_rng(0).standard_normal(a.cols)
    gram = LinearOperator((a.cols, a.cols), matvec=matvec, dtype=np.float64)
    square, vectors = eigsh(gram, k=k + 1, ncv=4 * k, tol=0, v0=start, maxiter=2_000)
    order = np.argsort(square)[::-1]
    square, vectors = square[order], vectors[:, order]
    worst = np.linalg.norm(a.normal(vectors)[0] - vectors * square, axis=0).max() / square[0]
    if worst > 1e-10:
        raise RuntimeError(f"the reference is only accurate to {worst:.1e}")
    return Reference(a.mean, np.sqrt(square), vectors[:, :k])
