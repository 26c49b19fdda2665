"""Reference numbers of ``gramian demo``: 13 in print and 25 recomputed, each compared with ours digit by digit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, make_moons
from sklearn.preprocessing import StandardScaler

from gramian import PCA, GaussianMixture, KernelPCA, likelihood
from gramian.mixture.binned import Bins
from gramian.pca.tracy_widom import tracy_widom_quantile

IRIS = "S. Raschka, Principal Component Analysis in 3 simple steps, 2015"
MOONS = "S. Raschka, Kernel tricks and nonlinear dimensionality reduction via RBF kernel PCA, 2014"
NOISE = "N. Patterson, A. L. Price and D. Reich, PLoS Genetics 2, e190, 2006"
COIN = "J. E. Kerrich, An experimental introduction to the theory of probability, 1946"
CRABS = "Recomputed: the maximum of the likelihood of K. Pearson's counts of 1894"
FLOWERS = "Recomputed: the maximum of the likelihood of R. A. Fisher's flowers"

# K. Pearson, "Contributions to the mathematical theory of evolution" (1894): forehead over body length of 1,000 crabs.
CRAB_COUNTS = [
    1, 3, 5, 2, 7, 10, 13, 19, 20, 25, 40, 31, 60, 62, 54, 74, 84, 86, 96, 85, 75, 47, 43, 24, 19, 9, 5, 0, 1,
]  # fmt: skip
CRAB_EDGES = [-np.inf, *(0.5835 + 0.004 * np.arange(28)), np.inf]
# Raschka's numbers come from the UCI repository's edition of iris, which mistypes two flowers of Fisher's table.
UCI_ROW = (4.9, 3.1, 1.5, 0.1)
TABLE = "0.001"  # the printed critical values and the Tracy-Widom law itself differ from the fourth decimal on
SHORT = "0.00001"  # 200,000 steps of plain EM end at π₁ = 0.432744: the last digit of the reference is one too high


@dataclass(frozen=True)
class Number:
    """A reference number and ours, both as text with the same number of decimals.

    Attributes
    ----------
    what, published, ours, source : str
        What it is, the two numbers, and where the first is from.
    within : str
        How far ours may be from it, where its last digits are known to be inexact; every digit counts where empty.

    Examples
    --------
    >>> from gramian.cli.demo_numbers import Number
    >>> Number("x", "0.25", "0.25").agrees, Number("x", "0.25", "0.26").verdict
    (True, 'NO')
    """

    what: str
    published: str
    ours: str
    source: str = ""
    within: str = ""

    @property
    def agrees(self) -> bool:
        """Whether every printed digit is the same, or the difference is within what is allowed."""
        if not self.within:
            return self.published == self.ours
        return abs(Decimal(self.published) - Decimal(self.ours)) <= Decimal(self.within)

    @property
    def verdict(self) -> str:
        """The answer as a word."""
        return "NO" if not self.agrees else f"yes (±{self.within})" if self.within else "yes"


def compare_numbers() -> list[Number]:
    """Compute every number again, with as many decimals as its reference has.

    Examples
    --------
    >>> from gramian.cli.demo_numbers import compare_numbers
    >>> all(number.agrees for number in compare_numbers())  # doctest: +SKIP
    True
    """
    return [
        Number(what, text, f"{value:.{len(text.partition('.')[2])}f}", source, within)
        for source, numbers in _our_numbers()
        for what, text, value, within in ((*number, "")[:4] for number in numbers)
    ]


def _our_numbers() -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """By source: what a number is, its reference as text, our value, and how far apart they may be."""
    X = load_iris().data.copy()
    X[[34, 37]] = UCI_ROW
    # Standardising divides by n and the covariance by n − 1: the first set is n/(n − 1) times the second.
    standardised = PCA().fit(StandardScaler().fit_transform(X)).explained_variance_
    correlation = PCA(scale=True).fit(X).explained_variance_
    yield (
        IRIS,
        [
            ("iris, covariance, λ₁", "2.93035378", standardised[0]),
            ("iris, covariance, λ₂", "0.92740362", standardised[1]),
            ("iris, covariance, λ₃", "0.14834223", standardised[2]),
            ("iris, covariance, λ₄", "0.02074601", standardised[3]),
            ("iris, correlation, λ₁", "2.91081808", correlation[0]),
            ("iris, correlation, λ₂", "0.92122093", correlation[1]),
            ("iris, correlation, λ₃", "0.14735328", correlation[2]),
            ("iris, correlation, λ₄", "0.02060771", correlation[3]),
        ],
    )
    moons = KernelPCA(1, kernel="rbf", gamma=15).fit(make_moons(100, random_state=123)[0])
    z = moons.transform([(1.8713187, 0.00928245)])[0, 0] / np.sqrt(moons.eigenvalues_[0])  # up to its sign
    yield MOONS, [("half moons, a new point", "0.07877284", abs(z))]
    yield (
        NOISE,
        [
            (f"Tracy–Widom, critical at {tail:g}", text, float(tracy_widom_quantile(tail, upper=True)), TABLE)
            for tail, text in ((0.05, "0.9794"), (0.01, "2.0236"), (0.001, "3.2730"))
        ],
    )
    theta = likelihood.fit("bernoulli", np.repeat([1, 0], [5067, 4933]))["theta"]
    yield COIN, [("heads of 10,000 tosses", "0.5067", theta)]
    yield CRABS, [*_compare_binned_crabs(), *_compare_crabs_at_midpoints()]
    flowers = load_iris().data
    yield (
        FLOWERS,
        [  # BIC as 2ℓ − q ln n
            (f"iris, BIC of {k} normals", text, -GaussianMixture(k, covariance_type="VVV").fit(flowers).bic(flowers))
            for k, text in ((2, "-574.0178"), (3, "-580.8389"))
        ],
    )


def _compare_binned_crabs() -> list[tuple[Any, ...]]:
    """Two kinds of crab, the first and last class open, and one kind instead."""
    bins = Bins.of(CRAB_EDGES, CRAB_COUNTS)
    exact: dict[str, Any] = {"covariance_type": "V", "tol": 1e-8, "max_iter": 10_000}  # the fifth digit of π₁ wants it
    one, two = (GaussianMixture(k, **exact).fit_binned(CRAB_EDGES, CRAB_COUNTS) for k in (1, 2))
    errors, fit = two.standard_errors(bins), two.goodness(bins)
    low, high = np.argsort(two.means_[:, 0])
    deviation, deviations = (np.sqrt(model.mixture_.matrices[:, 0, 0]) for model in (one, two))
    return [
        ("crabs, π₁", "0.45276", two.weights_[low]),
        ("crabs, μ₁", "0.632616", two.means_[low, 0]),
        ("crabs, μ₂", "0.654687", two.means_[high, 0]),
        ("crabs, σ₁", "0.018619", deviations[low]),
        ("crabs, σ₂", "0.012483", deviations[high]),
        ("crabs, standard error of π₁", "0.162", errors.weights[low]),
        ("crabs, standard error of μ₁", "0.0062", errors.means[low, 0]),
        ("crabs, standard error of μ₂", "0.0018", errors.means[high, 0]),
        ("crabs, standard error of σ₁", "0.0019", errors.deviations[low, 0]),
        ("crabs, standard error of σ₂", "0.0012", errors.deviations[high, 0]),
        ("crabs, log-likelihood", "-2952.6959", two.log_likelihood_),
        ("crabs, deviance", "22.11", fit.deviance),
        ("crabs, X²", "20.50", fit.chi2),
        ("crabs, degrees of freedom", "23", fit.degrees),
        ("one normal, μ", "0.644697", one.means_[0, 0]),
        ("one normal, σ", "0.019054", deviation[0]),
        ("one normal, log-likelihood", "-2979.0593", one.log_likelihood_),
        ("one normal, likelihood ratio", "52.73", 2 * (two.log_likelihood_ - one.log_likelihood_)),
    ]


def _compare_crabs_at_midpoints() -> list[tuple[Any, ...]]:
    """A cruder answer: every crab at the middle of its class."""
    X = np.repeat(0.5815 + 0.004 * np.arange(29), CRAB_COUNTS)[:, None]
    model = GaussianMixture(2, covariance_type="V", tol=1e-8, max_iter=10_000).fit(X)
    low, high = np.argsort(model.means_[:, 0])
    deviations = np.sqrt(model.mixture_.matrices[:, 0, 0])
    return [
        ("at midpoints, π₁", "0.43275", model.weights_[low], SHORT),
        ("at midpoints, μ₁", "0.631741", model.means_[low, 0]),
        ("at midpoints, μ₂", "0.654579", model.means_[high, 0]),
        ("at midpoints, σ₁", "0.018311", deviations[low]),
        ("at midpoints, σ₂", "0.012619", deviations[high]),
    ]
