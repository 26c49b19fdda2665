r"""The problem behind a ridge regression: X̃ = diag(√w)(X − 1μᵀ) and Ỹ = diag(√w)(Y − 1ȳᵀ), X̃ never formed.

With ``scale`` the columns of X̃ are divided by their standard deviations s as well, and coefficients B are those of the
divided columns; w = B/s are those of the data. What the rounding of s changes: where s'² = s²(1+η), the solution w' of
the problem with s' fulfils (X̃ᵀX̃ + λS²)(w' − w) = −λS²ηw' in columns that are not divided, and so

.. math:: \|S(w'-w)\| \le \|\eta\circ Sw'\| \quad\text{for every } \lambda \ge 0,

also where coefficients are to be 0 or more. The products with 1/s add a few ε to η: rounding B/s is to measure the
gradient at coefficients ε away, and rounding (X̃ᵀR)/s moves it by ε(|G| + λ|B|), which is divided by at least λ.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import is_numpy_namespace

from gramian.compute.dense import centre_few
from gramian.compute.devices import like, to_numpy
from gramian.compute.moments import Moments, block_moments
from gramian.compute.threads import parallel_sum, quiet_blas
from gramian.inputs.checks import check_targets, check_weights, has_whole_weights
from gramian.inputs.opening import open_input, refuse_non_finite
from gramian.operators import Centred, ColumnScaled, Data, Operator, RowWeighted
from gramian.operators.data import kernels_for
from gramian.sources import Block, DenseSource, Source, memory_budget, open_source

Array = npt.NDArray[np.float64]

EPS = 2.0**-52
WIDEST = 1e100  # weights and ‖X̃‖² lie within 1/WIDEST and WIDEST
LARGEST_PENALTY = 1e250  # in the units of the problem: more is the same
SMALLEST_PENALTY = 1e-250  # in the units of the problem: less is the limit, the solution of least norm
TILE_ROWS = 1024  # rank-t updates DᵀD need a long inner dimension
BLAS_COLUMNS = 1000  # from here on BLAS shares one DᵀD between the cores as well as we could, in half the memory
SAMPLE = 1024  # rows averaged for the origin
FORMED = 2**20  # numbers of dense rows that are centred once and for all: 8 MiB
ONE_THREAD = 2**25  # multiplications of a Gram matrix that one thread does before others have begun
VANISHING = 1e-290  # sums of squares below this have lost digits


@dataclass(frozen=True, eq=False)
class RowWeights:
    """Weights of rows, and what they stand for.

    Attributes
    ----------
    values, root : ndarray of shape (n,) or None
        w and √w; None where every row counts once.
    counts : bool
        Whether all are whole numbers: then a weight of 2 is the row twice. Others are precisions.
    rows : int
        How many are positive.
    mass : float
        Σw.
    count : float
        N: Σw for counts, the number of rows with a positive weight for precisions.
    log_sum : float
        Σ ln w of precisions; 0 for counts.
    """

    values: Array | None
    root: Array | None
    counts: bool
    rows: int
    mass: float
    count: float
    log_sum: float


def row_weights(sample_weight: Any, n: int) -> RowWeights:
    """Return the weights of n rows, checked.

    Examples
    --------
    >>> from gramian.ridge.problem import row_weights
    >>> w = row_weights([2, 0, 1], 3)
    >>> w.counts, w.rows, w.count
    (True, 2, 3.0)
    """
    if sample_weight is None:
        return RowWeights(None, None, True, n, float(n), float(n), 0.0)
    w = check_weights(sample_weight, n)
    largest = int(np.argmax(w))
    if not 1 / WIDEST <= w[largest] <= WIDEST:
        raise ValueError(
            f"sample_weight: the largest is {w[largest]:g}, in row {largest + 1}, and squares times weights would "
            f"leave the range of float64. Multiply all weights and alpha by {1 / w[largest]:.0e}: coefficients "
            "stay the same."
        )
    rows, mass, counts = int(np.count_nonzero(w)), float(w.sum()), has_whole_weights(w)
    if np.all(w == 1.0):
        return RowWeights(None, None, True, rows, mass, mass, 0.0)
    logs = 0.0 if counts else float(np.sum(np.log(w[w > 0])))
    return RowWeights(w, np.sqrt(w), counts, rows, mass, mass if counts else float(rows), logs)


def open_regression(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Source, Array, RowWeights, bool]:
    """Return the source of X, the targets (n, t), the weights, and whether y was a vector; all checked together.

    Targets may be in a file or a Source, too.
    """
    source = open_input(estimator, X, reset=True)
    if isinstance(y, (str, os.PathLike)):
        if Path(y).suffix.lower() != ".npy":
            raise ValueError(f"y = {os.fspath(y)!r}: targets are read from .npy files only; else pass an array.")
        y = np.load(Path(y), mmap_mode="r")
    elif isinstance(y, Source):
        y = np.concatenate([np.array(block.values) for block in open_source(y).blocks()])
    Y, vector = check_targets(y, source.shape[0])
    if Y.shape[1] == 0:
        raise ValueError("y has no columns: 0 targets were given, at least 1 is needed.")
    return source, Y, row_weights(sample_weight, source.shape[0]), vector


class RidgeProblem:
    """Minimise ‖Ỹ − X̃B‖² + λ‖B‖², in units in which nothing overflows: data_unit·X and y_unit·Y, powers of two.

    Attributes
    ----------
    source, weights, intercept
        What was given; without an intercept μ and ȳ are 0.
    unit : float
        What columns of X̃ are those of the data times: ``data_unit``; 1 of columns that are scaled, which have no units.
    scale, divisor : ndarray of shape (p,) or None
        Standard deviations of the columns, 1 for constants, in the data's own units; and what columns of data_unit·X
        are divided by: infinity for constants that centring leaves nothing of. None where columns are not scaled.
    mean, low : array of shape (p,)
        μ = mean + low, of data_unit·X, on the data's device.
    centre : ndarray of shape (p,)
        μ in the data's own units, rounded.
    level, level_low : ndarray of shape (t,)
        ȳ = level + level_low, of y_unit·Y.
    raw, Y, targets : ndarray of shape (n, t)
        y_unit·Y; without its mean; and that times √w, which is Ỹ.
    energy : ndarray of shape (t,)
        ‖ỹ‖² of each target.
    diagonal : ndarray of shape (p,)
        Diagonal of X̃ᵀX̃, whose sum is ``total`` = ‖X̃‖_F².
    gram, cross : ndarray of shape (p, p), (p, t), or None
        X̃ᵀX̃ and X̃ᵀỸ, where the Gram matrix was asked for.
    A : Operator
        X̃: never a copy of X, unless that is small.
    rounding : float
        σ/σ₁ that the rounding of the data can make of nothing.
    cancelled : float
        What rounding leaves in a Gram matrix of sparse data from which large means are taken off afterwards.
    varies : ndarray of bool of shape (p,)
        Which columns of X̃ are more than the rounding of a constant's mean.
    """

    def __init__(
        self, source: Source, Y: Array, weights: RowWeights, *, intercept: bool, gram: bool, scale: bool = False
    ) -> None:
        self.source, self.weights, self.intercept = source, weights, intercept
        n, p = source.shape
        w = weights.values
        self.y_unit = _unit_for(float(np.max(np.abs(Y), initial=0.0)), 1e-60, 1e60)
        self.raw = Y if self.y_unit == 1.0 else Y * self.y_unit
        self.data_unit, self._reads = 1.0, 1
        moments = _sum_moments(source, self.raw, w, intercept, gram, self.data_unit)
        # sparse rows are multiplied as they are, and their means are taken off afterwards: these have to fit as well
        shift = float(np.max(np.abs(moments.mean[:p]), initial=0.0)) if source.sparse else 0.0
        if not (1 / WIDEST <= float(np.sum(moments.diagonal)) <= WIDEST and shift <= WIDEST**0.5):
            refuse_non_finite(source)
            peak = float(np.max(column_spreads(source, w, intercept and not source.sparse), initial=0.0))
            self._reads += 2
            if peak > 0.0:
                self.data_unit = _unit_for(peak)
                moments = _sum_moments(source, self.raw, w, intercept, gram, self.data_unit)
                self._reads += 1

        self._about = moments.about
        self.mean, self.low = like(source, moments.mean[:p]), like(source, moments.low[:p])
        self.centre = to_numpy(self.mean, float) / self.data_unit
        self.level, self.level_low, cross = moments.mean[p:], moments.low[p:], moments.cross
        self.Y = self.raw
        if intercept:  # nothing is left of constant targets, whose mean may be off by a rounding
            seen = self.raw if w is None else self.raw[w > 0]
            constant = np.all(seen == seen[0], axis=0)
            self.level = np.where(constant, seen[0], self.level)
            self.level_low = np.where(constant, 0.0, self.level_low)
            cross = cross if cross is None else np.where(constant, 0.0, cross)
            self.Y = (self.raw - self.level) - self.level_low
        self.targets = self.Y if weights.root is None else weights.root[:, None] * self.Y
        self.energy = np.asarray(np.sum(self.Y**2, axis=0) if w is None else w @ self.Y**2)

        self.diagonal, self.gram, self.cross = np.maximum(moments.diagonal, 0.0), moments.gram if gram else None, cross
        dust = (4.0 if source.sparse else 4e-6) * EPS * to_numpy(self.mean, float)
        self.varies = self.diagonal > weights.mass * dust**2
        self.unit, self._doubt = self.data_unit, np.zeros(1)
        self.scale: Array | None = None
        self.divisor: Array | None = None
        if scale:
            self._divide_columns(moments)
        self.total = float(self.diagonal.sum())
        self.A = self._operator(weights.root)
        if gram and self.cross is None:  # sparse data and tensors: the product is made by the operator
            self.cross = to_numpy(self.A.T @ like(source, self.targets), float)
        single = source.dtype == source.xp.float32
        self.rounding = float(4 * 2.0**-23 * min(n, p) ** 0.5 if single else EPS * max(n, p))
        self.cancelled = float(4 * EPS * self.A.offset)

    def _divide_columns(self, moments: JointMoments) -> None:
        """Divide by the standard deviations √(Σw(x−μ)²/Σw · N/(N−1)), about the mean with or without an intercept.

        A constant is told by comparing its entries where the rounding of a mean could pass for a deviation, and where
        squares may have vanished.
        """
        source, weights, unit = self.source, self.weights, self.data_unit
        (n, p), squares = source.shape, self.diagonal
        if not self.intercept:
            moments = _sum_moments(source, self.raw, weights.values, True, False, unit)
            squares = np.maximum(moments.diagonal, 0.0)
            self._reads += 1
        mean = moments.mean[:p]
        varies = squares > weights.mass * (4e-6 * EPS * mean) ** 2
        if source.sparse or np.any((squares < VANISHING) & (np.abs(mean) < 1e-120)):
            varies = column_spreads(source, weights.values, True) > 0.0
            self._reads += 1
        lost = np.flatnonzero(varies & (squares < VANISHING))
        if len(lost):
            name = f" ({source.feature_names[lost[0]]!r})" if source.feature_names else ""
            raise ValueError(
                f"scale=True needs the standard deviation of column {lost[0] + 1}{name}, counted from 1, whose "
                "deviations are so small next to the largest column that their squares vanish in float64. Multiply it "
                "by a constant, which scaling takes out again."
            )
        safe = np.where(varies, squares, 1.0)
        ratio = weights.count / weights.mass / max(weights.count - 1.0, EPS)
        self.unit, self.scale = 1.0, np.where(varies, np.sqrt(safe * ratio) / unit, 1.0)
        self.divisor = np.where(varies, np.sqrt(safe * ratio), np.inf if self.intercept else unit)
        # sums about the mean of 1,024 rows lose a factor 1 + n/1024 at most; those of sparse columns are about a
        # rounded mean, whose error is taken off their squares
        factor = np.full(p, 1.0 + n / SAMPLE)
        if source.sparse:
            factor = factor + (n * EPS) ** 2 * weights.mass * mean**2 / safe
        self._doubt = 4 * EPS * (8 + n**0.5) * factor
        f = 1.0 / self.divisor
        with np.errstate(over="ignore"):
            self.diagonal = self.diagonal * f**2
        if not self.diagonal.sum() <= WIDEST:
            j = int(np.argmax(self.diagonal))
            raise ValueError(
                f"Without an intercept, column {j + 1}, counted from 1, is so large next to its standard deviation "
                "that its squares leave the range of float64. Use fit_intercept=True, or scale=False."
            )
        if self.intercept:
            self.varies = varies
        self.gram = None if self.gram is None else self.gram * (f[:, None] * f)
        self.cross = None if self.cross is None else self.cross * f[:, None]

    def scaling_errors(self, B: Array) -> Array:
        """Bound what the rounding of standard deviations, and of divisions by them, can make of columns of B."""
        return np.asarray(np.linalg.norm(self._doubt[:, None] * B, axis=0))

    @cached_property
    def longer(self) -> float:
        """How much longer than its column of X̃ are the numbers that are multiplied: of sparse data, centred later."""
        if not self.A.offset:
            return 1.0
        shift = to_numpy(self.mean if self.source.sparse else self.low, float)
        shift = (shift if self.divisor is None else shift / self.divisor)[self.varies]
        ratio = np.max(self.weights.mass * shift**2 / self.diagonal[self.varies], initial=0.0)
        return 1.0 + 4 * float(np.sqrt(ratio))

    @cached_property
    def unweighted(self) -> Operator:
        """X − 1μᵀ, scaled where asked for, without weights."""
        return self.A if self.weights.root is None else self._operator(None)

    @cached_property
    def _formed(self) -> Source:
        """The rows less their mean, of dense data that are few: every product would form them again."""
        X = self.source.values
        mean, D = self._about or (None, np.empty(X.shape))
        self._about = None
        if mean is not None and np.array_equal(mean, self.mean):
            return DenseSource(D)
        np.copyto(D, X, casting="unsafe")
        if self.data_unit != 1.0:
            D *= self.data_unit
        if self.intercept:
            D -= self.mean
        return DenseSource(D)

    @property
    def passes(self) -> int:
        """Passes over the data up to now."""
        other = vars(self).get("unweighted", self.A)
        return self._reads + self.A.passes + (0 if other is self.A else other.passes)

    def _operator(self, root: Array | None) -> Operator:
        """diag(root)(X − 1μᵀ)diag(1/divisor); what a rounded μ leaves over is subtracted where it is not rounding."""
        source = self.source
        origin = self.mean if self.intercept and not source.sparse else None
        A: Operator = Data(source, origin=origin, unit=self.data_unit, dtype=source.xp.float64)
        if type(source) is DenseSource and source.values.size <= FORMED:
            A = Data(self._formed)
        there = None if root is None else like(source, root)
        A = A if there is None else RowWeighted(A, there)
        shift, mass = self.low if origin is not None else self.mean + self.low, self.weights.mass
        if self.divisor is not None:
            divisor = like(source, self.divisor)
            A, shift = ColumnScaled(A, divisor), shift / divisor
        if not self.intercept or not np.any(mass * to_numpy(shift, float) ** 2 > EPS**2 * self.diagonal):
            return A
        weighted = root is not None or self.weights.root is None
        return Centred(A, shift, left=there, sums=mass * shift if weighted else None)

    def for_targets(self, columns: npt.NDArray[np.intp]) -> RidgeProblem:
        """Return the problem of some targets, with the same X̃."""
        part = copy.copy(self)
        part.raw, part.Y, part.targets = self.raw[:, columns], self.Y[:, columns], self.targets[:, columns]
        part.level, part.level_low, part.energy = self.level[columns], self.level_low[columns], self.energy[columns]
        part.cross = None if self.cross is None else self.cross[:, columns]
        return part

    def scale_penalties(self, alpha: Array) -> tuple[Array, Array]:
        """Return λ in the units of the problem, and what its coefficients are multiplied by to be those of the data."""
        if self.unit == 1.0 and np.all((alpha >= SMALLEST_PENALTY) & (alpha <= LARGEST_PENALTY)):
            return alpha, np.full(len(alpha), 1.0 / self.y_unit)
        with np.errstate(over="ignore", under="ignore"):
            shifts = alpha * self.unit * self.unit
            lam = np.where(shifts < SMALLEST_PENALTY, 0.0, np.minimum(shifts, LARGEST_PENALTY))
            factor = np.full(len(alpha), self.unit / self.y_unit)
            over = shifts > LARGEST_PENALTY  # then B = X̃ᵀỸ/λ to the last digit
            factor[over] = lam[over] / alpha[over] / self.unit / self.y_unit
        return lam, factor

    def own_penalties(self, lam: Array) -> Array:
        """λ of an automatic grid in the units of the data, or an error where float64 cannot hold it."""
        with np.errstate(over="ignore", under="ignore"):
            own = lam / self.unit / self.unit
        if not np.all(np.isfinite(own) & (own > 0)):
            raise ValueError(
                "alphas='auto' would lie beyond the range of float64, as the squares of X do. Multiply X by a constant "
                "that brings its columns near 1."
            )
        return np.asarray(own)

    def intercepts(self, coef: Array) -> tuple[Array, Array]:
        """Return ȳ − μᵀβ for rows β of ``coef``, and the predictions at ``centre``, which is a rounded μ."""
        wide = np.longdouble
        beta = coef.astype(wide)
        level = (self.level.astype(wide) + self.level_low) / self.y_unit - beta @ (
            to_numpy(self.low, float) / self.data_unit
        )
        return (level - beta @ self.centre).astype(np.float64), level.astype(np.float64)


def _unit_for(peak: float, low: float = np.inf, high: float = -np.inf) -> float:
    """A power of two that brings numbers up to ``peak`` to about 1; 1 where they lie between low and high, or are 0."""
    return 1.0 if peak == 0.0 or low <= peak <= high else 2.0 ** min(-math.frexp(peak)[1], 1000)


def column_spreads(source: Source, w: Array | None, intercept: bool) -> Array:
    """Half of the largest less the least entry of each column, or the largest |x| without an intercept: in one pass."""

    def extremes(block: Block) -> Array:
        rows = slice(None) if w is None else np.flatnonzero(w[block.start : block.stop])
        X = block.values[rows] if source.sparse else to_numpy(block.values, float)[rows]
        if not X.shape[0]:
            return np.array([[np.inf], [-np.inf]]) * np.ones(X.shape[1])
        ends = [X.min(axis=0), X.max(axis=0)]
        return np.stack([end.toarray().ravel() if source.sparse else end for end in ends]).astype(np.float64)

    low, high = source.reduce(extremes, lambda a, b: np.stack([np.minimum(a[0], b[0]), np.maximum(a[1], b[1])]))
    return np.asarray(0.5 * high - 0.5 * low if intercept else np.maximum(high, -low))


@dataclass(frozen=True, eq=False)
class JointMoments:
    """Mean + low of the rows (x, y) together, X̃ᵀX̃ or its diagonal, and X̃ᵀỸ where it was summed."""

    weight: float
    mean: Array
    low: Array
    gram: Array
    cross: Array | None
    about: tuple[Array, Array] | None = None  # c, and x − c of all rows, of data that are small

    @property
    def diagonal(self) -> Array:
        """The diagonal of X̃ᵀX̃."""
        return self.gram if self.gram.ndim == 1 else np.diagonal(self.gram)

    def merge(self, other: JointMoments) -> JointMoments:
        """Return the moments of both sets of rows; without centring all means are 0, and sums add up."""
        if self.weight == 0.0 or other.weight == 0.0:
            return other if self.weight == 0.0 else self
        assert self.cross is not None
        assert other.cross is not None
        total, p = self.weight + other.weight, len(self.gram)
        delta = (other.mean - self.mean) + (other.low - self.low)
        step = delta * (other.weight / total) + self.low
        mean = self.mean + step
        factor, dx, dy = self.weight * other.weight / total, delta[:p], delta[p:]
        gram = self.gram + other.gram + factor * (dx[:, None] * dx[None, :])
        cross = self.cross + other.cross + factor * (dx[:, None] * dy[None, :])
        return JointMoments(total, mean, (self.mean - mean) + step, gram, cross)


def _sum_moments(source: Source, Y: Array, w: Array | None, centre: bool, gram: bool, unit: float) -> JointMoments:
    """Moments of all rows in one pass; sums that overflow are the caller's to look for."""
    with np.errstate(over="ignore", invalid="ignore"):
        if w is None and type(source) is DenseSource and source.values.size <= FORMED:
            X = source.values
            if not gram or X.size * X.shape[1] <= ONE_THREAD:
                with quiet_blas():  # the same bits however many threads there are
                    return _sum_few(X, Y, centre, gram, unit)
        if gram and is_numpy_namespace(source.xp) and not source.sparse:

            def joint(b: Block) -> JointMoments:
                part = slice(b.start, b.stop)
                return _sum_block(b.values, Y[part], None if w is None else w[part], centre, unit)

            return source.reduce(joint, JointMoments.merge, result_bytes=8 * source.shape[1] ** 2)

        # sparse data, tensors, or the diagonal alone: by the kernels of the source, without the product with Y
        kernels, zeros = kernels_for(source), like(source, np.zeros((1, 1)))
        there = None if w is None else like(source, w)

        def of_rows(b: Block) -> Moments:
            v = None if there is None else there[b.start : b.stop]
            if centre:
                return block_moments(kernels, b.values, v, zeros, full=gram, unit=unit)
            weight = float(b.values.shape[0]) if v is None else float(v.sum())
            s, G = (kernels.scatter if gram else kernels.spread)(b.values, v, zeros, None, unit)
            if source.sparse and not gram:  # whose spread is about the mean
                G = G + s * s / max(weight, EPS)
            return Moments(weight, b.values.shape[0], 0.0 * s, 0.0 * s, G)

        m = source.reduce(of_rows, Moments.merge, result_bytes=8 * source.shape[1] ** 2 if gram else 0)
    mean_y, low_y = np.zeros(Y.shape[1]), np.zeros(Y.shape[1])
    if centre:
        mean_y = np.average(Y, axis=0, weights=w)
        low_y = np.average(Y - mean_y, axis=0, weights=w)
    mean, low = (np.concatenate([to_numpy(x, float), y]) for x, y in ((m.mean, mean_y), (m.low, low_y)))
    return JointMoments(m.weight, mean, low, to_numpy(m.scatter, float), None)


def _sum_few(X: Array, Y: Array, centre: bool, gram: bool, unit: float) -> JointMoments:
    """Moments of data that are small and have no weights, of which d = unit·x − c is formed once, and kept."""
    (n, p), t = X.shape, Y.shape[1]
    ones = np.full(n, 1.0 / n)
    if centre:
        c, D = centre_few(X, unit)
        c = np.concatenate([c, Y[0] + ones @ (Y - Y[0])])
        Dy = Y - c[p:]
    else:
        c, D, Dy = np.zeros(p + t), X.astype(np.float64, order="K") * unit, Y
    square = D.T @ D if gram else np.einsum("ij,ij->j", D, D)  # of itself: syrk, half the work
    cross = D.T @ Dy
    if not centre:
        return JointMoments(float(n), c, c, square, cross, (c[:p], D))
    shift = np.concatenate([ones @ D, ones @ Dy])
    mean, s = c + shift, n * shift[:p]
    square = square - (s[:, None] * shift[:p] if gram else s * shift[:p])
    cross = cross - s[:, None] * shift[p:]
    return JointMoments(float(n), mean, (c - mean) + shift, square, cross, (c[:p], D))


def _sum_block(X: Array, Y: Array, w: Array | None, centre: bool, unit: float) -> JointMoments:
    r"""Moments of one block of rows: d = (unit·x, y) − c with c the mean of some rows, or c = 0.

    A tile is displaced and weighted in a thread's own buffer, then multiplied by itself and by its targets; wide data
    are left to the threads of BLAS.
    """
    (n, p), t = X.shape, Y.shape[1]
    weight = float(n) if w is None else float(w.sum())
    c = np.zeros(p + t)
    if weight == 0.0:
        return JointMoments(0.0, c, c, np.zeros((p, p)), np.zeros((p, t)))
    if centre:
        keep = np.arange(n) if w is None else np.flatnonzero(w)
        keep = keep[:: max(1, len(keep) // SAMPLE)]
        some, first = X[keep].astype(np.float64) * unit, keep[0]
        # about one row, so that a constant is its own mean to the last bit
        c = np.concatenate([some[0] + np.mean(some - some[0], axis=0), Y[first] + np.mean(Y[keep] - Y[first], axis=0)])
    root = None if w is None else np.sqrt(w)
    rows = min(n, TILE_ROWS if p < BLAS_COLUMNS else max(TILE_ROWS, memory_budget() // 8 // (8 * p)))
    order = "C" if abs(X.strides[0]) >= abs(X.strides[1]) else "F"

    def sum_tiles(starts: Sequence[int]) -> tuple[Array, ...]:
        D: Array = np.empty((rows, p), order=order)  # type: ignore[call-overload]
        s, G, H = np.zeros(p + t), np.zeros((p, p)), np.zeros((p, t))
        with np.errstate(over="ignore", invalid="ignore"):
            for i in starts:
                part = slice(i, min(i + rows, n))
                Dx, Dy = D[: part.stop - i], Y[part]
                np.copyto(Dx, X[part], casting="unsafe")
                if unit != 1.0:
                    Dx *= unit
                if centre:
                    Dx -= c[:p]
                    Dy = Dy - c[p:]
                r = np.ones(len(Dx)) if root is None else root[part]
                if root is not None:
                    Dx *= r[:, None]
                    Dy = Dy * r[:, None]
                s[:p] += r @ Dx
                s[p:] += r @ Dy
                G += Dx.T @ Dx  # numpy sees the transpose of the same array and calls syrk: half the work
                H += Dx.T @ Dy
        return s, G, H

    def add(a: tuple[Array, ...], b: tuple[Array, ...]) -> tuple[Array, ...]:
        return tuple(x + y for x, y in zip(a, b, strict=True))

    s, gram, cross = parallel_sum(sum_tiles, range(0, n, rows), add, serial=p >= BLAS_COLUMNS)
    if not centre:
        return JointMoments(weight, c, c, gram, cross)
    shift = s / weight
    mean = c + shift
    gram, cross = gram - s[:p, None] * shift[:p], cross - s[:p, None] * shift[p:]
    return JointMoments(weight, mean, (c - mean) + shift, gram, cross)
