"""Files elsewhere, by an address such as ``s3://bucket/x.parquet``: read by fsspec where they are, or fetched."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import IO, Any, cast

from gramian.compute.executor import open_once
from gramian.sources.base import Block, Source
from gramian.sources.errors import SourceError
from gramian.sources.files import POSTGRESQL, Spool, checksum, find_address, hide_password, load_fsspec, suffix_of

AHEAD = 2**22  # bytes that are fetched at a time from a file of which parts are read
COMPANIONS = {".bed": (".bim", ".fam")}
IN_PLACE = (".npy", ".parquet", ".zarr")  # of which workers fetch the rows that they work on; others are fetched whole
MAGIC = re.compile(r"[*?[]")


class Address(os.PathLike[str]):
    """A file or folder that fsspec reads, with the part of ``pathlib.Path`` that readers ask for.

    Parameters
    ----------
    text : str
        ``scheme://…``, as fsspec understands it; its package for the scheme must be installed.

    Examples
    --------
    >>> import fsspec, numpy as np
    >>> with fsspec.open("memory://folder/x.npy", "wb") as file:
    ...     np.save(file, np.eye(3))
    >>> Address("memory://folder/x.npy").suffix, Address("memory://folder/x.npy").stat().st_size
    ('.npy', 200)
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._path = PurePosixPath(text.partition("://")[2].partition("?")[0])
        self.name, self.suffix, self.suffixes = self._path.name, self._path.suffix, self._path.suffixes

    def find(self) -> tuple[Any, str]:
        """Return the file system of fsspec, and the name in it."""
        try:
            found: tuple[Any, str] = load_fsspec().core.url_to_fs(self.text)
        except (ImportError, ValueError) as error:  # the scheme's package, or an unknown scheme
            raise SourceError(f"fsspec cannot read such addresses here: {error}", path=str(self)) from error
        return found

    def open(self, mode: str = "rb", buffering: int = -1) -> IO[bytes]:
        """Open the file for reading any part of it."""
        system, name = self.find()
        try:
            file: IO[bytes] = system.open(name, mode, block_size=AHEAD)
        except TypeError:  # a file system without blocks
            file = system.open(name, mode)
        return file

    def exists(self) -> bool:
        """Whether there is something."""
        system, name = self.find()
        return bool(system.exists(name))

    def is_dir(self) -> bool:
        """Whether there are files below."""
        system, name = self.find()
        return bool(system.isdir(name))

    def is_file(self) -> bool:
        """Whether it is a file."""
        system, name = self.find()
        return bool(system.isfile(name))

    def stat(self) -> Any:
        """Return what has the size, as ``st_size``."""
        system, name = self.find()
        return SimpleNamespace(st_size=int(system.size(name)))

    def list_files(self) -> dict[str, str]:
        """Return the files below, by their names from here on."""
        system, name = self.find()
        return {
            path.removeprefix(name).lstrip("/"): system.unstrip_protocol(path) for path in sorted(system.find(name))
        }

    def rglob(self, pattern: str) -> Iterator[Address]:
        """Yield the files below whose names match."""
        yield from (self / name for name in self.list_files() if PurePosixPath(name).match(pattern))

    def relative_to(self, folder: Address) -> PurePosixPath:
        """Return its name from a folder above on."""
        return self._path.relative_to(folder._path)

    def fetch(self, folder: str | os.PathLike[str]) -> Path:
        """Copy the file, and those that belong to it, into a folder of this machine; return where it is."""
        system, name = self.find()
        stem = name.removesuffix(self.suffix)
        for source in (name, *(stem + ending for ending in COMPANIONS.get(self.suffix, ()))):
            try:
                system.get_file(source, str(Path(folder, PurePosixPath(source).name)))
            except FileNotFoundError as error:
                raise FileNotFoundError(f"{self}: no such file.") from error
        return Path(folder, self.name)

    def __truediv__(self, part: str) -> Address:
        return Address(f"{self.text.rstrip('/')}/{part}" if part else self.text)

    def __fspath__(self) -> str:
        return self.text

    def __str__(self) -> str:
        return hide_password(self.text)

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


def as_address(path: object) -> Address | None:
    """Return what reads an address, where it is one: for code that is typed to get a ``Path``."""
    return path if isinstance(path, Address) else None


def as_path(name: str | os.PathLike[str]) -> Path:
    """Return a name as what reads it: an :class:`Address`, or a path of this machine, ``file://`` included.

    Both are typed as ``Path``: readers ask for no more of it than an address has.

    Examples
    --------
    >>> as_path("file:///tmp/x.npy").name, as_path("memory://a/x.npy")
    ('x.npy', Address('memory://a/x.npy'))
    """
    if (address := as_address(name)) is not None:
        return cast(Path, address)
    text = find_address(name)
    if text.startswith(POSTGRESQL):
        told = "a database: say with a query which rows (read_table(sql=…), --sql)."
        raise SourceError(told, path=hide_password(text))
    if text.startswith("file://"):
        return Path(Address(text).find()[1])
    return cast(Path, Address(text)) if text else Path(name)


def is_several_names(path: Path) -> bool:
    """Whether the text of a name stands for several files by ``*``, ``?`` or ``[…]``."""
    return MAGIC.search(os.fspath(path)) is not None


def must_fetch(path: Path) -> bool:
    """Whether a name is the address of one file that cannot be read in parts from where it is."""
    return (
        as_address(path) is not None and not is_several_names(path) and path.suffix not in IN_PLACE and path.is_file()
    )


def list_addresses(address: Address) -> list[Path]:
    """Return the files that an address with a pattern stands for, or what is in a folder."""
    system, name = address.find()
    found = system.glob(name) if MAGIC.search(address.text) else system.ls(name, detail=False)
    return [as_path(system.unstrip_protocol(path)) for path in found]


def open_fetched(path: Path, dataset: str | None, open_file: Callable[[str, str | None], Source]) -> Source:
    """Open a file that cannot be read in parts from elsewhere: fetched, here and by each worker that works on it."""
    address = cast(Address, path)
    inner = _fetch_and_open(address, dataset, open_file)
    return inner if inner.resident or not inner.row_spans(None) else FetchedSource(address, dataset, open_file, inner)


def _fetch_and_open(address: Address, dataset: str | None, open_file: Callable[[str, str | None], Source]) -> Source:
    folder = tempfile.mkdtemp(prefix="gramian-")
    try:
        if suffix_of(Path(address.name)) == "":
            raise SourceError("the name does not say what the file is.", path=str(address))
        inner = open_file(str(address.fetch(folder)), dataset)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, SourceError):
            error.path = str(address)
        raise
    if inner.resident:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        weakref.finalize(inner, shutil.rmtree, folder, ignore_errors=True)
    return inner


@contextmanager
def spool_file(place: Path) -> Iterator[Spool]:
    """Give a file elsewhere as one of this machine, removed where the block fails, or with what it is kept for."""
    address, folder = cast(Address, place), tempfile.mkdtemp(prefix="gramian-")
    try:
        path = address.fetch(folder)
        yield Spool(path, checksum(path))
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, SourceError):
            error.path = str(address)
        raise


class FetchedSource(Source):
    """Rows of a file elsewhere that was fetched; where the source is sent, the file is fetched again.

    Parameters
    ----------
    address : Address
        Of the file.
    dataset : str or None
        Which array of it.
    open_file : callable
        Opens the copy.
    inner : Source
        The copy here.
    """

    resident = False

    def __init__(
        self, address: Address, dataset: str | None, open_file: Callable[[str, str | None], Source], inner: Source
    ) -> None:
        self.path, self.dataset, self.open_file, self._inner = address, dataset, open_file, inner
        self.shape, self.dtype, self.sparse = inner.shape, inner.dtype, inner.sparse
        self.feature_names = inner.feature_names
        self.token = f"{address.text} {dataset} {address.stat().st_size} {inner.shape}"

    def inner(self) -> Source:
        """Return the rows here; fetched where they are not yet."""
        if self._inner is None:
            self._inner = open_once(self.token, lambda: _fetch_and_open(self.path, self.dataset, self.open_file))
            if self._inner.shape != self.shape:
                raise SourceError("the file changed while it was worked on.", path=str(self.path))
        return self._inner

    def row_spans(self, rows: int | None) -> list[tuple[int, int]]:
        """Return the (start, stop) of blocks."""
        return self._view().row_spans(rows)

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks of the copy."""
        yield from self._view().blocks(rows)

    def _view(self) -> Source:
        return self.inner().between(self.first, self.shape[0] if self.last is None else self.last)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inner": None}
