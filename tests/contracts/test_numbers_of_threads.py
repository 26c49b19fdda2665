"""Every estimator, and every analysis of a fitted model, gives the same bits with one thread and with two."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from gramian import (
    PCA,
    GaussianMixture,
    GenotypePCA,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    Ridge,
    RidgeCV,
)
from gramian.analysis import (
    bi_cross_validate,
    bootstrap,
    deflated_analysis,
    describe,
    fit_incomplete,
    latent,
    multiple_imputation,
    parallel_analysis,
    principal_angles,
    procrustes,
    rotate,
    rv_coefficient,
)
from gramian.genetics import fst, project, simulate_genotypes

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3000, 40)) * np.geomspace(1, 0.05, 40)
Y = X @ RNG.standard_normal(40) + RNG.standard_normal(3000)
W = RNG.uniform(0.5, 2, 3000)
WIDE = RNG.standard_normal((200, 1500))
SPARSE = sp.random_array((4000, 300), density=0.05, rng=RNG, format="csr")
FEW, FEW_Y = X[:450, :8], Y[:450]
BROAD = RNG.standard_normal((1300, 1050))  # beyond what one core factors alone, and what it sums alone
RBF = {"kernel": "rbf", "gamma": 0.1}


def stream(k: int, rows: np.ndarray) -> SimpleNamespace:
    """What a PCA of two halves of the rows says when it is asked."""
    model = PCA(k).partial_fit(rows[: len(rows) // 2]).partial_fit(rows[len(rows) // 2 :])
    return SimpleNamespace(components_=model.components_, explained_variance_=model.explained_variance_)


FITS: dict[str, Any] = {
    "PCA": lambda: PCA(5).fit(X),
    "PCA, weighted": lambda: PCA(5).fit(X, sample_weight=W),
    "PCA, full": lambda: PCA(svd_solver="full").fit(X),
    "PCA, krylov": lambda: PCA(5, svd_solver="krylov").fit(X),
    "PCA, randomized": lambda: PCA(3, svd_solver="randomized").fit(X),
    "PCA, power": lambda: PCA(1, svd_solver="power").fit(X),
    "PCA, wide": lambda: PCA(5).fit(WIDE),
    "PCA, sparse": lambda: PCA(5).fit(SPARSE),
    "PCA, sparse krylov": lambda: PCA(5, svd_solver="krylov").fit(SPARSE),
    "PCA, float32": lambda: PCA(5).fit(X.astype(np.float32)),
    "PCA, stream": lambda: stream(5, X),
    "PCA, wide stream": lambda: stream(5, WIDE),
    "Ridge": lambda: Ridge().fit(X, Y),
    "Ridge, svd": lambda: Ridge(solver="svd").fit(X, Y),
    "Ridge, lsqr": lambda: Ridge(solver="lsqr").fit(X, Y),
    "Ridge, wide": lambda: Ridge().fit(WIDE, Y[:200]),
    "Ridge, sparse": lambda: Ridge().fit(SPARSE, SPARSE @ np.ones(300)),
    "Ridge, many columns": lambda: Ridge().fit(BROAD, Y[:1300]),
    "Ridge, many columns weighted": lambda: Ridge().fit(BROAD[:, :700], Y[:1300], W[:1300]),
    "RidgeCV": lambda: RidgeCV().fit(X, Y),
    "KernelRidge, cholesky": lambda: KernelRidge(**RBF, solver="cholesky").fit(FEW, FEW_Y),
    "KernelRidge, many rows": lambda: KernelRidge(**RBF, solver="cholesky").fit(X[:1301, :8], Y[:1301]),
    "KernelRidge, float64": lambda: KernelRidge(**RBF, alpha=1e-9, solver="cholesky").fit(X[:1100, :8], Y[:1100]),
    "KernelRidge, eigh": lambda: KernelRidge(**RBF, solver="eigh").fit(FEW, FEW_Y),
    "KernelRidge, cg": lambda: KernelRidge(**RBF, solver="cg").fit(X[:1500, :8], Y[:1500]),
    "KernelRidge, landmarks": lambda: KernelRidge(**RBF, solver="landmarks", n_landmarks=60).fit(X[:, :8], Y),
    "KernelRidgeCV": lambda: KernelRidgeCV(kernel="rbf", gamma=[0.1, 0.2]).fit(FEW, FEW_Y),
    "KernelLogisticRegression": lambda: KernelLogisticRegression(1.0, **RBF).fit(FEW, FEW_Y > 0),
    "KernelRidgeClassifier": lambda: KernelRidgeClassifier(**RBF).fit(FEW, FEW_Y > 0),
    "KernelPCA, dense": lambda: KernelPCA(3, **RBF, eigen_solver="dense").fit(FEW),
    "KernelPCA, krylov": lambda: KernelPCA(3, **RBF, eigen_solver="krylov").fit(X[:1500, :8]),
    "KernelPCA, nystrom": lambda: KernelPCA(3, **RBF, eigen_solver="nystrom", n_landmarks=200).fit(X[:1500, :8]),
    "GaussianMixture": lambda: GaussianMixture(3, random_state=0).fit(X[:, :5]),
    "GaussianMixture, diagonal": lambda: GaussianMixture(3, covariance_type="diag", random_state=0).fit(X[:, :5]),
}


def fitted_numbers(model: Any) -> dict[str, np.ndarray]:
    """The arrays of floating point numbers that a fit leaves."""
    arrays = {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
    return {name: v for name, v in arrays.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f"}


def compare(fit: Any) -> None:
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            models.append(fitted_numbers(fit()))
    one, two = models
    assert one
    assert set(one) == set(two)
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name], err_msg=name)


@pytest.mark.filterwarnings("ignore")  # of what a fit says here nothing is of interest but its numbers
@pytest.mark.parametrize("name", FITS)
def test_the_number_of_threads_does_not_show(name: str) -> None:
    compare(FITS[name])


TABLE, TWIN = BROAD[:640, :530], BROAD[640:1280, 500:1030]
MANY = PCA(12).fit(TABLE)
HOLES = TABLE[:, :60].copy()
HOLES[::7, ::5] = np.nan
ANALYSES: dict[str, Any] = {
    "bi-cross-validation": lambda: bi_cross_validate(MANY, TABLE, max_components=2, random_state=0),
    "bootstrap": lambda: bootstrap(PCA(2).fit(TABLE[:300]), TABLE[:300], n_replicates=40, random_state=0),
    "describe": lambda: describe(MANY, TABLE),
    "imputations": lambda: multiple_imputation(fit_incomplete(PCA(2), HOLES), HOLES, 2, random_state=0),
    "latent": lambda: latent(MANY, TABLE),
    "parallel analysis": lambda: parallel_analysis(MANY, TABLE, n_draws=20, random_state=0),
    "principal angles": lambda: principal_angles(MANY, PCA(12).fit(TWIN)),
    "procrustes": lambda: procrustes(TABLE, TWIN),
    "rotation": lambda: rotate(MANY, max_iter=2),
    "RV coefficient": lambda: rv_coefficient(TABLE, TWIN),
    "signs": lambda: deflated_analysis(MANY, TABLE, n_draws=8, random_state=0),
}


def numbers_of(answer: Any) -> list[np.ndarray]:
    """The arrays and numbers that an answer holds, whatever its class."""
    if isinstance(answer, (np.ndarray, float)):
        return [np.asarray(answer)] if np.asarray(answer).dtype.kind == "f" else []
    parts = (
        answer if isinstance(answer, (list, tuple)) else vars(answer).values() if hasattr(answer, "__dict__") else ()
    )
    return [each for part in parts for each in numbers_of(part)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ANALYSES)
def test_the_number_of_threads_does_not_show_in_analyses(name: str) -> None:
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(numbers_of(ANALYSES[name]()))
    assert len(found[0])
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("solver", ["krylov", "exact"])
def test_the_number_of_threads_does_not_show_in_genotypes(tmp_path: Path, solver: str) -> None:
    simulate_genotypes(tmp_path / "g.bed", 4000, groups=["a"] * 150 + ["b"] * 150, fst=0.02, seed=0)
    compare(lambda: GenotypePCA(4, solver=solver).fit(tmp_path / "g.bed"))


def test_the_number_of_threads_does_not_show_in_f_st_and_projections(tmp_path: Path) -> None:
    labels = ["a"] * 150 + ["b"] * 150
    bed = simulate_genotypes(tmp_path / "g.bed", 20_000, groups=labels, fst=0.02, missing=0.01, seed=0)
    model = GenotypePCA(2).fit(bed)

    def measure() -> SimpleNamespace:
        found = fst(bed, labels)
        return SimpleNamespace(matrix_=found.matrix, errors_=found.standard_errors)

    compare(measure)
    for method in ("simple", "least-squares", "oadp"):
        compare(lambda method=method: SimpleNamespace(scores_=project(model, bed, method).scores))
