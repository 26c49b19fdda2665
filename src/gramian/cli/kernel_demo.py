"""The demo's second half: kernel PCA of three shapes, and digits cleaned of noise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_circles, make_moons, make_swiss_roll

from gramian.cli.page import Number
from gramian.display import before_and_after, denoising_gallery, save_picture
from gramian.estimators import PCA, KernelPCA
from gramian.kernels import Gaussian

__all__ = ["PICTURES", "Denoised", "denoised_digits", "published_projection", "shape_pictures"]

PICTURES = ("moons.png", "circles.png", "swiss_roll.png", "digits_denoised.png")
COMPONENTS, NOISE, SHOWN = 32, 0.25, 10
BEST_LINEAR = 16  # components with which linear PCA does best here
# S. Raschka, "Kernel tricks and nonlinear dimensionality reduction via RBF kernel PCA" (2014).
POINT, PROJECTION = (1.8713187, 0.00928245), "0.07877284"


@dataclass(frozen=True)
class Denoised:
    """Digits with noise and without, and the mean squared errors."""

    rows: dict[str, NDArray[Any]]
    errors: dict[str, float]
    model: KernelPCA


def published_projection() -> Number:
    """Compare the first component of a half-moon point with the one in print, in units of √λ and up to its sign."""
    X, _ = make_moons(100, random_state=123)
    model = KernelPCA(1, kernel="rbf", gamma=15).fit(X)
    z = abs(float(model.transform([POINT])[0, 0])) / float(np.sqrt(model.eigenvalues_[0]))
    return Number("half moons, projection of a point", PROJECTION, f"{z:.8f}")


def shape_pictures(folder: Path) -> None:
    """Draw half moons, circles and the swiss roll beside their scores."""
    moons, circles = make_moons(200, random_state=0), make_circles(400, factor=0.3, noise=0.05, random_state=0)
    roll = make_swiss_roll(800, random_state=123)
    for name, (X, labels), gamma in (("moons", moons, 15.0), ("circles", circles, 2.0), ("swiss_roll", roll, 0.1)):
        scores = KernelPCA(2, kernel=Gaussian(gamma)).fit_transform(X)
        save_picture(before_and_after(X, scores, labels), folder / f"{name}.png")


def denoised_digits(folder: Path | None = None) -> Denoised:
    """Clean digits that the fit has not seen of Gaussian noise, by kernel PCA and by linear PCA."""
    X = load_digits().data / 16
    train, test = X[:1500], X[1500:]
    noisy = test + NOISE * np.random.default_rng(0).standard_normal(test.shape)
    model = KernelPCA(COMPONENTS, kernel=Gaussian("median"), inverse="regularised").fit(train)
    rows = {"original": test, "noisy": noisy}
    for k in (BEST_LINEAR, COMPONENTS):
        linear = PCA(k).fit(train)
        rows[f"PCA, {k}"] = linear.inverse_transform(linear.transform(noisy))
    rows[f"kernel PCA, {COMPONENTS}"] = model.denoise(noisy)
    errors = {name: float(np.mean((images - test) ** 2)) for name, images in rows.items()}
    if folder is not None:
        gallery = denoising_gallery({name: images[:SHOWN] for name, images in rows.items()}, image_shape=(8, 8))
        save_picture(gallery, folder / "digits_denoised.png")
    return Denoised(rows, errors, model)
