"""Loadings of SNPs to project on: of a fitted model, of our own files, of PLINK's and of smartpca's."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.estimators._devices import in_numpy
from gramian.genetics import _loading_files as files
from gramian.genetics._fitted import FittedGenotypePCA, score_lengths
from gramian.genetics._frequency_files import Frequencies, read_frequencies
from gramian.genetics._snp_files import with_alleles
from gramian.genetics._standardise import SCALES

__all__ = ["Loadings", "divisor", "read_loadings"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]
Text = npt.NDArray[np.object_]
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
        model = in_numpy(model)
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
    place = files.find(Path(path))
    if place.name.endswith(".npz"):
        _refuse_needless(place, snps, frequencies, eigenvalues, scaling, total_variance)
        return _ours(place)
    raw = files.read_weights(place)
    if snps is not None:
        raw = with_alleles(raw, Path(snps))
    found = _assembled(raw, scaling, total_variance, _sibling(eigenvalues, raw, files.EIGENVALUES))
    counted = _sibling(frequencies, raw, files.FREQUENCIES)
    return found if counted is None else _standardised(found, read_frequencies(counted))


def _refuse_needless(path: Path, *given: Any) -> None:
    if any(value is not None for value in given):
        raise ValueError(
            f"{path} says itself what it holds: snps, frequencies, eigenvalues, scaling and total_variance are for "
            "files of other programs. Loadings.with_frequencies takes other frequencies."
        )


def _ours(path: Path) -> Loadings:
    arrays: dict[str, Any] = dict(files.read_ours(path))
    arrays["scaling"], arrays["total_variance"] = str(arrays["scaling"]), float(arrays["total_variance"])
    return Loadings(**arrays, n_samples=len(arrays["iid"]), origin=path.name)


def _sibling(named: PathLike | None, raw: files.Weights, endings: tuple[str, ...]) -> Path | None:
    """The file that was named, else the first that stands beside the loadings."""
    if named is not None:
        return Path(named)
    beside = [raw.path.with_name(raw.stem + ending) for ending in endings]
    return next((path for path in beside if path.is_file()), None)


def _assembled(raw: files.Weights, scaling: str | None, total: float | None, eigenvalues: Path | None) -> Loadings:
    """Unit loadings, and singular values where the eigenvalues and their scale are known."""
    M, k = raw.weights.shape
    ours = files.companion(raw)
    known: dict[str, Any] = {"total_variance": total, "origin": raw.path.name}
    if ours is not None:
        scaling, known["n_samples"], known["total_variance"] = ours["scaling"], ours["samples"], ours["total_variance"]
        known["singular_values"] = np.array(ours["score_lengths"])
    elif eigenvalues is not None:
        known |= _singular_values(raw, total, files.read_eigenvalues(eigenvalues, k))
    named = (raw.id, raw.chromosome, raw.position, raw.effect, raw.other)
    return Loadings(*named, raw.weights / np.sqrt(M), scaling or raw.scaling, **known)


def _singular_values(raw: files.Weights, total: float | None, values: Vector) -> dict[str, Any]:
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
