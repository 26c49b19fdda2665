r"""PCA of rows with missing cells: by maximum likelihood, or by iterative PCA.

Iterative PCA fills in, decomposes, fills in what the decomposition says, and again. Each round decomposes the completed
table X̃ = mean + UΣVᵀ and fills the missing cells with mean + U f(Σ) Vᵀ. With f(σ) = σ this minimises
Σ_observed w(x − m)² over means and rank-k matrices (Kiers 1997; missMDA calls it EM). With f(σ) = σ − c/σ it is the
regularised iterative PCA of Josse and Husson (2012), missMDA's default. For a fixed c that is the proximal step of the
penalty

.. math:: \varphi_c(y) = \tfrac y4\sqrt{y^2+4c} + c\,\mathrm{asinh}\frac{y}{2\sqrt c} - \tfrac{y^2}4,
    \qquad \varphi_c'(y) = f^{-1}(y) - y

so that every round lowers ½Σ_observed w(x − m)² + Σ φ_c(σ_i(m)): both methods have an objective. The noise c and the
scale of the columns are held while the rounds go on, then estimated again from the completed table, until these too
stand still.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from gramian.compute.devices import to_numpy
from gramian.compute.factor import eigh
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_seed, check_weights
from gramian.inputs.observed import ObservedCells, summarise_observed
from gramian.pca.factor import NO_NOISE, Factor, Rows, fit_factor, posterior
from gramian.pca.problem import PCAFit
from gramian.pca.rank import CrossValidation, apply_rule, pluralize, refuse_missing
from gramian.pca.solve import check_number, complete_basis, refuse_too_few, warn
from gramian.results import NumericalWarning, Optimum
from gramian.sources import Block, Source, map_source, memory_budget
from gramian.sources.devices import source_to_numpy
from gramian.spectral.rayleigh import fix_signs

if TYPE_CHECKING:
    from gramian.pca.estimator import PCA


Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

EXTRAPOLATED = 1.0  # times the variance of its observed cells that the missing ones may add to a column
MOST_EIGEN = 1024  # columns of a covariance that is rescaled as such
ROUNDS = 60  # of estimating the scale
ENOUGH = 10  # rows whose cells may be held out
LARGE_TABLE = 100_000  # cells from which on one fold in five is enough to judge by
TINY = float(np.finfo(float).tiny)
LIKELIHOOD = "likelihood"
ITERATIVE = ("least-squares", "regularised")
ALIASES = {"regularized": "regularised", "em": "least-squares"}  # as missMDA spells them


@quiet_blas()
def fit_incomplete(
    pca: PCA,
    X: Any,
    *,
    method: str = LIKELIHOOD,
    sample_weight: Any = None,
    tol: float | None = None,
    max_iter: int = 2000,
) -> PCA:
    """Fit a PCA to rows of which some cells are NaN, by a method of choice.

    Parameters
    ----------
    pca : PCA
        The estimator to fit.
    X : array-like, frame, tensor, path or Source of shape (n, p)
        The rows: dense, in memory or in a file.
    method : {"likelihood", "regularised", "least-squares"}, default="likelihood"
        Maximum likelihood of the observed cells under probabilistic PCA, which is what ``PCA.fit`` does; or
        iterative PCA with shrinkage or without, which missMDA calls "Regularized" and "EM".
    sample_weight : array-like of shape (n,), optional
        Frequencies, as in ``PCA.fit``.
    tol : float, optional
        Gradient to reach (see :class:`gramian.results.Optimum`): 1e-5 standard errors by likelihood; by the others
        a last change of the filled cells of 1e-6 of their spread. ``PCA.fit`` takes the constructor's.
    max_iter : int, default=2000
        Most iterations; too few for the tolerance is warned about.

    Returns
    -------
    PCA
        The estimator, fitted; its ``certificate_`` is an :class:`~gramian.results.Optimum`.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import fit_incomplete
    >>> X = np.outer(np.arange(6.0), [1.0, 2.0, -1.0]) + 0.1 * np.sin(np.arange(18.0)).reshape(6, 3)
    >>> X[2, 1] = np.nan
    >>> pca = fit_incomplete(PCA(n_components=1), X, method="regularised")
    >>> bool(abs(pca.impute(X)[2, 1] - 4.0) < 0.2)
    True
    """
    given = pca._open(X)
    source = source_to_numpy(given)
    w = None if sample_weight is None else check_weights(sample_weight, source.shape[0])
    pca._keep(fit_missing(pca, source, w, method, tol, max_iter), source, given)
    return pca


def fit_missing(
    pca: PCA, source: Source, w: Array | None, method: str = LIKELIHOOD, tol: float | None = None, max_iter: int = 2000
) -> PCAFit:
    """Fit by one of three methods, and warn where it did not converge; complete rows are welcome too."""
    method = ALIASES.get(method.lower(), method)
    check_choice("method", method, (LIKELIHOOD, *ITERATIVE))
    if max_iter < 1:
        raise ValueError(f"max_iter must be at least 1, got {max_iter!r}.")
    (n, p), rule = source.shape, pca.n_components
    refuse_too_few(n, n if w is None else float(w.sum()))
    k = check_number(rule, min(n, p), pca.svd_solver)
    if method != LIKELIHOOD:
        if k is None or rule is None:
            raise ValueError(f"method={method!r} needs n_components as a number, got {rule!r}.")
        found = iterative_pca(pca, source, k, w, method=method, tol=1e-6 if tol is None else tol, max_iter=max_iter)
        _warn_unless_converged(found.certificate)
        scale = found.scale if pca.scale else None
        rest = {"mean": found.mean, "scale": scale, "certificate": found.certificate, "missing_method": method}
        return _to_fit(found.components.T, found.variances, found.total, found.weight, found.noise, **rest)
    tol = 1e-5 if tol is None else tol
    if isinstance(rule, str) and rule != "cv":  # such rules count rows as if every cell were observed
        refuse_missing(source)
        raise ValueError(f"n_components={rule!r} is for PCA.fit: here give a number, a fraction, or 'cv'.")
    seen, reason = summarise_observed(source, w), ""
    likely: PCAFit | None = None
    everything = rule is None or k == p
    if everything or (k is None and rule != "cv"):
        likely, reason = _fit_all_components(pca, source, w, seen, k, tol, max_iter)
    if likely is None:
        choice = choose_by_held_out_cells(pca, source, w) if k is None or everything else None
        number = max(choice.n_components, 1) if choice is not None else int(k or 0)
        likely = _fit_likelihood(pca, source, w, seen, number, tol, max_iter)
        if choice is not None:
            note = f"{pluralize(number)} by held-out cells: {choice.reason}{reason}"
            likely = replace(likely, certificate=likely.certificate.with_(notes=(*likely.certificate.notes, note)))
    _warn_unless_converged(likely.certificate)
    return likely


def _fit_all_components(
    pca: PCA, source: Source, w: Array | None, seen: ObservedCells, k: int | None, tol: float, max_iter: int
) -> tuple[PCAFit | None, str]:
    """Fit the whole covariance, which is p − 1 components and noise; then keep all, or a fraction (k is None).

    Where it is not determined by the cells, none is returned if all was but the default, and the reason.
    """
    p, varied = source.shape[1], np.flatnonzero(seen.scatter > 0)
    q, default = len(varied), pca.n_components is None
    names = source.feature_names or [f"column {j + 1}" for j in range(p)]
    least, pair = _fewest_common_rows(source, w, varied)
    if q < 2 or least <= q:
        together = " and ".join(names[varied[j]] for j in pair)
        reason = f" All components are not determined: {together} are observed together in {least:g} rows."
        if default and q >= 2 and seen.rows >= ENOUGH:
            return None, reason
        raise ValueError(
            f"{seen.rows} rows with missing values do not determine all components of {p} columns, {q} of which "
            f"vary.{reason} Give n_components as a smaller number, or 'cv' to have it chosen by held-out cells."
        )
    # constant columns have no variance to estimate, and would leave the likelihood without a maximum
    part = source if q == p else map_source(source, lambda b: to_numpy(b.values, float)[:, varied], columns=q)
    part_seen = seen if q == p else summarise_observed(part, w)
    whole = _fit_likelihood(pca, part, w, part_seen, q - 1, tol, max_iter)
    variances = np.append(whole.variances, [whole.noise, *np.zeros(p - q)])
    if k is None:
        enough = min(apply_rule(pca.n_components, variances, whole.weight, p)[0], p - 1)
        if whole.certificate.has_maximum:
            _warn_unless_converged(whole.certificate)
        return _fit_likelihood(pca, source, w, seen, enough, tol, max_iter), ""
    # cells missing at random add no more than their share; what adds more than was observed is extrapolation
    widest = int(np.argmax(whole.reach))
    if whole.reach[widest] > EXTRAPOLATED:
        times = f"{whole.reach[widest]:.3g} times the variance of the observed ones"
        why = f"with all components the missing cells of {names[varied[widest]]} add {times}"
        if default:
            return None, f" All are not kept: {why}."
        warn(
            f"{why[0].upper()}{why[1:]}: what is not observed was extrapolated far beyond what is. Ask for fewer "
            "components, or n_components='cv', which chooses by held-out cells."
        )
    V, scale, mean = np.zeros((p, q - 1)), np.ones(p), seen.mean.copy()
    V[varied], mean[varied] = whole.components.T, whole.mean
    scale[varied] = 1.0 if whole.scale is None else whole.scale
    rest = {"mean": mean, "scale": scale if pca.scale else None, "certificate": whole.certificate}
    return _to_fit(complete_basis(np, V, p), variances, float(variances.sum()), whole.weight, **rest), ""


def _fewest_common_rows(source: Source, w: Array | None, columns: Index) -> tuple[float, tuple[int, int]]:
    """Return the fewest rows in which two columns are observed together, and which two: only these tell of both."""

    def count(block: Block) -> Array:
        seen = ~np.isnan(to_numpy(block.values, float)[:, columns])
        part = np.ones(len(seen)) if w is None else w[block.start : block.stop] > 0
        return np.asarray((seen * part[:, None]).T @ seen.astype(np.float64))

    if not len(columns):
        return 0.0, (0, 0)
    common = source.reduce(count, np.add)
    i, j = divmod(int(np.argmin(common)), len(columns))
    return float(common[i, j]), (i, j)


@dataclass(frozen=True, eq=False)
class IncompleteFit(PCAFit):
    """A fit to rows with missing cells, and the variance that these add to columns over that of the observed cells."""

    reach: Array = field(default_factory=lambda: np.zeros(1))


def _fit_likelihood(
    pca: PCA,
    source: Source,
    w: Array | None,
    seen: ObservedCells,
    k: int,
    tol: float,
    max_iter: int,
    rescale: bool = True,
) -> IncompleteFit:
    """Probabilistic PCA of the observed cells; scaled columns have the variance 1 that the model expects of them."""
    p = source.shape[1]
    most = min(seen.rows - 1, p - 1)
    if k > most:
        raise ValueError(
            f"n_components={k} must be at most {most}, less than the rows and the columns, where values are missing."
        )
    scale, correction = seen.deviation if pca.scale else np.ones(p), seen.weight / (seen.weight - 1.0)

    def about_mean(block: Block) -> Array:
        return np.asarray((to_numpy(block.values, float) - seen.mean) / scale)

    # start: the closed form for the rows with missing cells at their column's mean
    filled = map_source(source, lambda b: np.nan_to_num(about_mean(b)))
    first = _fit_quietly(pca, filled, w, n_components=k, scale=False, whiten=False, device=None)
    variances, noise = np.asarray(first.explained_variance_), first.noise_variance_
    noise = max(noise, 1e-6 * (float(variances.sum()) + noise * (p - k)) / p) or 1.0
    W = np.asarray(first.components_, dtype=np.float64).T * np.sqrt(np.maximum(variances - noise, 1e-3 * noise))
    factor, passes, rounds, last, before = Factor(np.zeros(p), W, noise), 2, 0, None, math.inf
    damping = 1.0
    while True:
        factor, certificate = fit_factor(source, factor, w, rows=about_mean, tol=tol, max_iter=max_iter)
        passes, rounds = passes + certificate.passes + 1, rounds + 1
        spread, filled_in = _expected_squares(source, w, factor, about_mean)
        spread *= correction
        if not (pca.scale and rescale):
            break
        change = np.where(seen.scatter > 0, 0.5 * np.log(np.maximum(spread, TINY)), 0.0)
        drift = float(np.max(np.abs(change), initial=0.0)) * math.sqrt(2 * seen.weight)  # in standard errors
        if drift <= tol or rounds >= ROUNDS or not certificate.has_maximum:
            certificate = certificate.with_(
                gradient=max(certificate.gradient, drift), notes=(*certificate.notes, f"{rounds} rounds of scaling")
            )
            break
        # the change falls by a constant factor from round to round, column by column: go to where it ends
        if drift > before:  # it overshot
            last, damping = None, max(damping / 2, 1 / 16)
        before = drift
        fall = np.zeros(p) if last is None else np.divide(change, last, out=np.zeros(p), where=np.abs(last) > 1e-12)
        last, change = change, damping * change / (1 - np.clip(fall, -0.5, 0.8))
        factor, scale = _rescale(factor, np.exp(change)), scale * np.exp(change)
    certificate = certificate.with_(
        passes=passes,
        objective=certificate.objective + float(seen.count @ np.log(scale)),  # in the data's own units
        notes=(f"{seen.missing} of {seen.rows * p} cells are missing, assumed at random", *certificate.notes),
    )
    # components and variances of μ, W, σ²: maximum likelihood divides by n, PCA by n − 1
    V, lengths, _ = np.linalg.svd(factor.loading, full_matrices=False)
    noise = factor.noise * correction
    variances = lengths**2 * correction + noise
    total = float(variances.sum()) + (p - k) * noise
    rest = {"mean": seen.mean + factor.mean * scale, "scale": scale if pca.scale else None, "certificate": certificate}
    found = _to_fit(V, variances, total, seen.weight, noise, **rest)
    reach = np.where(seen.scatter > 0, filled_in * (scale / seen.deviation) ** 2, 0.0)
    return IncompleteFit(**vars(found), reach=reach)


def _expected_squares(source: Source, w: Array | None, factor: Factor, rows: Rows) -> tuple[Array, Array]:
    """Σ w E(x − μ)²/Σ w of every column, observed cells as they are, others by the model; and Σ w x̂²/Σ w of these."""
    W = factor.loading

    def sum_squares(block: Block) -> Array:
        D, part = rows(block), np.ones(block.stop - block.start) if w is None else w[block.start : block.stop]
        D, part = D[part > 0], part[part > 0]
        observed = ~np.isnan(D)
        Z, inverse, _ = posterior(D, observed, factor)
        spread = np.einsum("pi,nij,pj->np", W, np.broadcast_to(inverse, (len(D), *inverse.shape[1:])), W, optimize=True)
        missing = (Z @ W.T) ** 2
        squares = np.where(observed, (D - factor.mean) ** 2, missing + factor.noise * (spread + 1.0))
        return np.stack([part @ squares, part @ np.where(observed, 0.0, missing), np.full(len(W), part.sum())])

    p, k = W.shape
    step = max(1, memory_budget() // 8 // (8 * (4 * p + 4 * (k + 1) ** 2)))
    squares, missing, weight = source.reduce(sum_squares, np.add, step)
    return squares / weight, missing / weight


def _rescale(factor: Factor, by: Array) -> Factor:
    """Return the model in columns divided by ``by``: its covariance, cut to k components and noise again."""
    p, k = factor.loading.shape
    W, mean = factor.loading / by[:, None], factor.mean / by
    if p > MOST_EIGEN:
        return Factor(mean, W, factor.noise * float(np.mean(by**-2)))
    values, vectors = eigh(W @ W.T + np.diag(factor.noise / by**2))
    noise = float(np.mean(values[: p - k]))
    return Factor(mean, vectors[:, p - k :] * np.sqrt(np.maximum(values[p - k :] - noise, 0.0)), noise)


def choose_by_held_out_cells(
    pca: PCA, source: Source, w: Array | None = None, *, n_folds: int = 5, max_components: int | None = None
) -> CrossValidation:
    r"""Choose the number of components that predict observed cells best which the fit has not seen.

    .. math:: \mathrm{PRESS}(k) = \sum_{(i,j)\ \text{held out}} w_i\,(x_{ij}-\hat x_{ij}^{(k)})^2/s_j^2

    The observed cells are dealt into folds, row by row, so that every row keeps some; those of a fold are taken for
    missing, a model of k components is fitted to the others and predicts them by their conditional expectation. s is
    1 without ``scale``. The fewest components that are worse than the best by no more than a standard error are
    chosen. More and more are tried until three in a row have predicted worse, or missing cells add more variance to a
    column than the observed ones have. A large table is judged by one fold. The idea is that of missMDA's
    ``estim_ncpPCA`` (Josse and Husson, Comput. Stat. Data Anal. 56, 2012).

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.pca.missing import choose_by_held_out_cells
    >>> rng = np.random.default_rng(3)
    >>> X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 7)) + 0.2 * rng.normal(size=(80, 7))
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> choose_by_held_out_cells(gramian.PCA(), gramian.open(X)).n_components
    2
    """
    (n, p), rng = source.shape, np.random.default_rng(check_seed(pca.random_state))
    folds, seen = np.full((n, p), -1, dtype=np.int8), summarise_observed(source, w)
    scale = seen.deviation if pca.scale else np.ones(p)
    for block in source.blocks():  # in every row the observed cells are dealt in turn, from a fold at random
        observed = ~np.isnan(to_numpy(block.values, float))
        order = np.argsort(np.argsort(np.where(observed, rng.random(observed.shape), 2.0), axis=1), axis=1)
        dealt = (order + rng.integers(n_folds, size=(len(observed), 1))) % n_folds
        usable = observed & (observed.sum(axis=1, keepdims=True) > 1) & (seen.count > 2 * n_folds)
        folds[block.start : block.stop] = np.where(usable, dealt, -1)
    every = np.ones(n) if w is None else w
    limit = max(1, min(p - 1, seen.rows - 2) if max_components is None else max_components)
    tried, used = list(range(min(limit, 10) + 1)), n_folds if n * p <= LARGE_TABLE else 1
    while tried[-1] < limit:
        tried.append(min(limit, math.ceil(1.2 * tried[-1])))
    errors = np.zeros((len(tried), n))  # of every number tried, by row
    for fold in range(used):
        train = map_source(
            source,
            lambda b: np.where(folds[b.start : b.stop] == fold, np.nan, to_numpy(b.values, float)),  # noqa: B023
        )
        own = summarise_observed(train, w)
        for place, k in enumerate(tried):
            fit = _fit_likelihood(pca, train, w, own, k, 1e-2, 200, rescale=False) if k else None
            if fit is not None and fit.reach.max() > EXTRAPOLATED:  # nothing that fits what was not observed is seen
                errors[place:] = math.inf
                break
            for block in source.blocks():
                rows, X = slice(block.start, block.stop), to_numpy(block.values, float)
                held, expected = folds[rows] == fold, own.mean
                if fit is not None:
                    s = np.ones(p) if fit.scale is None else fit.scale
                    D = np.where(held, np.nan, X - fit.mean) / s
                    W = fit.components.T * np.sqrt(np.maximum(fit.variances - fit.noise, 0.0))
                    factor = Factor(np.zeros(p), W, max(fit.noise, TINY))
                    expected = fit.mean + s * (posterior(D, ~np.isnan(D), factor)[0] @ W.T)
                errors[place, rows] += every[rows] * np.sum(((X - expected) / scale) ** 2, axis=1, where=held)
            sums = errors[: place + 1].sum(axis=1)
            if place > 3 and sums[-3:].min() > sums.min():
                errors[place + 1 :] = math.inf
                break
    press = errors.sum(axis=1)
    tried, errors, press = tried[: np.isfinite(press).sum()], errors[np.isfinite(press)], press[np.isfinite(press)]
    # the fewest that are worse than the best by no more than a standard error of the difference
    excess = errors - errors[np.argmin(press)]
    deviation = np.sqrt(n * np.var(excess, axis=1))
    best = int(np.argmax(excess.sum(axis=1) <= deviation))
    reason = "no number of components predicts held-out cells better than the means of columns do."
    if best > 0:
        share = press[best] / press[0]
        reason = f"they predict held-out cells as well as any number does, with {share:.3g} of the error of the means."
    return CrossValidation("cv", tried[best], reason, press[1:], press[:-1], press)


def _fit_quietly(pca: PCA, source: Source, w: Array | None, **params: Any) -> PCA:
    """A clone with other parameters, fitted: not what the user asked for, so that it does not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        return clone(pca).set_params(**params).fit(source, sample_weight=w)  # type: ignore[no-any-return]


def _to_fit(V: Array, variances: Array, total: float, weight: float, noise: float = 0.0, **rest: Any) -> PCAFit:
    """Name what was found: V has components as columns, ``rest`` are the other fields of a PCAFit."""
    sigma = np.sqrt(variances * (weight - 1.0))
    found = fix_signs(np, V).T, variances, variances / (total or 1.0), sigma
    return PCAFit(*found, weight=weight, rank=len(variances), noise=float(noise), **rest)


def _warn_unless_converged(certificate: Any) -> None:
    if not certificate.has_maximum:
        warn(
            f"The fit has no maximum: {NO_NOISE}. Components and means are as they should be; densities are not. Ask "
            "for fewer components, or use gramian.analysis.fit_incomplete(pca, X, method='least-squares')."
        )
    elif not certificate.converged:
        warn(
            f"The fit with missing values did not converge: gradient {certificate.gradient:.1e} after "
            f"{certificate.iterations} iterations, tolerance {certificate.tolerance:.1e}. Call "
            "gramian.analysis.fit_incomplete with a larger max_iter or tol, fewer components, or method='regularised'."
        )


@dataclass(frozen=True, eq=False)
class LowRank:
    """The matrix 1 meanᵀ + scores components, in scaled units."""

    mean: Array
    scores: Array
    components: Array

    def rows(self, start: int, stop: int) -> Array:
        """Return some of its rows."""
        return np.asarray(self.mean + self.scores[start:stop] @ self.components)

    def ahead(self, other: LowRank, beta: float) -> LowRank:
        """Return self + β(self − other)."""
        if beta == 0.0:
            return self
        return LowRank(
            (1 + beta) * self.mean - beta * other.mean,
            np.hstack([(1 + beta) * self.scores, -beta * other.scores]),
            np.vstack([self.components, other.components]),
        )


@dataclass(frozen=True, eq=False)
class Completion:
    """A table with its missing cells filled by k components.

    Attributes
    ----------
    mean, scale : ndarray of shape (p,)
        Of the completed table, in the data's units.
    components : ndarray of shape (k, p)
        Orthonormal rows.
    variances : ndarray of shape (k,)
        Eigenvalues of the completed table's covariance, scaled columns, divisor Σw − 1.
    total, noise : float
        Their sum over all components, and the noise variance.
    fitted : LowRank
        What the missing cells were filled with, in scaled units.
    phases : tuple of ndarray
        The objective after each step, a new array whenever the noise or the scale was estimated anew.
    certificate : Optimum
        Its objective is that of the last phase, its gradient the last change of the missing cells, and of noise and
        scale, relative to the spread of the observed ones.
    """

    mean: Array
    scale: Array
    components: Array
    variances: Array
    total: float
    noise: float
    weight: float
    fitted: LowRank
    phases: tuple[Array, ...]
    certificate: Optimum

    def completed(self, X: Any) -> Array:
        """Return the rows this was made from with NaN cells filled in; they must come in the same order."""
        D = np.array(X, dtype=np.float64)
        fit = self.fitted.rows(0, len(D)) * self.scale
        return np.where(np.isnan(D), fit, D)


@dataclass(frozen=True, eq=False)
class _Round:
    """What one round of iterative PCA found.

    ``fitted`` is the mean and the shrunken components of the completed table, ``squares`` its k + 1 leading squared
    singular values, ``total`` the sum of all and ``rest`` that of all but k; ``objective`` is ½Σ_observed w(x − m)² +
    Σφ(σ(m)) at ``fitted``;
    ``change`` is ‖fitted − guess‖ over the missing cells, relative to the spread of the observed ones; ``noise`` and
    ``scale`` are what c and the columns' scale are by the completed table.
    """

    fitted: LowRank
    squares: Array
    total: float
    rest: float
    objective: float
    change: float
    noise: float
    scale: Array
    passes: int


@quiet_blas()
def iterative_pca(
    pca: PCA,
    source: Source,
    k: int,
    w: Array | None = None,
    *,
    method: str = "regularised",
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> Completion:
    """Complete a table by k components; see the module for the mathematics.

    Parameters
    ----------
    pca : PCA
        Says how to decompose (``svd_solver``, ``tol``, ``scale``); need not be fitted.
    source : Source
        The rows; NaN cells are missing.
    k : int
        Number of components.
    w : ndarray of shape (n,), optional
        Frequencies of the rows.
    method : {"regularised", "least-squares"}, default="regularised"
        missMDA's "Regularized" and "EM".
    tol : float, default=1e-6
        Change of the filled cells to reach, relative to the spread of the observed ones.
    max_iter : int, default=1000
        Most rounds.

    Returns
    -------
    Completion
        Components, filled cells and certificate.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.analysis import iterative_pca
    >>> X = np.outer([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    >>> X[3, 1] = np.nan
    >>> found = iterative_pca(gramian.PCA(), gramian.open(X), 1, method="least-squares")
    >>> round(float(found.completed(X)[3, 1]), 3)
    8.0
    """
    check_choice("method", method, ITERATIVE)
    regularised, (n, p), seen = method == "regularised", source.shape, summarise_observed(source, w)
    w = np.ones(n) if w is None else w
    most = min(seen.rows - 2, math.ceil(seen.weight) - 2, p - 1)
    if not 1 <= k <= most:
        raise ValueError(
            f"n_components={k} must be between 1 and {most}, two less than the rows (the sum of the weights) and "
            "one less than the columns, where values are missing."
        )
    freedom = seen.weight - 1.0
    scale = seen.deviation if pca.scale else np.ones(p)
    norm = math.sqrt(float(np.sum(seen.scatter / scale**2))) or 1.0  # of the observed cells about their means, scaled

    def decompose(guess: LowRank, scale: Array, noise: float) -> _Round:
        """Decompose the table completed by a guess, shrink by c = ``noise``, and look at the cells once more."""

        def complete(block: Block) -> tuple[Array, npt.NDArray[np.bool_]]:
            """Rows in scaled units with missing cells filled by the guess, and which these are."""
            X = to_numpy(block.values, float) / scale
            missing = np.isnan(X) | (w[block.start : block.stop, None] == 0)  # all of a row without weight
            return np.where(missing, guess.rows(block.start, block.stop), X), missing

        completed = map_source(source, lambda block: complete(block)[0])
        fit = PCAFit.of(_fit_quietly(pca, completed, w, n_components=k + 1, scale=False, whiten=False))
        squares, V, mean = fit.singular_values**2, fit.components[:k], fit.mean
        shrink = np.maximum(1.0 - noise / np.maximum(squares[:k], np.finfo(float).tiny), 0.0)
        scores, spread = np.empty((n, k)), np.zeros(p)
        error = change = 0.0
        for block in source.blocks():
            X, missing = complete(block)
            rows, D = slice(block.start, block.stop), X - mean
            part = w[rows][:, None]
            scores[rows] = (D @ V.T) * shrink
            moved = part * (D - scores[rows] @ V) ** 2
            spread += np.sum(part * D**2, axis=0)
            change += float(np.sum(moved, where=missing))
            error += float(np.sum(moved, where=~missing))
        rest = max(float(np.sum(spread)) - float(np.sum(squares[:k])), 0.0)
        # c = nσ̂², σ̂² = np/min(p, n−1) Σ_{i>k} λᵢ/((n−1)(p−k) − pk + k²), but no more than the first square left out
        cells = freedom * p - freedom * k - p * k + k**2
        new_noise = min(seen.weight * p / min(p, freedom) * rest / cells, float(squares[k])) if regularised else 0.0
        if pca.scale:  # standard deviations of the completed columns, where they are not zero
            scale = np.where(spread > 0, scale * np.sqrt(spread / freedom), scale)
        return _Round(
            fitted=LowRank(mean, scores, V),
            squares=squares,
            total=float(np.sum(spread)),
            rest=rest,
            objective=0.5 * error + float(np.sum(penalty(shrink * np.sqrt(squares[:k]), noise))),
            change=math.sqrt(change) / norm,
            noise=new_noise,
            scale=scale,
            passes=int(fit.certificate.passes) + 1,
        )

    fit = LowRank(seen.mean / scale, np.zeros((n, 0)), np.zeros((0, p)))
    noise = decompose(fit, scale, 0.0).noise if regularised else 0.0
    within = 1e-2 if regularised or pca.scale else tol
    phases: list[Array] = []
    passes = rounds = 0
    while True:
        # rounds with momentum (Nesterov's, restarted where the objective would rise) until the cells stand still
        trace: list[float] = []
        momentum, before, last = 1.0, fit, None
        while last is None or rounds < max_iter:
            following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            beta = (momentum - 1) / following
            found = decompose(fit.ahead(before, beta), scale, noise)
            passes, rounds = passes + found.passes, rounds + 1
            if beta > 0 and found.objective > trace[-1]:
                momentum, before = 1.0, fit  # it overshot: from here a plain round, which never loses
                continue
            trace.append(found.objective)
            last = found
            if found.change <= within:
                break
            before, fit, momentum = fit, found.fitted, following
        phases.append(np.array(trace))
        # relative change that estimating noise and scale anew would make
        drift = abs(last.noise - noise) / max(last.noise, noise) if noise > 0 else 0.0
        drift = max(drift, float(np.max(np.abs(last.scale / scale - 1.0))))
        gradient = max(last.change, drift)
        if gradient <= tol or rounds >= max_iter:
            break
        factor = scale / last.scale
        fit = LowRank(last.fitted.mean * factor, last.fitted.scores, last.fitted.components * factor)
        noise, scale, within = last.noise, last.scale, min(within, max(tol, 0.1 * drift))
    name = "regularised iterative PCA" if regularised else "iterative PCA (least squares of the observed cells)"
    notes = (f"noise and scale were estimated {len(phases)} times",) if len(phases) > 1 else ()
    reason = f"{seen.missing} cells are missing"
    return Completion(
        mean=last.fitted.mean * scale,
        scale=scale,
        components=last.fitted.components,
        variances=last.squares[:k] / freedom,
        total=last.total / freedom,
        noise=(noise if regularised else last.rest / (min(p, math.ceil(freedom)) - k)) / freedom,
        weight=seen.weight,
        fitted=last.fitted,
        phases=tuple(phases),
        certificate=Optimum(name, reason, passes + 1, rounds, phases[-1], gradient, tolerance=tol, notes=notes),
    )


def penalty(y: Array, c: float) -> Array:
    """φ_c of shrunken singular values y; 0 without shrinking."""
    if c <= 0.0:
        return 0.0 * y
    return np.asarray(y / 4 * np.sqrt(y**2 + 4 * c) + c * np.arcsinh(y / (2 * math.sqrt(c))) - y**2 / 4)
