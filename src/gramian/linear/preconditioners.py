r"""The Nyström preconditioner: (FFᵀ + λI)⁻¹ from a factor of low rank, a different λ for each column."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

__all__ = ["Nystrom", "dressed_factor", "first_rank", "largest_rank", "pays_to_double"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Quiet = Callable[[], AbstractContextManager[None]]

ROWS = 4096  # of a block of F or U
NARROW = 1e5  # largest ratio of the parts of P⁻¹ for which U is kept in float32
NOTHING = 1e-13  # eigenvalues of FᵀF below this share of the largest are rounding
# seconds, roughly, on two cores: their ratio is what counts
PRODUCT = 0.45e-9  # an entry of K in a product in float32
FACTOR = 0.12e-9  # n·r² of a factor of rank r: pivoted Cholesky, FᵀF, and U


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
    F : ndarray of shape (n, r)
        The factor.
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
        F = np.asarray(F)
        self.shifts = np.atleast_1d(np.asarray(shifts, dtype=np.float64))
        wrong = self.shifts[~(np.isfinite(self.shifts) & (self.shifts > 0))]
        if len(wrong):
            raise ValueError(f"A preconditioner needs positive shifts, got {float(wrong[0])!r}.")
        G = _gram(F)
        with quiet():
            squares, V = scipy.linalg.eigh(G, driver="evd", check_finite=False)
        squares, V = squares[::-1], V[:, ::-1]
        kept = int(np.sum(squares > NOTHING * np.max(squares, initial=0.0)))
        self.values: Vector = squares[:kept].copy()
        self.rank = kept
        self.rest = rest if rest is not None else float(self.values[-1]) if kept else 0.0
        least = float(np.min(self.shifts, initial=np.inf)) + self.rest
        narrow = not kept or (self.values[0] <= NARROW * least and 1e-30 < least < 1e30)
        self.U: npt.NDArray[Any] = np.empty((len(F), kept), np.float32 if narrow else np.float64)
        T = V[:, :kept] / np.sqrt(self.values)
        for rows in _blocks(len(F)):
            self.U[rows] = F[rows] @ T

    def __call__(self, R: Matrix, columns: Index | None = None) -> Matrix:
        """P⁻¹R with the shifts of these columns, of all where not given; two passes over U."""
        lam = self.shifts if columns is None or len(self.shifts) == 1 else self.shifts[columns]
        lengths = np.linalg.norm(R, axis=0)
        V = R / np.where(lengths > 0, lengths, 1.0)
        s = self.values[:, None]
        C = (s - self.rest) / (s + lam) * (self.U.T @ V.astype(self.U.dtype))
        V -= self.U @ C.astype(self.U.dtype)
        return np.asarray(V * (lengths / (lam + self.rest)))


def dressed_factor(F: Matrix, w: Vector | None = None, centre: bool = False) -> Matrix:
    r"""The factor diag(√w) H F of diag(√w) H K Hᵀ diag(√w), from the factor F of K; H = I − 1w̄ᵀ where centred.

    Parameters
    ----------
    F : ndarray of shape (n, r)
        With K ≈ FFᵀ.
    w : ndarray of shape (n,), optional
        Weights; all ones where not given.
    centre : bool, default=False
        Whether H is there.

    Returns
    -------
    ndarray of shape (n, r)
        F itself where there is nothing to do.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.preconditioners import dressed_factor
    >>> dressed_factor(np.array([[1.0], [4.0]]), np.array([4.0, 1.0]), centre=True).ravel().round(6).tolist()
    [-1.2, 2.4]
    """
    if w is None and not centre:
        return F
    share = np.full(len(F), 1.0 / max(1, len(F))) if w is None else w / w.sum()
    out = F - share @ F if centre else F.copy()
    if w is not None:
        out *= np.sqrt(w)[:, None]
    return out


def first_rank(n: int, products: float = 3.0) -> int:
    """The rank to begin with: its factor costs as much as a few products with K.

    Examples
    --------
    >>> from gramian.linear.preconditioners import first_rank
    >>> first_rank(50_000), first_rank(10_000), first_rank(100)
    (750, 335, 33)
    """
    return max(1, min(n, int(math.sqrt(products * n * PRODUCT / FACTOR))))


def largest_rank(n: int, nbytes: float = 2.0**31) -> int:
    """The rank for which F in float64, the same weighted and centred, and U in float32 take so many bytes.

    A sixth of them is spare.

    Examples
    --------
    >>> from gramian.linear.preconditioners import largest_rank
    >>> largest_rank(50_000), largest_rank(200_000), largest_rank(100)
    (1789, 447, 100)
    """
    return max(1, min(n, int(nbytes / (24 * max(1, n)))))


def pays_to_double(n: int, values: Vector, rate: float, steps_left: float, most: int | None = None) -> bool:
    r"""Whether a factor of twice the rank would save more than it costs.

    From the rate ρ at which residuals fall follows κ = ((1+ρ)/(1−ρ))², the condition number of the preconditioned
    system, as if conjugate gradients were no faster than their bound. κ − 1 = ‖K − FFᵀ‖/λ falls, with twice the rank,
    about as the eigenvalues s of FFᵀ do: by s at ¾ of the rank over s at ⅜ of it (the last ones are too small, because
    FFᵀ lies below K). That gives the rate to come and the products saved. A factor of rank 2r costs about 4nr²·0.12 ns,
    a product n²·0.45 ns: a decision that no clock takes part in, so that the same data give the same result.

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
    return (steps_left - after) * PRODUCT * n > FACTOR * larger**2


def _gram(F: Any) -> Matrix:
    """FᵀF in float64."""
    G = np.zeros((F.shape[1], F.shape[1]))
    for rows in _blocks(len(F)):
        block = np.asarray(F[rows], dtype=np.float64)
        G += block.T @ block
    return G


def _blocks(n: int) -> list[slice]:
    return [slice(i, min(i + ROWS, n)) for i in range(0, n, ROWS)]
