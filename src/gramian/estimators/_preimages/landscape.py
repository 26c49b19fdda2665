r"""The distance to a point of feature space as a function of z: its value and slope, in the kernel's own coordinates.

With y = √γ∘(x − x̄) for the Gaussian and y = √γ x for a polynomial the kernels are plain, and every method needs the
same few sums. With weights ω_i and W they are written

.. math:: E(z) = k(z,z) - 2\sum_i\gamma_ik(z,x_i),\qquad \tfrac12\nabla E = Wz - \sum_i\omega_ix_i

so that the stationary points are those with z = Σ ω_i x_i/W.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from gramian.kernels import Gaussian, Kernel, Linear, Polynomial
from gramian.kernels.base import as_points

__all__ = ["TINY", "GaussianLandscape", "InnerLandscape", "Landscape", "Slope", "as_dense", "is_sparse", "landscape_of"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

TINY = 1e-250  # sums of weights below it have lost their digits to underflow


@dataclass(eq=False)
class Slope:
    r"""E and its gradient 2(Wz − Σ ωx) at some rows.

    Attributes
    ----------
    value : ndarray of shape (b,)
        E(z).
    pull : ndarray of shape (b, d)
        Σ ω_i x_i.
    weight : ndarray of shape (b,)
        W.
    bulk : ndarray of shape (b,)
        What W would be without cancellation: never less than \|W\|.
    size : ndarray of shape (b,)
        The sum of the absolute values of the terms of E, in units of which it is rounded.
    """

    value: Vector
    pull: Matrix
    weight: Vector
    bulk: Vector
    size: Vector

    def __getitem__(self, rows: Any) -> Slope:
        return Slope(self.value[rows], self.pull[rows], self.weight[rows], self.bulk[rows], self.size[rows])

    def put(self, rows: Any, other: Slope) -> None:
        """Write the numbers of some rows."""
        for name in ("value", "pull", "weight", "bulk", "size"):
            getattr(self, name)[rows] = getattr(other, name)


class Landscape(ABC):
    """A kernel and its training rows, in coordinates that make the kernel plain.

    Attributes
    ----------
    X : array or CSR of shape (n, d)
        The training rows in these coordinates.
    squares : ndarray of shape (n,)
        Their squared lengths.
    unit : float
        The length that tolerances are measured in.
    """

    def __init__(self, X: Any, scale: float | Vector, shift: float | Vector) -> None:
        self.scale, self.shift = scale, shift
        self.X = self.inward(X)
        self.squares = _squares(self.X)
        self.unit = 1.0

    def inward(self, Z: Any) -> Any:
        """Rows of the input space, in the coordinates used here."""
        if is_sparse(Z):
            return sp.csr_array(Z.multiply(np.broadcast_to(self.scale, Z.shape[1])), dtype=np.float64)
        return (np.asarray(Z, dtype=np.float64) - self.shift) * self.scale

    def outward(self, Y: Matrix) -> Matrix:
        """And back."""
        return np.asarray(Y / self.scale + self.shift)

    def inner(self, Y: Any) -> Matrix:
        """y·x_i for rows y and all training rows."""
        return as_dense(Y @ self.X.T)

    @abstractmethod
    def kernel(self, Y: Any) -> Matrix:
        """k(y, x_i) for rows y and all training rows."""

    @abstractmethod
    def diagonal(self, Y: Any) -> Vector:
        """k(y, y)."""

    @abstractmethod
    def slope(self, Y: Matrix, G: Matrix) -> Slope:
        """E and its gradient at rows y for the points with the coefficients G."""

    @abstractmethod
    def distances(self, products: Matrix, norms: Vector) -> Matrix:
        """‖y − x_i‖² of the rows y whose features have these inner products and squared length; NaN where none can."""


class GaussianLandscape(Landscape):
    """k = exp(−‖y − y′‖²): E = 1 − 2S with S = Σ γ_i k_i, ω_i = 2γ_i k_i and W = 2S."""

    def kernel(self, Y: Any) -> Matrix:
        """By matrix multiplication, about the mean of the training rows, where rounding is least."""
        t = self.inner(Y)
        t *= 2.0
        t -= self.squares
        t -= _squares(Y)[:, None]
        return np.exp(np.minimum(t, 0.0, out=t), out=t)

    def diagonal(self, Y: Any) -> Vector:
        """Ones."""
        return np.ones(Y.shape[0])

    def slope(self, Y: Matrix, G: Matrix) -> Slope:
        """S is both the value and, twice, the weight."""
        A = self.kernel(Y)
        A *= G
        A *= 2.0
        weight, pull = A.sum(axis=1), np.asarray(A @ self.X)
        bulk = np.abs(A, out=A).sum(axis=1)
        return Slope(1.0 - weight, pull, weight, bulk, 1.0 + bulk)

    def distances(self, products: Matrix, norms: Vector) -> Matrix:
        """‖φ(y) − φ(x)‖² = 2 − 2k, so that ‖y − x‖² = −ln(1 − ½‖P − φ(x)‖²)."""
        k = np.minimum(products + 0.5 * (1.0 - norms)[:, None], 1.0)
        return np.asarray(-np.log(np.where(k > 0, k, np.nan)))


class InnerLandscape(Landscape):
    """k = (y·y′ + c)^q: ω_i = qγ_i(y·x_i + c)^{q−1} and W = q(y·y + c)^{q−1}."""

    def __init__(self, X: Any, scale: float, degree: int, coef0: float) -> None:
        super().__init__(X, scale, 0.0)
        self.degree, self.coef0 = degree, coef0
        self.unit = float(np.sqrt(self.squares.mean())) or 1.0

    def kernel(self, Y: Any) -> Matrix:
        """(y·x + c)^q."""
        return np.asarray((self.inner(Y) + self.coef0) ** self.degree)

    def diagonal(self, Y: Any) -> Vector:
        """(y·y + c)^q."""
        return np.asarray((_squares(Y) + self.coef0) ** self.degree)

    def slope(self, Y: Matrix, G: Matrix) -> Slope:
        """From one set of inner products."""
        base, own, q = self.inner(Y) + self.coef0, _squares(Y) + self.coef0, self.degree
        omega = G * base ** (q - 1)
        terms, self_term = omega * base, own**q
        weight = q * own ** (q - 1)
        bulk = np.maximum(np.abs(weight), q * np.abs(omega).sum(axis=1))
        size = np.abs(self_term) + 2 * np.abs(terms).sum(axis=1)
        return Slope(self_term - 2 * terms.sum(axis=1), q * np.asarray(omega @ self.X), weight, bulk, size)

    def distances(self, products: Matrix, norms: Vector) -> Matrix:
        """‖y‖² − 2y·x + ‖x‖², with y·x the odd root of the product."""
        if self.degree % 2 == 0:
            raise ValueError(
                f"method='mds' needs inner products, and an even power (degree {self.degree}) does not tell their "
                "sign. Use method='regularised' or 'ridge', or an odd degree."
            )
        own = _root(norms, self.degree) - self.coef0
        squares = own[:, None] - 2 * (_root(products, self.degree) - self.coef0) + self.squares
        return np.where((own >= 0)[:, None] & (squares > -1e-9 * self.unit**2), np.maximum(squares, 0.0), np.nan)


def landscape_of(kernel: Kernel, X: Any, method: str) -> Landscape:
    """Return the landscape of a kernel, or say which kernels have one."""
    if not isinstance(kernel, Gaussian | Polynomial | Linear):
        raise ValueError(
            f"method={method!r} finds pre-images for Gaussian, Polynomial and Linear kernels, not for {kernel!r}. "
            "Use method='ridge', which learns the way back for any kernel."
        )
    X = as_points(X)
    kernel, d = kernel.resolved(X), X.shape[1]
    if isinstance(kernel, Gaussian):
        shift = 0.0 if is_sparse(X) else np.mean(X, axis=0, dtype=np.float64)
        return GaussianLandscape(X, np.sqrt(_rates(kernel, d)), shift)
    if isinstance(kernel, Polynomial):
        return InnerLandscape(X, float(np.sqrt(kernel.gamma or 1.0 / d)), kernel.degree, kernel.coef0)
    return InnerLandscape(X, 1.0, 1, 0.0)


def _rates(kernel: Gaussian, d: int) -> float | Vector:
    """γ of exp(−γ‖x − z‖²), or one for each feature."""
    if kernel.bandwidth is not None:
        rates = 0.5 / np.asarray(kernel.bandwidth, dtype=np.float64) ** 2
    else:
        given = next((v for v in (kernel.gamma, kernel.beta) if v is not None), 1.0 / d)
        rates = np.asarray(given, dtype=np.float64)
    if rates.ndim and len(rates) != d:
        raise ValueError(
            f"The kernel has {len(rates)} bandwidths for data with {d} columns: give one, or one for each."
        )
    return rates if rates.ndim else float(rates)


def _squares(Y: Any) -> Vector:
    return np.asarray(Y.multiply(Y).sum(axis=1) if is_sparse(Y) else np.einsum("ij,ij->i", Y, Y))


def is_sparse(X: Any) -> bool:
    """Whether X is a scipy.sparse matrix."""
    return bool(sp.issparse(X))


def as_dense(X: Any) -> Matrix:
    """Return X as an ndarray of float64."""
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)


def _root(values: Any, q: int) -> Any:
    """The odd root."""
    return np.sign(values) * np.abs(values) ** (1.0 / q)
