"""``gramian pca``: what it writes, what it refuses, and that it leaves nothing half done."""

import csv
import json
from importlib import import_module

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn import config_context, decomposition

from gramian import PCA
from gramian.cli import main
from gramian.pca.advice import RankAdvice

pca_module, publishing = import_module("gramian.cli.pca"), import_module("gramian.cli.output")

TABLES = ["scores.csv", "loadings.csv", "unit_vectors.csv", "variances.csv"]
FILES = sorted([*TABLES, "certificate.json", "loadings.png", "model.gramian", "report.html", "scores.png", "scree.png"])
FAST = ("--no-report", "--no-pictures")


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 4)) * np.array([5.0, 3.0, 2.0, 1.0]) + 7


@pytest.fixture
def npy(tmp_path, X):
    path = tmp_path / "x.npy"
    np.save(path, X)
    return path


@pytest.fixture
def labelled(tmp_path, X):
    """A CSV file with a column of names between its numbers."""
    path = tmp_path / "flowers.csv"
    rows = [[repr(float(a)), repr(float(b)), "rose" if a > 7 else "tulip", repr(float(c))] for a, b, c, _ in X]
    path.write_text("\n".join(",".join(row) for row in [["a", "b", "kind", "c"], *rows]) + "\n")
    return path


def run(*arguments):
    return CliRunner().invoke(main, ["pca", *map(str, arguments)])


def fast(*arguments):
    return run(*arguments, *FAST)


def table(path):
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def numbers(rows, skip=1):
    return np.array([[float(cell) for cell in row[skip:]] for row in rows])


def left_over(folder):
    return [path.name for path in folder.rglob("*") if path.name.startswith(".")]


def one_line(result):
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.output
    assert "Traceback" not in result.output
    return lines[0]


def test_writes_what_scikit_learn_finds(tmp_path, npy, X):
    out = tmp_path / "deep" / "out"
    result = run(npy, "-k", 3, "--out", out)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == FILES
    pca = decomposition.PCA(n_components=3).fit(X)
    signs = np.sign(np.sum(pca.components_ * PCA(3).fit(X).components_, axis=1))
    np.testing.assert_allclose(numbers(table(out / "scores.csv")[1]), signs * pca.transform(X), atol=1e-12)
    header, rows = table(out / "unit_vectors.csv")
    assert header == ["column", "unit_vector_PC1", "unit_vector_PC2", "unit_vector_PC3"]
    np.testing.assert_allclose(numbers(rows), signs * pca.components_.T, atol=1e-13)
    header, rows = table(out / "loadings.csv")  # what loadings.png shows
    assert header == ["column", "loading_PC1", "loading_PC2", "loading_PC3"]
    known = signs * pca.components_.T * np.sqrt(pca.explained_variance_)
    np.testing.assert_allclose(numbers(rows), known, atol=1e-12)
    header, rows = table(out / "variances.csv")
    np.testing.assert_allclose(numbers(rows)[:, 0], pca.explained_variance_, rtol=1e-13)
    np.testing.assert_allclose(numbers(rows)[:, 2], np.cumsum(pca.explained_variance_ratio_), rtol=1e-13)


def test_certificate_is_strict_json_that_names_the_run(tmp_path, npy):
    fast(npy, "--out", tmp_path / "out", "--scale")
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text(), parse_constant=pytest.fail)
    assert certificate["converged"] is True
    assert (certificate["rows"], certificate["columns"]) == (40, 4)
    assert certificate["file"].endswith("x.npy")
    assert certificate["parameters"]["scale"] is True
    assert len(certificate["residuals"]) == 4


def test_results_repeat_to_the_byte(tmp_path, npy):
    for name in ("one", "two"):
        assert run(npy, "--out", tmp_path / name, "--no-report").exit_code == 0
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    assert (tmp_path / "one" / "scree.png").read_bytes().startswith(b"\x89PNG")


def test_prints_the_table_and_the_certificate(tmp_path, npy):
    output = fast(npy, "-k", 2, "--out", tmp_path / "out").output
    assert "PC2" in output
    assert "PC3" not in output
    assert "Arithmetic: certified to" in output
    assert str(tmp_path / "out") in output.replace("\n", "")


def test_parquet_tables_hold_the_same_numbers(tmp_path, npy, X):
    polars = pytest.importorskip("polars")
    assert fast(npy, "--out", tmp_path / "out", "--format", "parquet").exit_code == 0
    frame = polars.read_parquet(tmp_path / "out" / "scores.parquet")
    assert frame.columns == ["row", "PC1", "PC2", "PC3", "PC4"]
    np.testing.assert_allclose(frame.to_numpy()[:, 1:], PCA(4).fit_transform(X), atol=1e-12)


def test_column_names_of_a_csv_name_the_loadings(tmp_path, X):
    path = tmp_path / "x.csv"
    np.savetxt(path, X, delimiter=",", header="height,width,depth,mass", comments="", fmt="%.17g")
    assert fast(path, "-k", 1, "--out", tmp_path / "out").exit_code == 0
    assert [row[0] for row in table(tmp_path / "out" / "loadings.csv")[1]] == ["height", "width", "depth", "mass"]


def test_label_column_is_set_apart(tmp_path, labelled, X):
    out = tmp_path / "out"
    result = fast(labelled, "--out", out, "--label", "kind")
    assert result.exit_code == 0, result.output
    header, rows = table(out / "scores.csv")
    assert header == ["row", "label", "PC1", "PC2", "PC3"]
    assert {row[1] for row in rows} == {"rose", "tulip"}
    np.testing.assert_allclose(numbers(rows, skip=2), PCA().fit_transform(X[:, :3]), atol=1e-10)
    assert [row[0] for row in table(out / "loadings.csv")[1]] == ["a", "b", "c"]


def test_whitened_scores_have_variance_one(tmp_path, npy):
    fast(npy, "--out", tmp_path / "out", "--whiten")
    scores = numbers(table(tmp_path / "out" / "scores.csv")[1])
    np.testing.assert_allclose(scores.var(axis=0, ddof=1), 1, rtol=1e-10)


@pytest.mark.parametrize("k", ["0.9", "parallel", "cv", "tracy-widom", "mle", "2"])
def test_components_by_number_fraction_or_rule(tmp_path, k):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) * [6.0, 4.0] @ rng.normal(size=(2, 6)) + 0.5 * rng.normal(size=(80, 6))
    np.save(tmp_path / "x.npy", X)
    result = fast(tmp_path / "x.npy", "-k", k, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    rule = {"0.9": 0.9, "2": 2}.get(k, k)
    kept = PCA(rule, random_state=0).fit(X).n_components_
    assert table(tmp_path / "out" / "variances.csv")[1][-1][0] == f"PC{kept}"
    assert json.loads((tmp_path / "out" / "certificate.json").read_text())["parameters"]["n_components"] == rule


def test_noise_has_no_components_to_write(tmp_path):
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).normal(size=(60, 5)))
    result = fast(tmp_path / "noise.npy", "-k", "parallel", "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "nothing that stands out of the noise; give -k as a number." in result.output
    assert not (tmp_path / "out").exists()


def test_a_file_too_large_to_shuffle_is_told_the_other_rule(tmp_path, npy):
    with config_context(working_memory=1e-4):
        result = fast(npy, "-k", "parallel", "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "-k parallel-gaussian" in one_line(result)


def test_refuses_to_overwrite_without_force(tmp_path, npy):
    out = tmp_path / "out"
    out.mkdir()
    (out / "scree.png").write_text("mine")
    result = run(npy, "--out", out)
    assert result.exit_code == 2
    assert "--force" in result.output
    assert (out / "scree.png").read_text() == "mine"
    assert len(list(out.iterdir())) == 1
    assert run(npy, "--out", out, "--force", "--no-report").exit_code == 0
    assert (out / "scree.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-k", "9"], "4 components"),
        (["-k", "0"], "'0' is no number of components"),
        (["-k", "1.5"], "'1.5' is no number of components"),
        (["-k", "nan"], "fraction between 0 and 1"),
        (["-k", "elbow"], "parallel-gaussian"),
        (["--solver", "magic"], "magic"),
        (["--memory", "2"], "512M or 2G"),
        (["--columns", "a,,b"], "empty name"),
        (["--threads", "0"], "--threads"),
    ],
)
def test_wrong_use_exits_2(tmp_path, npy, arguments, complaint):
    result = fast(npy, "--out", tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert complaint in one_line(result)
    assert not (tmp_path / "out").exists()


def test_the_number_of_components_has_a_reason(npy):
    def lines(*answers):
        rules = tuple(f"rule {i}" for i in range(len(answers)))
        return pca_module._advice_lines(RankAdvice(rules, answers, ("",) * len(answers)), True)

    assert lines(2, 2, 2, 5)[0].startswith("Components to keep: 2. 3 of 4 rules")
    # rules that see nothing are no majority, if others see much
    assert lines(0, 0, 0, 12, 30, 39, 39)[0].startswith("Components to keep: 12. ")
    assert "missing" in pca_module._advice_lines(None, False)[0]


def test_without_a_place_the_screen_has_the_answer(npy):
    before = sorted(npy.parent.iterdir())
    result = run(npy)
    assert result.exit_code == 0
    for part in ("Components", "█", "Loadings", "PC2 over PC1", "Components to keep", "Arithmetic: certified", "--out"):
        assert part in result.stdout
    assert sorted(npy.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--delimiter", ";"], "--delimiter ';'"),
        (["--drop", "x9"], "no column 'x9'"),
    ],
)
def test_what_the_data_do_not_allow_exits_3(tmp_path, npy, arguments, complaint):
    result = fast(npy, "--out", tmp_path / "out", *arguments)
    assert result.exit_code == 3
    assert complaint in one_line(result)


def test_infinities_exit_3_and_say_where(tmp_path, X):
    X[12, 2] = np.inf
    np.save(tmp_path / "gap.npy", X)
    result = fast(tmp_path / "gap.npy", "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert "row 13, column 3" in one_line(result)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("k", [None, "2"])
def test_missing_numbers_are_filled_by_the_model_and_certified(tmp_path, X, k):
    X[12, 2] = np.nan
    np.save(tmp_path / "gap.npy", X)
    call = fast if k is None else run
    result = call(tmp_path / "gap.npy", "--out", tmp_path / "out", *([] if k is None else ["-k", k]))
    assert result.exit_code == 0, result.output
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert certificate["converged"]
    assert certificate["gradient"] <= certificate["tolerance"]
    assert "1 of" in certificate["notes"][0]
    assert "residual" not in (tmp_path / "out" / "variances.csv").read_text().splitlines()[0]


def test_missing_rows_can_be_left_out(tmp_path, X):
    X[12, 2] = np.nan
    np.save(tmp_path / "gap.npy", X)
    assert fast(tmp_path / "gap.npy", "--out", tmp_path / "out", "--missing", "drop").exit_code == 0
    whole = decomposition.PCA().fit(np.delete(X, 12, axis=0))
    variances = numbers(table(tmp_path / "out" / "variances.csv")[1])[:, 0]
    rows = table(tmp_path / "out" / "scores.csv")[1]
    assert [int(row[0]) for row in rows] == list(range(1, 41))  # every row of the file, in order
    assert [i for i, row in enumerate(rows) if row[1] == ""] == [12]
    np.testing.assert_allclose(variances, whole.explained_variance_, rtol=1e-12)


def test_text_columns_label_the_rows(tmp_path, labelled):
    result = fast(labelled, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert "kind" in result.stdout
    header, rows = table(tmp_path / "out" / "scores.csv")
    assert header[:2] == ["row", "label"]
    assert {row[1] for row in rows} == {"rose", "tulip"}
    assert [row[0] for row in table(tmp_path / "out" / "loadings.csv")[1]] == ["a", "b", "c"]


def test_text_column_that_is_refused_points_to_options(tmp_path, labelled):
    result = fast(labelled, "--out", tmp_path / "out", "--categorical", "refuse")
    assert result.exit_code == 3
    line = one_line(result)
    assert "kind" in line
    assert "--categorical onehot" in line
    assert "--label" in line


def test_text_columns_can_be_encoded(tmp_path, labelled):
    assert fast(labelled, "--out", tmp_path / "out", "--categorical", "onehot").exit_code == 0
    names = [row[0] for row in table(tmp_path / "out" / "loadings.csv")[1]]
    assert names == ["a", "b", "kind=rose", "kind=tulip", "c"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("a,b\n1,2\n3,4\n", "no column 'kind'"), ("a,kind,b\n1,x,2\n3,y\n", "2"), ("", "empty")],
)
def test_bad_labelled_files_exit_3(tmp_path, text, complaint):
    path = tmp_path / "t.csv"
    path.write_text(text)
    result = fast(path, "--out", tmp_path / "out", "--label", "kind")
    assert result.exit_code == 3
    assert complaint in one_line(result)


@pytest.mark.parametrize("name", ["x.parquet", "broken.npy", "x.unknown"])
def test_files_that_cannot_be_read_exit_3(tmp_path, name):
    (tmp_path / name).write_bytes(b"not numbers")
    result = fast(tmp_path / name, "--out", tmp_path / "out")
    assert result.exit_code == 3
    assert name in one_line(result)


def test_one_row_exits_3(tmp_path):
    np.save(tmp_path / "one.npy", np.ones((1, 3)))
    assert fast(tmp_path / "one.npy", "--out", tmp_path / "out").exit_code == 3


def test_unmet_tolerance_exits_4_and_still_writes(tmp_path, npy, monkeypatch):
    class Hasty(PCA):
        """A PCA whose certificate says that a tolerance below rounding was asked for."""

        def fit_transform(self, X, y=None, sample_weight=None):
            scores = super().fit_transform(X)
            self.certificate_ = self.certificate_.with_(tolerance=0.0, rounding=1e-9)
            return scores

    monkeypatch.setattr(pca_module, "PCA", Hasty)
    monkeypatch.setattr(publishing.persistence, "save", lambda model, path, metadata: path.write_bytes(b""))
    out = tmp_path / "out"
    result = fast(npy, "--out", out)
    assert result.exit_code == 4
    assert "NOT" in result.output
    assert json.loads((out / "certificate.json").read_text())["converged"] is False


def test_warnings_become_readable_lines(tmp_path):
    np.save(tmp_path / "flat.npy", np.ones((10, 3)))
    result = fast(tmp_path / "flat.npy", "--out", tmp_path / "out")
    assert "Warning:" in result.stderr
    assert "warnings.warn" not in result.stderr


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt, 130), (OSError(28, "No space left on device"), 1), (ZeroDivisionError, 1)]
)
def test_an_interrupted_write_leaves_nothing(tmp_path, npy, monkeypatch, error, code):
    def interrupted(*arguments):
        raise error

    monkeypatch.setattr(publishing.display, "save_picture", interrupted)
    result = run(npy, "--out", tmp_path / "deep" / "out")
    assert result.exit_code == code
    assert not (tmp_path / "deep").exists()
    assert one_line(result)


def test_an_interrupted_rerun_keeps_the_earlier_results(tmp_path, npy, monkeypatch):
    out = tmp_path / "out"
    fast(npy, "--out", out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    monkeypatch.setattr(publishing, "write_json", lambda *arguments: 1 / 0)
    fast(npy, "--out", out, "--force", "--scale")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert left_over(out) == []


def test_out_that_is_a_file_is_said_so(tmp_path, npy):
    (tmp_path / "out").write_text("a file")
    for place in (tmp_path / "out", tmp_path / "out" / "deep"):
        result = fast(npy, "--out", place)
        assert result.exit_code == 2  # before any work
        assert "is a file" in one_line(result)
    assert (tmp_path / "out").read_text() == "a file"
