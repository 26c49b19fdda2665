r"""A fixed point that cannot collapse: distance in feature space and a penalty, lowered at every step.

.. math:: J(z) = \|\varphi(z)-P\|^2 + \lambda\|z-z_0\|^2,\qquad
    z \leftarrow z - \frac{Wz - \sum\omega_ix_i + \lambda(z-z_0)}{c}

With c = W + λ this is the fixed point of Abrahamsen and Hansen (Input space regularization stabilizes pre-images for
kernel PCA de-noising, MLSP 2009), and with λ = 0 Mika's. Both may overshoot where coefficients have different signs.
Here c starts there and is doubled until J falls by ½c‖step‖² or more. Where J is below its first value its gradient is
Lipschitz, so some c always suffices: J never rises, whatever the signs, and the gradient tends to 0. Where Mika's
iteration contracts well, c is its own and the steps are the same. As λ > 0, no row can run away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.estimators._preimages.landscape import TINY, Landscape, Slope
from gramian.estimators._preimages.result import Found

__all__ = ["Penalised", "regularised"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]

LEAST = 0.01  # W counts as at least this part of Σ|ω|: where it has cancelled it is no curvature
ENOUGH = 0.5  # part of c‖step‖² by which J must fall
ROUNDING = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Penalised:
    """J as a function of the points, for points P with coefficients G, origins z₀ and strengths λ."""

    land: Landscape
    G: Matrix
    origin: Matrix
    strength: Vector

    def slope(self, Y: Matrix, rows: Rows) -> Slope:
        """J, up to ‖P‖², and its gradient: the penalty adds λ to W and λz₀ to Σ ωx."""
        at, z, strength = self.land.slope(Y, self.G[rows]), self.origin[rows], self.strength[rows]
        value = at.value + strength * np.sum((Y - z) ** 2, axis=1)
        return Slope(value, at.pull + strength[:, None] * z, at.weight + strength, at.bulk + strength, at.size)


def regularised(land: Landscape, G: Matrix, start: Matrix, *, penalty: float, tol: float, max_iterations: int) -> Found:
    """Minimise J for every row from z₀ = ``start``, in the landscape's coordinates.

    λ is ``penalty`` times the curvature W at z₀, so that it has the same meaning for every kernel and point.
    """
    at = land.slope(start, G)
    problem = Penalised(land, G, start, penalty * _curvature(at))
    # where all weights vanish J is flat, and no step says where P is
    live = np.flatnonzero(at.bulk > TINY)
    Y, at = start.copy(), problem.slope(start, np.arange(len(start)))
    c = _curvature(at)
    converged, iterations = np.zeros(len(Y), dtype=bool), np.ones(len(Y), dtype=np.intp)
    for _ in range(max_iterations):
        near = np.linalg.norm(_gradient(at[live], Y[live]), axis=1) <= tol * land.unit * _curvature(at[live])
        converged[live[near]] = True
        live = live[~near]
        if not len(live):
            break
        new = Y[live] - _gradient(at[live], Y[live]) / c[live, None]
        there = problem.slope(new, live)
        fell = _fell(at[live], Y[live], there, new, c[live])
        moved = live[fell]
        Y[moved] = new[fell]
        at.put(moved, there[fell])
        c[live[~fell]] *= 2.0
        c[moved] = np.maximum(0.5 * c[moved], _curvature(at[moved]))
        iterations[live] += 1
    return Found(Y, converged, iterations, "the steps were still too long, or the kernel vanished at the start")


def _fell(old: Slope, Y: Matrix, new: Slope, Z: Matrix, c: Vector) -> Flags:
    """Whether J fell enough; where its change is lost in rounding, whether the gradient became shorter."""
    before, after = _gradient(old, Y), _gradient(new, Z)
    enough = new.value <= old.value - ENOUGH * np.sum(before**2, axis=1) / c
    lost = np.abs(new.value - old.value) <= ROUNDING * new.size
    return np.asarray(enough | (lost & (np.linalg.norm(after, axis=1) < np.linalg.norm(before, axis=1))))


def _gradient(at: Slope, Y: Matrix) -> Matrix:
    """½∇J."""
    return np.asarray(at.weight[:, None] * Y - at.pull)


def _curvature(at: Slope) -> Vector:
    """W, where it is a curvature."""
    return np.maximum(at.weight, LEAST * at.bulk)
