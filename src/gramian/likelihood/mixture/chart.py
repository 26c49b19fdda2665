r"""Coordinates about a mixture: as many numbers as the model has free parameters, 0 for the mixture itself.

.. math:: \pi_k+\alpha_k\ (k<K),\qquad \mu_k+L_km_k,\qquad \Sigma_k = L_ke^{F_k}L_k^T
    \quad\text{or}\quad B_ke^{\Omega_k}A_ke^{f_k}e^{-\Omega_k}B_k^T

Volumes, shapes and orientations are moved by the trace of F (or f), by what is left of its diagonal, and by its other
entries (or by the rotation Ω of the axes B), shared between components as the letters of the model say. Where shape and
orientation are shared alike, the first form is used, which has no trouble with equal eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.linalg import expm

from gramian.likelihood.mixture._axes import axes_of
from gramian.likelihood.mixture.models import covariance_parameters
from gramian.likelihood.mixture.parameters import Mixture

__all__ = ["Chart"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

STEP = 1e-3


@dataclass(frozen=True, eq=False)
class Chart:
    """Coordinates of the mixtures near one.

    Attributes
    ----------
    base : Mixture
        The mixture at 0.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture import Chart, Mixture
    >>> chart = Chart(Mixture.of([0.5, 0.5], [[0.0], [4.0]], [1.0, 4.0], "V"))
    >>> chart.size, chart.mixture([0.1, 0.0, 1.0, 0.0, 0.0]).means
    (5, array([[0.],
           [6.]]))
    """

    base: Mixture

    @property
    def size(self) -> int:
        """How many parameters are free."""
        k, d = self.base.centres.shape
        return int(k - 1 + k * d + covariance_parameters(self.base.model, k, d))

    @property
    def rotating(self) -> bool:
        """Whether orientations are moved by rotating axes."""
        return self.base.model in ("EVE", "VVE", "EEV", "VEV")

    @cached_property
    def frames(self) -> Array:
        """Factors with LLᵀ = Σ in whose columns changes are expressed, of shape (K, d, d)."""
        base = self.base
        if base.diagonal:
            return np.asarray(np.sqrt(base.matrices))
        if not self.rotating:
            return base.factors
        B = axes_of(base.covariances, common=base.model[2] == "E")
        spread = np.einsum("kji,kjl,kli->ki", B, base.covariances, B)
        return np.asarray(B * np.sqrt(spread)[:, None, :])

    @cached_property
    def index(self) -> Index:
        """Which coordinate each of a component's own (volume, shape, orientation) is, of shape (K, local)."""
        k, d = self.base.centres.shape
        start, rows = k - 1 + k * d, []
        for letter, many in zip(self.base.model, (1, d - 1, d * (d - 1) // 2), strict=True):
            each = 0 if letter == "I" else many
            shared = letter == "E"
            rows.append(start + np.arange(each) + (0 if shared else each) * np.arange(k)[:, None])
            start += each if shared else k * each
        return np.concatenate([np.broadcast_to(r, (k, r.shape[1])) for r in rows], axis=1)

    @cached_property
    def directions(self) -> Array:
        """The matrices that a component's own coordinates multiply, of shape (local, d, d): F, or f and Ω."""
        d, model = self.base.centres.shape[1], self.base.model
        found = [np.eye(d)]
        if model[1] != "I":
            found += [np.diag(np.eye(d)[j] - np.eye(d)[-1]) for j in range(d - 1)]
        if model[2] != "I":
            sign = -1.0 if self.rotating else 1.0
            unit = np.eye(d)
            found += [
                np.outer(unit[i], unit[j]) + sign * np.outer(unit[j], unit[i])
                for i in range(d)
                for j in range(i + 1, d)
            ]
        return np.stack(found)

    def mixture(self, vector: npt.ArrayLike) -> Mixture:
        """The mixture at some coordinates."""
        v = np.asarray(vector, dtype=np.float64)
        base, (k, d) = self.base, self.base.centres.shape
        if v.shape != (self.size,):
            raise ValueError(f"The model has {self.size} free parameters; got an array of shape {v.shape}.")
        move = np.append(v[: k - 1], -v[: k - 1].sum())
        steps = v[k - 1 : k - 1 + k * d].reshape(k, d)
        centres = base.centres + np.einsum("kij,kj->ki", self.frames, steps)
        spread = np.stack([self._covariance(i, v[self.index[i]]) for i in range(k)])
        if base.diagonal:
            spread = np.diagonal(spread, axis1=1, axis2=2)
        return Mixture.of(base.weights + move, centres, spread, base.model, base.origin)

    def _covariance(self, k: int, local: Array) -> Array:
        L, moves = self.frames[k], local[:, None, None] * self.directions
        if not self.rotating:
            return np.asarray(L @ expm(moves.sum(axis=0)) @ L.T)
        d = len(L)
        spread = np.linalg.norm(L, axis=0)
        turn = expm(moves[d:].sum(axis=0))
        root = (L / spread) @ turn * (spread * np.exp(0.5 * np.diag(moves[:d].sum(axis=0))))
        return np.asarray(root @ root.T)

    def covariance_slopes(self, k: int, local: Array) -> Array:
        """Derivatives of Σ by the component's own coordinates, anywhere, by differences of fourth order."""
        out = np.empty((len(local), *self.frames[k].shape))
        for a in range(len(local)):
            unit = STEP * (np.arange(len(local)) == a)
            ends = [self._covariance(k, local + s * unit) for s in (1, -1, 2, -2)]
            out[a] = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * STEP)
        return out

    def slopes(self, k: int) -> Array:
        """First derivatives of E = L⁻¹ΣL⁻ᵀ − I at 0 by the component's own coordinates, of shape (local, d, d)."""
        if not self.rotating:
            return self.directions
        a, d = np.linalg.norm(self.frames[k], axis=0), len(self.frames[k])
        turns = self.directions[d:] * (a[None, :] / a[:, None])  # A^{-1/2} Ω A^{1/2}
        return np.concatenate([self.directions[:d], turns + turns.transpose(0, 2, 1)])

    def curvature(self, k: int, G: Array) -> Array:
        """Second derivatives of tr(GE) at 0 by the component's own coordinates, of shape (local, local)."""
        if not self.rotating:
            W = np.einsum("aij,bjl,li->ab", self.directions, self.directions, G)
            return np.asarray(0.5 * (W + W.T))
        a, d = np.linalg.norm(self.frames[k], axis=0), len(self.frames[k])
        f = self.directions[:d]
        turns = self.directions[d:] * (a[None, :] / a[:, None])
        ff = np.einsum("aij,bjl,li->ab", f, f, G)
        # E = e^O e^f e^Oᵀ − I with O = A^{-1/2}ΩA^{1/2}: to second order ½O² + ½OᵀOᵀ + OOᵀ + ½f² + Of + fOᵀ
        square = np.einsum("aij,bjl,li->ab", turns, turns, G) + np.einsum("aij,blj,li->ab", turns, turns, G)
        mixed = 2 * np.einsum("aij,bjl,li->ab", turns, f, G)
        return np.block([[0.5 * (ff + ff.T), mixed.T], [mixed, square + square.T]])
