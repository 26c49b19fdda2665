"""Files of results against those of PLINK 1.9, PLINK 2 and smartpca, to the letter."""

import json
from copy import copy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gramian.genetics.files import FORMATS, result_files, write_results
from gramian.genetics.loadings import read_loadings
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.projection import project
from gramian.results import SpectralCertificate
from gramian.sources.plink import Samples, Snps, open_bed

TESTS = Path(__file__).parents[1]
LINES = json.loads((TESTS / "data" / "genotype_pca_files.json").read_text("utf-8"))
HAPMAP = TESTS.parents[1] / "shared" / "data" / "hapmap3"


def words(values):
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def numbers(lines, first, last=None):
    return np.array([[float(field) for field in line.split()[first:last]] for line in lines])


def printed_model(eigenvectors, weights, eigenvalues, frequency=0.3):
    """A model with the numbers that are printed in the first lines of the reference files."""
    fields = [line.split() for line in LINES["plink1.eigenvec"]]
    snps = [line.split("\t") for line in LINES["bim"]]
    chromosome, id, _, position, a1, a2 = (words(column) for column in zip(*snps, strict=True))
    n, p = len(eigenvectors), len(snps)
    zero = words(["0"] * n)
    k = len(eigenvalues)
    return SimpleNamespace(
        scaling="plink",
        missing="mean",
        eigenvectors_=eigenvectors,
        eigenvalues_=eigenvalues,
        eigenvalue_scale_="as printed",
        singular_values_=np.sqrt(p * eigenvalues),
        components_=weights.T / np.sqrt(p),
        mean_=np.full(p, 2 * frequency),
        scale_=np.ones(p),
        allele_frequency_=np.full(p, frequency),
        samples_=Samples(words([f[0] for f in fields]), words([f[1] for f in fields]), zero, zero, np.zeros(n), zero),
        snps_=Snps(chromosome, id, np.zeros(p), position.astype(np.int64), a1, a2),
        dropped_={},
        certificate_=SpectralCertificate("exact", "asked for", 1, np.ones(k), np.zeros(k), 1.0, 0.0, tolerance=1e-6),
        total_variance_=n - 1.0,
        all_eigenvalues_=None,
    )


@pytest.fixture
def plink():
    U = numbers(LINES["plink1.eigenvec"], 2)
    return printed_model(U, numbers(LINES["plink1.eigenvec.var"][1:], 4), numbers(LINES["plink1.eigenval"], 0)[:, 0])


@pytest.fixture
def smartpca():
    U = numbers(LINES["smartpca.evec"][1:], 1, -1)
    return printed_model(U, numbers(LINES["smartpca.snpweight"], 3), numbers(LINES["smartpca.eval"], 0)[:, 0])


def lines_of(path):
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    assert "\r" not in text
    return text[:-1].split("\n")


def test_plink1_files_are_those_of_plink(plink, tmp_path):
    write_results(plink, tmp_path / "r", ["plink1"])
    assert lines_of(tmp_path / "r.eigenvec") == LINES["plink1.eigenvec"]
    assert lines_of(tmp_path / "r.eigenval") == LINES["plink1.eigenval"]
    spaced = [line.replace("\t", " ") for line in LINES["plink1.eigenvec.var"][1:]]
    assert lines_of(tmp_path / "r.eigenvec.var") == spaced


def test_plink1_files_with_header_and_tabs(plink, tmp_path):
    write_results(plink, tmp_path / "r", ["plink1"], header=True, tabs=True)
    assert lines_of(tmp_path / "r.eigenvec") == LINES["plink1.tabs.eigenvec"]
    assert lines_of(tmp_path / "r.eigenvec.var") == LINES["plink1.eigenvec.var"]


def test_plink2_files_are_those_of_plink(plink, tmp_path):
    write_results(plink, tmp_path / "r", ["plink2"])
    assert lines_of(tmp_path / "r.eigenvec") == LINES["plink2.eigenvec"]
    assert lines_of(tmp_path / "r.eigenval") == LINES["plink1.eigenval"]
    assert lines_of(tmp_path / "r.eigenvec.var") == LINES["plink2.eigenvec.var"]


def test_samples_without_families_have_one_name(plink, tmp_path):
    plink.samples_ = Samples(words([""] * 3), *(getattr(plink.samples_, f) for f in FAM[1:]))
    write_results(plink, tmp_path / "r", ["plink2"])
    first, second, *_ = lines_of(tmp_path / "r.eigenvec")
    assert (first.split("\t")[:2], second.split("\t")[0]) == (["#IID", "PC1"], "NA19916")


FAM = ("fid", "iid", "father", "mother", "sex", "phenotype")


def test_smartpca_files_are_those_of_smartpca(smartpca, tmp_path):
    write_results(smartpca, tmp_path / "r", ["smartpca"], labels=["ASW"] * 3)
    assert lines_of(tmp_path / "r.evec") == LINES["smartpca.evec"]
    assert lines_of(tmp_path / "r.eval") == LINES["smartpca.eval"]
    assert lines_of(tmp_path / "r.snpweight") == LINES["smartpca.snpweight"]


def test_labels_of_samples_are_their_status_unless_given(smartpca, tmp_path):
    smartpca.samples_.phenotype[:] = ["1", "2", "-9"]
    write_results(smartpca, tmp_path / "r", ["smartpca"])
    assert [line.split()[-1] for line in lines_of(tmp_path / "r.evec")[1:]] == ["Control", "Case", "???"]


@pytest.mark.parametrize("kind", ["plink1", "plink2"])
def test_weights_are_turned_to_the_minor_allele(plink, tmp_path, kind):
    plink.allele_frequency_[1] = 0.7
    write_results(plink, tmp_path / "r", [kind], header=True, tabs=True)
    before, after = LINES[f"{kind}.eigenvec.var"][2].split("\t"), lines_of(tmp_path / "r.eigenvec.var")[2].split("\t")
    assert after[2:4] == before[3:1:-1]
    np.testing.assert_array_equal([-float(x) for x in after[4:]], [float(x) for x in before[4:]])


def simulated(n=40, p=300, seed=0):
    rng = np.random.default_rng(seed)
    f = np.clip(rng.uniform(0.1, 0.9, p) + rng.normal(0, 0.15, (2, p)), 0.05, 0.95)
    G = rng.binomial(2, f[np.arange(n) % 2])
    return np.where(rng.random(G.shape) < 0.01, np.nan, G)


def test_patterson_eigenvalues_are_written_in_the_scale_of_plink(tmp_path):
    X = simulated()
    for scaling in ("plink", "patterson"):
        write_results(GenotypePCA(3, scaling=scaling, solver="exact").fit(X), tmp_path / scaling, ["plink2", "gramian"])
    for ending in (".eigenval", ".eigenvec", ".eigenvec.var"):
        assert (tmp_path / f"plink{ending}").read_text() == (tmp_path / f"patterson{ending}").read_text()


def test_smartpca_scaling_has_eigenvalues_in_the_scale_of_plink_too(tmp_path):
    """q = (1+Σg)/(2+2n) is nearly f: PLINK's λ, not twice them."""
    X = simulated(n=200)
    for scaling in ("plink", "smartpca"):
        write_results(GenotypePCA(2, scaling=scaling, solver="exact").fit(X), tmp_path / scaling, ["plink2"])
    plink, smart = (np.loadtxt(tmp_path / f"{scaling}.eigenval") for scaling in ("plink", "smartpca"))
    np.testing.assert_allclose(smart, plink, rtol=0.02)


@pytest.mark.parametrize("kind", ["plink1", "plink2", "smartpca"])
def test_names_of_two_fields_are_joined_unless_two_become_one_and_empty_ones_are_zero(kind, plink, tmp_path):
    plink.samples_.fid[1] = ""
    write_results(plink, tmp_path / "a", [kind])
    table = tmp_path / ("a.evec" if kind == "smartpca" else "a.eigenvec")
    assert len({len(line.split()) for line in lines_of(table)[-3:]}) == 1
    assert kind == "smartpca" or lines_of(table)[-2].split()[0] == "0"
    plink.samples_.iid[2] = "Anna Maria"
    write_results(plink, tmp_path / "b", [kind])
    assert (
        "Anna_Maria"
        in lines_of(tmp_path / ("b.evec" if kind == "smartpca" else "b.eigenvec"))[-1].split()[kind != "smartpca"]
    )
    plink.samples_.fid[1], plink.samples_.fid[2], plink.samples_.iid[1] = "0", "0", "Anna_Maria"
    with pytest.raises(ValueError, match=r"Anna_Maria'"):
        write_results(plink, tmp_path / "c", [kind])
    assert not list(tmp_path.glob("c*"))


def test_labels_with_spaces_stay_one_field(smartpca, tmp_path):
    write_results(smartpca, tmp_path / "r", ["smartpca"], labels=["ASW", "New Guinea", "ASW"])
    assert [line.split()[-1] for line in lines_of(tmp_path / "r.evec")[1:]] == ["ASW", "New_Guinea", "ASW"]


def test_a_folder_is_never_replaced(plink, tmp_path):
    (tmp_path / "r.json").mkdir()
    (tmp_path / "r.json" / "mine").write_text("kept")
    with pytest.raises(IsADirectoryError, match=r"r\.json"):
        write_results(plink, tmp_path / "r", overwrite=True)
    assert (tmp_path / "r.json" / "mine").read_text() == "kept"


def test_smartpca_eigenvalues_sum_to_n_minus_one(tmp_path):
    write_results(GenotypePCA(3, scaling="smartpca", solver="exact").fit(simulated()), tmp_path / "r", ["smartpca"])
    values = np.loadtxt(tmp_path / "r.eval")
    assert len(values) == 40
    assert values.sum() == pytest.approx(39, abs=40 * 5e-7)


def test_companion_states_what_the_numbers_mean(tmp_path):
    model = GenotypePCA(3, scaling="patterson").fit(simulated())
    paths = write_results(model, tmp_path / "new" / "r", ["plink1", "smartpca"])
    said = json.loads((tmp_path / "new" / "r.json").read_text("utf-8"))
    assert sorted(path.name for path in paths) == sorted([*said["files"], "r.json"])
    assert said["eigenvalue_scale"] == model.eigenvalue_scale_
    assert (said["samples"], said["snps"], said["scaling"]) == (40, len(model.snps_), "patterson")
    assert said["certificate"]["converged"] is True
    np.testing.assert_allclose(said["eigenvalues_plink"], model.eigenvalues_ / 2)
    np.testing.assert_allclose(said["singular_values"], model.singular_values_)
    assert set(said["versions"]) == {"gramian", "numpy", "python"}


def test_parquet_holds_every_digit(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (gramian[tables])")
    model = GenotypePCA(2).fit(simulated())
    write_results(model, tmp_path / "r", ["parquet"])
    people, snps = (parquet.read_table(tmp_path / f"r.{name}.parquet") for name in ("eigenvec", "loadings"))
    assert people.column_names == ["FID", "IID", "PC1", "PC2"]
    np.testing.assert_array_equal(people["PC2"].to_numpy(), model.eigenvectors_[:, 1])
    np.testing.assert_array_equal(snps["PC1"].to_numpy(), model.components_[0])
    assert snps["ID"].to_pylist() == list(model.snps_.id)


def test_nothing_is_replaced_unless_asked_and_nothing_half_written(plink, tmp_path):
    write_results(plink, tmp_path / "r", ["plink2"])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileExistsError, match=r"r\.eigenval, r\.eigenvec"):
        write_results(plink, tmp_path / "r", ["plink1"])
    with pytest.raises(ValueError, match=r"2 labels.*3 samples"):
        write_results(plink, tmp_path / "other" / "r", ["plink2", "smartpca"], labels=["a", "b"])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    write_results(plink, tmp_path / "r", ["plink1"], overwrite=True)
    assert (tmp_path / "r.eigenvec").read_bytes() != before["r.eigenvec"]


@pytest.mark.parametrize(
    ("prefix", "formats", "complaint"),
    [
        ("r", ["plink3"], "formats=.*plink3.*gramian, parquet, plink1, plink2, smartpca"),
        ("r", "plink2", "give a list"),
        ("r", ["plink1", "plink2"], "same names"),
        ("results/", ["plink2"], "names a folder"),
    ],
)
def test_impossible_requests_are_refused(prefix, formats, complaint):
    with pytest.raises(ValueError, match=complaint):
        result_files(prefix, formats)


def test_a_name_with_a_line_break_is_refused(plink, tmp_path):
    plink.snps_.id[2] = "rs\n7"
    with pytest.raises(ValueError, match="line break"):
        write_results(plink, tmp_path / "r", ["gramian"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_lists_what_it_writes(kind, tmp_path):
    if kind == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed (gramian[tables])")
    expected = result_files(tmp_path / "r", [kind])
    assert write_results(GenotypePCA(2).fit(simulated()), tmp_path / "r", [kind]) == expected
    assert sorted(tmp_path.iterdir()) == expected


# ---- the whole files of the reference programs --------------------------------------------------------------------

needs_hapmap = pytest.mark.skipif(not (HAPMAP / "hm3.bed").exists(), reason="shared/data/hapmap3 is not there")


def like(model, reference):
    """The model with each component's sign as in the reference."""
    twin, sign = copy(model), np.sign(np.einsum("ij,ij->j", model.eigenvectors_, reference))
    twin.eigenvectors_, twin.components_ = model.eigenvectors_ * sign, model.components_ * sign[:, None]
    return twin


@needs_hapmap
def test_hapmap_as_plink_writes_it(tmp_path):
    theirs = HAPMAP / "reference"
    model = GenotypePCA(10, solver="exact", missing="pairwise", precision="double").fit(open_bed(HAPMAP / "hm3.bed"))
    model = like(model, np.loadtxt(theirs / "p1h.eigenvec", skiprows=1, usecols=range(2, 12)))
    write_results(model, tmp_path / "p1h", ["plink1"], header=True, tabs=True)
    write_results(model, tmp_path / "p1", ["plink1"])
    write_results(model, tmp_path / "p2", ["plink2"])
    for name in ("p1.eigenval", "p1.eigenvec", "p1h.eigenvec", "p1h.eigenvec.var", "p2.eigenval", "p2.eigenvec"):
        assert (tmp_path / name).read_bytes() == (theirs / name).read_bytes(), name
    ours, plink2 = lines_of(tmp_path / "p2.eigenvec.var"), lines_of(theirs / "p2.eigenvec.var")
    # where both alleles are equally frequent PLINK 2 goes by the rounding of a reciprocal, we take A2 for the major one
    tied = 1 + np.flatnonzero(model.allele_frequency_ == 0.5)
    other = {i for i, (a, b) in enumerate(zip(ours, plink2, strict=True)) if a != b}
    assert other <= set(tied)
    assert len(other) < 100


@needs_hapmap
def test_hapmap_as_smartpca_writes_it(tmp_path):
    theirs, G = HAPMAP / "reference", open_bed(HAPMAP / "hm3.bed")
    labels = [line.split("\t")[2] for line in lines_of(HAPMAP / "labels.tsv")[1:]]
    # smartpca places every sample by least squares at the SNPs it has, and takes the columns to length 1
    model = GenotypePCA(10, solver="exact", scaling="smartpca", missing="least-squares", precision="double").fit(G)
    own = project(model, G, "least-squares", ambiguous="keep").eigenvectors
    np.testing.assert_allclose(own, model.eigenvectors_, atol=1e-9)
    model = like(model, np.loadtxt(theirs / "sm.evec", skiprows=1, usecols=range(1, 11)))
    write_results(model, tmp_path / "sm", ["smartpca"], labels=labels)
    for name in ("sm.evec", "sm.snpweight", "sm.eval"):
        ours, smart = lines_of(tmp_path / name), lines_of(theirs / name)
        different = sum(a != b for a, b in zip(ours, smart, strict=True))
        assert different <= 3, name  # halves that round the other way, and a zero with a sign


@needs_hapmap
def test_hapmap_loadings_of_the_reference_programs_can_be_projected_on():
    G = open_bed(HAPMAP / "hm3.bed")
    counts = G.counts().by_snp
    smart = read_loadings(HAPMAP / "reference" / "sm.snpweight", snps=HAPMAP / "hm3.bim")
    f = (2 * counts[:, 0] + counts[:, 1]) / (2 * counts[:, :3].sum(axis=1))
    found = project(smart.with_frequencies(f, 2 * counts[:, :3].sum(axis=1)), G, "least-squares", ambiguous="keep")
    unit = found.scores / np.linalg.norm(found.scores, axis=0)
    # weights have three decimals
    np.testing.assert_allclose(
        unit, np.loadtxt(HAPMAP / "reference" / "sm.evec", skiprows=1, usecols=range(1, 11)), atol=3e-4
    )
