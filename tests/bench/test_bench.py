"""The benchmark harness at tiny sizes: its rules, its figures for known cases, one run from end to end."""

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the harness is not installed: it runs from the root

(
    accuracy,
    data,
    floor,
    import_time,
    machine,
    reference,
    report,
    runner,
    spectra,
    verdict,
    worker,
    workloads,
) = (
    importlib.import_module(f"bench.{name}")
    for name in (
        "accuracy",
        "data",
        "floor",
        "import_time",
        "machine",
        "reference",
        "report",
        "runner",
        "spectra",
        "verdict",
        "worker",
        "workloads",
    )
)
NAMES = [workload.name for workload in workloads.WORKLOADS]


def entry(solver="peer", role="peer", seconds=1.0, residual=1e-9, angle=1e-6, peak=10):
    return verdict.Runs(solver, role, [seconds], [peak], [peak], residual, angle)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("name", NAMES)
def test_a_workload_is_prepared_fitted_and_measured(name, cache):
    workload = workloads.find(name).scaled(0.01)
    facts = worker.prepare(workload, cache)
    assert facts["first"] >= facts["last"] > 0
    solver = workload.peers[-1 if workload.kind == "map" else 0]
    result = worker.fit(workload, replace(solver, params={}), cache, limit=60.0, evaluate=True)
    assert result["seconds"] > 0
    assert min(result["peak"], result["before"]) > 0
    assert result["accuracy"]["residual"] < (1e-2 if workload.kind == "map" else 1e-6)


@pytest.mark.parametrize("spectrum", ["slow", "fast"])
def test_dense_data_have_the_spectrum_they_aim_at(spectrum, tmp_path):
    workload = replace(workloads.find(f"dense-20000x2000-{spectrum}"), rows=1200, cols=120)
    data.ensure_data(workload, tmp_path)
    found = reference.ensure_reference(workload, tmp_path)
    signal = spectra.signal(1200, 120, workload.latent, spectrum)
    aim = spectra.with_noise(signal, 1200, 120)[:11]
    np.testing.assert_allclose(found.values, aim, rtol=0.05)


def test_the_memory_map_does_not_depend_on_how_it_is_cut(tmp_path, monkeypatch):
    workload = workloads.find("map-5000000x200-slow").scaled(0.0005)
    data.ensure_data(workload, tmp_path)
    written = data.load(workload, tmp_path)
    assert written.dtype == np.float32
    assert written.shape == (workload.rows, workload.cols)
    whole = reference.Centred(workload, tmp_path)
    monkeypatch.setattr(data, "BLOCK_BYTES", 8 * workload.cols * 7)
    cut = reference.Centred(workload, tmp_path)
    np.testing.assert_allclose(cut.mean, whole.mean, rtol=1e-12)
    v = np.eye(workload.cols)[:, :3]
    np.testing.assert_allclose(cut.normal(v)[0], whole.normal(v)[0], rtol=1e-10, atol=1e-6)


def test_sparse_data_have_about_the_density_asked(tmp_path):
    for name in ("sparse-100000x20000-topics", "sparse-100000x20000-random"):
        workload = replace(workloads.find(name), rows=2000, cols=4000)
        data.ensure_data(workload, tmp_path)
        matrix = data.load(workload, tmp_path)
        assert matrix.nnz / (2000 * 4000) == pytest.approx(0.005, rel=0.1)


def test_the_lanczos_reference_agrees_with_the_dense_one(tmp_path, monkeypatch):
    workload = workloads.find("sparse-100000x20000-topics").scaled(0.02)
    data.ensure_data(workload, tmp_path)
    exact = reference.ensure_reference(workload, tmp_path)
    found = reference._lanczos(reference.Centred(workload, tmp_path), workload.rank)
    np.testing.assert_allclose(found.values, exact.values, rtol=1e-10)
    assert accuracy.largest_angle(found.right, exact) < 1e-8


def test_the_residual_sees_a_wrong_value_and_a_wrong_vector(cache):
    workload = workloads.find("dense-20000x2000-fast").scaled(0.01)
    data.ensure_data(workload, cache)
    truth = reference.ensure_reference(workload, cache)
    a, values = reference.Centred(workload, cache), truth.values[: workload.rank]
    assert accuracy.measure(a, values, truth.right.T, truth).residual < 1e-12
    longer = values + np.array([0.01 * truth.norm, *np.zeros(workload.rank - 1)])
    wrong = accuracy.measure(a, longer, truth.right.T, truth)
    assert wrong.residual == pytest.approx(0.01 * np.sqrt(2), rel=1e-6)
    assert wrong.value_error == pytest.approx(0.01)
    swapped = truth.right[:, ::-1].T
    assert accuracy.measure(a, values, swapped, truth).residual > 0.1
    assert accuracy.measure(a, values, swapped, truth).angle < 1e-10


@pytest.mark.parametrize(
    ("residual", "angle", "gap", "ours", "fine"),
    [
        (9e-7, 1e-4, 0.1, None, True),
        (2e-6, 1e-4, 0.1, None, False),
        (2e-6, 1e-4, 0.1, entry(residual=5e-7), True),
        (9e-7, 1e-2, 0.1, None, False),
        (9e-7, 1e-2, 0.1, entry(angle=2e-3), True),
        (9e-7, 1.5, 1e-5, None, True),
        (9e-7, None, None, None, True),
        (None, None, None, None, False),
        (float("nan"), None, None, None, False),
    ],
)
def test_who_counts_as_accurate(residual, angle, gap, ours, fine):
    assert verdict.accurate(entry(residual=residual, angle=angle), "float64", gap, ours) is fine


def test_the_ratio_is_to_the_fastest_accurate_peer():
    workload = workloads.find("dense-20000x2000-slow")
    runs = [
        entry("ours", "ours", seconds=1.0),
        entry("quick and wrong", seconds=0.5, residual=1e-2),
        entry("slow", seconds=4.0),
        entry("right", seconds=2.0),
        entry("elsewhere", "context", seconds=0.1),
    ]
    found = verdict.judge(workload, runs, 0.1, floor.Count(1, 1.0, 1.0, 0.25))
    assert (found.rival, found.ratio, found.met, found.over_floor) == ("right", 2.0, True, 4.0)
    assert found.status["quick and wrong"] == "inaccurate"
    runs[0].residual = 1e-2
    found = verdict.judge(workload, runs, 0.1, floor.Count(1, 1.0, 1.0, 0.25))
    assert (found.rival, found.met, found.status["ours"]) == ("right", False, "inaccurate")


def test_out_of_core_the_peer_counts_whatever_its_accuracy_and_memory_is_judged():
    workload = workloads.find("map-5000000x200-slow")
    runs = [entry("ours", "ours", peak=2_000_000_000), entry("inexact", seconds=20.0, residual=0.1)]
    found = verdict.judge(workload, runs, 0.1, floor.Count(1, 1.0, 1.0, 0.5))
    assert (found.ratio, found.met, found.memory_met) == (20.0, True, False)


def test_a_peer_that_failed_has_no_time():
    failed = entry()
    failed.failure = "over the time limit"
    runs = [entry("ours", "ours"), failed]
    found = verdict.judge(workloads.find(NAMES[0]), runs, None, floor.Count(1, 1.0, 1.0, 1.0))
    assert (found.rival, found.ratio, found.met) == (None, None, None)


def test_the_floor_counts_bytes_and_flops():
    speed = floor.Speed(20e9, 100e9)
    tall = floor.count(workloads.find("dense-100000x200-slow"), 20_000_000, speed)
    assert (tall.passes, tall.bytes) == (1, 160e6)
    assert tall.seconds == pytest.approx(0.04, rel=0.05)  # 4·10⁹ flops, which outlast the read
    wide = workloads.find("dense-5000x20000-slow")
    krylov = floor.count(wide, 100_000_000, speed)
    assert krylov.bytes == wide.route.passes * 800e6
    assert krylov.seconds == pytest.approx(wide.route.passes * 0.04)
    sparse = floor.count(workloads.find("sparse-100000x20000-topics"), 10_000_000, speed)
    assert sparse.bytes == sparse.passes * (120e6 + 400e3)


def test_short_fits_are_repeated_and_long_ones_are_not():
    assert [runner.repetitions(first) for first in (0.1, 1.0, 5.0, 40.0)] == [7, 5, 3, 1]


def test_a_fit_over_its_limit_is_ended(cache):
    worker.prepare(workloads.find("map-5000000x200-slow").scaled(0.01), cache)
    options = ["--workload", "map-5000000x200-slow", "--scale", "0.01", "--solver", "sklearn IncrementalPCA"]
    with pytest.raises(runner.JobError, match="time limit"):
        runner.run_worker("fit", *options, "--limit", "0.001", "--cache", str(cache))


def test_a_failing_job_says_why():
    with pytest.raises(runner.JobError, match="KeyError"):
        runner.run_worker("prepare", "--workload", "none of them")


def test_the_parent_stays_small():
    code = "import sys, bench.__main__; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_the_machine_is_described_without_paths():
    facts = {**machine.describe(), **machine.probe(1, 32)}
    assert facts["cores"] >= 1
    assert facts["bandwidth_gb_s"] > 0
    assert not any("/" in str(value) for name, value in facts.items() if name != "cpu")


def test_import_times_are_medians():
    times = import_time.compare(("json", "math"), runs=1)
    assert all(value >= 0 for value in times.values())


@pytest.mark.parametrize("candidate", ["gramian", "sklearn"])
def test_from_end_to_end(candidate, tmp_path):
    out, kept = tmp_path / "out", tmp_path / "cache"
    options = ["--only", "map", "--scale", "0.002", "--repeats", "1", "--candidate", candidate]
    command = [sys.executable, "-m", "bench", *options, "--out", str(out), "--cache", str(kept)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (table,), (document,) = out.glob("pca-*.md"), out.glob("pca-*.json")
    text, content = table.read_text(encoding="utf-8"), json.loads(document.read_text(encoding="utf-8"))
    assert "IncrementalPCA" in text
    assert str(tmp_path) not in text + json.dumps(content)
    assert text in done.stdout + "\n"
    (outcome,) = content["workloads"]
    assert all(run["failure"] is None for run in outcome["runs"])
    assert outcome["verdict"]["ratio"] > 0
    assert [file.name for file in kept.iterdir()] == [f"{_key(0.002)}.reference.npz"]


def _key(scale):
    return workloads.find("map-5000000x200-slow").scaled(scale).key


def test_the_table_escapes_bars():
    assert report.table(["a|b"], [["c"]]).splitlines()[0] == "| a∣b |"
