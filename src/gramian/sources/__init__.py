"""Where numbers live: arrays, frames, files; each hands out blocks of rows."""

from gramian.sources.arrays import DenseSource, SparseSource, TensorSource
from gramian.sources.base import Block, Source, memory_budget
from gramian.sources.files import MemmapSource, NpySource
from gramian.sources.mapped import MappedSource, mapped
from gramian.sources.opening import open_source

__all__ = [
    "Block",
    "DenseSource",
    "MappedSource",
    "MemmapSource",
    "NpySource",
    "Source",
    "SparseSource",
    "TensorSource",
    "mapped",
    "memory_budget",
    "open_source",
]
