"""Pruning and clumping: by PLINK 1.9 and 2 where they are installed, by their stored lists, and by naive twins."""

import json
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from gramian.compute.bits import hide, shared_sums
from gramian.genetics import clump, prune
from gramian.genetics.bed_writer import write_bed
from gramian.genetics.pruning import Window
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed
from oracles import Array

PLINK = Path(__file__).parents[1] / "data" / "pruning_plink.json"
HAPMAP = Path(__file__).parents[3] / "shared" / "data" / "hapmap3" / "hm3.bed"
SETTINGS = [("50", 5, 0.2), ("10", 3, 0.5), ("20", 20, 0.05), ("2", 1, 0.9), ("100kb", 1, 0.3), ("5000kb", 1, 0.0)]


def texts(values: object) -> Array:
    return np.array([*map(str, values), None], dtype=object)[:-1]  # type: ignore[call-overload]


def draw_cohort(seed: int, n: int = 157, p: int = 400, missing: float = 0.01, least: float = 0.05) -> Genotypes:
    """SNPs in strong disequilibrium, copies and mirror images among them; SNPs of one kind of call; unplaced SNPs."""
    rng = np.random.default_rng(seed)
    chromosome = np.sort(rng.integers(0, 4, p))
    alleles = (rng.random((p, 2 * n)) < rng.uniform(least, 0.95, (p, 1))).astype(int)
    for j in range(1, p):
        if rng.random() < 0.8:
            like = alleles[j - rng.integers(1, min(j, 6) + 1)]
            alleles[j] = np.where(rng.random(2 * n) < rng.choice([1.0, 0.95, 0.8, 0.6]), like, alleles[j])
            alleles[j] ^= rng.random() < 0.3
    calls = alleles[:, :n] + alleles[:, n:]
    for call, count in ((0, p // 60), (1, 2), (-1, 2)):
        calls[rng.choice(p, count, replace=False)] = call
    calls[rng.random(calls.shape) < np.where(rng.random((p, 1)) < 0.03, 0.4, missing)] = -1
    place = np.concatenate([np.sort(rng.integers(1, 3_000_000, (chromosome == c).sum())) for c in range(4)])
    snps = Snps.numbered(p)
    samples = Samples.numbered(n)
    samples.father[rng.choice(n, 5, replace=False)] = "s1"
    return Genotypes.from_calls(calls, samples, Snps(texts(chromosome), snps.id, snps.cm, place, snps.a1, snps.a2))


def run_plink(program: str, bed: Path, window: str, step: int, r2: float) -> tuple[list[str], list[str]]:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    size = [window[:-2], "kb"] if window.endswith("kb") and program == "plink1.9" else [window]
    out = bed.with_suffix("")
    command = [program, "--bfile", str(out), "--indep-pairwise", *size, str(step), str(r2), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    kept, removed = (Path(f"{out}.prune.{end}").read_text().split() for end in ("in", "out"))
    return kept, removed


def naive_r2(G: Genotypes) -> list[list[Fraction]]:
    founders = [f == "0" for f in G.samples.father]
    calls = G.calls(0, G.shape[1])[:, founders].astype(int)
    found = []
    for x in calls:
        row = []
        for y in calls:
            both = (x >= 0) & (y >= 0)
            a, b = x[both], y[both]
            n, va, vb = len(a), len(a) * (a @ a) - a.sum() ** 2, len(a) * (b @ b) - b.sum() ** 2
            row.append(Fraction(int(n * (a @ b) - a.sum() * b.sum()) ** 2, int(va * vb)) if va * vb else Fraction(0))
        found.append(row)
    return found


def minor_frequency(G: Genotypes) -> list[Fraction]:
    calls = G.calls(0, G.shape[1])[:, [f == "0" for f in G.samples.father]].astype(int)
    f = [Fraction(int(row[row >= 0].sum()), 2 * int((row >= 0).sum()) or 1) for row in calls]
    return [min(value, 1 - value) for value in f]


def naive_prune(G: Genotypes, window: int | None, kb: int, step: int, r2: Fraction) -> list[bool]:
    """The order of PLINK 2 as its source has it: windows, seconds from the end, firsts backwards."""
    r, f = naive_r2(G), minor_frequency(G)
    removed = [value == 0 for value in map(max, r)]  # a SNP that varies is correlated with itself
    for name in dict.fromkeys(G.snps.chromosome):
        at = np.flatnonzero(G.snps.chromosome == name).tolist()
        if name == "0":
            continue
        entered = 0
        for start in range(0, len(at), step):
            stop = start + (window or 0)
            if window is None:
                place = G.snps.position[at]
                stop = int(np.sum(place <= place[start] + 1000 * kb))
            held = [i for i in at[start:stop] if not removed[i] or i in at[entered:]]
            for second in [i for i in reversed(held) if i in at[entered:]]:
                for first in [i for i in reversed(held) if i < second]:
                    if removed[first] or r[first][second] <= r2:
                        continue
                    if f[first] >= f[second]:
                        removed[second] = True
                        break
                    removed[first] = True
            entered = max(entered, stop)
    return removed


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("program", ["plink1.9", "plink2"])
@pytest.mark.parametrize(
    ("seed", "n", "missing", "least"), [(0, 157, 0.0, 0.05), (1, 600, 0.01, 0.002), (2, 64, 0.1, 0.05)]
)
def test_lists_equal_plinks(program: str, seed: int, n: int, missing: float, least: float, tmp_path: Path) -> None:
    if program == "plink2" and n < 60:
        pytest.skip("too few founders")
    G = draw_cohort(seed, n=n, missing=missing, least=least)
    bed = write_bed(tmp_path / "x.bed", G)
    for window, step, r2 in SETTINGS:
        kept, removed = run_plink(program, bed, window, step, r2)
        found = prune(open_bed(bed), window, step, r2, order="plink1")
        assert [list(G.snps.id[found.kept]), list(G.snps.id[found.removed])] == [kept, removed]
        assert found.unplaced == np.sum(G.snps.chromosome == "0")


def test_stored_lists_of_plink() -> None:
    stored = json.loads(PLINK.read_text("utf-8"))
    calls = np.array([[-1 if c == "9" else int(c) for c in row] for row in stored["calls"]], dtype=np.int8)
    samples, snps = Samples.numbered(calls.shape[1]), Snps.numbered(len(calls))
    samples.father[:] = stored["father"]
    place = np.array(stored["position"])
    G = Genotypes.from_calls(
        calls, samples, Snps(texts(stored["chromosome"]), snps.id, snps.cm, place, snps.a1, snps.a2)
    )
    for setting, removed in stored["removed"].items():
        window, step, r2 = setting.split()
        found = prune(G, window, int(step), float(r2), order="plink1")
        assert list(snps.id[found.removed]) == removed


@pytest.mark.usefixtures("loops")
@pytest.mark.skipif(not HAPMAP.exists(), reason="the HapMap 3 data are not here")
@pytest.mark.parametrize("program", ["plink1.9", "plink2"])
def test_lists_of_hapmap(program: str, tmp_path: Path) -> None:
    for ending in (".bed", ".bim", ".fam"):
        (tmp_path / f"hm3{ending}").symlink_to(HAPMAP.with_suffix(ending))
    G = open_bed(tmp_path / "hm3.bed")
    for window, step, r2 in (("50", 5, 0.02), ("2000kb", 1, 0.05)):
        kept, removed = run_plink(program, tmp_path / "hm3.bed", window, step, r2)
        paths = prune(G, window, step, r2, order="plink1").write(tmp_path / "ours")
        assert [path.read_text().split() for path in paths] == [kept, removed]
        assert removed
        for path in paths:
            path.unlink()


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("seed", range(4))
def test_order_of_plink2_equals_naive_twin(seed: int) -> None:
    G = draw_cohort(seed, n=70, p=110, missing=0.05 * (seed % 2))
    for window, kb, step, r2 in ((20, 0, 5, 0.2), (7, 0, 7, 0.5), (None, 200, 1, 0.1)):
        want = naive_prune(G, window, kb, step, Fraction(r2))
        found = prune(G, window or f"{kb}kb", step, r2)
        assert_array_equal(found.removed, np.array(want) & (G.snps.chromosome != "0"))


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("seed", range(3))
def test_clumps_equal_naive_twin(seed: int) -> None:
    G = draw_cohort(seed, n=80, p=90, missing=0.05)
    r, counts = naive_r2(G), G.select(samples=G.samples.father == "0").counts().by_snp
    a1 = 2 * counts[:, 0] + counts[:, 1]
    minor = np.minimum(a1, 2 * counts[:, :3].sum(axis=1) - a1)
    gone, kept = np.zeros(len(r), bool), np.zeros(len(r), bool)
    for i in np.argsort(-minor, kind="stable"):
        if not gone[i] and max(r[i]) > 0:
            kept[i] = True
            near = (G.snps.chromosome == G.snps.chromosome[i]) & (abs(G.snps.position - G.snps.position[i]) <= 300_000)
            gone |= near & ~kept & [value > Fraction(0.2) for value in r[i]]
    assert_array_equal(clump(G, 300).kept, kept & (G.snps.chromosome != "0"))


@given(st.integers(0, 2**32), st.integers(1, 70), st.integers(2, 6))
def test_shared_sums_equal_plain_sums(seed: int, n: int, p: int) -> None:
    calls = np.random.default_rng(seed).integers(-1, 3, (p, n))
    i, j = np.nonzero(np.ones((p, p)))
    packed = Genotypes.from_calls(calls).packed(0, p)
    mask = np.zeros(packed.shape[1], np.uint8)
    np.bitwise_or.at(mask, np.arange(n) // 4, (3 << 2 * (np.arange(n) % 4)).astype(np.uint8))
    found = shared_sums(hide(packed, mask), i, j)
    x, seen = np.where(calls < 0, 0, calls - 1), (calls >= 0).astype(int)
    squares = (x * x) @ seen.T
    plain = [seen @ seen.T, x @ seen.T, (x @ seen.T).T, squares, squares.T, x @ x.T]
    for sums, matrix in zip(found, plain, strict=True):
        assert_array_equal(sums, matrix[i, j])


@pytest.mark.usefixtures("loops")
def test_the_number_of_threads_and_blocks_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    G = draw_cohort(5, n=300, p=500)
    want = prune(G, 30, 5, 0.1).kept
    for name, value in (("NEW", (4, 4)), ("ROWS", 3), ("TILE", 4096), ("PLANES", 1)):
        monkeypatch.setattr(f"gramian.genetics.pruning.{name}", value)
        assert_array_equal(prune(G, 30, 5, 0.1).kept, want)


def test_bad_input_is_refused(tmp_path: Path) -> None:
    G = draw_cohort(0, n=80, p=60)
    for window in ("0", "1", "x", "kb", "-3", "2.5"):
        with pytest.raises(ValueError, match="window"):
            Window.read(window)
    for settings in ({"step": 0}, {"step": 51}, {"r2": 1.0}, {"r2": -0.1}, {"order": "plink"}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            prune(G, **settings)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="step"):
        prune(G, "500kb", 5)
    with pytest.raises(ValueError, match=r"25 of 30.*50"):
        prune(few(G))
    assert prune(few(G), least_founders=2).founders == 25
    none = Snps(G.snps.chromosome, G.snps.id, G.snps.cm, 0 * G.snps.position, G.snps.a1, G.snps.a2)
    calls = G.calls(0, G.shape[1])
    with pytest.raises(ValueError, match="no positions"):
        prune(Genotypes.from_calls(calls, snps=none), "500kb", 1)
    back = Snps(G.snps.chromosome, G.snps.id, G.snps.cm, G.snps.position[::-1].copy(), G.snps.a1, G.snps.a2)
    with pytest.raises(ValueError, match="sort"):
        prune(Genotypes.from_calls(calls, snps=back), "500kb", 1)
    for names, match in ((["1", "2"] * 30, "more than one stretch"), (["X"] * 60, "X")):
        with pytest.raises(ValueError, match=match):
            prune(Genotypes.from_calls(calls, snps=Snps(texts(names), *list(vars(G.snps).values())[1:])))
    same = texts(["rs1"] * 60)
    twice = Snps(G.snps.chromosome, same, G.snps.cm, G.snps.position, G.snps.a1, G.snps.a2)
    with pytest.raises(ValueError, match="rs1"):
        prune(Genotypes.from_calls(calls, snps=twice)).write(tmp_path / "x")
    with pytest.raises(ValueError, match="importance"):
        clump(G, importance=[1.0])


def few(G: Genotypes) -> Genotypes:
    """The 5 who have a parent, and 25 founders."""
    founders = np.flatnonzero(G.samples.father == "0")[:25]
    return G.select(samples=np.sort(np.concatenate([founders, np.flatnonzero(G.samples.father != "0")])))
