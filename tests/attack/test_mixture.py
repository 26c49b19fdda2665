"""Random mixtures: likelihoods of a naive twin, steps that only rise, and certified optima without an ascent."""

import warnings
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from attack.harness import case_count, seed
from gramian import GaussianMixture, NumericalWarning
from gramian.mixture import MODELS, Maximiser, Mixture, MixtureRows
from gramian.mixture.em import step_length
from gramian.sources import open_source

Array = Any


def draw_problem(case: int) -> tuple[Array, Array, dict[str, Any]]:
    """Rows, weights and settings: clusters of any size and distance, in any units, with ties, outliers and gaps."""
    rng = np.random.default_rng([seed(), case])
    d, k, n = (int(rng.integers(low, high)) for low, high in ((1, 4), (1, 4), (20, 80)))
    means = rng.normal(size=(k, d)) * 10.0 ** rng.uniform(-1, 2)
    turn = rng.normal(size=(k, d, d))
    labels = rng.integers(0, k, n)
    X = means[labels] + np.einsum("nij,nj->ni", turn[labels], rng.normal(size=(n, d)))
    if rng.random() < 0.3:
        X = np.round(X, 1)
    if rng.random() < 0.2:
        X[0] += 1e3
    X = X * 10.0 ** rng.uniform(-100, 100) * 10.0 ** rng.uniform(-2, 2, d)
    if rng.random() < 0.3 and d > 1:
        X[rng.random(n) < 0.2, 0] = np.nan
    w = rng.integers(0, 4, n).astype(float) if rng.random() < 0.3 else np.ones(n)
    settings = {
        "n_components": k,
        "covariance_type": str(rng.choice(MODELS)),
        "init_params": str(rng.choice(["kmeans", "k-means++", "random", "random_from_data"])),
        "accelerate": bool(rng.random() < 0.7),
        "random_state": case,
    }
    return X, w, settings


def log_density(z: Array, S: Array) -> float:
    """ln N(z; 0, S) by a Cholesky factor: SciPy's refuses covariances with a condition number above 4e9."""
    root = np.sqrt(np.diag(S))
    L = np.linalg.cholesky(S / np.outer(root, root))
    far = np.linalg.solve(L, z / root)
    return float(-0.5 * (far @ far + len(z) * np.log(2 * np.pi)) - np.sum(np.log(np.diag(L) * root)))


def naive_log_likelihood(X: Array, w: Array, weights: Array, means: Array, covariances: Array) -> float:
    """Σ w ln Σ_k π_k N(x_o; μ_o, Σ_oo), row by row, in columns divided by their largest value."""
    size = np.nanmax(np.abs(X), axis=0)
    total = 0.0
    for x, weight in zip(X, w, strict=True):
        o = np.flatnonzero(~np.isnan(x))
        if weight == 0 or not len(o):
            continue
        z, unit = x[o] / size[o], size[o]
        parts = [
            np.log(p) + log_density(z - m[o] / unit, S[np.ix_(o, o)] / np.outer(unit, unit))
            for p, m, S in zip(weights, means, covariances, strict=True)
            if p > 0
        ]
        total += weight * (np.logaddexp.reduce(parts) - np.sum(np.log(unit)))
    return float(total)


@pytest.mark.parametrize("share", range(4))
def test_random_problems(share: int) -> None:
    """The likelihood stated is that of the twin; it never falls; from a certified optimum no direction leads up.

    Directions are random, in standard errors; of a maximum with gradient g (in standard errors) no step of length h
    gains more than gh.
    """
    proved = 0
    for case in range(share, case_count(40), 4):
        X, w, settings = draw_problem(case)
        label = f"case {case} of seed {seed()}: {settings}"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", NumericalWarning)
            try:
                model = GaussianMixture(**settings).fit(X, sample_weight=w)
            except (
                ValueError
            ) as error:  # fewer distinct rows than components, or squares too large where cells are missing
                if not isinstance(error, np.linalg.LinAlgError) and any(
                    w in str(error) for w in ("exceeds", "squares")
                ):
                    continue
                raise AssertionError(label) from error
        heights = np.array(model.lower_bounds_) * w.sum()
        assert (np.diff(heights) >= -1e-12 * (np.abs(heights[1:]) + w.sum())).all(), label
        at = model.mixture_
        if model._fit.diagnoses:
            continue
        height = naive_log_likelihood(X, w, at.weights, at.means, at.matrices)
        assert model.log_likelihood_ == pytest.approx(height, rel=1e-8, abs=1e-6), label
        proba = model.predict_proba(X)
        assert np.all(np.isfinite(proba)), label
        apart = np.ptp(proba, axis=1) > 1e-9
        np.testing.assert_array_equal(proba.argmax(axis=1)[apart], model.predict(X)[apart])
        if not model.converged_:
            continue
        proved += 1
        rng = np.random.default_rng(case)
        k, d = at.centres.shape
        for _ in range(6):
            h = 0.02
            n = w.sum() * at.weights
            shift = (
                np.einsum("kij,kj->ki", np.linalg.cholesky(at.matrices), rng.normal(size=(k, d)))
                / np.sqrt(n * d * k)[:, None]
            )
            wider = rng.normal(size=k if at.model[0] == "V" else 1) * np.sqrt(2 / (w.sum() * d * k))
            share_of = at.weights * (1 + h * rng.normal(size=k) / np.sqrt(n * k))
            moved = naive_log_likelihood(
                X, w, share_of / share_of.sum(), at.means + h * shift, at.matrices * (1 + h * wider)[:, None, None]
            )
            gain = moved - height
            assert gain <= 10 * model.certificate_.tolerance * h + 1e-10 * (abs(height) + w.sum()), label
    assert proved


@pytest.mark.parametrize("model", ["VVV", "VVI", "VII"])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_gradient_of_a_certificate_is_that_of_exact_arithmetic(model: str, k: int) -> None:
    """√(gᵀI⁻¹g), with g the score by differences of 50 digits, and I the information of rows with known components.

    It is met to a few parts in a hundred, as the step of EM is its first order; a part left out would be noticed.
    """
    rng = np.random.default_rng(k)
    X = rng.normal(size=(60, 2)) + 3.0 * rng.integers(0, k, 60)[:, None]
    with pytest.warns(ConvergenceWarning) if k > 1 else warnings.catch_warnings():
        found = GaussianMixture(
            k, covariance_type=model, max_iter=6 if k > 1 else 1, accelerate=False, tol=1e-13 if k > 1 else 1e-5
        ).fit(X)
    at = found.mixture_
    if k == 1:
        at = Mixture.of([1.0], at.means + 0.001, at.covariances * 1.002, model)
    k, d = at.centres.shape
    with mp.workdps(50):
        rows = [[mp.mpf(v) for v in row] for row in X]

        def height(weights: Any, means: Any, covariances: Any) -> Any:
            inverses = [mp.inverse(S) for S in covariances]
            logs = [mp.log(p) - mp.log(mp.det(2 * mp.pi * S)) / 2 for p, S in zip(weights, covariances, strict=True)]
            total = mp.mpf(0)
            for x in rows:
                parts = []
                for a, m, P in zip(logs, means, inverses, strict=True):
                    z = mp.matrix([u - v for u, v in zip(x, m, strict=True)])
                    parts.append(mp.exp(a - (z.T * P * z)[0] / 2))
                total += mp.log(sum(parts))
            return total

        weights = [mp.mpf(p) for p in at.weights]
        means = [[mp.mpf(v) for v in m] for m in at.means]
        covariances = [mp.matrix(S.tolist()) for S in at.matrices]
        h, n, square = mp.mpf(10) ** -15, len(X), mp.mpf(0)
        for j in range(k):
            factor, size = mp.cholesky(covariances[j]), n * weights[j]
            for i in range(d):  # in standard errors of the mean
                step = [factor[row, i] / mp.sqrt(size) for row in range(d)]
                ends = []
                for sign in (1, -1):
                    new = [list(m) for m in means]
                    new[j] = [v + sign * h * s for v, s in zip(means[j], step, strict=True)]
                    ends.append(height(weights, new, covariances))
                square += ((ends[0] - ends[1]) / (2 * h)) ** 2
            if model == "VII":
                shapes = [mp.eye(d) / mp.sqrt(d)]
            else:
                shapes = [mp.matrix(np.outer(np.eye(d)[i], np.eye(d)[i]).tolist()) for i in range(d)]
            if model == "VVV":
                shapes += [mp.matrix([[0, 1], [1, 0]]) / mp.sqrt(2)]
            for shape in shapes:  # and of the covariance: L S Lᵀ√(2/n) for S of norm 1
                step = factor * shape * factor.T * mp.sqrt(2 / size)
                ends = []
                for sign in (1, -1):
                    new = [mp.matrix(S) for S in covariances]
                    new[j] = covariances[j] + sign * h * step
                    ends.append(height(weights, means, new))
                square += ((ends[0] - ends[1]) / (2 * h)) ** 2
        g = []
        for j in range(k):
            ends = [
                height([p + sign * h * (i == j) for i, p in enumerate(weights)], means, covariances) for sign in (1, -1)
            ]
            g.append((ends[0] - ends[1]) / (2 * h))
        mean = sum(p * v for p, v in zip(weights, g, strict=True))
        square += sum(p * (v - mean) ** 2 for p, v in zip(weights, g, strict=True)) / n
        exact = float(mp.sqrt(square))
    if k == 1:
        data = MixtureRows.of(open_source(X))
        at = at.shift_origin(data.origin)
        stated = step_length(at, Maximiser(model)(data.expect(at), at), 60.0)
    else:
        stated = found.certificate_.gradient
    assert stated == pytest.approx(exact, rel=0.05)
