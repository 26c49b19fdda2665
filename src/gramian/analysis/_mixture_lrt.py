"""How many components: likelihood-ratio tests whose distribution is found by the parametric bootstrap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from gramian.analysis._mixture_tasks import (
    Progress,
    counted,
    each,
    entropy_of,
    quietly,
    sample_size,
    started_at,
)
from gramian.likelihood.mixture import Bins, Mixture
from gramian.likelihood.mixture.given import unmasked
from gramian.sources import open_source

__all__ = ["LikelihoodRatioTest", "bootstrap_lrt"]

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
    >>> from gramian.analysis.mixtures import bootstrap_lrt
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
