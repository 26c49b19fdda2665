r"""The linear problem behind a PCA: the operator A = diag(√w)(X − 1μᵀ)diag(1/s) and the facts about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_numpy_namespace

from gramian.compute.devices import refuse_beyond_device
from gramian.compute.moments import Moments, block_moments
from gramian.inputs.opening import refuse_non_finite
from gramian.operators import Centred, Data, Known, Operator, RowWeighted, Scaled
from gramian.operators.data import kernels_for
from gramian.sources import Block, Source

__all__ = ["Problem", "centred_data", "pca_problem"]

Array = Any

EPS = 2.0**-52
WIDEST = 1e100  # eigenvalues within 1/WIDEST and WIDEST have squares that float64 can hold; so for float32
WIDEST_NARROW = 1e15
LARGE = 2**28  # bytes on a card that are asked for before they are taken


@dataclass(frozen=True, eq=False)
class Problem:
    """An operator and what was learned about it on the way.

    Attributes
    ----------
    A : Operator
        diag(√w)(X − 1μᵀ)diag(1/s), in units of 1/unit.
    moments : Moments
        Weight, mean and scatter, in the same units.
    scale : array of shape (p,) or None
        s, in the data's own units.
    total : float
        ‖A‖_F², in the same units.
    unit : float
        A is this many times what it should be.
    data_unit : float
        Power of two that brought extreme data into range.
    passes : int
        Passes spent on the statistics.
    """

    A: Operator
    moments: Moments
    scale: Array | None
    total: float
    unit: float
    data_unit: float
    passes: int

    @property
    def mean(self) -> Array:
        """The mean in the data's own units."""
        return (self.moments.mean + self.moments.low) / self.data_unit


def pca_problem(
    source: Source, w: Array | None, *, scale: bool, full: bool, exact: bool, tol: float | None = None
) -> Problem:
    """Take the statistics in one pass and build the operator.

    Parameters
    ----------
    source : Source
        X.
    w : array of shape (n,) or None
        Weights.
    scale : bool
        Whether columns are divided by their standard deviations.
    full : bool
        Whether to sum the whole scatter matrix in the same pass.
    exact : bool
        Whether products are made in float64 whatever the data.
    tol : float, optional
        Residual the solver is to reach.
    """
    if full:
        _refuse_beyond(source)
    narrow = not exact and source.dtype == source.xp.float32
    moments, unit, passes = _moments(source, w, full, WIDEST_NARROW if narrow else WIDEST)
    diagonal = _without_rounding_dust(source.xp, moments, source.sparse)
    s = _standard_deviations(source.xp, diagonal, moments.weight) if scale else None
    total = float(source.xp.sum(diagonal if s is None else diagonal / s**2))
    near = 0.0 if exact else _nearness(source, tol)
    A = _operator(source, w, moments, s, unit, near)
    if full:
        G = moments.scatter if s is None else moments.scatter / (s[:, None] * s[None, :])
        A = Known(A, G)
    # scaled columns have no units, so there is nothing to undo
    return Problem(A, moments, None if s is None else s / unit, total, unit if s is None else 1.0, unit, passes)


def _refuse_beyond(source: Source) -> None:
    """Say before the pass that a card cannot hold the matrix it is to sum."""
    p = source.shape[1]
    if getattr(source.device, "type", "cpu") != "cpu" and 32 * p * p >= LARGE:
        what = f"The {p} × {p} scatter matrix with its eigenvectors"
        remedy = "Ask for a few components with svd_solver='krylov', which never forms it, or use device='cpu'."
        refuse_beyond_device(32 * p * p, source.device, what, remedy)


def _moments(source: Source, w: Array | None, full: bool, widest: float) -> tuple[Moments, float, int]:
    """One pass of moments; for data out of range a second one finds their size and a third repeats the first."""
    moments = _one_pass(source, w, full, 1.0)
    total = float(source.xp.sum(moments.diagonal))
    if 1 / widest <= total <= widest:
        return moments, 1.0, 1
    refuse_non_finite(source)
    peak = _peak(source, None if not math.isfinite(total) else moments.mean)
    if peak == 0.0:
        return moments, 1.0, 3
    unit = 2.0 ** min(-math.frexp(peak)[1], 1000)
    return _one_pass(source, w, full, unit), unit, 4


def _one_pass(source: Source, w: Array | None, full: bool, unit: float) -> Moments:
    kernels, like = kernels_for(source), _like(source)

    def statistic(b: Block) -> Moments:
        part = None if w is None else w[b.start : b.stop]
        return block_moments(kernels, b.values, part, like, full=full, unit=unit)

    with np.errstate(over="ignore", invalid="ignore"):  # sums that overflow are looked for, and the pass repeated
        return source.reduce(statistic, Moments.merge)


def _like(source: Source) -> Array:
    """A float64 array where the source lives: the statistics are float64 whatever the data."""
    where = {} if is_numpy_namespace(source.xp) else {"device": source.device}
    return source.xp.zeros((1, 1), dtype=source.xp.float64, **where)


def _peak(source: Source, mean: Array | None) -> float:
    """Largest |x|, or largest |x − mean| where squares underflow beside a representable mean."""
    xp = source.xp

    def largest(block: Any) -> float:
        x = block.values
        if source.sparse:
            return float(abs(x.data).max()) if x.nnz else 0.0
        x = xp.astype(x, xp.float64)
        return float(xp.max(xp.abs(x if mean is None else x - mean[None, :])))

    return source.reduce(largest, max)


def _without_rounding_dust(xp: Any, moments: Moments, sparse: bool) -> Array:
    """Squared deviations by column; those no larger than the rounding of a constant's mean are 0."""
    ulps = 4.0 if sparse else 4e-6  # dense constants leave nothing at all; stored zeros and a rounded mean do
    dust = moments.weight * (ulps * EPS * moments.mean) ** 2
    return xp.where(moments.diagonal > dust, moments.diagonal, 0.0 * moments.diagonal)


def _standard_deviations(xp: Any, diagonal: Array, weight: float) -> Array:
    """Standard deviation of each column; 1 for a constant column, which stays 0."""
    return xp.where(diagonal > 0, (diagonal / max(weight - 1.0, EPS)) ** 0.5, 0.0 * diagonal + 1.0)


def _operator(source: Source, w: Array | None, moments: Moments, s: Array | None, unit: float, near: float) -> Operator:
    """Centre before multiplying, tile by tile, unless the means are ``near`` enough to 0 to be corrected for after."""
    mean, low, weight = moments.mean, moments.low, moments.weight
    far = weight * float(mean @ mean) > near * float(source.xp.sum(moments.diagonal))
    use_origin = (far or near == 0.0) and not source.sparse
    dtype = source.xp.float64 if near == 0.0 else None
    data = Data(source, origin=mean if use_origin else None, unit=unit, dtype=dtype)
    rounded = data.origin  # to the dtype of the products
    origin = 0.0 * mean if rounded is None else source.xp.astype(rounded[0, :], mean.dtype)
    root = None if w is None else w**0.5
    A: Operator = data if root is None else RowWeighted(data, root)
    A = A if s is None else Scaled(A, s)
    shift = (mean - origin) + low
    shift = shift if s is None else shift / s
    return Centred(A, shift, left=root, sums=weight * shift)


def _nearness(source: Source, tol: float | None) -> float:
    """Return how many times the total variance ω‖μ‖² may be while ε·min(n, p)·ratio is a tenth of the tolerance."""
    narrow = source.dtype == source.xp.float32
    eps, default = (2.0**-23, 1e-4) if narrow else (EPS, 1e-6)
    return 0.1 * (tol or default) / (4 * eps * min(source.shape))


def centred_data(source: Source, mean: Array, scale: Array | None, dtype: Any) -> Operator:
    """(X − 1μᵀ)diag(1/s) for new rows X."""
    xp = source.xp
    if source.sparse:
        A: Operator = Data(source, dtype=dtype)
        A = A if scale is None else Scaled(A, scale)
        return Centred(A, mean if scale is None else mean / scale)
    data = Data(source, origin=mean, dtype=dtype)
    A = data if scale is None else Scaled(data, scale)
    rounded = xp.astype(data.asarray(mean), mean.dtype)
    shift = mean - rounded  # what rounding to the dtype took from the mean
    shift = shift if scale is None else shift / scale
    return A if float(xp.max(xp.abs(shift))) == 0.0 else Centred(A, shift)
