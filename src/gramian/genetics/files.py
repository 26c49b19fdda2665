"""Results of a genotype PCA as files: those of PLINK 1.9, PLINK 2 and smartpca, covariates, Parquet, and our own."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gramian.genetics.genotypes import PRICE
from gramian.genetics.loadings import FORMAT, Loadings, score_lengths, write_loadings
from gramian.genetics.text import as_text, component_names, list_few, one_field, write_rows, write_sample_table
from gramian.inputs.checks import check_choice, fetch_numbers
from gramian.inputs.devices import convert_to_numpy
from gramian.sources.errors import Argument, SourceError
from gramian.sources.files import write_parquet
from gramian.sources.plink import Samples
from gramian.sources.writing import write_json, write_whole, write_whole_folder

if TYPE_CHECKING:
    from gramian.genetics.pca import GenotypePCA

Array = npt.NDArray[np.float64]

STATUS = {"1": "Control", "2": "Case"}  # what smartpca calls the phenotypes of a .fam file
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
        ".evec": "unit eigenvectors, as smartpca writes them; its own with missing 'least-squares'",
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
        named = formats if isinstance(formats, str) else ",".join(unknown)
        raise SourceError(Argument("formats", named), f": give a list of some of {', '.join(FORMATS)}.")
    if {"plink1", "plink2"} <= set(formats):
        twice = Argument("formats", "plink1,plink2")
        text = ": both write files of the same names; choose one, or write the other under another "
        raise SourceError(twice, text, Argument("prefix"), ".")
    stem = Path(prefix)
    if not stem.name or str(prefix).endswith(("/", os.sep)):
        raise ValueError(f"prefix={str(prefix)!r} names a folder: add the beginning of the files' names.")
    endings = {".json", *(ending for name in formats for ending in FORMATS[name])}
    return sorted(stem.with_name(stem.name + ending) for ending in endings)


def write_results(
    model: GenotypePCA,
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
    treats missing genotypes as it does: ``missing="pairwise"`` for PLINK's exact PCA, ``scaling="patterson"`` (with
    ``altnormstyle: NO`` "price") and ``missing="least-squares"`` for smartpca.

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
    paths, model = result_files(prefix, formats), convert_to_numpy(model)
    stem, files = Path(prefix).name, {}
    with write_whole_folder(paths[0].parent, [path.name for path in paths], overwrite=overwrite) as folder:
        for kind in formats:
            for ending, what in FORMATS[kind].items():
                _write_file(folder / f"{stem}{ending}", kind, ending, model, header, "\t" if tabs else " ", labels)
                files[f"{stem}{ending}"] = what
        # the scale of every number, the counts, the certificate and the versions
        meaning = {
            "format": FORMAT,
            "samples": len(model.samples_),
            "snps": len(model.snps_),
            "dropped": model.dropped_,
            "components": len(model.components_),
            "scaling": model.scaling,
            "missing": model.missing,
            "total_variance": model.total_variance_,
            "eigenvalue_scale": model.eigenvalue_scale_,
            "eigenvalues": model.eigenvalues_,
            "eigenvalues_plink": plink_eigenvalues(model),
            "eigenvalues_smartpca": smartpca_eigenvalues(model)[: len(model.components_)],
            "singular_values": model.singular_values_,
            "score_lengths": score_lengths(model),
            "files": files,
            "certificate": model.certificate_.as_dict(),
            "versions": {
                "gramian": version("gramian"),
                "numpy": np.__version__,
                "python": platform.python_version(),
            },
        }
        write_json(folder / f"{stem}.json", meaning)
    return paths


def _write_file(
    path: Path, kind: str, ending: str, model: GenotypePCA, header: bool, gap: str, labels: Sequence[Any] | None
) -> None:
    """Write one of the files, with six digits as PLINK does, and with the decimals of smartpca."""
    samples, snps, U = model.samples_, model.snps_, model.eigenvectors_
    k, gap = U.shape[1], gap if kind == "plink1" else "\t"
    pcs, numbers = component_names(k), ["%.6g"] * k
    if kind == "gramian":
        write_loadings(path, Loadings.of(model))
    elif ending == ".eigenvec.parquet":
        write_parquet(path, {"FID": samples.fid, "IID": samples.iid, **dict(zip(pcs, U.T, strict=True))})
    elif ending == ".loadings.parquet":
        named = {"CHROM": snps.chromosome, "ID": snps.id, "POS": snps.position, "A1": snps.a1, "A2": snps.a2}
        measures = {"MEAN": model.mean_, "SCALE": model.scale_}
        write_parquet(path, {**named, **measures, **dict(zip(pcs, model.components_, strict=True))})
    elif ending == ".eigenval":
        write_rows(path, "%.6g\n", plink_eigenvalues(model))
    elif ending == ".eval":
        write_rows(path, "%12.6f\n", smartpca_eigenvalues(model))
    elif (kind, ending) == ("plink1", ".eigenvec"):
        row = gap.join(["%s"] * 2 + numbers) + "\n"
        heads = [gap.join(["FID", "IID", *pcs])] if header else []
        write_rows(path, row, one_field(samples.fid), one_field(samples.iid), U, heads=heads)
    elif (kind, ending) == ("plink2", ".eigenvec"):
        write_sample_table(path, samples, dict(zip(pcs, U.T, strict=True)))
    elif ending == ".evec":
        people = one_field(as_text([f"{fid}:{iid}" for fid, iid in zip(samples.fid, samples.iid, strict=True)]))
        known = [STATUS.get(code, "???") for code in samples.phenotype] if labels is None else labels
        if len(known) != len(people):
            raise ValueError(f"labels has {len(known)} labels for {len(people)} samples.")
        values = "".join([f"{value:9.3f} " for value in smartpca_eigenvalues(model)[:k]])
        row = "%20s " + "%10.4f  " * k + "%15s\n"
        write_rows(path, row, people, U, one_field(as_text(known), "???"), heads=[f"{'#eigvals:':>20} {values}"])
    else:  # weights of the SNPs, Zᵀu/√λ = √M·V, of length √M
        W = np.sqrt(len(snps)) * model.components_.T.astype(np.float64)
        chromosome, name = one_field(snps.chromosome), one_field(snps.id, ".")
        if ending == ".snpweight":  # of allele A1
            write_rows(path, "%20s %2s %12d" + " %9.3f" * k + "\n", name, chromosome, snps.position, W)
            return
        swap = model.allele_frequency_ > 0.5  # of the minor allele
        minor, major = np.where(swap, snps.a2, snps.a1), np.where(swap, snps.a1, snps.a2)
        W = np.where(swap, -1.0, 1.0)[:, None] * W
        alleles, titles = (minor, major), ["CHR", "VAR", "A1", "A2"]
        if kind == "plink2":
            alleles, titles, header = (major, minor), ["#CHROM", "ID", "MAJ", "NONMAJ"], True
        row = gap.join(["%s"] * 4 + numbers) + "\n"
        heads = [gap.join([*titles, *pcs])] if header else []
        write_rows(path, row, chromosome, name, *map(one_field, alleles), W, heads=heads)


def plink_eigenvalues(model: GenotypePCA) -> Array:
    """λ of ZZᵀ/M with PLINK's √(2f(1−f)) as divisor.

    The divisors of Patterson and of Price have no 2 in the root, which doubles λ; where nothing was divided by, there
    is no such scale and λ is as it is. PLINK's M counts SNPs that do not vary.
    """
    used = len(model.mean_)
    share = used / (used + getattr(model, "monomorphic_", 0))
    return model.eigenvalues_ * (share * (0.5 if model.scaling in ("patterson", *PRICE) else 1.0))


def smartpca_eigenvalues(model: GenotypePCA) -> Array:
    """λ in the scale in which all n of them sum to n − 1: all of them where all were computed."""
    known = model.eigenvalues_ if model.all_eigenvalues_ is None else model.all_eigenvalues_
    return np.asarray(known * ((len(model.eigenvectors_) - 1) / model.total_variance_))


PROGRAMS = ("regenie", "saige", "plink2")


def write_covariates(
    path: str | os.PathLike[str],
    samples: Samples,
    scores: npt.ArrayLike,
    program: str = "regenie",
    *,
    columns: Mapping[str, npt.ArrayLike] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write components, and other columns, as covariates.

    regenie (``--covarFile``) refuses a header that does not begin with ``FID IID``; SAIGE takes phenotypes and
    covariates as columns of one table (``--phenoFile``, ``--covarColList``, ``--sampleIDColinphenoFile=IID``); PLINK 2
    (``--covar``) knows a header by its ``#``. Components are divided by their standard deviation, so that none is lost
    among numbers of another size; an association does not change by it.

    Parameters
    ----------
    path : path
        The file.
    samples : Samples
        Who.
    scores : array-like of shape (n, k)
        Their components.
    program : {"regenie", "saige", "plink2"}, default="regenie"
        Who will read it.
    columns : mapping of str to array-like, optional
        Others, a phenotype or age and sex, by name; NaN is written as NA.
    overwrite : bool, default=False
        Whether a file of this name may be replaced.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics import write_covariates
    >>> from gramian.sources.plink import Samples
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     two, scores = Samples.numbered(2), [[1.0], [3.0]]
    ...     file = write_covariates(Path(folder, "c.txt"), two, scores, columns={"age": [40, 50]})
    ...     print(file.read_text().rstrip())
    FID IID PC1 age
    0 s1 -1 40
    0 s2 1 50
    """
    check_choice("program", program, PROGRAMS)
    U = np.asarray(fetch_numbers(scores, "scores"), dtype=np.float64)
    n = len(samples)
    if U.ndim != 2 or len(U) != n or not np.isfinite(U).all():
        raise ValueError(f"scores has the shape {U.shape}, or values that are not finite; {n} samples need a row each.")
    pairs = list(zip(samples.fid, samples.iid, strict=True))
    if len(set(pairs)) < n:
        twice = sorted({" ".join(pair) for pair in pairs if pairs.count(pair) > 1})
        raise ValueError(f"Samples are given more than once, their rows could not be told apart: {list_few(twice)}.")
    spread = U.std(axis=0)
    U = (U - U.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    names = component_names(U.shape[1])
    others: dict[str, Any] = {}
    for name, given in (columns or {}).items():
        column = np.asarray(fetch_numbers(given, name) if isinstance(given, np.ma.MaskedArray) else given)
        if column.shape != (n,) or name in names or len(name.split()) != 1:
            raise ValueError(f"columns: {name!r} must be one word, no component, and have {n} values.")
        if column.dtype.kind in "iub":
            texts = [str(int(value)) for value in column]
        elif column.dtype.kind == "f":
            texts = [repr(float(value)).removesuffix(".0") if value == value else "NA" for value in column]
        else:
            texts = list(column)
        others[name] = one_field(as_text(texts), "NA")
    gap, family = ("\t", "#FID") if program == "plink2" else (" ", "FID")
    row = gap.join(["%s", "%s", *["%.8g"] * U.shape[1], *["%s"] * len(others)]) + "\n"
    head = gap.join([family, "IID", *names, *others])
    with write_whole(path, overwrite=overwrite) as part:
        write_rows(part, row, one_field(samples.fid), one_field(samples.iid), U, *others.values(), heads=[head])
    return Path(path)
