"""The Tracy–Widom law against Painlevé II, 40-digit determinants and published numbers; the tests built on it."""

import json
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad, solve_ivp
from scipy.special import airy

from gramian.pca.tracy_widom import (
    largest_noise_eigenvalue,
    trace_ratio_critical,
    tracy_widom_cdf,
    tracy_widom_from_sums,
    tracy_widom_quantile,
    tracy_widom_sf,
    tracy_widom_statistics,
)

SMARTPCA = Path(__file__).parent.parent / "data" / "smartpca_tracy_widom.json"


def painleve(points: list[float]) -> list[float]:
    """F₁(s) = exp(−½∫(q + (x − s)q²)dx), q″ = xq + 2q³, q ~ Ai: the law as Tracy and Widom (1996) gave it."""
    start = 8.0
    q, slope, _, _ = airy(start)
    tail = quad(lambda x: airy(x)[0], start, 30)[0]  # ∫q beyond the start; that of q² is below 1e-14

    def flow(x: float, y: Any) -> list[float]:
        # y: q, q′, ∫q, ∫q², ∫(x − s)q²
        return [y[1], x * y[0] + 2 * y[0] ** 3, -y[0], -(y[0] ** 2), -y[3]]

    ends = sorted(points, reverse=True)
    begin = [q, slope, tail, 0.0, 0.0]
    run = solve_ivp(flow, (start, ends[-1]), begin, method="DOP853", t_eval=ends, rtol=1e-13, atol=1e-18)
    found = dict(zip(ends, np.exp(-(run.y[2] + run.y[4]) / 2), strict=True))
    return [float(found[s]) for s in points]


def determinant(s: float, nodes: int = 40) -> mpmath.mpf:
    """det(I − K) with 30 digits, the integral cut where Ai is below 1e-20; 40 Gauss nodes give 18."""
    with mpmath.workdps(30):
        x, w = np.polynomial.legendre.leggauss(nodes)
        roots = [newton(nodes, mpmath.mpf(float(value))) for value in x]
        length = 2 * ((max(mpmath.mpf(s), 0) ** 1.5 + 70) ** (mpmath.mpf(2) / 3) - s)
        at = [length * (z + 1) / 2 for z, _ in roots]
        root = [mpmath.sqrt(length * weight / 2) for _, weight in roots]
        A = mpmath.eye(nodes)
        for i in range(nodes):
            for j in range(i + 1):
                value = root[i] * root[j] * mpmath.airyai((at[i] + at[j]) / 2 + s) / 2
                A[i, j] -= value
                A[j, i] = A[i, j]
        assert len(w) == nodes
        return mpmath.det(A)


def newton(m: int, z: Any) -> tuple[Any, Any]:
    """A root of the Legendre polynomial of degree m and its Gauss weight, to the working precision."""
    slope = mpmath.mpf(0)
    for _ in range(3):
        before, value = mpmath.mpf(1), z
        for k in range(2, m + 1):
            before, value = value, ((2 * k - 1) * z * value - (k - 1) * before) / k
        slope = m * (z * value - before) / (z * z - 1)
        z = z - value / slope
    return z, 2 / ((1 - z * z) * slope**2)


def test_agrees_with_painleve() -> None:
    points = [-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0]
    assert_allclose(tracy_widom_cdf(points), painleve(points), rtol=0, atol=1e-9)


@pytest.mark.parametrize("s", [-3.5, 6.0])
def test_agrees_with_thirty_digits(s: float) -> None:
    exact = determinant(s)
    assert abs(float(tracy_widom_cdf(s) - exact)) < 1e-13
    assert abs(float(tracy_widom_sf(s) / (1 - exact) - 1)) < 1e-12


@pytest.mark.parametrize("s", [12.0, 30.0, 60.0, 100.0])
def test_right_tail_keeps_its_digits(s: float) -> None:
    # to first order 1 − F₁ is the trace ½∫Ai; what it leaves out is of the order of its square, below 1e-27 of it
    with mpmath.workdps(30):
        first = mpmath.airyai(s)
        trace = first * mpmath.quad(lambda x: mpmath.airyai(x) / first, [s, s + 0.5, s + 2, s + 8, s + 20]) / 2
    assert abs(float(mpmath.mpf(float(tracy_widom_sf(s))) / trace - 1)) < 1e-12


def test_mean_and_variance() -> None:
    # E s = ∫₀(1 − F) − ∫⁰F, E s² = 2∫₀s(1 − F) − 2∫⁰sF (Bornemann 2010 gives the digits)
    x, w = np.polynomial.legendre.leggauss(60)
    right, left = 7.0 * (x + 1), 5.0 * (x - 1)
    sf, cdf = tracy_widom_sf(right), tracy_widom_cdf(left)
    mean = 7 * w @ sf - 5 * w @ cdf
    square = 14 * w @ (right * sf) - 10 * w @ (left * cdf)
    assert mean == pytest.approx(-1.2065335745820, abs=1e-11)
    assert square - mean**2 == pytest.approx(1.607781034581, abs=1e-10)


@pytest.mark.parametrize(("alpha", "published"), [(0.05, 0.9794), (0.01, 2.0236), (0.001, 3.2730)])
def test_pattersons_critical_values(alpha: float, published: float) -> None:
    assert tracy_widom_quantile(alpha, upper=True) == pytest.approx(published, abs=1e-3)
    assert tracy_widom_sf(published) == pytest.approx(alpha, rel=2e-3)


@settings(max_examples=10)
@given(st.floats(-7.0, 8.0))
def test_quantile_inverts(s: float) -> None:
    assert tracy_widom_quantile(tracy_widom_cdf(s)) == pytest.approx(s, abs=1e-5)
    assert tracy_widom_cdf(s) + tracy_widom_sf(s) == pytest.approx(1.0, abs=1e-14)


@settings(max_examples=10)
@given(st.floats(1e-280, 0.4))
def test_upper_quantile_inverts(q: float) -> None:
    assert tracy_widom_sf(tracy_widom_quantile(q, upper=True)) == pytest.approx(q, rel=1e-10)


def test_far_out_and_shapes() -> None:
    assert_allclose(tracy_widom_cdf([-np.inf, -50.0, 200.0, np.inf]), [0, 0, 1, 1])
    assert_allclose(tracy_widom_sf([-np.inf, -50.0, 200.0, np.inf]), [1, 1, 0, 0])
    assert np.isnan(tracy_widom_cdf(np.nan))
    assert tracy_widom_sf(np.zeros((2, 3))).shape == (2, 3)
    assert np.ndim(tracy_widom_sf(0.0)) == 0


def test_never_rises() -> None:
    assert np.all(np.diff(tracy_widom_cdf(np.linspace(-11, 11, 200))) >= -1e-13)


@pytest.mark.parametrize("q", [0.0, 1.0, -0.1, 1e-12, np.nan])
def test_quantiles_without_digits_are_refused(q: float) -> None:
    with pytest.raises(ValueError, match="upper=True"):
        tracy_widom_quantile(q)


def test_pattersons_table_is_smartpcas() -> None:
    theirs = json.loads(SMARTPCA.read_text("utf-8"))
    ours = tracy_widom_statistics(theirs["eigenvalues"])
    at = np.array(theirs["component"]) - 1
    # eigenvalues are printed with six decimals, statistics with three
    assert_allclose(ours.effective_n[at], theirs["effective_n"], rtol=2e-6)
    assert_allclose(ours.statistics[at], theirs["statistic"], rtol=2e-5, atol=2e-3)
    # smartpca reads its p-values off a table, good to a few digits, which ends near s = 8
    tabled = at[np.array(theirs["statistic"])[: len(at)] < 6]
    wanted = np.array(theirs["p_value"])[np.array(theirs["statistic"]) < 6]
    assert len(tabled) >= 8
    assert_allclose(ours.p_values[tabled], wanted, rtol=2e-3)
    assert ours.significant() == 46


def test_pattersons_table_in_full_where_the_data_are_here() -> None:
    folder = Path(__file__).resolve().parents[3] / "shared" / "data" / "hapmap3" / "reference"
    if not (folder / "sm.eval").exists():
        pytest.skip("the HapMap reference is not here")
    values = np.loadtxt(folder / "sm.eval")
    lines = (folder / "sm.log").read_text("utf-8").split("effect. n\n")[1].splitlines()
    table = [line.split() for line in lines[: len(values)]]
    rows = [row for row in table if len(row) == 6 and row[3] != "NA"]  # smartpca does not test the last few
    ours = tracy_widom_statistics(values[values > 0])
    assert len(rows) > 900
    assert_allclose(ours.statistics[: len(rows)], [float(r[3]) for r in rows], rtol=2e-5, atol=3e-3)
    assert_allclose(ours.effective_n[: len(rows)], [float(r[5]) for r in rows], rtol=1e-5)


@given(st.lists(st.floats(0.1, 10.0), min_size=3, max_size=12, unique=True), st.floats(1e-100, 1e100))
def test_pattersons_statistic_has_no_unit(values: list[float], unit: float) -> None:
    lam = np.sort(values)[::-1]
    one, other = tracy_widom_statistics(lam), tracy_widom_statistics(lam * unit)
    assert_allclose(one.statistics, other.statistics, rtol=1e-6, atol=1e-6)


def test_pattersons_formula_written_out() -> None:
    lam = np.array([5.0, 2.0, 1.5, 1.0, 0.5])
    ours = tracy_widom_statistics(lam)
    for i in range(4):
        rest = lam[i:]
        m, s1, s2 = len(rest), rest.sum(), (rest**2).sum()
        n = (m + 2) * s1**2 / (m * s2 - s1**2)
        a, b = np.sqrt(n - 1), np.sqrt(m)
        x = (m * rest[0] / s1 - (a + b) ** 2 / n) / ((a + b) / n * (1 / a + 1 / b) ** (1 / 3))
        assert ours.effective_n[i] == pytest.approx(n, rel=1e-12)
        assert ours.statistics[i] == pytest.approx(x, rel=1e-12)
        assert ours.p_values[i] == pytest.approx(float(tracy_widom_sf(x)), rel=1e-12)


@given(st.lists(st.floats(0.5, 100.0), min_size=4, max_size=30), st.integers(1, 3), st.floats(1e-100, 1e100))
def test_sums_of_all_eigenvalues_do_for_the_leading_ones(values: list[float], k: int, unit: float) -> None:
    lam = np.sort(values)[::-1] * unit
    whole = tracy_widom_statistics(lam)
    few = tracy_widom_from_sums(lam[:k], len(lam), lam.sum(), len(lam) * lam.var())
    # n′ divides by a variance: where that is small it is a small difference of the same large numbers in both
    clear = np.array([lam[j:].std() > 1e-3 * lam[j:].mean() for j in range(k)])
    np.testing.assert_allclose(few.statistics[clear], whole.statistics[:k][clear], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(few.effective_n[clear], whole.effective_n[:k][clear], rtol=1e-6)
    assert np.array_equal(few.eigenvalues, lam[:k])


def test_sums_need_more_eigenvalues_than_are_given() -> None:
    with pytest.raises(ValueError, match="count=2"):
        tracy_widom_from_sums([2.0, 1.0], 2, 3.0, 0.5)


def test_equal_eigenvalues_have_nothing_that_stands_out() -> None:
    ours = tracy_widom_statistics(np.ones(6))
    assert ours.significant() == 0
    assert_allclose(ours.p_values, 1.0)
    assert np.isinf(ours.effective_n).all()


def test_the_table_reads_well() -> None:
    pandas = pytest.importorskip("pandas")
    found = tracy_widom_statistics(np.linspace(30, 1, 30))
    frame = pandas.DataFrame(found.table())
    assert list(frame.columns) == ["component", "eigenvalue", "statistic", "p_value", "effective_n"]
    assert len(frame) == 29
    assert "and 19 more" in repr(found)


@pytest.mark.parametrize(
    ("values", "word"),
    [([1.0], "at least 2"), ([2.0, 0.0], "Leave out"), ([1.0, 2.0], "Sort"), ([np.nan, 1.0], "number 1")],
)
def test_impossible_eigenvalues_are_refused(values: list[float], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        tracy_widom_statistics(values)


@pytest.mark.parametrize("p", [4, 30])
def test_largest_eigenvalue_over_the_mean_has_the_level_asked(p: int) -> None:
    rng, n, draws = np.random.default_rng(p), 300, 2000
    mu, sigma = largest_noise_eigenvalue(n, p)
    top = trace_ratio_critical(0.05, n, p)
    above = 0
    for _ in range(draws):
        A = np.tril(rng.standard_normal((p, p)), -1) + np.diag(np.sqrt(rng.chisquare(n - np.arange(p))))
        values = np.linalg.eigvalsh(A @ A.T / n)
        above += (values[-1] / values.mean() - mu) / sigma > top
    # five standard errors, and a point for the approximation
    assert abs(above / draws - 0.05) < 5 * np.sqrt(0.05 * 0.95 / draws) + 0.01


def test_trace_ratio_solves_its_equation() -> None:
    n, p, alpha = 400, 8, 0.05
    s, h = trace_ratio_critical(alpha, n, p), 0.02
    mu, sigma = largest_noise_eigenvalue(n, p)
    curvature = (tracy_widom_cdf(s + h) - 2 * tracy_widom_cdf(s) + tracy_widom_cdf(s - h)) / h**2
    assert tracy_widom_sf(s) + (mu / sigma) ** 2 / (n * p) * curvature == pytest.approx(alpha, rel=1e-3)
    assert s < tracy_widom_quantile(alpha, upper=True)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, np.nan])
def test_impossible_levels_are_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha"):
        trace_ratio_critical(alpha, 100, 5)


def test_density_integrates_to_the_law() -> None:
    # the derivative of the survival function, integrated by another rule, gives back the difference
    h = 1e-4
    area = quad(lambda s: float(tracy_widom_cdf(s + h) - tracy_widom_cdf(s - h)) / (2 * h), -2, 0, epsabs=1e-7)[0]
    assert area == pytest.approx(float(tracy_widom_cdf(0.0) - tracy_widom_cdf(-2.0)), abs=1e-6)
