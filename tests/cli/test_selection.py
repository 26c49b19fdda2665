"""``gramian pca --selection``: the table, the pictures and the report are those of ``selection_scan``."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gramian.cli import main
from gramian.display import ManhattanDisplay, QuantileDisplay
from gramian.display.genetics import place_along_genome
from gramian.genetics import GenotypePCA, selection_scan, write_bed
from gramian.sources.plink import Samples, Snps, open_bed


@pytest.fixture
def bed(tmp_path):
    """Two populations that drifted apart at 3,000 SNPs, and at one of them by selection."""
    rng = np.random.default_rng(0)
    f = rng.uniform(0.2, 0.8, (3000, 1))
    p = np.clip(np.hstack([f, f + rng.normal(0, 0.05, f.shape)]), 0.01, 0.99)
    p[1234] = 0.04, 0.96
    snps = Snps.numbered(3000)
    snps.chromosome[:] = np.repeat(["1", "2", "3"], 1000)
    write_bed(tmp_path / "c.bed", rng.binomial(2, np.repeat(p, 80, axis=1)), Samples.numbered(160), snps)
    return tmp_path / "c.bed"


@pytest.mark.parametrize("method", ["galinsky", "pcadapt"])
def test_the_scan_is_written_drawn_and_told(bed, method):
    out = bed.parent / method
    arguments = ["pca", str(bed), "-k", "3", "--selection", method, "--out", str(out), "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    G = open_bed(bed)
    want = selection_scan(GenotypePCA(3, random_state=0).fit(G), G, method=method)
    assert facts["selection"]["inflation"] == pytest.approx(dict(zip(want.names, want.inflation, strict=True)))
    with (out / "selection.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    found = np.array([float(row[f"{want.names[0]}_P"]) for row in rows])
    np.testing.assert_allclose(found, want.p_values[:, 0], rtol=1e-9)
    assert int(found.argmin()) == 1234
    assert {"manhattan.png", "qq.png"} <= {path.name for path in out.iterdir()}
    page = (out / "report.html").read_text("utf-8")
    assert "SNPs that stand out most" in page
    assert "λ_GC" in page


def test_without_structure_nothing_is_tested(tmp_path):
    calls = np.random.default_rng(1).binomial(2, 0.4, (1000, 60))
    write_bed(tmp_path / "n.bed", calls, Samples.numbered(60), Snps.numbered(1000))
    result = CliRunner().invoke(main, ["pca", str(tmp_path / "n.bed"), "-k", "2", "--selection", "galinsky", "--json"])
    assert result.exit_code == 0, result.output
    assert "selection" not in json.loads(result.stdout)
    assert "--selection" in result.stderr


def test_pictures_hold_the_numbers():
    rng = np.random.default_rng(0)
    chromosome, position = np.repeat(["2", "1", "10", "X"], 5).astype(object), np.tile(np.arange(1, 6) * 1000, 4)
    p = rng.uniform(size=20)
    p[3] = 0.0
    picture = ManhattanDisplay(chromosome, position, p, name="PC$1").plot()
    drawn = np.concatenate([np.asarray(part.get_offsets()) for part in picture.ax_.collections])
    np.testing.assert_allclose(np.sort(drawn[:, 1]), np.sort(-np.log10(np.maximum(p, 1e-300))))
    place, names = place_along_genome(chromosome, position)
    assert list(names.values()) == ["1", "2", "10", "X"]
    assert place[5:10].max() < place[:5].min() < place[10:15].min() < place[15:].min()
    blind, _ = place_along_genome(chromosome, np.zeros(20))
    assert all((np.diff(part) == 1).all() for part in np.split(blind, 4))
    quantiles = QuantileDisplay([*p, np.nan])
    assert len(quantiles.observed) == 20
    assert (np.diff(quantiles.expected) < 0).all()
    assert (np.diff(quantiles.observed) <= 0).all()
    with pytest.raises(ValueError, match="shapes"):
        ManhattanDisplay(chromosome, position, p[1:])
    for wrong in ([1.5], [], [np.nan]):
        with pytest.raises(ValueError, match="p_values"):
            QuantileDisplay(wrong)


def test_inflation_of_scaled_chi_squares():
    from scipy.stats import chi2

    x = np.random.default_rng(0).normal(size=20_001) ** 2
    assert QuantileDisplay(chi2.sf(1.3 * x, 1)).inflation_ == pytest.approx(1.3 * np.median(x) / chi2.ppf(0.5, 1))


def test_paths_are_not_needed_for_help():
    text = CliRunner().invoke(main, ["pca", "x.bed", "--help"]).stdout
    assert "--selection" in text
    assert not Path("x.bed").exists()
