"""Kernel PCA through Triton's kernels, in their interpreter: fast products iterate, accurate mend, double certify."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context

from gramian import KernelPCA
from gramian.kernels import Gaussian

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize(("tol", "modes"), [(1e-4, ["fast", "accurate", "double"]), (1e-6, ["accurate", "double"])])
def test_the_tolerance_chooses_the_modes(monkeypatch: pytest.MonkeyPatch, tol: float, modes: list[str]) -> None:
    monkeypatch.setattr("gramian.kernel_pca.solve.DENSE", 50)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 8))[rng.integers(0, 6, 150)] * 1.2 + 0.5 * rng.normal(size=(150, 8))
    exact = KernelPCA(4, kernel=Gaussian(0.06), eigen_solver="dense").fit(X)
    model = KernelPCA(4, kernel=Gaussian(0.06), eigen_solver="krylov", tol=tol, device=torch.device("cpu"))
    with config_context(working_memory=0.01):  # too little to store anything
        scores = model.fit(X).transform(X[:9])
    notes = (*model.certificate_.notes, model.certificate_.precision)
    assert [mode for note in notes for mode in ("fast", "accurate", "double") if f"in {mode} mode" in note] == modes
    assert model.certificate_.converged
    assert np.all(np.abs(model.eigenvalues_ - exact.eigenvalues_) <= model.certificate_.value_bounds)
    assert_allclose(scores, exact.transform(X[:9]), atol=tol)
