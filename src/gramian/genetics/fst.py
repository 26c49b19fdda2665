"""F_ST between labelled groups: how much of the variation lies between them, with standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.compute.genotypes import sample_mask, snp_counts
from gramian.compute.threads import add_to, parallel_sum
from gramian.genetics.genotypes import is_autosomal
from gramian.genetics.text import list_few
from gramian.inputs.checks import check_choice
from gramian.sources.errors import Argument, SourceError
from gramian.sources.plink import Genotypes

Counts = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float64]


class Terms(NamedTuple):
    """Sums over SNPs of what stands above and below the bar, and how many SNPs there were: groups × groups."""

    numerator: Matrix
    denominator: Matrix
    snps: Matrix


def hudson(counts: Counts) -> Terms:
    r"""Hudson's terms, unbiased for samples of any size (Bhatia et al., Genome Res. 23, 1514, 2013, equation 10).

    .. math::
        N = (p_a-p_b)^2 - \frac{p_a(1-p_a)}{n_a-1} - \frac{p_b(1-p_b)}{n_b-1},\qquad
        D = p_a(1-p_b) + p_b(1-p_a)

    n counts alleles. Sums over SNPs of products of groups are products of matrices: no array of pairs is made.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.fst import hudson
    >>> N, D, snps = hudson(np.array([[[5, 0, 0, 0], [0, 0, 5, 1]]]))  # a fixed difference
    >>> float(N[0, 1] / D[0, 1]), float(snps[0, 1])
    (1.0, 1.0)
    """
    called, p, _ = _shares(counts)
    there = (called > 0).astype(np.float64)
    own = p**2 - p * (1 - p) / np.maximum(2 * called - 1, 1)
    products = p.T @ p
    squares, single = own.T @ there, p.T @ there
    return Terms(squares + squares.T - 2 * products, single + single.T - 2 * products, there.T @ there)


def weir_cockerham(counts: Counts) -> Terms:
    r"""Weir and Cockerham's terms N = a, D = a + b + c of two groups (Evolution 38, 1358, 1984, equations 2 to 4).

    With n people in each, frequencies p and shares h of heterozygotes, n̄ and p̄, h̄ their (weighted) means,
    :math:`s^2 = \sum n(p-\bar p)^2/\bar n` and :math:`n_c = 2\bar n - \sum n^2/2\bar n`:

    .. math::
        a &= \frac{\bar n}{n_c}\Bigl(s^2 - \frac{v - \bar h/4}{\bar n-1}\Bigr),\qquad v = \bar p(1-\bar p) - s^2/2,\\
        b &= \frac{\bar n}{\bar n-1}\Bigl(v - \frac{2\bar n-1}{4\bar n}\bar h\Bigr),\qquad c = \bar h/2

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.fst import weir_cockerham
    >>> N, D, snps = weir_cockerham(np.array([[[5, 0, 0, 0], [0, 0, 5, 1]]]))
    >>> float(N[0, 1] / D[0, 1])
    1.0
    """
    called, p, h = _shares(counts)
    size = counts.shape[1]
    found = Terms(*np.zeros((3, size, size)))
    for g in range(size - 1):
        rest = slice(g + 1, None)
        n1, p1, h1 = called[:, g, None], p[:, g, None], h[:, g, None]
        n2, p2, h2 = called[:, rest], p[:, rest], h[:, rest]
        good = (n1 > 0) & (n2 > 0) & (n1 + n2 > 2)  # both have calls, and there are more than two people
        n = np.where(good, (n1 + n2) / 2, 2.0)
        n_c = np.where(good, 2 * n - (n1**2 + n2**2) / (2 * n), 1.0)
        mean, het = (n1 * p1 + n2 * p2) / (2 * n), (n1 * h1 + n2 * h2) / (2 * n)
        s2 = (n1 * (p1 - mean) ** 2 + n2 * (p2 - mean) ** 2) / n
        v = mean * (1 - mean) - s2 / 2
        a = n / n_c * (s2 - (v - het / 4) / (n - 1))
        b = n / (n - 1) * (v - (2 * n - 1) / (4 * n) * het)
        terms = a * good, (a + b + het / 2) * good, good.astype(np.float64)
        for whole, part in zip(found, terms, strict=True):
            whole[g, rest] = whole[rest, g] = part.sum(axis=0)
    return found


def _shares(counts: Counts) -> tuple[Matrix, Matrix, Matrix]:
    """People with a call, share of A1 and share of heterozygotes among them; 0 where nobody has one."""
    two, one, none = (counts[..., i].astype(np.float64) for i in range(3))
    called = two + one + none
    some = np.maximum(called, 1.0)
    return called, (two + one / 2) / some, one / some


TERMS = {"hudson": hudson, "weir-cockerham": weir_cockerham}


BYTES = 2**18  # packed genotypes that are counted together: they stay in a core's cache
SHOWN = 10  # pairs that are printed


@dataclass(frozen=True, eq=False, repr=False)
class Fst:
    """F_ST of every pair of groups.

    Attributes
    ----------
    groups : tuple of str
        Labels, in alphabetical order.
    sizes : ndarray of int of shape (K,)
        People in each.
    matrix : ndarray of shape (K, K)
        F_ST of pairs, 0 on the diagonal; may be negative by chance. NaN where no SNP varies in a pair.
    standard_errors : ndarray of shape (K, K)
        From the jackknife over blocks of SNPs.
    n_snps : ndarray of int of shape (K, K)
        SNPs with called genotypes in both groups.
    method : str
        The estimator: ``hudson`` or ``weir-cockerham``.
    n_blocks : int
        Blocks of the jackknife.
    dropped : int
        SNPs left out, as they are not on an autosome.
    """

    groups: tuple[str, ...]
    sizes: npt.NDArray[np.intp]
    matrix: Matrix
    standard_errors: Matrix
    n_snps: npt.NDArray[np.int64]
    method: str
    n_blocks: int
    dropped: int

    @property
    def mean(self) -> float:
        """Mean F_ST over the pairs."""
        return float(self.matrix[np.triu_indices(len(self.groups), 1)].mean())

    def table(self) -> dict[str, Any]:
        """Return a row for each pair as columns, ready for ``pandas.DataFrame``."""
        a, b = np.triu_indices(len(self.groups), 1)
        value, error = self.matrix[a, b], self.standard_errors[a, b]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = value / error
        names = np.array(self.groups, dtype=object)
        columns = {"group1": names[a], "group2": names[b], "fst": value, "standard_error": error, "z": z}
        return {**columns, "n_snps": self.n_snps[a, b]}

    def __repr__(self) -> str:
        table = self.table()
        rows = list(zip(*table.values(), strict=True))
        width = max(5, *(len(name) for name in self.groups))
        head = f"F_ST ({self.method}), mean {self.mean:.4g} over {len(rows)} pairs of {len(self.groups)} groups"
        lines = [f"{a:<{width}}  {b:<{width}}  {f:9.5f} ± {e:.5f}" for a, b, f, e, _, _ in rows[:SHOWN]]
        more = [f"... and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []
        return "\n".join([head, *(f"  {line}" for line in [*lines, *more])])


def fst(
    genotypes: Genotypes,
    labels: Sequence[Any] | npt.NDArray[Any],
    *,
    method: str = "hudson",
    blocks: int | npt.ArrayLike = 100,
    chromosomes: str = "autosomes",
) -> Fst:
    r"""F_ST between labelled groups of people, for every pair, in one pass over the genotypes.

    .. math:: \hat F = \frac{\sum_j N_j}{\sum_j D_j}

    over SNPs j: a ratio of averages, as Bhatia, Patterson, Sankararaman and Price (Genome Res. 23, 1514, 2013)
    recommend, not an average of ratios. The mean of Hudson's estimate does not depend on how many people of each group
    were sampled; that of Weir and Cockerham's does where groups differ in size and in drift, and it takes the
    heterozygotes into account. Standard errors are by the jackknife over blocks of SNPs, as neighbours are dependent.

    Parameters
    ----------
    genotypes : Genotypes
        Samples and SNPs; see :func:`gramian.sources.plink.open_bed`.
    labels : sequence of n labels
        The group of each sample; None, NaN and the empty text leave a sample out.
    method : {"hudson", "weir-cockerham"}, default="hudson"
        The estimator.
    blocks : int or array-like of shape (p,), default=100
        How many blocks of as many SNPs for the jackknife, or the block of each SNP; blocks should be longer than
        linkage reaches.
    chromosomes : {"autosomes", "all"}, default="autosomes"
        Which SNPs. Men have one X chromosome, which is counted as two: "all" is right without sex chromosomes only.

    Returns
    -------
    Fst
        Values, standard errors and numbers of SNPs.

    Examples
    --------
    >>> from gramian.genetics.fst import fst
    >>> from gramian.genetics.simulation import Simulation
    >>> from gramian.sources.plink import Genotypes
    >>> groups = ["A"] * 50 + ["B"] * 50
    >>> study = Simulation(3000, groups=groups, fst=0.1)
    >>> found = fst(Genotypes.from_calls(study.calls(0, 3000)), groups)
    >>> bool(abs(found.matrix[0, 1] - 0.1) < 4 * found.standard_errors[0, 1])
    True
    """
    check_choice("method", method, tuple(TERMS))
    check_choice("chromosomes", chromosomes, ("autosomes", "all"))
    names, members = _groups(labels, genotypes.samples.names)
    block = _blocks(blocks, genotypes.shape[1])
    on = is_autosomal(genotypes.snps) | (chromosomes == "all")
    if not on.any():
        raise ValueError("No SNP is on an autosome (1–22). Use chromosomes='all' if everybody has two copies of each.")
    runs, block = np.unique(block[on], return_inverse=True)
    kept = genotypes if on.all() else genotypes.select(snps=on)
    sums = _sums(kept, members, block, len(runs), method)
    matrix, errors = jackknife_error(sums)
    sizes = np.array([len(rows) for rows in members])
    used = sums.snps.sum(axis=0).astype(np.int64)
    return Fst(names, sizes, matrix, errors, used, method, len(runs), int((~on).sum()))


MOST_NUMBERS = 30  # groups named by numbers; more are measurements


def _groups(labels: Any, samples: list[str]) -> tuple[tuple[str, ...], list[npt.NDArray[np.intp]]]:
    """Names of the groups and the rows of their samples."""
    if len(labels) != len(samples):
        raise ValueError(f"{len(labels)} labels are given for {len(samples)} samples: one for each was expected.")
    text = np.array(["" if _is_missing_label(label) else str(label) for label in labels], dtype=object)
    every = sorted(set(text) - {""})
    if len(every) > MOST_NUMBERS and all(_is_number(name) for name in every):
        raise SourceError(
            f"The labels are {len(every)} different numbers, {list_few(every)}: F_ST is between groups. Make classes "
            "of them, or name a column of groups, ",
            Argument("label"),
            ".",
        )
    if len(every) < 2:
        raise ValueError(f"F_ST is between groups, and the labels name {len(every)}: {', '.join(every) or 'none'}.")
    return tuple(every), [np.flatnonzero(text == name) for name in every]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_missing_label(label: Any) -> bool:
    """None, NaN, and pandas' NA, which is neither equal to itself nor not."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def _blocks(blocks: Any, p: int) -> npt.NDArray[np.intp]:
    """The block of each SNP, 0, 1, …: each one stretch."""
    given = np.asarray(blocks)
    if given.ndim == 0:
        if int(given) < 2:
            raise ValueError(f"blocks={blocks} must be at least 2: the jackknife leaves out one at a time.")
        return np.arange(p) * min(int(given), p) // p
    if given.shape != (p,):
        raise ValueError(f"blocks have shape {given.shape}; one for each of {p} SNPs was expected.")
    run = np.concatenate([[0], np.cumsum(given[1:] != given[:-1])])
    if run[-1] + 1 != len(np.unique(given)):
        raise ValueError("blocks: each must be one stretch of neighbouring SNPs.")
    return run


def _sums(source: Genotypes, members: list[npt.NDArray[np.intp]], block: Any, count: int, method: str) -> Terms:
    """Terms of every block and pair: one pass, shared between threads."""
    # of each group the bytes that hold it, which often is one stretch of the samples; its bits in them; its size
    masks = []
    for rows in members:
        words = sample_mask(source.sample_index[rows], source.width)
        first, *_, last = np.flatnonzero(words).repeat(2).tolist()
        masks.append((slice(8 * first, 8 * (last + 1)), words[first : last + 1], len(rows)))
    # stretches of SNPs that stay in a core's cache, none in two blocks
    step = max(1, BYTES // source.width)
    ends = [*(np.flatnonzero(np.diff(block)) + 1).tolist(), len(block)]
    spans = [(i, min(i + step, b)) for a, b in zip([0, *ends], ends, strict=False) for i in range(a, b, step)]
    shape = (3, count, len(members), len(members))

    def work(share: Sequence[tuple[int, int]]) -> Terms:
        found = Terms(*np.zeros(shape))
        for start, stop in share:
            packed = source.packed(start, stop)
            counts = np.stack([snp_counts(packed[:, where], bits, n) for where, bits, n in masks], axis=1)
            terms = TERMS[method](counts)
            source.give_back()
            for whole, part in zip(found, terms, strict=True):
                whole[block[start]] += part
        return found

    return parallel_sum(work, spans, lambda one, other: Terms(*map(add_to, one, other)))


def jackknife_error(sums: Terms) -> tuple[Matrix, Matrix]:
    r"""Ratios θ of sums over blocks of SNPs, and their standard errors by the weighted jackknife.

    With mⱼ of m SNPs in block j of g, hⱼ = m/mⱼ and θ₋ⱼ the ratio without it (Busing, Meijer and van der Leeden, Stat.
    Comput. 9, 3, 1999):

    .. math::
        \tau_j = h_j\theta-(h_j-1)\theta_{-j},\quad \theta_J = \sum\tau_j/h_j,\quad
        \mathrm{se}^2 = \frac1g\sum_j\frac{(\tau_j-\theta_J)^2}{h_j-1}

    Parameters
    ----------
    sums : Terms
        Numerators, denominators and numbers of SNPs of the blocks, along the first axis.

    Returns
    -------
    theta, error : ndarray
        NaN where nothing stands below the bar, or fewer than two blocks have SNPs.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.fst import Terms
    >>> from gramian.genetics.fst import jackknife_error
    >>> x = np.array([1.0, 2.0, 4.0, 5.0])  # of blocks of equal size: the standard error of a mean
    >>> theta, error = jackknife_error(Terms(x, np.ones(4), np.ones(4)))
    >>> float(theta), round(float(error), 6), round(float(x.std(ddof=1)) / 2, 6)
    (3.0, 0.912871, 0.912871)
    """
    N, D, m = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        theta = N.sum(axis=0) / D.sum(axis=0)
        there = m > 0
        h = m.sum(axis=0) / m
        without = (N.sum(axis=0) - N) / (D.sum(axis=0) - D)
        tau = h * theta - (h - 1) * without
        jackknifed = np.sum(np.where(there, tau / h, 0.0), axis=0)
        squares = np.where(there, (tau - jackknifed) ** 2 / (h - 1), 0.0)
        error = np.sqrt(squares.sum(axis=0) / there.sum(axis=0))
    error = np.where(there.sum(axis=0) > 1, error, math.nan)
    if theta.ndim == 2:
        np.fill_diagonal(theta, 0.0)
        np.fill_diagonal(error, 0.0)
    return theta, error
