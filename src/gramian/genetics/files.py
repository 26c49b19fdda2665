"""Results of a genotype PCA as files: those of PLINK 1.9, PLINK 2 and smartpca, Parquet, and our own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gramian.estimators._devices import in_numpy
from gramian.genetics import _result_files as out
from gramian.genetics._companion import write_arrays, write_companion
from gramian.genetics._fitted import FittedGenotypePCA, score_lengths
from gramian.genetics._whole import whole
from gramian.sources._extras import load_pyarrow

__all__ = ["FORMATS", "result_files", "write_results"]

FORMATS: dict[str, dict[str, str]] = {
    "gramian": {
        ".loadings.npz": "everything a projection needs, exactly: alleles, means, divisors, unit loadings, σ, scores"
    },
    "parquet": {
        ".eigenvec.parquet": "unit eigenvectors, one row for each sample",
        ".loadings.parquet": "unit loadings, one row for each SNP",
    },
    "plink1": {
        ".eigenvec": "unit eigenvectors, as PLINK 1.9 writes them",
        ".eigenval": "eigenvalues of ZZ'/M in PLINK's scale; where scaling is 'none', of centred genotypes",
        ".eigenvec.var": "Z'u / sqrt(eigenvalue): loadings of length sqrt(M), for the minor allele",
    },
    "plink2": {
        ".eigenvec": "unit eigenvectors, as PLINK 2 writes them",
        ".eigenval": "eigenvalues of ZZ'/M in PLINK's scale; where scaling is 'none', of centred genotypes",
        ".eigenvec.var": "Z'u / sqrt(eigenvalue): loadings of length sqrt(M), for the non-major allele",
    },
    "smartpca": {
        ".evec": "unit eigenvectors, as smartpca writes them; its own with scaling 'smartpca', missing 'least-squares'",
        ".eval": "eigenvalues in the scale in which all n sum to n - 1; the first of them where not all were computed",
        ".snpweight": "loadings of length sqrt(M), for allele A1",
    },
}


def result_files(prefix: str | os.PathLike[str], formats: Sequence[str] = ("plink2", "gramian")) -> list[Path]:
    """The files that :func:`write_results` writes.

    Parameters
    ----------
    prefix : path
        Folder and beginning of the names.
    formats : sequence of str
        Keys of ``FORMATS``.

    Returns
    -------
    list of Path
        In alphabetical order.

    Examples
    --------
    >>> from gramian.genetics.files import result_files
    >>> [path.name for path in result_files("results/cohort", ["smartpca"])]
    ['cohort.eval', 'cohort.evec', 'cohort.json', 'cohort.snpweight']
    """
    unknown = [name for name in formats if name not in FORMATS]
    if unknown or isinstance(formats, str):
        raise ValueError(f"formats={formats!r}: give a list of some of {', '.join(FORMATS)}.")
    if {"plink1", "plink2"} <= set(formats):
        raise ValueError("plink1 and plink2 write files of the same names: choose one, or write to two prefixes.")
    endings = {".json", *(ending for name in formats for ending in FORMATS[name])}
    return sorted(_named(prefix, ending) for ending in endings)


def _named(prefix: str | os.PathLike[str], ending: str) -> Path:
    stem = Path(prefix)
    if not stem.name or str(prefix).endswith(("/", os.sep)):
        raise ValueError(f"prefix={str(prefix)!r} names a folder: add the beginning of the files' names.")
    return stem.with_name(stem.name + ending)


def write_results(
    model: FittedGenotypePCA,
    prefix: str | os.PathLike[str],
    formats: Sequence[str] = ("plink2", "gramian"),
    *,
    header: bool = False,
    tabs: bool = False,
    labels: Sequence[Any] | None = None,
    overwrite: bool = False,
) -> list[Path]:
    r"""Write eigenvectors, eigenvalues and loadings, with a JSON file that says what the numbers mean.

    With Z = UΣVᵀ of M SNPs and λ = σ²/M, PLINK's and smartpca's files hold U, and loadings of length √M:

    .. math:: W = Z^T U \Lambda^{-1/2} = \sqrt M\,V.

    PLINK gives them for the minor allele and smartpca for the first allele of the ``.bim`` file. PLINK's eigenvalues
    are λ with the divisor √(2f(1−f)), smartpca's are scaled so that all n sum to n − 1. The files appear together
    when all are whole.

    The numbers are those of the fit, in the layout of another program. They are that program's numbers where the fit
    treats missing genotypes as it does: ``missing="pairwise"`` for PLINK's exact PCA, ``scaling="smartpca"`` and
    ``missing="least-squares"`` for smartpca.

    Parameters
    ----------
    model : GenotypePCA
        A fitted model.
    prefix : path
        Folder, created where it is not there, and beginning of the names.
    formats : sequence of str
        Some of "plink1", "plink2" (not both: their files have the same names), "smartpca", "parquet" and "gramian",
        which is what projection reads back without loss.
    header, tabs : bool
        For "plink1": a line with the names of the columns, and tabs instead of spaces.
    labels : sequence of n str, optional
        For "smartpca": the label of each sample, its population as a rule; the case status where not given.
    overwrite : bool
        Whether files that are there may be replaced.

    Returns
    -------
    list of Path
        The files, those of :func:`result_files`.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.files import write_results
    >>> from gramian.genetics.pca import GenotypePCA
    >>> model = GenotypePCA(2).fit(np.random.default_rng(0).integers(0, 3, size=(20, 50)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_results(model, Path(folder, "cohort"))
    ...     print(Path(folder, "cohort.eigenvec").read_text().split("\n")[0])
    #FID	IID	PC1	PC2
    """
    paths, model = result_files(prefix, formats), in_numpy(model)
    writers = _writers(model, header, tabs, labels)
    described = {ending: what for name in formats for ending, what in FORMATS[name].items()}
    with whole(paths, overwrite) as folder:
        place = folder / Path(prefix).name
        for kind in formats:
            for ending in FORMATS[kind]:
                writers[kind, ending](_named(place, ending))
        files = {_named(place, ending).name: what for ending, what in described.items()}
        write_companion(_named(place, ".json"), model, files)
    return paths


def _writers(
    model: FittedGenotypePCA, header: bool, tabs: bool, labels: Sequence[Any] | None
) -> dict[tuple[str, str], Callable[[Path], None]]:
    """What writes each of the files."""
    return {
        ("gramian", ".loadings.npz"): lambda path: _write_loadings(path, model),
        ("parquet", ".eigenvec.parquet"): lambda path: _write_sample_parquet(path, model),
        ("parquet", ".loadings.parquet"): lambda path: _write_snp_parquet(path, model),
        ("plink1", ".eigenvec"): lambda path: out.write_plink1_eigenvec(path, model, header, tabs),
        ("plink1", ".eigenval"): lambda path: out.write_eigenval(path, model),
        ("plink1", ".eigenvec.var"): lambda path: out.write_plink1_weights(path, model, header, tabs),
        ("plink2", ".eigenvec"): lambda path: out.write_plink2_eigenvec(path, model),
        ("plink2", ".eigenval"): lambda path: out.write_eigenval(path, model),
        ("plink2", ".eigenvec.var"): lambda path: out.write_plink2_weights(path, model),
        ("smartpca", ".evec"): lambda path: out.write_evec(path, model, labels),
        ("smartpca", ".eval"): lambda path: out.write_eval(path, model),
        ("smartpca", ".snpweight"): lambda path: out.write_snpweight(path, model),
    }


def _write_loadings(path: Path, model: FittedGenotypePCA) -> None:
    """All that a projection needs, in full precision."""
    snps, samples = model.snps_, model.samples_
    write_arrays(
        path,
        chromosome=snps.chromosome,
        id=snps.id,
        position=snps.position,
        effect=snps.a1,
        other=snps.a2,
        mean=model.mean_,
        scale=model.scale_,
        loadings=np.asarray(model.components_.T, dtype=np.float64),
        singular_values=score_lengths(model),
        total_variance=model.total_variance_,
        eigenvectors=np.asarray(model.eigenvectors_, dtype=np.float64),
        fid=samples.fid,
        iid=samples.iid,
        scaling=np.array(model.scaling),
    )


def _write_sample_parquet(path: Path, model: FittedGenotypePCA) -> None:
    _write_parquet(path, {"FID": model.samples_.fid, "IID": model.samples_.iid}, model.eigenvectors_)


def _write_snp_parquet(path: Path, model: FittedGenotypePCA) -> None:
    snps = model.snps_
    columns = {"CHROM": snps.chromosome, "ID": snps.id, "POS": snps.position, "A1": snps.a1, "A2": snps.a2}
    _write_parquet(path, columns | {"MEAN": model.mean_, "SCALE": model.scale_}, model.components_.T)


def _write_parquet(path: Path, columns: dict[str, Any], numbers: Any) -> None:
    pyarrow = load_pyarrow()
    pcs = dict(zip(out.components(numbers.shape[1]), np.ascontiguousarray(numbers.T), strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns | pcs), path)
