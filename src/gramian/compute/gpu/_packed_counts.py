"""How often each genotype occurs, by SNP and by sample, counted where the packed genotypes are."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from gramian.compute.gpu._launch import triton_for
from gramian.compute.gpu._packed_plain import TILE_BYTES
from gramian.compute.gpu._packed_tensor import by_bytes, kernels, reach

__all__ = ["sample_counts", "snp_counts"]

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
    found = (_tensor_snp_counts if triton_for(packed) else _plain_snp_counts)(packed, mask).long()
    missing, one, none = found.unbind(dim=1)
    return torch.stack([n - missing - one - none, one, none, missing], dim=1)


def _tensor_snp_counts(packed: Tensor, mask: Tensor) -> Tensor:
    packed = by_bytes(packed)
    p, width = packed.shape
    stride, limit = reach(packed)
    rows, span = 8, 256
    keep = torch.zeros(-(-width // span) * span, dtype=torch.uint8, device=packed.device)
    keep[:width] = mask
    out = torch.empty((p, 3), dtype=torch.int32, device=packed.device)
    grid = (-(-p // rows),)
    with torch.cuda.device_of(packed):
        kernels().snp_counts_kernel[grid](packed, stride, keep, out, p, limit, width, BR=rows, BB=span, STEPS=STEPS)
    return out


@cache
def _bits(device: torch.device) -> Tensor:
    """How many bits of each byte are set."""
    return torch.tensor([value.bit_count() for value in range(256)], dtype=torch.uint8, device=device)


def _kinds(packed: Tensor, mask: Tensor | int) -> tuple[Tensor, Tensor, Tensor]:
    """Missing, one copy and none, each as bits 0, 2, 4 and 6 of bytes."""
    low, high = packed & mask, (packed >> 1) & mask
    both = low & high
    return low ^ both, high ^ both, both


def _plain_snp_counts(packed: Tensor, mask: Tensor) -> Tensor:
    rows = max(1, TILE_BYTES // (16 * packed.shape[1]))
    bits = _bits(packed.device)
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
    found = (_tensor_sample_counts if triton_for(packed) else _plain_sample_counts)(packed).long()
    missing, one, none = found
    return torch.stack([p - missing - one - none, one, none, missing], dim=1)


def _tensor_sample_counts(packed: Tensor) -> Tensor:
    packed = by_bytes(packed)
    p, width = packed.shape
    stride, limit = reach(packed)
    rows, span, steps = 8, 128, 128
    out = torch.zeros((3, 4 * width), dtype=torch.int32, device=packed.device)
    grid = (-(-width // span), -(-p // (rows * steps)))
    with torch.cuda.device_of(packed):
        kernels().sample_counts_kernel[grid](packed, stride, out, p, limit, width, BR=rows, BB=span, STEPS=steps)
    return out


def _plain_sample_counts(packed: Tensor) -> Tensor:
    out = torch.zeros((3, packed.shape[1], 4), dtype=torch.int64, device=packed.device)
    for part in torch.split(packed, max(1, TILE_BYTES // (16 * packed.shape[1]))):
        for i, kind in enumerate(_kinds(part, 0x55)):
            for lane in range(4):
                out[i, :, lane] += ((kind >> (2 * lane)) & 1).sum(dim=0, dtype=torch.int64)
    return out.view(3, -1)
