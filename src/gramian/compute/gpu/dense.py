r"""The hot loops for dense tensors: the same names, signatures and meaning as :mod:`gramian.compute.reference`.

D = unit·X − origin is formed a chunk of rows at a time, never as a copy of X, and not at all where X can be multiplied
as it lies. Sums over many rows, AᵀB with a small result, are shared between the processors of a GPU as one product for
each part of the rows, whose results are then added up: a single product would leave most of them idle. Sums of float32
numbers in the dtype of a float64 ``like`` are float64 throughout, on the units that the GPU has for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

Array = Any  # torch.Tensor

CHUNK_BYTES = 2**31  # of a chunk of D on a GPU: 10⁶ × 200 in one piece takes 3.1 ms on an H200, in 2²⁸ bytes each 4.1
HOST_BYTES = 2**24  # of one on the CPU
PARTS = 132  # of the rows of a chunk: one for each processor of the largest GPUs
PART_ROWS = 128  # fewer in a part are not worth a product of their own
NARROW = 128  # columns from which only one triangle of DᵀD is computed, by halves


def product(X: Array, V: Array, origin: Array | None = None, unit: float = 1.0) -> Array:
    """D V."""
    out = V.new_empty((X.shape[0], V.shape[1]))
    with every_digit():
        for part, D in _chunks(X, V.dtype, origin, unit):
            out[part] = D @ V
    return out


def adjoint(X: Array, U: Array, origin: Array | None = None, unit: float = 1.0) -> Array:
    """Dᵀ U."""
    out = U.new_zeros((X.shape[1], U.shape[1]))
    with every_digit():
        for part, D in _chunks(X, U.dtype, origin, unit):
            out += _inner(D, U[part])
    return out


def normal(X: Array, V: Array, w: Array | None = None, origin: Array | None = None, unit: float = 1.0) -> Array:
    """Dᵀ diag(w) D V: both products while a chunk is at hand."""
    out = V.new_zeros((X.shape[1], V.shape[1]))
    with every_digit():
        for part, D in _chunks(X, V.dtype, origin, unit):
            Y = D @ V
            out += _inner(D, Y if w is None else Y.mul_(w[part, None]))
    return out


def conormal(X: Array, U: Array, w: Array | None = None, origin: Array | None = None, unit: float = 1.0) -> Array:
    """D diag(w) Dᵀ U."""
    Y = adjoint(X, U, origin, unit)
    return product(X, Y if w is None else Y.mul_(w[:, None]), origin, unit)


def scatter(
    X: Array, w: Array | None, like: Array, origin: Array | None = None, unit: float = 1.0
) -> tuple[Array, Array]:
    """Σ w d and Σ w d dᵀ over the rows d of D, in the dtype of ``like``."""
    p = X.shape[1]
    s, G = like.new_zeros(p), like.new_zeros((p, p))
    root = None if w is None else w.sqrt().to(like.dtype)
    with every_digit():
        for part, D in _chunks(X, like.dtype, origin, unit, whole=w is None):
            if root is None:
                s += D.sum(0)
            else:
                D = D * root[part, None]
                s += _inner(D, root[part, None])[:, 0]
            G += _square(D)
    return s, 0.5 * (G + G.T)


def spread(
    X: Array, w: Array | None, like: Array, origin: Array | None = None, unit: float = 1.0
) -> tuple[Array, Array]:
    """Σ w d and Σ w d² by column, in the dtype of ``like``."""
    s, q = like.new_zeros(X.shape[1]), like.new_zeros(X.shape[1])
    for part, D in _chunks(X, like.dtype, origin, unit, whole=False):
        WD = D if w is None else D * w[part, None]
        s += WD.sum(0)
        q += (WD * D).sum(0)
    return s, q


def triangle(X: Array) -> Array:
    """R of X = QR."""
    return torch.linalg.qr(X, mode="r")[1]


def _chunks(
    X: Array, dtype: torch.dtype, origin: Array | None, unit: float, *, whole: bool = True
) -> Iterator[tuple[slice, Array]]:
    """Yield (rows, D) with D in ``dtype``; all of X at once where nothing has to be formed and ``whole`` is allowed."""
    n, p = X.shape
    if whole and origin is None and unit == 1.0 and X.dtype == dtype:
        yield slice(0, n), X
        return
    room = CHUNK_BYTES if X.is_cuda else HOST_BYTES
    rows = max(1, room // (max(1, p) * torch.finfo(dtype).bits // 8))
    rows = max(PARTS, rows // PARTS * PARTS)
    minus = None if origin is None else -origin.to(dtype)
    for i in range(0, n, rows):
        part = slice(i, min(i + rows, n))
        shift = minus if minus is None or minus.shape[0] == 1 else minus[part]
        x = X[part] if shift is not None and torch.promote_types(X.dtype, dtype) == dtype else X[part].to(dtype)
        if shift is not None:
            yield part, torch.add(shift, x, alpha=unit)  # one kernel, which reads X as it is stored
        else:
            yield part, x if unit == 1.0 else x * unit


def _inner(A: Array, B: Array) -> Array:
    """AᵀB for tall A and B, as one product for each part of the rows."""
    # how many parts of the rows have a product of their own; 1 on the CPU, whose BLAS shares by itself
    room = CHUNK_BYTES // (4 * A.element_size() * max(1, A.shape[1] * B.shape[1]))
    parts = max(1, min(PARTS, A.shape[0] // PART_ROWS, room)) if A.is_cuda else 1
    if parts == 1:
        return A.T @ B
    whole = A.shape[0] // parts * parts
    split = (parts, whole // parts)
    out = torch.bmm(A[:whole].unflatten(0, split).mT, B[:whole].unflatten(0, split)).sum(0)
    return out if whole == A.shape[0] else out + A[whole:].T @ B[whole:]


def _square(D: Array) -> Array:
    """DᵀD, of which one triangle of blocks is computed on a GPU: half the work where there are many columns."""
    p = D.shape[1]
    if not D.is_cuda or p <= NARROW:
        return _inner(D, D)
    half = -(-p // 128) * 64  # about the middle, and a multiple of what a product is tiled by
    left, right = D[:, :half], D[:, half:]
    corner = _inner(left, right)
    above = torch.cat([_square(left), corner], dim=1)
    below = torch.cat([corner.T, _square(right)], dim=1)
    return torch.cat([above, below], dim=0)


@contextmanager
def every_digit() -> Iterator[None]:
    """Multiply float32 numbers with all their digits, though the user may have allowed TensorFloat-32 elsewhere."""
    settings, exact = torch.backends.cuda.matmul, {"allow_tf32": False, "fp32_precision": "ieee"}
    try:
        name, before = "allow_tf32", settings.allow_tf32
    except RuntimeError:  # it was allowed by the newer of two settings, which do not mix
        name, before = "fp32_precision", settings.fp32_precision
    if before == exact[name]:
        yield
        return
    setattr(settings, name, exact[name])
    try:
        yield
    finally:
        setattr(settings, name, before)
