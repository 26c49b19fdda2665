"""How far to trust a PCA: bootstrap intervals, and standard errors for many Gaussian rows without resampling."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.special import chdtrc, ndtri
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import to_numpy
from gramian.compute.threads import n_threads, parallel, quiet_blas
from gramian.inputs.checks import check_choice, check_seed, check_share
from gramian.inputs.devices import convert_to_numpy
from gramian.inputs.progress import Progress
from gramian.pca.estimator import PCA
from gramian.pca.interpret import (
    component_names,
    dense_rows,
    feature_names,
    float_rows,
    had_missing_cells,
    loadings,
    open_training_rows,
    plain_scores,
    refuse_lost_variances,
    refuse_no_components,
    row_names,
)
from gramian.pca.missing import fit_incomplete
from gramian.pca.problem import PCAFit
from gramian.pca.solve import warn
from gramian.results import NumericalWarning, Optimum
from gramian.results.intervals import Interval, bootstrap_intervals
from gramian.results.tables import Tabular
from gramian.sources import Source, memory_budget

Array = npt.NDArray[np.float64]

NARROW = 200  # columns up to which a p×p matrix per replicate is quicker than a fit
SAFE = 1e-5  # λ_k/λ₁ down to which a Gram matrix keeps ten digits of λ_k
DUST = 1e-13  # λ/λ₁ up to which an eigenvalue of a Gram matrix may be rounding alone
SPARE = 3  # components beyond the k-th that one of the k may change places with
OFTEN = 0.05  # share of replicates from which on a change of places is worth a note
TIED = 1e-12  # variances nearer than this share of them are equal


def _intervals_by_parts(
    estimate: Array, parts: Iterable[tuple[Any, Array]], level: float, method: str, *names: tuple[str, ...] | None
) -> Interval:
    """The same, from an index and the replicates of the entries there, part by part: all of them would be many."""
    out = np.empty((4, *estimate.shape))
    for index, replicates in parts:
        part = bootstrap_intervals(estimate[index], replicates, level, method)
        out[(slice(None), *index)] = part.lower, part.upper, part.error, part.bias
    return Interval(estimate, *out, *names)


@dataclass(frozen=True, repr=False, eq=False)
class Bootstrap(Tabular):
    """Intervals of a PCA from resampled rows.

    Attributes
    ----------
    explained_variance, explained_variance_ratio : Interval of shape (k,)
        Of the l-th largest variance in each replicate, whatever its direction.
    components : Interval of shape (k, p)
        Of the entries of the components, after alignment.
    loadings : Interval of shape (p, k)
        Of the loadings V√λ, as ``pca.loadings()`` gives them, after alignment.
    scores : Interval of shape (n, k) or None
        Of the scores of the rows handed in, each row taken as a fixed point.
    swaps : ndarray of shape (k,)
        Share of replicates in which the direction nearest to component l was not the l-th.
    variances : ndarray of shape (n_replicates, k)
        The variances of every replicate.
    level : float
        Coverage aimed at.
    align, method : str
        How directions were matched, and how intervals were made.
    names : tuple of str
        The variables.
    notes : tuple of str
        Which components the rows cannot tell apart, and fits that did not converge.
    """

    explained_variance: Interval
    explained_variance_ratio: Interval
    components: Interval
    loadings: Interval
    scores: Interval | None
    swaps: Array
    variances: Array
    level: float
    align: str
    method: str
    names: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def n_replicates(self) -> int:
        """Return how many samples were drawn."""
        return len(self.variances)

    def table(self) -> dict[str, Any]:
        """Return one line for each component: variance, ratio, their intervals, and swaps."""
        columns: dict[str, Any] = {"component": np.arange(len(self.swaps))}
        for name, part in (("variance", self.explained_variance), ("ratio", self.explained_variance_ratio)):
            columns |= {name: part.estimate, f"{name}_lower": part.lower, f"{name}_upper": part.upper}
            columns |= {f"{name}_error": part.error, f"{name}_bias": part.bias}
        return columns | {"swaps": self.swaps}

    def loadings_table(self) -> dict[str, Any]:
        """Return one line for each component and variable: estimate, lower, upper, error, bias of the loading V√λ."""
        p, columns = len(self.names), self.loadings.table()
        return self._row_labels() | {name: column.reshape(p, -1).T.ravel() for name, column in columns.items()}

    def components_table(self) -> dict[str, Any]:
        """Return the same for the entries of the components, which are vectors of length 1."""
        return self._row_labels() | self.components.table()

    def _row_labels(self) -> dict[str, Any]:
        k, p = self.components.estimate.shape
        return {"component": np.repeat(np.arange(k), p), "variable": list(self.names) * k}

    def _title(self) -> str:
        return f"Bootstrap: {self.n_replicates} replicates, {self.level:.0%} {self.method} intervals, {self.align}"

    def _shown(self) -> dict[str, Any]:
        v, r = self.explained_variance, self.explained_variance_ratio
        return {
            "": [f"component {i + 1}" for i in range(len(self.swaps))],
            "variance": v.estimate,
            "interval": [f"[{low:.4g}, {high:.4g}]" for low, high in zip(v.lower, v.upper, strict=True)],
            "ratio": [f"{x:.1%}" for x in r.estimate],
            "its interval": [f"[{low:.1%}, {high:.1%}]" for low, high in zip(r.lower, r.upper, strict=True)],
            "swaps": [f"{x:.1%}" for x in self.swaps],
        }

    def _remarks(self) -> list[str]:
        return [f"  note: {note}" for note in self.notes]


@quiet_blas()
def bootstrap(
    pca: PCA,
    X: Any,
    *,
    n_replicates: int = 1000,
    level: float = 0.95,
    align: str = "order",
    method: str = "percentile",
    scores: bool = True,
    sample_weight: Any = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Bootstrap:
    r"""Draw the rows anew, with replacement, fit each sample, and see how much the answers differ.

    .. math:: w_b \sim \mathrm{Multinomial}(n, w/\textstyle\sum w),\qquad
        z_{ib} = A_b^T V_b^T (x_i - \bar x_b)/s_b

    A replicate is the same rows with frequencies w_b. Its components may come in another order, turned round, or mixed
    where variances are close, so they are aligned with those of the model before they are compared: A_b is the best
    signed permutation (``order``), found among a few more components than k, or the best rotation within the plane of
    the first k (``rotation``; Milan and Whittaker, Applied Statistics 44, 1995). Loadings V√λ follow the order of the
    components, or are rotated to those of the model in their own right. Variances are not aligned: the intervals are
    of the first, the second, … largest.

    A model fitted where cells were missing is fitted anew to each sample in the same way, without spare components;
    take ``scores=False`` then.

    Parameters
    ----------
    pca : PCA
        A fitted PCA.
    X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
        The rows it was fitted on.
    n_replicates : int, default=1000
        Samples to draw.
    level : float, default=0.95
        Coverage of the intervals.
    align : {"order", "rotation"}, default="order"
        How components are matched. ``rotation`` says how well the plane is known, ``order`` each direction.
    method : {"percentile", "bc"}, default="percentile"
        Quantiles of the replicates, or the bias-corrected ones (Efron, J. of the American Statistical Association 82,
        1987), which move them where more than half of the replicates lie to one side of the estimate.
    scores : bool, default=True
        Whether to find intervals for the scores of the rows too; one more pass over the data.
    sample_weight : array-like of shape (n,), optional
        The frequencies the model was fitted with; Σw rows, rounded, are drawn.
    random_state : int, RandomState, Generator or None, default=None
        Seed; None is a fixed one. The result is the same for any number of threads.
    progress : callable, optional
        Called as ``progress(done, total, message)`` from time to time; what it raises ends the bootstrap.

    Returns
    -------
    Bootstrap
        Intervals, standard errors and biases.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import bootstrap
    >>> X = np.random.default_rng(0).normal(size=(300, 3)) * [3.0, 1.0, 0.5]
    >>> found = bootstrap(PCA(n_components=2).fit(X), X, n_replicates=200)
    >>> found.explained_variance.covers([9.0, 1.0])
    array([ True,  True])
    >>> bool(found.swaps.max() == 0), found.scores.error.shape
    (True, (300, 2))
    """
    check_is_fitted(pca)
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    check_choice("align", align, ("order", "rotation"))
    check_choice("method", method, ("percentile", "bc"))
    check_share("level", level)
    least = math.ceil(2 / (1 - level) - 1e-9)
    if n_replicates < least:
        raise ValueError(f"n_replicates={n_replicates} is too few for intervals of {level:.4g}: take {least} or more.")
    _refuse_without_variance(pca)
    gaps = had_missing_cells(pca)
    if gaps and scores:
        raise ValueError(
            "The model was fitted where cells were missing: scores of such rows are expectations, and resampling says "
            "little about them. Use scores=False."
        )
    source, weights = open_training_rows(pca, X, sample_weight, incomplete=True)
    (n, p), k, total = source.shape, pca.n_components_, float(weights.sum())
    for what, numbers, advice in (
        (f"The components of {n_replicates} replicates", n_replicates * p * (k + 2), "ask for fewer replicates"),
        (f"Intervals for the scores of {n} rows", 5 * n * k if scores else 0, "use scores=False"),
    ):
        if 8 * numbers > memory_budget():
            raise ValueError(
                f"{what} take {8 * numbers / 2**20:.0f} MiB, more than the working memory: {advice}, fit "
                "fewer components, or raise sklearn.set_config(working_memory=...)."
            )

    # one seed for each replicate, so that threads do not change them
    entropy = int(random_state) if isinstance(random_state, Integral) else check_seed(random_state)
    seeds = np.random.SeedSequence(entropy).spawn(n_replicates)
    size, shares = max(2, round(total)), weights / total
    fit, threaded = _choose_refit(pca, source, k if gaps else min(k + SPARE, n, p))
    fitted, own_loadings = PCAFit.of(pca), loadings(pca)
    V, B = fitted.components, n_replicates
    variances, ratios, order = np.empty((B, k)), np.empty((B, k)), np.empty((B, k), dtype=np.intp)
    components, means, scales = np.empty((B, k, p)), np.empty((B, p)), np.ones((B, p))
    turns = np.zeros((B, k, k))  # what makes aligned loadings √λV of aligned components
    converged = np.ones(B, dtype=np.bool_)

    def keep(b: int, fit: PCAFit) -> None:
        """Align the fit of replicate b with the model, and keep it."""
        if fit.rank < k:
            remedy = "Fit fewer components, or bring more rows."
            raise ValueError(f"its rows have rank {fit.rank}, too little for {k} components. {remedy}")
        nearest, order[b] = match_components(V, fit.components[: fit.rank])
        if align == "order":
            components[b], turns[b] = nearest, np.diag(np.sqrt(fit.variances[order[b]]))
        else:
            W, spread = fit.components[:k], np.sqrt(fit.variances[:k])[:, None]
            R, Q = _nearest_rotation(V, W), _nearest_rotation(own_loadings.T, spread * W)
            components[b], turns[b] = R @ W, Q @ (spread * R.T)
        variances[b], ratios[b], means[b] = fit.variances[:k], fit.ratios[:k], fit.mean
        if fit.scale is not None:
            scales[b] = fit.scale
        # the residuals of a complete fit are in its tolerance; an optimum may not have been reached
        converged[b] = not isinstance(fit.certificate, Optimum) or fit.certificate.converged

    def draw(b: int) -> PCAFit:
        """Fit the sample of replicate b."""
        w = np.random.default_rng(seeds[b]).multinomial(size, shares).astype(np.float64)
        try:
            with quiet_blas():
                return fit(w)
        except ValueError as error:  # a column of which no cell was drawn, say
            raise ValueError(f"Replicate {b} could not be fitted: {error}") from error

    def work(share: Sequence[int]) -> None:
        for b, found in zip(share, source.map_fits(draw, share), strict=True):
            try:
                keep(b, found)
            except ValueError as error:
                raise ValueError(f"Replicate {b} could not be fitted: {error}") from error

    step = max(n_threads(), 4 * source.executor().workers, -(-n_replicates // 100))
    with quiet_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # of components beyond the rank, which are told by it
        for start in range(0, n_replicates, step):
            chunk = range(start, min(start + step, n_replicates))
            parallel(work, chunk, serial=not threaded)
            if progress is not None:
                progress(chunk.stop, n_replicates, "replicates")

    def draw_scores() -> Iterator[tuple[Any, Array]]:
        """Scores Aᵀ_bVᵀ_b(x − x̄_b)/s_b, a few rows x at a time; the components are divided by the scales."""
        np.divide(components, scales[:, None, :], out=components)
        directions = components.reshape(B * k, p)
        origin = np.zeros(p) if source.sparse else fitted.mean
        offsets = np.einsum("bkp,bp->bk", components, means - origin).ravel()
        for block in source.blocks(max(1, memory_budget() // (64 * B * k))):
            x = float_rows(source, block)
            Z = (x @ directions.T).T if source.sparse else directions @ (x - origin).T
            Z -= offsets[:, None]
            yield (slice(block.start, block.stop),), Z.reshape(B, k, -1).transpose(0, 2, 1)

    names, variables = component_names(k), feature_names(pca)
    own_scores = plain_scores(pca, source) if scores else np.empty(0)
    by_component = (((slice(None), j), np.einsum("bj,bjp->bp", turns[:, j], components)) for j in range(k))
    swaps = np.mean(order != np.arange(k), axis=0)
    notes = []
    for i in np.flatnonzero(swaps >= OFTEN):
        j = int(np.bincount(order[order[:, i] != i, i]).argmax())  # the one it was taken for most often
        lam = fitted.variances
        other = f"component {j + 1} (variances {lam[i]:.4g} and {lam[j]:.4g})" if j < k else "one left out"
        notes.append(
            f"component {i + 1} changed places in {swaps[i]:.0%} of the replicates, most often with {other}: these "
            "rows cannot tell the two directions apart, and intervals of their entries and scores say little."
        )
    if not converged.all():
        stuck = np.count_nonzero(~converged)
        notes.append(f"{stuck} of {B} fits did not converge: intervals are as good as these fits.")
    return Bootstrap(
        explained_variance=bootstrap_intervals(fitted.variances, variances, level, method, names),
        explained_variance_ratio=bootstrap_intervals(fitted.ratios, ratios, level, method, names),
        components=bootstrap_intervals(V, components, level, method, names, variables),
        loadings=_intervals_by_parts(own_loadings, by_component, level, method, variables, names),
        # last, as it divides the components by the scales
        scores=_intervals_by_parts(own_scores, draw_scores(), level, method, row_names(X), names) if scores else None,
        swaps=swaps,
        variances=variances,
        level=level,
        align=align,
        method=method,
        names=variables,
        notes=tuple(notes),
    )


def _refuse_without_variance(pca: PCA) -> None:
    refuse_no_components(pca)
    refuse_lost_variances(pca)
    if pca.n_components_ > pca.rank_:
        raise ValueError(
            f"The model has {pca.n_components_} components, of which {pca.rank_} have variance: directions without "
            f"variance are arbitrary and have no errors. Fit PCA(n_components={max(1, pca.rank_)}) or fewer."
        )


def _choose_refit(pca: PCA, source: Source, k: int) -> tuple[Callable[[Array], PCAFit], bool]:
    """Return how to fit one replicate from its frequencies, and whether several may be fitted at once."""
    n, p = source.shape
    model = clone(pca).set_params(n_components=k, whiten=False)
    if had_missing_cells(pca):
        how = pca._missing_method
        return lambda w: PCAFit.of(fit_incomplete(clone(model), source, method=how, sample_weight=w)), False
    small = p <= NARROW and 8 * n * p * (1 + 2 * n_threads()) <= memory_budget()
    if source.resident and not source.sparse and small:
        X, scale = dense_rows(source), pca.scale_ is not None
        return lambda w: refit(X, w, k, scale, pca.n_components_), True
    return lambda w: PCAFit.of(clone(model).fit(source, sample_weight=w)), False


def refit(X: Array, w: Array, k: int, scale: bool, needed: int) -> PCAFit:
    """PCA of the rows of X with frequencies w, as ``PCA(k, scale=scale).fit(X, sample_weight=w)`` finds it.

    The first ``needed`` components have all their digits; the others are there to be changed places with.
    """
    used = w > 0
    w, origin = w[used], X[np.argmax(used)]
    D = X[used] - origin  # a column that is constant here becomes exactly 0
    total = float(w.sum())
    m = w @ D / total
    D -= m
    unit = 2.0 ** math.frexp(float(np.abs(D).max(initial=0.0)))[1]  # so that squares neither overflow nor vanish
    D *= (np.sqrt(w) / unit)[:, None]
    squares = np.einsum("ij,ij->j", D, D)
    s = np.where(squares > 0, np.sqrt(squares / (total - 1)), 1.0) if scale else None
    D = D if s is None else np.divide(D, s, out=D)
    whole = float(np.sum(squares if s is None else squares / s**2))
    rows, p = D.shape
    values, vectors = np.linalg.eigh(D.T @ D) if rows >= p else (np.zeros(p), np.empty((p, 0)))
    values, V = np.maximum(values[::-1][:k], 0.0), vectors[:, ::-1][:, :k].T
    rank = int(np.count_nonzero(values > DUST * values[0]))
    if values[needed - 1] <= SAFE * values[0]:  # the Gram matrix has lost digits, or was not formed
        _, sigma, right = np.linalg.svd(D, full_matrices=False)
        values, V = sigma[:k] ** 2, right[:k]
        rank = int(np.count_nonzero(sigma[:k] > 32 * 2.0**-52 * min(rows, p) ** 0.5 * sigma[0]))
    own = 1.0 if scale else unit
    s = None if s is None else np.where(squares > 0, s * unit, 1.0)
    kept = V, values / (total - 1) * own * own, values / (whole or 1.0), np.sqrt(values) * own, origin + m, s
    return PCAFit(*kept, noise=math.nan, weight=total, rank=rank, certificate=None)


def match_components(V: Array, W: Array) -> tuple[Array, npt.NDArray[np.intp]]:
    """Rows of W reordered and turned to lie nearest to those of V: the best signed permutation; and the order."""
    similarity = V @ W.T
    _, order = linear_sum_assignment(-np.abs(similarity))
    signs = np.where(similarity[np.arange(len(V)), order] < 0, -1.0, 1.0)
    return W[order] * signs[:, None], order


def _nearest_rotation(V: Array, W: Array) -> Array:
    """The orthogonal R for which RW is nearest to V: the orthogonal Procrustes problem."""
    left, _, right = np.linalg.svd(V @ W.T)
    return np.asarray(left @ right)


@dataclass(frozen=True, repr=False, eq=False)
class AsymptoticErrors(Tabular):
    """Large-sample intervals of a PCA of Gaussian rows.

    Attributes
    ----------
    explained_variance : Interval of shape (k,)
        Of the variances λ.
    components : Interval of shape (k, p)
        Of the entries of the components; the bias is not known to this order and given as 0.
    level : float
        Coverage aimed at.
    weight : float
        n = Σw.
    names : tuple of str
        The variables.
    assumptions : str
        What must hold.
    """

    explained_variance: Interval
    components: Interval
    level: float
    weight: float
    names: tuple[str, ...]
    assumptions: str

    def table(self) -> dict[str, Any]:
        """Return one line for each component: estimate, lower, upper, error and bias of its variance."""
        return {"component": np.arange(len(self.explained_variance.estimate)), **self.explained_variance.table()}

    def _title(self) -> str:
        return f"AsymptoticErrors: n = {self.weight:g}, {self.level:.0%} intervals"

    def _shown(self) -> dict[str, Any]:
        names = {"": [f"component {i + 1}" for i in range(len(self.explained_variance.estimate))]}
        return names | self.explained_variance.table() | {"entries within ±": self.components.error.max(axis=1)}

    def _remarks(self) -> list[str]:
        return [f"  {self.assumptions}"]


@dataclass(frozen=True)
class EqualityTest:
    """A test of equal variances.

    Attributes
    ----------
    statistic : float
        Minus twice the log-likelihood ratio.
    freedom : float
        Degrees of freedom of its χ² distribution.
    p_value : float
        How often equal variances give as large a statistic.
    components : tuple of int
        Which components were compared.
    """

    statistic: float
    freedom: float
    p_value: float
    components: tuple[int, ...]

    def table(self) -> dict[str, list[Any]]:
        """Return one line: statistic, freedom, p_value."""
        return {"statistic": [self.statistic], "freedom": [self.freedom], "p_value": [self.p_value]}


@quiet_blas()
def eigenvalue_errors(pca: PCA, level: float = 0.95, *, form: str = "ratio") -> AsymptoticErrors:
    r"""Standard errors and intervals of variances and components, for many Gaussian rows with distinct variances.

    .. math::
        \sqrt{\tfrac{n-1}2}\Big(\frac{\hat\lambda_l}{\lambda_l}-1\Big)\to N(0,1),\qquad
        \mathrm{cov}(\hat v_l) \approx
            \frac{\lambda_l}{n-1}\sum_{m\ne l}\frac{\lambda_m}{(\lambda_m-\lambda_l)^2}\,v_mv_m^T

    So the standard error of λ is λτ with τ = √(2/(n−1)), and the interval is λ/(1 + zτ) to λ/(1 − zτ), or λe^{±zτ} with
    ``form="log"``, which is the same for many rows and exists for few. To the next order λ̂ is too high by
    λ_l/(n−1) Σ_{m≠l} λ_m/(λ_l−λ_m), the bias given. (Girshick, Annals of Mathematical Statistics 10, 1939; Lawley,
    Biometrika 43, 1956; Anderson, Annals of Mathematical Statistics 34, 1963.) Variances left out are taken as all
    equal to ``noise_variance_``. Rows with heavier tails than Gaussian vary more, and the variances of a correlation
    matrix follow other formulas: use :func:`bootstrap` for both.

    Parameters
    ----------
    pca : PCA
        A PCA without ``scale``, fitted to complete rows.
    level : float, default=0.95
        Coverage of the intervals.
    form : {"ratio", "log"}, default="ratio"
        Which of the two intervals of λ.

    Returns
    -------
    AsymptoticErrors
        Intervals of ``explained_variance_`` and ``components_``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import eigenvalue_errors
    >>> X = np.random.default_rng(0).normal(size=(800, 3)) * [3.0, 2.0, 1.0]
    >>> found = eigenvalue_errors(PCA().fit(X))
    >>> found.explained_variance.covers([9.0, 4.0, 1.0])
    array([ True,  True,  True])
    >>> bool(np.allclose(found.explained_variance.error, found.explained_variance.estimate * np.sqrt(2 / 799)))
    True
    """
    check_is_fitted(pca)
    pca = convert_to_numpy(pca)
    check_choice("form", form, ("ratio", "log"))
    check_share("level", level)
    _check_gaussian(pca)
    fit = PCAFit.of(pca)
    lam, V, n = fit.variances, fit.components, fit.weight
    k, left_out = len(lam), V.shape[1] - len(lam)
    z, tau = -float(ndtri((1 - level) / 2)), math.sqrt(2 / (n - 1))
    if form == "log":
        lower, upper = lam * math.exp(-z * tau), lam * math.exp(z * tau)
    elif z * tau < 1:
        lower, upper = lam / (1 + z * tau), lam / (1 - z * tau)
    else:
        raise ValueError("Too few rows for the interval λ/(1 ± z√(2/(n−1))) at this level: use form='log'.")

    # All p variances λ_m, and the gaps λ_l − λ_m, l by row. The gap to itself is infinite, which leaves it out of sums
    # over 1/gap; equal ones are NaN, and so are their sums.
    everything = np.append(lam, np.full(left_out, fit.noise)) / lam[0]  # gaps are squared
    gaps = everything[:k, None] - everything
    np.fill_diagonal(gaps, np.inf)
    gaps = np.where(np.abs(gaps) <= TIED * everything[:k, None], np.nan, gaps)
    tied = np.flatnonzero(np.isnan(gaps).any(axis=1))
    if len(tied):
        warn(
            f"The variances of components {', '.join(map(str, tied))} are equal to others: their directions are "
            "arbitrary, and their errors not defined."
        )
    bias = lam * np.sum(everything / gaps, axis=1) / (n - 1)
    # λ_l Σ_{m≠l} λ_m/(λ_m−λ_l)² v_jm²; of the directions left out only Σ v_jm² = 1 − Σ_{m≤k} v_jm² is needed
    terms = everything / gaps**2
    spread = terms[:, :k] @ V**2
    if left_out:
        spread = spread + terms[:, k : k + 1] * np.maximum(1 - np.sum(V**2, axis=0), 0.0)
    errors = np.sqrt(everything[:k, None] * spread / (n - 1))
    rest = f"; the {left_out} variances left out taken as equal" if left_out > 1 else ""
    names, variables = component_names(k), feature_names(pca)
    return AsymptoticErrors(
        explained_variance=Interval(lam, lower, upper, lam * tau, bias, names),
        components=Interval(V, V - z * errors, V + z * errors, errors, 0.0 * V, names, variables),
        level=level,
        weight=n,
        names=variables,
        assumptions=f"for many Gaussian rows whose variances are distinct{rest}",
    )


def equality_test(pca: PCA, components: Sequence[int]) -> EqualityTest:
    r"""Test whether neighbouring variances are equal, so that their directions are arbitrary within a plane.

    .. math::
        -2\ln\Lambda = (n-1)\Big(q\ln\bar\lambda - \sum_l\ln\lambda_l\Big) \sim \chi^2\Big(\tfrac{(q-1)(q+2)}2\Big)

    for q neighbours with mean λ̄ of many Gaussian rows (Anderson 1963).

    Parameters
    ----------
    pca : PCA
        A PCA without ``scale``, fitted to complete rows.
    components : sequence of int
        Numbers of neighbouring components, from 0; two at least.

    Returns
    -------
    EqualityTest
        Statistic, degrees of freedom and p-value; a small p-value speaks against equality.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis import equality_test
    >>> pca = PCA().fit(np.random.default_rng(0).normal(size=(500, 3)) * [5.0, 1.0, 1.0])
    >>> bool(equality_test(pca, [0, 1]).p_value < 1e-9), bool(equality_test(pca, [1, 2]).p_value > 0.05)
    (True, True)
    """
    check_is_fitted(pca)
    pca = convert_to_numpy(pca)
    _check_gaussian(pca)
    chosen, k = tuple(sorted(int(i) for i in components)), pca.n_components_
    if len(chosen) < 2 or chosen != tuple(range(chosen[0], chosen[-1] + 1)) or chosen[0] < 0 or chosen[-1] >= k:
        raise ValueError(f"components must be two or more neighbours from 0 to {k - 1}, got {tuple(components)}.")
    lam, q = to_numpy(pca.explained_variance_, float)[list(chosen)], len(chosen)
    # ln(λ/λ̄), by the difference so that nearly equal variances keep their digits
    statistic = -(float(pca._weight) - 1) * float(np.sum(np.log1p((lam - lam.mean()) / lam.mean())))
    freedom = (q - 1) * (q + 2) / 2
    return EqualityTest(max(statistic, 0.0), freedom, float(chdtrc(freedom, max(statistic, 0.0))), chosen)


def _check_gaussian(pca: PCA) -> None:
    """Refuse models that the formulas for many Gaussian rows do not hold for."""
    if had_missing_cells(pca):
        raise ValueError(
            "The model was fitted where cells were missing, and missing cells make these errors too small: use "
            "bootstrap(pca, X, scores=False), which resamples the rows as they are."
        )
    if pca.scale_ is not None:
        raise ValueError(
            "These formulas hold for a covariance matrix; this model scales its columns, and a correlation "
            "matrix follows others. Use the bootstrap."
        )
    _refuse_without_variance(pca)
    if pca._weight <= pca.n_features_in_:
        warn(
            f"{pca._weight:g} rows are too few for {pca.n_features_in_} variables: the formulas are for many rows, and "
            "errors come out too small. Use the bootstrap."
        )
