"""Which SNPs of new genotypes are those of some loadings, and which allele each of them counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.inputs.checks import check_choice
from gramian.sources.errors import Argument, SourceError

Text = npt.NDArray[np.object_]
Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

AMBIGUOUS = ("drop", "frequency", "keep")
BY = ("auto", "id", "position")
COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
UNSEEN = {"0", ".", ""}  # how an allele is written that nobody has
UNNAMED, UNPLACED = {".", ""}, {"0", ""}
MARGIN = 0.1  # how far from ½ both frequencies of an A/T or C/G SNP must be to tell its strand
ERRORS = 3.0  # ... and the new one in standard errors
MOST = 16  # rows of one name or place on either side: with more, it tells nothing apart


USED = {
    "by_position": "by position",
    "swapped": "alleles swapped",
    "strand": "on the other strand",
    "one_allele": "with one allele named",
    "moved": "at another position",
}
LOST = {
    "absent": "absent",
    "chromosome": "on another chromosome",
    "mismatched": "with other alleles",
    "ambiguous": "A/T or C/G, strand not known",
    "repeated": "with several partners",
    "constant": "constant in the reference",
}


@dataclass(frozen=True, eq=False, repr=False)
class MatchReport:
    """What became of the SNPs of the loadings: ``used`` and the next six counts add up to ``loadings``.

    Attributes
    ----------
    loadings, genotypes : int
        SNPs on either side.
    used : int
        Those that are projected with.
    absent, chromosome, mismatched, ambiguous, repeated : int
        Not among the genotypes; under the same name on another chromosome; with other alleles; A/T or C/G, whose
        strand cannot be told; with more than one partner.
    constant : int
        Without variation in the reference, or without a finite mean and divisor: z is not defined.
    by_id, by_position : int
        How those used were found.
    swapped, strand : int
        Those used whose allele A1 is the other one, and those read from the other strand.
    one_allele : int
        Those used for which the genotypes name one allele only.
    moved : int
        Those used by name that lie elsewhere on the chromosome: another genome build, as a rule.
    """

    loadings: int
    genotypes: int
    used: int
    absent: int
    chromosome: int
    mismatched: int
    ambiguous: int
    repeated: int
    constant: int
    by_id: int
    by_position: int
    swapped: int
    strand: int
    one_allele: int
    moved: int

    @property
    def share(self) -> float:
        """Part of the loadings' SNPs that is used."""
        return self.used / self.loadings

    def table(self) -> dict[str, list[Any]]:
        """Columns by name: what was counted, and how many."""
        return {"count": [f.name for f in fields(self)], "snps": [getattr(self, f.name) for f in fields(self)]}

    def fates(self) -> list[tuple[str, str, int]]:
        """Whether SNPs were used, which, and how many: what happened to none is left out."""
        words = [("used", USED), ("not used", LOST)]
        each = [(use, text, getattr(self, name)) for use, named in words for name, text in named.items()]
        return [(use, text, count) for use, text, count in each if count]

    def __repr__(self) -> str:
        lines = [f"MatchReport: {self.used} of {self.loadings} SNPs used ({self.share:.1%})"]
        for use, text, count in self.fates():
            remedy = " (ambiguous='keep' where both files are on one)" if text == LOST["ambiguous"] else ""
            lines.append(f"  {use:<8}  {count:>9}  {text}{remedy}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class SnpMatch:
    """SNPs of genotypes paired with those of loadings.

    Attributes
    ----------
    snps : ndarray of int
        SNPs of the genotypes, ascending.
    loadings : ndarray of int
        The loadings' SNP that each of them is.
    flip : ndarray of bool
        Whether A1 is the other allele, so that 2 − g copies of the effect allele are there.
    report : MatchReport
        What became of the rest.
    """

    snps: Index
    loadings: Index
    flip: Mask
    report: MatchReport

    def __repr__(self) -> str:
        return repr(self.report).replace("MatchReport", "SnpMatch", 1)


def match_snps(
    loadings: Any,
    snps: Any,
    *,
    by: str = "auto",
    ambiguous: str = "drop",
    min_share: float = 0.5,
    frequency: npt.ArrayLike | None = None,
    chromosomes: npt.ArrayLike | None = None,
) -> SnpMatch:
    """Match the SNPs of genotypes with those of loadings.

    A pair has the same name, or the same place, and alleles that agree as they are, swapped, on the other strand, or
    both. Allele 0, which PLINK writes where only one is seen, agrees with anything. A SNP that has more than one such
    partner is not used.

    Parameters
    ----------
    loadings : Loadings
        Has ``id``, ``chromosome``, ``position``, ``effect``, ``other`` and ``frequency``.
    snps : Snps
        Of the genotypes.
    by : {"auto", "id", "position"}
        How pairs are found; "auto" by name, then by position what has no partner yet.
    ambiguous : {"drop", "frequency", "keep"}
        What to do with A/T and C/G SNPs, which look the same on both strands: leave them out; turn them so that the
        same allele is the rarer one, where both frequencies are clearly off ½ (by 0.1, and by three standard errors
        of the new one); trust the alleles as they are written.
    min_share : float
        Refuse where a smaller part of the loadings' SNPs can be used.
    frequency, chromosomes : array-like of shape (p,), optional
        Of A1 among the new samples, and in how many chromosomes it was counted, for ``ambiguous="frequency"``.

    Returns
    -------
    SnpMatch
        The pairs, and a count of everything.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.loadings import Loadings
    >>> from gramian.genetics.matching import match_snps
    >>> from gramian.sources.plink import Snps
    >>> def words(line):
    ...     return np.array(line.split(), dtype=object)
    >>> where = np.array([10, 20, 30, 40])
    >>> one = words("1 1 1 1")
    >>> old = Loadings(words("a b c d"), one, where, words("A A A A"), words("G C T C"), np.eye(4), "plink")
    >>> new = Snps(one, words("a b c e"), np.zeros(4), where, words("G T A A"), words("A G T C"))
    >>> match = match_snps(old, new)
    >>> match
    SnpMatch: 3 of 4 SNPs used (75.0%)
      used              1  by position
      used              1  alleles swapped
      used              1  on the other strand
      not used          1  A/T or C/G, strand not known (ambiguous='keep' where both files are on one)
    >>> match.snps, match.flip
    (array([0, 1, 3]), array([ True, False, False]))
    """
    check_choice("by", by, BY)
    check_choice("ambiguous", ambiguous, AMBIGUOUS)
    if not 0 <= min_share <= 1:
        raise ValueError(f"min_share={min_share!r} is not between 0 and 1.")
    if loadings.effect[0] == "":
        raise SourceError(
            "The loadings name no alleles, so that nobody can tell which one they count: "
            "read them with the .bim or .snp file of the reference as ",
            Argument("snps"),
            ".",
        )
    if by == "position" and not np.any(loadings.position > 0):
        raise SourceError(
            "The loadings have no positions: match by id, or read them with the .bim file of the reference as ",
            Argument("snps"),
            ".",
        )
    pairs = pair_snps(loadings, snps, by)
    left, right = pairs.left, pairs.right
    relation = compare_alleles(loadings.effect[left], loadings.other[left], snps.a1[right], snps.a2[right])
    if ambiguous == "frequency":
        if loadings.frequency is None or frequency is None or chromosomes is None:
            raise ValueError('ambiguous="frequency" needs the frequencies of the reference and of the new samples.')
        new, counted = np.asarray(frequency)[right], np.asarray(chromosomes)[right]
        relation = _tell_strand_by_frequency(relation, loadings.frequency[left], new, counted)
    keep, report = _count_fates(loadings, snps, pairs, relation, ambiguous == "keep")
    if report.share < min_share:
        raise SourceError(
            f"Only {report.used} of {report.loadings} SNPs ({report.share:.1%}) can be used, fewer than ",
            Argument("min_share", min_share),
            f" allows.\n{report!r}\nAre these genotypes of the same markers, names and genome build? A smaller "
            "one lets them pass.",
        )
    order = keep[np.argsort(right[keep], kind="stable")]
    return SnpMatch(right[order], left[order], relation.swapped[order], report)


@dataclass(frozen=True, eq=False)
class SnpPairs:
    """Rows left and right that belong together, how they were found, and left rows with too many partners to list."""

    left: Index
    right: Index
    by_id: Mask
    crowded: Mask


def pair_snps(left: Any, right: Any, by: str) -> SnpPairs:
    """Pair SNPs by name, by position, or by name and then by position what has no partner.

    Examples
    --------
    >>> from gramian.genetics.matching import pair_snps
    >>> from gramian.sources.plink import Snps
    >>> snps = Snps.numbered(4)
    >>> pairs = pair_snps(snps, snps.take([3, 1]), "id")
    >>> pairs.left.tolist(), pairs.right.tolist()
    ([1, 3], [1, 0])
    """
    free_left, free_right = np.ones(len(left.id), bool), np.ones(len(right.id), bool)
    found = []
    if by != "position":
        codes = {name: j for j, name in enumerate(dict.fromkeys([*left.id, *right.id])) if name not in UNNAMED}
        keys = [np.array([codes.get(name, -1) for name in side.id], dtype=np.intp) for side in (left, right)]
        named = _join(keys, (free_left, free_right), True)
        free_left[named.left] = free_right[named.right] = False
        free_left &= ~named.crowded
        found.append(named)
    if by != "id":
        names = dict.fromkeys([*left.chromosome, *right.chromosome])
        codes = {name: j for j, name in enumerate(names) if name not in UNPLACED}
        keys = []
        for side in (left, right):
            chromosome = np.array([codes.get(name, -1) for name in side.chromosome], dtype=np.int64)
            known = (chromosome >= 0) & (side.position > 0)
            keys.append(np.asarray(np.where(known, chromosome << 40 | side.position, -1), dtype=np.intp))
        found.append(_join(keys, (free_left, free_right), False))
    return SnpPairs(
        np.concatenate([pairs.left for pairs in found]),
        np.concatenate([pairs.right for pairs in found]),
        np.concatenate([pairs.by_id for pairs in found]),
        np.logical_or.reduce([pairs.crowded for pairs in found]),
    )


def _join(keys: Sequence[Index], free: tuple[Mask, Mask], by_id: bool) -> SnpPairs:
    """All pairs of free rows with the same key; −1 is none."""
    (a, b), (use_a, use_b) = keys, free
    rows_a, rows_b = np.flatnonzero(use_a & (a >= 0)), np.flatnonzero(use_b & (b >= 0))
    order = rows_b[np.argsort(b[rows_b], kind="stable")]
    first, last = (np.searchsorted(b[order], a[rows_a], side) for side in ("left", "right"))
    times = last - first
    _, inverse, rivals = np.unique(a[rows_a], return_inverse=True, return_counts=True)
    many = (times > 0) & ((times > MOST) | (rivals[inverse] > MOST))
    crowded = np.zeros(len(a), bool)
    crowded[rows_a[many]] = True
    times[many] = 0
    within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
    left, right = np.repeat(rows_a, times), order[np.repeat(first, times) + within]
    return SnpPairs(left, right, np.full(len(left), by_id), crowded)


def find_rows(wanted: npt.NDArray[np.object_], names: npt.NDArray[np.object_], path: Path, what: str) -> Index:
    """The row of a file for each name wanted: there must be one, and no more."""
    places = {name: j for j, name in enumerate(names)}
    absent = [name for name in wanted if name not in places]
    if absent:
        raise ValueError(f"{path}: no {what} of {len(absent)} of the {len(wanted)} SNPs, {absent[0]} first.")
    if len(places) < len(names):
        later = np.array([places[name] for name in names]) != np.arange(len(names))
        repeated = set(names[later]) & set(wanted)
        if repeated:
            raise ValueError(f"{path}: more than one line for {len(repeated)} of the SNPs, {min(repeated)} first.")
    return np.array([places[name] for name in wanted], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class AlleleRelation:
    """For each pair of SNPs: whether A1 is the other allele, read from the other strand, and whether it fits at all.

    ``ambiguous`` pairs are A/T and C/G: ``swapped`` then goes by the alleles as they are written.
    """

    swapped: Mask
    strand: Mask
    mismatch: Mask
    ambiguous: Mask
    one_allele: Mask


def compare_alleles(effect: Text, other: Text, a1: Text, a2: Text) -> AlleleRelation:
    """Compare effect and other allele with A1 and A2, row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics.matching import compare_alleles
    >>> columns = [np.array(list(c), dtype=object) for c in ("AAAAA", "GGGGT", "AGTCA", "GACGT")]
    >>> found = compare_alleles(*columns)
    >>> found.swapped.tolist(), found.mismatch.tolist(), found.ambiguous.tolist()
    ([False, True, False, False, False], [False, False, False, True, False], [False, False, False, False, True])
    """
    columns = (effect, other, a1, a2)
    spelt = {allele: allele.upper() for allele in set().union(*columns)}
    names = list(dict.fromkeys([*COMPLEMENT, *spelt.values()]))
    codes = {name: j for j, name in enumerate(names)}
    e, o, a, b = (np.array([codes[spelt[allele]] for allele in column], dtype=np.intp) for column in columns)
    # −1 for the complement of more than a base
    complement = np.array([codes.get(COMPLEMENT.get(name, "no base"), -1) for name in names], dtype=np.intp)
    unseen = np.array([name in UNSEEN for name in names], dtype=bool)
    no_a, no_b = unseen[a], unseen[b]

    def fits(x: Index, y: Index, first: Index, second: Index) -> Mask:
        return np.asarray(((x == first) | no_a) & ((y == second) | no_b))

    direct, swapped = fits(a, b, e, o), fits(a, b, o, e)
    direct_c, swapped_c = (fits(complement[a], complement[b], *pair) for pair in ((e, o), (o, e)))
    written = direct | swapped
    mismatch = ~(written | direct_c | swapped_c) | (no_a & no_b) | (e == o)
    return AlleleRelation(
        swapped=np.where(written, swapped, swapped_c),
        strand=~written & ~mismatch,
        mismatch=mismatch,
        ambiguous=(complement[e] == o) & ~mismatch,
        one_allele=no_a | no_b,
    )


def _tell_strand_by_frequency(relation: AlleleRelation, reference: Any, new: Any, chromosomes: Any) -> AlleleRelation:
    """Turn A/T and C/G SNPs so that the same allele is the rarer one, where both frequencies are clearly off ½.

    ``reference`` is the frequency of the effect allele there, ``new`` that of A1 in the new samples, counted in so many
    chromosomes.
    """
    error = 0.5 / np.sqrt(np.maximum(chromosomes, 1.0))
    clear = (np.abs(reference - 0.5) > MARGIN) & (np.abs(new - 0.5) > np.maximum(MARGIN, ERRORS * error))
    as_written = np.where(relation.swapped, 1 - new, new)
    turn = relation.ambiguous & clear & ((as_written > 0.5) != (reference > 0.5))
    return replace(
        relation,
        swapped=relation.swapped ^ turn,
        strand=relation.strand | turn,
        ambiguous=relation.ambiguous & ~clear,
    )


def _count_fates(
    loadings: Any, snps: Any, pairs: SnpPairs, relation: AlleleRelation, trust: bool
) -> tuple[Index, MatchReport]:
    """The pairs to use, and one fate for every SNP of the loadings."""
    left, right, M = pairs.left, pairs.right, len(loadings.id)

    def have(which: Mask) -> Mask:
        return np.bincount(left[which], minlength=M) > 0

    here = ~_differ(loadings.chromosome[left], snps.chromosome[right])
    agree = here & ~relation.mismatch
    fit = agree & (~relation.ambiguous | trust)
    rivals = np.bincount(left[fit], minlength=M)[left], np.bincount(right[fit], minlength=len(snps.id))[right]
    alone = fit & (rivals[0] == 1) & (rivals[1] == 1)
    defined = np.ones(M, dtype=bool)  # z = (g − mean)/scale; where no frequencies are known it may yet be
    if loadings.mean is not None:
        defined = np.isfinite(loadings.mean) & np.isfinite(loadings.scale) & (loadings.scale > 0)
    keep = np.flatnonzero(alone & defined[left])
    steps = [pairs.crowded | have(which) for which in (np.ones(len(left), bool), here, agree, fit)]
    lost = -np.diff([M, *(int(step.sum()) for step in steps), int(have(alone).sum())])
    moved = pairs.by_id & _differ(loadings.position[left], snps.position[right])
    fates = dict(zip(("absent", "chromosome", "mismatched", "ambiguous", "repeated"), map(int, lost), strict=True))
    used = {"by_id": pairs.by_id, "by_position": ~pairs.by_id, "moved": moved}
    used |= {name: getattr(relation, name) for name in ("swapped", "strand", "one_allele")}
    report = MatchReport(
        loadings=M,
        genotypes=len(snps.id),
        used=len(keep),
        constant=int(alone.sum()) - len(keep),
        **fates,
        **{name: int(mask[keep].sum()) for name, mask in used.items()},
    )
    return keep, report


def _differ(a: Any, b: Any) -> Mask:
    """Whether two places differ, where both are known."""
    known = np.ones(len(a), dtype=bool)
    for unknown in (0, *UNPLACED):
        known &= (a != unknown) & (b != unknown)
    return np.asarray(known & (a != b), dtype=bool)
