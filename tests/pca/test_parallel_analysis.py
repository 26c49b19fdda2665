"""Parallel analysis against naive twins of its null spectra, and on data of known rank."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import sparse

from gramian import PCA
from gramian import open as open_source
from gramian.pca.rank import DATA_RULES, fit_whole, gaussian_null, parallel_analysis, permutation_null
from oracles import naive_pca, sparse_rows

Array = NDArray[np.float64]


def spiked(n: int, p: int, strengths: list[float], seed: Any) -> Array:
    X = np.random.default_rng(seed).standard_normal((n, p))
    X[:, : len(strengths)] *= np.sqrt(1 + np.array(strengths) * np.sqrt(p / n))
    return np.asarray(X @ np.linalg.qr(np.random.default_rng(1).standard_normal((p, p)))[0])


def mean_draw(null: Any, count: int = 300) -> Array:
    draw, _ = null
    return np.mean([draw(np.random.default_rng([3, i])) for i in range(count)], axis=0)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(60, 8), (9, 15)])
def test_gaussian_draws_have_the_spectrum_of_normal_columns(shape: tuple[int, int], scale: bool) -> None:
    X = np.random.default_rng(0).standard_normal(shape) * np.linspace(1, 4, shape[1])
    deviations = X.std(axis=0, ddof=1)
    rng = np.random.default_rng(1)
    naive = [naive_pca(rng.standard_normal(shape) * deviations, scale=scale).variances for _ in range(300)]
    size = min(shape[0] - 1, shape[1])
    ours = mean_draw(gaussian_null(fit_whole(PCA(scale=scale), open_source(X), None)))[:size]
    errors = np.std(naive, axis=0)[:size] * np.sqrt(2 / 300)
    assert np.all(np.abs(ours - np.mean(naive, axis=0)[:size]) < 5 * errors + 1e-9)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(30, 6), (8, 12)])
@pytest.mark.parametrize("kind", ["dense", "sparse", "far"])
def test_permuted_draws_have_the_spectrum_of_permuted_columns(kind: str, shape: tuple[int, int], scale: bool) -> None:
    X = sparse_rows(*shape, 0.5).toarray() + 1e6 * (kind == "far")
    rng = np.random.default_rng(1)
    naive = [naive_pca(rng.permuted(X, axis=0), scale=scale).variances for _ in range(300)]
    size = min(shape[0] - 1, shape[1])
    source = open_source(sparse.csr_array(X) if kind == "sparse" else X)
    ours = mean_draw(permutation_null(source, fit_whole(PCA(scale=scale), source, None), None))[:size]
    errors = np.std(naive, axis=0)[:size] * np.sqrt(2 / 300)
    assert np.all(np.abs(ours - np.mean(naive, axis=0)[:size]) < 5 * errors + 1e-7)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_permutation_keeps_the_total_variance(kind: str) -> None:
    X = sparse_rows(25, 7, 0.6)
    source = open_source(X.toarray() if kind == "dense" else X)
    whole = fit_whole(PCA(), source, None)
    draw, _ = permutation_null(source, whole, None)
    assert draw(np.random.default_rng(0)).sum() == pytest.approx(whole.variances.sum(), rel=1e-10)


@pytest.mark.parametrize("null", ["permutation", "gaussian"])
@pytest.mark.parametrize(("n", "p"), [(150, 10), (50, 50), (30, 80)])
def test_known_rank_is_found(null: str, n: int, p: int) -> None:
    found = [parallel_analysis(PCA(), spiked(n, p, [6.0, 5.0], i), null=null, n_draws=40) for i in range(10)]
    assert np.mean([choice.n_components == 2 for choice in found]) >= 0.8
    assert_allclose(found[0].values, naive_pca(spiked(n, p, [6.0, 5.0], 0)).variances[: min(n - 1, p)], rtol=1e-9)


@pytest.mark.parametrize("null", ["permutation", "gaussian"])
def test_noise_has_no_components(null: str) -> None:
    # unequal columns: allowed for by both, without scaling
    widths = np.linspace(1, 5, 10)
    data = [np.random.default_rng(i).standard_normal((100, 10)) * widths for i in range(30)]
    alarms = np.mean([parallel_analysis(PCA(), X, null=null, n_draws=40).n_components > 0 for X in data])
    assert alarms <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 30)


def test_permutation_holds_for_heavy_tails() -> None:
    data = [np.random.default_rng(i).standard_t(2, (60, 15)) for i in range(40)]
    alarms = np.mean([parallel_analysis(PCA(), X, n_draws=40).n_components > 0 for X in data])
    assert alarms <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 40)


@pytest.mark.parametrize("null", ["permutation", "gaussian"])
@pytest.mark.parametrize("scale", [False, True])
def test_weights_are_repetition(null: str, scale: bool) -> None:
    X = spiked(40, 5, [20.0], 3)
    w = np.random.default_rng(0).integers(0, 4, 40)
    one = parallel_analysis(PCA(scale=scale), X, null=null, n_draws=20, sample_weight=w)
    other = parallel_analysis(PCA(scale=scale), np.repeat(X, w, axis=0), null=null, n_draws=20)
    assert_allclose(one.values, other.values, rtol=1e-9)
    assert_allclose(one.thresholds, other.thresholds, rtol=1e-9)


def test_fractional_weights() -> None:
    X, w = spiked(40, 5, [20.0], 3), np.full(40, 1.5)
    with pytest.raises(ValueError, match=r"row 1.*weight 1\.5"):
        parallel_analysis(PCA(), X, sample_weight=w)
    found = parallel_analysis(PCA(), X, null="gaussian", sample_weight=w)
    assert found.n_components == 1
    # more rows, less noise: the limit on λ₁ lies nearer to the column variances than with 40 rows
    few = parallel_analysis(PCA(), X, null="gaussian")
    assert found.thresholds[0] / found.values.sum() < few.thresholds[0] / few.values.sum()


def test_answers_repeat_and_follow_the_seed() -> None:
    X = spiked(50, 8, [5.0], 0)
    one, two = (parallel_analysis(PCA(), X, n_draws=20) for _ in range(2))
    other = parallel_analysis(PCA(), X, n_draws=20, random_state=5)
    assert_allclose(one.thresholds, two.thresholds, rtol=0)
    assert not np.array_equal(one.thresholds, other.thresholds)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X = spiked(50, 8, [5.0], 0)
    together = parallel_analysis(PCA(), X, n_draws=20)
    monkeypatch.setattr("gramian.pca.rank.memory_budget", lambda: 0)
    alone = parallel_analysis(PCA(), X, n_draws=20)
    assert_allclose(together.thresholds, alone.thresholds, rtol=1e-12)


def test_progress_counts_every_draw() -> None:
    seen: list[tuple[int, int]] = []
    parallel_analysis(
        PCA(), spiked(30, 4, [9.0], 0), n_draws=20, progress=lambda done, total, _: seen.append((done, total))
    )
    assert seen == [(i, 20) for i in range(1, 21)]


def test_whitening_solver_and_components_of_the_model_do_not_matter() -> None:
    X = spiked(50, 8, [5.0], 0)
    plain = parallel_analysis(PCA(), X, n_draws=20)
    for other in (PCA(2, whiten=True), PCA(0.9), PCA(3, svd_solver="krylov"), PCA("mle").fit(X)):
        assert_allclose(parallel_analysis(other, X, n_draws=20).thresholds, plain.thresholds, rtol=1e-12)


def test_files(tmp_path: Path) -> None:
    X = spiked(60, 6, [9.0], 0)
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match=r"'gaussian'.*tracy-widom"):
        parallel_analysis(PCA(), tmp_path / "x.npy")
    ours = parallel_analysis(PCA(), tmp_path / "x.npy", null="gaussian")
    assert ours.n_components == 1
    assert_allclose(ours.thresholds, parallel_analysis(PCA(), X, null="gaussian").thresholds, rtol=1e-9)


def test_tensors(torch: Any) -> None:
    X = spiked(60, 6, [9.0], 0)
    assert_allclose(
        parallel_analysis(PCA(), torch.from_numpy(X)).thresholds, parallel_analysis(PCA(), X).thresholds, rtol=1e-9
    )


def test_constant_columns_change_nothing_when_scaled() -> None:
    X = spiked(60, 6, [9.0], 0)
    wide = np.insert(X, 2, 7.0, axis=1)
    found = [parallel_analysis(PCA(scale=True), wide, null=null).n_components for null in ("permutation", "gaussian")]
    assert found == [1, 1]


def test_missing_cells_are_refused() -> None:
    X = spiked(30, 4, [9.0], 0)
    X[3, 1] = np.nan
    for null in ("permutation", "gaussian"):
        with pytest.raises(ValueError, match=r"row 4.*NaN.*column 2"):
            parallel_analysis(PCA(), X, null=null)


def test_equal_rows() -> None:
    with pytest.warns(UserWarning, match="equal"):
        assert parallel_analysis(PCA(), np.ones((10, 3))).n_components == 0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"null": "bootstrap"}, "permutation"),
        ({"n_draws": 10}, "at least 20"),
        ({"n_draws": 40, "quantile": 0.99}, "at least 100"),
        ({"n_draws": 20.5}, "n_draws"),
        ({"quantile": 95}, "quantile"),
    ],
)
def test_impossible_arguments_are_refused(arguments: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        parallel_analysis(PCA(), spiked(30, 4, [9.0], 0), **arguments)


def test_rules_by_name() -> None:
    X = spiked(100, 6, [30.0], 0)
    found = {name: rule(PCA(), X, np.ones(100)) for name, rule in DATA_RULES.items()}
    assert {name: choice.n_components for name, choice in found.items()} == {
        "bi-cv": 1,
        "cv": 1,
        "parallel": 1,
        "parallel-gaussian": 1,
        "sign-flip": 1,
    }
    assert all(choice.rule == name for name, choice in found.items())


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize(("null", "word"), [("permutation", "itself permuted"), ("gaussian", "itself drawn anew")])
def test_one_column_cannot_be_told_from_itself(null: str, word: str, scale: bool) -> None:
    x = np.random.default_rng(0).gamma(2.0, size=(80, 1))
    for X in (x, np.column_stack([np.full(80, 3.0), x])):
        choice = parallel_analysis(PCA(scale=scale), X, null=null)
        assert choice.n_components == 0
        assert word in choice.reason


def test_an_eigenvalue_equal_up_to_rounding_does_not_exceed() -> None:
    # two rows differ by one vector, of which a permutation turns entries round: its length stays
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((2, 7))
        choice = parallel_analysis(PCA(), X)
        assert_allclose(choice.values, choice.thresholds, rtol=1e-12)
        assert choice.n_components == 0


def test_where_the_variance_is_used_up_that_is_the_reason() -> None:
    rng = np.random.default_rng(0)
    strong = np.column_stack([9 * rng.standard_normal((60, 2)), np.zeros((60, 3))])
    strong[:, 2:4] = strong[:, :2]
    choice = parallel_analysis(PCA(), strong)
    assert choice.n_components == 2
    assert choice.reason == "λ3 is 0: the 2 components before it hold all the variance."


def test_the_rule_of_a_fit_is_named_as_the_fit_does(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", spiked(60, 6, [9.0], 0))
    with pytest.raises(ValueError, match=r"'parallel' .*'parallel-gaussian'"):
        PCA("parallel").fit(tmp_path / "x.npy")
    with pytest.raises(ValueError, match=r"'parallel'.*row 1.*0\.5.*'parallel-gaussian'"):
        PCA("parallel").fit(spiked(60, 6, [9.0], 0), sample_weight=np.full(60, 0.5))
