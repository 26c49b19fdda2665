"""Tables with columns of several kinds: text files, Parquet, Feather; one way to ask all of them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.base import reading
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import ARROW, TEXT, load_pyarrow
from gramian.sources.text import TextColumns, line_of_row, read_columns, read_verbatim, sniff

TOLD = 5  # columns whose new names are told
INDEX = re.compile(r"__index_level_\d+__")  # where pandas keeps row names


class Records(ABC):
    """A table whose columns are known by number, from 0.

    Attributes
    ----------
    names : list of str
        Of the columns, all different.
    named : bool
        Whether the file brings the names.
    row_names : int or None
        The column that names the rows, where the file has one.
    notes : list of str
        What was found out and changed.
    """

    names: list[str]
    named: bool = True
    row_names: int | None = None
    notes: list[str]
    decimal: str = "."
    doubtful: bool = False

    @abstractmethod
    def prepare(self, columns: list[int], target: int | None = None) -> None:
        """Read what must be read before anything can be asked."""

    @abstractmethod
    def type(self, j: int) -> Any:
        """Return the pyarrow type of a column."""

    def array(self, columns: list[int]) -> npt.NDArray[np.float64] | None:
        """Return these columns where they are one array of numbers already."""
        return None

    @abstractmethod
    def column(self, j: int) -> Any:
        """Return a column as a pyarrow chunked array."""

    def release(self, j: int) -> Any:
        """Return a column that will not be asked for again."""
        return self.column(j)

    def texts(self, j: int) -> npt.NDArray[np.str_]:
        """Return a column as text; an absent value is empty."""
        pa = load_pyarrow()
        values = self.column(j)
        try:
            texts = as_strings(values).to_pylist()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SourceError(
                f"column {self.names[j]!r} holds {values.type}: no text, so it can be neither label nor id."
            ) from error
        return np.array([t or "" for t in texts], dtype=np.str_)

    def where(self, row: int) -> str:
        """Say where a row is, in words of the user's."""
        return f"row {row}, counted from 0"


def as_strings(values: Any) -> Any:
    """A pyarrow column as text; categories as the values they stand for."""
    pa = load_pyarrow()
    plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    return plain.cast(pa.string())


class TextRecords(Records):
    """A text table."""

    def __init__(self, path: Path, *, delimiter: str | None, decimal: str | None, header: bool | None) -> None:
        if delimiter is None and path.name.lower().removesuffix(".gz").endswith(".tsv"):
            delimiter = "\t"
        self.path, self.dialect = path, sniff(path, delimiter=delimiter, decimal=decimal, header=header)
        self.decimal, self.doubtful = self.dialect.decimal, self.dialect.doubtful
        self.names, renamed = distinct(list(self.dialect.names))
        self.named = self.dialect.header
        self.row_names = 0 if self.dialect.row_names else None
        self.notes = [self.dialect.describe(), *renamed]

    def prepare(self, columns: list[int], target: int | None = None) -> None:
        """Read columns; the target apart from them, so that they are one array."""
        wanted = columns if target is None or target in columns else [*columns, target]
        self._read: TextColumns = read_columns(self.path, self.dialect, wanted)

    def type(self, j: int) -> Any:
        """Return double for all that is numbers."""
        return self._read.others[j][0].type if j in self._read.others else load_pyarrow().float64()

    def array(self, columns: list[int]) -> npt.NDArray[np.float64] | None:
        """Return the numbers where they were read in this order; the target, read last, is left where it is."""
        values = self._read.values[: self._read.rows]
        return values[:, : len(columns)] if columns == self._read.numeric[: len(columns)] else None

    def column(self, j: int) -> Any:
        """Return a column that was read."""
        pa = load_pyarrow()
        if j in self._read.others:
            return pa.chunked_array(self._read.others[j])
        return pa.chunked_array([pa.array(self._read.values[: self._read.rows, self._read.numeric.index(j)])])

    def texts(self, j: int) -> npt.NDArray[np.str_]:
        """Return a column as it is written, 'NA' and leading zeros included."""
        return np.array(read_verbatim(self.path, self.dialect, j), dtype=np.str_)

    def where(self, row: int) -> str:
        """Say in which line a row begins."""
        return f"line {line_of_row(self.path, self.dialect, row)}"


class ArrowRecords(Records):
    """A table in Feather (Arrow IPC) or a Parquet file, loaded as far as it is needed."""

    def __init__(self, schema: Any) -> None:
        self.schema, self.names, self.notes = schema, list(schema.names), []
        twice = [repr(name) for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise SourceError(f"more than one column is called {', '.join(twice)}. Rename them.")
        self.row_names = next((j for j, name in enumerate(self.names) if INDEX.fullmatch(name)), None)
        self._columns: dict[int, Any] = {}

    def type(self, j: int) -> Any:
        """Return what the file says."""
        return self.schema.field(j).type

    @abstractmethod
    def table(self, names: list[str]) -> Any:
        """Read columns by name."""

    def prepare(self, columns: list[int], target: int | None = None) -> None:
        """Read nothing yet: the file says itself what its columns are, and may be larger than memory."""

    def load(self, columns: list[int]) -> None:
        """Read columns together."""
        table = self.table([self.names[j] for j in columns])
        self._columns |= {j: table.column(self.names[j]) for j in columns}

    def column(self, j: int) -> Any:
        """Return a column, loaded before or read now."""
        return self._columns[j] if j in self._columns else self.table([self.names[j]]).column(0)

    def release(self, j: int) -> Any:
        """Return a column and forget it."""
        return self._columns.pop(j) if j in self._columns else self.column(j)


class FeatherRecords(ArrowRecords):
    """An Arrow IPC file (Feather version 2) or stream."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "a readable Arrow (Feather) file"), self._reader() as reader:
            super().__init__(reader.schema)

    def _reader(self, columns: list[int] | None = None) -> Any:
        pa = load_pyarrow()
        options = pa.ipc.IpcReadOptions(included_fields=columns)
        with self.path.open("rb") as file:
            is_file = file.read(6) == b"ARROW1"
        read = pa.ipc.open_file if is_file else pa.ipc.open_stream
        return read(pa.OSFile(str(self.path)), options=options)

    def table(self, names: list[str]) -> Any:
        """Read columns by name."""
        columns = [self.names.index(name) for name in names]
        with reading(self.path, "a readable Arrow (Feather) file"), self._reader(columns) as reader:
            table = reader.read_all()
            table.validate(full=True)
            return table


class ParquetRecords(ArrowRecords):
    """A Parquet file: its columns can be read apart, and its rows in batches."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._file() as file:
            self.rows = int(file.metadata.num_rows)
            super().__init__(file.schema_arrow)

    @contextmanager
    def _file(self) -> Iterator[Any]:
        pa = load_pyarrow()
        with (
            reading(self.path, "a readable Parquet file"),
            pa.parquet.ParquetFile(str(self.path), memory_map=False, pre_buffer=False) as file,
        ):
            yield file

    def table(self, names: list[str]) -> Any:
        """Read columns by name."""
        with self._file() as file:
            return file.read(columns=names)

    def batches(self, columns: list[int], rows: int) -> Iterator[Any]:
        """Yield record batches of at most ``rows`` rows, one row group after another."""
        with self._file() as file:
            for group in range(file.num_row_groups):
                yield from file.iter_batches(rows, row_groups=[group], columns=[self.names[j] for j in columns])


def distinct(names: list[str]) -> tuple[list[str], list[str]]:
    """Rename columns that share a name (a, a becomes a, a.2), and say so.

    Examples
    --------
    >>> distinct(["a", "b", "a"])
    (['a', 'b', 'a.2'], ["column 3 is called 'a.2': there is an 'a' already"])
    """
    out: list[str] = []
    notes = []
    given, seen = set(names), Counter[str]()
    for j, name in enumerate(names):
        new = name
        seen[name] += 1
        if seen[name] > 1:
            while (new := f"{name}.{seen[name]}") in given:
                seen[name] += 1
            given.add(new)
            notes.append(f"column {j + 1} is called {new!r}: there is an {name!r} already")
        out.append(new)
    more = len(notes) - TOLD
    return out, notes if more <= 0 else [*notes[:TOLD], f"{more} more columns with double names are renamed so"]


def refuse_text_options(suffix: str, options: dict[str, Any]) -> None:
    """Refuse what says how a text is written, for a file that is none."""
    for name, value in options.items():
        if value is not None:
            given = Argument(name, value)
            raise SourceError(given, f" is for text files; a {suffix} file says such things itself.")


def open_records(path: Path, suffix: str, **options: Any) -> Records:
    """Open a table by how its name ends; ``options`` say how a text is written and are for text alone."""
    if suffix in TEXT:
        return TextRecords(path, **options)
    refuse_text_options(suffix, options)
    return FeatherRecords(path) if suffix in ARROW else ParquetRecords(path)
