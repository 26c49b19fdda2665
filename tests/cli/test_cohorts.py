"""The commands that make a cohort ready: what they write, print and refuse."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gramian.cli import main
from gramian.cli.prune import prune_command
from gramian.genetics import prune
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


@pytest.mark.parametrize("command", [prune_command])
def test_examples_of_the_help_run(here, command):
    for example in command.examples:
        call(*shlex.split(example)[1:])


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
