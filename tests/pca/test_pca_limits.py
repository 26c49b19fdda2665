"""Cases at the edges of dtypes, ranks, memory and array types, each of which was once wrong."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context, decomposition
from sklearn.exceptions import ConvergenceWarning

import gramian
from gramian import PCA
from gramian.operators import Data
from gramian.results import NumericalWarning
from gramian.spectral import Auto, Dense, Krylov, Power, Randomized


def rotation(p: int, seed: int = 0) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, p)))[0]


def test_many_float32_rows_keep_their_small_components() -> None:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((200_000, 4)) * [1, 0.5, 0.02, 0.01] @ rotation(4)).astype(np.float32)
    model, reference = PCA(4).fit(X), decomposition.PCA(4).fit(X.astype(float))
    assert model.rank_ == 4
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * reference.components_, axis=1)), 1, atol=1e-6)


def test_huge_weights_do_not_lower_the_rank() -> None:
    X = np.random.default_rng(0).standard_normal((300, 3)) * [1, 0.1, 1e-5]
    assert PCA().fit(X, sample_weight=np.full(300, 1e9)).rank_ == 3


def test_a_float32_gram_matrix_is_summed_in_float64() -> None:
    rng = np.random.default_rng(0)
    s = np.array([1500.0, *np.linspace(2, 1, 9)])
    X = ((np.linalg.qr(rng.standard_normal((30_000, 10)))[0] * s) @ rotation(10)).astype(np.float32)
    true = np.linalg.svd(X.astype(float), compute_uv=False)
    np.testing.assert_allclose(Dense()(Data(X)).values, true, rtol=1e-4)


def test_the_fallback_keeps_the_tolerance_that_was_asked() -> None:
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((600, 620)) + 100 * np.sign(rng.standard_normal(620))).astype(float)
    model = PCA(2).fit(X)
    assert model.certificate_.converged
    assert model.certificate_.tolerance <= 1e-6
    np.testing.assert_allclose(model.singular_values_, np.linalg.svd(X - X.mean(0), compute_uv=False)[:2], rtol=1e-9)


@pytest.mark.parametrize(("mean", "spread"), [(1e12, 3e-4), (1e8, 3e-8)])
def test_a_variance_of_a_few_units_in_the_last_place_is_still_one(mean: float, spread: float) -> None:
    X = mean + spread * np.random.default_rng(0).standard_normal((500, 2))
    D = X - X[0]
    want = np.linalg.eigvalsh(np.cov(D.T))[::-1]
    np.testing.assert_allclose(PCA().fit(X).explained_variance_, want, rtol=1e-10)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e8 + 0.1, -7.7e-5])
@pytest.mark.parametrize("n", [3, 100, 5000])
def test_constant_columns_have_no_variance(value: float, n: int) -> None:
    X = np.column_stack([np.full(n, value), np.random.default_rng(0).standard_normal(n)])
    model = PCA().fit(X)
    assert model.rank_ == 1
    assert model.explained_variance_[1] < 1e-28
    with pytest.warns(gramian.NumericalWarning, match="equal"):
        assert PCA().fit(np.full((n, 2), value)).explained_variance_.max() == 0.0


def test_partial_fit_refuses_what_overflows_or_underflows() -> None:
    X = np.random.default_rng(0).standard_normal((50, 3))
    with pytest.raises(ValueError, match=r"underflow.*large constant"):
        PCA().partial_fit(X * 1e-170)
    with pytest.raises(ValueError, match=r"overflow.*small constant"):
        PCA().partial_fit(X * 1e200)


def test_an_attribute_that_is_not_there_yet_is_missing() -> None:
    model = PCA().partial_fit(np.ones((1, 2)))
    assert not hasattr(model, "components_")
    assert model.partial_fit(np.eye(2)).components_.shape == (2, 2)


def test_float32_scores_are_centred_on_the_mean_not_on_its_rounding() -> None:
    X = (1 + 1e-6 * np.random.default_rng(0).standard_normal((5000, 3))).astype(np.float32)
    Z = PCA().fit(X).transform(X)
    assert Z.dtype == np.float32
    assert np.abs(Z.mean(axis=0) / Z.std(axis=0)).max() < 1e-5


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("fit_type", ["float32", "float64", "numpy"])
def test_every_method_takes_and_gives_tensors(torch: Any, whiten: bool, fit_type: str) -> None:
    X = np.random.default_rng(0).standard_normal((60, 5)) * [3, 2, 1, 0.5, 0.2] + 1
    data = X if fit_type == "numpy" else torch.asarray(X, dtype=getattr(torch, fit_type))
    model, twin = PCA(2, whiten=whiten).fit(data), PCA(2, whiten=whiten).fit(X)
    for dtype in (torch.float32, torch.float64):
        T = torch.asarray(X, dtype=dtype)
        Z = model.transform(T)
        assert Z.dtype == dtype
        np.testing.assert_allclose(Z, twin.transform(X), atol=2e-5)
        back = model.inverse_transform(Z)
        assert back.dtype == dtype
        np.testing.assert_allclose(back, twin.inverse_transform(twin.transform(X)), atol=2e-5)
        np.testing.assert_allclose(model.score_samples(T), twin.score_samples(X), rtol=2e-4)
        np.testing.assert_allclose(model.reconstruction_error(T), twin.reconstruction_error(X), atol=1e-4)
        assert model.score(T) == pytest.approx(twin.score(X), rel=1e-4)
    np.testing.assert_allclose(model.get_covariance(), twin.get_covariance(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.get_precision(), twin.get_precision(), rtol=1e-4, atol=1e-4)


def test_a_cut_stream_does_not_invent_components() -> None:
    X = np.random.default_rng(0).standard_normal((400, 200))
    with config_context(working_memory=0.05):
        model = PCA().partial_fit(X[:200]).partial_fit(X[200:])
        with pytest.raises(AttributeError, match="working_memory"):
            _ = model.components_
        few = PCA(3).partial_fit(X[:200]).partial_fit(X[200:])
        with pytest.warns(ConvergenceWarning, match="of 3 components"):
            certificate = few.certificate_
    true = np.linalg.svd(X - X.mean(0), compute_uv=False)[:3]
    assert np.all(np.abs(few.singular_values_ - true) <= certificate.value_bounds)


def test_scores_follow_set_output() -> None:
    pytest.importorskip("pandas")
    X = np.random.default_rng(0).standard_normal((20, 3))
    model = PCA(2).set_output(transform="pandas").fit(X)
    assert list(model.transform(X).columns) == ["pca0", "pca1"]
    plain = PCA(2).fit(X)
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)), plain.inverse_transform(plain.transform(X)))


@pytest.mark.parametrize("solver", [Dense(), Krylov(), Randomized(), Power(), Auto()])
@pytest.mark.parametrize("k", [0, 4])
def test_solvers_refuse_more_triplets_than_there_are(solver: Any, k: int) -> None:
    with pytest.raises(ValueError, match=rf"k={k}.*\(10, 3\).*3"):
        solver(Data(np.random.default_rng(0).standard_normal((10, 3))), k)


def test_a_small_wide_file_is_like_the_array_in_it(tmp_path: pathlib.Path) -> None:
    X = np.random.default_rng(0).standard_normal((400, 700))
    np.save(tmp_path / "wide.npy", X)
    for n_components in (0.5, 3, None):
        np.testing.assert_allclose(
            PCA(n_components).fit(tmp_path / "wide.npy").singular_values_, PCA(n_components).fit(X).singular_values_
        )


def test_passes_are_those_of_the_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    original = gramian.sources.NpySource.blocks
    monkeypatch.setattr(
        gramian.sources.NpySource, "blocks", lambda self, rows=None: reads.append(1) or original(self, rows)
    )
    X = np.random.default_rng(0).standard_normal((3000, 100))
    for factor, solver in ((1.0, "auto"), (1.0, "krylov"), (1.0, "full"), (1e180, "auto"), (1e-120, "randomized")):
        np.save(tmp_path / "x.npy", X * factor * 0.8 ** np.arange(100))
        reads.clear()
        with np.errstate(all="ignore"):
            model = PCA(3, svd_solver=solver, whiten=False)
            if factor == 1e180:
                with pytest.warns(gramian.NumericalWarning, match="too large"):
                    model.fit(tmp_path / "x.npy")
            else:
                model.fit(tmp_path / "x.npy")
        assert model.certificate_.passes == len(reads), solver


def test_centred_wide_products_read_the_data_once_a_pass() -> None:
    X = np.random.default_rng(0).standard_normal((100, 3000)) * 0.99 ** np.arange(3000)
    A = gramian.operators.Centred(Data(X), X.mean(axis=0))
    U = np.ones((100, 2))
    A.conormal(U)
    before = A.passes
    A.conormal(U)
    assert A.passes == before + 1


@pytest.mark.parametrize("threads", [1, 5])
def test_sparse_rows_stay_in_order_whatever_the_threads(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    from gramian.compute import sparse
    from gramian.compute import threads as pool

    S = sp.random_array((10_000, 7), density=0.3, format="csr", rng=np.random.default_rng(0))
    monkeypatch.setattr(pool, "n_threads", lambda: threads)
    np.testing.assert_allclose(sparse.product(S, np.eye(7)), S.toarray())


@pytest.mark.parametrize(
    ("shape", "solver"), [((6000, 5900), "full"), ((3000, 9000), "full"), ((9000, 5900), "covariance_eigh")]
)
def test_memory_that_is_not_there_is_refused_before_it_is_taken(monkeypatch, shape, solver):
    monkeypatch.setattr("gramian.compute.devices.available_memory", lambda: 2**28)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    monkeypatch.setattr("numpy.linalg.svd", lambda *a, **k: pytest.fail("taken all the same"))
    monkeypatch.setattr("numpy.linalg.eigh", lambda *a, **k: pytest.fail("taken all the same"))
    X = np.lib.stride_tricks.as_strided(np.arange(float(sum(shape))), shape, (8, 8))  # next to no memory of its own
    with pytest.raises(MemoryError, match=r"[GM]iB.*256\.0 MiB.*krylov"):
        PCA(2, svd_solver=solver).fit(X)


def test_scaling_refuses_deviations_whose_squares_vanish():
    X = np.random.default_rng(0).standard_normal((20, 3)) * [1.0, 1e-200, 1.0]
    with pytest.raises(ValueError, match="column 2"):
        PCA(2, scale=True).fit(X)
    plain, zero = X[:, [0, 2]], X * [1.0, 0.0, 1.0]
    np.testing.assert_allclose(
        PCA(2, scale=True).fit(zero).singular_values_, PCA(2, scale=True).fit(plain).singular_values_
    )


@pytest.mark.parametrize("solver", ["auto", "full", "krylov", "power"])
@pytest.mark.parametrize("scale", [False, True])
def test_a_large_constant_in_a_sparse_column_changes_nothing(solver, scale):
    X = np.random.default_rng(0).standard_normal((30, 4)) * [4.0, 3.0, 2.0, 1.0]
    wide = np.insert(X, 2, 1e29, axis=1)
    a = PCA(2, svd_solver=solver, scale=scale, tol=1e-10).fit(sp.csr_array(wide))
    b = PCA(2, svd_solver="full", scale=scale).fit(X)
    assert a.certificate_.converged
    np.testing.assert_allclose(a.singular_values_, b.singular_values_, rtol=1e-9)


def test_a_sparse_column_of_many_rows_is_constant_or_not():
    """0.1 has a mean that no sum of many rows rounds to."""
    X = np.random.default_rng(0).standard_normal((300_000, 2))
    X[:, 1] = 0.1
    pca = PCA(1, scale=True).fit(sp.csr_array(X))
    assert pca.scale_[1] == 1.0
    X[7, 1] = np.nextafter(0.1, 1)
    with pytest.warns(ConvergenceWarning):  # its deviations are smaller than what products with the others round by
        assert PCA(1, scale=True).fit(sp.csr_array(X)).scale_[1] < 1e-16


@pytest.mark.parametrize("weight", [1e70, 1e300])
def test_weights_that_are_no_frequencies_are_refused(weight):
    with pytest.raises(ValueError, match="sample_weight"):
        PCA(2).fit(np.random.default_rng(0).standard_normal((9, 3)), sample_weight=np.full(9, weight))


@pytest.mark.parametrize("offset", [1e9, 1e13])
def test_configurations_far_from_zero_are_compared_as_near_it(offset):
    X = np.round(np.random.default_rng(0).standard_normal((30, 4)) * 64)
    far = X + offset
    near, moved = (gramian.analysis.procrustes(M[:, :2], M[:, 2:]) for M in (X, far))
    assert moved.r_squared == pytest.approx(near.r_squared, rel=1e-9)
    assert moved.scale == pytest.approx(near.scale, rel=1e-9)
    found, expected = (gramian.analysis.rv_coefficient(M[:, :2], M[:, 2:]) for M in (far, X))
    assert found.rv == pytest.approx(expected.rv, rel=1e-9)
    assert found.p_value == pytest.approx(expected.p_value, rel=1e-6)


def test_directions_of_rows_that_are_all_equal_are_refused_before_they_are_made(monkeypatch):
    same = np.broadcast_to(np.float32(1.5), (3000, 3000))
    monkeypatch.setattr("gramian.compute.devices.available_memory", lambda: 2**26)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 2**20)
    with pytest.raises(MemoryError, match=r"3000 directions of 3000 columns would take 68.7 MiB, and 64.0 MiB"):
        PCA(svd_solver="full").fit(same)
    with pytest.warns(NumericalWarning, match="All rows are equal"):
        assert PCA(2).fit(same).components_.shape == (2, 3000)
