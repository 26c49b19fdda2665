"""Files that appear whole or not at all: written under a temporary name next to their place, then renamed; JSON."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

PARTIAL = ".gramian-partial-"  # how the names of temporary folders begin


def refuse_existing(paths: Sequence[Path], *, overwrite: bool = False) -> None:
    """Raise where a file would be replaced that may not be, or a folder, or there is no folder to write to."""
    folder = paths[0].parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder, for {paths[0].name} to be written to.")
    folders = [path for path in paths if path.is_dir()]
    if folders:
        raise IsADirectoryError(f"{folders[0]} is a folder, where a file was to be written.")
    there = [path.name for path in paths if path.exists()]
    if there and not overwrite:
        raise FileExistsError(
            f"{folder} already holds {', '.join(there)}: pass overwrite=True to replace them, or choose another name."
        )


@contextmanager
def write_whole(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path, in the folder of ``path``, whose file takes its place when the block ends well.

    Where it does not, on Ctrl-C too, nothing stays behind, and what stood at ``path`` stands there still. A symbolic
    link stays one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.sources.writing import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with write_whole(Path(folder, "a.txt")) as part:
    ...         _ = part.write_text("whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    target = Path(os.path.realpath(path))
    refuse_existing([target], overwrite=overwrite)
    with write_whole_folder(target.parent, [target.name], overwrite=overwrite) as folder:
        yield folder / target.name


@contextmanager
def write_whole_folder(
    path: str | os.PathLike[str], names: Sequence[str] | None = None, *, overwrite: bool = False
) -> Iterator[Path]:
    """Give a temporary folder whose files go to the folder ``path`` together when the block ends well.

    Folders that are missing are made. Where the block does not end well, on Ctrl-C too, or one of the files cannot be
    put in its place, everything is as it was before.

    Parameters
    ----------
    path : path-like
        The folder to write to.
    names : sequence of str, optional
        The files to write, in the order in which they appear; by default whatever was written, by name.
    overwrite : bool, default=False
        Whether files that are there may be replaced. Files of ``names`` are looked for before the block, too.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.sources.writing import write_whole_folder
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with write_whole_folder(Path(place, "results")) as folder:
    ...         _ = (folder / "a.txt").write_text("whole")
    ...     [path.name for path in Path(place, "results").iterdir()]
    ['a.txt']
    """
    home = Path(path)
    made = [folder for folder in (home, *home.parents) if not folder.exists()]
    home.mkdir(parents=True, exist_ok=True)
    try:
        if names is not None:
            refuse_existing([home / name for name in names], overwrite=overwrite)
        with tempfile.TemporaryDirectory(prefix=PARTIAL, dir=home) as name:
            folder = Path(name)
            yield folder
            _install(folder, [home / name for name in names or sorted(os.listdir(folder))], overwrite)
    finally:
        for empty in made:
            with suppress(OSError):  # not empty: the files of a block that ended well
                empty.rmdir()


def _install(folder: Path, paths: Sequence[Path], overwrite: bool) -> None:
    """Rename the files of a temporary folder to their places, in this order; put all back if one cannot be.

    Files that are replaced wait in the folder until every new one is in place.
    """
    if paths:
        refuse_existing(paths, overwrite=overwrite)  # another program may have been faster
    with ExitStack() as undo:
        for path in paths:
            if path.exists() and path != paths[-1]:  # nothing after the last rename can fail
                old = folder / f"{path.name}.replaced"
                os.replace(path, old)
                undo.callback(os.replace, old, path)
            os.replace(folder / path.name, path)
            undo.callback(os.replace, path, folder / path.name)
        undo.pop_all()


def write_json(path: Path, content: Any) -> None:
    """Write strict JSON: NaN and infinity, which JSON does not know, become null."""
    text = json.dumps(as_json(content), indent=2, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def as_json(value: Any) -> Any:
    """Return what JSON knows: numbers that it does not know become null, other objects the text that shows them.

    Examples
    --------
    >>> from gramian.sources.writing import as_json
    >>> as_json({"a": (1, float("nan")), 2: {"x"}})
    {'a': [1, None], '2': "{'x'}"}
    """
    if isinstance(value, dict):
        return {_as_utf8(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, int) else _as_utf8(value)


def _as_utf8(value: Any) -> str:
    """A text that can be written as UTF-8, which not every file name can."""
    return str(value).encode("utf-8", "replace").decode("utf-8")
