"""Regions of long-range linkage disequilibrium: known ones by build of the genome, and those that carry a component."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.genetics.text import list_few
from gramian.inputs.values import check_choice
from gramian.sources.errors import Argument, SourceError
from gramian.sources.plink import Snps

BUILDS = ("hg18", "hg19", "hg38")

# chromosome, first and last position in each of the builds, and whether those of hg38 were published (else they are
# estimated from those of hg19). The regions are those of Price et al., Am. J. Hum. Genet. 83:132 (2008), and of
# Weale, Methods Mol. Biol. 628:341 (2010): inversions, centromeres, the HLA and regions under selection, in which SNPs
# megabases apart are correlated.
REGIONS: tuple[tuple[str, tuple[int, int], tuple[int, int], tuple[int, int], bool], ...] = (
    ("1", (48_000_000, 52_000_000), (48_227_413, 52_227_412), (47_761_740, 51_761_740), True),
    ("2", (86_000_000, 100_500_000), (86_146_489, 101_133_568), (85_919_365, 100_517_106), True),
    ("2", (134_500_000, 138_000_000), (134_783_530, 138_283_530), (134_025_960, 137_525_960), False),
    ("2", (183_000_000, 190_000_000), (183_291_755, 190_291_755), (182_427_027, 189_427_029), True),
    ("3", (47_500_000, 50_000_000), (47_524_996, 50_024_996), (47_483_505, 49_987_563), True),
    ("3", (83_500_000, 87_000_000), (83_417_310, 86_917_310), (83_368_158, 86_868_160), True),
    ("3", (89_000_000, 97_500_000), (88_917_310, 96_017_310), (88_868_160, 96_298_470), False),
    ("5", (44_500_000, 50_500_000), (44_464_243, 50_464_243), (44_464_140, 51_168_409), True),
    ("5", (98_000_000, 100_500_000), (97_972_100, 100_472_101), (98_636_400, 101_136_400), False),
    ("5", (129_000_000, 132_000_000), (128_972_101, 131_972_101), (129_636_407, 132_636_409), True),
    ("5", (135_500_000, 138_500_000), (135_472_101, 138_472_101), (136_136_400, 139_136_400), False),
    ("6", (25_500_000, 33_500_000), (25_392_021, 33_392_022), (25_391_792, 33_424_245), True),
    ("6", (57_000_000, 64_000_000), (56_892_041, 63_942_041), (57_027_000, 63_232_000), False),
    ("6", (140_000_000, 142_500_000), (139_958_307, 142_458_307), (139_637_169, 142_137_170), True),
    ("7", (55_000_000, 66_000_000), (55_032_506, 66_362_565), (54_964_812, 66_897_578), True),
    ("8", (8_000_000, 12_000_000), (7_962_590, 11_962_591), (8_105_067, 12_105_082), True),
    ("8", (43_000_000, 50_000_000), (42_880_843, 49_837_447), (43_025_699, 48_924_888), True),
    ("8", (112_000_000, 115_000_000), (111_930_824, 114_930_824), (110_918_594, 113_918_595), True),
    ("10", (37_000_000, 43_000_000), (36_959_994, 43_679_994), (36_671_065, 43_184_546), True),
    ("11", (46_000_000, 57_000_000), (46_043_424, 57_243_424), (46_021_870, 57_475_950), False),
    ("11", (87_500_000, 90_500_000), (87_860_352, 90_860_352), (88_127_183, 91_127_184), True),
    ("12", (33_000_000, 40_000_000), (33_108_733, 41_713_733), (32_955_798, 41_319_931), True),
    ("12", (109_500_000, 112_000_000), (111_015_617, 113_515_617), (110_577_810, 113_077_810), False),
    ("20", (32_000_000, 34_500_000), (32_536_339, 35_066_586), (33_948_532, 36_438_183), True),
)

# Common SNPs of genotyping arrays, by which a file's build is recognised: chromosome, and position in each build.
LANDMARKS = {
    "rs3094315": ("1", 742429, 752566, 817186),
    "rs3131972": ("1", 742584, 752721, 817341),
    "rs12562034": ("1", 758311, 768448, 833068),
    "rs4970383": ("1", 828418, 838555, 903175),
    "rs3748592": ("1", 870101, 880238, 944858),
    "rs3934834": ("1", 995669, 1005806, 1070426),
    "rs9442373": ("1", 1052501, 1062638, 1127258),
    "rs1801133": ("1", 11778965, 11856378, 11796321),
    "rs2476601": ("1", 114179091, 114377568, 113834946),
    "rs4988235": ("2", 136325116, 136608646, 135851076),
    "rs16891982": ("5", 33987450, 33951693, 33951588),
    "rs1042713": ("5", 148186633, 148206440, 148826877),
    "rs1799945": ("6", 26199158, 26091179, 26090951),
    "rs1800562": ("6", 26201120, 26093141, 26092913),
    "rs6983267": ("8", 128482487, 128413305, 127401060),
    "rs10757278": ("9", 22114477, 22124477, 22124478),
    "rs1333049": ("9", 22115503, 22125503, 22125504),
    "rs7903146": ("10", 114748339, 114758349, 112998590),
    "rs1815739": ("11", 66084671, 66328095, 66560624),
    "rs12913832": ("15", 26039213, 28365618, 28120472),
    "rs1426654": ("15", 46213776, 48426484, 48134287),
    "rs9939609": ("16", 52378028, 53820527, 53786615),
    "rs429358": ("19", 50103781, 45411941, 44908684),
    "rs7412": ("19", 50103919, 45412079, 44908822),
}
LEAST_LANDMARKS = 2

DENSE = 3.0  # times the mean of the squared loadings that those of a region have at least
SHARE = 0.3  # of a component's squared loadings in one region, from which it is named
EXCESS = 10.0  # times the region's share of the SNPs that it must be
LEAST_SNPS = 500  # with fewer, one SNP can carry a component by itself


class Region(NamedTuple):
    """Positions start to end of a chromosome, both included."""

    chromosome: str
    start: int
    end: int


def long_range_regions(build: str) -> list[Region]:
    """The 24 known regions, in a build of the human genome; ends are included.

    Parameters
    ----------
    build : {"hg18", "hg19", "hg38"}
        The build of the human genome.

    Returns
    -------
    list of Region
        Chromosome, first and last position of each.

    Examples
    --------
    >>> from gramian.genetics import long_range_regions
    >>> next(tuple(region) for region in long_range_regions("hg19") if region.chromosome == "8")
    ('8', 7962590, 11962591)
    """
    check_choice("build", build, BUILDS)
    at = BUILDS.index(build)
    return [Region(chromosome, *places[at]) for chromosome, *places, _ in REGIONS]


def estimated_regions(build: str) -> list[Region]:
    """Those of :func:`long_range_regions` that nobody published in this build: they were moved from another one."""
    found = long_range_regions(build)
    return [region for region, row in zip(found, REGIONS, strict=True) if build == "hg38" and not row[4]]


def detect_build(snps: Snps) -> str:
    """The build of the human genome that positions are in, told by well-known SNPs; refused where that is in doubt.

    Parameters
    ----------
    snps : Snps
        SNPs with their positions and ids.

    Returns
    -------
    str
        "hg18", "hg19" or "hg38".

    Raises
    ------
    ValueError
        Where fewer than two of those SNPs are there, or their positions are not all of one build.

    Examples
    --------
    >>> from gramian.genetics import detect_build
    >>> from gramian.sources.plink import Snps
    >>> snps = Snps.numbered(2)
    >>> snps.id[:], snps.chromosome[:], snps.position[:] = ["rs429358", "rs7412"], "19", [45411941, 45412079]
    >>> detect_build(snps)
    'hg19'
    """
    found: dict[str, set[str]] = {}
    for name, chromosome, position in zip(snps.id, snps.chromosome, snps.position.tolist(), strict=True):
        if name in LANDMARKS:
            where, *places = LANDMARKS[name]
            builds = {
                build for build, place in zip(BUILDS, places, strict=True) if (where, place) == (chromosome, position)
            }
            found[f"{name} at {chromosome}:{position}"] = builds
    agreed = set.intersection(*found.values()) if found else set()
    if len(found) >= LEAST_LANDMARKS and len(agreed) == 1:
        return agreed.pop()
    if len(found) < LEAST_LANDMARKS:
        why = (
            f"{len(found)} of the {len(LANDMARKS)} SNPs by which it is told are here, and {LEAST_LANDMARKS} are needed"
        )
    else:
        said = [f"{name} ({', '.join(sorted(builds)) or 'none of them'})" for name, builds in found.items()]
        why = f"positions are not of one build: {list_few(said)}"
    raise SourceError(
        f"The build of the genome cannot be told ({why}). Say which it is, ",
        Argument("long_range", "hg19"),
        f" for example; {', '.join(BUILDS)} are known.",
    )


class RegionWarning(UserWarning):
    """A component that one region of the genome carries."""


class CarryingRegion(NamedTuple):
    """A region that holds a large share of a component.

    Attributes
    ----------
    component : int
        From 0.
    chromosome, start, end
        Where.
    share : float
        Of the component's squared loadings.
    snps : int
        How many are in it.
    known : bool
        Whether it overlaps a known region of long-range linkage disequilibrium, in any build.
    """

    component: int
    chromosome: str
    start: int
    end: int
    share: float
    snps: int
    known: bool

    def __str__(self) -> str:
        known = ", a known region of long-range linkage disequilibrium" if self.known else ""
        return (
            f"PC{self.component + 1}: {self.share:.0%} of its squared loadings lie in chromosome {self.chromosome}: "
            f"{self.start / 1e6:.1f}–{self.end / 1e6:.1f} Mb ({self.snps:,} SNPs){known}"
        )


def carrying_regions(snps: Snps, components: npt.ArrayLike) -> list[CarryingRegion]:
    r"""Regions that hold at least 30 % of a component, and ten times their share of the SNPs.

    Ancestry lies all over the genome: with squared loadings :math:`v_s^2` that sum to 1, a region with a share q of the
    SNPs holds about q of them. A component of which one region holds a third is that region's haplotypes, an inversion
    mostly, and not ancestry. The region is the stretch in which :math:`\sum_s (v_s^2 - 3/M)` is largest.

    Parameters
    ----------
    snps : Snps
        The SNPs of the loadings.
    components : array-like of shape (k, SNPs)
        Loadings, as ``GenotypePCA.components_``.

    Returns
    -------
    list of CarryingRegion
        At most one for each component.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import carrying_regions
    >>> from gramian.sources.plink import Snps
    >>> snps = Snps.numbered(4000)
    >>> snps.position[:] = 50_000 * np.arange(4000)
    >>> v = np.ones((1, 4000))
    >>> v[0, 200:230] = 20
    >>> print(carrying_regions(snps, v)[0])
    PC1: 75% of its squared loadings lie in chromosome 1: 10.0–11.4 Mb (30 SNPs)
    """
    squares = np.asarray(components, dtype=np.float64) ** 2
    k, p = squares.shape
    if p < LEAST_SNPS:
        return []
    squares /= np.maximum(squares.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    found = []
    best: list[tuple[float, Any]] = [(0.0, None)] * k
    for name in dict.fromkeys(snps.chromosome):
        at = np.flatnonzero(snps.chromosome == name)
        at = at[np.argsort(snps.position[at], kind="stable")]
        if name == "0" or not snps.position[at].any():
            continue
        # the stretch of largest sum: from where the sum so far is least to where it is largest after that
        sums = np.concatenate([np.zeros((k, 1)), np.cumsum(squares[:, at] - DENSE / p, axis=1)], axis=1)
        rise = sums - np.minimum.accumulate(sums, axis=1)
        for j, last in enumerate(rise.argmax(axis=1).tolist()):
            if rise[j, last] > best[j][0]:
                best[j] = float(rise[j, last]), at[int(sums[j, : last + 1].argmin()) : last]
    for j, (_, region) in enumerate(best):
        share = 0.0 if region is None else float(squares[j, region].sum())
        if share < SHARE or share < EXCESS * len(region) / p:
            continue
        chromosome = str(snps.chromosome[region[0]])
        start, stop = int(snps.position[region[0]]), int(snps.position[region[-1]])
        is_known = any(
            known.chromosome == chromosome and known.start <= stop and start <= known.end
            for build in BUILDS
            for known in long_range_regions(build)
        )
        found.append(CarryingRegion(j, chromosome, start, stop, share, len(region), is_known))
    return found


def describe_regions(regions: Iterable[CarryingRegion]) -> str:
    """What a warning says of them, with the remedy."""
    return (
        f"{'; '.join(map(str, regions))}. Such a component shows haplotypes of one region, not ancestry: prune the "
        "SNPs for linkage disequilibrium, and leave out its long-range regions."
    )
