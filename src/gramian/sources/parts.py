"""One table in several files: a folder, or a pattern such as ``logs/*.parquet``, as one source."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.sources.addresses import as_address, list_addresses
from gramian.sources.base import Block, Source, memory_budget, rows_at_a_time
from gramian.sources.errors import SourceError

DIGITS = re.compile(r"(\d+)")


def is_pattern(name: str) -> bool:
    """Whether a name has the marks ``*``, ``?`` or ``[…]`` of a pattern, and is no file itself.

    Examples
    --------
    >>> is_pattern("parts/*.npy"), is_pattern("parts/1.npy")
    (True, False)
    """
    return glob.has_magic(name) and not Path(name).exists()


def list_parts(name: Path, suffixes: tuple[str, ...], is_part: Callable[[Path], bool]) -> list[Path]:
    """Return the files that a pattern or a folder stands for, in natural order: ``part-2`` is before ``part-10``.

    Parameters
    ----------
    name : Path or Address
        A pattern, in which ``**`` stands for any folders, or a folder, of which every readable file is a part.
    suffixes : tuple of str
        Of files that can be read; in a folder the others are passed over, and so are hidden files.
    is_part : callable
        Whether a folder is a part by itself, as a Zarr store is.
    """
    magic = glob.has_magic(os.fspath(name))
    found: Iterable[Path]
    if (address := as_address(name)) is not None:
        found = list_addresses(address)
    else:
        found = [Path(path) for path in glob.glob(str(name), recursive=True)] if magic else name.iterdir()
    shown = [path for path in found if not path.name.startswith((".", "_"))]
    parts = [p for p in shown if is_part(p) or (not p.is_dir() and (magic or p.name.endswith(suffixes)))]
    if not parts:
        what = "the pattern matches no file" if magic else "the folder holds no table that is read"
        raise SourceError(f"{what}. Files that end in {', '.join(suffixes)} are read.", path=name)
    kinds = sorted({path.suffix.lower() for path in parts})
    if len(kinds) > 1:
        text = f"files of several kinds ({', '.join(kinds)}). Name those of one, by a pattern that ends in {kinds[0]}."
        raise SourceError(text, path=name)

    def natural(path: Path) -> list[tuple[bool, int | str]]:
        return [
            (text.isdigit(), int(text) if text.isdigit() else text) for text in DIGITS.split(os.fspath(path)) if text
        ]

    return sorted(parts, key=natural)


class PartsSource(Source):
    """The rows of several files under one another, with the same columns in each.

    Blocks have the sizes they would have in one file, so that the answer has the same bits. Files that were read whole
    are kept while all of them fit the memory budget, else they are opened again in every pass.

    Parameters
    ----------
    paths : sequence of Path
        The files, in order.
    open_part : callable
        Opens one of them as a Source.

    Examples
    --------
    >>> import numpy as np, tempfile, gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i in range(3):
    ...         np.save(f"{folder}/part-{i}.npy", np.full((2, 4), float(i)))
    ...     source = gramian.open(f"{folder}/*.npy")
    ...     source, source.to_array()[:, 0].tolist()
    (PartsSource(6 x 4, float64), [0.0, 0.0, 1.0, 1.0, 2.0, 2.0])
    """

    resident = False

    def __init__(self, paths: Sequence[Path], open_part: Callable[[Path], Source]) -> None:
        self.paths, self.open_part = list(paths), open_part
        self._kept: dict[int, Source] = {}
        self.starts = [0]
        kept_bytes, first = 0, open_part(self.paths[0])
        self.feature_names, self.sparse = first.feature_names, first.sparse
        dtypes = set()
        for i, path in enumerate(self.paths):
            part = first if i == 0 else open_part(path)
            self._check_part(part, first, path)
            self.starts.append(self.starts[-1] + part.shape[0])
            dtypes.add(np.dtype(part.dtype))
            kept_bytes += part.shape[0] * part.shape[1] * np.dtype(part.dtype).itemsize if part.resident else 0
            if not part.resident or kept_bytes <= memory_budget():
                self._kept[i] = part
        if kept_bytes > memory_budget():
            self._kept = {i: part for i, part in self._kept.items() if not part.resident}
        self.dtype = np.result_type(*dtypes)
        self.shape = (self.starts[-1], first.shape[1])

    @property
    def kept(self) -> list[Source]:
        """The files that need not be opened again."""
        return list(self._kept.values())

    def _check_part(self, part: Source, first: Source, path: Path) -> None:
        where = self.paths[0]
        if part.shape[1] != first.shape[1]:
            raise SourceError(f"{part.shape[1]} columns, where {where} has {first.shape[1]}.", path=path)
        names, known = part.feature_names or [], first.feature_names or []
        for j, (name, expected) in enumerate(zip(names, known, strict=False)):
            if name != expected:
                raise SourceError(f"column {j + 1} is {name!r}, where {where} has {expected!r}.", path=path)
        if len(names) != len(known):
            raise SourceError(f"of this file and {where} only one names its columns.", path=path)
        if part.sparse != first.sparse:
            raise SourceError(f"of this file and {where} only one is sparse.", path=path)

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of blocks."""
        return list(self.ranges(rows or rows_at_a_time(self.shape[1] * self.dtype.itemsize), 1))

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks of rows, across the borders of files."""
        last = self.shape[0] if self.last is None else self.last
        rows = min(rows or rows_at_a_time(self.shape[1] * self.dtype.itemsize), max(1, last - self.first))
        buffer = None if self.sparse else np.empty((rows, self.shape[1]), self.dtype)
        pieces: list[Any] = []
        start, filled = self.first, 0
        for i, path in enumerate(self.paths):
            begin, end = self.starts[i], self.starts[i + 1]
            if end <= self.first or begin >= last:
                continue
            part = self._kept.get(i) or self.open_part(path)
            if part.shape[0] != end - begin:
                raise SourceError("the number of rows changed while it was read.", path=path)
            if begin < self.first or end > last:
                part = part.between(max(0, self.first - begin), min(end, last) - begin)
            for block in part.blocks(rows):
                taken = 0
                while taken < block.stop - block.start:
                    piece = block.values[taken : taken + rows - filled]
                    if buffer is None:
                        pieces.append(piece)
                    else:
                        buffer[filled : filled + piece.shape[0]] = piece
                    taken, filled = taken + piece.shape[0], filled + piece.shape[0]
                    if filled == rows or start + filled == last:
                        values = sp.csr_array(sp.vstack(pieces, format="csr")) if buffer is None else buffer[:filled]
                        yield Block(start, start + filled, values)
                        start, filled, pieces = start + filled, 0, []

    def __getstate__(self) -> dict[str, Any]:
        """Leave what was read to be read again where this is sent."""
        kept = {i: part for i, part in self._kept.items() if not part.resident}
        return {**vars(self), "_kept": kept}
