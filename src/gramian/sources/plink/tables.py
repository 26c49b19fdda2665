"""Who the samples are and where the SNPs lie: the ``.fam`` and ``.bim`` files of PLINK."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Samples", "Snps", "read_bim", "read_fam"]

Text = npt.NDArray[np.object_]

FAM = ("family", "sample", "father", "mother", "sex", "phenotype")
BIM = ("chromosome", "SNP", "position in centimorgans", "position", "allele 1", "allele 2")
SHOWN = 3  # examples of repeated names in a note

R = TypeVar("R", bound="Rows")


class Rows:
    """Columns of equal length under names, of which some rows may be taken."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]

    def take(self: R, rows: Any) -> R:
        """The rows of an index or a mask."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Samples(Rows):
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
        zero, iid = _text(["0"] * n), _text([f"s{i + 1}" for i in range(n)])
        return cls(zero, iid, zero, zero, np.zeros(n, np.int8), _text(["-9"] * n))

    @property
    def names(self) -> list[str]:
        """FID:IID, or IID alone where there is no family."""
        return [i if f in ("0", "") else f"{f}:{i}" for f, i in zip(self.fid, self.iid, strict=True)]

    def notes(self) -> list[str]:
        """What a reader should know: names that are missing or given twice."""
        absent = [f"line {i + 1}" for i, name in enumerate(self.iid) if name in ("0", "")]
        found = [f"{len(absent)} samples have no name ({_few(absent)})."] if absent else []
        return found + _repeated(list(zip(self.fid, self.iid, strict=True)), "samples", skip=("0", ""))


@dataclass(frozen=True, eq=False)
class Snps(Rows):
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
        names = _text([f"snp{j + 1}" for j in range(p)])
        place = 1000 * np.arange(1, p + 1, dtype=np.int64)
        return cls(_text(["1"] * p), names, np.zeros(p), place, _text(["A"] * p), _text(["G"] * p))

    def notes(self) -> list[str]:
        """What a reader should know: names that are missing or given twice."""
        absent = [f"line {j + 1}" for j, name in enumerate(self.id) if name in (".", "")]
        found = [f"{len(absent)} SNPs have no name ({_few(absent)})."] if absent else []
        return found + _repeated([(name,) for name in self.id], "SNPs", skip=(".", ""))


def read_fam(path: Path) -> Samples:
    """Read a ``.fam`` file: family, name, father, mother, sex, phenotype, between tabs or spaces."""
    fid, iid, father, mother, sex, phenotype = _columns(path, FAM)
    codes = np.array([{"1": 1, "2": 2}.get(code, 0) for code in sex], dtype=np.int8)
    return Samples(fid, iid, father, mother, codes, phenotype)


def read_bim(path: Path) -> Snps:
    """Read a ``.bim`` file: chromosome, name, centimorgans, base pairs, both alleles, between tabs or spaces."""
    chromosome, name, cm, position, a1, a2 = _columns(path, BIM)
    known = {code: chromosome_name(code) for code in set(chromosome)}
    places = _numbers(path, position, np.int64, BIM[3])
    centimorgans = _numbers(path, cm, np.float64, BIM[2])
    name[name == ""] = "."
    return Snps(_text([known[code] for code in chromosome]), name, centimorgans, places, a1, a2)


def chromosome_name(code: str) -> str:
    """1–22, X, Y, XY, MT or 0 for any spelling of them; anything else unchanged.

    Examples
    --------
    >>> from gramian.sources.plink.tables import chromosome_name
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


def _columns(path: Path, names: Sequence[str]) -> list[Text]:
    """The columns of a file of lines with as many fields as there are names."""
    text = _read(path)
    first = text.split("\n", 1)[0]
    if not text.strip():
        raise ValueError(f"{path}: the file is empty; {len(names)} columns were expected ({', '.join(names)}).")
    # between tabs a field may be empty or hold spaces; otherwise any white space parts the fields
    delimiter = "\t" if first.count("\t") == len(names) - 1 else None
    try:
        table = np.loadtxt(io.StringIO(text), dtype=object, delimiter=delimiter, comments=None, ndmin=2)
    except ValueError as error:
        raise ValueError(_ragged(path, text, delimiter, names) or f"{path}: {error}") from error
    if table.shape[1] != len(names):
        raise ValueError(_ragged(path, text, delimiter, names))
    columns = [np.ascontiguousarray(column) for column in table.T]
    if delimiter is None or not (" " in text or "\r" in text):
        return columns
    return [_text([field.strip() for field in column]) for column in columns]


def _read(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file; a .bed file needs its .bim and .fam beside it.") from None
    except IsADirectoryError:
        raise IsADirectoryError(f"{path} is a folder; a file was expected.") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}: line {line} holds the byte 0x{raw[error.start]:02x} at position {error.start}, which is not "
            "UTF-8 text. Save the file as UTF-8."
        ) from error


def _ragged(path: Path, text: str, delimiter: str | None, names: Sequence[str]) -> str:
    """Name the first line with another number of fields; nothing where there is none."""
    for i, line in enumerate(text.split("\n")):
        found = len(line.split(delimiter))
        if line.strip() and found != len(names):
            return f"{path}: line {i + 1} has {found} fields; {len(names)} were expected ({', '.join(names)})."
    return ""


def _numbers(path: Path, column: Text, dtype: Any, name: str) -> npt.NDArray[Any]:
    try:
        return column.astype(str).astype(dtype)
    except (ValueError, OverflowError):
        for i, field in enumerate(column):
            try:
                dtype(field)
            except (ValueError, OverflowError):
                lines = [number for number, line in enumerate(_read(path).split("\n"), 1) if line.strip()]
                raise ValueError(f"{path}: line {lines[i]}: the {name} {field!r} is not a number.") from None
        raise


def _text(values: Sequence[str]) -> Text:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _repeated(keys: list[tuple[str, ...]], what: str, skip: tuple[str, ...]) -> list[str]:
    """A note on keys that occur more than once."""
    if len(set(keys)) == len(keys):
        return []
    more = [(key, times) for key, times in Counter(keys).items() if times > 1 and key[-1] not in skip]
    if not more:
        return []
    examples = _few([f"{' '.join(key)} ({times} times)" for key, times in more])
    names = f"{len(more)} names of {what} are" if len(more) > 1 else f"1 name of {what} is"
    return [f"{names} given more than once: {examples}."]


def _few(items: list[str]) -> str:
    return ", ".join(items[:SHOWN]) + (", …" if len(items) > SHOWN else "")
