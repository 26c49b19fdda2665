"""How the alleles of a SNP in one file agree with those in another: as they are, swapped, on the other strand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Relation", "relate", "told_by_frequency"]

Text = npt.NDArray[np.object_]
Codes = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Vector = npt.NDArray[np.float64]

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
UNSEEN = {"0", ".", ""}  # how an allele is written that nobody has
MARGIN = 0.1  # how far from ½ both frequencies of an A/T or C/G SNP must be to tell its strand
ERRORS = 3.0  # ... and the new one in standard errors


@dataclass(frozen=True, eq=False)
class Relation:
    """For each pair of SNPs: whether A1 is the other allele, read from the other strand, and whether it fits at all.

    ``ambiguous`` pairs are A/T and C/G: ``swapped`` then goes by the alleles as they are written.
    """

    swapped: Mask
    strand: Mask
    mismatch: Mask
    ambiguous: Mask
    one_allele: Mask


def relate(effect: Text, other: Text, a1: Text, a2: Text) -> Relation:
    """Compare effect and other allele with A1 and A2, row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics._alleles import relate
    >>> columns = [np.array(list(c), dtype=object) for c in ("AAAAA", "GGGGT", "AGTCA", "GACGT")]
    >>> found = relate(*columns)
    >>> found.swapped.tolist(), found.mismatch.tolist(), found.ambiguous.tolist()
    ([False, True, False, False, False], [False, False, False, True, False], [False, False, False, False, True])
    """
    (e, o, a, b), complement, unseen = _coded(effect, other, a1, a2)
    no_a, no_b = unseen[a], unseen[b]

    def fits(x: Codes, y: Codes, first: Codes, second: Codes) -> Mask:
        return np.asarray(((x == first) | no_a) & ((y == second) | no_b))

    direct, swapped = fits(a, b, e, o), fits(a, b, o, e)
    direct_c, swapped_c = (fits(complement[a], complement[b], *pair) for pair in ((e, o), (o, e)))
    written = direct | swapped
    mismatch = ~(written | direct_c | swapped_c) | (no_a & no_b) | (e == o)
    strand = ~written & ~mismatch
    return Relation(
        np.where(written, swapped, swapped_c), strand, mismatch, (complement[e] == o) & ~mismatch, no_a | no_b
    )


def _coded(*columns: Text) -> tuple[list[Codes], Codes, Mask]:
    """Alleles as numbers; the number of each one's complement, −1 for more than a base; and which nobody has."""
    spelt = {allele: allele.upper() for allele in set().union(*columns)}
    names = list(dict.fromkeys([*COMPLEMENT, *spelt.values()]))
    codes = {name: j for j, name in enumerate(names)}
    numbers = {allele: codes[name] for allele, name in spelt.items()}
    complement = np.array([codes.get(COMPLEMENT.get(name, "no base"), -1) for name in names], dtype=np.intp)
    unseen = np.array([name in UNSEEN for name in names], dtype=bool)
    coded = [np.array([numbers[allele] for allele in column], dtype=np.intp) for column in columns]
    return coded, complement, unseen


def told_by_frequency(relation: Relation, reference: Vector, new: Vector, chromosomes: Vector) -> Relation:
    """Turn A/T and C/G SNPs so that the same allele is the rarer one, where both frequencies are clearly off ½.

    Parameters
    ----------
    relation : Relation
        By the alleles as they are written.
    reference, new, chromosomes : ndarray
        Frequency of the effect allele in the reference, of A1 in the new samples, and in how many chromosomes that was
        counted.
    """
    error = 0.5 / np.sqrt(np.maximum(chromosomes, 1.0))
    clear = (np.abs(reference - 0.5) > MARGIN) & (np.abs(new - 0.5) > np.maximum(MARGIN, ERRORS * error))
    as_written = np.where(relation.swapped, 1 - new, new)
    turn = relation.ambiguous & clear & ((as_written > 0.5) != (reference > 0.5))
    return Relation(
        relation.swapped ^ turn,
        relation.strand | turn,
        relation.mismatch,
        relation.ambiguous & ~clear,
        relation.one_allele,
    )
