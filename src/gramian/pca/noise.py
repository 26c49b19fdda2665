"""What the noise beyond the components is like: which rules for their number may be believed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, chdtri

from gramian.inputs.checks import check_seed
from gramian.pca.problem import PCAFit
from gramian.pca.rank import (
    CentredRows,
    DeflatedAnalysis,
    RankChoice,
    count_by_deflation,
    deflated_analysis,
    max_rank,
    pluralize,
    tracy_widom_rank,
)
from gramian.sources import Source

Array = npt.NDArray[np.float64]

UNEQUAL = 2.0  # ratio of the largest noise variance to the smallest that is worth a note
SURE = 1e-3  # and the probability below which chance does not make it
ALONE = 0.05  # columns with 1 − h below this hold too little noise to judge by
ROUNDING = 1e-12  # a variance below this share of the largest is rounding: a column without noise
JUDGED = 6  # dimensions that must be left to judge the noise by
EXCESS, FAR = 1.03, 6.0  # of tr S²/(tr S)² over draws, and its distance in deviations: of AR 0.3 at least 1.05 and 8
ORDER, CORRELATION = 6.0, 0.02  # deviations of the mean correlation of neighbours, of AR 0.3 at least 8; and its size
SHUFFLES = 60  # of the order
RUN = 1200  # neighbours looked at, from the middle
HEAVY, HEAVY_FAR = 4.0, 5.0  # kurtosis of cells (3 if normal), and its distance in standard errors
LENGTH = 4  # rows that runs must have on average, not to be wiggles of a smooth series
LEANING = 0.1  # of the way to the mean of the next run that its last row may go: half of it where the way is straight
CLIMB = 2.5  # deviations of the slope of runs towards the next
SEARCHED, BACK = 20_000, 1_000  # rows in which runs are looked for, and how far back the start of one may lie
STEPS = 5  # of concentration on the differences between rows of one run
PER_COLUMN = 3  # rows beyond the runs, for every column, to know their noise by
CHANCE = 0.01  # level of the test of directions, as of sign-flip


@dataclass(frozen=True, eq=False)
class NoiseDiagnosis:
    """What was found beyond the components, by tests that each allow for what the others look for.

    Attributes
    ----------
    n_components : int
        Components that were taken out: those of sign-flip parallel analysis, or of Tracy and Widom's test where what it
        leaves is white and what the flips leave is not.
    unequal : (float, float, float) or None
        What :func:`unequal_noise` says.
    kurtosis : float or None
        Of the cells of the residual, 3 where normal; None where the rows were not looked at.
    heavy_tails : bool
        Whether it is clearly more.
    columns, rows : float or None
        Mean correlation of neighbouring columns and rows, where that is clearly not chance; None elsewhere.
    excess : float
        tr S²/(tr S)² of the residual over that of noise without correlations (1 where there are none); of one variance
        in every column where this is so, that is the fit of its bulk to the law of Marchenko and Pastur.
    correlated : bool
        Whether columns or rows of the noise are correlated: by their neighbours, or by the excess.
    judged : bool
        Whether enough dimensions are left to say so.
    whitened : int or None
        Components found where every column is divided by the standard deviation of its noise; where that is unequal.
    flips : DeflatedAnalysis
        The analysis that took the components out.
    runs : RankChoice or None
        Where the order of the rows is that of groups, how many directions tell these apart (:func:`compare_runs`).
    """

    n_components: int
    unequal: tuple[float, float, float] | None
    kurtosis: float | None
    heavy_tails: bool
    columns: float | None
    rows: float | None
    excess: float
    correlated: bool
    judged: bool
    whitened: int | None
    flips: DeflatedAnalysis
    runs: RankChoice | None = None

    @property
    def white(self) -> bool:
        """Whether nothing speaks against independent normal noise of one variance."""
        return self.judged and self.unequal is None and not self.heavy_tails and not self.correlated

    @property
    def ordered(self) -> bool:
        """Whether neighbouring columns or rows are correlated."""
        return self.columns is not None or self.rows is not None

    def describe(self) -> str:
        """Say in a sentence what the noise is like."""
        if self.runs is not None:
            return "Rows within a run are independent of each other: what varies between the runs is no noise."
        beyond = f"Beyond {pluralize(self.n_components)}" if self.n_components else "In all of the variance"
        if not self.judged:
            return f"{beyond} too few dimensions are left to judge the noise by."
        found = []
        if self.columns is not None:
            found.append(f"neighbouring columns are correlated ({self.columns:.2g} on average)")
        if self.rows is not None:
            found.append(f"neighbouring rows are correlated ({self.rows:.2g} on average)")
        if self.correlated and not found:
            found.append(
                "columns are correlated, with no order to it (the squares of the eigenvalues sum to "
                f"{self.excess:.3g} times what independent columns give)"
            )
        if self.unequal is not None:
            found.append(f"columns have unlike variances (largest over smallest {self.unequal[0]:.3g})")
        if self.heavy_tails and self.kurtosis is not None:
            found.append(f"tails are heavy (kurtosis {self.kurtosis:.3g}, where normal noise has 3)")
        if not found:
            return f"{beyond} the noise looks white: one variance, no correlations, no heavy tails."
        said = found[0] if len(found) == 1 else ", ".join(found[:-1]) + " and " + found[-1]
        return f"{beyond} {said}."


def diagnose_noise(whole: PCAFit, source: Source, sample_weight: Any = None, seed: Any = None) -> NoiseDiagnosis:
    r"""Take out what sign-flip parallel analysis finds, and look at what is left.

    Unlike columns and heavy tails do not move the excess, which compares with draws of the residual itself, its signs
    flipped; where columns are unlike, each is divided by the standard deviation of its noise and the analysis made once
    more, since a leading direction of such noise is no even sample of it. The order of columns and rows is judged by
    shuffling it: components may correlate columns as they like, but have no reason to do so with neighbours.

    Parameters
    ----------
    whole : PCAFit
        All components.
    source : Source
        The data. Where they are not in memory, normal draws take the place of flipped signs, and rows are not judged.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    seed : int, RandomState, Generator or None
        Of the draws.

    Returns
    -------
    NoiseDiagnosis
        What was found.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.pca.rank import fit_whole
    >>> from gramian.pca.noise import diagnose_noise
    >>> rng = np.random.default_rng(0)
    >>> e = rng.normal(size=(300, 41))
    >>> X = e[:, 1:] + e[:, :-1]
    >>> diagnose_noise(fit_whole(gramian.PCA(), gramian.open(X), None), gramian.open(X)).correlated
    True
    """
    number, p = check_seed(seed), len(whole.mean)
    try:
        flips = deflated_analysis(whole, source, sample_weight=sample_weight, random_state=number)
        rows = None
        if flips.values[0] > 0:
            rows = CentredRows.of(whole, source, sample_weight, "sign-flip", "signs", "flips signs")
    except ValueError:  # not in memory, or weights that are no counts
        flips, rows = deflated_analysis(whole, source, null="normal", random_state=number), None
    k = flips.n_components
    found = _judge(whole, rows, k, flips, number)
    # few columns leave little to judge by anyway; many components, none: groups may be in all of them
    used_up = not found.judged and k >= JUDGED
    if rows is not None and sample_weight is None and found.columns is None and (found.correlated or used_up):
        runs = compare_runs(rows.X, number)
        if runs is not None:
            return replace(found, rows=None, correlated=False, runs=runs)
    if not found.correlated:
        return found
    # components that share much the same variance hide each other from the flips, but not from the test for white noise
    more = tracy_widom_rank(whole.variances, whole.weight, p).n_components
    if rows is None or more <= k or max_rank(whole.weight, p) - more < JUDGED:
        return found

    def null(count: int) -> Any:
        return rows.null(count, "signs")

    beyond = count_by_deflation(rows.variances, rows.freedom, p, null, number, "signs", start=more)
    other = _judge(whole, rows, more, beyond, number)
    return replace(other, flips=flips) if beyond.n_components == more and other.white else found


def _judge(whole: PCAFit, rows: CentredRows | None, k: int, flips: DeflatedAnalysis, number: int) -> NoiseDiagnosis:
    """What is left of k components, of which ``flips`` are draws."""
    p = len(whole.mean)
    left, unequal = max_rank(whole.weight, p) - k, unequal_noise(whole, k)
    excess, deviations, whitened = flips.excess, flips.deviations, None
    along = across = kurtosis = None
    heavy = False
    if rows is not None and left >= 1:
        R, fitted = rows.residual(k), rows.bases(k)
        scale = np.sqrt(np.mean(R**2, axis=0))
        varying = scale > math.sqrt(ROUNDING) * scale.max(initial=0.0)
        if unequal is not None and np.count_nonzero(varying) > 1:
            even = CentredRows.decompose(rows.X[:, varying] / scale[varying])

            def null(count: int) -> Any:
                return even.null(count, "signs")

            q = even.X.shape[1]
            again = count_by_deflation(even.variances, even.freedom, q, null, number, "signs")
            excess, deviations, whitened = again.excess, again.deviations, again.n_components
            R, left = even.residual(whitened), min(left, even.size - whitened)
            fitted = even.bases(whitened)
            scale = np.sqrt(np.mean(R**2, axis=0))
            varying = scale > math.sqrt(ROUNDING) * scale.max(initial=0.0)
        R = R[:, varying] / scale[varying]
        if R.size and left >= JUDGED:
            kurtosis = float(np.mean(R**4))
            heavy = kurtosis > HEAVY and kurtosis - 3 > HEAVY_FAR * math.sqrt(24 / R.size)
            rng = np.random.default_rng(number)
            along = correlate_neighbours(R.T, rng, fitted[1][varying])
            across = correlate_neighbours(R, rng, fitted[0])
    elif unequal is None and left >= JUDGED:  # of a file: the covariance is at hand, its rows are not
        free = np.maximum(1 - np.sum(whole.components[:k] ** 2, axis=0), ALONE)
        run = slice(max(0, p // 2 - RUN // 2), p // 2 + (RUN + 1) // 2)
        part = np.sqrt(whole.variances[k:])[:, None] * whole.components[k:, run] / np.sqrt(free[run])
        along = correlate_neighbours(part.T, np.random.default_rng(number), whole.components[:k, run].T)
    judged = left >= JUDGED
    apart = excess > EXCESS and deviations > FAR and (rows is not None or unequal is None)
    correlated = judged and (along is not None or across is not None or apart)
    return NoiseDiagnosis(k, unequal, kurtosis, heavy, along, across, excess, correlated, judged, whitened, flips)


def correlate_neighbours(R: Array, rng: np.random.Generator, fitted: Array | None = None) -> float | None:
    """Mean correlation of rows of R with the next, or the next but one; None where a shuffled order has as much.

    Independent rows are correlated once components are taken out: by −u_i·u_j, where u_i is what row i has of the
    orthonormal columns of ``fitted``. Rows in the order of their groups have much the same u; this much is no order.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.noise import correlate_neighbours
    >>> rng = np.random.default_rng(0)
    >>> steps = rng.normal(size=(200, 30))
    >>> correlate_neighbours(steps, rng) is None
    True
    >>> round(correlate_neighbours(steps[1:] + steps[:-1], rng), 1)
    0.5
    """
    start = max(0, len(R) // 2 - RUN // 2)
    run = slice(start, start + RUN)
    R = R[run] if len(R) > RUN else R
    lengths = np.linalg.norm(R, axis=1)
    U = np.zeros((len(R), 0)) if fitted is None else fitted if len(fitted) == len(R) else fitted[run]
    R, U = R[lengths > 0] / lengths[lengths > 0][:, None], U[lengths > 0]
    n = len(R)
    if n < 4:
        return None
    free = np.sqrt(np.maximum(1.0 - np.sum(U**2, axis=1), ALONE))
    C = R @ R.T + (U / free[:, None]) @ (U / free[:, None]).T

    def measure(order: npt.NDArray[np.intp]) -> Array:
        return np.array([np.mean(C[order[:-lag], order[lag:]]) for lag in (1, 2)])

    observed = measure(np.arange(n))
    shuffled = np.array([measure(rng.permutation(n)) for _ in range(SHUFFLES)])
    excess, spread = observed - shuffled.mean(axis=0), shuffled.std(axis=0, ddof=1)
    clear = (np.abs(excess) > ORDER * spread) & (np.abs(excess) > CORRELATION)
    return float(excess[np.argmax(clear)]) if clear.any() else None


def unequal_noise(whole: PCAFit, k: int) -> tuple[float, float, float] | None:
    r"""Ratio of the largest to the smallest noise variance of the columns, and a p-value; None where they may be equal.

    With k components taken out, column j has noise of variance :math:`s_j^2=\sum_{l>k}\lambda_l v_{jl}^2/(1-h_j)`, and

    .. math:: \nu\Bigl[p\ln\overline{s^2}-\sum_j\ln s_j^2\Bigr]\Big/\Bigl(1+\frac{p+1}{3p\nu}\Bigr)\sim\chi^2_{p-1}

    with ν = n − 1 − k where the noise is equal (M. Bartlett, Proc. R. Soc. A 160, 268, 1937). The third number is the
    ratio that is left when columns are divided by their standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA, open
    >>> from gramian.pca.rank import fit_whole
    >>> from gramian.pca.noise import unequal_noise
    >>> X = np.random.default_rng(0).standard_normal((100, 4))
    >>> unequal_noise(fit_whole(PCA(), open(X), None), 0) is None
    True
    >>> unequal_noise(fit_whole(PCA(), open(X * [1, 1, 1, 5]), None), 0)[0] > 10
    True
    """
    free = 1 - np.sum(whole.components[:k] ** 2, axis=0)
    left = whole.variances[k:] @ whole.components[k:] ** 2
    judged = (free > ALONE) & (left > ROUNDING * np.max(whole.column_variances, initial=0.0))
    s = left[judged] / free[judged]
    freedom, p = whole.weight - 1 - k, len(s)
    if p < 2 or freedom < 1 or s.max() < UNEQUAL * s.min():
        return None
    statistic = freedom * (p * np.log(s.mean()) - np.log(s).sum()) / (1 + (p + 1) / (3 * p * freedom))
    chance = float(chdtrc(p - 1, statistic))
    relative = s / whole.column_variances[judged]
    return (float(s.max() / s.min()), chance, float(relative.max() / relative.min())) if chance < SURE else None


def find_runs(X: Array, seed: int = 0) -> npt.NDArray[np.intp] | None:
    r"""Number the runs of like rows; None where the rows are in no order, or in another than that of groups.

    Differences of neighbours know the noise within a run: their covariance is that of the half of them that lies
    closest together. In units in which it is the identity the runs are those of least

    .. math:: \sum_g\sum_{i\in g}\|z_i-\bar z_g\|^2+G\,p\ln n

    found by dynamic programming (R. Killick, P. Fearnhead and I. Eckley, J. Am. Stat. Assoc. 107, 1590, 2012). They
    explain the order if neighbours within them are as independent as rows in a shuffled order, and rows at their ends
    are a clear step away from the next run; those of a smooth series lean towards it, wherever that is cut.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.noise import find_runs
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(3 * rng.normal(size=(5, 4)), 20, axis=0) + rng.normal(size=(100, 4))
    >>> np.bincount(find_runs(X)).tolist()
    [20, 20, 20, 20, 20]
    >>> find_runs(np.cumsum(rng.normal(size=(100, 4)), axis=0)) is None
    True
    """
    n, p = X.shape
    rng = np.random.default_rng(seed)
    scale = X.std(axis=0)
    if n > SEARCHED or n < (PER_COLUMN + 1) * p or not scale.all() or correlate_neighbours(X / scale, rng) is None:
        return None
    X = X / scale
    D = np.diff(X, axis=0) / math.sqrt(2.0)
    near = np.argsort(np.sum((D / np.maximum(np.median(np.abs(D), axis=0), 1e-9)) ** 2, axis=1))
    white, far = np.eye(p), np.sum(D**2, axis=1)
    for _ in range(STEPS):
        half = D[near[: (len(D) + p + 1) // 2]]
        values, V = np.linalg.eigh(half.T @ half / len(half))
        if values[-1] <= ROUNDING:  # rows that stand there twice
            return None
        # what does not vary within runs varies by rounding
        white = V / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
        far = np.sum((D @ white) ** 2, axis=1)
        near = np.argsort(far)
    Z = X @ (white / math.sqrt(max(float(np.median(far)) / float(chdtri(p, 0.5)), 1e-300)))
    Z -= Z.mean(axis=0)

    penalty = p * math.log(n)
    sums, squares = np.zeros((n + 1, p)), np.zeros(n + 1)
    np.cumsum(Z, axis=0, out=sums[1:])
    np.cumsum(np.sum(Z**2, axis=1), out=squares[1:])
    least, before = np.zeros(n + 1), np.zeros(n + 1, dtype=np.intp)
    starts = np.zeros(1, dtype=np.intp)
    for t in range(1, n + 1):
        gap = sums[t] - sums[starts]
        cost = least[starts] + squares[t] - squares[starts] - np.einsum("ij,ij->i", gap, gap) / (t - starts)
        best = int(np.argmin(cost))
        least[t], before[t] = cost[best] + penalty, starts[best]
        starts = np.append(starts[cost <= least[t]][-BACK:], t)
    labels, t, number = np.empty(n, dtype=np.intp), n, 0
    while t > 0:
        labels[before[t] : t] = number
        t, number = int(before[t]), number + 1
    labels = number - 1 - labels
    if number < 2 or n < LENGTH * number or n - number < PER_COLUMN * p:
        return None
    lengths = np.bincount(labels)
    means = np.stack([np.bincount(labels, weights=column) / lengths for column in Z.T], axis=1)
    ends = np.flatnonzero(np.diff(labels))
    ends = ends[(lengths[labels[ends]] > 1) & (lengths[labels[ends + 1]] > 1)]
    leaning = []
    for edge, other in ((ends, ends + 1), (ends + 1, ends)):
        own, m = means[labels[edge]], lengths[labels[edge]][:, None]
        rest = own + (own - Z[edge]) / (m - 1)  # the mean of the run without this row
        way = means[labels[other]] - rest
        leaning.append(np.sum((Z[edge] - rest) * way, axis=1) / np.maximum(np.sum(way**2, axis=1), 1e-300))
    if not len(ends) or float(np.mean(leaning)) > LEANING:
        return None
    # steps between runs are more than the largest of those within them, and no run climbs towards the next
    steps = np.sum((Z[ends + 1] - Z[ends]) ** 2, axis=1) / 2
    onward = np.concatenate([means[1:], means[-1:]]) - np.concatenate([means[:1], means[:-1]])
    along = np.sum((Z - means[labels]) * onward[labels], axis=1)
    place = np.arange(n) - np.bincount(labels, weights=np.arange(n))[labels] / lengths[labels]
    climb, chance = float(place @ along), math.sqrt(float(place**2 @ along**2))
    if float(np.median(steps)) < chdtri(p, 0.25 * number / n) or climb > CLIMB * chance:
        return None
    run = slice(max(0, n // 2 - RUN // 2), n // 2 + (RUN + 1) // 2)
    here = labels[run] - labels[run][0]
    U = np.zeros((len(here), here[-1] + 1))
    U[np.arange(len(here)), here] = 1.0 / np.sqrt(lengths[labels[run]])
    return labels if correlate_neighbours((Z - means[labels])[run], rng, U) is None else None


def compare_runs(X: Array, seed: int = 0) -> RankChoice | None:
    r"""Count the directions in which the means of runs of like rows differ; None where there are no such runs.

    With θ the eigenvalues of :math:`W^{-1}B`, scatter within runs and between them, k directions are enough if

    .. math:: \Bigl(n-1-\frac{p+G}{2}\Bigr)\sum_{j>k}\ln(1+\theta_j)\sim\chi^2_{(p-k)(G-1-k)}

    is not significant at 1 % (M. Bartlett, J. R. Stat. Soc. Suppl. 9, 176, 1947). Noise within the runs may have any
    covariance, and no direction needs to be left for it.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.noise import compare_runs
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(3 * rng.normal(size=(12, 4)), 20, axis=0) + rng.normal(size=(240, 4))
    >>> print(compare_runs(X).reason)
    Rows lie in 12 runs of like rows, whose means differ in all 4 directions: none is left to noise alone.
    """
    labels = find_runs(X, seed)
    if labels is None:
        return None
    lengths = np.bincount(labels)
    n, p, g = len(X), X.shape[1], len(lengths)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    means = np.stack([np.bincount(labels, weights=column) / lengths for column in X.T], axis=1)
    R, M = X - means[labels], np.sqrt(lengths)[:, None] * means
    values, V = np.linalg.eigh(R.T @ R)
    white = V / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    theta = np.linalg.eigvalsh((M @ white).T @ (M @ white))[::-1][: min(p, g - 1)]
    k = np.arange(len(theta))
    statistics = (n - 1 - (p + g) / 2) * np.cumsum(np.log1p(np.maximum(theta, 0.0))[::-1])[::-1]
    thresholds = np.asarray(chdtri((p - k) * (g - 1 - k), CHANCE))
    found = int(np.argmin(np.append(statistics > thresholds, False)))
    thresholds[found + 1 :] = np.nan
    many = "all " if found == p else ""
    left = ": none is left to noise alone" if found == p else ", and in no more by a test at 1 %"
    reason = (
        f"Rows lie in {g} runs of like rows, whose means differ in {many}{found} direction{'s' * (found != 1)}{left}."
    )
    return RankChoice("runs", found, reason, statistics, thresholds)
