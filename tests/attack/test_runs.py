"""Commands that are stopped, killed, out of space or run twice: results are whole or absent, nothing is left behind.

Set GRAMIAN_ATTACK_CASES for more moments than the short form tries.
"""

import json
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from attack.harness import case_count, seed
from gramian.persistence import load
from gramian.sources.writing import PARTIAL

PROGRAM = [sys.executable, "-m", "gramian"]
FAST = ("--no-report", "--no-pictures")


def start(*arguments, **settings):
    return subprocess.Popen(
        [*PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings
    )


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A table, and how long a run on it takes."""
    folder = tmp_path_factory.mktemp("study")
    X = np.random.default_rng(0).normal(size=(200, 5))
    np.savetxt(folder / "x.csv", X, delimiter=",", header="a,b,c,d,e", comments="")
    begin = time.perf_counter()
    process = start("pca", folder / "x.csv", "-k", 1, "--out", folder / "out", *FAST)
    assert process.wait() == 0
    process.communicate()
    return folder / "x.csv", folder / "out", time.perf_counter() - begin


def components_of(folder):
    """How many components the model, the certificate and the table speak of; all the same, or there is none."""
    found = {
        len(load(folder / "model.gramian").components_),
        len(json.loads((folder / "certificate.json").read_text())["values"]),
        (folder / "scores.csv").read_text().partition("\n")[0].count("PC"),
    }
    assert len(found) == 1
    return found.pop()


def hidden(folder):
    return [path.name for path in folder.rglob(f"{PARTIAL}*")]


def moments(lasting, short):
    """Random moments of a run."""
    rng = np.random.default_rng(seed())
    return rng.uniform(0.1, 1.0, case_count(short)) * lasting


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_a_run_that_is_asked_to_stop_ends_soon_and_leaves_the_old_results_or_the_new(study, tmp_path):
    table, old, lasting = study
    for moment in moments(lasting, 1):
        out = tmp_path / f"{moment:.6f}"
        out.mkdir()
        for path in old.iterdir():
            (out / path.name).write_bytes(path.read_bytes())
        (out / "notes.txt").write_text("mine")
        process = start("pca", table, "-k", 2, "--out", out, "--force", *FAST)
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=30)[1]
        assert process.returncode in (0, 130, -signal.SIGINT), (moment, errors)  # negative: before any code of ours
        assert "Traceback" not in errors or process.returncode == -signal.SIGINT, (moment, errors)
        assert components_of(out) in ((2,) if process.returncode == 0 else (1, 2))
        assert (out / "notes.txt").read_text() == "mine"
        assert hidden(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
def test_what_a_killed_run_leaves_is_of_one_run_and_cleared_by_the_next(study, tmp_path):
    table, old, lasting = study
    for moment in moments(lasting, 1):
        out = tmp_path / f"{moment:.6f}"
        out.mkdir()
        for path in old.iterdir():
            (out / path.name).write_bytes(path.read_bytes())
        process = start("pca", table, "-k", 2, "--out", out, "--force", *FAST)
        time.sleep(moment)
        process.kill()
        process.communicate()
        assert components_of(out) in (1, 2)
        again = start("pca", table, "-k", 3, "--out", out, "--force", *FAST)
        errors = again.communicate()[1]
        assert again.returncode == 0, errors
        assert components_of(out) == 3
        assert hidden(tmp_path) == []


def test_of_two_runs_into_one_folder_one_is_refused(study, tmp_path):
    table, _, _ = study
    for case in range(case_count(1)):
        out = tmp_path / str(case)
        both = [start("pca", table, "-k", k, "--out", out, *FAST) for k in (1, 2)]
        ended = [process.communicate()[1] for process in both]
        codes = [process.returncode for process in both]
        assert sorted(codes) == [0, 2], (codes, ended)
        assert components_of(out) == codes.index(0) + 1
        assert str(out) in ended[codes.index(2)]
        assert hidden(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="limits of Unix")
def test_a_disk_that_fills_leaves_nothing_new(study, tmp_path):
    """A file cannot grow beyond a random size, as on a full disk."""
    table, old, _ = study
    largest = max(path.stat().st_size for path in old.iterdir())
    rng = np.random.default_rng(seed())
    for most in rng.integers(0, largest, case_count(1)):
        out = tmp_path / str(most)

        def limit(most=int(most)):
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        process = start("pca", table, "-k", 1, "--out", out, *FAST, preexec_fn=limit)
        errors = process.communicate(timeout=60)[1]
        assert process.returncode == 1, (most, errors)
        assert "Traceback" not in errors
        assert "unexpected" not in errors, (most, errors)
        assert len(errors.splitlines()) == 1
        assert sorted(tmp_path.iterdir()) == []
