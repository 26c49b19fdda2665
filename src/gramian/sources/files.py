"""Files by name and content: what they are, standard input as one, their checksums, and the packages that read them."""

from __future__ import annotations

import bz2
import codecs
import gzip
import hashlib
import lzma
import os
import re
import shutil
import sys
import tempfile
import weakref
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

from gramian.sources.errors import Argument, SourceError

TEXT = (".csv", ".tsv", ".txt")
ARROW = (".feather", ".arrow", ".ipc")
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
TABULAR = (*TEXT, ".parquet", *ARROW, *SHEETS)
PACKED = (*TEXT, ".mtx")  # what may be compressed
PACKINGS = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".xz": b"\xfd7zXZ\0", ".zst": b"\x28\xb5\x2f\xfd"}

HDF5 = b"\x89HDF\r\n\x1a\n"
SIGNATURES = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",  # the stream that has no beginning and no end marked
    b"\x93NUMPY": ".npy",
    b"PK\x03\x04": ".npz",
    b"\xd0\xcf\x11\xe0": ".xls",
    HDF5: ".h5",
    b"%%MatrixMarket": ".mtx",
}
SAME = {
    ".hdf5": ".h5",
    ".h5ad": ".h5",
    ".tsv": ".csv",
    ".txt": ".csv",
    **dict.fromkeys((".zip", ".xlsx", ".xlsm", ".xlsb", ".ods"), ".npz"),
    **dict.fromkeys(ARROW, ".arrow"),
}
WORDS = {
    ".parquet": "a Parquet file",
    ".arrow": "an Arrow (Feather) file",
    ".npy": "a NumPy array",
    ".npz": "a zip archive",
    ".xls": "an old Excel workbook",
    ".h5": "an HDF5 file",
    ".mtx": "a Matrix Market file",
    ".csv": "text",
    "": "binary data of no known kind",
}


def suffix_of(path: Path) -> str:
    """Return how the name ends, in lower case; that of a packing is left out where the rest says what is inside.

    Examples
    --------
    >>> suffix_of(Path("a.b.CSV.gz")), suffix_of(Path("x.npy")), suffix_of(Path("y.gz"))
    ('.csv', '.npy', '.gz')
    """
    *_, inner, last = ["", "", *(s.lower() for s in path.suffixes)]
    return inner if last in PACKINGS and inner in PACKED else last


def find_packing(head: bytes) -> str:
    """Return the ending that suits compressed bytes, "" where they are not compressed."""
    found = next((ending for ending, signature in PACKINGS.items() if head.startswith(signature)), "")
    return "" if found == ".bz2" and head[4:10] != b"1AY&SY" else found  # a text may begin with BZh


def open_unpacked(path: Path) -> IO[bytes]:
    """Open a file, compressed by gzip, bzip2, xz or zstd, or not at all, for reading what is inside."""
    with path.open("rb") as file:
        packing = find_packing(file.read(16))
    if packing == ".zst":
        stream: IO[bytes] = load_pyarrow("Files compressed by zstd").input_stream(str(path), compression="zstd")
        return stream
    openers: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    opened: IO[bytes] = openers[packing](path) if packing else path.open("rb")
    return opened


BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # which begins as UTF-16 does
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8",
}


def find_encoding(head: bytes) -> str:
    """Return the encoding that the first bytes of a text tell, by a mark or by the zeros of UTF-16; else "".

    Examples
    --------
    >>> find_encoding("a,b".encode("utf-16")), find_encoding("a,b".encode("utf-16-le")), find_encoding(b"a,b")
    ('utf-16', 'utf-16-le', '')
    """
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    even, odd = head[::2].count(0), head[1::2].count(0)  # high bytes of letters of Western languages
    if len(head) >= 4 and max(even, odd) > 0.8 * (len(head) // 2) and min(even, odd) == 0:
        return "utf-16-le" if odd else "utf-16-be"
    return ""


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
        raise SourceError(
            f"{name} names the dataset {key!r}, and ", Argument("dataset", dataset), " another; name one."
        )
    return file, key


POSTGRESQL = ("postgresql://", "postgres://")
ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)


def find_address(name: str | os.PathLike[str]) -> str:
    """Return a name as an address, ``scheme://…``, whose slashes a ``Path`` makes one; "" where it is a file's.

    Examples
    --------
    >>> find_address("s3://bucket/x.npy"), find_address(Path("postgresql://me@host/shop")), find_address("C:/x.npy")
    ('s3://bucket/x.npy', 'postgresql://me@host/shop', '')
    """
    text = os.fspath(name)
    found = ADDRESS.fullmatch(text)
    if found is None or Path(found[1] + ":").exists():
        return ""
    return text if "://" in text else f"{found[1]}:{'///' if found[1] in ('file', 'local') else '//'}{found[2]}"


def hide_password(address: str) -> str:
    """Return an address without the password in it, for messages and files of results.

    Examples
    --------
    >>> hide_password("postgresql://me:secret@host/shop"), hide_password("postgresql://host/shop?password=a&user=me")
    ('postgresql://me@host/shop', 'postgresql://host/shop?password=…&user=me')
    """
    return re.sub(r"(?i)([?&][^=&]*password=)[^&]*", r"\1…", re.sub(r"(://[^/@:]*):[^/]*@", r"\1@", address))


def content_of(head: bytes) -> str:
    """Return the suffix that suits a file's first bytes: ``.csv`` for any text, ``""`` where nothing is known."""
    for signature, suffix in SIGNATURES.items():
        if head.startswith(signature):
            return suffix
    return "" if b"\0" in head and not find_encoding(head) else ".csv"


def describe_kind(suffix: str) -> str:
    """Return what a file with this ending is, in words.

    Examples
    --------
    >>> describe_kind(".feather"), describe_kind(".zarr")
    ('a readable Arrow (Feather) file', 'a readable .zarr file')
    """
    words = WORDS.get(SAME.get(suffix, suffix), f"a {suffix} file")
    return f"a readable {words.removeprefix('a ').removeprefix('an ')}"


def check_content(path: Path, suffix: str) -> None:
    """Refuse an empty file, and one whose first bytes are not what its name says."""
    with path.open("rb") as file:
        head = file.read(520)
    if head[512:] == HDF5:  # after a block of the user's own
        head = HDF5
    packing, ending = find_packing(head), path.suffix.lower()
    if packing and suffix in PACKED:
        with open_unpacked(path) as packed:
            head = packed.read(512)
    elif head and ending in PACKINGS:
        raise SourceError(f"the name ends in {ending} and the file is not compressed so. Rename it.")
    if not head:
        raise SourceError("the file is empty (0 bytes).")
    expected, found = SAME.get(suffix, suffix), content_of(head)
    if found == expected or expected not in WORDS:
        return
    rename = f" Rename it to end in {found}." if found else ""
    raise SourceError(f"not a readable {suffix} file: it holds {WORDS[found]} (it begins {head[:16]!r}).{rename}")


def checksum_of_files(files: Sequence[Path], folder: Path | None = None) -> str:
    """Return the SHA-256 of the names and bytes of files; names are those in a folder where one is given."""
    names = [file.name if folder is None else file.relative_to(folder).as_posix() for file in files]
    parts = "".join(f"{name}\0{checksum(file)}\n" for name, file in zip(names, files, strict=True))
    return hashlib.sha256(parts.encode()).hexdigest()


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
        files = sorted((file for file in path.rglob("*") if file.is_file()), key=lambda file: file.relative_to(path))
        return checksum_of_files(files, path)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def kind_of_archive(path: Path) -> str:
    """Return the ending of a workbook that is a zip archive, by what it holds; "" for other archives."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return ".xlsx" if "xl/workbook.xml" in names else ".xlsb" if "xl/workbook.bin" in names else ""


CHUNK = 2**20
STDIN = "standard input"


class Spool(NamedTuple):
    """A file that holds what came from elsewhere, and its SHA-256."""

    path: Path
    sha256: str

    def keep_for(self, owner: Any) -> None:
        """Keep the file as long as something that reads it."""
        weakref.finalize(owner, shutil.rmtree, self.path.parent, ignore_errors=True)


@contextmanager
def spool_query(database: Path, sql: str) -> Iterator[Spool]:
    """Give the rows of a query as a Parquet file, so that they are the same in every pass.

    The database is opened for reading alone, and its rows go to the file in batches. The SHA-256 is that of the
    database and the query; of a server, of the rows and the query. The file is removed where the block fails; else the
    block says what it is kept for.

    Parameters
    ----------
    database : Path
        A file of DuckDB; ``:memory:`` for a query that names its files itself; the address of a PostgreSQL server.
    sql : str
        One statement that gives rows.
    """
    path = Path(tempfile.mkdtemp(prefix="gramian-"), "query.parquet")
    address = find_address(database)
    try:
        if address:
            _write_postgresql(address, sql, path)
            known = checksum(path) + sql
        else:
            known = _write_duckdb(database, sql, path) + sql
        yield Spool(path, hashlib.sha256(known.encode()).hexdigest())
    except BaseException:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise


def _write_duckdb(database: Path, sql: str, path: Path) -> str:
    """Write what a query gives to a Parquet file, and return the checksum of the database."""
    (duckdb,) = _load("sql", "Databases", "duckdb")
    stored = str(database) != ":memory:"
    if stored and not database.is_file():
        raise FileNotFoundError(f"{database}: no such file.")
    try:
        with duckdb.connect(str(database), read_only=stored) as connection:
            connection.sql(sql.strip().rstrip(";")).write_parquet(str(path))
    except (duckdb.Error, AttributeError) as error:  # a statement without rows gives nothing to write
        raise SourceError(f"the query gives no table: {' '.join(str(error).split())}", path=database) from error
    return checksum(database) if stored else ""


def _write_postgresql(address: str, sql: str, path: Path) -> None:
    """Write what a query gives to a Parquet file, in a transaction that cannot write."""
    if not address.startswith(POSTGRESQL):
        text = f"queries go to a DuckDB file or a PostgreSQL server ({POSTGRESQL[0]}…)."
        raise SourceError(text, path=hide_password(address))
    pa = load_pyarrow("Results of PostgreSQL")
    (dbapi,) = _load("postgresql", "PostgreSQL databases", "adbc_driver_postgresql.dbapi")
    try:
        with dbapi.connect(address) as connection, connection.cursor() as cursor:
            cursor.execute("set transaction read only")
            cursor.execute(sql.strip().rstrip(";"))
            reader = cursor.fetch_record_batch()
            if not reader.schema.names:
                raise SourceError("the query gives no table: the statement has no rows.")
            batches = decode_numerics(reader)
            with pa.parquet.ParquetWriter(path, next(batches)) as file:
                for batch in batches:
                    file.write_batch(batch)
    except (dbapi.Error, pa.ArrowException, OSError) as error:
        text = f"the query gives no table: {' '.join(str(error).split())}"
        raise SourceError(text.replace(address, hide_password(address)), path=hide_password(address)) from error
    except SourceError as error:
        error.path = hide_password(address)
        raise


def decode_numerics(reader: Any) -> Iterator[Any]:
    """Yield the schema, then the batches, with PostgreSQL's ``numeric``, which ADBC hands over as text, in float64."""
    pa = load_pyarrow()
    schema = reader.schema
    told = [b"numeric" in (f.metadata or {}).get(b"ADBC:postgresql:typname", b"") for f in schema]
    if not any(told):
        yield schema
        yield from reader
        return
    changed = [pa.field(f.name, pa.float64()) if t else f for f, t in zip(schema, told, strict=True)]
    yield (changed := pa.schema(changed))
    for batch in reader:
        columns = [
            getattr(column, "storage", column).cast(pa.float64()) if t else column
            for column, t in zip(batch.columns, told, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=changed)


@contextmanager
def spool_standard_input() -> Iterator[Spool]:
    """Give standard input as a file whose name ends as its first bytes say, so that it can be read more than once.

    The file is removed where the block fails; else the block says what it is kept for.
    """
    if sys.stdin is None or sys.stdin.isatty():
        raise SourceError(f"{STDIN} is a terminal. Pipe a file into the command, or name a file.")
    stream: Any = getattr(sys.stdin, "buffer", sys.stdin)
    head = stream.read(CHUNK)
    if not head:
        raise SourceError(f"{STDIN} is empty (0 bytes).")
    path = Path(tempfile.mkdtemp(prefix="gramian-"), "stdin")
    try:
        digest, packing = hashlib.sha256(), find_packing(head)
        with path.open("wb") as file:
            while head:
                file.write(head)
                digest.update(head)
                head = stream.read(CHUNK)
        with open_unpacked(path) as inside:
            first = inside.read(512)
        suffix = content_of(first)
        if not suffix:
            raise SourceError(f"{STDIN} holds binary data of no known kind (it begins {first[:16]!r}).")
        if suffix == ".npz" and (kind := kind_of_archive(path)):
            suffix = kind
        yield Spool(path.rename(path.with_name(f"stdin{suffix}{packing}")), digest.hexdigest())
    except BaseException as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        if isinstance(error, SourceError):
            error.path = STDIN
        raise


@cache
def load_pyarrow(what: str = "Parquet and Feather files") -> Any:
    """Return pyarrow with its readers of CSV, Parquet and Feather."""
    return _load("tables", what, "pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet")[0]


def load_calamine() -> Any:
    """Return python-calamine."""
    return _load("tables", "Excel and OpenDocument tables", "python_calamine")[0]


def load_fsspec() -> Any:
    """Return fsspec."""
    return _load("remote", "Addresses such as s3://…", "fsspec", "fsspec.core")[0]


def load_h5py() -> Any:
    """Return h5py."""
    return _load("arrays", "HDF5 files", "h5py")[0]


def load_zarr() -> Any:
    """Return zarr."""
    return _load("arrays", "Zarr arrays", "zarr")[0]


def load_pgenlib() -> Any:
    """Return pgenlib."""
    return _load("genetics-files", ".pgen files", "pgenlib")[0]


def load_bgen() -> Any:
    """Return bgen."""
    return _load("genetics-files", ".bgen files", "bgen")[0]


def load_cyvcf2() -> Any:
    """Return cyvcf2."""
    return _load("genetics-files", "VCF and BCF files", "cyvcf2")[0]


def load_anndata_io() -> Any:
    """Return anndata's readers of single elements."""
    return _load("arrays", ".h5ad files", "anndata.io")[0]


def _load(extra: str, what: str, *modules: str) -> list[Any]:
    """Import modules of an optional package; an error names what it reads and the extra that installs it."""
    try:
        return [import_module(module) for module in modules]
    except ImportError as error:
        package = modules[0].partition(".")[0]
        raise ImportError(
            f'{what} are read with {package}, which is not installed: pip install "gramian[{extra}]"'
        ) from error


def write_parquet(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """Write columns of one length as a Parquet file, compressed by zstd.

    Parameters
    ----------
    path : path-like
        Where; what is there is replaced.
    columns : mapping of str to array-like
        Names and values.

    Examples
    --------
    >>> import tempfile, gramian
    >>> from gramian.sources.files import write_parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(f"{folder}/x.parquet", {"a": [1.0, 2.0], "b": [3, 4]})
    ...     gramian.open(f"{folder}/x.parquet").values
    array([[1., 3.],
           [2., 4.]])
    """
    pa = load_pyarrow()
    pa.parquet.write_table(pa.table(dict(columns)), os.fspath(path), compression="zstd")
