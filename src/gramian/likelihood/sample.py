r"""What was observed: points, intervals and how often, and the window outside which nothing could be seen.

Every record is an interval (a, b] with a weight w, a single point where a = b, and a window [c, d] that it was seen
through. A family with density f and probabilities P then has one likelihood for all of them,

.. math:: \ell = \sum_{a_i=b_i}w_i\ln f(a_i) + \sum_{a_i<b_i}w_i\ln P(a_i<X\le b_i) - \sum_iw_i\ln P(c_i\le X\le d_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.inputs.checks import check_weights, fetch_numbers, is_lazy

Array = npt.NDArray[np.float64]


def as_floats(data: Any, name: str) -> Array:
    """Return an array of real numbers; masked, complex or written ones are refused by name."""
    data = data.compute() if is_lazy(data) else data
    if np.ma.isMaskedArray(data) and np.ma.getmaskarray(data).any():
        row = int(np.flatnonzero(np.ma.getmaskarray(data).ravel())[0])
        raise ValueError(f"{name} is masked at entry {row + 1}: leave masked values out, as {name}.compressed() does.")
    given = np.asarray(fetch_numbers(data, name))
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        row, value = next((i, v) for i, v in enumerate(given.ravel()) if not _number(v))
        value = str(value) if isinstance(value, str) else value
        labels = f'Labels are fitted as "categorical"; one of them against the rest as "bernoulli" of x == {value!r}.'
        remedy = f" {labels}" if name == "data" else ""
        raise ValueError(f"{name} must be numbers; row {row + 1} has {value!r}.{remedy}") from None


def _number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def as_numbers(data: Any, name: str) -> Array:
    """Return a list of finite numbers; a column is one too."""
    x = as_floats(data, name)
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else np.atleast_1d(x)
    if x.ndim != 1:
        raise ValueError(
            f"{name} has shape {x.shape}: this family describes single numbers. Fit the columns one by one."
        )
    if not len(x):
        raise ValueError(f"{name} is empty: there is no observation.")
    bad = np.flatnonzero(~np.isfinite(x))
    if len(bad):
        raise ValueError(
            f"{name} must be finite; row {bad[0] + 1} has {x[bad[0]]}. Censored data are Intervals(lower, upper)."
        )
    return x


INF = float("inf")


@dataclass(frozen=True, eq=False, repr=False)
class Sample:
    """Records (a, b] with weights, each seen through a window [c, d]: what every kind of data becomes.

    Attributes
    ----------
    lower, upper : ndarray of shape (m,)
        a and b: equal for a point, −∞ or ∞ where a side is open.
    weight : ndarray of shape (m,)
        How often each was observed.
    left, right : ndarray of shape (m,) or (1,)
        c and d: −∞ and ∞ where nothing was truncated.
    edges : ndarray or None
        Limits of the classes, where the data are counts in classes.
    rounding : float
        Width of the records, where each is the interval of all values that are rounded to its middle; else 0.

    Examples
    --------
    >>> from gramian.likelihood import Sample, as_sample
    >>> as_sample([1.0, 2.0, 4.0])
    Sample: 3 points
    """

    lower: Array
    upper: Array
    weight: Array
    left: Array
    right: Array
    edges: Array | None = None
    rounding: float = 0.0

    @property
    def total(self) -> float:
        """Σw, the number of observations."""
        return float(self.weight.sum())

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """Which records are points."""
        return np.asarray(self.lower == self.upper)

    @property
    def truncated(self) -> bool:
        """Whether some values could not be seen."""
        return bool(np.isfinite(self.left).any() or np.isfinite(self.right).any())

    @property
    def plain(self) -> bool:
        """Whether all records are points and nothing was truncated: where closed forms hold."""
        return not self.truncated and bool(self.exact.all())

    def windows(self) -> tuple[Array, Array, Array]:
        """Return the different windows c, d that are not the whole line, and the weight seen through each."""
        if not self.truncated:
            return (np.empty(0),) * 3
        pairs = np.column_stack(np.broadcast_arrays(self.left, self.right))
        if len(pairs) == 1:
            return self.left, self.right, np.array([self.total])
        different, which = np.unique(pairs, axis=0, return_inverse=True)
        weight = _sum_by(which, self.weight, len(different))
        closed = np.isfinite(different).any(axis=1)
        return different[closed, 0], different[closed, 1], weight[closed]

    def rescale(self, shift: float, scale: float) -> Sample:
        """Return the records in units: (x − shift)/scale."""
        parts = (self.lower, self.upper, self.left, self.right)
        a, b, c, d = ((values - shift) / scale for values in parts)
        return Sample(a, b, self.weight, c, d)

    def where(self, keep: Any) -> Sample:
        """Return some of the records."""
        left, right = (side if len(side) == 1 else side[keep] for side in (self.left, self.right))
        return Sample(self.lower[keep], self.upper[keep], self.weight[keep], left, right, None, self.rounding)

    def observed(self) -> Sample:
        """Return the records with a positive weight."""
        return self.where(self.weight > 0)

    def merge_equal(self) -> Sample:
        """Return equal records as one, with the sum of their weights: short where the values are few, as counts are."""
        if len(self.left) > 1 or len(self.weight) < 2:
            return self
        if self.exact.all():
            values, which = np.unique(self.lower, return_inverse=True)
            return Sample(values, values, _sum_by(which, self.weight, len(values)), self.left, self.right)
        pairs, which = np.unique(np.column_stack([self.lower, self.upper]), axis=0, return_inverse=True)
        weight = _sum_by(which, self.weight, len(pairs))
        return Sample(pairs[:, 0], pairs[:, 1], weight, self.left, self.right, None, self.rounding)

    def rounded(self, width: float = 1.0) -> Sample:
        """Return points as the intervals of all values that are rounded to them, seen through a window as much wider.

        The likelihood of these intervals is a probability, as that of a count is: the two can be compared.

        Examples
        --------
        >>> from gramian.likelihood import as_sample
        >>> as_sample([3, 5]).rounded().lower
        array([2.5, 4.5])
        """
        if not self.exact.all():
            raise ValueError("Only points can have been rounded: these records are intervals already.")
        h = 0.5 * width
        sides = (self.lower - h, self.upper + h, self.weight, self.left - h, self.right + h)
        return Sample(*sides, rounding=width)

    def points(self) -> Sample:
        """Return rounded values as points, for pictures; other records as they are."""
        if not self.rounding:
            return self
        x, h = 0.5 * (self.lower + self.upper), 0.5 * self.rounding
        return Sample(x, x, self.weight, self.left + h, self.right - h)

    def representatives(self, low: float = -INF, high: float = INF) -> Array:
        """One value for each record: the point, the middle of an interval, or the end that is not open."""
        a, b = np.maximum(self.lower, low), np.minimum(self.upper, high)
        middle = np.where(np.isinf(a), b, np.where(np.isinf(b), a, 0.5 * a + 0.5 * b))
        return np.where(self.exact, self.lower, np.where(np.isinf(middle), 0.0, middle))

    def survival(self) -> tuple[Array, Array] | None:
        r"""Where the product-limit estimate S(t) = ∏(1 − d/n) falls, and to what; None unless all are points or later.

        Of d events at a time when n are still at risk (Kaplan and Meier 1958).
        """
        late = ~self.exact & (self.upper == INF)
        if self.truncated or not np.all(self.exact | late):
            return None
        times = np.unique(self.lower[self.exact & (self.weight > 0)])
        order = np.argsort(self.lower, kind="stable")
        from_here = np.append(np.cumsum(self.weight[order][::-1])[::-1], 0.0)
        at_risk = from_here[np.searchsorted(self.lower[order], times)]
        events = _sum_by(np.searchsorted(times, self.lower[self.exact]), self.weight[self.exact], len(times) + 1)
        return times, np.cumprod(1.0 - events[: len(times)] / at_risk)

    def __repr__(self) -> str:
        points = int(self.exact.sum())
        intervals = len(self.lower) - points
        shape = "classes" if self.edges is not None else "rounded values" if self.rounding else "intervals"
        kinds = [(points, "points"), (intervals, shape)]
        text = " and ".join(f"{number} {name}" for number, name in kinds if number)
        weighted = "" if np.all(self.weight == 1) else f", {self.total:g} observations"
        return f"{type(self).__name__}: {text}{weighted}{', truncated' if self.truncated else ''}"


class Binned(Sample):
    """Counts in classes (e₀, e₁], (e₁, e₂], …, with open tails where the first or last edge is infinite.

    Nothing is said about what lies outside the edges, but that nothing was found there. Where nothing *could* be found
    there, because it was not recorded, fit with ``truncated=(edges[0], edges[-1])``.

    Parameters
    ----------
    edges : array-like of shape (k + 1,)
        Increasing limits; −∞ and ∞ are allowed at the ends.
    counts : array-like of shape (k,)
        Observations in each class.

    Examples
    --------
    >>> from gramian.likelihood import Binned
    >>> Binned([-float("inf"), 0, 1, float("inf")], [3, 8, 2])
    Binned: 3 classes, 13 observations
    """

    def __init__(self, edges: Any, counts: Any) -> None:
        e, n = as_floats(edges, "edges"), check_weights(counts, np.size(counts), "counts")
        if e.ndim != 1 or len(e) != len(n) + 1:
            raise ValueError(f"edges has shape {e.shape}: {len(n)} counts need {len(n) + 1} edges.")
        bad = np.flatnonzero(~(np.diff(e) > 0))
        if len(bad):
            raise ValueError(
                f"edges must increase; edges {bad[0]} and {bad[0] + 1} are {e[bad[0]]} and {e[bad[0] + 1]}."
            )
        super().__init__(e[:-1], e[1:], n, np.array([-INF]), np.array([INF]), e)


class Censored(Sample):
    """Times of which some are only known to be later (or earlier) than what was noted.

    Parameters
    ----------
    time : array-like of shape (n,)
        What was noted.
    event : array-like of shape (n,)
        1 or True where the event happened at that time, 0 or False where observation ended without it.
    side : {"right", "left"}, default="right"
        Whether a censored event comes after its time, or came before it.

    Examples
    --------
    >>> from gramian.likelihood import Censored
    >>> Censored([6.0, 6.0, 7.0, 9.0], event=[1, 0, 1, 0])
    Censored: 2 points and 2 intervals
    """

    def __init__(self, time: Any, event: Any, side: str = "right") -> None:
        t, seen = as_numbers(time, "time"), np.asarray(event)
        if side not in ("right", "left"):
            raise ValueError(f"side must be 'right' or 'left'; got {side!r}.")
        if seen.shape != t.shape:
            raise ValueError(f"event has shape {seen.shape}; expected one entry for each of the {len(t)} times.")
        bad = np.flatnonzero(~np.isin(seen, (0, 1)))
        if len(bad):
            raise ValueError(f"event must be 0 or 1 (False or True); row {bad[0] + 1} has {seen[bad[0]]!r}.")
        open_end = (seen == 0) & (side == "right"), (seen == 0) & (side == "left")
        lower, upper = np.where(open_end[1], -INF, t), np.where(open_end[0], INF, t)
        super().__init__(lower, upper, np.ones(len(t)), np.array([-INF]), np.array([INF]))


class Intervals(Sample):
    """Values of which a lower and an upper limit are known; equal limits are a point.

    Parameters
    ----------
    lower, upper : array-like of shape (n,)
        lower < x ≤ upper. −∞ and ∞, or NaN, where there is no limit.

    Examples
    --------
    >>> from gramian.likelihood import Intervals
    >>> Intervals([1.0, 2.0, 3.0], [1.0, 2.5, float("inf")])
    Intervals: 1 points and 2 intervals
    """

    def __init__(self, lower: Any, upper: Any) -> None:
        a, b = np.atleast_1d(as_floats(lower, "lower")), np.atleast_1d(as_floats(upper, "upper"))
        if a.shape != b.shape or a.ndim != 1:
            raise ValueError(f"lower has shape {a.shape} and upper {b.shape}; expected two lists of one length.")
        if not len(a):
            raise ValueError("lower and upper are empty: there is no observation.")
        a, b = np.where(np.isnan(a), -INF, a), np.where(np.isnan(b), INF, b)
        bad = np.flatnonzero(~(a <= b) | ((a == b) & np.isinf(a)))
        if len(bad):
            raise ValueError(f"Row {bad[0] + 1} is no interval: lower {a[bad[0]]}, upper {b[bad[0]]}.")
        super().__init__(a, b, np.ones(len(a)), np.array([-INF]), np.array([INF]))


def as_sample(data: Any, sample_weight: Any = None, truncated: Any = None) -> Sample:
    """Return data as records: numbers, or a :class:`Sample` of any kind.

    Parameters
    ----------
    data : array-like of shape (n,) or (n, 1), or Sample
        What was observed.
    sample_weight : array-like of shape (n,), optional
        Frequencies: a weight of 2 is the record twice.
    truncated : tuple of two numbers or arrays, optional
        Only values with c ≤ x ≤ d could be seen; an array gives each record its own limit (delayed entry).

    Returns
    -------
    Sample
        The records.

    Examples
    --------
    >>> from gramian.likelihood import as_sample
    >>> as_sample([1.0, 2.0], sample_weight=[3, 1], truncated=(0.5, float("inf")))
    Sample: 2 points, 4 observations, truncated
    """
    if isinstance(data, Sample):
        sample = data
    else:
        x = as_numbers(data, "data")
        sample = Sample(x, x, np.ones(len(x)), np.array([-INF]), np.array([INF]))
    if sample_weight is not None:
        if sample.edges is not None:
            raise ValueError("The counts of binned data are their weights: give sample_weight=None.")
        weight = check_weights(sample_weight, len(sample.lower)) * sample.weight
        sample = Sample(sample.lower, sample.upper, weight, sample.left, sample.right, None, sample.rounding)
    if not sample.total > 0:
        raise ValueError("There is no observation: all weights are zero.")
    return sample if truncated is None else _truncate(sample, truncated)


def _sum_by(which: Any, weight: Array, groups: int) -> Array:
    return np.asarray(np.bincount(which.ravel(), weight, groups), dtype=np.float64)


def _truncate(sample: Sample, truncated: Any) -> Sample:
    """The sample seen through a window; what lies wholly outside it is impossible."""
    try:
        c, d = (np.atleast_1d(np.asarray(side, dtype=np.float64)) for side in truncated)
    except (TypeError, ValueError):
        raise ValueError(f"truncated must be two limits, as in (0.5, inf); got {truncated!r}.") from None
    for side in (c, d):
        if np.isnan(side).any() or side.shape not in ((1,), sample.lower.shape):
            raise ValueError(f"truncated must be two numbers, or a number for each of the {len(sample.lower)} records.")
    if not np.all(c < d):
        raise ValueError(f"truncated must leave room between its limits; got {truncated!r}.")
    outside = np.where(sample.exact, (sample.lower < c) | (sample.upper > d), (sample.upper < c) | (sample.lower >= d))
    bad = np.flatnonzero(outside & (sample.weight > 0))
    if len(bad):
        row = f"{sample.lower[bad[0]]}" if sample.exact[bad[0]] else f"{sample.lower[bad[0]]} to {sample.upper[bad[0]]}"
        raise ValueError(f"Record {bad[0]} ({row}) lies outside the limits that truncated says it was seen through.")
    return Sample(sample.lower, sample.upper, sample.weight, c, d, sample.edges, sample.rounding)


def sample_like(data: Any, seen: Sample) -> Sample:
    """Return data as records, seen through the window of another sample unless they bring their own.

    Parameters
    ----------
    data : array-like or Sample
        What was observed.
    seen : Sample
        Whose window it is.

    Returns
    -------
    Sample
        The records.
    """
    sample = as_sample(data)
    if not seen.truncated or sample.truncated:
        return sample
    if len(seen.left) > 1 or len(seen.right) > 1:
        raise ValueError(
            "The fit has truncation limits for each record, which other data need too: as_sample(x, truncated=...)."
        )
    return as_sample(sample, truncated=(seen.left[0], seen.right[0]))
