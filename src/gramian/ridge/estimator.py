"""Ridge regression, and ridge regression that chooses its own penalty: the estimators."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from gramian.compute.devices import like, refuse_beyond_device, resolve, to_numpy
from gramian.compute.memory import gibibytes
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_integer, check_penalties
from gramian.inputs.devices import convert_to_numpy, store_like
from gramian.linear.path import CRITERIA, RidgePath
from gramian.results import NumericalWarning, caller_level
from gramian.ridge.inference import ARRAYS, PRIVATE, LinearPredictions
from gramian.ridge.nonnegative import solve_nonnegative, wants_gram
from gramian.ridge.path import (
    Decomposition,
    LeftOut,
    automatic_grid,
    decompose,
    decompose_wide,
    extend_grid,
    leave_out,
    path_in_own_units,
    ridge_path,
)
from gramian.ridge.problem import RidgeProblem, RowWeights, open_regression
from gramian.ridge.solve import (
    AFFORDABLE,
    SOLVERS,
    choose_solver,
    factor_of,
    solve_by_factors,
    solve_by_gradients,
    solve_directly,
)
from gramian.sources import Source, memory_budget
from gramian.sources.arrays import to_numbers
from gramian.sources.devices import source_to_device
from gramian.sources.errors import Argument

Array = npt.NDArray[np.float64]


class Ridge(LinearPredictions, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Linear least squares with a penalty on the coefficients, with a certificate.

    .. math:: \min_{w,b}\ \sum_i \omega_i\,(y_i - x_i^Tw - b)^2 + \lambda\|w\|^2,\qquad
        \hat w = (\tilde X^T\tilde X+\lambda I)^{-1}\tilde X^T\tilde y

    with X̃ = diag(√ω)(X − 1μᵀ). A drop-in for :class:`sklearn.linear_model.Ridge`. Takes NumPy arrays, scipy.sparse
    matrices, data frames, torch tensors, paths of ``.npy`` and ``.csv`` files, memory maps and Sources.

    Parameters
    ----------
    alpha : float or array-like of shape (t,), default=1.0
        λ, for all targets or for each. 0 is ordinary least squares.
    fit_intercept : bool, default=True
        Whether to fit b, which is not penalised.
    copy_X : bool, default=True
        Accepted for scikit-learn's sake: the data are never changed, and never copied whole.
    max_iter : int, optional
        Most steps of ``cg``; too few for the tolerance is warned about.
    tol : float, default=1e-4
        What ‖X̃ᵀ(ỹ − X̃w) − λw‖/‖X̃ᵀỹ‖ is to meet by ``cg``; 0 means 1e-10. The other solvers are direct.
    solver : {"auto", "svd", "cholesky", "primal", "dual", "cg", "lsqr", "sparse_cg", "sag", "saga"}, default="auto"
        ``cholesky`` (or ``primal``) factors X̃ᵀX̃ + λI, ``dual`` X̃X̃ᵀ + λI, both only where the condition number makes
        that safe and else as ``svd``, which decomposes the data; ``cg`` and the names after it are conjugate gradients.
        ``auto`` takes the smaller matrix, and ``cg`` where neither has a bearable size.
    positive : bool, default=False
        Whether coefficients are to be 0 or more: solved by pivoting on their signs, with ``solver`` "auto" (or
        scikit-learn's name, "lbfgs"). Such coefficients are not linear in y: there are no variances.
    random_state : int, RandomState or None, default=None
        Accepted for scikit-learn's sake: nothing is random.
    scale : bool, default=False
        Whether columns are divided by their standard deviations, of denominator n − 1, before the penalty applies to
        them: it is λΣ(s_j w_j)² then. ``coef_`` is in the columns' own units all the same.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a GPU if there is one.

    Attributes
    ----------
    coef_ : array of shape (p,) or (t, p)
        w.
    intercept_ : float or array of shape (t,)
        b.
    n_iter_ : int or ndarray of shape (t,)
        Steps taken by ``cg``, or with ``positive``; 1 for direct solvers.
    solver_ : str
        "cholesky", "dual", "svd", "cg" or "nonnegative": what was done.
    dof_ : float or ndarray of shape (t,)
        Effective degrees of freedom Σσ²/(σ²+λ), one more for an intercept; NaN by ``cg`` and with ``positive``.
    noise_variance_ : float or ndarray of shape (t,)
        RSS/(N − dof), for the variances of :meth:`predict`; NaN by ``cg``, or where nothing is left over.
    training_error_, r2_ : float or ndarray of shape (t,)
        Root of the mean squared error, weighted, and R² on the rows of the fit.
    rank_ : int or None
        Numerical rank of X̃ as far as the method can see it.
    scale_ : array of shape (p,) or None
        s, the standard deviations of the columns about their means, 1 for constants; None without ``scale``.
    n_features_in_, feature_names_in_
        Columns of X, and their names.
    certificate_ : Residual
        Method, passes, the gradient measured with the data, and a bound on ‖ŵ − w‖; with ``scale`` the gradient is that
        of standardised columns, to whose coefficients ``converged`` refers, and the bound theirs over min s.

    Notes
    -----
    Weights that are all whole numbers are counts: a weight of 2 is the row twice. Others are precisions.

    Dense rows are centred before anything is multiplied. Sparse ones are centred afterwards, which costs about as many
    digits as the means are longer than the spread, in a fit as in a prediction; the bound knows of it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import Ridge
    >>> X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0], [3.0, 5.0]])
    >>> model = Ridge(alpha=1.0).fit(X, [1.0, 2.0, 3.0, 5.0])
    >>> model.coef_.round(4), round(float(model.intercept_), 4)
    (array([0.7345, 0.3805]), 0.6018)
    >>> model.certificate_.converged
    True
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        scale: bool = False,
        device: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver
        self.positive = positive
        self.random_state = random_state
        self.scale = scale
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Find the coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        y : array-like of shape (n,) or (n, t)
            Targets.
        sample_weight : float or array-like of shape (n,), optional
            Weights of the rows: counts where all are whole numbers, else precisions; 0 is the row left out.

        Returns
        -------
        Ridge
            The estimator itself.
        """
        self._check_parameters()
        source, Y, weights, vector = open_regression(self, X, y, sample_weight)
        alpha = check_penalties(self.alpha, Y.shape[1])
        data = source_to_device(source, self.device)
        if self.positive:
            solver, reason = "nonnegative", "positive=True"
            gram = wants_gram(*data.shape)
        else:
            solver, reason = choose_solver(data, self.solver)
            gram = solver == "cholesky"
        with quiet_blas():
            # X̃ = diag(√w)(X − 1μᵀ)diag(1/s), Ỹ = diag(√w)(Y − 1ȳᵀ)
            about = {"intercept": bool(self.fit_intercept), "scale": bool(self.scale)}
            problem = RidgeProblem(data, Y, weights, gram=gram, **about)
            if self.positive:
                solution = solve_nonnegative(problem, alpha, reason)
            elif solver == "cg":
                solution = solve_by_gradients(problem, alpha, float(self.tol), self.max_iter, reason)
            else:
                solution = solve_directly(problem, alpha, solver, reason, keep=self.solver == "svd")
        self._keep(solution, vector)
        iterates = solver in ("cg", "nonnegative")
        self.n_iter_ = np.full(len(alpha), max(self.certificate_.iterations, 1)) if iterates else 1
        store_like(self, source, ARRAYS)
        return self

    def _check_parameters(self) -> None:
        """Raise an error that names the parameter, what it is, and what it may be."""
        check_choice("positive", self.positive, (True, False))
        if self.positive and self.solver not in ("auto", "lbfgs"):
            raise ValueError(f"solver={self.solver!r} does not support positive fitting: use 'auto' or positive=False.")
        check_choice("solver", self.solver, ("auto", "lbfgs") if self.positive else SOLVERS)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_choice("scale", self.scale, (True, False))
        if not (isinstance(self.tol, Real) and 0.0 <= float(self.tol) < np.inf):
            raise ValueError(f"tol must be a number that is not negative, got {self.tol!r}.")
        if self.max_iter is not None:
            check_integer("max_iter", self.max_iter)


NUMBERS = ("coef_", "dof_", "intercept_", "noise_variance_", "r2_", "rank_", "scale_", "training_error_")
TAKEN = ("certificate_", "solver_", *NUMBERS, *PRIVATE)  # by a model from another that was fitted for it


class RidgeCV(LinearPredictions, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Ridge regression with the penalty that predicts rows left out best.

    .. math:: e_i(\lambda) = \frac{y_i-\hat y_i(\lambda)}{1-H_{ii}(\lambda)},\qquad
        \hat\lambda=\arg\min_\lambda\tfrac1N\sum_i w_i e_i(\lambda)^2

    A drop-in for :class:`sklearn.linear_model.RidgeCV`. One decomposition serves every λ: two passes over the data, for
    three values or for fifty.

    Parameters
    ----------
    alphas : array-like of shape (L,), float or "auto", default=(0.1, 1.0, 10.0)
        λ to choose from. "auto" is a grid of 50 in equal ratios, from nearly all degrees of freedom to nearly none,
        continued where the best of them is the first or the last; ``certificate_.notes`` says where it has no best.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    scoring : str or callable, optional
        scikit-learn's score of the predictions of rows left out, instead of the squared error.
    cv : int, splitter or iterable, optional
        Folds to be left out instead of rows; every λ is then fitted anew by scikit-learn's GridSearchCV and scored by
        ``scoring`` (R² by default), whatever the ``criterion``.
    gcv_mode : {"auto", "svd", "eigen"}, optional
        "svd" decomposes the data themselves; else the smaller Gram matrix is, where that is safe.
    store_cv_results : bool, default=False
        Whether to keep the error of every row, λ and target.
    alpha_per_target : bool, default=False
        Whether to choose for each target by itself.
    criterion : {"loo", "gcv", "marginal_likelihood"}, default="loo"
        Leave-one-out error; generalised cross-validation (RSS/N)/(1 − df/N)²; or the probability of y under the prior
        of which the penalty is the logarithm.
    scale : bool, default=False
        Whether columns are divided by their standard deviations, as in :class:`gramian.Ridge`: those of all rows where
        rows are left out one by one, as of a scaler before scikit-learn's RidgeCV, and those of the other folds with
        ``cv``.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a GPU if there is one.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (t,)
        The best λ.
    best_score_ : float or ndarray of shape (t,)
        Its score, larger being better: minus the mean squared error unless ``scoring`` or ``criterion`` say otherwise.
    cv_results_ : ndarray of shape (n, L) or (n, t, L)
        Squared errors of rows left out, times the weight; predictions where ``scoring`` is given. Only with
        ``store_cv_results``.
    leave_one_out_error_ : float or ndarray of shape (t,)
        Root of the mean squared error of rows left out, weighted, at ``alpha_``; not there with ``cv``.
    path_ : RidgePath
        Coefficients, degrees of freedom and every criterion for each λ; not there with ``cv``. Its ``coef`` is empty
        where it would have more than 2²⁵ numbers, its ``loo`` NaN where rounding hides the error.
    coef_, intercept_, dof_, noise_variance_, training_error_, r2_, rank_, scale_, solver_, certificate_
        As of :class:`gramian.Ridge` with ``alpha_``.
    n_features_in_, feature_names_in_
        Columns of X, and their names.

    Notes
    -----
    A row is left out with all its weight, as by scikit-learn: copies of it would predict it. Weights that are all whole
    numbers count observations, which decides on N in the other criteria and ``noise_variance_``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    >>> model.alpha_, round(model.score(X, y), 4)
    (0.01, 0.5166)
    >>> RidgeCV(alphas="auto").fit(X, y).path_
    RidgePath(50 values of λ from ...
    """

    alpha_: Any
    best_score_: Any

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        criterion: str = "loo",
        scale: bool = False,
        device: Any = None,
    ) -> None:
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.scoring = scoring
        self.cv = cv
        self.gcv_mode = gcv_mode
        self.store_cv_results = store_cv_results
        self.alpha_per_target = alpha_per_target
        self.criterion = criterion
        self.scale = scale
        self.device = device

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeCV:
        """Choose λ and find the coefficients.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`Ridge.fit`.
        **params
            For the scorer, where scikit-learn's metadata routing is enabled.

        Returns
        -------
        RidgeCV
            The estimator itself.
        """
        alphas = self._check_parameters()
        for name in ("cv_results_", "leave_one_out_error_", "path_"):
            self.__dict__.pop(name, None)
        if params and not get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"Got {sorted(params)}: only sample_weight can be passed while scikit-learn's metadata routing is off."
            )
        if self.cv is not None:
            return self._fit_folds(X, y, alphas, sample_weight, params)
        source, Y, weights, vector = open_regression(self, X, y, sample_weight)
        data, t = source_to_device(source, self.device), Y.shape[1]
        score = None if self.scoring is None else self._score_function(Y, weights, vector, sample_weight, params)
        solver, reason = self._choose_solver(data, weights, t, alphas)
        with quiet_blas():
            about = {"intercept": bool(self.fit_intercept), "scale": bool(self.scale)}
            problem = RidgeProblem(data, Y, weights, gram=solver == "cholesky", **about)
            found, tried = _decompose_safely(problem, solver, alphas)  # X̃ = UΣVᵀ
            path, left, known, scores = self._try_penalties(found, tried, score)
            best = _find_best(scores)
            if alphas is None and not _are_alike(scores):
                grid = problem.scale_penalties(tried)[0]
                longer = extend_grid(grid, best, found.squares)
                if len(longer) > len(grid):
                    found, tried = _decompose_safely(problem, solver, problem.own_penalties(longer), found)
                    path, left, known, scores = self._try_penalties(found, tried, score)
                    best = _find_best(scores)
            alpha = np.broadcast_to(tried[best], (t,))
            factor = factor_of(found, problem.scale_penalties(alpha)[0])
            solution = solve_by_factors(
                problem, alpha, [(np.arange(t), problem, factor)], reason, keep=self.gcv_mode == "svd"
            )
        self._warn_unless_scored(scores, problem)
        if np.isfinite(scores).any() and not np.all(known[best, np.arange(known.shape[1])]):
            warnings.warn(
                f"The leave-one-out error {np.max(left.loo[best]):.3g} is a ratio of small differences: rounding can "
                f"make {np.max(left.lost[best]):.1e} of it, in units of y². Use larger alphas, or gcv_mode='svd'.",
                NumericalWarning,
                stacklevel=caller_level(),
            )
        self._keep(solution, vector)
        path = path_in_own_units(path, problem)
        told, targets = scores if score is not None else self._criterion(path, t), np.arange(t)
        if score is None and self.criterion == "loo":  # scikit-learn's mean is over the rows, weighted or not
            told = told * (weights.count / data.shape[0])
        self._name_best(alpha, told[best, np.arange(told.shape[1])], vector)
        error = np.sqrt(path.loo[np.broadcast_to(best, (t,)), targets] * (weights.count / weights.mass))
        self.leave_one_out_error_ = float(error[0]) if t == 1 else error
        # what rounding hides is not shown: where it may be all of the error
        self.path_: RidgePath = replace(path, loo=np.where(left.lost > left.loo, np.nan, path.loo))
        alike = len(tried) > 1 and _are_alike(scores)
        notes = ["every λ predicts alike, and the first is taken"] if alike else []
        useless = f"the columns do not help to predict{'' if self.scale else ' in the units they have'}"
        for end, name, limit in (
            (tried.min(), "smallest", "next to nothing is shrunk: least squares (alpha=0) predicts as well"),
            (tried.max(), "largest", f"next to nothing but the mean is left: {useless}"),
        ):
            if len(tried) > 1 and not alike and np.any(alpha == end):
                why = f", where {limit}" if alphas is None else ": alphas='auto' looks beyond"
                notes.append(f"the best λ, {end:.4g}, is the {name} of the {len(tried)} tried{why}")
        self.certificate_ = self.certificate_.with_(notes=(*self.certificate_.notes, *notes))
        if left.errors is not None:
            if score is not None:
                results = np.stack([_predictions(problem, e) for e in np.moveaxis(left.errors, 1, 0)], axis=2)
            else:
                squares = np.where(np.isnan(left.errors), 0.0, left.errors / problem.y_unit) ** 2
                if weights.values is not None:
                    squares *= weights.values[:, None, None]
                results = np.ascontiguousarray(np.swapaxes(squares, 1, 2))
            results = results[:, 0] if vector else results
            self.cv_results_ = like(data, results.astype(np.float32) if data.dtype == data.xp.float32 else results)
        store_like(self, source, ARRAYS)
        return self

    def _try_penalties(
        self, found: Decomposition, alphas: Array, score: Any
    ) -> tuple[RidgePath, LeftOut, npt.NDArray[np.bool_], Array]:
        """The path, rows left out, which of their mean errors rounding leaves known, and the scores, larger better."""
        problem, keep = found.problem, bool(self.store_cv_results)
        lam, (n, p) = problem.scale_penalties(alphas)[0], problem.source.shape
        left = leave_out(found, lam, keep=keep)
        known = left.is_known(problem.energy, problem.weights.count)
        if not known.all() and not (found.dual and not found.squared) and float(n) * n * (n + p) <= AFFORDABLE:
            left = leave_out(decompose_wide(problem, dual=True), lam, keep=keep)  # by all of U nothing cancels
            known = left.is_known(problem.energy, problem.weights.count)
        path = ridge_path(found, alphas, left)
        if score is None:
            return path, left, known, self._criterion(path, problem.Y.shape[1])
        return path, left, known, _score_predictions(found, alphas, left, score)

    def _choose_solver(self, data: Source, weights: RowWeights, t: int, alphas: Array | None) -> tuple[str, str]:
        """Return what to decompose, and why, unless nothing could be left out, or what is to be kept does not fit."""
        (n, p), L = data.shape, 50 if alphas is None else len(alphas)
        nbytes = 16.0 * n * L * t
        if self.store_cv_results:
            refuse_beyond_device(nbytes, None, f"cv_results_ ({gibibytes(nbytes)})", "Use store_cv_results=False.")
        if weights.rows < 2:
            raise ValueError(
                f"Found 1 sample with a weight (n_samples={n}): with one row left out nothing is left to fit. Use "
                "Ridge with an alpha of your choice."
            )
        if self.gcv_mode == "svd":
            return "svd", "gcv_mode='svd'"
        solver, size = ("dual", n) if n - int(self.fit_intercept) <= p else ("cholesky", p)
        what = f"A {size} × {size} Gram matrix with its eigenvectors"
        remedy = "Use cv=5, which fits each alpha by itself, or fewer columns."
        refuse_beyond_device(24.0 * size * size, None, what, remedy)
        return solver, f"every λ from one decomposition, of a {size} × {size} matrix"

    def _criterion(self, path: RidgePath, t: int) -> Array:
        """What is to be made large, (L, t), or (L, 1) of all targets: the mean, of likelihoods the sum."""
        scores = -path.score(self.criterion)
        if self.alpha_per_target and t > 1:
            return scores
        joint = np.sum if self.criterion == "marginal_likelihood" else np.mean
        return np.asarray(joint(scores, axis=1, keepdims=True))

    def _warn_unless_scored(self, scores: Array, problem: RidgeProblem) -> None:
        """Say so where no λ could be told from another."""
        if np.all(np.isfinite(scores).any(axis=0)):
            return
        message = (
            "No alpha has a finite score, so that the first was taken: some row determines its own fit, and nothing is "
            "known of its error when left out. Try larger alphas, or criterion='marginal_likelihood'."
        )
        constant = np.flatnonzero(problem.energy == 0.0)
        if self.criterion == "marginal_likelihood" and len(constant):
            which = f"Column {constant[0] + 1} of y" if problem.Y.shape[1] > 1 else "y"
            message = (
                f"{which} is {'constant' if problem.intercept else '0 in every row'}: every alpha fits it without "
                "error, the likelihood grows without bound and prefers none, so that the first alpha was taken. Leave "
                "such a target out, or use criterion='loo'."
            )
        warnings.warn(message, NumericalWarning, stacklevel=caller_level())

    def _name_best(self, alpha: Array, score: Array, vector: bool) -> None:
        each = bool(self.alpha_per_target) and not vector
        self.alpha_ = alpha if each and len(alpha) > 1 else float(alpha[0])
        self.best_score_ = score if each else score[0]

    def _score_function(self, Y: Array, weights: RowWeights, vector: bool, sample_weight: Any, params: Any) -> Any:
        """The scorer on predictions of rows left out; rows without weight have none and are passed over."""
        given = params if sample_weight is None else {**params, "sample_weight": sample_weight}
        if get_config()["enable_metadata_routing"]:
            given = process_routing(self, "fit", **given).scorer.score
        scorer, w, t = self._scorer(), weights.values, Y.shape[1]
        keep = slice(None) if w is None or np.all(w > 0) else w > 0
        given = {k: to_numpy(v)[keep] if np.shape(v)[:1] == (len(Y),) else v for k, v in given.items()}

        def score(predictions: Array) -> Any:
            P, T = predictions[keep], Y[keep]
            if self.alpha_per_target and t > 1:
                return [scorer(_Given(), P[:, j], T[:, j], **given) for j in range(t)]
            return scorer(_Given(), P[:, 0] if vector else P, T[:, 0] if vector else T, **given)

        return score

    def _fit_folds(self, X: Any, y: Any, alphas: Array | None, sample_weight: Any, params: Any) -> RidgeCV:
        """Every λ on every fold, by scikit-learn's grid search around our Ridge; for each target if asked for."""
        if alphas is None:
            raise ValueError("alphas='auto' follows from one decomposition of all rows: give the values, or cv=None.")
        if isinstance(X, (str, os.PathLike, Source)):
            raise ValueError("cv needs rows that can be indexed: pass an array or a memory map, or use cv=None.")
        source = open_regression(self, X, y, sample_weight)[0]  # what is wrong is said once, and not by every fold
        common = {"fit_intercept": self.fit_intercept, "scale": self.scale, "device": resolve(self.device, X)}
        X, y, sample_weight = (convert_to_numpy(given) for given in (X, y, sample_weight))  # folds are cut by NumPy
        model: Any = Ridge(**common)
        if get_config()["enable_metadata_routing"]:
            model.set_fit_request(sample_weight=True)
        given = params if sample_weight is None else {**params, "sample_weight": sample_weight}
        each = bool(self.alpha_per_target) and np.ndim(y) == 2
        searches = [
            GridSearchCV(model, {"alpha": alphas}, cv=self.cv, scoring=self._scorer()).fit(X, target, **given)
            for target in (np.asarray(y).T if each else [y])
        ]
        best = searches[0].best_estimator_
        alpha = np.array([search.best_params_["alpha"] for search in searches])
        if each:
            best = Ridge(alpha, **common).fit(X, y, sample_weight)
        self._name_best(alpha, np.array([search.best_score_ for search in searches]), not each)
        for name in TAKEN:
            setattr(self, name, getattr(best, name))
        store_like(self, source, ARRAYS)
        return self

    def _check_parameters(self) -> Array | None:
        """Check the parameters and return λ, or None for an automatic grid."""
        check_choice("gcv_mode", self.gcv_mode, (None, "auto", "svd", "eigen"))
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_choice("scale", self.scale, (True, False))
        if self.cv is not None and self.store_cv_results:
            raise ValueError(
                "cv!=None and store_cv_results=True are incompatible: folds leave no errors of single rows."
            )
        if self.criterion != "loo" and self.scoring is not None:
            raise ValueError(
                f"criterion={self.criterion!r} is a score of its own: leave out scoring, or use criterion='loo'."
            )
        if isinstance(self.alphas, str):
            check_choice("alphas", self.alphas, ("auto",))
            return None
        given = to_numbers(self.alphas, "alphas") if np.ma.isMaskedArray(self.alphas) else self.alphas
        values, zero = np.atleast_1d(np.asarray(given, dtype=object)), self.cv is not None
        if values.ndim != 1 or not len(values):
            raise ValueError(f"alphas must be one or more numbers, got an array of shape {values.shape}.")
        for i, value in enumerate(values):
            name = "alphas" if len(values) == 1 else f"alphas[{i}]"
            if not isinstance(value, Real):
                raise TypeError(f"{name} must be an instance of float, not {type(value).__name__}.")
            if not (np.isfinite(float(value)) and (float(value) > 0 or (zero and float(value) == 0))):
                raise ValueError(
                    f"{name} == {value}, must be {'>=' if zero else '>'} 0{'' if zero else ' unless cv is given'}."
                )
        return np.asarray(values, dtype=np.float64)

    def _advise_keeping(self) -> tuple[str | Argument, ...]:
        if self.cv is None:
            return "Fit with ", Argument("gcv_mode", "svd")
        return "Fit Ridge(alpha_) with ", Argument("solver", "svd")

    def _scorer(self) -> Any:
        if get_config()["enable_metadata_routing"] and self.scoring is None:
            default: Any = get_scorer("r2")
            return default.set_score_request(sample_weight=True)
        return check_scoring(estimator=self, scoring=self.scoring, allow_none=True)

    def get_metadata_routing(self) -> Any:
        """Say what metadata goes where: to the scorer, and to the splitter of the folds."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(scorer=self._scorer(), method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))


def _decompose_safely(
    problem: RidgeProblem, solver: str, alphas: Array | None, found: Decomposition | None = None
) -> tuple[Decomposition, Array]:
    """A decomposition that is safe for the least λ, the one already ``found`` if it is, and the automatic grid."""
    if alphas is not None:
        least = float(np.min(problem.scale_penalties(alphas)[0]))
        if found is None:
            return decompose(problem, solver, least, dual=True), alphas
        why = found.find_danger(least)
        return (replace(decompose(problem, "svd", 0.0, dual=True), why=why) if why else found), alphas
    found = decompose(problem, solver, np.inf, dual=True)
    why = found.find_danger(float(automatic_grid(found.squares)[0]))
    if why:
        found = replace(decompose(problem, "svd", 0.0, dual=True), why=why)
    return found, problem.own_penalties(automatic_grid(found.squares))


def _are_alike(scores: Array) -> bool:
    """Whether no λ is better than another."""
    return bool(np.all((scores == scores[0]) | np.isnan(scores)))


def _find_best(scores: Array) -> npt.NDArray[np.intp]:
    """Index of the best λ of each column, NaN being none."""
    return np.asarray(np.argmax(np.where(np.isnan(scores), -np.inf, scores), axis=0))


def _score_predictions(found: Decomposition, alphas: Array, left: LeftOut, score: Any) -> Array:
    """Scores by a function of all predictions: as many λ at a time as fit into the memory budget."""
    (n, t), lam = found.problem.Y.shape, found.problem.scale_penalties(alphas)[0]
    step = len(lam) if left.errors is not None else max(1, memory_budget() // (8 * n * t))
    out: list[Array] = []
    for i in range(0, len(lam), step):
        errors = left.errors if left.errors is not None else leave_out(found, lam[i : i + step], keep=True).errors
        assert errors is not None
        out += [np.atleast_1d(score(_predictions(found.problem, e))) for e in np.moveaxis(errors, 1, 0)]
    return np.asarray(out, dtype=np.float64)


def _predictions(problem: RidgeProblem, errors: Array) -> Array:
    """ŷ of rows left out, in the units of y."""
    return np.asarray((problem.Y - errors + (problem.level + problem.level_low)) / problem.y_unit)


class _Given(RegressorMixin, BaseEstimator):
    """Predicts what it is handed: the predictions themselves."""

    def predict(self, X: Any) -> Any:
        """Return X."""
        return X

    decision_function = predict
