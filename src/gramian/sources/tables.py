"""Tables in files: the numbers to fit, and beside them a target, labels and names of the rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.anndata import Annotated, read_h5ad
from gramian.sources.arrays import DenseSource
from gramian.sources.base import Source
from gramian.sources.columns import (
    MISSING_RULES,
    TABULAR,
    Feature,
    Name,
    Roles,
    as_source,
    assign,
    columns_like,
    find,
    kind_of,
    match_features,
    numbers_of,
    plan,
    settle,
    several,
    telling,
)
from gramian.sources.extras import load_pyarrow
from gramian.sources.kinds import checksum, split_dataset
from gramian.sources.opening import check_file, open_file
from gramian.sources.plink import Genotypes
from gramian.sources.records import Records, open_records
from gramian.sources.stdin import Spool, spool_standard_input
from gramian.sources.views import column_values, selected

__all__ = ["Choice", "Parts", "Table", "array_parts", "h5ad_parts", "read_table", "tabular_parts"]

Texts = npt.NDArray[np.str_]


@dataclass(frozen=True)
class Choice:
    """Which columns the user wants for what."""

    columns: Name | Sequence[Name] | None = None
    drop: Name | Sequence[Name] = ()
    target: Name | None = None
    label: Name | None = None
    id: Name | None = None
    categorical: str = "refuse"
    like: Sequence[str] | None = None

    def roles(self, names: Sequence[str], *, named: bool = True, row_names: int | None = None) -> Roles:
        """Give the columns their roles."""
        columns = None if self.like is not None else self.columns
        drop = () if self.like is not None else self.drop
        if self.like is not None and (self.columns is not None or several(self.drop)):
            raise ValueError("like= says which columns are read; columns= and drop= cannot be given too.")
        return assign(
            names,
            columns=columns,
            drop=drop,
            target=self.target,
            label=self.label,
            id=self.id,
            row_names=row_names,
            named=named,
        )


@dataclass(frozen=True, eq=False)
class Parts:
    """The numbers, and what is beside them; ``where`` says where a row is in the file."""

    source: Source
    names: list[str]
    where: Callable[[int], str]
    target: npt.NDArray[Any] | None = None
    target_missing: npt.NDArray[np.bool_] | None = None
    label: Texts | None = None
    ids: Texts | None = None
    notes: tuple[str, ...] = ()
    rows: npt.NDArray[np.intp] | None = None

    def only(self, kept: npt.NDArray[np.bool_], source: Source) -> Parts:
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


def tabular_parts(path: Path, suffix: str, choice: Choice, text: dict[str, Any]) -> Parts:
    """Take a text, Parquet or Feather table apart."""
    records = open_records(path, suffix, **text)
    roles = choice.roles(records.names, named=records.named, row_names=records.row_names)
    wanted = None if choice.like is None else columns_like(records.names, choice.like)
    columns = roles.features if wanted is None else list(dict.fromkeys(j for j, _ in wanted))
    records.prepare(columns, roles.target)
    if wanted is None:
        features, notes = plan(records, columns, choice.categorical)
    else:
        features, notes = match_features(records, wanted), []
    if not features:
        raise ValueError("no column of numbers is left to fit.")
    target, absent = (None, None) if roles.target is None else _target(records, roles.target)
    label = None if roles.label is None else records.texts(roles.label)
    ids = None if roles.id is None else records.texts(roles.id)
    source = as_source(records, features)
    names = source.feature_names or []
    told = (*records.notes, *notes, *_about_ids(records, roles, ids))
    return Parts(source, names, records.where, target, absent, label, ids, told)


def _target(records: Records, j: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the target, as numbers or as text, and where it is missing."""
    pa = load_pyarrow()
    values = records.column(j)
    kind = kind_of(pa, values.type)
    if kind == "number":
        numbers = numbers_of(values, Feature(j, records.names[j])).astype(np.float64)
        return numbers, np.isnan(numbers)
    if kind != "text":
        raise ValueError(f"the target {records.names[j]!r} holds {values.type}: give numbers or classes.")
    plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
    texts = plain.cast(pa.string()).to_pylist()
    return np.array([t or "" for t in texts], dtype=np.str_), np.array([t is None for t in texts])


def _about_ids(records: Records, roles: Roles, ids: Texts | None) -> list[str]:
    if ids is None or roles.id is None:
        return []
    found = [f"column {records.names[roles.id]!r} names the rows"] if roles.id == records.row_names else []
    again = len(ids) - len(np.unique(ids))
    return [*found, f"{again} ids occur before: they do not tell all rows apart"] if again else found


def array_parts(path: Path, choice: Choice, dataset: str | None) -> Parts:
    """Take an array apart: its columns are called x1, x2, … where the file has no names for them."""
    source = open_file(str(path), dataset)
    if isinstance(source, Genotypes):
        return _genotype_parts(source, choice)
    named = source.feature_names is not None
    names = source.feature_names or [f"x{j + 1}" for j in range(source.shape[1])]
    roles = choice.roles(names, named=named)
    target = None if roles.target is None else column_values(source, roles.target).astype(np.float64)
    label = None if roles.label is None else _as_texts(column_values(source, roles.label))
    ids = None if roles.id is None else _as_texts(column_values(source, roles.id))
    picked, kept = _features(source, names, roles.features, choice)
    absent = None if target is None else np.isnan(target)
    return Parts(picked, kept, _row, target, absent, label, ids)


def _genotype_parts(source: Genotypes, choice: Choice) -> Parts:
    """Take PLINK's files apart: columns are SNPs; label and id are columns of the ``.fam`` file."""
    if choice.target is not None:
        raise ValueError("target: genotypes have none beside them; keep it in a table and give its path.")
    people = {name: getattr(source.samples, name).astype(np.str_) for name in ("fid", "iid", "sex", "phenotype")}
    beside = {
        role: None if name is None else people[list(people)[find(list(people), name, f"{role} (of the .fam file)")]]
        for role, name in (("label", choice.label), ("id", choice.id))
    }
    ids = np.array(source.samples.names, dtype=np.str_) if beside["id"] is None else beside["id"]
    names = source.feature_names
    roles = replace(choice, label=None, id=None).roles(names)
    picked, kept = _features(source, names, roles.features, choice)
    return Parts(picked, kept, lambda row: f"sample {str(ids[row])!r}", None, None, beside["label"], ids, source.notes)


def _row(row: int) -> str:
    return f"row {row}, counted from 0"


def _features(source: Source, names: list[str], columns: list[int], choice: Choice) -> tuple[Source, list[str]]:
    if choice.like is not None:
        columns = [j for j, _ in columns_like([*names], list(choice.like))]
    return selected(source, columns), [names[j] for j in columns]


def _as_texts(values: npt.NDArray[Any]) -> Texts:
    """Return numbers as text: the shortest that is the number, 3 for 3.0, and nothing for NaN."""
    numbers = values.astype(np.int8) if values.dtype.kind == "b" else values
    return np.array(["" if v != v else str(v).removesuffix(".0") for v in numbers], dtype=np.str_)


def h5ad_parts(path: Path, choice: Choice, dataset: str | None) -> Parts:
    """Take an AnnData file apart: columns are of its matrix; target, label and id are of ``obs``."""
    found = read_h5ad(path, dataset)
    names = found.source.feature_names or [f"x{j + 1}" for j in range(found.source.shape[1])]
    roles = replace(choice, target=None, label=None, id=None).roles(names)
    target, absent = (None, None) if choice.target is None else _obs_target(found, choice.target)
    label = None if choice.label is None else _obs_texts(found, choice.label, "label")
    ids = found.row_names if choice.id is None else _obs_texts(found, choice.id, "id")
    source, kept = _features(found.source, names, roles.features, choice)
    return Parts(
        source, kept, lambda row: f"observation {str(found.row_names[row])!r}", target, absent, label, ids, found.notes
    )


def _obs(found: Annotated, name: Name, role: str) -> Any:
    columns = [str(column) for column in found.rows.columns]
    return found.rows.iloc[:, find(columns, name, f"{role} (of obs)")]


def _obs_texts(found: Annotated, name: Name, role: str) -> Texts:
    values = _obs(found, name, role)
    return np.array(["" if gone else str(v) for v, gone in zip(values, values.isna(), strict=True)], dtype=np.str_)


def _obs_target(found: Annotated, name: Name) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    values = _obs(found, name, "target")
    absent = values.isna().to_numpy()
    if values.dtype.kind in "fiub":
        return values.to_numpy(dtype=np.float64, na_value=np.nan), absent
    return _obs_texts(found, name, "target"), absent


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
    sha256: str | None = field(default=None, repr=False)

    def checksum(self) -> str:
        """Return the SHA-256 of the file in hexadecimal digits; of a folder, that of its files' names and bytes."""
        return self.sha256 or checksum(self.path)

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
    missing: str = "keep",
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    dataset: str | None = None,
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
    categorical : {"refuse", "onehot", "drop"}, default="refuse"
        What becomes of columns of text: refused with a list; a column of zeros and ones for each of their values; left
        out. Truth values are the numbers 0 and 1. Dates and times are never encoded.
    missing : {"keep", "refuse", "drop", "mean"}, default="keep"
        What becomes of missing cells: NaN; refused with counts; their rows left out; the column's mean. A row whose
        target is missing is left out with "drop", else refused.
    delimiter, decimal : str, optional
        What separates the cells of a text and marks decimals; found out where not given.
    header : bool, optional
        Whether the first row of a text holds names; found out where not given.
    dataset : str, optional
        Which array of a file that holds several.
    like : sequence of str, optional
        The columns of numbers of an earlier table (its ``names``), to be read from this file in that order, with the
        same levels of text columns. What is not there is refused by name.

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
        raise ValueError(f"missing={missing!r}: give one of {', '.join(MISSING_RULES)}.")
    choice = Choice(columns, drop, target, label, id, categorical, like)
    text = {"delimiter": delimiter, "decimal": decimal, "header": header}
    if os.fspath(path) == "-":
        return _from_standard_input(choice, text, dataset, missing)
    name, dataset = split_dataset(os.fspath(path), dataset)
    return _read(Path(name), choice, text, dataset, missing)


def _from_standard_input(choice: Choice, text: dict[str, Any], dataset: str | None, missing: str) -> Table:
    spool: Spool = spool_standard_input()
    try:
        table = _read(spool.path, choice, text, dataset, missing)
    except BaseException as error:
        spool.remove()
        if isinstance(error, ValueError):
            raise ValueError(spool.rename(str(error))) from error
        raise
    spool.keep_for(table.source)
    return replace(table, path=Path("-"), sha256=spool.sha256)


def _read(path: Path, choice: Choice, text: dict[str, Any], dataset: str | None, missing: str) -> Table:
    suffix = check_file(path)
    with telling(path):
        if suffix in TABULAR:
            if dataset is not None:
                raise ValueError(f"a {suffix} file holds one table; dataset={dataset!r} is for files of several.")
            parts = tabular_parts(path, suffix, choice, text)
        else:
            given = [f"{name}={value!r}" for name, value in text.items() if value is not None]
            if given:
                raise ValueError(f"{', '.join(given)} is for text files; a {suffix} file says such things itself.")
            parts = h5ad_parts(path, choice, dataset) if suffix == ".h5ad" else array_parts(path, choice, dataset)
        return _settled(path, parts, missing)


def _settled(path: Path, parts: Parts, missing: str) -> Table:
    """Do with missing cells what is asked, in the table and in what is beside it."""
    parts, notes = _with_target(parts, missing)
    names = parts.names
    if 0 in parts.source.shape:
        raise ValueError(f"{parts.source.shape[0]} rows and {parts.source.shape[1]} columns: nothing to fit.")
    if missing == "keep" and not parts.source.resident:
        notes.append("read in blocks: missing cells are not counted beforehand")
        return _table(path, parts, notes, {})
    source, gaps, told = settle(parts.source, missing, names, parts.where)
    kept = gaps.complete if missing == "drop" else None
    parts = replace(parts, source=source) if kept is None else parts.only(kept, source)
    counts = {names[j]: int(gaps.counts[j]) for j in np.flatnonzero(gaps.counts)}
    return _table(path, parts, [*notes, *told, *_row_counters(parts)], counts)


def _with_target(parts: Parts, missing: str) -> tuple[Parts, list[str]]:
    """Leave out rows without a target, or refuse them."""
    absent = parts.target_missing
    if parts.target is None or absent is None or not absent.any():
        return parts, list(parts.notes)
    first, count = int(np.argmax(absent)), int(np.count_nonzero(absent))
    if missing != "drop":
        raise ValueError(
            f"the target is missing in {count} of {len(absent)} rows (first: {parts.where(first)}). Leave them out "
            "with missing='drop'."
        )
    if count == len(absent):
        raise ValueError("the target is missing in every row. Name another column.")
    told = f"the target is missing in {count} {'row' if count == 1 else 'rows'}: left out"
    return parts.only(~absent, selected(parts.source, None, ~absent)), [*parts.notes, told]


def _row_counters(parts: Parts) -> list[str]:
    """Point out columns that count the rows: they are seldom meant to be fitted."""
    n, source = parts.source.shape[0], parts.source
    if not isinstance(source, DenseSource) or n < 5:
        return []
    ends = source.values[-1].astype(np.float64) - source.values[0].astype(np.float64) == n - 1
    found = [j for j in np.flatnonzero(ends) if np.all(np.diff(source.values[:, j].astype(np.float64)) == 1)]
    return [
        f"column {parts.names[j]} counts the rows from {source.values[0, j]:g}; drop it, or give it as id, if it is no "
        "measurement"
        for j in found[:3]
    ]


def _table(path: Path, parts: Parts, notes: list[str], counts: dict[str, int]) -> Table:
    if parts.source.feature_names is None:
        parts.source.feature_names = parts.names
    return Table(
        source=parts.source,
        target=parts.target,
        label=parts.label,
        ids=parts.ids,
        names=parts.names,
        path=path,
        notes=tuple(notes),
        missing=counts,
        rows=parts.rows,
    )
