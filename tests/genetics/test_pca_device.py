"""GenotypePCA on a device, run by torch on the CPU, against NumPy's path and against plain arithmetic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose
from sklearn.base import clone

from gramian import GenotypePCA
from gramian.cli import main
from gramian.genetics import project
from gramian.genetics.files import write_results
from gramian.genetics.pca import SecondMoment
from gramian.genetics.simulation import simulate_genotypes
from gramian.operators import genotype as genotype_device
from gramian.pca.tracy_widom import tracy_widom_statistics
from gramian.sources.plink import Genotypes, open_bed

torch = pytest.importorskip("torch", reason="torch is not installed")
from gramian.compute.gpu import uploads
from pretend import GPU
from pretend import pretend_gpu as pretended

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "three.bed"
    groups = ["a"] * 60 + ["b"] * 50 + ["c"] * 41
    simulate_genotypes(path, 1500, groups=groups, fst=0.05, missing=0.02, seed=1)
    return path


def standardised(path: Path) -> np.ndarray:
    """Samples × SNPs that vary, by the formula."""
    G = open_bed(path).calls(0, 1500).astype(float)
    G[G < 0] = np.nan
    f = np.nanmean(G, axis=1, keepdims=True) / 2
    vary = (f[:, 0] > 0) & (f[:, 0] < 1)
    Z = (G - 2 * f)[vary] / np.sqrt(2 * f * (1 - f))[vary]
    return np.nan_to_num(Z).T


WAYS: list[dict[str, Any]] = [
    {"solver": "krylov"},
    {"solver": "krylov", "tol": 1e-8},
    {"solver": "exact"},
    {"missing": "pairwise"},
    {"missing": "least-squares", "solver": "krylov", "precision": "double"},
    {"scaling": "smartpca", "solver": "krylov", "chromosomes": "all"},
]


@pytest.mark.parametrize("options", WAYS, ids=lambda way: "-".join(str(value) for value in way.values()))
def test_the_same_components_as_on_the_cpu(bed: Path, options: dict[str, Any]) -> None:
    here, there = (GenotypePCA(3, device=device, **options).fit(bed) for device in (None, CPU))
    tol = 1e-9 if there.components_.dtype == np.float64 else 2e-5
    if options.get("missing") == "least-squares":  # which fits the third score too, whose component is noise
        tol = 2e-5
    assert type(there.eigenvectors_) is np.ndarray
    assert_allclose(there.eigenvalues_[:2], here.eigenvalues_[:2], rtol=tol)
    assert_allclose(there.eigenvectors_[:, :2], here.eigenvectors_[:, :2], atol=tol)
    assert_allclose(there.components_[:2], here.components_[:2], atol=tol)
    assert_allclose(there.total_variance_, here.total_variance_, rtol=1e-12)
    assert_allclose(there.tracy_widom_.statistics[:2], here.tracy_widom_.statistics[:2], rtol=1e-3)
    assert there.n_separated_ == here.n_separated_ == 2
    assert there.certificate_.converged
    assert "products on torch on cpu" in there.certificate_.precision
    assert_allclose(there.transform(bed)[:, :2], here.transform(bed)[:, :2], atol=1e3 * tol)


def test_components_are_those_of_the_table(bed: Path) -> None:
    pca = GenotypePCA(2, solver="krylov", device=CPU).fit(bed)
    U, s, _ = np.linalg.svd(standardised(bed), full_matrices=False)
    assert np.all(np.abs(pca.singular_values_ - s[:2]) <= pca.certificate_.value_bounds)
    assert_allclose(np.abs(np.sum(pca.eigenvectors_ * U[:, :2], axis=0)), 1, atol=1e-6)


def test_a_file_that_does_not_fit_is_streamed(bed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = GenotypePCA(2, solver="krylov", device=CPU).fit(bed)
    monkeypatch.setattr(uploads, "BUFFER", 200 * 38)
    monkeypatch.setattr(genotype_device, "free_bytes", lambda device: 0)
    told = []
    pca = GenotypePCA(2, solver="krylov", device=CPU, verbose=lambda *report: told.append(report)).fit(bed)
    assert_allclose(pca.eigenvectors_, whole.eigenvectors_, atol=1e-6)
    assert "streamed" in pca.certificate_.precision
    assert float(told[-1][2].split()[1]) == pytest.approx(pca.certificate_.passes, abs=0.05)


def test_packed_tensors_give_tensors(bed: Path) -> None:
    G = open_bed(bed)
    source = Genotypes.from_packed(torch.from_numpy(G.packed(0, 1500).copy()), 151, G.samples, G.snps)
    want = GenotypePCA(2, solver="krylov").fit(G)
    for device in (None, CPU):
        pca = GenotypePCA(2, solver="krylov", device=device).fit(source)
        for name in ("eigenvectors_", "eigenvalues_", "components_", "singular_values_", "mean_", "scale_"):
            assert type(getattr(pca, name)) is torch.Tensor
        assert type(pca.snp_mask_) is np.ndarray
        assert_allclose(pca.eigenvectors_, want.eigenvectors_, atol=2e-5)
        assert_allclose(pca.transform(source), want.transform(G), atol=1e-2)
        assert type(pca.transform(source)) is torch.Tensor
        assert type(pca.transform(G)) is np.ndarray
        assert_allclose(clone(pca).fit_transform(source), want.fit_transform(G), atol=1e-2)


def test_tables_of_copies_may_be_tensors(bed: Path) -> None:
    table = open_bed(bed).calls(0, 1500).T.astype(np.float32)
    want = GenotypePCA(2).fit(table)
    pca = GenotypePCA(2).fit(torch.from_numpy(table))
    assert type(pca.eigenvectors_) is torch.Tensor
    assert np.array_equal(pca.eigenvectors_, want.eigenvectors_)


def test_the_edge_of_the_noise_is_that_of_the_table() -> None:
    """The statistic that decides what is waited for against the table of Patterson's test, component by component."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((300, 4)))[0]
    lam = np.array([90.0, 40.0, 7.0, 4.0])
    rest = rng.standard_normal((300, 700))
    rest -= U @ (U.T @ rest)
    rest -= rest.mean(axis=0)
    U = np.linalg.qr(U - U.mean(axis=0))[0]
    rest -= U @ (U.T @ rest)
    K = rest @ rest.T / 700 + U * lam @ U.T
    every = np.linalg.eigvalsh(K)[::-1][:299]
    whole = SecondMoment(300, 299, float(np.trace(K)), np.arange(300), K)
    for j, noise in enumerate(whole.noises(lam, U)):
        left = every[j:]
        assert_allclose(noise.spread, np.sum((left - left.mean()) ** 2), rtol=1e-9)
        assert noise.error == 0.0
        if j < 4:
            p = tracy_widom_statistics(np.maximum(every, 1e-12)).p_values[j]
            assert_allclose(noise.table(lam[: j + 1]).p_values[j], p, rtol=1e-6, atol=1e-290)
            assert noise.is_exceeded(lam[: j + 1]) == (p < 0.001)


def test_devices_that_are_not_there_are_refused(bed: Path) -> None:
    with pytest.raises(ValueError, match="device 'nonsense'"):
        GenotypePCA(2, device="nonsense").fit(bed)


def test_the_command_line_knows_devices(bed: Path) -> None:
    run = CliRunner()
    done = run.invoke(main, ["pca", str(bed), "-k", "2", "--device", "auto", "--json", "--solver", "krylov"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)
    refused = run.invoke(main, ["pca", str(bed), "-k", "2", "--device", "nonsense", "--json"])
    assert refused.exit_code == 2
    assert "nonsense" in refused.output


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_components_on_cuda(bed: Path) -> None:
    here = GenotypePCA(2, solver="krylov").fit(bed)
    there = GenotypePCA(2, solver="krylov", device="cuda").fit(bed)
    assert_allclose(there.eigenvectors_, here.eigenvectors_, atol=2e-5)
    assert "two parts" in there.certificate_.precision


@pytest.mark.parametrize("place", [CPU, GPU], ids=["cpu", "gpu"])
def test_models_of_tensors_are_projected_on_and_written(place: torch.device, bed: Path, tmp_path: Path) -> None:
    source = open_bed(bed)
    G = np.where(source.calls(0, 1500) < 0, np.nan, source.calls(0, 1500)).T.astype(float)
    plain = GenotypePCA(2, solver="exact").fit(G)
    with pretended():
        model = GenotypePCA(2, solver="exact").fit(torch.from_numpy(G).to(place))
        found = project(model, torch.from_numpy(G[:9]).to(place), "simple").scores
        write_results(model, tmp_path / "there")
    write_results(plain, tmp_path / "here")
    assert_allclose(np.abs(found), np.abs(project(plain, G[:9], "simple").scores), atol=1e-6)
    here, there = ((tmp_path / f"{name}.eigenval").read_text().split() for name in ("here", "there"))
    assert_allclose(np.array(there, float), np.array(here, float), rtol=1e-5)
