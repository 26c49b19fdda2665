"""PLINK's binary files: genotypes of two bits as a memory map, and the samples and SNPs that they belong to."""

from __future__ import annotations

import errno
import functools
import gzip
import io
import mmap
import os
import re
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from gramian.compute import genotypes as loops
from gramian.compute.bits import compiled_loops
from gramian.compute.devices import gpu, is_tensor, to_device, to_numpy
from gramian.compute.executor import HERE, SHARES, current_executor
from gramian.compute.threads import parallel
from gramian.sources.base import Block, Source, memory_budget

COPY = 2**22  # bytes that a thread copies at a time


def read_file(path: Path, offset: int, out: npt.NDArray[np.uint8]) -> None:
    """Fill a contiguous array with the bytes of a file from an offset on; a file that ends before is refused."""
    flat = out.reshape(-1)
    file = os.open(path, os.O_RDONLY)

    def read(share: Sequence[int]) -> None:
        for start in share:
            stop = min(start + COPY, len(flat))
            while start < stop:
                count = os.preadv(file, [flat[start:stop].data], offset + start)
                if not count:
                    raise ValueError(f"{path}: the file has become shorter since it was opened.")
                start += count

    try:
        parallel(read, range(0, len(flat), COPY))
    finally:
        os.close(file)


SECONDS = 1.5e-9  # for counting a genotype, by NumPy
BLOCK = 2**20  # packed bytes looked at together: their temporary arrays stay in a core's cache


class Counts(NamedTuple):
    """How often each genotype occurs: two A1, one, none, missing.

    Attributes
    ----------
    by_snp : ndarray of shape (p, 4)
        Among the samples, for each SNP.
    by_sample : ndarray of shape (n, 4)
        Among the SNPs, for each sample.
    """

    by_snp: npt.NDArray[np.int64]
    by_sample: npt.NDArray[np.int64]


def host_counts(source: Genotypes) -> Counts:
    """Count in blocks of SNPs, shared between the cores or the workers of a cluster: one pass."""
    mask = loops.sample_mask(source.sample_index, source.width)
    n, p = source.shape
    by_snp = np.zeros((p, 4), dtype=np.int64)
    executor, compiled = current_executor(), compiled_loops(n * p * SECONDS)
    if executor is not HERE and p and source.has_address:
        cuts = np.linspace(0, p, min(SHARES, p) + 1).astype(int).tolist()
        shares = [source.share_of_snps(a, b) for a, b in pairwise(cuts)]
        found = list(executor.map(count_share, shares))
        by_sample = functools.reduce(np.add, (counts.by_sample for counts in found))
        return Counts(np.concatenate([counts.by_snp for counts in found]), by_sample)

    def work(share: Any) -> npt.NDArray[np.int64]:
        by_sample = np.zeros((4 * source.width, 4), dtype=np.int64)
        for start, stop in share:
            block = source.packed(start, stop)
            by_snp[start:stop], calls = loops.block_counts(block, mask, n, compiled)
            by_sample += calls
            source.give_back()
        return by_sample

    spans = source.spans(max(1, BLOCK // max(1, source.width)))
    parts = parallel(work, spans) if spans else [np.zeros((4 * source.width, 4), dtype=np.int64)]
    return Counts(by_snp, np.sum(parts, axis=0)[source.sample_index])


def count_share(share: PackedShare) -> Counts:
    """Count the SNPs of a share."""
    mask = loops.sample_mask(share.sample_index, share.width)
    (n, p), step = share.shape, max(1, BLOCK // max(1, share.width))
    compiled = compiled_loops(n * p * SECONDS)
    by_snp, by_sample = np.zeros((p, 4), dtype=np.int64), np.zeros((4 * share.width, 4), dtype=np.int64)
    for start in range(0, p, step):
        block = share.packed(start, start + step)
        by_snp[start : start + step], calls = loops.block_counts(block, mask, n, compiled)
        by_sample += calls
    return Counts(by_snp, by_sample[share.sample_index])


def device_counts(source: Genotypes, blocks: Any, device: Any) -> Counts:
    """Count the blocks of SNPs that are on a device, or come to it one after the other: one pass."""
    n, p = source.shape
    on = gpu().genotypes
    kept = (
        None if source.complete else to_device(np.bincount(source.sample_index, minlength=4 * source.width) > 0, device)
    )
    by_snp, by_sample = to_device(np.zeros((p, 4), dtype=np.int64), device), 0
    for start, stop, block in blocks:
        by_snp[start:stop] = on.snp_counts(block, kept, n)
        by_sample = by_sample + on.sample_counts(block)
    return Counts(to_numpy(by_snp), to_numpy(by_sample).reshape(-1, 4)[source.sample_index])


Text = npt.NDArray[np.object_]

FAM = ("family", "sample", "father", "mother", "sex", "phenotype")
BIM = ("chromosome", "SNP", "position in centimorgans", "position", "allele 1", "allele 2")
SHORT_BIM = tuple(name for name in BIM if name != BIM[2])
SHOWN = 3  # examples of repeated names in a note

R = TypeVar("R", bound="NamedColumns")


class NamedColumns:
    """Columns of equal length under names, of which some rows may be taken."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]

    def take(self: R, rows: Any) -> R:
        """The rows of an index or a mask."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Samples(NamedColumns):
    """The people of a study, as a ``.fam`` file lists them.

    Attributes
    ----------
    fid, iid, father, mother : ndarray of str
        Family, own name within it, and the parents' names.
    sex : ndarray of int8
        1 male, 2 female, 0 unknown.
    phenotype : ndarray of str
        As written.

    Examples
    --------
    >>> from gramian.sources.plink import Samples
    >>> Samples.numbered(2).names
    ['s1', 's2']
    """

    fid: Text
    iid: Text
    father: Text
    mother: Text
    sex: npt.NDArray[np.int8]
    phenotype: Text

    @classmethod
    def numbered(cls, n: int) -> Samples:
        """Samples s1, s2, … without families."""
        zero, iid = text_array(["0"] * n), text_array([f"s{i + 1}" for i in range(n)])
        return cls(zero, iid, zero, zero, np.zeros(n, np.int8), text_array(["-9"] * n))

    @property
    def names(self) -> list[str]:
        """FID:IID, or IID alone where there is no family."""
        return [i if f in ("0", "") else f"{f}:{i}" for f, i in zip(self.fid, self.iid, strict=True)]

    def notes(self) -> list[str]:
        """What a reader should know: names that are missing or given twice."""
        keys: list[tuple[str, ...]] = list(zip(self.fid, self.iid, strict=True))
        blank = [" ".join(key) for key in keys if any(len(part.split()) > 1 for part in key)]
        found = _note_names(keys, "samples", none=("0", ""))
        if blank:
            found.append(f"{len(blank)} samples have white space in their names, _ in text files: {_few(blank)}.")
        return found


@dataclass(frozen=True, eq=False)
class Snps(NamedColumns):
    """The markers of a study, as a ``.bim`` file lists them.

    Attributes
    ----------
    chromosome, id : ndarray of str
        Chromosome as 1–22, X, Y, XY, MT or 0 (unplaced) where it is one of these in any spelling, else as written;
        and the name, ``.`` where there is none.
    cm : ndarray of float64
        Position in centimorgans.
    position : ndarray of int64
        Position in base pairs.
    a1, a2 : ndarray of str
        The allele that is counted, and the other.

    Examples
    --------
    >>> from gramian.sources.plink import Snps
    >>> Snps.numbered(2).id.tolist()
    ['snp1', 'snp2']
    """

    chromosome: Text
    id: Text
    cm: npt.NDArray[np.float64]
    position: npt.NDArray[np.int64]
    a1: Text
    a2: Text

    @classmethod
    def numbered(cls, p: int) -> Snps:
        """SNPs snp1, snp2, … on chromosome 1, a thousand base pairs apart."""
        names = text_array([f"snp{j + 1}" for j in range(p)])
        place = 1000 * np.arange(1, p + 1, dtype=np.int64)
        return cls(text_array(["1"] * p), names, np.zeros(p), place, text_array(["A"] * p), text_array(["G"] * p))

    @functools.cached_property
    def are_named(self) -> bool:
        """Whether every SNP has a name, and each a name of its own."""
        names = set(self.id)
        return len(names) == len(self.id) and not names & {".", ""}

    def notes(self) -> list[str]:
        """What a reader should know: names that are missing or given twice, and alleles that are several."""
        found = [] if self.are_named else _note_names([(name,) for name in self.id], "SNPs", none=(".", ""))
        if "," in "".join(self.a1) or "," in "".join(self.a2):
            several = np.array(["," in one or "," in other for one, other in zip(self.a1, self.a2, strict=True)])
            found.append(
                f"{several.sum()} SNPs name several alleles as one: {_few(list(self.id[several]))}. Their calls are "
                "taken as they stand, of two alleles; split such records before (bcftools norm -m-), or leave them out."
            )
        return found


def read_fam(path: Path) -> Samples:
    """Read a ``.fam`` file: family, name, father, mother, sex, phenotype, between tabs or spaces.

    Further columns are further phenotypes, and not read; without a phenotype it is −9. Lines that begin with ``#``
    are no samples: PLINK 1.9 and 2 skip them. Nor is a first line "FID IID …".
    """
    columns = _columns(path, FAM, len(FAM) - 1, None)
    if (columns[0][0].upper(), columns[1][0].upper()) == ("FID", "IID"):
        columns = [column[1:] for column in columns]
    fid, iid, father, mother, sex, *more = columns
    return Samples(fid, iid, father, mother, sex_codes(sex), more[0] if more else text_array(["-9"] * len(fid)))


def sex_codes(column: Text) -> npt.NDArray[np.int8]:
    """1 male, 2 female, 0 unknown, of any way of writing them."""
    known = {"1": 1, "2": 2, "m": 1, "f": 2, "male": 1, "female": 2}
    return np.array([known.get(code.lower(), 0) for code in column], dtype=np.int8)


def read_bim(path: Path) -> Snps:
    """Read a ``.bim`` file: chromosome, name, centimorgans, base pairs, both alleles, between tabs or spaces.

    Five columns are those without centimorgans.
    """
    columns = _columns(path, BIM, len(SHORT_BIM), len(BIM), {BIM[2]: np.float64, BIM[3]: np.int64})
    chromosome, name, *distance, position, a1, a2 = columns
    known = {code: chromosome_name(code) for code in set(chromosome)}
    places = _numbers(path, position, np.int64, BIM[3])
    centimorgans = _numbers(path, distance[0], np.float64, BIM[2]) if distance else np.zeros(len(name))
    name[name == ""] = "."
    return Snps(text_array([known[code] for code in chromosome]), name, centimorgans, places, a1, a2)


def chromosome_name(code: str) -> str:
    """1–22, X, Y, XY, MT or 0 for any spelling of them; anything else unchanged.

    Examples
    --------
    >>> from gramian.sources.plink import chromosome_name
    >>> [chromosome_name(code) for code in ("chr7", "23", "m", "07", "GL000192.1")]
    ['7', 'X', 'MT', '7', 'GL000192.1']
    """
    bare = code.upper().removeprefix("CHR")
    if bare.isdecimal():
        bare = str(int(bare))
    special = {"23": "X", "24": "Y", "25": "XY", "26": "MT", "M": "MT", "PAR1": "XY", "PAR2": "XY", "UN": "0", "": "0"}
    found = special.get(bare, bare)
    return found if found in _CHROMOSOMES else code


_CHROMOSOMES = {str(i) for i in range(23)} | {"X", "Y", "XY", "MT"}


def _columns(
    path: Path, names: Sequence[str], least: int, most: int | None, numbers: Mapping[str, Any] | None = None
) -> list[Any]:
    """The columns of a file of lines with as many fields as the first, ``least`` to ``most`` of them.

    Where there are more, those that have no name are left out. Columns of ``numbers`` have that type where all of the
    file is as plain as that, and are text like others where it is not.
    """
    text = _read(path)
    if "#" in text:  # a blank line in place of a comment keeps the numbers of the lines that messages name
        text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
    if not text.strip():
        raise ValueError(f"{path}: the file is empty; {len(names)} columns were expected ({', '.join(names)}).")
    first = text.lstrip("\r\n").split("\n", 1)[0]
    # between tabs a field may be empty or hold spaces; otherwise any white space parts the fields
    delimiter = "\t" if first.count("\t") >= least - 1 else None
    width = len(first.split(delimiter))
    if numbers and width == len(names) and not (" " in text or "\r" in text):
        dtype = np.dtype([(name, numbers.get(name, object)) for name in names])
        with suppress(ValueError, DeprecationWarning), warnings.catch_warnings():
            warnings.simplefilter("error")  # a whole number that is written as another
            rows = np.loadtxt(io.StringIO(text), dtype=dtype, delimiter=delimiter, comments=None, ndmin=1)
            return [np.ascontiguousarray(rows[name]) for name in names]
    try:
        table = np.loadtxt(io.StringIO(text), dtype=object, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError as error:
        raise ValueError(_describe_ragged(path, text, delimiter, names, width) or f"{path}: {error}") from error
    if not least <= width or (most is not None and width > most):
        raise ValueError(_describe_ragged(path, text, delimiter, names, len(names)))
    columns = [np.ascontiguousarray(column) for column in table.T[: len(names)]]
    if delimiter is None or not (" " in text or "\r" in text):
        return columns
    return [text_array([field.strip() for field in column]) for column in columns]


def _read(path: Path) -> str:
    if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe that nobody writes to would be waited for
        raise ValueError(f"{path} is a pipe or a device; a file was expected.")
    try:
        raw = path.read_bytes()
        if path.suffix == ".gz":
            raw = gzip.decompress(raw)
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; a .bed file needs its .bim and .fam beside it.") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder; a file was expected.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: cut short or damaged, not a whole gzip file ({error}).") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}: line {line} holds the byte 0x{raw[error.start]:02x} at position {error.start}, which is not "
            "UTF-8 text. Save the file as UTF-8."
        ) from error


def _describe_ragged(path: Path, text: str, delimiter: str | None, names: Sequence[str], width: int) -> str:
    """Name the first line with another number of fields; nothing where there is none."""
    named = ", ".join(names) if width == len(names) else "as in the first line"
    for i, line in enumerate(text.split("\n")):
        found = len(line.split(delimiter))
        if line.strip() and found != width:
            blank = "" if delimiter or found < width else " A name with a blank in it is read between tabs."
            return f"{path}: line {i + 1} has {found} fields; {width} were expected ({named}).{blank}"
    return ""


def _numbers(path: Path, column: Any, dtype: Any, name: str) -> npt.NDArray[Any]:
    """A column as numbers; whole ones may be written as 1e+05, as R does."""
    if column.dtype == dtype:
        return np.asarray(column)
    try:
        return np.asarray(column.astype(str).astype(dtype))
    except (ValueError, OverflowError):
        found = np.empty(len(column), dtype)
        for i, field in enumerate(column):
            try:
                found[i] = dtype(field) if _INTEGER.fullmatch(field) or dtype is np.float64 else _whole(field)
            except (ValueError, OverflowError):
                numbered = enumerate(_read(path).split("\n"), 1)
                lines = [number for number, line in numbered if line.strip() and line[0] != "#"]
                whole = "" if dtype is np.float64 else "whole "
                raise ValueError(f"{path}: line {lines[i]}: the {name} {field!r} is not a {whole}number.") from None
        return found


_INTEGER = re.compile(r"[+-]?\d+")


def _whole(field: str) -> int:
    value = float(field)
    if not value.is_integer() or abs(value) >= 2**53:
        raise ValueError(field)
    return int(value)


def text_array(values: Sequence[str]) -> Text:
    """Strings as an array of Python objects."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _note_names(keys: list[tuple[str, ...]], what: str, none: tuple[str, ...]) -> list[str]:
    """Notes on keys whose name is missing, and on those that occur more than once."""
    absent = [f"line {i + 1}" for i, key in enumerate(keys) if key[-1] in none]
    notes = [f"{len(absent)} {what} have no name ({_few(absent)})."] if absent else []
    more = [(key, times) for key, times in Counter(keys).items() if times > 1 and key[-1] not in none]
    if more:
        names = f"{len(more)} names of {what} are" if len(more) > 1 else f"1 name of {what} is"
        examples = _few([f"{' '.join(key)} ({times} times)" for key, times in more])
        notes.append(f"{names} given more than once: {examples}.")
    return notes


def _few(items: list[str]) -> str:
    return ", ".join(items[:SHOWN]) + (", …" if len(items) > SHOWN else "")


Index = npt.NDArray[np.intp]

STRETCH = 4096  # SNPs whose products a GPU sums in one go
RESIDENT = 2**31  # bytes on a GPU that are multiplied together: more would need more memory beside them


class StackedRows:
    """Tables of packed genotypes under one another, each where it lies: the files of a study in several files.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.sources.plink import StackedRows
    >>> rows = StackedRows([np.zeros((2, 1), np.uint8), np.ones((3, 1), np.uint8)])
    >>> rows[1:4].ravel().tolist(), rows[np.array([0, 4])].ravel().tolist()
    ([0, 1, 1], [0, 1])
    """

    def __init__(self, parts: Sequence[npt.NDArray[np.uint8]]) -> None:
        self.parts = list(parts)
        self.starts = np.concatenate([[0], np.cumsum([len(part) for part in self.parts])])
        self.shape = (int(self.starts[-1]), self.parts[0].shape[1])
        self.nbytes = self.shape[0] * self.shape[1]

    def __getitem__(self, rows: slice | Index) -> npt.NDArray[np.uint8]:
        """A stretch of rows, or those of ascending indices: a view where one table holds them."""
        first, last = (
            (rows.start, rows.stop) if isinstance(rows, slice) else (rows[0], rows[-1] + 1) if len(rows) else (0, 0)
        )
        held = []
        for i in range(*np.clip(np.searchsorted(self.starts, [first, last], "right") - [1, 0], 0, len(self.parts))):
            start, stop = int(self.starts[i]), int(self.starts[i + 1])
            if isinstance(rows, slice):
                held.append(self.parts[i][max(first - start, 0) : max(min(last, stop) - start, 0)])
            else:
                held.append(self.parts[i][rows[(rows >= start) & (rows < stop)] - start])
        if len(held) == 1:
            return held[0]
        return np.concatenate(held) if held else np.empty((0, self.shape[1]), np.uint8)


class PackedRows:
    """What those who hand out packed SNPs have in common: by ``shape`` and ``sample_index``, which each has."""

    def bytes_of(self: Any, start: int, stop: int) -> tuple[slice | Index, Index, int]:
        """Which bytes of a row hold samples start to stop, where in them the samples are, and how many bytes."""
        index = self.sample_index[start:stop]
        held, at = np.unique(index // 4, return_inverse=True)
        one_stretch = held[-1] - held[0] == len(held) - 1
        return slice(int(held[0]), int(held[-1]) + 1) if one_stretch else held, 4 * at + index % 4, len(held)

    def spans(self: Any, rows: int) -> list[tuple[int, int]]:
        """(start, stop) of blocks of SNPs."""
        return [(start, min(start + rows, self.shape[1])) for start in range(0, self.shape[1], rows)]


@dataclass(frozen=True, eq=False)
class PackedShare(PackedRows):
    """Consecutive SNPs of a study, by the names of its files: what a worker reads them by.

    Attributes
    ----------
    files : tuple of (path, offset, rows)
        The files under one another, where in them genotypes begin, and how many SNPs they hold.
    width : int
        Bytes of a SNP.
    sample_index, snp_index : ndarray of int
        Which samples count, and which rows of the files the SNPs are.
    """

    files: tuple[tuple[str, int, int], ...]
    width: int
    sample_index: Index
    snp_index: Index

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and SNPs."""
        return len(self.sample_index), len(self.snp_index)

    def packed(self, start: int, stop: int) -> npt.NDArray[np.uint8]:
        """SNPs start to stop, as stored; the files are mapped while they are read."""
        parts = [np.memmap(path, np.uint8, "r", offset, (rows, self.width)) for path, offset, rows in self.files]
        return np.array(StackedRows(parts)[self.snp_index[start:stop]])

    def give_back(self) -> None:
        """Nothing is kept."""

    def __str__(self) -> str:
        if not len(self.snp_index):
            return "No SNPs"
        return f"SNPs {self.snp_index[0] + 1} to {self.snp_index[-1] + 1} of {', '.join(f[0] for f in self.files)}"


class Genotypes(PackedRows, Source):
    """Some samples and some SNPs of a packed file or array, without a copy of the genotypes.

    As every source it hands out rows, one for each sample: copies of allele A1, NaN where missing. Genotypes are stored
    SNP by SNP, so that what is made for them reads :meth:`packed` blocks of SNPs instead, two bits a genotype.

    Parameters
    ----------
    bytes : uint8 array, or tensor of torch, of shape (SNPs, width)
        Rows of the file, four genotypes a byte. A tensor is counted and multiplied on its device.
    samples, snps : Samples, Snps
        Of the whole file.
    path : Path, optional
        Where the bytes come from.
    sample_index, snp_index : ndarray of int, optional
        The rows of ``samples`` and ``snps`` that are kept, ascending.
    remarks : sequence of str, optional
        What a reader should know of how they were read: records that were left out, calls that were changed.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.sources.plink import Genotypes
    >>> G = Genotypes.from_calls([[0, 1, 2], [2, -1, 0]])
    >>> G.shape, G.counts().by_snp.tolist()
    ((3, 2), [[1, 1, 1, 0], [1, 0, 1, 1]])
    >>> G.select(samples=[True, False, True]).calls(0, 2)
    array([[0, 2],
           [2, 0]], dtype=int8)
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self,
        bytes: Any,
        samples: Samples,
        snps: Snps,
        path: Path | None = None,
        sample_index: Index | None = None,
        snp_index: Index | None = None,
        remarks: Sequence[str] = (),
    ) -> None:
        self._bytes = bytes if is_tensor(bytes) or isinstance(bytes, StackedRows) else np.asarray(bytes)
        self.remarks = tuple(remarks)
        self._all_samples, self._all_snps, self.path = samples, snps, path
        self.n_file = len(samples)
        self.sample_index = np.arange(len(samples)) if sample_index is None else sample_index
        self.snp_index = np.arange(len(snps)) if snp_index is None else snp_index
        self.samples = samples if sample_index is None else samples.take(sample_index)
        self.snps = snps if snp_index is None else snps.take(snp_index)
        self.shape = (len(self.samples), len(self.snps))
        self.resident = path is None
        self._counts: Counts | None = None
        self._by_snp: npt.NDArray[np.int64] | None = None
        # one stretch of the file needs no index to be read
        self._run = self.shape[1] == 0 or bool(self.snp_index[-1] - self.snp_index[0] == self.shape[1] - 1)

    @classmethod
    def from_calls(cls, calls: npt.ArrayLike, samples: Samples | None = None, snps: Snps | None = None) -> Genotypes:
        """Pack an array of SNPs × samples with 0, 1, 2 copies of A1 and −1 for missing."""
        calls = np.ma.filled(calls, -1) if isinstance(calls, np.ma.MaskedArray) else np.asarray(calls)
        if calls.ndim != 2:
            raise ValueError(f"Genotypes are a table of SNPs × samples, not an array of shape {calls.shape}.")
        return cls.from_packed(loops.pack(calls), calls.shape[1], samples, snps)

    @classmethod
    def from_packed(cls, packed: Any, n: int, samples: Samples | None = None, snps: Snps | None = None) -> Genotypes:
        """Take packed genotypes of n samples, SNPs × ⌈n/4⌉ bytes as in a ``.bed`` file: an array, or a tensor of torch.

        Nothing is copied. A tensor on a GPU is counted there, and ``GenotypePCA().fit`` of it runs there.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.sources.plink import Genotypes
        >>> Genotypes.from_packed(np.array([[0b11_10_01_00]], dtype=np.uint8), 3).calls(0, 1)
        array([[ 2, -1,  1]], dtype=int8)
        """
        packed = packed if is_tensor(packed) else np.asarray(packed)
        if packed.ndim != 2 or str(packed.dtype).rpartition(".")[2] != "uint8":
            raise ValueError(
                f"Packed genotypes are a table of bytes (uint8), SNPs × ⌈n/4⌉, not {packed.dtype} of shape "
                f"{tuple(packed.shape)}. Genotypes.from_calls packs copies of an allele."
            )
        p, width = packed.shape
        if width != -(-n // 4):
            raise ValueError(f"{n} samples take {-(-n // 4)} bytes of each SNP; the table has {width}.")
        samples = Samples.numbered(n) if samples is None else samples
        snps = Snps.numbered(p) if snps is None else snps
        if (len(snps), len(samples)) != (p, n):
            raise ValueError(f"{len(snps)} SNPs and {len(samples)} samples are named; the genotypes are {p} × {n}.")
        return cls(packed, samples, snps)

    @property
    def values(self) -> Any:
        """The packed genotypes of all SNPs, samples left out included, where they are a tensor of torch; else None."""
        return self._bytes if is_tensor(self._bytes) else None

    @property
    def complete(self) -> bool:
        """Whether all samples of the file are kept."""
        return len(self.sample_index) == self.n_file

    @property
    def counted(self) -> npt.NDArray[np.int64] | None:
        """What :meth:`snp_counts` returns, where it is known without a pass."""
        return self._by_snp

    @property
    def feature_names(self) -> list[str]:  # type: ignore[override]
        """The names of the SNPs."""
        return [str(name) for name in self.snps.id]

    @property
    def width(self) -> int:
        """Bytes of a SNP."""
        return -(-self.n_file // 4)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how they were read, and of names: which are missing, which are given twice."""
        return (*self.remarks, *self.samples.notes(), *self.snps.notes())

    def select(self, samples: Any = None, snps: Any = None) -> Genotypes:
        """A view of some samples and SNPs: masks, or ascending indices, into those of this one."""
        rows = None if samples is None else _index(samples, self.shape[0], "samples")
        columns = None if snps is None else _index(snps, self.shape[1], "snps")
        view = Genotypes(
            self._bytes,
            self._all_samples,
            self._all_snps,
            self.path,
            self.sample_index if rows is None else self.sample_index[rows],
            self.snp_index if columns is None else self.snp_index[columns],
            self.remarks,
        )
        if rows is None and self._by_snp is not None:  # the same samples: each SNP's counts stay as they are
            view._by_snp = self._by_snp if columns is None else self._by_snp[columns]
        return view

    def renamed(self, ids: npt.ArrayLike) -> Genotypes:
        """The same genotypes with other names of SNPs, one for each of them; counts that are known stay.

        Examples
        --------
        >>> from gramian.sources.plink import Genotypes
        >>> Genotypes.from_calls([[0, 1], [2, 1]]).renamed(["a", "b"]).snps.id.tolist()
        ['a', 'b']
        """
        names = self._all_snps.id.copy()
        names[self.snp_index] = text_array(list(ids))  # type: ignore[arg-type]
        snps = replace(self._all_snps, id=names)
        given = (self.path, self.sample_index, self.snp_index, self.remarks)
        view = Genotypes(self._bytes, self._all_samples, snps, *given)
        view._counts, view._by_snp = self._counts, self._by_snp
        return view

    def packed(self, start: int, stop: int) -> npt.NDArray[np.uint8]:
        """SNPs start to stop, as stored: four of all the file's samples in a byte; a tensor's are fetched."""
        return to_numpy(self._rows(start, stop))

    def _rows(self, start: int, stop: int) -> Any:
        """The same, where they live."""
        if self._run and self.shape[1]:
            first = int(self.snp_index[0])
            return self._bytes[first + start : first + min(stop, self.shape[1])]
        index = self.snp_index[start:stop]
        if self.values is None:
            return self._bytes[index]
        return gpu().uploads.pad_rows(self.values, to_device(index, self.values.device))

    def read_into(self, start: int, stop: int, out: npt.NDArray[np.uint8]) -> None:
        """Copy SNPs start to stop, as stored, by all threads; of a file, without mapping its pages."""
        mapped = getattr(self._bytes, "base", None)
        if isinstance(mapped, np.memmap) and self._run and self.path is not None and hasattr(os, "preadv"):
            read_file(self.path, mapped.offset + (int(self.snp_index[0]) + start) * self.width, out)
            return
        step = max(1, COPY // max(1, self.width))

        def copy(share: Any) -> None:
            for first in share:
                last = min(first + step, stop)
                out[first - start : last - start] = self.packed(first, last)

        parallel(copy, range(start, stop, step))
        self.give_back()

    def on(self, device: Any) -> Genotypes:
        """These SNPs with their bytes on a device, a ``torch.device``, at whole words; counts that are known stay."""
        on, here = gpu().uploads, self.values is not None and self.values.device == device
        if here and on.is_aligned(self.values):
            return self
        if here:  # rows of a tensor on a GPU that are read byte by byte are read many times as fast from a padded copy
            bytes_ = on.pad_rows(self.values, to_device(self.snp_index, device))
        else:
            bytes_ = on.upload(self.read_into, self.shape[1], self.width, device)
        moved = Genotypes(bytes_, self._all_samples, self.snps, sample_index=self.sample_index)
        moved.samples, moved._counts, moved._by_snp = self.samples, self._counts, self._by_snp
        return moved

    def blocks_on(self, device: Any, uploader: Any = None) -> Iterator[tuple[int, int, Any]]:
        """Yield (start, stop, packed SNPs on a device): views of what is there, else each good until the next but one.

        Parameters
        ----------
        device : torch.device
            Where.
        uploader : Uploader, optional
            To go through, where there is one from an earlier pass.
        """
        if self.values is not None and self.values.device == device:
            for start, stop in self.spans(max(STRETCH, RESIDENT // max(1, self.width) // STRETCH * STRETCH)):
                yield start, stop, self._rows(start, stop)
            return
        if uploader is None:
            uploader = gpu().uploads.Uploader(self.width, device, self.shape[1], padded=True)
        yield from uploader(uploader.cut(self.shape[1], self.read_into))

    def _files(self) -> tuple[tuple[str, int, int], ...]:
        """Return the files that the bytes are maps of, where each begins, and its SNPs; nothing where they are not."""
        found = []
        for part in self._bytes.parts if isinstance(self._bytes, StackedRows) else [self._bytes]:
            base = getattr(part, "base", None)
            if not isinstance(base, np.memmap) or base.filename is None or len(base) != len(part):
                return ()
            if not os.path.exists(base.filename):  # a temporary file that nobody else sees
                return ()
            found.append((os.path.abspath(base.filename), int(base.offset), len(part)))
        return tuple(found)

    @property
    def has_address(self) -> bool:
        """Whether workers can read the bytes from files that they know by name."""
        return bool(self._files())

    def share_of_snps(self, start: int, stop: int) -> PackedShare:
        """Return what a worker reads SNPs start to stop by."""
        return PackedShare(self._files(), self.width, self.sample_index, self.snp_index[start:stop])

    def calls(self, start: int, stop: int) -> npt.NDArray[np.int8]:
        """Copies of A1 of SNPs start to stop × samples, −1 where missing."""
        found = loops.calls(self.packed(start, stop), self.n_file)
        return found if self.complete else found[:, self.sample_index]

    def counts(self, device: Any = None) -> Counts:
        """How often each genotype occurs, by SNP and by sample: one pass, once, on a device where one is given."""
        if self._counts is None:
            device = self.values.device if device is None and self.values is not None else device
            on = None if device is None else device_counts(self, self.blocks_on(device), device)
            self._counts = host_counts(self) if on is None else on
            self._by_snp = self._counts.by_snp
        return self._counts

    def snp_counts(self) -> npt.NDArray[np.int64]:
        """How often each genotype occurs, by SNP: known without a pass where a view of more SNPs has counted."""
        return self.counts().by_snp if self._by_snp is None else self._by_snp

    def blocks(self, rows: int | None = None) -> Iterator[Block]:
        """Yield blocks of samples: copies of A1 in float64, NaN where missing."""
        for start, stop in self.ranges(rows, 12 * self.shape[1]):
            which, place, width = self.bytes_of(start, stop)
            values = np.empty((stop - start, self.shape[1]))
            for first, last in self.spans(max(1, BLOCK // max(width, self.width if not self._run else 1))):
                found = loops.calls(self.packed(first, last)[:, which], 4 * width).T[place]
                values[:, first:last] = np.where(found < 0, np.nan, found)
                self.give_back()
            yield Block(start, stop, values)

    def give_back(self) -> None:
        """Drop a large map's pages from memory: they count as ours until the system takes them back."""
        if self.values is not None or self._bytes.nbytes <= memory_budget() or not hasattr(mmap, "MADV_DONTNEED"):
            return
        for part in self._bytes.parts if isinstance(self._bytes, StackedRows) else [self._bytes]:
            pages = getattr(getattr(part, "base", None), "_mmap", None)
            if pages is not None:
                pages.madvise(mmap.MADV_DONTNEED)


def _index(chosen: Any, size: int, name: str) -> Index:
    """Masks and ascending indices, as indices."""
    given = np.asarray(chosen)
    if given.dtype == bool:
        if given.shape != (size,):
            raise ValueError(f"{name}: a mask of {given.shape} for {size} of them.")
        return np.flatnonzero(given)
    if given.dtype.kind not in "iu" and given.size:
        raise ValueError(
            f"{name}: a mask or indices were expected, not {given.dtype} values such as {given.flat[0]!r}."
        )
    found = given.astype(np.intp).reshape(-1)
    if len(found) and (found[0] < 0 or found[-1] >= size or np.any(np.diff(found) <= 0)):
        raise ValueError(f"{name}: indices must ascend from 0 to {size - 1}, each once.")
    return found


MAGIC = b"\x6c\x1b"
SNP_MAJOR, SAMPLE_MAJOR = 1, 0
HEADER = 3  # bytes before the first SNP


def open_bed(path: str | os.PathLike[str], bim: Any = None, fam: Any = None) -> Genotypes:
    """Open a PLINK 1 fileset by its ``.bed`` file, memory-mapped and checked against its ``.bim`` and ``.fam``.

    Each of the three may be gzipped (``.bed.gz``, ``.bim.gz``, ``.fam.gz``). A ``.bed`` file that is gzipped or
    sample-major is written anew, SNP-major, to a temporary file that nobody else sees and that goes with the process.
    SNPs with a negative position, PLINK's mark for what is to be left out, are left out.

    Parameters
    ----------
    path : path
        The ``.bed`` file.
    bim, fam : path, optional
        The files with the SNPs and the samples, where they are not beside it under the same name.

    Returns
    -------
    Genotypes
        All samples and SNPs.
    """
    bed = Path(path)
    stem = bed.name.removesuffix(".gz").removesuffix(".bed")
    if bed.is_dir():
        raise IsADirectoryError(f"{bed} is a folder; name the .bed file in it.")
    if not bed.exists():
        whole = Path(f"{bed}.bed")
        raise FileNotFoundError(f"{bed}: no such file" + (f"; {whole} is there." if whole.exists() else "."))
    gzipped = bed.suffix == ".gz"
    if gzipped:
        packed = spool_bytes(_gunzip(bed), bed)
        actual, head = packed.size, bytes(packed[:HEADER])
    else:
        with bed.open("rb") as file:
            actual, head = bed.stat().st_size, file.read(HEADER)
    if len(head) < HEADER or head[:2] != MAGIC:
        raise ValueError(
            f"{bed}: not a PLINK .bed file: it begins with the bytes {head.hex(' ') or 'of an empty file'}, "
            f"{MAGIC.hex(' ')} 01 was expected. Files of PLINK before 1.00 are converted by plink1.9 --bfile NAME "
            "--make-bed --out NEW."
        )
    if head[2] not in (SNP_MAJOR, SAMPLE_MAJOR):
        raise ValueError(f"{bed}: the third byte is {head[2]:02x}; 01 (SNP-major) or 00 (sample-major) was expected.")
    samples = read_fam(_find_companion(bed, ".fam") if fam is None else Path(fam))
    snps = read_bim(_find_companion(bed, ".bim") if bim is None else Path(bim))
    n, p = len(samples), len(snps)
    width = -(-n // 4)
    rows, row, of, each = (p, width, n, "SNPs") if head[2] == SNP_MAJOR else (n, -(-p // 4), p, "samples")
    expected = HEADER + rows * row
    if actual != expected:
        whole_rows, rest = divmod(actual - HEADER, row)
        what = "truncated, or its .bim or .fam belongs to another file" if actual < expected else "too long"
        other = "samples" if each == "SNPs" else "SNPs"
        holds = f"It holds {whole_rows} {each} of {of} {other}" + (f" and {rest} bytes." if rest else ".")
        raise ValueError(
            f"{bed}: {what}: {n} samples ({stem}.fam) × {p} SNPs ({stem}.bim) take {expected} bytes, "
            f"the file has {actual}. {holds} Use the three files that were written together."
        )
    packed = packed[HEADER:].reshape(rows, row) if gzipped else np.memmap(bed, np.uint8, "r", HEADER, (rows, row))
    own = not gzipped
    if head[2] == SAMPLE_MAJOR:
        packed, own = spool_bytes(_transpose(packed, p), bed).reshape(p, width), False
    _check_padding(packed, n, bed)
    return leave_out_negative(Genotypes(packed, samples, snps, bed if own else None))


def leave_out_negative(source: Genotypes) -> Genotypes:
    """Without the SNPs whose position is negative, PLINK's mark for SNPs to leave out; said among the remarks."""
    marked = source.snps.position < 0
    if not marked.any():
        return source
    view = source.select(snps=~marked)
    names = _few(list(source.snps.id[marked]))
    view.remarks += (f"{marked.sum()} SNPs have a negative position, which marks them as left out: {names}.",)
    return view


def stack_genotypes(parts: Sequence[Genotypes], names: Sequence[str]) -> Genotypes:
    """The SNPs of several sources with the same samples, one after the other, without a copy.

    Parameters
    ----------
    parts : sequence of Genotypes
        Whole files, with the same samples in the same order.
    names : sequence of str
        What they are called in messages.

    Examples
    --------
    >>> from gramian.sources.plink import Genotypes, stack_genotypes
    >>> a, b = Genotypes.from_calls([[0, 1, 2]]), Genotypes.from_calls([[2, -1, 0], [1, 1, 1]])
    >>> stack_genotypes([a, b], ["a", "b"]).calls(0, 3).tolist()
    [[0, 1, 2], [2, -1, 0], [1, 1, 1]]
    """
    first = parts[0]
    for part, name in zip(parts, names, strict=True):
        if part.shape[0] != first.shape[0]:
            raise ValueError(f"{name}: {part.shape[0]} samples, where {names[0]} has {first.shape[0]}.")
        other = (part.samples.fid != first.samples.fid) | (part.samples.iid != first.samples.iid)
        if other.any():
            i = int(np.flatnonzero(other)[0])
            raise ValueError(
                f"{name}: sample {i + 1} is {part.samples.names[i]}, where {names[0]} has {first.samples.names[i]}. "
                "Files that are read as one have the same samples in the same order."
            )
    each = [{field.name: getattr(part._all_snps, field.name) for field in fields(Snps)} for part in parts]
    snps = Snps(**{name: np.concatenate([columns[name] for columns in each]) for name in each[0]})
    starts = np.cumsum([0, *(len(part._all_snps) for part in parts)])
    kept = np.concatenate([part.snp_index + start for part, start in zip(parts, starts, strict=False)])
    remarks = [f"{name}: {remark}" for part, name in zip(parts, names, strict=True) for remark in part.remarks]
    rows = StackedRows([part._bytes for part in parts])
    index = None if len(kept) == len(snps) else kept
    return Genotypes(rows, first.samples, snps, snp_index=index, remarks=remarks)


def _find_companion(bed: Path, suffix: str) -> Path:
    """The file of a fileset with another ending, gzipped where only that is there."""
    plain = (bed.with_suffix("") if bed.suffix == ".gz" else bed).with_suffix(suffix)
    gzipped = plain.with_name(plain.name + ".gz")
    return gzipped if gzipped.exists() and not plain.exists() else plain


def spool_bytes(blocks: Iterable[Any], path: Path) -> npt.NDArray[np.uint8]:
    """Bytes of any number, by way of an unnamed temporary file: in memory while there is room, else on disk."""
    with tempfile.TemporaryFile() as file:
        try:
            for block in blocks:
                file.write(block)
            file.flush()
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise OSError(
                error.errno,
                f"{path}: no room for its genotypes at two bits each in {tempfile.gettempdir()}. Set TMPDIR to a "
                "folder with more, or convert the file to .bed (gramian convert)",
            ) from error
        if not file.tell():
            return np.empty(0, np.uint8)
        return np.memmap(file, np.uint8, "r")


def _gunzip(path: Path) -> Iterator[bytes]:
    """The content of a gzipped file, a stretch at a time."""
    try:
        with gzip.open(path) as file:
            while block := file.read(BLOCK):
                yield block
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: cut short or damaged, not a whole gzip file ({error}).") from error


def _transpose(packed: npt.NDArray[np.uint8], p: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Rows of p SNPs from rows of samples, both packed."""
    step = max(1, memory_budget() // 64 // max(1, len(packed)))
    for start in range(0, packed.shape[1], step):
        calls = loops.calls(np.ascontiguousarray(packed[:, start : start + step]), p - 4 * start).T
        yield loops.pack(np.ascontiguousarray(calls))


def _check_padding(packed: npt.NDArray[np.uint8], n: int, bed: Path) -> None:
    """Refuse a fileset whose last bytes contradict the number of its samples.

    The bytes of a SNP leave room for up to three samples more; their bits are 0. Bits that are set there belong to
    samples that the ``.fam`` file does not list. A last sample whose bits are 0 at every SNP (two copies of A1), while
    others in the same byte vary, is such room that the ``.fam`` file counts as a sample. Either way every name
    stands beside another's genotypes. At most 1,024 SNPs, spread evenly, are looked at: a wrong number shows in all.
    """
    used = n - 4 * (packed.shape[1] - 1)
    last = np.asarray(packed[:: max(1, packed.shape[0] // 1024), -1])
    beyond = np.bitwise_or.reduce(last >> np.uint8(2 * used)) if used < 4 and last.size else 0
    remedy = f"Use the .fam file that was written with {bed.name}."
    if beyond:
        raise ValueError(
            f"{bed}: the .fam file lists {n} samples, but the last byte of each SNP holds genotypes of more. {remedy}"
        )
    seen = [np.bitwise_or.reduce((last >> np.uint8(2 * i)) & np.uint8(3)) for i in range(used)] if last.size else []
    if last.size >= LEAST_SNPS_FOR_PADDING and used > 1 and not seen[-1] and any(seen[:-1]):
        raise ValueError(
            f"{bed}: the last of the {n} samples of the .fam file has no genotypes but the zero bits that fill up a "
            f"byte: the file holds fewer samples than the .fam file lists. {remedy}"
        )


# A person with two copies of A1 at this many SNPs, where others have none, does not exist: even at a frequency of
# 0.9 the probability is 0.81^64 = 1e-6.
LEAST_SNPS_FOR_PADDING = 64
