"""What the noise beyond the components is like: which rules for their number may be believed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from gramian.inputs.checks import check_seed
from gramian.pca.problem import PCAFit
from gramian.pca.rank import (
    CentredRows,
    DeflatedAnalysis,
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
