"""What all commands share: help, examples, exit codes, JSON, errors, interruption, and what they load."""

import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import gramian
from gramian.cli import COMMANDS, main

FAST = ("--no-report", "--no-pictures")
NAMES = [
    name for name in COMMANDS if name not in ("demo", "simulate", "convert", "prune", "king", "grm")
]  # tested elsewhere
PROGRAM = [sys.executable, "-m", "gramian"]


def command_of(name):
    return main.get_command(click.Context(main), name)


def lines_of(result):
    assert "Traceback" not in result.output
    return result.stderr.strip().splitlines()


def test_help_fits_a_screen_and_lists_every_command(run):
    text = run("--help").output
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.splitlines())) <= 80
    assert all(re.search(rf"^  {name} ", text, re.MULTILINE) for name in COMMANDS)
    assert "0.1.0" in run("--version").output


def test_no_arguments_show_the_help(run):
    result = run()
    assert result.exit_code == 2
    assert "Commands:" in result.output


@pytest.mark.parametrize("name", NAMES)
def test_help_of_a_command_has_two_examples(run, name):
    text = run(name, "--help").output
    examples = command_of(name).examples
    assert len(examples) == 2
    assert text.rstrip().endswith("\n".join(["Examples:", *(f"  {line}" for line in examples)]))


def documented():
    """Every command line of the documentation."""
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("completion", "bench")])
def test_examples_of_the_help_run(run, name):
    for model, make in {"flowers": "pca", "houses": "ridge"}.items():
        if any(f"{model}/model" in example for example in command_of(name).examples):
            assert run(*shlex.split(command_of(make).examples[0])[1:], *FAST).exit_code == 0
    quick = FAST if "report.html" in run(name, "--help").output else ()
    for example in command_of(name).examples:
        result = run(*shlex.split(example)[1:], *quick)
        assert result.exit_code == 0, (example, result.output)
        if "--json" in example:
            assert json.loads(result.stdout)["command"] == name


def test_examples_of_the_documentation_run(run, tmp_path):
    found = documented()
    assert len(found) > 20
    for line in found:
        result = _piped(run, line)
        assert result.exit_code == 0, (line, result.output)
    assert {line.split()[1] for line in found if line.startswith("gramian")} >= set(NAMES) - {"bench"}


def _piped(run, line):
    """Run a line; of what stands before a pipe, ``cat`` of a file is known."""
    before, _, last = line.rpartition(" | ")
    words = shlex.split(last.partition(" > ")[0])
    data = Path(shlex.split(before)[1]).read_bytes() if before else None
    assert words[0] == "gramian", line
    fast = [] if words[1] not in ("pca", "mixture", "fit", "ridge", "kernel-ridge", "kernel-pca") else FAST
    return run(*words[1:], *fast, input=data)


def test_bench_compares_with_scikit_learn(answer):
    found = answer("bench", "--quick", "--threads", 1)["workloads"]
    assert len(found) == 4
    assert max(row["difference"] for row in found) < 1e-4
    assert all(row["Gramian s"] > 0 for row in found)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run, shell):
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    result = run("completion", shell)
    assert result.exit_code == 0, result.output
    assert "_GRAMIAN_COMPLETE" in result.output


def test_completion_of_commands_and_options():
    environment = {**os.environ, "_GRAMIAN_COMPLETE": "bash_complete", "COMP_WORDS": "gramian ke", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", "from gramian.cli import main; main(prog_name='gramian')"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["plain,kernel-pca", "plain,kernel-ridge"]


def test_a_command_that_is_not_there(run):
    result = run("pcaa")
    assert result.exit_code == 2
    assert lines_of(result) == ["Error: there is no command 'pcaa'; did you mean 'pca'? Try 'gramian --help'."]


def test_a_file_that_is_not_there(run):
    result = run("pca", "nowhere.csv", "--json")
    assert result.exit_code == 2
    (line,) = lines_of(result)
    assert "no file 'nowhere.csv'" in line


def test_tracebacks_only_for_those_who_ask(run, tmp_path):
    (tmp_path / "bad.csv").write_text("a,b\nx,y\n")
    assert len(lines_of(run("pca", "bad.csv", "--json"))) == 1
    result = run("pca", "bad.csv", "--json", "--debug")
    assert result.exit_code == 3
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.strip().splitlines()[-1].startswith("Error: ")


def test_json_is_all_there_is_on_standard_output(run, tmp_path):
    X = np.ones((20, 3))  # warns that there is no variance
    np.save(tmp_path / "flat.npy", X)
    result = run("pca", "flat.npy", "--json", "-v", "--out", "out", *FAST)
    found = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert found["warnings"]
    assert found["files"] == sorted(path.name for path in (tmp_path / "out").iterdir())
    assert "Warning:" in result.stderr


def test_verbose_says_what_was_decided(run):
    quiet, loud = (run("pca", "geyser.csv", "--json", *flags).stderr for flags in ((), ("-v",)))
    assert quiet == ""
    assert "120 rows" in loud
    assert "because" in loud
    assert "passes" in loud


def test_threads_and_memory_are_set_and_given_back(run, monkeypatch):
    from sklearn import get_config
    from threadpoolctl import threadpool_info

    before = threadpool_info(), get_config()["working_memory"]
    result = run("pca", "geyser.csv", "--json", "--threads", 1, "--memory", "64M", "-v")
    assert result.exit_code == 0
    assert "threads: 1" in result.stderr
    assert "16 MiB" in result.stderr
    assert (threadpool_info(), get_config()["working_memory"]) == before


def test_standard_input_is_read(answer, files):
    text = (files / "geyser.csv").read_bytes()
    found = answer("pca", "-", input=text)
    assert found["data"]["file"] == "standard input"
    assert found["data"]["rows"] == 120
    assert found["variances"] == answer("pca", "geyser.csv")["variances"]


@pytest.mark.parametrize(
    "name",
    [
        "with space.csv",
        "quote'\"quote.csv",
        "[bold]markup[b].csv",
        "--force.csv",
        "a\nnew line.csv",
        "\x1b[31mred.csv",
        "müsli, ナ.csv",
        "$(touch owned).csv",
        "a::b.csv",
    ],
)
def test_hostile_file_names(run, tmp_path, files, name):
    (tmp_path / name).write_bytes((files / "geyser.csv").read_bytes())
    out = f"out of {name}"
    arguments = ("pca", "--json", *FAST, "--out", f"./{out}", f"./{name}")
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert "\x1b" not in found["data"]["file"]
    assert (tmp_path / out / "scores.csv").exists()
    again = run(*arguments)
    assert again.exit_code == 2
    assert len(lines_of(again)) == 1
    assert "\x1b" not in again.stderr
    shown = run("info", f"./{name}")
    assert shown.exit_code == 0
    assert "\x1b" not in shown.output


def test_names_that_are_no_text(run, tmp_path, files):
    name = os.fsdecode(b"caf\xe9.csv")
    try:
        (tmp_path / name).write_bytes((files / "geyser.csv").read_bytes())
    except OSError:
        pytest.skip("this file system takes names in UTF-8 only")
    result = run("pca", name, "--out", "out", *FAST)
    assert result.exit_code == 0, result.output
    assert "caf\N{REPLACEMENT CHARACTER}.csv" in (tmp_path / "out" / "certificate.json").read_text("utf-8")


@pytest.mark.parametrize("label", ["<script>alert(1)</script>", "=1+1", "a" * 5000, "\x1b[31m"])
def test_hostile_cells(run, tmp_path, columns, label):
    rows = "\n".join(f'{i},{i * i % 7},"{label}"' for i in range(12))
    (tmp_path / "x.csv").write_text(f"a,b,kind\n{rows}\n")
    result = run("pca", "x.csv", "--label", "kind", "--drop", "a", "--out", "out", "--no-pictures")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert columns(tmp_path / "out" / "scores.csv")["label"][0] == label
    assert "<script>alert" not in (tmp_path / "out" / "report.html").read_text("utf-8")


def test_help_loads_no_pictures_and_no_command():
    code = "import sys; from gramian.cli import main; main(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "gramian.cli" in loaded
    assert not loaded & {"bokeh", "matplotlib", "numpy", "pyarrow", "rich", "scipy", "sklearn", "torch"}


def test_a_process_succeeds_and_fails_with_its_codes_and_reports_alone_load_bokeh(files, tmp_path):
    code = (
        "import sys; from gramian.cli import main\n"
        "main([*sys.argv[1:3], '--json'], standalone_mode=False); assert 'bokeh' not in sys.modules\n"
        "main()"
    )
    work = [sys.executable, "-c", code, "pca", files / "geyser.csv", "--out", tmp_path / "out"]
    done = subprocess.run(work, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # no progress where there is no terminal
    assert "report.html" in done.stdout
    done = subprocess.run([*PROGRAM, "--nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Long work that was asked to end, by two signals: started together, for most of the time is imports."""
    folders = {number: tmp_path_factory.mktemp("stopped") for number in (signal.SIGINT, signal.SIGTERM)}
    started = {number: _long_work(folder) for number, folder in folders.items()}
    ended = {}
    try:
        for number, process in started.items():
            line = process.stderr.readline()  # the file is read, and fitting has begun
            assert "x.npy" in line
            time.sleep(0.5)
            process.send_signal(number)
            ended[number] = (process, *process.communicate(timeout=60), folders[number])
    finally:
        for process in started.values():
            process.kill()
    return ended


def _long_work(folder):
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(4000, 8)))
    work = [*PROGRAM, "mixture", folder / "x.npy", "--starts", "50", "-v", "--out", folder / "deep" / "out"]
    return subprocess.Popen(work, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_work_and_leaves_nothing(stopped, number, code):
    process, output, errors, folder = stopped[number]
    assert process.returncode == code, errors
    assert output == ""
    assert "Traceback" not in errors
    assert errors.rstrip().endswith("Stopped. Nothing half done is left behind.")
    assert sorted(path.name for path in folder.iterdir()) == ["x.npy"]


SWALLOW = """
import sys
from time import sleep
import click
from gramian import cli
from gramian.sources.writing import write_whole_folder

@click.command()
@click.argument("out")
def swallow(out):
    with write_whole_folder(out) as folder:
        (folder / "half.txt").write_text("half")
        print("ready", flush=True)
        while True:
            try:
                sleep(60)
            except BaseException:  # as a callback from C does
                pass

cli._import_command = lambda where: swallow
cli.main()
"""


@pytest.mark.parametrize("signals", [1, 2])
def test_a_signal_that_is_swallowed_ends_the_work_all_the_same(tmp_path, signals):
    work = [sys.executable, "-c", SWALLOW, "pca", tmp_path / "out"]
    process = subprocess.Popen(work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        for _ in range(signals):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        errors = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["closed", "full"])
def test_output_that_nobody_takes_ends_without_a_traceback(files, tmp_path, place):
    if place == "full" and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    arguments = ["info", files / "flowers.csv"]
    if place == "full":
        with open("/dev/full", "w") as full:
            done = subprocess.run([*PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 1
        assert "No space left" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    else:
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([*PROGRAM, *arguments], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
        os.close(write)
        assert done.returncode == 141
        assert done.stderr == ""


@pytest.mark.parametrize("options", [[], ["--json"], ["--out", "found", "--force", *FAST]], ids=" ".join)
def test_without_standard_streams(files, tmp_path, options):
    words = shlex.join([*PROGRAM, "pca", str(files / "flowers.csv"), *options])
    done, other = (
        subprocess.run(["sh", "-c", f"{words} {how}"], check=False, cwd=tmp_path, capture_output=True, text=True)
        for how in (">&-", "<&- 2>&-")
    )
    assert done.returncode == 1  # what was to be told is lost
    assert done.stderr.splitlines()[-1] == "Error: Bad file descriptor: standard output."
    assert "Traceback" not in done.stderr
    assert other.returncode == 0
    assert other.stdout


def test_an_answer_goes_where_standard_output_was_when_the_command_began(run, monkeypatch):
    fit, other = gramian.PCA.fit, io.StringIO()

    def fit_and_swap(self, *arguments, **options):
        monkeypatch.setattr("sys.stdout", other)  # as a library, or another thread, that redirects what is printed
        return fit(self, *arguments, **options)

    monkeypatch.setattr(gramian.PCA, "fit", fit_and_swap)
    assert json.loads(run("pca", "flowers.csv", "--json").stdout)["command"] == "pca"
    assert "Arithmetic" in run("pca", "flowers.csv").stdout
    assert other.getvalue() == ""


def test_genotypes_have_commands_of_their_own(monkeypatch, tmp_path):
    @click.command()
    @click.argument("words", nargs=-1)
    def genotype_pca(words):
        click.echo(f"genotypes: {words}")

    module = type(sys)("gramian.cli.genotypes")
    module.genotype_pca = genotype_pca
    monkeypatch.setitem(sys.modules, "gramian.cli.genotypes", module)
    monkeypatch.chdir(tmp_path)
    Path("cohort.bed").write_bytes(b"")
    result = CliRunner().invoke(main, ["pca", "cohort.bed"])
    assert result.output == "genotypes: ('cohort.bed',)\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_error_ends_the_process_with_its_code_every_time(tmp_path, ending):
    """No thread of a library may abort what is left of the process."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"who": [f"p{i}" for i in range(30)], "x": range(30)})
    path = tmp_path / f"t.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    command = [sys.executable, "-m", "gramian", "pca", str(path), "--categorical", "refuse", "--json"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for run in runs:
        out, error = run.communicate()
        assert (run.returncode, out) == (3, "")
        assert error.startswith("Error: ")
        assert error.count("\n") == 1
