"""What every kernel regression shares: its input, its predictions, and how far each can be wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import is_tensor, to_numpy
from gramian.inputs.checks import check_seed, check_targets, check_weights, has_whole_weights
from gramian.inputs.devices import like_input
from gramian.inputs.kernels import (
    are_objects,
    check_kernel_matrix,
    checked_source,
    chosen_points,
    gathered,
    is_precomputed,
    kernel_diagonal,
    multiplied,
)
from gramian.kernel_ridge.problem import Task, count_points
from gramian.kernel_ridge.uncertainty import EXACT, Given, Posterior
from gramian.kernels import Kernel, Precomputed, as_kernel
from gramian.linear.inducing import InducingFit
from gramian.operators import kernel_device, kernel_operator
from gramian.results import Residual
from gramian.sources import Source, memory_budget

__all__ = ["KernelModel"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EPS = 2.0**-52


class KernelModel(BaseEstimator):
    """f(x) = Σ α_j k(x, x_j) + b: opened, predicted and bounded in one way by every class that fits it."""

    kernel: Any
    gamma: Any
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    fit_intercept: bool
    random_state: Any
    device: Any

    dual_coef_: Matrix
    intercept_: Any
    X_fit_: Any
    kernel_: Kernel
    certificate_: Residual
    noise_variance_: Any

    @like_input
    def predict(self, X: Any, return_std: bool = False, return_bound: bool = False) -> Any:
        r"""Predict the targets of the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (m, p); a kernel matrix k(X, X_fit_); objects
            New points.
        return_std : bool, default=False
            Also return the standard deviation of a new observation at each point, for the Gaussian process whose mean
            the prediction is: exact, or an upper bound; ``std_method()`` says which.
        return_bound : bool, default=False
            Also return a bound on :math:`|\hat f(x)-f(x)|`, the distance from the exact solution.

        Returns
        -------
        array of shape (m,) or (m, t), or a tuple of these
            Predictions, then standard deviations and bounds where asked for; tensors where X is one.
        """
        check_is_fitted(self)
        if return_bound or return_std:
            self._refuse_unknown_lengths("a bound" if return_bound else "a variance")
        if return_bound and self.certificate_.error_bounds is None:
            raise ValueError(f"There is no bound on predictions here: {'; '.join(self.certificate_.notes)}.")
        alpha, device = self._columns(self.dual_coef_), self._device_of(X, self.X_fit_, [self.kernel_])
        parts = []
        for points in self._parts(X, self._width(return_std, return_bound)):
            found = self._product(points, alpha, return_bound, device)
            part = [found.values + np.atleast_1d(self.intercept_)]
            part += [self._std(points)] if return_std else []
            part += [self._bounds(found)] if return_bound else []
            parts.append(part)
        answers = [self._shaped(np.concatenate(list(some))) for some in zip(*parts, strict=True)]
        return answers[0] if len(answers) == 1 else tuple(answers)

    def std_method(self) -> str:
        """Say how ``predict(..., return_std=True)`` finds standard deviations: exactly, or as an upper bound."""
        check_is_fitted(self)
        self._refuse_unknown_lengths("a variance")
        support = self.X_fit_ if self._support is None else self._support
        return Given(self._rows, self._subset, 0).method(count_points(support))

    def _width(self, with_std: bool, with_bound: bool) -> int:
        """Columns of the dense k(X, S) that standard deviations, and bounds of the model of centres, are made from."""
        size = count_points(self.X_fit_)
        if with_bound and self._inducing is not None:
            return size
        chosen = 0 if self._subset is None else len(self._subset)
        return min(size, max(EXACT, chosen)) if with_std else 0

    def _parts(self, X: Any, width: int) -> Iterator[Any]:
        """The new points: at once, or in blocks of rows of a file and where a dense k(X, S) of this width is large."""
        points = self._new_points(X)
        if isinstance(points, Source):
            yield from (np.array(block.values) for block in points.blocks())
            return
        n = count_points(points)
        step = max(1, memory_budget() // 4 // (8 * width)) if width else max(1, n)
        for start in range(0, n, step):
            yield points if step >= n else points[start : start + step]

    def _new_points(self, X: Any) -> Any:
        if are_objects(self.kernel_, X):
            return list(X)
        source = checked_source(self, X, reset=False)
        return source if not source.resident else gathered(source)

    def _refuse_unknown_lengths(self, what: str) -> None:
        if is_precomputed(self.kernel_):
            raise ValueError(f"A precomputed kernel does not say k(x, x) of new rows, which {what} needs.")

    def _device_of(self, X: Any, points: Any, kernels: list[Kernel]) -> Any:
        """Where kernels of these points are evaluated, by ``device`` and where X lives; None is NumPy on the CPU."""
        seen = is_tensor(X) or isinstance(X, Source) or hasattr(X, "toarray")
        like = X if seen and not hasattr(points, "toarray") else points
        found = [kernel_device(self.device, kernel, like) for kernel in kernels]
        return None if any(device is None for device in found) else found[0]

    def _product(self, points: Any, alpha: Matrix, bounded: bool, device: Any = None) -> _Product:
        """k(X, X_fit_) α; and if asked for what bounds its error."""
        centred = bounded and self._centre is not None
        columns = np.column_stack([alpha, np.asarray(self._centre)]) if centred else alpha
        if is_precomputed(self.kernel_):
            return _Product(np.asarray(_dense(points) @ columns, dtype=np.float64))
        A = kernel_operator(self.kernel_, points, self.X_fit_, dtype=np.float64, store=False, device=device)
        F = multiplied(A, columns)
        if not bounded:
            return _Product(F)
        own, inducing = kernel_diagonal(self.kernel_, points), self._inducing
        if centred:
            norms = np.sqrt(np.maximum(own - 2 * F[:, -1] + self._mean_square, 0.0))
            return _Product(F[:, :-1], norms, np.sqrt(own), A.epsilon)
        norms = np.sqrt(own) if inducing is None else inducing.lengths(to_numpy(A.to_dense()), own)
        return _Product(F, norms, np.sqrt(own), A.epsilon)

    def _bounds(self, found: _Product) -> Matrix:
        """‖φ(x)‖(‖r‖/(2√λ)), and the rounding of a sum of n products and of adding the intercept."""
        size = np.sum(np.abs(self._columns(self.dual_coef_)), axis=0) * self._longest
        each = max(4 * EPS * (8 + np.sqrt(len(self.dual_coef_))), found.epsilon)
        rounding = each * np.outer(found.own + self._longest, size)
        rounding += 4 * EPS * (np.abs(np.atleast_1d(self.intercept_)) + self._level)
        return np.asarray(found.norms[:, None] * np.asarray(self.certificate_.error_bounds)[None, :] + rounding)

    def _std(self, points: Any) -> Matrix:
        """√(s(1 + Var f/s)) of each target; NaN of one without noise."""
        if not self._semidefinite:
            raise ValueError("The kernel is not positive semidefinite, so that there is no variance to speak of.")
        if not np.any(self._lam > 0):
            raise ValueError("At alpha=0 there is no noise, and no predictive variance. Use a positive alpha.")
        s = np.atleast_1d(self.noise_variance_)
        out = np.full((count_points(points), len(s)), np.nan)
        for j in np.flatnonzero(self._lam > 0):
            out[:, j] = np.sqrt(s[j] * (1.0 + self._posterior_of(int(j)).variance(points)))
        return out

    def _posterior_of(self, j: int) -> Posterior:
        """The posterior for the λ of a target: made when it is first asked for, and kept."""
        known: dict[float, Posterior] = self.__dict__.setdefault("_posteriors", {})
        lam = float(self._lam[j])
        if lam not in known:
            points = self.X_fit_ if self._support is None else chosen_points(self.X_fit_, self._support)
            given = Given(self._rows, self._subset, self._seed())
            known[lam] = Posterior.of(self.kernel_, points, self._fit_weights, lam, self._intercept, given)
        return known[lam]

    def _opened(self, X: Any, y: Any, sample_weight: Any, *, file: bool = False) -> tuple[Task, Any, Any]:
        """Check everything that was handed in: the task without its λ, all points, and which rows have weight."""
        every, n = self._training_points(X, file)
        Y, self._vector = check_targets(y, n)
        w = None if sample_weight is None else check_weights(sample_weight, n)
        file = isinstance(every, Source)  # where weights of 0 are left to the solver
        kept = None if w is None or file or np.all(w > 0) else np.flatnonzero(w > 0)  # a row of weight 0 is no row
        if self._is_pairwise():
            every = check_kernel_matrix(every)
        points, counts = every, has_whole_weights(w)
        if kept is not None and w is not None:
            points, Y, w = self._kept_points(every, kept), Y[kept], w[kept]
        w = None if w is None or np.all(w == 1.0) else w
        task = Task(self._resolved(points), points, Y, w, np.ones(Y.shape[1]), bool(self.fit_intercept), counts)
        device = self._device_of(X, points, self._candidates(task))
        return task.with_(seed=self._seed(), device=device), every, kept

    def _candidates(self, task: Task) -> list[Kernel]:
        """The kernels that may be evaluated: the one, unless one of several is to be chosen."""
        return [task.kernel]

    def _training_points(self, X: Any, file: bool) -> tuple[Any, int]:
        if are_objects(self.kernel, X):
            return list(X), len(X)
        source = checked_source(self, X, reset=True)
        return (source if file and not source.resident else gathered(source)), source.shape[0]

    def _kept_points(self, every: Any, kept: Any) -> Any:
        points = chosen_points(every, kept)
        return points[:, kept] if self._is_pairwise() else points

    def _resolved(self, points: Any) -> Kernel:
        kernel = as_kernel(self.kernel, self.gamma, self.degree, self.coef0, **(self.kernel_params or {}))
        if isinstance(points, list) or is_precomputed(kernel):
            return kernel
        if isinstance(points, Source):
            points = _some_rows(points) if kernel.automatic else np.zeros((1, points.shape[1]))
        return kernel.resolved(points)

    def _keep(self, task: Task, points: Any, alpha: Matrix, b: Vector, certificate: Residual) -> None:
        """Name what was found. ``points`` are those that α belongs to."""
        self._posteriors: dict[float, Posterior] = {}
        self.X_fit_, self.kernel_, self.certificate_ = points, task.kernel, certificate
        self.dual_coef_ = alpha[:, 0] if self._vector else alpha
        self.intercept_ = (float(b[0]) if self._vector else b) if task.intercept else 0.0
        self._lam, self._intercept = task.lam, task.intercept
        self._semidefinite = certificate.error_bounds is not None or bool(np.all(task.lam == 0.0))
        self._level = float(np.max(np.abs(task.mean), initial=0.0))

    def _columns(self, values: Any) -> Matrix:
        return np.asarray(values[:, None] if values.ndim == 1 else values)

    def _shaped(self, values: Matrix) -> Matrix:
        return values[:, 0] if self._vector else values

    def _is_pairwise(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")

    def _seed(self) -> int:
        return check_seed(self.random_state)

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_pairwise()
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_posteriors", None)
        return state

    _vector: bool
    _lam: Vector
    _fit_weights: Vector | None
    _rows: int
    _support: npt.NDArray[np.intp] | None
    _centre: Vector | None
    _inducing: InducingFit | None
    _intercept: bool
    _semidefinite: bool
    _level: float
    _mean_square: float
    _longest: float
    _subset: npt.NDArray[np.intp] | None


class _Product(NamedTuple):
    """Predictions without the intercept; ‖φ(x)‖, about the mean feature where there is an intercept; √k(x, x); ε."""

    values: Matrix
    norms: Vector = np.empty(0)
    own: Vector = np.empty(0)
    epsilon: float = EPS


def _dense(points: Any) -> Any:
    return points.toarray() if hasattr(points, "toarray") else points


def _some_rows(source: Source, most: int = 2000) -> Matrix:
    """Rows spread over a file, from which a bandwidth can be found."""
    step = max(1, source.shape[0] // most)
    return np.concatenate([np.array(b.values[(-b.start) % step :: step]) for b in source.blocks()])
