"""Tables written as Parquet, by pyarrow."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from gramian.sources._extras import load_pyarrow

__all__ = ["write_parquet"]


def write_parquet(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """Write columns of one length as a Parquet file, compressed by zstd.

    Parameters
    ----------
    path : path-like
        Where; what is there is replaced.
    columns : mapping of str to array-like
        Names and values.

    Examples
    --------
    >>> import tempfile, gramian
    >>> from gramian.sources.writing import write_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(f"{folder}/x.parquet", {"a": [1.0, 2.0], "b": [3, 4]})
    ...     gramian.open(f"{folder}/x.parquet").values
    array([[1., 3.],
           [2., 4.]])
    """
    pa = load_pyarrow()
    pa.parquet.write_table(pa.table(dict(columns)), os.fspath(path), compression="zstd")
