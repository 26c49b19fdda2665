"""What must not change a fit but for its units: scale, shift, order; and what never happens on its way."""

import warnings
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from gramian import NumericalWarning
from gramian.mixture import Bins, Mixture, MixtureRows, standard_errors
from gramian.mixture.diagnose import compare_optima
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.models import MODELS
from gramian.persistence import load, save
from gramian.sources import open_source

SEEDS = st.integers(0, 2**16)
few = settings(max_examples=10)


def clusters(seed, n=80, d=2, k=3):
    rng = np.random.default_rng(seed)
    means = 5.0 * rng.normal(size=(k, d))
    return means[rng.integers(0, k, n)] + rng.normal(size=(n, d))


def fit(X, **params):
    return GaussianMixture(**{"n_components": 3, "reg_covar": None} | params).fit(X)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@few
@given(seed=SEEDS, scale=st.sampled_from([1e-8, 1e8, 1e-3, 7.0]), model=st.sampled_from(MODELS))
def test_units_change_nothing_but_units(seed, scale, model):
    X = clusters(seed)
    one, other = fit(X, covariance_type=model), fit(scale * X, covariance_type=model)
    np.testing.assert_allclose(other.means_ / scale, one.means_, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(other.covariances_ / scale**2, one.covariances_, rtol=1e-4, atol=1e-6)
    moved = other.log_likelihood_ + X.size * np.log(scale)
    assert moved == pytest.approx(one.log_likelihood_, abs=1e-6)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@few
@given(seed=SEEDS, model=st.sampled_from(MODELS))
def test_a_shift_of_a_hundred_million_moves_the_means_alone(seed, model):
    """The data keep eight digits of themselves at 1e8, and the fit what they keep."""
    X = clusters(seed)
    far = X + 1e8
    one, other = fit(far - 1e8, covariance_type=model), fit(far, covariance_type=model)
    np.testing.assert_allclose(other.means_ - 1e8, one.means_, atol=1e-5)
    np.testing.assert_allclose(other.covariances_, one.covariances_, rtol=1e-4, atol=1e-6)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, abs=1e-5)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@few
@given(seed=SEEDS, kind=st.sampled_from(["full", "tied", "diag"]), units=st.sampled_from([(1e6, 1.0), (1e-4, 1e3)]))
def test_units_of_one_column_change_nothing_but_units(seed, kind, units):
    X, u = clusters(seed), np.array(units)
    one, other = fit(X, covariance_type=kind), fit(X * u, covariance_type=kind)
    np.testing.assert_allclose(other.means_ / u, one.means_, rtol=1e-5, atol=1e-5)
    assert other.log_likelihood_ + len(X) * np.log(u).sum() == pytest.approx(one.log_likelihood_, abs=1e-6)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@few
@given(seed=SEEDS, model=st.sampled_from(MODELS))
def test_the_order_of_rows_does_not_matter(seed, model):
    X = clusters(seed)
    one = fit(X, covariance_type=model)
    other = fit(np.random.default_rng(seed).permutation(X), covariance_type=model)
    np.testing.assert_allclose(other.means_, one.means_, rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=40)
@given(
    seed=SEEDS,
    model=st.sampled_from(MODELS),
    k=st.integers(1, 5),
    accelerate=st.booleans(),
    gaps=st.booleans(),
    init=st.sampled_from(["kmeans", "random", "random_from_data"]),
)
def test_the_likelihood_never_falls(seed, model, k, accelerate, gaps, init):
    X = clusters(seed, n=40)
    if gaps:
        X[np.random.default_rng(seed).random(40) < 0.3, 0] = np.nan
    found = fit(X, n_components=k, covariance_type=model, accelerate=accelerate, init_params=init, max_iter=40)
    heights = np.array(found.lower_bounds_) * 40
    assert (np.diff(heights) >= -1e-12 * np.abs(heights[1:])).all()
    assert found.lower_bound_ == pytest.approx(heights[-1] / 40 if len(heights) else found.lower_bound_)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@few
@given(seed=SEEDS, kind=st.sampled_from(["full", "tied", "diag", "spherical"]))
def test_one_step_more_from_a_certified_optimum_is_shorter_than_its_gradient_says(seed, kind):
    X = clusters(seed, n=100)
    first = fit(X, covariance_type=kind)
    start = {"weights_init": first.weights_, "means_init": first.means_, "precisions_init": first.precisions_}
    again = fit(X, covariance_type=kind, tol=0.0, max_iter=1, accelerate=False, **start)
    spread = np.sqrt(np.diagonal(first.mixture_.matrices, axis1=1, axis2=2) / (100 * first.weights_[:, None]))
    # a step is measured as a whole, in standard errors; each mean moves less than that, up to the rounding of inverses
    assert np.all(np.abs(again.means_ - first.means_) <= (1.01 * first.certificate_.gradient + 1e-9) * spread)


def test_small_data_do_not_collapse_as_scikit_learns_do():
    X = 1e-8 * clusters(1, n=300)
    model = fit(X)
    big = fit(1e8 * X)
    np.testing.assert_array_equal(model.predict(X), big.predict(1e8 * X))
    assert model.covariances_.max() < 1e-14


def test_stopping_short_is_told():
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        found = fit(clusters(2), n_components=5, max_iter=3)
    assert not found.converged_
    assert found.certificate_.gradient > 1e-5


@pytest.mark.parametrize("power", [-460, -300, -1, 1, 300, 490])
@pytest.mark.parametrize("model", MODELS)
def test_powers_of_two_change_units_to_the_ends_of_float64(power, model):
    X = clusters(3)
    one, other = (fit(x, covariance_type=model, tol=1e-8) for x in (X, np.ldexp(X, power)))
    np.testing.assert_allclose(np.ldexp(other.means_, -power), one.means_, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.ldexp(other.covariances_, -2 * power), one.covariances_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(other.predict_proba(np.ldexp(X, power)), one.predict_proba(X), atol=1e-6)
    moved = X.size * power * np.log(2.0)
    assert other.log_likelihood_ + moved == pytest.approx(one.log_likelihood_, abs=1e-6)
    assert other.score(np.ldexp(X, power)) + moved / len(X) == pytest.approx(one.score(X), abs=1e-7)
    drawn = [m.set_params(random_state=0).sample(5)[0] for m in (one, other)]
    np.testing.assert_allclose(np.ldexp(drawn[1], -power), drawn[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("power", [-1070, -1000, -700, -520, 520, 700, 1000])
@pytest.mark.parametrize("gaps", [False, True])
def test_columns_whose_variances_float64_cannot_hold_are_named(power, gaps):
    X = clusters(3)
    X[:, 1] = np.ldexp(X[:, 1], power)
    if gaps:
        X[3, 0] = np.nan
    for rows, column in ((X, 1), (X[:, ::-1], 0)):
        with pytest.raises(ValueError, match=f"column {column + 1}|squares of the values"):
            GaussianMixture(2).fit(rows)


@pytest.mark.parametrize("power", [-1000, -520, 520, 1000])
def test_edges_whose_squares_float64_cannot_hold_are_refused(power):
    with pytest.raises(ValueError, match="column 1"):
        Bins.of(np.ldexp([-np.inf, -1.0, 0.0, 1.0, np.inf], power), [16, 34, 34, 16])


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
def test_constant_columns_are_no_underflow():
    X = clusters(3)
    for value in (0.0, 1e-300, 1e-170, 0.1, 1e150):
        X[:, 1] = value
        assert fit(X, n_components=2, covariance_type="diag").converged_


@pytest.mark.parametrize("size", [1e4, 1e8, 1e20, 1e100, 1e160, 1e300, 1.7e308])
@pytest.mark.parametrize("model", ["VVV", "EEE", "VII", "EII", "VVI", "EEI"])
def test_posteriors_far_from_all_components_are_those_of_exact_arithmetic(size, model):
    """Two components of one covariance agree there in all digits of their densities, and differ in their posterior."""
    rng = np.random.default_rng(5)
    S = np.array([[[2.0, 0.6], [0.6, 1.0]], [[2.0, 0.6], [0.6, 1.0]], [[1.0, -0.2], [-0.2, 3.0]]])
    if model[0] == "E":
        S[2] = S[0]
    S = {"V": S, "I": np.diagonal(S, axis1=1, axis2=2)}["I" if model[2] == "I" else "V"]
    S = S[:, 0] if model[1:] == "II" else S
    mixture = Mixture.of([0.2, 0.5, 0.3], rng.normal(size=(3, 2)), S, model, origin=[0.25, -3.0])
    X = size * np.array([[1.0, 0.3], [-0.2, 0.9], [0.0, -1.0], [-1.0, 0.0], [1.0, np.nan]])
    found = mixture.responsibilities(X)
    with mpmath.workdps(700):
        for row, posterior in zip(X, found, strict=True):
            seen = np.flatnonzero(~np.isnan(row))
            logs = []
            for pi, m, C in zip(mixture.weights, mixture.centres, mixture.matrices, strict=True):
                D = mpmath.matrix([mpmath.mpf(row[j]) - mpmath.mpf(mixture.origin[j]) - mpmath.mpf(m[j]) for j in seen])
                A = mpmath.matrix(C[np.ix_(seen, seen)].tolist())
                square = (D.T * mpmath.lu_solve(A, D))[0]
                logs.append(mpmath.log(pi) - (square + mpmath.log(mpmath.det(A))) / 2)
            total = [mpmath.exp(value - max(logs)) for value in logs]
            exact = [float(value / sum(total)) for value in total]
            np.testing.assert_allclose(posterior, exact, rtol=1e-6, atol=1e-9)
    assert np.isfinite(mixture.log_density(X)).all() or size > 1e150


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_weights_are_repeated_rows(kind):
    X, w = clusters(7), np.random.default_rng(7).integers(0, 4, 80)
    one = GaussianMixture(3, covariance_type=kind).fit(X, sample_weight=w)
    other = fit(np.repeat(X, w, axis=0), covariance_type=kind)
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(one.covariances_, other.covariances_, rtol=1e-6, atol=1e-8)
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-10)
    assert one.bic(X, w) == pytest.approx(other.bic(np.repeat(X, w, axis=0)), rel=1e-10)


def test_columns_in_another_order_give_the_same_fit_in_that_order():
    X, order = clusters(9, d=4), [2, 0, 3, 1]
    for kind in ("full", "tied", "diag", "spherical"):
        one, other = fit(X, covariance_type=kind), fit(X[:, order], covariance_type=kind)
        one, other = (m.mixture_.reorder(np.argsort(m.weights_)) for m in (one, other))
        np.testing.assert_allclose(other.means, one.means[:, order], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(other.matrices, one.matrices[:, order][:, :, order], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["full", "tied", "spherical", "VEV", "EVE", "EVV"])
def test_a_rotation_turns_the_fit(kind):
    X = clusters(11, n=200, d=3)
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    one = fit(X, covariance_type=kind)
    given = {"weights_init": one.weights_, "means_init": one.means_ + 0.1}
    one, other = (
        fit(X, covariance_type=kind, **given),
        fit(X @ Q.T, covariance_type=kind, **given | {"means_init": given["means_init"] @ Q.T}),
    )
    np.testing.assert_allclose(other.means_, one.means_ @ Q.T, atol=1e-5)
    np.testing.assert_allclose(other.mixture_.matrices, Q @ one.mixture_.matrices @ Q.T, atol=1e-4)
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_, abs=1e-6)


def test_components_that_are_one_and_the_same_are_told_of():
    """EM stands still there, on a saddle: the gradient is 0, and the likelihood rises where they part."""
    X = clusters(2, n=60, k=2)
    half = {"means_init": np.zeros((2, 2)), "weights_init": [0.5, 0.5], "precisions_init": np.stack([np.eye(2)] * 2)}
    with pytest.warns(NumericalWarning, match="components 1 and 2"):
        model = fit(X, n_components=2, **half)
    assert model.certificate_.gradient <= model.certificate_.tolerance
    assert not model.converged_
    assert fit(X, n_components=2).log_likelihood_ > model.log_likelihood_ + 1


def test_an_optimum_without_collapse_is_kept_before_a_higher_one_with():
    """The likelihood of a component on two equal rows has no bound: it is no better for being higher."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (40, 1)), rng.normal(4, 1, (40, 1)), [[20.0], [20.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        model = GaussianMixture(2, covariance_type="V", n_init=20, init_params="random_from_data").fit(X)
    problems, heights = model.landscape_.problems, model.landscape_.log_likelihoods
    assert any(problems)
    assert not all(problems)
    kept = model.landscape_.kept
    assert problems[kept] == ""
    assert heights[kept] == max(h for h, problem in zip(heights, problems, strict=True) if not problem)
    assert heights[kept] < max(heights)


def attributes(model):
    return [model.weights_, model.means_, model.covariances_, model.lower_bounds_, model.certificate_.gradient]


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical", "VEV"])
@pytest.mark.parametrize("gaps", [False, True])
def test_bits_are_the_same_with_any_threads_again_and_after_a_file(kind, gaps, tmp_path):
    X = clusters(13, n=9000, d=3)
    if gaps:
        X = X[:600]
        X[::7, 1] = np.nan
    found = []
    for threads in (1, 2, 2):
        with threadpool_limits(threads):
            model = fit(X, covariance_type=kind)
            found.append([*attributes(model), model.predict_proba(X), model.score_samples(X), model.score(X)])
    save(model, tmp_path / "model.gram")
    again = load(tmp_path / "model.gram")
    found.append([*attributes(again), again.predict_proba(X), again.score_samples(X), again.score(X)])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_components_that_are_one_have_no_standard_errors():
    """The information is singular there, up to rounding of either sign."""
    X = clusters(4, n=90, k=1)
    one = GaussianMixture().fit(X).mixture_
    for share in (0.1, 0.3, 0.5):
        two = Mixture.of([share, 1 - share], np.repeat(one.centres, 2, axis=0), np.repeat(one.covariances, 2, axis=0))
        two = replace(two, origin=one.origin)
        with pytest.warns(NumericalWarning, match="not positive definite"):
            errors = standard_errors(MixtureRows.of(open_source(X)), two)
        assert np.isnan(errors.weights).all()


def test_an_optimum_is_converged_if_one_of_the_starts_that_led_there_is():
    X = clusters(6, n=120, k=2)
    model = fit(X, n_components=2)
    best = model._fit
    short = replace(best, optimum=best.optimum.with_(gradient=1.0))
    for fits in ([best, short], [short, best]):
        landscape = compare_optima(fits)
        assert landscape.counts.tolist() == [2]
        assert landscape.converged.tolist() == [True]
    assert compare_optima([short, short]).converged.tolist() == [False]
    far = replace(best, mixture=replace(best.mixture, centres=best.mixture.centres * [[1.0], [3.0]]))
    assert compare_optima([best, far]).counts.tolist() == [1, 1]  # one component the same, the other elsewhere
