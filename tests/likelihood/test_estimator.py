"""MaximumLikelihood: scikit-learn's contract, and the fits of gramian.likelihood column by column."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian.likelihood.estimator import MaximumLikelihood
from gramian.likelihood.families import NoMaximumError
from gramian.likelihood.fit import fit
from gramian.likelihood.sample import Binned, Censored

INF = float("inf")
X = np.column_stack([np.random.default_rng(0).gamma(2.0, 1.0, 60), np.random.default_rng(1).gamma(5.0, 3.0, 60)])


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [MaximumLikelihood(), MaximumLikelihood("laplace"), MaximumLikelihood("exponential")]
)
def test_estimator_contract(estimator: Any, check: Any) -> None:
    check(estimator)


def test_columns_are_fitted_by_themselves():
    model = MaximumLikelihood("gamma").fit(X)
    singles = [fit("gamma", column) for column in X.T]
    np.testing.assert_array_equal(model.parameters_["shape"], [single["shape"] for single in singles])
    assert model.loglik_ == sum(single.loglik for single in singles)
    assert all(proof.converged for proof in model.certificate_)
    expected = sum(
        stats.gamma.logpdf(X[:, j], single["shape"], scale=1 / single["rate"]) for j, single in enumerate(singles)
    )
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-11)
    assert model.score(X) == pytest.approx(model.loglik_ / 60, rel=1e-12)


def test_weights_are_frequencies():
    w = np.random.default_rng(2).integers(0, 3, 60)
    weighted = MaximumLikelihood("weibull").fit(X, sample_weight=w)
    repeated = MaximumLikelihood("weibull").fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.parameters_["shape"], repeated.parameters_["shape"], rtol=1e-9)
    assert weighted.score(X, sample_weight=w) == pytest.approx(repeated.loglik_ / w.sum(), rel=1e-10)


def test_rows_are_fitted_together():
    model = MaximumLikelihood("multivariate normal").fit(X)
    S = np.cov(X.T, ddof=0)
    assert model.parameters_["cov[0,1]"][0] == pytest.approx(S[0, 1], rel=1e-10)
    np.testing.assert_allclose(
        model.score_samples(X), stats.multivariate_normal(X.mean(axis=0), S).logpdf(X), rtol=1e-9
    )
    assert model.sample(5, random_state=0).shape == (5, 2)
    with pytest.raises(NoMaximumError, match=r"2 rows.*2 columns"):
        MaximumLikelihood("multivariate normal").fit(X[:2])


def test_labels_are_fitted():
    labels = np.array([["a"], ["b"], ["a"], ["a"]])
    model = MaximumLikelihood("categorical").fit(labels)
    assert model.parameters_["theta[a]"][0] == 0.75
    np.testing.assert_allclose(model.score_samples(labels), np.log([0.75, 0.25, 0.75, 0.75]))


def test_one_column_of_any_kind_comes_as_a_sample():
    binned = Binned([0, 1, 2, INF], [5, 9, 2])
    model = MaximumLikelihood("gamma").fit(binned)
    assert model.n_features_in_ == 1
    assert model.estimates_[0].estimates == fit("gamma", binned).estimates
    assert model.score_samples([[1.0]]).shape == (1,)
    censored = MaximumLikelihood("exponential").fit(Censored([1.0, 3.0], [1, 0]))
    assert censored.parameters_["rate"][0] == pytest.approx(0.25)


def test_truncation_divides_by_what_could_be_seen():
    seen = X[X[:, 0] > 0.5, :1]
    model = MaximumLikelihood("exponential", truncated=(0.5, INF)).fit(seen)
    rate = 1 / (seen.mean() - 0.5)
    assert model.parameters_["rate"][0] == pytest.approx(rate, rel=1e-11)
    np.testing.assert_allclose(model.score_samples(seen), np.log(rate) - rate * (seen[:, 0] - 0.5), rtol=1e-9)
    assert model.score_samples([[0.1]])[0] == -INF
    assert model.score(seen) == pytest.approx(model.loglik_ / len(seen), rel=1e-11)
    counts = np.array([[1.0], [2.0], [1.0], [4.0]])
    zeroless = MaximumLikelihood("poisson", truncated=(1, INF)).fit(counts)
    assert zeroless.score(counts) == pytest.approx(zeroless.loglik_ / 4, rel=1e-11)


def test_draws_follow_the_fit_and_repeat():
    model = MaximumLikelihood("gamma").fit(X)
    drawn = model.sample(4000, random_state=3)
    np.testing.assert_array_equal(drawn, model.sample(4000, random_state=3))
    np.testing.assert_allclose(drawn.mean(axis=0), X.mean(axis=0), rtol=0.06)
    with pytest.raises(ValueError, match="1; got 0"):
        model.sample(0)


def test_parameters_survive_cloning_and_can_be_searched():
    model = clone(MaximumLikelihood("gamma", fixed={"shape": 1.0}, tol=1e-7)).fit(X[:, :1])
    assert model.parameters_["shape"][0] == 1.0
    assert model.parameters_["rate"][0] == pytest.approx(1 / X[:, 0].mean(), rel=1e-10)
    search = GridSearchCV(MaximumLikelihood(), {"family": ["normal", "gamma", "exponential"]}, cv=3).fit(X)
    assert search.best_params_["family"] == "gamma"


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match=r"row 1, column 2.*-2"):
        MaximumLikelihood("gamma").fit([[1.0, -2.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match="no family 'nrml'"):
        MaximumLikelihood("nrml").fit(X)


def test_classes_are_scored_as_they_were_fitted():
    classes = Binned([-np.inf, 0, 1, 2, np.inf], [3, 4, 5, 2])
    model = MaximumLikelihood("normal").fit(classes)
    assert model.score(classes) == pytest.approx(model.loglik_ / 14)
    seen = Binned([0, 1, 2, 4], [3, 4, 5])
    model = MaximumLikelihood("exponential", truncated=(0, 4)).fit(seen)
    assert model.score(seen) == pytest.approx(model.loglik_ / 12)


def test_limits_of_each_row_are_not_for_the_estimator():
    with pytest.raises(ValueError, match="truncated"):
        MaximumLikelihood("exponential", truncated=([0.5, 0.5], np.inf)).fit([[1.0], [2.0]])


def test_columns_are_called_by_their_names():
    table = pd.DataFrame({"a": [1.0, 1.0, 1.0, 1.0], "b": [1.0, 2.0, 3.0, 1.0], "c": [0.0, 5.0, 1.0, 2.0]})
    for family in ("normal", "multivariate normal"):
        with pytest.raises(ValueError, match="Column a"):
            MaximumLikelihood(family).fit(table)
    found = MaximumLikelihood("multivariate normal").fit(table[["b", "c"]]).parameters_
    assert list(found) == ["mean[b]", "mean[c]", "cov[b,b]", "cov[b,c]", "cov[c,c]"]
