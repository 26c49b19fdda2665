"""Pictures of models that were fitted to tensors, on the CPU and on a GPU: they draw the numbers of NumPy's fits."""

from typing import Any

import numpy as np
import pytest

from gramian import PCA, GaussianMixture, KernelPCA, KernelRidge, KernelRidgeCV, RidgeCV, display
from gramian.analysis import monitor
from gramian.display.report import DataFacts, kernel_pca_report, mixture_report, pca_report, regression_report

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from pretend import GPU, pretend_gpu

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 2)) * [3.0, 1.0] + 2.0
T = np.linspace(0.0, 6.0, 30)
S = np.sin(T)
FACTS = DataFacts("rows", 40, 2)

PICTURES = {
    "scree": lambda to: display.ScreeDisplay.from_estimator(PCA(2).fit(to(X))),
    "scores": lambda to: display.ScoreDisplay.from_estimator(PCA(2).fit(to(X)), to(X)),
    "embedding": lambda to: display.EmbeddingDisplay.from_estimator(PCA(2).fit(to(X)), to(X)),
    "uncertainty": lambda to: display.UncertaintyDisplay.from_estimator(
        GaussianMixture(2, random_state=0).fit(to(X)), to(X)
    ),
    "loadings": lambda to: display.LoadingsDisplay.from_estimator(PCA(2).fit(to(X))),
    "contributions": lambda to: display.ContributionsDisplay.from_estimator(PCA(2).fit(to(X)), to(X)),
    "biplot": lambda to: display.BiplotDisplay.from_estimator(PCA(2).fit(to(X)), to(X)),
    "circle": lambda to: display.CorrelationCircleDisplay.from_estimator(PCA(2).fit(to(X)), to(X)),
    "reconstruction": lambda to: display.ReconstructionDisplay.from_estimator(
        PCA(2, scale=True).fit(to(X)), to(X[:3]), image_shape=(1, 2)
    ),
    "monitoring": lambda to: display.MonitoringDisplay.from_estimator(monitor(PCA(1).fit(to(X)), to(X)), to(X)),
    "field": lambda to: display.KernelFieldDisplay.from_estimator(
        KernelPCA(1, kernel="rbf").fit(to(X)), to(X), steps=9
    ),
    "residuals": lambda to: display.ResidualsDisplay.from_estimator(
        RidgeCV().fit(to(X), to(X[:, 0])), to(X), to(X[:, 0])
    ),
    "path": lambda to: display.RidgePathDisplay.from_estimator(RidgeCV(alphas="auto").fit(to(X), to(X[:, 0]))),
    "choice": lambda to: display.LeaveOneOutDisplay.from_estimator(
        KernelRidgeCV(kernel="rbf", gamma=[0.1, 1.0]).fit(to(T[:, None]), to(S))
    ),
    "band": lambda to: display.PredictionBandDisplay.from_estimator(
        KernelRidge(0.1, kernel="rbf").fit(to(T[:, None]), to(S)), to(T), to(S), bound=True
    ),
    # the steps of few rows on the CPU are others than on a device: they meet at the optimum
    "mixture": lambda to: display.MixtureDisplay.from_estimator(
        GaussianMixture(2, random_state=0, tol=1e-9).fit(to(X)), to(X)
    ),
}


@pytest.mark.parametrize("place", [torch.device("cpu"), GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str, place: Any) -> None:
    make: Any = PICTURES[name]
    known = numbers(make(lambda x: x))
    with pretend_gpu():
        found = numbers(make(lambda x: torch.from_numpy(x).to(place)))
    assert len(found) == len(known)
    for mine, wanted in zip(found, known, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-6, atol=1e-6)


def numbers(picture: Any) -> list[Any]:
    """Where lines and points are."""
    axes = picture.axes_ if hasattr(picture, "axes_") else picture.axes
    lines = [line.get_xydata() for ax in axes for line in ax.get_lines()]
    points = [np.asarray(c.get_offsets()) for ax in axes for c in ax.collections]
    images = [np.asarray(image.get_array()) for ax in axes for image in ax.get_images()]
    assert lines or points or images
    return lines + points + images


@pytest.mark.parametrize("place", [torch.device("cpu"), GPU], ids=["cpu", "gpu"])
def test_reports(place: Any) -> None:
    def made(to: Any) -> list[Any]:
        pca, kernel, ridge = PCA(2).fit(to(X)), KernelPCA(2, kernel="rbf").fit(to(X)), RidgeCV().fit(to(X), to(X[:, 0]))
        return [
            pca_report(pca, pca.transform(to(X)), data=FACTS),
            kernel_pca_report(kernel, kernel.transform(to(X)), data=FACTS),
            regression_report(ridge, to(X[:, 0]), ridge.predict(to(X)), data=FACTS),
            mixture_report(GaussianMixture(2, random_state=0).fit(to(X)), to(X), data=FACTS),
        ]

    known = made(lambda x: x)
    with pretend_gpu():
        found = made(lambda x: torch.from_numpy(x).to(place))
    for mine, wanted in zip(found, known, strict=True):
        assert mine.title == wanted.title
        assert [section.title for section in mine.sections] == [section.title for section in wanted.sections]
