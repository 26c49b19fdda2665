"""The families: densities, tails, intervals and scores, against scipy, mpmath and numerical derivatives."""

from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from scipy import stats

from gramian.likelihood.families import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Custom,
    Exponential,
    Gamma,
    Geometric,
    Laplace,
    Link,
    Logistic,
    LogNormal,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    Poisson,
    Scipy,
    StudentT,
    VonMises,
    Weibull,
    as_family,
)
from gramian.likelihood.problem import LikelihoodProblem
from gramian.likelihood.sample import Intervals, as_sample

INF = float("inf")

# family, parameters, scipy's twin
LINE: list[tuple[Any, list[float], Any]] = [
    (Normal(), [1.5, 0.7], stats.norm(1.5, 0.7)),
    (Logistic(), [1.5, 0.7], stats.logistic(1.5, 0.7)),
    (Laplace(), [1.5, 0.7], stats.laplace(1.5, 0.7)),
    (StudentT(), [3.5, 1.5, 0.7], stats.t(3.5, 1.5, 0.7)),
    (StudentT(), [2e3, 1.5, 0.7], stats.t(2e3, 1.5, 0.7)),
    (Exponential(), [0.8], stats.expon(scale=1 / 0.8)),
    (Gamma(), [2.3, 0.8], stats.gamma(2.3, scale=1 / 0.8)),
    (Gamma(), [250.0, 100.0], stats.gamma(250.0, scale=0.01)),
    (Gamma(), [0.4, 0.8], stats.gamma(0.4, scale=1 / 0.8)),
    (Weibull(), [1.7, 2.2], stats.weibull_min(1.7, scale=2.2)),
    (LogNormal(), [0.3, 0.9], stats.lognorm(0.9, scale=np.exp(0.3))),
    (Beta(), [2.2, 0.7], stats.beta(2.2, 0.7)),
]
COUNTS: list[tuple[Any, list[float], Any]] = [
    (Bernoulli(), [0.3], stats.bernoulli(0.3)),
    (Binomial(9), [0.3], stats.binom(9, 0.3)),
    (Poisson(), [2.6], stats.poisson(2.6)),
    (Geometric(), [0.3], stats.geom(0.3)),
    (Geometric(first=0), [0.3], stats.geom(0.3, loc=-1)),
    (NegativeBinomial(), [1.8, 3.1], stats.nbinom(1.8, 1.8 / (1.8 + 3.1))),
    (NegativeBinomial(), [180.0, 3.1], stats.nbinom(180.0, 180.0 / (180.0 + 3.1))),
]
IDS = [f"{f.name}-{i}" for i, (f, _, _) in enumerate([*LINE, *COUNTS])]


def points(family: Any, twin: Any) -> Any:
    """Values over the whole distribution."""
    if family.discrete:
        return np.arange(family.low, min(family.high, 12.0) + 1.0)
    return twin.ppf(np.linspace(0.02, 0.98, 25))


@pytest.mark.parametrize(("family", "theta", "twin"), [*LINE, *COUNTS], ids=IDS)
def test_density_and_tails_are_scipys(family, theta, twin):
    x, t = points(family, twin), np.array(theta)
    density = twin.logpmf(x) if family.discrete else twin.logpdf(x)
    np.testing.assert_allclose(family.log_density(x, t), density, rtol=1e-12, atol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(family.log_cdf(x, t)), twin.cdf(x), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(np.exp(family.log_sf(x, t)), twin.sf(x), rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize(("family", "theta", "twin"), [*LINE, *COUNTS], ids=IDS)
def test_intervals_are_differences_of_the_distribution_function(family, theta, twin):
    edges = points(family, twin)
    edges = np.unique(np.concatenate([[-INF], edges, [INF]]))
    P = np.exp(family.log_interval(edges[:-1], edges[1:], np.array(theta)))
    np.testing.assert_allclose(P, np.diff(twin.cdf(edges)), rtol=1e-9, atol=1e-14)
    assert P.sum() == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize(("family", "theta", "twin"), [*LINE, *COUNTS], ids=IDS)
def test_the_score_is_the_derivative_of_the_log_density(family, theta, twin):
    x, t = points(family, twin), np.array(theta)
    for j, row in enumerate(family.score(x, t)):
        h = 1e-3 * t[j]
        steps = [family.log_density(x, t + k * h * np.eye(len(t))[j]) for k in (-3, -2, -1, 1, 2, 3)]
        slope = np.array([-1, 9, -45, 45, -9, 1]) @ np.array(steps) / (60 * h)
        np.testing.assert_allclose(row, slope, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("family", "theta", "twin"), [*LINE, *COUNTS], ids=IDS)
def test_the_gradient_of_intervals_and_windows_is_the_derivative_of_their_likelihood(family, theta, twin):
    q = twin.ppf([0.1, 0.4, 0.45, 0.7, 0.95])
    if family.discrete:
        sample = as_sample(Intervals([family.low - 1, family.low], [family.low, INF]), truncated=(family.low, INF))
    else:
        records = Intervals([-INF, q[1], q[2], q[2], q[2]], [q[1], q[3], q[2] + 1e-5 * abs(q[2]), INF, q[2]])
        sample = as_sample(records, truncated=(q[0], q[4]))
    problem = LikelihoodProblem(family, sample)
    phi = problem.phi(np.array(theta))
    gradient = problem.gradient(phi)
    for j in range(len(phi)):
        e = 1e-3 * np.eye(len(phi))[j]
        steps = [problem.value(phi + k * e) for k in (-3, -2, -1, 1, 2, 3)]
        assert gradient[j] == pytest.approx(
            np.array([-1, 9, -45, 45, -9, 1]) @ np.array(steps) / 0.06, rel=2e-8, abs=2e-8
        )


def normal_tail(z: float) -> Any:
    return mpmath.log(mpmath.erfc(z / mpmath.sqrt(2)) / 2)


@pytest.mark.parametrize(
    ("family", "theta", "x", "side", "exact"),
    [
        (Normal(), [0.0, 1.0], 60.0, "sf", lambda: normal_tail(mpmath.mpf(60))),
        (Gamma(), [2.5, 1.0], 1000.0, "sf", lambda: mpmath.log(mpmath.gammainc(2.5, 1000, mpmath.inf, True))),
        (Gamma(), [300.0, 1.0], 1.0, "cdf", lambda: mpmath.log(mpmath.gammainc(300, 0, 1, True))),
        (Poisson(), [3.0], 400.0, "sf", lambda: mpmath.log(mpmath.gammainc(401, 0, 3, True))),
        (Poisson(), [2000.0], 3.0, "cdf", lambda: mpmath.log(mpmath.gammainc(4, 2000, mpmath.inf, True))),
        (Beta(), [400.0, 3.0], 0.01, "cdf", lambda: mpmath.log(mpmath.betainc(400, 3, 0, 0.01, True))),
        (Beta(), [3.0, 400.0], 0.99, "sf", lambda: mpmath.log(mpmath.betainc(400, 3, 0, 1 - mpmath.mpf(0.99), True))),
        (
            StudentT(),
            [1e4, 0.0, 1.0],
            50.0,
            "sf",
            lambda: mpmath.log(mpmath.betainc(5000, 0.5, 0, mpmath.mpf(10**4) / (10**4 + 2500), True) / 2),
        ),
    ],
    ids=["normal", "gamma-right", "gamma-left", "poisson-right", "poisson-left", "beta-left", "beta-right", "t"],
)
def test_tails_that_are_no_numbers_keep_their_logarithms(family, theta, x, side, exact):
    function = family.log_sf if side == "sf" else family.log_cdf
    with mpmath.workdps(60):
        expected = float(exact())
    assert expected < -300
    assert function(np.array([x]), np.array(theta))[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("width", [1.0, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("start", [-30.0, 0.3, 25.0])
def test_intervals_lose_nothing_to_cancellation_however_narrow_and_far_out(start, width):
    with mpmath.workdps(80):
        a = mpmath.mpf(start)
        b = a + mpmath.mpf(width)
        exact = (
            mpmath.log(mpmath.ncdf(b) - mpmath.ncdf(a)) if start < 0 else mpmath.log(mpmath.ncdf(-a) - mpmath.ncdf(-b))
        )
    a, b = np.array([start]), np.array([start + width])
    rounding = 2e-16 * abs(start) / width  # of b itself
    found = Normal().log_interval(a, b, np.array([0.0, 1.0]))[0]
    assert found == pytest.approx(float(exact), rel=1e-13, abs=2 * rounding + 1e-14 * start**2)


def test_arcs_of_the_circle_are_integrals_of_the_von_mises_density():
    for kappa in (0.0, 0.7, 30.0, 4000.0):
        a, b = np.array([-3.0, 0.2, 0.9]), np.array([2.0, 0.25, 1.4])
        found = VonMises().log_interval(a, b, np.array([1.0, kappa]))
        with mpmath.workdps(20):
            total = 2 * mpmath.pi * mpmath.besseli(0, kappa)
            for p, q, value in zip(a, b, found, strict=True):
                cuts = list(np.linspace(p, q, 60))
                exact = mpmath.quad(lambda x: mpmath.exp(kappa * mpmath.cos(x - 1)) / total, cuts)  # noqa: B023
                assert value == pytest.approx(float(mpmath.log(exact)), rel=1e-12, abs=1e-12)


def test_von_mises_density_is_scipys():
    x = np.linspace(-3, 3, 11)
    found = VonMises().log_density(x, np.array([0.4, 2.5]))
    np.testing.assert_allclose(found, stats.vonmises(2.5, 0.4).logpdf(x), rtol=1e-13)


@pytest.mark.parametrize(("family", "theta", "twin"), [*LINE, *COUNTS], ids=IDS)
def test_draws_have_the_mean_of_the_family(family, theta, twin):
    x = family.draw(np.array(theta), 4000, np.random.default_rng(3))
    assert abs(x.mean() - twin.mean()) < 5 * twin.std() / np.sqrt(4000)
    family.check(as_sample(x))


def test_an_infinite_parameter_is_the_limit():
    x = np.arange(6.0)
    np.testing.assert_allclose(
        NegativeBinomial().log_density(x, np.array([INF, 2.0])), Poisson().log_density(x, np.array([2.0]))
    )
    np.testing.assert_allclose(
        StudentT().log_sf(x, np.array([INF, 1.0, 2.0])), Normal().log_sf(x, np.array([1.0, 2.0]))
    )
    near = StudentT().log_density(x, np.array([1e9, 1.0, 2.0]))
    np.testing.assert_allclose(near, StudentT().log_density(x, np.array([INF, 1.0, 2.0])), rtol=1e-7)


@pytest.mark.parametrize("link", [Link(), Link(2.0), Link(-INF, 3.0), Link(-1.0, 4.0)])
def test_links_go_there_and_back(link):
    for phi in (-2.0, 0.0, 1.3):
        theta = link.natural(phi)
        assert link.holds(theta)
        assert link.free(theta) == pytest.approx(phi, abs=1e-14)
        h = 1e-5
        assert link.slope(phi) == pytest.approx((link.natural(phi + h) - link.natural(phi - h)) / (2 * h), rel=1e-9)


def test_families_are_found_by_name():
    assert [as_family(name).name for name in ("Normal", "student-t", "von_mises", "gaussian")] == [
        "normal",
        "student t",
        "von mises",
        "normal",
    ]
    assert isinstance(as_family(stats.gumbel_r), Scipy)
    assert isinstance(as_family("multivariate normal"), MultivariateNormal)
    assert isinstance(as_family("categorical"), Categorical)
    with pytest.raises(ValueError, match=r"Binomial\(n\)"):
        as_family("binomial")
    with pytest.raises(ValueError, match="no family 'nrml'"):
        as_family("nrml")
    with pytest.raises(ValueError, match="Custom"):
        as_family(np.log)
    with pytest.raises(ValueError, match="got 3"):
        as_family(3)


def test_wrong_parameters_of_families_are_named():
    with pytest.raises(ValueError, match="1; got 0"):
        Binomial(0)
    with pytest.raises(ValueError, match="first must be"):
        Geometric(first=2)
    with pytest.raises(ValueError, match="without repetitions"):
        Categorical(["a", "a"])
    with pytest.raises(ValueError, match="which"):
        Custom(np.log, {"a": 1.0}, {"b": (0, 1)})
    with pytest.raises(ValueError, match="outside its bounds"):
        Custom(np.log, {"a": 2.0}, {"a": (0, 1)})
    with pytest.raises(ValueError, match="names no parameter"):
        Custom(np.log, {})
    with pytest.raises(ValueError, match="distribution"):
        Scipy("norm2")
    with pytest.raises(ValueError, match="whole-number parameter 'M'"):
        Scipy("hypergeom")
    with pytest.raises(ValueError, match="nothing to estimate"):
        Scipy("uniform")


def test_scipy_families_hold_what_would_move_the_end_of_the_support():
    assert Scipy("gumbel_r").names == ("loc", "scale")
    assert Scipy("invgauss").names == ("mu", "scale")
    assert Scipy("genextreme").names == ("c", "loc", "scale")
    assert Scipy("pareto").names == ("b",)
    assert Scipy("gamma", location=True).names == ("a", "loc", "scale")
    assert "loc is held at 0 and scale is held at 1" in Scipy("pareto").notes[0]
    assert Scipy("norm").notes == ()


def test_an_integrated_custom_density_agrees_with_its_distribution_function():
    def density(x: Any, m: float, s: float) -> Any:
        return stats.norm.logpdf(x, m, s)

    bare = Custom(density, {"m": 0.0, "s": 1.0}, {"s": (0, INF)})
    told = Custom(
        density,
        {"m": 0.0, "s": 1.0},
        {"s": (0, INF)},
        log_cdf=lambda x, m, s: stats.norm.logcdf(x, m, s),
        log_sf=lambda x, m, s: stats.norm.logsf(x, m, s),
    )
    a, b, theta = np.array([-INF, -0.5, 1.0]), np.array([0.1, 0.7, INF]), np.array([0.2, 1.3])
    np.testing.assert_allclose(bare.log_interval(a, b, theta), told.log_interval(a, b, theta), rtol=1e-10)
    np.testing.assert_allclose(bare.log_cdf(b, theta), told.log_cdf(b, theta), atol=1e-10)
    np.testing.assert_allclose(bare.log_sf(a, theta), told.log_sf(a, theta), atol=1e-10)
    with pytest.raises(ValueError, match="cannot"):
        bare.draw(theta, 3, np.random.default_rng(0))
    coin = Custom(lambda x, p: stats.geom.logpmf(x, p), {"p": 0.5}, {"p": (0, 1)}, (1, INF), discrete=True)
    np.testing.assert_allclose(
        coin.log_interval(np.array([0.0, 2.0]), np.array([2.0, INF]), np.array([0.3])), np.log([0.51, 0.49]), rtol=1e-12
    )
