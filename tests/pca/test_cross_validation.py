"""Cross-validation against its definition: least squares on the other cells of a held-out row."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import sparse

from gramian import PCA, NumericalWarning
from gramian.pca.rank import cross_validate_rank, press_by_components
from oracles import sparse_rows, with_spectrum

Array = NDArray[np.float64]


def naive_press(D: Array, weights: Array, V: Array) -> Array:
    """Predict each cell from the others of its row: regress them on V without row j, then put row j in."""
    out = [float(weights @ np.sum(D**2, axis=1))]
    for k in range(1, len(V) + 1):
        P, total = V[:k].T, 0.0
        for x, w in zip(D, weights, strict=True):
            for j in range(D.shape[1]):
                rest = np.arange(D.shape[1]) != j
                z = np.linalg.lstsq(P[rest], x[rest], rcond=None)[0]
                total += w * (x[j] - P[j] @ z) ** 2
        out.append(total)
    return np.array(out)


def naive_cross_validation(X: Array, folds: Array, most: int, scale: bool) -> Array:
    total = np.zeros(most + 1)
    for f in np.unique(folds):
        train, held = X[folds != f], X[folds == f]
        mean, spread = train.mean(axis=0), train.std(axis=0, ddof=1) if scale else 1.0
        V = np.linalg.svd((train - mean) / spread, full_matrices=False)[2][:most]
        total += naive_press((held - mean) / spread, np.ones(len(held)), V)
    return total


def dealt(n: int, n_folds: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).permutation(np.arange(n) % n_folds)


def signal(n: int, p: int, k: int, noise: float, seed: int = 0) -> Array:
    """k dense components of equal strength over noise."""
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((p, k)))[0]
    return np.asarray(rng.standard_normal((n, k)) @ V.T * 3 + noise * rng.standard_normal((n, p)))


def repeated(n: int, k: int, times: int) -> Array:
    """k components of falling strength, each seen in so many columns, and a little noise."""
    rng = np.random.default_rng(0)
    latent = rng.standard_normal((n, k)) * np.geomspace(10, 1, k)
    return np.asarray(np.repeat(latent, times, axis=1) + 0.01 * rng.standard_normal((n, times * k)))


@given(st.integers(0, 10_000), st.integers(2, 7), st.data())
def test_the_identity_is_least_squares_on_the_other_cells(seed: int, p: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, p - 1))
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((p, k)))[0].T
    D, w = rng.standard_normal((3, p)), rng.uniform(0, 3, 3)
    free = 1 - np.cumsum(V**2, axis=0).max(axis=1)
    ours, theirs = press_by_components(D, w, V), naive_press(D, w, V)
    good = np.r_[True, free > 1e-3]  # elsewhere the small systems lose digits
    assert_allclose(ours[good], theirs[good], rtol=1e-8)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shape", [(24, 6), (10, 12)])
def test_the_whole_procedure_written_out(shape: tuple[int, int], scale: bool) -> None:
    X = signal(*shape, 2, 0.7) + 5
    most = min(4, shape[1] - 1)
    ours = cross_validate_rank(PCA(scale=scale), X, n_folds=4, max_components=most)
    theirs = naive_cross_validation(X, dealt(shape[0], 4), most, scale)
    assert_allclose(ours.press, theirs, rtol=1e-8)
    assert ours.n_components == np.argmin(theirs)


@pytest.mark.parametrize(("n", "p"), [(200, 12), (60, 60), (40, 90)])
@pytest.mark.parametrize("k", [1, 3])
def test_known_rank_is_found(n: int, p: int, k: int) -> None:
    found = [cross_validate_rank(PCA(), signal(n, p, k, 0.4, i), max_components=8).n_components for i in range(10)]
    assert np.mean(np.array(found) == k) >= 0.8


def test_noise_is_best_predicted_by_its_mean() -> None:
    found = [cross_validate_rank(PCA(), np.random.default_rng(i).standard_normal((80, 10))) for i in range(20)]
    assert np.mean([choice.n_components == 0 for choice in found]) >= 0.95
    assert "mean" in found[0].reason


def test_leaving_out_rows_alone_would_never_stop() -> None:
    # why cells are left out too: the residual of a held-out row only falls
    X = signal(60, 8, 2, 0.5)
    V = np.linalg.svd(X[:40] - X[:40].mean(axis=0), full_matrices=False)[2]
    D = X[40:] - X[:40].mean(axis=0)
    rowwise = [np.sum((D - D @ V[:k].T @ V[:k]) ** 2) for k in range(8)]
    press = press_by_components(D, np.ones(20), V[:7])
    assert np.all(np.diff(rowwise) < 0)
    assert np.argmin(press) == 2


def test_exact_rank_is_the_smallest_that_predicts_all() -> None:
    X = with_spectrum(40, 9, [5.0, 4.0, 3.0])
    choice = cross_validate_rank(PCA(), X)
    assert choice.n_components == 3
    assert len(choice.press) == 4  # beyond the rank of the training rows there is nothing to try
    assert choice.press[3] < 1e-12 * choice.press[0]


def test_zero_weight_is_removal() -> None:
    X = signal(50, 6, 2, 0.5)
    keep = np.random.default_rng(0).uniform(size=50) < 0.7
    one = cross_validate_rank(PCA(), X, sample_weight=keep)
    other = cross_validate_rank(PCA(), X[keep])
    assert_allclose(one.press, other.press, rtol=1e-9)


def test_weights_are_repetition_within_a_fold() -> None:
    X, w = signal(30, 5, 2, 0.5), np.random.default_rng(1).integers(1, 4, 30)
    ours = cross_validate_rank(PCA(), X, n_folds=3, sample_weight=w)
    folds = np.repeat(dealt(30, 3), w)
    assert_allclose(ours.press, naive_cross_validation(np.repeat(X, w, axis=0), folds, 4, scale=False), rtol=1e-8)


def test_doubled_weights_double_the_press() -> None:
    X = signal(40, 5, 2, 0.5)
    one, two = (cross_validate_rank(PCA(), X, sample_weight=np.full(40, w)) for w in (1.0, 2.0))
    assert_allclose(two.press, 2 * one.press, rtol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "file", "float32", "small blocks"])
def test_any_input_gives_the_same(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = sparse_rows(60, 8, 0.6).toarray()
    X[:, 1] += X[:, 0]
    expected = cross_validate_rank(PCA(), X)
    np.save(tmp_path / "x.npy", X)
    if kind == "small blocks":
        monkeypatch.setattr("gramian.pca.rank.memory_budget", lambda: 16 * 8 * 8 * 7)
    given_data: dict[str, Any] = {
        "sparse": sparse.csr_array(X),
        "file": tmp_path / "x.npy",
        "float32": X.astype(np.float32),
        "small blocks": X,
    }
    ours = cross_validate_rank(PCA(), given_data[kind])
    # single precision shows where 1 − h is small
    assert_allclose(ours.press, expected.press, rtol=1e-3 if kind == "float32" else 1e-9)
    assert ours.n_components == expected.n_components


def test_tensors(torch: Any) -> None:
    X = signal(40, 6, 2, 0.3)
    assert_allclose(
        cross_validate_rank(PCA(), torch.from_numpy(X)).press, cross_validate_rank(PCA(), X).press, rtol=1e-8
    )


def test_whitening_does_not_matter() -> None:
    X = signal(40, 6, 2, 0.3)
    assert_allclose(cross_validate_rank(PCA(whiten=True), X).press, cross_validate_rank(PCA(), X).press, rtol=1e-12)


def test_a_column_that_is_a_component_is_named() -> None:
    pandas = pytest.importorskip("pandas")
    X = signal(60, 4, 1, 0.5)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    frame["e"] = 1e7 * np.random.default_rng(0).standard_normal(60)
    choice = cross_validate_rank(PCA(), frame)
    assert choice.n_components == 0
    assert np.isfinite(choice.press[0])
    assert np.isnan(choice.press[1:]).all()
    assert "'e'" in choice.reason
    assert "scale=True" in choice.reason
    assert cross_validate_rank(PCA(scale=True), frame).n_components == 1


def test_a_minimum_at_the_end_is_said() -> None:
    X = signal(100, 40, 6, 0.2)
    short = cross_validate_rank(PCA(), X, max_components=3)
    assert short.n_components == 3
    assert short.at_the_end
    assert "rank_advice(X, max_components=…)" in short.reason
    whole = cross_validate_rank(PCA(), X)
    assert whole.n_components == 6
    assert not whole.at_the_end
    assert "largest number tried" not in whole.reason


def test_a_fit_warns_where_the_minimum_is_at_the_end() -> None:
    many = repeated(300, 110, 2)
    with pytest.warns(NumericalWarning, match=r"'cv'.*100 .*max_components=") as caught:
        assert PCA("cv").fit(many).n_components_ == 100
    assert caught[0].filename == __file__
    assert cross_validate_rank(PCA(), many, max_components=120).n_components == 110


@pytest.mark.parametrize(
    ("X", "few"),
    [(signal(60, 4, 3, 0.01), "so few columns"), (repeated(20, 30, 3), "independent rows")],
)
def test_where_no_more_can_be_tried_another_rule_is_the_way_out(X: Array, few: str) -> None:
    with pytest.warns(NumericalWarning, match=f"{few}.*another rule"):
        PCA("cv").fit(X)


def test_scaling_is_not_advised_to_a_model_that_scales() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat(rng.standard_normal((60, 1)), 3, axis=1), rng.standard_normal(60)])
    for scale in (False, True):
        choice = cross_validate_rank(PCA(scale=scale), X)
        assert "left out: column 'x3'" in choice.reason
        assert ("scale=True" in choice.reason) is not scale


def test_one_column_has_nothing_to_be_predicted_from() -> None:
    X = np.arange(10.0)[:, None]
    choice = cross_validate_rank(PCA(), X)
    assert choice.n_components == 0
    assert len(choice.press) == 1


def test_equal_rows() -> None:
    with pytest.warns(UserWarning, match="equal"):
        choice = cross_validate_rank(PCA(), np.ones((10, 3)))
    assert choice.n_components == 0
    assert "equal" in choice.reason


@pytest.mark.parametrize("kind", ["array", "frame", "file", "tensor"])
def test_missing_cells_are_refused_by_name(kind: str, tmp_path: Path) -> None:
    X = signal(30, 3, 1, 0.3)
    X[4, 2] = np.nan
    np.save(tmp_path / "x.npy", X)
    given_data: Any = tmp_path / "x.npy" if kind == "file" else X
    if kind == "frame":
        given_data = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    if kind == "tensor":
        given_data = pytest.importorskip("torch").from_numpy(X)
    with pytest.raises(ValueError, match=r"row 5.*column 3"):
        cross_validate_rank(PCA(), given_data)


def test_answers_repeat_and_progress_is_told() -> None:
    X, seen = signal(40, 6, 2, 0.3), []
    one = cross_validate_rank(PCA(), X, progress=lambda done, total, _: seen.append((done, total)))
    assert_allclose(one.press, cross_validate_rank(PCA(), X).press, rtol=0)
    assert seen == [(i, 7) for i in range(1, 8)]
    other = cross_validate_rank(PCA(), X, random_state=3)
    assert not np.array_equal(one.press, other.press)
    assert one.press[0] == pytest.approx(other.press[0], rel=0.1)


def test_it_reads_well() -> None:
    pandas = pytest.importorskip("pandas")
    choice = cross_validate_rank(PCA(), signal(60, 6, 2, 0.3))
    frame = pandas.DataFrame(choice.table())
    assert frame.chosen.tolist() == [False, False, True, False, False, False]
    assert repr(choice).startswith("cv: 2 components\n")
    assert "PRESS" in repr(choice)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"n_folds": 1}, "n_folds=1"),
        ({"n_folds": 31}, "30"),
        ({"max_components": 0}, "max_components=0"),
        ({"max_components": 5}, "between 1 and 4"),
        ({"max_components": 2.0}, "max_components"),
        ({"sample_weight": -np.ones(30)}, "row 1"),
        ({"sample_weight": np.ones(29)}, "30 rows"),
    ],
)
def test_impossible_arguments_are_refused(arguments: dict[str, Any], word: str) -> None:
    with pytest.raises(ValueError, match=word):
        cross_validate_rank(PCA(), signal(30, 5, 2, 0.3), **arguments)
