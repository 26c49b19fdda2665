"""The genotype operator on a device, run by torch on the CPU: resident and streamed, and what it says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramian.genetics.bed_writer import write_bed
from gramian.operators import DeviceGenotypeOperator, GenotypeOperator, genotype_operator
from gramian.operators import genotype as genotype_device
from gramian.sources.plink import Genotypes, open_bed

torch = pytest.importorskip("torch", reason="torch is not installed")
from gramian.compute.gpu import uploads

CPU = torch.device("cpu")


def table(p: int = 90, n: int = 61, missing: float = 0.1) -> np.ndarray:
    rng = np.random.default_rng(0)
    G = rng.binomial(2, rng.uniform(0.1, 0.9, (p, 1)), (p, n))
    return np.where(rng.random((p, n)) < missing, -1, G)


def vectors(rows: int, columns: int = 3) -> Any:
    return torch.from_numpy(np.random.default_rng(1).standard_normal((rows, columns)))


@pytest.fixture
def bed(tmp_path: Path) -> Genotypes:
    write_bed(tmp_path / "some.bed", Genotypes.from_calls(table()))
    return open_bed(tmp_path / "some.bed")


@pytest.fixture
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven SNPs of sixteen bytes to a buffer, and no room for more on the device."""
    monkeypatch.setattr(uploads, "BUFFER", 7 * 16)
    monkeypatch.setattr(genotype_device, "free_bytes", lambda device: 0)


@pytest.mark.usefixtures("small_buffers")
@pytest.mark.parametrize("picked", ["all", "stretch", "some"])
def test_a_file_too_large_is_streamed_block_by_block(bed: Genotypes, picked: str) -> None:
    rows = {"all": np.ones(90, bool), "stretch": np.arange(90) > 40, "some": np.arange(90) % 3 != 1}[picked]
    source, done = bed.select(snps=rows), []
    A = DeviceGenotypeOperator(source, device=CPU, dtype=np.float64, progress=lambda part, _: done.append(part))
    want = GenotypeOperator(source, dtype=np.float64)
    U = vectors(61)
    np.testing.assert_allclose(A.conormal(U), want.conormal(U.numpy()), rtol=1e-12, atol=1e-10)
    assert (A.resident, A.passes) == (False, 1)
    assert sum(done) == rows.sum()
    assert max(done) <= 7
    assert A.precision == "products on torch on cpu in double mode: float64, genotypes streamed through it"


@pytest.mark.usefixtures("small_buffers")
def test_buffers_that_do_not_fit_are_refused_with_the_figure(bed: Genotypes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 2**20)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    with pytest.raises(MemoryError, match=r"90 SNPs.*7 would.*1\.0 MiB"):
        DeviceGenotypeOperator(bed, device=CPU)


def test_what_fits_is_uploaded_once(bed: Genotypes) -> None:
    A = DeviceGenotypeOperator(bed, device=CPU, dtype=np.float64)
    assert A.resident
    assert A.source.values.shape == (90, 16)
    assert A.source.values.stride(0) == uploads.row_bytes(16) == 128
    assert "streamed" not in A.precision
    again = DeviceGenotypeOperator(A.source, device=CPU)
    assert again.source is A.source


def test_the_mode_follows_the_tolerance_and_is_named() -> None:
    source = Genotypes.from_calls(table())
    fast = DeviceGenotypeOperator(source, device=CPU, tolerance=0.01)
    assert (fast.mode, fast.epsilon) == ("fast", 5e-4)
    accurate = DeviceGenotypeOperator(source, device=CPU, tolerance=1e-4)
    assert (accurate.mode, accurate.epsilon) == ("accurate", 2e-6)
    assert "accurate mode" in accurate.precision
    assert DeviceGenotypeOperator(source, device=CPU, dtype="float64").epsilon == np.finfo(float).eps


def test_calls_are_counted_in_pairs() -> None:
    G = table()
    A = DeviceGenotypeOperator(Genotypes.from_calls(G), device=CPU, dtype=np.float64)
    seen = (G >= 0).astype(float)
    np.testing.assert_allclose(A.calls().cogram(), seen.T @ seen, atol=1e-10)


def test_the_whole_matrix_is_refused_where_it_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    A = DeviceGenotypeOperator(Genotypes.from_calls(table()), device=CPU)
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 1000)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    with pytest.raises(MemoryError, match=r"61×61.*ZZᵀ.*solver='krylov'"):
        A.cogram()


def test_one_name_for_both_devices() -> None:
    source = Genotypes.from_calls(table())
    assert type(genotype_operator(source)) is GenotypeOperator
    assert type(genotype_operator(source, device="cpu")) is GenotypeOperator
    assert type(genotype_operator(source, device=CPU)) is DeviceGenotypeOperator
    with pytest.raises(ValueError, match=r"\(3,\).*90 SNPs"):
        genotype_operator(source, np.ones(3), device=CPU)


def test_packed_tensors_are_genotypes() -> None:
    G = table()
    plain = Genotypes.from_calls(G)
    packed = torch.from_numpy(plain.packed(0, 90))
    source = Genotypes.from_packed(packed, 61)
    assert source.values is packed
    for mine, theirs in zip(source.counts(), plain.counts(), strict=True):
        assert np.array_equal(mine, theirs)
    some = source.select(snps=np.arange(90) % 2 == 0, samples=np.arange(61) > 3)
    assert np.array_equal(some.calls(0, 45), G[::2, 4:])
    assert np.array_equal(some.counts().by_sample, Genotypes.from_calls(G[::2, 4:]).counts().by_sample)
    block = next(iter(source.blocks())).values
    assert np.array_equal(np.nan_to_num(block, nan=-1), G.T)


@pytest.mark.parametrize(
    ("shape", "dtype", "n", "complaint"),
    [
        ((5, 3), "uint8", 13, "13 samples take 4 bytes of each SNP; the table has 3"),
        ((5, 3), "int8", 12, r"table of bytes \(uint8\)"),
        ((5,), "uint8", 12, r"not uint8 of shape \(5,\)"),
    ],
)
def test_packed_genotypes_of_another_form_are_refused(shape: Any, dtype: str, n: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Genotypes.from_packed(np.zeros(shape, dtype), n)


def test_names_must_be_as_many_as_genotypes() -> None:
    with pytest.raises(ValueError, match=r"2 SNPs.*12 samples"):
        Genotypes.from_packed(np.zeros((5, 3), np.uint8), 12, snps=Genotypes.from_calls([[0], [1]]).snps)


def test_a_file_cut_short_while_it_is_read_is_refused(bed: Genotypes) -> None:
    with bed.path.open("r+b") as file:  # type: ignore[union-attr]
        file.truncate(500)
    with pytest.raises(ValueError, match=r"some\.bed"):
        bed.read_into(0, 90, np.empty((90, 16), np.uint8))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("share", [0.0, 0.8])
def test_products_on_cuda(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    monkeypatch.setattr(genotype_device, "SHARE", share)
    monkeypatch.setattr(uploads, "BUFFER", 2**16)
    source = Genotypes.from_calls(table(3000, 1001, 0.02))
    A = DeviceGenotypeOperator(source, device=torch.device("cuda"))
    U = vectors(1001, 24).float()
    want = GenotypeOperator(source, dtype=np.float64).conormal(U.double().numpy())
    found = A.conormal(U.cuda()).cpu().double().numpy()
    assert np.linalg.norm(found - want) < 4e-6 * np.linalg.norm(want)
    assert A.resident == (share > 0)
