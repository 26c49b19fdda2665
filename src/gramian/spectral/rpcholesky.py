r"""Randomly pivoted Cholesky: a low-rank factor of a positive semidefinite matrix from a few of its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

__all__ = ["PivotedCholesky", "rp_cholesky"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

ROUNDING = 100  # a pivot below this many ε of its entry of the diagonal is rounding
PROMISED = 2e-12  # ... and one below this part of it too: no better are values of kernels in float64, of rows far out


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    """K̂ = FFᵀ, which agrees with K in the columns of the landmarks and lies below it: K − K̂ ⪰ 0.

    Attributes
    ----------
    indices : ndarray of shape (k,)
        The landmarks, in the order they were chosen; fewer than asked for where K has a lower rank.
    factor : ndarray of shape (n, k)
        F; its rows at the landmarks are a lower triangular matrix.
    trace : float
        tr(K − K̂), which bounds the error of every eigenvalue: 0 ≤ λ_i(K) − λ_i(K̂) ≤ tr(K − K̂).
    total : float
        tr K.
    columns : int
        How many whole columns of K were evaluated.
    """

    indices: Indices
    factor: Matrix
    trace: float
    total: float
    columns: int

    def __repr__(self) -> str:
        share = self.trace / self.total if self.total > 0 else 0.0
        return f"PivotedCholesky({len(self.indices)} landmarks of {len(self.factor)}, {share:.3g} of the trace left)"

    def table(self) -> dict[str, Any]:
        """Return the landmarks in order, and the share of the trace that each took."""
        taken = np.sum(self.factor**2, axis=0) / (self.total if self.total > 0 else 1.0)
        return {"landmark": self.indices, "share": taken}


def rp_cholesky(
    diagonal: Vector,
    columns: Callable[..., Any],
    k: int,
    *,
    block: int | None = None,
    seed: int = 0,
    start: PivotedCholesky | None = None,
) -> PivotedCholesky:
    r"""Factor K ≈ FFᵀ from at most k columns, each drawn in proportion to what is left of its entry of the diagonal.

    In expectation the trace left is within a factor 1 + ε of the best of rank r once k ≥ r/ε + r ln(1/εη), where η is
    the best relative error (Chen, Epperly, Tropp and Webber, 2022). Pivots are proposed a block at a time and
    accepted with the probability that makes them the same as if drawn one by one (Epperly, Tropp and Webber, 2024):
    what is left of the diagonal entry after those accepted before it, over what it was when the block was proposed.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        k(x, x).
    columns : callable
        ``columns(indices)`` gives the columns of K as an (n, b) array, ``columns(indices, rows)`` some rows of them:
        :meth:`gramian.operators.KernelOperator.columns`.
    k : int
        Most landmarks.
    block : int, optional
        Proposals at a time: k/10, from 1 to 128, where not given.
    seed : int, default=0
        For the draws.
    start : PivotedCholesky, optional
        A factor of the same matrix to continue: its landmarks stay, and the next ones are drawn as if they had been
        drawn in one go (by other random numbers, so they are not the same ones).

    Returns
    -------
    PivotedCholesky
        Landmarks, factor, and the trace left.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.spectral.rpcholesky import rp_cholesky
    >>> B = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    >>> K = B @ B.T
    >>> rp_cholesky(np.diagonal(K), lambda j, i=slice(None): K[i][:, j], 3)
    PivotedCholesky(2 landmarks of 3, 0 of the trace left)
    """
    own = np.asarray(diagonal, dtype=np.float64)
    _check(own, k)
    block = max(1, min(128, k // 10)) if block is None else block
    if block < 1:
        raise ValueError(f"block must be a positive number of proposals, got {block!r}.")
    noise = _noise(own, columns)
    F, chosen = _begun(len(own), k, start)
    rng = np.random.default_rng([seed, len(chosen)] if len(chosen) else seed)
    left = _left(own - np.sum(F[:, : len(chosen)] ** 2, axis=1), chosen, noise)
    while len(chosen) < k and np.any(left > 0):
        proposals = rng.choice(len(left), size=block, p=left / left.sum())
        accepted, L = _accepted(proposals, left, F[:, : len(chosen)], columns, rng, noise)
        accepted, L = accepted[: k - len(chosen)], L[: k - len(chosen), : k - len(chosen)]
        if not len(accepted):  # the first proposal is always accepted, unless what is left of it is rounding
            left[proposals[0]] = 0.0
            continue
        _extend(F, chosen, accepted, L, columns)
        chosen = np.concatenate([chosen, accepted])
        left = _left(left - np.sum(F[:, len(chosen) - len(accepted) : len(chosen)] ** 2, axis=1), chosen, noise)
    factor = np.ascontiguousarray(F[:, : len(chosen)])
    return PivotedCholesky(chosen, factor, float(left.sum()), float(own.sum()), len(chosen))


def _begun(n: int, k: int, start: PivotedCholesky | None) -> tuple[Matrix, Indices]:
    """Room for k columns of F, with those of an earlier factor in their place."""
    F = np.zeros((n, k))
    if start is None:
        return F, np.empty(0, dtype=np.intp)
    if start.factor.shape[0] != n:
        raise ValueError(f"start is a factor of {start.factor.shape[0]} rows, and the diagonal has {n}.")
    done = min(k, start.factor.shape[1])
    F[:, :done] = start.factor[:, :done]
    return F, start.indices[:done].copy()


def _left(rest: Vector, chosen: Indices, noise: Vector) -> Vector:
    """What is left of the diagonal: 0 at landmarks and where it is rounding."""
    if np.any(rest < -50 * noise.max(initial=0.0)):
        worst = int(np.argmin(rest))
        raise ValueError(f"Row {worst} is longer than its own length: the matrix is not positive semidefinite.")
    rest[rest <= noise] = 0.0
    rest[chosen] = 0.0
    return rest


def _check(diagonal: Vector, k: int) -> None:
    if diagonal.ndim != 1 or not np.all(np.isfinite(diagonal)):
        raise ValueError("The diagonal must be a vector of finite numbers.")
    if len(diagonal) and diagonal.min() < 0:
        worst = int(np.argmin(diagonal))
        raise ValueError(
            f"Entry {worst} of the diagonal is {diagonal[worst]:.4g}: the matrix is not positive semidefinite."
        )
    if not 1 <= k <= len(diagonal):
        raise ValueError(f"k must be between 1 and the {len(diagonal)} rows, got {k}.")


def _noise(diagonal: Vector, columns: Callable[..., Any]) -> Vector:
    """What rounding leaves of an entry of the diagonal, in the dtype that columns come in."""
    first = np.zeros(1, dtype=np.intp)
    dtype = np.result_type(np.asarray(columns(first, first)).dtype, np.float32)
    return np.asarray(max(ROUNDING * float(np.finfo(dtype).eps), PROMISED) * diagonal)


def _accepted(
    proposals: Indices, left: Vector, F: Matrix, columns: Callable[..., Any], rng: np.random.Generator, noise: Vector
) -> tuple[Indices, Matrix]:
    """Go through the proposals as a Cholesky factorisation of their block does; keep those the dice allow."""
    H = np.asarray(columns(proposals, proposals), dtype=np.float64) - F[proposals] @ F[proposals].T
    before, dice = left[proposals], rng.random(len(proposals))
    keep: list[int] = []
    L = np.zeros((len(proposals), len(proposals)))  # rows: proposals, columns: those accepted
    for i in range(len(proposals)):
        rest = H[i, i] - L[i] @ L[i]
        if rest <= noise[proposals[i]] or dice[i] * before[i] >= rest:
            continue
        L[:, len(keep)] = (H[:, i] - L @ L[i]) / np.sqrt(rest)
        keep.append(i)
    return proposals[keep], L[keep][:, : len(keep)]


def _extend(F: Matrix, chosen: Indices, accepted: Indices, L: Matrix, columns: Callable[..., Any]) -> None:
    """Write the next columns of F: (K_{:,S} − F F_Sᵀ) L⁻ᵀ, which are 0 at earlier landmarks and L at S."""
    done = len(chosen)
    G = np.asarray(columns(accepted), dtype=np.float64) - F[:, :done] @ F[accepted, :done].T
    new = solve_triangular(L, G.T, lower=True, check_finite=False).T
    new[chosen], new[accepted] = 0.0, np.tril(L)
    F[:, done : done + len(accepted)] = new
