r"""Parameters of a mixture, the sums that determine them, and what may be held, shared or believed of them beforehand.

* :class:`Mixture`: weights, means and covariances; densities, samples, marginals and conditionals follow from them.
* :class:`SufficientStatistics`: Σr, Σrx and Σrxxᵀ of every component.
* :class:`Constraints`: parameters that a fit may not change, or must keep equal. :class:`Prior`: a floor or a prior.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.special import logsumexp, softmax

from gramian.compute.devices import gpu, is_tensor, to_device, to_numpy
from gramian.compute.mixture import Components, log_densities
from gramian.inputs.checks import is_lazy
from gramian.mixture import missing
from gramian.mixture.models import (
    DIAGONAL,
    MODELS,
    POOLED,
    SEPARATE,
    SPHERICAL,
    covariance_parameters,
    per_component,
    resolve_model,
)
from gramian.sources.arrays import to_numbers

if TYPE_CHECKING:
    from gramian.mixture.binned import Bins
    from gramian.mixture.rows import MixtureRows

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.intp]

FLOOR = 1e-22  # of the variances of the data
EPS = float(np.finfo(float).eps)
LEAST_VARIANCE, MOST_VARIANCE = (
    2.0**-940,
    2.0**1000,
)  # FLOOR times the one, and sums of squares of the other, are normal
FAR = -1e6  # ln π_k N_k of all components, below which it loses the digits that tell them apart
CONJUGATE = tuple(m for m in MODELS if m in POOLED or m in SEPARATE)  # models that have a conjugate prior
SHRINKAGE = 0.01
SUMS = ("counts", "first", "second", "log_likelihood", "weight")  # of sufficient statistics


def as_floats(name: str, value: Any) -> Array:
    """The value as an array of float64, or an error that names it.

    Examples
    --------
    >>> from gramian.mixture.parameters import as_floats
    >>> as_floats("edges", [0, 1])
    array([0., 1.])
    """
    value = value.compute() if is_lazy(value) else to_numpy(value) if is_tensor(value) else value
    if (
        isinstance(value, np.ndarray) and value.dtype.kind in "iuf"
    ):  # of which none is refused but what would be rounded
        return np.asarray(to_numbers(value, name), dtype=np.float64)
    try:
        given = np.asarray(to_numbers(value, name))
        if given.dtype.kind not in "biufO":
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError):
        shown = repr(value) if len(repr(value)) < 80 else f"{repr(value)[:76]} …"
        raise ValueError(f"{name} must be an array of real numbers, with rows of one length; got {shown}.") from None


def resolve_columns(columns: Iterable[Any], d: int) -> npt.NDArray[np.intp]:
    """Columns by number, each once, counted from the end where negative."""
    numbers: list[int] = []
    for j in columns:
        if isinstance(j, (bool, np.bool_)) or not isinstance(j, Integral):
            mask = " For a mask, use np.flatnonzero(mask)." if isinstance(j, (bool, np.bool_)) else ""
            raise ValueError(f"A column is named by a whole number; got {j!r}.{mask}")
        if not -d <= int(j) < d:
            raise ValueError(f"There is no column {j}; there are {d}.")
        numbers.append(int(j) % d)
    if len(set(numbers)) < len(numbers) or not numbers:
        raise ValueError(f"Name one column or more, each once; got {numbers}.")
    return np.array(numbers, dtype=np.intp)


def check_variances(variances: Array, varies: Mask) -> None:
    """Refuse columns whose variances float64 cannot hold, with the power of two that would bring them near 1.

    Parameters
    ----------
    variances : ndarray of shape (d,)
        Of the columns; 0 where squares underflow, inf where they overflow.
    varies : bool ndarray of shape (d,)
        Whether a column has two values at least.
    """
    bad = np.flatnonzero(varies & ~((variances >= LEAST_VARIANCE) & (variances <= MOST_VARIANCE)))
    if len(bad):
        small = variances[bad[0]] < 1.0
        limit, what, power = (LEAST_VARIANCE, "below", "2.0**600") if small else (MOST_VARIANCE, "above", "2.0**-600")
        raise ValueError(
            f"The variance of column {bad[0] + 1} is {what} {limit:.0e}, where float64 has no room for covariances and "
            f"their inverses. Multiply the column by a power of two, such as {power}, which changes no digit."
        )


def free_parameters(model: str, k: int, d: int) -> int:
    """Return how many parameters a mixture has free: k − 1 weights, kd means, and its covariances, as mclust counts.

    Parameters
    ----------
    model : str
        Three letters of a covariance model.
    k, d : int
        Numbers of components and of columns.

    Returns
    -------
    int
        Of the whole mixture.

    Examples
    --------
    >>> from gramian.mixture import free_parameters
    >>> free_parameters("VVV", 3, 2), free_parameters("VII", 2, 1)
    (17, 5)
    """
    return k - 1 + k * d + covariance_parameters(resolve_model(model, d), k, d)


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
        Three letters; see :mod:`gramian.mixture.models`.
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
        centres, shares = np.atleast_2d(as_floats("means", means)), as_floats("weights", weights)
        k, d = centres.shape
        letters = resolve_model(model, d)
        if shares.shape != (k,) or not (shares >= 0).all() or abs(shares.sum() - 1.0) > 1e-6:
            raise ValueError(f"Weights must be {k} numbers of at least 0 that sum to 1; got {shares}.")
        given = as_floats("covariances", covariances)
        if letters not in DIAGONAL:
            fits = given.shape in ((k, d, d), (d, d))
            spread = (given + np.swapaxes(given, -1, -2)) / 2 if fits else given
        else:
            if given.shape == (k, d, d) and not np.any(given * (1 - np.eye(d))):
                given = np.diagonal(given, axis1=1, axis2=2)
            spread = given[:, None] if given.shape == (k,) else given
            fits = spread.shape in ((k, d), (k, 1), ())
        if not fits:
            raise ValueError(
                f"Covariances of shape {given.shape} do not fit {k} components, {d} columns and model {letters}."
            )
        spread = np.array(np.broadcast_to(spread, (k, d) if letters in DIAGONAL else (k, d, d)))
        start = np.zeros(d) if origin is None else np.asarray(origin, dtype=np.float64)
        if start.shape != (d,) or not np.isfinite(centres).all():
            raise ValueError(f"Means must be finite, of shape (K, d), and the origin of shape (d,) = ({d},).")
        made = cls(shares / shares.sum(), centres, spread, letters, start)
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
                raise ValueError(f"Component {bad[0] + 1} has a variance that is not positive.")
            return np.sqrt(self.covariances)
        try:
            return np.asarray(np.linalg.cholesky(self.covariances))
        except np.linalg.LinAlgError:
            k = next(k for k, S in enumerate(self.covariances) if dpotrf(S, lower=1)[1] != 0)
            raise ValueError(f"The covariance of component {k + 1} is not positive definite.") from None

    @cached_property
    def roots(self) -> Array:
        """L⁻¹, so that RΣRᵀ = I; or inverse standard deviations."""
        L = self.factors
        if self.diagonal:
            return np.asarray(1.0 / L)
        R = np.empty_like(L)
        for k, factor in enumerate(L):
            R[k] = dtrtri(factor, lower=1)[0]
        return R

    @cached_property
    def log_determinants(self) -> Array:
        """ln|Σ| of every component."""
        diagonal = self.factors if self.diagonal else np.diagonal(self.factors, axis1=1, axis2=2)
        return np.asarray(2.0 * np.log(diagonal).sum(axis=1))

    @cached_property
    def components(self) -> Components:
        """The same as the hot loops want it."""
        with np.errstate(divide="ignore"):  # a weight of 0 is a component that takes no part
            shares = np.log(self.weights)
        d = self.centres.shape[1]
        # eq: gaussian-density
        constants = shares - 0.5 * (self.log_determinants + d * math.log(2 * math.pi))
        return Components(self.origin, self.centres, self.roots, constants)

    def joint_log_density(self, X: Any) -> Any:
        """ln π_k N(x; μ_k, Σ_k), of shape (n, K); of the observed cells where X has NaN; a tensor for tensors."""
        there = is_tensor(X)
        rows = X if there else np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != len(self.origin):
            raise ValueError(
                f"X must have {len(self.origin)} columns, as the mixture has; its shape is {tuple(rows.shape)}."
            )
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
        joint = self.joint_log_density(X)
        # eq: mixture-density
        return joint.logsumexp(dim=1) if is_tensor(joint) else np.asarray(logsumexp(joint, axis=1))

    def log_likelihood(self, X: Any, sample_weight: Any | None = None) -> float:
        """Σ w ln p(x)."""
        each = to_numpy(self.log_density(X))
        # eq: mixture-likelihood
        return float(each.sum() if sample_weight is None else to_numpy(sample_weight) @ each)

    def relative_log_density(self, X: Any) -> Any:
        r"""ln π_k N(x; μ_k, Σ_k), of shape (n, K), less a number of each row: what tells components apart.

        Far from all of them the densities of two components agree in all digits, or are 0. There the squares of
        :math:`R_k(su-m_k)`, with s the size of the row, are compared power by power,

        .. math:: -\tfrac12s^2\|R_ku\|^2 + s\,(R_ku)^T(R_km_k) + (a_k-\tfrac12\|R_km_k\|^2),

        and the difference of two components is taken before it is multiplied by s.
        """
        joint = self.joint_log_density(X)
        top = joint.amax(1) if is_tensor(joint) else joint.max(axis=1)
        far = ~(top > FAR)
        if not bool(far.any()):
            return joint
        rows = to_numpy(X[far] if is_tensor(X) else np.asarray(X)[far], float)
        apart = np.full((len(rows), self.n_components), -np.inf)
        live = np.flatnonzero(self.weights > 0)
        for mine, seen in missing.group_by_observed(rows):
            part = (self if len(seen) == rows.shape[1] else self.marginal([int(j) for j in seen])).reorder(live)
            D = rows[np.ix_(mine, seen)] - part.origin
            power = np.minimum(np.frexp(np.abs(D).max(axis=1, initial=0.0))[1], 1023)
            U, R = np.ldexp(D, -power[:, None]), part.roots
            if part.diagonal:
                Y, M = U[:, None, :] * R, part.centres * R
            else:
                Y, M = np.einsum("kij,nj->nki", R, U), np.einsum("kij,kj->ki", R, part.centres)
            terms = np.stack(
                [
                    np.broadcast_to(part.components.constants - 0.5 * np.sum(M**2, axis=1), Y.shape[:2]),
                    np.sum(Y * M, axis=2),
                    -0.5 * np.sum(Y**2, axis=2),
                ]
            )
            best = np.lexsort(terms, axis=1)[:, -1:]  # by the highest power of s first
            c, b, a = terms - np.take_along_axis(terms, best[None], axis=2)
            s = np.ldexp(1.0, power)[:, None]
            with np.errstate(over="ignore"):
                apart[np.ix_(mine, live)] = np.clip(s * (s * a + b) + c, -1e300, 1e300)
        joint[far] = to_device(apart, joint.device) if is_tensor(joint) else apart
        return joint

    def responsibilities(self, X: Any) -> Any:
        """P(k | x), of shape (n, K)."""
        joint = self.relative_log_density(X)
        return joint.softmax(dim=1) if is_tensor(joint) else np.asarray(softmax(joint, axis=1))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, npt.NDArray[np.int64]]:
        """Draw n rows, and the component of each."""
        # eq: mixture-latent
        labels = rng.choice(self.n_components, size=n, p=self.weights)
        Z, L = rng.standard_normal((n, self.centres.shape[1])), self.factors
        for k in range(self.n_components):
            mine = labels == k
            Z[mine] = (Z[mine] * L[k] if self.diagonal else Z[mine] @ L[k].T) + self.centres[k]
        return Z + self.origin, labels

    def marginal(self, columns: Sequence[int]) -> Mixture:
        """The mixture of some columns; its model is VVI or VVV, unless its own is that of any columns too."""
        keep = resolve_columns(columns, len(self.origin))
        spread = self.covariances[:, keep] if self.diagonal else self.covariances[:, keep[:, None], keep]
        model = self.model if self.model in ("EII", "VII", "EEI", "EEE") else "VVI" if self.diagonal else "VVV"
        return Mixture(self.weights, self.centres[:, keep], np.ascontiguousarray(spread), model, self.origin[keep])

    def conditional(self, columns: Sequence[int], values: Any) -> Mixture:
        """The mixture of the other columns where these have these values."""
        given, point = resolve_columns(columns, len(self.origin)), np.atleast_2d(as_floats("values", values))
        if not np.isfinite(point).all():
            j = int(np.flatnonzero(~np.isfinite(point[0]))[0])
            raise ValueError(
                f"The value of column {given[j] + 1} is {point[0, j]}: give finite ones, and leave out the others."
            )
        rest = np.setdiff1d(np.arange(self.centres.shape[1]), given)
        shares, centres, spread = missing.condition(point, self, given, rest)
        kept = self.marginal([int(j) for j in rest])
        if self.diagonal:
            return replace(kept, weights=shares[0])
        return replace(kept, weights=shares[0], centres=centres[0], covariances=spread)

    def transform(self, scale: Any = 1.0, shift: Any = 0.0, rotation: Any | None = None) -> Mixture:
        """The mixture of s·(Qx) + t for a number s: what the same data in other units would have given."""
        s = float(scale)
        centres, origin, spread = s * self.centres, s * self.origin, s**2 * self.covariances
        if rotation is not None:
            Q = np.asarray(rotation, dtype=np.float64)
            centres, origin = centres @ Q.T, Q @ origin
            spread = spread if self.model in ("EII", "VII") else Q @ (s**2 * self.matrices) @ Q.T
        model = self.model if spread.ndim == 2 or not self.diagonal else "VVV"
        return Mixture(self.weights, centres, spread, model, origin + np.broadcast_to(shift, origin.shape))

    def embed(self, model: str) -> Mixture:
        """The same mixture as one of a model that is richer."""
        spread = self.covariances if self.diagonal == (model in DIAGONAL) else self.matrices
        return replace(self, covariances=spread, model=model)

    def split(self, j: int) -> Mixture:
        """Component j as two of half its weight, half a standard deviation to both sides along its longest axis."""
        values, axes = np.linalg.eigh(self.matrices[j])
        step = 0.5 * np.sqrt(values[-1]) * axes[:, -1]
        order = [*range(self.n_components), j]
        twice = self.reorder(order)
        weights, centres = twice.weights.copy(), twice.centres.copy()
        weights[[j, -1]] /= 2.0
        centres[j], centres[-1] = centres[j] + step, centres[j] - step
        return replace(twice, weights=weights, centres=centres)

    def shift_origin(self, origin: Array) -> Mixture:
        """The same mixture with its centres measured from another origin."""
        return replace(self, centres=self.centres + (self.origin - origin), origin=origin)

    def reorder(self, order: Any) -> Mixture:
        """The same mixture with its components in another order."""
        keep = np.asarray(order, dtype=np.intp)
        return replace(self, weights=self.weights[keep], centres=self.centres[keep], covariances=self.covariances[keep])

    def __repr__(self) -> str:
        k, d = self.centres.shape
        size = f"{k} component{'s' * (k != 1)}, {d} column{'s' * (d != 1)}"
        return f"Mixture({self.model}, {size}): weights {', '.join(f'{w:.3g}' for w in self.weights)}"


def regress(mixture: Mixture, columns: Sequence[int], values: Any) -> tuple[Array, Array]:
    r"""Mean (n, u) and covariance (n, u, u) of the other columns, in their order, for rows of values of these.

    .. math:: E(y|x)=\sum_kr_k(x)\,m_k(x),\qquad
        \operatorname{Cov}(y|x)=\sum_kr_k(x)\bigl(C_k+m_k(x)m_k(x)^T\bigr)-E(y|x)E(y|x)^T

    with :math:`r_k(x)` the responsibilities by x alone, and :math:`m_k(x), C_k` the regression of each component.

    Parameters
    ----------
    mixture : Mixture
        Of all columns.
    columns : sequence of int
        The columns that are given.
    values : array-like of shape (n, len(columns))
        Their values.

    Returns
    -------
    mean : ndarray of shape (n, u)
        Expected values of the u other columns.
    covariance : ndarray of shape (n, u, u)
        Their covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.mixture import Mixture, regress
    >>> line = Mixture.of([1.0], [[0.0, 1.0]], [[[1.0, 2.0], [2.0, 5.0]]])
    >>> mean, covariance = regress(line, [0], [[3.0]])
    >>> mean.round(6), covariance.round(6)
    (array([[7.]]), array([[[1.]]]))
    """
    given = resolve_columns(columns, len(mixture.origin))
    rest = np.setdiff1d(np.arange(len(mixture.origin)), given)
    X = np.atleast_2d(as_floats("values", values))
    if X.shape[1] != len(given):
        raise ValueError(f"Each row must have {len(given)} values, for columns {given.tolist()}; got shape {X.shape}.")
    shares, centres, spread = missing.condition(X, mixture, given, rest)
    C = spread[:, :, None] * np.eye(len(rest)) if mixture.diagonal else spread
    mean = np.einsum("nk,nku->nu", shares, centres)
    away = centres - mean[:, None, :]
    covariance = np.einsum("nk,kuv->nuv", shares, C) + np.einsum("nk,nku,nkv->nuv", shares, away, away)
    return mean + mixture.origin[rest], covariance


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    r"""Sums over data at one mixture: all that a maximisation step needs.

    They are kept about one point per component, its current centre: then a maximisation step loses no digits, wherever
    the data lie and however small a component is.

    Attributes
    ----------
    counts : ndarray of shape (K,)
        :math:`N_k=\sum_i w_ir_{ik}`.
    first : ndarray of shape (K, d)
        :math:`\sum wr(x-a_k)`.
    second : ndarray of shape (K, d, d) or (K, d)
        :math:`\sum wr(x-a_k)(x-a_k)^T`, or its diagonal.
    log_likelihood : float
        Of the data, at the mixture they were taken at.
    about : ndarray of shape (K, d)
        The points a, measured from the mixture's origin.
    origin : ndarray of shape (d,)
        What the points are measured from.
    weight : float
        Σw.
    """

    counts: Array
    first: Array
    second: Array
    log_likelihood: float
    about: Array
    origin: Array
    weight: float

    @property
    def diagonal(self) -> bool:
        """Whether only the diagonal of the second moments is kept."""
        return self.second.ndim == 2

    @property
    def masses(self) -> Array:
        """Sums that cannot be negative."""
        return self.counts

    @property
    def centres(self) -> Array:
        """Means of the components, from the origin; of an empty one, the point its sums are about."""
        N = self.counts[:, None]
        return self.about + np.divide(self.first, N, out=np.zeros_like(self.first), where=N > 0)

    def shift(self, about: Array) -> SufficientStatistics:
        """The same sums about other points."""
        step = self.about - about
        moved = self.counts[:, None] * step
        if self.diagonal:
            second = self.second + step * (2 * self.first + moved)
        else:
            cross = step[:, :, None] * (self.first + 0.5 * moved)[:, None, :]
            second = self.second + cross + cross.transpose(0, 2, 1)
        first = self.first + moved
        return SufficientStatistics(self.counts, first, second, self.log_likelihood, about, self.origin, self.weight)

    def scale(self, factor: float) -> SufficientStatistics:
        """The statistics of data that each count ``factor`` times."""
        N, first, second, height, weight = (factor * getattr(self, name) for name in SUMS)
        return SufficientStatistics(N, first, second, height, self.about, self.origin, weight)

    def merge(self, other: SufficientStatistics) -> SufficientStatistics:
        """The statistics of both sets of data together, about this one's points."""
        if self.origin is not other.origin and not np.array_equal(self.origin, other.origin):
            raise ValueError("Statistics measured from different origins cannot be merged. Use one origin.")
        other = other if other.about is self.about else other.shift(self.about)
        N, first, second, height, weight = (getattr(self, name) + getattr(other, name) for name in SUMS)
        return SufficientStatistics(N, first, second, height, self.about, self.origin, weight)


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
        for name, value in list(vars(self).items()):
            if value is None:
                continue
            try:
                given = np.asarray(value)
            except ValueError:
                raise ValueError(f"{name} has rows of unequal length: {value!r}.") from None
            whole = given.dtype.kind in "iuf" and bool((given == np.round(given)).all())
            if name.startswith("fixed"):
                if not (given.dtype.kind == "b" or (whole and np.isin(given, (0, 1)).all())):
                    raise ValueError(f"{name} must be True or False for each; got {value!r}.")
                given = given.astype(bool)
            else:
                if not whole:
                    raise ValueError(f"{name} must be whole numbers, equal where a value is shared; got {value!r}.")
                given = given.astype(np.intp)
            object.__setattr__(self, name, given)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is held or shared."""
        return all(value is None for value in vars(self).values())

    def check(self, mixture: Mixture) -> None:
        """Refuse masks that do not fit a mixture, and covariances that the model couples."""
        for name, value in vars(self).items():
            shape = mixture.centres.shape if name.endswith("means") else mixture.weights.shape
            if value is not None and np.shape(value) != shape:
                raise ValueError(f"{name} must have shape {shape}; it has {np.shape(value)}.")
        held = self.fixed_covariances is not None and not np.all(self.fixed_covariances)
        if (held or self.tied_covariances is not None) and mixture.model not in SEPARATE:
            raise ValueError(
                f"Covariances of some components can be held or shared in the models {', '.join(SEPARATE)}; in "
                f"{mixture.model} they depend on one another. Use one of these, or hold all."
            )

    def weights(self, N: Array, current: Mixture | None) -> Array:
        """Weights that maximise Σ N ln π."""
        if self.fixed_weights is None and self.tied_weights is None and (total := float(N.sum())) > 0:
            return np.asarray(N / total)
        fixed, labels = self._rules("weights", N.shape)
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
        k, d = centres.shape
        A, b = self._free_means((k, d)), np.where(self._rules("means", (k, d))[0], current.centres, 0.0)
        R = current.roots[:, :, None] * np.eye(d) if current.diagonal else current.roots
        R = np.sqrt(N)[:, None, None] * R
        rows = np.einsum("kij,kjq->kiq", R, A.reshape(k, d, -1)).reshape(k * d, -1)
        aim = np.einsum("kij,kj->ki", R, centres - b).ravel()
        return np.asarray((A @ np.linalg.lstsq(rows, aim)[0]).reshape(k, d) + b)

    def covariances(self, N: Array, T: Array, current: Mixture | None) -> tuple[Array, Array]:
        """Counts and scatter matrices in which held components are at their optimum and tied ones are summed."""
        if self.tied_covariances is not None:
            _, group = np.unique(self.tied_covariances, return_inverse=True)
            together = (group[:, None] == group).astype(np.float64)
            N, T = together @ N, np.tensordot(together, T, axes=1)
        if self.fixed_covariances is not None and current is not None:
            held = per_component(self.fixed_covariances, T)
            T = np.where(held, per_component(N, T) * current.covariances, T)
        return N, T

    def free_parameters(self, mixture: Mixture) -> int:
        """How many parameters are left free."""
        k, d = mixture.centres.shape
        if self.is_empty:
            return free_parameters(mixture.model, k, d)
        fixed, labels = self._rules("weights", (k,))
        weights = max(len(np.unique(labels[~fixed])) - 1, 0)
        held, labels = self._rules("covariances", (k,))
        covariances = 0 if held.all() else covariance_parameters(mixture.model, k, d)
        if mixture.model in SEPARATE:
            covariances = len(np.unique(labels[~held])) * covariance_parameters(mixture.model, 1, d)
        return int(weights + self._free_means((k, d)).shape[1] + covariances)

    def equations(self, frames: Array, index: Labels, size: int) -> Array:
        """Linear equations that held and shared parameters put on the coordinates of a chart, one per row."""
        k, d = frames.shape[:2]
        weights = np.vstack([np.eye(k - 1, size), -np.eye(k - 1, size).sum(axis=0)])
        means = np.zeros((k, d, size))
        for j in range(k):
            means[j][:, k - 1 + j * d + np.arange(d)] = frames[j]
        parts = [(weights, *self._rules("weights", (k,)))]
        fixed, labels = self._rules("means", (k, d))
        parts += [(means[:, j], fixed[:, j], labels[:, j]) for j in range(d)]
        parts += [(np.eye(size)[index], *self._rules("covariances", (k,)))]
        rows: list[Array] = []
        for part, fixed, labels in parts:  # rows that must be 0, and differences of rows that must be 0
            rows += list(part[fixed].reshape(-1, size))
            for label in np.unique(labels):
                same = part[labels == label]
                rows += list((same[1:] - same[:1]).reshape(-1, size))
        return np.array(rows).reshape(-1, size)

    def _rules(self, part: str, shape: tuple[int, ...]) -> tuple[Mask, Labels]:
        """A mask of what is held, and labels that are equal where values are shared."""
        fixed, tied = getattr(self, f"fixed_{part}"), getattr(self, f"tied_{part}")
        own = np.broadcast_to(np.arange(shape[0]).reshape(-1, *(1,) * (len(shape) - 1)), shape)
        return np.zeros(shape, bool) if fixed is None else fixed, own if tied is None else tied

    def _free_means(self, shape: tuple[int, int]) -> Array:
        """The linear map from free means to the entries of all: one column per free value."""
        fixed, labels = self._rules("means", shape)
        keys = labels * shape[1] + np.arange(shape[1])
        free = np.unique(keys[~fixed])
        return np.asarray((keys.ravel()[:, None] == free) & ~fixed.ravel()[:, None], dtype=np.float64)


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
    >>> from gramian.mixture import MixtureRows, Prior
    >>> Prior.floor(MixtureRows.of(gramian.open(np.array([[0.0], [2.0]])))).scale
    array([1.e-22])
    """

    scale: Array
    counts: float = 0.0
    shrinkage: float = 0.0
    centre: Array | None = None
    pooled: bool = False
    hard: bool = False

    @classmethod
    def floor(cls, data: MixtureRows | Bins, ratio: float = FLOOR) -> Prior:
        """A floor that no fit notices until a component collapses: Λ = ratio × the variances of the columns.

        The ratio has no units, so data multiplied by 1e8 give the same fit in other units. A column that varies by its
        rounding alone counts as the others do. See :mod:`gramian.mixture.models`.
        """
        varies = data.variances > (4 * EPS * data.origin) ** 2
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
        if model in SPHERICAL:
            scale, counts = np.full(d, even / d), (freedom + 2) / d
        elif model in DIAGONAL:
            scale, counts = np.full(d, even), freedom + 2
        else:
            scale, counts = covariance / share, freedom + d + 1
        pooled = model in POOLED  # then the prior counts once
        return cls(scale, counts, shrinkage, np.asarray(mean, dtype=np.float64), pooled)

    def shrink(self, N: Array, centres: Array, origin: Array) -> Array:
        """Means drawn towards the prior's centre."""
        if self.centre is None or self.shrinkage == 0.0:
            return centres
        target = self.centre - origin
        return np.asarray(target + (centres - target) * (N / (N + self.shrinkage))[:, None])

    def add(self, N: Array, T: Array, centres: Array, origin: Array) -> tuple[Array, Array]:
        """Counts and scatter matrices with the prior's own."""
        if self.hard:
            return N, T
        share = 1.0 / len(N) if self.pooled else 1.0
        # a matrix from its diagonal, or back
        scale = self.scale if self.scale.ndim == T.ndim - 1 else np.diag(self.scale)
        N, T = N + share * self.counts, T + share * scale
        if self.centre is None or self.shrinkage == 0.0:
            return N, T
        away = centres - (self.centre - origin)
        square = away**2 if T.ndim == 2 else away[:, :, None] * away[:, None, :]
        return N + 1.0, T + self.shrinkage * square

    def log_density(self, mixture: Mixture) -> float:
        """ln p, up to a constant."""
        nothing = np.zeros(mixture.n_components), np.zeros_like(mixture.covariances)
        N, T = self.add(*nothing, mixture.centres, mixture.origin)
        if mixture.diagonal:
            traces = np.sum(T / mixture.covariances, axis=1)
        else:
            traces = np.einsum("kij,kjl,kil->k", mixture.roots, T, mixture.roots)
        return float(-0.5 * np.sum(N * mixture.log_determinants + traces))


SKLEARN_ATTRIBUTES = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")


def sklearn_attributes(mixture: Mixture, kind: str) -> dict[str, Array]:
    """The parameters under scikit-learn's names, in the shapes that a ``covariance_type`` has there.

    ``precisions_cholesky_`` is C with Σ⁻¹ = CCᵀ: the transposed inverse of the Cholesky factor.

    Examples
    --------
    >>> from gramian.mixture import Mixture
    >>> from gramian.mixture.parameters import sklearn_attributes
    >>> sklearn_attributes(Mixture.of([1.0], [[0.0, 0.0]], [4.0], "VII"), "spherical")["precisions_cholesky_"]
    array([0.5])
    """
    if kind in ("spherical", "diag"):
        spread, C = mixture.covariances, mixture.roots
        P = C**2
    else:
        spread = mixture.matrices
        C = mixture.roots[:, :, None] * np.eye(spread.shape[1]) if mixture.diagonal else mixture.roots
        C = np.ascontiguousarray(C.transpose(0, 2, 1))
        P = C @ C.transpose(0, 2, 1)
    cut: Any = {"spherical": (slice(None), 0), "tied": 0}.get(kind, slice(None))
    arrays = (mixture.weights, mixture.means, spread[cut], P[cut], C[cut])
    return {name: np.array(value) for name, value in zip(SKLEARN_ATTRIBUTES, arrays, strict=True)}


def invert_precisions(precisions: Any, kind: str, model: str, k: int, d: int, *, factored: bool = False) -> Array:
    """Covariances of a model from precisions in scikit-learn's shapes, or from factors C with Σ⁻¹ = CCᵀ."""
    P = as_floats("precisions", precisions)
    shape = {"spherical": (k,), "diag": (k, d), "tied": (d, d)}.get(kind, (k, d, d))
    if P.shape != shape:
        raise ValueError(f"Precisions of covariance_type={kind!r} must have shape {shape}; they have {P.shape}.")
    if kind in ("spherical", "diag"):
        P = P**2 if factored else P
        if not (P > 0).all():
            raise ValueError("Precisions must be positive.")
        return np.array(np.broadcast_to(1.0 / P if kind == "diag" else 1.0 / P[:, None], (k, d)))
    P = np.broadcast_to(P @ np.swapaxes(P, -1, -2) if factored else P, (k, d, d))
    if not np.allclose(P, np.swapaxes(P, -1, -2)) or not (np.linalg.eigvalsh(P) > 0).all():
        raise ValueError("Precisions must be symmetric and positive definite.")
    S = np.asarray(np.linalg.inv(P), dtype=np.float64)
    S = np.asarray((S + np.swapaxes(S, -1, -2)) / 2, dtype=np.float64)
    return np.array(np.diagonal(S, axis1=1, axis2=2)) if model in DIAGONAL else S
