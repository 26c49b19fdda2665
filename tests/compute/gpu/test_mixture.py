"""The sums of an expectation step for tensors: torch and Triton's kernels against the CPU's loops and a naive twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from gramian.compute import mixture as cpu
from gramian.compute.gpu import mixture as gpu
from gramian.compute.mixture import Components, Sums
from oracles import Array

TIGHT, ACCURATE = 1e-12, 2e-6


def components(k: int, d: int, full: bool, seed: int = 0, spread: float = 2.0) -> Components:
    rng = np.random.default_rng(seed)
    roots = np.stack([np.tril(rng.normal(size=(d, d)) * 0.5 / np.sqrt(d + 3)) + np.eye(d) for _ in range(k)])
    roots = roots if full else np.exp(0.3 * roots[:, 0])
    return Components(rng.normal(size=d), spread * rng.normal(size=(k, d)), roots, rng.normal(size=k))


def rows(parts: Components, n: int, seed: int = 0) -> Array:
    """Rows of the components, each as often."""
    rng = np.random.default_rng(seed)
    (_, d), label = parts.centres.shape, np.arange(n) % len(parts.centres)
    L = np.linalg.inv(parts.roots if parts.roots.ndim == 3 else parts.roots[:, :, None] * np.eye(d))
    return parts.origin + parts.centres[label] + np.einsum("nij,nj->ni", L[label], rng.normal(size=(n, d)))


def naive(X: Array, w: Array | None, parts: Components) -> Sums:
    """Row by row and component by component, with NumPy's own matrix products."""
    w = np.ones(len(X)) if w is None else w
    E = X.astype(np.float64)[:, None, :] - parts.origin - parts.centres
    full = parts.roots.ndim == 3
    Y = np.einsum("kij,nkj->nki", parts.roots, E) if full else E * parts.roots
    joint = parts.constants - 0.5 * np.sum(Y**2, axis=2)
    total = logsumexp(joint, axis=1)
    R = np.exp(joint - total[:, None]) * w[:, None]
    second = np.einsum("nk,nki,nkj->kij", R, E, E) if full else np.einsum("nk,nki->ki", R, E**2)
    return Sums(R.sum(axis=0), np.einsum("nk,nki->ki", R, E), second, float(w @ total))


def assert_same(found: Sums, expected: Sums, rtol: float) -> None:
    """Sums as near as ``rtol`` of the largest; of those with signs, of the root of N Σr(d−m)², which bounds them."""
    N, _, second, height = expected
    squares = second if second.ndim == 2 else np.diagonal(second, axis1=1, axis2=2)
    sizes = (N.max(), np.sqrt(N[:, None] * squares).max(), squares.max(), abs(height) + N.sum())
    for a, b, size in zip(found, expected, sizes, strict=True):
        assert isinstance(a, (np.ndarray, float))
        assert_allclose(a, b, rtol=0, atol=rtol * float(size))


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("full", [False, True])
@settings(max_examples=10)
@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 200), d=st.integers(1, 6), k=st.integers(1, 5), weighted=st.booleans()
)
def test_torch_gives_the_sums_of_the_naive_twin_and_of_the_cpu(expanded, full, seed, n, d, k, weighted):
    parts = components(k, d, full, seed)
    X = rows(parts, n, seed)
    w = np.random.default_rng(seed).random(n) if weighted else None
    there = None if w is None else torch.tensor(w)
    found = gpu.expectation(torch.tensor(X), there, parts, expanded=expanded)
    assert_same(found, naive(X, w, parts), TIGHT)
    assert_same(found, cpu.expectation(X, w, parts, expanded=expanded), TIGHT)


@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("k", "d", "n", "weighted"), [(1, 1, 3, False), (3, 5, 150, True), (16, 20, 40, False)])
@pytest.mark.usefixtures("interpreter")
def test_kernels_give_the_sums_of_the_naive_twin(expanded, full, k, d, n, weighted):
    parts = components(k, d, full)
    X = rows(parts, n)
    w = np.random.default_rng(1).random(n) if weighted else None
    there = None if w is None else torch.tensor(w)
    assert_same(gpu.expectation(torch.tensor(X), there, parts, expanded=expanded), naive(X, w, parts), TIGHT)
    narrow = X.astype(np.float32)
    same = torch.tensor(narrow)
    assert_same(gpu.expectation(same, there, parts, expanded=expanded), naive(narrow, w, parts), TIGHT)
    quick = gpu.expectation(same, there, parts, expanded=expanded, tolerance=ACCURATE)
    assert_same(quick, naive(narrow, w, parts), ACCURATE)


@pytest.mark.usefixtures("interpreter")
def test_many_programs_slabs_and_strides(monkeypatch):
    monkeypatch.setattr(gpu, "LONGEST", 1)  # one tile for each program
    monkeypatch.setattr(gpu, "SLAB", 100)
    parts = components(3, 4, True)
    X = rows(parts, 333)
    wide = torch.tensor(np.concatenate([X, X], axis=1))
    for tensor in (wide[:, 4:], torch.tensor(X.T.copy()).T):
        for expanded in (False, True):
            found = gpu.expectation(tensor, None, parts, expanded=expanded)
            assert_same(found, naive(X, None, parts), TIGHT)


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("expanded", [False, True])
def test_weights_that_do_not_lie_one_after_another(expanded):
    parts = components(3, 4, True)
    X, w = rows(parts, 70), np.random.default_rng(1).random(70)
    strided = torch.tensor(np.repeat(w, 2))[::2]
    assert strided.stride() == (2,)
    assert_same(gpu.expectation(torch.tensor(X), strided, parts, expanded=expanded), naive(X, w, parts), TIGHT)


def test_densities_that_do_not_fit_are_refused_with_the_figure(monkeypatch):
    monkeypatch.setattr(gpu, "LARGE", 0)
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 2**20)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    X = torch.zeros(1, 4).expand(10**6, 4)
    with pytest.raises(MemoryError, match=r"1,000,000 rows.*3 components.*22\.9 MiB.*1\.0 MiB"):
        gpu.log_densities(X, components(3, 4, True))


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("full", [False, True])
def test_small_components_far_apart_lose_no_digits_the_whitened_way(full):
    # Binary fractions, so that scaling and shifting are exact and every sum must scale with them, in float32 too.
    Z = np.round(np.random.default_rng(0).normal(size=(80, 2)) * 2**6) / 2**6
    centres = np.array([[0.0, 0.0], [2.0**15, -(2.0**16)]])
    roots = np.stack([np.eye(2)] * 2) if full else np.ones((2, 2))
    parts = Components(np.zeros(2), centres, roots, np.zeros(2))
    X = torch.tensor((Z + np.repeat(centres, 40, axis=0)).astype(np.float32))
    for tolerance in (None, ACCURATE):
        found = gpu.expectation(X, None, parts, tolerance=tolerance)
        for k in range(2):
            mine = Z[40 * k : 40 * k + 40]
            assert_allclose(found.second[k], mine.T @ mine if full else np.sum(mine**2, axis=0), rtol=1e-6)


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("tolerance", [None, ACCURATE])
def test_components_far_apart_that_no_binary_fraction_describes(tolerance):
    parts = components(3, 4, True, spread=3e3)
    X = rows(parts, 90).astype(np.float32)
    found = gpu.expectation(torch.tensor(X), None, parts, tolerance=tolerance)
    assert_same(found, naive(X, None, parts), TIGHT if tolerance is None else ACCURATE)


@pytest.mark.usefixtures("interpreter")
def test_centres_that_float32_does_not_have_are_not_rounded():
    parts = Components(np.array([1e6 + 1 / 3]), np.array([[0.1], [3.0]]), np.full((2, 1, 1), 2.0), np.zeros(2))
    X = (1e6 + np.arange(-16, 64)[:, None] / 16.0).astype(np.float32)
    found = gpu.expectation(torch.tensor(X), None, parts, tolerance=ACCURATE)
    assert_same(found, naive(X, None, parts), ACCURATE)


@pytest.mark.usefixtures("interpreter")
@pytest.mark.parametrize("expanded", [False, True])
@pytest.mark.parametrize("tolerance", [None, ACCURATE])
def test_nothing_and_weights_of_zero(expanded, tolerance):
    parts = Components(np.zeros(1), np.array([[0.0], [30.0], [1.0]]), np.ones((3, 1)), np.array([0.0, 0.0, -np.inf]))
    X = torch.tensor([[0.0], [30.0]])
    found = gpu.expectation(X, None, parts, expanded=expanded, tolerance=tolerance)
    assert_allclose(found.counts, [1.0, 1.0, 0.0], rtol=1e-6)
    assert found.first[0, 0] == 0.0
    none = gpu.expectation(X, torch.zeros(2, dtype=torch.float64), parts, expanded=expanded, tolerance=tolerance)
    assert not none.counts.any()
    assert none.log_likelihood == 0.0


def rounded_to_tf32(x: Array) -> Array:
    """To ten bits after the first, as the conversion for tensor cores rounds."""
    bits = x.astype(np.float32).view(np.uint32)
    return np.asarray(((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32))


def cut_off(total: Array, term: Array) -> Array:
    """A sum in float32 that is cut off and not rounded, as tensor cores may do it."""
    exact = total.astype(np.float64) + term
    near = exact.astype(np.float32)
    too_far = np.abs(near.astype(np.float64)) > np.abs(exact)
    return np.where(too_far, np.nextafter(near, np.float32(0)), near).astype(np.float32)


def three_terms(A: Array, B: Array, groups: int = 8) -> Array:
    """A @ B as hardware computes it in three terms of tf32: eight products at a time, exact, then a sum cut off."""
    a, b = rounded_to_tf32(A), rounded_to_tf32(B)
    pairs = [(rounded_to_tf32(A - a), b), (a, rounded_to_tf32(B - b)), (a, b)]
    total = np.zeros((A.shape[0], B.shape[1]), np.float32)
    for left, right in pairs:
        for i in range(0, A.shape[1], groups):
            total = cut_off(total, left[:, i : i + groups].astype(float) @ right[i : i + groups].astype(float))
    return total


@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_three_terms_of_tf32_keep_the_promise_of_the_accurate_mode(spread):
    """The whitened way with the rounding of tensor cores, which the interpreter does not have, emulated in NumPy."""
    k, d, n, tile = 4, 16, 4096, 64
    parts = components(k, d, True, 3, spread)
    parts = parts._replace(origin=np.zeros(d), centres=parts.centres.astype(np.float32).astype(np.float64))
    X = rows(parts, n).astype(np.float32)
    roots = parts.roots.astype(np.float32)
    Y = np.stack([three_terms(roots[j], (X - parts.centres[j].astype(np.float32)).T) for j in range(k)])
    joint = (parts.constants[:, None] - 0.5 * np.sum(Y * Y, axis=1)).astype(np.float32)
    R = np.exp(joint - logsumexp(joint, axis=0)).astype(np.float32)
    second = np.zeros((k, d, d), np.float32)
    for i in range(0, n, tile):
        part = slice(i, i + tile)
        second += np.stack([three_terms(R[j, part] * Y[j][:, part], Y[j][:, part].T) for j in range(k)])
    L = np.linalg.inv(parts.roots)
    expected = naive(X, None, parts)
    assert_allclose(R.sum(axis=1, dtype=float), expected.counts, rtol=0, atol=ACCURATE * expected.counts.max())
    size = np.abs(expected.second).max()
    assert_allclose(L @ second @ L.transpose(0, 2, 1), expected.second, rtol=0, atol=ACCURATE * size)


@pytest.mark.usefixtures("interpreter")
def test_wide_rows_and_many_components_take_the_plain_way():
    parts = components(3, 40, True)
    X = rows(parts, 50)
    assert_same(gpu.expectation(torch.tensor(X), None, parts, expanded=True), naive(X, None, parts), 1e-11)


@pytest.mark.usefixtures("interpreter")
def test_the_way_follows_from_tolerance_and_rounding():
    narrow, wide = torch.zeros(1, 2), torch.zeros(1, 2, dtype=torch.float64)
    assert gpu.choose_step(wide, 1e3, 1e-2) == gpu.choose_step(narrow, 1e3) == (True, None)
    assert gpu.choose_step(wide, 1e5) == gpu.choose_step(narrow, 1e5, 1e-7) == (False, None)
    assert gpu.choose_step(narrow, 1e3, 5e-4) == gpu.choose_step(narrow, 1e3, ACCURATE) == (False, ACCURATE)
    assert "double" in gpu.describe(wide, 1e-2)
    assert "2e-06" in gpu.describe(narrow, 1e-2)


@pytest.mark.parametrize("full", [False, True])
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_log_densities_and_given_shares(full, seed):
    parts = components(3, 4, full, seed)
    X = rows(parts, 90, seed)
    joint = gpu.log_densities(torch.tensor(X), parts)
    assert_allclose(joint.numpy(), cpu.log_densities(X, parts), rtol=1e-12)
    R = torch.softmax(joint, dim=0).T
    w = np.random.default_rng(seed).random(90)
    found = gpu.weighted_sums(torch.tensor(X), R, torch.tensor(w), parts.origin, parts.centres, full=full)
    assert_same(found._replace(log_likelihood=1.0), naive(X, w, parts)._replace(log_likelihood=1.0), TIGHT)
    labels = np.arange(90) % 3
    found = gpu.weighted_sums(torch.tensor(X), torch.tensor(labels), None, parts.origin, parts.centres, full=full)
    assert_allclose(found.counts, [30.0, 30.0, 30.0])
    mine = X[labels == 1] - parts.origin - parts.centres[1]
    assert_allclose(found.second[1], mine.T @ mine if full else np.sum(mine**2, axis=0), rtol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(("k", "d", "n"), [(1, 1, 3), (3, 5, 5000), (16, 20, 70_001), (5, 40, 3000)])
def test_cuda_gives_the_sums_of_the_cpu(full, k, d, n):
    parts = components(k, d, full)
    X = rows(parts, n).astype(np.float32)
    there, expected = torch.tensor(X, device="cuda"), cpu.expectation(X, None, parts)
    for expanded in (False, True):
        assert_same(gpu.expectation(there, None, parts, expanded=expanded), expected, 1e-10)
    assert_same(gpu.expectation(there, None, parts, tolerance=ACCURATE), expected, ACCURATE)
