r"""The steps of probabilistic PCA that regard the missing cells, and only these, as unknown.

With P = C⁻¹ = GᵀG the precision of the model, D a row about the mean with missing cells m at 0, and the least squares

.. math::
    \min_y\|GD + G_my\|^2,\qquad G_m = QR:\qquad E[x_m|x_o] = \mu_m + y,\quad \operatorname{Cov}(x_m|x_o) = R^{-1}R^{-T}

its minimum is the Mahalanobis distance of the observed cells, and ln|C_oo| = ln|C| + 2 ln|R|. R is the Cholesky factor
of P_mm while signal and noise are within seven orders of each other, and by QR beyond, where forming P_mm would cost
the digits of ln|R|. The maximisation is the closed form of Tipping and Bishop (1999) for the expected covariance.
Progress depends on how much is missing and not on how little noise there is, which is what slows the other route
(:mod:`gramian.likelihood.latent`); but p×p matrices are needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import quiet_blas
from gramian.likelihood.latent import Factor

__all__ = ["Completed", "Root", "complete_cells", "gradient", "maximise", "root_of"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Stack = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

TAME = 1e7  # ratio of the largest to the smallest eigenvalue up to which P_mm keeps nine digits of ln|P_mm|
BATCH = 2**22  # numbers in a batch of matrices G_m


@dataclass(frozen=True, eq=False)
class Root:
    """G with GᵀG = P = C⁻¹, ln|C|, and P itself where it can be used."""

    G: Matrix
    log_det: float
    P: Matrix | None


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


def root_of(factor: Factor) -> Root:
    """G = diag(λ^{-1/2})Vᵀ, with λ = ℓ² + σ² along W's singular vectors and σ² across them."""
    p, k = factor.loading.shape
    V, lengths, _ = np.linalg.svd(factor.loading, full_matrices=True)
    lam = factor.noise + np.append(lengths**2, np.zeros(p - k))
    G = (V / np.sqrt(lam)).T
    return Root(G, float(np.sum(np.log(lam))), G.T @ G if lam[0] < TAME * lam[-1] else None)


def complete_cells(X: Matrix, w: Vector, factor: Factor, root: Root) -> Completed:
    """Expected sums of a block of rows, rows that lack equally many cells together."""
    X, w = X[w > 0], w[w > 0]
    missing = np.isnan(X)
    D = np.where(missing, 0.0, X - factor.mean)
    lacking = missing.sum(axis=1)
    T = D @ (root.G.T if root.P is None else root.P)
    spread, log_dets = np.zeros(root.G.shape), np.full(len(X), root.log_det)
    with quiet_blas():
        for q in np.unique(lacking[lacking > 0]):
            for rows in _batches(np.flatnonzero(lacking == q), X.shape[1] * int(q)):
                index = np.nonzero(missing[rows])[1].reshape(len(rows), int(q))
                y, inverse, log_det = (_by_qr if root.P is None else _by_cholesky)(root, index, T[rows])
                D[rows[:, None], index], log_dets[rows] = y, root.log_det + log_det
                covariance = w[rows, None, None] * (inverse @ inverse.transpose(0, 2, 1))
                _add(spread, index, covariance)
    E = D @ root.G.T
    count = X.shape[1] - lacking
    densities = count * math.log(2 * math.pi) + log_dets + np.einsum("ni,ni->n", E, E)
    scatter = (w[:, None] * D).T @ D + spread
    return Completed(w @ D, scatter, float(w.sum()), float(w @ count), -0.5 * float(w @ densities))


def _batches(rows: Index, numbers: int) -> Iterator[Index]:
    step = max(1, BATCH // numbers)
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _add(out: Matrix, index: Index, blocks: Stack) -> None:
    """Add the block of each row to the rows and columns it belongs to."""
    p = len(out)
    flat = index[:, :, None] * p + index[:, None, :]
    out += np.bincount(flat.ravel(), blocks.ravel(), p * p).reshape(p, p)


def _by_cholesky(root: Root, index: Index, T: Matrix) -> tuple[Matrix, Stack, Vector]:
    """y = −P_mm⁻¹(PD)_m, R⁻¹ and 2 ln|R| of each row, with RᵀR = P_mm."""
    P = root.P if root.P is not None else root.G.T @ root.G
    L = np.linalg.cholesky(P[index[:, :, None], index[:, None, :]])
    inverse = np.linalg.inv(L).transpose(0, 2, 1)
    t = np.take_along_axis(T, index, axis=1)
    y = -np.einsum("nij,nj->ni", inverse, np.einsum("nji,nj->ni", inverse, t))
    return y, inverse, 2 * np.sum(np.log(np.diagonal(L, axis1=1, axis2=2)), axis=1)


def _by_qr(root: Root, index: Index, E: Matrix) -> tuple[Matrix, Stack, Vector]:
    """The same by QR of G_m, from E = GD."""
    G = root.G[:, index].transpose(1, 0, 2)
    Q, R = np.linalg.qr(G)
    inverse = np.asarray(np.linalg.inv(R))
    y = -np.einsum("nij,nj->ni", inverse, np.einsum("npq,np->nq", Q, E))
    return y, inverse, 2 * np.sum(np.log(np.abs(np.diagonal(R, axis1=1, axis2=2))), axis=1)


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


def gradient(factor: Factor, stats: Completed, floor: float) -> float:
    r"""Norm of the score by the information of complete rows, √(gᵀI⁻¹g).

    With Δ = C^{-1/2}(S − C)C^{-1/2} for the expected S, it is ω(μ̂−μ)ᵀC⁻¹(μ̂−μ) + ω/2‖Δ‖², of which only the part
    along the model counts: beside W nothing but the mean of the noise can change, and that no more than to the floor.
    """
    p, k = factor.loading.shape
    G = root_of(factor).G
    step = G @ stats.total / stats.weight
    S = G @ (stats.scatter / stats.weight) @ G.T - np.eye(p)
    inside = float(np.sum(S[:k] ** 2) + np.sum(S[k:, :k] ** 2))
    slope = float(np.trace(S[k:, k:]))
    noise = 0.0 if slope < 0 and factor.noise <= floor else slope**2 / (p - k)
    return math.sqrt(stats.weight * (float(step @ step) + 0.5 * (inside + noise)))
