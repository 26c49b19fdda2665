r"""The hot loop of kernel methods on a device: K V for K = k(X, Z), tile by tile, K never stored.

The same functions as in :mod:`gramian.compute.tiles`; what hands out the tiles is made by :func:`prepare` from the
kernel's formula (see :class:`gramian.kernels.base.Formula`) and two tensors of points. On a GPU tiles are evaluated and
multiplied inside one Triton kernel (:mod:`gramian.compute.gpu.triton_tiles`); elsewhere plain torch does the same in
chunks of bounded size.

How precise a product is follows from what was asked: float64 tensors are ``"double"``; float32 ones are ``"accurate"``
(relative error at most 2e-6), or ``"fast"`` (5e-4) where the tolerance allows it and the points are such that fp16
tensor cores keep that promise. :mod:`gramian.compute.gpu.precision` has the rule.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from gramian.compute.devices import describe, refuse_beyond_device, to_device, torch_dtype
from gramian.compute.gpu.launch import uses_triton
from gramian.compute.gpu.points import layout, values
from gramian.compute.gpu.precision import ERRORS, Arithmetic, choose_arithmetic

Tensor = Any
Part = Any  # None, a slice, or a tensor of indices

COLUMNS = 8192  # of a chunk in plain torch
ENTRIES = {"cuda": 2**26, "cpu": 2**20}  # of a chunk
LARGE = 2**28  # bytes of a matrix from which on the room for it is looked up


def prepare(formula: Any, X: Tensor, Z: Tensor | None = None, *, dtype: Any, tolerance: float | None = None) -> Any:
    r"""Prepare the points for products by k(X, Z), or by k(X, X).

    Parameters
    ----------
    formula : Formula
        Of the kernel: ``kernel.formula(p)``.
    X, Z : tensors (n, p), (m, p)
        Points on one device; Z = X where None is given.
    dtype : dtype of torch or NumPy
        float32 or float64, of products.
    tolerance : float, optional
        Relative error that products may have: from 5e-4 on the fast mode may be chosen.

    Returns
    -------
    KernelPairs
        For the other functions of this module.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu import tiles
    >>> from gramian.kernels import Gaussian
    >>> X = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
    >>> K = tiles.prepare(Gaussian(1.0).formula(1), X, dtype="float64")
    >>> K
    KernelPairs(2 × 2, double, cpu)
    >>> tiles.product(K, torch.eye(2, dtype=torch.float64))
    tensor([[1.0000, 0.3679],
            [0.3679, 1.0000]], dtype=torch.float64)
    """
    dtype = torch_dtype(dtype)
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"Kernel products are in float32 or float64, not in {dtype}.")
    X, Z = X.detach(), None if Z is None or Z is X else Z.detach()
    for points in (X,) if Z is None else (X, Z):
        if points.ndim != 2:
            raise ValueError(f"Expected rows of features (2 dimensions), got shape {tuple(points.shape)}.")
        if not bool(torch.isfinite(points).all()):
            i, j = torch.nonzero(~torch.isfinite(points))[0].tolist()
            value = float(points[i, j])
            raise ValueError(
                f"A kernel needs finite numbers; row {i + 1}, column {j + 1} is {value}. Remove or replace it."
            )
        if _has_chi2(formula) and points.numel() and float(points.min()) < 0:
            i, j = torch.nonzero(points.min() == points)[0].tolist()
            value = float(points[i, j])
            raise ValueError(
                f"Negative values in data passed to a chi-squared kernel: row {i + 1}, column {j + 1} is {value}."
            )
    if Z is not None and X.shape[1] != Z.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns and Z has {Z.shape[1]}: a kernel compares points of one space.")
    return _pairs_for(_merge_products(formula), X, Z, dtype, tolerance)


def _pairs_for(formula: Any, X: Tensor, Z: Tensor | None, dtype: Any, tolerance: float | None) -> KernelPairs:
    if formula.geometry in ("sum", "product"):
        # a product is made of tiles: accurate ones, for errors of factors add up
        wanted = tolerance if formula.geometry == "sum" else None
        parts = [_pairs_for(part, X, Z, dtype, wanted) for part in formula.parts]
        return (SumPairs if formula.geometry == "sum" else ProductPairs)(formula.factor, parts)
    if formula.profile == "identity" and formula.geometry in ("inner", "cosine"):
        return LowRankPairs(formula, X, Z, dtype)
    triton = uses_triton(X) and min(X.shape) > 0 and (Z is None or len(Z) > 0)
    # what prepared points take: both sides, as rows of fp16 parts or of float64 numbers for the kernels
    p, wide = X.shape[1], dtype.itemsize == 8
    n = len(X) + (len(X if Z is None else Z) if triton or Z is not None else 0)
    nbytes = n * (layout(p, 0 if wide else 2, True)[2] * (8 if wide else 2) if triton else p * dtype.itemsize)
    if nbytes > LARGE:
        what = f"Points prepared for products ({n:,} rows of {p} features)"
        refuse_beyond_device(nbytes, X.device, what, ("Use fewer rows at a time, or ", ("device", "cpu"), "."))
    chosen = choose_arithmetic(formula, X, Z, dtype, tolerance, triton)
    kind = importlib.import_module("gramian.compute.gpu.triton_tiles").TritonPairs if triton else PlainPairs
    pairs: KernelPairs = kind(formula, chosen, X, Z, dtype)
    return pairs


def _merge_products(formula: Any) -> Any:
    """The formula with products of Gaussian kernels as one Gaussian kernel, and of Laplacian ones as one."""
    if not formula.parts:
        return formula
    parts = [_merge_products(part) for part in formula.parts]
    kinds = {(part.geometry, part.profile) for part in parts}
    if formula.geometry == "product" and kinds in ({("squared", "exp")}, {("absolute", "exp")}):
        power = 2 if parts[0].geometry == "squared" else 1
        scale = sum(np.asarray(part.scale, dtype=np.float64) ** power for part in parts) ** (1 / power)
        factor = formula.factor * float(np.prod([part.factor for part in parts]))
        return parts[0]._replace(scale=scale, factor=factor)
    return formula._replace(parts=tuple(parts))


def _has_chi2(formula: Any) -> bool:
    return formula.geometry == "chi2" or any(_has_chi2(part) for part in formula.parts)


def product(K: KernelPairs, V: Tensor) -> Tensor:
    """K V."""
    V = _columns(K, V, 1)
    return K.symmetric_times(V) if K.symmetric else K.times(V)


def adjoint(K: KernelPairs, U: Tensor) -> Tensor:
    """Kᵀ U."""
    U = _columns(K, U, 0)
    return K.symmetric_times(U) if K.symmetric else K.transposed_times(U)


def symmetric_product(K: KernelPairs, V: Tensor) -> Tensor:
    """K V for a symmetric K, whose tiles serve twice where that pays."""
    if not K.symmetric:
        raise ValueError("A symmetric product needs one set of points: prepare(formula, X) without Z.")
    return K.symmetric_times(_columns(K, V, 1))


def normal(K: KernelPairs, V: Tensor, w: Tensor | None = None) -> Tensor:
    """Kᵀ diag(w) K V, with w = 1 where not given."""
    V = _columns(K, V, 1)
    return K.normal_times(V, None if w is None else w.detach().to(device=K.device, dtype=K.dtype))


def dense(K: KernelPairs, rows: Part = None, columns: Part = None) -> Tensor:
    """k(X[rows], Z[columns]) as a new tensor; rows and columns are slices or tensors of indices, and all by default.

    Values come from differences of the points, in float64 where K is in float64. The whole of a symmetric K is
    symmetric to the last bit.
    """
    whole = K.symmetric and rows is None and columns is None
    rows, columns = _positions(rows, K.shape[0]), _positions(columns, K.shape[1])
    n, m = (count(part, size) for part, size in zip((rows, columns), K.shape, strict=True))
    nbytes = n * m * K.dtype.itemsize
    if nbytes > LARGE:
        refuse_beyond_device(nbytes, K.device, f"A kernel matrix of {n:,} × {m:,}", "Ask for fewer rows at a time.")
    out = K.block(rows, columns)
    if whole:
        for some in slices(n, 4096):
            out[some, : some.start] = out[: some.start, some].T
            square = out[some, some]
            out[some, some] = torch.triu(square) + torch.triu(square, 1).T
    return out


def _columns(K: KernelPairs, V: Tensor, side: int) -> Tensor:
    """V as K multiplies it."""
    if V.ndim != 2 or V.shape[0] != K.shape[side]:
        raise ValueError(f"Expected {K.shape[side]} rows of columns to multiply, got shape {tuple(V.shape)}.")
    return V.detach().to(device=K.device, dtype=K.dtype)


def _positions(part: Part, size: int) -> Part:
    """A part counted from the first point; parts of one point less or more than there are, are refused."""
    if part is None:
        return None
    if isinstance(part, slice):
        start, stop, step = part.indices(size)
        return slice(start, max(start, stop), step) if step > 0 else torch.arange(start, stop, step)
    part = torch.as_tensor(part)
    if len(part) and not (-size <= int(part.min()) and int(part.max()) < size):
        raise ValueError(f"Points are numbered from 0 to {size - 1}; got {int(part.min())} to {int(part.max())}.")
    return torch.where(part < 0, part + size, part)


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
    two_products = False  # whether Kᵀ diag(w) K V is best a product by K, then one by Kᵀ

    def __init__(self, X: Tensor, Z: Tensor | None, dtype: Any, mode: str, error: float, ways: tuple[str, ...]) -> None:
        self.shape, self.symmetric = (len(X), len(X if Z is None else Z)), Z is None
        self.dtype, self.device, self.mode, self.error, self.ways = dtype, X.device, mode, error, ways

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
        sizes, V, total = self._scale_columns(V, self.shape[0])
        for rows in slices(self.shape[0], self._height()):
            for columns in slices(self.shape[1], COLUMNS):
                total[rows] += multiply_wide(self.block(rows, columns), V[columns])
        return (total * sizes).to(self.dtype)

    def transposed_times(self, U: Tensor) -> Tensor:
        """Kᵀ U."""
        sizes, U, total = self._scale_columns(U, self.shape[1])
        for rows in slices(self.shape[0], self._height()):
            for columns in slices(self.shape[1], COLUMNS):
                total[columns] += multiply_wide(self.block(rows, columns).T, U[rows])
        return (total * sizes).to(self.dtype)

    def symmetric_times(self, V: Tensor) -> Tensor:
        """K V for a symmetric K: chunks above the diagonal serve twice."""
        sizes, V, total = self._scale_columns(V, self.shape[0])
        for rows in slices(self.shape[0], self._height()):
            for columns in slices(self.shape[0], COLUMNS, rows.start):
                tile = self.block(rows, columns)
                total[rows] += multiply_wide(tile, V[columns])
                below = slice(max(columns.start, rows.stop), columns.stop)
                if below.start < below.stop:
                    mirrored = tile[:, below.start - columns.start :].T
                    total[below] += multiply_wide(mirrored, V[rows])
        return (total * sizes).to(self.dtype)

    def normal_times(self, V: Tensor, w: Tensor | None) -> Tensor:
        """Kᵀ diag(w) K V, each chunk of rows evaluated once where it fits."""
        if self.two_products or self.shape[1] > most_entries(self.device) // 64:
            return self.transposed_times(weigh_rows(self.times(V), w))
        sizes, V, total = self._scale_columns(V, self.shape[1])
        for rows in slices(self.shape[0], self._height(self.shape[1])):
            tile = self.block(rows, slice(0, self.shape[1]))
            U = weigh_rows(multiply_wide(tile, V), None if w is None else w[rows])
            total += multiply_wide(tile.T, U.to(tile.dtype))
        return (total * sizes).to(self.dtype)

    @abstractmethod
    def block(self, rows: Part, columns: Part) -> Tensor:
        """k(X[rows], Z[columns]) as a new tensor."""

    def _scale_columns(self, V: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
        """Powers of two, the columns divided by them, and zeros for their sums."""
        sizes = column_powers(V)
        zeros = torch.zeros((n, V.shape[1]), dtype=torch.float64, device=self.device)
        return sizes, (V.double() / sizes).to(self.dtype), zeros

    def _height(self, columns: int = COLUMNS) -> int:
        return max(1, most_entries(self.device) // max(1, min(columns, self.shape[1])))


class PlainPairs(KernelPairs):
    """One formula of one geometry, in plain torch."""

    def __init__(self, formula: Any, chosen: Arithmetic, X: Tensor, Z: Tensor | None, dtype: Any) -> None:
        super().__init__(X, Z, dtype, chosen.mode, chosen.error, (chosen.words,))
        self.formula = formula
        self.left = chosen.frame.displace(X).to(chosen.dtype)
        self.right = self.left if Z is None else chosen.frame.displace(Z).to(chosen.dtype)

    def block(self, rows: Part, columns: Part) -> Tensor:
        """k(X[rows], Z[columns]) from differences, some rows at a time."""
        f = self.formula
        X, Z = self.left[part_of(rows)], self.right[part_of(columns)]
        out = X.new_empty((X.shape[0], Z.shape[0]), dtype=self.dtype)
        for some in slices(X.shape[0], max(1, most_entries(self.device) // max(1, Z.shape[0]))):
            tile = values(f.geometry, f.profile, f.parameters, X[some], Z)
            out[some] = tile if f.factor == 1.0 else tile.mul_(f.factor)
        return out


class LowRankPairs(KernelPairs):
    """k(x, z) = c φ(x)·φ(z) with features as short as the points: K V = Φ(Φᵀ V), and no tile is ever needed."""

    two_products = True

    def __init__(self, formula: Any, X: Tensor, Z: Tensor | None, dtype: Any) -> None:
        mode = "double" if dtype == torch.float64 else "accurate"
        super().__init__(X, Z, dtype, mode, ERRORS[mode], ("products of features summed in float64",))
        self.formula = formula
        self.left = self._features(X)
        self.right = self.left if Z is None else self._features(Z)

    def _features(self, X: Tensor) -> Tensor:
        X = X.double()
        if self.formula.geometry == "cosine":
            norms = torch.linalg.vector_norm(X, dim=1, keepdim=True)
            return (X / torch.where(norms > 0, norms, 1.0)).to(self.dtype)
        origin, scale = (to_device(x, X.device, float) for x in (self.formula.origin, self.formula.scale))
        return ((X - origin) * scale).to(self.dtype)

    def times(self, V: Tensor) -> Tensor:
        """K V."""
        return self._through(self.left, self.right, V)

    def transposed_times(self, U: Tensor) -> Tensor:
        """Kᵀ U."""
        return self._through(self.right, self.left, U)

    symmetric_times = times

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
        """k(X[rows], Z[columns]) as products of features."""
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

    two_products = True

    def times(self, V: Tensor) -> Tensor:
        """K V."""
        return self._add([part.times(V) for part in self.parts])

    def transposed_times(self, U: Tensor) -> Tensor:
        """Kᵀ U."""
        return self._add([part.transposed_times(U) for part in self.parts])

    def symmetric_times(self, V: Tensor) -> Tensor:
        """K V for a symmetric K."""
        return self._add([part.symmetric_times(V) for part in self.parts])

    def block(self, rows: Part, columns: Part) -> Tensor:
        """The sum of the blocks."""
        return self._add([part.block(rows, columns) for part in self.parts])

    def _add(self, parts: list[Tensor]) -> Tensor:
        total = parts[0]
        for more in parts[1:]:
            total += more
        return total if self.factor == 1.0 else total.mul_(self.factor)


class ProductPairs(CombinedPairs):
    """c k₁ k₂ …: chunks of all of them, multiplied entry by entry."""

    def block(self, rows: Part, columns: Part) -> Tensor:
        """The product of the blocks, entry by entry."""
        total = self.parts[0].block(rows, columns)
        for part in self.parts[1:]:
            total *= part.block(rows, columns)
        return total if self.factor == 1.0 else total.mul_(self.factor)


def multiply_wide(A: Tensor, B: Tensor) -> Tensor:
    """A B in float64; on a GPU float32 factors too, which it may be set to multiply with ten bits."""
    if A.is_cuda:
        return A.double() @ B.double()
    return (A @ B.to(A.dtype)).double()


def column_powers(V: Tensor) -> Tensor:
    """The power of two next above each column of V, and 1 for columns of zeros: dividing by it loses nothing."""
    sizes = V.abs().amax(dim=0).double() if len(V) else torch.zeros(V.shape[1], dtype=torch.float64, device=V.device)
    return torch.where(sizes > 0, torch.exp2(torch.frexp(sizes)[1].double()), 1.0)


def weigh_rows(U: Tensor, w: Tensor | None) -> Tensor:
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
