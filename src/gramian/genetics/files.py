"""Results of a genotype PCA as files: those of PLINK 1.9, PLINK 2 and smartpca, Parquet, and our own."""

from __future__ import annotations

import io
import json
import math
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from gramian.inputs.devices import convert_to_numpy
from gramian.sources.files import load_pyarrow
from gramian.sources.plink import Samples, Snps
from gramian.sources.writing import write_whole_folder

__all__ = [
    "FORMAT",
    "FORMATS",
    "FittedGenotypePCA",
    "Lines",
    "names",
    "plink_eigenvalues",
    "read_arrays",
    "read_lines",
    "result_files",
    "score_lengths",
    "smartpca_eigenvalues",
    "text",
    "variant_weights",
    "write_arrays",
    "write_companion",
    "write_eigenval",
    "write_eval",
    "write_evec",
    "write_plink1_eigenvec",
    "write_plink1_weights",
    "write_plink2_eigenvec",
    "write_plink2_weights",
    "write_results",
    "write_rows",
    "write_snpweight",
]

Text = npt.NDArray[np.object_]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

ROWS = 1 << 14  # rows formatted together


def text(values: Sequence[Any]) -> Text:
    """An array of Python strings."""
    out = np.empty(len(values), dtype=object)
    out[:] = [str(value) for value in values]
    return out


def names(column: Text, absent: str = "0") -> Text:
    """A column of names, each of which is one field: ``absent`` for an empty one, and none with white space in it.

    Examples
    --------
    >>> names(text(["a", ""])).tolist()
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
    return text([name if fields[name] else absent for name in column])


def write_rows(file: IO[str], row: str, *columns: npt.NDArray[Any]) -> None:
    r"""Write ``row % (field, field, …)`` for every row of the columns; a matrix is as many columns as it has.

    Examples
    --------
    >>> import io, numpy as np
    >>> file = io.StringIO()
    >>> write_rows(file, "%s %.6g %.6g\n", np.array(["a", "b"], dtype=object), np.array([[1 / 3, 2.0], [0.5, 1e-7]]))
    >>> print(file.getvalue().rstrip())
    a 0.333333 2
    b 0.5 1e-07
    """
    for start in range(0, len(columns[0]), ROWS):
        part = [column[start : start + ROWS] for column in columns]
        fields = [line for block in part for line in (block.T.tolist() if block.ndim == 2 else [block.tolist()])]
        file.write("".join([row % values for values in zip(*fields, strict=True)]))


@dataclass(frozen=True, eq=False)
class Lines:
    """The fields of a file's lines, split at white space, as many in each.

    Attributes
    ----------
    path : Path
        The file.
    header : list of str or None
        Fields of the first line, where that is a header.
    columns : list of ndarray
        The fields by column: numbers where they were asked for, else text.
    first : int
        Number of the line with the first row.
    """

    path: Path
    header: list[str] | None
    columns: list[npt.NDArray[Any]]
    first: int

    def place(self, name: str) -> int | None:
        """Where a column of the header is."""
        return None if self.header is None or name not in self.header else self.header.index(name)

    def text(self, j: int) -> Text:
        """A column of text."""
        return np.ascontiguousarray(self.columns[j])

    def numbers(self, where: Sequence[int]) -> Numbers:
        """Some columns of numbers as a matrix."""
        return np.stack([self.columns[j] for j in where], axis=1)


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
    content = _content(path)
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
    return Lines(path, header, _columns(path, body, first, numbers, header), first)


def _columns(path: Path, body: str, first: int, numbers: Mask, header: list[str] | None) -> list[npt.NDArray[Any]]:
    dtype = np.dtype([(f"{j}", np.float64 if number else object) for j, number in enumerate(numbers)])
    try:
        table = np.loadtxt(io.StringIO(body, None), dtype=dtype, comments=None, ndmin=1)
    except ValueError as error:
        _complain(path, body, first, numbers, header)
        raise ValueError(f"{path}: {error}") from error
    columns = [table[name] for name in table.dtype.names or ()]
    if not all(np.isfinite(column).all() for column, number in zip(columns, numbers, strict=True) if number):
        _complain(path, body, first, numbers, header)
    return columns


def _content(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise FileNotFoundError(f"{path}: no such file.") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not text in UTF-8 (byte {error.start}).") from None


def _complain(path: Path, body: str, first: int, numbers: Mask, header: list[str] | None) -> None:
    """Name the first line that has another number of fields, or something else where a number should be."""
    for line, row in enumerate(body.splitlines(), first):
        fields = row.split()
        if fields and len(fields) != len(numbers):
            raise ValueError(
                f"{path}: line {line} has {len(fields)} fields; {len(numbers)} were expected as in the first line."
            )
        for j, field in enumerate(fields):
            if numbers[j] and not _is_finite(field):
                name = f" ({header[j]})" if header else ""
                raise ValueError(f"{path}: line {line}, column {j + 1}{name}: {field!r} is not a finite number.")


def _is_finite(field: str) -> bool:
    try:
        return math.isfinite(float(field))
    except ValueError:
        return False


Array = npt.NDArray[np.float64]


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


def variant_weights(model: FittedGenotypePCA) -> Array:
    r"""PLINK's weights of the SNPs for allele A1, :math:`Z^Tu/\sqrt\lambda`, of shape (M, k).

    With σ² = Mλ that is √M·V: of length √M, or nearly so where each pair of samples is divided by the genotypes
    that both have.
    """
    return np.asarray(np.sqrt(len(model.snps_)) * model.components_.T.astype(np.float64))


FORMAT = "gramian genotype PCA 1"
SEPARATOR = "\n"  # of strings kept as one: no field of a text file can hold it


def write_companion(path: Path, model: FittedGenotypePCA, files: dict[str, str]) -> None:
    """Write the scale of every number, the counts, the certificate and the versions as strict JSON."""
    content = {
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
    path.write_text(json.dumps(_plain(content), indent=2, allow_nan=False, ensure_ascii=False) + "\n", "utf-8")


def _plain(value: Any) -> Any:
    """Python values that JSON knows: NaN and infinity become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)


def write_arrays(path: Path, **arrays: Any) -> None:
    """Write arrays to an ``.npz`` file; strings as one string of bytes, so that none is padded or pickled."""
    kept = {name: _bytes(a) if np.asarray(a).dtype.kind == "O" else np.asarray(a) for name, a in arrays.items()}
    with path.open("wb") as file:
        np.savez(file, **kept)  # type: ignore[arg-type]  # the names are not those of its own arguments


def _bytes(strings: npt.NDArray[np.object_]) -> npt.NDArray[np.uint8]:
    joined = SEPARATOR.join(strings.tolist())
    if joined.count(SEPARATOR) != len(strings) - 1:
        bad = next(name for name in strings if SEPARATOR in name)
        raise ValueError(f"The name {bad!r} has a line break in it, which no file of results can hold.")
    return np.frombuffer(joined.encode("utf-8"), dtype=np.uint8)


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read what :func:`write_arrays` wrote."""
    with path.open("rb") as file:  # opened here, since NumPy leaves a damaged file open
        found = np.load(file, allow_pickle=False)
        if not isinstance(found, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array")
        arrays = {name: found[name] for name in found.files}
    return {name: _strings(a) if a.dtype == np.uint8 else a for name, a in arrays.items()}


def _strings(kept: npt.NDArray[np.uint8]) -> npt.NDArray[np.object_]:
    return text(kept.tobytes().decode("utf-8").split(SEPARATOR))


def components(k: int) -> list[str]:
    """PC1, PC2, …"""
    return [f"PC{j + 1}" for j in range(k)]


def create(path: Path) -> IO[str]:
    """A file for text with the same line ends on every system."""
    return path.open("w", encoding="utf-8", newline="\n")


def _row(texts: int, k: int, gap: str) -> str:
    return gap.join(["%s"] * texts + ["%.6g"] * k) + "\n"


def write_eigenval(path: Path, model: FittedGenotypePCA) -> None:
    """``.eigenval``: λ of ZZᵀ/M in PLINK's scale, one a line, with six digits."""
    with create(path) as file:
        write_rows(file, "%.6g\n", plink_eigenvalues(model))


def write_plink1_eigenvec(path: Path, model: FittedGenotypePCA, header: bool, tabs: bool) -> None:
    """PLINK 1.9's ``.eigenvec``: FID, IID and unit eigenvectors, without a header unless asked for."""
    gap, U = "\t" if tabs else " ", model.eigenvectors_
    with create(path) as file:
        if header:
            file.write(gap.join(["FID", "IID", *components(U.shape[1])]) + "\n")
        write_rows(file, _row(2, U.shape[1], gap), names(model.samples_.fid), names(model.samples_.iid), U)


def write_plink2_eigenvec(path: Path, model: FittedGenotypePCA) -> None:
    """PLINK 2's ``.eigenvec``: #FID, IID and unit eigenvectors between tabs; #IID alone where nobody has a FID."""
    write_sample_table(path, model.samples_, components(model.eigenvectors_.shape[1]), model.eigenvectors_)


def write_sample_table(path: Path, samples: Any, titles: list[str], *columns: npt.NDArray[Any]) -> None:
    """A table of samples as PLINK 2 writes them."""
    ids = [samples.fid, samples.iid] if any(fid != "" for fid in samples.fid) else [samples.iid]
    ids = [names(column) for column in ids]
    heads = ["#FID", "IID"] if len(ids) == 2 else ["#IID"]
    kinds = ["%.6g" if c.dtype.kind == "f" else "%s" for c in columns for _ in range(1 if c.ndim == 1 else c.shape[1])]
    with create(path) as file:
        file.write("\t".join([*heads, *titles]) + "\n")
        write_rows(file, "\t".join(["%s"] * len(ids) + kinds) + "\n", *ids, *columns)


def write_plink1_weights(path: Path, model: FittedGenotypePCA, header: bool, tabs: bool) -> None:
    """PLINK 1.9's ``.eigenvec.var``: weights of the minor allele, which it calls A1."""
    gap, k = "\t" if tabs else " ", len(model.components_)
    snps, swap = model.snps_, model.allele_frequency_ > 0.5
    with create(path) as file:
        if header:
            file.write(gap.join(["CHR", "VAR", "A1", "A2", *components(k)]) + "\n")
        minor, major, W = _oriented(model, swap)
        write_rows(file, _row(4, k, gap), names(snps.chromosome), names(snps.id, "."), names(minor), names(major), W)


def write_plink2_weights(path: Path, model: FittedGenotypePCA) -> None:
    """PLINK 2's ``.eigenvec.var``: weights of the allele that is not the major one."""
    k, snps = len(model.components_), model.snps_
    with create(path) as file:
        file.write("\t".join(["#CHROM", "ID", "MAJ", "NONMAJ", *components(k)]) + "\n")
        minor, major, W = _oriented(model, model.allele_frequency_ > 0.5)
        write_rows(file, _row(4, k, "\t"), names(snps.chromosome), names(snps.id, "."), names(major), names(minor), W)


def _oriented(model: FittedGenotypePCA, swap: npt.NDArray[np.bool_]) -> tuple[Text, Text, Array]:
    """The weighted allele, the other one, and the weights, where some SNPs are turned to count A2."""
    a1, a2 = model.snps_.a1, model.snps_.a2
    weights = variant_weights(model) * np.where(swap, -1.0, 1.0)[:, None]
    return np.where(swap, a2, a1), np.where(swap, a1, a2), weights


def write_evec(path: Path, model: FittedGenotypePCA, labels: Any = None) -> None:
    """smartpca's ``.evec``: eigenvalues, then FID:IID, unit eigenvectors with four decimals and a label each."""
    samples, U = model.samples_, model.eigenvectors_
    people = names(text([f"{fid}:{iid}" for fid, iid in zip(samples.fid, samples.iid, strict=True)]))
    groups = names(text([STATUS.get(code, "???") for code in samples.phenotype] if labels is None else labels), "???")
    if len(groups) != len(people):
        raise ValueError(f"labels has {len(groups)} labels for {len(people)} samples.")
    with create(path) as file:
        values = "".join([f"{value:9.3f} " for value in smartpca_eigenvalues(model)[: U.shape[1]]])
        file.write(f"{'#eigvals:':>20} {values}\n")
        write_rows(file, "%20s " + "%10.4f  " * U.shape[1] + "%15s\n", people, U, groups)


STATUS = {"1": "Control", "2": "Case"}  # what smartpca calls the phenotypes of a .fam file


def write_eval(path: Path, model: FittedGenotypePCA) -> None:
    """smartpca's ``.eval``: eigenvalues in the scale in which all n sum to n − 1; all of them where computed."""
    with create(path) as file:
        write_rows(file, "%12.6f\n", smartpca_eigenvalues(model))


def write_snpweight(path: Path, model: FittedGenotypePCA) -> None:
    """smartpca's weights of the SNPs for allele A1: right singular vectors of length √M."""
    snps, W = model.snps_, variant_weights(model)
    with create(path) as file:
        row = "%20s %2s %12d" + " %9.3f" * W.shape[1] + "\n"
        write_rows(file, row, names(snps.id, "."), names(snps.chromosome), snps.position, W)


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
    paths, model = result_files(prefix, formats), convert_to_numpy(model)
    writers = _writers(model, header, tabs, labels)
    described = {ending: what for name in formats for ending, what in FORMATS[name].items()}
    with write_whole_folder(paths[0].parent, [path.name for path in paths], overwrite=overwrite) as folder:
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
        ("plink1", ".eigenvec"): lambda path: write_plink1_eigenvec(path, model, header, tabs),
        ("plink1", ".eigenval"): lambda path: write_eigenval(path, model),
        ("plink1", ".eigenvec.var"): lambda path: write_plink1_weights(path, model, header, tabs),
        ("plink2", ".eigenvec"): lambda path: write_plink2_eigenvec(path, model),
        ("plink2", ".eigenval"): lambda path: write_eigenval(path, model),
        ("plink2", ".eigenvec.var"): lambda path: write_plink2_weights(path, model),
        ("smartpca", ".evec"): lambda path: write_evec(path, model, labels),
        ("smartpca", ".eval"): lambda path: write_eval(path, model),
        ("smartpca", ".snpweight"): lambda path: write_snpweight(path, model),
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
    pcs = dict(zip(components(numbers.shape[1]), np.ascontiguousarray(numbers.T), strict=True))
    pyarrow.parquet.write_table(pyarrow.table(columns | pcs), path)
