"""What the noise is like, the rules that allow for it, and the number that follows."""

from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from bench.rank_rules import add_components, draw_noise
from numpy.typing import NDArray

from gramian import PCA, rank_advice
from gramian import open as open_source
from gramian.analysis import bi_cross_validate, deflated_analysis, edge_differences, screenot
from gramian.inputs.checks import check_seed
from gramian.pca.noise import compare_runs, correlate_neighbours, diagnose_noise, find_runs
from gramian.pca.rank import CentredRows, fit_whole, optimal_threshold, summarize_spectrum

Array = NDArray[np.float64]
NOISES = ("white", "mild", "t4", "unlike", "ar")


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("shape", [(300, 40), (80, 120)])
def test_components_of_four_times_the_edge_are_counted_under_every_noise(kind: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    N = draw_noise(kind, *shape, rng)
    assert rank_advice(N).consensus == 0
    advice = rank_advice(add_components(N, 4.0, rng))
    assert advice.consensus == 3
    weak = rank_advice(add_components(N, 1.5, rng)).interval
    assert weak is not None
    assert weak[0] <= 3 <= weak[1]


@pytest.mark.parametrize(("kind", "word"), [("ar", "neighbouring columns"), ("t4", "tails"), ("unlike", "unlike")])
def test_the_noise_is_named(kind: str, word: str) -> None:
    rng = np.random.default_rng(5)
    advice = rank_advice(add_components(draw_noise(kind, 400, 30, rng), 4.0, rng))
    assert advice.noise is not None
    assert word in advice.noise.describe()
    assert word in advice.reason
    assert advice.noise.correlated == (kind == "ar")


def test_white_noise_is_called_white_and_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    found = [rank_advice(draw_noise("white", 120, 25, rng)).noise for _ in range(20)]
    assert sum(not (noise is not None and noise.white) for noise in found) <= 1


def test_rules_that_take_the_noise_for_independent_do_not_count_where_it_is_not() -> None:
    advice = rank_advice(draw_noise("ar", 400, 60, np.random.default_rng(1)))
    said = dict(zip(advice.rules, advice.n_components, strict=True))
    assert said["tracy-widom"] is not None
    assert said["tracy-widom"] > 5
    assert advice.weights["tracy-widom"] == advice.weights["sign-flip"] == advice.weights["cv"] == 0
    assert advice.weights["edge-differences"] > 0
    assert "correlated" in advice.reason.split(".")[0]


def test_order_in_time_is_kept_by_shifts() -> None:
    rng = np.random.default_rng(2)
    N = draw_noise("ar", 30, 500, rng).T.copy()  # thirty series
    noise = diagnose_noise(fit_whole(PCA(), open_source(N), None), open_source(N))
    assert noise.rows is not None
    assert noise.columns is None
    assert rank_advice(N).consensus == 0
    assert rank_advice(add_components(N, 4.0, rng)).consensus == 3


def test_files_are_judged_by_their_covariance(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    N = add_components(draw_noise("ar", 400, 40, rng), 4.0, rng)
    np.save(tmp_path / "x.npy", N)
    advice = rank_advice(tmp_path / "x.npy")
    assert advice.noise is not None
    assert advice.noise.columns is not None
    assert advice.consensus == 3


def test_a_draw_keeps_the_variance_of_every_column() -> None:
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 12)) * np.geomspace(0.1, 10, 12)
    X -= X.mean(axis=0)
    rows = CentredRows.decompose(X)
    np.testing.assert_allclose(rows.variances, np.linalg.eigvalsh(np.cov(X.T))[::-1], rtol=1e-9)
    for kind in ("signs", "rows", "columns"):
        draw, _ = rows.null(0, kind)
        drawn = np.array([draw(np.random.default_rng(i))[0] for i in range(200)])
        # the largest eigenvalue is little more than the variance of the last column, which every draw has
        assert drawn.mean() == pytest.approx(X[:, -1].var(ddof=1), rel=0.15)


def test_what_is_left_has_the_variance_of_the_noise() -> None:
    rng = np.random.default_rng(7)
    X = 20 * rng.normal(size=(500, 2)) @ rng.normal(size=(2, 10)) + rng.normal(size=(500, 10))
    X -= X.mean(axis=0)
    left = CentredRows.decompose(X).residual(2)
    assert np.var(left) == pytest.approx(1.0, rel=0.05)
    assert np.ptp(np.var(left, axis=0)) < 0.6


def test_the_level_of_the_flips_is_one_in_a_hundred() -> None:
    rng = np.random.default_rng(8)
    found = [deflated_analysis(PCA(), rng.normal(size=(40, 15))).n_components for _ in range(150)]
    assert np.mean(np.array(found) > 0) < 0.06
    wide = [deflated_analysis(PCA(), rng.normal(size=(20, 90))).n_components for _ in range(60)]
    assert np.mean(np.array(wide) > 0) < 0.09


def test_an_equal_seed_is_an_equal_answer_and_the_unit_does_not_matter() -> None:
    rng = np.random.default_rng(9)
    X = add_components(draw_noise("unlike", 100, 20, rng), 4.0, rng)
    first, again, other = (deflated_analysis(PCA(), Z) for Z in (X, X, 2.0**40 * X))
    np.testing.assert_array_equal(first.thresholds, again.thresholds)
    np.testing.assert_allclose(other.thresholds, 2.0**80 * first.thresholds)
    assert first.n_components == other.n_components == 3
    assert first.at_most >= first.n_components


def test_weights_are_rows_repeated() -> None:
    rng = np.random.default_rng(10)
    X, w = rng.normal(size=(60, 8)), rng.integers(0, 3, 60)
    for rule in (deflated_analysis, bi_cross_validate):
        ours, theirs = rule(PCA(), X, sample_weight=w), rule(PCA(), np.repeat(X, w, axis=0))
        np.testing.assert_allclose(ours.thresholds, theirs.thresholds)
    with pytest.raises(ValueError, match="row 1"):
        deflated_analysis(PCA(), X, sample_weight=np.full(60, 0.5))
    assert deflated_analysis(PCA(), X, null="normal", sample_weight=np.full(60, 0.5)).n_components == 0


def test_wrong_arguments() -> None:
    X = np.random.default_rng(0).normal(size=(30, 6))
    with pytest.raises(ValueError, match="null"):
        deflated_analysis(PCA(), X, null="shuffle")
    with pytest.raises(ValueError, match="n_draws"):
        deflated_analysis(PCA(), X, n_draws=2)
    with pytest.raises(ValueError, match="max_components"):
        bi_cross_validate(PCA(), X, max_components=0)
    with pytest.raises(ValueError, match="columns"):
        bi_cross_validate(PCA(), X[:, :2])
    with pytest.raises(ValueError, match="most"):
        screenot(np.arange(6.0, 0, -1), 30, 6, most=3)


def test_bi_cross_validation_as_it_is_written_down() -> None:
    """Errors of one way of halving, block by block, with numpy's pseudo-inverse."""
    rng = np.random.default_rng(11)
    X = 3 * rng.normal(size=(21, 2)) @ rng.normal(size=(2, 9)) + rng.normal(size=(21, 9))
    choice = bi_cross_validate(PCA(), X, random_state=5)
    Z, draws, errors = X - X.mean(axis=0), np.random.default_rng(check_seed(5)), np.zeros(4)
    for _ in range(4):
        top, left = np.isin(np.arange(21), draws.permutation(21)[:10]), np.isin(np.arange(9), draws.permutation(9)[:4])
        for out in (top, ~top):
            for held in (left, ~left):
                mean = Z[~out].mean(axis=0)
                A, B, C, D = ((Z - mean)[np.ix_(i, j)] for i in (out, ~out) for j in (held, ~held))
                U, s, Vt = np.linalg.svd(D, full_matrices=False)
                for k in range(4):
                    low = (U[:, :k] * s[:k]) @ Vt[:k]
                    errors[k] += np.sum((A - B @ np.linalg.pinv(low, rcond=1e-10) @ C) ** 2)
    np.testing.assert_allclose(choice.values, errors[1:] / errors[0], rtol=1e-8)
    assert choice.n_components == int(np.argmin(errors)) == 2


def test_screenot_gives_the_threshold_of_white_noise() -> None:
    """Of 1,000 × 500 cells of white noise, where the optimal hard threshold is known."""
    X = np.random.default_rng(12).normal(size=(1000, 500))
    choice = screenot(np.linalg.eigvalsh(X.T @ X / 999)[::-1], 1000, 500)
    assert np.sqrt(choice.thresholds[0] * 999 / 1000) == pytest.approx(optimal_threshold(0.5), rel=0.02)
    assert choice.n_components == 0


@pytest.mark.parametrize("rule", [edge_differences, screenot])
def test_spectra_with_nothing_behind_the_components(rule) -> None:  # type: ignore[no-untyped-def]
    lam = np.concatenate([[9.0, 8.0, 7.0], np.zeros(17)])
    assert rule(lam, 100, 20).n_components == 3
    assert rule(np.zeros(20), 100, 20).n_components == 0
    assert rule([3.0, 1.0], 100, 2).n_components == 0


def test_the_largest_eigenvalue_is_the_same_by_both_ways() -> None:
    X = np.random.default_rng(13).normal(size=(500, 450))
    S = X.T @ X
    largest, ratio = summarize_spectrum(S)
    lam = np.linalg.eigvalsh(S)
    assert largest == pytest.approx(lam[-1], rel=1e-5)
    assert ratio == pytest.approx(np.sum(lam**2) / lam.sum() ** 2, rel=1e-10)


def test_neighbours_are_those_of_the_order_alone() -> None:
    rng = np.random.default_rng(14)
    common = rng.normal(size=200)
    R = rng.normal(size=(40, 200)) + 2 * common  # all correlated with all: no order
    assert correlate_neighbours(R, rng) is None
    assert correlate_neighbours(np.zeros((10, 5)), rng) is None


@pytest.mark.parametrize(("n", "p"), [(400, 45), (800, 60)])
def test_groups_that_lie_sorted_are_counted_as_well(n: int, p: int) -> None:
    rng = np.random.default_rng(2)
    X = 8 * rng.normal(size=(40, p))[np.sort(rng.integers(0, 40, n))] + rng.normal(size=(n, p))
    assert rank_advice(X).consensus == 39


def ordered(kind: str, n: int, p: int, rng: np.random.Generator) -> Array:
    """Rows whose order is smooth: autoregression, a random walk, waves with noise, a trend with noise, sorted rows."""
    E = rng.normal(size=(n, p))
    if kind == "walk":
        return np.asarray(np.cumsum(E, axis=0))
    if kind == "waves":
        return np.asarray(3 * np.sin(np.arange(n)[:, None] * rng.uniform(0.005, 0.1, p)) + E)
    if kind == "trend":
        return np.asarray(np.arange(n)[:, None] / n * rng.normal(size=p) * 5 + E)
    if kind == "sorted":
        return np.asarray(E[np.argsort(E[:, 0])])
    for i in range(1, n):
        E[i] = float(kind) * E[i - 1] + np.sqrt(1 - float(kind) ** 2) * E[i]
    return E


@pytest.mark.parametrize("kind", ["0.3", "0.5", "0.8", "0.95", "walk", "waves", "trend", "sorted"])
def test_smooth_order_is_not_taken_for_groups(kind: str) -> None:
    shapes = [(200, 5), (150, 2), (400, 20)]
    found = [compare_runs(ordered(kind, *shape, np.random.default_rng(i))) for i in range(4) for shape in shapes]
    assert found == [None] * 12


@pytest.mark.parametrize(("groups", "per", "p", "spread"), [(40, 25, 20, 6.0), (40, 25, 20, 1.0), (40, 25, 15, 6.0)])
def test_groups_in_all_columns_are_counted_where_they_are_in_order(
    groups: int, per: int, p: int, spread: float
) -> None:
    rng = np.random.default_rng(5)
    X = np.repeat(spread * rng.normal(size=(groups, p)), per, axis=0) + rng.normal(size=(groups * per, p))
    advice = rank_advice(X)
    assert advice.consensus == p
    assert advice.interval == (p, p)
    assert f"{groups} runs of like rows, whose means differ in all {p} directions" in advice.reason
    assert "correlated" not in advice.explain.split("\n")[0]
    assert f"runs says {p}" not in advice.explain
    assert "parallel says" in advice.explain


def test_noise_within_runs_may_have_any_covariance() -> None:
    rng = np.random.default_rng(3)
    mix = rng.normal(size=(10, 10))
    centres = 3 * rng.normal(size=(12, 4)) @ rng.normal(size=(4, 10))
    X = np.repeat(centres, 30, axis=0) + rng.normal(size=(360, 10)) @ mix
    labels = find_runs(X)
    assert labels is not None
    np.testing.assert_array_equal(labels, np.repeat(np.arange(12), 30))
    choice = compare_runs(X)
    assert choice is not None
    assert choice.n_components == 4
    # Bartlett's statistic with scipy's eigenvalues of W⁻¹B
    W = sum(
        (X[labels == g] - X[labels == g].mean(axis=0)).T @ (X[labels == g] - X[labels == g].mean(axis=0))
        for g in range(12)
    )
    T = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    theta = np.sort(scipy.linalg.eigh(T - W, W, eigvals_only=True))[::-1]
    expected = [(360 - 1 - 11) * np.log1p(theta[k:]).sum() for k in range(10)]
    np.testing.assert_allclose(choice.values, expected, rtol=1e-6)
    np.testing.assert_allclose(
        choice.thresholds[:5], scipy.stats.chi2.isf(0.01, [(10 - k) * (11 - k) for k in range(5)])
    )


def test_runs_in_a_shuffled_order_are_none() -> None:
    rng = np.random.default_rng(4)
    X = np.repeat(6 * rng.normal(size=(40, 20)), 25, axis=0) + rng.normal(size=(1000, 20))
    assert compare_runs(rng.permutation(X)) is None
    constant = X.copy()
    constant[:, 3] = 1.0
    assert compare_runs(constant) is None
