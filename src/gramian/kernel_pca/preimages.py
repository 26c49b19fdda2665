"""Pre-images of kernel PCA: rows whose features are near given points of feature space."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from gramian.inputs.checks import check_choice, check_integer
from gramian.kernels import Gaussian, Kernel, Linear, Polynomial
from gramian.kernels.base import as_points, is_sparse
from gramian.results import NumericalWarning, caller_level
from gramian.results.tables import Tabular

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]

METHODS = ("fixed-point", "mds", "regularised", "ridge")
NUMBERS = 4_000_000  # in one block of kernel rows
AFFORDABLE = 2e10  # operations that ‖P‖² may cost where no method needs it: half a second
NAMED = 5  # rows named in a note
TINY = 1e-250  # sums of weights below it have lost their digits to underflow
FLOOR = 1e-6  # of W relative to its terms: below it their signs, not their sizes, decide where z goes
SAME = 1e-10  # eigenvalues of CCᵀ below this part of the largest are directions without extent
LEAST = 0.01  # W counts as at least this part of Σ|ω|: where it has cancelled it is no curvature
ENOUGH = 0.5  # part of c‖step‖² by which J must fall
ROUNDING = 16 * float(np.finfo(np.float64).eps)
FAILURES = {  # why rows did not converge, and what to do
    "fixed-point": "the sum Σγk(z, x) in the denominator cancelled, vanished or changed sign, or the steps did not "
    "shrink. Use method='regularised' or a wider kernel.",
    "mds": "no point has such distances from all neighbours: P is further from them than any φ(z) can be. "
    "Use method='regularised' or a wider kernel.",
    "regularised": "the steps were still too long, or the kernel vanished at the start. Raise max_iter or tol.",
}


@dataclass(frozen=True, eq=False, repr=False)
class PreImages(Tabular):
    r"""Rows z whose features are near given points P of feature space, and how each search ended.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        z, always finite; the best point seen where the search did not converge.
    converged : ndarray of bool, shape (m,)
        Whether the row met the method's own test: a short enough step for the iterations, for "mds" distances that a
        point can have. "ridge" solves a linear system and always does.
    iterations : ndarray of int, shape (m,)
        Evaluations of the kernel row; 0 for the direct methods.
    objective : ndarray of shape (m,)
        :math:`\|\varphi(z)-P\|^2 = k(z,z)-2\sum_i\gamma_ik(z,x_i)+\gamma^TK\gamma`, without the last term where
        ``absolute`` is false.
    method : str
        How they were found.
    absolute : bool
        Whether the objective is the squared distance itself.
    notes : tuple of str
        What went wrong, for which rows, and what to try.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_pca.preimages import preimages
    >>> from gramian.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> preimages(Gaussian(0.5), X, np.full((1, 3), 1 / 3), method="fixed-point")
    Pre-images by fixed-point: 1 of 1 converged
      row  converged  iterations  ‖φ(z) − P‖²
      0          yes           7      0.07748
    """

    points: Array
    converged: Flags
    iterations: Index
    objective: Array
    method: str
    absolute: bool = True
    notes: tuple[str, ...] = field(default=())

    def table(self) -> dict[str, Any]:
        """Return one row for each point, ready for ``pandas.DataFrame``."""
        rows = {"row": np.arange(len(self.points)), "converged": self.converged}
        return rows | {"iterations": self.iterations, "objective": self.objective}

    def _title(self) -> str:
        return f"Pre-images by {self.method}: {int(self.converged.sum())} of {len(self.points)} converged"

    def _shown(self) -> dict[str, Any]:
        said = ["yes" if done else "NO" for done in self.converged]
        distance = "‖φ(z) − P‖²" if self.absolute else "‖φ(z) − P‖² − ‖P‖²"
        numbers = {"iterations": self.iterations, distance: self.objective}
        return {"row": np.arange(len(said)), "converged": said} | numbers

    def _remarks(self) -> list[str]:
        return [f"  note: {note}" for note in self.notes]


def preimages(
    kernel: Kernel,
    X: Any,
    G: Any,
    *,
    method: str = "regularised",
    start: Any = None,
    penalty: float = 0.01,
    n_neighbors: int = 10,
    tol: float = 1e-6,
    max_iter: int = 1000,
    products: Any = None,
    norms: Any = None,
    targets: Any = None,
    scores: Any = None,
    dual: Any = None,
) -> PreImages:
    r"""Find rows z with features near P = Σ_i γ_i φ(x_i), for many P at once.

    .. math:: \|\varphi(z)-P\|^2 = k(z,z) - 2\sum_i\gamma_ik(z,x_i) + \gamma^TK\gamma

    ============== ============================== ====================================================================
    method         kernels                        what it does
    ============== ============================== ====================================================================
    "fixed-point"  Gaussian, linear               Mika's iteration; may collapse, and says so
    "regularised"  Gaussian, polynomial, linear   lowers the distance plus λ‖z − z₀‖² at every step
    "mds"          Gaussian, odd powers, linear   Kwok and Tsang: places z by its distances from the nearest rows
    "ridge"        any                            a regression from scores to rows, learned by ``fit_ridge_inverse``
    ============== ============================== ====================================================================

    Work is done in float64, in blocks of rows, and only rows that are not finished go on.

    Parameters
    ----------
    kernel : Kernel
        k. A Gaussian may have one bandwidth for each feature.
    X : array or sparse matrix of shape (n, d)
        The training rows.
    G : array-like of shape (m, n)
        The coefficients γ, one row for each point P.
    method : str, default="regularised"
        See above.
    start : array-like of shape (m, d), optional
        Where to begin, and z₀: the noisy rows. Otherwise the training rows nearest to P in feature space.
    penalty : float, default=0.01
        Of "regularised": λ as a part of the curvature at z₀, about the part of the noise that is kept.
    n_neighbors : int, default=10
        Of "mds".
    tol : float, default=1e-6
        Length of the step at which a row is finished, in units of 1/√γ for the Gaussian, of the root mean square of ‖x‖
        for the others.
    max_iter : int, default=1000
        Most evaluations for each row.
    products : array-like of shape (m, n), optional
        ⟨P, φ(x_i)⟩ = (ΓK)_i, where it is known. It takes 2n²(m + d) operations otherwise, where it is needed.
    norms : array-like of shape (m,), optional
        ‖P‖² = γᵀKγ, where it is known.
    targets, scores, dual : array-like of shape (m, k), (n, k), (n, d), optional
        Of "ridge": the scores of the points, the scores of the training rows, and the dual coefficients.

    Returns
    -------
    PreImages
        The points, and for each whether it converged and how near it came.

    Warns
    -----
    NumericalWarning
        If some row did not converge.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_pca.preimages import preimages
    >>> from gramian.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = preimages(Gaussian(1.0), X, np.eye(3)[:1], start=[[0.3, 0.2]], penalty=0)
    >>> bool(found.converged.all()), np.abs(found.points).max() < 1e-5
    (True, np.True_)
    """
    check_choice("method", method, METHODS)
    if not 0 <= penalty < np.inf:
        raise ValueError(f"penalty must be a number from 0 on, got {penalty!r}.")
    if not 0 < tol < np.inf:
        raise ValueError(f"tol must be a positive number, got {tol!r}.")
    check_integer("n_neighbors", n_neighbors, 2)
    check_integer("max_iter", max_iter, 1)
    geometry = None if method == "ridge" else choose_geometry(kernel, X, method)
    kernel = kernel.resolved(X)
    G = _check_array("G", G)
    if G.ndim != 2 or G.shape[1] != X.shape[0]:
        raise ValueError(
            f"G must have a row for each point and a column for each of the {X.shape[0]} rows of X; got {G.shape}."
        )
    (m, n), d = G.shape, X.shape[1]
    products = None if products is None else _check_array("products", products, (m, n))
    norms = None if norms is None else _check_array("norms", norms, (m,))
    cheap = norms is None and 2.0 * n * n * (m + d) <= AFFORDABLE
    if products is None and (method == "mds" or cheap):
        products = np.hstack([G @ kernel(X, X[rows]) for rows in _blocks(n, n)])
    if norms is None and products is not None:
        norms = np.einsum("ij,ij->i", G, products)
    if geometry is None:
        ridge = {"targets": targets, "scores": scores, "dual": dual}
        missing = [name for name, value in ridge.items() if value is None]
        if missing:
            raise ValueError(f"method='ridge' needs {', '.join(missing)}: see fit_ridge_inverse.")
        points = ridge_points(kernel, scores, dual, targets)
        if len(points) != m:
            raise ValueError(f"targets has {len(points)} rows for {m} rows of coefficients G.")
        found = SearchResult(points, np.ones(m, dtype=bool), np.zeros(m, dtype=np.intp))
    else:
        begin = None
        if method != "mds":
            if start is not None:
                begin = _check_array("start", start, (m, d))
            else:  # the training rows nearest to P; where that is dear, those with the largest γ
                score = G if products is None else 2 * products - kernel.diagonal(X)
                begin = as_dense(X[np.argmax(score, axis=1)])
            begin = np.asarray(geometry.inward(begin))
        parts = []
        with np.errstate(over="ignore", invalid="ignore"):  # numbers that overflow on the way are steps not taken
            for rows in _blocks(m, n) or [slice(0, 0)]:
                if begin is None:
                    parts.append(local_mds(geometry, products[rows], norms[rows], n_neighbors))
                elif method == "fixed-point":
                    parts.append(fixed_point(geometry, G[rows], begin[rows], tol=tol, max_iter=max_iter))
                else:
                    parts.append(regularised(geometry, G[rows], begin[rows], penalty, tol=tol, max_iter=max_iter))
        found = SearchResult(*(np.concatenate(part) for part in zip(*parts, strict=True)))
        found = found._replace(points=geometry.outward(found.points))
    notes = []
    if not found.converged.all():
        lost = np.flatnonzero(~found.converged)
        named = ", ".join(map(str, lost[:NAMED])) + (", ..." if len(lost) > NAMED else "")
        notes.append(f"{len(lost)} of {m} pre-images did not converge (rows {named}): {FAILURES[method]}")
        warnings.warn(notes[-1], NumericalWarning, stacklevel=caller_level())
    objective = np.array(kernel.diagonal(found.points), dtype=np.float64)  # k(z, z) − 2Σ γ_i k(z, x_i) + ‖P‖²
    for rows in _blocks(m, n):
        objective[rows] -= 2 * np.einsum("ij,ij->i", G[rows], kernel(found.points[rows], X))
    if norms is None:
        notes.append("the objective is without ‖P‖², which would cost more than the search: give norms= to have it")
    else:
        objective = np.maximum(objective + norms, 0.0)
    return PreImages(*found, objective, method, norms is not None, tuple(notes))


class SearchResult(NamedTuple):
    """Points, whether each was found, and after how many steps."""

    points: Array
    converged: Flags
    iterations: Index


def _check_array(name: str, given: Any, shape: tuple[int, ...] | None = None) -> Array:
    """The values in float64, all finite, after a check of their shape."""
    values = as_dense(given)
    if shape is not None and values.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}, got {values.shape}.")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        place = tuple(bad[0].tolist())
        raise ValueError(f"{name} has {values[place]} at {place}; every number must be finite.")
    return values


def _blocks(m: int, n: int) -> list[slice]:
    step = max(1, NUMBERS // max(n, 1))
    return [slice(i, min(i + step, m)) for i in range(0, m, step)]


def fit_ridge_inverse(kernel: Kernel, scores: Any, X: Any, alpha: Any = 1.0) -> Array:
    """Return the dual coefficients B = (k(T, T) + αI)⁻¹X of the map from scores T to rows X.

    Parameters
    ----------
    kernel : Kernel
        Of the scores.
    scores : array-like of shape (n, k)
        T, the scores of the training rows.
    X : array-like of shape (n, d)
        The training rows.
    alpha : float, default=1.0
        α > 0 trades exactness on the training rows for smoothness; α/w for rows of weight w.

    Returns
    -------
    ndarray of shape (n, d)
        B, for :func:`ridge_points`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_pca.preimages import fit_ridge_inverse, ridge_points
    >>> from gramian.kernels import Gaussian
    >>> T, X = np.array([[0.0], [1.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> B = fit_ridge_inverse(Gaussian(1.0), T, X, alpha=1e-9)
    >>> ridge_points(Gaussian(1.0), T, B, T).round(6)
    array([[1., 2.],
           [3., 4.]])
    """
    T, rows = np.asarray(scores, dtype=np.float64), np.asarray(X, dtype=np.float64)
    if T.ndim != 2 or rows.ndim != 2 or len(T) != len(rows):
        raise ValueError(f"scores of shape {T.shape} and X of shape {rows.shape} must have the same number of rows.")
    if not np.all((np.asarray(alpha) >= 0) & np.isfinite(alpha)):
        raise ValueError(f"alpha must be a number from 0 on, got {alpha!r}.")
    K = np.asarray(kernel(T), dtype=np.float64)
    K.flat[:: len(K) + 1] += alpha
    try:
        factor = scipy.linalg.cho_factor(K, overwrite_a=True)
    except scipy.linalg.LinAlgError:
        raise ValueError(
            f"k(T, T) + αI is not positive definite for {kernel!r} and alpha={alpha!r}. Use a larger alpha, or a "
            "positive semidefinite kernel."
        ) from None
    return np.asarray(scipy.linalg.cho_solve(factor, rows))


def ridge_points(kernel: Kernel, scores: Any, dual: Any, targets: Any) -> Array:
    """Return the rows k(targets, T) B for scores ``targets``; see :func:`fit_ridge_inverse`."""
    T, new = np.asarray(scores, dtype=np.float64), np.asarray(targets, dtype=np.float64)
    return np.asarray(kernel(new, T) @ np.asarray(dual, dtype=np.float64))


def fixed_point(land: KernelGeometry, G: Array, start: Array, *, tol: float, max_iter: int) -> SearchResult:
    """Iterate every row until its step is at most ``tol`` units long; all in the geometry's coordinates."""
    if isinstance(land, PowerGeometry) and land.degree > 1:
        # with P = φ(x) and z = tx the iteration is t ← t^(1−q), which moves away from 1 for q ≥ 3
        raise ValueError(
            f"method='fixed-point' does not converge for a polynomial kernel of degree {land.degree}: its fixed points "
            "repel. Use method='regularised', which shortens the same steps until the distance falls."
        )
    Y, best = start.copy(), start.copy()
    lowest = np.full(len(Y), np.inf)
    converged, iterations = np.zeros(len(Y), dtype=bool), np.zeros(len(Y), dtype=np.intp)
    live = np.arange(len(Y))
    for _ in range(max_iter):
        if not len(live):
            break
        at = land.slope(Y[live], G[live])
        iterations[live] += 1
        better = at.value < lowest[live]
        best[live[better]], lowest[live[better]] = Y[live[better]], at.value[better]
        sound: Flags = (at.weight > FLOOR * at.bulk) & (at.bulk > TINY)  # more than what cancellation leaves
        live, at = live[sound], at[sound]
        # eq: kpca-fixed-point
        new = at.pull / at.weight[:, None]
        near = np.linalg.norm(new - Y[live], axis=1) <= tol * land.unit
        Y[live], converged[live[near]] = new, near[near]
        live = live[~near]
    best[converged] = Y[converged]
    return SearchResult(best, converged, iterations)


def local_mds(land: KernelGeometry, products: Array, norms: Array, n_neighbors: int) -> SearchResult:
    """Place every row by its distances from the nearest training rows; in the geometry's coordinates."""
    distances, k = land.diagonal(land.X) - 2 * products, min(n_neighbors, products.shape[1])
    nearest = np.argpartition(distances, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(distances, nearest, axis=1), axis=1, kind="stable")
    nearest = np.take_along_axis(nearest, order, axis=1)
    squares = np.take_along_axis(land.distances(products, norms), nearest, axis=1)
    possible: Flags = np.isfinite(squares)
    squares = np.where(possible, squares, 0.0)
    X = as_dense(land.X[nearest.ravel()]).reshape(*nearest.shape, land.X.shape[1])
    # where no distance is possible, the nearest row itself is the answer
    use = np.where(possible.any(axis=1, keepdims=True), possible, np.arange(k) == 0).astype(np.float64)
    mean = np.einsum("mk,mkd->md", use, X) / use.sum(axis=1)[:, None]
    C = (X - mean[:, None, :]) * use[:, :, None]
    gram = C @ C.transpose(0, 2, 1)
    inverse = np.linalg.pinv(gram, rcond=SAME, hermitian=True)
    differences = use * (np.einsum("mkk->mk", gram) - squares)
    points = mean + 0.5 * np.einsum("mkd,mk->md", C, np.einsum("mkl,ml->mk", inverse, differences))
    return SearchResult(points, np.all(possible, axis=1), np.zeros(len(points), dtype=np.intp))


def regularised(
    land: KernelGeometry, G: Array, start: Array, penalty: float, *, tol: float, max_iter: int
) -> SearchResult:
    """Minimise J = E + λ‖z − z₀‖² for every row from z₀ = ``start``, in the geometry's coordinates.

    λ is ``penalty`` times the curvature W at z₀, so that it has the same meaning for every kernel and point.
    """
    first = land.slope(start, G)
    strength = penalty * _curvature(first)

    def slope(Y: Array, rows: Index) -> Slope:
        """J, up to ‖P‖², and its gradient: the penalty adds λ to W and λz₀ to Σ ωx."""
        at, z, lam = land.slope(Y, G[rows]), start[rows], strength[rows]
        value = at.value + lam * np.sum((Y - z) ** 2, axis=1)
        return Slope(value, at.pull + lam[:, None] * z, at.weight + lam, at.bulk + lam, at.size)

    Y, at = start.copy(), slope(start, np.arange(len(start)))
    # where all weights vanish J is flat, and no step says where P is
    live, c = np.flatnonzero(first.bulk > TINY), _curvature(at)
    converged, iterations = np.zeros(len(Y), dtype=bool), np.ones(len(Y), dtype=np.intp)
    for _ in range(max_iter):
        near = np.linalg.norm(_gradient(at[live], Y[live]), axis=1) <= tol * land.unit * _curvature(at[live])
        converged[live[near]] = True
        live = live[~near]
        if not len(live):
            break
        before = _gradient(at[live], Y[live])
        new = Y[live] - before / c[live, None]
        there = slope(new, live)
        # whether J fell enough; where its change is lost in rounding, whether the gradient became shorter
        enough = there.value <= at.value[live] - ENOUGH * np.sum(before**2, axis=1) / c[live]
        lost = np.abs(there.value - at.value[live]) <= ROUNDING * there.size
        shorter = np.linalg.norm(_gradient(there, new), axis=1) < np.linalg.norm(before, axis=1)
        fell = enough | (lost & shorter)
        moved = live[fell]
        Y[moved] = new[fell]
        at.put(moved, there[fell])
        c[live[~fell]] *= 2.0
        c[moved] = np.maximum(0.5 * c[moved], _curvature(at[moved]))
        iterations[live] += 1
    return SearchResult(Y, converged, iterations)


def _gradient(at: Slope, Y: Array) -> Array:
    """½∇J."""
    return np.asarray(at.weight[:, None] * Y - at.pull)


def _curvature(at: Slope) -> Array:
    """W, or a small positive share of Σ|ω| where W is no curvature."""
    return np.maximum(at.weight, LEAST * at.bulk)


@dataclass(eq=False)
class Slope:
    r"""E and its gradient 2(Wz − Σ ωx) at some rows.

    Attributes
    ----------
    value : ndarray of shape (b,)
        E(z).
    pull : ndarray of shape (b, d)
        Σ ω_i x_i.
    weight : ndarray of shape (b,)
        W.
    bulk : ndarray of shape (b,)
        What W would be without cancellation: never less than \|W\|.
    size : ndarray of shape (b,)
        The sum of the absolute values of the terms of E, in units of which it is rounded.
    """

    value: Array
    pull: Array
    weight: Array
    bulk: Array
    size: Array

    @property
    def parts(self) -> tuple[Array, ...]:
        """All of these arrays."""
        return self.value, self.pull, self.weight, self.bulk, self.size

    def __getitem__(self, rows: Any) -> Slope:
        return Slope(*(part[rows] for part in self.parts))

    def put(self, rows: Any, other: Slope) -> None:
        """Write the numbers of some rows."""
        for mine, part in zip(self.parts, other.parts, strict=True):
            mine[rows] = part


class KernelGeometry(ABC):
    """A kernel and its training rows, in coordinates that make the kernel plain.

    Attributes
    ----------
    X : array or CSR of shape (n, d)
        The training rows in these coordinates.
    squares : ndarray of shape (n,)
        Their squared lengths.
    unit : float
        The length that tolerances are measured in.
    """

    def __init__(self, X: Any, scale: float | Array, shift: float | Array) -> None:
        self.scale, self.shift = scale, shift
        self.X = self.inward(X)
        self.squares = _squares(self.X)
        self.unit = 1.0

    def inward(self, Z: Any) -> Any:
        """Rows of the input space, in the coordinates used here."""
        if is_sparse(Z):
            return sp.csr_array(Z.multiply(np.broadcast_to(self.scale, Z.shape[1])), dtype=np.float64)
        return (np.asarray(Z, dtype=np.float64) - self.shift) * self.scale

    def outward(self, Y: Array) -> Array:
        """And back."""
        return np.asarray(Y / self.scale + self.shift)

    def inner(self, Y: Any) -> Array:
        """y·x_i for rows y and all training rows."""
        return as_dense(Y @ self.X.T)

    @abstractmethod
    def kernel(self, Y: Any) -> Array:
        """k(y, x_i) for rows y and all training rows."""

    @abstractmethod
    def diagonal(self, Y: Any) -> Array:
        """k(y, y)."""

    @abstractmethod
    def slope(self, Y: Array, G: Array) -> Slope:
        """E and its gradient at rows y for the points with the coefficients G."""

    @abstractmethod
    def distances(self, products: Array, norms: Array) -> Array:
        """‖y − x_i‖² of the rows y whose features have these inner products and squared length; NaN where none can."""


class GaussianGeometry(KernelGeometry):
    """k = exp(−‖y − y′‖²): E = 1 − 2S with S = Σ γ_i k_i, ω_i = 2γ_i k_i and W = 2S."""

    def kernel(self, Y: Any) -> Array:
        """By matrix multiplication, about the mean of the training rows, where rounding is least."""
        t = self.inner(Y)
        t *= 2.0
        t -= self.squares
        t -= _squares(Y)[:, None]
        return np.exp(np.minimum(t, 0.0, out=t), out=t)

    def diagonal(self, Y: Any) -> Array:
        """Ones."""
        return np.ones(Y.shape[0])

    def slope(self, Y: Array, G: Array) -> Slope:
        """S is both the value and, twice, the weight."""
        A = self.kernel(Y)
        A *= G
        A *= 2.0
        # eq: kpca-preimage
        weight, pull = A.sum(axis=1), np.asarray(A @ self.X)
        bulk = np.abs(A, out=A).sum(axis=1)
        return Slope(1.0 - weight, pull, weight, bulk, 1.0 + bulk)

    def distances(self, products: Array, norms: Array) -> Array:
        """‖φ(y) − φ(x)‖² = 2 − 2k, so that ‖y − x‖² = −ln(1 − ½‖P − φ(x)‖²)."""
        k = np.minimum(products + 0.5 * (1.0 - norms)[:, None], 1.0)
        return np.asarray(-np.log(np.where(k > 0, k, np.nan)))


class PowerGeometry(KernelGeometry):
    """k = (y·y′ + c)^q: ω_i = qγ_i(y·x_i + c)^{q−1} and W = q(y·y + c)^{q−1}."""

    def __init__(self, X: Any, scale: float, degree: int, coef0: float) -> None:
        super().__init__(X, scale, 0.0)
        self.degree, self.coef0 = degree, coef0
        self.unit = float(np.sqrt(self.squares.mean())) or 1.0

    def kernel(self, Y: Any) -> Array:
        """(y·x + c)^q."""
        return np.asarray((self.inner(Y) + self.coef0) ** self.degree)

    def diagonal(self, Y: Any) -> Array:
        """(y·y + c)^q."""
        return np.asarray((_squares(Y) + self.coef0) ** self.degree)

    def slope(self, Y: Array, G: Array) -> Slope:
        """From one set of inner products."""
        base, own, q = self.inner(Y) + self.coef0, _squares(Y) + self.coef0, self.degree
        omega = G * base ** (q - 1)
        terms, self_term = omega * base, own**q
        weight = q * own ** (q - 1)
        bulk = np.maximum(np.abs(weight), q * np.abs(omega).sum(axis=1))
        size = np.abs(self_term) + 2 * np.abs(terms).sum(axis=1)
        return Slope(self_term - 2 * terms.sum(axis=1), q * np.asarray(omega @ self.X), weight, bulk, size)

    def distances(self, products: Array, norms: Array) -> Array:
        """‖y‖² − 2y·x + ‖x‖², with y·x the odd root of the product."""
        if self.degree % 2 == 0:
            raise ValueError(
                f"method='mds' needs inner products, and an even power (degree {self.degree}) does not tell their "
                "sign. Use method='regularised' or 'ridge', or an odd degree."
            )
        own = _root(norms, self.degree) - self.coef0
        squares = own[:, None] - 2 * (_root(products, self.degree) - self.coef0) + self.squares
        return np.where((own >= 0)[:, None] & (squares > -1e-9 * self.unit**2), np.maximum(squares, 0.0), np.nan)


def choose_geometry(kernel: Kernel, X: Any, method: str) -> KernelGeometry:
    """Return the geometry of a kernel, or say which kernels have one."""
    if not isinstance(kernel, Gaussian | Polynomial | Linear):
        raise ValueError(
            f"method={method!r} finds pre-images for Gaussian, Polynomial and Linear kernels, not for {kernel!r}. "
            "Use method='ridge', which learns the way back for any kernel."
        )
    X = as_points(X)
    kernel, d = kernel.resolved(X), X.shape[1]
    if isinstance(kernel, Gaussian):
        shift = 0.0 if is_sparse(X) else np.mean(X, axis=0, dtype=np.float64)
        return GaussianGeometry(X, kernel.formula(d).scale, shift)
    if isinstance(kernel, Polynomial):
        return PowerGeometry(X, float(np.sqrt(kernel.gamma or 1.0 / d)), kernel.degree, kernel.coef0)
    return PowerGeometry(X, 1.0, 1, 0.0)


def _squares(Y: Any) -> Array:
    return np.asarray(Y.multiply(Y).sum(axis=1) if is_sparse(Y) else np.einsum("ij,ij->i", Y, Y))


def as_dense(X: Any) -> Array:
    """Return X as an ndarray of float64."""
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)


def _root(values: Any, q: int) -> Any:
    """The odd root."""
    return np.sign(values) * np.abs(values) ** (1.0 / q)
