"""The power method with deflation, as in the lecture notes, renormalised so that it cannot overflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.operators.base import Operator
from gramian.results import Spectrum
from gramian.spectral.rayleigh import (
    chance_of_overlooking,
    check_k,
    default_tolerance,
    finish,
    norms,
    random_block,
    seed_from_product,
    spectrum,
)

Array = Any


@dataclass(frozen=True)
class Power:
    r"""One triplet at a time: v ← AᵀAv/‖AᵀAv‖ from a Gaussian start, then s = ‖Av‖, u = Av/s, and on to A − s u vᵀ.

    The deflated matrix is not formed: keeping v orthogonal to the triplets found is the same thing. The error falls by
    (σ_{i+1}/σ_i)² a pass, so this is for learning, and for one or two well separated components.

    Parameters
    ----------
    tol : float, optional
        Residual ρ to reach; 1e-6 in float64 and 1e-4 in float32 where not given.
    max_passes : int, default=1000
        Give up on a component, with a warning at the end, after this many passes.
    seed : int, default=0
        For the starts.
    left : bool, default=False
        Whether to return the left vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data
    >>> from gramian.spectral import Power
    >>> Power()(Data(np.diag([3.0, 2.0, 1.0])), 2).values.round(6)
    array([3., 2.])
    """

    tol: float | None = None
    max_passes: int = 1000
    seed: int = 0
    left: bool = False

    def __call__(self, A: Operator, k: int, reason: str = "asked for") -> Spectrum:
        """Return the k largest triplets of A."""
        tol, k, before = default_tolerance(A) if self.tol is None else self.tol, check_k(A, k), A.passes
        tiny, counts = float(A.xp.finfo(A.dtype).tiny), list[int]()
        V = A.xp.zeros((A.shape[1], 0), dtype=A.dtype, **A.placement)
        top = 0.0  # ‖A‖², known from the first component on
        with A.session():
            for i in range(k):  # one vector after another, each orthogonal to those before
                v, value = _deflate(A, V, random_block(A, A.shape[1], 1, self.seed + i), tiny), 0.0
                counts.append(0)
                while counts[-1] < self.max_passes:
                    counts[-1] += 1
                    # eq: power-method, power-deflation
                    w = _deflate(A, V, A.normal(v))
                    value = float((v.T @ w)[0, 0])
                    floor = max(A.epsilon * max(top, value), tiny)
                    gap = float(norms(A.xp, w - value * v)[0])
                    if counts[-1] == 1:  # go on from a direction that data cannot hide from, as well as from this one
                        rng = np.random.default_rng(seed_from_product(w, self.seed))
                        fresh = A.asarray(rng.standard_normal((A.shape[1], 1)))
                        fresh, w = _deflate(A, V, fresh, tiny), _deflate(A, V, w, tiny)
                        # on the same side: in one dimension two opposite directions would leave none
                        v = _deflate(A, V, w - fresh if float((w.T @ fresh)[0, 0]) < 0 else w + fresh, tiny)
                        continue
                    if gap <= tol / 2 * np.sqrt(max(value, floor) * max(top, value, floor)):
                        break
                    v = _deflate(A, V, w, tiny)
                top = max(top, value)
                V = A.xp.concat([V, v], axis=1)
            found = finish(A, V, k)
        notes = ("passes per component: " + ", ".join(map(str, counts)),)
        method, passes = "power method with deflation", A.passes - before
        overlooked = min(1.0, sum(chance_of_overlooking(A.shape[1], j - 1, 1, 0.75, krylov=False) for j in counts))
        result = spectrum(
            A,
            found,
            method=method,
            reason=reason,
            passes=passes,
            tolerance=tol,
            left=self.left,
            notes=notes,
            overlooked=overlooked,
        )
        result.certificate.warn_unless_converged(
            f"Allow more passes (now {self.max_passes} a component) or use the krylov solver.",
        )
        return result


def _deflate(A: Operator, V: Array, w: Array, least: float | None = None) -> Array:
    """Part of w outside the triplets found, taken out twice for rounding; of length 1 where ``least`` is given."""
    w = w - V @ (V.T @ w)
    w = w - V @ (V.T @ w)
    return w if least is None else w / max(float(norms(A.xp, w)[0]), least)
