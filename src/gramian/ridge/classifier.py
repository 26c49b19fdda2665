r"""Classification by ridge regression on labels of ±1, one class against the rest: the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, check_scoring
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_y, check_is_fitted

from gramian.compute.devices import is_tensor, to_numpy
from gramian.inputs.checks import check_labels, check_weights
from gramian.inputs.devices import convert_to_numpy, copy_with, like_input
from gramian.ridge.estimator import Ridge, RidgeCV

Array = npt.NDArray[np.float64]

OF_MODEL = (
    *("coef_", "intercept_", "n_iter_", "solver_", "dof_", "rank_", "scale_", "certificate_", "alpha_"),
    *("best_score_", "cv_results_", "leave_one_out_error_", "path_", "n_features_in_", "feature_names_in_"),
)


class _RidgeLabels(ClassifierMixin, BaseEstimator):
    """Labels as columns of ±1 and back, around a ridge regression of these columns."""

    class_weight: Any
    device: Any

    def _encode(self, y: Any, sample_weight: Any) -> tuple[Array, npt.NDArray[Any], Any]:
        """Columns of ±1, the labels, and the weights of rows times those of their classes."""
        y = to_numpy(y) if is_tensor(y) else y
        shape = np.asarray(y).shape
        several = len(shape) == 2 and shape[1] > 1
        if several and type_of_target(y) != "multilabel-indicator":
            raise ValueError(
                f"y has shape {shape}: one label for each row is needed, or a matrix of 0 and 1 with a column "
                "for each class. Fit one model for each column."
            )
        if several:
            labels = np.asarray(_check_y(y, multi_output=True, estimator=self))
            self.classes_, Y = np.arange(labels.shape[1]), np.where(labels > 0, 1.0, -1.0)
        else:
            self.classes_, index = check_labels(self, y)
            c = len(self.classes_)
            labels = self.classes_[index]
            Y = np.where((index == 1)[:, None] if c <= 2 else index[:, None] == np.arange(c), 1.0, -1.0)
        self._multilabel = several
        if self.class_weight is not None:
            own = np.ones(len(Y)) if sample_weight is None else check_weights(sample_weight, len(Y))
            sample_weight = own * compute_sample_weight(self.class_weight, labels)
        return Y, labels, sample_weight

    def _keep(self, model: Any) -> None:
        """Keep the regression, and name what it found."""
        self._model = copy_with(model, {"device": None})  # it is asked where ``device`` says
        for name in OF_MODEL:
            self.__dict__.pop(name, None)
            if name in vars(model):
                setattr(self, name, vars(model)[name])

    def _decode(self, values: Any) -> npt.NDArray[Any]:
        """The labels of decision values: those of the largest, or of every positive one where there may be several."""
        if self._multilabel:
            return np.asarray(values > 0, dtype=np.intp)
        index = np.ravel(values) > 0 if values.ndim == 1 or values.shape[1] == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[np.asarray(index, dtype=np.intp)])

    def decision_function(self, X: Any, return_bound: bool = False) -> Any:
        """Values of the regressions for the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        return_bound : bool, default=False
            Also return a bound on the distance from the exact solution.

        Returns
        -------
        array of shape (n,) for two classes, otherwise (n, c); or a tuple of two
            Positive, or largest, for the class that is predicted.
        """
        check_is_fitted(self)
        return copy_with(self._model, {"device": self.device}).predict(X, return_bound=return_bound)

    @like_input
    def predict(self, X: Any) -> Any:
        """Return the labels of the rows of X; where y had several columns, a matrix of 0 and 1."""
        return self._decode(to_numpy(self.decision_function(X)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose label is predicted, weighted where weights are given."""
        y, f, w = (convert_to_numpy(given) for given in (y, self.predict(X), sample_weight))
        return float(accuracy_score(y, f, sample_weight=w))

    def __sklearn_tags__(self) -> Any:
        """Sparse rows, and several labels for a row."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


class RidgeClassifier(_RidgeLabels):
    r"""Ridge regression on labels of ±1, one class against the rest.

    .. math:: \hat c(x)=\arg\max_c\,(x^Tw_c+b_c),\qquad (w_c,b_c)=\arg\min\sum_i\omega_i(y_{ic}-x_i^Tw-b)^2
        +\lambda\|w\|^2,\quad y_{ic}=\pm1

    A drop-in for :class:`sklearn.linear_model.RidgeClassifier`, with the certificate of the regression.

    Parameters
    ----------
    alpha, fit_intercept, copy_X, max_iter, tol
        As in :class:`gramian.Ridge`.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, by which those of their rows are multiplied.
    solver, positive, random_state, scale, device
        As in :class:`gramian.Ridge`.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The labels, sorted.
    coef_, intercept_, n_iter_, solver_, dof_, rank_, scale_, certificate_, n_features_in_, feature_names_in_
        As of :class:`gramian.Ridge`, with one target for two classes, otherwise one for each.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gramian import RidgeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifier().fit(X, y)
    >>> round(model.score(X, y), 4), model.certificate_.converged
    (0.9596, True)
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        class_weight: Any = None,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        scale: bool = False,
        device: Any = None,
    ) -> None:
        self.alpha, self.fit_intercept, self.copy_X, self.max_iter = alpha, fit_intercept, copy_X, max_iter
        self.tol, self.class_weight, self.solver, self.positive = tol, class_weight, solver, positive
        self.random_state, self.scale, self.device = random_state, scale, device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeClassifier:
        """Find the coefficients of each class.

        Parameters
        ----------
        X, sample_weight
            As in :meth:`gramian.Ridge.fit`.
        y : array-like of shape (n,), or (n, c) of 0 and 1
            Labels of any kind, one for each row; or which of several each row has.

        Returns
        -------
        RidgeClassifier
            The estimator itself.
        """
        Y, _, w = self._encode(y, sample_weight)
        options = self.get_params(deep=False)
        del options["class_weight"]
        self._keep(Ridge(**options).fit(X, Y, w))
        return self


class RidgeClassifierCV(_RidgeLabels):
    r"""Ridge regression on labels of ±1 with the penalty that predicts rows left out best.

    A drop-in for :class:`sklearn.linear_model.RidgeClassifierCV`: λ has the least squared leave-one-out error, the mean
    over classes, or the best ``scoring`` of the labels of rows left out, or of folds.

    Parameters
    ----------
    alphas, fit_intercept
        As in :class:`gramian.RidgeCV`.
    scoring : str or callable, optional
        scikit-learn's score of the labels, or decision values, of rows left out, instead of the squared error.
    cv : int, splitter or iterable, optional
        Folds to be left out instead of rows, by scikit-learn's GridSearchCV around :class:`RidgeClassifier`.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, by which those of their rows are multiplied.
    store_cv_results, scale, device
        As in :class:`gramian.RidgeCV`.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The labels, sorted.
    alpha_, best_score_, cv_results_, path_, leave_one_out_error_
        As of :class:`gramian.RidgeCV`, with one target for two classes, otherwise one for each.
    coef_, intercept_, solver_, dof_, rank_, scale_, certificate_, n_features_in_, feature_names_in_
        As of :class:`RidgeClassifier` with ``alpha_``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gramian import RidgeClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RidgeClassifierCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y)
    >>> round(model.score(X, y), 4), model.alpha_
    (0.9631, 0.01)
    """

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        store_cv_results: bool = False,
        scale: bool = False,
        device: Any = None,
    ) -> None:
        self.alphas, self.fit_intercept, self.scoring, self.cv = alphas, fit_intercept, scoring, cv
        self.class_weight, self.store_cv_results = class_weight, store_cv_results
        self.scale, self.device = scale, device

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeClassifierCV:
        """Choose λ and find the coefficients of each class.

        Parameters
        ----------
        X, sample_weight, **params
            As in :meth:`gramian.RidgeCV.fit`.
        y : array-like of shape (n,), or (n, c) of 0 and 1
            As in :meth:`RidgeClassifier.fit`.

        Returns
        -------
        RidgeClassifierCV
            The estimator itself.
        """
        Y, labels, w = self._encode(y, sample_weight)
        options = self.get_params(deep=False)
        del options["class_weight"]
        if self.scoring is not None:
            options["scoring"] = _LabelScorer(self, self._scorer())
        regression = RidgeCV(**options)
        if self.cv is None:
            self._keep(regression.fit(X, Y, w, **params))
            return self
        alphas = regression._check_parameters()
        if alphas is None:
            raise ValueError("alphas='auto' follows from one decomposition of all rows: give the values, or cv=None.")
        one: Any = RidgeClassifier(fit_intercept=self.fit_intercept, scale=self.scale, device=self.device)
        if get_config()["enable_metadata_routing"]:
            one.set_fit_request(sample_weight=True)
        given = params if w is None else {**params, "sample_weight": w}
        scorer = None if self.scoring is None else self._scorer()
        search = GridSearchCV(one, {"alpha": alphas}, cv=self.cv, scoring=scorer)
        search.fit(convert_to_numpy(X), labels, **given)
        self._keep(search.best_estimator_._model)
        for name in ("n_features_in_", "feature_names_in_"):
            if name in vars(search.best_estimator_):
                setattr(self, name, vars(search.best_estimator_)[name])
        self.alpha_, self.best_score_ = search.best_params_["alpha"], search.best_score_
        return self

    def _scorer(self) -> Any:
        return check_scoring(estimator=self, scoring=self.scoring, allow_none=True)

    def get_metadata_routing(self) -> Any:
        """Say what metadata goes where: to the scorer, and to the splitter of the folds."""
        router = MetadataRouter(owner=self).add_self_request(self)
        router.add(scorer=self._scorer(), method_mapping=MethodMapping().add(caller="fit", callee="score"))
        return router.add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))


class _LabelScorer:
    """A scorer of labels as one of the ±1 that a regression predicts."""

    def __init__(self, classifier: _RidgeLabels, scorer: Any) -> None:
        self.classifier, self.scorer = classifier, scorer

    def __call__(self, estimator: Any, values: Array, Y: Array, **params: Any) -> float:
        """The score of the labels of ``values``, decision values, for those of Y."""
        given = _GivenValues(self.classifier)
        values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        return float(self.scorer(given, values, self.classifier._decode(Y), **params))


class _GivenValues(ClassifierMixin, BaseEstimator):
    """A classifier whose decision values are what it is handed."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier
        self.classes_ = classifier.classes_

    def decision_function(self, X: Any) -> Any:
        """Return X."""
        return X

    def predict(self, X: Any) -> Any:
        """Return the labels of X."""
        return self.classifier._decode(X)
