r"""Kernel products in Triton: tiles of k(X, Z) are evaluated in registers, multiplied there, and forgotten.

Points for tensor cores are rows of fp16 (or float64) numbers so arranged that their inner product is the kernel's
argument itself; points for differences are stored by features. Both are padded to whole tiles with zeros, and so is
V, so no tile needs a mask. Sums run in float32 over a few thousand columns and from there on in float64.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

from gramian.compute.gpu._triton_profiles import apart, profile, together

__all__ = [
    "FILL",
    "FLUSH",
    "PROGRAMS",
    "SYMMETRIC",
    "TILES",
    "WRITE",
    "fill",
    "multiply",
    "multiply_symmetric",
    "write",
]

# Sizes measured on an H200. "fp16": products of points that fit in one tile; "long": of longer ones, in blocks; "wide":
# in float64; "float32", "float64": differences.
# kind: {columns of V as stored: (rows, columns of a tile, warps, stages)}
TILES = {
    "fp16": {1: (128, 64, 4, 3), 16: (128, 64, 4, 3), 32: (128, 64, 4, 3), 64: (128, 64, 8, 3), 128: (128, 64, 8, 2)},
    "long": {1: (128, 128, 8, 3)},
    "wide": {1: (64, 64, 4, 2), 16: (64, 64, 4, 2), 32: (64, 32, 4, 2)},
    "float32": {1: (64, 64, 4, 2), 16: (64, 64, 4, 2), 64: (64, 64, 4, 2)},
    "float64": {1: (64, 64, 4, 2), 16: (64, 64, 4, 2), 32: (64, 32, 4, 2)},
}
# kind: (rows and columns of a tile, warps, stages) of symmetric products by one column
SYMMETRIC = {
    "fp16": (128, 4, 3),
    "long": (128, 8, 3),
    "wide": (64, 4, 2),
    "float32": (64, 4, 2),
    "float64": (64, 4, 2),
}
FILL = (64, 64, 4)  # rows, columns, warps of a tile that is written
WRITE = (128, 128, 8)  # ... of points that are multiplied in blocks
FLUSH = 16384  # columns after which sums go on in float64
PROGRAMS = 2048  # wanted at least, to keep a card busy


@triton.jit
def _tile(
    X, Z, x, rows, columns, ldx, ldz, D, a, b, one,
    GEOMETRY: tl.constexpr, PROFILE: tl.constexpr, DEGREE: tl.constexpr,
    KD: tl.constexpr, BK: tl.constexpr, UNROLL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """f for the pairs of some rows and columns."""
    if GEOMETRY == "dot":
        t = together(X, Z, x, rows, columns, one, KD, BK)
    else:
        t = apart(X, Z, rows, columns, ldx, ldz, D, GEOMETRY, UNROLL, BM, BN)
    return profile(t, a, b, PROFILE, DEGREE)


@triton.jit
def _held(X, rows, GEOMETRY: tl.constexpr, KD: tl.constexpr, BK: tl.constexpr):
    """The rows of a block for the whole of its columns, where they are multiplied and fit."""
    if GEOMETRY == "dot" and KD == BK:
        x = tl.load(X + rows.to(tl.int64)[:, None] * KD + tl.arange(0, BK)[None, :])
    else:
        x = 0
    return x


@triton.jit
def multiply(
    X, Z, V, out, parameters, n, m, ldx, ldz, D, span, flush,
    GEOMETRY: tl.constexpr, PROFILE: tl.constexpr, DEGREE: tl.constexpr, KD: tl.constexpr, BK: tl.constexpr,
    UNROLL: tl.constexpr, C: tl.constexpr, PIECES: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """out[split] += k(X, Z) V for one block of rows and one span of columns, a multiple of ``flush``.

    V has C columns: one in float32 or float64; or several in fp16, multiplied by one or two fp16 pieces of a tile; or
    several in the precision of the tile (PIECES = 0).
    """
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    first = tl.program_id(1) * span
    last = tl.minimum(first + span, m)
    lift, a, b, one = (tl.load(parameters), tl.load(parameters + 1), tl.load(parameters + 2), tl.load(parameters + 3))
    x = _held(X, rows, GEOMETRY, KD, BK)
    here = out + tl.program_id(1).to(tl.int64) * n * C + rows.to(tl.int64) * C
    within = rows < n
    side, width = tl.arange(0, BN), tl.arange(0, C)
    for start in range(first, last, flush):
        total = tl.zeros((BM,) if C == 1 else (BM, C), parameters.dtype.element_ty)
        for j in tl.range(start, tl.minimum(start + flush, last), BN, num_stages=STAGES):
            columns = j + side
            p = _tile(
                X, Z, x, rows, columns, ldx, ldz, D, a, b, one, GEOMETRY, PROFILE, DEGREE, KD, BK, UNROLL, BM, BN
            )  # fmt: skip
            if C == 1:
                total += tl.sum(p * tl.load(V + columns)[None, :], 1)
            else:
                v = tl.load(V + columns.to(tl.int64)[:, None] * C + width[None, :])
                if PIECES == 0:
                    total = tl.dot(p, v, total, input_precision="ieee", out_dtype=total.dtype)
                elif PIECES == 1:
                    total = tl.dot((p * lift).to(tl.float16), v, total)
                else:
                    p *= lift
                    high = p.to(tl.float16)
                    part = tl.dot(high, v)
                    part = tl.dot((p - high.to(tl.float32)).to(tl.float16), v, part)
                    # times one: the compiler must not add to ``total`` inside the tensor cores, which cut off digits
                    total += part * one
        if C == 1:
            tl.store(here, tl.load(here, mask=within) + total.to(tl.float64), mask=within)
        else:
            places = here[:, None] + width[None, :]
            sums = tl.load(places, mask=within[:, None]) + total.to(tl.float64)
            tl.store(places, sums, mask=within[:, None])


@triton.jit
def multiply_symmetric(
    X, Z, V, out, parameters, n, ldx, D, blocks, flush,
    GEOMETRY: tl.constexpr, PROFILE: tl.constexpr, DEGREE: tl.constexpr, KD: tl.constexpr, BK: tl.constexpr,
    UNROLL: tl.constexpr, B: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """out += k(X, X) v: a block of rows and the half of the other blocks that follow it, wrapped around.

    Each tile serves its rows and, transposed, its columns. The last parameter is k(x, x) where it is known, else NaN.
    """
    i = tl.program_id(0)
    side = tl.arange(0, B)
    rows = i * B + side
    a, b, one = tl.load(parameters + 1), tl.load(parameters + 2), tl.load(parameters + 3)
    x = _held(X, rows, GEOMETRY, KD, BK)
    here = tl.load(V + rows)
    p = _tile(X, Z, x, rows, rows, ldx, ldx, D, a, b, one, GEOMETRY, PROFILE, DEGREE, KD, BK, UNROLL, B, B)
    known = tl.load(parameters + 4)
    p = tl.where(side[:, None] == side[None, :], tl.where(known == known, known, p), p)
    tl.atomic_add(out + rows, tl.sum(p * here[None, :], 1).to(tl.float64), mask=rows < n, sem="relaxed")
    half = blocks // 2
    last = tl.where((blocks % 2 == 0) & (i >= half), half, half + 1)  # an even number of blocks has a middle one
    for start in range(1, last, flush):
        total = tl.zeros((B,), parameters.dtype.element_ty)
        for step in tl.range(start, tl.minimum(start + flush, last), num_stages=STAGES):
            j = i + step
            j = tl.where(j >= blocks, j - blocks, j)
            columns = j * B + side
            p = _tile(X, Z, x, rows, columns, ldx, ldx, D, a, b, one, GEOMETRY, PROFILE, DEGREE, KD, BK, UNROLL, B, B)
            total += tl.sum(p * tl.load(V + columns)[None, :], 1)
            mirrored = tl.sum(p * here[:, None], 0)
            tl.atomic_add(out + columns, mirrored.to(tl.float64), mask=columns < n, sem="relaxed")
        tl.atomic_add(out + rows, total.to(tl.float64), mask=rows < n, sem="relaxed")


@triton.jit
def fill(
    X, Z, out, parameters, n, m, ldx, ldz, ldo, D,
    GEOMETRY: tl.constexpr, PROFILE: tl.constexpr, DEGREE: tl.constexpr, UNROLL: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """out = c k(X, Z), one tile."""
    across = tl.cdiv(m, BN)
    rows = tl.program_id(0) // across * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % across * BN + tl.arange(0, BN)
    factor, a, b = tl.load(parameters), tl.load(parameters + 1), tl.load(parameters + 2)
    # what lies beyond the last row or column is read again and not written
    t = apart(X, Z, tl.minimum(rows, n - 1), tl.minimum(columns, m - 1), ldx, ldz, D, GEOMETRY, UNROLL, BM, BN)
    p = factor * profile(t, a, b, PROFILE, DEGREE)
    places = out + rows.to(tl.int64)[:, None] * ldo + columns[None, :]
    tl.store(places, p.to(out.dtype.element_ty), mask=(rows[:, None] < n) & (columns[None, :] < m))


@triton.jit
def write(
    X, Z, out, parameters, n, m, ldo,
    PROFILE: tl.constexpr, DEGREE: tl.constexpr, KD: tl.constexpr, BK: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """out = f, one tile of points that are multiplied in blocks."""
    across = tl.cdiv(m, BN)
    rows = tl.program_id(0) // across * BM + tl.arange(0, BM)
    columns = tl.program_id(0) % across * BN + tl.arange(0, BN)
    a, b, one = tl.load(parameters + 1), tl.load(parameters + 2), tl.load(parameters + 3)
    p = profile(together(X, Z, 0, rows, columns, one, KD, BK), a, b, PROFILE, DEGREE)
    places = out + rows.to(tl.int64)[:, None] * ldo + columns[None, :]
    tl.store(places, p, mask=(rows[:, None] < n) & (columns[None, :] < m))
