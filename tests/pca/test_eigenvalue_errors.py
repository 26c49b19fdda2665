"""Large-sample formulas against simulated samples, closed forms, and a loop over their sums."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm

from gramian import PCA
from gramian.pca.bootstrap import AsymptoticErrors, eigenvalue_errors, equality_test
from gramian.results import NumericalWarning
from oracles import Array, separated, with_spectrum

TRUTH = np.array([9.0, 4.0, 1.0])


def having(variances: Any, n: int, seed: int = 0) -> Array:
    """Data of n rows whose sample variances are exactly these."""
    lam = np.asarray(variances, dtype=float)
    return with_spectrum(n, len(lam), np.sqrt(lam * (n - 1)), seed)


def simulated(n: int, samples: int, truth: Array = TRUTH) -> tuple[Array, Array]:
    """Eigenvalues, descending, and eigenvectors as columns, of covariance matrices of Gaussian samples."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(samples, n, len(truth))) * np.sqrt(truth)
    D = X - X.mean(axis=1, keepdims=True)
    values, vectors = np.linalg.eigh(np.einsum("sni,snj->sij", D, D) / (n - 1))
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]
    signs = np.sign(np.einsum("sii->si", vectors))
    return values, vectors * signs[:, None, :]


def test_errors_are_the_spread_of_simulated_samples() -> None:
    values, vectors = simulated(500, 3000)
    X = np.diag(np.sqrt(TRUTH * 499 / 2)) @ np.eye(3)
    X = np.vstack([X, -X, np.zeros((494, 3))])  # 500 rows whose covariance is diag(TRUTH)
    found = eigenvalue_errors(PCA().fit(X))
    assert_allclose(found.explained_variance.estimate, TRUTH, rtol=1e-12)
    # 3000 samples know a standard deviation to 1.3 %; the next order of the formula is of size 1/√500
    assert_allclose(found.explained_variance.error, values.std(axis=0), rtol=0.06)
    off = ~np.eye(3, dtype=bool)
    assert_allclose(found.components.error[off], vectors.std(axis=0).T[off], rtol=0.06)
    assert_allclose(np.diag(found.components.error), 0, atol=1e-12)


def test_bias_is_that_of_simulated_samples() -> None:
    n, samples = 60, 40_000
    values, _ = simulated(n, samples)
    found = eigenvalue_errors(PCA().fit(having(TRUTH, n))).explained_variance
    spread = found.error / np.sqrt(samples)
    # Lawley's term leaves out the order 1/n², here a tenth of it
    assert_allclose(values.mean(axis=0) - TRUTH, found.bias, atol=4 * float(spread.max()), rtol=0.15)
    assert found.bias[0] > 0 > found.bias[2]
    assert_allclose(found.bias.sum(), 0, atol=1e-12)  # the trace is unbiased


@pytest.mark.parametrize("form", ["ratio", "log"])
def test_coverage(form: str) -> None:
    n, held = 150, []
    for values in simulated(n, 400)[0]:
        found = eigenvalue_errors(PCA().fit(having(values, n)), 0.9, form=form)
        held.append(found.explained_variance.covers(TRUTH))
    # 400 samples spread by 0.015, and the bias of the smallest variance takes some of it
    assert_allclose(np.mean(held, axis=0), 0.9, atol=0.05)


def test_both_forms_by_their_definition() -> None:
    n, lam = 40, np.array([5.0, 2.0])
    pca = PCA().fit(having(lam, n))
    ratio, log = (eigenvalue_errors(pca, 0.8, form=form).explained_variance for form in ("ratio", "log"))
    reach = norm.ppf(0.9) * np.sqrt(2 / (n - 1))
    assert_allclose(ratio.lower, lam / (1 + reach), rtol=1e-9)
    assert_allclose(ratio.upper, lam / (1 - reach), rtol=1e-9)
    assert_allclose(np.log([log.lower, log.upper]), np.log(lam) + np.array([[-reach], [reach]]), rtol=1e-9)
    assert_allclose(log.error, ratio.error)


@given(seed=st.integers(0, 10_000), p=st.integers(2, 5), n=st.integers(20, 200))
def test_entry_errors_are_the_sums_of_the_formula(seed: int, p: int, n: int) -> None:
    X = separated(n, p, seed)
    pca = PCA().fit(X)
    found = eigenvalue_errors(pca, 0.6).components
    lam, V = pca.explained_variance_, pca.components_
    for component in range(p):
        cov = np.zeros((p, p))
        for other in range(p):
            if other != component:
                cov += lam[other] / (lam[other] - lam[component]) ** 2 * np.outer(V[other], V[other])
        cov *= lam[component] / (n - 1)
        assert_allclose(found.error[component], np.sqrt(np.diag(cov)), rtol=1e-8)


def test_variances_left_out_count_as_equal() -> None:
    # where they are equal, the leading components need no others
    X = having([9.0, 4.0, 1.0, 1.0, 1.0, 1.0], 200)
    with pytest.warns(NumericalWarning, match="2, 3, 4, 5"):
        full = eigenvalue_errors(PCA().fit(X))
    part = eigenvalue_errors(PCA(2).fit(X))
    assert_allclose(part.components.error, full.components.error[:2], rtol=1e-6)
    assert_allclose(part.explained_variance.bias, full.explained_variance.bias[:2], rtol=1e-6)
    assert np.isnan(full.components.error[2:]).all()
    assert "the 4 variances left out taken as equal" in part.assumptions


def test_frequencies_and_whitening() -> None:
    X, w = separated(40, 4), np.arange(40) % 4 + 1
    weighted = eigenvalue_errors(PCA(2, whiten=True).fit(X, sample_weight=w))
    repeated = eigenvalue_errors(PCA(2).fit(np.repeat(X, w, axis=0)))
    assert weighted.weight == w.sum()
    assert_allclose(weighted.explained_variance.upper, repeated.explained_variance.upper, rtol=1e-9)
    assert_allclose(weighted.components.error, repeated.components.error, rtol=1e-8)


def test_equality_of_all_variances_is_the_test_of_sphericity() -> None:
    X = np.random.default_rng(0).normal(size=(50, 4))
    S = np.cov(X.T)
    expected = -49 * np.log(np.linalg.det(S) / (np.trace(S) / 4) ** 4)
    found = equality_test(PCA().fit(X), range(4))
    assert_allclose(found.statistic, expected, rtol=1e-10)
    assert found.freedom == 9


def test_level_of_the_test_of_equality() -> None:
    truth = np.array([16.0, 4.0, 4.0, 1.0])
    values, _ = simulated(300, 600, truth)
    p_values = [equality_test(PCA().fit(having(lam, 300)), (1, 2)).p_value for lam in values]
    rejected = np.mean(np.array(p_values) < 0.05)
    assert abs(rejected - 0.05) < 3 * np.sqrt(0.05 * 0.95 / 600)
    apart = [equality_test(PCA().fit(having(lam, 300)), (0, 1)).p_value for lam in values[:20]]
    assert max(apart) < 1e-6


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: eigenvalue_errors(PCA(scale=True).fit(separated(40, 3))), "scales its columns.*bootstrap"),
        (lambda: equality_test(PCA(scale=True).fit(separated(40, 3)), (0, 1)), "scales its columns"),
        (lambda: eigenvalue_errors(PCA().fit(separated(8, 3))), "form='log'"),
        (lambda: eigenvalue_errors(PCA().fit(separated(40, 3)), 1.5), "level.*1.5"),
        (lambda: eigenvalue_errors(PCA().fit(separated(40, 3)), form="exp"), "form must be one of"),
        (lambda: eigenvalue_errors(PCA().fit(np.c_[separated(40, 3), np.ones(40)])), r"3 have variance.*PCA\(n_comp"),
        (lambda: equality_test(PCA().fit(separated(40, 3)), (0, 2)), r"neighbours from 0 to 2, got \(0, 2\)"),
        (lambda: equality_test(PCA().fit(separated(40, 3)), (2, 3)), "neighbours"),
        (lambda: equality_test(PCA().fit(separated(40, 3)), (1,)), "two or more"),
        (lambda: equality_test(PCA().fit(separated(40, 3)), ()), "two or more"),
        (lambda: equality_test(PCA().fit(separated(40, 3)), (-1, 0)), "neighbours"),
    ],
)
def test_what_the_formulas_do_not_cover_is_refused(call: Any, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        call()


def test_few_rows_exist_in_the_log_form_and_too_few_are_warned_about() -> None:
    few = eigenvalue_errors(PCA().fit(separated(8, 3)), form="log")
    assert (few.explained_variance.lower > 0).all()
    with pytest.warns(NumericalWarning, match=r"10 rows.*30 variables"):
        eigenvalue_errors(PCA(2).fit(separated(10, 30)))


def test_results_read_well_and_make_frames() -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(separated(60, 3), columns=["a", "b", "c"])
    pca = PCA(2).fit(X)
    found = eigenvalue_errors(pca)
    assert isinstance(found, AsymptoticErrors)
    assert found.names == ("a", "b", "c")
    assert "n = 60, 95% intervals" in repr(found)
    assert "Gaussian" in repr(found)
    assert pandas.DataFrame(found.table())["estimate"].tolist() == pca.explained_variance_.tolist()
    assert pandas.DataFrame(equality_test(pca, (0, 1)).table()).shape == (1, 3)


def test_missing_cells_make_the_formulas_too_sure() -> None:
    X = np.random.default_rng(0).normal(size=(60, 4)) * [4, 2, 1, 1]
    X[3, 1] = np.nan
    pca = PCA(2).fit(X)
    for call in (lambda: eigenvalue_errors(pca), lambda: equality_test(pca, [0, 1])):
        with pytest.raises(ValueError, match="bootstrap"):
            call()


def test_entries_are_called_by_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(60, 3)) * [4, 2, 1], columns=list("abc"))
    found = eigenvalue_errors(PCA(2).fit(X))
    names = [line.split("  ")[1] for line in repr(found.components).splitlines()[2:]]
    assert names == ["pca0, a", "pca0, b", "pca0, c", "pca1, a", "pca1, b", "pca1, c"]
    assert "pca1" in repr(found.explained_variance)
