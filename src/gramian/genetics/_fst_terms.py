r"""Numerators and denominators of F_ST, summed over SNPs for every pair of groups.

Both estimators are ratios of sums over SNPs, :math:`\sum_j N_j/\sum_j D_j`, taken over the SNPs at which both groups
have called genotypes. Counts come as arrays of SNPs × groups × (two A1, heterozygous, two A2, missing).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["TERMS", "Terms", "hudson", "weir_cockerham"]

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
    >>> from gramian.genetics._fst_terms import hudson
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
    >>> from gramian.genetics._fst_terms import weir_cockerham
    >>> N, D, snps = weir_cockerham(np.array([[[5, 0, 0, 0], [0, 0, 5, 1]]]))
    >>> float(N[0, 1] / D[0, 1])
    1.0
    """
    called, p, h = _shares(counts)
    size = counts.shape[1]
    found = Terms(*(np.zeros((size, size)) for _ in Terms._fields))
    for g in range(size - 1):
        rest = slice(g + 1, None)
        terms = _pairs(called[:, g, None], called[:, rest], p[:, g, None], p[:, rest], h[:, g, None], h[:, rest])
        for whole, part in zip(found, terms, strict=True):
            whole[g, rest] = whole[rest, g] = part.sum(axis=0)
    return found


def _pairs(n1: Matrix, n2: Matrix, p1: Matrix, p2: Matrix, h1: Matrix, h2: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """a, a + b + c and 1 of each SNP and pair; 0 where a group has no calls, or there are but two people."""
    good = (n1 > 0) & (n2 > 0) & (n1 + n2 > 2)
    n = np.where(good, (n1 + n2) / 2, 2.0)
    n_c = np.where(good, 2 * n - (n1**2 + n2**2) / (2 * n), 1.0)
    p, h = (n1 * p1 + n2 * p2) / (2 * n), (n1 * h1 + n2 * h2) / (2 * n)
    s2 = (n1 * (p1 - p) ** 2 + n2 * (p2 - p) ** 2) / n
    v = p * (1 - p) - s2 / 2
    a = n / n_c * (s2 - (v - h / 4) / (n - 1))
    b = n / (n - 1) * (v - (2 * n - 1) / (4 * n) * h)
    return a * good, (a + b + h / 2) * good, good.astype(np.float64)


def _shares(counts: Counts) -> tuple[Matrix, Matrix, Matrix]:
    """People with a call, share of A1 and share of heterozygotes among them; 0 where nobody has one."""
    two, one, none = (counts[..., i].astype(np.float64) for i in range(3))
    called = two + one + none
    some = np.maximum(called, 1.0)
    return called, (two + one / 2) / some, one / some


TERMS = {"hudson": hudson, "weir-cockerham": weir_cockerham}
