"""Products with packed genotypes on a device, four of them in a byte: decoded where they are multiplied.

With z = a g + b where a genotype g was seen and 0 where it is missing, as :class:`gramian.compute.genotypes.Decoder`
has it. On a card the other factor is split into two half-precision parts ("accurate", relative error at most 2e-6) or
rounded to one ("fast", 5e-4) for the tensor cores; float64 ("double"), and everything without Triton, is decoded in
tiles and multiplied by torch. Sums over samples or SNPs are taken of a few thousand terms each, and these in float64.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gramian.compute.gpu._launch import triton_for
from gramian.compute.gpu._packed_counts import sample_counts, snp_counts
from gramian.compute.gpu._packed_plain import TILE_BYTES, decoded, exactly, plain_adjoint, plain_product
from gramian.compute.gpu._packed_tensor import (
    COLUMNS,
    PART_BYTES,
    PART_SNPS,
    PARTS,
    Factor,
    padded,
    samples_factor,
    tensor_adjoint,
    tensor_product,
)

__all__ = [
    "ERRORS",
    "adjoint",
    "decoded",
    "exactly",
    "factor",
    "mode_for",
    "product",
    "sample_counts",
    "snp_counts",
    "triton_for",
    "working_bytes",
]

ERRORS = {"fast": 5e-4, "accurate": 2e-6, "double": 2.0**-52}


def mode_for(dtype: torch.dtype, tolerance: float | None = None) -> str:
    """Return the mode of products that are wanted in a dtype, for results to a tolerance.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.genotypes import mode_for
    >>> mode_for(torch.float32, 1e-4), mode_for(torch.float32, 0.01), mode_for(torch.float64)
    ('accurate', 'fast', 'double')
    """
    if dtype == torch.float64:
        return "double"
    return "fast" if tolerance is not None and 4 * ERRORS["fast"] <= tolerance else "accurate"


def factor(U: Tensor, width: int, mode: str) -> Tensor | list[Factor]:
    """Prepare columns U (4·width or fewer rows) for products with many blocks of SNPs: see :func:`adjoint`."""
    if mode == "double" or not triton_for(U):
        return U
    return [samples_factor(part, width, mode) for part in torch.split(U, COLUMNS, dim=1)]


def adjoint(
    packed: Tensor, line: Tensor, U: Tensor | list[Factor], *, mode: str = "accurate", missing: bool = True
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
        :func:`factor` makes of it.
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
        U = factor(U, packed.shape[1], mode)
    if isinstance(U, Tensor):
        return plain_adjoint(packed, line, U)
    return torch.cat([tensor_adjoint(packed, line, part, missing) for part in U], dim=1)


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
    if mode == "double" or not triton_for(packed):
        return plain_product(packed, line, W, out)
    start = 0
    for part in torch.split(W, COLUMNS, dim=1):
        tensor_product(packed, line, part, mode, missing, out[:, start : start + part.shape[1]])
        start += part.shape[1]
    return out


def working_bytes(width: int, rows: int, columns: int, mode: str) -> int:
    """Bytes that products of a block of SNPs with so many columns take beside the genotypes themselves.

    Examples
    --------
    >>> from gramian.compute.gpu.genotypes import working_bytes
    >>> working_bytes(122_000, 16_384, 24, "accurate") < 2**30
    True
    """
    n, C = 4 * width, padded(PARTS.get(mode, 1) * min(columns, COLUMNS))
    samples = 8 * n * columns + 2 * n * C  # the result, and the parts of the other factor
    sums = 4 * C * max(rows * -(-width // PART_BYTES), n * -(-rows // PART_SNPS))
    return samples + sums + 24 * rows * columns + 8 * TILE_BYTES
