"""From raw genotypes to components: every step is the function of its name, and accounted for."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import gramian
from gramian.genetics import (
    Filters,
    GenotypePCA,
    analyse_cohort,
    filter_cohort,
    find_artefacts,
    find_outliers,
    king,
    prune,
    simulate_genotypes,
    unrelated,
    write_bed,
)
from gramian.genetics.cohort import name_snps
from gramian.genetics.relatives import project_relatives
from gramian.sources.errors import SourceError
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed

AFTER = ("prune", "long_range", "relatives", "regions", "outliers")  # steps after the filters
HAPMAP = Path(__file__).parents[3] / "shared" / "data" / "hapmap3"


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """160 people of two populations: relatives, an outlier, a person hardly read, bad and rare SNPs, an inversion."""
    rng = np.random.default_rng(1)
    place = tmp_path_factory.mktemp("raw")
    G = simulate_genotypes(place / "x.bed", 6000, groups=["A"] * 80 + ["B"] * 80, fst=0.05, ld=0.7, seed=1)
    calls, snps = G.calls(0, 6000).copy(), G.snps
    calls[:, 3] = calls[:, 0]  # a copy; a child; the sister of one
    for i in (90, 91):
        calls[:, i] = rng.binomial(1, calls[:, 100] / 2) + rng.binomial(1, calls[:, 101] / 2)
    calls[:, 50] = rng.binomial(2, rng.uniform(0.05, 0.95, 6000))
    carrier = rng.binomial(2, 0.4, 160)
    calls[2000:2400] = np.where(rng.random((400, 160)) < 0.6, carrier, calls[2000:2400])
    calls[rng.random(calls.shape) < 0.01] = -1
    calls[:, 20] = np.where(rng.random(6000) < 0.4, -1, calls[:, 20])
    calls[:300, rng.random(160) < 0.5] = -1
    calls[400:450] = np.where(np.arange(160) == 9, 1, 0)
    snps.chromosome[:], snps.position[:] = np.repeat(["1", "2", "3"], 2000), np.tile(50_000 * np.arange(1, 2001), 3)
    snps.chromosome[5990:] = "X"
    write_bed(place / "raw.bed", calls, G.samples, snps)
    return open_bed(place / "raw.bed")


@pytest.fixture(scope="module")
def found(cohort):
    return analyse_cohort(cohort, GenotypePCA(6, random_state=0))


def test_every_step_is_accounted_for(cohort, found):
    n, p = cohort.shape
    left = {"samples": n, "SNPs": p}
    for step in found.steps:
        assert step.removed + step.left == left[step.of], step.name
        left[step.of] = step.left
    assert left == {"samples": found.fitted.sum(), "SNPs": found.snps.sum()}
    removed = Counter()
    for step in found.steps:
        removed[step.name] += step.removed
    removed = +removed
    assert removed["max_sample_missing"] == 1
    assert [step.removed for step in found.steps if step.detail == "≤ 0.2"] == [300]  # people are judged without these
    assert removed["maf"] >= 50
    assert removed["chromosomes"] == 10
    assert removed["outliers"] == 1
    assert {*removed} == {*("chromosomes", "max_snp_missing", "max_sample_missing", "maf"), "prune", "relatives"} | {
        name for name in ("outliers", "regions", "monomorphic") if name in removed
    }
    assert any("build" in remark for remark in found.remarks)
    assert not np.any(found.related & found.outlying)
    assert (found.fitted == ~(found.related | found.outlying)).all()


def test_each_step_is_the_function_of_its_name(cohort, found):
    filtered = filter_cohort(cohort, Filters(maf=0.01, max_snp_missing=0.05, max_sample_missing=0.1)).source
    np.testing.assert_array_equal(found.source.snps.id, filtered.snps.id)
    pruned = prune(filtered, "500kb", 1, 0.2)
    np.testing.assert_array_equal(found.pruning.kept, pruned.kept)
    cutoff = found.kinship.least  # above 0.0884, as few independent SNPs tell
    kinship = king(filtered, least=cutoff)
    assert cutoff > 0.0884
    assert any("few independent SNPs" in remark for remark in found.remarks)
    np.testing.assert_array_equal(found.related, ~unrelated(kinship, cutoff))
    np.testing.assert_array_equal(found.kinship.kinship, kinship.kinship)
    rest = filtered.select(samples=~found.related, snps=found.regions.kept & pruned.kept)
    outliers = find_outliers(rest, GenotypePCA(6, chromosomes="all", random_state=0))
    assert outliers.table()["IID"].tolist() == found.outliers.table()["IID"].tolist()
    model = GenotypePCA(6, chromosomes="all", random_state=0).fit(
        filtered.select(samples=found.fitted, snps=found.snps)
    )
    np.testing.assert_array_equal(found.model.eigenvectors_, model.eigenvectors_)
    np.testing.assert_array_equal(found.scores[found.fitted], model.eigenvectors_ * model.singular_values_)


def test_what_is_planted_is_found(cohort, found):
    names = np.array(found.source.samples.names)
    of = {name: role for name, role in zip(found.source.samples.iid, found.roles, strict=True) if role != "fitted"}
    iid = cohort.samples.iid
    assert [role for name, role in of.items() if name == iid[50]] == ["outlier, projected"]
    assert {iid[90], iid[91]} <= {name for name, role in of.items() if role == "relative, projected"}
    assert len({iid[0], iid[3]} & {*of}) == 1
    assert len(names) == 159
    first = found.scores[:, 0]
    left = np.array([name != iid[50] for name in found.source.samples.iid])
    group = np.array([i < 80 for i in range(160) if i != 20])
    assert (
        first[group & left].max() < first[~group & left].min() or first[group & left].min() > first[~group & left].max()
    )
    # the inversion, and what is found of it lies in it
    inversion = (found.source.snps.chromosome == "2") & (found.source.snps.position <= 400 * 50_000)
    assert np.mean(inversion[found.snps]) < 0.5 * np.mean(inversion)


def test_everybody_in_the_scale_of_the_fit(found):
    whole = found.of_everybody()
    np.testing.assert_allclose(whole.eigenvectors_ * whole.score_lengths_, found.scores)
    np.testing.assert_allclose(np.linalg.norm(whole.eigenvectors_[found.fitted], axis=0), 1, rtol=1e-5)
    assert len(found.model.samples_) == found.fitted.sum() < len(whole.samples_)


def test_lists_are_read_by_filters(cohort, found, tmp_path):
    paths = found.write_lists(tmp_path / "out" / "c")
    assert sorted(path.name for path in paths) == sorted(path.name for path in (tmp_path / "out").iterdir())
    again = Filters(extract=tmp_path / "out" / "c.snps.in", keep=tmp_path / "out" / "c.fitted.id").apply(cohort).source
    np.testing.assert_array_equal(again.snps.id, found.source.snps.id[found.snps])
    np.testing.assert_array_equal(again.samples.iid, found.source.samples.iid[found.fitted])
    gone = Filters(remove=tmp_path / "out" / "c.king.cutoff.out.id").apply(cohort)
    assert gone.removed["remove"] == found.related.sum()
    text = (tmp_path / "out" / "c.prune.out").read_text().split()
    assert text == found.source.snps.id[found.pruning.removed].tolist()
    with pytest.raises(FileExistsError):
        found.write_lists(tmp_path / "out" / "c")


@pytest.mark.filterwarnings("ignore::gramian.genetics.RegionWarning")
def test_steps_can_be_left_out(cohort):
    found = analyse_cohort(
        cohort,
        GenotypePCA(2),
        filters=None,
        prune_by=None,
        long_range=None,
        find_regions=False,
        king_cutoff=None,
        outliers=None,
        before=False,
    )
    assert [(step.name, step.removed) for step in found.steps] == [("autosomes", 10)]
    model = GenotypePCA(2).fit(cohort)
    np.testing.assert_array_equal(found.model.eigenvectors_, model.eigenvectors_)
    assert found.before is found.kinship is found.outliers is found.regions is found.pruning is None


def test_an_ended_analysis_is_resumed_with_the_same_bits(cohort, found, tmp_path):
    class EndedError(Exception):
        pass

    def stop(done, total, message):
        if "outliers" in message:
            raise EndedError

    def analyse(progress):
        with gramian.checkpoint(tmp_path / "passes"):
            return analyse_cohort(cohort, GenotypePCA(6, random_state=0), progress=progress)

    with pytest.raises(EndedError):
        analyse(stop)
    kept = len(list((tmp_path / "passes").glob("*.npz")))
    assert kept > 5
    resumed = analyse(None)
    np.testing.assert_array_equal(resumed.scores, found.scores)
    assert resumed.table() == found.table()
    with pytest.raises(EndedError):
        analyse(stop)
    with pytest.raises(ValueError, match="king_cutoff"), gramian.checkpoint(tmp_path / "passes"):
        analyse_cohort(cohort, GenotypePCA(6, random_state=0), king_cutoff=0.1)


def test_workers_find_the_same(cohort, found):
    with gramian.cluster("processes[2]"):
        there = analyse_cohort(cohort, GenotypePCA(6, random_state=0))
    assert there.table() == found.table()
    for name in ("scores", "fitted", "related", "outlying", "snps"):
        assert np.array_equal(getattr(there, name), getattr(found, name))
    assert found.kinship is not None
    assert np.array_equal(there.kinship.kinship, found.kinship.kinship)


def test_progress_never_runs_backwards(cohort):
    seen = []
    analyse_cohort(cohort, GenotypePCA(3), progress=lambda done, total, message: seen.append((done, total, message)))
    assert all(total == 1000 and 0 <= done <= 1000 for done, total, _ in seen)
    done = [each[0] for each in seen]
    assert done == sorted(done)
    assert len({message.partition(":")[0] for *_, message in seen}) > 5


def test_what_cannot_be_done_is_said(cohort):
    calls = cohort.calls(1000, 5000)
    snps = Snps.numbered(4000)
    snps.position[:], snps.id[:] = 0, "."
    snps.position[:] = 0
    with pytest.raises(SourceError, match="rm-dup"):  # neither name nor place
        analyse_cohort(Genotypes.from_calls(calls, snps=snps), GenotypePCA(2))
    snps.id[:] = [f"rs{i}" for i in range(4000)]
    few = Genotypes.from_calls(calls, snps=snps)
    told = analyse_cohort(few, GenotypePCA(2), before=False)
    assert told.pruning.window.size == 50
    assert any("no positions" in remark and "pruned" in remark for remark in told.remarks)
    assert any("regions that the data show" in remark for remark in told.remarks)
    small = analyse_cohort(few.select(samples=np.arange(31, 60)), GenotypePCA(2), before=False)
    assert small.pruning is None
    assert any("29 people are founders" in remark for remark in small.remarks)
    with pytest.raises(ValueError, match="outliers"):
        analyse_cohort(few, outliers="none")


def test_snps_without_names_of_their_own_get_some():
    snps = Snps.numbered(4)
    snps.id[:] = [".", "rs1", "rs1", "rs2"]
    G, said = name_snps(Genotypes.from_calls(np.zeros((4, 2), int), snps=snps))
    assert G.snps.id.tolist() == ["1:1000:G:A", "1:2000:G:A", "1:3000:G:A", "rs2"]
    assert "3 SNPs" in said
    same, nothing = name_snps(G)
    assert same is G
    assert nothing == ""


@pytest.mark.parametrize("seed", [0, 1])
def test_relatives_are_placed_where_strangers_of_their_ancestry_are(seed):
    """People between two populations: slopes of their places over their ancestry, for each kind of relative.

    With 4,000 SNPs least squares draw strangers to 0.4 of their place, and OADP puts copies twice as far out.
    """
    rng = np.random.default_rng(seed)
    M, n, kids = 4000, 200, 60
    f, spread = rng.uniform(0.2, 0.8, M), 0.1
    P = np.clip(np.stack([rng.normal(f, spread * np.sqrt(f * (1 - f))) for _ in range(2)], axis=1), 0.02, 0.98)

    def draw(q):
        return (rng.random((M, len(q))) < P @ np.stack([q, 1 - q])).astype(int)

    q = rng.uniform(0, 1, n)
    one, other = draw(q), draw(q)
    at = rng.integers(0, n, kids)
    half = np.where(rng.random((M, kids)) < 0.5, one[:, at], other[:, at]) + draw(q[at])
    G = Genotypes.from_calls(np.hstack([one + other, half, (one + other)[:, at], draw(q[at]) + draw(q[at])]))
    fitted = np.arange(n + 3 * kids) < n
    model = GenotypePCA(3).fit(G.select(samples=fitted))
    slope = np.polyfit(q, model.eigenvectors_[:, 0] * model.singular_values_[0], 1)[0]
    found = project_relatives(model, G, fitted, king(G, least=0.0884))[:, 0]
    children, copies, strangers = (np.polyfit(q[at], part, 1)[0] / slope for part in np.split(found, 3))
    assert abs(children - 1) < 0.1
    assert abs(copies - np.polyfit(q[at], (model.eigenvectors_ * model.singular_values_)[at, 0], 1)[0] / slope) < 0.05
    assert 0.7 < strangers < 1.2


@pytest.mark.skipif(not (HAPMAP / "hm3.bed").exists(), reason="the HapMap 3 data are not here")
def test_every_number_of_the_guide_on_hapmap():
    guide = (Path(__file__).parents[2] / "docs" / "genotype-cohorts.md").read_text("utf-8")
    _, _, rest = guide.partition("### HapMap 3 from beginning to end")
    section = rest.partition("## What every fit looks for")[0]
    told = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if line.startswith("| ")]
    found = analyse_cohort(HAPMAP / "hm3.bed", GenotypePCA(20), before=False)
    first = {of: next(step for step in found.steps if step.of == of) for of in ("SNPs", "samples")}
    rows = [["step", "of", "before", "removed", "left"]]
    for of in ("SNPs", "samples"):
        early = [step for step in found.steps if step.of == of and step.name not in AFTER]
        before = first[of].removed + first[of].left
        rows.append(["filters", of, str(before), str(sum(step.removed for step in early)), str(early[-1].left)])
    for step in found.steps:
        if step.name in AFTER:
            rows.append([step.name, step.of, str(step.removed + step.left), str(step.removed), str(step.left)])
    assert told == rows
    G = open_bed(HAPMAP / "hm3.bed")
    everybody = GenotypePCA(20).fit(G)
    passed = everybody.tracy_widom_.significant(), found.model.tracy_widom_.significant()
    assert f"{passed[0]} pass" in section
    assert f"of these {passed[1]}." in section
    assert f"The build of the genome is recognised: {found.build}." in section
    (relatives,) = find_artefacts(everybody, G).found
    for part in relatives.text.partition("; 2469")[0], relatives.text.partition("). ")[2].partition(". A family")[0]:
        assert part in " ".join(section.split())
    n, p = G.shape
    assert f"{n} people" in section
    assert f"{p:,} SNPs" in section


@pytest.mark.skipif(not (HAPMAP / "hm3.bed").exists(), reason="the HapMap 3 data are not here")
@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
def test_relatives_of_hapmap_are_those_that_plink_removes(tmp_path):
    found = analyse_cohort(HAPMAP / "hm3.bed", GenotypePCA(10), before=False)
    command = ["plink2", "--bfile", HAPMAP / "hm3", "--king-cutoff", "0.0884", "--out", tmp_path / "x"]
    subprocess.run(command, check=True, capture_output=True)
    found.write_lists(tmp_path / "ours")
    for kind in ("in", "out"):
        theirs, ours = ((tmp_path / f"{name}.king.cutoff.{kind}.id").read_text() for name in ("x", "ours"))
        assert theirs == ours
    assert (found.related.sum(), found.build, found.known.sum()) == (70, "hg18", 134)
    assert found.model.tracy_widom_.significant() < 20  # of 46 with everybody


def test_samples_of_one_file_keep_their_ambiguous_snps(cohort):
    """A/T and C/G SNPs cannot be on two strands within a file."""
    snps = Snps.numbered(3000)
    snps.a1[:], snps.a2[:] = "A", "T"
    G = Genotypes.from_calls(cohort.calls(2500, 5500), Samples.numbered(160), snps)
    fitted = np.arange(160) < 150
    scores = project_relatives(GenotypePCA(2).fit(G.select(samples=fitted)), G, fitted, None)
    assert scores.shape == (10, 2)
