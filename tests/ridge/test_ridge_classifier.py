"""RidgeClassifier and RidgeClassifierCV: scikit-learn's numbers, its contract, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context, linear_model
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian import RidgeClassifier, RidgeClassifierCV, load, save
from oracles import Array

GRID = np.geomspace(0.05, 500, 8)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [RidgeClassifier(), RidgeClassifier(solver="svd"), RidgeClassifier(scale=True), RidgeClassifierCV()]
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def rows(n: int = 60, p: int = 4, seed: int = 0) -> tuple[Array, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 2, p) + rng.uniform(-3, 3, p)
    z = X - X.mean(axis=0) + 0.5 * rng.normal(size=(n, p))
    return X, {
        "two": np.where(z[:, 0] > 0, "yes", "no"),
        "three": np.array(["a", "b", "c"])[np.digitize(z[:, 0], [-0.5, 0.5])],
        "several": (z[:, :3] > 0).astype(int),
    }


@pytest.mark.parametrize("kind", ["two", "three", "several"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"fit_intercept": False}, {"alpha": 30.0}])
def test_everything_is_as_in_scikit_learn(kind: str, weighted: bool, options: dict[str, Any]) -> None:
    X, labels = rows()
    y, w = labels[kind], np.random.default_rng(1).uniform(0.3, 2, 60) if weighted else None
    for Z in (X, sp.csr_array(X)):
        ours = RidgeClassifier(**options).fit(Z, y, sample_weight=w)
        theirs = linear_model.RidgeClassifier(solver="svd", **options).fit(X, y, sample_weight=w)
        assert ours.coef_.shape == theirs.coef_.shape
        assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-10)
        assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-10)
        assert_array_equal(ours.classes_, theirs.classes_)
        values = ours.decision_function(Z)
        assert_allclose(values, theirs.decision_function(X), rtol=1e-8, atol=1e-9)
        assert_array_equal(ours.predict(Z), theirs.predict(X))
        assert ours.score(Z, y, w) == pytest.approx(theirs.score(X, y, w))
        assert ours.certificate_.converged
        assert np.all(ours.decision_function(Z, return_bound=True)[1] < 1e-9)


@pytest.mark.parametrize("kind", ["two", "three", "several"])
@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"cv": KFold(4)}])
def test_the_choice_is_as_in_scikit_learn(kind: str, options: dict[str, Any]) -> None:
    X, labels = rows()
    y, w = labels[kind], np.random.default_rng(1).uniform(0.3, 2, 60)
    keep = {"store_cv_results": "cv" not in options}
    for weights in (None, w):
        ours = RidgeClassifierCV(GRID, **keep, **options).fit(X, y, sample_weight=weights)
        theirs = linear_model.RidgeClassifierCV(GRID, **keep, **options).fit(X, y, sample_weight=weights)
        assert ours.alpha_ == theirs.alpha_
        assert_allclose(ours.best_score_, theirs.best_score_, rtol=1e-7)
        assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7, atol=1e-10)
        assert_array_equal(ours.predict(X), theirs.predict(X))
        assert_array_equal(ours.classes_, theirs.classes_)
        if keep["store_cv_results"]:
            assert_allclose(ours.cv_results_, theirs.cv_results_, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize("kind", ["two", "three"])
@pytest.mark.parametrize("scoring", ["accuracy", make_scorer(accuracy_score)])
def test_scores_of_labels_left_out(kind: str, scoring: Any) -> None:
    """By refitting without each row; scikit-learn's own score of two classes compares all rows with the first."""
    X, labels = rows(30)
    y = labels[kind]
    model = RidgeClassifierCV([0.1, 100.0], scoring=scoring).fit(X, y)
    shares = [
        np.mean(
            [
                RidgeClassifier(alpha).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] == y[i]
                for i in range(30)
            ]
        )
        for alpha in (0.1, 100.0)
    ]
    assert model.best_score_ == pytest.approx(max(shares))
    assert model.alpha_ == (0.1, 100.0)[int(np.argmax(shares))]
    if kind == "three":
        theirs = linear_model.RidgeClassifierCV([0.1, 100.0], scoring=scoring).fit(X, y)
        assert (model.alpha_, model.best_score_) == (theirs.alpha_, pytest.approx(theirs.best_score_))


def test_metadata_goes_to_the_scorer() -> None:
    X, labels = rows(40)
    w = np.random.default_rng(1).uniform(0.3, 2, 40)
    with config_context(enable_metadata_routing=True):
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
        for cv in (None, 3):
            model = RidgeClassifierCV(GRID, scoring=scorer, cv=cv).set_fit_request(sample_weight=True)
            model.fit(X, labels["three"], sample_weight=w)
            assert 0.0 <= model.best_score_ <= 1.0


def test_a_grid_found_from_the_data() -> None:
    X, labels = rows()
    model = RidgeClassifierCV("auto").fit(X, labels["three"])
    assert len(model.path_.alphas) >= 50
    with pytest.raises(ValueError, match="auto"):
        RidgeClassifierCV("auto", cv=3).fit(X, labels["three"])


@pytest.mark.parametrize("kind", ["two", "three", "several"])
def test_models_are_read_back(kind: str, tmp_path: Path) -> None:
    X, labels = rows()
    for model in (RidgeClassifier(), RidgeClassifierCV()):
        save(model.fit(X, labels[kind]), tmp_path / "model.gramian")
        assert_array_equal(load(tmp_path / "model.gramian").predict(X), model.predict(X))


def test_tensors(torch: Any) -> None:
    X, labels = rows()
    y = (labels["three"] == "a").astype(int) + 2 * (labels["three"] == "b")
    model = RidgeClassifier().fit(torch.tensor(X), torch.tensor(y))
    assert isinstance(model.coef_, torch.Tensor)
    predicted = model.predict(torch.tensor(X))
    assert isinstance(predicted, torch.Tensor)
    assert_array_equal(predicted.numpy(), RidgeClassifier().fit(X, y).predict(X))


def test_labels_in_several_columns_are_refused() -> None:
    X, _ = rows(10)
    with pytest.raises(ValueError, match=r"\(10, 2\)"):
        RidgeClassifier().fit(X, np.arange(20).reshape(10, 2))
    with pytest.raises(ValueError, match="y to be passed"):
        RidgeClassifier().fit(X, None)
    with pytest.raises(ValueError, match="alpha"):
        RidgeClassifier(-1.0).fit(X, np.arange(10) % 2)
