"""Factor analysis: R's factanal, scikit-learn's estimator, and the likelihood itself as oracles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.decomposition as theirs
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning

import gramian
from gramian import FactorAnalysis, NumericalWarning
from gramian.pca.factor_analysis import _profile_correlations, _profile_rows, _second_derivatives
from oracles import Array

R = json.loads((Path(__file__).parents[1] / "data" / "factanal.json").read_text())
RNG = np.random.default_rng(23)
X = RNG.normal(size=(300, 2)) @ RNG.normal(size=(2, 7)) + RNG.normal(size=(300, 7)) * np.linspace(0.5, 2, 7) + 4.0


def table(name: str) -> tuple[Array, int]:
    t = R[name]
    return np.reshape(t["rows"], (-1, t["columns"])), t["k"]


def match(found: Array, expected: Array) -> Array:
    """Columns of the one in the order and with the signs of the other."""
    length = np.linalg.norm(found, axis=0)[:, None] * np.linalg.norm(expected, axis=0)
    found = found[:, linear_sum_assignment(-np.abs(expected.T @ found) / length.T)[1]]
    return found * np.sign(np.sum(found * expected, axis=0))


@pytest.mark.parametrize("rotation", ["none", "varimax", "promax"])
@pytest.mark.parametrize("name", ["mtcars", "attitude"])
def test_factanal(name: str, rotation: str) -> None:
    rows, k = table(name)
    expected = R[name][rotation]
    fa = FactorAnalysis(k, rotation=None if rotation == "none" else rotation, normalize=True).fit(rows)
    spread = rows.var(axis=0)
    assert fa.certificate_.converged
    assert_allclose(fa.noise_variance_ / spread, expected["uniquenesses"], atol=2e-6)
    loadings = fa.components_.T / np.sqrt(spread)[:, None]
    wanted = np.reshape(expected["loadings"], (-1, k))
    # R's varimax ends at 1e-5 of its criterion, which leaves a few thousandths in the angles
    assert_allclose(match(loadings, wanted), wanted, atol=1e-5 if rotation == "none" else 5e-3)
    assert fa.statistic_ == pytest.approx(expected["statistic"][0], rel=1e-7)
    assert (fa.degrees_of_freedom_, fa.p_value_) == (expected["dof"], pytest.approx(expected["p_value"][0], rel=1e-6))


def test_a_column_without_noise_is_named() -> None:
    rows, k = table("swiss")
    expected = R["swiss"]["none"]
    there = np.array(expected["uniquenesses"]) * rows.var(axis=0)
    with pytest.warns(NumericalWarning, match="column 1: no noise beside the factors"):
        fa = FactorAnalysis(k, noise_floor=0.005, noise_variance_init=there).fit(rows)
    assert_allclose(fa.noise_variance_, there, rtol=1e-5)
    assert fa.certificate_.converged
    assert fa.statistic_ == pytest.approx(expected["statistic"][0], rel=1e-8)
    with pytest.warns(NumericalWarning, match="column 4: no noise"):  # R's three starts end at a lower maximum
        best = FactorAnalysis(k, noise_floor=0.005).fit(rows)
    assert best.statistic_ < fa.statistic_ - 2
    with pytest.warns(NumericalWarning, match="Heywood"):  # the likelihood rises where the floor sinks
        assert FactorAnalysis(k).fit(rows).score(rows) > best.score(rows)


@pytest.mark.parametrize("rotation", [None, "varimax", "quartimax"])
def test_scikit_learn(rotation: str | None) -> None:
    reference = theirs.FactorAnalysis(2, tol=1e-12, max_iter=20000, svd_method="lapack", rotation=rotation).fit(X)
    fa = FactorAnalysis(2, rotation=rotation).fit(X)
    assert_allclose(fa.noise_variance_, reference.noise_variance_, rtol=1e-4)
    assert_allclose(fa.mean_, reference.mean_, rtol=1e-13)
    assert_allclose(fa.get_covariance(), reference.get_covariance(), rtol=1e-4, atol=1e-5)
    assert_allclose(fa.get_precision(), np.linalg.inv(fa.get_covariance()), rtol=1e-9, atol=1e-12)
    assert_allclose(fa.score_samples(X), reference.score_samples(X), rtol=1e-4)
    assert fa.score(X) >= reference.score(X) - 1e-12
    assert fa.loglike_[-1] == pytest.approx(fa.score(X) * len(X), rel=1e-12)
    wanted = reference.components_.T
    assert_allclose(match(fa.components_.T, wanted), wanted, atol=2e-3)
    assert_allclose(match(fa.transform(X), reference.transform(X)), reference.transform(X), atol=5e-3)


def test_the_higher_of_two_maxima_in_a_fraction_of_the_steps() -> None:
    rows = load_breast_cancer().data
    fa = FactorAnalysis(3).fit(rows)
    Z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    reference = theirs.FactorAnalysis(3, tol=1e-8, max_iter=3000, svd_method="lapack").fit(Z)
    assert fa.score(rows) > reference.score(Z) - np.log(rows.std(axis=0)).sum() + 0.5
    assert fa.n_iter_ < 100


def test_oblique_factors_keep_the_model() -> None:
    plain, turned = FactorAnalysis(2).fit(X), FactorAnalysis(2, rotation="promax").fit(X)
    assert abs(turned.correlations_[0, 1]) > 0.01
    assert_allclose(turned.get_covariance(), plain.get_covariance(), rtol=1e-10)
    assert_allclose(turned.score_samples(X), plain.score_samples(X), rtol=1e-10)
    # scores are those of the plain factors in other coordinates
    assert turned.rotation_ is not None
    signs = plain.transform(X) @ np.linalg.inv(turned.rotation_.rotation).T
    assert_allclose(turned.transform(X), signs, atol=1e-9)


def test_density_is_the_normal_one() -> None:
    fa = FactorAnalysis(2).fit(X)
    assert_allclose(fa.score_samples(X), multivariate_normal(fa.mean_, fa.get_covariance()).logpdf(X), rtol=1e-10)


def test_derivatives() -> None:
    corr, psi = np.corrcoef(X.T), np.linspace(0.2, 0.8, 7)
    profile = _profile_correlations(corr, 2)
    at, step = profile(psi), 1e-5
    H = _second_derivatives(at)
    for j in range(7):
        up, down = (profile(psi * np.exp(s * step * (np.arange(7) == j))) for s in (1, -1))
        assert at.slope[j] == pytest.approx((up.value - down.value) / (2 * step), abs=1e-8)
        assert_allclose(H[j], (up.slope - down.slope) / (2 * step), atol=1e-7)
    Z = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(len(X))
    rows = _profile_rows(Z, 2)(psi)
    assert rows.value == pytest.approx(at.value, rel=1e-12)
    assert_allclose(rows.slope, at.slope, rtol=1e-9, atol=1e-12)


def test_units_weights_files_and_frames(tmp_path: Path) -> None:
    fa = FactorAnalysis(2).fit(X)
    units = np.geomspace(1e-6, 1e6, 7)
    other = FactorAnalysis(2).fit(X * units + 1e3 * units)
    assert_allclose(other.noise_variance_, fa.noise_variance_ * units**2, rtol=1e-6)
    counts = RNG.integers(0, 3, size=len(X))
    weighted = FactorAnalysis(2).fit(X, sample_weight=counts)
    repeated = FactorAnalysis(2).fit(np.repeat(X, counts, axis=0))
    assert_allclose(weighted.noise_variance_, repeated.noise_variance_, rtol=1e-6)
    assert weighted.statistic_ == pytest.approx(repeated.statistic_, rel=1e-6)
    np.save(tmp_path / "x.npy", X)
    assert_allclose(FactorAnalysis(2).fit(tmp_path / "x.npy").components_, fa.components_, rtol=1e-9)
    gramian.save(FactorAnalysis(2, rotation="promax").fit(X), tmp_path / "model")
    again = gramian.load(tmp_path / "model")
    assert_allclose(again.transform(X), FactorAnalysis(2, rotation="promax").fit(X).transform(X), rtol=0, atol=0)
    assert again.rotation_.method == "promax"


def test_more_columns_than_rows() -> None:
    wide = RNG.normal(size=(40, 2)) @ RNG.normal(size=(2, 310)) + RNG.normal(size=(40, 310))
    fa = FactorAnalysis(2).fit(wide)
    reference = theirs.FactorAnalysis(2, tol=1e-10, max_iter=5000, svd_method="lapack").fit(wide)
    assert fa.certificate_.converged
    assert fa.score(wide) >= reference.score(wide) - 1e-9
    assert_allclose(fa.noise_variance_, reference.noise_variance_, rtol=1e-3)


def test_what_cannot_be_or_is_not_determined() -> None:
    iris: Any = load_iris().data
    with pytest.warns(NumericalWarning, match="more parameters than covariances"):
        fa = FactorAnalysis(3).fit(iris)
    assert not fa.certificate_.determined
    assert np.isnan(fa.p_value_)
    flat = X.copy()
    flat[:, 3] = 5.0
    with pytest.warns(NumericalWarning, match="column 4: constant"):
        fa = FactorAnalysis(1).fit(flat)
    assert fa.noise_variance_[3] == 0.0
    assert_allclose(fa.score_samples(flat), FactorAnalysis(1).fit(np.delete(X, 3, axis=1)).score_samples(np.delete(X, 3, axis=1)), rtol=1e-9)  # fmt: skip  # noqa: E501
    with pytest.raises(ValueError, match="singular"):
        fa.get_precision()
    with pytest.warns(ConvergenceWarning, match="Raise max_iter=2"):
        FactorAnalysis(2, max_iter=2).fit(X)
    for bad, message in (
        ({"n_components": 8}, "n_components=8"),
        ({"rotation": "oblimin"}, "rotation"),
        ({"noise_floor": 0.0}, "noise_floor"),
        ({"noise_variance_init": [1.0]}, "noise_variance_init"),
    ):
        with pytest.raises(ValueError, match=message):
            FactorAnalysis(**bad).fit(X)
    with pytest.raises(ValueError, match="NaN"):
        FactorAnalysis(1).fit(np.where(X > 7, np.nan, X))


def test_tensors_come_back_as_tensors() -> None:
    torch = pytest.importorskip("torch")
    fa = FactorAnalysis(2, rotation="varimax").fit(torch.tensor(X))
    assert torch.is_tensor(fa.components_)
    assert_allclose(fa.transform(torch.tensor(X)).numpy(), FactorAnalysis(2, rotation="varimax").fit(X).transform(X), atol=1e-7)  # fmt: skip  # noqa: E501


def test_values_without_room_for_their_squares_are_refused() -> None:
    for factor, what in ((1e160, "large"), (1e-165, "small")):
        with pytest.raises(ValueError, match=f"column 1 are too {what}"):
            FactorAnalysis(1).fit(X * factor)
    usual, fit = FactorAnalysis(2).fit(X), FactorAnalysis(2).fit(X * 1e140)
    assert_allclose(fit.components_, usual.components_ * 1e140, rtol=1e-6)
