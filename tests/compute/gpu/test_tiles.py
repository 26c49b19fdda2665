"""Kernel products on devices against the matrix in float64: every kernel, mode and shape, in every implementation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from gramian.compute import tiles as cpu
from gramian.compute.gpu import launch as _launch
from gramian.compute.gpu import precision as _precision
from gramian.compute.gpu import tiles
from gramian.compute.gpu.points import Frame, layout
from gramian.kernels import (
    AdditiveChi2,
    Chi2,
    Cosine,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)

LENGTHS = (0.8, 1.5, 2.0, 1.0, 3.0)
KERNELS: list[Kernel] = [
    Gaussian(0.3),
    Gaussian(bandwidth=LENGTHS),
    Laplacian(0.2),
    Matern(0.5, 1.5),
    Matern(1.5, 2.0),
    Matern(2.5, LENGTHS),
    RationalQuadratic(0.7, 1.2),
    Linear(),
    Polynomial(3),
    Sigmoid(0.1, -0.3),
    Cosine(),
    Chi2(0.3),
    AdditiveChi2(),
    2.0 * Gaussian(0.1) + Polynomial(2),
    3.0 * Laplacian(0.1) * Gaussian(0.2),
]
MODES = {"fast": ("float32", 1e-3), "accurate": ("float32", None), "double": ("float64", None)}
BOUNDS = {"fast": 5e-4, "accurate": 2e-6, "double": 1e-13}
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
modes = pytest.mark.parametrize("mode", MODES)


def points(n: int, d: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 2, (n, d))


def columns(n: int, k: int, seed: int = 9) -> np.ndarray:
    return np.random.default_rng(seed + k).standard_normal((n, k))


def relative(got: Any, K: np.ndarray, V: np.ndarray) -> float:
    """The largest error of a column, relative to the column or to what a random one of its length would give."""
    want = K @ V
    random = np.linalg.norm(K) / np.sqrt(K.shape[1]) * np.linalg.norm(V, axis=0)
    errors = np.linalg.norm(np.asarray(got, dtype=float) - want, axis=0)
    sizes = np.maximum(random, np.linalg.norm(want, axis=0))
    lost = 1e-35 * np.linalg.norm(V, axis=0)  # below what float32 has room for
    assert not (errors[sizes <= lost] > lost[sizes <= lost]).any()
    return float((errors[sizes > lost] / sizes[sizes > lost]).max(initial=0.0))


class Prepared:
    """k(X, Z) on a device, and the same numbers as a float64 matrix."""

    def __init__(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray | None, mode: str, device: Any) -> None:
        self.dtype, tolerance = MODES[mode]
        self.device, X = device, X.astype(self.dtype)
        Z = None if Z is None else Z.astype(self.dtype)
        self.pairs = tiles.prepare(
            kernel.formula(X.shape[1]),
            self.tensor(X),
            None if Z is None else self.tensor(Z),
            dtype=self.dtype,
            tolerance=tolerance,
        )
        self.matrix = kernel(X.astype(float), None if Z is None else Z.astype(float))

    def tensor(self, A: np.ndarray) -> Any:
        return torch.from_numpy(np.ascontiguousarray(A, dtype=self.dtype)).to(self.device)

    def error(self, function: Any, V: np.ndarray, K: np.ndarray | None = None) -> float:
        V = V.astype(self.dtype)
        got = function(self.pairs, self.tensor(V))
        assert got.dtype == self.pairs.dtype
        assert got.device.type == self.device.type
        return relative(got.cpu(), self.matrix if K is None else K, V.astype(float))


@kernels
@modes
def test_products_are_as_precise_as_they_say(kernel: Kernel, mode: str, implementation: Any) -> None:
    P = Prepared(kernel, points(65), points(75, seed=1), mode, implementation)
    assert BOUNDS[P.pairs.mode] == P.pairs.error <= BOUNDS[mode]  # these points are near each other
    assert P.error(tiles.product, columns(75, 1)) <= P.pairs.error
    assert P.error(tiles.adjoint, columns(65, 3), P.matrix.T) <= P.pairs.error
    if mode == "accurate":
        Q = Prepared(kernel, points(65), None, mode, implementation)
        assert Q.error(tiles.symmetric_product, columns(65, 3)) <= Q.pairs.error


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplacian(0.2), Polynomial(3)], ids=repr)
@modes
@pytest.mark.parametrize("k", [1, 16, 40])
def test_any_number_of_columns(kernel: Kernel, mode: str, k: int, implementation: Any) -> None:
    P = Prepared(kernel, points(65), points(75, seed=1), mode, implementation)
    assert P.error(tiles.product, columns(75, k)) <= P.pairs.error
    if k == 16:
        w = np.random.default_rng(0).uniform(0, 2, 65).astype(P.dtype)
        normal = (P.matrix.T * w) @ P.matrix
        got = tiles.normal(P.pairs, P.tensor(columns(75, k)), P.tensor(w))
        assert relative(got.cpu(), normal, columns(75, k).astype(P.dtype)) <= 3 * P.pairs.error


@kernels
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_loops_of_the_cpu_agree(kernel: Kernel, dtype: str) -> None:
    """The third of the three: the same functions in NumPy."""
    X, Z = points(131).astype(dtype), points(75, seed=1).astype(dtype)
    bound = 2e-6 if dtype == "float32" else 1e-13
    for k in (1, 3, 16, 40):
        V, U = columns(75, k).astype(dtype), columns(131, k).astype(dtype)
        K, S = kernel(X.astype(float), Z.astype(float)), kernel(X.astype(float))
        assert relative(cpu.product(kernel.pairs(X, Z), V), K, V.astype(float)) <= bound
        assert relative(cpu.adjoint(kernel.pairs(X, Z), U), K.T, U.astype(float)) <= bound
        assert relative(cpu.symmetric_product(kernel.pairs(X), U), S, U.astype(float)) <= bound


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Matern(0.5), Sigmoid(0.1), Chi2(0.3)], ids=repr)
@modes
def test_symmetric_tiles_serve_twice(
    kernel: Kernel, mode: str, implementation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks wrapped around, for odd and even numbers of them, with sums that are flushed often."""
    if _launch.uses_triton(torch.zeros(1, device=implementation)):
        from gramian.compute.gpu import triton_tiles as _triton_tiles

        monkeypatch.setattr(_triton_tiles, "SMALL", 0)
        monkeypatch.setattr(_triton_tiles, "FLUSH", 128)
        monkeypatch.setattr(
            _triton_tiles, "SYMMETRIC", {kind: (32, *more) for kind, (_, *more) in _triton_tiles.SYMMETRIC.items()}
        )
    for n in (20, 60, 129):  # 1, 2 and 5 blocks
        Q = Prepared(kernel, points(n), None, mode, implementation)
        assert Q.error(tiles.symmetric_product, columns(n, 1)) <= Q.pairs.error


@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (1, 200, 3), (200, 1, 2), (64, 128, 21), (30, 40, 70)])
@modes
def test_any_shape(n: int, m: int, d: int, mode: str, implementation: Any) -> None:
    P = Prepared(Gaussian(1 / d), points(n, d), points(m, d, 1), mode, implementation)
    for k in (1, 2):
        assert P.error(tiles.product, columns(m, k)) <= P.pairs.error
    assert_allclose(tiles.dense(P.pairs).cpu(), P.matrix, rtol=2e-6)


def test_nothing_times_something(implementation: Any) -> None:
    P = Prepared(Gaussian(0.3), points(4), points(0), "accurate", implementation)
    assert_array_equal(tiles.product(P.pairs, P.tensor(np.ones((0, 2)))).cpu(), np.zeros((4, 2)))
    assert tiles.adjoint(P.pairs, P.tensor(np.ones((4, 2)))).shape == (0, 2)
    P = Prepared(Laplacian(0.3), points(5), None, "accurate", implementation)
    assert tiles.product(P.pairs, P.tensor(np.ones((5, 0)))).shape == (5, 0)


@pytest.mark.parametrize("dtype", ["float16", "int32", "uint8", "float64"])
def test_points_of_any_dtype_and_order_that_learn_or_not(dtype: str, implementation: Any) -> None:
    """A float16 or an integer is the float32 of the same value, strides do not matter, and no gradient is kept."""
    X = np.random.default_rng(0).integers(0, 4, (40, 3)).astype(dtype)
    wide = torch.from_numpy(np.repeat(X.T, 2, axis=1)).to(implementation)[:, ::2].T
    if wide.dtype.is_floating_point:
        wide.requires_grad_()
    V = torch.from_numpy(columns(40, 2).astype("float32")).to(implementation).requires_grad_()
    K = tiles.prepare(Gaussian(0.3).formula(3), wide, dtype="float32")
    found = tiles.product(K, V.T.contiguous().T)
    assert not found.requires_grad
    assert relative(found.cpu(), Gaussian(0.3)(X.astype(float)), V.detach().cpu().double().numpy()) <= 2e-6


def test_points_that_do_not_fit_are_refused_with_the_figure(
    implementation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "LARGE", 0)
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 1000)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    with pytest.raises(MemoryError, match=r"0\.0 MiB"):
        Prepared(Gaussian(0.3), points(300), None, "accurate", implementation)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-20, 1e12])
def test_inner_products_of_points_of_any_size(size: float, implementation: Any) -> None:
    X = size * np.random.default_rng(0).uniform(1, 2, (20, 3))
    P = Prepared(Polynomial(1, 0.0, 1.0), X, X.copy(), "double", implementation)
    assert P.error(tiles.product, columns(20, 2)) <= P.pairs.error


@modes
def test_columns_of_all_sizes(mode: str, implementation: Any) -> None:
    """Huge, tiny and zero columns next to each other, and entries of very different size in one."""
    V = columns(75, 6) * np.array([1e30, 1e-30, 0.0, 1.0, 1e-38, 1.0])
    V[:37, 5] *= 1e-5
    P = Prepared(Gaussian(0.3), points(40), points(75, seed=1), mode, implementation)
    assert P.error(tiles.product, V) <= P.pairs.error
    assert_array_equal(tiles.product(P.pairs, P.tensor(V)).cpu()[:, 2], 0.0)
    for j in range(6):
        assert P.error(tiles.product, V[:, [j]]) <= P.pairs.error


@modes
def test_sums_of_many_terms_of_one_sign(mode: str, implementation: Any) -> None:
    """All ones: what is cut off everywhere in the same direction would add up."""
    P = Prepared(Gaussian(0.2), points(40, 3), points(1500, 3, 1), mode, implementation)
    for k in (1, 3):
        got = tiles.product(P.pairs, P.tensor(np.ones((1500, k)))).cpu().numpy()
        assert_allclose(got, np.repeat(P.matrix.sum(axis=1)[:, None], k, axis=1), rtol=P.pairs.error)


@kernels
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_of_the_matrix(kernel: Kernel, dtype: str, implementation: Any) -> None:
    mode = "accurate" if dtype == "float32" else "double"
    P = Prepared(kernel, points(52), points(60, seed=1), mode, implementation)
    rtol, size = (2e-6 if dtype == "float32" else 1e-13), np.abs(P.matrix).max()
    for rows, some in ((None, None), (slice(3, 50), slice(None, None, 2)), (torch.tensor([5, -1, 5]), slice(-7, None))):
        i = rows.numpy() if isinstance(rows, torch.Tensor) else slice(None) if rows is None else rows
        want = P.matrix[i][:, slice(None) if some is None else some]
        assert_allclose(tiles.dense(P.pairs, rows, some).cpu(), want, atol=rtol * size)
    Q = Prepared(kernel, points(52), None, mode, implementation)
    whole = tiles.dense(Q.pairs).cpu().numpy()
    assert_array_equal(whole, whole.T)
    assert_allclose(whole, Q.matrix, atol=rtol * size)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Matern(0.5), Matern(2.5), Laplacian(0.5)], ids=repr)
def test_equal_points_have_kernel_one(kernel: Kernel, implementation: Any) -> None:
    X = np.repeat(points(8, 4) + 1e4, 5, axis=0)
    for mode in ("accurate", "double"):
        P = Prepared(kernel, X, X.copy(), mode, implementation)
        K = tiles.dense(P.pairs).cpu().numpy()
        assert_array_equal(K[np.repeat(np.eye(8, dtype=bool), 5, 0).repeat(5, 1)], 1.0)
        assert P.error(tiles.product, columns(40, 3)) <= P.pairs.error


@modes
@pytest.mark.parametrize("gamma", [1.0, 1e2, 1e4, 1e8])
def test_tight_clusters_far_apart(mode: str, gamma: float, implementation: Any) -> None:
    """Narrow kernels and near-duplicates: what norms would cost is seen, and the next more precise way taken."""
    rng = np.random.default_rng(2)
    X = 10 * rng.standard_normal((3, 6))[rng.integers(0, 3, 90)] + rng.standard_normal((90, 6)) / np.sqrt(6 * gamma)
    for Z in (None, X[:70] + 0.1 / np.sqrt(gamma)):
        P = Prepared(Gaussian(gamma), X, Z, mode, implementation)
        for k in (1, 3):
            assert P.error(tiles.product, columns(P.pairs.shape[1], k)) <= P.pairs.error
        assert P.pairs.error <= max(BOUNDS[mode], 1e-15 * np.sqrt(gamma) * 60)  # float64 itself, where that is more


def test_points_far_from_zero_lose_nothing(implementation: Any) -> None:
    P = Prepared(Gaussian(0.3), points(60) + 1e5, points(50, seed=1) + 1e5, "double", implementation)
    assert P.error(tiles.product, columns(50, 2)) <= 1e-13
    Q = Prepared(Gaussian(0.3), points(60) + 1e3, points(50, seed=1) + 1e3, "accurate", implementation)
    assert Q.error(tiles.product, columns(50, 2)) <= 2e-6


@given(
    seed=st.integers(0, 99),
    n=st.integers(1, 90),
    m=st.integers(1, 90),
    d=st.integers(1, 8),
    width=st.floats(-3, 3),
    kernel=st.sampled_from(["gaussian", "matern", "laplacian", "rational"]),
)
def test_plain_torch_keeps_its_promise_for_all_widths(
    seed: int, n: int, m: int, d: int, width: float, kernel: str
) -> None:
    scale = 10.0**width
    made: dict[str, Kernel] = {
        "gaussian": Gaussian(bandwidth=scale),
        "matern": Matern(0.5, scale),
        "laplacian": Laplacian(1 / scale),
        "rational": RationalQuadratic(3.0, scale),
    }
    for mode in ("accurate", "double"):
        P = Prepared(made[kernel], points(n, d, seed), points(m, d, seed + 1), mode, torch.device("cpu"))
        assert P.error(tiles.product, columns(m, 2)) <= P.pairs.error


@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels are compiled for the GPU here")
@settings(max_examples=12)
@given(seed=st.integers(0, 99), d=st.integers(1, 30), width=st.floats(-1, 1.5), tail=st.sampled_from([3, 1000]))
def test_triton_keeps_its_promise_for_all_widths(seed: int, d: int, width: float, tail: int) -> None:
    """Heavy tails and wide and narrow kernels: whichever way is chosen, its error is what it says."""
    pytest.importorskip("triton", reason="triton is not installed (gramian[gpu])")
    X = np.random.default_rng(seed).standard_t(tail, (90, d))
    with _launch.interpret_kernels():
        for mode in ("fast", "accurate"):
            P = Prepared(Gaussian(bandwidth=10.0**width * np.sqrt(d)), X, None, mode, torch.device("cpu"))
            assert P.error(tiles.product, columns(90, 8)) <= P.pairs.error


def chosen(kernel: Kernel, X: np.ndarray, tolerance: float | None = None, dtype: str = "float32") -> Any:
    """What would be chosen where there is Triton."""
    T = torch.from_numpy(X.astype(dtype))
    return _precision.choose_arithmetic(kernel.formula(X.shape[1]), T, None, getattr(torch, dtype), tolerance, True)


def test_the_cheapest_way_that_keeps_the_promise_is_chosen() -> None:
    X = np.random.default_rng(0).standard_normal((2000, 20))
    ways = [chosen(Gaussian(gamma), X, 1e-3) for gamma in (0.025, 0.5, 1e3)]
    assert [(way.mode, way.parts) for way in ways] == [("fast", 1), ("fast", 2), ("accurate", 0)]
    ways = [chosen(Gaussian(gamma), X) for gamma in (0.025, 0.5, 5.0, 1e6)]
    assert [(way.parts, way.dtype) for way in ways] == [
        (2, torch.float32),
        (0, torch.float32),
        (0, torch.float32),
        (0, torch.float64),
    ]
    assert {chosen(kernel, np.abs(X)).parts for kernel in (Matern(0.5, 9.0), Laplacian(0.01), Chi2(0.01))} == {0}
    assert [chosen(Gaussian(gamma), X, dtype="float64").parts for gamma in (0.025, 1e6)] == [1, 0]


@pytest.mark.parametrize("gamma", [0.025, 0.1])
@pytest.mark.parametrize("discrete", [False, True])
def test_the_error_of_one_part_is_predicted(gamma: float, discrete: bool) -> None:
    """Against the exact matrix of the rounded points: within a half of what is measured, even for regular data."""
    rng = np.random.default_rng(1)
    X = rng.choice([-1.0, 1.0], (400, 20)) if discrete else rng.standard_normal((400, 20))
    T = torch.from_numpy(X)
    frame, _ = _precision.find_frame(Gaussian(gamma).formula(20), T, None, True)
    F = frame.rotate(T)
    K, rounded = (torch.exp2(-torch.cdist(A, A).square() / 2) for A in (F, F.half().double()))
    measured = float(torch.linalg.norm(rounded - K) / torch.linalg.norm(K))
    predicted = 2**-12.27 * _precision._take_sample(Gaussian(gamma).formula(20), frame, T, T).rough
    assert measured / 1.5 < predicted < 1.5 * measured


@pytest.mark.parametrize("p", [1, 4, 5, 20, 21, 61, 130])
@pytest.mark.parametrize("radial", [True, False])
@pytest.mark.parametrize("parts", [0, 1, 2])
def test_rows_multiply_to_the_argument_of_the_kernel(p: int, radial: bool, parts: int) -> None:
    X = torch.from_numpy(np.random.default_rng(p).standard_normal((30, p)) / np.sqrt(p))
    frame = Frame(torch.zeros(p, dtype=torch.float64), torch.ones((), dtype=torch.float64), radial)
    L, R = (frame.by_rows(X, parts, left).double() for left in (True, False))
    width, per, total = layout(p, parts, radial)
    assert L.shape == R.shape == (128, total)
    assert total % width == 0
    assert per * total // width >= p
    want = -torch.cdist(X, X).square() if radial else X @ X.T
    got = (L @ R.T)[:30, :30]
    error = {0: 1e-14, 1: 5e-3, 2: 2e-6}[parts]
    assert_allclose(got, want, atol=error)
    assert not (L @ R.T)[30:].any()


def test_what_is_no_set_of_points_is_refused(implementation: Any) -> None:
    X = torch.ones((3, 2), device=implementation)
    formula = Gaussian(1.0).formula(2)
    with pytest.raises(ValueError, match="float32 or float64"):
        tiles.prepare(formula, X, dtype="float16")
    with pytest.raises(ValueError, match="2 dimensions"):
        tiles.prepare(formula, X[0], dtype="float32")
    with pytest.raises(ValueError, match=r"2 columns.*has 1"):
        tiles.prepare(formula, X, X[:, :1], dtype="float32")
    with pytest.raises(ValueError, match="row 2, column 1"):
        tiles.prepare(formula, torch.tensor([[0.0], [np.nan]]), dtype="float32")
    with pytest.raises(ValueError, match=r"row 1, column 2.*-2\.0"):
        tiles.prepare((Chi2() + Linear()).formula(2), torch.tensor([[0.0, -2.0]]), dtype="float32")
    K = tiles.prepare(formula, X, X.clone(), dtype="float32")
    with pytest.raises(ValueError, match="3 rows"):
        tiles.product(K, X[:2])
    with pytest.raises(ValueError, match="without Z"):
        tiles.symmetric_product(K, X)
    with pytest.raises(ValueError, match="0 to 2; got 1 to 3"):
        tiles.dense(K, torch.tensor([1, 3]))


def test_the_mode_is_named(implementation: Any) -> None:
    sentence = Prepared(Gaussian(0.3), points(9), None, "accurate", implementation).pairs.precision
    assert sentence.startswith("products ")
    assert sentence.endswith("relative error at most 2e-06")
    assert " in accurate mode: " in sentence
    both = Prepared(Gaussian(0.3) + Linear(), points(9), None, "double", implementation).pairs
    assert "products of features summed in float64" in both.precision
    assert repr(both) == f"KernelPairs(9 × 9, double, {both.device})"
