"""Iterative PCA: missMDA's numbers, a plain loop, and the objective that never rises."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import gramian
from gramian import PCA
from gramian.analysis import iterative_pca
from gramian.pca.missing import penalty
from oracles import Array

DATA = Path(__file__).parents[1] / "data"
METHODS = ["least-squares", "regularised"]


def holes(n: int = 30, p: int = 6, missing: float = 0.2, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, p)) * 2 + rng.normal(size=(n, p)) + 5
    gaps = rng.random((n, p)) < missing
    gaps[np.arange(n), rng.integers(0, p, n)] = False
    gaps[:3] = False
    return np.where(gaps, np.nan, X)


def decathlon() -> Array:
    lines = (DATA / "decathlon.csv").read_text().splitlines()
    X = np.array([[float(x) for x in line.split(",")[1:11]] for line in lines[1:]])
    i, j = np.indices(X.shape)
    return np.where((7 * i + 3 * j) % 11 == 0, np.nan, X)


def naive(X: Array, k: int, regularised: bool, rounds: int) -> Array:
    """Fill, decompose, shrink, fill, by hand: no phases, no momentum."""
    missing = np.isnan(X)
    n, p = X.shape
    fill = np.where(missing, np.nanmean(X, axis=0), X)
    for _ in range(rounds):
        mean = fill.mean(axis=0)
        U, s, V = np.linalg.svd(fill - mean, full_matrices=False)
        lam = s**2 / n
        noise = n * p / min(p, n - 1) * lam[k:].sum() / ((n - 1) * p - (n - 1) * k - p * k + k * k)
        noise = min(noise, lam[k]) if regularised else 0.0
        fit = mean + (U[:, :k] * ((lam[:k] - noise) / lam[:k] * s[:k])) @ V[:k]
        fill = np.where(missing, fit, X)
    return np.asarray(fill)


@pytest.mark.parametrize(
    "name", ["regularised_scaled", "least_squares_scaled", "regularised_plain", "least_squares_plain"]
)
def test_missmda_fills_the_decathlon_with_the_same_numbers(name: str) -> None:
    expected = np.array(json.loads((DATA / "missmda.json").read_text())[name])
    X = decathlon()
    method = "regularised" if name.startswith("reg") else "least-squares"
    found = iterative_pca(
        PCA(scale=name.endswith("scaled")), gramian.open(X), 2, method=method, tol=1e-10, max_iter=5000
    )
    assert found.certificate.converged
    assert_allclose(found.completed(X)[np.isnan(X)], expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("k", "method"), [(1, "least-squares"), (2, "least-squares"), (1, "regularised"), (3, "regularised")]
)
def test_a_plain_loop_ends_at_the_same_place(k: int, method: str) -> None:
    X = holes()
    found = iterative_pca(PCA(), gramian.open(X), k, method=method, tol=1e-9, max_iter=20000)
    assert_allclose(found.completed(X), naive(X, k, method == "regularised", 3000), atol=1e-5)


@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(8, 30), st.integers(4, 9)),
    missing=st.floats(0.05, 0.5),
    method=st.sampled_from(METHODS),
    scale=st.booleans(),
)
def test_the_objective_never_increases(
    seed: int, shape: tuple[int, int], missing: float, method: str, scale: bool
) -> None:
    X = holes(*shape, missing, seed)
    if not np.isnan(X).any():
        return
    found = iterative_pca(PCA(scale=scale), gramian.open(X), 1 + seed % 2, method=method, max_iter=80)
    assert len(found.phases) >= 1
    for trace in found.phases:
        assert np.all(np.diff(trace) <= 1e-10 * max(1.0, trace[0]))
    if method == "least-squares" and not scale:
        assert len(found.phases) == 1  # nothing is estimated anew, so that the whole run is one descent


def test_the_objective_is_the_squared_error_of_the_observed_cells() -> None:
    X = holes()
    found = iterative_pca(PCA(), gramian.open(X), 2, method="least-squares")
    fit = found.fitted.rows(0, len(X))
    assert_allclose(found.certificate.objective[-1], 0.5 * np.nansum((X - fit) ** 2), rtol=1e-12)


@pytest.mark.parametrize("c", [0.1, 1.0, 30.0])
def test_the_penalty_is_the_one_whose_proximal_step_shrinks_by_c_over_sigma(c: float) -> None:
    for sigma in np.sqrt(c) * np.array([1.2, 2.0, 9.0]):
        grid = np.linspace(0, sigma, 200_001)
        best = grid[np.argmin(0.5 * (grid - sigma) ** 2 + penalty(grid, c))]
        assert_allclose(best, sigma - c / sigma, atol=2e-4 * sigma)


@pytest.mark.parametrize("method", METHODS)
def test_data_of_exact_rank_are_recovered(method: str) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 8)) + 3
    X = np.where(rng.random(truth.shape) < 0.2, np.nan, truth)
    found = iterative_pca(PCA(), gramian.open(X), 2, method=method, tol=1e-10, max_iter=20000)
    assert_allclose(found.completed(X), truth, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scale", [False, True])
def test_an_integer_weight_is_repetition(method: str, scale: bool) -> None:
    X = holes()
    w = np.random.default_rng(3).integers(1, 4, len(X)).astype(float)
    a = iterative_pca(PCA(scale=scale), gramian.open(X), 2, w, method=method, tol=1e-9, max_iter=5000)
    repeated = np.repeat(X, w.astype(int), axis=0)
    b = iterative_pca(PCA(scale=scale), gramian.open(repeated), 2, method=method, tol=1e-9, max_iter=5000)
    assert_allclose(a.completed(X)[np.repeat(np.arange(len(X)), w.astype(int))], b.completed(repeated), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_file_in_blocks_gives_the_same(method: str, tmp_path: Any) -> None:
    X = holes(200, 5)
    np.save(tmp_path / "x.npy", X)
    whole = iterative_pca(PCA(), gramian.open(X), 2, method=method, tol=1e-9, max_iter=5000)
    with sklearn.config_context(working_memory=0.01):
        blocks = iterative_pca(PCA(), gramian.open(tmp_path / "x.npy"), 2, method=method, tol=1e-9, max_iter=5000)
    assert_allclose(blocks.completed(X), whole.completed(X), atol=1e-5)


def test_too_few_rounds_are_said_not_to_have_converged() -> None:
    found = iterative_pca(PCA(), gramian.open(holes()), 2, max_iter=2)
    assert not found.certificate.converged
    assert found.certificate.gradient > found.certificate.tolerance


@pytest.mark.parametrize(
    ("k", "method", "complaint"),
    [(0, "regularised", "between 1"), (6, "regularised", "between 1"), (2, "em", "method")],
)
def test_what_cannot_be_done_is_refused(k: int, method: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        iterative_pca(PCA(), gramian.open(holes()), k, method=method)
