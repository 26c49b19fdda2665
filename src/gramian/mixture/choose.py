"""Which mixture, and how sure: choice of components and covariance model, likelihood-ratio tests, bootstrap errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_integer, check_seed, check_weights
from gramian.inputs.devices import store_like
from gramian.inputs.progress import Progress
from gramian.mixture.binned import Bins
from gramian.mixture.diagnose import match_components
from gramian.mixture.em import Maximiser, fit_mixture
from gramian.mixture.estimator import GaussianMixture, make_random_state, sum_log_shares
from gramian.mixture.models import MODELS, covariance_parameters, is_nested, resolve_model
from gramian.mixture.parameters import Mixture, Prior
from gramian.mixture.starts import FEW_POINTS, MET, SHORT, StartPool, find_starts
from gramian.results import NumericalWarning
from gramian.results.intervals import Interval, bootstrap_intervals
from gramian.sources import open_source

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

CRITERIA = ("bic", "aic", "icl")
MOST = 9  # components tried unless said otherwise, as in mclust
SHOWN = 3  # best ones in a representation
INVERSION = 1e-2  # units of log-likelihood that a richer model may lie below a poorer one by: tolerances leave as much
REPAIRS = 3  # rounds of fits from poorer solutions
SPLITS = 9  # ways to split components


@dataclass(frozen=True, repr=False, eq=False)
class MixtureChoice:
    """Mixtures of several sizes and covariance models, compared on the same data.

    Attributes
    ----------
    criterion : str
        What was chosen by: "bic", "aic", "icl" or "lrt".
    n_components : tuple of int
        Numbers of components tried: rows of the tables.
    covariance_types : tuple of str
        Models tried: columns of the tables.
    bic, aic, icl, log_likelihood : ndarray of shape (sizes, models)
        Of each fit; the lower the better but for the last. NaN where there is no fit.
    n_parameters : ndarray of shape (sizes, models)
        Free parameters.
    problems : tuple of tuple of str
        Why a fit is not eligible: it failed, or a component collapsed or is empty; "" where all is well.
    converged : ndarray of shape (sizes, models)
        Whether the gradient met the tolerance.
    best : GaussianMixture
        The chosen one, fitted.
    inversions : tuple of Inversion
        Fits that lie below one of a model they contain, where a better optimum must exist; none as a rule, since such
        fits are made again from the poorer model's solution.
    test : LikelihoodRatioTest or None
        The tests behind criterion "lrt".
    """

    criterion: str
    n_components: tuple[int, ...]
    covariance_types: tuple[str, ...]
    bic: Array
    aic: Array
    icl: Array
    log_likelihood: Array
    n_parameters: Array
    problems: tuple[tuple[str, ...], ...]
    converged: Flags
    best: Any
    inversions: tuple[Inversion, ...] = ()
    test: Any = field(default=None)

    @property
    def eligible(self) -> Flags:
        """Which fits may be chosen: those without a problem."""
        return np.array([[not text for text in row] for row in self.problems])

    def ranked(self, criterion: str | None = None) -> list[tuple[str, int, float]]:
        """Models, sizes and values of the eligible fits, best first."""
        values = getattr(self, self._column(criterion))
        places = [(i, j) for i, j in np.argwhere(self.eligible & np.isfinite(values))]
        ordered = sorted(places, key=lambda at: float(values[at[0], at[1]]))
        return [(self.covariance_types[j], self.n_components[i], float(values[i, j])) for i, j in ordered]

    def table(self) -> dict[str, Any]:
        """Return one line for each fit."""
        rows, columns = len(self.n_components), len(self.covariance_types)
        table: dict[str, Any] = {
            "n_components": np.repeat(self.n_components, columns),
            "covariance_type": list(self.covariance_types) * rows,
        }
        names = (*CRITERIA, "log_likelihood", "n_parameters", "converged")
        table |= {name: getattr(self, name).ravel() for name in names}
        return table | {"problem": [text for row in self.problems for text in row]}

    def _column(self, criterion: str | None) -> str:
        """The table that a criterion ranks by: BIC where tests have chosen."""
        name = self.criterion if criterion is None else criterion
        return "bic" if name == "lrt" else name

    def __repr__(self) -> str:
        ranked = self.ranked()
        tried = int(np.size(self.bic))
        head = f"MixtureChoice by {self.criterion}: {self.best.covariance_type}, {self.best.n_components} components"
        lines = [f"{head}, of {tried} fits"]
        name = self._column(None)
        for model, k, value in ranked[:SHOWN]:
            lines.append(f"  {model:<9} {k:>2}  {name} {value:.4f}  (+{value - ranked[0][2]:.4f})")
        left = tried - int(np.count_nonzero(self.eligible))
        if left:
            lines.append(f"  {left} fits are not eligible: see table()")
        slow = int(np.count_nonzero(self.eligible & ~self.converged))
        if slow:
            lines.append(f"  not converged, or not determined by the data: {slow}, see table()")
        lines += [f"  {inversion}: a better fit of it exists" for inversion in self.inversions]
        return "\n".join([*lines, *([repr(self.test)] if self.test is not None else [])])


def select_mixture(
    prototype: GaussianMixture,
    X: Any,
    *,
    n_components: int | Iterable[int] | None = None,
    covariance_types: Sequence[str] | None = None,
    criterion: str = "bic",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **test: Any,
) -> MixtureChoice:
    r"""Choose the number of components and the covariance model.

    .. math:: BIC=-2\ell+p\ln n,\qquad AIC=-2\ell+2p,\qquad ICL=BIC-2\sum_i\ln\max_kr_{ik}

    the lower the better; or by the bootstrap likelihood-ratio test, one component more as long as that is significant.
    A fit in which a component collapsed is not eligible: its likelihood can be made as large as one likes. Nested
    models bound each other: a fit below one of a model it contains is made again from that one's solution.

    Parameters
    ----------
    prototype : GaussianMixture
        An unfitted one with all other settings; it is cloned.
    X : array-like, frame, path, Source or Bins
    n_components : int or iterable of int, optional
        1 to 9 unless given.
    covariance_types : sequence of str, optional
        All 14 models unless given; E and V for one column.
    criterion : {"bic", "aic", "icl", "lrt"}, default="bic"
        What to choose by. "lrt" needs one covariance type.
    sample_weight : array-like of shape (n,), optional
    n_jobs, progress : optional
        How many processes, −1 for one for each core; what is called as ``progress(done, total, message)``
        after each fit.
    **test
        ``n_replicates``, ``level`` and ``random_state`` of :func:`bootstrap_lrt`, for criterion "lrt".

    Returns
    -------
    MixtureChoice
        All values, and the best model, fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.analysis import select_mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(6, 1, (100, 2))])
    >>> choice = select_mixture(GaussianMixture(), X, n_components=(1, 2, 3), covariance_types=("EII", "VVV"))
    >>> choice.best.n_components, choice.best.covariance_type
    (2, 'EII')
    """
    check_choice("criterion", criterion, (*CRITERIA, "lrt"))
    given: Any = range(1, MOST + 1) if n_components is None else n_components
    given = (given,) if isinstance(given, (int, np.integer)) else given
    sizes = sorted({check_integer("n_components", k) for k in given})
    if not sizes:
        raise ValueError(f"n_components must be whole numbers of at least 1, got {n_components!r}.")
    if covariance_types is None:
        d = len(X.origin) if isinstance(X, Bins) else open_source(X).shape[1]
        models: tuple[str, ...] = ("E", "V") if d == 1 else MODELS
    else:
        models = (covariance_types,) if isinstance(covariance_types, str) else tuple(covariance_types)
    if not models:
        raise ValueError("covariance_types is empty: name one or more.")
    if criterion != "lrt" and test:
        raise TypeError(f"{', '.join(test)} belong to criterion='lrt'.")
    if criterion == "lrt" and len(models) != 1:
        raise ValueError(
            f"The likelihood-ratio test compares numbers of components in one covariance model; {len(models)} are "
            "given. Name one, chosen by BIC, say."
        )
    if criterion == "lrt" and sizes != list(range(sizes[0], sizes[-1] + 1)):
        raise ValueError(f"The likelihood-ratio test adds one component at a time; {sizes} has gaps.")

    def twin(k: int, model: str) -> tuple[int, str]:
        """The first of the models that are the same: volumes and shapes of one component have nobody to differ from."""
        if k > 1 or model not in MODELS:
            return k, model
        return k, {"II": "EII", "EI": "EEI", "VI": "EEI"}.get(model[1:], "EEE")

    shown = None if criterion == "lrt" else progress  # the tests show theirs
    by_size = {k: list(dict.fromkeys(twin(k, model)[1] for model in models)) for k in sizes}
    sweep, done, total = Sweep(prototype, X, sample_weight, sizes[-1]), 0, sum(map(len, by_size.values()))

    def report() -> None:
        nonlocal done
        done += 1
        if shown is not None:
            shown(done, total, "Fitting mixtures")

    cells: dict[tuple[int, str], MixtureCell] = {}
    with _no_warnings():
        if n_jobs in (None, 1):
            for k, names in by_size.items():
                cells |= sweep.fit_size(k, names, report)
        else:
            tasks = [(prototype, X, sample_weight, sizes[-1], k, names) for k, names in by_size.items()]
            for found in _run_each(_fit_size, tasks, n_jobs, None, ""):
                cells |= found
                for _ in found:
                    report()
    inversions = undo_inversions(sweep, cells)
    fits = [[cells[twin(k, m)] for m in models] for k in sizes]
    ll, p, entropy, converged = (
        np.array([[getattr(cell, name) for cell in row] for row in fits])
        for name in ("log_likelihood", "n_parameters", "entropy", "converged")
    )
    problems = tuple(tuple(cell.problem for cell in row) for row in fits)
    bic = -2 * ll + p * np.log(_total_weight(X, sample_weight))
    values = {"bic": bic, "aic": -2 * ll + 2 * p, "icl": bic + entropy}
    good = np.array([[not text for text in row] for row in problems]) & np.isfinite(bic)
    if not good.any():
        raise ValueError(f"None of the {good.size} fits is eligible; the first says: {problems[0][0]}.")
    tests = None
    with _no_warnings():
        if criterion == "lrt":
            best = clone(prototype).set_params(covariance_type=models[0])
            options = {"sample_weight": sample_weight, "n_jobs": n_jobs, "progress": progress, **test}
            tests = bootstrap_lrt(best, X, first=sizes[0], most=sizes[-1], **options)
            best.set_params(n_components=tests.chosen).fit(X, sample_weight=sample_weight)
        else:
            i, j = np.unravel_index(np.argmin(np.where(good, values[criterion], np.inf)), good.shape)
            best = fits[i][j].estimator.set_params(covariance_type=models[j])
            if twin(sizes[i], models[j])[1] != models[j]:
                best = clone(best).fit(X, sample_weight=sample_weight)
            left = "; ".join(map(str, inversions)) or "no inversion left"
            note = f"among {good.size} fits, of which nested ones bound each other: {left}"
            best.certificate_ = best.certificate_.with_(notes=(*best.certificate_.notes, note))
    return MixtureChoice(
        criterion,
        tuple(sizes),
        tuple(models),
        **values,
        log_likelihood=ll,
        n_parameters=p,
        problems=problems,
        converged=converged.astype(bool),
        best=best,
        inversions=inversions,
        test=tests,
    )


@dataclass(frozen=True, eq=False)
class MixtureCell:
    """One fit of a sweep: the estimator, fitted unless ``problem`` says why it could not be."""

    estimator: GaussianMixture
    problem: str = ""
    entropy: float = np.nan

    @property
    def log_likelihood(self) -> float:
        """ℓ, NaN where there is no fit."""
        return float(getattr(self.estimator, "log_likelihood_", np.nan))

    @property
    def n_parameters(self) -> float:
        """How many are free, NaN where there is no fit."""
        return float(getattr(self.estimator, "n_parameters_", np.nan))

    @property
    def converged(self) -> bool:
        """Whether the gradient met the tolerance."""
        return "certificate_" in vars(self.estimator) and bool(self.estimator.certificate_.converged)


class Inversion(NamedTuple):
    """A fit that lies below one of a model that it contains: a better optimum exists and was not found.

    Attributes
    ----------
    covariance_type, n_components
        The richer model.
    below_covariance_type, below_n_components
        The poorer one.
    gap : float
        By how much the richer one is less likely, in units of log-likelihood.
    """

    covariance_type: str
    n_components: int
    below_covariance_type: str
    below_n_components: int
    gap: float

    def __str__(self) -> str:
        rich = f"{self.covariance_type} with {self.n_components} components"
        return f"{rich} lies {self.gap:.3g} below {self.below_covariance_type} with {self.below_n_components}"


class Sweep:
    """Fits of many sizes and models to the same data: rows and partitions to start from are shared."""

    def __init__(self, prototype: GaussianMixture, X: Any, sample_weight: Any, most: int) -> None:
        self.prototype, self.X, self.sample_weight, self.most = prototype, X, sample_weight, most
        self.opener = clone(prototype).set_params(n_components=1)
        self.opener._check_parameters()
        self.data = self.opener._open_data(X, sample_weight, reset=True)
        self.d = len(self.data.origin)

    @cached_property
    def pool(self) -> StartPool:
        """Partitions of the rows into any number of clusters."""
        rng = make_random_state(self.prototype.random_state)
        return StartPool(self.data, self.most, rng, FEW_POINTS, tree=True)

    def fit(self, k: int, model: str, more: Sequence[Mixture] = (), starts: Sequence[Mixture] = ()) -> MixtureCell:
        """One fit: from the starts given, or from those of the estimator and more."""
        estimator = clone(self.prototype).set_params(n_components=k, covariance_type=model)
        try:
            estimator._check_parameters()
            if not isinstance(self.data, Bins):
                estimator._check_rows(self.data.source.shape[0])
            for name in ("n_features_in_", "feature_names_in_"):
                if name in vars(self.opener):
                    setattr(estimator, name, getattr(self.opener, name))
            maximiser = estimator._choose_maximiser(self.data)
            with quiet_blas():
                if starts:
                    floor = Prior.floor(self.data)
                    ranked = [
                        fit_mixture(self.data, start, Maximiser(maximiser.model, floor), tol=MET, max_iter=SHORT)
                        for start in starts
                    ]
                    start = max(ranked, key=lambda fit: fit.log_likelihood).mixture
                    found: Any = [start]
                else:
                    pool = self.pool if estimator.init_params == "auto" else None
                    rng = make_random_state(estimator.random_state)
                    found = find_starts(
                        estimator, self.data, maximiser, rng, pool, [m.embed(maximiser.model) for m in more]
                    )
                estimator._fit_from_starts(found, self.data, maximiser, give_up=True)
        except ValueError as error:
            return MixtureCell(clone(estimator), str(error))
        store_like(estimator, self.X)
        problem = estimator.landscape_.problems[estimator.landscape_.kept]
        blur = 0.0 if k == 1 else -2.0 * sum_log_shares(estimator.mixture_, self.data)
        return MixtureCell(estimator, problem, blur)

    def fit_size(self, k: int, models: Sequence[str], report: Callable[[], None]) -> dict[tuple[int, str], MixtureCell]:
        """Fits of one number of components, poor models first: a richer one starts from the best it contains too."""
        found: dict[tuple[int, str], MixtureCell] = {}
        order = sorted(models, key=lambda model: covariance_parameters(resolve_model(model, self.d), k, self.d))
        for model in order:
            inside = [cell for (_, other), cell in found.items() if not cell.problem and self.contains(model, other)]
            best = max(inside, key=lambda cell: cell.log_likelihood, default=None)
            found[k, model] = self.fit(k, model, [best.estimator.mixture_] if best is not None else [])
            report()
        return found

    def contains(self, rich: str, poor: str) -> bool:
        """Whether a model, by any of its names, is another than a poorer one and contains it."""
        a, b = resolve_model(poor, self.d), resolve_model(rich, self.d)
        return a != b and is_nested(a, b)


def _fit_size(prototype: GaussianMixture, X: Any, sample_weight: Any, most: int, k: int, models: list[str]) -> Any:
    """The fits of one size, by a process of its own."""
    return Sweep(prototype, X, sample_weight, most).fit_size(k, models, lambda: None)


def undo_inversions(sweep: Sweep, cells: dict[tuple[int, str], MixtureCell]) -> tuple[Inversion, ...]:
    """Fit each richer model that lies below one it contains again, from the solution of that; name those that stay.

    At equal K every mixture of a model is one of those that contain it, and a component can be counted as two: a fit
    that is less likely than one of fewer parameters is a poor local optimum, whatever its gradient says.
    """
    given = sweep.prototype
    if given.constraints is not None or given.prior is not None or given.reg_covar is not None:
        return ()  # penalties differ between models, and nothing bounds
    sound = {key: cell for key, cell in cells.items() if not cell.problem}
    sound = dict(sorted(sound.items(), key=lambda item: (item[0][0], item[1].n_parameters)))

    def find_inversion(key: tuple[int, str]) -> tuple[float, tuple[int, str]] | None:
        """How far a fit lies below the highest of those it contains, and which that is."""
        inside = [
            other
            for other in sound
            if other != key and other[0] <= key[0] and (other[1] == key[1] or sweep.contains(key[1], other[1]))
        ]
        best = max(inside, key=lambda other: sound[other].log_likelihood, default=None)
        gap = 0.0 if best is None else sound[best].log_likelihood - sound[key].log_likelihood
        return None if best is None or gap <= INVERSION else (gap, best)

    for _ in range(REPAIRS):
        changed = False
        for key in sound:
            found = find_inversion(key)
            if found is None:
                continue
            starts = [sound[found[1]].estimator.mixture_.embed(resolve_model(key[1], sweep.d))]
            while starts[0].n_components < key[0]:
                starts = [start.split(j) for start in starts for j in range(start.n_components)][:SPLITS]
            with _no_warnings():
                again = sweep.fit(*key, starts=starts)
            if not again.problem and again.log_likelihood > sound[key].log_likelihood:
                sound[key] = cells[key] = again
                changed = True
        if not changed:
            break
    left = [(key, found) for key in sound if (found := find_inversion(key)) is not None]
    return tuple(Inversion(key[1], key[0], at[1], at[0], gap) for key, (gap, at) in left)


@dataclass(frozen=True, repr=False, eq=False)
class LikelihoodRatioTest:
    """Tests of K against K + 1 components, one after the other until one is not significant.

    Attributes
    ----------
    n_components : tuple of int
        K of each test.
    statistics : ndarray
        2(ℓ_{K+1} − ℓ_K).
    p_values : ndarray
        (1 + #{replicates at least as large})/(B + 1).
    replicates : tuple of ndarray
        The statistics of samples drawn from the fitted K components.
    level : float
        Significance asked for.
    chosen : int
        The first K that one component more does not improve significantly; the last one tried, where all do.
    """

    n_components: tuple[int, ...]
    statistics: Array
    p_values: Array
    replicates: tuple[Array, ...]
    level: float
    chosen: int

    def table(self) -> dict[str, Any]:
        """Return one line for each test."""
        sizes = np.array(self.n_components)
        return {"null": sizes, "alternative": sizes + 1, "statistic": self.statistics, "p_value": self.p_values}

    def __repr__(self) -> str:
        count = len(self.replicates[0]) if self.replicates else 0
        lines = [f"Likelihood-ratio test, {count} bootstrap replicates: {self.chosen} components at {self.level:g}"]
        for k, value, p in zip(self.n_components, self.statistics, self.p_values, strict=True):
            lines.append(f"  {k} against {k + 1}  LRT {value:.4f}  p {p:.4g}")
        return "\n".join(lines)


def bootstrap_lrt(
    prototype: GaussianMixture,
    X: Any,
    *,
    first: int = 1,
    most: int = 9,
    n_replicates: int = 199,
    level: float = 0.05,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> LikelihoodRatioTest:
    r"""Test how many components there are, by the parametric bootstrap (McLachlan 1987; mclustBootstrapLRT).

    .. math:: LRT = 2(\ell_{K+1}-\ell_K)

    has no χ² distribution, as the smaller model borders on the larger one: both are fitted to samples of the smaller.

    Parameters
    ----------
    prototype : GaussianMixture
        An unfitted one; its ``n_init`` is that of the larger model, the smaller one starts from the truth.
    X, sample_weight
        The data; cells missing there are missing in the samples too.
    first, most : int, default=1 and 9
        Fewest and most components.
    n_replicates : int, default=199
        Samples for each test. (mclust draws 999.)
    level : float, default=0.05
        Significance: the first test with a larger p-value is the last one.
    random_state, n_jobs, progress : optional
        Seed, None for a fixed one; how many processes; what is called as
        ``progress(done, total, message)`` within each test.

    Returns
    -------
    LikelihoodRatioTest

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.analysis import bootstrap_lrt
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(0, 1, 60), rng.normal(6, 1, 60)])[:, None]
    >>> bootstrap_lrt(GaussianMixture(covariance_type="E"), x, most=2, n_replicates=19).p_values
    array([0.05])
    """
    _check_level(level)
    least = math.ceil(1 / level - 1 - 1e-9)
    if n_replicates < least:
        raise ValueError(f"n_replicates={n_replicates} can give no p-value below {level:g}: take {least} or more.")
    if not 1 <= first <= most:
        raise ValueError(f"first must lie between 1 and most, got first={first} and most={most}.")
    size = _sample_size(X, sample_weight)
    seeds = np.random.SeedSequence(_entropy(random_state)).spawn(most)

    def fit(k: int) -> Any:
        with _no_warnings():
            return clone(prototype).set_params(n_components=k, verbose=0).fit(X, sample_weight=sample_weight)

    bins, holes, shares = X if isinstance(X, Bins) else None, None, None
    if bins is None:
        blocks = open_source(X).blocks()
        gaps = np.concatenate([np.isnan(np.asarray(block.values, dtype=np.float64)) for block in blocks])
        if gaps.any():
            w = check_weights(sample_weight, len(gaps))
            holes, shares = gaps, w / w.sum()
    tests: list[tuple[float, float, Array]] = []
    null, k = fit(first), first
    while k < most and (not tests or tests[-1][1] <= level):
        if bins is not None and abs(float(bins.probabilities(null.mixture_).sum()) - 1.0) > 1e-6:
            raise ValueError(
                "The bins do not cover everything once, so samples cannot be counted in them. "
                "Use edges from −inf to inf."
            )
        other = fit(k + 1)
        tasks = [(null, other, bins, size, holes, shares, seed) for seed in seeds[k].spawn(n_replicates)]
        under = np.array(_run_each(_lrt_of_sample, tasks, n_jobs, progress, f"Testing {k} against {k + 1} components"))
        value = max(0.0, 2 * (float(other.log_likelihood_) - float(null.log_likelihood_)))
        tests.append((value, (1.0 + int(np.sum(under >= value))) / (len(under) + 1.0), under))
        null, k = other, k + 1
    values, ps, replicates = zip(*tests, strict=True) if tests else ((), (), ())
    chosen = first + len(tests) - bool(ps and ps[-1] > level)  # the last is not significant, or there is none left
    sizes = tuple(range(first, first + len(tests)))
    return LikelihoodRatioTest(sizes, np.array(values), np.array(ps), tuple(replicates), level, chosen)


def _lrt_of_sample(
    null: GaussianMixture,
    other: GaussianMixture,
    bins: Bins | None,
    size: int,
    holes: Flags | None,
    shares: Array | None,
    seed: np.random.SeedSequence,
) -> float:
    """LRT of a sample of the null model, recorded as the data were: in bins, or with cells missing as in their rows."""
    rng, mixture = np.random.default_rng(seed), null.mixture_
    if bins is not None:
        sample: Any = _count_anew(bins, size, bins.probabilities(mixture), rng)
    else:
        sample, _ = mixture.sample(size, rng)
        if holes is not None:
            sample[holes[rng.choice(len(holes), size, p=shares)]] = np.nan
    low, high = _start_at(null).fit(sample), clone(other).fit(sample)
    return max(0.0, 2 * (float(high.log_likelihood_) - float(low.log_likelihood_)))


@dataclass(frozen=True, repr=False, eq=False)
class MixtureBootstrap:
    """Intervals of a mixture's parameters from resampled data.

    Attributes
    ----------
    weights, means, covariances : Interval of shape (K,), (K, d) and (K, d, d)
        Estimates with their intervals, standard errors and biases.
    n_replicates : int
        Samples that were fitted.
    level : float
        Coverage aimed at.
    notes : tuple of str
        Fits that did not converge or in which a component collapsed.
    """

    weights: Interval
    means: Interval
    covariances: Interval
    n_replicates: int
    level: float
    notes: tuple[str, ...]

    def table(self) -> dict[str, Any]:
        """Return one line for each parameter; of covariances, for each variance."""
        k, d = self.means.estimate.shape
        names = [f"weight {i}" for i in range(k)]
        names += [f"mean {i}, {j}" for i in range(k) for j in range(d)]
        names += [f"variance {i}, {j}" for i in range(k) for j in range(d)]
        diagonal = np.s_[:, np.arange(d), np.arange(d)]
        columns: dict[str, Any] = {"parameter": names}
        for name in ("estimate", "lower", "upper", "error", "bias"):
            weights, means, spread = (getattr(part, name) for part in (self.weights, self.means, self.covariances))
            columns[name] = np.concatenate([weights, means.ravel(), spread[diagonal].ravel()])
        return columns

    def __repr__(self) -> str:
        columns = self.table()
        lines = [f"MixtureBootstrap: {self.n_replicates} replicates, {self.level:.0%} intervals"]
        for i, name in enumerate(columns["parameter"]):
            ends = f"[{columns['lower'][i]:.4g}, {columns['upper'][i]:.4g}]"
            lines.append(f"  {name:<14} {columns['estimate'][i]:.4g} {ends}  error {columns['error'][i]:.2g}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def bootstrap_mixture(
    model: GaussianMixture,
    X: Any,
    *,
    n_replicates: int = 200,
    level: float = 0.95,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> MixtureBootstrap:
    """Standard errors and intervals of a fitted mixture by resampling its data.

    Rows are drawn with replacement, that is, given other frequencies; counts in bins likewise. Each fit starts from the
    model's own parameters, so that components keep their numbers.

    Parameters
    ----------
    model : GaussianMixture
        Fitted to the data.
    X, sample_weight
        The data.
    n_replicates : int, default=200
        Samples drawn.
    level : float, default=0.95
        Coverage of the intervals, which lie between percentiles.
    random_state : int, RandomState, Generator or None, default=None
        Seed; None is a fixed one.
    n_jobs : int, optional
        How many processes.
    progress : callable, optional
        Called as ``progress(done, total, message)`` after each fit.

    Returns
    -------
    MixtureBootstrap
        Intervals of weights, means and covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.analysis import bootstrap_mixture
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> found = bootstrap_mixture(GaussianMixture().fit(x), x, n_replicates=100)
    >>> bool(abs(found.means.error[0, 0] - x.std() / 10) < 0.02)
    True
    """
    check_is_fitted(model)
    _check_level(level)
    least = math.ceil(2 / (1 - level) - 1e-9)
    if n_replicates < least:
        raise ValueError(f"n_replicates={n_replicates} is too few for intervals of {level:.4g}: take {least} or more.")
    data = X if isinstance(X, Bins) else open_source(X)
    size = _sample_size(X, sample_weight)
    w = data.counts if isinstance(data, Bins) else check_weights(sample_weight, data.shape[0])
    seeds = np.random.SeedSequence(_entropy(random_state)).spawn(n_replicates)
    tasks = [(_start_at(model), data, size, w / w.sum(), seed) for seed in seeds]
    fits = _run_each(_fit_resampled, tasks, n_jobs, progress, "Fitting to resampled data")
    at, notes = model.mixture_, []
    slow, bad = (sum(bool(fit[j]) for fit in fits) for j in (1, 2))
    if slow:
        notes.append(f"{slow} of {len(fits)} fits did not converge")
    if bad:
        notes.append(f"a component collapsed or was empty in {bad} of {len(fits)} fits")
    mixtures = [fit[0].reorder(match_components(at, fit[0])[1]).shift_origin(at.origin) for fit in fits]
    weights, centres, spread = (
        bootstrap_intervals(getattr(at, name), np.stack([getattr(m, name) for m in mixtures]), level, "percentile")
        for name in ("weights", "centres", "matrices")
    )
    moved = {name: getattr(centres, name) + at.origin for name in ("estimate", "lower", "upper")}
    return MixtureBootstrap(weights, replace(centres, **moved), spread, len(fits), level, tuple(notes))


def _fit_resampled(
    model: GaussianMixture, data: Any, n: int, shares: Array, seed: np.random.SeedSequence
) -> tuple[Mixture, bool, str]:
    """The mixture of data drawn anew, whether its fit fell short, and what is wrong with a component."""
    rng = np.random.default_rng(seed)
    if isinstance(data, Bins):
        fit = model.fit(_count_anew(data, n, shares, rng))
    else:
        fit = model.fit(data, sample_weight=rng.multinomial(n, shares).astype(np.float64))
    return fit.mixture_, not fit.certificate_.converged, fit.landscape_.problems[fit.landscape_.kept]


def _run_each(
    work: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    n_jobs: int | None,
    progress: Progress | None,
    message: str,
) -> list[Any]:
    """Results of ``work(*task)``, in order, by joblib: in this process unless ``n_jobs`` says otherwise.

    Fits of small data are Python's own time, which threads would share; so several jobs are several processes, unless
    joblib's configuration says otherwise. What fits warn of is read from their certificates and landscapes.
    """
    results: list[Any] = []
    with _no_warnings():  # here, not in the tasks: filters belong to all threads, and processes are handed ours
        for result in Parallel(n_jobs=n_jobs, return_as="generator")(delayed(work)(*task) for task in tasks):
            results.append(result)
            if progress is not None:
                progress(len(results), len(tasks), message)
    return results


@contextmanager
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")


def _start_at(model: GaussianMixture) -> Any:
    """An unfitted copy that starts from a fitted model's parameters."""
    start = {"weights_init": model.weights_, "means_init": model.means_, "precisions_init": model.precisions_}
    return clone(model).set_params(**start, n_init=1, warm_start=False, verbose=0)


def _total_weight(X: Any, sample_weight: Any) -> float:
    """Σw: how many observations there are."""
    return X.weight if isinstance(X, Bins) else float(check_weights(sample_weight, open_source(X).shape[0]).sum())


def _sample_size(X: Any, sample_weight: Any) -> int:
    """How many observations a sample of such data has: Σw, rounded."""
    total = _total_weight(X, sample_weight)
    if round(total) < 2:
        raise ValueError(
            f"The weights sum to {total:g}, so that samples would have {round(total)} rows. Weights are frequencies: "
            "let them sum to the number of observations."
        )
    return round(total)


def _entropy(random_state: Any) -> int:
    """Where the seeds of replicates come from; None is a fixed number."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return check_seed(random_state)


def _count_anew(bins: Bins, n: int, shares: Array, rng: np.random.Generator) -> Bins:
    """Bins with n observations counted anew, each in a box with these probabilities."""
    return Bins.intervals(bins.lower, bins.upper, rng.multinomial(n, shares / shares.sum()).astype(np.float64))
