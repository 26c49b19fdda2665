"""Tables in files: the numbers to fit, and beside them a target, labels and names of the rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.sources.addresses import as_path, must_fetch, spool_file
from gramian.sources.anndata import is_annotated, read_h5ad
from gramian.sources.arrays import DenseSource, SparseSource, column_values, map_source, select
from gramian.sources.base import Block, Source, naming
from gramian.sources.columns import (
    WORDS,
    ChosenColumns,
    ColumnChoice,
    Name,
    as_source,
    check_features,
    choose_features,
    columns_like,
    find_column,
    open_records,
    refuse_text_options,
)
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import (
    TABULAR,
    checksum,
    checksum_of_files,
    find_address,
    hide_password,
    split_dataset,
    spool_query,
    spool_standard_input,
)
from gramian.sources.marks import MissingMarks, find_suspects
from gramian.sources.opening import check_file, is_several, list_files, open_file
from gramian.sources.parts import PartsSource
from gramian.sources.plink import Genotypes

Texts = npt.NDArray[np.str_]
Mask = npt.NDArray[np.bool_]

MISSING_RULES = ("keep", "refuse", "drop", "mean")
MOST_SUMMED = 100_000  # rows whose sums are compared with the last one
SUMMED = {"sums": 1e-4, "means": 1e-6}  # of the sum, or mean, of absolute values: cells are shown rounded
ANNOTATED = (".h5ad", ".zarr", ".zip")  # names of what may hold AnnData
BLOCKWISE = "read in blocks: missing cells are not counted beforehand"


@dataclass(frozen=True, eq=False)
class Table:
    """What was read from a file.

    Attributes
    ----------
    source : Source
        The columns of numbers, with their names.
    target : ndarray of shape (n,) or None
        The target: numbers, or text.
    label, ids : ndarray of str of shape (n,) or None
        What classes the rows are of, and what they are called.
    names : list of str
        Of the columns of numbers; ``sex=female`` for a level of a text column.
    path : Path
        The file; ``-`` for standard input.
    notes : tuple of str
        What was detected and done.
    missing : dict of str to int
        How many cells were missing, for the columns that have any; empty where nobody looked (a file that is read in
        blocks, with ``missing="keep"``).
    rows : ndarray of shape (n,) or None
        The numbers in the file, from 0, of the rows that are left where some were left out; None where all are there.
    keys : dict of str to ndarray
        What tells the rows of the file apart, those that were left out included: ``row``, their numbers from 1, and
        ``id`` and ``label`` where they have them.
    label_name : str or None
        The column that labels the rows.
    warnings : tuple of str
        Those of the notes that say which rows get no answer, or an answer with less than they say.
    """

    source: Source
    target: npt.NDArray[Any] | None
    label: npt.NDArray[np.str_] | None
    ids: npt.NDArray[np.str_] | None
    names: list[str]
    path: Path
    notes: tuple[str, ...]
    missing: dict[str, int] = field(default_factory=dict)
    rows: npt.NDArray[np.intp] | None = None
    keys: dict[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)
    label_name: str | None = None
    warnings: tuple[str, ...] = ()
    sha256: str | None = field(default=None, repr=False)
    files: tuple[Path, ...] = field(default=(), repr=False)

    def by_row(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return results by row as columns with one row for each of the file, in its order.

        Parameters
        ----------
        columns : mapping of str to array-like of length n
            A value for each row of the source.

        Returns
        -------
        dict of str to ndarray
            The :attr:`keys`, then the columns; for rows that were left out, NaN, or None where they hold no floats.
        """
        found = dict(self.keys)
        for name, column in columns.items():
            values = np.asarray(column)
            if self.rows is not None:
                floats = values.dtype.kind == "f"
                whole = np.full(len(self.keys["row"]), np.nan if floats else None, values.dtype if floats else object)
                whole[self.rows] = values
                values = whole
            found[name] = values
        return found

    def checksum(self) -> str:
        """Return the SHA-256 of the file in hexadecimal digits; of a folder, that of its files' names and bytes."""
        return self.sha256 or (checksum_of_files(self.files) if self.files else checksum(self.path))

    def __repr__(self) -> str:
        n, p = self.source.shape
        extra = [role for role in ("target", "label", "ids") if getattr(self, role) is not None]
        size = f"{n} {'row' if n == 1 else 'rows'}, {p} {'column' if p == 1 else 'columns'}"
        lines = [f"{self.path.name}: {size}{''.join(f', {role}' for role in extra)}"]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def read_table(
    path: str | os.PathLike[str],
    *,
    columns: Name | Sequence[Name] | None = None,
    drop: Name | Sequence[Name] = (),
    target: Name | None = None,
    label: Name | None = None,
    id: Name | None = None,
    categorical: str = "refuse",
    dates: str = "text",
    missing: str = "keep",
    na_values: Any = None,
    keep_empty: bool = True,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    dataset: str | None = None,
    sql: str | None = None,
    like: Sequence[str] | None = None,
) -> Table:
    r"""Read the numbers of a file, and the columns that are not fitted apart from them.

    Parameters
    ----------
    path : path-like
        A file that :func:`gramian.open` reads, or ``"-"`` for standard input.
    columns, drop : name, or list of names
        The columns to fit, in this order (all where not given), and columns to leave out. A column is given by its
        name, or by its number counted from 1.
    target, label, id : name, optional
        Columns that are not fitted: what to predict, the class of each row, the name of each row. A first column
        without a name in the header is the id unless another is given. In an AnnData file they are columns of ``obs``.
    categorical : {"refuse", "onehot", "drop", "label"}, default="refuse"
        What becomes of columns of text: refused with a list; a column of zeros and ones for each of their values; left
        out; left out, but the first one of few values is the label, and the first whose values nearly all differ the
        id, where none are given. Truth values are the numbers 0 and 1. Numbers with thousands separators, currency or
        per cent signs are numbers.
    dates : {"text", "days"}, default="text"
        What becomes of dates and times: what becomes of text, but they are never encoded; or days since 1970-01-01.
    missing : {"keep", "refuse", "drop", "mean"}, default="keep"
        What becomes of missing cells: NaN; refused with counts; their rows left out; the column's mean. A row whose
        target is missing is left out with "drop", else refused.
    na_values : number, text, list or dict of these, optional
        What else marks a missing cell, such as -999 or "unknown"; by column where it is a dict. A note points out
        numbers that look like it.
    keep_empty : bool, default=True
        Whether rows and columns that hold no number at all stay, as NaN; else they are left out and told of, which
        models need that take NaN. A file that is read in blocks is not looked through for them.
    delimiter, decimal : str, optional
        What separates the cells of a text and marks decimals; found out where not given.
    header : bool, optional
        Whether the first row of a text holds names; found out where not given.
    encoding : str, optional
        Of a text: UTF-8, UTF-16 and cp1252 are found out where not given.
    dataset : str, optional
        Which array of a file that holds several, or which sheet of a workbook; the first that is not empty of these.
    sql : str, optional
        The query that gives the table, where the file is a DuckDB database (``":memory:"`` for none: queries may name
        files, ``"select * from 'logs/*.parquet'"``), or the address of a PostgreSQL server. It is run once.
    like : sequence of str, optional
        The columns of numbers of an earlier table (its ``names``), to be read from this file in that order, with the
        same levels of text columns. What is not there is refused by name; a level that was not there is a missing cell.

    Returns
    -------
    Table
        The source, what is beside it, and notes on what was detected and done.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from gramian.sources.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("name;height;sex\nAnn;1,60;f\nBo;NA;m\nCy;1,81;m\n")
    ...     table = read_table(path, id="name", categorical="onehot", missing="mean")
    >>> table
    people.csv: 3 rows, 3 columns, ids
      delimiter ';', decimal comma, header row
      column sex: one-hot of 2
      1 cell missing in 1 column (height 1), filled in by column means
    >>> table.names, table.ids.tolist()
    (['height', 'sex=f', 'sex=m'], ['Ann', 'Bo', 'Cy'])
    >>> table.source.values
    array([[1.6  , 1.   , 0.   ],
           [1.705, 0.   , 1.   ],
           [1.81 , 0.   , 1.   ]])
    """
    if missing not in MISSING_RULES:
        raise SourceError(Argument("missing", missing), f": give one of {', '.join(MISSING_RULES)}.")
    choice = ColumnChoice(columns, drop, target, label, id, categorical, dates, like, MissingMarks.of(na_values))
    text = {"delimiter": delimiter, "decimal": decimal, "header": header, "encoding": encoding}
    if os.fspath(path) == "-":
        with spool_standard_input() as spool:
            table = _read(spool.path, choice, text, dataset, missing, keep_empty)
            spool.keep_for(table.source)
            return replace(table, path=Path("-"), sha256=spool.sha256)
    if sql is not None:
        with spool_query(Path(path), sql) as query:
            table = _read(query.path, choice, text, dataset, missing, keep_empty)
            query.keep_for(table.source)
            return replace(table, path=Path(hide_password(find_address(path)) or path), sha256=query.sha256)
    name, dataset = split_dataset(os.fspath(path), dataset)
    place = as_path(name)
    if must_fetch(place):
        with spool_file(place) as copy:
            table = _read(copy.path, choice, text, dataset, missing, keep_empty)
            copy.keep_for(table.source)
            return replace(table, path=Path(str(place)), sha256=copy.sha256)
    return _read(place, choice, text, dataset, missing, keep_empty)


def _read(
    path: Path, choice: ColumnChoice, text: dict[str, Any], dataset: str | None, missing: str, keep_empty: bool
) -> Table:
    """Take the file apart, leave out or refuse rows without a target, and do with missing cells what is asked."""
    several = is_several(path)
    files = list_files(path) if several else [path]
    with naming(path):
        parts = _several_parts(files, choice, text, dataset) if several else _file_parts(path, choice, text, dataset)
        keys: dict[str, npt.NDArray[Any]] = {"row": np.arange(1, parts.source.shape[0] + 1)}
        keys |= {name: v for name, v in (("id", parts.ids), ("label", parts.label)) if v is not None}
        parts = _without_missing_targets(parts, missing)
        if 0 in parts.source.shape:
            raise SourceError(f"{parts.source.shape[0]} rows and {parts.source.shape[1]} columns: nothing to fit.")
        counts: dict[str, int] = {}
        done: list[str] = []
        if missing == "keep" and not parts.source.resident:
            source, names, notes = parts.source, parts.names, [*parts.notes, BLOCKWISE]
        else:
            gaps = _find_gaps(parts.source, parts.names, parts.where)
            if not keep_empty and (gaps.empty.any() or np.any(gaps.counts == parts.source.shape[0])):
                parts = _without_empty(parts, gaps, columns_stay=choice.like is not None)
                gaps = _find_gaps(parts.source, parts.names, parts.where)
            names = parts.names
            counts = {names[j]: int(gaps.counts[j]) for j in np.flatnonzero(gaps.counts)}
            source, done = _treat_gaps(parts.source, gaps, missing, names)
            parts = parts.keep_rows(gaps.complete, source) if missing == "drop" else replace(parts, source=source)
            odd = [*find_suspects(source, names), *_find_odd_columns(source, names)] if choice.like is None else []
            notes = [*parts.notes, *done, *odd]
    if source.feature_names is None:
        source.feature_names = names
    found = (parts.target, parts.label, parts.ids, names, path, tuple(notes), counts, parts.rows, keys)
    told = (*parts.warnings, *(done if missing == "drop" else ()))
    return Table(source, *found, parts.label_name, told, files=tuple(files) if several else ())


@dataclass(frozen=True, eq=False)
class TableParts:
    """The numbers, and what is beside them; ``where`` says where a row is in the file."""

    source: Source
    names: list[str]
    where: Callable[[int], str]
    target: npt.NDArray[Any] | None = None
    target_missing: Mask | None = None
    label: Texts | None = None
    ids: Texts | None = None
    notes: tuple[str, ...] = ()
    rows: npt.NDArray[np.intp] | None = None
    label_name: str | None = None
    warnings: tuple[str, ...] = ()
    id_name: str | None = None
    target_name: str | None = None
    named: bool = True

    def keep_rows(self, kept: Mask, source: Source) -> TableParts:
        """Keep some rows; ``source`` has them already."""
        at = np.flatnonzero(kept)
        return replace(
            self,
            source=source,
            where=lambda row: self.where(int(at[row])),
            target=None if self.target is None else self.target[kept],
            target_missing=None,
            label=None if self.label is None else self.label[kept],
            ids=None if self.ids is None else self.ids[kept],
            rows=at if self.rows is None else self.rows[kept],
        )


def _file_parts(path: Path, choice: ColumnChoice, text: dict[str, Any], dataset: str | None) -> TableParts:
    """Take a file apart, by what kind of file it is."""
    suffix = check_file(path)
    with naming(path):
        if suffix in TABULAR:
            parts = _tabular_parts(path, suffix, choice, text, dataset)
        else:
            refuse_text_options(suffix, text)
            parts = (_h5ad_parts if suffix in ANNOTATED and is_annotated(path) else _array_parts)(path, choice, dataset)
        return _without_marks(parts, choice.marks) if choice.marks else parts


def _without_marks(parts: TableParts, marks: MissingMarks) -> TableParts:
    """Take numbers that mark missing cells for missing, in the columns that are fitted and in the target."""
    if isinstance(parts.source, Genotypes):
        raise SourceError(Argument("na_values"), " is for tables; genotypes have a mark of their own.")
    target, absent = parts.target, parts.target_missing
    if target is not None and target.dtype.kind == "f":
        gone = np.isin(target, marks.numbers(parts.target_name or ""))
        target = np.where(gone, np.nan, target)
        absent = gone if absent is None else absent | gone
    source = marks.blank_numbers(parts.source, parts.names)
    source.feature_names = parts.source.feature_names
    return replace(parts, source=source, target=target, target_missing=absent)


def _several_parts(files: list[Path], choice: ColumnChoice, text: dict[str, Any], dataset: str | None) -> TableParts:
    """Take several files of the same columns apart: their rows under one another, in memory where they fit."""
    first = _file_parts(files[0], choice, text, dataset)
    label, id = choice.label or first.label_name, choice.id or first.id_name
    other = choice
    if first.named and choice.like is None:
        names = first.names
        if any("=" in name for name in names):  # levels of text columns: those of all files
            for file in files[1:]:
                names = [*names, *(n for n in _file_parts(file, choice, text, dataset).names if n not in names)]
            columns = list(dict.fromkeys(name.partition("=")[0] for name in names))
            names = sorted(names, key=lambda name: columns.index(name.partition("=")[0]))
        other = replace(choice, columns=None, drop=(), label=label, id=id, like=names)
        if names != first.names:
            first = replace(_file_parts(files[0], other, text, dataset), notes=first.notes)
    found = [first]

    def open_and_keep(path: Path) -> Source:
        parts = first if path == files[0] else _file_parts(path, other, text, dataset)
        if path != files[0]:
            found.append(replace(parts, source=first.source))  # what is beside the numbers
        parts.source.feature_names = parts.names
        return parts.source

    source = PartsSource(files, open_and_keep)
    source.open_part = partial(_open_numbers, other, text, dataset)
    starts = source.starts

    def where(row: int) -> str:
        i = int(np.searchsorted(starts, row, side="right")) - 1
        return f"{files[i]}, {found[i].where(row - starts[i])}"

    def stack(name: str) -> Any:
        values = [getattr(part, name) for part in found]
        absent = [file for file, value in zip(files, values, strict=True) if value is None]
        if absent and len(absent) < len(values):
            raise SourceError(f"has no {name}, which other files have.", path=absent[0])
        return None if absent else np.concatenate(values)

    whole: Source = source
    if all(part.resident for part in source.kept) and len(source.kept) == len(files):
        values = source.to_array()
        whole = (SparseSource if source.sparse else DenseSource)(values, source.feature_names)
    return replace(
        first,
        source=whole,
        where=where,
        target=stack("target"),
        target_missing=stack("target_missing"),
        label=stack("label"),
        ids=stack("ids"),
        notes=(f"{len(files)} files, the first {files[0].name}", *first.notes),
    )


def _open_numbers(choice: ColumnChoice, text: dict[str, Any], dataset: str | None, path: Path) -> Source:
    parts = _file_parts(path, choice, text, dataset)
    parts.source.feature_names = parts.names
    return parts.source


def _tabular_parts(
    path: Path, suffix: str, choice: ColumnChoice, text: dict[str, Any], dataset: str | None
) -> TableParts:
    """Take a text, Excel, Parquet or Feather table apart."""
    records = open_records(path, suffix, dataset, **text)
    roles = choice.roles(records.names, named=records.named, row_names=records.row_names)
    like = None if choice.like is None else columns_like(records.names, choice.like)
    columns = roles.features if like is None else list(dict.fromkeys(f.column for f in like))
    choice.marks.check_columns(records.names)
    records.marks = choice.marks
    records.prepare(columns, roles.target)
    if like is None:
        chosen = choose_features(records, columns, replace(choice, id=choice.id if roles.id is None else roles.id + 1))
    else:
        chosen = ChosenColumns(like, check_features(records, like))
    features, notes = chosen.features, chosen.notes
    if not features:
        raise SourceError("no column of numbers is left to fit.")
    target: npt.NDArray[Any] | None = None
    absent: Mask | None = None
    if roles.target is not None:
        name, kind = records.names[roles.target], records.kind(roles.target)
        if kind == "number":
            target = records.numbers(roles.target).astype(np.float64)
            absent = np.isnan(target)
        elif kind == "text":
            cells = records.cells(roles.target)
            target = np.array([cell or "" for cell in cells], dtype=np.str_)
            absent = np.array([cell is None for cell in cells])
        else:
            raise SourceError(f"the target {name!r} holds {WORDS[kind]}: give numbers or classes.")
    label_column = roles.label if roles.label is not None else chosen.label
    id_column = roles.id if roles.id is not None else chosen.id
    label = None if label_column is None else records.texts(label_column)
    ids = None if id_column is None else records.texts(id_column)
    if ids is not None and id_column is not None:
        if id_column == records.row_names:
            notes = [*notes, f"column {records.names[id_column]!r} names the rows"]
        again = len(ids) - len(np.unique(ids))
        if again:
            notes = [*notes, f"{again} ids occur before: they do not tell all rows apart"]
    source = as_source(records, features)
    return TableParts(
        source,
        source.feature_names or [],
        records.where,
        target,
        absent,
        label,
        ids,
        (*records.notes, *notes),
        label_name=None if label_column is None else records.names[label_column],
        id_name=None if id_column is None else records.names[id_column],
        target_name=None if roles.target is None else records.names[roles.target],
        named=records.named,
        warnings=() if like is None else tuple(chosen.notes),
    )


def _array_parts(path: Path, choice: ColumnChoice, dataset: str | None) -> TableParts:
    """Take an array apart: its columns are called x1, x2, … where the file has no names for them."""
    source = open_file(str(path), dataset)
    if isinstance(source, Genotypes):
        return _genotype_parts(source, choice)
    names = source.feature_names or [f"x{j + 1}" for j in range(source.shape[1])]
    roles = choice.roles(names, named=source.feature_names is not None)
    target = None if roles.target is None else column_values(source, roles.target).astype(np.float64)
    label = None if roles.label is None else _as_texts(column_values(source, roles.label))
    ids = None if roles.id is None else _as_texts(column_values(source, roles.id))
    picked, kept = _features(source, names, roles.features, choice)
    absent = None if target is None else np.isnan(target)
    choice.marks.check_columns(names)
    named = None if roles.target is None else names[roles.target]
    return TableParts(picked, kept, lambda row: f"row {row + 1}", target, absent, label, ids, target_name=named)


def _genotype_parts(source: Genotypes, choice: ColumnChoice) -> TableParts:
    """Take PLINK's files apart: columns are SNPs; label and id are columns of the ``.fam`` file."""
    if choice.target is not None:
        text = ": genotypes have no target beside them; keep it in a table and give its path."
        raise SourceError(Argument("target", choice.target), text)
    people = {name: getattr(source.samples, name).astype(np.str_) for name in ("fid", "iid", "sex", "phenotype")}

    def column(role: str, name: Name | None) -> Texts | None:
        return None if name is None else people[list(people)[find_column([*people], name, role, of="of the .fam file")]]

    label, ids = column("label", choice.label), column("id", choice.id)
    ids = np.array(source.samples.names, dtype=np.str_) if ids is None else ids
    names = source.feature_names
    roles = replace(choice, label=None, id=None).roles(names)
    picked, kept = _features(source, names, roles.features, choice)
    return TableParts(picked, kept, lambda row: f"sample {str(ids[row])!r}", None, None, label, ids, source.notes)


def _h5ad_parts(path: Path, choice: ColumnChoice, dataset: str | None) -> TableParts:
    """Take an AnnData file apart: columns are of its matrix; target, label and id are of ``obs``."""
    found = read_h5ad(path, dataset)
    names = found.source.feature_names or [f"x{j + 1}" for j in range(found.source.shape[1])]
    roles = replace(choice, target=None, label=None, id=None).roles(names)

    def column(role: str, name: Name) -> Any:
        columns = [str(column) for column in found.rows.columns]
        return found.rows.iloc[:, find_column(columns, name, role, of="of obs")]

    def texts(values: Any) -> Texts:
        return np.array(["" if gone else str(v) for v, gone in zip(values, values.isna(), strict=True)], dtype=np.str_)

    target, absent = None, None
    if choice.target is not None:
        values = column("target", choice.target)
        absent, is_number = values.isna().to_numpy(), values.dtype.kind in "fiub"
        target = values.to_numpy(dtype=np.float64, na_value=np.nan) if is_number else texts(values)
    label = None if choice.label is None else texts(column("label", choice.label))
    ids = found.row_names if choice.id is None else texts(column("id", choice.id))
    source, kept = _features(found.source, names, roles.features, choice)
    return TableParts(
        source, kept, lambda row: f"observation {str(found.row_names[row])!r}", target, absent, label, ids, found.notes
    )


def _features(source: Source, names: list[str], columns: list[int], choice: ColumnChoice) -> tuple[Source, list[str]]:
    if choice.like is not None:
        columns = [feature.column for feature in columns_like(names, choice.like)]
    return select(source, columns), [names[j] for j in columns]


def _as_texts(values: npt.NDArray[Any]) -> Texts:
    """Return numbers as text: the shortest that is the number, 3 for 3.0, and nothing for NaN."""
    numbers = values.astype(np.int8) if values.dtype.kind == "b" else values
    return np.array(["" if v != v else str(v).removesuffix(".0") for v in numbers], dtype=np.str_)


def _without_missing_targets(parts: TableParts, missing: str) -> TableParts:
    """Leave out rows without a target, or refuse them."""
    absent = parts.target_missing
    if parts.target is None or absent is None or not absent.any():
        return parts
    first, count = int(np.argmax(absent)), int(np.count_nonzero(absent))
    if missing != "drop":
        text = f"the target is missing in {count} of {len(absent)} rows (first: {parts.where(first)})."
        raise SourceError(text, " Leave them out with ", Argument("missing", "drop"), ".")
    if count == len(absent):
        raise SourceError("the target is missing in every row. Name another column.")
    note = f"the target is missing in {count} {_plural(count, 'row')}: left out"
    return replace(parts.keep_rows(~absent, select(parts.source, None, ~absent)), notes=(*parts.notes, note))


def _find_odd_columns(source: Source, names: list[str]) -> list[str]:
    """Point out columns that count the rows, or have one value: they are seldom meant to be fitted."""
    n = source.shape[0]
    if not isinstance(source, DenseSource) or n < 5:
        return []
    X = source.values
    ends = X[-1].astype(np.float64) - X[0].astype(np.float64) == n - 1
    counters = [j for j in np.flatnonzero(ends) if np.all(np.diff(X[:, j].astype(np.float64)) == 1)]
    notes = [
        f"column {names[j]} counts the rows from {X[0, j]:g}; drop it, or give it as id, if it is no measurement"
        for j in counters[:3]
    ]
    few = X[:100]  # where most columns are seen to vary, so that few are read whole; fmin and fmax pass over NaN
    alike = np.flatnonzero(~(np.fmin.reduce(few) < np.fmax.reduce(few)))
    constant = [names[j] for j in alike if np.fmin.reduce(X[:, j]) == np.fmax.reduce(X[:, j])]
    if constant:
        more = f" and {len(constant) - 3} more" if len(constant) > 3 else ""
        notes.append(f"one value in every row, which tells nothing: {', '.join(constant[:3])}{more}")
    sums = _find_sums(X)
    if sums:
        notes.append(
            f"the last row holds the {sums} of the others in every column: leave it out, if it is no measurement"
        )
    return notes


def _find_sums(X: npt.NDArray[Any]) -> str:
    """What the last row is of all others, where it is their sum or mean, as spreadsheets have it: else nothing."""
    if not 5 <= len(X) <= MOST_SUMMED:
        return ""
    above, last = X[:-1].astype(np.float64), X[-1].astype(np.float64)
    seen = ~np.isnan(last) & ~np.isnan(above).all(axis=0)
    varies = np.fmin.reduce(above) < np.fmax.reduce(above)
    if not (seen & varies).any() or np.any(np.isnan(last) & varies):
        return ""
    varies = varies[seen]
    above, last, counts = above[:, seen], last[seen], (~np.isnan(above[:, seen])).sum(axis=0)
    with np.errstate(over="ignore"):  # sums beyond float64 are sums of nothing
        total, size = np.nansum(above, axis=0), np.nansum(np.abs(above), axis=0)
    if not np.isfinite(size).all():
        return ""
    for word, found, error in (("sums", total, size), ("means", total / counts, size / counts)):
        if (
            np.all(np.abs(last - found) <= SUMMED[word] * error)
            and np.any(last != 0)
            and np.sum(varies) > (word == "means")
        ):
            return word
    return ""


class Gaps(NamedTuple):
    """Missing cells: how many in each column, the rows without any and of nothing else, the sums of what is there."""

    counts: npt.NDArray[np.int64]
    complete: Mask
    empty: Mask
    sums: npt.NDArray[np.float64]


def _find_gaps(source: Source, names: list[str], where: Callable[[int], str]) -> Gaps:
    """Count the missing cells in one pass; an infinity is refused by row and column."""
    n, p = source.shape
    gaps = Gaps(np.zeros(p, np.int64), np.ones(n, np.bool_), np.zeros(n, np.bool_), np.zeros(p))
    if np.dtype(source.dtype).kind != "f":
        return gaps
    for block in source.blocks():
        with np.errstate(all="ignore"):
            sums = np.asarray(block.values.sum(axis=0, dtype=np.float64)).ravel()
        if np.isfinite(sums).all():  # one look at each number: neither NaN nor an infinity leaves a sum finite
            gaps.sums[:] += sums
            continue
        cells = block.values.data if source.sparse else block.values
        rows, columns = _positions(block.values, np.isinf(cells))
        if len(rows):
            i, j = int(rows[0]), int(columns[0])
            text = f"column {names[j]!r} is {float(block.values[i, j])} ({where(block.start + i)})."
            raise SourceError(f"{text} Empty the cell, or leave out the row.")
        rows, columns = _positions(block.values, np.isnan(cells))
        gaps.counts[:] += np.bincount(columns, minlength=p)
        gaps.complete[block.start + rows] = False
        gaps.empty[block.start : block.stop] = np.bincount(rows, minlength=block.stop - block.start) == p
        if source.sparse:
            gaps.sums[:] += np.bincount(block.values.indices, np.nan_to_num(cells, nan=0.0), minlength=p)
        else:
            with np.errstate(all="ignore"):
                gaps.sums[:] += np.nansum(cells, axis=0, dtype=np.float64)
    return gaps


def _without_empty(parts: TableParts, gaps: Gaps, *, columns_stay: bool) -> TableParts:
    """Leave out rows and columns in which nothing is observed, and say which."""
    n, p = parts.source.shape
    empty = [] if columns_stay else np.flatnonzero(gaps.counts == n).tolist()
    if len(empty) == p or gaps.empty.all():
        raise SourceError(f"{n} rows and {p} columns, and no number in any of them: nothing to fit.")
    notes = list(parts.notes)
    if empty:
        shown = ", ".join(parts.names[j] for j in empty[:5]) + (", …" if len(empty) > 5 else "")
        notes.append(f"{len(empty)} {_plural(len(empty), 'column')} without a number: left out ({shown})")
        kept = [j for j in range(p) if j not in set(empty)]
        parts = replace(parts, source=select(parts.source, kept), names=[parts.names[j] for j in kept])
    rows = np.flatnonzero(gaps.empty)
    if len(rows):
        shown = ", ".join(parts.where(int(row)) for row in rows[:3]) + (", …" if len(rows) > 3 else "")
        words = _plural(len(rows), "row")
        notes.append(f"{len(rows)} {words} without a number: left out, NA in the results ({shown})")
        parts = parts.keep_rows(~gaps.empty, select(parts.source, None, ~gaps.empty))
        parts = replace(parts, warnings=(*parts.warnings, notes[-1]))
    return replace(parts, notes=tuple(notes))


def _treat_gaps(source: Source, gaps: Gaps, rule: str, names: list[str]) -> tuple[Source, list[str]]:
    """Do with missing cells what the rule says; return the source, and what was done in words."""
    order = [j for j in np.argsort(-gaps.counts, kind="stable") if gaps.counts[j]]
    if not order:
        return source, []
    cells, columns = int(gaps.counts.sum()), len(order)
    shown = ", ".join(f"{names[j]} {gaps.counts[j]}" for j in order[:5]) + (", …" if columns > 5 else "")
    told = f"{cells} {_plural(cells, 'cell')} missing in {columns} {_plural(columns, 'column')} ({shown})"
    drop, mean, keep = (Argument("missing", value) for value in ("drop", "mean", "keep"))
    if rule == "keep":
        return source, [told]
    if rule == "refuse":
        remedies = (". Leave out their rows with ", drop, ", fill them in with ", mean, ", or keep them with ", keep)
        raise SourceError(told, *remedies, " for methods that take them (PCA does).")
    empty = [names[j] for j in np.flatnonzero(gaps.counts == source.shape[0])]
    if empty:
        raise SourceError(f"nothing is observed in {', '.join(map(repr, empty[:5]))}: every cell is missing. Drop it.")
    if rule == "drop":
        out = int(np.count_nonzero(~gaps.complete))
        if out == source.shape[0]:
            raise SourceError(f"{told}: no row is complete. Use ", mean, " or ", keep, ", or drop columns.")
        return select(source, None, gaps.complete), [f"{told}: {out} {_plural(out, 'row')} left out"]
    means = gaps.sums / (source.shape[0] - gaps.counts)

    def fill(block: Block) -> Any:
        if not source.sparse:
            return np.where(np.isnan(block.values), means.astype(block.values.dtype), block.values)
        out = block.values.copy()
        absent = np.isnan(out.data)
        out.data[absent] = means[out.indices[absent]]
        return out

    return map_source(source, fill, alike=True), [f"{told}, filled in by column means"]


def _positions(values: Any, mask: Mask) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Rows and columns of marked cells; of the stored ones in a sparse matrix."""
    if mask.ndim == 2:
        rows, columns = np.nonzero(mask)
        return rows, columns
    (at,) = np.nonzero(mask)
    return np.searchsorted(values.indptr, at, side="right") - 1, values.indices[at]


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
