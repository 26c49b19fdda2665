r"""Kernel matrices on a device: what multiplies them, in chunks of plain torch or by the kernels written in Triton."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch

from gramian.compute.devices import describe
from gramian.compute.gpu import _profiles
from gramian.compute.gpu._precision import Arithmetic

__all__ = [
    "CompiledPairs",
    "KernelPairs",
    "PlainPairs",
    "count",
    "most_entries",
    "multiplied",
    "part_of",
    "powers",
    "slices",
    "weighted",
]

Tensor = Any
Part = Any  # None, a slice, or a tensor of indices

COLUMNS = 8192  # of a chunk in plain torch
ENTRIES = {"cuda": 2**26, "cpu": 2**20}  # of a chunk


class KernelPairs(ABC):
    """The values k(x_i, z_j) of all pairs of two sets of points on a device.

    Attributes
    ----------
    shape : tuple of int
        Number of points x, number of points z.
    dtype : torch.dtype
        Of what is multiplied and of the results.
    symmetric : bool
        Whether both sets are the same.
    device : torch.device
        Where they are.
    mode : {"fast", "accurate", "double"}
        How precise products are.
    error : float
        Relative error of what is multiplied: ‖δK‖ ≤ error·‖K‖ in the Frobenius norm: 5e-4, 2e-6 or 1e-13.
        Products by columns without special cancellation have the same relative error.
    precision : str
        Mode, arithmetic and error as a sentence.
    """

    shape: tuple[int, int]
    dtype: Any
    symmetric: bool
    device: Any
    mode: str
    error: float
    ways: tuple[str, ...]

    @property
    def precision(self) -> str:
        """Mode, arithmetic and error as a sentence."""
        where = f"on {describe(self.device)}" if self.device.type == "cuda" else f"by {describe(self.device)}"
        how = " and ".join(dict.fromkeys(self.ways))
        return f"products {where} in {self.mode} mode: {how}, relative error at most {self.error:.0e}"

    def __repr__(self) -> str:
        n, m = self.shape
        return f"KernelPairs({n} × {m}, {self.mode}, {self.device})"

    def times(self, V: Tensor) -> Tensor:
        """K V."""
        sizes, V, total = self._scaled(V, self.shape[0])
        for rows in slices(self.shape[0], self._height()):
            for columns in slices(self.shape[1], COLUMNS):
                total[rows] += multiplied(self.block(rows, columns), V[columns])
        return (total * sizes).to(self.dtype)

    def transposed_times(self, U: Tensor) -> Tensor:
        """Kᵀ U."""
        sizes, U, total = self._scaled(U, self.shape[1])
        for rows in slices(self.shape[0], self._height()):
            for columns in slices(self.shape[1], COLUMNS):
                total[columns] += multiplied(self.block(rows, columns).T, U[rows])
        return (total * sizes).to(self.dtype)

    def symmetric_times(self, V: Tensor) -> Tensor:
        """K V for a symmetric K: chunks above the diagonal serve twice."""
        sizes, V, total = self._scaled(V, self.shape[0])
        for rows in slices(self.shape[0], self._height()):
            for columns in slices(self.shape[0], COLUMNS, rows.start):
                tile = self.block(rows, columns)
                total[rows] += multiplied(tile, V[columns])
                below = slice(max(columns.start, rows.stop), columns.stop)
                if below.start < below.stop:
                    mirrored = tile[:, below.start - columns.start :].T
                    total[below] += multiplied(mirrored, V[rows])
        return (total * sizes).to(self.dtype)

    def normal_times(self, V: Tensor, w: Tensor | None) -> Tensor:
        """Kᵀ diag(w) K V, each chunk of rows evaluated once where it fits."""
        if self.shape[1] > most_entries(self.device) // 64:
            return self.transposed_times(weighted(self.times(V), w))
        sizes, V, total = self._scaled(V, self.shape[1])
        for rows in slices(self.shape[0], self._height(self.shape[1])):
            tile = self.block(rows, slice(0, self.shape[1]))
            U = weighted(multiplied(tile, V), None if w is None else w[rows])
            total += multiplied(tile.T, U.to(tile.dtype))
        return (total * sizes).to(self.dtype)

    @abstractmethod
    def block(self, rows: Part, columns: Part) -> Tensor:
        """k(X[rows], Z[columns]) as a new tensor."""

    def _scaled(self, V: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Powers of two, the columns divided by them, and zeros for their sums."""
        sizes = powers(V)
        zeros = torch.zeros((n, V.shape[1]), dtype=torch.float64, device=self.device)
        return sizes, (V.double() / sizes).to(self.dtype), zeros

    def _height(self, columns: int = COLUMNS) -> int:
        return max(1, most_entries(self.device) // max(1, min(columns, self.shape[1])))


class PlainPairs(KernelPairs):
    """One formula of one geometry, in plain torch."""

    def __init__(self, formula: Any, chosen: Arithmetic, X: Tensor, Z: Tensor | None, dtype: Any) -> None:
        self.formula, self.dtype, self.symmetric, self.device = formula, dtype, Z is None, X.device
        self.shape = (X.shape[0], X.shape[0] if Z is None else Z.shape[0])
        self.mode, self.error, self.ways = chosen.mode, chosen.error, (chosen.words,)
        self._place(chosen, X, Z)

    def _place(self, chosen: Arithmetic, X: Tensor, Z: Tensor | None) -> None:
        self.left = chosen.frame.near(X).to(chosen.dtype)
        self.right = self.left if Z is None else chosen.frame.near(Z).to(chosen.dtype)

    def block(self, rows: Part, columns: Part) -> Tensor:
        f = self.formula
        X, Z = self.left[part_of(rows)], self.right[part_of(columns)]
        out = X.new_empty((X.shape[0], Z.shape[0]), dtype=self.dtype)
        for some in slices(X.shape[0], max(1, most_entries(self.device) // max(1, Z.shape[0]))):
            tile = _profiles.values(f.geometry, f.profile, f.parameters, X[some], Z)
            out[some] = tile if f.factor == 1.0 else tile.mul_(f.factor)
        return out


class CompiledPairs(PlainPairs):
    """One formula of one geometry, by the kernels written in Triton."""

    def _place(self, chosen: Arithmetic, X: Tensor, Z: Tensor | None) -> None:
        loops = importlib.import_module("gramian.compute.gpu._products")  # loads Triton
        self.loops = loops.Loops(self.formula, chosen, X, Z)

    def times(self, V: Tensor) -> Tensor:
        return self.loops.times(V)

    def transposed_times(self, U: Tensor) -> Tensor:
        return self.loops.transposed_times(U)

    def symmetric_times(self, V: Tensor) -> Tensor:
        return self.loops.symmetric_times(V)

    def normal_times(self, V: Tensor, w: Tensor | None) -> Tensor:
        # tiles are evaluated twice, which takes a fifth of the time that writing and reading them would
        return self.transposed_times(weighted(self.times(V), w))

    def block(self, rows: Part, columns: Part) -> Tensor:
        n, m = (count(part, size) for part, size in zip((rows, columns), self.shape, strict=True))
        out = torch.empty((n, m), dtype=self.dtype, device=self.device)
        if n and m:
            self.loops.fill(rows, columns, out)
        return out


def multiplied(A: Tensor, B: Tensor) -> Tensor:
    """A B in float64; on a card float32 factors too, which it may be set to multiply with ten bits."""
    if A.is_cuda:
        return A.double() @ B.double()
    return (A @ B.to(A.dtype)).double()


def powers(V: Tensor) -> Tensor:
    """The power of two next above each column of V, and 1 for columns of zeros: dividing by it loses nothing."""
    sizes = V.abs().amax(dim=0).double() if len(V) else torch.zeros(V.shape[1], dtype=torch.float64, device=V.device)
    return torch.where(sizes > 0, torch.exp2(torch.frexp(sizes)[1].double()), 1.0)


def weighted(U: Tensor, w: Tensor | None) -> Tensor:
    """diag(w) U."""
    return U if w is None else U * w[:, None]


def part_of(part: Part) -> Part:
    """What to index with."""
    return slice(None) if part is None else part


def count(part: Part, size: int) -> int:
    """How many points a part has."""
    if part is None or isinstance(part, slice):
        return len(range(*part_of(part).indices(size)))
    return int(part.shape[0])


def most_entries(device: Any) -> int:
    """How many numbers a chunk may have."""
    return ENTRIES["cuda" if device.type == "cuda" else "cpu"]


def slices(n: int, step: int, start: int = 0) -> Iterator[slice]:
    """Cut the numbers from start to n in pieces."""
    return (slice(i, min(i + step, n)) for i in range(start, n, step))
