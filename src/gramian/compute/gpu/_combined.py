r"""Kernel matrices on a device that are made of others, or of short features: sums, products, linear kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gramian.compute.devices import put
from gramian.compute.gpu._pairs import KernelPairs, most_entries, part_of, slices, weighted
from gramian.compute.gpu._precision import ERRORS

__all__ = ["CombinedPairs", "LowRankPairs", "ProductPairs", "SumPairs"]

Tensor = Any
Part = Any


class LowRankPairs(KernelPairs):
    """k(x, z) = c φ(x)·φ(z) with features as short as the points: K V = Φ(Φᵀ V), and no tile is ever needed."""

    ways = ("products of features summed in float64",)

    def __init__(self, formula: Any, X: Tensor, Z: Tensor | None, dtype: Any) -> None:
        self.formula, self.dtype, self.symmetric, self.device = formula, dtype, Z is None, X.device
        self.shape = (X.shape[0], X.shape[0] if Z is None else Z.shape[0])
        self.mode = "double" if dtype == torch.float64 else "accurate"
        self.error = ERRORS[self.mode]
        self.left = self._features(X)
        self.right = self.left if Z is None else self._features(Z)

    def _features(self, X: Tensor) -> Tensor:
        if self.formula.geometry == "cosine":
            X = X.double()
            norms = torch.linalg.vector_norm(X, dim=1, keepdim=True)
            return (X / torch.where(norms > 0, norms, 1.0)).to(self.dtype)
        return (X.double() * put(np.asarray(self.formula.scale, dtype=np.float64), X.device)).to(self.dtype)

    def times(self, V: Tensor) -> Tensor:
        return self._through(self.left, self.right, V)

    def transposed_times(self, U: Tensor) -> Tensor:
        return self._through(self.right, self.left, U)

    symmetric_times = times

    def normal_times(self, V: Tensor, w: Tensor | None) -> Tensor:
        return self.transposed_times(weighted(self.times(V), w))

    def _through(self, F: Tensor, G: Tensor, V: Tensor) -> Tensor:
        """c F Gᵀ V."""
        step = max(1, most_entries(self.device) // max(1, F.shape[1]))
        short = V.new_zeros((F.shape[1], V.shape[1]), dtype=torch.float64)
        for rows in slices(len(G), step):
            short += G[rows].double().T @ V[rows].double()
        short *= self.formula.factor
        parts = [(F[rows].double() @ short).to(self.dtype) for rows in slices(len(F), step)]
        return torch.cat(parts) if parts else V.new_zeros((0, V.shape[1]))

    def block(self, rows: Part, columns: Part) -> Tensor:
        F, G = self.left[part_of(rows)], self.right[part_of(columns)].double()
        out = F.new_empty((F.shape[0], G.shape[0]))
        for some in slices(F.shape[0], max(1, most_entries(self.device) // max(1, G.shape[0]))):
            tile = F[some].double() @ G.T
            tile = tile.clamp_(-1.0, 1.0) if self.formula.geometry == "cosine" else tile
            out[some] = tile.mul_(self.formula.factor)
        return out


class CombinedPairs(KernelPairs):
    """A sum or product of kernels of the same points."""

    def __init__(self, factor: float, parts: list[KernelPairs]) -> None:
        self.factor, self.parts, first = factor, parts, parts[0]
        self.shape, self.dtype, self.symmetric, self.device = first.shape, first.dtype, first.symmetric, first.device
        self.mode = max((part.mode for part in parts), key=lambda mode: ERRORS[mode])
        self.error = max(part.error for part in parts)
        self.ways = tuple(way for part in parts for way in part.ways)


class SumPairs(CombinedPairs):
    """c(k₁ + k₂ + …): the sum of the products."""

    def times(self, V: Tensor) -> Tensor:
        return self._added([part.times(V) for part in self.parts])

    def transposed_times(self, U: Tensor) -> Tensor:
        return self._added([part.transposed_times(U) for part in self.parts])

    def symmetric_times(self, V: Tensor) -> Tensor:
        return self._added([part.symmetric_times(V) for part in self.parts])

    def block(self, rows: Part, columns: Part) -> Tensor:
        return self._added([part.block(rows, columns) for part in self.parts])

    def normal_times(self, V: Tensor, w: Tensor | None) -> Tensor:
        return self.transposed_times(weighted(self.times(V), w))

    def _added(self, parts: list[Tensor]) -> Tensor:
        total = parts[0]
        for more in parts[1:]:
            total += more
        return total if self.factor == 1.0 else total.mul_(self.factor)


class ProductPairs(CombinedPairs):
    """c k₁ k₂ …: chunks of all of them, multiplied entry by entry."""

    def block(self, rows: Part, columns: Part) -> Tensor:
        total = self.parts[0].block(rows, columns)
        for part in self.parts[1:]:
            total *= part.block(rows, columns)
        return total if self.factor == 1.0 else total.mul_(self.factor)
