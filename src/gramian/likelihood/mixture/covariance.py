r"""Maximisation over the covariances, for each of the 14 models.

Given counts N_k and scatter matrices T_k about the means, the expected log-likelihood is

.. math:: Q = -\tfrac12\sum_k\bigl(N_k\ln|\Sigma_k|+\operatorname{tr}\Sigma_k^{-1}T_k\bigr),\qquad
    \Sigma_k=\lambda_kD_kA_kD_k^T,\quad|A_k|=1,

and the solutions are those of Celeux and Govaert (1995). Eight of them are closed forms; VEI, VEE and VEV alternate
between volumes and the rest, which is convex in the logarithms; EVE and VVE turn the common axes pair by pair, each by
the best angle, as Flury and Gautschi (1986) turn theirs: to the end where there are no current covariances, else a few
times from theirs. Nothing lowers Q.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from gramian.likelihood.mixture._axes import common_axes

__all__ = ["expected_log_likelihood", "maximise_covariances"]

Array = npt.NDArray[np.float64]

CLOSE = 1e-13  # relative change of volumes at which alternating ends
ROUNDS = 1000


def expected_log_likelihood(covariances: Array, N: Array, T: Array) -> float:
    """Q, as far as it depends on the covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture.covariance import expected_log_likelihood
    >>> expected_log_likelihood(np.array([[1.0]]), np.array([2.0]), np.array([[2.0]]))
    -1.0
    """
    if covariances.ndim == 2:
        logs, traces = np.sum(np.log(covariances), axis=1), np.sum(T / covariances, axis=1)
    else:
        logs = np.linalg.slogdet(covariances)[1]
        traces = np.trace(np.linalg.solve(covariances, T), axis1=1, axis2=2)
    return float(-0.5 * np.sum(N * logs + traces))


def maximise_covariances(model: str, N: Array, T: Array, current: Array | None = None) -> Array:
    """Return the covariances of a model that maximise Q.

    Parameters
    ----------
    model : str
        One of the 14 models.
    N : ndarray of shape (K,)
        Counts, positive.
    T : ndarray of shape (K, d, d), or (K, d) for diagonal models
        Scatter matrices, positive definite.
    current : ndarray, optional
        Covariances to start iterations from.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture.covariance import maximise_covariances
    >>> maximise_covariances("EEI", np.array([1.0, 3.0]), np.array([[4.0, 8.0], [8.0, 4.0]]))
    array([[3., 3.],
           [3., 3.]])
    """
    if model in ("EVE", "VVE"):
        return common_axes(model, N, T, current)
    return np.ascontiguousarray(_SOLUTIONS[model](N, T))


def _shared(S: Array, k: int) -> Array:
    return np.repeat(S[None], k, axis=0)


def _eii(N: Array, T: Array) -> Array:
    return np.full(T.shape, T.sum() / (N.sum() * T.shape[1]))


def _vii(N: Array, T: Array) -> Array:
    return np.repeat((T.mean(axis=1) / N)[:, None], T.shape[1], axis=1)


def _equal(N: Array, T: Array) -> Array:
    """EEI and EEE."""
    return _shared(T.sum(axis=0) / N.sum(), len(N))


def _own(N: Array, T: Array) -> Array:
    """VVI and VVV."""
    return np.asarray(T / _like(N, T))


def _equal_volumes(N: Array, T: Array) -> Array:
    """EVI and EVV: shapes T/|T|^{1/d}, and one volume Σ|T|^{1/d}/n."""
    sizes = _volume(T)
    return np.asarray(T * _like(sizes.sum() / N.sum() / sizes, T))


def _own_volumes(N: Array, T: Array) -> Array:
    r"""VEI and VEE: λ_k = tr(T_kC⁻¹)/dN_k and C ∝ ΣT_k/λ_k in turn, until the volumes stand still."""
    d = T.shape[1]
    volumes = (T if T.ndim == 2 else np.diagonal(T, axis1=1, axis2=2)).mean(axis=1) / N
    C = T[0]
    for _ in range(ROUNDS):
        C = (T / _like(volumes, T)).sum(axis=0)
        C /= _volume(C[None])[0]
        traces = (T / C).sum(axis=1) if T.ndim == 2 else _traces(T, C)
        before, volumes = volumes, traces / (d * N)
        if np.max(np.abs(volumes / before - 1)) < CLOSE:
            break
    return np.asarray(_like(volumes, T) * C)


def _own_axes(inner: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    """EEV and VEV: each component has the axes of its own scatter, largest first, and shares the shape along them."""

    def solution(N: Array, T: Array) -> Array:
        values, axes = np.linalg.eigh(T)
        along = inner(N, np.maximum(values, np.finfo(float).tiny))
        return np.asarray((axes * along[:, None, :]) @ axes.transpose(0, 2, 1))

    return solution


def _like(v: Array, T: Array) -> Array:
    """One number per component, shaped to multiply T."""
    return v.reshape(-1, *(1,) * (T.ndim - 1))


def _traces(T: Array, C: Array) -> Array:
    """Traces tr C⁻¹T_k, by Cholesky's factor."""
    R = solve_triangular(np.linalg.cholesky(C), np.eye(len(C)), lower=True, check_finite=False)
    return np.asarray(np.sum((R @ T) * R, axis=(1, 2)))


def _volume(T: Array) -> Array:
    """|T|^{1/d} of every component."""
    roots = np.sqrt(T) if T.ndim == 2 else np.diagonal(np.linalg.cholesky(T), axis1=1, axis2=2)
    return np.asarray(np.exp(2 * np.mean(np.log(roots), axis=1)))  # Cholesky's does not mind columns of any scale


_SOLUTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "EII": _eii,
    "VII": _vii,
    "EEI": _equal,
    "VEI": _own_volumes,
    "EVI": _equal_volumes,
    "VVI": _own,
    "EEE": _equal,
    "VEE": _own_volumes,
    "EEV": _own_axes(_equal),
    "VEV": _own_axes(_own_volumes),
    "EVV": _equal_volumes,
    "VVV": _own,
}
