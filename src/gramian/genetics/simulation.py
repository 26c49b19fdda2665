"""Simulated genotypes of a chosen F_ST, over a map or between populations, written as PLINK files of any size."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.optimize import brentq

from gramian.compute.genotypes import calls as unpack
from gramian.compute.genotypes import pack
from gramian.compute.threads import n_threads, parallel, quiet_blas
from gramian.genetics.bed_writer import BedWriter
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed

Single = npt.NDArray[np.float32]
Array = npt.NDArray[np.float64]
# ancestral frequencies and a generator in, frequencies of SNPs × people out
Frequencies = Callable[[Array, np.random.Generator], Single]

LANDMARKS = 400  # places from which the field is interpolated
KEPT = 1e-3  # share of the field's variance that may be left out
PEOPLE = 1500  # pairs of so many are looked at to find σ
WILDEST = 2.0  # σ, beyond which frequencies have turned round the circle and F_ST grows no more


def balding_nichols(ancestry: Array, fst: float) -> Frequencies:
    r"""Frequencies of independent populations, mixed in people in the proportions of the rows of ``ancestry``.

    .. math:: f_k \sim \mathrm{Beta}\bigl(p\tfrac{1-F}F, (1-p)\tfrac{1-F}F\bigr)

    has mean p and variance F p(1 − p) (Balding and Nichols, Genetica 96, 3, 1995), so that Hudson's F_ST between any
    two populations is F.
    """
    mixed = np.asarray(ancestry.T, dtype=np.float32)

    def frequencies(p: Array, rng: np.random.Generator) -> Single:
        drawn = np.repeat(p[:, None], len(mixed), axis=1)
        if fst:
            drift = (1 - fst) / fst
            drawn = rng.beta(drawn * drift, (1 - drawn) * drift)
        return np.asarray(np.clip(drawn.astype(np.float32) @ mixed, 0.0, 1.0))

    return frequencies


def smooth_field(features: Array, groups: npt.NDArray[np.intp], fst: float, maf: tuple[float, float]) -> Frequencies:
    """Frequencies that vary over a map as the module says, with a mean F_ST between groups as asked."""
    sigma = 0.0
    if fst:  # σ for which F_ST, averaged over the pairs of groups, is as asked
        rows: Any = slice(None)
        if len(groups) > PEOPLE:  # some 1,500 people, of every group the same share and at least one
            order = np.argsort(groups, kind="stable")
            first = np.concatenate([[True], np.diff(groups[order]) > 0])
            rows = order[first | (np.arange(len(groups)) % -(-len(groups) // PEOPLE) == 0)]
        pairs = np.triu_indices(int(groups.max()) + 1, 1)

        def excess(sigma: float) -> float:
            return float(expected_fst(features[rows], groups[rows], sigma, maf)[pairs].mean()) - fst

        most = excess(WILDEST) + fst if len(pairs[0]) else 0.0
        if not most > fst:
            raise ValueError(
                f"fst={fst}: frequencies on this map reach {most:.3g} at most. Ask for less, choose a smaller length, "
                "or give groups without positions."
            )
        sigma = float(brentq(excess, 0.0, WILDEST, xtol=1e-7))
    angles = np.vstack([np.ones(len(features)), 2 * sigma * features.T]).astype(np.float32)

    def frequencies(p: Array, rng: np.random.Generator) -> Single:
        weights = rng.standard_normal((len(p), len(angles)), dtype=np.float32)
        weights[:, 0] = 2 * np.arcsin(np.sqrt(p))
        f = weights @ angles
        np.cos(f, out=f)
        f *= -0.5
        f += 0.5  # sin²(x/2) = (1 − cos x)/2
        return f

    return frequencies


def map_features(positions: Array, length: float) -> Array:
    """Φ with ΦΦᵀ ≈ exp(−‖x − y‖²/2ℓ²) less its mean over people: by Nyström's method, the fewest columns that do."""
    places = np.unique(positions, axis=0)
    landmarks = places[:: -(-len(places) // LANDMARKS)]
    values, vectors = eigh(_kernel(landmarks, landmarks, length))
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int(np.searchsorted(np.cumsum(values), (1 - KEPT) * values.sum())) + 1
    features = _kernel(positions, landmarks, length) @ (vectors[:, :rank] / np.sqrt(values[:rank]))
    return np.asarray(features - features.mean(axis=0))


def _kernel(A: Array, B: Array, length: float) -> Array:
    squares = np.sum(A**2, axis=1)[:, None] + np.sum(B**2, axis=1) - 2 * A @ B.T
    return np.asarray(np.exp(-np.maximum(squares, 0.0) / (2 * length**2)))


def expected_fst(features: Array, groups: npt.NDArray[np.intp], sigma: float, maf: tuple[float, float]) -> Array:
    r"""Hudson's F_ST between groups on the map, :math:`E(f_a-f_b)^2 / E\bigl(f_a(1-f_b)+f_b(1-f_a)\bigr)`.

    :math:`f_a` is the mean frequency of the people of group a. With X = 2θ + 2σg(x), f = (1 − cos X)/2 and

    .. math::
        E\cos X\cos Y = \tfrac12\cos4\theta\,e^{-2\sigma^2(C_{xx}+C_{yy}+2C_{xy})}
            + \tfrac12 e^{-2\sigma^2(C_{xx}+C_{yy}-2C_{xy})},

    averaged over ancestral frequencies that are uniform between the ends of ``maf``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.simulation import expected_fst
    >>> fst = expected_fst(np.eye(2), np.arange(2), 0.05, (0.3, 0.3))  # independent: about 4σ² = 0.01
    >>> round(float(fst[0, 1]), 4)
    0.0099
    """
    low, high = maf
    mean, square = (low + high) / 2, (low**2 + low * high + high**2) / 3
    member = (np.arange(groups.max() + 1)[:, None] == groups).astype(np.float64)
    C, W = features @ features.T, member / member.sum(axis=1, keepdims=True)  # W @ v: means of v in the groups
    own = np.diag(C)
    both, s = own[:, None] + own, 2 * sigma**2
    cosines = (1 - 2 * mean) * np.exp(-s * own)
    products = 0.5 * ((1 - 8 * (mean - square)) * np.exp(-s * (both + 2 * C)) + np.exp(-s * (both - 2 * C)))
    f = W @ (1 - cosines) / 2
    ff = W @ (1 - cosines[:, None] - cosines + products) @ W.T / 4
    own_square = np.diag(ff)
    return np.asarray((own_square[:, None] + own_square - 2 * ff) / (f[:, None] + f - 2 * ff))


class Background:
    """People described by positions, groups or ancestry, and how their allele frequencies are drawn.

    Examples
    --------
    >>> from gramian.genetics.simulation import Background
    >>> Background(None, ["a", "b", "b"], None)
    3 people in 2 populations
    """

    def __init__(self, positions: Any, groups: Any, ancestry: Any) -> None:
        if (ancestry is not None) == (positions is not None or groups is not None):
            raise ValueError(
                "People need positions (with groups or without), or groups, or ancestry; give one of these."
            )
        self.positions = None if positions is None else _table(positions, "positions")
        self.ancestry = None if ancestry is None else _table(ancestry, "ancestry")
        if self.ancestry is not None:
            bad = np.flatnonzero((self.ancestry < 0).any(axis=1) | (np.abs(self.ancestry.sum(axis=1) - 1) > 1e-6))
            if len(bad):
                shares = self.ancestry[bad[0]].tolist()
                raise ValueError(f"ancestry: person {bad[0]} has {shares}; proportions sum to 1, none negative.")
        if groups is not None and not len(groups):
            raise ValueError("groups are empty: one label for each person was expected.")
        self.groups = None  # 0, 1, … for the labels in sorted order
        if groups is not None:
            self.groups = np.unique(np.asarray(groups).astype(str), return_inverse=True)[1].reshape(-1)
        table = self.ancestry if self.positions is None else self.positions
        if self.groups is None and self.positions is not None:
            self.groups = np.unique(self.positions, axis=0, return_inverse=True)[1].reshape(-1)
        if table is not None and self.groups is not None and len(self.groups) != len(table):
            raise ValueError(
                f"There are {len(table)} positions and {len(self.groups)} groups: one of each for a person."
            )

    def __len__(self) -> int:
        return len(self.groups if self.ancestry is None else self.ancestry)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        if self.ancestry is not None:
            return f"{len(self)} people mixed of {self.ancestry.shape[1]} populations"
        kinds = int(self.groups.max()) + 1  # type: ignore[union-attr]
        return f"{len(self)} people in {kinds} " + ("populations" if self.positions is None else "places on a map")

    def frequencies(self, fst: float, length: float | None, maf: tuple[float, float]) -> Frequencies:
        """How allele frequencies are drawn, given those of the ancestors."""
        if self.positions is not None and self.groups is not None:
            span = float(np.linalg.norm(np.ptp(self.positions, axis=0)))
            if not span:
                raise ValueError("positions are all the same place: frequencies cannot vary over it.")
            features = map_features(self.positions, span if length is None else length)
            return smooth_field(features, self.groups, fst, maf)
        if self.groups is not None:
            return balding_nichols(np.eye(int(self.groups.max()) + 1)[self.groups], fst)
        assert self.ancestry is not None
        return balding_nichols(self.ancestry, fst)


def _table(values: Any, name: str) -> Array:
    table = np.array(values, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"{name} have shape {table.shape}; a row for each person was expected.")
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise ValueError(f"{name}: person {bad[0]} has {table[bad[0]].tolist()}; numbers are needed.")
    return table


Bits = npt.NDArray[np.uint16]

ONE = 65535.0  # frequencies are drawn with 16 bits


def random_bits(rng: np.random.Generator, shape: tuple[int, ...]) -> Bits:
    """Uniform 16-bit numbers, four from each word that the generator makes."""
    count = math.prod(shape)
    words = rng.integers(0, 2**64 - 1, -(-count // 4), dtype=np.uint64, endpoint=True)
    return words.view(np.uint16)[:count].reshape(shape)


def draw_calls(
    frequencies: npt.NDArray[np.float32], rng: np.random.Generator, linked: float, block: int, starts: Any
) -> npt.NDArray[np.int8]:
    """Copies of A1 of SNPs × people, drawn from two chromosomes each.

    A chromosome carries A1 where its uniform number lies below the frequency. From one SNP to the next it keeps this
    number with probability ``linked``, which then is the correlation of their alleles if they are as frequent; it
    draws a new one at each multiple of ``block`` and at the SNPs ``starts``.
    """
    p, n = frequencies.shape
    uniform = random_bits(rng, (p, 2, n))
    if linked and block > 1:  # numbers are carried on from SNP to SNP within blocks, all blocks at once
        decide = random_bits(rng, (p, 2, n))
        keep = np.negative((decide < round(linked * 65536)).astype(np.uint16))  # all bits, or none
        keep[starts] = 0
        u, k = (x.reshape(-1, block, 2 * n) for x in (uniform, keep))
        for j in range(1, block):
            u[:, j] ^= (u[:, j] ^ u[:, j - 1]) & k[:, j]
    frequencies *= ONE
    frequencies += 0.5
    carried = uniform < frequencies.astype(np.uint16)[:, None, :]
    first, second = carried.view(np.int8)[:, 0], carried.view(np.int8)[:, 1]
    first += second
    return first


def missing_rates(missing: float, spread: float, n: int, rng: np.random.Generator) -> Array:
    r"""Rates λᵢ of people, such that genotypes are missing as often as asked.

    A genotype is missing with probability :math:`1 - e^{-\lambda_i r_j}`, with gamma variables λ and r of people and
    SNPs, whose coefficient of variation s is ``spread``: on average over SNPs :math:`1 - (1+\lambda_i s^2)^{-1/s^2}`.
    """
    if not missing:
        return np.zeros(n)
    if not spread:
        return np.full(n, -math.log1p(-missing))
    relative = rng.gamma(1 / spread**2, spread**2, n)

    def excess(rate: float) -> float:
        return float(np.mean(-np.expm1(-np.log1p(rate * relative * spread**2) / spread**2))) - missing

    top = 1.0
    while excess(top) < 0:
        top *= 4
    return np.asarray(relative * brentq(excess, 0.0, top, xtol=1e-12))


def erase(calls: npt.NDArray[np.int8], rates: Array, spread: float, rng: np.random.Generator) -> None:
    """Make genotypes missing: the points of a Poisson process of rate λᵢrⱼ fall on them, some twice."""
    p, n = calls.shape
    by_snp = rng.gamma(1 / spread**2, spread**2, p) if spread else np.ones(p)
    total = np.cumsum(rates)
    rows = np.repeat(np.arange(p), rng.poisson(by_snp * total[-1]))
    columns = np.searchsorted(total, rng.random(len(rows)) * total[-1], side="right")
    calls[rows, np.minimum(columns, n - 1)] = -1


# Chromosomes 1 to 22 of the human reference GRCh37, in thousands of base pairs.
FIRST_HALF = (249251, 243199, 198022, 191154, 180915, 171115, 159139, 146364, 141213, 135535, 135007)
SECOND_HALF = (133852, 115170, 107350, 102531, 90355, 81195, 78077, 59129, 63026, 48130, 51305)
LENGTHS = np.array([*FIRST_HALF, *SECOND_HALF])
# A/T and C/G look the same on both strands, and arrays avoid them
ALLELES = np.array(["AC", "AG", "CA", "CT", "GA", "GT", "TC", "TG"])
CM = 1e-6  # centimorgans of a base pair, on average


class Genome:
    """The places and alleles of p SNPs, spread evenly over the first chromosomes.

    Parameters
    ----------
    p : int
        SNPs.
    chromosomes : int
        How many chromosomes, up to 22.
    rng : Generator
        Draws places and alleles.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.simulation import Genome
    >>> snps = Genome(4, 2, np.random.default_rng(0)).snps(0, 4)
    >>> snps.chromosome.tolist(), snps.id.tolist()
    (['1', '1', '2', '2'], ['sim1', 'sim2', 'sim3', 'sim4'])
    """

    def __init__(self, p: int, chromosomes: int, rng: np.random.Generator) -> None:
        lengths = LENGTHS[:chromosomes]
        self.ends = np.rint(p * np.cumsum(lengths) / lengths.sum()).astype(np.intp)
        self._shift = 0.75 * rng.random(p, dtype=np.float32)  # of the way to the next SNP: none meet
        self._alleles = rng.integers(0, len(ALLELES), p, dtype=np.uint8)

    def starts(self, start: int, stop: int) -> npt.NDArray[np.intp]:
        """Which of these SNPs are the first of a chromosome, counted from ``start``."""
        return np.asarray(self.ends[(self.ends >= start) & (self.ends < stop)] - start)

    def snps(self, start: int, stop: int) -> Snps:
        """The table of SNPs start to stop."""
        index = np.arange(start, stop)
        at = np.searchsorted(self.ends, index, side="right")
        first = np.concatenate([[0], self.ends])[at]
        step = 1000.0 * LENGTHS[at] / (self.ends[at] - first)
        position = ((index - first + self._shift[start:stop]) * step).astype(np.int64) + 1
        a1, a2 = ALLELES[self._alleles[start:stop]].astype("U2").view("U1").reshape(-1, 2).T
        names = np.array([f"sim{j + 1}" for j in range(start, stop)], dtype=object)
        text = np.array([str(c + 1) for c in at], dtype=object)
        return Snps(text, names, np.round(position * CM, 6), position, a1.astype(object), a2.astype(object))


CHUNK = 2**18  # genotypes drawn together, from a generator of their own: they stay in a core's cache
DRAW_PEOPLE, DRAW_GENOME, DRAW_CHUNK, DRAW_HOMES = 0, 1, 2, 3  # which generator draws what


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    r"""Genotypes that are described and not yet drawn.

    People have one of three backgrounds:

    - ``positions``: frequencies vary smoothly over a map, alike within about ``length`` (isolation by distance). F_ST
      is the mean over pairs of ``groups``, or of places;
    - ``groups`` alone: separate populations, by the model of Balding and Nichols, with the same F_ST between any two;
    - ``ancestry``: such populations, mixed in each person in given proportions; F_ST is between the populations.

    Hudson's F_ST, :math:`E(f_a-f_b)^2/E(f_a(1-f_b)+f_b(1-f_a))`, is what is asked for in expectation.

    Parameters
    ----------
    n_snps : int
        SNPs.
    positions : array-like of shape (n, d), optional
        Where people live, in a plane: longitudes need to be multiplied by the cosine of a latitude.
    groups : sequence of n labels, optional
        Who belongs together.
    ancestry : array-like of shape (n, K), optional
        Proportions of K populations; rows sum to 1.
    fst : float, default=0.01
        From 0 to below 1; on a map, less.
    length : float, optional
        Distance, in the units of positions, over which frequencies are alike: exp(−d²/2ℓ²) is their correlation. By
        default the diagonal of the map, which makes nearly straight gradients.
    maf : pair of float, default=(0.05, 0.5)
        Ancestral frequencies of A1, the rarer allele, are uniform between these.
    missing : float, default=0.0
        Share of the genotypes that is missing.
    missing_spread : float, default=0.0
        Standard deviation, relative to the mean, of the rate of missing genotypes over SNPs and over people.
    ld : float, default=0.0
        r² of neighbouring SNPs that are as frequent, ρ²; those d apart have ρ²ᵈ, and where frequencies differ, f < h,
        this is multiplied by f(1 − h)/(h(1 − f)), which is the most that is possible.
    ld_block : int, default=20
        SNPs from one break of linkage to the next; chromosomes break it too.
    chromosomes : int, default=22
        How many chromosomes the SNPs are spread over.
    names : sequence of str, optional
        Names of the people, without spaces.
    seed : int, default=0
        The same seed gives the same genotypes, on any number of threads.

    Examples
    --------
    >>> from gramian.genetics.simulation import Simulation
    >>> study = Simulation(1000, groups=["a"] * 20 + ["b"] * 30, fst=0.1, missing=0.02)
    >>> study
    Simulation: 50 people in 2 populations, 1000 SNPs, F_ST 0.1, 2% missing
    >>> calls = study.calls(0, 1000)
    >>> calls.shape, int(calls.min()), int(calls.max())
    ((1000, 50), -1, 2)
    """

    n_snps: int
    _: KW_ONLY
    positions: npt.ArrayLike | None = None
    groups: Sequence[Any] | npt.NDArray[Any] | None = None
    ancestry: npt.ArrayLike | None = None
    fst: float = 0.01
    length: float | None = None
    maf: tuple[float, float] = (0.05, 0.5)
    missing: float = 0.0
    missing_spread: float = 0.0
    ld: float = 0.0
    ld_block: int = 20
    chromosomes: int = 22
    names: Sequence[str] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        low, high = self.maf
        for name, good, wanted in (
            ("n_snps", self.n_snps >= 1, "at least 1"),
            ("fst", 0 <= self.fst < 1, "from 0 to below 1"),
            ("length", self.length is None or self.length > 0, "a positive distance"),
            ("maf", 0 < low <= high < 1, "two frequencies between 0 and 1, the smaller first"),
            ("missing", 0 <= self.missing < 1, "from 0 to below 1"),
            ("missing_spread", 0 <= self.missing_spread <= 5, "from 0 to 5"),
            ("ld", 0 <= self.ld <= 1, "an r² from 0 to 1"),
            ("ld_block", 1 <= self.ld_block <= 1000, "from 1 to 1000 SNPs"),
            ("chromosomes", 1 <= self.chromosomes <= len(LENGTHS), f"from 1 to {len(LENGTHS)}"),
        ):
            if not good:
                raise ValueError(f"{name}={getattr(self, name)!r} must be {wanted}.")
        len(self._people)  # bad people are refused now, not when they are drawn

    @cached_property
    def _people(self) -> Background:
        return Background(self.positions, self.groups, self.ancestry)

    @cached_property
    def _frequencies(self) -> Frequencies:
        with quiet_blas():
            return self._people.frequencies(self.fst, self.length, self.maf)

    @cached_property
    def _genome(self) -> Genome:
        return Genome(self.n_snps, self.chromosomes, self._generator(DRAW_GENOME))

    @cached_property
    def _rates(self) -> Array:
        return missing_rates(self.missing, self.missing_spread, len(self._people), self._generator(DRAW_PEOPLE, 1))

    @cached_property
    def samples(self) -> Samples:
        """The people: named as asked, or numbered; half of them women; no phenotype."""
        n = len(self._people)
        plain = Samples.numbered(n)
        iid = plain.iid if self.names is None else np.array([*self.names, None], dtype=object)[:-1]
        if len(iid) != n:
            raise ValueError(f"{len(iid)} names are given for {n} people.")
        sex = self._generator(DRAW_PEOPLE, 0).integers(1, 3, n, dtype=np.int8)
        return Samples(iid, iid, plain.father, plain.mother, sex, plain.phenotype)

    @property
    def shape(self) -> tuple[int, int]:
        """People and SNPs."""
        return len(self._people), self.n_snps

    def snps(self, start: int, stop: int) -> Snps:
        """The table of SNPs start to stop."""
        return self._genome.snps(start, min(stop, self.n_snps))

    def calls(self, start: int, stop: int) -> npt.NDArray[np.int8]:
        """Copies of A1 of SNPs start to stop × people, −1 where missing."""
        stop = min(stop, self.n_snps)
        chunks = range(start // self._rows, -(-stop // self._rows))
        packed = np.vstack(self._packed(chunks))[start - chunks.start * self._rows :][: stop - start]
        return unpack(packed, self.shape[0])

    def blocks(self) -> Iterator[tuple[npt.NDArray[np.uint8], Snps]]:
        """Yield packed genotypes and their SNPs, in order; each block is drawn by all threads."""
        together = 4 * n_threads()
        count = -(-self.n_snps // self._rows)
        for chunk in range(0, count, together):
            packed = self._packed(range(chunk, min(chunk + together, count)))
            start = chunk * self._rows
            stop = min(start + len(packed) * self._rows, self.n_snps)
            yield np.vstack(packed)[: stop - start], self.snps(start, stop)

    def write(
        self, path: str | os.PathLike[str], *, overwrite: bool = False, companions: Mapping[str, str] | None = None
    ) -> Genotypes:
        """Draw the genotypes into ``.bed``, ``.bim`` and ``.fam`` files, as :class:`BedWriter` does, and open them."""
        with BedWriter(path, self.samples, overwrite=overwrite, companions=companions) as writer:
            for packed, snps in self.blocks():
                writer.append_packed(packed, snps)
        return open_bed(writer.path)

    @property
    def _rows(self) -> int:
        """SNPs of a chunk: a whole number of linked blocks."""
        rows, whole = max(16, min(1024, CHUNK // self.shape[0])), self.ld_block if self.ld else 1
        return -(-rows // whole) * whole

    def _generator(self, *key: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def _packed(self, chunks: Sequence[int]) -> list[npt.NDArray[np.uint8]]:
        """Draw chunks of SNPs, the last one whole too: what is drawn depends on the chunk alone."""
        frequencies, genome, rates = self._frequencies, self._genome, self._rates  # before threads ask for them
        found: dict[int, npt.NDArray[np.uint8]] = {}

        def draw(share: Sequence[int]) -> None:
            for chunk in share:
                rng, start = self._generator(DRAW_CHUNK, chunk), chunk * self._rows
                f = frequencies(rng.uniform(*self.maf, self._rows), rng)
                starts = genome.starts(start, start + self._rows)
                calls = draw_calls(f, rng, self.ld**0.5, self.ld_block, starts)
                if self.missing:
                    erase(calls, rates, self.missing_spread, rng)
                found[chunk] = pack(calls)

        with quiet_blas():
            parallel(draw, chunks)
        return [found[chunk] for chunk in chunks]

    def __repr__(self) -> str:
        missing = f", {100 * self.missing:g}% missing" if self.missing else ""
        return f"Simulation: {self._people!r}, {self.n_snps} SNPs, F_ST {self.fst:g}{missing}"


def simulate_genotypes(
    path: str | os.PathLike[str], n_snps: int, *, overwrite: bool = False, **description: Any
) -> Genotypes:
    """Simulate genotypes and write them as PLINK files: ``.bed``, ``.bim``, ``.fam``.

    Parameters
    ----------
    path : path
        The ``.bed`` file; the others lie next to it.
    n_snps : int
        SNPs.
    overwrite : bool, default=False
        Whether files of these names may be replaced.
    **description
        As for :class:`Simulation`: who the people are (positions, groups or ancestry), fst, missing, ld, seed and more.

    Returns
    -------
    Genotypes
        The files, opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.simulation import simulate_genotypes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     G = simulate_genotypes(Path(folder, "two.bed"), 500, groups=["a"] * 30 + ["b"] * 30, fst=0.05, seed=1)
    ...     G.shape
    (60, 500)
    """
    return Simulation(n_snps, **description).write(path, overwrite=overwrite)


FST = 0.004  # between countries of Europe, about
LENGTH = 20.0  # degrees over which frequencies are alike: a few gradients across the continent
SPREAD = 1.2  # degrees, standard deviation of where people live around the centre of their country
STUDY_COLUMNS = ("FID", "IID", "country", "latitude", "longitude")


class Country(NamedTuple):
    """A country, where it lies, and how many of its people are in the study.

    Parameters
    ----------
    code, name : str
        Two letters, and the name.
    latitude, longitude : float
        Where it lies, in degrees.
    people : int
        How many of its people are in the study.
    """

    code: str
    name: str
    latitude: float
    longitude: float
    people: int


# Degrees are those of the middle of the country, or of the capital where most people live far from the middle (Finland,
# Norway, Russia, Sweden). Numbers of people are ours, after the study of J. Novembre et al. (Genes mirror geography
# within Europe, Nature 456, 98, 2008): most from Italy, Britain, Switzerland and Iberia, few from the north and east;
# but no country is left with so few that it cannot be seen.
EUROPE = (
    Country("AL", "Albania", 41.1, 20.1, 12),
    Country("AT", "Austria", 47.6, 14.1, 20),
    Country("BA", "Bosnia and Herzegovina", 44.2, 17.8, 14),
    Country("BE", "Belgium", 50.6, 4.7, 45),
    Country("BG", "Bulgaria", 42.8, 25.2, 14),
    Country("CH", "Switzerland", 46.8, 8.2, 165),
    Country("CZ", "Czechia", 49.7, 15.3, 18),
    Country("DE", "Germany", 51.1, 10.4, 75),
    Country("DK", "Denmark", 56.0, 9.5, 14),
    Country("ES", "Spain", 40.2, -3.6, 125),
    Country("FI", "Finland", 60.2, 24.9, 14),
    Country("FR", "France", 46.6, 2.5, 85),
    Country("GB", "United Kingdom", 53.5, -2.0, 180),
    Country("GR", "Greece", 39.1, 22.9, 18),
    Country("HR", "Croatia", 45.1, 16.4, 16),
    Country("HU", "Hungary", 47.2, 19.4, 25),
    Country("IE", "Ireland", 53.2, -8.1, 60),
    Country("IT", "Italy", 42.8, 12.1, 190),
    Country("NL", "Netherlands", 52.2, 5.6, 25),
    Country("NO", "Norway", 59.9, 10.8, 14),
    Country("PL", "Poland", 52.1, 19.4, 30),
    Country("PT", "Portugal", 39.6, -8.5, 115),
    Country("RO", "Romania", 45.9, 24.9, 20),
    Country("RS", "Serbia", 44.2, 20.8, 20),
    Country("RU", "Russia", 55.8, 37.6, 14),
    Country("SE", "Sweden", 59.3, 18.1, 20),
    Country("SI", "Slovenia", 46.1, 14.8, 12),
    Country("SK", "Slovakia", 48.7, 19.5, 12),
    Country("TR", "Turkey", 39.9, 32.9, 14),
    Country("UA", "Ukraine", 49.0, 31.4, 14),
)


def map_plane(latitude: npt.ArrayLike, longitude: npt.ArrayLike) -> npt.NDArray[np.float64]:
    r"""Places in a plane where a degree is as long in both directions: :math:`(\lambda\cos\bar\varphi, \varphi)`.

    Parameters
    ----------
    latitude, longitude : array-like of shape (n,)
        In degrees.

    Returns
    -------
    ndarray of shape (n, 2)
        East and north, in degrees of latitude.

    Examples
    --------
    >>> from gramian.genetics.simulation import map_plane
    >>> map_plane([59.0, 61.0], [10.0, 20.0]).round(3).tolist()
    [[5.0, 59.0], [10.0, 61.0]]
    """
    phi, lam = np.asarray(latitude, dtype=np.float64), np.asarray(longitude, dtype=np.float64)
    return np.stack([lam * math.cos(math.radians(float(phi.mean()))), phi], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Simulated genotypes of people whose country and home are known.

    Attributes
    ----------
    genotypes : Genotypes
        The files, opened.
    country : ndarray of str
        Two letters for each person, the ``code`` of a :class:`Country`.
    latitude, longitude : ndarray of shape (n,)
        Where the person lives, in degrees.
    """

    genotypes: Genotypes
    country: npt.NDArray[np.str_]
    latitude: Array
    longitude: Array

    @property
    def positions(self) -> npt.NDArray[np.float64]:
        """Homes in the plane of :func:`map_plane`: east, north."""
        return map_plane(self.latitude, self.longitude)

    def table(self) -> dict[str, Any]:
        """Return the columns of the ``.tsv`` file, ready for ``pandas.DataFrame``."""
        samples = self.genotypes.samples
        columns = (samples.fid, samples.iid, self.country, self.latitude, self.longitude)
        return dict(zip(STUDY_COLUMNS, columns, strict=True))

    def __repr__(self) -> str:
        n, p = self.genotypes.shape
        return f"Study (simulated): {n} people of {len(set(self.country))} countries, {p} SNPs"


def simulate_europe(
    path: str | os.PathLike[str],
    n_snps: int = 20_000,
    seed: int = 0,
    *,
    people: int = 1400,
    fst: float = FST,
    overwrite: bool = False,
    **description: Any,
) -> Study:
    """Simulate a study of Europeans whose first two principal components draw the map of Europe.

    People live around the middle of thirty countries, in numbers like those of Novembre et al. (Nature 456, 98, 2008),
    and their allele frequencies vary smoothly over the map: *simulated*, but with the F_ST of Europe. Beside the
    ``.bed``, ``.bim`` and ``.fam`` files a ``.tsv`` table of the same name has the columns FID, IID, country, latitude,
    longitude.

    Parameters
    ----------
    path : path
        The ``.bed`` file.
    n_snps : int, default=20_000
        SNPs.
    seed : int, default=0
        The same seed gives the same study.
    people : int, default=1400
        People, at least 150, shared between the countries in the proportions of ``EUROPE``.
    fst : float, default=0.004
        Mean of Hudson's F_ST over the pairs of countries.
    overwrite : bool, default=False
        Whether files of these names may be replaced.
    **description
        As for :class:`gramian.genetics.simulation.Simulation`: missing, ld, length and more.

    Returns
    -------
    Study
        The genotypes, opened, and who lives where.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.simulation import simulate_europe
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = simulate_europe(Path(folder, "europe.bed"), n_snps=500, people=300)
    ...     study, Path(folder, "europe.tsv").read_text().split()[:7]
    (Study (simulated): 300 people of 30 countries, 500 SNPs,
     ['FID', 'IID', 'country', 'latitude', 'longitude', 'AL1', 'AL1'])
    """
    if people < 150:
        raise ValueError(f"people={people} must be at least 150: every country needs somebody.")
    ends = np.cumsum([place.people for place in EUROPE])
    counts = np.diff(np.rint(people * ends / ends[-1]).astype(np.intp), prepend=0)
    country = np.repeat([place.code for place in EUROPE], counts)
    names = [f"{place.code}{i + 1}" for place, count in zip(EUROPE, counts, strict=True) for i in range(count)]
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(DRAW_HOMES,)))
    centre = np.repeat([(place.latitude, place.longitude) for place in EUROPE], counts, axis=0)
    shift = SPREAD * rng.standard_normal(centre.shape)
    shift[:, 1] /= np.cos(np.radians(centre[:, 0]))  # as far from the middle of the country in all directions
    latitude, longitude = np.round(centre + shift, 4).T
    described = {"length": LENGTH, **description}
    plane = map_plane(latitude, longitude)
    plan = Simulation(n_snps, positions=plane, groups=country, fst=fst, names=names, seed=seed, **described)
    rows = zip(names, names, country, latitude, longitude, strict=True)
    lines = ["\t".join(STUDY_COLUMNS), *("\t".join(map(str, row)) for row in rows)]
    genotypes = plan.write(path, overwrite=overwrite, companions={".tsv": "\n".join(lines) + "\n"})
    return Study(genotypes, country, latitude, longitude)
