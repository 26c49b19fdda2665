"""Kernel ridge regression, and kernel ridge regression that chooses its kernel and its penalty: the estimators."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score

from gramian.compute.devices import refuse_beyond_device, to_numpy
from gramian.compute.memory import available_memory
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import (
    check_choice,
    check_integer,
    check_penalties,
    check_seed,
    check_targets,
    check_weights,
    has_whole_weights,
)
from gramian.inputs.devices import store_like
from gramian.inputs.kernels import (
    are_objects,
    check_kernel_matrix,
    is_precomputed,
    kernel_diagonal,
    open_finite,
    read_all,
    take_points,
)
from gramian.inputs.progress import report_residuals, show_progress
from gramian.kernel_ridge.certificate import FACTORED, ITERATED, KernelSolution, add_bounds, is_indefinite
from gramian.kernel_ridge.choose import (
    ENOUGH,
    KernelChoice,
    Rule,
    Trial,
    check_alphas,
    choose_pair,
    try_by_eigenvectors,
    try_held_out,
    try_landmarks,
)
from gramian.kernel_ridge.landmark_fit import LandmarkFit
from gramian.kernel_ridge.landmarks import HOW, Landmarks, choose_landmarks, fit_landmarks
from gramian.kernel_ridge.learn import learn_kernel
from gramian.kernel_ridge.path import AUTO_ALPHAS
from gramian.kernel_ridge.problem import KernelProblem, choose_device, count_points
from gramian.kernel_ridge.solve import TOLERANCES, choose_solver, eigen_bytes, solve
from gramian.kernel_ridge.uncertainty import KernelPredictions
from gramian.kernels import Kernel, as_kernel
from gramian.kernels.distance import EqualRowsError
from gramian.linear.path import CRITERIA, RidgePath
from gramian.sources import Source

Array = npt.NDArray[np.float64]

SAMPLE = 2000  # rows of a file from which a bandwidth is found


class KernelInput(BaseEstimator):
    """What scikit-learn may expect of an estimator with a kernel."""

    kernel: Any

    def __sklearn_tags__(self) -> Any:
        """Sparse rows, and a matrix of pairs for a precomputed kernel."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_precomputed(self.kernel)
        return tags


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelPredictions, KernelInput):
    r"""Ridge regression on features φ(x) known by their inner products k(x, z) = ⟨φ(x), φ(z)⟩ alone.

    .. math::
        \min_f \sum_i w_i(y_i-f(x_i))^2+\lambda\|f\|^2,\qquad f(x)=\sum_j\alpha_jk(x,x_j),
        \qquad (K+\lambda W^{-1})\alpha=y

    A drop-in for :class:`sklearn.kernel_ridge.KernelRidge`: the same parameters, attributes and answers, with every
    kernel of :mod:`gramian.kernels`, an intercept if wanted, memory of n numbers where n² would not fit, and a bound on
    the error of every prediction.

    Parameters
    ----------
    alpha : float or array-like of shape (t,), default=1
        λ, of all targets or of each.
    kernel : str, callable or Kernel, default="linear"
        scikit-learn's name, a function of two rows, "precomputed", or a kernel of :mod:`gramian.kernels`.
    gamma, degree, coef0, kernel_params
        Parameters of a kernel given by name; of a callable.
    fit_intercept : bool, default=False
        Whether to add a constant that is not penalised.
    solver : {"auto", "eigh", "cholesky", "cg", "landmarks"}, default="auto"
        See :func:`gramian.kernel_ridge.solve.choose_solver`.
    tol : float, optional
        Relative residual to reach: 1e-8 of a factorisation, 1e-6 of "cg", 1e-8 of "landmarks" where None.
    max_iter : int, optional
        Most iterations of "cg".
    n_landmarks : int, optional
        Number of landmarks; see :func:`gramian.kernel_ridge.landmarks.choose_landmarks`.
    landmarks : {"rpcholesky", "leverage", "uniform"} or array of row numbers, default="rpcholesky"
        How they are chosen.
    random_state : int, RandomState or None, default=None
        Seed; None is a fixed one.
    verbose : bool or callable, default=False
        Show the residual after each iteration, or call a function with (done, total, message).
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a GPU if there is one.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, t)
        α; of "landmarks" one for each.
    X_fit_ : array
        The training rows, or the landmarks.
    intercept_ : float or ndarray of shape (t,)
        b; 0.0 without an intercept.
    kernel_ : Kernel
        The kernel with every parameter found.
    noise_variance_ : float or ndarray of shape (t,)
        Most likely variance of the errors, for the Gaussian process whose mean this is.
    training_error_, r2_ : float or ndarray of shape (t,)
        Root of the mean squared error, weighted, and R² on the rows of the fit; NaN at λ = 0 but for "landmarks".
    solver_ : str
        What was run.
    landmarks_ : ndarray of shape (m,)
        Row numbers of the landmarks; of "landmarks" only.
    n_iter_ : int
        Iterations, or steps of refinement; at least 1.
    certificate_ : Residual
        Method, residuals, and the bound on every prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidge
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> model = KernelRidge(alpha=0.1, kernel="rbf", gamma=1.0).fit(x, np.sin(x[:, 0]))
    >>> f, bound = model.predict([[1.5]], return_bound=True)
    >>> f.round(2), bool(bound[0] < 1e-10)
    (array([0.99]), True)
    """

    def __init__(
        self,
        alpha: Any = 1,
        *,
        kernel: Any = "linear",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = False,
        solver: str = "auto",
        tol: float | None = None,
        max_iter: int | None = None,
        n_landmarks: int | None = None,
        landmarks: Any = "rpcholesky",
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel, self.gamma, self.degree = kernel, gamma, degree
        self.coef0, self.kernel_params = coef0, kernel_params
        self.fit_intercept, self.solver, self.tol, self.max_iter = fit_intercept, solver, tol, max_iter
        self.n_landmarks, self.landmarks = n_landmarks, landmarks
        self.random_state, self.verbose, self.device = random_state, verbose, device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidge:
        """Fit to the rows of X and their targets y.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p); a kernel matrix; or a list of objects
            The points.
        y : array-like of shape (n,) or (n, t)
            The targets.
        sample_weight : array-like of shape (n,), optional
            Weights: 2 is the row twice, 0 no row.

        Returns
        -------
        KernelRidge
            The estimator itself.
        """
        self._check_parameters()
        problem, every, kept = self._open(X, y, sample_weight, self.alpha)
        whole, file = problem.kernel.takes_objects or is_precomputed(self.kernel), isinstance(problem.points, Source)
        Phi = problem.features if self.solver == "auto" and np.all(problem.lam > 0) else None
        known = {"features": None if Phi is None else Phi.shape[1], "device": problem.device}
        self.solver_, reason = choose_solver(problem.n, self.solver, whole=whole, file=file, **known)
        tol = TOLERANCES[self.solver_] if self.tol is None else float(self.tol)
        shown = report_residuals(self.verbose, type(self).__name__, tol) if self.verbose else nullcontext()
        with shown as report:
            options: dict[str, Any] = {"tol": tol, "max_iter": self.max_iter, "report": report}
            if self.solver_ == "landmarks":
                landmarks = self._choose_landmarks(problem, kept)
                self._keep_landmarks(problem, landmarks, fit_landmarks(problem, landmarks, reason, **options), kept)
            else:
                self._keep_solution(problem, solve(problem, self.solver_, reason, **options), every, kept)
        self.n_iter_ = max(1, self.certificate_.iterations)
        store_like(self, X)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R² of the predictions for X, 1 at best; y may be a tensor."""
        return float(r2_score(to_numpy(y), to_numpy(self.predict(X)), sample_weight=to_numpy(sample_weight)))

    def _open(self, X: Any, y: Any, sample_weight: Any, alpha: Any = 1.0) -> tuple[KernelProblem, Any, Any]:
        """Check everything that was handed in: the problem, all points, and which rows have weight."""
        self.__dict__.pop("landmarks_", None)
        names = self.kernel if isinstance(self.kernel, (list, tuple)) else [self.kernel]
        objects = [are_objects(name, X) for name in names]
        if any(objects):
            if not all(objects):
                name = names[objects.index(False)]
                raise ValueError(f"kernel {name!r} takes rows of numbers, and X is a list of objects: leave it out.")
            every: Any = list(X)
            n, origin = len(every), None
        else:
            source = open_finite(self, X, reset=True)
            n, p = source.shape
            in_blocks = not source.resident and not is_precomputed(self.kernel)
            if in_blocks and self.solver != "landmarks":  # a file is read whole where it fits, and where it must be
                in_blocks = self.solver == "auto" and 8 * n * p > 0.5 * available_memory()
            # the model keeps what it will compare new rows with, whatever becomes of the caller's array
            every = source if in_blocks else read_all(source, copy=not is_precomputed(self.kernel))
            origin = None if in_blocks else source
        Y, self._vector = check_targets(y, n)
        w, kept = None, None
        if sample_weight is not None:
            w = check_weights(sample_weight, n)
            if not (isinstance(every, Source) or np.all(w > 0)):  # those of a file are left to the solver
                kept = np.flatnonzero(w > 0)  # a row of weight 0 is no row
        if is_precomputed(self.kernel):
            if self.solver == "landmarks":
                raise ValueError(
                    "A precomputed kernel matrix is in memory already: use another solver than 'landmarks'."
                )
            every = check_kernel_matrix(every)
        points, counts = every, w is None or has_whole_weights(w)
        if kept is not None and w is not None:
            points, Y, w = take_points(every, kept), Y[kept], w[kept]
            points, origin = points[:, kept] if is_precomputed(self.kernel) else points, None
        w = None if w is None or np.all(w == 1.0) else w
        kernels = self._resolve_kernels(points)
        device, seed = choose_device(self.device, X, points, kernels), check_seed(self.random_state)
        lam = check_penalties(alpha, Y.shape[1])
        asked = Y, w, lam, bool(self.fit_intercept), counts, seed, device, origin
        return KernelProblem(kernels[0], points, *asked), every, kept

    def _resolve_kernels(self, points: Any) -> list[Kernel]:
        """The kernel, with the parameters that follow from the points."""
        kernel = as_kernel(self.kernel, self.gamma, self.degree, self.coef0, **(self.kernel_params or {}))
        return [_resolve(kernel, points)]

    def _keep_solution(self, problem: KernelProblem, found: KernelSolution, every: Any, kept: Any) -> None:
        """Turn β into coefficients of all rows, those without weight too, and the intercept."""
        alpha, b, share = problem.dual(found.beta), problem.mean, problem.share
        self._mean_square = 0.0
        if problem.intercept:
            means = problem.feature_means()
            b, self._mean_square = b - means @ alpha, float(share @ means)
        if kept is not None:
            n = count_points(every)
            whole, shares = np.zeros((n, alpha.shape[1])), np.zeros(n)
            whole[kept], shares[kept] = alpha, share
            alpha, share = whole, shares
        self._rows, self._support, self._fit_weights = problem.n, kept, problem.w
        self._subset, self._landmark_fit = found.landmarks, None
        self._mean_weights = share if problem.intercept else None
        self._longest = float(np.sqrt(np.max(problem.squared_lengths, initial=0.0)))
        # eq: krr-objective, krr-quadratic
        objective = np.einsum("ij,ij->j", problem.targets, found.beta) * problem.lam
        with np.errstate(over="ignore"):  # ỹ − Bβ = λβ
            rss = np.where(problem.lam > 0, np.sum((problem.lam * found.beta) ** 2, axis=0), np.nan)
        self._keep(problem, every, alpha, b, objective, rss, found.certificate)

    def _choose_landmarks(self, problem: KernelProblem, kept: Any) -> Landmarks:
        """Rows by the rule asked for, or those given, which are counted with rows of weight 0."""
        how, m = self.landmarks, self.n_landmarks
        if not isinstance(how, str):
            how = to_numpy(how)
            if kept is not None and how.dtype.kind in "iu":
                lost = np.setdiff1d(how, kept)
                if len(lost):
                    raise ValueError(f"landmarks names row {lost[0]}, which has no weight or is not there.")
                how = np.searchsorted(kept, how)
            m = len(how)
        options = {"weights": problem.w, "seed": problem.seed, "device": problem.device}
        return choose_landmarks(problem.kernel, problem.points, m, how, lam=float(problem.lam.min()), **options)

    def _keep_landmarks(self, problem: KernelProblem, landmarks: Landmarks, found: LandmarkFit, kept: Any) -> None:
        """Name what the model of the landmarks gave."""
        certificate = found.certificate.with_(notes=(*found.certificate.notes, landmarks.note))
        self._rows, self._support, self._subset = int(np.sum(problem.frequencies > 0)), None, None
        self._fit_weights = None if problem.w is None else problem.w[landmarks.indices]
        self._mean_weights, self._mean_square, self._landmark_fit = None, 0.0, found
        self.landmarks_ = landmarks.indices if kept is None else kept[landmarks.indices]
        own = kernel_diagonal(problem.kernel, landmarks.points)
        self._longest = float(np.sqrt(np.max(own, initial=0.0)))
        b = np.atleast_1d(found.intercept)
        self._keep(problem, landmarks.points, found.coef, b, found.objective, found.rss, certificate)
        certificate.warn_unless_converged(*(ITERATED if certificate.iterations else FACTORED))

    def _keep(
        self,
        problem: KernelProblem,
        points: Any,
        alpha: Array,
        b: Array,
        objective: Array,
        rss: Array,
        certificate: Any,
    ) -> None:
        """Name what was found. ``points`` are those that α belongs to."""
        self._posteriors: dict[float, Any] = {}
        self.__dict__.pop("_inverses_of_rows", None)
        self.X_fit_, self.kernel_, self.certificate_ = points, problem.kernel, certificate
        self.dual_coef_ = alpha[:, 0] if self._vector else alpha
        self.intercept_ = (float(b[0]) if self._vector else b) if problem.intercept else 0.0
        self._lam, self._intercept, self._count = problem.lam, problem.intercept, problem.count
        self._semidefinite = certificate.error_bounds is not None or bool(np.all(problem.lam == 0.0))
        self._level = 0.0
        if problem.intercept:  # terms of a mean cancel, their rounding does not
            self._level = float(np.max(problem.share @ np.abs(problem.Y), initial=0.0)) * (1 + problem.n**0.5 / 16)
        # most likely noise: the smallest value of the objective over the number of observations
        noise = np.maximum(objective, 0.0) / max(problem.count - float(problem.intercept), 1.0)
        w = problem.frequencies
        with np.errstate(over="ignore", invalid="ignore"):
            total = w @ (problem.Y - problem.share @ problem.Y) ** 2
            r2 = 1.0 - np.divide(rss, total, out=(rss > 0).astype(np.float64), where=total > 0)
        error = np.sqrt(rss / problem.mass)
        self.noise_variance_, self.training_error_, self.r2_ = (
            float(x[0]) if self._vector else x for x in (noise, error, r2)
        )

    def _check_parameters(self, solvers: tuple[str, ...] = ("auto", "eigh", "cholesky", "cg", "landmarks")) -> None:
        check_choice("solver", self.solver, solvers)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        if isinstance(self.landmarks, str):
            check_choice("landmarks", self.landmarks, HOW)
        if self.tol is not None and not (isinstance(self.tol, Real) and 0.0 < self.tol < 1.0):
            raise ValueError(f"tol must be a number between 0 and 1, or None; got {self.tol!r}.")
        for name in ("max_iter", "n_landmarks"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name))


def _resolve(kernel: Kernel, points: Any) -> Kernel:
    """The kernel with automatic parameters found: of a file from rows spread over it."""
    if isinstance(points, list):
        return kernel
    if isinstance(points, Source):
        if not kernel.automatic:
            points = np.zeros((1, points.shape[1]))
        else:
            step = max(1, points.shape[0] // SAMPLE)
            points = np.concatenate([np.array(b.values[(-b.start) % step :: step]) for b in points.blocks()])
    return kernel.resolved(points)


SQUARED = (1e-150, 1e150)  # sizes of targets whose squared errors can be told apart


class KernelRidgeCV(KernelRidge):
    r"""Kernel ridge regression whose penalty λ, and kernel, are chosen by leave-one-out errors or likelihood.

    .. math:: e_i = y_i - f_{-i}(x_i) = \frac{\alpha_i}{(K+\lambda I)^{-1}_{ii}},\qquad
        \mathrm{loo}(\lambda)=\tfrac1n\sum_i e_i^2

    One eigendecomposition of K gives the exact errors of rows left out for every λ and every target, so a grid over
    bandwidth and λ costs one decomposition for each bandwidth, and no fit is repeated.

    Parameters
    ----------
    alphas : "auto" or sequence of float, default="auto"
        λ to choose from, all positive. "auto" is 30 values, evenly spaced in their logarithm, from 1e-10 to 1 times the
        largest eigenvalue of each kernel's matrix; by "cg" 16 from 1e-9 of it.
    kernel : str, callable, Kernel, or a list of these, default="rbf"
        As in :class:`KernelRidge`; of a list the best is chosen.
    gamma : float, "scale", "median", or a list of these, optional
        Of a kernel given by name; of a list the best is chosen. For one number per feature give kernels. Where not
        given, "rbf" takes "median", 1/2m² with m the median distance of the rows, which follows their units, and not
        the 1/p of :class:`KernelRidge` and scikit-learn.
    degree, coef0, kernel_params
        Parameters of a kernel given by name; of a callable.
    fit_intercept : bool, default=False
        Whether to add a constant that is not penalised.
    criterion : {"loo", "gcv", "marginal_likelihood"}, default="loo"
        Mean squared leave-one-out error, generalised cross-validation (RSS/N)/(1 − df/N)², or the likelihood of the
        Gaussian process whose mean f is, with the most likely noise.
    alpha_per_target : bool, default=False
        Choose λ for each target, and otherwise one for all; the kernel is one for all.
    learn : {"loo", "gcv", "marginal_likelihood"}, optional
        Learn a width for each feature by this criterion, from the kernels given, which must be Gaussian, Matérn or
        rational quadratic ones; then choose by it among these and those learned, so that the result is never worse
        than without. Where the kernel is "rbf", by name, the other two shapes are tried as well. See
        :func:`gramian.kernel_ridge.learn.learn_kernel`.
    solver : {"auto", "eigh", "cg", "landmarks"}, default="auto"
        See :func:`gramian.kernel_ridge.solve.choose_solver`. "cg" chooses by the error on a fifth of the rows that is
        held out, with all λ and targets in one block, and then fits to all rows; it knows no other criterion. All
        copies of a row, where weights are counts, are held out together: one that is fitted would predict the others.
        "landmarks" chooses for the model of its landmarks.
    tol : float, optional
        Relative residual of the fit: 1e-8 by "eigh" and "landmarks", 1e-6 by "cg" where None.
    max_iter : int, optional
        Most iterations of "cg"; what it fits to choose by takes 100 at most.
    n_landmarks : int, optional
        Number of landmarks.
    random_state : int, RandomState or None, default=None
        Seed; None is a fixed one.
    verbose : bool or callable, default=False
        Show the best score of each kernel, and the residual after each iteration; or call a function with (done, total,
        message), first of what "cg" fits to choose by, of one kernel after another, then of the fit.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a GPU if there is one.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (t,)
        λ chosen; one for each target with ``alpha_per_target``.
    kernel_, gamma_ : Kernel; float, tuple or None
        The kernel chosen, and its γ where it has one.
    best_score_ : float or ndarray of shape (t,)
        Larger is better: −loo or −gcv, the mean over targets, or the log likelihood of all of them, at the pair
        chosen; of each target with ``alpha_per_target``.
    scores_, alphas_ : ndarray of shape (kernels, λs)
        The same for every pair, and the λ of each; NaN where K + λI is not positive definite.
    kernels_ : list of Kernel
        What was chosen from.
    learned_ : LearnedKernel
        What was learned, as a table of features, widths and shares; with ``learn`` only.
    path_ : RidgePath or None
        Every λ of the kernel chosen, for rows of positive weight; None by "cg".
    dof_ : float or ndarray of shape (t,) or None
        Effective degrees of freedom; None by "cg".
    leave_one_out_error_ : float or ndarray of shape (t,) or None
        Root of the mean squared error of rows left out, weighted, at the pair chosen; None by "cg".
    noise_variance_ : float or ndarray of shape (t,)
        As in :class:`KernelRidge`. Of a kernel learned and a decomposition that under which rows left out are most
        likely, Σ e_i²/(1 + v_i)/N with v_i their variance over that of the noise: many numbers that were fitted to the
        same rows leave too little of what is most likely for these.
    dual_coef_, intercept_, X_fit_, training_error_, r2_, solver_, n_iter_, certificate_
        As in :class:`KernelRidge`. The certificate notes where λ is at an end of what was tried; ``n_iter_`` is 1 of a
        decomposition.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import KernelRidgeCV
    >>> rng = np.random.default_rng(0)
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=60)
    >>> model = KernelRidgeCV(gamma=[0.01, 0.1, 1.0, 10.0]).fit(x, y)
    >>> model.kernel_
    Gaussian(gamma=1.0)
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.1)
    True
    """

    landmarks = "rpcholesky"
    kernels_: list[Kernel]

    def __init__(
        self,
        alphas: Any = "auto",
        *,
        kernel: Any = "rbf",
        gamma: Any = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        fit_intercept: bool = False,
        criterion: str = "loo",
        alpha_per_target: bool = False,
        learn: str | None = None,
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
        self.fit_intercept, self.criterion, self.alpha_per_target = fit_intercept, criterion, alpha_per_target
        self.learn, self.solver, self.tol, self.max_iter = learn, solver, tol, max_iter
        self.n_landmarks, self.random_state, self.verbose, self.device = n_landmarks, random_state, verbose, device

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelRidgeCV:
        """Choose the kernel and λ, and fit to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p); a kernel matrix; or a list of objects
            The points.
        y : array-like of shape (n,) or (n, t)
            The targets.
        sample_weight : array-like of shape (n,), optional
            Weights. Whole numbers are counts: 2 is the row twice, of which one is left out at a time. Others are
            precisions, of rows left out whole, whose squared errors are weighted.

        Returns
        -------
        KernelRidgeCV
            The estimator itself.
        """
        self._choose_and_fit(X, y, sample_weight, criterion=self.criterion)
        store_like(self, X)
        return self

    def _choose_and_fit(
        self, X: Any, y: Any, sample_weight: Any, *, criterion: str, labels: bool = False, copies: Array | None = None
    ) -> KernelChoice:
        """Fit, and return what was chosen; a classifier has ``labels``, and ``copies`` of rows as well as weights."""
        self._check_parameters()
        problem, every, kept = self._open(X, y, sample_weight)
        size = np.max(np.abs(problem.Y), axis=0, initial=0.0)
        extreme = size[(size > SQUARED[1]) | ((size > 0) & (size < SQUARED[0]))]
        if len(extreme):
            raise ValueError(
                f"y has a target of size {extreme[0]:.1e}, whose squared errors are no numbers to choose by. Divide y "
                "by it."
            )
        if copies is not None:
            copies, problem = copies if kept is None else copies[kept], problem.with_(counts=False)
        whole = any(kernel.takes_objects for kernel in self.kernels_) or is_precomputed(self.kernel)
        file = isinstance(problem.points, Source)
        self.solver_, reason = choose_solver(
            problem.n, self.solver, every_alpha=True, whole=whole, file=file, device=problem.device
        )
        tol = TOLERANCES[self.solver_] if self.tol is None else float(self.tol)
        self.__dict__.pop("learned_", None)
        given, hints = len(self.kernels_), {}
        if self.learn is not None:
            names = getattr(self, "feature_names_in_", None)
            with (
                quiet_blas(),
                show_progress(self.verbose, f"{type(self).__name__}, to learn") as progress,
            ):
                options = {
                    "solver": self.solver_,
                    "alphas": self.alphas,
                    "shapes": isinstance(self.kernel, str) and self.kernel == "rbf",
                    "features": names,
                    "progress": progress,
                }
                self.learned_ = learn_kernel(problem, self.kernels_, self.learn, **options)
            self.kernels_ = [*self.kernels_, *self.learned_.kernels]
            hints = dict(enumerate(self.learned_.alphas, start=given))
            criterion = "loo" if self.solver_ == "cg" else self.learn
        shown_as = type(self).__name__ if self.verbose and not callable(self.verbose) else ""
        rule = Rule(self.alphas, criterion, self.alpha_per_target, reason, tol, labels, copies, shown_as, hints)
        try_kernel: Callable[[KernelProblem, Rule], Any] = try_by_eigenvectors
        if self.solver_ == "landmarks":
            try_kernel = partial(try_landmarks, n_landmarks=self.n_landmarks)
        elif self.solver_ == "cg":

            def try_and_report(problem: KernelProblem, rule: Rule) -> Trial:
                with report_residuals(self.verbose, f"{type(self).__name__}, to choose", ENOUGH) as report:
                    return try_held_out(problem, rule, self.max_iter, report)

            try_kernel = try_and_report
        else:
            number = AUTO_ALPHAS[2] if isinstance(self.alphas, str) else np.size(self.alphas)
            nbytes = eigen_bytes(problem.n, problem.Y.shape[1], number, problem.device)
            what = f"The eigendecomposition of the kernel matrix of {problem.n} rows"
            remedy = ("Use ", ("solver", "cg"), ", which stores no matrix, or ", ("solver", "landmarks"), ".")
            refuse_beyond_device(nbytes, problem.device, what, remedy)
        with quiet_blas():  # and with the same bits however many threads there are
            choice = choose_pair(problem, self.kernels_, rule, try_kernel)

        each = self.alpha_per_target and not self._vector
        lam, path = choice.problem.lam, choice.path
        self.alpha_ = lam if each else float(lam[0])
        self.best_score_ = -choice.best if each else -float(rule.joint(choice.best))
        self.scores_, self.alphas_, self.path_ = -choice.scores, choice.alphas, path
        self.gamma_ = choice.problem.kernel.rate
        dof = None if path is None else path.dof[choice.index]
        self.dof_ = dof if dof is None or each else float(dof[0])
        self.leave_one_out_error_: Any = None
        if path is not None:
            loo = path.loo[choice.index, np.arange(len(lam))] * (problem.count / problem.mass)
            self.leave_one_out_error_ = float(np.sqrt(loo[0])) if self._vector else np.sqrt(loo)
        self._fit_chosen(choice, every, kept, rule)
        if self.learn is not None and choice.solution is not None and not labels:
            # e_i² over its variance s/(λC_ii), with e_i = α_i/C_ii
            alpha = choice.problem.dual(choice.solution.beta)
            noise = lam * np.maximum(np.sum(alpha * choice.left_out, axis=0), 0.0) / problem.count
            self.noise_variance_ = float(noise[0]) if self._vector else noise
        notes = choice.notes
        if self.learn is not None:
            judged = "" if choice.which >= given else "; not chosen: of all rows a kernel that was given is better"
            notes = (self.learned_.note + judged, *notes)
        self.certificate_ = self.certificate_.with_(notes=(*self.certificate_.notes, *notes))
        self.n_iter_ = max(1, self.certificate_.iterations)
        return choice

    def _fit_chosen(self, choice: KernelChoice, every: Any, kept: Any, rule: Rule) -> None:
        """Fit to all rows at the pair chosen, unless the choice has done so."""
        problem, solution = choice.problem, choice.solution
        if choice.model is not None:
            landmarks, system = choice.model
            self._keep_landmarks(problem, landmarks, system.fit(problem.lam, rule.tol, rule.reason), kept)
        elif solution is None:
            with report_residuals(self.verbose, type(self).__name__, rule.tol) as report:
                options: dict[str, Any] = {"max_iter": self.max_iter, "report": report}
                solution = solve(problem, self.solver_, rule.reason, tol=rule.tol, **options)
            self._keep_solution(problem, solution, every, kept)
        else:
            low, path = choice.lowest, choice.path
            if low < 0.0 and path is not None:
                size = float(np.max(path.singular_values, initial=0.0)) ** 2
                indefinite = is_indefinite(low, max(size, -low))
                solution = replace(solution, certificate=solution.certificate.with_(indefinite=indefinite))
            solution = replace(solution, certificate=add_bounds(problem, solution))
            self._keep_solution(problem, solution, every, kept)
            self.certificate_.warn_unless_converged(*FACTORED)

    def _resolve_kernels(self, points: Any) -> list[Kernel]:
        """The kernels to choose from: each of ``kernel`` with each of ``gamma``."""
        names = list(self.kernel) if isinstance(self.kernel, (list, tuple)) else [self.kernel]
        gammas = list(self.gamma) if isinstance(self.gamma, (list, tuple, np.ndarray)) else [self.gamma]
        if not names or not gammas:
            raise ValueError("There is nothing to choose from: kernel and gamma must not be empty lists.")
        extra = self.kernel_params or {}
        every = [
            as_kernel(name, "median" if gamma is None and name == "rbf" else gamma, self.degree, self.coef0, **extra)
            for name in names
            for gamma in gammas
        ]
        if (len(every) > 1 or isinstance(self.kernel, (list, tuple))) and any(is_precomputed(k) for k in every):
            raise ValueError("A precomputed kernel matrix is one kernel: give kernel='precomputed' and one gamma.")
        try:
            every = [_resolve(kernel, points) for kernel in every]
        except EqualRowsError:
            if self.gamma is not None:
                raise
            every = [_resolve(as_kernel(name, None, self.degree, self.coef0, **extra), points) for name in names]
        # not all can be hashed
        self.kernels_ = [kernel for k, kernel in enumerate(every) if kernel not in every[:k]]
        return self.kernels_

    def _check_parameters(self, solvers: tuple[str, ...] = ("auto", "eigh", "cg", "landmarks")) -> None:
        check_choice("criterion", self.criterion, CRITERIA)
        if self.learn is not None:
            check_choice("learn", self.learn, CRITERIA)
        check_choice("alpha_per_target", self.alpha_per_target, (True, False))
        check_alphas(self.alphas, 1.0)
        super()._check_parameters(solvers)

    path_: RidgePath | None
