r"""Observed information of a mixture and the standard errors that follow from it.

Louis's formula (1982) takes it from quantities of complete data,

.. math:: I = \sum_iw_i\bigl(E[-\partial^2\ell_c\,|\,x_i]-\operatorname{Var}[\partial\ell_c\,|\,x_i]\bigr),

here for rows and for bins whose columns are independent within components. For all other data the gradient, which the
statistics of an expectation step give exactly, is differentiated numerically.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag, null_space

from gramian.likelihood.mixture.binned import Bins
from gramian.likelihood.mixture.chart import Chart
from gramian.likelihood.mixture.constraints import Constraints
from gramian.likelihood.mixture.louis import bins_information, rows_information
from gramian.likelihood.mixture.maximise import Maximiser
from gramian.likelihood.mixture.parameters import Mixture
from gramian.likelihood.mixture.rows import Rows
from gramian.likelihood.mixture.statistics import Data, Statistics
from gramian.results import NumericalWarning

__all__ = ["StandardErrors", "is_flat", "observed_information", "standard_errors"]

Array = npt.NDArray[np.float64]

STEP = 2e-3  # of coordinates of size 1, for differences of fourth order
NOTHING = 1e-3  # of the information of as many rows: less is none in any direction
FLAT = 1e-9  # of the largest eigenvalue: less curvature than this leaves a direction undetermined


@dataclass(frozen=True, eq=False, repr=False)
class StandardErrors:
    """Standard errors of the parameters of a mixture.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        Of π.
    means : ndarray of shape (K, d)
        Of μ.
    covariances : ndarray of shape (K, d, d) or (K, d)
        Of the entries of Σ, or of variances.
    deviations : ndarray of shape (K, d)
        Of standard deviations √Σ_jj.
    information, covariance : ndarray of shape (q, q)
        Observed information in the coordinates of the chart, and its inverse where parameters are free.
    chart : Chart
        The coordinates.
    """

    weights: Array
    means: Array
    covariances: Array
    deviations: Array
    information: Array
    covariance: Array
    chart: Chart

    def table(self) -> list[tuple[str, float, float]]:
        """Name, estimate and standard error of every weight, mean and standard deviation."""
        at = self.chart.base
        deviations = np.sqrt(np.diagonal(at.matrices, axis1=1, axis2=2))
        rows = [(f"weight {k}", at.weights[k], self.weights[k]) for k in range(at.n_components)]
        for name, values, errors in (("mean", at.means, self.means), ("deviation", deviations, self.deviations)):
            rows += [(f"{name} {k}, {j}", values[k, j], errors[k, j]) for k, j in np.ndindex(values.shape)]
        return [(name, float(value), float(error)) for name, value, error in rows]

    def __repr__(self) -> str:
        return "\n".join(f"{name:<16}{value:>14.6g} ± {error:.2g}" for name, value, error in self.table())


def standard_errors(data: Data, mixture: Mixture, constraints: Constraints | None = None) -> StandardErrors:
    """Standard errors at a maximum of the likelihood.

    Where the information is not positive definite, the mixture is not at a maximum or some of its parameters are not
    determined by the data: that is warned of, and all errors are NaN.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.likelihood.mixture import Mixture, Rows, standard_errors
    >>> X = np.array([[1.0], [2.0], [3.0], [6.0]])
    >>> one = Mixture.of([1.0], [[3.0]], [3.5], "V")
    >>> found = standard_errors(Rows.of(gramian.open(X)), one)
    >>> found.means.round(6), (3.5 / 4) ** 0.5
    (array([[0.935414]]), 0.9354143466934853)
    """
    chart = Chart(mixture)
    information = observed_information(data, chart)
    T = _free(chart, constraints)
    values, vectors = np.linalg.eigh(T.T @ information @ T) if T.shape[1] else (np.ones(0), np.ones((0, 0)))
    if len(values) and not values[0] > FLAT * values[-1]:
        warnings.warn(
            "The observed information is not positive definite: the mixture is not at a maximum of the likelihood, or "
            "the data do not determine all its parameters. Standard errors are NaN. Fit to a smaller tol, or fewer "
            "components.",
            NumericalWarning,
            stacklevel=2,
        )
        values = np.full(len(values), np.nan)
    V = T @ (vectors / np.sqrt(values))
    return _natural(chart, V, information)


def is_flat(data: Bins, mixture: Mixture, maximiser: Maximiser) -> bool:
    """Whether counts in bins leave some direction of the parameters undetermined.

    By the information, where Louis's formula gives it; in two correlated columns by counting, as q classes that hold
    something determine q − 1 probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture import Bins, Maximiser, Mixture, is_flat
    >>> one = Mixture.of([1.0], [[0.0]], [1.0], "V")
    >>> is_flat(Bins.of([-np.inf, 0.0, np.inf], [10, 10]), one, Maximiser("V"))
    True
    """
    if maximiser.prior is not None and maximiser.prior.counts > 0:
        return False
    if not mixture.diagonal and len(mixture.origin) > 1:
        return bool(np.count_nonzero(data.counts) <= maximiser.free_parameters(mixture))
    chart = Chart(mixture)
    T = _free(chart, maximiser.constraints)
    if not T.shape[1]:
        return False
    values = np.linalg.eigvalsh(T.T @ observed_information(data, chart) @ T)
    return not bool(values[0] > FLAT * max(values[-1], data.weight * NOTHING))


def observed_information(data: Data, chart: Chart) -> Array:
    """Observed information −∂²ℓ in the coordinates of a chart, at its base."""
    mixture = chart.base
    if isinstance(data, Rows) and not data.incomplete:
        stats, spread = rows_information(data, chart)
        return _louis(chart, stats, spread)
    if isinstance(data, Bins) and (mixture.diagonal or len(mixture.origin) == 1):
        stats, spread = bins_information(data, chart)
        return _louis(chart, stats, spread)
    return _differences(data, chart)


def _louis(chart: Chart, stats: Statistics, spread: Array) -> Array:
    """Complete information less the variance of the complete score, from components' own coordinates to the chart's."""
    base, (k, d) = chart.base, chart.base.centres.shape
    blocks, maps, bends = [], [], np.zeros((chart.size, chart.size))
    for j in range(k):
        N, f, S = _whitened(chart, stats, j)
        E = chart.slopes(j)
        curved = chart.curvature(j, 0.5 * (S - N * np.eye(d)))
        WE = np.einsum("aij,jl,bli->ab", E, S, E)
        second = 0.5 * (WE + WE.T) - 0.5 * N * np.einsum("aij,bji->ab", E, E)
        block = np.zeros((1 + d + len(E), 1 + d + len(E)))
        block[0, 0] = N / base.weights[j] ** 2 if base.weights[j] > 0 else 0.0
        block[1 : d + 1, 1 : d + 1] = N * np.eye(d)
        block[1 : d + 1, d + 1 :] = np.einsum("aij,j->ia", E, f)
        block[d + 1 :, 1 : d + 1] = block[1 : d + 1, d + 1 :].T
        block[d + 1 :, d + 1 :] = second
        blocks.append(block)
        maps.append(_local_map(chart, j))
        bends[np.ix_(chart.index[j], chart.index[j])] += curved
    J = np.concatenate(maps)
    return np.asarray(J.T @ (block_diag(*blocks) - spread) @ J - bends)


def _whitened(chart: Chart, stats: Statistics, k: int) -> tuple[float, Array, Array]:
    """Counts and first and second moments of y = L⁻¹(x−μ) for one component."""
    L = chart.frames[k]
    second = np.diag(stats.second[k]) if stats.diagonal else stats.second[k]
    half = np.linalg.solve(L, second)
    return float(stats.counts[k]), np.linalg.solve(L, stats.first[k]), np.linalg.solve(L, half.T).T


def _local_map(chart: Chart, j: int) -> Array:
    """From the chart's coordinates to (π, m, own covariance coordinates) of one component."""
    k, d = chart.base.centres.shape
    local = chart.index.shape[1]
    M = np.zeros((1 + d + local, chart.size))
    M[0, : k - 1] = -1.0 if j == k - 1 else (np.arange(k - 1) == j)
    M[1 + np.arange(d), k - 1 + j * d + np.arange(d)] = 1.0
    M[1 + d + np.arange(local), chart.index[j]] = 1.0
    return M


def _differences(data: Data, chart: Chart) -> Array:
    """−∂g by differences of fourth order of the gradient g."""
    out = np.empty((chart.size, chart.size))
    for a in range(chart.size):
        unit = np.zeros(chart.size)
        unit[a] = _room(chart, a)
        near = _gradient(data, chart, unit) - _gradient(data, chart, -unit)
        far = _gradient(data, chart, 2 * unit) - _gradient(data, chart, -2 * unit)
        out[a] = -(8 * near - far) / (12 * unit[a])
    return np.asarray(0.5 * (out + out.T))


def _room(chart: Chart, a: int) -> float:
    """A step that keeps weights positive."""
    weights = chart.base.weights
    return STEP * min(weights[a], weights[-1]) if a < len(weights) - 1 else STEP


def _gradient(data: Data, chart: Chart, v: Array) -> Array:
    """∂ℓ at some coordinates: the statistics there give it by weights, means and covariances, exactly."""
    at = chart.mixture(v)
    stats = data.expect(at)
    k, d = at.centres.shape
    P = np.linalg.inv(at.matrices)
    second = stats.second[:, :, None] * np.eye(d) if stats.diagonal else stats.second
    by_mean = np.einsum("kij,kj->ki", P, stats.first)
    by_covariance = 0.5 * (P @ second @ P - stats.counts[:, None, None] * P)
    by_weight = np.divide(stats.counts, at.weights, out=np.zeros(k), where=at.weights > 0)
    g = np.empty(chart.size)
    g[: k - 1] = by_weight[:-1] - by_weight[-1]
    g[k - 1 : k - 1 + k * d] = np.einsum("kij,ki->kj", chart.frames, by_mean).ravel()
    g[k - 1 + k * d :] = 0.0
    for j in range(k):
        local = chart.covariance_slopes(j, v[chart.index[j]])
        np.add.at(g, chart.index[j], np.einsum("aij,ij->a", local, by_covariance[j]))
    return g


def _free(chart: Chart, constraints: Constraints | None) -> Array:
    """A basis of the coordinates that constraints leave free: all are linear in them."""
    if constraints is None:
        return np.eye(chart.size)
    rows = constraints.equations(chart.frames, chart.index, chart.size)
    return np.asarray(null_space(rows)) if len(rows) else np.eye(chart.size)


def _natural(chart: Chart, V: Array, information: Array) -> StandardErrors:
    """Errors of weights, means and covariances, with VVᵀ the covariance of the coordinates."""
    base, (k, d) = chart.base, chart.base.centres.shape
    M = [_local_map(chart, j) @ V for j in range(k)]
    weights = np.array([np.linalg.norm(m[0]) for m in M])
    means = np.stack([np.linalg.norm(L @ m[1 : d + 1], axis=1) for L, m in zip(chart.frames, M, strict=True)])
    spread = np.empty((k, d, d))
    for j, (L, m) in enumerate(zip(chart.frames, M, strict=True)):
        change = np.einsum("ij,ajl,ml->aim", L, chart.slopes(j), L)
        spread[j] = np.linalg.norm(np.einsum("aim,av->imv", change, m[d + 1 :]), axis=2)
    variances = np.diagonal(base.matrices, axis1=1, axis2=2)
    diagonal = np.diagonal(spread, axis1=1, axis2=2)
    shown = diagonal.copy() if base.diagonal else spread
    return StandardErrors(weights, means, shown, diagonal / (2 * np.sqrt(variances)), information, V @ V.T, chart)
