"""Scales of eigenvalues: what PLINK and smartpca print of the same files, SNPs that do not vary among them."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gramian.cli import main
from gramian.genetics import Filters, GenotypePCA, fst, write_bed, write_results
from gramian.genetics.files import plink_eigenvalues
from gramian.genetics.genotypes import standardise
from gramian.sources.errors import SourceError
from gramian.sources.plink import Samples, Snps, open_bed

SMARTPCA = Path("/usr/lib/eigensoft/smartpca")


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    """2,000 SNPs of 60 people of two populations: of a fifth nobody has a copy, of a twentieth nobody a call."""
    rng = np.random.default_rng(0)
    f = rng.uniform(0.1, 0.9, (2000, 1))
    p = np.clip(np.hstack([f, f + rng.normal(0, 0.1, f.shape)]), 0.02, 0.98)
    calls = rng.binomial(2, np.repeat(p, 30, axis=1))
    calls[::5], calls[1::20] = 0, -1
    path = tmp_path_factory.mktemp("scales") / "m.bed"
    write_bed(path, calls, Samples.numbered(60), Snps.numbered(2000))
    return path


def test_the_share_of_snps_that_do_not_vary(bed):
    model = GenotypePCA(3).fit(bed)
    assert model.monomorphic_ == 500
    np.testing.assert_allclose(plink_eigenvalues(model), model.eigenvalues_ * 0.75)
    assert "0.75 times" in model.eigenvalue_scale_
    without = GenotypePCA(3).fit(Filters().apply(open_bed(bed)).source)
    np.testing.assert_allclose(plink_eigenvalues(without), without.eigenvalues_)
    patterson = GenotypePCA(3, scaling="patterson").fit(bed)
    np.testing.assert_allclose(plink_eigenvalues(patterson), plink_eigenvalues(model), rtol=1e-6)


@pytest.mark.parametrize(
    ("program", "missing", "k", "rtol"),
    [("plink1.9", "pairwise", 3, 2e-5), ("plink2", "pairwise", 3, 2e-5), ("plink2", "mean", 1, 1e-4)],
)
def test_eigenvalues_in_files_are_those_of_plink(bed, tmp_path, program, missing, k, rtol):
    """PLINK's approximate components beyond the first are not those of the data to more than two digits."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    out = tmp_path / "theirs"
    command = [program, "--bfile", bed.with_suffix(""), "--pca", "4", *["approx"] * (missing == "mean"), "--out", out]
    subprocess.run(command, check=True, capture_output=True)
    theirs = np.loadtxt(f"{out}.eigenval")[:k]
    write_results(GenotypePCA(k, missing=missing).fit(bed), tmp_path / "ours", ["plink2"])
    np.testing.assert_allclose(np.loadtxt(tmp_path / "ours.eigenval"), theirs, rtol=rtol)
    arguments = ["pca", str(bed), "-k", str(k), "--missing", missing, "--no-report", "--no-pictures"]
    result = CliRunner().invoke(main, [*arguments, "--out", str(tmp_path / "r")])
    assert result.exit_code == 0, result.output
    np.testing.assert_allclose(np.loadtxt(tmp_path / "r" / "pca.eigenval"), theirs, rtol=rtol)
    assert "times these" in result.stdout


@pytest.mark.skipif(not SMARTPCA.exists(), reason="smartpca is not installed")
@pytest.mark.parametrize(("style", "scaling"), [(None, "patterson"), ("YES", "patterson"), ("NO", "price")])
def test_scalings_are_those_of_smartpca(bed, tmp_path, style, scaling):
    fam = tmp_path / "m.fam"
    fam.write_text(
        "".join(f"{line.rsplit(maxsplit=1)[0]} 1\n" for line in bed.with_suffix(".fam").read_text().splitlines())
    )
    settings = {"genotypename": bed, "snpname": bed.with_suffix(".bim"), "indivname": fam, "numoutlieriter": 0}
    settings |= {"evecoutname": tmp_path / "x.evec", "evaloutname": tmp_path / "x.eval"}
    settings |= {} if style is None else {"altnormstyle": style}
    (tmp_path / "par").write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
    subprocess.run([SMARTPCA, "-p", tmp_path / "par"], check=True, capture_output=True, cwd=tmp_path)
    model = GenotypePCA(3, scaling=scaling, solver="exact").fit(bed)
    ours = model.all_eigenvalues_[:10] * 59 / model.total_variance_
    np.testing.assert_allclose(ours, np.loadtxt(tmp_path / "x.eval")[:10], atol=1.1e-6)


def test_an_older_name_is_the_same():
    counts = np.array([[3, 4, 5, 1], [1, 0, 9, 0]])
    for name in ("scale", "mean", "squares"):
        old, new = (getattr(standardise(counts, scaling), name) for scaling in ("smartpca", "price"))
        np.testing.assert_array_equal(old, new)


def test_numbers_are_no_groups(bed):
    G = open_bed(bed)
    with pytest.raises(SourceError, match="label") as refusal:
        fst(G, np.linspace(20, 80, 60).round(2))
    assert "60 different numbers" in str(refusal.value)
    assert fst(G, np.arange(60) % 3).groups == ("0", "1", "2")  # few numbers may name groups


def write_labels(bed, place, columns):
    rows = open_bed(bed).samples
    lines = ["\t".join(["FID", "IID", *columns])]
    lines += ["\t".join(row) for row in zip(rows.fid, rows.iid, *(map(str, c) for c in columns.values()), strict=True)]
    (place / "labels.tsv").write_text("\n".join(lines) + "\n")
    return str(place / "labels.tsv")


def test_the_command_says_which_groups_and_columns_will_not_do(bed, tmp_path):
    columns = {"group": ["A"] * 30 + ["B"] * 29 + ["C"], "age": [20.5 + j for j in range(60)]}
    columns["name"] = [f"n{j}" for j in range(60)]
    base = ["pca", str(bed), "-k", "2", "--fst", "--labels", write_labels(bed, tmp_path, columns), "--json"]
    good = CliRunner().invoke(main, base)
    assert good.exit_code == 0, good.output
    assert "groups of one person" in good.stderr
    facts = json.loads(good.stdout)["fst"]
    want = fst(open_bed(bed), ["A"] * 30 + ["B"] * 29 + [""]).table()
    assert (facts["group1"], facts["group2"], facts["fst"]) == (["A"], ["B"], want["fst"].tolist())
    for label in ("age", "name"):
        bad = CliRunner().invoke(main, [*base, "--label", label])
        assert bad.exit_code == 3
        assert "--label" in bad.stderr


def test_chromosomes_that_were_used_are_in_the_report(bed, tmp_path):
    labels = write_labels(bed, tmp_path, {"group": ["A"] * 30 + ["B"] * 30})
    arguments = ["--fst", "--quality", "--labels", labels, "--no-pictures", "--out", str(tmp_path / "o")]
    result = CliRunner().invoke(main, ["pca", str(bed), "-k", "2", *arguments])
    assert result.exit_code == 0, result.output
    page = (tmp_path / "o" / "report.html").read_text("utf-8")
    for text in ("Chromosomes", "Differentiation", "Quality of the genotypes", "&#x27;autosomes&#x27;"):
        assert text in page
