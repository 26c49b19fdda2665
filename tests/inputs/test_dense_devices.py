"""PCA and ridge regression on a device: the numbers of the CPU, where the input lived.

The device is torch on the CPU, which runs the loops of the GPU, and a pretended GPU, which lets nothing pass that a
real one would not. The oracle is the same estimator with NumPy, which other tests compare with scikit-learn and more.
"""

from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from gramian import PCA, NumericalWarning, Ridge, RidgeCV
from gramian.analysis import describe, fit_incomplete
from gramian.compute.devices import to_device, to_numpy
from gramian.sources import devices

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from pretend import GPU, GPUTensor, pretend_gpu

CPU = torch.device("cpu")
PLACES = [CPU, GPU]
REAL = [pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"))]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((900, 12)) * np.geomspace(1, 0.1, 12) + 3.0
Y = X @ RNG.standard_normal((12, 2)) + 0.1 * RNG.standard_normal((900, 2))
W = RNG.integers(1, 4, 900).astype(float)
# beyond what is decomposed as it is; the first components are found soon
LARGE = RNG.standard_normal((2200, 120)) * np.concatenate([[50.0, 30.0, 20.0], np.geomspace(1, 0.1, 117)])


@pytest.fixture(autouse=True)
def gpu_to_pretend(request: Any) -> Any:
    """Pretend a GPU where a test asks for one; threads that wait for each other would take longer than one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    place = getattr(request.node, "callspec", None) and request.node.callspec.params.get("place")
    with pretend_gpu() if place == GPU else nullcontext():
        yield
    torch.set_num_threads(threads)


def same(a: Any, b: Any, rtol: float = 1e-10) -> None:
    a, b = to_numpy(a), to_numpy(b)
    assert a.dtype == b.dtype
    assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max(initial=0.0))


def check_attributes(got: Any, want: Any, kind: type, rtol: float = 1e-10) -> None:
    """The fitted arrays are of a kind, and have the numbers and the dtypes of another fit."""
    for name, value in vars(want).items():
        if isinstance(value, np.ndarray) and name.endswith("_") and value.dtype.kind == "f":
            assert type(getattr(got, name)) is kind, name
            same(getattr(got, name), value, rtol)


@pytest.mark.parametrize("place", PLACES + REAL)
@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh", "krylov", "randomized", "power", "arpack"])
@pytest.mark.parametrize("data", [X, LARGE], ids=["small", "large"])
def test_every_solver_gives_the_numbers_of_the_cpu(place: Any, solver: str, data: Any) -> None:
    if solver == "power" and data is LARGE:
        solver = "auto"
    options: dict[str, Any] = {"svd_solver": solver, "tol": 1e-12 if solver in ("krylov", "randomized") else 0.0}
    options |= {"tol": 1e-12} if solver in ("power", "arpack") else {}
    for k in (1, 3):
        same(PCA(k, device=place, **options).fit(data).components_, PCA(k, **options).fit(data).components_)
    w = None if data is LARGE else W
    want = PCA(3, **options).fit(data, sample_weight=w)
    got = PCA(3, device=place, **options).fit(data, sample_weight=w)
    check_attributes(got, want, np.ndarray)
    assert got.certificate_.converged
    assert got.certificate_.method == want.certificate_.method
    assert "double mode: float64" in got.certificate_.precision
    same(got.transform(data), want.transform(data))
    assert type(got.transform(data)) is np.ndarray


@pytest.mark.parametrize("place", PLACES + REAL)
@pytest.mark.parametrize("options", [{"scale": True}, {"whiten": True}, {"n_components": 0.8}, {"n_components": "mle"}])
def test_every_query(place: Any, options: dict[str, Any]) -> None:
    options = {"n_components": 4, **options}
    want, got = PCA(**options).fit(X), PCA(**options, device=place).fit(X)
    there = to_device(X, place)
    tensors = PCA(**options).fit(there)
    for name in ("transform", "score_samples", "reconstruction_error"):
        answer = getattr(want, name)(X)
        for model in (got, tensors, want):
            for data in (X, there):
                found = getattr(model, name)(data)
                assert type(found) is type(data), name
                same(found, answer)
    for model, data in ((got, X), (tensors, there)):
        Z = model.transform(data)
        same(model.inverse_transform(Z), want.inverse_transform(want.transform(X)))
        assert model.score(data) == pytest.approx(want.score(X), rel=1e-10)
        for name in ("get_covariance", "get_precision", "loadings"):
            same(getattr(model, name)(), getattr(want, name)())
        same(describe(model, data).rows.coordinates, describe(want, X).rows.coordinates)
        same(model.sample(3, 1), want.sample(3, 1))


@pytest.mark.parametrize("place", PLACES + REAL)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_dtypes_of_attributes_and_scores(place: Any, dtype: str) -> None:
    data = (
        np.round(X).astype(dtype) if dtype == "int8" else (X > 3).astype(dtype) if dtype == "bool" else X.astype(dtype)
    )
    want = PCA(3).fit(data)
    for given, kind in ((data, np.ndarray), (to_device(data, place), type(to_device(data, place)))):
        got = PCA(3, device=place).fit(given)
        check_attributes(got, want, kind, 1e-6 if dtype == "float32" else 1e-10)
        assert_allclose(to_numpy(got.explained_variance_), want.explained_variance_, rtol=1e-10)
        assert to_numpy(got.transform(given)).dtype == want.transform(data).dtype


def test_tensors_can_be_worked_on_by_numpy() -> None:
    T = torch.from_numpy(X)
    got, ridge = PCA(3, device="cpu").fit(T), Ridge(device="cpu").fit(T, torch.from_numpy(Y))
    check_attributes(got, PCA(3).fit(X), torch.Tensor)
    check_attributes(ridge, Fitted(coef_=Ridge().fit(X, Y).coef_), torch.Tensor)
    assert type(got.transform(T)) is type(ridge.predict(T)) is torch.Tensor
    assert got.certificate_.notes == ()


@pytest.mark.parametrize("place", PLACES)
def test_names_and_containers(place: Any) -> None:
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    pca = PCA(2, device=place).set_output(transform="pandas").fit(frame)
    assert list(pca.feature_names_in_) == list(frame.columns)
    Z = pca.transform(frame)
    assert isinstance(Z, pd.DataFrame)
    assert list(Z.columns) == ["pca0", "pca1"]
    same(Z.to_numpy(), PCA(2).fit_transform(X))
    same(pca.fit_transform(frame).to_numpy(), PCA(2).fit_transform(X))
    with pytest.raises(ValueError, match="feature"):
        pca.transform(frame[frame.columns[::-1]])


@pytest.mark.parametrize("place", PLACES + REAL)
@pytest.mark.parametrize("solver", ["auto", "krylov", "full"])
@pytest.mark.parametrize("kind", ["file", "array", "map"])
def test_data_larger_than_the_gpu_are_streamed(
    place: Any, solver: str, kind: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "x.npy", LARGE)
    data = {"file": tmp_path / "x.npy", "array": LARGE, "map": np.load(tmp_path / "x.npy", mmap_mode="r")}[kind]
    monkeypatch.setattr(devices, "WHOLE", 0.0)
    monkeypatch.setattr(devices, "BLOCK_BYTES", 2**19)
    options: dict[str, Any] = {"svd_solver": solver, "tol": 1e-12 if solver == "krylov" else 0.0}
    want, got = PCA(3, **options).fit(LARGE), PCA(3, device=place, **options).fit(data)
    check_attributes(got, want, np.ndarray)
    same(got.transform(data), want.transform(LARGE))
    same(PCA(3, device=place, **options).fit_transform(data), want.transform(LARGE))
    ridge = Ridge(device=place).fit(data, LARGE[:, 0])
    same(ridge.coef_, Ridge().fit(LARGE, LARGE[:, 0]).coef_)
    same(ridge.predict(data), Ridge().fit(LARGE, LARGE[:, 0]).predict(LARGE))


@pytest.mark.parametrize("place", PLACES)
def test_rows_with_gaps(place: Any) -> None:
    gaps = X.copy()
    gaps[RNG.uniform(size=X.shape) < 0.02] = np.nan
    want, got = PCA(2).fit(gaps), PCA(2, device=place).fit(gaps)
    tensors = PCA(2).fit(to_device(gaps, place))
    for model, data in ((got, gaps), (tensors, to_device(gaps, place))):
        check_attributes(model, want, type(data))
        for name in ("transform", "score_samples"):
            same(getattr(model, name)(data), getattr(want, name)(gaps))
            assert type(getattr(model, name)(data)) is type(data)
        same(model.impute(data), want.impute(gaps))
    other = fit_incomplete(PCA(2, device=place), to_device(gaps, place), method="regularised")
    check_attributes(other, fit_incomplete(PCA(2), gaps, method="regularised"), type(to_device(gaps, place)))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("value", "words"), [(np.inf, "infinity"), (np.nan, "NaN")])
def test_what_is_not_finite_is_named(place: Any, value: float, words: str) -> None:
    bad = X.copy()
    bad[7, 3] = value
    for data in (bad, to_device(bad, place)):
        with pytest.raises(ValueError, match=rf"{words}.*row 8, column 4"):
            PCA(2, device=place).partial_fit(data)
        with pytest.raises(ValueError, match=rf"{words}.*row 8, column 4"):
            Ridge(device=place).fit(data, Y[:, 0])
        if value == np.inf:
            with pytest.raises(ValueError, match="row 8, column 4"):
                PCA(2, device=place).fit(data)


@pytest.mark.parametrize("place", PLACES)
def test_partial_fit(place: Any) -> None:
    want = PCA(3).fit(X, sample_weight=W)
    for data in (X, to_device(X, place)):
        got = PCA(3, device=place)
        for part in (slice(0, 300), slice(300, 900)):
            got.partial_fit(data[part], sample_weight=W[part])
        for name in ("components_", "explained_variance_", "mean_", "singular_values_"):
            assert type(getattr(got, name)) is type(data)
            same(getattr(got, name), getattr(want, name))


@pytest.mark.parametrize("place", PLACES)
def test_rules_that_look_at_the_rows(place: Any) -> None:
    data = RNG.standard_normal((200, 8)) + np.outer(np.arange(200.0), np.ones(8)) / 30
    for rule in ("parallel", "cv"):
        want = PCA(rule).fit(data).n_components_
        assert PCA(rule, device=place).fit(data).n_components_ == want
        assert PCA(rule).fit(to_device(data, place)).n_components_ == want


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@pytest.mark.parametrize("place", PLACES + REAL)
def test_degenerate_data(place: Any) -> None:
    line = np.outer(np.arange(50.0), [1.0, 0.0, 2.0, 0.0])
    for data in (line, np.ones((9, 3)), X * 1e-200, X * 1e200, LARGE[:40], RNG.standard_normal((600, 700))):
        k = 3 if data.shape[1] < 12 else 5
        want, got = PCA(k).fit(data), PCA(k, device=place).fit(data)
        assert_allclose(got.components_, want.components_, atol=1e-5)
        assert_allclose(got.singular_values_, want.singular_values_, rtol=1e-9, atol=1e-9 * want.singular_values_[0])


def test_sparse_data_stay_on_the_cpu() -> None:
    S = sp.random_array((60, 8), density=0.3, format="csr", rng=np.random.default_rng(1))
    with pretend_gpu():
        for model in (PCA(2, device="cuda"), PCA(2, device=CPU)):
            with pytest.raises(ValueError, match=r"[Ss]parse.*cpu"):
                model.fit(S)
        with pytest.raises(ValueError, match=r"[Ss]parse"):
            Ridge(device="cuda").fit(S, np.ones(60))
        got = PCA(2, device="auto").fit(S)
        same(Ridge(device="auto").fit(S, np.arange(60.0)).coef_, Ridge().fit(S, np.arange(60.0)).coef_)
    same(got.components_, PCA(2).fit(S).components_)


def test_a_scatter_matrix_that_does_not_fit_is_refused_with_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = np.zeros((4000, 3000), dtype=np.float32)
    with (
        pretend_gpu(free=2**28),
        pytest.raises(MemoryError, match=r"3000 × 3000 scatter.*343\.3 MiB.*cuda:0"),
    ):
        PCA(2000, device="cuda").fit(wide)


def test_a_model_that_asks_for_a_gpu_says_so_where_there_is_none() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    for model in (PCA(2, device="cuda"), Ridge(device="cuda:7"), RidgeCV(device="cuda")):
        with pytest.raises(ValueError, match=r"cuda.*'auto'"):
            model.fit(X, Y)
    fitted = PCA(2).fit(X).set_params(device="cuda")
    with pytest.raises(ValueError):
        fitted.transform(X)
    same(fitted.set_params(device="auto").transform(X), PCA(2).fit_transform(X))
    with pytest.raises(NotFittedError):
        PCA(device="cuda").transform(X)


@pytest.mark.parametrize("place", PLACES + REAL)
@pytest.mark.parametrize("solver", ["auto", "svd", "cholesky", "dual", "cg"])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
def test_ridge(place: Any, solver: str, alpha: float) -> None:
    for n in (900, 9) if solver != "dual" else (9,):
        A, B, w = X[:n], Y[:n], W[:n]
        options: dict[str, Any] = {"solver": solver, "tol": 1e-13}
        want = Ridge(alpha, **options).fit(A, B, sample_weight=w)
        here = Ridge(alpha, device=place, **options).fit(A, B, sample_weight=w)
        there = Ridge(alpha, **options).fit(to_device(A, place), to_device(B, place), sample_weight=to_device(w, place))
        for model, data, y in ((here, A, B), (there, to_device(A, place), to_device(B, place))):
            check_attributes(model, Fitted(coef_=want.coef_, intercept_=want.intercept_), type(data), 1e-8)
            assert model.solver_ == want.solver_
            assert "double mode" in model.certificate_.precision
            same(model.predict(data), want.predict(A), 1e-8)
            assert type(model.predict(data)) is type(data)
            assert model.score(data, y) == pytest.approx(want.score(A, B), abs=1e-10)
            if solver != "cg" and n == 900:
                for name in ("predict_interval", "coef_covariance"):
                    given = (data,) if name == "predict_interval" else ()
                    found, expected = getattr(model, name)(*given), getattr(want, name)(*([A] if given else []))
                    for a, b in zip(found, expected, strict=True):
                        same(a, b, 1e-8)
                same(model.predict(data, return_std=True)[1], want.predict(A, return_std=True)[1], 1e-8)


class Fitted:
    """Attributes to compare with."""

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


@pytest.mark.parametrize("place", PLACES + REAL)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"alphas": "auto"},
        {"gcv_mode": "svd"},
        {"store_cv_results": True},
        {"alpha_per_target": True},
        {"scoring": "r2"},
        {"criterion": "gcv"},
        {"cv": 3},
        {"fit_intercept": False},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
@pytest.mark.parametrize("weights", [None, W, W + 0.5], ids=["equal", "counts", "precisions"])
def test_ridge_cv(place: Any, options: dict[str, Any], weights: Any) -> None:
    if weights is not None and "scoring" in options:
        weights = None
    want = RidgeCV(**options).fit(X, Y, sample_weight=weights)
    here = RidgeCV(**options, device=place).fit(X, Y, sample_weight=weights)
    w = None if weights is None else to_device(weights, place)
    there = RidgeCV(**options).fit(to_device(X, place), to_device(Y, place), sample_weight=w)
    for model, data in ((here, X), (there, to_device(X, place))):
        kept = {"cv_results_": want.cv_results_} if "store_cv_results" in options else {}
        check_attributes(model, Fitted(coef_=want.coef_, **kept), type(data), 1e-8)
        assert_allclose(model.alpha_, want.alpha_, rtol=1e-8)
        assert_allclose(model.best_score_, want.best_score_, rtol=1e-8)
        same(model.predict(data), want.predict(X), 1e-8)
        if "cv" not in options:
            for name in ("loo", "gcv", "log_marginal_likelihood", "noise_variance"):
                assert_allclose(getattr(model.path_, name), getattr(want.path_, name), rtol=1e-7)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.filterwarnings("ignore:No alpha has a finite score")
def test_rows_that_determine_their_own_fit(place: Any) -> None:
    A = np.zeros((20, 3))
    A[:, 0], A[3, 1], A[4, 2] = np.arange(20.0), 1.0, 1e9
    with pytest.warns(NumericalWarning, match="leave-one-out") as caught:  # of row 5 nothing is left but rounding
        want, got = (RidgeCV([1e-9, 1.0], device=d).fit(A, np.arange(20.0) ** 2) for d in (None, place))
    assert len(caught) == 2
    assert got.alpha_ == want.alpha_


def test_float32_predictions_stay_float32() -> None:
    A, y = X.astype(np.float32), Y[:, 0].astype(np.float32)
    want = Ridge().fit(A, y)
    got = Ridge(device=CPU).fit(A, y)
    assert got.coef_.dtype == got.predict(A).dtype == np.float32
    assert_allclose(got.coef_, want.coef_, rtol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_a_cuda_tensor_is_fitted_where_it_is() -> None:
    T = torch.from_numpy(LARGE).cuda().float()
    got, want = PCA().fit(T), PCA().fit(LARGE.astype(np.float32))
    assert got.components_.device == T.device
    assert_allclose(to_numpy(got.explained_variance_), want.explained_variance_, rtol=1e-10)
    assert isinstance(T, torch.Tensor)
    assert not isinstance(T, GPUTensor)
