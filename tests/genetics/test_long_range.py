"""Regions of long-range linkage disequilibrium: the table, the build of a file, components that a region carries."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from gramian.genetics import (
    Filters,
    GenotypePCA,
    RegionWarning,
    carrying_regions,
    detect_build,
    long_range_regions,
)
from gramian.genetics.long_range import BUILDS, LANDMARKS, REGIONS, estimated_regions
from gramian.persistence import load, save
from gramian.sources.plink import Genotypes, Snps, open_bed

SHARED = Path(__file__).parents[3] / "shared" / "data"


def snps_at(build: str, names: list[str]) -> Snps:
    snps = Snps.numbered(len(names))
    snps.id[:] = names
    snps.chromosome[:] = [LANDMARKS[name][0] for name in names]
    snps.position[:] = [LANDMARKS[name][1 + BUILDS.index(build)] for name in names]
    return snps


def inverted(share: float = 1.0, seed: int = 0) -> Genotypes:
    """200 people of one population; SNPs at 8.5 to 10.5 Mb of chromosome 8 follow one inversion."""
    rng = np.random.default_rng(seed)
    snps = Snps.numbered(3000)
    snps.chromosome[:] = np.repeat(np.array([str(c) for c in range(1, 16)], dtype=object), 200)
    snps.position[:] = np.tile(50_000 * np.arange(200), 15)
    calls = rng.binomial(2, rng.uniform(0.1, 0.9, (3000, 1)), (3000, 200))
    place = (snps.chromosome == "8") & (snps.position >= 8_500_000) & (rng.random(3000) < share)
    calls[place] = np.where(rng.random((place.sum(), 200)) < 0.9, rng.binomial(2, 0.4, 200), calls[place])
    return Genotypes.from_calls(calls, snps=snps)


def test_regions_are_those_of_the_table() -> None:
    table = SHARED / "genetics" / "long_range_ld.tsv"
    if not table.exists():
        pytest.skip("the table is not here")
    rows = [line.split("\t") for line in table.read_text().splitlines()[1:]]
    for at, build in enumerate(BUILDS):
        want = [(row[0], int(row[1 + 2 * at]), int(row[2 + 2 * at])) for row in rows]
        assert [tuple(region) for region in long_range_regions(build)] == want
    assert [region.start for region in estimated_regions("hg38")] == [int(r[5]) for r in rows if r[7] == "estimated"]


def test_regions_have_an_order_and_a_length() -> None:
    assert len(REGIONS) == 24
    for build in BUILDS:
        for region in long_range_regions(build):
            assert 1e6 < region.end - region.start < 16e6
    assert not estimated_regions("hg19")
    with pytest.raises(ValueError, match="build"):
        long_range_regions("hg17")


@pytest.mark.parametrize("build", BUILDS)
def test_build_is_told_by_known_snps(build: str) -> None:
    assert detect_build(snps_at(build, list(LANDMARKS))) == build
    assert detect_build(snps_at(build, ["rs429358", "rs4988235"])) == build


def test_build_is_never_guessed() -> None:
    for snps in (Snps.numbered(5), snps_at("hg19", ["rs7412"])):
        with pytest.raises(ValueError, match="long_range"):
            detect_build(snps)
    mixed = snps_at("hg19", ["rs7412", "rs429358", "rs4988235"])
    mixed.position[1] = LANDMARKS["rs429358"][3]
    with pytest.raises(ValueError, match="rs429358"):
        detect_build(mixed)
    moved = snps_at("hg38", ["rs7412", "rs429358"])
    moved.chromosome[0] = "3"
    with pytest.raises(ValueError, match="rs7412"):
        detect_build(moved)


def test_filter_leaves_out_the_regions_and_counts_them() -> None:
    G = inverted()
    done = Filters(long_range="hg19").apply(G)
    (step,) = [step for step in done.steps if step.name == "long_range"]
    gone = sum(
        np.sum((G.snps.chromosome == c) & (G.snps.position >= a) & (G.snps.position <= b))
        for c, a, b in long_range_regions("hg19")
    )
    assert step.removed == gone > 0
    assert "hg19" in step.detail
    with pytest.raises(ValueError, match="long_range"):
        Filters(long_range="auto").apply(G)
    with pytest.raises(ValueError, match="long_range"):
        Filters(long_range="hg17")


@pytest.mark.skipif(not (SHARED / "hapmap3").exists(), reason="the HapMap 3 data are not here")
def test_build_of_hapmap() -> None:
    snps = open_bed(SHARED / "hapmap3" / "hm3.bed").snps
    assert detect_build(snps) == "hg18"


def test_a_component_that_a_region_carries_is_named(tmp_path: Path) -> None:
    G = inverted()
    with pytest.warns(RegionWarning, match=r"PC1: .*chromosome 8.*known"):
        model = GenotypePCA(3, random_state=0).fit(G)
    first = model.carrying_regions_[0]
    assert (first.component, first.chromosome, first.known) == (0, "8", True)
    assert 8_400_000 <= first.start < first.end <= 9_950_000
    place = (G.snps.chromosome == "8") & (G.snps.position >= first.start) & (G.snps.position <= first.end)
    assert first.share == pytest.approx((model.components_[0] ** 2)[place].sum())
    save(model, tmp_path / "m.gramian")
    assert load(tmp_path / "m.gramian").carrying_regions_ == model.carrying_regions_


def test_ancestry_is_not_named() -> None:
    rng = np.random.default_rng(1)
    G = inverted(share=0.0)
    p = rng.uniform(0.1, 0.9, (3000, 2))
    calls = rng.binomial(2, np.repeat(p, 100, axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in (Genotypes.from_calls(calls, snps=G.snps), G):
            assert GenotypePCA(10, random_state=0).fit(source).carrying_regions_ == []


def test_few_snps_and_snps_without_a_place_are_left_alone() -> None:
    v = np.zeros((1, 3000))
    v[0, 5] = 1
    assert carrying_regions(Snps.numbered(100), v[:, :100]) == []
    snps = inverted().snps
    assert carrying_regions(snps, v)[0].snps == 1
    snps.chromosome[:] = "0"
    assert carrying_regions(snps, v) == []
    assert carrying_regions(inverted().snps, 0 * v) == []


def test_another_build_than_the_positions_tell_is_said():
    snps = Snps.numbered(2)
    snps.id[:], snps.chromosome[:], snps.position[:] = ["rs429358", "rs7412"], "19", [45411941, 45412079]
    G = Genotypes.from_calls(np.array([[0, 1, 2, 1], [1, 2, 0, 0]]), snps=snps)
    with pytest.warns(UserWarning, match="hg19"):
        found = Filters(long_range="hg38").apply(G)
    assert "long_range" in dict(found.remarks)
    assert Filters(long_range="hg19").apply(G).remarks == ()
