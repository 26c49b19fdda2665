"""Kernels of Gaussian mixtures: the sums of an expectation step for tiles of rows, both ways.

Tiles lie with rows along their second axis, so that the few components are the short side of every product: on a
GPU, 16 is the height of a tensor core's tile, and nothing is computed twice.
"""

from __future__ import annotations

import triton
import triton.language as tl

# mypy: disable-error-code="no-untyped-def, untyped-decorator, assignment"
# ruff: noqa: B007, RUF005, SIM108, SIM300  # Triton reads these lines its own way


@triton.jit
def _shares(L, w, least):
    """Responsibilities times weights, and w log₂ Σ 2^L, from logarithms to base 2 of shape (components, rows)."""
    top = tl.max(L, 0)
    e = tl.exp2(L - top[None, :])
    total = tl.sum(e, 0)
    R = e / total[None, :]
    return tl.where(R > least, R, 0.0) * w[None, :], w * (top + tl.log2(total))


@triton.jit
def _weights(W, r, n, T: tl.constexpr, WEIGHTED: tl.constexpr):
    """The weights of rows; 0 beyond the last."""
    if WEIGHTED:
        w = tl.load(W + r, mask=r < n, other=0.0).to(T)
    else:
        w = tl.where(r < n, 1.0, 0.0).to(T)
    return w


@triton.jit
def _tile(X, r, c, n, d, row, column, T: tl.constexpr):
    """Xᵀ of some rows, 0 beyond the last row and column."""
    mask = (c < d)[:, None] & (r < n)[None, :]
    return tl.load(X + r[None, :] * row + c.to(tl.int64)[:, None] * column, mask=mask, other=0.0).to(T)


@triton.jit(do_not_specialize=["n", "tiles"])
def expanded_sums(
    X,
    W,
    MAP,
    FIRST,
    SECOND,
    OFFSETS,
    OUT,
    HEIGHTS,
    n,
    d,
    row,
    column,
    tiles,
    least,
    T: tl.constexpr,
    K: tl.constexpr,
    D: tl.constexpr,
    CHUNK: tl.constexpr,
    CHUNKS: tl.constexpr,
    ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Σ w r f for the monomials f = y_i y_j of y = (x, 0) + offsets, of which one is 1: a program's share of the rows.

    MAP is (K, monomials), in logarithms to base 2; FIRST and SECOND name i and j of each monomial.
    """
    program = tl.program_id(0)
    k, c, j = tl.arange(0, K), tl.arange(0, CHUNK), tl.arange(0, D)
    offsets = tl.load(OFFSETS + j)
    height = tl.zeros((ROWS,), tl.float64)
    sums = ()
    for q in tl.static_range(CHUNKS):
        sums = sums + (tl.zeros((K, CHUNK), T),)
    for t in tl.range(program, tiles, tl.num_programs(0), num_stages=1):
        r = tl.cast(t, tl.int64) * ROWS + tl.arange(0, ROWS)
        Y = _tile(X, r, j, n, d, row, column, T) + offsets[:, None]
        L = tl.zeros((K, ROWS), T)
        monomials = ()
        for q in tl.static_range(CHUNKS):
            first = tl.broadcast_to(tl.load(FIRST + q * CHUNK + c)[:, None], (CHUNK, ROWS))
            second = tl.broadcast_to(tl.load(SECOND + q * CHUNK + c)[:, None], (CHUNK, ROWS))
            F = tl.gather(Y, first, 0) * tl.gather(Y, second, 0)
            part = tl.load(MAP + k[:, None] * (CHUNK * CHUNKS) + (q * CHUNK + c)[None, :])
            L += tl.dot(part, F, input_precision=PRECISION, out_dtype=T)
            monomials = monomials + (F,)
        R, each = _shares(L, _weights(W, r, n, T, WEIGHTED), least)
        height += each.to(tl.float64)
        added = ()
        for q in tl.static_range(CHUNKS):  # a product of its own for each tile: sums are rounded, not cut off
            share = tl.dot(R, tl.trans(monomials[q]), input_precision=PRECISION, out_dtype=T)
            added = added + (sums[q] + share,)
        sums = added
    out = OUT + program * (K * CHUNK * CHUNKS) + k[:, None] * (CHUNK * CHUNKS)
    for q in tl.static_range(CHUNKS):
        tl.store(out + (q * CHUNK + c)[None, :], sums[q])
    tl.store(HEIGHTS + program, tl.sum(height, 0))


@triton.jit
def _whiten(Y, ROOTS, CENTRES, SHIFTS, k, i, D: tl.constexpr, PRECISION: tl.constexpr, T: tl.constexpr):
    """R_k(x − μ_k): the difference is taken first, so that nothing cancels, and what rounding μ_k lost is added."""
    E = Y - tl.load(CENTRES + k * D + i)[:, None]
    R = tl.load(ROOTS + k * D * D + i[:, None] * D + i[None, :])
    return tl.dot(R, E, input_precision=PRECISION, out_dtype=T) + tl.load(SHIFTS + k * D + i)[:, None]


@triton.jit(do_not_specialize=["n", "components"])
def whitened_shares(
    X,
    W,
    ROOTS,
    CENTRES,
    SHIFTS,
    CONSTANTS,
    SHARES,
    HEIGHTS,
    n,
    d,
    row,
    column,
    components,
    least,
    T: tl.constexpr,
    K: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
    WEIGHTED: tl.constexpr,
):
    """Shares (components, n) of the rows of one tile, from y_k = R_k(x − μ_k)."""
    t = tl.program_id(0)
    r = tl.cast(t, tl.int64) * ROWS + tl.arange(0, ROWS)
    i, kk = tl.arange(0, D), tl.arange(0, K)
    Y = _tile(X, r, i, n, d, row, column, T)
    L = tl.zeros((K, ROWS), T) - 1e30
    for k in range(components):
        y = _whiten(Y, ROOTS, CENTRES, SHIFTS, k, i, D, PRECISION, T)
        q = tl.load(CONSTANTS + k) - 0.7213475204444817 * tl.sum(y * y, 0)  # ½ log₂ e
        L = tl.where((kk == k)[:, None], q[None, :], L)
    R, each = _shares(L, _weights(W, r, n, T, WEIGHTED), least)
    mask = (kk < components)[:, None] & (r < n)[None, :]
    tl.store(SHARES + tl.cast(kk, tl.int64)[:, None] * n + r[None, :], R, mask=mask)
    tl.store(HEIGHTS + t, tl.sum(each.to(tl.float64), 0))


@triton.jit(do_not_specialize=["n", "tiles"])
def whitened_sums(
    X,
    ROOTS,
    CENTRES,
    SHIFTS,
    SHARES,
    COUNTS,
    FIRST,
    SECOND,
    n,
    d,
    row,
    column,
    tiles,
    T: tl.constexpr,
    D: tl.constexpr,
    ROWS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Σr, Σry and Σryyᵀ of one component over some tiles; tiles without a share in it are skipped."""
    k, program, programs = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    i = tl.arange(0, D)
    count = tl.zeros((ROWS,), T)
    first = tl.zeros((D,), T)
    second = tl.zeros((D, D), T)
    for t in tl.range(program, tiles, programs, num_stages=1):
        r = tl.cast(t, tl.int64) * ROWS + tl.arange(0, ROWS)
        R = tl.load(SHARES + tl.cast(k, tl.int64) * n + r, mask=r < n, other=0.0)
        if tl.max(R, 0) > 0:
            Y = _tile(X, r, i, n, d, row, column, T)
            y = _whiten(Y, ROOTS, CENTRES, SHIFTS, k, i, D, PRECISION, T)
            z = y * R[None, :]
            count += R
            first += tl.sum(z, 1)
            second += tl.dot(z, tl.trans(y), input_precision=PRECISION, out_dtype=T)
    at = program * tl.num_programs(0) + k
    tl.store(COUNTS + at, tl.sum(count, 0))
    tl.store(FIRST + at * D + i, first)
    tl.store(SECOND + at * D * D + i[:, None] * D + i[None, :], second)
