r"""Predictions of a kernel ridge regression, how far each can be from the exact one, and how uncertain it is.

With observations y = f(x) + b + ε, Var f = (s/λ)k, Var ε = s/w and a flat prior on the intercept b, f̂ is the mean of
a Gaussian process. Its variance at x given the rows S, in units of the noise s, is

.. math:: \frac1\lambda\Big[k(x,x) - k_S^TA^{-1}k_S + \frac{(1-1^TA^{-1}k_S)^2}{1^TA^{-1}1}\Big],
    \qquad A=K_{SS}+\lambda W_S^{-1}

(the last term only with an intercept). More rows can only lower it, so some of the rows give an upper bound; bounds
from both sides given all of them are those of :mod:`gramian.kernel_ridge.posterior`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from array_api_compat import array_namespace
from scipy.special import stdtrit
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import free_bytes, is_numpy, like, to_numpy
from gramian.compute.memory import available_memory
from gramian.inputs.checks import check_choice, check_interval, check_seed, check_targets
from gramian.inputs.devices import like_input
from gramian.inputs.kernels import (
    are_objects,
    dense_matrix,
    is_precomputed,
    kernel_diagonal,
    multiply,
    open_finite,
    read_all,
    take_points,
)
from gramian.kernel_ridge.landmark_fit import LandmarkFit
from gramian.kernel_ridge.left_out import InverseOfLandmarks, InverseOfRows, dense_rows, refuse_too_many
from gramian.kernel_ridge.posterior import WIDTH, BoundedPosterior, Bounds
from gramian.kernel_ridge.problem import choose_device, count_points
from gramian.kernels import Kernel
from gramian.linear.intervals import by_column, full_conformal, jackknife_plus, split_conformal
from gramian.linear.systems import cholesky, triangular
from gramian.operators import KernelOperator, kernel_operator
from gramian.results import NumericalWarning, Residual, caller_level
from gramian.sources import memory_budget
from gramian.spectral.rpcholesky import rp_cholesky

Array = npt.NDArray[np.float64]

EPS = 2.0**-52
EXACT = 6000  # rows up to which all of them are used at once: a factor of 288 MB
FACTORED = 20_000  # ... where a few products do not make bounds meet: a factor takes as long as some five more of them
FEW, LOOKED_AT = 3, 32  # products, and rows of the fit that they are tried with
SUBSET = 1000  # rows that stand for more, where the solver chose none


class KernelPredictions:
    """The methods of a fitted f(x) = Σ α_j k(x, x_j) + b."""

    device: Any
    random_state: Any

    dual_coef_: Array
    intercept_: Any
    X_fit_: Any
    kernel_: Kernel
    certificate_: Residual
    noise_variance_: Any

    _vector: bool  # whether y was a vector
    _lam: Array  # λ of each target
    _count: float  # N
    _intercept: bool
    _rows: int  # rows of the fit that have weight
    _support: npt.NDArray[np.intp] | None  # which of X_fit_ these are, where not all
    _fit_weights: Array | None  # their weights
    _subset: npt.NDArray[np.intp] | None  # rows that a preconditioner chose
    _landmark_fit: LandmarkFit | None
    _mean_weights: Array | None  # w̄ where features are centred
    _mean_square: float  # ‖φ̄‖²
    _longest: float  # the largest √k(x, x) of the rows
    _level: float  # of the targets, Σ w̄|y|, by which their mean can round
    _semidefinite: bool

    @like_input
    def predict(self, X: Any, return_std: bool | str = False, return_bound: bool = False) -> Any:
        r"""Predict the targets of the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (m, p); a kernel matrix k(X, X_fit_); objects
            New points.
        return_std : bool or "subset", default=False
            Also return the standard deviation of a new observation at each point, for the Gaussian process whose mean
            the prediction is: exact, or the middle of two bounds at most 5 % of the variance apart
            (:meth:`std_bounds`); "subset" an upper bound from some of the rows, which costs less. ``std_method()`` says
            which.
        return_bound : bool, default=False
            Also return a bound on :math:`|\hat f(x)-f(x)|`, the distance from the exact solution.

        Returns
        -------
        array of shape (m,) or (m, t), or a tuple of these
            Predictions, then standard deviations and bounds where asked for; tensors where X is one.
        """
        check_is_fitted(self)
        if return_bound and self.certificate_.error_bounds is None and not is_precomputed(self.kernel_):
            raise ValueError(f"There is no bound on predictions here: {'; '.join(self.certificate_.notes)}.")
        check_choice("return_std", return_std, (False, True, "subset"))
        if return_std or return_bound:
            self._refuse_unknown_lengths("a bound" if return_bound else "a variance")
        answers = self._predict(X, return_std, return_bound)
        return answers[0] if len(answers) == 1 else answers

    @like_input
    def predict_interval(
        self,
        X: Any,
        level: float = 0.95,
        *,
        kind: str = "prediction",
        return_std: bool | str = True,
        method: str = "gaussian",
        training: tuple[Any, Any] | None = None,
        calibration: tuple[Any, Any] | None = None,
    ) -> Any:
        r"""Interval of a new observation at each row of X, or of the mean there.

        Of "gaussian" the mean is the prediction, the variance that of ``return_std``, with the noise estimated by
        ``noise_variance_``: with a prior ∝ 1/s for the noise s the posterior is Student's t with N degrees of freedom,
        N − 1 with an intercept. Where ``std_method()`` says so, intervals are wider than they need be.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (m, p); or objects
            New points.
        level : float, default=0.95
            Probability that the interval holds what it is about.
        kind : {"prediction", "mean"}, default="prediction"
            A new observation, or the expected one, which "gaussian" alone knows.
        return_std : True or "subset", default=True
            Which standard deviation of "gaussian", as in :meth:`predict`.
        method : {"gaussian", "jackknife+", "conformal"}, default="gaussian"
            That of the Gaussian process; or by errors of rows left out, whatever their law
            (:mod:`gramian.linear.intervals`): "jackknife+" holds a new observation with a probability of at least
            2·level − 1, and about ``level``; "conformal", in its full form, of at least ``level``. Both say so of
            exchangeable rows without weights, and of λ, kernel and landmarks that were not chosen by them. Up to 20,000
            rows; over landmarks any number.
        training : tuple (X, y), optional
            The rows of the fit: only a model of landmarks needs them for the last two.
        calibration : tuple (X, y), optional
            Rows that the fit has not seen, for "conformal" in its split form: at least ``level``, whatever was chosen.

        Returns
        -------
        lower, upper : array of shape (m,) or (m, t)
            Its ends; infinite where there are too few rows for the level.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import KernelRidge
        >>> x = np.linspace(0, 6, 40)[:, None]
        >>> model = KernelRidge(alpha=0.1, kernel="rbf").fit(x, np.sin(x[:, 0]))
        >>> lower, upper = model.predict_interval([[1.5], [20.0]])
        >>> bool(upper[1] - lower[1] > 2 * (upper[0] - lower[0]))  # far from all rows nothing is known
        True
        """
        check_is_fitted(self)
        check_interval(level, kind, method, training, calibration)
        check_choice("return_std", return_std, (True, "subset"))
        if method != "gaussian":
            return self._interval_of_errors(X, level, method, training, calibration)
        self._refuse_unknown_lengths("a variance")
        values, std = self._predict(X, return_std, False)
        if kind == "mean":
            std = np.sqrt(np.maximum(std**2 - np.asarray(self.noise_variance_), 0.0))
        half = stdtrit(max(self._count - float(self._intercept), 1.0), (1.0 + level) / 2) * std
        return values - half, values + half

    def _interval_of_errors(
        self, X: Any, level: float, method: str, training: tuple[Any, Any] | None, calibration: tuple[Any, Any] | None
    ) -> tuple[Array, Array]:
        """Ends by errors of rows that were left out, or that the fit has not seen."""
        t = len(self._lam)
        if calibration is not None:
            f = np.asarray(self._predict(X, False, False)[0]).reshape(-1, t)
            errors = self._errors(*calibration)
            ends = by_column(f, lambda j: split_conformal(f[:, j], errors[:, j], level))
        else:
            if self._fit_weights is not None and np.any(self._fit_weights != 1.0):
                raise ValueError(
                    f"method={method!r} needs rows that are alike, and those of the fit have weights: give "
                    "calibration=(X, y) of rows that the fit has not seen, with method='conformal'."
                )
            if not np.all(self._lam > 0):
                raise ValueError(f"At alpha=0 rows left out say nothing: method={method!r} needs a positive alpha.")
            if method == "conformal" and is_precomputed(self.kernel_):
                self._refuse_unknown_lengths("a conformal set")
            over = self._landmark_fit is not None
            ends = (self._left_out_landmarks if over else self._left_out_rows)(X, level, method, training)
        lower, upper = ((end[:, 0] if self._vector else end) for end in ends)
        return lower, upper

    def _errors(self, X: Any, y: Any) -> Array:
        """y − f(x) of rows and every target."""
        f = np.asarray(self._predict(X, False, False)[0]).reshape(-1, len(self._lam))
        Y, _ = check_targets(y, len(f))
        if Y.shape[1] != f.shape[1]:
            raise ValueError(f"y has {Y.shape[1]} columns, and the model was fitted to {f.shape[1]}.")
        return Y - f

    def _new_points(self, X: Any) -> Any:
        """New points, in memory."""
        return list(X) if are_objects(self.kernel_, X) else read_all(open_finite(self, X, reset=False))

    def _left_out_rows(self, X: Any, level: float, method: str, training: Any) -> tuple[Array, Array]:
        """From the inverse of all rows, made for each λ when it is first asked for."""
        if training is not None:
            raise ValueError("training is for models of landmarks: this one keeps the rows of the fit.")
        whole = is_precomputed(self.kernel_)
        kept = np.arange(count_points(self.X_fit_)) if self._support is None else self._support
        refuse_too_many(len(kept))
        alpha = self.dual_coef_.reshape(len(self.dual_coef_), -1)[kept]
        points = None if whole else take_points(self.X_fit_, kept)
        known: dict[float, InverseOfRows] = self.__dict__.setdefault("_inverses_of_rows", {})
        for lam in np.unique(self._lam):
            if float(lam) not in known:
                K = np.array(self.X_fit_[np.ix_(kept, kept)]) if whole else dense_rows(self.kernel_, points, None)
                known[float(lam)] = InverseOfRows.of(K.astype(np.float64), float(lam), self._intercept)
        new = self._new_points(X)
        f = np.asarray(self._predict(X, False, False)[0]).reshape(-1, len(self._lam))
        lower, upper = np.empty_like(f), np.empty_like(f)
        step = max(1, memory_budget() // 4 // (40 * len(kept)))
        for start in range(0, len(f), step):
            some = slice(start, min(start + step, len(f)))
            k = np.asarray(to_numpy(new[some]), dtype=np.float64)[:, kept] if whole else None
            k = dense_rows(self.kernel_, new[some], points) if k is None else k
            for lam in np.unique(self._lam):
                inverse = known[float(lam)]
                S, left = inverse.smoother(k), inverse.left
                growth = None
                if method == "conformal":
                    growth = inverse.growth(k, kernel_diagonal(self.kernel_, new[some]), S)
                for j in np.flatnonzero(self._lam == lam):
                    r = lam * alpha[:, j]
                    if growth is None:
                        ends = jackknife_plus(f[some, j], S, r / left, level)
                    else:
                        ends = full_conformal(f[some, j], S, r, left, growth, level)
                    lower[some, j], upper[some, j] = ends
        return lower, upper

    def _left_out_landmarks(self, X: Any, level: float, method: str, training: Any) -> tuple[Array, Array]:
        """From the features of the landmarks of all rows, which have to be given again."""
        fit = self._landmark_fit
        if training is None or fit is None:
            raise ValueError(
                f"method={method!r} over landmarks needs the rows of the fit: give training=(X, y), or calibration=(X, "
                "y) of rows that the fit has not seen, with method='conformal'."
            )
        rows, new = self._new_points(training[0]), self._new_points(X)
        residuals = self._errors(*training)
        if len(residuals) != self._rows:
            raise ValueError(f"training has {len(residuals)} rows, and the fit had {self._rows}.")
        f = np.asarray(self._predict(X, False, False)[0]).reshape(-1, len(self._lam))
        lower, upper = np.empty_like(f), np.empty_like(f)
        for lam in np.unique(self._lam):
            mine = np.flatnonzero(self._lam == lam)
            model = InverseOfLandmarks.of(self.kernel_, rows, self.X_fit_, fit, float(lam), self._intercept)
            left = np.ones(len(residuals)) - model.share
            for start, stop, Z in model.coordinates(rows):
                left[start:stop] -= np.sum(Z * Z, axis=0)
            step = max(1, memory_budget() // 4 // (40 * len(residuals)))
            for begin in range(0, len(f), step):
                some = slice(begin, min(begin + step, len(f)))
                mine_new = np.hstack([Z for _, _, Z in model.coordinates(new[some])])
                S = np.empty((mine_new.shape[1], len(residuals)))
                for start, stop, Z in model.coordinates(rows):
                    S[:, start:stop] = mine_new.T @ Z + model.share
                growth = 1.0 + model.share + np.sum(mine_new**2, axis=0)
                for j in mine:
                    if method == "jackknife+":
                        ends = jackknife_plus(f[some, j], S, residuals[:, j] / left, level)
                    else:
                        ends = full_conformal(f[some, j], S, residuals[:, j], left, growth, level)
                    lower[some, j], upper[some, j] = ends
        return lower, upper

    def predict_parts(self, X: Any) -> Any:
        r"""What each term of a sum of kernels adds to the prediction: f = b + Σ_g f_g, f_g(x) = Σ α_j k_g(x, x_j).

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (m, p)
            New points.

        Returns
        -------
        array of shape (terms, m) or (terms, m, t)
            In the order of the sum; its only term where the kernel is none.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import KernelRidge
        >>> from gramian.kernels import Linear
        >>> X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
        >>> model = KernelRidge(0.1, kernel=Linear().on([0]) + Linear().on([1])).fit(X, [1.0, 2.0, 2.0])
        >>> parts = model.predict_parts(X)
        >>> bool(np.allclose(parts.sum(axis=0), model.predict(X))), parts[0].round(2)
        (True, array([0.96, 0.  , 0.96]))
        """
        check_is_fitted(self)
        self._refuse_unknown_lengths("the terms of a sum")
        new, alpha = self._new_points(X), self.dual_coef_.reshape(len(self.dual_coef_), -1)
        found = [
            multiply(kernel_operator(term, new, self.X_fit_, dtype=np.float64, store=False, device=None), alpha)
            for term in self.kernel_.terms
        ]
        return np.stack([part[:, 0] if self._vector else part for part in found])

    def explained_by_parts(self, X: Any, y: Any) -> Any:
        r"""Share of the variance of y that each term of a sum of kernels explains; they sum to R².

        .. math:: R^2_g=\frac{\sum_i f_g(x_i)\,(2(y_i-\bar y)-f(x_i))}{\sum_i(y_i-\bar y)^2},

        with f and f_g about their means: each term's own square and half of what it shares with the others (the product
        measure). A term may take away, and then has a negative share.

        Parameters
        ----------
        X : array-like of shape (m, p)
            Points, best new ones.
        y : array-like of shape (m,) or (m, t)
            Their targets.

        Returns
        -------
        ndarray of shape (terms,) or (terms, t)
            R²_g, where predictions are right on average; of predictions that are off by a constant, that counts as
            nothing.
        """
        parts = np.asarray(to_numpy(self.predict_parts(X)), dtype=np.float64)
        Y = np.asarray(to_numpy(y), dtype=np.float64)
        if Y.shape != parts.shape[1:]:
            raise ValueError(f"y has the shape {Y.shape}, and predictions have {parts.shape[1:]}.")
        parts, Y = parts - parts.mean(axis=1, keepdims=True), Y - Y.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.sum(parts * (2.0 * Y - parts.sum(axis=0)), axis=1) / np.sum(Y**2, axis=0)

    def squared_norm(self) -> Any:
        r"""Return ‖f‖² = αᵀKα, the size of the fitted function; the penalty of the fit is λ times this number.

        The intercept is no part of it. One product with k(X, X) is made, so an answer takes n² values of the kernel.

        Returns
        -------
        float or ndarray of shape (t,)
            ‖f‖² of each target.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import KernelRidge
        >>> x = np.linspace(0, 6, 40)[:, None]
        >>> rough, smooth = (KernelRidge(alpha, kernel="rbf").fit(x, np.sin(x[:, 0])) for alpha in (0.01, 10.0))
        >>> rough.squared_norm() > smooth.squared_norm()
        True
        """
        check_is_fitted(self)
        alpha, points = self.dual_coef_.reshape(len(self.dual_coef_), -1), self.X_fit_
        if is_precomputed(self.kernel_):
            values = np.asarray(points @ alpha, dtype=np.float64)
        else:
            device = choose_device(self.device, points, points, [self.kernel_])
            A = kernel_operator(self.kernel_, points, points, dtype=np.float64, store=False, device=device)
            values = multiply(A, alpha)
        # eq: krr-penalty
        norms = np.einsum("ij,ij->j", alpha, values)
        return float(norms[0]) if self._vector else norms

    def std_method(self, return_std: bool | str = True) -> str:
        """Say how ``predict(..., return_std=...)`` finds standard deviations: exactly, or within what bounds."""
        check_is_fitted(self)
        check_choice("return_std", return_std, (True, "subset"))
        self._refuse_unknown_lengths("a variance")
        n = count_points(self.X_fit_ if self._support is None else self._support)
        if n > EXACT and n == self._rows and return_std is True:
            return f"within bounds from all {n} rows, at most {100 * WIDTH:g} % of the variance apart"
        used = n if n <= EXACT else SUBSET if self._subset is None else len(self._subset)
        return "exact" if used == self._rows else f"upper bound from {used} of the {self._rows} rows"

    @like_input
    def std_bounds(self, X: Any, width: float = WIDTH) -> Any:
        r"""Bounds from both sides on the standard deviation of a new observation at each row of X, given all rows.

        Up to 6,000 rows both are the exact one, and on a device that has room for a factor of K + λI. Beyond, they are
        found by preconditioned conjugate gradients on :math:`K+\lambda I`, for 512 points at once, until the variances
        are ``width`` apart; where rounding or 100 products do not allow that, they are as far apart as they are.
        Rounding is in them, as errors of random sign. Where three products do not make them meet, up to 20,000 rows are
        factored as well.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (m, p); or objects
            New points.
        width : float, default=0.05
            How far the variances may be apart, as a share of the lower one.

        Returns
        -------
        lower, upper : array of shape (m,) or (m, t)
            Its ends.
        """
        check_is_fitted(self)
        if not 0.0 < width < math.inf:
            raise ValueError(f"width must be a positive number, got {width!r}.")
        self._refuse_unknown_lengths("a variance")
        if self._landmark_fit is not None:
            raise ValueError("A model of landmarks keeps no other rows, so that its spread has no bound from below.")
        ends = [self._std_ends(points, width) for points in self._blocks(X, True, False)]
        both = (np.concatenate(some) for some in zip(*ends, strict=True))
        return tuple(some[:, 0] if self._vector else some for some in both)

    def _predict(self, X: Any, with_std: bool | str, with_bound: bool) -> tuple[Array, ...]:
        """Predictions, standard deviations and bounds, a block of points at a time."""
        device = choose_device(self.device, X, self.X_fit_, [self.kernel_])
        parts = []
        for points in self._blocks(X, with_std, with_bound):
            values, bounds = self._predict_block(points, with_bound, device)
            std = [self._std(points, subset=with_std == "subset")] if with_std else []
            parts.append((values, *std, *([bounds] if with_bound else [])))
        every = (np.concatenate(some) for some in zip(*parts, strict=True))
        return tuple(some[:, 0] if self._vector else some for some in every)

    def _blocks(self, X: Any, with_std: bool | str, with_bound: bool) -> Iterator[Any]:
        """The new points: at once, or in blocks of rows of a file and where a dense k(X, S) would be large."""
        if are_objects(self.kernel_, X):
            points: Any = list(X)
        else:
            source = open_finite(self, X, reset=False)
            if not source.resident:
                yield from (np.array(block.values) for block in source.blocks())
                return
            points = read_all(source)
        size, width = count_points(self.X_fit_), 0
        if with_bound and self._landmark_fit is not None:
            width = size
        elif with_std:
            width = min(size, max(FACTORED, 0 if self._subset is None else len(self._subset)))
        n = count_points(points)
        step = max(1, memory_budget() // 4 // (8 * width)) if width else max(1, n)
        for start in range(0, n, step):
            yield points if step >= n else points[start : start + step]

    def _predict_block(self, points: Any, with_bound: bool, device: Any) -> tuple[Array, Array]:
        r"""k(X, X_fit_) α + b; and ‖φ(x)‖(‖r‖/(2√λ)) with the rounding of a sum of n products and of the intercept."""
        alpha = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        t, b = alpha.shape[1], np.atleast_1d(self.intercept_)
        if is_precomputed(self.kernel_):
            K = to_numpy(points) if sp.issparse(points) else points
            return np.asarray(K @ alpha, dtype=np.float64) + b, np.empty(0)
        centred = with_bound and self._mean_weights is not None
        columns = np.column_stack([alpha, np.asarray(self._mean_weights)]) if centred else alpha
        A = kernel_operator(self.kernel_, points, self.X_fit_, dtype=np.float64, store=False, device=device)
        F = multiply(A, columns)
        # eq: krr-predict, krr-representer
        values = F[:, :t] + b
        if not with_bound:
            return values, np.empty(0)
        own = kernel_diagonal(self.kernel_, points)
        if centred:  # about the mean feature
            norms = np.sqrt(np.maximum(own - 2 * F[:, -1] + self._mean_square, 0.0))
        elif self._landmark_fit is not None:
            norms = self._landmark_fit.lengths(to_numpy(A.to_dense()), own)
        else:
            norms = np.sqrt(own)
        size = np.sum(np.abs(alpha), axis=0) * self._longest
        each = max(4 * EPS * (8 + np.sqrt(len(alpha))), A.epsilon)
        rounding = each * np.outer(np.sqrt(own) + self._longest, size) + 4 * EPS * (np.abs(b) + self._level)
        return values, np.outer(norms, np.asarray(self.certificate_.error_bounds)) + rounding

    def _std(self, points: Any, subset: bool = False) -> Array:
        """√(s(1 + Var f/s)) of each target, the middle of its bounds; NaN of one without noise."""
        lower, upper = self._std_ends(points, WIDTH, subset)
        with np.errstate(invalid="ignore"):
            apart = (upper / lower) ** 2 - 1.0
        wide = apart > 2 * WIDTH
        if wide.any():
            warnings.warn(
                f"Of {int(np.sum(wide.any(axis=1)))} of {len(wide)} points the variance is known to a factor of "
                f"{float(np.nanmax(apart)) + 1:.3g} only, and its upper end is taken: use a larger alpha, or "
                "std_bounds for both ends.",
                NumericalWarning,
                stacklevel=caller_level(),
            )
        return np.where(wide, upper, (lower + upper) / 2)

    def _std_ends(self, points: Any, width: float, subset: bool = False) -> tuple[Array, Array]:
        """Ends of √(s(1 + Var f/s)) of each target; posteriors are made when first asked for."""
        if not self._semidefinite:
            raise ValueError("The kernel is not positive semidefinite, so that there is no variance to speak of.")
        if not np.any(self._lam > 0):
            raise ValueError("At alpha=0 there is no noise, and no predictive variance. Use a positive alpha.")
        s = np.atleast_1d(self.noise_variance_)
        low = np.full((count_points(points), len(s)), np.nan)
        high = low.copy()
        known: dict[Any, Any] = self.__dict__.setdefault("_posteriors", {})
        rows = self.X_fit_ if self._support is None else take_points(self.X_fit_, self._support)
        n = count_points(rows)
        whole = n > EXACT and n == self._rows and not subset
        device = choose_device(self.device, points, rows, [self.kernel_]) if whole else None
        found: dict[float, Bounds] = {}
        for j in np.flatnonzero(self._lam > 0):
            lam = float(self._lam[j])
            key: Any = (lam, "whole") if whole else lam
            seed = check_seed(self.random_state)
            if key not in known and whole:
                known[key] = _open_posterior(self.kernel_, rows, self._fit_weights, lam, self._intercept, seed, device)
            elif key not in known:
                known[key] = Posterior.of(
                    self.kernel_, rows, self._fit_weights, lam, self._intercept, self._subset, seed
                )
            if lam not in found:
                if isinstance(known[key], BoundedPosterior):
                    found[lam] = known[key].bounds(points, width)
                else:
                    variance = known[key].variance(points)
                    found[lam] = Bounds(variance, variance)
            low[:, j], high[:, j] = (np.sqrt(s[j] * (1.0 + end)) for end in (found[lam].lower, found[lam].upper))
        return low, high

    def _refuse_unknown_lengths(self, what: str) -> None:
        if is_precomputed(self.kernel_):
            raise ValueError(f"A precomputed kernel does not say k(x, x) of new rows, which {what} needs.")

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        state.pop("_posteriors", None)
        state.pop("_inverses_of_rows", None)
        return state


@dataclass(frozen=True, eq=False)
class Posterior:
    """The variance given some of the rows.

    Attributes
    ----------
    kernel, points : Kernel, array or list
        k, and the rows S.
    factor : array of shape (m, m)
        Lower triangular L with LLᵀ = A, where it was made.
    ones : ndarray of shape (m,) or None
        L⁻¹1, where there is an intercept.
    lam : float
        λ > 0.
    device : torch.device or None
        Where k is evaluated; None is NumPy on the CPU.
    """

    kernel: Kernel
    points: Any
    factor: Any
    ones: Array | None
    lam: float
    device: Any = None

    @classmethod
    def of(
        cls, kernel: Kernel, points: Any, w: Array | None, lam: float, intercept: bool, subset: Any, seed: int
    ) -> Posterior:
        """Choose the rows: all, the ``subset`` a solver chose, or some by randomly pivoted Cholesky; and factor A."""
        if count_points(points) > EXACT:
            if subset is None:
                K = KernelOperator(kernel, points, store=False)
                subset = rp_cholesky(K.diagonal(), K.columns, SUBSET, seed=seed).indices
            points, w = take_points(points, subset), None if w is None else w[subset]
        return cls.of_all(kernel, points, w, lam, intercept)

    @classmethod
    def of_all(
        cls, kernel: Kernel, points: Any, w: Array | None, lam: float, intercept: bool, device: Any = None
    ) -> Posterior:
        """Factor A of all the rows, where the kernel is evaluated."""
        A = dense_matrix(kernel_operator(kernel, points, dtype=np.float64, store=False, device=device))
        n = A.shape[0]
        i = np.arange(n) if is_numpy(A) else array_namespace(A).arange(n, device=A.device)
        A[i, i] += lam if w is None else like(A, lam / w)
        try:
            L = cholesky(A)
        except np.linalg.LinAlgError:
            raise ValueError(
                f"K + λI is singular to rounding at alpha={lam:g}, so there is no predictive variance. Use a larger "
                "alpha, or columns that are centred and scaled."
            ) from None
        ones = triangular(L, np.ones((n, 1)))[:, 0] if intercept else None
        return cls(kernel, points, L, ones, lam, device)

    def variance(self, X: Any) -> Array:
        """Var(f(x) + b)/s of the rows of X."""
        A = kernel_operator(self.kernel, X, self.points, dtype=np.float64, store=False, device=self.device)
        Z = triangular(self.factor, dense_matrix(A).T)
        left = np.maximum(kernel_diagonal(self.kernel, X) - to_numpy((Z * Z).sum(0), float), 0.0)
        if self.ones is not None:
            left += (1.0 - to_numpy(like(Z, self.ones) @ Z, float)) ** 2 / (self.ones @ self.ones)
        return np.asarray(left / self.lam)


def _open_posterior(
    kernel: Kernel, rows: Any, w: Array | None, lam: float, intercept: bool, seed: int, device: Any
) -> BoundedPosterior | Posterior:
    """Bounds given all rows; the exact variance on a device that has room for a factor, or where bounds do not meet.

    Whether they do is tried with some rows of the fit and a few products.
    """
    n = count_points(rows)
    nbytes = 8.0 * n * n
    small = n <= FACTORED and nbytes <= 0.4 * available_memory()
    if device is not None and 3 * nbytes <= free_bytes(device) and (device.type != "cpu" or small):
        return Posterior.of_all(kernel, rows, w, lam, intercept, device)
    bounded: BoundedPosterior | None = None
    try:
        bounded = BoundedPosterior(kernel, rows, w, lam, intercept, seed)
        if not small or bounded.meets(take_points(rows, np.arange(0, n, max(1, n // LOOKED_AT))), FEW):
            return bounded
    except ValueError:  # λ below what rounding leaves of K
        if not small:
            raise
    try:
        return Posterior.of_all(kernel, rows, w, lam, intercept)
    except ValueError:
        if bounded is None:
            raise
        return bounded
