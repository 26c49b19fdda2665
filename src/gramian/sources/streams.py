"""Tables that other programs hand over batch by batch through Arrow: queries, lazy frames, data sets, readers."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from gramian.sources.arrays import DenseSource
from gramian.sources.base import Source, memory_budget
from gramian.sources.columns import WORDS, arrow_kind, arrow_numbers, is_single
from gramian.sources.errors import SourceError
from gramian.sources.files import decode_numerics, load_pyarrow
from gramian.sources.npy import NpySource

HEADER_BYTES = 128


@runtime_checkable
class ArrowStream(Protocol):
    """What hands out its rows by Arrow's stream protocol."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a capsule that holds a stream of record batches."""


def is_stream(data: Any) -> bool:
    """Whether data are handed over in batches: Arrow's stream protocol, a data set of pyarrow, a lazy frame of polars.

    Frames and columns of pandas and polars are in memory, and read there.
    """
    names = {(cls.__module__.partition(".")[0], cls.__name__) for cls in type(data).__mro__}
    if not names.isdisjoint({("polars", "LazyFrame"), ("pyarrow", "Dataset"), ("pyarrow", "Scanner")}):
        return True
    return isinstance(data, ArrowStream) and type(data).__module__.partition(".")[0] not in ("pandas", "polars")


def open_stream(data: Any, name: str = "the table") -> Source:
    """Read a table batch by batch: kept in memory within the budget, else in a temporary file of numbers.

    A query that runs again may give its rows in another order, and a reader gives them once; so the rows are read once,
    and later passes read what was kept. Memory takes one batch beyond the budget; the file is removed with the source.

    Parameters
    ----------
    data : object
        With ``__arrow_c_stream__`` (relations of DuckDB, readers and tables of pyarrow, results of ADBC), a data set
        or scanner of pyarrow, or a lazy frame of polars. Every column must be numbers.
    name : str, default="the table"
        What an error calls it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from gramian.sources.streams import open_stream
    >>> open_stream(pa.table({"a": [1, 2, None], "b": [0.5, 1.5, 2.5]})).values
    array([[1. , 0.5],
           [2. , 1.5],
           [nan, 2.5]])
    """
    batches = _batches(data)
    schema = next(batches)
    columns = list(schema.names)
    other = [
        f"{c} ({WORDS[k]})" for c, t in zip(columns, schema.types, strict=True) if (k := arrow_kind(t)) != "number"
    ]
    if other:
        raise SourceError(f"columns without numbers in {name}: {', '.join(other)}. Select columns of numbers.")
    if len(set(columns)) < len(columns) or not columns:
        raise SourceError(f"the columns of {name} are {', '.join(columns) or 'none'}: give each a name of its own.")
    single = all(is_single(kind) for kind in schema.types)
    dtype = np.dtype(np.float32 if single else np.float64)

    def arrays() -> Iterator[npt.NDArray[Any]]:
        rows = 0
        for batch in batches:
            values = np.empty((batch.num_rows, len(columns)), dtype)
            for j, column in enumerate(columns):
                values[:, j] = arrow_numbers(batch.column(j), column, rows)
            rows += len(values)
            yield values

    kept: list[npt.NDArray[Any]] = [np.empty((0, len(columns)), dtype)]
    kept_bytes, stream = 0, arrays()
    for values in stream:
        kept.append(values)
        kept_bytes += values.nbytes
        if kept_bytes > memory_budget():
            return _spool(chain(kept, stream), columns)
    return DenseSource(np.concatenate(kept), columns)


def _spool(arrays: Iterable[npt.NDArray[Any]], columns: list[str]) -> Source:
    """Write rows to a temporary file, which is removed with the source that reads it."""
    folder, rows, dtype = tempfile.mkdtemp(prefix="gramian-"), 0, np.dtype(np.float64)
    path = Path(folder, "rows.npy")
    try:
        with path.open("wb") as file:
            file.write(b" " * HEADER_BYTES)
            for values in arrays:
                free = shutil.disk_usage(folder).free
                if values.nbytes > free:
                    raise SourceError(
                        f"the rows go to a temporary file in {folder}, whose disk has {free / 1e9:.1f} GB left. Set "
                        "TMPDIR to a folder with more room."
                    )
                file.write(values.data)
                rows, dtype = rows + len(values), values.dtype
            file.seek(0)
            file.write(_npy_header(dtype, rows, len(columns)))
        source = NpySource(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    source.feature_names = columns
    weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    return source


def _batches(data: Any) -> Iterator[Any]:
    """Yield the schema, then the record batches."""
    pa = load_pyarrow()
    if type(data).__module__.startswith("polars"):
        schema = data.collect_schema().to_frame().to_arrow().schema
        yield schema
        for frame in data.collect_batches(maintain_order=True):
            yield from frame.to_arrow().cast(schema).to_batches()
        return
    if isinstance(data, ArrowStream):
        try:
            reader = pa.RecordBatchReader.from_stream(data)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SourceError(f"{type(data).__name__} hands over no table with columns: {error}") from error
    else:
        reader = data.to_reader() if isinstance(data, pa.dataset.Scanner) else data.scanner().to_reader()
    with reader:
        yield from decode_numerics(reader)


def _npy_header(dtype: np.dtype[Any], rows: int, columns: int) -> bytes:
    """Return the header of a ``.npy`` file, of a length that does not depend on the number of rows."""
    text = f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    padded = text.ljust(HEADER_BYTES - 11).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded
