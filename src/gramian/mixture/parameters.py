r"""Mixture regression: what some columns are expected to be where others are known.

.. math:: E(y|x)=\sum_kr_k(x)\,m_k(x),\qquad
    \operatorname{Cov}(y|x)=\sum_kr_k(x)\bigl(C_k+m_k(x)m_k(x)^T\bigr)-E(y|x)E(y|x)^T

with :math:`r_k(x)` the responsibilities by x alone, and :math:`m_k(x), C_k` the regression of each component.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtrtri
from scipy.special import logsumexp

from gramian.compute.devices import gpu, is_tensor, to_device, to_numpy
from gramian.compute.mixture import Components, log_densities
from gramian.mixture import missing

__all__ = [
    "DIAGONAL",
    "MODELS",
    "NAMES",
    "Mixture",
    "column_numbers",
    "covariance_parameters",
    "free_parameters",
    "numbers",
    "regress",
    "resolve_model",
    "unmasked",
]


def numbers(name: str, value: Any) -> npt.NDArray[np.float64]:
    """The value as an array of float64, or an error that names it.

    Examples
    --------
    >>> from gramian.mixture.parameters import numbers
    >>> numbers("edges", [0, 1])
    array([0., 1.])
    """
    try:
        given = np.asarray(to_numpy(value) if is_tensor(value) else unmasked(value))
        if given.dtype.kind not in "biufO":
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError):
        shown = repr(value) if len(repr(value)) < 80 else f"{repr(value)[:76]} …"
        raise ValueError(f"{name} must be an array of real numbers, with rows of one length; got {shown}.") from None


def unmasked(X: Any) -> Any:
    """Masked cells as NaN: they are missing. All else as it is."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    values = np.array(X.data, dtype=X.dtype if X.dtype.kind in "fc" else np.float64)
    values[np.ma.getmaskarray(X)] = np.nan
    return values


def column_numbers(columns: Iterable[Any], d: int) -> npt.NDArray[np.intp]:
    """Columns by number, each once, counted from the end where negative."""
    found: list[int] = []
    for j in columns:
        if isinstance(j, (bool, np.bool_)) or not isinstance(j, Integral):
            mask = " For a mask, use np.flatnonzero(mask)." if isinstance(j, (bool, np.bool_)) else ""
            raise ValueError(f"A column is named by a whole number; got {j!r}.{mask}")
        if not -d <= int(j) < d:
            raise ValueError(f"There is no column {j}; there are {d}.")
        found.append(int(j) % d)
    if len(set(found)) < len(found) or not found:
        raise ValueError(f"Name one column or more, each once; got {found}.")
    return np.array(found, dtype=np.intp)


MODELS = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")
DIAGONAL = frozenset(MODELS[:6])
NAMES = {"spherical": "VII", "diag": "VVI", "tied": "EEE", "full": "VVV"}
UNIVARIATE = {"E": "EII", "V": "VII"}


def resolve_model(name: str, d: int) -> str:
    """Return the three letters of a model, given those, scikit-learn's name, or E or V for one column.

    Examples
    --------
    >>> from gramian.mixture import resolve_model
    >>> resolve_model("tied", 3), resolve_model("V", 1), resolve_model("EVE", 2)
    ('EEE', 'VII', 'EVE')
    """
    if name in UNIVARIATE and d != 1:
        raise ValueError(f"Model {name!r} is for one column, and the data have {d}. Use one of {', '.join(MODELS)}.")
    found = NAMES.get(name, UNIVARIATE.get(name, name))
    if found not in MODELS:
        raise ValueError(
            f"There is no covariance model {name!r}. Use one of {', '.join(MODELS)}; {', '.join(NAMES)}; "
            "or E, V for one column."
        )
    return found


def covariance_parameters(model: str, k: int, d: int) -> int:
    """Return how many free parameters k covariances of d columns have together.

    Examples
    --------
    >>> from gramian.mixture import covariance_parameters
    >>> covariance_parameters("VVV", 3, 2), covariance_parameters("EEE", 3, 2)
    (9, 3)
    """
    times = {"I": 0, "E": 1, "V": k}
    return times[model[0]] + times[model[1]] * (d - 1) + times[model[2]] * (d * (d - 1) // 2)


def free_parameters(model: str, k: int, d: int) -> int:
    """Return how many parameters a mixture has free: k − 1 weights, kd means, and its covariances, as mclust counts.

    Examples
    --------
    >>> from gramian.mixture import free_parameters
    >>> free_parameters("VVV", 3, 2), free_parameters("VII", 2, 1)
    (17, 5)
    """
    return k - 1 + k * d + covariance_parameters(resolve_model(model, d), k, d)


Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
    r"""A mixture of K normal distributions in d columns.

    .. math:: p(x) = \sum_k\pi_kN(x;\ c+m_k,\ \Sigma_k)

    Means are kept as distances m from an origin c, so that data far from 0 cost no digits. :meth:`of` makes a mixture
    from plain means.

    Attributes
    ----------
    weights : ndarray of shape (K,)
        Proportions π; they sum to 1.
    centres : ndarray of shape (K, d)
        Means, measured from the origin.
    covariances : ndarray of shape (K, d, d) or (K, d)
        Covariance matrices, or variances where the model is diagonal.
    model : str
        Three letters; see :mod:`gramian.mixture.parameters`.
    origin : ndarray of shape (d,)
        What centres are measured from.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import Mixture
    >>> two = Mixture.of([0.3, 0.7], [[0.0], [4.0]], [1.0, 2.0], "V")
    >>> two
    Mixture(VII, 2 components, 1 column): weights 0.3, 0.7
    >>> two.responsibilities([[0.0], [4.0]]).round(3)
    array([[0.971, 0.029],
           [0.   , 1.   ]])
    """

    weights: Array
    centres: Array
    covariances: Array
    model: str
    origin: Array

    @classmethod
    def of(cls, weights: Any, means: Any, covariances: Any, model: str = "VVV", origin: Any | None = None) -> Mixture:
        """Make a mixture, and refuse what is not one.

        Parameters
        ----------
        weights : array-like of shape (K,)
            Proportions; rounding of their sum is corrected.
        means : array-like of shape (K, d)
            Means, measured from ``origin`` where that is given.
        covariances : array-like
            Of shape (K, d, d); or (d, d), one for all, where orientation and shape and volume are equal; (K, d)
            variances or (K,) spherical ones where the model is diagonal.
        model : str, default="VVV"
            Covariance model, by any of its names.
        origin : array-like of shape (d,), optional
            0 unless given.
        """
        centres = np.atleast_2d(numbers("means", means))
        k, d = centres.shape
        letters = resolve_model(model, d)
        shares = _proportions(numbers("weights", weights), k)
        spread = _covariances(numbers("covariances", covariances), k, d, letters)
        start = np.zeros(d) if origin is None else np.asarray(origin, dtype=np.float64)
        if start.shape != (d,) or not np.isfinite(centres).all():
            raise ValueError(f"Means must be finite, of shape (K, d), and the origin of shape (d,) = ({d},).")
        made = cls(shares, centres, spread, letters, start)
        _ = made.roots  # refuses what is not positive definite
        return made

    @property
    def n_components(self) -> int:
        """K."""
        return len(self.weights)

    @property
    def means(self) -> Array:
        """Means as they are: origin + centres."""
        return self.origin + self.centres

    @property
    def diagonal(self) -> bool:
        """Whether covariances are kept as variances."""
        return self.covariances.ndim == 2

    @property
    def matrices(self) -> Array:
        """Covariances of shape (K, d, d), whatever the model."""
        return self.covariances[:, :, None] * np.eye(self.centres.shape[1]) if self.diagonal else self.covariances

    @property
    def free_parameters(self) -> int:
        """How many parameters the model leaves free."""
        return free_parameters(self.model, *self.centres.shape)

    @cached_property
    def factors(self) -> Array:
        """Cholesky factors L of shape (K, d, d), or standard deviations of shape (K, d)."""
        if self.diagonal:
            bad = np.flatnonzero(~(self.covariances > 0).all(axis=1) | ~np.isfinite(self.covariances).all(axis=1))
            if len(bad):
                raise ValueError(f"Component {bad[0]} has a variance that is not positive.")
            return np.sqrt(self.covariances)
        try:
            return np.asarray(np.linalg.cholesky(self.covariances))
        except np.linalg.LinAlgError:
            return np.stack([_factor(S, k) for k, S in enumerate(self.covariances)])  # says which is not

    @cached_property
    def roots(self) -> Array:
        """L⁻¹, so that RΣRᵀ = I; or inverse standard deviations."""
        L = self.factors
        if self.diagonal:
            return np.asarray(1.0 / L)
        return np.stack([dtrtri(factor, lower=1)[0] for factor in L])

    @cached_property
    def log_determinants(self) -> Array:
        """ln|Σ| of every component."""
        diagonal = self.factors if self.diagonal else np.diagonal(self.factors, axis1=1, axis2=2)
        return np.asarray(2.0 * np.sum(np.log(diagonal), axis=1))

    @cached_property
    def components(self) -> Components:
        """The same as the hot loops want it."""
        with np.errstate(divide="ignore"):  # a weight of 0 is a component that takes no part
            shares = np.log(self.weights)
        d = self.centres.shape[1]
        constants = shares - 0.5 * (self.log_determinants + d * math.log(2 * math.pi))
        return Components(self.origin, self.centres, self.roots, constants)

    def joint_log_density(self, X: Any) -> Any:
        """ln π_k N(x; μ_k, Σ_k), of shape (n, K); of the observed cells where X has NaN; a tensor for tensors."""
        rows = self._rows(X)
        there = is_tensor(rows)
        if bool((rows != rows).any()):  # NaN, in NumPy and in torch
            found = missing.joint_log_density(to_numpy(rows), self)
            return to_device(found, rows.device) if there else found
        return (gpu().mixture.log_densities if there else log_densities)(rows, self.components).T

    def component_log_density(self, X: Any) -> Any:
        """ln N(x; μ_k, Σ_k), of shape (n, K)."""
        even = replace(self, weights=np.full(self.n_components, 1.0 / self.n_components))
        return even.joint_log_density(X) + math.log(self.n_components)

    def log_density(self, X: Any) -> Any:
        """ln p(x) of every row."""
        return _log_total(self.joint_log_density(X))

    def log_likelihood(self, X: Any, sample_weight: Any | None = None) -> float:
        """Σ w ln p(x)."""
        each = to_numpy(self.log_density(X))
        return float(each.sum() if sample_weight is None else to_numpy(sample_weight) @ each)

    def responsibilities(self, X: Any) -> Any:
        """P(k | x), of shape (n, K)."""
        joint = self.joint_log_density(X)
        shares = joint - _log_total(joint)[:, None]
        return shares.exp() if is_tensor(shares) else np.exp(shares)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, npt.NDArray[np.int64]]:
        """Draw n rows, and the component of each."""
        labels = rng.choice(self.n_components, size=n, p=self.weights)
        Z, L = rng.standard_normal((n, self.centres.shape[1])), self.factors
        for k in range(self.n_components):
            mine = labels == k
            Z[mine] = (Z[mine] * L[k] if self.diagonal else Z[mine] @ L[k].T) + self.centres[k]
        return Z + self.origin, labels

    def marginal(self, columns: Sequence[int]) -> Mixture:
        """The mixture of some columns; its model is VVI or VVV, unless its own is that of any columns too."""
        keep = column_numbers(columns, len(self.origin))
        spread = self.covariances[:, keep] if self.diagonal else self.covariances[:, keep[:, None], keep]
        model = self.model if self.model in ("EII", "VII", "EEI", "EEE") else "VVI" if self.diagonal else "VVV"
        return Mixture(self.weights, self.centres[:, keep], np.ascontiguousarray(spread), model, self.origin[keep])

    def conditional(self, columns: Sequence[int], values: Any) -> Mixture:
        """The mixture of the other columns where these have these values."""
        given, point = column_numbers(columns, len(self.origin)), np.atleast_2d(numbers("values", values))
        if not np.isfinite(point).all():
            j = int(np.flatnonzero(~np.isfinite(point[0]))[0])
            raise ValueError(
                f"The value of column {given[j]} is {point[0, j]}: give finite ones, and leave out the others."
            )
        rest = np.setdiff1d(np.arange(self.centres.shape[1]), given)
        shares, centres, spread = missing.regression(point, self, given, rest)
        kept = self.marginal([int(j) for j in rest])
        if self.diagonal:
            return replace(kept, weights=shares[0])
        return replace(kept, weights=shares[0], centres=centres[0], covariances=spread)

    def transformed(self, scale: Any = 1.0, shift: Any = 0.0, rotation: Any | None = None) -> Mixture:
        """The mixture of s·(Qx) + t for a number s: what the same data in other units would have given."""
        s = float(scale)
        centres, origin, spread = s * self.centres, s * self.origin, s**2 * self.covariances
        if rotation is not None:
            Q = np.asarray(rotation, dtype=np.float64)
            centres, origin = centres @ Q.T, Q @ origin
            spread = spread if self.model in ("EII", "VII") else Q @ (s**2 * self.matrices) @ Q.T
        model = self.model if spread.ndim == 2 or not self.diagonal else "VVV"
        return Mixture(self.weights, centres, spread, model, origin + np.broadcast_to(shift, origin.shape))

    def measured_from(self, origin: Array) -> Mixture:
        """The same mixture with its centres measured from another origin."""
        return replace(self, centres=self.centres + (self.origin - origin), origin=origin)

    def ordered(self, order: Any) -> Mixture:
        """The same mixture with its components in another order."""
        keep = np.asarray(order, dtype=np.intp)
        return replace(self, weights=self.weights[keep], centres=self.centres[keep], covariances=self.covariances[keep])

    def _rows(self, X: Any) -> Any:
        rows = X if is_tensor(X) else np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != len(self.origin):
            raise ValueError(
                f"X must have {len(self.origin)} columns, as the mixture has; its shape is {tuple(rows.shape)}."
            )
        return rows

    def __repr__(self) -> str:
        k, d = self.centres.shape
        size = f"{k} component{'s' * (k != 1)}, {d} column{'s' * (d != 1)}"
        return f"Mixture({self.model}, {size}): weights {', '.join(f'{w:.3g}' for w in self.weights)}"


def _log_total(joint: Any) -> Any:
    """ln Σ_k exp, of every row, by NumPy or on a tensor's device."""
    return joint.logsumexp(dim=1) if is_tensor(joint) else np.asarray(logsumexp(joint, axis=1))


def _factor(S: Array, k: int) -> Array:
    try:
        return np.asarray(np.linalg.cholesky(S))
    except np.linalg.LinAlgError:
        raise ValueError(f"The covariance of component {k} is not positive definite.") from None


def _proportions(weights: Array, k: int) -> Array:
    if weights.shape != (k,) or not (weights >= 0).all() or abs(weights.sum() - 1.0) > 1e-6:
        raise ValueError(f"Weights must be {k} numbers of at least 0 that sum to 1; got {weights}.")
    return np.asarray(weights / weights.sum())


def _covariances(given: Array, k: int, d: int, model: str) -> Array:
    """Bring covariances of any accepted shape to that of the model."""
    if model in DIAGONAL:
        if given.shape == (k, d, d) and not np.any(given * (1 - np.eye(d))):
            return np.array(np.diagonal(given, axis1=1, axis2=2))
        full = given[:, None] if given.shape == (k,) else given
        if full.ndim == 2 and full.shape in ((k, d), (k, 1)):
            return np.array(np.broadcast_to(full, (k, d)))
        if given.ndim == 0:
            return np.full((k, d), float(given))
    elif given.shape in ((k, d, d), (d, d)):
        return np.array(np.broadcast_to((given + np.swapaxes(given, -1, -2)) / 2, (k, d, d)))
    raise ValueError(f"Covariances of shape {given.shape} do not fit {k} components, {d} columns and model {model}.")


def regress(mixture: Mixture, columns: Sequence[int], values: Any) -> tuple[Array, Array]:
    """Mean (n, u) and covariance (n, u, u) of the other columns, in their order, for rows of values of these.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import Mixture, regress
    >>> line = Mixture.of([1.0], [[0.0, 1.0]], [[[1.0, 2.0], [2.0, 5.0]]])
    >>> mean, covariance = regress(line, [0], [[3.0]])
    >>> mean.round(6), covariance.round(6)
    (array([[7.]]), array([[[1.]]]))
    """
    given = column_numbers(columns, len(mixture.origin))
    rest = np.setdiff1d(np.arange(len(mixture.origin)), given)
    X = np.atleast_2d(numbers("values", values))
    if X.shape[1] != len(given):
        raise ValueError(f"Each row must have {len(given)} values, for columns {given.tolist()}; got shape {X.shape}.")
    shares, centres, spread = missing.regression(X, mixture, given, rest)
    C = spread[:, :, None] * np.eye(len(rest)) if mixture.diagonal else spread
    mean = np.einsum("nk,nku->nu", shares, centres)
    away = centres - mean[:, None, :]
    covariance = np.einsum("nk,kuv->nuv", shares, C) + np.einsum("nk,nku,nkv->nuv", shares, away, away)
    return mean + mixture.origin[rest], covariance
