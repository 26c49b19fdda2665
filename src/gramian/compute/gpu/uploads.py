"""Rows of bytes on their way to a device: through two pinned buffers, the next block while the last is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["Conveyor", "aligned", "padded_rows", "row_bytes", "upload"]

Fill = Callable[[int, int, npt.NDArray[np.uint8]], None]
Span = tuple[int, int]

ALIGNED = 128  # bytes that a row on a card starts at a multiple of: words are read, not bytes
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


def aligned(packed: Tensor) -> bool:
    """Whether rows start at whole words, so that they are read as such."""
    return bool(packed.stride(1) == 1 and packed.stride(0) % 16 == 0 and packed.data_ptr() % 16 == 0)


def padded_rows(packed: Tensor, index: Tensor | None = None) -> Tensor:
    """A copy of rows, or of some of them, each at a multiple of 128 bytes.

    Examples
    --------
    >>> import torch
    >>> from gramian.compute.gpu.uploads import aligned, padded_rows
    >>> rows = torch.arange(6, dtype=torch.uint8).view(2, 3)
    >>> found = padded_rows(rows, torch.tensor([1]))
    >>> found.tolist(), found.stride(), aligned(found)
    ([[3, 4, 5]], (128, 1), True)
    """
    count, width = len(packed) if index is None else len(index), packed.shape[1]
    whole = torch.empty((count, row_bytes(width)), dtype=torch.uint8, device=packed.device)[:, :width]
    step = max(1, BUFFER // max(1, width))
    for start in range(0, count, step):
        stop = min(start + step, count)
        whole[start:stop] = packed[start:stop] if index is None else packed[index[start:stop]]
    return whole


class Conveyor:
    """Carries blocks of rows to a device, one after the other, into two places that take turns.

    Parameters
    ----------
    width : int
        Bytes of a row.
    device : torch.device
        Where to. Tensors on the CPU take the same turns, without streams.
    most : int, optional
        Rows there are, of which blocks have no more.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from gramian.compute.gpu.uploads import Conveyor
    >>> rows = np.arange(6, dtype=np.uint8).reshape(3, 2)
    >>> carry = Conveyor(2, torch.device("cpu"))
    >>> for start, stop, block in carry(lambda a, b, out: np.copyto(out, rows[a:b]), [(0, 2), (2, 3)]):
    ...     print(start, stop, block.tolist())
    0 2 [[0, 1], [2, 3]]
    2 3 [[4, 5]]
    """

    def __init__(self, width: int, device: torch.device, most: int | None = None) -> None:
        self.rows = max(1, BUFFER // max(1, width))
        self.rows = self.rows if most is None else max(1, min(self.rows, most))
        self.width, self.device = width, device
        self._slots: list[_Slot | _CardSlot] = []  # pinned memory takes a while to get: when it is needed, and once

    @property
    def nbytes(self) -> int:
        """Bytes that its places take on the device: two, each with rows as they land and as they are padded."""
        return 2 * self.rows * (self.width + row_bytes(self.width))

    def spans(self, p: int) -> list[Span]:
        """Blocks of p rows that fit the buffers."""
        return [(start, min(start + self.rows, p)) for start in range(0, p, self.rows)]

    def __call__(self, fill: Fill, spans: Sequence[Span]) -> Iterator[tuple[int, int, Tensor]]:
        """Yield (start, stop, rows on the device), good until the next but one is asked for."""
        if not self._slots:
            kind = _CardSlot if self.device.type == "cuda" else _Slot
            self._slots = [kind(self.rows, self.width, self.device) for _ in range(min(2, len(spans)))]
        for turn, (start, stop) in enumerate(spans):
            slot = self._slots[turn % len(self._slots)]
            yield start, stop, slot.load(fill, start, stop)
            slot.release()


class _Slot:
    """One of the two places, on the CPU: a buffer that is filled."""

    def __init__(self, rows: int, width: int, device: torch.device) -> None:
        self.width = width
        self.host = torch.empty(rows * width, dtype=torch.uint8, pin_memory=device.type == "cuda")

    def load(self, fill: Fill, start: int, stop: int) -> Tensor:
        """Fill it with rows start to stop."""
        block = self.host[: (stop - start) * self.width].view(stop - start, self.width)
        fill(start, stop, block.numpy())
        return block

    def release(self) -> None:
        """Say that what was to be done with the rows is done."""


class _CardSlot(_Slot):
    """One of the two places, on a card: filled while the other is worked on, and not before this one was."""

    def __init__(self, rows: int, width: int, device: torch.device) -> None:
        super().__init__(rows, width, device)
        self.device = device
        self.landed = torch.empty(rows * width, dtype=torch.uint8, device=device)
        self.card = torch.empty((rows, row_bytes(width)), dtype=torch.uint8, device=device)
        self.stream: Any = torch.cuda.Stream(device)
        self.uploaded, self.done = torch.cuda.Event(), torch.cuda.Event()
        self.release()  # what was in this memory before may still be worked on

    def load(self, fill: Fill, start: int, stop: int) -> Tensor:
        """Fill the pinned buffer, and let the card fetch it and pad its rows when it has time."""
        self.uploaded.synchronize()  # the copy that read the pinned buffer last
        block = super().load(fill, start, stop)
        size, out = block.numel(), self.card[: stop - start, : self.width]
        with torch.cuda.stream(self.stream):
            self.stream.wait_event(self.done)
            self.landed[:size].copy_(self.host[:size], non_blocking=True)
            out.copy_(self.landed[:size].view(stop - start, self.width))
            self.uploaded.record(self.stream)
        torch.cuda.current_stream(self.device).wait_event(self.uploaded)
        return out

    def release(self) -> None:
        """Note where the products with these rows end."""
        self.done.record(torch.cuda.current_stream(self.device))


def upload(fill: Fill, p: int, width: int, device: torch.device) -> Tensor:
    """Return all p rows on a device, each at a multiple of 128 bytes.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from gramian.compute.gpu.uploads import upload
    >>> rows = np.arange(6, dtype=np.uint8).reshape(3, 2)
    >>> upload(lambda a, b, out: np.copyto(out, rows[a:b]), 3, 2, torch.device("cpu")).tolist()
    [[0, 1], [2, 3], [4, 5]]
    """
    whole = torch.empty((p, row_bytes(width)), dtype=torch.uint8, device=device)[:, :width]
    carry = Conveyor(width, device, p)
    for start, stop, block in carry(fill, carry.spans(p)):
        whole[start:stop] = block
    return whole
