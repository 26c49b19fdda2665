"""Pictures and reference numbers of ``gramian demo``: what each draws or computes, in the order of the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, load_iris, make_circles, make_moons, make_swiss_roll
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gramian import (
    PCA,
    GaussianMixture,
    GenotypePCA,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    RidgeClassifier,
    RidgeCV,
    likelihood,
    rank_advice,
)
from gramian.analysis import procrustes
from gramian.display import (
    BinnedMixtureDisplay,
    EmbeddingDisplay,
    KernelFieldDisplay,
    MapDisplay,
    MixtureDisplay,
    PredictionBandDisplay,
    ProfileDisplay,
    ReconstructionDisplay,
    RidgePathDisplay,
    ScoreDisplay,
    ScreeDisplay,
)
from gramian.display.base import GRID, PALETTE, new_axes
from gramian.genetics.simulation import simulate_europe
from gramian.kernels import Gaussian
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

Drawn = tuple[Any, Any, str]  # a picture, what was fitted, and what came out


def iris() -> Drawn:
    r"""Iris: four measurements of 150 flowers

    The directions along which the data vary most are the eigenvectors of their covariance matrix, equally the right
    singular vectors of the centred table. A flower's scores are its coordinates along them.

    S = \frac{1}{n-1}\sum_i (x_i-\bar{x})(x_i-\bar{x})^\top, \quad S v_j = \lambda_j v_j,
    \quad z_{ij} = (x_i-\bar{x})^\top v_j

    Iris flowers at their first two scores; setosa lies apart, versicolor and virginica touch.
    """
    data = load_iris()
    pca = PCA(scale=True).fit(data.data)
    picture = ScoreDisplay.from_estimator(pca, data.data, labels=data.target_names[data.target], ellipse="rows")
    kept = float(pca.explained_variance_ratio_[:2].sum())
    found = f"Two directions hold {kept:.1%} of the variance of four; the species, which the fit never saw, come apart."
    return picture, pca, found


def digit_scores() -> Drawn:
    r"""Digits: 1,797 images of 8 × 8 pixels

    An image is a point in 64 dimensions. No projection on a plane spreads these points more than this one.

    \max_{V^\top V = I} \|X V\|^2 = \sum_{j\leq k} \sigma_j^2, \quad X = U \Sigma V^\top

    Digits at their first two scores, coloured by digit; zeros, fours and sixes form groups.
    """
    X, digit = load_digits(return_X_y=True)
    pca = PCA(2).fit(X)
    picture = ScoreDisplay.from_estimator(pca, X, labels=digit)
    kept = float(pca.explained_variance_ratio_.sum())
    return picture, pca, f"Two of 64 coordinates hold {kept:.1%} of the variance, and equal digits already gather."


def digit_rank() -> Drawn:
    r"""How many components?

    Every component takes its share of the variance. How many rise above the noise, eight rules answer in their own
    ways; the dotted line is what shuffled pixels reach.

    \frac{\lambda_j}{\sum_i \lambda_i}, \quad \lambda_j = \frac{\sigma_j^2}{n-1}

    Shares of variance of 64 components with their running sum, and below how many each rule keeps.
    """
    X = load_digits().data
    pca = PCA().fit(X)
    advice = rank_advice(X)
    picture = ScreeDisplay.from_estimator(pca, advice=advice)
    most = int(np.searchsorted(np.cumsum(pca.explained_variance_ratio_), 0.95)) + 1
    above = advice.choices["parallel"].n_components
    found = f"{most} of 64 components hold 95% of the variance; {above} of them hold more than shuffled pixels would."
    return picture, pca, found


def digit_images() -> Drawn:
    r"""What k components keep

    The best image with k numbers is the mean image plus k components. What is lost is the variance of the rest.

    \hat{x} = \bar{x} + \sum_{j\leq k} z_j v_j, \quad \sum_i \|x_i-\hat{x}_i\|^2 = (n-1)\sum_{j>k} \lambda_j

    Four digits rebuilt from 1, 2, 4, 8, 16 and 32 components, ever sharper.
    """
    X = load_digits().data
    pca = PCA(32).fit(X)
    images, counts = X[[0, 11, 22, 63]], (1, 2, 4, 8, 16, 32)
    picture = ReconstructionDisplay.from_estimator(pca, images, image_shape=(8, 8), counts=counts)
    few, half = picture.lost_["k = 8"], picture.lost_["k = 32"]
    found = f"Of these four images 8 numbers lose {few:.1%}, and half the numbers, 32 of 64, {half:.1%}."
    return picture, pca, found


def power_method() -> Drawn:
    r"""The power method

    The oldest way to the first component: multiply any vector by the covariance matrix, over and over. What is not
    along the component shrinks, in every step by the ratio of the second eigenvalue to the first.

    x \leftarrow \frac{S x}{\|S x\|}, \quad \tan\angle(x_t, v_1) \leq \left(\frac{\lambda_2}{\lambda_1}\right)^t
    \tan\angle(x_0, v_1)

    The angle to the first component on a logarithmic scale, falling along the straight line that theory gives.
    """
    X = load_digits().data
    pca = PCA(2, svd_solver="power", tol=1e-10).fit(X)
    first, S, x = pca.components_[0], np.cov(X.T), np.ones(X.shape[1])
    angles = []
    for _ in range(61):
        x = x / np.linalg.norm(x)
        # eq: power-rate
        angles.append(float(np.linalg.norm(x - first * (first @ x)) / abs(first @ x)))
        x = S @ x
    ratio = float(pca.explained_variance_[1] / pca.explained_variance_[0])
    picture = new_axes(None, (6.4, 4.0))
    picture.semilogy(angles, "o", color=PALETTE[0], markersize=4, label="found")
    picture.semilogy(angles[0] * ratio ** np.arange(61), "--", color=PALETTE[1], label="bound")
    picture.set(xlabel="multiplications", ylabel="tangent of the angle to the first component")
    picture.grid(color=GRID)
    picture.legend(frameon=False)
    found = f"The second eigenvalue is {ratio:.3f} of the first: after 60 steps the tangent is {angles[-1]:.1e}."
    return picture, pca, found


def digit_names(counts: Sequence[int] = (1, 2, 4, 8, 16, 32, 48)) -> Drawn:
    r"""Digits named from their scores

    PCA as the first step of a pipeline: its scores, each divided by its deviation, are what a classifier sees.

    w = \Lambda^{-1/2} V_k^\top (x-\bar{x}), \quad \max_c\, p(c \mid w)

    Share of unseen digits named right, rising with the number of components and level from sixteen on.
    """
    X, digit = load_digits(return_X_y=True)
    train, test, name, true_name = train_test_split(X, digit, test_size=0.25, random_state=0, stratify=digit)
    pipelines = [make_pipeline(PCA(k, whiten=True), LogisticRegression(max_iter=2000)) for k in counts]
    shares = [float(pipeline.fit(train, name).score(test, true_name)) for pipeline in pipelines]
    picture = new_axes(None, (6.4, 4.0))
    picture.plot(counts, shares, "o-", color=PALETTE[0], linewidth=2)
    picture.set(xlabel="components kept", ylabel="unseen digits named right", ylim=(0, 1.03))
    picture.yaxis.set_major_formatter("{x:.0%}")
    picture.grid(color=GRID)
    scores = ", ".join(f"{share:.1%} from {k}" for k, share in zip(counts, shares, strict=True))
    return picture, pipelines[-1][0], f"Of 450 unseen digits logistic regression names right: {scores} scores."


def moons() -> Drawn:
    r"""Two half moons

    Where no straight line separates what belongs together, features φ(x) may. They need not be computed: their inner
    products k(x, x′) are enough, centred. A line on the plane joins points with the same first score.

    k(x,x') = \exp(-\gamma\|x-x'\|^2), \quad \tilde{K} = K - 1K - K1 + 1K1, \quad \tilde{K}a = \lambda a,
    \quad \lambda a^\top a = 1

    Two half moons with the level lines of the first component, which follow their shapes.
    """
    X, moon = make_moons(200, noise=0.05, random_state=0)
    model = KernelPCA(2, kernel=Gaussian(15.0)).fit(X)
    picture = KernelFieldDisplay.from_estimator(model, X, labels=moon)
    found = "The first score is positive on one moon and negative on the other: its sign tells them apart."
    return picture, model, found


def circles() -> Drawn:
    r"""A circle within a circle

    New points are placed by the same weights, their row of the kernel centred with the means of the old ones.

    z(x) = \sum_i a_i \tilde{k}(x,x_i)

    Left two concentric rings, right their scores: two separate bands.
    """
    X, circle = make_circles(400, factor=0.3, noise=0.05, random_state=0)
    model = KernelPCA(2, kernel=Gaussian(2.0)).fit(X)
    picture = EmbeddingDisplay.from_estimator(model, X, labels=circle)
    return picture, model, "Rings that no line can part lie on two sides of one after the Gaussian kernel."


def swiss_roll() -> Drawn:
    r"""A rolled-up sheet

    Points on a sheet that is rolled up in space; the colour is the place along the sheet. A Gaussian kernel sees near
    neighbours only, so it follows the sheet and not the straight line across.

    k(x,x') \approx 0 \quad\mathrm{where}\;\|x-x'\|^2 > \frac{5}{\gamma}

    Left a spiral sheet in space, right its scores, whose colours run along two arms.
    """
    X, along = make_swiss_roll(800, random_state=123)
    model = KernelPCA(2, kernel=Gaussian(0.1)).fit(X)
    picture = EmbeddingDisplay.from_estimator(model, X, labels=along)
    found = "The inner turn of the sheet unrolls along two arms, in the order of its colours; the others stay together."
    return picture, model, found


def without_noise(seen: int = 1500) -> Drawn:
    r"""Digits without noise

    A noisy image is projected on the components in feature space, and the image whose features are nearest to the
    projection is looked for: its pre-image. The fit has not seen these digits.

    \min_z \|\phi(z) - P\phi(x)\|^2

    Five digits: clean, with noise, cleaned by PCA, and cleaner by kernel PCA.
    """
    X = load_digits().data / 16
    train, test = X[:seen], X[1500:]
    noisy = test + 0.25 * np.random.default_rng(0).standard_normal(test.shape)
    pca = PCA(16).fit(train)  # the number of components with which linear PCA does best here
    model = KernelPCA(32, kernel=Gaussian("median"), inverse="regularised").fit(train)
    ways = {"noisy": noisy, "PCA": pca.inverse_transform(pca.transform(noisy)), "kernel PCA": model.denoise(noisy)}
    shown = {name: images[:5] for name, images in ways.items()}
    picture = ReconstructionDisplay.from_predictions(test[:5], shown, image_shape=(8, 8), mean=pca.mean_)
    lost = ", ".join(f"{name} {share:.0%}" for name, share in picture.lost_.items())
    errors = ", ".join(f"{name} {float(np.mean((images - test) ** 2)):.4f}" for name, images in ways.items())
    return picture, model, f"Lost of these five digits: {lost}. Mean squared errors over all 297 unseen ones: {errors}."


def ridge_path() -> Drawn:
    r"""What λ does

    Ridge regression shrinks each direction of the data by its own factor. One decomposition gives the coefficients for
    every λ, and the error of predicting each row from all others.

    \hat{\beta}_\lambda = V\,\mathrm{diag}\left(\frac{\sigma}{\sigma^2+\lambda}\right) U^\top y,
    \quad \mathrm{df}_\lambda = \sum_j \frac{\sigma_j^2}{\sigma_j^2+\lambda}, \quad \frac{e_i}{1-H_{ii}}

    Coefficients of ten variables shrinking as λ grows, the share kept of each direction, and three criteria.
    """
    data = load_diabetes()
    X = data.data / data.data.std(axis=0)
    model = RidgeCV(np.logspace(-2, 5, 60)).fit(X, data.target)
    picture = RidgePathDisplay.from_estimator(model, names=data.feature_names)
    found = f"Leave-one-out errors, all 442 from one decomposition, choose λ = {model.alpha_:.3g} of 60."
    return picture, model, found


def curve() -> Drawn:
    r"""A curve with its certified band

    The same with features known by their inner products alone. The wide band is where new observations fall; the dashed
    line is the bound that the residual r proves for the arithmetic, far thinner than it can be drawn.

    (K+\lambda I)\alpha = y, \quad f(x) = \sum_i \alpha_i k(x,x_i),
    \quad |\hat{f}(x)-f(x)| \leq \frac{\|\phi(x)\|\|r\|}{2\sqrt{\lambda}}

    A damped wave through 120 noisy points, with the band in which 95% of new observations fall.
    """
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 120))
    y = np.sin(x) * np.exp(-x / 8) + 0.1 * rng.standard_normal(120)
    model = KernelRidgeCV(np.logspace(-4, 1, 20), gamma=[0.03, 0.1, 0.3, 1.0, 3.0]).fit(x[:, None], y)
    picture = PredictionBandDisplay.from_estimator(model, x, y, bound=True)
    noise, best = float(model.noise_variance_) ** 0.5, f"γ = {model.gamma_:.3g}, λ = {model.alpha_:.3g}"
    return picture, model, f"Of 100 pairs {best} predict best; the noise, which is 0.1, is found as {noise:.3f}."


def curves() -> Drawn:
    r"""What λ does to a curve

    The same points with three penalties. A small one lets the curve follow every point, a large one keeps the
    smoothest part and in the end nothing; in between lies the wave that the points were drawn from.

    \min_\alpha\, \|K\alpha-y\|^2 + \lambda\,\alpha^\top K\alpha, \quad (K^2+\lambda K)\,\alpha = K y

    Three curves through forty points: one restless, one near the true wave, one almost flat.
    """
    rng = np.random.default_rng(0)
    x, at = np.sort(rng.uniform(0, 10, 40))[:, None], np.linspace(0, 10, 400)[:, None]
    y = np.sin(x[:, 0]) + 0.3 * rng.standard_normal(40)
    models = [KernelRidge(lam, kernel=Gaussian(1.0)).fit(x, y) for lam in (30.0, 1.0, 1e-4)]
    picture = new_axes(None, (6.4, 4.0))
    picture.plot(x, y, "o", color="#888888", markersize=5)
    picture.plot(at, np.sin(at), ":", color="#888888", label="true")
    for model, color, style in zip(models, PALETTE, ("-", "--", "-."), strict=False):
        picture.plot(at, model.predict(at), style, color=color, linewidth=2, label=f"λ = {model.alpha:g}")
    picture.set(xlabel="x", ylabel="y", ylim=(-2.2, 2.2))
    picture.grid(color=GRID)
    picture.legend(frameon=False, ncols=4)
    errors = [float(np.sqrt(np.mean((model.predict(at) - np.sin(at[:, 0])) ** 2))) for model in models]
    found = ", ".join(f"{error:.2f} with λ = {m.alpha:g}" for error, m in zip(errors, models, strict=True))
    return picture, models[1], f"From the true wave the curves are off by {found} (root mean square)."


def boundary() -> Drawn:
    r"""A boundary that is not a line

    A function that is linear in features is not linear in x: its sign parts the plane along a curve.

    f(x) = \sum_i \alpha_i k(x,x_i) + b, \quad \{x : f(x) = 0\}

    Two rings of points and a closed curve between them, with a straight line that cuts through both.
    """
    X, ring = make_circles(200, noise=0.08, factor=0.5, random_state=0)
    straight = RidgeClassifier(1.0).fit(X, ring)
    model = KernelRidgeClassifier([0.1], kernel="rbf", gamma=[1.0]).fit(X, ring)
    side = np.linspace(-1.4, 1.4, 120)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    picture = new_axes(None, (5.4, 5.0))
    for value, mark in ((0, "o"), (1, "s")):
        picture.plot(*X[ring == value].T, mark, color=PALETTE[value], markersize=4)
    for classifier, style in ((model, "solid"), (straight, "dashed")):
        field = classifier.decision_function(grid).reshape(120, 120)
        picture.contour(side, side, field, levels=[0.0], colors="#444444", linestyles=style)
    picture.set(xlabel="x₁", ylabel="x₂", aspect="equal")
    right = [f"{classifier.score(X, ring):.0%}" for classifier in (model, straight)]
    return picture, model, f"The curve has {right[0]} of the points on the right side, the straight line {right[1]}."


def coin() -> Drawn:
    r"""A coin, ten thousand times

    The parameter that makes what was seen most likely. John Kerrich, interned in Denmark during the Second World War,
    tossed a coin 10,000 times and saw 5,067 heads.

    \max_\theta\, \sum_i \ln p_\theta(x_i), \quad p_\theta(x) = \theta^x (1-\theta)^{1-x},
    \quad \hat{\theta} = \frac{H}{n}

    The deviance of the probability of heads, a parabola with its least value at 0.5067.
    """
    estimate = likelihood.fit("bernoulli", np.repeat([1, 0], [5067, 4933]))
    picture = ProfileDisplay.from_estimator(estimate)
    picture.ax_.set_xlabel("θ, the probability of heads")
    low, high = picture.intervals_["theta"]
    found = f"θ = {estimate['theta']:.4f}, with 95% confidence from {low:.4f} to {high:.4f}: the coin may well be fair."
    return picture, estimate, found


def crabs() -> Drawn:
    r"""Pearson's crabs

    In 1894 Karl Pearson asked whether the crabs of Naples were one kind or two. A thousand had been counted in 29
    classes; the likelihood is that of the counts, the first and last class open.

    \max_{\pi,\mu,\sigma}\, \sum_b n_b \ln \sum_k \pi_k P(x \in b \mid \mu_k,\sigma_k)

    Counts of crabs in 29 classes with two normal curves and their sum, which leans to the left.
    """
    model = GaussianMixture(2, covariance_type="V").fit_binned(CRAB_EDGES, CRAB_COUNTS)
    picture = BinnedMixtureDisplay.from_estimator(model, CRAB_EDGES, CRAB_COUNTS, name="forehead / body length")
    share, mean = model.weights_, model.means_[:, 0]
    kinds = " and ".join(f"{share[k]:.0%} around {mean[k]:.4f}" for k in np.argsort(mean))
    return picture, model, f"Two kinds of crab explain the counts: {kinds}."


def petals() -> Drawn:
    r"""Petals: three kinds in a plane

    A density as a sum of normal ones: of each flower we learn the probability that it belongs to each component. The
    species were not used. Ellipses lie at one and two standard deviations.

    p(x) = \sum_k \pi_k N(x;\mu_k,\Sigma_k), \quad P(k \mid x) = \frac{\pi_k N(x;\mu_k,\Sigma_k)}{p(x)}

    Petals of 150 flowers by length and width, in three groups with their ellipses and the level lines of the density.
    """
    data = load_iris()
    X = data.data[:, 2:]
    model = GaussianMixture(3, random_state=0).fit(X)
    names = ["petal length", "petal width"]
    picture = MixtureDisplay.from_predictions(model.mixture_, rows=X, assigned=model.predict(X), names=names)
    table = np.zeros((3, 3), dtype=int)
    np.add.at(table, (data.target, model.predict(X)), 1)
    found = f"{table.max(axis=1).sum()} of 150 flowers lie with most of their species, which the fit never saw."
    return picture, model, found


def drawn() -> Drawn:
    r"""Petals that never grew

    A mixture can be drawn from: first the component, then a point of its normal distribution. If the model is right,
    what is drawn looks like what was measured.

    P(Y=k) = \pi_k, \quad X \mid Y=k \sim N(\mu_k,\Sigma_k)

    A hundred and fifty petals drawn from a fitted mixture, in its ellipses: three groups like those of the real ones.
    """
    X = load_iris().data[:, 2:]
    model = GaussianMixture(3, random_state=0).fit(X)
    rows, component = model.sample(150)
    names = ["petal length", "petal width"]
    picture = MixtureDisplay.from_predictions(model.mixture_, rows=rows, assigned=component, names=names)
    real, made = (float(np.corrcoef(table.T)[0, 1]) for table in (X, rows))
    return (
        picture,
        model,
        f"Length and width correlate by {real:.3f} in the flowers and by {made:.3f} in what was drawn.",
    )


def europe(people: int = 1400, n_snps: int = 20_000) -> Drawn:
    r"""Genes mirror geography

    People are simulated around thirty countries, with allele frequencies that vary smoothly over the map. From their
    genotypes alone, 0, 1 or 2 copies of an allele at each place, PCA finds where they live. An arrow leads from the
    true place of a country to the middle of its people.

    z_{ij} = \frac{g_{ij}-2p_j}{\sqrt{p_j(1-p_j)}}, \quad \frac{Z Z^\top}{M} u = \lambda u,
    \quad \min_{R,s,t}\, \sum_i \|s u_i R + t - m_i\|^2

    Simulated people as points on a plane, in the colours of their countries, arranged like the map of Europe.
    """
    with TemporaryDirectory() as folder:
        study = simulate_europe(Path(folder, "europe.bed"), n_snps, people=people)
        model = GenotypePCA(2).fit(study.genotypes)
    scores, places = model.eigenvectors_, study.positions
    moved = procrustes(scores, places, n_permutations=999, random_state=0)
    names = ("east, in degrees of latitude", "north")
    picture = MapDisplay.from_alignment(moved, scores, places, labels=study.country, names=names)
    picture.ax_.set_title(f"Simulated people, Procrustes correlation {moved.correlation:.3f}", loc="left")
    size = f"{people:,} people of 30 countries × {model.components_.shape[1]:,} SNPs"
    found = f"Simulated: {size}. The map and the first two components have a Procrustes correlation of "
    found += f"{moved.correlation:.3f} (p = {moved.p_value:.3f}, 999 permutations)."
    return picture, model, found


# Title and first sentence of each chapter, and its pictures.
CHAPTERS: dict[tuple[str, str], Sequence[Callable[..., Drawn]]] = {
    ("Components", "Directions in which data vary."): (
        iris, digit_scores, digit_rank, digit_images, power_method, digit_names,
    ),
    ("Components that bend", "The same in a space of features, by inner products alone."): (
        moons, circles, swiss_roll, without_noise,
    ),
    ("Regression", "What is predicted, how much is shrunk, and how sure it is."): (ridge_path, curve, curves, boundary),
    ("Likelihood", "Parameters that make the data most likely."): (coin, crabs, petals, drawn),
    ("A map from genes", "Simulated people, real mathematics."): (europe,),
}  # fmt: skip

# Arguments with which a picture is a matter of a second.
QUICK: dict[str, dict[str, Any]] = {
    "digit_names": {"counts": (2, 8, 16)},
    "without_noise": {"seen": 700},
    "europe": {"people": 400, "n_snps": 3000},
}


# Reference numbers, in print or recomputed, each compared with ours digit by digit


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
    >>> from gramian.cli.demo_content import Number
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
    >>> from gramian.cli.demo_content import compare_numbers
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
    yield CRABS, _compare_binned_crabs()
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
