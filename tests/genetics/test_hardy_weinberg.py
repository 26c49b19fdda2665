"""The exact Hardy–Weinberg test, against exact fractions, 40 digits, and PLINK."""

import json
from collections.abc import Iterator
from fractions import Fraction
from math import comb, factorial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gramian.genetics.hardy_weinberg import hardy_weinberg

DATA = Path(__file__).parent.parent / "data"
PLINK: dict[str, Any] = json.loads((DATA / "plink_quality.json").read_text("utf-8"))


def naive(n: int, r: int) -> Iterator[tuple[int, int, int, float, float]]:
    """Every table of n genotypes with r copies of an allele, its p and its mid-p, by counting arrangements."""
    weights = {
        h: factorial(n) // (factorial((r - h) // 2) * factorial(h) * factorial(n - (r + h) // 2)) * 2**h
        for h in range(r % 2, min(r, 2 * n - r) + 1, 2)
    }
    total = sum(weights.values())
    assert total == comb(2 * n, r)
    for h, weight in weights.items():
        less = sum(x for x in weights.values() if x < weight)
        same = sum(x for x in weights.values() if x == weight)
        yield (
            (r - h) // 2,
            h,
            n - (r + h) // 2,
            float(Fraction(less + same, total)),
            float(Fraction(2 * less + same, 2 * total)),
        )


def precise(n: int, r: int, het: list[int]) -> Any:
    """ln p and ln mid-p with 40 digits, by the ratios of neighbouring probabilities, to 60 standard deviations."""
    mean, spread = r * (2 * n - r) / (2 * n), r * (2 * n - r) / (2 * n) / np.sqrt(n)
    low, high = (int(mean + side * 60 * (spread + 5)) for side in (-1, 1))
    first = max(low - (low - r) % 2, r % 2)
    with mpmath.workdps(40):
        terms, x = [], mpmath.mpf(1)
        for k in range(first, min(high, r) + 1, 2):
            terms.append(x)
            a = (r - k) // 2
            x = x * 4 * a * (n - a - k) / ((k + 2) * (k + 1))
        total, equal, found = mpmath.fsum(terms), mpmath.mpf(10) ** -30, []
        for own in (terms[(h - first) // 2] for h in het):
            less = mpmath.fsum(y for y in terms if y < own * (1 - equal))
            same = own * sum(abs(y - own) <= own * equal for y in terms)
            found.append([float(mpmath.log((less + same / k) / total)) for k in (1, 2)])
        return np.array(found)


def test_every_table_of_few_genotypes() -> None:
    rows = [row for n in range(31) for r in range(2 * n + 1) for row in naive(n, r)]
    a, h, b, p, mid = np.array(rows).T
    assert len(rows) > 5000
    assert_allclose(hardy_weinberg(a, h, b), p, rtol=1e-12)
    assert_allclose(hardy_weinberg(a, h, b, mid_p=True), mid, rtol=1e-12)


@pytest.mark.parametrize(("n", "r"), [(100, 21), (120, 120), (257, 100), (257, 3), (400, 1)])
def test_more_genotypes(n: int, r: int) -> None:
    a, h, b, p, mid = np.array(list(naive(n, r))).T
    assert_allclose(hardy_weinberg(a, h, b), p, rtol=1e-12)
    assert_allclose(hardy_weinberg(b, h, a, mid_p=True), mid, rtol=1e-12)


@pytest.mark.parametrize("n", [3192, 20_000, 500_000])
@pytest.mark.parametrize("frequency", [0.0005, 0.05, 0.4])
def test_tiny_p_values_keep_their_digits(n: int, frequency: float) -> None:
    r = int(2 * n * frequency)
    mean, spread = r * (2 * n - r) / (2 * n), 2 * frequency * (1 - frequency) * np.sqrt(n)
    wanted = [int(mean + z * spread) for z in (0, 0.4, -2, 5, -9, -36)]
    het = sorted({min(max(h - (h - r) % 2, r % 2), r) for h in wanted})
    exact = precise(n, r, het)
    a = (r - np.array(het)) // 2
    b = n - a - het
    # the error of ln p is the relative error of p
    assert_allclose(hardy_weinberg(a, het, b, log=True), exact[:, 0], atol=1e-11, rtol=1e-15)
    assert_allclose(hardy_weinberg(a, het, b, log=True, mid_p=True), exact[:, 1], atol=1e-11, rtol=1e-15)
    normal = exact[:, 0] > np.log(1e-300)
    assert_allclose(hardy_weinberg(a, het, b)[normal], np.exp(exact[normal, 0]), rtol=2e-11)


def test_below_the_smallest_number() -> None:
    # no heterozygotes at all: p = P(0) = C(2000, 1000)/C(4000, 2000), as every other table is likelier or as unlikely
    exact = np.log(float(Fraction(comb(2000, 1000), comb(4000, 2000)) * 10**590)) - 590 * np.log(10)
    assert_allclose(hardy_weinberg(1000, 0, 1000, log=True), exact, rtol=1e-13)
    assert hardy_weinberg(1000, 0, 1000) == 0


@given(a=st.integers(0, 3000), h=st.integers(0, 3000), b=st.integers(0, 3000))
def test_invariants(a: int, h: int, b: int) -> None:
    p, mid = hardy_weinberg(a, h, b), hardy_weinberg(a, h, b, mid_p=True)
    assert 0 <= mid <= p <= 1
    assert_array_equal(hardy_weinberg(b, h, a), p)
    both = hardy_weinberg([a, b, 7], [h, h, 3], [b, a, 1])
    assert_array_equal(both[:2], [p, p])


@given(n=st.integers(1, 60), data=st.data())
def test_p_values_are_honest(n: int, data: st.DataObject) -> None:
    """Under the null hypothesis P(p ≤ α) ≤ α, and mid-p has mean ½."""
    r = data.draw(st.integers(0, n))
    h = np.arange(r % 2, r + 1, 2)
    a = (r - h) // 2
    weight = np.array(
        [
            factorial(n) // (factorial(i) * factorial(j) * factorial(n - i - j)) << j
            for i, j in zip(a.tolist(), h.tolist(), strict=True)
        ],
        dtype=object,
    )
    chance = np.array([float(Fraction(w, comb(2 * n, r))) for w in weight])
    p = hardy_weinberg(a, h, n - a - h)
    for alpha in p:
        assert chance[p <= alpha].sum() <= alpha * (1 + 1e-12)
    assert_allclose(chance @ hardy_weinberg(a, h, n - a - h, mid_p=True), 0.5, rtol=1e-12)


@pytest.mark.parametrize("study", ["hapmap", "reports"])
def test_plink2_prints_the_same(study: str) -> None:
    table = PLINK[study] if study == "hapmap" else PLINK["reports"]
    counts = [np.array(table["p2.hardy"][f"{name}_CT"], dtype=int) for name in ("HOM_A1", "HET_A1", "TWO_AX")]
    assert len(counts[0]) >= 40
    p, mid = np.array(table["p2.hardy"]["P"], dtype=float), np.array(table["p2m.hardy"]["MIDP"], dtype=float)
    assert_allclose(hardy_weinberg(*counts), p, rtol=6e-6)
    assert_allclose(hardy_weinberg(*counts, mid_p=True), mid, rtol=6e-6)


def test_plink1_prints_the_same() -> None:
    table = PLINK["hapmap"]
    counts = np.array([row.split("/") for row in table["p1.hwe"]["GENO"]], dtype=int).T
    assert_allclose(hardy_weinberg(*counts), np.array(table["p1.hwe"]["P"], dtype=float), rtol=6e-4)
    assert_allclose(hardy_weinberg(*counts, mid_p=True), np.array(table["p1m.hwe"]["P"], dtype=float), rtol=6e-4)


def test_many_people_take_few_terms() -> None:
    """Half a billion people: a sum over all possible tables would not end."""
    n, r = 5 * 10**8, 2 * 10**6
    het = [r * (2 * n - r) // (2 * n) // 2 * 2 - k for k in (0, 200, -900, 2000)]
    a = (r - np.array(het)) // 2
    found = hardy_weinberg(a, het, n - a - het, log=True)
    assert_allclose(found, precise(n, r, het)[:, 0], atol=1e-11)


def test_bisection_ends_where_newtons_method_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search begins with Newton's method; without any step of it, and without bisection, p is the same."""
    rng = np.random.default_rng(0)
    n = rng.integers(1000, 10**6, 200)
    p = rng.uniform(0.05, 0.5, 200)
    tables = np.array([rng.multinomial(m, [q * q, 2 * q * (1 - q), (1 - q) ** 2]) for m, q in zip(n, p, strict=True)]).T
    tables[1] += (5 * np.sqrt(n)).astype(int) * rng.integers(-1, 2, 200)
    tables = np.maximum(tables, 0)
    expected = hardy_weinberg(*tables, log=True)
    for steps in (0, 200):
        monkeypatch.setitem(hardy_weinberg.__globals__, "NEWTON", steps)
        assert_allclose(hardy_weinberg(*tables, log=True), expected, rtol=1e-12, atol=1e-14)


def test_shapes() -> None:
    assert hardy_weinberg([], [], []).shape == (0,)
    assert hardy_weinberg([[1], [2]], [3, 4, 5], 6).shape == (2, 3)
    assert_array_equal(hardy_weinberg([0, 5, 0], [0, 0, 1], [0, 0, 0]), [1, 1, 1])


@pytest.mark.parametrize("bad", [[-1], [0.5], [np.nan], ["3"], [True], [2 * 10**9]])
def test_what_is_no_count_is_refused(bad: list[Any]) -> None:
    with pytest.raises(ValueError, match="samples"):
        hardy_weinberg([1], bad, [1])


def test_too_many_genotypes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"1500000000 genotypes.*most 1000000000"):
        hardy_weinberg([5 * 10**8], [5 * 10**8], [5 * 10**8])
