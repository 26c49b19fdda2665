"""Which SNPs of new genotypes are those of some loadings, and which allele each of them counts."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.genetics._alleles import Relation, relate, told_by_frequency
from gramian.genetics._joining import UNPLACED, Pairs, join

__all__ = ["MatchReport", "SnpMatch", "match_snps"]

Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

AMBIGUOUS = ("drop", "frequency", "keep")
BY = ("auto", "id", "position")


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

    def __repr__(self) -> str:
        lost = {
            "absent": self.absent,
            "on another chromosome": self.chromosome,
            "with other alleles": self.mismatched,
            "A/T or C/G, strand not known (ambiguous='keep' where both files are on one)": self.ambiguous,
            "with several partners": self.repeated,
            "constant in the reference": self.constant,
        }
        how = {
            "by position": self.by_position,
            "alleles swapped": self.swapped,
            "on the other strand": self.strand,
            "with one allele named": self.one_allele,
            "at another position": self.moved,
        }
        lines = [f"MatchReport: {self.used} of {self.loadings} SNPs used ({self.share:.1%})"]
        lines += [f"  used      {count:>9}  {name}" for name, count in how.items() if count]
        lines += [f"  not used  {count:>9}  {name}" for name, count in lost.items() if count]
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
    _check(loadings, by, ambiguous, min_share)
    pairs = join(loadings, snps, by)
    left, right = pairs.left, pairs.right
    relation = relate(loadings.effect[left], loadings.other[left], snps.a1[right], snps.a2[right])
    if ambiguous == "frequency":
        relation = _told(loadings, pairs, relation, frequency, chromosomes)
    keep, report = _judged(loadings, snps, pairs, relation, ambiguous == "keep")
    if report.share < min_share:
        raise ValueError(
            f"Only {report.used} of {report.loadings} SNPs ({report.share:.1%}) can be used, fewer than min_share = "
            f"{min_share:.0%}.\n{report!r}\nAre these genotypes of the same markers, names and genome build? A smaller "
            "min_share lets them pass."
        )
    order = keep[np.argsort(right[keep], kind="stable")]
    return SnpMatch(right[order], left[order], relation.swapped[order], report)


def _check(loadings: Any, by: str, ambiguous: str, min_share: float) -> None:
    if by not in BY:
        raise ValueError(f"by={by!r} is none of {', '.join(BY)}.")
    if ambiguous not in AMBIGUOUS:
        raise ValueError(f"ambiguous={ambiguous!r} is none of {', '.join(AMBIGUOUS)}.")
    if not 0 <= min_share <= 1:
        raise ValueError(f"min_share={min_share!r} is not between 0 and 1.")
    if loadings.effect[0] == "":
        raise ValueError(
            "The loadings name no alleles, so that nobody can tell which one they count: "
            "give read_loadings the .bim or .snp file of the reference as snps."
        )
    if by == "position" and not np.any(loadings.position > 0):
        raise ValueError(
            "The loadings have no positions: match by id, or give read_loadings the .bim file of the reference as snps."
        )


def _told(loadings: Any, pairs: Pairs, relation: Relation, frequency: Any, chromosomes: Any) -> Relation:
    if loadings.frequency is None or frequency is None or chromosomes is None:
        raise ValueError('ambiguous="frequency" needs the frequencies of the reference and of the new samples.')
    new, counted = np.asarray(frequency)[pairs.right], np.asarray(chromosomes)[pairs.right]
    return told_by_frequency(relation, loadings.frequency[pairs.left], new, counted)


def _judged(loadings: Any, snps: Any, pairs: Pairs, relation: Relation, trust: bool) -> tuple[Index, MatchReport]:
    """The pairs to use, and one fate for every SNP of the loadings."""
    left, right, M = pairs.left, pairs.right, len(loadings.id)

    def have(which: Mask) -> Mask:
        return np.bincount(left[which], minlength=M) > 0

    here = ~_elsewhere(loadings.chromosome[left], snps.chromosome[right])
    agree = here & ~relation.mismatch
    fit = agree & (~relation.ambiguous | trust)
    rivals = np.bincount(left[fit], minlength=M)[left], np.bincount(right[fit], minlength=len(snps.id))[right]
    alone = fit & (rivals[0] == 1) & (rivals[1] == 1)
    keep = np.flatnonzero(alone & _defined(loadings)[left])
    steps = [pairs.crowded | have(np.ones(len(left), bool)), pairs.crowded | have(here), pairs.crowded | have(agree)]
    steps += [pairs.crowded | have(fit), have(alone)]
    absent, chromosome, mismatched, ambiguous, repeated = -np.diff([M, *(int(step.sum()) for step in steps)])
    moved = pairs.by_id & _elsewhere(loadings.position[left], snps.position[right])
    report = MatchReport(
        loadings=M,
        genotypes=len(snps.id),
        used=len(keep),
        absent=int(absent),
        chromosome=int(chromosome),
        mismatched=int(mismatched),
        ambiguous=int(ambiguous),
        repeated=int(repeated),
        constant=int(alone.sum()) - len(keep),
        by_id=int(pairs.by_id[keep].sum()),
        by_position=int((~pairs.by_id[keep]).sum()),
        swapped=int(relation.swapped[keep].sum()),
        strand=int(relation.strand[keep].sum()),
        one_allele=int(relation.one_allele[keep].sum()),
        moved=int(moved[keep].sum()),
    )
    return keep, report


def _elsewhere(a: Any, b: Any) -> Mask:
    """Whether two places differ, where both are known."""
    known = np.ones(len(a), dtype=bool)
    for unknown in (0, *UNPLACED):
        known &= (a != unknown) & (b != unknown)
    return np.asarray(known & (a != b), dtype=bool)


def _defined(loadings: Any) -> Mask:
    """Whether z = (g − mean)/scale is defined; where nothing is known of the frequencies, it may yet be."""
    if loadings.mean is None:
        return np.ones(len(loadings.id), dtype=bool)
    return np.asarray(np.isfinite(loadings.mean) & np.isfinite(loadings.scale) & (loadings.scale > 0))
