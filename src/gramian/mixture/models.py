r"""The maximisation step: statistics in, a mixture of the model out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from gramian.mixture.parameters import DIAGONAL, Mixture, covariance_parameters, resolve_model
from gramian.mixture.statistics import Statistics

if TYPE_CHECKING:
    from gramian.mixture.statistics import Data

__all__ = [
    "EMPTY",
    "FLOOR",
    "POOLED",
    "SHARED_SHAPE",
    "Constraints",
    "Maximiser",
    "Prior",
    "axes_of",
    "common_axes",
    "expected_log_likelihood",
    "in_units",
    "lowest",
    "maximise_covariances",
    "raised",
    "step_length",
]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

SWEEPS = 200
STILL = 1e-11  # radians: a sweep that turns no axis by more ends the iterations
SETTLED = 0.03  # of the first sweep's turn: from current axes, a sweep that turns by less is the last
SHARED = 1e-6  # of the variances: covariances off their common axes by less have them in common


def common_axes(model: str, N: Array, T: Array, current: Array | None) -> Array:
    """Covariances DΔ_kDᵀ that maximise Q, from the axes of the current ones or from those of the scatter.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.models import common_axes
    >>> T = np.array([np.diag([8.0, 2.0]), np.diag([2.0, 2.0])])
    >>> common_axes("VVE", np.array([2.0, 1.0]), T, None).round(12)[0]
    array([[4., 0.],
           [0., 1.]])
    """
    current = None if current is None or current.ndim == 2 else current
    D, G = _start(model, N, T, current)
    before, rounds, least, first = D, _rounds(len(D)), STILL, None
    for _ in range(SWEEPS):
        most = 0.0
        for pairs in rounds:
            D, G, turned = _turn(D, G, _spread(model, N, G), *pairs)
            most = max(most, turned)
        if first is None and current is not None:
            first = most
            least = max(STILL, SETTLED * first)
        if most < least:
            break
    v = _spread(model, N, D.T @ T @ D)
    found = np.asarray((D * v[:, None, :]) @ D.T)
    return current if current is not None and _falls(current, before, D, v, N, T) else found


def axes_of(covariances: Array, *, common: bool) -> Array:
    """Eigenvectors of every component, or those that all share, of shape (K, d, d)."""
    if not common:
        return np.asarray(np.linalg.eigh(covariances)[1])
    return np.repeat(np.linalg.eigh(_blend(covariances))[1][None], len(covariances), axis=0)


def _start(model: str, N: Array, T: Array, current: Array | None) -> tuple[Array, Array]:
    """The axes that fit best among those to be had cheaply."""
    sums = [T.sum(axis=0), (T / N[:, None, None]).sum(axis=0)] if current is None else [_blend(current)]
    if current is None:
        sums += list(T)
    starts = [np.linalg.eigh(S)[1] for S in sums]
    rotated = [D.T @ T @ D for D in starts]
    best = min(range(len(starts)), key=lambda i: float(N @ np.sum(np.log(_spread(model, N, rotated[i])), axis=1)))
    return starts[best], rotated[best]


def _blend(covariances: Array) -> Array:
    """A sum with uneven weights: where covariances share axes, its eigenvalues are apart and its axes theirs."""
    k = len(covariances)
    uneven = 1.0 + np.modf(np.arange(1, k + 1) * (math.sqrt(5) - 1) / 2)[0]
    sizes = np.trace(covariances, axis1=1, axis2=2)
    return np.asarray(np.sum((uneven / sizes)[:, None, None] * covariances, axis=0))


def _spread(model: str, N: Array, G: Array) -> Array:
    """The best variances along the axes: diag(G)/N, or with one volume for all."""
    g = np.maximum(np.diagonal(G, axis1=1, axis2=2), np.finfo(float).tiny)
    if model == "VVE":
        return np.asarray(g / N[:, None])
    sizes = np.exp(np.mean(np.log(g), axis=1))
    return np.asarray(g * (sizes.sum() / N.sum() / sizes)[:, None])


def _rounds(d: int) -> list[tuple[Index, Index]]:
    """Every pair of axes once, in rounds of disjoint pairs: a round-robin tournament, with a bye where d is odd."""
    m = d + d % 2
    ring, out = list(range(1, m)), []
    for turn in range(m - 1):
        order = [0, *ring[turn:], *ring[:turn]]
        pairs = [(order[i], order[m - 1 - i]) for i in range(m // 2)]
        kept = [(min(p), max(p)) for p in pairs if max(p) < d]
        out.append((np.array([p[0] for p in kept]), np.array([p[1] for p in kept])))
    return [pairs for pairs in out if len(pairs[0])]


def _turn(D: Array, G: Array, v: Array, j: Index, i: Index) -> tuple[Array, Array, float]:
    """Turn axes j and i of every pair by their best angles; return the largest, up to quarters, which only rename."""
    change = 1 / v[:, j] - 1 / v[:, i]
    alpha = 0.5 * np.sum(change * (G[:, j, j] - G[:, i, i]), axis=0)
    beta = np.sum(change * G[:, j, i], axis=0)
    angle = np.where((beta == 0.0) & (alpha <= 0.0), 0.0, 0.5 * np.arctan2(-beta, -alpha))
    if not angle.any():
        return D, G, 0.0
    R = np.eye(len(D))
    R[j, j] = R[i, i] = np.cos(angle)
    R[i, j] = np.sin(angle)
    R[j, i] = -R[i, j]
    left = angle - np.round(angle / (0.5 * math.pi)) * 0.5 * math.pi
    return D @ R, R.T @ G @ R, float(np.max(np.abs(left)))


def _falls(current: Array, axes: Array, D: Array, v: Array, N: Array, T: Array) -> bool:
    """Whether covariances that have axes in common, if rounding lost some of them, were better than those found."""
    inside = axes.T @ current @ axes
    size = np.sqrt(np.diagonal(inside, axis1=1, axis2=2))
    if np.max(np.abs(inside / (size[:, :, None] * size[:, None, :]) - np.eye(len(D)))) > SHARED:
        return False
    logs, traces = np.linalg.slogdet(current)[1], np.trace(np.linalg.solve(current, T), axis1=1, axis2=2)
    before = float(np.sum(N * logs + traces))
    after = float(N @ np.sum(np.log(v), axis=1) + np.sum(np.diagonal(D.T @ T @ D, axis1=1, axis2=2) / v))
    return before < after - 1e-12 * abs(after)


CLOSE = 1e-13  # relative change of volumes at which alternating ends
ROUNDS = 1000


def expected_log_likelihood(covariances: Array, N: Array, T: Array) -> float:
    """Q, as far as it depends on the covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.models import expected_log_likelihood
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
    >>> from gramian.mixture.models import maximise_covariances
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
    >>> from gramian.mixture import Constraints
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


POOLED = frozenset({"EII", "EEI", "EEE"})  # one covariance for all
SINGULAR = 1e-12  # ρ: smallest eigenvalue of a correlation matrix that is kept
SHARED_SHAPE = frozenset({"VEI", "VEE", "EEV", "VEV"})


def raised(model: str, N: Array, T: Array, scale: Array) -> Array:
    """Scatter matrices with T_k/N_k raised to the floor, each on its own or all together, as the model has it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.models import raised
    >>> raised("VVI", np.array([2.0]), np.array([[0.0, 8.0]]), np.array([0.5, 0.5]))
    array([[1., 8.]])
    """
    if model in POOLED:
        total = T.sum(axis=0, keepdims=True)
        more = _raised(model, np.array([N.sum()]), total, scale) - total
        return T + _like_floor(N / N.sum(), T) * more if more.any() else T
    return _raised(model, N, T, scale)


def lowest(model: str, S: Array, scale: Array) -> Array:
    """The smallest variance of each covariance in units of the floor: 1 where the floor holds it."""
    if model[1] == "I":
        return np.asarray(S.mean(axis=1) / scale.mean())
    if S.ndim == 2:
        return np.asarray(np.min(S / scale, axis=1))
    return np.asarray(np.linalg.eigvalsh(in_units(S, scale))[:, 0])


def in_units(S: Array, scale: Array) -> Array:
    """Covariance matrices in units of the floor under each."""
    root = np.sqrt(np.maximum(scale, SINGULAR * np.diagonal(S, axis1=-2, axis2=-1)))
    return np.asarray(S / (root[..., :, None] * root[..., None, :]))


def _raised(model: str, N: Array, T: Array, scale: Array) -> Array:
    if model[1] == "I":
        low = T.mean(axis=1) < N * scale.mean()
        return np.where(low[:, None], N[:, None] * scale.mean(), T)
    if T.ndim == 2:
        return np.maximum(T, N[:, None] * scale)
    return np.stack([_cut(S, n, scale) for S, n in zip(T, N, strict=True)])


def _cut(S: Array, n: float, scale: Array) -> Array:
    """Eigenvalues below 1 raised to 1, in units of the floor; nothing is touched where there are none."""
    root = np.sqrt(np.maximum(n * scale, SINGULAR * np.diag(S)))
    whitened = S / (root[:, None] * root)
    try:
        np.linalg.cholesky(whitened - np.eye(len(S)))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(whitened)
        return np.asarray((vectors * np.maximum(values, 1.0)) @ vectors.T * (root[:, None] * root))
    return S


def _like_floor(v: Array, T: Array) -> Array:
    return v.reshape(-1, *(1,) * (T.ndim - 1))


FLOOR = 1e-22  # of the variances of the data
ROUNDING = float(np.finfo(float).eps)
CONJUGATE = ("EII", "VII", "EEI", "VVI", "EEE", "VVV")
SHRINKAGE = 0.01


@dataclass(frozen=True, eq=False)
class Prior:
    """A conjugate prior, or a floor.

    Attributes
    ----------
    scale : ndarray of shape (d,) or (d, d)
        Λ, or its diagonal.
    counts : float
        c.
    shrinkage : float
        κ: how many rows at the centre each mean is drawn by.
    centre : ndarray of shape (d,) or None
        μ_P, as it is (not measured from an origin).
    pooled : bool
        Whether it is a prior for one covariance that all components share.
    hard : bool
        Whether it is a floor: covariances may not fall below ``scale``, and nothing else is changed.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Prior, Rows
    >>> Prior.floor(Rows.of(gramian.open(np.array([[0.0], [2.0]])))).scale
    array([1.e-22])
    """

    scale: Array
    counts: float = 0.0
    shrinkage: float = 0.0
    centre: Array | None = None
    pooled: bool = False
    hard: bool = False

    @classmethod
    def floor(cls, data: Data, ratio: float = FLOOR) -> Prior:
        """A floor that no fit notices until a component collapses: Λ = ratio × the variances of the columns.

        The ratio has no units, so data multiplied by 1e8 give the same fit in other units. A column that varies by its
        rounding alone counts as the others do. See :mod:`gramian.mixture.models`.
        """
        varies = data.variances > (4 * ROUNDING * data.origin) ** 2
        spread = np.where(varies, data.variances, data.variances[varies].mean() if varies.any() else 1.0)
        return cls(ratio * spread, hard=True)

    @classmethod
    def conjugate(cls, covariance: Array, mean: Array, model: str, k: int, *, shrinkage: float = SHRINKAGE) -> Prior:
        r"""The default prior of Fraley and Raftery (2007), as in mclust.

        κ = 0.01, ν = d + 2, μ_P the mean of the data, and Λ their covariance divided by :math:`K^{2/d}`; where
        the model is diagonal, the mean of the variances divided likewise.

        Parameters
        ----------
        covariance : ndarray of shape (d, d)
            Of the data, with divisor n − 1.
        mean : ndarray of shape (d,)
            Of the data.
        model : str
            EII, VII, EEI, VVI, EEE or VVV.
        k : int
            How many components.
        shrinkage : float, default=0.01
            κ.
        """
        if model not in CONJUGATE:
            raise ValueError(f"The conjugate prior is for {', '.join(CONJUGATE)}, not {model}. Use one of these.")
        d = len(mean)
        freedom, share = d + 2.0, k ** (2.0 / d)
        even = float(np.trace(covariance)) / d / share
        if model in ("EII", "VII"):
            scale, counts = np.full(d, even / d), (freedom + 2) / d
        elif model in DIAGONAL:
            scale, counts = np.full(d, even), freedom + 2
        else:
            scale, counts = covariance / share, freedom + d + 1
        return cls(
            scale, counts, shrinkage, np.asarray(mean, dtype=np.float64), model in POOLED
        )  # then the prior counts once

    def shrunk(self, N: Array, centres: Array, origin: Array) -> Array:
        """Means drawn towards the prior's centre."""
        if self.centre is None or self.shrinkage == 0.0:
            return centres
        target, kappa = self.centre - origin, self.shrinkage
        return np.asarray(target + (centres - target) * (N / (N + kappa))[:, None])

    def added(self, N: Array, T: Array, centres: Array, origin: Array) -> tuple[Array, Array]:
        """Counts and scatter matrices with the prior's own."""
        if self.hard:
            return N, T
        share = 1.0 / len(N) if self.pooled else 1.0
        total = T + share * _form(self.scale, T.ndim)
        if self.centre is None or self.shrinkage == 0.0:
            return N + share * self.counts, total
        away = centres - (self.centre - origin)
        square = away**2 if T.ndim == 2 else away[:, :, None] * away[:, None, :]
        return N + share * self.counts + 1.0, total + self.shrinkage * square

    def log_density(self, mixture: Mixture) -> float:
        """ln p, up to a constant."""
        k = mixture.n_components
        N, T = self.added(np.zeros(k), np.zeros_like(mixture.covariances), mixture.centres, mixture.origin)
        if mixture.diagonal:
            traces = np.sum(T / mixture.covariances, axis=1)
        else:
            R = mixture.roots
            traces = np.einsum("kij,kjl,kil->k", R, T, R)
        return float(-0.5 * np.sum(N * mixture.log_determinants + traces))


def _form(scale: Array, ndim: int) -> Array:
    if ndim == 3:
        return np.diag(scale) if scale.ndim == 1 else scale
    return scale if scale.ndim == 1 else np.diag(scale)


EXACT = frozenset({"EII", "VII", "EEI", "VVI", "EEE", "VVV"})
EMPTY = 1e-12  # of the total weight: a component with less is left where it is


@dataclass(frozen=True, eq=False)
class Maximiser:
    """The maximisation step of one covariance model.

    Attributes
    ----------
    model : str
        One of the 14 models, or another name of one.
    prior : Prior or None
        Added to the log-likelihood. With none, nothing keeps a component from collapsing.
    constraints : Constraints
        What is held or shared.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Maximiser, Rows
    >>> data = Rows.of(gramian.open(np.array([[0.0], [2.0], [7.0], [9.0]])))
    >>> Maximiser("V")(data.assigned([0, 0, 1, 1], 2, "VII")).means
    array([[1.],
           [8.]])
    """

    model: str
    prior: Prior | None = None
    constraints: Constraints = field(default_factory=Constraints)

    def __call__(self, stats: Statistics, current: Mixture | None = None) -> Mixture:
        """Return the mixture that maximises the expected log-likelihood plus the prior's.

        Where means are held or shared, they are maximised at the current covariances, and covariances at the new
        means; the log-likelihood rises all the same.
        """
        model = resolve_model(self.model, stats.about.shape[1])
        N, rules = stats.counts, self.constraints
        kappa = 0.0 if self.prior is None else self.prior.shrinkage
        centres = stats.centres
        if self.prior is not None:
            centres = self.prior.shrunk(N, centres, stats.origin)
        centres = rules.means(N + kappa, centres, current)
        counts, scatter = N, stats.scatter(centres)
        if self.prior is not None:
            counts, scatter = self.prior.added(N, scatter, centres, stats.origin)
        own = model not in POOLED and (self.prior is None or self.prior.counts == 0.0)
        counts, scatter = _without_empty(stats, counts, scatter, current, own=own)
        counts, scatter = rules.covariances(counts, scatter, current)
        spread = self._covariances(model, counts, scatter, None if current is None else current.covariances)
        return Mixture(rules.weights(N, current), centres, spread, model, stats.origin)

    def _covariances(self, model: str, N: Array, T: Array, current: Array | None) -> Array:
        """The best covariances of the model; with the floor, those above it."""
        if self.prior is None or not self.prior.hard:
            return maximise_covariances(model, N, T, current)
        scale = self.prior.scale
        if model in SHARED_SHAPE:  # a component's own scatter may well be singular
            free = _attempt(model, N, T, current)
            if free is not None and lowest(model, free, scale).min() >= 1.0:
                return free
        above = raised(model, N, T, scale)
        found = maximise_covariances(model, N, above, current)
        if above is T or (model in EXACT and T.ndim == 2) or current is None or current.shape != found.shape:
            return found
        falls = expected_log_likelihood(found, N, T) < expected_log_likelihood(current, N, T)
        return current if falls and lowest(model, current, scale).min() >= 0.5 else found

    def log_prior(self, mixture: Mixture) -> float:
        """What is added to the log-likelihood."""
        return 0.0 if self.prior is None else self.prior.log_density(mixture)

    def free_parameters(self, mixture: Mixture) -> int:
        """How many parameters the model and the constraints leave free."""
        return self.constraints.free_parameters(mixture)


def _attempt(model: str, N: Array, T: Array, current: Array | None) -> Array | None:
    """The covariances without a floor, or none where the scatter of all components together is singular."""
    with np.errstate(all="ignore"):
        try:
            found = maximise_covariances(model, N, T, current)
        except np.linalg.LinAlgError:
            return None
    return found if np.isfinite(found).all() else None


def _without_empty(stats: Statistics, N: Array, T: Array, current: Mixture | None, *, own: bool) -> tuple[Array, Array]:
    """Give a component without rows its own covariance back, at a weight that moves no other.

    There is no need for that where all share one covariance, or where a prior gives it one.
    """
    empty = stats.counts <= EMPTY * stats.weight
    if not empty.any():
        return N, T
    if current is None:
        raise ValueError(f"No row is assigned to component {np.flatnonzero(empty)[0]}. Start from fewer components.")
    if not own:
        return N, T
    tiny = EMPTY * stats.weight
    shape = (-1, *(1,) * (T.ndim - 1))
    return np.where(empty, tiny, N), np.where(empty.reshape(shape), tiny * current.covariances, T)


def step_length(at: Mixture, to: Mixture, weight: float) -> float:
    r"""Length of a step in standard errors of complete data: the gradient's norm, where the step is one of EM.

    .. math:: \sum_k n\pi_k\Bigl[(\Delta\pi_k/\pi_k)^2 + \|L_k^{-1}\Delta\mu_k\|^2
        + \tfrac12\|L_k^{-1}\Delta\Sigma_kL_k^{-T}\|_F^2\Bigr]

    is ΔᵀIΔ with I the information of rows whose components are known; EM's step is I⁻¹ times the score, to first order.
    """
    taking = at.weights > 0
    share = np.where(taking, at.weights, 1.0)
    R, shift, change = at.roots, to.centres - at.centres, to.covariances - at.covariances
    if at.diagonal:
        lengths = np.sum((R * shift) ** 2, axis=1) + 0.5 * np.sum((R**2 * change) ** 2, axis=1)
    else:
        lengths = np.sum(np.einsum("kij,kj->ki", R, shift) ** 2, axis=1)
        lengths += 0.5 * np.sum((R @ change @ R.transpose(0, 2, 1)) ** 2, axis=(1, 2))
    square = weight * float(np.sum((to.weights - at.weights) ** 2 / share) + np.sum(at.weights * lengths))
    return float(np.sqrt(square))
