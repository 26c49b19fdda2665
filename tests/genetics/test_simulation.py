"""Simulated genotypes have the F_ST, linkage and gaps that were asked for, and draw the map they were made on."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial.hermite_e import hermegauss
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh

from gramian.genetics.simulation import (
    EUROPE,
    Simulation,
    expected_fst,
    map_features,
    map_plane,
    simulate_europe,
    simulate_genotypes,
)
from gramian.pca.subspaces import procrustes
from gramian.sources.plink import open_bed
from oracles import Array

PAIR = np.repeat(["a", "b"], 100)


def hudson_terms(calls: Array, labels: Array) -> tuple[Array, Array]:
    """Numerators and denominators of SNPs × pairs of groups, without gaps, by the definition."""
    names = sorted(set(labels))
    n = [2 * np.sum(labels == g) for g in names]
    p = [calls[:, labels == g].mean(axis=1) / 2 for g in names]
    pairs = [(i, j) for i in range(len(names)) for j in range(i)]
    bias = [q * (1 - q) / (m - 1) for q, m in zip(p, n, strict=True)]
    above = [(p[i] - p[j]) ** 2 - bias[i] - bias[j] for i, j in pairs]
    below = [p[i] * (1 - p[j]) + p[j] * (1 - p[i]) for i, j in pairs]
    return np.array(above).T, np.array(below).T


def mean_fst(calls: Array, labels: Array) -> tuple[float, float]:
    """Mean F_ST over pairs, and its standard error from forty parts of the SNPs."""
    above, below = hudson_terms(calls, labels)
    cut = zip(np.array_split(above, 40), np.array_split(below, 40), strict=True)
    parts = [(a.sum(axis=0) / b.sum(axis=0)).mean() for a, b in cut]
    return float((above.sum(axis=0) / below.sum(axis=0)).mean()), float(np.std(parts, ddof=1) / np.sqrt(40))


def a_map(places: int = 12, each: int = 25, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    centres = rng.uniform(0, 10, (places, 2))
    labels = np.repeat([f"place{k:02d}" for k in range(places)], each)
    return np.repeat(centres, each, axis=0) + 0.3 * rng.standard_normal((len(labels), 2)), labels


def squared_correlations(calls: Array, lag: int) -> Array:
    """r² of SNPs that lie so far apart, less the 1/n that chance makes."""
    Z = (calls - calls.mean(axis=1, keepdims=True)) / calls.std(axis=1, keepdims=True)
    return np.asarray((Z[lag:] * Z[: len(Z) - lag]).mean(axis=1) ** 2 - 1 / calls.shape[1])


@pytest.mark.parametrize("wanted", [0.002, 0.05, 0.3])
def test_populations_have_the_fst_asked_for(wanted: float) -> None:
    labels = np.repeat(["a", "b", "c"], [150, 60, 90])
    found, error = mean_fst(Simulation(8000, groups=labels, fst=wanted, seed=1).calls(0, 8000), labels)
    assert error < 0.1 * wanted
    assert found == pytest.approx(wanted, abs=4 * error)


@pytest.mark.parametrize(("wanted", "length"), [(0.004, None), (0.05, 4.0), (0.15, 2.0)])
def test_places_on_a_map_have_the_fst_asked_for(wanted: float, length: float | None) -> None:
    positions, labels = a_map()
    study = Simulation(8000, positions=positions, groups=labels, fst=wanted, length=length, seed=2)
    found, error = mean_fst(study.calls(0, 8000), labels)
    assert error < 0.08 * wanted
    assert found == pytest.approx(wanted, abs=4 * error)


def test_far_places_differ_more_than_near_ones() -> None:
    positions, labels = a_map()
    study = Simulation(8000, positions=positions, groups=labels, fst=0.02, seed=3)
    above, below = hudson_terms(study.calls(0, 8000), labels)
    centres = np.array([positions[labels == g].mean(axis=0) for g in sorted(set(labels))])
    far = [np.linalg.norm(centres[i] - centres[j]) for i in range(12) for j in range(i)]
    assert np.corrcoef(far, above.sum(axis=0) / below.sum(axis=0))[0, 1] > 0.9


@given(
    rho=st.floats(-0.9, 0.9),
    sigma=st.floats(0.01, 1.0),
    spread=st.floats(0.2, 2.0),
    maf=st.sampled_from([(0.3, 0.3), (0.05, 0.5), (0.4, 0.9)]),
)
def test_the_closed_form_is_the_integral(rho: float, sigma: float, spread: float, maf: tuple[float, float]) -> None:
    """F_ST of two places from sums over Gaussian nodes, for frequencies sin²(θ + σg)."""
    x, w = hermegauss(60)
    w = w / w.sum()
    g1, g2 = x[:, None], spread * (rho * x[:, None] + math.sqrt(1 - rho**2) * x)
    weights = np.outer(w, w)
    above = below = 0.0
    nodes, shares = np.polynomial.legendre.leggauss(40)
    for node, share in zip(nodes, shares / 2, strict=True):
        theta = math.asin(math.sqrt(maf[0] + (maf[1] - maf[0]) * (node + 1) / 2))
        f1, f2 = np.sin(theta + sigma * g1) ** 2, np.sin(theta + sigma * g2) ** 2
        above += share * float(np.sum(weights * (f1 - f2) ** 2))
        below += share * float(np.sum(weights * (f1 * (1 - f2) + f2 * (1 - f1))))
    features = np.array([[1.0, 0.0], [spread * rho, spread * math.sqrt(1 - rho**2)]])
    assert_allclose(expected_fst(features, np.arange(2), sigma, maf)[0, 1], above / below, rtol=1e-6)


def test_features_of_a_map_are_those_of_the_kernel() -> None:
    positions, _ = a_map(places=40, each=15)
    features = map_features(positions, 6.0)
    K = np.exp(-np.sum((positions[:, None] - positions) ** 2, axis=2) / 72)
    H = np.eye(len(K)) - 1 / len(K)
    assert features.shape[1] < 20
    assert np.abs(features @ features.T - H @ K @ H).max() < 0.02


@given(start=st.integers(0, 2999), size=st.integers(1, 700), seed=st.integers(0, 3))
def test_any_part_is_the_same_as_in_the_whole(start: int, size: int, seed: int) -> None:
    study = Simulation(3000, groups=PAIR[::9], fst=0.1, missing=0.1, ld=0.4, ld_block=7, seed=seed)
    whole = Simulation(3000, groups=PAIR[::9], fst=0.1, missing=0.1, ld=0.4, ld_block=7, seed=seed).calls(0, 3000)
    assert_array_equal(study.calls(start, start + size), whole[start : start + size])


@pytest.mark.parametrize("threads", [1, 3])
def test_files_are_the_same_on_any_number_of_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    positions, labels = a_map()
    study = Simulation(2500, positions=positions, groups=labels, missing=0.03, missing_spread=1.0, ld=0.5, seed=5)
    calls = study.calls(0, 2500)
    monkeypatch.setattr("gramian.compute.threads.n_threads", lambda: threads)
    monkeypatch.setattr("gramian.genetics.simulation.n_threads", lambda: threads)
    G = study.write(tmp_path / "x.bed")
    assert G.shape == study.shape == (300, 2500)
    assert_array_equal(G.calls(0, 2500), calls)
    again = simulate_genotypes(
        tmp_path / "y.bed", 2500, positions=positions, groups=labels, missing=0.03, missing_spread=1.0, ld=0.5, seed=5
    )
    for suffix in (".bed", ".bim", ".fam"):
        assert (tmp_path / f"x{suffix}").read_bytes() == (tmp_path / f"y{suffix}").read_bytes()
    assert again.notes == ()
    assert np.mean(Simulation(2500, positions=positions, groups=labels, seed=6).calls(0, 2500) == calls) < 0.7


@pytest.mark.parametrize("spread", [0.0, 0.8])
@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_as_many_genotypes_are_missing_as_asked(rate: float, spread: float) -> None:
    study = Simulation(4000, groups=PAIR, missing=rate, missing_spread=spread, seed=7)
    gone = study.calls(0, 4000) < 0
    by_snp, by_person = gone.mean(axis=1), gone.mean(axis=0)
    error = by_snp.std() / np.sqrt(4000)
    assert gone.mean() == pytest.approx(rate, abs=4 * error + 1e-4)
    chance = rate * (1 - rate)
    if spread:
        # variances beyond chance: of rates λᵢrⱼ, about (rate · spread)² where few genotypes are missing
        assert by_snp.var() > chance / 200 + 0.3 * (rate * spread) ** 2
        assert by_person.var() > chance / 4000 + 0.3 * (rate * spread) ** 2
    else:
        assert by_snp.var() == pytest.approx(chance / 200, rel=4 * np.sqrt(2 / 4000) + 0.02)
        assert by_person.var() == pytest.approx(chance / 4000, rel=4 * np.sqrt(2 / 200))


def test_linkage_decays_from_neighbour_to_neighbour() -> None:
    study = Simulation(
        2400, groups=["all"] * 3000, fst=0.0, maf=(0.3, 0.3), ld=0.64, ld_block=12, chromosomes=1, seed=8
    )
    calls = study.calls(0, 2400).astype(np.float32)
    for lag in (1, 2, 3, 5):
        same = (np.arange(2400 - lag) % 12) + lag < 12
        found = squared_correlations(calls, lag)
        assert found[same].mean() == pytest.approx(0.64**lag, abs=0.01)
        assert found[~same].mean() == pytest.approx(0.0, abs=0.001)


def test_linkage_of_unequal_frequencies_is_the_most_possible() -> None:
    study = Simulation(2000, groups=["all"] * 3000, fst=0.0, ld=1.0, ld_block=2, chromosomes=1, seed=9)
    calls = study.calls(0, 2000).astype(np.float32)
    p = calls.mean(axis=1) / 2
    f, h = np.minimum(p[::2], p[1::2]), np.maximum(p[::2], p[1::2])
    assert_allclose(squared_correlations(calls, 1)[::2], f * (1 - h) / (h * (1 - f)), atol=0.1)
    assert (squared_correlations(calls, 1)[::2] - f * (1 - h) / (h * (1 - f))).mean() == pytest.approx(0, abs=0.005)


def test_linkage_breaks_between_chromosomes() -> None:
    study = Simulation(110, groups=["all"] * 4000, fst=0.0, maf=(0.4, 0.4), ld=0.9, ld_block=1000, seed=10)
    chromosome = study.snps(0, 110).chromosome
    found, same = squared_correlations(study.calls(0, 110).astype(np.float32), 1), chromosome[1:] == chromosome[:-1]
    assert np.sum(~same) == 21
    assert found[same].mean() == pytest.approx(0.9, abs=0.01)
    assert np.abs(found[~same]).max() < 0.01


def test_people_mate_at_random_within_a_population() -> None:
    calls = Simulation(3000, groups=["all"] * 500, fst=0.0, maf=(0.2, 0.2), seed=11).calls(0, 3000)
    shares = [np.mean(calls == copies) for copies in (0, 1, 2)]
    assert_allclose(shares, [0.64, 0.32, 0.04], atol=4 * np.sqrt(0.25 / calls.size))


def test_mixed_people_lie_between_their_populations() -> None:
    share = np.random.default_rng(0).uniform(0, 1, 200)
    ancestry = np.vstack([np.eye(2)[np.repeat([0, 1], 50)], np.column_stack([share, 1 - share])])
    calls = Simulation(5000, ancestry=ancestry, fst=0.2, seed=12).calls(0, 5000).astype(float)
    pure = calls[:, :50].mean(axis=1), calls[:, 50:100].mean(axis=1)
    step = pure[0] - pure[1]
    found = step @ (calls[:, 100:] - pure[1][:, None]) / (step @ step)
    assert np.corrcoef(found, share)[0, 1] > 0.98


def test_snps_lie_in_order_on_chromosomes_of_human_size() -> None:
    snps = Simulation(22_000, groups=PAIR).snps(0, 22_000)
    assert len(set(snps.id)) == 22_000
    counts = {name: int(np.sum(snps.chromosome == name)) for name in dict.fromkeys(snps.chromosome)}
    assert list(counts) == [str(i + 1) for i in range(22)]
    assert counts["1"] / counts["21"] == pytest.approx(249.25 / 48.13, rel=0.01)  # megabases of GRCh37
    for name in counts:
        place = snps.position[snps.chromosome == name]
        assert np.all(np.diff(place) > 0)
        assert 1 <= place[0] < place[-1] <= 250_000_000
    assert_allclose(snps.cm, snps.position / 1e6, atol=1e-6)
    pairs = {a + b for a, b in zip(snps.a1, snps.a2, strict=True)}
    assert pairs == {"AC", "CA", "AG", "GA", "CT", "TC", "GT", "TG"}


def test_described_in_a_line() -> None:
    positions, labels = a_map()
    assert repr(Simulation(10, positions=positions)).startswith(
        "Simulation: 300 people in 300 places on a map, 10 SNPs"
    )
    assert "12 places on a map" in repr(Simulation(10, positions=positions, groups=labels))
    assert "2 people mixed of 3 populations" in repr(Simulation(10, ancestry=[[1, 0, 0], [0.5, 0.25, 0.25]]))
    named = Simulation(10, groups=["a", "b"], names=["eve", "adam"]).samples
    assert named.names == ["eve:eve", "adam:adam"]
    assert set(Simulation(10, groups=PAIR).samples.sex) == {1, 2}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_snps": 0}, "n_snps=0 must be at least 1"),
        ({"fst": 1.0}, r"fst=1\.0 must be from 0 to below 1"),
        ({"maf": (0.5, 0.1)}, "maf="),
        ({"missing": 1.0}, "missing="),
        ({"missing_spread": -1.0}, "missing_spread="),
        ({"ld": 1.5}, "ld=1.5 must be an r²"),
        ({"ld_block": 0}, "ld_block=0"),
        ({"chromosomes": 23}, "chromosomes=23 must be from 1 to 22"),
        ({"length": 0.0}, "length="),
        ({"groups": None}, "People need positions"),
        ({"ancestry": [[1.0]]}, "People need positions"),
        ({"groups": []}, "groups are empty"),
        ({"groups": None, "ancestry": [[0.5, 0.6]]}, r"person 0 has \[0\.5, 0\.6\]"),
        ({"positions": [[0.0, 1.0]]}, "1 positions and 200 groups"),
        ({"groups": None, "positions": [[0.0, math.inf]]}, "person 0 has"),
        ({"groups": None, "positions": [0.0, 1.0]}, r"shape \(2,\)"),
    ],
)
def test_refused(changed: dict[str, object], message: str) -> None:
    described: dict[str, object] = {"n_snps": 10, "groups": PAIR} | changed
    with pytest.raises(ValueError, match=message):
        Simulation(**described)  # type: ignore[arg-type]


def test_refused_when_drawn(tmp_path: Path) -> None:
    positions, labels = a_map()
    with pytest.raises(ValueError, match="reach 0"):
        Simulation(10, positions=positions, groups=labels, fst=0.9).calls(0, 10)
    with pytest.raises(ValueError, match="place"):
        Simulation(10, positions=np.ones((4, 2)), groups=list("aabb")).calls(0, 10)
    with pytest.raises(ValueError, match=r"1 names.*200 people"):
        Simulation(10, groups=PAIR, names=["adam"]).write(tmp_path / "x.bed")
    with pytest.raises(ValueError, match=r"people=100.*least 150"):
        simulate_europe(tmp_path / "x.bed", people=100)
    assert list(tmp_path.iterdir()) == []


def test_components_of_europe_draw_its_map(tmp_path: Path) -> None:
    """The European study in small, by the plainest PCA there is."""
    study = simulate_europe(tmp_path / "europe.bed")
    G = study.genotypes
    assert repr(study) == "Study (simulated): 1400 people of 30 countries, 20000 SNPs"
    Z = G.calls(0, 20_000).T.astype(np.float32)
    p = Z.mean(axis=0) / 2
    Z = (Z - 2 * p) / np.sqrt(p * (1 - p))
    values, vectors = eigh((Z @ Z.T).astype(np.float64), subset_by_index=[1396, 1399])
    scores = vectors[:, -2:] * np.sqrt(values[-2:])
    found = procrustes(scores, study.positions, n_permutations=99)
    assert found.correlation > 0.95
    assert found.p_value == 0.01
    assert values[-2] > 2 * values[-4]
    # within countries too, people near each other are alike
    rest = study.positions - np.array([study.positions[study.country == c].mean(axis=0) for c in study.country])
    moved = found.apply(scores)
    within = moved - np.array([moved[study.country == c].mean(axis=0) for c in study.country])
    assert procrustes(within, rest, n_permutations=99).p_value == 0.01


def test_the_fst_of_europe_and_its_table(tmp_path: Path) -> None:
    study = simulate_europe(tmp_path / "europe.bed", 6000, people=900, missing=0.02, seed=3)
    lines = (tmp_path / "europe.tsv").read_text("utf-8").splitlines()
    table = list(csv.DictReader(lines, delimiter="\t"))
    assert list(table[0]) == ["FID", "IID", "country", "latitude", "longitude"]
    samples = open_bed(tmp_path / "europe.bed").samples
    assert [(row["FID"], row["IID"]) for row in table] == list(zip(samples.fid, samples.iid, strict=True))
    assert [row["country"] for row in table] == study.country.tolist() == study.table()["country"].tolist()
    where = np.array([[float(row["latitude"]), float(row["longitude"])] for row in table])
    assert_array_equal(map_plane(*where.T), study.positions)
    calls = study.genotypes.calls(0, 6000)
    assert np.mean(calls < 0) == pytest.approx(0.02, abs=0.001)
    plain = simulate_europe(tmp_path / "full.bed", 6000, people=900, seed=3)
    found, error = mean_fst(plain.genotypes.calls(0, 6000), plain.country)
    assert error < 0.0002
    assert found == pytest.approx(0.004, abs=4 * error)


def test_countries_are_thirty_in_europe_with_1400_people() -> None:
    assert len({place.code for place in EUROPE}) == len({place.name for place in EUROPE}) == 30
    assert sum(place.people for place in EUROPE) == 1400
    assert all(34 < place.latitude < 72 and -11 < place.longitude < 40 for place in EUROPE)
    place = {country.code: country for country in EUROPE}
    assert place["PT"].longitude < place["ES"].longitude < place["IT"].longitude < place["GR"].longitude
    assert place["IT"].latitude < place["CH"].latitude < place["DE"].latitude < place["SE"].latitude
