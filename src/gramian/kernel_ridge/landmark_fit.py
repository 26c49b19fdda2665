r"""Kernel ridge regression over a few landmarks: f(x) = Σ_j a_j k(x, z_j) + b, by passes over blocks of rows.

.. math:: \min_{a,b}\ \sum_i w_i\big(y_i-f(x_i)\big)^2+\lambda\,a^TK_{mm}a,\qquad
    \mathbf 1^Ta=0\ \text{with an intercept, as in the exact solution}

With K_mm = LLᵀ and Φ = K_nm L⁻ᵀ this is a ridge regression with coefficients c = Lᵀa. The rows of Φ are found block by
block by triangular solves: n·m² operations, and as many for ΦᵀΦ. Forming K_mnK_nm first and solving twice with the m×m
result would save half of them, but its rounding, ε‖K_nm‖², is then divided by the smallest pivots of K_mm, squared,
which reach 1e-14: nothing is left of the weak directions. For the same reason values of the kernel in float32 will not
do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace
from scipy.linalg.blas import dsyr, dsyrk
from scipy.linalg.lapack import dpstrf

from gramian.compute.devices import is_numpy, like, to_numpy
from gramian.kernel_ridge.certificate import DIGIT
from gramian.linear.path import Filter, RidgePath, leave_one_out
from gramian.linear.systems import check_shifts, cholesky, dots, eigh, lengths, take, triangular, wide
from gramian.operators import KernelOperator
from gramian.operators.base import Operator
from gramian.results import Residual

Array = Any  # of NumPy, or a tensor where k(X, Z) lives
Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Report = Callable[[int, float], None] | None
Inverse = Callable[[Floats, Index], Floats]

EPS = float(np.finfo(np.float64).eps)

METHODS = ("auto", "direct", "cg")
EVALUATION = 100  # a value of the kernel in a product takes as long as so many operations of BLAS
WRITTEN = 150  # ... and in a dense block
EIGEN = 10  # times m³ operations that eigenvectors take
WRITTEN_GPU, EIGEN_GPU = 1000, 500  # the same on a GPU, whose other operations are so much faster
ITERATIONS = 40  # that CG is expected to take
LIMIT = 300  # ... and may take
SAMPLE = 4  # rows of the sample for each landmark
AIM = 0.5  # of the tolerance: the gradient that is carried along differs a little from the true one
PATIENCE = 40  # iterations without a new lowest gradient


@dataclass(frozen=True)
class LandmarkSolver:
    r"""Fit f(x) = Σ_j a_j k(x, z_j) + b by passes over the rows of k(X, Z).

    "direct" forms ΦᵀWΦ in one pass and decomposes it, after which every λ is there. "cg" iterates, one pass over a file
    each time and two products in memory, for all targets at once, with a preconditioner from a sample of rows. "auto"
    takes what costs fewer operations (:func:`choose_method`): "direct" up to some 4,000 landmarks, 3,000 of a file.

    With k(X, Z) on a device the blocks, the m×m matrices and all products are there; targets, coefficients and what is
    said of them are NumPy's.

    Parameters
    ----------
    tol : float, default=1e-8
        Residual ‖ΦᵀW(y − f) − λc‖/‖ΦᵀWy‖ to reach.
    method : {"auto", "direct", "cg"}, default="auto"
        How.
    max_iterations : int, optional
        Of "cg"; 300.
    report : callable, optional
        Called with the iteration and the largest residual.
    seed : int, default=0
        For the sample of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> from gramian.kernel_ridge.landmark_fit import LandmarkSolver
    >>> from gramian.operators import KernelOperator
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> k, landmarks = Gaussian(gamma=0.2), np.arange(0, 200, 20)
    >>> A = KernelOperator(k, X, X[landmarks])
    >>> found = LandmarkSolver()(A, k(X[landmarks]), np.sin(X), 1e-3, indices=landmarks)
    >>> bool(np.max(np.abs(A @ found.coef + found.intercept - np.sin(X))) < 0.01)
    True
    """

    tol: float = 1e-8
    method: str = "auto"
    max_iterations: int | None = None
    report: Report = None
    seed: int = 0

    def __call__(
        self, A: Operator, Kmm: Any, Y: Any, shifts: Any, *, reason: str = "", warn: bool = True, **options: Any
    ) -> LandmarkFit:
        """Fit for one λ, or one for each target.

        Parameters
        ----------
        A : Operator of shape (n, m)
            k(X, Z), in float64.
        Kmm : array of shape (m, m)
            k(Z, Z), in NumPy or where A lives.
        Y : array of shape (n,) or (n, t)
            Targets.
        shifts : float or array-like of shape (t,)
            λ, not negative; where one is 0, "cg" gives way to "direct".
        reason : str, optional
            Why this solver was chosen, for the certificate.
        warn : bool, default=True
            Whether to warn of an unmet tolerance; otherwise the certificate alone says so.
        **options
            ``weights``, ``counts``, ``copies``, ``intercept``, ``indices`` and ``diagonal``, as for
            :meth:`decompose`.

        Returns
        -------
        LandmarkFit
            Coefficients, intercepts and certificate.
        """
        problem = LandmarkProblem(A, Kmm, Y, **options)
        lam = check_shifts(shifts, problem.Y.shape[1])
        method, why = choose_method(*A.shape, len(lam), self.method, resident=A.resident, on_gpu=is_on_gpu(A))
        if method == "cg" and not np.all(lam > 0):
            method, why = "direct", "λ = 0 needs the singular values"
        reason = "; ".join(part for part in (reason, why) if part)
        if method == "direct":
            found = Decomposed(problem).fit(lam, self.tol, reason)
        else:
            found = self._iterate(problem, lam, reason)
        if warn:
            remedy = "Raise the tolerance or λ, allow more iterations, or choose fewer landmarks."
            found.certificate.warn_unless_converged(remedy)
        return found

    def decompose(self, A: Operator, Kmm: Any, Y: Any, **options: Any) -> Decomposed:
        """Decompose in one pass; ``fit(λ)`` and ``path(λs)`` of the result take one more each.

        Parameters
        ----------
        A, Kmm, Y
            As for a fit.
        **options
            ``weights``: of shape (n,), not negative; rows of weight 0 take no part. ``counts``: whether they are
            counts; where None, if all are whole numbers. ``copies``: how often each row is there, where a weight is
            copies · precision: both at once. ``intercept``: whether to fit one, False unless given.
            ``indices``: which rows the landmarks are, and ``diagonal``: k(x, x) of every row; either gives a bound on
            the distance from exact kernel ridge, the second a sharper one.

        Returns
        -------
        Decomposed
            With ``filter``, ``fit``, ``path`` and ``left_out``.
        """
        return Decomposed(LandmarkProblem(A, Kmm, Y, **options))

    def _iterate(self, problem: LandmarkProblem, lam: Floats, reason: str) -> LandmarkFit:
        """Steps until the gradients carried along are small, then the true ones; again while that brings them down."""
        A, w, mass = problem.A, problem.w, problem.mass
        before, size = A.passes, SAMPLE * A.shape[1]
        sample = None  # all rows, where there are no more than a sample has
        if size < np.count_nonzero(w):  # rows drawn in proportion to w, with weights of the same sum
            drawn = np.random.default_rng(self.seed).choice(len(w), size=size, p=w / mass)
            sample = np.bincount(drawn, minlength=len(w)).astype(np.float64) * (mass / size)
        inverse = preconditioner(problem.first_pass(sample), lam)
        pull, limit = problem.pull, self.max_iterations or LIMIT
        todo = np.any(pull != 0.0, axis=0)
        zero = np.zeros((A.shape[1], len(lam)))
        at = MeasuredFit(np.zeros_like(pull), zero, problem.middle, problem.Y, pull, todo.astype(np.float64))
        done, best = 0, None
        with A.session():
            while best is None or (todo.any() and done < limit):
                c, done = self._descend(problem, lam, inverse, at, np.flatnonzero(todo), done, limit)
                previous, at = at.residuals, problem.measure(c, lam)
                todo = ~(at.residuals <= self.tol) & (at.residuals <= 0.5 * previous)
                best = at = at if best is None else at.or_better(best)
        method = "conjugate gradients, preconditioned by a sample"
        said = {"reason": reason, "passes": A.passes - before, "iterations": done, "tolerance": self.tol}
        return problem.certify(best, lam, method, **said)

    def _descend(
        self,
        problem: LandmarkProblem,
        lam: Floats,
        inverse: Inverse,
        at: MeasuredFit,
        columns: Index,
        done: int,
        limit: int,
    ) -> tuple[Floats, int]:
        """Preconditioned conjugate gradients for some columns at once; each leaves when it is done or stuck."""
        c, whole = at.c.copy(), np.linalg.norm(problem.pull, axis=0)
        x, r = at.c[:, columns], at.gradient[:, columns]
        z = inverse(r, columns)
        p, slope = z, dots(r, z)
        low, lowest, since = x.copy(), np.linalg.norm(r, axis=0), np.zeros(len(columns))
        while len(columns) and done < limit:
            q = problem.product(problem.basis.coefficients(p)) + lam[columns] * p
            alpha = slope / dots(p, q)
            x, r, done = x + alpha * p, r - alpha * q, done + 1
            size = np.linalg.norm(r, axis=0)
            better = size < lowest
            low, lowest, since = np.where(better, x, low), np.fmin(size, lowest), np.where(better, 0.0, since + 1.0)
            if self.report is not None:
                self.report(done, float(np.max(size / whole[columns])))
            stay = (size > AIM * self.tol * whole[columns]) & (since <= PATIENCE) & (done < limit)
            c[:, columns[~stay]] = low[:, ~stay]
            z = inverse(r, columns)
            before, slope = slope, dots(r, z)
            p = z + (slope / before) * p
            columns, x, r, p, slope, low, lowest, since = (
                columns[stay], x[:, stay], r[:, stay], p[:, stay], slope[stay], low[:, stay], lowest[stay], since[stay],
            )  # fmt: skip
        return c, done


def preconditioner(gram: Array, lam: Floats) -> Inverse:
    """(G + λI)⁻¹ for the λ of each column: one Cholesky factorisation, or the eigenvectors where λ differ.

    G is overwritten, and vectors come and go in NumPy.
    """
    if len(np.unique(lam)) == 1:
        i = array_namespace(gram).arange(len(gram))
        gram[i, i] += lam[0]
        L = cholesky(gram)
        return lambda R, columns: np.asarray(triangular(L, triangular(L, R), transposed=True))
    values, V = eigh(gram)
    values = np.maximum(values, 0.0)[:, None]

    def inverse(R: Floats, columns: Index) -> Floats:
        inner = to_numpy(V.T @ like(V, R, float), float) / (values + lam[None, columns])
        return to_numpy(V @ like(V, inner, float), float)

    return inverse


def choose_method(
    n: int, m: int, t: int, method: str = "auto", *, resident: bool = True, on_gpu: bool = False
) -> tuple[str, str]:
    """Return "direct" or "cg", and why: the one asked for, or the one of fewer operations.

    "direct" takes 2nm² for the Gram matrix and 10m³ for its eigenvectors; "cg" some 40 iterations over n·m values of
    the kernel, each as dear as 100 operations where it is multiplied in a core's cache (twice an iteration) and 150
    where it is written to a block (once), and 9m³ for the preconditioner from 4m rows. Where there are no more rows,
    the preconditioner is the inverse itself. On a GPU, which is so much faster at all else, a value of the kernel in
    float64 is as dear as 1000 operations, once in an iteration, and eigenvectors as 500m³.

    Examples
    --------
    >>> from gramian.kernel_ridge.landmark_fit import choose_method
    >>> choose_method(100_000, 1_000, 1)[0], choose_method(1_000_000, 10_000, 1)[0]
    ('direct', 'cg')
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    if method != "auto":
        return method, f"method={method!r}"
    written, eigen = (WRITTEN_GPU, EIGEN_GPU) if on_gpu else (WRITTEN, EIGEN)
    each = 2 * (EVALUATION + 2 * t) if resident and not on_gpu else written + 4 * t
    direct = n * m * (2 * m + 2 * written) + eigen * m**3
    steps, sample = (ITERATIONS, SAMPLE * m) if n > SAMPLE * m else (1, n)
    cg = n * m * (written + steps * each) + (2 * sample + m) * m**2
    chosen = "direct" if direct <= cg else "cg"
    return chosen, f"{n} rows and {m} landmarks take {direct:.1e} operations directly and some {cg:.1e} by iteration"


def predict_bytes(m: int, method: str, on_gpu: bool = False) -> int:
    """Return the memory that matrices of m×m numbers take: ask before a fit.

    On a GPU blocks of as many rows as landmarks are there beside them, and room for the eigenvectors to work in.

    Examples
    --------
    >>> from gramian.kernel_ridge.landmark_fit import predict_bytes
    >>> predict_bytes(10_000, "direct")
    4000000000
    """
    matrices = {"direct": 5, "cg": 3}[method]
    return (matrices + 3 if on_gpu else matrices) * 8 * m**2


def is_on_gpu(A: Operator) -> bool:
    """Whether the products of an operator are made on another device than a CPU.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.landmark_fit import is_on_gpu
    >>> from gramian.operators import Data
    >>> is_on_gpu(Data(np.eye(2)))
    False
    """
    return A.uses_torch and A.device.type != "cpu"


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """A fitted model f(x) = k(x, Z)a + b.

    Attributes
    ----------
    coef : ndarray of shape (m, t)
        a, which sums to 0 where there is an intercept.
    intercept : ndarray of shape (t,)
        b.
    objective, rss : ndarray of shape (t,)
        Σ w(y − f)² + λaᵀK_mm a, and the first of the two.
    certificate : Residual
        Residuals of the normal equations, and bounds on the distance from exact kernel ridge.
    rank : int
        Dimension of the span of the landmarks' features.
    basis : Whitening
        Coordinates in that span, in NumPy whatever the device of the fit.
    mean : ndarray of shape (r,)
        Coordinates of the mean feature φ̄, where there is an intercept.
    mean_outside : float or None
        Bound on the length of the part of φ̄ outside the span; None where k(x, x) was not given.
    """

    coef: Floats
    intercept: Floats
    objective: Floats
    rss: Floats
    certificate: Residual
    rank: int
    basis: Whitening
    mean: Floats
    mean_outside: float | None

    def lengths(self, K: Floats, own: Floats) -> Floats:
        """‖φ(x)‖, or with an intercept ‖φ(x) − φ̄‖ from above, of points by their rows k(x, Z) and k(x, x)."""
        if self.basis.means is None:
            return np.sqrt(own)
        if self.mean_outside is None:
            raise ValueError("Lengths about the mean feature need k(x, x) of the training rows: give diagonal.")
        F = self.basis.features(K)
        across = self.basis.outside(K, F, own) + self.mean_outside
        return np.asarray(np.hypot(np.linalg.norm(F - self.mean[:, None], axis=0), across))

    def times(self, scale: Floats | float) -> LandmarkFit:
        """Return the model of targets ``scale`` times as large."""
        bounds = self.certificate.error_bounds
        certificate = self.certificate if bounds is None else self.certificate.with_(error_bounds=bounds * scale)
        with np.errstate(over="ignore"):  # a square beyond the largest number is infinite
            objective, rss = self.objective * scale * scale, self.rss * scale * scale
        coef, intercept = self.coef * scale, self.intercept * scale
        return replace(self, coef=coef, intercept=intercept, objective=objective, rss=rss, certificate=certificate)

    def __repr__(self) -> str:
        m, t = self.coef.shape
        return f"LandmarkFit({m} landmarks of rank {self.rank}, {t} targets; {self.certificate.method})"


class LandmarkProblem:
    """k(X, Z), the targets and their weights, and the basis in which the problem is a ridge regression.

    All arrays are NumPy's but the factor of the basis, W and targets, which are where A lives.

    Attributes
    ----------
    A : Operator of shape (n, m)
        k(X, Z).
    basis : Whitening
        Of the landmarks.
    Y : ndarray of shape (n, t)
        Targets divided by ``scale``, less their means where there is an intercept.
    middle : ndarray of shape (t,)
        What was subtracted.
    scale : ndarray of shape (t,)
        A power of two near the largest target: squares of what is left neither overflow nor vanish.
    w, mass : ndarray of shape (n,), float
        Weights, not negative, and their sum.
    copies : ndarray of shape (n,)
        How often each row is there: its weight where weights are counts, otherwise once; 0 without weight.
    intercept : bool
        Whether there is one.
    indices : ndarray of shape (m,) or None
        Which rows the landmarks are.
    own : ndarray of shape (n,) or None
        k(x, x) of every row.
    sums : ndarray of shape (m,)
        k(Z, X)w, once the first pass has been made.
    pull : ndarray of shape (r, t)
        ΦᵀWY, likewise.
    mean : ndarray of shape (r,)
        Mean of the features, 0 without an intercept, likewise.
    outside : ndarray of shape (n,) or None
        ‖(I − P)φ(x)‖ of every row, likewise, where k(x, x) is known and every row was whitened.
    square : float
        Σ w‖k(x, Z)‖², likewise.
    """

    sums: Floats
    pull: Floats
    mean: Floats
    outside: Floats | None
    square: float

    def __init__(
        self,
        A: Operator,
        Kmm: Any,
        Y: Any,
        *,
        weights: Any = None,
        counts: bool | None = None,
        copies: Any = None,
        intercept: bool = False,
        indices: Any = None,
        diagonal: Any = None,
    ) -> None:
        n, m = A.shape
        if A.dtype != A.xp.float64:
            raise ValueError(f"k(X, Z) is in {A.dtype}; dividing by small pivots of k(Z, Z) needs float64. Give dtype.")
        Y = to_numpy(Y, float)
        Y = Y[:, None] if Y.ndim == 1 else Y
        w = np.ones(n) if weights is None else to_numpy(weights, float)
        for name, found, wanted in (
            ("Kmm", tuple(np.shape(Kmm)), (m, m)),
            ("Y", Y.shape[:1], (n,)),
            ("weights", w.shape, (n,)),
        ):
            if found != wanted:
                raise ValueError(f"{name} has shape {found}; k(X, Z) of shape {A.shape} needs {wanted}.")
        if not (np.all(np.isfinite(w) & (w >= 0)) and w.sum() > 0):
            raise ValueError("weights must be finite, not negative, and not all 0.")
        if indices is not None:
            indices = to_numpy(indices, float).astype(np.intp)
            if indices.shape != (m,) or np.any((indices < 0) | (indices >= n)):
                raise ValueError(f"indices must be {m} row numbers between 0 and {n - 1}, one for each landmark.")
            if np.any(w[indices] == 0):
                row = indices[np.argmin(w[indices])]
                raise ValueError(f"Row {row} is a landmark and has weight 0. Choose rows that have weight.")
        if copies is not None:
            copies = to_numpy(copies, float)
            if copies.shape != w.shape or not np.all(np.isfinite(copies) & (copies >= 0) & ((copies > 0) | (w == 0))):
                raise ValueError(f"copies must be {n} numbers, positive where the weight is.")
            copies = np.where(w > 0, copies, 0.0)
        elif np.all(w == np.round(w)) if counts is None else counts:
            copies = w
        else:
            copies = (w > 0).astype(np.float64)
        largest = np.max(np.abs(Y), axis=0, initial=0.0)
        scale = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1] - 1), 1.0)  # dividing by it is exact
        Y = Y / scale
        self.mass = mass = float(w.sum())
        self.middle = middle = w @ Y / mass if intercept else np.zeros(Y.shape[1])
        Y = Y - middle
        Y = Y * (w @ Y**2 > (8 * EPS * middle) ** 2 * mass)  # a constant is the intercept and nothing else
        self.basis = whiten(to_numpy(Kmm, float) if A.device is None else like(A.eye(1), Kmm, float), intercept)
        self.A, self.Y, self.scale, self.w, self.copies = A, Y, scale, w, copies
        self.intercept, self.indices = intercept, indices
        self.own = None if diagonal is None else np.broadcast_to(to_numpy(diagonal, float), (n,))
        self.W, self.targets = w[:, None], Y  # where A lives: what every block of rows asks for
        if A.device is not None:
            self.W, self.targets = (like(self.basis.L, x, float) for x in (self.W, Y))

    def first_pass(self, sample: Floats | None = None) -> Array:
        """Find sums over all rows; return Σ w(Φ − mean)(Φ − mean)ᵀ of all, or of a sample with its own weights.

        The matrix is where A lives, in NumPy its lower triangle. Blocks are merged about their own means, which loses
        no digits to a large mean.
        """
        own = self.own if sample is None else None
        along = self.W, self.targets, self.w, sample, own
        make = partial(LandmarkSums, self.basis, self.A.shape[1], self.Y.shape[1], self.intercept)
        if _is_file(self.A):
            found: LandmarkSums = self.A.reduce_rows(_AddRows(make), LandmarkSums.merge, least_rows(self.A), along)
        else:
            found = make()
            for start, stop, K in blocks(self.A):
                found.add(K, *(None if x is None else x[start:stop] for x in along))
        self.sums, self.square = found.sums, found.square
        self.outside = None if own is None else np.concatenate(found.outside)
        self.pull, self.mean = self.basis.adjoint(found.pull), to_numpy(found.mean, float)
        return found.gram

    def measure(self, c: Floats, lam: Floats) -> MeasuredFit:
        """One pass over a file or on a device, else two products: errors with the best intercept, and the gradient."""
        A, basis, w, W, Y = self.A, self.basis, self.w, self.W, self.targets
        a = basis.coefficients(c)
        b = -(self.sums @ a) / self.mass if self.intercept else np.zeros(len(lam))
        if A.resident and A.device is None:
            errors = Y - b - A.matmat(a)
            S = to_numpy(A.rmatmat(W * errors), float)
        elif _is_file(A):
            S, parts = A.reduce_rows(_Errors(a, b), _join_errors, least_rows(A), (Y, W))
            errors = np.concatenate(parts)
        else:
            there, shift = like(W, a, float), like(W, b, float)
            errors, S = np.empty_like(self.Y), 0.0 * there
            for start, stop, K in blocks(A):
                E = Y[start:stop, :] - shift - K @ there
                S += K.T @ (W[start:stop, :] * E)
                errors[start:stop] = to_numpy(E, float)
            S = to_numpy(S, float)
        if self.intercept:  # what rounding left of the mean of the errors
            shift = w @ errors / self.mass
            errors, b, S = errors - shift, b + shift, S - self.sums[:, None] * shift
        gradient = basis.adjoint(S) - lam * c
        found, whole = lengths(gradient), lengths(self.pull)
        residuals = np.divide(found, whole, out=np.zeros_like(found), where=whole > 0)
        return MeasuredFit(c, a, b + self.middle, errors, gradient, residuals)

    def product(self, a: Floats) -> Floats:
        """ΦᵀW(Φ − mean)c for a = L⁻ᵀc: one pass over a file or on a device, two products of points in memory."""
        A, W = self.A, self.W
        middle = self.sums @ a / self.mass if self.intercept else np.zeros(a.shape[1])
        if A.resident and A.device is None:  # evaluating tiles twice in the cache is quicker than writing them out once
            return self.basis.adjoint(to_numpy(A.rmatmat(W * (A.matmat(a) - middle)), float))
        there = like(W, a, float)
        if A.resident and not self.intercept:
            return self.basis.adjoint(to_numpy(A.normal(there, W[:, 0]), float))
        S, shift = 0.0 * there, like(W, middle, float)
        if _is_file(A):
            return self.basis.adjoint(A.reduce_rows(_CentredProduct(a, shift), operator.add, least_rows(A), (W,)))
        for start, stop, K in blocks(A):
            S += K.T @ (W[start:stop, :] * (K @ there - shift))
        return self.basis.adjoint(to_numpy(S, float))

    def certify(self, at: MeasuredFit, lam: Floats, method: str, **said: Any) -> LandmarkFit:
        """The fitted model of the targets as they were given, with its certificate."""
        A, basis, m = self.A, self.basis, self.A.shape[1]
        bounds, note = self._error_bounds(at, lam)
        lost = m - basis.rank - self.intercept
        # what was cut of the landmarks' features has squared lengths of at most this; beside a smaller λ it would count
        blurred = (CUT + np.sqrt(m)) * EPS * ((1.0 + self.intercept) * basis.size) ** 2
        proved = lost <= 0 or bool(np.all((lam == 0.0) | (lam >= blurred)))
        if not proved and bounds is not None:
            size = np.max(np.abs(self.Y + self.middle), axis=0, initial=0.0)
            proved = bool(np.all((bounds * basis.size <= DIGIT * size) | (lam == 0.0) | (lam >= blurred)))
        certificate = Residual(
            method=f"{m} landmarks: {method}",
            residuals=at.residuals,
            rounding=max(EPS, A.epsilon) * (np.sqrt(m) + 16),
            error_bounds=bounds,
            bounded="" if bounds is None else "|f̂(x) − f(x)|/‖φ(x)‖ against exact kernel ridge",
            proved=proved,
            device=A.device_name,
            precision=A.precision,
            notes=(
                f"rank {basis.rank}",
                *([f"{lost} directions of k(Z, Z) are rounding and were cut"] if lost > 0 else []),
                *([] if proved else ["λ is smaller than what was cut: the directions it would have kept are missing"]),
                note,
            ),
            **said,
        )
        rss = self.w @ at.errors**2
        objective = rss + lam * np.sum(at.c**2, axis=0)
        mean = to_numpy(basis.features(like(basis.L, self.sums[None, :] / self.mass, float))[:, 0], float)
        across = None  # ‖(I − P)φ̄‖ from above: Σ w̄‖(I − P)φ(x)‖, or by Jensen's inequality from Σ w̄‖φ(x)‖² and Pφ̄
        if self.outside is not None:
            across = float(self.w @ self.outside / self.mass)
        elif self.own is not None:
            square = basis.squares(self.w @ self.own / self.mass, np.mean(self.sums) / self.mass)
            across = float(np.sqrt(max(float(square) - float(mean @ mean), 0.0) + 1e3 * EPS * basis.size**2))
        found = LandmarkFit(at.a, at.intercept, objective, rss, certificate, basis.rank, basis.in_numpy(), mean, across)
        return found.times(self.scale)

    def _error_bounds(self, at: MeasuredFit, lam: Floats) -> tuple[Floats | None, str]:
        """Return the smaller of the bounds that can be had for each target, and which; None where there is none."""
        found = {}
        whole = np.sqrt(self.w @ self.Y**2 + self.mass * self.middle**2)  # ‖√w y‖, means included
        # rounding of √w(y − b − k(X, Z)a), all rows together
        products = (np.sqrt(self.A.shape[1]) + 16) * np.linalg.norm(at.a, axis=0) * np.sqrt(self.square)
        slips = max(EPS, self.A.epsilon) * (products + 4 * whole)
        with np.errstate(divide="ignore"):
            if self.indices is not None:
                root = np.sqrt(self.w)[:, None]
                R = root * at.errors
                np.subtract.at(R, self.indices, lam * at.a / root[self.indices])
                padded = (np.linalg.norm(R, axis=0) + slips) / (2.0 * np.sqrt(lam))
                found["of the coefficients, padded with zeros, in the exact system"] = padded
            if self.outside is not None:
                length = np.sqrt(self.w @ at.errors**2)
                rest = (self.w * self.outside) @ np.abs(at.errors)
                noise = 8 * EPS * float(np.max(self.basis.noise, initial=0.0)) * np.sqrt(self.square) * length
                noise = noise + np.sqrt(self.mass) * self.basis.size * slips
                left_out = (np.hypot(np.linalg.norm(at.gradient, axis=0), rest) + noise) / lam
                found["of what the landmarks leave out of the features"] = left_out
        if not found:
            return None, "no bound: neither the rows of the landmarks nor k(x, x) were given"
        name = min(found, key=lambda key: float(np.max(found[key], initial=0.0)))
        return np.min(list(found.values()), axis=0), f"the bound is that {name}"


SHARE = 8  # a block has at least one row for so many landmarks: it is then small beside the m×m matrices, and BLAS fast
ROWS = 4096  # ... and on a device as many as there are landmarks, and no fewer than this


def _is_file(A: Operator) -> TypeGuard[KernelOperator]:
    """Whether rows of A come from a file, by whoever reads it."""
    return isinstance(A, KernelOperator) and not A.resident and A.device is None


def least_rows(A: Operator) -> int:
    """Return how many rows a block has at least."""
    n, m = A.shape
    return min(n, m // SHARE if A.device is None else max(m, ROWS))


class LandmarkSums:
    """What the first pass sums over rows k(x, Z).

    Attributes
    ----------
    sums, pull, square
        Σ w k(Z, x), Σ w k(Z, x)y and Σ w‖k(x, Z)‖².
    gram, mean, mass
        Σ w(f − mean)(f − mean)ᵀ of the features f, of all rows or a sample of them; its lower triangle in NumPy.
    outside : list of ndarray
        ‖(I − P)φ(x)‖ of the rows, where k(x, x) is known.
    """

    def __init__(self, basis: Whitening, m: int, t: int, intercept: bool) -> None:
        self.basis, self.intercept = basis, intercept
        self.sums, self.pull, self.square = np.zeros(m), np.zeros((m, t)), 0.0
        self.gram = like(basis.L, np.zeros(basis.L.shape, order="F"), float)
        self.mean, self.mass = like(basis.L, np.zeros(basis.rank), float), 0.0
        self.outside: list[Floats] = []

    def add(self, K: Array, W: Array, Y: Array, w: Any, sample: Any, own: Any) -> None:
        """Add the rows of a block."""
        self.sums += to_numpy(W[:, 0] @ K, float)
        self.pull += to_numpy(K.T @ (W * Y), float)
        self.square += float(w @ dots(K.T, K.T))
        chosen = np.arange(len(w)) if sample is None else np.flatnonzero(sample)
        if not len(chosen):
            return
        F, w = self.basis.features(take(K, chosen, axis=0)), (w if sample is None else sample)[chosen]
        if own is not None:
            self.outside.append(self.basis.outside(K, F, own))
        more = float(w.sum())
        if more == 0.0 or not self.basis.rank:
            return
        if self.intercept:
            middle = F @ like(F, w, float) / more
            F -= middle[:, None]
            self._move(middle, more)
        F *= like(F, np.sqrt(w), float)[None, :]
        self.gram = _add_square(self.gram, F)

    def _move(self, middle: Array, more: float) -> None:
        """Take in rows of another mean."""
        step, both = middle - self.mean, self.mass + more
        self.gram = _add_square(self.gram, step[:, None], self.mass * more / both)
        self.mean, self.mass = self.mean + step * (more / both), both

    def merge(self, other: LandmarkSums) -> LandmarkSums:
        """Return the sums of the rows of both."""
        total = copy(self)
        total.sums, total.pull = self.sums + other.sums, self.pull + other.pull
        total.square = self.square + other.square
        total.gram, total.outside = self.gram + other.gram, self.outside + other.outside
        if self.intercept and other.mass > 0.0:
            total._move(other.mean, other.mass)
        return total


@dataclass(frozen=True, eq=False)
class _AddRows:
    """The sums of a block."""

    make: Callable[[], LandmarkSums]

    def __call__(self, K: Array, *along: Any) -> LandmarkSums:
        found = self.make()
        found.add(K, *along)
        return found


@dataclass(frozen=True, eq=False)
class _Errors:
    """KᵀW(y − b − K a) of a block, and the errors in the brackets."""

    a: Floats
    b: Floats

    def __call__(self, K: Array, Y: Floats, W: Floats) -> tuple[Floats, list[Floats]]:
        E = Y - self.b - K @ self.a
        return K.T @ (W * E), [E]


def _join_errors(one: tuple[Floats, list[Floats]], other: tuple[Floats, list[Floats]]) -> tuple[Floats, list[Floats]]:
    return one[0] + other[0], one[1] + other[1]


@dataclass(frozen=True, eq=False)
class _CentredProduct:
    """KᵀW(K a − b) of a block."""

    a: Floats
    b: Floats

    def __call__(self, K: Array, W: Floats) -> Floats:
        product: Floats = K.T @ (W * (K @ self.a - self.b))
        return product


def blocks(A: Operator) -> Iterator[tuple[int, int, Array]]:
    """Dense rows of A in float64, some blocks joined where they would be thin beside the m×m matrices."""
    n = A.shape[0]
    least, waiting, begin = least_rows(A), [], 0
    for start, stop, block in A.rows():
        waiting.append(np.asarray(block, dtype=np.float64) if A.device is None else wide(block))
        begin = start if len(waiting) == 1 else begin
        if stop - begin >= least or stop == n:
            yield begin, stop, waiting[0] if len(waiting) == 1 else A.xp.concat(waiting, axis=0)
            waiting = []


def _add_square(total: Array, F: Array, factor: float = 1.0) -> Array:
    """Add factor·FFᵀ in place: the lower triangle in NumPy, on a device all of it."""
    if not is_numpy(total):
        total += F @ (F.T if factor == 1.0 else factor * F.T)
        return total
    if F.shape[1] == 1:
        return dsyr(factor, F[:, 0], lower=1, a=total, overwrite_a=1)
    return dsyrk(factor, F, beta=1.0, c=total, lower=1, overwrite_c=1)


@dataclass(frozen=True, eq=False)
class MeasuredFit:
    """A solution and what was measured for it, for t targets.

    Attributes
    ----------
    c, a : ndarray of shape (r, t), (m, t)
        Coefficients of the features, and of the landmarks.
    intercept : ndarray of shape (t,)
        b, for the targets as given.
    errors : ndarray of shape (n, t)
        y − b − k(X, Z)a.
    gradient : ndarray of shape (r, t)
        ΦᵀW(errors) − λc, which is 0 at the solution.
    residuals : ndarray of shape (t,)
        Its length relative to that of ΦᵀWY.
    """

    c: Floats
    a: Floats
    intercept: Floats
    errors: Floats
    gradient: Floats
    residuals: Floats

    def or_better(self, other: MeasuredFit) -> MeasuredFit:
        """Of each column the one with the smaller residual."""
        worse = ~(self.residuals <= other.residuals)
        pick: Any = lambda name: np.where(worse, getattr(other, name), getattr(self, name))  # noqa: E731
        return MeasuredFit(*(pick(name) for name in self.__dataclass_fields__)) if worse.any() else self


CUT = 50  # ε, and √m more: of a landmark's own length, squared, this is what rounding may leave after the others


@dataclass(frozen=True, eq=False)
class Whitening:
    """The triangular factor of k(Z, Z), and what centring at the mean of the landmarks needs.

    L may be a tensor on the device of k(X, Z), all else is NumPy's. What a method returns lives where its argument is.

    Attributes
    ----------
    pivots : ndarray of shape (r,)
        The landmarks whose features span those of all, in order.
    L : array of shape (r, r)
        Lower triangular, LLᵀ = k(Z, Z) at the pivots.
    m : int
        Number of landmarks.
    means : ndarray of shape (m,) or None
        ⟨φ̄_Z, φ(z_j)⟩ where features are centred.
    noise : ndarray of shape (r,)
        How much rounding of k(Z, x), in units of its size, each coordinate picks up.
    size : float
        √k(z, z) of the longest landmark.
    """

    pivots: Index
    L: Array
    m: int
    means: Floats | None
    noise: Floats
    size: float

    @property
    def rank(self) -> int:
        """Dimension of the span."""
        return len(self.pivots)

    def features(self, K: Array) -> Array:
        """Φᵀ, of shape (r, b), of b points from their rows k(x, Z), by triangular solves."""
        F = take(K, self.pivots)
        if self.means is not None:
            shift = self.means[self.pivots] - self.means.mean()
            F = F - (like(K, _row_means(K), float)[:, None] + like(K, shift, float)[None, :])
        return triangular(self.L, F.T)

    def adjoint(self, S: Floats) -> Floats:
        """ΦᵀV from S = k(Z, X)V, both with as many columns as V, which sum to 0 where features are centred."""
        S = S if self.means is None else S - S.mean(axis=0)
        return np.asarray(triangular(self.L, S[self.pivots]))

    def coefficients(self, c: Floats) -> Floats:
        """The a, of shape (m, t), with k(x, Z)a = Φ(x)·c but for a constant where features are centred."""
        a = np.zeros((self.m, c.shape[1]))
        a[self.pivots] = triangular(self.L, c, transposed=True)
        return a if self.means is None else a - a.mean(axis=0)

    def squares(self, own: Any, row_means: Any) -> Floats:
        """‖φ(x)‖², about the mean of the landmarks where features are centred, from k(x, x) and means of k(x, Z)."""
        return np.asarray(own if self.means is None else own - 2.0 * row_means + self.means.mean())

    def outside(self, K: Array, F: Array, own: Floats) -> Floats:
        """‖(I − P)φ(x)‖ of b points, in NumPy, from above: k̃(x, x) − ‖Φ(x)‖² with the rounding of both added."""
        sizes = to_numpy(like(F, self.noise, float) @ abs(F), float)
        rounding = 8 * EPS * (np.sqrt(own) + self.size) * (sizes + np.sqrt(own) + self.size)
        left = self.squares(own, _row_means(K)) - dots(F, F)
        return np.asarray(np.sqrt(np.maximum(left, 0.0) + rounding))

    def in_numpy(self) -> Whitening:
        """The same with L in NumPy: what a fitted model keeps."""
        return self if is_numpy(self.L) else replace(self, L=np.asfortranarray(to_numpy(self.L, float)))


def whiten(Kmm: Array, centred: bool) -> Whitening:
    r"""Factor k(Z, Z) by Cholesky with pivots; directions that are rounding are cut.

    A pivot below (50 + √m)ε of k(z, z) is what rounding leaves of a landmark that the others determine: dividing by it
    would make noise a feature. A larger one is kept, since other rows may have much of a direction that the landmarks
    have little of.

    On a device the landmarks are first taken in the order they come in, which is a good one of those chosen by pivoted
    Cholesky; where a pivot is too small for that, LAPACK chooses the order on the host: a third of m³ operations.

    Parameters
    ----------
    Kmm : array of shape (m, m)
        k(Z, Z), symmetric, in NumPy or on a device.
    centred : bool
        Whether features are taken about the mean of the landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.landmark_fit import whiten
    >>> whiten(np.array([[4.0, 2.0, 4.0], [2.0, 2.0, 2.0], [4.0, 2.0, 4.0]]), False).rank
    2
    """
    xp = array_namespace(Kmm)
    own = to_numpy(xp.linalg.diagonal(Kmm), float)
    if len(own) == 0 or np.min(own) < 0:
        low = own.min(initial=0.0)
        raise ValueError(f"k(Z, Z) of the landmarks needs a diagonal that is not negative, got {low:g}.")
    means, unit = _row_means(Kmm) if centred else None, Kmm
    scale = np.sqrt(own)
    if means is not None:
        there = like(Kmm, means, float)
        unit = Kmm - there[:, None] - there[None, :] + float(means.mean())
        scale = scale + np.mean(np.sqrt(own))  # rounding of what is centred is in proportion
    scale[scale == 0] = 1.0
    there = like(Kmm, scale, float)
    unit = unit / there[:, None] / there[None, :]
    cut, full = (CUT + np.sqrt(len(own))) * EPS, len(own) - centred  # centred rows sum to 0
    pivots, L = _factor_in_order(unit, full, cut) or _factor_with_pivots(to_numpy(unit, float), full, cut)
    L = like(Kmm, L, float) * like(Kmm, scale[pivots], float)[:, None]
    L = np.asfortranarray(L) if is_numpy(L) else L
    noise = lengths(triangular(L, like(L, np.eye(len(L)), float)).T) if len(L) else np.zeros(0)
    return Whitening(pivots, L, len(own), means, noise, float(np.sqrt(own.max())))


def _factor_in_order(unit: Array, rank: int, cut: float) -> tuple[Index, Array] | None:
    """The factor of a matrix on a device without pivots, if it shows the full rank."""
    if is_numpy(unit) or not rank:
        return None
    try:
        L = cholesky(unit[:rank, :rank])
    except np.linalg.LinAlgError:
        return None
    least = float(np.min(to_numpy(array_namespace(L).linalg.diagonal(L), float))) ** 2
    return (np.arange(rank), L) if least > cut else None


def _factor_with_pivots(unit: Floats, full: int, cut: float) -> tuple[Index, Floats]:
    """The factor by LAPACK, in the order of its pivots, as far as they are not rounding."""
    unit = np.asfortranarray(unit)
    factor, order, rank, _ = dpstrf(unit, lower=1, tol=cut)
    pivots, rank = np.asarray(order, dtype=np.intp) - 1, min(int(rank), full)
    left = np.diagonal(unit)[pivots] - np.sum(np.tril(factor)[:, :rank] ** 2, axis=1)
    worst = rank + int(np.argmin(left[rank:])) if rank < len(left) else 0
    if left[worst] < -1e3 * cut:  # directions that are cut are short; one of negative length cannot be
        raise ValueError(
            f"k(Z, Z) of the landmarks is not positive semidefinite: landmark {pivots[worst]} has {left[worst]:.2g} of "
            "its own length left beside the others. Landmarks need a kernel that is an inner product."
        )
    return pivots[:rank], np.tril(factor[:rank, :rank])


def _row_means(K: Array) -> Floats:
    """Means of rows, in NumPy."""
    return to_numpy(array_namespace(K).mean(K, axis=1), float)


class Decomposed:
    """The problem decomposed by one pass: every λ follows.

    Attributes
    ----------
    filter : Filter
        σ², and projections of the targets divided by their scale, of the weighted, centred features.
    vectors : array of shape (r, r)
        V, the right singular vectors of the features, where k(X, Z) lives.
    """

    def __init__(self, problem: LandmarkProblem) -> None:
        w, copies = problem.w, problem.copies
        values, V = eigh(problem.first_pass())
        squares = np.where(values > len(values) * EPS * np.max(values, initial=0.0), values, 0.0)
        roots = np.sqrt(squares)[:, None]
        projected = to_numpy(V.T @ like(V, problem.pull, float), float)
        c = np.divide(projected, roots, out=np.zeros_like(projected), where=roots > 0)
        rest = np.maximum(w @ problem.Y**2 - np.sum(c**2, axis=0), 0.0)
        logs = float(copies[w > 0] @ np.log(w[w > 0] / copies[w > 0]))
        self.problem, self.vectors = problem, V
        self.filter = Filter(squares, c, rest, float(copies.sum()), problem.mass, problem.intercept, logs)

    def _combine(self, C: Floats) -> Floats:
        """VC, in NumPy."""
        return to_numpy(self.vectors @ like(self.vectors, C, float), float)

    def fit(self, shifts: Any, tol: float = 1e-8, reason: str = "asked for") -> LandmarkFit:
        """Return the model for one λ, or one for each target: one more pass, and another where a residual is large."""
        problem, lam = self.problem, check_shifts(shifts, self.problem.Y.shape[1])
        before = problem.A.passes
        c = self._combine(self.filter.factors(lam) * self.filter.projections)
        at, steps = problem.measure(c, lam), 0
        while not np.all(at.residuals <= tol) and steps < 2:  # what forming the Gram matrix rounded away
            projected = to_numpy(self.vectors.T @ like(self.vectors, at.gradient, float), float)
            step = self._combine(self.filter.inverse(lam) * projected)
            at, steps = problem.measure(at.c + step, lam).or_better(at), steps + 1
        squares, condition = self.filter.squares, None
        if np.all(lam > 0) and len(squares):
            condition = float(np.max((squares.max() + lam) / (squares.min() + lam)))
        passes = 1 + problem.A.passes - before
        said = {"reason": reason, "passes": passes, "iterations": steps, "tolerance": tol, "condition": condition}
        return problem.certify(at, lam, "eigenvectors of the Gram matrix", **said)

    def path(self, alphas: Any) -> RidgePath:
        """Return the model for every λ with its leave-one-out errors, landmarks fixed: one more pass."""
        lam = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        p, f, basis, scale = self.problem, self.filter, self.problem.basis, self.problem.scale
        t = len(scale)
        c = self._combine(f.solution(lam).reshape(basis.rank, len(lam) * t))
        a = basis.coefficients(c)
        b = np.tile(p.middle, len(lam))
        b = b - p.sums @ a / p.mass if p.intercept else b
        loo = np.zeros((len(lam), t))  # mean squared leave-one-out errors of the targets divided by their scale
        for rows, errors in self._scaled_errors(lam):
            loo += np.einsum("i,ilt->lt", p.w[rows], errors**2) / f.count
        nu = f.count - float(p.intercept)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # one row and an intercept leave nothing
            return RidgePath(
                alphas=lam,
                singular_values=np.sqrt(f.squares),
                filter_factors=f.factors(lam),
                dof=f.dof(lam),
                coef=a.T.reshape(len(lam), t, basis.m) * scale[:, None],
                intercept=b.reshape(len(lam), t) * scale,
                loo=loo * scale**2,
                gcv=f.gcv(lam) * scale**2,
                log_marginal_likelihood=f.log_likelihood(lam) - nu * np.log(scale),
                noise_variance=f.noise(lam) * scale**2,
            )

    def leave_one_out_errors(self, alphas: Any) -> Iterator[tuple[Index, Floats]]:
        """Yield the numbers of some rows and their leave-one-out errors, of shape (rows, λs, t): one pass over all."""
        lam = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
        return ((rows, errors * self.problem.scale) for rows, errors in self._scaled_errors(lam))

    def _scaled_errors(self, lam: Floats) -> Iterator[tuple[Index, Floats]]:
        p, inverse = self.problem, self.filter.inverse(lam)
        t = len(p.scale)
        V, mean = self.vectors, like(self.vectors, p.mean, float)
        solution = like(V, self.filter.solution(lam).reshape(len(inverse), len(lam) * t), float)
        weights = like(V, inverse, float)
        for start, stop, K in blocks(p.A):
            rows = start + np.flatnonzero(p.w[start:stop] > 0)
            if not len(rows):
                continue
            F = (p.basis.features(take(K, rows - start, axis=0)) - mean[:, None]).T @ V
            errors = p.Y[rows][:, None, :] - to_numpy(F @ solution, float).reshape(len(rows), len(lam), t)
            leverage = p.w[rows][:, None] * (to_numpy(F**2 @ weights, float) + float(p.intercept) / p.mass)
            yield rows, leave_one_out(errors, leverage, p.copies[rows], True)
