"""Heritability against the likelihood and the moments written out with whole matrices, and against closed forms."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gramian.genetics import Relationships, heritability
from gramian.genetics.heritability import LARGEST, _Likelihood
from gramian.sources.plink import Genotypes
from oracles import Array


def draw_study(
    seed: int, n: int = 150, p: int = 90, h2: float = 0.5, missing: float = 0.0
) -> tuple[Array, Array, Array]:
    """Copies of an allele, a trait and two covariates."""
    rng = np.random.default_rng(seed)
    calls = rng.binomial(2, rng.uniform(0.1, 0.5, p), (n, p)).astype(float)
    z = (calls - calls.mean(axis=0)) / calls.std(axis=0)
    C = rng.normal(size=(n, 2))
    y = z @ rng.normal(size=p) * np.sqrt(h2 / p) + np.sqrt(1 - h2) * rng.normal(size=n) + C @ [1.0, 2.0] + 3.0
    calls[rng.random(calls.shape) < missing] = np.nan
    return calls, y, C


def relationship(calls: Array) -> Array:
    """ZZᵀ/M, missing calls at their mean."""
    f = np.nanmean(calls, axis=0) / 2
    z = np.nan_to_num((calls - 2 * f) / np.sqrt(2 * f * (1 - f)))
    return np.asarray(z @ z.T / z.shape[1])


class Naive:
    """The mixed model with whole matrices."""

    def __init__(self, K: Array, y: Array, C: Array) -> None:
        self.K, self.y, self.C = K / np.trace(K) * len(y), y, C

    def minus_log_likelihood(self, g: float, e: float) -> float:
        n, c = self.C.shape
        V = g * self.K + e * np.eye(n)
        inverse = np.linalg.inv(V)
        A = self.C.T @ inverse @ self.C
        P = inverse - inverse @ self.C @ np.linalg.solve(A, self.C.T @ inverse)
        logs = np.linalg.slogdet(V)[1] + np.linalg.slogdet(A)[1] - np.linalg.slogdet(self.C.T @ self.C)[1]
        return float(0.5 * (logs + self.y @ P @ self.y + (n - c) * np.log(2 * np.pi)))

    def predict_row(self, i: int, g: float, e: float) -> float:
        """Row i as the others predict it."""
        k = np.arange(len(self.y)) != i
        V = g * self.K + e * np.eye(len(self.y))
        inverse, C, y = np.linalg.inv(V[np.ix_(k, k)]), self.C[k], self.y[k]
        beta = np.linalg.solve(C.T @ inverse @ C, C.T @ inverse @ y)
        return float(self.C[i] @ beta + V[i, k] @ inverse @ (y - C @ beta))


@pytest.mark.parametrize(("seed", "missing", "h2"), [(0, 0.0, 0.5), (1, 0.05, 0.3), (2, 0.0, 0.8)])
def test_residual_likelihood_of_whole_matrices(seed: int, missing: float, h2: float) -> None:
    calls, y, C = draw_study(seed, h2=h2, missing=missing)
    found = heritability(calls, y, C, method="reml")
    naive = Naive(relationship(calls), y, np.column_stack([np.ones(len(y)), C]))
    best = scipy.optimize.minimize(
        lambda t: naive.minus_log_likelihood(*np.exp(t)),
        np.log([0.5, 0.5]),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12},
    )
    g, e = np.exp(best.x)
    assert found.log_likelihood == pytest.approx(-best.fun, abs=1e-8)
    assert_allclose([found.genetic_variance, found.residual_variance], [g, e], rtol=1e-5)
    assert found.h2 == pytest.approx(g / (g + e), abs=1e-6)
    assert found.left_out is not None
    assert_allclose(found.left_out[[0, 7]], [naive.predict_row(i, g, e) for i in (0, 7)], rtol=1e-5)
    assert found.certificate is not None
    assert found.certificate.converged


def test_interval_error_and_test_by_the_likelihood() -> None:
    calls, y, C = draw_study(3)
    found = heritability(calls, y, C, method="reml")
    naive = Naive(relationship(calls), y, np.column_stack([np.ones(len(y)), C]))

    def profile(h: float) -> float:
        """Of the h² alone: the whole variance at its best."""
        return min(
            naive.minus_log_likelihood(h * v, (1 - h) * v)
            for v in [scipy.optimize.minimize_scalar(
                lambda v: naive.minus_log_likelihood(h * v, (1 - h) * v), bounds=(0.1, 10), method="bounded",
                options={"xatol": 1e-10},
            ).x]
        )  # fmt: skip

    least = profile(found.h2)
    for end in found.interval:
        assert 2 * (profile(end) - least) == pytest.approx(3.841459, abs=1e-4)
    assert found.p_value == pytest.approx(0.5 * scipy.stats.chi2.sf(2 * (profile(0.0) - least), 1), rel=1e-4)
    g, e = found.genetic_variance, found.residual_variance
    # average information: half of yᵀP(∂V)P(∂V)Py
    V = g * naive.K + e * np.eye(len(y))
    inverse = np.linalg.inv(V)
    P = inverse - inverse @ naive.C @ np.linalg.solve(naive.C.T @ inverse @ naive.C, naive.C.T @ inverse)
    parts = [naive.K @ P @ y, P @ y]
    information = 0.5 * np.array([[a @ P @ b for b in parts] for a in parts])
    slope = np.array([e, -g]) / (g + e) ** 2
    assert found.standard_error == pytest.approx(np.sqrt(slope @ np.linalg.solve(information, slope)), rel=1e-8)


def test_families_have_the_closed_form_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(0)
    families, members = 40, 3
    K = np.kron(np.eye(families), np.ones((members, members)))
    y = np.repeat(rng.normal(size=families), members) + rng.normal(size=families * members)
    groups = y.reshape(families, members)
    within = float(np.sum((groups - groups.mean(axis=1, keepdims=True)) ** 2) / (families * (members - 1)))
    between = float(members * np.var(groups.mean(axis=1), ddof=1))
    n = families * members
    ids = np.array([[f"f{i}", f"i{i}"] for i in range(n)], dtype=object)
    found = heritability(Relationships(ids, K, np.full((n, n), 1000.0)), y, method="reml")
    assert found.residual_variance == pytest.approx(within, rel=1e-6)
    assert found.genetic_variance == pytest.approx((between - within) / members, rel=1e-6)
    moments = heritability(Relationships(ids, K, np.full((n, n), 1000.0)), y, method="haseman-elston", n_probes=400)
    assert moments.h2 == pytest.approx(found.h2, abs=5 * max(moments.probe_error, 1e-3))
    with pytest.raises(ValueError, match="reml"):
        found.effects()


def test_matrix_and_genotypes_agree_and_people_without_the_trait_are_left_out() -> None:
    calls, y, C = draw_study(4)
    y[[3, 50]], C[7, 1] = np.nan, np.nan
    found = heritability(calls, y, C, method="reml")
    kept = np.setdiff1d(np.arange(len(y)), [3, 7, 50])
    assert_array_equal(found.samples, kept)
    alone = heritability(calls[kept], y[kept], C[kept], method="reml")
    assert (alone.h2, alone.log_likelihood) == (found.h2, found.log_likelihood)
    n = len(kept)
    ids = np.array([["0", f"i{i}"] for i in range(n)], dtype=object)
    matrix = Relationships(ids, relationship(calls[kept]), np.full((n, n), 90.0))
    by_matrix = heritability(matrix, y[kept], C[kept], method="reml")
    assert_allclose(by_matrix.h2, found.h2, rtol=1e-6)
    twice = heritability(calls, y, np.column_stack([C, C[:, 0] - 2 * C[:, 1]]), method="reml")  # one says nothing new
    assert twice.h2 == pytest.approx(found.h2, rel=1e-8)


def test_predictions_of_others_are_those_of_all_people_together() -> None:
    calls, y, _ = draw_study(5, n=120)
    rest = calls[100:]
    train, trait = calls[:100], y[:100]
    found = heritability(train, trait, method="reml")
    assert found.breeding_values is not None
    assert_allclose(found.predict(train), found.breeding_values, atol=1e-10)
    f = train.mean(axis=0) / 2
    varies = (f > 0) & (f < 1)
    z = (calls - 2 * f)[:, varies] / np.sqrt(2 * f * (1 - f))[varies]
    K = z @ z.T / varies.sum()
    own = K[:100, :100]
    k = np.trace(own) / 100
    g, e = found.genetic_variance / k, found.residual_variance
    V = g * own + e * np.eye(100)
    ones = np.ones(100)
    beta = ones @ np.linalg.solve(V, trait) / (ones @ np.linalg.solve(V, ones))
    want = g * K[100:, :100] @ np.linalg.solve(V, trait - beta)
    assert_allclose(found.predict(rest[:, varies] if not varies.all() else rest), want, atol=1e-9)
    assert found.fixed is not None
    assert found.fixed[0] == pytest.approx(beta, rel=1e-8)
    with pytest.raises(ValueError, match="89 SNPs"):
        found.predict(rest[:, :89])


def test_moments_of_whole_matrices() -> None:
    calls, y, C = draw_study(6)
    K = relationship(calls)
    Q = np.linalg.qr(np.column_stack([np.ones(len(y)), C]))[0]
    P = np.eye(len(y)) - Q @ Q.T
    star, rest = P @ K @ P, P @ y
    t1, t2, N = np.trace(star), np.trace(star @ star), len(y) - 3
    g, e = np.linalg.solve([[t2, t1], [t1, N]], [rest @ K @ rest, rest @ rest])
    k = np.trace(K) / len(y)
    V = g * star + e * P
    spread = [[2 * np.trace(a @ V @ b @ V) for b in (star, P)] for a in (star, P)]
    inverse = np.linalg.inv([[t2, t1], [t1, N]])
    slope = np.array([e * k, -g * k]) / (g * k + e) ** 2
    error = np.sqrt(slope @ inverse @ spread @ inverse @ slope)
    found = heritability(calls, y, C, method="haseman-elston", n_probes=3000)
    assert found.h2 == pytest.approx(g * k / (g * k + e), abs=4 * found.probe_error)
    assert found.standard_error == pytest.approx(error, rel=0.03)
    few = [heritability(calls, y, C, method="haseman-elston", n_probes=20, random_state=s) for s in range(40)]
    errors = np.array([one.h2 for one in few]) - found.h2
    assert np.std(errors) == pytest.approx(np.mean([one.probe_error for one in few]), rel=0.4)


@pytest.mark.parametrize("method", ["reml", "haseman-elston"])
def test_errors_are_those_of_repeated_studies(method: str) -> None:
    rng = np.random.default_rng(7)
    calls, _, _ = draw_study(7, n=200, p=60)
    z = (calls - calls.mean(axis=0)) / calls.std(axis=0)
    found = []
    for _ in range(150):
        y = z @ rng.normal(size=60) * np.sqrt(0.4 / 60) + np.sqrt(0.6) * rng.normal(size=200)
        found.append(heritability(calls, y, method=method, n_probes=60))
    estimates, errors = np.array([(one.h2, one.standard_error) for one in found]).T
    assert abs(estimates.mean() - 0.4) < 4 * estimates.std() / np.sqrt(150)
    assert errors.mean() == pytest.approx(estimates.std(), rel=0.25)
    inside = np.mean([one.interval[0] <= 0.4 <= one.interval[1] for one in found])
    assert inside > 0.9


def test_a_trait_without_heritability_has_p_values_that_keep_their_size() -> None:
    rng = np.random.default_rng(8)
    calls, _, _ = draw_study(8, n=150, p=80)
    for method in ("reml", "haseman-elston"):
        small = np.mean([heritability(calls, rng.normal(size=150), method=method).p_value < 0.05 for _ in range(200)])
        assert 0.01 <= small <= 0.105  # three standard errors


@given(st.integers(0, 2**31), st.floats(0, 1), st.floats(0, 1))
def test_bounds_on_an_interval_hold(seed: int, a: float, b: float) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 30))
    delta = rng.exponential(size=count) * (rng.random(count) < 0.8)
    likelihood = _Likelihood(delta, rng.normal(size=count) ** 2 * rng.choice([0.0, 1.0, 30.0], count) + 1e-12)
    a, b = sorted((min(a, LARGEST), min(b, LARGEST)))
    if b - a < 1e-9:
        return
    bound = likelihood.lower_bound(a, b, likelihood.parts(a), likelihood.parts(b))
    values = [likelihood(h) for h in np.linspace(a, b, 50)]
    assert bound <= min(values) + 1e-9 * (1 + abs(min(values)))


@pytest.mark.parametrize("seed", range(12))
def test_no_other_share_is_likelier(seed: int) -> None:
    rng = np.random.default_rng(seed)
    delta = np.where(rng.random(8) < 0.5, 0.02, rng.exponential(3, 8))
    likelihood = _Likelihood(delta, np.exp(4 * rng.normal(size=8)))  # few and unlike: several maxima
    best, gap, _ = likelihood.minimise()
    least = min(likelihood(h) for h in np.linspace(0, LARGEST, 20_001))
    assert likelihood(best) <= least + 1e-9
    assert gap <= 1e-7


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"method": "gcta"}, "method"),
        ({"n_probes": 1}, "n_probes"),
        ({"y": np.ones(5)}, "y has the shape"),
        ({"y": np.ones(60)}, "does not vary"),
        ({"y": np.r_[np.inf, np.zeros(59)]}, "row 1"),
        ({"covariates": np.ones((3, 2))}, "covariates"),
        ({"y": np.r_[np.full(58, np.nan), 1.0, 2.0]}, "2 samples"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], named: str) -> None:
    calls, y, _ = draw_study(9, n=60, p=40)
    with pytest.raises(ValueError, match=named):
        heritability(**{"X": Genotypes.from_calls(calls.T.astype(int)), "y": y, **change})


@pytest.mark.parametrize("method", ["reml", "haseman-elston"])
def test_masked_cells_are_missing(method: str) -> None:
    calls, y, C = draw_study(8)
    y[3], C[5, 1] = np.nan, np.nan
    known = heritability(calls, y, C, method=method, random_state=0)
    with np.errstate(invalid="ignore"):
        hidden = np.ma.masked_array(np.where(np.isnan(y), 1e6, y), np.isnan(y))
        behind = np.ma.masked_array(np.where(np.isnan(C), -1e6, C), np.isnan(C))
    found = heritability(calls, hidden, behind, method=method, random_state=0)
    assert_array_equal(found.samples, np.delete(np.arange(150), [3, 5]))
    assert found.h2 == known.h2


def test_unit_and_origin_of_a_trait() -> None:
    calls, y, C = draw_study(9)
    plain = heritability(calls, y, C)
    for unit, origin in ((1e3, -1e9), (2.0**-100, 0.0), (1.0, 1e11)):
        other = heritability(calls, unit * y + origin, C)
        near = {"rtol": 1e-5 if origin > 1e10 else 1e-8}
        assert other.certificate is not None
        assert other.certificate.converged
        assert_allclose(other.h2, plain.h2, **near)
        assert_allclose(other.genetic_variance, unit**2 * plain.genetic_variance, **near)
        assert_allclose((other.left_out - origin) / unit, plain.left_out, rtol=0, atol=1e-4)
        assert_allclose((other.fixed - [origin, 0, 0]) / unit, plain.fixed, rtol=0, atol=1e-4)
    for unit in (1e-200, 1e-60, 1e60, 1e200):
        with pytest.raises(ValueError, match="another unit"):
            heritability(calls, unit * y, C)
    with pytest.raises(ValueError, match="float64 would round"):
        heritability(calls, 2**60 + np.arange(150), C)


def test_liability_scale() -> None:
    calls, y, _ = draw_study(10, n=80, p=50)
    found = heritability(calls, (y > np.median(y)).astype(float))
    # Lee et al. 2011: at a prevalence and a share of cases of one half, π/2
    assert found.on_liability_scale(0.5, 0.5) == pytest.approx(found.h2 * np.pi / 2)
    with pytest.raises(ValueError, match="prevalence"):
        found.on_liability_scale(0, 0.5)
