"""Block Krylov for a symmetric map: the few largest eigenpairs of a kernel matrix that is never formed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.operators.base import Operator
from gramian.results import Spectrum
from gramian.spectral.lanczos import BlockLanczos
from gramian.spectral.rayleigh import (
    Triplets,
    check_k,
    default_tolerance,
    epsilon,
    norms,
    random_block,
    small,
    spectrum,
    warn_unless_converged,
)

__all__ = ["SymmetricKrylov"]

Array = Any
Vector = npt.NDArray[np.float64]

SQRT2 = 2.0**0.5
BASIS_LIMIT = 1000  # the projected eigenproblem takes 0.15 s at 1,000 and grows with the cube
NARROW_FLOOR = 2e-7  # residual below which products in float32 are of no more help
NOISY = 10.0  # times the tolerance that float32 may miss it by for a single step to mend it
MARGIN = 0.5  # of the tolerance, to be met by what products in float32 say of themselves
SPARE = 8  # vectors beyond k that the last projection keeps
LEAST_BLOCK = 24  # one product with 24 vectors costs as much as one and a half with 10, and three in four are spared


@dataclass(frozen=True)
class SymmetricKrylov:
    r"""Block Lanczos on K itself, with restarts, stopping on residuals ‖Kv − λv‖.

    As ``scipy.sparse.linalg.eigsh``, but a block at a time, because evaluating a kernel costs more than multiplying by
    it: one product with b vectors costs little more than one with a single vector. Where a twin of K in float32 is
    given, the iteration runs on the twin, at twice the speed, and the last projection and the residuals, which are what
    is certified, are made with K.

    Parameters
    ----------
    tol : float, optional
        Residual √2‖Kv − λv‖/‖K‖ to reach; 1e-6 in float64 and 1e-4 in float32 where not given. The factor makes it the
        ρ of a singular triplet (v, λ, v), so that some eigenvalue lies within ‖Kv − λv‖.
    block : int, optional
        Vectors a product; k + 2 rounded up to a multiple of 8, and at least 24.
    max_products : int, default=300
        Give up, with a warning, after this many.
    seed : int, default=0
        For the start block.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data
    >>> from gramian.spectral import SymmetricKrylov
    >>> SymmetricKrylov()(Data(np.diag(np.arange(1.0, 101.0))), 2).values.round(6)
    array([100.,  99.])
    """

    tol: float | None = None
    block: int | None = None
    max_products: int = 300
    seed: int = 0

    def __call__(self, K: Operator, k: int, reason: str = "asked for", *, twin: Operator | None = None) -> Spectrum:
        """Return the k largest eigenpairs of K, as a Spectrum whose ``values`` are eigenvalues."""
        result = self.attempt(K, k, reason, twin=twin)
        warn_unless_converged(
            result.certificate,
            f"Raise the tolerance, use an exact solver, or allow more than max_products={self.max_products}.",
        )
        return result

    def attempt(self, K: Operator, k: int, reason: str, *, twin: Operator | None = None) -> Spectrum:
        """Do the same without a warning."""
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"A symmetric map is square; this one has the shape {K.shape}.")
        tol, k = default_tolerance(K) if self.tol is None else self.tol, check_k(K, k)
        maps = [K] if twin is None else [twin, K]
        before = sum(A.passes for A in maps)
        with K.session():
            found = self._solve(maps, k, tol)
        narrow = "" if twin is None else ", iterated in float32"
        method = f"block Krylov on K ({self._width(K, k)} vectors a product{narrow})"
        passes = sum(A.passes for A in maps) - before
        return spectrum(K, found, method=method, reason=reason, passes=passes, tolerance=tol)

    def _solve(self, maps: list[Operator], k: int, tol: float) -> Triplets:
        """Iterate on the twin while that helps, then on K from where the twin ended."""
        K = maps[-1]
        start = random_block(K, K.shape[0], self._width(K, k), self.seed)
        for A in maps[:-1]:
            found, start, image = self._iterate(A, K, A.asarray(start), k, tol)
            if tol < found.residuals.max() <= NOISY * tol:  # one step of subspace iteration takes out float32's noise
                found, start, _ = project(K, image, k)
            if found.residuals.max() <= tol:
                return found
        return self._iterate(K, K, K.asarray(start), k, tol)[0]

    def _width(self, K: Operator, k: int) -> int:
        return min(K.shape[0], self.block or max(LEAST_BLOCK, -(-(k + 2) // 8) * 8))

    def _iterate(self, A: Operator, K: Operator, start: Array, k: int, tol: float) -> tuple[Triplets, Array, Array]:
        """Grow a Krylov space of A until its pairs satisfy K, or A's rounding keeps them from it."""
        lanczos = BlockLanczos(A.matmat, start, A.xp, _basis(A, k, start.shape[1]), self.seed)
        # what float32 estimates is a little off, and a projection that just fails costs two products
        goal, before = tol if A is K else MARGIN * tol, A.passes
        while True:
            lanczos.extend(keep=k + lanczos.block)
            stop = lanczos.exhausted or A.passes - before >= self.max_products
            if lanczos.d < k:
                continue
            theta, _, residuals = lanczos.ritz(k)
            worst = float(np.max(residuals)) / _size(theta)
            stop = stop or (A is not K and worst <= 4 * epsilon(A))
            if not (stop or SQRT2 * worst <= goal):
                continue
            # products in float64 are the dearest: of what float32 has found, only what is asked for is looked at again
            S = lanczos.ritz(min(lanczos.d, k + SPARE if A is K else k))[1]
            found, V, image = project(K, K.asarray(lanczos.vectors(S)), k)
            if stop or found.residuals.max() <= tol or (A is not K and goal <= NARROW_FLOOR):
                return found, V, image
            goal = min(goal, SQRT2 * worst) / 4  # the estimate was too kind: go on a little


def project(K: Operator, V: Array, k: int) -> tuple[Triplets, Array, Array]:
    """The k best eigenpairs in span(V) with residuals √2‖Kv − λv‖/‖K‖, all vectors, and K times them: one product."""
    Q = K.xp.linalg.qr(V)[0]
    Y = K.matmat(Q)
    H = small(Q.T @ Y)
    theta, Z = np.linalg.eigh((H + H.T) / 2)
    theta, Z = theta[::-1], K.asarray(np.ascontiguousarray(Z[:, ::-1]))
    X, Y = Q @ Z, Y @ Z
    R = Y[:, :k] - X[:, :k] * K.asarray(theta[None, :k].copy())
    residuals = SQRT2 * norms(K.xp, R) / _size(theta)
    return Triplets(theta[:k].copy(), X[:, :k], X[:, :k], residuals), X, Y


def _size(theta: Vector) -> float:
    return max(float(np.max(np.abs(theta), initial=0.0)), np.finfo(float).tiny)


def _basis(A: Operator, k: int, b: int) -> int:
    """Vectors to keep before a restart: as many as there is room for, and no more than can be projected quickly."""
    n = A.shape[0]
    room = A.room // (8 * n)
    return min(n, max(min(BASIS_LIMIT, room), 3 * b, k + 2 * b))
