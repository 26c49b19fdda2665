"""Learning a kernel: values and gradients against other computations, and what is learned against what is known."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.gaussian_process.kernels import Matern as TheirMatern

import gramian
from gramian import KernelRidgeCV
from gramian.kernel_ridge.learn import LandmarkObjective, Objective, ProbedObjective
from gramian.kernels import Gaussian, Laplacian, Linear, Matern, Polynomial, RationalQuadratic
from gramian.kernels.derivatives import list_parameters, with_parameters

CRITERIA = ("loo", "gcv", "marginal_likelihood")
KERNELS = [
    Gaussian((0.3, 0.1, 0.6)),
    Matern(0.5, (1.0, 2.0, 3.0)),
    Matern(1.5, (1.0, 2.0, 3.0)),
    Matern(2.5, (1.0, 2.0, 3.0)),
    RationalQuadratic(0.7, (1.0, 2.0, 3.0)),
]


def sample(n: int = 40, p: int = 3, t: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 5.0
    Y = np.sin(X @ rng.normal(size=(p, t))) + 0.1 * rng.normal(size=(n, t)) + 3.0
    return X, Y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_value_is_that_of_the_decomposition(kernel, weighted, intercept, criterion):
    X, Y, w = sample()
    w = w if weighted else np.ones(len(X))
    value = Objective(X, Y, w, intercept, criterion).evaluate(kernel, 0.2)[0]
    options = {"kernel": kernel, "fit_intercept": intercept, "criterion": criterion, "solver": "eigh"}
    score = KernelRidgeCV([0.2], **options).fit(X, Y, w if weighted else None).best_score_
    share = 0.5 if criterion == "marginal_likelihood" else 1.0  # that score is the sum over two targets
    assert value == pytest.approx(-share * score, rel=1e-9)


SUMS = [
    Gaussian(0.2).on([0, 2]) + 0.3 * Linear() + 0.5 * Matern(2.5, 2.0) * Gaussian(0.1),
    Laplacian((0.1, 0.2, 0.3)) + 0.01 * Polynomial(2, gamma=0.5, coef0=2.0),
]


def assert_gradient_is_that_of_differences(objective, kernel, lam=0.2, rel=1e-6):
    """Every derivative by the logarithm of a number of the kernel, and by that of λ."""
    h, values = 1e-5, np.array([one.value for one in list_parameters(kernel, 3)])
    _, found, by_lam = objective.evaluate(kernel, lam)

    def move(k: int, step: float) -> float:
        moved = np.where(np.arange(len(values)) == k, values * np.exp(step), values)
        return objective.evaluate(with_parameters(kernel, 3, moved), lam)[0]

    difference = [(move(k, h) - move(k, -h)) / (2 * h) for k in range(len(values))]
    ends = [objective.evaluate(kernel, lam * np.exp(step))[0] for step in (h, -h)]
    difference = np.array([*difference, (ends[0] - ends[1]) / (2 * h)])
    np.testing.assert_allclose([*found, by_lam], difference, rtol=rel, atol=rel / 100 * np.abs(difference).max())


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", [*KERNELS, *SUMS], ids=repr)
def test_gradient_is_that_of_differences(kernel, intercept, criterion):
    X, Y, w = sample()
    assert_gradient_is_that_of_differences(Objective(X, Y, w, intercept, criterion), kernel)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[4], SUMS[0]], ids=repr)
def test_gradient_for_landmarks_is_that_of_differences(kernel, intercept, criterion):
    X, Y, w = sample()
    objective = LandmarkObjective(X, Y, w, intercept, criterion, landmarks=np.arange(0, 40, 5))
    assert_gradient_is_that_of_differences(objective, kernel, rel=1e-5)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("intercept", [False, True])
def test_with_every_row_a_landmark_the_criterion_is_the_exact_one(monkeypatch, intercept, criterion):
    monkeypatch.setattr("gramian.kernel_ridge.learn.JITTER", 1e-12)
    X, Y, w = sample()
    exact = Objective(X, Y, w, intercept, criterion)
    model = LandmarkObjective(X, Y, w, intercept, criterion, landmarks=np.arange(40))
    for kernel in (KERNELS[0], SUMS[0]):
        found, expected = model.evaluate(kernel, 0.2), exact.evaluate(kernel, 0.2)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_likelihood_of_landmarks_is_a_bound():
    X, Y, w = sample(80)
    for kernel in (KERNELS[0], SUMS[0]):
        for intercept in (False, True):
            exact = Objective(X, Y, w, intercept, "marginal_likelihood").evaluate(kernel, 0.2)[0]
            some = {"landmarks": np.arange(0, 80, 4)}
            bound = LandmarkObjective(X, Y, w, intercept, "marginal_likelihood", **some).evaluate(kernel, 0.2)[0]
            assert bound > exact


@pytest.mark.parametrize("criterion", CRITERIA[1:])
@pytest.mark.parametrize("intercept", [False, True])
def test_with_every_direction_probed_the_gradient_is_the_exact_one(monkeypatch, intercept, criterion):
    monkeypatch.setattr("gramian.kernel_ridge.learn.SOLVED", 1e-9)
    X, Y, w = sample()
    exact = Objective(X, Y, w, intercept, criterion)
    for kernel in (KERNELS[0], SUMS[0]):
        probed = ProbedObjective(X, Y, w, intercept, criterion)
        probed.signs = np.sqrt(40.0) * np.eye(40)
        found, expected = probed.evaluate(kernel, 0.2), exact.evaluate(kernel, 0.2)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-5, atol=1e-6)
        assert found[2] == pytest.approx(expected[2], rel=1e-5)
        if criterion == "gcv":
            assert found[0] == pytest.approx(expected[0], rel=1e-6)


def test_estimates_by_random_columns_are_within_their_error():
    X, y = relevant(300, 9)
    parts = X / X.std(axis=0), y[:, None], np.ones(300), True
    kernel, deviations = Gaussian(0.2), []
    exact = Objective(*parts, "gcv").evaluate(kernel, 0.1)[0]
    for seed in range(12):
        probed = ProbedObjective(*parts, "loo", seed=seed)
        assert probed.criterion == "gcv"
        deviations.append((probed.evaluate(kernel, 0.1)[0] / exact - 1.0) / probed.error)
    assert 0.3 < np.sqrt(np.mean(np.square(deviations))) < 2.0


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(Gaussian(bandwidth=(1.0, 2.0, 0.7)), RBF([1.0, 2.0, 0.7])), (Matern(2.5, (1.0, 2.0, 0.7)), None)],
    ids=["rbf", "matern"],
)
def test_likelihood_and_gradient_are_those_of_scikit_learn(ours, theirs):
    X, Y, _ = sample(300, t=1)
    theirs = theirs or TheirMatern([1.0, 2.0, 0.7], nu=2.5)
    lam, y = 0.2, Y[:, 0]
    value, by_scale, by_lam = Objective(X, Y, np.ones(300), False, "marginal_likelihood").evaluate(ours, lam)
    amplitude = float(y @ np.linalg.solve(ours(X) + lam * np.eye(300), y)) / 300
    kernel = ConstantKernel(amplitude) * theirs + WhiteKernel(amplitude * lam)
    process = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.0).fit(X, y)
    expected, gradient = process.log_marginal_likelihood(process.kernel_.theta, eval_gradient=True)
    assert -value == pytest.approx(expected, rel=1e-8)
    # by ln ℓ = −ln s and ln noise; the amplitude is the best one, so that its own derivative vanishes with the noise's
    np.testing.assert_allclose(by_scale, gradient[1:4], rtol=1e-8)
    assert -by_lam == pytest.approx(gradient[4], rel=1e-8)
    assert gradient[0] + gradient[4] == pytest.approx(0.0, abs=1e-8 * abs(gradient[4]))


def relevant(n: int, seed: int):
    """Two features of six matter, in unlike units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)) * [1.0, 1.0, 1.0, 1000.0, 0.01, 1.0]
    return X, np.sin(2 * X[:, 0]) + (X[:, 3] / 1000.0) ** 2 + 0.05 * rng.normal(size=n)


@pytest.mark.parametrize("learn", CRITERIA)
@pytest.mark.parametrize("kernel", ["rbf", Matern(2.5, "median")], ids=["rbf", "matern"])
def test_features_that_matter_are_found(kernel, learn):
    X, y = relevant(240, 1)
    T, z = relevant(400, 2)
    plain = KernelRidgeCV(kernel=kernel, criterion=learn).fit(X, y)
    model = KernelRidgeCV(kernel=kernel, learn=learn).fit(X, y)
    assert model.learned_.per_feature
    assert set(model.learned_.table()["feature"][:2]) == {"x0", "x3"}
    assert model.learned_.shares[[0, 3]].sum() > 0.95
    assert model.best_score_ >= plain.best_score_
    assert np.mean((model.predict(T) - z) ** 2) < 0.2 * np.mean((plain.predict(T) - z) ** 2)
    assert model.certificate_.converged
    assert any(str(model.learned_.rows) in note and learn in note for note in model.certificate_.notes)


def test_learning_is_deterministic_and_never_worse():
    rng = np.random.default_rng(3)
    for n, p in [(12, 1), (20, 30), (60, 2)]:  # nothing to learn: y is noise
        X, y = rng.normal(size=(n, p)), rng.normal(size=n)
        models = [KernelRidgeCV(learn="loo", fit_intercept=True).fit(X, y) for _ in range(2)]
        plain = KernelRidgeCV(fit_intercept=True).fit(X, y)
        assert models[0].best_score_ >= plain.best_score_
        assert models[0].kernel_ == models[1].kernel_
        np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)


def test_constant_and_repeated_columns_do_no_harm():
    X, y = relevant(120, 4)
    X = np.column_stack([X, np.full(120, 7.0), X[:, 0]])
    model = KernelRidgeCV(learn="loo").fit(X, y)
    assert model.learned_.shares[6] == 0.0
    assert np.isfinite(model.predict(X)).all()


def test_more_rows_than_are_learned_on(monkeypatch):
    monkeypatch.setattr("gramian.kernel_ridge.learn.FIRST", 80)
    monkeypatch.setattr("gramian.kernel_ridge.learn.LAST", 150)
    X, y = relevant(400, 5)
    for solver, alphas in (("landmarks", "auto"), ("cg", [1e-3, 1e-2, 1e-1])):
        model = KernelRidgeCV(alphas, learn="marginal_likelihood", solver=solver).fit(X, y)
        assert model.learned_.rows == 150
        assert "rows" in model.learned_.refinement
        assert model.score(*relevant(200, 6)) > 0.9


def test_names_and_progress():
    frame = pytest.importorskip("pandas").DataFrame(relevant(80, 7)[0], columns=list("abcdef"))
    seen = []
    model = KernelRidgeCV(learn="gcv", verbose=lambda *report: seen.append(report)).fit(frame, relevant(80, 7)[1])
    assert model.learned_.features == list("abcdef")
    assert "gcv" in repr(model.learned_)
    assert all(done <= total for done, total, _ in seen)
    assert len(seen) >= model.learned_.evaluations


@pytest.mark.parametrize(
    ("options", "X", "named"),
    [
        ({"learn": "width"}, np.eye(5), "learn"),
        ({"learn": "loo", "kernel": "linear"}, np.eye(5), "Linear"),
        ({"learn": "loo", "kernel": "precomputed"}, np.eye(5), "learn"),
        ({"learn": "loo"}, sp.csr_array(np.diag(np.arange(1.0, 6.0))), "dense"),
    ],
)
def test_what_cannot_be_learned_is_refused(options, X, named):
    with pytest.raises(ValueError, match=named):
        KernelRidgeCV(**options).fit(X, np.arange(5.0))


def test_what_was_learned_is_kept_in_a_model_file(tmp_path):
    X, y = relevant(60, 8)
    model = KernelRidgeCV(learn="loo").fit(X, y)
    gramian.save(model, tmp_path / "model.gramian")
    loaded = gramian.load(tmp_path / "model.gramian")
    np.testing.assert_array_equal(loaded.learned_.widths, model.learned_.widths)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_no_steps_follow_an_estimate_that_is_too_rough(monkeypatch):
    monkeypatch.setattr("gramian.kernel_ridge.learn.FIRST", 60)
    monkeypatch.setattr("gramian.kernel_ridge.learn.LAST", 100)
    monkeypatch.setattr("gramian.kernel_ridge.learn.TOO_ROUGH", 0.0)
    X, y = relevant(200, 5)
    model = KernelRidgeCV(np.geomspace(1e-3, 10.0, 8), learn="loo").fit(X, y)
    assert "no steps" in model.learned_.refinement
    assert model.learned_.rows == 100


@pytest.mark.parametrize(("learn", "intercept"), [("loo", False), ("loo", True), ("marginal_likelihood", True)])
def test_noise_is_that_under_which_rows_left_out_are_most_likely(learn, intercept):
    X, y = relevant(40, 0)
    w = np.random.default_rng(1).integers(1, 3, 40)
    often = np.repeat(np.arange(40), w)
    model = KernelRidgeCV(learn=learn, fit_intercept=intercept).fit(X, y, w)
    total = 0.0
    for i in range(len(often)):
        rest = np.delete(often, i)
        part = gramian.KernelRidge(model.alpha_, kernel=model.kernel_, fit_intercept=intercept).fit(X[rest], y[rest])
        f, std = part.predict(X[often[[i]]], return_std=True)
        total += float((y[often[i]] - f[0]) ** 2 / (std[0] ** 2 / part.noise_variance_))
    assert model.noise_variance_ == pytest.approx(total / len(often), rel=1e-5)
    plain = gramian.KernelRidge(model.alpha_, kernel=model.kernel_, fit_intercept=intercept).fit(X, y, w)
    assert model.noise_variance_ != pytest.approx(plain.noise_variance_, rel=1e-3)
