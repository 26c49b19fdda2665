"""Pre-images by any of the methods: checks, blocks of rows, and the distance reached."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.estimators._preimages.checks import Limits, coefficients, shaped
from gramian.estimators._preimages.fixed_point import fixed_point
from gramian.estimators._preimages.landscape import Landscape, as_dense, landscape_of
from gramian.estimators._preimages.mds import local_mds
from gramian.estimators._preimages.regularised import regularised
from gramian.estimators._preimages.result import Found, PreImages
from gramian.estimators._preimages.ridge import ridge_points
from gramian.kernels import Kernel
from gramian.results import NumericalWarning

__all__ = ["METHODS", "preimages"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

METHODS = ("fixed-point", "mds", "regularised", "ridge")
NUMBERS = 4_000_000  # in one block of kernel rows
AFFORDABLE = 2e10  # operations that ‖P‖² may cost where no method needs it: half a second
NAMED = 5  # rows named in a note


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
    max_iterations: int = 1000,
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
    max_iterations : int, default=1000
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
    >>> from gramian.estimators._preimages import preimages
    >>> from gramian.kernels import Gaussian
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = preimages(Gaussian(1.0), X, np.eye(3)[:1], start=[[0.3, 0.2]], penalty=0)
    >>> bool(found.converged.all()), np.abs(found.points).max() < 1e-5
    (True, np.True_)
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
    limits = Limits(penalty, n_neighbors, tol, max_iterations)
    land = None if method == "ridge" else landscape_of(kernel, X, method)
    kernel = kernel.resolved(X)
    task = _Task(kernel, X, coefficients(G, X.shape[0]), products, norms)
    if land is None:
        found = _by_ridge(kernel, scores, dual, targets, len(task.G))
    else:
        found = _searched(task, land, method, start, limits)
    return _reported(task, found, method)


@dataclass(eq=False)
class _Task:
    """The points P, and what is known of them."""

    kernel: Kernel
    X: Any
    G: Matrix
    products: Any
    norms: Any

    def __post_init__(self) -> None:
        m, n = self.G.shape
        self.products = None if self.products is None else shaped("products", self.products, (m, n))
        self.norms = None if self.norms is None else shaped("norms", self.norms, (m,))

    @property
    def cost(self) -> float:
        """Operations that the products take."""
        (m, n), d = self.G.shape, self.X.shape[1]
        return float(2.0 * n * n * (m + d))

    def complete(self, needed: bool) -> None:
        """Find ΓK and ‖P‖² where they are needed, or cheap."""
        if self.products is None and (needed or (self.norms is None and self.cost <= AFFORDABLE)):
            n = self.G.shape[1]
            self.products = np.hstack([self.G @ self.kernel(self.X, self.X[rows]) for rows in _blocks(n, n)])
        if self.norms is None and self.products is not None:
            self.norms = np.einsum("ij,ij->i", self.G, self.products)


def _searched(task: _Task, land: Landscape, method: str, start: Any, limits: Limits) -> Found:
    """Run a method on blocks of rows, in the landscape's coordinates and back."""
    task.complete(needed=method == "mds")
    G, tol, most = task.G, limits.tol, limits.max_iterations
    if method == "mds":
        return _in_blocks(land, G, lambda b: local_mds(land, task.products[b], task.norms[b], limits.n_neighbors))
    begin = np.asarray(land.inward(_start(task, start)))
    if method == "fixed-point":
        return _in_blocks(land, G, lambda b: fixed_point(land, G[b], begin[b], tol=tol, max_iterations=most))
    strength = {"penalty": limits.penalty, "tol": tol}
    return _in_blocks(land, G, lambda b: regularised(land, G[b], begin[b], max_iterations=most, **strength))


def _in_blocks(land: Landscape, G: Matrix, search: Callable[[slice], Found]) -> Found:
    """One search for each block of rows; numbers that overflow on the way are steps not taken."""
    with np.errstate(over="ignore", invalid="ignore"):
        parts = [search(rows) for rows in _blocks(*G.shape)] or [search(slice(0, 0))]
    points = land.outward(np.concatenate([part.points for part in parts]))
    converged = np.concatenate([part.converged for part in parts])
    return Found(points, converged, np.concatenate([part.iterations for part in parts]), parts[0].trouble)


def _start(task: _Task, start: Any) -> Matrix:
    """Return the rows given, or the training rows nearest to P; where that is dear, those with the largest γ."""
    if start is not None:
        return shaped("start", start, (len(task.G), task.X.shape[1]))
    score = task.G if task.products is None else 2 * task.products - task.kernel.diagonal(task.X)
    return as_dense(task.X[np.argmax(score, axis=1)])


def _by_ridge(kernel: Kernel, scores: Any, dual: Any, targets: Any, m: int) -> Found:
    missing = [name for name, value in {"targets": targets, "scores": scores, "dual": dual}.items() if value is None]
    if missing:
        raise ValueError(f"method='ridge' needs {', '.join(missing)}: see fit_ridge_inverse.")
    points = ridge_points(kernel, scores, dual, targets)
    if len(points) != m:
        raise ValueError(f"targets has {len(points)} rows for {m} rows of coefficients G.")
    return Found(points, np.ones(m, dtype=bool), np.zeros(m, dtype=np.intp))


def _reported(task: _Task, found: Found, method: str) -> PreImages:
    """Measure the distances reached and say which rows failed."""
    task.complete(needed=False)
    notes, absolute = [], task.norms is not None
    if not found.converged.all():
        notes.append(_failure(found, method))
        warnings.warn(notes[-1], NumericalWarning, stacklevel=3)
    if not absolute:
        notes.append("the objective is without ‖P‖², which would cost more than the search: give norms= to have it")
    objective = _energies(task, found.points)
    objective = np.maximum(objective + task.norms, 0.0) if absolute else objective
    return PreImages(found.points, found.converged, found.iterations, objective, method, absolute, tuple(notes))


def _failure(found: Found, method: str) -> str:
    """Which rows did not converge, why, and what to do."""
    lost = np.flatnonzero(~found.converged)
    rows = ", ".join(map(str, lost[:NAMED])) + (", ..." if len(lost) > NAMED else "")
    remedy = (
        "Raise max_iterations or tol." if method == "regularised" else "Use method='regularised' or a wider kernel."
    )
    return f"{len(lost)} of {len(found.points)} pre-images did not converge (rows {rows}): {found.trouble}. {remedy}"


def _energies(task: _Task, points: Matrix) -> Vector:
    """k(z, z) − 2Σ γ_i k(z, x_i), by the kernel itself."""
    out = np.array(task.kernel.diagonal(points), dtype=np.float64)
    for rows in _blocks(*task.G.shape):
        out[rows] -= 2 * np.einsum("ij,ij->i", task.G[rows], task.kernel(points[rows], task.X))
    return out


def _blocks(m: int, n: int) -> list[slice]:
    step = max(1, NUMBERS // max(n, 1))
    return [slice(i, min(i + step, m)) for i in range(0, m, step)]
