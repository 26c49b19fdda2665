"""Each kind of report says the numbers of its model, and refuses what does not fit."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtri
from sklearn.metrics import r2_score

from gramian import PCA, GaussianMixture, KernelRidge, Ridge, RidgeCV, rank_advice
from gramian.display.report import (
    CertificateBlock,
    Cloud,
    DataFacts,
    DataTable,
    Figure,
    Row,
    Run,
    Text,
    fit_report,
    genotype_report,
    mixture_report,
    pca_report,
    regression_report,
    render,
)
from gramian.display.report.blocks import explain_certificate
from gramian.genetics.pca import GenotypePCA
from gramian.likelihood import Binned, Censored, compare, fit
from gramian.mixture.choose import select_mixture
from gramian.pca.subspaces import procrustes
from gramian.results import FitLevel, Optimum, Quality, Residual, SpectralCertificate

pytest.importorskip("bokeh", reason="a report needs Bokeh: pip install 'gramian[report]'")

FACTS = DataFacts("data.csv", 80, 5)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5)) @ np.diag([5.0, 3.0, 2.0, 1.0, 0.5])
Y = X @ [1.0, -1.0, 0.5, 0.0, 0.0] + RNG.normal(size=80)


def blocks(report):
    """Every block of a report, those in rows too."""
    found = [block for section in report.sections for block in section.blocks]
    return [inner for block in found for inner in (block.blocks if isinstance(block, Row) else [block])]


def table(report, name):
    return next(block for block in blocks(report) if isinstance(block, DataTable) and block.name == name).columns


def cloud(report):
    return next(block for block in blocks(report) if isinstance(block, Cloud))


def test_pca_tells_variances_loadings_and_advice():
    model = PCA(3).fit(X)
    advice = rank_advice(X)
    report = pca_report(model, model.transform(X), advice=advice, data=FACTS, measures={"PC1": Y})
    S = np.cov(X.T)
    np.testing.assert_allclose(table(report, "variances")["variance"], np.linalg.eigvalsh(S)[::-1][:3])
    np.testing.assert_allclose(
        table(report, "variances")["running sum"][-1], np.linalg.eigvalsh(S)[2:].sum() / S.trace()
    )
    assert table(report, "rank-advice")["rule"] == list(advice.rules)
    assert table(report, "loadings")["column"] == ["x1", "x2", "x3", "x4", "x5"]
    assert list(cloud(report).points.axes) == ["PC1", "PC2", "PC3", "PC1 (2)", "% of PC1", "% of PC2"]
    assert advice.explain.splitlines()[0].replace("'", "&#x27;") in render(report)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_any_number_of_components_makes_a_page(k):
    model = PCA(k).fit(X)
    report = pca_report(model, model.transform(X), labels=["a", "b"] * 40, data=FACTS)
    assert len(cloud(report).panels) == {1: 1, 2: 1}.get(k, 2)
    assert render(report).count('class="panel"') == len(cloud(report).panels)


def test_of_many_columns_the_largest_loadings_are_shown_and_it_is_said():
    wide = np.random.default_rng(5).normal(size=(6, 3500))
    model = PCA(2).fit(wide)
    report = pca_report(model, model.transform(wide), data=FACTS)
    size = np.abs(model.components_).max(axis=0)
    assert table(report, "loadings")["column"] == [f"x{i + 1}" for i in np.argsort(-size)[:300]]
    assert "The 300 columns with the largest contributions, of 3,500." in render(report)


def test_an_incomplete_fit_has_an_optimum_for_a_certificate():
    holes = X.copy()
    holes[3, 2] = np.nan
    model = PCA(2).fit(holes)
    text = render(pca_report(model, model.transform(holes), data=FACTS))
    assert "one more step would move the estimates by" in text


def test_regression_tells_fit_residuals_path_and_coefficients():
    model = RidgeCV(alphas="auto").fit(X, Y)
    fitted = model.predict(X)
    report = regression_report(model, Y, fitted, feature_names=list("abcde"), data=FACTS)
    assert (f"{r2_score(Y, fitted):.5g}", "R², training") in report.tiles
    np.testing.assert_array_equal(cloud(report).points.axes["residual"], Y - fitted)
    found = table(report, "coefficients")
    assert dict(zip(found["column"], found["coefficient"], strict=True)) == dict(zip("abcde", model.coef_, strict=True))
    np.testing.assert_allclose(np.sort(found["standard error"]), np.sort(np.sqrt(np.diag(model.coef_covariance()))))
    assert len(table(report, "path")["λ"]) == 50
    assert "Every coefficient shrinks" in render(report)


def test_regression_of_several_targets_and_without_a_path():
    both = np.column_stack([Y, 2 * Y, X])
    model = Ridge(alpha=[1.0] * 7).fit(X, both)
    report = regression_report(model, both, model.predict(X), target_names=list("abcdefg"), data=FACTS)
    assert list(cloud(report).points.axes)[:3] == ["fitted (a)", "observed (a)", "residual (a)"]
    assert len(cloud(report).points.axes) == 12
    assert "The first 4 of 7 targets" in render(report)
    assert not [section for section in report.sections if section.title == "Choice of λ"]


def test_kernel_ridge_has_no_table_of_dual_coefficients():
    model = KernelRidge(alpha=0.1, kernel="rbf").fit(X, Y)
    report = regression_report(model, Y, model.predict(X), data=FACTS)
    assert [section.title for section in report.sections][:-3] == ["Predictions"]
    assert "all predictions, wherever they are made, are within" in render(report)


def test_observed_and_fitted_must_be_the_same_rows():
    with pytest.raises(ValueError, match=r"\(80, 1\).*\(79, 1\)"):
        regression_report(Ridge().fit(X, Y), Y, Y[1:], data=FACTS)


def test_mixture_tells_components_uncertainty_labels_and_choice():
    Z = np.concatenate([X, X + 60.0 * np.eye(5)[0]])
    labels = np.repeat(["left", "right"], 80)
    choice = select_mixture(GaussianMixture(), Z, n_components=(1, 2), covariance_types=("EEE", "VVV"))
    report = mixture_report(choice.best, Z, choice=choice, labels=labels, data=FACTS)
    found = table(report, "components")
    np.testing.assert_allclose(found["weight"], choice.best.weights_)
    counts = table(report, "labels")
    assert sorted([counts["component 1"].tolist(), counts["component 2"].tolist()]) == [[0, 80], [80, 0]]
    points = cloud(report).points
    np.testing.assert_allclose(points.axes["uncertainty"], 1 - choice.best.predict_proba(Z).max(axis=1), atol=1e-15)
    assert next(iter(points.axes)) == "x1"  # the column that tells the components apart
    assert f"{choice.best.bic(Z):.5g}" in render(report)
    np.testing.assert_allclose(cloud(report).ellipses.covariances[:, 0, 0], choice.best.mixture_.matrices[:, 0, 0])


@pytest.mark.parametrize("d", [1, 2, 3])
def test_mixtures_of_few_columns(d):
    model = GaussianMixture(2, covariance_type="tied").fit(X[:, :d])
    assert render(mixture_report(model, X[:, :d], data=FACTS)).count('class="panel"') == {3: 3}.get(d, 2)


def test_fits_tell_estimates_with_intervals_and_rankings():
    x = RNG.gamma(2.0, 3.0, 300)
    ranking = compare(["normal", "gamma"], x)
    report = fit_report({"a": ranking, "b": fit("poisson", RNG.poisson(3, 50))}, data=FACTS)
    found = table(report, "estimates")
    low, high = ranking["gamma"].profile()["shape"]
    row = found["parameter"].index("shape")
    assert (found["estimate"][row], found["lower"][row], found["upper"][row]) == (ranking["gamma"]["shape"], low, high)
    assert table(report, "families-a")["family"] == ["gamma", "normal"]
    assert "Kolmogorov" in render(report)


@pytest.mark.parametrize(
    ("family", "sample", "options"),
    [
        ("normal", Binned([-np.inf, -1, 0, 1, np.inf], [16, 34, 35, 15]), {}),
        ("weibull", Censored([1.0, 2.0, 3.0, 3.0, 5.0], [True, True, False, True, False]), {}),
        ("poisson", [1, 2, 2, 3, 1], {"truncated": (1, np.inf)}),
        ("categorical", ["a", "b", "a"], {}),
        ("multivariate normal", X, {}),
        ("beta", RNG.beta(0.5, 0.5, 100), {}),
        ("bernoulli", [1] * 5, {}),
    ],
)
def test_every_kind_of_fit_makes_a_page(family, sample, options):
    estimate = fit(family, sample, **options)
    report = fit_report(estimate, data=FACTS)
    assert table(report, "estimates")["parameter"] == list(estimate.names)
    assert family in render(report)


def test_quantiles_of_a_fit_are_its_own():
    x = RNG.normal(3.0, 2.0, 200)
    estimate = fit("normal", x)
    report = fit_report(estimate, data=FACTS)
    figure = next(block for block in blocks(report) if isinstance(block, Figure) and block.title == "Quantiles").draw()
    drawn = figure.renderers[-1].data_source.data
    share = (np.arange(200) + 0.5) / 200
    expected = estimate["mean"] + estimate["sd"] * ndtri(share)
    np.testing.assert_allclose(drawn["x"], expected, atol=1e-3)
    np.testing.assert_allclose(drawn["y"], np.sort(x))


def genotypes():
    rng = np.random.default_rng(1)
    G = rng.binomial(2, np.repeat(rng.uniform(0.1, 0.9, (2, 300)), 20, axis=0))
    return GenotypePCA(4).fit(G), np.repeat(["A", "B"], 20)


def test_genotypes_tell_significance_snps_and_the_map():
    model, populations = genotypes()
    scores = model.eigenvectors_ * model.singular_values_
    place = scores[:, :2] * 3 + 1
    moved = procrustes(scores[:, :2], place)
    report = genotype_report(
        model, labels=populations, coordinates=place, procrustes=moved, counts={"SNPs in the file": 310}, data=FACTS
    )
    text = render(report)
    assert ("1.000", "Procrustes correlation with the map") in report.tiles
    assert "310" in text
    assert len(cloud(report).panels) == 3
    np.testing.assert_allclose(cloud(report).points.axes["moved PC, east"], place[:, 0])
    found = table(report, "tracy-widom")
    np.testing.assert_array_equal(found["p_value"], model.tracy_widom_.p_values[: len(found["p_value"])])
    top = int(np.argmax(np.abs(model.components_).max(axis=0)))
    assert table(report, "snps")["SNP"][0] == model.snps_.id[top]


def test_genotypes_without_a_map():
    model, populations = genotypes()
    report = genotype_report(model, labels=populations, data=FACTS)
    assert [(panel.x, panel.y) for panel in cloud(report).panels] == [("PC1", "PC2"), ("PC3", "PC4")]
    assert list(cloud(report).points.groups) == ["population"]
    assert cloud(report).points.names == model.samples_.names


def test_a_missed_tolerance_is_the_first_thing_seen():
    model = PCA(2).fit(X)
    model.certificate_ = model.certificate_.with_(residuals=np.array([1e-3, 1e-2]), tolerance=1e-6)
    text = render(pca_report(model, model.transform(X), data=FACTS, run=Run(warnings=["It did not converge."])))
    assert text.index("Arithmetic: NOT certified to 1e-6") < text.index("<nav")
    assert "0.01 of the largest singular value" in text
    assert "Warning: It did not converge." in text


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        (
            SpectralCertificate("power", "asked for", 12, np.array([2.0]), np.array([1e-8]), 2.0, 0.0, tolerance=1e-6),
            ["1 component was computed by power in 12 passes", "within 1.4·10⁻⁸ of an exact one", "8 correct digits"],
        ),
        (
            Optimum("EM", "missing", 3, 2, np.array([5.0]), 1e-5, tolerance=1e-4),
            ["2 steps", "1.0·10⁻⁵ of their own", "several"],
        ),
        (
            Optimum("closed form", "plain", 1, 0, np.array([5.0]), 0.0, tolerance=1e-4),
            ["found by closed form in 1 pass"],
        ),
        (
            Residual(
                "CG", "large", 9, 8, np.array([1e-9]), tolerance=1e-8, error_bounds=np.array([2e-7]), bounded="‖ŵ − w‖"
            ),
            ["misses their right-hand side by 1.0·10⁻⁹", "within 2.0·10⁻⁷ of the exact ones"],
        ),
        (Residual("CG", "large", 9, 8, np.array([1e-3]), tolerance=1e-8), ["tolerance is NOT met"]),
    ],
    ids=["spectrum", "optimum", "closed form", "system", "unmet"],
)
def test_certificates_in_plain_words(proof, words):
    text = explain_certificate(proof)
    assert [word for word in words if word not in text] == []
    assert text in CertificateBlock(proof).html(None).replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: pca_report(PCA(2).fit(X), np.zeros((0, 2)), data=FACTS), "a row for each point"),
        (lambda: pca_report(PCA(2).fit(X), X[:, :2], feature_names=["a"], data=FACTS), "1 entries for 5 columns"),
        (lambda: pca_report(PCA(2).fit(X), X[:, :2], labels=["a"], data=FACTS), "'label' has 1 entries for 80 points"),
        (lambda: fit_report({}, data=FACTS), "nothing to report"),
    ],
)
def test_what_does_not_fit_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_figures_draw_no_formula_of_a_name():
    model = RidgeCV(alphas="auto").fit(X, Y)
    names = ["$$x$$", r"\(x\)", "c", "d", "e"]
    report = regression_report(model, Y, model.predict(X), feature_names=names, data=FACTS)
    figure = next(
        b for b in blocks(report) if isinstance(b, Figure) and b.title == "Coefficients along the path"
    ).draw()
    texts = [item.label.value for item in figure.legend[0].items]
    assert len(texts) == 5
    assert not [text for text in texts if "$$" in text or "\\(" in text]


def test_models_are_known_by_their_attributes_alone():
    stub = SimpleNamespace(
        components_=np.eye(2),
        explained_variance_=np.array([2.0, 1.0]),
        explained_variance_ratio_=np.array([2 / 3, 1 / 3]),
        scale=False,
        certificate_=PCA(2).fit(X).certificate_,
        get_params=dict,
    )
    assert "66.7 %" in render(pca_report(stub, X[:, :2], data=FACTS))


def test_what_is_to_be_seen_comes_first_and_what_all_reports_have_last():
    model = PCA(2).fit(X)
    titles = [section.title for section in pca_report(model, model.transform(X), data=FACTS).sections]
    assert titles[0] == "Scores"
    assert titles[-3:] == ["How far to trust it", "What was fitted", "How to reproduce it"]


@pytest.mark.parametrize(("wide", "warned"), [(1.0, False), (1000.0, True)])
def test_columns_of_unlike_units_are_warned_of_unless_scaled(wide, warned):
    table = RNG.normal(size=(50, 3)) * [1.0, 2.0, wide]
    for scale in (False, True):
        model = PCA(2, scale=scale).fit(table)
        spread = table.std(axis=0, ddof=1)
        report = pca_report(model, model.transform(table), deviations=spread, data=FACTS, feature_names=list("abc"))
        assert any("c alone" in text for text in report.warnings) == (warned and not scale)


def test_missing_cells_are_why_no_rule_is_asked():
    holes = X.copy()
    holes[3, 2] = np.nan
    model = PCA(2).fit(holes)
    report = pca_report(model, model.transform(holes), data=FACTS)
    section = next(section for section in report.sections if section.title == "How many components")
    assert any(isinstance(block, Text) and "missing" in str(block.text) for block in section.blocks)


def test_how_well_a_model_fits_stands_beside_the_certificate():
    bad = fit("normal", np.concatenate([RNG.normal(-9, 1, 200), RNG.normal(9, 1, 200)]))
    report = fit_report(bad, data=FACTS)
    assert (report.met, report.quality[0].verdict) == (True, FitLevel.POOR)
    head = render(report).split("<nav")[0]
    assert "Arithmetic: certified to 1e-" in head
    assert "badge fit poor" in head
    right = fit_report(fit("normal", ndtri((np.arange(300) + 0.5) / 300)), data=FACTS)
    assert right.quality[0].verdict == FitLevel.NOT_REJECTED
    assert "not rejected" in render(right).split("<nav")[0]
    given = Run(quality=[Quality("a", "x", 1.0, ""), Quality("b", "y", 0.1, "", FitLevel.DOUBTFUL)])
    report = fit_report(bad, data=FACTS, run=given)  # what a command has measured is not measured again
    assert report.quality == given.quality
    assert "badge fit doubtful" in render(report).split("<nav")[0]


@pytest.mark.parametrize("signal", [0.0, 5.0])
def test_the_error_of_rows_left_out_judges_a_regression(signal):
    y = signal * X[:, 0] + np.random.default_rng(8).normal(size=80)
    model = RidgeCV(alphas="auto").fit(X, y)
    report = regression_report(model, y, model.predict(X), X=X, data=FACTS)
    refits = [Ridge(model.alpha_).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[i : i + 1])[0] for i in range(80)]
    np.testing.assert_allclose(cloud(report).points.axes["predicted by the others"], refits, rtol=1e-7, atol=1e-9)
    r2 = r2_score(y, refits)
    assert report.tiles[0] == (f"{r2:.5g}", "R², leave-one-out")
    assert report.quality[0].verdict == (FitLevel.FACT if r2 > 0 else FitLevel.POOR)


def test_chances_are_never_nought():
    cells = DataTable("t", "T", {"p": [0.0, 0.25, 1e-320]}, chances=("p",)).html(None)
    assert cells.count("&lt; 1e-300") == 2
    assert ">0.25<" in cells


def test_a_regression_on_one_column_shows_its_curve_first_and_others_what_they_depend_on():
    model = RidgeCV(alphas="auto").fit(X[:, :1], Y)
    report = regression_report(model, Y, model.predict(X[:, :1]), X=X[:, :1], feature_names=["a"], data=FACTS)
    assert report.sections[0].title == "Curve"
    assert 'class="plot"' in render(report)
    model = RidgeCV(alphas="auto").fit(X, Y)
    report = regression_report(model, Y, model.predict(X), X=X, feature_names=list("abcde"), data=FACTS)
    shown = next(section for section in report.sections if section.title == "What the prediction depends on")
    slopes = np.abs(model.coef_) * np.diff(np.quantile(X, [0.02, 0.98], axis=0), axis=0)[0]
    assert [figure.title for figure in shown.blocks[0].blocks] == ["abcde"[j] for j in np.argsort(-slopes)]
    assert render(report)


def test_the_table_of_a_choice_is_sorted_and_the_winner_marked():
    choice = select_mixture(GaussianMixture(), X[:, :2], n_components=(1, 2, 3), covariance_types=("EII", "VVV"))
    report = mixture_report(choice.best, X[:, :2], choice=choice, data=FACTS)
    values = np.array(table(report, "choice")["bic"], dtype=float)
    assert np.all(np.diff(values[np.isfinite(values)]) >= 0)
    plot = next(b for b in blocks(report) if isinstance(b, Figure) and b.title.startswith("Criterion")).draw()
    assert any(item.label.value.startswith("best: ") for item in plot.legend[0].items)
