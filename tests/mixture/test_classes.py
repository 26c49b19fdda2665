"""Merging by entropy and mixtures for classes: R's mclust and scikit-learn as oracles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import xlogy
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.model_selection import cross_val_score

import gramian
from gramian import GaussianMixture, MixtureDiscriminant, RobustMixture
from gramian.analysis import merge_components
from gramian.mixture import Mixture
from gramian.results import NumericalWarning

DATA = Path(__file__).parents[1] / "data"
R = json.loads((DATA / "mclust_noise.json").read_text())
X: Any
y: Any
X, y = load_iris(return_X_y=True)


class Given(BaseEstimator):
    """A fitted mixture with given parameters."""

    def __init__(self, mixture: Any = None) -> None:
        self.mixture = mixture

    def fit(self) -> "Given":
        self.weights_ = self.mixture.weights
        return self

    def predict_proba(self, rows: Any) -> Any:
        return self.mixture.responsibilities(rows)


def test_clust_combi() -> None:
    r = R["merging"]
    flat = np.reshape(r["covariances"], (4, 4))
    matrices = flat.T.ravel().reshape(4, 2, 2)
    mixture = Mixture.of(r["weights"], np.reshape(r["means"], (4, 2)), matrices)
    faithful = np.reshape(R["noise"]["rows"], (-1, 2))[:272]
    merged = merge_components(Given(mixture).fit(), faithful)
    assert_allclose(merged.entropies[1:], r["entropies"][1:], rtol=1e-8)
    for k in range(1, 5):
        theirs = np.array(r["labels"][k - 1])
        pairs = set(zip(merged.predict(k).tolist(), theirs.tolist(), strict=True))
        assert len(pairs) == k  # the same partition under other names


def test_merging_step_by_step() -> None:
    rng = np.random.default_rng(3)
    square = np.concatenate([rng.uniform(0, 1, (200, 2)), rng.uniform(0, 1, (200, 2)) + np.array([2, 0])])
    model = GaussianMixture(5).fit(square)
    w = rng.integers(1, 3, size=400)
    merged = merge_components(model, square, sample_weight=w)
    for k in range(1, 6):
        P = merged.predict_proba(k)
        assert P.shape == (400, k)
        assert merged.entropies[k - 1] == pytest.approx(-float(w @ xlogy(P, P).sum(axis=1)), abs=1e-9)
    assert np.all(np.diff(merged.entropies) >= -1e-9)
    repeated = merge_components(model, np.repeat(square, w, axis=0))
    assert_allclose(repeated.entropies, merged.entropies, atol=1e-8)
    assert merged.n_groups == 2
    assert len(set(merged.predict()[:200])) == 1
    assert "2 groups" in repr(merged)
    assert merged.table()["groups"].tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match="n_groups=6"):
        merged.groups(6)
    noisy = RobustMixture(3, degrees_of_freedom=None, noise=True).fit(square)
    assert merge_components(noisy, square).responsibilities.shape == (400, 3)


def test_mclust_da() -> None:
    r = R["classes"]
    model = MixtureDiscriminant((1, 2), covariance_types=["EEE", "VVV", "EEI"]).fit(X, y)
    assert [mixture.n_components for mixture in model.mixtures_] == r["sizes"]
    assert model.log_likelihood_ == pytest.approx(r["log_likelihood"][0], rel=1e-5)
    assert -model.bic_ == pytest.approx(r["bic"][0], rel=1e-5)
    assert_allclose(model.predict_proba(X), np.reshape(r["z"], (-1, 3)), atol=1e-4)
    assert model.certificate_.converged


def test_edda() -> None:
    r = R["classes"]["edda"]
    model = MixtureDiscriminant(shared=True, covariance_types=["EEE", "VVV", "EII"]).fit(X, y)
    assert r["model"] in model.certificate_.reason
    assert model.log_likelihood_ == pytest.approx(r["log_likelihood"][0], rel=1e-10)
    assert -model.bic_ == pytest.approx(r["bic"][0], rel=1e-10)
    assert_allclose(model.predict_proba(X), np.reshape(r["z"], (-1, 3)), atol=1e-10)


def test_linear_and_quadratic_discriminant_analysis() -> None:
    linear = MixtureDiscriminant(shared=True, covariance_types=["EEE"]).fit(X, y)
    # scikit-learn's "lsqr" has the covariance with the divisor n
    assert_allclose(linear.predict_proba(X), LinearDiscriminantAnalysis(solver="lsqr").fit(X, y).predict_proba(X), atol=1e-8)  # fmt: skip  # noqa: E501
    quadratic = MixtureDiscriminant(1, covariance_types=["VVV"], priors=[1, 1, 2]).fit(X, y)
    reference = QuadraticDiscriminantAnalysis(priors=[0.25, 0.25, 0.5]).fit(X, y)
    assert np.mean(quadratic.predict(X) == reference.predict(X)) > 0.99
    assert_allclose(quadratic.priors_, [0.25, 0.25, 0.5])


def test_classes_that_are_not_normal() -> None:
    rng = np.random.default_rng(4)
    rows = np.concatenate([rng.normal(c, 0.7, (80, 2)) for c in [[0, 0], [4, 4], [0, 4], [4, 0]]])
    labels = np.repeat(["diagonal", "other"], 160)
    model = MixtureDiscriminant((1, 2, 3), covariance_types=["EII", "VVV"]).fit(rows, labels)
    assert [mixture.n_components for mixture in model.mixtures_] == [2, 2]
    assert model.score(rows, labels) > 0.98
    held_out = model.cross_validate(rows, labels, n_folds=4)
    assert held_out["error"] < 0.04
    assert 0 < held_out["brier"] < 0.04
    by_sklearn = cross_val_score(model, rows, labels, cv=3)
    assert by_sklearn.mean() > 0.95


def test_weights_missing_cells_files_and_models(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    counts = rng.integers(1, 3, size=len(y))
    kind: dict[str, Any] = {"n_components": 1, "covariance_types": ["EEE", "VVV"]}
    weighted = MixtureDiscriminant(**kind).fit(X, y, sample_weight=counts)
    repeated = MixtureDiscriminant(**kind).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-9)
    plain = MixtureDiscriminant(**kind).fit(X, y)
    np.save(tmp_path / "x.npy", X)
    assert_allclose(MixtureDiscriminant(**kind).fit(tmp_path / "x.npy", y).predict_proba(X), plain.predict_proba(X), atol=1e-8)  # fmt: skip  # noqa: E501
    gramian.save(plain, tmp_path / "model")
    assert_allclose(gramian.load(tmp_path / "model").predict_proba(X), plain.predict_proba(X), rtol=0, atol=0)
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    missing = MixtureDiscriminant(**kind).fit(holes, y)
    assert missing.score(holes, y) > 0.9
    for bad, message in (
        ({"priors": [1.0]}, "priors"),
        ({"criterion": "lrt"}, "criterion"),
        ({"n_components": 0}, "n_components"),
    ):
        with pytest.raises(ValueError, match=message):
            MixtureDiscriminant(**bad).fit(X, y)
    with pytest.raises(ValueError, match="one class alone"):
        MixtureDiscriminant().fit(X[:50], y[:50])
    with pytest.warns(gramian.NumericalWarning, match=r"the rows of a class \(1\)"):
        lonely = MixtureDiscriminant(**kind).fit(X[:51], y[:51])
    assert lonely.score(X[:51], y[:51]) == 1.0
    with pytest.raises(ValueError, match="NaN"):
        MixtureDiscriminant(shared=True).fit(holes, y)


def test_one_model_for_all_classes_that_has_collapsed_is_not_chosen() -> None:
    rng = np.random.default_rng(0)
    wide, labels = rng.normal(size=(12, 30)), np.repeat([0, 1], 6)
    model = MixtureDiscriminant(shared=True).fit(wide, labels)
    assert model.mixtures_[0].model[2] == "I"  # of 12 rows in 30 columns no other has full rank
    assert model.certificate_.notes == ()
    with pytest.warns(NumericalWarning, match="12 rows in 30 columns have no covariance matrix of full rank"):
        flat = MixtureDiscriminant(shared=True, covariance_types=["VVV"]).fit(wide, labels)
    assert "full rank" in flat.certificate_.notes[0]
    lone = np.r_[np.zeros(59), 1.0]
    several = rng.normal(size=(60, 3))
    assert MixtureDiscriminant(shared=True).fit(several, lone).mixtures_[0].model[0] == "E"
    with pytest.warns(NumericalWarning, match="component 2 has collapsed .it holds 1 row"):
        MixtureDiscriminant(shared=True, covariance_types=["VVI"]).fit(several, lone)
    units = np.array([1e80, 1.0, 1e-80])  # some of the models are lost to rounding, not all
    apart = (several + np.repeat([[0.0], [6.0]], 30, axis=0)) * units
    assert MixtureDiscriminant(shared=True).fit(apart, np.repeat([0, 1], 30)).score(apart, np.repeat([0, 1], 30)) == 1.0
