"""Components as the hot loops of mixtures want them, the two ways' tables, and their sums brought back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Components", "Expanded", "Sums", "Whitened"]

Array = npt.NDArray[Any]

NEVER = -1e300  # ln 0, for products with finite numbers


class Components(NamedTuple):
    """Normal components as the loops need them.

    Attributes
    ----------
    origin : ndarray of shape (d,)
        What rows are measured from.
    centres : ndarray of shape (K, d)
        Means, from the origin.
    roots : ndarray of shape (K, d, d) or (K, d)
        R with RΣRᵀ = I: inverse Cholesky factors, or inverse standard deviations.
    constants : ndarray of shape (K,)
        ln π − ½ ln|2πΣ|.
    """

    origin: Array
    centres: Array
    roots: Array
    constants: Array


class Sums(NamedTuple):
    """Sums over rows, about the centres: Σr, Σr(d−m), Σr(d−m)(d−m)ᵀ or its diagonal, and Σw ln Σ_k exp."""

    counts: Array
    first: Array
    second: Array
    log_likelihood: float


class Whitened:
    """y_k = R_k(d − m_k) for every component."""

    def __init__(self, parts: Components) -> None:
        self.parts, (self.k, self.d) = parts, parts.centres.shape
        self.full = parts.roots.ndim == 3
        self.row_bytes = 8 * self.k * self.d
        if self.full:  # R(d − m) = [R, −Rm] (d, 1)
            shift = np.einsum("kij,kj->ki", parts.roots, parts.centres)
            self.map = np.concatenate([parts.roots, -shift[:, :, None]], axis=2).reshape(self.k * self.d, self.d + 1)

    def empty(self) -> tuple[Array, Array, Array]:
        """Sums to add to: Σr, Σry and Σryyᵀ."""
        k, d = self.k, self.d
        return np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d) if self.full else (k, d))

    def finish(self, sums: Sums) -> Sums:
        """Back from y to d − m: with L = R⁻¹, Σr(d−m) = LΣry and Σr(d−m)(d−m)ᵀ = L(Σryyᵀ)Lᵀ."""
        roots = self.parts.roots
        if not self.full:
            return Sums(sums.counts, sums.first / roots, sums.second / roots**2, sums.log_likelihood)
        L = np.linalg.inv(roots)
        first = np.einsum("kij,kj->ki", L, sums.first)
        second = L @ sums.second @ L.transpose(0, 2, 1)
        return Sums(sums.counts, first, second, sums.log_likelihood)


class Expanded:
    """The exponent as a linear function of the monomials 1, d_i and d_i d_j (or d_i²)."""

    def __init__(self, parts: Components) -> None:
        self.parts, (self.k, self.d) = parts, parts.centres.shape
        self.full = parts.roots.ndim == 3
        d, m = self.d, parts.centres
        self.rows, self.columns = np.triu_indices(d) if self.full else (np.arange(d), np.arange(d))
        if self.full:
            P = np.matmul(parts.roots.transpose(0, 2, 1), parts.roots)
            slope = np.einsum("kij,kj->ki", P, m)
            twice = np.where(self.rows == self.columns, 1.0, 2.0)
            square = P[:, self.rows, self.columns] * twice
        else:
            square = parts.roots**2
            slope = square * m
        constant = np.maximum(parts.constants, NEVER) - 0.5 * np.sum(slope * m, axis=1)
        self.map = np.concatenate([constant[:, None], slope, -0.5 * square], axis=1)
        self.row_bytes = 8 * self.map.shape[1]

    def empty(self) -> tuple[Array, Array, Array]:
        """Sums to add to: Σrf for all monomials f, in place of the third."""
        return np.zeros(0), np.zeros(0), np.zeros(self.map.shape)

    def finish(self, sums: Sums) -> Sums:
        """Sums about the origin, moved to the centres."""
        d, m, S = self.d, self.parts.centres, sums.second
        N, s, q = S[:, 0], S[:, 1 : d + 1], S[:, d + 1 :]
        first = s - N[:, None] * m
        if not self.full:
            return Sums(N, first, q - m * (s + first), sums.log_likelihood)
        second = np.empty((self.k, d, d))
        second[:, self.rows, self.columns] = second[:, self.columns, self.rows] = q
        second -= m[:, :, None] * s[:, None, :] + first[:, :, None] * m[:, None, :]
        return Sums(N, first, second, sums.log_likelihood)
