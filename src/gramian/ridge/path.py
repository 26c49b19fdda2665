r"""Every λ from one decomposition X̃ = UΣVᵀ: coefficients, degrees of freedom, and the errors of rows left out.

Forming X̃ᵀX̃ or X̃X̃ᵀ squares the condition number: what is asked of them is :math:`\sigma^2+\lambda`, so that is
harmless while :math:`(\sigma_1^2+\lambda)/(\sigma_p^2+\lambda)` is moderate, and only then. Otherwise one QR
factorisation of [X̃ Ỹ], block by block, gives the same without forming either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from gramian.compute import dense as cpu
from gramian.compute.devices import dense_loops, like, refuse_beyond_device, to_numpy
from gramian.compute.factor import eigh, svd
from gramian.compute.threads import parallel
from gramian.linear.path import Filter, RidgePath
from gramian.ridge.problem import RidgeProblem

Array = npt.NDArray[np.float64]

EPS = 2.0**-52
SAFE = 1e7  # of a condition number: the Gram matrix then keeps nine digits before, and sixteen after, a correction
CONTRACTION = 0.01  # of an error by one correction with a Gram matrix that rounding has changed
CANCELLED_MEANS = "large means cancel in it"
COLUMN_BYTES = 2**24  # of a dense block of columns
ALONE = 2.0**-44  # of 1 − h: what rounding can make of a row that determines its own fit
TILE = 2**18  # numbers a thread works on at a time: 2 MiB
DEVICE_TILE = 2**24  # numbers of the predictions of a part of a block on a device: 128 MiB
KNOWN = 0.01  # of a mean squared leave-one-out error: what rounding may make of it
GRID = 50
NEARLY = 0.01  # of the degrees of freedom: what the ends of an automatic grid leave out
BEYOND = 1e-8  # times the least σ², or 1 over it times the largest: λ from which on no criterion changes
SQUARES = ("loo", "gcv", "noise_variance")  # of a path: what has the units of y²
ELSEWHERE = ("Use ", ("solver", "cg"), " or ", ("device", "cpu"), ".")  # for what a device cannot hold
PATH_CELLS = 2**25  # coefficients of a whole path that are kept: 256 MiB


@dataclass(frozen=True, eq=False)
class Decomposition:
    """σ² with V or U of a problem's X̃, and c = UᵀỸ.

    Attributes
    ----------
    squares : ndarray of shape (r,)
        σ².
    basis : ndarray of shape (p, r) or (n, r)
        V, or U where ``dual``.
    projections : ndarray of shape (r, t)
        c.
    rest : ndarray of shape (t,)
        ‖ỹ − UUᵀỹ‖²; exactly 0 where U spans all that centring left.
    dual : bool
        Whether the basis is U.
    label : str
        How it was made, for the certificate.
    squared : bool
        Whether σ² are eigenvalues of a Gram matrix, good to ε σ₁² only.
    why : str
        Why no Gram matrix was decomposed, where one would have been; for the certificate.
    """

    problem: RidgeProblem
    squares: Array
    basis: Array
    projections: Array
    rest: Array
    dual: bool
    label: str
    squared: bool
    why: str = ""

    @cached_property
    def filter(self) -> Filter:
        """What every λ shares."""
        w, intercept = self.problem.weights, self.problem.intercept
        return Filter(self.squares, self.projections, self.rest, w.count, w.mass, intercept, w.log_sum)

    @cached_property
    def rank(self) -> int:
        """How many σ stand out of rounding: that of the data, or that of their squares."""
        problem = self.problem
        level, lost = problem.rounding, 4 * EPS * problem.A.offset**0.5
        if self.squared:
            level, lost = max(level, level**0.5), problem.cancelled**0.5
        return int(np.count_nonzero(np.sqrt(self.squares) > max(level * self.top**0.5, lost)))

    @property
    def spans_targets(self) -> bool:
        """Whether U spans all that centring left of Ỹ, so that c alone knows the residuals."""
        most = self.problem.weights.rows - int(self.problem.intercept)
        return self.dual or (not self.squared and len(self.squares) >= most)

    @property
    def top(self) -> float:
        """σ₁²."""
        return float(np.max(self.squares, initial=0.0))

    @property
    def smallest(self) -> float:
        """The least σ² among all p directions of the coefficients, or those of Ỹ; 0 where there are more.

        Ỹ has no part along the direction that centring empties, nor in rows without weight. Sparse data are centred
        after they are multiplied: what cancels there is taken off.
        """
        problem = self.problem
        rows = problem.weights.rows - int(problem.intercept)
        needed = min(rows, problem.source.shape[1]) if self.dual else problem.source.shape[1]
        if len(self.squares) < max(needed, 1):
            return 0.0
        least = float(np.min(self.squares))
        if self.squared:
            return max(least - problem.cancelled, 0.0)
        dust = 4 * EPS * (problem.A.offset**0.5 + (len(self.squares) * self.top) ** 0.5)
        return float(max(least**0.5 - dust, 0.0) ** 2)

    def find_danger(self, lam: float) -> str:
        """Why σ² + λ loses its digits where σ² came from a Gram matrix; empty where it does not."""
        low = self.smallest + lam
        if not self.squared or (low > 0.0 and (self.top + lam) <= SAFE * low):
            return CANCELLED_MEANS if self.squared and self.problem.cancelled > CONTRACTION * low else ""
        return f"its condition number at λ = {lam / self.problem.unit / self.problem.unit:.3g} is above {SAFE:.0e}"

    def right_vectors(self, rank: int) -> Array:
        """The first columns of V: as they are, or X̃ᵀU/σ."""
        if not self.dual:
            return self.basis[:, :rank]
        V = self.problem.A.T @ like(self.problem.source, self.basis[:, :rank])
        return np.asarray(to_numpy(V, float) / np.sqrt(self.squares[:rank]))


def decompose(problem: RidgeProblem, solver: str, least: float, *, dual: bool = False) -> Decomposition:
    """Decompose the Gram matrix where that is safe for λ ≥ ``least``, else the data; ``dual``: with U, not V."""
    (n, p), why = problem.source.shape, ""
    if solver in ("cholesky", "dual"):
        found = _decompose_gram(problem) if solver == "cholesky" else _decompose_cogram(problem)
        why = found.find_danger(least)
        if not why:
            return found
    if p >= n - int(problem.intercept):
        return replace(decompose_wide(problem, dual=dual), why=why)
    # V, Σ and c from the R of [X̃ Ỹ] = QR, made in one pass over the rows
    R = augmented_triangle(problem)
    U, sigma, Vt = svd(R[:p, :p])
    rest = np.sum(R[p:, p:] ** 2, axis=0)
    return Decomposition(problem, sigma**2, Vt.T, U.T @ R[:p, p:], rest, False, "SVD of the R of X̃ = QR", False, why)


def _decompose_gram(problem: RidgeProblem) -> Decomposition:
    """V and σ² from the p×p matrix X̃ᵀX̃; c = VᵀX̃ᵀỸ/σ."""
    assert problem.gram is not None
    assert problem.cross is not None
    squares, V = eigh(problem.gram)
    squares, V = np.maximum(squares[::-1], 0.0), np.ascontiguousarray(V[:, ::-1])
    sigma, h = np.sqrt(squares)[:, None], V.T @ problem.cross
    c = np.divide(h, sigma, out=np.zeros_like(h), where=sigma > 0)
    rest = np.maximum(problem.energy - np.sum(c**2, axis=0), 0.0)
    return Decomposition(problem, squares, V, c, rest, False, "eigenvectors of X̃ᵀX̃", True)


def _decompose_cogram(problem: RidgeProblem) -> Decomposition:
    """U and σ² from the n×n matrix X̃X̃ᵀ; the direction √w, which centring has emptied, is left out."""
    n, Q = problem.source.shape[0], constant_directions(problem)
    what, remedy = f"The {n} × {n} matrix X̃X̃ᵀ", ("Use ", ("solver", "cg"), ", which never forms it.")
    refuse_beyond_device(24.0 * n * n, None, f"{what} with its eigenvectors", remedy)
    refuse_beyond_device(16.0 * n * n, problem.A.device, what, ELSEWHERE)
    K = to_numpy(problem.A.cogram(), float)
    if Q.shape[1]:
        lift = 2.0 * float(np.trace(K)) or 1.0  # above all others, so that no other eigenvector mixes with Q
        K = K + (lift * Q) @ Q.T
    squares, U = eigh(K, overwrite=True)
    kept = slice(-1 - Q.shape[1], None, -1)
    squares, U = np.maximum(squares[kept], 0.0), np.ascontiguousarray(U[:, kept])
    c = U.T @ problem.targets
    return Decomposition(problem, squares, U, c, np.zeros(c.shape[1]), True, "eigenvectors of X̃X̃ᵀ", True)


def constant_directions(problem: RidgeProblem) -> Array:
    """Directions with which every column of X̃ and Ỹ is orthogonal: √w/‖√w‖ of an intercept, and rows of weight 0."""
    n, root = problem.source.shape[0], problem.weights.root
    root = np.ones(n) if root is None else root
    absent = np.flatnonzero(root == 0.0)
    Q = np.zeros((n, len(absent) + int(problem.intercept)))
    Q[absent, np.arange(len(absent))] = 1.0
    if problem.intercept:
        Q[:, -1] = root / np.linalg.norm(root)
    return Q


def augmented_triangle(problem: RidgeProblem, scale: Array | None = None) -> Array:
    """R of [X̃ diag(1/scale), Ỹ] = QR with at least p rows."""
    A, Y, p = problem.A, problem.targets, problem.source.shape[1]
    kernels, R = dense_loops(A.xp), None
    factor = A.asarray(np.ones(p) if scale is None else 1.0 / scale)
    for start, stop, block in A.rows():
        rows = A.xp.concat([block * factor[None, :], A.asarray(Y[start:stop])], axis=1)
        part = kernels.triangle(rows)
        R = part if R is None else kernels.triangle(A.xp.concat([R, part], axis=0))
    out = to_numpy(R, float)
    missing = p - len(out)
    return out if missing <= 0 else np.concatenate([out, np.zeros((missing, out.shape[1]))])


def decompose_wide(problem: RidgeProblem, *, dual: bool = False) -> Decomposition:
    """Σ with V, or all n columns of U, of X̃ itself where p ≥ n, or where n is small.

    Of a dense copy; or U from the R of X̃ᵀ = QR, a block of columns at a time: sparse data are never dense at once.
    Directions that are empty get a singular value above all others, so that no other direction mixes with them.
    """
    (n, p), Q = problem.source.shape, constant_directions(problem)
    k, lift = Q.shape[1], 2.0 * problem.total**0.5 or 1.0
    if problem.source.sparse:
        R, X, root = lift * Q.T, problem.source.values.tocsc(), problem.weights.root
        mean = to_numpy(problem.mean, float) + to_numpy(problem.low, float)
        for some in _slices(p, max(1, COLUMN_BYTES // (8 * n))):
            block = problem.data_unit * X[:, some].toarray().astype(np.float64).T
            block = block - mean[some, None] if problem.intercept else block
            block = block if problem.divisor is None else block / problem.divisor[some, None]
            R = cpu.triangle(np.concatenate([R, block if root is None else block * root]))
        _, sigma, Ut = svd(R, overwrite=True)
        U, sigma, V, label = Ut[k:].T, sigma[k:], None, "SVD of the R of X̃ᵀ = QR"
    else:
        remedy = ("Use ", ("solver", "cg"), ", or a larger ", ("alpha", None), ".")
        refuse_beyond_device(24.0 * n * p, None, f"The SVD of a dense {n} × {p} matrix", remedy)
        refuse_beyond_device(16.0 * n * p, problem.A.device, f"A dense {n} × {p} matrix in float64", ELSEWHERE)
        X = to_numpy(problem.A.to_dense(), float)
        # to_dense may be the caller's own array: only a copy is ours to write over
        X = np.concatenate([lift * Q, X], axis=1) if k else X
        U, sigma, Vt = svd(X, full=dual and p < n, overwrite=k > 0)
        sigma = np.concatenate([sigma, np.zeros(U.shape[1] - len(sigma))])
        U, sigma, V, label = U[:, k:], sigma[k:], Vt[k : len(sigma), k:].T, "SVD of X̃"
    c = U.T @ problem.targets
    dual = dual or V is None
    return Decomposition(problem, sigma**2, U if dual or V is None else V, c, np.zeros(c.shape[1]), dual, label, False)


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
    lost : ndarray of shape (L, t)
        Bound on what rounding can make of ``loo``, from the least 1 − h: see :func:`leave_out`.
    """

    loo: Array
    rss: Array
    errors: Array | None
    lost: Array

    def is_known(self, energy: Array, count: float) -> npt.NDArray[np.bool_]:
        """Which means of squared errors are proved to a hundredth, or to 1e-10 of that of the targets themselves."""
        with np.errstate(invalid="ignore"):
            enough = KNOWN * np.maximum(self.loo, 1e-8 * energy / count)
            return np.asarray((self.lost <= enough) & np.isfinite(self.loo))


def leave_out(found: Decomposition, lam: Array, *, keep: bool = False) -> LeftOut:
    """Leave every row out in turn, for every λ: one pass over the data, or none where U is at hand.

    With rows z = (x − μ)V the leverage is h = 1/Σw + z²·1/(σ²+λ) and the residual r = y − zᵀσc/(σ²+λ). Rows u of U,
    which spans all that centring left, cancel nothing: √w r = λuᵀc/(σ²+λ) and 1 − h = λu²·1/(σ²+λ). A row is left out
    with all its weight. Tiles are shared by threads, or worked on where the data are.

    **Rounding.** A decomposition is that of a matrix within ε(8+√n)σ₁ of X̃, or nε σ₁² of its Gram matrix, and so h and
    the fitted values are within η and η‖ỹ‖ of the exact ones, with η = 4ε(8+√n)σ₁/√(σ_p²+λ), or 4nεσ₁²/(σ_p²+λ). Then
    ‖δe‖ ≤ η(‖ỹ‖ + ‖e‖)/min(1 − h). Of U, d = (1 − h)/λ has relative errors of η itself, and r/λ is off by at most
    η√(qd), q = ỹᵀ(X̃X̃ᵀ+λI)⁻¹ỹ: ‖δe‖ ≤ η(‖e‖ + √(nq/min d)). Either way ‖e‖² moves by at most 2‖e‖‖δe‖ + ‖δe‖².
    """
    problem, (n, t), L = found.problem, found.problem.Y.shape, len(lam)
    source, weights, dual = problem.source, problem.weights, found.dual
    here = dual or source.device is None
    inverse = found.filter.inverse(lam) * (lam if dual else 1.0)
    factors = inverse if dual else found.filter.factors(lam)
    every = np.ones(n) if weights.values is None else weights.values
    share = 1.0 / weights.mass if problem.intercept else 0.0
    errors = np.empty((n, L, t)) if keep else None
    loo, rss, least = np.zeros((L, t)), np.zeros((L, t)), np.ones(L)  # Σwe², Σwr², and of 1 − h
    xp = np if here else source.xp

    def place(x: Array) -> Any:
        return x if here else like(source, x)

    def visit(block: Any, start: int, parts: list[Any], tiles: Sequence[tuple[int, slice, slice]]) -> None:
        """Put Σwe², Σwr² and the least 1 − h of each tile where it belongs among the ``parts``."""
        last, C, there = None, None, place(inverse)
        for number, rows, targets in tiles:
            if targets != last:
                C = factors[:, :, None] * found.projections[:, None, targets]
                C, last = place(C.reshape(len(C), -1)), targets
            mine, Z = slice(start + rows.start, start + rows.stop), block[rows, :]
            w = place(every[mine])
            R, left = (Z @ C).reshape(len(w), L, -1), (Z * Z) @ there
            if dual:
                R /= np.sqrt(np.where(w > 0, w, 1.0))[:, None, None]
                alone = (np.sum(Z * Z, axis=1) <= ALONE)[:, None] | (left == 0.0)  # both have the factor λ
            else:
                R = place(problem.Y[mine, None, targets]) - R
                left = 1.0 - (left + share) * w[:, None]
                alone = left <= ALONE
            squares, lowest = _weighted_squares(w, R), to_numpy(xp.min(left + 1.0 * (w == 0.0)[:, None], axis=0), float)
            left[alone] = 1.0
            R /= left[:, :, None]
            R[alone] = np.inf
            if errors is not None:
                errors[mine, :, targets] = np.where(every[mine, None, None] > 0, to_numpy(R, float), np.nan)
            R[w == 0.0] = 0.0
            parts[number] = _weighted_squares(w, R), squares, lowest

    blocks = [(0, n, found.basis)] if dual else problem.unweighted.rows(like(source, found.basis))
    for start, _, Z in blocks:
        # there so few rows that all their predictions fit
        rows = max(1, DEVICE_TILE // max(1, L * t))
        tiles = _tiles(len(Z), Z.shape[1], L, t) if here else [(some, slice(0, t)) for some in _slices(len(Z), rows)]
        parts: list[Any] = [None] * len(tiles)
        parallel(partial(visit, Z, start, parts), [(k, *tile) for k, tile in enumerate(tiles)], serial=not here)
        for (_, targets), part in zip(tiles, parts, strict=True):  # in their order, however many threads there are
            loo[:, targets] += part[0]
            rss[:, targets] += part[1]
            np.minimum(least, part[2], out=least)
    low, top = (float(np.min(found.squares, initial=np.inf)) if dual else found.smallest) + lam, found.top
    eta = 4 * EPS * (n * top / low if found.squared else (8 + n**0.5) * np.sqrt(top / low))[:, None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        e, y, safe = np.sqrt(loo), np.sqrt(problem.energy), np.maximum(least, 0.0)[:, None]
        q = found.filter.inverse(lam).T @ found.projections**2
        moved = eta * (e + np.sqrt(n * q * lam[:, None] / safe) if dual else (y + e) / safe)
        lost = np.where(y > 0, (2 * e + moved) * moved, 0.0) / weights.count
    return LeftOut(loo / weights.count, rss, errors, np.where(np.isnan(lost), np.inf, lost))


def _weighted_squares(w: Any, E: Any) -> Array:
    """Σ w e² over the rows of a tile, of shape (L, targets)."""
    return to_numpy((w @ (E.reshape(len(w), -1) ** 2)).reshape(E.shape[1:]), float)


def _tiles(n: int, r: int, L: int, t: int) -> list[tuple[slice, slice]]:
    """Tiles of rows, an even number of about the same size, and of targets so few that they stay in cache."""
    if n * (2 * r + L * (t + 2)) <= TILE // 4:  # less work than it takes to hand it to a thread
        return [(slice(0, n), slice(0, t))]
    width = max(1, min(t, TILE // (2 * r * L + 1)))
    pieces = -(-n // max(64, TILE // (2 * r + L * (width + 2))))
    rows = -(-n // (2 * -(-pieces // 2)))
    return [(some, targets) for targets in _slices(t, width) for some in _slices(n, rows)]


def _slices(n: int, step: int) -> list[slice]:
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def automatic_grid(squares: Array) -> Array:
    """50 values of λ in equal ratios, from nearly all degrees of freedom to nearly none.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.ridge.path import automatic_grid
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


def extend_grid(grid: Array, best: npt.NDArray[np.intp], squares: Array) -> Array:
    """The grid, continued in its own ratio beyond an end that is among the ``best``, to where nothing changes any more.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.ridge.path import extend_grid
    >>> extend_grid(np.array([1.0, 10.0, 100.0]), np.array([0]), np.array([100.0, 1e-6]))[:3].round(16)
    array([1.e-14, 1.e-13, 1.e-12])
    """
    top, ratio = float(np.max(squares, initial=0.0)), grid[1] / grid[0]
    real = squares[squares > 1e-12 * top]
    parts = [grid]
    if len(real) and np.any(best == 0):
        low = min(BEYOND * float(real.min()), grid[0])
        parts.insert(0, np.geomspace(low, grid[0], 1 + int(np.ceil(np.log(grid[0] / low) / np.log(ratio))))[:-1])
    if len(real) and np.any(best == len(grid) - 1):
        high = max(top / BEYOND, grid[-1])
        parts.append(np.geomspace(grid[-1], high, 1 + int(np.ceil(np.log(high / grid[-1]) / np.log(ratio))))[1:])
    return np.concatenate(parts)


def ridge_path(found: Decomposition, alphas: Array, left: LeftOut) -> RidgePath:
    """The whole path, squares of y in the units of the problem: in those of the data they may overflow."""
    problem, filter_ = found.problem, found.filter
    lam, _ = problem.scale_penalties(alphas)
    L, t, p = len(lam), problem.Y.shape[1], problem.source.shape[1]
    if not found.dual:  # U of the dual spans all of Ỹ; else what no λ can fit is that of the least λ: nothing cancels
        i = int(np.argmin(lam))
        fitted = filter_.left(lam[i : i + 1])[:, 0] ** 2 @ filter_.projections**2
        filter_ = replace(filter_, rest=np.maximum(left.rss[i] - fitted, 0.0))
    coef, intercept = np.zeros((0, t, p)), np.zeros((0, t))
    if L * t * p <= PATH_CELLS:
        S = filter_.dual(lam) if found.dual else filter_.solution(lam)
        B = found.basis @ S.reshape(len(S), L * t)
        B = to_numpy(problem.A.T @ like(problem.source, B), float) if found.dual else B
        B = B if problem.scale is None else B / problem.scale[:, None]
        coef = np.ascontiguousarray(B.T).reshape(L, t, p) * (problem.unit / problem.y_unit)
        intercept = problem.intercepts(coef)[0]
    return RidgePath(
        alphas=alphas,
        singular_values=np.sqrt(found.squares) / problem.unit,
        filter_factors=filter_.factors(lam) * problem.unit,
        dof=filter_.dof(lam),
        coef=coef,
        intercept=intercept,
        loo=left.loo,
        gcv=filter_.gcv(lam),
        log_marginal_likelihood=filter_.log_likelihood(lam),
        noise_variance=filter_.noise(lam),
    )


def path_in_own_units(path: RidgePath, problem: RidgeProblem) -> RidgePath:
    """The path with what has the units of y² in those of the data; it may overflow there."""
    if problem.y_unit == 1.0:
        return path
    shift = (problem.weights.count - float(problem.intercept)) * np.log(problem.y_unit)
    with np.errstate(over="ignore", under="ignore"):
        squares = {name: getattr(path, name) / problem.y_unit / problem.y_unit for name in SQUARES}
    return replace(path, log_marginal_likelihood=path.log_marginal_likelihood + shift, **squares)
