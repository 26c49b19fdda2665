"""Genotypes on the command line: files against the library's own, numbers against NumPy, refusals, exit codes."""

import csv
import json
import re
import shlex
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import gramian
from gramian.cli import main
from gramian.cli.genotype_reading import read_labels
from gramian.cli.genotypes import genotype_pca, predict_memory
from gramian.cli.project import genotype_project
from gramian.cli.simulate import simulate
from gramian.genetics.files import write_results
from gramian.genetics.filters import Filters
from gramian.genetics.projection import project
from gramian.sources.plink import Samples, open_bed

FAST = ("--no-report", "--no-pictures")
HAPMAP = Path(__file__).parents[3] / "shared" / "data" / "hapmap3"
FILES = ("cohort.bed", "cohort.bim", "cohort.fam", "cohort.tsv")


def call(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    """Three populations of 25 people, 3 % of the calls missing, and a map of Europe."""
    folder = tmp_path_factory.mktemp("genotypes")
    cohort = ("--sizes", "25,25,25", "--snps", 900, "--fst", 0.08, "--missing", 0.03)
    europe = ("--people", 200, "--snps", 1500, "--fst", 0.02)
    for scene, name, options in (("populations", "cohort", cohort), ("europe", "europe", europe)):
        assert call("simulate", scene, "--out", folder / f"{name}.bed", *options).exit_code == 0
    return folder


@pytest.fixture
def here(study, tmp_path, monkeypatch):
    """A folder of the test's own with the study in it."""
    for path in study.iterdir():
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(*arguments, code=0):
    result = call(*arguments, "--json")
    assert result.exit_code == code, result.output
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout, parse_constant=pytest.fail)


def error_of(*arguments, code):
    """The one line on standard error of a command that is refused."""
    result = call(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    lines = [line for line in result.stderr.strip().splitlines() if not line.startswith("Warning")]
    assert len(lines) == 1, lines
    assert lines[0].startswith("Error: ")
    return lines[0]


def tsv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def standardised(path):
    """Z of a file, decoded and scaled here."""
    G = next(iter(open_bed(path).blocks(10**6))).values
    f = np.nanmean(G, axis=0) / 2
    keep = (f > 0) & (f < 1)
    Z = (G[:, keep] - 2 * f[keep]) / np.sqrt(2 * f[keep] * (1 - f[keep]))
    return np.nan_to_num(Z)


def test_everything_is_written(here):
    result = call("pca", "cohort.bed", "-k", 4, "--labels", "cohort.tsv", "--fst", "--quality", "--out", "out")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert {path.name for path in (here / "out").iterdir()} == {
        *("pca.eigenvec", "pca.eigenval", "pca.eigenvec.var", "pca.json", "model.gramian", "certificate.json"),
        *("tracy_widom.tsv", "filters.tsv", "fst.tsv", "snp_quality.tsv", "sample_quality.tsv"),
        *("report.html", "scores.png", "scree.png"),
    }
    for text in (
        "75 samples × 899 SNPs",
        "as PLINK prints",
        "2 components (Tracy–Widom p < 0.05)",
        "Effective number of markers",
    ):
        assert text in result.stdout
    for text in ("Arithmetic: certified to", "predicted working memory", "F_ST by population", "passes over"):
        assert text in result.stdout
    page = (here / "out" / "report.html").read_text("utf-8")
    assert "cohort.bed" in page
    assert "population" in page


def test_eigenvalues_and_vectors_are_those_of_numpy(here):
    found = answer("pca", "cohort.bed", "-k", 3, "--exact", "--out", "out", *FAST)
    Z = standardised(here / "cohort.bed")
    lam, U = np.linalg.eigh(Z @ Z.T / Z.shape[1])
    np.testing.assert_allclose(found["components"]["eigenvalue"], lam[:-4:-1], rtol=1e-9)
    rows = [line.split("\t") for line in (here / "out" / "pca.eigenvec").read_text().splitlines()]
    assert rows[0] == ["#FID", "IID", "PC1", "PC2", "PC3"]
    ours = np.array([[float(x) for x in row[2:]] for row in rows[1:]])
    np.testing.assert_allclose(np.abs(np.sum(ours * U[:, :-4:-1], axis=0)), 1.0, atol=1e-5)
    table = tsv(here / "out" / "tracy_widom.tsv")
    assert len(table) == len(lam) - 2  # all eigenvalues but the one that is 0, and the last, which has no rival
    np.testing.assert_allclose([float(row["eigenvalue"]) for row in table], lam[:1:-1], rtol=1e-8)


def screen_row(result, first):
    """The cells of the line of the screen that begins with a cell."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in result.stdout.splitlines()]
    (row,) = (row for row in rows if row[0] == first)
    return row[1:]


def test_the_numbers_on_the_screen_and_in_json_are_those_of_numpy(here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    arguments = ("pca", "cohort.bed", "-k", 3, "--exact")
    screen, found = call(*arguments, "--out", "out", *FAST), answer(*arguments)
    assert screen.exit_code == 0, screen.output
    Z = standardised(here / "cohort.bed")
    values = np.linalg.eigvalsh(Z @ Z.T)[::-1]
    table = found["components"]
    shares = np.asarray(table["eigenvalue"]) / values[:3]  # one factor for all: the scale that the facts name
    np.testing.assert_allclose(shares, shares[0], rtol=1e-9)
    np.testing.assert_allclose(table["share"], values[:3] / values.sum(), rtol=1e-9)
    written = [[float(row[name]) for name in ("statistic", "p_value")] for row in tsv(here / "out" / "tracy_widom.tsv")]
    np.testing.assert_allclose(np.column_stack([table["tracy_widom"], table["p_value"]]), written[:3], rtol=1e-9)
    assert max(table["p_value"][:2]) < 1e-6 < 0.05 < table["p_value"][2]  # three populations: two components
    assert found["significant"] == 2
    for j in range(3):
        p = table["p_value"][j]
        cells = screen_row(screen, f"PC{j + 1}")
        assert cells[:5] == [
            f"{table['eigenvalue'][j]:.6g}",
            f"{table['share'][j]:.2%}",
            f"{table['residual'][j]:.1e}",
            f"{table['tracy_widom'][j]:.3f}",
            "< 1e-300" if p < 1e-300 else f"{p:.2g}",
        ]
        assert cells[5:] == ([] if j < found["separated"] else ["doubtful" if p < 0.05 else "noise"])


def test_info_counts_what_is_in_the_files(here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    G = next(iter(open_bed(here / "cohort.bed").blocks(10**6))).values
    n, p = G.shape
    by_snp, by_sample = np.isnan(G).mean(axis=0), np.isnan(G).mean(axis=1)
    rows = [line.split() for line in (here / "cohort.bim").read_text().splitlines()]
    chromosome, position = np.array([row[0] for row in rows]), np.array([int(row[3]) for row in rows])
    found = answer("info", "cohort.bed")
    assert (found["samples"], found["snps"], found["bytes"]) == (n, p, (here / "cohort.bed").stat().st_size)
    np.testing.assert_allclose(
        [found["missing"][name] for name in ("mean", "highest_snp", "highest_sample")],
        [by_snp.mean(), by_snp.max(), by_sample.max()],
    )
    assert found["counts"]["snps"]["above_5_percent"] == np.sum(by_snp > 0.05) > 0
    assert found["counts"]["samples"]["above_5_percent"] == np.sum(by_sample > 0.05)
    one_allele = [len({call for call in column if call == call} - {0.0}) == 0 for column in G.T]
    other = [{call for call in column if call == call} == {2.0} for column in G.T]
    assert found["counts"]["snps"]["of_one_allele"] == sum(one_allele) + sum(other)
    screen = call("info", "cohort.bed", "--all")
    for row in found["chromosomes"]:
        here_ = chromosome == row["chromosome"]
        assert (row["SNPs"], row["first position"], row["last position"]) == (
            here_.sum(),
            position[here_].min(),
            position[here_].max(),
        )
        np.testing.assert_allclose(row["missing"], by_snp[here_].mean())
        cells = screen_row(screen, row["chromosome"])
        assert cells == [
            str(row["SNPs"]),
            str(row["first position"]),
            str(row["last position"]),
            f"{row['missing']:.3%}",
        ]
    assert sum(row["SNPs"] for row in found["chromosomes"]) == p


@pytest.mark.parametrize("formats", ["plink1", "plink2,smartpca,gramian"])
def test_files_are_those_of_the_library(here, formats):
    options = ("-k", 3, "--exact", "--scaling", "patterson", "--labels", "cohort.tsv", "--formats", formats)
    assert call("pca", "cohort", *options, "--out", "out", *FAST).exit_code == 0
    model = gramian.GenotypePCA(3, solver="exact", scaling="patterson").fit("cohort.bed")
    labels = [row["population"] for row in tsv(here / "cohort.tsv")]
    paths = write_results(model, here / "own" / "pca", formats.split(","), labels=labels)
    assert len(paths) > 3
    for path in paths:
        if path.suffix != ".json":
            assert path.read_bytes() == (here / "out" / path.name).read_bytes(), path.name


def test_the_model_file_transforms_as_the_fit(here):
    answer("pca", "cohort.bed", "-k", 3, "--out", "out", *FAST)
    loaded = gramian.load(here / "out" / "model.gramian")
    model = gramian.GenotypePCA(3).fit("cohort.bed")
    np.testing.assert_array_equal(loaded.eigenvectors_, model.eigenvectors_)
    np.testing.assert_array_equal(loaded.transform("cohort.bed"), model.transform("cohort.bed"))


def test_filters_are_counted_under_the_names_of_options(here):
    Path("few.txt").write_text("A1 A1\nB1 B1\n")
    options = ("--maf", 0.1, "--geno", 0.05, "--mind", 0.2, "--hwe", 1e-4, "--chr", "1-20", "--remove", "few.txt")
    found = answer("pca", "cohort.bed", "-k", 2, *options)
    direct = Filters(
        maf=0.1, max_snp_missing=0.05, max_sample_missing=0.2, hwe=1e-4, chromosomes="1-20", remove="few.txt"
    ).apply(open_bed("cohort.bed"))
    assert (found["samples"], found["snps"]) == direct.source.shape == (73, found["snps"])
    removed = dict(zip(found["filters"]["filter"], found["filters"]["removed"], strict=True))
    assert removed["--remove"] == 2
    assert removed["--maf"] == direct.removed["maf"] > 0
    assert removed["--geno"] == direct.removed["max_snp_missing"] > 0
    assert sum(found["left_out"].values()) == removed["--chr"] > 0


def test_quality_tables_hold_everything_and_say_what_was_used(here):
    answer("pca", "cohort.bed", "-k", 2, "--maf", 0.2, "--quality", "--out", "out", *FAST)
    snps, samples = tsv(here / "out" / "snp_quality.tsv"), tsv(here / "out" / "sample_quality.tsv")
    assert (len(samples), len(snps)) == (75, 900)
    for row in snps:
        assert (row["used"] == "True") == (float(row["maf"]) >= 0.2)


def test_negative_positions_leave_snps_out_everywhere(here):
    """PLINK's mark for what is left out: the fit, the tables, the model and the projection are of the other SNPs."""
    rows = [line.split("\t") for line in (here / "cohort.bim").read_text("utf-8").splitlines()]
    for row in rows[::10]:
        row[3] = f"-{row[3]}"
    (here / "cohort.bim").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    answer("pca", "cohort.bed", "-k", 3, "--quality", "--out", "out", *FAST)
    whole = open_bed(here / "cohort.bed")
    assert whole.shape[1] == 810
    model = gramian.GenotypePCA(3).fit(whole)
    vectors = np.array([[float(row[f"PC{j + 1}"]) for j in range(3)] for row in tsv(here / "out" / "pca.eigenvec")])
    np.testing.assert_allclose(np.abs(np.sum(vectors * model.eigenvectors_, axis=0)), 1, atol=1e-4)
    used = tsv(here / "out" / "snp_quality.tsv")
    assert [row["id"] for row in used if row["used"] == "True"] == whole.snps.id[model.snp_mask_].tolist()
    again = gramian.load(here / "out" / "model.gramian").transform(whole)
    np.testing.assert_allclose(np.abs(again), np.abs(model.transform(whole)), rtol=1e-4, atol=1e-4)


def test_missing_conventions(here):
    """Pairwise division by shared calls is PLINK's matrix; the mean convention is not."""
    found = answer("pca", "cohort.bed", "-k", 2, "--missing", "pairwise")
    G = next(iter(open_bed("cohort.bed").blocks(10**6))).values
    seen = ~np.isnan(G)[:, np.nanstd(G, axis=0) > 0]
    Z = standardised(here / "cohort.bed")
    lam = np.linalg.eigvalsh(Z @ Z.T / (seen.astype(float) @ seen.T))[::-1]
    np.testing.assert_allclose(found["components"]["eigenvalue"], lam[:2], rtol=1e-9)
    assert "shared" in found["certificate"]["method"]
    plain = answer("pca", "cohort.bed", "-k", 2)
    assert plain["components"]["eigenvalue"][0] < lam[0]


def test_a_map_where_there_are_coordinates(here):
    found = answer("pca", "europe.bed", "-k", 3, "--labels", "europe.tsv", "--out", "out", "--no-report")
    rows = tsv(here / "europe.tsv")
    place = np.array([[float(row["longitude"]), float(row["latitude"])] for row in rows])
    place[:, 0] *= np.cos(np.radians(place[:, 1].mean()))
    model = gramian.GenotypePCA(3).fit("europe.bed")
    Z = (model.eigenvectors_ * model.singular_values_)[:, :2]
    A, B = (X - X.mean(axis=0) for X in (Z, place))
    expected = np.linalg.svd(A.T @ B, compute_uv=False).sum() / np.linalg.norm(A) / np.linalg.norm(B)
    assert found["procrustes"]["correlation"] == pytest.approx(expected, rel=1e-6)
    assert found["procrustes"]["p_value"] == 0.001
    assert found["procrustes"]["samples"] == 200
    assert (here / "out" / "map.png").read_bytes().startswith(b"\x89PNG")


def test_fst_is_what_was_simulated(here):
    found = answer("pca", "cohort.bed", "-k", 2, "--labels", "cohort.tsv", "--fst")["fst"]
    assert list(zip(found["group1"], found["group2"], strict=True)) == [("A", "B"), ("A", "C"), ("B", "C")]
    assert np.all(np.abs(np.array(found["fst"]) - 0.08) < 4 * np.array(found["standard_error"]))


def test_projection_round_trip(here):
    """Samples left out of the fit land where the library puts them, whatever form the reference is given in."""
    Path("new.txt").write_text("".join(f"{g}{i} {g}{i}\n" for g in "ABC" for i in range(1, 6)))
    answer("pca", "cohort.bed", "-k", 2, "--remove", "new.txt", "--out", "out", *FAST, "--formats", "plink2,gramian")
    model = gramian.load("out/model.gramian")
    expected = project(model, "cohort.bed", ambiguous="keep")
    for onto in ("out", "out/model.gramian", "out/pca", "out/pca.json", "out/pca.loadings.npz"):
        found = answer("project", onto, "cohort.bed", "--ambiguous", "keep")
        assert found["method"] == "oadp"
        assert found["matching"]["used"] == expected.report.used
        got = np.column_stack([found["table"]["PC1"], found["table"]["PC2"]])
        np.testing.assert_allclose(got, expected.eigenvectors, rtol=1e-5, atol=1e-9)
    result = call("project", "out", "cohort.bed", "--out", "new.eigenvec")
    assert result.exit_code == 0
    assert "A/T or C/G" in result.stdout or "of 8" in result.stdout
    head, *rows = Path("new.eigenvec").read_text().splitlines()
    assert head.split() == ["#FID", "IID", "SNPS", "PC1", "PC2"]
    assert len(rows) == 75
    assert "--force" in error_of("project", "out", "cohort.bed", "--out", "new.eigenvec", code=2)


def test_projection_prints_csv_and_the_account_apart(here):
    answer("pca", "cohort.bed", "-k", 2, "--out", "out", *FAST)
    result = call("project", "out", "cohort.bed", "--method", "simple", "--scale", "scores", "--ambiguous", "keep")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    model = gramian.GenotypePCA(2).fit("cohort.bed")
    ours = np.array([[float(row["PC1"]), float(row["PC2"])] for row in rows])
    np.testing.assert_allclose(ours, model.eigenvectors_ * model.singular_values_, rtol=2e-3, atol=2e-3)
    assert "by simple" in result.stderr


def test_weights_without_eigenvalues_are_projected_by_least_squares(here):
    answer("pca", "cohort.bed", "-k", 2, "--out", "out", *FAST)
    for name in ("pca.json", "pca.eigenval", "model.gramian"):
        (here / "out" / name).unlink()
    found = answer("project", "out", "cohort.bed", "--ambiguous", "keep")
    assert found["method"] == "least-squares"
    assert found["scale"] == "scores"
    assert any("allele frequencies" in text for text in found["warnings"])
    assert "--eigenvalues" in error_of("project", "out", "cohort.bed", "--method", "oadp", code=3)


def test_genotypes_of_other_snps_are_refused_with_counts(here):
    answer("pca", "cohort.bed", "-k", 2, "--out", "out", *FAST)
    call("simulate", "populations", "--out", "other.bed", "--sizes", "9,9", "--snps", 400, "--seed", 5)
    bim = [line.split("\t") for line in Path("other.bim").read_text().splitlines()]
    Path("other.bim").write_text("".join("\t".join([c, f"q{i}", *rest]) + "\n" for c, i, *rest in bim))
    line = error_of("project", "out", "other.bed", "--by", "id", code=3)
    assert "Only 0 of 899 SNPs (0.0%)" in line
    assert "not used 899 absent" in line
    assert "--min-share" in line


def test_a_model_of_another_kind_is_refused(here):
    np.save("x.npy", np.random.default_rng(0).normal(size=(20, 3)))
    answer("pca", "x.npy", "--out", "out", *FAST)
    assert "holds a PCA" in error_of("project", "out", "cohort.bed", code=3)
    assert "no such file" in error_of("project", "nowhere", "cohort.bed", code=3)


def test_a_tolerance_that_is_not_met(here):
    result = call("pca", "cohort.bed", "-k", 2, "--solver", "krylov", "--max-passes", 3, "--tol", 1e-9, "--json")
    assert result.exit_code == 4, result.output
    found = json.loads(result.stdout)
    assert not found["converged"]
    assert "--max-passes 3" in found["warnings"][0]


def test_noise_alone_is_no_reason_to_fail(here):
    found = answer("pca", "europe.bed", "-k", 10, "--solver", "krylov")
    assert found["separated"] == found["certificate"]["judged"] < 10
    assert max(found["components"]["residual"]) > found["certificate"]["tolerance"]


def test_the_memory_ceiling(here):
    line = error_of("pca", "cohort.bed", "--memory", "1M", "--json", code=2)
    assert "--memory 1.0 MiB is less than the" in line
    found = answer("pca", "cohort.bed", "-k", 2, "--memory", "1G")
    assert 2**20 < found["predicted_memory"] < 2**30


@pytest.mark.parametrize("solver", ["exact", "krylov"])
def test_the_predicted_memory_is_enough(tmp_path, solver):
    call("simulate", "populations", "--out", tmp_path / "m.bed", "--sizes", "300,300", "--snps", 2000)
    tracemalloc.start()
    source = open_bed(tmp_path / "m.bed")
    gramian.GenotypePCA(10, solver=solver).fit(source)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    most = predict_memory(source.shape, source.shape, 10, solver == "exact", 2)
    assert most / 6 < peak < most


def test_nothing_is_replaced_without_force(here):
    arguments = ("pca", "cohort.bed", "-k", 2, "--labels", "cohort.tsv", "--out", "out")
    assert call(*arguments, *FAST).exit_code == 0
    before = {path.name: path.stat().st_mtime_ns for path in Path("out").iterdir()}
    assert "--force" in error_of(*arguments, code=2)
    assert {path.name: path.stat().st_mtime_ns for path in Path("out").iterdir()} == before
    assert call(*arguments, *FAST, "--force").exit_code == 0


def test_without_a_folder_the_answer_is_on_the_screen(here):
    before = sorted(path.name for path in here.iterdir())
    result = call("pca", "cohort.bed", "-k", 2)
    assert result.exit_code == 0, result.output
    assert "PC2" in result.output
    assert "--out FOLDER" in result.output
    assert sorted(path.name for path in here.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["cohort.bed", "--json", "-k", "900"], "-k 900 is more than the 74 components"),
        (["cohort.bed", "--json", "--exact", "--solver", "krylov"], "contradict"),
        (["cohort.bed", "--json", "--missing", "pairwise", "--solver", "krylov"], "whole matrix"),
        (["cohort.bed", "--json", "--chr", "1", "--all-chromosomes"], "contradict"),
        (["cohort.bed", "--json", "--fst"], "--labels"),
        (["cohort.bed", "--json", "--formats", "plink1,plink2"], "same names"),
        (["cohort.bed", "--json", "--formats", "plink3"], "plink2"),
        (["cohort.bed", "--json", "--maf", "0.7"], "0.7"),
    ],
)
def test_wrong_use(here, arguments, text):
    assert text in error_of("pca", *arguments, code=2)


@pytest.mark.parametrize(("range_", "text"), [("", "--chr ''"), ("5-2", "--chr 5-2")], ids=["empty", "backwards"])
def test_a_range_of_chromosomes_that_is_none_is_named(here, range_, text):
    assert text in error_of("pca", "cohort.bed", "--chr", range_, "--json", code=3)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda: Path("cohort.bed").write_bytes(b"\x00\x01\x02 nonsense"), ["00 01 02", "6c 1b"]),
        (lambda: Path("cohort.bed").write_bytes(Path("cohort.bed").read_bytes()[:-7]), ["17103 bytes", "17096"]),
        (lambda: Path("cohort.bed").write_bytes(Path("cohort.bed").read_bytes() + b"1"), ["17103 bytes", "17104"]),
        (lambda: Path("cohort.bed").write_bytes(b"\x6c\x1b\x00" + b"1" * 17100), ["75 samples", "16878 bytes"]),
        (lambda: Path("cohort.fam").write_text("A1 A1 0 0 1 -9\n"), ["1 samples", "903 bytes", "17103"]),
        (lambda: Path("cohort.bim").write_text("1 rs1 0 1\n"), ["line 1 has 4 fields", "6 were expected"]),
        (lambda: Path("cohort.bim").write_bytes(b"1 rs\xff 0 1 A G\n"), ["0xff", "UTF-8"]),
        (lambda: Path("cohort.fam").unlink(), ["cohort.fam: no such file"]),
        (lambda: (Path("cohort.bed").unlink(), Path("cohort.bed").mkdir()), ["is a folder"]),
    ],
    ids=["magic", "truncated", "too long", "sample-major", "fam", "bim", "not UTF-8", "no fam", "a folder"],
)
def test_malformed_files(here, damage, words):
    damage()
    line = error_of("pca", "cohort.bed", "--json", code=3)
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("FID\tIID\tpopulation\nx\ty\tA\n", "none of its 1 rows"),
        ("FID\tIID\tpopulation\nA1\tA1\tA\nA2\tA2\n", "line 3 has 2 fields; 3 were expected"),
        ("FID\tIID\tpopulation\nA1\tA1\tA\nA1\tA1\tB\n", "line 3: A1 A1 has a row already, line 2"),
        ("FID\tIID\nA1\tA1\n", "there are no labels"),
        ("a\tb\tc\n1\t2\t3\n", "a header with IID"),
        ("IID\tlat\tlon\nA1\t95\t3\n", "degrees between −90 and 90"),
        ("", "the file is empty"),
    ],
)
def test_labels_that_will_not_do(here, content, text):
    Path("bad.tsv").write_text(content, encoding="utf-8")
    assert text in error_of("pca", "cohort.bed", "--labels", "bad.tsv", "--json", code=3)


def test_labels_in_any_order_and_form(tmp_path):
    samples = Samples.numbered(4)
    path = tmp_path / "labels.txt"
    path.write_text("age #IID country lat long\n40 s3 FR 46 2\nNA s1 IT 42 12\n30 s9 IT 42 12\n50 s2 . 1 2\n")
    found = read_labels(path, samples)
    assert found.name == "country"
    assert found.groups.tolist() == ["IT", "", "FR", ""]
    np.testing.assert_array_equal(found.columns["age"], [np.nan, 50, 40, np.nan])
    np.testing.assert_array_equal(found.places, [[12, 42], [2, 1], [2, 46], [np.nan, np.nan]])
    assert found.notes == ["1 of 4 samples have no row: s4.", "1 rows are of nobody in the analysis."]
    assert read_labels(path, samples, "age").groups.tolist() == ["", "50", "40", ""]
    path.write_text("0 s1 A\n0 s2 B\n0 s3 A\n0 s4 B\n")  # no header
    assert read_labels(path, samples).groups.tolist() == ["A", "B", "A", "B"]


def test_labels_of_digits_stay_what_they_are(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text(f"IID centre wave\ns1 {2**60} 1_0\ns2 {2**60 + 1} 1_0\ns3 {2**60} 10\n")
    found = read_labels(path, Samples.numbered(3), "centre")
    assert found.groups.tolist() == [str(2**60), str(2**60 + 1), str(2**60)]
    assert found.columns["wave"].tolist() == ["1_0", "1_0", "10"]


def test_notes_and_lists_are_told(here):
    fam = Path("cohort.fam").read_text().splitlines()
    Path("cohort.fam").write_text("\n".join([fam[0], *fam[:-1]]) + "\n")  # A1 twice
    Path("keep.txt").write_text("A1\nB2\nB3\nC4\nnobody\n")
    found = answer("pca", "cohort.bed", "-k", 1, "--keep", "keep.txt")
    assert found["samples"] == 5
    assert "more than once: A1 A1 (2 times)" in found["data"]["notes"][0]
    assert "--keep: 1 of 5 sample ids are not in the data: nobody." in found["warnings"]


def test_a_filter_that_leaves_nothing(here):
    line = error_of("pca", "cohort.bed", "--chr", "X", "--json", code=3)
    assert "No SNPs are left after the filter" in line
    Path("none.txt").write_text("nothing\n")
    assert "No SNPs are left" in error_of("pca", "cohort.bed", "--extract", "none.txt", "--json", code=3)


def test_a_name_without_its_ending_is_a_fileset_unless_it_is_an_option(here):
    assert answer("pca", "cohort", "-k", 2)["samples"] == 75
    np.save("x.npy", np.random.default_rng(0).normal(size=(20, 3)))
    found = answer("pca", "x.npy", "--out", "cohort", *FAST)  # a folder of the same name as cohort.bed
    assert found["data"]["columns"] == 3


def test_help_of_genotypes_needs_no_file(run):
    for name, command in (("pca", genotype_pca), ("project", genotype_project)):
        text = run(name, "any.bed", "--help").output
        assert len(command.examples) == 2
        assert text.rstrip().endswith(command.examples[-1])
    assert "--maf" in run("pca", "any.bed", "--help").output
    assert "--maf" not in run("pca", "--help").output


def test_examples_of_the_help_run(here):
    for example in genotype_pca.examples:
        result = call(*shlex.split(example)[1:])
        assert result.exit_code == 0, (example, result.output)
    shutil.copy("results/pca.eigenvec.var", "reference.eigenvec.var")
    for name in (".bed", ".bim", ".fam"):
        shutil.copy(f"cohort{name}", f"new{name}")
    for example in genotype_project.examples:
        result = call(*shlex.split(example)[1:])
        assert result.exit_code == 0, (example, result.output)


def test_examples_of_the_documentation_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "genotype-pca.md").read_text("utf-8")
    (block,) = re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [line[2:] for line in block.splitlines()]
    assert len(lines) >= 5
    for line in lines:
        fast = FAST if line.startswith("gramian pca") else ()
        result = call(*shlex.split(line)[1:], *fast)
        assert result.exit_code == 0, (line, result.output)
    assert (tmp_path / "like-smartpca" / "pca.evec").exists()


def test_help_of_simulate_has_examples_that_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert call("simulate", "--help").output.rstrip().endswith(simulate.examples[-1])
    for example in simulate.examples:
        assert call(*shlex.split(example)[1:]).exit_code == 0
    assert open_bed("europe.bed").shape == (300, 3000)


def test_simulated_files_are_the_same_for_a_seed(tmp_path):
    options = ("--sizes", "5,6", "--snps", 50, "--missing", 0.1)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        out = tmp_path / f"{name}.bed"
        assert call("simulate", "populations", "--out", out, "--seed", seed, *options).exit_code == 0
    a, b, c = (tmp_path / f"{name}.bed" for name in "abc")
    assert a.read_bytes() == b.read_bytes() != c.read_bytes()
    assert [row["population"] for row in tsv(tmp_path / "a.tsv")] == ["A"] * 5 + ["B"] * 6
    assert "--force" in error_of("simulate", "populations", "--out", a, code=2)
    assert ".bed" in error_of("simulate", "europe", "--out", tmp_path / "x.txt", code=2)
    assert "--sizes" in error_of("simulate", "europe", "--out", tmp_path / "x.bed", "--sizes", "3", code=2)
    assert "3,x" in error_of("simulate", "populations", "--out", tmp_path / "x.bed", "--sizes", "3,x", code=2)


@pytest.mark.skipif(not (HAPMAP / "hm3.bed").exists(), reason="the HapMap 3 data are not here")
def test_hapmap_files_agree_with_plink(tmp_path):
    """PLINK 1.9's eigenvalues, all digits; its eigenvectors up to sign."""
    arguments = ("-k", 10, "--exact", "--missing", "pairwise", "--formats", "plink1")
    answer("pca", HAPMAP / "hm3.bed", *arguments, "--out", tmp_path / "out", *FAST)
    theirs = (HAPMAP / "reference" / "p1.eigenval").read_text().split()
    assert (tmp_path / "out" / "pca.eigenval").read_text().split() == theirs[:10]
    ours, reference = (
        np.array([line.split()[2:12] for line in path.read_text().splitlines()], dtype=float)
        for path in (tmp_path / "out" / "pca.eigenvec", HAPMAP / "reference" / "p1.eigenvec")
    )
    signs = np.sign(np.sum(ours * reference, axis=0))
    np.testing.assert_allclose(ours * signs, reference, atol=2e-6)
