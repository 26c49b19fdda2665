"""Packed genotypes multiplied by tensor cores: the other factor in half-precision parts, and the kernels' tiles."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = [
    "ADJOINT",
    "COLUMNS",
    "PARTS",
    "PART_BYTES",
    "PART_SNPS",
    "PRODUCT",
    "Factor",
    "Tiles",
    "by_bytes",
    "kernels",
    "padded",
    "reach",
    "samples_factor",
    "tensor_adjoint",
    "tensor_product",
]

PARTS = {"fast": 1, "accurate": 2}
COLUMNS = 64  # multiplied at once, at most
LEAST = 16  # at least: the smallest tile of a tensor core
LARGEST = 14  # the power of two that half-precision columns are scaled to, a quarter of what they can hold
GRIDS = (2.0**3, 2.0**-9)  # what two parts are multiples of, each 11 bits: their sums over a tile are exact
PART_BYTES = 8192  # of SNPs, summed in float32 before the sums are added in float64
PART_SNPS = 8192  # summed likewise
PROGRAMS = 512  # that a card has work for: fewer SNPs are summed where there are fewer samples


@cache
def kernels() -> Any:
    """The kernels, which load Triton."""
    return importlib.import_module("gramian.compute.gpu._triton_genotypes")


class Tiles(NamedTuple):
    """Sizes of a kernel's tiles: SNPs, bytes, and what the compiler is told."""

    snps: int
    bytes: int
    warps: int
    stages: int


# of each direction, by the columns there are
ADJOINT = {16: Tiles(128, 64, 8, 3), 32: Tiles(128, 64, 8, 3), 64: Tiles(64, 32, 4, 3), 128: Tiles(64, 32, 4, 2)}
PRODUCT = {16: Tiles(64, 128, 8, 3), 32: Tiles(64, 128, 8, 3), 64: Tiles(128, 64, 4, 3), 128: Tiles(64, 64, 8, 2)}
ASSEMBLY = torch.version.hip is None  # two genotypes in a word are decoded at once, in the words of CUDA


class Factor(NamedTuple):
    """Columns that packed genotypes are multiplied by: half-precision parts of them, scaled, and sums over tiles.

    Attributes
    ----------
    parts : Tensor of shape (rows, C)
        Half-precision columns times ``scale``: the first parts of all, then the second ones, then zeros.
    scale : Tensor of shape (c,)
        Powers of two.
    sums : Tensor of shape (tiles, C)
        Of the parts, over the rows of each tile.
    """

    parts: Tensor
    scale: Tensor
    sums: Tensor


def padded(columns: int) -> int:
    """Columns up to the next power of two."""
    return max(LEAST, 1 << (columns - 1).bit_length())


def _halves(X: Tensor, rows: int, mode: str, scale: Tensor, grids: tuple[float, ...] | None = None) -> Tensor:
    """X times scale in half-precision parts, side by side, with zeros below and beside; multiples of grids if given."""
    n, c = X.shape
    parts = torch.zeros((rows, padded(PARTS[mode] * c)), dtype=torch.float16, device=X.device)
    left = X * scale
    for i in range(PARTS[mode]):
        parts[:n, i * c : (i + 1) * c] = left if grids is None else (left / grids[i]).round_() * grids[i]
        left = left - parts[:n, i * c : (i + 1) * c]
    return parts


def _scale(*largest: Tensor) -> Tensor:
    """Powers of two that bring columns with these largest entries into the range of half precision."""
    exponent = torch.frexp(torch.stack(largest).amax(dim=0).float())[1].clamp(min=-100)
    return torch.ldexp(torch.ones_like(exponent, dtype=torch.float64), LARGEST - exponent)


def samples_factor(U: Tensor, width: int, mode: str) -> Factor:
    """Columns over samples, with their sums over the bytes of a tile.

    Tensor cores cut off what is small beside the largest number in a sum, so that columns of very unequal entries lose
    digits in them. Two parts are therefore whole multiples of two grids: a tile's sums of them are whole numbers below
    2²⁴, which float32 holds exactly, however it rounds. What is lost is the second grid, 2⁻²² of the largest entry.
    """
    tile = ADJOINT[padded(PARTS[mode] * U.shape[1])].bytes
    scale = _scale(U.abs().amax(dim=0))
    X, grids = U.float() if U.dtype == torch.float64 else U, GRIDS if PARTS[mode] == len(GRIDS) else None
    parts = _halves(X, -(-width // tile) * 4 * tile, mode, scale.float(), grids)
    sums = parts.view(-1, 4 * tile, parts.shape[1]).sum(dim=1, dtype=torch.float64).float()
    return Factor(parts, scale, sums)


def _joined(sums: Tensor, scale: Tensor) -> Tensor:
    """Sums of parts as sums of columns, in float64."""
    c = len(scale)
    total = sums[:, :c].double()
    if sums.shape[1] >= 2 * c:  # zeros where there is but one part
        total += sums[:, c : 2 * c]
    return total.div_(scale)


def _levels_line(line: Tensor) -> Tensor:
    """α, β and μ of z = α(f − μ) + βm with f = (3 − g)/2, ¾ where missing, and m = 2 there: μ is where z = 0."""
    a, b = line[:, 0], line[:, 1]
    mu = torch.where(a == 0, 0.0, 1.5 + 0.5 * b / torch.where(a == 0, 1.0, a))
    return torch.stack([-2 * a, -(1.5 * a + b) / 2, mu], dim=1)


def _constant(line: Tensor) -> Tensor:
    """The part of z that is the same for all genotypes: none, unless the line is flat and never 0."""
    return torch.where(line[:, 0] == 0, line[:, 1], 0.0)


def by_bytes(packed: Tensor) -> Tensor:
    """Rows whose bytes lie one after another, which is how the kernels read them: a copy where they do not."""
    return packed if packed.stride(1) == 1 else packed.contiguous()


def reach(packed: Tensor) -> tuple[int, int]:
    """Bytes from row to row, and how many may be read: to a multiple of 16 where the rows are padded so far."""
    width, stride = packed.shape[1], packed.stride(0) if packed.shape[0] > 1 else packed.shape[1]
    reach = -(-width // 16) * 16
    return stride, reach if stride >= reach and stride % 16 == 0 else width


def tensor_adjoint(packed: Tensor, line: Tensor, U: Factor, missing: bool) -> Tensor:
    """Zᵀ U in float64: parts of PART_BYTES bytes each, added up."""
    packed = by_bytes(packed)
    p, width = packed.shape
    C = U.parts.shape[1]
    tiles = ADJOINT[C]
    stride, limit = reach(packed)
    parts = -(-width // PART_BYTES)
    out = torch.empty((parts, p, C), dtype=torch.float32, device=packed.device)
    levels = _levels_line(line)
    rounded = levels.float()
    with torch.cuda.device_of(packed):
        kernels().adjoint_kernel[(-(-p // tiles.snps), parts)](
            packed,
            stride,
            U.parts,
            U.sums,
            rounded,
            out,
            p,
            limit,
            C=C,
            BP=tiles.snps,
            BB=tiles.bytes,
            PART=PART_BYTES,
            MISSING=missing,
            ASM=ASSEMBLY and packed.is_cuda,
            STAGES=tiles.stages,
            num_warps=tiles.warps,
        )
    # what rounding μ has taken off too much or too little of every sample
    flat = _constant(line) + levels[:, 0] * (rounded[:, 2] - levels[:, 2])
    flat = flat[:, None] * U.sums.sum(dim=0, dtype=torch.float64)
    return _joined(out.sum(dim=0, dtype=torch.float64) + flat, U.scale)


def _parted(p: int, width: int, tiles: Tiles) -> tuple[int, int]:
    """How many sums p SNPs are shared out to, and the SNPs of each."""
    programs = 2 * -(-width // tiles.bytes)
    parts = max(-(-p // PART_SNPS), min(-(-p // PROGRAMS), -(-PROGRAMS // programs)))
    part = -(-p // (parts * tiles.snps)) * tiles.snps
    return -(-p // part), part


def tensor_product(packed: Tensor, line: Tensor, W: Tensor, mode: str, missing: bool, out: Tensor) -> None:
    """Add Z W to out: parts of PART_SNPS SNPs each, added up in float64."""
    packed = by_bytes(packed)
    p, width = packed.shape
    levels = _levels_line(line)
    A, B = levels[:, :1] * W, levels[:, 1:2] * W
    scale = _scale(A.abs().amax(dim=0), B.abs().amax(dim=0))
    C = padded(PARTS[mode] * W.shape[1])
    tiles = PRODUCT[C]
    parts, part = _parted(p, width, tiles)
    a = _halves(A, parts * part, mode, scale)
    b = _halves(B, parts * part, mode, scale) if missing else a
    mu = torch.nn.functional.pad(levels[:, 2], (0, parts * part - p))
    sums = (mu[:, None] * a).view(-1, tiles.snps, C).sum(dim=1)
    rounded = sums.float()
    stride, limit = reach(packed)
    found = torch.empty((parts, 4 * width, C), dtype=torch.float32, device=packed.device)
    with torch.cuda.device_of(packed):
        kernels().product_kernel[(-(-width // tiles.bytes), 2, parts)](
            packed,
            stride,
            a,
            b,
            rounded,
            found,
            p,
            limit,
            width,
            part,
            C=C,
            BP=tiles.snps,
            BB=tiles.bytes,
            MISSING=missing,
            ASM=ASSEMBLY and packed.is_cuda,
            STAGES=tiles.stages,
            num_warps=tiles.warps,
        )
    for sums_of_part in found:
        out += _joined(sums_of_part, scale)
    out += _joined((rounded - sums).sum(dim=0)[None, :], scale) + _constant(line) @ W.double()
