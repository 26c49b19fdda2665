"""Certificates of ridge regression: each formula against an evaluation of its own, each decision on both sides."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.ridge.certificate import (
    Gradient,
    RidgeFactor,
    bound_by_floor,
    certify,
    column_norms,
    gradient_scale,
    is_proved,
    measure_gradient,
    rounding_of_gradient,
)
from gramian.ridge.problem import RidgeProblem, row_weights
from gramian.sources import open_source

EPS = 2.0**-52
RNG = np.random.default_rng(8)
X = RNG.standard_normal((30, 3)) * [1.0, 4.0, 0.25]
Y = X @ RNG.standard_normal((3, 2)) + RNG.standard_normal((30, 2))
LAM = np.array([0.5, 2.0])


def problem(values: Any = X, targets: Any = Y, **options: Any) -> RidgeProblem:
    given = {"intercept": True, "gram": True, **options}
    weights = row_weights(given.pop("weights", None), len(targets))
    return RidgeProblem(open_source(values), targets, weights, **given)


def centred(values: Any = X, targets: Any = Y) -> tuple[Any, Any]:
    return values - values.mean(axis=0), targets - targets.mean(axis=0)


def solution(lam: Any = LAM) -> Any:
    A, B = centred()
    return np.column_stack([np.linalg.solve(A.T @ A + s * np.eye(3), A.T @ b) for s, b in zip(lam, B.T, strict=True)])


def test_lengths_are_those_of_columns() -> None:
    np.testing.assert_allclose(column_norms(np.array([[3.0, 0.0], [4.0, -2.0]])), [5.0, 2.0], rtol=1e-15)


@pytest.mark.parametrize("kind", ["dense", "sparse", "as they are"])
def test_the_bound_by_the_least_eigenvalue_is_its_formula(kind: str) -> None:
    """(‖G‖ + ερ‖R‖)/m + ε(‖ỹ‖ + ρ‖B‖)/√m + 2ε‖B‖ with ρ² = ‖X̃‖² + 16 of what is taken off later."""
    A, B = centred()
    p = problem(sp.csr_array(X + 9.0)) if kind == "sparse" else problem(X + 9.0)
    if kind == "as they are":
        p, A, B = problem(1e-3 * X, intercept=False), 1e-3 * X, Y
        assert p.A.offset == 0.0
    state = Gradient(solution(), B, np.array([[1e-9, 0.0], [0.0, 2e-3], [0.0, 0.0]]), np.ones(2), np.array([3.0, 7.0]))
    offset = 30 * float(np.sum((X + 9.0).mean(axis=0) ** 2)) if kind == "sparse" else 0.0
    assert p.A.offset == pytest.approx(offset, rel=1e-12, abs=1e-20)
    size, floor, eps = np.sqrt(np.sum(A**2) + 16 * offset), np.array([0.3, 40.0]), 1e-7
    for j, (m, gradient, of_r) in enumerate(zip(floor, (1e-9, 2e-3), (3.0, 7.0), strict=True)):
        b, y = np.linalg.norm(state.B[:, j]), np.linalg.norm(B[:, j])
        known = (gradient + eps * size * of_r) / m + eps * (y + size * b) / np.sqrt(m) + 2 * EPS * b
        found = bound_by_floor(p, state, eps, floor)[j]
        assert found == pytest.approx(known, rel=1e-12, abs=0)
    beyond = bound_by_floor(p, state, eps, np.array([0.0, 40.0]))
    assert beyond[0] == np.inf
    assert beyond[1] == found


def test_with_exact_products_the_bound_is_gradient_over_eigenvalue_and_the_last_digits() -> None:
    state = Gradient(np.ones((3, 1)), Y, np.full((3, 1), 2.0), np.ones(1), np.ones(1))
    found = bound_by_floor(problem(targets=Y[:, :1]), state, 0.0, np.array([4.0]))
    assert found == pytest.approx(12**0.5 / 4, rel=1e-13, abs=0)
    still = Gradient(1e6 * np.ones((3, 1)), Y, np.zeros((3, 1)), np.ones(1), np.ones(1))
    found = bound_by_floor(problem(targets=Y[:, :1]), still, 0.0, np.array([4.0]))
    assert found == pytest.approx(2 * EPS * 3**0.5 * 1e6, rel=1e-13, abs=0)


@pytest.mark.parametrize("mean", [0.0, 50.0])
def test_the_rounding_of_a_gradient_is_its_formula(mean: float) -> None:
    values = X - X.mean(axis=0) + mean
    p = problem(sp.csr_array(values)) if mean else problem(values)
    state = Gradient(solution(), Y, np.zeros((3, 2)), np.ones(2), np.array([3.0, 7.0]))
    A, B = centred(values)
    lengths, eps = np.linalg.norm(A, axis=0), 1e-9
    longer = 1 + 4 * np.max(np.sqrt(30) * mean / lengths) if mean else 1.0
    residual, gradient = rounding_of_gradient(p, state, eps)
    for j in range(2):
        known = 5 * lengths @ np.abs(state.B[:, j]) + 2 * np.linalg.norm(B[:, j])
        assert residual[j] == pytest.approx(eps * longer * known, rel=1e-10, abs=0)
        assert gradient[j] == pytest.approx(eps * longer * (8 + 30**0.5) * 3**0.5 * (3.0, 7.0)[j], rel=1e-10, abs=0)


def test_proved_is_half_the_digits_of_every_target() -> None:
    p, B = problem(), solution()
    size = column_norms(B)
    assert not is_proved(p, B, None, 1e-4)
    assert is_proved(p, B, 0.0099 * size, 1e-4)
    assert not is_proved(p, B, 0.0101 * size, 1e-4)
    for j in range(2):  # one unmet among several
        bounds = 0.0099 * size
        bounds[j] *= 1.03
        assert not is_proved(p, B, bounds, 1e-4)
    assert not is_proved(p, B, np.array([0.0, np.nan]), 1e-4)
    assert not is_proved(p, B, np.array([np.inf, 0.0]), 1e-4)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_next_to_nothing_is_proved_of_no_coefficients_at_all(kind: str) -> None:
    """2⁻⁴⁰‖ỹ‖/‖X̃‖, the means of sparse columns counted with their spread."""
    values = X + 5.0
    p = problem(values if kind == "dense" else sp.csr_array(values))
    A, B = centred(values)
    square = np.sum(A**2) + (30 * np.sum(values.mean(axis=0) ** 2) if kind == "sparse" else 0.0)
    least = 2.0**-40 * np.linalg.norm(B, axis=0) / np.sqrt(square)
    zero = np.zeros((3, 2))
    assert is_proved(p, zero, 0.999 * least, 1e-4)
    assert not is_proved(p, zero, 1.001 * least, 1e-4)
    nothing = problem(np.ones((30, 3)))
    assert is_proved(nothing, zero, 0.999 * 2.0**-40 * np.linalg.norm(B, axis=0), 1e-4)
    assert not is_proved(nothing, zero, 1.001 * 2.0**-40 * np.linalg.norm(B, axis=0), 1e-4)


def test_what_scaling_rounds_is_part_of_what_is_to_be_proved() -> None:
    p, B = problem(scale=True), solution()
    lost = p.scaling_errors(B)
    assert np.all(lost > 0)
    size = column_norms(B)
    assert is_proved(p, B, 0.01 * size - 1.01 * lost, 1e-4)
    assert not is_proved(p, B, 0.01 * size - 0.99 * lost, 1e-4)


def test_gradients_are_measured_by_the_cross_product() -> None:
    A, B = centred()
    known = np.linalg.norm(A.T @ B, axis=0)
    np.testing.assert_allclose(gradient_scale(problem()), known, rtol=1e-12)
    late = problem(gram=False)
    late.cross = None
    np.testing.assert_allclose(gradient_scale(late), known, rtol=1e-12)
    np.testing.assert_allclose(late.cross, A.T @ B, rtol=1e-12, atol=1e-12)


def test_where_the_cross_product_is_rounding_gradients_are_measured_by_both_lengths() -> None:
    p = problem()
    whole = np.sqrt(p.total * p.energy)
    for share, known in ((31.0, whole), (33.0, 33.0 * EPS * whole)):
        p.cross = np.zeros((3, 2))
        p.cross[1] = share * EPS * whole
        np.testing.assert_allclose(gradient_scale(p), known, rtol=1e-12)
    np.testing.assert_array_equal(gradient_scale(problem(np.ones((30, 3)))), 1.0)


@pytest.mark.parametrize("values", [X, sp.csr_array(X + 20.0)], ids=["dense", "sparse"])
def test_a_gradient_measured_with_the_data(values: Any) -> None:
    p = problem(values)
    A, B = centred()
    at = 1.25 * solution()
    found = measure_gradient(p, at, LAM)
    R = B - A @ at
    np.testing.assert_allclose(found.R, R, atol=1e-11)
    np.testing.assert_allclose(found.G, A.T @ R - LAM * at, atol=1e-9)
    size = np.linalg.norm(R, axis=0)
    np.testing.assert_allclose(found.size, size, rtol=1e-11)
    np.testing.assert_allclose(found.rss, size**2, rtol=1e-11)
    assert found.B is at
    lost = EPS * np.sqrt(p.A.offset) * (size + np.linalg.norm(A) * np.linalg.norm(at, axis=0))
    np.testing.assert_allclose(found.rounding, lost, rtol=1e-9)
    assert np.all(lost > 0) == sp.issparse(values)


@pytest.mark.parametrize("scale", [False, True])
def test_a_gradient_of_the_moments_spares_a_pass_and_knows_its_rounding(scale: bool) -> None:
    p = problem(scale=scale)
    A, B = centred()
    A = A / A.std(axis=0, ddof=1) if scale else A
    at, before = 0.75 * solution(), p.passes
    found = measure_gradient(p, at, LAM, spare=True)
    assert p.passes == before
    R = B - A @ at
    assert found.R.shape == (0, 2)
    np.testing.assert_allclose(found.rss, np.sum(R**2, axis=0), rtol=1e-11)
    np.testing.assert_allclose(found.G, A.T @ R - LAM * at, atol=1e-10)
    length = np.linalg.norm(A)
    size = (3.0 if scale else 1.0) * (np.linalg.norm(B, axis=0) + length * np.linalg.norm(at, axis=0))
    np.testing.assert_allclose(found.size, size, rtol=1e-11)
    np.testing.assert_allclose(found.rounding, EPS * length * size, rtol=1e-11)


@pytest.mark.parametrize(("noise", "spared"), [(3e-3, True), (3e-4, False)])
def test_residuals_that_would_cancel_are_measured_with_the_data(noise: float, spared: bool) -> None:
    """Of two targets one that fits to 1e-6 of its square is enough."""
    exact = X @ RNG.standard_normal((3, 1))
    rest = RNG.standard_normal((30, 1))
    targets = np.concatenate([exact + noise * rest * np.std(exact) / np.std(rest), Y[:, :1]], axis=1)
    p = problem(targets=targets)
    A, B = centred(X, targets)
    at = np.linalg.lstsq(A, B, rcond=None)[0]
    assert (measure_gradient(p, at, np.zeros(2), spare=True).R.shape[0] == 0) == spared
    assert measure_gradient(problem(targets=targets, gram=False), at, np.zeros(2), spare=True).R.shape[0] == 30


class Steps(RidgeFactor):
    """A factor whose solutions miss the gradient by what is listed, one after the other, in parts of ‖X̃ᵀỹ‖."""

    method, solver = "steps", "svd"

    def __init__(self, *misses: float, condition: float = 10.0, solver: str = "svd") -> None:
        self.misses, self.condition, self.solver, self.calls = misses, condition, solver, 0
        self.floor, self.dof, self.free, self.rank = LAM, np.zeros(2), np.zeros(2), 3

    def coefficients(self) -> Any:
        return solution() * (1 + self.misses[0])

    def refine(self, B: Any, R: Any, G: Any) -> Any:
        A, targets = centred()
        np.testing.assert_allclose(R, targets - A @ B, atol=1e-11)
        np.testing.assert_allclose(G, A.T @ R - LAM * B, atol=1e-9)
        self.calls += 1
        return solution() * (1 + self.misses[self.calls])

    def inverse(self) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("misses", "condition", "steps", "kept"),
    [
        ((0.0, 1.0), 9e3, 0, 0),  # right at once
        ((1e-14, 0.9e-14, 1.0), 1e4, 1, 1),  # right, but of a condition number that asks for one correction
        ((1e-12, 1e-17, 1.0), 10.0, 1, 1),  # not quite right
        ((1e-2, 1e-4, 1e-6, 1e-8, 1e-10), 10.0, 3, 3),  # three corrections and no more
        ((1e-2, 0.6e-2, 1.0), 10.0, 1, 1),  # the first may even make it a little worse
        ((1e-2, 1.9e-2, 1.0), 10.0, 1, 1),
        ((1e-2, 2.1e-2, 1.0), 10.0, 1, 0),
        ((1e-2, 1e-4, 0.6e-4, 1.0), 10.0, 2, 1),  # later ones must halve it
        ((1e-2, 1e-4, 0.4e-4, 0.1e-4), 10.0, 3, 3),
    ],
)
def test_corrections_go_on_while_they_help(misses: tuple[float, ...], condition: float, steps: int, kept: int) -> None:
    factor = Steps(*misses, condition=condition)
    B, rss, c = certify(problem(), factor, LAM, "because")
    assert factor.calls == steps
    np.testing.assert_allclose(B, solution() * (1 + misses[kept]), rtol=1e-12)
    A, targets = centred()
    np.testing.assert_allclose(c.residuals, max(misses[kept], 0.0), rtol=1e-6, atol=1e-13)
    np.testing.assert_allclose(rss, np.sum((targets - A @ B) ** 2, axis=0), rtol=1e-10)


@pytest.mark.parametrize(("miss", "steps"), [(0.9e-8, 0), (1.1e-8, 1)])
def test_a_file_is_read_again_only_where_the_tolerance_is_missed(miss: float, steps: int, tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", X)
    p = problem(tmp_path / "x.npy")
    assert not p.source.resident
    factor = Steps(miss, 1e-17, 1.0)
    certify(p, factor, LAM, "")
    assert factor.calls == steps


def test_a_file_solved_by_cholesky_is_judged_by_its_moments(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", X)
    for solver, passes in (("cholesky", 0), ("svd", 2)):
        p = problem(tmp_path / "x.npy")
        before = p.passes
        certify(p, Steps(0.0, solver=solver), LAM, "")
        assert p.passes - before == passes
    p = problem()  # in memory another product costs little
    before = p.passes
    certify(p, Steps(0.0, solver="cholesky"), LAM, "")
    assert p.passes - before == 2


def test_the_certificate_says_what_was_measured() -> None:
    p, factor = problem(), Steps(1e-3, 2.1e-3, condition=77.0)
    B, _, c = certify(p, factor, LAM, "because")
    A, targets = centred()
    G = A.T @ (targets - A @ B) - LAM * B
    np.testing.assert_allclose(
        c.residuals, np.linalg.norm(G, axis=0) / np.linalg.norm(A.T @ targets, axis=0), rtol=1e-9
    )
    assert (c.method, c.reason, c.iterations, c.condition) == ("steps", "because", 0, 77.0)
    assert (c.tolerance, c.bounded, c.device, c.notes) == (1e-8, "‖ŵ − w‖", "cpu", ())
    assert c.passes == p.passes
    state = measure_gradient(p, B, LAM)
    np.testing.assert_allclose(c.error_bounds, bound_by_floor(p, state, EPS, LAM), rtol=1e-9)
    assert c.rounding == 0.0
    assert not c.converged
    assert certify(p, Steps(0.0), LAM, "")[2].converged


def test_a_certificate_counts_the_rounding_of_means_that_come_off_later() -> None:
    p = problem(sp.csr_array(X + 20.0))
    B, _, c = certify(p, Steps(0.0, 0.0, 0.0, 0.0), LAM, "")
    lost = measure_gradient(p, B, LAM).rounding / gradient_scale(p)
    assert c.rounding == pytest.approx(float(np.max(lost)), rel=1e-6, abs=0)


@pytest.mark.parametrize(("lam", "said"), [([0.5, 2.0], True), ([0.0, 0.0], False)])
def test_a_certificate_says_why_no_gram_matrix_was_formed(lam: list[float], said: bool) -> None:
    factor = Steps(0.0, 0.0, 0.0, 0.0)
    factor.why = "of something"
    if not said:
        factor.coefficients = lambda: solution(lam)  # type: ignore[method-assign]
        factor.refine = lambda B, R, G: B  # type: ignore[method-assign]
    notes = certify(problem(), factor, np.array(lam), "")[2].notes
    assert any("of something" in note for note in notes) == said


def test_what_is_refined_in_more_digits_is_bounded_with_these() -> None:
    factor, B = Steps(1.0), solution()
    A, targets = centred()
    R, G = targets - A @ B, np.full((3, 2), 1e-18)
    factor.refine_fully = lambda: (B, R, G, float(np.finfo(np.longdouble).eps))  # type: ignore[method-assign]
    factor.rss = np.array([5.0, 6.0])
    got, rss, c = certify(problem(), factor, LAM, "")
    assert got is B
    assert rss is factor.rss
    assert c.rounding == 0.0
    fine = float(np.finfo(np.longdouble).eps)
    size = np.linalg.norm(R, axis=0)
    state = Gradient(B, R, G, size**2, size)
    np.testing.assert_allclose(c.error_bounds, bound_by_floor(problem(), state, fine, LAM), rtol=1e-12)
    assert any(f"{int(-np.log10(fine))} digits" in note for note in c.notes)
    factor.rss = None
    np.testing.assert_allclose(certify(problem(), factor, LAM, "")[1], size**2, rtol=1e-13)


def test_nothing_is_proved_by_a_bound_that_is_not_a_number() -> None:
    factor = Steps(0.0)
    factor.bounds = lambda *_: np.array([np.nan, 1e-9])  # type: ignore[method-assign]
    c = certify(problem(), factor, LAM, "")[2]
    np.testing.assert_array_equal(c.error_bounds, [np.inf, 1e-9])
    assert not c.converged


def test_bounds_of_a_factor_are_those_by_its_floor() -> None:
    p = problem()
    state = measure_gradient(p, 1.5 * solution(), LAM)
    np.testing.assert_array_equal(Steps(0.0).bounds(p, state, 1e-5), bound_by_floor(p, state, 1e-5, LAM))
