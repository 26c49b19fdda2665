"""Damaged genotype files of other programs: read as what they still say, or refused by name; no crash, no hang."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from attack.harness import case_count, run_cases, seed
from attack.test_files import SECONDS, mutate
from gramian.sources import SourceError
from gramian.sources.genotype_files import open_genotypes
from gramian.sources.plink import Samples, Snps
from sources.test_genotype_files import FORMATS

CALLS = np.random.default_rng(3).integers(-1, 3, (14, 9)).astype(np.int8)
PACKAGES = {"vcf": "cyvcf2", "gz": "cyvcf2", "vcz": "zarr", "pgen": "pgenlib", "bgen": "bgen"}


def read_damaged(folder: Path, name: str, number: int) -> str:
    """Damage a copy of a file, or of one beside it, read it, and say what became of it; all else is raised."""
    rng = np.random.default_rng([number, *name.encode()])
    copy = folder / f"damaged-{os.getpid()}"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / name, copy)
    files = sorted(file for file in copy.rglob("*") if file.is_file())
    victim = files[int(rng.integers(len(files)))]
    victim = copy / name if rng.random() < 0.5 and (copy / name).is_file() else victim
    victim.write_bytes(mutate(victim.read_bytes(), rng))
    try:
        G = open_genotypes(copy / name)
        calls = G.calls(0, G.shape[1])
    except (SourceError, MemoryError, FileNotFoundError) as error:
        if copy.name not in str(error):
            raise AssertionError("the file is not named") from error
        return "refused"
    assert calls.shape == (G.shape[1], G.shape[0]) == (len(G.snps), len(G.samples))
    assert set(np.unique(calls)) <= {-1, 0, 1, 2}
    return "read"


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_genotype_files_are_read_or_refused(tmp_path: Path, name: str) -> None:
    package = PACKAGES.get(name.rpartition(".")[2])
    if package is not None:
        pytest.importorskip(package)
    (tmp_path / name).mkdir()
    FORMATS[name](tmp_path / name / name, CALLS, Snps.numbered(14), Samples.numbered(9))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.array_equal(open_genotypes(tmp_path / name / name).calls(0, 14), CALLS)
    first, count = 10**6 * seed(), case_count(30)
    cases = [(tmp_path, name, first + i) for i in range(count)]
    outcomes = run_cases(read_damaged, cases, seconds=SECONDS, memory=2**32)
    bad = [(*case[1:], outcome) for case, outcome in zip(cases, outcomes, strict=True) if outcome.how != "returned"]
    assert not bad, f"{len(bad)} of {len(cases)} cases (seed {seed()}): {bad[:5]}"
    assert "refused" in {outcome.value for outcome in outcomes}


@pytest.mark.parametrize("line", ["", "  ", "# a comment"])
@pytest.mark.parametrize("at", [0, 1, 14])
def test_lines_of_a_vcf_file_that_are_no_variants_are_refused(tmp_path: Path, line: str, at: int) -> None:
    """cyvcf2 crashes at those that are empty or comments, at the end of a file too."""
    pytest.importorskip("cyvcf2")
    path = tmp_path / "x.vcf"
    FORMATS["x.vcf"](path, CALLS, Snps.numbered(14), Samples.numbered(9))
    lines = path.read_text("utf-8").splitlines()
    begin = 1 + next(i for i, text in enumerate(lines) if text.startswith("#CHROM"))
    lines.insert(begin + at, line)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(SourceError, match=rf"x\.vcf: line {begin + at + 1}: an empty line or a comment"):
        open_genotypes(path)
