"""Every number that commands print and write, against plain NumPy and SciPy: screen, CSV, JSON and report."""

import csv
import json
import re
from importlib import import_module

import numpy as np
import pytest
from scipy import optimize, special, stats

from gramian.likelihood.estimator import MaximumLikelihood

bench = import_module("gramian.cli.bench")
FAST = ("--no-report", "--no-pictures")


def close(found, expected, rtol=1e-9):
    np.testing.assert_allclose(np.asarray(found, dtype=float), expected, rtol=rtol, atol=1e-12)


def shown(result, first):
    """The cells of the line of the screen that begins with a cell."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()]
    (row,) = (row for row in rows if row[0] == str(first))
    return row[1:]


@pytest.fixture
def both(run, tmp_path, monkeypatch, columns):
    """Run a command into a folder and once more for JSON: the screen, its tables by name, and the JSON object."""
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        screen = run(*arguments, "--out", "out", *FAST)
        assert screen.exit_code == 0, screen.output
        answer = run(*arguments, "--json")
        assert answer.exit_code == 0, answer.output
        found = {path.stem: columns(path) for path in (tmp_path / "out").glob("*.csv")}
        return screen, found, json.loads(answer.stdout)

    return call


def matrix(table, *names):
    return np.column_stack([table[name] for name in names])


@pytest.mark.parametrize("scale", [False, True])
def test_pca(both, files, columns, scale):
    data = columns(files / "flowers.csv")
    X = matrix(data, "length", "width", "petal", "sum")
    n = len(X)
    Z = X - X.mean(axis=0)
    Z = Z / Z.std(axis=0, ddof=1) if scale else Z
    _, s, V = np.linalg.svd(Z, full_matrices=False)
    V *= np.sign(V[np.arange(4), np.argmax(np.abs(V), axis=1)])[:, None]
    variance, share = s**2 / (n - 1), s**2 / np.sum(s**2)
    screen, found, answer = both(
        "pca", "flowers.csv", "--label", "species", "--id", "plant", "-k", 3, *["--scale"] * scale
    )
    for table in (found["variances"], answer["variances"]):
        close(table["variance"], variance[:3])
        close(table["share"], share[:3])
        close(table["running_sum"], np.cumsum(share)[:3])
        close(table["singular_value"], s[:3])
        # residuals and bounds are those of the certificate, in the units of variances
        proof = answer["certificate"]
        np.testing.assert_allclose(table["residual"], proof["residuals"], rtol=1e-6)
        np.testing.assert_allclose(table["variance_bound"], proof["eigenvalue_bounds"], rtol=1e-6)
        assert np.all(np.abs(table["variance"] - variance[:3]) <= np.asarray(table["variance_bound"]) + 1e-14)
    for j in range(3):
        cells = shown(screen, f"PC{j + 1}")
        exact = found["variances"]
        assert cells == [
            f"{variance[j]:.6g}",
            f"{share[j]:.2%}",
            f"{np.cumsum(share)[j]:.2%}",
            f"{exact['residual'][j]:.1e}",
            "█" * round(16 * share[j] / share[0]) or "▏",
        ]
        turn = np.sign(found["unit_vectors"][f"unit_vector_PC{j + 1}"] @ V[j])
        close(found["unit_vectors"][f"unit_vector_PC{j + 1}"], turn * V[j])
        close(found["loadings"][f"loading_PC{j + 1}"], turn * V[j] * np.sqrt(variance[j]))
        np.testing.assert_allclose(found["scores"][f"PC{j + 1}"], turn * (Z @ V[j]), atol=1e-10)
    assert found["loadings"]["column"].tolist() == ["length", "width", "petal", "sum"]
    assert found["scores"]["id"].tolist() == data["plant"].tolist()
    assert found["scores"]["label"].tolist() == data["species"].tolist()
    assert (answer["n_components"], answer["data"]["rows"], answer["data"]["columns"]) == (3, 60, 4)
    assert "60 rows × 4 columns" in screen.stdout


def test_kernel_pca(both, files, columns):
    data = columns(files / "moons.csv")
    X = matrix(data, "x", "y")
    K = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / (2 * 0.5**2))
    H = np.eye(len(X)) - 1 / len(X)
    values, vectors = np.linalg.eigh(H @ K @ H)
    values, vectors = values[::-1][:2], vectors[:, ::-1][:, :2]
    screen, found, answer = both("kernel-pca", "moons.csv", "--label", "moon", "-k", 2, "--bandwidth", 0.5)
    close(found["eigenvalues"]["eigenvalue"], values)
    close(answer["eigenvalues"], values)
    np.testing.assert_allclose(found["eigenvalues"]["residual"], answer["certificate"]["residuals"], rtol=1e-6)
    assert answer["n_components"] == 2
    for j in range(2):
        assert shown(screen, f"PC{j + 1}")[0] == f"{values[j]:.5g}"
        assert shown(screen, f"PC{j + 1}")[1] == f"{found['eigenvalues']['residual'][j]:.5g}"
        scores = vectors[:, j] * np.sqrt(values[j])
        close(found["scores"][f"PC{j + 1}"] * np.sign(found["scores"][f"PC{j + 1}"] @ scores), scores, 1e-7)
    assert found["scores"]["label"].tolist() == data["moon"].tolist()
    assert "bandwidth=0.5" in answer["kernel"]


class LinearOracle:
    """Ridge regression by the textbook: (XᵀX + λI)⁻¹Xᵀy of centred data, and the same without each row."""

    def __init__(self, X, y, alpha):
        self.X, self.y, self.alpha, self.n = X, y, alpha, len(y)
        Z = X - X.mean(axis=0)
        self.inverse = np.linalg.inv(Z.T @ Z + alpha * np.eye(X.shape[1]))
        self.coef = self.inverse @ Z.T @ (y - y.mean())
        self.intercept = y.mean() - X.mean(axis=0) @ self.coef
        self.fitted = self.intercept + X @ self.coef
        self.rss = np.sum((y - self.fitted) ** 2)
        self.dof = 1 + np.trace(self.inverse @ Z.T @ Z)
        self.noise = self.rss / (self.n - self.dof)

    def leave_one_out(self):
        errors = []
        for i in range(self.n):
            rest = np.arange(self.n) != i
            without = LinearOracle(self.X[rest], self.y[rest], self.alpha)
            errors.append(self.y[i] - without.intercept - self.X[i] @ without.coef)
        return np.mean(np.square(errors))

    def gcv(self):
        return self.rss / self.n / (1 - self.dof / self.n) ** 2


def test_ridge_of_one_penalty(both, files, columns):
    data = columns(files / "houses.csv")
    X, y = matrix(data, "area", "rooms", "age"), data["price"]
    exact = LinearOracle(X, y, 10.0)
    screen, found, answer = both("ridge", "houses.csv", "--target", "price", "--alpha", 10)
    table = found["coefficients"]
    assert table["column"].tolist() == ["(intercept)", "area", "rooms", "age"]
    close(table["coefficient"], [exact.intercept, *exact.coef])
    errors = np.sqrt(exact.noise * np.diag(exact.inverse))
    close(table["standard_error"][1:], errors)
    assert np.isnan(table["standard_error"][0])
    assert shown(screen, "(intercept)") == [f"{exact.intercept:.5g}"]
    for name, value, error in zip(("area", "rooms", "age"), exact.coef, errors, strict=True):
        assert shown(screen, name) == [f"{value:.5g}", f"{error:.5g}"]
    assert "λ = 10" in screen.stdout
    close(found["predictions"]["observed"], y)
    close(found["predictions"]["fitted"], exact.fitted)
    close(found["predictions"]["residual"], y - exact.fitted, 1e-7)
    assert found["predictions"]["row"].tolist() == list(range(1, 51))
    close([answer["coefficients"][name] for name in ("area", "rooms", "age")], exact.coef)
    close([answer["intercept"], answer["alpha"]], [exact.intercept, 10.0])
    close([answer["degrees_of_freedom"], answer["noise_variance"]], [exact.dof, exact.noise])
    close(answer["rmse"], np.sqrt(exact.rss / 50))
    close(answer["rmse_left_out"], np.sqrt(exact.leave_one_out()))
    close(answer["r2"], 1 - exact.rss / np.sum((y - y.mean()) ** 2))
    assert answer["target"] == "price"


def test_ridge_of_several_penalties(both, files, columns):
    data = columns(files / "houses.csv")
    X, y = matrix(data, "area", "rooms", "age"), data["price"]
    alphas = (1.0, 30.0, 1000.0)
    exact = [LinearOracle(X, y, alpha) for alpha in alphas]
    _, found, answer = both("ridge", "houses.csv", "--target", "price", "--alpha", "1,30,1000", "--criterion", "gcv")
    path = found["path"]
    close(path["alpha"], alphas)
    close(path["degrees_of_freedom"], [each.dof for each in exact])
    close(path["loo"], [each.leave_one_out() for each in exact])
    close(path["gcv"], [each.gcv() for each in exact])
    best = min(exact, key=LinearOracle.gcv)
    assert answer["alpha"] == best.alpha
    close(found["coefficients"]["coefficient"][1:], best.coef)


def kernel_oracle(x, y, bandwidth, alpha):
    K = np.exp(-((x[:, None] - x) ** 2) / (2 * bandwidth**2))
    fitted = K @ np.linalg.solve(K + alpha * np.eye(len(x)), y)
    H = K @ np.linalg.inv(K + alpha * np.eye(len(x)))
    return fitted, np.mean(((y - fitted) / (1 - np.diag(H))) ** 2), np.trace(H)


def test_kernel_ridge(both, files, columns):
    data = columns(files / "curve.csv")
    x, y = data["x"], data["y"]
    tried = [(bandwidth, alpha) for bandwidth in (0.5, 1.0) for alpha in (0.1, 1.0)]
    exact = {each: kernel_oracle(x, y, *each) for each in tried}
    best = min(tried, key=lambda each: exact[each][1])
    fitted = exact[best][0]
    screen, found, answer = both(
        "kernel-ridge", "curve.csv", "--target", "y", "--alpha", "0.1,1", "--bandwidth", "0.5,1"
    )
    close(-found["choice"]["score"], [exact[each][1] for each in tried], 1e-7)
    close(found["choice"]["alpha"], [alpha for _, alpha in tried])
    assert found["choice"]["kernel"].tolist() == [f"Gaussian(bandwidth={each})" for each, _ in tried]
    close(found["path"]["degrees_of_freedom"], [exact[best[0], alpha][2] for alpha in (0.1, 1.0)], 1e-7)
    close(found["path"]["loo"], [exact[best[0], alpha][1] for alpha in (0.1, 1.0)], 1e-7)
    table = found["predictions"]
    np.testing.assert_allclose(table["fitted"], fitted, atol=1e-10)
    np.testing.assert_allclose(table["residual"], y - fitted, atol=1e-10)
    close(table["observed"], y)
    assert np.all(np.abs(table["fitted"] - fitted) <= table["bound"] + 1e-14)
    rmse = np.sqrt(np.mean((y - fitted) ** 2))
    r2 = 1 - np.sum((y - fitted) ** 2) / np.sum((y - y.mean()) ** 2)
    close([answer["alpha"], answer["rmse"], answer["r2"]], [best[1], rmse, r2], 1e-7)
    np.testing.assert_allclose(answer["largest_bound"], table["bound"].max(), rtol=1e-6)
    np.testing.assert_allclose(table["bound"], answer["certificate"]["error_bounds"][0], rtol=100)
    assert table["bound"].min() >= answer["certificate"]["error_bounds"][0]
    assert answer["kernel"] == f"Gaussian(bandwidth={best[0]})"
    left_out = exact[best][1]
    close([answer["rmse_left_out"], answer["r2_left_out"]], [np.sqrt(left_out), 1 - left_out / y.var()], 1e-7)
    assert f"λ = {best[1]:.4g}" in screen.stdout
    assert f"within {table['bound'].max():.1e}" in screen.stdout
    assert f"{np.sqrt(left_out):.4g}, in units of the target" in screen.stdout
    assert screen.stdout.index("leave-one-out") < screen.stdout.index("training")


def test_the_largest_bound_of_kernel_ridge_is_the_largest(both):
    _, found, answer = both(
        "kernel-ridge", "curve.csv", "--target", "y", "--alpha", 1, "--kernel", "poly", "--degree", 2
    )
    bounds = found["predictions"]["bound"]
    assert bounds.max() > 2 * bounds.min()
    np.testing.assert_allclose(answer["largest_bound"], bounds.max(), rtol=1e-6)


def gaussian_terms(X, weights, means, covariances):
    """log πₖ + log N(x; μₖ, Σₖ) of every row and component."""
    parts = zip(weights, means, covariances, strict=True)
    return np.column_stack([np.log(w) + stats.multivariate_normal(m, S).logpdf(X) for w, m, S in parts])


def mixture_parts(found, names=("eruption", "waiting")):
    """Weights, means and covariances from the tables."""
    components, flat = found["components"], found["covariances"]
    k = len(components["weight"])
    S = np.zeros((k, 2, 2))
    for number, a, b, value in zip(flat["component"], flat["column"], flat["with"], flat["covariance"], strict=True):
        i, j = names.index(a), names.index(b)
        S[int(number) - 1, i, j] = S[int(number) - 1, j, i] = value
    return components["weight"], matrix(components, *(f"mean {name}" for name in names)), S


def test_mixture(both, files, columns):
    data = columns(files / "geyser.csv")
    X = matrix(data, "eruption", "waiting")
    screen, found, answer = both("mixture", "geyser.csv", "-k", "1-2", "--covariance", "EII,VVV")
    weights, means, S = mixture_parts(found)
    terms = gaussian_terms(X, weights, means, S)
    density = np.logaddexp.reduce(terms, axis=1)
    R = np.exp(terms - density[:, None])
    # the maximum of the likelihood is a fixed point of EM
    close(weights, R.mean(axis=0), 1e-6)
    close(means, (R.T @ X) / R.sum(axis=0)[:, None], 1e-6)
    spread = X[:, None] - means
    close(S, np.einsum("nk,nki,nkj->kij", R, spread, spread) / R.sum(axis=0)[:, None, None], 1e-5)
    np.testing.assert_array_equal(found["clusters"]["component"], np.argmax(R, axis=1) + 1)
    np.testing.assert_allclose(found["clusters"]["uncertainty"], 1 - R.max(axis=1), atol=1e-12)
    np.testing.assert_allclose(matrix(found["clusters"], "probability1", "probability2"), R, atol=1e-12)
    total, n = density.sum(), len(X)
    close([answer["log_likelihood"], answer["bic"]], [total, 11 * np.log(n) - 2 * total])
    assert (answer["n_components"], answer["n_parameters"], answer["covariance_type"]) == (2, 11, "VVV")
    close(answer["weights"], weights)
    close(answer["means"], means)
    sizes = np.bincount(np.argmax(R, axis=1))
    assert shown(screen, 1) == [f"{weights[0]:.5g}", str(sizes[0]), *(f"{value:.5g}" for value in means[0])]
    assert found["components"]["size"].tolist() == sizes.tolist()
    assert f"BIC {answer['bic']:.2f}, log-likelihood {total:.2f}" in screen.stdout
    close(answer["quality"][0]["value"], R.max(axis=1).mean())
    # one normal has a closed form, with one variance for all columns or a covariance matrix
    choice = {(int(k), kind): row for k, kind, *row in zip(*(found["choice"][name] for name in CHOICE), strict=True)}
    one = stats.multivariate_normal
    plain = one(X.mean(axis=0), np.eye(2) * X.var(axis=0).mean()).logpdf(X).sum()
    full = one(X.mean(axis=0), np.cov(X.T, bias=True)).logpdf(X).sum()
    for kind, value, q in (("EII", plain, 3), ("VVV", full, 5)):
        close(choice[1, kind], [q * np.log(n) - 2 * value, 2 * q - 2 * value, value, q])
    close(choice[2, "VVV"], [answer["bic"], 22 - 2 * total, total, 11])
    ranked = sorted(choice, key=lambda each: choice[each][0])
    assert [(row["n_components"], row["covariance_type"]) for row in answer["choice"]] == ranked
    close([row["value"] for row in answer["choice"]], [choice[each][0] for each in ranked])


CHOICE = ("n_components", "covariance_type", "bic", "aic", "log_likelihood", "n_parameters")


def gamma_loss(x, shape, rate):
    return -stats.gamma(shape, scale=1 / rate).logpdf(x).sum()


def test_fit(both, files, columns):
    x = columns(files / "waiting.csv")["minutes"]
    n, level = len(x), 0.8
    shape, _, scale = stats.gamma.fit(x, floc=0)
    logliks = {"gamma": -gamma_loss(x, shape, 1 / scale), "exponential": stats.expon(scale=x.mean()).logpdf(x).sum()}
    aics = {"gamma": 4 - 2 * logliks["gamma"], "exponential": 2 - 2 * logliks["exponential"]}
    bics = {name: aic + (np.log(n) - 2) * (1 + (name == "gamma")) for name, aic in aics.items()}
    screen, found, answer = both("fit", "waiting.csv", "--family", "exponential,gamma", "--level", level, "--by", "bic")
    table = found["comparison"]
    assert table["family"].tolist() == answer["comparison"]["family"] == ["gamma", "exponential"]
    for each in (table, answer["comparison"]):
        close(each["parameters"], [2, 1])
        close(each["loglik"], list(logliks.values()))
        close(each["aic"], list(aics.values()))
        close(each["bic"], list(bics.values()))
        close(each["difference"], [0.0, bics["exponential"] - bics["gamma"]])
        odds = np.exp(-(aics["exponential"] - aics["gamma"]) / 2)  # Akaike weights
        close(each["weight"], [1 / (1 + odds), odds / (1 + odds)], 1e-7)
    assert shown(screen, "gamma")[:4] == ["2", *(f"{v['gamma']:.2f}" for v in (logliks, aics, bics))]
    (measure,) = answer["quality"]
    assert (measure["name"], measure["verdict"]) == ("p_value", "not rejected")
    table = found["estimates"]
    assert table["parameter"].tolist() == ["shape", "rate"]
    close(table["estimate"], [shape, 1 / scale], 1e-5)
    # inverse of the observed information: ∂²(−ℓ) = n [[ψ′(a), −1/b], [−1/b, a/b²]]
    a, b = table["estimate"]
    information = n * np.array([[special.polygamma(1, a), -1 / b], [-1 / b, a / b**2]])
    close(table["standard_error"], np.sqrt(np.diag(np.linalg.inv(information))), 1e-4)
    # at the ends of an interval the profile likelihood has fallen by half a quantile of χ²
    drop = stats.chi2(1).ppf(level) / 2
    for end in ("lower", "upper"):
        at_shape = gamma_loss(x, table[end][0], table[end][0] / x.mean())  # the best rate is a/mean
        close(at_shape + logliks["gamma"], drop, 1e-5)
        best = optimize.minimize_scalar(
            lambda shape, rate: gamma_loss(x, shape, rate),
            args=(table[end][1],),
            bounds=(0.1, 50),
            method="bounded",
            options={"xatol": 1e-10},
        )
        close(best.fun + logliks["gamma"], drop, 1e-5)
    fits = answer["fits"]["minutes"]
    close([fits["loglik"], fits["aic"], fits["bic"]], [logliks["gamma"], aics["gamma"], bics["gamma"]])
    assert (fits["observations"], fits["family"], answer["family"]) == (n, "gamma", "gamma")
    for i, name in enumerate(("shape", "rate")):
        given = [fits["parameters"][name][head] for head in ("estimate", "standard_error", "lower", "upper")]
        written = [table[head][i] for head in ("estimate", "standard_error", "lower", "upper")]
        close(given, written)
        assert shown(screen, name) == [f"{value:.5g}" for value in written]


def predicted(run, columns, tmp_path, *arguments):
    """The table that is printed, that is written, and that JSON has: the same numbers."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    (tmp_path / "printed.csv").write_text(result.stdout)
    printed = columns(tmp_path / "printed.csv")
    assert run(*arguments, "--out", "written.csv").exit_code == 0
    assert (tmp_path / "written.csv").read_text() == result.stdout
    answer = json.loads(run(*arguments, "--json").stdout)
    for name, column in answer["table"].items():
        np.testing.assert_array_equal(np.asarray(column), printed[name])
    assert list(answer["table"]) == list(printed)
    assert answer["rows"] == len(next(iter(printed.values())))
    return printed


def test_predictions_of_ridge(run, columns, tmp_path):
    assert run("ridge", "houses.csv", "--target", "price", "--alpha", 10, "--out", "out", *FAST).exit_code == 0
    data, new = columns(tmp_path / "houses.csv"), columns(tmp_path / "new-houses.csv")
    exact = LinearOracle(matrix(data, "area", "rooms", "age"), data["price"], 10.0)
    X = matrix(new, "area", "rooms", "age")
    found = predicted(run, columns, tmp_path, "predict", "out/model.gramian", "new-houses.csv", "--level", 0.5)
    close(found["prediction"], exact.intercept + X @ exact.coef)
    Z = X - exact.X.mean(axis=0)
    std = np.sqrt(exact.noise * (1 + 1 / exact.n + np.einsum("ni,ij,nj->n", Z, exact.inverse, Z)))
    close(found["std"], std)
    half = stats.t(exact.n - exact.dof).ppf(0.75) * std
    close(found["lower"], found["prediction"] - half)
    close(found["upper"], found["prediction"] + half)
    assert list(found) == ["row", "prediction", "std", "lower", "upper"]


def test_predictions_of_kernel_ridge(run, columns, tmp_path):
    fit = ("kernel-ridge", "curve.csv", "--target", "y", "--alpha", 0.1, "--bandwidth", 0.5, "--out", "out", *FAST)
    assert run(*fit).exit_code == 0
    data = columns(tmp_path / "curve.csv")
    (tmp_path / "new.csv").write_text("x\n0.05\n3.3\n7\n")
    new = np.array([0.05, 3.3, 7.0])
    K = np.exp(-((data["x"][:, None] - data["x"]) ** 2) / 0.5)
    c = np.exp(-((new[:, None] - data["x"]) ** 2) / 0.5)
    inverse = np.linalg.inv(K + 0.1 * np.eye(60))
    found = predicted(run, columns, tmp_path, "predict", "out/model.gramian", "new.csv", "--level", 0.5)
    exact = c @ inverse @ data["y"]
    np.testing.assert_allclose(found["prediction"], exact, atol=1e-10)
    assert np.all(np.abs(found["prediction"] - exact) <= found["bound"] + 1e-14)
    assert found["bound"].max() < 1e-6
    # a Gaussian process with noise of variance σ² and prior of variance σ²/λ
    noise = json.loads(run(*fit[:-4], "--json").stdout)["noise_variance"]
    variance = noise * (1 + (1 - np.einsum("ni,ij,nj->n", c, inverse, c)) / 0.1)
    close(found["std"], np.sqrt(variance), 1e-7)
    half = (found["upper"] - found["lower"]) / 2
    np.testing.assert_allclose((found["upper"] + found["lower"]) / 2, found["prediction"], atol=1e-12)
    assert np.ptp(half / found["std"]) < 1e-9
    assert stats.norm.ppf(0.75) - 1e-9 < half[0] / found["std"][0] < 1.05 * stats.norm.ppf(0.75)


def test_predictions_of_mixtures_and_distributions(run, columns, tmp_path):
    assert run("mixture", "geyser.csv", "-k", 2, "--covariance", "VVV", "--out", "mix", *FAST).exit_code == 0
    tables = {name: columns(tmp_path / "mix" / f"{name}.csv") for name in ("components", "covariances")}
    (tmp_path / "new.csv").write_text("waiting,eruption\n70,3.1\n50,2\n66,2.9\n")
    X = np.array([[3.1, 70.0], [2.0, 50.0], [2.9, 66.0]])
    terms = gaussian_terms(X, *mixture_parts(tables))
    density = np.logaddexp.reduce(terms, axis=1)
    R = np.exp(terms - density[:, None])
    found = predicted(run, columns, tmp_path, "predict", "mix/model.gramian", "new.csv")
    close(found["log_density"], density)
    np.testing.assert_allclose(matrix(found, "probability1", "probability2"), R, atol=1e-9)
    np.testing.assert_allclose(found["uncertainty"], 1 - R.max(axis=1), atol=1e-9)
    np.testing.assert_array_equal(found["component"], np.argmax(R, axis=1) + 1)
    assert run("fit", "waiting.csv", "--family", "gamma", "--out", "fit", *FAST).exit_code == 0
    a, b = columns(tmp_path / "fit" / "estimates.csv")["estimate"]
    (tmp_path / "written.csv").unlink()
    (tmp_path / "new.csv").write_text("minutes\n1\n5.5\n20\n")
    found = predicted(run, columns, tmp_path, "predict", "fit/model.gramian", "new.csv")
    close(found["log_density"], stats.gamma(a, scale=1 / b).logpdf([1, 5.5, 20]))


def test_projections(run, columns, tmp_path):
    fit = ("pca", "flowers.csv", "--label", "species", "--id", "plant", "-k", 2, "--out", "out", *FAST)
    assert run(*fit).exit_code == 0
    data, new = columns(tmp_path / "flowers.csv"), columns(tmp_path / "more.csv")
    names = ("length", "width", "petal", "sum")
    X, N = matrix(data, *names), matrix(new, *names)
    V = matrix(columns(tmp_path / "out" / "unit_vectors.csv"), "unit_vector_PC1", "unit_vector_PC2")
    Z = N - X.mean(axis=0)
    found = predicted(
        run, columns, tmp_path, "project", "out/model.gramian", "more.csv", "--id", "plant", "--label", "species"
    )
    np.testing.assert_allclose(matrix(found, "PC1", "PC2"), Z @ V, atol=1e-10)
    close(found["Q"], np.sum((Z - Z @ V @ V.T) ** 2, axis=1), 1e-7)
    assert found["id"].tolist() == new["plant"].tolist()
    assert found["label"].tolist() == new["species"].tolist()
    assert found["row"].tolist() == list(range(1, 13))


def test_rows_that_are_dropped_over_several_blocks_are_the_incomplete_ones(run, columns, tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    gaps = rng.choice(400, 60, replace=False)
    X[gaps, rng.integers(0, 3, 60)] = np.nan
    np.save(tmp_path / "gaps.npy", X)
    complete = np.flatnonzero(~np.isnan(X).any(axis=1))
    arguments = ("pca", "gaps.npy", "-k", 2, "--missing", "drop", "--memory", "4K", "--out", "out", *FAST)
    assert run(*arguments).exit_code == 0
    scores = columns(tmp_path / "out" / "scores.csv")
    assert scores["row"].tolist() == list(range(1, 401))
    assert np.flatnonzero(~np.isnan(scores["PC1"])).tolist() == complete.tolist()
    Z = X[complete] - X[complete].mean(axis=0)
    V = matrix(columns(tmp_path / "out" / "unit_vectors.csv"), "unit_vector_PC1", "unit_vector_PC2")
    np.testing.assert_allclose(matrix(scores, "PC1", "PC2")[complete], Z @ V, atol=1e-10)
    close(columns(tmp_path / "out" / "variances.csv")["variance"], np.linalg.eigvalsh(np.cov(Z.T))[::-1][:2])


def test_a_quoted_cell_that_spans_the_pieces_a_file_is_read_in(run, columns, tmp_path):
    """Names of a mebibyte each, with commas, quotes and line ends: pieces end inside them."""
    rng = np.random.default_rng(6)
    rows = [[*rng.normal(size=2), f'{i}, "{chr(10).join(["long"] * 200_000)}"'] for i in range(6)]
    with (tmp_path / "long.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["a", "b", "name"], *rows])
    assert run("pca", "long.csv", "--drop", "name", "-k", 2, "--out", "out", *FAST).exit_code == 0
    X = np.array([row[:2] for row in rows])
    found = columns(tmp_path / "out" / "variances.csv")
    close(found["variance"], np.linalg.eigvalsh(np.cov(X.T))[::-1])


def test_info_of_a_table(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "t.csv").write_text("a,b,c\n1.5,x,3\n,y,3\n-2.5,x,\n7,,3\n")
    answer = json.loads(run("info", "t.csv", "--json").stdout)
    rows = {row["column"]: row for row in answer["columns"]}
    assert answer["rows"] == 4
    assert [rows["a"][head] for head in ("type", "missing", "different", "smallest", "largest")] == [
        *("number", 1, 3),
        *(-2.5, 7.0),
    ]
    assert [rows["b"][head] for head in ("type", "missing", "different")] == ["text", 1, 2]
    assert [rows["c"][head] for head in ("missing", "different", "smallest", "largest")] == [1, 1, 3.0, 3.0]
    screen = run("info", "t.csv")
    assert shown(screen, "a") == ["number", "1", "3", "-2.5", "7"]
    assert shown(screen, "b") == ["text", "1", "2"]
    assert "4 rows × 3 columns" in screen.stdout


def test_info_of_an_array(run, tmp_path, monkeypatch):
    """Of many blocks: the extremes and half of the missing cells lie in the first of them."""
    monkeypatch.setenv("COLUMNS", "200")
    X = np.random.default_rng(8).uniform(-1, 1, size=(3000, 2))
    X[0], X[2], X[[5, 2900], 1] = (-3.0, 8.0), (2.5, -9.0), np.nan
    np.save(tmp_path / "x.npy", X)
    answer = json.loads(run("info", "x.npy", "--json", "--memory", "4K").stdout)
    found = [[row[head] for head in ("missing", "smallest", "largest")] for row in answer["columns"]]
    assert found == [[0, -3.0, 2.5], [2, -9.0, 8.0]]
    assert answer["rows"] == 3000
    assert shown(run("info", "x.npy", "--memory", "4K"), "x2") == ["number", "2", "-9", "8"]


@pytest.mark.parametrize(
    ("arguments", "tables"),
    [
        (["pca", "flowers.csv", "--drop", "plant,species", "-k", "2"], {"variances": ("variance",)}),
        (["kernel-pca", "moons.csv", "--drop", "moon", "-k", "2"], {"eigenvalues": ("eigenvalue",)}),
        (
            ["ridge", "houses.csv", "--target", "price", "--alpha", "10"],
            {"coefficients": ("coefficient", "standard_error")},
        ),
        (["mixture", "geyser.csv", "-k", "2", "--covariance", "VVV"], {"components": ("weight", "mean waiting")}),
        (["fit", "waiting.csv", "--family", "gamma"], {"estimates": ("estimate", "standard_error", "lower", "upper")}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_reports_hold_the_numbers_of_the_tables(run, columns, tmp_path, arguments, tables):
    assert run(*arguments, "--out", "out", "--no-pictures").exit_code == 0
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    written = np.array([float(value) for value in re.findall(r'data-v="([^"]+)"', page) if re.match(r"-?\d", value)])
    for name, heads in tables.items():
        found = columns(tmp_path / "out" / f"{name}.csv")
        rows = slice(1, None) if name == "coefficients" else slice(None)  # the page leaves out the intercept
        for value in np.concatenate([found[head][rows] for head in heads]):
            assert np.isclose(written, value, rtol=1e-12, atol=0).any(), (name, value)


def test_one_unmet_certificate_among_several(run, tmp_path, monkeypatch):
    rng = np.random.default_rng(7)
    np.savetxt(
        tmp_path / "two.csv", rng.gamma(2.0, size=(40, 2)), delimiter=",", header="a,b", comments="", fmt="%.17g"
    )
    good = run("fit", "two.csv", "--family", "gamma", "--out", "good", "--no-pictures")
    assert good.exit_code == 0, good.output
    real = MaximumLikelihood.fit

    def fit(self, *arguments, **given):
        model = real(self, *arguments, **given)
        first, second = model.estimates_
        object.__setattr__(second.certificate, "gradient", 1.0)
        assert (first.certificate.converged, second.certificate.converged) == (True, False)
        return model

    monkeypatch.setattr(MaximumLikelihood, "fit", fit)
    result = run("fit", "two.csv", "--family", "gamma", "--out", "out", "--no-pictures")
    assert result.exit_code == 4
    assert "Arithmetic of a: certified to" in result.stdout
    assert "Arithmetic of b: NOT certified" in result.stdout
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["converged"] is False
    pages = [(tmp_path / name / "report.html").read_text("utf-8") for name in ("good", "out")]
    assert ["NOT met" in page for page in pages] == [False, True]
    answer = run("fit", "two.csv", "--family", "gamma", "--json")
    assert (answer.exit_code, json.loads(answer.stdout)["converged"]) == (4, False)


def test_bench_divides_the_times_and_compares_the_answers(run, monkeypatch):
    work = bench.Workload(
        "halves",
        lambda scale, rng: (np.ones((4, 2)),),
        lambda X: ("ours", np.array([1.0, 2.0, -4.4])),
        lambda X: ("theirs", np.array([1.0, 2.0, -4.0])),
        lambda fitted: fitted[1],
    )
    seconds = {"ours": 0.5, "theirs": 2.0}
    monkeypatch.setattr(bench, "WORKLOADS", (work,))
    monkeypatch.setattr(bench, "_time", lambda fit, data: (seconds[fit(*data)[0]], fit(*data)))
    (row,) = json.loads(run("bench", "--quick", "--json").stdout)["workloads"]
    assert (row["Gramian s"], row["scikit-learn s"], row["speed-up"]) == (0.5, 2.0, 4.0)
    close(row["difference"], 0.1)
    assert row["data"] == "4 × 2"
