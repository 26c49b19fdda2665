"""F_ST between groups: by naive twins, PLINK 2 and smartpca."""

import csv
import json
import math
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gramian.genetics.fst import Terms, fst, jackknife_error
from gramian.sources.errors import SourceError
from gramian.sources.plink import Genotypes, Snps, open_bed
from oracles import Array

PLINK = json.loads((Path(__file__).parents[1] / "data" / "fst_plink2.json").read_text("utf-8"))
HAPMAP = Path(__file__).parents[3] / "shared" / "data" / "hapmap3"
needs_hapmap = pytest.mark.skipif(not (HAPMAP / "hm3.bed").exists(), reason="the HapMap 3 data are not here")
LOG = re.compile(r"^\s+(\w+)\s+(\w+)\s+(-?[\d.]+)\s+([\d.]+)\s+(-?[\d.]+)\s+(\d+)$", re.MULTILINE)


def plink_calls() -> Array:
    return np.array([[-1 if c == "9" else int(c) for c in row] for row in PLINK["calls"]], dtype=np.int8)


def drawn(seed: int, p: int = 40, sizes: tuple[int, ...] = (5, 9, 1, 12), missing: float = 0.2) -> tuple[Array, Array]:
    """Genotypes of groups with different frequencies, and their labels, shuffled."""
    rng = np.random.default_rng(seed)
    labels = np.repeat([f"g{k}" for k in range(len(sizes))], sizes)
    calls = rng.binomial(2, np.repeat(rng.uniform(0, 1, (p, len(sizes))) ** 2, sizes, axis=1)).astype(np.int8)
    calls[rng.random(calls.shape) < missing] = -1
    order = rng.permutation(len(labels))
    return calls[:, order], labels[order]


def naive_hudson(groups: list[Array]) -> tuple[float, float]:
    """Mean difference between alleles of two people, within groups and between them, by looking at all pairs."""
    alleles = [[a for call in g if call >= 0 for a in ([1] * call + [0] * (2 - call))] for g in groups]
    if not all(alleles):
        return 0.0, 0.0
    within = [np.mean([x != y for i, x in enumerate(a) for j, y in enumerate(a) if i != j]) for a in alleles]
    between = np.mean([x != y for x in alleles[0] for y in alleles[1]])
    return float(between - np.mean(within)), float(between)


def naive_weir_cockerham(groups: list[Array]) -> tuple[float, float]:
    """a and a + b + c for any number r of groups, as the paper writes them."""
    groups = [g[g >= 0].astype(float) for g in groups]
    n = [len(g) for g in groups]
    r, mean = len(groups), sum(n) / len(groups)
    if min(n) == 0 or mean <= 1:
        return 0.0, 0.0
    p = [g.mean() / 2 for g in groups]
    h = [(g == 1).mean() for g in groups]
    n_c = (r * mean - sum(x**2 for x in n) / (r * mean)) / (r - 1)
    p_bar = sum(x * y for x, y in zip(n, p, strict=True)) / (r * mean)
    s2 = sum(x * (y - p_bar) ** 2 for x, y in zip(n, p, strict=True)) / ((r - 1) * mean)
    h_bar = sum(x * y for x, y in zip(n, h, strict=True)) / (r * mean)
    inner = p_bar * (1 - p_bar) - (r - 1) / r * s2
    a = mean / n_c * (s2 - (inner - h_bar / 4) / (mean - 1))
    b = mean / (mean - 1) * (inner - (2 * mean - 1) / (4 * mean) * h_bar)
    return a, a + b + h_bar / 2


NAIVE = {"hudson": naive_hudson, "weir-cockerham": naive_weir_cockerham}


def naive(calls: Array, labels: Array, first: str, second: str, method: str) -> float:
    terms = [NAIVE[method]([row[labels == first], row[labels == second]]) for row in calls]
    above, below = (math.fsum(column) for column in zip(*terms, strict=True))
    return above / below if below else math.nan


@pytest.mark.parametrize("method", NAIVE)
@given(seed=st.integers(0, 10**6))
def test_naive_twins(method: str, seed: int) -> None:
    calls, labels = drawn(seed)
    found = fst(Genotypes.from_calls(calls), labels, method=method, blocks=3)
    assert found.groups == ("g0", "g1", "g2", "g3")
    for i, first in enumerate(found.groups):
        for j, second in enumerate(found.groups):
            if i != j:
                assert_allclose(found.matrix[i, j], naive(calls, labels, first, second, method), atol=1e-12)
    assert_array_equal(found.sizes, [5, 9, 1, 12])
    called = np.array([(calls[:, labels == g] >= 0).any(axis=1) for g in found.groups]).astype(int)
    if method == "hudson":
        assert_array_equal(found.n_snps, called @ called.T)


@pytest.mark.parametrize("method", NAIVE)
def test_plink2(method: str) -> None:
    found = fst(Genotypes.from_calls(plink_calls()), PLINK["labels"], method=method).table()
    assert [list(pair) for pair in zip(found["group1"], found["group2"], strict=True)] == PLINK["pairs"]
    assert_allclose(found["fst"], PLINK[method], rtol=5e-6)  # six digits are printed


@pytest.mark.parametrize("sizes", [(10, 10, 10, 10), (4, 17, 1, 18)])
def test_the_standard_error_is_that_of_leaving_blocks_out(sizes: tuple[int, ...]) -> None:
    calls = plink_calls()[: sum(sizes)]
    labels = np.array(PLINK["labels"])
    block = np.repeat(np.arange(4), sizes)
    found = fst(Genotypes.from_calls(calls), labels, blocks=block)
    theta = naive(calls, labels, "east", "west", "hudson")
    h = len(calls) / np.array(sizes)
    without = np.array([naive(calls[block != j], labels, "east", "west", "hudson") for j in range(4)])
    tau = h * theta - (h - 1) * without
    assert_allclose(found.standard_errors[0, 2], np.sqrt(np.mean((tau - np.sum(tau / h)) ** 2 / (h - 1))), rtol=1e-9)


def test_the_standard_error_is_how_much_estimates_vary() -> None:
    values, errors = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.1, 0.9, (400, 1))
        f = np.repeat(rng.beta(19 * p, 19 * (1 - p), (400, 2)), 20, axis=1)
        found = fst(Genotypes.from_calls(rng.binomial(2, f)), ["a"] * 20 + ["b"] * 20, blocks=40)
        values.append(found.matrix[0, 1])
        errors.append(found.standard_errors[0, 1])
    assert np.mean(values) == pytest.approx(0.05, abs=4 * np.std(values) / np.sqrt(60))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=4 / np.sqrt(2 * 60))


@needs_hapmap
def test_smartpca_and_its_jackknife() -> None:
    """smartpca prints Hudson's estimator (Reich et al. 2009), three decimals, and the weighted jackknife over 5 cM."""
    G = open_bed(HAPMAP / "hm3.bed")
    with (HAPMAP / "labels.tsv").open(encoding="utf-8") as file:
        group = {(row["FID"], row["IID"]): row["population"] for row in csv.DictReader(file, delimiter="\t")}
    log = (HAPMAP / "reference" / "sm.log").read_text("utf-8")
    rows = LOG.findall(log.split("## Fst statistics")[1].split("## end of Fst")[0])
    found = fst(
        G, [group[key] for key in zip(G.samples.fid, G.samples.iid, strict=True)], blocks=five_megabases(G.snps)
    )
    table = found.table()
    assert found.n_blocks == int(re.findall(r"number of blocks for block jackknife: (\d+)", log)[0]) == 520
    assert [(row[0], row[1]) for row in rows] == list(zip(table["group1"], table["group2"], strict=True))
    assert len(rows) == 55
    assert_allclose(table["fst"], [float(row[2]) for row in rows], atol=0.5e-3)
    assert_allclose(table["z"], [float(row[4]) for row in rows], rtol=1e-4)
    millionths = [line.split()[1:] for line in log.split("std. err.  * 1000000:")[1].splitlines()[2:13]]
    assert_allclose(1e6 * found.standard_errors, np.array(millionths, dtype=float), atol=0.51)


def five_megabases(snps: Snps) -> Array:
    """Blocks that begin where a chromosome does, or 5 Mb after the block before."""
    block, begin, chromosome, out = -1, 0, "", []
    for name, place in zip(snps.chromosome, snps.position, strict=True):
        if name != chromosome or place - begin >= 5_000_000:
            block, begin, chromosome = block + 1, place, name
        out.append(block)
    return np.array(out)


@given(seed=st.integers(0, 10**6), method=st.sampled_from(sorted(NAIVE)))
def test_alleles_and_samples_may_change_places(seed: int, method: str) -> None:
    calls, labels = drawn(seed)
    plain = fst(Genotypes.from_calls(calls), labels, method=method, blocks=5)
    flipped = np.where(calls < 0, calls, 2 - calls)[:, ::-1]
    other = fst(Genotypes.from_calls(flipped), labels[::-1], method=method, blocks=5)
    assert_allclose(other.matrix, plain.matrix, atol=1e-12)
    assert_allclose(other.standard_errors, plain.standard_errors, rtol=1e-9, atol=1e-12)
    assert_array_equal(plain.matrix, plain.matrix.T)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_tiles_do_not_matter(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    calls, labels = drawn(11, p=300)
    plain = fst(Genotypes.from_calls(calls), labels, blocks=7)
    monkeypatch.setattr("gramian.compute.threads.n_threads", lambda: threads)
    monkeypatch.setattr(import_module("gramian.genetics.fst"), "BYTES", 40)  # by name it is the function
    other = fst(Genotypes.from_calls(calls), labels, blocks=7)
    assert_allclose(other.matrix, plain.matrix, atol=1e-13)
    assert_allclose(other.standard_errors, plain.standard_errors, rtol=1e-9)
    assert_array_equal(other.n_snps, plain.n_snps)


def test_samples_without_label_and_views_are_left_out() -> None:
    calls, labels = drawn(4)
    some = np.array(
        [None if i % 5 == 0 else "" if i % 7 == 0 else label for i, label in enumerate(labels)], dtype=object
    )
    some[some == "g3"] = [np.nan if i % 2 else pd.NA for i in range(np.count_nonzero(some == "g3"))]
    kept = np.array([str(label) in ("g0", "g1", "g2") for label in some])
    G = Genotypes.from_calls(calls)
    found, view = fst(G, some), fst(G.select(samples=kept), some[kept])
    only = fst(Genotypes.from_calls(calls[:, kept]), some[kept])
    assert found.groups == view.groups == ("g0", "g1", "g2")
    for each in (view, only):
        assert_array_equal(each.matrix, found.matrix)


def test_sex_chromosomes_are_left_out_and_counted() -> None:
    calls, labels = drawn(5)
    snps = Snps.numbered(40)
    snps.chromosome[30:] = ["X", "Y", "XY", "MT", "0"] * 2
    found = fst(Genotypes.from_calls(calls, None, snps), labels, blocks=4)
    assert found.dropped == 10
    assert_allclose(found.matrix, fst(Genotypes.from_calls(calls[:30]), labels, blocks=3).matrix, atol=1e-13)
    everything = fst(Genotypes.from_calls(calls, None, snps), labels, chromosomes="all")
    assert_allclose(everything.matrix, fst(Genotypes.from_calls(calls), labels).matrix, atol=1e-13)
    assert everything.dropped == 0
    snps.chromosome[:] = "X"
    with pytest.raises(ValueError, match="SNP"):
        fst(Genotypes.from_calls(calls, None, snps), labels)


def test_what_is_shown() -> None:
    found = fst(Genotypes.from_calls(plink_calls()), PLINK["labels"])
    assert "F_ST (hudson), mean 0.1017 over 3 pairs of 3 groups" in repr(found)
    assert "east   north    0.09647 ± " in repr(found)
    assert found.mean == pytest.approx(np.mean(PLINK["hudson"]), rel=1e-5)
    constant = fst(Genotypes.from_calls(np.zeros((9, 4), np.int8)), ["a", "a", "b", "b"])
    assert np.isnan(constant.matrix[0, 1])
    assert np.isnan(constant.standard_errors[0, 1])


def test_the_table_and_what_is_shown_of_many_pairs() -> None:
    calls, labels = drawn(6, p=60, sizes=(4, 5, 6, 7, 8, 9), missing=0.3)
    five, six = (
        fst(Genotypes.from_calls(calls), np.where(labels == "g5", last, labels)) for last in ("g4", "a long name")
    )
    table = six.table()
    a, b = (np.searchsorted(six.groups, table[name]) for name in ("group1", "group2"))
    assert len(a) == 15
    assert (a < b).all()
    assert_array_equal(table["fst"], six.matrix[a, b])
    assert_array_equal(table["standard_error"], six.standard_errors[a, b])
    assert_array_equal(table["n_snps"], six.n_snps[a, b])
    assert_allclose(table["z"], six.matrix[a, b] / six.standard_errors[a, b])
    assert six.mean == pytest.approx(np.mean(table["fst"]))
    lines = repr(six).splitlines()
    assert len(lines) == 12
    assert lines[1] == f"  a long name  g0           {table['fst'][0]:9.5f} ± {table['standard_error'][0]:.5f}"
    assert lines[-1] == "  ... and 5 more"
    assert len(repr(five).splitlines()) == 11
    assert repr(five).splitlines()[1].startswith("  g0     g1    ")


@pytest.mark.parametrize(("asked", "made"), [(2, 2), (4, 4), (100, 25), (None, 25)])
def test_as_many_blocks_of_as_many_snps(asked: int | None, made: int) -> None:
    calls, labels = drawn(7, p=25)
    G, block = Genotypes.from_calls(calls), np.arange(25) * made // 25
    found = fst(G, labels) if asked is None else fst(G, labels, blocks=asked)
    other = fst(G, labels, blocks=10 * block + 3)
    assert found.n_blocks == other.n_blocks == made
    assert_array_equal(found.standard_errors, other.standard_errors)
    assert_array_equal(found.matrix, other.matrix)


def test_blocks_by_default() -> None:
    calls, labels = drawn(8, p=250)
    assert fst(Genotypes.from_calls(calls), labels).n_blocks == 100


def test_snps_that_count_where_few_have_calls() -> None:
    calls = np.array([[0, 2, 1, 1], [0, -1, 2, -1], [-1, -1, 1, 2], [0, 1, -1, 2], [2, -1, 0, 1]], np.int8)
    G, labels = Genotypes.from_calls(calls), ["a", "a", "b", "b"]
    assert fst(G, labels).n_snps[0, 1] == 4
    found = fst(G, labels, method="weir-cockerham")  # which needs three people
    assert found.n_snps[0, 1] == 3
    assert_allclose(found.matrix[0, 1], naive(calls, np.array(labels), "a", "b", "weir-cockerham"))


def test_numbers_as_labels() -> None:
    calls = np.random.default_rng(9).integers(0, 3, (12, 62)).astype(np.int8)
    G = Genotypes.from_calls(calls)
    with pytest.raises(SourceError, match="31 different numbers"):
        fst(G, np.repeat(np.arange(31) / 2, 2))
    assert len(fst(G, np.arange(62) % 30).groups) == 30
    assert len(fst(G, [f"n{i % 31}" for i in range(62)]).groups) == 31
    with pytest.raises(ValueError, match="name 0: none"):
        fst(G, [None] * 62)


def test_blocks_without_snps_do_not_count_in_the_jackknife() -> None:
    N, D, m = np.array([1.0, 2.0, 5.0]), np.array([2.0, 5.0, 8.0]), np.array([10.0, 30.0, 20.0])
    for some in (slice(2), slice(3)):
        plain = jackknife_error(Terms(N[some], D[some], m[some]))
        assert np.isfinite(plain[1])
        empty = jackknife_error(Terms(*(np.append(part[some], 0.0) for part in (N, D, m))))
        assert_allclose(empty, plain, rtol=1e-14)
    theta, error = jackknife_error(Terms(np.array([1.0, 0.0]), np.array([2.0, 0.0]), np.array([5.0, 0.0])))
    assert theta == 0.5
    assert np.isnan(error)


def test_refused() -> None:
    G = Genotypes.from_calls(plink_calls())
    with pytest.raises(ValueError, match=r"47 labels.*48 samples"):
        fst(G, PLINK["labels"][:-1])
    with pytest.raises(ValueError, match="1: one"):
        fst(G, ["one"] * 48)
    with pytest.raises(ValueError, match="method"):
        fst(G, PLINK["labels"], method="nei")
    with pytest.raises(ValueError, match="chromosomes"):
        fst(G, PLINK["labels"], chromosomes="X")
    with pytest.raises(ValueError, match=r"blocks=1.*least 2"):
        fst(G, PLINK["labels"], blocks=1)
    with pytest.raises(ValueError, match="120 SNPs"):
        fst(G, PLINK["labels"], blocks=[1, 2])
    with pytest.raises(ValueError, match="one stretch"):
        fst(G, PLINK["labels"], blocks=np.arange(120) % 2)
