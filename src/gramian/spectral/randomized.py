"""Randomized subspace iteration, stopped by residuals rather than after a fixed count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.compute.devices import to_numpy
from gramian.operators.base import Operator
from gramian.results import Spectrum
from gramian.spectral.rayleigh import (
    FRESH,
    chance_of_overlooking,
    check_k,
    default_tolerance,
    finish,
    norms,
    random_block,
    seed_from_product,
    spectrum,
)


@dataclass(frozen=True)
class Randomized:
    r"""Q ← orth(AᵀA Q) from a Gaussian start, until every wanted triplet's residual is below the tolerance.

    As ``sklearn.utils.extmath.randomized_svd``, which stops after a fixed number of iterations whether or not they
    were enough. Each iteration costs one pass and re-orthonormalises. The error of component i falls by
    (σ_{b+1}/σ_i)² a pass, b = k + oversampling: on slowly falling spectra :class:`Krylov` needs far fewer passes.

    Parameters
    ----------
    tol : float, optional
        Residual ρ to reach; 1e-6 in float64 and 1e-4 in float32 where not given.
    oversampling : int, default=10
        Vectors beyond k.
    max_passes : int, default=500
        Give up, with a warning, after this many iterations.
    seed : int, default=0
        For the start.
    left : bool, default=False
        Whether to return the left vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data
    >>> from gramian.spectral import Randomized
    >>> A = Data(np.diag(2.0 ** -np.arange(30)))
    >>> Randomized()(A, 3).values.round(6)
    array([1.  , 0.5 , 0.25])
    """

    tol: float | None = None
    oversampling: int = 10
    max_passes: int = 500
    seed: int = 0
    left: bool = False

    def __call__(self, A: Operator, k: int, reason: str = "asked for") -> Spectrum:
        """Return the k largest triplets of A."""
        tol, k = default_tolerance(A) if self.tol is None else self.tol, check_k(A, k)
        before, flip = A.passes, A.shape[0] < A.shape[1] and A.resident
        B = A.T if flip else A
        m = B.shape[1]
        with A.session():
            V, steps = B.xp.linalg.qr(random_block(B, m, min(m, k + self.oversampling), self.seed))[0], 0
            for steps in range(self.max_passes):
                W = B.normal(V)
                H = to_numpy(V.T @ W, float)
                theta, S = np.linalg.eigh((H + H.T) / 2)
                theta, S = theta[::-1], B.asarray(S[:, ::-1].copy())
                R = W @ S - (V @ S) * B.asarray(theta)[None, :]
                top = max(float(theta[0]), np.finfo(float).tiny)
                sigma = np.sqrt(np.maximum(theta[:k], B.epsilon * top))
                worst = np.max(norms(B.xp, R)[:k] / sigma) / np.sqrt(top)
                if worst <= tol / 2 and steps:  # half: the finishing step sees the residual once more, on A itself
                    V = V @ S
                    break
                if not steps:  # from here on the last directions are some that data cannot hide from
                    fresh = np.random.default_rng(seed_from_product(W, self.seed)).standard_normal((m, FRESH))
                    W = B.xp.concat([W[:, : max(k, W.shape[1] - FRESH)], B.asarray(fresh)], axis=1)
                    W = W / B.asarray(np.maximum(norms(B.xp, W), np.finfo(np.float32).tiny))[None, :]
                V = B.xp.linalg.qr(W)[0]
            found = finish(B, V, k)
        found = found.transposed if flip else found
        method = f"randomized subspace iteration ({V.shape[1]} vectors)"
        passes = A.passes - before
        overlooked = None if V.shape[1] == m else chance_of_overlooking(m, steps, V.shape[1], 0.75, krylov=False)
        result = spectrum(
            A, found, method=method, reason=reason, passes=passes, tolerance=tol, left=self.left, overlooked=overlooked
        )
        result.certificate.warn_unless_converged(
            f"Allow more iterations (now {self.max_passes}), or use the krylov solver, which needs fewer passes.",
        )
        return result
