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
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, softmax

from gramian.compute import mixture as loops

if TYPE_CHECKING:
    from gramian.mixture.parameters import Mixture

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

MOST_INFLATION = 1e8  # of a variance by that of a column given all others, up to which precisions are used
CHUNK = 2**21  # numbers of small matrices that are held together


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
            out, ks = np.empty((len(D), mixture.n_components)), range(mixture.n_components)
            if len(D) and _is_well_conditioned(mixture):
                patterns = _HiddenCells(D)
                out = np.stack([patterns.complete(mixture, k).log_density for k in ks], axis=1)
            else:
                for rows, seen in group_by_observed(D):
                    for k in ks:
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
    if len(D) and _is_well_conditioned(mixture):
        patterns = _HiddenCells(D)
        completed = [patterns.complete(mixture, k) for k in range(mixture.n_components)]
        joint = np.stack([whole.log_density for whole in completed], axis=1) + log_weights
        R, total = _responsibilities(joint, each)
        for k, whole in enumerate(completed):
            first[k] += R[:, k] @ whole.rows
            second[k] += (R[:, k, None] * whole.rows).T @ whole.rows + patterns.sum_residuals(whole, R[:, k])
        return loops.Sums(N + R.sum(axis=0), first, second, height + total)
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


def _is_well_conditioned(mixture: Mixture) -> bool:
    """Whether precisions lose few digits: no column is determined by the others to more than half of the digits."""
    inflation = np.sum(mixture.roots**2, axis=1) * np.diagonal(mixture.covariances, axis1=1, axis2=2)
    return bool(inflation.max() < MOST_INFLATION)


class _Completed(NamedTuple):
    """Rows under one component: E(x|x_o) − μ, ln N(x_o), and the covariances of hidden cells by chunk of patterns."""

    rows: Array
    log_density: Array
    residuals: list[Array]


class _HiddenCells:
    r"""Rows grouped by the cells they lack, so that all patterns are worked on at once.

    With the precision P = Σ⁻¹, hidden cells u given the others have covariance :math:`P_{uu}^{-1}` and mean
    :math:`\mu_u-P_{uu}^{-1}P_{uo}(x_o-\mu_o)`: small matrices where few cells are hidden, and nothing is subtracted. Of
    the completed row e, :math:`(x_o-\mu_o)^T\Sigma_{oo}^{-1}(x_o-\mu_o)=e^TPe`, and
    :math:`|\Sigma_{oo}|=|\Sigma||P_{uu}|`.
    """

    def __init__(self, D: Array) -> None:
        self.D, self.hidden = D, np.isnan(D)
        kinds, which = np.unique(np.packbits(self.hidden, axis=1), axis=0, return_inverse=True)
        self.which, d = which.ravel(), D.shape[1]
        masks = np.unpackbits(kinds, axis=1, count=d).astype(bool)
        sizes = masks.sum(axis=1)
        order = np.argsort(sizes, kind="stable")
        self.chunks: list[tuple[Index, Index, npt.NDArray[np.bool_], Index]] = []
        members = np.argsort(self.which, kind="stable")
        ends = np.cumsum(np.bincount(self.which, minlength=len(kinds)))
        starts = np.concatenate([[0], ends[:-1]])
        at = 0
        while at < len(order):  # patterns with about as many hidden cells, padded to the most of them
            most = int(1.25 * sizes[order[at]]) + 1
            take = min(int(np.searchsorted(sizes[order], most, side="right")) - at, max(1, CHUNK // most**2))
            mine = order[at : at + take]
            width = int(sizes[mine[-1]])
            columns = np.argsort(~masks[mine], axis=1, kind="stable")[:, :width]
            taken = np.take_along_axis(masks[mine], columns, axis=1)
            rows = np.concatenate([members[starts[g] : ends[g]] for g in mine])
            local = np.repeat(np.arange(take), (ends - starts)[mine])
            self.chunks.append((columns, rows, taken, local))
            at += take

    def complete(self, mixture: Mixture, k: int) -> _Completed:
        """What component k says of the rows."""
        R, d = mixture.roots[k], self.D.shape[1]
        P = R.T @ R
        E = np.where(self.hidden, 0.0, self.D - mixture.centres[k])
        Y = E @ P
        half, residuals = np.empty(len(E)), []
        for columns, rows, taken, local in self.chunks:
            both = taken[:, :, None] & taken[:, None, :]
            small = np.where(both, P[columns[:, :, None], columns[:, None, :]], np.eye(columns.shape[1]))
            half[rows] = np.sum(np.log(np.diagonal(np.linalg.cholesky(small), axis1=1, axis2=2)), axis=1)[local]
            C = np.linalg.inv(small) * both
            residuals.append(C)
            for some in range(0, len(rows), step := max(1, CHUNK // max(1, columns.shape[1]) ** 2)):
                i, g = rows[some : some + step], local[some : some + step]
                at = columns[g]
                found = np.matmul(C[g], Y[i[:, None], at][:, :, None])[:, :, 0]
                E[i[:, None], at] -= found  # 0 where padded, and no cell twice
        seen = d - self.hidden.sum(axis=1)
        constant = seen * math.log(2 * math.pi) + mixture.log_determinants[k] + 2 * half
        return _Completed(E, np.asarray(-0.5 * (constant + np.sum((E @ R.T) ** 2, axis=1))), residuals)

    def sum_residuals(self, part: _Completed, shares: Array) -> Array:
        """Σ r Cov(x|x_o) over the rows."""
        d = self.D.shape[1]
        total = np.zeros(d * d)
        for (columns, rows, _, local), C in zip(self.chunks, part.residuals, strict=True):
            weights = np.bincount(local, shares[rows], minlength=len(columns))
            place = columns[:, :, None] * d + columns[:, None, :]
            total += np.bincount(place.ravel(), (weights[:, None, None] * C).ravel(), minlength=d * d)
        return np.asarray(total.reshape(d, d))


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
