r"""A kernel ridge regression as a linear system: (B + λI)β = ỹ.

With weights w, B = diag(√w) K diag(√w) and ỹ = √w y; an unpenalised intercept centres features and targets with the
weighted means (H = I − 1w̄ᵀ), after which

.. math:: f(x)=\sum_j\alpha_jk(x,x_j)+b,\qquad \alpha=H^T\sqrt w\,\beta,\qquad b=\bar y-\bar w^TK\alpha
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.inputs.kernels import is_precomputed
from gramian.kernels import Kernel
from gramian.operators import Data, FeatureCentred, Operator, kernel_operator

__all__ = ["Task", "count_points"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be solved.

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
    tol, max_iterations, seed : float, int or None, int
        For the solvers.
    report : callable or None
        Called with the iteration and the residual.
    device : torch.device or None
        Where the kernel is evaluated; None is NumPy on the CPU.
    """

    kernel: Kernel
    points: Any
    Y: Matrix
    w: Vector | None
    lam: Vector
    intercept: bool
    counts: bool = True
    tol: float = 1e-6
    max_iterations: int | None = None
    seed: int = 0
    report: Callable[[int, float], None] | None = None
    device: Any = None

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.Y)

    @property
    def frequencies(self) -> Vector:
        """W, all ones where not given."""
        return np.ones(self.n) if self.w is None else self.w

    @property
    def mass(self) -> float:
        """Σw."""
        return float(self.n if self.w is None else self.w.sum())

    @property
    def count(self) -> float:
        """N: Σw where the weights are counts, otherwise the number of rows."""
        return self.mass if self.counts or self.w is None else float(np.count_nonzero(self.w))

    @property
    def share(self) -> Vector:
        """w̄: the weights, to sum 1."""
        return np.asarray(self.frequencies / self.mass)

    @property
    def mean(self) -> Vector:
        """ȳ, 0 without an intercept."""
        return np.asarray(self.share @ self.Y if self.intercept else np.zeros(self.Y.shape[1]))

    @property
    def targets(self) -> Matrix:
        """Ỹ: √w(y − ȳ); of a constant target exactly 0, or its rounding would be solved for."""
        centred = self.Y
        if self.intercept:
            centred = (self.Y - self.mean) * (np.ptp(self.Y, axis=0) > 0)
            centred = centred - self.share @ centred  # what the rounding of ȳ has left
        return np.asarray(centred if self.w is None else np.sqrt(self.w)[:, None] * centred)

    def kernel_operator(self, dtype: Any = np.float64, store: bool | str = False) -> Operator:
        """K, evaluated in tiles; in float32 on a device to 2e-6, which takes hardly longer than to 5e-4."""
        return kernel_operator(self.kernel, self.points, dtype=dtype, store=store, device=self.device)

    def between(self, X: Any, Z: Any = None, store: bool | str = False) -> Operator:
        """k(X, Z), or k(X, X), of other points, in float64."""
        return kernel_operator(self.kernel, X, Z, dtype=np.float64, store=store, device=self.device)

    @cached_property
    def matrix(self) -> Matrix:
        """K as a matrix, of a kernel that is a function of two objects: called once for each pair."""
        return np.asarray(self.points if is_precomputed(self.kernel) else self.kernel(self.points), dtype=np.float64)

    def operator(self, dtype: Any = np.float64, store: bool | str = False) -> Operator:
        """B = diag(√w) H K Hᵀ diag(√w)."""
        return self.dressed(self.kernel_operator(dtype, store))

    def dressed(self, K: Operator | Matrix) -> Operator:
        """B from K."""
        A = Data(K) if isinstance(K, np.ndarray) else K
        return A if self.w is None and not self.intercept else FeatureCentred(A, self.w, centre=self.intercept)

    def dual(self, beta: Matrix) -> Matrix:
        """α = Hᵀ√wβ."""
        alpha = beta if self.w is None else np.sqrt(self.w)[:, None] * beta
        return np.asarray(alpha - np.outer(self.share, alpha.sum(axis=0)) if self.intercept else alpha)

    def with_(self, **changes: Any) -> Task:
        """Return a copy with some fields changed."""
        return replace(self, **changes)


def count_points(points: Any) -> int:
    """How many points there are."""
    return len(points) if isinstance(points, (list, tuple)) else int(points.shape[0])
