"""Results of a genotype PCA as files: those of PLINK 1.9, PLINK 2 and smartpca, Parquet, and our own."""

from __future__ import annotations

import io
import math
import os
import platform
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gramian.inputs.devices import convert_to_numpy
from gramian.sources.files import write_parquet
from gramian.sources.plink import Samples, Snps
from gramian.sources.writing import write_json, write_whole, write_whole_folder

Text = npt.NDArray[np.object_]
Array = npt.NDArray[np.float64]

FORMAT = "gramian genotype PCA 1"
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
        ".evec": "unit eigenvectors, as smartpca writes them; its own with scaling 'smartpca', missing 'least-squares'",
        ".eval": "eigenvalues in the scale in which all n sum to n - 1; the first of them where not all were computed",
        ".snpweight": "loadings of length sqrt(M), for allele A1",
    },
}


class FittedGenotypePCA(Protocol):
    """What is read of a fitted ``GenotypePCA``."""

    scaling: str
    missing: str
    eigenvectors_: Array
    eigenvalues_: Array
    eigenvalue_scale_: str
    singular_values_: Array
    components_: Array
    mean_: Array
    scale_: Array
    allele_frequency_: Array
    samples_: Samples
    snps_: Snps
    dropped_: Any
    certificate_: Any
    total_variance_: float
    all_eigenvalues_: Array | None


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
    stem = Path(prefix)
    if not stem.name or str(prefix).endswith(("/", os.sep)):
        raise ValueError(f"prefix={str(prefix)!r} names a folder: add the beginning of the files' names.")
    endings = {".json", *(ending for name in formats for ending in FORMATS[name])}
    return sorted(stem.with_name(stem.name + ending) for ending in endings)


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
    paths, model = result_files(prefix, formats), convert_to_numpy(model)
    stem, files = Path(prefix).name, {}
    with write_whole_folder(paths[0].parent, [path.name for path in paths], overwrite=overwrite) as folder:
        for kind in formats:
            for ending, what in FORMATS[kind].items():
                _write_file(folder / f"{stem}{ending}", kind, ending, model, header, "\t" if tabs else " ", labels)
                files[f"{stem}{ending}"] = what
        write_json(folder / f"{stem}.json", _describe(model, files))
    return paths


def _write_file(
    path: Path, kind: str, ending: str, model: FittedGenotypePCA, header: bool, gap: str, labels: Sequence[Any] | None
) -> None:
    """Write one of the files, with six digits as PLINK does, and with the decimals of smartpca."""
    samples, snps, U = model.samples_, model.snps_, model.eigenvectors_
    k, gap = U.shape[1], gap if kind == "plink1" else "\t"
    pcs, numbers = component_names(k), ["%.6g"] * k
    if kind == "gramian":
        _write_loadings(path, model)
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
        write_sample_table(path, samples, pcs, U)
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


def _describe(model: FittedGenotypePCA, files: dict[str, str]) -> dict[str, Any]:
    """The scale of every number, the counts, the certificate and the versions."""
    return {
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


def plink_eigenvalues(model: FittedGenotypePCA) -> Array:
    """λ of ZZᵀ/M with PLINK's √(2f(1−f)) as divisor.

    The divisors of Patterson and of smartpca have no 2 in the root, which doubles λ; where nothing was divided by,
    there is no such scale and λ is as it is.
    """
    return model.eigenvalues_ * (0.5 if model.scaling in ("patterson", "smartpca") else 1.0)


def score_lengths(model: FittedGenotypePCA) -> Array:
    """What scores are divided by to be in the scale of ``eigenvectors_``: σ, or the lengths of fitted scores."""
    return np.asarray(getattr(model, "score_lengths_", model.singular_values_), dtype=np.float64)


def smartpca_eigenvalues(model: FittedGenotypePCA) -> Array:
    """λ in the scale in which all n of them sum to n − 1: all of them where all were computed."""
    known = model.eigenvalues_ if model.all_eigenvalues_ is None else model.all_eigenvalues_
    return np.asarray(known * ((len(model.eigenvectors_) - 1) / model.total_variance_))


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


def _write_loadings(path: Path, model: FittedGenotypePCA) -> None:
    snps, samples = model.snps_, model.samples_
    arrays: dict[str, Any] = {
        "chromosome": snps.chromosome,
        "id": snps.id,
        "position": snps.position,
        "effect": snps.a1,
        "other": snps.a2,
        "mean": model.mean_,
        "scale": model.scale_,
        "loadings": np.asarray(model.components_.T, dtype=np.float64),
        "singular_values": score_lengths(model),
        "total_variance": model.total_variance_,
        "eigenvectors": np.asarray(model.eigenvectors_, dtype=np.float64),
        "fid": samples.fid,
        "iid": samples.iid,
        "scaling": np.array(model.scaling),
    }
    for name, (_, kind) in FIELDS.items():
        if kind == "O":  # strings as one string of bytes, so that none is padded or pickled
            strings = arrays[name].tolist()
            bad = next((text for text in strings if SEPARATOR in text), None)
            if bad is not None:
                raise ValueError(f"The name {bad!r} has a line break in it, which no file of results can hold.")
            arrays[name] = np.frombuffer(SEPARATOR.join(strings).encode("utf-8"), dtype=np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)


def read_arrays(path: Path, scalings: Sequence[str]) -> dict[str, Any]:
    """Read a file of loadings: all fields there, of the sizes and kinds that were written, and finite."""
    try:
        with path.open("rb") as file:  # opened here, since NumPy leaves a damaged file open
            found = np.load(file, allow_pickle=False)
            if not isinstance(found, np.lib.npyio.NpzFile):
                raise ValueError("it holds one array")
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
    if arrays["scaling"] not in scalings:
        raise ValueError(f"{path}: scaling {arrays['scaling']!r} is none of {', '.join(scalings)}.")
    return arrays


# Tables of text

ROWS = 1 << 14  # rows formatted together


def component_names(k: int) -> list[str]:
    """PC1, PC2, …"""
    return [f"PC{j + 1}" for j in range(k)]


def as_text(values: Sequence[Any]) -> Text:
    """An array of Python strings."""
    out = np.empty(len(values), dtype=object)
    out[:] = [str(value) for value in values]
    return out


def one_field(column: Text, absent: str = "0") -> Text:
    """A column of names, each of which is one field: ``absent`` for an empty one, and none with white space in it.

    Examples
    --------
    >>> one_field(as_text(["a", ""])).tolist()
    ['a', '0']
    """
    fields = {name: name.split() for name in set(column)}
    if all(parts == [name] for name, parts in fields.items()):
        return column
    bad = next((name for name, parts in fields.items() if parts not in ([name], [])), None)
    if bad is not None:
        raise ValueError(
            f"The name {bad!r} has white space in it, which would be two fields of a text file: replace it by _, or "
            "write the formats 'gramian' and 'parquet'."
        )
    return as_text([name if fields[name] else absent for name in column])


def write_rows(path: Path, row: str, *columns: npt.NDArray[Any], heads: Sequence[str] = ()) -> None:
    r"""Write ``row % (field, field, …)`` for every row of the columns; a matrix is as many columns as it has.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.files import write_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "t.txt")
    ...     write_rows(file, "%s %.6g %.6g\n", np.array(["a", "b"]), np.array([[1 / 3, 2.0], [0.5, 1e-7]]))
    ...     print(file.read_text().rstrip())
    a 0.333333 2
    b 0.5 1e-07
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{head}\n" for head in heads)
        for start in range(0, len(columns[0]), ROWS):
            part = [column[start : start + ROWS] for column in columns]
            fields = [line for block in part for line in (block.T.tolist() if block.ndim == 2 else [block.tolist()])]
            file.write("".join([row % values for values in zip(*fields, strict=True)]))


def write_tsv(path: str | os.PathLike[str], columns: Mapping[str, Any], overwrite: bool) -> None:
    r"""Write columns between tabs under their names, with all digits and NA for NaN; the file is whole or absent.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.files import write_tsv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tsv(Path(folder, "t.tsv"), {"id": ["rs1"], "p": [0.1]}, overwrite=False)
    ...     Path(folder, "t.tsv").read_text()
    'id\tp\nrs1\t0.1\n'
    """

    def texts(column: Any) -> list[str]:
        values = np.asarray(column)
        return ["NA" if values.dtype.kind == "f" and value != value else str(value) for value in values.tolist()]

    rows = zip(*map(texts, columns.values()), strict=True)
    with write_whole(path, overwrite=overwrite) as part, part.open("w", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(columns) + "\n")
        file.writelines("\t".join(row) + "\n" for row in rows)


def write_sample_table(path: Path, samples: Samples, titles: list[str], *columns: npt.NDArray[Any]) -> None:
    """A table of samples as PLINK 2 writes them: #FID and IID, or #IID alone where nobody has a FID."""
    has_family = any(fid != "" for fid in samples.fid)
    ids = [one_field(column) for column in ([samples.fid, samples.iid] if has_family else [samples.iid])]
    heads = ["#FID", "IID"] if has_family else ["#IID"]
    kinds = ["%.6g" if c.dtype.kind == "f" else "%s" for c in columns for _ in range(1 if c.ndim == 1 else c.shape[1])]
    row = "\t".join(["%s"] * len(ids) + kinds) + "\n"
    write_rows(path, row, *ids, *columns, heads=["\t".join([*heads, *titles])])


@dataclass(frozen=True, eq=False)
class Lines:
    """The fields of a file's lines, split at white space, as many in each.

    Attributes
    ----------
    fields : list of str
        Of the first line.
    header : list of str or None
        The same where that is a header.
    columns : list of ndarray
        The fields by column: numbers where they were asked for, else text.
    first : int
        Number of the line with the first row.
    """

    fields: list[str]
    header: list[str] | None
    columns: list[npt.NDArray[Any]]
    first: int


def read_lines(
    path: Path, is_header: Callable[[list[str]], bool], numeric: Callable[[list[str]], Sequence[int]]
) -> Lines:
    """Read a table of text.

    Parameters
    ----------
    path : Path
        The file.
    is_header : callable
        Whether the first line, given as fields, is a header.
    numeric : callable
        Which columns are numbers, told by the fields of the first line.
    """
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not text in UTF-8 (byte {error.start}).") from None
    head, _, rest = content.partition("\n")
    fields = head.split()
    header = fields if fields and is_header(fields) else None
    body, first = (content, 1) if header is None else (rest, 2)
    if not body.strip():
        raise ValueError(f"{path}: the file has no rows.")
    if not fields:
        raise ValueError(f"{path}: line 1 is empty.")
    try:
        numbers = np.isin(np.arange(len(fields)), list(numeric(fields)))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    dtype = np.dtype([(f"{j}", np.float64 if number else object) for j, number in enumerate(numbers)])
    try:
        table = np.loadtxt(io.StringIO(body, None), dtype=dtype, comments=None, ndmin=1)
    except ValueError as error:
        _name_bad_line(path, body, first, numbers, header)
        raise ValueError(f"{path}: {error}") from error
    columns = [table[name] for name in table.dtype.names or ()]
    if not all(np.isfinite(column).all() for column, number in zip(columns, numbers, strict=True) if number):
        _name_bad_line(path, body, first, numbers, header)
    return Lines(fields, header, columns, first)


def _name_bad_line(path: Path, body: str, first: int, numbers: npt.NDArray[np.bool_], header: list[str] | None) -> None:
    """Name the first line that has another number of fields, or something else where a number should be."""
    for line, row in enumerate(body.splitlines(), first):
        fields = row.split()
        if fields and len(fields) != len(numbers):
            raise ValueError(
                f"{path}: line {line} has {len(fields)} fields; {len(numbers)} were expected as in the first line."
            )
        for j, field in enumerate(fields):
            if numbers[j] and not (is_number(field) and math.isfinite(float(field))):
                name = f" ({header[j]})" if header else ""
                raise ValueError(f"{path}: line {line}, column {j + 1}{name}: {field!r} is not a finite number.")


def is_number(field: str) -> bool:
    """Whether a field of text is a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True
