"""Files that are either whole or absent: written to a temporary folder, then renamed into place."""

from __future__ import annotations

import csv
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import numpy as np

__all__ = ["plain", "refuse_existing", "staged", "write_csv", "write_json"]

PREFIX = ".gramian-partial-"


def refuse_existing(out: Path, names: Sequence[str], force: bool) -> None:
    """Exit 2 when a file that would be written is there already and ``--force`` was not given."""
    _refuse_place(out)
    there = [name for name in names if (out / name).exists()]
    if there and not force:
        raise click.UsageError(
            f"{out} already holds {', '.join(there)}: add --force to replace, or choose another --out"
        )


def _refuse_place(out: Path) -> None:
    """Exit 2 before any work where results could not be written after it."""
    place = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not place.is_dir():
        raise click.UsageError(f"cannot write to {out}: {place} is a file; choose another --out")
    if not os.access(place, os.W_OK | os.X_OK):
        raise click.UsageError(f"cannot write to {out}: {place} is write-protected; choose another --out")


@contextmanager
def staged(out: Path) -> Iterator[Path]:
    """Give a temporary folder whose files are renamed into ``out`` when the block ends well.

    When it does not, on Ctrl-C too, nothing of it stays behind and ``out`` is as it was before.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with staged(Path(place, "results")) as folder:
    ...         _ = (folder / "a.txt").write_text("whole")
    ...     [path.name for path in Path(place, "results").iterdir()]
    ['a.txt']
    """
    made = _make_folders(out)
    try:
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=out) as name:
            yield Path(name)
            for path in sorted(Path(name).iterdir()):
                os.replace(path, out / path.name)
    finally:
        for folder in made:
            with suppress(OSError):  # not empty: the files of a block that ended well
                folder.rmdir()


def _make_folders(out: Path) -> list[Path]:
    """Create ``out`` and return the folders this took, innermost first."""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    out.mkdir(parents=True, exist_ok=True)
    return made


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table with enough digits to read the same numbers back."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON: NaN and infinity, which JSON does not know, become null."""
    path.write_text(json.dumps(plain(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")


def plain(value: Any) -> Any:
    """Return what JSON knows: numbers that it does not know become null, other objects the text that shows them.

    Examples
    --------
    >>> from gramian.cli.outputs import plain
    >>> plain({"a": (1, float("nan")), 2: {"x"}})
    {'a': [1, None], '2': "{'x'}"}
    """
    if isinstance(value, dict):
        return {_text(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else _text(value)


def _text(value: Any) -> str:
    """A text that can be written as UTF-8, which not every file name can."""
    return str(value).encode("utf-8", "replace").decode("utf-8")
