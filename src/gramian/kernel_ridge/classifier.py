"""Classification by kernel ridge regression on ±1: the estimator, and the sigmoid of its probabilities."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import is_tensor, to_numpy
from gramian.inputs.checks import check_choice, check_labels, check_weights, has_whole_weights
from gramian.inputs.devices import copy_with, like_input, store_like
from gramian.kernel_ridge.estimator import KernelInput, KernelRidgeCV

Array = npt.NDArray[np.float64]

ITERATIONS = 100
ENOUGH = 1e-14  # of the total weight: what a Newton step would still gain


@dataclass(frozen=True)
class ProbabilitySigmoid:
    """P(y = 1 | f) = 1/(1 + exp(−(af + b))).

    Attributes
    ----------
    slope, offset : float
        a, never negative, and b.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.classifier import ProbabilitySigmoid
    >>> ProbabilitySigmoid(2.0, 0.0)(np.array([-1.0, 0.0, 1.0])).round(4)
    array([0.1192, 0.5   , 0.8808])
    """

    slope: float
    offset: float

    def __call__(self, values: npt.ArrayLike) -> Array:
        """Return the probabilities of decision values."""
        return np.asarray(expit(self.slope * np.asarray(values, dtype=np.float64) + self.offset))


def fit_sigmoid(values: Array, positive: npt.NDArray[np.bool_], w: Array | None = None) -> ProbabilitySigmoid:
    """Fit a sigmoid to decision values of rows that were left out.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Decision values f.
    positive : ndarray of bool of shape (n,)
        Which rows are of the class.
    w : ndarray of shape (n,), optional
        Weights.

    Returns
    -------
    ProbabilitySigmoid
        Constant where larger values do not go with the class: then they carry no information.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.classifier import fit_sigmoid
    >>> f = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> fit_sigmoid(f, f > 0)(f).round(2)
    array([0.12, 0.27, 0.38, 0.62, 0.73, 0.88])
    """
    w = np.ones(len(values)) if w is None else w
    high, low = float(w[positive].sum()), float(w[~positive].sum())
    t = np.where(positive, (high + 1.0) / (high + 2.0), 1.0 / (low + 2.0))
    middle = float(w @ values / w.sum())
    spread = float(np.sqrt(w @ (values - middle) ** 2 / w.sum()))
    flat = ProbabilitySigmoid(0.0, float(logit(w @ t / w.sum())))
    if not spread > 0.0:
        return flat
    a, b = _minimise_entropy((values - middle) / spread, t, w, flat.offset)
    return ProbabilitySigmoid(a / spread, b - a * middle / spread) if a > 0.0 else flat


def _minimise_entropy(z: Array, t: Array, w: Array, offset: float) -> tuple[float, float]:
    """(a, b) of the least cross-entropy −Σ w[t ln p + (1−t) ln(1−p)], by Newton's steps from (0, offset)."""

    def entropy(at: Array) -> float:
        values = Z @ at
        return float(w @ (np.logaddexp(0.0, values) - t * values))  # without overflow

    Z, at = np.column_stack([z, np.ones(len(z))]), np.array([0.0, offset])
    loss = entropy(at)
    for _ in range(ITERATIONS):
        p = expit(Z @ at)
        gradient = Z.T @ (w * (p - t))
        curvature = Z.T @ (Z * (w * p * (1.0 - p))[:, None])
        step = np.linalg.solve(curvature + 1e-12 * np.trace(curvature) * np.eye(2), gradient)
        gain = float(gradient @ step)
        size, new = 1.0, entropy(at - step)
        while new > loss - 1e-4 * size * gain and size > 1e-10:
            size /= 2
            new = entropy(at - size * step)
        if size > 1e-10:
            at, loss = at - size * step, new
        if gain <= ENOUGH * w.sum() or size <= 1e-10:
            break
    return float(at[0]), float(at[1])


def common_sigmoid(values: Array, Y: Array, w: Array | None = None) -> ProbabilitySigmoid:
    """One sigmoid for all classes, fitted to all pairs of a row and a class: of two classes b = 0 by symmetry.

    With one increasing function for all, the class of highest probability is that of the largest decision value.

    Parameters
    ----------
    values, Y : ndarray of shape (n, t)
        Decision values of rows left out, and ±1: one column for two classes, otherwise one for each.
    w : ndarray of shape (n,), optional
        Weights.
    """
    if Y.shape[1] == 1:
        values, Y = np.hstack([values, -values]), np.hstack([Y, -Y])
    each = None if w is None else np.repeat(w, Y.shape[1])
    return fit_sigmoid(values.ravel(), Y.ravel() > 0, each)


def probabilities(values: Array, sigmoid: ProbabilitySigmoid) -> Array:
    """Probabilities of the classes, to sum 1: of two from one column of values, of more from one for each.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.classifier import ProbabilitySigmoid, probabilities
    >>> probabilities(np.array([[1.0, 0.0, -1.0]]), ProbabilitySigmoid(2.0, 0.0)).round(3)
    array([[0.587, 0.333, 0.079]])
    """
    if values.shape[1] == 1:
        return np.hstack([sigmoid(-values), sigmoid(values)])
    P = sigmoid(values)
    total = P.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(P, total, out=np.full_like(P, 1.0 / P.shape[1]), where=total > 0))


CRITERIA = ("loo", "accuracy")
SHARED = (
    *("alpha_", "alphas_", "kernel_", "kernels_", "gamma_", "path_", "dof_", "dual_coef_", "intercept_", "X_fit_"),
    *("certificate_", "solver_", "n_iter_", "n_features_in_", "feature_names_in_"),
)


class KernelClassifier(ClassifierMixin, KernelInput):
    """What classifiers with a kernel share: labels, weights of classes, and what follows from decision values."""

    class_weight: Any
    classes_: npt.NDArray[Any]

    @abstractmethod
    def decision_function(self, X: Any, return_bound: bool = False) -> Any:
        """Values by which classes are compared: one of two classes, otherwise one for each."""

    @like_input
    def predict(self, X: Any) -> Any:
        """Return the labels of the rows of X: those of the largest decision values."""
        values = to_numpy(self.decision_function(X))
        # eq: krr-boundary
        index = values > 0 if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(self.classes_[np.asarray(index, dtype=np.intp)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose label is predicted, weighted where weights are given; y may be a tensor."""
        return float(accuracy_score(to_numpy(y), to_numpy(self.predict(X)), sample_weight=to_numpy(sample_weight)))

    def _open_labels(
        self, y: Any, sample_weight: Any
    ) -> tuple[Array, npt.NDArray[np.intp], tuple[Array | None, Array | None]]:
        """±1, one column of two classes and otherwise one for each; numbers of the classes; and weights."""
        y = to_numpy(y) if is_tensor(y) else y
        shape = np.asarray(y).shape
        if len(shape) == 2 and shape[1] > 1:
            raise ValueError(f"y must be one label for each row, got shape {shape}: fit one model for each column.")
        self.classes_, labels = check_labels(self, y)
        w, copies = self._check_weights(labels, sample_weight)
        present = np.unique(labels if w is None else labels[w > 0])
        if len(present) < 2:
            name = f": {self.classes_[present[0]]}" if len(present) else ""
            raise ValueError(f"There is only one class among rows of positive weight{name}; two are needed.")
        c = len(self.classes_)
        Y = np.where(labels == 1 if c == 2 else labels[:, None] == np.arange(c), 1.0, -1.0)
        return Y, labels, (w, copies)

    def _check_weights(self, labels: npt.NDArray[np.intp], sample_weight: Any) -> tuple[Array | None, Array | None]:
        """Weights of rows and classes multiplied; and, where classes have any, how often each row is there.

        "balanced" goes by the weights of a class's rows, so that a weight of 2 is the row twice.
        """
        n = len(labels)
        w = None if sample_weight is None else check_weights(sample_weight, n)
        if self.class_weight is None:
            return w, None
        own = np.ones(n) if w is None else w
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            totals = np.bincount(labels, own, len(self.classes_)).astype(np.float64)
            present = totals > 0
            each = np.divide(own.sum(), present.sum() * totals, out=np.zeros_like(totals), where=present)
        elif isinstance(self.class_weight, dict):
            each = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[labels])
        else:
            raise ValueError(f"class_weight must be a dict, 'balanced' or None; got {self.class_weight!r}.")
        return own * np.asarray(each)[labels], own if has_whole_weights(own) else np.ones(n)


class KernelRidgeClassifier(KernelClassifier):
    r"""Least squares on labels of ±1, one class against the rest, with a kernel.

    .. math:: f_c=\arg\min_f\sum_i w_i(y_{ic}-f(x_i))^2+\lambda\|f\|^2,\qquad
        y_{ic}=\pm1,\qquad \hat c(x)=\arg\max_c f_c(x)

    One eigendecomposition serves all classes and every λ, and gives the decision values of rows left out exactly: λ and
    the kernel are chosen by them, and probabilities come from a sigmoid fitted to them.

    Parameters
    ----------
    alphas : "auto" or sequence of float, default="auto"
        λ to choose from, as in :class:`KernelRidgeCV`; one for all classes is chosen.
    kernel : str, callable, Kernel, or a list of these, default="rbf"
        As in :class:`KernelRidgeCV`.
    gamma : float, "scale", "median", or a list of these, optional
        As in :class:`KernelRidgeCV`.
    degree, coef0, kernel_params
        Parameters of a kernel given by name; of a callable.
    fit_intercept : bool, default=True
        Whether to add constants that are not penalised.
    criterion : {"loo", "accuracy"}, default="loo"
        Mean squared leave-one-out error, which changes smoothly with λ; or the share of rows put into their class when
        left out, ties broken by the former.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, by which those of their rows are multiplied; "balanced" gives all classes the same total.
    solver : {"auto", "eigh", "cg", "landmarks"}, default="auto"
        As in :class:`KernelRidgeCV`.
    tol : float, optional
        As in :class:`KernelRidgeCV`.
    max_iter : int, optional
        As in :class:`KernelRidgeCV`.
    n_landmarks : int, optional
        Number of landmarks.
    random_state : int, RandomState or None, default=None
        Seed; None is a fixed one.
    verbose : bool or callable, default=False
        As in :class:`KernelRidgeCV`.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a GPU if there is one.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The labels, sorted.
    best_score_, scores_ : float; ndarray of shape (kernels, λs)
        Larger is better: minus the mean squared error, or the accuracy, of rows left out.
    sigmoid_ : ProbabilitySigmoid
        What turns decision values into probabilities, with its ``slope`` and ``offset``.
    alpha_, alphas_, kernel_, kernels_, gamma_, path_, dof_, solver_, n_iter_
        As in :class:`KernelRidgeCV`.
    dual_coef_, intercept_, X_fit_, certificate_
        As in :class:`KernelRidge`, with one target for two classes, otherwise one for each.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from gramian import KernelRidgeClassifier
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelRidgeClassifier(gamma=[0.5, 2.0, 8.0]).fit(X[:100], y[:100])
    >>> bool(model.score(X[100:], y[100:]) > 0.93)
    True
    >>> model.predict_proba([[0.0, 1.0]]).round(1)
    array([[1., 0.]])
    """

    def __init__(
        self,
        alphas: Any = "auto",
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        criterion: str = "loo",
        class_weight: Any = None,
        solver: str = "auto",
        tol: float | None = None,
        max_iter: int | None = None,
        n_landmarks: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.alphas = alphas
        self.kernel, self.gamma, self.degree = kernel, gamma, degree
        self.coef0, self.kernel_params = coef0, kernel_params
        self.fit_intercept, self.criterion, self.class_weight = fit_intercept, criterion, class_weight
        self.solver, self.tol, self.max_iter = solver, tol, max_iter
        self.n_landmarks, self.random_state, self.verbose, self.device = n_landmarks, random_state, verbose, device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeClassifier:
        """Choose the kernel and λ, fit one function to each class, and calibrate probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p); a kernel matrix; or a list of objects
            The points.
        y : array-like of shape (n,)
            Labels of any kind, one for each row.
        sample_weight : array-like of shape (n,), optional
            Weights, as in :class:`KernelRidgeCV`; those of classes multiply them.

        Returns
        -------
        KernelRidgeClassifier
            The estimator itself.
        """
        check_choice("criterion", self.criterion, CRITERIA)
        Y, _, (w, copies) = self._open_labels(y, sample_weight)
        shared = self.get_params(deep=False)
        for name in ("criterion", "class_weight"):
            del shared[name]
        self._model = KernelRidgeCV(**shared)
        choice = self._model._choose_and_fit(X, Y, w, criterion=self.criterion, labels=True, copies=copies)
        self._model.device = None  # it is asked where ``device`` says
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        for name in SHARED:
            if hasattr(self._model, name):
                setattr(self, name, getattr(self._model, name))
        one = float(self.criterion == "accuracy")  # which is 1 less the share of errors
        self.best_score_, self.scores_ = one + self._model.best_score_, one + self._model.scores_
        rows = slice(None) if choice.rows is None else choice.rows
        T = choice.problem.Y[rows]
        self.sigmoid_ = common_sigmoid(T - choice.left_out, T, choice.problem.frequencies[rows])
        store_like(self, X)
        return self

    def decision_function(self, X: Any, return_bound: bool = False) -> Any:
        """Decision values f(x) of the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (m, p); a kernel matrix; objects
            New points.
        return_bound : bool, default=False
            Also return a bound on the distance from the exact solution.

        Returns
        -------
        array of shape (m,) for two classes, otherwise (m, c); or a tuple of two
            Positive, or largest, for the class that is predicted; a tensor where X is one.
        """
        check_is_fitted(self)
        # the device may have been changed since the fit
        return copy_with(self._model, {"device": self.device}).predict(X, return_bound=return_bound)

    @like_input
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of ``classes_``.

        One sigmoid of the decision values of all classes, fitted to rows left out (Platt), and made to sum to 1: the
        class of highest probability is the one predicted. They refer to classes in the proportions of the weights.
        Where values of rows left out say nothing about their classes, all are equal.
        """
        values = to_numpy(self.decision_function(X))
        return probabilities(values[:, None] if values.ndim == 1 else values, self.sigmoid_)

    @like_input
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(to_numpy(self.predict_proba(X))))
