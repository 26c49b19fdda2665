r"""Kernel products by the Triton kernels: sizes of tiles, columns in groups, pieces of V, and sums put together."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl

from gramian.compute.gpu.dense import every_digit
from gramian.compute.gpu.points import BLOCK, BLOCK64, PAD, UNROLL
from gramian.compute.gpu.precision import Arithmetic
from gramian.compute.gpu.tiles import KernelPairs, column_powers, count

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

# Counts of rows are not specialised: a kernel is compiled once, and not again where 16 does not divide the next number.


@triton.jit
def dot_points(X, Z, x, rows, columns, one, KD: tl.constexpr, BK: tl.constexpr):
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
def compare_points(
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


# mypy: disable-error-code="no-untyped-def, untyped-decorator"


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
PROGRAMS = 2048  # wanted at least, to keep a GPU busy


@triton.jit
def _tile(
    X, Z, x, rows, columns, ldx, ldz, D, a, b, one,
    GEOMETRY: tl.constexpr, PROFILE: tl.constexpr, DEGREE: tl.constexpr,
    KD: tl.constexpr, BK: tl.constexpr, UNROLL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """f for the pairs of some rows and columns."""
    if GEOMETRY == "dot":
        t = dot_points(X, Z, x, rows, columns, one, KD, BK)
    else:
        t = compare_points(X, Z, rows, columns, ldx, ldz, D, GEOMETRY, UNROLL, BM, BN)
    return profile(t, a, b, PROFILE, DEGREE)


@triton.jit
def _load_rows(X, rows, GEOMETRY: tl.constexpr, KD: tl.constexpr, BK: tl.constexpr):
    """The rows of a block for the whole of its columns, where they are multiplied and fit."""
    if GEOMETRY == "dot" and KD == BK:
        x = tl.load(X + rows.to(tl.int64)[:, None] * KD + tl.arange(0, BK)[None, :])
    else:
        x = 0
    return x


@triton.jit(do_not_specialize=["n", "m", "D", "span", "flush"])
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
    x = _load_rows(X, rows, GEOMETRY, KD, BK)
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


@triton.jit(do_not_specialize=["n", "D", "blocks", "flush"])
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
    x = _load_rows(X, rows, GEOMETRY, KD, BK)
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
    t = compare_points(X, Z, tl.minimum(rows, n - 1), tl.minimum(columns, m - 1), ldx, ldz, D, GEOMETRY, UNROLL, BM, BN)
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
    p = profile(dot_points(X, Z, 0, rows, columns, one, KD, BK), a, b, PROFILE, DEGREE)
    places = out + rows.to(tl.int64)[:, None] * ldo + columns[None, :]
    tl.store(places, p, mask=(rows[:, None] < n) & (columns[None, :] < m))


Tensor = Any

LIFT = 2.0**15  # what the largest number of a tile, and of a column of V, is brought to below as fp16 pieces
GROUPS = {0: 16, 1: 64, 2: 32}  # columns at a time, by pieces
CHUNK_ROWS, CHUNK_COLUMNS = 2**17, 2**11  # of what is written down: longer sums in float32 would round too much
MANY = 256  # features beyond which the sum of their differences in float32 rounds too much for single values
SMALL = 2**16  # rows below which symmetric tiles are too few to keep a GPU busy


class TritonPairs(KernelPairs):
    """One formula of one geometry, by the kernels written in Triton.

    Parameters
    ----------
    formula : Formula
        Of the kernel.
    chosen : Arithmetic
        How.
    X, Z : tensors (n, p), (m, p); Z may be None
        Points.
    dtype : torch.dtype
        Of products.
    """

    two_products = True  # tiles are evaluated twice, in a fifth of the time that writing and reading them would take

    def __init__(self, formula: Any, chosen: Arithmetic, X: Tensor, Z: Tensor | None, dtype: Any) -> None:
        super().__init__(X, Z, dtype, chosen.mode, chosen.error, (chosen.words,))
        self.formula, self.chosen, self.X, self.Z = formula, chosen, X, Z
        (self.n, self.m), self.p = self.shape, X.shape[1]
        self._kept: dict[str, Tensor] = {}

    def times(self, V: Tensor) -> Tensor:
        """K V."""
        return self._multiply_by_groups(
            V, self.n, lambda part, group: self._multiply("left", "right", self.n, part, group)
        )

    def transposed_times(self, U: Tensor) -> Tensor:
        """Kᵀ U."""
        return self._multiply_by_groups(
            U, self.m, lambda part, group: self._multiply("right", "left", self.m, part, group)
        )

    def symmetric_times(self, V: Tensor) -> Tensor:
        """K V, with tiles that serve twice for one column of many rows."""
        if V.shape[1] != 1 or self.n < SMALL:
            return self.times(V)
        return self._multiply_by_groups(V, self.n, lambda part, group: self._symmetric(part))

    def _multiply_by_groups(self, V: Tensor, n: int, multiply: Callable[[Tensor, int], Tensor]) -> Tensor:
        """All columns, as many at a time as a tile is multiplied by, each scaled to the range of the arithmetic."""
        out = V.new_empty((n, V.shape[1]))
        most = GROUPS[self.chosen.pieces]
        for first in range(0, V.shape[1], most):
            part = V[:, first : first + most].double()
            sizes = column_powers(part)
            with _on(V.device):
                total = multiply(part / sizes, part.shape[1])
            out[:, first : first + most] = total * (sizes * self.formula.factor)
        return out

    def _multiply(self, here: str, there: str, n: int, V: Tensor, group: int) -> Tensor:
        """One group of columns by the tiles of all rows."""
        if self._kind == "long" and group > 1:
            return self._multiply_in_chunks(here, there, n, V)
        stored, lift = self._lay_out(V)
        X, Z, width = self._points(here), self._points(there), stored.shape[1]
        rows, columns, warps, stages = _tile_products(self._kind, width)
        across = stored.shape[0]
        splits = max(1, min(-(-PROGRAMS // -(-n // rows)), across // columns))
        span = -(-across // (columns * splits)) * columns
        splits = -(-across // span)
        out = torch.zeros((splits, n, width), dtype=torch.float64, device=V.device)
        multiply[(-(-n // rows), splits)](
            X, Z, stored, out, self._parameters(lift), n, across, *self._strides(X, Z), span, min(span, FLUSH),
            **self._constants(X), C=width, PIECES=self._pieces(width), BM=rows, BN=columns, STAGES=stages,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        total = out.sum(dim=0)
        if self._pieces(width):
            total = (total[:, : width // 2] + total[:, width // 2 :]) / (lift * LIFT)
        return total[:, :group]

    def _multiply_in_chunks(self, here: str, there: str, n: int, V: Tensor) -> Tensor:
        """The same for points of many features: chunks of K are written down and multiplied by the library.

        A kernel that multiplies blocks of points inside its loop over columns, and then the tile, gives wrong numbers
        on an H200 with Triton 3.6, with and without pipelining; each of the two products by itself does not.
        """
        X, Z, m = self._points(here), self._points(there), len(V)
        constants, parameters = self._constants(X), self._parameters(1.0)
        high, wide, warps = WRITE
        total, V = V.new_zeros((n, V.shape[1])), V.float()
        room = torch.empty((min(n, CHUNK_ROWS), min(m, CHUNK_COLUMNS)), dtype=torch.float32, device=V.device)
        names = ("PROFILE", "DEGREE", "KD", "BK")
        for i in range(0, n, CHUNK_ROWS):
            for j in range(0, m, CHUNK_COLUMNS):
                rows, columns = min(CHUNK_ROWS, n - i), min(CHUNK_COLUMNS, m - j)
                write[(-(-rows // high) * -(-columns // wide),)](
                    X[i:], Z[j:], room, parameters, rows, columns, room.stride(0),
                    **{name: constants[name] for name in names}, BM=high, BN=wide, num_warps=warps,
                )  # fmt: skip
                with every_digit():
                    total[i : i + rows] += room[:rows, :columns] @ V[j : j + columns]
        return total

    def _symmetric(self, V: Tensor) -> Tensor:
        """One column by the tiles on and above the diagonal."""
        X, Z = self._points("left"), self._points("right")
        stored, lift = self._lay_out(V)
        side, warps, stages = SYMMETRIC[self._kind]
        blocks, ldx = -(-self.n // side), self._strides(X, Z)[0]
        out = torch.zeros(self.n, dtype=torch.float64, device=V.device)
        multiply_symmetric[(blocks,)](
            X, Z, stored, out, self._parameters(lift), self.n, ldx, self.p, blocks, max(1, FLUSH // side),
            **self._constants(X), B=side, STAGES=stages, num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return out[:, None]

    def block(self, rows: Any, columns: Any) -> Tensor:
        """k(X[rows], Z[columns]) from differences."""
        n, m = (count(part, size) for part, size in zip((rows, columns), self.shape, strict=True))
        out = torch.empty((n, m), dtype=self.dtype, device=self.device)
        if not n or not m:
            return out
        dtype = torch.float64 if self.p > MANY else self.chosen.dtype
        X, Z = (_some(self._features(name, dtype), part) for name, part in (("left", rows), ("right", columns)))
        high, wide, warps = FILL
        constants = self._constants(X, apart=True)
        names = ("GEOMETRY", "PROFILE", "DEGREE", "UNROLL")
        with _on(out.device):
            fill[(-(-n // high) * -(-m // wide),)](
                X, Z, out, self._parameters(self.formula.factor, apart=True).to(dtype), n, m, X.stride(0), Z.stride(0),
                out.stride(0), X.shape[0], **{name: constants[name] for name in names}, BM=high, BN=wide,
                num_warps=warps,
            )  # fmt: skip
        return out

    # what the kernels are handed

    @property
    def _kind(self) -> str:
        """Which sizes of tiles."""
        wide = self.chosen.dtype == torch.float64
        if not self.chosen.parts:
            return "float64" if wide else "float32"
        if wide:
            return "wide"
        return "fp16" if self._points("left").shape[1] <= 2 * BLOCK else "long"

    def _pieces(self, width: int) -> int:
        return self.chosen.pieces if width > 1 else 0

    def _lay_out(self, V: Tensor) -> tuple[Tensor, float]:
        """V padded with zeros, as two fp16 pieces side by side where it is multiplied so; and the tile's factor."""
        (m, k), high = V.shape, -(-max(len(V), 1) // PAD) * PAD
        if not self._pieces(k):
            width = 1 if k == 1 else max(16, 2 ** math.ceil(math.log2(k)))
            out = torch.zeros((high, width), dtype=self.chosen.dtype, device=V.device)
            out[:m, :k] = V
            return out, 1.0
        # two pieces of V even where the tile is one: its rounding is the same for all rows, and does not average out
        half, raised = max(8, 2 ** math.ceil(math.log2(k))), V * LIFT
        out = torch.zeros((high, 2 * half), dtype=torch.float16, device=V.device)
        out[:m, :k] = raised
        out[:m, half : half + k] = raised - out[:m, :k].double()
        return out, 2.0 ** math.floor(math.log2(LIFT / max(self.chosen.bound, 1e-30)))

    def _points(self, side: str) -> Tensor:
        """The points of a side as the products want them, made once."""
        if not self.chosen.parts:
            return self._features(side)
        points = self.X if side == "left" or self.Z is None else self.Z
        parts = 0 if self.chosen.dtype == torch.float64 else self.chosen.parts
        return self._once(f"{side} rows", lambda: self.chosen.frame.by_rows(points, parts, side == "left"))

    def _features(self, side: str, dtype: Any = None) -> Tensor:
        """The points of a side for differences, made once."""
        side, dtype = "left" if self.Z is None else side, dtype or self.chosen.dtype
        points = self.X if side == "left" else self.Z
        return self._once(f"{side} features, {dtype}", lambda: self.chosen.frame.by_features(points, dtype))

    def _once(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def _strides(self, X: Tensor, Z: Tensor) -> tuple[int, int, int]:
        """From feature to feature, and how many there are."""
        return (1, 1, self.p) if self.chosen.parts else (X.stride(0), Z.stride(0), X.shape[0])

    def _parameters(self, factor: float, apart: bool = False) -> Tensor:
        """The tile's factor, the profile's two numbers, a one the compiler does not know of, and k(x, x) or NaN."""
        f, a, b = self.formula, 1.0, 0.0
        if f.geometry == "inner":
            together = self.chosen.parts and not apart
            a, b = (self.chosen.frame.gain**-2 if together else 1.0), f.parameters[-1]
        elif f.parameters:
            a = f.parameters[0]
        known = math.nan if f.geometry == "inner" or f.profile == "identity" else 1.0
        return torch.tensor([factor, a, b, 1.0, known], dtype=self.chosen.dtype, device=self.X.device)

    def _constants(self, X: Tensor, apart: bool = False) -> dict[str, Any]:
        """What the compiler is to know."""
        f, together = self.formula, self.chosen.parts and not apart
        width = X.shape[1] if together else 0
        if self.chosen.dtype == torch.float64:
            block = width if width <= BLOCK64 else BLOCK64
        else:
            block = width if width <= 2 * BLOCK else BLOCK
        return {
            "GEOMETRY": "dot" if together else f.geometry,
            "PROFILE": f.profile,
            "DEGREE": int(f.parameters[0]) if f.profile == "power" else 0,
            "KD": width,
            "BK": block,
            "UNROLL": 1 if f.geometry == "chi2" else UNROLL,
        }


def _tile_products(kind: str, width: int) -> tuple[int, int, int, int]:
    """The sizes measured for the next smaller number of columns."""
    sizes = TILES[kind]
    return sizes[max(columns for columns in sizes if columns <= width)]


def _some(F: Tensor, part: Any) -> Tensor:
    """Some columns of features: a view for slices without steps, else a copy."""
    if part is None:
        return F
    if isinstance(part, slice):
        F = F[:, part]
        return F if F.stride(1) == 1 else F.contiguous()
    return F[:, part].contiguous()


def _on(device: Any) -> Any:
    """Triton launches on the current device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
