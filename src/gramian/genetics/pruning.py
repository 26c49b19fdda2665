"""SNPs that say little twice: pruning by linkage disequilibrium as PLINK does it, and clumping."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gramian.compute.bits import compiled_loops, hide, pad_to_words, shared_sums
from gramian.compute.executor import HERE, current_executor
from gramian.compute.genotypes import Decoder
from gramian.compute.threads import parallel_each
from gramian.genetics.filters import genome_order
from gramian.genetics.genotypes import count_alleles
from gramian.genetics.text import list_few, one_field
from gramian.inputs.progress import Progress
from gramian.inputs.values import check_choice
from gramian.sources.errors import Argument, SourceError
from gramian.sources.plink import Genotypes, Snps
from gramian.sources.writing import write_whole_folder

Mask = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]

ORDERS = ("plink2", "plink1")
LEAST_FOUNDERS = 50  # as PLINK 2: r² of fewer is mostly noise
HAPLOID = frozenset({"X", "Y", "MT"})
TIE = 1 + 2.0**-44  # frequencies that differ by less are equal, however they were rounded
NEW = (64, 256)  # fewest and most SNPs that enter the window together
ROWS = 256  # SNPs compared with all others of the window in one product
_BLANK = re.compile(r"\n\n|[^\S\n]")
TILE = 2**20  # decoded genotypes at a time, which stay in a core's cache
SECONDS = 5e-9  # for a genotype, by products in float32
PLANES = 2**20  # packed bytes that enter the window together where loops are compiled


class Window(NamedTuple):
    """A window of so many SNPs, or, where ``kb``, of so many thousand base pairs."""

    size: float
    kb: bool = False

    @classmethod
    def read(cls, given: int | str | Window) -> Window:
        """Return the window of 50, "50" or "500kb".

        Examples
        --------
        >>> from gramian.genetics.pruning import Window
        >>> Window.read("500kb")
        Window(size=500.0, kb=True)
        """
        if isinstance(given, Window):
            return given
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(kb)?", str(given).strip(), re.IGNORECASE)
        if found is None or (found[2] is None and not found[1].isdecimal()) or float(found[1]) <= 0:
            raise ValueError(f"window={given!r} is no window: 50 is one of 50 SNPs, '500kb' one of 500,000 base pairs.")
        size = float(found[1])
        if found[2] is None and size < 2:
            raise ValueError(f"window={given!r} holds no two SNPs that could be compared.")
        return cls(size, found[2] is not None)

    def __str__(self) -> str:
        return f"{self.size:g}{'kb' if self.kb else ''}"


@dataclass(frozen=True, eq=False, repr=False)
class LdPruning:
    """SNPs that linkage disequilibrium leaves, and an account of the others.

    Attributes
    ----------
    source : Genotypes
        What was pruned.
    kept, removed : ndarray of bool
        SNPs that stay, and those that go. SNPs without a place (chromosome 0) are neither.
    monomorphic : int
        Of those removed, the SNPs that do not vary among the founders.
    founders : int
        People who were compared: those without parents.
    window, step, r2, order
        As asked for.
    """

    source: Genotypes
    kept: Mask
    removed: Mask
    monomorphic: int
    founders: int
    window: Window
    step: int
    r2: float
    order: str

    @property
    def unplaced(self) -> int:
        """SNPs on chromosome 0, which are left alone."""
        return int(np.count_nonzero(~(self.kept | self.removed)))

    @property
    def pruned(self) -> Genotypes:
        """A view of the SNPs that stay."""
        return self.source.select(snps=self.kept)

    def table(self) -> dict[str, Any]:
        """Return chromosome, SNPs, kept and removed, ready for ``pandas.DataFrame``."""
        names = self.source.snps.chromosome
        kept, removed = Counter(names[self.kept]), Counter(names[self.removed])
        order = [name for name in genome_order(names) if name != "0"]
        return {
            "chromosome": order,
            "snps": [kept[name] + removed[name] for name in order],
            "kept": [kept[name] for name in order],
            "removed": [removed[name] for name in order],
        }

    def write(self, prefix: str | os.PathLike[str], *, overwrite: bool = False) -> list[Path]:
        """Write PREFIX.prune.in and PREFIX.prune.out, an id in each line, as PLINK does; both or none.

        Raises
        ------
        ValueError
            Where two SNPs have one id, which a list could not tell apart.
        """
        refuse_repeated_ids(self.source.snps)
        home = Path(prefix)
        names = [f"{home.name}.prune.in", f"{home.name}.prune.out"]
        with write_whole_folder(home.parent, names, overwrite=overwrite) as folder:
            for name, mask in zip(names, (self.kept, self.removed), strict=True):
                text = "".join([f"{snp}\n" for snp in self.source.snps.id[mask]])
                plain = text.isascii() and not _BLANK.search(text) and not text.startswith("\n")
                if not plain and len(text.split()) != mask.sum():  # an id is empty, or more than one field
                    text = "".join([f"{snp}\n" for snp in one_field(self.source.snps.id[mask], ".")])
                (folder / name).write_text(text, encoding="utf-8", newline="\n")
        return [home.parent / name for name in names]

    def __repr__(self) -> str:
        return (
            f"LdPruning: {self.kept.sum():,} of {len(self.kept):,} SNPs stay, {self.removed.sum():,} go "
            f"({self.monomorphic:,} of them monomorphic); window {self.window}, step {self.step}, r² > {self.r2:g}, "
            f"{self.founders:,} founders"
        )


def refuse_repeated_ids(snps: Snps) -> None:
    """Raise where SNPs share an id."""
    if snps.are_named or len(set(snps.id)) == len(snps.id):
        return
    twice = [f"{name} ({times} times)" for name, times in Counter(snps.id).items() if times > 1]
    if twice:
        raise ValueError(
            f"{len(twice)} SNP ids are given more than once, so that a list of ids cannot tell SNPs apart: "
            f"{list_few(twice)}. Give every SNP an id of its own, for example by plink2 --set-all-var-ids '@:#:$r:$a'."
        )


def founder_mask(source: Genotypes) -> Mask:
    """Which people have no parents: PLINK counts alleles and correlations in them alone."""
    samples = source.samples
    return np.array([{f, m} <= {"0", ""} for f, m in zip(samples.father, samples.mother, strict=True)], dtype=np.bool_)


def prune(
    source: Genotypes,
    window: int | str | Window = 50,
    step: int = 5,
    r2: float = 0.2,
    *,
    order: str = "plink2",
    least_founders: int = LEAST_FOUNDERS,
    progress: Progress | None = None,
) -> LdPruning:
    r"""Remove SNPs until no two in a window are correlated, as PLINK's ``--indep-pairwise`` does.

    Two SNPs are correlated where, over the n founders at which both were observed,

    .. math:: r^2 = \frac{(n\sum xy - \sum x \sum y)^2}{(n\sum x^2 - (\sum x)^2)(n\sum y^2 - (\sum y)^2)} > t.

    The one whose minor allele is rarer goes, of equals the later one. SNPs that do not vary go first; SNPs on
    chromosome 0 are left alone. r² is estimated by products in float32 and decided by counting bits wherever rounding
    or missing calls leave a doubt: the lists are exact.

    Parameters
    ----------
    source : Genotypes
        Samples and SNPs; chromosomes in one stretch each.
    window : int or str, default=50
        SNPs in a window, or "500kb".
    step : int, default=5
        SNPs by which the window moves; 1 for a window in kb.
    r2 : float, default=0.2
        Largest squared correlation that stays.
    order : {"plink2", "plink1"}, default="plink2"
        In which order pairs are looked at, which decides who stays: of PLINK 2 since 2023, or of PLINK 1.9 and earlier
        versions of PLINK 2.
    least_founders : int, default=50
        Fewer are refused, as by PLINK 2; PLINK 1.9 takes 2.
    progress : callable, optional
        Called with the SNPs done, their number and a message.

    Returns
    -------
    LdPruning
        Masks of those that stay and of those that go.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import prune
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> calls = rng.integers(0, 3, (4, 60))
    >>> calls[2] = calls[0]
    >>> prune(Genotypes.from_calls(calls), window=10, step=5, r2=0.5).kept
    array([ True,  True, False,  True])
    """
    window = Window.read(window)
    check_choice("order", order, ORDERS)
    view, runs, snps = _prepare(source, window, step, r2, least_founders)
    return _remove_by_run(source, view, runs, snps, _prune_run, progress, window, step, r2, order)


class _ChromosomeTask(NamedTuple):
    """A chromosome: its SNPs, what is known of them, and what is asked."""

    name: str
    source: Any  # Genotypes, or a PackedShare in a worker
    snps: _SnpMoments
    position: npt.NDArray[np.int64]
    window: Window
    step: int
    r2: float
    order: str
    rank: npt.NDArray[np.float64] | None
    seconds: float  # that comparing takes without compiled loops, all chromosomes together

    def __str__(self) -> str:
        return f"Chromosome {self.name}"


def _prune_run(run: _ChromosomeTask) -> Mask:
    """Which SNPs of a chromosome go."""
    view, snps, position, r2 = run.source, run.snps, run.position, run.r2
    m, window, loops = len(position), run.window, compiled_loops(run.seconds)
    starts = np.arange(0, m, run.step)  # of the windows
    if window.kb:
        ends = np.searchsorted(position, position[starts] + int(1000 * window.size), side="right")
    else:
        ends = np.minimum(starts + int(window.size), m)
    entered = np.searchsorted(ends, np.arange(m), side="right")  # the first window that holds each SNP
    first = starts[entered]  # the SNP at which that window starts
    removed = bytearray((~snps.varies).tobytes())
    gone = np.frombuffer(removed, dtype=np.bool_)
    if loops is not None:
        decide = loops.prune_backwards if run.order == "plink2" else loops.prune_forwards
        for planes, sums, which, begin in _enter(loops, view, entered, first, gone):
            decide(planes, sums, which, begin, entered, first, snps.major, gone, view.shape[0], r2)
        return gone.copy()
    major = snps.major.tolist()
    for compare in _comparisons(view, snps, entered, first):
        i, j = compare(gone, r2)
        if run.order == "plink2":
            # Every SNP that enters, from the end of its window backwards, is held against those before it that are
            # left, the nearest first: until it goes itself, else they go. One that has gone is held against them too.
            ranks, over = np.lexsort((-i, -j, entered[j])), -1
            for a, b in zip(i[ranks].tolist(), j[ranks].tolist(), strict=True):
                if b == over or removed[a]:
                    continue
                if major[a] <= major[b] * TIE:
                    removed[b], over = 1, b
                else:
                    removed[a] = 1
            continue
        # Every SNP loses or wins against at most one later SNP in a round; rounds go on until none is removed.
        ranks = np.lexsort((j, i, entered[j]))
        a, b, of = i[ranks], j[ranks], entered[j[ranks]]
        cuts = np.flatnonzero(np.diff(of)) + 1
        for pairs in np.split(np.stack([a, b], axis=1), cuts):
            left = pairs.tolist()
            while left:
                over = -1
                for x, y in left:
                    if x == over or removed[x] or removed[y]:
                        continue
                    removed[x if major[x] > major[y] * TIE else y] = 1
                    over = x
                left = [pair for pair in left if not (removed[pair[0]] or removed[pair[1]])]
    return gone.copy()


def _prepare(
    source: Genotypes, window: Window, step: int, r2: float, least_founders: int
) -> tuple[Genotypes, list[tuple[str, int, int]], _SnpMoments]:
    """The founders, the chromosomes and what is known of each SNP; what cannot be compared is refused."""
    if not 0 <= r2 < 1:
        raise ValueError(f"r2={r2!r} must lie between 0 and 1.")
    if step < 1 or (not window.kb and step > window.size):
        raise ValueError(f"step={step!r} must be at least 1 and at most the window, {window}.")
    if window.kb and step != 1:
        raise ValueError(f"step={step!r}: a window in kb moves by 1 SNP: give step=1, or the window in SNPs.")
    people = founder_mask(source)
    founders, least = int(people.sum()), max(2, least_founders)
    if founders < least:
        raise SourceError(
            f"{founders} of {len(people)} samples are founders, people without parents in the .fam file; at least "
            f"{least} are needed, as r² of few is mostly noise. Take the list of SNPs of a larger study, or lower ",
            Argument("least_founders", least),
            ".",
        )
    runs = chromosome_runs(source.snps)
    haploid = [name for name, _, _ in runs if name in HAPLOID]
    if haploid:
        raise SourceError(
            f"Chromosome {', '.join(haploid)}: correlations are of two copies, and men have one here. Leave out "
            "X, Y and MT by ",
            Argument("chromosomes", "1-22"),
            ".",
        )
    for name, start, stop in runs if window.kb else []:  # absent or unsorted positions make no window
        position, ids = source.snps.position[start:stop], source.snps.id[start:stop]
        if name != "0" and stop - start > 1 and not position.any():
            raise ValueError(
                f"Chromosome {name} has no positions, which a window in kb needs: give the window in SNPs."
            )
        back = np.flatnonzero(np.diff(position) < 0) + 1
        if name != "0" and back.size:
            at = back[0]
            raise ValueError(
                f"Chromosome {name}: {ids[at]} at {position[at]} comes after {ids[at - 1]} at {position[at - 1]}; a "
                "window in kb needs sorted positions, as plink2 --sort-vars makes them."
            )
    view = source if people.all() else source.select(samples=people)
    return view, runs, _SnpMoments.of(view)


def _remove_by_run(
    source: Genotypes,
    view: Genotypes,
    runs: list[tuple[str, int, int]],
    snps: _SnpMoments,
    find_removed: Callable[[_ChromosomeTask], Mask],
    progress: Progress | None,
    window: Window,
    step: int,
    r2: float,
    order: str,
    rank: npt.NDArray[np.float64] | None = None,
) -> LdPruning:
    """Go through the chromosomes, several at a time, here or by the workers of a cluster."""
    removed, placed = np.zeros(source.shape[1], np.bool_), np.asarray(source.snps.chromosome != "0", dtype=np.bool_)
    total, done, seconds = int(placed.sum()), [0], view.shape[0] * view.shape[1] * SECONDS
    longest_first = sorted((run for run in runs if run[0] != "0"), key=lambda run: run[1] - run[2])
    executor = current_executor()
    away = executor is not HERE and view.has_address

    def describe(run: tuple[str, int, int]) -> _ChromosomeTask:
        name, start, stop = run
        part: Any = view.share_of_snps(start, stop) if away else view.select(snps=np.arange(start, stop))
        known = snps.take(start, stop)
        ranked = None if rank is None else rank[start:stop]
        position = source.snps.position[start:stop]
        return _ChromosomeTask(name, part, known, position, window, step, r2, order, ranked, seconds)

    def keep(run: tuple[str, int, int], found: Mask) -> None:
        _, start, stop = run
        removed[start:stop] = found
        done[0] += stop - start
        if progress is not None:
            progress(done[0], total, "SNPs")

    def work(run: tuple[str, int, int]) -> None:
        keep(run, find_removed(describe(run)))

    if away:
        for run, found in zip(longest_first, executor.map(find_removed, [*map(describe, longest_first)]), strict=True):
            keep(run, found)
    elif len(longest_first) > 1:
        parallel_each(work, longest_first)
    elif longest_first:  # the threads of BLAS share its products
        work(longest_first[0])
    monomorphic = int(np.count_nonzero(placed & ~snps.varies))
    return LdPruning(source, placed & ~removed, removed, monomorphic, view.shape[0], window, step, r2, order)


def chromosome_runs(snps: Snps) -> list[tuple[str, int, int]]:
    """Name, start and stop of each chromosome, which must be one stretch."""
    names = snps.chromosome
    cuts = np.flatnonzero(names[1:] != names[:-1]) + 1 if len(names) else np.zeros(0, np.intp)
    edges = [0, *cuts.tolist(), len(names)]
    runs = [(str(names[a]), a, b) for a, b in pairwise(edges) if b > a]
    split = [name for name, times in Counter(name for name, _, _ in runs).items() if times > 1]
    if split:
        raise ValueError(
            f"Chromosome {split[0]} is in more than one stretch of the file: sort the SNPs, for example by "
            "plink2 --sort-vars."
        )
    return runs


class _SnpMoments(NamedTuple):
    """What is known of each SNP before any two are compared.

    ``line`` turns copies g into z = a·g + b with Σz = 0 and Σz² = 1, ``largest`` is max z², ``major`` the frequency of
    the commoner allele.
    """

    varies: Mask
    line: npt.NDArray[np.float64]
    missing: npt.NDArray[np.float64]
    largest: npt.NDArray[np.float64]
    major: npt.NDArray[np.float64]

    def take(self, start: int, stop: int) -> _SnpMoments:
        """Those of SNPs start to stop."""
        columns: Any = [values[start:stop] for values in self]
        return _SnpMoments(*columns)

    @classmethod
    def of(cls, view: Genotypes) -> _SnpMoments:
        two, one, none, missing = view.snp_counts().T.astype(np.float64)
        n = two + one + none
        seen = np.maximum(n, 1)
        mean = (2 * two + one) / seen
        squares = two * (2 - mean) ** 2 + one * (1 - mean) ** 2 + none * mean**2
        varies = (n > 0) & (two < n) & (one < n) & (none < n)
        a = np.where(varies, 1 / np.sqrt(np.where(varies, squares, 1)), 0.0)
        far = np.maximum(np.where(none > 0, mean, 0), np.where(two > 0, 2 - mean, 0))
        far = np.maximum(far, np.where(one > 0, np.abs(1 - mean), 0))
        return cls(varies, np.stack([a, -a * mean], axis=1), missing, (a * far) ** 2, np.maximum(mean, 2 - mean) / 2)


def _hold_founders(view: Any) -> tuple[Any, Any]:
    """The bytes of each SNP that hold the people of a view, and in them a mask of their bits, if it hides any."""
    held, _, _ = view.bytes_of(0, view.shape[0])
    mask = np.zeros(view.width, np.uint8)
    np.bitwise_or.at(mask, view.sample_index // 4, (3 << (2 * (view.sample_index % 4))).astype(np.uint8))
    mask = mask[held]
    return held, None if mask.min(initial=255) == 255 else mask


def _enter(loops: Any, view: Any, entered: Index, first: Index, gone: Mask) -> Iterator[tuple[Any, Any, Index, int]]:
    """Yield the planes, sums and numbers of SNPs in the window, and the row from which on they are new.

    Those that are gone when others enter are left out, and those that do not vary never enter: both are in ``gone``.
    """
    m = len(first)
    held, mask = _hold_founders(view)
    rows = np.zeros(0, np.intp)  # SNPs whose planes are kept
    planes = sums = np.zeros(0)
    lo = 0
    while lo < m:
        many = max(int(lo - first[lo]), PLANES // max(1, view.width), NEW[0])
        hi = int(np.searchsorted(entered, entered[min(lo + many, m) - 1], side="right"))
        fresh = lo + np.flatnonzero(~gone[lo:hi])
        packed = view.packed(lo, hi)[:, held]
        packed = packed if len(fresh) == hi - lo else packed[fresh - lo]
        words = pad_to_words(packed if mask is None else hide(packed, mask), 2 * loops.VECTOR)
        stay = np.flatnonzero((rows >= first[lo]) & ~gone[rows])
        begin = len(stay)
        kept, added = planes[stay], sums[stay]
        planes = np.empty((begin + len(fresh), 3, words.shape[1] // 2), np.uint64)
        sums = np.empty((len(planes), 3), np.int64)
        if begin:
            planes[:begin], sums[:begin] = kept, added
        loops.make_planes(words, planes[begin:], sums[begin:])
        rows = np.concatenate([rows[stay], fresh])
        yield planes, sums, rows, begin
        view.give_back()
        lo = hi


def _comparisons(
    view: Any, snps: _SnpMoments, entered: Index, first: Index
) -> Iterator[Callable[[Mask | None, float], tuple[Index, Index]]]:
    """Yield a function for each run of SNPs of a chromosome that enter with whole windows.

    ``compare(gone, r2)`` returns the pairs (i, j) with first[j] ≤ i < j, j among those that enter, whose r² is above
    the threshold; those that are gone before are left out of i.
    """
    n, m = view.shape
    held, mask = _hold_founders(view)
    width = view.bytes_of(0, n)[2]
    known = np.zeros(0, np.intp)  # SNPs whose bytes are kept, and their bytes
    bytes_ = np.zeros((0, width), np.uint8)
    lo = 0
    while lo < m:
        # SNPs that share a window enter together: their order is decided once all pairs are known
        many = int(np.clip(lo - first[lo], *NEW))
        hi = int(np.searchsorted(entered, entered[min(lo + many, m) - 1], side="right"))
        rows = view.packed(lo, hi)[:, held]
        new = rows if mask is None else hide(rows, mask)

        def compare(gone: Mask | None, r2: float, lo: int = lo, hi: int = hi, new: Any = new) -> tuple[Index, Index]:
            nonlocal known, bytes_
            live = known[known >= first[lo]] if gone is None else known[(known >= first[lo]) & ~gone[known]]
            bytes_ = np.concatenate([bytes_[np.searchsorted(known, live)], new])
            known = np.concatenate([live, np.arange(lo, hi)])
            found = []
            for at in range(lo, hi, ROWS):
                least, most = np.searchsorted(known, (first[at], min(at + ROWS, hi)))
                near = known[least:most]
                pairs = _find_correlated(bytes_[least:most], snps, near, len(near) - min(ROWS, hi - at), n, r2)
                found.append(near[np.stack(pairs)])
            i, j = np.concatenate(found, axis=1)
            return i[i >= first[j]], j[i >= first[j]]

        yield compare
        view.give_back()
        lo = hi


def _find_correlated(
    packed: npt.NDArray[np.uint8], snps: _SnpMoments, which: Index, lo: int, n: int, r2: float
) -> tuple[Index, Index]:
    r"""Pairs (i, j) of rows with i < j and j ≥ lo, whose r² is above the threshold.

    Where two SNPs share all but :math:`m_i` and :math:`m_j` calls of n, :math:`c = z_i \cdot z_j` differs from their
    covariance by at most :math:`m_i m_j u_i u_j / n'`, and a variance from 1 by at most
    :math:`m_j u_i^2 (1 + m_j / n')`, u being the largest :math:`|z|` and :math:`n' = n - m_i - m_j`. Pairs that these
    bounds and the rounding of c leave open are decided by counting bits.
    """
    rows, width = packed.shape
    line, missing, largest = snps.line[which], snps.missing[which], snps.largest[which]
    products = np.zeros((rows - lo, rows), np.float32)
    step = max(64, TILE // rows // 4)
    decode = Decoder(rows, min(step, width), np.float32)
    for at in range(0, width, step):
        Z = decode(packed[:, at : at + step], line)
        products += Z[lo:] @ Z.T
    np.abs(products, out=products)
    # first by bounds that hold for all pairs, then, for the few that are left, by their own
    rounding, most, peak = (4 * width + 8) * 2.0**-23, missing.max(), largest.max()
    shared = max(1.0, n - 2 * most)
    loss = most * peak * (1 + most / shared)
    least = np.sqrt(r2) * max(0.0, 1 - loss) - rounding - most * most * peak / shared
    j, i = np.nonzero(products >= np.float32(least))
    before = i < j + lo
    i, j = i[before], j[before]
    found = products[j, i].astype(np.float64)
    j += lo
    fewer, other = missing[i], missing[j]
    people = np.maximum(1.0, n - fewer - other)
    doubt = rounding + fewer * other * np.sqrt(largest[i] * largest[j]) / people
    left = np.maximum(0.0, 1 - other * largest[i] * (1 + other / people))
    left *= np.maximum(0.0, 1 - fewer * largest[j] * (1 + fewer / people))
    hit = found - doubt > np.sqrt(r2) * TIE
    unsure = np.flatnonzero(~hit & (found + doubt >= np.sqrt(r2 * left)))
    if unsure.size:
        hit[unsure] = shared_sums(packed, i[unsure], j[unsure]).exceed(r2)
    return i[hit], j[hit]


def clump(
    source: Genotypes,
    kb: float = 500.0,
    r2: float = 0.2,
    *,
    importance: npt.ArrayLike | None = None,
    least_founders: int = LEAST_FOUNDERS,
    progress: Progress | None = None,
) -> LdPruning:
    """Keep the SNP that matters most, remove those correlated with it on either side, and go on with the next.

    As ``snp_clumping`` of bigsnpr does, and unlike pruning, no SNP goes for the sake of one that goes itself.

    Parameters
    ----------
    source : Genotypes
        Samples and SNPs; chromosomes in one stretch each, with sorted positions.
    kb : float, default=500
        Distance in thousand base pairs up to which SNPs are compared, on either side.
    r2 : float, default=0.2
        Largest squared correlation that stays.
    importance : array-like of shape (SNPs,), optional
        The larger the sooner; the count of the minor allele by default, of equals the first.
    least_founders : int, default=50
        Fewer are refused.
    progress : callable, optional
        Called with the SNPs done, their number and a message.

    Returns
    -------
    LdPruning
        Masks of those that stay and of those that go.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics import clump
    >>> from gramian.sources.plink import Genotypes
    >>> rng = np.random.default_rng(0)
    >>> calls = rng.integers(0, 3, (4, 60))
    >>> calls[2] = calls[0]
    >>> clump(Genotypes.from_calls(calls), importance=[1, 2, 3, 4]).kept
    array([False,  True,  True,  True])
    """
    window = Window.read(f"{kb:g}kb")._replace(size=float(kb))
    view, runs, snps = _prepare(source, window, 1, r2, least_founders)
    a1, alleles = count_alleles(view)
    p, minor = source.shape[1], np.minimum(a1, alleles - a1)
    rank = np.asarray(minor if importance is None else importance, dtype=np.float64)
    if rank.shape != (p,) or np.isnan(rank).any():
        raise ValueError(
            f"importance has {rank.shape} values, or NaN among them; one for each of the {p} SNPs is needed."
        )
    return _remove_by_run(source, view, runs, snps, _clump_run, progress, window, 1, r2, "clump", rank)


def _clump_run(run: _ChromosomeTask) -> Mask:
    """Which SNPs of a chromosome go."""
    view, position, rank, loops = run.source, run.position, run.rank, compiled_loops(run.seconds)
    if rank is None:
        raise TypeError("rank is needed.")
    first = np.searchsorted(position, position - int(1000 * run.window.size))
    gone, entered = ~run.snps.varies, np.arange(len(position))
    mates: dict[int, list[int]] = {}
    if loops is not None:
        blocks = _enter(loops, view, entered, first, gone.copy())
        found = (loops.find_pairs(*block, first, view.shape[0], run.r2).T for block in blocks)
    else:
        found = (compare(None, run.r2) for compare in _comparisons(view, run.snps, entered, first))
    for pairs in found:
        for i, j in zip(*(part.tolist() for part in pairs), strict=True):
            mates.setdefault(i, []).append(j)
            mates.setdefault(j, []).append(i)
    kept = np.zeros(len(position), np.bool_)
    for best in np.argsort(-rank, kind="stable").tolist():
        if not gone[best]:
            kept[best] = True
            others = np.array(mates.get(best, ()), dtype=np.intp)
            gone[others[~kept[others]]] = True
    return gone
