"""Which mixture, and how sure: choice of components and covariance model, likelihood-ratio tests, bootstrap errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from gramian.inputs.checks import check_choice
from gramian.mixture.binned import Bins
from gramian.mixture.parameters import MODELS, Mixture, numbers, unmasked
from gramian.pca.bootstrap import Interval, intervals
from gramian.results import NumericalWarning, Optimum
from gramian.sources import open_source

__all__ = [
    "CRITERIA",
    "FittedMixture",
    "LikelihoodRatioTest",
    "MixtureBootstrap",
    "MixtureChoice",
    "Progress",
    "bootstrap_lrt",
    "bootstrap_mixture",
    "columns_of",
    "counted",
    "each",
    "entropy_of",
    "fitted",
    "quietly",
    "sample_size",
    "select_mixture",
    "started_at",
    "total_weight",
]

Progress = Callable[[int, int], Any]
Vector = npt.NDArray[np.float64]


class FittedMixture(Protocol):
    """A Gaussian mixture, as :class:`gramian.GaussianMixture` is after ``fit``."""

    weights_: Vector
    means_: npt.NDArray[np.float64]
    covariances_: npt.NDArray[np.float64]
    precisions_: npt.NDArray[np.float64]
    log_likelihood_: float
    n_parameters_: int
    certificate_: Optimum
    landscape_: Any
    mixture_: Mixture
    n_components: int
    covariance_type: str

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows or bins."""

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Integrated complete-data likelihood."""

    def set_params(self, **params: Any) -> Any:
        """Change constructor parameters."""


def each(
    work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], n_jobs: int | None, progress: Progress | None
) -> list[Any]:
    """``work(*task)`` for every task, in order, by joblib: in this process unless ``n_jobs`` says otherwise.

    Fits of small data are Python's own time, which threads would share; so several jobs are several processes, unless
    joblib's configuration says otherwise. What fits warn of is read from their certificates and landscapes.
    """
    numbered = (delayed(_numbered)(i, work, task) for i, task in enumerate(tasks))
    out: list[Any] = [None] * len(tasks)
    with _silence():  # here, not in the tasks: filters belong to all threads, and processes are handed ours
        for done, (i, result) in enumerate(Parallel(n_jobs=n_jobs, return_as="generator_unordered")(numbered), 1):
            out[i] = result
            if progress is not None:
                progress(done, len(tasks))
    return out


def _numbered(i: int, work: Callable[..., Any], task: tuple[Any, ...]) -> tuple[int, Any]:
    return i, work(*task)


@contextmanager
def _silence() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fitted(model: Any, X: Any, sample_weight: Any = None) -> Any:
    """Fit a model, with weights where there are some."""
    return model.fit(X) if sample_weight is None else model.fit(X, sample_weight=sample_weight)


def quietly(model: Any, X: Any, sample_weight: Any = None) -> Any:
    """The same without warnings."""
    with _silence():
        return fitted(model, X, sample_weight)


def started_at(model: FittedMixture) -> Any:
    """An unfitted copy that starts from a fitted model's parameters."""
    start = {"weights_init": model.weights_, "means_init": model.means_, "precisions_init": model.precisions_}
    return clone(model).set_params(**start, n_init=1, warm_start=False, verbose=0)


def columns_of(X: Any) -> int:
    """How many columns data have."""
    return len(X.origin) if isinstance(X, Bins) else int(open_source(X).shape[1])


def total_weight(X: Any, sample_weight: Any) -> float:
    """Σw: how many observations there are."""
    if isinstance(X, Bins):
        return X.weight
    return float(open_source(X).shape[0] if sample_weight is None else np.sum(numbers("sample_weight", sample_weight)))


def sample_size(X: Any, sample_weight: Any) -> int:
    """How many observations a sample of such data has: Σw, rounded."""
    total = total_weight(X, sample_weight)
    if round(total) < 2:
        raise ValueError(
            f"The weights sum to {total:g}, so that samples would have {round(total)} rows. Weights are frequencies: "
            "let them sum to the number of observations."
        )
    return round(total)


def entropy_of(random_state: Any) -> int:
    """Where the seeds of replicates come from; None is a fixed number."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


def counted(bins: Bins, n: int, shares: Vector, rng: np.random.Generator) -> Bins:
    """Bins with n observations counted anew, each in a box with these probabilities."""
    return Bins.intervals(bins.lower, bins.upper, rng.multinomial(n, shares / shares.sum()).astype(np.float64))


Matrix = npt.NDArray[np.float64]

CRITERIA = ("bic", "aic", "icl")
SHOWN = 3  # best ones in a representation


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
    test : LikelihoodRatioTest or None
        The tests behind criterion "lrt".
    """

    criterion: str
    n_components: tuple[int, ...]
    covariance_types: tuple[str, ...]
    bic: Matrix
    aic: Matrix
    icl: Matrix
    log_likelihood: Matrix
    n_parameters: Matrix
    problems: tuple[tuple[str, ...], ...]
    converged: npt.NDArray[np.bool_]
    best: Any
    test: Any = field(default=None)

    @property
    def eligible(self) -> npt.NDArray[np.bool_]:
        """Which fits may be chosen: those without a problem."""
        return np.array([[not text for text in row] for row in self.problems])

    def ranked(self, criterion: str | None = None) -> list[tuple[str, int, float]]:
        """Models, sizes and values of the eligible fits, best first."""
        values = getattr(self, self._which(criterion))
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

    def _which(self, criterion: str | None) -> str:
        name = self.criterion if criterion is None else criterion
        return "bic" if name == "lrt" else name

    def __repr__(self) -> str:
        ranked = self.ranked()
        tried = int(np.size(self.bic))
        head = f"MixtureChoice by {self.criterion}: {self.best.covariance_type}, {self.best.n_components} components"
        lines = [f"{head}, of {tried} fits"]
        name = self._which(None)
        for model, k, value in ranked[:SHOWN]:
            lines.append(f"  {model:<9} {k:>2}  {name} {value:.4f}  (+{value - ranked[0][2]:.4f})")
        left = tried - int(np.count_nonzero(self.eligible))
        if left:
            lines.append(f"  {left} fits are not eligible: see table()")
        slow = int(np.count_nonzero(self.eligible & ~self.converged))
        if slow:
            lines.append(f"  {slow} fits did not converge: raise max_iter")
        return "\n".join([*lines, *([repr(self.test)] if self.test is not None else [])])


Array = npt.NDArray[np.float64]


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
    prototype: Any,
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
        Seed, None for a fixed one; how many processes; what is called as ``progress(done, total)`` within each test.

    Returns
    -------
    LikelihoodRatioTest

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.mixture.choose import bootstrap_lrt
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(0, 1, 60), rng.normal(6, 1, 60)])[:, None]
    >>> bootstrap_lrt(GaussianMixture(covariance_type="E"), x, most=2, n_replicates=19).p_values
    array([0.05])
    """
    _check(n_replicates, level, first, most)
    sample_size(X, sample_weight)  # refuses weights that are no frequencies before anything is fitted
    seeds = np.random.SeedSequence(entropy_of(random_state)).spawn(most)
    found: list[tuple[float, float, Array]] = []
    null, k = _of_size(prototype, first, X, sample_weight), first
    while k < most and (not found or found[-1][1] <= level):
        other = _of_size(prototype, k + 1, X, sample_weight)
        tasks = _tasks(prototype, null, X, sample_weight, seeds[k].spawn(n_replicates))
        found.append(_compared(null, other, np.array(each(_statistic, tasks, n_jobs, progress))))
        null, k = other, k + 1
    return _test(found, first, level)


def _tasks(prototype: Any, null: Any, X: Any, sample_weight: Any, seeds: list[Any]) -> list[tuple[Any, ...]]:
    """One sample of the smaller model for each seed, and what both models are to start from."""
    sampler, other = _Sampler(null.mixture_, X, sample_weight), _sized(prototype, null.n_components + 1)
    return [(sampler, seed, started_at(null), other) for seed in seeds]


def _compared(null: Any, other: Any, under: Array) -> tuple[float, float, Array]:
    """The statistic, its p-value and what it is compared with."""
    value = max(0.0, 2 * (float(other.log_likelihood_) - float(null.log_likelihood_)))
    return value, (1.0 + int(np.sum(under >= value))) / (len(under) + 1.0), under


def _test(found: list[tuple[float, float, Array]], first: int, level: float) -> LikelihoodRatioTest:
    """The tests as one object: the last is not significant, or there is none left."""
    values, ps, draws = zip(*found, strict=True) if found else ((), (), ())
    chosen = first + len(found) - bool(ps and ps[-1] > level)
    sizes = tuple(range(first, first + len(found)))
    return LikelihoodRatioTest(sizes, np.array(values), np.array(ps), tuple(draws), level, chosen)


def _check(n_replicates: int, level: float, first: int, most: int) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
    least = math.ceil(1 / level - 1 - 1e-9)
    if n_replicates < least:
        raise ValueError(f"n_replicates={n_replicates} can give no p-value below {level:g}: take {least} or more.")
    if not 1 <= first <= most:
        raise ValueError(f"first must lie between 1 and most, got first={first} and most={most}.")


def _sized(prototype: Any, k: int) -> Any:
    return clone(prototype).set_params(n_components=k, verbose=0)


def _of_size(prototype: Any, k: int, X: Any, sample_weight: Any) -> Any:
    return quietly(_sized(prototype, k), X, sample_weight)


def _statistic(sampler: _Sampler, seed: np.random.SeedSequence, null: Any, other: Any) -> float:
    sample = sampler.draw(np.random.default_rng(seed))
    low, high = clone(null).fit(sample), clone(other).fit(sample)
    return max(0.0, 2 * (float(high.log_likelihood_) - float(low.log_likelihood_)))


class _Sampler:
    """Samples from a mixture that are recorded as the data were: as many rows, with cells missing, or in bins."""

    def __init__(self, mixture: Mixture, X: Any, sample_weight: Any) -> None:
        self.mixture, self.size = mixture, sample_size(X, sample_weight)
        self.bins: Bins | None = X if isinstance(X, Bins) else None
        self.holes: Any = None
        self.shares: Any = None
        if self.bins is None:
            self.holes, self.shares = _holes(X, sample_weight)
        if self.bins is not None and abs(float(self.bins.probabilities(mixture).sum()) - 1.0) > 1e-6:
            raise ValueError(
                "The bins do not cover everything once, so samples cannot be counted in them. "
                "Use edges from −inf to inf."
            )

    def draw(self, rng: np.random.Generator) -> Any:
        if self.bins is not None:
            return counted(self.bins, self.size, self.bins.probabilities(self.mixture), rng)
        rows, _ = self.mixture.sample(self.size, rng)
        if self.holes is not None:
            which = rng.choice(len(self.holes), self.size, p=self.shares)
            rows[self.holes[which]] = np.nan
        return rows


def _holes(X: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Which cells are missing in each row and how often the row counts; None where all are there."""
    source = open_source(unmasked(X))
    found = np.concatenate([np.isnan(np.asarray(b.values, dtype=np.float64)) for b in source.blocks()])
    if not found.any():
        return None, None
    w = np.ones(len(found)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return found, w / w.sum()


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
            of = [getattr(part, name) for part in (self.weights, self.means)]
            columns[name] = np.concatenate(
                [*(x.ravel() for x in of), getattr(self.covariances, name)[diagonal].ravel()]
            )
        return columns

    def __repr__(self) -> str:
        columns = self.table()
        lines = [f"MixtureBootstrap: {self.n_replicates} replicates, {self.level:.0%} intervals"]
        for i, name in enumerate(columns["parameter"]):
            ends = f"[{columns['lower'][i]:.4g}, {columns['upper'][i]:.4g}]"
            lines.append(f"  {name:<14} {columns['estimate'][i]:.4g} {ends}  error {columns['error'][i]:.2g}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def bootstrap_mixture(
    model: FittedMixture,
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
        Called as ``progress(done, total)`` after each fit.

    Returns
    -------
    MixtureBootstrap
        Intervals of weights, means and covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.mixture.choose import bootstrap_mixture
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> found = bootstrap_mixture(GaussianMixture().fit(x), x, n_replicates=100)
    >>> bool(abs(found.means.error[0, 0] - x.std() / 10) < 0.02)
    True
    """
    check_is_fitted(model)
    _check_mixture_errors(n_replicates, level)
    data = X if isinstance(X, Bins) else open_source(unmasked(X))
    shares, n = _shares(data, sample_weight), sample_size(X, sample_weight)
    seeds = np.random.SeedSequence(entropy_of(random_state)).spawn(n_replicates)
    tasks = [(started_at(model), data, n, shares, seed) for seed in seeds]
    return _gathered(model.mixture_, each(_replicate, tasks, n_jobs, progress), level)


def _check_mixture_errors(n_replicates: int, level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
    least = math.ceil(2 / (1 - level) - 1e-9)
    if n_replicates < least:
        raise ValueError(f"n_replicates={n_replicates} is too few for intervals of {level:.4g}: take {least} or more.")


def _gathered(at: Mixture, fits: list[tuple[Mixture, bool, str]], level: float) -> MixtureBootstrap:
    mixtures = [_matched(at, fit) for fit, _, _ in fits]
    parts = [(m.weights, m.centres, m.matrices) for m in mixtures]
    weights, centres, spread = (np.stack(part) for part in zip(*parts, strict=True))
    means, shift = intervals(at.centres, centres, level, "percentile"), at.origin
    return MixtureBootstrap(
        intervals(at.weights, weights, level, "percentile"),
        Interval(means.estimate + shift, means.lower + shift, means.upper + shift, means.error, means.bias),
        intervals(at.matrices, spread, level, "percentile"),
        len(fits),
        level,
        _notes(fits),
    )


def _shares(data: Any, sample_weight: Any) -> Array:
    if isinstance(data, Bins):
        return data.counts / data.weight
    w = np.ones(data.shape[0]) if sample_weight is None else numbers("sample_weight", sample_weight)
    return np.asarray(w / w.sum())


def _replicate(model: Any, data: Any, n: int, shares: Array, seed: np.random.SeedSequence) -> tuple[Mixture, bool, str]:
    rng = np.random.default_rng(seed)
    if isinstance(data, Bins):
        fit = fitted(model, counted(data, n, shares, rng))
    else:
        fit = fitted(model, data, rng.multinomial(n, shares).astype(np.float64))
    return fit.mixture_, bool(fit.certificate_.converged), fit.landscape_.problems[fit.landscape_.kept]


def _matched(at: Mixture, found: Mixture) -> Mixture:
    """Components in the order of those they are nearest to."""
    R, away = at.roots, at.means[:, None] - found.means[None]
    y = away * R[:, None] if at.diagonal else np.einsum("kij,klj->kli", R, away)
    _, order = linear_sum_assignment(np.sum(y**2, axis=2))
    return found.ordered(order).measured_from(at.origin)


def _notes(fits: list[tuple[Mixture, bool, str]]) -> tuple[str, ...]:
    slow = sum(not converged for _, converged, _ in fits)
    bad = sum(bool(problem) for _, _, problem in fits)
    notes = [f"{slow} of {len(fits)} fits did not converge"] if slow else []
    return (*notes, *([f"a component collapsed or was empty in {bad} of {len(fits)} fits"] if bad else []))


MOST = 9  # components tried unless said otherwise, as in mclust


def select_mixture(
    prototype: Any,
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
    A fit in which a component collapsed is not eligible: its likelihood can be made as large as one likes.

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
        How many processes, −1 for one for each core; what is called as ``progress(done, total)`` after each fit.
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
    >>> from gramian.mixture.choose import select_mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(6, 1, (100, 2))])
    >>> choice = select_mixture(GaussianMixture(), X, n_components=(1, 2, 3), covariance_types=("EII", "VVV"))
    >>> choice.best.n_components, choice.best.covariance_type
    (2, 'EII')
    """
    check_choice("criterion", criterion, (*CRITERIA, "lrt"))
    sizes, models = _sizes(n_components), _models(covariance_types, columns_of(X))
    if test and criterion != "lrt":
        raise TypeError(f"{', '.join(test)} belong to criterion='lrt'.")
    if criterion == "lrt":
        return _by_test(prototype, X, sizes, models, sample_weight, n_jobs, progress, test)
    return _table(prototype, X, sizes, models, criterion, sample_weight, n_jobs, progress)


def _sizes(given: int | Iterable[int] | None) -> tuple[int, ...]:
    many = range(1, MOST + 1) if given is None else (given,) if isinstance(given, (int, np.integer)) else tuple(given)
    wrong: list[Any] = [k for k in many if not _is_size(k)]
    if wrong or not many:
        raise ValueError(f"n_components must be whole numbers of at least 1, got {wrong[0] if wrong else given!r}.")
    return tuple(sorted({int(k) for k in many}))


def _is_size(k: Any) -> bool:
    return isinstance(k, (int, np.integer)) and not isinstance(k, bool) and bool(k >= 1)


def _models(names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    if names is None:
        return ("E", "V") if d == 1 else MODELS
    found = (names,) if isinstance(names, str) else tuple(names)
    if not found:
        raise ValueError("covariance_types is empty: name one or more.")
    return found


def _table(
    prototype: Any,
    X: Any,
    sizes: tuple[int, ...],
    models: tuple[str, ...],
    criterion: str,
    sample_weight: Any,
    n_jobs: int | None,
    progress: Progress | None,
) -> MixtureChoice:
    same = {(k, m): (k, _alike(m, k)) for k in sizes for m in models}
    wanted = sorted(set(same.values()))
    tasks = [(prototype, k, m, X, sample_weight) for k, m in wanted]
    found = dict(zip(wanted, each(_fitted, tasks, n_jobs, progress), strict=True))
    fits = [[found[same[k, m]] for m in models] for k in sizes]
    n = total_weight(X, sample_weight)
    ll, p, entropy, converged = (np.array([[fit[name] for fit in row] for row in fits]) for name in NAMES)
    bic = -2 * ll + p * np.log(n)
    values = {"bic": bic, "aic": -2 * ll + 2 * p, "icl": bic + entropy}
    problems = tuple(tuple(fit["problem"] for fit in row) for row in fits)
    good = np.array([[not text for text in row] for row in problems]) & np.isfinite(bic)
    if not good.any():
        raise ValueError(f"None of the {good.size} fits is eligible; the first says: {problems[0][0]}.")
    i, j = np.unravel_index(np.argmin(np.where(good, values[criterion], np.inf)), good.shape)
    best = fits[i][j]["model"].set_params(covariance_type=models[j])
    best = best if same[sizes[i], models[j]][1] == models[j] else quietly(clone(best), X, sample_weight)
    return MixtureChoice(
        criterion,
        sizes,
        models,
        **values,
        log_likelihood=ll,
        n_parameters=p,
        problems=problems,
        converged=converged.astype(bool),
        best=best,
    )


NAMES = ("log_likelihood", "n_parameters", "entropy", "converged")


def _alike(model: str, k: int) -> str:
    """The first of the models that are the same for one component: volumes and shapes have nobody to differ from."""
    if k > 1 or model not in MODELS:
        return model
    return {"II": "EII", "EI": "EEI", "VI": "EEI"}.get(model[1:], "EEE")


def _fitted(prototype: Any, k: int, model: str, X: Any, sample_weight: Any) -> dict[str, Any]:
    """One fit and what the table needs of it; a fit that cannot be made is a line that says why."""
    try:
        fit = fitted(clone(prototype).set_params(n_components=k, covariance_type=model), X, sample_weight)
    except ValueError as error:
        nothing = dict.fromkeys(NAMES[:3], np.nan) | {"converged": False}
        return nothing | {"model": None, "problem": str(error)}
    entropy = fit.icl(X, sample_weight) - fit.bic(X, sample_weight) if k > 1 else 0.0
    return {
        "log_likelihood": fit.log_likelihood_,
        "n_parameters": float(fit.n_parameters_),
        "entropy": entropy,
        "converged": fit.certificate_.converged,
        "model": fit,
        "problem": fit.landscape_.problems[fit.landscape_.kept],
    }


def _by_test(
    prototype: Any,
    X: Any,
    sizes: tuple[int, ...],
    models: tuple[str, ...],
    sample_weight: Any,
    n_jobs: int | None,
    progress: Progress | None,
    options: dict[str, Any],
) -> MixtureChoice:
    if len(models) != 1:
        raise ValueError(
            f"The likelihood-ratio test compares numbers of components in one covariance model; {len(models)} are "
            "given. Name one, chosen by BIC, say."
        )
    if sizes != tuple(range(sizes[0], sizes[-1] + 1)):
        raise ValueError(f"The likelihood-ratio test adds one component at a time; {list(sizes)} has gaps.")
    table = _table(prototype, X, sizes, models, "bic", sample_weight, n_jobs, None)
    found = bootstrap_lrt(
        clone(prototype).set_params(covariance_type=models[0]),
        X,
        first=sizes[0],
        most=sizes[-1],
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        progress=progress,
        **options,
    )
    best = quietly(clone(prototype).set_params(covariance_type=models[0], n_components=found.chosen), X, sample_weight)
    fields = {name: getattr(table, name) for name in table.__dataclass_fields__}
    return MixtureChoice(**fields | {"criterion": "lrt", "best": best, "test": found})
