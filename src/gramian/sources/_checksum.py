"""The SHA-256 of a file, or of a folder of files."""

from __future__ import annotations

import hashlib
from pathlib import Path

__all__ = ["checksum"]


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file; of a folder, that of the names and bytes of all its files.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "x")
    ...     _ = file.write_bytes(b"abc")
    ...     checksum(file)[:16]
    'ba7816bf8f01cfea'
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        parts = "".join(f"{file.relative_to(path).as_posix()}\0{checksum(file)}\n" for file in files)
        return hashlib.sha256(parts.encode()).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
