r"""The expectation step of probabilistic PCA, for rows of which any part is observed.

A row is x = μ + Wz + ε with z ~ N(0, I) and ε ~ N(0, σ²I). Of a row whose cells o are observed, with r = x_o − μ_o,

.. math::
    A = \sigma^2I + W_o^TW_o,\qquad \hat z = A^{-1}W_o^Tr,\qquad \operatorname{Cov}(z|x_o) = \sigma^2A^{-1}

and everything a step needs are sums over rows. Cells that are missing enter nowhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Factor", "Statistics", "expectation", "gradient", "maximise", "posterior"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Factor:
    """The parameters of probabilistic PCA: x ~ N(mean, loading loadingᵀ + noise I)."""

    mean: Vector
    loading: Matrix
    noise: float

    @property
    def vector(self) -> Vector:
        """Return all parameters as one vector, the noise as its logarithm: every vector is a model."""
        return np.concatenate([self.mean, self.loading.ravel(), [math.log(self.noise)]])

    def like(self, vector: Vector) -> Factor:
        """Return the model of a vector, in the shape of this one."""
        p = len(self.mean)
        return Factor(vector[:p], vector[p:-1].reshape(self.loading.shape), math.exp(float(vector[-1])))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over rows at one value of the parameters.

    Attributes
    ----------
    moments : ndarray of shape (p, k+1, k+1)
        T_j = Σ_{i observed in j} w_i E[z̃z̃ᵀ] with z̃ = (z, 1).
    slope : ndarray of shape (p, k+1)
        g_j = Σ_i w_i E[(x_ij − μ_j − W_j z) z̃]: the gradient by (W_j, μ_j), times σ².
    error : float
        Σ w E(x_ij − μ_j − W_j z)² over observed cells.
    cells, weight : float
        Observed cells and rows, counted with their weights.
    latent : ndarray of shape (k+1, k+1)
        Σ w E[z̃z̃ᵀ] over all rows.
    log_likelihood : float
        Of the observed cells.
    """

    moments: npt.NDArray[np.float64]
    slope: Matrix
    error: float
    cells: float
    weight: float
    latent: Matrix
    log_likelihood: float

    def merge(self, other: Statistics) -> Statistics:
        """Return the statistics of both sets of rows together."""
        return Statistics(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def posterior(D: Matrix, observed: npt.NDArray[np.bool_], factor: Factor) -> tuple[Matrix, Any, Vector]:
    """Mean of z and A⁻¹ for each row, and ln|A|; one A⁻¹ of shape (1, k, k) serves rows that are complete."""
    W, k = factor.loading, factor.loading.shape[1]
    R = np.where(observed, D - factor.mean, 0.0)
    if observed.all():
        A = (W.T @ W)[None]
    else:
        a, b = np.triu_indices(k)
        A = np.empty((len(D), k, k))
        A[:, a, b] = A[:, b, a] = observed.astype(np.float64) @ (W[:, a] * W[:, b])
    A = A + factor.noise * np.eye(k)
    inverse = np.linalg.inv(A)
    logdet = np.broadcast_to(np.linalg.slogdet(A)[1], len(D))
    return np.einsum("nij,nj->ni", np.broadcast_to(inverse, (len(D), k, k)), R @ W), inverse, logdet


def expectation(D: Matrix, w: Vector, factor: Factor) -> Statistics:
    """Statistics of a block of rows D, of which NaN cells are missing; complete rows take the short way."""
    D, w = D[w > 0], w[w > 0]
    observed = ~np.isnan(D)
    whole = observed.all(axis=1)
    parts = [_expectation(D[rows], observed[rows], w[rows], factor) for rows in (whole, ~whole) if rows.any()]
    if not parts:
        p, k = factor.loading.shape
        return Statistics(
            np.zeros((p, k + 1, k + 1)), np.zeros((p, k + 1)), 0.0, 0.0, 0.0, np.zeros((k + 1, k + 1)), 0.0
        )
    return parts[0] if len(parts) == 1 else parts[0].merge(parts[1])


def _expectation(D: Matrix, observed: npt.NDArray[np.bool_], w: Vector, factor: Factor) -> Statistics:
    W, noise, k = factor.loading, factor.noise, factor.loading.shape[1]
    Z, inverse, logdet = posterior(D, observed, factor)
    E = np.where(observed, D - factor.mean - Z @ W.T, 0.0)
    spread = _spread(observed, w, noise * inverse)
    T = _second_moments(observed, w, Z)
    T[:, :k, :k] += spread
    slope = E.T @ (w[:, None] * np.column_stack([Z, np.ones(len(Z))]))
    slope[:, :k] -= np.einsum("pij,pj->pi", spread, W)
    squares = np.sum(E**2, axis=1)
    error = float(w @ squares) + float(np.einsum("pi,pij,pj->", W, spread, W))
    count = observed.sum(axis=1)
    quadratic = squares / noise + np.sum(Z**2, axis=1)
    densities = count * math.log(2 * math.pi) + (count - k) * math.log(noise) + logdet + quadratic
    Zt = np.column_stack([Z, np.ones(len(Z))])
    latent = (w[:, None] * Zt).T @ Zt
    each = w if len(inverse) == len(Z) else np.array([w.sum()])
    latent[:k, :k] += np.einsum("n,nij->ij", each, noise * inverse)
    return Statistics(T, slope, error, float(w @ count), float(w.sum()), latent, -0.5 * float(w @ densities))


def _spread(observed: npt.NDArray[np.bool_], w: Vector, C: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Σ_{i observed in j} w_i C_i for every column j."""
    k, p = C.shape[1], observed.shape[1]
    if observed.all():
        return np.broadcast_to(C * w.sum(), (p, k, k))
    return _by_column(observed, w, C)


def _second_moments(observed: npt.NDArray[np.bool_], w: Vector, Z: Matrix) -> npt.NDArray[np.float64]:
    """Σ_{i observed in j} w_i z̃_i z̃_iᵀ for every column j."""
    Zt = np.column_stack([Z, np.ones(len(Z))])
    if observed.all():
        return np.repeat(((w[:, None] * Zt).T @ Zt)[None], observed.shape[1], axis=0)
    return _by_column(observed, w, Zt[:, :, None] * Zt[:, None, :])


def _by_column(observed: npt.NDArray[np.bool_], w: Vector, M: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Oᵀ diag(w) M for symmetric M_i, of which only the upper triangles are multiplied."""
    k = M.shape[1]
    a, b = np.triu_indices(k)
    packed = observed.T.astype(np.float64) @ (w[:, None] * M[:, a, b])
    out = np.empty((observed.shape[1], k, k))
    out[:, a, b] = out[:, b, a] = packed
    return out


def _steps(stats: Statistics) -> Matrix:
    """Change of (W_j, μ_j) for every column: T_j⁻¹g_j."""
    return np.asarray(np.linalg.solve(stats.moments, stats.slope[:, :, None])[:, :, 0])


def gradient(theta: Factor, stats: Statistics, floor: float) -> float:
    r"""Norm of the score by complete-data information, √(gᵀI⁻¹g).

    The information of (W_j, μ_j) is T_j/σ², that of σ² is N/2σ⁴; noise at its floor cannot fall further.
    """
    change = float(np.sum(_steps(stats) * stats.slope)) / theta.noise
    slope = stats.error / stats.cells / theta.noise - 1
    noise = 0.0 if slope < 0 and theta.noise <= floor else stats.cells / 2 * slope**2
    return math.sqrt(max(change, 0.0) + noise)


def maximise(theta: Factor, stats: Statistics, floor: float) -> Factor:
    """Regress every column on z, then let the mean and covariance of z be absorbed by μ and W (PX-EM)."""
    k = theta.loading.shape[1]
    delta = _steps(stats)
    noise = max((stats.error - float(np.sum(delta * stats.slope))) / stats.cells, floor)
    W, mean = theta.loading + delta[:, :k], theta.mean + delta[:, k]
    z = stats.latent[:k, k] / stats.weight
    values, Q = np.linalg.eigh(stats.latent[:k, :k] / stats.weight - np.outer(z, z))
    root = (Q * np.sqrt(np.maximum(values, 0.0))) @ Q.T
    return Factor(mean + W @ z, W @ root, noise)
