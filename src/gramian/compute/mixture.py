r"""The hot loops of Gaussian mixtures: the sums of one expectation step, in tiles that stay in a core's cache.

Of a row x and component k, with :math:`d = x - c` measured from an origin c and :math:`R_k\Sigma_kR_k^T=I`,

.. math:: \ln\pi_kN(x;\mu_k,\Sigma_k) = a_k - \tfrac12\|R_k(d-m_k)\|^2

and the sums :math:`\sum r_k,\ \sum r_k(d-m_k),\ \sum r_k(d-m_k)(d-m_k)^T` are all a maximisation needs. There are two
ways to them. The *whitened* one forms :math:`y_k=R_k(d-m_k)` for each component, which loses no digits however small
and far apart the components are. The *expanded* one writes the exponent as a linear function of the monomials
:math:`1, d_i, d_id_j`, formed once for all components: half the arithmetic, a quarter of the memory traffic, but an
error of :math:`\varepsilon\sum|P_{ij}||d_id_j|`, so it serves components about as wide as the data.

Responsibilities below 1e-40 are set to 0: products with denormal numbers take a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import add_to, parallel, parallel_sum

Array = npt.NDArray[Any]

NEVER = -1e300  # ln 0, for products with finite numbers


class Components(NamedTuple):
    """Normal components as the loops need them.

    Attributes
    ----------
    origin : ndarray of shape (d,)
        What rows are measured from.
    centres : ndarray of shape (K, d)
        Means, from the origin.
    roots : ndarray of shape (K, d, d) or (K, d)
        R with RΣRᵀ = I: inverse Cholesky factors, or inverse standard deviations.
    constants : ndarray of shape (K,)
        ln π − ½ ln|2πΣ|.
    """

    origin: Array
    centres: Array
    roots: Array
    constants: Array


class Sums(NamedTuple):
    """Sums over rows, about the centres: Σr, Σr(d−m), Σr(d−m)(d−m)ᵀ or its diagonal, and Σw ln Σ_k exp."""

    counts: Array
    first: Array
    second: Array
    log_likelihood: float


class Whitened:
    """y_k = R_k(d − m_k) for every component."""

    def __init__(self, parts: Components) -> None:
        self.parts, (self.k, self.d) = parts, parts.centres.shape
        self.full = parts.roots.ndim == 3
        self.row_bytes = 8 * self.k * self.d
        if self.full:  # R(d − m) = [R, −Rm] (d, 1)
            shift = np.einsum("kij,kj->ki", parts.roots, parts.centres)
            self.map = np.concatenate([parts.roots, -shift[:, :, None]], axis=2).reshape(self.k * self.d, self.d + 1)

    def finish(self, sums: Sums) -> Sums:
        """Back from y to d − m: with L = R⁻¹, Σr(d−m) = LΣry and Σr(d−m)(d−m)ᵀ = L(Σryyᵀ)Lᵀ."""
        roots = self.parts.roots
        if not self.full:
            return Sums(sums.counts, sums.first / roots, sums.second / roots**2, sums.log_likelihood)
        L = np.linalg.inv(roots)
        first = np.einsum("kij,kj->ki", L, sums.first)
        second = L @ sums.second @ L.transpose(0, 2, 1)
        return Sums(sums.counts, first, second, sums.log_likelihood)


class Expanded:
    """The exponent as a linear function of the monomials 1, d_i and d_i d_j (or d_i²)."""

    def __init__(self, parts: Components) -> None:
        self.parts, (self.k, self.d) = parts, parts.centres.shape
        self.full = parts.roots.ndim == 3
        d, m = self.d, parts.centres
        self.rows, self.columns = np.triu_indices(d) if self.full else (np.arange(d), np.arange(d))
        if self.full:
            P = np.matmul(parts.roots.transpose(0, 2, 1), parts.roots)
            slope = np.einsum("kij,kj->ki", P, m)
            twice = np.where(self.rows == self.columns, 1.0, 2.0)
            square = P[:, self.rows, self.columns] * twice
        else:
            square = parts.roots**2
            slope = square * m
        constant = np.maximum(parts.constants, NEVER) - 0.5 * np.sum(slope * m, axis=1)
        self.map = np.concatenate([constant[:, None], slope, -0.5 * square], axis=1)
        self.row_bytes = 8 * self.map.shape[1]

    def finish(self, sums: Sums) -> Sums:
        """Sums about the origin, moved to the centres."""
        d, m, S = self.d, self.parts.centres, sums.second
        N, s, q = S[:, 0], S[:, 1 : d + 1], S[:, d + 1 :]
        first = s - N[:, None] * m
        if not self.full:
            return Sums(N, first, q - m * (s + first), sums.log_likelihood)
        second = np.empty((self.k, d, d))
        second[:, self.rows, self.columns] = second[:, self.columns, self.rows] = q
        second -= m[:, :, None] * s[:, None, :] + first[:, :, None] * m[:, None, :]
        return Sums(N, first, second, sums.log_likelihood)


class KeptRows:
    """Few rows with their monomials, kept from step to step: then a step is two products and an exponential.

    Sums are about the origin: the expanded way loses no more by it than it does anyway.
    """

    def __init__(self, X: Array, w: Array | None, origin: Array, *, full: bool) -> None:
        D = np.ascontiguousarray((X - origin).T)
        d = len(origin)
        self.w, self.full = w, full
        self.rows, self.columns = np.triu_indices(d) if full else (np.arange(d), np.arange(d))
        self.F = np.concatenate([np.ones((1, D.shape[1])), D, D[self.rows] * D[self.columns]])
        self.Ft = np.ascontiguousarray(self.F.T)
        self.twice = np.where(self.rows == self.columns, -0.5, -1.0)
        self.place = np.zeros((d, d), dtype=np.intp)  # of d_i d_j among the monomials
        if full:
            self.place[self.rows, self.columns] = self.place[self.columns, self.rows] = np.arange(len(self.rows))

    def expectation(self, parts: Components, size: Array, most: float) -> Sums | None:
        """Sums of one expectation step about the origin; None where rounding would be magnified by more than most."""
        k, d = parts.centres.shape
        maps = np.empty((k, self.F.shape[0]))
        if self.full:
            P = np.matmul(parts.roots.transpose(0, 2, 1), parts.roots)
            if not float(((np.abs(P) @ size) @ size).max()) < most:
                return None
            slope = np.matmul(P, parts.centres[:, :, None])[:, :, 0]
            np.multiply(P[:, self.rows, self.columns], self.twice, out=maps[:, d + 1 :])
        else:
            P = parts.roots**2
            if not float((P @ size**2).max()) < most:
                return None
            slope = P * parts.centres
            np.multiply(P, -0.5, out=maps[:, d + 1 :])
        maps[:, 0] = np.maximum(parts.constants, NEVER) - 0.5 * (slope * parts.centres).sum(axis=1)
        maps[:, 1 : d + 1] = slope
        L = maps @ self.F
        top = normalise(L)
        if self.w is not None:
            L *= self.w
        sums = L @ self.Ft
        second = sums[:, d + 1 :]
        height = float(top.sum() if self.w is None else self.w @ top)
        return Sums(sums[:, 0], sums[:, 1 : d + 1], second[:, self.place] if self.full else second, height)


TILE_BYTES = 2**20  # of a tile's whitened rows or monomials: a core's level-2 cache
LEAST, MOST = 64, 2048  # rows of a tile
NEGLIGIBLE = 1e-40


def rounding_size(parts: Components, size: Array) -> float:
    """Largest Σ|P_ij| s_i s_j, s the root mean square of the columns: the expanded way multiplies rounding by it."""
    if parts.roots.ndim == 2:
        return float(np.max(np.sum((parts.roots * size) ** 2, axis=1)))
    precision = np.abs(np.matmul(parts.roots.transpose(0, 2, 1), parts.roots))
    return float(np.max(np.einsum("kij,i,j->k", precision, size, size)))


def expectation(X: Array, w: Array | None, parts: Components, *, expanded: bool = False) -> Sums:
    """Sums of one expectation step over the rows of X, each counted w times.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.mixture import Components, expectation
    >>> parts = Components(np.zeros(1), np.zeros((1, 1)), np.ones((1, 1)), np.zeros(1))
    >>> expectation(np.array([[1.0], [3.0]]), None, parts)
    Sums(counts=array([2.]), first=array([[4.]]), second=array([[10.]]), log_likelihood=-5.0)
    """
    way: Any = Expanded(parts) if expanded else Whitened(parts)

    def work(share: Sequence[slice]) -> Sums:
        tile = (_ExpandedTile if expanded else _WhitenedTile)(way)
        log_likelihood = 0.0
        for part in share:
            L = tile.log_densities(X[part])
            top = normalise(L)
            if w is not None:
                L *= w[part]
            log_likelihood += float(top.sum() if w is None else w[part] @ top)
            tile.add(L)
        N, first, second = tile.sums
        return Sums(N, first, second, log_likelihood)

    sums: Sums = way.finish(parallel_sum(work, _slices(X.shape[0], way.row_bytes), _add_sums))
    return sums


def prefers_expanded(parts: Components) -> bool:
    """Whether the expanded way takes less time: monomials are formed for all components, so that few do not pay.

    Measured in ns a row: 80 against 99 at d = 8, K = 4, and 268 against 112 at d = 16, K = 2.
    """
    k, d = parts.centres.shape
    return parts.roots.ndim == 2 or 3 * k >= min(d, 36)


def log_densities(X: Array, parts: Components) -> Array:
    """ln π_k N(x; μ_k, Σ_k) for every component (rows of the answer) and row of X (columns)."""
    way = Whitened(parts)
    out = np.empty((len(parts.constants), X.shape[0]))

    def work(share: Sequence[slice]) -> None:
        tile = _WhitenedTile(way)
        for part in share:
            out[:, part] = tile.log_densities(X[part])

    parallel(work, _slices(X.shape[0], way.row_bytes))
    return out


def weighted_sums(
    X: Array,
    shares: Callable[[slice], Array],
    origin: Array,
    centres: Array,
    *,
    full: bool,
    labels: Array | None = None,
) -> Sums:
    """The same sums with shares (K, t) of the rows of a slice that are given, not computed.

    Where every row has a share in one component alone, ``labels`` say in which.
    """
    k, d = centres.shape

    def work(share: Sequence[slice]) -> Sums:
        N, first, second = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d) if full else (k, d))
        for part in share:
            R, D = shares(part), X[part].astype(np.float64) - origin
            N += R.sum(axis=1)
            if labels is not None:
                D -= centres[labels[part]]
                first += R @ D
                if not full:
                    second += R @ D**2
                    continue
                for j in range(k):
                    mine = np.flatnonzero(R[j])
                    E = D[mine]
                    second[j] += (R[j][mine][:, None] * E).T @ E
                continue
            for j in range(k):
                E = D - centres[j]
                first[j] += R[j] @ E
                second[j] += (R[j][:, None] * E).T @ E if full else R[j] @ E**2
        return Sums(N, first, second, 0.0)

    return parallel_sum(work, _slices(X.shape[0], 8 * d), _add_sums)


def _slices(n: int, row_bytes: int) -> list[slice]:
    rows = max(LEAST, min(MOST, TILE_BYTES // row_bytes))
    return [slice(i, min(i + rows, n)) for i in range(0, n, rows)]


def _add_sums(one: Sums, other: Sums) -> Sums:
    return Sums(
        add_to(one.counts, other.counts),
        add_to(one.first, other.first),
        add_to(one.second, other.second),
        one.log_likelihood + other.log_likelihood,
    )


def normalise(L: Array) -> Array:
    """Turn ln π_k N_k(x), of shape (…, K, n), into responsibilities in place; return ln Σ_k π_k N_k(x)."""
    top = L.max(axis=-2)
    L -= top[..., None, :]
    np.maximum(L, -700.0, out=L)  # the exponential of less is denormal, and slow
    np.exp(L, out=L)
    total = L.sum(axis=-2)
    # eq: em-responsibilities
    L /= total[..., None, :]
    L *= L > NEGLIGIBLE
    return np.asarray(top + np.log(total))


class _WhitenedTile:
    """One thread's buffers and sums for :class:`Whitened`: Σr, Σry and Σryyᵀ, or its diagonal."""

    def __init__(self, way: Whitened) -> None:
        self.way = way
        rows = max(LEAST, min(MOST, TILE_BYTES // way.row_bytes))
        self.D = np.empty((way.d + 1, rows))
        self.Y = np.empty(way.k * way.d * rows)
        self.Z = np.empty(way.d * rows)
        self.sums = np.zeros(way.k), np.zeros((way.k, way.d)), np.zeros((way.k, way.d, way.d)[: 3 if way.full else 2])

    def log_densities(self, X: Array) -> Array:
        """ln π_k N_k of rows; what their sums are made of is kept."""
        way, t = self.way, len(X)
        D: Array = self.D[:-1, :t]  # columns of rows: blocks of rows are short, and BLAS likes long rows
        np.copyto(D, X.T, casting="unsafe")
        D -= way.parts.origin[:, None]
        self.y = self.Y[: way.k * way.d * t].reshape(way.k, way.d, t)
        if way.full:
            self.D[-1] = 1.0
            np.matmul(way.map, self.D[:, :t], out=self.y.reshape(way.k * way.d, t))
        else:
            np.subtract(D, way.parts.centres[:, :, None], out=self.y)
            self.y *= way.parts.roots[:, :, None]
        L: Array = np.einsum("kdt,kdt->kt", self.y, self.y)
        L *= -0.5
        L += way.parts.constants[:, None]
        return L

    def add(self, R: Array) -> None:
        """Add the rows of the last densities, with responsibilities R."""
        counts, first, second = self.sums
        counts += R.sum(axis=1)
        first += np.matmul(self.y, R[:, :, None])[:, :, 0]
        if not self.way.full:
            np.multiply(self.y, self.y, out=self.y)
            second += np.matmul(self.y, R[:, :, None])[:, :, 0]
            return
        root = np.sqrt(R)
        for k, y in enumerate(self.y):
            Z = self.Z[: y.size].reshape(y.shape)
            np.multiply(y, root[k], out=Z)
            second[k] += Z @ Z.T  # numpy sees the transpose of the same array and calls syrk: half the work


class _ExpandedTile:
    """One thread's buffers and sums for :class:`Expanded`: Σrf for all monomials f, in place of the third."""

    def __init__(self, way: Expanded) -> None:
        self.way = way
        rows = max(LEAST, min(MOST, TILE_BYTES // way.row_bytes))
        self.F = np.empty((way.map.shape[1], rows))
        self.F[0] = 1.0
        self.sums = np.zeros(0), np.zeros(0), np.zeros(way.map.shape)

    def log_densities(self, X: Array) -> Array:
        """ln π_k N_k of rows; their monomials are kept."""
        d, t = self.way.d, len(X)
        D: Array = self.F[1 : d + 1, :t]
        np.copyto(D, X.T, casting="unsafe")
        D -= self.way.parts.origin[:, None]
        F: Array = self.F[:, :t]
        if self.way.full:
            at = d + 1
            for i in range(d):
                np.multiply(D[i], D[i:], out=F[at : at + d - i])
                at += d - i
        else:
            np.multiply(D, D, out=F[d + 1 :])
        self.f = F
        return np.asarray(self.way.map @ F)

    def add(self, R: Array) -> None:
        """Add the rows of the last densities, with responsibilities R."""
        self.sums[2][...] += R @ self.f.T
