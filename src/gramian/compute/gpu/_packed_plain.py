"""Packed genotypes multiplied by plain torch: a tile decoded at a time, on any device and in any dtype."""

from __future__ import annotations

import torch
from torch import Tensor

from gramian.compute.gpu.dense import every_digit

__all__ = ["TILE_BYTES", "decoded", "exactly", "plain_adjoint", "plain_product"]

TILE_BYTES = 2**26  # of genotypes decoded together
SAMPLES = 512  # bytes of a SNP decoded together: sums over more than four times as many samples are in float64
SNPS = 2048  # decoded together, at most: likewise


def decoded(packed: Tensor, line: Tensor, dtype: torch.dtype) -> Tensor:
    """Standardised genotypes of shape (p, 4·width), a G + b S with G the copies and S whether there is a call.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import decoded
    >>> packed = torch.tensor([[0b11_10_01_00]], dtype=torch.uint8)
    >>> decoded(packed, torch.tensor([[1.0, -1.0]], dtype=torch.float64), torch.float32)
    tensor([[ 1.,  0.,  0., -1.]])
    """
    p, width = packed.shape
    codes = torch.stack([(packed >> shift) & 3 for shift in (0, 2, 4, 6)], dim=2).view(p, 4 * width)
    a, b = line[:, :1], line[:, 1:]
    table = torch.cat([2 * a + b, torch.zeros_like(a), a + b, b], dim=1).to(dtype)
    return torch.gather(table, 1, codes.long())


def _tiles(packed: Tensor, itemsize: int) -> tuple[list[slice], list[slice]]:
    """Spans of SNPs and of bytes that are decoded together."""
    p, width = packed.shape
    many = min(SAMPLES, width)
    rows = max(1, min(SNPS, TILE_BYTES // (4 * many * (itemsize + 8))))
    return [slice(i, min(i + rows, p)) for i in range(0, p, rows)], [
        slice(i, min(i + many, width)) for i in range(0, width, many)
    ]


def plain_adjoint(packed: Tensor, line: Tensor, U: Tensor) -> Tensor:
    """Decode tiles and multiply them by torch, in the dtype of U."""
    out = torch.zeros((packed.shape[0], U.shape[1]), dtype=torch.float64, device=packed.device)
    rows, spans = _tiles(packed, U.element_size())
    for at in rows:
        for span in spans:
            part = U[4 * span.start : 4 * span.stop]
            Z = decoded(packed[at, span], line[at], U.dtype)
            out[at] += exactly(Z[:, : len(part)], part)
    return out


def plain_product(packed: Tensor, line: Tensor, W: Tensor, out: Tensor) -> Tensor:
    rows, spans = _tiles(packed, W.element_size())
    for at in rows:
        for span in spans:
            Z = decoded(packed[at, span], line[at], W.dtype)
            out[4 * span.start : 4 * span.stop] += exactly(Z.T, W[at])
    return out


def exactly(A: Tensor, B: Tensor) -> Tensor:
    """A B with all the bits of its dtype, whatever torch has been allowed to leave out."""
    with every_digit():
        return A @ B
