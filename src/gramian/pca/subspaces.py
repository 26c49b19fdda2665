r"""Subspaces and configurations compared: principal angles, Procrustes, and the RV coefficient with its test.

Under random permutations π of the rows of one table RV is T = Σᵢⱼ aᵢⱼ b_π(i)π(j), with a and b the matrices of inner
products of the rows. Its moments need no permuting: they are bilinear in a few sums of products of entries of a, and of
b. Rows of a and b sum to 0, which leaves few such sums; subtracting multiples of the centring matrix, which
permutations do not change, makes their traces 0 and T's mean with them, which leaves fewer still, and makes moments
central at once. What is left are the formulas of Kazi-Aoual, Hitier, Sabatier and Lebreton (Comput. Stat. Data Anal.
20, 643, 1995).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import orth
from scipy.special import gammainc, gammaincc

from gramian.compute.factor import svd
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_weights
from gramian.inputs.devices import convert_to_numpy
from gramian.pca.interpret import as_matrix
from gramian.results.tables import Tabular

Array = npt.NDArray[np.float64]


METRICS = ("chordal", "geodesic", "projection")
BATCH = 2**20  # numbers of permuted rows held at a time


@dataclass(frozen=True, eq=False, repr=False)
class Procrustes(Tabular):
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

    rotation: Array
    scale: float
    translation: Array
    residual: float
    r_squared: float
    correlation: float
    p_value: float

    def apply(self, A: Any) -> Array:
        """Move rows as A was moved."""
        return np.asarray(self.scale * (np.asarray(A, dtype=np.float64) @ self.rotation) + self.translation)

    def table(self) -> dict[str, Any]:
        """Return rotation and translation as columns, ready for ``pandas.DataFrame``."""
        k = len(self.rotation)
        names = [*(f"rotation{j}" for j in range(k)), "translation"]
        both = np.vstack([self.rotation, self.translation])
        return {"name": names} | {f"axis{j}": both[:, j] for j in range(k)}

    def _title(self) -> str:
        head = f"Procrustes: scale {self.scale:.4g}, residual {self.residual:.4g}, R² {self.r_squared:.4g}"
        test = "" if math.isnan(self.p_value) else f" (p = {self.p_value:.3g})"
        return f"{head}, correlation {self.correlation:.4g}{test}"


@quiet_blas()
def principal_angles(A: Any, B: Any) -> Array:
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
    >>> from gramian.analysis import principal_angles
    >>> plane = np.eye(3)[:, :2]
    >>> tilted = np.array([[1, 0], [0, np.cos(1e-9)], [0, np.sin(1e-9)]])
    >>> principal_angles(plane, tilted)
    array([0.e+00, 1.e-09])
    """
    U, W = _read_basis(A, "A"), _read_basis(B, "B")
    if len(U) != len(W):
        raise ValueError(f"A lies in {len(U)} dimensions and B in {len(W)}.")
    W, U = sorted((orth(U), orth(W)), key=lambda Q: int(Q.shape[1]))  # the smaller one is projected on the larger
    C = U.T @ W
    cosines = np.linalg.svd(C, compute_uv=False)
    sines = np.linalg.svd(W - U @ C, compute_uv=False)[::-1]
    return np.asarray(np.arctan2(sines, cosines))


@quiet_blas()
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
    >>> from gramian.analysis import subspace_distance
    >>> subspace_distance(np.eye(3)[:, :2], np.eye(3)[:, 1:])
    1.0
    """
    check_choice("metric", metric, METRICS)
    k, m = (int(np.linalg.matrix_rank(_read_basis(each, name))) for each, name in ((A, "A"), (B, "B")))
    if k != m:
        raise ValueError(f"A has dimension {k} and B {m}: distances are between subspaces of the same dimension.")
    angles = principal_angles(A, B)
    if metric == "geodesic":
        return float(np.linalg.norm(angles))
    sines = np.sin(angles)
    return float(np.linalg.norm(sines)) if metric == "chordal" else float(sines.max())


@quiet_blas()
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
    >>> from gramian.analysis import procrustes
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
    w = check_weights(sample_weight, len(left))
    centre = w / w.sum() if translate else 0.0 * w
    origins = left[0], right[0]  # subtracted first, so that places far from 0 lose no digits
    if not translate:
        origins = 0.0 * left[0], 0.0 * right[0]
    D, E = left - origins[0], right - origins[1]
    root = np.sqrt(w)[:, None]
    A0, B0 = root * (D - centre @ D), root * (E - centre @ E)
    a, b = origins[0] + centre @ D, origins[1] + centre @ E
    # powers of two, so that squares neither overflow nor vanish, and nothing is rounded
    units = [2.0 ** math.frexp(float(np.abs(M).max(initial=0.0)))[1] for M in (A0, B0)]
    A0, B0 = A0 / units[0], B0 / units[1]
    P, sigma, Qt = svd(A0.T @ B0)
    turn = np.ones(len(sigma))
    if not reflect and np.linalg.det(P @ Qt) < 0:
        turn[-1] = -1.0
    R, gain = (P * turn) @ Qt, math.fsum(sigma * turn)  # the R of largest tr RᵀA₀ᵀB₀, and that trace
    size, total = float(np.sum(A0**2)), float(np.sum(B0**2))
    if size == 0.0:
        raise ValueError("All rows of A are the same point: there is nothing to rotate.")
    s = max(gain, 0.0) / size if scale else units[0] / units[1]
    residual = float(np.sum((s * A0 @ R - B0) ** 2))
    r_squared = 1.0 - residual / total if total else float(residual == 0.0)
    t0 = min(max(gain, 0.0) / math.sqrt(size * total), 1.0) if total else 0.0
    p_value = _count_better(A0, B0, gain, reflect, n_permutations, random_state) if n_permutations else math.nan
    s = s / units[0] * units[1] if scale else 1.0
    return Procrustes(R, s, b - s * a @ R, residual * units[1] * units[1], r_squared, t0, p_value)


def _count_better(A0: Array, B0: Array, gain: float, reflect: bool, count: int, seed: int | None) -> float:
    """Share of permutations of A's rows, the identity being one more, that gain as much."""
    rng, together, larger = np.random.default_rng(0 if seed is None else seed), max(1, BATCH // A0.size), 0
    for start in range(0, count, together):
        orders = [rng.permutation(len(A0)) for _ in range(min(together, count - start))]
        C = np.swapaxes(A0[np.stack(orders)], 1, 2) @ B0
        sigma = np.linalg.svd(C, compute_uv=False)
        if not reflect:
            sigma[np.linalg.det(C) < 0, -1] *= -1.0
        larger += int(np.sum(sigma.sum(axis=1) >= gain * (1 - 1e-12)))
    return (1 + larger) / (1 + count)


def _read_basis(A: Any, name: str) -> Array:
    """Columns that span the subspace."""
    A = convert_to_numpy(A)
    columns = np.asarray(A.components_, dtype=np.float64).T if hasattr(A, "components_") else as_matrix(A, name)[0]
    if not columns.any():
        raise ValueError(f"{name} spans nothing: its columns are 0.")
    return np.asarray(columns)


FEW = 6  # rows whose permutations (720) are all tried
TILE = 512  # rows of a matrix of inner products held at a time
ROUNDING = 1e-24  # relative variance that rounding makes of none


@dataclass(frozen=True, eq=False, repr=False)
class RV(Tabular):
    """The RV coefficient of two tables, and its distribution when rows of one are permuted at random.

    Attributes
    ----------
    rv : float
        From 0 (no column of one correlates with any of the other) to 1 (the same configuration, up to rotation and
        scale).
    adjusted : float
        (RV − mean)/(1 − mean): 0 on average by chance, 1 at most. NaN where the mean is not known.
    mean, variance, skewness : float
        Moments of RV over all permutations, exact; NaN with weights or without centring.
    standardized : float
        (RV − mean)/√variance.
    p_value : float
        Chance of an RV as large: the share of the permutations tried or, where none were asked for, of a Pearson type
        III (shifted gamma) distribution with these moments.
    method : str
        How the p-value was found.
    """

    rv: float
    adjusted: float
    mean: float
    variance: float
    skewness: float
    standardized: float
    p_value: float
    method: str

    def table(self) -> dict[str, Any]:
        """Return one line, ready for ``pandas.DataFrame``."""
        return {name: [value] for name, value in vars(self).items()}

    def _shown(self) -> dict[str, Any]:
        return {"name": list(vars(self)), "value": list(vars(self).values())}


@quiet_blas()
def rv_coefficient(
    X: Any,
    Y: Any,
    *,
    sample_weight: Any = None,
    centre: bool = True,
    n_permutations: int = 0,
    random_state: int | None = None,
) -> RV:
    r"""Escoufier's RV coefficient of two tables of the same rows, with a test.

    .. math:: \mathrm{RV} = \frac{\mathrm{tr}\,S_{XY}S_{YX}}{\sqrt{\mathrm{tr}\,S_{XX}^2\;\mathrm{tr}\,S_{YY}^2}}

    A squared correlation between whole tables: for two single columns it is r². By chance it is not 0 on average, and
    comes near 1 with many columns and few rows, so read it next to its mean, or adjusted.

    Parameters
    ----------
    X, Y : array-like, sparse matrix, frame, path or Source of shape (n, p), (n, q)
        The tables; held in memory. The moments take time proportional to n²(p + q).
    sample_weight : array-like of shape (n,), optional
        Frequencies of the rows. There is no test then: rows of different weight cannot change places.
    centre : bool, default=True
        Whether columns are centred. Without, only permutations give a test.
    n_permutations : int, default=0
        Permute the rows so often, and count the permutation that is the data itself as one more. Up to 6 rows all
        permutations are tried, whatever is asked for.
    random_state : int, optional
        Seed of the permutations; None is a fixed one.

    Returns
    -------
    RV
        The coefficient and its test.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian.analysis import rv_coefficient
    >>> X = load_iris().data
    >>> found = rv_coefficient(X[:, :2], X[:, 2:])
    >>> round(found.rv, 4), round(found.mean, 4), found.p_value < 1e-20
    (0.7703, 0.0083, True)
    """
    (left, _), (right, _) = as_matrix(X, "X"), as_matrix(Y, "Y")
    if len(left) != len(right):
        raise ValueError(f"X has {len(left)} rows and Y has {len(right)}.")
    if n_permutations < 0 or (n_permutations and sample_weight is not None):
        raise ValueError("n_permutations must not be negative, and needs rows without sample_weight.")
    w = check_weights(sample_weight, len(left))
    A, B = _normalise(left, w, centre, "X"), _normalise(right, w, centre, "Y")
    rv, n = float(np.sum((A.T @ B) ** 2)), len(A)

    drawn = np.empty(0)  # RV of permuted rows
    every = n <= FEW or math.factorial(min(n, 20)) <= n_permutations
    if sample_weight is None and (every or n_permutations):
        rng = np.random.default_rng(0 if random_state is None else random_state)
        orders = permutations(range(n)) if every else (rng.permutation(n) for _ in range(n_permutations))
        drawn = np.array([np.sum((A[list(order)].T @ B) ** 2) for order in orders])

    mean = variance = skewness = standardized = math.nan
    if centre and sample_weight is None:
        mean = float(np.sum(A**2)) * float(np.sum(B**2)) / (n - 1)
        exact = n <= FEW  # where all permutations were tried, their moments are at hand
        variance, third = (float(np.mean((drawn - mean) ** m)) for m in (2, 3)) if exact else _central_moments(A, B)
        if variance > ROUNDING * mean**2:
            standardized, skewness = (rv - mean) / math.sqrt(variance), third / variance**1.5
        else:  # every permutation gives the same
            variance = 0.0

    larger = int(np.count_nonzero(drawn >= rv * (1 - 1e-12)))
    if len(drawn) and every:
        p_value, method = larger / len(drawn), f"all {len(drawn)} permutations"
    elif len(drawn):
        p_value, method = (1 + larger) / (1 + n_permutations), f"{n_permutations} random permutations"
    elif math.isnan(standardized):
        p_value, method = math.nan, "none"
    else:
        p_value, method = _pearson_three(standardized, skewness), "Pearson type III from the exact moments"
    adjusted = (rv - mean) / (1.0 - mean) if mean < 1.0 else math.nan
    return RV(rv, adjusted, mean, variance, skewness, standardized, p_value, method)


def _normalise(X: Array, w: Array, centre: bool, name: str) -> Array:
    """Weighted, centred rows with ‖XᵀX‖ = 1, so that RV = ‖XᵀY‖²."""
    rounding = 2.0**-46 * float(np.abs(X).max())  # a constant's mean is rounded
    D = X - X[0] if centre else X  # exact where columns lie far from 0 and vary little
    D = np.sqrt(w)[:, None] * (D - w @ D / w.sum() if centre else D)
    peak = float(np.abs(D).max())
    if not peak > rounding:
        raise ValueError(f"The rows of {name} are all the same: there is no RV coefficient.")
    D = D / peak
    sigma = np.linalg.svd(D, compute_uv=False)
    return np.asarray(D / np.sqrt(np.linalg.norm(sigma**2)))


def _pearson_three(z: float, skewness: float) -> float:
    """Upper tail at z of the standardised gamma distribution of this skewness; normal where that is 0."""
    if abs(skewness) < 1e-7:
        return 0.5 * math.erfc(z / math.sqrt(2))
    shape = 4.0 / skewness**2
    x = max(shape + 2.0 * z / skewness, 0.0)
    return float(gammaincc(shape, x) if skewness > 0 else gammainc(shape, x))


def _central_moments(A: Array, B: Array) -> tuple[float, float]:
    """Second and third central moment of ‖AᵀPB‖² over all permutations P of more than five rows."""
    n = float(len(A))
    (d, s, *left), (e, t, *right) = _sum_products(A), _sum_products(B)
    second = n * (n + 1) / (n - 1) * d * e - 2 * (d * t + s * e) + 2 * (n - 2) / n * s * t
    # Kazi-Aoual et al., equation for E T³ with traces of 0; the matrix is symmetric
    upper = np.array(
        [
            [n**2 * (n + 1) * (n**2 + 15 * n - 4), -4 * n * (n - 1) * (n**2 - n + 4), -12 * n * (n - 1) ** 2 * (n + 4),
             -6 * n * (n - 1) * (n**2 - n + 4), 16 * n * (n - 1) * (n - 2)],
            [0, 4 * (n**4 - 8 * n**3 + 19 * n**2 - 4 * n - 16), 24 * (n - 2) * (n**2 - n - 4), 24 * (n**2 - n - 4),
             -8 * (3 * n**2 - 15 * n + 16)],
            [0, 0, 12 * (n - 2) * (n + 4) * (n**2 - 3 * n + 6), 24 * (n**3 - 2 * n**2 - 3 * n + 12),
             -24 * (n - 2) * (n**2 - 5 * n + 8)],
            [0, 0, 0, 6 * (n - 2) * (n**3 - 6 * n**2 + 9 * n + 12), -24 * (n**2 - 5 * n + 8)],
            [0, 0, 0, 0, 8 * (n**3 - 9 * n**2 + 26 * n - 22)],
        ]
    )  # fmt: skip
    third = float(left @ (upper + np.triu(upper, 1).T) @ right)
    return second / ((n - 2) * (n - 3)), third / math.perm(len(A), 6)


def _sum_products(X: Array) -> list[float]:
    """Σaᵢᵢ², Σaᵢⱼ², Σaᵢᵢ³, Σaᵢⱼ³, Σaᵢⱼ²aⱼⱼ, Σaᵢᵢaᵢⱼaⱼⱼ, tr a³ of a = XXᵀ − c(I − 11ᵀ/n), c such that tr a = 0."""
    n = len(X)
    c = float(np.sum(X**2)) / (n - 1)
    sigma = np.linalg.svd(X, compute_uv=False)[: n - 1]
    eigenvalues = np.concatenate([sigma**2, np.zeros(n - 1 - len(sigma))]) - c
    d = np.sum(X**2, axis=1) - c * (1 - 1 / n)
    cubes = mixed = squares = 0.0
    for start in range(0, n, TILE):
        a = X[start : start + TILE] @ X.T + c / n
        rows = np.arange(len(a))
        a[rows, start + rows] -= c
        cubes += float(np.sum(a**3))
        mixed += float(d[start : start + TILE] @ a @ d)
        squares += float(np.sum(a**2 @ d))
    powers = [float(np.sum(x**m)) for x, m in ((d, 2), (eigenvalues, 2), (d, 3), (eigenvalues, 3))]
    return [*powers[:3], cubes, squares, mixed, powers[3]]
