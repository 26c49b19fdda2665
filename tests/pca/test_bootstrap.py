"""The bootstrap against a loop over repeated rows, known coverage, and the large-sample formulas."""

from functools import partial
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import orthogonal_procrustes
from scipy.stats import norm
from sklearn import config_context
from threadpoolctl import threadpool_limits

from gramian import PCA
from gramian.analysis import fit_incomplete
from gramian.pca import bootstrap as _replicates
from gramian.pca.bootstrap import Bootstrap, bootstrap, eigenvalue_errors, match_components, refit
from gramian.results.intervals import bootstrap_intervals
from oracles import Array, fix_signs, naive_pca, separated

REPLICATES = 40
PARTS = ["explained_variance", "explained_variance_ratio", "components", "loadings", "scores"]


def gaussian(n: int, deviations: Any, seed: int = 0) -> Array:
    spread = np.asarray(deviations, dtype=float)
    return np.random.default_rng(seed).normal(size=(n, len(spread))) * spread


def naive_order(V: Array, W: Array) -> Array:
    """The k of the rows of W, in the order and with the signs that bring them nearest to V, by trying all."""
    k = len(V)
    tries = [
        np.array(signs)[:, None] * W[list(chosen)]
        for chosen in permutations(range(len(W)), k)
        for signs in product([1, -1], repeat=k)
    ]
    return min(tries, key=lambda candidate: float(np.sum((candidate - V) ** 2)))


def naive_bootstrap(X: Array, k: int, align: str, scale: bool, seed: int, w: Array) -> dict[str, Array]:
    """All replicates, by repeating rows and calling NumPy's SVD."""
    model = naive_pca(X, w, scale)
    V = model.components[:k]
    out: dict[str, list[Array]] = {name: [] for name in PARTS}
    for child in np.random.SeedSequence(seed).spawn(REPLICATES):
        counts = np.random.default_rng(child).multinomial(round(w.sum()), w / w.sum())
        rows = np.repeat(X, counts, axis=0)
        fit = naive_pca(rows, scale=scale)
        A = fit.components.T * np.sqrt(fit.variances)
        if align == "order":
            C = naive_order(V, fit.components)
            L = C.T * np.sqrt([fit.variances[np.argmax(np.abs(fit.components @ row))] for row in C])
        else:
            C = orthogonal_procrustes(fit.components[:k].T, V.T)[0].T @ fit.components[:k]
            L = A[:, :k] @ orthogonal_procrustes(A[:, :k], V.T * np.sqrt(model.variances[:k]))[0]
        s = rows.std(axis=0, ddof=1) if scale else 1.0
        out["explained_variance"].append(fit.variances[:k])
        out["explained_variance_ratio"].append((fit.variances / fit.variances.sum())[:k])
        out["components"].append(C)
        out["loadings"].append(L)
        out["scores"].append((X - fit.mean) / s @ C.T)
    return {name: np.array(values) for name, values in out.items()}


@pytest.mark.parametrize("align", ["order", "rotation"])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_intervals_are_those_of_a_loop_over_repeated_rows(align: str, scale: bool, weighted: bool) -> None:
    X = separated(25, 4, seed=2)
    w = np.random.default_rng(1).uniform(0.2, 3, 25) if weighted else np.ones(25)
    pca = PCA(2, scale=scale, whiten=weighted).fit(X, sample_weight=w)
    found = bootstrap(pca, X, n_replicates=REPLICATES, align=align, sample_weight=w, random_state=7)
    expected = naive_bootstrap(X, 2, align, scale, 7, w)
    for name in PARTS:
        ours, theirs = getattr(found, name), expected[name]
        assert_allclose(ours.lower, np.quantile(theirs, 0.025, axis=0), atol=1e-10, err_msg=name)
        assert_allclose(ours.upper, np.quantile(theirs, 0.975, axis=0), atol=1e-10, err_msg=name)
        assert_allclose(ours.error, theirs.std(axis=0, ddof=1), atol=1e-10, err_msg=name)
        assert_allclose(ours.bias, theirs.mean(axis=0) - ours.estimate, atol=1e-10, err_msg=name)
    assert_allclose(found.variances, expected["explained_variance"], rtol=1e-10)
    assert_allclose(found.components.estimate, pca.components_, rtol=1e-12)
    assert_allclose(found.loadings.estimate, pca.loadings(), rtol=1e-12)


SHAPES = {
    "tall": separated(60, 5),
    "wide": separated(20, 30),
    "far": separated(60, 5) + 1e6,
    "steep": separated(60, 5) * 10.0 ** -np.arange(0, 10, 2),
    "indicator": np.column_stack([separated(60, 4), np.arange(60) < 3]),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("scale", [False, True])
def test_the_short_way_equals_the_fit(name: str, scale: bool) -> None:
    X = SHAPES[name]
    for seed in range(3):
        w = np.random.default_rng(seed).multinomial(len(X), np.full(len(X), 1 / len(X))).astype(float)
        ours, theirs = refit(X, w, 4, scale, 3), PCA(4, scale=scale, svd_solver="full").fit(X, sample_weight=w)
        assert_allclose(ours.variances[:3], theirs.explained_variance_[:3], rtol=1e-8)
        assert_allclose(ours.ratios[:3], theirs.explained_variance_ratio_[:3], rtol=1e-8)
        assert_allclose(fix_signs(ours.components[:3]), fix_signs(theirs.components_[:3]), atol=1e-7)
        assert_allclose(ours.mean, theirs.mean_, rtol=1e-12)
        if scale:
            assert ours.scale is not None
            assert_allclose(ours.scale, theirs.scale_, rtol=1e-9)


def test_a_column_constant_in_a_replicate_stays_out_of_it() -> None:
    X = SHAPES["indicator"]
    w = np.ones(60)
    w[:3] = 0
    fit = refit(X + 0.1, w, 4, True, 3)
    assert fit.scale is not None
    assert fit.scale[4] == 1.0
    assert_allclose(fit.components[:, 4], 0, atol=1e-14)
    assert_allclose(fit.ratios.sum(), 1.0)


def assert_same(one: Bootstrap, other: Bootstrap, atol: float) -> None:
    for name in PARTS:
        for field in ("estimate", "lower", "upper", "error", "bias"):
            assert_allclose(
                getattr(getattr(one, name), field), getattr(getattr(other, name), field), atol=atol, err_msg=name
            )
    assert_array_equal(one.swaps, other.swaps)


@pytest.mark.parametrize("kind", ["csr", "file", "float32", "pandas", "torch", "fit"])
@pytest.mark.parametrize("scale", [False, True])
def test_every_kind_of_input_gives_the_same_intervals(
    kind: str, scale: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = gaussian(50, [5, 3, 2, 1, 0.5])
    expected = bootstrap(PCA(2, scale=scale).fit(X), X, n_replicates=40, random_state=3)
    given_rows: Any = X
    if kind == "csr":
        given_rows = sparse.csr_array(X)
    elif kind == "file":
        given_rows = tmp_path / "x.npy"
        np.save(given_rows, X)
    elif kind == "float32":
        given_rows = X.astype(np.float32)
    elif kind == "fit":
        monkeypatch.setattr(_replicates, "NARROW", 0)
    elif kind == "pandas":
        given_rows = pytest.importorskip("pandas").DataFrame(X, columns=list("abcde"))
    else:
        given_rows = pytest.importorskip("torch").asarray(X)
    with config_context(working_memory=0.2):  # rows of the scores come in several blocks
        found = bootstrap(PCA(2, scale=scale).fit(given_rows), given_rows, n_replicates=40, random_state=3)
    assert_same(found, expected, 2e-5 if kind == "float32" else 1e-8)


def test_the_number_of_threads_changes_nothing() -> None:
    X = gaussian(80, [3, 2, 1, 1])
    pca = PCA(2).fit(X)
    with threadpool_limits(1):
        one = bootstrap(pca, X, n_replicates=150, random_state=1)
    with threadpool_limits(3):
        three = bootstrap(pca, X, n_replicates=150, random_state=1)
    assert_array_equal(one.variances, three.variances)
    assert_array_equal(one.components.lower, three.components.lower)
    assert_allclose(one.scores.lower, three.scores.lower, rtol=1e-12, atol=1e-14)  # type: ignore[union-attr]


def test_seeds() -> None:
    X = gaussian(40, [3, 2, 1])
    pca = PCA(1).fit(X)

    def variances(seed: Any) -> Array:
        return bootstrap(pca, X, n_replicates=40, scores=False, random_state=seed).variances

    assert_array_equal(variances(None), variances(0))
    assert_array_equal(variances(np.random.default_rng(5)), variances(np.random.default_rng(5)))
    assert_array_equal(variances(np.random.RandomState(5)), variances(np.random.RandomState(5)))
    assert np.any(variances(1) != variances(2))


@settings(max_examples=10)
@given(seed=st.integers(0, 100), shift=st.floats(-100, 100), factor=st.sampled_from([1e-3, 1.0, 1e4]))
def test_intervals_follow_rotation_translation_and_unit(seed: int, shift: float, factor: float) -> None:
    X = gaussian(40, [4, 2, 1], seed)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    moved = X @ turn * factor + shift
    pca, other = PCA(2).fit(X), PCA(2).fit(moved)
    one = bootstrap(pca, X, n_replicates=40, random_state=seed)
    two = bootstrap(other, moved, n_replicates=40, random_state=seed)
    assert_allclose(two.explained_variance.upper, one.explained_variance.upper * factor**2, rtol=1e-8)
    assert_allclose(two.explained_variance_ratio.lower, one.explained_variance_ratio.lower, rtol=1e-8)
    assert_array_equal(two.swaps, one.swaps)
    assert one.scores is not None
    assert two.scores is not None
    assert_allclose(two.scores.error, one.scores.error * factor, rtol=1e-6, atol=1e-9 * factor)


def test_coverage_of_the_largest_variance() -> None:
    held = []
    for seed in range(120):
        X = gaussian(60, [2, 1, 0.5], seed)
        found = bootstrap(PCA(1).fit(X), X, n_replicates=100, scores=False, random_state=seed, level=0.9)
        held.append(bool(found.explained_variance.covers([4.0])[0]))
    # percentile intervals of a variance fall short with few rows, to 0.84 in 800 samples; 120 spread by 0.033
    assert 0.84 - 3 * 0.033 <= np.mean(held) <= 0.84 + 3 * 0.033


def test_many_gaussian_rows_agree_with_anderson() -> None:
    X = gaussian(3000, [3, 2, 1])
    pca = PCA().fit(X)
    found, formula = bootstrap(pca, X, n_replicates=500, scores=False), eigenvalue_errors(pca)
    # 500 replicates know a standard error to 3 %, and the sample's own fourth moments to about as much
    assert_allclose(found.explained_variance.error, formula.explained_variance.error, rtol=0.12)
    off = ~np.eye(3, dtype=bool)  # to first order the leading entry does not move
    ours, theirs = found.components.error, formula.components.error
    assert_allclose(ours[off], theirs[off], rtol=0.15)


def test_frequencies_count_as_rows() -> None:
    X = gaussian(80, [3, 1, 1])
    w = np.full(80, 4.0)
    four = bootstrap(PCA(1).fit(X, sample_weight=w), X, sample_weight=w, n_replicates=400, scores=False)
    one = bootstrap(PCA(1).fit(X), X, n_replicates=400, scores=False)
    # four times the rows: half the standard error, known to 5 % from 400 replicates
    assert_allclose(four.explained_variance.error, one.explained_variance.error / 2, rtol=0.2)


def test_equal_variances_are_noted_and_rotation_keeps_the_plane() -> None:
    X = gaussian(400, [3, 3, 1, 1])
    pca = PCA(2).fit(X)
    order = bootstrap(pca, X, n_replicates=200, scores=False)
    rotation = bootstrap(pca, X, n_replicates=200, scores=False, align="rotation")
    assert order.swaps.min() > 0.05
    assert "component 1 changed places" in order.notes[0]
    assert "with component 2" in order.notes[0]
    assert order.components.error.max() > 4 * rotation.components.error.max()
    distinct = gaussian(400, [9, 3, 1, 1])
    quiet = bootstrap(PCA(2).fit(distinct), distinct, n_replicates=200, scores=False)
    assert_array_equal(quiet.swaps, 0)
    assert quiet.notes == ()


def test_a_swap_across_the_cut_is_matched() -> None:
    X = gaussian(300, [3, 1.02, 1, 0.1])
    found = bootstrap(PCA(2).fit(X), X, n_replicates=200, scores=False)
    assert found.swaps[0] == 0
    assert found.swaps[1] > 0.05
    assert "with one left out" in found.notes[0]


@given(seed=st.integers(0, 10_000), k=st.integers(1, 3), extra=st.integers(0, 1))
def test_matching_is_the_best_signed_permutation(seed: int, k: int, extra: int) -> None:
    rng = np.random.default_rng(seed)
    V, W = (np.linalg.qr(rng.normal(size=(5, 5)))[0] for _ in range(2))
    best, order = match_components(V[:k], W[: k + extra])
    assert_allclose(np.sum((best - V[:k]) ** 2), np.sum((naive_order(V[:k], W[: k + extra]) - V[:k]) ** 2), rtol=1e-10)
    assert len(set(order.tolist())) == k


def test_bias_corrected_intervals_by_their_definition() -> None:
    rng = np.random.default_rng(0)
    R, estimate = rng.gamma(2.0, size=(200, 6)), rng.gamma(2.0, size=6)
    estimate[5] = 1e9  # beyond all replicates
    found = bootstrap_intervals(estimate, R, 0.9, "bc")
    for j in range(5):
        z0 = norm.ppf(np.mean(R[:, j] < estimate[j]))
        ends = norm.cdf(2 * z0 + norm.ppf([0.05, 0.95]))
        assert_allclose([found.lower[j], found.upper[j]], np.quantile(R[:, j], ends), rtol=1e-10)
    assert np.quantile(R[:, 5], 0.99) < found.lower[5] <= found.upper[5] <= R[:, 5].max()


def test_bias_correction_moves_the_interval_of_an_inflated_variance_down() -> None:
    X = gaussian(30, np.ones(8))
    pca = PCA(1).fit(X)
    plain = bootstrap(pca, X, n_replicates=200, scores=False)
    corrected = bootstrap(pca, X, n_replicates=200, scores=False, method="bc")
    assert plain.explained_variance.bias[0] > 0
    assert corrected.explained_variance.lower[0] < plain.explained_variance.lower[0]


def test_progress_is_told_and_may_end_it() -> None:
    X = gaussian(30, [3, 1])
    pca, told = PCA(1).fit(X), []
    bootstrap(pca, X, n_replicates=250, scores=False, progress=lambda *x: told.append(x))
    assert told[-1] == (250, 250, "replicates")
    assert [done for done, *_ in told] == sorted({done for done, *_ in told})

    def stop(done: int, total: int, message: str) -> None:
        told.append((done, total))
        raise KeyboardInterrupt

    told.clear()
    with pytest.raises(KeyboardInterrupt):
        bootstrap(pca, X, n_replicates=250, progress=stop)
    assert len(told) == 1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n_replicates": 39}, "39 is too few.*40 or more"),
        ({"level": 1.0}, "level.*1.0"),
        ({"align": "none"}, "align must be one of"),
        ({"method": "bca"}, "method must be one of"),
        ({"sample_weight": np.ones(29)}, "shape"),
        ({"sample_weight": np.r_[-1.0, np.ones(29)]}, "row 1 has -1"),
        ({"sample_weight": np.full(30, 2.0)}, "60 rows.*fitted on 30"),
    ],
)
def test_impossible_requests_are_refused(options: dict[str, Any], word: str) -> None:
    X = gaussian(30, [3, 1, 1])
    with pytest.raises(ValueError, match=word):
        bootstrap(PCA(2).fit(X), X, **options)


def test_components_without_variance_are_refused() -> None:
    X = gaussian(30, [3, 1])
    X = np.column_stack([X, X.sum(axis=1)])
    with pytest.raises(ValueError, match=r"PCA\(n_components=2\)"):
        bootstrap(PCA().fit(X), X)
    few = separated(6, 10)
    with pytest.raises(ValueError, match=r"Replicate .* rank "):
        bootstrap(PCA(5).fit(few), few)


def test_what_does_not_fit_the_working_memory_is_refused() -> None:
    X = gaussian(2000, [3, 1, 1])
    pca = PCA(2).fit(X)
    with config_context(working_memory=0.1):
        with pytest.raises(ValueError, match="fewer replicates"):
            bootstrap(pca, X, n_replicates=2000)
        with pytest.raises(ValueError, match="scores=False"):
            bootstrap(pca, X, n_replicates=40)
        assert bootstrap(pca, X, n_replicates=40, scores=False).scores is None


def test_results_read_well_and_make_frames() -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(gaussian(50, [3, 1, 1]), columns=["a", "b", "c"])
    found = bootstrap(PCA(2).fit(X), X, n_replicates=60, method="bc")
    assert "60 replicates, 95% bc intervals, order" in repr(found)
    assert "component 2" in repr(found)
    assert found.n_replicates == 60
    frame = pandas.DataFrame(found.table())
    assert frame["variance_lower"].tolist() == found.explained_variance.lower.tolist()
    for table, values in ((found.loadings_table(), found.loadings.estimate.T), (found.components_table(), None)):
        lines = pandas.DataFrame(table)
        assert lines["variable"].tolist() == ["a", "b", "c"] * 2
        assert lines["component"].tolist() == [0, 0, 0, 1, 1, 1]
        assert_array_equal(lines["estimate"], (found.components.estimate if values is None else values).ravel())
    assert [line.split("  ")[1] for line in repr(found.loadings).splitlines()[2:5]] == ["a, pca0", "a, pca1", "b, pca0"]
    assert repr(found.explained_variance).splitlines()[3].split()[0] == "pca1"
    assert "  0, pca1" in repr(found.scores)
    assert "and 90 more" in repr(found.scores)


def test_tensors_take_the_short_way(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X = torch.asarray(gaussian(50, [5, 3, 2, 1]))
    pca = PCA(2).fit(X)
    monkeypatch.setattr(PCA, "fit", lambda *arguments, **options: pytest.fail("a replicate was fitted the long way"))
    assert bootstrap(pca, X, n_replicates=40).n_replicates == 40


def with_gaps(n: int, seed: int = 0) -> Array:
    X = gaussian(n, [4, 2, 0.5, 0.5, 0.5], seed)
    X[np.random.default_rng(seed + 1).uniform(size=X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("method", ["likelihood", "regularised"])
@pytest.mark.parametrize("scale", [False, True])
def test_rows_with_missing_cells_are_resampled_and_fitted_as_the_model_was(method: str, scale: bool) -> None:
    X = with_gaps(40)
    pca = fit_incomplete(PCA(2, scale=scale, whiten=True), X, method=method)
    found = bootstrap(pca, X, n_replicates=40, scores=False, random_state=5)
    for b in (0, 17):
        child = np.random.SeedSequence(5).spawn(40)[b]
        w = np.random.default_rng(child).multinomial(40, np.full(40, 1 / 40))
        other = fit_incomplete(PCA(2, scale=scale), np.repeat(X, w, axis=0), method=method)
        # both stop at the same tolerance, on their way from sums in another order
        assert_allclose(found.variances[b], other.explained_variance_, rtol=1e-4)
    assert_allclose(found.explained_variance.lower, np.quantile(found.variances, 0.025, axis=0), rtol=1e-12)
    assert_allclose(found.loadings.estimate, pca.loadings(), rtol=1e-12)
    assert found.scores is None


def test_directions_are_known_less_well_where_cells_are_missing() -> None:
    whole = gaussian(80, [4, 2, 0.5, 0.5, 0.5])
    holes = whole.copy()
    holes[np.random.default_rng(1).uniform(size=whole.shape) < 0.25] = np.nan
    known = bootstrap(PCA(2).fit(whole), whole, n_replicates=60, scores=False)
    guessed = bootstrap(PCA(2).fit(holes), holes, n_replicates=60, scores=False)
    # with a quarter of the cells unseen; 60 replicates know a standard error to 9 %
    assert np.mean(guessed.components.error) > 1.3 * np.mean(known.components.error)


def test_what_missing_cells_do_not_allow_is_refused() -> None:
    X = with_gaps(40)
    pca = PCA(2).fit(X)
    with pytest.raises(ValueError, match="scores=False"):
        bootstrap(pca, X)
    empty = X.copy()
    empty[2:, 4] = np.nan
    empty[:2, 4] = [1.0, 2.0]
    with pytest.raises(ValueError, match="Replicate "):
        bootstrap(PCA(2).fit(empty), empty, n_replicates=40, scores=False)


def test_fits_that_did_not_converge_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    X = with_gaps(30)
    pca = PCA(2).fit(X)
    monkeypatch.setattr(_replicates, "fit_incomplete", partial(fit_incomplete, max_iter=1))  # stops too early
    found = bootstrap(pca, X, n_replicates=40, scores=False)
    assert "40 of 40 fits did not converge" in found.notes[-1]
