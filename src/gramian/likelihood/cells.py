r"""The steps of probabilistic PCA that regard the missing cells, and only these, as unknown.

With P = C⁻¹ the precision of the model, D a row about the mean with missing cells m at 0, and t = (PD)_m,

.. math::
    E[x_m|x_o] = \mu_m - P_{mm}^{-1}t,\qquad \operatorname{Cov}(x_m|x_o) = P_{mm}^{-1},\qquad
    \ln|C_{oo}| = \ln|C| + \ln|P_{mm}|

so a row costs the cube of how many cells it lacks. The maximisation is the closed form of Tipping and Bishop (1999) for
the covariance that is expected. Progress depends on how much is missing and not on how little noise there is, which is
what slows the other route (:mod:`gramian.likelihood.latent`) down; but p×p matrices are needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.likelihood.latent import Factor

__all__ = ["Completed", "complete_cells", "gradient", "maximise"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Completed:
    """Sums over rows at one value of the parameters.

    Attributes
    ----------
    total : ndarray of shape (p,)
        Σ w E[x − μ].
    scatter : ndarray of shape (p, p)
        Σ w E[(x − μ)(x − μ)ᵀ].
    weight, cells : float
        Rows and observed cells, counted with their weights.
    log_likelihood : float
        Of the observed cells.
    """

    total: Vector
    scatter: Matrix
    weight: float
    cells: float
    log_likelihood: float

    def merge(self, other: Completed) -> Completed:
        """Return the sums over both sets of rows together."""
        return Completed(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def precision(factor: Factor) -> tuple[Matrix, float]:
    """C⁻¹ and ln|C| of C = WWᵀ + σ²I, from the singular values of W."""
    V, lengths, _ = np.linalg.svd(factor.loading, full_matrices=False)
    p, k = factor.loading.shape
    P = (np.eye(p) - (V * (lengths**2 / (lengths**2 + factor.noise))) @ V.T) / factor.noise
    log_det = float(np.sum(np.log(lengths**2 + factor.noise))) + (p - k) * math.log(factor.noise)
    return P, log_det


def complete_cells(X: Matrix, w: Vector, factor: Factor, model: tuple[Matrix, float]) -> Completed:
    """Expected sums of a block of rows, rows that lack equally many cells together."""
    X, w = X[w > 0], w[w > 0]
    P, log_det = model
    missing = np.isnan(X)
    D = np.where(missing, 0.0, X - factor.mean)
    lacking = missing.sum(axis=1)
    spread, log_dets = np.zeros(P.shape), np.full(len(X), log_det)
    for q in np.unique(lacking[lacking > 0]):
        rows = np.flatnonzero(lacking == q)
        index = np.nonzero(missing[rows])[1].reshape(len(rows), q)
        inverse, log_dets[rows] = _inverses(P, index, log_det)
        t = np.take_along_axis(D[rows] @ P, index, axis=1)
        D[rows[:, None], index] = -np.einsum("nij,nj->ni", inverse, t)
        np.add.at(spread, (index[:, :, None], index[:, None, :]), w[rows, None, None] * inverse)
    quadratic = np.einsum("ni,ni->n", D @ P, D)
    count = X.shape[1] - lacking
    densities = count * math.log(2 * math.pi) + log_dets + quadratic
    scatter = (w[:, None] * D).T @ D + spread
    return Completed(w @ D, scatter, float(w.sum()), float(w @ count), -0.5 * float(w @ densities))


def _inverses(P: Matrix, index: npt.NDArray[np.intp], log_det: float) -> tuple[npt.NDArray[np.float64], Vector]:
    """P_mm⁻¹ of each row, and ln|C_oo|."""
    blocks = P[index[:, :, None], index[:, None, :]]
    return np.asarray(np.linalg.inv(blocks)), np.asarray(log_det + np.linalg.slogdet(blocks)[1])


def maximise(factor: Factor, stats: Completed, floor: float) -> Factor:
    """Closed form for the expected covariance; W turned towards the old one, so that steps can be compared."""
    k = factor.loading.shape[1]
    step = stats.total / stats.weight
    values, vectors = np.linalg.eigh(stats.scatter / stats.weight - np.outer(step, step))
    values, V = values[::-1], vectors[:, ::-1][:, :k]
    noise = max(float(np.mean(values[k:])), floor)
    W = V * np.sqrt(np.maximum(values[:k] - noise, 0.0))
    left, _, right = np.linalg.svd(W.T @ factor.loading)
    return Factor(factor.mean + step, W @ (left @ right), noise)


def gradient(factor: Factor, stats: Completed) -> float:
    r"""Norm of the score by the information of complete rows, √(gᵀI⁻¹g).

    With Δ = C^{-1/2}(S − C)C^{-1/2} for the expected S, it is ω(μ̂−μ)ᵀC⁻¹(μ̂−μ) + ω/2‖Δ‖², of which only the part
    along the model counts: beside W nothing but the mean of the noise can change.
    """
    V, lengths, _ = np.linalg.svd(factor.loading, full_matrices=True)
    p, k = factor.loading.shape
    root = np.sqrt(factor.noise + np.append(lengths**2, np.zeros(p - k)))
    step = (V.T @ stats.total) / stats.weight / root
    S = V.T @ (stats.scatter / stats.weight) @ V / (root[:, None] * root[None, :]) - np.eye(p)
    inside = float(np.sum(S[:k] ** 2) + np.sum(S[k:, :k] ** 2))
    noise = float(np.trace(S[k:, k:])) ** 2 / (p - k)
    return math.sqrt(stats.weight * (float(step @ step) + 0.5 * (inside + noise)))
