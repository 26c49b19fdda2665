"""The lines of text tables, by Python's own reader: how a table begins, and which line is wrong with one."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from gramian.sources._dialect import Dialect, detect, tidied

__all__ = ["check_lines", "line_of_row", "opened", "refuse_undecodable", "sniff"]

HEAD = 2**16
CHUNK = 2**22
LONGEST = 2**30  # characters in a cell, for Python's reader


def opened(path: Path) -> IO[bytes]:
    """Open a text file, compressed by gzip or not."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")  # type: ignore[return-value]


def sniff(path: Path, *, delimiter: str | None, decimal: str | None, header: bool | None) -> Dialect:
    """Find out how a text table is written from its first 64 KiB, or more where two lines take more."""
    with opened(path) as file:
        head = file.read(HEAD)
        while head.strip().count(b"\n") < 2 and (more := file.read(len(head) or 1)):
            head += more
        whole = not file.read(1)
    _refuse_other_encodings(head)
    text = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode(head, whole)
    if not text.strip():
        raise ValueError("the file holds nothing but blank lines.")
    if "�" in text:
        refuse_undecodable(path)
    dialect = detect(text, whole, delimiter=delimiter, decimal=decimal, header=header)
    if dialect.header and whole and dialect.skip >= len(text.rstrip().splitlines()):
        raise ValueError(f"a header row ({', '.join(dialect.names[:5])}) and no rows of data.")
    return dialect


def _refuse_other_encodings(head: bytes) -> None:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError("the text is UTF-16 (it begins with its mark). Save it as UTF-8.")


def refuse_undecodable(path: Path) -> None:
    """Raise an error that names the first byte that is not UTF-8, if there is one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    at, line, pending = 0, 1, 0
    with opened(path) as file:
        while True:
            data = file.read(CHUNK)
            try:
                decoder.decode(data, not data)
            except UnicodeDecodeError as error:
                bad, line = error.object[error.start], line + error.object[: error.start].count(b"\n")
                raise ValueError(
                    f"line {line}: byte 0x{bad:02x} at position {at - pending + error.start} is not UTF-8. Save the "
                    "file as UTF-8."
                ) from error
            if not data:
                return
            pending = len(decoder.getstate()[0])
            at, line = at + len(data), line + data.count(b"\n")


def numbered_rows(path: Path, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of data with the line in which each begins, by Python's own reader."""
    with opened(path) as file:
        raw: IO[bytes] = io.BytesIO(tidied(file.read(), dialect.delimiter)) if dialect.padded else file
        text = io.TextIOWrapper(raw, "utf-8-sig", newline="")
        before = csv.field_size_limit(LONGEST)
        try:
            reader = csv.reader(text, delimiter=dialect.delimiter, strict=True)
            yield from _numbered(reader, dialect.skip)
        finally:
            csv.field_size_limit(before)


def _numbered(reader: Any, skip: int) -> Iterator[tuple[int, list[str]]]:
    line = 1
    try:
        for row in reader:
            if row and reader.line_num > skip:
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f'line {line}: a quote (") opens here that is not closed where the cell ends ({error}). Close it, or '
            'write it as "" within quotes.'
        ) from error


def check_lines(path: Path, dialect: Dialect) -> None:
    """Raise an error that names the first line that cannot be part of the table, if there is one."""
    refuse_undecodable(path)
    expected = len(dialect.names)
    for line, row in numbered_rows(path, dialect):
        if len(row) != expected:
            source = "header has" if dialect.header else "first row has"
            raise ValueError(
                f"line {line}: {len(row)} cells where the {source} {expected} (delimiter {dialect.delimiter!r}). Mend "
                "the line, or say which delimiter= separates the cells."
            )


def line_of_row(path: Path, dialect: Dialect, row: int) -> int:
    """Return the line in which a row of data (counted from 0) begins."""
    for i, (line, _) in enumerate(numbered_rows(path, dialect)):
        if i == row:
            return line
    raise IndexError(row)
