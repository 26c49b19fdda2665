r"""Coordinates of features in the span of a few centres: Φ(x) = L⁻¹k(Z, x) with LLᵀ = k(Z, Z).

Φ(x) holds the coordinates of the projection Pφ(x) in an orthonormal basis of the span, so that rows of Φ are no longer
than √k(x, x), what P leaves out is k(x, x) − ‖Φ(x)‖², and the penalty aᵀK_mm a of f = Σ a_j k(·, z_j) is ‖c‖² with
a = L⁻ᵀc. With an intercept the coefficients sum to 0: then features are taken about the mean of the centres,
k̃(x, z) = ⟨φ(x) − φ̄_Z, φ(z) − φ̄_Z⟩, and the span is that of all differences φ(z_i) − φ(z_j).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpstrf, dtrtri

__all__ = ["Whitening", "whiten"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EPS = float(np.finfo(np.float64).eps)
CUT = 50  # ε, and √m more: of a centre's own length, squared, this is what rounding may leave after the others


@dataclass(frozen=True, eq=False)
class Whitening:
    """The triangular factor of k(Z, Z), and what centring at the mean of the centres needs.

    Attributes
    ----------
    pivots : ndarray of shape (r,)
        The centres whose features span those of all, in order.
    L : ndarray of shape (r, r)
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
    L: Matrix
    m: int
    means: Vector | None
    noise: Vector
    size: float

    @property
    def rank(self) -> int:
        """Dimension of the span."""
        return len(self.pivots)

    def features(self, K: Matrix) -> Matrix:
        """Φᵀ, of shape (r, b), of b points from their rows k(x, Z), by triangular solves."""
        F = np.take(K, self.pivots, axis=1)
        if self.means is not None:
            F -= K.mean(axis=1)[:, None]
            F -= (self.means[self.pivots] - self.means.mean())[None, :]
        return np.asarray(dtrsm(1.0, self.L, F.T, lower=1, overwrite_b=1)) if self.rank else F.T

    def adjoint(self, S: Matrix) -> Matrix:
        """ΦᵀV from S = k(Z, X)V, both with as many columns as V, which sum to 0 where features are centred."""
        S = S if self.means is None else S - S.mean(axis=0)
        return self._solved(S[self.pivots], 0)

    def coefficients(self, c: Matrix) -> Matrix:
        """The a, of shape (m, t), with k(x, Z)a = Φ(x)·c but for a constant where features are centred."""
        a = np.zeros((self.m, c.shape[1]))
        a[self.pivots] = self._solved(c, 1)
        return a if self.means is None else a - a.mean(axis=0)

    def _solved(self, B: Matrix, trans: Literal[0, 1]) -> Matrix:
        return np.asarray(solve_triangular(self.L, B, lower=True, trans=trans, check_finite=False)) if len(B) else B

    def squares(self, own: Any, row_means: Any) -> Vector:
        """‖φ(x)‖², about the mean of the centres where features are centred, from k(x, x) and means of k(x, Z)."""
        return np.asarray(own if self.means is None else own - 2.0 * row_means + self.means.mean())

    def outside(self, K: Matrix, F: Matrix, own: Vector) -> Vector:
        """‖(I − P)φ(x)‖ of b points, from above: k̃(x, x) − ‖Φ(x)‖² with the rounding of both added."""
        rounding = 8 * EPS * (np.sqrt(own) + self.size) * (self.noise @ np.abs(F) + np.sqrt(own) + self.size)
        left = self.squares(own, K.mean(axis=1)) - np.einsum("ij,ij->j", F, F)
        return np.asarray(np.sqrt(np.maximum(left, 0.0) + rounding))


def whiten(Kmm: Matrix, centred: bool) -> Whitening:
    r"""Factor k(Z, Z) by Cholesky with pivots; directions that are rounding are cut.

    A pivot below (50 + √m)ε of k(z, z) is what rounding leaves of a centre that the others determine: dividing by it
    would make noise a feature. A larger one is kept, since other rows may have much of a direction that the centres
    have little of.

    Parameters
    ----------
    Kmm : ndarray of shape (m, m)
        k(Z, Z), symmetric.
    centred : bool
        Whether features are taken about the mean of the centres.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear._inducing.whitening import whiten
    >>> whiten(np.array([[4.0, 2.0, 4.0], [2.0, 2.0, 2.0], [4.0, 2.0, 4.0]]), False).rank
    2
    """
    own = np.diagonal(Kmm)
    if len(own) == 0 or np.min(own) < 0:
        raise ValueError(f"k(Z, Z) of the centres needs a diagonal that is not negative, got {own.min(initial=0.0):g}.")
    means = Kmm.mean(axis=1) if centred else None
    C = Kmm if means is None else Kmm - means[:, None] - means[None, :] + means.mean()
    scale = np.sqrt(own) + (0.0 if means is None else float(np.mean(np.sqrt(own))))  # rounding of C is in proportion
    scale[scale == 0] = 1.0
    unit = np.asfortranarray(C / scale[:, None] / scale[None, :])
    cut = (CUT + np.sqrt(len(own))) * EPS
    factor, order, rank, _ = dpstrf(unit, lower=1, tol=cut)
    pivots, rank = np.asarray(order, dtype=np.intp) - 1, min(int(rank), len(own) - centred)  # centred rows sum to 0
    _refuse_indefinite(np.diagonal(unit)[pivots] - np.sum(np.tril(factor)[:, :rank] ** 2, axis=1), pivots, rank, cut)
    L = np.asfortranarray(np.tril(factor[:rank, :rank]) * scale[pivots[:rank], None])
    noise = np.linalg.norm(np.tril(dtrtri(L, lower=1)[0]), axis=1) if rank else np.zeros(0)
    return Whitening(pivots[:rank], L, len(own), means, noise, float(np.sqrt(own.max())))


def _refuse_indefinite(left: Vector, pivots: npt.NDArray[np.intp], rank: int, cut: float) -> None:
    """Cut directions must be short; one of negative length cannot be."""
    worst = rank + int(np.argmin(left[rank:])) if rank < len(left) else 0
    if left[worst] < -1e3 * cut:
        raise ValueError(
            f"k(Z, Z) of the centres is not positive semidefinite: centre {pivots[worst]} has {left[worst]:.2g} of its "
            "own length left beside the others. Inducing points need a kernel that is an inner product."
        )
