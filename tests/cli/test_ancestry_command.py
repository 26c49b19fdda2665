"""``gramian ancestry`` prints and writes what the functions find, whatever the order of SNPs and alleles."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

from gramian.cli import main
from gramian.genetics import GenotypePCA, ancestry_shares, classify_ancestry, group_frequencies, project, write_bed
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A reference of two groups; new people at the same SNPs in another order, half of them by the other allele."""
    rng = np.random.default_rng(0)
    p = 400
    f = rng.uniform(0.1, 0.9, (2, p))
    calls = rng.binomial(2, np.repeat(f, [30, 25], axis=0)).T
    new = rng.binomial(2, np.stack([f[0], f[1], f.mean(axis=0), rng.uniform(0.1, 0.9, p)])).T
    snps = Snps.numbered(p)
    snps.chromosome[:], snps.position[:] = "1", np.arange(p) + 1
    snps.a1[:], snps.a2[:] = "A", "G"
    monkeypatch.chdir(tmp_path)
    write_bed("known.bed", Genotypes.from_calls(calls, snps=snps))
    order, flip = rng.permutation(p), rng.random(p) < 0.5
    turned = snps.take(order)
    turned.a1[flip[order]], turned.a2[flip[order]] = "G", "A"
    people = Samples.numbered(4)
    people.iid[:] = [f"new{i}" for i in range(4)]
    write_bed("new.bed", Genotypes.from_calls(np.where(flip[:, None], 2 - new, new)[order], people, turned))
    write_bed("same.bed", Genotypes.from_calls(new, people, snps))
    rows = [f"s{i + 1},{'east' if i < 30 else 'west'}" for i in range(55)]
    Path("groups.csv").write_text("IID,group\n" + "\n".join(rows) + "\n")
    return tmp_path


def test_numbers_are_those_of_the_functions(here):
    arguments = ["ancestry", "new.bed", "--reference", "known.bed", "--labels", "groups.csv", "-k", 2, "--out", "to/x"]
    facts = json.loads(call(*arguments, "--json").stdout)
    labels = ["east"] * 30 + ["west"] * 25
    model = GenotypePCA(2).fit(open_bed("known.bed"))
    placed = project(model, open_bed("same.bed"))
    want = classify_ancestry(model.eigenvectors_ * model.singular_values_, labels, placed.scores)
    names, F = group_frequencies(open_bed("known.bed"), labels)
    shares = ancestry_shares(open_bed("same.bed"), F, names)
    head, *rows = [line.split("\t") for line in Path("to/x.ancestry.tsv").read_text().splitlines()]
    assert head == ["FID", "IID", "GROUP", "P", "east", "west", "SHARE_east", "SHARE_west"]
    assert [row[1] for row in rows] == ["new0", "new1", "new2", "new3"]
    assert [row[2] for row in rows] == want.assigned.tolist()
    assert rows[0][2] == "east"
    assert rows[1][2] == "west"
    assert "unknown" in (rows[2][2], rows[3][2])
    numbers = np.array([row[3:] for row in rows], float)
    assert_allclose(numbers[:, 0], want.p_values, rtol=1e-4, atol=1e-12)
    assert_allclose(numbers[:, 1:3], want.posterior, atol=1e-4)
    assert_allclose(numbers[:, 3:], shares.shares, atol=1e-3)
    assert sum(facts["groups"].values()) == 4
    assert facts["calibration"]["members"] == [30, 25]
    assert facts["calibration"]["right"] == want.calibration["right"].tolist()
    assert facts["largest_gap"] <= 1e-3
    assert Path("to/x.ancestry.png").read_bytes()[:4] == b"\x89PNG"
    assert "x.ancestry.tsv" in call(*arguments, code=2).output


def test_wrong_use_is_explained(here):
    base = ["ancestry", "new.bed", "--labels", "groups.csv", "--out", "x"]
    assert "--reference" in call(*base, code=2).output
    Path("one.csv").write_text("IID,group\n" + "\n".join(f"s{i + 1},east" for i in range(55)) + "\n")
    output = call(*base[:2], "--reference", "known.bed", "--labels", "one.csv", "--out", "x", code=3).output
    assert "two are needed" in output
    assert not Path("x.ancestry.tsv").exists()
