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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from gramian.compute.devices import to_numpy
from gramian.inputs.checks import check_choice, check_weights
from gramian.inputs.observed import summarise_observed
from gramian.pca.factor import NO_NOISE, Factor, fit_factor
from gramian.pca.problem import PCAFit
from gramian.pca.rank import apply_rule
from gramian.pca.solve import check_number, complete_basis, refuse_too_few, warn
from gramian.results import NumericalWarning, Optimum
from gramian.sources import Block, Source, map_source
from gramian.sources.devices import source_to_numpy
from gramian.spectral.rayleigh import fix_signs

if TYPE_CHECKING:
    from gramian.pca.estimator import PCA


Array = npt.NDArray[np.float64]

LIKELIHOOD = "likelihood"
ITERATIVE = ("least-squares", "regularised")
ALIASES = {"regularized": "regularised", "em": "least-squares"}  # as missMDA spells them


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
    fit = fit_missing(pca, source, w, method, tol, max_iter)
    pca._keep(fit, source, given)
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
        fit = _to_fit(
            found.components.T, found.variances, found.total, found.noise, found.weight, found.mean,
            found.scale if pca.scale else None, found.certificate, method,
        )  # fmt: skip
        _warn_unless_converged(found.certificate)
        return fit
    tol = 1e-5 if tol is None else tol
    if isinstance(rule, str):  # such rules count rows as if every cell were observed
        raise ValueError(
            f"n_components={rule!r} needs complete rows. Where cells are missing give a number or a fraction, such as "
            "the number with the largest held-out likelihood: cross_val_score(PCA(k), X) takes missing cells."
        )
    if k is None or rule is None or k == p:
        return _fit_all_components(pca, source, w, k, tol, max_iter)
    fit = _fit_likelihood(pca, source, w, k, tol, max_iter)
    _warn_unless_converged(fit.certificate)
    return fit


def _fit_all_components(pca: PCA, source: Source, w: Array | None, k: int | None, tol: float, max_iter: int) -> PCAFit:
    """Fit the whole covariance, which is p − 1 components and noise; then keep all, or a fraction (k is None)."""
    seen = summarise_observed(source, w)
    p, varied = source.shape[1], np.flatnonzero(seen.scatter > 0)
    q = len(varied)
    if q < 2 or q > seen.rows - 2:
        raise ValueError(
            f"{seen.rows} rows with missing values do not determine all components of {p} columns, {q} of which vary. "
            "Give n_components as a smaller number."
        )
    # constant columns have no variance to estimate, and would leave the likelihood without a maximum
    part = source if q == p else map_source(source, lambda b: to_numpy(b.values, float)[:, varied], columns=q)
    whole = _fit_likelihood(pca, part, w, q - 1, tol, max_iter)
    variances = np.append(whole.variances, [whole.noise, *np.zeros(p - q)])
    if k is None:
        enough = min(apply_rule(pca.n_components, variances, whole.weight, p)[0], p - 1)
        fit = _fit_likelihood(pca, source, w, enough, tol, max_iter)
        if whole.certificate.has_maximum:
            _warn_unless_converged(whole.certificate)
        _warn_unless_converged(fit.certificate)
        return fit
    V, scale, mean = np.zeros((p, q - 1)), np.ones(p), seen.mean.copy()
    V[varied], mean[varied] = whole.components.T, whole.mean
    scale[varied] = 1.0 if whole.scale is None else whole.scale
    total = float(variances.sum())
    _warn_unless_converged(whole.certificate)
    return _to_fit(
        complete_basis(np, V, p), variances, total, 0.0, whole.weight, mean, scale if pca.scale else None,
        whole.certificate,
    )  # fmt: skip


def _fit_likelihood(pca: PCA, source: Source, w: Array | None, k: int, tol: float, max_iter: int) -> PCAFit:
    """Probabilistic PCA of the observed cells, columns divided by their observed deviations where asked."""
    seen, p = summarise_observed(source, w), source.shape[1]
    most = min(seen.rows - 1, p - 1)
    if k > most:
        raise ValueError(
            f"n_components={k} must be at most {most}, less than the rows and the columns, where values are missing."
        )
    scale = seen.deviation if pca.scale else np.ones(p)

    def about_mean(block: Block) -> Array:
        return np.asarray((to_numpy(block.values, float) - seen.mean) / scale)

    # start: the closed form for the rows with missing cells at their column's mean
    filled = map_source(source, lambda b: np.nan_to_num(about_mean(b)))
    first = _fit_quietly(pca, filled, w, n_components=k, scale=False, whiten=False, device=None)
    variances, noise = np.asarray(first.explained_variance_), first.noise_variance_
    noise = max(noise, 1e-6 * (float(variances.sum()) + noise * (p - k)) / p) or 1.0
    W = np.asarray(first.components_, dtype=np.float64).T * np.sqrt(np.maximum(variances - noise, 1e-3 * noise))
    start = Factor(np.zeros(p), W, noise)

    factor, certificate = fit_factor(source, start, w, rows=about_mean, tol=tol, max_iter=max_iter)
    certificate = certificate.with_(
        passes=certificate.passes + 2,
        objective=certificate.objective + float(seen.count @ np.log(scale)),  # in the data's own units
        notes=(f"{seen.missing} of {seen.rows * p} cells are missing, assumed at random", *certificate.notes),
    )
    # components and variances of μ, W, σ²: maximum likelihood divides by n, PCA by n − 1
    V, lengths, _ = np.linalg.svd(factor.loading, full_matrices=False)
    correction = seen.weight / (seen.weight - 1.0)
    noise = factor.noise * correction
    variances = lengths**2 * correction + noise
    total = float(variances.sum()) + (p - k) * noise
    mean, own = seen.mean + factor.mean * scale, scale if pca.scale else None
    return _to_fit(V, variances, total, noise, seen.weight, mean, own, certificate)


def _fit_quietly(pca: PCA, source: Source, w: Array | None, **params: Any) -> PCA:
    """A clone with other parameters, fitted: not what the user asked for, so that it does not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        return clone(pca).set_params(**params).fit(source, sample_weight=w)  # type: ignore[no-any-return]


def _to_fit(
    V: Array,
    variances: Array,
    total: float,
    noise: float,
    weight: float,
    mean: Array,
    scale: Array | None,
    certificate: Optimum,
    method: str = LIKELIHOOD,
) -> PCAFit:
    """Name what was found; V has components as columns."""
    sigma = np.sqrt(variances * (weight - 1.0))
    return PCAFit(
        fix_signs(np, V).T, variances, variances / (total or 1.0), sigma, mean, scale, float(noise), weight,
        len(variances), certificate, method,
    )  # fmt: skip


def _warn_unless_converged(certificate: Any) -> None:
    if certificate.converged:
        return
    if not certificate.has_maximum:
        warn(
            f"The fit has no maximum: {NO_NOISE}. Components and means are as they should be; densities are not. Ask "
            "for fewer components, or use gramian.analysis.fit_incomplete(pca, X, method='least-squares')."
        )
        return
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
