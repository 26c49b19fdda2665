"""Files that appear whole or not at all: written in a hidden folder next to their place, then renamed; JSON.

A hidden folder is locked as long as its writer lives. One whose lock is free was left by a program that was killed:
whoever writes there next finishes or undoes what was begun, and removes it.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

try:
    import fcntl
except ImportError:  # not on Windows: there, nothing is locked, and what a killed program left stays
    fcntl = None  # type: ignore[assignment]

PARTIAL = ".gramian-partial-"  # how the names of hidden folders begin
REPLACING, REPLACED = ".replacing", ".replaced"  # where old files wait: while some, and once all are there
LIVING: set[Path] = set()  # hidden folders of this process


class PlaceTakenError(FileExistsError):
    """Another run is writing to the same place."""


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
def claim(path: str | os.PathLike[str]) -> Iterator[None]:
    """Keep a place, a file or a folder, for this run while the block lasts; folders on the way to it are made.

    What killed runs left there is finished or undone first.

    Raises
    ------
    PlaceTakenError
        Where another run has claimed it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.sources.writing import claim
    >>> with tempfile.TemporaryDirectory() as place, claim(Path(place, "results")):
    ...     with claim(Path(place, "results")):
    ...         pass
    Traceback (most recent call last):
    gramian.sources.writing.PlaceTakenError: another run is writing to ...results...
    """
    target = Path(os.path.realpath(path))
    with _make_folders(target.parent):
        if target.is_dir():
            remove_abandoned(target)
        remove_abandoned(target.parent)
        home = target if target.is_dir() else target.parent
        hidden = home / f"{PARTIAL}{_digits(target.name)}"
        held = None
        while held is None:
            hidden.mkdir(exist_ok=True)
            try:
                held = _lock(hidden)
            except BlockingIOError:
                raise PlaceTakenError(
                    f"another run is writing to {path}: wait until it has ended, or choose another place."
                ) from None
        LIVING.add(hidden)
        try:
            yield
        finally:
            with suppress(OSError):
                hidden.rmdir()
            LIVING.discard(hidden)
            os.close(held[0])


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
    with _hidden_folder(target.parent) as folder:
        part = folder / target.name
        yield part
        if overwrite:
            os.replace(part, target)
            return
        try:
            os.link(part, target)  # which, unlike a rename, never replaces what another program has just put there
        except OSError:
            refuse_existing([target])
            os.rename(part, target)  # where there are no hard links


@contextmanager
def write_whole_folder(
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    *,
    overwrite: bool = False,
    claimed: bool = False,
) -> Iterator[Path]:
    """Give a temporary folder whose files go to the folder ``path`` together when the block ends well.

    Folders that are missing are made. Where the block does not end well, on Ctrl-C too, or one of the files cannot be
    put in its place, everything is as it was before. A folder that was not there appears by one rename. In one that
    was there, the files to be replaced are all moved aside before the first new one comes, so that even a program that
    is killed meanwhile leaves no mixture of old and new; the next one that writes there finishes, or undoes. Other
    files are not touched.

    Parameters
    ----------
    path : path-like
        The folder to write to.
    names : sequence of str, optional
        The files to write, in the order in which they appear; by default whatever was written, by name.
    overwrite : bool, default=False
        Whether files that are there may be replaced. Files of ``names`` are looked for before the block, too.
    claimed : bool, default=False
        Whether the caller has claimed the place; by default it is claimed here, the place of the first of ``names``
        where they are given.

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
    home = Path(os.path.realpath(path))
    with ExitStack() as stack:
        if not claimed:
            stack.enter_context(claim(home if names is None else home / names[0]))
        fresh = names is None and not home.exists()
        stack.enter_context(_make_folders(home.parent if fresh else home))
        if names is not None:
            refuse_existing([home / name for name in names], overwrite=overwrite)
        folder = stack.enter_context(_hidden_folder(home.parent if fresh else home))
        yield folder
        if fresh:
            try:
                os.rename(folder, home)
                return
            except OSError:  # another program was faster
                inside = home / folder.name
                os.rename(folder, inside)
                folder = stack.enter_context(_remove_at_end(inside))
        paths = [home / name for name in names or sorted(os.listdir(folder))]
        if paths:
            refuse_existing(paths, overwrite=overwrite)  # another program may have been faster
            _install(folder, paths)


def _install(folder: Path, paths: Sequence[Path]) -> None:
    """Move old files aside, all of them, then rename the new ones to their places; put all back if one cannot be."""
    aside, done = folder / REPLACING, folder / REPLACED
    moves = [(path, aside / path.name) for path in paths if path.exists()]
    moves.append((aside, done))
    moves += [(folder / path.name, path) for path in paths]
    aside.mkdir()
    with ExitStack() as undo:
        for start, end in moves:
            undo.callback(_move_unless_there, end, start)  # before the move: an interruption may come right after it
            os.rename(start, end)
        undo.pop_all()


def _move_unless_there(start: Path, end: Path) -> None:
    """Rename what is there to where nothing is."""
    if os.path.lexists(start) and not os.path.lexists(end):
        os.rename(start, end)


@contextmanager
def _make_folders(folder: Path) -> Iterator[None]:
    """Make the folders that are missing on the way to one, and remove them again where they stay empty."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for empty in made:
            with suppress(OSError):  # not empty: the files of a block that ended well
                empty.rmdir()


@contextmanager
def _hidden_folder(home: Path) -> Iterator[Path]:
    """A folder to write in, locked while the block lasts, which is removed with what is left in it."""
    remove_abandoned(home)
    while True:
        folder = home / f"{PARTIAL}{secrets.token_hex(6)}"
        folder.mkdir()
        with suppress(BlockingIOError):
            if (held := _lock(folder)) is not None:
                break  # else another program took it for abandoned before it was locked
    try:
        with _remove_at_end(folder):
            yield folder
    finally:
        os.close(held[0])


@contextmanager
def _remove_at_end(folder: Path) -> Iterator[Path]:
    """Remove a folder in the end."""
    LIVING.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        LIVING.discard(folder)


def _lock(folder: Path) -> tuple[int, bool] | None:
    """Open and lock a folder until it is closed, and whether locks are known there; None where it is gone.

    Raises BlockingIOError where somebody else holds it.
    """
    if fcntl is None:
        return os.open(os.devnull, os.O_RDONLY), False
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        known = True
    except BlockingIOError:
        os.close(handle)
        raise
    except OSError:  # a file system without locks
        known = False
    with suppress(OSError):
        if os.path.samestat(os.fstat(handle), os.stat(folder)):
            return handle, known
    os.close(handle)
    return None


def remove_abandoned(home: Path) -> None:
    """Finish or undo what killed programs began in a folder, and remove what they left.

    Where old files had all been moved aside, the new ones are put in place; where only some had, those are put back.
    Neither replaces anything.
    """
    found: list[Path] = []
    with suppress(PermissionError), os.scandir(home) as entries:  # a folder that may not be listed is left as it is
        hidden = (entry for entry in entries if entry.name.startswith(PARTIAL))
        found = [Path(entry.path) for entry in hidden if entry.is_dir(follow_symlinks=False)]
    for folder in found:
        held = None
        with suppress(OSError):  # somebody is writing there, or it is not ours
            held = _lock(folder)
        if held is None:
            continue
        handle, known = held
        try:
            if known:
                waiting = folder if (folder / REPLACED).is_dir() else folder / REPLACING
                if waiting.is_dir():
                    for name in sorted(set(os.listdir(waiting)) - {REPLACED}):
                        _move_unless_there(waiting / name, home / name)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(handle)


def remove_living() -> None:
    """Remove the hidden folders of this process, which is about to end without further ado."""
    for folder in list(LIVING):
        if not (folder / REPLACED).is_dir() and not (folder / REPLACING).is_dir():
            shutil.rmtree(folder, ignore_errors=True)


def _digits(name: str) -> str:
    """A name of any length as a few digits."""
    return f"{zlib.crc32(os.fsencode(name)):08x}"


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
