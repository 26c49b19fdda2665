"""Loops over pairs of packed genotypes, compiled by Numba on the machine that they run on (the extra ``compiled``).

They load Numba: other modules get at them through :func:`gramian.compute.bits.compiled_loops`. Whatever they count are
whole numbers, and what they compare is compared in the same operations as elsewhere: answers are the same bits as those
of NumPy.

A row of genotypes, of a SNP or of a person, is three planes of bits, 64 genotypes in a word: homozygous, two copies of
A1, observed.
"""

# mypy: disable-error-code="no-untyped-def,misc,no-untyped-call"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

EVEN, PAIRS, NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
BYTES, WORDS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
LOWER = np.uint64(0x00000000FFFFFFFF)
ONE, TWO_BITS, FOUR, EIGHT, SIXTEEN, HALF = (np.uint64(2**i) for i in range(6))
ALL = np.uint64(2**64 - 1)
TIE = 1 + 2.0**-44  # as in pruning: frequencies and correlations that differ by less are equal
SURE = 1 - 1e-9  # a bound that holds by so much holds whatever the rounding
VECTOR = 32  # words that the compiler counts together: rows are padded to a multiple


def compile_loop(loop: Any) -> Any:
    """Compile a function when it is first called, and keep what is compiled where there is a folder for it."""
    try:
        return numba.njit(nogil=True, cache=True)(loop)
    except RuntimeError:  # neither the package's folder nor the user's can be written
        return numba.njit(nogil=True)(loop)


@intrinsic
def count_ones(typing, word):
    """Bits that are set in a word: one instruction, of which the compiler makes vectors."""

    def build(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), build


@compile_loop
def _squeeze(word):
    """The bits at even places, next to one another."""
    word &= EVEN
    word = (word | (word >> ONE)) & PAIRS
    word = (word | (word >> TWO_BITS)) & NIBBLES
    word = (word | (word >> FOUR)) & BYTES
    word = (word | (word >> EIGHT)) & WORDS
    return (word | (word >> SIXTEEN)) & LOWER


@compile_loop
def make_planes(packed, planes, sums):
    """Fill the planes of rows of packed words, and how many were observed, Σx and Σx² of x = +1, 0, −1."""
    rows, width = packed.shape
    for i in range(rows):
        row, homozygous, two, observed = packed[i], planes[i, 0], planes[i, 1], planes[i, 2]
        for w in range(width // 2):
            first, second = row[2 * w], row[2 * w + 1]
            low = _squeeze(first) | (_squeeze(second) << HALF)
            high = _squeeze(first >> ONE) | (_squeeze(second >> ONE) << HALF)
            homozygous[w], two[w], observed[w] = ~(low ^ high), ~(low | high), high | ~low
        seen = squares = twos = 0
        for w in range(width // 2):
            seen += count_ones(observed[w])
            squares += count_ones(homozygous[w])
            twos += count_ones(two[w])
        sums[i, 0], sums[i, 1], sums[i, 2] = seen, 2 * twos - squares, squares


@compile_loop
def _count_shared(planes, a, b, product, r2):
    """Whether the squared correlation is above a threshold, by sums over the people that both SNPs were read at."""
    shared = ss = tt = twos = others = 0
    homozygous, two, observed = planes[a, 0], planes[a, 1], planes[a, 2]
    other_homozygous, other_two, other_observed = planes[b, 0], planes[b, 1], planes[b, 2]
    for w in range(len(homozygous)):
        shared += count_ones(observed[w] & other_observed[w])
        ss += count_ones(homozygous[w] & other_observed[w])
        tt += count_ones(other_homozygous[w] & observed[w])
        twos += count_ones(two[w] & other_observed[w])
        others += count_ones(other_two[w] & observed[w])
    s, t = 2 * twos - ss, 2 * others - tt
    covariance = float(shared * product - s * t)
    return covariance * covariance > r2 * TIE * float(shared * ss - s * s) * float(shared * tt - t * t)


@compile_loop
def _exceeds(planes, sums, a, b, n, r2):
    """Whether the squared correlation of two SNPs is above a threshold, decided in whole numbers.

    Where calls are missing, and bounds on the sums over the people that both were read at leave a doubt, these are
    counted.
    """
    homozygous, other_homozygous, two, other_two = planes[a, 0], planes[b, 0], planes[a, 1], planes[b, 1]
    both = mixed = 0
    for w in range(len(homozygous)):
        bits = homozygous[w] & other_homozygous[w]
        both += count_ones(bits)
        mixed += count_ones(bits & (two[w] ^ other_two[w]))
    product = both - 2 * mixed
    s, t, ss, tt = sums[a, 1], sums[b, 1], sums[a, 2], sums[b, 2]
    other, lost = n - sums[a, 0], n - sums[b, 0]  # of the one, where the other was not observed
    if other == 0 and lost == 0:
        covariance = float(n * product - s * t)
        return covariance * covariance > r2 * TIE * float(n * ss - s * s) * float(n * tt - t * t)
    size, other_size = abs(s), abs(t)
    most = abs(n * product - s * t) + (lost + other) * abs(product) + size * other + other_size * lost + lost * other
    fewest = n - lost - other
    least = fewest * (ss - lost) - (size + lost) * (size + lost)
    least_other = fewest * (tt - other) - (other_size + other) * (other_size + other)
    if (
        fewest > 0
        and least > 0
        and least_other > 0
        and float(most) * float(most) < SURE * r2 * float(least) * float(least_other)
    ):
        return False
    return _count_shared(planes, a, b, product, r2)


@compile_loop
def prune_backwards(planes, sums, which, begin, entered, first, major, removed, n, r2):
    """Remove SNPs in the order of PLINK 2: rows from ``begin`` on enter, window by window.

    Every SNP that enters, from the end of its window backwards, is held against those before it that are left, the
    nearest first: until it goes itself, else they go. One that has gone is held against them too.
    """
    rows = len(which)
    while begin < rows:
        stop = begin
        while stop < rows and entered[which[stop]] == entered[which[begin]]:
            stop += 1
        for b in range(stop - 1, begin - 1, -1):
            j = which[b]
            for a in range(b - 1, -1, -1):
                i = which[a]
                if i < first[j]:
                    break
                if removed[i] or not _exceeds(planes, sums, a, b, n, r2):
                    continue
                if major[i] <= major[j] * TIE:
                    removed[j] = True
                    break
                removed[i] = True
        begin = stop


@compile_loop
def prune_forwards(planes, sums, which, begin, entered, first, major, removed, n, r2):
    """Remove SNPs in the order of PLINK 1.9: rows from ``begin`` on enter, window by window.

    Every SNP loses or wins against at most one later SNP in a round; rounds go on until none is removed.
    """
    rows = len(which)
    onward = np.empty(rows, np.int64)  # the next row that each has to be held against
    while begin < rows:
        stop, start = begin, 0
        while stop < rows and entered[which[stop]] == entered[which[begin]]:
            stop += 1
        while which[start] < first[which[begin]]:
            start += 1
        for a in range(start, stop):
            onward[a] = max(a + 1, begin)
        again = True
        while again:
            again = False
            for a in range(start, stop):
                i = which[a]
                if removed[i]:
                    continue
                b = onward[a]
                while b < stop:
                    j = which[b]
                    if not removed[j] and _exceeds(planes, sums, a, b, n, r2):
                        removed[i if major[i] > major[j] * TIE else j] = again = True
                        break
                    b += 1
                onward[a] = b + 1
        begin = stop


@compile_loop
def find_pairs(planes, sums, which, begin, first, n, r2):
    """Pairs (i, j) of rows of SNPs with j from ``begin`` on and first[j] ≤ i < j, whose r² is above the threshold."""
    found, count = np.empty((1024, 2), np.int64), 0
    for b in range(begin, len(which)):
        for a in range(b - 1, -1, -1):
            if which[a] < first[which[b]]:
                break
            if _exceeds(planes, sums, a, b, n, r2):
                if count == len(found):
                    longer = np.empty((2 * count, 2), np.int64)
                    longer[:count] = found
                    found = longer
                found[count, 0], found[count, 1] = which[a], which[b]
                count += 1
    return found[:count]


@compile_loop
def _transpose(block):
    """Exchange rows and columns of 64 × 64 bits."""
    width, mask = HALF, LOWER
    while width:
        k = np.uint64(0)
        while k < np.uint64(64):
            low, high = block[k], block[k | width]
            changed = ((low >> width) ^ high) & mask
            block[k | width] = high ^ changed
            block[k] = low ^ (changed << width)
            k = ((k | width) + ONE) & ~width
        width >>= ONE
        mask ^= mask << width


@compile_loop
def turn_planes(packed, planes, start, stop):
    """Fill planes (people, plane, words of 64 SNPs) from rows of SNPs: heterozygous, homozygous, two copies of A1.

    Pairs of words ``start`` to ``stop`` of the rows are turned; SNPs beyond the last are not observed.
    """
    snps, people = packed.shape[0], planes.shape[0]
    lows, highs = np.empty(64, np.uint64), np.empty(64, np.uint64)
    for w in range(start, stop):
        for block in range(planes.shape[2]):
            for k in range(64):
                s = 64 * block + k
                if s < snps:
                    one, other = packed[s, 2 * w], packed[s, 2 * w + 1]
                    lows[k] = _squeeze(one) | (_squeeze(other) << HALF)
                    highs[k] = _squeeze(one >> ONE) | (_squeeze(other >> ONE) << HALF)
                else:
                    lows[k], highs[k] = ALL, np.uint64(0)
            _transpose(lows)
            _transpose(highs)
            for k in range(min(64, people - 64 * w)):
                low, high = lows[k], highs[k]
                person = planes[64 * w + k]
                person[0, block], person[1, block], person[2, block] = high & ~low, ~(low ^ high), ~(low | high)


@compile_loop
def add_counts(planes, start, stop, begin, counts):
    """Add what people start to stop share with all before them to the rows ``start - begin`` on of the counts.

    Both heterozygous; homozygous for other alleles; the later one alone heterozygous; the earlier one alone; both
    homozygous.
    """
    for j in range(stop - 1):
        other_het, other_hom, other_two = planes[j, 0], planes[j, 1], planes[j, 2]
        for i in range(max(start, j + 1), stop):
            het, hom, two = planes[i, 0], planes[i, 1], planes[i, 2]
            hets = apart = alone = other = alike = 0
            for w in range(planes.shape[2]):
                same = hom[w] & other_hom[w]
                hets += count_ones(het[w] & other_het[w])
                alike += count_ones(same)
                apart += count_ones(same & (two[w] ^ other_two[w]))
                alone += count_ones(het[w] & other_hom[w])
                other += count_ones(hom[w] & other_het[w])
            counts[0, i - begin, j] += hets
            counts[1, i - begin, j] += apart
            counts[2, i - begin, j] += alone
            counts[3, i - begin, j] += other
            counts[4, i - begin, j] += alike


@compile_loop
def add_products(planes, start, stop, begin, products):
    """Add Σx₁x₂, x = +1, 0, −1, of people start to stop and all before them to the rows ``start - begin`` on."""
    for j in range(stop - 1):
        other_hom, other_two = planes[j, 1], planes[j, 2]
        for i in range(max(start, j + 1), stop):
            hom, two = planes[i, 1], planes[i, 2]
            alike = apart = 0
            for w in range(planes.shape[2]):
                same = hom[w] & other_hom[w]
                alike += count_ones(same)
                apart += count_ones(same & (two[w] ^ other_two[w]))
            products[i - begin, j] += alike - 2 * apart


@compile_loop
def count_calls(packed, kept, by_snp, low, high, both):
    """Count low bits, high bits and both of rows of packed words, and of each of their samples.

    ``by_snp`` (rows, 3) counts where ``kept`` has the lower bit of a sample. ``low``, ``high`` and ``both`` (4, bytes)
    are of the first, second, third and fourth sample of every byte; 255 rows do not make their bytes overflow.
    """
    rows, width = packed.shape
    octets = packed.view(np.uint8)
    for i in range(rows):
        row = packed[i]
        lows = highs = pairs = 0
        for w in range(width):
            first, second = row[w] & kept[w], (row[w] >> ONE) & kept[w]
            lows += count_ones(first)
            highs += count_ones(second)
            pairs += count_ones(first & second)
        by_snp[i, 0], by_snp[i, 1], by_snp[i, 2] = lows, highs, pairs
        four = octets[i]
        for k in range(4):
            shift, one = np.uint8(2 * k), np.uint8(1)
            a, b, c = low[k], high[k], both[k]
            for w in range(len(four)):
                first, second = (four[w] >> shift) & one, (four[w] >> (shift + one)) & one
                a[w] = np.uint8(a[w] + first)
                b[w] = np.uint8(b[w] + second)
                c[w] = np.uint8(c[w] + (first & second))
