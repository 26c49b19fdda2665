"""Regions of long-range linkage disequilibrium as the data show them: SNPs whose loadings stand out of their smooth."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import convolve1d
from sklearn.base import clone

from gramian.genetics.long_range import Region, RegionWarning
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.pruning import chromosome_runs, clump
from gramian.genetics.quality import TableFile
from gramian.genetics.robust import robust_distances, upper_fence
from gramian.inputs.progress import Progress
from gramian.sources.plink import Genotypes

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

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
    SNPs above the skew-adjusted fence (:func:`~gramian.genetics.robust.upper_fence`) are left out. Runs of 20 of them
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
    counts = source.snp_counts()
    alleles = 2 * counts[:, :3].sum(axis=1)
    a1 = 2 * counts[:, 0] + counts[:, 1]
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
        distance = np.sqrt(robust_distances(np.asarray(model.components_, dtype=np.float64).T))
        runs = chromosome_runs(model.snps_)
        smooth = smooth_along(distance, runs)
        far = smooth > upper_fence(smooth, alpha)
        converged = not far.any()
        if converged:
            break
        for name, start, stop in runs:
            edges = np.flatnonzero(np.diff(np.concatenate([[False], far[start:stop], [False]]).astype(np.int8)))
            for first, last in edges.reshape(-1, 2) + start:
                if last - first >= LEAST_RUN:
                    place = model.snps_.position
                    regions.append(Region(name, int(place[first]), int(place[last - 1])))
                    rounds.append(number)
                    sizes.append(int(last - first))
        kept = kept[~far]
        model = fit(kept)
    mask = np.zeros(source.shape[1], np.bool_)
    mask[kept] = True
    return LdRegions(mask, regions, rounds, sizes, converged, model)
