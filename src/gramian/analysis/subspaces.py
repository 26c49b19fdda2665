"""Comparing configurations: angles between subspaces, distances, and Procrustes rotations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import orth

from gramian.analysis._cards import ground
from gramian.analysis._elements import text_table
from gramian.analysis._scored import as_matrix
from gramian.analysis._weights import frequencies

__all__ = ["METRICS", "Procrustes", "principal_angles", "procrustes", "subspace_distance"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

METRICS = ("chordal", "geodesic", "projection")
BATCH = 2**20  # numbers of permuted rows held at a time


@dataclass(frozen=True, eq=False, repr=False)
class Procrustes:
    """How one configuration is moved onto another: B ≈ scale · A R + 1tᵀ.

    Attributes
    ----------
    rotation : ndarray of shape (k, k)
        R, orthogonal.
    scale : float
        Not negative.
    translation : ndarray of shape (k,)
        t.
    residual : float
        Σ w‖b − (scale · aR + t)‖².
    r_squared : float
        1 − residual/Σ w‖b − b̄‖² (about 0 without translation); 1 is a perfect fit.
    correlation : float
        t₀ = √(1 − D), D the part of Σ w‖b − b̄‖² that the best *scaled* fit leaves over: from 0 to 1, the same whichever
        of the two is moved.
    p_value : float
        Share of random permutations of the rows of A, and the data themselves as one more, with a t₀ as large; NaN
        where none were asked for.
    """

    rotation: Matrix
    scale: float
    translation: Vector
    residual: float
    r_squared: float
    correlation: float
    p_value: float

    def apply(self, A: Any) -> Matrix:
        """Move rows as A was moved."""
        return np.asarray(self.scale * (np.asarray(A, dtype=np.float64) @ self.rotation) + self.translation)

    def table(self) -> dict[str, Any]:
        """Return rotation and translation as columns, ready for ``pandas.DataFrame``."""
        k = len(self.rotation)
        names = [*(f"rotation{j}" for j in range(k)), "translation"]
        both = np.vstack([self.rotation, self.translation])
        return {"name": names} | {f"axis{j}": both[:, j] for j in range(k)}

    def __repr__(self) -> str:
        head = f"Procrustes: scale {self.scale:.4g}, residual {self.residual:.4g}, R² {self.r_squared:.4g}"
        test = "" if math.isnan(self.p_value) else f" (p = {self.p_value:.3g})"
        return f"{head}, correlation {self.correlation:.4g}{test}\n{text_table(self.table())}"


def principal_angles(A: Any, B: Any) -> Vector:
    r"""Principal angles between two subspaces, smallest first.

    .. math:: \cos\theta_1 = \max_{u\in\mathrm{span}A,\,v\in\mathrm{span}B} u^Tv,\quad\text{and so on, orthogonally}

    for unit u and v. With orthonormal bases U and W the cosines are the singular values of UᵀW and the sines those of
    W − UUᵀW (Björck and Golub 1973). Cosines say nothing of small angles, and sines nothing of those near π/2; the
    arc tangent of both has every angle right to rounding.

    Parameters
    ----------
    A, B : PCA or array-like of shape (p, k)
        Fitted models, whose components span the subspaces, or bases as columns, independent or not.

    Returns
    -------
    ndarray of shape (min(dim A, dim B),)
        Angles in radians, from 0 to π/2.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis.subspaces import principal_angles
    >>> plane = np.eye(3)[:, :2]
    >>> tilted = np.array([[1, 0], [0, np.cos(1e-9)], [0, np.sin(1e-9)]])
    >>> principal_angles(plane, tilted)
    array([0.e+00, 1.e-09])
    """
    U, W = _basis(A, "A"), _basis(B, "B")
    if len(U) != len(W):
        raise ValueError(f"A lies in {len(U)} dimensions and B in {len(W)}.")
    W, U = sorted((orth(U), orth(W)), key=lambda Q: int(Q.shape[1]))  # the smaller one is projected on the larger
    C = U.T @ W
    cosines = np.linalg.svd(C, compute_uv=False)
    sines = np.linalg.svd(W - U @ C, compute_uv=False)[::-1]
    return np.asarray(np.arctan2(sines, cosines))


def subspace_distance(A: Any, B: Any, metric: str = "chordal") -> float:
    r"""Distance between two subspaces of the same dimension.

    ===========  =============================================  ==========================
    metric       formula                                        range
    ===========  =============================================  ==========================
    chordal      :math:`\sqrt{\sum\sin^2\theta_i}               0 to :math:`\sqrt k`
                 = \|P_A-P_B\|_F/\sqrt2`
    projection   :math:`\sin\theta_{max} = \|P_A-P_B\|_2`       0 to 1
    geodesic     :math:`\sqrt{\sum\theta_i^2}`                  0 to :math:`\sqrt k\,\pi/2`
    ===========  =============================================  ==========================

    Parameters
    ----------
    A, B : PCA or array-like of shape (p, k)
        As for :func:`principal_angles`.
    metric : {"chordal", "projection", "geodesic"}, default="chordal"
        Which.

    Returns
    -------
    float
        The distance; 0 where the subspaces are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis.subspaces import subspace_distance
    >>> subspace_distance(np.eye(3)[:, :2], np.eye(3)[:, 1:])
    1.0
    """
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(METRICS)}; got {metric!r}.")
    k, m = (int(np.linalg.matrix_rank(_basis(each, name))) for each, name in ((A, "A"), (B, "B")))
    if k != m:
        raise ValueError(f"A has dimension {k} and B {m}: distances are between subspaces of the same dimension.")
    angles = principal_angles(A, B)
    if metric == "geodesic":
        return float(np.linalg.norm(angles))
    sines = np.sin(angles)
    return float(np.linalg.norm(sines)) if metric == "chordal" else float(sines.max())


def procrustes(
    A: Any,
    B: Any,
    *,
    scale: bool = True,
    translate: bool = True,
    reflect: bool = True,
    sample_weight: Any = None,
    n_permutations: int = 0,
    random_state: int | None = None,
) -> Procrustes:
    r"""Move one configuration onto another as well as a similarity can.

    .. math:: \min_{R^TR=I,\;s\ge0,\;t}\ \sum_i w_i\|s\,a_iR + t - b_i\|^2

    With :math:`A_0^TWB_0 = P\Sigma Q^T` of the centred configurations, R = PQᵀ, s = tr Σ/‖A₀‖² (Schönemann and Carroll
    1970). Scores of two PCAs can be compared only after this, as components may swap, turn and change sign.

    :math:`t_0 = \mathrm{tr}\,\Sigma/(\|A_0\|\|B_0\|) = \sqrt{1-D}` is the Procrustes correlation with which Wang et al.
    (Stat. Appl. Genet. Mol. Biol. 9, 13, 2010) compare maps of genes with maps of places. Rows that are permuted at
    random tell how large it gets by chance; the test takes rows as exchangeable, as people of one place are not quite.

    Parameters
    ----------
    A, B : array-like of shape (n, k)
        Configurations of the same rows; A is moved.
    scale, translate, reflect : bool, default=True
        Whether A may be stretched, shifted and mirrored.
    sample_weight : array-like of shape (n,), optional
        Frequencies of the rows.
    n_permutations : int, default=0
        Permute the rows of A so often and give a p-value. Not with weights: such rows cannot change places.
    random_state : int, optional
        Seed of the permutations; None is a fixed one.

    Returns
    -------
    Procrustes
        The movement and what it leaves over.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis.subspaces import procrustes
    >>> A = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> B = 3 * A @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + [5.0, 7.0]
    >>> fit = procrustes(A, B)
    >>> round(fit.scale, 9), fit.translation.round(9), round(fit.r_squared, 9)
    (3.0, array([5., 7.]), 1.0)
    """
    if n_permutations < 0 or (n_permutations and sample_weight is not None):
        raise ValueError("n_permutations must not be negative, and needs rows without sample_weight.")
    (left, _), (right, _) = as_matrix(A, "A"), as_matrix(B, "B")
    if left.shape != right.shape:
        raise ValueError(
            f"A has shape {left.shape} and B {right.shape}: they must place the same rows in as many axes."
        )
    w = frequencies(sample_weight, len(left))
    centre = w / w.sum() if translate else 0.0 * w
    a, b = centre @ left, centre @ right
    root = np.sqrt(w)[:, None]
    A0, B0 = root * (left - a), root * (right - b)
    R, gain = _orthogonal(A0.T @ B0, reflect)
    size, total = float(np.sum(A0**2)), float(np.sum(B0**2))
    if size == 0.0:
        raise ValueError("All rows of A are the same point: there is nothing to rotate.")
    s = max(gain, 0.0) / size if scale else 1.0
    residual = float(np.sum((s * A0 @ R - B0) ** 2))
    r_squared = 1.0 - residual / total if total else float(residual == 0.0)
    t0 = min(max(gain, 0.0) / math.sqrt(size * total), 1.0) if total else 0.0
    p_value = _permuted(A0, B0, gain, reflect, n_permutations, random_state) if n_permutations else math.nan
    return Procrustes(R, s, b - s * a @ R, residual, r_squared, t0, p_value)


def _permuted(A0: Matrix, B0: Matrix, gain: float, reflect: bool, count: int, seed: int | None) -> float:
    """Share of permutations of A's rows, the identity being one more, that gain as much."""
    rng, (n, k) = np.random.default_rng(0 if seed is None else seed), A0.shape
    together = max(1, BATCH // (n * k))
    larger = 0
    for start in range(0, count, together):
        orders = [rng.permutation(n) for _ in range(min(together, count - start))]
        C = np.swapaxes(A0[np.stack(orders)], 1, 2) @ B0
        sigma = np.linalg.svd(C, compute_uv=False)
        if not reflect:
            sigma[np.linalg.det(C) < 0, -1] *= -1.0
        larger += int(np.sum(sigma.sum(axis=1) >= gain * (1 - 1e-12)))
    return (1 + larger) / (1 + count)


def _orthogonal(C: Matrix, reflect: bool) -> tuple[Matrix, float]:
    """Return the orthogonal R of largest tr RᵀC, and that trace; a rotation where no mirror is allowed."""
    P, sigma, Qt = np.linalg.svd(C)
    turn = np.ones(len(sigma))
    if not reflect and np.linalg.det(P @ Qt) < 0:
        turn[-1] = -1.0
    return np.asarray((P * turn) @ Qt), math.fsum(sigma * turn)


def _basis(A: Any, name: str) -> Matrix:
    """Columns that span the subspace."""
    A = ground(A)
    columns = np.asarray(A.components_, dtype=np.float64).T if hasattr(A, "components_") else as_matrix(A, name)[0]
    if not columns.any():
        raise ValueError(f"{name} spans nothing: its columns are 0.")
    return np.asarray(columns)
