r"""Parameters that are held or shared, as masks and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.likelihood.mixture.models import covariance_parameters
from gramian.likelihood.mixture.parameters import Mixture

__all__ = ["Constraints"]

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.intp]

OWN = ("VII", "VVI", "VVV")


@dataclass(frozen=True, eq=False)
class Constraints:
    """What a fit may not change, and what it must keep equal.

    Held values are those of the mixture that a fit starts from.

    Attributes
    ----------
    fixed_weights, fixed_covariances : bool ndarray of shape (K,), optional
        True where a component's weight or covariance is held.
    fixed_means : bool ndarray of shape (K, d), optional
        True where an entry of a mean is held.
    tied_weights, tied_covariances : int ndarray of shape (K,), optional
        Components with the same label share one value.
    tied_means : int ndarray of shape (K, d), optional
        Entries of one column with the same label share one value.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture import Constraints
    >>> even = Constraints(tied_weights=np.zeros(3, int))
    >>> even.weights(np.array([1.0, 2.0, 3.0]), None)
    array([0.33333333, 0.33333333, 0.33333333])
    """

    fixed_weights: Mask | None = None
    fixed_means: Mask | None = None
    fixed_covariances: Mask | None = None
    tied_weights: Labels | None = None
    tied_means: Labels | None = None
    tied_covariances: Labels | None = None

    def __post_init__(self) -> None:
        """Take plain lists too, and refuse what is neither true or false nor a label."""
        for part in ("weights", "means", "covariances"):
            for kind in ("fixed", "tied"):
                value = getattr(self, f"{kind}_{part}")
                if value is not None:
                    object.__setattr__(self, f"{kind}_{part}", _asked(f"{kind}_{part}", value, kind == "fixed"))

    def check(self, mixture: Mixture) -> None:
        """Refuse masks that do not fit a mixture, and covariances that the model couples."""
        k, d = mixture.centres.shape
        for name, shape in (("weights", (k,)), ("means", (k, d)), ("covariances", (k,))):
            for kind in ("fixed", "tied"):
                value = getattr(self, f"{kind}_{name}")
                if value is not None and np.shape(value) != shape:
                    raise ValueError(f"{kind}_{name} must have shape {shape}; it has {np.shape(value)}.")
        held = self.fixed_covariances is not None and not np.all(self.fixed_covariances)
        if (held or self.tied_covariances is not None) and mixture.model not in OWN:
            raise ValueError(
                f"Covariances of some components can be held or shared in the models {', '.join(OWN)}; in "
                f"{mixture.model} they depend on one another. Use one of these, or hold all."
            )

    def weights(self, N: Array, current: Mixture | None) -> Array:
        """Weights that maximise Σ N ln π."""
        fixed = np.zeros(len(N), bool) if self.fixed_weights is None else self.fixed_weights
        labels = np.arange(len(N)) if self.tied_weights is None else self.tied_weights
        out = np.zeros(len(N)) if current is None else np.where(fixed, current.weights, 0.0)
        free = ~fixed
        if not free.any():
            return out
        _, group = np.unique(labels[free], return_inverse=True)
        share = (np.bincount(group, N[free]) / np.bincount(group))[group]
        total = float(share.sum())
        out[free] = (1.0 - out.sum()) * (share / total if total > 0 else 1.0 / len(share))
        return out

    def means(self, N: Array, centres: Array, current: Mixture | None) -> Array:
        r"""Centres that minimise :math:`\sum_kN_k\|L_k^{-1}(m_k-\bar x_k)\|^2` at the current covariances."""
        if (self.fixed_means is None and self.tied_means is None) or current is None:
            return centres
        A, held = self._map(centres.shape), self._held(centres.shape)
        b = np.where(held, current.centres, 0.0).ravel()
        k, d = centres.shape
        R = current.roots[:, :, None] * np.eye(d) if current.diagonal else current.roots
        R = np.sqrt(N)[:, None, None] * R
        rows = np.einsum("kij,kjq->kiq", R, A.reshape(k, d, -1)).reshape(k * d, -1)
        aim = np.einsum("kij,kj->ki", R, centres - b.reshape(k, d)).ravel()
        return np.asarray((A @ np.linalg.lstsq(rows, aim)[0] + b).reshape(k, d))

    def covariances(self, N: Array, T: Array, current: Mixture | None) -> tuple[Array, Array]:
        """Counts and scatter matrices in which held components are at their optimum and tied ones are summed."""
        if self.tied_covariances is not None:
            _, group = np.unique(self.tied_covariances, return_inverse=True)
            together = (group[:, None] == group).astype(np.float64)
            N, T = together @ N, np.tensordot(together, T, axes=1)
        if self.fixed_covariances is not None and current is not None:
            held = self.fixed_covariances
            counts = N.reshape(-1, *(1,) * (T.ndim - 1))
            T = np.where(held.reshape(counts.shape), counts * current.covariances, T)
        return N, T

    def equations(self, frames: Array, index: Labels, size: int) -> Array:
        """Linear equations that held and shared parameters put on the coordinates of a chart, one per row."""
        k, d = frames.shape[:2]
        weights = np.vstack([np.eye(k - 1, size), -np.eye(k - 1, size).sum(axis=0)])
        means = np.zeros((k, d, size))
        for j in range(k):
            means[j][:, k - 1 + j * d + np.arange(d)] = frames[j]
        spread = np.eye(size)[index]
        found = [
            *_equations(weights, self.fixed_weights, self.tied_weights),
            *(
                row
                for j in range(d)
                for row in _equations(means[:, j], _column(self.fixed_means, j), _column(self.tied_means, j))
            ),
            *_equations(spread, self.fixed_covariances, self.tied_covariances),
        ]
        return np.array(found).reshape(-1, size)

    def free_parameters(self, mixture: Mixture) -> int:
        """How many parameters are left free."""
        k, d = mixture.centres.shape
        fixed = np.zeros(k, bool) if self.fixed_weights is None else self.fixed_weights
        labels = np.arange(k) if self.tied_weights is None else self.tied_weights
        weights = max(len(np.unique(labels[~fixed])) - 1, 0)
        return int(weights + self._map((k, d)).shape[1] + self._free_covariances(mixture))

    def _free_covariances(self, mixture: Mixture) -> int:
        k, d = mixture.centres.shape
        held = np.zeros(k, bool) if self.fixed_covariances is None else self.fixed_covariances
        if held.all():
            return 0
        if mixture.model not in OWN:
            return covariance_parameters(mixture.model, k, d)
        labels = np.arange(k) if self.tied_covariances is None else self.tied_covariances
        return len(np.unique(labels[~held])) * covariance_parameters(mixture.model, 1, d)

    def _held(self, shape: tuple[int, ...]) -> Mask:
        return np.zeros(shape, bool) if self.fixed_means is None else self.fixed_means

    def _map(self, shape: tuple[int, ...]) -> Array:
        """The linear map from free means to the entries of all: one column per free value."""
        k, d = shape
        labels = np.arange(k)[:, None] + np.zeros((k, d), int) if self.tied_means is None else self.tied_means
        keys = labels * d + np.arange(d)
        free = np.unique(keys[~self._held((k, d))])
        return np.asarray((keys.ravel()[:, None] == free) & ~self._held((k, d)).ravel()[:, None], dtype=np.float64)


def _asked(name: str, value: Any, masks: bool) -> npt.NDArray[Any]:
    """A mask of bool or labels of int, from whatever sequence has such entries."""
    try:
        given = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} has rows of unequal length: {value!r}.") from None
    zeros = given.dtype.kind in "iuf" and bool(np.isin(given, (0, 1)).all())
    if masks and (given.dtype.kind == "b" or zeros):
        return given.astype(bool)
    if not masks and (given.dtype.kind in "iu" or (given.dtype.kind == "f" and bool((given == np.round(given)).all()))):
        return given.astype(np.intp)
    what = "True or False for each" if masks else "whole numbers: the same one for those that share a value"
    raise ValueError(f"{name} must be {what}; got {value!r}.")


def _column(values: npt.NDArray[np.generic] | None, j: int) -> npt.NDArray[np.generic] | None:
    return None if values is None else values[:, j]


def _equations(rows: Array, fixed: npt.NDArray[np.generic] | None, tied: npt.NDArray[np.generic] | None) -> list[Array]:
    """Rows that must be 0 where fixed, and differences of rows that must be 0 where tied."""
    size = rows.shape[-1]
    found = [] if fixed is None else list(rows[fixed.astype(bool)].reshape(-1, size))
    for label in [] if tied is None else np.unique(tied):
        same = rows[tied == label]
        found += list((same[1:] - same[:1]).reshape(-1, size))
    return found
