"""A kernel PCA fit: what is asked, what is found, and by which solver."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import free_bytes, put
from gramian.kernels import Kernel, Precomputed
from gramian.operators import DeviceKernelOperator, KernelOperator, kernel_operator
from gramian.results import Certificate

__all__ = ["DENSE", "NOTHING", "Decomposition", "Task", "choose", "chosen_points", "cleaned", "dense_bytes"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

DENSE = 1500  # rows up to which LAPACK on the whole matrix is quicker than a few products
DENSE_ON_A_CARD = 2000  # on an H200: 0.03 s against 0.06 s at 1,500 rows, 0.07 s against 0.05 s at 3,000
PART = 8  # ... and where more than one component in so many rows is asked for
HUGE = 200_000  # rows beyond which a product with every pair takes minutes
HUGE_ON_A_CARD = 4_000_000  # a product in float32 then takes seconds on an H200, one in float64 most of a minute
NOTHING = 1e-13  # of the trace: what is left of it by centring is rounding


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be decomposed, and how."""

    kernel: Kernel
    X: Any
    w: Vector | None
    k: int
    solver: str
    tol: float
    max_iterations: int | None
    seed: int
    centre: bool
    landmarks: int | None
    device: Any = None

    @property
    def n(self) -> int:
        """Rows."""
        return len(self.X) if isinstance(self.X, (list, tuple)) else int(self.X.shape[0])

    @cached_property
    def points(self) -> Any:
        """The points where they are compared: put on the device once, for all operators."""
        return self.X if self.device is None else put(self.X, self.device)

    def operator(
        self, dtype: Any, store: bool | str = "auto", tolerance: float | None = None
    ) -> KernelOperator | DeviceKernelOperator:
        """K = k(X, X), in a precision."""
        return kernel_operator(
            self.kernel, self.points, dtype=dtype, store=store, device=self.device, tolerance=tolerance
        )

    @property
    def frequencies(self) -> Vector:
        """W, all ones where not given."""
        return np.ones(self.n) if self.w is None else self.w

    @property
    def share(self) -> Vector:
        """w̄: the weights, to sum 1."""
        return np.asarray(self.frequencies / self.frequencies.sum())

    @property
    def unknown(self) -> bool:
        """Whether nothing says that the kernel is positive semidefinite."""
        unheard = self.kernel.takes_objects or isinstance(self.kernel, Precomputed)
        return unheard or not self.kernel.positive_semidefinite


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Eigenpairs of B, and what new points need.

    Attributes
    ----------
    values, vectors : ndarray of shape (k,), (n, k)
        Eigenvalues and unit eigenvectors.
    points : array
        The points x_j that components are combinations of: all rows, or landmarks.
    coefficients : ndarray of shape (m, k)
        α.
    offset : ndarray of shape (k,)
        c; 0 where nothing is centred.
    share : ndarray of shape (m,)
        Coefficients of the mean φ̄ in the features of the points.
    mean_square : float
        ‖φ̄‖².
    means : ndarray of shape (m,)
        ⟨φ̄, φ(x_j)⟩ of the points.
    certificate : Certificate
        How good they are.
    low : float
        The smallest eigenvalue of B, where the kernel is not known to be positive semidefinite.
    landmarks : ndarray or None
        Which rows the points are, where they are not all.
    """

    values: Vector
    vectors: Matrix
    points: Any
    coefficients: Matrix
    offset: Vector
    share: Vector
    mean_square: float
    means: Vector
    certificate: Certificate
    low: float = 0.0
    landmarks: npt.NDArray[np.intp] | None = None


def choose(n: int, k: int, solver: str, device: Any = None) -> tuple[str, str]:
    """Return the solver and the reason: the one asked for, or by size.

    The whole matrix up to 1,500 rows (2,000 on a card), or where more than an eighth of all components is asked for and
    it fits; Nyström beyond 200,000 rows (4 million on a card); block Krylov on tiles in between.

    Examples
    --------
    >>> from gramian.estimators._kernel_fitting import choose
    >>> choose(20_000, 10, "auto")[0]
    'krylov'
    """
    if solver in ("arpack", "randomized"):
        return "krylov", f"eigen_solver={solver!r}: block Krylov, until the residuals meet the tolerance"
    if solver != "auto":
        return solver, f"eigen_solver={solver!r}"
    card = getattr(device, "type", "cpu") != "cpu"
    few = n <= (DENSE_ON_A_CARD if card else DENSE) or PART * k > n
    if few and (not card or dense_bytes(n) <= free_bytes(device)):
        return "dense", f"{n} rows and {k} components: the whole matrix costs least"
    if n > (HUGE_ON_A_CARD if card else HUGE):
        return "nystrom", f"{n} rows: a product with every pair of them takes minutes"
    return "krylov", f"{k} components of {n} rows: a few products with tiles that are never stored"


def dense_bytes(n: int) -> int:
    """Bytes that the eigendecomposition of the whole matrix takes: the matrix, its eigenvectors, and as much again."""
    return 4 * 8 * n**2


def chosen_points(X: Any, index: npt.NDArray[np.intp]) -> Any:
    """Some of the points, of an array or of a list of objects."""
    return [X[i] for i in index] if isinstance(X, (list, tuple)) else X[index]


def cleaned(values: Vector) -> Vector:
    """Eigenvalues, those at rounding level or below 0."""
    return np.where(values > 1e-12 * np.max(np.abs(values), initial=0.0), values, 0.0)
