"""What must not change a fit but for its units, and the certificate against derivatives of exact arithmetic."""

import warnings
from functools import cache

import mpmath as mp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from attack.densities import COUNTS, LINE, POSITIVE, log_likelihood
from gramian.likelihood import Binned, Censored, Intervals, MaximumLikelihood, compare, fit
from gramian.persistence import load, save

INF = np.inf
RNG = np.random.default_rng(4)
VALUES = {name: np.round(RNG.standard_t(4, 25), 3) + 2.0 for name in LINE} | {
    name: RNG.gamma(2.0, 1.0, 25) for name in POSITIVE
}
VALUES |= {name: RNG.negative_binomial(2, 0.3, 25) + 1.0 for name in COUNTS}


def samples(name, x):
    """The same values exactly, censored, between limits, and in classes."""
    top = np.sort(x)[-4]
    edges = np.array([0.0 if name in POSITIVE else -INF, *np.quantile(x, [0.2, 0.5, 0.8]), INF])
    return {
        "points": x,
        "censored": Censored(np.minimum(x, top), x < top),
        "intervals": Intervals(x, np.where(x >= top, INF, x)),
        "binned": Binned(edges, np.histogram(x, edges)[0]),
    }


def quiet_fit(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(*arguments, **options)


@cache
def fit_values(name, kind):
    return quiet_fit(name, samples(name, VALUES[name])[kind])


@pytest.mark.parametrize("power", [-900, 5, 700])
@pytest.mark.parametrize("kind", ["points", "censored", "intervals", "binned"])
@pytest.mark.parametrize("name", [*LINE, *POSITIVE])
def test_powers_of_two_change_no_bit_but_the_units(name, kind, power):
    x = VALUES[name]
    one = fit_values(name, kind)
    other = quiet_fit(name, samples(name, np.ldexp(x, power))[kind])
    kinds = [p.kind for p in one.family.parameters]
    back = {"location": -power, "scale": -power, "rate": power}
    for j, parameter in enumerate(kinds):
        if parameter == "log":
            assert other.values[j] - power * np.log(2.0) == pytest.approx(one.values[j], abs=1e-12)
        else:
            assert np.ldexp(other.values[j], back.get(parameter, 0)) == one.values[j]
    assert other.certificate.gradient == one.certificate.gradient
    exact = one.sample.weight[one.sample.exact].sum()
    assert other.loglik + exact * power * np.log(2.0) == pytest.approx(one.loglik, abs=1e-9)


@pytest.mark.parametrize("name", [*LINE, *POSITIVE, *COUNTS])
def test_order_repetition_threads_and_files_change_nothing(name, tmp_path):
    x = VALUES[name]
    w = np.random.default_rng(1).integers(0, 4, len(x))
    one, again = quiet_fit(name, x, sample_weight=w), quiet_fit(name, x, sample_weight=w)
    with threadpool_limits(2):
        threaded = quiet_fit(name, x, sample_weight=w)
    for other in (again, threaded):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.covariance, other.covariance)
        assert (one.loglik, one.certificate.gradient) == (other.loglik, other.certificate.gradient)
    order = np.random.default_rng(2).permutation(len(x))
    for other in (quiet_fit(name, x[order], sample_weight=w[order]), quiet_fit(name, np.repeat(x, w))):
        np.testing.assert_allclose(other.values, one.values, rtol=1e-9)
        np.testing.assert_allclose(
            other.covariance, one.covariance, rtol=1e-6, atol=1e-9 * np.abs(one.covariance).max()
        )
        assert other.loglik == pytest.approx(one.loglik, rel=1e-12)
    model = MaximumLikelihood(name).fit(x[:, None], sample_weight=w)
    save(model, tmp_path / "model.gram")
    np.testing.assert_array_equal(
        load(tmp_path / "model.gram").score_samples(x[:, None]), model.score_samples(x[:, None])
    )


@pytest.mark.parametrize("name", ["normal", "logistic", "student t", "gamma", "weibull", "lognormal"])
@pytest.mark.parametrize("kind", ["points", "censored", "binned"])
def test_the_gradient_of_a_certificate_is_that_of_exact_arithmetic(name, kind):
    """√(gᵀI⁻¹g) in coordinates without ends, where a search was stopped short of the maximum.

    The formula is met to a part in 10⁵: half of it, or a score that is left out, would be noticed.
    """
    sample = samples(name, VALUES[name])[kind]
    best = fit_values(name, kind)
    if not np.isfinite(best.values).all():
        pytest.skip("the maximum is in a limit")
    start = dict(zip(best.names, best.values * 1.3 + 0.01, strict=True))
    found = quiet_fit(name, sample, start=start, max_iter=1, tol=1e-14)
    if found.certificate.method == "closed form":
        pytest.skip("there is no search")
    assert not found.certificate.converged
    links = [p.link for p in found.family.parameters]

    def height(*phi):
        theta = [mp.exp(v) if link.low == 0.0 else v for v, link in zip(phi, links, strict=True)]
        return log_likelihood(name, found.sample, theta)

    with mp.workdps(40):
        phi = [mp.log(v) if link.low == 0.0 else mp.mpf(v) for v, link in zip(found.values, links, strict=True)]
        h, p = mp.mpf(10) ** -12, len(phi)

        def moved(*steps):
            return height(*(v + h * step for v, step in zip(phi, steps, strict=True)))

        unit = np.eye(p, dtype=int).tolist()
        g = mp.matrix([(moved(*u) - moved(*(-v for v in u))) / (2 * h) for u in unit])
        hessian = mp.matrix(p)
        for i, u in enumerate(unit):
            for j, v in enumerate(unit):
                corners = [
                    (a * b, [a * s + b * t for s, t in zip(u, v, strict=True)]) for a in (1, -1) for b in (1, -1)
                ]
                hessian[i, j] = sum(sign * moved(*steps) for sign, steps in corners) / (4 * h * h)
        values, vectors = mp.eigsy(-hessian)
        along = vectors.T * g
        exact = float(mp.sqrt(sum(along[i] ** 2 / abs(values[i]) for i in range(p))))
        definite = all(value > 0 for value in values)
    if definite:
        assert found.certificate.gradient == pytest.approx(exact, rel=1e-5)


def test_one_unmet_certificate_among_several_shows():
    x = np.array([1.0, 2.0, 4.0, 8.0, 9.0])
    columns = np.column_stack([x, x**2])
    assert all(c.converged for c in MaximumLikelihood("gamma").fit(columns).certificate_)
    with pytest.warns(ConvergenceWarning) as told:
        model = MaximumLikelihood("gamma", max_iter=1, tol=1e-15).fit(columns)
    assert len(told) == 2
    assert [c.converged for c in model.certificate_] == [False, False]
    ranked = compare(["normal", "gamma", "weibull"], 1e5 * (1 + 1e-7 * x))
    unmet = [e.family.name for e in ranked.estimates if not e.certificate.converged]
    assert unmet
    for name in ("normal", "gamma", "weibull"):
        assert (f"({name}): NOT converged" in repr(ranked)) == (name in unmet)
