r"""Coordinates of features in the span of a few centres: Φ(x) = L⁻¹k(Z, x) with LLᵀ = k(Z, Z).

Φ(x) holds the coordinates of the projection Pφ(x) in an orthonormal basis of the span, so that rows of Φ are no longer
than √k(x, x), what P leaves out is k(x, x) − ‖Φ(x)‖², and the penalty aᵀK_mm a of f = Σ a_j k(·, z_j) is ‖c‖² with
a = L⁻ᵀc. With an intercept the coefficients sum to 0: then features are taken about the mean of the centres,
k̃(x, z) = ⟨φ(x) − φ̄_Z, φ(z) − φ̄_Z⟩, and the span is that of all differences φ(z_i) − φ(z_j).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf, dtrtri

from gramian.linear._places import cholesky, dots, lengths, numbers, on_host, placed, take, triangular

__all__ = ["Whitening", "whiten"]

Array = Any  # of NumPy, or a tensor where k(X, Z) lives
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
CUT = 50  # ε, and √m more: of a centre's own length, squared, this is what rounding may leave after the others


@dataclass(frozen=True, eq=False)
class Whitening:
    """The triangular factor of k(Z, Z), and what centring at the mean of the centres needs.

    L may be a tensor on the device of k(X, Z), all else is NumPy's. What a method returns lives where its argument is.

    Attributes
    ----------
    pivots : ndarray of shape (r,)
        The centres whose features span those of all, in order.
    L : array of shape (r, r)
        Lower triangular, LLᵀ = k(Z, Z) at the pivots.
    m : int
        Number of centres.
    means : ndarray of shape (m,) or None
        ⟨φ̄_Z, φ(z_j)⟩ where features are centred.
    noise : ndarray of shape (r,)
        How much rounding of k(Z, x), in units of its size, each coordinate picks up.
    size : float
        √k(z, z) of the longest centre.
    """

    pivots: npt.NDArray[np.intp]
    L: Array
    m: int
    means: Vector | None
    noise: Vector
    size: float

    @property
    def rank(self) -> int:
        """Dimension of the span."""
        return len(self.pivots)

    def features(self, K: Array) -> Array:
        """Φᵀ, of shape (r, b), of b points from their rows k(x, Z), by triangular solves."""
        shift = None if self.means is None else self.means[self.pivots] - self.means.mean()
        if not on_host(K):
            F = take(K, self.pivots)
            F = F if shift is None else F - (placed(means_of(K), K)[:, None] + placed(shift, K)[None, :])
            return triangular(self.L, F.T)
        F = np.take(K, self.pivots, axis=1)
        if shift is not None:
            F -= K.mean(axis=1)[:, None]
            F -= shift[None, :]
        return np.asarray(dtrsm(1.0, self.L, F.T, lower=1, overwrite_b=1)) if self.rank else F.T

    def adjoint(self, S: Matrix) -> Matrix:
        """ΦᵀV from S = k(Z, X)V, both with as many columns as V, which sum to 0 where features are centred."""
        S = S if self.means is None else S - S.mean(axis=0)
        return np.asarray(triangular(self.L, S[self.pivots]))

    def coefficients(self, c: Matrix) -> Matrix:
        """The a, of shape (m, t), with k(x, Z)a = Φ(x)·c but for a constant where features are centred."""
        a = np.zeros((self.m, c.shape[1]))
        a[self.pivots] = triangular(self.L, c, transposed=True)
        return a if self.means is None else a - a.mean(axis=0)

    def squares(self, own: Any, row_means: Any) -> Vector:
        """‖φ(x)‖², about the mean of the centres where features are centred, from k(x, x) and means of k(x, Z)."""
        return np.asarray(own if self.means is None else own - 2.0 * row_means + self.means.mean())

    def outside(self, K: Array, F: Array, own: Vector) -> Vector:
        """‖(I − P)φ(x)‖ of b points, in NumPy, from above: k̃(x, x) − ‖Φ(x)‖² with the rounding of both added."""
        sizes = numbers(placed(self.noise, F) @ abs(F))
        rounding = 8 * EPS * (np.sqrt(own) + self.size) * (sizes + np.sqrt(own) + self.size)
        left = self.squares(own, means_of(K)) - squares_of(F)
        return np.asarray(np.sqrt(np.maximum(left, 0.0) + rounding))

    def hosted(self) -> Whitening:
        """The same with L in NumPy: what a fitted model keeps."""
        return self if on_host(self.L) else replace(self, L=np.asfortranarray(numbers(self.L)))


def means_of(K: Array) -> Vector:
    """Means of rows, in NumPy."""
    return np.asarray(K.mean(axis=1) if on_host(K) else numbers(array_namespace(K).mean(K, axis=1)))


def squares_of(F: Array) -> Vector:
    """Squared lengths of columns, in NumPy."""
    return np.asarray(np.einsum("ij,ij->j", F, F) if on_host(F) else dots(F, F))


def whiten(Kmm: Array, centred: bool) -> Whitening:
    r"""Factor k(Z, Z) by Cholesky with pivots; directions that are rounding are cut.

    A pivot below (50 + √m)ε of k(z, z) is what rounding leaves of a centre that the others determine: dividing by it
    would make noise a feature. A larger one is kept, since other rows may have much of a direction that the centres
    have little of.

    On a device the centres are first taken in the order they come in, which is a good one of those chosen by pivoted
    Cholesky; where a pivot is too small for that, LAPACK chooses the order on the host: a third of m³ operations.

    Parameters
    ----------
    Kmm : array of shape (m, m)
        k(Z, Z), symmetric, in NumPy or on a device.
    centred : bool
        Whether features are taken about the mean of the centres.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear._inducing.whitening import whiten
    >>> whiten(np.array([[4.0, 2.0, 4.0], [2.0, 2.0, 2.0], [4.0, 2.0, 4.0]]), False).rank
    2
    """
    own = numbers(array_namespace(Kmm).linalg.diagonal(Kmm))
    if len(own) == 0 or np.min(own) < 0:
        raise ValueError(f"k(Z, Z) of the centres needs a diagonal that is not negative, got {own.min(initial=0.0):g}.")
    means = means_of(Kmm) if centred else None
    C = Kmm
    if means is not None:
        there = placed(means, Kmm)
        C = Kmm - there[:, None] - there[None, :] + float(means.mean())
    scale = np.sqrt(own) + (0.0 if means is None else float(np.mean(np.sqrt(own))))  # rounding of C is in proportion
    scale[scale == 0] = 1.0
    there = placed(scale, C)
    unit = C / there[:, None] / there[None, :]
    cut = (CUT + np.sqrt(len(own))) * EPS
    pivots, L = _in_order(unit, len(own) - centred, cut) or _pivoted(numbers(unit), centred, cut)
    L = (
        np.asfortranarray(L * scale[pivots, None])
        if on_host(Kmm)
        else placed(L, Kmm) * placed(scale[pivots, None], Kmm)
    )
    return Whitening(pivots, L, len(own), means, _noise(L), float(np.sqrt(own.max())))


def _in_order(unit: Array, rank: int, cut: float) -> tuple[npt.NDArray[np.intp], Array] | None:
    """The factor of a matrix on a device without pivots, if it shows the full rank; centred rows sum to 0."""
    if on_host(unit) or not rank:
        return None
    try:
        L = cholesky(unit[:rank, :rank])
    except np.linalg.LinAlgError:
        return None
    least = float(np.min(numbers(array_namespace(L).linalg.diagonal(L)))) ** 2
    return (np.arange(rank), L) if least > cut else None


def _pivoted(unit: Matrix, centred: bool, cut: float) -> tuple[npt.NDArray[np.intp], Matrix]:
    """The factor by LAPACK, in the order of its pivots, as far as they are not rounding."""
    unit = np.asfortranarray(unit)
    factor, order, rank, _ = dpstrf(unit, lower=1, tol=cut)
    pivots, rank = np.asarray(order, dtype=np.intp) - 1, min(int(rank), len(unit) - centred)  # centred rows sum to 0
    _refuse_indefinite(np.diagonal(unit)[pivots] - np.sum(np.tril(factor)[:, :rank] ** 2, axis=1), pivots, rank, cut)
    return pivots[:rank], np.tril(factor[:rank, :rank])


def _noise(L: Array) -> Vector:
    """Lengths of the rows of L⁻¹."""
    if not len(L):
        return np.zeros(0)
    if on_host(L):
        return np.asarray(np.linalg.norm(np.tril(dtrtri(L, lower=1)[0]), axis=1))
    return lengths(triangular(L, placed(np.eye(len(L)), L)).T)


def _refuse_indefinite(left: Vector, pivots: npt.NDArray[np.intp], rank: int, cut: float) -> None:
    """Cut directions must be short; one of negative length cannot be."""
    worst = rank + int(np.argmin(left[rank:])) if rank < len(left) else 0
    if left[worst] < -1e3 * cut:
        raise ValueError(
            f"k(Z, Z) of the centres is not positive semidefinite: centre {pivots[worst]} has {left[worst]:.2g} of its "
            "own length left beside the others. Inducing points need a kernel that is an inner product."
        )
