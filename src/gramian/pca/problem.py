r"""The linear problem behind a PCA, A = diag(√w)(X − 1μᵀ)diag(1/s), what a fit finds, and products with new rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import like, refuse_beyond_device, to_numpy
from gramian.compute.moments import Moments, block_moments
from gramian.inputs.opening import refuse_non_finite
from gramian.operators import Centred, ColumnScaled, Data, Known, Operator, RowWeighted
from gramian.operators.compose import centred_data
from gramian.operators.data import kernels_for
from gramian.sources import Block, Source
from gramian.spectral.rayleigh import count_roundings

Array = Any
Vector = npt.NDArray[np.float64]

EPS = 2.0**-52
WIDEST = 1e100  # eigenvalues within 1/WIDEST and WIDEST have squares that float64 can hold; so for float32
WIDEST_NARROW = 1e15
LARGE = 2**28  # bytes that are asked for before they are taken
VANISHING = 1e-290  # sums of squares below this have lost digits
NEAR_CONSTANT = 2.0**-40  # deviations of a sparse column, relative to its mean, that may be rounding alone


@dataclass(frozen=True, eq=False)
class CentredProblem:
    """The operator of a PCA, and what one pass of statistics told about it.

    Attributes
    ----------
    operator : Operator
        A = diag(√w)(X − 1μᵀ)diag(1/s), in units of 1/unit, or a factor of fewer rows with the same AᵀA.
    weight, rows : float, int
        Σw, and how many rows have a positive weight.
    mean, scale : array of shape (p,), the second or None
        μ and s, in the data's own units.
    total : float
        ‖A‖_F², in the units of the operator.
    unit : float
        A is this many times what it should be.
    passes : int
        Passes spent on the statistics.
    """

    operator: Operator
    weight: float
    rows: int
    mean: Array
    scale: Array | None
    total: float
    unit: float = 1.0
    passes: int = 0


@dataclass(frozen=True, eq=False)
class PCAFit:
    """What a fit found, in the data's own units: what :class:`gramian.PCA` keeps under scikit-learn's names.

    ``components`` has k orthonormal rows, ``weight`` is Σw, ``rank`` how many components have variance, and
    ``missing_method`` how missing cells are filled.
    """

    components: Array
    variances: Vector
    ratios: Vector
    singular_values: Vector
    mean: Array
    scale: Array | None
    noise: float
    weight: float
    rank: int
    certificate: Any
    missing_method: str = "likelihood"

    @classmethod
    def of(cls, pca: Any) -> PCAFit:
        """Return what a fitted PCA keeps, as NumPy arrays in float64."""
        return cls(
            components=to_numpy(pca.components_, float),
            variances=to_numpy(pca.explained_variance_, float),
            ratios=to_numpy(pca.explained_variance_ratio_, float),
            singular_values=to_numpy(pca.singular_values_, float),
            mean=to_numpy(pca.mean_, float),
            scale=None if pca.scale_ is None else to_numpy(pca.scale_, float),
            noise=float(pca.noise_variance_),
            weight=float(pca._weight),
            rank=int(pca.rank_),
            certificate=pca.certificate_,
            missing_method=pca._missing_method,
        )

    @property
    def column_variances(self) -> Vector:
        """Variances of the columns as decomposed, Σ λ v², where all components are there."""
        return np.asarray(self.variances @ self.components**2)


def build_problem(
    source: Source, w: Array | None, *, scale: bool, gram: bool, exact: bool, tol: float | None = None
) -> CentredProblem:
    """Return the problem of rows X with frequencies w, after one pass of statistics.

    Parameters
    ----------
    source : Source
        X.
    w : array of shape (n,) or None
        Frequencies of the rows.
    scale : bool
        Whether columns are divided by their standard deviations.
    gram : bool
        Whether to sum the whole scatter matrix in the same pass.
    exact : bool
        Whether products are made in float64 whatever the data.
    tol : float, optional
        Residual that the solver is to reach.
    """
    xp, (n, p) = source.xp, source.shape
    if gram and 40 * p * p >= LARGE:
        what = f"The {p} × {p} scatter matrix with its eigenvectors"
        remedy = ("Ask for a few components with ", ("svd_solver", "krylov"), ", which never forms it.")
        refuse_beyond_device(40 * p * p, source.device, what, remedy)
    narrow = source.dtype == xp.float32
    widest = WIDEST_NARROW if narrow and not exact else WIDEST
    moments, unit, passes = column_moments(source, w, gram), 1.0, 1
    total = float(xp.sum(moments.diagonal))
    if not 1 / widest <= total <= widest:  # constant, or out of range: find the size of the data, and begin again
        refuse_non_finite(source)
        peak, passes = _largest_entry(source, moments.mean if math.isfinite(total) else None), 3
        if peak > 0.0:
            unit, passes = 2.0 ** min(-math.frexp(peak)[1], 1000), 4
            moments = column_moments(source, w, gram, unit)
    weight, mean, low, squares = moments.weight, moments.mean, moments.low, moments.diagonal
    double = exact or not 2.0**-64 <= unit <= 2.0**64  # a unit beyond that may leave the range of float32

    # What rounding leaves of a dense constant is less than an ulp of its mean in every row. Of a sparse column whose
    # deviations are as small as the rounding of its mean, they are taken from its first value, which is exact.
    varies = squares > (0.0 if source.sparse else weight * (4e-6 * EPS * mean) ** 2)
    if source.sparse:
        suspect = np.flatnonzero((mean != 0) & (squares <= weight * (NEAR_CONSTANT * mean) ** 2))
        if len(suspect):
            rows = slice(None) if w is None else np.flatnonzero(w)
            D = source.values[:, suspect][rows].toarray().astype(np.float64) * unit
            part, first = np.ones(len(D)) if w is None else w[rows], D[0].copy()
            D -= first
            drift = part @ D / weight
            mean, low, squares = mean.copy(), low.copy(), squares.copy()  # the diagonal is read-only
            mean[suspect] = first + drift
            low[suspect] = (first - mean[suspect]) + drift
            squares[suspect], varies[suspect] = part @ (D - drift) ** 2, D.any(axis=0)
    spread = xp.where(varies, squares, xp.zeros_like(squares))
    s = divisor = None
    if scale:
        refuse_vanishing(source, w, spread, mean)
        s = divisor = xp.where(varies, (spread / max(weight - 1.0, EPS)) ** 0.5, xp.ones_like(spread))
    total = float(xp.sum(spread if s is None else spread / s**2))
    if (scale or source.sparse) and not bool(xp.all(varies)):
        # a constant may be as large as it likes: divided by infinity nothing of it is left to round
        divisor = xp.where(varies, xp.ones_like(spread) if s is None else s, math.inf + 0.0 * spread)

    # Means so near 0 that the rounding they cause, gε·min(n, p)·ω‖μ‖²/total, is half the tolerance are corrected for
    # after the product; others are subtracted before it, tile by tile.
    eps, default = (2.0**-23, 1e-4) if narrow and not double else (EPS, 1e-6)
    near = 0.5 * (tol or default) / (count_roundings(n, p) * eps * min(n, p))
    far = exact or weight * float(mean @ mean) > near * float(xp.sum(squares))
    origin = mean if far and not source.sparse else None
    data = Data(source, origin=origin, unit=unit, dtype=xp.float64 if double else None)
    rounded = 0.0 * mean if data.origin is None else xp.astype(data.origin[0, :], mean.dtype)
    shift = (mean - rounded) + low
    shift = shift if divisor is None else shift / divisor
    root = None if w is None else w**0.5
    A: Operator = data if root is None else RowWeighted(data, root)
    A = Centred(A if divisor is None else ColumnScaled(A, divisor), shift, left=root, sums=weight * shift)
    if gram:
        A = Known(A, moments.scatter if divisor is None else moments.scatter / divisor[:, None] / divisor[None, :])
    mean, s_own = (mean + low) / unit, None if s is None else s / unit
    # scaled columns have no units, so there is nothing to undo
    return CentredProblem(A, weight, moments.rows, mean, s_own, total, unit if s is None else 1.0, passes)


def column_moments(source: Source, w: Array | None = None, gram: bool = False, unit: float = 1.0) -> Moments:
    """Means and scatter of the rows times ``unit``, in one pass; of columns alone unless ``gram``."""
    kernels, double = kernels_for(source), like(source, np.zeros((1, 1)))

    def statistic(b: Block) -> Moments:
        part = None if w is None else w[b.start : b.stop]
        return block_moments(kernels, b.values, part, double, full=gram, unit=unit)

    with np.errstate(over="ignore", invalid="ignore"):  # sums that overflow are looked for, and the pass repeated
        return source.reduce(statistic, Moments.merge, result_bytes=8 * source.shape[1] ** 2 if gram else 0)


def _largest_entry(source: Source, mean: Array | None) -> float:
    """Largest |x|, or largest |x − mean| where squares underflow although the mean can be represented."""
    xp = source.xp

    def largest(block: Block) -> float:
        x = block.values
        if source.sparse:
            return float(abs(x.data).max()) if x.nnz else 0.0
        x = xp.astype(x, xp.float64)
        return float(xp.max(xp.abs(x if mean is None else x - mean[None, :])))

    return source.reduce(largest, max)


def _vary(source: Source, w: Array | None, columns: Any) -> Any:
    """Whether some columns hold two different values in rows with a weight: compared, not computed."""
    xp = source.xp

    def ends(block: Block) -> Any:
        x = block.values[:, columns]
        x = x if w is None else x[to_numpy(w)[block.start : block.stop] > 0]
        if x.shape[0] == 0:
            return np.array([[np.inf], [np.inf]]) * np.ones(len(columns))  # no row: least and (negated) largest
        if source.sparse:
            return np.stack([x.min(axis=0).toarray().ravel(), -x.max(axis=0).toarray().ravel()])
        return np.stack([to_numpy(xp.min(x, axis=0), float), -to_numpy(xp.max(x, axis=0), float)])

    least, largest = source.reduce(ends, np.minimum) if len(columns) else np.zeros((2, 0))
    return least != -largest


def refuse_vanishing(source: Source, w: Array | None, spread: Array, mean: Array) -> None:
    """Refuse columns to be scaled whose deviations are there, but whose squares are not in float64."""
    if not bool(source.xp.any(spread < VANISHING)):
        return
    # variation of a column of mean μ is at least εμ, so that its square can vanish only where μ is tiny
    suspect = np.flatnonzero((to_numpy(spread) < VANISHING) & (np.abs(to_numpy(mean)) < 1e-120))
    lost = suspect[_vary(source, w, suspect)] if len(suspect) else suspect
    if len(lost):
        name = f" ({source.feature_names[lost[0]]!r})" if source.feature_names else ""
        raise ValueError(
            f"scale=True needs the standard deviation of column {lost[0] + 1}{name}, counted from 1, whose deviations "
            "are so small next to the largest column that their squares vanish in float64. Multiply it by a constant, "
            "which scaling takes out again."
        )


def scores(source: Source, components: Array, mean: Array, scale: Array | None) -> Array:
    """(x − μ)/s times the components, in float32 for float32 data and float64 for all else."""
    xp = source.xp
    dtype = xp.float32 if source.dtype == xp.float32 else xp.float64
    # eq: pca-encoder
    Z = centred_data(source, like(source, mean), like(source, scale), dtype) @ like(source, components).T
    if not bool(xp.all(xp.isfinite(Z))):
        refuse_non_finite(source)
    return Z


def scores_and_errors(source: Source, components: Array, mean: Array, scale: Array | None) -> tuple[Array, Array]:
    """Scores z of the rows, and ‖(x − μ)/s − Vz‖² of each, in float64."""
    refuse_non_finite(source)
    xp = source.xp
    V = xp.astype(like(source, components), xp.float64).T
    A = centred_data(source, like(source, mean), like(source, scale), xp.float64)
    if source.sparse:
        # ‖(x − μ)/s‖² = Σ_stored ((x − μ)² − μ²)/s² + Σ μ²/s²
        X, mean, Z = source.values.astype(np.float64), to_numpy(mean), A @ V
        s2 = np.ones(X.shape[1]) if scale is None else to_numpy(scale) ** 2
        X.data = X.data * (X.data - 2 * mean[X.indices]) / s2[X.indices]
        lengths = np.asarray(X.sum(axis=1)).ravel() + float(np.sum(mean**2 / s2))
        return Z, np.maximum(lengths - np.sum(Z**2, axis=1), 0.0)
    parts, errors = [], []
    for _, _, D in A.rows():
        parts.append(D @ V)
        # eq: pca-reconstruction, pca-pythagoras
        errors.append(xp.sum((D - parts[-1] @ V.T) ** 2, axis=1))
    return xp.concat(parts, axis=0), xp.concat(errors, axis=0)
