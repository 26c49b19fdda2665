r"""Counts in intervals or boxes: the exact likelihood of what was recorded, not of midpoints.

.. math:: \ell = \sum_b n_b\ln\sum_k\pi_kP_{kb},\qquad P_{kb}=\int_bN(x;\mu_k,\Sigma_k)\,dx

A row known only to lie in box b contributes the moments of a normal variable confined to b (Dempster, Laird and Rubin
1977; McLachlan and Jones 1988). Where covariances are diagonal, these are products over the columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, logsumexp

from gramian.likelihood.mixture.given import numbers
from gramian.likelihood.mixture.parameters import Mixture
from gramian.likelihood.mixture.planar import planar_moments
from gramian.likelihood.mixture.statistics import Statistics
from gramian.likelihood.mixture.truncated import truncated_moments

__all__ = ["Bins", "Goodness"]

Array = npt.NDArray[np.float64]

CHUNK = 2**15  # boxes times components times columns worked on at once


@dataclass(frozen=True, eq=False, repr=False)
class Goodness:
    """How far counts are from those expected.

    Attributes
    ----------
    deviance, chi2 : float
        2Σ n ln(n/e) and Σ (n−e)²/e.
    degrees : int
        Boxes − 1 − free parameters.
    expected : ndarray of shape (B,)
        e.
    """

    deviance: float
    chi2: float
    degrees: int
    expected: Array

    @property
    def p_values(self) -> tuple[float, float]:
        """Of deviance and χ², where expected counts are not small."""
        if self.degrees < 1:
            return np.nan, np.nan
        return float(chdtrc(self.degrees, self.deviance)), float(chdtrc(self.degrees, self.chi2))

    def __repr__(self) -> str:
        p, q = self.p_values
        return f"Goodness: deviance {self.deviance:.2f} (p {p:.2g}), X² {self.chi2:.2f} (p {q:.2g}), df {self.degrees}"


@dataclass(frozen=True, eq=False)
class Bins:
    """Counts in boxes.

    Attributes
    ----------
    lower, upper : ndarray of shape (B, d)
        Limits; infinite ones leave a box open, and equal ones say that a value is known exactly.
    counts : ndarray of shape (B,)
        How many rows lie in each.
    origin, variances : ndarray of shape (d,)
        Where the boxes lie and how widely, roughly.
    weight : float
        Σ counts.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture import Bins, Mixture
    >>> bins = Bins.of([-np.inf, 0.0, np.inf], [30, 70])
    >>> bins.probabilities(Mixture.of([1.0], [[0.0]], [1.0], "V"))
    array([0.5, 0.5])
    """

    lower: Array
    upper: Array
    counts: Array
    origin: Array
    variances: Array
    weight: float

    @classmethod
    def of(cls, edges: Any, counts: Any) -> Bins:
        """A histogram: B+1 rising edges and B counts; or, in d columns, d sequences of edges and a d-dimensional table.

        The first edge of a column may be −inf and the last inf.
        """
        table = numbers("counts", counts)
        limits = [numbers("edges", e) for e in ([edges] if table.ndim == 1 else list(edges))]
        if table.ndim == 0 or any(e.ndim != 1 for e in limits) or tuple(len(e) - 1 for e in limits) != table.shape:
            raise ValueError(
                "Edges must be one more than counts in every column, and counts have an axis for each; counts have "
                f"shape {table.shape}, and edges have {', '.join(str(e.shape) for e in limits) or 'none'}."
            )
        for j, e in enumerate(limits):
            _refuse_edges(e, "" if len(limits) == 1 else f" of column {j}")
        lower = np.stack([g.ravel() for g in np.meshgrid(*(e[:-1] for e in limits), indexing="ij")], axis=1)
        upper = np.stack([g.ravel() for g in np.meshgrid(*(e[1:] for e in limits), indexing="ij")], axis=1)
        return cls.intervals(lower, upper, table.ravel())

    @classmethod
    def intervals(cls, lower: Any, upper: Any, counts: Any | None = None) -> Bins:
        """Rows known to lie between limits, each counted once unless counts are given."""
        low, high = numbers("lower", lower), numbers("upper", upper)
        low, high = (v[:, None] if v.ndim == 1 else v for v in (low, high))
        n = np.ones(len(low)) if counts is None else numbers("counts", counts)
        _refuse(low, high, n)
        origin, variances = _rough(low, high, n)
        return cls(low, high, n, origin, variances, float(n.sum()))

    def expect(self, mixture: Mixture) -> Statistics:
        """One expectation step."""
        joint, first, second = self._moments(mixture)
        total = logsumexp(joint, axis=0)
        taken = self.counts > 0
        R = np.where(taken, np.exp(joint - np.where(taken, total, 0.0)), 0.0) * self.counts
        height = float(self.counts[taken] @ total[taken])
        sums = np.einsum("kb,kb...->k...", R, first), np.einsum("kb,kb...->k...", R, second)
        return Statistics(R.sum(axis=1), *sums, mixture.centres, height, self.weight, mixture.origin)

    def probabilities(self, mixture: Mixture) -> Array:
        """P_b of every box."""
        return np.asarray(np.exp(logsumexp(self._moments(mixture)[0], axis=0)))

    def goodness(self, mixture: Mixture, free_parameters: int | None = None) -> Goodness:
        """Compare counts with those expected."""
        free = mixture.free_parameters if free_parameters is None else free_parameters
        expected = self.weight * self.probabilities(mixture)
        n = self.counts
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(n > 0, n * np.log(n / expected), 0.0)
            chi2 = float(np.sum(np.where((expected == 0) & (n == 0), 0.0, (n - expected) ** 2 / expected)))
        return Goodness(2 * float(parts.sum()), chi2, len(n) - 1 - free, expected)

    def limits(self, mixture: Mixture, k: int) -> tuple[Array, Array]:
        """Limits in standard deviations from the mean of component k, by column."""
        scale = mixture.roots[k] if mixture.diagonal else 1.0 / np.sqrt(np.diag(mixture.covariances[k]))
        return (
            ((self.lower - mixture.origin) - mixture.centres[k]) * scale,
            ((self.upper - mixture.origin) - mixture.centres[k]) * scale,
        )

    def _moments(self, mixture: Mixture) -> tuple[Array, Array, Array]:
        """ln π_k P_kb, E(x−μ_k) and E(x−μ_k)² or E(x−μ_k)(x−μ_k)ᵀ, of shapes (K, B, …)."""
        d = len(mixture.origin)
        if self.lower.shape[1] != d:
            raise ValueError(f"Boxes have {self.lower.shape[1]} columns, and the mixture has {d}.")
        if not mixture.diagonal and d > 2:
            raise ValueError(
                f"Boxes in {d} columns need diagonal covariances: {mixture.model} would take integrals over correlated "
                "normals that are done here in two columns only. Use EII, VII, EEI, VEI, EVI or VVI."
            )
        step = max(1, CHUNK // max(1, mixture.n_components * d))
        parts = [self._part(mixture, slice(i, i + step)) for i in range(0, len(self.counts), step)]
        joint, first, second = (np.concatenate(p, axis=1) for p in zip(*parts, strict=True))
        with np.errstate(divide="ignore"):
            return joint + np.log(mixture.weights)[:, None], first, second

    def _part(self, mixture: Mixture, part: slice) -> tuple[Array, Array, Array]:
        limits = [self.limits(mixture, k) for k in range(mixture.n_components)]
        a, b = np.stack([low[part] for low, _ in limits]), np.stack([high[part] for _, high in limits])
        if mixture.diagonal or a.shape[2] == 1:
            sigma = np.sqrt(np.diagonal(mixture.matrices, axis1=1, axis2=2))[:, None, :]
            log_p, M = truncated_moments(a, b, 2)
            log_p -= np.where(a == b, np.log(sigma), 0.0)  # a density of x, not of z
            second = sigma**2 * M[2]
            return log_p.sum(axis=2), sigma * M[1], second if mixture.diagonal else second[..., None]
        planes = [planar_moments(a[k], b[k], S) for k, S in enumerate(mixture.covariances)]
        joint, first, second = (np.stack(p) for p in zip(*planes, strict=True))
        return joint, first, second


def _refuse_edges(e: Array, where: str) -> None:
    if np.isnan(e).any():
        raise ValueError(f"Edge {np.flatnonzero(np.isnan(e))[0]}{where} is NaN. Use -inf and inf for open ends.")
    wrong = np.flatnonzero(~(np.diff(e) > 0))
    if len(wrong):
        i = wrong[0]
        raise ValueError(f"Edges must rise: edge {i}{where} is {e[i]} and edge {i + 1} is {e[i + 1]}.")


def _refuse(low: Array, high: Array, n: Array) -> None:
    if low.ndim != 2 or low.shape != high.shape or n.shape != (len(low),):
        raise ValueError(f"Limits of shapes {low.shape} and {high.shape} and counts of shape {n.shape} do not match.")
    wrong = np.flatnonzero(~(low <= high).all(axis=1) | (np.isinf(low) & (low == high)).any(axis=1))
    if len(wrong):
        i = wrong[0]
        raise ValueError(
            f"Box {i} goes from {low[i]} to {high[i]}: lower limits must not exceed upper ones, nor be NaN."
        )
    bad = np.flatnonzero(~(n >= 0) | np.isinf(n))
    if len(bad):
        raise ValueError(f"Count {bad[0]} is {n[bad[0]]}; counts must be finite and not negative.")
    if not n.sum() > 0:
        raise ValueError("All counts are 0: there is nothing to fit.")


def _rough(low: Array, high: Array, n: Array) -> tuple[Array, Array]:
    """Mean and variance of the columns with rows at midpoints, open boxes at their limit."""
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, 0.5 * (low + high)))
        width = np.where(np.isfinite(high - low), high - low, 0.0)
    known = np.isfinite(middle)
    w = np.where(known, n[:, None], 0.0)
    total = np.maximum(w.sum(axis=0), np.finfo(float).tiny)
    value = np.where(known, middle, 0.0)
    start = value[np.argmax(w > 0, axis=0), np.arange(low.shape[1])]
    mean = start + np.sum(w * (value - start), axis=0) / total
    return mean, np.sum(w * ((value - mean) ** 2 + width**2 / 12), axis=0) / total
