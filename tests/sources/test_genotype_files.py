"""The same genotypes in every format that is read, against the calls they were written from and against PLINK."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import gramian
from gramian.genetics import GenotypePCA, write_bed
from gramian.sources.genotype_files import hash_names, open_genotypes, round_dosages
from gramian.sources.genotype_names import join_names, list_genotype_files
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed

RNG = np.random.default_rng(7)
N, P = 61, 83
CALLS = np.where(RNG.random((P, N)) < 0.05, -1, RNG.binomial(2, RNG.uniform(0.1, 0.9, (P, 1)), (P, N))).astype(np.int8)
GT = {-1: "./.", 0: "0/0", 1: "0/1", 2: "1/1"}
HEAD = "##fileformat=VCFv4.2\n##contig=<ID=1>\n##contig=<ID=X>\n" + "".join(
    f'##FORMAT=<ID={name},Number={number},Type={kind},Description="x">\n'
    for name, number, kind in (("GT", 1, "String"), ("DS", "A", "Float"), ("GP", "G", "Float"))
)


def vcf(records: list[str], names: list[str]) -> str:
    fixed = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT"
    return HEAD + "\n".join(["\t".join([fixed, *names]), *records]) + "\n"


def write_vcf(path: Path, calls: np.ndarray, snps: Snps, samples: Samples) -> None:
    rows = zip(snps.chromosome, snps.position, snps.id, snps.a2, snps.a1, calls.tolist(), strict=True)
    records = [
        "\t".join([c, str(at), name, ref, alt, ".", ".", ".", "GT", *(GT[g] for g in row)])
        for c, at, name, ref, alt, row in rows
    ]
    text = vcf(records, list(samples.iid)).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def write_text_geno(path: Path, calls: np.ndarray, snps: Snps, samples: Samples) -> None:
    path.write_text("".join("".join("9" if g < 0 else str(g) for g in row) + "\n" for row in calls))
    fields = zip(snps.id, snps.chromosome, snps.position, snps.a1, snps.a2, strict=True)
    path.with_suffix(".snp").write_text("".join(f"{i} {c} 0.0 {at} {a} {b}\n" for i, c, at, a, b in fields))
    path.with_suffix(".ind").write_text("".join(f"{name} U p\n" for name in samples.iid))


def write_packed_geno(path: Path, calls: np.ndarray, snps: Snps, samples: Samples, *, by_sample: bool = False) -> None:
    write_text_geno(path, calls, snps, samples)
    table = np.where(calls < 0, 3, calls)
    table = table.T if by_sample else table
    width = max(48, -(-table.shape[1] // 4))
    padded = np.zeros((len(table), 4 * width), np.uint8)
    padded[:, : table.shape[1]] = table
    rows = (padded.reshape(len(table), width, 4) << np.array([6, 4, 2, 0], np.uint8)).sum(axis=2).astype(np.uint8)
    kind = "TGENO" if by_sample else "GENO"
    hashes = f"{hash_names(list(samples.iid)):x} {hash_names(list(snps.id)):x}"
    head = f"{kind} {calls.shape[1]:7d} {len(calls):7d} {hashes}".encode()
    path.write_bytes(head.ljust(48 if by_sample else width, b"\0") + rows.tobytes())


def write_zarr(path: Path, calls: np.ndarray, snps: Snps, samples: Samples) -> None:
    zarr = pytest.importorskip("zarr")
    pairs = np.stack([np.where(calls < 0, -1, calls > 0), np.where(calls < 0, -1, calls > 1)], axis=2)
    root = zarr.open_group(path, mode="w", zarr_format=2)
    contigs = sorted(set(snps.chromosome))
    columns = {
        "call_genotype": pairs.astype(np.int8),
        "variant_position": snps.position.astype(np.int32),
        "variant_contig": np.array([contigs.index(c) for c in snps.chromosome], np.int8),
        "contig_id": np.array(contigs, dtype="U8"),
        "variant_id": snps.id.astype("U8"),
        "variant_allele": np.stack([snps.a2, snps.a1], axis=1).astype("U8"),
        "sample_id": samples.iid.astype("U8"),
    }
    for name, values in columns.items():
        root.create_array(name, data=values, chunks=(20, *values.shape[1:]))


def write_pgen(path: Path, calls: np.ndarray, snps: Snps, samples: Samples) -> None:
    pgenlib = pytest.importorskip("pgenlib")
    p, n = calls.shape
    with pgenlib.PgenWriter(str(path).encode(), n, variant_ct=p, nonref_flags=False) as writer:
        for row in calls:
            writer.append_biallelic(np.where(row < 0, -9, row).astype(np.int8))
    fields = zip(snps.chromosome, snps.position, snps.id, snps.a2, snps.a1, strict=True)
    rows = "".join("\t".join(map(str, row)) + "\n" for row in fields)
    path.with_suffix(".pvar").write_text("#CHROM\tPOS\tID\tREF\tALT\n" + rows)
    path.with_suffix(".psam").write_text("#IID\tSEX\n" + "".join(f"{name}\tNA\n" for name in samples.iid))


def write_bgen(path: Path, calls: np.ndarray, snps: Snps, samples: Samples) -> None:
    bgen = pytest.importorskip("bgen")
    with bgen.BgenWriter(path, calls.shape[1], samples=list(samples.iid), layout=2) as writer:
        for j, row in enumerate(calls):
            probabilities = np.eye(3)[np.maximum(row, 0)]
            probabilities[row < 0] = np.nan
            alleles = [snps.a2[j], snps.a1[j]]
            names = snps.id[j], snps.id[j], snps.chromosome[j], int(snps.position[j])
            writer.add_variant(*names, alleles, probabilities)


FORMATS = {
    "x.vcf": write_vcf,
    "x.vcf.gz": write_vcf,
    "x.geno": write_text_geno,
    "packed.geno": write_packed_geno,
    "turned.geno": lambda *given: write_packed_geno(*given, by_sample=True),
    "x.vcz": write_zarr,
    "x.pgen": write_pgen,
    "x.bgen": write_bgen,
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_genotypes_and_components_bit_for_bit(name: str, tmp_path: Path) -> None:
    if ".vcf" in name:
        pytest.importorskip("cyvcf2")
    samples, snps = Samples.numbered(N), Snps.numbered(P)
    FORMATS[name](tmp_path / name, CALLS, snps, samples)
    reference, G = open_bed(write_bed(tmp_path / "x.bed", CALLS)), gramian.open(tmp_path / name)
    assert isinstance(G, Genotypes)
    assert np.array_equal(G.calls(0, P), CALLS)
    for field in ("chromosome", "id", "position", "a1", "a2"):
        assert np.array_equal(getattr(G.snps, field), getattr(reference.snps, field)), field
    assert G.samples.names == reference.samples.names
    assert (G.notes, G.path) == ((), None)
    for one, other in zip(G.counts(), reference.counts(), strict=True):
        assert np.array_equal(one, other)
    fits = [GenotypePCA(3, random_state=0).fit(source) for source in (G, reference)]
    assert np.array_equal(fits[0].eigenvectors_, fits[1].eigenvectors_)
    assert np.array_equal(fits[0].components_, fits[1].components_)


@pytest.mark.parametrize("name", ["x.vcf", "x.vcf.gz", "x.geno", "packed.geno", "turned.geno", "x.pgen", "x.bgen"])
def test_files_cut_short_are_refused_by_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if ".vcf" in name:
        pytest.importorskip("cyvcf2")
    FORMATS[name](path, CALLS, Snps.numbered(P), Samples.numbered(N))
    path.write_bytes(path.read_bytes()[: -(N // 3)])
    with pytest.raises(ValueError, match=str(path.name)):
        open_genotypes(path)


def test_a_bed_file_by_samples_or_gzipped_is_the_same(tmp_path: Path) -> None:
    bed = write_bed(tmp_path / "x.bed", CALLS)
    turned = tmp_path / "t.bed"
    turned.write_bytes(b"\x6c\x1b\x00" + Genotypes.from_calls(CALLS.T).packed(0, N).tobytes())
    for ending in (".bim", ".fam"):
        text = bed.with_suffix(ending).read_bytes()
        turned.with_suffix(ending + ".gz").write_bytes(gzip.compress(text))
        (tmp_path / f"z{ending}").write_bytes(text)
    zipped = tmp_path / "z.bed.gz"
    zipped.write_bytes(gzip.compress(bed.read_bytes()))
    for path in (turned, zipped):
        assert np.array_equal(open_genotypes(path).calls(0, P), CALLS)
    zipped.write_bytes(zipped.read_bytes()[:-30])
    with pytest.raises(ValueError, match=r"z\.bed\.gz.*cut short"):
        open_genotypes(zipped)


def test_tables_as_other_programs_write_them(tmp_path: Path) -> None:
    bed = write_bed(tmp_path / "x.bed", CALLS[:3, :4])
    bed.with_suffix(".fam").write_text("".join(f"f\tp {i}\t0\t0\t1\t-9\t0.5\n" for i in range(4)))
    bed.with_suffix(".bim").write_text("chr1 a 1e+05 A G\n1 b -7 A G\nGL1 c 3 A G\n")
    G = open_bed(bed)
    assert (G.shape, G.samples.iid.tolist()) == ((4, 2), ["p 0", "p 1", "p 2", "p 3"])
    assert (G.snps.position.tolist(), G.snps.chromosome.tolist()) == ([100000, 3], ["1", "GL1"])
    assert np.array_equal(G.calls(0, 2), CALLS[[0, 2], :4])
    assert any("negative" in note and "b" in note for note in G.notes)
    assert any("white space" in note for note in G.notes)
    bed.with_suffix(".bim").write_text("1 a 1.5 A G\n1 b 2 A G\n1 c 3 A G\n")
    with pytest.raises(ValueError, match=r"x\.bim: line 1.*'1\.5'"):
        open_bed(bed)


def test_one_file_for_each_chromosome_is_read_as_one(tmp_path: Path) -> None:
    samples = Samples.numbered(N)
    cuts = [(0, 30), (30, 31), (31, P)]
    for i, (a, b) in zip((2, 9, 10), cuts, strict=True):
        write_bed(tmp_path / f"chr{i}.bed", CALLS[a:b], samples, Snps.numbered(P).take(slice(a, b)))
    whole = Genotypes.from_calls(CALLS)
    G = open_genotypes(f"{tmp_path}/chr*.bed")
    assert np.array_equal(G.calls(0, P), CALLS)
    for some in ([0, 29, 30, 82], [31, 40], list(range(10, 60, 3))):
        assert np.array_equal(G.select(snps=some).calls(0, len(some)), CALLS[some])
    for one, other in zip(G.counts(), whole.counts(), strict=True):
        assert np.array_equal(one, other)
    one, other = (GenotypePCA(2, random_state=0).fit(source) for source in (G, whole))
    assert np.array_equal(one.eigenvectors_, other.eigenvectors_)
    out = np.empty((P, G.width), np.uint8)
    G.read_into(0, P, out)
    assert np.array_equal(out, whole.packed(0, P))
    names = [str(path) for path in list_genotype_files(f"{tmp_path}/chr{{2,9..10}}.bed")]
    assert not Path(names[-1]).exists()  # braces are those of the shell: a list, or a range
    assert list_genotype_files(join_names(["a/chr1.bed", "a/chr22.bed"])) == [Path("a/chr1.bed"), Path("a/chr22.bed")]
    write_bed(tmp_path / "chr11.bed", CALLS[:2, :5])
    with pytest.raises(ValueError, match=r"chr11\.bed: 5 samples, where .*chr2\.bed has 61"):
        open_genotypes(f"{tmp_path}/chr*.bed")
    write_bed(tmp_path / "chr11.bed", CALLS[:2], Samples.numbered(N).take(np.arange(N)[::-1]), overwrite=True)
    with pytest.raises(ValueError, match=r"chr11\.bed: sample 1 is s61"):
        open_genotypes(f"{tmp_path}/chr*.bed")


RECORDS = [
    "1\t100\trs1\tA\tG\t.\t.\t.\tGT\t0/1\t1|1\t./.\t0/0",
    "1\t200\trs2\tA\tG,T\t.\t.\t.\tGT\t0/1\t1|2\t./.\t0/0",
    "1\t300\trs3\tA\tG\t.\t.\t.\tGT\t0/.\t1\t0\t0/1",
    "1\t500\trs5\tA\t.\t.\t.\t.\tGT\t0/0\t0/0\t0/0\t0/0",
    "1\t600\trs6\tA\tG\t.\t.\t.\tGT:DS\t0/0:0.2\t1/1:1.95\t./.:1.02\t0/1:1.5",
    "1\t700\trs7\tA\tG\t.\t.\t.\tDS\t0.2\t1.95\t1.02\t1.5",
    "1\t800\trs8\tA\tG\t.\t.\t.\tGP\t0.97,0.03,0\t0,0.02,0.98\t0.5,0.5,0\t0,1,0",
    "X\t900\t.\tA\tG\t.\t.\t.\tGT\t0/1\t1\t0\t.",
    "X\t901\trs9\tA\tG\t.\t.\t.\tGT\t0/1/1\t1\t0\t.",
]


def test_records_that_are_not_two_alleles_in_two_copies_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("cyvcf2")
    path = tmp_path / "h.vcf"
    path.write_text(vcf(RECORDS, list("abcd")))
    G = open_genotypes(path)
    expected = [[1, 2, -1, 0], [-1, 2, 0, 1], [0, 0, 0, 0], [0, 2, -1, 1], [-1, 2, 1, -1], [0, 2, -1, 1], [1, 2, 0, -1]]
    assert G.calls(0, 8).tolist() == [*expected, [-1, 2, 0, -1]]
    assert G.snps.id.tolist() == ["rs1", "rs3", "rs5", "rs6", "rs7", "rs8", ".", "rs9"]
    assert G.snps.chromosome.tolist() == ["1"] * 6 + ["X"] * 2
    for count, words in (("1", "left out"), ("1", "0/."), ("2", "one allele on chromosomes"), ("1", "calls of more")):
        assert [note.split()[0] for note in G.notes if words in note] == [count]


@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
def test_records_are_read_as_plink2_reads_them(tmp_path: Path) -> None:
    pytest.importorskip("cyvcf2")
    marks = ("X\t", "G,T", "\tDS\t", "\tGP\t")  # what it refuses, or reads only where it is told to
    kept = [record for record in RECORDS if not any(mark in record for mark in marks)]
    path = tmp_path / "h.vcf"
    path.write_text(vcf(kept, list("abcd")))
    command = ["plink2", "--vcf", path, "--vcf-half-call", "m", "--make-bed", "--out", tmp_path / "p"]
    subprocess.run(command, check=True, capture_output=True)
    plink, G = open_bed(tmp_path / "p.bed"), open_genotypes(path)
    assert np.array_equal(G.calls(0, G.shape[1]), plink.calls(0, plink.shape[1]))
    assert G.snps.a1.tolist() == plink.snps.a1.tolist()


def test_dosages_are_calls_within_a_tenth() -> None:
    given = np.array([0.0999, 0.1, 0.1002, 0.89, 0.9, 1.1, 1.9, 1.95, 2.0, np.nan, 0.5])
    assert round_dosages(given).tolist() == [0, 0, -1, -1, 1, 1, 2, 2, 2, -1, -1]


def test_formats_that_are_not_read_say_how_to_convert_them(tmp_path: Path) -> None:
    path = tmp_path / "study.ped"
    path.write_text("")
    with pytest.raises(ValueError, match=r"study\.ped.*plink1\.9 --file .*study --make-bed"):
        open_genotypes(path)


def test_eigenstrat_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.geno"
    write_packed_geno(path, CALLS, Snps.numbered(P), Samples.numbered(N))
    names = path.with_suffix(".ind").read_text()
    path.with_suffix(".ind").write_text(names.replace("s3 ", "other "))
    assert any(".ind" in note for note in open_genotypes(path).notes)
    path.with_suffix(".ind").write_text(names + "more U p\n")
    with pytest.raises(ValueError, match=r"61 samples × 83 SNPs.*62 × 83"):
        open_genotypes(path)
    write_text_geno(path, CALLS, Snps.numbered(P), Samples.numbered(N))
    path.write_text(path.read_text().replace("9", "7", 1))
    with pytest.raises(ValueError, match=r"line 1, sample \d+: '7'"):
        open_genotypes(path)


@pytest.mark.parametrize(
    "broken", ["1\tx\tr\tA\tC\t.\t.\t.\tGT\t0/1", "1\t7\tr\tA\tC\t.\t.\t.\tGT\t0/\xb1", "1\t7\t.\tGT"]
)
def test_a_damaged_record_of_a_chromosome_that_no_header_names_is_refused(broken: str, tmp_path: Path) -> None:
    """In the process itself: cyvcf2 goes on with such a record, which is none, and crashes."""
    pytest.importorskip("cyvcf2")
    head = [line for line in vcf([], ["a"]).splitlines() if "contig" not in line]
    whole = "2\t5\tr\tA\tC\t.\t.\t.\tGT\t0/1"
    path = tmp_path / "x.vcf"
    path.write_text("\n".join([*head, whole]) + "\n", encoding="latin-1")
    assert open_genotypes(path).calls(0, 1).tolist() == [[1]]
    path.write_text("\n".join([*head, whole, broken]) + "\n", encoding="latin-1")
    with pytest.raises(ValueError, match=r"x\.vcf"):
        open_genotypes(path)
    path.write_text("\n".join([*head, whole.replace("2", "<2>", 1)]) + "\n", encoding="latin-1")
    with pytest.raises(ValueError, match=r"x\.vcf.*<2>"):
        open_genotypes(path)
