r"""Common axes: the models EVE and VVE, whose components differ in their spread along the same orthogonal directions.

With :math:`G_k=D^TT_kD` and variances v_kj along the axes, turning the axes j and i by an angle θ changes Q by
:math:`-\tfrac12(\alpha\cos2\theta+\beta\sin2\theta)` plus a constant, with

.. math:: \alpha=\tfrac12\sum_k(1/v_{kj}-1/v_{ki})(G_{k,jj}-G_{k,ii}),\qquad \beta=\sum_k(1/v_{kj}-1/v_{ki})G_{k,ji},

so the best angle is known. Disjoint pairs do not feel each other: axes are turned in d/2 pairs at a time, d − 1 times
in a sweep, and variances follow. Nothing lowers Q. From the axes of the current covariances a few sweeps do, as the
next maximisation step goes on from there.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

__all__ = ["axes_of", "common_axes"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

SWEEPS = 200
STILL = 1e-11  # radians: a sweep that turns no axis by more ends the iterations
SETTLED = 0.03  # of the first sweep's turn: from current axes, a sweep that turns by less is the last
SHARED = 1e-6  # of the variances: covariances off their common axes by less have them in common


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
    current = None if current is None or current.ndim == 2 else current
    D, G = _start(model, N, T, current)
    before, rounds, least, first = D, _rounds(len(D)), STILL, None
    for _ in range(SWEEPS):
        most = 0.0
        for pairs in rounds:
            D, G, turned = _turn(D, G, _spread(model, N, G), *pairs)
            most = max(most, turned)
        if first is None and current is not None:
            first = most
            least = max(STILL, SETTLED * first)
        if most < least:
            break
    v = _spread(model, N, D.T @ T @ D)
    found = np.asarray((D * v[:, None, :]) @ D.T)
    return current if current is not None and _falls(current, before, D, v, N, T) else found


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


def _rounds(d: int) -> list[tuple[Index, Index]]:
    """Every pair of axes once, in rounds of disjoint pairs: a round-robin tournament, with a bye where d is odd."""
    m = d + d % 2
    ring, out = list(range(1, m)), []
    for turn in range(m - 1):
        order = [0, *ring[turn:], *ring[:turn]]
        pairs = [(order[i], order[m - 1 - i]) for i in range(m // 2)]
        kept = [(min(p), max(p)) for p in pairs if max(p) < d]
        out.append((np.array([p[0] for p in kept]), np.array([p[1] for p in kept])))
    return [pairs for pairs in out if len(pairs[0])]


def _turn(D: Array, G: Array, v: Array, j: Index, i: Index) -> tuple[Array, Array, float]:
    """Turn axes j and i of every pair by their best angles; return the largest, up to quarters, which only rename."""
    change = 1 / v[:, j] - 1 / v[:, i]
    alpha = 0.5 * np.sum(change * (G[:, j, j] - G[:, i, i]), axis=0)
    beta = np.sum(change * G[:, j, i], axis=0)
    angle = np.where((beta == 0.0) & (alpha <= 0.0), 0.0, 0.5 * np.arctan2(-beta, -alpha))
    if not angle.any():
        return D, G, 0.0
    R = np.eye(len(D))
    R[j, j] = R[i, i] = np.cos(angle)
    R[i, j] = np.sin(angle)
    R[j, i] = -R[i, j]
    left = angle - np.round(angle / (0.5 * math.pi)) * 0.5 * math.pi
    return D @ R, R.T @ G @ R, float(np.max(np.abs(left)))


def _falls(current: Array, axes: Array, D: Array, v: Array, N: Array, T: Array) -> bool:
    """Whether covariances that have axes in common, if rounding lost some of them, were better than those found."""
    inside = axes.T @ current @ axes
    size = np.sqrt(np.diagonal(inside, axis1=1, axis2=2))
    if np.max(np.abs(inside / (size[:, :, None] * size[:, None, :]) - np.eye(len(D)))) > SHARED:
        return False
    logs, traces = np.linalg.slogdet(current)[1], np.trace(np.linalg.solve(current, T), axis1=1, axis2=2)
    before = float(np.sum(N * logs + traces))
    after = float(N @ np.sum(np.log(v), axis=1) + np.sum(np.diagonal(D.T @ T @ D, axis1=1, axis2=2) / v))
    return before < after - 1e-12 * abs(after)
