"""Ridge regression that chooses its own penalty."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from gramian.compute.devices import like, resolve, to_numpy
from gramian.inputs.checks import check_choice
from gramian.inputs.devices import convert_to_numpy, store_like
from gramian.linear.path import CRITERIA, RidgePath
from gramian.results import NumericalWarning, Residual, caller_level
from gramian.ridge.inference import ARRAYS, PRIVATE, LinearPredictions
from gramian.ridge.path import Chosen, Task, check_store, choose_penalty
from gramian.ridge.problem import RidgeInputs, check_ridge, open_ridge, penalties, penalty_grid
from gramian.ridge.solve import Options, Solved, fit_ridge
from gramian.sources import Source

__all__ = ["Ridge", "RidgeCV"]

Array = Any


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
        Not offered; see the error it raises for what to use.
    random_state : int, RandomState or None, default=None
        Accepted for scikit-learn's sake: nothing is random.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one.

    Attributes
    ----------
    coef_ : array of shape (p,) or (t, p)
        w.
    intercept_ : float or array of shape (t,)
        b.
    n_iter_ : int or ndarray of shape (t,)
        Steps taken by ``cg``; 1 for direct solvers.
    solver_ : str
        "cholesky", "dual", "svd" or "cg": what was done.
    dof_ : float or ndarray of shape (t,)
        Effective degrees of freedom Σσ²/(σ²+λ), one more for an intercept; NaN by ``cg``, which does not know them.
    noise_variance_ : float or ndarray of shape (t,)
        RSS/(N − dof), for the variances of :meth:`predict`; NaN by ``cg``, or where nothing is left over.
    rank_ : int or None
        Numerical rank of X̃ as far as the method can see it.
    n_features_in_, feature_names_in_
        Columns of X, and their names.
    certificate_ : Residual
        Method, passes, the gradient measured with the data, and a bound on ‖ŵ − w‖.

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
        check_ridge(self)
        inputs = open_ridge(self, X, y, sample_weight).at(self.device)
        lam = penalties(self.alpha, inputs.Y.shape[1])
        options = Options(self.solver, bool(self.fit_intercept), float(self.tol), self.max_iter)
        self._name(fit_ridge(inputs, lam, options), inputs.ndim)
        store_like(self, inputs.given, ARRAYS)
        return self

    def _name(self, solved: Solved, ndim: int) -> None:
        self._take(solved, ndim)
        self.rank_ = solved.rank
        self.certificate_: Residual = solved.certificate
        steps = solved.certificate.iterations
        self.n_iter_ = np.full(solved.coef.shape[1], max(steps, 1)) if solved.solver == "cg" else 1
        for message in solved.warnings:
            warnings.warn(message, NumericalWarning, stacklevel=caller_level())

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

TAKEN = ("certificate_", "coef_", "dof_", "intercept_", "noise_variance_", "rank_", "solver_", *PRIVATE)


class RidgeCV(LinearPredictions, MultiOutputMixin, RegressorMixin, BaseEstimator):
    r"""Ridge regression with the penalty that predicts rows left out best.

    .. math:: e_i(\lambda) = \frac{y_i-\hat y_i(\lambda)}{1-H_{ii}(\lambda)},\qquad
        \hat\lambda=\arg\min_\lambda\tfrac1N\sum_i w_i e_i(\lambda)^2

    A drop-in for :class:`sklearn.linear_model.RidgeCV`. One decomposition serves every λ: two passes over the data, for
    three values or for fifty.

    Parameters
    ----------
    alphas : array-like of shape (L,), float or "auto", default=(0.1, 1.0, 10.0)
        λ to choose from. "auto" is a grid of 50 in equal ratios, from nearly all degrees of freedom to nearly none.
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
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (t,)
        The best λ.
    best_score_ : float or ndarray of shape (t,)
        Its score, larger being better: minus the mean squared error unless ``scoring`` or ``criterion`` say otherwise.
    cv_results_ : ndarray of shape (n, L) or (n, t, L)
        Squared errors of rows left out, times the weight where weights are precisions, 0 where it is 0; predictions
        where ``scoring`` is given. Only with ``store_cv_results``.
    path_ : RidgePath
        Coefficients, degrees of freedom and every criterion for each λ; not there with ``cv``. Its ``coef`` is empty
        where it would have more than 2²⁵ numbers.
    coef_, intercept_, dof_, noise_variance_, rank_, solver_, certificate_, n_features_in_, feature_names_in_
        As of :class:`gramian.Ridge` with ``alpha_``.

    Notes
    -----
    Weights that are all whole numbers are counts: a weight of 2 is the row twice, of which one is left out at a time.
    Others are precisions, and the row is left out whole.

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
        alphas = self._checked()
        for name in ("cv_results_", "path_"):
            self.__dict__.pop(name, None)
        if params and not get_config()["enable_metadata_routing"]:
            raise ValueError(
                f"Got {sorted(params)}: only sample_weight can be passed while scikit-learn's metadata routing is off."
            )
        if self.cv is not None:
            self._fit_folds(X, y, alphas, sample_weight, params)
            return self
        inputs = open_ridge(self, X, y, sample_weight).at(self.device)
        task = self._task(inputs, alphas, sample_weight, params)
        if task.store:
            check_store(inputs.Y.shape[0], 50 if alphas is None else len(alphas), inputs.Y.shape[1])
        self._name(choose_penalty(inputs, task), inputs)
        store_like(self, inputs.given, ARRAYS)
        return self

    def _task(self, inputs: RidgeInputs, alphas: Vector | None, sample_weight: Any, params: Any) -> Task:
        score = None
        if self.scoring is not None:
            score = self._score_function(inputs, self._score_parameters(sample_weight, params))
        return Task(
            alphas,
            bool(self.fit_intercept),
            self.criterion,
            bool(self.alpha_per_target) and inputs.Y.shape[1] > 1,
            bool(self.store_cv_results),
            self.gcv_mode == "svd",
            score,
        )

    def _score_parameters(self, sample_weight: Any, params: Any) -> dict[str, Any]:
        given = params if sample_weight is None else {**params, "sample_weight": sample_weight}
        if not get_config()["enable_metadata_routing"]:
            return dict(given)
        return dict(process_routing(self, "fit", **given).scorer.score)

    def _score_function(self, inputs: RidgeInputs, params: dict[str, Any]) -> Any:
        """The scorer on predictions of rows left out; rows without weight have none and are passed over."""
        scorer, w, Y = self._scorer(), inputs.weights.values, inputs.Y
        keep = slice(None) if w is None or np.all(w > 0) else w > 0
        given = {k: to_numpy(v)[keep] if np.shape(v)[:1] == (len(Y),) else v for k, v in params.items()}

        def score(predictions: Matrix) -> Any:
            P, T = predictions[keep], Y[keep]
            if self.alpha_per_target and Y.shape[1] > 1:
                return [scorer(_Given(), P[:, j], T[:, j], **given) for j in range(Y.shape[1])]
            flat = inputs.ndim == 1
            return scorer(_Given(), P[:, 0] if flat else P, T[:, 0] if flat else T, **given)

        return score

    def _fit_folds(self, X: Any, y: Any, alphas: Vector | None, sample_weight: Any, params: Any) -> None:
        """Every λ on every fold, by scikit-learn's grid search around our Ridge; for each target if asked for."""
        if alphas is None:
            raise ValueError("alphas='auto' follows from one decomposition of all rows: give the values, or cv=None.")
        if isinstance(X, (str, os.PathLike, Source)):
            raise ValueError("cv needs rows that can be indexed: pass an array or a memory map, or use cv=None.")
        given_X = open_ridge(self, X, y, sample_weight).given  # what is wrong is said here, once, and not by every fold
        device = resolve(self.device, X)
        X, y, sample_weight = (convert_to_numpy(given) for given in (X, y, sample_weight))  # folds are cut by NumPy
        model: Any = Ridge(fit_intercept=self.fit_intercept, device=device)
        if get_config()["enable_metadata_routing"]:
            model.set_fit_request(sample_weight=True)
        given = params if sample_weight is None else {**params, "sample_weight": sample_weight}
        scorer, each = self._scorer(), bool(self.alpha_per_target) and np.ndim(y) == 2
        searches = [
            GridSearchCV(model, {"alpha": alphas}, cv=self.cv, scoring=scorer).fit(X, target, **given)
            for target in (np.asarray(y).T if each else [y])
        ]
        if each:
            found = np.array([search.best_params_["alpha"] for search in searches])
            self.alpha_ = found if len(found) > 1 else float(found[0])
            self.best_score_ = np.array([search.best_score_ for search in searches])
            best = Ridge(found, fit_intercept=self.fit_intercept, device=device).fit(X, y, sample_weight)
        else:
            best = searches[0].best_estimator_
            self.alpha_, self.best_score_ = best.alpha, searches[0].best_score_
        for name in TAKEN:
            setattr(self, name, getattr(best, name))
        store_like(self, given_X, ARRAYS)

    def _checked(self) -> Vector | None:
        """Check the parameters and return λ, or None for an automatic grid."""
        check_choice("gcv_mode", self.gcv_mode, (None, "auto", "svd", "eigen"))
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
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
        return penalty_grid(self.alphas, zero=self.cv is not None)

    def _name(self, chosen: Chosen, inputs: RidgeInputs) -> None:
        self._take(chosen.solved, inputs.ndim)
        each = bool(self.alpha_per_target) and inputs.ndim == 2
        self.alpha_ = chosen.alpha if each and len(chosen.alpha) > 1 else float(chosen.alpha[0])
        self.best_score_ = chosen.score if each else chosen.score[0]
        for message in chosen.solved.warnings:
            warnings.warn(message, NumericalWarning, stacklevel=caller_level())
        self.path_: RidgePath = chosen.path
        self.rank_ = chosen.solved.rank
        self.certificate_: Residual = chosen.solved.certificate
        if chosen.results is not None:
            results = chosen.results[:, 0] if inputs.ndim == 1 else chosen.results
            single = inputs.source.dtype == inputs.source.xp.float32
            self.cv_results_ = like(inputs.source, results.astype(np.float32) if single else results)

    def _keeping(self) -> str:
        if self.cv is None:
            return "Fit with gcv_mode='svd', which keeps it whatever its size."
        return "Fit Ridge(alpha_, solver='svd'), which keeps it whatever its size."

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

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _Given(RegressorMixin, BaseEstimator):
    """Predicts what it is handed: the predictions themselves."""

    def predict(self, X: Any) -> Any:
        """X."""
        return X

    decision_function = predict
