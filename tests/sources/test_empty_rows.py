"""``gramian.open(keep_empty=False)``: rows and columns without a number are left out, and results find their rows."""

import numpy as np
import pytest

import gramian
from gramian.sources.errors import SourceError


def table(kind, tmp_path):
    """12 rows and 4 columns, of which rows 3 and 8 and column 2 hold nothing, as ``kind``; and the rest of it."""
    X = np.random.default_rng(5).normal(size=(12, 4)) + np.arange(12)[:, None] % 3
    X[[2, 7]], X[:, 1] = np.nan, np.nan
    whole = np.delete(np.delete(X, [2, 7], axis=0), 1, axis=1)
    if kind == "file":
        np.save(tmp_path / "x.npy", X)
        return tmp_path / "x.npy", whole
    if kind == "tensor":
        return pytest.importorskip("torch").from_numpy(X), whole
    if kind == "pandas":
        return pytest.importorskip("pandas").DataFrame(X, columns=list("abcd")), whole
    return X, whole


@pytest.mark.parametrize("kind", ["array", "pandas", "file", "tensor"])
def test_what_is_empty_is_left_out_and_results_find_their_rows(kind, tmp_path):
    X, whole = table(kind, tmp_path)
    with pytest.raises(ValueError, match=r"(?s)(Row 3|Column 2).*keep_empty=False"):
        gramian.PCA(2).fit(X)
    rows = gramian.open(X, keep_empty=False)
    assert rows.shape == (10, 3)
    assert np.flatnonzero(~rows.kept_rows).tolist() == [2, 7]
    assert np.flatnonzero(~rows.kept_columns).tolist() == [1]
    if kind == "pandas":
        assert rows.feature_names == ["a", "c", "d"]
    pca = gramian.PCA(2).fit(rows)
    scores = rows.spread(np.asarray(pca.transform(rows)))
    np.testing.assert_allclose(np.delete(scores, [2, 7], axis=0), gramian.PCA(2).fit_transform(whole), atol=1e-12)
    assert np.isnan(scores[[2, 7]]).all()
    mixture = gramian.GaussianMixture(1).fit(rows)
    np.testing.assert_allclose(np.asarray(mixture.means_)[0], whole.mean(axis=0))


def test_a_table_without_gaps_is_as_it_was_and_one_of_gaps_is_refused():
    X = np.arange(6.0).reshape(3, 2)
    rows = gramian.open(X, keep_empty=False)
    assert rows.kept_rows is None
    np.testing.assert_array_equal(rows.spread([1, 2, 3]), [1, 2, 3])
    with pytest.raises(ValueError, match=r"2 results.*3 rows"):
        rows.spread([1, 2])
    with pytest.raises(SourceError, match="no number"):
        gramian.open(np.full((2, 2), np.nan), keep_empty=False)
