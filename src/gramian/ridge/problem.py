r"""The problem behind a ridge regression: X̃ = diag(√w)(X − 1μᵀ), Ỹ = diag(√w)(Y − 1ȳᵀ), never formed."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import is_numpy_namespace

from gramian.compute.devices import like, to_numpy
from gramian.compute.moments import Moments, block_moments
from gramian.compute.threads import parallel
from gramian.inputs.checks import check_choice, check_targets, check_weights, has_whole_weights
from gramian.inputs.opening import open_input, refuse_non_finite
from gramian.operators import Centred, Data, Operator, RowWeighted
from gramian.operators.data import kernels_for
from gramian.sources import Block, Source, memory_budget, open_source
from gramian.sources.devices import source_to_device

__all__ = [
    "ITERATIVE",
    "SOLVERS",
    "Joint",
    "RidgeInputs",
    "RidgeProblem",
    "Weights",
    "block_joint",
    "check_ridge",
    "open_ridge",
    "penalties",
    "penalty_grid",
    "ridge_problem",
    "weights_of",
]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ITERATIVE = ("cg", "lsqr", "sparse_cg", "sag", "saga")  # scikit-learn's names, all of them our block CGLS
SOLVERS = ("auto", "svd", "cholesky", "primal", "dual", *ITERATIVE)
WIDEST = 1e100  # the largest weight lies within 1/WIDEST and WIDEST


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of rows, and what they stand for.

    Attributes
    ----------
    values : ndarray of shape (n,) or None
        w; None where every row counts once.
    counts : bool
        Whether all are whole numbers: then a weight of 2 is the row twice. Others are precisions.
    rows : int
        How many are positive.
    mass : float
        Σw.
    """

    values: Vector | None
    counts: bool
    rows: int
    mass: float

    @property
    def count(self) -> float:
        """N: Σw for counts, the number of rows with a positive weight for precisions."""
        return self.mass if self.counts else float(self.rows)

    @property
    def log_sum(self) -> float:
        """Σ ln w of precisions; 0 for counts."""
        if self.values is None or self.counts:
            return 0.0
        return float(np.sum(np.log(self.values[self.values > 0])))

    @property
    def root(self) -> Vector | None:
        """√w, or None."""
        return None if self.values is None else np.sqrt(self.values)


@dataclass(frozen=True, eq=False)
class RidgeInputs:
    """Data, targets and weights that fit together.

    Attributes
    ----------
    source : Source
        X.
    Y : ndarray of shape (n, t)
        Targets, in float64.
    weights : Weights
        Of the rows.
    ndim : int
        Dimensions of y as it was given.
    given : Source
        X where it lived, and results go.
    """

    source: Source
    Y: Matrix
    weights: Weights
    ndim: int
    given: Source

    def at(self, device: Any) -> RidgeInputs:
        """Return the same with X where an estimator with this ``device`` works on it."""
        return replace(self, source=source_to_device(self.source, device))


def open_ridge(estimator: Any, X: Any, y: Any, sample_weight: Any) -> RidgeInputs:
    """Open X, record its columns on the estimator, and check y and the weights against it."""
    source = open_input(estimator, X, reset=True)
    Y, vector = check_targets(_read(y), source.shape[0])
    if Y.shape[1] == 0:
        raise ValueError("y has no columns: 0 targets were given, at least 1 is needed.")
    w = weights_of(sample_weight, source.shape[0])
    return RidgeInputs(source, Y, w, 1 if vector else 2, source)


def weights_of(sample_weight: Any, n: int) -> Weights:
    """Return the weights of n rows, checked.

    Examples
    --------
    >>> from gramian.ridge.problem import weights_of
    >>> w = weights_of([2, 0, 1], 3)
    >>> w.counts, w.rows, w.count
    (True, 2, 3.0)
    """
    w = check_weights(sample_weight, n)
    largest = int(np.argmax(w))
    if not 1 / WIDEST <= w[largest] <= WIDEST:
        raise ValueError(
            f"sample_weight: the largest is {w[largest]:g}, in row {largest}, and squares times weights would leave "
            f"the range of float64. Multiply all weights and alpha by {1 / w[largest]:.0e}: coefficients stay the same."
        )
    rows, mass = int(np.count_nonzero(w)), float(w.sum())
    return Weights(None if np.all(w == 1.0) else w, has_whole_weights(w), rows, mass)


def _read(y: Any) -> Any:
    """Targets that are in a file or a Source as an array; others as they are."""
    if isinstance(y, (str, os.PathLike)):
        if Path(y).suffix.lower() != ".npy":
            raise ValueError(f"y = {os.fspath(y)!r}: targets are read from .npy files only; else pass an array.")
        return np.load(Path(y), mmap_mode="r")
    if isinstance(y, Source):
        return np.concatenate([np.array(block.values) for block in open_source(y).blocks()])
    return y


def penalties(alpha: Any, targets: int) -> Vector:
    """Return λ for each target."""
    given = np.asarray(alpha.detach().cpu() if hasattr(alpha, "detach") else alpha)
    if given.dtype.kind not in "biuf" and not all(isinstance(value, Real) for value in given.ravel()):
        raise ValueError(f"alpha must be a number, or one for each target; got {alpha!r}.")
    lam: Vector = given.astype(np.float64).ravel()
    if len(lam) not in (1, targets):
        raise ValueError(
            f"Number of targets and number of penalties do not correspond: {lam.size} != {targets}. Give one alpha, or "
            "one for each column of y."
        )
    lam = np.broadcast_to(lam, (targets,)).copy()
    bad = np.flatnonzero(~(np.isfinite(lam) & (lam >= 0)))
    if len(bad):
        raise ValueError(f"alpha must be finite and not negative; got {lam[bad[0]]}.")
    return lam


def penalty_grid(alphas: Any, zero: bool) -> Vector:
    """λ as an array, each of them named if it will not do."""
    values = np.atleast_1d(np.asarray(alphas, dtype=object))
    if values.ndim != 1 or not len(values):
        raise ValueError(f"alphas must be one or more numbers, got an array of shape {values.shape}.")
    for i, value in enumerate(values):
        name = "alphas" if len(values) == 1 else f"alphas[{i}]"
        if not isinstance(value, Real):
            raise TypeError(f"{name} must be an instance of float, not {type(value).__name__}.")
        if not (np.isfinite(float(value)) and (float(value) > 0 or (zero and float(value) == 0))):
            raise ValueError(
                f"{name} == {value}, must be {'>=' if zero else '>'} 0{'' if zero else ' unless cv is given'}."
            )
    return np.asarray(values, dtype=np.float64)


def check_ridge(model: Any) -> None:
    """Raise an error that names the parameter of a Ridge, what it is, and what it may be."""
    if model.positive:
        raise ValueError(
            "positive=True is not offered: it is another problem, without a closed form. Use sklearn.linear_model."
            "Ridge(positive=True), or scipy.optimize.nnls of X and y with √alpha·I and zeros stacked below."
        )
    if model.solver == "lbfgs":
        raise ValueError(
            "solver='lbfgs' is for positive=True only, which is not offered here: use sklearn.linear_model."
            f"Ridge(positive=True). Without it, solver may be one of {', '.join(SOLVERS)}."
        )
    check_choice("solver", model.solver, SOLVERS)
    check_choice("fit_intercept", model.fit_intercept, (True, False))
    if not (isinstance(model.tol, Real) and 0.0 <= float(model.tol) < np.inf):
        raise ValueError(f"tol must be a number that is not negative, got {model.tol!r}.")
    if model.max_iter is not None and not (isinstance(model.max_iter, Integral) and int(model.max_iter) >= 1):
        raise ValueError(f"max_iter must be a positive integer or None, got {model.max_iter!r}.")


Array = npt.NDArray[Any]

TILE_ROWS = 1024  # rank-t updates DᵀD need a long inner dimension
BLAS_COLUMNS = 1000  # from here on BLAS shares one DᵀD between the cores as well as we could, in half the memory
SAMPLE = 1024  # rows averaged for the origin


@dataclass(frozen=True, eq=False)
class Joint:
    """Moments of the rows (x, y) together: those of y among themselves are not needed but for their diagonal."""

    weight: float
    mean: Vector
    low: Vector
    gram: Matrix
    cross: Matrix
    squares: Vector

    def merge(self, other: Joint) -> Joint:
        """Return the moments of both sets of rows."""
        if self.weight == 0.0 or other.weight == 0.0:
            return other if self.weight == 0.0 else self
        total, p = self.weight + other.weight, len(self.gram)
        delta = (other.mean - self.mean) + (other.low - self.low)
        step = delta * (other.weight / total) + self.low
        mean = self.mean + step
        factor, dx, dy = self.weight * other.weight / total, delta[:p], delta[p:]
        return Joint(
            total,
            mean,
            (self.mean - mean) + step,
            self.gram + other.gram + factor * (dx[:, None] * dx[None, :]),
            self.cross + other.cross + factor * (dx[:, None] * dy[None, :]),
            self.squares + other.squares + factor * dy**2,
        )

    def plus(self, other: Joint) -> Joint:
        """Return the sums of both sets of rows about the same origin 0."""
        return replace(
            self,
            weight=self.weight + other.weight,
            gram=self.gram + other.gram,
            cross=self.cross + other.cross,
            squares=self.squares + other.squares,
        )


def block_joint(X: Matrix, Y: Matrix, w: Vector | None, centre: bool, unit: float) -> Joint:
    r"""Moments of one block of rows: d = (unit·x, y) − c with c the mean of some rows, or c = 0.

    A tile is displaced and weighted in a thread's own buffer, then multiplied by itself and by its targets.
    """
    n, p = X.shape
    t, weight = Y.shape[1], float(n) if w is None else float(w.sum())
    if weight == 0.0:
        return Joint(0.0, np.zeros(p + t), np.zeros(p + t), np.zeros((p, p)), np.zeros((p, t)), np.zeros(t))
    c = _origin(X, Y, w, unit) if centre else np.zeros(p + t)
    rows = TILE_ROWS if p < BLAS_COLUMNS else max(TILE_ROWS, memory_budget() // 8 // (8 * p))
    parts = _shared(X, Y, w, c if centre else None, unit, rows)
    s, gram, cross, squares = (sum(q[1:], start=q[0]) for q in zip(*parts, strict=True))
    if not centre:
        return Joint(weight, c, c, gram, cross, squares)
    shift = s / weight
    mean = c + shift
    sx, sy = s[:p], s[p:]
    gram, cross = gram - sx[:, None] * (sx / weight), cross - sx[:, None] * (sy / weight)
    return Joint(weight, mean, (c - mean) + shift, gram, cross, squares - sy * sy / weight)


def _origin(X: Matrix, Y: Matrix, w: Vector | None, unit: float) -> Vector:
    """Mean of up to 1,024 rows with a weight, spread over the block."""
    keep = np.arange(len(X)) if w is None else np.flatnonzero(w)
    keep = keep[:: max(1, len(keep) // SAMPLE)]
    return np.concatenate([np.mean(X[keep].astype(np.float64) * unit, axis=0), np.mean(Y[keep], axis=0)])


def _shared(
    X: Matrix, Y: Matrix, w: Vector | None, c: Vector | None, unit: float, rows: int
) -> list[tuple[Vector, Matrix, Matrix, Vector]]:
    """Sums over tiles, one part for each thread; wide data are left to the threads of BLAS."""
    n, p = X.shape
    t, root = Y.shape[1], None if w is None else np.sqrt(w)
    rows = min(rows, n)
    order = "C" if abs(X.strides[0]) >= abs(X.strides[1]) else "F"

    def work(share: Sequence[int]) -> tuple[Vector, Matrix, Matrix, Vector]:
        D: Matrix = np.empty((rows, p), order=order)  # type: ignore[call-overload]
        s, G, H, q = np.zeros(p + t), np.zeros((p, p)), np.zeros((p, t)), np.zeros(t)
        with np.errstate(over="ignore", invalid="ignore"):
            for i in share:
                part = slice(i, min(i + rows, n))
                r = np.ones(part.stop - i) if root is None else root[part]
                Dx, Dy = _tile(X[part], D[: len(r)], c, unit, p), Y[part] if c is None else Y[part] - c[p:]
                if root is not None:
                    Dx *= r[:, None]
                    Dy = Dy * r[:, None]
                s[:p] += r @ Dx
                s[p:] += r @ Dy
                G += Dx.T @ Dx  # numpy sees the transpose of the same array and calls syrk: half the work
                H += Dx.T @ Dy
                q += np.einsum("ij,ij->j", Dy, Dy)
        return s, G, H, q

    starts = range(0, n, rows)
    return [work(starts)] if p >= BLAS_COLUMNS else parallel(work, starts)


def _tile(X: Matrix, out: Matrix, c: Vector | None, unit: float, p: int) -> Matrix:
    """unit·X − c, written where there is room for it."""
    np.copyto(out, X, casting="unsafe")
    if unit != 1.0:
        out *= unit
    if c is not None:
        out -= c[:p]
    return out


ArrayRidgeProblem = Any

EPS = 2.0**-52


@dataclass(frozen=True, eq=False)
class RidgeProblem:
    """Minimise ‖Ỹ − X̃B‖² + λ‖B‖², in units in which nothing overflows.

    Attributes
    ----------
    source, weights
        What was given.
    intercept : bool
        Whether μ and ȳ are means; else they are 0.
    mean, low : array of shape (p,)
        μ = mean + low, of unit·X, beside the data.
    level, level_low : ndarray of shape (t,)
        ȳ = level + level_low, of y_unit·Y.
    raw : ndarray of shape (n, t)
        y_unit·Y.
    diagonal : ndarray of shape (p,)
        Diagonal of X̃ᵀX̃.
    gram, cross : ndarray of shape (p, p), (p, t), or None
        X̃ᵀX̃ and X̃ᵀỸ, where they were summed.
    unit, y_unit : float
        Powers of two.
    passes : int
        Passes over the data so far.
    """

    source: Source
    weights: Weights
    intercept: bool
    mean: ArrayRidgeProblem
    low: ArrayRidgeProblem
    level: Vector
    level_low: Vector
    raw: Matrix
    diagonal: Vector
    gram: Matrix | None
    cross: Matrix | None
    unit: float
    y_unit: float
    passes: int

    @cached_property
    def Y(self) -> Matrix:
        """Y − 1ȳᵀ, without weights."""
        return np.asarray((self.raw - self.level) - self.level_low) if self.intercept else self.raw

    @property
    def targets(self) -> Matrix:
        """Ỹ = √w(Y − ȳ)."""
        root = self.weights.root
        return self.Y if root is None else root[:, None] * self.Y

    @property
    def total(self) -> float:
        """‖X̃‖_F²."""
        return float(self.diagonal.sum())

    @property
    def magnitude(self) -> float:
        """A bound on ‖X‖_F of the numbers that are multiplied: of sparse data, whose means are taken off afterwards."""
        return float((self.total + (16.0 * self.A.offset if self.A.offset else 0.0)) ** 0.5)

    @property
    def energy(self) -> Vector:
        """‖ỹ‖² of each target."""
        w = self.weights.values
        return np.asarray(np.sum(self.Y**2, axis=0) if w is None else w @ self.Y**2)

    @cached_property
    def A(self) -> Operator:
        """X̃."""
        return self.operator()

    @cached_property
    def plain(self) -> Operator:
        """X − 1μᵀ, without weights."""
        return self.A if self.weights.values is None else self.operator(weighted=False)

    @property
    def spent(self) -> int:
        """Passes over the data up to now."""
        made = {id(A): A for A in (vars(self).get("A"), vars(self).get("plain")) if A is not None}
        return self.passes + int(sum(A.passes for A in made.values()))

    def operator(self, *, weighted: bool = True) -> Operator:
        """X̃, or without weights X − 1μᵀ: never a copy of X."""
        source, xp = self.source, self.source.xp
        origin = self.mean if self.intercept and not source.sparse else None
        A: Operator = Data(source, origin=origin, unit=self.unit, dtype=xp.float64)
        root = self.weights.root if weighted else None
        root = None if root is None else like(source, root)
        A = A if root is None else RowWeighted(A, root)
        shift = self.low if origin is not None else self.mean + self.low
        if not self.intercept or not self._matters(shift):
            return A
        return Centred(A, shift, left=root, sums=self.weights.mass * shift if weighted else None)

    def _matters(self, shift: ArrayRidgeProblem) -> bool:
        """Whether a shift of the rows is more than rounding beside the spread of each column."""
        return bool(np.any(self.weights.mass * to_numpy(shift, float) ** 2 > EPS**2 * self.diagonal))

    @property
    def centre(self) -> Vector:
        """μ in the data's own units, rounded."""
        return to_numpy(self.mean, float) / self.unit

    def anchored(self, coef: ArrayRidgeProblem) -> tuple[Vector, Vector]:
        """Intercepts ȳ − μᵀβ for rows β of ``coef``, and the values at ``centre``, which is a rounded μ."""
        wide = np.longdouble
        beta, y_unit = coef.astype(wide), self.y_unit
        level = (self.level.astype(wide) + self.level_low) / y_unit - beta @ (to_numpy(self.low, float) / self.unit)
        return (level - beta @ self.centre).astype(np.float64), level.astype(np.float64)


def ridge_problem(inputs: RidgeInputs, *, intercept: bool, full: bool) -> RidgeProblem:
    """Take the moments in one pass: with ``full`` X̃ᵀX̃ and X̃ᵀỸ too."""
    source = inputs.source
    Y, y_unit = _in_range(inputs.Y)
    unit = 1.0
    joint, passes = _pass(source, Y, inputs.weights, intercept, full, unit)
    total = float(np.sum(_diagonal(joint.gram)))
    if not 1 / WIDEST <= total <= WIDEST:
        refuse_non_finite(source)
        peak = _peak(
            source, to_numpy(joint.mean[: source.shape[1]], float) if intercept and math.isfinite(total) else None
        )
        passes += 2
        if peak > 0.0:
            unit = 2.0 ** min(-math.frexp(peak)[1], 1000)
            joint, more = _pass(source, Y, inputs.weights, intercept, full, unit)
            passes += more
    return _problem(inputs, Y, joint, intercept, full, (unit, y_unit), passes)


def _problem(
    inputs: RidgeInputs,
    Y: Matrix,
    joint: Joint,
    intercept: bool,
    full: bool,
    units: tuple[float, float],
    passes: int,
) -> RidgeProblem:
    p, source = inputs.source.shape[1], inputs.source
    mean, low = like(source, joint.mean[:p]), like(source, joint.low[:p])
    joint = _without_dust(joint, Y, inputs.weights.values, p) if intercept else joint
    problem = RidgeProblem(
        source,
        inputs.weights,
        intercept,
        mean,
        low,
        joint.mean[p:],
        joint.low[p:],
        Y,
        np.maximum(_diagonal(joint.gram), 0.0),
        joint.gram if full else None,
        joint.cross if full and joint.cross.size else None,
        *units,
        passes,
    )
    if full and problem.cross is None:  # sparse data and tensors: the product is made by the operator
        cross = to_numpy(problem.A.T @ like(source, problem.targets), float)
        return replace(problem, cross=cross, passes=passes + 1)
    return problem


def _without_dust(joint: Joint, Y: Matrix, w: Vector | None, p: int) -> Joint:
    """The moments with nothing left of targets that are constant, whose mean may be off by a rounding."""
    rows = slice(None) if w is None else w > 0
    first = Y[rows][0]
    constant = np.all(Y[rows] == first, axis=0)
    if not constant.any():
        return joint
    mean, low, cross = joint.mean.copy(), joint.low.copy(), joint.cross.copy()
    mean[p:] = np.where(constant, first, mean[p:])
    low[p:] = np.where(constant, 0.0, low[p:])
    if cross.size:
        cross[:, constant] = 0.0
    return replace(joint, mean=mean, low=low, cross=cross)


def _diagonal(gram: Matrix) -> Vector:
    return np.asarray(gram if gram.ndim == 1 else np.diagonal(gram))


def _in_range(Y: Matrix) -> tuple[Matrix, float]:
    """Y times a power of two that brings its squares into range, and that power."""
    peak = float(np.max(np.abs(Y), initial=0.0))
    if peak == 0.0 or 1e-60 <= peak <= 1e60:
        return Y, 1.0
    unit = 2.0 ** min(-math.frexp(peak)[1], 1000)
    return Y * unit, unit


def _peak(source: Source, mean: Vector | None) -> float:
    """Largest |x|, or largest |x − mean| where squares underflow beside a representable mean."""

    def largest(block: Block) -> float:
        if source.sparse:
            return float(abs(block.values.data).max()) if block.values.nnz else 0.0
        x = to_numpy(block.values, float)
        return float(np.max(np.abs(x if mean is None else x - mean)))

    return source.reduce(largest, max)


def _pass(source: Source, Y: Matrix, weights: Weights, intercept: bool, full: bool, unit: float) -> tuple[Joint, int]:
    """Moments of all rows in one pass."""
    w = weights.values

    def statistic(block: Block) -> Joint:
        part = slice(block.start, block.stop)
        return block_joint(block.values, Y[part], None if w is None else w[part], intercept, unit)

    with np.errstate(over="ignore", invalid="ignore"):  # sums that overflow are looked for, and the pass repeated
        if full and is_numpy_namespace(source.xp) and not source.sparse:
            return source.reduce(statistic, Joint.merge if intercept else Joint.plus), 1
        return _by_kernels(source, Y, w, intercept, full, unit), 1


def _by_kernels(source: Source, Y: Matrix, w: Vector | None, intercept: bool, full: bool, unit: float) -> Joint:
    """The same without the cross moments, for sparse data and tensors, or the diagonal alone."""
    kernels, zeros = kernels_for(source), like(source, np.zeros((1, 1)))
    weights = None if w is None else like(source, w)

    def statistic(b: Block) -> Moments:
        part = None if weights is None else weights[b.start : b.stop]
        if intercept:
            return block_moments(kernels, b.values, part, zeros, full=full, unit=unit)
        return _uncentred(kernels, b.values, part, zeros, full, unit)

    m = source.reduce(statistic, Moments.merge)
    mean_y = np.zeros(Y.shape[1]) if not intercept else np.average(Y, axis=0, weights=w)
    low_y = np.zeros(Y.shape[1]) if not intercept else np.average(Y - mean_y, axis=0, weights=w)
    mean, low = np.concatenate([to_numpy(m.mean, float), mean_y]), np.concatenate([to_numpy(m.low, float), low_y])
    return Joint(m.weight, mean, low, to_numpy(m.scatter, float), np.zeros((0, 0)), np.zeros(0))


def _uncentred(
    kernels: Any, X: ArrayRidgeProblem, w: ArrayRidgeProblem | None, like: ArrayRidgeProblem, full: bool, unit: float
) -> Moments:
    """Σ w x xᵀ, or its diagonal, as moments about a mean of 0, which add up when merged."""
    if full:
        s, G = kernels.scatter(X, w, like, None, unit)
    elif hasattr(X, "indptr"):
        s, q = kernels.spread(X, w, like, None, unit)
        weight = X.shape[0] if w is None else float(w.sum())
        G = q + s * s / max(weight, EPS)
    else:
        s, G = kernels.spread(X, w, like, None, unit)
    weight = float(X.shape[0]) if w is None else float(w.sum())
    return Moments(weight, X.shape[0], 0.0 * s, 0.0 * s, G)
