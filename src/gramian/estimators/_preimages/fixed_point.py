"""Mika's fixed point for the Gaussian kernel: z ← Σ γ_i k(z, x_i) x_i / Σ γ_i k(z, x_i).

With γ_i ≥ 0 this is a mean shift and climbs steadily. Projections have coefficients of both signs: then the denominator
may vanish, which throws z far away, or change its sign, which turns the ascent into a descent. A row that comes there
is stopped and keeps the best point it has seen. (Mika, Schölkopf, Smola, Müller, Scholz and Rätsch, Kernel PCA and
de-noising in feature spaces, NIPS 1998.)
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gramian.estimators._preimages.landscape import TINY, InnerLandscape, Landscape, Slope
from gramian.estimators._preimages.result import Found

__all__ = ["fixed_point"]

Matrix = npt.NDArray[np.float64]

FLOOR = 1e-6  # of W relative to its terms: below it their signs, not their sizes, decide where z goes


def fixed_point(land: Landscape, G: Matrix, start: Matrix, *, tol: float, max_iterations: int) -> Found:
    """Iterate every row until its step is at most ``tol`` units long; all in the landscape's coordinates."""
    refuse_repelling(land)
    Y, best = start.copy(), start.copy()
    lowest = np.full(len(Y), np.inf)
    converged, iterations = np.zeros(len(Y), dtype=bool), np.zeros(len(Y), dtype=np.intp)
    live = np.arange(len(Y))
    for _ in range(max_iterations):
        if not len(live):
            break
        at = land.slope(Y[live], G[live])
        iterations[live] += 1
        better = at.value < lowest[live]
        best[live[better]], lowest[live[better]] = Y[live[better]], at.value[better]
        sound = _sound(at)
        live, at = live[sound], at[sound]
        new = at.pull / at.weight[:, None]
        near = np.linalg.norm(new - Y[live], axis=1) <= tol * land.unit
        Y[live], converged[live[near]] = new, near[near]
        live = live[~near]
    best[converged] = Y[converged]
    trouble = "the sum Σγk(z, x) in the denominator cancelled, vanished or changed sign, or the steps did not shrink"
    return Found(best, converged, iterations, trouble)


def _sound(at: Slope) -> npt.NDArray[np.bool_]:
    """Whether the denominator is positive, and more than what cancellation leaves."""
    return np.asarray((at.weight > FLOOR * at.bulk) & (at.bulk > TINY))


def refuse_repelling(land: Landscape) -> None:
    """Refuse powers: with P = φ(x) and z = tx the iteration is t ← t^(1−q), which moves away from 1 for q ≥ 3."""
    if isinstance(land, InnerLandscape) and land.degree > 1:
        raise ValueError(
            f"method='fixed-point' does not converge for a polynomial kernel of degree {land.degree}: its fixed points "
            "repel. Use method='regularised', which shortens the same steps until the distance falls."
        )
