r"""Mean and scatter of blocks of rows, merged exactly: the sufficient statistics of a PCA.

A block is summed about an origin c taken from its own rows, so that means of 1e12 cost no digits, and two
blocks a and b merge by Chan, Golub and LeVeque's update

.. math:: M = M_a + M_b + \frac{\omega_a\omega_b}{\omega_a+\omega_b}\,\delta\delta^T,\qquad \delta=\mu_b-\mu_a.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device

from gramian.compute.dense import LITTLE, centre_few
from gramian.compute.threads import quiet_blas

Array = Any

SAMPLE = 1024  # rows averaged for the origin
FEW = 2**20  # numbers that may be copied: 8 MiB


@dataclass(frozen=True, eq=False)
class Moments:
    """Weight, mean and centred scatter of some rows, in units of ``unit``.

    Attributes
    ----------
    weight : float
        Σ w; the number of rows where there are no weights.
    rows : int
        How many rows have a positive weight.
    mean, low : array of shape (p,)
        The mean is ``mean + low``: what ``mean`` loses by rounding is kept in ``low``.
    scatter : array of shape (p, p) or (p,)
        Σ w (x−μ)(x−μ)ᵀ, or its diagonal.
    """

    weight: float
    rows: int
    mean: Array
    low: Array
    scatter: Array

    @property
    def diagonal(self) -> Array:
        """Σ w (x−μ)² by column."""
        xp = array_namespace(self.scatter)
        return self.scatter if self.scatter.ndim == 1 else xp.linalg.diagonal(self.scatter)

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both sets of rows together."""
        if self.weight == 0.0 or other.weight == 0.0:
            return other if self.weight == 0.0 else self
        total = self.weight + other.weight
        delta = (other.mean - self.mean) + (other.low - self.low)
        step = delta * (other.weight / total) + self.low
        mean = self.mean + step
        low = (self.mean - mean) + step
        between = (self.weight * other.weight / total) * _square(delta, self.scatter.ndim)
        scatter = self.scatter + other.scatter + between
        return Moments(total, self.rows + other.rows, mean, low, scatter)


def _square(v: Array, ndim: int) -> Array:
    """v vᵀ or v², to match a scatter of that many dimensions."""
    return v * v if ndim == 1 else v[:, None] * v[None, :]


def block_moments(
    kernels: ModuleType, X: Array, w: Array | None, like: Array, *, full: bool, unit: float = 1.0
) -> Moments:
    r"""Moments of one block of rows, computed in the dtype of ``like``.

    With d = x − c, s = Σ w d: μ = c + s/ω and M = Σ w d dᵀ − s sᵀ/ω. The origin c is the mean of s = 1,024
    rows spread over the block, and (c−μ)² ≤ (n/1024)·σ², so the subtraction loses at most a factor
    1 + n/1024 of accuracy, whatever the data.
    """
    xp = array_namespace(like)
    n = X.shape[0]
    weight = float(n) if w is None else float(xp.sum(w))
    rows = n if w is None else int(xp.count_nonzero(w))
    if weight == 0.0:
        zero = xp.zeros(X.shape[1], dtype=like.dtype, device=device(like))
        return Moments(0.0, 0, zero, zero, zero[:, None] * zero if full else zero)
    if sp.issparse(X):
        # sparse rows: the diagonal is summed without cancelling, the rest about the origin 0
        s, q = kernels.spread(X, w, like, None, unit)
        mean = s / weight
        if full:
            G = kernels.scatter(X, w, like, None, unit)[1] - weight * _square(mean, 2)
            index = xp.arange(len(q))
            G[index, index] = q
            q = G
        return Moments(weight, rows, mean, mean * 0.0, q)
    few = w is None and isinstance(X, np.ndarray) and like.dtype == np.float64 and X.size <= FEW
    if few and (not full or X.size * X.shape[1] <= LITTLE):
        c, D = centre_few(X, unit)
        with quiet_blas():
            s, M = np.ones(n) @ D, D.T @ D if full else np.einsum("ij,ij->j", D, D)
        shift = s / weight
        mean = c + shift
        M -= s[:, None] * shift if full else s * shift
        return Moments(weight, rows, mean, (c - mean) + shift, M)
    if w is not None and rows < n:  # rows without weight say nothing of where the others lie
        keep = xp.nonzero(w)[0]
        chosen = X[keep[:: max(1, rows // SAMPLE)], :]
    else:
        chosen = X[:: max(1, n // SAMPLE), :]
    sample = xp.astype(chosen, like.dtype) * unit
    c = sample[0, :] + xp.mean(sample - sample[:1, :], axis=0)  # so that a constant is its own mean to the last bit
    s, M = (kernels.scatter if full else kernels.spread)(X, w, like, c[None, :], unit)
    shift = s / weight
    mean = c + shift
    return Moments(weight, rows, mean, (c - mean) + shift, M - _square(s, M.ndim) / weight)
