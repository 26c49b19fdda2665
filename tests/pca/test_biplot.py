"""A biplot's inner products are the data; R draws the same picture in its own units."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gramian import PCA
from gramian.pca.interpret import biplot
from oracles import centred, separated, sparse_rows

R: dict[str, Any] = json.loads((Path(__file__).parent.parent / "data" / "decathlon.json").read_text("utf-8"))
ARRESTS = np.array(R["usarrests"], dtype=np.float64)


@pytest.mark.parametrize("drawn", R["biplots"], ids=lambda d: f"scale={d['scale']},pc={d['pc']}")
def test_the_biplot_of_r(drawn: dict[str, Any]) -> None:
    n, alpha = len(ARRESTS), 1 - drawn["scale"]
    ours = biplot(PCA(scale=True).fit(ARRESTS), ARRESTS, alpha=alpha)
    # R uses √n·sdev where we use σ = √(n−1)·sdev, and pc.biplot multiplies rows by √n
    unit = (n / (n - 1)) ** ((1 - alpha) / 2)
    more = np.sqrt(n) if drawn["pc"] else 1.0
    rows, columns = np.array(drawn["rows"]), np.array(drawn["columns"])
    flip = np.sign(np.sum(ours.columns * columns, axis=0))
    assert_allclose(ours.rows * flip / unit * more, rows, rtol=1e-9, atol=1e-10)
    assert_allclose(ours.columns * flip * unit / more, columns, rtol=1e-9, atol=1e-10)


def test_deviations_are_the_pc_biplot_of_r() -> None:
    (drawn,) = (d for d in R["biplots"] if d["scale"] == 1 and d["pc"])
    ours = biplot(PCA(scale=True).fit(ARRESTS), ARRESTS, alpha=0, deviations=True)
    flip = np.sign(np.sum(ours.columns * np.array(drawn["columns"]), axis=0))
    assert_allclose(ours.rows * flip, drawn["rows"], rtol=1e-9, atol=1e-10)
    assert_allclose(ours.columns * flip, drawn["columns"], rtol=1e-9, atol=1e-10)


@given(
    alpha=st.floats(0, 1),
    scale=st.booleans(),
    whiten=st.booleans(),
    deviations=st.booleans(),
    weighted=st.booleans(),
    k=st.integers(1, 4),
)
def test_inner_products_are_the_best_approximation(
    alpha: float, scale: bool, whiten: bool, deviations: bool, weighted: bool, k: int
) -> None:
    X = separated(20, 6)
    w = np.random.default_rng(0).uniform(0.5, 3, 20) if weighted else np.ones(20)
    pca = PCA(4, scale=scale, whiten=whiten).fit(X, sample_weight=w)
    picture = biplot(pca, X, alpha, range(k), deviations=deviations)
    U, sigma, Vt = np.linalg.svd(centred(X, w, scale), full_matrices=False)
    truncated = (U[:, :k] * sigma[:k]) @ Vt[:k] / np.sqrt(w)[:, None]
    assert_allclose(picture.rows @ picture.columns.T, truncated, atol=1e-8)


def test_what_each_scaling_promises() -> None:
    X = separated(25, 5)
    pca = PCA().fit(X)
    every = range(5)
    form, covariance = biplot(pca, X, 1.0, every), biplot(pca, X, 0.0, every, deviations=True)
    D = X - X.mean(axis=0)
    assert_allclose(form.rows @ form.rows.T, D @ D.T, atol=1e-9)
    assert_allclose(covariance.columns @ covariance.columns.T, np.cov(X.T), atol=1e-10)
    plain = biplot(pca, X, 0.0, every)
    assert_allclose(plain.columns @ plain.columns.T, 24 * np.cov(X.T), atol=1e-9)
    assert_allclose(plain.rows.T @ plain.rows, np.eye(5), atol=1e-9)
    words = [biplot(pca, X, alpha).scaling.split()[0] for alpha in (1, 0, 0.5, 0.3)]
    assert words == ["form", "covariance", "symmetric", "biplot"]


def test_sparse_rows_names_and_tables() -> None:
    pd = pytest.importorskip("pandas")
    X = sparse_rows(30, 5, 0.5)
    pca = PCA(3).fit(X)
    picture = biplot(pca, X, 0.5, (2, 0))
    assert_allclose(picture.rows, biplot(pca, X.toarray(), 0.5, (2, 0)).rows, atol=1e-10)
    assert_allclose(picture.explained, np.asarray(pca.explained_variance_ratio_)[[2, 0]])
    assert list(picture.table()) == ["name", "kind", "pca2", "pca0"]
    frame = pd.DataFrame(X.toarray(), columns=list("abcde"), index=[f"r{i}" for i in range(30)])
    named = biplot(PCA(2).fit(frame), frame)
    assert pd.DataFrame(named.table())["name"].tolist() == [*frame.index, *"abcde"]
    assert "form biplot" in repr(named)


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning")
def test_a_component_without_variance_is_drawn_at_zero() -> None:
    X = np.outer(np.arange(6.0), [1, 2, 3])
    picture = biplot(PCA(2).fit(X), X, 0.0)
    assert_allclose(picture.rows[:, 1], 0)
    assert np.isfinite(picture.columns).all()


def test_refusals() -> None:
    X = separated(10, 3)
    pca = PCA(2).fit(X)
    with pytest.raises(ValueError, match="0 to 1"):
        biplot(pca, X, components=(0, 2))
    with pytest.raises(ValueError, match="names one twice"):
        biplot(pca, X, components=(1, 1))
    with pytest.raises(ValueError, match="alpha"):
        biplot(pca, X, alpha=1.5)
    for wrong in ("both", True, None):
        with pytest.raises(ValueError, match="form, covariance, symmetric"):
            biplot(pca, X, alpha=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("word", "alpha"), [("form", 1.0), ("covariance", 0.0), ("symmetric", 0.5)])
def test_scalings_have_names(word: str, alpha: float) -> None:
    X = separated(10, 3)
    pca = PCA(2).fit(X)
    named, numbered = biplot(pca, X, alpha=word), biplot(pca, X, alpha=alpha)
    assert named.alpha == alpha
    assert named.scaling.startswith(word)
    assert_allclose(named.rows, numbered.rows, rtol=0)
    assert_allclose(named.columns, numbered.columns, rtol=0)
