"""The files in which PLINK 1.9, PLINK 2 and smartpca hand out principal components, to the letter."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from gramian.genetics._fitted import FittedGenotypePCA, plink_eigenvalues, smartpca_eigenvalues, variant_weights
from gramian.genetics._text_files import names, text, write_rows

__all__ = [
    "write_eigenval",
    "write_eval",
    "write_evec",
    "write_plink1_eigenvec",
    "write_plink1_weights",
    "write_plink2_eigenvec",
    "write_plink2_weights",
    "write_snpweight",
]

Array = npt.NDArray[np.float64]
Text = npt.NDArray[np.object_]


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
