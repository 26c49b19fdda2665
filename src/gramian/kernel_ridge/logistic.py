r"""Kernel logistic regression: probabilities by likelihood, with Newton's steps found by conjugate gradients.

With f = Kα + 1bᵀ the values of c functions at the rows (one function of two classes), T the classes as 0 and 1 and
P the probabilities of f,

.. math:: J(\alpha,b)=-\sum_i w_i\sum_cT_{ic}\ln P_{ic}+\frac\lambda2\operatorname{tr}\alpha^TK\alpha,\qquad
    r=G+\lambda\alpha,\quad G=w(P-T)

has the gradient Kr by α and 1ᵀG by b. The information of the rows is W = SSᵀ: of two classes S = √(wp(1 − p)), of more
S = √(wp)(I − √p√pᵀ), row by row. A step (δ, β) of Newton solves λδ + W(Kδ + 1βᵀ) = −r and 1ᵀ(G + W(Kδ + 1βᵀ)) = 0.
Nothing is divided by W, which vanishes where probabilities are sure: with δ = −r/λ + Su it is

.. math:: (\lambda I+S^TKS)u+S^T1\beta^T=S^TKr/\lambda,\qquad 1^TSu=1^TG/\lambda,

which conjugate gradients solve in the directions orthogonal to Sᵀ1, with a factor K ≈ FFᵀ of low rank, weighted by
class, for a preconditioner. With a residual ρ and m the value of the quadratic model at the step, the length of the
gradient in the norm of the information H of the whole objective is bounded on both sides:

.. math:: -2m\le g^TH^{-1}g\le-2m+\|\rho\|^2.

J is λ-strongly convex in f: with b the best for f̂, the distance from the exact solution is
‖f̂ − f‖ ≤ √tr(rᵀKr)/λ =: e in the norm of k, and so |f̂(x) − f(x)| ≤ √k(x, x) e. The best b moves by no more than the
values at the rows do, of c > 2 classes by at most 2(c − 1) times that: were the changes of b farther apart than that
somewhere, the classes above the gap would have gained probability in every row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice
from gramian.inputs.devices import copy_with, like_input, store_like
from gramian.inputs.kernels import dense_matrix, is_precomputed, multiply, take_points
from gramian.inputs.progress import Progress, show_progress
from gramian.kernel_ridge.certificate import KernelSolution, is_known_semidefinite, is_semidefinite
from gramian.kernel_ridge.choose import check_alphas
from gramian.kernel_ridge.classifier import KernelClassifier
from gramian.kernel_ridge.estimator import KernelRidge, KernelRidgeCV
from gramian.kernel_ridge.problem import KernelProblem, count_points
from gramian.operators import Data
from gramian.results import Optimum, Residual
from gramian.spectral.rpcholesky import rp_cholesky

Array = npt.NDArray[np.float64]

EPS = 2.0**-52
IN_MEMORY = 4_000  # rows up to which K is one matrix on the CPU
RANKS, PAYS = (150, 800), 30  # of the preconditioner, which takes as long as so many products at n·rank²
TOLERANCE, ROUGH = 1e-6, 1e-2  # gradient in the information norm: of a fit, and of those that λ is chosen by
STEPS, INNER = 100, 500  # of Newton, and of conjugate gradients in one of them
FOLDS, CHOSEN_ON = 5, 2_000  # rows that λ and the kernel are chosen on; λ, a prior's, does not grow with their number
ALPHAS = np.logspace(1.5, -5, 14)  # times the mean of k(x, x)
ENOUGH = 1e-7  # of a step of the intercepts
UNPROVED = 0.1  # gradient from which a step of those that λ is chosen by is the last: it squares what is left
PATIENCE = 4  # of all λ, every other of which is tried first: so far past the best one smaller ones are not tried


@dataclass(frozen=True, eq=False)
class LogisticState:
    """Where the steps stand, or ended.

    Attributes
    ----------
    alpha, b : ndarray of shape (n, t), (t,)
        Coefficients and intercepts: t is 1 of two classes.
    f : ndarray of shape (n, t)
        Kα + b.
    gradient : float
        Bound on the length of the gradient in the norm of the information.
    objective : tuple of float
        After each step.
    error : float
        Bound on ‖f̂ − f‖ in the norm of the kernel, rounding included; b is the best one up to ``loose``.
    loose : float
        Bound on the distance of b from the best one for f̂.
    products : int
        With K.
    """

    alpha: Array
    b: Array
    f: Array
    gradient: float = np.inf
    objective: tuple[float, ...] = ()
    error: float = np.inf
    loose: float = 0.0
    products: int = 0


class LogisticObjective:
    """J of some rows with their weights; a row of weight 0 takes no part, and its value is found all the same.

    Parameters
    ----------
    multiply : callable
        V ↦ KV.
    factor : ndarray of shape (n, r)
        F with K ≈ FFᵀ from below.
    longest : float
        The largest k(x, x) of the rows.
    T : ndarray of shape (n, t)
        1 for the class of a row, otherwise 0; one column of two classes.
    w : ndarray of shape (n,)
        Weights.
    intercept : bool
        Whether there is one.
    epsilon : float
        Relative error of the products.
    """

    def __init__(
        self,
        multiply: Callable[[Array], Array],
        factor: Array,
        longest: float,
        T: Array,
        w: Array,
        intercept: bool,
        epsilon: float = EPS,
    ) -> None:
        self.multiply, self.factor, self.longest, self.epsilon = multiply, factor, longest, epsilon
        self.T, self.w, self.intercept, self.products = T, w, intercept, 0

    def with_weights(self, w: Array) -> LogisticObjective:
        """The same with other weights."""
        return LogisticObjective(self.multiply, self.factor, self.longest, self.T, w, self.intercept, self.epsilon)

    def losses(self, f: Array) -> Array:
        """−ln of the probability of each row's class."""
        if f.shape[1] == 1:
            return np.logaddexp(0.0, np.where(self.T > 0, -f, f))[:, 0]
        return np.asarray(-np.sum(self.T * _log_softmax(f), axis=1))

    def times(self, V: Array) -> Array:
        """KV."""
        self.products += 1
        return self.multiply(V)

    def minimise(
        self,
        lam: float,
        start: LogisticState | None = None,
        tol: float = TOLERANCE,
        max_iter: int = STEPS,
        report: Callable[[int, float], None] | None = None,
        unproved: float = 0.0,
    ) -> LogisticState:
        """Steps of Newton until the gradient is small in the norm of the information.

        A whole step from a gradient of at most ``unproved`` is the last: what is left after it is about its square, and
        the state that is returned says the gradient before.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.kernel_ridge.logistic import LogisticObjective
        >>> x = np.array([[-2.0], [-1.0], [0.5], [2.0]])
        >>> T = np.array([[0.0], [0.0], [1.0], [1.0]])
        >>> objective = LogisticObjective(lambda V: x @ (x.T @ V), x, 4.0, T, np.ones(4), False)
        >>> found = objective.minimise(0.5)
        >>> bool(found.gradient < 1e-6), (x.T @ found.alpha).round(3)[0, 0]
        (True, np.float64(1.31))
        """
        T, w = self.T, self.w[:, None]
        first = self.products
        alpha = np.zeros_like(T) if start is None else start.alpha * (self.w > 0)[:, None]
        b = np.zeros(T.shape[1]) if start is None else start.b.copy()
        objective: list[float] = []
        g = np.zeros_like(T) if start is None else self.times(alpha)
        step = 0
        while True:
            b = self.best_intercept(g, b)
            f = g + b
            P = _probabilities(f)
            G = w * (P - T)
            r = G + lam * alpha
            penalty = float(np.sum(alpha * g))
            value = float(self.w @ self.losses(f)) + 0.5 * lam * penalty
            if not objective or value < objective[-1]:
                objective.append(value)
            Kr = self.times(r)
            delta, beta, Kd, gradient = self._step(lam, P, G, r, Kr, tol)
            if report is not None:
                report(step, gradient)
            if gradient <= tol or step == max_iter:
                break
            size, slope = 1.0, float(np.sum(r * Kd)) + float(np.sum(G.sum(axis=0) * beta))
            cross, square = float(np.sum(alpha * Kd)), float(np.sum(delta * Kd))
            while size > 1e-10:
                new = float(self.w @ self.losses(f + size * (Kd + beta)))
                new += 0.5 * lam * (penalty + 2 * size * cross + size**2 * square)
                if new <= value + 1e-4 * size * slope + 1e-13 * abs(value):
                    break
                size /= 2
            else:
                break  # no step wins anything: rounding
            alpha, b = alpha + size * delta, b + size * beta
            if size == 1.0 and gradient <= unproved:
                return LogisticState(
                    alpha, b, f + Kd + beta, gradient, tuple(objective), products=self.products - first
                )
            g, step = self.times(alpha), step + 1
        # what rounding leaves of f, of r, and of its length in the norm of the kernel
        slip = max(16 * EPS, self.epsilon) * self.longest * np.sum(np.abs(alpha), axis=0) / np.sqrt(len(alpha))
        slips = self.w[:, None] * (slip + 4 * EPS * np.abs(f)) + 4 * EPS * (np.abs(G) + lam * np.abs(alpha))
        rounding = float(np.linalg.norm(slips)) * np.sqrt(len(alpha) * self.longest)
        error = (np.sqrt(max(float(np.sum(r * Kr)), 0.0)) + rounding) / lam
        loose = self._looseness(P, G) + float(np.max(slip, initial=0.0))
        return LogisticState(alpha, b, f, gradient, tuple(objective), error, loose, self.products - first)

    def best_intercept(self, g: Array, b: Array) -> Array:
        """The best b of given values g, by Newton's steps that never lose; as it is without an intercept."""
        if not self.intercept:
            return b
        w, value = self.w[:, None], float(self.w @ self.losses(g + b))
        for _ in range(30):
            P = _probabilities(g + b)
            slope = np.sum(w * (P - self.T), axis=0)
            if np.max(np.abs(slope)) <= 8 * EPS * self.w.sum():
                break
            step, size, new = -_pseudo_inverse(_total(self.w, P)) @ slope, 1.0, np.inf
            while size > 1e-6:
                new = float(self.w @ self.losses(g + b + size * step))
                if new <= value + 4 * EPS * abs(value):
                    break
                size /= 2
            else:
                break
            b, value = b + size * step, new
            if np.max(np.abs(step)) <= ENOUGH:  # its square is left
                break
        return b - b.mean() if len(b) > 1 else b

    def _looseness(self, P: Array, G: Array) -> float:
        """How far b can be from the best: twice a step of Newton that is short, by self-concordance."""
        if not self.intercept:
            return 0.0
        step = 2.0 * float(np.max(np.abs(_pseudo_inverse(_total(self.w, P)) @ G.sum(axis=0))))
        return step if step <= 0.5 else np.inf

    def _step(
        self, lam: float, P: Array, G: Array, r: Array, Kr: Array, tol: float
    ) -> tuple[Array, Array, Array, float]:
        """δ, β, Kδ and the bound on the gradient."""
        binary = P.shape[1] == 1
        root = np.sqrt(self.w[:, None] * (P * (1.0 - P) if binary else P))
        q = np.sqrt(P)

        def project(V: Array) -> Array:
            return V if binary else V - q * np.sum(q * V, axis=1, keepdims=True)

        def spread(V: Array) -> Array:  # S
            return root * project(V)

        def gather(V: Array) -> Array:  # Sᵀ
            return project(root * V)

        inner = _pseudo_inverse(_total(self.w, P))

        def off(V: Array) -> Array:  # orthogonal to Sᵀ1
            if not self.intercept:
                return V
            return V - gather(np.broadcast_to(inner @ spread(V).sum(axis=0), V.shape))

        factors = [self._weighted_factor(root[:, j], lam) for j in range(root.shape[1])]

        def precondition(V: Array) -> Array:
            out = np.empty_like(V)
            for j, (F, L) in enumerate(factors):
                out[:, j] = V[:, j] - F @ sl.lapack.dpotrs(L, F.T @ V[:, j], lower=1)[0]
            return off(project(out)) / lam

        rhs = gather(Kr) / lam
        u, Ku = np.zeros_like(rhs), np.zeros_like(rhs)  # Ku is KSu
        if self.intercept:
            u = gather(np.broadcast_to(inner @ G.sum(axis=0) / lam, rhs.shape))
            Ku = self.times(spread(u)) if np.any(u) else Ku
        rho = off(rhs - lam * u - gather(Ku))
        delta, beta, Kd, decrease = self._model(lam, u, Ku, G, r, Kr, inner, spread, gather)
        z = precondition(rho)
        p, rz = z, float(np.sum(rho * z))
        for _ in range(INNER):
            size = float(np.linalg.norm(rho))
            if size <= max(tol / 4, min(0.1, decrease) * decrease) or not rz > 0:
                break
            Kp = self.times(spread(p))
            Ap = off(lam * p + gather(Kp))
            curvature = float(np.sum(p * Ap))
            if not curvature > 0:
                break
            a = rz / curvature
            u, Ku, rho = u + a * p, Ku + a * Kp, rho - a * Ap
            delta, beta, Kd, decrease = self._model(lam, u, Ku, G, r, Kr, inner, spread, gather)
            z = precondition(rho)
            rz, before = float(np.sum(rho * z)), rz
            p = z + (rz / before) * p
        exact = off(rhs - lam * u - gather(Ku))  # not that of the recurrence
        return delta, beta, Kd, float(np.sqrt(decrease**2 + np.sum(exact**2)))

    def _model(
        self,
        lam: float,
        u: Array,
        Ku: Array,
        G: Array,
        r: Array,
        Kr: Array,
        inner: Array,
        spread: Callable[[Array], Array],
        gather: Callable[[Array], Array],
    ) -> tuple[Array, Array, Array, float]:
        """δ, its best β, Kδ, and √(−2m) of the quadratic model m there."""
        delta, Kd, slope = spread(u) - r / lam, Ku - Kr / lam, G.sum(axis=0)
        beta = np.zeros_like(slope)
        if self.intercept:
            beta = -inner @ (slope + spread(gather(Kd)).sum(axis=0))
        model = float(np.sum(r * Kd) + np.sum(slope * beta))
        model += 0.5 * float(lam * np.sum(delta * Kd) + np.sum(gather(Kd + beta) ** 2))
        return delta, beta, Kd, float(np.sqrt(max(-2.0 * model, 0.0)))

    def _weighted_factor(self, root: Array, lam: float) -> tuple[Array, Array]:
        """F of one class, weighted, and the factor of λI + FᵀF."""
        F = root[:, None] * self.factor
        M = sl.blas.dsyrk(1.0, F.T, lower=1)  # the lower triangle, which is all that is read
        M.flat[:: len(M) + 1] += lam
        return F, sl.cholesky(M, lower=True, overwrite_a=True, check_finite=False)


def _probabilities(f: Array) -> Array:
    """Of the class 1 of two, or of every class."""
    return np.asarray(expit(f) if f.shape[1] == 1 else np.exp(_log_softmax(f)))


def _log_softmax(f: Array) -> Array:
    """Logarithms of the probabilities of all classes."""
    z = f - f.max(axis=1, keepdims=True)
    return np.asarray(z - np.log(np.sum(np.exp(z), axis=1, keepdims=True)))


def _total(w: Array, P: Array) -> Array:
    """1ᵀW1, of shape (t, t)."""
    if P.shape[1] == 1:
        return np.array([[float(w @ (P * (1.0 - P))[:, 0])]])
    return np.asarray(np.diag(w @ P) - P.T @ (w[:, None] * P))


def _pseudo_inverse(M: Array) -> Array:
    """M⁺ of a matrix of classes: one of its eigenvalues is 0 where there are more than two."""
    if len(M) == 1:
        return 1.0 / np.maximum(M, np.finfo(np.float64).tiny)
    values, U = np.linalg.eigh(M)
    kept = values > 1e-14 * max(float(values[-1]), np.finfo(np.float64).tiny)
    kept[0] = False
    return np.asarray((U[:, kept] / values[kept]) @ U[:, kept].T)


def open_objective(problem: KernelProblem, T: Array) -> LogisticObjective:
    """The objective of a kernel and points: K in memory where it is small, else its products."""
    kernel = problem.kernel
    if not is_known_semidefinite(kernel) and not (kernel.positive_semidefinite and is_semidefinite(problem.matrix)):
        raise ValueError(
            f"Kernel logistic regression needs a positive semidefinite kernel, and {kernel!r} is not known to be one: "
            "use KernelRidgeClassifier, or another kernel."
        )
    whole = kernel.takes_objects or is_precomputed(kernel)
    A = Data(problem.matrix) if whole else problem.kernel_operator(store="auto")
    epsilon = A.epsilon
    if whole or (problem.device is None and problem.n <= IN_MEMORY):
        K = np.asarray(problem.matrix if whole else dense_matrix(A))
        diagonal = np.diag(K)

        def columns(j: Any, i: Any = slice(None)) -> Any:
            return K[i][:, j]

        def times(V: Array) -> Array:
            return np.asarray(K @ V)
    else:
        diagonal = to_numpy(A.diagonal(), float)

        def columns(j: Any, i: Any = None) -> Any:
            return A.columns(j, i)

        def times(V: Array) -> Array:
            return np.asarray(multiply(A, V))

    rank = min(problem.n, RANKS[1], max(RANKS[0], int(np.sqrt(PAYS * problem.n))))
    factor = to_numpy(rp_cholesky(diagonal, columns, rank, seed=problem.seed).factor, float)
    longest = float(np.max(diagonal, initial=0.0))
    return LogisticObjective(times, factor, longest, T, problem.frequencies, problem.intercept, epsilon)


class KernelLogisticRegression(KernelClassifier):
    r"""Logistic regression with a kernel: probabilities of the classes by penalised likelihood.

    .. math:: \min_f-\sum_iw_i\ln P(c_i\mid x_i)+\frac\lambda2\sum_c\|f_c\|^2,\qquad
        P(c\mid x)=\frac{e^{f_c(x)}}{\sum_de^{f_d(x)}}

    Of two classes there is one function f and P = 1/(1 + e^{−f}). Where a feature map φ can be written down it is
    :class:`sklearn.linear_model.LogisticRegression` of φ(x) with C = 1/λ. Newton's steps are solved by conjugate
    gradients on the same operators as :class:`KernelRidge`, so that memory is n times the rank of a preconditioner
    where a matrix would not fit. λ and the kernel are those that predict rows held out most likely.

    Parameters
    ----------
    alphas : "auto", float or sequence of float, default="auto"
        λ to choose from, all positive. "auto" goes down from 30 times the mean of k(x, x) to 1e-5 times it, by tens,
        until two in turn predict worse, and then tries λ between, by √10, where these can be better than the best pair
        so far. Of a single pair of kernel and λ nothing is chosen.
    kernel : str, callable, Kernel, or a list of these, default="rbf"
        As in :class:`KernelRidgeCV`; positive semidefinite.
    gamma : float, "scale", "median", or a list of these, optional
        As in :class:`KernelRidgeCV`: without one, "rbf" has the median distance.
    degree, coef0, kernel_params
        Parameters of a kernel given by name; of a callable.
    fit_intercept : bool, default=True
        Whether to add constants that are not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, by which those of their rows are multiplied; "balanced" gives all classes the same total.
        Probabilities are then those of classes in these proportions.
    tol : float, default=1e-6
        Length of the gradient in the norm of the information at which to stop: in standard errors.
    max_iter : int, default=100
        Most steps of Newton.
    random_state : int, RandomState or None, default=None
        Seed of the folds and the preconditioner; None is a fixed one.
    verbose : bool or callable, default=False
        Show the gradient after each step, or call a function with (done, total, message).
    device : str, torch.device or None, default=None
        Where to compute products with the kernel matrix: see docs/gpu.md.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
        The labels, sorted.
    alpha_, kernel_, gamma_ : float; Kernel; float, tuple or None
        λ and the kernel chosen, and its γ where it has one.
    best_score_, scores_, alphas_ : float; ndarrays of shape (kernels, λs)
        Mean log-likelihood of rows held out, at the pair chosen and at every one, NaN where it was not tried; the λ.
        ``best_score_`` is NaN where nothing was chosen.
    kernels_ : list of Kernel
        What was chosen from.
    dual_coef_ : ndarray of shape (n,) for two classes, otherwise (n, c)
        α: f(x) = Σ α_j k(x, x_j) + b.
    intercept_ : float or ndarray of shape (c,)
        b; of more than two classes they sum to 0.
    X_fit_ : array
        The training rows.
    log_likelihood_ : float
        Of the rows of the fit, weighted, without the penalty.
    n_iter_ : int
        Steps of Newton.
    certificate_ : Optimum
        The objective after every step, and the gradient in the norm of the information.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from gramian import KernelLogisticRegression
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = KernelLogisticRegression(gamma=[0.5, 2.0, 8.0]).fit(X[:100], y[:100])
    >>> bool(model.score(X[100:], y[100:]) > 0.9), model.certificate_.converged
    (True, True)
    >>> model.predict_proba([[0.0, 1.0]]).round(2)
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
        class_weight: Any = None,
        tol: float = TOLERANCE,
        max_iter: int = STEPS,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.alphas = alphas
        self.kernel, self.gamma, self.degree = kernel, gamma, degree
        self.coef0, self.kernel_params = coef0, kernel_params
        self.fit_intercept, self.class_weight = fit_intercept, class_weight
        self.tol, self.max_iter = tol, max_iter
        self.random_state, self.verbose, self.device = random_state, verbose, device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelLogisticRegression:
        """Choose the kernel and λ, and fit to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p); a kernel matrix; or a list of objects
            The points.
        y : array-like of shape (n,)
            Labels of any kind, one for each row.
        sample_weight : array-like of shape (n,), optional
            Weights: 2 is the row twice, 0 no row. Equal rows of one class are held out together.

        Returns
        -------
        KernelLogisticRegression
            The estimator itself.
        """
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_alphas(self.alphas, 1.0)
        Y, labels, (w, _) = self._open_labels(y, sample_weight)
        shared = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in ("alphas", "class_weight", "max_iter")
        }
        opener = KernelRidgeCV(**shared, max_iter=self.max_iter, solver="cg")
        problem, every, kept = opener._open(X, Y, w)
        self.kernels_ = opener.kernels_
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(opener, name):
                setattr(self, name, getattr(opener, name))
        T = (problem.Y + 1.0) / 2.0
        absent = np.flatnonzero(~np.any(T > 0, axis=0))
        if len(absent):
            raise ValueError(f"No row of positive weight is of class {self.classes_[absent[0]]}: leave its rows out.")
        labels = labels if kept is None else labels[kept]
        with (
            quiet_blas(),  # the same bits for any number of threads; tiles are shared between cores all the same
            show_progress(self.verbose, type(self).__name__) as progress,
        ):
            which, lam = self._choose(problem, T, labels, progress)
            self.kernel_, self.alpha_ = self.kernels_[which], lam
            self.gamma_ = self.kernel_.rate
            objective = open_objective(problem.with_(kernel=self.kernel_), T)
            report = None
            if progress is not None:
                report = _reporter(progress, int(self.max_iter), self.tol)
            found = objective.minimise(lam, None, self.tol, int(self.max_iter), report)
        self._keep_state(found, objective, problem.with_(kernel=self.kernel_), every, kept)
        self.certificate_.warn_unless_converged("Use more steps (max_iter), or larger alphas.")
        store_like(self, X)
        return self

    def _choose(
        self, problem: KernelProblem, T: Array, labels: npt.NDArray[np.intp], progress: Progress | None
    ) -> tuple[int, float]:
        """Which kernel and λ predict rows held out best; of many rows, some of them."""
        automatic = isinstance(self.alphas, str)
        given = np.sort(check_alphas(self.alphas, 1.0))[::-1]
        count = len(ALPHAS) if automatic else len(given)
        self.scores_ = np.full((len(self.kernels_), count), np.nan)
        self.alphas_ = np.empty_like(self.scores_)
        self.best_score_ = np.nan
        if not automatic and len(given) == 1 and len(self.kernels_) == 1:
            self.alphas_[:] = given
            return 0, float(given[0])
        folds = assign_folds(problem.points, labels, problem.seed)
        few = problem
        if problem.n > CHOSEN_ON:
            some = np.sort(np.random.default_rng(problem.seed).permutation(problem.n)[:CHOSEN_ON])
            w = None if problem.w is None else problem.w[some]
            points = problem.points[np.ix_(some, some)] if is_precomputed(self.kernel) else None
            points = take_points(problem.points, some) if points is None else points
            few, T, folds = problem.with_(points=points, Y=problem.Y[some], w=w, origin=None), T[some], folds[some]
        paths: list[tuple[LogisticObjective, dict[int, list[LogisticState | None]]]] = []
        done, most = 0, len(self.kernels_) * count

        def try_lam(k: int, j: int) -> float:
            """The score of a pair, from the solutions of the nearest λ of the same kernel."""
            nonlocal done
            objective, states = paths[k]
            w, total, near = objective.w, 0.0, sorted(states, key=lambda i: abs(i - j))[:2]
            found: list[LogisticState | None] = [None] * FOLDS
            for fold in range(FOLDS):
                away = folds == fold
                if not np.any(away) or not np.any(w[~away] > 0):
                    continue
                part = objective.with_weights(np.where(away, 0.0, w))
                starts = [state for state in (states[i][fold] for i in near) if state is not None]
                start = _between(starts, near, j) if starts else None
                state = part.minimise(float(self.alphas_[k, j]), start, ROUGH, int(self.max_iter), unproved=UNPROVED)
                found[fold] = state
                total += float(w[away] @ objective.losses(state.f)[away])
            states[j] = found
            self.scores_[k, j] = -total / float(w.sum())
            done += 1
            if progress is not None:
                progress(done, most, f"to choose: {self.scores_[k, j]:.4g}")
            return float(self.scores_[k, j])

        for k, kernel in enumerate(self.kernels_):
            objective = open_objective(few.with_(kernel=kernel), T)
            size = objective.longest if kernel.normalised else float(np.mean(few.with_(kernel=kernel).squared_lengths))
            self.alphas_[k] = ALPHAS * (size or 1.0) if automatic else given
            paths.append((objective, {}))
            best = (-np.inf, 0)
            for j in range(0, count, 2 if automatic else 1):
                best = max(best, (try_lam(k, j), -j))
                if automatic and j + best[1] >= PATIENCE:
                    break
        if automatic:  # the λ between, where they can be better than every pair so far
            for k in np.argsort(-np.nanmax(self.scores_, axis=1), kind="stable"):
                tried = self.scores_[k]
                j = int(np.nanargmax(tried))
                for i in (j - 1, j + 1):
                    if 0 <= i < count and most_between(tried, i) > np.nanmax(self.scores_):
                        try_lam(int(k), i)
        at = int(np.nanargmax(self.scores_))
        which, index = np.unravel_index(at, self.scores_.shape)
        self.best_score_ = float(self.scores_[which, index])
        return int(which), float(self.alphas_[which, index])

    def _keep_state(
        self, found: LogisticState, objective: LogisticObjective, problem: KernelProblem, every: Any, kept: Any
    ) -> None:
        """Name what was found, and give it to a model that predicts."""
        binary = len(self.classes_) == 2
        t = 1 if binary else len(self.classes_)
        self.n_iter_ = max(1, len(found.objective) - 1)
        self.log_likelihood_ = -float(objective.w @ objective.losses(found.f))
        bounds = np.full(t, found.error)
        self._loose = 0.0
        if problem.intercept:
            times = 1.0 if binary else 2.0 * (t - 1)
            self._loose = times * np.sqrt(objective.longest) * found.error + found.loose
        inner = f"a preconditioner of rank {objective.factor.shape[1]}"
        notes = [f"|f̂(x) − f(x)|/‖φ(x)‖ at most {found.error:.1e}"]
        if problem.intercept:
            notes.append(f"and the intercepts within {self._loose:.1e}")
        if np.isfinite(self.best_score_):
            rows = min(problem.n, CHOSEN_ON)
            notes.append(f"λ and kernel chosen by {FOLDS} folds of {rows} rows: log-loss {-self.best_score_:.4g}")
            tried = self.alphas_[np.isfinite(self.scores_)]
            for value, name in ((tried.min(), "smallest"), (tried.max(), "largest")):
                if len(tried) > 1 and value == self.alpha_:
                    notes.append(f"λ = {value:.3g} is the {name} tried: the best may lie beyond, give other alphas")
        self.certificate_ = Optimum(
            f"Newton's method, steps by conjugate gradients with {inner}",
            "the objective is convex and smooth",
            found.products,
            len(found.objective) - 1,
            np.array(found.objective),
            found.gradient,
            tolerance=self.tol,
            device="cpu" if problem.device is None else str(problem.device),
            notes=tuple(notes),
        )
        residual = Residual("Newton", "", found.products, self.n_iter_, np.zeros(t), tolerance=1.0, error_bounds=bounds)
        plain = problem.with_(w=None, intercept=False, lam=np.full(t, self.alpha_))
        self._model = KernelRidge(self.alpha_, kernel=self.kernel_)
        self._model._vector = binary
        self._model._keep_solution(plain, KernelSolution(found.alpha, residual), every, kept)
        self._model.intercept_ = float(found.b[0]) if binary else found.b
        self._model.n_features_in_ = getattr(self, "n_features_in_", count_points(every))
        if hasattr(self, "feature_names_in_"):
            self._model.feature_names_in_ = self.feature_names_in_
        self.dual_coef_, self.X_fit_ = self._model.dual_coef_, self._model.X_fit_
        self.intercept_ = self._model.intercept_

    def decision_function(self, X: Any, return_bound: bool = False) -> Any:
        """Values f(x) of the rows of X: logarithms of odds of two classes, else of probabilities up to a constant.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (m, p); a kernel matrix; objects
            New points.
        return_bound : bool, default=False
            Also return a bound on the distance from the exact solution.

        Returns
        -------
        array of shape (m,) for two classes, otherwise (m, c); or a tuple of two
            A tensor where X is one.
        """
        check_is_fitted(self)
        model = copy_with(self._model, {"device": self.device})
        if not return_bound:
            return model.predict(X)
        values, bounds = model.predict(X, return_bound=True)
        return values, bounds + self._loose

    @like_input
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, in the order of ``classes_``."""
        return np.exp(self._log_probabilities(X))

    @like_input
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of the probabilities, exact also where these are too small for a number."""
        return self._log_probabilities(X)

    def _log_probabilities(self, X: Any) -> Array:
        values = to_numpy(self.decision_function(X), float)
        if values.ndim == 1:
            return np.asarray(-np.logaddexp(0.0, np.column_stack([values, -values])))
        return np.asarray(_log_softmax(values))


def _between(states: list[LogisticState], near: list[int], j: int) -> LogisticState:
    """Where to begin at number j of the λ: on the line through the solutions of two others, or at that of one."""
    if len(states) < 2:
        return states[0]
    one, two = states
    share = (j - near[0]) / (near[1] - near[0])
    return LogisticState(one.alpha + share * (two.alpha - one.alpha), one.b + share * (two.b - one.b), one.f)


def most_between(scores: Array, i: int) -> float:
    """The most that number i can be, were the scores of all λ concave; NaN are those not tried, as every other one is.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.logistic import most_between
    >>> scores = np.array([-3.0, np.nan, -1.0, np.nan, -1.5, np.nan, -3.0])
    >>> most_between(scores, 3)
    -0.75
    """
    bounds = [np.inf]
    for side in (-1, 1):
        near, far = i + side, i + 3 * side
        if 0 <= far < len(scores) and np.isfinite(scores[near]) and np.isfinite(scores[far]):
            bounds.append(scores[near] + 0.5 * (scores[near] - scores[far]))
    return float(min(bounds))


def _reporter(progress: Progress, most: int, tol: float) -> Callable[[int, float], None]:
    def report(step: int, gradient: float) -> None:
        progress(step, most, f"gradient {gradient:.1e} standard errors of {tol:.0e}")

    return report


def assign_folds(points: Any, labels: npt.NDArray[np.intp], seed: int) -> npt.NDArray[np.intp]:
    """A fold for each row, of each class alike; equal rows of one class are in one, the only row of a class in none.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.logistic import assign_folds
    >>> x = np.arange(12.0)[:, None] // 2  # each row twice
    >>> folds = assign_folds(x, np.zeros(12, dtype=int), 0)
    >>> bool(np.all(folds[::2] == folds[1::2])), len(np.unique(folds))
    (True, 5)
    """
    n = len(labels)
    first, group = np.arange(n), np.arange(n)
    if sp.issparse(points):
        given: Any = points
        rows = given.tocsr().copy()
        rows.eliminate_zeros()
        rows.sum_duplicates()
        parts = zip(rows.indptr[:-1], rows.indptr[1:], labels, strict=True)
        keys = [(int(one), rows.indices[i:j].tolist(), rows.data[i:j].tolist()) for i, j, one in parts]
        ranked = sorted(range(n), key=keys.__getitem__)
        starts = [k == 0 or keys[ranked[k]] != keys[ranked[k - 1]] for k in range(n)]
        group[ranked] = np.cumsum(starts) - 1
        first = np.asarray(ranked)[starts]
    elif isinstance(points, np.ndarray) and points.shape[1] > 0:
        _, first, group = np.unique(np.column_stack([labels, points]), axis=0, return_index=True, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(first))
    order = order[np.argsort(labels[first][order], kind="stable")]
    folds = np.empty(len(first), dtype=np.intp)
    folds[order] = np.arange(len(first)) % FOLDS
    alone = np.bincount(labels[first])[labels[first]] == 1
    folds[alone] = -1
    return np.asarray(folds[group.reshape(-1)])
