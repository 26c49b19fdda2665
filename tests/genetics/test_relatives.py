"""Kinship, the choice of unrelated people and relationship matrices: by PLINK 2, and by counting pair by pair."""

import json
import shutil
import subprocess
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from threadpoolctl import threadpool_limits

import gramian
from gramian.genetics import clump, king, pc_relate, prune, read_grm, unrelated, write_bed, write_grm, write_king_files
from gramian.genetics.filters import Filters
from gramian.genetics.relatives import LIMITS
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed
from oracles import Array

STORED = Path(__file__).parents[1] / "data" / "king_plink2.json"
HAPMAP = Path(__file__).parents[3] / "shared" / "data" / "hapmap3" / "hm3.bed"
CUTOFFS = (0.499999, 0.177, 0.0884, 0.02, 0.0)
needs_plink = pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")


def draw_families(seed: int, n: int = 60, p: int = 2000, missing: float = 0.02) -> Genotypes:
    """A fifth of the people are founders of a family, others their children and grandchildren; one has a twin."""
    rng = np.random.default_rng(seed)
    f = rng.uniform(0.2, 0.8, (p, 1))
    haplotypes = (rng.random((p, n, 2)) < f[:, :, None]).astype(int)
    for child in range(n // 3, n):
        if rng.random() < 0.6:
            for side in (0, 1):
                parent = rng.integers(0, child)
                pick = rng.integers(0, 2, p)
                haplotypes[:, child, side] = haplotypes[np.arange(p), parent, pick]
    haplotypes[:, n - 1] = haplotypes[:, n // 2]
    calls = haplotypes.sum(axis=2)
    calls[rng.random(calls.shape) < missing] = -1
    return Genotypes.from_calls(calls)


def naive_counts(calls: Array, i: int, j: int) -> list[int]:
    a, b = calls[:, i], calls[:, j]
    both = (a >= 0) & (b >= 0)
    a, b = a[both], b[both]
    found = [both, (a == 1) & (b == 1), abs(a - b) == 2, (a == 1) & (b != 1), (a != 1) & (b == 1)]
    return [int(np.sum(part)) for part in found]


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("budget", [2**30, 2**10])
def test_counts_and_kinship_pair_by_pair(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gramian.genetics.relatives.memory_budget", lambda: budget)
    if budget < 2**20:  # several blocks of SNPs, and of people
        monkeypatch.setattr("gramian.genetics.relatives.TURNED", 100)
        monkeypatch.setattr("gramian.genetics.relatives.TILE", 7)
    G = draw_families(0, n=70, p=300)
    found = king(G)
    calls = G.calls(0, 300)
    columns = (found.n_snps, found.hethet, found.ibs0, found.first_het, found.second_het)
    pairs = [(i, j) for i in range(70) for j in range(i)]
    assert list(zip(found.first, found.second, strict=True)) == pairs
    want = np.array([naive_counts(calls, i, j) for i, j in pairs])
    assert_array_equal(np.stack(columns, axis=1), want)
    both, none, one, other = want.T[1:]
    assert_allclose(found.kinship, 0.5 - (4 * none + one + other) / (4 * (both + np.minimum(one, other))))


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("missing", [0.0, 0.02, 0.3])
@pytest.mark.parametrize("least", [0.3, 0.0884, 0.0, -0.4])
def test_pairs_that_may_be_related_are_all_found(missing: float, least: float) -> None:
    G = draw_families(1, p=400, missing=missing)
    whole, some = king(G), king(G, least=least)
    kept = whole.kinship >= least
    for name in ("first", "second", "n_snps", "hethet", "ibs0", "first_het", "second_het"):
        assert_array_equal(getattr(some, name), getattr(whole, name)[kept])


@pytest.mark.parametrize("where", ["torch", "pretended", "cuda"])
@pytest.mark.parametrize("least", [None, 0.1])
@pytest.mark.parametrize("missing", [0.0, 0.05])
def test_counts_on_a_device(where: str, least: float | None, missing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if where == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    from pretend import pretend_gpu

    monkeypatch.setattr("gramian.genetics.relatives.ROWS", 16)  # several blocks of rows
    G = draw_families(3, n=61, p=333, missing=missing)
    whole = king(G, least=least)
    some = np.arange(2, 61, 2)
    part = king(G.select(samples=some, snps=np.arange(0, 333, 3)), least=least)
    for free in (2**30, 2**14):  # and several stripes, and chunks of SNPs
        with monkeypatch.context() as patch:
            if where != "cuda":
                patch.setattr("gramian.genetics.relatives.free_bytes", lambda device, free=free: free)
            with pretend_gpu() if where == "pretended" else nullcontext():
                device = {"torch": torch.device("cpu")}.get(where, "cuda")
                found = king(G, least=least, device=device)
                view = king(G.select(samples=some, snps=np.arange(0, 333, 3)), least=least, device=device)
        for here, there in ((found, whole), (view, part)):
            assert here.table().keys() == there.table().keys()
            for name in ("first", "second", "n_snps", "hethet", "ibs0", "first_het", "second_het", "kinship"):
                assert_array_equal(getattr(here, name), getattr(there, name))


def test_workers_find_the_same(tmp_path: Path) -> None:
    G = open_bed(write_bed(tmp_path / "x.bed", draw_families(4, n=70, p=300)))
    G.snps.chromosome[150:] = "2"
    G.samples.father[60:] = "s1"
    some = G.select(samples=np.arange(1, 70, 2), snps=np.arange(0, 300, 2))

    def work() -> list[Array]:
        pairs = [king(G), king(G, least=0.1), king(some, least=0.02)]
        columns = [getattr(each, name) for each in pairs for name in ("first", "second", "n_snps", "ibs0", "kinship")]
        return [*columns, prune(G, 30, 5, 0.05).kept, prune(G, 30, 5, 0.05, order="plink1").kept, clump(G).kept]

    here = work()
    with gramian.cluster("processes[2]"):
        there = work()
    for one, other in zip(here, there, strict=True):
        assert_array_equal(one, other)
    assert 50 < here[-2].sum() < 300


def test_matrices_have_the_same_bits_by_workers_and_whatever_the_memory(tmp_path: Path) -> None:
    """Of 600 people, three squares and the rest: in one stripe or more, by threads, processes or none."""
    distributed = pytest.importorskip("distributed")
    rng = np.random.default_rng(8)
    calls = rng.binomial(2, rng.uniform(0.1, 0.9, (300, 1)), (300, 600)).astype(np.int8)
    calls[rng.random(calls.shape) < 0.02] = -1
    G = open_bed(write_bed(tmp_path / "x.bed", Genotypes.from_calls(calls)))
    U = np.linalg.qr(rng.normal(size=(600, 2)))[0]

    def grm(name: str) -> list[bytes]:
        return [path.read_bytes() for path in write_grm(G, tmp_path / name)[:2]]

    training, done = np.arange(600) % 3 > 0, []
    here, phi = grm("here"), pc_relate(G, U, training=training, progress=lambda *told: done.append(told[0] / told[1]))
    assert done == sorted(done)
    assert done[-1] == 1
    with config_context(working_memory=7):  # of which a stripe of 256 people takes 6
        assert grm("stripes") == here
    with threadpool_limits(1):
        assert grm("thread") == here
        assert_array_equal(pc_relate(G, U, training=training), phi)
    with gramian.cluster("processes[2]"):
        assert grm("processes") == here
        assert_array_equal(pc_relate(G, U, training=training), phi)
    local = {"processes": False, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ports in use
        workers = distributed.LocalCluster(**local)
        with workers, distributed.Client(workers, set_as_default=False) as client, gramian.cluster(client):
            assert grm("dask") == here
            assert_array_equal(pc_relate(G, U, training=training), phi)


@pytest.mark.usefixtures("loops")
def test_some_people_and_snps_of_a_file() -> None:
    G = draw_families(2, n=50, p=200)
    rows, columns = np.arange(3, 50, 3), np.arange(0, 200, 2)
    view = G.select(samples=rows, snps=columns)
    copy = Genotypes.from_calls(G.calls(0, 200)[np.ix_(columns, rows)])
    assert_array_equal(king(view).kinship, king(copy).kinship)


def test_stored_table_lists_and_matrix_of_plink(tmp_path: Path) -> None:
    stored = json.loads(STORED.read_text("utf-8"))
    calls = np.array([[-1 if c == "9" else int(c) for c in row] for row in stored["calls"]], dtype=np.int8)
    G = Genotypes.from_calls(calls)
    found = king(G)
    (path,) = write_king_files(found, tmp_path / "x")
    assert path.read_text().splitlines() == stored["table"]
    for cutoff, removed in stored["removed"].items():
        assert list(G.samples.iid[~unrelated(found, float(cutoff))]) == removed
    write_grm(G, tmp_path / "x")
    lower = np.tril_indices(len(G.samples))
    read = read_grm(tmp_path / "x")
    assert_array_equal(read.counts[lower], stored["counts"])
    assert_allclose(read.matrix[lower], stored["matrix"], atol=1e-6)


@pytest.mark.usefixtures("loops")
@needs_plink
@pytest.mark.parametrize("seed", range(2))
def test_plinks_own_run(seed: int, tmp_path: Path) -> None:
    G = draw_families(seed, n=90, p=1500, missing=0.02 * seed)
    bed = write_bed(tmp_path / "x.bed", G)
    command = ["plink2", "--bfile", "x", "--out", "x"]
    subprocess.run([*command, "--make-king-table"], cwd=tmp_path, check=True, capture_output=True)
    found = king(open_bed(bed))
    write_king_files(found, tmp_path / "ours")
    assert (tmp_path / "ours.kin0").read_bytes() == (tmp_path / "x.kin0").read_bytes()
    for cutoff in CUTOFFS:
        subprocess.run([*command, "--king-cutoff", str(cutoff)], cwd=tmp_path, check=True, capture_output=True)
        write_king_files(found, tmp_path / "ours", unrelated(found, cutoff), overwrite=True)
        for name in ("king.cutoff.in.id", "king.cutoff.out.id"):
            assert (tmp_path / f"ours.{name}").read_text() == (tmp_path / f"x.{name}").read_text()


@pytest.mark.usefixtures("loops")
@needs_plink
@pytest.mark.skipif(not HAPMAP.exists(), reason="the HapMap 3 data are not here")
def test_hapmap(tmp_path: Path) -> None:
    whole = open_bed(HAPMAP)
    command = ["plink2", "--bfile", str(HAPMAP.with_suffix("")), "--out", "x"]
    # PLINK 2.00a3.5 takes rare SNPs another way, in which 36 pairs differ from ours; with --maf 0.05 none does
    subprocess.run([*command, "--make-king-table", "--maf", "0.05"], cwd=tmp_path, check=True, capture_output=True)
    write_king_files(king(Filters(maf=0.05).apply(whole).source), tmp_path / "ours")
    assert (tmp_path / "ours.kin0").read_bytes() == (tmp_path / "x.kin0").read_bytes()
    found = king(whole, least=0.0442)
    assert found.degrees() == {"duplicate": 0, "first": 47, "second": 60, "third": 95}
    for cutoff in (0.0884, 0.0442):
        subprocess.run([*command, "--king-cutoff", str(cutoff)], cwd=tmp_path, check=True, capture_output=True)
        out = (tmp_path / "x.king.cutoff.out.id").read_text().split()[3::2]
        assert list(whole.samples.iid[~unrelated(found, cutoff)]) == out


def test_degrees_of_a_family() -> None:
    G = draw_families(3, n=40, p=4000, missing=0.0)
    found = king(G)
    twins = (found.first == 39) & (found.second == 20)
    assert found.kinship[twins] == 0.5
    counts = [int(np.sum(found.kinship > limit)) for limit in LIMITS]
    assert list(np.cumsum(list(found.degrees().values()))) == counts
    assert found.degrees()["duplicate"] == 1
    assert "third" not in king(G, least=0.0884).degrees()


def test_matrix_of_founders_frequencies(tmp_path: Path) -> None:
    G = draw_families(4, n=30, p=120)
    calls = G.calls(0, 120).copy()
    calls[0], calls[1] = 0, -1  # one that does not vary, one without calls
    samples = Samples.numbered(30)
    samples.mother[[4, 9]] = "s1"
    write_grm(Genotypes.from_calls(calls, samples), tmp_path / "x")
    seen = calls >= 0
    founders = samples.mother == "0"
    f = np.sum(calls * seen, axis=1, where=founders) / np.maximum(1, 2 * np.sum(seen, axis=1, where=founders))
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.nan_to_num((calls - 2 * f[:, None]) / np.sqrt(2 * f * (1 - f))[:, None], posinf=0, neginf=0) * seen
    both = seen.T.astype(float) @ seen
    read = read_grm(tmp_path / "x")
    assert_array_equal(read.counts, both)
    assert_allclose(read.matrix, z.T @ z / both, atol=1e-6)
    assert read.samples[:, 1].tolist() == samples.iid.tolist()


def test_bad_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    G = draw_families(5, n=10, p=50)
    snps = Snps.numbered(50)
    snps.chromosome[7] = "X"
    on_x = Genotypes.from_calls(G.calls(0, 50), snps=snps)
    for function in (lambda: king(on_x), lambda: write_grm(on_x, tmp_path / "x")):
        with pytest.raises(ValueError, match="X"):
            function()
    with pytest.raises(ValueError, match="least"):
        king(G, least=0.7)
    with pytest.raises(ValueError, match="cutoff"):
        unrelated(king(G, least=0.2), 0.1)
    with pytest.raises(ValueError, match="varies"):
        write_grm(Genotypes.from_calls(np.zeros((5, 4), int)), tmp_path / "x")
    children = Samples.numbered(10)
    children.father[:] = "s1"
    with pytest.raises(ValueError, match="founder"):
        write_grm(Genotypes.from_calls(G.calls(0, 50), children), tmp_path / "x")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("gramian.genetics.relatives.available_memory", lambda: 100)
    with pytest.raises(MemoryError, match="least"):
        king(G)
    write_grm(G, tmp_path / "y")
    (tmp_path / "y.grm.bin").write_bytes(b"1234")
    with pytest.raises(ValueError, match="4 bytes"):
        read_grm(tmp_path / "y")
    (tmp_path / "y.grm.id").write_text("a\n")
    with pytest.raises(ValueError, match="line 1"):
        read_grm(tmp_path / "y")
