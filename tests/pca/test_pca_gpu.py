"""Functions of a PCA that was fitted on a GPU, to rows on a GPU: the numbers of one that was fitted to NumPy's."""

from typing import Any

import numpy as np
import pytest

from gramian import PCA, analysis

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from pretend import pretend_gpu

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4)) * [4.0, 3.0, 2.0, 1.0] + 1.0
W = RNG.integers(1, 4, 40).astype(float)
Y = RNG.standard_normal((40, 2))
LABELS = np.arange(40) % 3

FUNCTIONS = {
    "loadings": lambda pca, to: analysis.loadings(pca),
    "correlations": lambda pca, to: analysis.correlations(pca, to(X)),
    "describe": lambda pca, to: analysis.describe(pca, to(X)).rows.contributions,
    "supplementary_rows": lambda pca, to: analysis.supplementary_rows(pca, to(X)).coordinates,
    "supplementary_columns": lambda pca, to: analysis.supplementary_columns(pca, to(X), to(Y)).correlations,
    "supplementary_categories": lambda pca, to: analysis.supplementary_categories(pca, to(X), to(LABELS)).coordinates,
    "rotate": lambda pca, to: analysis.rotate(pca).loadings,
    "rotated_scores": lambda pca, to: analysis.rotated_scores(pca, to(X), analysis.rotate(pca)),
    "biplot": lambda pca, to: analysis.biplot(pca, to(X)).rows,
    "monitor": lambda pca, to: analysis.monitor(pca, to(X)).check(to(X)).q,
    "contributions": lambda pca, to: analysis.monitor(pca, to(X)).contributions(to(X)).t2,
    "bootstrap": lambda pca, to: analysis.bootstrap(pca, to(X), n_replicates=40, scores=False).variances,
    "eigenvalue_errors": lambda pca, to: analysis.eigenvalue_errors(pca).explained_variance.lower,
    "equality_test": lambda pca, to: analysis.equality_test(pca, (0, 1)).statistic,
    "principal_angles": lambda pca, to: analysis.principal_angles(pca, to(np.eye(4)[:, :2])),
    "subspace_distance": lambda pca, to: analysis.subspace_distance(pca, pca),
    "procrustes": lambda pca, to: analysis.procrustes(to(X[:, :2]), to(Y)).correlation,
    "rv_coefficient": lambda pca, to: analysis.rv_coefficient(to(X), to(Y)).rv,
    "columns": lambda pca, to: analysis.describe(pca, to(X)).columns.cos2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_models_and_rows_on_a_gpu(name: str) -> None:
    function: Any = FUNCTIONS[name]
    known = function(PCA(2).fit(X), lambda x: x)
    with pretend_gpu() as device:
        found = function(PCA(2).fit(torch.from_numpy(X).to(device)), lambda x: torch.from_numpy(x).to(device))
    assert type(found) is type(known)
    np.testing.assert_allclose(found, known, atol=1e-7)


def test_what_is_decomposed_when_it_is_first_read() -> None:
    known = PCA(2).fit(X)
    with pretend_gpu() as device:
        model = PCA(2).partial_fit(torch.from_numpy(X[:20]).to(device)).partial_fit(torch.from_numpy(X[20:]).to(device))
        found = analysis.loadings(model)
    np.testing.assert_allclose(found, analysis.loadings(known), atol=1e-7)
