"""New samples on the principal components of others: simple projection, least squares, and OADP."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from gramian.compute.genotypes import Decoder, calls, sample_counts
from gramian.compute.threads import add_to, parallel_sum
from gramian.genetics.genotypes import as_genotypes, column_names, count_alleles, is_table
from gramian.genetics.loadings import Loadings, read_loadings
from gramian.genetics.matching import MatchReport, SnpMatch, match_snps
from gramian.genetics.text import component_names, list_few, write_sample_table
from gramian.inputs.values import check_choice
from gramian.results import NumericalWarning
from gramian.sources.errors import Argument, SourceError
from gramian.sources.plink import Genotypes, Samples
from gramian.sources.writing import write_whole_folder

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

METHODS = ("oadp", "least-squares", "simple")
ALIKE, MOST_ALIKE = 0.3, 0.7  # of the noise of a score that one person's may differ by; those of two people do by √2
LITTLE = 0.95  # part of the SNPs below which a simple projection is visibly drawn to the centre
TILE_BYTES = 2**22  # of decoded genotypes: what a core's cache holds
FEW = 0.02  # part of a tile's genotypes that may be missing for a sparse product to be the faster one
SYSTEMS = 1 << 14  # systems of equations solved in one call
MATRIX_ENTRIES = 1 << 20  # numbers in the small matrices that are decomposed in one call


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
    recognised : ndarray of bool of shape (m,)
        Who is in the reference, by id and genotypes: these have the scores that they have there.
    namesakes : ndarray of bool of shape (m,)
        Who has the id of somebody in the reference, and other genotypes, or too few in common to tell.
    """

    samples: Samples
    scores: Array
    eigenvectors: Array | None
    snps_used: npt.NDArray[np.int64]
    n_loadings: int
    method: str
    report: MatchReport
    recognised: Mask
    namesakes: Mask

    def table(self) -> dict[str, Any]:
        """Columns by name: FID, IID, SNPS and the scores."""
        named = {"FID": self.samples.fid, "IID": self.samples.iid, "SNPS": self.snps_used}
        return named | {name: self.scores[:, j] for j, name in enumerate(component_names(self.scores.shape[1]))}

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

    People who are in the reference, which fits their noise, would be moved by this: OADP puts them up to twice as far
    out. Samples of a file that have the id of one of them, and the genotypes, are placed where they were, also where
    the family id differs or is missing, as in a VCF file.

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
    check_choice("method", method, METHODS)
    if isinstance(onto, str | os.PathLike):
        loadings = read_loadings(onto)
    else:
        loadings = onto if isinstance(onto, Loadings) else Loadings.of(onto)
    source = as_genotypes(genotypes)
    expected = getattr(onto, "n_features_in_", None)
    if is_table(genotypes) and column_names(genotypes) is None and expected not in (None, source.shape[1]):
        raise ValueError(
            f"The array has {source.shape[1]} columns and the model was fitted to {expected}: columns without names "
            "are matched by their place. Give all of them, NaN where a SNP was not typed, or a data frame or Genotypes."
        )
    if source.shape[0] == 0:
        raise ValueError("There are no samples to project.")
    sigma = loadings.singular_values
    if method == "oadp" and sigma is None:
        raise SourceError(
            f"OADP needs the singular values of the reference, which {loadings.origin} does not tell. Read it with ",
            Argument("eigenvalues"),
            " (and ",
            Argument("total_variance"),
            " for smartpca), or take ",
            Argument("method", "least-squares"),
            ".",
        )
    loadings, match = _match(loadings, source, by, ambiguous, min_share)
    V = loadings.loadings[match.loadings]
    if method != "simple":  # columns of length 1
        lengths = np.linalg.norm(loadings.loadings, axis=0)
        V = V / np.where(lengths > 0, lengths, 1.0)
    assert loadings.mean is not None
    assert loadings.scale is not None
    # (a, b) of z = ag + b for each SNP: where A1 is the other allele, z = −(g − (2 − mean))/scale
    mean, inverse = loadings.mean[match.loadings], 1 / loadings.scale[match.loadings]
    mean, inverse = np.where(match.flip, 2 - mean, mean), np.where(match.flip, -inverse, inverse)
    line = np.stack([inverse, -mean * inverse], axis=1)
    sums = _sum_genotypes(source.select(snps=match.snps), line, V, method != "simple")
    _refuse_samples(source, sums.seen == 0, "have no genotype at the SNPs that are used")
    M, k = loadings.shape
    if method == "simple":
        scores = sums.products
        share = sums.seen / M
        few = share < LITTLE
        if few.any():
            warnings.warn(
                f"{few.sum()} of {len(share)} samples have fewer than {LITTLE:.0%} of the loadings' SNPs, "
                f"{share.min():.1%} at the least: a simple projection takes the others for average and draws these "
                'samples to the centre by as much. method="least-squares" does not.',
                NumericalWarning,
                stacklevel=2,
            )
    else:
        scores, bad = _solve_least_squares(sums, V.T @ V)
        _refuse_samples(source, bad, f"have too few genotypes at the SNPs that are used for {k} components")
    if method == "oadp" and sigma is not None:
        rest = np.maximum(sums.squares - np.einsum("ij,ij->i", scores, sums.products), 0.0)
        scores = augmented_scores(scores, np.sqrt(rest * ((M - k) / (sums.seen - k))), sigma)
    found, both = np.zeros(len(scores), np.bool_), np.zeros(len(scores), np.bool_)
    if not is_table(genotypes) and sigma is not None and loadings.eigenvectors is not None:
        where, both = _find_namesakes(loadings, source.samples)
        named = where >= 0
        own = loadings.eigenvectors[where[named]].astype(np.float64) * sigma
        noise = np.sqrt(sums.squares[named] / sums.seen[named])
        fitted = sums.products[named] if method == "simple" else _solve_least_squares(sums, V.T @ V)[0][named]
        apart = [np.sqrt(np.mean((there - own) ** 2, axis=1)) for there in (sums.products[named], fitted)]
        lost = np.sqrt(M / sums.seen[named] - 1)  # what the SNPs that are not used add to the difference
        found[named] = np.minimum(*apart) < np.minimum(ALIKE + lost, MOST_ALIKE) * noise
        scores = np.array(scores)
        scores[found] = own[found[named]]
    unit = None
    if sigma is not None:  # NaN where an eigenvalue is 0
        unit = np.divide(scores, sigma, out=np.full_like(scores, np.nan), where=sigma > 0)
    report = match.report
    return Projection(source.samples, scores, unit, sums.seen, len(loadings.id), method, report, found, both & ~found)


def _find_namesakes(loadings: Loadings, samples: Samples) -> tuple[npt.NDArray[np.intp], Mask]:
    """Rows of the reference that have the ids of the samples, −1 where none has, and where the family is the same too.

    VCF, BGEN and VCF-Zarr have one id, IID or FID_IID: whoever has that of one person of the reference may be them.
    """
    if loadings.fid is None or loadings.iid is None:
        return np.full(len(samples), -1), np.zeros(len(samples), np.bool_)
    rows = {pair: i for i, pair in enumerate(zip(loadings.fid, loadings.iid, strict=True))}
    places = np.array([rows.get(pair, -1) for pair in zip(samples.fid, samples.iid, strict=True)], dtype=np.intp)
    both = places >= 0
    joined = [f"{fid}_{iid}" for fid, iid in rows]
    times, new_times = Counter([*loadings.iid, *joined]), Counter(samples.iid)
    alone = {name: i for names in (loadings.iid, joined) for i, name in enumerate(names) if times[name] == 1}
    for i in np.flatnonzero(~both).tolist():
        if new_times[samples.iid[i]] == 1:
            places[i] = alone.get(samples.iid[i], -1)
    return places, both


def _match(
    loadings: Loadings, source: Genotypes, by: str, ambiguous: str, min_share: float
) -> tuple[Loadings, SnpMatch]:
    """Match the SNPs; frequencies are those of the new samples where the reference's are not known, and it is said."""
    frequency, called = _count_frequencies(source) if ambiguous == "frequency" else (None, None)
    how: dict[str, Any] = {"by": by, "ambiguous": ambiguous}
    match = match_snps(loadings, source.snps, **how, min_share=min_share, frequency=frequency, chromosomes=called)
    if loadings.mean is not None:
        return loadings, match
    new, counted = (values[match.snps] for values in _count_frequencies(source))
    f, C = np.full(len(loadings.id), np.nan), np.zeros(len(loadings.id))
    f[match.loadings], C[match.loadings] = np.where(match.flip, 1 - new, new), counted
    warnings.warn(
        f"{loadings.origin} holds no allele frequencies: means and divisors are those of the {len(source.samples)} new "
        "samples, whose scores are then centred on themselves. Name the reference's .afreq or .frq file.",
        NumericalWarning,
        stacklevel=3,
    )
    loadings = loadings.with_frequencies(f, C)
    match = match_snps(loadings, source.snps, **how, min_share=0)  # without those that do not vary
    if match.report.share < min_share:
        few = "Too few SNPs vary among the new samples for "
        raise SourceError(few, Argument("min_share", min_share), f".\n{match.report!r}")
    return loadings, match


def _count_frequencies(source: Genotypes) -> tuple[Array, Array]:
    """Frequency of A1 among the new samples, ½ where nobody has a call, and the chromosomes it was counted in."""
    a1, called = (counts.astype(np.float64) for counts in count_alleles(source))
    return np.divide(a1, called, out=np.full(len(called), 0.5), where=called > 0), called


def _refuse_samples(source: Genotypes, bad: npt.NDArray[np.bool_], what: str) -> None:
    if bad.any():
        names = source.samples.take(bad).names
        raise ValueError(f"{len(names)} samples {what}: {list_few(names)}. Leave them out.")


class SampleSums(NamedTuple):
    """Of each sample: Σ z v, Σ z², genotypes seen, and the upper half of Σ v vᵀ over those missing, if asked for."""

    products: Array
    squares: Array
    seen: npt.NDArray[np.int64]
    lost: Array


def _sum_genotypes(genotypes: Genotypes, line: Array, V: Array, with_lost: bool) -> SampleSums:
    """One pass over the genotypes: z = ag + b times the rows of V, (a, b) a row of ``line``, on all threads."""
    k, width = V.shape[1], genotypes.width
    step = max(1, TILE_BYTES // max(1, 4 * width * 8))
    upper = np.triu_indices(k)

    def work(share: Sequence[tuple[int, int]]) -> list[Array]:
        decode = Decoder(step, width, np.float64)
        products, squares, missing = np.zeros((k, 4 * width)), np.zeros(4 * width), np.zeros(4 * width)
        lost = np.zeros((genotypes.shape[0] if with_lost else 0, len(upper[0])))
        for start, stop in share:
            packed, v = genotypes.packed(start, stop), V[start:stop]
            Z = decode(packed, line[start:stop])
            products += v.T @ Z
            squares += np.einsum("ij,ij->j", Z, Z)
            if (packed & ~(packed >> 1) & 0x55).any():  # a genotype is 01, missing
                missing += sample_counts(packed)[:, 3]
                if with_lost:
                    gaps = calls(packed, genotypes.n_file)[:, genotypes.sample_index] < 0
                    count = int(np.count_nonzero(gaps))
                    G = gaps.T.astype(np.float64)
                    few = count <= FEW * gaps.size
                    if count:  # add v vᵀ of every missing genotype to its sample
                        lost += np.asarray((sparse.csr_array(G) if few else G) @ (v[:, upper[0]] * v[:, upper[1]]))
            genotypes.give_back()
        return [products.T, squares, missing, lost]

    sums = parallel_sum(work, genotypes.spans(step), lambda one, other: list(map(add_to, one, other)))
    products, squares, missing = (part[genotypes.sample_index] for part in sums[:3])
    return SampleSums(products, squares, genotypes.shape[1] - missing.astype(np.int64), sums[3])


def _solve_least_squares(sums: SampleSums, whole: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Least squares from the seen genotypes: (VᵀV − lost) b = products; and for whom it has no single answer."""
    n, k = sums.products.shape
    b, bad = np.empty((n, k)), np.zeros(n, dtype=bool)
    upper = np.triu_indices(k)
    for start in range(0, n, SYSTEMS):
        part = slice(start, start + SYSTEMS)
        A = np.repeat(whole[None], len(sums.products[part]), axis=0)
        A[:, upper[0], upper[1]] -= sums.lost[part]
        A[:, upper[1], upper[0]] = A[:, upper[0], upper[1]]
        values, vectors = np.linalg.eigh(A)
        bad[part] = (values[:, 0] <= 1e-8 * np.abs(values[:, -1])) | (sums.seen[part] <= k)
        values[bad[part]] = 1.0
        coefficients = np.einsum("nji,nj->ni", vectors, sums.products[part]) / values
        b[part] = np.einsum("nij,nj->ni", vectors, coefficients)
    return b, bad


def augmented_scores(projected: Array, residual: Array, singular_values: Array) -> Array:
    r"""Online augmentation, decomposition and Procrustes, for each new sample on its own.

    The reference is :math:`UDV^T` and a new sample z has the projection :math:`\ell = V^Tz` and a rest of length r.
    Both together have the principal components of

    .. math:: Q = \begin{pmatrix} D & \ell\\ 0 & r\end{pmatrix} = PSW^T,

    k + 1 wide: the reference gets the scores :math:`U A`, :math:`A = D P_{1:k,1:k}`, the new sample
    :math:`y = (\ell, r) P_{:,1:k}`. The similarity that takes UA to the reference's own scores UD, with
    :math:`A^TD = L\Sigma R^T`, takes y to

    .. math:: \frac{\operatorname{tr}\Sigma}{\|A\|_F^2}\; y\,L R^T.

    U is orthonormal and centred, so that neither it nor a translation is needed (Zhang, Dey and Lee 2020).

    Parameters
    ----------
    projected : ndarray of shape (m, k)
        ℓ of each new sample.
    residual : ndarray of shape (m,)
        r of each.
    singular_values : ndarray of shape (k,)
        D, descending.

    Returns
    -------
    ndarray of shape (m, k)
        Scores in the axes and the scale of the reference.

    References
    ----------
    Zhang D., Dey R., Lee S. (2020). Fast and robust ancestry prediction using principal component analysis.
    Bioinformatics 36, 3439–3446.

    Privé F., Luu K., Blum M. G. B., McGrath J. J., Vilhjálmsson B. J. (2020). Efficient toolkit implementing best
    practices for principal component analysis of genetic data. Bioinformatics 36, 4449–4457.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.projection import augmented_scores
    >>> augmented_scores(np.array([[3.0]]), np.array([0.0]), np.array([10.0]))     # nothing new, nothing moves
    array([[3.]])
    >>> augmented_scores(np.array([[3.0]]), np.array([4.0]), np.array([10.0])).round(3)
    array([[3.508]])
    """
    (m, k), d = projected.shape, singular_values
    out = np.empty((m, k))
    step = max(1, MATRIX_ENTRIES // (k + 1) ** 2)
    for start in range(0, m, step):
        part = slice(start, start + step)
        Q = np.zeros((len(projected[part]), k + 1, k + 1))
        Q[:, np.arange(k), np.arange(k)] = d
        Q[:, :k, k], Q[:, k, k] = projected[part], residual[part]
        P = np.linalg.svd(Q)[0][:, :, :k]
        A = d[:, None] * P[:, :k]
        new = np.einsum("mi,mij->mj", Q[:, :, k], P)
        L, Sigma, Rt = np.linalg.svd(A.transpose(0, 2, 1) * d)
        scale = Sigma.sum(axis=1) / np.einsum("mij,mij->m", A, A)
        out[part] = scale[:, None] * np.einsum("mi,mij,mjl->ml", new, L, Rt)
    return out


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
    check_choice("scale", scale, ("auto", "eigenvectors", "scores"))
    if scale == "eigenvectors" and projection.eigenvectors is None:
        raise ValueError("The singular values of the reference are not known: write scale='scores'.")
    values = projection.scores if scale == "scores" or projection.eigenvectors is None else projection.eigenvectors
    file = Path(path)
    with write_whole_folder(file.parent, [file.name], overwrite=overwrite) as folder:
        columns = {"SNPS": projection.snps_used} | dict(zip(component_names(len(values.T)), values.T, strict=True))
        write_sample_table(folder / file.name, projection.samples, columns)
    return file
