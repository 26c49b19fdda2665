"""Block Krylov: the few largest singular triplets in few passes over the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.operators.base import Operator
from gramian.results import Spectrum
from gramian.spectral.lanczos import BlockLanczos
from gramian.spectral.rayleigh import FRESH, Triplets, check_k, default_tolerance, finish, random_block, spectrum

BASIS_LIMIT = 1000  # the projected eigenproblem takes 0.15 s at 1,000 and grows with the cube

CHECK = 1.05  # the projected problem is solved when the basis has grown by this: a fifth of a pass at dimension 600
BLUR = 1e-10  # λ/λ₁ below which rounding mixes Ritz vectors

Array = Any
Vector = npt.NDArray[np.float64]
History = list[tuple[int, float]]
RequiredCount = Callable[[Vector, Callable[[], Array], int], int]


@dataclass(frozen=True)
class Krylov:
    r"""Block Lanczos on AᵀA (or AAᵀ, whichever is smaller) with restarts, stopping on residuals.

    As ``scipy.sparse.linalg.svds(solver="arpack")``, but a block at a time: one pass over the data multiplies k + 2
    or more vectors at once, and both products of a pass are made while a block of rows is in cache.

    Parameters
    ----------
    tol : float, optional
        Residual ρ to reach; 1e-6 in float64 and 1e-4 in float32 where not given.
    block : int, optional
        Vectors per pass; k + 2 rounded up to a multiple of 8. Values below k can miss copies of equal singular values.
    max_passes : int, default=300
        Give up, with a warning, after this many products.
    seed : int, default=0
        For the start block.
    left : bool, default=False
        Whether to return the left vectors.
    basis : int, optional
        Largest dimension of the Krylov basis before a restart.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data
    >>> from gramian.spectral import Krylov
    >>> A = Data(np.diag(np.arange(1.0, 101.0)))
    >>> Krylov()(A, 2).values.round(6)
    array([100.,  99.])
    """

    tol: float | None = None
    block: int | None = None
    max_passes: int = 300
    seed: int = 0
    left: bool = False
    basis: int | None = None

    def __call__(self, A: Operator, k: int, reason: str = "asked for") -> Spectrum:
        """Return the k largest triplets of A."""
        result = self.attempt(A, k, reason)
        result.certificate.warn_unless_converged(
            f"Raise the tolerance, use an exact solver (svd_solver='full' of PCA), or allow Krylov more than "
            f"max_passes={self.max_passes}.",
        )
        return result

    def attempt(
        self,
        A: Operator,
        k: int,
        reason: str,
        abandon: Callable[[History], bool] = lambda _: False,
        *,
        start: Array | None = None,
        count_required: RequiredCount | None = None,
    ) -> Spectrum:
        """Do the same without a warning.

        Parameters
        ----------
        A, k, reason : Operator, int, str
            As in a call.
        abandon : callable, optional
            Sees (passes, worst residual) so far and may stop the iteration.
        start : array of shape (m, b), optional
            Start block, m the smaller side (the rows of data stored by columns), instead of a random one.
        count_required : callable, optional
            Given the eigenvalues of AᵀA found so far, a function that makes their vectors, and the passes: how many of
            the leading ones must meet the tolerance. The others are reported as they are, for those that noise keeps
            together would take for ever.
        """
        tol, k = default_tolerance(A) if self.tol is None else self.tol, check_k(A, k)
        n, p = A.shape
        # AAᵀ for data stored by columns, or fewer rows than columns unless it doubles the reading
        flip = A.by_columns or (n < p and (A.resident or p * 8 * 20 * k > A.room))
        B, before = A.T if flip else A, A.passes
        m = B.shape[1]
        b = min(m, self.block or -(-(k + 2) // 8) * 8) if start is None else start.shape[1]
        limit = min(m, max(self.basis or min(BASIS_LIMIT, B.room // (8 * m)), 3 * b, k + 2 * b))
        with A.session():
            drawn = 0 if start is not None else max(1, b - FRESH)  # at random, before anything is known of A
            start = random_block(B, m, drawn, self.seed) if start is None else start[:, : max(k, b - FRESH)]
            lanczos = BlockLanczos(B.normal, start, B.xp, limit, self.seed, fresh=FRESH)
            found, judged = self._iterate(B, lanczos, k, tol, before, abandon, count_required)
        found = found.transposed if flip else found
        method = f"block Krylov on {'AAᵀ' if flip else 'AᵀA'} ({lanczos.block} vectors a pass)"
        passes = A.passes - before
        result = spectrum(
            A,
            found,
            method=method,
            reason=reason,
            passes=passes,
            tolerance=tol,
            left=self.left,
            overlooked=lanczos.chance_of_overlooking(0.75, drawn),  # of σ², for twice the σ
        )
        return replace(result, certificate=result.certificate.with_(judged=judged))

    def _iterate(
        self,
        B: Operator,
        lanczos: BlockLanczos,
        k: int,
        tol: float,
        before: int,
        abandon: Callable[[History], bool],
        count_required: RequiredCount | None,
    ) -> tuple[Triplets, int | None]:
        history: History = []
        goal, checked = tol, 0
        while True:
            lanczos.extend(keep=k + lanczos.block)
            full = lanczos.exhausted
            out_of_passes = B.passes - before >= self.max_passes
            due = lanczos.d >= k and (lanczos.d < checked or lanczos.d >= CHECK * checked)
            if not (due or full or out_of_passes) or lanczos.d < k:
                continue
            checked = lanczos.d
            theta, S, residuals = lanczos.ritz(k)
            judged = (
                None
                if count_required is None
                else count_required(theta, partial(lanczos.vectors, S), B.passes - before)
            )
            worst = _relative(theta[:judged], residuals[:judged], B.epsilon)
            history.append((B.passes - before, worst))
            stop = full or out_of_passes or abandon(history)
            if worst <= goal or stop:
                if theta[-1] <= BLUR * theta[0]:  # AᵀA cannot tell such small values apart, but A can
                    S = lanczos.ritz(min(lanczos.d, k + lanczos.block))[1]
                found = finish(B, B.xp.linalg.qr(lanczos.vectors(S))[0], k)
                if stop or found.residuals[:judged].max(initial=0.0) <= tol:
                    return found, judged
                goal = min(goal, worst) / 4  # the estimate was too kind: go on a little


def _relative(theta: np.ndarray, residuals: np.ndarray, eps: float) -> float:
    """Residuals of AᵀA turned into those of A: ‖AᵀAv − θv‖ / (σ σ₁); 0 where none is asked about."""
    if not len(theta):
        return 0.0
    top = max(float(theta[0]), np.finfo(float).tiny)
    sigma = np.sqrt(np.maximum(theta, eps * top))
    return float(np.max(residuals / sigma) / np.sqrt(top))
