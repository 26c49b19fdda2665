"""The story's fourth part: a coin tossed ten thousand times, and Pearson's crabs."""

from __future__ import annotations

import numpy as np

from gramian import GaussianMixture
from gramian.display import BinnedMixtureDisplay, ProfileDisplay
from gramian.likelihood import Estimate, fit

__all__ = ["COUNTS", "EDGES", "coin", "crabs"]

# K. Pearson, "Contributions to the mathematical theory of evolution" (1894): forehead over body length of 1,000 crabs.
COUNTS = [1, 3, 5, 2, 7, 10, 13, 19, 20, 25, 40, 31, 60, 62, 54, 74, 84, 86, 96, 85, 75, 47, 43, 24, 19, 9, 5, 0, 1]
EDGES = [-np.inf, *(0.5835 + 0.004 * np.arange(28)), np.inf]


def coin() -> tuple[ProfileDisplay, Estimate]:
    """Draw the likelihood of the probability of heads, after John Kerrich's 10,000 tosses."""
    tosses = np.repeat([1, 0], [5067, 4933])
    estimate = fit("bernoulli", tosses)
    picture = ProfileDisplay.from_estimator(estimate)
    picture.ax_.set_xlabel("θ, the probability of heads")
    return picture, estimate


def crabs() -> tuple[BinnedMixtureDisplay, GaussianMixture]:
    """Draw a thousand crabs in 29 classes, the first and last open, and the two normal curves that explain them."""
    model = GaussianMixture(2, covariance_type="V").fit_binned(EDGES, COUNTS)
    picture = BinnedMixtureDisplay.from_estimator(model, EDGES, COUNTS, name="forehead / body length")
    return picture, model
