r"""Common axes: the models EVE and VVE, whose components differ in their spread along the same orthogonal directions.

With :math:`G_k=D^TT_kD` and variances v_kj along the axes, turning the axes j and i by an angle θ changes Q by
:math:`-\tfrac12(\alpha\cos2\theta+\beta\sin2\theta)` plus a constant, with

.. math:: \alpha=\tfrac12\sum_k(1/v_{kj}-1/v_{ki})(G_{k,jj}-G_{k,ii}),\qquad \beta=\sum_k(1/v_{kj}-1/v_{ki})G_{k,ji},

so the best angle is known. Variances follow the turned axes at once, and nothing lowers Q.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["axes_of", "common_axes"]

Array = npt.NDArray[np.float64]

SWEEPS = 200
STILL = 1e-11  # radians: a sweep that turns no axis by more ends the iterations


def common_axes(model: str, N: Array, T: Array, current: Array | None) -> Array:
    """Covariances DΔ_kDᵀ that maximise Q, from the axes of the current ones or from those of the scatter.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture._axes import common_axes
    >>> T = np.array([np.diag([8.0, 2.0]), np.diag([2.0, 2.0])])
    >>> common_axes("VVE", np.array([2.0, 1.0]), T, None).round(12)[0]
    array([[4., 0.],
           [0., 1.]])
    """
    D, G = _start(model, N, T, current)
    d = len(D)
    for _ in range(SWEEPS):
        most = 0.0
        for j in range(d):
            for i in range(j + 1, d):
                most = max(most, _turn(D, G, _spread(model, N, G), j, i))
        if most < STILL:
            break
    v = _spread(model, N, D.T @ T @ D)
    return np.asarray((D * v[:, None, :]) @ D.T)


def axes_of(covariances: Array, *, common: bool) -> Array:
    """Eigenvectors of every component, or those that all share, of shape (K, d, d)."""
    if not common:
        return np.asarray(np.linalg.eigh(covariances)[1])
    return np.repeat(np.linalg.eigh(_blend(covariances))[1][None], len(covariances), axis=0)


def _start(model: str, N: Array, T: Array, current: Array | None) -> tuple[Array, Array]:
    """The axes that fit best among those to be had cheaply."""
    sums = [T.sum(axis=0), (T / N[:, None, None]).sum(axis=0)] if current is None else [_blend(current)]
    if current is None:
        sums += list(T)
    starts = [np.linalg.eigh(S)[1] for S in sums]
    rotated = [D.T @ T @ D for D in starts]
    best = min(range(len(starts)), key=lambda i: float(N @ np.sum(np.log(_spread(model, N, rotated[i])), axis=1)))
    return starts[best], rotated[best]


def _blend(covariances: Array) -> Array:
    """A sum with uneven weights: where covariances share axes, its eigenvalues are apart and its axes theirs."""
    k = len(covariances)
    uneven = 1.0 + np.modf(np.arange(1, k + 1) * (math.sqrt(5) - 1) / 2)[0]
    sizes = np.trace(covariances, axis1=1, axis2=2)
    return np.asarray(np.sum((uneven / sizes)[:, None, None] * covariances, axis=0))


def _spread(model: str, N: Array, G: Array) -> Array:
    """The best variances along the axes: diag(G)/N, or with one volume for all."""
    g = np.maximum(np.diagonal(G, axis1=1, axis2=2), np.finfo(float).tiny)
    if model == "VVE":
        return np.asarray(g / N[:, None])
    sizes = np.exp(np.mean(np.log(g), axis=1))
    return np.asarray(g * (sizes.sum() / N.sum() / sizes)[:, None])


def _turn(D: Array, G: Array, v: Array, j: int, i: int) -> float:
    """Turn axes j and i by the best angle, in place; return it, up to a quarter turn, which only renames them."""
    change = 1 / v[:, j] - 1 / v[:, i]
    alpha = 0.5 * float(change @ (G[:, j, j] - G[:, i, i]))
    beta = float(change @ G[:, j, i])
    if beta == 0.0 and alpha <= 0.0:
        return 0.0
    angle = 0.5 * math.atan2(-beta, -alpha)
    c, s = math.cos(angle), math.sin(angle)
    turn = np.array([[c, -s], [s, c]])
    pair = [j, i]
    D[:, pair] = D[:, pair] @ turn
    G[:, :, pair] = G[:, :, pair] @ turn
    G[:, pair, :] = turn.T @ G[:, pair, :]
    return abs(math.remainder(angle, math.pi / 2))
