"""What GenotypePCA takes: a path, a Genotypes source, or an array of copies of an allele."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.sources.plink import Genotypes, Snps, open_bed

__all__ = ["aligned", "as_genotypes", "usable"]

AUTOSOMES = frozenset(str(i) for i in range(1, 23))
SHOWN = 5  # samples named in an error

Mask = npt.NDArray[np.bool_]


def as_genotypes(X: Any) -> Genotypes:
    """Open a ``.bed`` file, pass on a Genotypes, or pack an array of samples × SNPs."""
    if isinstance(X, Genotypes):
        return X
    if isinstance(X, (str, os.PathLike)):
        return open_bed(X)
    table = np.asarray(X)
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
    return Genotypes.from_calls(table.T.astype(np.int8))


def usable(source: Genotypes, autosomes: bool) -> tuple[Genotypes, Mask, dict[str, int]]:
    """The SNPs that vary (and lie on an autosome, if asked), and how many were left out for which reason."""
    if source.shape[0] == 0 or source.shape[1] == 0:
        raise ValueError(f"There are {source.shape[0]} samples and {source.shape[1]} SNPs: nothing to analyse.")
    by_snp = source.snp_counts()
    calls = by_snp[:, :3].sum(axis=1)
    on = np.array([name in AUTOSOMES for name in source.snps.chromosome]) if autosomes else np.ones(len(calls), bool)
    absent = on & (calls == 0)
    constant = on & ~absent & (by_snp[:, :3].max(axis=1) == calls)
    kept = on & ~absent & ~constant
    dropped = {
        "not on an autosome": int((~on).sum()),
        "without a call": int(absent.sum()),
        "the same in all samples": int(constant.sum()),
    }
    if not kept.any():
        reasons = ", ".join(f"{count} {why}" for why, count in dropped.items() if count)
        remedy = " Use chromosomes='all'." if dropped["not on an autosome"] else ""
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


def aligned(source: Genotypes, mask: Mask, snps: Snps) -> Genotypes:
    """The SNPs of a fit among those of a source that lists the same ones."""
    if source.shape[1] == len(mask):
        view = source.select(snps=mask)
        if all(np.array_equal(getattr(view.snps, name), getattr(snps, name)) for name in ("id", "a1", "a2")):
            return view
    elif source.shape[1] == len(snps) and np.array_equal(source.snps.id, snps.id):
        return source
    raise ValueError(
        f"The {source.shape[1]} SNPs given are not the {len(mask)} of the fit, with the same names and alleles in the "
        "same order. gramian.genetics.project matches SNPs by name or position, and flips alleles."
    )
