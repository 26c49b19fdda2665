"""Landmarks chosen on a device, by torch on the CPU: the same rows as in NumPy, and exact leverage scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramian.kernel_ridge import landmarks as _landmarks
from gramian.kernel_ridge.landmarks import HOW, choose_landmarks, ridge_leverage
from gramian.kernels import Gaussian, Laplacian, Polynomial


def points(n: int, p: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplacian(0.3)], ids=str)
def test_the_same_rows_are_drawn_on_a_device(how: str, weighted: bool, kernel: Any, torch: Any) -> None:
    X = points(400)
    w = np.random.default_rng(1).integers(0, 4, 400) * 0.7 if weighted else None
    for seed in range(3):
        here = choose_landmarks(kernel, X, 30, how, lam=0.4, weights=w, seed=seed)
        there = choose_landmarks(kernel, X, 30, how, lam=0.4, weights=w, seed=seed, device=torch.device("cpu"))
        np.testing.assert_array_equal(there.indices, here.indices)
        np.testing.assert_array_equal(np.asarray(there.points), here.points)
        assert there.note == here.note


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Polynomial(degree=2, gamma=1.0)], ids=str)
def test_leverage_scores_on_a_device_are_exact_where_the_pilot_set_is_all_rows(kernel: Any, torch: Any) -> None:
    X, w = points(80), np.random.default_rng(1).uniform(0.1, 4, 80)
    B = np.sqrt(w)[:, None] * kernel(X) * np.sqrt(w)
    truth = np.diagonal(B @ np.linalg.inv(B + 0.3 * np.eye(80)))
    found = ridge_leverage(kernel, X, 0.3, np.random.default_rng(2).permutation(80), w, torch.device("cpu"))
    np.testing.assert_allclose(found, truth, rtol=1e-8)


@pytest.mark.parametrize("how", HOW)
def test_a_file_gives_the_same_rows_to_a_device(how: str, torch: Any, tmp_path: Path) -> None:
    X = points(500)
    np.save(tmp_path / "x.npy", X)
    path = tmp_path / "x.npy"
    here, there = (choose_landmarks(Gaussian(1.0), path, 20, how, device=d) for d in (None, torch.device("cpu")))
    np.testing.assert_array_equal(there.indices, here.indices)


def test_on_a_card_half_of_its_memory_is_for_the_factor(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of 2·8·30·500 bytes holds a factor of 500 rows in its half."""
    gpu = type("GPU", (), {"type": "cuda"})()
    monkeypatch.setattr(_landmarks, "free_bytes", lambda device: 2 * 8 * 30 * 500)
    plain = _landmarks.kernel_operator
    monkeypatch.setattr(_landmarks, "kernel_operator", lambda *a, device, **k: plain(*a, **k))
    assert "a random sample of 500 of 3000 rows" in choose_landmarks(Gaussian(1.0), points(3000), 30, device=gpu).note
