"""Numbers that come by other ways than NumPy's arrays: none is rounded, and nothing behind a mask is a number."""

from typing import Any

import numpy as np
import pytest

from gramian import PCA, GaussianMixture, KernelRidge, KernelRidgeCV, Ridge, RidgeClassifier, RidgeCV

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(20, 2)), RNG.normal(size=20)
LARGE = 2**60 + np.arange(40).reshape(20, 2)
MASKED = np.ma.array(X.copy(), mask=np.arange(40).reshape(20, 2) == 9)
MASKED.data[4, 1] = 1e9


def lazy(values: Any) -> Any:
    return pytest.importorskip("dask.array").from_array(values, chunks=(7, *values.shape[1:]))


def test_chunks_of_dask_are_looked_at_like_arrays() -> None:
    with pytest.raises(ValueError, match=r"1152921504606846977.*row 1, column 2"):
        PCA(1).fit(lazy(LARGE))
    later = LARGE * 0
    later[15, 0] = 2**60 + 1
    with pytest.raises(ValueError, match="row 16, column 1"):
        PCA(1).fit(lazy(later))
    np.testing.assert_allclose(PCA(1).fit(lazy(MASKED)).components_, PCA(1).fit(MASKED).components_, atol=1e-9)
    with pytest.raises(ValueError, match="row 5, column 2"):
        Ridge().fit(lazy(MASKED), Y)


def test_frames_of_dask_are_looked_at_like_frames() -> None:
    dd, pd = (pytest.importorskip(name) for name in ("dask.dataframe", "pandas"))
    frame = dd.from_pandas(pd.DataFrame(LARGE, columns=["a", "b"]), npartitions=3)
    with pytest.raises(ValueError, match="1152921504606846977"):
        PCA(1).fit(frame)
    column = dd.from_pandas(pd.Series(Y), npartitions=3)
    np.testing.assert_array_equal(Ridge().fit(X, column).coef_, Ridge().fit(X, Y).coef_)


@pytest.mark.parametrize("way", ["dask", "torch", "NumPy"])
def test_targets_and_weights_by_every_way(way: str, torch: Any) -> None:
    given = {"dask": lazy, "torch": torch.as_tensor, "NumPy": np.asarray}[way]
    np.testing.assert_array_equal(Ridge().fit(X, given(Y)).coef_, Ridge().fit(X, Y).coef_)
    w = np.abs(Y)
    weighted = Ridge().fit(X, Y, sample_weight=given(w))
    np.testing.assert_array_equal(weighted.coef_, Ridge().fit(X, Y, sample_weight=w).coef_)
    for fit in (
        lambda: Ridge().fit(X, given(LARGE[:, 0])),
        lambda: KernelRidge().fit(X, given(LARGE[:, 0])),
        lambda: Ridge().fit(X, Y, sample_weight=given(LARGE[:, 0])),
        lambda: GaussianMixture(1).fit(X, sample_weight=given(LARGE[:, 0])),
    ):
        with pytest.raises(ValueError, match=r"1152921504606846978.*row 2"):
            fit()


def test_masks_of_lazy_targets_are_kept() -> None:
    with pytest.raises(ValueError, match="row 5"):
        Ridge().fit(X, lazy(MASKED[:, 1]))
    with pytest.raises(ValueError, match="NaN"):
        RidgeClassifier().fit(X, lazy(np.ma.array([0, 1] * 10, mask=np.arange(20) == 3)))


@pytest.mark.parametrize(
    "model", [Ridge, KernelRidge, lambda alphas: RidgeCV(alphas), lambda alphas: KernelRidgeCV(alphas)]
)
def test_a_masked_penalty_is_none(model: Any) -> None:
    with pytest.raises(ValueError, match="alpha"):
        model(np.ma.array([0.1, 1.0], mask=[False, True])).fit(X, np.column_stack([Y, Y]))
