"""Ridge regression over the genome against the same steps by scikit-learn, and the files of regenie."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from gramian.genetics import whole_genome_ridge, write_loco
from gramian.genetics.whole_genome import SHARES
from gramian.inputs.checks import check_seed
from gramian.sources.plink import Genotypes, Samples, Snps
from oracles import Array

CHROMOSOMES = np.array(["1"] * 25 + ["2"] * 12 + ["7"] * 8, dtype=object)


def draw_cohort(seed: int = 0, n: int = 120, missing: float = 0.03) -> tuple[Genotypes, Array, Array]:
    """Genotypes on three chromosomes, two traits, of which one is partly known, and a covariate."""
    rng = np.random.default_rng(seed)
    p = len(CHROMOSOMES)
    calls = rng.binomial(2, rng.uniform(0.2, 0.5, (p, 1)), (p, n))
    effects = rng.normal(size=(p, 2)) * (np.arange(p) < 25)[:, None]  # chromosome 1 alone matters
    C = rng.normal(size=(n, 1))
    Y = calls.T @ effects + 2 * rng.normal(size=(n, 2)) + 3 * C + 5
    Y[rng.random(n) < 0.1, 1] = np.nan
    calls[rng.random(calls.shape) < missing] = -1
    ids = np.array([f"rs{j}" for j in range(p)], dtype=object)
    alleles = np.array(["A"] * p, dtype=object), np.array(["G"] * p, dtype=object)
    numbered = Snps.numbered(p)
    snps = Snps(CHROMOSOMES, ids, numbered.cm, np.arange(p) + 1, *alleles)
    return Genotypes.from_calls(calls, snps=snps), Y, C


def naive(G: Genotypes, y: Array, C: Array, blocks: list[range], parts: list[Array]) -> dict[str, Any]:
    """Both levels, one regression after the other."""
    n, p = G.shape
    calls = G.calls(0, p).T.astype(float)
    calls[calls < 0] = np.nan
    Z = np.nan_to_num(calls - np.nanmean(calls, axis=0))
    Q = np.linalg.qr(np.column_stack([np.ones(n), C]))[0]
    Z -= Q @ Q.T @ Z
    Z /= np.sqrt((Z**2).sum(axis=0) / (n - 2))
    known = np.isfinite(y)
    t = np.where(known, y - y[known].mean(), 0.0)
    t = np.where(known, t - Q @ Q.T @ t, 0.0)
    t /= np.sqrt((t**2).sum() / (known.sum() - 2))
    others = [np.setdiff1d(np.arange(n), part) for part in parts]

    def fold_by_fold(X: Array, alpha: float) -> Array:
        out = np.empty(n)
        for part, rest in zip(parts, others, strict=True):
            out[part] = Ridge(alpha, fit_intercept=False).fit(X[rest], t[rest]).predict(X[part])
        return out

    W = np.column_stack([fold_by_fold(Z[:, b], p * (1 - h) / h) for b in blocks for h in SHARES])
    W = (W - W.mean(axis=0)) / W.std(axis=0)
    k = W.shape[1]
    errors = [np.mean((t - fold_by_fold(W, k * (1 - h) / h))[known] ** 2) for h in SHARES]
    best = SHARES[int(np.argmin(errors))]
    column = np.repeat([CHROMOSOMES[b[0]] for b in blocks], len(SHARES))
    without: dict[str, Array] = {name: np.empty(n) for name in ("1", "2", "7")}
    for part, rest in zip(parts, others, strict=True):
        beta = Ridge(k * (1 - best) / best, fit_intercept=False).fit(W[rest], t[rest]).coef_
        for name in without:
            without[name][part] = W[part][:, column != name] @ beta[column != name]
    return {"errors": errors, "share": best, "whole": fold_by_fold(W, k * (1 - best) / best), "without": without}


def test_both_levels_one_regression_after_the_other() -> None:
    G, Y, C = draw_cohort()
    found = whole_genome_ridge(G, Y, C, block=10, folds=4, random_state=3)
    order = np.random.default_rng(check_seed(3)).permutation(120)
    parts = [np.sort(part) for part in np.array_split(order, 4)]
    blocks = [range(8), range(8, 16), range(16, 25), range(25, 31), range(31, 37), range(37, 45)]
    assert found.blocks == len(blocks)
    for j in range(2):
        want = naive(G, Y[:, j], C, blocks, parts)
        assert_allclose(found.errors[j], want["errors"], rtol=1e-9)
        assert found.shares[j] == want["share"]
        assert_allclose(found.whole[:, j], want["whole"], atol=1e-9)
        for name, values in want["without"].items():
            assert_allclose(found.left_out[name][:, j], values, atol=1e-9)


def test_a_chromosome_that_matters_takes_the_prediction_with_it() -> None:
    G, Y, C = draw_cohort(1, n=600)
    found = whole_genome_ridge(G, Y[:, 0], C, block=10, random_state=0)
    assert found.r2[0] > 0.5
    spread = {name: float(np.var(values)) for name, values in found.left_out.items()}
    assert spread["1"] < 0.1 * spread["2"]
    assert spread["2"] == pytest.approx(spread["7"], rel=0.1)
    permuted = whole_genome_ridge(G, np.random.default_rng(0).permutation(Y[:, 0]), block=10, random_state=0)
    assert permuted.r2[0] < 0.05


def test_files_of_regenie(tmp_path: Path) -> None:
    G, Y, C = draw_cohort(2)
    people = Samples.numbered(120)
    people.fid[:] = [f"f{i}" for i in range(120)]
    G = Genotypes.from_calls(G.calls(0, 45), samples=people, snps=G.snps)
    found = whole_genome_ridge(G, Y, C, traits=["height", "body mass"], block=10, random_state=0)
    *files, listed = write_loco(found, tmp_path / "x")
    assert [file.name for file in files] == ["x_1.loco", "x_2.loco"]
    assert [line.split() for line in listed.read_text().splitlines()] == [
        ["height", str(files[0])],
        ["body_mass", str(files[1])],
    ]
    rows = [line.split() for line in files[1].read_text().splitlines()]
    assert rows[0] == ["FID_IID", *(f"f{i}_{name}" for i, name in enumerate(people.iid))]
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(1, 24)]
    absent = ~np.isfinite(Y[:, 1])
    for row, want in ((rows[1], found.left_out["1"]), (rows[2], found.left_out["2"]), (rows[23], found.whole)):
        cells = np.array(row[1:])
        assert_array_equal(cells == "NA", absent)
        assert_allclose(cells[~absent].astype(float), want[~absent, 1], rtol=1e-7)
    with pytest.raises(FileExistsError):
        write_loco(found, tmp_path / "x")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"Y": np.ones(7)}, "Y has the shape"),
        ({"Y": np.ones(120)}, "Y1 does not vary"),
        ({"traits": ["a", "b"]}, "2 traits"),
        ({"block": 1}, "block"),
        ({"folds": 100}, "100 folds"),
        ({"covariates": np.r_[np.nan, np.ones(119)]}, "1 samples lack"),
        ({"Y": np.r_[-np.inf, np.arange(119.0)]}, "row 1 of Y1"),
    ],
)
def test_bad_input_is_refused(change: dict[str, Any], named: str) -> None:
    G, Y, _ = draw_cohort(3)
    with pytest.raises(ValueError, match=named):
        whole_genome_ridge(**{"X": G, "Y": Y[:, 0], **change})


def test_memory_is_refused_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    G, Y, _ = draw_cohort(4)
    monkeypatch.setattr("gramian.compute.devices.free_bytes", lambda device: 10)
    monkeypatch.setattr("gramian.compute.devices.ALWAYS_TRIED", 0)
    with pytest.raises(MemoryError, match="block=20"):
        whole_genome_ridge(G, Y, block=10)
