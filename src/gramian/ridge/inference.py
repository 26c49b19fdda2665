r"""What a fitted ridge regression says: predictions, and how far to trust them.

With λ > 0 the variances are those of the posterior under the prior :math:`w\sim N(0,\sigma^2\lambda^{-1}I)` with a flat
one for the intercept; with λ = 0 they are those of least squares, and the intervals are exact for normal errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like, to_numpy
from gramian.inputs.checks import check_choice
from gramian.inputs.devices import convert_to_numpy
from gramian.inputs.opening import open_input, refuse_non_finite
from gramian.operators import Multiple
from gramian.pca.problem import centred_data
from gramian.ridge.routes import KEEP, Group
from gramian.ridge.solve import Solved
from gramian.sources import Source
from gramian.sources.devices import source_to_device

__all__ = ["ARRAYS", "PRIVATE", "LinearPredictions"]

Array = Any
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ARRAYS = ("coef_", "intercept_", "cv_results_")  # fitted attributes that are where the data were
PRIVATE = ("_centre", "_count", "_free", "_groups", "_level", "_mass")  # what a fit leaves for these methods


class LinearPredictions:
    """The methods of a fitted linear model: (X̃ᵀX̃+λI)⁻¹, f(μ), μ, Σw (0 without an intercept) and N are its own."""

    device: Any
    coef_: Array
    intercept_: Array
    noise_variance_: Any
    dof_: Any
    solver_: str
    _groups: tuple[Group, ...]
    _level: Vector
    _centre: Vector
    _mass: float
    _count: float
    _free: Vector

    def predict(self, X: Any, return_std: bool = False) -> Array:
        r"""Predictions f(x) = xᵀŵ + b, and the standard deviation of a new observation there.

        .. math:: s(x) = \hat\sigma\sqrt{1 + 1/\Sigma w + \tilde x^T(\tilde X^T\tilde X+\lambda I)^{-1}\tilde x}

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        return_std : bool, default=False
            Whether to return s(x) as well.

        Returns
        -------
        array of shape (n,) or (n, t), or two of them
            f(x), and s(x) with :math:`\hat\sigma^2` = ``noise_variance_``; 1/Σw is the intercept's share.
        """
        check_is_fitted(self)
        given = open_input(self, X, reset=False)
        source = source_to_device(given, self.device)
        F = self._shaped(self._values(source))
        if not return_std:
            return like(given, F)
        spread = np.sqrt(self._noise() * (1.0 + self._leverage(source)))
        return like(given, (F, self._shaped(like(source, spread))))

    def predict_interval(self, X: Any, level: float = 0.95, *, kind: str = "prediction") -> tuple[Array, Array]:
        r"""Interval of a new observation at each row, or of the mean there, by Student's t with N − df degrees.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        level : float, default=0.95
            Probability that the interval holds what it is about.
        kind : {"prediction", "mean"}, default="prediction"
            A new observation, or the expected one. With alpha = 0 these are R's ``predict(lm, interval=...)``; with
            alpha > 0 posterior intervals, for which the penalty is a prior.

        Returns
        -------
        lower, upper : array of shape (n,) or (n, t)
            Its ends.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import Ridge
        >>> x = np.arange(6.0)[:, None]
        >>> model = Ridge(alpha=0).fit(x, [0.1, 0.9, 2.1, 2.9, 4.1, 4.9])
        >>> lower, upper = model.predict_interval([[2.5]], kind="mean")
        >>> lower.round(3), upper.round(3)
        (array([2.367]), array([2.633]))
        """
        check_is_fitted(self)
        check_choice("kind", kind, ("prediction", "mean"))
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        given = open_input(self, X, reset=False)
        source = source_to_device(given, self.device)
        spread = self._noise() * ((1.0 if kind == "prediction" else 0.0) + self._leverage(source))
        half = stdtrit(self._free, (1.0 + level) / 2) * np.sqrt(spread)
        F, half = self._values(source), like(source, half)
        lower, upper = like(given, (self._shaped(F - half), self._shaped(F + half)))
        return lower, upper

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination R² of the predictions for the rows of X, as scikit-learn's.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        y : array-like of shape (n,) or (n, t)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        float
            1 − Σ(y − f)²/Σ(y − ȳ)², the mean over the targets.
        """
        return float(
            r2_score(
                convert_to_numpy(y), convert_to_numpy(self.predict(X)), sample_weight=convert_to_numpy(sample_weight)
            )
        )

    def coef_covariance(self) -> Array:
        r"""Covariance σ̂²(X̃ᵀX̃+λI)⁻¹ of the coefficients, of shape (p, p), or (t, p, p) for several targets.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import Ridge
        >>> model = Ridge(alpha=0).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 1.0])
        >>> model.coef_covariance().round(6)
        array([[0.75]])
        """
        check_is_fitted(self)
        noise = self._noise()
        out = np.empty((len(noise), self._p, self._p))
        for group in self._known_groups():
            for k, j in enumerate(group.targets):
                out[j] = noise[j] * _inverse(group, k)
        return like(self.coef_, out if self._targets > 1 else out[0])

    @property
    def _p(self) -> int:
        return int(np.shape(self.coef_)[-1])

    @property
    def _targets(self) -> int:
        return len(self._level)

    def _noise(self) -> Vector:
        noise = np.atleast_1d(np.asarray(self.noise_variance_, dtype=np.float64))
        self._known_groups()
        if np.isnan(noise).any():
            raise ValueError(
                f"There are {self._count:g} observations and {np.max(self.dof_):g} degrees of freedom are used up: "
                "nothing is left to estimate the noise from. Use a larger alpha, or more rows."
            )
        return noise

    def _known_groups(self) -> tuple[Group, ...]:
        if sum(len(group.targets) for group in self._groups) < self._targets:
            why = (
                "Conjugate gradients make no decomposition"
                if self.solver_ == "cg"
                else f"The inverse of {self._p} columns was too large to keep with the model (limit: {KEEP:,} numbers)"
            )
            raise ValueError(f"{why}, so that variances are not known. {self._keeping()}")
        return self._groups

    def _keeping(self) -> str:
        """What to do to have the inverse kept."""
        return "Fit with solver='svd', which keeps it whatever its size."

    def _values(self, source: Source) -> Array:
        """Predictions of shape (n, t), about the mean of the training rows while intercept_ is as it was fitted."""
        xp = source.xp
        coef = to_numpy(self.coef_, float).reshape(-1, self._p)
        centre, level = (self._centre, self._level) if self._as_fitted(coef) else (0.0 * self._centre, self.intercept_)
        narrow = source.dtype == xp.float32 and "32" in str(self.coef_.dtype)
        dtype = xp.float32 if narrow else xp.float64
        A = centred_data(source, like(source, centre), None, dtype)
        F = A @ A.asarray(coef.T) + A.asarray(np.atleast_1d(to_numpy(level, float)))[None, :]
        if not bool(xp.all(xp.isfinite(F))):
            refuse_non_finite(source)
        return F

    def _as_fitted(self, coef: Matrix) -> bool:
        """Whether intercept_ and coef_ are still those of the fit, up to rounding."""
        b, at = to_numpy(self.intercept_, float).ravel() + np.zeros(len(coef)), coef @ self._centre
        eps = 2.0**-23 if "32" in str(self.coef_.dtype) else 2.0**-52
        size = np.abs(b) + np.abs(coef) @ np.abs(self._centre)
        return bool(np.all(np.abs(self._level - (b + at)) <= 4 * len(self._centre) * eps * size))

    def _shaped(self, F: Array) -> Array:
        return F[:, 0] if np.ndim(self.coef_) == 1 else F

    def _leverage(self, source: Source) -> Matrix:
        """1/Σw + x̃ᵀ(X̃ᵀX̃+λI)⁻¹x̃ of each row and target."""
        refuse_non_finite(source)
        out = np.empty((source.shape[0], self._targets))
        for group in self._known_groups():
            out[:, group.targets] = _quadratic(source, self._centre, group)
        return out + (1.0 / self._mass if self._mass else 0.0)

    def _take(self, solved: Solved, ndim: int) -> None:
        """Give the results of a fit their names, in the array type and dtype of the data."""
        problem, source = solved.problem, solved.problem.source
        single = source.dtype == source.xp.float32
        coef = solved.coef.T.astype(np.float32) if single else np.ascontiguousarray(solved.coef.T)
        b, self._level = problem.anchored(coef)
        self._groups, self._centre = solved.groups, problem.centre
        self._mass = problem.weights.mass if problem.intercept else 0.0
        self._count = problem.weights.count
        one = coef.shape[0] == 1
        self.coef_ = like(source, coef[0] if one else coef)
        self.intercept_ = _named(source, b.astype(coef.dtype), ndim) if problem.intercept else 0.0
        free = solved.free
        noise = np.divide(solved.rss, free, out=np.full(len(free), np.nan), where=free > 0)
        self._free = free
        self.noise_variance_ = float(noise[0]) if one else noise
        self.dof_ = solved.dof if np.ptp(solved.dof) > 0 else float(solved.dof[0])  # NaN where unknown
        self.solver_ = solved.solver


def _named(source: Source, b: Any, ndim: int) -> Any:
    """Intercepts as scikit-learn has them: a number for a y of one dimension."""
    return b[0] if ndim == 1 else like(source, b)


def _inverse(group: Group, k: int) -> Matrix:
    """(X̃ᵀX̃+λI)⁻¹ of one target, in the data's own units."""
    V, factor = group.basis, group.unit * group.unit
    inside = (V * group.inverse[:, k]) @ V.T
    if group.outside[k] == 0.0:
        return np.asarray(factor * inside)
    return np.asarray(factor * (inside + group.outside[k] * (np.eye(len(V)) - V @ V.T)))


def _quadratic(source: Source, centre: Vector, group: Group) -> Matrix:
    """x̃ᵀ(X̃ᵀX̃+λI)⁻¹x̃, of shape (n, g), block by block."""
    A = centred_data(source, like(source, centre), None, source.xp.float64)
    A = A if group.unit == 1.0 else Multiple(A, group.unit)
    Z = to_numpy(A @ A.asarray(group.basis), float)
    out = Z**2 @ group.inverse
    if not np.any(group.outside):
        return np.asarray(out)
    rest = np.maximum(_lengths(source, centre, group.unit) - np.sum(Z**2, axis=1), 0.0)
    return np.asarray(out + rest[:, None] * group.outside)


def _lengths(source: Source, centre: Vector, unit: float) -> Vector:
    """‖x̃‖² of each row."""
    if source.sparse:
        X = source.values.astype(np.float64)  # type: ignore[attr-defined]
        change = X.copy()
        change.data = X.data * (X.data - 2 * centre[X.indices])
        return np.asarray(change.sum(axis=1)).ravel() * unit**2 + float(np.sum(centre**2)) * unit**2
    parts = [np.sum(((to_numpy(b.values, float) - centre) * unit) ** 2, axis=1) for b in source.blocks()]
    return np.concatenate(parts)
