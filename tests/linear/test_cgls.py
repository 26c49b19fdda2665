"""Conjugate gradients for least squares: dense twins, LSQR, bounds that hold, and an honest end."""

import warnings
from typing import ClassVar

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.linalg import lsqr
from sklearn.exceptions import ConvergenceWarning

import gramian
from gramian.linear.cgls import CGLS
from gramian.operators import Centred, Data, RowWeighted
from oracles import sparse_rows, with_spectrum


def dense_ridge(X, B, shifts):
    """[A; √λI]x = [b; 0] by NumPy's least squares: no normal equations."""
    p = X.shape[1]
    shifts = np.broadcast_to(shifts, B.shape[1])
    stacked = [np.vstack([X, np.sqrt(lam) * np.eye(p)]) for lam in shifts]
    return np.column_stack(
        [np.linalg.lstsq(S, np.append(b, np.zeros(p)), rcond=None)[0] for S, b in zip(stacked, B.T, strict=True)]
    )


def relative(x, truth):
    return np.linalg.norm(x - truth, axis=0) / np.linalg.norm(truth, axis=0)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    return with_spectrum(80, 20, np.geomspace(1, 1e-2, 20)), rng.standard_normal((80, 4))


@pytest.mark.parametrize("shape", [(80, 20), (20, 80)], ids=["tall", "wide"])
def test_every_column_solves_with_its_own_shift(shape):
    rng = np.random.default_rng(1)
    X, B = rng.standard_normal(shape), rng.standard_normal((shape[0], 4))
    shifts = [1e-3, 0.1, 10.0, 1e4]
    solved = CGLS()(Data(X), B, shifts)
    assert relative(solved.values, dense_ridge(X, B, shifts)).max() < 1e-9
    assert solved.certificate.converged


@pytest.mark.parametrize("shape", [(60, 15), (15, 60)], ids=["tall", "wide"])
def test_without_a_shift_it_is_least_squares_of_least_norm(shape):
    rng = np.random.default_rng(2)
    X, B = rng.standard_normal(shape), rng.standard_normal((shape[0], 2))
    solved = CGLS(tol=1e-12)(Data(X), B, 0.0)
    truth = np.column_stack([lsqr(X, b, atol=1e-14, btol=1e-14)[0] for b in B.T])
    assert relative(solved.values, truth).max() < 1e-10
    assert relative(solved.values, np.linalg.pinv(X) @ B).max() < 1e-10
    assert solved.certificate.error_bounds is None


def test_rank_deficient_least_squares_has_least_norm():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 10))
    B = rng.standard_normal((40, 2))
    assert relative(CGLS()(Data(X), B, 0.0).values, np.linalg.pinv(X, rcond=1e-10) @ B).max() < 1e-9


def test_damped_least_squares_is_lsqr(problem):
    X, B = problem
    solved = CGLS(tol=1e-12)(Data(X), B, 1e-3)
    truth = np.column_stack([lsqr(X, b, damp=np.sqrt(1e-3), atol=1e-14, btol=1e-14, iter_lim=1000)[0] for b in B.T])
    assert relative(solved.values, truth).max() < 1e-9


def test_residuals_and_bounds_are_those_of_the_answer(problem):
    X, B = problem
    shifts = np.array([1e-3, 1e-2, 0.1, 1.0])
    solved = CGLS(tol=1e-4)(Data(X), B, shifts)
    found, c = solved.values, solved.certificate
    gradient = X.T @ (B - X @ found) - shifts * found
    expected = np.linalg.norm(gradient, axis=0) / np.linalg.norm(X.T @ B, axis=0)
    np.testing.assert_allclose(c.residuals, expected, rtol=1e-8)
    error = np.linalg.norm(found - dense_ridge(X, B, shifts), axis=0)
    assert np.all(error > 0)
    assert np.all(error <= c.error_bounds)
    assert np.all(c.error_bounds <= 1.001 * np.linalg.norm(gradient, axis=0) / shifts)
    assert c.bounded == "‖ŵ − w‖"
    assert "‖ŵ − w‖" in repr(c)


@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.floats(-6, 3),
    st.floats(0, 6),
    st.sampled_from([1e-2, 1e-6, 1e-12]),
    st.integers(0, 99),
)
def test_the_bound_holds_even_where_the_tolerance_is_missed(n, p, shift, steep, tol, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.geomspace(1, 10**-steep, p)
    B, lam = rng.standard_normal((n, 2)), 10.0**shift
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solved = CGLS(tol=tol, max_iterations=30)(Data(X), B, lam)
    L = np.longdouble
    K = X.astype(L) @ X.T.astype(L) + L(lam) * np.eye(n, dtype=L)
    dual = np.linalg.solve(K.astype(float), B)
    for _ in range(3):  # refined in long double: the truth to 1e-15 or so
        dual = dual + np.linalg.solve(K.astype(float), (B.astype(L) - K @ dual.astype(L)).astype(float))
    error = np.linalg.norm(solved.values - X.T @ dual, axis=0)
    assert np.all(error <= solved.certificate.error_bounds * (1 + 1e-6) + 1e-15)


def test_a_large_shift_takes_one_pass_a_step_and_a_small_one_two(problem):
    X, B = problem
    for shift, passes in ((1e-2, 1), (1e-11, 2), (0.0, 2)):
        A = Data(X)
        c = CGLS()(A, B, shift).certificate
        assert c.passes == A.passes
        assert passes * c.iterations <= c.passes <= passes * c.iterations + 6
        assert ("one pass" in c.method) == (passes == 1)


def test_done_columns_are_multiplied_no_more(problem):
    X, B = problem

    class Counting(Data):
        widths: ClassVar[list[int]] = []

        def normal(self, V, w=None):
            self.widths.append(V.shape[1])
            return super().normal(V, w)

    A = Counting(X)
    CGLS()(A, B, [1e-3, 1.0, 10.0, 100.0])
    assert A.widths[0] == 4
    assert A.widths[-1] == 1
    assert sorted(A.widths, reverse=True) == A.widths


def test_a_good_start_is_used(problem):
    X, B = problem
    A, truth = Data(X), dense_ridge(X, B, 1e-3)
    cold = CGLS()(A, B, 1e-3)
    warm = CGLS()(A, B, 1e-3, start=truth + 1e-6)
    there = CGLS()(A, B, 1e-3, start=truth)
    assert warm.certificate.iterations < cold.certificate.iterations
    assert there.certificate.iterations == 0
    assert relative(warm.values, truth).max() < 1e-7
    np.testing.assert_allclose(warm.certificate.residuals, 0, atol=1e-10)


def test_zero_columns_have_zero_solutions(problem):
    X, B = problem
    B = B.copy()
    B[:, 1] = 0.0
    for start in (None, np.ones((20, 4))):
        solved = CGLS()(Data(X), B, 0.1, start=start)
        assert np.all(solved.values[:, 1] == 0)
        assert solved.certificate.residuals[1] == 0
    orthogonal = CGLS()(Data(np.eye(3)[:, :2]), np.array([[0.0], [0.0], [5.0]]), 0.1, start=np.ones((2, 1)))
    assert np.all(orthogonal.values == 0)


def test_scaled_columns_take_fewer_steps(problem):
    rng = np.random.default_rng(5)
    X, B = rng.standard_normal((200, 30)) * np.geomspace(1, 1e3, 30), rng.standard_normal((200, 2))
    A, shifts = Data(X), [1e-2, 1.0]
    plain = CGLS(max_iterations=5000)(A, B, shifts)
    scaled = CGLS()(A, B, shifts, diagonal=np.sum(X**2, axis=0))
    assert scaled.certificate.iterations < plain.certificate.iterations / 3
    assert relative(scaled.values, dense_ridge(X, B, shifts)).max() < 1e-8
    least = CGLS()(Data(X.T), B[:30], 0.0, diagonal=np.sum(X.T**2, axis=0))  # stays the one of least norm
    assert relative(least.values, np.linalg.pinv(X.T) @ B[:30]).max() < 1e-8


@pytest.mark.parametrize("size", [1e-200, 1e200, 1.0])
def test_the_size_of_the_right_hand_side_does_not_matter(problem, size):
    X, B = problem
    solved = CGLS()(Data(X), B * size, 0.1)
    assert relative(solved.values / size, dense_ridge(X, B, 0.1)).max() < 1e-9
    assert np.all(solved.certificate.error_bounds > 0)


class Faulty(Data):
    """Products of AᵀA with an error of one part in a thousand for a while: the gradient carried along is then wrong."""

    count = 0

    def normal(self, V, w=None):
        self.count += 1
        return super().normal(V, w) * (1.001 if self.count <= 5 else 1.0)


def test_a_gradient_that_was_carried_along_wrongly_is_measured_and_put_right(problem):
    X, B = problem
    good, steps = CGLS()(Data(X), B, 1e-2).certificate, []
    solved = CGLS(report=lambda i, r: steps.append((i, r)))(Faulty(X), B, 1e-2)
    c = solved.certificate
    assert c.converged
    assert relative(solved.values, dense_ridge(X, B, 1e-2)).max() < 1e-8
    assert c.passes - c.iterations > good.passes - good.iterations  # two passes more for each further round
    assert [i for i, _ in steps] == list(range(1, c.iterations + 1))


def test_products_that_stay_wrong_are_noticed(problem):
    class Wrong(Data):
        def normal(self, V, w=None):
            return super().normal(V, w) * -1.0

    X, B = problem
    with pytest.warns(ConvergenceWarning, match="4 of 4"):
        solved = CGLS()(Wrong(X), B, 1e-2)
    gradient = X.T @ (B - X @ solved.values) - 1e-2 * solved.values
    expected = np.linalg.norm(gradient, axis=0) / np.linalg.norm(X.T @ B, axis=0)
    np.testing.assert_allclose(solved.certificate.residuals, expected, rtol=1e-8)
    assert np.all(expected <= 1.0)  # no worse than the start


def test_hard_problems_reach_the_last_digits():
    X = with_spectrum(60, 20, np.geomspace(1e3, 1e-4, 20))
    B = np.random.default_rng(6).standard_normal((60, 1)) + 1e3 * X[:, :1]
    c = CGLS(tol=1e-14, max_iterations=3000)(Data(X), B, 1e-9).certificate  # condition number 1e15
    assert c.converged


def test_a_missed_tolerance_is_said_with_numbers(problem):
    X, B = problem
    with pytest.warns(ConvergenceWarning, match=r"4 of 4.*3 iterations"):
        solved = CGLS(max_iterations=3)(Data(X), B, 1e-4)
    assert not solved.certificate.converged
    assert solved.certificate.iterations == 3


def test_an_unreachable_tolerance_ends_soon_and_says_so(problem):
    X, B = problem
    with pytest.warns(ConvergenceWarning, match="tolerance 1.0e-19"):
        solved = CGLS(tol=1e-19, max_iterations=10**6)(Data(X), B, 1e-2)
    assert solved.certificate.iterations < 2000
    assert relative(solved.values, dense_ridge(X, B, 1e-2)).max() < 1e-12


def test_single_precision_says_what_it_can(problem):
    X, B = problem
    A = Data(X.astype(np.float32))
    solved = CGLS()(A, B, 1e-2)
    assert solved.values.dtype == np.float32
    assert solved.certificate.tolerance == 1e-5
    assert relative(solved.values, dense_ridge(X, B, 1e-2)).max() < 1e-3
    with pytest.warns(ConvergenceWarning):
        assert not CGLS(tol=1e-10)(A, B, 1e-2).certificate.converged


def test_composed_operators_sparse_data_and_files(problem, tmp_path):
    X, B = problem
    w, mean = np.linspace(1, 2, 80), X.mean(axis=0) + 0.5
    root = np.sqrt(w)
    A = Centred(RowWeighted(Data(X + 0.5), root), mean, left=root)
    assert relative(CGLS()(A, B, 0.01).values, dense_ridge(A.to_dense(), B, 0.01)).max() < 1e-9
    S = sparse_rows(80, 30, 0.2)
    assert relative(CGLS()(Data(S), B, 0.01).values, dense_ridge(S.toarray(), B, 0.01)).max() < 1e-9
    np.save(tmp_path / "X.npy", X)
    file = Data(gramian.open(tmp_path / "X.npy"))
    assert relative(CGLS()(file, B, 0.01).values, dense_ridge(X, B, 0.01)).max() < 1e-9


def test_tensors_give_tensors(problem, torch):
    X, B = problem
    solved = CGLS()(Data(torch.asarray(X)), torch.asarray(B), [1e-3, 1.0, 10.0, 0.0])
    assert isinstance(solved.values, torch.Tensor)
    assert relative(solved.values.numpy(), dense_ridge(X, B, [1e-3, 1.0, 10.0, 0.0])).max() < 1e-8


def test_what_does_not_fit_is_named(problem):
    X, B = problem
    with pytest.raises(ValueError, match=r"\(80.*\(79, 4\)"):
        CGLS()(Data(X), B[1:], 1.0)
    with pytest.raises(ValueError, match=r"-1\.0"):
        CGLS()(Data(X), B, [1.0, -1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"\(20, 4\)"):
        CGLS()(Data(X), B, 1.0, start=np.zeros((4, 20)))


def test_the_warning_stands_at_the_line_that_called(problem):
    X, B = problem[:2]
    with pytest.warns(ConvergenceWarning) as caught:
        CGLS(tol=1e-12, max_iterations=1)(Data(X), B, 1e-6)
    assert caught[0].filename == __file__


def test_scaling_survives_a_shift_beside_which_the_data_are_nothing():
    rng = np.random.default_rng(0)
    X, B = rng.standard_normal((40, 6)) * np.geomspace(1, 1e3, 6), rng.standard_normal((40, 2))
    solved = CGLS()(Data(X), B, [1e250, 10.0], diagonal=np.sum(X**2, axis=0))
    np.testing.assert_allclose(solved.values[:, 0], X.T @ B[:, 0] / 1e250, rtol=1e-9)  # (AᵀA + λ)⁻¹ is 1/λ there
    np.testing.assert_allclose(solved.values[:, 1:], dense_ridge(X, B[:, 1:], 10.0), rtol=1e-6)


@pytest.mark.parametrize("mean", [1e3, 1e6, 1e9])
def test_means_taken_off_afterwards_cost_digits_once_and_the_bound_knows(mean):
    rng = np.random.default_rng(0)
    D = np.round(rng.standard_normal((60, 3)) * 2**10) / 2**10
    D -= np.round(D.mean(axis=0) * 2**10) / 2**10
    B = rng.standard_normal((60, 1))
    X = D + mean  # exact: both are multiples of 2⁻¹⁰ below 2⁴²
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solved = CGLS(tol=1e-12)(Centred(Data(X), np.full(3, mean)), B, 1.0)
    error = np.linalg.norm(solved.values - dense_ridge(D, B, [1.0]))
    assert error <= solved.certificate.error_bounds[0] <= 1e-11 * mean


def test_the_bound_counts_the_rounding_of_a_long_column_that_scaled_steps_hardly_see():
    """Two columns a million long, equal but for 1e-13, and a short one: the descent goes along the short one."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        long = 1e6 * rng.standard_normal(8)
        X = np.column_stack([long, long * (1 + 1e-13 * rng.standard_normal(8)), 0.1 * rng.standard_normal(8)])
        B, lam = rng.standard_normal((8, 2)), 1e-4
        diagonal = np.sum(X**2, axis=0)
        solved = CGLS(tol=1e-6)(Data(X), B, lam, diagonal=diagonal, warn=False)
        with mpmath.workdps(60):
            A = mpmath.matrix(X.tolist())
            G = A.T * A + mpmath.mpf(lam) * mpmath.eye(3)
            truth = [mpmath.lu_solve(G, A.T * mpmath.matrix(b.tolist())) for b in B.T]
            pairs = zip(truth, solved.values.T, strict=True)
            error = [float(mpmath.norm(x - mpmath.matrix(v.tolist()))) for x, v in pairs]
        assert np.all(error <= solved.certificate.error_bounds)
        assert solved.certificate.condition >= diagonal.max() / lam
