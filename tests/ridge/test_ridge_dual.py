"""Wide data by a Cholesky factor of X̃X̃ᵀ + λI: the answers of an SVD of the data, in everything that a model says."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian
from gramian import Ridge


def wide(n: int, p: int, weights: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    rng = np.random.default_rng([n, p])
    w = {"none": None, "counts": rng.integers(0, 3, n).astype(float), "precisions": rng.random(n)}[weights]
    return rng.standard_normal((n, p)) + 3.0, rng.standard_normal((n, 2)), w


@pytest.mark.parametrize("weights", ["none", "counts", "precisions"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-2, 1e3])
@pytest.mark.parametrize("shape", [(30, 90), (20, 21), (6, 300)])
def test_a_factor_of_the_dual_problem_says_what_an_svd_says(
    shape: tuple[int, int], alpha: float, intercept: bool, weights: str
) -> None:
    X, Y, w = wide(*shape, weights)
    one = Ridge(alpha, fit_intercept=intercept).fit(X, Y, w)
    other = Ridge(alpha, fit_intercept=intercept, solver="svd").fit(X, Y, w)
    assert "Cholesky" in one.certificate_.method
    assert one.certificate_.converged
    assert one.rank_ == other.rank_
    for name in ("coef_", "intercept_", "dof_", "noise_variance_", "training_error_", "r2_"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, err_msg=name)
    new = np.random.default_rng(5).standard_normal((4, shape[1]))
    assert_allclose(one.predict(new, return_std=True)[1], other.predict(new, return_std=True)[1], rtol=1e-8)
    off = np.linalg.norm(one.coef_ - other.coef_, axis=1)
    assert np.all(off <= one.certificate_.error_bounds + other.certificate_.error_bounds)


def test_variances_are_those_of_the_fit_though_the_data_change_afterwards() -> None:
    X, Y, _ = wide(30, 90, "none")
    kept = X.copy()
    model = Ridge(0.1).fit(X, Y)
    X[:] = 0.0
    assert_allclose(model.coef_covariance(), Ridge(0.1, solver="svd").fit(kept, Y).coef_covariance(), rtol=1e-8)


def test_a_model_that_is_stored_has_its_inverse_and_not_the_rows(tmp_path: Path) -> None:
    X, Y, _ = wide(30, 90, "none")
    model = Ridge(0.1).fit(X, Y)
    gramian.save(model, tmp_path / "model")
    for stored in (pickle.loads(pickle.dumps(model)), gramian.load(tmp_path / "model")):
        assert not any(hasattr(each, "rows") for each in stored._groups)
        assert_allclose(stored.coef_covariance(), model.coef_covariance(), rtol=1e-10)
        assert_allclose(stored.predict(X), model.predict(X))


def test_rows_that_repeat_are_left_to_a_decomposition_which_tells_the_rank() -> None:
    X, Y, _ = wide(20, 60, "none")
    X[7], Y[7] = X[3], Y[3]
    model = Ridge(1.0).fit(X, Y)
    assert model.rank_ == 18
    assert_allclose(model.coef_, Ridge(1.0, solver="svd").fit(X, Y).coef_, rtol=1e-9)
