"""Filters, against what PLINK 1.9 and 2 keep with the same flags, and against filters written call by call."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gramian.genetics.filters import Filters, read_regions
from gramian.genetics.hardy_weinberg import hardy_weinberg
from gramian.genetics.quality import sample_quality
from gramian.sources.plink import Genotypes, Samples, Snps

DATA = Path(__file__).parent.parent / "data"
PLINK: dict[str, Any] = json.loads((DATA / "plink_quality.json").read_text("utf-8"))

# the flags of tests/data/plink_quality.py
SAME = {
    "missing": Filters(max_sample_missing=0.1, max_snp_missing=0.05),
    "hwe": Filters(hwe=0.01),
    "mid-p": Filters(hwe=0.01, mid_p=True),
    "maf": Filters(maf=0.05),
    "all": Filters(max_sample_missing=0.1, max_snp_missing=0.05, hwe=0.001, maf=0.1),
    "range": Filters(ranges="2:25000-32000", maf=0.05),
    "sex": Filters(chromosomes="22-24,26", max_sample_missing=0.12, max_snp_missing=0.1, maf=0.15),
}


def test_a_table_of_ranges_may_have_a_header(tmp_path):
    path = tmp_path / "r.tsv"
    path.write_text("chr\tstart\tstop\tname\n6\t25\t35\tHLA\n")
    assert [tuple(region) for region in read_regions(path, "ranges")] == [("6", 25, 35)]
    path.write_text("chromosome\thg18_start\thg18_stop\thg19_start\thg19_stop\n6\t25\t35\t26\t36\n")
    with pytest.raises(ValueError, match=r"line 1.*hg18_start.*several builds"):
        read_regions(path, "ranges")


def text(values: Any) -> Any:
    return np.array(list(values), dtype=object)


def named(calls: Any, chromosomes: Any = None, ids: Any = None, people: Any = None, sex: Any = 0) -> Genotypes:
    """Genotypes of SNPs × samples; people are (FID, IID)."""
    p, n = np.shape(calls)
    people = [("0", f"s{i + 1}") for i in range(n)] if people is None else people
    zero = text(["0"] * n)
    fid, iid = text(f for f, _ in people), text(i for _, i in people)
    samples = Samples(fid, iid, zero, zero, np.broadcast_to(np.int8(sex), n).copy(), zero)
    names = text(f"snp{j + 1}" for j in range(p)) if ids is None else text(ids)
    where = text(["1"] * p) if chromosomes is None else text(chromosomes)
    place = 1000 * np.arange(1, p + 1)
    return Genotypes.from_calls(calls, samples, Snps(where, names, np.zeros(p), place, text("A" * p), text("G" * p)))


def study() -> Genotypes:
    """The study of plink_quality.json."""
    n, p = PLINK["n"], len(PLINK["chromosomes"])
    packed = np.frombuffer(bytes.fromhex(PLINK["packed"]), np.uint8).reshape(p, -1)
    calls = Genotypes(packed, Samples.numbered(n), Snps.numbered(p)).calls(0, p)
    sex = np.array(PLINK["sex"], np.int8)
    return named(
        calls, PLINK["chromosomes"], [f"rs{j}" for j in range(p)], [(f"F{i // 2}", f"I{i}") for i in range(n)], sex
    )


def varied(p: int = 30, n: int = 40, seed: int = 0) -> Any:
    """Calls without a gap, in which every SNP varies."""
    rng = np.random.default_rng(seed)
    calls = rng.binomial(2, rng.uniform(0.2, 0.8, (p, 1)), (p, n)).astype(np.int8)
    calls[:, :3] = [0, 1, 2]
    return calls


@pytest.mark.parametrize("name", list(SAME))
def test_plink_keeps_the_same(name: str) -> None:
    theirs = PLINK["filters"][name]
    found = SAME[name].apply(study())
    assert_array_equal(found.source.sample_index, theirs["samples"])
    # PLINK keeps SNPs with one allele, or no call, unless a threshold removes them
    source = study().select(samples=theirs["samples"], snps=theirs["snps"])
    calls = source.calls(0, source.shape[1])
    two = np.array([len(set(row[row >= 0]) - {-1}) > 1 or set(row[row >= 0]) == {1} for row in calls])
    assert_array_equal(found.source.snp_index, np.array(theirs["snps"])[two])
    assert np.all(two | (calls < 0).all(axis=1) | ("--maf" not in theirs["flags"]))


def test_every_removal_is_counted_once() -> None:
    found = SAME["all"].apply(study())
    removed = found.removed
    assert found.shape == (83, 400)
    assert list(removed) == [
        "chromosomes",
        "max_sample_missing",
        "all_missing",
        "max_snp_missing",
        "hwe",
        "monomorphic",
        "maf",
    ]
    assert removed["chromosomes"] == 48
    assert found.left_out == {"X": 24, "Y": 8, "XY": 6, "MT": 6, "0": 4}
    assert 400 - sum(step.removed for step in found.steps if step.of == "SNPs") == found.source.shape[1]
    assert 83 - sum(step.removed for step in found.steps if step.of == "samples") == found.source.shape[0]
    assert all(value > 0 for value in removed.values())


def naive(calls: Any, mind: float, geno: float, hwe: float, maf: float) -> tuple[Any, Any]:
    people = np.mean(calls < 0, axis=0) <= mind
    keep = []
    for row in calls[:, people]:
        seen = row[row >= 0]
        if not len(seen) or np.mean(row < 0) > geno:
            keep.append(False)
            continue
        p, share = hardy_weinberg(*(np.sum(seen == g) for g in (2, 1, 0))), seen.mean() / 2
        keep.append(bool(p >= hwe and 0 < share < 1 and min(share, 1 - share) >= maf - 1e-9))
    return people, np.array(keep)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    mind=st.sampled_from([0.1, 0.25, 0.5]),
    geno=st.sampled_from([0.0, 0.1, 0.2]),
    hwe=st.sampled_from([0.0, 0.05, 0.5]),
    maf=st.sampled_from([0.0, 0.1, 0.25]),
)
def test_filters_are_what_they_say(seed: int, mind: float, geno: float, hwe: float, maf: float) -> None:
    rng = np.random.default_rng(seed)
    calls = rng.binomial(2, rng.uniform(0, 1, (20, 1)), (20, 12)).astype(np.int8)
    calls[rng.uniform(size=calls.shape) < rng.choice([0.0, 0.1, 0.4], 12)] = -1
    people, keep = naive(calls, mind, geno, hwe, maf)
    filters = Filters(max_sample_missing=mind, max_snp_missing=geno, hwe=hwe, maf=maf)
    if not people.any() or not keep.any():
        with pytest.raises(ValueError, match="filter"):
            filters.apply(Genotypes.from_calls(calls))
        return
    if np.any(np.all(calls[np.ix_(keep, people)] < 0, axis=0)):
        with pytest.raises(ValueError, match="call"):
            filters.apply(Genotypes.from_calls(calls))
        return
    found = filters.apply(Genotypes.from_calls(calls))
    assert_array_equal(found.source.sample_index, np.flatnonzero(people))
    assert_array_equal(found.source.snp_index, np.flatnonzero(keep))
    again = filters.apply(Genotypes.from_calls(calls).select(people))
    assert_array_equal(again.source.snp_index, found.source.snp_index)


def test_thresholds_are_met_by_equals() -> None:
    calls = varied(4, 40)
    calls[0], calls[1, :4] = 0, -1
    calls[0, :4] = 1  # 4 copies among 80
    found = Filters(maf=0.05, max_snp_missing=0.1, max_sample_missing=0.25).apply(Genotypes.from_calls(calls))
    assert found.source.shape == (40, 4)
    assert Filters(maf=0.0501).apply(Genotypes.from_calls(calls)).removed["maf"] == 1


def test_constant_and_empty_snps_are_dropped_and_counted() -> None:
    calls = varied(8)
    calls[1], calls[2], calls[5] = 0, 2, -1
    calls[6] = 1  # all heterozygous: two alleles
    found = Filters().apply(Genotypes.from_calls(calls))
    assert (found.removed["monomorphic"], found.removed["all_missing"]) == (2, 1)
    assert_array_equal(found.source.snp_index, [0, 3, 4, 6, 7])


def test_a_sample_without_calls_is_refused_by_name() -> None:
    calls = varied()
    calls[:, [4, 7]] = -1
    source = named(calls, people=[(f"F{i}", f"P{i}") for i in range(40)])
    with pytest.raises(ValueError, match=r"2 samples.*30 SNPs.*F4 P4, F7 P7"):
        Filters().apply(source)
    assert Filters(max_sample_missing=0.99).apply(source).removed["max_sample_missing"] == 2
    assert Filters(remove=["P4", ("F7", "P7")]).apply(source).source.shape == (38, 30)


def test_a_sample_whose_calls_are_filtered_away_is_refused() -> None:
    calls = varied(6)
    calls[:, 5] = -1
    calls[2] = 0  # the only SNP on which s6 has a call is monomorphic
    with pytest.raises(ValueError, match=r"1 sample.*5 SNPs.*left: 0 s6"):
        Filters().apply(Genotypes.from_calls(calls))


def test_nothing_left_is_said_with_the_account() -> None:
    with pytest.raises(ValueError, match=r"SNPs.*\(≥ 0.5\).*30\.$"):
        Filters(maf=0.5).apply(Genotypes.from_calls(varied()[:, :-1]))
    some = [f"snp{j + 1}" for j in range(4)]
    said = r"which removed the last 26\. Before it, exclude removed 4 SNPs\.$"
    with pytest.raises(ValueError, match=said):
        Filters(maf=0.5, exclude=some).apply(Genotypes.from_calls(varied()[:, :-1]))
    with pytest.raises(ValueError, match="samples"):
        Filters(keep=[]).apply(Genotypes.from_calls(varied()))
    with pytest.raises(ValueError, match="SNPs"):
        Filters(chromosomes="X").apply(Genotypes.from_calls(varied()))


def test_heterozygosity_in_standard_deviations_and_as_a_range() -> None:
    calls = varied(200)
    calls[:, 9] = 1
    source = Genotypes.from_calls(calls)
    rate = sample_quality(source).het_rate
    kept = np.abs(rate - rate.mean()) <= 3 * rate.std(ddof=1)
    found = Filters(heterozygosity=3).apply(source)
    assert not kept[9]
    assert_array_equal(found.source.sample_index, np.flatnonzero(kept))
    low, high = np.quantile(rate, [0.2, 0.8])
    found = Filters(heterozygosity=(low, high)).apply(source)
    assert_array_equal(found.source.sample_index, np.flatnonzero((rate >= low) & (rate <= high)))
    with pytest.raises(ValueError, match="1 to 22"):
        Filters(heterozygosity=3, chromosomes="X").apply(named(calls, ["X"] * 200))


@pytest.mark.parametrize(
    ("spec", "left"),
    [
        ("1-22", ["1", "2", "22"]),
        ("all", ["0", "1", "2", "22", "X", "Y", "XY", "MT", "HLA-A"]),
        ("1,X", ["1", "X"]),
        (["chr2", 26], ["2", "MT"]),
        ("22-24", ["22", "X", "Y"]),
        ("0, HLA-A", ["0", "HLA-A"]),
    ],
)
def test_chromosomes(spec: Any, left: list[str]) -> None:
    there = ["0", "1", "2", "22", "X", "Y", "XY", "MT", "HLA-A"]
    found = Filters(chromosomes=spec).apply(named(varied(9), there, sex=1))
    # an X, Y or MT of heterozygous males would have no alleles; here both alleles are seen in homozygotes
    assert list(found.source.snps.chromosome) == left
    assert found.left_out == {name: 1 for name in there if name not in left}


def test_ranges_are_kept_or_left_out(tmp_path: Path) -> None:
    source = named(varied(6), ["1", "1", "1", "2", "2", "2"])
    file = tmp_path / "ranges.txt"
    file.write_text("#CHROM start end\nchr1 2000 3000 first\n\n2\t5500\t9999\n", "utf-8")
    for given_ in (file, str(file), "1:2000-3000,2:5500-9999", ["1:2000-3000", "chr2:5500-9999"]):
        assert_array_equal(Filters(ranges=given_).apply(source).source.snp_index, [1, 2, 5])
        assert_array_equal(Filters(exclude_ranges=given_).apply(source).source.snp_index, [0, 3, 4])
    with pytest.warns(UserWarning, match=r"1 of 2 ranges.*SNP: 3:1-5"):
        assert Filters(ranges=["1:1-9999", "3:1-5"]).apply(source).notes


@pytest.mark.parametrize(
    "content",
    ["a A2\nb A3\n", "#FID IID\na A2\nb A3", "a\tA2\tmore\n\nb\tA3\n", "A2\r\nA3\r\n", "#IID SEX\nA2 1\nA3 2\n"],
)
def test_sample_lists(tmp_path: Path, content: str) -> None:
    people = [("a", "A1"), ("a", "A2"), ("b", "A3"), ("b", "A4")]
    source = named(varied(5, 4), people=people)
    file = tmp_path / "people.txt"
    file.write_text(content, "utf-8")
    assert_array_equal(Filters(keep=file).apply(source).source.sample_index, [1, 2])
    assert_array_equal(Filters(remove=str(file)).apply(source).source.sample_index, [0, 3])
    both = Filters(keep=iter(["A1", "a:A2"]), remove=[("a", "A1")])
    for _ in range(2):  # an iterator given once serves every use
        assert_array_equal(both.apply(source).source.sample_index, [1])


def test_snp_lists(tmp_path: Path) -> None:
    source = named(varied(4), ids=["rs1", "rs2", "rs3", "rs4"])
    file = tmp_path / "snps.txt"
    file.write_text("rs2\n\n rs4 \n", "utf-8")
    assert_array_equal(Filters(extract=file).apply(source).source.snp_index, [1, 3])
    assert_array_equal(Filters(exclude=["rs1", "rs2"]).apply(source).source.snp_index, [2, 3])
    assert Filters(extract=file, exclude=["rs2"]).apply(source).removed == {
        "chromosomes": 0,
        "extract": 2,
        "exclude": 1,
        "all_missing": 0,
        "monomorphic": 0,
    }


def test_ids_that_match_nothing_or_much_are_reported() -> None:
    source = named(
        varied(4, 5),
        ids=["rs1", "rs1", "rs2", "rs3"],
        people=[("a", "1"), ("b", "1"), ("c", "2"), *[("d", x) for x in "34"]],
    )
    wanted = ["rs1", "rs3", "rs3", *(f"no{i}" for i in range(7))]
    with pytest.warns(UserWarning, match="extract|keep") as seen:
        found = Filters(extract=wanted, keep=["1", "2", ("d", "9")]).apply(source)
    said = [str(item.message) for item in seen]
    assert said == list(found.notes)
    assert said == [
        "extract: 7 of 9 SNP ids are not in the data: no0, no1, no2, no3, no4, ….",
        "extract: 1 SNP ids belong to more than one SNP, all of which are meant: rs1 (2).",
        "extract: 1 SNP ids are listed more than once, and count once: rs3.",
        "keep: 1 of 3 sample ids are not in the data: d 9.",
        "keep: 1 sample ids belong to more than one sample, all of which are meant: 1 (2).",
    ]
    assert all(item.filename == __file__ for item in seen)
    assert_array_equal(found.source.snp_index, [0, 1, 3])
    assert_array_equal(found.source.sample_index, [0, 1, 2])


def test_a_snp_on_a_chromosome_left_out_is_no_unknown_id() -> None:
    source = named(varied(3), ["1", "1", "X"], ["rs1", "rs2", "rsX"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = Filters(extract=["rs1", "rsX"]).apply(source)
    assert_array_equal(found.source.snp_index, [0])
    assert found.removed["extract"] == 1


@pytest.mark.parametrize(
    ("argument", "content", "complaint"),
    [
        ("keep", b"a A1\nA2\n", r"keep: .*list\.txt: line 2 has 1 field; 2, FID and IID, were expected"),
        ("remove", b"A1\n\na A2\n", r"remove: .*list\.txt: line 3 has 2 fields; 1, the IID, was expected"),
        ("extract", b"rs1\nrs2 G\n", r"extract: .*list\.txt: line 2 has 2 fields; one SNP id was expected"),
        ("exclude", b"rs1\nrs\xff\n", r"exclude: .*list\.txt: line 2 is not UTF-8"),
        ("ranges", b"1 5 9\n1 5\n", r"list\.txt: line 2: '1 5' is not a range: chromosome, start and end"),
        ("ranges", b"1 5 x\n", r"list\.txt: line 1: .* is not a range"),
        ("exclude_ranges", b"1 9 5\n", r"list\.txt: line 1: the range ends \(5\) before it starts \(9\)"),
    ],
)
def test_lists_that_cannot_be_read(tmp_path: Path, argument: str, content: bytes, complaint: str) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=complaint):
        Filters(**{argument: file}).apply(Genotypes.from_calls(varied()))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="rs7"):
        Filters(extract="rs7").apply(Genotypes.from_calls(varied()))
    with pytest.raises(IsADirectoryError, match="folder"):
        Filters(keep=tmp_path).apply(Genotypes.from_calls(varied()))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"maf": 0.6}, r"maf=0.6 must lie between 0 and 0.5"),
        ({"max_snp_missing": -0.1}, "max_snp_missing=-0.1 must lie between 0 and 1"),
        ({"max_sample_missing": float("nan")}, "max_sample_missing=nan must lie"),
        ({"hwe": 2}, "hwe=2 must lie"),
        ({"heterozygosity": 0}, "positive number of standard deviations"),
        ({"heterozygosity": (0.5, 0.2)}, r"must be a range \(low, high\)"),
        ({"heterozygosity": (0.1, 0.2, 0.3)}, r"must be a range \(low, high\)"),
        ({"chromosomes": ""}, "names none"),
        ({"chromosomes": "22-1"}, "runs backwards"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Filters(**arguments)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"chromosomes": "1,chrQ"}, "chrQ.*no such chromosome in the data, which have 1"),
        ({"chromosomes": "chrQ,contig9"}, "chrQ, contig9.*no such"),
        ({"ranges": ["6"]}, "'6' is not a range"),
        ({"ranges": "1:9-5"}, r"the range ends \(5\) before it starts \(9\)"),
        ({"keep": [("a", "b", "c")]}, "is not a sample"),
    ],
)
def test_arguments_that_make_no_sense_with_the_data(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Filters(**arguments).apply(Genotypes.from_calls(varied()))


def test_the_genotypes_are_read_once_or_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = varied(50)
    calls[:20, 6] = -1
    source = Genotypes.from_calls(calls)
    read: list[int] = []
    packed = Genotypes.packed
    monkeypatch.setattr(Genotypes, "packed", lambda self, a, b: read.append(b - a) or packed(self, a, b))
    Filters(maf=0.01, hwe=1e-9, max_snp_missing=0.5).apply(source)
    assert sum(read) == 50
    read.clear()
    Filters(maf=0.01, max_sample_missing=0.1, heterozygosity=2).apply(Genotypes.from_calls(calls))
    assert sum(read) == 100


def test_the_account_shows_and_writes_itself(tmp_path: Path) -> None:
    found = SAME["all"].apply(study())
    lines = repr(found).splitlines()
    assert lines[0] == "Filtered: 83 samples × 400 SNPs → 77 × 177"
    assert "1-22; left out: 24 on X, 8 on Y, 6 on XY, 6 on MT, 4 unplaced" in lines[2]
    found.write(tmp_path / "account.tsv")
    written = (tmp_path / "account.tsv").read_text("utf-8").splitlines()
    assert written[0] == "filter\tof\tremoved\tleft\tdetail"
    assert written[-1].split("\t")[0] == "maf"
    assert_allclose([int(line.split("\t")[3]) for line in written[1:]], found.table()["left"])
