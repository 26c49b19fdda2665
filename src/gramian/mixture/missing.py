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
from scipy.special import logsumexp, softmax

from gramian.compute import mixture as loops

if TYPE_CHECKING:
    from gramian.mixture.parameters import Mixture

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
    with np.errstate(divide="ignore", over="ignore"):  # a weight of 0, and rows so far away that densities are 0
        if mixture.diagonal:
            logs = ~np.isnan(D) @ np.log(2 * math.pi * mixture.covariances).T
            parts = zip(mixture.centres, mixture.roots, strict=True)
            out = -0.5 * (logs + np.stack([np.nansum(((D - m) * r) ** 2, axis=1) for m, r in parts], axis=1))
        else:
            out = np.empty((len(D), mixture.n_components))
            for rows, seen in group_by_observed(D):
                for k in range(mixture.n_components):
                    out[rows, k] = _ObservedPart(mixture, k, seen).log_density(D[np.ix_(rows, seen)])
        return np.asarray(out + np.log(mixture.weights))


def expectation(X: Array, w: Array | None, mixture: Mixture) -> loops.Sums:
    """The sums of one expectation step, about the centres; unobserved cells count as expected.

    Rows that are complete take the short way of :mod:`gramian.compute.mixture`.
    """
    if w is not None:
        X, w = X[w > 0], w[w > 0]
    partial = np.isnan(X).any(axis=1)
    N, first, second, height = loops.expectation(X[~partial], None if w is None else w[~partial], mixture.components)
    D = np.asarray(X[partial], dtype=np.float64) - mixture.origin
    each = np.ones(len(D)) if w is None else w[partial]
    if mixture.diagonal:
        R, total = _responsibilities(joint_log_density(X[partial], mixture), each)
        hidden = R.T @ np.isnan(D)  # an unobserved cell has the component's own mean and variance
        for k, m in enumerate(mixture.centres):
            E = np.nan_to_num(D - m, nan=0.0)
            first[k] += R[:, k] @ E
            second[k] += R[:, k] @ E**2 + hidden[k] * mixture.covariances[k]
        return loops.Sums(N + R.sum(axis=0), first, second, height + total)
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.weights)
    for rows, seen in group_by_observed(D):
        parts = [_ObservedPart(mixture, k, seen) for k in range(mixture.n_components)]
        joint = np.stack([part.log_density(D[np.ix_(rows, seen)]) for part in parts], axis=1) + log_weights
        R, total = _responsibilities(joint, each[rows])
        N, height = N + R.sum(axis=0), height + total
        for k, part in enumerate(parts):
            E = part.complete(D[np.ix_(rows, seen)])
            first[k] += R[:, k] @ E
            second[k] += (R[:, k, None] * E).T @ E + R[:, k].sum() * part.residual
    return loops.Sums(N, first, second, height)


def _responsibilities(joint: Array, w: Array) -> tuple[Array, float]:
    """Responsibilities times weights, and the log-likelihood of the rows."""
    total = logsumexp(joint, axis=1)
    return np.asarray(np.exp(joint - total[:, None]) * w[:, None]), float(w @ total)


def condition(values: Array, mixture: Mixture, given: Index, rest: Index) -> tuple[Array, Array, Array]:
    """Weights (n, K), centres (n, K, u) and covariances (K, u, u) of some columns where others have given values."""
    k, d = mixture.centres.shape
    X = np.full((len(values), d), np.nan)
    X[:, given] = values
    shares = softmax(joint_log_density(X, mixture), axis=1)
    if mixture.diagonal:
        centres = np.broadcast_to(mixture.centres[:, rest], (len(values), k, len(rest)))
        return shares, centres, mixture.covariances[:, rest]
    D = values - mixture.origin[given]
    parts = [_ObservedPart(mixture, j, given) for j in range(k)]
    centres = np.stack([part.complete(D)[:, rest] + mixture.centres[j, rest] for j, part in enumerate(parts)], axis=1)
    return shares, centres, np.stack([part.residual[np.ix_(rest, rest)] for part in parts])


def impute(X: Array, mixture: Mixture) -> tuple[Array, Array]:
    r"""E(x|x_o) and the standard deviations of x|x_o, which are 0 where a cell is observed.

    With shares r_k, means m_k and variances v_k of the components given x_o, the law of total variance is
    :math:`\sum_kr_kv_k+\sum_kr_k(m_k-\bar m)^2`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import Mixture
    >>> from gramian.mixture.missing import impute
    >>> one = Mixture.of([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.5, 1.0]]])
    >>> impute(np.array([[2.0, np.nan]]), one)[0]
    array([[2., 1.]])
    """
    out, deviations = np.array(X, dtype=np.float64), np.zeros(X.shape)
    for rows, seen in group_by_observed(out):
        hidden = np.setdiff1d(np.arange(X.shape[1]), seen)
        if not len(hidden):
            continue
        shares, centres, spread = condition(out[np.ix_(rows, seen)], mixture, seen, hidden)
        variances = spread if spread.ndim == 2 else np.diagonal(spread, axis1=1, axis2=2)
        mean = np.einsum("nk,nku->nu", shares, centres)
        within = shares @ variances
        between = np.einsum("nk,nku->nu", shares, (centres - mean[:, None]) ** 2)
        out[np.ix_(rows, hidden)] = mean + mixture.origin[hidden]
        deviations[np.ix_(rows, hidden)] = np.sqrt(np.maximum(within + between, 0.0))
    return out, deviations


class _ObservedPart:
    """One component, seen through some of its columns."""

    def __init__(self, mixture: Mixture, k: int, seen: Index) -> None:
        S, s = mixture.matrices[k], len(seen)
        hidden = np.setdiff1d(np.arange(len(S)), seen)
        order = np.concatenate([seen, hidden])
        root = np.linalg.cholesky(S[np.ix_(order, order)])  # of which [L 0; C H]: nothing is subtracted to get H
        self.centre, self.seen, self.L = mixture.centres[k, seen], seen, root[:s, :s]
        self.gain = np.empty((s, len(S)))  # L⁻¹Σ_o·: regression of every column on those seen
        self.gain[:, order] = root[:, :s].T
        self.residual = np.zeros_like(S)
        self.residual[np.ix_(hidden, hidden)] = root[s:, s:] @ root[s:, s:].T

    def whiten(self, D: Array) -> Array:
        """L⁻¹(x_o − μ_o), by row."""
        return np.asarray(solve_triangular(self.L, (D - self.centre).T, lower=True, check_finite=False).T)

    def log_density(self, D: Array) -> Array:
        constant = len(self.seen) * math.log(2 * math.pi) + 2 * float(np.sum(np.log(np.diag(self.L))))
        return np.asarray(-0.5 * (constant + np.sum(self.whiten(D) ** 2, axis=1)))

    def complete(self, D: Array) -> Array:
        """E(x | x_o) − μ; cells that are seen stay as they are."""
        E = self.whiten(D) @ self.gain
        E[:, self.seen] = D - self.centre
        return np.asarray(E)


def group_by_observed(D: Array) -> Iterator[tuple[Index, Index]]:
    """Rows that have the same cells observed, and those cells."""
    if len(D) == 0:
        return
    seen = ~np.isnan(D)
    kinds, which = np.unique(np.packbits(seen, axis=1), axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    for rows in np.split(order, np.cumsum(np.bincount(which.ravel(), minlength=len(kinds)))[:-1]):
        yield rows, np.flatnonzero(seen[rows[0]])
