r"""Rows of which any part is observed: the exact marginal likelihood, and what the rest may be expected to be.

Of a row whose cells o are observed and u are not, component k says

.. math:: x_o\sim N(\mu_o,\Sigma_{oo}),\qquad
    x_u|x_o\sim N\bigl(\mu_u+B(x_o-\mu_o),\ \Sigma_{uu}-B\Sigma_{ou}\bigr),\quad B=\Sigma_{uo}\Sigma_{oo}^{-1}

so the first gives responsibilities and the second the sums that unobserved cells would have contributed (Ghahramani and
Jordan 1994). Rows with the same cells observed are worked on together; diagonal covariances need no grouping.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import logsumexp

from gramian.compute.mixture import Sums

if TYPE_CHECKING:
    from gramian.mixture.parameters import Mixture

__all__ = ["expectation", "joint_log_density", "regression"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]


def joint_log_density(X: Array, mixture: Mixture) -> Array:
    """ln π_k N(x_o; μ_o, Σ_oo), of shape (n, K).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import Mixture
    >>> one = Mixture.of([1.0], [[0.0, 9.0]], [np.eye(2)])
    >>> one.log_density([[0.0, np.nan]]).round(4)
    array([-0.9189])
    """
    D = np.asarray(X, dtype=np.float64) - mixture.origin
    if mixture.diagonal:
        return _diagonal_joint(D, mixture)
    out = np.empty((len(D), mixture.n_components))
    for rows, seen in _patterns(D):
        for k in range(mixture.n_components):
            out[rows, k] = _Part(mixture, k, seen).log_density(D[np.ix_(rows, seen)])
    return out + _log_weights(mixture)


def expectation(X: Array, w: Array | None, mixture: Mixture) -> Sums:
    """The sums of one expectation step, about the centres; unobserved cells count as expected."""
    D = np.asarray(X, dtype=np.float64) - mixture.origin
    each = np.ones(len(D)) if w is None else w
    if mixture.diagonal:
        return _diagonal(D, each, mixture)
    k, d = mixture.centres.shape
    N, first, second, height = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d)), 0.0
    for rows, seen in _patterns(D):
        parts = [_Part(mixture, j, seen) for j in range(k)]
        joint = np.stack([part.log_density(D[np.ix_(rows, seen)]) for part in parts], axis=1) + _log_weights(mixture)
        total = logsumexp(joint, axis=1)
        R = np.exp(joint - total[:, None]) * each[rows, None]
        height += float(each[rows] @ total)
        N += R.sum(axis=0)
        for j, part in enumerate(parts):
            E = part.completed(D[np.ix_(rows, seen)])
            first[j] += R[:, j] @ E
            second[j] += (R[:, j, None] * E).T @ E + R[:, j].sum() * part.leftover
    return Sums(N, first, second, height)


def regression(values: Array, mixture: Mixture, given: Index, rest: Index) -> tuple[Array, Array, Array]:
    """Weights (n, K), centres (n, K, u) and covariances (K, u, u) of some columns where others have given values."""
    k, d = mixture.centres.shape
    X = np.full((len(values), d), np.nan)
    X[:, given] = values
    joint = joint_log_density(X, mixture)
    shares = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    if mixture.diagonal:
        centres = np.broadcast_to(mixture.centres[:, rest], (len(values), k, len(rest)))
        return shares, centres, mixture.covariances[:, rest]
    D = values - mixture.origin[given]
    parts = [_Part(mixture, j, given) for j in range(k)]
    centres = np.stack([part.completed(D)[:, rest] + mixture.centres[j, rest] for j, part in enumerate(parts)], axis=1)
    return shares, centres, np.stack([part.leftover[np.ix_(rest, rest)] for part in parts])


class _Part:
    """One component, seen through some of its columns."""

    def __init__(self, mixture: Mixture, k: int, seen: Index) -> None:
        S, s = mixture.matrices[k], len(seen)
        hidden = np.setdiff1d(np.arange(len(S)), seen)
        order = np.concatenate([seen, hidden])
        root = np.linalg.cholesky(S[np.ix_(order, order)])  # of which [L 0; C H]: nothing is subtracted to get H
        self.centre, self.seen, self.L = mixture.centres[k, seen], seen, root[:s, :s]
        self.gain = np.empty((s, len(S)))  # L⁻¹Σ_o·: regression of every column on those seen
        self.gain[:, order] = root[:, :s].T
        self.leftover = np.zeros_like(S)
        self.leftover[np.ix_(hidden, hidden)] = root[s:, s:] @ root[s:, s:].T

    def whiten(self, D: Array) -> Array:
        """L⁻¹(x_o − μ_o), by row."""
        return np.asarray(solve_triangular(self.L, (D - self.centre).T, lower=True, check_finite=False).T)

    def log_density(self, D: Array) -> Array:
        constant = len(self.seen) * math.log(2 * math.pi) + 2 * float(np.sum(np.log(np.diag(self.L))))
        return np.asarray(-0.5 * (constant + np.sum(self.whiten(D) ** 2, axis=1)))

    def completed(self, D: Array) -> Array:
        """E(x | x_o) − μ; cells that are seen stay as they are."""
        E = self.whiten(D) @ self.gain
        E[:, self.seen] = D - self.centre
        return np.asarray(E)


def _patterns(D: Array) -> Iterator[tuple[Index, Index]]:
    """Rows that have the same cells observed, and those cells."""
    if len(D) == 0:
        return
    seen = ~np.isnan(D)
    kinds, which = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(which.ravel(), minlength=len(kinds)))[:-1]):
        yield rows, np.flatnonzero(seen[rows[0]])


def _log_weights(mixture: Mixture) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mixture.weights))


def _diagonal_joint(D: Array, mixture: Mixture) -> Array:
    seen = ~np.isnan(D)
    logs = seen @ np.log(2 * math.pi * mixture.covariances).T
    squares = [np.nansum(((D - m) * r) ** 2, axis=1) for m, r in zip(mixture.centres, mixture.roots, strict=True)]
    return np.asarray(_log_weights(mixture) - 0.5 * (logs + np.stack(squares, axis=1)))


def _diagonal(D: Array, w: Array, mixture: Mixture) -> Sums:
    joint = _diagonal_joint(D, mixture)
    total = logsumexp(joint, axis=1)
    R = np.exp(joint - total[:, None]) * w[:, None]
    first, second = np.empty_like(mixture.centres), np.empty_like(mixture.centres)
    hidden = R.T @ np.isnan(D)  # an unobserved cell has the component's own mean and variance
    for k, m in enumerate(mixture.centres):
        E = np.nan_to_num(D - m, nan=0.0)
        first[k], second[k] = R[:, k] @ E, R[:, k] @ E**2 + hidden[k] * mixture.covariances[k]
    return Sums(R.sum(axis=0), first, second, float(w @ total))
