"""What GenotypePCA takes: a path, a Genotypes source, or an array of copies of an allele."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state

from gramian.compute.devices import is_tensor, resolve, to_numpy
from gramian.operators.genotype import upload_if_room
from gramian.sources.arrays import frame_names, frame_to_array, is_frame
from gramian.sources.plink import Genotypes, Snps, open_bed

__all__ = [
    "SCALES",
    "Standard",
    "aligned",
    "as_genotypes",
    "check_parameters",
    "check_size",
    "column_names",
    "is_table",
    "located",
    "seed_of",
    "standardise",
    "usable",
]

Vector = npt.NDArray[np.float64]

SCALES = {
    "plink": "eigenvalues of ZZᵀ/M with z = (g − 2f)/√(2f(1 − f)), as PLINK prints",
    "patterson": "eigenvalues of ZZᵀ/M with z = (g − 2f)/√(f(1 − f)), twice what PLINK prints",
    "smartpca": "eigenvalues of ZZᵀ/M with z = (g − 2f)/√(q(1 − q)), q = (1 + Σg)/(2 + 2n); smartpca prints them "
    "multiplied to sum to n − 1",
    "none": "eigenvalues of ZZᵀ/M with z = g − 2f, not divided by anything",
}


@dataclass(frozen=True, eq=False)
class Standard:
    """Frequency of A1, mean copies, divisor and sum of squares of the standardised genotypes, for each SNP."""

    frequency: Vector
    mean: Vector
    scale: Vector
    squares: Vector


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
    variance = {"plink": 2 * f * (1 - f), "patterson": f * (1 - f), "smartpca": q * (1 - q), "none": np.ones_like(f)}
    scale = np.sqrt(variance[scaling])
    mean = 2 * f
    squares = (two * (2 - mean) ** 2 + one * (1 - mean) ** 2 + none * mean**2) / scale**2
    return Standard(f, mean, scale, squares)


AUTOSOMES = frozenset(str(i) for i in range(1, 23))
SHOWN = 5  # samples named in an error

Mask = npt.NDArray[np.bool_]


def as_genotypes(X: Any) -> Genotypes:
    """Open a ``.bed`` file, pass on a Genotypes, or pack an array of samples × SNPs."""
    if isinstance(X, Genotypes):
        return X
    if isinstance(X, (str, os.PathLike)):
        return open_bed(X)
    if sp.issparse(X):
        raise ValueError("Genotypes in a sparse matrix are not read: pass X.toarray(), two bits of which are kept.")
    table = frame_to_array(X) if is_frame(X) else to_numpy(X)
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
            f"Row {i}, column {j} is {table[i, j]!r}: genotypes are 0, 1 or 2 copies of an allele, and NaN or −1 if "
            "missing. For other numbers use gramian.PCA."
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


def usable(source: Genotypes, autosomes: bool) -> tuple[Genotypes, Mask, dict[str, int]]:
    """The SNPs that vary (and lie on an autosome, if asked), and how many were left out for which reason."""
    if source.shape[0] == 0 or source.shape[1] == 0:
        raise ValueError(f"There are {source.shape[0]} samples and {source.shape[1]} SNPs: nothing to analyse.")
    by_snp = source.snp_counts()
    calls = by_snp[:, :3].sum(axis=1)
    on = np.array([name in AUTOSOMES for name in source.snps.chromosome]) if autosomes else np.ones(len(calls), bool)
    absent = on & (calls == 0)
    constant = (
        on & ~absent & (by_snp[:, [0, 2]].max(axis=1) == calls)
    )  # all heterozygous is not: PLINK counts such SNPs
    kept = on & ~absent & ~constant
    dropped = {
        "not on an autosome": int((~on).sum()),
        "without a call": int(absent.sum()),
        "of one allele alone": int(constant.sum()),
    }
    if not np.any(by_snp[kept, :3].max(axis=1, initial=0) < calls[kept]):
        reasons = ", ".join(f"{count} {why}" for why, count in dropped.items() if count)
        remedy = " Use chromosomes='all'." if dropped["not on an autosome"] else ""
        alike = f"{kept.sum()} heterozygous in all samples" if kept.any() else ""
        reasons = ", ".join(filter(None, [reasons, alike]))
        raise ValueError(f"No SNP is left of {len(kept)}: {reasons}.{remedy}")
    view = source if kept.all() else source.select(snps=kept)
    _refuse_silent(source, view, int((~kept).sum()))
    return view, kept, dropped


def _refuse_silent(source: Genotypes, view: Genotypes, dropped: int) -> None:
    """Name the samples without a single call among the SNPs used."""
    calls = source.counts().by_sample[:, :3].sum(axis=1)
    if dropped and calls.min() <= dropped:  # only then can the SNPs left out have been all there was
        calls = view.counts().by_sample[:, :3].sum(axis=1)
    silent = np.flatnonzero(calls == 0)
    if not len(silent):
        return
    names = view.samples.take(silent[:SHOWN]).names
    more = f" and {len(silent) - SHOWN} more" if len(silent) > SHOWN else ""
    raise ValueError(
        f"{len(silent)} of {len(calls)} samples have no call at the SNPs used: {', '.join(names)}{more}. "
        "Leave them out (gramian.genetics.Filters(max_sample_missing=0.5), or --mind 0.5 on the command line)."
    )


def check_size(n: int, p: int, k: int) -> None:
    """Refuse more components than there are: the samples' mean is taken out, which leaves n − 1 directions."""
    if n < 2:
        raise ValueError(f"Components need at least 2 samples; there is {n}.")
    if k > min(n - 1, p):
        raise ValueError(f"n_components={k}: {n} samples and {p} SNPs have at most {min(n - 1, p)} components.")


def aligned(source: Genotypes, mask: Mask, snps: Snps, by_place: bool = False) -> Genotypes:
    """The SNPs of a fit among those of a source that lists the same ones; of a table without names, by their place."""
    view = source.select(snps=mask) if source.shape[1] == len(mask) else source
    same = (np.array_equal(getattr(view.snps, name), getattr(snps, name)) for name in ("id", "a1", "a2"))
    if len(view.snps) == len(snps) and (by_place or all(same)):
        return view
    raise ValueError(
        f"The {source.shape[1]} SNPs given are not the {len(mask)} of the fit, with the same names and alleles in the "
        "same order. gramian.genetics.project matches SNPs by name or position, and flips alleles."
    )


def located(X: Any, device: Any, k: int) -> tuple[Genotypes, Any]:
    """The genotypes of X where they will be multiplied, and the device: None for NumPy.

    Genotypes that fit on a card are uploaded now, and counted there; of others the blocks are, as they go through it.
    """
    source = as_genotypes(X)
    where = resolve(device, X if is_tensor(X) else source.values)
    if where is None:
        return source, None
    source = upload_if_room(source, where, max(k + 10, 16))
    if min(source.shape):
        source.counts(where)
    return source, where


def check_parameters(model: Any) -> None:
    """Refuse constructor arguments of GenotypePCA that mean nothing, by name."""
    choices = {
        "scaling": tuple(SCALES),
        "solver": ("auto", "exact", "krylov"),
        "missing": ("mean", "pairwise", "least-squares"),
        "chromosomes": ("autosomes", "all"),
        "precision": ("auto", "single", "double"),
    }
    for name, allowed in choices.items():
        if getattr(model, name) not in allowed:
            raise ValueError(f"{name}={getattr(model, name)!r} is none of {', '.join(allowed)}.")
    if not isinstance(model.n_components, Integral) or model.n_components < 1:
        raise ValueError(f"n_components={model.n_components!r} must be a whole number from 1 on.")
    if not 1e-12 <= model.tol < 1:
        raise ValueError(f"tol={model.tol!r} must lie between 1e-12 and 1.")
    if not isinstance(model.max_passes, Integral) or model.max_passes < 1:
        raise ValueError(f"max_passes={model.max_passes!r} must be a whole number from 1 on.")
    if isinstance(model.random_state, Integral) and model.random_state < 0:
        raise ValueError(f"random_state={model.random_state!r} must not be negative.")
    if model.missing == "pairwise" and model.solver == "krylov":
        raise ValueError("missing='pairwise' needs the whole matrix: use solver='exact' or 'auto', or missing='mean'.")


def seed_of(random_state: Any) -> int:
    """A whole number that stands for scikit-learn's ``random_state``."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
