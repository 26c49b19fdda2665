"""Numbers in print, or recomputed as references, beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
from sklearn.datasets import load_iris, make_moons
from sklearn.preprocessing import StandardScaler

from gramian import PCA, GaussianMixture, KernelPCA
from gramian.cli.story.likelihoods import COUNTS, EDGES, coin, crabs
from gramian.mixture.binned import Bins
from gramian.pca.tracy_widom import tracy_widom_quantile

__all__ = ["Number", "published_numbers"]

IRIS = "S. Raschka, Principal Component Analysis in 3 simple steps, 2015"
MOONS = "S. Raschka, Kernel tricks and nonlinear dimensionality reduction via RBF kernel PCA, 2014"
COIN = "J. E. Kerrich, An experimental introduction to the theory of probability, 1946"
CRABS = "Recomputed: the maximum of the likelihood of K. Pearson's counts of 1894"
FISHER = "Recomputed: the maximum of the likelihood of R. A. Fisher's flowers"
NOISE = "N. Patterson, A. L. Price and D. Reich, PLoS Genetics 2, e190, 2006"

# Raschka's numbers come from the UCI repository's edition of iris, which mistypes two flowers of Fisher's table.
UCI_ROWS = {34: (4.9, 3.1, 1.5, 0.1), 37: (4.9, 3.1, 1.5, 0.1)}
STANDARDISED = ("2.93035378", "0.92740362", "0.14834223", "0.02074601")
CORRELATION = ("2.91081808", "0.92122093", "0.14735328", "0.02060771")
PARAMETERS = ("π₁", "μ₁", "μ₂", "σ₁", "σ₂")
BINNED = ("0.45276", "0.632616", "0.654687", "0.018619", "0.012483")
ERRORS = ("0.162", "0.0062", "0.0018", "0.0019", "0.0012")
MIDPOINTS = ("0.43275", "0.631741", "0.654579", "0.018311", "0.012619")
CRITICAL = {0.05: "0.9794", 0.01: "2.0236", 0.001: "3.2730"}
SHORT = "0.00001"  # 200,000 steps of plain EM end at π₁ = 0.432744: the last digit of the reference is one too high
TABLE = "0.001"  # the printed values and the law itself differ from the fourth decimal on


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
    >>> from gramian.cli.story.numbers import Number
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


def published_numbers() -> list[Number]:
    """Compute every number again.

    Examples
    --------
    >>> from gramian.cli.story.numbers import published_numbers
    >>> all(number.agrees for number in published_numbers())  # doctest: +SKIP
    True
    """
    two = crabs()[1]
    mixtures = [*_crabs(two), *_one_normal(two), *_midpoints(), *_flowers()]
    return [*_iris(), _moon(), *_tracy_widom(), _coin(), *mixtures]


def _beside(what: Sequence[str], published: Sequence[str], ours: Sequence[float], source: str) -> Iterator[Number]:
    """Each of our numbers with as many decimals as were printed."""
    for name, text, value in zip(what, published, ours, strict=True):
        yield Number(name, text, f"{value:.{len(text.partition('.')[2])}f}", source)


def _iris() -> Iterator[Number]:
    """Standardising divides by n and the covariance by n − 1: the first set is n/(n − 1) times the second."""
    X = load_iris().data.copy()
    for row, values in UCI_ROWS.items():
        X[row] = values
    ours = PCA().fit(StandardScaler().fit_transform(X)), PCA(scale=True).fit(X)
    for matrix, texts, model in zip(("covariance", "correlation"), (STANDARDISED, CORRELATION), ours, strict=True):
        names = [f"iris, {matrix}, λ{j}" for j in "₁₂₃₄"]
        yield from _beside(names, texts, model.explained_variance_, IRIS)


def _moon() -> Number:
    """The first component of a new point, in units of √λ and up to its sign."""
    X, _ = make_moons(100, random_state=123)
    model = KernelPCA(1, kernel="rbf", gamma=15).fit(X)
    z = abs(float(model.transform([(1.8713187, 0.00928245)])[0, 0])) / float(np.sqrt(model.eigenvalues_[0]))
    return Number("half moons, a new point", "0.07877284", f"{z:.8f}", MOONS)


def _tracy_widom() -> Iterator[Number]:
    for tail, text in CRITICAL.items():
        ours = f"{float(tracy_widom_quantile(tail, upper=True)):.4f}"
        yield Number(f"Tracy–Widom, critical at {tail:g}", text, ours, NOISE, TABLE)


def _coin() -> Number:
    return Number("heads of 10,000 tosses", "0.5067", f"{coin()[1]['theta']:.4f}", COIN)


def _parameters(model: GaussianMixture) -> list[float]:
    """π₁, μ₁, μ₂, σ₁, σ₂, the component of the smaller mean first."""
    order = np.argsort(model.means_[:, 0])
    deviations = np.sqrt(model.mixture_.matrices[order, 0, 0])
    return [model.weights_[order[0]], *model.means_[order, 0], *deviations]


def _crabs(model: GaussianMixture) -> Iterator[Number]:
    """The fit to the counts, the first and last class open, its standard errors and how well it fits."""
    bins = Bins.of(EDGES, COUNTS)
    errors, fit = model.standard_errors(bins), model.goodness(bins)
    order = np.argsort(model.means_[:, 0])
    se = [errors.weights[order[0]], *errors.means[order, 0], *errors.deviations[order, 0]]
    yield from _beside([f"crabs, {name}" for name in PARAMETERS], BINNED, _parameters(model), CRABS)
    yield from _beside([f"crabs, standard error of {name}" for name in PARAMETERS], ERRORS, se, CRABS)
    names = [f"crabs, {name}" for name in ("log-likelihood", "deviance", "X²", "degrees of freedom")]
    ours = [model.log_likelihood_, fit.deviance, fit.chi2, fit.degrees]
    yield from _beside(names, ("-2952.6959", "22.11", "20.50", "23"), ours, CRABS)


def _one_normal(two: GaussianMixture) -> Iterator[Number]:
    """One kind of crab instead of two, and how much likelihood that costs."""
    one = GaussianMixture(1, covariance_type="V").fit_binned(EDGES, COUNTS)
    deviation = float(np.sqrt(one.mixture_.matrices[0, 0, 0]))
    ratio = 2 * (two.log_likelihood_ - one.log_likelihood_)
    names = [f"one normal, {name}" for name in ("μ", "σ", "log-likelihood", "likelihood ratio")]
    ours = [one.means_[0, 0], deviation, one.log_likelihood_, ratio]
    yield from _beside(names, ("0.644697", "0.019054", "-2979.0593", "52.73"), ours, CRABS)


def _midpoints() -> Iterator[Number]:
    """A cruder answer: every crab at the middle of its class."""
    X = np.repeat(0.5815 + 0.004 * np.arange(29), COUNTS)[:, None]
    model = GaussianMixture(2, covariance_type="V", tol=1e-8, max_iter=10_000).fit(X)
    names = [f"at midpoints, {name}" for name in PARAMETERS]
    first, *others = _beside(names, MIDPOINTS, _parameters(model), CRABS)
    yield replace(first, within=SHORT)
    yield from others


def _flowers() -> Iterator[Number]:
    """BIC as 2ℓ − q ln n of mixtures with free covariances."""
    X = load_iris().data
    ours = [-float(GaussianMixture(k, covariance_type="VVV").fit(X).bic(X)) for k in (2, 3)]
    yield from _beside([f"iris, BIC of {k} normals" for k in (2, 3)], ("-574.0178", "-580.8389"), ours, FISHER)
