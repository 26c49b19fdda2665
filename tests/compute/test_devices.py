"""Devices by name: what there is, and a reason with a remedy for what there is not."""

from typing import Any

import numpy as np
import pytest

from gramian import KernelRidge, save
from gramian.compute.devices import resolve, to_numpy

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from pretend import pretend_gpu


@pytest.mark.parametrize(
    "device", ["gpu", "CUDA", "", "mps", "auto:1", 3, True, b"cpu", ["cuda"], torch.device("meta")]
)
def test_what_is_no_device_of_ours_is_told_what_is(device: Any) -> None:
    with pytest.raises(ValueError, match=r"auto.*cpu") as e:
        resolve(device)
    assert str(device) in str(e.value)
    with pretend_gpu(), pytest.raises(ValueError, match="auto"):
        resolve(device)


def test_the_gpus_there_are_are_named(monkeypatch: Any) -> None:
    with pretend_gpu() as there:
        assert resolve("cuda") == resolve("cuda:0") == resolve("auto") == there
        with pytest.raises(ValueError, match=r"cuda:7.*cuda:0"):
            resolve("cuda:7")
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
        with pytest.raises(ValueError, match=r"cuda:7.*cuda:3"):
            resolve("cuda:7")


@pytest.mark.parametrize(("built", "reason"), [(None, "was built without CUDA"), ("13.0", "finds no GPU")])
def test_why_there_is_no_gpu(built: Any, reason: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", built)
    monkeypatch.setattr(torch.version, "hip", None)
    with pytest.raises(ValueError, match=f"'cuda'.*torch.*{reason}"):
        resolve("cuda")
    assert resolve("auto") is None


def test_tensors_elsewhere_are_refused_where_they_would_be_worked_on() -> None:
    X = torch.empty(3, 2, device="meta")
    for device in (None, "auto"):
        with pytest.raises(ValueError, match="meta"):
            resolve(device, X)
    assert resolve("cpu", X) is None


def test_half_precision_of_either_kind_reaches_numpy() -> None:
    X = torch.arange(12.0).reshape(6, 2)
    for dtype, expected in ((torch.bfloat16, "float32"), (torch.float16, "float16")):
        found = to_numpy(X.to(dtype))
        assert found.dtype == expected
        np.testing.assert_array_equal(found, X.numpy())
    a = KernelRidge(0.1, kernel="rbf").fit(X.bfloat16(), X[:, 0]).predict(X)
    np.testing.assert_allclose(a, KernelRidge(0.1, kernel="rbf").fit(X.numpy(), X[:, 0].numpy()).predict(X.numpy()))


def test_a_model_file_names_devices(tmp_path: Any) -> None:
    model = KernelRidge(device=torch.device("cpu")).fit(np.eye(3), np.ones(3))
    with pytest.raises(ValueError, match=r"KernelRidge\.device.*device.*model\.set_params\(device='cpu'\)"):
        save(model, tmp_path / "model.gramian")
    save(model.set_params(device="cpu"), tmp_path / "model.gramian")
