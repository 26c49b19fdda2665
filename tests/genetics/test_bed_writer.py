"""PLINK files written in blocks: the right bytes, all of the files or none."""

import os
import shutil
import subprocess
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from gramian.genetics.bed_writer import BedWriter, write_bed
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed
from oracles import Array

FILES = [".bed", ".bim", ".fam"]
CALLS = st.tuples(st.integers(1, 6), st.integers(1, 9)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.integers(-1, 2))
)


def some_calls(p: int, n: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-1, 3, (p, n), dtype=np.int8)


def naive_bytes(calls: Array) -> bytes:
    """The file as PLINK's description of the format has it, two bits at a time."""
    out = bytearray([0x6C, 0x1B, 0x01])
    for row in calls.tolist():
        for start in range(0, len(row), 4):
            byte = 0
            for place, copies in enumerate(row[start : start + 4]):
                byte += {2: 0b00, -1: 0b01, 1: 0b10, 0: 0b11}[copies] * 4**place
            out.append(byte)
    return bytes(out)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@given(calls=CALLS, cut=st.integers(0, 6))
def test_bytes_are_those_of_the_format_however_they_are_cut(calls: Array, cut: int, tmp_path_factory) -> None:
    path = tmp_path_factory.mktemp("bed") / "x.bed"
    p, n = calls.shape
    snps = Snps.numbered(p)
    with BedWriter(path, Samples.numbered(n)) as writer:
        for part in (slice(0, min(cut, p)), slice(min(cut, p), p)):
            writer.append(calls[part], snps.take(part))
    assert path.read_bytes() == naive_bytes(calls)
    assert writer.n_snps == p
    assert_array_equal(open_bed(path).calls(0, p), calls)


def test_tables_come_back_as_they_were(tmp_path: Path) -> None:
    text = lambda *values: np.array(values, dtype=object)  # noqa: E731
    samples = Samples(
        text("f1", "0"), text("Åse", "b"), text("0", "p"), text("0", "m"), np.array([2, 0], np.int8), text("-9", "1.5")
    )
    snps = Snps(
        text("1", "X"),
        text("rs1", "."),
        np.array([0.25, 1e-7]),
        np.array([7, 155000000]),
        text("A", "TTC"),
        text("G", "0"),
    )
    back = open_bed(write_bed(tmp_path / "x.bed", [[0, 1], [2, -1]], samples, snps))
    for before, after in ((samples, back.samples), (snps, back.snps)):
        for name, column in vars(before).items():
            assert getattr(after, name).tolist() == column.tolist()
    assert (tmp_path / "x.fam").read_text("utf-8").splitlines()[0] == "f1 Åse 0 0 2 -9"
    assert (tmp_path / "x.bim").read_text("utf-8").splitlines()[1] == "X\t.\t1e-07\t155000000\tTTC\t0"


@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
def test_plink_reads_the_same_genotypes(tmp_path: Path) -> None:
    calls = some_calls(50, 21)
    write_bed(tmp_path / "x.bed", calls)
    command = ["plink2", "--bfile", "x", "--export", "A", "--export-allele", "x.a1", "--out", "y"]
    (tmp_path / "x.a1").write_text("".join(f"snp{j + 1}\tA\n" for j in range(50)))
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    rows = [line.split("\t")[6:] for line in (tmp_path / "y.raw").read_text().splitlines()[1:]]
    theirs = np.array([[-1 if field == "NA" else int(field) for field in row] for row in rows])
    assert_array_equal(theirs.T, calls)


def test_a_view_and_an_array_are_written(tmp_path: Path) -> None:
    calls = some_calls(30, 13)
    whole = Genotypes.from_calls(calls)
    view = whole.select(samples=np.arange(13) % 3 == 0, snps=[1, 4, 5, 29])
    back = open_bed(write_bed(tmp_path / "view.bed", view))
    assert_array_equal(back.calls(0, 4), calls[[1, 4, 5, 29]][:, ::3])
    assert back.snps.id.tolist() == ["snp2", "snp5", "snp6", "snp30"]
    assert back.samples.names == ["s1", "s4", "s7", "s10", "s13"]
    path = write_bed(tmp_path / "floats.bed", calls.astype(float))
    assert path.read_bytes() == naive_bytes(calls)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("before", [True, False])
def test_nothing_stays_behind_when_writing_ends_badly(tmp_path: Path, error: type[BaseException], before: bool) -> None:
    if before:
        write_bed(tmp_path / "x.bed", some_calls(3, 5))
    there = content(tmp_path)

    def fail() -> None:
        with BedWriter(tmp_path / "x.bed", Samples.numbered(4), overwrite=True) as writer:
            writer.append(some_calls(100, 4), Snps.numbered(100))
            raise error

    with pytest.raises(error):
        fail()
    assert content(tmp_path) == there


@pytest.mark.parametrize("overwritten", [True, False])
@pytest.mark.parametrize("fails_at", range(1, 9))
def test_a_rename_that_fails_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int, overwritten: bool
) -> None:
    if overwritten:
        write_bed(tmp_path / "x.bed", some_calls(3, 5))
    there, calls, real = content(tmp_path), [0], os.rename

    def rename(old: Path, new: Path) -> None:
        calls[0] += 1
        if calls[0] == fails_at:
            raise OSError("the disk is gone")
        real(old, new)

    monkeypatch.setattr(os, "rename", rename)
    if fails_at > (7 if overwritten else 4):  # three old files, the folder they wait in, three new ones
        write_bed(tmp_path / "x.bed", some_calls(3, 5, seed=1), overwrite=overwritten)
        assert sorted(content(tmp_path)) == ["x.bed", "x.bim", "x.fam"]
        return
    with pytest.raises(OSError, match="disk"):
        write_bed(tmp_path / "x.bed", some_calls(3, 5, seed=1), overwrite=overwritten)
    assert content(tmp_path) == there


@pytest.mark.parametrize("suffix", FILES)
def test_files_are_replaced_only_when_told(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"x{suffix}").write_text("old")
    with pytest.raises(FileExistsError, match=f"x{suffix}: pass overwrite=True"):
        write_bed(tmp_path / "x.bed", some_calls(3, 5))
    assert content(tmp_path) == {f"x{suffix}": b"old"}
    write_bed(tmp_path / "x.bed", some_calls(3, 5), overwrite=True)
    assert open_bed(tmp_path / "x.bed").shape == (5, 3)


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    def race() -> None:
        with BedWriter(tmp_path / "x.bed", Samples.numbered(5)) as writer:
            writer.append(some_calls(3, 5), Snps.numbered(3))
            (tmp_path / "x.bim").write_text("of another")

    with pytest.raises(FileExistsError, match=r"x\.bim"):
        race()
    assert content(tmp_path) == {"x.bim": b"of another"}


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    calls, snps, peaks = some_calls(64, 2000), Snps.numbered(64), []
    for blocks in (4, 80):
        tracemalloc.start()
        with BedWriter(tmp_path / f"{blocks}.bed", Samples.numbered(2000)) as writer:
            for _ in range(blocks):
                writer.append(calls, snps)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert (tmp_path / "80.bed").stat().st_size == 3 + 80 * 64 * 500
    assert peaks[1] < 1.2 * peaks[0]


def test_refused(tmp_path: Path) -> None:
    samples, snps = Samples.numbered(5), Snps.numbered(3)
    with pytest.raises(ValueError, match="must"):
        BedWriter(tmp_path / "x.txt", samples)
    with pytest.raises(ValueError, match="no samples"):
        BedWriter(tmp_path / "x.bed", Samples.numbered(0))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        BedWriter(tmp_path / "nowhere" / "x.bed", samples)
    with pytest.raises(ValueError, match="SNPs"), BedWriter(tmp_path / "x.bed", samples):
        pass
    with pytest.raises(ValueError, match="2 × 5; 3 SNPs × 5 samples"), BedWriter(tmp_path / "x.bed", samples) as writer:
        writer.append(some_calls(2, 5), snps)
    for packed in (np.zeros((3, 1), np.uint8), np.zeros((3, 2), np.int8)):
        with pytest.raises(ValueError, match=r"3 SNPs.*2 bytes"), BedWriter(tmp_path / "x.bed", samples) as writer:
            writer.append_packed(packed, snps)
    with pytest.raises(ValueError, match="of 5"), BedWriter(tmp_path / "x.bed", samples) as writer:
        writer.append_packed(np.full((3, 2), 255, np.uint8), snps)
    with pytest.raises(ValueError, match=r"SNP 1.*2 has.*genotype 0\.5"):
        write_bed(tmp_path / "x.bed", [[0, 1, 2], [0, 1, 0.5]])
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        write_bed(tmp_path / "x.bed", [0, 1, 2])
    with pytest.raises(ValueError, match=r"2 SNPs.*5 samples.*are 3 × 5"):
        write_bed(tmp_path / "x.bed", some_calls(3, 5), samples, Snps.numbered(2))
    assert content(tmp_path) == {}


@pytest.mark.parametrize("name", ["", "two words", "tab\t", " "])
def test_names_that_would_not_be_read_back_are_refused(tmp_path: Path, name: str) -> None:
    samples, snps = Samples.numbered(5), Snps.numbered(3)
    samples.iid[4] = snps.id[1] = name
    with pytest.raises(ValueError, match="4: iid"):
        write_bed(tmp_path / "x.bed", some_calls(3, 5), samples)
    with pytest.raises(ValueError, match="SNP 1"):
        write_bed(tmp_path / "x.bed", some_calls(3, 5), None, snps)
    assert content(tmp_path) == {}


def test_masked_calls_are_written_as_missing(tmp_path: Path) -> None:
    calls = np.ma.masked_array([[0, 1, 2], [2, 2, 9]], [[False, True, False], [False, False, True]])
    assert open_bed(write_bed(tmp_path / "x.bed", calls)).calls(0, 2).tolist() == [[0, -1, 2], [2, 2, -1]]
