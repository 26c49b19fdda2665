"""What the commands for genotypes say: the content of a fileset, and words that could be misread."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gramian.cli import main
from gramian.cli.genotype_reading import name_filter, read_labels
from gramian.genetics.filters import Filters, NothingLeftError, Step, genome_order
from gramian.genetics.simulation import simulate_genotypes
from gramian.sources.plink import Genotypes, Snps, open_bed

FAST = ("--no-report", "--no-pictures")
HAPMAP = Path(__file__).parents[3] / "shared" / "data" / "hapmap3"
NAMES = ("10", "2", "X", "0", "GL1")


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def calls():
    """120 SNPs × 41 samples; one SNP without a call, one of one allele, a person hardly read, a person not read."""
    rng = np.random.default_rng(3)
    found = rng.binomial(2, rng.uniform(0.2, 0.8, (120, 1)), (120, 41))
    found[rng.random(found.shape) < 0.02] = -1
    found[7], found[9] = -1, np.where(found[9] < 0, -1, 2)
    found[:60, 4], found[:, 5] = -1, -1
    return found


@pytest.fixture
def cohort(calls, tmp_path, monkeypatch):
    """The same as files, written here a byte at a time."""
    monkeypatch.chdir(tmp_path)
    code = np.array([3, 2, 0, 1])  # none, one, two copies of A1; the last is −1, missing
    bits = np.zeros((120, 44), dtype=np.uint8)
    bits[:, :41] = code[calls]
    packed = (bits.reshape(120, 11, 4) << np.array([0, 2, 4, 6])).sum(axis=2).astype(np.uint8)
    Path("cohort.bed").write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
    where = [NAMES[j // 24] for j in range(120)]
    Path("cohort.bim").write_text("".join(f"{c}\trs{j}\t0\t{1000 - j}\tA\tG\n" for j, c in enumerate(where)))
    Path("cohort.fam").write_text("".join(f"f{i} i{i} 0 0 {i % 3} -9\n" for i in range(41)))
    return tmp_path


def test_info_counts_what_is_in_the_files(cohort, calls):
    found = json.loads(call("info", "cohort.bed", "--json").stdout, parse_constant=pytest.fail)
    gone = calls < 0
    assert (found["command"], found["samples"], found["snps"], found["bytes"]) == ("info", 41, 120, 3 + 120 * 11)
    assert found["sexes"] == {"male": 14, "female": 13, "unknown": 14}
    assert found["missing"]["mean"] == pytest.approx(gone.mean())
    assert found["missing"]["highest_snp"] == found["missing"]["highest_sample"] == 1
    one = sum(len(set(row[row >= 0])) == 1 and 1 not in row for row in calls)
    assert found["counts"]["snps"] == {
        "above_5_percent": int(np.sum(gone.mean(axis=1) > 0.05)),
        "without_calls": 1,
        "of_one_allele": one,
    }
    assert found["counts"]["samples"] == {"above_5_percent": int(np.sum(gone.mean(axis=0) > 0.05)), "without_calls": 1}
    assert "f5:i5" in found["notes"][-1]


def test_info_has_a_row_for_each_chromosome_in_the_order_of_the_genome(cohort, calls):
    rows = json.loads(call("info", "cohort.bed", "--json").stdout)["chromosomes"]
    assert [row["chromosome"] for row in rows] == ["2", "10", "X", "GL1", "unplaced"]
    for row, name in zip(rows, ("2", "10", "X", "GL1", "0"), strict=True):
        held = range(24 * NAMES.index(name), 24 * NAMES.index(name) + 24)
        assert (row["SNPs"], row["first position"], row["last position"]) == (24, 1000 - held[-1], 1000 - held[0])
        assert row["missing"] == pytest.approx((calls[list(held)] < 0).mean())


def test_info_on_the_screen(cohort):
    text = call("info", "cohort.bed").stdout
    assert text.startswith("cohort.bed: 41 samples × 120 SNPs")
    assert "14 male, 13 female, 14 unknown (sex)" in text
    assert "--geno 0.05" in text
    assert "rs1" not in text  # no row for each SNP
    Path("cohort.bed").write_bytes(Path("cohort.bed").read_bytes()[:-5])
    line = call("info", "cohort.bed", code=3).stderr
    assert re.search("take 1323 bytes, the file has 1318", line)


@pytest.mark.skipif(not (HAPMAP / "hm3.bed").exists(), reason="the HapMap 3 data are not here")
def test_info_of_hapmap():
    found = json.loads(call("info", HAPMAP / "hm3.bed", "--json").stdout)
    with (HAPMAP / "hm3.bim").open() as lines:
        names = [line.split()[0] for line in lines]
    assert {row["chromosome"]: row["SNPs"] for row in found["chromosomes"]} == {n: names.count(n) for n in set(names)}
    assert [row["chromosome"] for row in found["chromosomes"]] == [str(i) for i in range(1, 23)]


def test_counts_of_chromosomes_left_out_cannot_be_misread():
    """Of 3 SNPs on chromosome 12, "12 3" would read as one number."""
    snps = Snps.numbered(8)
    snps.chromosome[:] = ["1", "1", "12", "12", "12", "9", "X", "0"]
    calls = np.tile([0, 1, 2, 1], (8, 1))
    found = Filters(chromosomes="1").apply(Genotypes.from_calls(calls, snps=snps))
    assert found.steps[0].detail == "1; left out: 1 on 9, 3 on 12, 1 on X, 1 unplaced"
    assert list(found.left_out.items()) == [("9", 1), ("12", 3), ("X", 1), ("0", 1)]
    assert genome_order(snps.chromosome) == ["1", "9", "12", "X", "0"]


def test_filters_that_leave_nothing_are_named_as_options(cohort):
    call("simulate", "populations", "--out", "pops.bed", "--sizes", "20,20", "--snps", 200)
    line = call("pca", "pops.bed", "--range", "6:5-9", "--json", code=3).stderr
    assert "No SNPs are left after the filter --range, which removed the last 200" in line
    assert "filter of removed" not in line  # the heads of a table
    steps = Step("monomorphic", "SNPs", 1, 9), Step("max_sample_missing", "samples", 3, 7), Step("maf", "SNPs", 2, 0)
    said = NothingLeftError(steps).text(name_filter)
    assert "after the filter --maf," in said
    assert "of one allele alone removed 1 SNPs, --mind removed 3 samples" in said


def test_formats_of_the_same_names_are_refused_in_words_of_the_command(cohort):
    line = call("pca", "cohort.bed", "--formats", "plink1,plink2", "--out", "results", code=2).stderr
    assert "another --out" in line
    assert "prefix" not in line


def test_significance_of_all_that_was_computed_is_a_lower_bound(cohort):
    call("simulate", "populations", "--out", "pops.bed", "--sizes", "30,30,30,30,30", "--snps", 2000, "--fst", 0.1)
    words = {}
    for solver in ("krylov", "exact"):
        text = call("pca", "pops.bed", "-k", 2, "--solver", solver, "--out", solver, *FAST).stdout
        words[solver] = next(line.strip() for line in text.splitlines() if "Tracy–Widom p <" in line)
    assert "all 2 that were computed, and perhaps more" in words["krylov"]
    assert "4 components, 2 of them computed" in words["exact"]


def test_the_table_of_fst_is_named_after_the_labels(cohort):
    call("simulate", "europe", "--out", "europe.bed", "--people", 150, "--snps", 300)
    text = call("pca", "europe.bed", "-k", 2, "--labels", "europe.tsv", "--fst", "--out", "results", *FAST).stdout
    assert "F_ST by country (Hudson)" in text
    assert "countrys" not in text


def test_labels_without_a_header_are_told(cohort):
    Path("bare.txt").write_text("".join(f"f{i}\ti{i}\t{'AB'[i % 2]}\n" for i in range(41)))
    samples = open_bed("cohort.bed").samples
    found = read_labels(Path("bare.txt"), samples)
    assert found.groups[:3].tolist() == ["A", "B", "A"]
    assert "no header" in found.notes[0]
    Path("named.txt").write_text("FID\tIID\tgroup\n" + Path("bare.txt").read_text())
    assert read_labels(Path("named.txt"), samples).notes == []


def test_what_keeps_oadp_from_being_used_is_said(cohort):
    call("simulate", "populations", "--out", "pops.bed", "--sizes", "20,20", "--snps", 300)
    smart = ("--scaling", "smartpca", "--missing", "least-squares", "--exact", "--formats", "smartpca")
    call("pca", "pops.bed", "-k", 2, *smart, "--out", "ref", *FAST)
    Path("bare").mkdir()
    for name in ("pca.snpweight", "pca.eval"):
        (Path("bare") / f"other{Path(name).suffix}").write_bytes((Path("ref") / name).read_bytes())
    loadings = ("project", "bare/other.snpweight", "pops.bed", "--snps", "pops.bim", "--json")
    assert "--eigenvalues would allow oadp" in call(*loadings).stderr
    heard = call(*loadings, "--eigenvalues", "bare/other.eval").stderr
    assert "--total-variance beside --eigenvalues would allow oadp" in heard
    assert "as --frequencies" in heard


def test_results_name_the_file_and_not_its_folders(tmp_path: Path) -> None:
    bed, out = tmp_path / "people.bed", tmp_path / "out"
    simulate_genotypes(bed, 300, groups=["a"] * 20 + ["b"] * 20, fst=0.1, seed=1)
    assert CliRunner().invoke(main, ["pca", str(bed), "-k", "2", "--out", str(out)]).exit_code == 0
    holding = [path.name for path in out.iterdir() if str(tmp_path).encode() in path.read_bytes()]
    assert holding == []
