"""What may not change an answer, or changes it in a known way: each rule written once, for every estimator it holds of.

An estimator is described by how it is fitted and by what it then says of given rows: scores up to sign, predictions,
or log-densities. Rules change the training rows (and y, and weights) and ask the same of the other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from threadpoolctl import threadpool_limits

import gramian
from gramian import (
    PCA,
    GaussianMixture,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Ridge,
    RidgeClassifier,
    RidgeCV,
)

RNG = np.random.default_rng(18)
N, P = 48, 5
GROUPS = np.repeat([-6.0, 6.0], N // 2)
X = np.round((RNG.standard_normal((N, P)) * [3.0, 2.0, 1.5, 1.0, 0.5] + np.eye(P)[0] * GROUPS[:, None]) * 2**16) / 2**16
Y = X @ [1.0, -2.0, 0.5, 0.0, 1.0] + RNG.standard_normal(N)
NEW = X[::5] + 0.25
COPIES = RNG.integers(1, 4, N)
RBF = {"kernel": "rbf", "gamma": 0.05}
Answer = Callable[[Any, Any], Any]


def scores(model: Any, rows: Any) -> Any:
    """Scores, each column so that its largest number is positive."""
    S = np.asarray(model.transform(rows))
    return S * np.sign(S[np.argmax(np.abs(S), axis=0), range(S.shape[1])])


def predictions(model: Any, rows: Any) -> Any:
    return model.predict(rows)


def decisions(model: Any, rows: Any) -> Any:
    return model.decision_function(rows)


def densities(model: Any, rows: Any) -> Any:
    return model.score_samples(rows)


class Case(NamedTuple):
    """An estimator, what it says of rows, and what it does not depend on."""

    make: Callable[[], Any]
    answer: Answer
    y: Any = None
    shifts: bool = True  # the same after the same shift of all rows
    turns: bool = True  # the same after a rotation of all rows
    scales: Callable[[Any], Any] | None = None  # what becomes of the answer when all rows are doubled; None: no rule
    weights: bool = True
    files: bool = True
    tensors: bool = True
    near: float = 1e-8


def same(answer: Any) -> Any:
    return answer


def doubled(answer: Any) -> Any:
    return 2 * answer


CASES: dict[str, Case] = {
    **{
        f"PCA {solver}": Case(
            lambda solver=solver: PCA(2, svd_solver=solver, tol=1e-12, iterated_power=20_000, random_state=0),
            scores,
            scales=doubled,
            near=1e-7,
        )
        for solver in ("full", "covariance_eigh", "krylov", "randomized", "power")
    },
    "PCA scaled": Case(lambda: PCA(2, scale=True), scores, turns=False, scales=same),
    "PCA whitened": Case(lambda: PCA(2, whiten=True), scores, scales=same),
    **{
        f"KernelPCA {solver}": Case(
            lambda solver=solver: KernelPCA(2, **RBF, eigen_solver=solver, tol=1e-12, random_state=0),
            scores,
            weights=False,
            near=1e-6,
        )
        for solver in ("dense", "krylov")
    },
    "KernelPCA linear": Case(lambda: KernelPCA(2, kernel="linear"), scores, scales=doubled, weights=False),
    **{
        f"Ridge {solver}": Case(lambda solver=solver: Ridge(0.7, solver=solver, tol=1e-13), predictions, Y)
        for solver in ("auto", "svd", "cholesky", "dual", "cg")
    },
    "Ridge without penalty": Case(lambda: Ridge(0.0), predictions, Y, scales=same),
    "Ridge scaled": Case(lambda: Ridge(0.7, scale=True), predictions, Y, turns=False, scales=same),
    "RidgeCV": Case(lambda: RidgeCV([0.1, 1.0, 10.0]), predictions, Y),
    "RidgeClassifier": Case(lambda: RidgeClassifier(0.7), decisions, Y > 0),
    **{
        f"KernelRidge {solver}": Case(
            lambda solver=solver: KernelRidge(0.1, **RBF, solver=solver, tol=1e-12), predictions, Y, near=1e-7
        )
        for solver in ("cholesky", "eigh", "cg")
    },
    "KernelRidgeCV": Case(lambda: KernelRidgeCV([0.1, 1.0], **RBF), predictions, Y, near=1e-7),
    "KernelLogisticRegression": Case(
        lambda: KernelLogisticRegression(0.1, **RBF, tol=1e-10), decisions, Y > 0, near=1e-7
    ),
    "KernelRidgeClassifier": Case(lambda: KernelRidgeClassifier(0.1, **RBF), decisions, Y > 0, near=1e-7),
    **{
        f"GaussianMixture {kind}": Case(
            lambda kind=kind: GaussianMixture(2, covariance_type=kind, tol=1e-10, max_iter=500, random_state=0),
            densities,
            turns=kind in ("tied", "spherical"),  # "full" of 48 rows has many maxima, and starts see the axes
            scales=lambda density: density - P * np.log(2),
            near=1e-5,
        )
        for kind in ("full", "tied", "diag", "spherical")
    },
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def say(case: Case, rows: Any, new: Any = NEW, y: Any = None, weights: Any = None) -> Any:
    """What a model of these rows says of new ones."""
    y = case.y if y is None else y
    given = {} if weights is None else {"sample_weight": weights}
    model = case.make()
    return np.asarray(case.answer(model.fit(rows, **given) if y is None else model.fit(rows, y, **given), new))


def assert_near(found: Any, expected: Any, near: float) -> None:
    assert_allclose(found, expected, rtol=near, atol=near * max(1.0, float(np.max(np.abs(expected)))))


def test_the_order_of_rows(case: Case) -> None:
    order = np.random.default_rng(1).permutation(N)
    y = None if case.y is None else case.y[order]
    assert_near(say(case, X[order], y=y), say(case, X), case.near)


def test_the_order_of_columns(case: Case) -> None:
    order = np.random.default_rng(1).permutation(P)
    assert_near(say(case, X[:, order], NEW[:, order]), say(case, X), case.near)


def test_a_shift_of_all_rows(case: Case) -> None:
    if not case.shifts:
        pytest.skip("depends on where 0 is")
    c = np.array([1024.0, -3.0, 0.5, 77.0, -512.0])
    assert_near(say(case, X + c, NEW + c), say(case, X), case.near)


def test_a_rotation_of_all_rows(case: Case) -> None:
    if not case.turns:
        pytest.skip("depends on the columns")
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((P, P)))[0]
    assert_near(say(case, X @ Q, NEW @ Q), say(case, X), case.near)


def test_rows_of_twice_the_size(case: Case) -> None:
    if case.scales is None:
        pytest.skip("depends on the unit")
    assert_near(say(case, 2 * X, 2 * NEW), case.scales(say(case, X)), case.near)


def test_targets_of_twice_the_size_and_another_level(case: Case) -> None:
    if case.answer is not predictions:
        pytest.skip("predicts no number")
    found = say(case, X, y=2 * case.y)
    assert_near(found, 2 * say(case, X), case.near)
    if "Kernel" not in type(case.make()).__name__:  # kernel ridge regression has no intercept
        assert_near(say(case, X, y=case.y + 32.0), say(case, X) + 32.0, case.near)


def test_copies_are_weights(case: Case) -> None:
    if not case.weights:
        pytest.skip("takes no weights")
    rows = np.repeat(np.arange(N), COPIES)
    y = None if case.y is None else case.y[rows]
    assert_near(say(case, X, weights=COPIES), say(case, X[rows], y=y), case.near)


def test_rows_of_weight_0_are_not_there(case: Case) -> None:
    if not case.weights:
        pytest.skip("takes no weights")
    keep = np.arange(N) % 6 > 0
    y = None if case.y is None else case.y[keep]
    assert_near(say(case, X, weights=keep.astype(float)), say(case, X[keep], y=y), case.near)


def test_the_number_of_threads(case: Case) -> None:
    with threadpool_limits(1):
        one = say(case, X)
    with threadpool_limits(2):
        assert_array_equal(say(case, X), one)


LARGE = np.random.default_rng(1).standard_normal((600, 520)) * np.geomspace(3, 1, 520)
LARGE_FITS: dict[str, Any] = {  # decompositions of more rows than one thread makes alone
    "covariance": lambda: gramian.PCA(svd_solver="covariance_eigh").fit(LARGE).components_,
    "svd": lambda: gramian.PCA(svd_solver="full").fit(LARGE).components_,
    "stream": lambda: gramian.PCA().partial_fit(LARGE).components_,
    "kernel PCA": lambda: gramian.KernelPCA(100, kernel="rbf", eigen_solver="dense").fit(LARGE).eigenvectors_,
    "few": lambda: gramian.KernelPCA(3, kernel="rbf", eigen_solver="dense").fit(LARGE).eigenvectors_,
    "ridge": lambda: gramian.RidgeCV([1.0, 10.0]).fit(LARGE, LARGE[:, :2]).coef_,
    "dual": lambda: gramian.RidgeCV([1.0, 10.0]).fit(LARGE.T, LARGE[0]).coef_,
    "kernel ridge": lambda: gramian.KernelRidge(1.0, kernel="rbf", solver="eigh").fit(LARGE, LARGE[:, 0]).dual_coef_,
    "path": lambda: gramian.KernelRidgeCV([0.1, 1.0], gamma=0.001).fit(LARGE, LARGE[:, 0]).dual_coef_,
}


@pytest.mark.parametrize("fit", LARGE_FITS)
def test_the_number_of_threads_of_large_decompositions(fit: str) -> None:
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(LARGE_FITS[fit]())
    assert_array_equal(*found)


def forms(kind: str, folder: Path) -> Any:
    """The rows in another form, with the same numbers."""
    if kind == "npy":
        np.save(folder / "x.npy", X)
        return str(folder / "x.npy")
    if kind == "csv":
        np.savetxt(folder / "x.csv", X, delimiter=",", fmt="%.17g", header="a,b,c,d,e", comments="")
        return gramian.open(folder / "x.csv")
    if kind == "tensor":
        return pytest.importorskip("torch").asarray(X)
    if kind == "dask":
        return pytest.importorskip("dask.array").from_array(X, chunks=(17, P))
    frozen = X.copy()
    frozen.setflags(write=False)
    return {
        "list": X.tolist,
        "frame": lambda: pd.DataFrame(X).to_numpy(),
        "Fortran": lambda: np.asfortranarray(X),
        "strided": lambda: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        "backwards": lambda: X[::-1, ::-1].copy()[::-1, ::-1],
        "read-only": lambda: frozen,
        "big-endian": lambda: X.astype(">f8"),
        "objects": lambda: X.astype(object),
        "csr": lambda: sp.csr_array(X),
        "csc": lambda: sp.csc_matrix(X),
        "source": lambda: gramian.open(X),
    }[kind]()


IN_MEMORY = ("list", "frame", "Fortran", "strided", "backwards", "read-only", "big-endian", "objects")
ELSEWHERE = ("csr", "csc", "source", "npy", "csv", "tensor", "dask")


@pytest.mark.parametrize("kind", [*IN_MEMORY, *ELSEWHERE])
def test_the_form_of_the_rows(case: Case, kind: str, tmp_path: Path) -> None:
    """The same numbers give the same answer, or the form is refused by an error that says so."""
    rows, whole, refusal = forms(kind, tmp_path), X.copy(), ""
    try:
        with config_context(working_memory=0.001):  # a few rows at a time
            model = case.make()
            model = model.fit(rows) if case.y is None else model.fit(rows, case.y)
    except (TypeError, ValueError) as error:
        refusal = str(error)
    if refusal:
        assert kind in ELSEWHERE, refusal
        assert any(word in refusal.lower() for word in ("sparse", "dask", "tensor", "file", "source", "array")), refusal
        pytest.skip(refusal.splitlines()[0][:80])
    new: Any = pytest.importorskip("torch").asarray(NEW) if kind == "tensor" else NEW
    new = pd.DataFrame(NEW, columns=list("abcde")) if kind == "csv" else new
    assert_near(np.asarray(case.answer(model, new)), say(case, X), max(case.near, 1e-7))
    assert_array_equal(X, whole)
