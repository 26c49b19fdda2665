"""Pearson's nonic: mixtures whose moments are known are found again; the crabs have two solutions."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gramian.mixture.binned import Bins
from gramian.mixture.em import fit_mixture
from gramian.mixture.parameters import Mixture
from gramian.mixture.starts import central_moments, two_normals
from oracles import Array

CRABS = json.loads((Path(__file__).parents[1] / "data" / "mixtures.json").read_text("utf-8"))["crabs"]
EDGES = np.concatenate([[-np.inf], 0.5835 + 0.004 * np.arange(28), [np.inf]])


def moments_of(weights: Array, means: Array, variances: Array) -> tuple[float, list[float]]:
    """Central moments 2 to 6, from those of normals."""
    mean = float(weights @ means)
    d, v = means - mean, variances
    powers = [
        d**2 + v,
        d**3 + 3 * d * v,
        d**4 + 6 * d**2 * v + 3 * v**2,
        d**5 + 10 * d**3 * v + 15 * d * v**2,
        d**6 + 15 * d**4 * v + 45 * d**2 * v**2 + 15 * v**3,
    ]
    return mean, [float(weights @ p) for p in powers]


@given(
    weight=st.floats(0.1, 0.9),
    gap=st.floats(0.8, 6.0),
    variances=st.tuples(st.floats(0.3, 3.0), st.floats(0.3, 3.0)),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_a_mixture_is_found_from_its_moments(weight, gap, variances, scale):
    weights, means = np.array([weight, 1 - weight]), scale * np.array([1.0, 1.0 + gap])
    spread = scale**2 * np.array(variances)
    found = two_normals(*moments_of(weights, means, spread))
    assert found.solutions
    best = found.solutions[0]
    # where components overlap, the nonic is nearly double and its roots hold half the digits
    assume(gap > 1.5)
    assert_allclose(best.means[:, 0], means, rtol=1e-4, atol=1e-4 * scale)
    assert_allclose(best.weights, weights, atol=1e-3)
    assert_allclose(best.covariances[:, 0], spread, rtol=1e-2)


def test_every_solution_for_the_crabs_has_their_moments():
    mean, moments = central_moments(Bins.of(EDGES, CRABS))
    found = two_normals(mean, moments)
    assert repr(found).startswith("TwoNormals: 2 solutions")
    assert len(found.solutions) == 2  # as Pearson found, who kept the first by the sixth moment
    for mixture in found.solutions:
        again_mean, again = moments_of(mixture.weights, mixture.means[:, 0], mixture.covariances[:, 0])
        assert_allclose(again_mean, mean, rtol=1e-12)
        assert_allclose(again[:4], moments[:4], rtol=1e-8)
    assert abs(found.sixth[0] - moments[4]) < abs(found.sixth[1] - moments[4])
    # and near the maximum of the likelihood, from which both lead to the same place
    heights = [fit_mixture(Bins.of(EDGES, CRABS), mixture).log_likelihood for mixture in found.solutions]
    assert_allclose(heights, -2952.6959, atol=6e-5)


def test_moments_of_a_sample_and_of_bins():
    sample = np.random.default_rng(0).normal(2.0, 1.5, 1000) + 1e8
    mean, found = central_moments(sample)
    assert_allclose(mean, sample.mean(), rtol=1e-15)
    assert_allclose(found, [np.mean((sample - sample.mean()) ** j) for j in range(2, 7)], rtol=1e-7, atol=1e-7)
    edges = np.arange(-12.0, 17.0)
    normal = Mixture.of([1.0], [[2.3]], [2.25], "V")
    share = Bins.of(edges, np.ones(len(edges) - 1)).probabilities(normal)
    bins = Bins.of(edges, 1e6 * share)
    exact = moments_of(np.ones(1), np.array([2.3]), np.array([2.25]))[1]
    assert_allclose(central_moments(bins)[1], exact, rtol=1e-7, atol=1e-7)  # Sheppard's corrections are all but exact
    assert_allclose(central_moments(bins, sheppard=False)[1][0], exact[0] + 1 / 12, rtol=1e-7)


def test_one_normal_has_no_two():
    assert two_normals(0.0, [1.0, 0.0, 3.0, 0.0]).solutions == ()
    with pytest.raises(ValueError, match="2 to 5"):
        two_normals(0.0, [1.0, 0.0])
    with pytest.raises(ValueError, match="one column"):
        central_moments(Bins.intervals([[0.0, 0.0]], [[1.0, 1.0]]))
    with pytest.raises(ValueError, match="no midpoints"):
        central_moments(Bins.of([-np.inf, 0.0, np.inf], [1, 1]))


def test_solutions_are_mixtures():
    found = two_normals(2.0, [5.0, 0.0, 43.0, 0.0]).solutions
    assert all(isinstance(m, Mixture) for m in found)
    assert found[0].model == "VII"
