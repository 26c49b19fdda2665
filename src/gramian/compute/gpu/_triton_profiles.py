"""Kernel values inside Triton kernels: u of a tile of pairs, from products or from differences, and f(u)."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["apart", "profile", "together"]


@triton.jit
def together(X, Z, x, rows, columns, one, KD: tl.constexpr, BK: tl.constexpr):
    """t = x·z of prepared rows by matrix multiplication; x has the rows if they fit, else both are read in blocks."""
    k = tl.arange(0, BK)
    there = Z + columns.to(tl.int64)[None, :] * KD + k[:, None]
    if KD == BK:
        t = tl.dot(x, tl.load(there))
    else:
        here = X + rows.to(tl.int64)[:, None] * KD + k[None, :]
        t = tl.dot(tl.load(here), tl.load(there))
        for _ in range(BK, KD, BK):
            here += BK
            there += BK
            # times one: blocks are added outside of the tensor cores, which cut off digits
            t += tl.dot(tl.load(here), tl.load(there)) * one
    return t


@triton.jit
def apart(
    X, Z, rows, columns, ldx, ldz, D,
    GEOMETRY: tl.constexpr, UNROLL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """t = −u from the differences of points stored by features, or x·z; identical points are at 0 exactly."""
    # zeros from a product: so the compiler lays the tile out in patches, and each number read serves many pairs
    KIND: tl.constexpr = tl.float16 if X.dtype.element_ty == tl.float32 else tl.float64
    u = tl.dot(tl.zeros((BM, 16), KIND), tl.zeros((16, BN), KIND), out_dtype=X.dtype.element_ty)
    here, there = X, Z
    for _ in range(0, D, UNROLL):
        for _ in tl.static_range(UNROLL):
            x = tl.load(here + rows)[:, None]
            z = tl.load(there + columns)[None, :]
            if GEOMETRY == "inner":
                u += x * z
            elif GEOMETRY == "squared":
                u += (x - z) * (x - z)
            elif GEOMETRY == "absolute":
                u += tl.abs(x - z)
            else:  # chi2; (x − z)·((x − z)/(x + z)), 0 where both are
                u += (x - z) * ((x - z) / tl.maximum(x + z, 1e-37))
            here += ldx
            there += ldz
    if GEOMETRY == "inner":
        return u
    return -u


@triton.jit
def profile(t, a, b, PROFILE: tl.constexpr, DEGREE: tl.constexpr):
    """f: of u = −t for distances, of a·t + b for inner products."""
    if PROFILE == "exp":
        f = tl.exp2(t)
    elif PROFILE == "matern12":
        f = _exp(-tl.sqrt(tl.maximum(-t, 0.0)))
    elif PROFILE == "matern32":
        r = tl.sqrt(tl.maximum(-t, 0.0))
        f = (1.0 + r) * _exp(-r)
    elif PROFILE == "matern52":
        r = tl.sqrt(tl.maximum(-t, 0.0))
        f = (1.0 + r * (1.0 + r / 3.0)) * _exp(-r)
    elif PROFILE == "rational":
        u = tl.maximum(-t, 0.0)
        w = 1.0 + u
        # log2(1 + u) with what rounding 1 + u has lost
        f = tl.exp2(-a * (tl.log2(w) + (u - (w - 1.0)) / w * 1.4426950408889634))
    elif PROFILE == "power":
        f = _power(a * t + b, DEGREE)
    elif PROFILE == "tanh":
        f = _tanh(a * t + b)
    else:
        f = -t
    return f


@triton.jit
def _exp(t):
    return tl.exp2(t * 1.4426950408889634)


@triton.jit
def _power(u, DEGREE: tl.constexpr):
    """u^DEGREE by squaring."""
    f = u
    if DEGREE == 1:
        f = u
    elif DEGREE % 2 == 0:
        half = _power(u, DEGREE // 2)
        f = half * half
    else:
        half = _power(u, DEGREE // 2)
        f = half * half * u
    return f


@triton.jit
def _tanh(u):
    """1 − 2/(1 + e²ᵘ); near 0, where that would cancel, Lambert's continued fraction, right to 1e-15 up to 1/2."""
    s = tl.minimum(tl.abs(u), 0.5)
    q = s * s
    near = s * (135135.0 + q * (17325.0 + q * (378.0 + q)))
    near = near / (135135.0 + q * (62370.0 + q * (3150.0 + q * 28.0)))
    far = 1.0 - 2.0 / (1.0 + _exp(2.0 * tl.abs(u)))
    f = tl.where(tl.abs(u) < 0.5, near, far)
    return tl.where(u < 0.0, -f, f)
