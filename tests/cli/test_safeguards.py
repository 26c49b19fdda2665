"""That what is written belongs together, says which row is which, keeps to what was asked, and gives nothing away."""

import base64
import io
import json
import re
import sys
import zlib
from importlib import import_module

import numpy as np
import pytest

from gramian.cli import output as answers
from gramian.cli.running import CommandRun, name_options
from gramian.compute.devices import TooLargeError
from gramian.sources.writing import claim

FAST = ("--no-report", "--no-pictures")


def page_of(folder):
    return (folder / "report.html").read_text("utf-8")


def numbers_of(page):
    """Row numbers of the points on a page: 32-bit integers, deflated, in base64."""
    (packed,) = re.findall(r'"title":"row","rows":"([^"]*)"', page)
    return np.frombuffer(zlib.decompress(base64.b64decode(packed)), "<i4")


@pytest.fixture
def gaps(tmp_path, columns):
    """A table whose rows 1 and 4 have missing cells, and a column of classes."""
    rng = np.random.default_rng(3)
    cells = [[repr(float(v)) for v in row] for row in rng.normal(size=(12, 3))]
    cells[1][0] = cells[4][2] = ""
    lines = [",".join([*row, "ab"[i % 2]]) for i, row in enumerate(cells)]
    (tmp_path / "gaps.csv").write_text("\n".join(["x,y,z,kind of thing", *lines]) + "\n")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["pca", "--label", "kind of thing"], "scores.csv"),
        (["ridge", "--target", "z", "--label", "kind of thing"], "predictions.csv"),
        (["mixture", "-k", "1", "--covariance", "EII", "--label", "kind of thing"], "clusters.csv"),
    ],
    ids=["pca", "ridge", "mixture"],
)
def test_reports_number_rows_as_the_tables_do_and_name_the_classes(run, tmp_path, gaps, columns, arguments, name):
    command, *options = arguments
    result = run(command, "gaps.csv", *options, "--missing", "drop", "--out", "out", "--no-pictures")
    assert result.exit_code == 0, result.output
    kept = [0, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    found = columns(tmp_path / "out" / name)
    assert found["row"].tolist() == list(range(1, 13))
    last = list(found.values())[-1]
    assert np.flatnonzero(~np.isnan(last)).tolist() == kept
    page = page_of(tmp_path / "out")
    assert numbers_of(page).tolist() == kept
    assert '"name":"kind of thing"' in page


def test_results_name_no_folders_of_the_machine(run, tmp_path, files):
    result = run("pca", files / "geyser.csv", f"--out={tmp_path / 'out'}", "--no-pictures")
    assert result.exit_code == 0, result.output
    page = page_of(tmp_path / "out")
    assert "gramian pca geyser.csv --out=out --no-pictures" in page
    for path in (tmp_path / "out").iterdir():
        assert str(files).encode() not in path.read_bytes(), path.name


def test_what_an_earlier_run_left_is_named(run, tmp_path):
    assert run("ridge", "houses.csv", "--target", "price", "--out", "out", *FAST).exit_code == 0
    (tmp_path / "out" / "notes.csv").write_text("mine")
    again = run("ridge", "houses.csv", "--target", "price", "--alpha", 1, "--out", "out", "--force", "--json", *FAST)
    (warning,) = json.loads(again.stdout)["warnings"]
    assert warning == "out still holds path.csv of an earlier run, which this one did not write"
    assert (tmp_path / "out" / "notes.csv").read_text() == "mine"


def test_no_work_is_done_for_a_place_that_cannot_be_written(run, tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    result = run("pca", "geyser.csv", "--out", "deep/out")
    assert result.exit_code == 2
    assert "write-protected" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("pca", "geyser.csv", "--out", "out"),
        ("pca", "geyser.csv", "--out", "out", "--force"),
        ("project", "fitted/model.gramian", "geyser.csv", "--out", "out.csv"),
        ("simulate", "europe", "--out", "out.bed"),
        ("demo", "--out", "out"),
    ],
    ids=lambda arguments: " ".join(arguments[::3]),
)
def test_a_place_that_another_run_is_writing_to_is_refused_before_any_work(run, tmp_path, arguments):
    if arguments[0] == "project":
        assert run("pca", "geyser.csv", "--out", "fitted", *FAST).exit_code == 0
    before = sorted(tmp_path.iterdir())
    with claim(tmp_path / ("out.csv" if arguments[0] == "project" else "out")):
        result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert "another run is writing to" in result.stderr
    assert "Traceback" not in result.output
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["pca", "project", "simulate", "demo"])
@pytest.mark.parametrize("out", ["", " "])
def test_an_empty_place_is_not_the_current_folder(run, tmp_path, command, out):
    arguments = {"pca": ["geyser.csv"], "project": ["geyser.csv", "geyser.csv"], "simulate": ["europe"], "demo": []}
    before = sorted(tmp_path.iterdir())
    result = run(command, *arguments[command], "--out", out)
    assert result.exit_code == 2
    assert "--out" in result.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_what_appears_while_a_run_computes_is_not_replaced(run, tmp_path, monkeypatch):
    real = answers.write_files

    def write_late(*arguments):
        real(*arguments)
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "model.gramian").write_text("mine")

    monkeypatch.setattr(answers, "write_files", write_late)
    result = run("pca", "geyser.csv", "--out", "out", *FAST)
    assert result.exit_code == 1
    assert "--force" in result.stderr
    assert [path.read_text() for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_files_of_others_stay_where_results_are_replaced(run, tmp_path):
    assert run("pca", "geyser.csv", "--out", "out", *FAST).exit_code == 0
    (tmp_path / "out" / "notes").mkdir()
    (tmp_path / "out" / "notes" / "a.txt").write_text("mine")
    (tmp_path / "out" / "b.txt").write_text("mine")
    first = (tmp_path / "out" / "scores.csv").read_bytes()
    assert run("pca", "geyser.csv", "-k", 1, "--out", "out", "--force", *FAST).exit_code == 0
    assert (tmp_path / "out" / "scores.csv").read_bytes() != first
    assert (tmp_path / "out" / "notes" / "a.txt").read_text() == "mine"
    assert (tmp_path / "out" / "b.txt").read_text() == "mine"


def test_families_that_could_not_be_fitted_are_named(run, tmp_path):
    (tmp_path / "signed.csv").write_text("x\n" + "\n".join(map(str, np.linspace(-2, 3, 20))) + "\n")
    result = run("fit", "signed.csv", "--family", "normal,gamma", "--json")
    assert result.exit_code == 0, result.output
    assert "Warning: gamma could not be fitted" in result.stderr
    assert list(json.loads(result.stdout)["not_fitted"]) == ["gamma"]


def test_counts_from_nought_have_no_geometric_family(answer, tmp_path):
    (tmp_path / "counts.csv").write_text("n\n" + "\n".join(map(str, [0, 1, 3, 2, 2, 1, 0, 4])) + "\n")
    found = answer("fit", "counts.csv")
    assert found["warnings"] == []
    assert {"poisson", "negative binomial", "gamma"} < set(found["comparison"]["family"])
    assert "geometric" not in found["comparison"]["family"]


def test_the_report_of_a_fit_keeps_to_level_and_tolerance(run, tmp_path, columns):
    options = ("--family", "weibull,gamma", "--level", 0.5, "--tol", 1e-300, "--no-pictures")
    result = run("fit", "waiting.csv", *options, "--out", "out")
    assert result.exit_code == 4
    page = page_of(tmp_path / "out")
    assert "50 times in 100" in page
    assert "Arithmetic: NOT certified to 1e-300" in page
    for end in columns(tmp_path / "out" / "estimates.csv")["upper"]:
        assert f'data-v="{float(end)!r}"' in page


def test_a_model_of_intervals_has_no_column_to_predict_from(run, tmp_path):
    (tmp_path / "classes.csv").write_text("low,high,n\n,-1,16\n-1,0,34\n0,1,34\n1,,16\n")
    options = ("--lower", "low", "--upper", "high", "--counts", "n", "--family", "normal")
    assert run("fit", "classes.csv", *options, "--out", "out", *FAST).exit_code == 0
    result = run("predict", "out/model.gramian", "classes.csv")
    assert result.exit_code == 2
    assert "fitted to intervals" in result.stderr


def test_the_ending_of_a_table_may_be_in_capitals(run, tmp_path):
    assert run("pca", "geyser.csv", "--out", "out", *FAST).exit_code == 0
    assert run("project", "out/model.gramian", "geyser.csv", "--out", "scores.PARQUET").exit_code == 0
    assert (tmp_path / "scores.PARQUET").read_bytes()[:4] == b"PAR1"


def test_cells_do_not_move_the_cursor_of_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdout", Terminal())
    table = answers.ResultTable({"id": ["\x1b]0;owned\x07"], "PC1": [1.5]})
    answers.publish_table(
        CommandRun(), answers.TableOutput(None, False, False), answers.Results(facts={}, tables=[table])
    )
    mark = "\N{REPLACEMENT CHARACTER}"
    assert sys.stdout.getvalue() == f"id,PC1\n{mark}]0;owned{mark},1.5\n"


def test_a_folder_called_bench_is_not_run(tmp_path, monkeypatch):
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "__main__.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    assert not import_module("gramian.cli.bench")._in_clone()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "gramian"\n')
    assert import_module("gramian.cli.bench")._in_clone()


def test_options_that_name_no_column_are_named_as_options(run):
    result = run("pca", "flowers.csv", "--label", "nope", "--json")
    assert result.exit_code == 3
    assert "no column 'nope' for --label" in result.stderr


def test_pictures_name_columns_and_number_components_as_the_tables_do(run, monkeypatch):
    drawn = []
    monkeypatch.setattr("gramian.display.save_picture", lambda picture, path: drawn.append(picture))
    for command in (
        ["mixture", "geyser.csv", "-k", "2", "--covariance", "EII"],
        ["kernel-pca", "moons.csv", "--label", "moon"],
        ["fit", "waiting.csv", "--family", "gamma"],
    ):
        assert run(*command, "--out", command[0], "--no-report").exit_code == 0
    mixture, _, field, fit, _ = drawn
    texts = {part.get_text() for part in mixture.figure_.findobj(lambda part: hasattr(part, "set_text"))}
    assert texts >= {"component 1", "component 2"}
    assert "component 0" not in texts
    assert (field.ax_.get_xlabel(), field.ax_.get_ylabel()) == ("x", "y")
    assert fit.ax_.get_xlabel() == "minutes"


def test_no_number_is_cut_off_on_a_narrow_screen(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("bench", "--quick", "--threads", 1).stdout.splitlines()
    (head,) = (line for line in lines if line.split()[:1] == ["workload"])
    assert head.rstrip().endswith("difference")
    assert len(head) <= 80


@pytest.mark.parametrize(
    "arguments",
    [["kernel-pca", "-k", "2"], ["pca", "-k", "parallel"], ["ridge", "--target", "y", "--missing", "keep"]],
    ids=["kernel-pca", "a rule", "ridge"],
)
def test_missing_cells_that_a_model_refuses_come_with_the_option_that_helps(run, gaps, arguments):
    command, *options = arguments
    result = run(command, "gaps.csv", "--drop", "kind of thing", *options, "--json")
    assert result.exit_code == 3
    assert "--missing drop" in result.stderr
    assert "--missing mean" in result.stderr


@pytest.mark.parametrize("command", ["predict", "project"])
def test_new_rows_with_missing_cells_have_no_answer(run, gaps, columns, tmp_path, command):
    fit = ["ridge", "--target", "y"] if command == "predict" else ["kernel-pca", "-k", "1"]
    chosen = ("--drop", "kind of thing", "--missing", "drop")
    assert run(fit[0], "gaps.csv", *fit[1:], *chosen, "--out", "out", *FAST).exit_code == 0
    result = run(command, "out/model.gramian", "gaps.csv", "--out", "new.csv")
    assert result.exit_code == 0
    assert "gaps.csv" in result.stderr
    assert "missing" in result.stderr
    found = columns(tmp_path / "new.csv")
    assert found["row"].tolist() == list(range(1, 13))
    assert np.isnan(found["prediction" if command == "predict" else "PC1"]).sum() == 2


def test_a_solver_that_keeps_no_inverse_is_answered_with_the_option_that_does(run):
    fit = ("ridge", "houses.csv", "--target", "price", "--alpha", 1, "--solver", "cg", "--out", "out", *FAST)
    assert run(*fit).exit_code == 0
    result = run("predict", "out/model.gramian", "new-houses.csv")
    assert result.exit_code == 0
    assert "--solver svd" in result.stderr


def test_what_does_not_fit_in_memory_names_the_options_that_help(run, monkeypatch):
    error = TooLargeError(
        ("solver", "eigh"), " is large. Use ", ("svd_solver", "krylov"), ", fewer ", ("n_landmarks", None)
    )
    assert name_options(error) == "--solver eigh is large. Use --solver krylov, fewer --landmarks"
    assert str(error) == "solver='eigh' is large. Use svd_solver='krylov', fewer n_landmarks"
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 2**13)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 2**12)
    result = run("kernel-ridge", "curve.csv", "--target", "y", "--solver", "landmarks", "--json")
    assert result.exit_code == 3, result.output
    assert "--landmarks" in result.stderr
    assert "n_landmarks" not in result.stderr


def test_a_solver_that_cannot_judge_by_a_criterion_names_those_that_can(run):
    arguments = ("--target", "y", "--solver", "cg", "--criterion", "gcv", "--json")
    result = run("kernel-ridge", "curve.csv", *arguments)
    assert result.exit_code == 3
    assert "--criterion loo" in result.stderr
    assert "--solver landmarks" in result.stderr
