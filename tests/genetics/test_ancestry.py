"""Groups and shares of ancestry against densities written out, a general optimiser, and simulated people."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from gramian.genetics import ancestry_shares, classify_ancestry, group_frequencies
from gramian.sources.plink import Genotypes
from oracles import Array


def draw_groups(seed: int, sizes: tuple[int, ...] = (30, 12, 50), k: int = 2) -> tuple[Array, list[str], Array]:
    """Scores of a reference, their groups, and the centres."""
    rng = np.random.default_rng(seed)
    centres = 8 * rng.normal(size=(len(sizes), k))
    labels = [name for name, size in zip("ABCDEF", sizes, strict=False) for _ in range(size)]
    mixing = [np.linalg.cholesky(np.cov(rng.normal(size=(k, 3 * k)))) for _ in sizes]
    parts = [c + rng.normal(size=(size, k)) @ L.T for c, size, L in zip(centres, sizes, mixing, strict=True)]
    return np.concatenate(parts), labels, centres


def test_posteriors_are_those_of_student_densities() -> None:
    R, labels, _ = draw_groups(0)
    rows = [np.flatnonzero(np.array(labels) == name) for name in "ABC"]
    points = R[[0, 35, 60]] + 0.5
    pooled = sum((len(r) - 1) * np.cov(R[r].T) for r in rows) / (len(R) - 3)
    logs = []
    for r in rows:
        n = len(r)
        freedom = n + 4
        shape = ((n - 1) * np.cov(R[r].T) + 5 * pooled) / freedom * (1 + 1 / n)
        logs.append(stats.multivariate_t(R[r].mean(axis=0), shape, df=freedom).logpdf(points))
    want = np.exp(np.array(logs) - np.max(logs, axis=0))
    assert_allclose(classify_ancestry(R, labels, points).posterior, (want / want.sum(axis=0)).T, atol=1e-12)


def test_members_are_left_out_one_by_one() -> None:
    R, labels, _ = draw_groups(1, sizes=(8, 9))
    found = classify_ancestry(R, labels, R[:1], level=0.05)
    fates = {"right": 0, "wrong": 0, "unknown": 0}
    for i in range(8):
        kept = np.arange(len(R)) != i
        # the pooled covariance of all stays: a person moves it by a fifteenth
        alone = classify_ancestry(R[kept], np.array(labels)[kept], R[i : i + 1], level=0.05)
        fates["right" if alone.assigned[0] == "A" else "unknown" if alone.assigned[0] == "unknown" else "wrong"] += 1
    calibration = found.calibration
    assert_array_equal(calibration["members"], [8, 9])
    assert abs(calibration["right"][0] - fates["right"]) <= 1
    assert calibration["right"][0] + calibration["wrong"][0] + calibration["unknown"][0] == 8


@pytest.mark.parametrize("tails", ["normal", "heavy", "two clusters"])
def test_strangers_are_unknown_and_members_are_not(tails: str) -> None:
    rng = np.random.default_rng(2)

    def draw(count: int) -> Array:
        if tails == "heavy":
            return np.asarray(stats.t(3).rvs((count, 3), random_state=rng))
        return rng.normal(size=(count, 3)) + (6 * rng.integers(0, 2, (count, 1)) if tails == "two clusters" else 0)

    centre = np.array([25.0, 0.0, 0.0])
    reference = np.concatenate([draw(200), draw(200) + centre])
    labels = ["A"] * 200 + ["B"] * 200
    members = np.concatenate([draw(2000), draw(2000) + centre])
    found = classify_ancestry(reference, labels, members, level=0.02)
    truth = np.repeat(["A", "B"], 2000)
    assert np.mean(found.assigned == "unknown") < 0.04  # twice the level: 200 members show no more
    known = found.assigned != "unknown"
    assert np.mean(found.assigned[known] == truth[known]) > 0.999
    strangers = draw(200) + np.array([10.0, 60.0, 0.0])
    assert np.mean(classify_ancestry(reference, labels, strangers).assigned == "unknown") > 0.98


def test_between_two_groups_nobody_is_certain() -> None:
    R, labels, centres = draw_groups(3, sizes=(40, 40))
    R[:40] += centres[1] - centres[0]  # the same place
    found = classify_ancestry(R, labels, R)
    assert np.mean(found.assigned == "unknown") > 0.6
    assert_allclose(found.posterior.sum(axis=1), 1)


def test_few_people_and_people_without_a_label() -> None:
    R, labels, _ = draw_groups(4, sizes=(20, 3, 2))
    named: list[Any] = list(labels)
    named[0], named[1] = None, ""
    found = classify_ancestry(R, named, R)
    assert found.groups == ("A", "B")  # two people make no group
    assert_array_equal(found.calibration["members"], [18, 3])


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"labels": ["A"] * 10}, "labels"),
        ({"labels": ["A"] * 92}, "two are needed"),
        ({"scores": np.ones((1, 3))}, "same components"),
        ({"scores": np.full((2, 2), np.nan)}, "row 1"),
        ({"level": 2.0}, "level"),
        ({"labels": ["unknown"] * 46 + ["A"] * 46}, "unknown"),
        ({"reference": np.zeros((92, 2))}, "vary"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], named: str) -> None:
    R, labels, _ = draw_groups(5)
    with pytest.raises(ValueError, match=named):
        classify_ancestry(**{"reference": R, "labels": labels, "scores": R[:2], **change})


def log_likelihood(g: Array, F: Array, q: Array) -> float:
    p = q @ F
    return float(g @ np.log(p) + (2 - g) @ np.log(1 - p))


@given(st.integers(0, 2**31))
def test_no_shares_are_likelier_by_more_than_the_gap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, p = int(rng.integers(2, 6)), int(rng.integers(5, 80))
    F = rng.beta(0.4, 0.4, (k, p)).clip(1e-3, 1 - 1e-3)
    if rng.random() < 0.3:
        F[1] = F[0]  # two groups that nobody can tell apart
    g = rng.binomial(2, rng.dirichlet(np.full(k, 0.4)) @ F).astype(float)
    found = ancestry_shares(Genotypes.from_calls(g.astype(int)[:, None]), F, [str(i) for i in range(k)], tol=1e-6)
    q = found.shares[0]
    assert found.converged[0]
    assert q.min() >= 0
    assert q.sum() == pytest.approx(1)
    assert found.log_likelihoods[0] == pytest.approx(log_likelihood(g, F, q))

    def minus(t: Array) -> float:
        e = np.exp(t - t.max())
        return -log_likelihood(g, F, e / e.sum())

    for start in (np.zeros(k), rng.normal(size=k)):
        other = -scipy.optimize.minimize(minus, start, method="BFGS").fun
        assert other <= found.log_likelihoods[0] + found.gaps[0] + 1e-9


def test_shares_of_simulated_people() -> None:
    rng = np.random.default_rng(6)
    p = 4000
    ancestral = rng.uniform(0.1, 0.9, p)
    F = np.stack([rng.beta(ancestral * 9, (1 - ancestral) * 9) for _ in range(3)]).clip(0.01, 0.99)
    truth = rng.dirichlet(np.ones(3), 25)
    calls = rng.binomial(2, truth @ F)
    calls = np.where(rng.random(calls.shape) < 0.05, -1, calls)
    found = ancestry_shares(Genotypes.from_calls(calls.T), F, "ABC")
    assert found.converged.all()
    assert_array_equal(found.snps_used, (calls >= 0).sum(axis=1))
    z2 = []
    for q, true, g in zip(found.shares, truth, calls, strict=True):
        if true.min() < 0.1:
            continue  # near an edge shares are not normal
        seen = g >= 0
        slopes = (F[:2] - F[2])[:, seen]  # of p in the first two shares, the third being the rest
        p_ = (true @ F)[seen]
        information = 2 * (slopes / (p_ * (1 - p_))) @ slopes.T
        z2.append((q - true)[:2] @ information @ (q - true)[:2])
    assert len(z2) >= 8
    assert stats.chi2.cdf(sum(z2), 2 * len(z2)) == pytest.approx(0.5, abs=0.499)  # errors as the information says
    flipped = ancestry_shares(Genotypes.from_calls(np.where(calls < 0, -1, 2 - calls).T), 1 - F, "ABC")
    assert_allclose(flipped.shares, found.shares, atol=1e-3)


def test_frequencies_of_groups() -> None:
    rng = np.random.default_rng(7)
    calls = rng.integers(-1, 3, (20, 9))
    labels = ["B", None, "A"] * 3
    names, F = group_frequencies(Genotypes.from_calls(calls), labels)
    assert names == ("A", "B")
    for g, columns in enumerate(([2, 5, 8], [0, 3, 6])):
        part = calls[:, columns]
        seen = part >= 0
        assert_allclose(F[g], (np.where(seen, part, 0).sum(axis=1) + 0.5) / (2 * seen.sum(axis=1) + 1))
    with pytest.raises(ValueError, match="SNP 1"):
        ancestry_shares(Genotypes.from_calls(calls), np.zeros((2, 20)), names)
    with pytest.raises(ValueError, match="shape"):
        ancestry_shares(Genotypes.from_calls(calls), F[:, 1:], names)
