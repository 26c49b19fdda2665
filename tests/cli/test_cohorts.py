"""The commands that make a cohort ready: what they write, print and refuse."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gramian.cli import main
from gramian.cli.genotype_reading import read_labels
from gramian.cli.grm import grm_command
from gramian.cli.king import king_command
from gramian.cli.prune import prune_command
from gramian.genetics import Filters, king, prune, read_grm, unrelated, write_bed
from gramian.sources.plink import open_bed


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """Two populations of 40 people with SNPs that are correlated."""
    bed = tmp_path_factory.mktemp("cohort") / "cohort.bed"
    call("simulate", "populations", "--out", bed, "--sizes", "40,40", "--snps", 600, "--ld", 0.8, "--missing", 0.02)
    return bed


@pytest.fixture
def here(study, tmp_path, monkeypatch):
    for path in study.parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [prune_command, king_command])
def test_examples_of_the_help_run(here, command):
    for example in command.examples:
        call(*shlex.split(example)[1:])


def test_convert_writes_the_same_genotypes_from_any_name(here):
    G = open_bed("cohort.bed")
    for i, rows in enumerate((slice(0, 300), slice(300, 600))):
        write_bed(f"chr{i + 1}.bed", G.calls(0, 600)[rows], G.samples, G.snps.take(rows))
    facts = json.loads(call("convert", "chr1.bed", "chr2.bed", "--out", "new/all.bed", "--json").stdout)
    assert (facts["samples"], facts["snps"]) == G.shape
    assert Path("new/all.bed").read_bytes() == Path("cohort.bed").read_bytes()
    call("convert", "chr{1..2}.bed", "--out", "again.bed", "--maf", 0.1)
    assert np.array_equal(open_bed("again.bed").snps.id, Filters(maf=0.1).apply(G).source.snps.id)
    found = [call("pca", *name, "--json", "-k", 2).stdout for name in (["chr*.bed"], ["cohort"])]
    first, second = (json.loads(text)["components"]["eigenvalue"] for text in found)
    assert first == second
    assert json.loads(call("info", "chr*.bed", "--json").stdout)["snps"] == 600
    assert "chr3.bed" in call("convert", "chr{1..3}.bed", "--out", "x.bed", code=2).output
    Path("old.ped").write_text("")
    assert "plink1.9 --file old" in call("pca", "old.ped", code=3).output


def test_convert_writes_names_without_blanks(here):
    fam = Path("cohort.fam").read_text().replace(" ", "\t").replace("A2", "A 2")
    Path("cohort.fam").write_text(fam)
    assert "white space" in call("convert", "cohort.bed", "--out", "new.bed").output
    assert open_bed("new.bed").samples.iid[1] == "A_2"


@pytest.mark.parametrize("labels", ['IID,group\n{},"x, y"\n', "sample\tgroup\t\t\n{}\tx, y\n", "IID;group\n{};x, y\n"])
def test_labels_of_other_programs(here, labels):
    head, row, _ = labels.split("\n")
    samples = open_bed("cohort.bed").samples
    Path("l.txt").write_text("\n".join([head, *(row.format(name) for name in samples.iid)]) + "\n")
    assert set(read_labels(Path("l.txt"), samples).groups) == {"x, y"}


def test_prune_writes_both_lists_and_an_account(here):
    facts = json.loads(call("prune", "cohort", "--out", "new/x", "--order", "plink1", "--json").stdout)
    G = open_bed("cohort.bed")
    want = prune(G, order="plink1")
    for ending, mask in (("in", want.kept), ("out", want.removed)):
        assert Path(f"new/x.prune.{ending}").read_text().split() == list(G.snps.id[mask])
    assert (facts["kept"], facts["removed"]) == (want.kept.sum(), want.removed.sum())
    assert sum(facts["chromosomes"]["kept"]) == facts["kept"]
    call("pca", "cohort.bed", "--extract", "new/x.prune.in", "--out", "r", "--no-report", "--no-pictures")
    assert "--force" in call("prune", "cohort.bed", "--out", "new/x", code=2).output
    call("prune", "cohort.bed", "--clump", 500, 0.2, "--out", "new/x", "--force")


def test_prune_refuses_what_it_cannot_do(here):
    for wrong in (("5x", 1, 0.2), ("50", 0, 0.2), ("50", 60, 0.2), ("500kb", 5, 0.2), ("50", 5, 1)):
        assert (
            "--indep-pairwise" in call("prune", "cohort.bed", "--indep-pairwise", *wrong, "--out", "x", code=2).output
        )
    assert "--clump" in call("prune", "cohort", "--clump", 0, 0.2, "--out", "x", code=2).output
    both = ("--clump", 5, 0.2, "--indep-pairwise", 5, 5, 0.2)
    assert "contradict" in call("prune", "cohort", *both, "--out", "x", code=2).output
    assert "--out" in call("prune", "cohort", "--out", ".", code=2).output
    Path("few.txt").write_text("".join(f"{name}\n" for name in open_bed("cohort.bed").samples.iid[:30]))
    assert "--least-founders" in call("prune", "cohort", "--keep", "few.txt", "--out", "x", code=3).output
    bim = Path("cohort.bim").read_text().splitlines()
    Path("cohort.bim").write_text("\n".join([bim[0], bim[0], *bim[2:]]) + "\n")
    assert "snp1" in call("prune", "cohort", "--out", "x", code=3).output.replace(bim[0].split()[1], "snp1")
    assert not list(here.glob("x.prune*"))


def test_monomorphic_snps_are_counted_and_listed(here):
    G = open_bed("cohort.bed")
    bed = bytearray(Path("cohort.bed").read_bytes())
    bed[3 : 3 + G.width] = bytes(np.zeros(G.width, np.uint8))
    Path("cohort.bed").write_bytes(bed)
    facts = json.loads(call("prune", "cohort", "--out", "x", "--json").stdout)
    assert facts["monomorphic"] == 1
    assert Path("x.prune.out").read_text().split()[0] == G.snps.id[0]


def test_king_writes_pairs_and_lists(here):
    facts = json.loads(call("king", "cohort", "--cutoff", 0.01, "--out", "new/x", "--json").stdout)
    G = open_bed("cohort.bed")
    kept = unrelated(king(G), 0.01)
    assert (facts["kept"], facts["removed"]) == (kept.sum(), (~kept).sum())
    assert facts["removed"] > 0
    lines = Path("new/x.king.cutoff.out.id").read_text().splitlines()
    assert [line.split()[1] for line in lines[1:]] == list(G.samples.iid[~kept])
    assert len(Path("new/x.kin0").read_text().splitlines()) == facts["pairs"] + 1
    call("pca", "cohort", "--remove", "new/x.king.cutoff.out.id", "--out", "r", "--no-report", "--no-pictures")
    call("king", "cohort", "--out", "all")
    assert len(Path("all.kin0").read_text().splitlines()) == 80 * 79 // 2 + 1
    assert "--least" in call("king", "cohort", "--cutoff", 0.1, "--least", 0.2, "--out", "y", code=2).output
    assert "--out" in call("king", "cohort", "--out", ".", code=2).output


def test_grm_writes_three_files(here):
    call("prune", "cohort", "--out", "cohort")
    for example in grm_command.examples:
        call(*shlex.split(example)[1:])
    facts = json.loads(call("grm", "cohort", "--out", "x", "--json").stdout)
    found = read_grm("x")
    assert (len(found.samples), facts["snps"]) == (80, 600)
    assert np.allclose(np.diag(found.matrix).mean(), 1, atol=0.2)
    assert "--force" in call("grm", "cohort", "--out", "x", code=2).output
    assert "--out" in call("grm", "cohort", "--out", ".", code=2).output
