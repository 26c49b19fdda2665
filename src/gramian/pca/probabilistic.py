r"""The Gaussian model behind a PCA: what observed cells say of missing ones, and draws from it.

One draw of a multiple imputation first draws the model, by fitting it again to rows drawn with replacement, then
the missing cells from their conditional distribution under it. Estimates from m completed tables are pooled by Rubin's
rules (1987): with U the mean of their variances and B the variance of the estimates,

.. math:: T = U + (1 + 1/m)B,\qquad \nu = (m-1)\left(1 + \frac{U}{(1+1/m)B}\right)^2 .
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like, to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_seed, check_weights, fetch_numbers
from gramian.inputs.devices import convert_to_numpy
from gramian.inputs.observed import NothingObservedError, refuse_rows
from gramian.inputs.opening import open_input
from gramian.inputs.progress import Progress
from gramian.pca.factor import Factor, posterior
from gramian.pca.interpret import refuse_lost_variances, variable_scale
from gramian.pca.missing import fit_incomplete
from gramian.results.tables import Tabular
from gramian.sources import Source
from gramian.sources.devices import source_to_numpy
from gramian.sources.writing import write_whole

if TYPE_CHECKING:
    from gramian.pca.estimator import PCA


Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Latent:
    """The distribution of z given what is observed of each row: N(mean_i, covariance_i).

    Attributes
    ----------
    mean : ndarray of shape (n, k)
        Standardised: z is N(0, I) before anything is observed.
    covariance : ndarray of shape (n, k, k)
        The same for all complete rows.
    """

    mean: Array
    covariance: Array

    def __repr__(self) -> str:
        n, k = self.mean.shape
        return f"Latent({n} rows, {k} variables: mean, covariance)"


@dataclass(frozen=True, eq=False, repr=False)
class Conditional:
    """The distribution of the missing cells of each row given its observed ones.

    Attributes
    ----------
    mean : ndarray of shape (n, p)
        The rows, missing cells at their conditional expectation.
    variance : ndarray of shape (n, p)
        Conditional variances; 0 where a cell is observed.
    missing : ndarray of bool, shape (n, p)
        Which cells these are.
    """

    mean: Array
    variance: Array
    missing: Mask
    latent: Latent
    loading: Array
    noise: Array

    def __repr__(self) -> str:
        rows = int(np.count_nonzero(self.missing.any(axis=1)))
        return (
            f"Conditional({int(self.missing.sum())} missing cells in {rows} of {len(self.mean)} rows: "
            "mean, variance, covariance(row), sample())"
        )

    def covariance(self, row: int) -> Array:
        """Covariance of the missing cells of one row, in the order of their columns."""
        m = self.missing[row]
        W = self.loading[m]
        return np.asarray(W @ self.latent.covariance[row] @ W.T + np.diag(self.noise[m]))

    def sample(self, random_state: Any = None) -> Array:
        """Return the rows with every missing cell drawn from its row's conditional distribution."""
        rng, out = np.random.default_rng(random_state), self.mean.copy()
        rows = self.missing.any(axis=1)
        values, Q = np.linalg.eigh(self.latent.covariance[rows])
        z = np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(values.shape)
        drawn = np.einsum("nij,nj->ni", Q, z) @ self.loading.T
        drawn += np.sqrt(self.noise) * rng.standard_normal(drawn.shape)
        out[rows] += np.where(self.missing[rows], drawn, 0.0)
        return out


def gaussian_model(pca: PCA, *, shrinking: bool = True) -> Factor:
    """Return the model of a fitted PCA about its mean, in scaled units; its limit without noise if not shrinking."""
    refuse_lost_variances(pca)
    V = np.asarray(pca.components_, dtype=np.float64)
    variances, noise = np.asarray(pca.explained_variance_, dtype=np.float64), float(pca.noise_variance_)
    largest = float(variances[0]) if len(variances) else 0.0
    noise = noise if shrinking and noise > 1e-14 * largest else 0.0
    return Factor(np.zeros(V.shape[1]), V.T * np.sqrt(np.maximum(variances - noise, 0.0)), noise)


def _model_of_cells(pca: PCA) -> Factor:
    """Return the model that cells are filled by: with shrinking, unless the fit was by least squares."""
    return gaussian_model(pca, shrinking=pca._missing_method != "least-squares")


def open_dense(pca: PCA, X: Any) -> Source:
    """Open rows of which cells may be missing; sparse ones are refused."""
    check_is_fitted(pca)
    source = open_input(pca, X, reset=False)
    if source.sparse:
        raise ValueError("Sparse data have no missing cells: what is not stored is 0. Use X.toarray() with NaN.")
    return source


def _blocks(pca: PCA, source: Source) -> Iterator[tuple[int, Array, Array, Mask]]:
    """Yield blocks of rows: number of the first, values, values about the mean in scaled units, which are observed."""
    mean, s = np.asarray(pca.mean_, dtype=np.float64), variable_scale(pca)
    for block in source.blocks():
        X = to_numpy(block.values, float)
        refuse_rows(X, np.ones(len(X)), block.start, source.feature_names, "Nothing can be said of it: leave it out.")
        yield block.start, X, (X - mean) / s, ~np.isnan(X)


def _latent_of(D: Array, observed: Mask, factor: Factor) -> tuple[Array, Array]:
    """ẑ and C of each row: without noise ẑ = W_o⁺r and C = I − W_o⁺W_o, by patterns of observed cells."""
    W, k = factor.loading, factor.loading.shape[1]
    if factor.noise > 0.0:
        Z, inverse, _ = posterior(D, observed, factor)
        return Z, np.broadcast_to(factor.noise * inverse, (len(D), k, k))
    Z, C = np.empty((len(D), k)), np.empty((len(D), k, k))
    for o, rows in _patterns(observed):
        inverse = np.linalg.pinv(W[o], rcond=1e-12)
        Z[rows] = D[np.ix_(rows, np.flatnonzero(o))] @ inverse.T
        C[rows] = np.eye(k) - inverse @ W[o]
    return Z, C


def _patterns(observed: Mask) -> Iterator[tuple[Mask, npt.NDArray[np.intp]]]:
    """Yield each pattern of observed cells with the rows that have it."""
    patterns, which = np.unique(observed, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel()))
    yield from zip(patterns, np.split(order, ends[:-1]), strict=True)


def _fill_rows(D: Array, observed: Mask, factor: Factor) -> Array:
    """Rows about the mean with missing cells at their conditional expectation; only incomplete rows are computed."""
    rows = ~observed.all(axis=1)
    if not rows.any():
        return D
    Z, _ = _latent_of(D[rows], observed[rows], factor)
    out = D.copy()
    out[rows] = np.where(observed[rows], D[rows], Z @ factor.loading.T)
    return out


def conditional_scores(pca: PCA, source: Source) -> Array:
    """Scores E[Vᵀ(x − μ) | x_o] of rows with missing cells, not whitened."""
    V, factor = np.asarray(pca.components_, dtype=np.float64).T, _model_of_cells(pca)
    return np.concatenate([_fill_rows(D, observed, factor) @ V for _, _, D, observed in _blocks(pca, source)])


def _fill_blocks(pca: PCA, source: Source) -> Iterator[tuple[int, Array]]:
    """Yield blocks of rows, missing cells at their conditional expectation, with the number of their first row."""
    factor, s, mean = _model_of_cells(pca), variable_scale(pca), np.asarray(pca.mean_, dtype=np.float64)
    for start, X, D, observed in _blocks(pca, source):
        yield start, np.where(observed, X, mean + s * _fill_rows(D, observed, factor))


def impute(pca: PCA, source: Source) -> Array:
    """Return the rows with missing cells at their conditional expectation; observed cells keep every bit."""
    return np.concatenate([filled for _, filled in _fill_blocks(pca, source)]).astype(_dtype(source), copy=False)


def impute_to(pca: PCA, source: Source, out: str | os.PathLike[str]) -> Path:
    """Write the rows, filled as by :func:`impute`, to an ``.npy`` file, block by block: whole or not at all."""
    out = Path(out)
    if out.suffix != ".npy":
        raise ValueError(f"out={str(out)!r}: the completed table is written as .npy; give a name that ends so.")
    with write_whole(out) as part:
        table = np.lib.format.open_memmap(part, "w+", dtype=_dtype(source), shape=source.shape)
        for start, filled in _fill_blocks(pca, source):
            table[start : start + len(filled)] = filled
        table.flush()
        del table
    return out


def _dtype(source: Source) -> np.dtype[Any]:
    return np.dtype(np.float32) if source.dtype == source.xp.float32 else np.dtype(np.float64)


def draw_rows(pca: PCA, n: int, random_state: Any = None) -> Array:
    """Draw n rows x = μ + s(Wz + σε) from the model."""
    factor, rng = gaussian_model(pca), np.random.default_rng(random_state)
    p, k = factor.loading.shape
    D = rng.standard_normal((n, k)) @ factor.loading.T + math.sqrt(factor.noise) * rng.standard_normal((n, p))
    return np.asarray(np.asarray(pca.mean_, dtype=np.float64) + variable_scale(pca) * D)


@quiet_blas()
def condition(pca: PCA, X: Any) -> Conditional:
    """Distribution of the missing cells of every row given the observed ones.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, path or Source of shape (n, p)
        Rows; NaN cells are missing.

    Returns
    -------
    Conditional
        Means, variances, covariances, and draws from them, in NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import condition
    >>> rng = np.random.default_rng(0)
    >>> pca = PCA(1).fit(rng.normal(size=(900, 1)) + 0.1 * rng.normal(size=(900, 3)))
    >>> given = condition(pca, [[1.0, 1.0, np.nan]])
    >>> bool(abs(given.mean[0, 2] - 1) < 0.05), bool(abs(given.variance[0, 2] - 0.015) < 0.003)
    (True, True)
    """
    source, pca = source_to_numpy(open_dense(pca, X)), convert_to_numpy(pca)
    factor, s, mean = gaussian_model(pca), variable_scale(pca), np.asarray(pca.mean_, dtype=np.float64)
    parts = []
    for _, values, D, observed in _blocks(pca, source):
        Z, C = _latent_of(D, observed, factor)
        spread = np.einsum("pi,nij,pj->np", factor.loading, C, factor.loading, optimize=True) + factor.noise
        filled = np.where(observed, values, mean + s * (Z @ factor.loading.T))
        parts.append((filled, np.where(observed, 0.0, spread * s**2), ~observed, Z, C))
    filled, variance, missing, Z, C = (np.concatenate(column) for column in zip(*parts, strict=True))
    noise = np.full(len(s), factor.noise) * s**2
    return Conditional(filled, variance, missing, Latent(Z, C), factor.loading * s[:, None], noise)


@quiet_blas()
def latent(pca: PCA, X: Any) -> Latent:
    """Posterior of the standardised latent variables z of every row, complete or not.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, path or Source of shape (n, p)
        Rows; NaN cells are missing.

    Returns
    -------
    Latent
        Means and covariances, as tensors where X is one.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import latent
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [3.0, 1.0, 1.0]
    >>> latent(PCA(1).fit(X), X).covariance.shape
    (100, 1, 1)
    """
    given, model = open_dense(pca, X), convert_to_numpy(pca)
    factor = gaussian_model(model)
    parts = [_latent_of(D, observed, factor) for _, _, D, observed in _blocks(model, source_to_numpy(given))]
    found = Latent(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return like(given, found)  # type: ignore[no-any-return]


def log_densities(pca: PCA, source: Source) -> Array:
    r"""Log-density of the observed cells of each row, :math:`\ln N(x_o;\ \mu_o,\ C_{oo})`."""
    factor, s = gaussian_model(pca), variable_scale(pca)
    parts = []
    for _, _, D, observed in _blocks(pca, source):
        dets, quadratic = (_distances if factor.noise > 0.0 else _distances_without_noise)(D, observed, factor)
        constant = observed.sum(axis=1) * math.log(2 * math.pi) + 2 * (observed @ np.log(s))
        parts.append(-0.5 * (constant + dets + quadratic))
    return np.concatenate(parts)


def _distances(D: Array, observed: Mask, factor: Factor) -> tuple[Array, Array]:
    """ln|C_oo| and the squared Mahalanobis distance of the observed cells of each row."""
    Z, _, logdet = posterior(D, observed, factor)
    E = np.where(observed, D - Z @ factor.loading.T, 0.0)
    dets = logdet + (observed.sum(axis=1) - Z.shape[1]) * math.log(factor.noise)
    return dets, np.sum(E**2, axis=1) / factor.noise + np.sum(Z**2, axis=1)


def _distances_without_noise(D: Array, observed: Mask, factor: Factor) -> tuple[Array, Array]:
    """The same where all components are kept and none is noise: by QR of W_oᵀ for each pattern of observed cells."""
    dets, quadratic = np.empty(len(D)), np.empty(len(D))
    for o, rows in _patterns(observed):
        R: Array = np.asarray(np.linalg.qr(factor.loading[o].T, mode="r"), dtype=np.float64)
        pivots = np.abs(np.diag(R))
        if R.shape[0] < R.shape[1] or pivots.min() <= 1e-13 * pivots.max():
            raise ValueError("The model's covariance is singular, so rows with missing cells have no density under it.")
        dets[rows] = 2 * np.sum(np.log(pivots))
        quadratic[rows] = np.sum(np.linalg.solve(R.T, D[np.ix_(rows, np.flatnonzero(o))].T) ** 2, axis=0)
    return dets, quadratic


@dataclass(frozen=True, eq=False, repr=False)
class Pooled(Tabular):
    """Estimates from several completed tables, pooled by Rubin's rules.

    Attributes
    ----------
    estimate, variance : ndarray
        Mean of the estimates; T = U + (1 + 1/m)B.
    within, between : ndarray
        U and B.
    degrees_of_freedom : ndarray
        ν, of the t-distribution that intervals are taken from.
    missing_information : ndarray
        (1 + 1/m)B/T, the share of the variance that is due to missing cells.
    """

    estimate: Array
    variance: Array
    within: Array
    between: Array
    degrees_of_freedom: Array

    @property
    def missing_information(self) -> Array:
        """Share of the variance that is due to missing cells."""
        return 1.0 - self.within / np.where(self.variance > 0, self.variance, 1.0)

    def table(self, level: float = 0.95) -> dict[str, Array]:
        """Return the columns of a table of estimates: for ``pandas.DataFrame``."""
        lower, upper = self.interval(level)
        columns = {"estimate": self.estimate, "error": np.sqrt(self.variance), "lower": lower, "upper": upper}
        return columns | {"missing_information": self.missing_information}

    def _shown(self) -> dict[str, Any]:
        return {"": list(range(len(self.estimate)))} | self.table()

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the ends of the t-interval."""
        half = stdtrit(self.degrees_of_freedom, 0.5 + level / 2) * np.sqrt(self.variance)
        return self.estimate - half, self.estimate + half


@quiet_blas()
def pool(estimates: Any, variances: Any) -> Pooled:
    """Pool estimates and their variances, one row per completed table, by Rubin's rules.

    Parameters
    ----------
    estimates, variances : array-like of shape (m, q)
        Of each of m completed tables, the q estimates and their squared standard errors.

    Returns
    -------
    Pooled
        Their mean, its variance and degrees of freedom.

    Examples
    --------
    >>> from gramian.analysis import pool
    >>> pooled = pool([[1.0], [3.0]], [[1.0], [1.0]])
    >>> pooled.estimate, pooled.variance
    (array([2.]), array([4.]))
    """
    given = (fetch_numbers(estimates, "estimates"), fetch_numbers(variances, "variances"))
    Q, V = (np.asarray(values, dtype=np.float64) for values in given)
    if Q.shape != V.shape or len(Q) < 2:
        raise ValueError(f"Estimates of shape {Q.shape} and variances of shape {V.shape}: need two or more of each.")
    m, U, B = len(Q), V.mean(axis=0), Q.var(axis=0, ddof=1)
    extra = (1 + 1 / m) * B
    ratio = np.divide(U, extra, out=np.full_like(U, 1e8), where=extra > 1e-8 * U)
    return Pooled(Q.mean(axis=0), U + extra, U, B, (m - 1) * (1 + ratio) ** 2)


@dataclass(frozen=True, eq=False, repr=False)
class Imputations:
    """Completed tables to iterate over, any number of times: each is computed when it is asked for.

    Attributes
    ----------
    n : int
        How many.
    """

    pca: Any
    source: Source
    weights: Array | None
    n: int
    parameters: str
    seeds: tuple[np.random.SeedSequence, ...]
    progress: Progress | None = None

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        n, p = self.source.shape
        return f"Imputations({self.n} tables of {n} x {p}, parameters={self.parameters!r}: iterate, or pool(estimate))"

    def __iter__(self) -> Iterator[Array]:
        for i in range(self.n):
            yield self[i]
            if self.progress is not None:
                self.progress(i + 1, self.n, "tables")

    def __getitem__(self, i: int) -> Array:
        rng = np.random.default_rng(self.seeds[i])
        model = self.pca if self.parameters == "fixed" else _redraw_model(self.pca, self.source, self.weights, rng)
        return condition(model, self.source).sample(rng)

    def pool(self, estimate: Callable[[Array], tuple[Any, Any]]) -> Pooled:
        """Pool ``estimate(table) = (estimates, their variances)`` over the completed tables."""
        pairs = [estimate(table) for table in self]
        return pool([np.atleast_1d(q) for q, _ in pairs], [np.atleast_1d(v) for _, v in pairs])


@quiet_blas()
def multiple_imputation(
    pca: PCA,
    X: Any,
    n: int = 20,
    *,
    parameters: str = "bootstrap",
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Imputations:
    """Draw several completions of a table from the model of a PCA that was fitted to it.

    Parameters
    ----------
    pca : PCA
        A fitted model.
    X : array-like, path or Source of shape (n, p)
        The rows it was fitted to; NaN cells are missing.
    n : int, default=20
        How many completed tables.
    parameters : {"bootstrap", "fixed"}, default="bootstrap"
        Whether each table has a model of its own, fitted to rows drawn with replacement. With "fixed" the uncertainty
        of the model is left out, and intervals come out too short.
    sample_weight : array-like of shape (n,), optional
        Frequencies of the rows, as in the fit.
    random_state : int, RandomState, Generator or None, default=None
        Seed; None is a fixed one.
    progress : callable, optional
        Called as ``progress(done, total, message)`` after each table.

    Returns
    -------
    Imputations
        The tables, and :meth:`Imputations.pool` for estimates from them.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import multiple_imputation
    >>> X = np.random.default_rng(0).normal(size=(60, 1)) * [1.0, 2.0, -1.0] + np.sin(np.arange(180.0)).reshape(60, 3)
    >>> X[::5, 1] = np.nan
    >>> tables = multiple_imputation(PCA(1).fit(X), X, n=3, parameters="fixed")
    >>> pooled = tables.pool(lambda F: (F.mean(axis=0), F.var(axis=0) / len(F)))
    >>> bool(pooled.missing_information[1] > pooled.missing_information[0])
    True
    """
    check_choice("parameters", parameters, ("bootstrap", "fixed"))
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    source = source_to_numpy(open_dense(pca, X))
    seeds = tuple(np.random.SeedSequence(check_seed(random_state)).spawn(n))
    w = None if sample_weight is None else check_weights(sample_weight, source.shape[0])
    return Imputations(convert_to_numpy(pca), source, w, n, parameters, seeds, progress)


def _redraw_model(pca: PCA, source: Source, w: Array | None, rng: np.random.Generator) -> PCA:
    """Fit the model again to as many rows, drawn with replacement; a draw that leaves a column empty is redrawn."""
    rows = source.shape[0]
    share = np.full(rows, 1.0 / rows) if w is None else w / w.sum()
    draws = rows if w is None else round(float(w.sum()))
    model = clone(pca).set_params(n_components=int(pca.n_components_))
    for _ in range(100):
        weights = rng.multinomial(draws, share).astype(np.float64)
        try:
            return fit_incomplete(model, source, method=pca._missing_method, sample_weight=weights)
        except NothingObservedError:
            continue
    raise ValueError(
        "Rows drawn with replacement leave some column without an observed value, a hundred times over: too little of "
        "it is observed for multiple imputation. Leave it out, or use parameters='fixed'."
    )
