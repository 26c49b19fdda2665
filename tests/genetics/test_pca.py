"""GenotypePCA against plain arithmetic, PLINK 1.9 and 2, and smartpca."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from gramian import GenotypePCA
from gramian.genetics import pca as genotype_pca
from gramian.genetics.pca import PassCounter
from gramian.pca.tracy_widom import tracy_widom_statistics
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed

HAPMAP = Path(__file__).parents[3] / "shared" / "data" / "hapmap3"
needs_hapmap = pytest.mark.skipif(not HAPMAP.exists(), reason="the HapMap data are not here")


def people(n: int = 60, p: int = 900, spread: float = 0.25, missing: float = 0.05, seed: int = 0) -> np.ndarray:
    """SNPs × samples of three populations, with gaps."""
    rng = np.random.default_rng(seed)
    f = np.clip(rng.uniform(0.2, 0.8, (p, 1)) + spread * rng.normal(size=(p, 3)), 0.02, 0.98)
    G = rng.binomial(2, f[:, np.arange(n) % 3])
    return np.where(rng.random(G.shape) < missing, -1, G)


def standardised(G: np.ndarray, scaling: str) -> np.ndarray:
    """Samples × SNPs, by the formulas a SNP at a time; SNPs that do not vary left out."""
    columns = []
    for g in G:
        seen = g[g >= 0].astype(float)
        if len(seen) == 0 or np.all(seen == seen[0]):
            continue
        f, q = seen.mean() / 2, (1 + seen.sum()) / (2 + 2 * len(seen))
        s = {"plink": 2 * f * (1 - f), "patterson": f * (1 - f), "smartpca": q * (1 - q), "none": 1.0}[scaling] ** 0.5
        columns.append(np.where(g < 0, 0.0, (g - 2 * f) / s))
    return np.array(columns).T


def assert_same_directions(found: np.ndarray, wanted: np.ndarray, tol: float) -> None:
    signs = np.sign(np.sum(found * wanted, axis=0))
    np.testing.assert_allclose(found * signs, wanted, atol=tol, rtol=0)


@pytest.mark.parametrize("solver", ["exact", "krylov"])
@pytest.mark.parametrize("scaling", ["plink", "patterson", "smartpca", "none"])
def test_components_are_those_of_the_standardised_table(scaling: str, solver: str) -> None:
    G = people()
    pca = GenotypePCA(2, scaling=scaling, solver=solver, precision="double", tol=1e-9).fit(Genotypes.from_calls(G))
    Z = standardised(G, scaling)
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    np.testing.assert_allclose(pca.singular_values_, s[:2], rtol=1e-9)
    np.testing.assert_allclose(pca.eigenvalues_, s[:2] ** 2 / Z.shape[1], rtol=1e-9)
    assert_same_directions(pca.eigenvectors_, U[:, :2], 1e-8)
    assert_same_directions(pca.components_.T, Vt[:2].T, 1e-8)
    assert np.isclose(pca.total_variance_, np.sum(Z**2) / Z.shape[1])
    assert np.all(np.take_along_axis(pca.components_, np.abs(pca.components_).argmax(axis=1)[:, None], axis=1) > 0)
    assert pca.certificate_.converged


def test_single_precision_is_as_good_as_its_certificate_says() -> None:
    G = people(n=200, p=3000)
    pca = GenotypePCA(2, solver="krylov").fit(Genotypes.from_calls(G))
    s = np.linalg.svd(standardised(G, "plink"), compute_uv=False)[:2]
    assert pca.components_.dtype == np.float32
    assert np.all(np.abs(pca.singular_values_ - s) <= pca.certificate_.value_bounds)
    bounds = pca.certificate_.eigenvalue_bounds
    assert np.all(np.abs(pca.eigenvalues_ - s**2 / pca.components_.shape[1]) <= bounds)


def test_pairwise_counts_divide_each_entry() -> None:
    G = people(missing=0.2)
    pca = GenotypePCA(3, missing="pairwise", precision="double").fit(Genotypes.from_calls(G))
    Z, seen = standardised(G, "plink"), (G >= 0).T.astype(float)
    lam, U = np.linalg.eigh(Z @ Z.T / (seen @ seen.T))
    np.testing.assert_allclose(pca.eigenvalues_, lam[::-1][:3], rtol=1e-9)
    assert_same_directions(pca.eigenvectors_, U[:, ::-1][:, :3], 1e-8)
    assert "both have calls" in pca.eigenvalue_scale_
    assert pca.certificate_.orthogonality < 1e-12
    assert pca.certificate_.reason == "counts of pairs need the whole matrix"


def test_scores_fitted_to_the_genotypes_seen() -> None:
    G = people(missing=0.2)
    pca = GenotypePCA(2, missing="least-squares", precision="double").fit(Genotypes.from_calls(G))
    Z, seen = standardised(G, "plink"), (G >= 0).T
    V = pca.components_.T
    scores = np.array([np.linalg.lstsq(V[o], z[o], rcond=None)[0] for z, o in zip(Z, seen, strict=True)])
    np.testing.assert_allclose(pca.eigenvectors_, scores / np.linalg.norm(scores, axis=0), atol=1e-9)


def test_an_array_of_samples_and_snps_is_packed() -> None:
    G = people()
    table = np.where(G < 0, np.nan, G).T
    packed = GenotypePCA(2).fit(Genotypes.from_calls(G))
    assert np.array_equal(GenotypePCA(2).fit(table).eigenvectors_, packed.eigenvectors_)
    assert np.array_equal(GenotypePCA(2).fit(G.T).eigenvectors_, packed.eigenvectors_)


def test_scores_and_transform() -> None:
    G = people()
    pca = GenotypePCA(2, precision="double")
    scores = pca.fit_transform(Genotypes.from_calls(G))
    np.testing.assert_allclose(scores, standardised(G, "plink") @ pca.components_.T, atol=1e-9)
    np.testing.assert_allclose(pca.transform(Genotypes.from_calls(G)), scores, atol=1e-9)
    some = Genotypes.from_calls(G).select(samples=np.arange(60) < 7)
    np.testing.assert_allclose(pca.transform(some), scores[:7], atol=1e-9)


def test_snps_left_out_are_counted() -> None:
    G = people(p=30)
    G[3], G[5], G[6] = 2, -1, np.where(G[6] < 0, -1, 0)
    snps = Snps.numbered(30)
    snps.chromosome[[0, 1, 2, 5]] = ["X", "MT", "0", "Y"]
    pca = GenotypePCA(2).fit(Genotypes.from_calls(G, snps=snps))
    assert pca.dropped_ == {"not on an autosome": 4, "without a call": 0, "of one allele alone": 2}
    assert (pca.components_.shape, pca.n_features_in_, pca.snp_mask_.sum()) == ((2, 24), 30, 24)
    everything = GenotypePCA(2, chromosomes="all").fit(Genotypes.from_calls(G, snps=snps))
    assert everything.dropped_ == {"not on an autosome": 0, "without a call": 1, "of one allele alone": 2}
    assert everything.transform(Genotypes.from_calls(G, snps=snps)).shape == (60, 2)


def test_snps_heterozygous_in_all_samples_count_but_say_nothing() -> None:
    G = people(p=30)
    more = np.concatenate([G, np.ones((10, 60), int)])
    with_them, without = (GenotypePCA(2, precision="double").fit(Genotypes.from_calls(g)) for g in (more, G))
    np.testing.assert_allclose(with_them.eigenvalues_ * 40, without.eigenvalues_ * 30, rtol=1e-10)
    np.testing.assert_allclose(with_them.components_[:, 30:], 0, atol=1e-12)


def test_samples_without_calls_are_refused_by_name() -> None:
    G = people()
    G[:, [4, 9]] = -1
    with pytest.raises(ValueError, match=r"2 of 60 samples.*SNPs.*s5, s10"):
        GenotypePCA(2).fit(Genotypes.from_calls(G))


def test_samples_with_calls_on_other_chromosomes_alone_are_refused_too() -> None:
    G = people(p=30)
    snps = Snps.numbered(30)
    snps.chromosome[:10] = "X"
    G[10:, 7] = -1
    with pytest.raises(ValueError, match=r"SNPs.*s8"):
        GenotypePCA(2).fit(Genotypes.from_calls(G, snps=snps))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scaling": "x"}, "scaling.*plink"),
        ({"solver": "arpack"}, "solver"),
        ({"missing": "drop"}, "missing"),
        ({"precision": "half"}, "precision"),
        ({"chromosomes": "22"}, "chromosomes"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 60}, "at most 59 components"),
        ({"tol": 0}, "tol=0 must lie"),
        ({"max_passes": 0}, "max_passes"),
        ({"max_passes": "many"}, "max_passes"),
        ({"random_state": -1}, "random_state=-1"),
        ({"missing": "pairwise", "solver": "krylov"}, "needs the whole matrix"),
    ],
)
def test_parameters_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GenotypePCA(**{"n_components": 2, **arguments}).fit(Genotypes.from_calls(people()))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.array([[0.0, 1.5], [1.0, 2.0]]), r"Row 1, column 2 is 1\.5: .*use gramian\.PCA"),
        (np.array([["a", "b"]]), "dtype"),
        (np.zeros(3), "table of samples"),
        (np.zeros((4, 3)), "No SNP is left of 3: 3 of one allele alone"),
        (np.full((4, 3), np.nan), "No SNP is left"),
        (np.ones((4, 3)), "No SNP is left of 3: 3 heterozygous in all samples"),
        (np.zeros((0, 3)), "nothing to analyse"),
        (np.array([[1, 0, 2]]), "No SNP is left"),
    ],
)
def test_tables_that_are_no_genotypes_are_refused(table: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GenotypePCA(1).fit(table)


def test_masked_calls_are_missing() -> None:
    G = people(p=60).T.astype(float)
    hidden = np.random.default_rng(3).random(G.shape) < 0.1
    known = GenotypePCA(2).fit(np.where(hidden, np.nan, G))
    behind = np.ma.masked_array(np.where(hidden, 77.0, G), hidden)  # what is behind a mask is nobody's business
    found = GenotypePCA(2).fit(behind)
    np.testing.assert_array_equal(found.eigenvectors_, known.eigenvectors_)
    np.testing.assert_array_equal(found.transform(behind), known.transform(np.where(hidden, np.nan, G)))
    packed = Genotypes.from_calls(np.ma.masked_array(np.where(hidden, 2, G), hidden).T.astype(np.int8))
    np.testing.assert_array_equal(GenotypePCA(2).fit(packed).eigenvectors_, known.eigenvectors_)


def test_transform_refuses_other_snps() -> None:
    G = people()
    pca = GenotypePCA(2).fit(Genotypes.from_calls(G))
    swapped = Snps.numbered(900)
    swapped.a1[3], swapped.a2[3] = "G", "A"
    for other in (Genotypes.from_calls(G[:50]), Genotypes.from_calls(G, snps=swapped)):
        with pytest.raises(ValueError, match=r"genetics\.project"):
            pca.transform(other)


def test_transform_refuses_swapped_alleles_of_the_snps_used_alone() -> None:
    G = people(p=30)
    G[4] = 2
    pca = GenotypePCA(2).fit(Genotypes.from_calls(G))
    used = np.delete(G, 4, axis=0)
    expected = pca.transform(Genotypes.from_calls(G))
    np.testing.assert_allclose(pca.transform(Genotypes.from_calls(used, snps=pca.snps_)), expected, atol=1e-12)
    swapped = replace(pca.snps_, a1=pca.snps_.a2, a2=pca.snps_.a1)
    with pytest.raises(ValueError, match="alleles"):
        pca.transform(Genotypes.from_calls(used, snps=swapped))


def test_columns_of_a_frame_are_known_by_their_names() -> None:
    G = people(p=30)
    frame = pd.DataFrame(np.where(G < 0, np.nan, G).T, columns=[f"rs{j}" for j in range(30)])
    pca = GenotypePCA(2).fit(frame)
    scores = pca.transform(frame)
    assert pca.feature_names_in_.tolist() == pca.snps_.id.tolist() == list(frame.columns)
    assert np.array_equal(pca.transform(frame.to_numpy()), scores)
    assert np.array_equal(pca.transform(frame.astype("Int64")), scores)
    with pytest.raises(ValueError, match="same order"):
        pca.transform(frame[frame.columns[::-1]])
    assert np.array_equal(GenotypePCA(2).fit(frame.to_numpy()).transform(frame), scores)
    assert not hasattr(pca.fit(G.T), "feature_names_in_")


def test_a_refused_fit_leaves_nothing_behind() -> None:
    pca = GenotypePCA(60)
    with pytest.raises(ValueError, match="at most 59"):
        pca.fit(people().T)
    with pytest.raises(NotFittedError):
        pca.transform(people().T)


def test_a_sparse_matrix_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"X\.toarray\(\)"):
        GenotypePCA(1).fit(sparse.csr_array(np.eye(4)))


@pytest.mark.parametrize("solver", ["exact", "krylov"])
@pytest.mark.parametrize("shape", [(2, 40), (30, 1)])
def test_one_eigenvalue_is_found_and_not_tested(shape: tuple[int, int], solver: str) -> None:
    G = np.random.default_rng(1).binomial(2, 0.5, shape)
    pca = GenotypePCA(1, solver=solver, precision="double").fit(G)
    s = np.linalg.svd(standardised(G.T, "plink"), compute_uv=False)
    np.testing.assert_allclose(pca.singular_values_, s[:1], rtol=1e-12)
    assert (len(pca.tracy_widom_.statistics), pca.n_separated_) == (0, 0)


def test_people_who_are_there_thrice_add_no_eigenvalues_to_the_test() -> None:
    G = np.tile(people(n=12, p=400, missing=0.0), (1, 3))
    table = GenotypePCA(2, solver="exact").fit(Genotypes.from_calls(G)).tracy_widom_
    lam = np.linalg.svd(standardised(G, "plink"), compute_uv=False)[:11] ** 2  # 12 people less their mean
    want = tracy_widom_statistics(lam)
    np.testing.assert_allclose(table.statistics, want.statistics, rtol=1e-8)


@pytest.mark.parametrize("tol", [1e-8, 2e-6])  # sums of 2,000 terms in float32 may be off by 4e-6
def test_a_tolerance_below_single_precision_is_met_in_double(tol: float) -> None:
    pca = GenotypePCA(2, solver="krylov", tol=tol).fit(Genotypes.from_calls(people(n=200, p=2000)))
    assert pca.components_.dtype == np.float64
    assert pca.certificate_.converged
    assert pca.certificate_.residuals.max() <= tol


def test_few_samples_are_solved_exactly_however_few_snps() -> None:
    G = people(n=200, p=90)
    pca = GenotypePCA(3).fit(Genotypes.from_calls(G))
    assert pca.certificate_.method.startswith("exact")
    assert pca.certificate_.reason == "200 samples make a small Gram matrix"
    np.testing.assert_allclose(
        pca.singular_values_, np.linalg.svd(standardised(G, "plink"), compute_uv=False)[:3], rtol=1e-10
    )


def test_scores_are_fitted_in_several_passes_where_pairs_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    G = Genotypes.from_calls(people(missing=0.2))
    whole = GenotypePCA(3, missing="least-squares").fit(G).eigenvectors_
    monkeypatch.setattr(genotype_pca, "PAIR_BYTES", 1)
    np.testing.assert_allclose(GenotypePCA(3, missing="least-squares").fit(G).eigenvectors_, whole, atol=1e-12)


def test_scores_are_not_fitted_to_fewer_genotypes_than_there_are_scores() -> None:
    G = people()
    G[3:, 7] = -1
    with pytest.raises(ValueError, match=r"1 of 60 samples.*5 scores.*s8"):
        GenotypePCA(5, missing="least-squares").fit(Genotypes.from_calls(G))


def test_a_view_is_standardised_by_its_own_samples() -> None:
    G = people(n=61, p=300)
    rng = np.random.default_rng(0)
    kept, snps = np.sort(rng.choice(61, 30, replace=False)), np.sort(rng.choice(300, 200, replace=False))
    packed = Genotypes.from_calls(G).packed(0, 300).copy()
    packed[:, -1] |= 0b01_10_11_00  # bits after the last sample
    view, alone = Genotypes.from_packed(packed, 61).select(kept, snps), Genotypes.from_calls(G[snps][:, kept])
    for options in ({"solver": "exact"}, {"missing": "pairwise"}, {"missing": "least-squares"}):
        one, other = (GenotypePCA(2, **options).fit(source) for source in (view, alone))
        np.testing.assert_allclose(one.eigenvectors_, other.eigenvectors_, atol=1e-12)
        np.testing.assert_allclose(one.tracy_widom_.statistics, other.tracy_widom_.statistics, rtol=1e-9)
        assert np.array_equal(one.allele_frequency_, other.allele_frequency_)


class TestNoise:
    """Components in the noise are named, not iterated for."""

    def test_three_populations_separate_two_components(self) -> None:
        pca = GenotypePCA(6, solver="krylov").fit(Genotypes.from_calls(people(n=400, p=4000, missing=0.01)))
        assert pca.n_separated_ == 2
        assert pca.certificate_.converged
        assert pca.certificate_.passes < 25
        assert "Components 3 to 6 lie inside the noise" in pca.certificate_.notes[0]
        assert np.all(pca.certificate_.residuals[:2] <= 1e-4)

    def test_pure_noise_has_none(self) -> None:
        G = np.random.default_rng(0).binomial(2, 0.4, (3000, 300))
        pca = GenotypePCA(4, solver="krylov").fit(Genotypes.from_calls(G))
        assert pca.n_separated_ == 0
        assert pca.certificate_.converged

    def test_estimated_statistics_agree_with_the_whole_spectrum_within_their_error(self) -> None:
        G = Genotypes.from_calls(people(n=500, p=3000, missing=0.01))
        few, all_of = GenotypePCA(3, solver="krylov").fit(G), GenotypePCA(3, solver="exact").fit(G)
        assert len(all_of.tracy_widom_.statistics) == 498
        assert all_of.effective_markers_error_ == few.effective_markers_error_ == 0.0
        np.testing.assert_allclose(few.tracy_widom_.effective_n[:3], all_of.tracy_widom_.effective_n[:3], rtol=1e-5)
        np.testing.assert_allclose(few.tracy_widom_.statistics[:2], all_of.tracy_widom_.statistics[:2], rtol=1e-4)
        assert all_of.tracy_widom_.significant(0.001) == few.n_separated_ == 2

    def test_statistics_from_some_people_are_off_by_as_much_as_they_say(self, monkeypatch) -> None:
        monkeypatch.setattr("gramian.genetics.pca.EXACT_WORK", 0.0)
        monkeypatch.setattr("gramian.genetics.pca.PEOPLE", 6.0)
        off = []
        for seed in range(20):
            G = Genotypes.from_calls(people(n=90, p=400, spread=0.0, seed=seed))
            few, exact = (GenotypePCA(2, solver=way, random_state=seed).fit(G) for way in ("krylov", "exact"))
            assert not exact.statistic_errors_.any()
            off.append((few.tracy_widom_.statistics[0] - exact.tracy_widom_.statistics[0]) / few.statistic_errors_[0])
        assert 0.5 < np.sqrt(np.mean(np.square(off))) < 1.6  # 3 to 4 standard errors of a deviation from 20

    @pytest.mark.parametrize("sampled", [False, True])
    def test_the_size_of_the_test_is_what_it_says(self, sampled: bool, monkeypatch) -> None:
        """Under the null, p-values lie below α in a share α of all cases; by probes it was 17 % for 5 %."""
        if sampled:
            monkeypatch.setattr("gramian.genetics.pca.EXACT_WORK", 0.0)
            monkeypatch.setattr("gramian.genetics.pca.PEOPLE", 5.0)
        rng, found = np.random.default_rng(0), []
        for _ in range(100 if sampled else 200):
            f = rng.uniform(0.2, 0.8, (500, 1))
            model = GenotypePCA(2, solver="krylov").fit(Genotypes.from_calls(rng.binomial(2, f, (500, 100))))
            assert (model.statistic_errors_[0] > 0.3) == sampled
            found.append(model.tracy_widom_.p_values[0])
        below = np.array([np.sum(np.array(found) < alpha) for alpha in (0.05, 0.01)])
        assert np.all(below <= binom.ppf(0.9999, len(found), [0.05, 0.01]))
        assert below[0] >= binom.ppf(0.0005, len(found), 0.05)

    @pytest.mark.parametrize("p", [150, 700])
    def test_fewer_snps_than_samples(self, p: int) -> None:
        G = people(n=500, p=p)
        pca = GenotypePCA(2, solver="krylov").fit(Genotypes.from_calls(G))
        s = np.linalg.svd(standardised(G, "plink"), compute_uv=False)
        np.testing.assert_allclose(pca.singular_values_, s[:2], rtol=1e-5)
        lam = s[s > 1e-9] ** 2
        rest = lam[2:]
        exact = (len(rest) + 2) * rest.sum() ** 2 / (len(rest) * (rest**2).sum() - rest.sum() ** 2)
        table = GenotypePCA(3, solver="krylov").fit(Genotypes.from_calls(G)).tracy_widom_
        assert abs(table.effective_n[2] / exact - 1) < 1e-4

    def test_too_few_passes_are_warned_about(self) -> None:
        with pytest.warns(ConvergenceWarning, match="max_passes=4"):
            pca = GenotypePCA(2, solver="krylov", max_passes=4, tol=1e-9).fit(
                Genotypes.from_calls(people(400, 2000, 0.05))
            )
        assert not pca.certificate_.converged

    @pytest.mark.parametrize("max_passes", [1, 3, 8])
    def test_components_that_had_no_time_to_show_are_not_called_noise(self, max_passes: int) -> None:
        G = Genotypes.from_calls(people(300, 2000, 0.03))
        assert GenotypePCA(3, solver="exact").fit(G).n_separated_ == 2
        with pytest.warns(ConvergenceWarning, match="3 of 3 components"):
            pca = GenotypePCA(3, solver="krylov", max_passes=max_passes).fit(G)
        assert not pca.certificate_.converged
        assert pca.certificate_.judged == 3
        assert pca.certificate_.notes == ()

    def test_what_was_not_waited_for_is_said_only_where_it_was_not(self) -> None:
        G = Genotypes.from_calls(people(n=12, p=300, spread=0.0))
        found = GenotypePCA(4, solver="krylov").fit(G).certificate_
        assert np.all(found.residuals <= 1e-4)  # the basis is soon the whole space
        assert "lie inside the noise" in found.notes[0]
        assert "not waited for" not in found.notes[0]
        G = Genotypes.from_calls(people(n=400, p=2000, spread=0.0))
        found = GenotypePCA(4, solver="krylov").fit(G).certificate_
        assert f"not waited for (the largest is {found.residuals.max():.1e})" in found.notes[0]


def test_progress_comes_one_call_at_a_time_and_misses_no_block() -> None:
    inside, together, last = [0], [], [""]

    def say(done: int, total: int, message: str) -> None:
        inside[0] += 1
        together.append(inside[0])
        time.sleep(1e-4)
        last[0] = message
        inside[0] -= 1

    counter = PassCounter(say, exact=False, n_snps=100, tol=1e-4, max_passes=200)
    threads = [threading.Thread(target=lambda: [counter.count(2, 100) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(together) == 1
    assert last[0].startswith("pass 4.0 of ")


def test_progress_is_reported() -> None:
    seen: list[tuple[int, int, str]] = []
    G = Genotypes.from_calls(people(300, 3000))
    GenotypePCA(2, solver="krylov", verbose=lambda *report: seen.append(report)).fit(G)
    done = [report[0] for report in seen]
    assert done == sorted(done)
    assert done[-1] < seen[-1][1] == 1000
    passes = [float(message.split()[1]) for _, _, message in seen]
    assert passes == sorted(passes)
    assert passes[-1] >= 3
    assert "residual" in seen[-1][2]


def test_the_number_of_passes_is_guessed_from_the_residual() -> None:
    seen: list[tuple[int, int, str]] = []
    counter = PassCounter(lambda *report: seen.append(report), exact=False, n_snps=100, tol=1e-6, max_passes=200)
    counter.residual = 1e-3
    counter.count(1200, 100)
    assert seen == [(500, 1000, "pass 12.0 of about 24, residual 1.0e-03")]


def test_a_line_of_progress(capsys: pytest.CaptureFixture[str]) -> None:
    GenotypePCA(2, verbose=True).fit(Genotypes.from_calls(people()))
    shown = capsys.readouterr().err
    assert re.search(r"GenotypePCA: \d+ of 1000, pass", shown)
    assert shown.endswith("\n")


# The other checks feed normal deviates to fit, which are no copies of an allele.
@pytest.mark.parametrize(
    "name",
    [
        "estimator_cloneable",
        "estimator_repr",
        "get_params_invariance",
        "no_attributes_set_in_init",
        "parameters_default_constructible",
        "set_params",
        "valid_tag_types",
    ],
)
def test_scikit_learn_checks_that_apply(name: str) -> None:
    check = getattr(estimator_checks, f"check_{name}")
    assert check("GenotypePCA", GenotypePCA()) is None


def test_the_contract_of_an_estimator() -> None:
    G = people()
    pca = GenotypePCA(2, scaling="patterson")
    twin = clone(pca)
    assert twin.get_params() == pca.get_params()
    pipeline = make_pipeline(pca, StandardScaler())
    assert pipeline.fit_transform(G.T).shape == (60, 2)
    assert pca.get_feature_names_out().tolist() == ["genotypepca0", "genotypepca1"]
    frame = clone(pca).set_output(transform="pandas").fit_transform(G.T)
    assert list(frame.columns) == ["genotypepca0", "genotypepca1"]


def test_the_same_answer_from_file_and_memory_and_any_blocks(tmp_path: Path) -> None:
    G = people(n=61, p=700)
    whole = Genotypes.from_calls(G)
    path = tmp_path / "t.bed"
    path.write_bytes(b"\x6c\x1b\x01" + whole.packed(0, 700).tobytes())
    path.with_suffix(".fam").write_text("".join(f"0 s{i} 0 0 0 -9\n" for i in range(61)))
    path.with_suffix(".bim").write_text("".join(f"1 snp{j} 0 {j} A G\n" for j in range(700)))
    here, there = GenotypePCA(2).fit(whole), GenotypePCA(2).fit(str(path))
    assert np.array_equal(here.eigenvectors_, there.eigenvectors_)
    assert isinstance(there.samples_, Samples)


@cache
def hapmap(**parameters: Any) -> GenotypePCA:
    return GenotypePCA(10, **parameters).fit(HAPMAP / "hm3.bed")


@needs_hapmap
class TestHapMap:
    """957 people of 11 populations: other programs' results to all the digits they print."""

    def reference(self, name: str) -> np.ndarray:
        return np.loadtxt(HAPMAP / "reference" / name, usecols=range(2, 12), comments="#")

    @pytest.mark.parametrize("name", ["p1.eigenvec", "p2.eigenvec"])
    def test_plink_exact(self, name: str) -> None:
        pca = hapmap(missing="pairwise")
        values = np.loadtxt((HAPMAP / "reference" / name).with_suffix(".eigenval"))
        assert [f"{x:.6g}" for x in pca.eigenvalues_] == [f"{x:.6g}" for x in values]
        wanted = self.reference(name)
        found = pca.eigenvectors_ * np.sign(np.sum(pca.eigenvectors_ * wanted, axis=0))
        digits = 10.0 ** (np.floor(np.log10(np.abs(wanted))) - 5)  # the last of six printed
        assert np.max(np.abs(found - wanted) / digits) < 0.501

    def test_plink2_approx_imputes_the_mean_as_we_do(self) -> None:
        pca = hapmap()
        values = np.loadtxt(HAPMAP / "reference" / "p2a.eigenval")
        assert [f"{x:.6g}" for x in pca.eigenvalues_[:5]] == [f"{x:.6g}" for x in values[:5]]

    def test_krylov_and_exact_agree(self) -> None:
        few = hapmap(solver="krylov")
        exact = hapmap(solver="exact")
        np.testing.assert_allclose(few.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
        assert_same_directions(few.eigenvectors_, exact.eigenvectors_, 1e-4)

    def test_smartpca(self) -> None:
        pca = hapmap(scaling="smartpca", solver="exact", missing="least-squares")
        assert pca.all_eigenvalues_ is not None
        scaled = pca.all_eigenvalues_ * 956 / pca.all_eigenvalues_.sum()
        np.testing.assert_allclose(scaled, np.loadtxt(HAPMAP / "reference" / "sm.eval"), atol=0.6e-6)
        wanted = np.loadtxt(HAPMAP / "reference" / "sm.evec", usecols=range(1, 11), skiprows=1)
        assert_same_directions(pca.eigenvectors_, wanted, 0.501e-4)

    def test_smartpca_tracy_widom_table(self) -> None:
        table = hapmap(scaling="smartpca", solver="exact").tracy_widom_
        text = (HAPMAP / "reference" / "sm.log").read_text()
        rows = re.findall(r"^\s+(\d+)\s+[\d.]+\s+(?:NA|-[\d.]+)\s+(-?[\d.]+)\s+(\S+)\s+([\d.]+)$", text, re.MULTILINE)
        assert len(rows) > 900
        number, statistic, p, markers = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
        k = len(number)
        np.testing.assert_allclose(table.effective_n[:k], markers, atol=0.6e-3)
        np.testing.assert_allclose(table.statistics[1:k], statistic[1:], atol=0.6e-3)
        # the first of smartpca's statistics is 651.872; its own eigenvalues and formula give 651.882
        assert abs(table.statistics[0] - statistic[0]) < 0.011
        # smartpca interpolates a table of the law, which ends at a statistic of 8
        np.testing.assert_allclose(table.p_values[40:52], p[40:52], rtol=0.02)
        assert table.significant(0.05) == 46

    def test_open_and_named(self) -> None:
        source = open_bed(HAPMAP / "hm3.bed")
        assert source.shape == (957, 14079)
        assert source.samples.names[0] == "2431:NA19916"


def test_passes_before_turning_to_the_exact_way_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.genetics.pca.passes_to_go", lambda history, tol: np.inf)
    pca = GenotypePCA(2, tol=1e-7).fit(Genotypes.from_calls(people(1200, 1500)))
    spent = int(re.findall(r"after (\d+) passes of block Krylov", pca.certificate_.reason)[0])
    assert pca.certificate_.method.startswith("exact")
    assert pca.certificate_.passes == spent + 3
