r"""Every λ from one decomposition and one more pass: leverages, residuals and exact leave-one-out errors, in tiles.

With Z = (X − 1μᵀ)V, of which a tile at a time is made, the leverage of one copy of row i is
:math:`h_i(\lambda)=1/\Sigma w+\sum_j z_{ij}^2/(\sigma_j^2+\lambda)` and its prediction
:math:`\bar y+\sum_j z_{ij}\sigma_jc_j/(\sigma_j^2+\lambda)`: two products of matrices for all λ at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from gramian.compute.threads import n_threads, parallel
from gramian.estimators._ridge_device import ALONE, left_out_there
from gramian.estimators._ridge_factor import Decomposition
from gramian.estimators._ridge_problem import RidgeProblem, host
from gramian.estimators._scores import beside
from gramian.linear.path import Filter, RidgePath

__all__ = ["LeftOut", "automatic_grid", "in_own_units", "leave_out", "ridge_path"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

TILE = 2**18  # numbers a thread works on at a time: 2 MiB
GRID = 50
NEARLY = 0.01  # of the degrees of freedom: what the ends of an automatic grid leave out
SQUARES = ("loo", "gcv", "noise_variance")  # of a path: what has the units of y²
PATH_CELLS = 2**25  # coefficients of a whole path that are kept: 256 MiB


@dataclass(frozen=True, eq=False)
class LeftOut:
    """What leaving each row out in turn gave, for every λ and target.

    Attributes
    ----------
    loo : ndarray of shape (L, t)
        Mean over the N observations of the squared error, weighted.
    rss : ndarray of shape (L, t)
        Weighted residual sum of squares of the fit to all rows.
    errors : ndarray of shape (n, L, t) or None
        y − ŷ of each row left out, without weights; NaN where the weight is 0.
    """

    loo: Matrix
    rss: Matrix
    errors: Matrix | None


def leave_out(problem: RidgeProblem, found: Decomposition, lam: Vector, *, keep: bool = False) -> LeftOut:
    """Leave every row out in turn, for every λ: one pass over the data, or none where U is at hand."""
    if not found.dual and problem.source.device is not None:
        return LeftOut(*left_out_there(problem, found, lam, keep))
    n, t = problem.Y.shape
    tiles = _Dual(problem, found, lam) if found.dual else _Primal(problem, found, lam)
    errors = np.empty((n, len(lam), t)) if keep else None
    loo, rss = np.zeros((len(lam), t)), np.zeros((len(lam), t))
    for start, Z in tiles.blocks():
        for a, b in parallel(partial(tiles.sums, Z, start, errors), tiles.parts(Z)):
            loo += a
            rss += b
    return LeftOut(loo / problem.weights.count, rss, errors)


class _Primal:
    """Rows z = (x − μ)V: h = 1/Σw + z²·1/(σ²+λ), r = y − zᵀσc/(σ²+λ)."""

    def __init__(self, problem: RidgeProblem, found: Decomposition, lam: Vector) -> None:
        filter_ = found.filter(problem)
        self.problem, self.found, self.lam = problem, found, lam
        self.inverse, self.factors = filter_.inverse(lam), filter_.factors(lam)
        w = problem.weights
        self.w = np.ones(len(problem.Y)) if w.values is None else w.values
        self.counts = w.counts
        self.share = 1.0 / w.mass if problem.intercept else 0.0

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        """Z, a block at a time."""
        for start, _, Z in self.problem.plain.rows(beside(self.problem.source, self.found.basis)):
            yield start, host(Z)

    def parts(self, Z: Matrix) -> list[tuple[slice, slice]]:
        """Tiles of rows, and of targets so few that their coordinates stay in cache."""
        (n, r), L, t = Z.shape, len(self.lam), self.problem.Y.shape[1]
        width = max(1, min(t, TILE // (2 * r * L + 1)))
        rows = max(64, TILE // (2 * r + L * (width + 2)))
        pieces = -(-n // rows)
        rows = -(-n // (-(-pieces // n_threads()) * n_threads()))  # as many for each thread
        return [
            (slice(i, min(i + rows, n)), slice(j, min(j + width, t)))
            for j in range(0, t, width)
            for i in range(0, n, rows)
        ]

    def sums(
        self, Z: Matrix, start: int, errors: Matrix | None, share: Sequence[tuple[slice, slice]]
    ) -> tuple[Matrix, Matrix]:
        """Weighted sums of squares of the errors and of the residuals, over some tiles."""
        shape = (len(self.lam), self.problem.Y.shape[1])
        loo, rss, last, C = np.zeros(shape), np.zeros(shape), slice(0, 0), np.zeros((0, 0))
        for rows, targets in share:
            if targets != last:
                C, last = self.coordinates(targets), targets
            here = slice(start + rows.start, start + rows.stop)
            w, R = self.w[here], self.residuals(Z[rows], here, targets, C)
            rss[:, targets] += _weighted(w, R)
            E = self.divided(R, Z[rows], w)
            if errors is not None:
                errors[here, :, targets] = np.where(w[:, None, None] > 0, E, np.nan)
            E[w == 0.0] = 0.0
            loo[:, targets] += _weighted(w, E)
        return loo, rss

    def coordinates(self, targets: slice) -> Matrix:
        """What a row of the basis is multiplied by, of shape (r, L·targets)."""
        C = self.factors[:, :, None] * self.found.projections[:, None, targets]
        return np.asarray(C.reshape(len(C), -1))

    def residuals(self, Z: Matrix, here: slice, targets: slice, C: Matrix) -> Matrix:
        """y − ŷ, of shape (rows, L, targets)."""
        F = (Z @ C).reshape(len(Z), len(self.lam), -1)
        return np.asarray(np.subtract(self.problem.Y[here, None, targets], F, out=F))

    def divided(self, R: Matrix, Z: Matrix, w: Vector) -> Matrix:
        """R over 1 − h of one copy, or of the whole row; infinite where a row determines its own fit."""
        H = (Z * Z) @ self.inverse
        H += self.share
        if not self.counts:
            H *= w[:, None]
        left = np.subtract(1.0, H, out=H)
        return _divided(R, left, left <= ALONE)


class _Dual(_Primal):
    """Rows u of U, which spans all that centring left: √w r = λ uᵀc/(σ²+λ); 1 − h = λ u²·1/(σ²+λ) cancels nothing."""

    def __init__(self, problem: RidgeProblem, found: Decomposition, lam: Vector) -> None:
        super().__init__(problem, found, lam)
        self.inverse = self.inverse * lam
        self.factors = self.inverse

    def blocks(self) -> Iterator[tuple[int, Matrix]]:
        """U, whole: it is in memory."""
        yield 0, self.found.basis

    def residuals(self, Z: Matrix, here: slice, targets: slice, C: Matrix) -> Matrix:
        """y − ŷ, of shape (rows, L, targets)."""
        root = np.sqrt(np.where(self.w[here] > 0, self.w[here], 1.0))
        return np.asarray(((Z @ C) / root[:, None]).reshape(len(Z), len(self.lam), -1))

    def divided(self, R: Matrix, Z: Matrix, w: Vector) -> Matrix:
        """R over 1 − h = ((w − 1) + λ u²·1/(σ²+λ))/w of one copy, or λ u²·1/(σ²+λ) of the whole row.

        With one copy both have the factor λ, however small: alone is only a row of which U has nothing.
        """
        squares = Z * Z
        left, alone = squares @ self.inverse, np.sum(squares, axis=1) <= ALONE
        if self.counts:
            safe = np.where(w > 0, w, 1.0)
            left, alone = (left + (safe - 1.0)[:, None]) / safe[:, None], alone & (safe <= 1.0)
        return _divided(R, left, alone[:, None] | (left == 0.0))


def _weighted(w: Vector, E: Matrix) -> Matrix:
    """Σ w e² over the rows of a tile."""
    return np.asarray((w @ (E.reshape(len(w), -1) ** 2)).reshape(E.shape[1:]))


def _divided(R: Matrix, left: Matrix, alone: npt.NDArray[np.bool_]) -> Matrix:
    """Residuals over 1 − h, which are overwritten; infinite where a row is alone."""
    R /= np.where(alone, 1.0, left)[:, :, None]
    R[alone] = np.inf
    return R


def automatic_grid(squares: Vector) -> Vector:
    """50 values of λ in equal ratios, from nearly all degrees of freedom to nearly none.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._ridge_path import automatic_grid
    >>> grid = automatic_grid(np.array([100.0, 1.0]))
    >>> len(grid), [round(float((np.array([100, 1]) / (np.array([100, 1]) + a)).sum()), 3) for a in grid[[0, -1]]]
    (50, [1.98, 0.02])
    """
    top = float(np.max(squares, initial=0.0))
    real = squares[squares > 1e-12 * top]
    if not len(real):
        return np.geomspace(1e-2, 1e2, GRID)

    def excess(x: float, goal: float) -> float:
        return float(np.sum(real / (real + np.exp(x)))) - goal

    low, high = np.log(real.min()) - 8.0, np.log(top) + np.log(len(real)) + 8.0
    ends = [float(brentq(excess, low, high, args=(f * len(real),))) for f in (1 - NEARLY, NEARLY)]
    return np.asarray(np.exp(np.linspace(ends[0], ends[1], GRID)))


def ridge_path(problem: RidgeProblem, found: Decomposition, lam: Vector, alphas: Vector, left: LeftOut) -> RidgePath:
    """The whole path; ``lam`` are ``alphas`` in the units of the problem, in which squares of y are left for now."""
    filter_ = found.filter(problem)
    filter_ = filter_ if found.dual else with_measured_rest(filter_, lam, left.rss)  # U of the dual spans all of Ỹ
    coef = _coefficients(problem, found, filter_, lam) * (problem.unit / problem.y_unit)
    return RidgePath(
        alphas=alphas,
        singular_values=np.sqrt(found.squares) / problem.unit,
        filter_factors=filter_.factors(lam) * problem.unit,
        dof=filter_.dof(lam),
        coef=coef,
        intercept=np.stack([problem.anchored(c)[0] for c in coef]) if len(coef) else np.zeros(coef.shape[:2]),
        loo=left.loo,
        gcv=filter_.gcv(lam),
        log_marginal_likelihood=filter_.log_likelihood(lam),
        noise_variance=filter_.noise(lam),
    )


def in_own_units(path: RidgePath, problem: RidgeProblem) -> RidgePath:
    """The path with what has the units of y² in those of the data; it may overflow there."""
    if problem.y_unit == 1.0:
        return path
    shift = (problem.weights.count - float(problem.intercept)) * np.log(problem.y_unit)
    with np.errstate(over="ignore", under="ignore"):
        squares = {name: getattr(path, name) / problem.y_unit / problem.y_unit for name in SQUARES}
    return replace(path, log_marginal_likelihood=path.log_marginal_likelihood + shift, **squares)


def with_measured_rest(filter_: Filter, lam: Vector, rss: Matrix) -> Filter:
    """The filter with what no λ can fit taken from the residuals of the least λ: no digits cancel there."""
    i = int(np.argmin(lam))
    left = filter_.left(lam[i : i + 1])[:, 0] ** 2
    return replace(filter_, rest=np.maximum(rss[i] - left @ filter_.projections**2, 0.0))


def _coefficients(problem: RidgeProblem, found: Decomposition, filter_: Filter, lam: Vector) -> Matrix:
    """B for every λ, of shape (L, t, p); empty where that would be too many numbers."""
    L, t, p = len(lam), problem.Y.shape[1], problem.source.shape[1]
    if L * t * p > PATH_CELLS:
        return np.zeros((0, t, p))
    S = filter_.dual(lam) if found.dual else filter_.solution(lam)
    flat = found.basis @ S.reshape(len(S), L * t)
    flat = host(problem.A.T @ beside(problem.source, flat)) if found.dual else flat
    return np.ascontiguousarray(flat.T).reshape(L, t, p)
