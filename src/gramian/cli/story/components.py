"""The story's first part: principal components of flowers and of handwritten digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from gramian import PCA, rank_advice
from gramian.display import ReconstructionDisplay, ScoreDisplay, ScreeDisplay
from gramian.display.base import GRID, PALETTE, new_axes
from gramian.pca.rank import RankAdvice

__all__ = ["digit_images", "digit_names", "digit_rank", "digit_scores", "iris"]


def iris() -> tuple[ScoreDisplay, PCA]:
    """Draw 150 flowers at their first two scores."""
    data = load_iris()
    pca = PCA(scale=True).fit(data.data)
    species = data.target_names[data.target]
    picture = ScoreDisplay.from_estimator(pca, data.data, labels=species, ellipse="rows")
    return picture, pca


def digit_scores() -> tuple[ScoreDisplay, PCA]:
    """Draw 1,797 images of 64 pixels as points of the plane."""
    X, digit = load_digits(return_X_y=True)
    pca = PCA(2).fit(X)
    picture = ScoreDisplay.from_estimator(pca, X, labels=digit)
    return picture, pca


def digit_rank() -> tuple[ScreeDisplay, PCA, RankAdvice]:
    """Draw the shares of variance, with what each rule says of how many components there are."""
    X = load_digits().data
    pca = PCA().fit(X)
    advice = rank_advice(X)
    picture = ScreeDisplay.from_estimator(pca, advice=advice)
    return picture, pca, advice


def digit_images() -> tuple[ReconstructionDisplay, PCA]:
    """Draw four digits, and what k components keep of them."""
    X = load_digits().data
    pca = PCA(32).fit(X)
    shown = X[[0, 11, 22, 63]]
    counts = (1, 2, 4, 8, 16, 32)
    picture = ReconstructionDisplay.from_estimator(pca, shown, image_shape=(8, 8), counts=counts)
    return picture, pca


def digit_names(counts: Sequence[int] = (1, 2, 4, 8, 16, 32, 48)) -> tuple[Any, list[Pipeline], list[float]]:
    """Draw the share of unseen digits that a classifier names right from k scores."""
    X, digit = load_digits(return_X_y=True)
    train, test, name, true_name = train_test_split(X, digit, test_size=0.25, random_state=0, stratify=digit)
    pipelines = [make_pipeline(PCA(k, whiten=True), LogisticRegression(max_iter=2000)) for k in counts]
    shares = [float(pipeline.fit(train, name).score(test, true_name)) for pipeline in pipelines]
    ax = new_axes(None, (6.4, 4.0))
    ax.plot(counts, shares, "o-", color=PALETTE[0], linewidth=2)
    ax.set(xlabel="components kept", ylabel="unseen digits named right", ylim=(0, 1.03))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.grid(color=GRID)
    return ax, pipelines, shares
