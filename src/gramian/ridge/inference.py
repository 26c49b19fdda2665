r"""What a fitted ridge regression says: predictions, and how far to trust them.

With λ > 0 the variances are those of the posterior under the prior :math:`w\sim N(0,\sigma^2\lambda^{-1}I)` with a flat
one for the intercept; with λ = 0 they are those of least squares, and the intervals are exact for normal errors.

A bound follows from that of the coefficients: with f̂(x) = (x − μ)ᵀŵ + ȳ, the exact solution f differs by

.. math:: |\hat f(x)-f(x)| \le \|(x-\mu)/s\|\,\|s(\hat w-w)\| + |\delta\bar y| + |\delta\mu^Tw|
    + \text{rounding of } \hat f(x)

where δȳ and δμ are the rounding errors of the means, and s the standard deviations with ``scale``, else 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like, to_numpy
from gramian.inputs.checks import check_interval, check_targets
from gramian.inputs.devices import convert_to_numpy
from gramian.inputs.opening import open_input, refuse_non_finite
from gramian.linear.intervals import by_column, full_conformal, jackknife_plus, split_conformal
from gramian.operators import Multiple
from gramian.operators.compose import centred_data
from gramian.ridge.solve import KEEP, InverseToCome, RidgeInverse, RidgeSolution
from gramian.sources import Source, memory_budget
from gramian.sources.devices import source_to_device
from gramian.sources.errors import Argument, SourceError

Array = Any

EPS = 2.0**-52
REMEMBERED = 2**21  # numbers of the rows of a fit that a model refers to
ARRAYS = ("coef_", "intercept_", "cv_results_", "scale_")  # fitted attributes that are where the data were
PRIVATE = (
    "_centre",
    "_count",
    "_free",
    "_groups",
    "_level",
    "_mass",
    "_seen",
    "_slack",
)  # what a fit leaves for these methods


class LinearPredictions:
    """The methods of a fitted linear model: (X̃ᵀX̃+λI)⁻¹, f(μ), μ, Σw (0 without an intercept) and N are its own."""

    device: Any
    intercept_: Any
    noise_variance_: Any
    training_error_: Any
    r2_: Any
    dof_: Any
    scale_: Any = None

    def predict(self, X: Any, return_std: bool = False, return_bound: bool = False) -> Array:
        r"""Predictions f(x) = xᵀŵ + b, the standard deviation of a new observation there, and a bound on their error.

        .. math:: s(x) = \hat\sigma\sqrt{1 + 1/\Sigma w + \tilde x^T(\tilde X^T\tilde X+\lambda I)^{-1}\tilde x}

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        return_std : bool, default=False
            Whether to return s(x) as well.
        return_bound : bool, default=False
            Whether to return a bound on :math:`|\hat f(x)-f(x)|` as well, the distance from the exact solution.

        Returns
        -------
        array of shape (n,) or (n, t), or a tuple of them
            f(x), s(x) with :math:`\hat\sigma^2` = ``noise_variance_`` and 1/Σw the intercept's share, and the bound.
        """
        check_is_fitted(self)
        given = open_input(self, X, reset=False)
        source = source_to_device(given, self.device)
        F = self._values(source)
        answers = [F]
        if return_std:
            answers.append(like(source, np.sqrt(self._noise() * (1.0 + self._leverage(source)))))
        if return_bound:
            answers.append(like(source, self._bounds(source, F)))
        shaped = tuple(self._match_shape(answer) for answer in answers)
        return like(given, shaped if len(shaped) > 1 else shaped[0])

    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        *,
        kind: str = "prediction",
        method: str = "gaussian",
        training: tuple[Any, Any] | None = None,
        calibration: tuple[Any, Any] | None = None,
    ) -> tuple[Array, Array]:
        r"""Interval of a new observation at each row, or of the mean there.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        level : float, default=0.95
            Probability that the interval holds what it is about.
        kind : {"prediction", "mean"}, default="prediction"
            A new observation, or the expected one, which "gaussian" alone knows. With alpha = 0 these are R's
            ``predict(lm, interval=...)``; with alpha > 0 posterior intervals, for which the penalty is a prior.
        method : {"gaussian", "jackknife+", "conformal"}, default="gaussian"
            Student's t with N − df degrees, for normal errors of one variance; or by errors of rows left out, whatever
            their law (:mod:`gramian.linear.intervals`): "jackknife+" holds a new observation with a probability of at
            least 2·level − 1, and about ``level``; "conformal", in its full form, of at least ``level``. Both say so of
            exchangeable rows without weights and of λ that was not chosen by them.
        training : tuple (X, y), optional
            The rows of the fit, for the last two: a model remembers up to 2²¹ numbers of them, but not in a file.
        calibration : tuple (X, y), optional
            Rows that the fit has not seen, for "conformal" in its split form: at least ``level``, whatever was chosen.

        Returns
        -------
        lower, upper : array of shape (n,) or (n, t)
            Its ends; infinite where there are too few rows for the level.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import Ridge
        >>> x = np.arange(6.0)[:, None]
        >>> model = Ridge(alpha=0).fit(x, [0.1, 0.9, 2.1, 2.9, 4.1, 4.9])
        >>> lower, upper = model.predict_interval([[2.5]], kind="mean")
        >>> lower.round(3), upper.round(3)
        (array([2.367]), array([2.633]))
        >>> lower, upper = model.predict_interval([[2.5]], 0.7, method="conformal")
        >>> lower.round(3), upper.round(3)
        (array([2.34]), array([2.66]))
        """
        check_is_fitted(self)
        check_interval(level, kind, method, training, calibration)
        given = open_input(self, X, reset=False)
        source = source_to_device(given, self.device)
        F = self._values(source)
        if method == "gaussian":
            spread = self._noise() * ((1.0 if kind == "prediction" else 0.0) + self._leverage(source))
            half = like(source, stdtrit(self._free, (1.0 + level) / 2) * np.sqrt(spread))
            ends = F - half, F + half
        elif calibration is not None:
            f, errors = to_numpy(F, float), self._errors(*calibration)[1]
            ends = by_column(f, lambda j: split_conformal(f[:, j], errors[:, j], level))
        else:
            ends = self._from_rows_left_out(source, to_numpy(F, float), level, method, training)
        lower, upper = (self._match_shape(like(source, end)) for end in ends)
        return like(given, (lower, upper))  # type: ignore[no-any-return]

    def _errors(self, X: Any, y: Any) -> tuple[Source, Array]:
        """The rows of X where they are computed with, and y − f(x) of each and every target."""
        source = source_to_device(open_input(self, X, reset=False), self.device)
        Y, _ = check_targets(y, source.shape[0])
        if Y.shape[1] != len(self._level):
            raise ValueError(f"y has {Y.shape[1]} columns, and the model was fitted to {len(self._level)}.")
        return source, Y - to_numpy(self._values(source), float)

    def _from_rows_left_out(
        self, source: Source, f: Array, level: float, method: str, training: tuple[Any, Any] | None
    ) -> tuple[Array, Array]:
        """Ends by the errors of the rows of the fit, each left out: blocks of new rows, each against all of them."""
        self._inverses()
        rows = getattr(self, "_seen", None) if training is None else training
        if isinstance(rows, str) or rows is None:
            raise ValueError(
                f"method={method!r} needs the rows of the fit, and "
                f"{rows or 'this model, read from a file or copied, has none'}: give training=(X, y), or "
                "calibration=(X, y) of rows that the fit has not seen, with method='conformal'."
            )
        seen, residuals = self._errors(*rows)
        error = np.sqrt(np.mean(residuals**2, axis=0))
        known = np.atleast_1d(np.asarray(self.training_error_, dtype=np.float64))
        off = np.abs(error - known) > 1e-6 * (known + 1e-6 * np.abs(f).max(initial=0.0))
        if np.any(off) and not self._has_narrow_coef():
            whose = "training" if training is not None else "X or y, as they are now,"
            raise ValueError(f"{whose} are not the rows of the fit: give training=(X, y) as it was fitted.")
        left = 1.0 - self._leverage(seen)
        if np.any(left <= 1e-10):
            row = int(np.argmin(left.min(axis=1)))
            raise ValueError(f"Row {row + 1} of the fit determines its own prediction: nothing is known without it.")
        growth = 1.0 + self._leverage(source)
        lower, upper = np.empty_like(f), np.empty_like(f)
        step = max(1, memory_budget() // 4 // (32 * len(left)))
        for start in range(0, len(f), step):
            some = np.arange(start, min(start + step, len(f)))
            across = self._cross_leverage(source, seen, some)
            for j, S in across:
                if method == "jackknife+":
                    ends = jackknife_plus(f[some, j], S, residuals[:, j] / left[:, j], level)
                else:
                    ends = full_conformal(f[some, j], S, residuals[:, j], left[:, j], growth[some, j], level)
                lower[some, j], upper[some, j] = ends
        return lower, upper

    def _cross_leverage(self, source: Source, seen: Source, some: Array) -> Iterator[tuple[int, Array]]:
        """Each target's number and 1/Σw + x̃ᵀ(X̃ᵀX̃+λI)⁻¹x̃_i of some rows x and all rows x_i of the fit."""
        s, share = self._scales(), 1.0 / self._mass if self._mass else 0.0
        for group in self._inverses():
            parts = []
            for rows in (source, seen):
                A = centred_data(rows, like(rows, self._centre), like(rows, s), rows.xp.float64)
                A = A if group.unit == 1.0 else Multiple(A, group.unit)
                parts.append((A, to_numpy(A @ A.asarray(group.basis), float)))
            (A, Z), (B, W) = parts
            Z = Z[some]
            rest = None
            if np.any(group.outside):
                pick = np.zeros((source.shape[0], len(some)))
                pick[some, np.arange(len(some))] = 1.0
                mine = to_numpy(A.T @ A.asarray(pick), float)
                rest = to_numpy(B @ B.asarray(mine), float).T - Z @ W.T
            for k, j in enumerate(group.targets):
                S = (Z * group.inverse[:, k]) @ W.T + share
                yield int(j), S if rest is None else S + group.outside[k] * rest

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
        y, f, w = (convert_to_numpy(given) for given in (y, self.predict(X), sample_weight))
        return float(r2_score(y, f, sample_weight=w))

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
        out = np.empty((len(noise), len(self._centre), len(self._centre)))
        for inverse in self._inverses():
            for k, j in enumerate(inverse.targets):
                out[j] = noise[j] * inverse.matrix(k)
        s = self._scales()
        out = out if s is None else out / s[:, None] / s
        return like(self.coef_, out if len(out) > 1 else out[0])

    def _keep(self, solution: RidgeSolution, vector: bool) -> None:
        """Give the results of a fit their names, in the array type and dtype of the data."""
        problem, source, weights = solution.problem, solution.problem.source, solution.problem.weights
        coef: Array = np.ascontiguousarray(solution.coef.T)
        b, self._level = problem.intercepts(coef)
        self._groups, self._centre, self._count = solution.inverses, problem.centre, weights.count
        self._mass, self._free = weights.mass if problem.intercept else 0.0, solution.free
        one, self.scale_, s = len(coef) == 1, problem.scale, 1.0 if problem.scale is None else problem.scale
        self._seen = self._remember_rows(problem)
        self.coef_, self.intercept_ = like(source, coef[0] if one else coef), 0.0
        if problem.intercept:
            b = b.astype(coef.dtype)
            self.intercept_ = b[0] if vector else like(source, b)  # a number, as scikit-learn has it
        # errors of the means ȳ and μᵀw, sums of n numbers about the origin whose rounding is as good as random
        spread = np.sqrt(problem.energy) / problem.y_unit + problem.total**0.5 / problem.unit * _lengths(coef * s)
        self._slack = EPS * (8 + len(problem.Y) ** 0.5) * spread / weights.mass**0.5 * float(problem.intercept)
        rss, total = solution.rss, problem.energy
        if not problem.intercept:
            w = np.ones(len(problem.raw)) if weights.values is None else weights.values
            total = w @ (problem.raw - w @ problem.raw / weights.mass) ** 2
        with np.errstate(over="ignore", under="ignore"):
            noise = np.divide(rss, solution.free, out=np.full(len(coef), np.nan), where=solution.free > 0)
            noise = noise / problem.y_unit / problem.y_unit
            error = np.sqrt(rss / weights.mass) / problem.y_unit
        # where y is constant, as scikit-learn's r2_score has it
        r2 = 1.0 - np.divide(rss, total, out=(rss > 0).astype(np.float64), where=total > 0)
        self.noise_variance_, self.training_error_, self.r2_ = (float(x[0]) if one else x for x in (noise, error, r2))
        self.dof_ = solution.dof if np.ptp(solution.dof) > 0 else float(solution.dof[0])  # NaN where unknown
        self.solver_, self.rank_, self.certificate_ = solution.solver, solution.rank, solution.certificate

    def _remember_rows(self, problem: Any) -> Any:
        """(X, y) of the fit, as they were given and not copied; or why they are not remembered."""
        source = problem.source
        if problem.weights.values is not None:
            return "rows with weights are not alike"
        if not source.resident or source.shape[0] * source.shape[1] > REMEMBERED:
            return f"{source.shape[0]} rows were too many to remember, or in a file"
        return source, problem.raw / problem.y_unit

    def __getstate__(self) -> dict[str, Any]:
        """What is stored of a model: the inverse, and not the rows that it is to be made of, or that were fitted."""
        kept: Any = super().__getstate__()
        state: dict[str, Any] = dict(kept)
        if not isinstance(state.get("_seen"), str):
            state.pop("_seen", None)
        if "_groups" in state:
            groups = state["_groups"]
            state["_groups"] = tuple(each.made if isinstance(each, InverseToCome) else each for each in groups)
        return state

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags: Any = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags

    def _noise(self) -> Array:
        noise = np.atleast_1d(np.asarray(self.noise_variance_, dtype=np.float64))
        self._inverses()
        if np.isnan(noise).any():
            raise ValueError(
                f"There are {self._count:g} observations and {np.max(self.dof_):g} degrees of freedom are used up: "
                "nothing is left to estimate the noise from. Use a larger alpha, or more rows."
            )
        return noise

    def _inverses(self) -> tuple[RidgeInverse, ...]:
        if sum(len(inverse.targets) for inverse in self._groups) < len(self._level):
            if self.solver_ == "nonnegative":
                raise ValueError("With positive=True coefficients are not linear in y, and variances are not known.")
            why = "Conjugate gradients make no decomposition"
            if self.solver_ != "cg":
                p = len(self._centre)
                why = f"The inverse of {p} columns was too large to keep with the model (limit: {KEEP:,} numbers)"
            why += ", so that variances are not known. "
            raise SourceError(why, *self._advise_keeping(), ", which keeps it whatever its size.")
        return tuple(each.made if isinstance(each, InverseToCome) else each for each in self._groups)

    def _advise_keeping(self) -> tuple[str | Argument, ...]:
        """What to do to have the inverse kept."""
        return "Fit with ", Argument("solver", "svd")

    def _values(self, source: Source) -> Array:
        """Predictions of shape (n, t), about the mean of the training rows while intercept_ is as it was fitted."""
        xp, coef = source.xp, self._rows()
        centre, level = (self._centre, self._level) if self._is_as_fitted() else (0.0 * self._centre, self.intercept_)
        A = centred_data(source, like(source, centre), None, xp.float32 if self._is_narrow(source) else xp.float64)
        F = A @ A.asarray(coef.T) + A.asarray(np.atleast_1d(to_numpy(level, float)))[None, :]
        if not bool(xp.all(xp.isfinite(F))):
            refuse_non_finite(source)
        return F

    def _scales(self) -> Array | None:
        """The standard deviations that columns were divided by, in NumPy; None where they were not."""
        return None if self.scale_ is None else to_numpy(self.scale_, float)

    def _rows(self) -> Array:
        """Coefficients as rows, one for each target, in float64."""
        return to_numpy(self.coef_, float).reshape(-1, len(self._centre))

    def _is_narrow(self, source: Source) -> bool:
        """Whether predictions are made in float32: both the rows and the coefficients are."""
        return bool(source.dtype == source.xp.float32 and self._has_narrow_coef())

    def _has_narrow_coef(self) -> bool:
        """Whether the coefficients are in float32."""
        return bool(to_numpy(self.coef_[:0]).dtype == np.float32)

    def _is_as_fitted(self) -> bool:
        """Whether intercept_ and coef_ are still those of the fit, up to rounding."""
        coef = self._rows()
        b, at = to_numpy(self.intercept_, float).ravel() + np.zeros(len(coef)), coef @ self._centre
        eps = 2.0**-23 if self._has_narrow_coef() else EPS
        size = np.abs(b) + np.abs(coef) @ np.abs(self._centre)
        return bool(np.all(np.abs(self._level - (b + at)) <= 4 * len(self._centre) * eps * size))

    def _bounds(self, source: Source, F: Array) -> Array:
        """|f̂(x) − f(x)| of each row and target, at most."""
        bounds = self.certificate_.error_bounds
        if bounds is None or not self._is_as_fitted():
            why = "coef_ or intercept_ was changed after the fit" if bounds is not None else self.certificate_.method
            raise ValueError(f"There is no bound on predictions here: {why}.")
        s, p = self._scales(), len(self._centre)
        coef = _lengths(self._rows() if s is None else self._rows() * s)
        bounds = bounds if s is None else bounds * np.min(s)  # those of standardised coefficients
        away, multiplied = _distances(source, self._centre, s)
        if source.sparse:  # ‖x − μ‖² is a difference there
            away = np.hypot(away, (4 * p * EPS) ** 0.5 * multiplied)
        eps = 2.0**-23 if self._is_narrow(source) else EPS
        rounding = eps * ((p + 4) * np.outer(multiplied, coef) + 2 * (np.abs(self._level) + np.abs(to_numpy(F, float))))
        return np.outer(away, bounds) + self._slack + rounding

    def _match_shape(self, F: Array) -> Array:
        return F[:, 0] if np.ndim(self.coef_) == 1 else F

    def _leverage(self, source: Source) -> Array:
        """1/Σw + x̃ᵀ(X̃ᵀX̃+λI)⁻¹x̃ of each row and target."""
        refuse_non_finite(source)
        out, s = np.empty((source.shape[0], len(self._level))), self._scales()
        for group in self._inverses():
            A = centred_data(source, like(source, self._centre), like(source, s), source.xp.float64)
            A = A if group.unit == 1.0 else Multiple(A, group.unit)
            Z = to_numpy(A @ A.asarray(group.basis), float)
            out[:, group.targets] = Z**2 @ group.inverse
            if np.any(group.outside):
                away = (_distances(source, self._centre, s)[0] * group.unit) ** 2
                rest = np.maximum(away - np.sum(Z**2, axis=1), 0.0)
                out[:, group.targets] += rest[:, None] * group.outside
        return out + (1.0 / self._mass if self._mass else 0.0)


def _lengths(rows: Array) -> Array:
    """Lengths of rows whose squares may leave the range of float64."""
    size = np.max(np.abs(rows), axis=1, initial=0.0)
    safe = np.where((size > 0) & np.isfinite(size), size, 1.0)[:, None]
    return np.asarray(safe[:, 0] * np.linalg.norm(rows / safe, axis=1), dtype=np.float64)


def _distances(source: Source, centre: Array, scale: Array | None) -> tuple[Array, Array]:
    """‖(x − μ)/s‖ of rows, and the length of the numbers that are multiplied: sparse rows are centred afterwards."""
    if source.sparse:
        X = source.values.astype(np.float64)
        if scale is not None:
            X, centre = X.multiply(1.0 / scale).tocsr(), centre / scale
        change, squares, shift = X.copy(), X.copy(), float(np.sum(centre**2))
        change.data = X.data * (X.data - 2 * centre[X.indices])
        squares.data = X.data**2
        own = np.asarray(squares.sum(axis=1)).ravel()
        away = np.asarray(change.sum(axis=1)).ravel() + shift
        away = np.maximum(away, 0.0)
        return np.sqrt(away), np.sqrt(own) + 2 * shift**0.5
    s = 1.0 if scale is None else scale
    away = np.concatenate([_lengths((to_numpy(b.values, float) - centre) / s) for b in source.blocks()])
    return away, away
