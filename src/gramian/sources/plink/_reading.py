"""Bytes of a file, read by several threads into memory that is there already."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import parallel

__all__ = ["COPY", "read_file"]

COPY = 2**22  # bytes that a thread copies at a time


def read_file(path: Path, offset: int, out: npt.NDArray[np.uint8]) -> None:
    """Fill a contiguous array with the bytes of a file from an offset on; a file that ends before is refused."""
    flat = out.reshape(-1)
    file = os.open(path, os.O_RDONLY)

    def read(share: Sequence[int]) -> None:
        for start in share:
            stop = min(start + COPY, len(flat))
            while start < stop:
                count = os.preadv(file, [flat[start:stop].data], offset + start)
                if not count:
                    raise ValueError(f"{path}: the file has become shorter since it was opened.")
                start += count

    try:
        parallel(read, range(0, len(flat), COPY))
    finally:
        os.close(file)
