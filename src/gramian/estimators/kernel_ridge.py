"""Kernel ridge regression."""

from __future__ import annotations

import os
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import r2_score

from gramian.compute.devices import host
from gramian.compute.memory import available_memory
from gramian.estimators._centres import Centres, choose_centres, kernel_diagonal
from gramian.estimators._devices import home_of, settle
from gramian.estimators._kernel_inducing import fit_centres
from gramian.estimators._kernel_inputs import is_precomputed
from gramian.estimators._kernel_matrices import multiplied
from gramian.estimators._kernel_model import KernelModel
from gramian.estimators._kernel_solving import (
    TOLERANCES,
    Fitted,
    choose,
    longest_squares,
    solve,
    warn_unless_converged,
)
from gramian.estimators._kernel_task import Task, count_points
from gramian.estimators._parameters import one_of
from gramian.estimators._progress import finish, reporter
from gramian.linear.inducing import InducingFit
from gramian.sources import Source, open_source

__all__ = ["KernelRidge"]

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
        See :func:`gramian.estimators._kernel_solving.choose`.
    tol : float, optional
        Relative residual to reach: 1e-8 of a factorisation, 1e-6 of "cg", 1e-8 of "inducing" where None.
    max_iter : int, optional
        Most iterations of "cg".
    n_centres : int, optional
        Centres of "inducing"; see :func:`gramian.estimators._centres.choose_centres`.
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
        settle(self, home_of(X))
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R² of the predictions for X, 1 at best; y may be a tensor."""
        return float(r2_score(host(y), host(self.predict(X)), sample_weight=host(sample_weight)))

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
        how = _among(host(self.centres), kept) if given else self.centres
        m = len(how) if given else self.n_centres
        options = {"weights": task.w, "seed": task.seed, "device": task.device}
        return choose_centres(task.kernel, task.points, m, how, lam=float(task.lam.min()), **options)

    def _set_noise(self, objective: Vector, task: Task) -> None:
        """Most likely noise: the smallest value of the objective over the number of observations."""
        noise = np.maximum(objective, 0.0) / max(task.count - float(task.intercept), 1.0)
        self.noise_variance_ = float(noise[0]) if self._vector else noise

    def _penalties(self, t: int) -> Vector:
        try:
            lam = np.atleast_1d(np.asarray(host(self.alpha), dtype=np.float64))
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
        one_of("solver", self.solver, SOLVERS)
        one_of("fit_intercept", self.fit_intercept, (True, False))
        if isinstance(self.centres, str):
            one_of("centres", self.centres, CENTRES)
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
