"""People and SNPs that stand out: far from all others, moved by selection, or in regions of long-range linkage."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import convolve1d
from scipy.stats import chi2, norm
from sklearn.base import clone
from sklearn.neighbors import NearestNeighbors

from gramian.compute.devices import to_numpy
from gramian.genetics.genotypes import count_alleles, standardise
from gramian.genetics.long_range import Region, RegionWarning
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.pruning import chromosome_runs, clump
from gramian.genetics.quality import TableFile
from gramian.inputs.checks import check_choice
from gramian.inputs.progress import Progress
from gramian.sources.plink import Genotypes, Snps

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

NEIGHBOURS = 5  # the nearest, by whose mean distance people stand out


@dataclass(frozen=True, eq=False)
class Outliers(TableFile):
    """People who were left out, round by round.

    Attributes
    ----------
    source : Genotypes
        Everybody.
    kept : ndarray of bool
        Who is left.
    rounds, rows, components, values
        Of everybody left out: the round from 1, the row of ``source.samples``, the component from 1 that condemned
        them (0 where all did together), and by how much.
    model : GenotypePCA
        Fitted to those who are left.
    """

    source: Genotypes
    kept: Mask
    rounds: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    components: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    model: GenotypePCA

    def table(self) -> dict[str, Any]:
        """Return FID, IID, round, component and value, ready for ``pandas.DataFrame``."""
        samples = self.source.samples
        found = {"FID": samples.fid[self.rows], "IID": samples.iid[self.rows], "round": self.rounds}
        return {**found, "component": self.components, "value": self.values}


def find_outliers(
    source: Genotypes,
    pca: GenotypePCA | None = None,
    *,
    rule: str = "deviations",
    sigma: float = 6.0,
    alpha: float = 0.05,
    max_rounds: int = 5,
) -> Outliers:
    r"""Leave out people far from all others, and find the components again, until nobody is.

    Parameters
    ----------
    source : Genotypes
        People and SNPs.
    pca : GenotypePCA, optional
        Settings of the fits; 10 components by default.
    rule : {"deviations", "neighbours"}, default="deviations"
        smartpca's rule: more than ``sigma`` standard deviations (divided by n, not n − 1) from the mean of a component.
        Or the logarithm of the mean distance to the 5 nearest neighbours in all components, against the skew-adjusted
        fence of :func:`~gramian.genetics.outliers.upper_fence`, which outliers do not move.
    sigma : float, default=6
        For the first rule.
    alpha : float, default=0.05
        Of the fence of the second.
    max_rounds : int, default=5
        Fits after which it ends.

    Returns
    -------
    Outliers
        Who is left, who is not and why, and the model of those left.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import GenotypePCA, find_outliers
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(0.2, 0.8, (3000, 1))
    >>> calls = rng.binomial(2, np.hstack([np.repeat(f, 99, axis=1), rng.permutation(f)]))
    >>> find_outliers(Genotypes.from_calls(calls), GenotypePCA(4)).table()["IID"].tolist()
    ['s100']
    """
    check_choice("rule", rule, ("deviations", "neighbours"))
    if not sigma > 0 or not 0 < alpha < 1 or max_rounds < 0:
        raise ValueError(
            f"sigma={sigma!r}, alpha={alpha!r} or max_rounds={max_rounds!r} is no positive number, or no α."
        )
    pca = GenotypePCA() if pca is None else pca
    kept = np.ones(source.shape[0], np.bool_)
    found: list[tuple[int, int, int, float]] = []
    model = clone(pca).fit(source)
    for number in range(1, max_rounds + 1):
        rows = np.flatnonzero(kept)
        far, component, value = far_people(model, rule, sigma, alpha)
        if not far.any():
            break
        found += [(number, int(rows[i]), int(component[i]), float(value[i])) for i in np.flatnonzero(far)]
        kept[rows[far]] = False
        model = clone(pca).fit(source.select(samples=kept))
    columns = list(zip(*found, strict=True)) if found else [(), (), (), ()]
    rounds, at, components = (np.array(column, dtype=np.int64) for column in columns[:3])
    return Outliers(source, kept, rounds, at, components, np.array(columns[3], dtype=np.float64), model)


def far_people(
    model: GenotypePCA, rule: str = "deviations", sigma: float = 6.0, alpha: float = 0.05
) -> tuple[Mask, npt.NDArray[np.intp], Array]:
    """Who is far from all others, by a rule of :func:`find_outliers`; the component that says so, from 1; how far."""
    U = np.asarray(to_numpy(model.eigenvectors_), dtype=np.float64)
    if rule == "deviations":
        z = np.abs(U - U.mean(axis=0)) / U.std(axis=0)
        worst = z.argmax(axis=1)
        value = z[np.arange(len(z)), worst]
        return value > sigma, worst + 1, value
    scores = U * model.singular_values_
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(scores) - 1)).fit(scores)
    value = np.log(np.maximum(near.kneighbors()[0].mean(axis=1), np.finfo(np.float64).tiny))
    return value > upper_fence(value, alpha), np.zeros(len(value), np.intp), value


BISECTIONS = 60  # of an interval of length 2: to rounding


def medcouple(values: npt.ArrayLike) -> float:
    r"""Skewness between −1 and 1 that outliers do not change: the median of

    .. math:: h(x_i, x_j) = \frac{(x_i - m) - (m - x_j)}{x_i - x_j}

    over :math:`x_i \ge m \ge x_j`, m being the median. How many h are above a number is counted in n log n steps, so
    that it is found by bisection.

    Examples
    --------
    >>> from gramian.genetics.outliers import medcouple
    >>> round(medcouple([1, 2, 4, 8, 16]), 3), abs(round(medcouple([1, 2, 3, 4]), 3))
    (0.333, 0.0)
    """
    x = np.sort(np.asarray(values, dtype=np.float64))
    centred = x - np.median(x)
    up, down = centred[centred >= 0], np.sort(-centred[centred <= 0])
    ties = int(np.count_nonzero(centred == 0))
    wanted = (len(up) * len(down) + 1) // 2  # how many are at least the median
    # pairs of two ties are +1, 0 and −1 by their ranks; the count below takes all of them for less
    positive = ties * (ties - 1) // 2

    def count_above(h: float) -> int:
        found = int(np.searchsorted(down, up * (1 - h) / (1 + h), side="left").sum())
        return found + positive + (ties if h < 0 else 0)

    low, high = -1.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if count_above(middle) >= wanted else (low, middle)
    return (low + high) / 2


def upper_fence(values: npt.ArrayLike, alpha: float = 0.05) -> float:
    r"""Value above which one of m skewed values stands out of the others.

    The fence of the box plot for skewed distributions (Hubert and Vandervieren 2008) as bigutilsr's ``tukey_mc_up``,

    .. math:: Q_3 + c\,e^{b\,\mathrm{MC}} (Q_3 - Q_1),\qquad
        c = \frac{\Phi^{-1}((1-\alpha)^{1/m}) - \Phi^{-1}(0.75)}{\Phi^{-1}(0.75) - \Phi^{-1}(0.25)},

    MC being the medcouple and b = 3, or 4 where MC is negative; computed again of the values below it until it stays.
    With the quartiles and MC of a normal distribution, all of m values lie below it with probability 1 − α; with those
    of a sample they cross it more often (200 normal values in a quarter, 1,000 in a sixth of all samples).

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.outliers import upper_fence
    >>> x = np.append(np.random.default_rng(0).normal(size=500), 9.0)
    >>> int(np.sum(x > upper_fence(x)))
    1
    """
    x = np.asarray(values, dtype=np.float64)
    while True:
        q1, q3 = np.quantile(x, [0.25, 0.75])
        skew = medcouple(x)
        c = (norm.ppf((1 - alpha) ** (1 / len(x))) - norm.ppf(0.75)) / (norm.ppf(0.75) - norm.ppf(0.25))
        fence = float(q3 + c * np.exp((3 if skew >= 0 else 4) * skew) * (q3 - q1))
        inside = x[x <= fence]
        if len(inside) == len(x):
            return fence
        x = inside


def tau_location_and_scale(values: Array) -> tuple[Array, Array]:
    """The τ-estimates of location and scale of every column (Maronna and Zamar 2002), consistent for normal values."""
    middle = np.median(values, axis=0)
    first = np.median(np.abs(values - middle), axis=0)
    first = np.where(first > 0, first, 1.0)
    weights = np.maximum(0.0, 1 - ((values - middle) / (4.5 * first)) ** 2) ** 2
    location = (weights * values).sum(axis=0) / weights.sum(axis=0)
    squares = np.minimum(((values - location) / first) ** 2, 9.0)
    return location, first * np.sqrt(squares.mean(axis=0) / 0.924715)


def robust_distances(values: npt.ArrayLike, rounds: int = 2, beta: float = 0.9) -> Array:
    """Squared Mahalanobis distances of rows, by a centre and covariance that outliers do not pull at.

    The pairwise estimate of Gnanadesikan and Kettenring made positive by rotating to its eigenvectors, twice, as
    Maronna and Zamar (2002) do, with τ-scales, and reweighted by the rows within the β quantile.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.outliers import robust_distances
    >>> x = np.random.default_rng(0).normal(size=(2000, 2))
    >>> x[:100] += 20
    >>> bool(robust_distances(x)[:100].min() > 100 > 30 > robust_distances(x)[100:].max())
    True
    """
    x = np.asarray(values, dtype=np.float64)
    k, y = x.shape[1], x
    for _ in range(rounds):
        y = y / tau_location_and_scale(y)[1]
        U = np.eye(k)
        for i in range(k):
            for j in range(i):
                both = np.stack([y[:, i] + y[:, j], y[:, i] - y[:, j]], axis=1)
                plus, minus = tau_location_and_scale(both)[1] ** 2
                U[i, j] = U[j, i] = (plus - minus) / 4
        y = y @ np.linalg.eigh(U)[1]
    location, scale = tau_location_and_scale(y)
    first = (((y - location) / scale) ** 2).sum(axis=1)
    inside = x[first <= np.median(first) * chi2.ppf(beta, k) / chi2.ppf(0.5, k)]
    rest: Any = x - inside.mean(axis=0)
    return np.asarray((rest * np.linalg.solve(np.atleast_2d(np.cov(inside.T)), rest.T).T).sum(axis=1))


@dataclass(frozen=True, eq=False)
class SelectionScan(TableFile):
    """Statistics of SNPs, χ² distributed where nothing but drift moved them.

    Attributes
    ----------
    snps : Snps
        Those of the model.
    names : list of str
        PC1, PC2, … or ``all``: what each column is of.
    statistics, p_values : ndarray of shape (SNPs, columns)
        Before and after division by λ.
    inflation : ndarray of shape (columns,)
        λ_GC, the median statistic divided by the median of its distribution.
    degrees : int
        Degrees of freedom.
    """

    snps: Snps
    names: list[str]
    statistics: Array
    p_values: Array
    inflation: Array
    degrees: int

    def table(self) -> dict[str, Any]:
        """Return the SNPs with statistic and p-value of each column, ready for ``pandas.DataFrame``."""
        snps = self.snps
        found: dict[str, Any] = {"CHROM": snps.chromosome, "POS": snps.position, "ID": snps.id, "A1": snps.a1}
        for j, name in enumerate(self.names):
            found |= {f"{name}_CHISQ": self.statistics[:, j], f"{name}_P": self.p_values[:, j]}
        return found


def selection_scan(
    model: GenotypePCA, source: Genotypes | None = None, *, method: str = "galinsky", components: int | None = None
) -> SelectionScan:
    r"""Which SNPs differ along components by more than all others do.

    ``galinsky``: with loadings v of length 1 over M SNPs, :math:`M v_s^2` is χ² with one degree of freedom under drift,
    for each component (Galinsky et al. 2016). ``pcadapt``: z-scores of the regression of each SNP on all components,
    and their robust Mahalanobis distance, χ² with as many degrees as components (Luu et al. 2017). p-values are of the
    statistic divided by λ_GC for the second; the first is calibrated by itself, and its λ_GC is told.

    Parameters
    ----------
    model : GenotypePCA
        Fitted.
    source : Genotypes, optional
        The genotypes of the fit, which ``pcadapt`` needs for their variance.
    method : {"galinsky", "pcadapt"}, default="galinsky"
        Which.
    components : int, optional
        The first so many; by default those that stand out of the noise.

    Returns
    -------
    SelectionScan
        Of the SNPs of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import GenotypePCA, selection_scan
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(0.2, 0.8, (2000, 1))
    >>> p = np.clip(np.hstack([f, f + rng.normal(0, 0.05, f.shape)]), 0.01, 0.99)
    >>> p[7] = 0.05, 0.95
    >>> G = Genotypes.from_calls(rng.binomial(2, np.repeat(p, 100, axis=1)))
    >>> scan = selection_scan(GenotypePCA(2).fit(G), components=1)
    >>> int(scan.p_values[:, 0].argmin())
    7
    """
    check_choice("method", method, ("galinsky", "pcadapt"))
    most = len(model.components_)
    k = min(model.n_separated_, most) if components is None else components
    if not 1 <= k <= most:
        raise ValueError(
            f"components={components!r}: {most} were computed, and {model.n_separated_} stand out of the noise."
        )
    V = to_numpy(model.components_)[:k].T.astype(np.float64)
    if method == "galinsky":
        statistics, degrees, names = len(V) * V**2, 1, [f"PC{j + 1}" for j in range(k)]
    else:
        if source is None:
            raise ValueError("method='pcadapt' needs the genotypes of the fit: source=.")
        if source.shape != (model.n_samples_, model.n_features_in_):
            raise ValueError(
                f"The model was fitted to {model.n_samples_} samples × {model.n_features_in_} SNPs; source has "
                f"{source.shape[0]} × {source.shape[1]}."
            )
        b = V * np.asarray(model.singular_values_, dtype=np.float64)[:k]
        squares = standardise(source.select(snps=model.snp_mask_).snp_counts(), model.scaling).squares
        rest = np.maximum(squares - (b**2).sum(axis=1), np.finfo(np.float64).tiny) / (model.n_samples_ - k - 1)
        statistics, degrees, names = robust_distances(b / np.sqrt(rest)[:, None])[:, None], k, ["all"]
    inflation = np.median(statistics, axis=0) / chi2.ppf(0.5, degrees)
    scaled = statistics / inflation if method == "pcadapt" else statistics
    return SelectionScan(model.snps_, names, statistics, chi2.sf(scaled, degrees), inflation, degrees)


RADIUS = 50  # SNPs on either side over which distances are averaged
LEAST_RUN = 20  # SNPs of a region


@dataclass(frozen=True, eq=False)
class LdRegions(TableFile):
    """Regions that the data show, and the SNPs that are left without them.

    Attributes
    ----------
    kept : ndarray of bool
        SNPs of the source that are left: clumped, and outside the regions.
    regions : list of Region
        Found, in the order of the rounds.
    rounds, counts : list of int
        The round from 1 in which each was found, and the SNPs in it.
    converged : bool
        Whether the last round found none.
    model : GenotypePCA
        Of the SNPs that are left.
    """

    kept: Mask
    regions: list[Region]
    rounds: list[int]
    counts: list[int]
    converged: bool
    model: GenotypePCA

    def table(self) -> dict[str, Any]:
        """Return chromosome, start, end, round and SNPs, ready for ``pandas.DataFrame`` and ``Filters``."""
        chromosome, start, end = zip(*self.regions, strict=True) if self.regions else ((), (), ())
        found = {"chromosome": list(chromosome), "start": list(start), "end": list(end)}
        return {**found, "round": self.rounds, "snps": self.counts}


def smooth_along(values: Array, runs: list[tuple[str, int, int]], radius: int = RADIUS) -> Array:
    """Gaussian averages over so many SNPs on either side, within each chromosome."""
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / (radius / 2)) ** 2)
    found = np.empty_like(values)
    for _, start, stop in runs:
        part, ones = values[start:stop], np.ones(stop - start)
        sums, counts = (convolve1d(each, weights, mode="constant") for each in (part, ones))
        found[start:stop] = sums / counts
    return found


def far_snps(model: GenotypePCA, alpha: float = 0.05) -> tuple[Mask, list[tuple[Region, int]]]:
    """SNPs of a model whose loadings stand out along the genome, and the regions that 20 of them make, with SNPs."""
    distance = np.sqrt(robust_distances(np.asarray(to_numpy(model.components_), dtype=np.float64).T))
    runs, place = chromosome_runs(model.snps_), model.snps_.position
    smooth = smooth_along(distance, runs)
    far = smooth > upper_fence(smooth, alpha)
    regions = []
    for name, start, stop in runs:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], far[start:stop], [False]]).astype(np.int8)))
        for first, last in edges.reshape(-1, 2) + start:
            if last - first >= LEAST_RUN:
                regions.append((Region(name, int(place[first]), int(place[last - 1])), int(last - first)))
    return far, regions


def find_ld_regions(
    source: Genotypes,
    pca: GenotypePCA | None = None,
    *,
    kb: float = 500.0,
    r2: float = 0.2,
    least_count: int = 10,
    least_frequency: float = 0.02,
    alpha: float = 0.05,
    max_rounds: int = 5,
    progress: Progress | None = None,
) -> LdRegions:
    """Clump, then find components and leave out the regions whose SNPs stand out, until there are none.

    The recipe of bigsnpr's ``bed_autoSVD``: SNPs with at least 10 copies of the minor allele and a frequency of 0.02,
    clumped; components; the robust distance of each SNP's loadings from all others, smoothed along the chromosome;
    SNPs above the skew-adjusted fence (:func:`~gramian.genetics.outliers.upper_fence`) are left out. Runs of 20 of them
    are regions.

    Parameters
    ----------
    source : Genotypes
        People and SNPs, with sorted positions.
    pca : GenotypePCA, optional
        Settings of the fits; 10 components by default.
    kb, r2 : float
        Of :func:`~gramian.genetics.clump`.
    least_count, least_frequency
        Of the minor allele.
    alpha : float, default=0.05
        Of the fence.
    max_rounds : int, default=5
        Fits after which it ends.
    progress : callable, optional
        Told of the clumping.

    Returns
    -------
    LdRegions
        The regions as a table, and the SNPs that are left.
    """
    pca = GenotypePCA() if pca is None else pca
    a1, alleles = count_alleles(source)
    minor = np.minimum(a1, alleles - a1)
    common = np.flatnonzero((minor >= least_count) & (minor >= least_frequency * alleles) & (alleles > 0))
    kept = common[clump(source.select(snps=common), kb, r2, progress=progress).kept]
    regions: list[Region] = []
    rounds: list[int] = []
    sizes: list[int] = []
    converged = False

    def fit(chosen: npt.NDArray[np.intp]) -> GenotypePCA:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RegionWarning)  # they are being looked for
            fitted: GenotypePCA = clone(pca).fit(source.select(snps=chosen))
        return fitted

    model = fit(kept)
    for number in range(1, max_rounds + 1):
        kept = kept[model.snp_mask_]
        far, found = far_snps(model, alpha)
        converged = not far.any()
        if converged:
            break
        regions += [region for region, _ in found]
        sizes += [size for _, size in found]
        rounds += [number] * len(found)
        kept = kept[~far]
        model = fit(kept)
    mask = np.zeros(source.shape[1], np.bool_)
    mask[kept] = True
    return LdRegions(mask, regions, rounds, sizes, converged, model)
