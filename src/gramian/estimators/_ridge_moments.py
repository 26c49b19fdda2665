r"""Moments of rows (x, y) in tiles that stay in cache: X̃ᵀX̃ and X̃ᵀỸ in one pass over the data.

Moments are summed about an origin taken from the rows of each block, so that means of 1e8 cost no digits, and blocks
merge by the update of Chan, Golub and LeVeque, as for PCA.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import parallel
from gramian.sources import memory_budget

__all__ = ["Joint", "block_joint"]

Array = npt.NDArray[Any]
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

TILE_ROWS = 1024  # rank-t updates DᵀD need a long inner dimension
BLAS_COLUMNS = 1000  # from here on BLAS shares one DᵀD between the cores as well as we could, in half the memory
SAMPLE = 1024  # rows averaged for the origin


@dataclass(frozen=True, eq=False)
class Joint:
    """Moments of the rows (x, y) together: those of y among themselves are not needed but for their diagonal."""

    weight: float
    mean: Vector
    low: Vector
    gram: Matrix
    cross: Matrix
    squares: Vector

    def merge(self, other: Joint) -> Joint:
        """Return the moments of both sets of rows."""
        if self.weight == 0.0 or other.weight == 0.0:
            return other if self.weight == 0.0 else self
        total, p = self.weight + other.weight, len(self.gram)
        delta = (other.mean - self.mean) + (other.low - self.low)
        step = delta * (other.weight / total) + self.low
        mean = self.mean + step
        factor, dx, dy = self.weight * other.weight / total, delta[:p], delta[p:]
        return Joint(
            total,
            mean,
            (self.mean - mean) + step,
            self.gram + other.gram + factor * (dx[:, None] * dx[None, :]),
            self.cross + other.cross + factor * (dx[:, None] * dy[None, :]),
            self.squares + other.squares + factor * dy**2,
        )

    def plus(self, other: Joint) -> Joint:
        """Return the sums of both sets of rows about the same origin 0."""
        return replace(
            self,
            weight=self.weight + other.weight,
            gram=self.gram + other.gram,
            cross=self.cross + other.cross,
            squares=self.squares + other.squares,
        )


def block_joint(X: Matrix, Y: Matrix, w: Vector | None, centre: bool, unit: float) -> Joint:
    r"""Moments of one block of rows: d = (unit·x, y) − c with c the mean of some rows, or c = 0.

    A tile is displaced and weighted in a thread's own buffer, then multiplied by itself and by its targets.
    """
    n, p = X.shape
    t, weight = Y.shape[1], float(n) if w is None else float(w.sum())
    if weight == 0.0:
        return Joint(0.0, np.zeros(p + t), np.zeros(p + t), np.zeros((p, p)), np.zeros((p, t)), np.zeros(t))
    c = _origin(X, Y, w, unit) if centre else np.zeros(p + t)
    rows = TILE_ROWS if p < BLAS_COLUMNS else max(TILE_ROWS, memory_budget() // 8 // (8 * p))
    parts = _shared(X, Y, w, c if centre else None, unit, rows)
    s, gram, cross, squares = (sum(q[1:], start=q[0]) for q in zip(*parts, strict=True))
    if not centre:
        return Joint(weight, c, c, gram, cross, squares)
    shift = s / weight
    mean = c + shift
    sx, sy = s[:p], s[p:]
    gram, cross = gram - sx[:, None] * (sx / weight), cross - sx[:, None] * (sy / weight)
    return Joint(weight, mean, (c - mean) + shift, gram, cross, squares - sy * sy / weight)


def _origin(X: Matrix, Y: Matrix, w: Vector | None, unit: float) -> Vector:
    """Mean of up to 1,024 rows with a weight, spread over the block."""
    keep = np.arange(len(X)) if w is None else np.flatnonzero(w)
    keep = keep[:: max(1, len(keep) // SAMPLE)]
    return np.concatenate([np.mean(X[keep].astype(np.float64) * unit, axis=0), np.mean(Y[keep], axis=0)])


def _shared(
    X: Matrix, Y: Matrix, w: Vector | None, c: Vector | None, unit: float, rows: int
) -> list[tuple[Vector, Matrix, Matrix, Vector]]:
    """Sums over tiles, one part for each thread; wide data are left to the threads of BLAS."""
    n, p = X.shape
    t, root = Y.shape[1], None if w is None else np.sqrt(w)
    rows = min(rows, n)
    order = "C" if abs(X.strides[0]) >= abs(X.strides[1]) else "F"

    def work(share: Sequence[int]) -> tuple[Vector, Matrix, Matrix, Vector]:
        D: Matrix = np.empty((rows, p), order=order)  # type: ignore[call-overload]
        s, G, H, q = np.zeros(p + t), np.zeros((p, p)), np.zeros((p, t)), np.zeros(t)
        with np.errstate(over="ignore", invalid="ignore"):
            for i in share:
                part = slice(i, min(i + rows, n))
                r = np.ones(part.stop - i) if root is None else root[part]
                Dx, Dy = _tile(X[part], D[: len(r)], c, unit, p), Y[part] if c is None else Y[part] - c[p:]
                if root is not None:
                    Dx *= r[:, None]
                    Dy = Dy * r[:, None]
                s[:p] += r @ Dx
                s[p:] += r @ Dy
                G += Dx.T @ Dx  # numpy sees the transpose of the same array and calls syrk: half the work
                H += Dx.T @ Dy
                q += np.einsum("ij,ij->j", Dy, Dy)
        return s, G, H, q

    starts = range(0, n, rows)
    return [work(starts)] if p >= BLAS_COLUMNS else parallel(work, starts)


def _tile(X: Matrix, out: Matrix, c: Vector | None, unit: float, p: int) -> Matrix:
    """unit·X − c, written where there is room for it."""
    np.copyto(out, X, casting="unsafe")
    if unit != 1.0:
        out *= unit
    if c is not None:
        out -= c[:p]
    return out
