"""Fits that are ended at any moment and go on: the same bits, and nothing of another fit is taken."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramian
from gramian.analysis import parallel_analysis
from gramian.sources.checkpoint import CheckpointError, begin_checkpoint, checkpoint, digest, remember

RNG = np.random.default_rng(5)
X = RNG.normal(size=(600, 40)) @ np.diag(np.geomspace(10, 1, 40))
HOLES = np.where(RNG.random((300, 6)) < 0.1, np.nan, X[:300, :6])
CALLS = RNG.integers(0, 3, size=(80, 300)).astype(float)

FITS: dict[str, Any] = {
    "krylov": lambda x: gramian.PCA(3, svd_solver="krylov").fit(x).components_,
    "gram": lambda x: gramian.PCA(3).fit(x).components_,
    "cg": lambda x: gramian.KernelRidge(kernel="rbf", solver="cg").fit(x, x[:, 0]).predict(x[:5]),
    "kernel PCA": lambda x: gramian.KernelPCA(3, kernel="rbf", eigen_solver="krylov").fit(x).transform(x[:5]),
    "EM": lambda x: gramian.GaussianMixture(2, random_state=0).fit(np.repeat(x[:, :6], 30, axis=0)).means_,
    "EM with holes": lambda x: gramian.GaussianMixture(2, random_state=0).fit(HOLES).means_,
    "PCA with holes": lambda x: gramian.PCA(2).fit(HOLES).components_,
    "ridge": lambda x: gramian.Ridge(solver="lsqr").fit(x, x[:, 1]).coef_,
    "genotypes": lambda x: gramian.GenotypePCA(2, solver="krylov").fit(CALLS).eigenvectors_,
}


class StopError(Exception):
    """The end of a run."""


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@pytest.mark.parametrize("fit", FITS)
def test_a_fit_that_is_ended_after_any_pass_has_the_same_bits(
    fit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, folder = FITS[fit](X), tmp_path / "state"
    with checkpoint(folder):
        np.testing.assert_array_equal(FITS[fit](X), whole)
        passes = len(list(folder.glob("*.npz")))
    assert passes > 1
    assert not folder.exists()
    replace = os.replace
    for last in sorted({1, max(1, passes // 3), passes - 1}):
        left = [last]

        def stop(a: Any, b: Any, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise StopError
            replace(a, b)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", stop)
            with pytest.raises(StopError), checkpoint(folder):
                FITS[fit](X)
        kept = list(folder.glob("*.npz"))
        assert kept
        with checkpoint(folder):
            np.testing.assert_array_equal(FITS[fit](X), whole)
        assert not folder.exists()


def begin(folder: Path, model: Any, *data: Any, **rest: Any) -> None:
    with suppress(StopError), checkpoint(folder):
        model.fit(*data, **rest)
        raise StopError


def test_other_data_parameters_and_targets_are_refused(tmp_path: Path) -> None:
    y, other = X[:, 0], X.copy()
    other[311, 7] += 1e-9
    begin(tmp_path, gramian.Ridge(1.0), X, y)
    for model, data, named in [
        (gramian.Ridge(2.0), (X, y), "alpha"),
        (gramian.Ridge(1.0), (other, y), "data"),
        (gramian.Ridge(1.0), (X, y + 1e-9), "targets"),
        (gramian.PCA(2), (X,), "PCA"),
    ]:
        with pytest.raises(CheckpointError, match=named), checkpoint(tmp_path):
            model.fit(*data)
    with pytest.raises(CheckpointError, match="weights"), checkpoint(tmp_path):
        gramian.Ridge(1.0).fit(X, y, sample_weight=np.arange(600.0))
    with checkpoint(tmp_path):
        np.testing.assert_array_equal(gramian.Ridge(1.0).fit(X, y).coef_, gramian.Ridge(1.0).fit(X, y).coef_)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    begin(tmp_path, gramian.PCA(2), X)
    record = sorted(tmp_path.glob("*.npz"))[1]
    record.write_bytes(record.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match=record.name), checkpoint(tmp_path):
        gramian.PCA(2).fit(X)


def test_a_record_that_reads_as_other_numbers_is_named(tmp_path: Path) -> None:
    begin(tmp_path, gramian.PCA(2), X)
    record = sorted(tmp_path.glob("*.npz"))[1]
    content = record.read_bytes()
    places = [match.start() for match in re.finditer(rb"'<f8', 'fortran_order': (False|True), 'shape': \(\d", content)]
    assert places
    for place in places:  # a shorter type: fewer bytes are read, and no sum of the archive is reached
        damaged = bytearray(content)
        damaged[place + 1 : place + 4] = b"|S1"
        record.write_bytes(bytes(damaged))
        with pytest.raises(CheckpointError, match=record.name), checkpoint(tmp_path):
            gramian.PCA(2).fit(X)


MODEL, PEOPLE = gramian.PCA(2).fit(X[:, :6]), gramian.GenotypePCA(2).fit(CALLS)
USES: dict[str, Any] = {
    "transform": (MODEL.transform, X[:80, :6], X[80:160, :6]),
    "score": (MODEL.score_samples, X[:80, :6], X[80:160, :6]),
    "genotypes": (PEOPLE.transform, CALLS[:40], CALLS[40:]),
    "predict": (gramian.KernelRidge(kernel="rbf").fit(X, X[:, 0]).predict, X[:80], X[80:160]),
    "bare pass": (lambda x: gramian.open(x).reduce(lambda b: b.values.sum(axis=0), np.add), X[:80], X[80:160]),
    "rank": (lambda x: parallel_analysis(gramian.PCA(), x, random_state=0).thresholds, X[:80, :6], X[80:160, :6]),
}


@pytest.mark.parametrize("use", USES)
def test_what_is_made_of_other_data_with_a_fitted_model_is_not_taken_from_a_record(use: str, tmp_path: Path) -> None:
    function, first, second = USES[use]
    known = function(first), function(second)
    assert not np.array_equal(*known)
    with suppress(StopError), checkpoint(tmp_path):
        function(first)
        raise StopError
    with suppress(CheckpointError, StopError), checkpoint(tmp_path):  # refused, or right
        np.testing.assert_array_equal(function(second), known[1])
        raise StopError
    with checkpoint(tmp_path):
        np.testing.assert_array_equal(function(first), known[0])


def test_one_run_at_a_time_and_a_folder(tmp_path: Path) -> None:
    with checkpoint(tmp_path / "a"), pytest.raises(FileExistsError, match="another run"), checkpoint(tmp_path / "a"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError), checkpoint(tmp_path / "file"):
        pass
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "mine.txt").touch()
    with checkpoint(tmp_path / "b"):
        begin_checkpoint(gramian.PCA(), gramian.open(X))
        assert remember("a step", 1, lambda: object()) is not None  # no numbers: made again
        assert (tmp_path / "b" / "00000001.npz").exists()
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["mine.txt"]


SCRIPT = """
import sys, numpy as np, gramian
from sklearn import config_context
with config_context(working_memory=1), gramian.checkpoint(sys.argv[2]):
    model = gramian.PCA(4, svd_solver="krylov", tol=1e-9).fit(sys.argv[1])
    np.save(sys.argv[3], model.components_)
"""


def test_the_process_is_killed_at_random_moments(tmp_path: Path) -> None:
    table, out = tmp_path / "x.npy", tmp_path / "out.npy"
    np.save(table, np.random.default_rng(1).normal(size=(20_000, 60)))
    command = [sys.executable, "-c", SCRIPT, str(table), str(tmp_path / "state"), str(out)]
    subprocess.run(command, check=True)
    whole, draw, kills, ended = np.load(out), random.Random(3), 0, None
    out.unlink()
    while ended != 0:  # a process may be killed when its answer is written and its records are not yet removed
        process = subprocess.Popen(command)
        begun = time.monotonic()
        wanted = len(list((tmp_path / "state").glob("*.npz"))) + draw.randint(1, 4)
        while process.poll() is None and time.monotonic() - begun < 60:
            if kills < 6 and len(list((tmp_path / "state").glob("*.npz"))) >= wanted:
                time.sleep(draw.random() * 0.02)
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.001)
        ended = process.wait(60)
        assert ended in (0, -signal.SIGKILL)
    assert kills
    np.testing.assert_array_equal(np.load(out), whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.npy", "x.npy"]


def test_a_command_removes_its_records_when_its_results_are_written(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    where, out = ["--checkpoint", str(tmp_path / "state")], str(tmp_path / "out")
    command = [sys.executable, "-m", "gramian", "pca", str(tmp_path / "x.npy"), "--out", out, *where]
    begin(tmp_path / "state", gramian.PCA(3), str(tmp_path / "x.npy"))
    other = subprocess.run([*command, "-k", "2"], check=False, capture_output=True, text=True)
    assert other.returncode == 3
    assert "n_components" in other.stderr
    for record in (tmp_path / "state").iterdir():
        record.unlink()
    subprocess.run([*command, "-k", "2"], check=True, capture_output=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.npy"]


def test_fingerprints_tell_functions_and_objects_apart():
    """Constants and defaults of functions, what is bound to them, and attributes of objects without parameters."""

    class Plain:
        def __init__(self, x: float) -> None:
            self.x = x

    class Slotted:
        __slots__ = ("x",)

    pairs = [
        (lambda x: 2 * x, lambda x: 3 * x),
        (lambda x, a=1: x, lambda x, a=2: x),
        (partial(pow, 2), partial(pow, 3)),
        (Plain(1.0), Plain(2.0)),
        ({1, 2}, {1, 3}),
        (np.exp, np.log),
        (Slotted(), Slotted()),  # of which nothing can be known
    ]
    for one, other in pairs:
        assert digest(one) != digest(other)
    for one in (np.exp, Plain(1.0), {"a": {1, 2}}, partial(pow, 2), np.dtype("f4"), Plain):
        assert digest(one) == digest(one)
