r"""Probabilistic PCA by maximum likelihood, from rows of which any part is observed.

The expectation-maximisation algorithm of Tipping and Bishop (1999), by one of two routes, with changes that leave its
fixed points alone: z may have a covariance of its own between steps (PX-EM, Liu, Rubin and Wu 1998), two steps are
extrapolated where that raises the likelihood (SQUAREM, Varadhan and Roland 2008), and it ends by the gradient, not by
the progress.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import to_numpy
from gramian.compute.threads import parallel_sum, quiet_blas
from gramian.inputs.checks import check_choice
from gramian.results import Optimum
from gramian.sources import Block, Source, memory_budget

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Factor:
    """The parameters of probabilistic PCA: x ~ N(mean, loading loadingᵀ + noise I)."""

    mean: Array
    loading: Array
    noise: float

    @property
    def vector(self) -> Array:
        """Return all parameters as one vector, the noise as its logarithm: every vector is a model."""
        return np.concatenate([self.mean, self.loading.ravel(), [math.log(self.noise)]])

    def like(self, vector: Array) -> Factor:
        """Return the model of a vector, in the shape of this one."""
        p = len(self.mean)
        return Factor(vector[:p], vector[p:-1].reshape(self.loading.shape), math.exp(float(vector[-1])))


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums over rows, which add up field by field."""

    def merge(self, other: Self) -> Self:
        """Return the sums over both sets of rows together."""
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class LatentSums(RowSums):
    """Sums over rows at one value of the parameters.

    Attributes
    ----------
    moments : ndarray of shape (p, k+1, k+1)
        T_j = Σ_{i observed in j} w_i E[z̃z̃ᵀ] with z̃ = (z, 1).
    slope : ndarray of shape (p, k+1)
        g_j = Σ_i w_i E[(x_ij − μ_j − W_j z) z̃]: the gradient by (W_j, μ_j), times σ².
    error : float
        Σ w E(x_ij − μ_j − W_j z)² over observed cells.
    cells, weight : float
        Observed cells and rows, counted with their weights.
    latent : ndarray of shape (k+1, k+1)
        Σ w E[z̃z̃ᵀ] over all rows.
    log_likelihood : float
        Of the observed cells.
    """

    moments: Array
    slope: Array
    error: float
    cells: float
    weight: float
    latent: Array
    log_likelihood: float


def posterior(D: Array, observed: Mask, factor: Factor) -> tuple[Array, Any, Array]:
    """Mean of z and A⁻¹ for each row, and ln|A|; one A⁻¹ of shape (1, k, k) serves rows that are complete."""
    W, k = factor.loading, factor.loading.shape[1]
    R = np.where(observed, D - factor.mean, 0.0)
    if observed.all():
        A = (W.T @ W)[None]
    else:
        a, b = np.triu_indices(k)
        A = np.empty((len(D), k, k))
        A[:, a, b] = A[:, b, a] = observed.astype(np.float64) @ (W[:, a] * W[:, b])
    A = A + factor.noise * np.eye(k)
    inverse = np.linalg.inv(A)
    logdet = np.broadcast_to(np.linalg.slogdet(A)[1], len(D))
    return np.einsum("nij,nj->ni", np.broadcast_to(inverse, (len(D), k, k)), R @ W), inverse, logdet


def expectation(D: Array, w: Array, factor: Factor) -> LatentSums:
    """Sums over a block of rows D, of which NaN cells are missing; complete rows take the short way."""
    D, w = D[w > 0], w[w > 0]
    observed = ~np.isnan(D)
    whole = observed.all(axis=1)
    if not whole.any() or whole.all():
        return _expect(D, observed, w, factor)
    parts = (_expect(D[rows], observed[rows], w[rows], factor) for rows in (whole, ~whole))
    return next(parts).merge(next(parts))


def _expect(D: Array, observed: Mask, w: Array, factor: Factor) -> LatentSums:
    W, noise, k = factor.loading, factor.noise, factor.loading.shape[1]
    Z, inverse, logdet = posterior(D, observed, factor)
    C, Zt = noise * inverse, np.column_stack([Z, np.ones(len(Z))])
    whole = bool(observed.all())
    latent = (w[:, None] * Zt).T @ Zt
    # for every column j, Σ_{i observed in j} w_i C_i and Σ_{i observed in j} w_i z̃_i z̃_iᵀ
    if whole:
        spread = np.broadcast_to(C * w.sum(), (D.shape[1], k, k))
        T = np.repeat(latent[None], D.shape[1], axis=0)
    else:
        spread = _sum_by_column(observed, w, C)
        T = _sum_by_column(observed, w, Zt[:, :, None] * Zt[:, None, :])
    T[:, :k, :k] += spread
    E = np.where(observed, D - factor.mean - Z @ W.T, 0.0)
    slope = E.T @ (w[:, None] * Zt)
    slope[:, :k] -= np.einsum("pij,pj->pi", spread, W)
    squares, count = np.sum(E**2, axis=1), observed.sum(axis=1)
    error = float(w @ squares) + float(np.einsum("pi,pij,pj->", W, spread, W))
    quadratic = squares / noise + np.sum(Z**2, axis=1)
    densities = count * math.log(2 * math.pi) + (count - k) * math.log(noise) + logdet + quadratic
    each = w if len(inverse) == len(Z) else np.array([w.sum()])
    latent[:k, :k] += np.einsum("n,nij->ij", each, C)
    return LatentSums(T, slope, error, float(w @ count), float(w.sum()), latent, -0.5 * float(w @ densities))


def _sum_by_column(observed: Mask, w: Array, M: Array) -> Array:
    """Oᵀ diag(w) M for symmetric M_i, of which only the upper triangles are multiplied."""
    k = M.shape[1]
    a, b = np.triu_indices(k)
    packed = observed.T.astype(np.float64) @ (w[:, None] * M[:, a, b])
    out = np.empty((observed.shape[1], k, k))
    out[:, a, b] = out[:, b, a] = packed
    return out


def _steps(stats: LatentSums) -> Array:
    """Change of (W_j, μ_j) for every column: T_j⁻¹g_j."""
    return np.asarray(np.linalg.solve(stats.moments, stats.slope[:, :, None])[:, :, 0])


def gradient(theta: Factor, stats: LatentSums, floor: float) -> float:
    r"""Norm of the score by complete-data information, √(gᵀI⁻¹g).

    The information of (W_j, μ_j) is T_j/σ², that of σ² is N/2σ⁴; noise at its floor cannot fall further.
    """
    change = float(np.sum(_steps(stats) * stats.slope)) / theta.noise
    slope = stats.error / stats.cells / theta.noise - 1
    noise = 0.0 if slope < 0 and theta.noise <= floor else stats.cells / 2 * slope**2
    return math.sqrt(max(change, 0.0) + noise)


def maximise(theta: Factor, stats: LatentSums, floor: float) -> Factor:
    """Regress every column on z, then let the mean and covariance of z be absorbed by μ and W (PX-EM)."""
    k = theta.loading.shape[1]
    delta = _steps(stats)
    noise = max((stats.error - float(np.sum(delta * stats.slope))) / stats.cells, floor)
    W, mean = theta.loading + delta[:, :k], theta.mean + delta[:, k]
    z = stats.latent[:k, k] / stats.weight
    values, Q = np.linalg.eigh(stats.latent[:k, :k] / stats.weight - np.outer(z, z))
    root = (Q * np.sqrt(np.maximum(values, 0.0))) @ Q.T
    return Factor(mean + W @ z, W @ root, noise)


TAME = 1e7  # ratio of the largest to the smallest eigenvalue up to which P_mm keeps nine digits of ln|P_mm|
BATCH = 2**22  # numbers in a batch of matrices G_m
PART = 1024  # rows that a core sums at a time


@dataclass(frozen=True, eq=False)
class PrecisionRoot:
    """G with GᵀG = P = C⁻¹, ln|C|, and P itself where it can be used."""

    G: Array
    log_det: float
    P: Array | None


@dataclass(frozen=True, eq=False)
class CellSums(RowSums):
    """Sums over rows at one value of the parameters.

    Attributes
    ----------
    total : ndarray of shape (p,)
        Σ w E[x − μ].
    scatter : ndarray of shape (p, p)
        Σ w E[(x − μ)(x − μ)ᵀ].
    weight, cells : float
        Rows and observed cells, counted with their weights.
    log_likelihood : float
        Of the observed cells.
    """

    total: Array
    scatter: Array
    weight: float
    cells: float
    log_likelihood: float


def take_root(factor: Factor) -> PrecisionRoot:
    """G = diag(λ^{-1/2})Vᵀ, with λ = ℓ² + σ² along W's singular vectors and σ² across them."""
    p, k = factor.loading.shape
    V, lengths, _ = np.linalg.svd(factor.loading, full_matrices=True)
    lam = factor.noise + np.append(lengths**2, np.zeros(p - k))
    G = (V / np.sqrt(lam)).T
    return PrecisionRoot(G, float(np.sum(np.log(lam))), G.T @ G if lam[0] < TAME * lam[-1] else None)


def complete_cells(X: Array, w: Array, factor: Factor, root: PrecisionRoot) -> CellSums:
    """Expected sums of some rows, rows that lack equally many cells together."""
    X, w = X[w > 0], w[w > 0]
    missing = np.isnan(X)
    D = np.where(missing, 0.0, X - factor.mean)
    lacking, p = missing.sum(axis=1), X.shape[1]
    T = D @ (root.G.T if root.P is None else root.P)
    spread, log_dets = np.zeros(p * p), np.full(len(X), root.log_det)
    for q in np.unique(lacking[lacking > 0]):
        every = np.flatnonzero(lacking == q)
        step = max(1, BATCH // (p * int(q)))
        for rows in (every[start : start + step] for start in range(0, len(every), step)):
            index = np.nonzero(missing[rows])[1].reshape(len(rows), int(q))
            if root.P is None:  # RᵀR = P_mm by QR of G_m
                Q, R = np.linalg.qr(root.G[:, index].transpose(1, 0, 2))
                inverse = np.linalg.inv(R)
                t = np.einsum("npq,np->nq", Q, T[rows])
            else:
                R = np.linalg.cholesky(root.P[index[:, :, None], index[:, None, :]])
                inverse = np.linalg.inv(R).transpose(0, 2, 1)
                t = np.einsum("nji,nj->ni", inverse, np.take_along_axis(T[rows], index, axis=1))
            # of the missing cells: mean −P_mm⁻¹(PD)_m, covariance P_mm⁻¹ = R⁻¹R⁻ᵀ, and ln|P_mm|
            D[rows[:, None], index] = -np.einsum("nij,nj->ni", inverse, t)
            covariance = inverse @ inverse.transpose(0, 2, 1)
            log_dets[rows] += 2 * np.sum(np.log(np.abs(np.diagonal(R, axis1=1, axis2=2))), axis=1)
            # add the block of each row to the rows and columns it belongs to
            flat = index[:, :, None] * p + index[:, None, :]
            spread += np.bincount(flat.ravel(), (w[rows, None, None] * covariance).ravel(), p * p)
    E = D @ root.G.T
    count = p - lacking
    densities = count * math.log(2 * math.pi) + log_dets + np.einsum("ni,ni->n", E, E)
    scatter = (w[:, None] * D).T @ D + spread.reshape(p, p)
    return CellSums(w @ D, scatter, float(w.sum()), float(w @ count), -0.5 * float(w @ densities))


def maximise_cells(factor: Factor, stats: CellSums, floor: float) -> Factor:
    """Closed form for the expected covariance; W turned towards the old one, so that steps can be compared."""
    k = factor.loading.shape[1]
    step = stats.total / stats.weight
    values, vectors = np.linalg.eigh(stats.scatter / stats.weight - np.outer(step, step))
    values, V = values[::-1], vectors[:, ::-1][:, :k]
    noise = max(float(np.mean(values[k:])), floor)
    W = V * np.sqrt(np.maximum(values[:k] - noise, 0.0))
    left, _, right = np.linalg.svd(W.T @ factor.loading)
    return Factor(factor.mean + step, W @ (left @ right), noise)


def gradient_cells(factor: Factor, stats: CellSums, floor: float) -> float:
    r"""Norm of the score by the information of complete rows, √(gᵀI⁻¹g).

    With Δ = C^{-1/2}(S − C)C^{-1/2} for the expected S, it is ω(μ̂−μ)ᵀC⁻¹(μ̂−μ) + ω/2‖Δ‖², of which only the part
    along the model counts: beside W nothing but the mean of the noise can change, and that no more than to the floor.
    """
    p, k = factor.loading.shape
    G = take_root(factor).G
    step = G @ stats.total / stats.weight
    S = G @ (stats.scatter / stats.weight) @ G.T - np.eye(p)
    inside = float(np.sum(S[:k] ** 2) + np.sum(S[k:, :k] ** 2))
    slope = float(np.trace(S[k:, k:]))
    noise = 0.0 if slope < 0 and factor.noise <= floor else slope**2 / (p - k)
    return math.sqrt(stats.weight * (float(step @ step) + 0.5 * (inside + noise)))


Rows = Callable[[Block], Array]

FLOOR = 1e-15  # of the total variance: noise below this is rounding, and the likelihood has no maximum
FEW = 32  # columns for which p×p matrices cost nothing
IDLE = 3  # rounds without gain before the rest is left to rounding
PATIENCE = 20  # passes before the other route is tried
SMALL = 60  # flops of a large product that take as long as inverting a small matrix takes for each of its q³
NARROW = 1024  # columns up to which it is
MOST_MEMORY = 2**32  # bytes of sums that are not refused
NO_NOISE = "the components leave no noise: the likelihood grows without bound as the noise goes to 0"
ROUTES = ("auto", "cells", "latent")
ROUNDING = 1e-11  # of the parameters: steps shorter than this are not worth extrapolating
LONGEST = 256.0  # times a step that may be extrapolated


def fit_factor(
    source: Source,
    start: Factor,
    w: Array | None = None,
    *,
    rows: Rows | None = None,
    tol: float = 1e-5,
    max_iter: int = 1000,
    route: str = "auto",
) -> tuple[Factor, Optimum]:
    r"""Maximise the likelihood of the observed cells over μ, W and σ².

    .. math:: \ell = \sum_i w_i\ln N(x_{i,o_i};\ \mu_{o_i},\ W_{o_i}W_{o_i}^T+\sigma^2I)

    Every iteration reads the data once; ℓ never falls. Complete data have a closed form, to which this converges.

    Parameters
    ----------
    source : Source
        The rows; NaN cells are missing.
    start : Factor
        Parameters to start from.
    w : ndarray of shape (n,), optional
        Frequencies of the rows.
    rows : callable, optional
        What to make of a block: its values in float64, where they are not used as they are.
    tol : float, default=1e-5
        Gradient to reach, in standard errors of complete data; see :class:`gramian.results.Optimum`.
    max_iter : int, default=1000
        Most passes over the data.
    route : {"auto", "cells", "latent"}, default="auto"
        What counts as unknown: the missing cells, with sums of p×p numbers, or z, with sums of p×k². Both climb the
        same likelihood; "auto" takes the cells of few columns, or where k is more than a quarter of them, or, up to
        1,024 columns, where few are missing, or z has not come to an end in 20 passes.

    Returns
    -------
    Factor, Optimum
        The parameters, and how well they maximise. The objective is −ℓ.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.pca.factor import Factor, fit_factor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) @ np.array([[1.0, 2.0, -1.0]]) + 0.1 * rng.normal(size=(200, 3))
    >>> X[::7, 1] = np.nan
    >>> start = Factor(np.zeros(3), np.ones((3, 1)), 1.0)
    >>> found, certificate = fit_factor(gramian.open(X), start)
    >>> certificate.converged, bool(abs(found.noise - 0.01) < 0.002)
    (True, True)
    """
    every, read = np.ones(source.shape[0]) if w is None else w, rows or (lambda block: to_numpy(block.values, float))
    check_choice("route", route, ROUTES)
    p, k = start.loading.shape
    # many components leave little noise, which slows the other route
    cells = route == "cells" or (route == "auto" and (p <= FEW or 4 * k > p))
    needed = 8 * (5 * p**2 if cells else 4 * p * (k + 1) ** 2)
    if needed > MOST_MEMORY:
        raise ValueError(
            f"Fitting {k} components to {p} columns with missing values takes {needed / 2**30:.1f} GiB for its sums. "
            "Ask for fewer components, or leave columns out."
        )
    em: LatentRoute = (CellsRoute if cells else LatentRoute)(source, every, read)
    floor = FLOOR * (start.noise * p + float(np.sum(start.loading**2)))
    with quiet_blas():
        at = em.measure(Factor(start.mean, start.loading, max(start.noise, floor)), floor)
        trace, bound, idle, patience = [-at.height], 1.0, 0, PATIENCE
        lacking = p - at.sums.cells / at.sums.weight  # cells of a row
        if 6 * p**2 + SMALL * lacking**3 <= 4 * (3 * p * k**2 + SMALL * k**3):  # the cells cost little more
            patience = 0
        while em.passes < max_iter and at.slope > tol and idle < IDLE:
            if route == "auto" and type(em) is LatentRoute and em.passes > patience and p <= NARROW:
                # few cells, a component too many, or a weak one: what counts as unknown is better changed
                em, bound = CellsRoute(source, every, read, em.passes), 1.0
                at = em.measure(at.factor, floor)
            new, between, bound = _step_twice(em, at, floor, bound)
            # rounding may hide what is left to gain
            rounding = 4 * np.finfo(float).eps * (abs(at.height) + at.sums.cells)
            idle = 0 if new.height > at.height + rounding or new.slope < at.slope else idle + 1
            if idle and new.height < at.height:
                bound = 1.0
                continue
            trace += [-min(between, new.height), -new.height]
            at = new
    # noise that rounding of the model itself would make is none
    has_maximum = at.factor.noise > max(floor, FLOOR * (at.factor.noise * p + float(np.sum(at.factor.loading**2))))
    return at.factor, Optimum(
        f"maximum likelihood of the observed cells: {em.name}",
        "values are missing" if at.sums.cells < at.sums.weight * p else "asked for",
        em.passes,
        len(trace) - 1,
        np.array(trace),
        # without noise the rest is as it should be, but there is no maximum to have reached
        at.slope if has_maximum else max(at.slope, 2 * tol),
        has_maximum=has_maximum,
        tolerance=tol,
        notes=() if has_maximum else (NO_NOISE,),
    )


@dataclass(frozen=True, eq=False)
class Place:
    """Parameters, the sums of the data there, and the steepness of the likelihood."""

    factor: Factor
    sums: Any
    slope: float

    @property
    def height(self) -> float:
        """The log-likelihood."""
        return float(self.sums.log_likelihood)


class LatentRoute:
    """EM with z as what is unknown: sums of p×k² numbers."""

    name = "EM over the latent variables, accelerated"

    def __init__(self, source: Source, w: Array, rows: Rows, passes: int = 0) -> None:
        self.source, self.w, self.rows, self.passes = source, w, rows, passes

    def expect(self, factor: Factor) -> Any:
        """Return the sums of the expectation step, in one pass, a few rows at a time on every core."""
        self.passes += 1
        p, k = factor.loading.shape
        step = max(1, memory_budget() // 8 // (8 * (4 * p + 4 * (k + 1) ** 2)))
        statistic = self._statistic(factor)

        def sum_block(block: Block) -> Any:
            X, w = self.rows(block), self.w[block.start : block.stop]

            def sum_parts(starts: Sequence[int]) -> Any:
                return reduce(RowSums.merge, (statistic(X[i : i + PART], w[i : i + PART]) for i in starts))

            return parallel_sum(sum_parts, range(0, len(X), PART), RowSums.merge)

        return self.source.reduce(sum_block, RowSums.merge, step)

    def _statistic(self, factor: Factor) -> Callable[[Array, Array], Any]:
        return lambda X, w: expectation(X, w, factor)

    gradient: Callable[[Factor, Any, float], float] = staticmethod(gradient)
    maximise: Callable[[Factor, Any, float], Factor] = staticmethod(maximise)

    def measure(self, factor: Factor, floor: float) -> Place:
        """Return the likelihood and its steepness at some parameters."""
        sums = self.expect(factor)
        return Place(factor, sums, self.gradient(factor, sums, floor))


class CellsRoute(LatentRoute):
    """EM with the missing cells as what is unknown: sums of p×p numbers."""

    name = "EM over the missing cells, accelerated"

    def _statistic(self, factor: Factor) -> Callable[[Array, Array], Any]:
        root = take_root(factor)
        return lambda X, w: complete_cells(X, w, factor, root)

    gradient = staticmethod(gradient_cells)
    maximise = staticmethod(maximise_cells)


def _step_twice(em: LatentRoute, at: Place, floor: float, bound: float) -> tuple[Place, float, float]:
    """Two steps, extrapolated unless that loses; the likelihood between them; and how far to extrapolate next.

    The extrapolation is θ + 2ar + a²v with r, v the first and second differences of the steps, and a = ‖r‖/‖v‖ between
    1 and bound.
    """
    one = em.maximise(at.factor, at.sums, floor)
    first = em.expect(one)
    between = float(first.log_likelihood)
    two = em.maximise(one, first, floor)
    x, y, z = at.factor.vector, one.vector, two.vector
    r, v = y - x, (z - y) - (y - x)
    length, curve, a = float(np.linalg.norm(r)), float(np.linalg.norm(v)), 1.0
    if length > ROUNDING * float(np.linalg.norm(x)) and curve > 0.0:  # extrapolating rounding errors magnifies them
        a = min(max(length / curve, 1.0), bound)
    new = em.measure(two if a == 1.0 else at.factor.like(x + 2 * a * r + a**2 * v), floor)
    if not new.height >= between:  # too far: two plain steps do not lose
        return em.measure(two, floor), between, 1.0
    return new, between, min(4 * bound, LONGEST) if a >= bound else bound
