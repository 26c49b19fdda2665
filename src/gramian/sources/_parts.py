"""What a file is taken apart into: numbers, target, labels, names of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources._extras import load_pyarrow
from gramian.sources._features import Feature, as_source, kind_of, numbers_of, plan
from gramian.sources._records import Records, open_records
from gramian.sources._roles import Name, Roles, assign, find, several
from gramian.sources.annotated import Annotated, read_h5ad
from gramian.sources.base import Source
from gramian.sources.opening import open_file
from gramian.sources.plink import Genotypes
from gramian.sources.selected import column_values, selected
from gramian.sources.tabular import columns_like, match_features

__all__ = ["Choice", "Parts", "array_parts", "h5ad_parts", "tabular_parts"]

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
