"""How sure a mixture's parameters are: fits to resampled data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from gramian.analysis._interval import Interval
from gramian.analysis._mixture_tasks import (
    FittedMixture,
    Progress,
    counted,
    each,
    entropy_of,
    fitted,
    sample_size,
    started_at,
)
from gramian.analysis._quantiles import intervals
from gramian.likelihood.mixture import Bins, Mixture
from gramian.likelihood.mixture.given import numbers, unmasked
from gramian.sources import open_source

__all__ = ["MixtureBootstrap", "bootstrap_mixture"]

Array = npt.NDArray[np.float64]


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
    >>> from gramian.analysis.mixtures import bootstrap_mixture
    >>> x = np.random.default_rng(0).normal(size=(100, 1))
    >>> found = bootstrap_mixture(GaussianMixture().fit(x), x, n_replicates=100)
    >>> bool(abs(found.means.error[0, 0] - x.std() / 10) < 0.02)
    True
    """
    check_is_fitted(model)
    _check(n_replicates, level)
    data = X if isinstance(X, Bins) else open_source(unmasked(X))
    shares, n = _shares(data, sample_weight), sample_size(X, sample_weight)
    seeds = np.random.SeedSequence(entropy_of(random_state)).spawn(n_replicates)
    tasks = [(started_at(model), data, n, shares, seed) for seed in seeds]
    return _gathered(model.mixture_, each(_replicate, tasks, n_jobs, progress), level)


def _check(n_replicates: int, level: float) -> None:
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
