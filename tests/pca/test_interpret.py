"""Loadings, correlations, contributions and squared cosines, against FactoMineR and against their definitions."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn import config_context

import gramian
from gramian import PCA
from gramian.pca.interpret import correlations, describe, loadings
from oracles import Array, separated, sparse_rows

DATA = Path(__file__).parent.parent / "data"
R: dict[str, Any] = json.loads((DATA / "decathlon.json").read_text("utf-8"))
LINES = list(csv.reader((DATA / "decathlon.csv").read_text("utf-8").splitlines()))
EVENTS = LINES[0][1:11]
X = np.array([line[1:11] for line in LINES[1:]], dtype=np.float64)
N = len(X)
# FactoMineR divides by n where we divide by n − 1
ROOT = np.sqrt(N / (N - 1))


def signs(ours: Array, theirs: Array) -> Array:
    """Signs of components, which two programs may choose differently."""
    return np.sign(np.sum(ours * theirs, axis=0))


def assert_same(ours: Array, theirs: Any, rtol: float = 1e-9) -> None:
    theirs = np.asarray(theirs)
    assert_allclose(ours, theirs, rtol=rtol, atol=1e-9 * np.abs(theirs).max())


def test_the_correlation_pca_of_factominer() -> None:
    r = R["scaled"]
    pca = PCA(scale=True).fit(X)
    reading = describe(pca, X)
    assert_same(pca.explained_variance_, np.array(r["eig"])[:, 0])
    assert_same(100 * pca.explained_variance_ratio_, np.array(r["eig"])[:, 1])
    table = reading.eigenvalues.table()
    assert_same(np.array([table["variance"], table["percent"], table["cumulative"]]).T, r["eig"])
    flip = signs(loadings(pca), np.array(r["var"]["coord"]))
    assert_same(reading.columns.coordinates * flip, r["var"]["coord"])
    assert_same(reading.columns.correlations * flip, r["var"]["cor"])
    assert_same(reading.columns.cos2, r["var"]["cos2"])
    assert_same(reading.columns.contributions, r["var"]["contrib"])
    assert_same(reading.rows.coordinates * flip * ROOT, r["ind"]["coord"])
    assert_same(reading.rows.cos2, r["ind"]["cos2"])
    assert_same(reading.rows.contributions, r["ind"]["contrib"])
    assert_same(reading.rows.distances * ROOT, r["ind"]["dist"])


def test_the_covariance_pca_of_factominer() -> None:
    r = R["unscaled"]
    pca = PCA(5).fit(X)
    reading = describe(pca, X)
    assert_same(pca.explained_variance_ / ROOT**2, np.array(r["eig"])[:5, 0])
    flip = signs(loadings(pca), np.array(r["var"]["coord"]))
    assert_same(reading.columns.coordinates * flip / ROOT, r["var"]["coord"])
    assert_same(reading.columns.correlations * flip, r["var"]["cor"])
    assert_same(reading.columns.cos2, r["var"]["cos2"])
    assert_same(reading.columns.contributions, r["var"]["contrib"])
    assert_same(reading.rows.coordinates * flip, r["ind"]["coord"])
    assert_same(reading.rows.cos2, r["ind"]["cos2"])
    assert_same(reading.rows.contributions, r["ind"]["contrib"])
    assert_same(reading.rows.distances, r["ind"]["dist"])


def test_the_weighted_pca_of_factominer() -> None:
    r, w = R["weighted"], np.array(R["weights"])
    pca = PCA(5, scale=True).fit(X, sample_weight=w)
    reading = describe(pca, X, w)
    root = np.sqrt(w.sum() / (w.sum() - 1))
    assert_same(pca.explained_variance_, np.array(r["eig"])[:5, 0])
    flip = signs(loadings(pca), np.array(r["var"]["coord"]))
    assert_same(reading.columns.coordinates * flip, r["var"]["coord"])
    assert_same(reading.rows.coordinates * flip * root, r["ind"]["coord"])
    assert_same(reading.rows.contributions, r["ind"]["contrib"])
    assert_same(reading.rows.cos2, r["ind"]["cos2"])
    assert_same(reading.rows.distances * root, r["ind"]["dist"])


@pytest.mark.parametrize("scaled", [True, False])
def test_prince(scaled: bool) -> None:
    theirs = json.loads((DATA / "decathlon_prince.json").read_text("utf-8"))["scaled" if scaled else "unscaled"]
    pca = PCA(5, scale=scaled).fit(X)
    reading = describe(pca, X)
    flip = signs(loadings(pca), np.array(theirs["column_coordinates"]))
    # like FactoMineR it divides by n
    assert_same(pca.explained_variance_ / (1 if scaled else ROOT**2), theirs["eigenvalues"])
    assert_same(reading.rows.coordinates * flip * (ROOT if scaled else 1), theirs["row_coordinates"])
    assert_same(reading.rows.contributions / 100, theirs["row_contributions"])
    assert_same(reading.rows.cos2, theirs["row_cosine_similarities"])
    assert_same(reading.columns.coordinates * flip / (1 if scaled else ROOT), theirs["column_coordinates"])
    assert_same(reading.columns.correlations * flip, theirs["column_correlations"])
    assert_same(reading.columns.contributions / 100, theirs["column_contributions"])


def kinds(values: Array, folder: Path) -> dict[str, Any]:
    np.save(folder / "x.npy", values)
    pd = pytest.importorskip("pandas")
    return {
        "array": values,
        "fortran": np.asfortranarray(values),
        "csr": sparse.csr_array(values),
        "coo": sparse.coo_matrix(values),
        "path": folder / "x.npy",
        "source": gramian.open(folder / "x.npy"),
        "memmap": np.load(folder / "x.npy", mmap_mode="r"),
        "list": values.tolist(),
        "frame": pd.DataFrame(values, columns=[f"c{j}" for j in range(values.shape[1])]),
    }


@pytest.mark.parametrize("scale", [False, True])
def test_every_kind_of_input_is_read_alike_in_blocks(tmp_path: Path, scale: bool) -> None:
    values = sparse_rows(60, 8, 0.4, seed=2).toarray()
    w = np.random.default_rng(0).integers(0, 4, 60)
    naive = describe(PCA(3, scale=scale).fit(values, sample_weight=w), values, w)
    D = values - w @ values / w.sum()
    D = D / np.sqrt(w @ D**2 / (w.sum() - 1)) if scale else D
    assert_allclose(naive.rows.distances, np.linalg.norm(D, axis=1), rtol=1e-12)
    assert_allclose(naive.columns.deviations, np.sqrt(w @ D**2 / (w.sum() - 1)), rtol=1e-12)
    with small_memory(0.002):
        for name, data in kinds(values, tmp_path).items():
            pca = PCA(3, scale=scale, svd_solver="full" if name != "csr" else "auto").fit(data, sample_weight=w)
            ours = describe(pca, data, w)
            for part in ("coordinates", "contributions", "cos2", "distances"):
                assert_allclose(getattr(ours.rows, part), getattr(naive.rows, part), atol=1e-9, err_msg=name)
            assert_allclose(ours.columns.correlations, naive.columns.correlations, atol=1e-9, err_msg=name)


def small_memory(megabytes: float) -> Any:
    """A working memory so small that blocks have a few rows."""
    return config_context(working_memory=megabytes)


def test_tensors(torch: Any) -> None:
    values = separated(30, 5)
    pca = PCA(3).fit(torch.asarray(values))
    ours, theirs = describe(pca, torch.asarray(values)), describe(PCA(3).fit(values), values)
    assert_allclose(ours.rows.contributions, theirs.rows.contributions, atol=1e-9)
    assert_allclose(ours.columns.cos2, theirs.columns.cos2, atol=1e-9)


def test_float32_rows_are_described_in_float64() -> None:
    values = separated(50, 5).astype(np.float32)
    reading = describe(PCA(3).fit(values), values)
    assert reading.rows.coordinates.dtype == np.float64
    assert_allclose(reading.rows.cos2, describe(PCA(3).fit(values.astype(float)), values).rows.cos2, atol=1e-5)


@given(
    weights=st.lists(st.integers(0, 5), min_size=14, max_size=14).filter(lambda w: sum(v > 0 for v in w) > 6),
    scale=st.booleans(),
    whiten=st.booleans(),
    offset=st.sampled_from([0.0, 1e4, -1e7]),
)
def test_sums_of_contributions_and_cosines(weights: list[int], scale: bool, whiten: bool, offset: float) -> None:
    values = separated(14, 5) + offset
    pca = PCA(scale=scale, whiten=whiten).fit(values, sample_weight=weights)
    reading = describe(pca, values, weights)
    assert_allclose(reading.rows.contributions.sum(axis=0), 100, rtol=1e-10)
    assert_allclose(reading.columns.contributions.sum(axis=0), 100, rtol=1e-10)
    assert_allclose(reading.columns.cos2.sum(axis=1), 1, rtol=1e-6)
    assert_allclose(reading.rows.cos2.sum(axis=1), 1, rtol=1e-6)
    # a weight is as many rows: their contributions add up
    repeated = np.repeat(values, weights, axis=0)
    each = describe(PCA(scale=scale).fit(repeated), repeated)
    where = np.repeat(np.arange(14), weights)
    added = np.stack([np.bincount(where, each.rows.contributions[:, j], 14) for j in range(5)], axis=1)
    assert_allclose(reading.rows.contributions, added, atol=1e-5)


def test_loadings_rebuild_the_covariance_and_whitening_changes_nothing() -> None:
    values = separated(40, 6)
    A = loadings(PCA().fit(values))
    assert_allclose(A @ A.T, np.cov(values.T), atol=1e-12)
    plain, white = (describe(PCA(3, whiten=whiten).fit(values), values) for whiten in (False, True))
    assert_allclose(plain.rows.coordinates, white.rows.coordinates, atol=1e-12)
    assert_allclose(plain.columns.coordinates, white.columns.coordinates, atol=1e-12)


@pytest.mark.parametrize("scale", [False, True])
def test_correlations_are_those_of_numpy(scale: bool) -> None:
    values = separated(40, 4) * [1, 10, 100, 1000]
    Z = PCA(scale=scale).fit_transform(values)
    naive = np.corrcoef(values.T, Z.T)[:4, 4:]
    assert_allclose(correlations(PCA(scale=scale).fit(values)), naive, atol=1e-10)
    assert_allclose(correlations(PCA(2, scale=scale).fit(values), values), naive[:, :2], atol=1e-10)


def test_correlations_of_a_partial_model_need_the_rows() -> None:
    values = separated(30, 4)
    with pytest.raises(ValueError, match="Pass the rows"):
        correlations(PCA(2).fit(values))
    assert correlations(PCA(2, scale=True).fit(values)).shape == (4, 2)


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("constant", [0.0, 7.0, 0.1, 1e9])
def test_constant_columns_and_rows_at_the_centre_get_zeros(scale: bool, constant: float) -> None:
    half = separated(10, 4)
    values = np.vstack([half, -half, np.zeros((1, 4))])
    values[:, 2] = constant
    pca = PCA(3, scale=scale).fit(values)
    reading = describe(pca, values)
    for part in (reading.columns.correlations, reading.columns.cos2, reading.columns.coordinates):
        assert_allclose(part[2], 0, atol=1e-12)
    assert reading.columns.deviations[2] == 0.0
    assert np.isfinite(reading.rows.cos2).all()
    cross = np.array([[1.0, 0], [-1, 0], [0, 0.5], [0, -0.5], [0, 0]])
    rows = describe(PCA(2, scale=scale).fit(cross), cross).rows
    assert rows.distances[4] == 0.0
    assert_allclose(rows.cos2[4], 0)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
def test_components_without_variance_take_no_part() -> None:
    values = np.outer(np.arange(8.0), [1, 2, 3])
    for whiten in (False, True):
        reading = describe(PCA(3, whiten=whiten).fit(values), values)
        assert_allclose(reading.rows.contributions[:, 1:], 0)
        assert_allclose(reading.rows.contributions[:, 0].sum(), 100)
        assert_allclose(reading.columns.cos2[:, 0], 1)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
@pytest.mark.parametrize("size", [1e-170, 1e170])
def test_sizes_whose_squares_are_no_floats(size: float) -> None:
    values = separated(30, 4)
    ours, theirs = describe(PCA(2).fit(values * size), values * size), describe(PCA(2).fit(values), values)
    assert_allclose(ours.rows.cos2, theirs.rows.cos2, rtol=1e-8)
    assert_allclose(ours.rows.contributions, theirs.rows.contributions, rtol=1e-8)
    assert_allclose(ours.columns.correlations, theirs.columns.correlations, rtol=1e-8)
    assert_allclose(ours.columns.coordinates / size, theirs.columns.coordinates, rtol=1e-8)


def test_other_rows_and_forgotten_weights_are_refused() -> None:
    values, w = separated(30, 4), np.arange(30) % 3
    pca = PCA(2).fit(values, sample_weight=w)
    with pytest.raises(ValueError, match="times the variance"):
        describe(pca, values)
    with pytest.raises(ValueError, match="supplementary_rows"):
        describe(pca, values[:20], w[:20])
    with pytest.raises(ValueError, match="times the variance"):
        describe(pca, values * 2, w)
    with pytest.raises(ValueError, match=r"row 4.*-1"):
        describe(pca, values, np.where(np.arange(30) == 3, -1, 1))
    with pytest.raises(ValueError, match="expecting 4 features"):
        describe(pca, values[:, :3], w)
    spoiled = values.copy()
    spoiled[4, 1] = np.nan
    with pytest.raises(ValueError, match="row 5, column 2"):
        describe(pca, spoiled, w)


def test_tables_name_what_makes_a_component() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=EVENTS, index=[line[0] for line in LINES[1:]])
    reading = describe(PCA(3, scale=True).fit(frame), frame)
    first = pd.DataFrame(reading.columns.table(0))
    assert list(first["name"][:2]) == ["100m", "110m.hurdle"]
    assert first["contribution"].is_monotonic_decreasing
    whole = pd.DataFrame(reading.rows.table())
    assert whole.shape == (41, 1 + 3 * 3 + 1)
    assert list(whole["name"][:2]) == ["SEBRLE", "CLAY"]
    both = pd.DataFrame(reading.table())
    assert both.shape == (51, 2 + 3 * 3)
    assert both["kind"].value_counts().to_dict() == {"row": 41, "column": 10}
    assert "100m" in repr(reading)
    assert "... and 31 more" in repr(reading.rows)
    labelled = describe(PCA(2).fit(X), X, row_labels=[line[0] for line in LINES[1:]])
    assert labelled.rows.names is not None
    assert labelled.rows.names[0] == "SEBRLE"
    assert describe(PCA(2).fit(X), X).rows.table(1)["name"][0] in range(41)
    with pytest.raises(ValueError, match="counted from 0"):
        reading.rows.table(3)
    with pytest.raises(ValueError, match=r"2 names.*41 rows"):
        describe(PCA(2).fit(X), X, row_labels=["a", "b"])


def test_a_reading_begins_with_the_variances() -> None:
    reading = describe(PCA(3, scale=True).fit(X), X)
    lines = repr(reading).splitlines()
    assert lines[0] == "Eigenvalues:"
    assert lines[1].split() == ["name", "variance", "percent", "cumulative"]
    eig = R["scaled"]["eig"]
    assert [line.split() for line in lines[2:5]] == [[f"pca{j}", *(f"{x:.4g}" for x in eig[j])] for j in range(3)]
    assert lines[5].startswith("Columns:")


@pytest.mark.parametrize("scale", [False, True])
def test_a_fit_with_missing_cells_is_not_read_as_one_of_rows(scale: bool) -> None:
    gaps = separated(40, 4)
    gaps[3, 1] = np.nan
    pca = PCA(2, scale=scale).fit(gaps)
    filled = pca.impute(gaps)
    remedy = r"pca\.impute\(X\)"
    for call in (lambda: describe(pca, filled), lambda: correlations(pca, gaps), lambda: correlations(pca)):
        with pytest.raises(ValueError, match=remedy):
            call()
    assert describe(PCA(2, scale=scale).fit(filled), filled).rows.coordinates.shape == (40, 2)
