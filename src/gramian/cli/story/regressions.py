"""The story's third part: what λ does to coefficients, and a curve with its certified band."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes

from gramian import KernelRidgeCV, RidgeCV
from gramian.display import PredictionBandDisplay, RidgePathDisplay

__all__ = ["curve", "ridge_path"]


def ridge_path() -> tuple[RidgePathDisplay, RidgeCV]:
    """Draw ten coefficients for sixty values of λ, and what chooses among them."""
    data = load_diabetes()
    X = data.data / data.data.std(axis=0)
    model = RidgeCV(np.logspace(-2, 5, 60)).fit(X, data.target)
    picture = RidgePathDisplay.from_estimator(model, names=data.feature_names)
    return picture, model


def curve() -> tuple[PredictionBandDisplay, KernelRidgeCV]:
    """Draw a damped wave through noisy points, the band of new observations, and the certified bound."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 120))
    y = np.sin(x) * np.exp(-x / 8) + 0.1 * rng.standard_normal(120)
    model = KernelRidgeCV(np.logspace(-4, 1, 20), gamma=[0.03, 0.1, 0.3, 1.0, 3.0]).fit(x[:, None], y)
    picture = PredictionBandDisplay.from_estimator(model, x, y, bound=True)
    return picture, model
