"""What follows kinship and components: PC-AiR, PC-Relate, outliers, regions, scans, covariates; by naive twins."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2, kstest, norm

from gramian.genetics import (
    GenotypePCA,
    Kinship,
    find_ld_regions,
    find_outliers,
    king,
    pc_air,
    pc_relate,
    selection_scan,
    write_covariates,
)
from gramian.genetics.outliers import medcouple, robust_distances, tau_location_and_scale, upper_fence
from gramian.genetics.relatives import NEAR, partition
from gramian.sources.plink import Genotypes, Samples, Snps
from oracles import Array


def two_groups(seed: int, n: int = 60, p: int = 3000, apart: float = 0.1) -> Array:
    """Calls of two populations of n/2 people."""
    rng = np.random.default_rng(seed)
    f = rng.uniform(0.2, 0.8, (p, 1))
    frequency = np.clip(np.hstack([f, f]) + rng.normal(0, apart, (p, 2)), 0.05, 0.95)
    return rng.binomial(2, np.repeat(frequency, n // 2, axis=1))


def child_of(calls: Array, a: int, b: int, rng: np.random.Generator) -> Array:
    return rng.binomial(1, calls[:, a] / 2) + rng.binomial(1, calls[:, b] / 2)


# Robust statistics


def naive_medcouple(x: Array) -> float:
    x = np.sort(x)
    m = np.median(x)
    up, down, ties = x[x >= m], x[x <= m][::-1], int(np.sum(x == m))
    found = []
    for i, a in enumerate(up[::-1]):
        for j, b in enumerate(down):
            found.append(np.sign(ties - 1 - (i - (len(up) - ties)) - j) if a == b else (a + b - 2 * m) / (a - b))
    return float(np.sort(found)[len(found) // 2])


@pytest.mark.parametrize("n", [3, 8, 51, 120])
@pytest.mark.parametrize("kind", ["normal", "exponential", "ties"])
def test_medcouple_equals_its_definition(n: int, kind: str) -> None:
    rng = np.random.default_rng(n)
    draws = {"normal": rng.normal(size=n), "exponential": rng.exponential(size=n), "ties": rng.integers(0, 5, n) * 1.0}
    assert medcouple(draws[kind]) == pytest.approx(naive_medcouple(draws[kind]), abs=1e-12)


def test_scales_and_distances_are_those_of_normal_values() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, 2.0, (20000, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 5.0]])
    location, scale = tau_location_and_scale(x)
    assert_allclose(location, x.mean(axis=0), rtol=0.05)
    assert_allclose(scale, x.std(axis=0), rtol=0.03)
    spoilt = np.vstack([x, np.full((1500, 3), 400.0)])
    d = robust_distances(spoilt)
    rest = x - x.mean(axis=0)
    plain = (rest * np.linalg.solve(np.cov(x.T), rest.T).T).sum(axis=1)
    # the covariance is that of the inner 90 %, which makes distances longer by one factor
    ratio = d[:20000] / plain
    assert np.median(ratio) == pytest.approx(1.25, abs=0.15)
    assert ratio.std() < 0.1
    assert d[20000:].min() > 100 * d[:20000].max()


def test_fence_leaves_most_samples_whole() -> None:
    rng = np.random.default_rng(1)
    crossed = sum(bool((x > upper_fence(x)).any()) for x in rng.normal(size=(100, 1000)))
    assert crossed < 30
    x = np.append(rng.exponential(size=1000), [40.0, 50.0])
    assert_array_equal(np.flatnonzero(x > upper_fence(x)), [1000, 1001])
    inner = x[:1000]
    q1, q3 = np.quantile(inner, [0.25, 0.75])
    c = (norm.ppf(0.95 ** (1 / 1000)) - norm.ppf(0.75)) / (2 * norm.ppf(0.75))
    assert upper_fence(inner) == pytest.approx(q3 + c * np.exp(3 * medcouple(inner)) * (q3 - q1))


# PC-AiR and PC-Relate


def naive_partition(phi: Array) -> Array:
    left = set(range(len(phi)))
    near, far = phi > NEAR, phi < -NEAR
    np.fill_diagonal(near, False)
    while True:
        counts = {i: sum(near[i, j] for j in left) for i in left}
        if not any(counts.values()):
            return np.array([i in left for i in range(len(phi))])
        left.remove(min(left, key=lambda i: (-counts[i], far[i].sum(), phi[i][near[i]].sum(), i)))


def test_partition_equals_its_definition() -> None:
    rng = np.random.default_rng(3)
    n = 40
    first, second = np.nonzero(np.tri(n, k=-1))
    hethet = rng.integers(50, 150, len(first)).astype(np.int32)
    ibs0 = rng.integers(0, 60, len(first)).astype(np.int32)
    het = rng.integers(20, 120, len(first)).astype(np.int32)
    found = Kinship(Samples.numbered(n), first, second, hethet, hethet, ibs0, het, het, 100, None)
    phi = np.zeros((n, n))
    phi[first, second] = phi[second, first] = found.kinship
    assert_array_equal(partition(found), naive_partition(phi))
    assert 0 < partition(found).sum() < n


def test_air_projects_relatives_and_needs_all_pairs() -> None:
    calls = two_groups(0, p=20_000)
    rng = np.random.default_rng(0)
    calls[:, 58], calls[:, 59] = child_of(calls, 40, 41, rng), calls[:, 30]
    G = Genotypes.from_calls(calls)
    air = pc_air(G, king(G), GenotypePCA(2, random_state=0))
    assert air.unrelated.sum() == 58
    first = air.scores[:, 0]
    assert max(first[:30].max() < first[30:].min(), first[30:].max() < first[:30].min())
    alone = GenotypePCA(2, random_state=0).fit(G.select(samples=air.unrelated))
    assert_allclose(air.scores[air.unrelated], alone.eigenvectors_ * alone.singular_values_, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="least"):
        partition(king(G, least=0.1))
    with pytest.raises(ValueError, match="people"):
        pc_air(G.select(samples=np.arange(20)), king(G))


def test_relate_equals_its_formula() -> None:
    calls = two_groups(1, n=40, p=500).astype(float)
    rng = np.random.default_rng(1)
    calls[rng.random(calls.shape) < 0.03] = -1
    scores = rng.normal(size=(40, 2))
    training = rng.random(40) < 0.8
    V = np.column_stack([np.ones(40), scores])
    seen = calls >= 0
    mean = np.sum(calls * seen, axis=1) / np.sum(seen, axis=1)
    filled = np.where(seen, calls, mean[:, None])
    mu = 0.5 * filled[:, training] @ V[training] @ np.linalg.inv(V[training].T @ V[training]) @ V.T
    use = seen & (mu >= 0.01) & (mu <= 0.99)
    rest, spread = np.where(use, calls - 2 * mu, 0), np.sqrt(np.where(use, mu * (1 - mu), 0))
    G = Genotypes.from_calls(calls.astype(int))
    found = pc_relate(G, scores, training=training, small_sample=False)
    want = (rest.T @ rest) / (4 * spread.T @ spread)
    assert_allclose(found, want, atol=1e-5)
    # the correction of GENESIS: pairs with themselves are inbreeding coefficients, each component in its turn
    pairs = [(i, j) for i in range(40) for j in range(i, 40)]
    value = np.array([2 * want[i, i] - 1 if i == j else want[i, j] for i, j in pairs])
    for v in scores.T:
        product = np.array([v[i] * v[j] for i, j in pairs])
        value -= np.polyval(np.polyfit(product[value < 2**-5.5], value[value < 2**-5.5], 1), product)
    for (i, j), each in zip(pairs, value, strict=True):
        want[i, j] = want[j, i] = (1 + each) / 2 if i == j else each
    assert_allclose(pc_relate(G, scores, training=training), want, atol=1e-5)


def test_relate_sees_parents_through_structure() -> None:
    calls = two_groups(2, n=120, p=8000, apart=0.2)
    rng = np.random.default_rng(2)
    calls[:, 119] = child_of(calls, 5, 70, rng)  # of both populations
    G = Genotypes.from_calls(calls)
    people = np.arange(120) < 119
    model = GenotypePCA(1, random_state=0).fit(G.select(samples=people))
    phi = pc_relate(G, model.transform(G), training=people)
    assert_allclose(phi[119, [5, 70]], 0.25, atol=0.04)
    others = phi[np.ix_(people, people)][np.triu_indices(119, 1)]
    assert abs(others.mean()) < 0.01
    assert others.max() < 0.1
    for bad in ({"training": np.zeros(120, bool)}, {"scores": np.full((120, 1), np.nan)}, {"scores": np.zeros((3, 1))}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            pc_relate(G, **{"scores": np.zeros((120, 1)), **bad})  # type: ignore[arg-type]


# Outliers


@pytest.mark.parametrize("rule", ["deviations", "neighbours"])
def test_outliers_are_found_and_named(rule: str) -> None:
    calls = two_groups(4, n=150, p=4000, apart=0.05)
    rng = np.random.default_rng(40)
    for strange in (17, 99):
        calls[:, strange] = rng.binomial(2, rng.uniform(0.05, 0.95, 4000))
    G = Genotypes.from_calls(calls)
    found = find_outliers(G, GenotypePCA(4, random_state=0), rule=rule, max_rounds=1)
    table = found.table()
    assert set(table["IID"][np.argsort(-table["value"])[:2]]) == {"s18", "s100"}
    assert not found.kept[[17, 99]].any()
    least = 148 if rule == "deviations" else 140
    assert len(found.model.samples_) == found.kept.sum() == 150 - len(found.rows) >= least
    assert (found.components > 0).all() == (rule == "deviations")


def test_rule_of_smartpca_is_its_definition() -> None:
    calls = two_groups(5, n=100, p=2000, apart=0.05)
    calls[:, 3] = np.random.default_rng(50).binomial(2, 0.5, 2000)
    G = Genotypes.from_calls(calls)
    model = GenotypePCA(5, random_state=0).fit(G)
    z = (model.eigenvectors_ - model.eigenvectors_.mean(axis=0)) / model.eigenvectors_.std(axis=0, ddof=0)
    found = find_outliers(G, GenotypePCA(5, random_state=0), sigma=6, max_rounds=1)
    assert_array_equal(found.rows, np.flatnonzero((np.abs(z) > 6).any(axis=1)))
    assert_allclose(found.values, np.abs(z[found.rows]).max(axis=1), rtol=1e-6)
    assert find_outliers(G, GenotypePCA(5, random_state=0), max_rounds=0).kept.all()
    for bad in ({"rule": "x"}, {"sigma": 0.0}, {"alpha": 1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            find_outliers(G, **bad)  # type: ignore[arg-type]


# Regions that the data show


def genome(seed: int, inverted: bool) -> Genotypes:
    """22 chromosomes of 400 SNPs; on the third, those between 10 and 20 Mb follow an inversion loosely."""
    rng = np.random.default_rng(seed + 100)
    snps = Snps.numbered(8800)
    snps.chromosome[:] = np.repeat(np.array([str(c) for c in range(1, 23)], dtype=object), 400)
    snps.position[:] = np.tile(100_000 * np.arange(400) + 1, 22)
    calls = two_groups(seed, n=200, p=8800, apart=0.08)
    place = (snps.chromosome == "3") & (snps.position > 10e6) & (snps.position < 20e6)
    if inverted:
        calls[place] = np.where(rng.random((place.sum(), 200)) < 0.4, rng.binomial(2, 0.4, 200), calls[place])
    return Genotypes.from_calls(calls, snps=snps)


def test_a_region_of_long_range_disequilibrium_is_found() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = find_ld_regions(genome(0, True), GenotypePCA(4, random_state=0))
    table = found.table()
    assert set(table["chromosome"]) == {"3"}
    assert min(table["start"]) < 12e6
    assert max(table["end"]) > 18e6
    assert found.converged
    place = (found.model.snps_.position > 10e6) & (found.model.snps_.position < 20e6)
    assert not np.any(place & (found.model.snps_.chromosome == "3"))
    assert found.kept.sum() == len(found.model.snps_)


def test_where_there_is_none_none_is_found() -> None:
    found = find_ld_regions(genome(1, False), GenotypePCA(4, random_state=0))
    assert (found.regions, found.table()["start"]) == ([], [])


# Selection


@pytest.mark.parametrize("method", ["galinsky", "pcadapt"])
def test_scan_is_calibrated_and_finds_what_was_selected(method: str) -> None:
    rng = np.random.default_rng(7)
    f = rng.uniform(0.3, 0.7, (4000, 1))
    frequency = np.clip(np.hstack([f, f]) + rng.normal(0, 0.06, (4000, 2)), 0.02, 0.98)
    frequency[[10, 2000]] = 0.04, 0.96
    G = Genotypes.from_calls(rng.binomial(2, np.repeat(frequency, 150, axis=1)))
    model = GenotypePCA(3, random_state=0).fit(G)
    scan = selection_scan(model, G, method=method, components=1)
    assert set(np.argsort(scan.p_values[:, 0])[:2]) == {10, 2000}
    assert scan.p_values[[10, 2000]].max() < 1e-6
    rest = np.delete(scan.p_values[:, 0], [10, 2000])
    assert kstest(rest, "uniform").statistic < 0.06
    assert scan.inflation[0] == pytest.approx(np.median(scan.statistics) / chi2.ppf(0.5, 1))
    assert len(scan.table()["ID"]) == 4000


def test_scan_refuses_what_it_cannot_do() -> None:
    G = Genotypes.from_calls(two_groups(8, p=600))
    model = GenotypePCA(2, random_state=0).fit(G)
    for bad in ({"method": "x"}, {"components": 3}, {"components": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            selection_scan(model, **bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="source"):
        selection_scan(model, method="pcadapt", components=1)
    with pytest.raises(ValueError, match="600"):
        selection_scan(model, G.select(snps=np.arange(5)), method="pcadapt", components=1)


# Covariates


@pytest.mark.parametrize(
    ("program", "head"),
    [
        ("regenie", "FID IID PC1 PC2 age group"),
        ("saige", "FID IID PC1 PC2 age group"),
        ("plink2", "#FID\tIID\tPC1\tPC2\tage\tgroup"),
    ],
)
def test_covariates_are_read_back(program: str, head: str, tmp_path: Path) -> None:
    scores = np.random.default_rng(0).normal(size=(4, 2)) * [1e-3, 100]
    columns = {"age": [40.5, np.nan, 30, 20], "group": ["a", "b", "", "d"]}
    path = write_covariates(tmp_path / "c", Samples.numbered(4), scores, program, columns=columns)
    lines = path.read_text().splitlines()
    assert lines[0] == head
    rows = [line.split() for line in lines[1:]]
    assert [row[1] for row in rows] == ["s1", "s2", "s3", "s4"]
    written = [[float(value) for value in row[2:4]] for row in rows]
    assert_allclose(written, (scores - scores.mean(0)) / scores.std(0), rtol=1e-6)
    assert [row[4] for row in rows] == ["40.5", "NA", "30", "20"]
    assert [row[5] for row in rows] == ["a", "b", "NA", "d"]


def test_covariates_keep_their_digits_and_masks(tmp_path: Path) -> None:
    columns = {
        "whole": np.array([12345678901, 2**60 + 1]),
        "real": [0.1, 20261119123456.75],
        "masked": np.ma.masked_array([1, 2], [False, True]),
    }
    path = write_covariates(tmp_path / "c", Samples.numbered(2), [[1.0], [2.0]], columns=columns)
    rows = [line.split()[3:] for line in path.read_text().splitlines()[1:]]
    assert rows == [["12345678901", "0.1", "1"], ["1152921504606846977", "20261119123456.75", "NA"]]
    with pytest.raises(ValueError, match="scores"):
        write_covariates(tmp_path / "d", Samples.numbered(2), np.ma.masked_array([[1.0], [2.0]], [[True], [False]]))


def test_covariates_refuse_bad_input(tmp_path: Path) -> None:
    two = Samples.numbered(2)
    with pytest.raises(ValueError, match="program"):
        write_covariates(tmp_path / "c", two, [[1.0], [2.0]], "gcta")
    with pytest.raises(ValueError, match="scores"):
        write_covariates(tmp_path / "c", two, [[1.0]])
    for name, values in (("two words", [1, 2]), ("PC1", [1, 2]), ("age", [1])):
        with pytest.raises(ValueError, match=name):
            write_covariates(tmp_path / "c", two, [[1.0], [2.0]], columns={name: values})
    two.iid[:] = "s1"
    with pytest.raises(ValueError, match="0 s1"):
        write_covariates(tmp_path / "c", two, [[1.0], [2.0]])
    assert not list(tmp_path.iterdir())
