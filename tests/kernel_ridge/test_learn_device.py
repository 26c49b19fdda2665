"""Kernels are learned on a device as they are in NumPy."""

import numpy as np
import pytest

from gramian import KernelRidgeCV
from gramian.kernel_ridge.learn import LandmarkObjective, Objective, ProbedObjective
from gramian.kernels import Gaussian, Linear, Matern, Polynomial, RationalQuadratic

torch = pytest.importorskip("torch")

KERNEL = (
    Gaussian((0.3, 0.1, 0.6)) + 0.3 * Linear().on([0, 2]) + 0.1 * Polynomial(2, gamma=0.5) * RationalQuadratic(0.7, 2.0)
)


def sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) + 2.0
    return X, np.sin(X @ rng.normal(size=(3, 2))) + 0.1 * rng.normal(size=(60, 2)), rng.uniform(0.5, 2.0, 60)


@pytest.mark.parametrize("criterion", ["loo", "gcv", "marginal_likelihood"])
@pytest.mark.parametrize("which", [Objective, LandmarkObjective, ProbedObjective])
@pytest.mark.parametrize("kernel", [KERNEL, Matern(0.5, 2.0), Matern(1.5, 2.0), Matern(2.5, 2.0)], ids=repr)
def test_criterion_and_gradient_on_a_device(kernel, which, criterion):
    X, Y, w = sample()
    more = {"landmarks": np.arange(0, 60, 6)} if which is LandmarkObjective else {}
    here, there = (which(X, Y, w, True, criterion, device, **more) for device in (None, torch.device("cpu")))
    for ours, theirs in zip(there.evaluate(kernel, 0.2), here.evaluate(kernel, 0.2), strict=True):
        tolerance = 1e-3 if which is ProbedObjective else 1e-7  # what conjugate gradients are asked for
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * np.max(np.abs(theirs)))


def test_learning_from_a_tensor():
    X, Y, _ = sample()
    found = KernelRidgeCV(learn="loo").fit(torch.asarray(X), torch.asarray(Y))
    expected = KernelRidgeCV(learn="loo").fit(X, Y)
    assert torch.is_tensor(found.predict(torch.asarray(X)))
    np.testing.assert_allclose(found.learned_.after, expected.learned_.after, rtol=1e-3)
    lower, upper = found.predict_interval(torch.asarray(X[:3]), 0.9, method="conformal")
    assert torch.is_tensor(lower)
    np.testing.assert_allclose(upper, expected.predict_interval(X[:3], 0.9, method="conformal")[1], rtol=0.05)
