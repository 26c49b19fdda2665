r"""Cholesky factorisation in half a matrix of a device's memory: A + λI = LLᵀ by block columns, each in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from gramian.compute.gpu.dense import every_digit

Fill = Callable[[slice, slice], torch.Tensor]

SMALLEST, LARGEST = 256, 4096  # columns of a block, powers of two
BLOCKS = 16  # as many blocks at least, down to the smallest size: less is wasted above the diagonal
WORK = 3  # blocks in float64 to work in: values on their way to their place, a factor, and what cuSOLVER takes for it
LIBRARY = 2**25  # bytes that cuBLAS works in on an H200, kept from the first product on (8 MiB on earlier devices)
# torch takes memory from the device in pieces: of 2 MiB for tensors below 1 MiB, of 20 MiB for those below 10 MiB
SMALL_PIECES, LARGE_PIECE = 2**22, 20 * 2**20


class BlockNotDefinite(np.linalg.LinAlgError):
    """A + λI is not positive definite.

    Attributes
    ----------
    minor : int
        The order of the first leading minor that is not positive.
    size : float
        The largest entry of the diagonal.
    """

    def __init__(self, n: int, rows: slice, minor: int, size: float) -> None:
        self.minor, self.size = minor, size
        super().__init__(
            f"A matrix of {n} rows is not positive definite: its leading minor of order {minor}, in the block of rows "
            f"{rows.start} to {rows.stop - 1}, is not."
        )


def block_size(n: int) -> int:
    """Columns of a block for n rows: a power of two from 256 to 4,096, about a sixteenth of n.

    Examples
    --------
    >>> from gramian.compute.gpu.cholesky import block_size
    >>> [block_size(n) for n in (100, 20_000, 120_000)]
    [256, 1024, 4096]
    """
    about = 1 << (max(1, n // BLOCKS).bit_length() - 1)
    return min(LARGEST, max(SMALLEST, about))


def nbytes(n: int, itemsize: int = 8, block: int | None = None) -> int:
    """Bytes that the factor of n rows takes at most while it is made: n(n + b)/2 numbers, a few blocks, work space.

    On an H200, torch 2.11 took 142.6 MB of the device for 5,000 rows (144.4 predicted) and 27.2 GB for 80,000 (27.3).

    Examples
    --------
    >>> from gramian.compute.gpu.cholesky import nbytes
    >>> nbytes(120_000) / 2**30 < 57
    True
    """
    b = block or block_size(n)
    panels = itemsize * sum((stop - start) * (n - start) for start, stop in _spans(n, b))
    tile = 8 * min(b, n) ** 2
    shared = any(2**20 <= size < 10 * 2**20 for size in (panels, tile))
    return panels + WORK * tile + LIBRARY + (LARGE_PIECE if shared else SMALL_PIECES)


class BlockCholesky:
    r"""L of A + λI = LLᵀ, of which only the lower block columns are ever stored, and solutions with it.

    A block column is evaluated into its place just before it is needed and becomes the same block column of L,

    .. math:: L_{jj}L_{jj}^T = A_{jj}+\lambda I-\sum_{k<j}L_{jk}L_{jk}^T,\qquad
        L_{ij} = \Big(A_{ij}-\sum_{k<j}L_{ik}L_{jk}^T\Big)L_{jj}^{-T}

    so that nearly all of the n³/3 operations are products of large matrices, which write where they read: there are no
    temporary matrices beyond a few blocks. The device is waited for once, at the end.

    Parameters
    ----------
    n : int
        Rows of A.
    fill : callable
        ``fill(rows, columns)`` gives a block of A, as a tensor of any dtype on any device; the rows begin at or below
        the columns, which are a block column.
    shift : float
        λ.
    device : torch.device
        Where L lives.
    dtype : torch.dtype, default=torch.float64
        Of L.
    block : int, optional
        Columns of a block; :func:`block_size` unless given.

    Raises
    ------
    BlockNotDefinite
        Where A + λI is not positive definite, or not finite.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.cholesky import BlockCholesky
    >>> A = torch.tensor([[4.0, 2.0], [2.0, 5.0]], dtype=torch.float64)
    >>> L = BlockCholesky(2, lambda rows, columns: A[rows, columns], 0.0, device=A.device, block=1)
    >>> L.solve(torch.tensor([[8.0], [8.0]])).ravel().tolist()
    [1.5, 1.0]
    """

    def __init__(
        self,
        n: int,
        fill: Fill,
        shift: float,
        *,
        device: torch.device,
        dtype: torch.dtype = torch.float64,
        block: int | None = None,
    ) -> None:
        self.n, self.dtype, self.device = n, dtype, device
        self.block = min(max(1, n), block or block_size(n))
        self.spans = list(_spans(n, self.block))
        # room for the block columns, one after another in one piece of memory
        room = [(stop - start) * (n - start) for start, stop in self.spans]
        pieces = torch.empty(sum(room), dtype=dtype, device=device).split(room)
        self.panels = [part.view(-1, stop - start) for part, (start, stop) in zip(pieces, self.spans, strict=True)]
        infos, sizes = [], []
        with every_digit():
            for j, (start, stop) in enumerate(self.spans):
                panel, width = self.panels[j], stop - start
                sizes.append(self._write_block(panel, fill, shift, start, stop))
                for (before, _), done in zip(self.spans[:j], self.panels[:j], strict=True):
                    below = done[start - before :]
                    panel.addmm_(below, below[:width].mT, alpha=-1.0)
                L, info = torch.linalg.cholesky_ex(panel[:width])
                panel[:width] = L
                infos.append(info)
                rest = panel[width:]
                if len(rest):
                    torch.linalg.solve_triangular(L.mT, rest, upper=True, left=False, out=rest)
        if infos:
            self._check(torch.stack(infos), torch.stack(sizes))

    def solve(self, R: torch.Tensor) -> torch.Tensor:
        """(LLᵀ)⁻¹R for R of shape (n, t), by substitution block by block: L is read twice."""
        X = R.to(device=self.device, dtype=self.dtype, copy=True).contiguous()
        parts = list(zip(self.spans, self.panels, strict=True))
        with every_digit():
            for (start, stop), panel in parts:
                L, head = panel[: stop - start], X[start:stop]
                head.copy_(torch.linalg.solve_triangular(L, head, upper=False))
                X[stop:].addmm_(panel[stop - start :], head, alpha=-1.0)
            for (start, stop), panel in reversed(parts):
                L, head = panel[: stop - start], X[start:stop]
                head.addmm_(panel[stop - start :].mT, X[stop:], alpha=-1.0)
                head.copy_(torch.linalg.solve_triangular(L.mT, head, upper=True))
        return X

    def _write_block(self, panel: torch.Tensor, fill: Fill, shift: float, start: int, stop: int) -> torch.Tensor:
        """Write A + λI into a block column, a block at a time; return the largest entry of its diagonal."""
        for first in range(start, self.n, self.block):
            last = min(first + self.block, self.n)
            panel[first - start : last - start] = fill(slice(first, last), slice(start, stop))
        diagonal = panel[: stop - start].diagonal()
        diagonal += shift
        return diagonal.abs().max()

    def _check(self, infos: torch.Tensor, sizes: torch.Tensor) -> None:
        """Say which block was not positive definite; what is not finite reaches the last entry of L."""
        found = infos.cpu()
        if not found.any() and bool(torch.isfinite(self.panels[-1][-1, -1])):
            return
        j = int(found.nonzero()[0, 0]) if found.any() else len(found) - 1
        start, stop = self.spans[j]
        self.panels.clear()
        raise BlockNotDefinite(self.n, slice(start, stop), start + max(1, int(found[j])), float(sizes.max()))


def _spans(n: int, block: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + block, n)) for start in range(0, n, block))
