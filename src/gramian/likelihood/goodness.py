r"""How well a fitted family describes counts in classes, or single values.

With observed counts O and expected counts E in k classes,

.. math:: G^2 = 2\sum O\ln(O/E),\qquad X^2 = \sum (O-E)^2/E,

both about χ² with k − 1 − p degrees of freedom where p parameters were estimated from these counts (and k − 1 for data
that had no part in the fit). Single values are divided into classes of equally many, about 2n^(2/5). The
Kolmogorov–Smirnov distance is max|F_n − F|; with u_i = F(x_(i)) the statistics of Cramér and von Mises, and of Anderson
and Darling, which weighs the ends more, are

.. math:: W^2=\frac1{12n}+\sum_i\Bigl(u_i-\frac{2i-1}{2n}\Bigr)^2,\qquad
    A^2=-n-\frac1n\sum_i(2i-1)\bigl[\ln u_i+\ln(1-u_{n+1-i})\bigr]

Where the parameters were estimated from the same values their laws depend on the family and often on the parameters:
p-values are then the share of samples, drawn from the fit and fitted themselves, that are as far from their fit (a
parametric bootstrap).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, xlogy
from scipy.stats import kstwo

from gramian.likelihood.sample import INF, Sample, as_sample, sample_like
from gramian.results import FitLevel, Quality
from gramian.results.quality import judge_chance
from gramian.results.tables import text_table

Array = npt.NDArray[np.float64]
BETWEEN = (
    "the parameters were estimated from the values, not from the classes: the law of X² lies between those of χ² with "
    "{} and {} degrees of freedom (Chernoff and Lehmann 1954), and p is the larger"
)

MEANING = (
    "The p-value is the chance of data at least as far from the fitted distribution, if the family is right. A family "
    "that is not rejected may be wrong all the same, above all in few rows; with very many rows even one that is good "
    "enough for its use is rejected: see the picture too."
)


@dataclass(frozen=True, eq=False, repr=False)
class Goodness:
    """Statistics of fit.

    Attributes
    ----------
    deviance, pearson : float
        G² and X² over the classes, NaN where there are none.
    df : int
        Their degrees of freedom.
    p_deviance, p_pearson : float
        Chance of larger values if the family is right; NaN where ``df`` is not positive.
    lower, upper, observed, expected : ndarray of shape (k,)
        The classes, pooled.
    ks, p_ks : float
        Kolmogorov–Smirnov distance and the chance of a larger one; NaN where refused.
    anderson_darling, p_anderson_darling, cramer_von_mises, p_cramer_von_mises : float
        A² and W², and the same.
    notes : tuple of str
        What was refused, and why.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> fit("poisson", [0, 1, 2, 3, 1, 1, 0, 2, 4, 1] * 5).goodness().df
    2
    """

    deviance: float
    pearson: float
    df: int
    p_deviance: float
    p_pearson: float
    lower: Array
    upper: Array
    observed: Array
    expected: Array
    ks: float = float("nan")
    p_ks: float = float("nan")
    notes: tuple[str, ...] = field(default=())
    anderson_darling: float = float("nan")
    p_anderson_darling: float = float("nan")
    cramer_von_mises: float = float("nan")
    p_cramer_von_mises: float = float("nan")

    def table(self) -> dict[str, Any]:
        """Return the classes as columns, ready for ``pandas.DataFrame``."""
        return {"above": self.lower, "up to": self.upper, "observed": self.observed, "expected": self.expected}

    def __repr__(self) -> str:
        df, rows = str(self.df), []
        if len(self.observed):
            rows += [
                ("deviance G²", self.deviance, df, self.p_deviance),
                ("Pearson X²", self.pearson, df, self.p_pearson),
            ]
        if not np.isnan(self.ks):
            rows.append(("Kolmogorov–Smirnov D", self.ks, "", self.p_ks))
            rows.append(("Anderson–Darling A²", self.anderson_darling, "", self.p_anderson_darling))
            rows.append(("Cramér–von Mises W²", self.cramer_von_mises, "", self.p_cramer_von_mises))
        columns = dict(zip(("statistic", "value", "df", "p-value"), map(list, zip(*rows, strict=True)), strict=False))
        body = [text_table(columns, None, digits=6)] if rows else []
        return "\n".join(["Goodness of fit:", *body, *(f"  note: {note}" for note in self.notes)])


def line_goodness(estimate: Any, data: Any, least: float, bootstrap: int, random_state: Any) -> Goodness:
    """The statistics that the data allow."""
    if not (np.isfinite(least) and least >= 0):
        raise ValueError(f"least must be 0 or more expected observations; got {least!r}.")
    if bootstrap != int(bootstrap) or bootstrap < 0:
        raise ValueError(f"bootstrap must be a number of samples, 0 for none; got {bootstrap!r}.")
    own = data is None
    sample: Sample = estimate.sample if own else sample_like(data, estimate.sample)
    estimate.family.check(sample)
    used = estimate.n_parameters if own else 0
    cells, note = _count_classes(estimate, sample)
    (ks, A2, W2), (p_ks, p_A2, p_W2), refused = _measure_distances(estimate, sample, own, bootstrap, random_state)
    more = (A2, p_A2, W2, p_W2)
    notes = tuple(text for text in (note, refused) if text)
    if cells is None:
        nan, empty = float("nan"), np.empty(0)
        return Goodness(nan, nan, 0, nan, nan, empty, empty, empty, empty, ks, p_ks, notes, *more)
    a, b, observed, expected = _pool_classes(*cells, least)
    G2 = float(2.0 * np.sum(xlogy(observed, observed) - xlogy(observed, expected)))
    X2 = float(np.sum((observed - expected) ** 2 / np.where(expected > 0, expected, 1.0)))
    free = sample.plain and not estimate.family.discrete  # the parameters are not estimated from these classes
    df = len(observed) - 1 - (0 if free else used)
    if free and used:
        notes = (BETWEEN.format(df - used, df), *notes)
    p = [float(chdtrc(df, value)) if df > 0 else float("nan") for value in (G2, X2)]
    if df <= 0:
        notes = (f"{len(observed)} classes and {used} parameters leave no degrees of freedom", *notes)
    return Goodness(G2, X2, df, p[0], p[1], a, b, observed, expected, ks, p_ks, notes, *more)


def measure_goodness(estimates: Mapping[str, Any]) -> list[Quality]:
    r"""What tests say against the family fitted to each column: Pearson's X², or else Kolmogorov–Smirnov.

    Parameters were fitted to the same values, which makes √n·D smaller than Kolmogorov's law says: its level of 5 % is
    near 0.90 for fitted normal and 1.09 for fitted exponential distributions in place of 1.36 (M. A. Stephens, J. Amer.
    Statist. Assoc. 69, 730–737, 1974). So the p-value of that law is a bound from above in large samples: a small one
    rejects, and a large one says little.

    Parameters
    ----------
    estimates : mapping of str to Estimate
        By the name of the column.

    Returns
    -------
    list of Quality
        One of each.

    Examples
    --------
    >>> from gramian.likelihood import fit
    >>> from gramian.likelihood.goodness import measure_goodness
    >>> measure_goodness({"x": fit("poisson", [0, 1, 2, 3, 1, 1, 0, 2, 4, 1] * 5)})[0].verdict.value
    'not rejected'
    """
    measures = []
    for column, estimate in estimates.items():
        found, (name, label) = None, ("p_value", "goodness of fit")
        if estimate.sample is not None:
            with suppress(ValueError):  # a family of rows or labels
                found = estimate.goodness()
        p, sign, by = float("nan"), "=", ""
        if found is not None and not np.isnan(found.p_pearson):
            p, by = found.p_pearson, f"Pearson X² = {found.pearson:.4g}, df = {found.df}"
        elif found is not None and not np.isnan(found.ks):
            name, sign, by = "p_value_bound", "≤", f"Kolmogorov–Smirnov D = {found.ks:.4g}"
            p = float(kstwo.sf(found.ks, max(round(estimate.n), 1)))
        level = judge_chance(p)
        text = "not tested: these data allow no test of the family"
        if level != FitLevel.FACT:
            says = "rejected" if level == FitLevel.POOR else level.value
            text = f"p {sign} {p:.2g}" if p >= 1e-300 else "p < 1e-300"
            text += f": the {estimate.family.name} family is {says} ({by})"
        if len(estimates) > 1:
            name, label = f"{name} {column}", f"{label}, {column}"
        measures.append(Quality(name, label, p, text, level, MEANING))
    return measures


def _count_classes(estimate: Any, sample: Sample) -> tuple[tuple[Array, Array, Array, Array] | None, str]:
    """Classes with observed and expected counts: those of binned data, or the values of counts."""
    if sample.edges is not None:
        edges, counts = sample.edges, sample.weight
    elif estimate.family.discrete and sample.exact.all():
        seen = sample.observed()
        values = np.arange(seen.lower.min(), seen.lower.max() + 1.0)
        if len(values) > 100_000:
            return None, "the values spread over more than 100,000 classes: bin them"
        edges = np.append(values - 1.0, values[-1])
        counts = np.bincount((seen.lower - values[0]).astype(int), seen.weight, len(values)).astype(np.float64)
    else:
        edges, counts = None, None
        if sample.points().exact.all() and not any(p.kind == "angle" for p in estimate.family.parameters):
            edges, counts = _divide_values(sample)
        if edges is None or counts is None:
            kind = "angles have no first class" if sample.exact.all() else "censored records overlap"
            return None, f"deviance and X² are refused: {kind}; bin the data to have them"
    if len(sample.left) > 1:
        return None, "deviance and X² are refused: each record has its own truncation"
    # classes over all that could be seen: what the edges leave out is a class with nothing in it
    family, theta = estimate.family, estimate.values
    low, high = float(sample.left[0]), float(sample.right[0])
    low = float(np.ceil(low) - 1.0) if family.discrete else low
    limits, observed = np.asarray(edges, dtype=np.float64), np.asarray(counts, dtype=np.float64)
    if limits[0] > max(low, -INF) and not family.low - family.discrete >= limits[0]:
        limits, observed = np.insert(limits, 0, low), np.insert(observed, 0, 0.0)
    if limits[-1] < min(high, INF) and not limits[-1] >= family.high:
        limits, observed = np.append(limits, high), np.append(observed, 0.0)
    a, b = np.maximum(limits[:-1], low), np.minimum(limits[1:], high)
    keep = a < b
    a, b, observed = a[keep], b[keep], observed[keep]
    log_window = family.log_interval(np.array([low]), np.array([high]), theta)[0] if sample.truncated else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return (a, b, observed, np.exp(family.log_interval(a, b, theta) - log_window) * sample.total), ""


def _divide_values(sample: Sample) -> tuple[Array, Array]:
    """About 2n^(2/5) classes of equally many values, as Mann and Wald advise, open at both ends."""
    seen = sample.points().observed().merge_equal()
    order = np.argsort(seen.lower, kind="stable")
    x, below = seen.lower[order], np.cumsum(seen.weight[order])
    classes = int(np.clip(2.0 * below[-1] ** 0.4, 2, max(2.0, below[-1] / 5.0)))
    last = np.unique(np.searchsorted(below, below[-1] * np.arange(1, classes) / classes))
    last = last[last < len(x) - 1]  # of the values in each class but the last, the largest
    edges = x[last] + 0.5 * (sample.rounding or np.diff(x)[last])
    counts = np.diff(np.concatenate([[0.0], below[last], below[-1:]]))
    return np.concatenate([[-INF], edges, [INF]]), counts


def _pool_classes(
    a: Array, b: Array, observed: Array, expected: Array, least: float
) -> tuple[Array, Array, Array, Array]:
    """Neighbours joined from the left until each class expects at least so many; a rest joins the last."""
    groups, pooled, start = [], 0.0, 0
    for i, e in enumerate(expected):
        pooled += float(e)
        if pooled >= least:
            groups.append((start, i + 1))
            start, pooled = i + 1, 0.0
    if start < len(expected):
        groups = [*groups[:-1], (groups[-1][0] if groups else 0, len(expected))]
    sums = [[float(v[i:j].sum()) for i, j in groups] for v in (observed, expected)]
    first, last = np.array([i for i, _ in groups]), np.array([j - 1 for _, j in groups])
    return a[first], b[last], np.array(sums[0]), np.array(sums[1])


def _measure_distances(
    estimate: Any, sample: Sample, own: bool, bootstrap: int, random_state: Any
) -> tuple[Array, Array, str]:
    """D, A² and W²; the chance of larger ones; and why some of these are refused."""
    nan, why = np.full(3, np.nan), ""
    if estimate.family.discrete:
        why = "its distribution is that of continuous variables only"
    elif not sample.plain:
        why = "it needs every value exactly, without classes, censoring or truncation"
    elif np.any(sample.weight != np.floor(sample.weight)):
        why = "weights that are no whole numbers do not count observations"
    elif any(parameter.kind == "angle" for parameter in estimate.family.parameters):
        why = "on a circle it depends on where the circle is cut"
    if why:
        return nan, nan, f"Kolmogorov–Smirnov is refused: {why}"
    found, n = _distances(estimate, sample), round(sample.total)
    if not own and not bootstrap:  # A² has no law in scipy, and W² only of values that are not weighted
        text = "p-values of Anderson–Darling and Cramér–von Mises are refused: use bootstrap=999"
        return found, np.array([float(kstwo.sf(found[0], n)), np.nan, np.nan]), text
    if not bootstrap:
        text = (
            "the p-value of Kolmogorov–Smirnov is refused: the parameters were estimated from the same values, which "
        )
        return found, nan, text + "makes D smaller; use bootstrap=999, or data that had no part in the fit"
    # the share of samples, drawn from the fit and, where the sample was, fitted themselves, that are as far away
    rng, larger = np.random.default_rng(random_state), np.zeros(3)
    for _ in range(int(bootstrap)):
        drawn = as_sample(estimate.draw(n, rng))
        twin = estimate.refit(drawn) if own else estimate
        larger += _distances(twin, twin.sample if own else drawn) >= found
    p = (1.0 + larger) / (1.0 + bootstrap)
    if not own:
        p[0] = float(kstwo.sf(found[0], n))
    return found, p, ""


def _distances(estimate: Any, sample: Sample) -> Array:
    """D, A² and W² of values that may be there several times: sums over their ranks in closed form."""
    seen = sample.observed()
    order = np.argsort(seen.lower, kind="stable")
    x, after = seen.lower[order], np.cumsum(seen.weight[order])
    n, before = after[-1], np.append(0.0, after[:-1])
    F = np.asarray(estimate.cdf(x))
    D = max(np.max(after / n - F), np.max(F - before / n))
    ends, theta = np.full(len(x), INF), estimate.values
    with np.errstate(divide="ignore"):
        below = estimate.family.log_interval(-ends, x, theta)
        above = estimate.family.log_interval(x, ends, theta)
    A2 = -n - float(np.sum((after**2 - before**2) * below + ((n - before) ** 2 - (n - after) ** 2) * above)) / n
    ranks = (after * (4 * after**2 - 1) - before * (4 * before**2 - 1)) / 3
    W2 = 1 / (12 * n) + float(np.sum((after - before) * F**2 - F * (after**2 - before**2) / n + ranks / (4 * n**2)))
    return np.array([D, A2, W2])
