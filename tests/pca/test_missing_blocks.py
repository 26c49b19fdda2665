"""Tables with missing cells, read in several blocks: the right rows are left out, filled in, fitted and imputed."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

from gramian import PCA
from gramian.analysis import condition, fit_incomplete, latent, multiple_imputation
from gramian.sources.tables import read_table

N, P = 400, 5
FEW = 0.01  # MiB of working memory: a few rows at a time


@pytest.fixture(scope="module")
def X():
    """Each row tells its own number; gaps come in every part of the file, at block ends too, and in runs."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 2)) @ rng.standard_normal((2, P)) + 0.1 * rng.standard_normal((N, P))
    X[:, 0] = np.arange(N)
    gaps = np.zeros((N, P), bool)
    gaps[[3, 64, 127, 128, 129, 255, 256, 300, N - 1], [1, 2, 3, 4, 1, 2, 3, 4, 1]] = True
    gaps[200:212, 2] = True
    return np.where(gaps, np.nan, X)


def write(X, path):
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        pd.DataFrame(X, columns=[f"c{j}" for j in range(P)]).to_parquet(path, row_group_size=50)
    else:
        pd.DataFrame(X, columns=[f"c{j}" for j in range(P)]).to_csv(path, index=False)
    return path


def values_of(source):
    return np.concatenate([np.array(block.values) for block in source.blocks(37)])


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.parquet"])
@pytest.mark.parametrize("memory", [FEW, 64])
def test_drop_leaves_out_the_rows_with_gaps_and_no_other(tmp_path, X, name, memory):
    path = write(X, tmp_path / name)
    with config_context(working_memory=memory):
        kept = values_of(read_table(path, missing="drop").source)
    assert_array_equal(kept, X[~np.isnan(X).any(axis=1)])


@pytest.mark.parametrize("name", ["x.npy", "x.csv", "x.parquet"])
@pytest.mark.parametrize("memory", [FEW, 64])
def test_mean_fills_in_the_mean_of_the_column(tmp_path, X, name, memory):
    path = write(X, tmp_path / name)
    with config_context(working_memory=memory):
        filled = values_of(read_table(path, missing="mean").source)
    assert_allclose(filled, np.where(np.isnan(X), np.nanmean(X, axis=0), X), rtol=1e-12)


@pytest.mark.parametrize("method", ["likelihood", "regularised", "least-squares"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_a_file_in_blocks_is_fitted_as_the_array(tmp_path, X, method, weighted, scale):
    path, w = write(X, tmp_path / "x.npy"), np.random.default_rng(1).integers(0, 3, N) if weighted else None
    whole = fit_incomplete(PCA(3, scale=scale), X, method=method, sample_weight=w)
    with config_context(working_memory=FEW):
        blocks = fit_incomplete(PCA(3, scale=scale), str(path), method=method, sample_weight=w)
        filled, scores, densities = (
            blocks.impute(str(path)),
            blocks.transform(str(path)),
            blocks.score_samples(str(path)),
        )
        z = latent(blocks, str(path)).mean
        given = condition(blocks, str(path))
        drawn = multiple_imputation(blocks, str(path), 1, parameters="fixed", sample_weight=w)[0]
    assert_allclose(blocks.explained_variance_, whole.explained_variance_, rtol=1e-6)
    assert_allclose(filled, whole.impute(X), rtol=1e-5, atol=1e-5)
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert_array_equal(drawn[~np.isnan(X)], X[~np.isnan(X)])
    assert_allclose(scores, whole.transform(X), rtol=1e-5, atol=1e-5)
    assert_allclose(densities, whole.score_samples(X), rtol=1e-5)
    assert_allclose(z, latent(whole, X).mean, rtol=1e-5, atol=1e-5)
    assert_array_equal(given.missing, np.isnan(X))
    if weighted:
        twice = fit_incomplete(PCA(3, scale=scale), np.repeat(X, w, axis=0), method=method)
        assert_allclose(twice.explained_variance_, blocks.explained_variance_, rtol=1e-5)


def test_conditional_moments_are_those_of_the_normal_distribution(X):
    """E and Var of missing cells by the formulas for a partitioned normal vector."""
    pca = PCA(2).fit(X)
    C, mean, given = pca.get_covariance(), pca.mean_, condition(pca, X)
    for i in np.flatnonzero(np.isnan(X).any(axis=1)):
        m, o = np.isnan(X[i]), ~np.isnan(X[i])
        gain = C[np.ix_(m, o)] @ np.linalg.inv(C[np.ix_(o, o)])
        assert_allclose(given.mean[i, m], mean[m] + gain @ (X[i, o] - mean[o]), rtol=1e-8)
        assert_allclose(given.covariance(i), C[np.ix_(m, m)] - gain @ C[np.ix_(o, m)], rtol=1e-6, atol=1e-10)
        d = X[i, o] - mean[o]
        expected = -0.5 * (o.sum() * np.log(2 * np.pi) + np.linalg.slogdet(C[np.ix_(o, o)])[1]
                           + d @ np.linalg.solve(C[np.ix_(o, o)], d))  # fmt: skip
        assert_allclose(pca.score_samples(X[i : i + 1])[0], expected, rtol=1e-9)
