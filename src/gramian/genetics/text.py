"""Tables of text: columns written as rows of fields, and files of rows read back as columns."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.plink import Samples
from gramian.sources.writing import write_whole

Text = npt.NDArray[np.object_]

ROWS = 1 << 14  # rows formatted together
SHOWN = 5  # examples in a message


def list_few(items: Sequence[str]) -> str:
    """The first few of many, with commas between them."""
    return ", ".join(items[:SHOWN]) + (", …" if len(items) > SHOWN else "")


def component_names(k: int) -> list[str]:
    """PC1, PC2, …"""
    return [f"PC{j + 1}" for j in range(k)]


def as_text(values: Sequence[Any]) -> Text:
    """An array of Python strings."""
    out = np.empty(len(values), dtype=object)
    out[:] = [str(value) for value in values]
    return out


def one_field(column: Text, absent: str = "0") -> Text:
    """A column of names, each of which is one field: ``absent`` for an empty one, and _ for white space in one.

    Examples
    --------
    >>> one_field(as_text(["a", "", "b c"])).tolist()
    ['a', '0', 'b_c']
    """
    fields = {name: name.split() for name in set(column)}
    if all(parts == [name] for name, parts in fields.items()):
        return column
    written = {name: "_".join(parts) or absent for name, parts in fields.items()}
    taken: dict[str, str] = {}
    for name, text in written.items():
        if taken.setdefault(text, name) != name:
            raise ValueError(
                f"The names {taken[text]!r} and {name!r} would both be {text!r} in a text file, where white space ends "
                "a name: rename one, or write the formats 'gramian' and 'parquet'."
            )
    return as_text([written[name] for name in column])


def write_rows(path: Path, row: str, *columns: npt.NDArray[Any], heads: Sequence[str] = ()) -> None:
    r"""Write ``row % (field, field, …)`` for every row of the columns; a matrix is as many columns as it has.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.text import write_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "t.txt")
    ...     write_rows(file, "%s %.6g %.6g\n", np.array(["a", "b"]), np.array([[1 / 3, 2.0], [0.5, 1e-7]]))
    ...     print(file.read_text().rstrip())
    a 0.333333 2
    b 0.5 1e-07
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{head}\n" for head in heads)
        for start in range(0, len(columns[0]), ROWS):
            part = [column[start : start + ROWS] for column in columns]
            fields = [line for block in part for line in (block.T.tolist() if block.ndim == 2 else [block.tolist()])]
            file.write("".join([row % values for values in zip(*fields, strict=True)]))


def write_tsv(path: str | os.PathLike[str], columns: Mapping[str, Any], overwrite: bool) -> None:
    r"""Write columns between tabs under their names, with all digits and NA for NaN; the file is whole or absent.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.text import write_tsv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tsv(Path(folder, "t.tsv"), {"id": ["rs1"], "p": [0.1]}, overwrite=False)
    ...     Path(folder, "t.tsv").read_text()
    'id\tp\nrs1\t0.1\n'
    """

    def texts(column: Any) -> list[str]:
        values = np.asarray(column)
        return ["NA" if values.dtype.kind == "f" and value != value else str(value) for value in values.tolist()]

    rows = zip(*map(texts, columns.values()), strict=True)
    with write_whole(path, overwrite=overwrite) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(columns) + "\n")
        file.writelines("\t".join(row) + "\n" for row in rows)


def write_plink_table(path: Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write columns between tabs under their names as PLINK 2 does: # before the first name, and six digits."""
    fields = [one_field(column) if column.dtype == object else column for column in columns.values()]
    row = "\t".join(["%.6g" if column.dtype.kind == "f" else "%s" for column in fields]) + "\n"
    write_rows(path, row, *fields, heads=["#" + "\t".join(columns)])


def write_sample_table(path: Path, samples: Samples, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """A table of samples as PLINK 2 writes them: #FID and IID, or #IID alone where nobody has a FID."""
    family = {"FID": samples.fid} if any(fid != "" for fid in samples.fid) else {}
    write_plink_table(path, {**family, "IID": samples.iid, **columns})


@dataclass(frozen=True, eq=False)
class Lines:
    """The fields of a file's lines, split at white space, as many in each.

    Attributes
    ----------
    fields : list of str
        Of the first line.
    header : list of str or None
        The same where that is a header.
    columns : list of ndarray
        The fields by column: numbers where they were asked for, else text.
    first : int
        Number of the line with the first row.
    """

    fields: list[str]
    header: list[str] | None
    columns: list[npt.NDArray[Any]]
    first: int


def read_text(path: Path, argument: str = "", hint: str = "") -> str:
    """The text of a file in UTF-8; errors name the argument that named the file, if one did."""
    where = f"{argument}: {path}" if argument else f"{path}"
    if path.is_dir():
        raise IsADirectoryError(f"{where} is a folder; a text file was expected.")
    if not path.exists():
        raise FileNotFoundError(f"{where}: no such file{hint}.")
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{where}: line {line} is not UTF-8 text. Save the file as UTF-8.") from None


def read_lines(
    path: Path, is_header: Callable[[list[str]], bool], numeric: Callable[[list[str]], Sequence[int]]
) -> Lines:
    """Read a table of text.

    Parameters
    ----------
    path : Path
        The file.
    is_header : callable
        Whether the first line, given as fields, is a header.
    numeric : callable
        Which columns are numbers, told by the fields of the first line.
    """
    content = read_text(path)
    head, _, rest = content.partition("\n")
    fields = head.split()
    header = fields if fields and is_header(fields) else None
    body, first = (content, 1) if header is None else (rest, 2)
    if not body.strip():
        raise ValueError(f"{path}: the file has no rows.")
    if not fields:
        raise ValueError(f"{path}: line 1 is empty.")
    try:
        numbers = np.isin(np.arange(len(fields)), list(numeric(fields)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    dtype = np.dtype([(f"{j}", np.float64 if number else object) for j, number in enumerate(numbers)])
    try:
        table = np.loadtxt(io.StringIO(body, None), dtype=dtype, comments=None, ndmin=1)
    except ValueError as error:
        _name_bad_line(path, body, first, numbers, header)
        raise ValueError(f"{path}: {error}") from error
    columns = [table[name] for name in table.dtype.names or ()]
    if not all(np.isfinite(column).all() for column, number in zip(columns, numbers, strict=True) if number):
        _name_bad_line(path, body, first, numbers, header)
    return Lines(fields, header, columns, first)


def _name_bad_line(path: Path, body: str, first: int, numbers: npt.NDArray[np.bool_], header: list[str] | None) -> None:
    """Name the first line that has another number of fields, or something else where a number should be."""
    for line, row in enumerate(body.splitlines(), first):
        fields = row.split()
        if fields and len(fields) != len(numbers):
            raise ValueError(
                f"{path}: line {line} has {len(fields)} fields; {len(numbers)} were expected as in the first line."
            )
        for j, field in enumerate(fields):
            if numbers[j] and not (is_number(field) and math.isfinite(float(field))):
                name = f" ({header[j]})" if header else ""
                raise ValueError(f"{path}: line {line}, column {j + 1}{name}: {field!r} is not a finite number.")


def is_number(field: str) -> bool:
    """Whether a field of text is a number; 1_000 is a name, though Python takes it for one."""
    try:
        float(field)
    except ValueError:
        return False
    return "_" not in field
