"""PLINK's files: read as the format says, and refused with expected and actual lengths where they do not fit."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramian
from gramian.sources.plink import Genotypes, Samples, Snps, chromosome_name, open_bed, read_bim, read_fam

CALLS = np.array([[0, 1, 2, -1, 1], [2, 2, 0, 0, -1], [1, 1, 1, 2, 0]])
FAM = "F1 a 0 0 1 -9\nF1 b 0 0 2 1\nF2 c a b 0 2.5\n0 d 0 0 1 NA\n0 e 0 0 x -9\n"
BIM = "1\trs1\t0\t100\tA\tG\n2\trs2\t0.5\t200\tC\tT\nX\trs3\t0\t300\tA\tACG\n"


@pytest.fixture
def bed(tmp_path: Path) -> Path:
    path = tmp_path / "t.bed"
    path.write_bytes(b"\x6c\x1b\x01" + Genotypes.from_calls(CALLS).packed(0, 3).tobytes())
    path.with_suffix(".fam").write_text(FAM)
    path.with_suffix(".bim").write_text(BIM)
    return path


def test_a_fileset_is_read(bed: Path) -> None:
    G = gramian.open(bed)
    assert isinstance(G, Genotypes)
    assert (G.shape, G.resident, G.path) == ((5, 3), False, bed)
    assert np.array_equal(G.calls(0, 3), CALLS)
    assert G.samples.names == ["F1:a", "F1:b", "F2:c", "d", "e"]
    assert G.samples.sex.tolist() == [1, 2, 0, 1, 0]
    assert G.samples.phenotype.tolist() == ["-9", "1", "2.5", "NA", "-9"]
    assert G.snps.chromosome.tolist() == ["1", "2", "X"]
    assert G.snps.position.tolist() == [100, 200, 300]
    assert G.snps.cm.tolist() == [0.0, 0.5, 0.0]
    assert (G.snps.a1.tolist(), G.snps.a2.tolist()) == (["A", "C", "A"], ["G", "T", "ACG"])
    assert G.feature_names == ["rs1", "rs2", "rs3"]
    assert G.notes == ()


def test_rows_are_samples_with_nan_where_missing(bed: Path) -> None:
    G = open_bed(bed)
    for rows in (1, 2, 5, None):
        X = np.concatenate([block.values.copy() for block in G.blocks(rows)])
        np.testing.assert_array_equal(X, np.where(CALLS < 0, np.nan, CALLS).T)


def test_rows_of_samples_far_apart_take_no_more_memory_than_they_hold() -> None:
    calls = np.random.default_rng(0).integers(-1, 3, (2000, 4000)).astype(np.int8)
    view = Genotypes.from_calls(calls).select(samples=[1, 2000, 3999])
    tracemalloc.start()
    (block,) = view.blocks(3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    want = calls[:, [1, 2000, 3999]].T
    np.testing.assert_array_equal(block.values, np.where(want < 0, np.nan, want))
    assert peak < 2**20  # the calls of everybody between them are 8 MB


def test_bits_after_the_last_sample_mean_nothing(bed: Path) -> None:
    clean = open_bed(bed)
    by_snp, by_sample = clean.counts()
    packed = clean.packed(0, 3).copy()
    packed[:, 1] |= 0b10_11_01_00  # 5 samples leave 3 places in a second byte
    G = Genotypes.from_packed(packed, 5)
    assert np.array_equal(G.calls(0, 3), CALLS)
    assert np.array_equal(G.counts().by_snp, by_snp)
    assert np.array_equal(G.counts().by_sample, by_sample)
    np.testing.assert_array_equal(next(G.blocks()).values, np.where(CALLS < 0, np.nan, CALLS).T)


def test_pca_takes_a_bed_file_as_any_other(bed: Path) -> None:
    found = gramian.PCA(n_components=1).fit(open_bed(bed).select(snps=[2]))
    assert np.isclose(found.explained_variance_[0], np.var(CALLS[2], ddof=1))


@given(st.lists(st.booleans(), min_size=5, max_size=5), st.lists(st.booleans(), min_size=3, max_size=3))
def test_a_view_holds_what_indexing_would(samples: list[bool], snps: list[bool]) -> None:
    G = Genotypes.from_calls(CALLS).select(samples=samples).select(snps=snps)
    want = CALLS[snps][:, samples]
    assert G.shape == want.T.shape
    assert np.array_equal(G.calls(0, G.shape[1]), want)
    counts = G.counts()
    assert np.array_equal(counts.by_snp[:, 3], (want < 0).sum(axis=1))
    assert np.array_equal(counts.by_sample[:, 1], (want == 1).sum(axis=0))
    assert np.array_equal(G.select(snps=np.zeros(G.shape[1], bool)).snp_counts(), np.zeros((0, 4)))


def test_counts_of_snps_are_kept_by_views_of_the_same_samples(bed: Path) -> None:
    G = open_bed(bed)
    G.counts()
    view = G.select(snps=[0, 2])
    assert view._counts is None
    assert np.array_equal(view.snp_counts(), view.counts().by_snp)


def test_indices_must_ascend(bed: Path) -> None:
    for wrong in ([2, 1], [0, 0], [-1], [7]):
        with pytest.raises(ValueError, match="0 to"):
            open_bed(bed).select(snps=wrong)
    with pytest.raises(ValueError, match="mask"):
        open_bed(bed).select(samples=[True, False])
    for wrong in ([0.5, 1.7], slice(0, 2), ["a"]):
        with pytest.raises(ValueError, match="expected"):
            open_bed(bed).select(samples=wrong)
    assert open_bed(bed).select(samples=[]).shape == (0, 3)


@pytest.mark.parametrize("separator", [" ", "   ", "\t", " \t "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_tabs_or_spaces(tmp_path: Path, separator: str, end: str) -> None:
    path = tmp_path / "a.fam"
    path.write_bytes(end.join(separator.join(["F", f"s{i}", "0", "0", "2", "-9"]) for i in range(3)).encode())
    samples = read_fam(path)
    assert samples.iid.tolist() == ["s0", "s1", "s2"]
    assert samples.phenotype.tolist() == ["-9"] * 3


@pytest.mark.parametrize(
    "head", ["#FID IID PAT MAT SEX PHENO1\n", "# made by hand\n#FID\tIID\n", "fid iid father mother sex pheno\n"]
)
def test_a_header_of_a_fam_file_is_no_sample(bed: Path, head: str) -> None:
    """PLINK 1.9 and 2 skip lines that begin with #: otherwise everybody would get the next one's genotypes."""
    bed.with_suffix(".fam").write_text(head + FAM)
    G = open_bed(bed)
    assert G.samples.names == ["F1:a", "F1:b", "F2:c", "d", "e"]
    assert np.array_equal(G.calls(0, 3), CALLS)


def test_empty_fields_between_tabs_are_missing_names(tmp_path: Path) -> None:
    path = tmp_path / "a.bim"
    path.write_text("1\t\t0\t5\tA\tC\n1\t.\t0\t6\tA\tC\n1\trs7\t0\t7\tA\tC\n1\trs7\t0\t8\tA\tC\n")
    notes = read_bim(path).notes()
    assert notes == [
        "2 SNPs have no name (line 1, line 2).",
        "1 name of SNPs is given more than once: rs7 (2 times).",
    ]


@pytest.mark.parametrize("separator", ["\t", " "])
def test_numbers_are_those_of_python_however_they_are_written(tmp_path: Path, separator: str) -> None:
    """Plain columns are read as numbers at once; one field that is written otherwise, and all are read one by one."""
    rng = np.random.default_rng(0)
    plain = [(f"{rng.uniform(0, 300):.{k % 9}f}", str(int(10**d))) for k, d in enumerate(rng.uniform(0, 9, 200))]
    for more in (
        [],
        [("0", "1e+05")],
        [("1e-3", "+7")],
        [("-0.5", "12")],
        [("nan", "1.0")],
        [("0", " 3")][: separator == "\t"],
    ):
        rows = plain + more
        path = tmp_path / "a.bim"
        lines = [["chr2" if i < 50 else "X", f"rs{i}", cm, place, "A", "C"] for i, (cm, place) in enumerate(rows)]
        path.write_text("".join(separator.join(line) + "\n" for line in lines))
        found = read_bim(path)
        np.testing.assert_array_equal(found.cm, [float(cm) for cm, _ in rows])
        assert found.position.tolist() == [int(float(place)) for _, place in rows]
        assert (found.cm.dtype, found.position.dtype) == (np.float64, np.int64)
        assert found.chromosome.tolist() == ["2"] * 50 + ["X"] * (len(rows) - 50)
        assert found.are_named
        assert found.id.tolist() == [f"rs{i}" for i in range(len(rows))]


def test_alleles_that_are_several_are_counted() -> None:
    snps = Snps.numbered(3)
    snps.a1[1] = "A,T"
    (note,) = Genotypes.from_calls([[0, 1]] * 3, Samples.numbered(2), snps).notes
    assert note.startswith("1 SNPs name several alleles as one: snp2.")


def test_samples_named_twice_or_not_at_all_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.fam"
    path.write_text("F a 0 0 1 1\nF a 0 0 1 1\nG a 0 0 1 1\nG 0 0 0 1 1\n")
    assert read_fam(path).notes() == [
        "1 samples have no name (line 4).",
        "1 name of samples is given more than once: F a (2 times).",
    ]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("1", "1"),
        ("chr22", "22"),
        ("23", "X"),
        ("x", "X"),
        ("24", "Y"),
        ("25", "XY"),
        ("26", "MT"),
        ("chrM", "MT"),
        ("0", "0"),
        ("chrUn_1", "chrUn_1"),
        ("27", "27"),
        ("PAR1", "XY"),
    ],
)
def test_chromosomes_in_any_spelling(code: str, name: str) -> None:
    assert chromosome_name(code) == name


class TestRefusals:
    def test_wrong_magic(self, bed: Path) -> None:
        bed.write_bytes(b"PK\x03\x04" + bytes(9))
        with pytest.raises(ValueError, match=r"t\.bed.*PLINK.*50 4b 03.*6c 1b 01"):
            open_bed(bed)

    def test_empty(self, bed: Path) -> None:
        bed.write_bytes(b"")
        with pytest.raises(ValueError, match="empty file"):
            open_bed(bed)

    def test_sample_major(self, bed: Path) -> None:
        bed.write_bytes(b"\x6c\x1b\x00" + Genotypes.from_calls(CALLS.T).packed(0, 5)[:-1].tobytes())
        with pytest.raises(ValueError, match=r"take 8 bytes.*has 7.*4 samples of 3 SNPs"):
            open_bed(bed)

    def test_unknown_mode(self, bed: Path) -> None:
        bed.write_bytes(b"\x6c\x1b\x07" + bytes(6))
        with pytest.raises(ValueError, match="is 07"):
            open_bed(bed)

    @pytest.mark.parametrize(
        ("change", "word"), [(-1, "truncated"), (-2, "truncated"), (1, "too long"), (2, "too long")]
    )
    def test_length(self, bed: Path, change: int, word: str) -> None:
        content = bed.read_bytes()
        bed.write_bytes(content[:change] if change < 0 else content + bytes(change))
        with pytest.raises(ValueError, match=rf"{word}.*5 samples.*3 SNPs.*take 9 bytes, the file has {9 + change}\."):
            open_bed(bed)

    def test_fam_of_another_length(self, bed: Path) -> None:
        bed.with_suffix(".fam").write_text(FAM * 2)
        with pytest.raises(ValueError, match=r"10 samples \(t\.fam\) × 3 SNPs \(t\.bim\).*12 bytes.*has 9"):
            open_bed(bed)

    def test_bim_of_another_length(self, bed: Path) -> None:
        bed.with_suffix(".bim").write_text(BIM * 2)
        with pytest.raises(ValueError, match=r"6 SNPs.*15 bytes.*9\. It.*3 SNPs.*5 samples"):
            open_bed(bed)

    @pytest.mark.parametrize("n", [5, 6, 7, 8])
    def test_a_fam_file_with_samples_too_few_or_too_many(self, tmp_path: Path, n: int) -> None:
        """Every number of samples that takes the same bytes is told apart by the bits after the last sample."""
        calls = np.random.default_rng(n).integers(-1, 3, (300, n))
        path = tmp_path / "t.bed"
        path.write_bytes(b"\x6c\x1b\x01" + Genotypes.from_calls(calls).packed(0, 300).tobytes())
        path.with_suffix(".bim").write_text("".join(f"1 rs{i} 0 {i} A G\n" for i in range(300)))
        for listed in (5, 6, 7, 8):
            path.with_suffix(".fam").write_text("".join(f"0 s{i} 0 0 1 -9\n" for i in range(listed)))
            if listed == n:
                assert np.array_equal(open_bed(path).calls(0, 300), calls)
            else:
                with pytest.raises(ValueError, match=rf"t\.bed.*{listed} samples"):
                    open_bed(path)

    def test_ragged_line(self, bed: Path) -> None:
        bed.with_suffix(".fam").write_text(FAM.replace("F2 c a b 0 2.5", "F2 c a b 0"))
        with pytest.raises(ValueError, match=r"t\.fam: line 3.*5 fields; 6 were"):
            open_bed(bed)

    def test_position_that_is_no_number(self, bed: Path) -> None:
        bed.with_suffix(".bim").write_text(BIM.replace("200", "2e2x"))
        with pytest.raises(ValueError, match=r"t\.bim: line 2.*'2e2x'"):
            open_bed(bed)

    def test_the_line_is_the_one_an_editor_shows(self, bed: Path) -> None:
        bed.with_suffix(".bim").write_text("\n" + BIM.replace("200", "x").replace("2\trs2", "\n\n2\trs2"))
        with pytest.raises(ValueError, match=r"t\.bim: line 5.*'x'"):
            open_bed(bed)

    def test_a_name_without_its_ending(self, bed: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"t\.bed"):
            open_bed(bed.with_suffix(""))

    def test_not_utf8(self, bed: Path) -> None:
        bed.with_suffix(".fam").write_bytes(FAM.encode().replace(b"F2", b"F\xfc"))
        with pytest.raises(ValueError, match=r"t\.fam: line 3.*0xfc.*28, which.*UTF-8"):
            open_bed(bed)

    @pytest.mark.parametrize("suffix", [".fam", ".bim"])
    def test_nothing_in_a_table(self, bed: Path, suffix: str) -> None:
        bed.with_suffix(suffix).write_text("\n")
        with pytest.raises(ValueError, match=rf"t\{suffix}: the file is empty"):
            open_bed(bed)

    @pytest.mark.parametrize("suffix", [".fam", ".bim"])
    def test_missing_companion(self, bed: Path, suffix: str) -> None:
        bed.with_suffix(suffix).unlink()
        with pytest.raises(FileNotFoundError, match=rf"t\{suffix}: no such file; a \.bed file needs"):
            open_bed(bed)
        bed.with_suffix(suffix).mkdir()
        with pytest.raises(IsADirectoryError, match=rf"t\{suffix} is a folder"):
            open_bed(bed)

    def test_a_folder_or_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(IsADirectoryError, match="is a folder"):
            open_bed(tmp_path)
        with pytest.raises(FileNotFoundError, match=r"no\.bed"):
            open_bed(tmp_path / "no.bed")

    def test_an_unreadable_file(self, bed: Path) -> None:
        if os.geteuid() == 0:
            pytest.skip("the superuser may read every file")
        bed.chmod(0)
        with pytest.raises(PermissionError, match=r"t\.bed"):
            open_bed(bed)


def test_names_and_calls_must_have_the_same_length() -> None:
    with pytest.raises(ValueError, match=r"2 SNPs.*5 samples"):
        Genotypes.from_calls(CALLS, snps=Snps.numbered(2))
    with pytest.raises(ValueError, match="SNPs ×"):
        Genotypes.from_calls(CALLS[0], Samples.numbered(5))
