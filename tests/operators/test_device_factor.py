"""A Cholesky factor where an operator lives: solutions against NumPy's, refusals with figures, and Cholesky over it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.kernels import Gaussian
from gramian.linear.cholesky import Cholesky
from gramian.operators import Data, DeviceKernelOperator, FeatureCentred, KernelOperator, Operator, kernel_operator
from gramian.operators.base import Capability, device_factor_bytes

LAM = 0.05


class Tiles(Operator):
    """A symmetric matrix that hands out tiles, as an operator on a device does."""

    precision, capabilities = "products by hand", Capability.FACTOR | Capability.TILES

    def __init__(self, M: Any) -> None:
        self.M = Data(M)
        self.shape, self.dtype, self.xp, self.device = self.M.shape, self.M.dtype, self.M.xp, M.device

    @property
    def passes(self) -> int:
        return self.M.passes

    def matmat(self, V: Any) -> Any:
        return self.M.matmat(V)

    def rmatmat(self, U: Any) -> Any:
        return self.M.matmat(U)

    def tile(self, rows: slice, columns: slice, dtype: Any = None) -> Any:
        return self.M.to_dense()[rows, columns].to(dtype)


def matrix(n: int = 300) -> np.ndarray:
    X = np.random.default_rng(0).standard_normal((n, 3))
    return Gaussian(0.3)(X)


def sides(n: int = 300) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, 2)) * [1.0, 1e6]


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-11), ("float32", 1e-3)])
def test_solutions_are_numpys(torch: Any, dtype: str, error: float) -> None:
    K, B = matrix(), sides()
    found = Tiles(torch.from_numpy(K)).device_factor(LAM, dtype)
    want = np.linalg.solve(K + LAM * np.eye(len(K)), B)
    assert found.solve(B).dtype == np.float64
    assert np.linalg.norm(found.solve(B) - want) <= error * np.linalg.norm(want)
    assert found.solve(np.zeros((300, 0))).shape == (300, 0)


def test_a_factor_beyond_the_device_is_refused_with_figures(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 2**20)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    A = Tiles(torch.from_numpy(matrix(500)))
    figure = f"{device_factor_bytes(500) / 2**20:.1f} MiB on torch on cpu, where 1.0 MiB are free"
    with pytest.raises(MemoryError, match=f"A Cholesky factor of 500 rows in float64 would take {figure}.*solver='cg'"):
        A.device_factor(LAM)


def test_what_cannot_be_factored_there_is_refused(torch: Any) -> None:
    with pytest.raises(ValueError, match="no factor"):
        Data(matrix(5)).device_factor(LAM)
    with pytest.raises(ValueError, match="is square"):
        kernel_operator(Gaussian(1.0), np.ones((3, 1)), np.ones((2, 1)), device=torch.device("cpu")).device_factor(1.0)


def test_cholesky_uses_the_factor_of_the_operator(torch: Any) -> None:
    K, B = matrix(), sides()
    found = Cholesky(1e-12)(Tiles(torch.from_numpy(K)), B, LAM)
    assert isinstance(found.values, torch.Tensor)
    assert_allclose(found.values.numpy(), np.linalg.solve(K + LAM * np.eye(300), B), rtol=1e-9, atol=1e-11)
    assert found.certificate.method.startswith("Cholesky factor in float64")
    assert found.certificate.precision == "products by hand"
    values = np.linalg.eigvalsh(K)
    assert 0.3 < found.certificate.condition / ((values[-1] + LAM) / (values[0] + LAM)) <= 1.01


def test_a_factor_in_single_precision_is_refined(torch: Any) -> None:
    K, B = matrix(), sides()
    found = Cholesky(1e-12, precision="float32")(Tiles(torch.from_numpy(K)), B, LAM)
    assert found.certificate.converged
    assert found.certificate.iterations >= 1
    assert_allclose(found.values.numpy(), np.linalg.solve(K + LAM * np.eye(300), B), rtol=1e-8, atol=1e-9)


def test_an_indefinite_matrix_is_told_as_on_the_host(torch: Any) -> None:
    K = matrix(40)
    K -= 0.5 * np.eye(40)
    with pytest.raises(np.linalg.LinAlgError, match="negative eigenvalue below") as ours:
        Cholesky()(Tiles(torch.from_numpy(K)), np.ones((40, 1)), LAM)
    with pytest.raises(np.linalg.LinAlgError) as theirs:
        Cholesky(precision="float64")(Data(K), np.ones((40, 1)), LAM)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_kernels_centred_and_weighted_on_a_device_as_on_the_host(torch: Any, centre: bool, weighted: bool) -> None:
    X, B = np.random.default_rng(0).standard_normal((260, 3)), sides(260)
    w = np.random.default_rng(2).uniform(0.5, 2.0, 260) if weighted else None
    here = FeatureCentred(KernelOperator(Gaussian(0.3), X), w, centre=centre)
    there = FeatureCentred(DeviceKernelOperator(Gaussian(0.3), X, device=torch.device("cpu")), w, centre=centre)
    ours, theirs = Cholesky(1e-10)(there, B, LAM), Cholesky(1e-10, "float64")(here, B, LAM)
    assert_allclose(ours.values.numpy(), theirs.values, rtol=1e-8, atol=1e-10)
    assert "double mode" in ours.certificate.precision
    assert theirs.certificate.precision == ""
