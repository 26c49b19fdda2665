"""The story's second part: kernel PCA of shapes that no straight line describes, and digits cleaned of noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_circles, make_moons, make_swiss_roll

from gramian import PCA, KernelPCA
from gramian.display import KernelFieldDisplay, before_and_after, denoising_gallery
from gramian.kernels import Gaussian

__all__ = ["circles", "moons", "swiss_roll", "without_noise"]


def moons() -> tuple[KernelFieldDisplay, KernelPCA]:
    """Draw the first component of two half moons as a field over the plane."""
    X, moon = make_moons(200, noise=0.05, random_state=0)
    model = KernelPCA(2, kernel=Gaussian(15.0)).fit(X)
    picture = KernelFieldDisplay.from_estimator(model, X, labels=moon)
    return picture, model


def circles() -> tuple[Any, KernelPCA]:
    """Draw a circle within a circle, and beside it their scores."""
    X, circle = make_circles(400, factor=0.3, noise=0.05, random_state=0)
    model = KernelPCA(2, kernel=Gaussian(2.0)).fit(X)
    picture = before_and_after(X, model.transform(X), circle)
    return picture, model


def swiss_roll() -> tuple[Any, KernelPCA]:
    """Draw a rolled-up sheet, and beside it its scores; the colour is the place along the sheet."""
    X, along = make_swiss_roll(800, random_state=123)
    model = KernelPCA(2, kernel=Gaussian(0.1)).fit(X)
    picture = before_and_after(X, model.transform(X), along)
    return picture, model


def without_noise(seen: int = 1500) -> tuple[Any, KernelPCA, dict[str, float]]:
    """Draw unseen digits with noise, and what linear and kernel PCA make of them."""
    X = load_digits().data / 16
    train, test = X[:seen], X[1500:]
    noisy = test + 0.25 * np.random.default_rng(0).standard_normal(test.shape)
    pca = PCA(16).fit(train)  # the number of components with which linear PCA does best here
    model = KernelPCA(32, kernel=Gaussian("median"), inverse="regularised").fit(train)
    linear = pca.inverse_transform(pca.transform(noisy))
    rows = {"original": test, "noisy": noisy, "PCA": linear, "kernel PCA": model.denoise(noisy)}
    picture = denoising_gallery({name: images[:10] for name, images in rows.items()}, image_shape=(8, 8))
    errors = {name: float(np.mean((images - test) ** 2)) for name, images in rows.items()}
    return picture, model, errors
