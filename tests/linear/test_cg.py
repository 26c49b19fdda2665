"""Block conjugate gradients: as few steps as the theory says, true residuals, and what happens when things go wrong."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.linalg import cg
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

from gramian.kernels import Gaussian
from gramian.linear.cg import ConjugateGradients
from gramian.linear.preconditioners import Nystrom, scale_factor
from gramian.operators import Data, FeatureCentred, KernelOperator
from gramian.spectral.rpcholesky import PivotedCholesky, rp_cholesky


class Watched(Data):
    """A matrix that notes how many columns each product has, and may interrupt one."""

    def __init__(self, M: np.ndarray, stop_at: int = -1) -> None:
        super().__init__(M)
        self.widths: list[int] = []
        self.stop_at = stop_at

    def matmat(self, V: Any) -> Any:
        self.widths.append(V.shape[1])
        if len(self.widths) == self.stop_at:
            raise KeyboardInterrupt
        return super().matmat(V)


def with_values(values: np.ndarray, seed: int = 0) -> np.ndarray:
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))[0]
    K = (Q * values) @ Q.T
    return np.asarray((K + K.T) / 2)


def sides(n: int, t: int = 1, seed: int = 9) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, t))


def points(n: int, d: int = 3) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, d))


def true_residuals(K: np.ndarray, lam: Any, X: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(B - K @ X - lam * X, axis=0) / np.linalg.norm(B, axis=0))


def test_as_many_steps_as_distinct_eigenvalues() -> None:
    K = with_values(np.repeat([0.0, 1.0, 3.0, 10.0], 20))
    c = ConjugateGradients(1e-10)(Data(K), sides(80), 1.0).certificate
    assert c.iterations == 4
    assert c.converged


def test_steps_are_within_the_bound_and_those_of_scipy() -> None:
    K, lam, b = with_values(np.geomspace(100, 1e-3, 150)), 0.1, sides(150)
    steps: list[int] = []
    theirs = cg(K + lam * np.eye(150), b[:, 0], rtol=5e-9, atol=0.0, callback=lambda x: steps.append(1))[0]
    found = ConjugateGradients(1e-8)(Data(K), b, lam)
    kappa = 100.1 / 0.101
    rate = (math.sqrt(kappa) - 1) / (math.sqrt(kappa) + 1)
    # ‖r‖/‖b‖ ≤ 2√κ rateᵏ
    assert found.certificate.iterations <= math.log(0.5e-8 / (2 * math.sqrt(kappa))) / math.log(rate) + 1
    assert abs(found.certificate.iterations - len(steps)) <= 2
    assert_allclose(found.values[:, 0], theirs, atol=1e-6)


def test_a_path_of_shifts_costs_the_products_of_its_slowest_and_done_columns_leave() -> None:
    K, lam = with_values(np.geomspace(100, 1e-4, 120)), np.geomspace(1e-1, 1e3, 7)
    A, B = Watched(K), np.repeat(sides(120), 7, axis=1)
    path = ConjugateGradients(1e-8)(A, B, lam)
    alone = [ConjugateGradients(1e-8)(Data(K), B[:, :1], value).certificate.iterations for value in lam]
    assert abs(path.certificate.iterations - max(alone)) <= 3  # other products, other rounding
    assert path.certificate.passes == path.certificate.iterations + 1 == len(A.widths)
    widths = A.widths[:-1]  # the last product measures all columns
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == A.widths[-1] == 7
    assert widths[-1] == 1
    assert_allclose(true_residuals(K, lam, path.values, B), path.certificate.residuals, atol=1e-13)
    assert path.certificate.converged


def test_a_twin_does_the_products_and_float64_has_the_last_word() -> None:
    X = points(600)
    A = KernelOperator(Gaussian(0.3), X, store=False)
    twin = KernelOperator(Gaussian(0.3), X, dtype=np.float32, store=False)
    found = ConjugateGradients(1e-10)(A, sides(600), 0.05, twin=twin)
    c = found.certificate
    assert c.converged  # a relative residual that no float32 can see
    assert twin.passes == c.iterations
    assert A.passes <= 6
    assert c.passes == A.passes + twin.passes
    K = A.to_dense()
    assert_allclose(true_residuals(K, 0.05, found.values, sides(600)), c.residuals, atol=1e-13)
    assert any("times in float64" in note for note in c.notes)


@pytest.mark.parametrize("kind", ["another matrix", "indefinite", "nothing"])
def test_a_twin_that_is_none_is_given_up(kind: str) -> None:
    K = with_values(np.geomspace(10, 0.01, 60))
    twin = {"another matrix": with_values(np.geomspace(10, 0.01, 60), 1), "indefinite": -K, "nothing": 0 * K}[kind]
    found = ConjugateGradients(1e-9)(Data(K), sides(60, 2), 0.1, twin=Data(twin.astype(np.float32)))
    assert found.certificate.converged
    assert_allclose(found.values, np.linalg.solve(K + 0.1 * np.eye(60), sides(60, 2)), atol=1e-6)
    assert "float64 took over" in found.certificate.notes[-1]


def test_a_preconditioner_spares_steps() -> None:
    X, w = points(400), np.random.default_rng(1).uniform(0.5, 2.0, 400)
    K = KernelOperator(Gaussian(0.3), X)
    A, lam = FeatureCentred(K, w), np.array([1.0, 0.01])
    F = scale_factor(rp_cholesky(K.diagonal(), K.columns, 150).factor, w, centre=True)
    plain = ConjugateGradients(1e-8)(A, sides(400, 2), lam).certificate
    found = ConjugateGradients(1e-8)(A, sides(400, 2), lam, preconditioner=Nystrom(F, lam))
    assert found.certificate.iterations < plain.iterations / 4
    assert found.certificate.converged
    assert "preconditioner of rank 150" in found.certificate.notes
    assert found.certificate.method.startswith("preconditioned")


def test_starting_from_the_solution_takes_one_product_and_a_bad_start_is_ignored() -> None:
    K, b = with_values(np.geomspace(10, 0.1, 50)), sides(50, 2)
    x = np.linalg.solve(K + np.eye(50), b)
    found = ConjugateGradients()(Data(K), b, 1.0, start=x)
    assert (found.certificate.passes, found.certificate.iterations) == (1, 0)
    assert_allclose(found.values, x)
    plain = ConjugateGradients()(Data(K), b, 1.0)
    bad = ConjugateGradients()(Data(K), b, 1.0, start=1e9 * x)
    assert bad.certificate.iterations == plain.certificate.iterations
    near = ConjugateGradients()(Data(K), b[:, 0], 1.0, start=x[:, 0] * (1 + 1e-3))
    assert near.certificate.iterations < plain.certificate.iterations
    with pytest.raises(ValueError, match=r"\(50, 2\)"):
        ConjugateGradients()(Data(K), b, 1.0, start=np.zeros((50, 3)))


def test_too_few_iterations_are_said_with_figures_and_a_remedy() -> None:
    K, B = with_values(np.geomspace(1000, 1e-4, 100)), sides(100, 2)
    message = r"[12] of 2 .* after 5 iterations.*max_iterations=5.*alpha"
    with pytest.warns(ConvergenceWarning, match=message):
        found = ConjugateGradients(1e-9, max_iterations=5)(Data(K), B, [1e-3, 1e-2])
    assert not found.certificate.converged
    assert_allclose(true_residuals(K, [1e-3, 1e-2], found.values, B), found.certificate.residuals, rtol=1e-10)
    assert np.all(found.certificate.residuals <= 1.0)  # never worse than 0


def test_a_singular_system_that_has_no_solution_ends_with_a_warning() -> None:
    K = with_values(np.append(np.linspace(1, 2, 19), 0.0))
    with pytest.warns(ConvergenceWarning):
        found = ConjugateGradients()(Data(K), sides(20), 0.0)
    assert np.isfinite(found.values).all()


def test_a_singular_system_that_has_one_is_solved() -> None:
    K = with_values(np.append(np.linspace(1, 2, 19), 0.0))
    found = ConjugateGradients(1e-9)(Data(K), K @ sides(20), 0.0)
    assert found.certificate.converged
    assert_allclose(found.values, np.linalg.pinv(K, rcond=1e-10) @ (K @ sides(20)), atol=1e-7)


def test_ctrl_c_goes_through_and_leaves_blas_as_it_was() -> None:
    before = [library["num_threads"] for library in threadpool_info()]
    A = Watched(with_values(np.geomspace(1000, 1e-4, 100)), stop_at=4)
    with pytest.raises(KeyboardInterrupt):
        ConjugateGradients(1e-9)(A, sides(100), 1e-3)
    assert [library["num_threads"] for library in threadpool_info()] == before


def test_progress_is_reported() -> None:
    seen: list[tuple[int, float]] = []
    K = with_values(np.geomspace(100, 1e-2, 60))
    solver = ConjugateGradients(1e-7, report=lambda i, worst: seen.append((i, worst)))
    c = solver(Data(K), sides(60, 2), 0.1).certificate
    assert [i for i, _ in seen] == list(range(1, c.iterations + 1))
    assert seen[-1][1] <= 1e-7 < seen[0][1]


class Factors:
    """Pivoted factors of a kernel matrix, each continuing the last; at most so many columns."""

    def __init__(self, K: KernelOperator, most: int = 10**6) -> None:
        self.K, self.most, self.asked = K, most, []  # type: ignore[var-annotated]
        self.found: PivotedCholesky | None = None

    def __call__(self, rank: int) -> np.ndarray:
        self.asked.append(rank)
        self.found = rp_cholesky(self.K.diagonal(), self.K.columns, min(rank, self.most), start=self.found)
        return self.found.factor


def test_the_rank_grows_while_that_pays() -> None:
    K = KernelOperator(Gaussian(1.0), points(800, 3))
    b = sides(800)
    factors = Factors(K)
    small = Factors(K, most=94)  # as many as it begins with
    found = ConjugateGradients()(K, b, 1e-3, grow=factors)
    fixed = ConjugateGradients()(K, b, 1e-3, grow=small)
    assert factors.asked[:2] == [94, 188]
    assert found.certificate.iterations < fixed.certificate.iterations / 2
    assert found.certificate.converged
    assert fixed.certificate.converged
    assert f"preconditioner of rank {factors.asked[-1]}" in found.certificate.notes
    assert small.asked == [94, 188]  # asked once for more, and not again
    easy = Factors(K)
    assert ConjugateGradients()(K, b, 100.0, grow=easy).certificate.converged
    assert easy.asked == [94]


def test_the_rank_stays_within_its_limit() -> None:
    K = KernelOperator(Gaussian(1.0), points(800, 3))
    factors = Factors(K)
    c = ConjugateGradients(max_rank=130)(K, sides(800), 1e-3, grow=factors).certificate
    assert factors.asked == [94, 130]
    assert c.converged
    tiny = Factors(K)
    ConjugateGradients(max_rank=20)(K, sides(800), 1.0, grow=tiny)
    assert tiny.asked == [20]


def test_a_twin_of_another_shape_or_shifts_of_another_number_are_refused() -> None:
    A = Data(np.eye(4))
    with pytest.raises(ValueError, match=r"\(3, 3\)"):
        ConjugateGradients()(A, np.ones((4, 1)), 1.0, twin=Data(np.eye(3)))
    with pytest.raises(ValueError, match=r"the 2.*got 3"):
        ConjugateGradients()(A, np.ones((4, 2)), [1.0, 2.0, 3.0])
