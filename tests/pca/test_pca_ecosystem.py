"""PCA among the tools of scikit-learn: pipelines, searches, frames out, copies and pickles."""

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import decomposition
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian import PCA
from oracles import separated


def test_pipeline_gives_the_same_predictions() -> None:
    X, y = load_iris(return_X_y=True)
    ours, theirs = (
        make_pipeline(StandardScaler(), pca(2), LogisticRegression()).fit(X, y).predict_proba(X)
        for pca in (PCA, decomposition.PCA)
    )
    assert_allclose(ours, theirs, atol=1e-8)


def test_pipeline_passes_weights_on() -> None:
    X, weights = separated(20, 4), np.arange(20) % 3
    fitted = make_pipeline(PCA(2)).fit(X, pca__sample_weight=weights)
    assert_allclose(fitted[-1].components_, PCA(2).fit(X, sample_weight=weights).components_)


def test_grid_search_by_likelihood_chooses_the_same_dimension() -> None:
    X = separated(90, 6)
    grid = {"n_components": [1, 2, 3, 4]}
    ours, theirs = (GridSearchCV(pca(), grid, cv=3).fit(X) for pca in (PCA, decomposition.PCA))
    assert ours.best_params_ == theirs.best_params_
    assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-8)


def test_grid_search_inside_a_pipeline() -> None:
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(PCA(random_state=0), LogisticRegression(max_iter=1000))
    grid = {
        "pca__n_components": [1, 2, 3],
        "pca__svd_solver": ["full", "krylov"],
        "pca__whiten": [False, True],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9


def test_union_and_column_transformer() -> None:
    X = separated(40, 6)
    union = FeatureUnion([("two", PCA(2)), ("one", PCA(1, whiten=True))]).fit(X)
    assert list(union.get_feature_names_out()) == ["two__pca0", "two__pca1", "one__pca0"]
    columns = ColumnTransformer([("head", PCA(2), [0, 1, 2]), ("tail", PCA(1), [3, 4, 5])])
    assert columns.fit_transform(X).shape == (40, 3)


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(container: str) -> None:
    frames = pytest.importorskip(container)
    X = separated(30, 5)
    plain = PCA(3).fit_transform(X)
    for pca in (PCA(3), decomposition.PCA(3)):
        pca.set_output(transform=container)
        for out in (pca.fit_transform(X), pca.fit(X).transform(X)):
            assert isinstance(out, frames.DataFrame)
            assert list(out.columns) == ["pca0", "pca1", "pca2"]
            assert_allclose(out.to_numpy(), plain, atol=1e-10)


def test_set_output_keeps_the_index_of_a_pandas_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(separated(6, 3), index=list("abcdef"), columns=["x", "y", "z"])
    out = PCA(2).set_output(transform="pandas").fit_transform(frame)
    assert list(out.index) == list("abcdef")


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_feature_names_are_remembered_and_checked(container: str) -> None:
    frames = pytest.importorskip(container)
    names = ["height", "width", "depth"]
    frame = frames.DataFrame(dict(zip(names, separated(20, 3).T, strict=True)))
    fitted = PCA(2).fit(frame)
    assert list(fitted.feature_names_in_) == names
    assert list(fitted.get_feature_names_out()) == ["pca0", "pca1"]
    with pytest.raises(ValueError, match="feature"):
        fitted.transform(frame[["width", "height", "depth"]])


def test_arrays_leave_no_feature_names() -> None:
    assert not hasattr(PCA(2).fit(separated(20, 3)), "feature_names_in_")


PARAMS: list[dict[str, Any]] = [
    {"n_components": 3},
    {"n_components": 0.9, "whiten": True},
    {"n_components": 2, "svd_solver": "krylov", "tol": 1e-9, "random_state": 4},
    {"n_components": 2, "scale": True, "svd_solver": "randomized", "random_state": 1},
]


@pytest.mark.parametrize("params", PARAMS)
def test_clone_is_unfitted_and_equal(params: dict[str, Any]) -> None:
    copy = clone(PCA(**params).fit(separated(30, 5)))
    assert copy.get_params() == PCA(**params).get_params()
    assert not hasattr(copy, "components_")
    assert repr(copy) == repr(PCA(**params))


@pytest.mark.parametrize("params", PARAMS)
def test_pickle_round_trip(params: dict[str, Any]) -> None:
    X = separated(30, 5)
    fitted = PCA(**params).fit(X)
    copy = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(copy.transform(X), fitted.transform(X))
    assert copy.certificate_.as_dict() == fitted.certificate_.as_dict()


def test_partial_fit_continues_after_pickling() -> None:
    X = separated(30, 5)
    half = pickle.loads(pickle.dumps(PCA(3).partial_fit(X[:14])))
    assert_allclose(half.partial_fit(X[14:]).components_, PCA(3).fit(X).components_, atol=1e-10)


@pytest.mark.parametrize(
    "method",
    ["transform", "inverse_transform", "score", "score_samples", "reconstruction_error", "impute"],
)
def test_nothing_works_before_fitting(method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(PCA(2), method)(separated(10, 2))


def test_set_params_takes_effect_at_the_next_fit() -> None:
    X = separated(30, 5)
    fitted = PCA(2).fit(X)
    assert fitted.set_params(n_components=4, whiten=True).fit(X).transform(X).shape == (30, 4)
