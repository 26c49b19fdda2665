"""Kernel ridge regression that chooses its kernel and its penalty."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.estimators._devices import home_of, settle
from gramian.estimators._kernel_certificates import bounded
from gramian.estimators._kernel_choice import TOLERANCE, Choice, Rule, alphas_of, candidates, choose_exact, route
from gramian.estimators._kernel_choice_large import ENOUGH, choose_held_out, choose_inducing
from gramian.estimators._kernel_inputs import are_objects, is_precomputed
from gramian.estimators._kernel_matrices import refuse_beyond
from gramian.estimators._kernel_path import AUTO_ALPHAS, eigen_bytes
from gramian.estimators._kernel_solving import TOLERANCES, solve, warn_unless_converged
from gramian.estimators._kernel_task import Task
from gramian.estimators._parameters import one_of
from gramian.estimators._progress import reporter
from gramian.estimators.kernel_ridge import KernelRidge
from gramian.kernels import Gaussian, Kernel
from gramian.linear.path import CRITERIA, RidgePath
from gramian.sources import Source

__all__ = ["KernelRidgeCV"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SOLVERS = ("auto", "eigh", "cg", "inducing")
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
        See :func:`gramian.estimators._kernel_choice.route`. "cg" chooses by the error on a fifth of the rows that is
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
        settle(self, home_of(X))
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
        one_of("solver", self.solver, SOLVERS)
        one_of("criterion", self.criterion, CRITERIA)
        one_of("alpha_per_target", self.alpha_per_target, (True, False))
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
