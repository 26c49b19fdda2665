r"""Randomly pivoted Cholesky: a low-rank factor of a positive semidefinite matrix from a few of its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device, is_numpy_namespace
from scipy.linalg import solve_triangular

from gramian.compute import dense
from gramian.compute.devices import to_array, to_numpy
from gramian.compute.threads import quiet_blas

Array = Any  # of NumPy, or a tensor where the columns live
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

ROUNDING = (
    100  # a pivot below this many ε of its entry of the diagonal is rounding: 1e-5 in float32, as kernels promise
)
PROMISED = 2e-12  # ... and one below this part of it too: no better are values of kernels in float64, of rows far out
SUSPECTS = 8  # rows that seem longer than their own length which are looked into after a block of pivots
UNIT = 2.0**-53  # rounding unit of float64, in which all products are summed
DTYPES = ("float64", "float32")
BLOCK = 2**27  # bytes of F on a device that are squared, or made wider, at a time


@dataclass(frozen=True, eq=False)
class PivotedCholesky:
    """K̂ = FFᵀ, which agrees with K in the columns of the landmarks and lies below it: K − K̂ ⪰ 0.

    Attributes
    ----------
    indices : ndarray of shape (k,)
        The landmarks, in the order they were chosen; fewer than asked for where K has a lower rank.
    factor : ndarray of shape (n, k), or a tensor where the columns live
        F; its rows at the landmarks are a lower triangular matrix.
    trace : float
        tr(K − K̂), which bounds the error of every eigenvalue: 0 ≤ λ_i(K) − λ_i(K̂) ≤ tr(K − K̂).
    total : float
        tr K.
    columns : int
        How many whole columns of K were evaluated.
    rounding : float
        How much of the trace may be left beyond ``trace``: entries of the diagonal are taken for used up where less
        is left of them than rounding explains, and this is the sum of that.
    """

    indices: Indices
    factor: Array
    trace: float
    total: float
    columns: int
    rounding: float = 0.0

    def __repr__(self) -> str:
        share = self.trace / self.total if self.total > 0 else 0.0
        return f"PivotedCholesky({len(self.indices)} landmarks of {len(self.factor)}, {share:.3g} of the trace left)"

    def table(self) -> dict[str, Any]:
        """Return the landmarks in order, and the share of the trace that each took."""
        taken = sum(_squares(self.factor[rows, :], axis=0) for rows in _blocks(self.factor))
        return {"landmark": self.indices, "share": taken / (self.total if self.total > 0 else 1.0)}


def rp_cholesky(
    diagonal: Any,
    columns: Callable[..., Any],
    k: int,
    *,
    block: int | None = None,
    seed: int = 0,
    start: PivotedCholesky | None = None,
    dtype: str = "float64",
    epsilon: float | None = None,
) -> PivotedCholesky:
    r"""Factor K ≈ FFᵀ from at most k columns, each drawn in proportion to what is left of its entry of the diagonal.

    In expectation the trace left is within a factor 1 + ε of the best of rank r once k ≥ r/ε + r ln(1/εη), where η is
    the best relative error (Chen, Epperly, Tropp and Webber, 2022). Pivots are proposed a block at a time and
    accepted with the probability that makes them the same as if drawn one by one (Epperly, Tropp and Webber, 2024):
    what is left of the diagonal entry after those accepted before it, over what it was when the block was proposed.

    F lives where the columns do: on the device where they are tensors there, with every product of n rows. What is left
    of the diagonal, the draws and the small blocks of the proposals are NumPy's in float64 wherever that is, so that
    the same seed draws the same landmarks as far as rounding allows.

    What rounding can do is known, and only more than that is an error. Let |K̃_ij − K_ij| ≤ ε√(K_ii K_jj) for the
    columns as they come, and FF_Sᵀ = K̃_{:,S} + Δ for the factor as it is kept, S the landmarks. Products are summed in
    float64 with unit u and kept with unit u_F, so that |Δ_ij| ≤ (4u_F + 8(k + 8)u)‖F_i‖‖F_j‖ (Higham, 2002, 8.5 and
    10.3). For a row i take w with wᵀF_S = F_i. If K is positive semidefinite, then 0 ≤ (e_i − w)ᵀK(e_i − w), in
    which K_{iS}w and wᵀK_{SS}w are ‖F_i‖² up to these errors:

    .. math:: \|F_i\|^2-K_{ii}\ \le\ \eta\,\Big(\sqrt{K_{ii}}+\sum_{j\in S}|w_j|\sqrt{K_{jj}}\Big)^2,
        \qquad \eta=\varepsilon+4u_F+8(k+8)u

    A row that is longer than its own length by more is refused by its number. A row that is longer by less shows how
    much rounding has grown: what is left of any entry of the diagonal below that share of it is used up too, and when
    all are, the factor ends.

    Parameters
    ----------
    diagonal : array of shape (n,)
        k(x, x).
    columns : callable
        ``columns(indices)`` gives the columns of K as an (n, b) array, ``columns(indices, rows)`` some rows of them:
        :meth:`gramian.operators.KernelOperator.columns`.
    k : int
        Most landmarks.
    block : int, optional
        Proposals at a time: k/10, from 1 to 128, where not given.
    seed : int, default=0
        For the draws.
    start : PivotedCholesky, optional
        A factor of the same matrix to continue: its landmarks stay, and the next ones are drawn as if they had been
        drawn in one go (by other random numbers, so they are not the same ones).
    dtype : {"float64", "float32"}, default="float64"
        Of F. In float32, which takes half the memory, what is left below a hundred thousandth of the diagonal is
        rounding.
    epsilon : float, optional
        Relative error of the columns; the rounding unit of their dtype where not given.

    Returns
    -------
    PivotedCholesky
        Landmarks, factor, and the trace left.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.spectral.rpcholesky import rp_cholesky
    >>> B = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
    >>> K = B @ B.T
    >>> rp_cholesky(np.diagonal(K), lambda j, i=slice(None): K[i][:, j], 3)
    PivotedCholesky(2 landmarks of 3, 0 of the trace left)
    """
    own = to_numpy(diagonal, float)
    _check(own, k, dtype)
    block = max(1, min(128, k // 10)) if block is None else block
    if block < 1:
        raise ValueError(f"block must be a positive number of proposals, got {block!r}.")
    first = to_array(columns(np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)))
    xp, place, chosen = array_namespace(first), device(first), np.empty(0, dtype=np.intp)
    F = xp.zeros((len(own), k), dtype=getattr(xp, dtype), device=place)  # room for k columns where those of K live
    if start is not None:
        if start.factor.shape[0] != len(own):
            raise ValueError(f"start is a factor of {start.factor.shape[0]} rows, and the diagonal has {len(own)}.")
        done = min(k, start.factor.shape[1])
        F[:, :done] = xp.asarray(start.factor[:, :done], device=place)
        chosen = start.indices[:done].copy()
    # what rounding leaves of an entry of the diagonal, of columns as they come and of the factor as it is kept
    eps = float(xp.finfo(xp.result_type(first.dtype, xp.float32)).eps) if epsilon is None else epsilon
    diagonal_left = _DiagonalLeft(own, max(ROUNDING * max(eps, float(xp.finfo(F.dtype).eps)), PROMISED))
    rng = np.random.default_rng([seed, len(chosen)] if len(chosen) else seed)
    left = diagonal_left.update(F[:, : len(chosen)], 0, chosen)
    while len(chosen) < k and np.any(left > 0):
        proposals = rng.choice(len(left), size=block, p=left / left.sum())
        noise = diagonal_left.level * own[proposals]
        with quiet_blas():  # small products
            accepted, L = _accept_proposals(proposals, left, F[:, : len(chosen)], columns, rng, noise)
        accepted, L = accepted[: k - len(chosen)], L[: k - len(chosen), : k - len(chosen)]
        if not len(accepted):  # the first proposal is always accepted, unless what is left of it is rounding
            left[proposals[0]] = 0.0
            continue
        # the next columns of F: (K_{:,S} − F F_Sᵀ) L⁻ᵀ, which are 0 at earlier landmarks and L at S
        done, S = len(chosen), _to_float64(_rows(F[:, : len(chosen)], accepted))
        new = _times_inverse(_subtract_product(_to_float64(to_array(columns(accepted))), F[:, :done], S), L)
        new[_index(F, chosen), :] = 0.0
        new[_index(F, accepted), :] = xp.asarray(np.tril(L), device=place)
        F[:, done : done + len(accepted)] = new
        chosen = np.concatenate([chosen, accepted])
        left = diagonal_left.update(F[:, : len(chosen)], done, chosen)
    # the columns that were written; on a device without a second copy, unless that frees more than half
    if is_numpy_namespace(xp):
        F = np.ascontiguousarray(F[:, : len(chosen)])
    elif 2 * len(chosen) >= k:
        F = F[:, : len(chosen)]
    else:
        F = xp.asarray(F[:, : len(chosen)], copy=True)
    used = float(np.delete(own, chosen) @ (np.delete(left, chosen) == 0.0))
    return PivotedCholesky(chosen, F, float(left.sum()), float(own.sum()), len(chosen), diagonal_left.level * used)


class _DiagonalLeft:
    """What is left of the diagonal, and the share of an entry up to which it is rounding."""

    def __init__(self, own: Floats, level: float) -> None:
        self.own, self.left, self.level, self.epsilon = own, own.copy(), level, level

    def update(self, F: Array, done: int, chosen: Indices) -> Floats:
        """Subtract the squares of the columns of F from ``done`` on; 0 at landmarks and where the rest is rounding."""
        rest = self.left - _lengths(F[:, done:])
        suspects = np.flatnonzero(rest < -self.level * self.own)
        if len(suspects):
            suspects = suspects[np.argsort(rest[suspects])][:SUSPECTS]
            excess, bound = -rest[suspects], self._bound_excess(F, chosen, suspects)
            if np.any(excess > bound):
                worst = int(np.argmax(excess - bound))
                raise ValueError(
                    f"Row {suspects[worst] + 1} is longer than its own length, by {excess[worst]:.3g} of "
                    f"{self.own[suspects[worst]]:.3g}, where rounding explains {bound[worst]:.3g}: the matrix is not "
                    "positive semidefinite."
                )
            positive = self.own > 0
            self.level = float(np.max(-rest[positive] / self.own[positive], initial=self.level))
        rest[rest <= self.level * self.own] = 0.0
        rest[chosen] = 0.0
        self.left = rest
        return rest

    def _bound_excess(self, F: Array, chosen: Indices, rows: Indices) -> Floats:
        """By how much rounding may make rows longer than they are: η(√K_ii + Σ|w_j|√K_jj)²."""
        some, L = (to_numpy(_rows(F, index), float) for index in (rows, chosen))
        w = solve_triangular(L, some.T, lower=True, trans="T", check_finite=False)
        roots = np.sqrt(np.maximum(self.own[rows], np.sum(some**2, axis=1)))
        unit = float(array_namespace(F).finfo(F.dtype).eps) / 2
        eta = self.epsilon + 4 * unit + 8 * (len(chosen) + 8) * UNIT
        return np.asarray(eta * (roots + np.sqrt(self.own[chosen]) @ np.abs(w)) ** 2)


def _check(diagonal: Floats, k: int, dtype: str) -> None:
    if diagonal.ndim != 1 or not np.all(np.isfinite(diagonal)):
        raise ValueError("The diagonal must be a vector of finite numbers.")
    if len(diagonal) and diagonal.min() < 0:
        worst = int(np.argmin(diagonal))
        raise ValueError(
            f"Entry {worst} of the diagonal is {diagonal[worst]:.4g}: the matrix is not positive semidefinite."
        )
    if not 1 <= k <= len(diagonal):
        raise ValueError(f"k must be between 1 and the {len(diagonal)} rows, got {k}.")
    if dtype not in DTYPES:
        raise ValueError(f"dtype of the factor must be one of {', '.join(DTYPES)}; got {dtype!r}.")


def _accept_proposals(
    proposals: Indices, left: Floats, F: Array, columns: Callable[..., Any], rng: np.random.Generator, noise: Floats
) -> tuple[Indices, Floats]:
    """Go through the proposals as a Cholesky factorisation of their block does; keep those the dice allow."""
    S = _to_float64(_rows(F, proposals))
    H = to_numpy(_to_float64(to_array(columns(proposals, proposals))) - S @ S.T, float)
    before, dice = left[proposals], rng.random(len(proposals))
    keep: list[int] = []
    L = np.zeros((len(proposals), len(proposals)))  # rows: proposals, columns: those accepted
    for i in range(len(proposals)):
        rest = H[i, i] - L[i] @ L[i]
        if rest <= noise[i] or dice[i] * before[i] >= rest:
            continue
        L[:, len(keep)] = (H[:, i] - L @ L[i]) / np.sqrt(rest)
        keep.append(i)
    return proposals[keep], L[keep][:, : len(keep)]


def _subtract_product(G: Array, F: Array, S: Array) -> Array:
    """G − FSᵀ in float64; of a factor in float32 some rows at a time."""
    if is_numpy_namespace(array_namespace(F)):  # tiles of rows, with the same bits however many threads there are
        return G - dense.product(F, np.asarray(S.T))
    if F.dtype == G.dtype:
        return G - F @ S.T
    return array_namespace(F).concat([G[rows, :] - _to_float64(F[rows, :]) @ S.T for rows in _blocks(F)], axis=0)


def _times_inverse(G: Array, L: Floats) -> Array:
    """G L⁻ᵀ, where G lives."""
    xp = array_namespace(G)
    if is_numpy_namespace(xp):
        with quiet_blas():
            return solve_triangular(L, G.T, lower=True, check_finite=False).T
    upper = xp.asarray(L, dtype=G.dtype, device=device(G)).T
    return xp.linalg.solve_triangular(upper, G, upper=True, left=False)


def _to_float64(x: Array) -> Array:
    """In float64, where x lives; x itself where it is."""
    xp = array_namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def _index(F: Array, rows: Indices) -> Array:
    xp = array_namespace(F)
    return rows if is_numpy_namespace(xp) else xp.asarray(rows, device=device(F))


def _rows(F: Array, rows: Indices) -> Array:
    return array_namespace(F).take(F, _index(F, rows), axis=0)


def _blocks(F: Array) -> list[slice]:
    """All rows at once in NumPy, as many as fit into a buffer on a device."""
    n, width = F.shape
    step = n if is_numpy_namespace(array_namespace(F)) else max(1, BLOCK // (8 * max(1, width)))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)] if n else []


def _squares(F: Array, axis: int) -> Floats:
    """Sums of squares of rows or columns, in float64."""
    return to_numpy(array_namespace(F).sum(_to_float64(F) ** 2, axis=axis), float)


def _lengths(F: Array) -> Floats:
    """Squared lengths of the rows."""
    return np.concatenate([_squares(F[rows, :], axis=1) for rows in _blocks(F)])
