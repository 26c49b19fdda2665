"""PCA attacked: random hostile problems against singular values computed with 220 bits."""

import warnings

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp

from attack.harness import case_count, seed
from gramian import PCA

SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "krylov", "randomized", "power")
BITS = 220


def true_values(X, w, scale):
    """Singular values of diag(√w)(X − 1μᵀ)diag(1/s), of numbers taken as they are stored."""
    n, p = X.shape
    with mpmath.workprec(BITS):
        weights = [mpmath.mpf(float(x)) for x in w]
        total, A = mpmath.fsum(weights), mpmath.matrix(n, p)
        for j in range(p):
            column = [mpmath.mpf(float(x)) for x in X[:, j]]
            if len({x for x, weight in zip(column, weights, strict=True) if weight > 0}) == 1:
                continue
            mean = mpmath.fsum(a * x for a, x in zip(weights, column, strict=True)) / total
            squares = mpmath.fsum(a * (x - mean) ** 2 for a, x in zip(weights, column, strict=True))
            deviation = mpmath.sqrt(squares / (total - 1)) if scale else 1
            for i in range(n):
                A[i, j] = mpmath.sqrt(weights[i]) * (column[i] - mean) / deviation
        found = mpmath.eigsy(A.T * A if p <= n else A * A.T, eigvals_only=True)
        return sorted((mpmath.sqrt(abs(x)) for x in found), reverse=True)


def hostile_rows(rng):
    n, p = int(rng.integers(2, 13)), int(rng.integers(1, 11))
    X = rng.standard_normal((n, p))
    kind = rng.choice(["normal", "low rank", "ties", "steep", "constant", "equal columns", "equal rows", "integers"])
    if kind == "low rank":
        r = int(rng.integers(1, max(2, min(n, p))))
        X = rng.standard_normal((n, r)) @ rng.standard_normal((r, p))
    elif kind == "ties":
        Q = np.linalg.qr(rng.standard_normal((max(n, p), max(n, p))))[0]
        X = Q[:n, :p] * (1 + 1e-9 * rng.standard_normal(p))
    elif kind == "steep":
        X *= 10.0 ** -rng.uniform(0, 12, p)
    elif kind == "constant":
        X[:, rng.integers(p)] = rng.choice([0.1, 1e15 / 3, 7])
    elif kind == "equal columns":
        X[:, rng.integers(p)] = X[:, 0]
    elif kind == "equal rows":
        X[rng.integers(n)] = X[0]
    elif kind == "integers":
        X = rng.integers(-3, 4, (n, p)).astype(float)
    X = X + rng.choice([0, 0, 1, 1e3, 1e8, 1e15]) * rng.standard_normal(p)
    X = X * 2.0 ** int(rng.choice([0, 0, 0, -1000, 900, -500, 400, -140, 100]))
    if rng.random() < 0.3:
        with np.errstate(over="ignore"):
            X = np.clip(X, -1e38, 1e38).astype(np.float32)
    return X * (rng.random((n, p)) < 0.6) if rng.random() < 0.3 else X


def hostile_weights(rng, n):
    kind = rng.choice(["none", "none", "counts", "fractions"])
    w = rng.integers(0, 4, n).astype(float) if kind == "counts" else 3 * rng.random(n)
    return None if kind == "none" or np.count_nonzero(w) < 2 or w.sum() < 2 else w


def count_broken_bounds(case, bounds_of=lambda certificate: certificate.value_bounds):
    """How many stated values have no true one within their bounds."""
    rng = np.random.default_rng([seed(), case])
    X = hostile_rows(rng)
    n, p = X.shape
    w, scale, solver = hostile_weights(rng, n), bool(rng.random() < 0.3), str(rng.choice(SOLVERS))
    k = int(rng.integers(1, min(n if w is None else np.count_nonzero(w), n if w is None else int(w.sum()), p) + 1))
    given = sp.csr_array(X) if (X == 0).any() and rng.random() < 0.7 else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca = PCA(k, svd_solver=solver, scale=scale, tol=float(rng.choice([0.0, 1e-9]))).fit(given, sample_weight=w)
    true = [*true_values(X, np.ones(n) if w is None else w, scale), *[mpmath.mpf(0)] * k]
    with mpmath.workprec(BITS):
        pairs = zip(pca.singular_values_, bounds_of(pca.certificate_), strict=True)
        return sum(min(abs(float(value) - x) for x in true) > float(bound) for value, bound in pairs)


def test_every_singular_value_is_within_its_bound():
    broken = {case: n for case in range(case_count(150)) if (n := count_broken_bounds(case))}
    assert not broken, f"seed {seed()}: broken bounds in cases {broken}"


@pytest.mark.parametrize(
    "weakened",
    [
        lambda c: c.norm * c.residuals / 2**0.5,
        lambda c: c.norm * np.full(len(c.values), c.rounding) * (c.rounding < 1e-10) / 20,
        lambda c: c.value_bounds / 100,
    ],
    ids=["without rounding", "without residuals", "a hundredth"],
)
def test_weakened_bounds_are_broken(weakened):
    assert sum(count_broken_bounds(case, weakened) for case in range(40)) > 0


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("shape", "dtype"), [((90, 16), "f8"), ((16, 90), "f8"), ((400, 9), "f4")])
def test_the_bound_is_its_formula(solver, shape, dtype):
    """‖A‖(√(Σρ²/2) + ε(4 + (√n + √p)/2)), the sum over the first i; ρ measured here from the vectors, in float64."""
    X = np.random.default_rng(0).standard_normal(shape)
    X = (X - X.mean(axis=0)).astype(dtype)  # a mean that is subtracted after the product would round by more
    pca = PCA(2, svd_solver=solver).fit(X)
    found = pca.certificate_
    exact = solver in ("auto", "full", "covariance_eigh")
    eps = np.finfo("f8" if exact else dtype).eps
    assert found.rounding == pytest.approx(eps * (4 + (shape[0] ** 0.5 + shape[1] ** 0.5) / 2), rel=1e-6)
    together = [np.sqrt(sum(found.residuals[: i + 1] ** 2) / 2) for i in range(2)]
    np.testing.assert_allclose(found.value_bounds, found.norm * (np.array(together) + found.rounding), rtol=1e-12)
    D = X.astype(float) - X.astype(float).mean(axis=0)
    V = np.linalg.qr(pca.components_.T.astype(float))[0]
    residual = np.linalg.norm(D.T @ (D @ V) - V * np.sum((D @ V) ** 2, axis=0), axis=0) / pca.singular_values_
    assert np.all(residual <= found.norm * (found.residuals + 20 * np.finfo(dtype).eps))


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "krylov", "randomized"])
@pytest.mark.parametrize("scale", [False, True])
def test_bounds_hold_for_many_rows_where_sums_round_by_more(solver, scale):
    """Columns are copies of each other, so that the true values are known: 0, and those of one column."""
    rng = np.random.default_rng(seed())
    x = rng.standard_normal(200_000) + 1e6
    X = np.stack([x, x, 2 * x], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pca = PCA(2, svd_solver=solver, scale=scale).fit(X)
    d = x.astype(np.longdouble)
    d = d - d.mean()
    true = np.sqrt(3 * np.longdouble(len(x) - 1)) if scale else np.sqrt(6 * np.sum(d * d))
    bounds = pca.certificate_.value_bounds
    assert abs(pca.singular_values_[0] - true) <= bounds[0]
    assert pca.singular_values_[1] <= bounds[1]
    assert bounds.max() < 1e-12 * true


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("size", [1e-45, 1e-40, 1e-20, 1e20, 1e38])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_float32_of_any_size(solver, size, make):
    X = (np.random.default_rng(0).integers(-9, 10, (12, 5)) * np.float64(size) / 9).astype(np.float32)
    pca = PCA(2, svd_solver=solver).fit(make(X))
    D = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
    true = np.linalg.svd(D / size, compute_uv=False)[:2] * size
    assert np.all(np.abs(pca.singular_values_ - true) <= pca.certificate_.value_bounds + 1e-14 * true[0])
    np.testing.assert_allclose(pca.singular_values_, true, rtol=1e-3)


@pytest.mark.parametrize(("n", "step"), [(2000, 1), (2000, 7), (100_000, 2500)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_bounds_hold_for_streams(n, step, offset):
    """Two columns: their singular values have a closed form, evaluated in long doubles."""
    X = np.random.default_rng([seed(), n]).standard_normal((n, 2)) @ [[1.0, 0.9], [0.0, 0.05]] + offset
    pca = PCA()
    for start in range(0, n, step):
        pca.partial_fit(X[start : start + step])
    D = X.astype(np.longdouble)
    D = D - D.mean(axis=0)
    a, b, c = np.sum(D[:, 0] ** 2), np.sum(D[:, 0] * D[:, 1]), np.sum(D[:, 1] ** 2)
    largest = (a + c + np.sqrt((a - c) ** 2 + 4 * b**2)) / 2
    true = np.sqrt([largest, (a * c - b**2) / largest])
    assert np.all(np.abs(pca.singular_values_ - true) <= pca.certificate_.value_bounds)
    assert pca.certificate_.converged


@pytest.mark.parametrize("p", [1, 2, 3])
def test_the_power_method_finds_the_last_direction_too(p):
    """Where one direction is left, a fresh start may point against it."""
    for i in range(20):
        X = np.random.default_rng([seed(), p, i]).standard_normal((9, p)) * 4.0 ** -np.arange(p)
        pca = PCA(p, svd_solver="power").fit(X)
        np.testing.assert_allclose(pca.singular_values_, PCA(p, svd_solver="full").fit(X).singular_values_, rtol=1e-6)
