"""What GenotypePCA takes: a path, a Genotypes source, or an array of copies of an allele."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.compute.devices import is_tensor, resolve
from gramian.genetics.text import list_few
from gramian.inputs.values import fetch_numbers
from gramian.operators.genotype import upload_if_room
from gramian.sources.arrays import frame_names, is_frame
from gramian.sources.errors import Argument, SourceError
from gramian.sources.genotype_files import open_genotypes
from gramian.sources.plink import Genotypes, Snps

Array = npt.NDArray[np.float64]

SCALES = {
    "plink": "eigenvalues of ZZᵀ/M with z = (g − 2f)/√(2f(1 − f)), as PLINK prints",
    "patterson": "eigenvalues of ZZᵀ/M with z = (g − 2f)/√(f(1 − f)), twice what PLINK prints; smartpca prints them "
    "multiplied to sum to n − 1",
    "price": "eigenvalues of ZZᵀ/M with z = (g − 2f)/√(q(1 − q)), q = (1 + Σg)/(2 + 2n); smartpca with altnormstyle NO "
    "prints them multiplied to sum to n − 1",
    "none": "eigenvalues of ZZᵀ/M with z = g − 2f, not divided by anything",
}
SCALES["smartpca"] = SCALES["price"]  # its older name here; smartpca itself is "patterson" unless altnormstyle is NO
PRICE = ("price", "smartpca")


@dataclass(frozen=True, eq=False)
class Standard:
    """Frequency of A1, mean copies, divisor and sum of squares of the standardised genotypes, for each SNP."""

    frequency: Array
    mean: Array
    scale: Array
    squares: Array


def standardise(by_snp: npt.NDArray[np.int64], scaling: str) -> Standard:
    r"""Centre and divisor of each SNP, where at least one genotype was seen and not all are the same.

    .. math:: f = \frac{\sum g}{2n},\qquad z = \frac{g - 2f}{s},\qquad s^2 \in \{2f(1-f),\ f(1-f),\ q(1-q),\ 1\}

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.genotypes import standardise
    >>> found = standardise(np.array([[1, 1, 2, 0]]), "plink")
    >>> found.mean, found.scale.round(4)
    (array([0.75]), array([0.6847]))
    """
    two, one, none, _ = by_snp.T.astype(np.float64)
    n = two + one + none
    copies = 2 * two + one
    f = copies / (2 * n)
    q = (1 + copies) / (2 + 2 * n)
    variance = {"plink": 2 * f * (1 - f), "patterson": f * (1 - f), "none": np.ones_like(f)}
    # eq: genotype-standard
    scale = np.sqrt(q * (1 - q) if scaling in PRICE else variance[scaling])
    mean = 2 * f
    squares = (two * (2 - mean) ** 2 + one * (1 - mean) ** 2 + none * mean**2) / scale**2
    return Standard(f, mean, scale, squares)


def count_alleles(source: Genotypes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Copies of A1 and of both alleles at each SNP, two for each call."""
    two, one, none, _ = source.snp_counts().T
    return 2 * two + one, 2 * (two + one + none)


AUTOSOMES = [str(i) for i in range(1, 23)]


def is_autosomal(snps: Snps) -> npt.NDArray[np.bool_]:
    """Which SNPs lie on chromosomes 1 to 22."""
    known, names = frozenset(AUTOSOMES), snps.chromosome
    if not len(names):
        return np.zeros(0, np.bool_)
    starts = np.flatnonzero(np.concatenate([[True], names[1:] != names[:-1]]))  # a chromosome is a stretch, as a rule
    return np.repeat([name in known for name in names[starts]], np.diff(starts, append=len(names)))


def as_genotypes(X: Any) -> Genotypes:
    """Open a file of genotypes, pass on a Genotypes, or pack an array of samples × SNPs."""
    if isinstance(X, Genotypes):
        return X
    if isinstance(X, (str, os.PathLike)):
        return open_genotypes(X)
    if sp.issparse(X):
        raise ValueError("Genotypes in a sparse matrix are not read: pass X.toarray(), two bits of which are kept.")
    table = np.asarray(fetch_numbers(X, "X"))
    if table.ndim != 2:
        raise ValueError(f"Genotypes are a table of samples × SNPs, not an array of shape {table.shape}.")
    if table.dtype.kind not in "iufb":
        raise ValueError(f"Genotypes are 0, 1 or 2 copies of an allele, not values of dtype {table.dtype}.")
    if table.dtype.kind == "f":
        table = np.where(np.isnan(table), -1, table)
    bad = np.argwhere(~np.isin(table, (-1, 0, 1, 2)))
    if len(bad):
        i, j = bad[0]
        raise ValueError(
            f"Row {i + 1}, column {j + 1} is {table[i, j]}: genotypes are 0, 1 or 2 copies of an allele, and NaN or −1 "
            "if missing. For other numbers use gramian.PCA."
        )
    names = column_names(X)
    snps = Snps.numbered(table.shape[1])
    snps = snps if names is None else replace(snps, id=np.array([*names, None], dtype=object)[:-1])
    return Genotypes.from_calls(table.T.astype(np.int8), snps=snps)


def is_table(X: Any) -> bool:
    """Whether X is an array or a data frame, whose columns are known by their place, or by a name at most."""
    return not isinstance(X, (Genotypes, str, os.PathLike))


def column_names(X: Any) -> list[str] | None:
    """The names of a data frame's columns, where all of them are text."""
    return frame_names(X) if is_frame(X) else None


def select_usable_snps(source: Genotypes, autosomes: bool) -> tuple[Genotypes, npt.NDArray[np.bool_], dict[str, int]]:
    """The SNPs that vary (and lie on an autosome, if asked), and how many were left out for which reason."""
    if source.shape[0] == 0 or source.shape[1] == 0:
        raise ValueError(f"There are {source.shape[0]} samples and {source.shape[1]} SNPs: nothing to analyse.")
    by_snp = source.snp_counts()
    calls = by_snp[:, :3].sum(axis=1)
    on = is_autosomal(source.snps) if autosomes else np.ones(len(calls), bool)
    absent = on & (calls == 0)
    one_allele = by_snp[:, [0, 2]].max(axis=1) == calls  # all heterozygous is not: PLINK counts such SNPs
    constant = on & ~absent & one_allele
    kept = on & ~absent & ~constant
    dropped = {
        "not on an autosome": int((~on).sum()),
        "without a call": int(absent.sum()),
        "of one allele alone": int(constant.sum()),
    }
    if not np.any(by_snp[kept, :3].max(axis=1, initial=0) < calls[kept]):
        reasons = [f"{count} {why}" for why, count in dropped.items() if count]
        reasons += [f"{kept.sum()} heterozygous in all samples"] if kept.any() else []
        remedy = (" Use ", Argument("chromosomes", "all"), ".") if dropped["not on an autosome"] else ()
        raise SourceError(f"No SNP is left of {len(kept)}: {', '.join(reasons)}.", *remedy)
    view, lost = source if kept.all() else source.select(snps=kept), int((~kept).sum())
    calls = source.counts().by_sample[:, :3].sum(axis=1)
    if lost and calls.min() <= lost:  # only then can the SNPs left out have been all there was
        calls = view.counts().by_sample[:, :3].sum(axis=1)
    silent = np.flatnonzero(calls == 0)
    if len(silent):
        names = list_few(view.samples.take(silent).names)
        raise SourceError(
            f"{len(silent)} of {len(calls)} samples have no call at the SNPs used: {names}. "
            "Leave them out by a filter, as ",
            Argument("max_sample_missing", 0.5),
            ".",
        )
    return view, kept, dropped


def select_fitted_snps(source: Genotypes, mask: npt.NDArray[np.bool_], snps: Snps, by_place: bool = False) -> Genotypes:
    """The SNPs of a fit among those of a source that lists the same ones; of a table without names, by their place."""
    view = source.select(snps=mask) if source.shape[1] == len(mask) else source
    same = (np.array_equal(getattr(view.snps, name), getattr(snps, name)) for name in ("id", "a1", "a2"))
    if len(view.snps) == len(snps) and (by_place or all(same)):
        return view
    raise ValueError(
        f"The {source.shape[1]} SNPs given are not the {len(mask)} of the fit, with the same names and alleles in the "
        "same order. gramian.genetics.project matches SNPs by name or position, and flips alleles."
    )


def open_on_device(X: Any, device: Any, k: int) -> tuple[Genotypes, Any]:
    """The genotypes of X where they will be multiplied, and the device: None for NumPy.

    Genotypes that fit on a GPU are uploaded now, and counted there; of others the blocks are, as they go through it.
    """
    source = as_genotypes(X)
    where = resolve(device, X if is_tensor(X) else source.values)
    if where is None:
        return source, None
    source = upload_if_room(source, where, max(k + 10, 16))
    if min(source.shape):
        source.counts(where)
    return source, where
