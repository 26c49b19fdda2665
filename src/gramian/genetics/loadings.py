"""Loadings of SNPs to project on: of a fitted model, of our own files, of PLINK's and of smartpca's."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.genetics.genotypes import PRICE, SCALES
from gramian.genetics.matching import find_rows
from gramian.genetics.text import Text, as_text, is_number, read_lines
from gramian.inputs.checks import check_choice
from gramian.inputs.devices import convert_to_numpy
from gramian.sources.errors import Argument, SourceError
from gramian.sources.npy import read_headers
from gramian.sources.plink import chromosome_name, read_bim

if TYPE_CHECKING:
    from gramian.genetics.pca import GenotypePCA

Array = npt.NDArray[np.float64]

FORMAT = "gramian genotype PCA 1"  # of the JSON file next to results of ours


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
        What z was divided by: "patterson", "plink", "price" (or "smartpca", its older name) or "none".
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
    loadings: Array
    scaling: str
    mean: Array | None = None
    scale: Array | None = None
    singular_values: Array | None = None
    n_samples: int | None = None
    total_variance: float | None = None
    eigenvectors: Array | None = None
    fid: Text | None = None
    iid: Text | None = None
    origin: str = "given"

    @classmethod
    def of(cls, model: GenotypePCA) -> Loadings:
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
    def frequency(self) -> Array | None:
        """Frequency of the effect allele in the reference."""
        return None if self.mean is None else self.mean / 2

    @property
    def eigenvalues(self) -> Array | None:
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


def divisor(scaling: str, frequency: Array, chromosomes: npt.ArrayLike | None = None) -> Array:
    r"""What centred genotypes are divided by.

    .. math:: \sqrt{f(1-f)}\ \text{(patterson)},\quad \sqrt{2f(1-f)}\ \text{(plink)},\quad
              \sqrt{q(1-q)},\ q=\frac{1+fC}{2+C}\ \text{(price)},\quad 1\ \text{(none)}

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
    if scaling in PRICE and chromosomes is not None:
        C = np.asarray(chromosomes, dtype=np.float64)
        q = (1 + f * C) / (2 + C)
    else:
        q = f
    factor = {"patterson": 1.0, "price": 1.0, "smartpca": 1.0, "plink": 2.0}
    root = np.ones_like(f) if scaling == "none" else np.sqrt(factor[scaling] * q * (1 - q))
    return np.where((f > 0) & (f < 1), root, np.inf)


def read_loadings(
    path: str | os.PathLike[str],
    *,
    snps: str | os.PathLike[str] | None = None,
    frequencies: str | os.PathLike[str] | None = None,
    eigenvalues: str | os.PathLike[str] | None = None,
    scaling: str | None = None,
    total_variance: float | None = None,
) -> Loadings:
    r"""Read loadings that genotypes can be projected on.

    Files of PLINK and smartpca hold W = √M·V; what else a projection needs is taken from the files next to them, or
    from those named here.

    Parameters
    ----------
    path : path
        The prefix of results of ours, or one of these files: ``.json`` or ``.loadings.npz`` of ours, ``.eigenvec.var``
        of PLINK 1.9 or 2, ``.eigenvec.allele`` of PLINK 2, the SNP weights of smartpca.
    snps : path, optional
        ``.bim`` or EIGENSTRAT ``.snp`` file of the reference, for files without alleles: smartpca's.
    frequencies : path, optional
        ``.afreq`` or ``.frq`` file of the reference; by default the one next to the loadings, where there is one.
    eigenvalues : path, optional
        ``.eigenval`` or ``.eval`` file; by default the one next to the loadings.
    scaling : {"plink", "patterson", "price", "none"}, optional
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
    if scaling is not None:
        check_choice("scaling", scaling, tuple(SCALES))
    place = _find_loadings(Path(path))
    given = (snps, frequencies, eigenvalues, scaling, total_variance)
    if place.name.endswith(OURS):
        if any(value is not None for value in given):
            raise ValueError(
                f"{place} says itself what it holds: snps, frequencies, eigenvalues, scaling and total_variance are "
                "for files of other programs. Loadings.with_frequencies takes other frequencies."
            )
        return _read_own(place)
    found, program = _read_weights(place)
    if snps is not None:
        found = _add_alleles(found, Path(snps))
    ending = next((ending for ending in ENDINGS if place.name.endswith(ending)), place.suffix)
    stem = place.name.removesuffix(ending)
    ours = _read_companion(place, stem, found.shape)
    spectrum = _sibling(eigenvalues, place, stem, EIGENVALUES)
    if ours is not None:
        found = replace(
            found,
            scaling=ours["scaling"],
            n_samples=ours["samples"],
            total_variance=ours["total_variance"],
            singular_values=np.array(ours["score_lengths"]),
        )
    else:
        found = replace(found, scaling=scaling or program, total_variance=total_variance)
        if spectrum is not None:
            found = _add_singular_values(found, program, place, spectrum)
    counted = _sibling(frequencies, place, stem, FREQUENCIES)
    return found if counted is None else _add_frequencies(found, counted)


OURS = ".loadings.npz"
ENDINGS = (OURS, ".eigenvec.var", ".eigenvec.allele", ".snpweight", ".snpwt")
EIGENVALUES, FREQUENCIES = (".eigenval", ".eval"), (".afreq", ".frq")
COMPANION = ("files", "snps", "components", "scaling", "samples", "total_variance", "score_lengths")


def _find_loadings(path: Path) -> Path:
    """The file of loadings that a prefix, a companion or the file itself names."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name the prefix of the results in it, or a file.")
    if path.suffix == ".json":
        try:
            content = json.loads(path.read_text("utf-8"))
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{path}: not a JSON file: {error}") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f"{path}: not the companion of a genotype PCA (its format is not {FORMAT!r}).")
        if not isinstance(content.get("files"), dict):
            raise ValueError(f"{path}: damaged, it lists no files; write the results again.")
        names = [name for ending in ENDINGS for name in content["files"] if name.endswith(ending)]
        if not names:
            raise ValueError(f"{path}: these results hold no loadings; write them in the format 'gramian'.")
        return path.with_name(names[0])
    if path.is_file():
        return path
    found = next((file for file in (path.with_name(path.name + end) for end in ENDINGS) if file.is_file()), None)
    if found is None:
        raise FileNotFoundError(f"{path}: no such file, and no {path.name}{{{', '.join(ENDINGS)}}} either.")
    return found


def _sibling(named: Any, place: Path, stem: str, endings: tuple[str, ...]) -> Path | None:
    """The file that was named, else the first that stands next to the loadings."""
    if named is not None:
        return Path(named)
    siblings = (place.with_name(stem + ending) for ending in endings)
    return next((path for path in siblings if path.is_file()), None)


def _read_companion(place: Path, stem: str, shape: tuple[int, int]) -> dict[str, Any] | None:
    """What we wrote next to a file of weights of ours; None where another program wrote it."""
    path = place.with_name(f"{stem}.json")
    try:
        content = json.loads(path.read_text("utf-8")) if path.is_file() else None
    except ValueError:
        return None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        return None
    lacking = [name for name in COMPANION if name not in content]
    if lacking:
        raise ValueError(f"{path}: damaged, it lacks {', '.join(lacking)}; write the results again.")
    ours = place.name in content["files"] and (content["snps"], content["components"]) == shape
    return content if ours else None


# Our own file of loadings: all that a projection needs, in full precision

SEPARATOR = "\n"  # of strings kept as one: no field of a text file can hold it
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


def score_lengths(model: GenotypePCA) -> Array:
    """What scores are divided by to be in the scale of ``eigenvectors_``: σ, or the lengths of fitted scores."""
    return np.asarray(getattr(model, "score_lengths_", model.singular_values_), dtype=np.float64)


def write_loadings(path: Path, loadings: Loadings) -> None:
    """Write all fields, strings as one string of bytes each, so that none is padded or pickled."""
    arrays: dict[str, Any] = {}
    for name, (_, kind) in FIELDS.items():
        arrays[name] = value = getattr(loadings, name)
        if kind == "f":
            arrays[name] = np.asarray(value, dtype=np.float64)
        elif kind == "O":
            bad = next((text for text in value if SEPARATOR in text), None)
            if bad is not None:
                raise ValueError(f"The name {bad!r} has a line break in it, which no file of results can hold.")
            arrays[name] = np.frombuffer(SEPARATOR.join(value).encode("utf-8"), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def _read_own(path: Path) -> Loadings:
    """Read what :func:`write_loadings` wrote: all fields, of the sizes and kinds that were written, and finite."""
    try:
        with path.open("rb") as file:  # opened here, since NumPy leaves a damaged file open
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise ValueError("it holds one array")
            read_headers(found)
            arrays: dict[str, Any] = {name: found[name] for name in found.files}
        for name, a in arrays.items():
            if a.dtype == np.uint8:
                arrays[name] = as_text(a.tobytes().decode("utf-8").split(SEPARATOR))
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path}: not a file of loadings, or damaged: {error}. Write the results again.") from None
    if set(arrays) != set(FIELDS):
        lacking, more = sorted(set(FIELDS) - set(arrays)), sorted(set(arrays) - set(FIELDS))
        what = f"it lacks {', '.join(lacking)}" if lacking else f"it also holds {', '.join(more)}"
        raise ValueError(f"{path}: not a file of loadings: {what}.")
    sizes = dict(zip("Mk", arrays["loadings"].shape, strict=False)) | {"n": len(np.atleast_1d(arrays["iid"]))}
    for name, (axes, kind) in FIELDS.items():
        shape, a = tuple(sizes.get(axis, -1) for axis in axes), arrays[name]
        if a.shape != shape or a.dtype.kind != kind:
            raise ValueError(f"{path}: damaged: {name} is {a.dtype} of shape {a.shape}, not of shape {shape}.")
        if kind == "f" and not np.isfinite(a).all():
            raise ValueError(f"{path}: damaged: {name} holds what is not a finite number.")
    arrays["scaling"], arrays["total_variance"] = str(arrays["scaling"]), float(arrays["total_variance"])
    if arrays["scaling"] not in SCALES:
        raise ValueError(f"{path}: scaling {arrays['scaling']!r} is none of {', '.join(SCALES)}.")
    return Loadings(**arrays, n_samples=len(arrays["iid"]), origin=path.name)


# Files of weights √M·V


class Layout(NamedTuple):
    """Where a file of weights has what: numbers of columns, and the program that writes it so."""

    program: str
    id: int
    chromosome: int
    position: int | None
    effect: int | None
    other: int | None
    weights: Sequence[int]


def _find_layout(fields: list[str]) -> Layout:
    """The layout of a file, told by its first line."""
    if _is_header(fields):
        column = {name: j for j, name in enumerate(fields)}
        name = column.get("ID", column.get("VAR"))
        # the allele whose copies are weighted, and the other
        pairs = (("A1", "A2"), ("NONMAJ", "MAJ"), ("ALT", "REF"))
        alleles = next((pair for pair in pairs if set(pair) <= set(column)), None)
        if name is None or alleles is None:
            raise ValueError(
                "line 1: columns ID (or VAR) and alleles (A1 and A2, or NONMAJ and MAJ) are needed; "
                f"there are {', '.join(fields)}. PLINK writes both from its versions of 2016 on."
            )
        pcs = [j for name, j in column.items() if name.startswith("PC") and name[2:].isdecimal()]
        if not pcs:
            raise ValueError("there is no column of weights (PC1, PC2, …).")
        return Layout("plink", name, 0, column.get("POS"), column[alleles[0]], column[alleles[1]], pcs)
    if len(fields) > 4 and not is_number(fields[2]) and not is_number(fields[3]):
        return Layout("plink", 1, 0, None, 2, 3, range(4, len(fields)))
    if len(fields) > 3 and is_number(fields[2]):
        return Layout("smartpca", 0, 1, 2, None, None, range(3, len(fields)))
    raise ValueError(
        "line 1 is neither of PLINK (chromosome, name, two alleles, weights) nor of smartpca "
        f"(name, chromosome, position, weights): {' '.join(fields[:5])}"
    )


def _is_header(fields: list[str]) -> bool:
    return fields[0].lstrip("#") in ("CHR", "CHROM")


def _read_weights(path: Path) -> tuple[Loadings, str]:
    """Read a file of PLINK's or smartpca's, and say whose it is."""

    def numeric(fields: list[str]) -> list[int]:
        layout = _find_layout(fields)
        return [*layout.weights, *([] if layout.position is None else [layout.position])]

    lines = read_lines(path, _is_header, numeric)
    layout, columns, header = _find_layout(lines.fields), lines.columns, lines.header or []
    W, rows = np.stack([columns[j] for j in layout.weights], axis=1), np.arange(len(columns[0]))
    if {"A1", "ALT"} <= set(header):  # .eigenvec.allele: a row for each allele, with −½ of the weights
        alt = columns[header.index("ALT")]
        many = np.flatnonzero(["," in alleles for alleles in alt])
        if len(many):
            raise ValueError(
                f"{path}: line {lines.first + many[0]}: more than one alternative allele, {alt[many[0]]}; "
                "SNPs with two alleles are read."
            )
        W, rows = -2 * W, np.flatnonzero(columns[header.index("A1")] == alt)

    def column(j: int | None) -> Text:
        return as_text([""] * len(rows)) if j is None else np.ascontiguousarray(columns[j][rows])

    codes = columns[layout.chromosome][rows]
    known = {code: chromosome_name(code) for code in set(codes)}
    place = layout.position
    position = np.zeros(len(rows), np.int64) if place is None else columns[place][rows].astype(np.int64)
    found = Loadings(
        id=column(layout.id),
        chromosome=as_text([known[code] for code in codes]),
        position=position,
        effect=column(layout.effect),
        other=column(layout.other),
        loadings=W[rows] / np.sqrt(len(rows)),
        scaling=layout.program,
        origin=path.name,
    )
    return found, layout.program


def _add_alleles(loadings: Loadings, path: Path) -> Loadings:
    """Add alleles and positions by name from a ``.bim`` or ``.snp`` file; the first allele is the one counted."""
    if path.suffix == ".snp":  # name, chromosome, genetic and physical position, alleles
        lines = read_lines(path, lambda _: False, lambda fields: [3] if len(fields) > 3 else [])
        if len(lines.columns) != 6:
            raise ValueError(f"{path}: line 1 has {len(lines.columns)} fields; six are needed, the alleles last.")
        id, _, _, position, first, second = lines.columns
    else:
        snps = read_bim(path)
        id, position, first, second = snps.id, snps.position, snps.a1, snps.a2
    rows = find_rows(loadings.id, id, path, "alleles")
    found = replace(loadings, position=position[rows].astype(np.int64))
    if loadings.effect[0] != "":  # PLINK names the alleles itself
        return found
    return replace(found, effect=first[rows], other=second[rows])


def _add_singular_values(loadings: Loadings, program: str, place: Path, path: Path) -> Loadings:
    """σ = √(Mλ) by an ``.eigenval`` or ``.eval`` file; smartpca has λ·(n − 1)/total in place of λ, of all n samples."""
    (M, k), total = loadings.shape, loadings.total_variance
    values = read_lines(path, lambda _: False, lambda _: [0]).columns[0]
    if len(values) < k:
        raise ValueError(f"{path}: {len(values)} eigenvalues for {k} components.")
    top = np.maximum(values[:k], 0)
    if program == "plink":
        return replace(loadings, singular_values=np.sqrt(M * top))
    n = len(values)
    if abs(values.sum() - (n - 1)) <= 1e-3 * n:
        sigma = None if total is None else np.sqrt(M * top * total / (n - 1))
        return replace(loadings, n_samples=n, singular_values=sigma)
    if total is None:
        return loadings
    raise ValueError(
        f"The {n} eigenvalues next to {place} sum to {values.sum():.6g}; all n of smartpca sum to n − 1, which "
        "tells their scale. Name a file with all of them as eigenvalues, or leave total_variance out and project "
        "by least squares."
    )


# name, counted allele, the other, its frequency, chromosomes counted
FREQUENCY_COLUMNS = {
    ".frq": ("SNP", "A1", "A2", "MAF", "NCHROBS"),
    ".afreq": ("ID", "ALT", "REF", "ALT_FREQS", "OBS_CT"),
}


def _add_frequencies(loadings: Loadings, path: Path) -> Loadings:
    """Standardise by the frequencies in a ``.frq`` or ``.afreq`` file, told apart by its header."""
    kinds = FREQUENCY_COLUMNS.values()
    numeric = {name for names in kinds for name in names[3:]}
    lines = read_lines(
        path,
        lambda fields: fields[0] in ("CHR", "#CHROM"),
        lambda fields: [j for j, name in enumerate(fields) if name in numeric],
    )
    header = lines.header or []
    names = next((names for names in kinds if set(names) <= set(header)), None)
    if names is None:
        expected = " or ".join(", ".join(names) for names in kinds)
        raise ValueError(f"{path}: line 1 is not the header of a frequency file: {expected} were expected.")
    id, effect, other = loadings.id, loadings.effect, loadings.other
    if len(id) and effect[0] == "":
        text = "the loadings name no alleles: give the .bim file of the reference as "
        raise SourceError(text, Argument("snps"), ".", path=path)
    rows = find_rows(id, lines.columns[header.index(names[0])], path, "frequencies")
    a, b, f, chromosomes = (lines.columns[header.index(name)][rows] for name in names[1:])
    same, swapped = (a == effect) & (b == other), (a == other) & (b == effect)
    bad = np.flatnonzero(~(same | swapped))
    if len(bad):
        j = bad[0]
        raise ValueError(
            f"{path}: {id[j]} has the alleles {a[j]}/{b[j]}, the loadings have {effect[j]}/{other[j]} "
            f"({len(bad)} such SNPs)."
        )
    return loadings.with_frequencies(np.where(same, f, 1 - f), chromosomes)
