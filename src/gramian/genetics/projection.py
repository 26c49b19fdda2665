"""New samples on the principal components of others: simple projection, least squares, and OADP."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.genetics._inputs import as_genotypes, column_names, is_table
from gramian.genetics._oadp import augmented_scores
from gramian.genetics._result_files import components, write_sample_table
from gramian.genetics._sums import Sums, solved, summed
from gramian.genetics._whole import whole
from gramian.genetics.loadings import Loadings, read_loadings
from gramian.genetics.matching import MatchReport, SnpMatch, match_snps
from gramian.results import NumericalWarning
from gramian.sources.plink import Genotypes, Samples

__all__ = ["METHODS", "Projection", "project", "write_projection"]

Matrix = npt.NDArray[np.float64]

METHODS = ("oadp", "least-squares", "simple")
LITTLE = 0.95  # part of the SNPs below which a simple projection is visibly drawn to the centre


@dataclass(frozen=True, eq=False, repr=False)
class Projection:
    """New samples on the components of a reference.

    Attributes
    ----------
    samples : Samples
        The new samples.
    scores : ndarray of shape (m, k)
        In the scale of Zv: that of ``GenotypePCA.transform``.
    eigenvectors : ndarray of shape (m, k) or None
        ``scores``/σ, in the scale of the reference's ``.eigenvec``; None where σ is not known.
    snps_used : ndarray of shape (m,)
        Genotypes of each sample that were seen and used.
    n_loadings : int
        SNPs of the loadings.
    method : str
        How they were projected.
    report : MatchReport
        What became of the SNPs.
    """

    samples: Samples
    scores: Matrix
    eigenvectors: Matrix | None
    snps_used: npt.NDArray[np.int64]
    n_loadings: int
    method: str
    report: MatchReport

    def table(self) -> dict[str, Any]:
        """Columns by name: FID, IID, SNPS and the scores."""
        named = {"FID": self.samples.fid, "IID": self.samples.iid, "SNPS": self.snps_used}
        return named | {name: self.scores[:, j] for j, name in enumerate(components(self.scores.shape[1]))}

    def __repr__(self) -> str:
        m, k = self.scores.shape
        used = self.snps_used
        head = f"Projection: {m} samples on {k} components, {self.method}, {used.min()}–{used.max()} SNPs each"
        return f"{head}\n{self.report!r}"


def project(
    onto: Any,
    genotypes: Any,
    method: str = "oadp",
    *,
    by: str = "auto",
    ambiguous: str = "drop",
    min_share: float = 0.5,
) -> Projection:
    r"""Project samples on principal components that were found without them.

    With z the standardised genotypes of a sample, 0 where missing, and V_o the rows of V that are seen:

    .. math:: \text{simple: } V^Tz,\qquad \text{least squares: } (V_o^TV_o)^{-1}V_o^Tz_o,

    the second with columns of V of length 1, which those of PLINK and of a pairwise fit have only nearly; and OADP,
    which starts from least squares and adds what the sample itself would have done to the components. V fits the noise
    of the samples it was found from, so that both projections of *other* samples are too close to the centre where SNPs
    outnumber samples; OADP is not. Where genotypes are missing, OADP takes the squared length of the rest from those
    that are seen, times (M − k)/(seen − k).

    Parameters
    ----------
    onto : GenotypePCA, Loadings or path
        A fitted model, or loadings as :func:`~gramian.genetics.loadings.read_loadings` reads them.
    genotypes : Genotypes, path or array-like of shape (m, p)
        The new samples, read once; of an array, columns are the SNPs that ``GenotypePCA`` was fitted to as an array.
    method : {"oadp", "least-squares", "simple"}
        OADP needs the eigenvalues of the reference.
    by, ambiguous, min_share
        How SNPs are matched: :func:`~gramian.genetics.matching.match_snps`.

    Returns
    -------
    Projection
        Scores, SNPs used, and what became of the SNPs.

    Warns
    -----
    NumericalWarning
        Where frequencies had to be taken from the new samples, and where a simple projection lacks many genotypes.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.pca import GenotypePCA
    >>> from gramian.genetics.projection import project
    >>> X = np.random.default_rng(0).integers(0, 3, size=(30, 200))
    >>> model = GenotypePCA(2).fit(X)
    >>> bool(np.allclose(project(model, X, "simple").scores, model.transform(X)))
    True
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r} is none of {', '.join(METHODS)}.")
    loadings, source = _loadings(onto), as_genotypes(genotypes)
    _refuse_other_columns(onto, genotypes, source)
    if source.shape[0] == 0:
        raise ValueError("There are no samples to project.")
    if method == "oadp" and loadings.singular_values is None:
        raise ValueError(
            f"OADP needs the singular values of the reference, which {loadings.origin} does not tell. Give "
            'read_loadings eigenvalues (and total_variance for smartpca), or take method="least-squares".'
        )
    match = _matched(loadings, source, by, ambiguous, min_share)
    loadings, match = _standardised(loadings, source, match, by, ambiguous, min_share)
    V = loadings.loadings[match.loadings]
    if method != "simple":
        V = V / _lengths(loadings.loadings)
    sums = _sums(loadings, source, match, V, method)
    scores = _scores(loadings, source, sums, V, method)
    unit = _in_units(scores, loadings.singular_values)
    return Projection(source.samples, scores, unit, sums.seen, len(loadings.id), method, match.report)


def _in_units(scores: Matrix, sigma: npt.NDArray[np.float64] | None) -> Matrix | None:
    """Scores/σ; NaN where an eigenvalue is 0."""
    return None if sigma is None else np.divide(scores, sigma, out=np.full_like(scores, np.nan), where=sigma > 0)


def _lengths(V: Matrix) -> Matrix:
    """Lengths of the columns; 1 for one of zeros."""
    lengths = np.linalg.norm(V, axis=0)
    return np.where(lengths > 0, lengths, 1.0)


def _refuse_other_columns(onto: Any, genotypes: Any, source: Genotypes) -> None:
    """Columns without names are known by their place: another number of them says that they are not the same."""
    expected = getattr(onto, "n_features_in_", None)
    if is_table(genotypes) and column_names(genotypes) is None and expected not in (None, source.shape[1]):
        raise ValueError(
            f"The array has {source.shape[1]} columns and the model was fitted to {expected}: columns without names "
            "are matched by their place. Give all of them, NaN where a SNP was not typed, or a data frame or Genotypes."
        )


def _loadings(onto: Any) -> Loadings:
    if isinstance(onto, Loadings):
        return onto
    return read_loadings(onto) if isinstance(onto, str | os.PathLike) else Loadings.of(onto)


def _matched(loadings: Loadings, source: Genotypes, by: str, ambiguous: str, min_share: float) -> SnpMatch:
    new = _new_frequencies(source) if ambiguous == "frequency" else (None, None)
    return match_snps(
        loadings, source.snps, by=by, ambiguous=ambiguous, min_share=min_share, frequency=new[0], chromosomes=new[1]
    )


def _new_frequencies(source: Genotypes) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Frequency of A1 among the new samples, ½ where nobody has a call, and the chromosomes it was counted in."""
    two, one, none, _ = source.snp_counts().T
    called = 2.0 * (two + one + none)
    return np.divide(2.0 * two + one, called, out=np.full(len(called), 0.5), where=called > 0), called


def _standardised(
    loadings: Loadings, source: Genotypes, match: SnpMatch, by: str, ambiguous: str, min_share: float
) -> tuple[Loadings, SnpMatch]:
    """Frequencies of the new samples where those of the reference are not known, and a warning that says so."""
    if loadings.mean is not None:
        return loadings, match
    frequency, called = (values[match.snps] for values in _new_frequencies(source))
    f, C = np.full(len(loadings.id), np.nan), np.zeros(len(loadings.id))
    f[match.loadings], C[match.loadings] = np.where(match.flip, 1 - frequency, frequency), called
    warnings.warn(
        f"{loadings.origin} holds no allele frequencies: means and divisors are those of the {len(source.samples)} new "
        "samples, whose scores are then centred on themselves. Name the reference's .afreq or .frq file.",
        NumericalWarning,
        stacklevel=3,
    )
    loadings = loadings.with_frequencies(f, C)
    match = match_snps(loadings, source.snps, by=by, ambiguous=ambiguous, min_share=0)  # without those that do not vary
    if match.report.share < min_share:
        raise ValueError(f"Too few SNPs vary among the new samples (min_share = {min_share:.0%}).\n{match.report!r}")
    return loadings, match


def _sums(loadings: Loadings, source: Genotypes, match: SnpMatch, V: Matrix, method: str) -> Sums:
    """The pass over the genotypes: where A1 is the other allele, z = −(g − (2 − mean))/scale."""
    assert loadings.mean is not None
    assert loadings.scale is not None
    mean, inverse = loadings.mean[match.loadings], 1 / loadings.scale[match.loadings]
    mean, inverse = np.where(match.flip, 2 - mean, mean), np.where(match.flip, -inverse, inverse)
    line = np.stack([inverse, -mean * inverse], axis=1)
    sums = summed(source.select(snps=match.snps), line, V, method != "simple")
    _refuse(source, sums.seen == 0, "have no genotype at the SNPs that are used")
    return sums


def _scores(loadings: Loadings, source: Genotypes, sums: Sums, V: Matrix, method: str) -> Matrix:
    M, k = loadings.shape
    if method == "simple":
        _warn_of_gaps(sums.seen / M)
        return sums.products
    b, bad = solved(sums, V.T @ V)
    _refuse(source, bad, f"have too few genotypes at the SNPs that are used for {k} components")
    if method == "least-squares":
        return b
    assert loadings.singular_values is not None
    rest = np.maximum(sums.squares - np.einsum("ij,ij->i", b, sums.products), 0.0)
    return augmented_scores(b, np.sqrt(rest * ((M - k) / (sums.seen - k))), loadings.singular_values)


def _refuse(source: Genotypes, bad: npt.NDArray[np.bool_], what: str) -> None:
    if bad.any():
        names = source.samples.take(bad).names
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        raise ValueError(f"{len(names)} samples {what}: {shown}. Leave them out.")


def _warn_of_gaps(share: npt.NDArray[np.float64]) -> None:
    few = share < LITTLE
    if few.any():
        warnings.warn(
            f"{few.sum()} of {len(share)} samples have fewer than {LITTLE:.0%} of the loadings' SNPs, "
            f"{share.min():.1%} at the least: a simple projection takes the others for average and draws these "
            'samples to the centre by as much. method="least-squares" does not.',
            NumericalWarning,
            stacklevel=4,
        )


def write_projection(
    projection: Projection, path: str | os.PathLike[str], *, scale: str = "auto", overwrite: bool = False
) -> Path:
    """Write projected samples as a table like PLINK 2's: #FID, IID, SNPS (those used) and PC1, PC2, …

    Parameters
    ----------
    projection : Projection
        What :func:`project` returned.
    path : path
        The file.
    scale : {"auto", "eigenvectors", "scores"}
        That of the reference's ``.eigenvec``, or that of Zv; "auto" is the first where it is known.
    overwrite : bool
        Whether a file that is there may be replaced.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.pca import GenotypePCA
    >>> from gramian.genetics.projection import project, write_projection
    >>> X = np.random.default_rng(0).integers(0, 3, size=(30, 200))
    >>> new = project(GenotypePCA(2).fit(X[:25]), X[25:])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_projection(new, Path(folder, "new.eigenvec"))
    ...     print(file.read_text().split()[:5])
    ['#FID', 'IID', 'SNPS', 'PC1', 'PC2']
    """
    if scale not in ("auto", "eigenvectors", "scores"):
        raise ValueError(f"scale={scale!r} is none of auto, eigenvectors, scores.")
    if scale == "eigenvectors" and projection.eigenvectors is None:
        raise ValueError("The singular values of the reference are not known: write scale='scores'.")
    values = projection.scores if scale == "scores" or projection.eigenvectors is None else projection.eigenvectors
    file = Path(path)
    with whole([file], overwrite) as folder:
        names = ["SNPS", *components(values.shape[1])]
        write_sample_table(folder / file.name, projection.samples, names, projection.snps_used, values)
    return file
