r"""Every row left out in turn for every λ, where the data are tensors: block by block on their device.

The same sums as :mod:`gramian.estimators._ridge_path` makes in tiles on the CPU, of which only totals leave the device.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.estimators._ridge_factor import Decomposition
from gramian.estimators._ridge_problem import RidgeProblem, host
from gramian.estimators._scores import beside

__all__ = ["ALONE", "left_out_there"]

Array = Any
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ALONE = 2.0**-44  # of 1 − h: what rounding can make of a row that determines its own fit
NUMBERS = 2**24  # of the predictions of a part of a block: 128 MiB


def left_out_there(
    problem: RidgeProblem, found: Decomposition, lam: Vector, keep: bool
) -> tuple[Matrix, Matrix, Matrix | None]:
    """Mean squared error of rows left out and residual sum of squares, (L, t) both, and the errors if asked for."""
    source, xp = problem.source, problem.source.xp
    filter_, (n, t), L = found.filter(problem), problem.Y.shape, len(lam)
    inverse = beside(source, filter_.inverse(lam))
    C = filter_.factors(lam)[:, :, None] * found.projections[:, None, :]
    C = beside(source, C.reshape(len(C), L * t))
    weights = problem.weights
    share = 1.0 / weights.mass if problem.intercept else 0.0
    errors = np.empty((n, L, t)) if keep else None
    loo, rss = beside(source, np.zeros((L, t))), beside(source, np.zeros((L, t)))
    for start, stop, Z in _parts(problem, found, L * t):
        w = np.ones(stop - start) if weights.values is None else weights.values[start:stop]
        v = beside(source, w)[:, None, None]
        R = beside(source, problem.Y[start:stop, None, :]) - xp.reshape(Z @ C, (stop - start, L, t))
        rss += xp.sum(v * R**2, axis=0)
        H = (Z**2) @ inverse + share
        left = 1.0 - (H if weights.counts else H * v[:, :, 0])
        alone = left <= ALONE
        E = R / xp.where(alone, xp.ones_like(left), left)[:, :, None]
        E = xp.where(alone[:, :, None], xp.full_like(E, np.inf), E)
        if errors is not None:
            errors[start:stop] = np.where(w[:, None, None] > 0, host(E), np.nan)
        loo += xp.sum(v * xp.where(v > 0, E, xp.zeros_like(E)) ** 2, axis=0)
    return host(loo) / weights.count, host(rss), errors


def _parts(problem: RidgeProblem, found: Decomposition, width: int) -> Iterator[tuple[int, int, Array]]:
    """Rows z = (x − μ)V, so few at a time that all their predictions fit."""
    step = max(1, NUMBERS // max(1, width))
    for start, stop, Z in problem.plain.rows(beside(problem.source, found.basis)):
        for i in range(start, stop, step):
            last = min(i + step, stop)
            yield i, last, Z[i - start : last - start, :]
