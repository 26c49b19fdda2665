"""Kernel ridge regression attacked: random hostile problems with 120 digits, and rules that no rounding excuses."""

import warnings

import mpmath
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from attack.harness import case_count, seed
from gramian import KernelRidge, KernelRidgeClassifier, KernelRidgeCV
from gramian.results import NumericalWarning

KERNELS = ("linear", "poly", "rbf", "rbf", "laplacian", "cosine")
SOLVERS = ("auto", "cholesky", "eigh", "cg", "landmarks")


def exact_kernel(name, gamma, degree, coef0, x, z):
    """k(x, z) of numbers taken as they are stored."""
    x, z = ([mpmath.mpf(float(v)) for v in row] for row in (x, z))
    dot = mpmath.fsum(a * b for a, b in zip(x, z, strict=True))
    if name == "linear":
        return dot
    if name == "poly":
        return (mpmath.mpf(gamma) * dot + coef0) ** degree
    if name == "cosine":
        sizes = mpmath.sqrt(mpmath.fsum(a * a for a in x) * mpmath.fsum(b * b for b in z))
        return dot / sizes if sizes else mpmath.mpf(0)
    power = 2 if name == "rbf" else 1
    return mpmath.exp(-mpmath.mpf(gamma) * mpmath.fsum(abs(a - b) ** power for a, b in zip(x, z, strict=True)))


def hostile_problem(rng):
    n, p = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    if rng.random() < 0.25:
        X += 10.0 ** rng.integers(0, 7)
    if rng.random() < 0.15:
        X *= 10.0 ** rng.integers(-4, 5)
    if n > 1 and rng.random() < 0.4:
        X[0] = X[1] + (0.0 if rng.random() < 0.6 else 10.0 ** rng.integers(-12, -3)) * rng.standard_normal(p)
    X = X.astype(np.float32) if rng.random() < 0.2 else X
    y = y + (10.0 ** rng.integers(0, 8) if rng.random() < 0.2 else 0.0)
    w = rng.uniform(0.1, 3, n) if rng.random() < 0.2 else None
    if w is None and rng.random() < 0.2:
        w = rng.integers(0, 3, n).astype(float)
        w[0] = 1
    kernel = (
        str(rng.choice(KERNELS)),
        float(10.0 ** rng.uniform(-3, 2)),
        int(rng.integers(1, 4)),
        float(rng.integers(3)),
    )
    return X, y, w, kernel, float(10.0 ** rng.uniform(-14, 6)), bool(rng.random() < 0.35), str(rng.choice(SOLVERS))


def exact_predictions(X, y, w, kernel, lam, intercept, Z):
    """f(z) = Σα_jk(z, x_j) + b of (K + λW⁻¹)α + b1 = y, 1ᵀα = 0."""
    rows = range(len(X)) if w is None else np.flatnonzero(w)
    n = len(rows)
    A, b = mpmath.zeros(n + intercept), mpmath.zeros(n + intercept, 1)
    for i, row in enumerate(rows):
        for j, column in enumerate(rows):
            A[i, j] = exact_kernel(*kernel, X[row], X[column])
        A[i, i] += mpmath.mpf(lam) / (1 if w is None else mpmath.mpf(float(w[row])))
        b[i] = mpmath.mpf(float(y[row]))
        if intercept:
            A[i, n] = A[n, i] = 1
    solved = mpmath.lu_solve(A, b)
    constant = solved[n] if intercept else 0
    return [mpmath.fsum(exact_kernel(*kernel, z, X[r]) * solved[i] for i, r in enumerate(rows)) + constant for z in Z]


def test_bounds_on_predictions_hold_and_what_has_converged_is_right():
    """No bound is exceeded; bounds a hundred thousand times smaller are."""
    weakened = 0
    for case in range(case_count(60)):
        rng = np.random.default_rng([seed(), case])
        X, y, w, kernel, lam, intercept, solver = hostile_problem(rng)
        Z = np.vstack(
            [X[:2].astype(float), rng.standard_normal((1, X.shape[1])), 1e3 * rng.standard_normal(X.shape[1])]
        )
        name, gamma, degree, coef0 = kernel
        options = {"kernel": name, "gamma": gamma, "degree": degree, "coef0": coef0}
        model = KernelRidge(lam, **options, fit_intercept=intercept, solver=solver)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                f, bound = model.fit(X, y, w).predict(Z, return_bound=True)
            except np.linalg.LinAlgError:  # K + λI is singular to rounding: refused
                continue
        if solver == "landmarks" and len(model.landmarks_) < np.count_nonzero(np.ones(len(X)) if w is None else w):
            continue  # another model, of which its bound is
        with mpmath.workdps(120):  # values of a kernel reach 1e50, λ 1e-14
            errors = [
                float(abs(a - b)) for a, b in zip(exact_predictions(X, y, w, kernel, lam, intercept, Z), f, strict=True)
            ]
        told = f"seed {seed()}, case {case}: {errors} and {bound}\n{model}\n{model.certificate_}"
        assert np.all(errors <= bound), told
        weakened += np.any(errors > 1e-5 * bound)
        if model.certificate_.converged and not caught:
            assert max(errors[:2]) <= 0.2 * max(np.max(np.abs(y)), 1e-300), told
    assert weakened


@pytest.mark.parametrize("solver", ["cholesky", "eigh", "cg", "landmarks"])
def test_bounds_hold_the_rounding_of_a_mean_whose_terms_cancel(solver):
    """A large λ leaves the mean alone, which is small beside the targets and rounds as they do."""
    rng, broken = np.random.default_rng(0), []
    for _ in range(40):
        n = int(rng.integers(3, 9))
        X, y, w = rng.standard_normal((n, 2)), rng.standard_normal(n), rng.uniform(0.1, 3.0, n)
        y[-1] -= w @ y / w[-1] * (1 - 1e-3)
        model = KernelRidge(1e6, kernel="laplacian", gamma=0.005, fit_intercept=True, solver=solver).fit(X, y, w)
        f, bound = model.predict(X[:1], return_bound=True)
        with mpmath.workdps(60):
            exact = exact_predictions(X, y, w, ("laplacian", 0.005, 1, 0.0), 1e6, True, X[:1])[0]
            error = float(abs(exact - mpmath.mpf(float(f[0]))))
        if not error <= bound[0] <= 1e-13:
            broken.append((error, bound[0]))
    assert not broken


def test_landmarks_that_lose_more_than_the_penalty_are_not_converged():
    """Directions shorter than the rounding of k(Z, Z) are cut: under a smaller λ they would have fitted the targets."""
    rng = np.random.default_rng(0)
    X, y = 1e4 + rng.standard_normal((5, 3)), rng.standard_normal(5)
    options = {
        "kernel": "poly",
        "degree": 3,
        "gamma": 0.02,
        "coef0": 0.0,
        "solver": "landmarks",
        "n_landmarks": 5,
        "tol": 1e-6,
    }
    with pytest.warns(NumericalWarning, match="which is too much"):
        model = KernelRidge(200.0, **options).fit(X, y)
    with mpmath.workdps(120):
        exact = [float(v) for v in exact_predictions(X, y, None, ("poly", 0.02, 3, 0.0), 200.0, False, X)]
    assert np.max(np.abs(model.predict(X) - exact)) > 0.2  # it is no answer to what was asked ...
    assert not model.certificate_.converged
    assert any("smaller than what was cut" in note for note in model.certificate_.notes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = KernelRidge(1e8, **options).fit(X, y)  # ... of a larger λ it is
        twins = KernelRidge(1e-8, kernel="rbf", solver="landmarks", n_landmarks=10).fit(
            np.repeat(X, 2, axis=0), np.repeat(y, 2)
        )
    assert twins.certificate_.converged
    assert any("directions of k(Z, Z) are rounding" in note for note in twins.certificate_.notes)
    assert fine.certificate_.notes


@pytest.mark.parametrize("solver", ["cholesky", "eigh", "cg", "landmarks"])
def test_predictions_do_not_follow_the_callers_array(solver):
    rng = np.random.default_rng(seed())
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    model = KernelRidge(0.1, kernel="rbf", solver=solver).fit(X, y)
    before = model.predict([[0.3, 0.4]])
    X += 1.0
    y += 1.0
    np.testing.assert_array_equal(model.predict([[0.3, 0.4]]), before)


@pytest.mark.parametrize("solver", ["cholesky", "eigh", "cg"])
@pytest.mark.parametrize("intercept", [False, True])
def test_what_must_not_matter_does_not_matter(solver, intercept, tmp_path):
    """Row order, shifts and rotations of a radial kernel, scales of the targets, copies for weights, files."""
    for case in range(case_count(2)):
        rng = np.random.default_rng([seed(), case])
        X, y, Z = rng.standard_normal((25, 3)), rng.standard_normal(25), rng.standard_normal((5, 3))
        w = rng.integers(1, 4, 25)

        def predict(X, y, Z, w=None):
            model = KernelRidge(0.1, kernel="rbf", gamma=0.3, solver=solver, fit_intercept=intercept, tol=1e-9)
            return model.fit(X, y, w).predict(Z)

        known, near = predict(X, y, Z), {"rtol": 1e-6, "atol": 1e-8}
        order, Q = rng.permutation(25), np.linalg.qr(rng.standard_normal((3, 3)))[0]
        np.testing.assert_allclose(predict(X[order], y[order], Z), known, **near)
        np.testing.assert_allclose(predict(X + 8.0, y, Z + 8.0), known, **near)
        np.testing.assert_allclose(predict(X @ Q, y, Z @ Q), known, **near)
        np.testing.assert_allclose(predict(X, 4.0 * y, Z), 4.0 * known, **near)
        copies = np.repeat(np.arange(25), w)
        np.testing.assert_allclose(predict(X, y, Z, w), predict(X[copies], y[copies], Z), **near)
        np.save(tmp_path / "rows.npy", X)
        np.testing.assert_allclose(predict(tmp_path / "rows.npy", y, Z), known, **near)


@pytest.mark.parametrize(
    "model",
    [
        KernelRidge(0.1, kernel="rbf", solver="cholesky"),
        KernelRidge(0.1, kernel="rbf", solver="eigh"),
        KernelRidgeCV(gamma=[0.1, 1.0]),
        KernelRidgeCV(gamma=0.1, fit_intercept=True),
        KernelRidgeClassifier(gamma=0.1),
    ],
)
def test_the_same_bits_for_one_and_two_threads(model):
    rng = np.random.default_rng(seed())
    X, found = rng.standard_normal((150, 4)), []
    y = np.sign(X[:, 0]).astype(int)
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(model.fit(X, y).dual_coef_.tobytes())
    assert found[0] == found[1]
