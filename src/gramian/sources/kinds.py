"""The SHA-256 of a file, or of a folder of files."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

__all__ = ["ARROW", "TEXT", "check_content", "checksum", "content_of", "split_dataset", "suffix_of"]

TEXT = (".csv", ".tsv", ".txt")
ARROW = (".feather", ".arrow", ".ipc")
PACKED = (*TEXT, ".mtx")  # what may be compressed by gzip

HDF5 = b"\x89HDF\r\n\x1a\n"
SIGNATURES = {
    b"PAR1": ".parquet",
    b"ARROW1": ".feather",
    b"\xff\xff\xff\xff": ".arrow",  # the stream that has no beginning and no end marked
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    HDF5: ".h5",
    b"%%MatrixMarket": ".mtx",
}
SAME = {".hdf5": ".h5", ".h5ad": ".h5", ".zip": ".npz", ".tsv": ".csv", ".txt": ".csv"} | dict.fromkeys(ARROW, ".arrow")
WORDS = {
    ".parquet": "a Parquet file",
    ".arrow": "an Arrow (Feather) file",
    ".npy": "a NumPy array",
    ".npz": "a zip archive",
    ".h5": "an HDF5 file",
    ".mtx": "a Matrix Market file",
    ".csv": "text",
    "": "binary data of no known kind",
}


def suffix_of(path: Path) -> str:
    """Return how the name ends, in lower case; ``.gz`` is left out where the rest says what is inside.

    Examples
    --------
    >>> suffix_of(Path("a.b.CSV.gz")), suffix_of(Path("x.npy")), suffix_of(Path("y.gz"))
    ('.csv', '.npy', '.gz')
    """
    *_, inner, last = ["", "", *(s.lower() for s in path.suffixes)]
    return inner if last == ".gz" and inner in PACKED else last


def split_dataset(name: str, dataset: str | None) -> tuple[str, str | None]:
    """Split ``file.npz::key`` into the file and the dataset, unless a file of that very name exists.

    Examples
    --------
    >>> split_dataset("x.h5::a/b", None), split_dataset("x.h5", "a")
    (('x.h5', 'a/b'), ('x.h5', 'a'))
    """
    file, mark, key = name.partition("::")
    if not mark or Path(name).exists():
        return name, dataset
    if dataset is not None and dataset != key:
        raise ValueError(f"{name} names the dataset {key!r}, and dataset={dataset!r} another; name one.")
    return file, key


def content_of(head: bytes) -> str:
    """Return the suffix that suits a file's first bytes: ``.csv`` for any text, ``""`` where nothing is known."""
    for signature, suffix in SIGNATURES.items():
        if head.startswith(signature):
            return SAME.get(suffix, suffix)
    return "" if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")) else ".csv"


def check_content(path: Path, suffix: str) -> None:
    """Refuse an empty file, and one whose first bytes are not what its name says."""
    with path.open("rb") as file:
        head = file.read(520)
    if not head:
        raise ValueError("the file is empty (0 bytes).")
    if head[512:] == HDF5:  # after a block of the user's own
        head = HDF5
    if head.startswith(b"\x1f\x8b") and suffix in PACKED:
        head = _unpacked(path)
    elif path.suffix.lower() == ".gz":
        raise ValueError("the name ends in .gz and the file is not compressed by gzip. Rename it.")
    expected, found = SAME.get(suffix, suffix), content_of(head)
    if found == expected or expected not in WORDS:
        return
    rename = f" Rename it to end in {found}." if found else ""
    raise ValueError(f"not a readable {suffix} file: it holds {WORDS[found]} (it begins {head[:16]!r}).{rename}")


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            head = file.read(512)
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"damaged gzip file: {error}") from error
    if not head:
        raise ValueError("the file is empty (0 bytes).")
    return head


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
