"""Who is related to whom: KING-robust kinship, people without relatives, the relationship matrix, PC-AiR, PC-Relate."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from gramian.compute.bits import compiled_loops, pad_to_words
from gramian.compute.devices import TooLargeError, free_bytes, gpu, is_tensor, resolve, to_device, to_numpy
from gramian.compute.executor import HERE, SHARES, current_executor
from gramian.compute.genotypes import Decoder
from gramian.compute.memory import available_memory, gibibytes
from gramian.compute.threads import parallel_each, quiet_blas
from gramian.genetics.genotypes import count_alleles, is_autosomal
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.projection import project
from gramian.genetics.pruning import HAPLOID, founder_mask
from gramian.genetics.text import one_field, write_plink_table, write_rows
from gramian.inputs.progress import Progress
from gramian.operators.genotype import upload_if_room
from gramian.sources import memory_budget
from gramian.sources.plink import Genotypes, Samples
from gramian.sources.writing import write_whole_folder

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.int32]

DEGREES = ("duplicate", "first", "second", "third")
LIMITS = (2.0**-1.5, 2.0**-2.5, 2.0**-3.5, 2.0**-4.5)  # kinship above which a pair is of each degree
CUTOFF = 0.0884  # 2^-3.5, as it is usually written: second degree and closer
SNPS = 4096  # decoded at a time: with fewer, adding up the products takes as long as making them
EXACT = 2**24  # counts up to which float32 is exact
PAIR_BYTES = 40  # of a pair in the table
ROWS = 4096  # people multiplied at a time on a GPU with all before them
TURNED = 16_384  # SNPs whose bits are turned at a time, from rows of SNPs into rows of people
SECONDS = 1e-11  # for two people at a SNP, by products in float32
PAIRS = 2**22  # of people whose kinship is bounded together
PEOPLE = 256  # whose sums of products are made together, always of the same people: the last bits depend on it
DECODED = 2**25  # numbers of a block of SNPs for such sums
TILE = 32  # people compared at a time with all before them: their bits stay in a core's cache


@dataclass(frozen=True, eq=False, repr=False)
class Kinship:
    r"""Pairs of people, and how related they are.

    Over the SNPs that both were read at, let ``hethet`` be those at which both are heterozygous, ``ibs0`` those at
    which they are homozygous for different alleles, :math:`h_1, h_2` those at which only the one, only the other is
    heterozygous. KING's estimate, which is robust to population structure, is

    .. math:: \varphi = \frac12 - \frac{4\,\mathrm{ibs0} + h_1 + h_2}{4\,(\mathrm{hethet} + \min(h_1, h_2))}.

    Attributes
    ----------
    samples : Samples
        All people who were compared.
    first, second : ndarray of int
        Rows of ``samples``: the later and the earlier of each pair.
    n_snps, hethet, ibs0, first_het, second_het : ndarray of int
        Counts of each pair.
    snps : int
        SNPs that were compared.
    least : float or None
        Pairs below this kinship were left out.
    """

    samples: Samples
    first: npt.NDArray[np.intp]
    second: npt.NDArray[np.intp]
    n_snps: Counts
    hethet: Counts
    ibs0: Counts
    first_het: Counts
    second_het: Counts
    snps: int
    least: float | None

    @property
    def kinship(self) -> Array:
        """φ of each pair, NaN where neither has a heterozygous call that the other shares."""
        return np.asarray(_kinship(self.hethet, self.ibs0, self.first_het, self.second_het))

    def degrees(self) -> dict[str, int]:
        """Pairs of each degree that the table has all pairs of, duplicates (or identical twins) first."""
        phi, found, above = self.kinship, {}, 0
        for name, limit in zip(DEGREES, LIMITS, strict=True):
            if self.least is not None and self.least > limit + 1e-4:  # 0.0884 is meant to be 2^-3.5
                break
            count = int(np.count_nonzero(phi > limit))
            found[name], above = count - above, count
        return found

    def table(self) -> dict[str, Any]:
        """Return the columns of KING's table, ready for ``pandas.DataFrame``."""
        snps = np.where(self.n_snps > 0, self.n_snps, np.nan)
        fid, iid = self.samples.fid, self.samples.iid
        people = {"FID1": fid[self.first], "IID1": iid[self.first], "FID2": fid[self.second], "IID2": iid[self.second]}
        shares = {"NSNP": self.n_snps, "HETHET": self.hethet / snps, "IBS0": self.ibs0 / snps}
        return {**people, **shares, "KINSHIP": self.kinship}

    def __repr__(self) -> str:
        found = ", ".join(f"{count:,} {name}" for name, count in self.degrees().items())
        return f"Kinship: {len(self.first):,} pairs of {len(self.samples):,} people, {self.snps:,} SNPs; {found} degree"


def round_like_plink(values: Array) -> Array:
    """Six digits of each value; what lies half-way between two, up to 5e-9 of the last, goes to the even one, as PLINK.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.relatives import round_like_plink
    >>> ["%.6g" % value for value in round_like_plink(np.array([0.009140625, 0.009140635]))]
    ['0.00914062', '0.00914064']
    """
    size = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        unit = 10.0 ** (np.floor(np.log10(size)) - 5)
        scaled = size / unit
        whole = np.floor(scaled)
        digits = np.floor(scaled + np.where(whole % 2 == 1, 0.500000005, 0.499999995))
        return np.where(size > 0, np.copysign(digits * unit, values), values)


def king(
    source: Genotypes, *, least: float | None = None, device: Any = None, progress: Progress | None = None
) -> Kinship:
    """Kinship of all pairs of people, by KING's robust estimate.

    Counts are exact: products of zeros and ones in float32, on a GPU in int8 with sums in int32. With ``least`` the
    first pass bounds every pair's kinship from above by one product, missing calls taken as badly as they can be, and
    only people with a pair that may reach it are compared in full.

    Parameters
    ----------
    source : Genotypes
        People and autosomal SNPs.
    least : float, optional
        Only pairs whose kinship is at least this; all by default.
    device : str, torch.device or None, default=None
        Where to count: "cuda", or "auto" for a GPU if there is one; None is where the genotypes are. The counts are
        the same.
    progress : callable, optional
        Called with the SNPs done, their number and a message.

    Returns
    -------
    Kinship
        Pairs, by rows of the lower triangle.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import king
    >>> from gramian.sources.plink import Genotypes
    >>> calls = np.random.default_rng(0).binomial(2, 0.4, (500, 4))
    >>> calls[:, 3] = calls[:, 1]
    >>> king(Genotypes.from_calls(calls), least=0.2).table()["IID1"].tolist()
    ['s4']
    """
    n, p = source.shape
    _refuse_haploid(source, "Kinship")
    if least is not None and not -1 <= least <= 0.5:
        raise ValueError(f"least={least!r} must lie between −1 and 0.5, the kinship of twins.")
    where = resolve(device, source.values)
    if where is not None and n:
        source = upload_if_room(source, where)
    chosen = np.arange(n) if least is None else _may_be_related(source, least, where, progress)
    pairs = len(chosen) * (len(chosen) - 1) // 2
    if least is None and pairs * PAIR_BYTES > available_memory():
        raise TooLargeError(
            f"A table of {pairs:,} pairs takes {gibibytes(pairs * PAIR_BYTES)}. Ask for related pairs only: ",
            ("least", 0.0442),
            ".",
        )
    view = source if len(chosen) == n else source.select(samples=chosen)
    parts: list[tuple[Any, ...]] = []
    if where is None:
        found = _by_rows(_list_pairs, view, 3, progress, least=least)
    else:
        blocks = _shared_counts_on(view, where, progress)
        found = (_select_pairs(start, stop, counts, least) for start, stop, counts in blocks)
    for i, j, *counts in found:
        parts.append((chosen[i], chosen[j], *counts))
    empty = np.zeros(0, np.int32)
    columns: Any = [np.concatenate(part) for part in zip(*parts, strict=True)] if parts else [empty] * 7
    first, second, n_snps, hethet, ibs0, row, column = columns
    return Kinship(source.samples, first, second, n_snps, hethet, ibs0, row, column, p, least)


@dataclass(frozen=True, eq=False)
class _PeopleStripe:
    """People start to stop of a source, who are compared with all before them, here or by a worker."""

    source: Any  # Genotypes, or a PackedShare of all SNPs
    start: int
    stop: int
    seconds: float  # that all comparisons take without compiled loops
    least: float | None = None
    progress: Progress | None = None
    own: Any = None  # homozygous less missing calls of each person, and heterozygous ones
    one: Any = None
    lines: Any = None  # by which calls become the numbers that are multiplied
    scores: Any = None  # of people, and coefficients of SNPs: their product is each person's own allele frequency
    coefficients: Any = None

    def __str__(self) -> str:
        return f"People {self.start + 1} to {self.stop}"


def _by_rows(
    task: Callable[[_PeopleStripe], Any],
    view: Genotypes,
    matrices: int,
    progress: Progress | None,
    unit: int = TILE,
    **more: Any,
) -> Iterator[Any]:
    """Do a task for stripes of people, of which so many matrices fit in the memory, here or by workers of a cluster.

    Stripes are made of whole units of people.
    """
    n, p = view.shape
    seconds, executor = n**2 * p * SECONDS, current_executor()
    spans = stripes(n, matrices, unit)
    if executor is HERE or not view.has_address:
        for start, stop in spans:
            yield task(_PeopleStripe(view, start, stop, seconds=seconds, progress=progress, **more))
        return
    most = max(stop - start for start, stop in spans)
    cuts = [0]  # stripes of about as many pairs
    while cuts[-1] < n:
        even = int((cuts[-1] ** 2 + n**2 / SHARES) ** 0.5) // unit * unit
        cuts.append(min(n, cuts[-1] + most, max(cuts[-1] + unit, even)))
    share = view.share_of_snps(0, p)
    items = [_PeopleStripe(share, start, stop, seconds=seconds, **more) for start, stop in pairwise(cuts)]
    for done, found in enumerate(executor.map(task, items), 1):
        yield found
        if progress is not None:
            progress(done, len(items), "people")


def _list_pairs(rows: _PeopleStripe) -> tuple[Any, ...]:
    """Pairs of some people and all before them, and their counts."""
    counts, step, parts = _shared_counts(rows), max(1, PAIRS // max(1, rows.stop)), []
    for start in range(rows.start, rows.stop, step):
        stop = min(start + step, rows.stop)
        part = [count[start - rows.start : stop - rows.start] for count in counts]
        parts.append(_select_pairs(start, stop, part, rows.least))
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


def _select_pairs(start: int, stop: int, counts: list[Any], least: float | None) -> tuple[Any, ...]:
    """The later and the earlier of each pair that is related, and its counts, as arrays of NumPy."""
    i, j = _nonzero(_earlier(start, stop, counts[0]))
    found = [count[i, j] for count in counts]
    i = i + start
    if least is not None:
        kept = _kinship(*found[1:]) >= least
        i, j, found = i[kept], j[kept], [count[kept] for count in found]
    return to_numpy(i), to_numpy(j), *(to_numpy(count, np.int32) for count in found)


def _earlier(start: int, stop: int, counts: Any) -> Any:
    """Which pairs (rows start to stop) × (all before stop) have the later person first, as counts have them."""
    rows, columns = to_device(np.arange(start, stop), counts.device if is_tensor(counts) else None), counts.shape[1]
    return rows[:, None] > to_device(np.arange(columns), rows.device if is_tensor(counts) else None)


def _nonzero(mask: Any) -> Any:
    return mask.nonzero(as_tuple=True) if is_tensor(mask) else np.nonzero(mask)


def kinship_error(model: GenotypePCA) -> float:
    r"""Standard error of the kinship of two strangers, about, at the SNPs of a fit.

    φ is ½ − S/4H, with S the sum of squared differences of their genotypes and H the mean number of heterozygous ones.
    At a SNP of frequency p, with h = 2pq, S has the mean 2h and the variance 2h + 2h², H the variance h(1 − h)/2, and
    both the covariance h − 3h². SNPs that are linked count as the effective number n′ of the Tracy–Widom test, after
    the components that stand out of the noise:

    .. math:: \mathrm{se}(\varphi)^2 \approx \frac{1}{4 n' \bar h^2} \Bigl(\frac{\overline{2h + 2h^2}}{4}
        + \frac{\overline{h(1-h)}}{2} - \overline{h - 3h^2}\Bigr) = \frac{3\,\overline{h^2}}{4 n' \bar h^2}.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import GenotypePCA, king
    >>> from gramian.genetics.relatives import kinship_error
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> G = Genotypes.from_calls(rng.binomial(2, rng.uniform(0.1, 0.9, (2000, 1)), (2000, 80)))
    >>> bool(np.isclose(kinship_error(GenotypePCA(2).fit(G)), king(G).kinship.std(), rtol=0.15))
    True
    """
    effective = model.tracy_widom_.effective_n
    if not len(effective):
        return np.inf
    f = np.asarray(model.allele_frequency_, dtype=np.float64)
    h = 2 * f * (1 - f)
    independent = max(1.0, float(effective[min(model.n_separated_, len(effective) - 1)]))
    return float(np.sqrt(3 * np.mean(h**2) / independent) / (2 * h.mean()))


def least_kinship(model: GenotypePCA, n: int) -> float:
    """The kinship that among n strangers, at the SNPs of a fit, some pair exceeds with a probability of 0.05."""
    return float(kinship_error(model) * norm.isf(0.05 / max(1.0, n * (n - 1) / 2)))


SCREEN_WORK = 4e11  # products n² × SNPs × 5 that a screen for relatives may take: a few seconds
SCREEN_SNPS = 4000  # of common SNPs leave kinship a standard error of about 0.015
SCREEN_LEAST = 0.06  # kinship by these from which two people are compared by more SNPs
COMMON = 0.05  # minor allele frequency: rarer SNPs say little about kinship
KEYS, KEY_SNPS = 24, 32  # of copies of a person with 2 % of other calls, half agree in all SNPs of a key


@dataclass(frozen=True, eq=False)
class RelativeScreen:
    """Relatives among the people of a fit, as far as a few seconds can tell.

    Attributes
    ----------
    pairs : Kinship
        Those above the cutoff, by all SNPs or as many as were taken: ``pairs.snps``.
    compared : int
        How many people were compared with each other; everybody else only for copies of one person.
    snps : int
        By how many SNPs.
    """

    pairs: Kinship
    compared: int
    snps: int


def screen_relatives(
    source: Genotypes,
    cutoff: float = CUTOFF,
    *,
    first: npt.ArrayLike | None = None,
    work: float = SCREEN_WORK,
    progress: Progress | None = None,
) -> RelativeScreen:
    """Look for relatives in a few seconds, whatever the size of the cohort.

    As many common autosomal SNPs, spread over the genome, as the time allows compare all pairs; those who may be
    related by these are compared by all common SNPs, or again by as many as the time allows. Where even 4,000 SNPs of
    everybody would take too long, so many people are compared as it allows, those of ``first`` before others, and
    everybody is looked through for copies: people who agree in all of 32 SNPs, for some of 24 such sets.

    What is found is a relative by the SNPs named. What is not found is not proved to be none, unless everybody was
    compared by all SNPs: :func:`king` does that.

    Parameters
    ----------
    source : Genotypes
        People and SNPs.
    cutoff : float, default=0.0884
        Kinship above which two people are related.
    first : array-like of int, optional
        Rows of those who matter most, in this order.
    work : float
        Products of genotypes that may be made.
    progress : callable, optional
        Called with the SNPs done, their number and a message.

    Returns
    -------
    RelativeScreen
        The pairs that were found, and how many people and SNPs were compared.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.relatives import screen_relatives
    >>> from gramian.sources.plink import Genotypes
    >>> calls = np.random.default_rng(0).binomial(2, 0.4, (2000, 30))
    >>> calls[:, 29] = calls[:, 3]
    >>> found = screen_relatives(Genotypes.from_calls(calls))
    >>> found.pairs.first.tolist(), found.pairs.second.tolist(), found.compared
    ([29], [3], 30)
    """
    n = source.shape[0]
    by_snp = source.snp_counts().astype(np.float64)
    called = by_snp[:, :3].sum(axis=1)
    f = (2 * by_snp[:, 0] + by_snp[:, 1]) / np.maximum(2 * called, 1)
    usable = is_autosomal(source.snps) & (called > 0)
    common = np.flatnonzero(usable & (np.minimum(f, 1 - f) >= COMMON))
    chosen = common if len(common) >= SCREEN_SNPS else np.flatnonzero(usable)

    def spread(count: float) -> npt.NDArray[np.intp]:
        count = int(max(min(count, len(chosen)), 1))
        return chosen[np.arange(count) * len(chosen) // count]

    empty = np.zeros(0, np.int32)
    at = empty.astype(np.intp)

    def none(snps: int) -> Kinship:
        return Kinship(source.samples, at, at, empty, empty, empty, empty, empty, snps, cutoff)

    if n < 2 or not len(chosen):
        return RelativeScreen(none(len(chosen)), n, len(chosen))
    most = int((work / (5.0 * min(SCREEN_SNPS, len(chosen)))) ** 0.5)
    order = np.arange(n) if first is None else np.asarray(first, dtype=np.intp)
    people = np.arange(n) if n <= most else np.sort(order[:most])
    snps = spread(work / (5.0 * len(people) ** 2))
    least = cutoff if len(snps) == len(chosen) else min(cutoff, SCREEN_LEAST)
    found = king(source.select(samples=people, snps=snps), least=least, progress=progress)
    may_be = np.union1d(people[found.first], people[found.second])
    if len(people) < n:
        may_be = np.union1d(may_be, _find_copies(source, chosen))
    if not len(may_be):
        return RelativeScreen(none(len(snps)), len(people), len(snps))
    may_be = may_be[:most]
    closer = spread(work / (5.0 * len(may_be) ** 2))
    pairs = king(source.select(samples=may_be, snps=closer), least=cutoff, progress=progress)
    first, second = may_be[pairs.first], may_be[pairs.second]
    pairs = replace(pairs, first=first, second=second, samples=source.samples)
    return RelativeScreen(pairs, len(people), len(snps))


def _find_copies(source: Genotypes, chosen: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """People who agree with somebody in all SNPs of one of some sets, missing calls among them."""
    found = np.zeros(source.shape[0], np.bool_)
    sets = chosen[np.linspace(0, len(chosen) - 1, KEYS * KEY_SNPS).astype(np.intp)].reshape(KEY_SNPS, KEYS).T
    if len(chosen) < KEYS * KEY_SNPS:
        return np.flatnonzero(found)
    for each in sets:
        view = source.select(snps=each)
        calls = view.calls(0, len(each)).astype(np.uint64) & np.uint64(3)
        keys = np.bitwise_or.reduce(calls << (2 * np.arange(len(each), dtype=np.uint64))[:, None], axis=0)
        _, place, times = np.unique(keys, return_inverse=True, return_counts=True)
        known = np.sum(calls < 3, axis=0) > KEY_SNPS // 2
        found |= (times[place] > 1) & known
    return np.flatnonzero(found)


def _refuse_haploid(source: Genotypes, what: str) -> None:
    """Raise where SNPs lie on chromosomes of which somebody has one copy."""
    found = ", ".join(sorted(HAPLOID & set(source.snps.chromosome)))
    if found:
        raise ValueError(
            f"{what} is of autosomes, and SNPs on {found} are among those given: leave them out (Filters)."
        )


def _kinship(hethet: Any, ibs0: Any, first: Any, second: Any) -> Any:
    """φ, of arrays or of tensors: exact counts and the same operations in float64 give the same bits."""
    if is_tensor(first):
        hethet, ibs0, first, second = hethet.double(), ibs0.double(), first.double(), second.double()
        smaller = first.minimum(second)
    else:
        smaller = np.minimum(first, second).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 0.5 - (4.0 * ibs0 + first + second) / (4.0 * (hethet + smaller))


def decode_blocks(
    view: Any, stop: int, lines: Any, progress: Progress | None = None, rows: int | None = None
) -> Iterator[list[Any]]:
    """Yield, for blocks of SNPs × the first ``stop`` people, a·g + b for each of the lines (a, b), 0 where missing.

    A line is one for all SNPs, or one for each. Blocks are of ``rows`` SNPs, or of as many as the memory allows.
    """
    held, place, width = view.bytes_of(0, stop)
    in_order, p = np.array_equal(place, np.arange(stop)), view.shape[1]
    rows = min(p, rows or max(64, min(SNPS, memory_budget() // (64 * width))))
    decoders = [Decoder(rows, width, np.float32) for _ in lines]
    for lo, hi in view.spans(rows):
        packed = view.packed(lo, hi)[:, held]
        found = []
        for decode, line in zip(decoders, lines, strict=True):
            matrix = decode(packed, np.broadcast_to(line, (p, 2))[lo:hi])
            found.append(matrix[:, :stop] if in_order else matrix[:, place])
        yield found
        view.give_back()
        if progress is not None:
            progress(hi, p, "SNPs")


SIGN, SEEN = (1.0, -1.0), (0.0, 1.0)  # +1, 0, −1 for 2, 1, 0 copies of A1; 1 where a call is there


def _may_be_related(source: Genotypes, least: float, device: Any, progress: Progress | None) -> npt.NDArray[np.intp]:
    """People with a pair whose kinship may reach ``least``.

    With missing calls m, and a pair's calls that differ, Σ(xᵢ − xⱼ)² ≥ Aᵢ − mⱼ + Aⱼ − mᵢ − 2 xᵢ·xⱼ, A being the number
    of homozygous calls; the denominator is at most 4 min(Hᵢ, Hⱼ), H being the heterozygous ones.
    """
    two, one, none, missing = to_device(source.counts(device).by_sample.T.astype(np.float64), device)
    own = two + none - missing
    if device is None:
        found = np.zeros(source.shape[0], np.bool_)
        for near in _by_rows(_bound_pairs, source, 1, progress, least=least, own=own, one=one):
            found[: len(near)] |= near
        return np.flatnonzero(found)
    found = to_device(np.zeros(source.shape[0], np.bool_), device)
    for first, last, products in _shared_signs_on(source, device, progress):
        _mark_near(found, first, last, products, own, one, least, ROWS)
    return np.flatnonzero(to_numpy(found))


def _bound_pairs(rows: _PeopleStripe) -> Mask:
    """Who, of the people before ``rows.stop``, may be related to one of the rows, or is one who may be."""
    found = np.zeros(rows.stop, np.bool_)
    least = -1.0 if rows.least is None else rows.least
    _mark_near(
        found, rows.start, rows.stop, _shared_signs(rows), rows.own, rows.one, least, max(1, PAIRS // len(rows.own))
    )
    return found


def _mark_near(found: Any, first: int, last: int, products: Any, own: Any, one: Any, least: float, step: int) -> None:
    """Mark the people of pairs (rows first to last) × (all before last) whose kinship may reach ``least``."""
    for start in range(first, last, step):
        stop = min(start + step, last)
        part = products[start - first : stop - first, :stop]
        differ = (own[start:stop, None] + own[:stop] - 2.0 * part).clip(min=0.0)
        smaller = one[start:stop, None].clip(max=one[:stop])
        near = 2.0 * smaller - differ >= 4.0 * (least - 1e-9) * smaller
        near &= _earlier(start, stop, near)
        found[start:stop] |= near.any(1)
        found[:stop] |= near.any(0)


def _shared_signs(rows: _PeopleStripe) -> Any:
    """The xᵢ·xⱼ of pairs of some people and all before them."""
    view, start, stop, loops = rows.source, rows.start, rows.stop, compiled_loops(rows.seconds)
    if loops is not None:
        total = np.zeros((stop - start, stop), np.int32)
        for planes in _turn(loops, view, stop, rows.progress):
            parallel_each(
                lambda at: loops.add_products(planes, at, min(at + TILE, stop), start, total),  # noqa: B023
                range(start, stop, TILE)[::-1],
            )
        return total
    products = np.zeros((stop - start, stop), np.float64 if view.shape[1] >= EXACT else np.float32)
    for (x,) in decode_blocks(view, stop, [SIGN], rows.progress):
        products += x[:, start:].T @ x
    return products


def _shared_signs_on(view: Genotypes, device: Any, progress: Progress | None) -> Iterator[tuple[int, int, Any]]:
    """The same on a device."""
    for start, stop, (products,) in _multiply_planes(view, device, lambda x, seen: [(x, x)], 1, progress):
        yield start, stop, products.double()


def _shared_counts_on(view: Genotypes, device: Any, progress: Progress | None) -> Iterator[tuple[int, int, list[Any]]]:
    """What :func:`_shared_counts` yields, as int32 on a device."""

    def factors(x: Any, seen: Any) -> list[tuple[Any, Any]]:
        het = seen - x * x
        return [(seen, seen), (het, het), (x, x), (het, seen), (seen, het)]

    for start, stop, (both, hets, same, row, column) in _multiply_planes(view, device, factors, 5, progress):
        row, column = row - hets, column - hets
        yield start, stop, [both, hets, (both - hets - row - column - same) // 2, row, column]


def _multiply_planes(
    view: Genotypes,
    device: Any,
    factors: Callable[[Any, Any], list[tuple[Any, Any]]],
    products: int,
    progress: Progress | None,
) -> Iterator[tuple[int, int, list[Any]]]:
    """Yield start, stop and sums over the SNPs of products of pairs of planes, people start to stop × all before stop.

    Planes are made of the signs and the calls of a chunk of SNPs, one row a person. A quarter of the free memory holds
    sums, an eighth planes; the rows of a stripe are multiplied some at a time, so that little is computed twice.
    """
    (n, p), free, loops = view.shape, free_bytes(device), gpu().genotypes
    stripe = max(ROWS, free // (16 * products * max(1, n)) // ROWS * ROWS)
    for first in range(0, n, stripe):
        last = min(first + stripe, n)
        held, place, _ = view.bytes_of(0, last)
        index = to_device(place, device)
        kept = held if isinstance(held, slice) else to_device(held, device)
        cuts = [(start, min(start + ROWS, last)) for start in range(first, last, ROWS)]
        sums = [[loops.no_sums(stop - start, stop, device) for _ in range(products)] for start, stop in cuts]
        chunk = max(64, free // (64 * last))
        for lo, hi, packed in view.blocks_on(device):
            for at in range(0, hi - lo, chunk):
                pairs = factors(*loops.call_planes(packed[at : min(at + chunk, hi - lo), kept], index))
                for (start, stop), totals in zip(cuts, sums, strict=True):
                    for total, (a, b) in zip(totals, pairs, strict=True):
                        loops.add_product(total, a[start:stop], b[:stop])
            if progress is not None:
                progress(hi, p, "SNPs")
        for (start, stop), totals in zip(cuts, sums, strict=True):
            yield start, stop, [total[: stop - start, :stop] for total in totals]


def stripes(n: int, matrices: int, unit: int = 1) -> list[tuple[int, int]]:
    """(start, stop) of whole units of rows, of which so many matrices of rows × n numbers fit in the working memory."""
    rows = max(-(-64 // unit), memory_budget() // max(1, 8 * matrices * n) // unit) * unit
    return [(start, min(start + rows, n)) for start in range(0, n, rows)]


def _shared_counts(rows: _PeopleStripe) -> list[Any]:
    """The counts of pairs of some people and all before them.

    SNPs that both have, hethet, ibs0, het of the row alone, het of the column alone.
    """
    view, start, stop, loops = rows.source, rows.start, rows.stop, compiled_loops(rows.seconds)
    if loops is not None:
        counts = np.zeros((5, stop - start, stop), np.int32)
        for planes in _turn(loops, view, stop, rows.progress):
            parallel_each(
                lambda at: loops.add_counts(planes, at, min(at + TILE, stop), start, counts),  # noqa: B023
                range(start, stop, TILE)[::-1],
            )
        hets, apart, alone, other, alike = counts
        alike += hets
        alike += alone
        alike += other
        return [alike, hets, apart, alone, other]
    n, p = view.shape
    whole = stop - start == n
    shape, kind = (stop - start, stop), np.float64 if p >= EXACT else np.float32
    both, hets, same, row = (np.zeros(shape, kind) for _ in range(4))
    column = row if whole else np.zeros(shape, kind)
    for x, o in decode_blocks(view, stop, [SIGN, SEEN], rows.progress):
        h = o - x * x
        both += o[:, start:].T @ o
        hets += h[:, start:].T @ h
        same += x[:, start:].T @ x
        row += h[:, start:].T @ o
        if not whole:
            column += o[:, start:].T @ h
    row, column = row - hets, (row.T if whole else column) - hets
    return [both, hets, (both - hets - row - column - same) / 2, row, column]


def _turn(loops: Any, view: Any, stop: int, progress: Progress | None) -> Iterator[Any]:
    """Yield the bits of the first ``stop`` people, for blocks of SNPs: heterozygous, homozygous, two copies of A1."""
    held, place, width = view.bytes_of(0, stop)
    (_, p), least = view.shape, 64 * loops.VECTOR
    in_order = np.array_equal(place, np.arange(stop))
    rows = int(np.clip(memory_budget() // (4 * width) // least * least, least, TURNED))
    for lo, hi in view.spans(rows):
        words = pad_to_words(view.packed(lo, hi)[:, held], 2)
        turned = np.empty((4 * width, 3, -(-(hi - lo) // least) * loops.VECTOR), np.uint64)
        parallel_each(lambda at: loops.turn_planes(words, turned, at, at + 1), range(words.shape[1] // 2))  # noqa: B023
        yield turned[:stop] if in_order else turned[place]
        view.give_back()
        if progress is not None:
            progress(hi, p, "SNPs")


def unrelated(found: Kinship, cutoff: float = CUTOFF) -> Mask:
    """People of whom no two are related: as many as PLINK 2's rule finds (``--king-cutoff``).

    While a pair above the cutoff is left, the partner of the first person with one relative goes; where nobody has
    just one, the first person with the most.

    Parameters
    ----------
    found : Kinship
        Pairs, with ``least`` not above the cutoff.
    cutoff : float, default=0.0884
        Kinship above which two people are related: 0.354, 0.177, 0.0884 and 0.0442 part duplicates, first, second and
        third degree from what is more distant.

    Returns
    -------
    ndarray of bool
        Those who stay.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import king, unrelated
    >>> from gramian.sources.plink import Genotypes
    >>> calls = np.random.default_rng(0).binomial(2, 0.4, (500, 4))
    >>> calls[:, 3] = calls[:, 1]
    >>> unrelated(king(Genotypes.from_calls(calls)))
    array([ True,  True,  True, False])
    """
    if found.least is not None and found.least > cutoff:
        raise ValueError(f"cutoff={cutoff!r}: pairs below {found.least:g} were left out of the table.")
    related = found.kinship > cutoff * (1 + 2.0**-44)
    relatives: dict[int, set[int]] = {}
    for i, j in zip(found.first[related].tolist(), found.second[related].tolist(), strict=True):
        relatives.setdefault(i, set()).add(j)
        relatives.setdefault(j, set()).add(i)
    kept = np.ones(len(found.samples), np.bool_)
    single = [i for i, others in relatives.items() if len(others) == 1]
    most = [(-len(others), i) for i, others in relatives.items()]
    heapq.heapify(single)
    heapq.heapify(most)
    while relatives:
        while single and len(relatives.get(single[0], ())) != 1:
            heapq.heappop(single)
        if single:
            (gone,) = relatives[single[0]]
        else:
            while -most[0][0] != len(relatives.get(most[0][1], ())):  # of before others went
                heapq.heappop(most)
            gone = most[0][1]
        kept[gone] = False
        for other in relatives.pop(gone):
            relatives[other].discard(gone)
            left = len(relatives[other])
            if not left:
                del relatives[other]
                continue
            heapq.heappush(most, (-left, other))
            if left == 1:
                heapq.heappush(single, other)
    return kept


def write_king_files(
    found: Kinship, prefix: str | os.PathLike[str], kept: Mask | None = None, *, overwrite: bool = False
) -> list[Path]:
    """Write PREFIX.kin0 and, given who stays, PREFIX.king.cutoff.in.id and .out.id as PLINK 2 does; all or none.

    Parameters
    ----------
    found : Kinship
        What :func:`king` found.
    prefix : path-like
        Name of the files without their endings.
    kept : ndarray of bool, shape (n,), optional
        Who stays, as :func:`unrelated` says.
    overwrite : bool, default=False
        Whether files of these names may be replaced.

    Returns
    -------
    list of Path
        The files.
    """
    home = Path(prefix)
    names = [home.name + ending for ending in (".kin0", ".king.cutoff.in.id", ".king.cutoff.out.id")]
    names = names if kept is not None else names[:1]
    with write_whole_folder(home.parent, names, overwrite=overwrite) as folder:
        columns = found.table()
        columns |= {name: round_like_plink(columns[name]) for name in ("HETHET", "IBS0", "KINSHIP")}
        write_plink_table(folder / names[0], columns)
        for name, mask in zip(names[1:], () if kept is None else (kept, ~kept), strict=True):
            write_plink_table(folder / name, {"FID": found.samples.fid[mask], "IID": found.samples.iid[mask]})
    return [home.parent / name for name in names]


GRM_ENDINGS = (".grm.bin", ".grm.N.bin", ".grm.id")


def grm_rows(source: Genotypes, progress: Progress | None = None) -> Iterator[tuple[int, int, Any, Any]]:
    r"""Yield start, stop, and rows start to stop of the relationship matrix and of its counts, up to column stop.

    .. math:: K_{ij} = \frac{1}{N_{ij}} \sum_s \frac{(g_{is} - 2f_s)(g_{js} - 2f_s)}{2 f_s (1 - f_s)},

    the sum being over the :math:`N_{ij}` SNPs at which both were read and f the frequency among founders. SNPs that do
    not vary among them add nothing to the sum and, as in PLINK 2, one to N.
    """
    _refuse_haploid(source, "The matrix")
    founders = founder_mask(source)
    if not founders.any():
        raise ValueError("Nobody is a founder, without parents in the .fam file: there is nobody to count alleles in.")
    a1, alleles = count_alleles(source.select(samples=founders))
    f = a1 / np.maximum(alleles, 1)
    varies = (f > 0) & (f < 1)
    if not varies.any():
        raise ValueError("No SNP varies among the founders.")
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, 2 * f * (1 - f), 1)), 0.0)
    lines = [np.stack([scale, -2 * f * scale], axis=1), np.broadcast_to(SEEN, (len(f), 2))]
    for start, stop, sums, both in _by_rows(_relate_people, source, 5, progress, unit=PEOPLE, lines=lines):
        with np.errstate(divide="ignore", invalid="ignore"):
            yield start, stop, sums / both, both


def _snps_at_a_time(n: int) -> int:
    """SNPs that sums over n people add at a time: they depend on n alone, and so do the last bits of the sums."""
    return int(np.clip(DECODED // max(1, n), 64, SNPS))


def _relate_people(rows: _PeopleStripe) -> tuple[int, int, Array, Array]:
    """Start and stop of some people, and two sums of products over SNPs of them and of all up to them.

    Squares of people are multiplied by one thread each: the bits are those of any number of threads and workers.
    """
    start, stop = rows.start, rows.stop
    top, bottom = np.zeros((stop - start, stop)), np.zeros((stop - start, stop))
    for left, right in _numbers_of_people(rows):

        def add(at: int, left: Any = left, right: Any = right) -> None:
            end = min(at + PEOPLE, stop)
            for sums, block in ((top, left), (bottom, right)):
                for other in range(0, end, PEOPLE):
                    last = min(other + PEOPLE, stop)
                    sums[at - start : end - start, other:last] += block[:, at:end].T @ block[:, other:last]

        parallel_each(add, range(start, stop, PEOPLE)[::-1])
    return start, stop, top, bottom


def _numbers_of_people(rows: _PeopleStripe) -> Iterator[tuple[Any, Any]]:
    """For blocks of SNPs two matrices, SNPs × people: as decoded, or the rest and the spread by own frequencies."""
    n, stop, V = rows.source.shape[0], rows.stop, rows.scores
    size, at = _snps_at_a_time(n), 0
    for left, right in decode_blocks(rows.source, stop, rows.lines, rows.progress, size):
        if V is None:
            yield left, right
            continue
        beta = rows.coefficients[at : at + size]
        at += size
        rest, spread = np.empty_like(left), np.empty_like(left)

        def fill(first: int, g: Any = left, o: Any = right, beta: Any = beta, out: Any = (rest, spread)) -> None:
            part = slice(first, min(first + PEOPLE, stop))
            mu = beta @ V[part].T
            usable = (o[:, part] > 0) & (mu >= LEAST_FREQUENCY) & (mu <= 1 - LEAST_FREQUENCY)
            out[0][:, part] = np.where(usable, g[:, part] - 2 * mu, np.float32(0))
            out[1][:, part] = np.sqrt(np.where(usable, mu * (1 - mu), np.float32(0)))

        parallel_each(fill, range(0, stop, PEOPLE))
        yield rest, spread


@dataclass(frozen=True, eq=False)
class Relationships:
    """A genetic relationship matrix as it is stored.

    Attributes
    ----------
    samples : ndarray of shape (n, 2)
        FID and IID.
    matrix : ndarray of shape (n, n)
        K.
    counts : ndarray of shape (n, n)
        SNPs that each pair was read at.
    """

    samples: npt.NDArray[np.object_]
    matrix: Array
    counts: Array


def write_grm(
    source: Genotypes,
    prefix: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Write the relationship matrix as GCTA and ``plink2 --make-grm-bin`` do, without holding all of it.

    PREFIX.grm.bin is the lower triangle with the diagonal, by rows, in float32; PREFIX.grm.N.bin the numbers of SNPs
    in the same form; PREFIX.grm.id has FID and IID. All three appear together.

    Parameters
    ----------
    source : Genotypes
        People and SNPs.
    prefix : path-like
        Name of the three files without their endings.
    overwrite : bool, default=False
        Whether files of these names may be replaced.
    progress : callable, optional
        Called with the work done, all of it, and a message.

    Returns
    -------
    list of Path
        The files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from gramian.genetics import read_grm, write_grm
    >>> from gramian.sources.plink import Genotypes
    >>> G = Genotypes.from_calls(np.random.default_rng(0).binomial(2, 0.4, (500, 3)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_grm(G, Path(folder, "x"))
    ...     read_grm(Path(folder, "x")).matrix.shape
    (3, 3)
    """
    home = Path(prefix)
    names = [home.name + ending for ending in GRM_ENDINGS]
    with write_whole_folder(home.parent, names, overwrite=overwrite) as folder:
        with (folder / names[0]).open("wb") as values, (folder / names[1]).open("wb") as counts:
            for start, stop, matrix, both in grm_rows(source, progress):
                lower = np.arange(stop) <= np.arange(start, stop)[:, None]
                values.write(matrix[lower].astype("<f4").tobytes())
                counts.write(both[lower].astype("<f4").tobytes())
        ids = one_field(source.samples.fid), one_field(source.samples.iid)
        write_rows(folder / names[2], "%s\t%s\n", *ids)
    return [home.parent / name for name in names]


def read_grm(prefix: str | os.PathLike[str]) -> Relationships:
    """Read PREFIX.grm.bin, .grm.N.bin and .grm.id, of which the sizes must agree.

    Parameters
    ----------
    prefix : path-like
        Name of the three files without their endings.

    Returns
    -------
    Relationships
        The matrix, the numbers of SNPs, and the people.
    """
    home = Path(prefix)
    paths = [home.with_name(home.name + ending) for ending in GRM_ENDINGS]
    rows = [line.split() for line in paths[2].read_text("utf-8").splitlines() if line.strip()]
    bad = next((i for i, row in enumerate(rows) if len(row) != 2), None)
    if bad is not None:
        raise ValueError(f"{paths[2]}: line {bad + 1} has {len(rows[bad])} fields; FID and IID were expected.")
    n = len(rows)
    found = []
    for path in paths[:2]:
        expected = 4 * (n * (n + 1) // 2)
        if path.stat().st_size != expected:
            raise ValueError(
                f"{path}: {path.stat().st_size} bytes; the triangle of {n} samples ({paths[2].name}) takes {expected}."
            )
        full = np.zeros((n, n))
        full[np.tril_indices(n)] = np.fromfile(path, "<f4")
        found.append(np.tril(full) + np.tril(full, -1).T)
    return Relationships(np.array(rows, dtype=object), *found)


NEAR = 2.0**-5.5  # kinship above which two people are related, and below minus which they are of different ancestry
COPIES = (1.0, 0.0)  # copies of A1
LEAST_FREQUENCY = 0.01


@dataclass(frozen=True, eq=False)
class PcAir:
    """Components of a cohort with relatives.

    Attributes
    ----------
    scores : ndarray of shape (n, k)
        Of everybody: those of the unrelated as fitted, those of the related projected.
    unrelated : ndarray of bool
        Who the components were found from.
    model : GenotypePCA
        Fitted to them.
    """

    scores: Array
    unrelated: Mask
    model: GenotypePCA


def partition(found: Kinship, related: float = NEAR, divergent: float = -NEAR) -> Mask:
    """People of whom no two are related and who represent all ancestries, by the rule of PC-AiR.

    Whoever has the most relatives among those left goes; of equals, the one with fewer people of other ancestry, then
    the one whose kinship with all adds up to less, then the first.

    Parameters
    ----------
    found : Kinship
        All pairs.
    related, divergent : float
        Kinship above which two people are related, below which they are of different ancestry.

    Returns
    -------
    ndarray of bool
        The unrelated.
    """
    if found.least is not None:
        raise ValueError("PC-AiR needs all pairs, of negative kinship too: king(source) without least.")
    n = len(found.samples)
    phi = np.zeros((n, n))
    phi[found.first, found.second] = phi[found.second, found.first] = np.nan_to_num(found.kinship)
    near, other = phi > related, np.sum(phi < divergent, axis=1)
    total = np.where(near, phi, 0.0).sum(axis=1)
    kept, relatives = np.ones(n, np.bool_), near.sum(axis=1)
    while relatives.max(initial=0):
        gone = int(np.lexsort((np.arange(n), total, other, -relatives))[0])
        kept[gone] = False
        relatives = np.where(kept, relatives - near[gone], 0)
        relatives[gone] = 0
    return kept


def pc_air(source: Genotypes, found: Kinship, pca: GenotypePCA | None = None) -> PcAir:
    """Components of the unrelated, on which everybody else is projected.

    Parameters
    ----------
    source : Genotypes
        People and pruned SNPs.
    found : Kinship
        All their pairs, as :func:`~gramian.genetics.king` gives them.
    pca : GenotypePCA, optional
        Settings of the fit.

    Returns
    -------
    PcAir
        Scores of everybody, in the scale of ``transform``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import GenotypePCA, king, pc_air
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> calls = rng.binomial(2, np.repeat(rng.uniform(0.3, 0.7, (20_000, 2)), 20, axis=1))
    >>> calls[:, 39] = calls[:, 20]
    >>> G = Genotypes.from_calls(calls)
    >>> air = pc_air(G, king(G), GenotypePCA(2))
    >>> air.unrelated.sum(), air.scores.shape
    (np.int64(39), (40, 2))
    """
    if len(found.samples) != source.shape[0]:
        raise ValueError(f"Kinship is of {len(found.samples)} people, and the genotypes of {source.shape[0]}.")
    kept = partition(found)
    model = (pca or GenotypePCA()).fit(source.select(samples=kept))
    scores = np.empty((source.shape[0], len(model.components_)))
    scores[kept] = model.eigenvectors_ * model.score_lengths_
    if not kept.all():
        scores[~kept] = project_relatives(model, source, kept, found)
    return PcAir(scores, kept, model)


def project_relatives(model: GenotypePCA, source: Genotypes, fitted: Mask, found: Kinship | None) -> Array:
    r"""Scores of those of a cohort who are not in the fit, and may be related to people who are.

    V fits the noise of the people of the fit, which a relative of theirs has a part of, :math:`w = \sum 2\varphi` over
    all relatives who are in the fit, 1 at most: a copy all of it, a child of one parent half. With a slope s by which
    least squares draw strangers to the centre, theirs is s + (1 − s)w; OADP, which divides by s, would put a copy 1/s
    times as far out. With the ratio r of OADP to least squares, for each component over all who are projected,

    .. math:: \text{score} = \frac{\mathrm{OADP}}{1 + (r - 1)\,w}.

    Parameters
    ----------
    model : GenotypePCA
        Fitted to ``source.select(samples=fitted)``, at all its SNPs.
    source : Genotypes
        Everybody.
    fitted : ndarray of bool
        Who is in the fit.
    found : Kinship or None
        Pairs of related people of the source.

    Returns
    -------
    ndarray of shape (those who are not fitted, k)
        In the scale of ``transform``.
    """
    others = source.select(samples=~fitted)
    scores = project(model, others, ambiguous="keep").scores  # of one file, and so of one strand
    if found is None or not len(found.first):
        return scores
    phi = np.nan_to_num(found.kinship)
    near = phi > NEAR
    part = np.zeros(len(fitted))
    for one, other in ((found.first, found.second), (found.second, found.first)):
        shared = near & fitted[other]
        np.add.at(part, one[shared], 2 * phi[shared])
    part = np.minimum(part, 1.0)[~fitted]
    if not part.any():
        return scores
    drawn = project(model, others, "least-squares", ambiguous="keep").scores
    size = np.sum(drawn**2, axis=0)
    ratio = np.divide(np.sum(scores * drawn, axis=0), size, out=np.ones(len(size)), where=size > 0)
    return np.asarray(scores / (1 + (np.maximum(ratio, 1.0) - 1) * part[:, None]))


def pc_relate(
    source: Genotypes,
    scores: npt.ArrayLike,
    *,
    training: Mask | None = None,
    small_sample: bool = True,
    progress: Progress | None = None,
) -> Array:
    r"""Kinship of all pairs, ancestry taken out: PC-Relate.

    Every person's allele frequencies are a linear function of their components, found by least squares from the
    ``training`` set:

    .. math:: 2\mu = g V (V^TV)^{-1} V^T,\qquad
        \varphi_{ij} = \frac{\sum_s (g_{is} - 2\mu_{is})(g_{js} - 2\mu_{js})}
        {4\sum_s \sqrt{\mu_{is}(1-\mu_{is})\,\mu_{js}(1-\mu_{js})}},

    V being the components and a column of ones, and the sums over SNPs at which both were read and both frequencies lie
    between 0.01 and 0.99. Missing calls are the SNP's mean where frequencies are learnt.

    In a small cohort the frequencies fit noise, and the more so the farther out two people lie on a component:
    :math:`\varphi_{ij}` falls or rises with :math:`v_{ik}v_{jk}`. GENESIS corrects that by default, and so does this:
    for one component after the other it takes from :math:`\varphi_{ij}`, and from the inbreeding coefficient on the
    diagonal, the line in :math:`v_{ik}v_{jk}` that fits those below :math:`2^{-5.5}` best.

    Parameters
    ----------
    source : Genotypes
        People and pruned SNPs.
    scores : array-like of shape (n, k)
        Components of everybody that stand for ancestry, as :func:`pc_air` gives them.
    training : ndarray of bool, optional
        Unrelated people, from whom frequencies are learnt; all by default.
    small_sample : bool, default=True
        Whether to correct for small samples.
    progress : callable, optional
        Called with the SNPs done, their number and a message.

    Returns
    -------
    ndarray of shape (n, n)
        φ; on the diagonal ½(1 + the inbreeding coefficient).
    """
    n, U = source.shape[0], np.asarray(scores, dtype=np.float64)
    if U.ndim != 2 or len(U) != n or not np.isfinite(U).all():
        raise ValueError(f"scores has the shape {U.shape}, or values that are not finite; {n} people need a row each.")
    V = np.column_stack([np.ones(n), U])
    use = np.ones(n, np.bool_) if training is None else np.asarray(training, dtype=np.bool_)
    if use.shape != (n,) or use.sum() <= V.shape[1]:
        raise ValueError(f"training has {use.sum()} people of {use.shape}; more than {V.shape[1]} of {n} are needed.")
    weights = (np.linalg.pinv(V[use]) / 2).astype(np.float32)  # of calls, for coefficients of μ
    if len(stripes(n, 6)) > 1:
        raise MemoryError(f"Kinship of {n:,} people takes more than the working memory: take fewer.")
    size, p, executor = _snps_at_a_time(n), source.shape[1], current_executor()
    learn = _FrequencyTask(use, weights, size)
    spans: Any = [source.select(snps=np.arange(a, min(a + size, p))) for a in range(0, p, size)]
    if executor is not HERE and source.has_address:
        spans = executor.map(learn, [source.share_of_snps(a, min(a + size, p)) for a in range(0, p, size)])
    else:
        spans = map(learn, spans)
    found = []
    for part in spans:
        found.append(part)
        if progress is not None:
            progress(sum(map(len, found)), 2 * p, "SNPs")
    top, bottom = np.zeros((n, n)), np.zeros((n, n))
    told = None if progress is None else _SecondHalf(progress)
    kinds = {"lines": [COPIES, SEEN], "scores": V.astype(np.float32), "coefficients": np.concatenate(found)}
    for start, stop, *parts in _by_rows(_relate_people, source, 6, told, unit=PEOPLE, **kinds):
        for sums, part in zip((top, bottom), parts, strict=True):
            sums[start:stop, :stop] = part
    for sums in (top, bottom):
        sums[:] = np.tril(sums) + np.tril(sums, -1).T
    with np.errstate(divide="ignore", invalid="ignore"):
        phi = np.asarray(top / (4 * bottom))
    return _correct_small_sample(phi, U) if small_sample else phi


@dataclass(frozen=True)
class _SecondHalf:
    """Progress of the second of two passes."""

    progress: Progress

    def __call__(self, done: int, total: int, message: str) -> None:
        self.progress(total + done, 2 * total, message)


@dataclass(frozen=True, eq=False)
class _FrequencyTask:
    """Coefficients of people's own allele frequencies at some SNPs, here or by a worker."""

    use: Mask
    weights: Any
    size: int

    def __call__(self, view: Any) -> Any:
        ((g, o),) = decode_blocks(view, view.shape[0], [COPIES, SEEN], rows=self.size)
        mean = (g.sum(axis=1) / np.maximum(1.0, o.sum(axis=1)))[:, None]
        with quiet_blas():
            return np.where(o > 0, g, mean)[:, self.use] @ self.weights.T

    def describe(self, view: Any) -> str:
        return str(view)


def _correct_small_sample(phi: Array, scores: Array) -> Array:
    """Kinship less what goes along a line with the products of two people's scores, component by component."""
    n = len(phi)
    values, upper = phi.copy(), np.tri(n, dtype=np.bool_).T
    values[np.diag_indices(n)] = 2 * phi.diagonal() - 1
    for score in scores.T:
        product = np.multiply.outer(score, score)
        few = upper & (values < NEAR)
        x, y = product[few], values[few]
        if not len(x):
            break
        apart = x - x.mean()
        spread = apart @ apart
        slope = apart @ y / spread if spread > 0 else 0.0
        values -= y.mean() + slope * (product - x.mean())
    values[np.diag_indices(n)] = (1 + values.diagonal()) / 2
    return values
