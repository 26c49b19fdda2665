"""Kernel ridge regression on a device: torch on the CPU takes every step that a GPU takes, with NumPy's answers."""

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge

from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV
from gramian.inputs.kernels import decomposition_bytes
from gramian.kernel_ridge.path import eigen_system
from gramian.kernel_ridge.problem import KernelProblem
from gramian.kernel_ridge.solve import choose_solver
from gramian.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, RationalQuadratic
from gramian.operators.base import device_factor_bytes
from gramian.results import NumericalWarning

SOLVERS = ("auto", "eigh", "cholesky", "cg", "landmarks")


@pytest.fixture
def cpu(torch: Any) -> Any:
    """Torch on the CPU, as an object: the loops of the GPU without one."""
    return torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices gain nothing by threads that wait for one another."""
    torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def cuda(torch: Any) -> Any:
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA GPU")
    return torch.device("cuda", 0)


class PretendedGPU:
    """What the rules ask of a GPU, where there is none."""

    type, index = "cuda", 0


@pytest.fixture
def h200(torch: Any, monkeypatch: pytest.MonkeyPatch) -> PretendedGPU:
    """A GPU of 139 GiB, of which nothing is used."""
    monkeypatch.setattr("gramian.kernel_ridge.solve.free_bytes", lambda device: 139 * 2**30)
    monkeypatch.setattr("gramian.kernel_ridge.solve.describe", lambda device: "cuda:0 (a GPU)")
    return PretendedGPU()


def data(n: int = 150, t: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    Y = np.sin(X @ rng.standard_normal((3, t))) + 0.1 * rng.standard_normal((n, t)) + 0.5
    return X, Y, rng.integers(0, 3, n).astype(float)


def ridge(solver: str = "auto", **params: Any) -> KernelRidge:
    options = {"kernel": "rbf", "gamma": 0.3, "alpha": [0.1, 0.5], "solver": solver, **params}
    if solver == "cg":
        options.setdefault("tol", 1e-10)
    return KernelRidge(**options)


@pytest.mark.parametrize("solver", SOLVERS)
def test_predictions_are_those_of_scikit_learn(solver: str, cpu: Any) -> None:
    X, Y, _ = data()
    theirs = SklearnKernelRidge(alpha=[0.1, 0.5], kernel="rbf", gamma=0.3).fit(X, Y)
    ours = ridge(solver, device=cpu).fit(X, Y)
    new = data(seed=1)[0]
    assert_allclose(ours.predict(new), theirs.predict(new), atol=1e-7)
    assert ours.certificate_.converged
    assert ours.certificate_.precision.count("torch on cpu in double mode") == 1


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_intercepts_and_targets_as_on_the_host(solver: str, intercept: bool, weighted: bool, cpu: Any) -> None:
    X, Y, w = data()
    here, there = (
        ridge(solver, fit_intercept=intercept, device=device).fit(X, Y, w if weighted else None)
        for device in (None, cpu)
    )
    new = data(seed=1)[0]
    ours, bound = there.predict(new, return_bound=True)
    assert_allclose(ours, here.predict(new), atol=1e-7)
    assert_allclose(there.intercept_, here.intercept_, atol=1e-7)
    assert_allclose(there.noise_variance_, here.noise_variance_, rtol=1e-6)
    assert np.all(
        np.abs(ours - ridge("eigh", fit_intercept=intercept).fit(X, Y, w if weighted else None).predict(new)) <= bound
    )
    assert isinstance(there.dual_coef_, np.ndarray)
    assert there.X_fit_ is not None


@pytest.mark.parametrize(
    "kernel",
    [
        Linear(),
        Polynomial(2, 0.5, 1.0),
        Laplacian(0.2),
        Matern(1.5, 2.0),
        RationalQuadratic(1.0, 2.0),
        Gaussian(0.2) + Linear(),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_other_kernels(kernel: Any, solver: str, cpu: Any) -> None:
    X, Y, _ = data()
    here, there = (
        ridge(solver, kernel=kernel, gamma=None, tol=1e-9, device=device).fit(X, Y) for device in (None, cpu)
    )
    new = data(seed=1)[0]
    assert_allclose(there.predict(new), here.predict(new), atol=1e-6)


def test_standard_deviations_and_scores_as_on_the_host(cpu: Any) -> None:
    X, Y, _ = data()
    here, there = (ridge(fit_intercept=True, device=device).fit(X, Y) for device in (None, cpu))
    ours, theirs = (model.predict(X[:9], return_std=True)[1] for model in (there, here))
    assert_allclose(ours, theirs, atol=1e-9)
    assert there.score(X, Y) == pytest.approx(here.score(X, Y), abs=1e-9)


def test_no_penalty_warns_with_the_rank(cpu: Any) -> None:
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    with pytest.warns(NumericalWarning, match="has rank 3"):
        model = ridge(alpha=0.0, device=cpu).fit(X, np.array([1.0, 2.0, 2.0, 3.0]))
    assert_allclose(model.predict(X), [1.0, 2.0, 2.0, 3.0], atol=1e-10)


def test_an_indefinite_kernel_is_solved_by_eigenvectors_and_told(cpu: Any) -> None:
    X, Y, _ = data(60)
    params = {"kernel": "sigmoid", "gamma": 1.0, "coef0": -2.0, "alpha": 0.3}
    with pytest.warns(NumericalWarning, match="indefinite"):
        here = KernelRidge(**params).fit(X, Y)
    with pytest.warns(NumericalWarning, match="indefinite"):
        there = KernelRidge(**params, device=cpu).fit(X, Y)
    assert_allclose(there.predict(X), here.predict(X), atol=1e-8)


@pytest.mark.parametrize("as_object", [False, True])
def test_tensors_in_tensors_out(as_object: bool, torch: Any) -> None:
    X, Y, w = data()
    here = ridge(fit_intercept=True).fit(X, Y, w)
    model = ridge(fit_intercept=True, device=torch.device("cpu") if as_object else None)
    model.fit(*(torch.from_numpy(a) for a in (X, Y, w)))
    for name in ("dual_coef_", "X_fit_", "intercept_", "noise_variance_"):
        assert isinstance(getattr(model, name), torch.Tensor)
        assert_allclose(getattr(model, name).numpy(), getattr(here, name), atol=1e-9)
    new = data(seed=1)[0]
    answers = model.predict(torch.from_numpy(new), return_std=True, return_bound=True)
    assert all(isinstance(answer, torch.Tensor) for answer in answers)
    assert_allclose(answers[0].numpy(), here.predict(new), atol=1e-9)
    assert isinstance(model.predict(new), np.ndarray)
    assert model.score(torch.from_numpy(X), torch.from_numpy(Y)) == pytest.approx(here.score(X, Y), abs=1e-9)


def test_a_fit_to_arrays_after_one_to_tensors_leaves_no_tensor(torch: Any) -> None:
    X, Y, _ = data()
    model = ridge().fit(torch.from_numpy(X), torch.from_numpy(Y)).fit(X, Y)
    assert isinstance(model.dual_coef_, np.ndarray)
    assert isinstance(model.predict(torch.from_numpy(X)), torch.Tensor)


def test_a_fitted_model_is_copied_and_pickled(cpu: Any, torch: Any) -> None:
    X, Y, _ = data()
    model = ridge(device=cpu).fit(torch.from_numpy(X), Y)
    again = pickle.loads(pickle.dumps(model))
    assert clone(model).device == cpu
    assert_allclose(again.predict(X), model.predict(X))


def test_a_file_is_read_block_by_block(tmp_path: Any, cpu: Any) -> None:
    X, Y, _ = data()
    np.save(tmp_path / "x.npy", X)
    here, there = (
        ridge("landmarks", n_landmarks=40, device=device).fit(tmp_path / "x.npy", Y) for device in (None, cpu)
    )
    assert_allclose(there.predict(tmp_path / "x.npy"), here.predict(X), atol=1e-6)


@pytest.mark.parametrize("solver", ["eigh", "cg", "landmarks"])
@pytest.mark.parametrize("weighted", [False, True])
def test_choosing_as_on_the_host(solver: str, weighted: bool, cpu: Any) -> None:
    X, Y, w = data()
    params = {"gamma": [0.05, 0.3], "fit_intercept": True, "solver": solver, "alphas": np.geomspace(1e-3, 10, 9)}
    here, there = (KernelRidgeCV(**params, device=device).fit(X, Y, w if weighted else None) for device in (None, cpu))
    assert there.alpha_ == here.alpha_
    assert there.gamma_ == here.gamma_
    assert_allclose(there.scores_, here.scores_, rtol=1e-2 if solver == "cg" else 1e-5)  # of which 1e-3 is enough
    assert_allclose(there.predict(X), here.predict(X), atol=1e-5)
    assert "torch on cpu" in there.certificate_.precision


@pytest.mark.parametrize("criterion", ["loo", "gcv", "marginal_likelihood"])
@pytest.mark.parametrize("intercept", [False, True])
def test_every_criterion_from_one_decomposition(criterion: str, intercept: bool, cpu: Any) -> None:
    X, Y, w = data()
    params = {"gamma": 0.3, "fit_intercept": intercept, "criterion": criterion, "alphas": np.geomspace(1e-4, 10, 7)}
    here, there = (KernelRidgeCV(**params, device=device).fit(X, Y, w) for device in (None, cpu))
    for name in ("loo", "gcv", "log_marginal_likelihood", "dof", "coef", "intercept", "noise_variance"):
        assert_allclose(getattr(there.path_, name), getattr(here.path_, name), rtol=1e-7, atol=1e-8)
    assert_allclose(there.best_score_, here.best_score_, rtol=1e-8)


def test_errors_of_rows_left_out_are_those_of_fits_without_them(cpu: Any) -> None:
    X, Y, _ = data(25)
    task = KernelProblem(Gaussian(0.3), X, Y, None, np.ones(2), False, device=cpu)
    errors = eigen_system(task).errors(np.full(2, 0.2))
    for i in range(0, 25, 6):
        rest = np.arange(25) != i
        left = SklearnKernelRidge(alpha=0.2, kernel="rbf", gamma=0.3).fit(X[rest], Y[rest])
        assert_allclose(errors[i], (Y[i] - left.predict(X[i : i + 1]))[0], atol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("criterion", ["loo", "accuracy"])
def test_classes_as_on_the_host(classes: int, criterion: str, cpu: Any) -> None:
    X, Y, _ = data()
    labels = np.digitize(Y[:, 0], np.quantile(Y[:, 0], np.arange(1, classes) / classes))
    params = {"gamma": [0.1, 0.5], "criterion": criterion, "alphas": [0.01, 0.1, 1.0]}
    here, there = (KernelRidgeClassifier(**params, device=device).fit(X, labels) for device in (None, cpu))
    new = data(seed=1)[0]
    assert np.array_equal(there.predict(new), here.predict(new))
    assert_allclose(there.predict_proba(new), here.predict_proba(new), atol=1e-7)
    assert there.score(X, labels) == here.score(X, labels)


def test_classes_of_tensors(torch: Any) -> None:
    X, Y, _ = data()
    labels = (Y[:, 0] > 0.5).astype(int) + (Y[:, 1] > 0.5)
    here = KernelRidgeClassifier(gamma=0.3).fit(X, labels)
    model = KernelRidgeClassifier(gamma=0.3).fit(torch.from_numpy(X), torch.from_numpy(labels))
    there = torch.from_numpy(X)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        answer = getattr(model, name)(there)
        assert isinstance(answer, torch.Tensor)
        assert_allclose(answer.numpy(), getattr(here, name)(X), atol=1e-9)
    assert isinstance(model.classes_, torch.Tensor)
    assert model.score(there, torch.from_numpy(labels)) == here.score(X, labels)


def test_names_of_classes_stay_numpys(torch: Any) -> None:
    X, Y, _ = data()
    labels = np.where(Y[:, 0] > 0.5, "high", "low")
    model = KernelRidgeClassifier(gamma=0.3).fit(torch.from_numpy(X), labels)
    assert set(model.predict(torch.from_numpy(X))) <= {"high", "low"}


def product(a: Any, b: Any) -> float:
    return float(a @ b)


@pytest.mark.parametrize("kernel", ["precomputed", product])
def test_kernels_without_a_formula_are_refused_or_left_to_the_cpu(kernel: Any, cpu: Any) -> None:
    X, Y, _ = data(40)
    K = X @ X.T if kernel == "precomputed" else X
    with pytest.raises(ValueError, match="device='cpu'"):
        KernelRidge(kernel=kernel, device=cpu).fit(K, Y)
    auto = KernelRidge(kernel=kernel, device="auto").fit(K, Y)
    assert_allclose(auto.predict(K), KernelRidge(kernel=kernel).fit(K, Y).predict(K))


def test_one_of_several_kernels_without_a_formula_is_refused(cpu: Any) -> None:
    X, Y, _ = data(40)
    with pytest.raises(ValueError, match="no formula"):
        KernelRidgeCV(kernel=["rbf", product], device=cpu).fit(X, Y)


def test_sparse_rows_are_refused_or_left_to_the_cpu(cpu: Any) -> None:
    X, Y, _ = data(40)
    with pytest.raises(ValueError, match="CPU"):
        ridge(device=cpu).fit(sp.csr_array(X), Y)
    with pytest.raises(ValueError, match="CPU"):
        ridge(device=cpu).fit(X, Y).predict(sp.csr_array(X))
    auto = ridge(device="auto").fit(sp.csr_array(X), Y)
    assert_allclose(auto.predict(X), ridge().fit(X, Y).predict(X), atol=1e-12)


def test_a_device_that_is_not_there_is_named() -> None:
    X, Y, _ = data(20)
    for device in ("cuda:99", "nonsense"):
        with pytest.raises(ValueError, match=f"device '{device}' cannot be used"):
            ridge(device=device).fit(X, Y)


@pytest.mark.parametrize("solver", ["eigh", "cholesky"])
def test_what_does_not_fit_on_the_device_is_refused_with_figures(
    solver: str, cpu: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, Y, _ = data()
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 2**18)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    nbytes = decomposition_bytes(150) if solver == "eigh" else device_factor_bytes(150)
    figure = f"{nbytes / 2**20:.1f} MiB on torch on cpu, where 0.2 MiB are free"
    with pytest.raises(MemoryError, match=f"solver='{solver}' on 150 rows would take {figure}. Use solver='cg'"):
        ridge(solver, device=cpu).fit(X, Y)
    with pytest.raises(MemoryError, match=r"kernel.*150 rows"):
        KernelRidgeCV(device=cpu, solver="eigh").fit(X, Y)


@pytest.mark.parametrize(
    ("n", "solver"), [(20_000, "cholesky"), (120_000, "cholesky"), (170_000, "cg"), (200_000, "cg")]
)
def test_the_rule_on_a_gpu(n: int, solver: str, h200: PretendedGPU) -> None:
    found, reason = choose_solver(n, "auto", device=h200)
    assert found == solver
    assert "a GPU" in reason


def test_the_rule_for_more_rows(h200: PretendedGPU) -> None:
    assert [choose_solver(n, "auto", device=h200)[0] for n in (10**6, 3 * 10**6, 10**7)] == ["cg", "cg", "landmarks"]
    assert choose_solver(100, "eigh", device=h200)[0] == "eigh"
    assert [choose_solver(n, "auto", device=h200, every_alpha=True)[0] for n in (20_000, 50_000, 10**7)] == [
        "eigh",
        "cg",
        "landmarks",
    ]


@pytest.mark.parametrize("solver", SOLVERS)
def test_on_cuda_as_on_the_host(solver: str, cuda: Any, torch: Any) -> None:
    X, Y, w = data(2000)
    here = ridge(solver, fit_intercept=True, n_landmarks=300).fit(X, Y, w)
    there = ridge(solver, fit_intercept=True, n_landmarks=300)
    there.fit(*(torch.from_numpy(a).to(cuda) for a in (X, Y, w)))
    answer = there.predict(torch.from_numpy(X).to(cuda))
    assert answer.device == cuda
    assert_allclose(answer.cpu().numpy(), here.predict(X), atol=1e-2 if solver == "landmarks" else 1e-6)
    assert there.certificate_.device.startswith("cuda:0")
    chosen = KernelRidgeCV(gamma=[0.1, 0.3], device="cuda").fit(X, Y, w)
    assert chosen.alpha_ == pytest.approx(KernelRidgeCV(gamma=[0.1, 0.3]).fit(X, Y, w).alpha_, rel=1e-9)
