"""Several files that appear together or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

__all__ = ["PREFIX", "install", "refuse_existing"]

PREFIX = ".gramian-partial-"


def refuse_existing(paths: Sequence[Path], overwrite: bool) -> None:
    """Raise where a file would be replaced that may not be, or a folder, or has no folder to go to."""
    if not paths[0].parent.is_dir():
        raise FileNotFoundError(f"{paths[0].parent}: no such folder, for {paths[0].name} to be written to.")
    folders = [path.name for path in paths if path.is_dir()]
    if folders:
        raise IsADirectoryError(f"{paths[0].parent / folders[0]} is a folder, where a file was to be written.")
    there = [path.name for path in paths if path.exists()]
    if there and not overwrite:
        raise FileExistsError(
            f"{paths[0].parent} already holds {', '.join(there)}: pass overwrite=True to replace them, or choose "
            "another name."
        )


def install(folder: Path, paths: Sequence[Path]) -> None:
    """Rename the files of a temporary folder to their places, in this order; put all back if one cannot be.

    Files that are replaced wait in the folder until every new one is in place.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics._staging import install
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = Path(name, "new")
    ...     folder.mkdir()
    ...     _ = (folder / "a.txt").write_text("whole")
    ...     install(folder, [Path(name, "a.txt")])
    ...     Path(name, "a.txt").read_text()
    'whole'
    """
    with ExitStack() as undo:
        for path in paths:
            if path.exists():
                old = folder / f"{path.name}.replaced"
                os.replace(path, old)
                undo.callback(os.replace, old, path)
            os.replace(folder / path.name, path)
            undo.callback(os.replace, path, folder / path.name)
        undo.pop_all()
