"""``gramian pca --auto``, its single steps, and what every fit of genotypes says of components that are no ancestry."""

import csv
import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gramian
from gramian.cli import main
from gramian.cli.genotypes import COHORT, genotype_pca
from gramian.genetics import GenotypePCA, analyse_cohort, simulate_genotypes, write_bed

FAST = ("--no-report", "--no-pictures")


def call(*arguments, code=0):
    result = CliRunner().invoke(main, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """120 people with a copy and a child among them, 3,000 SNPs, 1 % missing, a person hardly read."""
    place = tmp_path_factory.mktemp("auto")
    rng = np.random.default_rng(0)
    groups = ["A"] * 60 + ["B"] * 60
    G = simulate_genotypes(place / "x.bed", 3000, groups=groups, fst=0.05, ld=0.5, missing=0.01, seed=3)
    calls = G.calls(0, 3000).copy()
    calls[:, 3] = calls[:, 0]
    calls[:, 70] = rng.binomial(1, np.clip(calls[:, 71], 0, 2) / 2) + rng.binomial(1, np.clip(calls[:, 72], 0, 2) / 2)
    calls[100:, 9] = -1
    G.snps.position[:] = 50_000 * np.arange(1, 3001)
    write_bed(place / "cohort.bed", calls, G.samples, G.snps)
    rows = [f"{f}\t{i}\t{g}\n" for f, i, g in zip(G.samples.fid, G.samples.iid, groups, strict=True)]
    (place / "cohort.tsv").write_text("FID\tIID\tgroup\n" + "".join(rows))
    return place


@pytest.fixture
def here(study, tmp_path, monkeypatch):
    for name in ("cohort.bed", "cohort.bim", "cohort.fam", "cohort.tsv"):
        (tmp_path / name).write_bytes((study / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_auto_writes_components_of_everybody_lists_pictures_and_a_report(here):
    result = call("pca", "cohort.bed", "--auto", "-k", 3, "--labels", "cohort.tsv", "--out", "out")
    found = analyse_cohort("cohort.bed", GenotypePCA(3, random_state=0))
    with Path("out/pca.eigenvec").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["IID"] for row in rows] == found.source.samples.iid.tolist()
    ours = np.array([[float(row[f"PC{j}"]) for j in (1, 2, 3)] for row in rows])
    np.testing.assert_allclose(ours, found.of_everybody().eigenvectors_, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(gramian.load("out/model.gramian").eigenvectors_, found.model.eigenvectors_)
    names = {path.name for path in Path("out").iterdir()}
    assert {*found.list_files("pca"), "before.png", "roles.png", "scores.png", "report.html"} <= names
    page = Path("out/report.html").read_text("utf-8")
    for text in ("What was left out, and why", "PC1 before", "What else the components may show", "500kb"):
        assert text in page
    assert "--king-cutoff" in result.stdout
    assert f"found from {found.fitted.sum()}" in result.stdout
    assert "build of the genome cannot be told" in result.stderr
    call("project", "out", "cohort.bed", "--out", "again.eigenvec")
    assert "already holds" in call("pca", "cohort.bed", "--auto", "--out", "out", code=2).stderr


def test_json_of_auto_is_the_account(here):
    facts = json.loads(call("pca", "cohort.bed", "--auto", "-k", 2, "--json").stdout, parse_constant=pytest.fail)
    found = analyse_cohort("cohort.bed", GenotypePCA(2, random_state=0), before=False)
    # the command's filters are in its own account, the steps after them here
    steps = found.table()
    after = [i for i, name in enumerate(steps["step"]) if name in ("prune", "relatives", "regions", "outliers")]
    assert facts["steps"] == {name: [column[i] for i in after] for name, column in steps.items()}
    assert (facts["samples"], facts["fitted"], facts["related"]) == (119, found.fitted.sum(), found.related.sum())
    assert facts["snps"] == len(found.model.snps_)
    assert facts["degrees"]["duplicate"] == 1
    left = {"samples": 120, "SNPs": 3000}
    columns = facts["filters"]
    for of, removed, rest in zip(columns["of"], columns["removed"], columns["left"], strict=True):
        left[of] -= removed
        assert left[of] == rest
    assert left == {"samples": facts["fitted"], "SNPs": facts["snps"]}


def test_single_steps_are_options(here):
    facts = json.loads(call("pca", "cohort.bed", "-k", 2, "--king-cutoff", 0.2, "--mind", 0.1, "--json").stdout)
    assert [*facts["steps"]["step"]] == ["relatives"]
    assert facts["related"] == 2
    facts = json.loads(call("pca", "cohort.bed", "-k", 2, "--indep-pairwise", 50, 5, 0.3, "--json").stdout)
    call("prune", "cohort.bed", "--indep-pairwise", 50, 5, 0.3, "--out", "x")
    assert facts["snps"] == len(Path("x.prune.in").read_text().split())
    facts = json.loads(
        call("pca", "cohort.bed", "-k", 2, "--outliers", "neighbours", "--find-regions", "--json").stdout
    )
    assert [*facts["steps"]["step"]] == ["regions", "outliers"]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--auto", "--all-chromosomes"),
        ("--king-cutoff", 0.1, "--chr", "1-22,X"),
        ("--outliers", "none"),
        ("--king-cutoff", 2),
        ("--indep-pairwise", 50, 60, 0.2),
    ],
)
def test_what_contradicts_itself_is_refused(here, wrong):
    text = call("pca", "cohort.bed", *wrong, code=2).output
    assert str(wrong[1] if wrong[0] == "--auto" else "--chr" if "--chr" in wrong else wrong[0]) in text


def test_every_fit_names_relatives_and_people_with_few_calls(here):
    result = call("pca", "cohort.bed", "-k", 3, "--out", "out", "--no-pictures")
    for text in ("people are related", "copies of one person", "lack more than 20% of their calls"):
        assert text in result.stderr
        assert text in Path("out/report.html").read_text("utf-8")
    facts = json.loads(call("pca", "cohort.bed", "-k", 3, "--json").stdout)
    assert facts["artefacts"]["kind"] == ["relatives", "few calls"]
    assert len([text for text in facts["warnings"] if "related" in text]) == 1
    clean = json.loads(call("pca", "cohort.bed", "-k", 2, "--mind", 0.1, "--king-cutoff", 0.0884, "--json").stdout)
    assert clean["artefacts"]["kind"] == []


def test_an_ended_run_is_resumed(here, monkeypatch):
    import gramian.cli.genotypes as module

    whole = json.loads(call("pca", "cohort.bed", "--auto", "-k", 2, "--json").stdout)
    real = module.find_artefacts

    def end(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "find_artefacts", end)
    call("pca", "cohort.bed", "--auto", "-k", 2, "--json", "--checkpoint", "passes", code=130)
    kept = len(list(Path("passes").glob("*.npz")))
    monkeypatch.setattr(module, "find_artefacts", real)
    again = json.loads(call("pca", "cohort.bed", "--auto", "-k", 2, "--json", "--checkpoint", "passes").stdout)
    assert kept > 5
    assert again["components"] == whole["components"]
    assert not Path("passes").exists()


def test_the_example_of_the_help_runs(here):
    (example,) = (each for each in genotype_pca.examples if "--auto" in each)
    call(*shlex.split(example)[1:], *FAST)
    text = call("pca", "cohort.bed", "--help").stdout
    assert "Cohort" in text
    assert len(COHORT) == sum(
        text.count(f"  {name} ")
        for name in ("--auto", "--find-regions", "--king-cutoff", "--outliers", "--indep-pairwise")
    )
