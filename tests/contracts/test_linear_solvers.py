"""What every solver of (A + λI)x = b must satisfy: written once, run for each solver and operator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from gramian.kernels import Gaussian
from gramian.linear.cg import ConjugateGradients
from gramian.linear.cholesky import Cholesky
from gramian.linear.preconditioners import Nystrom
from gramian.operators import Data, FeatureCentred, Gram, KernelOperator, Operator
from gramian.results import NumericalWarning, Solution

TOL = 1e-8
Solver = Callable[[Operator, Any, float], Solution]


def low_rank(A: Operator, r: int) -> np.ndarray:
    """The best factor of a rank, by LAPACK."""
    values, vectors = np.linalg.eigh(A @ np.eye(A.shape[0]))
    return np.asarray(vectors[:, -r:] * np.sqrt(np.maximum(values[-r:], 0)))


def single(A: Operator) -> Operator:
    return Data((A @ np.eye(A.shape[0])).astype(np.float32))


def preconditioned(A: Operator, B: Any, lam: float) -> Solution:
    return ConjugateGradients(TOL)(A, B, lam, preconditioner=Nystrom(low_rank(A, min(5, A.shape[0])), lam))


def twinned(A: Operator, B: Any, lam: float) -> Solution:
    return ConjugateGradients(TOL)(A, B, lam, twin=single(A))


def both(A: Operator, B: Any, lam: float) -> Solution:
    M = Nystrom(low_rank(A, min(5, A.shape[0])), lam)
    return ConjugateGradients(TOL)(A, B, lam, preconditioner=M, twin=single(A))


def growing(A: Operator, B: Any, lam: float) -> Solution:
    return ConjugateGradients(TOL)(A, B, lam, grow=lambda r: low_rank(A, r), twin=single(A))


SOLVERS: dict[str, Solver] = {
    "cholesky": Cholesky(TOL),
    "cholesky-float32": Cholesky(TOL, precision="float32"),
    "cholesky-float64": Cholesky(TOL, precision="float64"),
    "cg": ConjugateGradients(TOL),
    "cg-preconditioned": preconditioned,
    "cg-twin": twinned,
    "cg-preconditioned-twin": both,
    "cg-growing": growing,
}


def points(n: int = 120, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 3))


def operators() -> dict[str, Operator]:
    rng = np.random.default_rng(1)
    X, w = points(), rng.uniform(0.2, 3.0, 120)
    spd = rng.standard_normal((40, 40))
    return {
        "kernel": KernelOperator(Gaussian(0.3), X),
        "kernel, odd": KernelOperator(Gaussian(0.3), X[:, :2][:71], store=False),
        "centred": FeatureCentred(KernelOperator(Gaussian(0.3), X)),
        "weighted": FeatureCentred(KernelOperator(Gaussian(0.3), X), w, centre=False),
        "weighted, centred": FeatureCentred(KernelOperator(Gaussian(0.3), X), w),
        "centred matrix": FeatureCentred(Data(Gaussian(0.3)(X)), w),
        "gram of data": Gram(Data(rng.standard_normal((90, 25)))),
        "gram, singular": Gram(Data(rng.standard_normal((10, 25)))),
        "matrix": Data(spd @ spd.T),
        "one number": Data(np.array([[3.0]])),
    }


@pytest.fixture(params=list(operators()))
def A(request: pytest.FixtureRequest) -> Operator:
    return operators()[request.param]


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("lam", [2.0, 0.05])
def test_solutions_agree_with_lapack_and_residuals_are_as_reported(name: str, A: Operator, lam: float) -> None:
    n = A.shape[0]
    B = np.random.default_rng(2).standard_normal((n, 3)) * [1.0, 1e-6, 1e5]
    found = SOLVERS[name](A, B, lam)
    S = A @ np.eye(n) + lam * np.eye(n)
    c, size = found.certificate, np.linalg.norm(B, axis=0)
    measured = np.linalg.norm(B - S @ found.values, axis=0) / size
    assert c.converged
    assert np.all(measured <= TOL * 1.001)
    np.testing.assert_allclose(measured, c.residuals, atol=4 * c.rounding + 1e-14)
    # ‖x̂ − x‖ ≤ ‖r‖/λ_min, and λ_min ≥ λ
    error = np.linalg.norm(found.values - np.linalg.solve(S, B), axis=0)
    assert np.all(error <= (measured + 1e-13) * size / lam)
    assert c.passes >= 1


@pytest.mark.parametrize("name", SOLVERS)
def test_a_right_hand_side_of_zero_has_the_solution_zero(name: str) -> None:
    A = operators()["weighted, centred"]
    B = np.zeros((120, 3))
    B[:, 1] = points()[:, 0]
    found = SOLVERS[name](A, B, 0.5)
    assert np.all(found.values[:, [0, 2]] == 0.0)
    assert found.certificate.residuals[[0, 2]].tolist() == [0.0, 0.0]
    assert found.certificate.converged
    nothing = SOLVERS[name](A, np.zeros((120, 1)), 0.5)
    assert nothing.certificate.converged
    assert not np.any(nothing.values)


@pytest.mark.parametrize("name", SOLVERS)
def test_columns_do_not_disturb_each_other_and_a_vector_stays_one(name: str) -> None:
    A, B = operators()["kernel"], points()
    together = SOLVERS[name](A, B, 0.3).values
    for j in range(3):
        alone = SOLVERS[name](A, B[:, j], 0.3).values
        assert alone.shape == (120,)
        np.testing.assert_allclose(alone, together[:, j], atol=2 * TOL * np.linalg.norm(B[:, j]) / 0.3)


@pytest.mark.parametrize("name", SOLVERS)
def test_the_same_problem_gives_the_same_bits(name: str) -> None:
    a, b = (SOLVERS[name](operators()["centred"], points(), 0.1).values for _ in range(2))
    assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("scale", [1e-25, 1e25])
def test_units_do_not_matter(name: str, scale: float) -> None:
    """scale·A, scale·λ: the same residuals, and a solution in the units of b over those of A."""
    K = Gaussian(0.3)(points())
    b = points()[:, :1]
    found = SOLVERS[name](Data(scale * K), 1e-20 * b, scale * 0.5)
    want = np.linalg.solve(K + 0.5 * np.eye(120), b)
    assert found.certificate.converged
    np.testing.assert_allclose(found.values * (scale * 1e20), want, atol=1e-6)


@pytest.mark.parametrize("name", SOLVERS)
def test_an_indefinite_operator_is_named_as_such(name: str) -> None:
    rng = np.random.default_rng(3)
    Q = np.linalg.qr(rng.standard_normal((50, 50)))[0]
    A = Data((Q * np.append(np.linspace(1, 5, 49), -2.0)) @ Q.T)
    with pytest.raises(np.linalg.LinAlgError, match=r"not positive definite.*(negative eigenvalue|negative curvature)"):
        SOLVERS[name](A, rng.standard_normal((50, 2)), 0.5)
    good = SOLVERS[name](A, rng.standard_normal((50, 2)), 2.5)  # a shift above 2 makes it definite
    assert good.certificate.converged


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize(
    ("B", "lam", "message"),
    [
        (np.ones((4, 1)), 1.0, r"operator with 5 rows have the shape \(5, t\), got \(4, 1\)"),
        (np.ones((5, 1, 1)), 1.0, "got"),
        (np.array([1.0, 2.0, np.nan, 1.0, 1.0]), 1.0, "row 3, column 1 is nan"),
        (np.ones((5, 1)), -1.0, "not negative; got -1.0"),
        (np.ones((5, 1)), np.inf, "finite"),
    ],
)
def test_bad_input_is_refused_by_name(name: str, B: Any, lam: float, message: str) -> None:
    solver = {"cg-preconditioned": ConjugateGradients(), "cg-preconditioned-twin": ConjugateGradients()}
    with pytest.raises(ValueError, match=message):
        solver.get(name, SOLVERS[name])(Data(np.eye(5)), B, lam)
    with pytest.raises(ValueError, match="square"):
        solver.get(name, Cholesky())(Data(np.ones((3, 2))), np.ones((3, 1)), 1.0)


@pytest.mark.parametrize("name", ["cholesky", "cg", "cg-preconditioned"])
def test_tensors_are_solved_where_they_live(name: str, torch: Any) -> None:
    K = Gaussian(0.3)(points(40))
    A, b = Data(torch.asarray(K)), torch.asarray(points(40)[:, :1])
    if name == "cg-preconditioned":
        found = ConjugateGradients(TOL)(A, b, 0.5, preconditioner=Nystrom(low_rank(Data(K), 5), 0.5))
    else:
        found = SOLVERS[name](A, b, 0.5)
    assert isinstance(found.values, torch.Tensor)
    np.testing.assert_allclose(found.values.numpy(), np.linalg.solve(K + 0.5 * np.eye(40), b.numpy()), atol=1e-6)


@given(
    n=st.integers(1, 40),
    seed=st.integers(0, 1000),
    decay=st.floats(0.2, 1.0),
    lam=st.floats(1e-6, 100.0),
    rank=st.integers(0, 40),
)
def test_any_spectrum_is_solved_or_the_miss_is_said(n: int, seed: int, decay: float, lam: float, rank: int) -> None:
    """Residuals as reported are true for any spectrum, and a solution that is not good enough is never silent."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.where(np.arange(n) < rank, 10 * decay ** np.arange(n), 0.0)
    K = (Q * values) @ Q.T
    K = (K + K.T) / 2
    B = rng.standard_normal((n, 2))
    for name, solver in SOLVERS.items():
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            found = solver(Data(K), B, lam)
        true = np.linalg.norm(B - K @ found.values - lam * found.values, axis=0) / np.linalg.norm(B, axis=0)
        assert np.all(np.abs(true - found.certificate.residuals) <= 4 * found.certificate.rounding + 1e-14), name
        said = any(issubclass(w.category, (NumericalWarning, ConvergenceWarning)) for w in seen)
        assert said != found.certificate.converged, name
        if name in ("cholesky", "cholesky-float64"):
            assert found.certificate.converged
