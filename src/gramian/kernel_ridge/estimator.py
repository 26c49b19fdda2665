"""Kernel ridge regression that chooses its kernel and its penalty."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score

from gramian.compute.devices import to_numpy
from gramian.compute.memory import available_memory
from gramian.inputs.checks import check_choice
from gramian.inputs.devices import store_like
from gramian.inputs.kernels import are_objects, is_precomputed, kernel_diagonal, multiplied, refuse_beyond
from gramian.inputs.opening import finish, reporter
from gramian.kernel_ridge.certificate import Fitted, bounded, longest_squares, warn_unless_converged
from gramian.kernel_ridge.choose import (
    ENOUGH,
    TOLERANCE,
    Choice,
    Rule,
    alphas_of,
    candidates,
    choose_exact,
    choose_held_out,
    choose_inducing,
    route,
)
from gramian.kernel_ridge.inducing import Centres, choose_centres, fit_centres
from gramian.kernel_ridge.model import KernelModel
from gramian.kernel_ridge.path import AUTO_ALPHAS, eigen_bytes
from gramian.kernel_ridge.problem import Task, count_points
from gramian.kernel_ridge.solve import TOLERANCES, choose, solve
from gramian.kernels import Gaussian, Kernel
from gramian.linear.inducing import InducingFit
from gramian.linear.path import CRITERIA, RidgePath
from gramian.sources import Source, open_source

__all__ = ["KernelRidge", "KernelRidgeCV"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SOLVERS = ("auto", "eigh", "cholesky", "cg", "inducing")
CENTRES = ("rpcholesky", "leverage", "uniform")


class KernelRidge(MultiOutputMixin, RegressorMixin, KernelModel):
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
    solver : {"auto", "eigh", "cholesky", "cg", "inducing"}, default="auto"
        See :func:`gramian.kernel_ridge.solve.choose`.
    tol : float, optional
        Relative residual to reach: 1e-8 of a factorisation, 1e-6 of "cg", 1e-8 of "inducing" where None.
    max_iter : int, optional
        Most iterations of "cg".
    n_centres : int, optional
        Centres of "inducing"; see :func:`gramian.kernel_ridge.inducing.choose_centres`.
    centres : {"rpcholesky", "leverage", "uniform"} or array of row numbers, default="rpcholesky"
        How they are chosen.
    random_state : int, RandomState or None, default=None
        Seed; None is a fixed one.
    verbose : bool or callable, default=False
        Show the residual after each iteration, or call a function with (iteration, residual).
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, t)
        α; of "inducing" one for each centre.
    X_fit_ : array
        The training rows, or the centres.
    intercept_ : float or ndarray of shape (t,)
        b; 0.0 without an intercept.
    kernel_ : Kernel
        The kernel with every parameter found.
    noise_variance_ : float or ndarray of shape (t,)
        Most likely variance of the errors, for the Gaussian process whose mean this is.
    solver_ : str
        What was run.
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
        n_centres: int | None = None,
        centres: Any = "rpcholesky",
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_centres = n_centres
        self.centres = centres
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

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
        self.__dict__.pop("centre_indices_", None)
        task, every, kept = self._opened(X, y, sample_weight, file=self._stays_in_file(X))
        solver, reason = self._choice(task)
        tol = TOLERANCES[solver] if self.tol is None else float(self.tol)
        report = reporter(self.verbose, type(self).__name__, tol)
        lam = self._penalties(task.Y.shape[1])
        task = task.with_(lam=lam, tol=tol, max_iterations=self.max_iter, report=report)
        self.solver_ = solver
        try:
            if solver == "inducing":
                self._fit_centres(task, reason, kept)
            else:
                self._finish(solve(task, solver, reason), task, every, kept)
        finally:
            finish(report)
        self.n_iter_ = max(1, self.certificate_.iterations)
        store_like(self, X)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R² of the predictions for X, 1 at best; y may be a tensor."""
        return float(r2_score(to_numpy(y), to_numpy(self.predict(X)), sample_weight=to_numpy(sample_weight)))

    def _choice(self, task: Task) -> tuple[str, str]:
        whole = task.kernel.takes_objects or is_precomputed(task.kernel)
        file = isinstance(task.points, Source)
        solver, reason = choose(task.n, self.solver, whole=whole, file=file, device=task.device)
        if solver == "inducing" and is_precomputed(task.kernel):
            raise ValueError("A precomputed kernel matrix is in memory already: use solver='cholesky' or 'cg'.")
        return solver, reason

    def _finish(self, found: Fitted, task: Task, every: Any, kept: Any) -> None:
        """Turn β into coefficients of all rows, those without weight too, and the intercept."""
        alpha = task.dual(found.beta)
        means = self._means(task) if task.intercept else np.zeros(task.n)
        b = task.mean - means @ alpha
        everywhere = np.zeros((count_points(every), alpha.shape[1])) if kept is not None else alpha
        share = np.zeros(len(everywhere))
        if kept is not None:
            everywhere[kept], share[kept] = alpha, task.share
        else:
            share = task.share
        self._keep(task, every, everywhere, b, found.certificate)
        self._rows, self._support, self._fit_weights = task.n, kept, task.w
        self._subset, self._inducing = found.landmarks, None
        self._centre = share if task.intercept else None
        self._mean_square = float(task.share @ means)
        self._longest = float(np.sqrt(np.max(longest_squares(task), initial=0.0)))
        self._set_noise(np.einsum("ij,ij->j", task.targets, found.beta) * task.lam, task)

    def _means(self, task: Task) -> Vector:
        """K w̄, the inner products of the mean feature with every other."""
        return multiplied(task.kernel_operator(), task.share[:, None])[:, 0]

    def _fit_centres(self, task: Task, reason: str, kept: Any = None) -> None:
        """Inducing points: coefficients of a few rows, by passes over all."""
        chosen = self._chosen_centres(task, kept)
        self._keep_centres(task, chosen, fit_centres(task, chosen, reason), kept)
        warn_unless_converged(self.certificate_)

    def _keep_centres(self, task: Task, chosen: Centres, found: InducingFit, kept: Any = None) -> None:
        """Name what inducing points gave."""
        certificate = found.certificate.with_(notes=(*found.certificate.notes, chosen.note))
        self._keep(task, chosen.points, found.coef, np.atleast_1d(found.intercept), certificate)
        self._rows, self._support, self._subset = int(np.sum(task.frequencies > 0)), None, None
        self._fit_weights = None if task.w is None else task.w[chosen.indices]
        self._centre, self._mean_square, self._inducing = None, 0.0, found
        self.centre_indices_ = chosen.indices if kept is None else kept[chosen.indices]
        own = kernel_diagonal(task.kernel, chosen.points)
        self._longest = float(np.sqrt(np.max(own, initial=0.0)))
        self._set_noise(found.objective, task)

    def _chosen_centres(self, task: Task, kept: Any = None) -> Centres:
        """Rows by the rule asked for, or those given, which are counted with rows of weight 0."""
        given = not isinstance(self.centres, str)
        how = _among(to_numpy(self.centres), kept) if given else self.centres
        m = len(how) if given else self.n_centres
        options = {"weights": task.w, "seed": task.seed, "device": task.device}
        return choose_centres(task.kernel, task.points, m, how, lam=float(task.lam.min()), **options)

    def _set_noise(self, objective: Vector, task: Task) -> None:
        """Most likely noise: the smallest value of the objective over the number of observations."""
        noise = np.maximum(objective, 0.0) / max(task.count - float(task.intercept), 1.0)
        self.noise_variance_ = float(noise[0]) if self._vector else noise

    def _penalties(self, t: int) -> Vector:
        try:
            lam = np.atleast_1d(to_numpy(self.alpha, float))
        except (TypeError, ValueError):
            lam = np.array([np.nan])
        if isinstance(self.alpha, str):
            lam = np.array([np.nan])
        if lam.ndim != 1 or len(lam) not in (1, t):
            raise ValueError(f"alpha has shape {lam.shape}; expected one number, or one for each of the {t} targets.")
        if not np.all(np.isfinite(lam) & (lam >= 0)):
            raise ValueError(f"alpha must be a number, finite and not negative; got {self.alpha!r}.")
        return np.asarray(np.broadcast_to(lam, (t,)), dtype=np.float64)

    def _stays_in_file(self, X: Any) -> bool:
        """Whether X is a file that is to be read in blocks: asked for, or because it does not fit."""
        if not isinstance(X, (Source, str, os.PathLike, np.memmap)):
            return False
        source = open_source(X)
        if source.resident or self._is_pairwise():
            return False
        n, p = source.shape
        return self.solver == "inducing" or (self.solver == "auto" and 8 * n * p > 0.5 * available_memory())

    def _check_parameters(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        if isinstance(self.centres, str):
            check_choice("centres", self.centres, CENTRES)
        if self.tol is not None and not (isinstance(self.tol, Real) and 0.0 < self.tol < 1.0):
            raise ValueError(f"tol must be a number between 0 and 1, or None; got {self.tol!r}.")
        for name in ("max_iter", "n_centres"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, Integral) and int(value) >= 1):
                raise ValueError(f"{name} must be a positive whole number or None, got {value!r}.")


def _among(centres: Any, kept: Any) -> Any:
    """Row numbers among those that have weight."""
    if kept is None or centres.dtype.kind not in "iu":
        return centres
    lost = np.setdiff1d(centres, kept)
    if len(lost):
        raise ValueError(f"centres names row {lost[0]}, which has no weight or is not there; choose others.")
    return np.searchsorted(kept, centres)


SOLVERS_KERNEL_RIDGE_CV = ("auto", "eigh", "cg", "inducing")
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
        λ to choose from, all positive. "auto" is 30 values, evenly spaced in their logarithm, from 1e-11 to 1 times the
        largest eigenvalue of each kernel's matrix; by "cg" 16 from 1e-9 of it.
    kernel : str, callable, Kernel, or a list of these, default="rbf"
        As in :class:`KernelRidge`; of a list the best is chosen.
    gamma : float, "scale", "median", or a list of these, optional
        Of a kernel given by name; of a list the best is chosen. For one number per feature give kernels.
    degree, coef0, kernel_params
        Parameters of a kernel given by name; of a callable.
    fit_intercept : bool, default=False
        Whether to add a constant that is not penalised.
    criterion : {"loo", "gcv", "marginal_likelihood"}, default="loo"
        Mean squared leave-one-out error, generalised cross-validation (RSS/N)/(1 − df/N)², or the likelihood of the
        Gaussian process whose mean f is, with the most likely noise.
    alpha_per_target : bool, default=False
        Choose λ for each target, and otherwise one for all; the kernel is one for all.
    solver : {"auto", "eigh", "cg", "inducing"}, default="auto"
        See :func:`gramian.kernel_ridge.choose.route`. "cg" chooses by the error on a fifth of the rows that is
        held out, with all λ and targets in one block, and then fits to all rows; it knows no other criterion. All
        copies of a row, where weights are counts, are held out together: one that is fitted would predict the others.
        "inducing" chooses for the model of its centres.
    tol : float, optional
        Relative residual of the fit: 1e-8 by "eigh" and "inducing", 1e-6 by "cg" where None.
    n_centres : int, optional
        Centres of "inducing".
    random_state : int, RandomState or None, default=None
        Seed; None is a fixed one.
    verbose : bool or callable, default=False
        Show the best score of each kernel, and the residual after each iteration; or call a function with (iteration,
        residual), first of what "cg" fits to choose by, of one kernel after another, then of the fit.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one.

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
    path_ : RidgePath or None
        Every λ of the kernel chosen, for rows of positive weight; None by "cg".
    dof_ : float or ndarray of shape (t,) or None
        Effective degrees of freedom; None by "cg".
    dual_coef_, intercept_, X_fit_, noise_variance_, solver_, n_iter_, certificate_
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

    max_iter = None
    centres = "rpcholesky"

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
        solver: str = "auto",
        tol: float | None = None,
        n_centres: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.alphas = alphas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.criterion = criterion
        self.alpha_per_target = alpha_per_target
        self.solver = solver
        self.tol = tol
        self.n_centres = n_centres
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

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
        self._fit(X, y, sample_weight)
        store_like(self, X)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, **labels: Any) -> Choice:
        """Fit, and return what was chosen; ``labels`` change the rule for a classifier."""
        self._check_parameters()
        self.__dict__.pop("centre_indices_", None)
        task, every, kept = self._opened(X, y, sample_weight, file=self._stays_in_file(X))
        _refuse_extreme(task.Y)
        if labels.get("copies") is not None:
            labels["copies"], task = labels["copies"][slice(None) if kept is None else kept], task.with_(counts=False)
        self.solver_, reason = self._route(task)
        tol = (self.tol and float(self.tol)) or {**TOLERANCES, "eigh": TOLERANCE}[self.solver_]
        rule = Rule(self.alphas, self.criterion, self.alpha_per_target, reason, tol, show=self._shown())
        choice = self._chosen(task, replace(rule, **labels))
        self._name(choice, rule)
        self._settle(choice, every, kept, rule)
        return choice

    def _route(self, task: Task) -> tuple[str, str]:
        whole = any(kernel.takes_objects or is_precomputed(kernel) for kernel in self.kernels_)
        if self.solver == "inducing" and is_precomputed(self.kernels_[0]):
            raise ValueError("A precomputed kernel matrix is in memory already: use solver='eigh' or 'cg'.")
        file = isinstance(task.points, Source)
        return route(task.n, self.solver, whole=whole, file=file, device=task.device)

    def _shown(self) -> Callable[[str], None] | None:
        """Return what shows a line of text, where progress is to be shown and not handed to a function."""
        name = type(self).__name__
        return (lambda line: _write(f"{name}: {line}\n")) if self.verbose and not callable(self.verbose) else None

    def _training_points(self, X: Any, file: bool) -> tuple[Any, int]:
        """As for one kernel; objects are taken where every kernel of a list is a function of two."""
        if not isinstance(self.kernel, (list, tuple)) or not any(are_objects(kernel, X) for kernel in self.kernel):
            return super()._training_points(X, file)
        for kernel in self.kernel:
            if not are_objects(kernel, X):
                raise ValueError(f"kernel {kernel!r} takes rows of numbers, and X is a list of objects: leave it out.")
        return list(X), len(X)

    def _chosen(self, task: Task, rule: Rule) -> Choice:
        """Choose by the route that suits the size."""
        if self.solver_ == "inducing":
            return choose_inducing(task, self.kernels_, rule, self.n_centres)
        if self.solver_ == "cg":
            report = reporter(self.verbose, f"{type(self).__name__}, to choose", ENOUGH)
            return choose_held_out(task.with_(report=report), self.kernels_, rule)
        number = AUTO_ALPHAS[2] if isinstance(self.alphas, str) else np.size(self.alphas)
        refuse_beyond(
            eigen_bytes(task.n, task.Y.shape[1], number, task.device),
            task.device,
            f"The eigendecomposition of the kernel matrix of {task.n} rows",
            "Use solver='cg', which stores no matrix, or solver='inducing'.",
        )
        return choose_exact(task, self.kernels_, rule)

    def _settle(self, choice: Choice, every: Any, kept: Any, rule: Rule) -> None:
        """Fit to all rows at the pair chosen, unless the choice has done so, and say what the certificate misses."""
        report = reporter(self.verbose, type(self).__name__, rule.tol)
        task = choice.task.with_(tol=rule.tol, report=report)
        if choice.model is not None:
            chosen, system = choice.model
            self._keep_centres(task, chosen, system.fit(task.lam, rule.tol, rule.reason), kept)
            warn_unless_converged(self.certificate_)
        elif choice.fitted is None:
            self._finish(solve(task, self.solver_, rule.reason), task, every, kept)
        else:
            certificate = bounded(task, choice.fitted)
            self._finish(replace(choice.fitted, certificate=certificate), task, every, kept)
            warn_unless_converged(certificate)
        self.certificate_ = self.certificate_.with_(notes=(*self.certificate_.notes, *choice.notes))
        self.n_iter_ = max(1, self.certificate_.iterations)

    def _name(self, choice: Choice, rule: Rule) -> None:
        each = self.alpha_per_target and not self._vector
        self.alpha_ = choice.task.lam if each else float(choice.task.lam[0])
        self.best_score_ = -choice.best if each else -float(rule.joint(choice.best))
        self.scores_, self.alphas_, self.path_ = -choice.scores, choice.alphas, choice.path
        self.gamma_ = _gamma(choice.task.kernel)
        dof = None if choice.path is None else choice.path.dof[choice.index]
        self.dof_ = dof if dof is None or each else float(dof[0])

    def _resolved(self, points: Any) -> Kernel:
        self.kernels_ = candidates(self, points)
        return self.kernels_[0]

    def _candidates(self, task: Task) -> list[Kernel]:
        return self.kernels_

    def _check_parameters(self) -> None:
        check_choice("solver", self.solver, SOLVERS_KERNEL_RIDGE_CV)
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("alpha_per_target", self.alpha_per_target, (True, False))
        alphas_of(self.alphas, 1.0)
        super()._check_parameters()

    path_: RidgePath | None


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _refuse_extreme(Y: Matrix) -> None:
    """Refuse targets by whose squared errors nothing can be chosen."""
    size = np.max(np.abs(Y), axis=0, initial=0.0)
    beyond = size[(size > SQUARED[1]) | ((size > 0) & (size < SQUARED[0]))]
    if len(beyond):
        raise ValueError(
            f"y has a target of size {beyond[0]:.1e}, whose squared errors are no numbers to choose by. Divide y by it."
        )


def _gamma(kernel: Kernel) -> Any:
    """γ of a kernel that has one: given by any of its names, or from the bandwidth of a Gaussian."""
    if not isinstance(kernel, Gaussian) or kernel.bandwidth is None:
        return getattr(kernel, "gamma", None) or getattr(kernel, "beta", None)
    gamma = tuple(float(g) for g in 0.5 / np.square(np.atleast_1d(kernel.bandwidth)))
    return gamma[0] if len(gamma) == 1 else gamma
