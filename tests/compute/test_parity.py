"""The hot loops: plain array code, tiled NumPy, chunks of tensors and sparse give the same numbers."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from gramian.compute import dense as cpu
from gramian.compute import reference, sparse
from gramian.compute.devices import gpu, to_numpy
from gramian.compute.moments import block_moments
from gramian.compute.rowspace import RowSpace
from gramian.compute.threads import n_threads, parallel

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "readonly": lambda X: np.broadcast_to(X, X.shape),
}


def sample(dtype: str, n: int = 3000, p: int = 17) -> np.ndarray:
    rng = np.random.default_rng(1)
    return (
        rng.integers(0, 100, (n, p)).astype(dtype)
        if dtype in ("int8", "uint16", "bool")
        else rng.standard_normal((n, p)).astype(dtype)
    )


def with_tensors(name: str, *args: Any) -> Any:
    """A loop of the GPU on the CPU: arrays in, arrays out."""
    torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

    def tensor(x: Any) -> Any:
        return torch.from_numpy(x) if isinstance(x, np.ndarray) else x

    out = getattr(gpu().dense, name)(*map(tensor, args))
    return tuple(map(to_numpy, out)) if isinstance(out, tuple) else to_numpy(out)


LOOPS = {"cpu": lambda name, *args: getattr(cpu, name)(*args), "gpu": with_tensors}
CASES = [("cpu", layout) for layout in LAYOUTS] + [("gpu", layout) for layout in ("C", "F", "strided")]


@pytest.mark.parametrize(("loops", "layout"), CASES)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int8", "uint16", "bool"])
@pytest.mark.parametrize("displaced", [False, True])
def test_every_loop_agrees_with_reference(loops: str, layout: str, dtype: str, displaced: bool) -> None:
    X, run = LAYOUTS[layout](sample(dtype)), LOOPS[loops]
    rng = np.random.default_rng(2)
    n, p = X.shape
    V, U = rng.standard_normal((p, 5)), rng.standard_normal((n, 5))
    w, c, like = rng.uniform(0, 2, n), rng.uniform(0, 2, p), np.zeros((1, 1))
    origin, unit = (rng.standard_normal((1, p)), 0.5) if displaced else (None, 1.0)

    def same(name: str, *args: Any) -> None:
        got, want = run(name, *args, origin, unit), getattr(reference, name)(*args, origin, unit)
        assert got.dtype == want.dtype
        for a, b in zip([got], [want], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())

    same("product", X, V)
    same("adjoint", X, U)
    for weights in (None, w):
        same("normal", X, V, weights)
    for weights in (None, c):
        same("conormal", X, U, weights)
    for weights in (None, w):
        for name in ("scatter", "spread"):
            got = run(name, X, weights, like, origin, unit)
            want = getattr(reference, name)(X, weights, like, origin, unit)
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())
    Z = X.astype(np.float64)
    R = run("triangle", Z)
    np.testing.assert_allclose(R.T @ R, Z.T @ Z, rtol=1e-10, atol=1e-10 * np.abs(Z.T @ Z).max())


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
@pytest.mark.parametrize("unit", [1.0, 0.25])
def test_sparse_agrees_with_reference(dtype: str, unit: float) -> None:
    S = sp.random_array((300, 11), density=0.2, format="csr", rng=np.random.default_rng(0))
    S.data = np.round(10 * S.data)
    S = S.astype(dtype)
    X, rng = S.toarray(), np.random.default_rng(3)
    V, U, w, c = (
        rng.standard_normal((11, 4)),
        rng.standard_normal((300, 4)),
        rng.uniform(0, 2, 300),
        rng.uniform(0, 2, 11),
    )
    close = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-10)  # noqa: E731
    close(sparse.product(S, V, unit=unit), reference.product(X, V, None, unit))
    close(sparse.adjoint(S, U, unit=unit), reference.adjoint(X, U, None, unit))
    for weights in (None, w):
        close(sparse.normal(S, V, weights, unit=unit), reference.normal(X, V, weights, None, unit))
        s, G = sparse.scatter(S, weights, V, unit=unit)
        want = reference.scatter(X, weights, V, None, unit)
        close(s, want[0])
        close(G, want[1])
        s, q = sparse.spread(S, weights, V, unit=unit)
        ones = np.ones(300) if weights is None else weights
        mean = ones @ (unit * X) / ones.sum()
        close(q, ones @ (unit * X - mean) ** 2)
    for weights in (None, c):
        close(sparse.conormal(S, U, weights, unit=unit), reference.conormal(X, U, weights, None, unit))


@given(
    cuts=st.lists(st.integers(0, 30), max_size=4),
    mean=st.sampled_from([0.0, 1.0, 1e6, -1e10]),
    weighted=st.booleans(),
    full=st.booleans(),
)
def test_moments_of_parts_merge_to_those_of_the_whole(cuts: list[int], mean: float, weighted: bool, full: bool) -> None:
    rng = np.random.default_rng(7)
    X = rng.standard_normal((30, 3)) + mean
    w = rng.integers(0, 3, 30).astype(float) + 0.5 if weighted else None
    like = np.zeros((1, 1))
    edges = sorted({0, 30, *cuts})
    parts = [
        block_moments(cpu, X[a:b], None if w is None else w[a:b], like, full=full) for a, b in itertools.pairwise(edges)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total.merge(part)
    v = np.ones(30) if w is None else w
    centre = X[0]
    mu = v @ (X - centre) / v.sum()
    D = (X - centre) - mu
    want = (D.T * v) @ D
    np.testing.assert_allclose((total.mean - centre) + total.low, mu, atol=1e-12)
    np.testing.assert_allclose(total.scatter, want if full else np.diag(want), rtol=1e-11, atol=1e-11)
    assert total.weight == pytest.approx(v.sum())


@given(cuts=st.lists(st.integers(0, 40), max_size=5), mean=st.sampled_from([0.0, 1e7]), limit=st.integers(3, 20))
def test_a_row_factor_is_exact_or_says_what_it_cut(cuts: list[int], mean: float, limit: int) -> None:
    X = np.random.default_rng(3).standard_normal((40, 12)) + mean
    state, edges = RowSpace.empty(12), sorted({0, 40, *cuts})
    for a, b in itertools.pairwise(edges):
        state = state.update(X[a:b], None, limit)
    D = (X - X[0]) - (X - X[0]).mean(axis=0)
    gap = np.linalg.eigvalsh(D.T @ D - state.factor.T @ state.factor)
    assert gap[0] >= -1e-8  # never too large
    assert gap[-1] <= state.discarded + 1e-8  # and too small by no more than it says
    assert len(state.factor) <= max(limit, 12)
    if limit >= 12:
        assert state.discarded == 0.0
    np.testing.assert_allclose(state.squares, np.sum(D**2, axis=0), rtol=1e-9)


def test_parallel_keeps_order_and_restores_the_blas_limit() -> None:
    before = n_threads()
    shares = parallel(lambda share: list(share), list(range(7)))
    assert sorted(x for share in shares for x in share) == list(range(7))
    with pytest.raises(ZeroDivisionError):
        parallel(lambda share: 1 // 0, [1, 2, 3])
    assert n_threads() == before


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads_gives_the_same_numbers(threads: int) -> None:
    X, V = sample("float64", 5000, 40), np.random.default_rng(0).standard_normal((40, 3))
    with threadpool_limits(threads, user_api="blas"):
        if n_threads() != threads:
            pytest.skip(f"this BLAS has at most {n_threads()} threads")
        got = [cpu.product(X, V), cpu.normal(X, V), cpu.scatter(X, None, V)[1], cpu.triangle(X).T @ cpu.triangle(X)]
        assert n_threads() == threads
    for a, b in zip(got, [X @ V, X.T @ (X @ V), X.T @ X, X.T @ X], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10 * np.abs(b).max())


def test_a_forked_child_makes_its_own_threads() -> None:
    X, V = sample("float64", 5000, 40), np.ones((40, 1))
    with threadpool_limits(2, user_api="blas"):
        cpu.product(X, V)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.allclose(cpu.product(X, V), X @ V) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("unit", [1.0, 0.5])
def test_sparse_rows_that_hold_nothing_are_passed_over(weighted: bool, unit: float) -> None:
    """Of 2,000 rows 40 hold a value: means and scatter are those of all; a slice of a larger matrix counts its own."""
    X = np.zeros((2400, 6))
    X[np.arange(0, 2400, 60), np.arange(40) % 6] = np.random.default_rng(1).standard_normal(40) + 3.0
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 2000) if weighted else None
    some, like = sp.csr_array(X)[200:2200], np.zeros((1, 1))
    s, G = sparse.scatter(some, weights, like, unit=unit)
    mean, q = sparse.spread(some, weights, like, unit=unit)
    expected = reference.scatter(X[200:2200], weights, like, None, unit)
    np.testing.assert_allclose(s, expected[0], rtol=1e-14)
    np.testing.assert_allclose(G, expected[1], rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-13)
    w = np.ones(2000) if weights is None else weights
    D = unit * X[200:2200] - w @ (unit * X[200:2200]) / w.sum()
    np.testing.assert_allclose(q, w @ D**2, rtol=1e-12)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.bool_])
def test_few_rows_are_centred_to_rounding(order, dtype):
    X = np.asfortranarray(np.random.default_rng(3).normal(7, 3, (41, 6))).astype(dtype, order=order)
    c, D = cpu.centre_few(X, 0.5)
    wide = 0.5 * X.astype(np.longdouble)
    np.testing.assert_allclose(c, wide.mean(axis=0).astype(float), rtol=4e-16, atol=1e-300)
    np.testing.assert_array_equal(D, (0.5 * X.astype(np.float64)) - c)
    assert D.flags[f"{order}_CONTIGUOUS"]


def test_a_constant_column_is_its_own_mean():
    c, D = cpu.centre_few(np.full((1000, 2), [0.1, 1e17 / 3]))
    assert c.tolist() == [0.1, 1e17 / 3]
    assert not D.any()
