"""What components may show besides ancestry: planted in simulated people, each is named, and nothing else is."""

from pathlib import Path

import numpy as np
import pytest

from gramian.genetics import GenotypePCA, find_artefacts, king, screen_relatives
from gramian.genetics.artefacts import ArtefactKind
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed

HAPMAP = Path(__file__).parents[3] / "shared" / "data" / "hapmap3"


@pytest.fixture
def calls():
    """5,000 SNPs of 120 people of two populations."""
    rng = np.random.default_rng(2)
    f = rng.uniform(0.2, 0.8, (5000, 1))
    p = np.clip(np.hstack([f, f + rng.normal(0, 0.06, f.shape)]), 0.05, 0.95)
    return rng.binomial(2, np.repeat(p, 60, axis=1)).astype(np.int8)


def find(calls, *, sex=None, chromosome=None, **settings):
    samples, snps = Samples.numbered(calls.shape[1]), Snps.numbered(len(calls))
    if sex is not None:
        samples.sex[:] = sex
    if chromosome is not None:
        snps.chromosome[:] = chromosome
    G = Genotypes.from_calls(calls, samples, snps)
    found = find_artefacts(GenotypePCA(4, chromosomes="all", random_state=0, **settings).fit(G), G)
    return {each.kind: each for each in found.found}, found


def child(rng, one, other):
    return rng.binomial(1, one / 2) + rng.binomial(1, other / 2)


def test_nothing_is_found_where_there_is_nothing(calls):
    kinds, found = find(calls, sex=np.arange(120) % 2 + 1)
    assert kinds == {}
    assert (found.relatives.compared, found.table()["kind"]) == (120, [])


def test_copies_and_families_are_named_with_the_components_they_hold(calls):
    rng = np.random.default_rng(3)
    copies, family = calls.copy(), calls.copy()
    copies[:, 80:90] = calls[:, [7]]
    for i in range(80, 90):
        family[:, i] = child(rng, calls[:, 7], calls[:, 8])
    for table, pairs, people in ((copies, 55, 11), (family, 45 + 20, 12)):
        kinds, found = find(table)
        assert list(kinds) == [ArtefactKind.RELATIVES]
        assert len(found.relatives.pairs.first) == pairs
        assert len(kinds[ArtefactKind.RELATIVES].people) == people
        assert kinds[ArtefactKind.RELATIVES].components  # 12 of 120 people, more than half of it
    assert {"s8", "s81", "s90"} <= set(find(copies)[0][ArtefactKind.RELATIVES].people)


def test_a_component_of_one_person(calls):
    rng = np.random.default_rng(4)
    calls[:, 5] = rng.binomial(2, rng.uniform(0.05, 0.95, len(calls)))
    kinds, _ = find(calls)
    assert kinds[ArtefactKind.ONE_PERSON].people == ("s6",)
    assert len(kinds[ArtefactKind.ONE_PERSON].components) == 1


def test_people_with_few_calls_and_batches(calls):
    rng = np.random.default_rng(5)
    one = calls.copy()
    one[1:, 9] = -1
    kinds, _ = find(one)
    assert kinds[ArtefactKind.FEW_CALLS].people == ("s10",)
    one[rng.permutation(5000)[:6], 9] = 1  # as heterozygous as half of all others, by six calls
    assert (king(Genotypes.from_calls(one), least=0.25).n_snps < 10).sum() > 20
    assert list(find(one)[0]) == [ArtefactKind.FEW_CALLS]
    assert "batch" not in kinds[ArtefactKind.FEW_CALLS].text
    scattered, batch = calls.copy(), calls.copy()
    scattered[:, 50:70] = np.where(rng.random((5000, 20)) < 0.5, -1, calls[:, 50:70])
    batch[rng.permutation(5000)[:2500, None], np.arange(50, 70)] = -1
    for table, said in ((scattered, False), (batch, True)):
        kinds, _ = find(table)
        assert len(kinds[ArtefactKind.FEW_CALLS].people) == 20
        assert ("batch" in kinds[ArtefactKind.FEW_CALLS].text) is said
        assert "least-squares" in kinds[ArtefactKind.FEW_CALLS].text
    kinds, _ = find(batch, missing="least-squares")
    assert "centre" not in kinds[ArtefactKind.FEW_CALLS].text


def test_a_component_that_follows_missing_calls(calls):
    """Calls that are missing where somebody is heterozygous, more or less often: a matter of quality."""
    rng = np.random.default_rng(6)
    rate = rng.uniform(0, 0.9, 120)
    wrong = (calls == 1) & (rng.random(calls.shape) < rate)
    first = np.where(np.arange(5000)[:, None] % 2, 2, 0)
    calls[wrong] = np.broadcast_to(first, calls.shape)[wrong]  # and some of them called wrongly
    calls[wrong & (rng.random(calls.shape) < 0.3)] = -1
    kinds, _ = find(calls)
    assert 1 in kinds[ArtefactKind.MISSING_CALLS].components


def test_sex_chromosomes_and_components_of_sex(calls):
    rng = np.random.default_rng(7)
    sex = rng.permutation(120) % 2 + 1
    calls[:400, sex == 1] = 2 * (calls[:400, sex == 1] > 1)
    chromosome = np.where(np.arange(5000) < 400, "X", "1").astype(object)
    kinds, _ = find(calls, sex=sex, chromosome=chromosome)
    assert "400 on X" in kinds[ArtefactKind.SEX_CHROMOSOMES].text
    assert ArtefactKind.SEX in kinds
    autosomal, _ = find(calls[400:], sex=sex)
    assert autosomal == {}


def test_few_autosomal_snps_make_no_relatives(calls):
    """Kinship is of autosomes: 300 of them say less than the 3,000 SNPs of the fit."""
    chromosome = np.where(np.arange(3000) < 300, "1", "X").astype(object)
    kinds, _ = find(calls[:3000], chromosome=chromosome)
    assert ArtefactKind.RELATIVES not in kinds


def test_a_region_is_among_them(calls):
    rng = np.random.default_rng(8)
    carrier = rng.binomial(2, 0.4, 120)
    calls[2000:2250] = np.where(rng.random((250, 120)) < 0.95, carrier, calls[2000:2250])
    samples, snps = Samples.numbered(120), Snps.numbered(5000)
    snps.chromosome[:], snps.position[:] = "8", 4000 * np.arange(5000)
    G = Genotypes.from_calls(calls, samples, snps)
    with pytest.warns(UserWarning, match="chromosome 8"):
        model = GenotypePCA(4).fit(G)
    (region,) = (each for each in find_artefacts(model, G).found if each.kind is ArtefactKind.REGION)
    assert region.components == tuple(each.component + 1 for each in model.carrying_regions_)


def test_other_genotypes_are_refused(calls):
    G = Genotypes.from_calls(calls)
    with pytest.raises(ValueError, match="119"):
        find_artefacts(GenotypePCA(2).fit(G), G.select(samples=np.arange(119)))


def test_a_screen_with_little_time_compares_those_who_matter_and_finds_all_copies(calls):
    calls[:, 100], calls[:, 101] = calls[:, 7], calls[:, 8]
    calls[:30, 101] = (calls[:30, 101] + 1) % 3  # 0.6 % of other calls
    calls[:, 119] = child(np.random.default_rng(1), calls[:, 65], calls[:, 66])
    G = Genotypes.from_calls(calls)
    everybody = king(G, least=0.0884)
    want = sorted(zip(everybody.first.tolist(), everybody.second.tolist(), strict=True))
    whole = screen_relatives(G)
    assert (whole.compared, whole.snps) == (120, 5000)
    assert sorted(zip(whole.pairs.first.tolist(), whole.pairs.second.tolist(), strict=True)) == want
    np.testing.assert_array_equal(whole.pairs.kinship, everybody.kinship)
    leading = [65, 66, 119, *range(20), *range(30, 60)]
    little = screen_relatives(G, first=[*leading, *sorted(set(range(120)) - set(leading))], work=5 * 4000 * 40**2)
    assert little.compared == 40
    found = set(zip(little.pairs.first.tolist(), little.pairs.second.tolist(), strict=True))
    assert found == {(119, 65), (119, 66), (100, 7), (101, 8)}


@pytest.mark.skipif(not (HAPMAP / "hm3.bed").exists(), reason="the HapMap 3 data are not here")
def test_relatives_of_hapmap():
    G = open_bed(HAPMAP / "hm3.bed")
    found = find_artefacts(GenotypePCA(20).fit(G), G)
    (relatives,) = found.found
    assert (len(relatives.people), len(found.relatives.pairs.first)) == (137, 107)
    assert relatives.components == tuple(range(7, 21))
    assert "60% to 89%" in relatives.text
