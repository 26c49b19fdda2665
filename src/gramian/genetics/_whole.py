"""Files of results in folders of their own: made where they are not there, and gone again where nothing came of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gramian.genetics._staging import PREFIX, install, refuse_existing

__all__ = ["whole"]


@contextmanager
def whole(paths: Sequence[Path], overwrite: bool) -> Iterator[Path]:
    """Give a temporary folder for files of these names, which go to their places together when the block ends well.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics._whole import whole
    >>> with tempfile.TemporaryDirectory() as name:
    ...     file = Path(name, "results", "a.txt")
    ...     with whole([file], overwrite=False) as folder:
    ...         _ = (folder / "a.txt").write_text("whole")
    ...     file.read_text()
    'whole'
    """
    home = paths[0].parent
    made = [folder for folder in (home, *home.parents) if not folder.exists()]
    home.mkdir(parents=True, exist_ok=True)
    try:
        refuse_existing(paths, overwrite)
        with tempfile.TemporaryDirectory(prefix=PREFIX, dir=home) as name:
            yield Path(name)
            install(Path(name), paths)
    finally:
        for folder in made:
            with suppress(OSError):  # not empty: the files of a block that ended well
                folder.rmdir()
