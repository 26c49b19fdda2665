"""Triton kernels on 2-bit genotypes: decoded by moving their bits into half-precision numbers, and multiplied there.

A code of two bits, high h and low l, is 00 two copies, 01 missing, 10 one copy, 11 none. Put at the border between
exponent and mantissa of a half-precision number, h doubles it and l makes it half as large again, so that ½, 1 and 1½
stand for two, one and no copies: f = (3 − g)/2, without a conversion, which is the slowest instruction there is. A
missing genotype becomes ¾, as if g were 1½, which a second product with the missing ones corrects.
"""

from __future__ import annotations

import triton
import triton.language as tl

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

# Counts of rows are not specialised: a kernel is compiled once, and not again where 16 does not divide the next number.


def _assembly(shifts: tuple[int, int], gaps: bool) -> tl.constexpr:
    """Four bytes in a word, spread over two words of two halves: two of their genotypes, moved into place."""
    lines = [".reg .b32 lo, hi, t, m, h;", f"mov.b32 m, {'0x40004000' if gaps else '0x06000600'};"]
    lines += (
        ["shr.b32 t, $4, 1; not.b32 t, t; and.b32 t, t, $4;"] if gaps else ["mov.b32 h, 0x38003800; mov.b32 t, $4;"]
    )
    lines += ["prmt.b32 lo, t, 0, 0x4140; prmt.b32 hi, t, 0, 0x4342;"]
    for i, (shift, word) in enumerate((shift, word) for shift in shifts for word in ("lo", "hi")):
        # (t & m) | h as one instruction, which needs both constants in registers
        put = f"and.b32 ${i}, t, m;" if gaps else f"lop3.b32 ${i}, t, m, h, 0xEA;"
        lines += [f"shl.b32 t, {word}, {shift}; {put}"]
    return tl.constexpr("{" + " ".join(lines) + "}")


LEVELS_01, LEVELS_23 = _assembly((9, 7), gaps=False), _assembly((5, 3), gaps=False)
GAPS_01, GAPS_23 = _assembly((14, 12), gaps=True), _assembly((10, 8), gaps=True)
WORDS = tl.constexpr("=r,=r,=r,=r,r")
HALVES = tl.constexpr((tl.float16, tl.float16))


@triton.jit
def _levels(b, PAIR: tl.constexpr, ASM: tl.constexpr):
    """(3 − g)/2 of the first or the last two genotypes of each byte, ¾ where missing."""
    if ASM:
        CODE: tl.constexpr = LEVELS_01 if PAIR == 0 else LEVELS_23
        first, second = tl.inline_asm_elementwise(CODE, WORDS, [b], dtype=HALVES, is_pure=True, pack=4)
    else:
        x = b.to(tl.int16)
        first = (((x << (9 - 4 * PAIR)) & 0x0600) | 0x3800).to(tl.float16, bitcast=True)
        second = (((x << (7 - 4 * PAIR)) & 0x0600) | 0x3800).to(tl.float16, bitcast=True)
    return first, second


@triton.jit
def _gaps(b, PAIR: tl.constexpr, ASM: tl.constexpr):
    """2 where one of the first or the last two genotypes of each byte is missing, else 0."""
    if ASM:
        CODE: tl.constexpr = GAPS_01 if PAIR == 0 else GAPS_23
        first, second = tl.inline_asm_elementwise(CODE, WORDS, [b], dtype=HALVES, is_pure=True, pack=4)
    else:
        x = b.to(tl.int16)
        x = x & ~(x >> 1)
        first = ((x << (14 - 4 * PAIR)) & 0x4000).to(tl.float16, bitcast=True)
        second = ((x << (12 - 4 * PAIR)) & 0x4000).to(tl.float16, bitcast=True)
    return first, second


@triton.jit(do_not_specialize=["p"])
def adjoint_kernel(
    P,
    stride,
    U,
    sums,
    line,
    out,
    p,
    limit,
    C: tl.constexpr,
    BP: tl.constexpr,
    BB: tl.constexpr,
    PART: tl.constexpr,
    MISSING: tl.constexpr,
    ASM: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Part of α(F − μ)U + βMU for BP SNPs and PART bytes: F the levels of the genotypes, M the missing ones.

    The tensor cores round towards zero, and by as much as the sums are large: so they sum BB bytes at a time, and the
    mean level's share of that, μ times the sum of U over these bytes, is taken off before it is added to the rest.
    """
    r = tl.program_id(0) * BP + tl.arange(0, BP)
    rows = P + tl.minimum(r, p - 1)[:, None].to(tl.int64) * stride
    c, i = tl.arange(0, C), tl.arange(0, BB)
    alpha = tl.load(line + 3 * r, mask=r < p, other=0.0)[:, None]
    beta = tl.load(line + 3 * r + 1, mask=r < p, other=0.0)[:, None]
    mu = tl.load(line + 3 * r + 2, mask=r < p, other=0.0)[:, None]
    total = tl.zeros((BP, C), tl.float32)
    start = tl.program_id(1) * PART
    for k in tl.range(start, tl.minimum(start + PART, limit), BB, num_stages=STAGES):
        b = tl.load(rows + (k + i)[None, :], mask=(k + i)[None, :] < limit, other=0)
        at = U + (4 * (k + i))[:, None].to(tl.int64) * C + c[None, :]
        u0, u1, u2, u3 = tl.load(at), tl.load(at + C), tl.load(at + 2 * C), tl.load(at + 3 * C)
        f0, f1 = _levels(b, 0, ASM)
        f2, f3 = _levels(b, 1, ASM)
        f = tl.dot(f0, u0)
        f = tl.dot(f1, u1, f)
        f = tl.dot(f2, u2, f)
        f = tl.dot(f3, u3, f)
        if MISSING:
            m0, m1 = _gaps(b, 0, ASM)
            m2, m3 = _gaps(b, 1, ASM)
            m = tl.dot(m0, u0)
            m = tl.dot(m1, u1, m)
            m = tl.dot(m2, u2, m)
            m = tl.dot(m3, u3, m)
            total += beta * m
        centre = tl.load(sums + (k // BB) * C + c)[None, :]
        total += alpha * (f - mu * centre)
    place = out + (tl.program_id(1).to(tl.int64) * p + r[:, None]) * C + c[None, :]
    tl.store(place, total, mask=r[:, None] < p)


@triton.jit
def _pair_product(
    P,
    stride,
    A,
    B,
    sums,
    out,
    p,
    limit,
    width,
    part,
    PAIR: tl.constexpr,
    C: tl.constexpr,
    BP: tl.constexpr,
    BB: tl.constexpr,
    MISSING: tl.constexpr,
    ASM: tl.constexpr,
    STAGES: tl.constexpr,
):
    """(F − μ)ᵀA + MᵀB of ``part`` SNPs for the first or the last two samples of BB bytes."""
    i = tl.program_id(0) * BB + tl.arange(0, BB)
    c, j = tl.arange(0, C), tl.arange(0, BP)
    y0 = tl.zeros((BB, C), tl.float32)
    y1 = tl.zeros((BB, C), tl.float32)
    start = tl.program_id(2) * part
    for k in tl.range(start, start + part, BP, num_stages=STAGES):
        rows = tl.minimum(k + j, p - 1)[None, :].to(tl.int64) * stride
        b = tl.load(P + rows + i[:, None], mask=i[:, None] < limit, other=0)
        at = (k + j)[:, None].to(tl.int64) * C + c[None, :]
        a = tl.load(A + at)
        f0, f1 = _levels(b, PAIR, ASM)
        x0 = tl.dot(f0, a)
        x1 = tl.dot(f1, a)
        if MISSING:
            gap = tl.load(B + at)
            m0, m1 = _gaps(b, PAIR, ASM)
            x0 = tl.dot(m0, gap, x0)
            x1 = tl.dot(m1, gap, x1)
        centre = tl.load(sums + (k // BP) * C + c)[None, :]
        y0 += x0 - centre
        y1 += x1 - centre
    inside = i[:, None] < width
    place = out + (tl.program_id(2).to(tl.int64) * 4 * width + 4 * i[:, None] + 2 * PAIR) * C + c[None, :]
    tl.store(place, y0, mask=inside)
    tl.store(place + C, y1, mask=inside)


@triton.jit(do_not_specialize=["p", "width", "part"])
def product_kernel(
    P,
    stride,
    A,
    B,
    sums,
    out,
    p,
    limit,
    width,
    part,
    C: tl.constexpr,
    BP: tl.constexpr,
    BB: tl.constexpr,
    MISSING: tl.constexpr,
    ASM: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Part of (F − μ)ᵀA + MᵀB for half of the samples of BB bytes: A and B are zero beyond the last SNP."""
    if tl.program_id(1) == 0:
        _pair_product(P, stride, A, B, sums, out, p, limit, width, part, 0, C, BP, BB, MISSING, ASM, STAGES)
    else:
        _pair_product(P, stride, A, B, sums, out, p, limit, width, part, 1, C, BP, BB, MISSING, ASM, STAGES)


@triton.jit
def _kinds(b, keep):
    """Missing, one copy and none of four genotypes, as three bytes of a word with bits at 0, 2, 4 and 6."""
    low, high = b & keep, (b >> 1) & keep
    both = low & high
    return (low ^ both) | ((high ^ both) << 8) | (both << 16)


@triton.jit(do_not_specialize=["p", "width"])
def snp_counts_kernel(P, stride, keep, out, p, limit, width, BR: tl.constexpr, BB: tl.constexpr, STEPS: tl.constexpr):
    """Missing, one copy and none among the kept samples of BR SNPs."""
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    rows = P + tl.minimum(r, p - 1)[:, None].to(tl.int64) * stride
    i = tl.arange(0, BB)
    missing = tl.zeros((BR,), tl.int32)
    one = tl.zeros((BR,), tl.int32)
    none = tl.zeros((BR,), tl.int32)
    for first in range(0, width, BB * STEPS):
        sums = tl.zeros((BR, BB), tl.int32)
        for k in range(first, tl.minimum(first + BB * STEPS, width), BB):  # 4·STEPS ≤ 255 in each byte
            b = tl.load(rows + (k + i)[None, :], mask=(k + i)[None, :] < limit, other=0).to(tl.int32)
            kept = tl.load(keep + k + i).to(tl.int32)[None, :]
            x = _kinds(b, kept)
            x = (x & 0x333333) + ((x >> 2) & 0x333333)
            sums += (x + (x >> 4)) & 0x0F0F0F
        missing += tl.sum(sums & 255, axis=1)
        one += tl.sum((sums >> 8) & 255, axis=1)
        none += tl.sum((sums >> 16) & 255, axis=1)
    tl.store(out + 3 * r, missing, mask=r < p)
    tl.store(out + 3 * r + 1, one, mask=r < p)
    tl.store(out + 3 * r + 2, none, mask=r < p)


@triton.jit
def _spread(x):
    """Bits 0, 2, 4 and 6 as the four bytes of a word."""
    return (x | (x << 6) | (x << 12) | (x << 18)) & 0x01010101


@triton.jit
def _add_counters(sums, out, place, inside, BB: tl.constexpr):
    """Add counters of a byte, summed over rows, to those of each of the four genotypes."""
    for lane in tl.static_range(4):
        found = tl.sum((sums >> (8 * lane)) & 255, axis=0)
        tl.atomic_add(out + place + lane, found, mask=inside, sem="relaxed")


@triton.jit(do_not_specialize=["p", "width"])
def sample_counts_kernel(P, stride, out, p, limit, width, BR: tl.constexpr, BB: tl.constexpr, STEPS: tl.constexpr):
    """Missing, one copy and none among BR·STEPS SNPs for the samples of BB bytes, added to out (3, 4·width)."""
    i = tl.program_id(0) * BB + tl.arange(0, BB)
    j = tl.arange(0, BR)
    missing = tl.zeros((BR, BB), tl.int32)
    one = tl.zeros((BR, BB), tl.int32)
    none = tl.zeros((BR, BB), tl.int32)
    start = tl.program_id(1) * BR * STEPS
    for k in range(start, tl.minimum(start + BR * STEPS, p), BR):  # STEPS ≤ 255 in each byte
        r = (k + j)[:, None]
        b = tl.load(P + r.to(tl.int64) * stride + i[None, :], mask=(r < p) & (i[None, :] < limit), other=0)
        b = b.to(tl.int32)
        low, high = b & 0x55, (b >> 1) & 0x55
        both = low & high
        missing += _spread(low ^ both)
        one += _spread(high ^ both)
        none += _spread(both)
    inside = i < width
    place = 4 * i
    _add_counters(missing, out, place, inside, BB)
    _add_counters(one, out + 4 * width, place, inside, BB)
    _add_counters(none, out + 8 * width, place, inside, BB)
