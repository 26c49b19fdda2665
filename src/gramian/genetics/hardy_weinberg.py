"""The exact test of Hardy–Weinberg proportions, for many SNPs at once."""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log

import numpy as np
import numpy.typing as npt
from scipy.special import xlog1py

from gramian.compute.threads import parallel

Array = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

SMALL = 16  # factorials below this are tabulated, above it Stirling's series has reached rounding
NEGLIGIBLE = 2.0**-54
PATIENCE = 8  # terms between two looks at which sums are complete

_HEAD = np.array([0.0] + [lgamma(k + 1) - (k * log(k) - k) for k in range(1, SMALL)])


def _stirling(k: Counts) -> Array:
    """ln k! − (k ln k − k), which is 0 at k = 0, without the cancellation of its two large terms."""
    x = np.maximum(k, SMALL).astype(np.float64)
    s = 1 / (x * x)
    series = (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s / 1188)))) / x
    large = 0.5 * np.log(2 * np.pi * x) + series
    return np.where(k < SMALL, _HEAD[np.minimum(k, SMALL - 1)], large)


def _deviance(excess: Counts, expected: Counts, unit: Counts) -> Array:
    """x ln(x/m) + m − x for m = expected/unit and x = m + excess/unit; the integers keep x − m exact."""
    m = expected / unit
    u = excess / expected
    return np.asarray(m * (xlog1py(1 + u, u) - u))


def log_probability(n: Counts, r: Counts, h: Counts) -> Array:
    """Return ln P(h | n, r) for 0 < r ≤ n, to about 1e-12 where P is not below 1e-300, at any n.

    P is a multinomial probability of the genotypes over a binomial one of the alleles, both at the allele frequency
    r/2n. Written with their deviances (Loader 2000, "Fast and accurate computation of binomial probabilities"), no
    number is larger than the logarithm that comes out; differences of ln n! would lose eight digits at n = 500,000.
    """
    a = (r - h) // 2
    b = n - a - h
    alleles = _stirling(r) + _stirling(2 * n - r) - _stirling(2 * n)
    genotypes = _stirling(n) - _stirling(a) - _stirling(h) - _stirling(b)
    c, unit = 2 * n - r, 4 * n
    deviance = _deviance(unit * a - r * r, r * r, unit)
    deviance += _deviance(unit * h - 2 * r * c, 2 * r * c, unit)
    deviance += _deviance(unit * b - c * c, c * c, unit)
    return np.asarray(alleles + genotypes - deviance)


def _factors(n: Counts, r: Counts, h: Counts, up: Mask | bool) -> Array:
    """The x, y, z, w of P(h+2)/P(h) = xy/(zw) where ``up``, else of P(h−2)/P(h).

    k steps further on the ratio is (x−k)(y−k)/((z+k)(w+k)).
    """
    a = (r - h) // 2
    b = n - a - h
    return np.where(up, np.stack([a, b, h / 2 + 1, h / 2 + 0.5]), np.stack([h / 2, h / 2 - 0.5, a + 1, b + 1]))


def _ratio(n: Counts, r: Counts, h: Counts, up: Mask | bool) -> Array:
    """P(h + 2)/P(h) where ``up``, else P(h − 2)/P(h)."""
    x, y, z, w = _factors(n, r, h, up)
    return np.asarray((x * y) / (z * w))


def tails(n: Counts, r: Counts, h: Counts, up: Mask) -> Array:
    """Return the sum of P(h'), over P(h), for h' from h on away from the mode: upwards where ``up``, else downwards.

    That is 1 + ρ₀ + ρ₀ρ₁ + … with ρ_k = (x−k)(y−k)/((z+k)(w+k)), each sum until what is left of it is below rounding: ρ
    falls with k, so what is left after a term t is at most tρ/(1 − ρ). Sums that are complete are taken out.
    """
    x, y, z, w = _factors(n, r, h, up)
    result, place = np.ones(len(x)), np.arange(len(x))
    total, term = np.ones_like(x), np.ones_like(x)
    while place.size:
        ratio, below = np.empty_like(x), np.empty_like(x)
        for _ in range(PATIENCE):
            np.multiply(x, y, out=ratio)
            np.multiply(z, w, out=below)
            ratio /= below
            term *= ratio
            total += term
            x -= 1
            y -= 1
            z += 1
            w += 1
        left = term * ratio > NEGLIGIBLE * total * (1 - ratio)
        if np.count_nonzero(left) <= 0.75 * left.size:
            result[place] = total
            place, x, y, z, w, total, term = (values[left] for values in (place, x, y, z, w, total, term))
    return result


TIE = 1e-10  # relative difference below which two probabilities are taken as equal
CHUNK = 8192  # tables worked on together: a dozen arrays of this length stay in a core's cache
LARGEST = 10**9  # genotypes of one SNP; (2n)² must be an int64
TWO = np.int64(2)  # a step between two possible numbers of heterozygotes
NEWTON = 12  # steps of Newton's method before bisection takes over


def hardy_weinberg(
    two_a1: npt.ArrayLike, het: npt.ArrayLike, two_a2: npt.ArrayLike, *, mid_p: bool = False, log: bool = False
) -> Array:
    """Return the exact p-value of Hardy–Weinberg proportions for each table of genotype counts.

    Given n genotypes with r copies of the rarer allele, the number of heterozygotes has the probabilities

        P(h) = n!/(a! h! b!) · 2^h · r! (2n − r)!/(2n)!,   a = (r − h)/2,   b = n − a − h,

    and p is the sum of all P(h') ≤ P(h) (Wigginton, Cutler and Abecasis 2005). The mid-p-value takes half of those
    equal to P(h) (Graffelman and Moreno 2013). Where only one table is possible (no genotypes, or one allele), p = 1
    and mid-p = ½.

    Parameters
    ----------
    two_a1, het, two_a2 : array-like of int
        Numbers of samples with two copies of A1, with one, and with none; of one shape, or broadcast to one.
    mid_p : bool
        Return mid-p-values, whose mean under the null hypothesis is ½.
    log : bool
        Return natural logarithms, which tell p-values below 1e-300 apart.

    Returns
    -------
    ndarray of float64
        p-values with a relative error of about 1e-11 down to 1e-300, for n up to a million; still smaller ones lose
        digits and become 0.

    Notes
    -----
    P(h) is evaluated directly and both tails are summed outwards from their inner ends until the rest is below
    rounding: about 4√n terms for a SNP that fits, few for one that does not. Equal tables are worked out once.
    Probabilities that differ by less than 1e-10 of their size count as equal.

    References
    ----------
    Wigginton JE, Cutler DJ, Abecasis GR (2005). A note on exact tests of Hardy-Weinberg equilibrium. American Journal
    of Human Genetics 76, 887-893.

    Graffelman J, Moreno V (2013). The mid p-value in exact tests for Hardy-Weinberg equilibrium. Statistical
    Applications in Genetics and Molecular Biology 12, 433-448.

    Examples
    --------
    100 people with 21 copies of the rarer allele, of whom 13, 15 or 17 are heterozygous:

    >>> from gramian.genetics.hardy_weinberg import hardy_weinberg
    >>> hardy_weinberg([4, 3, 2], [13, 15, 17], [83, 82, 81]).round(6)
    array([0.010293, 0.069576, 0.284042])
    >>> hardy_weinberg([1000], [0], [1000], log=True).round(3)
    array([-1385.948])
    """
    tables = np.broadcast_arrays(
        *(_counts(x, name) for x, name in ((two_a1, "two_a1"), (het, "het"), (two_a2, "two_a2")))
    )
    shape = tables[0].shape
    aa, h, bb = (np.ascontiguousarray(table).ravel() for table in tables)
    n = aa + h + bb
    if n.size and n.max() > LARGEST:
        raise ValueError(f"A SNP has {n.max()} genotypes; the test takes at most {LARGEST}.")
    r = h + 2 * np.minimum(aa, bb)
    if not n.size:
        return np.zeros(shape)
    order = np.lexsort((h, n, r))  # equal tables are worked out once, and those of like length together
    keys = np.stack([n, r, h])[:, order]
    new = np.concatenate([[True], np.any(keys[:, 1:] != keys[:, :-1], axis=0)])
    unique = keys[:, new]
    found = np.full(unique.shape[1], np.log(0.5) if mid_p else 0.0)
    possible = np.flatnonzero(unique[1] > 0)  # with one allele there is one table, and nothing to compute

    def work(chunks: Sequence[npt.NDArray[np.intp]]) -> None:
        for chunk in chunks:
            n, r, h = unique[:, chunk]
            found[chunk] = _log_p(n, r, h, mid_p)

    if possible.size:
        parallel(work, [possible[start : start + CHUNK] for start in range(0, possible.size, CHUNK)])
    result = np.empty(n.size)
    result[order] = found[np.cumsum(new) - 1]
    return result.reshape(shape) if log else np.exp(result).reshape(shape)


def _counts(values: npt.ArrayLike, name: str) -> Counts:
    """Counts as int64; refused where they are not whole, or negative."""
    found = np.asarray(values)
    if found.dtype.kind not in "iuf" or not np.all((found >= 0) & (found <= LARGEST) & (found == np.floor(found))):
        raise ValueError(f"{name} must hold counts of samples: whole numbers from 0 to {LARGEST}.")
    return found.astype(np.int64)


def _log_p(n: Counts, r: Counts, h: Counts, mid_p: bool) -> Array:
    """ln of P(h)·T(h) + P(g)·T(g): g is the first count beyond the mode with P(g) ≤ P(h), T a tail's sum over P."""
    above = _ratio(n, r, h, True) < 1  # of two equal modes the lower one looks down, and finds its twin across
    observed = log_probability(n, r, h)
    steps, last = _across(n, r, h, above, observed)
    near, far, tied = tails(n, r, h, above), np.zeros(n.size), np.zeros(n.size, np.bool_)
    there = np.flatnonzero(steps <= last)
    if there.size:
        n, r, up = n[there], r[there], ~above[there]
        g = np.where(up, h[there] + TWO * steps[there], h[there] - TWO * steps[there])
        relative = np.exp(np.minimum(log_probability(n, r, g) - observed[there], 0.0))
        far[there], tied[there] = relative * tails(n, r, g, up), relative >= 1 - TIE
    every = steps == 1  # h is the mode: all tables are as extreme
    half = 0.5 * (1 + tied) if mid_p else 0.0
    return np.where(every, np.log1p(-half * np.exp(observed)), np.minimum(observed + np.log(near + far - half), 0.0))


def _across(n: Counts, r: Counts, h: Counts, above: Mask, observed: Array) -> tuple[Counts, Counts]:
    """How many steps of 2 from h across the mode lead to P ≤ P(h), and how many there are: one more where none does.

    ln P is concave, so Newton's method comes within a step in a few evaluations from the reflection of h in the mean;
    the bracket (low: still likelier, high: not) settles it.
    """
    last = np.where(above, h // 2, (r - h) // 2)
    low, high = np.zeros_like(h), last + 1
    guess = np.abs(h - r * (2 * n - r) / (2 * n))
    for turn in range(2 * NEWTON + 64):
        open_ = np.flatnonzero(high - low > 1)
        if not open_.size:
            break
        middle = (low[open_] + high[open_]) / 2
        probe = np.clip(
            np.rint(guess[open_] if turn < NEWTON else middle).astype(np.int64), low[open_] + 1, high[open_] - 1
        )
        up = ~above[open_]
        g = h[open_] + np.where(up, TWO, -TWO) * probe
        excess = log_probability(n[open_], r[open_], g) - observed[open_]
        fall = np.maximum(-np.log(np.maximum(_ratio(n[open_], r[open_], g, up), 1e-300)), 1e-12)
        less, guess[open_] = excess <= TIE, np.clip(probe + excess / fall, 0, 2.0**40)  # where Newton's method goes on
        high[open_] = np.where(less, probe, high[open_])
        low[open_] = np.where(less, low[open_], probe)
    return high, last
