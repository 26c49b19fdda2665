"""Models that were fitted to tensors, on the CPU and on a GPU: saved as those fitted to NumPy's arrays are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramian import (
    PCA,
    GaussianMixture,
    GenotypePCA,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Ridge,
    RidgeCV,
)
from gramian.persistence import load, save

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from pretend import GPU, pretend_gpu

CPU = torch.device("cpu")
RNG = np.random.default_rng(0)
X = RNG.integers(0, 3, (40, 6)).astype(np.float64)
Y = np.arange(40) % 2

MODELS = {
    "PCA": PCA(2),
    "KernelPCA": KernelPCA(2, kernel="rbf"),
    "Ridge": Ridge(),
    "RidgeCV": RidgeCV(),
    "KernelRidge": KernelRidge(kernel="rbf"),
    "KernelRidge of landmarks": KernelRidge(kernel="rbf", solver="landmarks", n_landmarks=9),
    "KernelLogisticRegression": KernelLogisticRegression(1.0),
    "KernelRidgeClassifier": KernelRidgeClassifier(),
    "GaussianMixture": GaussianMixture(1),
    "GenotypePCA": GenotypePCA(2),
}


def answers(model: Any, rows: Any) -> Any:
    return model.transform(rows) if hasattr(model, "transform") else model.predict(rows)


@pytest.mark.parametrize("place", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", MODELS)
def test_models_of_tensors_come_back_in_numpy(name: str, place: Any, tmp_path: Path) -> None:
    model, plain, path = MODELS[name], tmp_path / "plain.gramian", tmp_path / "tensors.gramian"
    save(model.fit(X, Y), plain)
    known = answers(model, X)
    with pretend_gpu():
        save(model.fit(torch.from_numpy(X).to(place), torch.from_numpy(Y).to(place)), path)
        assert isinstance(answers(model, torch.from_numpy(X).to(place)), torch.Tensor)  # the model itself is unchanged
    again = load(path)
    assert not any(isinstance(value, torch.Tensor) for value in vars(again).values())
    assert type(answers(again, X)) is np.ndarray
    np.testing.assert_allclose(answers(again, X), known, atol=1e-6)
    assert abs(path.stat().st_size - plain.stat().st_size) < 2000  # nothing is there twice


@pytest.mark.parametrize("name", ["PCA", "KernelRidgeClassifier", "GaussianMixture"])
def test_a_device_of_torch_is_refused_and_its_name_is_kept(name: str, tmp_path: Path) -> None:
    model, path = MODELS[name], tmp_path / "model.gramian"
    model.set_params(device=CPU).fit(X, Y)
    with pytest.raises(ValueError, match=rf"{name}\.device is device\(.*set_params\(device='cpu'\), or device=None"):
        save(model, path)
    assert not path.exists()
    save(model.set_params(device=None), path)
    assert load(path).device is None
    save(model.set_params(device="cpu"), path)
    np.testing.assert_allclose(answers(load(path), X), answers(model, X))
    model.set_params(device=None)
