r"""The problem behind a ridge regression: X̃ = diag(√w)(X − 1μᵀ), Ỹ = diag(√w)(Y − 1ȳᵀ), never formed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import is_numpy_namespace

from gramian.compute.devices import host as to_numpy
from gramian.compute.moments import Moments, block_moments
from gramian.estimators._inputs import refuse_non_finite
from gramian.estimators._ridge_inputs import RidgeInputs, Weights
from gramian.estimators._ridge_moments import Joint, block_joint
from gramian.estimators._scores import beside
from gramian.operators import Centred, Data, Operator, RowWeighted
from gramian.operators.data import kernels_for
from gramian.sources import Block, Source

__all__ = ["RidgeProblem", "host", "ridge_problem"]

Array = Any
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EPS = 2.0**-52
WIDEST = 1e100  # sums of squares within 1/WIDEST and WIDEST have squares that float64 can hold


def host(x: Any) -> Matrix:
    """X as a NumPy array of float64, wherever it was."""
    return np.asarray(to_numpy(x), dtype=np.float64)


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
    mean: Array
    low: Array
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
        root = None if root is None else beside(source, root)
        A = A if root is None else RowWeighted(A, root)
        shift = self.low if origin is not None else self.mean + self.low
        if not self.intercept or not self._matters(shift):
            return A
        return Centred(A, shift, left=root, sums=self.weights.mass * shift if weighted else None)

    def _matters(self, shift: Array) -> bool:
        """Whether a shift of the rows is more than rounding beside the spread of each column."""
        return bool(np.any(self.weights.mass * host(shift) ** 2 > EPS**2 * self.diagonal))

    @property
    def centre(self) -> Vector:
        """μ in the data's own units, rounded."""
        return host(self.mean) / self.unit

    def anchored(self, coef: Array) -> tuple[Vector, Vector]:
        """Intercepts ȳ − μᵀβ for rows β of ``coef``, and the values at ``centre``, which is a rounded μ."""
        wide = np.longdouble
        beta, y_unit = coef.astype(wide), self.y_unit
        level = (self.level.astype(wide) + self.level_low) / y_unit - beta @ (host(self.low) / self.unit)
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
        peak = _peak(source, host(joint.mean[: source.shape[1]]) if intercept and math.isfinite(total) else None)
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
    mean, low = beside(source, joint.mean[:p]), beside(source, joint.low[:p])
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
        cross = host(problem.A.T @ beside(source, problem.targets))
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
        x = host(block.values)
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
    kernels, like = kernels_for(source), beside(source, np.zeros((1, 1)))
    weights = None if w is None else beside(source, w)

    def statistic(b: Block) -> Moments:
        part = None if weights is None else weights[b.start : b.stop]
        if intercept:
            return block_moments(kernels, b.values, part, like, full=full, unit=unit)
        return _uncentred(kernels, b.values, part, like, full, unit)

    m = source.reduce(statistic, Moments.merge)
    mean_y = np.zeros(Y.shape[1]) if not intercept else np.average(Y, axis=0, weights=w)
    low_y = np.zeros(Y.shape[1]) if not intercept else np.average(Y - mean_y, axis=0, weights=w)
    mean, low = np.concatenate([host(m.mean), mean_y]), np.concatenate([host(m.low), low_y])
    return Joint(m.weight, mean, low, host(m.scatter), np.zeros((0, 0)), np.zeros(0))


def _uncentred(kernels: Any, X: Array, w: Array | None, like: Array, full: bool, unit: float) -> Moments:
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
