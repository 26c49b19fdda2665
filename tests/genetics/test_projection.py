"""Projections against least squares and a refitted, realigned PCA, one sample at a time; and against PLINK 2."""

import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from gramian.genetics.files import write_results
from gramian.genetics.loadings import Loadings, read_loadings
from gramian.genetics.pca import GenotypePCA
from gramian.genetics.projection import FEW, augmented_scores, project, write_projection
from gramian.results import NumericalWarning
from gramian.sources.plink import Genotypes, Samples, Snps

COMPLEMENT = {"A": "T", "C": "G", "G": "C", "T": "A"}


def populations(n, p, seed=0, missing=0.0, spread=0.12):
    """Copies of an allele in n samples of three populations × p SNPs, −1 where missing."""
    rng = np.random.default_rng(seed)
    f = np.clip(rng.uniform(0.2, 0.8, p) + rng.normal(0, spread, (3, p)), 0.05, 0.95)
    G = rng.binomial(2, f[np.arange(n) % 3]).astype(np.int8)
    G[rng.random(G.shape) < missing] = -1
    return G


def standardised(model, X):
    """Z of samples, NaN where missing."""
    X = np.where(np.asarray(X) < 0, np.nan, X)[:, model.snp_mask_]
    return (X - model.mean_) / model.scale_


def exact_model(X, k=4, **options):
    return GenotypePCA(k, solver="exact", precision="double", **options).fit(X)


@pytest.mark.parametrize("scaling", ["plink", "patterson", "smartpca", "none"])
def test_the_samples_of_the_fit_come_out_where_they_are(scaling):
    X = populations(30, 400)
    model = exact_model(X, scaling=scaling)
    own = model.eigenvectors_ * model.singular_values_
    for method in ("simple", "least-squares"):
        found = project(model, X, method)
        np.testing.assert_allclose(found.scores, own, atol=1e-9 * np.abs(own).max())
        np.testing.assert_allclose(found.eigenvectors, model.eigenvectors_, atol=1e-9)
        assert set(found.snps_used.tolist()) == {len(model.snps_)}


def test_with_gaps_the_samples_of_the_fit_come_out_where_they_are():
    X = populations(30, 400, missing=0.03)
    model = exact_model(X)
    own = model.eigenvectors_ * model.singular_values_
    np.testing.assert_allclose(project(model, X, "simple").scores, own, atol=1e-9 * np.abs(own).max())


@pytest.mark.parametrize("missing", [FEW / 4, 0.3])
def test_least_squares_is_least_squares(missing):
    """Sparse and dense sums of what is missing, against a solver that sees one sample at a time."""
    model = exact_model(populations(30, 500))
    new = populations(12, 500, seed=1, missing=missing)
    Z, V = standardised(model, new), model.components_.T
    seen = ~np.isnan(Z)
    expected = [np.linalg.lstsq(V[o], z[o], rcond=None)[0] for z, o in zip(Z, seen, strict=True)]
    found = project(model, new, "least-squares", min_share=0.1)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(found.snps_used, seen.sum(axis=1))


def by_hand(reference, V, new, k):
    """OADP as it is told: add the sample, decompose anew, move the reference's new scores onto its old ones."""
    scores = reference @ V
    U, S, _ = np.linalg.svd(np.vstack([reference, new]), full_matrices=False)
    moved = (U * S)[:, :k]
    first, last = moved[:-1], moved[-1]
    shift, target = first.mean(axis=0), scores - scores.mean(axis=0)
    R, trace = orthogonal_procrustes(first - shift, target)
    scale = trace / np.sum((first - shift) ** 2)
    return scale * (last - shift) @ R + scores.mean(axis=0)


def test_oadp_with_all_components_is_a_new_pca_with_the_sample_in_it():
    """All n − 1 components kept: nothing of the reference is lost, so this is PCA with one sample more."""
    X, new = populations(15, 300), populations(6, 300, seed=1)
    model = exact_model(X, k=14)
    Z = standardised(model, X)
    expected = [by_hand(Z, model.components_.T, z, 14) for z in standardised(model, new)]
    np.testing.assert_allclose(project(model, new, "oadp").scores, expected, rtol=1e-8, atol=1e-8)


@given(
    k=st.integers(1, 5),
    n=st.integers(7, 20),
    seed=st.integers(0, 2**20),
    length=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
)
def test_oadp_is_the_augmented_svd_of_the_kept_components(k, n, seed, length):
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(np.hstack([np.ones((n, 1)), rng.normal(size=(n, k))]))[0][:, 1:]  # centred
    V = np.linalg.qr(rng.normal(size=(40, k + 1)))[0]
    d = np.sort(rng.uniform(1, 30, k))[::-1] + np.arange(k)[::-1]
    new = V @ np.append(rng.normal(size=k) * 10, length)
    expected = by_hand((U * d) @ V[:, :k].T, V[:, :k], new, k)
    projected = V[:, :k].T @ new
    residual = np.sqrt(max(new @ new - projected @ projected, 0))
    found = augmented_scores(projected[None], np.array([residual]), d)
    np.testing.assert_allclose(found[0], expected, rtol=1e-7, atol=1e-7)


def test_simple_projection_shrinks_and_oadp_does_not():
    """p ≫ n: samples of the same populations should spread as far as those that made the components."""
    X = populations(300, 3000, spread=0.06)
    train, held_out = X[:90], X[90:]
    model = exact_model(train, k=4)
    own = np.abs(model.eigenvectors_ * model.singular_values_)[:, :2].mean(axis=0)
    ratio = {m: np.abs(project(model, held_out, m).scores)[:, :2].mean(axis=0) / own for m in ("simple", "oadp")}
    assert np.all(ratio["simple"] < 0.85)
    np.testing.assert_allclose(ratio["oadp"], 1.0, atol=0.04)


def test_oadp_with_gaps_stays_near_oadp_without():
    X = populations(150, 3000, spread=0.06)
    train, new = X[:90], X[90:]
    gaps = np.where(np.random.default_rng(5).random(new.shape) < 0.3, -1, new)
    model = exact_model(train)
    whole, part = (project(model, x, "oadp").eigenvectors[:, :2] for x in (new, gaps))
    simple = project(model, new, "simple").eigenvectors[:, :2]
    assert np.abs(part).mean() == pytest.approx(np.abs(whole).mean(), rel=0.02)
    assert np.abs(simple).mean() < 0.9 * np.abs(whole).mean()


def rearranged(G, seed=3):
    """The same genotypes in another order, with alleles swapped and read from the other strand at random."""
    rng = np.random.default_rng(seed)
    snps, calls = G.snps, G.calls(0, G.shape[1])
    order = rng.permutation(len(snps))
    swap, strand = rng.random((2, len(snps))) < 0.5
    a1, a2 = np.where(swap, snps.a2, snps.a1), np.where(swap, snps.a1, snps.a2)
    turned = np.where(swap[:, None] & (calls >= 0), 2 - calls, calls)

    def read(alleles):
        out = alleles.copy()
        out[strand] = [COMPLEMENT[a] for a in alleles[strand]]
        return out

    made = Snps(snps.chromosome, snps.id, snps.cm, snps.position, read(a1), read(a2)).take(order)
    return Genotypes.from_calls(turned[order], G.samples, made)


@pytest.mark.parametrize("method", ["simple", "least-squares", "oadp"])
def test_swaps_strands_and_order_change_nothing(method):
    model = exact_model(populations(30, 300))
    new = Genotypes.from_calls(populations(9, 300, seed=2, missing=0.02).T)
    plain, other = project(model, new, method), project(model, rearranged(new), method)
    np.testing.assert_allclose(other.scores, plain.scores, rtol=1e-9, atol=1e-9)
    assert other.report.swapped > 100
    assert other.report.strand > 100


def test_views_of_files_are_projected_as_they_are():
    """Some samples and SNPs of a larger set: the same as an array of just these."""
    model = exact_model(populations(30, 300))
    G = Genotypes.from_calls(populations(21, 300, seed=2, missing=0.05).T)
    keep_people, keep_snps = np.arange(21) % 3 != 1, np.arange(300) % 7 != 2
    view = project(model, G.select(keep_people, keep_snps), "least-squares")
    calls = G.calls(0, 300)[:, keep_people]
    calls[~keep_snps] = -1
    np.testing.assert_allclose(view.scores, project(model, calls.T, "least-squares").scores, rtol=1e-9, atol=1e-9)
    assert view.report.absent == np.count_nonzero(~keep_snps & model.snp_mask_)
    assert list(view.samples.iid) == list(G.samples.iid[keep_people])


@pytest.mark.parametrize("name", ["r", "r.eigenvec.var"])
def test_saved_results_project_as_the_model_does(name, tmp_path):
    model = exact_model(populations(30, 300))
    new = populations(9, 300, seed=2)
    write_results(model, tmp_path / "r", ["plink2", "gramian"])
    expected = project(model, new)
    if name == "r":
        found = project(tmp_path / name, new)
        np.testing.assert_array_equal(found.scores, expected.scores)
    else:
        loadings = read_loadings(tmp_path / name)
        f = np.minimum(model.allele_frequency_, 1 - model.allele_frequency_)
        found = project(loadings.with_frequencies(f), new)
        np.testing.assert_allclose(found.eigenvectors, expected.eigenvectors, atol=2e-5)  # six digits


@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
def test_simple_projection_is_that_of_plink2(tmp_path):
    """PLINK 2's own --pca, --freq and --score, for samples with gaps and with both alleles in any order."""
    X = populations(90, 400, missing=0.02)
    _write_bed(tmp_path / "ref", Genotypes.from_calls(X[:60].T))
    _write_bed(tmp_path / "new", rearranged(Genotypes.from_calls(X[60:].T), seed=4), strands=False)
    _plink(tmp_path, "--bfile ref --pca 3 biallelic-var-wts --freq --out ref")
    # as PLINK's manual projects: what is missing counts nothing after standardising
    how = "header-read no-mean-imputation variance-standardize cols=+scoresums"
    score = f"--score ref.eigenvec.var 2 4 {how} --score-col-nums 5-7"
    _plink(tmp_path, f"--bfile new --read-freq ref.afreq {score} --out new")
    table = [line.split() for line in (tmp_path / "new.sscore").read_text().splitlines()]
    columns = [j for j, name in enumerate(table[0]) if name.endswith("_SUM") and name.startswith("PC")]
    theirs = np.array([[float(row[j]) for j in columns] for row in table[1:]])
    ours = project(tmp_path / "ref", tmp_path / "new.bed", "simple")
    M = ours.n_loadings
    np.testing.assert_allclose(ours.scores * np.sqrt(M), theirs, atol=1e-5 * np.abs(theirs).max())


def _write_bed(prefix, G, strands=True):
    a1, a2 = (G.snps.a1, G.snps.a2) if strands else _first_strand(G.snps)
    packed = G.packed(0, G.shape[1])
    prefix.with_suffix(".bed").write_bytes(b"\x6c\x1b\x01" + packed.tobytes())
    rows = zip(G.snps.chromosome, G.snps.id, G.snps.position, a1, a2, strict=True)
    prefix.with_suffix(".bim").write_text("".join(f"{c}\t{i}\t0\t{p}\t{a}\t{b}\n" for c, i, p, a, b in rows))
    prefix.with_suffix(".fam").write_text("".join(f"0 {name} 0 0 0 -9\n" for name in G.samples.iid))


def _first_strand(snps):
    """A and G as they are; T and C read from the first strand."""
    first = {"A": "A", "G": "G", "T": "A", "C": "G"}
    return ([first[a] for a in column] for column in (snps.a1, snps.a2))


def _plink(folder, options):
    done = subprocess.run(["plink2", *options.split()], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_unknown_frequencies_are_taken_from_the_new_samples_with_a_warning():
    X = populations(60, 300)
    model = exact_model(X)
    held = Loadings.of(model)
    bare = Loadings(held.id, held.chromosome, held.position, held.effect, held.other, held.loadings, "plink")
    with pytest.warns(NumericalWarning, match=r"means.*60 new"):
        found = project(bare, X, "simple")
    np.testing.assert_allclose(found.scores, model.eigenvectors_ * model.singular_values_, atol=1e-8)
    assert found.eigenvectors is None
    with pytest.warns(NumericalWarning), pytest.raises(ValueError, match="SNPs"):
        project(bare, np.zeros((3, 300)), "simple")


def test_snps_that_do_not_vary_in_the_new_samples_are_dropped_where_frequencies_are_theirs():
    X = populations(60, 300)
    held = Loadings.of(exact_model(X))
    bare = Loadings(held.id, held.chromosome, held.position, held.effect, held.other, held.loadings, "plink")
    X[:, :10] = 2
    with pytest.warns(NumericalWarning):
        found = project(bare, X, "least-squares")
    assert (found.report.constant, found.report.used) == (10, 290)
    assert found.report.by_id + found.report.by_position == found.report.used


def test_simple_projection_of_gaps_warns():
    model = exact_model(populations(30, 300))
    new = populations(5, 300, seed=1)
    new[2, :40] = -1
    with pytest.warns(NumericalWarning, match=r"1 of 5 samples.*95%.*loadings' SNPs, 86\.7%"):
        project(model, new, "simple")


@pytest.mark.parametrize("method", ["simple", "least-squares", "oadp"])
def test_samples_without_genotypes_are_refused_by_name(method):
    new = populations(5, 300, seed=1)
    new[3] = -1
    samples = Samples.numbered(5)
    with pytest.raises(ValueError, match=r"1 samples.*SNPs.*s4"):
        project(exact_model(populations(30, 300)), Genotypes.from_calls(new.T, samples), method)


def test_samples_with_fewer_genotypes_than_components_are_refused_by_name():
    new = populations(5, 300, seed=1)
    new[1, 4:] = -1
    with pytest.raises(ValueError, match=r"SNPs.*4 components: s2"):
        project(exact_model(populations(30, 300)), new, "least-squares")


def test_requests_that_cannot_be_met_are_refused():
    model = exact_model(populations(30, 300))
    with pytest.raises(ValueError, match="method"):
        project(model, populations(3, 300), "fast")
    held = Loadings.of(model)
    bare = Loadings(held.id, held.chromosome, held.position, held.effect, held.other, held.loadings, "plink")
    with pytest.raises(ValueError, match="OADP"):
        project(bare, populations(3, 300))
    with pytest.raises(ValueError, match="samples"):
        project(model, np.zeros((0, 300)))
    few = Genotypes.from_calls(populations(3, 100).T)
    with pytest.raises(ValueError, match="Only 100 of"):
        project(model, few)


def test_columns_without_names_are_all_there_or_refused():
    """160 of 200 columns would be taken for the first 160, whichever they are."""
    X = populations(30, 200)
    with pytest.raises(ValueError, match=r"160 columns.*to 200"):
        project(exact_model(X), X[:, 40:])


@pytest.mark.parametrize("missing", ["pairwise", "least-squares"])
def test_fits_that_allow_for_gaps_put_complete_samples_where_they_belong(missing):
    """10 % of the reference missing: OADP spreads complete samples as far as the reference itself."""
    X = populations(420, 3000, spread=0.08)
    train = np.where(np.random.default_rng(5).random((120, 3000)) < 0.1, -1, X[:120])
    model = exact_model(train, k=2, missing=missing)
    own = np.abs(model.eigenvectors_).mean(axis=0)
    np.testing.assert_allclose(np.abs(project(model, X[120:]).eigenvectors).mean(axis=0) / own, 1.0, atol=0.08)
    again = np.abs(project(model, train, "least-squares").eigenvectors).mean(axis=0) / own
    np.testing.assert_allclose(again, 1.0, atol=0.03)


def test_fitted_scores_come_out_where_they_are(tmp_path):
    X = populations(30, 400, missing=0.2)
    model = exact_model(X, missing="least-squares")
    write_results(model, tmp_path / "r", ["gramian"])
    for onto in (model, tmp_path / "r"):
        np.testing.assert_allclose(project(onto, X, "least-squares").eigenvectors, model.eigenvectors_, atol=1e-9)


def test_projections_are_written_like_eigenvectors(tmp_path):
    model = exact_model(populations(30, 300), k=2)
    found = project(model, populations(3, 300, seed=1))
    path = write_projection(found, tmp_path / "sub" / "new.eigenvec")
    lines = path.read_text().splitlines()
    assert lines[0] == "#FID\tIID\tSNPS\tPC1\tPC2"
    values = np.array([[float(x) for x in line.split("\t")[3:]] for line in lines[1:]])
    np.testing.assert_allclose(values, found.eigenvectors, rtol=1e-5)
    assert lines[1].split("\t")[:3] == ["0", "s1", str(found.snps_used[0])]
    with pytest.raises(FileExistsError, match="already holds"):
        write_projection(found, path)
    write_projection(found, path, scale="scores", overwrite=True)
    assert float(path.read_text().split()[8]) == pytest.approx(found.scores[0, 0], rel=1e-5)
    with pytest.raises(ValueError, match="scale"):
        write_projection(found, path, scale="unit")
    assert list(found.table()) == ["FID", "IID", "SNPS", "PC1", "PC2"]
    assert repr(found).startswith("Projection: 3 samples on 2 components, oadp")


def test_people_of_the_reference_are_placed_where_they_were() -> None:
    """By id and genotype, whichever way they are projected and with a tenth of the SNPs absent; namesakes are not."""
    rng = np.random.default_rng(3)
    f = np.clip(rng.uniform(0.2, 0.8, (4000, 1)) + rng.normal(0, 0.1, (4000, 2)), 0.05, 0.95)
    calls = rng.binomial(2, np.repeat(f, 60, axis=1))
    calls[rng.random(calls.shape) < 0.02] = -1
    other = calls.copy()
    other[:, :5] = rng.binomial(2, f[:, :1], (4000, 5))  # other people under the same ids
    everybody = Genotypes.from_calls(calls)
    model = GenotypePCA(4).fit(everybody)
    want = model.eigenvectors_ * model.singular_values_
    for method in ("oadp", "least-squares", "simple"):
        again = project(model, everybody, method)
        assert again.recognised.all()
        np.testing.assert_allclose(again.scores, want, rtol=1e-6, atol=1e-6)
    fewer = project(model, Genotypes.from_calls(other).select(snps=np.arange(4000) % 10 != 0))
    assert not fewer.recognised[:5].any()
    assert fewer.namesakes[:5].all()
    assert fewer.recognised[5:].all()
    np.testing.assert_allclose(fewer.scores[5:], want[5:], rtol=1e-6, atol=1e-6)


def test_people_of_the_reference_are_known_without_their_families() -> None:
    """A VCF file has one name of a sample, IID or FID_IID; a name that two people have tells nobody."""
    rng = np.random.default_rng(4)
    calls = rng.binomial(2, np.repeat(rng.uniform(0.2, 0.8, (2000, 2)), 30, axis=1))
    people = Samples.numbered(60)
    people.fid[:] = [f"F{i}" for i in range(60)]
    people.iid[58:] = "twice"
    everybody = Genotypes.from_calls(calls, people)
    model = GenotypePCA(3).fit(everybody)
    want = model.eigenvectors_ * model.singular_values_
    for names in (people.iid, [f"{fid}_{iid}" for fid, iid in zip(people.fid, people.iid, strict=True)]):
        other = Samples.numbered(60)
        other.fid[:], other.iid[:] = "0", names
        other.iid[0] = people.iid[1]  # two samples of one name: neither is taken for that person
        other.iid[1] = people.iid[1]
        found = project(model, Genotypes.from_calls(calls, other))
        joined = names is not people.iid
        assert found.recognised.tolist() == [False, False, *[True] * 56, joined, joined]
        assert not found.namesakes.any()
        np.testing.assert_allclose(found.scores[2:58], want[2:58], rtol=1e-6, atol=1e-6)
    strangers = Genotypes.from_calls(rng.permuted(calls, axis=1), other)
    assert not project(model, strangers).recognised.any()
