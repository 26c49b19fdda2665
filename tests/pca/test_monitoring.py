"""Limits of T² and Q against exact distributions and simulation; statistics against a loop over rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from scipy.integrate import quad
from sklearn import config_context
from sklearn.exceptions import NotFittedError

from gramian import PCA
from gramian.pca.monitoring import Alarms, Monitor, monitor, q_limit, t2_limit, weighted_chi2_tail
from oracles import Array, centred, naive_pca, separated

SPECTRA = {
    "equal": np.ones(10),
    "falling": 0.8 ** np.arange(20),
    "linear": np.array([5.0, 4, 3, 2, 1]),
    "one above": np.r_[10.0, np.full(20, 1.0)],
    "one far above": np.r_[10.0, np.full(100, 0.1)],
}


def imhof(q: float, theta: Array) -> float:
    """P(Σ θ χ²_1 > q) by Imhof's (1961) integral along the imaginary axis."""

    def integrand(u: float) -> float:
        phase = 0.5 * np.sum(np.arctan(theta * u)) - 0.5 * q * u
        return float(np.sin(phase) / u * np.exp(-0.25 * np.sum(np.log1p((theta * u) ** 2))))

    return float(0.5 + quad(integrand, 1e-12, np.inf, limit=2000, epsabs=1e-9)[0] / np.pi)


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.001])
def test_exact_limit_meets_the_integral_of_imhof(name: str, alpha: float) -> None:
    theta = SPECTRA[name]
    assert_allclose(imhof(q_limit(theta, alpha), theta), alpha, atol=1e-8)


@pytest.mark.parametrize("m", [1, 2, 7, 2000])
@pytest.mark.parametrize("share", [1e-3, 0.5, 0.999, 1.0, 1.5, 4.0])
def test_tail_of_equal_weights_is_chi_square(m: int, share: float) -> None:
    expected = stats.chi2.sf(share * m, m)
    assert_allclose(weighted_chi2_tail(3.0 * share * m, np.full(m, 3.0)), expected, rtol=1e-9, atol=1e-13)


@given(
    rates=st.lists(st.integers(1, 40), min_size=1, max_size=5, unique=True),
    share=st.floats(0.05, 12.0),
)
def test_tail_of_weights_in_pairs_is_a_sum_of_exponentials(rates: list[int], share: float) -> None:
    # θ(χ²_1 + χ²_1) is exponential with mean 2θ; sums of those have a density in closed form
    with mpmath.workdps(60):
        theta = [1 / mpmath.mpf(r) for r in rates]
        q = mpmath.mpf(share) * mpmath.fsum(2 * t for t in theta)
        parts = [
            mpmath.fprod(t / (t - other) for other in theta if other != t) * mpmath.exp(-q / (2 * t)) for t in theta
        ]
        expected = float(mpmath.fsum(parts))
    weights = np.repeat([float(t) for t in theta], 2)
    assert_allclose(weighted_chi2_tail(float(q), weights), expected, rtol=1e-9, atol=1e-14)


@given(scale=st.floats(1e-100, 1e100), alpha=st.floats(1e-9, 0.999))
def test_exact_limit_inverts_the_tail_in_any_unit(scale: float, alpha: float) -> None:
    theta = SPECTRA["falling"] * scale
    assert_allclose(weighted_chi2_tail(q_limit(theta, alpha), theta), alpha, rtol=1e-8)


def test_what_the_approximations_of_q_are_worth() -> None:
    # for a smoothly falling spectrum both are within 4 %, on either side of the truth
    theta = SPECTRA["falling"]
    exact = q_limit(theta, 0.01)
    assert 1.0 < q_limit(theta, 0.01, "jackson-mudholkar") / exact < 1.04
    assert 0.96 < q_limit(theta, 0.01, "box") / exact < 1.0
    # of equal variances Box is exact, and Jackson–Mudholkar is the cube root of Wilson and Hilferty
    equal = SPECTRA["equal"]
    assert_allclose(q_limit(equal, 0.01, "box"), stats.chi2.isf(0.01, 10), rtol=1e-12)
    cube = 10 * (1 - 2 / 90 + stats.norm.isf(0.01) * np.sqrt(2 / 90)) ** 3
    assert_allclose(q_limit(equal, 0.01, "jackson-mudholkar"), cube, rtol=1e-12)


def test_jackson_mudholkar_is_refused_where_it_fails() -> None:
    with pytest.raises(ValueError, match=r"h₀ = -0\.42.*'exact'.*'box'"):
        q_limit(SPECTRA["one above"], 0.01, "jackson-mudholkar")


@pytest.mark.parametrize(("k", "n"), [(1, 5), (3, 20), (4, 1000)])
@pytest.mark.parametrize("alpha", [0.05, 1e-9])
def test_t2_limits_are_quantiles(k: int, n: int, alpha: float) -> None:
    factor = k * (n**2 - 1) / (n * (n - k))
    assert_allclose(t2_limit(k, n, alpha), factor * stats.f.isf(alpha, k, n - k), rtol=1e-7)
    beta = stats.beta(k / 2, (n - k - 1) / 2)
    assert_allclose(beta.sf(t2_limit(k, n, alpha, "beta") * n / (n - 1) ** 2), alpha, rtol=1e-5)
    assert_allclose(t2_limit(k, n, alpha, "chi2"), stats.chi2.isf(alpha, k), rtol=1e-10)


def test_one_component_of_new_rows_is_the_prediction_interval() -> None:
    # T² of one variable is the square of Student's t for a new observation, with variance s²(1 + 1/n)
    n = 12
    assert_allclose(t2_limit(1, n, 0.05), stats.t.ppf(0.975, n - 1) ** 2 * (1 + 1 / n), rtol=1e-10)


def exceedances(phase: int, t2: str) -> tuple[int, int]:
    """Rows above the 5 % limit of T², over many small samples with all components kept."""
    rng, above, rows = np.random.default_rng(phase), 0, 0
    for _ in range(300):
        X = rng.normal(size=(15, 3)) @ np.array([[2.0, 1, 0], [0, 1, 1], [0, 0, 0.3]])
        chart = monitor(PCA().fit(X), X, alpha=0.05, t2=t2)
        new = X if phase == 1 else rng.normal(size=(15, 3)) @ np.array([[2.0, 1, 0], [0, 1, 1], [0, 0, 0.3]])
        above, rows = above + int(chart.check(new).t2_alarm.sum()), rows + 15
    return above, rows


@pytest.mark.parametrize(("phase", "t2"), [(1, "beta"), (2, "F")])
def test_share_of_false_alarms_is_alpha_in_its_phase(phase: int, t2: str) -> None:
    above, rows = exceedances(phase, t2)
    # new rows share one sample's mean and covariance, which makes their count vary by 1.32 of a binomial's deviation
    assert abs(above / rows - 0.05) < 3 * 1.32 * np.sqrt(0.05 * 0.95 / rows)


def test_the_limit_of_the_other_phase_is_wrong() -> None:
    above, rows = exceedances(1, "F")
    assert above / rows < 0.01  # training rows hide behind the mean and variance they made
    above, rows = exceedances(2, "beta")
    assert above / rows > 0.15


@pytest.mark.parametrize("q", ["exact", "jackson-mudholkar", "box", "moments"])
def test_share_of_false_alarms_of_q_on_new_rows(q: str) -> None:
    rng = np.random.default_rng(5)
    mixing = rng.normal(size=(8, 8)) * np.array([6.0, 4, 3, 1, 0.9, 0.8, 0.7, 0.6])[:, None]
    X, new = rng.normal(size=(4000, 8)) @ mixing, rng.normal(size=(20_000, 8)) @ mixing
    rate = monitor(PCA(3).fit(X), X, alpha=0.02, q=q).check(new).q_alarm.mean()
    # the approximations move the rate by a tenth of itself, estimation by √(2/4000) of the limit
    assert 0.015 < rate < 0.025


def naive_statistics(X: Array, new: Array, k: int, scale: bool, weights: Array | None = None) -> tuple[Array, Array]:
    fit = naive_pca(X, weights, scale)
    w = np.ones(len(X)) if weights is None else weights
    s = np.sqrt(w @ (X - fit.mean) ** 2 / (w.sum() - 1)) if scale else np.ones(X.shape[1])
    t2, q = [], []
    for x in new:
        d = (x - fit.mean) / s
        z = [fit.components[i] @ d for i in range(k)]
        t2.append(sum(z[i] ** 2 / fit.variances[i] for i in range(k)))
        q.append(np.sum((d - sum(z[i] * fit.components[i] for i in range(k))) ** 2))
    return np.array(t2), np.array(q)


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_are_those_of_a_loop(whiten: bool, scale: bool, weighted: bool) -> None:
    X, new = separated(40, 5), separated(7, 5, seed=9)
    w = np.random.default_rng(0).uniform(0, 3, 40) if weighted else None
    pca = PCA(2, whiten=whiten, scale=scale).fit(X, sample_weight=w)
    chart = monitor(pca, X, sample_weight=w)
    t2, q = naive_statistics(X, new, 2, scale, w)
    alarms = chart(new)
    assert_allclose(alarms.t2, t2, rtol=1e-9)
    assert_allclose(alarms.q, q, rtol=1e-9)
    left_out = naive_pca(X, w, scale).variances[2:]
    assert_allclose(chart.q_limit, q_limit(left_out, 0.01), rtol=1e-9)
    assert_allclose(chart.t2_limit, t2_limit(2, 40 if w is None else w.sum()), rtol=1e-12)


def test_a_weight_of_two_is_the_row_twice() -> None:
    X, w = separated(30, 5), np.arange(30) % 3
    twice = np.repeat(X, w, axis=0)
    for q in ("exact", "moments"):
        one = monitor(PCA(2).fit(X, sample_weight=w), X, sample_weight=w, q=q)
        other = monitor(PCA(2).fit(twice), twice, q=q)
        assert_allclose([one.t2_limit, one.q_limit], [other.t2_limit, other.q_limit], rtol=1e-9)


def test_moments_rule_matches_mean_and_variance_of_q() -> None:
    X = separated(60, 6)
    pca = PCA(2).fit(X)
    Q = np.sum((centred(X) - centred(X) @ pca.components_.T @ pca.components_) ** 2, axis=1)
    g, h = Q.var(ddof=1) / (2 * Q.mean()), 2 * Q.mean() ** 2 / Q.var(ddof=1)
    assert_allclose(monitor(pca, X, q="moments", alpha=0.05).q_limit, g * stats.chi2.isf(0.05, h), rtol=1e-9)


@given(seed=st.integers(0, 1000), scale=st.booleans(), k=st.integers(1, 6))
def test_contributions_are_positive_and_add_up(seed: int, scale: bool, k: int) -> None:
    X, new = separated(30, 6, seed), separated(9, 6, seed + 1)
    chart = monitor(PCA(k, scale=scale).fit(X), X)
    alarms, parts = chart.check(new), chart.contributions(new)
    assert (parts.t2 >= 0).all()
    assert_allclose(parts.t2.sum(axis=1), alarms.t2, rtol=1e-8)
    assert_allclose(parts.q.sum(axis=1), alarms.q, rtol=1e-8, atol=1e-20)
    assert_allclose(parts.residuals**2, parts.q)


def test_contributions_are_the_square_root_of_the_metric() -> None:
    X = separated(30, 5)
    pca = PCA(3).fit(X)
    parts = monitor(pca, X).contributions(X)
    M = pca.components_.T / pca.explained_variance_ @ pca.components_
    values, vectors = np.linalg.eigh(M)
    values[values < 1e-12 * values[-1]] = 0.0  # two are 0, rounding apart, whose root would not be
    root = vectors * np.sqrt(values) @ vectors.T
    assert_allclose(parts.t2, (centred(X) @ root) ** 2, rtol=1e-7, atol=1e-10)


def test_the_broken_sensor_is_found() -> None:
    rng = np.random.default_rng(3)
    latent = rng.normal(size=(500, 2))
    X = latent @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(500, 8))
    chart = monitor(PCA(2).fit(X), X)
    broken = X[:1].copy()
    broken[0, 5] += 2.0
    assert chart.check(broken).q_alarm[0]
    assert chart.contributions(broken).q[0].argmax() == 5


def as_file(folder: Path) -> Callable[[Array], Any]:
    def save(X: Array) -> Path:
        path = folder / f"{len(X)}.npy"
        np.save(path, X)
        return path

    return save


@pytest.mark.parametrize("kind", ["csr", "file", "float32", "pandas", "torch"])
@pytest.mark.parametrize("q", ["exact", "moments"])
def test_every_kind_of_input_gives_the_same_chart(kind: str, q: str, tmp_path: Path) -> None:
    X = np.round(separated(60, 6) * (np.random.default_rng(1).random((60, 6)) < 0.7), 3)
    new = X[:10] * 1.5
    convert: dict[str, Callable[[Array], Any]] = {
        "csr": sparse.csr_array,
        "file": as_file(tmp_path),
        "float32": lambda x: x.astype(np.float32),
        "pandas": lambda x: pytest.importorskip("pandas").DataFrame(x, columns=list("abcdef")),
        "torch": lambda x: pytest.importorskip("torch").asarray(x),
    }
    ours, theirs = convert[kind](X), monitor(PCA(2).fit(X), X, q=q)
    with config_context(working_memory=0.005):  # several blocks of rows
        chart = monitor(PCA(2).fit(ours), ours, q=q)
        alarms, parts = chart.check(convert[kind](new)), chart.contributions(convert[kind](new))
    rtol = 1e-4 if kind == "float32" else 1e-8
    assert_allclose([chart.t2_limit, chart.q_limit], [theirs.t2_limit, theirs.q_limit], rtol=rtol)
    assert_allclose(alarms.t2, theirs.check(new).t2, rtol=rtol)
    assert_allclose(alarms.q, theirs.check(new).q, rtol=rtol)
    assert_allclose(parts.residuals, theirs.contributions(new).residuals, rtol=rtol, atol=rtol)


def test_with_all_components_q_is_zero_and_silent() -> None:
    X = separated(30, 4)
    chart = monitor(PCA().fit(X), X)
    alarms = chart.check(X * 100)
    assert chart.q_limit == 0.0
    assert "no alarm" in chart.q_rule
    assert not alarms.q_alarm.any()
    assert_array_equal(chart.contributions(X).q, 0)


def test_a_later_fit_leaves_the_monitor_alone() -> None:
    X = separated(30, 4)
    pca = PCA(2).fit(X)
    chart = monitor(pca, X)
    before = chart.check(X).t2
    pca.fit(X[:, ::-1] * 7)
    assert_array_equal(chart.check(X).t2, before)


def collinear(n: int = 30) -> Array:
    X = separated(n, 3)
    return np.column_stack([X, X.sum(axis=1)])


@pytest.mark.parametrize(
    ("make", "options", "word"),
    [
        (lambda: (PCA().fit(collinear()), collinear()), {}, r"from 3 on.*PCA\(n_components=3\)"),
        (lambda: (PCA(3).fit(collinear()), collinear()), {}, "all variance.*fewer than 3"),
        (lambda: (PCA(3).fit(collinear()), collinear()), {"q": "moments"}, "all variance.*fewer than 3"),
        (lambda: (PCA(2).fit(separated(20, 4)), separated(19, 4)), {}, "19 rows.*fitted on 20"),
        (lambda: (PCA(2).fit(separated(20, 4)), separated(20, 4) + 1), {}, "mean of 'x0'"),
        (lambda: (PCA(2).fit(separated(20, 4)), separated(20, 5)), {}, "5 columns.*fitted on 4"),
        (lambda: (PCA(2).fit(separated(20, 4)), np.full((20, 4), np.nan)), {}, "missing .* 'x0'"),
        (lambda: (PCA(2).fit(separated(20, 4)), separated(20, 4)), {"alpha": 0.0}, "alpha.*0.0"),
        (lambda: (PCA(2).fit(separated(20, 4)), separated(20, 4)), {"t2": "f"}, "t2 must be one of.*'f'"),
        (lambda: (PCA(2).fit(separated(20, 4)), separated(20, 4)), {"q": "JM"}, "q must be one of.*'JM'"),
        (lambda: (PCA(2).fit(separated(4, 9)), separated(4, 9)), {"t2": "beta"}, None),
        (lambda: (PCA(3).fit(separated(4, 9)), separated(4, 9)), {"t2": "beta"}, "more than 4 rows"),
        (lambda: (PCA(0).fit(separated(20, 4)), separated(20, 4)), {}, "no component"),
    ],
)
def test_what_cannot_be_monitored_is_refused(make: Any, options: dict[str, Any], word: str | None) -> None:
    pca, X = make()
    if word is None:
        assert monitor(pca, X, **options).t2_limit < 9 / 4  # the bound (n−1)²/n
        return
    with pytest.raises(ValueError, match=f"(?s){word}"):
        monitor(pca, X, **options)


def test_unfitted_models_and_bad_rows_are_refused() -> None:
    X = separated(20, 4)
    with pytest.raises(NotFittedError):
        monitor(PCA(), X)
    chart = monitor(PCA(2).fit(X), X)
    spoiled = X.copy()
    spoiled[3, 2] = np.nan
    for method in (chart.check, chart.contributions):
        with pytest.raises(ValueError, match="row 4, column 3"):
            method(spoiled)
        with pytest.raises(ValueError, match="3 features"):
            method(X[:, :3])


def test_too_large_for_the_working_memory_names_the_remedy() -> None:
    X = separated(60, 50)
    pca = PCA(2).fit(X)
    chart = monitor(pca, X)
    with config_context(working_memory=0.01):
        with pytest.raises(ValueError, match="q='moments'"):
            monitor(pca, X)
        with pytest.raises(ValueError, match="alarm"):
            chart.contributions(X)
        assert monitor(pca, X, q="moments").q_limit > 0


def test_results_read_well_and_make_frames() -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(separated(30, 3), columns=["hot", "cold", "flow"])
    chart = monitor(PCA(1).fit(X), X, t2="beta", q="box")
    alarms, parts = chart.check(X), chart.contributions(X[:2])
    assert isinstance(chart, Monitor)
    assert "for the rows of the fit" in repr(chart)
    assert "two moments" in repr(chart)
    assert f"of {len(X)} rows" in repr(alarms)
    assert "hot" in repr(parts) or "cold" in repr(parts) or "flow" in repr(parts)
    assert pandas.DataFrame(chart.table())["limit"].tolist() == [chart.t2_limit, chart.q_limit]
    assert pandas.DataFrame(alarms.table()).shape == (30, 5)
    assert pandas.DataFrame(parts.table()).groupby("row")["t2"].sum().to_numpy() == pytest.approx(alarms.t2[:2])


def test_alarmed_rows_are_listed() -> None:
    alarms = Alarms(np.array([1.0, 9.0, 1.0]), np.array([0.0, 0.0, 5.0]), 4.0, 2.0)
    assert alarms.rows.tolist() == [1, 2]
    assert "2 of 3" in repr(alarms)
    assert repr(alarms).splitlines()[-2:] == ["  2    9 alarm        0", "  3          1  5 alarm"]
    many = Alarms(np.full(25, 9.0), np.zeros(25), 4.0, 2.0)
    assert repr(many).count("9 alarm") == 10
    assert "and 15 more" in repr(many)
    assert "alarm" not in repr(Alarms(np.ones(3), np.ones(3), 4.0, 2.0))


def test_rows_are_called_by_the_index_of_their_frame_and_the_worst_come_first() -> None:
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(separated(60, 4), columns=list("abcd"))
    chart = monitor(PCA(2).fit(X), X)
    new = X[:3].copy()
    new.index = ["mon", "tue", "wed"]
    residual = np.linalg.svd(X - X.mean())[2][3]  # off the plane of the model
    new.loc["wed"] = X.mean() + 50 * residual
    alarms, parts = chart.check(new), chart.contributions(new)
    assert alarms.names == parts.row_names == ("mon", "tue", "wed")
    assert "3 (wed)" in repr(alarms)
    assert "mon" not in repr(alarms)
    assert pandas.DataFrame(alarms.table())["name"].tolist() == ["mon", "tue", "wed"]
    assert pandas.DataFrame(parts.table())["name"].tolist() == ["mon"] * 4 + ["tue"] * 4 + ["wed"] * 4
    assert parts.order[0] == 2
    line = repr(parts).splitlines()[2].split()
    largest = "abcd"[int(np.argmax(np.abs(residual)))]
    assert line[:2] == ["3", "(wed)"]
    assert line[3:5] == [f"{2500:.4g}", "alarm"]
    assert largest in line[5:]
    assert chart.check(X).names is None
