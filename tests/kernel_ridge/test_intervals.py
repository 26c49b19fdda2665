"""Intervals by rows left out, against the same by fitting again and by trying every target."""

import numpy as np
import pytest

import gramian
from gramian import KernelRidge, KernelRidgeCV, Ridge, RidgeCV
from gramian.kernels import Gaussian, Linear
from gramian.linear.intervals import tail_count

LEVEL = 0.8
MODELS = {
    "ridge": Ridge(0.7),
    "least squares": Ridge(0.0),
    "without intercept": Ridge(0.7, fit_intercept=False),
    "wide": Ridge(0.5),
    "kernel": KernelRidge(0.2, kernel=Gaussian(0.3)),
    "kernel with intercept": KernelRidge(0.2, kernel=Gaussian(0.3), fit_intercept=True),
    "precomputed": KernelRidge(0.2, kernel="precomputed"),
}


def sample(name: str, n: int = 24):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 4, 40 if name == "wide" else 3)) + 1.0
    Y = np.column_stack([np.sin(X[:, 0]) + 0.3 * rng.normal(size=n + 4), X[:, 1] + rng.standard_t(3, n + 4)])
    if name == "precomputed":
        K = Gaussian(0.3)(X)
        return K[:n, :n], Y[:n], K[n:, :n]
    return X[:n], Y[:n], X[n:]


def refit(model, X, Y, keep, new):
    """Predictions for ``new`` by a fit to the rows in ``keep``."""
    if isinstance(model, KernelRidge) and model.kernel == "precomputed":
        return model.__class__(**model.get_params()).fit(X[np.ix_(keep, keep)], Y[keep]).predict(new[:, keep])
    return model.__class__(**model.get_params()).fit(X[keep], Y[keep]).predict(new)


@pytest.mark.parametrize("name", MODELS)
def test_jackknife_is_that_of_fitting_again(name):
    model, (X, Y, new) = MODELS[name], sample(name)
    n, k = len(X), tail_count(LEVEL, len(X))
    low, high = [], []
    for i in range(n):
        keep = np.delete(np.arange(n), i)
        error = np.abs(Y[i] - refit(model, X, Y, keep, X[[i]])[0])
        f = refit(model, X, Y, keep, new)
        low.append(f - error)
        high.append(f + error)
    lower, upper = model.fit(X, Y).predict_interval(new, LEVEL, method="jackknife+")
    np.testing.assert_allclose(lower, np.sort(low, axis=0)[k - 1], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(upper, np.sort(high, axis=0)[n - k], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "precomputed"])
def test_conformal_set_is_that_of_trying_targets(name):
    model, (X, Y, new) = MODELS[name], sample(name)
    n, k = len(X), tail_count(LEVEL, len(X))
    lower, upper = model.fit(X, Y).predict_interval(new, LEVEL, method="conformal")
    for j in range(2):
        for at in range(2):
            for end, sign in ((lower[at, j], -1.0), (upper[at, j], 1.0)):
                for step, inside in ((-1e-5, True), (1e-5, False)):
                    y = end + sign * step
                    rows, targets = np.vstack([X, new[at]]), np.append(Y[:, j], y)[:, None]
                    errors = []
                    for i in range(n + 1):
                        keep = np.delete(np.arange(n + 1), i)
                        errors.append(abs(targets[i, 0] - refit(model, rows, targets, keep, rows[[i]]).ravel()[0]))
                    assert (np.sum(np.array(errors[:n]) >= errors[n]) >= k) == inside


def test_split_conformal_is_a_quantile_of_the_errors():
    X, Y, new = sample("ridge")
    for model in (Ridge(0.5).fit(X, Y), KernelRidge(0.2, kernel="rbf").fit(X, Y)):
        lower, upper = model.predict_interval(new, 0.9, method="conformal", calibration=(X, Y))
        errors = np.sort(np.abs(Y - model.predict(X)), axis=0)[int(np.ceil(0.9 * 25)) - 1]
        np.testing.assert_allclose(upper - lower, np.broadcast_to(2 * errors, lower.shape))
        lower, _ = model.predict_interval(new, 0.99, method="conformal", calibration=(X, Y))
        assert np.all(lower == -np.inf)  # 24 rows are too few


@pytest.mark.parametrize(
    ("method", "kernel"), [("jackknife+", Gaussian(0.3)), ("jackknife+", Linear()), ("conformal", Linear())], ids=repr
)
@pytest.mark.parametrize("intercept", [False, True])
def test_with_every_row_a_landmark_intervals_are_those_of_all_rows(method, kernel, intercept):
    X, Y, new = sample("kernel")
    exact = KernelRidge(0.2, kernel=kernel, fit_intercept=intercept).fit(X, Y[:, 0])
    few = KernelRidge(0.2, kernel=kernel, fit_intercept=intercept, solver="landmarks", landmarks=np.arange(24))
    few.fit(X, Y[:, 0])
    found = few.predict_interval(new, LEVEL, method=method, training=(X, Y[:, 0]))
    np.testing.assert_allclose(found, exact.predict_interval(new, LEVEL, method=method), rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="training"):
        few.predict_interval(new, LEVEL, method=method)


@pytest.mark.parametrize(
    "model",
    [RidgeCV(alphas="auto"), KernelRidgeCV([0.1, 1.0, 10.0]), KernelRidgeCV([0.1, 1.0], fit_intercept=True)],
    ids=repr,
)
@pytest.mark.parametrize("method", ["jackknife+", "conformal"])
def test_coverage_where_noise_is_heavy_and_uneven(model, method):
    rng, hits = np.random.default_rng(1), []
    for _ in range(20):
        x = rng.uniform(0, 3, (100, 1))
        y = x[:, 0] + (0.2 + x[:, 0]) * rng.standard_t(2, 100)
        lower, upper = model.fit(x[:60], y[:60]).predict_interval(x[60:], 0.9, method=method)
        hits.append(np.mean((lower <= y[60:]) & (y[60:] <= upper)))
    assert 0.87 < np.mean(hits) < 0.95


def test_a_model_from_a_file_asks_for_its_rows_where_it_has_none(tmp_path):
    X, Y, new = sample("ridge")
    for model in (Ridge(0.5).fit(X, Y), KernelRidge(0.2, kernel="rbf").fit(X, Y)):
        expected = model.predict_interval(new, LEVEL, method="jackknife+")
        gramian.save(model, tmp_path / "model.gramian")
        loaded = gramian.load(tmp_path / "model.gramian")
        if isinstance(model, Ridge):
            with pytest.raises(ValueError, match="training"):
                loaded.predict_interval(new, LEVEL, method="jackknife+")
            found = loaded.predict_interval(new, LEVEL, method="jackknife+", training=(X, Y))
        else:
            found = loaded.predict_interval(new, LEVEL, method="jackknife+")
        np.testing.assert_allclose(found, expected)


def test_rows_that_were_changed_since_the_fit_are_noticed():
    X, Y, new = sample("ridge")
    model = Ridge(0.5).fit(X, Y)
    X[:5] += 1.0
    with pytest.raises(ValueError, match="training"):
        model.predict_interval(new, method="conformal")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"method": "bootstrap"}, "method"),
        ({"method": "conformal", "kind": "mean"}, "kind"),
        ({"method": "gaussian", "calibration": (1, 2)}, "calibration"),
        ({"method": "jackknife+", "calibration": (1, 2)}, "calibration"),
        ({"method": "conformal", "calibration": 3}, "pair"),
        ({"level": 1.0}, "level"),
    ],
)
@pytest.mark.parametrize("model", [Ridge(), KernelRidge(kernel="rbf")], ids=repr)
def test_what_does_not_go_together_is_refused(model, options, named):
    X, Y, new = sample("ridge")
    with pytest.raises(ValueError, match=named):
        model.fit(X, Y).predict_interval(new, **options)


@pytest.mark.parametrize("model", [Ridge(), KernelRidge(kernel="rbf")], ids=repr)
def test_rows_with_weights_are_not_alike(model):
    X, Y, new = sample("ridge")
    model.fit(X, Y, np.arange(1.0, 25.0))
    with pytest.raises(ValueError, match="weights"):
        model.predict_interval(new, method="jackknife+")
