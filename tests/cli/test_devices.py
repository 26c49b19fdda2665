"""--device: refused before anything is read where it is not there; the same files from there as from the CPU."""

import csv
import inspect
from importlib import import_module

import numpy as np
import pytest

from gramian import PCA, GaussianMixture, KernelPCA, KernelRidge, Ridge, RidgeCV, load
from gramian.cli import options as devices
from gramian.compute.devices import resolve

FAST = ("--no-report", "--no-pictures")
COMMANDS = {
    "pca": ["flowers.csv", "--drop", "plant,species", "-k", "2"],
    "ridge": ["houses.csv", "--target", "price", "--alpha", "2"],
    "ridge auto": ["houses.csv", "--target", "price"],
    "kernel-pca": ["moons.csv", "--drop", "moon", "--gamma", "2", "-k", "2"],
    "kernel-ridge": ["curve.csv", "--target", "y", "--bandwidth", "1", "--alpha", "0.1"],
    "mixture": ["geyser.csv", "-k", "2", "--covariance", "full"],
}
MADE_BY = {
    "kernel-pca": ("kernel_pca", "KernelPCA", KernelPCA),
    "kernel-ridge": ("kernel_ridge", "KernelRidge", KernelRidge),
    "mixture": ("mixture", "GaussianMixture", GaussianMixture),
}


def written(folder):
    """All numbers of the tables that a command wrote."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="") as file:
            _, *rows = csv.reader(file)
        cells = [cell for row in rows for cell in row]
        found[path.name] = np.array([float(c) for c in cells if c.replace(".", "").strip("-+e0123456789") == "" and c])
    return found


def check_same_tables(a, b):
    a, b = written(a), written(b)
    assert list(a) == list(b)
    for name, numbers in a.items():
        assert len(numbers) > 3
        np.testing.assert_allclose(numbers, b[name], rtol=1e-6, atol=1e-6 * np.abs(b[name]).max(), err_msg=name)


@pytest.mark.parametrize("command", ["pca", "ridge", "kernel-pca", "kernel-ridge", "mixture"])
@pytest.mark.parametrize("device", ["abacus", "cuda:99"])
def test_a_device_that_is_not_there_exits_2(run, tmp_path, command, device):
    pytest.importorskip("torch")
    result = run(command, *COMMANDS[command], "--out", "out", "--device", device)
    assert result.exit_code == 2
    assert f"--device '{device}' cannot be used" in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_device_without_torch_exits_2_and_names_the_extra(run, monkeypatch):
    def absent(device):
        raise ImportError(f'device {device!r} needs torch: pip install "gramian[gpu]".')

    monkeypatch.setattr(devices, "resolve", absent)
    result = run("pca", *COMMANDS["pca"], "--device", "cuda")
    assert result.exit_code == 2
    assert 'pip install "gramian[gpu]"' in " ".join(result.stderr.split())


@pytest.mark.parametrize("command", ["pca", "ridge", "kernel-pca", "kernel-ridge", "mixture"])
def test_every_command_offers_it(run, command):
    text = " ".join(run(command, "--help").output.split())
    assert "--device" in text
    assert "cpu, cuda, cuda:1, or auto" in text


@pytest.mark.parametrize("command", ["pca", "ridge", "ridge auto"])
def test_results_of_a_card_are_those_of_the_cpu(run, tmp_path, command):
    pytest.importorskip("torch")
    from pretend import pretend_gpu

    name = command.split()[0]
    assert run(name, *COMMANDS[command], "--out", "here", *FAST).exit_code == 0
    with pretend_gpu():
        result = run(name, *COMMANDS[command], "--out", "there", "--device", "cuda", *FAST)
    assert result.exit_code == 0, result.output
    check_same_tables(tmp_path / "there", tmp_path / "here")
    model = load(tmp_path / "there" / "model.gramian")
    assert isinstance(model, {"pca": PCA, "ridge": Ridge, "ridge auto": RidgeCV}[command])
    assert model.device is None  # it opens on a machine without a GPU
    assert "cuda:0 (a pretended GPU)" in (tmp_path / "there" / "certificate.json").read_text("utf-8")


@pytest.mark.parametrize("command", MADE_BY)
def test_kernels_and_mixtures_are_handed_the_device(run, tmp_path, command, monkeypatch, torch):
    module, name, cls = MADE_BY[command]
    place, seen = torch.device("cpu"), []

    def made(*args, device, **options):
        seen.append(device)
        return cls(*args, device=place if device == "cuda" else device, **options)

    assert inspect.signature(cls).parameters["device"].default is None
    assert run(command, *COMMANDS[command], "--out", "here", *FAST).exit_code == 0
    monkeypatch.setattr(import_module(f"gramian.cli.{module}"), name, made)
    monkeypatch.setattr(devices, "resolve", lambda device: resolve("cpu"))
    result = run(command, *COMMANDS[command], "--out", "there", "--device", "cuda", *FAST)
    assert result.exit_code == 0, result.output
    assert seen == ["cuda"]
    check_same_tables(tmp_path / "there", tmp_path / "here")
    assert load(tmp_path / "there" / "model.gramian").device is None
