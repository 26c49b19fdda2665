"""What a path and its certificate say, each number against an evaluation of its own."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gramian.kernel_ridge.path import KernelEigen, automatic_alphas, eigen_system, refine
from gramian.kernel_ridge.problem import KernelProblem
from gramian.kernels import Gaussian
from oracles import Array

EPS = 2.0**-52
RNG = np.random.default_rng(4)
X, Y, W = RNG.normal(size=(14, 2)), RNG.normal(size=(14, 2)) + 1.0, RNG.uniform(0.3, 3.0, 14)
LAM = np.array([0.2, 3.0])


def task(intercept: bool = True) -> KernelProblem:
    return KernelProblem(Gaussian(0.4), X, Y, W, LAM, intercept, False)


def matrix(intercept: bool = True) -> tuple[Array, Array, float]:
    """B and ỹ from their definitions, and the length of what B was centred from."""
    K, H = Gaussian(0.4)(X), np.eye(14) - np.outer(np.ones(14), W / W.sum()) * intercept
    root = np.sqrt(W)[:, None]
    weighted = root * K * root.T
    return root * (H @ K @ H.T) * root.T, root * (H @ Y), float(np.linalg.norm(weighted)) * intercept


@pytest.mark.parametrize("intercept", [False, True])
def test_a_path_holds_roots_of_eigenvalues_and_its_factors(intercept: bool) -> None:
    path = eigen_system(task(intercept)).path(LAM)
    squares = np.linalg.eigvalsh(matrix(intercept)[0])[int(intercept) :]
    squares = np.maximum(squares, 0.0)
    roots = path.singular_values
    assert_allclose(roots**2, squares, atol=1e-13)
    assert_allclose(path.filter_factors, roots[:, None] / (roots[:, None] ** 2 + LAM), rtol=1e-12)
    assert_array_equal(path.alphas, LAM)


@pytest.mark.parametrize("intercept", [False, True])
def test_the_rounding_of_a_decomposition_is_counted(intercept: bool) -> None:
    """10ε(n σ₁² + τ + ‖√w K √w‖), τ twice the largest sum of a row of B and 0 without an intercept, as is the last."""
    B, _, size = matrix(intercept)
    tau = 2 * np.abs(B).sum(axis=1).max() * intercept
    known = 10 * EPS * (14 * np.linalg.eigvalsh(B)[-1] + tau + size)
    found = eigen_system(task(intercept))
    assert found.rounding == pytest.approx(known, rel=1e-9, abs=0)
    assert found.low == 0.0
    assert found.largest == pytest.approx(np.linalg.eigvalsh(B)[-1], rel=1e-12)


def test_what_rounding_can_make_of_errors_is_its_formula() -> None:
    """η(‖e‖ + √(nq/min d)) = δ and 2‖e‖δ + δ², of each target with its own λ."""
    system = eigen_system(task())
    errors = system.errors(LAM)
    B, targets, _ = matrix()
    u = np.sqrt(W / W.sum())
    least = max(np.linalg.eigvalsh(B)[1], 0.0)
    for j, lam in enumerate(LAM):
        inverse = np.linalg.inv(B + lam * np.eye(14))
        d = np.diag(inverse) - u**2 / lam  # without the direction that says nothing of the features
        e, q = np.sqrt(W @ errors[:, j] ** 2), targets[:, j] @ inverse @ targets[:, j]
        moved = 0.1 * system.rounding / (least + lam) * (e + np.sqrt(14 * q / d.min()))
        known = (2 * e + moved) * moved
        assert system.find_lost_errors(LAM, errors)[j] == pytest.approx(known, rel=1e-7, abs=0)
    both = np.array([3.0, 3.0])
    alone = system.find_lost_errors(both, system.errors(both))
    assert alone[1] == pytest.approx(system.find_lost_errors(LAM, errors)[1], rel=1e-9, abs=0)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_refined_solution_says_what_was_done(intercept: bool) -> None:
    problem, (B, targets, _) = task(intercept), matrix(intercept)
    known = np.column_stack([np.linalg.solve(B + lam * np.eye(14), t) for lam, t in zip(LAM, targets.T, strict=True)])
    exact = eigen_system(problem)
    found = refine(exact, problem, "because", 1e-6)
    c = found.certificate
    assert_allclose(found.beta, known, rtol=1e-9, atol=1e-11)
    assert (c.passes, c.iterations, c.reason, c.tolerance) == (2, 0, "because", 1e-6)
    squares = np.maximum(np.linalg.eigvalsh(B)[int(intercept) :], 0.0)
    assert c.condition == pytest.approx((squares[-1] + 0.2) / (squares[0] + 0.2), rel=1e-9)
    assert c.worst < 1e-13


def turned(system: KernelEigen, by: float) -> KernelEigen:
    """The system with eigenvalues that are off by a factor."""
    return replace(system, filter=replace(system.filter, squares=system.filter.squares * (1 + by)))


def test_a_decomposition_that_is_a_little_off_is_corrected_by_one_more_pass() -> None:
    problem, (B, targets, _) = task(), matrix()
    exact = eigen_system(problem)
    first = refine(turned(exact, 1e-4), problem, "", 1e-1)  # within a hundredth of the tolerance: left as it is
    assert first.certificate.passes == 2
    off = targets - (B @ first.beta + LAM * first.beta)
    known = np.linalg.norm(off, axis=0) / np.linalg.norm(targets, axis=0)
    assert_allclose(first.certificate.residuals, known, rtol=1e-6)
    better = refine(turned(exact, 1e-4), problem, "", 1e-6)
    assert better.certificate.passes == 3
    off = targets - (B @ better.beta + LAM * better.beta)
    known = np.linalg.norm(off, axis=0) / np.linalg.norm(targets, axis=0)
    assert_allclose(better.certificate.residuals, known, rtol=1e-4)
    assert better.certificate.worst < 1e-3 * first.certificate.worst
    worst = first.certificate.worst
    assert [refine(turned(exact, 1e-4), problem, "", tol).certificate.passes for tol in (90 * worst, 110 * worst)] == [
        3,
        2,
    ]


def test_one_row_about_its_mean_leaves_no_eigenvalue_and_is_well_conditioned() -> None:
    problem = KernelProblem(Gaussian(0.4), X[:1], Y[:1], None, LAM, True, True)
    found = eigen_system(problem)
    assert len(found.filter.squares) == 0
    assert refine(found, problem, "", 1e-9).certificate.condition == 1.0


def test_a_correction_that_makes_a_target_worse_is_not_taken_for_it() -> None:
    """Eigenvalues three times too small: a step overshoots at a small λ, and helps at a large one."""
    problem = replace(task(), lam=np.array([1e-6, 50.0]))
    wrong = turned(eigen_system(problem), -0.7)
    plain, found = wrong.beta(problem.lam), refine(wrong, problem, "", 1e-12)
    assert_array_equal(found.beta[:, 0], plain[:, 0])
    assert not np.array_equal(found.beta[:, 1], plain[:, 1])
    assert found.certificate.residuals[0] > 1.0 > 0.2 > found.certificate.residuals[1]


def test_alphas_span_the_same_shares_of_any_largest_eigenvalue() -> None:
    for largest in (1e-300, 0.5, 7.0):
        found = automatic_alphas(largest)
        assert len(found) == 30
        assert_allclose(found[[0, -1]] / largest, [1e-10, 1.0], rtol=1e-9)
    assert_allclose(automatic_alphas(0.0)[[0, -1]], [0.1, 10.0], rtol=1e-12)
    assert_allclose(automatic_alphas(2.0, (0.25, 4.0, 3)), [0.5, 2.0, 8.0], rtol=1e-12)
