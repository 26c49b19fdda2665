"""Standard input, kept in a temporary file so that it can be read more than once."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any, NamedTuple

from gramian.sources.kinds import content_of

__all__ = ["Spool", "spool_standard_input"]

CHUNK = 2**20
NAME = "standard input"


class Spool(NamedTuple):
    """A file that holds what came from standard input, and its SHA-256."""

    path: Path
    sha256: str

    def keep_for(self, owner: Any) -> None:
        """Keep the file as long as something that reads it."""
        weakref.finalize(owner, shutil.rmtree, self.path.parent, ignore_errors=True)

    def remove(self) -> None:
        """Remove the file now."""
        shutil.rmtree(self.path.parent, ignore_errors=True)

    def rename(self, text: str) -> str:
        """Call the file what the user knows it as."""
        return text.replace(str(self.path), NAME)


def spool_standard_input() -> Spool:
    """Copy standard input to a file whose name ends as its first bytes say."""
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError(f"{NAME} is a terminal. Pipe a file into the command, or name a file.")
    stream: Any = getattr(sys.stdin, "buffer", sys.stdin)
    head = stream.read(CHUNK)
    if not head:
        raise ValueError(f"{NAME} is empty (0 bytes).")
    path = Path(tempfile.mkdtemp(prefix="gramian-"), f"stdin{_suffix(head)}")
    digest = hashlib.sha256()
    try:
        with path.open("wb") as file:
            while head:
                file.write(head)
                digest.update(head)
                head = stream.read(CHUNK)
    except BaseException:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise
    return Spool(path, digest.hexdigest())


def _suffix(head: bytes) -> str:
    if head.startswith(b"\x1f\x8b"):
        with tempfile.TemporaryFile() as file:
            file.write(head)
            file.seek(0)
            with gzip.GzipFile(fileobj=file) as packed:
                return f"{content_of(packed.read1(512))}.gz"
    found = content_of(head)
    if not found:
        raise ValueError(f"{NAME} holds binary data of no known kind (it begins {head[:16]!r}).")
    return found
