"""Where numbers live: arrays, frames, files; each hands out blocks of rows."""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian.sources.arrays import DenseSource, SparseSource, TensorSource, map_source
    from gramian.sources.base import Block, MappedSource, Source, memory_budget
    from gramian.sources.errors import Argument, SourceError
    from gramian.sources.files import write_parquet
    from gramian.sources.npy import MemmapSource, NpySource
    from gramian.sources.opening import open_source, open_sparse_parquet
    from gramian.sources.plink import Genotypes
    from gramian.sources.tables import Table, read_table
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Argument",
    "Block",
    "DenseSource",
    "Genotypes",
    "MappedSource",
    "MemmapSource",
    "NpySource",
    "Source",
    "SourceError",
    "SparseSource",
    "Table",
    "TensorSource",
    "map_source",
    "memory_budget",
    "open_source",
    "open_sparse_parquet",
    "read_table",
    "write_parquet",
]
