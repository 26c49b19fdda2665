"""Block Krylov for a symmetric map: the few largest eigenpairs of a kernel matrix that is never formed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import to_numpy
from gramian.operators.base import Operator
from gramian.results import Spectrum
from gramian.spectral.lanczos import BlockLanczos
from gramian.spectral.rayleigh import (
    FRESH,
    Triplets,
    check_k,
    default_tolerance,
    norms,
    random_block,
    spectrum,
    thin_qr,
)

Array = Any
Vector = npt.NDArray[np.float64]

SQRT2 = 2.0**0.5
BASIS_LIMIT = 1000  # the projected eigenproblem takes 0.15 s at 1,000 and grows with the cube
NOISY = 10.0  # times the tolerance that a twin may miss it by for a single step with K to mend it
MARGIN = 0.5  # of the tolerance, to be met by what products in fewer digits say of themselves
SPARE = 8  # vectors beyond k that the last projection keeps
LEAST_BLOCK = 24  # one product with 24 vectors costs as much as one and a half with 10, and three in four are spared


@dataclass(frozen=True)
class SymmetricKrylov:
    r"""Block Lanczos on K itself, with restarts, stopping on residuals ‖Kv − λv‖.

    As ``scipy.sparse.linalg.eigsh``, but a block at a time, because evaluating a kernel costs more than multiplying by
    it: one product with b vectors costs little more than one with a single vector. Where a twin of K in float32 is
    given, the iteration runs on the twin, at twice the speed, and the last projection and the residuals, which are what
    is certified, are made with K. On a GPU there are two twins, the first with fewer digits than float32 has.

    A twin is iterated until it says of itself that half the tolerance is met. What its products got wrong is as good as
    random from row to row, and a product with the next more precise map averages it out: one such step follows each
    twin. If K then finds the tolerance missed by up to ten times, one step with K mends it; otherwise the next map
    goes on from the vectors found.

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

    def __call__(
        self, K: Operator, k: int, reason: str = "asked for", *, twin: Operator | Sequence[Operator] | None = None
    ) -> Spectrum:
        """Return the k largest eigenpairs of K, as a Spectrum whose ``values`` are eigenvalues.

        Parameters
        ----------
        K : Operator of shape (n, n)
            Symmetric.
        k : int
            Pairs.
        reason : str
            For the certificate.
        twin : Operator or sequence of Operators, optional
            K with fewer digits; of several the coarsest first.
        """
        result = self.attempt(K, k, reason, twin=twin)
        result.certificate.warn_unless_converged(
            f"Raise the tolerance, use an exact solver, or allow more than max_products={self.max_products}.",
        )
        return result

    def attempt(
        self, K: Operator, k: int, reason: str, *, twin: Operator | Sequence[Operator] | None = None
    ) -> Spectrum:
        """Do the same without a warning."""
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"A symmetric map is square; this one has the shape {K.shape}.")
        tol, k = default_tolerance(K) if self.tol is None else self.tol, check_k(K, k)
        twins = [] if twin is None else [twin] if isinstance(twin, Operator) else list(twin)
        before = sum(A.passes for A in (*twins, K))
        with K.session():
            found, overlooked = self._solve([*twins, K], k, tol)
        narrow = ", iterated in float32" if twins else ""
        method = f"block Krylov on K ({self._width(K, k)} vectors a product{narrow})"
        passes = sum(A.passes for A in (*twins, K)) - before
        notes = tuple(f"iterated with {A.precision}" for A in twins if A.precision and A.passes)
        return spectrum(
            K, found, method=method, reason=reason, passes=passes, tolerance=tol, notes=notes, overlooked=overlooked
        )

    def _solve(self, maps: list[Operator], k: int, tol: float) -> tuple[Triplets, float | None]:
        """Iterate on one twin after the other while that helps, then on K from where they ended.

        With the pairs comes the chance that an eigenvalue twice as large was overlooked, by the first map.
        """
        K, end = maps[-1], sum(A.passes for A in maps) + self.max_products
        known = max(1, self._width(K, k) - FRESH)
        start, fresh, overlooked = random_block(K, K.shape[0], known, self.seed), FRESH, None

        def over() -> bool:
            return sum(A.passes for A in maps) >= end

        for A, finer in pairwise(maps):
            grown = _Growth(A, A.asarray(start), k, self.seed, fresh)
            estimate = grown.until(MARGIN * tol, over)
            overlooked, fresh = grown.lanczos.chance_of_overlooking(0.5, known) if fresh else overlooked, 0
            start = grown.vectors(max(k, grown.lanczos.block))
            start = start if finer is K else finer.matmat(finer.asarray(start))
            if estimate > NOISY * tol:
                continue
            # products in float64 are the dearest: of what a twin has found, only what is asked for is looked at again
            found, best, image = project(K, K.asarray(start[:, :k]), k)
            if tol < found.residuals.max() <= NOISY * tol:  # one step more with K, where a little noise is all
                found, best, _ = project(K, image, k)
            if found.residuals.max() <= tol:
                return found, overlooked
            start = K.xp.concat([best, K.asarray(start[:, k:])], axis=1)
        grown, goal = _Growth(K, K.asarray(start), k, self.seed, fresh), tol
        while True:  # grow a Krylov space of K itself until its pairs satisfy it, or there is no more to be had
            estimate = grown.until(goal, over)
            found = project(K, grown.vectors(k + SPARE), k)[0]
            if grown.ended or over() or found.residuals.max() <= tol:
                return found, grown.lanczos.chance_of_overlooking(0.5, known) if fresh else overlooked
            goal = min(goal, estimate) / 4  # the estimate was too kind: go on a little

    def _width(self, K: Operator, k: int) -> int:
        return min(K.shape[0], self.block or max(LEAST_BLOCK, -(-(k + 2) // 8) * 8))


class _Growth:
    """A Krylov space of one map, grown until its Ritz pairs look good enough to themselves."""

    def __init__(self, A: Operator, start: Array, k: int, seed: int, fresh: int) -> None:
        self.A, self.k = A, k
        width = min(A.shape[0], start.shape[1] + fresh)
        self.lanczos = BlockLanczos(A.matmat, start, A.xp, _basis(A, k, width), seed, fresh=fresh)
        # what the arithmetic of the basis cannot resolve; that of the products is another matter, for K to judge
        self.least = 0.0 if A.dtype == A.xp.float64 else 4 * float(A.xp.finfo(A.dtype).eps)
        self.ended = False

    def until(self, goal: float, over: Callable[[], bool]) -> float:
        """Multiply until √2‖Av − θv‖/‖A‖ of the k best pairs is below the goal, as Lanczos has it; return that."""
        while True:
            self.lanczos.extend(keep=self.k + self.lanczos.block)
            self.ended = self.lanczos.exhausted
            if self.lanczos.d < self.k:
                continue
            theta, _, residuals = self.lanczos.ritz(self.k)
            worst = float(np.max(residuals)) / _size(theta)
            if self.ended or over() or worst <= self.least or SQRT2 * worst <= goal:
                return SQRT2 * worst

    def vectors(self, count: int) -> Array:
        """The best Ritz vectors."""
        return self.lanczos.vectors(self.lanczos.ritz(min(self.lanczos.d, count))[1])


def project(K: Operator, V: Array, k: int) -> tuple[Triplets, Array, Array]:
    """The k best eigenpairs in span(V) with residuals √2‖Kv − λv‖/‖K‖, all vectors, and K times them: one product."""
    Q = thin_qr(K.xp, V)[0]
    Y = K.matmat(Q)
    H = to_numpy(Q.T @ Y, float)
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
