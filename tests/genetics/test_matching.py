"""SNPs of two files matched, against a naive twin that looks at one SNP after the other."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.genetics.loadings import Loadings
from gramian.genetics.matching import match_snps
from gramian.sources.plink import Snps

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}
FATES = ("used", "absent", "chromosome", "mismatched", "ambiguous", "repeated", "constant")


def words(values):
    out = np.empty(len(values), dtype=object)
    out[:] = list(values)
    return out


def loadings_of(rows, frequency=None):
    """Loadings of rows (id, chromosome, position, effect, other)."""
    id, chromosome, position, effect, other = zip(*rows, strict=True)
    made = Loadings(
        words(id), words(chromosome), np.array(position), words(effect), words(other), np.ones((len(rows), 1)), "plink"
    )
    return made if frequency is None else made.with_frequencies(frequency)


def snps_of(rows):
    """SNPs of rows (id, chromosome, position, a1, a2)."""
    id, chromosome, position, a1, a2 = zip(*rows, strict=True) if rows else ([],) * 5
    where = np.array(position, dtype=np.int64)
    return Snps(words(chromosome), words(id), np.zeros(len(rows)), where, words(a1), words(a2))


def orientation(effect, other, a1, a2, keep):
    """+1 as it is, −1 swapped, None where alleles do not fit or cannot be told."""
    if COMPLEMENT[effect] == other:
        if {a1, a2} != {effect, other} or not keep:
            return None
        return 1 if a1 == effect else -1
    flipped = [COMPLEMENT[a1], COMPLEMENT[a2]]
    if [effect, other] in ([a1, a2], flipped):
        return 1
    return -1 if [other, effect] in ([a1, a2], flipped) else None


def naive(left, right, keep):
    """Pairs by name, one after the other: those where neither side has a second choice."""
    found = [
        (i, j, sign)
        for i, x in enumerate(left)
        for j, y in enumerate(right)
        if x[0] == y[0] != "." and x[1] == y[1] and (sign := orientation(*x[3:], *y[3:], keep)) is not None
    ]
    return sorted(
        (j, i, sign < 0)
        for i, j, sign in found
        if sum(a == i for a, _, _ in found) == 1 and sum(b == j for _, b, _ in found) == 1
    )


bases = st.sampled_from([(a, b) for a in "ACGT" for b in "ACGT" if a != b])
row = st.tuples(
    st.sampled_from(["a", "b", "c", "d", "e", "f", "."]), st.sampled_from("12"), st.integers(1, 6), bases
).map(lambda r: (*r[:3], *r[3]))
table = st.lists(row, min_size=1, max_size=12)


@given(left=table, right=table, keep=st.booleans())
def test_pairs_by_name_are_those_of_the_naive_twin(left, right, keep):
    ambiguous = "keep" if keep else "drop"
    match = match_snps(loadings_of(left), snps_of(right), by="id", ambiguous=ambiguous, min_share=0)
    found = list(zip(match.snps.tolist(), match.loadings.tolist(), match.flip.tolist(), strict=True))
    assert found == naive(left, right, keep)


@given(left=table, right=table, by=st.sampled_from(["auto", "id", "position"]), keep=st.booleans())
def test_every_snp_has_one_fate(left, right, by, keep):
    match = match_snps(loadings_of(left), snps_of(right), by=by, ambiguous="keep" if keep else "drop", min_share=0)
    report = match.report
    assert sum(getattr(report, name) for name in FATES) == report.loadings == len(left)
    assert report.by_id + report.by_position == report.used == len(match.snps) == len(set(match.loadings.tolist()))
    assert np.all(np.diff(match.snps) > 0)
    assert all(getattr(report, f.name) >= 0 for f in fields(report))


@given(left=table, right=table)
def test_by_position_is_by_name_with_the_place_as_name(left, right):
    def renamed(rows):
        return [(f"{c}:{p}", c, p, *alleles) for _, c, p, *alleles in rows]

    found = match_snps(loadings_of(left), snps_of(right), by="position", min_share=0)
    expected = match_snps(loadings_of(renamed(left)), snps_of(renamed(right)), by="id", min_share=0)
    np.testing.assert_array_equal(found.snps, expected.snps)
    np.testing.assert_array_equal(found.loadings, expected.loadings)
    np.testing.assert_array_equal(found.flip, expected.flip)


REFERENCE = [
    ("rs1", "1", 10, "A", "G"),
    ("rs2", "1", 20, "A", "C"),
    ("rs3", "2", 30, "A", "T"),
    ("rs4", "2", 40, "AT", "A"),
    ("rs5", "3", 50, "C", "T"),
]


def one(row, **options):
    """Match one SNP with the reference: whether it is flipped, and the report."""
    match = match_snps(loadings_of(REFERENCE), snps_of([row]), min_share=0, **options)
    return (match.flip.tolist(), match.report)


@pytest.mark.parametrize(
    ("row", "flip", "counted"),
    [
        (("rs1", "1", 10, "A", "G"), [False], "by_id"),
        (("rs1", "1", 10, "G", "A"), [True], "swapped"),
        (("rs1", "1", 10, "T", "C"), [False], "strand"),
        (("rs1", "1", 10, "C", "T"), [True], "strand"),
        (("rs1", "1", 10, "a", "g"), [False], "by_id"),
        (("rs1", "1", 10, "0", "G"), [False], "one_allele"),
        (("rs1", "1", 10, "0", "A"), [True], "one_allele"),
        (("rs1", "1", 10, "0", "T"), [True], "strand"),
        (("rs1", "1", 99, "A", "G"), [False], "moved"),
        (("other", "1", 10, "A", "G"), [False], "by_position"),
        ((".", "1", 10, "G", "A"), [True], "by_position"),
        (("rs4", "2", 40, "A", "AT"), [True], "swapped"),
        (("rs1", "2", 10, "A", "G"), [], "chromosome"),
        (("rs1", "1", 10, "A", "C"), [], "mismatched"),
        (("rs1", "1", 10, "A", "AT"), [], "mismatched"),
        (("rs1", "1", 10, "0", "0"), [], "mismatched"),
        (("rs3", "2", 30, "A", "T"), [], "ambiguous"),
    ],
)
def test_alleles_are_told_apart(row, flip, counted):
    found, report = one(row)
    assert found == flip
    assert getattr(report, counted) == 1


def test_split_sites_are_resolved_by_their_alleles_and_copies_are_not():
    same = [("x", "1", 10, "A", "C"), ("y", "1", 10, "A", "G"), ("z", "1", 20, "C", "A"), ("w", "1", 20, "A", "C")]
    match = match_snps(loadings_of(REFERENCE), snps_of(same), min_share=0)
    assert match.snps.tolist() == [1]
    assert (match.report.repeated, match.report.used) == (1, 1)


def test_a_name_that_hundreds_share_tells_nothing():
    crowd = [("rs1", "1", 10 + j, "A", "G") for j in range(300)]
    match = match_snps(loadings_of(REFERENCE[:2]), snps_of([*crowd, REFERENCE[1]]), min_share=0)
    assert (match.report.repeated, match.loadings.tolist()) == (1, [1])


@pytest.mark.parametrize(
    ("row", "new", "chromosomes", "flip"),
    [
        (("rs3", "2", 30, "A", "T"), 0.22, 1000, [False]),  # the same allele is the rarer one
        (("rs3", "2", 30, "A", "T"), 0.81, 1000, [True]),  # read from the other strand
        (("rs3", "2", 30, "T", "A"), 0.81, 1000, [True]),
        (("rs3", "2", 30, "T", "A"), 0.22, 1000, [False]),
        (("rs3", "2", 30, "A", "T"), 0.45, 1000, []),  # too near ½
        (("rs3", "2", 30, "A", "T"), 0.22, 10, []),  # of too few people
    ],
)
def test_frequencies_tell_the_strand_where_they_can(row, new, chromosomes, flip):
    reference = loadings_of(REFERENCE, [0.3, 0.3, 0.2, 0.3, 0.3])
    match = match_snps(
        reference, snps_of([row]), ambiguous="frequency", frequency=[new], chromosomes=[chromosomes], min_share=0
    )
    assert match.flip.tolist() == flip
    assert match.report.ambiguous == 1 - len(flip)


def test_snps_constant_in_the_reference_are_not_used():
    match = match_snps(loadings_of(REFERENCE, [0, 0.3, 0.2, 0.3, 1]), snps_of(REFERENCE), min_share=0)
    assert (match.report.constant, match.report.used, match.report.ambiguous) == (2, 2, 1)


def test_too_few_are_refused_with_the_report():
    with pytest.raises(ValueError, match=r"(?s)Only 1 of 5 SNPs \(20\.0%\).*min_share=0.5.*4  absent"):
        match_snps(loadings_of(REFERENCE), snps_of(REFERENCE[:1]))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"by": "name"}, "by must be.*name"),
        ({"ambiguous": "maybe"}, "ambiguous.*maybe"),
        ({"min_share": 2}, "min_share=2 is not between 0 and 1"),
        ({"ambiguous": "frequency"}, "needs the frequencies of the reference"),
    ],
)
def test_wrong_options_are_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        match_snps(loadings_of(REFERENCE), snps_of(REFERENCE), **options)


def test_loadings_without_alleles_or_places_are_refused():
    bare = loadings_of([("rs1", "1", 0, "", "")])
    with pytest.raises(ValueError, match="name no alleles"):
        match_snps(bare, snps_of(REFERENCE))
    with pytest.raises(ValueError, match="have no positions"):
        match_snps(loadings_of([("rs1", "1", 0, "A", "C")]), snps_of(REFERENCE), by="position")


def test_report_reads_as_a_table():
    report = match_snps(loadings_of(REFERENCE), snps_of(REFERENCE)).report
    counts = dict(zip(*report.table().values(), strict=True))
    assert (counts["used"], counts["ambiguous"], report.share) == (4, 1, 0.8)
    first, second = repr(report).split("\n")
    assert first == "MatchReport: 4 of 5 SNPs used (80.0%)"
    assert second.startswith("  not used          1  A/T or C/G, strand not known (ambiguous='keep'")
