"""Every number on a page is the right one: read back from the HTML and compared with a computation of its own."""

import html
import json
import re
from base64 import b64decode
from dataclasses import replace
from types import SimpleNamespace
from zlib import decompress

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.optimize import brentq
from scipy.stats import chi2, kstest, multivariate_normal, norm
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Ridge as Reference

from gramian import PCA, GaussianMixture, KernelPCA, RidgeCV, rank_advice
from gramian.display.report import (
    DataFacts,
    Figure,
    Row,
    fit_report,
    genotype_report,
    kernel_pca_report,
    mixture_report,
    pca_report,
    regression_report,
    render,
)
from gramian.display.report.blocks import explain_certificate
from gramian.display.report.mixture import uncertainty_figure
from gramian.genetics.pca import GenotypePCA
from gramian.likelihood import fit
from gramian.mixture.choose import select_mixture
from gramian.mixture.quality import rank_columns
from gramian.results import Residual, SpectralCertificate

pytest.importorskip("bokeh", reason="a report needs Bokeh: pip install 'gramian[report]'")

FACTS = DataFacts("folder/data.csv", 60, 4, checksum="ab12")
RNG = np.random.default_rng(3)
X = RNG.normal(size=(60, 4)) @ np.diag([5.0, 3.0, 2.0, 1.0]) + [10.0, 0.0, -3.0, 2.0]
Y = X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=60)


def strip(text):
    return html.unescape(re.sub("<[^>]+>", "", text))


class Shown:
    """What a page shows: tiles, facts, tables by the name of their file, points of clouds."""

    def __init__(self, report):
        self.text = render(report)
        tiles = re.findall(r"<div><strong>(.*?)</strong><span>(.*?)</span>", self.text)
        self.tiles = {strip(caption): strip(value) for value, caption in tiles}
        self.facts = {strip(a): strip(b) for a, b in re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", self.text)}
        self.tables, self.cells = {}, {}
        tables = r'data-file="([^"]+)\.csv".*?<table class="data">(.*?)</table>'
        for name, body in re.findall(tables, self.text, re.DOTALL):
            head, rows = body.split("</thead>")
            columns = [strip(cell) for cell in re.findall(r"<th .*?</th>", head)]
            cells = [re.findall(r"<t[hd][^>]*>.*?</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", rows)]
            self.tables[name] = {c: [self.exact(row[j]) for row in cells] for j, c in enumerate(columns)}
            self.cells[name] = {c: [strip(row[j]) for row in cells] for j, c in enumerate(columns)}
        clouds = re.search(r'<script type="application/json" id="clouds">(.*?)</script>', self.text, re.DOTALL).group(1)
        self.clouds = list(json.loads(clouds).values())

    @staticmethod
    def exact(cell):
        found = re.search(r'data-v="([^"]*)"', cell)
        if found is None or found.group(1) in ("yes", "no"):
            return strip(cell)
        return float(found.group(1) or "nan")

    def column(self, name, cloud=0):
        column = next(c for c in self.clouds[cloud]["columns"] if c["name"] == name)
        data = np.frombuffer(decompress(b64decode(column["data"])), dtype=f"<{column['dtype']}")
        return data if column["type"] == "number" else [column["values"][code] for code in data]


def figure(report, title):
    blocks = [block for section in report.sections for block in section.blocks]
    blocks += [inner for block in blocks if isinstance(block, Row) for inner in block.blocks]
    return next(block for block in blocks if isinstance(block, Figure) and block.title == title).draw()


def drawn(plot, k):
    return {name: np.asarray(values) for name, values in plot.renderers[k].data_source.data.items()}


def test_pca():
    model = PCA(3).fit(X)
    advice = rank_advice(X)
    report = pca_report(model, model.transform(X), advice=advice, labels=["a", "b", ""] * 20, data=FACTS)
    shown, S = Shown(report), np.cov(X.T)
    variances, vectors = (part[..., ::-1] for part in np.linalg.eigh(S))
    shares = variances / variances.sum()
    found = shown.tables["variances"]
    assert found["component"] == ["PC1", "PC2", "PC3"]
    np.testing.assert_allclose(found["variance"], variances[:3], rtol=1e-10)
    np.testing.assert_allclose(found["share"], shares[:3], rtol=1e-10)
    np.testing.assert_allclose(found["running sum"], np.cumsum(shares)[:3], rtol=1e-10)
    assert shown.cells["variances"]["share"] == [f"{100 * share:.1f} %" for share in shares[:3]]
    c = model.certificate_
    delta = c.norm * (np.sqrt(np.cumsum(c.residuals**2) / 2) + c.rounding)
    sigma = np.sqrt(variances[:3] * 59)
    np.testing.assert_allclose(found["certain within"], delta * (2 * sigma + delta) / 59, rtol=1e-6)
    unit = np.abs(vectors[:, :3])
    for name, head, known in (  # one meaning in each table, and named in every header
        ("loadings", "loading PC{}", unit * np.sqrt(variances[:3])),
        ("unit-vectors", "unit vector PC{}", unit),
        ("contributions", "% of PC{}", 100 * unit**2),
    ):
        assert shown.tables[name]["column"] == ["x1", "x2", "x3", "x4"]
        cells = np.column_stack([shown.tables[name][head.format(j)] for j in (1, 2, 3)])
        np.testing.assert_allclose(np.abs(cells), known, atol=1e-9)
    known = Shown(pca_report(model, model.transform(X), deviations=X.std(axis=0, ddof=1), data=FACTS)).tables
    r = np.corrcoef(X.T, model.transform(X).T)[:4, 4:]
    for j in range(3):
        np.testing.assert_allclose(known["correlations"][f"correlation PC{j + 1}"], r[:, j], atol=1e-10)
        np.testing.assert_allclose(known["cos2"][f"cos² PC{j + 1}"], r[:, j] ** 2, atol=1e-10)
    for j in range(3):
        scores = (X - X.mean(axis=0)) @ vectors[:, j]
        np.testing.assert_allclose(np.abs(shown.column(f"PC{j + 1}")), np.abs(scores), atol=1e-4)
    assert shown.column("label") == ["a", "b", "no label"] * 20
    assert shown.clouds[0]["columns"][1]["label"] == f"PC2 ({shares[1]:.1%} of the variance)"
    assert shown.tiles["components"] == "3"
    assert shown.tiles["of the variance in them"] == f"{100 * shares[:3].sum():.1f} %"
    assert [shown.tiles[f"in PC{j}"] for j in (1, 2)] == [f"{100 * share:.1f} %" for share in shares[:2]]
    assert shown.tiles["components by the rules"] == str(advice.consensus)
    assert shown.tables["rank-advice"]["rule"] == list(advice.rules)
    assert "centred" in shown.facts["Columns were"]
    assert "divided" not in shown.facts["Columns were"]
    assert shown.facts["Data"].endswith("60 rows × 4 columns")
    assert shown.facts["SHA-256 of folder/data.csv"] == "ab12"
    bars = drawn(figure(report, "Scree"), 0)
    np.testing.assert_allclose(bars["share"], shares, rtol=1e-10)  # those not kept too, which a rule knows
    assert [colour == bars["colour"][0] for colour in bars["colour"]] == [True, True, True, False]
    assert bars["total"].tolist() == [f"{100 * total:.4g} %" for total in np.cumsum(shares)]


def test_pca_of_scaled_columns_says_so():
    model = PCA(2, scale=True).fit(X)
    shown = Shown(pca_report(model, model.transform(X), feature_names=list("pqrs"), data=FACTS))
    variances = np.linalg.eigvalsh(np.corrcoef(X.T))[::-1]
    np.testing.assert_allclose(shown.tables["variances"]["share"], variances[:2] / 4, rtol=1e-10)
    assert "divided" in shown.facts["Columns were"]
    assert sorted(shown.tables["loadings"]["column"]) == list("pqrs")


def test_kernel_pca():
    model = KernelPCA(3, kernel="rbf", gamma=0.01).fit(X)
    report = kernel_pca_report(model, model.transform(X), data=FACTS)
    shown = Shown(report)
    K = np.exp(-0.01 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    J = np.eye(60) - 1 / 60
    values, vectors = (part[..., ::-1] for part in eigh(J @ K @ J))
    np.testing.assert_allclose(shown.tables["eigenvalues"]["eigenvalue"], values[:3], rtol=1e-8)
    np.testing.assert_allclose(shown.tables["eigenvalues"]["residual"], model.certificate_.residuals)
    np.testing.assert_allclose(np.abs(shown.column("PC1")), np.abs(vectors[:, 0]) * np.sqrt(values[0]), atol=1e-4)
    np.testing.assert_allclose(drawn(figure(report, "Eigenvalues"), 0)["share"], values[:3] / values[:3].sum())
    assert shown.tiles["components"] == "3"


def left_out(lam):
    """Mean squared error of each row by a regression on the others, by scikit-learn."""
    errors = []
    for i in range(60):
        rest = np.arange(60) != i
        errors.append(Y[i] - Reference(alpha=lam).fit(X[rest], Y[rest]).predict(X[i : i + 1])[0])
    return np.mean(np.square(errors))


@pytest.mark.parametrize("criterion", ["loo", "gcv"])
def test_ridge(criterion):
    alphas = [0.5, 5.0, 50.0]
    model = RidgeCV(alphas=alphas, criterion=criterion).fit(X, Y)
    model.set_params(criterion=criterion)
    report = regression_report(model, Y, model.predict(X), feature_names=list("pqrs"), data=FACTS)
    shown, path = Shown(report), Shown(report).tables["path"]
    C = X - X.mean(axis=0)
    fits = [Reference(alpha=lam).fit(X, Y) for lam in alphas]
    dof = [1 + np.trace(C @ np.linalg.solve(C.T @ C + lam * np.eye(4), C.T)) for lam in alphas]
    loo = [left_out(lam) for lam in alphas]
    left = [np.sum((Y - f.predict(X)) ** 2) for f in fits]
    assert path["λ"] == alphas
    np.testing.assert_allclose(path["degrees of freedom"], dof, rtol=1e-10)
    np.testing.assert_allclose(path["leave-one-out error"], loo, rtol=1e-8)
    gcv = [rss / 60 / (1 - d / 60) ** 2 for rss, d in zip(left, dof, strict=True)]
    np.testing.assert_allclose(path["GCV"], gcv, rtol=1e-8)
    best = int(np.argmin(loo if criterion == "loo" else gcv))
    f = fits[best]
    found = shown.tables["coefficients"]
    order = np.argsort(-np.abs(f.coef_))
    assert found["column"] == [list("pqrs")[j] for j in order]
    np.testing.assert_allclose(found["coefficient"], f.coef_[order], rtol=1e-8)
    np.testing.assert_allclose(shown.column("fitted"), f.predict(X), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(shown.column("residual"), Y - f.predict(X), atol=1e-4)
    np.testing.assert_allclose(shown.column("observed"), Y, rtol=1e-5, atol=1e-4)
    assert shown.tiles["R², training"] == f"{f.score(X, Y):.5g}"
    assert shown.tiles["penalty λ"] == f"{alphas[best]:.5g}"
    assert shown.tiles["degrees of freedom"] == f"{dof[best]:.5g}"
    assert shown.tiles["typical error, leave-one-out"] == f"{np.sqrt(loo[best]):.5g}"
    assert shown.facts["Penalty λ"] == f"{alphas[best]:.5g}"
    curve = drawn(figure(report, "What chooses λ"), 0)
    np.testing.assert_allclose(curve["y"], loo, rtol=1e-8)
    np.testing.assert_allclose(curve["dof"], dof, rtol=1e-8)
    plot = figure(report, "Coefficients along the path")
    lines = {r.data_source.data["name"][0]: r.data_source.data["y"] for r in plot.renderers}
    for j, name in enumerate("pqrs"):
        np.testing.assert_allclose(lines[name], [f.coef_[j] for f in fits], rtol=1e-8)


def test_the_error_of_rows_left_out_is_that_of_the_penalty_chosen():
    """Not the least of the path, which another criterion passed over."""
    both = np.column_stack([Y, Y])
    model = RidgeCV(alphas=[1.0, 10.0, 100.0]).fit(X, both)
    model.alpha_ = np.array([10.0, 1.0])
    model.path_ = replace(model.path_, loo=np.array([[1.0, 9.0], [4.0, 4.0], [9.0, 1.0]]))
    shown = Shown(regression_report(model, both, model.predict(X), data=FACTS))
    assert [shown.tiles[f"typical error, leave-one-out, y{j}"] for j in (1, 2)] == ["2", "3"]
    assert shown.tiles["penalty λ"] == "1 to 10"


def test_ridge_without_shrinkage_has_the_errors_of_least_squares():
    model = RidgeCV(alphas=[1e-12, 1e-11]).fit(X, Y)
    shown = Shown(regression_report(model, Y, model.predict(X), data=FACTS))
    f = LinearRegression().fit(X, Y)
    C, noise = X - X.mean(axis=0), np.sum((Y - f.predict(X)) ** 2) / (60 - 5)
    expected = np.sqrt(noise * np.diag(np.linalg.inv(C.T @ C)))
    order = np.argsort(-np.abs(f.coef_))
    np.testing.assert_allclose(shown.tables["coefficients"]["standard error"], expected[order], rtol=1e-6)
    said = float(shown.facts["Standard deviation of the errors, about"])
    assert said == pytest.approx(np.sqrt(noise), rel=1e-4)


@pytest.mark.parametrize("turned", [1, -1])
def test_mixture(turned):
    Z = np.concatenate([X[:, :2], X[:, :2] + [15.0, 12.0]])[:, ::turned]
    labels = np.repeat(["left", "right"], 60)
    choice = select_mixture(GaussianMixture(), Z, n_components=(1, 2, 3), covariance_types=("EEE", "VVV"))
    best = choice.best
    names = {"labels": labels, "feature_names": ["p", "q"]}
    report = mixture_report(best, Z, choice=choice, **names, data=DataFacts("z", 120, 2))
    shown, k = Shown(report), best.n_components
    assert k == 2
    joint = np.column_stack(
        [
            np.log(best.weights_[j]) + multivariate_normal(best.means_[j], best.mixture_.matrices[j]).logpdf(Z)
            for j in range(k)
        ]
    )
    density = np.logaddexp.reduce(joint, axis=1)
    posterior = np.exp(joint - density[:, None])
    mine = posterior.argmax(axis=1)
    found = shown.tables["components"]
    assert found["component"] == list(range(1, k + 1))
    np.testing.assert_allclose(found["weight"], posterior.mean(axis=0), rtol=1e-3)  # what EM ends at
    np.testing.assert_allclose(found["mean q"], posterior.T @ Z[:, 1] / posterior.sum(axis=0), rtol=1e-2)
    assert found["rows"] == np.bincount(mine, minlength=k).tolist()
    np.testing.assert_allclose(shown.column("uncertainty"), 1 - posterior.max(axis=1), atol=1e-6)
    np.testing.assert_allclose(shown.column("log density"), density, rtol=1e-5)
    np.testing.assert_allclose(shown.column("q"), Z[:, 1], rtol=1e-4, atol=1e-4)
    assert shown.column("component") == [str(j + 1) for j in mine]
    for j in range(k):
        counts = [int(np.sum((labels == side) & (mine == j))) for side in ("left", "right")]
        assert shown.tables["labels"][f"component {j + 1}"] == counts
    free = {"EEE": (k - 1) + 2 * k + 3, "VVV": (k - 1) + 2 * k + 3 * k}[best.covariance_type]
    assert float(shown.tiles["BIC"]) == pytest.approx(-2 * density.sum() + free * np.log(120), rel=1e-4)
    assert shown.facts["Log-likelihood"] == f"{density.sum():.5g}, {free} parameters"
    doubt = np.mean(posterior.max(axis=1) < 0.9)
    assert float(shown.tiles["of rows in doubt (> 10 %)"].split()[0]) == pytest.approx(100 * doubt, abs=0.05)
    histogram = figure(report, "Uncertainty")
    for j in range(k):
        assert drawn(histogram, j)["rows"].sum() == np.sum(mine == j)
    assert drawn(histogram, k - 1)["top"].sum() == 120
    bic = dict(zip(choice.covariance_types, choice.bic.T, strict=True))
    plot = figure(report, "Criterion by number of components")
    lines = [renderer for renderer in plot.renderers if "model" in renderer.data_source.data]
    assert len(lines) == 2 * len(choice.covariance_types)
    for renderer in lines:
        data = renderer.data_source.data
        np.testing.assert_array_equal(data["value"], bic[data["model"][0]])
    ellipses = shown.clouds[0]["ellipses"]
    order = ["pq".index(shown.clouds[0]["columns"][j]["name"]) for j in ellipses["axes"]]
    np.testing.assert_allclose(ellipses["means"], best.means_[:, order])
    np.testing.assert_allclose(ellipses["covariances"], best.mixture_.matrices[:, order][:, :, order])


def test_rows_of_several_components_are_stacked_by_their_uncertainty():
    uncertainty, component = np.array([0.0, 0.0, 0.5, 0.5, 0.5, 0.5]), np.array([0, 1, 0, 1, 2, 2])
    plot = uncertainty_figure(uncertainty, component)
    assert [drawn(plot, k)["rows"].tolist()[0] for k in range(3)] == [1, 1, 0]
    assert [drawn(plot, k)["bottom"].tolist()[-1] for k in range(3)] == [0, 1, 2]
    assert [drawn(plot, k)["top"].tolist()[-1] for k in range(3)] == [1, 2, 4]
    assert drawn(plot, 0)["right"][-1] == 0.5


def test_axes_of_a_mixture_begin_with_the_column_that_tells_its_components_apart_best():
    """By their distance in standard deviations within: 7/3 is more than 9/5."""
    two = SimpleNamespace(
        weights=np.array([0.5, 0.5]),
        means=np.array([[0.0, 0.0], [9.0, -7.0]]),
        matrices=np.stack([np.diag([25.0, 9.0])] * 2),
    )
    assert rank_columns(two).tolist() == [1, 0]
    steps = np.column_stack([np.linspace(0, 1, 20), np.repeat([0.0, 10.0], 10)])
    assert rank_columns(two, steps).tolist() == [0, 1]  # points over a column of two values lie on one another


def profile_ends(x, level):
    """Ends of the likelihood interval of the mean and the standard deviation of a normal sample, by bisection."""
    n, mean, sd = len(x), x.mean(), x.std()
    limit = chi2.ppf(level, 1)
    half = sd * np.sqrt(np.expm1(limit / n))  # n log(1 + (m − x̄)²/s²) = limit

    def excess(s):
        return n * (2 * np.log(s / sd) + (sd / s) ** 2 - 1) - limit

    return (mean - half, mean + half), (brentq(excess, sd / 10, sd), brentq(excess, sd, 10 * sd))


@pytest.mark.parametrize("level", [0.95, 0.5])
def test_maximum_likelihood(level):
    x = RNG.normal(3.0, 2.0, 80)
    report = fit_report({"a": fit("normal", x)}, level=level, data=FACTS)
    shown = Shown(report)
    found = shown.tables["estimates"]
    assert found["column"] == ["a", "a"]
    assert found["parameter"] == ["mean", "sd"]
    np.testing.assert_allclose(found["estimate"], [x.mean(), x.std()], rtol=1e-10)
    np.testing.assert_allclose(found["standard error"], x.std() / np.sqrt([80, 160]), rtol=1e-6)
    ends = np.array(profile_ends(x, level))
    np.testing.assert_allclose(np.column_stack([found["lower"], found["upper"]]), ends, rtol=1e-5)
    loglik = norm(x.mean(), x.std()).logpdf(x).sum()
    numbers = shown.tables["criteria"]
    assert numbers["observations"] == [80.0]
    np.testing.assert_allclose(numbers["log-likelihood"], loglik, rtol=1e-10)
    np.testing.assert_allclose(numbers["AIC"], 4 - 2 * loglik, rtol=1e-10)
    np.testing.assert_allclose(numbers["BIC"], 2 * np.log(80) - 2 * loglik, rtol=1e-10)
    assert f"{100 * level:.6g} times in 100" in shown.text
    np.testing.assert_allclose(shown.tables["goodness"]["value"][-1], kstest(x, norm(x.mean(), x.std()).cdf).statistic)
    assert shown.tiles["observations"] == "80"
    assert (shown.tiles["mean"], shown.tiles["sd"]) == (f"{x.mean():.5g}", f"{x.std():.5g}")
    plot = figure(report, "Fit")
    bars, curve = drawn(plot, 0), drawn(plot, 1)
    counts, edges = np.histogram(x, bins="auto")
    np.testing.assert_array_equal(bars["count"], counts)
    np.testing.assert_allclose(bars["left"], edges[:-1])
    np.testing.assert_allclose(bars["right"], edges[1:])
    np.testing.assert_allclose(bars["top"], counts / 80 / np.diff(edges))
    np.testing.assert_allclose(curve["y"], norm(x.mean(), x.std()).pdf(curve["x"]), rtol=1e-8)


def test_wald_intervals_where_no_profile_is_asked_for():
    x = RNG.normal(3.0, 2.0, 80)
    found = Shown(fit_report(fit("normal", x), intervals=False, data=FACTS)).tables["estimates"]
    half = norm.ppf(0.975) * x.std() / np.sqrt(80)
    assert found["interval by"] == ["Wald", "Wald"]
    assert (found["lower"][0], found["upper"][0]) == pytest.approx((x.mean() - half, x.mean() + half), rel=1e-8)


def test_genotypes():
    rng = np.random.default_rng(1)
    G = rng.binomial(2, np.repeat(rng.uniform(0.1, 0.9, (2, 300)), 20, axis=0)).astype(float)
    model = GenotypePCA(3).fit(G)
    report = genotype_report(model, labels=np.repeat(["A", "B"], 20), data=DataFacts("G", 40, 300))
    shown = Shown(report)
    p = G.mean(axis=0) / 2
    used = np.flatnonzero((p > 0) & (p < 1))
    M = (G[:, used] - 2 * p[used]) / np.sqrt(2 * p[used] * (1 - p[used]))
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    assert shown.tiles["SNPs used"] == str(len(used))
    assert shown.tiles["samples"] == "40"
    share = s**2 / np.sum(s**2)
    assert shown.tiles["of the variance in PC1"] == f"{100 * share[0]:.1f} %"
    assert shown.clouds[0]["columns"][0]["label"] == f"PC1 ({share[0]:.1%} of the variance)"
    scores = np.abs(shown.column("PC1"))
    np.testing.assert_allclose(scores / scores.max(), np.abs(U[:, 0]) / np.abs(U[:, 0]).max(), atol=1e-4)
    found = shown.tables["snps"]
    top = np.argsort(-np.abs(Vt[:3]).max(axis=0), kind="stable")[:200]
    np.testing.assert_allclose(np.abs(found["PC1"]), np.abs(Vt[0, top]), atol=1e-6)
    np.testing.assert_allclose(found["frequency"], p[used][top], atol=1e-12)
    whole = s[:39] ** 2
    np.testing.assert_allclose(drawn(figure(report, "Scree"), 0)["share"][:3], whole[:3] / whole.sum(), rtol=1e-6)
    eigenvalues = np.asarray(shown.tables["tracy-widom"]["eigenvalue"])
    np.testing.assert_allclose(eigenvalues / eigenvalues[0], whole[: len(eigenvalues)] / whole[0], rtol=1e-6)
    below = [value < 0.05 for value in shown.tables["tracy-widom"]["p_value"]]
    assert shown.tiles["components beyond noise (p < 0.05)"] == str(below.index(False))


@pytest.mark.parametrize(("relative", "digits"), [(1e-3, "3"), (2e-3, "2"), (1e-16, "15 or more"), (0.0, "15 or more")])
def test_digits_that_a_spectrum_is_certain_of(relative, digits):
    residual = relative * np.sqrt(2) * (1 - 1e-12)
    proof = SpectralCertificate("k", "r", 3, np.array([4.0]), np.array([residual]), 4.0, 0.0, tolerance=1e-2)
    text = explain_certificate(proof)
    assert f"which is {digits} correct digits" in text
    assert "in 3 passes" in text


@pytest.mark.parametrize("chance", [None, 3e-14])
def test_what_is_only_likely_is_said_to_be(chance):
    numbers = np.array([4.0]), np.array([1e-9]), 4.0, 0.0
    text = explain_certificate(SpectralCertificate("k", "r", 3, *numbers, tolerance=1e-6, overlooked=chance))
    assert ("3.0·10⁻¹⁴" in text) is (chance is not None)


def test_an_error_that_is_not_proved_is_no_tolerance_missed():
    proof = Residual("cg", "r", 3, 2, np.array([1e-12]), tolerance=1e-8, proved=False)
    text = explain_certificate(proof)
    assert "not proved" in text
    assert "tolerance is NOT met" not in text
