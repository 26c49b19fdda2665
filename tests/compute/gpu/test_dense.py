"""Dense loops for tensors: chunks, parts and halves change nothing, and float32 data lose nothing in float64 sums."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from gramian.compute import reference
from gramian.compute.devices import to_device, to_numpy
from gramian.compute.gpu import dense
from gramian.compute.moments import block_moments
from pretend import pretend_gpu

LIKE = torch.zeros(1, 1, dtype=torch.float64)


def rows(n: int, p: int, dtype: str = "float32", mean: float = 3.0) -> Any:
    rng = np.random.default_rng(n + p)
    return (rng.standard_normal((n, p)) * np.linspace(0.1, 2.0, p) + mean).astype(dtype)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 5, 130, 300])
def test_parts_of_the_rows_and_halves_of_the_columns(p: int, weighted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "CHUNK_BYTES", 2**19)
    monkeypatch.setattr(dense, "PARTS", 7)
    monkeypatch.setattr(dense, "PART_ROWS", 3)
    X, w = rows(1003, p), np.random.default_rng(1).uniform(0, 2, 1003) if weighted else None
    origin = np.full((1, p), 2.5)
    want = reference.scatter(X.astype(np.float64), w, np.zeros((1, 1)), origin)
    with pretend_gpu() as device:
        like, weights = LIKE.to(device), None if w is None else to_device(w, device)
        s, G = dense.scatter(to_device(X, device), weights, like, to_device(origin, device))
        Y = dense.adjoint(to_device(X, device), to_device(np.ones((1003, 2)), device), to_device(origin, device))
        s, G, Y = map(to_numpy, (s, G, Y))
    for got, expected in zip((s, G), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11 * np.abs(want[1]).max())
    assert np.array_equal(G, G.T)
    np.testing.assert_allclose(Y[:, 1], (X.astype(np.float64) - origin).sum(axis=0), rtol=1e-10, atol=1e-8)


def test_sums_of_float32_numbers_are_those_of_extended_precision() -> None:
    X = rows(4000, 6, mean=1e6)
    found = block_moments(dense, torch.from_numpy(X), None, LIKE, full=True)
    Z = X.astype(np.longdouble)
    D = Z - Z.mean(axis=0)
    np.testing.assert_allclose(to_numpy(found.scatter), np.asarray(D.T @ D, dtype=np.float64), rtol=1e-11, atol=1e-8)
    mean = to_numpy(found.mean).astype(np.longdouble) + to_numpy(found.low)
    np.testing.assert_allclose(np.asarray(mean - Z.mean(axis=0), dtype=np.float64), 0.0, atol=1e-10)


def test_float64_data_in_a_narrower_product() -> None:
    X, V = torch.from_numpy(rows(50, 4, "float64")), torch.ones((4, 2), dtype=torch.float32)
    origin = torch.full((1, 4), 3.0)
    got = dense.product(X, V, origin, 0.5)
    assert got.dtype == torch.float32
    np.testing.assert_allclose(to_numpy(got), (0.5 * to_numpy(X) - 3.0) @ np.ones((4, 2)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("name", "loose", "exact"), [("allow_tf32", True, False), ("fp32_precision", "tf32", "ieee")])
def test_products_keep_their_digits_where_others_may_lose_theirs(name: str, loose: Any, exact: Any) -> None:
    settings = torch.backends.cuda.matmul
    if not hasattr(settings, name):
        pytest.skip(f"this torch has no {name}")
    before = settings.allow_tf32
    try:
        setattr(settings, name, loose)
        with dense.every_digit():
            assert getattr(settings, name) == exact
            assert settings.allow_tf32 is False  # the state that torch itself reads is of one mind
        assert getattr(settings, name) == loose
    finally:
        setattr(settings, name, exact)
        settings.allow_tf32 = before
