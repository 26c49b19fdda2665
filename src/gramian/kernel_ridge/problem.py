r"""A kernel ridge regression as a linear system: (B + λI)β = ỹ.

With weights w, B = diag(√w) K diag(√w) and ỹ = √w y; an unpenalised intercept centres features and targets with the
weighted means (H = I − 1w̄ᵀ), after which

.. math:: f(x)=\sum_j\alpha_jk(x,x_j)+b,\qquad \alpha=H^T\sqrt w\,\beta,\qquad b=\bar y-\bar w^TK\alpha
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.compute import tiles
from gramian.compute.devices import is_tensor, like, to_numpy
from gramian.inputs.kernels import dense_matrix, is_precomputed, kernel_diagonal, multiply
from gramian.kernels import Kernel
from gramian.operators import Data, FeatureCentred, Operator, kernel_device, kernel_operator
from gramian.sources import Source, memory_budget

Array = npt.NDArray[np.float64]

ROWS_PER_FEATURE = 3  # from which on a factor of the features' Gram matrix takes less time than that of the rows'
BLOCK_BYTES = 2**24  # of what is made of a matrix a block of rows at a time


@dataclass(eq=False)
class KernelProblem:
    """(B + λI)β = ỹ: what is given, and what follows from it at once.

    Attributes
    ----------
    kernel : Kernel
        With every parameter found.
    points : array, list or Source
        The training points; of a precomputed kernel the matrix K.
    Y : ndarray of shape (n, t)
        Targets.
    w : ndarray of shape (n,) or None
        Positive weights.
    lam : ndarray of shape (t,)
        λ of each target.
    intercept : bool
        Whether there is one.
    counts : bool
        Whether the weights are counts.
    seed : int
        For landmarks and rows held out.
    device : torch.device or None
        Where the kernel is evaluated; None is NumPy on the CPU.
    n, frequencies, mass, share : int, ndarray of shape (n,), float, ndarray of shape (n,)
        Rows; their weights, 1 where none are given; Σw; and w̄, the weights to sum 1.
    count : float
        N: Σw where the weights are counts, otherwise the number of rows.
    mean : ndarray of shape (t,)
        ȳ, 0 without an intercept.
    targets : ndarray of shape (n, t)
        Ỹ: √w(y − ȳ); of a constant target exactly 0, or its rounding would be solved for.
    """

    kernel: Kernel
    points: Any
    Y: Array
    w: Array | None
    lam: Array
    intercept: bool
    counts: bool = True
    seed: int = 0
    device: Any = None
    origin: Any = None  # the file that the points were read from

    def __post_init__(self) -> None:
        self.n = len(self.Y)
        self.frequencies = np.ones(self.n) if self.w is None else self.w
        self.mass = float(self.n if self.w is None else self.w.sum())
        self.share = self.frequencies / self.mass
        self.count = self.mass if self.counts or self.w is None else float(np.count_nonzero(self.w))
        self.mean = self.share @ self.Y if self.intercept else np.zeros(self.Y.shape[1])
        centred = self.Y
        if self.intercept:
            centred = (self.Y - self.mean) * (np.ptp(self.Y, axis=0) > 0)
            centred = centred - self.share @ centred  # what the rounding of ȳ has left
        self.targets = np.asarray(centred if self.w is None else np.sqrt(self.w)[:, None] * centred)

    def kernel_operator(self, dtype: Any = np.float64, store: bool | str = False) -> Operator:
        """K, evaluated in tiles; in float32 on a device to 2e-6, which takes hardly longer than to 5e-4."""
        return kernel_operator(
            self.kernel, self.points, dtype=dtype, store=store, device=self.device, origin=self.origin
        )

    def operator(self, dtype: Any = np.float64, store: bool | str = False) -> Operator:
        """B = diag(√w) H K Hᵀ diag(√w); a function of two objects is evaluated once and for all."""
        K = Data(self.matrix) if self.kernel.takes_objects else self.kernel_operator(dtype, store)
        return K if self.w is None and not self.intercept else FeatureCentred(K, self.w, centre=self.intercept)

    def dense(self) -> tuple[Any, Array, float]:
        """B as an array in Fortran's order, or on the problem's device; K w̄, and how long what centring took off B was.

        The last two are in NumPy, and 0 without an intercept. Where a value of the kernel is a call of Python each pair
        is evaluated once, otherwise by all threads, or on the device.
        """
        n, means, size = self.n, np.zeros(self.n), 0.0
        if self.kernel.takes_objects:
            K = np.array(self.matrix, dtype=np.float64)
        elif self.device is None:
            K = tiles.dense(self.kernel.pairs(self.points, None, np.float64))
        else:
            K = dense_matrix(self.kernel_operator())
        if self.intercept:
            w, share = (like(K, x, K.dtype) for x in (self.frequencies, self.share))
            squares = sum(float(w[rows] @ (K[rows] ** 2 @ w)) for rows in row_blocks(n, n))
            size = float(np.sqrt(squares))  # ‖√w K √w‖ of Frobenius
            middle = K @ share
            K -= middle[:, None]
            K -= (share @ K)[None, :]
            means = to_numpy(middle)
        if self.w is not None:
            root = like(K, np.sqrt(self.w), K.dtype)
            K *= root[:, None]
            K *= root[None, :]
        return K.T, means, size  # symmetric: its transpose is itself, in the order LAPACK overwrites

    def between(self, X: Any, Z: Any = None, store: bool | str = False) -> Operator:
        """k(X, Z), or k(X, X), of other points, in float64."""
        return kernel_operator(self.kernel, X, Z, dtype=np.float64, store=store, device=self.device)

    @cached_property
    def matrix(self) -> Array:
        """K as a matrix, of a kernel that is a function of two objects: called once for each pair."""
        return np.asarray(self.points if is_precomputed(self.kernel) else self.kernel(self.points), dtype=np.float64)

    @cached_property
    def features(self) -> Array | None:
        """Φ with K = ΦΦᵀ, where the kernel has so few features that a problem of them is the smaller one."""
        points = self.points
        if self.device is not None or self.kernel.takes_objects or not isinstance(points, np.ndarray):
            return None
        return self.kernel.map_features(points, min(self.n // ROWS_PER_FEATURE, memory_budget() // (32 * self.n)))

    @cached_property
    def squared_lengths(self) -> Array:
        """k(x, x) of the training points, in float64."""
        return np.ones(self.n) if self.kernel.normalised else kernel_diagonal(self.kernel, self.points)

    def feature_means(self) -> Array:
        """K w̄, the inner products of the mean feature with every other; 0 without an intercept."""
        if not self.intercept:
            return np.zeros(self.n)
        if "features" in vars(self) and self.features is not None:
            Phi = self.features
            return np.asarray(Phi @ (self.share @ Phi))
        return multiply(self.kernel_operator(), self.share[:, None])[:, 0]

    def dual(self, beta: Array) -> Array:
        """α = Hᵀ√wβ."""
        alpha = beta if self.w is None else np.sqrt(self.w)[:, None] * beta
        return np.asarray(alpha - np.outer(self.share, alpha.sum(axis=0)) if self.intercept else alpha)

    def with_(self, **changes: Any) -> KernelProblem:
        """Return a copy with some fields changed."""
        return replace(self, **changes)


def row_blocks(n: int, width: float) -> Iterator[slice]:
    """Blocks of rows of an (n, width) array."""
    step = max(1, int(BLOCK_BYTES / (8 * max(1.0, width))))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def count_points(points: Any) -> int:
    """How many points there are."""
    return len(points) if isinstance(points, (list, tuple)) else int(points.shape[0])


def choose_device(device: Any, X: Any, points: Any, kernels: list[Kernel]) -> Any:
    """Where kernels of these points are evaluated, by ``device`` and where X lives; None is NumPy on the CPU."""
    if device is None and isinstance(X, np.ndarray):
        return None
    seen = is_tensor(X) or isinstance(X, Source) or sp.issparse(X)
    where = X if seen and not sp.issparse(points) else points
    found = [kernel_device(device, kernel, where) for kernel in kernels]
    return None if any(one is None for one in found) else found[0]
