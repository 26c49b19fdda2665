"""Numbers of every kind that Python has: taken as they are, as missing, or refused; never rounded in silence."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

import gramian
from gramian import (
    PCA,
    GaussianMixture,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    MaximumLikelihood,
    Ridge,
    RidgeCV,
)
from gramian.inputs.checks import check_targets, check_weights
from gramian.sources.arrays import to_numbers

RNG = np.random.default_rng(5)
X = RNG.normal(size=(30, 3))
Y = X @ [1.0, 2.0, 3.0]
MASK = np.zeros((30, 3), bool)
MASK[[4, 7, 9], [2, 0, 1]] = True
POISON = np.where(MASK, 1e6, X)  # what is behind the mask must not be seen
LARGE = 2**60 + np.arange(90).reshape(30, 3)
ESTIMATORS = [PCA(2), KernelPCA(2), Ridge(), RidgeCV(), KernelRidge(), KernelRidgeCV(), GaussianMixture(2)]
REFUSING = [e for e in ESTIMATORS if not isinstance(e, (PCA, GaussianMixture))]


def name(estimator: Any) -> str:
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", [PCA(2), GaussianMixture(1)], ids=name)
def test_masked_cells_are_missing_cells(estimator: Any) -> None:
    masked = np.ma.masked_array(POISON, MASK)
    fitted = estimator.fit(masked)
    a = fitted.means_ if isinstance(estimator, GaussianMixture) else fitted.components_
    twin = type(estimator)(**estimator.get_params()).fit(np.where(MASK, np.nan, X))
    b = twin.means_ if isinstance(estimator, GaussianMixture) else twin.components_
    assert_array_equal(a, b)


@pytest.mark.parametrize("estimator", [*REFUSING, KernelRidgeClassifier(), KernelLogisticRegression()], ids=name)
def test_masked_cells_are_refused_by_row_and_column(estimator: Any) -> None:
    y = (Y > 0).astype(int) if isinstance(estimator, (KernelRidgeClassifier, KernelLogisticRegression)) else Y
    with pytest.raises(ValueError, match=r"row 5, column 3"):
        estimator.fit(np.ma.masked_array(POISON, MASK), y)
    fitted = estimator.fit(np.ma.masked_array(X, np.zeros_like(MASK)), y)
    method = fitted.transform if isinstance(estimator, KernelPCA) else fitted.predict
    with pytest.raises(ValueError, match=r"row 5, column 3"):
        method(np.ma.masked_array(POISON, MASK))


@pytest.mark.parametrize("estimator", [Ridge(), RidgeCV(), KernelRidge(), KernelRidgeCV()], ids=name)
def test_masked_targets_are_refused_by_row(estimator: Any) -> None:
    with pytest.raises(ValueError, match=r"y .*row 5"):
        estimator.fit(X, np.ma.masked_array(Y, MASK[:, 2]))


@pytest.mark.parametrize("labels", [(Y > 0).astype(int), np.where(Y > 0, "a", "b")], ids=["numbers", "text"])
def test_masked_labels_are_refused(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"NaN|masked"):
        KernelRidgeClassifier().fit(X, np.ma.masked_array(labels, MASK[:, 2]))


def test_masked_data_of_a_likelihood_are_refused() -> None:
    with pytest.raises(ValueError, match=r"masked|NaN|missing"):
        MaximumLikelihood("normal").fit(np.ma.masked_array(Y, MASK[:, 2])[:, None])


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name)
def test_whole_numbers_that_float64_rounds_are_refused(estimator: Any) -> None:
    with pytest.raises(ValueError, match=rf"{2**60 + 1} in row 1, column 2"):
        estimator.fit(LARGE, Y)


def test_the_coefficients_of_a_target_with_a_large_origin() -> None:
    S = RNG.integers(-9, 9, (30, 3))
    y = S @ [1, 2, 3] + 2**60
    with pytest.raises(ValueError, match=r"y holds \d+ in row 1"):
        Ridge(0).fit(S, y)
    assert_allclose(Ridge(0).fit(S, y - y[0]).coef_, [1, 2, 3], rtol=1e-13)


LONG = np.longdouble(1) / 3
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
ROUNDED: dict[str, Any] = {
    "int64": np.array([[1], [2**53 + 1]]),
    "negative": np.array([[1], [-(2**53) - 1]]),
    "uint64": np.array([[1], [2**64 - 1]], dtype=np.uint64),
    "objects": np.array([[1], [10**30 + 1]], dtype=object),
    "beyond floats": np.array([[1], [10**400]], dtype=object),
    "decimals": np.array([[1], [Decimal(2**60 + 1)]], dtype=object),
    "words": np.array([["1"], [str(2**60 + 1)]], dtype=object),
    "fractions": np.array([[1], [Fraction(2**60 + 1)]], dtype=object),
    "a list": [[1.5], [2**60 + 1]],
    "masked": np.ma.masked_array([[5], [2**60 + 1]], [[True], [False]]),
    "sparse": sp.csr_array(np.array([[0], [2**60 + 1]])),
    "pandas": pd.DataFrame({"a": [1, 2**60 + 1]}),
    "pandas, mixed": pd.DataFrame({"a": [1, 2**60 + 1], "b": [0.5, 1.5]}),
    "pandas, nullable": pd.DataFrame({"a": pd.array([None, 2**60 + 1], dtype="Int64"), "b": [0.5, 1.5]}),
    "pandas, objects": pd.DataFrame({"a": np.array([1, 10**30 + 1], dtype=object)}),
    "polars, mixed": pl.DataFrame({"a": [1, 2**60 + 1], "b": [0.5, 1.5]}),
    "polars, nulls": pl.DataFrame({"a": [None, 2**60 + 1]}),
}
if np.finfo(np.longdouble).eps < np.finfo(np.float64).eps:
    ROUNDED["long double"] = np.array([[1], [LONG]], dtype=np.longdouble)


@pytest.mark.parametrize("values", ROUNDED.values(), ids=ROUNDED)
def test_every_kind_of_number_that_would_be_rounded_is_refused_by_row(values: Any) -> None:
    with pytest.raises(ValueError, match="row 2"):
        gramian.open(values)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="row 2"):
        PCA(1).fit(values)
    if isinstance(values, np.ndarray):
        for check in (check_targets, check_weights):
            with pytest.raises(ValueError, match="row 2"):
                check(values[:, 0], 2)


EXACT: dict[str, Any] = {
    "int64": np.array([[1], [2**60]]),
    "smallest": np.array([[0], [-(2**63)]]),
    "uint64": np.array([[1], [2**64 - 2**11]], dtype=np.uint64),
    "objects": np.array([[Fraction(1, 4)], [2**200]], dtype=object),
    "a list": [[1.5], [2**60]],
    "long double": np.array([[0.1], [1e300]], dtype=np.longdouble),
}


@pytest.mark.parametrize("values", EXACT.values(), ids=EXACT)
def test_numbers_that_float64_holds_are_taken(values: Any) -> None:
    source = gramian.open(values)  # type: ignore[attr-defined]
    assert [float(v) for v in source.values.ravel()] == [float(v) for v in np.asarray(values).ravel()]


def test_the_check_of_large_integers_agrees_with_python() -> None:
    bits = RNG.integers(1, 64, 3000)
    numbers = [
        int(RNG.integers(2 ** int(b - 1), 2 ** int(b), dtype=np.uint64)) >> 6 << int(RNG.integers(0, 7)) for b in bits
    ]
    for dtype, sign in ((np.int64, -1), (np.int64, 1), (np.uint64, 1)):
        for number in numbers:
            value = sign * number
            try:
                to_numbers(np.array([value], dtype=dtype))
                refused = False
            except ValueError:
                refused = True
            assert refused == (int(float(value)) != value), value


@pytest.mark.parametrize("kind", ["npy", "memmap", "hdf5"])
def test_files_that_are_read_in_blocks_name_the_row_of_the_table(tmp_path: Path, kind: str) -> None:
    values = np.arange(3000).reshape(1000, 3)
    values[777, 1] = 2**60 + 1
    np.save(tmp_path / "x.npy", values)
    data: Any = tmp_path / "x.npy"
    if kind == "memmap":
        data = np.load(data, mmap_mode="r")
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        data = tmp_path / "x.h5"
        with h5py.File(data, "w") as file:
            file["x"] = values
    with (
        config_context(working_memory=0.01),
        pytest.raises(
            ValueError,
            match="row 778, column 2, counted from 1",
        ),
    ):
        PCA(1).fit(data)


@pytest.mark.parametrize("missing", [None, pd.NA, np.nan, Decimal("nan")], ids=repr)
def test_absent_objects_are_missing_cells(missing: Any) -> None:
    values = X.astype(object)
    values[MASK] = missing
    assert_array_equal(to_numbers(values), np.where(MASK, np.nan, X))
    assert_array_equal(PCA(2).fit(values).components_, PCA(2).fit(np.where(MASK, np.nan, X)).components_)
    with pytest.raises(ValueError, match="row 5"):
        Ridge().fit(X, values[:, 2])


WRONG: dict[str, tuple[Any, str]] = {
    "records": (np.zeros(30, dtype=[("a", float), ("b", float)]), "a, b"),
    "complex": (X + 0j, "[Cc]omplex"),
    "dates": (X.astype("M8[s]"), "dates"),
    "durations": (X.astype("m8[s]"), "dates"),
    "text": (X.astype(str), "string|real numbers"),
    "frame of dates": (pd.DataFrame({"when": pd.to_datetime(["2020", "2021"]), "b": [1.0, 2.0]}), "when"),
    "frame of complex": (pd.DataFrame({"z": [1j, 2.0], "b": [1.0, 2.0]}), "z"),
    "a number": (np.array(3.0), "2"),
    "a vector": (Y, "2"),
}


@pytest.mark.parametrize(("values", "named"), WRONG.values(), ids=WRONG)
def test_what_are_no_numbers_is_refused(values: Any, named: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for act in (gramian.open, PCA(1).fit):  # type: ignore[attr-defined]
            with pytest.raises(ValueError, match=named):
                act(values)
        if getattr(values, "dtype", None) is not None and values.dtype.kind in "cmM":
            with pytest.raises(ValueError, match="y"):
                Ridge().fit(X, values[:, 0])
            with pytest.raises(ValueError, match="sample_weight"):
                Ridge().fit(X, Y, sample_weight=values[:, 0])


def test_truth_values_and_text_of_numbers_in_objects_are_numbers() -> None:
    assert_array_equal(PCA(1).fit(X > 0).components_, PCA(1).fit((X > 0).astype(float)).components_)
    assert_array_equal(to_numbers(X.astype(str).astype(object)), X)


USES: dict[str, Any] = {
    "rotation": lambda values: gramian.analysis.rotate(values),
    "rules by eigenvalues": lambda values: gramian.analysis.broken_stick(values[:, 0]),
    "limit of Q": lambda values: gramian.analysis.q_limit(values[:, 0]),
    "ancestry": lambda values: gramian.genetics.classify_ancestry(X, ["a"] * 30, values),
    "frequencies": lambda values: gramian.genetics.ancestry_shares(np.ones((2, 3)), values[3:5] / 9, ["a", "b"]),
}


@pytest.mark.parametrize("use", USES)
def test_masked_numbers_are_missing_wherever_numbers_are_given(use: str) -> None:
    masked = np.ma.masked_array(np.sort(np.abs(X), axis=0)[::-1], MASK)
    masked.mask[3, 0] = True
    with pytest.raises(ValueError, match=r"finite|nan"):
        USES[use](masked)
