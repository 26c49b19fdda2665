"""Sources from tables with named columns: text, Parquet and Feather files."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gramian.sources._extras import load_pyarrow
from gramian.sources._features import Feature, as_source, kind_of, levels_of, plan
from gramian.sources._kinds import ARROW, TEXT, suffix_of
from gramian.sources._records import Records, open_records
from gramian.sources._roles import assign
from gramian.sources.base import Source

__all__ = ["TABULAR", "columns_like", "match_features", "open_tabular", "telling"]

TABULAR = (*TEXT, ".parquet", *ARROW)


@contextmanager
def telling(path: Path | str) -> Iterator[None]:
    """Let errors about a file begin with its name."""
    try:
        yield
    except UnicodeError as error:
        raise ValueError(f"{path}: {error}") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: damaged gzip file: {error}") from error
    except ValueError as error:
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path}: {error}") from error


def open_tabular(path: Path) -> Source:
    r"""Read the columns of a CSV, TSV, Parquet or Feather file, which must be numbers.

    Missing cells are NaN. :func:`gramian.sources.read_table` chooses among columns and encodes text.

    Examples
    --------
    >>> import tempfile, pathlib, gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "x.csv")
    ...     _ = path.write_text("height;weight\n1,5;60\n1,75;NA\n")
    ...     gramian.open(path).values
    array([[ 1.5 , 60.  ],
           [ 1.75,   nan]])
    """
    with telling(path):
        records = open_records(path, suffix_of(path), delimiter=None, decimal=None, header=None)
        names, row_names = records.names, records.row_names
        roles = assign(names, columns=None, drop=(), target=None, label=None, id=None, row_names=row_names)
        records.prepare(roles.features)
        features, _ = plan(records, roles.features, "refuse")
        return as_source(records, features)


def columns_like(names: Sequence[str], like: Sequence[str]) -> list[tuple[int, str | None]]:
    """Return for each wanted column of numbers the column of the file, and the level that it is one for.

    Examples
    --------
    >>> columns_like(["sex", "age"], ["age", "sex=female"])
    [(1, None), (0, 'female')]
    """
    places = {name: j for j, name in enumerate(names)}
    found: list[tuple[int, str | None]] = []
    absent = []
    for want in like:
        cuts = [at for at, mark in enumerate(want) if mark == "=" and want[:at] in places]
        if want in places:
            found.append((places[want], None))
        elif cuts:
            found.append((places[want[: cuts[-1]]], want[cuts[-1] + 1 :]))
        else:
            absent.append(want)
    if absent:
        more = ", …" if len(absent) > 8 else ""
        raise ValueError(f"{len(absent)} of {len(like)} columns are not in the file: {', '.join(absent[:8])}{more}.")
    return found


def match_features(records: Records, wanted: list[tuple[int, str | None]]) -> list[Feature]:
    """Return the features that give wanted columns of numbers; a level they do not know is refused."""
    pa = load_pyarrow()
    features: list[Feature] = []
    for j, level in wanted:
        if level is None:
            features.append(Feature(j, records.names[j]))
        elif features and features[-1].column == j and features[-1].levels is not None:
            features[-1] = Feature(j, records.names[j], (*features[-1].levels, level))
        else:
            features.append(Feature(j, records.names[j], (level,)))
    plain = [f.column for f in features if f.levels is None]
    text = [records.names[j] for j in plain if kind_of(pa, records.type(j)) != "number"]
    if text:
        raise ValueError(f"Columns without numbers, which were numbers in the fit: {', '.join(text)}.")
    for feature in features:
        _refuse_new_levels(records, feature)
    return features


def _refuse_new_levels(records: Records, feature: Feature) -> None:
    if feature.levels is None:
        return
    new = [level for level in levels_of(records.column(feature.column)) if level not in feature.levels]
    if new:
        raise ValueError(
            f"column {feature.name!r}: {', '.join(map(repr, new[:5]))} was not among the {len(feature.levels)} levels "
            "of the fit. Leave out such rows, or fit again."
        )
