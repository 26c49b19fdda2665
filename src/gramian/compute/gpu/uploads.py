"""Uploads to a device: rows through two pinned buffers, the next block while the last one is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

Fill = Callable[[npt.NDArray[Any]], None]  # writes rows to a buffer

ALIGNED = 128  # bytes that a padded row on a GPU starts at a multiple of: words are read, not bytes
BUFFER = 2**27  # bytes of a pinned buffer: long enough for the full speed of a copy, short enough to be had


def row_bytes(width: int) -> int:
    """Bytes that a row of so many takes on a device.

    Examples
    --------
    >>> from gramian.compute.gpu.uploads import row_bytes
    >>> row_bytes(121_853)
    121856
    """
    return -(-width // ALIGNED) * ALIGNED


def is_aligned(packed: Tensor) -> bool:
    """Whether rows start at whole words, so that they are read as such."""
    return bool(packed.stride(1) == 1 and packed.stride(0) % 16 == 0 and packed.data_ptr() % 16 == 0)


def pad_rows(packed: Tensor, index: Tensor | None = None) -> Tensor:
    """A copy of rows, or of some of them, each at a multiple of 128 bytes.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.uploads import is_aligned, pad_rows
    >>> rows = torch.arange(6, dtype=torch.uint8).view(2, 3)
    >>> found = pad_rows(rows, torch.tensor([1]))
    >>> found.tolist(), found.stride(), is_aligned(found)
    ([[3, 4, 5]], (128, 1), True)
    """
    count, width = len(packed) if index is None else len(index), packed.shape[1]
    whole = torch.empty((count, row_bytes(width)), dtype=torch.uint8, device=packed.device)[:, :width]
    step = max(1, BUFFER // max(1, width))
    for start in range(0, count, step):
        stop = min(start + step, count)
        whole[start:stop] = packed[start:stop] if index is None else packed[index[start:stop]]
    return whole


class Uploader:
    """Copies blocks of rows to a device, one after the other, into two places that take turns.

    Parameters
    ----------
    width : int
        Numbers in a row.
    device : torch.device
        Where to. Tensors on the CPU take the same turns, without streams.
    most : int, optional
        Rows there are, of which blocks have no more.
    rows : int, optional
        Of a block; as many as a buffer holds by default.
    dtype : torch.dtype, default=torch.uint8
        Of the numbers, in the buffers and on the device.
    padded : bool, default=False
        Whether rows start at multiples of 128 bytes on a GPU; for bytes alone.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from gramian.compute.gpu.uploads import Uploader
    >>> rows = np.arange(6, dtype=np.uint8).reshape(3, 2)
    >>> uploader = Uploader(2, torch.device("cpu"))
    >>> for start, stop, block in uploader([(0, 2, lambda out: np.copyto(out, rows[:2]))]):
    ...     print(start, stop, block.tolist())
    0 2 [[0, 1], [2, 3]]
    """

    def __init__(
        self,
        width: int,
        device: torch.device,
        most: int | None = None,
        *,
        rows: int | None = None,
        dtype: torch.dtype = torch.uint8,
        padded: bool = False,
    ) -> None:
        rows = BUFFER // max(1, width * dtype.itemsize) if rows is None else rows
        self.rows = max(1, rows if most is None else min(rows, most))
        self.width, self.device, self.dtype, self.padded = width, device, dtype, padded
        self._places: list[_Place] = []  # pinned memory takes a while to get: when it is needed, and once

    @property
    def nbytes(self) -> int:
        """Bytes that its places take on the device: two, each with rows as they land, and as they are padded."""
        padding = row_bytes(self.width) if self.padded else 0
        return 2 * self.rows * (self.width * int(self.dtype.itemsize) + padding)

    def cut(self, p: int, fill: Callable[[int, int, npt.NDArray[Any]], None]) -> Iterator[tuple[int, int, Fill]]:
        """Blocks of p rows that fit the buffers, for a function that writes rows start to stop."""
        for start in range(0, p, self.rows):
            stop = min(start + self.rows, p)
            yield start, stop, partial(fill, start, stop)

    def __call__(
        self, blocks: Iterable[tuple[int, int, Fill]], whole: Tensor | None = None
    ) -> Iterator[tuple[int, int, Tensor]]:
        """Yield (start, stop, rows on the device) for each (start, stop, fill).

        They are in ``whole`` if given, else good until the next but one is asked for.
        """
        for turn, (start, stop, fill) in enumerate(blocks):
            if turn == len(self._places) < 2:
                self._places.append(_Place(self, whole is None))
            place = self._places[turn % len(self._places)]
            yield start, stop, place.load(fill, stop - start, None if whole is None else whole[start:stop])
            place.release()


class _Place:
    """A pinned buffer, and room on the GPU that is filled from it while the other place is worked on.

    On the CPU the buffer is all there is, and nothing is waited for.
    """

    def __init__(self, uploader: Uploader, with_room: bool) -> None:
        rows, width, device, dtype = uploader.rows, uploader.width, uploader.device, uploader.dtype
        self.width, self.device, self.cuda = width, device, device.type == "cuda"
        self.buffer = torch.empty(rows * width, dtype=dtype, pin_memory=self.cuda)
        self.landed = torch.empty(rows * width, dtype=dtype, device=device) if self.cuda and uploader.padded else None
        if self.cuda:
            columns = row_bytes(width) if uploader.padded else width
            self.room = torch.empty((rows if with_room else 0, columns), dtype=dtype, device=device)
            self.stream: Any = torch.cuda.Stream(device)
            self.uploaded, self.done = torch.cuda.Event(), torch.cuda.Event()
        self.release()  # what was in this memory before may still be worked on

    def load(self, fill: Fill, rows: int, out: Tensor | None) -> Tensor:
        """Fill the buffer, and let the GPU fetch the rows to ``out`` or its room when it has time."""
        if self.cuda:
            self.uploaded.synchronize()  # the copy that read the buffer last
        size, shape = rows * self.width, (rows, self.width)
        block = self.buffer[:size].view(shape)
        fill(block.numpy())
        if not self.cuda:
            return block if out is None else out.copy_(block)
        out = self.room[:rows, : self.width] if out is None else out
        with torch.cuda.stream(self.stream):
            self.stream.wait_event(self.done)
            if self.landed is not None:  # over the bus in one piece, then padded
                block = self.landed[:size].view(shape).copy_(block, non_blocking=True)
            out.copy_(block, non_blocking=True)
            self.uploaded.record(self.stream)
        torch.cuda.current_stream(self.device).wait_event(self.uploaded)
        return out

    def release(self) -> None:
        """Note where the work that was queued with these rows ends: their memory is written again after it."""
        if self.cuda:
            self.done.record(torch.cuda.current_stream(self.device))


def upload(fill: Callable[[int, int, npt.NDArray[Any]], None], p: int, width: int, device: torch.device) -> Tensor:
    """Return all p rows of bytes on a device, each at a multiple of 128 bytes; fill(start, stop, out) writes some.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from gramian.compute.gpu.uploads import upload
    >>> rows = np.arange(6, dtype=np.uint8).reshape(3, 2)
    >>> upload(lambda a, b, out: np.copyto(out, rows[a:b]), 3, 2, torch.device("cpu")).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    whole = torch.empty((p, row_bytes(width)), dtype=torch.uint8, device=device)[:, :width]
    uploader = Uploader(width, device, p, padded=True)
    for _ in uploader(uploader.cut(p, fill), whole):
        pass
    return whole
