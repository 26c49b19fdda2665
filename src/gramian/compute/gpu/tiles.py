r"""The hot loop of kernel methods on a device: K V for K = k(X, Z), tile by tile, K never stored.

The same functions as in :mod:`gramian.compute.tiles`; what hands out the tiles is made by :func:`prepare` from the
kernel's formula (see :class:`gramian.kernels.formula.Formula`) and two tensors of points. On a CUDA card tiles are
evaluated and multiplied inside one Triton kernel (:mod:`gramian.compute.gpu._triton_tiles`); elsewhere plain torch does
the same in chunks of bounded size.

How precise a product is follows from what was asked: float64 tensors are ``"double"``; float32 ones are ``"accurate"``
(relative error at most 2e-6), or ``"fast"`` (5e-4) where the tolerance allows it and the points are such that fp16
tensor cores keep that promise. :mod:`gramian.compute.gpu._precision` has the rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from gramian.compute.devices import refuse_beyond_device, torch_dtype
from gramian.compute.gpu._combined import LowRankPairs, ProductPairs, SumPairs
from gramian.compute.gpu._launch import triton_for
from gramian.compute.gpu._pairs import CompiledPairs, KernelPairs, PlainPairs, count, slices
from gramian.compute.gpu._points import layout
from gramian.compute.gpu._precision import choose

__all__ = ["KernelPairs", "adjoint", "dense", "normal", "prepare", "product", "symmetric_product"]

Tensor = Any
Part = Any  # None, a slice, or a tensor of indices

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
        _check(points, formula)
    if Z is not None and X.shape[1] != Z.shape[1]:
        raise ValueError(f"X has {X.shape[1]} columns and Z has {Z.shape[1]}: a kernel compares points of one space.")
    return _prepared(_merged(formula), X, Z, dtype, tolerance)


def _prepared(formula: Any, X: Tensor, Z: Tensor | None, dtype: Any, tolerance: float | None) -> KernelPairs:
    if formula.geometry in ("sum", "product"):
        # a product is made of tiles: accurate ones, for errors of factors add up
        wanted = tolerance if formula.geometry == "sum" else None
        parts = [_prepared(part, X, Z, dtype, wanted) for part in formula.parts]
        return (SumPairs if formula.geometry == "sum" else ProductPairs)(formula.factor, parts)
    if formula.profile == "identity" and formula.geometry in ("inner", "cosine"):
        return LowRankPairs(formula, X, Z, dtype)
    triton = triton_for(X) and min(X.shape) > 0 and (Z is None or len(Z) > 0)
    _refuse_beyond(X, Z, dtype, triton)
    chosen = choose(formula, X, Z, dtype, tolerance, triton)
    return (CompiledPairs if triton else PlainPairs)(formula, chosen, X, Z, dtype)


def _refuse_beyond(X: Tensor, Z: Tensor | None, dtype: Any, triton: bool) -> None:
    """Predict what prepared points take: both sides, as rows of fp16 parts or of float64 numbers for the kernels."""
    n, p = len(X) + (len(X if Z is None else Z) if triton or Z is not None else 0), X.shape[1]
    wide = dtype == torch.float64
    nbytes = n * (layout(p, 0 if wide else 2, True)[2] * (8 if wide else 2) if triton else p * dtype.itemsize)
    if nbytes > LARGE:
        what = f"Points prepared for products ({n:,} rows of {p} features)"
        refuse_beyond_device(nbytes, X.device, what, "Use fewer rows at a time, or device='cpu'.")


def _merged(formula: Any) -> Any:
    """The formula with products of Gaussian kernels as one Gaussian kernel, and of Laplacian ones as one."""
    if not formula.parts:
        return formula
    parts = [_merged(part) for part in formula.parts]
    kinds = {(part.geometry, part.profile) for part in parts}
    if formula.geometry == "product" and kinds in ({("squared", "exp")}, {("absolute", "exp")}):
        power = 2 if parts[0].geometry == "squared" else 1
        scale = sum(np.asarray(part.scale, dtype=np.float64) ** power for part in parts) ** (1 / power)
        factor = formula.factor * float(np.prod([part.factor for part in parts]))
        return parts[0]._replace(scale=scale, factor=factor)
    return formula._replace(parts=tuple(parts))


def _check(X: Tensor, formula: Any) -> None:
    """Refuse what is no set of points, by name."""
    if X.ndim != 2:
        raise ValueError(f"Expected rows of features (2 dimensions), got shape {tuple(X.shape)}.")
    if not bool(torch.isfinite(X).all()):
        i, j = torch.nonzero(~torch.isfinite(X))[0].tolist()
        raise ValueError(
            f"A kernel needs finite numbers; row {i}, column {j} is {float(X[i, j])}. Remove or replace it."
        )
    if _has_chi2(formula) and X.numel() and float(X.min()) < 0:
        i, j = torch.nonzero(X.min() == X)[0].tolist()
        raise ValueError(
            f"Negative values in data passed to a chi-squared kernel: row {i}, column {j} is {float(X[i, j])}."
        )


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
