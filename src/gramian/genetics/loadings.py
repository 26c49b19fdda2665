"""Loadings of SNPs to project on: of a fitted model, of our own files, of PLINK's and of smartpca's."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.genetics.files import FORMAT, FittedGenotypePCA, Lines, read_arrays, read_lines, score_lengths, text
from gramian.genetics.genotypes import SCALES
from gramian.genetics.matching import rows_of
from gramian.inputs.devices import convert_to_numpy
from gramian.sources.plink import chromosome_name, read_bim

__all__ = [
    "EIGENVALUES",
    "FREQUENCIES",
    "Frequencies",
    "Loadings",
    "Weights",
    "companion",
    "divisor",
    "find",
    "read_eigenvalues",
    "read_frequencies",
    "read_loadings",
    "read_ours",
    "read_weights",
    "with_alleles",
]

Text = npt.NDArray[np.object_]
Vector = npt.NDArray[np.float64]

# name, counted allele, the other, its frequency, chromosomes counted
COLUMNS = {
    ".frq": ("SNP", "A1", "A2", "MAF", "NCHROBS"),
    ".afreq": ("ID", "ALT", "REF", "ALT_FREQS", "OBS_CT"),
}


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Frequencies of an allele of each SNP, and the chromosomes in which they were counted."""

    path: Path
    id: Text
    counted: Text
    other: Text
    frequency: Vector
    chromosomes: Vector

    def of(self, id: Text, effect: Text, other: Text) -> tuple[Vector, Vector]:
        """Frequencies of the effect alleles of these SNPs, and the chromosomes counted."""
        if len(id) and effect[0] == "":
            raise ValueError(f"{self.path}: the loadings name no alleles: give the .bim file of the reference as snps.")
        rows = rows_of(id, self.id, self.path, "frequencies")
        a, b = self.counted[rows], self.other[rows]
        same, swapped = (a == effect) & (b == other), (a == other) & (b == effect)
        bad = np.flatnonzero(~(same | swapped))
        if len(bad):
            j = bad[0]
            raise ValueError(
                f"{self.path}: {id[j]} has the alleles {a[j]}/{b[j]}, the loadings have {effect[j]}/{other[j]} "
                f"({len(bad)} such SNPs)."
            )
        f = self.frequency[rows]
        return np.where(same, f, 1 - f), self.chromosomes[rows]


def read_frequencies(path: Path) -> Frequencies:
    """Read a ``.frq`` or ``.afreq`` file, told apart by its header."""
    lines = read_lines(path, lambda fields: fields[0] in ("CHR", "#CHROM"), _number_columns)
    for columns in COLUMNS.values():
        places = [lines.place(name) for name in columns]
        if None not in places:
            name, counted, other, frequency, chromosomes = (j for j in places if j is not None)
            numbers = lines.numbers([frequency, chromosomes])
            return Frequencies(path, lines.text(name), lines.text(counted), lines.text(other), *numbers.T)
    raise ValueError(
        f"{path}: line 1 is not the header of a frequency file: "
        f"{' or '.join(', '.join(columns) for columns in COLUMNS.values())} were expected."
    )


def _number_columns(fields: list[str]) -> list[int]:
    """Where the frequencies and the chromosomes counted are."""
    wanted = {name for columns in COLUMNS.values() for name in columns[3:]}
    return [j for j, name in enumerate(fields) if name in wanted]


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


def with_alleles(raw: Weights, path: Path) -> Weights:
    """Add alleles and positions by name; the first allele is the one that is counted."""
    id, position, first, second = _snps(path)
    rows = rows_of(raw.id, id, path, "alleles")
    if raw.effect[0] != "":  # PLINK names the alleles itself
        return replace(raw, position=position[rows])
    return replace(raw, position=position[rows], effect=first[rows], other=second[rows])


def _snps(path: Path) -> tuple[Text, npt.NDArray[np.int64], Text, Text]:
    """Names, positions and both alleles; a ``.snp`` file has name, chromosome, genetic and physical position first."""
    if path.suffix != ".snp":
        snps = read_bim(path)
        return snps.id, snps.position, snps.a1, snps.a2
    lines = read_lines(path, lambda _: False, lambda fields: [3] if len(fields) > 3 else [])
    if len(lines.columns) != 6:
        raise ValueError(f"{path}: line 1 has {len(lines.columns)} fields; six are needed, the alleles last.")
    return lines.text(0), lines.numbers([3])[:, 0].astype(np.int64), lines.text(4), lines.text(5)


Matrix = npt.NDArray[np.float64]
PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False, repr=False)
class Loadings:
    r"""What genotypes are projected on: z = (g − mean)/scale of each SNP, and its loadings V.

    Attributes
    ----------
    id, chromosome : ndarray of str
        Names and chromosomes of the M SNPs.
    position : ndarray of int64
        Positions in base pairs; 0 where unknown.
    effect, other : ndarray of str
        The allele whose copies g counts, and the other one; empty where unknown.
    loadings : ndarray of shape (M, k)
        V, the right singular vectors of Z.
    scaling : str
        What z was divided by: "patterson", "plink", "smartpca" or "none".
    mean, scale : ndarray of shape (M,) or None
        Mean number of effect alleles in the reference and the divisor; None where the frequencies are not known.
    singular_values : ndarray of shape (k,) or None
        σ of Z, where the eigenvalues are known: the lengths of the columns of the reference's scores, also where these
        were fitted to the genotypes that each sample has (``GenotypePCA(missing="least-squares")``).
    n_samples : int or None
        Samples of the reference.
    total_variance : float or None
        trace(ZZᵀ)/M of the reference.
    eigenvectors, fid, iid : ndarray or None
        Unit eigenvectors of the reference samples, and their names.
    origin : str
        Where all this comes from.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.loadings import Loadings
    >>> from gramian.genetics.pca import GenotypePCA
    >>> Loadings.of(GenotypePCA(2).fit(np.random.default_rng(0).integers(0, 3, size=(20, 50))))
    Loadings: 50 SNPs, 2 components, plink scaling, of 20 samples (a fitted model)
    """

    id: Text
    chromosome: Text
    position: npt.NDArray[np.int64]
    effect: Text
    other: Text
    loadings: Matrix
    scaling: str
    mean: Vector | None = None
    scale: Vector | None = None
    singular_values: Vector | None = None
    n_samples: int | None = None
    total_variance: float | None = None
    eigenvectors: Matrix | None = None
    fid: Text | None = None
    iid: Text | None = None
    origin: str = "given"

    @classmethod
    def of(cls, model: FittedGenotypePCA) -> Loadings:
        """The loadings of a fitted model."""
        model = convert_to_numpy(model)
        snps, samples = model.snps_, model.samples_
        return cls(
            snps.id,
            snps.chromosome,
            snps.position,
            snps.a1,
            snps.a2,
            np.asarray(model.components_.T, dtype=np.float64),
            model.scaling,
            model.mean_,
            model.scale_,
            score_lengths(model),
            len(samples),
            model.total_variance_,
            model.eigenvectors_,
            samples.fid,
            samples.iid,
            "a fitted model",
        )

    @property
    def shape(self) -> tuple[int, int]:
        """SNPs and components."""
        return self.loadings.shape[0], self.loadings.shape[1]

    @property
    def frequency(self) -> Vector | None:
        """Frequency of the effect allele in the reference."""
        return None if self.mean is None else self.mean / 2

    @property
    def eigenvalues(self) -> Vector | None:
        """λ = σ²/M."""
        return None if self.singular_values is None else self.singular_values**2 / len(self.loadings)

    def with_frequencies(self, frequency: npt.ArrayLike, chromosomes: npt.ArrayLike | None = None) -> Loadings:
        """Standardise by these frequencies of the effect allele, counted in so many chromosomes of each SNP."""
        f = np.asarray(frequency, dtype=np.float64)
        if f.shape != (len(self.id),):
            raise ValueError(f"frequency has the shape {f.shape}; there are {len(self.id)} SNPs.")
        return replace(self, mean=2 * f, scale=divisor(self.scaling, f, chromosomes))

    def table(self) -> dict[str, Any]:
        """Columns by name: the SNPs, their alleles and their loadings."""
        named = {"CHROM": self.chromosome, "ID": self.id, "POS": self.position, "EFFECT": self.effect}
        pcs = {f"PC{j + 1}": self.loadings[:, j] for j in range(self.shape[1])}
        return named | {"OTHER": self.other} | ({} if self.mean is None else {"MEAN": self.mean}) | pcs

    def __repr__(self) -> str:
        M, k = self.shape
        samples = "" if self.n_samples is None else f", of {self.n_samples} samples"
        return f"Loadings: {M} SNPs, {k} components, {self.scaling} scaling{samples} ({self.origin})"


def divisor(scaling: str, frequency: Vector, chromosomes: npt.ArrayLike | None = None) -> Vector:
    r"""What centred genotypes are divided by.

    .. math:: \sqrt{f(1-f)}\ \text{(patterson)},\quad \sqrt{2f(1-f)}\ \text{(plink)},\quad
              \sqrt{q(1-q)},\ q=\frac{1+fC}{2+C}\ \text{(smartpca)},\quad 1\ \text{(none)}

    with C the number of chromosomes in which f was counted. Where f is 0 or 1 the divisor is infinite: a SNP that does
    not vary in the reference says nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.loadings import divisor
    >>> divisor("patterson", np.array([0.5, 0.2, 0.0]))
    array([0.5, 0.4, inf])
    """
    f = np.asarray(frequency, dtype=np.float64)
    if scaling == "smartpca" and chromosomes is not None:
        C = np.asarray(chromosomes, dtype=np.float64)
        q = (1 + f * C) / (2 + C)
    else:
        q = f
    factor = {"patterson": 1.0, "smartpca": 1.0, "plink": 2.0}
    root = np.ones_like(f) if scaling == "none" else np.sqrt(factor[scaling] * q * (1 - q))
    return np.where((f > 0) & (f < 1), root, np.inf)


def read_loadings(
    path: PathLike,
    *,
    snps: PathLike | None = None,
    frequencies: PathLike | None = None,
    eigenvalues: PathLike | None = None,
    scaling: str | None = None,
    total_variance: float | None = None,
) -> Loadings:
    r"""Read loadings that genotypes can be projected on.

    Files of PLINK and smartpca hold W = √M·V; what else a projection needs is taken from the files beside them, or
    from those named here.

    Parameters
    ----------
    path : path
        The prefix of results of ours, or one of these files: ``.json`` or ``.loadings.npz`` of ours, ``.eigenvec.var``
        of PLINK 1.9 or 2, ``.eigenvec.allele`` of PLINK 2, the SNP weights of smartpca.
    snps : path, optional
        ``.bim`` or EIGENSTRAT ``.snp`` file of the reference, for files without alleles: smartpca's.
    frequencies : path, optional
        ``.afreq`` or ``.frq`` file of the reference; by default the one beside the loadings, where there is one.
    eigenvalues : path, optional
        ``.eigenval`` or ``.eval`` file; by default the one beside the loadings.
    scaling : {"plink", "patterson", "smartpca", "none"}, optional
        What genotypes were divided by, where that is not what the program does that wrote the file.
    total_variance : float, optional
        trace(ZZᵀ)/M of the reference, which smartpca does not write: its eigenvalues sum to n − 1 whatever the data.

    Returns
    -------
    Loadings
        SNPs, alleles, loadings, and whatever else was found.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.loadings import read_loadings
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "ref.eigenvec.var")
    ...     _ = file.write_text("#CHROM\tID\tMAJ\tNONMAJ\tPC1\n1\trs1\tC\tA\t0.6\n1\trs2\tG\tT\t-1.3\n")
    ...     loadings = read_loadings(file)
    >>> loadings.effect.tolist(), loadings.loadings.round(3).tolist()
    (['A', 'T'], [[0.424], [-0.919]])
    """
    if scaling is not None and scaling not in SCALES:
        raise ValueError(f"scaling={scaling!r} is none of {', '.join(SCALES)}.")
    place = find(Path(path))
    if place.name.endswith(".npz"):
        _refuse_needless(place, snps, frequencies, eigenvalues, scaling, total_variance)
        return _ours(place)
    raw = read_weights(place)
    if snps is not None:
        raw = with_alleles(raw, Path(snps))
    found = _assembled(raw, scaling, total_variance, _sibling(eigenvalues, raw, EIGENVALUES))
    counted = _sibling(frequencies, raw, FREQUENCIES)
    return found if counted is None else _standardised(found, read_frequencies(counted))


def _refuse_needless(path: Path, *given: Any) -> None:
    if any(value is not None for value in given):
        raise ValueError(
            f"{path} says itself what it holds: snps, frequencies, eigenvalues, scaling and total_variance are for "
            "files of other programs. Loadings.with_frequencies takes other frequencies."
        )


def _ours(path: Path) -> Loadings:
    arrays: dict[str, Any] = dict(read_ours(path))
    arrays["scaling"], arrays["total_variance"] = str(arrays["scaling"]), float(arrays["total_variance"])
    return Loadings(**arrays, n_samples=len(arrays["iid"]), origin=path.name)


def _sibling(named: PathLike | None, raw: Weights, endings: tuple[str, ...]) -> Path | None:
    """The file that was named, else the first that stands beside the loadings."""
    if named is not None:
        return Path(named)
    beside = [raw.path.with_name(raw.stem + ending) for ending in endings]
    return next((path for path in beside if path.is_file()), None)


def _assembled(raw: Weights, scaling: str | None, total: float | None, eigenvalues: Path | None) -> Loadings:
    """Unit loadings, and singular values where the eigenvalues and their scale are known."""
    M, k = raw.weights.shape
    ours = companion(raw)
    known: dict[str, Any] = {"total_variance": total, "origin": raw.path.name}
    if ours is not None:
        scaling, known["n_samples"], known["total_variance"] = ours["scaling"], ours["samples"], ours["total_variance"]
        known["singular_values"] = np.array(ours["score_lengths"])
    elif eigenvalues is not None:
        known |= _singular_values(raw, total, read_eigenvalues(eigenvalues, k))
    named = (raw.id, raw.chromosome, raw.position, raw.effect, raw.other)
    return Loadings(*named, raw.weights / np.sqrt(M), scaling or raw.scaling, **known)


def _singular_values(raw: Weights, total: float | None, values: Vector) -> dict[str, Any]:
    """σ = √(Mλ); smartpca has λ·(n − 1)/total in place of λ, of all n samples."""
    M, k = raw.weights.shape
    top = np.maximum(values[:k], 0)
    if raw.program == "plink":
        return {"singular_values": np.sqrt(M * top)}
    n = len(values)
    if abs(values.sum() - (n - 1)) > 1e-3 * n:
        if total is None:
            return {}
        raise ValueError(
            f"The {n} eigenvalues beside {raw.path} sum to {values.sum():.6g}; all n of smartpca sum to n − 1, which "
            "tells their scale. Name a file with all of them as eigenvalues, or leave total_variance out and project "
            "by least squares."
        )
    return {"n_samples": n} | ({} if total is None else {"singular_values": np.sqrt(M * top * total / (n - 1))})


def _standardised(loadings: Loadings, counted: Frequencies) -> Loadings:
    frequency, chromosomes = counted.of(loadings.id, loadings.effect, loadings.other)
    return loadings.with_frequencies(frequency, chromosomes)
