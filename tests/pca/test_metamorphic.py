"""What may not change a PCA, or changes it in a known way: order, units, shifts, rotations, copies, containers."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from threadpoolctl import threadpool_limits

import gramian
from gramian import PCA, analysis
from gramian.results import NumericalWarning

SOLVERS = ("full", "covariance_eigh", "krylov", "randomized", "power")
SHAPES = [(40, 7), (7, 30)]
K = 3


def rows_of(n, p, seed=0):
    rng = np.random.default_rng([n, p, seed])
    X = rng.standard_normal((n, p))
    X[:, :4] *= [16.0, 8.0, 4.0, 2.0]  # well apart, so that directions are determined
    return X + rng.integers(-3, 4, p)


def fit(X, solver="auto", w=None, **options):
    return PCA(K, **({"svd_solver": solver, "tol": 1e-11, "iterated_power": 20_000} | options)).fit(X, sample_weight=w)


def assert_same(a, b, components=None, rtol=1e-9):
    """The same variances and, up to sign, the same components."""
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol)
    assert_allclose(a.noise_variance_, b.noise_variance_, rtol=1e-7)
    expected = b.components_ if components is None else components
    turn = np.sign(np.sum(a.components_ * expected, axis=1))[:, None]
    assert_allclose(a.components_, turn * expected, atol=1e-7)


@pytest.fixture(params=SHAPES, ids=str)
def X(request):
    return rows_of(*request.param)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [False, True])
class TestEverySolver:
    def test_order_of_rows(self, X, solver, scale):
        order = np.random.default_rng(1).permutation(len(X))
        assert_same(fit(X[order], solver, scale=scale), fit(X, solver, scale=scale))

    def test_order_of_columns(self, X, solver, scale):
        order = np.random.default_rng(1).permutation(X.shape[1])
        a, b = fit(X[:, order], solver, scale=scale), fit(X, solver, scale=scale)
        assert_same(a, b, b.components_[:, order])
        assert_allclose(a.mean_, b.mean_[order], rtol=1e-12, atol=1e-12)

    def test_shift(self, X, solver, scale):
        c = np.random.default_rng(1).integers(-(2**20), 2**20, X.shape[1])
        X = np.round(X * 2**20) / 2**20  # so that adding c rounds nothing
        a, b = fit(X + c, solver, scale=scale), fit(X, solver, scale=scale)
        assert_same(a, b)
        assert_allclose(a.mean_ - c, b.mean_, atol=1e-9)

    def test_copies_are_weights(self, X, solver, scale):
        w = np.random.default_rng(1).integers(0, 4, len(X))
        w[:5] = 1
        assert_same(fit(np.repeat(X, w, axis=0), solver, scale=scale), fit(X, solver, w, scale=scale))

    def test_sparse_is_dense(self, X, solver, scale):
        X = X * (np.abs(X) > 0.5)
        assert_same(fit(sp.csc_array(X), solver, scale=scale), fit(X, solver, scale=scale))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("exponent", [-300, -8, 8, 300])
def test_powers_of_two_change_no_digit(X, solver, exponent):
    unit = 2.0**exponent
    a, b = fit(X * unit, solver), fit(X, solver)
    # far units are taken out first, which costs one more rounding of the mean; iterations start from a hash of the data
    exact = exponent in (-8, 8) and solver in ("full", "covariance_eigh")
    assert_allclose(a.singular_values_ / unit, b.singular_values_, rtol=0 if exact else 1e-10)
    assert_allclose(a.components_, b.components_, rtol=0, atol=0 if exact else 1e-7)
    scaled = fit(X * unit, solver, scale=True), fit(X, solver, scale=True)
    assert_allclose(scaled[0].explained_variance_, scaled[1].explained_variance_, rtol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_rotation_of_columns_rotates_components(X, solver):
    Q = np.linalg.qr(np.random.default_rng(2).standard_normal((X.shape[1],) * 2))[0]
    a, b = fit(X @ Q, solver), fit(X, solver)
    assert_same(a, b, b.components_ @ Q)


@pytest.mark.parametrize("solver", SOLVERS)
def test_transposed_centred_rows_have_the_same_values(solver):
    """A doubly centred table has the singular values of its transpose."""
    X = rows_of(15, 9)
    D = X - X.mean(axis=0) - X.mean(axis=1)[:, None] + X.mean()
    assert_allclose(fit(D, solver).singular_values_, fit(D.T, solver).singular_values_, rtol=1e-10)


@pytest.mark.parametrize("solver", SOLVERS)
def test_numbers_of_threads_change_no_bit(solver):
    X = rows_of(3000, 30)
    with threadpool_limits(1):
        one = fit(X, solver)
    with threadpool_limits(2):
        two = fit(X, solver)
    assert_array_equal(one.singular_values_, two.singular_values_)
    assert_array_equal(one.components_, two.components_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_files_and_their_blocks_are_the_array(tmp_path, solver, scale, weighted):
    X = rows_of(500, 12)
    w = np.random.default_rng(0).integers(0, 3, 500) if weighted else None
    np.save(tmp_path / "x.npy", X)
    expected = fit(X, solver, w, scale=scale)
    with config_context(working_memory=0.05):  # a few dozen rows at a time
        found = fit(str(tmp_path / "x.npy"), solver, w, scale=scale)
        scores = found.transform(str(tmp_path / "x.npy"))
    assert_same(found, expected)
    assert_allclose(scores, expected.transform(X), atol=1e-7)


def containers(X):
    yield "list", X.tolist()
    yield "fortran", np.asfortranarray(X)
    yield "strided", np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    yield "reversed", X[::-1, ::-1].copy()[::-1, ::-1]
    yield "frame", pd.DataFrame(X)
    yield "source", gramian.open(X)
    yield "csr", sp.csr_array(X)
    yield "coo", sp.coo_matrix(X)


@pytest.mark.parametrize("solver", SOLVERS)
def test_containers(X, solver):
    expected = fit(X, solver)
    for name, given in containers(X):
        try:
            assert_same(fit(given, solver), expected)
        except AssertionError as error:
            raise AssertionError(name) from error


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensors(X, solver, dtype):
    torch = pytest.importorskip("torch")
    X = X.astype(dtype)
    tol = 1e-11 if dtype == "float64" else 1e-4
    a, b = fit(torch.asarray(X), solver, tol=tol), fit(X, solver, tol=tol)
    assert_allclose(np.asarray(a.singular_values_), b.singular_values_, rtol=1e-9 if dtype == "float64" else 1e-4)
    assert_allclose(np.abs(np.asarray(a.components_)), np.abs(b.components_), atol=1e-6 if dtype == "float64" else 1e-3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "bool", "float16"])
def test_narrow_numbers_are_their_values(dtype):
    X = (rows_of(20, 5) * 3).clip(0, 100).astype(dtype)
    assert_same(fit(X), fit(X.astype(np.float64)))


@pytest.mark.parametrize("cuts", [[1, 2, 39], [20], [5, 6, 7, 30]])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_a_stream_is_the_whole(cuts, scale, shift):
    X = np.round(rows_of(40, 7) * 2**10) / 2**10 + shift
    pca = PCA(K, scale=scale)
    for part in np.split(X, cuts):
        pca.partial_fit(part)
    assert_same(pca, fit(X, "full", scale=scale), rtol=1e-7 if shift else 1e-9)
    assert_array_equal(pca.n_samples_, 40)


def unit_free_results(X):
    """What has no unit, of every function on a fitted model that computes with squares."""
    pca = PCA(2).fit(X)
    chart = analysis.monitor(pca, X, q="moments")
    drawn = analysis.bootstrap(pca, X, n_replicates=60)
    yield "whitened", PCA(2, whiten=True).fit(X).transform(X)
    yield "correlations", analysis.correlations(pca, X)
    yield "cos2", analysis.describe(pca, X).rows.cos2
    yield "rotated scores", analysis.rotated_scores(pca, X, analysis.rotate(pca))
    yield "errors of components", analysis.eigenvalue_errors(pca).components.error
    yield "equality", analysis.equality_test(pca, [0, 1]).statistic
    yield "alarms", chart.check(X).t2
    yield "distances by their limit", chart.check(X).q / chart.q_limit
    yield "bootstrap", drawn.components.error
    yield "bootstrap of ratios", drawn.explained_variance_ratio.lower
    yield "procrustes", analysis.procrustes(X[:, :2], X[:, 2:4]).r_squared
    yield "rv", analysis.rv_coefficient(X[:, :2], X[:, 2:4]).rv
    for rule in ("mle", "tracy-widom", "gavish-donoho", "broken-stick", "parallel", "parallel-gaussian", "cv"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumericalWarning)  # of a rule that keeps nothing
            yield rule, PCA(rule).fit(X).n_components_


@pytest.mark.parametrize("exponent", [-490, 490])
def test_functions_on_a_model_have_no_unit_either(exponent):
    """Squares of such numbers are representable, fourth powers are not."""
    X = rows_of(40, 5)
    X -= X.mean(axis=0)
    for (name, found), (_, expected) in zip(unit_free_results(X * 2.0**exponent), unit_free_results(X), strict=True):
        assert_allclose(found, expected, rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("unit", [1e-160, 1e154])
def test_what_is_made_of_variances_beyond_float64_is_refused(unit):
    X = rows_of(40, 5) * unit
    with pytest.warns(NumericalWarning, match="explained_variance_"):
        pca = PCA(2).fit(X)
    for call in (
        pca.get_covariance,
        pca.get_precision,
        pca.sample,
        lambda: pca.score(X),
        lambda: analysis.monitor(pca, X),
        lambda: analysis.bootstrap(pca, X),
        lambda: analysis.eigenvalue_errors(pca),
    ):
        with pytest.raises(ValueError, match="too large or too small"):
            call()
