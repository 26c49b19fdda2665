"""Block Lanczos for a symmetric positive semidefinite map, with full reorthogonalisation and thick restarts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse.linalg as sla

from gramian.compute.devices import device_keyword, to_numpy
from gramian.spectral.rayleigh import FRESH, chance_of_overlooking, largest_eigenpairs, seed_from_product, thin_qr

Array = Any

DOUBT = 1e-9  # chance of having overlooked an eigenvalue below which the iteration may end
SEARCHED = 8  # vectors at a time that look for what a single start vector has missed
PRODUCTS = 0.5  # of as many as there are rows, after which ARPACK is given up: LAPACK takes as long as so many
FACTORED = 850  # rows up to which a Cholesky factor takes less time than a search: 2 ms against 5 at 530
LITTLE = 1e-2  # columns this much shorter than ‖G‖ have their rounding blown up too far by normalising
Matrix = npt.NDArray[np.float64]


class BlockLanczos:
    r"""An orthonormal basis Q of the block Krylov space of G, grown a block at a time.

    Each step multiplies the newest block, G Q_j = Q H + Q_{j+1} R, so that the Ritz pair (θ, Qs) has the residual
    ‖R s_j‖ with s_j the entries of s that belong to the newest block multiplied: no product is needed to know it.

    Parameters
    ----------
    apply : callable
        V ↦ G V.
    start : array of shape (m, b)
        Start block. With b at least the number of pairs wanted, equal eigenvalues are all found.
    xp : module
        Array namespace of ``start``.
    limit : int
        Largest dimension of the basis; beyond it the basis restarts from its best Ritz vectors.
    seed : int
        For the directions that replace an exhausted block.
    fresh : int
        Directions that join the block after the first product, drawn from its digits: those that data cannot hide from.
    """

    def __init__(
        self, apply: Callable[[Array], Array], start: Array, xp: Any, limit: int, seed: int = 0, *, fresh: int = 0
    ) -> None:
        self.apply, self.xp = apply, xp
        m = start.shape[0]
        self.block = min(m, start.shape[1] + fresh)
        self.limit = min(limit, m)
        self.seed, self.fresh = seed, self.block - start.shape[1]
        self.rng = np.random.default_rng([seed, 1])
        # transposed storage: the basis vectors are rows, contiguous, and a view of the first d costs nothing
        self._store = xp.empty((self.limit, m), dtype=start.dtype, **device_keyword(start))
        self.T: Matrix = np.zeros((self.limit, self.limit))
        self.d = 0  # vectors whose product is known
        self.steps = 0
        self.unbroken, self.whole = 0, True  # steps up to the first restart, while the basis is the whole Krylov space
        self.R: Matrix = np.zeros((0, 0))
        self.last = 0
        self.restarted = True
        self._next = self._orthonormalise(start)[0]

    @property
    def exhausted(self) -> bool:
        """Whether the basis is the whole space, so that Ritz pairs are eigenpairs."""
        return bool(self._next.shape[1] == 0)

    def extend(self, keep: int) -> None:
        """Multiply the newest block and orthonormalise what comes out; restart first if the basis is full."""
        b = self._next.shape[1]
        if self.d + b > self.limit:
            self._restart(keep)
            b = min(b, self.limit - self.d)
            self._next = self._next[:, :b]
        self._store[self.d : self.d + b, :] = self._next.T
        d = self.d + b
        W = self.apply(self._next)
        if not self.steps:
            self.rng = np.random.default_rng(seed_from_product(W, self.seed))
        H, W = self._project(W, d)
        self.T[:d, self.d : d] = H
        self.T[self.d : d, :d] = H.T
        self.d, self.last, self.steps = d, b, self.steps + 1
        self.unbroken += self.whole
        self._next, self.R = self._orthonormalise(W)
        if self.steps == 1 and self.fresh:
            # orthogonal to G times the basis, so that the products found stay as they are
            room = self._store.shape[1] - d - self._next.shape[1]
            random = self._native(self.rng.standard_normal((self._next.shape[0], min(self.fresh, room))))
            random = random / self._next.shape[0] ** 0.5
            random = random - self._next @ (self._next.T @ random)
            self._next = self._clean(self.xp.concat([self._next, random], axis=1))

    def chance_of_overlooking(self, share: float, drawn: int) -> float | None:
        """Bound on the probability that an eigenvalue λ was overlooked; ``drawn`` start vectors were random."""
        if self.exhausted:
            return None
        m, steps = self._store.shape[1], self.unbroken
        first = chance_of_overlooking(m, steps, drawn, share)
        return first * chance_of_overlooking(m, steps - 1, self.fresh, share)

    def ritz(self, k: int) -> tuple[Matrix, Matrix, Matrix]:
        """The k largest Ritz values, their coordinates in the basis, and their residual norms."""
        theta, S = largest_eigenpairs(self.T[: self.d, : self.d], k)
        return theta, S, np.linalg.norm(self.R @ S[self.d - self.last :, :], axis=0)

    def vectors(self, S: Matrix) -> Array:
        """Q S."""
        return self._store[: self.d, :].T @ self._native(S)

    def _native(self, S: Matrix) -> Array:
        return self.xp.asarray(np.array(S, order="C"), dtype=self._store.dtype, **device_keyword(self._store))

    def _project(self, W: Array, d: int) -> tuple[Matrix, Array]:
        """Coefficients of W in the first d basis vectors, and what is left.

        In exact arithmetic W has parts in the last two blocks alone. Those, which are large, are taken out first, so
        that one projection on the whole basis is enough for the rest; after a restart the large parts are anywhere.
        """
        near = 0 if self.restarted else max(0, d - 2 * self.block)
        local = self._store[near:d, :]
        first = local @ W
        W = W - local.T @ first
        Qt = self._store[:d, :]
        rest = Qt @ W
        W = W - Qt.T @ rest
        H = to_numpy(rest, float).copy()
        H[near:, :] += to_numpy(first, float)
        self.restarted = False
        return H, W

    def _orthonormalise(self, W: Array) -> tuple[Array, Matrix]:
        """W = Q R with Q orthogonal to the basis; directions W does not fill are drawn at random."""
        room = self._store.shape[1] - self.d
        scale = float(np.max(np.abs(self.T), initial=0.0)) or float(self.xp.max(self.xp.abs(W)))
        Q, R = thin_qr(self.xp, W)
        R = to_numpy(R, float)
        pivots = np.abs(np.diag(R))
        weak = pivots <= 100 * float(self.xp.finfo(W.dtype).eps) * scale
        if weak.any():
            # R's rows for replaced directions stay: they are at rounding level, and residuals must not shrink
            random = self._native(self.rng.standard_normal((Q.shape[0], int(weak.sum()))))
            keep = Q[:, self.xp.asarray(np.flatnonzero(~weak), **device_keyword(Q))]
            Q = self._clean(self.xp.concat([keep, random], axis=1))
        elif self.d and pivots.min() <= LITTLE * scale:
            Q = self._clean(Q)
        return Q[:, :room], R[:room, :]

    def _clean(self, Q: Array) -> Array:
        """Orthogonal to the basis and within itself, to rounding."""
        for _ in range(2):
            Qt = self._store[: self.d, :]
            Q = thin_qr(self.xp, Q - Qt.T @ (Qt @ Q))[0]
        return Q

    def _restart(self, keep: int) -> None:
        """Keep the best Ritz vectors; the residual block stays, and with it the Krylov structure."""
        self.whole = False
        keep = min(keep, self.d, self.limit - self._next.shape[1])
        theta, S, _ = self.ritz(keep)
        best = self.xp.linalg.qr(self.vectors(S))[0].T
        self._store[:keep, :] = best
        self.T[:] = 0.0
        self.T[np.arange(keep), np.arange(keep)] = theta
        self.d = keep
        self.restarted = True
        self._next = self._clean(self._next)


def iterate_eigenpairs(G: Matrix, k: int, goal: float, limit: int) -> tuple[Matrix, Matrix, float | None] | None:
    """The k largest eigenpairs of a matrix G ⪰ 0 in memory by block Lanczos, or None where that is slow to come.

    Parameters
    ----------
    G : ndarray of shape (m, m)
        Symmetric.
    k : int
        Pairs.
    goal : float
        Residual ‖Gv − θv‖ to reach, relative to the largest eigenvalue.
    limit : int
        Dimension of the Krylov space at which it is given up.

    Returns
    -------
    tuple or None
        Values, descending; vectors, whose lengths and angles are right to the goal; and the bound on the chance that an
        eigenvalue twice as large was overlooked.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.spectral.lanczos import iterate_eigenpairs
    >>> iterate_eigenpairs(np.diag(0.9 ** np.arange(300.0)), 2, 1e-10, 200)[0].round(6)
    array([1. , 0.9])
    """
    m, b = len(G), -(-(k + 2) // 8) * 8
    start = np.random.default_rng(0).standard_normal((m, b - FRESH))
    lanczos, checked = BlockLanczos(lambda V: G @ V, start, np, limit, fresh=FRESH), 0
    while lanczos.d + b <= lanczos.limit and not lanczos.exhausted:
        lanczos.extend(keep=k + b)
        if lanczos.d < 1.15 * checked:
            continue
        checked = lanczos.d
        theta, S, residuals = lanczos.ritz(k)
        worst = float(residuals.max() / max(theta[0], np.finfo(float).tiny))
        overlooked = lanczos.chance_of_overlooking(0.5, b - FRESH)
        if worst <= goal and (overlooked or 0.0) <= DOUBT:
            return theta, lanczos.vectors(S), overlooked
        # residuals fall faster and faster, so that extrapolating their rate overestimates by about two
        slow = worst >= 1.0 or (worst > goal and lanczos.d * math.log(goal) / math.log(worst) > 2 * lanczos.limit)
        if slow and lanczos.steps >= 4:
            return None
    return None


def search_eigenpairs(G: Matrix, k: int, goal: float) -> tuple[Matrix, Matrix, float | None] | None:
    r"""The k largest eigenpairs of a matrix G ⪰ 0 in a core's cache, or None where they are slow to come.

    ARPACK multiplies one vector at a time, which a cache makes cheap, and needs fewer products than blocks. From a
    single start vector it sees one copy of an eigenvalue, and rounding may or may not bring the others. With V the
    vectors found and P = I − VVᵀ, what is left has λ_{k+1}(G) ≤ λ₁(PGP) ≤ ‖PGP‖_F, and

    .. math:: \|PGP\|_F^2 \le \|G\|_F^2 - \|V^TGV\|_F^2

    proves that nothing is missing where that is no more than the square of the smallest value found. So does, of few
    rows, a Cholesky factor of θ_k I − G + VΘVᵀ, rounding included. Elsewhere PGP is searched from random vectors of its
    own, and if it has anything larger, all is left to who calls.

    Parameters
    ----------
    G : ndarray of shape (m, m)
        Symmetric.
    k : int
        Pairs, fewer than m.
    goal : float
        Residual ‖Gv − θv‖ to reach, relative to the largest eigenvalue; 0 is rounding.

    Returns
    -------
    tuple or None
        Values, descending; orthonormal vectors; and a bound on the chance that an eigenvalue twice as large as the
        smallest was overlooked, None where it is proved that all are the largest.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.spectral.lanczos import search_eigenpairs
    >>> values, vectors, overlooked = search_eigenpairs(np.diag(0.5 ** np.arange(300.0)), 2, 1e-10)
    >>> values.round(6), overlooked is None
    (array([1. , 0.5]), True)
    """
    m, rng = len(G), np.random.default_rng(0)
    squares = float(np.einsum("ij,ij->", G, G))
    # ARPACK's tolerance is relative to each eigenvalue; of G + τI that is to the largest, and zeros are no obstacle
    shift = 0.1 * math.sqrt(squares)
    shifted = sla.LinearOperator((m, m), matvec=lambda v: G @ v + shift * v, dtype=G.dtype)
    width = min(max(2 * k + 1, 20), m)
    most = max(1, int(PRODUCTS * m / (width - k)))
    try:
        theta, V = sla.eigsh(shifted, k, which="LA", v0=rng.standard_normal(m), ncv=width, maxiter=most, tol=goal)
    except sla.ArpackError:
        return None
    theta, V = theta[::-1] - shift, np.ascontiguousarray(V[:, ::-1])
    # what rounding and residuals can make of the difference of two squares
    rest = max(squares - float(theta @ theta), 0.0) + 8 * max(m * 2.0**-53, goal) * squares
    if rest <= max(float(theta[-1]), 0.0) ** 2:
        return theta, V, None

    if m <= FACTORED:
        # λ_{k+1}(G) ≤ λ₁(G − VΘVᵀ), which is below τ where τI − G + VΘVᵀ has a Cholesky factor
        rest_of_all = (V * theta) @ V.T - G
        level = float(theta[-1])
        # of the factor, (m+1)u times the trace; of what is factored, its products and sums
        lost = (m + 1) * (m * abs(level) + abs(float(np.trace(rest_of_all))))
        level -= 2.0**-52 * (lost + k * (k + 3) * float(theta[0]) + math.sqrt(squares))
        rest_of_all[np.diag_indices(m)] += level
        if level > 0 and scipy.linalg.lapack.dpotrf(rest_of_all.T, lower=1, clean=0, overwrite_a=1)[1] == 0:
            return theta, V, None

    def leave(W: Matrix) -> Matrix:
        return np.asarray(W - V @ (V.T @ W))

    start = rng.standard_normal((m, SEARCHED - FRESH))
    search, overlooked = BlockLanczos(lambda W: leave(G @ leave(W)), start, np, m // 2, fresh=FRESH), 1.0
    while overlooked > DOUBT:
        if search.exhausted or search.d + SEARCHED > search.limit:
            return None
        search.extend(keep=SEARCHED)
        overlooked = search.chance_of_overlooking(0.5, SEARCHED - FRESH) or 0.0
    largest = float(search.ritz(1)[0][0])
    return None if largest > theta[-1] + max(goal, 2.0**-40) * theta[0] else (theta, V, overlooked)
