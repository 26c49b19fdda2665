"""Readers of loadings: our own files without loss, and the first lines of those of PLINK and smartpca."""

import json
from pathlib import Path

import numpy as np
import pytest

from gramian.genetics.files import write_results
from gramian.genetics.genotypes import standardise
from gramian.genetics.loadings import Loadings, divisor, read_loadings
from gramian.genetics.pca import GenotypePCA

LINES = json.loads((Path(__file__).parents[1] / "data" / "genotype_pca_files.json").read_text("utf-8"))


def put(path, name):
    """Write the first lines of a reference file."""
    path.write_text("\n".join(LINES[name]) + "\n")
    return path


def model_of(scaling="plink", k=3):
    rng = np.random.default_rng(1)
    f = np.clip(rng.uniform(0.1, 0.9, 200) + rng.normal(0, 0.15, (2, 200)), 0.05, 0.95)
    return GenotypePCA(k, scaling=scaling, solver="exact").fit(rng.binomial(2, f[np.arange(30) % 2]))


@pytest.mark.parametrize("named", ["r", "r.json", "r.loadings.npz"])
def test_our_own_files_lose_nothing(named, tmp_path):
    model = model_of("smartpca")
    write_results(model, tmp_path / "r", ["plink2", "gramian"])
    read, held = read_loadings(tmp_path / named), Loadings.of(model)
    for name in ("id", "chromosome", "position", "effect", "other", "loadings", "mean", "scale", "singular_values"):
        np.testing.assert_array_equal(getattr(read, name), getattr(held, name))
    np.testing.assert_array_equal(read.eigenvectors, model.eigenvectors_)
    assert (read.scaling, read.n_samples, list(read.iid)) == ("smartpca", 30, list(model.samples_.iid))
    assert read.total_variance == model.total_variance_
    np.testing.assert_allclose(read.eigenvalues, model.eigenvalues_)


@pytest.mark.parametrize(("kind", "ending"), [("plink1", ".eigenvec.var"), ("plink2", ""), ("smartpca", ".snpweight")])
def test_tables_of_ours_bring_scale_and_singular_values_with_them(kind, ending, tmp_path):
    model = model_of("patterson")
    write_results(model, tmp_path / "r", [kind], header=kind == "plink1")
    read = read_loadings(tmp_path / f"r{ending}")
    sign = np.where(model.allele_frequency_ > 0.5, -1, 1)[:, None] if kind != "smartpca" else 1
    np.testing.assert_allclose(read.loadings, model.components_.T * sign, atol=4e-5)
    np.testing.assert_allclose(read.singular_values, model.singular_values_)
    assert (read.scaling, read.n_samples) == ("patterson", 30)


@pytest.mark.parametrize("kind", ["plink1", "plink2"])
def test_files_of_plink(kind, tmp_path):
    put(tmp_path / "x.eigenvec.var", f"{kind}.eigenvec.var")
    put(tmp_path / "x.eigenval", "plink1.eigenval")
    ending = {"plink1": "frq", "plink2": "afreq"}[kind]
    put(tmp_path / f"x.{ending}", f"{kind}.{ending}")
    read = read_loadings(tmp_path / "x.eigenvec.var")
    assert read.id[:2].tolist() == ["rs4970383", "rs3748592"]
    assert (read.effect.tolist(), read.other.tolist()) == (list("AACAC"), list("CGACA"))
    assert read.loadings[0, 1] == pytest.approx(-1.10008 / np.sqrt(5))
    np.testing.assert_allclose(read.frequency, [0.335423, 0.0799373, 0.455068, 0.499478, 0.240334], atol=5e-5)
    np.testing.assert_allclose(read.scale, np.sqrt(2 * read.frequency * (1 - read.frequency)))
    np.testing.assert_allclose(read.eigenvalues, [float(line) for line in LINES["plink1.eigenval"]])
    assert read.scaling == "plink"


def test_weights_by_allele_are_those_by_variant(tmp_path):
    by_variant = read_loadings(put(tmp_path / "v.eigenvec.var", "chr22.plink2.eigenvec.var"))
    by_allele = read_loadings(put(tmp_path / "a.eigenvec.allele", "chr22.plink2.eigenvec.allele"))
    bare = read_loadings(put(tmp_path / "b.eigenvec.var", "chr22.plink1.eigenvec.var"))
    np.testing.assert_array_equal(bare.loadings, by_variant.loadings)
    turn = np.where(by_allele.effect == by_variant.effect, 1, -1)[:, None]
    np.testing.assert_allclose(by_allele.loadings * turn, by_variant.loadings, rtol=1e-5)  # six digits
    assert turn.ravel().tolist() == [1, 1, 1, -1]


def test_files_of_smartpca(tmp_path):
    file = put(tmp_path / "x.snpweight", "smartpca.snpweight")
    values = np.array([3.0, 2.0, *np.full(9, 6 / 9), 0.0])  # of twelve samples
    np.savetxt(tmp_path / "x.eval", values, "%12.6f")
    bare, read = read_loadings(file), read_loadings(file, snps=put(tmp_path / "x.bim", "bim"), total_variance=2.5)
    assert bare.effect.tolist() == [""] * 5
    assert bare.singular_values is None
    assert (read.effect.tolist(), read.position[0], read.scaling) == (list("AACAC"), 828418, "smartpca")
    np.testing.assert_allclose(read.singular_values**2, 5 * values[: read.shape[1]] * 2.5 / 11, rtol=1e-6)
    assert read.n_samples == 12
    assert read.loadings[3, 1] == pytest.approx(-1.908 / np.sqrt(5))


def test_some_of_smartpcas_eigenvalues_do_not_tell_their_scale(tmp_path):
    """With k of n eigenvalues, n − 1 is not what they sum to: σ would be wrong by √((n−1)/(k−1))."""
    file, bim = put(tmp_path / "x.snpweight", "smartpca.snpweight"), put(tmp_path / "x.bim", "bim")
    put(tmp_path / "x.eval", "smartpca.eval")
    assert read_loadings(file, snps=bim).n_samples is None
    with pytest.raises(ValueError, match="− 1"):
        read_loadings(file, snps=bim, total_variance=2.5)


def test_what_our_own_file_says_is_not_overruled_in_silence(tmp_path):
    write_results(model_of(), tmp_path / "r", ["gramian"])
    for given in ({"scaling": "none"}, {"frequencies": "x.afreq"}, {"total_variance": 2.0}):
        with pytest.raises(ValueError, match="itself"):
            read_loadings(tmp_path / "r", **given)


@pytest.mark.parametrize("keep", [0.0, 0.001, 0.5, 0.99])
def test_cut_files_of_ours_are_refused(keep, tmp_path):
    write_results(model_of(), tmp_path / "r", ["gramian"])
    raw = (tmp_path / "r.loadings.npz").read_bytes()
    (tmp_path / "r.loadings.npz").write_bytes(raw[: int(keep * len(raw))])
    with pytest.raises(ValueError, match=r"r\.loadings\.npz"):
        read_loadings(tmp_path / "r")


def test_one_array_is_no_file_of_ours(tmp_path):
    np.save(tmp_path / "r.npy", np.eye(3))
    (tmp_path / "r.npy").rename(tmp_path / "r.loadings.npz")
    with pytest.raises(ValueError, match="holds"):
        read_loadings(tmp_path / "r")


def test_a_flipped_byte_in_a_file_of_ours_is_noticed(tmp_path):
    write_results(model_of(), tmp_path / "r", ["gramian"])
    raw = bytearray((tmp_path / "r.loadings.npz").read_bytes())
    raw[len(raw) // 2] ^= 255
    (tmp_path / "r.loadings.npz").write_bytes(raw)
    with pytest.raises(ValueError, match="damaged"):
        read_loadings(tmp_path / "r")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"loadings": np.full((200, 3), np.nan)}, "loadings holds what is not a finite number"),
        ({"loadings": np.zeros(200)}, r"loadings is float64 of shape \(200,\)"),
        ({"singular_values": np.ones(2)}, r"singular_values is float64 of shape \(2,\), not of shape \(3,\)"),
        ({"position": np.zeros(200)}, "position is float64"),
        ({"scaling": np.array("odd")}, "scaling 'odd' is none of"),
        ({"more": np.zeros(1)}, "it also holds more"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, complaint, tmp_path):
    write_results(model_of(), tmp_path / "r", ["gramian"])
    with np.load(tmp_path / "r.loadings.npz") as file:
        arrays = dict(file)
    np.savez(tmp_path / "r.loadings.npz", **arrays | change)
    with pytest.raises(ValueError, match=complaint):
        read_loadings(tmp_path / "r")


@pytest.mark.parametrize("name", ["files", "snps", "scaling", "score_lengths"])
def test_companions_that_lack_something_are_refused(name, tmp_path):
    write_results(model_of(), tmp_path / "r", ["plink2"])
    content = json.loads((tmp_path / "r.json").read_text())
    del content[name]
    (tmp_path / "r.json").write_text(json.dumps(content))
    for path in ("r.json", "r.eigenvec.var"):
        with pytest.raises(ValueError, match=r"r\.json: damaged"):
            read_loadings(tmp_path / path)


def test_alleles_from_an_eigenstrat_snp_file(tmp_path):
    file = put(tmp_path / "x.snpweight", "smartpca.snpweight")
    rows = [line.split("\t") for line in LINES["bim"]]
    (tmp_path / "x.snp").write_text("".join(f"{r[1]:>20} {r[0]} 0.0 {r[3]} {r[4]} {r[5]}\n" for r in rows))
    assert read_loadings(file, snps=tmp_path / "x.snp").effect.tolist() == list("AACAC")


@pytest.mark.parametrize("scaling", ["plink", "patterson", "smartpca", "none"])
def test_divisors_are_those_of_the_fit(scaling):
    counts = np.array([[3, 4, 5, 1], [0, 1, 9, 3], [7, 2, 4, 0]])
    expected, called = standardise(counts, scaling), counts[:, :3].sum(axis=1)
    np.testing.assert_allclose(divisor(scaling, expected.frequency, 2 * called), expected.scale)


def test_a_snp_that_does_not_vary_has_no_divisor():
    assert divisor("none", np.array([0.0, 0.5, 1.0])).tolist() == [np.inf, 1.0, np.inf]


def test_frequencies_of_other_lengths_are_refused():
    with pytest.raises(ValueError, match=r"\(2,\).*200 SNPs"):
        Loadings.of(model_of()).with_frequencies([0.1, 0.2])


GOOD = "#CHROM\tID\tMAJ\tNONMAJ\tPC1\tPC2\n1\trs1\tC\tA\t0.5\t1\n1\trs2\tG\tA\t-0.5\t2\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD.replace("\t2\n", "\n"), "line 3 has 5 fields; 6 were expected"),
        (GOOD.replace("-0.5", "x"), r"line 3, column 5 \(PC1\): 'x' is not a finite number"),
        (GOOD.replace("-0.5", "nan"), "line 3, column 5.*'nan' is not a finite number"),
        (GOOD.replace("NONMAJ", "OTHER"), "line 1: columns ID"),
        (GOOD.replace("PC", "W"), "no column of weights"),
        ("", "has no rows"),
        ("#CHROM\tID\tMAJ\tNONMAJ\tPC1\n", "has no rows"),
        ("rs1 A C\nrs2 A C\n", "line 1 is neither of PLINK .* nor of smartpca"),
        ("#CHROM ID REF ALT A1 PC1\n1 rs1 A C,G A 0.5\n", "line 2: more than one alternative allele, C,G"),
    ],
)
def test_bad_tables_are_refused_by_line(text, complaint, tmp_path):
    (tmp_path / "x.eigenvec.var").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_loadings(tmp_path / "x.eigenvec.var")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("#CHROM ID REF ALT ALT_FREQS OBS_CT\n1 rs1 C A 0.5 10\n", "no frequencies of 1 of the 2 SNPs, rs2 first"),
        (
            "#CHROM ID REF ALT ALT_FREQS OBS_CT\n1 rs1 C A 0.5 10\n1 rs2 T A 0.5 10\n",
            "rs2 has the alleles A/T, the loadings have A/G",
        ),
        (
            "#CHROM ID REF ALT ALT_FREQS OBS_CT\n1 rs1 C A 0.5 10\n1 rs2 G A 0.5 10\n1 rs2 G A 0.4 10\n",
            "more than one line for 1 of the SNPs, rs2 first",
        ),
        ("CHR SNP A1 A2 MAF\n1 rs1 A C 0.5\n", "not the header of a frequency file"),
        ("#CHROM ID REF ALT ALT_FREQS OBS_CT\n1 rs1 C A . 10\n", "line 2, column 5.*'.' is not a finite number"),
    ],
)
def test_bad_frequencies_are_refused(text, complaint, tmp_path):
    (tmp_path / "x.eigenvec.var").write_text(GOOD)
    (tmp_path / "f.afreq").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        read_loadings(tmp_path / "x.eigenvec.var", frequencies=tmp_path / "f.afreq")


def test_bad_companions_and_arguments_are_refused(tmp_path):
    (tmp_path / "x.eigenvec.var").write_text(GOOD)
    (tmp_path / "x.json").write_text("{}")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "x.loadings.npz").write_bytes(b"PK")
    (tmp_path / "x.eigenval").write_text("2\n")
    for name, complaint in {
        "x.json": "not the companion of a genotype PCA",
        "bad.json": "not a JSON file",
        "x.loadings.npz": "not a file of loadings",
        "x.eigenvec.var": "1 eigenvalues for 2 components",
    }.items():
        with pytest.raises(ValueError, match=complaint):
            read_loadings(tmp_path / name)
    with pytest.raises(ValueError, match="scaling"):
        read_loadings(tmp_path / "x.eigenvec.var", scaling="x")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_loadings(tmp_path / "absent")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_loadings(tmp_path)


def test_results_without_loadings_say_so(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps({"format": "gramian genotype PCA 1", "files": {"r.eigenvec": ""}}))
    with pytest.raises(ValueError, match="hold no loadings"):
        read_loadings(tmp_path / "r.json")


def test_arrays_that_lack_a_column_are_refused(tmp_path):
    np.savez(tmp_path / "r.loadings.npz", loadings=np.eye(2))
    with pytest.raises(ValueError, match="chromosome"):
        read_loadings(tmp_path / "r")


def test_frequencies_without_alleles_are_refused(tmp_path):
    file = put(tmp_path / "x.snpweight", "smartpca.snpweight")
    with pytest.raises(ValueError, match="alleles"):
        read_loadings(file, frequencies=put(tmp_path / "x.frq", "plink1.frq"))


def test_snps_that_the_bim_file_lacks_are_named(tmp_path):
    file = put(tmp_path / "x.snpweight", "smartpca.snpweight")
    (tmp_path / "x.bim").write_text(LINES["bim"][0] + "\n")
    with pytest.raises(ValueError, match=r"x\.bim.*4 of.*5 SNPs, rs3748592"):
        read_loadings(file, snps=tmp_path / "x.bim")
    (tmp_path / "x.bim").write_text("\n".join([*LINES["bim"], LINES["bim"][2]]))
    with pytest.raises(ValueError, match=r"1 of.*SNPs, rs9442373"):
        read_loadings(file, snps=tmp_path / "x.bim")


def test_line_ends_of_windows_and_empty_lines_are_read(tmp_path):
    (tmp_path / "x.eigenvec.var").write_bytes(GOOD.replace("\n", "\r\n").encode() + b"\r\n\n")
    assert read_loadings(tmp_path / "x.eigenvec.var").id.tolist() == ["rs1", "rs2"]


def test_positions_are_read_where_plink_wrote_them(tmp_path):
    rows = [line.split("\t") for line in GOOD.splitlines()]
    table = [[*row[:1], place, *row[1:]] for row, place in zip(rows, ["POS", "10", "20"], strict=True)]
    (tmp_path / "x.eigenvec.var").write_text("".join("\t".join(row) + "\n" for row in table))
    read = read_loadings(tmp_path / "x.eigenvec.var")
    assert (read.position.tolist(), read.id.tolist()) == ([10, 20], ["rs1", "rs2"])


def test_text_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "x.eigenvec.var").write_bytes(GOOD.encode() + b"1\trs\xff3\tG\tA\t1\t1\n")
    with pytest.raises(ValueError, match=r"x\.eigenvec\.var.*UTF-8"):
        read_loadings(tmp_path / "x.eigenvec.var")


def test_table_and_repr_tell_what_was_read(tmp_path):
    (tmp_path / "x.eigenvec.var").write_text(GOOD)
    read = read_loadings(tmp_path / "x.eigenvec.var")
    assert repr(read) == "Loadings: 2 SNPs, 2 components, plink scaling (x.eigenvec.var)"
    assert list(read.table()) == ["CHROM", "ID", "POS", "EFFECT", "OTHER", "PC1", "PC2"]
    assert "MEAN" in read.with_frequencies([0.1, 0.2]).table()
