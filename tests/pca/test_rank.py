"""Rules on eigenvalues: closed forms, published constants, quadrature, and data of known rank."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.integrate import quad

from gramian.pca.rank import (
    SPECTRUM_RULES,
    broken_stick,
    gavish_donoho,
    marchenko_pastur_median,
    median_noise_variance,
    noise_variance,
    optimal_threshold,
    tracy_widom_rank,
    variance_fraction,
)
from oracles import naive_pca

Array = NDArray[np.float64]


def spectrum(n: int, p: int, strengths: list[float], seed: Any, scale: Any = 1.0) -> Array:
    """Eigenvalues of unit noise whose first columns have variance 1 + c√(p/n): c = 1 is the edge of detection."""
    X = np.random.default_rng(seed).standard_normal((n, p)) * scale
    X[:, : len(strengths)] *= np.sqrt(1 + np.array(strengths) * math.sqrt(p / n))
    return naive_pca(X).variances


def answers(rule: Any, n: int, p: int, strengths: list[float], count: int) -> Array:
    return np.array([rule(spectrum(n, p, strengths, [n, p, i]), n, p).n_components for i in range(count)])


# ── broken stick ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_pieces_of_a_broken_stick_are_those_of_broken_sticks() -> None:
    m, rng = 5, np.random.default_rng(0)
    cuts = np.sort(rng.uniform(size=(20_000, m - 1)), axis=1)
    lengths = np.sort(np.diff(cuts, axis=1, prepend=0.0, append=1.0), axis=1)[:, ::-1]
    pieces = broken_stick(np.ones(m)).thresholds
    assert_allclose(lengths.mean(axis=0), pieces, atol=5 * lengths.std(axis=0).max() / math.sqrt(20_000))
    assert pieces.sum() == pytest.approx(1.0)


def test_pieces_as_published() -> None:
    # Jackson (1993): for p = 4 the pieces are 52.08, 27.08, 14.58 and 6.25 per cent
    assert_allclose(100 * broken_stick([4, 3, 2, 1]).thresholds, [52.08, 27.08, 14.58, 6.25], atol=0.005)


def test_broken_stick_counts_leading_components_only() -> None:
    assert broken_stick([3.0, 0.6, 0.3, 0.1]).n_components == 1
    # the second falls short, the third and fourth would exceed their pieces
    values = np.array([0.60, 0.16, 0.15, 0.09])
    choice = broken_stick(values)
    assert (choice.values > choice.thresholds).tolist() == [True, False, True, True]
    assert choice.n_components == 1


# ── Gavish and Donoho ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("beta", [1e-6, 0.01, 0.3, 0.77, 0.99, 1.0])
def test_marchenko_pastur_median_by_quadrature(beta: float) -> None:
    a, b = (1 - math.sqrt(beta)) ** 2, (1 + math.sqrt(beta)) ** 2

    def density(t: float) -> float:
        return math.sqrt(max((b - t) * (t - a), 0.0)) / (2 * math.pi * beta * t)

    below = quad(density, a, marchenko_pastur_median(beta), limit=200, epsabs=1e-10)[0]
    assert below == pytest.approx(0.5, abs=1e-7)


def test_marchenko_pastur_median_of_real_noise() -> None:
    assert np.median(spectrum(2000, 500, [], 0)) == pytest.approx(marchenko_pastur_median(0.25), rel=0.01)


def test_published_thresholds() -> None:
    assert optimal_threshold(1.0) == pytest.approx(4 / math.sqrt(3), rel=1e-14)
    # Gavish and Donoho (2014): ω(β) ≈ 0.56β³ − 0.95β² + 1.82β + 1.43 to 0.02, and ω(1) ≈ 2.858
    for beta in np.linspace(0.01, 1, 12):
        omega = optimal_threshold(beta) / math.sqrt(marchenko_pastur_median(beta))
        assert omega == pytest.approx(0.56 * beta**3 - 0.95 * beta**2 + 1.82 * beta + 1.43, abs=0.021)
    assert optimal_threshold(1.0) / math.sqrt(marchenko_pastur_median(1.0)) == pytest.approx(2.858, abs=5e-4)


@given(st.floats(1e-9, 1.0))
def test_the_threshold_is_above_the_noise(beta: float) -> None:
    assert optimal_threshold(beta) >= 1 + math.sqrt(beta) - 1e-12


@pytest.mark.parametrize(("n", "p"), [(101, 40), (41, 200)])
def test_known_noise_in_units_of_singular_values(n: int, p: int) -> None:
    lam = spectrum(n, p, [30.0, 4.0], 1)
    longer, shorter = max(n - 1, p), min(n - 1, p)
    tau = optimal_threshold(shorter / longer) * math.sqrt(longer)  # of singular values of the data, σ = 1
    choice = gavish_donoho(lam, n, p, noise_variance=1.0)
    assert choice.n_components == np.count_nonzero(np.sqrt(lam * (n - 1)) > tau)
    assert choice.thresholds[0] == pytest.approx(tau**2 / (n - 1))


def test_threshold_minimises_the_error_of_the_reconstruction() -> None:
    # rank-one signals x u vᵀ in noise: at the strength where the threshold says "equal", keeping is as good as dropping
    n, p, rng = 200, 200, np.random.default_rng(0)
    gains = {x: [] for x in (1.2, 2.2)}  # in units of √n: below, and above √3, where λ* lies
    for x, found in gains.items():
        for _ in range(8):
            u, v = rng.standard_normal(n), rng.standard_normal(p)
            signal = x * math.sqrt(n) * np.outer(u, v) / np.linalg.norm(u) / np.linalg.norm(v)
            U, s, Vt = np.linalg.svd(signal + rng.standard_normal((n, p)))
            found.append(np.sum((signal - s[0] * np.outer(U[:, 0], Vt[0])) ** 2) - np.sum(signal**2))
    assert np.mean(gains[1.2]) > 0 > np.mean(gains[2.2])


def test_unknown_noise_is_found_from_the_median() -> None:
    lam = spectrum(300, 100, [40.0, 30.0], 2, scale=3.0)
    assert median_noise_variance(lam, 300, 100) == pytest.approx(9.0, rel=0.05)
    assert gavish_donoho(lam, 300, 100).n_components == 2


# ── Tracy–Widom ───────────────────────────────────────────────────────────────────────────────────────────────────

SHAPES = [(500, 5), (200, 20), (80, 80), (30, 100)]


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_noise_is_given_a_component_at_the_level_asked(n: int, p: int) -> None:
    count = 200
    alarms = np.mean(answers(tracy_widom_rank, n, p, [], count) > 0)
    assert alarms <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / count)


@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_strong_components_are_found(n: int, p: int) -> None:
    # six times the edge 1 + √γ of Baik, Ben Arous and Péché, whatever the shape
    right = answers(tracy_widom_rank, n, p, [40.0, 9.0] if p > 5 else [40.0], 60) == (2 if p > 5 else 1)
    assert np.mean(right) >= 0.9


@pytest.mark.parametrize(("n", "p"), [(200, 20), (80, 80)])
def test_components_below_the_edge_of_detection_are_not_found(n: int, p: int) -> None:
    assert np.mean(answers(tracy_widom_rank, n, p, [0.4], 60)) < 0.25


@pytest.mark.parametrize(("n", "p"), [(100, 40), (40, 100)])
def test_noise_variance_beside_strong_components(n: int, p: int) -> None:
    found = [noise_variance(spectrum(n, p, [60.0, 40.0, 20.0], [7, i]), n, p, 3) for i in range(40)]
    plain = [spectrum(n, p, [60.0, 40.0, 20.0], [7, i])[3:].sum() / (p - 3) for i in range(40)]
    error = 5 * math.sqrt(2 / ((n - 1) * (p - 3)) / 40) + 0.005
    assert abs(np.mean(found) - 1) < error
    assert abs(np.mean(plain) - 1) > 2 * abs(np.mean(found) - 1)


def test_noise_variance_solves_its_equations() -> None:
    lam, n, p, k = spectrum(60, 30, [30.0, 20.0], 3), 60, 30, 2
    v = noise_variance(lam, n, p, k)
    rho = [max(np.roots([1, -(x + v - v * (p - k) / (n - 1)), x * v]).real) for x in lam[:k]]
    assert v == pytest.approx((lam[k:].sum() + np.sum(lam[:k] - rho)) / (p - k), rel=1e-10)
    assert noise_variance(lam, n, p, 0) == pytest.approx(lam.sum() / p)


def test_correlated_noise_needs_the_effective_sample_size() -> None:
    # neighbouring columns share noise: the plain test sees components, Patterson's does not
    n, p, plain, effective = 60, 800, [], []
    for i in range(8):
        rng = np.random.default_rng([5, i])
        lam = naive_pca(rng.standard_normal((n, p // 4)).repeat(4, axis=1)).variances
        plain.append(tracy_widom_rank(lam, n, p).n_components)
        effective.append(tracy_widom_rank(lam, n, p, effective=True).n_components)
    assert min(plain) > 0
    assert np.mean(np.array(effective) > 0) <= 0.25


def test_a_stricter_level_keeps_no_more() -> None:
    lam = spectrum(100, 50, [8.0, 4.0, 2.5, 2.0, 1.5], 11)
    kept = [tracy_widom_rank(lam, 100, 50, alpha).n_components for alpha in (0.4, 0.05, 1e-3, 1e-9)]
    assert kept == sorted(kept, reverse=True)


# ── all of them ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rule", sorted(SPECTRUM_RULES))
def test_no_component_is_a_possible_answer(rule: str) -> None:
    choice = SPECTRUM_RULES[rule](spectrum(200, 20, [], 0), 200, 20)
    assert choice.n_components == 0
    assert choice.rule == rule
    assert choice.reason.endswith(".")


@pytest.mark.parametrize("rule", sorted(SPECTRUM_RULES))
@given(unit=st.floats(1e-100, 1e100))
def test_answers_have_no_unit(rule: str, unit: float) -> None:
    lam = spectrum(100, 15, [60.0, 20.0], 4)
    assert SPECTRUM_RULES[rule](lam * unit, 100, 15).n_components == SPECTRUM_RULES[rule](lam, 100, 15).n_components


@pytest.mark.parametrize("rule", sorted(SPECTRUM_RULES))
@pytest.mark.parametrize(("n", "p"), [(100, 15), (10, 15)])
def test_exact_low_rank_is_found_or_less(rule: str, n: int, p: int) -> None:
    lam = np.r_[np.full(2, 5.0), np.zeros(min(n, p) - 2)]
    choice = SPECTRUM_RULES[rule](lam, n, p)
    assert choice.n_components == 2


@pytest.mark.parametrize("rule", sorted(SPECTRUM_RULES))
def test_rounding_below_zero_and_trailing_zeros_are_nothing(rule: str) -> None:
    lam = spectrum(12, 30, [50.0], 5)
    assert len(lam) == 12
    rounded = np.r_[lam[:11], -1e-17]
    padded = np.r_[lam[:11], np.zeros(19)]
    counts = {SPECTRUM_RULES[rule](values, 12, 30).n_components for values in (lam, lam[:11], rounded, padded)}
    assert len(counts) == 1


@pytest.mark.parametrize(
    "rule", [*(lambda e, r=r: SPECTRUM_RULES[r](e, 9, 4) for r in SPECTRUM_RULES), variance_fraction]
)
def test_no_variance_no_component(rule: Any) -> None:
    choice = rule(np.zeros(4))
    assert choice.n_components == 0
    assert "equal" in choice.reason


@given(st.lists(st.floats(0.01, 10.0), min_size=1, max_size=12), st.floats(0.01, 0.99))
def test_fraction_is_the_first_that_exceeds(values: list[float], fraction: float) -> None:
    lam = np.sort(values)[::-1]
    k = variance_fraction(lam, fraction).n_components
    total = lam.sum()
    assert lam[:k].sum() > fraction * total * (1 - 1e-12)
    assert lam[: k - 1].sum() <= fraction * total * (1 + 1e-12)


def test_choices_read_well() -> None:
    pandas = pytest.importorskip("pandas")
    choice = broken_stick([3.0, 0.6, 0.3, 0.1])
    frame = pandas.DataFrame(choice.table())
    assert frame.kept.tolist() == [True, False, False, False]
    assert repr(choice).startswith("broken-stick: 1 component\n")
    assert "2 components" in repr(gavish_donoho(np.r_[50.0, 40.0, np.ones(8)], 500, 10))


@pytest.mark.parametrize(
    ("values", "n", "p", "word"),
    [
        ([], 10, 3, "eigenvalues must be a list"),
        ([[1.0, 2.0]], 10, 3, "eigenvalues must be a list"),
        ([3.0, np.nan, 1.0], 10, 3, "finite"),
        ([3.0, -1.0, -2.0], 10, 3, "not negative"),
        ([1.0, 3.0, 2.0], 10, 3, "Sort"),
        ([3.0, 2.0], 10, 3, "n_components=None"),
        ([3.0, 2.0, 1.0, 1.0], 10, 3, "4 eigenvalues"),
        ([3.0, 2.0, 1.0], 1, 3, "two rows"),
    ],
)
def test_impossible_spectra_are_refused(values: Any, n: float, p: int, word: str) -> None:
    for rule in (gavish_donoho, tracy_widom_rank):
        with pytest.raises(ValueError, match=word):
            rule(values, n, p)


def test_impossible_arguments_are_refused() -> None:
    lam = [3.0, 2.0, 1.0]
    for fraction in (0.0, 1.0, -1.0, 90.0):
        with pytest.raises(ValueError, match="fraction"):
            variance_fraction(lam, fraction)
    with pytest.raises(ValueError, match="noise_variance"):
        gavish_donoho(lam, 10, 3, noise_variance=-1.0)
    with pytest.raises(ValueError, match="alpha"):
        tracy_widom_rank(lam, 10, 3, 5)
    with pytest.raises(ValueError, match="k=3"):
        noise_variance(lam, 10, 3, 3)
    with pytest.raises(ValueError, match="beta"):
        optimal_threshold(1.5)


@pytest.mark.parametrize("effective", [False, True])
def test_one_eigenvalue_has_nothing_to_be_tested_against(effective: bool) -> None:
    for n, p in ((30, 1), (2, 9)):
        choice = tracy_widom_rank([2.5], n, p, effective=effective)
        assert choice.n_components == 0
        assert "one eigenvalue" in choice.reason
        assert "λ0" not in choice.reason


@pytest.mark.parametrize("effective", [False, True])
def test_eigenvalues_of_zero_are_variance_used_up(effective: bool) -> None:
    choice = tracy_widom_rank([4.0, 0.0, 0.0], 30, 3, effective=effective)
    assert choice.n_components == 1
    assert choice.reason == "λ2 is 0: the 1 component before it holds all the variance."
    assert "hold all the variance" in broken_stick([4.0, 1.9, 0.0, 0.0]).reason
