"""The other commands that fit: their numbers against scikit-learn and closed forms, their files, their refusals."""

import json

import numpy as np
import pytest
from sklearn.decomposition import KernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

FAST = ("--no-report", "--no-pictures")


@pytest.fixture
def moons(files, columns):
    found = columns(files / "moons.csv")
    return np.column_stack([found["x"], found["y"]])


@pytest.fixture
def houses(files, columns):
    found = columns(files / "houses.csv")
    return np.column_stack([found["area"], found["rooms"], found["age"]]), found["price"]


@pytest.fixture
def curve(files, columns):
    found = columns(files / "curve.csv")
    return found["x"][:, None], found["y"]


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["kernel-pca", "moons.csv", "--label", "moon"], {"scores.csv", "eigenvalues.csv", "scores.png", "field.png"}),
        (
            ["ridge", "houses.csv", "--target", "price"],
            {"coefficients.csv", "predictions.csv", "path.csv", "path.png", "residuals.png"},
        ),
        (
            ["kernel-ridge", "curve.csv", "--target", "y", "--bandwidth", "0.5,1"],
            {"predictions.csv", "path.csv", "choice.csv"} | {"path.png", "residuals.png", "choice.png", "curve.png"},
        ),
        (
            ["mixture", "geyser.csv", "-k", "1-2", "--covariance", "EII,VVV"],
            {"clusters.csv", "components.csv", "covariances.csv", "choice.csv", "mixture.png", "choice.png"},
        ),
        (["fit", "waiting.csv"], {"estimates.csv", "comparison.csv", "fit.png", "profile.png"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_command_writes_its_files(run, tmp_path, arguments, written):
    result = run(*arguments, "--out", "out")
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == written | {
        "certificate.json",
        "model.gramian",
        "report.html",
    }
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert arguments[1] in page
    assert result.stderr == ""
    again = run(*arguments, "--out", "out", *FAST)
    assert again.exit_code == 2
    assert "--force" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["kernel-pca", "moons.csv", "--label", "moon"], ["eigenvalue", "PC2 over PC1", "o down   + up"]),
        (
            ["ridge", "houses.csv", "--target", "price"],
            ["(intercept)", "rooms", "observed price over fitted", "R², leave-one-out", "R², training"],
        ),
        (["kernel-ridge", "curve.csv", "--target", "y"], ["y by Gaussian", "R², leave-one-out", "R², training"]),
        (
            ["mixture", "geyser.csv", "-k", "1-2", "--covariance", "EII,VVV"],
            ["BIC", "log-likelihood", "size", "mean eruption", "waiting over eruption", "certainty"],
        ),
        (["fit", "waiting.csv"], ["Families", "bic", "standard_error", "minutes and the fit", "█", "goodness of fit"]),
        (["fit", "waiting.csv", "--family", "von mises"], ["kappa"]),
    ],
    ids=lambda value: value[0] if value[0].islower() and " " not in value[0] else "",
)
def test_without_a_folder_the_screen_has_the_answer(run, tmp_path, arguments, shown):
    before = sorted(tmp_path.iterdir())
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert sorted(tmp_path.iterdir()) == before
    for part in (*shown, "Arithmetic: certified to", "--out FOLDER"):
        assert part in result.stdout, result.stdout


def test_whole_numbers_are_compared_with_families_of_both_kinds(answer, tmp_path):
    minutes = np.random.default_rng(3).normal(70.0, 13.6, 272).round().astype(int)
    (tmp_path / "minutes.csv").write_text("minutes\n" + "\n".join(map(str, minutes)) + "\n")
    found = answer("fit", "minutes.csv")
    assert found["family"] == "normal"
    assert {"poisson", "negative binomial", "weibull"} < set(found["comparison"]["family"])
    (measure,) = found["quality"]
    assert measure["value"] > 0.01
    assert measure["verdict"] != "poor"
    pulled = answer("fit", "minutes.csv", "--family", "poisson")
    assert pulled["quality"][0]["verdict"] == "poor"


def test_kernel_pca_agrees_with_scikit_learn(answer, columns, tmp_path, moons):
    found = answer("kernel-pca", "moons.csv", "--label", "moon", "--gamma", 2, "-k", 3, "--out", "out", *FAST)
    theirs = KernelPCA(3, kernel="rbf", gamma=2.0).fit(moons)
    np.testing.assert_allclose(found["eigenvalues"], theirs.eigenvalues_, rtol=1e-10)
    scores = columns(tmp_path / "out" / "scores.csv")
    ours = np.column_stack([scores[f"PC{j}"] for j in (1, 2, 3)])
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs.transform(moons)), atol=1e-8)
    K = np.exp(-2.0 * np.sum((moons[:, None] - moons) ** 2, axis=2))
    total = np.trace(K) - K.sum() / len(K)  # of the centred kernel matrix
    np.testing.assert_allclose(found["quality"][0]["value"], theirs.eigenvalues_.sum() / total, rtol=1e-9)


def test_bandwidth_and_gamma_say_the_same(answer):
    one = answer("kernel-pca", "moons.csv", "--drop", "moon", "--bandwidth", 0.5)
    other = answer("kernel-pca", "moons.csv", "--drop", "moon", "--gamma", 2)
    np.testing.assert_allclose(one["eigenvalues"], other["eigenvalues"], rtol=1e-12)


def test_standardised_columns_are_those_of_scaled_data(answer, tmp_path, moons):
    scaled = moons / moons.std(axis=0)
    np.save(tmp_path / "scaled.npy", scaled)
    one = answer("kernel-pca", "moons.csv", "--drop", "moon", "--standardise", "--bandwidth", 0.7)
    other = answer("kernel-pca", "scaled.npy", "--bandwidth", 0.7)
    np.testing.assert_allclose(one["eigenvalues"], other["eigenvalues"], rtol=1e-10)


def test_ridge_agrees_with_scikit_learn(answer, columns, tmp_path, houses):
    X, y = houses
    found = answer("ridge", "houses.csv", "--target", "price", "--alpha", "0.01,1,100", "--out", "out", *FAST)
    theirs = RidgeCV([0.01, 1, 100]).fit(X, y)
    assert found["alpha"] == theirs.alpha_
    np.testing.assert_allclose(list(found["coefficients"].values()), theirs.coef_, rtol=1e-8)
    fitted = columns(tmp_path / "out" / "predictions.csv")
    np.testing.assert_allclose(fitted["fitted"], theirs.predict(X), rtol=1e-9)
    np.testing.assert_allclose(fitted["observed"], y)
    assert found["r2"] == pytest.approx(theirs.score(X, y))


@pytest.mark.parametrize("alpha", ["3", "0.01,1,100"])
def test_ridge_of_standardised_columns_predicts_raw_rows(answer, columns, tmp_path, houses, alpha):
    X, y = houses
    options = ["--standardise", "--alpha", alpha, "--out", "out", *FAST]
    found, n = answer("ridge", "houses.csv", "--target", "price", *options), len(X)
    theirs = make_pipeline(StandardScaler(), RidgeCV([float(a) * n / (n - 1) for a in alpha.split(",")])).fit(X, y)
    np.testing.assert_allclose(columns(tmp_path / "out" / "predictions.csv")["fitted"], theirs.predict(X), rtol=1e-8)
    by_hand = X @ list(found["coefficients"].values()) + found["intercept"]
    np.testing.assert_allclose(by_hand, theirs.predict(X), rtol=1e-8)
    answer("predict", "out/model.gramian", "houses.csv", "--out", "again.csv")
    np.testing.assert_allclose(columns(tmp_path / "again.csv")["prediction"], theirs.predict(X), rtol=1e-8)


def test_one_penalty_is_plain_ridge(answer, houses):
    X, y = houses
    found = answer("ridge", "houses.csv", "--target", "price", "--alpha", 3, "--no-intercept")
    theirs = Ridge(3.0, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(list(found["coefficients"].values()), theirs.coef_, rtol=1e-8)


def test_kernel_ridge_agrees_with_scikit_learn(answer, columns, tmp_path, curve):
    x, y = curve
    options = ("--gamma", 0.5, "--alpha", 0.1, "--out", "out")
    answer("kernel-ridge", "curve.csv", "--target", "y", *options, *FAST)
    theirs = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.5).fit(x, y)
    found = columns(tmp_path / "out" / "predictions.csv")
    assert np.all(np.abs(found["fitted"] - theirs.predict(x)) <= found["bound"] + 1e-12)
    assert found["bound"].max() < 1e-8


def test_kernel_ridge_chooses_from_a_grid(answer, columns, tmp_path):
    found = answer("kernel-ridge", "curve.csv", "--target", "y", "--bandwidth", "0.01,1", "--out", "out", *FAST)
    assert found["kernel"] == "Gaussian(bandwidth=1.0)"
    choice = columns(tmp_path / "out" / "choice.csv")
    assert set(choice["kernel"]) == {"Gaussian(bandwidth=0.01)", "Gaussian(bandwidth=1.0)"}
    best = np.nanargmax(choice["score"])
    assert choice["alpha"][best] == pytest.approx(found["alpha"])


def test_mixture_is_chosen_as_by_scikit_learns_bic(answer, columns, tmp_path, files):
    data = columns(files / "geyser.csv")
    X = np.column_stack([data["eruption"], data["waiting"]])
    found = answer("mixture", "geyser.csv", "-k", "1-2", "--covariance", "full", "--out", "out", *FAST)
    fits = [GaussianMixture(k, random_state=0, tol=1e-9, max_iter=2000, reg_covar=0).fit(X) for k in (1, 2)]
    best = min(fits, key=lambda fit: fit.bic(X))
    assert found["n_components"] == best.n_components
    assert found["bic"] == pytest.approx(best.bic(X), rel=1e-6)
    clusters = columns(tmp_path / "out" / "clusters.csv")
    np.testing.assert_allclose(
        np.sort(clusters["uncertainty"]), np.sort(1 - best.predict_proba(X).max(axis=1)), atol=1e-4
    )
    table = columns(tmp_path / "out" / "covariances.csv")
    assert len(table["covariance"]) == 3 * found["n_components"]


def test_counts_are_rows_that_occur_more_than_once(answer, tmp_path):
    rng = np.random.default_rng(1)
    x, n = np.concatenate([rng.normal(0, 1, 30), rng.normal(6, 1, 30)]), rng.integers(1, 4, 60)
    rows = "\n".join(f"{a!r},{b}" for a, b in zip(x.tolist(), n, strict=True))
    (tmp_path / "counted.csv").write_text(f"x,n\n{rows}\n")
    np.save(tmp_path / "rows.npy", np.repeat(x, n)[:, None])
    counted = answer("mixture", "counted.csv", "--counts", "n", "-k", "2", "--covariance", "V")
    plain = answer("mixture", "rows.npy", "-k", "2", "--covariance", "V")
    assert counted["log_likelihood"] == pytest.approx(plain["log_likelihood"], rel=1e-9)


def test_fit_is_the_closed_form_of_the_normal(answer, files, columns):
    x = columns(files / "waiting.csv")["minutes"]
    found = answer("fit", "waiting.csv", "--family", "normal")["fits"]["minutes"]
    assert found["parameters"]["mean"]["estimate"] == pytest.approx(x.mean())
    assert found["parameters"]["sd"]["estimate"] == pytest.approx(x.std())
    assert found["parameters"]["mean"]["standard_error"] == pytest.approx(x.std() / len(x) ** 0.5)


def test_a_censored_rate_is_events_by_time(answer, files, columns):
    data = columns(files / "lifetimes.csv")
    found = answer("fit", "lifetimes.csv", "--columns", "weeks", "--event", "died", "--family", "exponential")
    rate = found["fits"]["weeks"]["parameters"]["rate"]
    assert rate["estimate"] == pytest.approx(data["died"].sum() / data["weeks"].sum(), rel=1e-6)
    assert rate["lower"] < rate["estimate"] < rate["upper"]


def test_classes_with_counts_are_binned_data(answer, tmp_path):
    (tmp_path / "classes.csv").write_text("low,high,n\n,-1,16\n-1,0,34\n0,1,34\n1,,16\n")
    options = ("--lower", "low", "--upper", "high", "--counts", "n", "--family", "normal")
    (found,) = answer("fit", "classes.csv", *options)["fits"].values()
    # Φ(−1) = 0.1587: counts of 16, 34, 34, 16 are almost those of the standard normal distribution
    assert found["parameters"]["mean"]["estimate"] == pytest.approx(0, abs=1e-6)
    assert found["parameters"]["sd"]["estimate"] == pytest.approx(1, abs=0.02)
    assert found["observations"] == 100


def test_several_columns_are_fitted_one_by_one_or_together(answer, files, columns):
    data = columns(files / "houses.csv")
    each = answer("fit", "houses.csv", "--columns", "area,age", "--family", "normal")["fits"]
    assert {name: fit["parameters"]["mean"]["estimate"] for name, fit in each.items()} == pytest.approx(
        {"area": data["area"].mean(), "age": data["age"].mean()}
    )
    (joint,) = answer("fit", "houses.csv", "--columns", "area,age", "--family", "multivariate normal")["fits"].values()
    assert joint["observations"] == 50


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["ridge", "houses.csv"], 2, "--target"),
        (["ridge", "houses.csv", "--target", "prize"], 3, "near it: price"),
        (["ridge", "flowers.csv", "--target", "species", "--id", "plant"], 3, "'species' is text"),
        (["ridge", "houses.csv", "--target", "price", "--alpha", "x"], 2, "'x' is no number"),
        (["ridge", "houses.csv", "--target", "price", "--alpha", "0,1"], 2, "least squares"),
        (["ridge", "houses.csv", "--target", "price", "--alpha", "1:0:3"], 2, "no grid"),
        (["ridge", "houses.csv", "--target", "price", "--solver", "cg"], 2, "one λ"),
        (["kernel-pca", "moons.csv", "--drop", "moon", "--gamma", "1", "--bandwidth", "1"], 2, "say the same"),
        (["kernel-pca", "moons.csv", "--drop", "moon", "--gamma", "1,2"], 2, "one value"),
        (["kernel-pca", "moons.csv", "--drop", "moon", "--kernel", "cosine", "--gamma", "1"], 2, "no --gamma"),
        (["kernel-pca", "moons.csv", "--drop", "moon", "--kernel", "chi2"], 3, "egative"),
        (["kernel-ridge", "curve.csv", "--target", "y", "--alpha", "auto,1"], 2, "auto, or numbers"),
        (["mixture", "geyser.csv", "-k", "0"], 2, "no number of components"),
        (["mixture", "geyser.csv", "--covariance", "XXX"], 2, "no covariance model 'XXX'"),
        (["mixture", "geyser.csv", "--criterion", "lrt"], 2, "--covariance"),
        (["mixture", "geyser.csv", "-k", "200", "--covariance", "VVV"], 3, "120"),
        (["fit", "waiting.csv", "--family", "gama"], 3, "no family 'gama'"),
        (["fit", "waiting.csv", "--lower", "minutes"], 2, "--lower and --upper together"),
        (["fit", "waiting.csv", "--truncated", "9:1"], 2, "no range"),
        (["fit", "waiting.csv", "--fixed", "df"], 2, "name=value"),
        (["fit", "geyser.csv", "--family", "normal,gamma"], 2, "name one with --columns"),
        (["fit", "flowers.csv", "--columns", "species"], 3, "species"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line_with_a_remedy(run, arguments, code, complaint):
    result = run(*arguments, "--json")
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert lines[0].startswith("Error: ")
    assert complaint in lines[0]


def test_a_fit_that_stops_short_exits_4(run):
    result = run("mixture", "geyser.csv", "-k", "3", "--covariance", "VVV", "--max-iter", 1, "--json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["converged"] is False
