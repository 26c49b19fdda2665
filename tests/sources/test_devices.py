"""Sources on devices: the same numbers, whole or streamed; what does not fit is said with figures."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import gramian
from gramian import sources
from gramian.sources import devices

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from pretend import GPUTensor, pretend_gpu

CPU = torch.device("cpu")


def numbers(dtype: str = "float32", n: int = 100, p: int = 7) -> Any:
    return np.random.default_rng(0).integers(0, 100, (n, p)).astype(dtype)


def kinds(X: Any, folder: Any) -> dict[str, Any]:
    np.save(folder / "c.npy", X)
    np.save(folder / "f.npy", np.asfortranarray(X))
    return {
        "array": X,
        "columns": np.asfortranarray(X),
        "reversed": np.ascontiguousarray(X[::-1])[::-1],
        "file": folder / "c.npy",
        "file by columns": folder / "f.npy",
        "map": np.load(folder / "c.npy", mmap_mode="r"),
    }


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "uint8", "int64", "bool", "uint16", ">f4"])
@pytest.mark.parametrize("streamed", [False, True])
def test_every_kind_of_numbers_arrives(dtype: str, streamed: bool, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(devices, "WHOLE", 0.0 if streamed else 0.5)
    monkeypatch.setattr(devices, "BLOCK_BYTES", 200)
    X = numbers(dtype)
    for name, data in kinds(X, tmp_path).items():
        with pretend_gpu() as device:
            there = devices.source_to_device(gramian.open(data), device)
            assert isinstance(there, devices.StreamedSource if streamed else sources.TensorSource), name
            parts = []
            for block in there.blocks():
                assert isinstance(block.values, GPUTensor)
                parts.append(block.values.clone().cpu().numpy())
            assert there.device == device
            assert str(there.dtype).removeprefix("torch.") == {"uint16": "float64", ">f4": "float32"}.get(dtype, dtype)
        np.testing.assert_array_equal(np.concatenate(parts), X.astype(np.float64))


def test_arrays_are_not_copied_for_torch_on_the_cpu() -> None:
    X = numbers()
    there = devices.source_to_device(gramian.open(X), CPU)
    assert isinstance(there, sources.TensorSource)
    assert there.values.data_ptr() == X.ctypes.data


def test_tensors_of_the_cpu_that_are_larger_than_the_card_are_streamed() -> None:
    X = torch.from_numpy(numbers())
    with pretend_gpu(free=2**10) as device:
        there = devices.source_to_device(sources.TensorSource(X, list("abcdefg")), device)
        assert isinstance(there, devices.StreamedSource)
        assert there.feature_names == list("abcdefg")
        parts = [block.values.clone().cpu().numpy() for block in there.blocks(10)]
    np.testing.assert_array_equal(np.concatenate(parts), X)
    same = sources.TensorSource(X)
    assert devices.source_to_device(same, CPU) is same


def test_a_table_that_must_be_there_as_a_whole_is_refused_with_figures() -> None:
    with (
        pretend_gpu(free=2**10) as device,
        pytest.raises(MemoryError, match=r"100 rows.*0\.0 MiB.*cuda:0"),
    ):
        devices.upload(gramian.open(numbers()), device)


def test_names_and_passes_of_a_stream(tmp_path: Any) -> None:
    X = numbers()
    there = devices.StreamedSource(sources.DenseSource(X, list("abcdefg")), CPU)
    assert there.feature_names == list("abcdefg")
    assert not there.resident
    for rows in (1, 33, 1000):
        assert [b.stop for b in there.blocks(rows)][-1] == 100
        np.testing.assert_array_equal(np.concatenate([b.values.numpy().copy() for b in there.blocks(rows)]), X)
    assert devices.source_to_numpy(there) is there.source


def test_back_to_the_host() -> None:
    X = numbers()
    plain = gramian.open(X)
    assert devices.source_to_numpy(plain) is plain
    with pretend_gpu() as device:
        back = devices.source_to_numpy(devices.source_to_device(plain, device))
    assert isinstance(back, sources.DenseSource)
    np.testing.assert_array_equal(back.values, X)


def test_what_no_card_takes() -> None:
    with (
        pretend_gpu() as device,
        pytest.raises(ValueError, match=r"CPU.*device='cpu'"),
    ):
        devices.source_to_device(gramian.open(sp.eye_array(3, format="csr")), device)
    with pytest.raises(ValueError, match="device 'abacus'"):
        devices.source_to_device(gramian.open(numbers()), "abacus")


def test_blocks_that_do_not_fit_are_refused_with_figures() -> None:
    X = np.zeros((4096, 512))
    with pretend_gpu(free=2**20) as device:
        there = devices.source_to_device(gramian.open(X), device)
        assert isinstance(there, devices.StreamedSource)
        words = r"Two blocks of 4096 rows would take 32\.0 MiB on cuda:0 \(a pretended GPU\), where 1\.0 MiB are free"
        with pytest.raises(MemoryError, match=words):
            next(iter(there.blocks()))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU")
@pytest.mark.parametrize("streamed", [False, True])
def test_a_real_gpu_on_cuda(streamed: bool, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(devices, "WHOLE", 0.0 if streamed else 0.5)
    monkeypatch.setattr(devices, "BLOCK_BYTES", 2**16)
    X = np.random.default_rng(0).standard_normal((20_000, 30)).astype(np.float32)
    for name, data in kinds(X, tmp_path).items():
        there = devices.source_to_device(gramian.open(data), torch.device("cuda"))
        total = sum((block.values.double().T @ block.values.double() for block in there.blocks()), start=0.0)
        np.testing.assert_allclose(total.cpu().numpy(), X.T.astype(float) @ X, rtol=1e-10, atol=1e-8, err_msg=name)
