"""Kernel PCA on a device, run by torch on the CPU: NumPy's answers, tensors in and out, what is refused."""

import pickle
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.linalg import eigvalsh
from sklearn.base import clone
from sklearn.decomposition import KernelPCA as Theirs

from gramian import KernelPCA
from gramian.kernel_pca.solve import choose_solver
from gramian.kernels import Callable, Gaussian, Laplacian, Matern, Polynomial
from oracles import Array

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

CPU = torch.device("cpu")
KERNELS: dict[str, Any] = {
    "gaussian": Gaussian(0.1),
    "laplacian": Laplacian(0.1),
    "matern": Matern(1.5, 2.0),
    "polynomial": Polynomial(2),
    "sum": Gaussian(0.1) + 0.5 * Laplacian(0.2),
}


def points(n: int, p: int = 5, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=(6, p))[rng.integers(0, 6, n)] * 1.5 + rng.normal(size=(n, p)))


def must_agree(there: KernelPCA, here: KernelPCA, new: Array, tol: float) -> None:
    assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=tol)
    cosines = np.sum(there.eigenvectors_ * here.eigenvectors_, axis=0)  # the sign is fixed: no |cos| is needed
    assert_allclose(cosines, 1.0, atol=tol)
    size = np.abs(here.transform(new)).max()
    assert_allclose(there.transform(new), here.transform(new), atol=tol * size)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_answers_are_those_of_numpy(name: str, solver: str) -> None:
    X, new = points(150), points(9, seed=1)
    params: Any = {"kernel": KERNELS[name], "eigen_solver": solver, "tol": 1e-9}
    there, here = KernelPCA(4, device=CPU, **params).fit(X), KernelPCA(4, **params).fit(X)
    must_agree(there, here, new, 1e-8)
    assert_allclose(there.fit_transform(X), here.fit_transform(X), atol=1e-8)
    assert_allclose(there.novelty(new).spe, here.novelty(new).spe, atol=1e-8)
    assert_allclose(there.novelty(new).t2, here.novelty(new).t2, rtol=1e-6)
    assert there.certificate_.converged
    assert "double mode" in there.certificate_.precision
    assert isinstance(there.eigenvalues_, np.ndarray)


def test_answers_are_those_of_scikit_learn() -> None:
    X, new = points(120), points(7, seed=1)
    ours = KernelPCA(4, kernel="rbf", gamma=0.1, device=CPU).fit(X)
    theirs = Theirs(4, kernel="rbf", gamma=0.1, eigen_solver="dense").fit(X)
    assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-9)
    assert_allclose(np.abs(ours.transform(new)), np.abs(theirs.transform(new)), atol=1e-9)


@pytest.mark.parametrize("solver", ["dense", "krylov", "nystrom"])
@pytest.mark.parametrize("centre", [True, False])
def test_weights_and_centring_are_those_of_numpy(solver: str, centre: bool) -> None:
    X, new, w = points(150), points(9, seed=1), np.random.default_rng(2).integers(0, 4, 150)
    params: Any = {"kernel": Gaussian(0.1), "eigen_solver": solver, "tol": 1e-9, "centre": centre, "n_landmarks": 150}
    there = KernelPCA(3, device=CPU, **params)
    here = KernelPCA(3, **params).fit(X, sample_weight=w)
    scores = there.fit_transform(X, sample_weight=w)
    must_agree(there, here, new, 1e-7)
    assert_allclose(scores, here.transform(X), atol=1e-7)


@cache
def centred_matrix() -> tuple[Array, Array]:
    """A kernel matrix of centred features, and its eigenvalues."""
    K = Gaussian(0.1)(points(1600))
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    return K, eigvalsh(K, subset_by_index=[1595, 1599])[::-1]


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-6, 1e-9])
def test_a_twin_in_float32_iterates_and_float64_certifies(tol: float) -> None:
    model = KernelPCA(5, kernel=Gaussian(0.1), eigen_solver="krylov", tol=tol, device=CPU).fit(points(1600))
    K, exact = centred_matrix()
    U, values = model.eigenvectors_, model.eigenvalues_
    measured = np.sqrt(2) * np.linalg.norm(K @ U - U * values, axis=0) / values[0]
    assert_allclose(model.certificate_.residuals, measured, rtol=1e-3, atol=1e-12)
    assert np.all(measured <= tol)
    assert np.all(np.abs(values - exact) <= model.certificate_.value_bounds)
    assert model.certificate_.converged
    notes = " ".join(model.certificate_.notes)
    assert "iterated with products" in notes
    assert "accurate mode" in notes
    assert "double mode" in model.certificate_.precision


def test_rounding_counts_what_centring_takes_away() -> None:
    """Nearly all of a wide kernel's matrix is its mean: the products round to the size of that."""
    X = points(400)
    wide, narrow = (
        KernelPCA(2, kernel=Gaussian(gamma), eigen_solver="krylov", tol=1e-5, device=CPU).fit(X).certificate_
        for gamma in (1e-5, 0.1)
    )
    assert wide.rounding > 100 * narrow.rounding
    sums = (6 * 200 + 32) * 2.0**-53  # of 400 terms, at most 10√400 units each
    assert wide.rounding == pytest.approx((4e-13 + sums) * 400 / wide.norm)
    assert wide.converged


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("device", [None, CPU])
def test_tensors_in_tensors_out(dtype: str, device: Any) -> None:
    X, new = points(200).astype(dtype), points(6, seed=1).astype(dtype)
    params: Any = {"kernel": Gaussian(0.1), "fit_inverse_transform": True}
    here = KernelPCA(3, **params).fit(X)
    model = KernelPCA(3, device=device, **params).fit(torch.asarray(X))
    scores = model.transform(torch.asarray(new))
    results = [scores, model.fit_transform(torch.asarray(X)), model.inverse_transform(scores)]
    results += [model.novelty(torch.asarray(new)).t2, model.denoise(torch.asarray(new))]
    results += [model.eigenvalues_, model.eigenvectors_, model.X_fit_, model.dual_coefficients_]
    assert all(isinstance(result, torch.Tensor) for result in results)
    assert scores.dtype == getattr(torch, dtype)
    others = model.set_params(inverse="fixed-point").denoise(torch.asarray(new)), model.preimages(scores).points
    assert all(isinstance(result, torch.Tensor) for result in others)
    model.set_params(inverse="ridge")
    tol = 1e-9 if dtype == "float64" else 1e-4
    assert_allclose(scores, here.transform(new), atol=tol)
    assert_allclose(results[2], here.inverse_transform(here.transform(new)), atol=10 * tol)
    assert isinstance(model.transform(new), np.ndarray)
    assert_allclose(pickle.loads(pickle.dumps(model)).transform(new), scores, atol=0)
    again = model.fit(X)  # fitted to NumPy's arrays, it is NumPy's
    assert isinstance(again.eigenvalues_, np.ndarray)
    assert isinstance(again.transform(new), np.ndarray)


def test_weights_may_be_a_tensor() -> None:
    X, w = points(80), np.random.default_rng(0).uniform(0.5, 2, 80)
    model = KernelPCA(2, kernel=Gaussian(0.1), device=CPU).fit(torch.asarray(X), sample_weight=torch.asarray(w))
    assert_allclose(model.eigenvalues_, KernelPCA(2, kernel=Gaussian(0.1)).fit(X, sample_weight=w).eigenvalues_)


def test_new_rows_of_large_fits_keep_the_digits_of_the_fit() -> None:
    X, new = points(1600), points(40, seed=1)
    there = KernelPCA(3, kernel=Gaussian(0.1), eigen_solver="krylov", device=CPU).fit(X)
    exact = KernelPCA(3, kernel=Gaussian(0.1), eigen_solver="dense").fit(X)
    assert_allclose(there.transform(new), exact.transform(new), atol=1e-5 * np.abs(exact.transform(new)).max())


def test_a_kernel_that_is_not_positive_semidefinite_is_noticed_there_too() -> None:
    for solver in ("dense", "krylov"):
        with pytest.warns(UserWarning, match="indefinite"):
            KernelPCA(2, kernel="sigmoid", gamma=0.5, eigen_solver=solver, device=CPU).fit(points(60))


def test_rows_that_are_all_equal_have_no_variance_there_either() -> None:
    with pytest.warns(UserWarning, match="features"):
        model = KernelPCA(2, kernel="rbf", device=CPU).fit(np.ones((50, 3)))
    assert_allclose(model.eigenvalues_, 0.0, atol=1e-10)


def test_what_has_no_formula_is_refused_by_name_and_left_to_the_cpu_by_auto() -> None:
    X = np.abs(points(40))
    for kernel, data in ((Callable(lambda a, b: float(a @ b)), X), ("precomputed", X @ X.T), ("rbf", sp.csr_array(X))):
        with pytest.raises(ValueError, match="device='cpu'"):
            KernelPCA(2, kernel=kernel, device=CPU).fit(data)
        plain, auto = (KernelPCA(2, kernel=kernel, device=device).fit(data) for device in (None, "auto"))
        assert_allclose(auto.eigenvalues_, plain.eigenvalues_, rtol=1e-12)


def test_frames_lists_and_files_go_to_the_device(tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    X = points(60)
    np.save(tmp_path / "x.npy", X)
    expected = KernelPCA(2, kernel="rbf").fit(X).transform(X)
    for data in (pandas.DataFrame(X), X.tolist(), tmp_path / "x.npy"):
        assert_allclose(KernelPCA(2, kernel="rbf", device=CPU).fit(data).transform(data), expected, atol=1e-9)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_named() -> None:
    X = points(40)
    with pytest.raises(ValueError, match=r"device 'cuda'.*'cpu'"):
        KernelPCA(2, kernel="rbf", device="cuda").fit(X)
    auto, plain = (KernelPCA(2, kernel="rbf", device=device).fit(X) for device in ("auto", "cpu"))
    assert_allclose(auto.eigenvalues_, plain.eigenvalues_, rtol=0)
    assert plain.certificate_.notes == ()


def test_the_device_is_a_parameter_as_any_other() -> None:
    model = KernelPCA(2, device="auto")
    assert clone(model).get_params()["device"] == "auto"
    assert list(signature(KernelPCA).parameters)[-1] == "device"
    frame = KernelPCA(2, kernel="rbf", device=CPU).set_output(transform="pandas").fit_transform(points(30))
    assert list(frame.columns) == ["kernelpca0", "kernelpca1"]


def test_the_rule_knows_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = type("GPU", (), {"type": "cuda"})()
    free = [10**11]
    monkeypatch.setattr("gramian.kernel_pca.solve.free_bytes", lambda device: free[0])
    assert choose_solver(1_000_000, 10, "auto")[0] == "nystrom"
    assert choose_solver(1_000_000, 10, "auto", gpu)[0] == "krylov"
    assert choose_solver(5_000_000, 10, "auto", gpu)[0] == "nystrom"
    assert choose_solver(2500, 10, "auto")[0] == "krylov"
    assert choose_solver(2500, 10, "auto", gpu)[0] == "krylov"
    assert choose_solver(1800, 10, "auto", gpu)[0] == "dense"
    assert choose_solver(20_000, 5000, "auto", gpu)[0] == "dense"
    free[0] = 10**9
    assert choose_solver(20_000, 5000, "auto", gpu)[0] == "krylov"  # the whole matrix would not fit
    assert choose_solver(20_000, 5000, "dense", gpu)[0] == "dense"  # and is refused with the figure


def test_a_matrix_too_large_for_the_device_is_refused_with_the_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 2**20)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    with pytest.raises(MemoryError, match=r"300 rows.*2\.7 MiB.*eigen_solver='krylov'"):
        KernelPCA(2, kernel="rbf", eigen_solver="dense", device=CPU).fit(points(300))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("tol", [1e-4, 1e-6])
@pytest.mark.parametrize("solver", ["dense", "krylov", "nystrom"])
def test_on_cuda(tol: float, solver: str) -> None:
    X = points(4000, 20).astype(np.float32)
    params: Any = {"kernel": Gaussian(0.02), "eigen_solver": solver, "n_landmarks": 4000}
    there = KernelPCA(5, tol=tol, **params).fit(torch.asarray(X, device="cuda"))
    here = KernelPCA(5, kernel=Gaussian(0.02), eigen_solver="krylov", tol=1e-9, device="cpu").fit(X.astype(float))
    assert there.eigenvalues_.is_cuda
    assert_allclose(there.eigenvalues_.cpu(), here.eigenvalues_, rtol=tol)
    cosines = np.sum(there.eigenvectors_.cpu().numpy() * here.eigenvectors_, axis=0)
    assert_allclose(np.abs(cosines), 1.0, atol=tol)
    scores = there.transform(torch.asarray(X[:50], device="cuda"))
    assert scores.is_cuda
    assert_allclose(np.abs(scores.cpu().numpy()), np.abs(here.transform(X[:50].astype(float))), atol=50 * tol)
    assert there.certificate_.device.startswith("cuda")
