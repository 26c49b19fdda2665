"""The demo's regressions: what λ does to ten coefficients, and a curve with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes

from gramian.display import plot_ridge_fit, plot_ridge_path, save_picture
from gramian.estimators import KernelRidgeCV, RidgeCV

__all__ = ["PICTURES", "Regressions", "regressions"]

PICTURES = ("kernel_ridge.png", "ridge_path.png")


@dataclass(frozen=True)
class Regressions:
    """Ridge regression of diabetes progression, and kernel ridge regression of a curve."""

    ridge: RidgeCV
    kernel: KernelRidgeCV


def regressions(folder: Path | None = None) -> Regressions:
    """Fit both, λ by leave-one-out errors, and draw them."""
    data = load_diabetes()
    X = data.data / data.data.std(axis=0)
    ridge = RidgeCV(np.logspace(-2, 5, 60)).fit(X, data.target)
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 120))
    y = np.sin(x) * np.exp(-x / 8) + 0.1 * rng.standard_normal(120)
    kernel = KernelRidgeCV(np.logspace(-4, 1, 20), kernel="rbf", gamma=[0.03, 0.1, 0.3, 1.0, 3.0]).fit(x[:, None], y)
    if folder is not None:
        save_picture(plot_ridge_path(ridge, names=data.feature_names), folder / "ridge_path.png")
        save_picture(plot_ridge_fit(kernel, x, y), folder / "kernel_ridge.png")
    return Regressions(ridge, kernel)
