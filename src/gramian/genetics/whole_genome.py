r"""Predictions of traits from the whole genome but one chromosome: ridge regression in blocks, stacked.

Level 0 regresses each trait on each block of SNPs, at five penalties, with every fold of the people left out in turn.
Level 1 regresses it on these predictions. Both are ridge regressions with λ = M(1 − h)/h for M columns, as if these
explained a share h of the variance: the method of Mbatchou et al. (2021, Nature Genetics 53, 1097), whose step 2 tests
SNPs with what is predicted without their chromosome taken off the trait.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.compute.devices import refuse_beyond_device
from gramian.genetics.genotypes import AUTOSOMES, as_genotypes, select_usable_snps, standardise
from gramian.genetics.heritability import covariate_basis, read_covariates
from gramian.genetics.text import as_text, list_few, one_field
from gramian.inputs.checks import check_integer, check_seed, fetch_numbers
from gramian.inputs.progress import Progress
from gramian.operators.genotype import GenotypeOperator
from gramian.sources.plink import Samples
from gramian.sources.writing import write_whole_folder

Array = npt.NDArray[np.float64]

SHARES = (0.01, 0.25, 0.5, 0.75, 0.99)  # of the variance that columns explain, one for each penalty
LAST_CHROMOSOME = 23  # regenie reads a row for each chromosome up to here


@dataclass(frozen=True, eq=False, repr=False)
class WholeGenomePredictions:
    """What the genome predicts of traits, of each person by people of other folds.

    Units are standard deviations of a trait beyond its covariates.

    Attributes
    ----------
    samples : Samples
        Everybody.
    traits : tuple of str
        Names.
    known : ndarray of bool, shape (n, t)
        Whose traits are known; the others' are predicted too.
    chromosomes : tuple of str
        Those with SNPs, in order.
    whole : ndarray of shape (n, t)
        Predictions by all SNPs.
    left_out : dict of str to ndarray of shape (n, t)
        By chromosome: predictions by all SNPs but its own.
    shares : ndarray of shape (t,)
        The share of the variance at which level 1 predicts best.
    r2 : ndarray of shape (t,)
        1 − the mean squared error of left-out people, whose trait has the variance 1; ``errors`` at every share.
    errors : ndarray of shape (t, 5)
        Mean squared errors at each of the shares.
    blocks : int
        Blocks of SNPs.
    """

    samples: Samples
    traits: tuple[str, ...]
    known: npt.NDArray[np.bool_]
    chromosomes: tuple[str, ...]
    whole: Array
    left_out: dict[str, Array]
    shares: Array
    r2: Array
    errors: Array
    blocks: int

    def __repr__(self) -> str:
        found = ", ".join(f"{name} r² {r2:.4f}" for name, r2 in zip(self.traits, self.r2, strict=True))
        return f"WholeGenomePredictions of {len(self.samples):,} people, {self.blocks} blocks: {found}"


def whole_genome_ridge(
    X: Any,
    Y: npt.ArrayLike,
    covariates: npt.ArrayLike | None = None,
    *,
    traits: Sequence[str] | None = None,
    block: int = 1000,
    folds: int = 5,
    random_state: int | None = None,
    progress: Progress | None = None,
) -> WholeGenomePredictions:
    """Predict traits from all SNPs, and from all but one chromosome: the first step of regenie.

    Covariates are taken out of traits and SNPs, and what is left has the variance 1. A trait that is not known counts
    as its mean, as in regenie. Folds are drawn at random (regenie's are stretches of the file).

    Parameters
    ----------
    X : path, Genotypes or array of samples × SNPs
        Genotypes on autosomes.
    Y : array-like of shape (n,) or (n, t)
        Traits, NaN where not known.
    covariates : array-like of shape (n, c), optional
        All must be known; an intercept is there in any case.
    traits : sequence of str, optional
        Their names.
    block : int, default=1000
        SNPs of a block, which lies on one chromosome.
    folds : int, default=5
        Of the people.
    random_state : int, optional
        Seed of the folds.
    progress : callable, optional
        Called with the SNPs done, their number and a message.

    Returns
    -------
    WholeGenomePredictions
        Predictions with each chromosome left out; :func:`write_loco` writes them for regenie.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import whole_genome_ridge
    >>> rng = np.random.default_rng(0)
    >>> calls = rng.binomial(2, 0.3, (300, 40))
    >>> y = calls @ rng.normal(size=40) + 2 * rng.normal(size=300)
    >>> found = whole_genome_ridge(calls, y, block=10, random_state=0)
    >>> found.blocks, bool(found.r2[0] > 0.3)
    (4, True)
    """
    check_integer("block", block, 2)
    check_integer("folds", folds, 2)
    source = as_genotypes(X)
    n = source.shape[0]
    table = np.asarray(fetch_numbers(Y, "Y"), dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != n or not table.shape[1]:
        raise ValueError(f"Y has the shape {np.shape(Y)}; there are {n} samples.")
    names = tuple(traits) if traits is not None else tuple(f"Y{j + 1}" for j in range(table.shape[1]))
    if len(names) != table.shape[1]:
        raise ValueError(f"{len(names)} traits are named, and Y has {table.shape[1]}.")
    if n < 10 * folds:
        raise ValueError(f"{n} samples in {folds} folds: at least 10 in each are needed.")
    C = read_covariates(covariates, n)
    unknown = np.flatnonzero(~np.isfinite(C).all(axis=1))
    if len(unknown):
        raise ValueError(
            f"covariates: {len(unknown)} samples lack some: {list_few(source.samples.take(unknown).names)}. "
            "Leave these samples out."
        )
    Q = covariate_basis(C)
    known, T = _standardise_traits(table, names, Q)
    source, _, _ = select_usable_snps(
        source, autosomes=bool(np.isin(source.snps.chromosome.astype(str), AUTOSOMES).any())
    )
    spans = _cut_blocks(source.snps.chromosome.astype(str), block)
    columns = len(SHARES) * len(spans)
    what = f"Predictions of {n:,} people by {len(spans):,} blocks of SNPs at {len(SHARES)} penalties"
    need = 8.0 * (n * T.shape[1] * columns + 4 * n * block + 3 * columns**2)
    refuse_beyond_device(need, None, what, ("Use a larger ", ("block", 2 * block), ", or fewer traits at a time."))
    order = np.random.default_rng(check_seed(random_state)).permutation(n)
    parts = [np.sort(part) for part in np.array_split(order, folds)]
    W = np.empty((T.shape[1], n, columns))
    standard, p = standardise(source.snp_counts(), "plink"), source.shape[1]
    for b, (_, start, stop) in enumerate(spans):
        chosen = slice(start, stop)
        view = source.select(snps=np.arange(start, stop))
        Z = GenotypeOperator(view, standard.mean[chosen], standard.scale[chosen], dtype=np.float64)
        G = np.concatenate([rows for _, _, rows in Z.rows()])
        W[:, :, b * len(SHARES) : (b + 1) * len(SHARES)] = _predict_by_block(G, T, Q, parts, p)
        if progress is not None:
            progress(stop, p, "SNPs")
    chromosome_of = np.repeat([name for name, _, _ in spans], len(SHARES))
    chromosomes = tuple(dict.fromkeys(name for name, _, _ in spans))
    whole = np.empty((n, T.shape[1]))
    left_out = {name: np.empty_like(whole) for name in chromosomes}
    shares, r2, errors = np.empty(T.shape[1]), np.empty(T.shape[1]), np.empty((T.shape[1], len(SHARES)))
    for t in range(T.shape[1]):
        V = W[t]
        V -= V.mean(axis=0)
        length = np.sqrt(np.mean(V**2, axis=0))
        V /= np.where(length > 0, length, 1.0)
        coefficients = [_fold_coefficients(V, T[:, t], part, columns) for part in parts]  # of columns × shares
        predicted = np.empty((n, len(SHARES)))
        for part, beta in zip(parts, coefficients, strict=True):
            predicted[part] = V[part] @ beta
        errors[t] = np.mean((T[known[:, t], t][:, None] - predicted[known[:, t]]) ** 2, axis=0)
        best = int(np.argmin(errors[t]))
        shares[t], r2[t], whole[:, t] = SHARES[best], 1 - errors[t, best], predicted[:, best]
        for name in chromosomes:
            own = chromosome_of == name
            for part, beta in zip(parts, coefficients, strict=True):
                left_out[name][part, t] = whole[part, t] - V[np.ix_(part, own)] @ beta[own, best]
    return WholeGenomePredictions(
        source.samples, names, known, chromosomes, whole, left_out, shares, r2, errors, len(spans)
    )


def _standardise_traits(table: Array, names: Sequence[str], Q: Array) -> tuple[npt.NDArray[np.bool_], Array]:
    """Which traits are known, and traits without the covariates, of variance 1; 0 where not known."""
    known = np.isfinite(table)
    if np.isinf(table).any():
        i, j = np.argwhere(np.isinf(table))[0]
        raise ValueError(f"Y: row {i + 1} of {names[j]} is infinite.")
    T = np.zeros_like(table)
    for j, name in enumerate(names):
        here = known[:, j]
        if here.sum() < Q.shape[1] + 2:
            raise ValueError(f"{name}: {here.sum()} samples have it; {Q.shape[1] + 2} are needed at least.")
        T[here, j] = table[here, j] - table[here, j].mean()
        T[:, j] -= Q @ (Q.T @ T[:, j])
        T[~here, j] = 0.0
        variance = float(np.sum(T[:, j] ** 2)) / (here.sum() - Q.shape[1])
        if not variance > 1e-20 * float(np.max(np.abs(table[here, j]))) ** 2:
            raise ValueError(f"{name} does not vary beyond what the covariates explain.")
        T[:, j] /= np.sqrt(variance)
    return known, T


def _cut_blocks(chromosome: npt.NDArray[Any], block: int) -> list[tuple[str, int, int]]:
    """Chromosome, first SNP and end of each block: a stretch of SNPs of one chromosome, of much the same length."""
    cuts = np.flatnonzero(chromosome[1:] != chromosome[:-1]) + 1
    spans = []
    for start, stop in zip([0, *cuts], [*cuts, len(chromosome)], strict=True):
        edges = np.linspace(start, stop, -(-(stop - start) // block) + 1).astype(int)
        spans += [(str(chromosome[start]), int(a), int(b)) for a, b in pairwise(edges)]
    return spans


def _predict_by_block(G: Array, T: Array, Q: Array, parts: Sequence[npt.NDArray[np.intp]], p: int) -> Array:
    """Of a block's standardised SNPs G: traits × people × penalties, every fold predicted by the others."""
    G -= Q @ (Q.T @ G)
    length = np.sqrt(np.sum(G**2, axis=0) / (len(G) - Q.shape[1]))
    G /= np.where(length > 1e-10, length, np.inf)
    own = [(G[part].T @ G[part], G[part].T @ T[part]) for part in parts]
    gram, cross = sum(a for a, _ in own), sum(b for _, b in own)
    out = np.empty((T.shape[1], len(G), len(SHARES)))
    for part, (a, b) in zip(parts, own, strict=True):
        for j, share in enumerate(SHARES):
            beta = _ridge(gram - a, cross - b, p * (1 - share) / share)
            out[:, part, j] = (G[part] @ beta).T
    return out


def _fold_coefficients(V: Array, y: Array, part: npt.NDArray[np.intp], columns: int) -> Array:
    """Level 1 without a fold: columns × penalties."""
    others = np.ones(len(V), dtype=bool)
    others[part] = False
    gram, cross = V[others].T @ V[others], V[others].T @ y[others]
    return np.stack([_ridge(gram, cross, columns * (1 - share) / share) for share in SHARES], axis=1)


def _ridge(gram: Array, cross: Array, penalty: float) -> Array:
    """(A + λI)⁻¹ b."""
    shifted = gram.copy()
    shifted[np.diag_indices_from(shifted)] += penalty
    return np.asarray(scipy.linalg.solve(shifted, cross, assume_a="pos", overwrite_a=True, check_finite=False))


def write_loco(found: WholeGenomePredictions, prefix: str | os.PathLike[str], *, overwrite: bool = False) -> list[Path]:
    """Write PREFIX_1.loco, … for each trait and PREFIX_pred.list, which ``regenie --step 2 --pred`` takes; all or none.

    The first line has the people as FID_IID; each of 23 others a chromosome and the predictions without it, NA for
    those whose trait is not known.

    Parameters
    ----------
    found : WholeGenomePredictions
        What :func:`whole_genome_ridge` found.
    prefix : path-like
        Name of the files without their endings.
    overwrite : bool, default=False
        Whether files of these names may be replaced.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from gramian.genetics import whole_genome_ridge, write_loco
    >>> rng = np.random.default_rng(0)
    >>> found = whole_genome_ridge(rng.binomial(2, 0.3, (60, 20)), rng.normal(size=60), block=10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_loco(found, Path(folder, "height"))
    ...     len(files[0].read_text().splitlines())
    24
    """
    home = Path(prefix)
    names = [f"{home.name}_{j + 1}.loco" for j in range(len(found.traits))]
    listed = f"{home.name}_pred.list"
    people = "_".join, zip(one_field(found.samples.fid), one_field(found.samples.iid), strict=True)
    head = " ".join(["FID_IID", *map(*people)])
    traits = one_field(as_text(found.traits))
    with write_whole_folder(home.parent, [*names, listed], overwrite=overwrite) as folder:
        for j, name in enumerate(names):
            with (folder / name).open("w", encoding="utf-8", newline="\n") as file:
                file.write(head + "\n")
                for chromosome in range(1, LAST_CHROMOSOME + 1):
                    values = found.left_out.get(str(chromosome), found.whole)[:, j]
                    cells = [f"{v:.8g}" if k else "NA" for v, k in zip(values, found.known[:, j], strict=True)]
                    file.write(" ".join([str(chromosome), *cells]) + "\n")
        lines = [f"{trait} {home.parent.resolve() / name}\n" for trait, name in zip(traits, names, strict=True)]
        (folder / listed).write_text("".join(lines), "utf-8")
    return [home.parent / name for name in [*names, listed]]
