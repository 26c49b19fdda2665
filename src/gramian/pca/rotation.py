"""Rotations of loadings to simple structure, with a proof that the criterion is stationary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_integer, fetch_numbers
from gramian.inputs.devices import convert_to_numpy
from gramian.pca.estimator import PCA
from gramian.pca.interpret import component_scores, deviations, feature_names, loadings, ratio, refuse_no_components
from gramian.pca.solve import warn
from gramian.results.tables import Tabular, text_table

Array = npt.NDArray[np.float64]

METHODS = ("equamax", "promax", "quartimax", "varimax")


@dataclass(frozen=True, eq=False, repr=False)
class Rotation(Tabular):
    r"""Loadings after a rotation, and how well its criterion was met.

    Attributes
    ----------
    method : str
        Name of the criterion.
    names : tuple of str
        The variables.
    loadings : ndarray of shape (p, k)
        Rotated loadings (the pattern): AM for loadings A. Factors by falling variance, largest entries positive.
    rotation : ndarray of shape (k, k)
        M; orthogonal unless the method is promax.
    structure : ndarray of shape (p, k)
        Covariances of variables and factors, AMΦ: the loadings themselves where M is orthogonal.
    correlations : ndarray of shape (k, k)
        Φ = (MᵀM)⁻¹, the correlations of the factors.
    explained_variance : ndarray of shape (k,)
        What each factor explains: column sums of loadings × structure. They sum to the communalities.
    total_variance : float
        The variance of all variables, of which the factors explain a part; p where loadings alone were given, as of
        scaled variables.
    criterion : float
        The orthomax criterion at the rotation found, of the normalised loadings where they were normalised (of promax:
        varimax's, from which it starts).
    stationarity : float
        ‖ΛᵀG − GᵀΛ‖/‖ΛᵀΛ³‖ with 4G the criterion's gradient and Λ³ taken entry by entry: 0 exactly where no small
        rotation changes the criterion.
    tolerance : float
        What stationarity was asked to meet.
    iterations : int
        Sweeps over all pairs of factors.
    converged : bool
        Whether it met the tolerance, with no plane left in which the criterion would still rise by that much.
    """

    method: str
    names: tuple[str, ...]
    loadings: Array
    rotation: Array
    structure: Array
    correlations: Array
    explained_variance: Array
    total_variance: float
    criterion: float
    stationarity: float
    tolerance: float
    iterations: int
    converged: bool

    @property
    def communalities(self) -> Array:
        """What the factors explain of each variable's variance; no rotation changes them."""
        return np.asarray(np.sum(self.loadings * self.structure, axis=1))

    def table(self) -> dict[str, Any]:
        """Return the loadings as columns, ready for ``pandas.DataFrame``."""
        factors = {name: self.loadings[:, j] for j, name in enumerate(self.names_of_factors)}
        return {"name": list(self.names), **factors, "communality": self.communalities}

    def _title(self) -> str:
        met = "converged" if self.converged else "NOT converged"
        return f"Rotation: {self.method}, {met} in {self.iterations} sweeps (stationarity {self.stationarity:.1e})"

    def _remarks(self) -> list[str]:
        share = self.explained_variance_ratio
        shares = np.array([self.explained_variance, share, np.cumsum(share)])
        parts = [self._tabulate(("SS loadings", "proportion", "cumulative"), shares)]
        if self.method == "promax":
            parts += ["correlations of the factors:", self._tabulate(self.names_of_factors, self.correlations)]
        return parts

    def _tabulate(self, rows: tuple[str, ...], values: Array) -> str:
        """Table with one column for each factor."""
        return text_table({"": list(rows)} | dict(zip(self.names_of_factors, values.T, strict=True)))

    @property
    def names_of_factors(self) -> tuple[str, ...]:
        """Return factor0, factor1, …"""
        return tuple(f"factor{j}" for j in range(self.loadings.shape[1]))

    @property
    def explained_variance_ratio(self) -> Array:
        """Share of the variance of all variables that each factor explains."""
        return np.asarray(self.explained_variance / self.total_variance)


@quiet_blas()
def rotate(
    pca: PCA | Any,
    method: str = "varimax",
    *,
    normalize: bool = True,
    power: float = 4.0,
    n_components: int | None = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
    n_starts: int = 1,
    random_state: int | None = None,
) -> Rotation:
    r"""Rotate loadings so that each variable loads on few factors and each factor on few variables.

    The orthomax criterion of :math:`\Lambda = AT`, with T orthogonal, is

    .. math:: Q(\Lambda) = \sum_{ij}\lambda_{ij}^4 - \frac\gamma p\sum_j\Big(\sum_i\lambda_{ij}^2\Big)^2

    with γ = 1 for varimax, 0 for quartimax, k/2 for equamax. It is maximised in one plane after another, each exactly
    (Kaiser 1958), so that it never falls. Promax raises the varimax loadings to a power with their signs kept, and
    fits that target by least squares, which lets the factors correlate (Hendrickson and White 1964).

    Parameters
    ----------
    pca : PCA or array-like of shape (p, k)
        A fitted model, whose loadings V√λ are rotated, or loadings.
    method : {"varimax", "quartimax", "equamax", "promax"}, default="varimax"
        The criterion.
    normalize : bool, default=True
        Kaiser's normalisation: variables count equally, their loadings being divided by the roots of their
        communalities meanwhile. Promax's target is formed afterwards, as R does.
    power : float, default=4
        Power of promax.
    n_components : int, optional
        Rotate the first so many components only; by default all that have variance. The choice changes all factors.
    tol : float, default=1e-10
        Stationarity to reach.
    max_iter : int, default=1000
        Most sweeps.
    n_starts : int, default=1
        The criterion may have several maxima: further starts from random rotations, of which the best is kept.
    random_state : int, optional
        Seed of these starts; None is a fixed one.

    Returns
    -------
    Rotation
        Rotated loadings, the rotation, and whether it converged (otherwise there is a warning, too).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis import rotate
    >>> iris = load_iris(as_frame=True).data
    >>> rotate(PCA(2, scale=True).fit(iris))
    Rotation: varimax, converged in ... sweeps (stationarity ...)
      name               factor0  factor1  communality
      sepal length (cm)   0.9594  0.04635       0.9226
      sepal width (cm)   -0.1425   0.9852       0.9909
      petal length (cm)   0.9436  -0.3056       0.9837
      petal width (cm)    0.9319  -0.2585       0.9353
                   factor0  factor1
      SS loadings      2.7    1.133
      proportion    0.6749   0.2832
      cumulative    0.6749   0.9581
    """
    names, A, total = _read_loadings(convert_to_numpy(pca), n_components)
    check_choice("method", method, METHODS)
    check_integer("max_iter", max_iter)
    check_integer("n_starts", n_starts)
    if not tol > 0 or not power >= 1:
        raise ValueError(f"tol must be positive and power at least 1, got tol={tol}, power={power}.")
    p, k = A.shape
    gamma = {"quartimax": 0.0, "equamax": k / 2}.get(method, 1.0)
    # a power of two keeps fourth powers in range; the roots of the communalities are Kaiser's normalisation
    unit = np.float64(2.0 ** math.frexp(float(np.abs(A).max()))[1])
    B = A / unit
    if normalize:
        B, unit = ratio(B, np.linalg.norm(B, axis=1)[:, None]), np.float64(1.0)
    rng = np.random.default_rng(0 if random_state is None else random_state)
    starts = [np.eye(k)]
    for _ in range(n_starts - 1):  # orthogonal matrices, all of them equally likely
        Q, R = np.linalg.qr(rng.standard_normal((k, k)))
        starts.append(Q * np.sign(np.diag(R)))
    best = max((maximise_orthomax(B, T, gamma / p, tol, max_iter) for T in starts), key=lambda found: found.criterion)
    if not best.converged:
        warn(
            f"{method} reached a stationarity of {best.stationarity:.1e} in {best.sweeps} sweeps, not {tol:.1e}: raise "
            "max_iter or tol."
        )
    oblique = method == "promax"
    M = best.T
    if oblique:  # fit the sharpened loadings by least squares, then give the factors variance 1
        L = A @ M
        U, _, rank, _ = np.linalg.lstsq(L, L * (np.abs(L) / np.abs(L).max()) ** (power - 1), rcond=None)
        if rank < k or np.linalg.cond(U) > 1e12:
            raise ValueError(f"promax: the {k} factors are not independent. Rotate fewer with n_components.")
        M = M @ (U * np.sqrt(np.diag(np.linalg.inv(U.T @ U))))
    # factors in order of variance, their largest loadings positive
    phi = np.linalg.inv(M.T @ M) if oblique else np.eye(k)
    L = A @ M
    order = np.argsort(-np.sum(L * (L @ phi), axis=0), kind="stable")
    L, M = L[:, order], M[:, order]
    signs = np.where(L[np.abs(L).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0)
    L, M, phi = L * signs, M * signs, phi[np.ix_(order, order)] * np.outer(signs, signs)
    structure = L @ phi if oblique else L
    with np.errstate(over="ignore"):  # a fourth power beyond the largest number is infinite
        criterion = float(np.ldexp(best.criterion, 4 * int(np.log2(unit))))
    return Rotation(
        method=method,
        names=names,
        loadings=L,
        rotation=M,
        structure=structure,
        correlations=phi,
        explained_variance=np.sum(L * structure, axis=0),
        total_variance=total,
        criterion=criterion,
        stationarity=best.stationarity,
        tolerance=tol,
        iterations=best.sweeps,
        converged=best.converged,
    )


def _read_loadings(pca: PCA | Any, n_components: int | None) -> tuple[tuple[str, ...], Array, float]:
    """Names of the variables, the loadings to rotate, of a model or as given, and the variance of all variables."""
    if isinstance(pca, PCA):
        refuse_no_components(pca)
        A, names = loadings(pca)[:, : pca.rank_], feature_names(pca)
        # Σλ over all components, those left out too
        total = float(np.sum(to_numpy(pca.explained_variance_, float)))
        total /= float(np.sum(to_numpy(pca.explained_variance_ratio_, float))) or 1.0
    else:
        A = np.asarray(fetch_numbers(pca, "loadings"), dtype=np.float64)
        names, total = tuple(f"x{i}" for i in range(len(A))), float(len(A))
    if A.ndim != 2 or not A.size:
        raise ValueError(
            f"Loadings of shape {A.shape} cannot be rotated: expected variables in rows, factors in columns."
        )
    if not np.all(np.isfinite(A)):
        raise ValueError(f"Loadings must be finite; row {np.argwhere(~np.isfinite(A))[0][0] + 1} holds other values.")
    k = A.shape[1] if n_components is None else n_components
    if not 1 <= k <= A.shape[1]:
        raise ValueError(f"n_components={k} must be between 1 and {A.shape[1]}, the components that have variance.")
    A = A[:, :k]
    bad = np.argwhere(~np.isfinite(A))
    if len(bad):
        raise ValueError(f"The loading of variable {bad[0][0]} on factor {bad[0][1]} is {A[tuple(bad[0])]}.")
    if not A.any():
        raise ValueError("All loadings are 0: there is nothing to rotate.")
    return names, A, total


class Orthomax(NamedTuple):
    """A rotation T, the criterion there, and how nearly it is stationary."""

    T: Array
    criterion: float
    stationarity: float
    sweeps: int
    converged: bool


def maximise_orthomax(A: Array, T: Array, weight: float, tol: float, max_iter: int) -> Orthomax:
    """Sweep over all planes until the criterion is stationary and no sweep raises it any more; weight is γ/p."""
    L, T = A @ T, T.copy()
    value, scale, residual = _criterion(L, weight), float(np.sum(np.sum(L**2, axis=1) ** 2)), math.inf
    for sweep in range(1, max_iter + 1):
        for i, j in combinations(range(L.shape[1]), 2):
            # the rotation of two columns that maximises the criterion: φ = atan2(…)/4 of Kaiser (1958)
            x, y = L[:, i], L[:, j]
            u, v = x**2 - y**2, 2 * x * y
            a, b = float(np.sum(u)), float(np.sum(v))
            sine = float(2 * np.sum(u * v)) - 2 * weight * a * b
            cosine = float(np.sum(u**2 - v**2)) - weight * (a**2 - b**2)
            angle = math.atan2(sine, cosine) / 4
            turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            L[:, [i, j]] = L[:, [i, j]] @ turn
            T[:, [i, j]] = T[:, [i, j]] @ turn
        before, value = value, _criterion(L, weight)
        # T is stationary among orthogonal matrices where ΛᵀG is symmetric
        C = L.T @ (L**3 - weight * L * np.sum(L**2, axis=0))
        size = float(np.linalg.norm(L.T @ L**3))
        residual = float(np.linalg.norm(C - C.T)) / size if size else 0.0
        if residual <= tol and value - before <= tol * scale:
            return Orthomax(T, value, residual, sweep, True)
    return Orthomax(T, value, residual, max_iter, False)


def _criterion(L: Array, weight: float) -> float:
    return float(np.sum(L**4) - weight * np.sum(np.sum(L**2, axis=0) ** 2))


@quiet_blas()
def rotated_scores(pca: PCA, X: Any, rotation: Rotation) -> Array:
    r"""Scores of the rotated factors, standardised: :math:`F = Z\,\mathrm{diag}(\lambda^{-1/2})\,M^{-T}`.

    Over the rows of the fit each factor has variance 1 and their correlations are ``rotation.correlations``: the
    identity for an orthogonal rotation. Loadings times factors give the model's reconstruction, Λf = Az.

    Parameters
    ----------
    pca : PCA
        The fitted model that was rotated.
    X : array-like, sparse matrix, frame, path or Source of shape (n, p)
        The rows.
    rotation : Rotation
        What :func:`rotate` returned for it.

    Returns
    -------
    ndarray of shape (n, k)
        Scores.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from gramian import PCA
    >>> from gramian.analysis import rotate, rotated_scores
    >>> X = load_iris().data
    >>> pca = PCA(2, scale=True).fit(X)
    >>> bool(np.allclose(np.cov(rotated_scores(pca, X, rotate(pca)).T), np.eye(2)))
    True
    """
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    k = len(rotation.rotation)
    expected = loadings(pca)[:, :k] @ rotation.rotation
    near = 1e-8 * float(np.abs(expected).max(initial=0.0))
    if expected.shape != rotation.loadings.shape or not np.allclose(expected, rotation.loadings, rtol=0, atol=near):
        raise ValueError("The rotation is not one of this model's loadings: pass what rotate(pca, ...) returned.")
    standard = ratio(1.0, deviations(pca)[:k]) * component_scores(pca, X)[:, :k]
    return np.asarray(np.linalg.solve(rotation.rotation, standard.T).T)
