"""From columns of a table to what a likelihood is made of: values, counts, censored times, intervals, classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from gramian.cli.options import bundle, option
from gramian.likelihood import Binned, Censored, Intervals, Sample, as_sample

__all__ = ["Records", "families_for", "record_options", "sample_of"]

Vector = NDArray[np.float64]

COUNTS = ("poisson", "geometric", "negative binomial")
POSITIVE = ("normal", "lognormal", "gamma", "weibull", "exponential")
REAL = ("normal", "student t", "laplace", "logistic")


@dataclass(frozen=True)
class Records:
    """Columns that say how each value was observed."""

    event: str | None
    side: str
    lower: str | None
    upper: str | None
    counts: str | None
    truncated: tuple[float, float] | None

    def check(self, columns: tuple[str, ...] | None) -> None:
        """Exit 2 where columns contradict each other."""
        if (self.lower is None) != (self.upper is None):
            raise click.UsageError("an interval has two ends: give --lower and --upper together")
        if self.lower is not None and (self.event is not None or columns is not None):
            raise click.UsageError("--lower and --upper are the values: leave out --columns and --event")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are no values themselves."""
        return tuple(name for name in (self.event, self.lower, self.upper, self.counts) if name is not None)


def limits(text: str) -> tuple[float, float]:
    """Return two limits from low:high; an empty one is infinite."""
    low, mark, high = text.partition(":")
    try:
        found = (float(low) if low.strip() else -np.inf, float(high) if high.strip() else np.inf)
    except ValueError:
        found = (np.nan, np.nan)
    if not mark or not found[0] < found[1]:
        raise click.BadParameter(f"{text!r} is no range; low:high is, as 0:10 or 1:")
    return found


def record_options(function: Any) -> Any:
    """Add the options that say how values were observed; the command is handed them as ``records``."""
    add: list[Callable[[Any], Any]] = [
        option("--event", metavar="NAME", help="Column of 1 (happened at that time) and 0 (censored)."),
        option(
            "--side",
            type=click.Choice(["right", "left"]),
            default="right",
            show_default=True,
            help="Censored events come after their time, or before it.",
        ),
        option("--lower", metavar="NAME", help="Column of lower limits, for values known to lie in intervals."),
        option("--upper", metavar="NAME", help="Column of upper limits; empty cells have no limit."),
        option("--counts", metavar="NAME", help="Column that says how often each value or interval was observed."),
        option("--truncated", type=limits, metavar="LOW:HIGH", help="Only values in this range could be seen."),
    ]
    return bundle(Records, "records", add)(function)


def sample_of(columns: dict[str, Vector], values: Vector | None, records: Records) -> Sample:
    """Return one column, or one pair of limits, as a sample.

    Classes that follow one upon the other, with counts, are binned data, for which there are goodness-of-fit tests.
    """
    counts = None if records.counts is None else columns[records.counts]
    if records.lower is not None and records.upper is not None:
        return _intervals(columns[records.lower], columns[records.upper], counts, records.truncated)
    if values is None:
        raise ValueError("there is no column of values: name it with --columns")
    if records.event is not None:
        return as_sample(Censored(values, columns[records.event], records.side), counts, records.truncated)
    return as_sample(values, counts, records.truncated)


def _intervals(low: Vector, high: Vector, counts: Vector | None, truncated: Any) -> Sample:
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    order = np.argsort(low, kind="stable")
    edges = np.append(low[order], high[order][-1:])
    if counts is not None and np.array_equal(edges[1:], high[order]) and np.all(np.diff(edges) > 0):
        return as_sample(Binned(edges, counts[order]), None, truncated)
    return as_sample(Intervals(low, high), counts, truncated)


def families_for(sample: Sample) -> tuple[str, ...]:
    """Return the families worth comparing for values like these.

    Examples
    --------
    >>> from gramian.cli.samples import families_for
    >>> from gramian.likelihood import as_sample
    >>> families_for(as_sample([0, 3, 1, 1]))
    ('poisson', 'negative binomial')
    """
    seen = sample.observed()
    low, high = float(np.min(seen.lower)), float(np.max(seen.upper))
    if seen.exact.all() and low >= 0 and np.all(seen.lower == np.floor(seen.lower)):
        return ("bernoulli",) if high <= 1 else tuple(name for name in COUNTS if low >= 1 or name != "geometric")
    if low < 0 or (low == 0 and seen.exact.any() and np.min(seen.lower[seen.exact], initial=1.0) == 0):
        return REAL
    return (*POSITIVE, "beta") if high < 1 else POSITIVE
