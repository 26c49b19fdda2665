"""The story: which plates there are, in what order, and what is said of them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from gramian.cli.story import components, europe, features, likelihoods, regressions
from gramian.cli.story.plates import Chapter, Plate

__all__ = ["CHAPTERS"]


def _iris(pca: Any) -> str:
    kept = float(pca.explained_variance_ratio_[:2].sum())
    return f"Two directions hold {kept:.1%} of the variance of four; the species, which the fit never saw, come apart."


def _digit_scores(pca: Any) -> str:
    kept = float(pca.explained_variance_ratio_.sum())
    return f"Two of 64 coordinates hold {kept:.1%} of the variance, and equal digits already gather."


def _digit_rank(pca: Any, advice: Any) -> str:
    enough = int(np.searchsorted(np.cumsum(pca.explained_variance_ratio_), 0.95)) + 1
    above = advice.choices["parallel"].n_components
    return f"{enough} of 64 components hold 95% of the variance; {above} of them hold more than shuffled pixels would."


def _digit_images(pca: Any) -> str:
    return f"Half the numbers keep {float(pca.explained_variance_ratio_.sum()):.1%} of the variance: 32 instead of 64."


def _digit_names(pipelines: Any, shares: list[float]) -> str:
    scores = ", ".join(f"{share:.1%} from {p[0].n_components}" for p, share in zip(pipelines, shares, strict=True))
    return f"Of 450 unseen digits logistic regression names right: {scores} scores."


def _without_noise(model: Any, errors: dict[str, float]) -> str:
    texts = ", ".join(f"{name} {error:.4f}" for name, error in errors.items() if name != "original")
    return f"Mean squared errors over 297 digits: {texts}."


def _ridge_path(model: Any) -> str:
    return f"Leave-one-out errors, all 442 from one decomposition, choose λ = {model.alpha_:.3g} of 60."


def _curve(model: Any) -> str:
    noise = float(model.noise_variance_) ** 0.5
    best = f"γ = {model.gamma_:.3g}, λ = {model.alpha_:.3g}"
    return f"Of 100 pairs {best} predict best; the noise, which is 0.1, is found as {noise:.3f}."


def _coin(estimate: Any) -> str:
    low, high = estimate.profile(0.95, "theta")["theta"]
    return f"θ = {estimate['theta']:.4f}, with 95% confidence from {low:.4f} to {high:.4f}: the coin may well be fair."


def _crabs(model: Any) -> str:
    share, mean = model.weights_, model.means_[:, 0]
    kinds = " and ".join(f"{share[k]:.0%} around {mean[k]:.4f}" for k in np.argsort(mean))
    return f"Two kinds of crab explain the counts: {kinds}."


def _europe(model: Any, alignment: Any) -> str:
    n, p = len(model.eigenvectors_), model.components_.shape[1]
    return (
        f"Simulated: {n:,} people of 30 countries × {p:,} SNPs. The first two components and the map have a Procrustes "
        f"correlation of {alignment.correlation:.3f} (p = {alignment.p_value:.3f}, 999 permutations)."
    )


FLOWERS_AND_DIGITS = (
    Plate(
        components.iris,
        "Iris: four measurements of 150 flowers",
        "The directions along which the data vary most are the eigenvectors of their covariance matrix, equally the "
        "right singular vectors of the centred table. A flower's scores are its coordinates along them.",
        r"S = \frac{1}{n-1}\sum_i (x_i-\bar{x})(x_i-\bar{x})^\top, \quad S v_j = \lambda_j v_j, "
        r"\quad z_{ij} = (x_i-\bar{x})^\top v_j",
        _iris,
        "Iris flowers at their first two scores; setosa lies apart, versicolor and virginica touch.",
    ),
    Plate(
        components.digit_scores,
        "Digits: 1,797 images of 8 × 8 pixels",
        "An image is a point in 64 dimensions. No projection on a plane spreads these points more than this one.",
        r"\max_{V^\top V = I} \|X V\|^2 = \sum_{j\le k} \sigma_j^2 \quad\text{with}\quad X = U \Sigma V^\top",
        _digit_scores,
        "Digits at their first two scores, coloured by digit; zeros, fours and sixes form groups.",
    ),
    Plate(
        components.digit_rank,
        "How many components?",
        "Every component takes its share of the variance. How many rise above the noise, eight rules answer in their "
        "own ways; the dotted line is what shuffled pixels reach.",
        r"\frac{\lambda_j}{\sum_i \lambda_i}, \quad \lambda_j = \frac{\sigma_j^2}{n-1}",
        _digit_rank,
        "Shares of variance of 64 components with their running sum, and below how many each rule keeps.",
    ),
    Plate(
        components.digit_images,
        "What k components keep",
        "The best image with k numbers is the mean image plus k components. What is lost is the variance of the rest.",
        r"\hat{x} = \bar{x} + \sum_{j\le k} z_j v_j, \quad \sum_i \|x_i-\hat{x}_i\|^2 = (n-1)\sum_{j>k} \lambda_j",
        _digit_images,
        "Four digits rebuilt from 1, 2, 4, 8, 16 and 32 components, ever sharper.",
    ),
    Plate(
        components.digit_names,
        "Digits named from their scores",
        "PCA as the first step of a pipeline: its scores, each divided by its deviation, are what a classifier sees.",
        r"x \to w = \Lambda^{-1/2} V_k^\top (x-\bar{x}) \to \max_c p(c \mid w)",
        _digit_names,
        "Share of unseen digits named right, rising with the number of components and level from sixteen on.",
        MappingProxyType({"counts": (2, 8, 16)}),
    ),
)

SHAPES = (
    Plate(
        features.moons,
        "Two half moons",
        "Where no straight line separates what belongs together, features φ(x) may. They need not be computed: their "
        "inner products k(x, x′) are enough, centred. A line on the plane joins points with the same first score.",
        r"k(x,x') = \exp(-\gamma\|x-x'\|^2), \quad \tilde{K} = K - 1K - K1 + 1K1, \quad \tilde{K}a = \lambda a, "
        r"\quad \lambda a^\top a = 1",
        lambda model: "The first score is positive on one moon and negative on the other: its sign tells them apart.",
        "Two half moons with the level lines of the first component, which follow their shapes.",
    ),
    Plate(
        features.circles,
        "A circle within a circle",
        "New points are placed by the same weights, their row of the kernel centred with the means of the old ones.",
        r"z(x) = \sum_i a_i \tilde{k}(x,x_i)",
        lambda model: "Rings that no line can part lie on two sides of one after the Gaussian kernel.",
        "Left two concentric rings, right their scores: two separate bands.",
    ),
    Plate(
        features.swiss_roll,
        "A rolled-up sheet",
        "Points on a sheet that is rolled up in space; the colour is the place along the sheet. A Gaussian kernel sees "
        "near neighbours only, so it follows the sheet and not the straight line across.",
        r"k(x,x') \approx 0 \quad\text{where}\quad \|x-x'\|^2 > \frac{5}{\gamma}",
        lambda model: (
            "The inner turn of the sheet unrolls along two arms, in the order of its colours; the others stay together."
        ),
        "Left a spiral sheet in space, right its scores, whose colours run along two arms.",
    ),
    Plate(
        features.without_noise,
        "Digits without noise",
        "A noisy image is projected on the components in feature space, and the image whose features are nearest to "
        "the projection is looked for: its pre-image. The fit has not seen these digits.",
        r"\min_z \|\phi(z) - P\phi(x)\|^2",
        _without_noise,
        "Ten digits: clean, with noise, cleaned by PCA, and cleaner by kernel PCA.",
        MappingProxyType({"seen": 700}),
    ),
)

CURVES = (
    Plate(
        regressions.ridge_path,
        "What λ does",
        "Ridge regression shrinks each direction of the data by its own factor. One decomposition gives the "
        "coefficients for every λ, and the error of predicting each row from all others.",
        r"\hat{\beta}_\lambda = V \diag(\frac{\sigma}{\sigma^2+\lambda}) U^\top y, \quad \df_\lambda = \sum_j "
        r"\frac{\sigma_j^2}{\sigma_j^2+\lambda}, \quad \frac{e_i}{1-H_{ii}}",
        _ridge_path,
        "Coefficients of ten variables shrinking as λ grows, the share kept of each direction, and three criteria.",
    ),
    Plate(
        regressions.curve,
        "A curve with its certified band",
        "The same with features known by their inner products alone. The wide band is where new observations fall; the "
        "dashed line is the bound that the residual r proves for the arithmetic, far thinner than it can be drawn.",
        r"(K+\lambda I)\alpha = y, \quad f(x) = \sum_i \alpha_i k(x,x_i), \quad |\hat{f}(x)-f(x)| \le "
        r"\frac{\|\phi(x)\|\|r\|}{2\sqrt{\lambda}}",
        _curve,
        "A damped wave through 120 noisy points, with the band in which 95% of new observations fall.",
    ),
)

LIKELIHOODS = (
    Plate(
        likelihoods.coin,
        "A coin, ten thousand times",
        "The parameter that makes what was seen most likely. John Kerrich, interned in Denmark during the Second "
        "World War, tossed a coin 10,000 times and saw 5,067 heads.",
        r"\max_\theta \sum_i \ln p_\theta(x_i), \quad p_\theta(x) = \theta^x (1-\theta)^{1-x}, "
        r"\quad \hat{\theta} = \frac{H}{n}",
        _coin,
        "The deviance of the probability of heads, a parabola with its least value at 0.5067.",
    ),
    Plate(
        likelihoods.crabs,
        "Pearson's crabs",
        "In 1894 Karl Pearson asked whether the crabs of Naples were one kind or two. A thousand had been counted in "
        "29 classes; the likelihood is that of the counts, the first and last class open.",
        r"\max_{\pi,\mu,\sigma} \sum_b n_b \ln \sum_k \pi_k P(x \in b \mid \mu_k,\sigma_k)",
        _crabs,
        "Counts of crabs in 29 classes with two normal curves and their sum, which leans to the left.",
    ),
)

GENES = (
    Plate(
        europe.europe,
        "Genes mirror geography",
        "People are simulated around thirty countries, with allele frequencies that vary smoothly over the map. From "
        "their genotypes alone, 0, 1 or 2 copies of an allele at each place, PCA finds where they live. An arrow leads "
        "from the true place of a country to the middle of its people.",
        r"z_{ij} = \frac{g_{ij}-2p_j}{\sqrt{p_j(1-p_j)}}, \quad \frac{Z Z^\top}{M} u = \lambda u, "
        r"\quad \min_{R,s,t} \sum_i \|s u_i R + t - m_i\|^2",
        _europe,
        "Simulated people as points on a plane, in the colours of their countries, arranged like the map of Europe.",
        MappingProxyType({"people": 400, "n_snps": 3000}),
    ),
)

CHAPTERS = (
    Chapter("Components", "Directions in which data vary.", FLOWERS_AND_DIGITS),
    Chapter("Components that bend", "The same in a space of features, by inner products alone.", SHAPES),
    Chapter("Regression", "What is predicted, how much is shrunk, and how sure it is.", CURVES),
    Chapter("Likelihood", "Parameters that make the data most likely.", LIKELIHOODS),
    Chapter("A map from genes", "Simulated people, real mathematics.", GENES),
)
