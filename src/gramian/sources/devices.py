"""Sources on a GPU, as torch tensors: all of the rows, or a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import array_api_compat
import numpy as np
import numpy.typing as npt

from gramian.compute.devices import (
    describe,
    free_bytes,
    gpu,
    load_torch,
    refuse_beyond_device,
    resolve,
    to_device,
    to_numpy,
    torch_dtype,
)
from gramian.compute.threads import parallel
from gramian.sources.arrays import DenseSource, TensorSource
from gramian.sources.base import Block, Source, memory_budget

Array = npt.NDArray[Any]

BLOCK_BYTES = 2**26  # of a block on its way: long enough for the bus, short compared with the memory of any GPU
WHOLE = 0.5  # of the free memory of a device: data that take more are sent block by block, every pass anew
# dtypes that torch has too
KEPT = ("bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
PIECE = 2**20  # numbers that a thread copies at a time


def source_to_device(source: Source, device: Any) -> Source:
    """Return a source where an estimator with this ``device`` works on it.

    A dense source becomes one tensor where it takes at most half of what is free on the device, else it is streamed.

    Parameters
    ----------
    source : Source
        What is read.
    device : None, "auto", "cpu", "cuda", "cuda:1", … or torch.device
        None leaves the source where it is, "cpu" is NumPy. Sparse data stay on the CPU for "auto", and are refused for
        other devices.

    Returns
    -------
    Source
        The same numbers; on a device in the same dtype where torch has it, else in float64.

    Examples
    --------
    >>> import numpy as np, torch, gramian
    >>> from gramian.sources.devices import source_to_device
    >>> source_to_device(gramian.open(np.ones((3, 2))), torch.device("cpu"))
    TensorSource(3 x 2, torch.float64)
    """
    if device is None:
        return source
    there = resolve(device, getattr(source, "values", None))
    if there is None:
        return source_to_numpy(source)
    if source.device == there or (source.sparse and isinstance(device, str) and device == "auto"):
        return source
    if source.sparse:
        raise ValueError(
            f"Sparse data are fitted on the CPU: use device='cpu' (NumPy), or dense data on {describe(there)}."
        )
    if isinstance(source, TensorSource):
        nbytes = source.values.element_size() * source.values.numel()
        if source.device.type == "cpu" and nbytes > WHOLE * free_bytes(there):
            return StreamedSource(source_to_numpy(source), there)
        refuse_beyond_device(nbytes, there, f"A tensor of {source.shape[0]:,} rows", "Use the device where it is.")
        return TensorSource(source.values.to(there), source.feature_names)
    if source.shape[0] * _row_bytes(source) > WHOLE * free_bytes(there):
        return StreamedSource(source, there)
    if there.type == "cpu" and isinstance(source, DenseSource):
        return TensorSource(to_device(source.values, there, _dtype(source)), source.feature_names)
    return TensorSource(upload(source, there), source.feature_names)


def source_to_numpy(source: Source) -> Source:
    """Return a source of NumPy's arrays: itself, unless its values are tensors.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.sources.devices import source_to_numpy
    >>> source_to_numpy(gramian.open(np.ones((3, 2))))
    DenseSource(3 x 2, float64)
    """
    if isinstance(source, StreamedSource):
        return source.source
    if isinstance(source, TensorSource):
        return DenseSource(to_numpy(source.values), source.feature_names)
    return source


class StreamedSource(Source):
    """The rows of a source as tensors on a device, a block at a time: for data larger than the device's memory.

    The next block travels, through pinned memory and on a stream of its own, while the last one is worked on.

    Parameters
    ----------
    source : Source
        What is read: dense, in memory or in a file.
    device : torch.device
        Where its blocks go.
    """

    resident = False

    def __init__(self, source: Source, device: Any) -> None:
        self.source, self.device = source, device
        self.shape, self.feature_names = source.shape, source.feature_names
        self.dtype = torch_dtype(_dtype(source))
        self.xp = array_api_compat.array_namespace(load_torch(device).empty(0))

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks in two tensors in turn, which are not written again before what was queued with them is done."""
        rows = _block_rows(self.source) if rows is None else min(rows, self.shape[0])
        remedy = "Free memory there, or set scikit-learn's working_memory lower, which makes blocks shorter."
        refuse_beyond_device(2 * rows * _row_bytes(self.source), self.device, f"Two blocks of {rows} rows", remedy)
        for start, stop, values in _upload_blocks(self.source, rows, self.dtype, self.device):
            yield Block(start, stop, values)


def upload(source: Source, device: Any) -> Any:
    """Return all rows of a dense source as one tensor, or refuse with the figure where a device has no room for them.

    Examples
    --------
    >>> import numpy as np, torch, gramian
    >>> from gramian.sources.devices import upload
    >>> upload(gramian.open(np.ones((3, 2))), torch.device("cpu")).shape
    torch.Size([3, 2])
    """
    nbytes = source.shape[0] * _row_bytes(source)
    remedy = ("Use ", ("device", "cpu"), ", or fewer rows.")
    refuse_beyond_device(nbytes, device, f"A table of {source.shape[0]:,} rows", remedy)
    dtype = torch_dtype(_dtype(source))
    out = load_torch(device).empty(source.shape, dtype=dtype, device=device)
    for _ in _upload_blocks(source, _block_rows(source), dtype, device, out):
        pass
    return out


def _upload_blocks(
    source: Source, rows: int, dtype: Any, device: Any, whole: Any = None
) -> Iterator[tuple[int, int, Any]]:
    """(start, stop, tensor on the device) of each block, through pinned memory; in ``whole`` if given."""
    uploader = gpu().uploads.Uploader(source.shape[1], device, rows=rows, dtype=dtype)
    yield from uploader(((b.start, b.stop, partial(_copy, b.values)) for b in source.blocks(rows)), whole)


def _copy(values: Array, out: Array) -> None:
    """Copy numbers of any dtype and order to an array, by all threads."""
    step = max(1, PIECE // max(1, out.shape[1]))

    def copy(share: Sequence[int]) -> None:
        for i in share:
            np.copyto(out[i : i + step], values[i : i + step], casting="unsafe")

    parallel(copy, range(0, len(out), step))


def _dtype(source: Source) -> np.dtype[Any]:
    """The dtype that numbers have on a device."""
    return np.dtype(source.dtype.name if source.dtype.name in KEPT else "float64")


def _row_bytes(source: Source) -> int:
    return int(source.shape[1] * _dtype(source).itemsize)


def _block_rows(source: Source) -> int:
    """Rows of a block on its way: at most an eighth of ``working_memory``."""
    size = min(BLOCK_BYTES, memory_budget() // 8)
    return max(1, min(source.shape[0], size // max(1, _row_bytes(source))))
