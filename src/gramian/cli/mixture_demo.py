"""The demo's mixture: Pearson's thousand crabs, counted in 29 classes, as two normal curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gramian.cli.page import Number
from gramian.display import plot_binned_mixture, save_picture
from gramian.estimators import GaussianMixture

__all__ = ["COUNTS", "EDGES", "PICTURES", "crab_numbers", "crabs"]

PICTURES = ("crabs.png",)
# K. Pearson, "Contributions to the mathematical theory of evolution" (1894): forehead over body length of 1,000 crabs.
COUNTS = (1, 3, 5, 2, 7, 10, 13, 19, 20, 25, 40, 31, 60, 62, 54, 74, 84, 86, 96, 85, 75, 47, 43, 24, 19, 9, 5, 0, 1)
EDGES = (-np.inf, *(0.5835 + 0.004 * np.arange(28)), np.inf)


def crabs(folder: Path | None = None) -> GaussianMixture:
    """Fit two normal curves to the counts, the first and last class open, and draw them with their sum."""
    model = GaussianMixture(2, covariance_type="V").fit_binned(EDGES, COUNTS)
    if folder is not None:
        axes = plot_binned_mixture(model, EDGES, COUNTS)
        axes.set_xlabel("forehead / body length")
        save_picture(axes, folder / "crabs.png")
    return model


def crab_numbers(model: GaussianMixture) -> list[Number]:
    """Compare with the maximum of the binned likelihood, found independently."""
    order = np.argsort(model.means_[:, 0])
    share, means = model.weights_[order], model.means_[order, 0]
    sd = np.sqrt(model.mixture_.matrices[order, 0, 0])
    wanted = {"π₁": ".45276", "μ₁": ".632616", "μ₂": ".654687", "σ₁": ".018619", "σ₂": ".012483"}
    found = dict(zip(wanted, (share[0], *means, *sd), strict=True))
    numbers = [
        Number(f"crabs, {name}", f"0{text}", f"{found[name]:.{len(text) - 1}f}") for name, text in wanted.items()
    ]
    return [*numbers, Number("crabs, log-likelihood", "-2952.6959", f"{model.log_likelihood_:.4f}")]
