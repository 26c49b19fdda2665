r"""The variance of the complete-data score given the data, summed over rows or bins.

In a component's own coordinates and with y = L⁻¹(x − μ), the score of a row that belongs to it is
:math:`u=(1/\pi,\ y,\ \tfrac12\operatorname{tr}E_a(yy^T-I))`. Given x, the row belongs to component k with
probability r_k, so the scores of all components have the variance
:math:`\operatorname{diag}_k(r_kE\,u_ku_k^T)-ss^T` with :math:`s=(r_1Eu_1,\dots,r_KEu_K)`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from gramian.likelihood.mixture.binned import Bins
from gramian.likelihood.mixture.chart import Chart
from gramian.likelihood.mixture.rows import Rows
from gramian.likelihood.mixture.statistics import Statistics
from gramian.likelihood.mixture.truncated import truncated_moments
from gramian.likelihood.observed import host
from gramian.sources import Block, memory_budget

__all__ = ["bins_information", "rows_information"]

Array = npt.NDArray[np.float64]


def rows_information(data: Rows, chart: Chart) -> tuple[Statistics, Array]:
    """Statistics at a chart's base and the summed variance of the complete score, in components' own coordinates."""
    base, (k, d) = chart.base, chart.base.centres.shape
    width = 1 + d + chart.index.shape[1]
    inverse = np.linalg.inv(chart.frames)
    share = np.divide(1.0, base.weights, out=np.zeros(k), where=base.weights > 0)

    def statistic(block: Block) -> Array:
        X = host(block)
        w = np.ones(len(X)) if data.sample_weight is None else data.sample_weight[block.start : block.stop]
        R = base.responsibilities(X)
        U = np.empty((len(X), k * width))
        blocks = []
        for j in range(k):
            Y = ((X - base.origin) - base.centres[j]) @ inverse[j].T
            u = np.concatenate([np.full((len(X), 1), share[j]), Y, _scores(Y, chart.slopes(j))], axis=1)
            blocks.append((u * (w * R[:, j])[:, None]).T @ u)
            U[:, j * width : (j + 1) * width] = u * R[:, j, None]
        return np.asarray(block_diag(*blocks) - (U * w[:, None]).T @ U)

    rows = max(1, memory_budget() // 8 // (8 * 4 * k * width))
    spread = data.source.reduce(statistic, np.add, rows)
    return data.expect(base), spread


def _scores(Y: Array, slopes: Array) -> Array:
    """½ tr E_a(yyᵀ − I) for every row and direction."""
    quadratic = np.einsum("ni,aij,nj->na", Y, slopes, Y, optimize=True)
    return np.asarray(0.5 * (quadratic - np.trace(slopes, axis1=1, axis2=2)))


def bins_information(data: Bins, chart: Chart) -> tuple[Statistics, Array]:
    """The same for bins, where y and its powers are known by their moments within a bin; columns are independent."""
    base, k = chart.base, chart.base.n_components
    slopes = np.stack([np.diagonal(chart.slopes(j), axis1=1, axis2=2) for j in range(k)])  # E_a is diagonal
    expected, squares, joint = [], [], []
    for j in range(k):
        a, b = data.limits(base, j)
        log_p, M = truncated_moments(a, b, 4)
        sigma = np.diag(chart.frames[j])
        joint.append(np.sum(log_p - np.where(a == b, np.log(sigma), 0.0), axis=1))
        e, q = _moments_of_score(M, slopes[j], base.weights[j])
        expected.append(e)
        squares.append(q)
    with np.errstate(divide="ignore"):
        L = np.stack(joint) + np.log(base.weights)[:, None]
    L -= L.max(axis=0)
    R = np.exp(L) / np.exp(L).sum(axis=0)
    U = np.concatenate([r[:, None] * e for r, e in zip(R, expected, strict=True)], axis=1)
    n = data.counts
    within = block_diag(*(np.einsum("b,bij->ij", n * r, q) for r, q in zip(R, squares, strict=True)))
    return data.expect(base), np.asarray(within - (U * n[:, None]).T @ U)


def _moments_of_score(M: Array, slopes: Array, weight: float) -> tuple[Array, Array]:
    """E u and E uuᵀ of shapes (B, width) and (B, width, width), from moments M of shape (5, B, d)."""
    share = 1.0 / weight if weight > 0 else 0.0
    bins, d = M.shape[1:]
    # t = (y, ½(y²−1)) by column; columns are independent, so only equal ones need their joint moments
    mean = np.concatenate([M[1], 0.5 * (M[2] - 1)], axis=1)
    product = mean[:, :, None] * mean[:, None, :]
    j = np.arange(d)
    product[:, j, j] = M[2]
    product[:, j, d + j] = product[:, d + j, j] = 0.5 * (M[3] - M[1])
    product[:, d + j, d + j] = 0.25 * (M[4] - 2 * M[2] + 1)
    T = block_diag(np.eye(d), slopes)  # (y, ½ Σ_j E_jj (y_j² − 1))
    e = np.concatenate([np.full((bins, 1), share), mean @ T.T], axis=1)
    q = np.empty((bins, e.shape[1], e.shape[1]))
    q[:, 0, :] = q[:, :, 0] = share * e
    q[:, 1:, 1:] = T @ product @ T.T
    return e, q
