"""Statistics of SNPs and samples, against PLINK and against sums over the calls."""

import csv
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gramian.genetics.hardy_weinberg import hardy_weinberg
from gramian.genetics.quality import sample_quality, snp_quality
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed

DATA = Path(__file__).parent.parent / "data"
HAPMAP = Path(__file__).parents[3] / "shared" / "data" / "hapmap3" / "hm3.bed"
PLINK: dict[str, Any] = json.loads((DATA / "plink_quality.json").read_text("utf-8"))
REPORT = PLINK["reports"]


def text(values: Any) -> Any:
    return np.array(list(values), dtype=object)


def study() -> Genotypes:
    """The study of plink_quality.json, whose names are those of tests/data/plink_quality.py."""
    n, p = PLINK["n"], len(PLINK["chromosomes"])
    iid, zero = text(f"I{i}" for i in range(n)), text(["0"] * n)
    samples = Samples(
        text(f"F{i // 2}" for i in range(n)), iid, zero, zero, np.array(PLINK["sex"], np.int8), text(["-9"] * n)
    )
    names, place = text(f"rs{j}" for j in range(p)), 1000 * np.arange(1, p + 1)
    snps = Snps(text(PLINK["chromosomes"]), names, np.zeros(p), place, text(["A"] * p), text(["G"] * p))
    packed = np.frombuffer(bytes.fromhex(PLINK["packed"]), np.uint8).reshape(p, -1)
    return Genotypes(packed, samples, snps)


def printed(table: str, column: str) -> Any:
    return np.array([np.nan if x.lower() in ("na", "nan") else float(x) for x in REPORT[table][column]])


def test_frequencies_are_those_of_plink() -> None:
    found = snp_quality(study())
    assert_allclose(found.frequency, printed("p1.frq", "MAF"), rtol=6e-4)
    assert_allclose(found.minor_frequency, np.minimum(found.frequency, 1 - found.frequency))
    assert np.isnan(found.frequency).sum() == 5


def test_missing_calls_are_those_of_plink() -> None:
    snps, samples = snp_quality(study()), sample_quality(study())
    assert_array_equal(snps.missing, printed("p1.lmiss", "N_MISS"))
    assert_allclose(snps.missing_rate, printed("p1.lmiss", "N_MISS") / printed("p1.lmiss", "N_GENO"))
    assert_array_equal(samples.missing, printed("p1.imiss", "N_MISS"))
    assert_allclose(samples.missing_rate, printed("p1.imiss", "N_MISS") / printed("p1.imiss", "N_GENO"))


def test_hardy_weinberg_is_that_of_plink() -> None:
    found, mid = snp_quality(study()), snp_quality(study(), mid_p=True)
    paired = ~np.isin(PLINK["chromosomes"], ["Y", "MT"])
    assert_allclose(found.observed_het[paired], printed("p1.hwe", "O(HET)")[paired], rtol=6e-4)
    assert_allclose(found.expected_het[paired], printed("p1.hwe", "E(HET)")[paired], rtol=6e-4)
    assert_allclose(found.hardy_weinberg[paired], printed("p1.hwe", "P")[paired], rtol=6e-4)
    assert_allclose(mid.hardy_weinberg[paired], printed("p1m.hwe", "P")[paired], rtol=6e-4)
    for values in (found.observed_het, found.expected_het, found.hardy_weinberg):
        assert np.isnan(values[~paired]).all()


def test_inbreeding_is_that_of_plink() -> None:
    found = sample_quality(study())
    # PLINK leaves SNPs with one allele out of its counts, which takes as much from O as from E and N
    constant = found.calls - printed("p2.het", "OBS_CT")
    assert_allclose(found.calls - found.het - constant, printed("p2.het", "O(HOM)"))
    assert constant.max() == 7
    assert_allclose(found.inbreeding, printed("p2.het", "F"), rtol=6e-6, atol=1e-12)


def naive_samples(calls: Any) -> tuple[Any, Any]:
    """Heterozygosity and F of the columns, call by call."""
    rates, coefficients = [], []
    share = [np.mean(row[row >= 0]) / 2 if (row >= 0).any() else 0.0 for row in calls]
    for person in calls.T:
        seen = [j for j, call in enumerate(person) if call >= 0]
        observed = sum(int(person[j]) != 1 for j in seen)
        expected = sum(1 - 2 * share[j] * (1 - share[j]) for j in seen)
        rates.append(1 - observed / len(seen) if seen else np.nan)
        varying = len(seen) - expected
        coefficients.append((observed - expected) / varying if varying > 1e-9 else np.nan)
    return np.array(rates), np.array(coefficients)


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 13), p=st.integers(1, 9))
def test_statistics_are_sums_over_calls(seed: int, n: int, p: int) -> None:
    calls = np.random.default_rng(seed).integers(-1, 3, (p, n)).astype(np.int8)
    source = Genotypes.from_calls(calls)
    snps, samples = snp_quality(source), sample_quality(source)
    counts = [np.sum(calls == copies, axis=1) for copies in (2, 1, 0)]
    assert_array_equal(snps.missing, np.sum(calls < 0, axis=1))
    assert_array_equal(snps.hardy_weinberg, hardy_weinberg(*counts))
    seen = np.sum(counts, axis=0)
    with np.errstate(invalid="ignore"):
        assert_allclose(snps.frequency, (2 * counts[0] + counts[1]) / (2 * seen))
        assert_allclose(snps.observed_het, counts[1] / seen)
    rates, coefficients = naive_samples(calls)
    assert_allclose(samples.het_rate, rates)
    known = ~np.isnan(coefficients)
    assert_allclose(samples.inbreeding[known], coefficients[known], atol=1e-9)
    assert np.isnan(samples.inbreeding[~known]).all()


@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_view_is_as_good_as_a_copy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    calls = rng.integers(-1, 3, (12, 19)).astype(np.int8)
    people, markers = rng.uniform(size=19) < 0.7, rng.uniform(size=12) < 0.7
    people[0] = markers[0] = True
    view = Genotypes.from_calls(calls).select(people, markers)
    copy = Genotypes.from_calls(calls[np.ix_(markers, people)])
    assert_array_equal(snp_quality(view).hardy_weinberg, snp_quality(copy).hardy_weinberg)
    assert_allclose(sample_quality(view).inbreeding, sample_quality(copy).inbreeding)


def test_one_reading_serves_both(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Genotypes.from_calls(np.random.default_rng(0).integers(0, 3, (50, 30)))
    read = []
    packed = Genotypes.packed
    monkeypatch.setattr(Genotypes, "packed", lambda self, a, b: read.append(b - a) or packed(self, a, b))
    assert snp_quality(source).missing.sum() == 0
    assert sample_quality(source).missing.sum() == 0
    assert sum(read) == 50


def test_nobody_is_male() -> None:
    snps = Snps(text(["X", "Y", "MT"]), text("abc"), np.zeros(3), np.arange(3), text("AAA"), text("GGG"))
    found = snp_quality(Genotypes.from_calls([[0, 1, 2], [0, 2, 2], [0, 2, 1]], snps=snps))
    assert_allclose(found.frequency, [0.5, np.nan, 0.5])
    assert_allclose(found.missing_rate, [0, np.nan, 0])
    assert np.isnan(sample_quality(Genotypes.from_calls([[0, 1]], snps=snps.take([0]))).inbreeding).all()


def test_tables_are_written_whole(tmp_path: Path) -> None:
    snps, samples = snp_quality(study()), sample_quality(study())
    snps.write(tmp_path / "snps.tsv")
    samples.write(tmp_path / "samples.tsv")
    with (tmp_path / "snps.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert list(rows[0]) == list(snps.table())
    assert [row["id"] for row in rows] == list(snps.snps.id)
    read = np.array([np.nan if row["hwe_p"] == "NA" else float(row["hwe_p"]) for row in rows])
    assert_array_equal(read, snps.hardy_weinberg)
    assert (tmp_path / "samples.tsv").read_text("utf-8").startswith("fid\tiid\tmissing\t")
    with pytest.raises(FileExistsError, match=r"snps\.tsv: pass overwrite=True"):
        snps.write(tmp_path / "snps.tsv")
    snps.write(tmp_path / "snps.tsv", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["samples.tsv", "snps.tsv"]


def test_they_show_themselves() -> None:
    source = Genotypes.from_calls([[0, 1, 2, 1], [0, 0, 1, -1]])
    assert repr(snp_quality(source)).splitlines()[0] == "SnpQuality: 2 SNPs"
    assert repr(sample_quality(source)).splitlines()[0] == "SampleQuality: 4 samples"
    assert "snp2" in repr(snp_quality(source))


def columns(path: Path, *names: str) -> list[Any]:
    head, *lines = [line.split() for line in path.read_text("utf-8").splitlines()]
    return [np.array([float(line[head.index(name)]) for line in lines]) for name in names]


@pytest.mark.skipif(not HAPMAP.exists(), reason="shared/data/hapmap3 is not here")
@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
def test_hapmap_is_as_plink2_prints_it(tmp_path: Path) -> None:
    flags = ["--hardy", "--missing", "--het", "--freq", "--out", str(tmp_path / "p2")]
    subprocess.run(["plink2", "--bfile", str(HAPMAP.with_suffix("")), *flags], check=True, capture_output=True)
    source = open_bed(HAPMAP)
    snps, samples = snp_quality(source), sample_quality(source)
    (p, het, expected) = columns(tmp_path / "p2.hardy", "P", "O(HET_A1)", "E(HET_A1)")
    assert_allclose(snps.hardy_weinberg, p, rtol=6e-6)
    assert_allclose(snps.observed_het, het, rtol=6e-6)
    assert_allclose(snps.expected_het, expected, rtol=6e-6)
    assert_allclose(snps.frequency, columns(tmp_path / "p2.afreq", "ALT_FREQS")[0], rtol=6e-6)
    assert_array_equal(snps.missing, columns(tmp_path / "p2.vmiss", "MISSING_CT")[0])
    assert_array_equal(samples.missing, columns(tmp_path / "p2.smiss", "MISSING_CT")[0])
    homozygous, calls, F = columns(tmp_path / "p2.het", "O(HOM)", "OBS_CT", "F")
    assert_array_equal(samples.calls - samples.het, homozygous)
    assert_array_equal(samples.calls, calls)
    assert_allclose(samples.inbreeding, F, rtol=6e-6)


@pytest.mark.skipif(not HAPMAP.exists(), reason="shared/data/hapmap3 is not here")
def test_hapmap_is_as_stored() -> None:
    stored = PLINK["hapmap"]
    snps, samples = snp_quality(open_bed(HAPMAP)), sample_quality(open_bed(HAPMAP))
    assert list(snps.snps.id[::300]) == stored["p2.hardy"]["ID"]
    assert_allclose(snps.hardy_weinberg[::300], np.array(stored["p2.hardy"]["P"], dtype=float), rtol=6e-6)
    assert_allclose(samples.inbreeding[::40], np.array(stored["p2.het"]["F"], dtype=float), rtol=6e-6)
