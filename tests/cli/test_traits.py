"""``gramian heritability`` and ``gramian loco``: every number they print and write is that of the functions."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose

from gramian.cli import main
from gramian.cli.heritability import heritability_command
from gramian.cli.loco import loco_command
from gramian.genetics import heritability, whole_genome_ridge, write_bed
from gramian.sources.plink import Genotypes, open_bed


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A cohort, traits of most of its people in another order, and covariates."""
    rng = np.random.default_rng(0)
    n, p = 90, 60
    calls = rng.binomial(2, rng.uniform(0.2, 0.5, (p, 1)), (p, n))
    height = calls.T @ rng.normal(size=p) + 4 * rng.normal(size=n)
    calls[rng.random(calls.shape) < 0.02] = -1
    monkeypatch.chdir(tmp_path)
    write_bed("cohort.bed", Genotypes.from_calls(calls))
    bim = [line.split("\t") for line in Path("cohort.bim").read_text().splitlines()]
    lines = ["\t".join([str(1 + j // 20), *fields[1:3], str(j + 1), *fields[4:]]) for j, fields in enumerate(bim)]
    Path("cohort.bim").write_text("\n".join(lines) + "\n")
    names = open_bed("cohort.bed").samples.iid
    case = 1 + (height > np.median(height))
    rows = [f"0\t{names[i]}\t{'NA' if i == 4 else height[i]}\t{-9 if i == 9 else case[i]}" for i in rng.permutation(n)]
    Path("traits.txt").write_text("#FID\tIID\theight\tcase\n" + "\n".join(rows[:-1]) + "\n")
    ages = [f"0 {name} {20 + i % 50}" for i, name in enumerate(names)]
    for name in ("ages.txt", "covariates.txt"):
        Path(name).write_text("FID IID age\n" + "\n".join(ages) + "\n")
    return tmp_path


def read_traits(name):
    """The traits in the order of the cohort."""
    rows = [line.split() for line in Path("traits.txt").read_text().splitlines()]
    column = rows[0].index(name)
    values = {row[1]: row[column] for row in rows[1:]}
    text = [values.get(iid, "NA") for iid in open_bed("cohort.bed").samples.iid]
    return np.array([np.nan if v in ("NA", "-9") else float(v) for v in text])


AGE = 20 + np.arange(90) % 50


@pytest.mark.parametrize("command", [heritability_command, loco_command])
def test_examples_of_the_help_run(here, command):
    for example in command.examples:
        call(*shlex.split(example)[1:], "--force")


@pytest.mark.parametrize("method", ["reml", "haseman-elston"])
def test_heritability_prints_what_it_finds(here, method):
    arguments = ["heritability", "cohort.bed", "--pheno", "traits.txt", "--pheno-name", "height", "--method", method]
    arguments += ["--covar", "ages.txt"]
    facts = json.loads(call(*arguments, "--json").stdout)
    want = heritability(
        open_bed("cohort.bed"), read_traits("height"), AGE, method=method, random_state=facts.get("seed", 0)
    )
    for name in ("h2", "standard_error", "genetic_variance", "residual_variance", "p_value", "probe_error"):
        assert facts[name] == pytest.approx(getattr(want, name), rel=1e-9), name
    assert facts["interval"] == pytest.approx(want.interval)
    assert (facts["samples"], facts["snps"], facts["covariates"]) == (len(want.samples), 60, ["age"])
    text = call(*arguments).output
    assert f"h² = {want.h2:.4f} ± {want.standard_error:.4f}" in text
    low, high = want.interval
    assert f"95 % between {low:.4f} and {high:.4f}; p = {want.p_value:.2g}" in text
    assert f"variance {want.genetic_variance:.6g} with the SNPs, {want.residual_variance:.6g} without" in text


def test_heritability_writes_what_is_predicted(here):
    arguments = ["heritability", "cohort.bed", "--pheno", "traits.txt", "--pheno-name", "height", "--out", "out.tsv"]
    facts = json.loads(call(*arguments, "--json").stdout)
    y = read_traits("height")
    want = heritability(open_bed("cohort.bed"), y)
    head, *rows = [line.split("\t") for line in Path("out.tsv").read_text().splitlines()]
    assert head == ["FID", "IID", "height", "left_out", "breeding_value"]
    assert [row[1] for row in rows] == list(open_bed("cohort.bed").samples.iid[want.samples])
    numbers = np.array([row[2:] for row in rows], float)
    assert_allclose(numbers, np.column_stack([y[want.samples], want.left_out, want.breeding_values]), rtol=1e-12)
    assert facts["r2_left_out"] == pytest.approx(np.corrcoef(numbers[:, 0], numbers[:, 1])[0, 1] ** 2)
    assert "out.tsv" in call(*arguments, code=2).output  # is there already


def test_liability_of_a_disease(here):
    arguments = ["heritability", "cohort.bed", "--pheno", "traits.txt", "--prevalence", 0.1, "--json", "--pheno-name"]
    facts = json.loads(call(*arguments, "case").stdout)
    y = read_traits("case") - 1
    want = heritability(open_bed("cohort.bed"), y)
    assert facts["h2"] == pytest.approx(want.h2, rel=1e-9)
    assert facts["h2_liability"] == pytest.approx(want.on_liability_scale(0.1, float(np.nanmean(y[want.samples]))))
    assert "two" in call(*arguments, "height", code=2).output


def test_loco_writes_what_it_predicts(here):
    arguments = [
        "loco",
        "cohort.bed",
        "--pheno",
        "traits.txt",
        "--covar",
        "ages.txt",
        "--block",
        10,
        "--out",
        "new/step1",
    ]
    facts = json.loads(call(*arguments, "--json").stdout)
    Y = np.column_stack([read_traits("height"), read_traits("case")])
    want = whole_genome_ridge(open_bed("cohort.bed"), Y, AGE, traits=["height", "case"], block=10, random_state=0)
    assert facts["chromosomes"] == ["1", "2", "3"]
    for j, (name, found) in enumerate(facts["traits"].items()):
        assert (name, found["known"]) == (want.traits[j], int(np.isfinite(Y[:, j]).sum()))
        assert found["r2"] == pytest.approx(want.r2[j])
        assert found["share"] == want.shares[j]
        rows = [line.split() for line in Path(f"new/step1_{j + 1}.loco").read_text().splitlines()]
        values = np.array([[np.nan if cell == "NA" else float(cell) for cell in row[1:]] for row in rows[1:]])
        known = np.isfinite(Y[:, j])
        for chromosome in ("1", "2", "3"):
            assert_allclose(
                values[int(chromosome) - 1, known], want.left_out[chromosome][known, j], rtol=1e-7, atol=1e-12
            )


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["heritability", "cohort.bed"], 2, "--pheno"),
        (["heritability", "cohort.bed", "--pheno", "traits.txt"], 2, "height, case"),
        (["heritability", "cohort.bed", "--pheno", "traits.txt", "--pheno-name", "weight"], 3, "weight"),
        (["heritability", "cohort.bed", "--pheno", "text.txt", "--pheno-name", "eyes"], 3, "eyes"),
        (["loco", "cohort.bed", "--pheno", "traits.txt", "--out", "."], 2, "--out"),
    ],
)
def test_wrong_use_is_explained(here, arguments, code, named):
    names = open_bed("cohort.bed").samples.iid
    Path("text.txt").write_text("IID eyes\n" + "\n".join(f"{name} blue" for name in names) + "\n")
    assert named in call(*arguments, code=code).output


def test_people_without_a_covariate_are_left_out(here):
    lines = Path("ages.txt").read_text().splitlines()
    Path("ages.txt").write_text("\n".join([*lines[:5], "0 s5 NA", *lines[6:]]) + "\n")
    arguments = ["loco", "cohort.bed", "--pheno", "traits.txt", "--covar", "ages.txt", "--block", 10, "--out", "step1"]
    facts = json.loads(call(*arguments, "--json").stdout)
    assert facts["samples"] == 89
    assert any("s5" in text for text in facts["warnings"])
