"""Hot loops on 2-bit genotypes for torch tensors: decoded where they are multiplied, by tensor cores on a GPU.

The other factor is taken in half-precision parts there; elsewhere, and in float64, tiles are decoded and multiplied by
torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gramian.compute.gpu.dense import every_digit
from gramian.compute.gpu.launch import uses_triton

TILE_BYTES = 2**26  # of genotypes decoded together
SAMPLES = 512  # bytes of a SNP decoded together: sums over more than four times as many samples are in float64
SNPS = 2048  # decoded together, at most: likewise
PARTS = {"fast": 1, "accurate": 2}
COLUMNS = 64  # multiplied at once, at most
LEAST = 16  # at least: the smallest tile of a tensor core
LARGEST = 14  # the power of two that half-precision columns are scaled to, a quarter of what they can hold
GRIDS = (2.0**3, 2.0**-9)  # what two parts are multiples of, each 11 bits: their sums over a tile are exact
PART_BYTES = 8192  # of SNPs, summed in float32 before the sums are added in float64
PART_SNPS = 8192  # summed likewise
PROGRAMS = 512  # that a GPU has work for: fewer SNPs are summed where there are fewer samples
ERRORS = {"fast": 5e-4, "accurate": 2e-6, "double": 2.0**-52}


def choose_mode(dtype: torch.dtype, tolerance: float | None = None) -> str:
    """Return the mode of products that are wanted in a dtype, for results to a tolerance.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import choose_mode
    >>> choose_mode(torch.float32, 1e-4), choose_mode(torch.float32, 0.01), choose_mode(torch.float64)
    ('accurate', 'fast', 'double')
    """
    if dtype == torch.float64:
        return "double"
    return "fast" if tolerance is not None and 4 * ERRORS["fast"] <= tolerance else "accurate"


def prepare_columns(U: Tensor, width: int, mode: str) -> Tensor | list[PreparedColumns]:
    """Prepare columns U (4·width or fewer rows) for products with many blocks of SNPs: see :func:`adjoint`."""
    if mode == "double" or not uses_triton(U):
        return U
    return [samples_factor(part, width, mode) for part in torch.split(U, COLUMNS, dim=1)]


def adjoint(
    packed: Tensor, line: Tensor, U: Tensor | list[PreparedColumns], *, mode: str = "accurate", missing: bool = True
) -> Tensor:
    r"""Zᵀ U in float64: for each SNP the sum over samples of :math:`(a g + b)\,U`.

    Parameters
    ----------
    packed : uint8 tensor of shape (p, width)
        Genotypes of SNPs, four in a byte.
    line : float64 tensor of shape (p, 2)
        a and b of each SNP.
    U : tensor of shape (n, c)
        One row for each sample, zero where it does not count; what of the bytes has no row counts as zero. Or what
        :func:`prepare_columns` makes of it.
    mode : {"accurate", "fast", "double"}
        Of the products.
    missing : bool
        Whether any genotype may be missing; without, the work is half.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import adjoint
    >>> packed = torch.tensor([[0b11_10_01_00]], dtype=torch.uint8)        # 2, missing, 1 and 0 copies
    >>> adjoint(packed, torch.tensor([[1.0, -1.0]]).double(), torch.eye(4).double(), mode="double")
    tensor([[ 1.,  0.,  0., -1.]], dtype=torch.float64)
    """
    if isinstance(U, Tensor):
        U = prepare_columns(U, packed.shape[1], mode)
    if isinstance(U, Tensor):
        out = torch.zeros((packed.shape[0], U.shape[1]), dtype=torch.float64, device=packed.device)
        for snps, samples, Z in _decode_tiles(packed, line, U.dtype):
            out[snps] += multiply(Z[:, : len(U[samples])], U[samples])
        return out
    return torch.cat([_tensor_adjoint(packed, line, part, missing) for part in U], dim=1)


def product(
    packed: Tensor,
    line: Tensor,
    W: Tensor,
    *,
    mode: str = "accurate",
    missing: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Z W of shape (4·width, c) in float64, added to ``out`` where given: for each sample the sum over the SNPs.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import product
    >>> packed = torch.tensor([[0b11_10_01_00]], dtype=torch.uint8)
    >>> product(packed, torch.tensor([[1.0, -1.0]]).double(), torch.ones(1, 1).double(), mode="double").T
    tensor([[ 1.,  0.,  0., -1.]], dtype=torch.float64)
    """
    if out is None:
        out = torch.zeros((4 * packed.shape[1], W.shape[1]), dtype=torch.float64, device=packed.device)
    if mode == "double" or not uses_triton(packed):
        for snps, samples, Z in _decode_tiles(packed, line, W.dtype):
            out[samples] += multiply(Z.T, W[snps])
        return out
    start = 0
    for part in torch.split(W, COLUMNS, dim=1):
        _tensor_product(packed, line, part, mode, missing, out[:, start : start + part.shape[1]])
        start += part.shape[1]
    return out


def working_bytes(width: int, rows: int, columns: int, mode: str) -> int:
    """Bytes that products of a block of SNPs with so many columns take besides the genotypes themselves.

    Examples
    --------
    >>> from gramian.compute.gpu.genotypes import working_bytes
    >>> working_bytes(122_000, 16_384, 24, "accurate") < 2**30
    True
    """
    n, C = 4 * width, _round_up(PARTS.get(mode, 1) * min(columns, COLUMNS))
    samples = 8 * n * columns + 2 * n * C  # the result, and the parts of the other factor
    sums = 4 * C * max(rows * -(-width // PART_BYTES), n * -(-rows // PART_SNPS))
    return samples + sums + 24 * rows * columns + 8 * TILE_BYTES


def decode(packed: Tensor, line: Tensor, dtype: torch.dtype) -> Tensor:
    """Standardised genotypes of shape (p, 4·width), a G + b S with G the copies and S whether there is a call.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import decode
    >>> packed = torch.tensor([[0b11_10_01_00]], dtype=torch.uint8)
    >>> decode(packed, torch.tensor([[1.0, -1.0]], dtype=torch.float64), torch.float32)
    tensor([[ 1.,  0.,  0., -1.]])
    """
    p, width = packed.shape
    codes = torch.stack([(packed >> shift) & 3 for shift in (0, 2, 4, 6)], dim=2).view(p, 4 * width)
    a, b = line[:, :1], line[:, 1:]
    table = torch.cat([2 * a + b, torch.zeros_like(a), a + b, b], dim=1).to(dtype)
    return torch.gather(table, 1, codes.long())


def call_planes(packed: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Signs +1, 0, −1 for 2, 1, 0 copies of A1, and 1 where there is a call: int8, a row for each person of ``index``.

    Rows are followed by zeros to a multiple of 16 SNPs.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import call_planes
    >>> signs, seen = call_planes(torch.tensor([[0b11_10_01_00]], dtype=torch.uint8), torch.arange(4))
    >>> signs[:, 0].tolist(), seen[:, 0].tolist()
    ([1, 0, 0, -1], [1, 0, 1, 1])
    """
    p, width = packed.shape
    across = torch.zeros((width, -(-p // 16) * 16), dtype=torch.uint8, device=packed.device)
    across[:, p:] = MISSING
    across[:, :p] = packed.T
    codes = torch.stack([(across >> shift) & 3 for shift in (0, 2, 4, 6)], dim=1).view(4 * width, -1)
    codes = codes[: len(index)] if torch.equal(index, torch.arange(len(index), device=index.device)) else codes[index]
    return (codes == 0).to(torch.int8) - (codes == 3).to(torch.int8), (codes != 1).to(torch.int8)


def no_sums(rows: int, columns: int, device: torch.device) -> Tensor:
    """Zeros that :func:`add_product` adds to, in sizes that tensor cores take: 32 rows or more, columns by eights."""
    return torch.zeros((max(32, rows), -(-columns // 8) * 8), dtype=torch.int32, device=device)


def add_product(total: Tensor, A: Tensor, B: Tensor) -> None:
    """Add A Bᵀ of int8 planes to int32 sums, exactly: on a GPU by tensor cores.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import add_product, no_sums
    >>> plane = torch.tensor([[1, -1], [0, 1]], dtype=torch.int8)
    >>> total = no_sums(2, 2, torch.device("cpu"))
    >>> add_product(total, plane, plane)
    >>> total[:2, :2].tolist()
    [[2, -1], [-1, 1]]
    """
    if not A.is_cuda:
        for start in range(0, A.shape[1], 2**23):  # sums that float32 holds exactly
            part = A[:, start : start + 2**23].float() @ B[:, start : start + 2**23].float().T
            total[: len(A), : len(B)] += part.to(torch.int32)
        return
    rows, columns = total.shape
    A = torch.nn.functional.pad(A, (0, 0, 0, rows - len(A))) if len(A) < rows else A
    B = torch.nn.functional.pad(B, (0, 0, 0, columns - len(B))) if len(B) < columns else B
    total += torch._int_mm(A, B.T)


def multiply(A: Tensor, B: Tensor) -> Tensor:
    """A B with all the bits of its dtype, whatever torch has been allowed to leave out."""
    with every_digit():
        return A @ B


def _decode_tiles(packed: Tensor, line: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, slice, Tensor]]:
    """(SNPs, samples, their standardised genotypes) of tiles that are decoded together."""
    p, width = packed.shape
    many = min(SAMPLES, width)
    rows = max(1, min(SNPS, TILE_BYTES // (4 * many * (dtype.itemsize + 8))))
    for i in range(0, p, rows):
        for j in range(0, width, max(1, many)):
            snps, stop = slice(i, i + rows), min(j + many, width)
            yield snps, slice(4 * j, 4 * stop), decode(packed[snps, j:stop], line[snps], dtype)


@cache
def _kernels() -> Any:
    """The kernels, which load Triton."""
    return importlib.import_module("gramian.compute.gpu.triton_genotypes")


class Tiles(NamedTuple):
    """Sizes of a kernel's tiles: SNPs, bytes, and what the compiler is told."""

    snps: int
    bytes: int
    warps: int
    stages: int

    def options(self, packed: Tensor, C: int, missing: bool) -> dict[str, Any]:
        """What both directions compile their kernels with."""
        how = {"MISSING": missing, "ASM": ASSEMBLY and packed.is_cuda, "STAGES": self.stages, "num_warps": self.warps}
        return {"C": C, "BP": self.snps, "BB": self.bytes, **how}


# of each direction, by the columns there are
ADJOINT = {16: Tiles(128, 64, 8, 3), 32: Tiles(128, 64, 8, 3), 64: Tiles(64, 32, 4, 3), 128: Tiles(64, 32, 4, 2)}
PRODUCT = {16: Tiles(64, 128, 8, 3), 32: Tiles(64, 128, 8, 3), 64: Tiles(128, 64, 4, 3), 128: Tiles(64, 64, 8, 2)}
ASSEMBLY = torch.version.hip is None  # two genotypes in a word are decoded at once, in the words of CUDA


class PreparedColumns(NamedTuple):
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


def _round_up(columns: int) -> int:
    """Columns up to the next power of two."""
    return max(LEAST, 1 << (columns - 1).bit_length())


def _halves(X: Tensor, rows: int, mode: str, scale: Tensor, grids: tuple[float, ...] | None = None) -> Tensor:
    """X times scale in half-precision parts, side by side, with zeros below and beside; multiples of grids if given."""
    n, c = X.shape
    parts = torch.zeros((rows, _round_up(PARTS[mode] * c)), dtype=torch.float16, device=X.device)
    left = X * scale
    for i in range(PARTS[mode]):
        parts[:n, i * c : (i + 1) * c] = left if grids is None else (left / grids[i]).round_() * grids[i]
        left = left - parts[:n, i * c : (i + 1) * c]
    return parts


def _scale(*largest: Tensor) -> Tensor:
    """Powers of two that bring columns with these largest entries into the range of half precision."""
    exponent = torch.frexp(torch.stack(largest).amax(dim=0).float())[1].clamp(min=-100)
    return torch.ldexp(torch.ones_like(exponent, dtype=torch.float64), LARGEST - exponent)


def samples_factor(U: Tensor, width: int, mode: str) -> PreparedColumns:
    """Columns over samples, with their sums over the bytes of a tile.

    Tensor cores cut off what is small beside the largest number in a sum, so that columns of very unequal entries lose
    digits in them. Two parts are therefore whole multiples of two grids: a tile's sums of them are whole numbers below
    2²⁴, which float32 holds exactly, however it rounds. What is lost is the second grid, 2⁻²² of the largest entry.
    """
    tile = ADJOINT[_round_up(PARTS[mode] * U.shape[1])].bytes
    scale = _scale(U.abs().amax(dim=0))
    X, grids = U.float() if U.dtype == torch.float64 else U, GRIDS if PARTS[mode] == len(GRIDS) else None
    parts = _halves(X, -(-width // tile) * 4 * tile, mode, scale.float(), grids)
    sums = parts.view(-1, 4 * tile, parts.shape[1]).sum(dim=1, dtype=torch.float64).float()
    return PreparedColumns(parts, scale, sums)


def _join_parts(sums: Tensor, scale: Tensor) -> Tensor:
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


def _readable_rows(packed: Tensor) -> tuple[Tensor, int, int]:
    """Rows whose bytes lie one after another, a copy where they do not, as the kernels read them.

    With them the bytes from row to row, and how many may be read: to a multiple of 16 where the rows are padded so far.
    """
    packed = packed if packed.stride(1) == 1 else packed.contiguous()
    width, stride = packed.shape[1], packed.stride(0) if packed.shape[0] > 1 else packed.shape[1]
    reach = -(-width // 16) * 16
    return packed, stride, reach if stride >= reach and stride % 16 == 0 else width


def _tensor_adjoint(packed: Tensor, line: Tensor, U: PreparedColumns, missing: bool) -> Tensor:
    """Zᵀ U in float64: parts of PART_BYTES bytes each, added up."""
    packed, stride, limit = _readable_rows(packed)
    (p, width), C = packed.shape, U.parts.shape[1]
    tiles = ADJOINT[C]
    parts = -(-width // PART_BYTES)
    out = torch.empty((parts, p, C), dtype=torch.float32, device=packed.device)
    levels = _levels_line(line)
    rounded = levels.float()
    with torch.cuda.device_of(packed):
        _kernels().adjoint_kernel[(-(-p // tiles.snps), parts)](
            *(packed, stride, U.parts, U.sums, rounded, out, p, limit),
            PART=PART_BYTES,
            **tiles.options(packed, C, missing),
        )
    # what rounding μ has taken off too much or too little of every sample
    flat = _constant(line) + levels[:, 0] * (rounded[:, 2] - levels[:, 2])
    flat = flat[:, None] * U.sums.sum(dim=0, dtype=torch.float64)
    return _join_parts(out.sum(dim=0, dtype=torch.float64) + flat, U.scale)


def _tensor_product(packed: Tensor, line: Tensor, W: Tensor, mode: str, missing: bool, out: Tensor) -> None:
    """Add Z W to out: parts of PART_SNPS SNPs each, added up in float64."""
    packed, stride, limit = _readable_rows(packed)
    p, width = packed.shape
    levels = _levels_line(line)
    A, B = levels[:, :1] * W, levels[:, 1:2] * W
    scale = _scale(A.abs().amax(dim=0), B.abs().amax(dim=0))
    C = _round_up(PARTS[mode] * W.shape[1])
    tiles = PRODUCT[C]
    # how many sums the SNPs are shared out to, and the SNPs of each
    parts = max(-(-p // PART_SNPS), min(-(-p // PROGRAMS), -(-PROGRAMS // (2 * -(-width // tiles.bytes)))))
    part = -(-p // (parts * tiles.snps)) * tiles.snps
    parts = -(-p // part)
    a = _halves(A, parts * part, mode, scale)
    b = _halves(B, parts * part, mode, scale) if missing else a
    mu = torch.nn.functional.pad(levels[:, 2], (0, parts * part - p))
    sums = (mu[:, None] * a).view(-1, tiles.snps, C).sum(dim=1)
    rounded = sums.float()
    found = torch.empty((parts, 4 * width, C), dtype=torch.float32, device=packed.device)
    with torch.cuda.device_of(packed):
        _kernels().product_kernel[(-(-width // tiles.bytes), 2, parts)](
            *(packed, stride, a, b, rounded, found, p, limit, width, part),
            **tiles.options(packed, C, missing),
        )
    for sums_of_part in found:
        out += _join_parts(sums_of_part, scale)
    out += _join_parts((rounded - sums).sum(dim=0)[None, :], scale) + _constant(line) @ W.double()


MISSING = 0x55  # a byte of four missing genotypes
STEPS = 63  # sums of four bits that a byte holds


def snp_counts(packed: Tensor, kept: Tensor | None, n: int) -> Tensor:
    """Two A1, one, none and missing among the n samples kept (of a mask of 4·width; the first n for None), by SNP.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import snp_counts
    >>> snp_counts(torch.tensor([[0b11_10_01_00]], dtype=torch.uint8), None, 3)
    tensor([[1, 1, 0, 1]])
    """
    width = packed.shape[1]
    if kept is None:
        kept = torch.arange(4 * width, device=packed.device) < n
    places = torch.tensor([1, 4, 16, 64], dtype=torch.uint8, device=packed.device)
    mask = (kept.view(width, 4).to(torch.uint8) * places).sum(dim=1, dtype=torch.uint8)
    found = (_tensor_snp_counts if uses_triton(packed) else _plain_snp_counts)(packed, mask).long()
    missing, one, none = found.unbind(dim=1)
    return torch.stack([n - missing - one - none, one, none, missing], dim=1)


def _tensor_snp_counts(packed: Tensor, mask: Tensor) -> Tensor:
    packed, stride, limit = _readable_rows(packed)
    (p, width), rows, span = packed.shape, 8, 256
    keep = torch.zeros(-(-width // span) * span, dtype=torch.uint8, device=packed.device)
    keep[:width] = mask
    out = torch.empty((p, 3), dtype=torch.int32, device=packed.device)
    with torch.cuda.device_of(packed):
        _kernels().snp_counts_kernel[(-(-p // rows),)](
            packed, stride, keep, out, p, limit, width, BR=rows, BB=span, STEPS=STEPS
        )
    return out


def _kinds(packed: Tensor, mask: Tensor | int) -> tuple[Tensor, Tensor, Tensor]:
    """Missing, one copy and none, each as bits 0, 2, 4 and 6 of bytes."""
    low, high = packed & mask, (packed >> 1) & mask
    both = low & high
    return low ^ both, high ^ both, both


def _plain_snp_counts(packed: Tensor, mask: Tensor) -> Tensor:
    rows = max(1, TILE_BYTES // (16 * packed.shape[1]))
    bits = torch.tensor([value.bit_count() for value in range(256)], dtype=torch.uint8, device=packed.device)
    parts = [
        torch.stack([bits[kind.int()].sum(dim=1, dtype=torch.int64) for kind in _kinds(part, mask)], dim=1)
        for part in torch.split(packed, rows)
    ]
    return torch.cat(parts)


def sample_counts(packed: Tensor) -> Tensor:
    """Two A1, one, none and missing among the SNPs, for each of the 4·width samples.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import sample_counts
    >>> sample_counts(torch.tensor([[0b11_10_01_00]], dtype=torch.uint8)).tolist()
    [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]]
    """
    p = packed.shape[0]
    found = (_tensor_sample_counts if uses_triton(packed) else _plain_sample_counts)(packed).long()
    missing, one, none = found
    return torch.stack([p - missing - one - none, one, none, missing], dim=1)


def _tensor_sample_counts(packed: Tensor) -> Tensor:
    packed, stride, limit = _readable_rows(packed)
    (p, width), rows, span, steps = packed.shape, 8, 128, 128
    out = torch.zeros((3, 4 * width), dtype=torch.int32, device=packed.device)
    grid = (-(-width // span), -(-p // (rows * steps)))
    with torch.cuda.device_of(packed):
        _kernels().sample_counts_kernel[grid](packed, stride, out, p, limit, width, BR=rows, BB=span, STEPS=steps)
    return out


def _plain_sample_counts(packed: Tensor) -> Tensor:
    out = torch.zeros((3, packed.shape[1], 4), dtype=torch.int64, device=packed.device)
    for part in torch.split(packed, max(1, TILE_BYTES // (16 * packed.shape[1]))):
        for i, kind in enumerate(_kinds(part, 0x55)):
            for lane in range(4):
                out[i, :, lane] += ((kind >> (2 * lane)) & 1).sum(dim=0, dtype=torch.int64)
    return out.view(3, -1)
