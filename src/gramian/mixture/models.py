r"""The 14 covariance models: names, how many parameters each has, and the covariances that maximise its likelihood.

Three letters say of volume, shape and orientation of :math:`\Sigma_k=\lambda_kD_kA_kD_k^T` whether components have them
equal (E), each their own (V), or those of a sphere or of the axes (I) (Banfield and Raftery 1993; mclust). With counts
N and scatter matrices T, a maximisation step maximises

.. math:: Q = -\tfrac12\sum_k\bigl(N_k\ln|\Sigma_k|+\operatorname{tr}\Sigma_k^{-1}T_k\bigr)

Diagonal models keep variances, of shape (K, d), in place of matrices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dtrtri

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

CLOSE = 1e-13  # relative change of volumes at which alternating ends
LAST_CHANGE = 1e-4  # of the first: from current volumes, a smaller one is the last
ROUNDS = 1000
SWEEPS, SWEEPS_MANY, FEW_AXES = 200, 10, 20  # of axes, and of more than these few: later steps go on with them
STILL = 1e-11  # radians: a sweep that turns no axis by more ends the iterations
LAST_SWEEP = 0.03  # of the first sweep's turn: from current axes, a sweep that turns by less is the last
SHARED = 1e-6  # of the variances: covariances off their common axes by less have them in common
SINGULAR = 1e-12  # smallest eigenvalue of a correlation matrix that is kept
TINY = float(np.finfo(float).tiny)
NO_SCATTER = 1e-290  # along an axis that no row leaves: its inverse is a number


def per_component(v: npt.NDArray[Any], T: Array) -> npt.NDArray[Any]:
    """One number for each component, shaped to multiply T."""
    return v.reshape(-1, *(1,) * (T.ndim - 1))


def _equal_spheres(N: Array, T: Array, current: Array | None) -> Array:
    return np.full(T.shape, T.sum() / (N.sum() * T.shape[1]))


def _own_spheres(N: Array, T: Array, current: Array | None) -> Array:
    return np.repeat((T.mean(axis=1) / N)[:, None], T.shape[1], axis=1)


def _equal(N: Array, T: Array, current: Array | None) -> Array:
    """Covariance ΣT/n of all components together."""
    return np.repeat((T.sum(axis=0) / N.sum())[None], len(N), axis=0)


def _own(N: Array, T: Array, current: Array | None) -> Array:
    return np.asarray(T / per_component(N, T))


def _equal_volumes(N: Array, T: Array, current: Array | None) -> Array:
    """Shapes T/|T|^{1/d}, and one volume Σ|T|^{1/d}/n."""
    sizes = _volumes(T)
    return np.asarray(T * per_component(sizes.sum() / N.sum() / sizes, T))


def _own_volumes(N: Array, T: Array, current: Array | None) -> Array:
    """λ_k = tr(T_kC⁻¹)/dN_k and C ∝ ΣT_k/λ_k in turn, until the volumes stand still; from current ones, nearly."""
    d = T.shape[1]
    spread = T if T.ndim == 2 else np.diagonal(T, axis1=1, axis2=2)
    known = current is not None and current.shape == T.shape
    volumes = _volumes(current) if known and current is not None else spread.mean(axis=1) / N
    C, least = T[0], CLOSE
    for turn in range(ROUNDS):
        C = np.add.reduce(T / per_component(volumes, T), axis=0)
        if T.ndim == 2:
            C /= _volumes(C[None])[0]
            traces = np.add.reduce(T / C, axis=1)
        else:
            L, failed = dpotrf(C, lower=1)
            if failed:
                raise np.linalg.LinAlgError("Matrix is not positive definite")
            size = math.exp(2.0 / d * float(np.add.reduce(np.log(L.diagonal()))))
            C /= size
            R = dtrtri(L, lower=1)[0]
            traces = size * np.add.reduce((R @ T) * R, axis=(1, 2))
        before, volumes = volumes, traces / (d * N)
        change = float(np.max(np.abs(volumes / before - 1)))
        if known and turn == 0:
            least = max(CLOSE, LAST_CHANGE * change)
        if change < least:
            break
    return np.asarray(per_component(volumes, T) * C)


def _own_volumes_together(N: Array, T: Array, current: Array | None) -> Array:
    """The same for several mixtures at once."""
    d, diagonal = T.shape[2], T.ndim == 3
    spread = T if diagonal else np.diagonal(T, axis1=2, axis2=3)
    if current is None:
        volumes = spread.mean(axis=2) / N
    else:
        volumes = _volumes(current.reshape(-1, *T.shape[2:])).reshape(N.shape)
    shapes, live = np.empty((len(T), *T.shape[2:])), np.arange(len(T))
    least, left, counts, at = np.full(len(T), CLOSE), T, N, volumes
    for turn in range(ROUNDS):
        C = np.add.reduce(left / at.reshape(*at.shape, *(1,) * (T.ndim - 2)), axis=1)
        if diagonal:
            C /= np.exp(np.add.reduce(np.log(C), axis=1) / d)[:, None]
            traces = np.add.reduce(left / C[:, None], axis=2)
        else:
            L = np.linalg.cholesky(C)
            size = np.exp(2.0 / d * np.add.reduce(np.log(np.diagonal(L, axis1=1, axis2=2)), axis=1))
            C /= size[:, None, None]
            R = np.linalg.inv(L)[:, None]
            traces = size[:, None] * np.add.reduce((R @ left) * R, axis=(2, 3))
        before, at = at, traces / (d * counts)
        change = np.max(np.abs(at / before - 1), axis=1)
        if current is not None and turn == 0:
            least = np.maximum(CLOSE, LAST_CHANGE * change)
        going = change >= least
        if turn == ROUNDS - 1:
            going[:] = False
        if not going.all():
            shapes[live[~going]], volumes[live[~going]] = C[~going], at[~going]
            live, at, left, counts, least = live[going], at[going], left[going], counts[going], least[going]
            if not len(live):
                break
    return np.asarray(volumes.reshape(*N.shape, *(1,) * (T.ndim - 2)) * shapes[:, None])


def _own_axes(N: Array, T: Array, current: Array | None, *, along: Callable[..., Array]) -> Array:
    """Each component has the axes of its own scatter, largest first, and shares the shape along them."""
    values, axes = np.linalg.eigh(T)
    variances = along(N, np.maximum(values, TINY), None)
    return np.asarray((axes * variances[:, None, :]) @ axes.transpose(0, 2, 1))


def _volumes(T: Array) -> Array:
    """|T|^{1/d} of every component."""
    roots = np.sqrt(T) if T.ndim == 2 else np.diagonal(np.linalg.cholesky(T), axis1=1, axis2=2)
    # Cholesky's does not mind columns of any scale
    return np.asarray(np.exp(np.add.reduce(np.log(roots), axis=1) * (2.0 / T.shape[1])))


def _common_axes(N: Array, T: Array, current: Array | None, *, equal_volumes: bool) -> Array:
    """Covariances DΔ_kDᵀ, by turning the axes of D: from the axes of the current ones, or of the scatter.

    All pairs of axes are turned at once by the angles that would be best for each alone, or by a part of them, which is
    Newton's step with a diagonal Hessian (Pham 2001); where that does not gain, pair by pair.
    """
    if len(N) == 1:
        return _own(N, T, current)
    current = None if current is None or current.ndim == 2 else current
    along = partial(_axis_variances, N, equal_volumes=equal_volumes)

    def height(G: Array) -> float:
        return float(N @ np.add.reduce(np.log(along(G)), axis=1))

    sums = [T.sum(axis=0), (T / N[:, None, None]).sum(axis=0), *T] if current is None else [_blend(current)]
    starts = [np.linalg.eigh(S)[1] for S in sums]
    turned = [D.T @ T @ D for D in starts]
    lows = [height(G) for G in turned]
    best = int(np.argmin(lows))
    D, G, low = starts[best], turned[best], lows[best]
    before, least, first, unit = D, STILL, None, np.eye(T.shape[1])
    for _ in range(SWEEPS if T.shape[1] <= FEW_AXES else SWEEPS_MANY):
        v, most = along(G), 0.0
        angle = _best_angles(G, v)
        size = float(np.max(np.abs(angle)))
        for part in (1.0, 0.5, 0.25, 0.125) if size > 0 else ():
            Q = np.linalg.solve(unit + 0.5 * part * angle, unit - 0.5 * part * angle)
            new = Q.T @ G @ Q
            after = height(new)
            if after < low:
                D, G, low, most = D @ Q, new, after, part * size
                break
        else:  # rounding hides what is left, or the angles are in each other's way
            for j, i in _disjoint_pairs(T.shape[1]) if size > least and T.shape[1] <= FEW_AXES else ():
                D, G, turn = _turn_axes(D, G, along(G), j, i)
                most = max(most, turn)
            low = height(G)
        if first is None and current is not None:
            first = most
            least = max(STILL, LAST_SWEEP * first)
        if most < least:
            break
    v = along(D.T @ T @ D)
    if current is None or not _is_worse(D, v, current, before, N, T):
        return np.asarray((D * v[:, None, :]) @ D.T)
    return current


def _common_axes_together(N: Array, T: Array, current: Array, *, equal_volumes: bool) -> Array:
    """The same for several mixtures at once, from their current covariances."""
    d = T.shape[2]

    def height(counts: Array, G: Array) -> Array:
        logs = np.add.reduce(np.log(_axis_variances(counts, G, equal_volumes=equal_volumes)), axis=-1)
        return np.asarray(np.add.reduce(counts * logs, axis=-1))

    begun = np.linalg.eigh(_blend(current))[1]
    axes, live = begun.copy(), np.arange(len(T))
    D, counts = begun.copy(), N
    G = np.swapaxes(D, 1, 2)[:, None] @ T @ D[:, None]
    low, least, unit = height(N, G), np.full(len(T), STILL), np.eye(d)
    for sweep in range(SWEEPS if d <= FEW_AXES else SWEEPS_MANY):
        angle = _best_angles(G, _axis_variances(counts, G, equal_volumes=equal_volumes))
        size = np.max(np.abs(angle), axis=(1, 2))
        most, open_ = np.zeros(len(live)), np.flatnonzero(size > 0)
        for part in (1.0, 0.5, 0.25, 0.125):
            if not len(open_):
                break
            half = 0.5 * part * angle[open_]
            Q = np.linalg.solve(unit + half, unit - half)
            new = np.swapaxes(Q, 1, 2)[:, None] @ G[open_] @ Q[:, None]
            after = height(counts[open_], new)
            gains = after < low[open_]
            some = open_[gains]
            D[some], G[some], low[some], most[some] = D[some] @ Q[gains], new[gains], after[gains], part * size[some]
            open_ = open_[~gains]
        for i in open_[size[open_] > least[open_]] if d <= FEW_AXES else ():  # the angles are in each other's way
            for a, b in _disjoint_pairs(d):
                v = _axis_variances(counts[i], G[i], equal_volumes=equal_volumes)
                D[i], G[i], turn = _turn_axes(D[i], G[i], v, a, b)
                most[i] = max(most[i], turn)
            low[i] = float(height(counts[i], G[i]))
        if sweep == 0:
            least = np.maximum(STILL, LAST_SWEEP * most)
        going = most >= least
        if not going.all():
            axes[live[~going]] = D[~going]
            live, least = live[going], least[going]
            D, G, low, counts = (x[going] for x in (D, G, low, counts))
            if not len(live):
                break
    axes[live] = D
    turned = np.swapaxes(axes, 1, 2)[:, None] @ T @ axes[:, None]
    v = _axis_variances(N, turned, equal_volumes=equal_volumes)
    found = (axes[:, None] * v[:, :, None, :]) @ np.swapaxes(axes, 1, 2)[:, None]
    # covariances that had these axes but for rounding may have been better
    inside = np.swapaxes(begun, 1, 2)[:, None] @ current @ begun[:, None]
    spread = np.diagonal(inside, axis1=2, axis2=3)
    root = np.sqrt(np.maximum(spread, TINY))
    off = np.max(np.abs(inside / (root[..., :, None] * root[..., None, :]) - unit), axis=(1, 2, 3))
    for i in np.flatnonzero((spread > 0).all(axis=(1, 2)) & (off <= SHARED)):
        old = -2 * expected_log_likelihood(current[i], N[i], T[i])
        new = float(N[i] @ np.sum(np.log(v[i]), axis=1)) + float(
            np.sum(np.diagonal(turned[i], axis1=1, axis2=2) / v[i])
        )
        if old < new - 1e-12 * abs(new):
            found[i] = current[i]
    return np.asarray(found)


def _best_angles(G: Array, v: Array) -> Array:
    """By how much to turn every pair of axes, were it alone."""
    g, inverse = np.diagonal(G, axis1=-2, axis2=-1), 1 / v
    change = inverse[..., :, None] - inverse[..., None, :]
    alpha = 0.5 * np.add.reduce(change * (g[..., :, None] - g[..., None, :]), axis=-3)
    beta = np.add.reduce(change * G, axis=-3)
    angle = np.where((beta == 0.0) & (alpha <= 0.0), 0.0, 0.5 * np.arctan2(-beta, -alpha))
    angle -= np.round(angle / (0.5 * math.pi)) * 0.5 * math.pi  # quarters only rename axes
    return np.asarray(0.5 * (angle - np.swapaxes(angle, -1, -2)))


def _axis_variances(N: Array, G: Array, *, equal_volumes: bool) -> Array:
    """Best variances along the axes: diag(G)/N, or with one volume for all."""
    g = np.maximum(np.diagonal(G, axis1=-2, axis2=-1), NO_SCATTER)
    if not equal_volumes:
        return np.asarray(g / N[..., None])
    sizes = np.exp(np.add.reduce(np.log(g), axis=-1) / g.shape[-1])
    share = sizes.sum(axis=-1, keepdims=True) / N.sum(axis=-1, keepdims=True) / sizes
    return np.asarray(g * share[..., None])


def _blend(covariances: Array) -> Array:
    """A sum with uneven weights: where covariances share axes, its eigenvalues are apart and its axes theirs."""
    k = covariances.shape[-3]
    uneven = 1.0 + np.modf(np.arange(1, k + 1) * (math.sqrt(5) - 1) / 2)[0]
    sizes = np.trace(covariances, axis1=-2, axis2=-1)
    return np.asarray(np.sum((uneven / sizes)[..., None, None] * covariances, axis=-3))


def _disjoint_pairs(d: int) -> list[tuple[Index, Index]]:
    """Every pair of axes once, in rounds of disjoint pairs: a round-robin tournament, with a bye where d is odd."""
    m = d + d % 2
    ring, out = list(range(1, m)), []
    for turn in range(m - 1):
        order = [0, *ring[turn:], *ring[:turn]]
        pairs = [(order[i], order[m - 1 - i]) for i in range(m // 2)]
        kept = [(min(p), max(p)) for p in pairs if max(p) < d]
        out.append((np.array([p[0] for p in kept]), np.array([p[1] for p in kept])))
    return [pairs for pairs in out if len(pairs[0])]


def _turn_axes(D: Array, G: Array, v: Array, j: Index, i: Index) -> tuple[Array, Array, float]:
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


def _is_worse(D: Array, v: Array, current: Array, axes: Array, N: Array, T: Array) -> bool:
    """Whether the current covariances, if they have these axes in common but for rounding, were better than DvDᵀ."""
    inside = axes.T @ current @ axes
    spread = np.diagonal(inside, axis1=1, axis2=2)
    if not (spread > 0).all():  # singular to rounding
        return False
    size = np.sqrt(spread)
    if np.max(np.abs(inside / (size[:, :, None] * size[:, None, :]) - np.eye(len(D)))) > SHARED:
        return False
    before = -2 * expected_log_likelihood(current, N, T)
    after = float(N @ np.sum(np.log(v), axis=1) + np.sum(np.diagonal(D.T @ T @ D, axis1=1, axis2=2) / v))
    return before < after - 1e-12 * abs(after)


_MAXIMISERS: dict[str, Callable[[Array, Array, Array | None], Array]] = {
    "EII": _equal_spheres,
    "VII": _own_spheres,
    "EEI": _equal,
    "VEI": _own_volumes,
    "EVI": _equal_volumes,
    "VVI": _own,
    "EEE": _equal,
    "VEE": _own_volumes,
    "EVE": partial(_common_axes, equal_volumes=True),
    "VVE": partial(_common_axes, equal_volumes=False),
    "EEV": partial(_own_axes, along=_equal),
    "VEV": partial(_own_axes, along=_own_volumes),
    "EVV": _equal_volumes,
    "VVV": _own,
}
MODELS = tuple(_MAXIMISERS)
SPHERICAL = frozenset(m for m in MODELS if m[1] == "I")
DIAGONAL = frozenset(m for m in MODELS if m[2] == "I")
POOLED = tuple(m for m in MODELS if "V" not in m)  # one covariance for all
SEPARATE = tuple(m for m in MODELS if "E" not in m)  # each component its own, whatever the others have
SHARED_SHAPE = tuple(m for m in MODELS if m[1] == "E" and m not in POOLED)
ROTATING = ("EVE", "VVE", "EEV", "VEV")  # orientations are axes, equal or each its own, apart from shapes
RICHNESS = "IEV"
SKLEARN_NAMES = {"spherical": "VII", "diag": "VVI", "tied": "EEE", "full": "VVV"}
UNIVARIATE = {"E": "EII", "V": "VII"}


def resolve_model(name: str, d: int) -> str:
    """Return the three letters of a model, given those, scikit-learn's name, or E or V for one column.

    Parameters
    ----------
    name : str
        The name of a covariance model.
    d : int
        Number of columns.

    Returns
    -------
    str
        Its three letters.

    Examples
    --------
    >>> from gramian.mixture import resolve_model
    >>> resolve_model("tied", 3), resolve_model("V", 1), resolve_model("EVE", 2)
    ('EEE', 'VII', 'EVE')
    """
    if name in UNIVARIATE and d != 1:
        raise ValueError(f"Model {name!r} is for one column, and the data have {d}. Use one of {', '.join(MODELS)}.")
    letters = SKLEARN_NAMES.get(name, UNIVARIATE.get(name, name))
    if letters not in MODELS:
        raise ValueError(
            f"There is no covariance model {name!r}. Use one of {', '.join(MODELS)}; {', '.join(SKLEARN_NAMES)}; "
            "or E, V for one column."
        )
    return letters


def is_nested(poor: str, rich: str) -> bool:
    """Whether every mixture of one model is one of the other: each letter is the same or allows more.

    Examples
    --------
    >>> from gramian.mixture.models import is_nested
    >>> is_nested("EEI", "VEE"), is_nested("VEI", "EVE")
    (True, False)
    """
    return all(RICHNESS.index(a) <= RICHNESS.index(b) for a, b in zip(poor, rich, strict=True))


def covariance_parameters(model: str, k: int, d: int) -> int:
    """Return how many free parameters k covariances of d columns have together.

    Parameters
    ----------
    model : str
        Three letters of a covariance model.
    k, d : int
        Numbers of components and of columns.

    Returns
    -------
    int
        Of all covariances together.

    Examples
    --------
    >>> from gramian.mixture import covariance_parameters
    >>> covariance_parameters("VVV", 3, 2), covariance_parameters("EEE", 3, 2)
    (9, 3)
    """
    times = {"I": 0, "E": 1, "V": k}
    return times[model[0]] + times[model[1]] * (d - 1) + times[model[2]] * (d * (d - 1) // 2)


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

    Returns
    -------
    ndarray of shape (K, d, d), or (K, d) for diagonal models
        The covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.models import maximise_covariances
    >>> maximise_covariances("EEI", np.array([1.0, 3.0]), np.array([[4.0, 8.0], [8.0, 4.0]]))
    array([[3., 3.],
           [3., 3.]])
    >>> T = np.array([np.diag([8.0, 2.0]), np.diag([2.0, 2.0])])
    >>> maximise_covariances("VVE", np.array([2.0, 1.0]), T)[0].round(12)
    array([[4., 0.],
           [0., 1.]])
    """
    return np.ascontiguousarray(_MAXIMISERS[model](N, T, current))


def maximise_together(model: str, N: Array, T: Array, current: Array) -> Array:
    """The same of several mixtures at once, with a leading axis: each from its own current covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.models import maximise_covariances, maximise_together
    >>> rng = np.random.default_rng(0)
    >>> A = rng.normal(size=(2, 3, 5, 4))
    >>> N, T, now = np.ones((2, 3)), np.swapaxes(A, 2, 3) @ A, np.broadcast_to(np.eye(4), (2, 3, 4, 4))
    >>> both = maximise_together("VEE", N, T, now)
    >>> bool(np.allclose(both[1], maximise_covariances("VEE", N[1], T[1], now[1])))
    True
    """
    if model in ("VEI", "VEE"):
        return _own_volumes_together(N, T, current)
    if model in ("EVE", "VVE") and N.shape[1] > 1:
        return _common_axes_together(N, T, current, equal_volumes=model == "EVE")
    if model in ("EVI", "EVV"):
        sizes = _volumes(T.reshape(-1, *T.shape[2:])).reshape(N.shape)
        factors = sizes.sum(axis=1, keepdims=True) / N.sum(axis=1, keepdims=True) / sizes
        return np.asarray(T * factors.reshape(*factors.shape, *(1,) * (T.ndim - 2)))
    if model in ("EEV", "VEV"):
        values, axes = np.linalg.eigh(T)
        values = np.maximum(values, TINY)
        if model == "EEV":
            variances = np.broadcast_to((values.sum(axis=1) / N.sum(axis=1)[:, None])[:, None, :], values.shape)
        else:
            variances = _own_volumes_together(N, values, None)
        return np.asarray((axes * variances[..., None, :]) @ np.swapaxes(axes, 2, 3))
    return np.stack([maximise_covariances(model, n, t, c) for n, t, c in zip(N, T, current, strict=True)])


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


def covariance_axes(covariances: Array, *, common: bool) -> Array:
    """Eigenvectors of every component, or those that all share, of shape (K, d, d)."""
    if not common:
        return np.asarray(np.linalg.eigh(covariances)[1])
    return np.repeat(np.linalg.eigh(_blend(covariances))[1][None], len(covariances), axis=0)


def maximise_above(model: str, N: Array, T: Array, floor: Array, current: Array | None) -> Array:
    """The covariances of a model that maximise Q with no variance below a floor, of shape (d,)."""
    if model in SHARED_SHAPE:  # a component's own scatter may well be singular: first without the floor
        with np.errstate(all="ignore"):
            try:
                free = maximise_covariances(model, N, T, current)
            except np.linalg.LinAlgError:  # the scatter of all components together is singular
                free = None
        if free is not None and np.isfinite(free).all() and smallest_variances(model, free, floor).min() >= 1.0:
            return free
    above = raise_scatter(model, N, T, floor)
    new = maximise_covariances(model, N, above, current)
    if new.ndim == 3 and model not in (*POOLED, *SEPARATE) and above is not T:
        # axes are found in the units of the data, where their rounding may hide a variance at the floor
        new = raise_scatter("VVV", np.ones(len(new)), new, 0.5 * floor)
    exact = T.ndim == 2 and model in (*POOLED, *SEPARATE)
    if above is T or exact or current is None or current.shape != new.shape:
        return new
    falls = expected_log_likelihood(new, N, T) < expected_log_likelihood(current, N, T)
    return current if falls and smallest_variances(model, current, floor).min() >= 0.5 else new


def raise_scatter(model: str, N: Array, T: Array, floor: Array) -> Array:
    """Scatter matrices with T_k/N_k raised to the floor, each on its own or all together, as the model has it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture.models import raise_scatter
    >>> raise_scatter("VVI", np.array([2.0]), np.array([[0.0, 8.0]]), np.array([0.5, 0.5]))
    array([[1., 8.]])
    """
    if model in POOLED:
        total = T.sum(axis=0, keepdims=True)
        more = raise_scatter(model.replace("E", "V"), np.array([N.sum()]), total, floor) - total
        return T + per_component(N / N.sum(), T) * more if more.any() else T
    if model in SPHERICAL:
        low = T.mean(axis=1) < N * floor.mean()
        return np.where(low[:, None], N[:, None] * floor.mean(), T)
    if T.ndim == 2:
        return np.maximum(T, N[:, None] * floor)
    root = np.sqrt(np.maximum(N[:, None] * floor, SINGULAR * np.diagonal(T, axis1=1, axis2=2)))
    unit = root[:, :, None] * root[:, None, :]
    try:  # nothing is touched where no eigenvalue is below 1
        np.linalg.cholesky(T / unit - np.eye(len(floor)))
        return T
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(T / unit)
        above = (vectors * np.maximum(values, 1.0)[:, None, :]) @ vectors.transpose(0, 2, 1) * unit
        return np.where(values[:, :1, None] < 1.0, above, T)


def smallest_variances(model: str, S: Array, floor: Array) -> Array:
    """The smallest variance of each covariance in units of the floor: 1 where the floor holds it."""
    if model in SPHERICAL:
        return np.asarray(S.mean(axis=1) / floor.mean())
    if S.ndim == 2:
        return np.asarray(np.min(S / floor, axis=1))
    return np.asarray(np.linalg.eigvalsh(in_units(S, floor))[:, 0])


def in_units(S: Array, floor: Array) -> Array:
    """Covariance matrices in units of the floor under each."""
    root = np.sqrt(np.maximum(floor, SINGULAR * np.diagonal(S, axis1=-2, axis2=-1)))
    return np.asarray(S / (root[..., :, None] * root[..., None, :]))
