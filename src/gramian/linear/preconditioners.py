r"""The Nyström preconditioner: (FFᵀ + λI)⁻¹ from a factor of low rank, a different λ for each column."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, device

from gramian.compute import dense
from gramian.compute.devices import is_numpy, like, to_array, to_numpy
from gramian.compute.threads import quiet_blas
from gramian.linear.systems import eigh, wide
from gramian.operators.base import Operator

Vector = npt.NDArray[np.float64]

BYTES = 2**31  # of a factor with all that is made of it, in the memory of a computer
ROOMS = 4  # times the room of a solver's vectors on a device, an eighth of the device each


@dataclass(frozen=True)
class Costs:
    """What a machine takes, in seconds, roughly: their ratios are what counts.

    Attributes
    ----------
    product : float
        An entry of K in a product.
    factor : float
        n·r² of a factor of rank r: pivoted Cholesky, FᵀF, and U.
    eigen : float
        r³ of the eigenvectors of FᵀF, where they are not as good as free compared with that.
    """

    product: float
    factor: float
    eigen: float = 0.0

    def time_factor(self, n: int, r: int) -> float:
        """Seconds for a factor of rank r of n rows, and its eigenvectors."""
        return self.factor * n * r**2 + self.eigen * r**3


CPU = Costs(product=0.45e-9, factor=0.12e-9)  # two cores, products in float32
GPU = Costs(product=0.3e-12, factor=5e-14, eigen=4e-11)  # one H200, products in float32
DOUBLE = 10  # times as long takes a product in float64 on a GPU


def costs_of(A: Operator) -> Costs:
    """Return what products with A and factors beside it cost where it lives: on a CPU, torch's too, or a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.preconditioners import costs_of
    >>> from gramian.operators import Data
    >>> costs_of(Data(np.eye(2)))
    Costs(product=4.5e-10, factor=1.2e-10, eigen=0.0)
    """
    if getattr(A.device, "type", "cpu") == "cpu":
        return CPU
    return GPU if A.dtype == A.xp.float32 else replace(GPU, product=DOUBLE * GPU.product)


def factor_bytes(A: Operator) -> float:
    """Return how much memory a factor may take with all that is made of it: 2 GiB, or half of a GPU.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.preconditioners import factor_bytes
    >>> from gramian.operators import Data
    >>> factor_bytes(Data(np.eye(2))) / 2**30
    2.0
    """
    return float(BYTES if A.device is None else max(BYTES, ROOMS * A.room))


def first_rank(n: int, products: float = 3.0, costs: Costs = CPU) -> int:
    """The rank to begin with: its factor costs as much as a few products with K.

    Examples
    --------
    >>> from gramian.linear.preconditioners import first_rank
    >>> first_rank(50_000), first_rank(10_000), first_rank(100)
    (750, 335, 33)
    """
    most = min(n, int(math.sqrt(products * n * costs.product / costs.factor)))
    if costs.eigen > 0:
        allowed = products * costs.product * n**2
        most = bisect_right(range(1, most + 1), allowed, key=lambda r: costs.time_factor(n, r))
    return max(1, most)


def largest_rank(n: int, nbytes: float = float(BYTES)) -> int:
    """The rank for which F in float64, the same weighted and centred, and U in float32 take so many bytes.

    A sixth of them is spare.

    Examples
    --------
    >>> from gramian.linear.preconditioners import largest_rank
    >>> largest_rank(50_000), largest_rank(200_000), largest_rank(100)
    (1789, 447, 100)
    """
    return max(1, min(n, int(nbytes / (24 * max(1, n)))))


def pays_to_double(
    n: int, values: Vector, rate: float, steps_left: float, most: int | None = None, costs: Costs = CPU
) -> bool:
    r"""Whether a factor of twice the rank would save more than it costs.

    From the rate ρ at which residuals fall follows κ = ((1+ρ)/(1−ρ))², the condition number of the preconditioned
    system, as if conjugate gradients were no faster than their bound. κ − 1 = ‖K − FFᵀ‖/λ falls, with twice the rank,
    about as the eigenvalues s of FFᵀ do: by s at ¾ of the rank over s at ⅜ of it (the last ones are too small, because
    FFᵀ lies below K). That gives the rate to come and the products saved. A factor of rank 2r costs about 4nr²·0.12 ns
    on a CPU, a product n²·0.45 ns: a decision that no clock takes part in, so that the same data give the same result.

    Parameters
    ----------
    n : int
        Rows.
    values : ndarray of shape (r,)
        Eigenvalues s of FFᵀ, in descending order.
    rate : float
        What one iteration leaves of the residual of the slowest column.
    steps_left : float
        Iterations that remain at this rate.
    most : int, optional
        The largest rank there is room for; n where not given.
    costs : Costs, optional
        Of the machine; a CPU's where not given.

    Returns
    -------
    bool
        The answer.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.preconditioners import pays_to_double
    >>> falling = 1000 * 0.99 ** np.arange(500)
    >>> pays_to_double(50_000, falling, 0.9, 100), pays_to_double(50_000, falling, 0.5, 5)
    (True, False)
    """
    r = len(values)
    larger = min(2 * r, n if most is None else most)
    if r < 8 or larger <= r or not 0.0 < rate < 1.0:
        return False
    decay = min(1.0, float(values[3 * r // 4] / values[3 * r // 8])) ** (larger / r - 1)
    kappa = ((1 + rate) / (1 - rate)) ** 2
    root = math.sqrt(1 + (kappa - 1) * decay)
    better = (root - 1) / (root + 1)
    after = steps_left * math.log(rate) / math.log(better) if better > 0 else 1.0
    return (steps_left - after) * costs.product * n**2 > costs.time_factor(n, larger)


Array = Any  # of NumPy, or a tensor
Matrix = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Quiet = Callable[[], AbstractContextManager[None]]

ROWS = 4096  # of a block of F or U
BLOCK = 2**27  # ... and bytes of one on a device
NARROW = 1e5  # largest ratio of the parts of P⁻¹ for which U is kept in float32
NOTHING = 1e-13  # eigenvalues of FᵀF below this share of the largest are rounding
SMALL = 500  # columns of F up to which LAPACK on the host finds the eigenvectors sooner than a device


class Nystrom:
    r"""Multiply by the inverse of FFᵀ + λ_jI, column by column.

    With FFᵀ = U diag(s) Uᵀ the inverse is

    .. math:: P_\lambda^{-1} = U\,\mathrm{diag}\Big(\frac1{s+\lambda}\Big)U^T + \frac1{\lambda+\rho}(I-UU^T)

    with ρ = 0. As preconditioner of K + λI with K ≈ FFᵀ, ρ stands for what FFᵀ leaves of K: the last s, unless given
    (Frangella, Tropp and Udell, 2023). In trials with four kernels that took up to a third fewer iterations than
    ρ = 0 where λ is small, and about a tenth more at worst. K − FFᵀ ⪰ 0 for a factor by pivoted Cholesky, and the
    condition number is then at most about 1 + ‖K − FFᵀ‖/λ (Díaz and others, 2023). U is kept in float32 where it can:
    while the parts of P⁻¹ differ by no more than 1e5, its rounding stays within a few hundredths of the smallest.

    Parameters
    ----------
    F : array of shape (n, r)
        The factor, in NumPy or on a device, where U is then kept.
    shifts : float or array-like of shape (t,)
        λ of each column, all positive.
    rest : float, optional
        ρ; the smallest s where not given, and 0 for the inverse of FFᵀ + λI.
    quiet : callable, optional
        Gives a context in which BLAS has one thread, such as ``A.session``: with two, eigenvectors of 1,600 columns
        take three times as long on a machine that is not idle.

    Attributes
    ----------
    values : ndarray
        Eigenvalues s of FFᵀ that are not rounding, in descending order.
    rank : int
        How many there are.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.preconditioners import Nystrom
    >>> F = np.array([[1.0], [1.0]])
    >>> Nystrom(F, 2.0, rest=0.0)(np.array([[4.0], [0.0]])).round(6).ravel().tolist()  # (FFᵀ + 2I) x = (4, 0)
    [1.5, -0.5]
    """

    def __init__(self, F: Any, shifts: Any, rest: float | None = None, quiet: Quiet = nullcontext) -> None:
        F = to_array(F)
        self.shifts = np.atleast_1d(np.asarray(shifts, dtype=np.float64))
        wrong = self.shifts[~(np.isfinite(self.shifts) & (self.shifts > 0))]
        if len(wrong):
            raise ValueError(f"A preconditioner needs positive shifts, got {float(wrong[0])!r}.")
        with quiet():
            G = _gram(F)
            squares, V = eigh(to_numpy(G, float) if len(G) <= SMALL else G)
        V = like(F, V, float)
        kept = int(np.sum(squares > NOTHING * np.max(squares, initial=0.0)))
        self.values: Vector = squares[:kept].copy()
        self.rank = kept
        self.rest = rest if rest is not None else float(self.values[-1]) if kept else 0.0
        least = float(np.min(self.shifts, initial=np.inf)) + self.rest
        narrow = not kept or (self.values[0] <= NARROW * least and 1e-30 < least < 1e30)
        self.U: Array = _times(F, V[:, :kept] / like(V, np.sqrt(self.values), float), narrow)

    def __call__(self, R: Array, columns: Index | None = None) -> Array:
        """P⁻¹R with the shifts of these columns, of all where not given, where R lives; two passes over U."""
        lam = self.shifts if columns is None or len(self.shifts) == 1 else self.shifts[columns]
        U, xp, given = self.U, array_namespace(self.U), R
        R = R if is_numpy(R) == is_numpy(U) else like(U, R, float)
        lengths = xp.linalg.vector_norm(R, axis=0)
        V = R / xp.where(lengths > 0, lengths, xp.ones_like(lengths))
        s = self.values[:, None]
        weights = like(U, (s - self.rest) / (s + lam), float)
        C = weights * (U.T @ xp.astype(V, U.dtype, copy=False))
        V = V - U @ xp.astype(C, U.dtype, copy=False)
        found = V * (lengths / like(U, lam + self.rest, float))
        return found if is_numpy(found) == is_numpy(given) else like(given, found, float)


def scale_factor(F: Array, w: Any = None, centre: bool = False) -> Array:
    r"""The factor diag(√w) H F of diag(√w) H K Hᵀ diag(√w), from the factor F of K; H = I − 1w̄ᵀ where centred.

    Parameters
    ----------
    F : array of shape (n, r)
        With K ≈ FFᵀ, in NumPy or on a device.
    w : array of shape (n,), optional
        Weights; all ones where not given.
    centre : bool, default=False
        Whether H is there.

    Returns
    -------
    array of shape (n, r)
        Where F lives; F itself where there is nothing to do.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.preconditioners import scale_factor
    >>> scale_factor(np.array([[1.0], [4.0]]), np.array([4.0, 1.0]), centre=True).ravel().round(6).tolist()
    [-1.2, 2.4]
    """
    if w is None and not centre:
        return F
    xp = array_namespace(F)
    weights = np.ones(len(F)) if w is None else to_numpy(w, float)
    if centre:
        share = like(F, weights / (weights.sum() or 1.0), float)
        same = F.dtype == share.dtype
        with quiet_blas():
            mean = share @ F if same else sum(share[rows] @ wide(F[rows, :]) for rows in _blocks(F))
        out = F - xp.astype(mean, F.dtype, copy=False)
    else:
        out = xp.asarray(F, copy=True)
    if w is not None:
        out *= xp.astype(like(F, np.sqrt(weights), float), F.dtype, copy=False)[:, None]
    return out


def _gram(F: Array) -> Array:
    """FᵀF in float64, where F lives."""
    if not is_numpy(F) and F.dtype == array_namespace(F).float64:
        return F.T @ F
    if is_numpy(F):
        return dense.scatter(F, None, np.empty(0))[1]
    G = like(F, np.zeros((F.shape[1], F.shape[1])), float)
    for rows in _blocks(F):
        block = wide(F[rows, :])
        G += block.T @ block
    return G


def _times(F: Array, T: Array, narrow: bool) -> Array:
    """FT in float32 or float64, where F lives."""
    xp = array_namespace(F)
    U = xp.empty((F.shape[0], T.shape[1]), dtype=xp.float32 if narrow else xp.float64, device=device(F))
    for rows in _blocks(F):
        U[rows, :] = dense.product(F[rows, :], T) if is_numpy(F) else wide(F[rows, :]) @ T
    return U


def _blocks(F: Array) -> list[slice]:
    n, step = F.shape[0], ROWS if is_numpy(F) else max(1, BLOCK // (8 * max(1, F.shape[1])))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]
