"""What somebody meets who has just begun: units, marks of missing cells, folders of results, standard input."""

import io
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from gramian.cli.output import ResultTable, screen_tables

QUIET = ("--no-report", "--no-pictures")


@pytest.fixture
def sheet(tmp_path):
    """Columns of unlike units, with text and a mark of missing cells."""
    rng = np.random.default_rng(0)
    rows = [f"{150 + 30 * a:.4f},{b:.4f},{'red' if a > 0 else 'blue'}" for a, b in rng.normal(size=(40, 2))]
    path = tmp_path / "sheet.csv"
    path.write_text("weight,share,colour\n" + "\n".join(rows) + "\n-999,0.5,red\n")
    return path


@pytest.mark.parametrize(
    ("command", "remedy"),
    [
        (("pca",), "--scale"),
        (("kernel-pca",), "--standardise"),
        (("kernel-ridge", "--target", "y", "--categorical", "drop", "--alpha", "1"), "--standardise"),
    ],
)
def test_unlike_units_are_told_everywhere(run, tmp_path, command, remedy):
    rng = np.random.default_rng(1)
    rows = [f"{200 * a:.4f},{b:.4f},{a + b:.4f}" for a, b in rng.normal(size=(40, 2))]
    (tmp_path / "units.csv").write_text("weight,share,y\n" + "\n".join(rows) + "\n")
    name, *options = command
    screen = run(name, "units.csv", *options)
    assert screen.exit_code == 0, screen.output
    assert screen.stderr == ""
    (line,) = [line for line in screen.stdout.splitlines() if "Warning" in line]
    assert "weight" in line
    assert remedy in line
    found = json.loads(run(name, "units.csv", *options, "--json", "--out", "out", "--no-pictures").stdout)
    (warning,) = found["warnings"]
    assert line.endswith(warning)
    assert (tmp_path / "out" / "report.html").read_text("utf-8").count("seem to have unlike units") == 1
    scaled = run(name, "units.csv", *options, "--standardise", "--json")
    assert json.loads(scaled.stdout)["warnings"] == []


def test_a_ridge_whose_penalty_is_felt_is_told_of_units(answer, run, tmp_path):
    """As the states' incomes: areas in thousands leave the others no say, where standardised columns predict."""
    rng = np.random.default_rng(4)
    area, schooling, noise = rng.normal(size=(3, 40))
    rows = [f"{9e4 * a:.1f},{s:.3f},{3 * s + e:.3f}" for a, s, e in zip(area, schooling, noise, strict=True)]
    (tmp_path / "states.csv").write_text("area,schooling,income\n" + "\n".join(rows) + "\n")
    (warning,) = answer("ridge", "states.csv", "--target", "income", "--alpha", "1e5")["warnings"]
    assert "area alone" in warning
    assert "--standardise" in warning
    assert answer("ridge", "states.csv", "--target", "income", "--alpha", "1e5", "--scale")["warnings"] == []
    assert answer("ridge", "states.csv", "--target", "income", "--alpha", "0.01")["warnings"] == []  # no shrinkage


def test_columns_of_like_units_are_not_warned_of(answer):
    assert answer("pca", "flowers.csv")["warnings"] == []


def test_marks_of_missing_cells_are_pointed_out_and_taken_away(answer, run, sheet):
    first = answer("pca", sheet, "--columns", "weight,share")
    assert any("-999" in note and "--na-values -999" in note for note in first["data"]["notes"])
    second = answer("pca", sheet, "--columns", "weight,share", "--na-values", "-999", "-k", 1)
    assert any("weight 1" in note for note in second["data"]["notes"])
    third = answer("pca", sheet, "--columns", "weight,share", "--na-values", "weight=-999", "--missing", "drop")
    assert third["data"]["rows"] == 40
    wrong = run("pca", sheet, "--missing", "-999")
    assert wrong.exit_code == 2
    assert "--na-values -999" in wrong.stderr
    assert "--na-values" in run("pca", sheet, "--na-values", "wieght=-999").stderr


def test_standard_input_is_described_as_the_file_is(answer, sheet):
    for options in ((), ("--na-values", "-999")):
        file = answer("info", sheet, *options)
        piped = answer("info", "-", *options, input=sheet.read_bytes())
        assert {**file, "file": ""} == {**piped, "file": ""}
        assert [column["type"] for column in file["columns"]] == ["number", "number", "text"]


def test_components_that_do_not_exist_are_not_left_out_in_silence(run, answer):
    result = run("kernel-pca", "moons.csv", "-k", 200)
    assert result.exit_code == 2
    assert "-k 200" in result.stderr
    assert "80" in result.stderr
    (warning,) = answer("kernel-pca", "moons.csv", "-k", 10, "--kernel", "linear")["warnings"]
    assert "-k 10" in warning
    assert "2" in warning


def test_a_folder_of_results_is_understood_or_refused_with_the_remedy(run, tmp_path, files):
    assert run("pca", "flowers.csv", "--id", "plant", "--out", "found", *QUIET).exit_code == 0
    by_folder, by_file = (run("project", model, "more.csv", "--json") for model in ("found", "found/model.gramian"))
    assert by_folder.exit_code == 0, by_folder.output
    assert json.loads(by_folder.stdout) == json.loads(by_file.stdout)
    assert run("info", "found").stdout == run("info", "found/model.gramian").stdout
    for arguments in (["pca", "found"], ["pca", "found/model.gramian"], ["predict", ".", "more.csv"]):
        result = run(*arguments)
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert "Traceback" not in result.stderr
    assert "scores.csv" in run("pca", "found").stderr
    assert "project" in run("pca", "found/model.gramian").stderr


def test_a_file_is_named_once_in_an_error(run, tmp_path):
    (tmp_path / "page.html").write_text("<html>")
    error = run("project", "page.html", "more.csv").stderr
    assert error.count("page.html") == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the C library of Linux")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["pca", "flowers.csv", "--json"], 0), (["pca", "flowers.csv", "-k", "99"], 2), (["pca", "bad.csv"], 3)],
)
def test_no_thread_of_a_library_outlives_what_it_needs(files, tmp_path, arguments, code):
    """A process ends without the destructors of C++, which abort (status 134) where a thread still runs."""
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3\n")
    (tmp_path / "flowers.csv").symlink_to(files / "flowers.csv")
    (tmp_path / "sitecustomize.py").write_text(
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.__cxa_atexit(libc.abort, None, None)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    aborted = subprocess.run([sys.executable, "-c", ""], env=environment, cwd=tmp_path, check=False)
    assert aborted.returncode == -signal.SIGABRT  # the usual way to end does run them
    command = [sys.executable, "-m", "gramian", *arguments]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr


def test_names_of_columns_are_whole_on_a_narrow_screen():
    names = ["component", *(f"mean {word}" for word in ("mpg", "displacement", "qsec", "carburettors", "gear"))]
    table = ResultTable({name: np.array([1.0, 123.456]) for name in names}, title="")
    for width in (40, 60, 80, 120):
        console = Console(width=width, record=True, file=io.StringIO())
        for part in screen_tables(table, width):
            console.print(part)
        text = console.export_text()
        for name in names:
            for word in name.split():
                assert word in text, (width, word)


def test_bars_of_a_scree_plot_stay_on_their_lines(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{4e4 * a:.3f},{b:.4f},{c:.4f}" for a, b, c in rng.normal(size=(30, 3))]
    (tmp_path / "large.csv").write_text("income,share,rate\n" + "\n".join(rows) + "\n")
    screen = run("pca", "large.csv").stdout.splitlines()
    bars = [line for line in screen if "█" in line]
    assert [line.split()[0] for line in bars] == ["PC1"]


def test_levels_of_a_text_column_come_with_a_word_on_their_errors(run):
    assert "differences" in run("ridge", "flowers.csv", "--target", "sum", "--drop", "plant").stdout
    assert "differences" not in run("ridge", "houses.csv", "--target", "price").stdout


def test_a_target_that_was_not_named_is_asked_for_with_the_columns_there_are(run, sheet):
    for name in ("ridge", "kernel-ridge"):
        result = run(name, sheet)
        assert result.exit_code == 2
        assert "--target colour; the columns are weight, share, colour" in result.stderr
    assert "--target NAME" in run("ridge", "-", input=b"a,b\n1,2\n").stderr
    assert run("ridge", sheet, "-y", "share", *QUIET).exit_code == 0


@pytest.mark.parametrize(
    ("word", "meant"), [("gmm", "mixture"), ("kpca", "kernel-pca"), ("lm", "ridge"), ("KRR", "kernel-ridge")]
)
def test_commands_by_the_names_of_other_programs_are_understood(run, word, meant):
    assert f"did you mean {meant!r}?" in run(word, "flowers.csv").stderr


def test_how_many_components_is_answered_where_cells_are_missing(answer, run, tmp_path):
    rng = np.random.default_rng(2)
    V = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, -1, -1, -1]])
    X = 3 * rng.normal(size=(90, 2)) @ V + rng.normal(size=(90, 6))
    X[rng.random(X.shape) < 0.15] = np.nan
    lines = ["a,b,c,d,e,f", *(",".join("" if np.isnan(v) else f"{v:.4f}" for v in row) for row in X)]
    (tmp_path / "gaps.csv").write_text("\n".join(lines) + "\n")
    found = answer("pca", "gaps.csv", "--scale")["advice"]
    assert (found["consensus"], found["rules"]) == (2, {"cv": 2})
    assert "Components to keep: 2. By cells held out" in run("pca", "gaps.csv", "--scale").stdout


def test_a_mixture_of_few_rows_and_columns_of_few_values_is_doubted(answer, tmp_path):
    """As mtcars is, of which BIC takes eight components: each is a combination of values."""
    rng = np.random.default_rng(3)
    gears, shaft = np.tile([3, 4, 5], 5), np.tile([0, 1, 1, 0, 1], 3)
    rows = [f"{100 * g + rng.normal():.2f},{rng.normal():.3f},{g},{s}" for g, s in zip(gears, shaft, strict=True)]
    (tmp_path / "cars.csv").write_text("power,weight,gears,shaft\n" + "\n".join(rows) + "\n")
    found = answer("mixture", "cars.csv", "-k", "1", "--covariance", "VVV")
    doubts = {measure["name"]: measure["text"] for measure in found["quality"] if measure["verdict"] == "doubtful"}
    assert doubts["stepped_columns"].startswith("gears (3), shaft (2): ")
    assert "numbers_per_parameter" in doubts
