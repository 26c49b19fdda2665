"""Readers of files of SNP weights: PLINK 1.9, PLINK 2, smartpca and our own."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.genetics._companion import FORMAT, read_arrays
from gramian.genetics._standardise import SCALES
from gramian.genetics._text_files import Lines, read_lines, text
from gramian.sources.plink.tables import chromosome_name

__all__ = [
    "EIGENVALUES",
    "FREQUENCIES",
    "Weights",
    "companion",
    "find",
    "read_eigenvalues",
    "read_ours",
    "read_weights",
]

Text = npt.NDArray[np.object_]

OURS = ".loadings.npz"
ENDINGS = (OURS, ".eigenvec.var", ".eigenvec.allele", ".snpweight", ".snpwt")
EIGENVALUES = (".eigenval", ".eval")
FREQUENCIES = (".afreq", ".frq")
COMPANION = ("files", "snps", "components", "scaling", "samples", "total_variance", "score_lengths")
# the allele whose copies are weighted, and the other
ALLELES = (("A1", "A2"), ("NONMAJ", "MAJ"), ("ALT", "REF"))
# axes of M SNPs, k components and n samples, and the kind of number or text
FIELDS = dict.fromkeys(("id", "chromosome", "effect", "other"), ("M", "O")) | {
    "position": ("M", "i"),
    "mean": ("M", "f"),
    "scale": ("M", "f"),
    "loadings": ("Mk", "f"),
    "singular_values": ("k", "f"),
    "total_variance": ("", "f"),
    "eigenvectors": ("nk", "f"),
    "fid": ("n", "O"),
    "iid": ("n", "O"),
    "scaling": ("", "U"),
}


@dataclass(frozen=True, eq=False)
class Weights:
    """The rows of a file: SNPs, alleles and weights W of length √M.

    ``stem`` is the name without the ending, and ``program`` what writes such files: "plink" or "smartpca".
    """

    path: Path
    stem: str
    program: str
    scaling: str
    id: Text
    chromosome: Text
    position: npt.NDArray[np.int64]
    effect: Text
    other: Text
    weights: npt.NDArray[np.float64]


def find(path: Path) -> Path:
    """The file of loadings that a prefix, a companion or the file itself names."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the prefix of the results in it, or a file.")
    if path.suffix == ".json":
        return _named_by(path)
    if path.is_file():
        return path
    there = [path.with_name(path.name + ending) for ending in ENDINGS]
    found = next((file for file in there if file.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"{path}: no such file, and no {path.name}{{{', '.join(ENDINGS)}}} either.")
    return found


def _named_by(companion: Path) -> Path:
    """The file of loadings that the companion of a result lists."""
    try:
        content = json.loads(companion.read_text("utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{companion}: not a JSON file: {error}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{companion}: not the companion of a genotype PCA (its format is not {FORMAT!r}).")
    if not isinstance(content.get("files"), dict):
        raise ValueError(f"{companion}: damaged, it lists no files; write the results again.")
    names = [name for ending in ENDINGS for name in content["files"] if name.endswith(ending)]
    if not names:
        raise ValueError(f"{companion}: these results hold no loadings; write them in the format 'gramian'.")
    return companion.with_name(names[0])


def companion(raw: Weights) -> dict[str, Any] | None:
    """What we wrote beside a file of weights of ours; nothing where another program wrote it."""
    path = raw.path.with_name(f"{raw.stem}.json")
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError:
        return None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return None
    lacking = [name for name in COMPANION if name not in content]
    if lacking:
        raise ValueError(f"{path}: damaged, it lacks {', '.join(lacking)}; write the results again.")
    if raw.path.name not in content["files"]:
        return None
    return content if (content["snps"], content["components"]) == raw.weights.shape else None


def read_ours(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a ``.loadings.npz`` file, all there, of the sizes and kinds that were written, and finite."""
    try:
        arrays = read_arrays(path)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path}: not a file of loadings, or damaged: {error}. Write the results again.") from None
    if set(arrays) != set(FIELDS):
        lacking, more = sorted(set(FIELDS) - set(arrays)), sorted(set(arrays) - set(FIELDS))
        what = f"it lacks {', '.join(lacking)}" if lacking else f"it also holds {', '.join(more)}"
        raise ValueError(f"{path}: not a file of loadings: {what}.")
    _check(path, arrays)
    return arrays


def _check(path: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Refuse arrays of other sizes or kinds than were written, and what is not finite."""
    sizes = dict(zip("Mk", arrays["loadings"].shape, strict=False)) | {"n": len(np.atleast_1d(arrays["iid"]))}
    for name, (axes, kind) in FIELDS.items():
        shape, a = tuple(sizes.get(axis, -1) for axis in axes), arrays[name]
        if a.shape != shape or a.dtype.kind != kind:
            raise ValueError(f"{path}: damaged: {name} is {a.dtype} of shape {a.shape}, not of shape {shape}.")
        if kind == "f" and not np.isfinite(a).all():
            raise ValueError(f"{path}: damaged: {name} holds what is not a finite number.")
    if str(arrays["scaling"]) not in SCALES:
        raise ValueError(f"{path}: scaling {str(arrays['scaling'])!r} is none of {', '.join(SCALES)}.")


def read_weights(path: Path) -> Weights:
    """Read a file of PLINK's or smartpca's, told apart by its first line."""
    lines = read_lines(path, _is_header, _weight_columns)
    if lines.header is None:
        return _without_header(lines)
    if lines.place("A1") is not None and lines.place("ALT") is not None:
        return _by_allele(lines)
    return _with_header(lines)


def _is_header(fields: list[str]) -> bool:
    return fields[0].lstrip("#") in ("CHR", "CHROM")


def _weight_columns(fields: list[str]) -> Sequence[int]:
    """Which columns are numbers: PLINK's weights, or smartpca's positions and weights."""
    if _is_header(fields):
        return [j for j, name in enumerate(fields) if _is_component(name) or name == "POS"]
    if _is_plink(fields):
        return range(4, len(fields))
    if len(fields) > 3 and _is_number(fields[2]):
        return range(2, len(fields))
    raise ValueError(
        "line 1 is neither of PLINK (chromosome, name, two alleles, weights) nor of smartpca "
        f"(name, chromosome, position, weights): {' '.join(fields[:5])}"
    )


def _is_plink(fields: list[str]) -> bool:
    """Whether a line without names has alleles where smartpca has the position and the first weight."""
    return len(fields) > 4 and not _is_number(fields[2]) and not _is_number(fields[3])


def _stem(path: Path) -> str:
    ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), path.suffix)
    return path.name.removesuffix(ending)


def _chromosomes(lines: Lines, j: int) -> Text:
    known = {code: chromosome_name(code) for code in set(lines.columns[j])}
    return text([known[code] for code in lines.columns[j]])


def _plink(lines: Lines, id: int, alleles: tuple[int, int], pcs: Sequence[int]) -> Weights:
    if not pcs:
        raise ValueError(f"{lines.path}: there is no column of weights (PC1, PC2, …).")
    effect, other = (lines.text(j) for j in alleles)
    pos = lines.place("POS")
    position = np.zeros(len(effect), np.int64) if pos is None else lines.columns[pos].astype(np.int64)
    path, W, named = lines.path, lines.numbers(pcs), (lines.text(id), _chromosomes(lines, 0))
    return Weights(path, _stem(path), "plink", "plink", *named, position, effect, other, W)


def _with_header(lines: Lines) -> Weights:
    header = lines.header or []
    id = next((j for j in (lines.place("ID"), lines.place("VAR")) if j is not None), None)
    pairs = [(lines.place(effect), lines.place(other)) for effect, other in ALLELES]
    alleles = next(((a, b) for a, b in pairs if a is not None and b is not None), None)
    if id is None or alleles is None:
        raise ValueError(
            f"{lines.path}: line 1: columns ID (or VAR) and alleles (A1 and A2, or NONMAJ and MAJ) are needed; "
            f"there are {', '.join(header)}. PLINK writes both from its versions of 2016 on."
        )
    return _plink(lines, id, alleles, [j for j, name in enumerate(header) if _is_component(name)])


def _is_component(name: str) -> bool:
    return name.startswith("PC") and name[2:].isdecimal()


def _by_allele(lines: Lines) -> Weights:
    """``.eigenvec.allele``: a row for each allele, with −½ of the weights of ``.eigenvec.var``."""
    alt = lines.text(lines.place("ALT") or 0)
    many = np.flatnonzero(["," in alleles for alleles in alt])
    if len(many):
        raise ValueError(
            f"{lines.path}: line {lines.first + many[0]}: more than one alternative allele, {alt[many[0]]}; "
            "SNPs with two alleles are read."
        )
    both = _with_header(lines)
    rows = np.flatnonzero(lines.text(lines.place("A1") or 0) == alt)
    return replace(
        both,
        id=both.id[rows],
        chromosome=both.chromosome[rows],
        position=both.position[rows],
        effect=both.effect[rows],
        other=both.other[rows],
        weights=-2 * both.weights[rows],
    )


def _without_header(lines: Lines) -> Weights:
    """PLINK 1.9 writes chromosome, name, alleles and weights; smartpca name, chromosome, position and weights."""
    width = len(lines.columns)
    if lines.columns[2].dtype == object:
        return _plink(lines, 1, (2, 3), range(4, width))
    return _smartpca(lines)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _smartpca(lines: Lines) -> Weights:
    W = lines.numbers(range(3, len(lines.columns)))
    position = lines.numbers([2])[:, 0].astype(np.int64)
    unknown = text([""] * len(W))
    named = (lines.text(0), _chromosomes(lines, 1), position, unknown, unknown)
    return Weights(lines.path, _stem(lines.path), "smartpca", "smartpca", *named, W)


def read_eigenvalues(path: Path, k: int) -> npt.NDArray[np.float64]:
    """The numbers of an ``.eigenval`` or ``.eval`` file, k at least."""
    values = read_lines(path, lambda _: False, lambda _: [0]).numbers([0])[:, 0]
    if len(values) < k:
        raise ValueError(f"{path}: {len(values)} eigenvalues for {k} components.")
    return values
