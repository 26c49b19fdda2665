"""The figures of the site that move by a slider: what each frame shows, computed when the site is built.

Each function is one figure, named in a page by ``<!-- slider: its-name -->``; docs/site/static/figures.js draws it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, make_moons

import gramian
from gramian import PCA, GenotypePCA, KernelPCA, KernelRidge, RidgeCV
from gramian.analysis import procrustes
from gramian.genetics import simulate_europe
from gramian.kernels import Gaussian
from gramian.mixture import Maximiser, Mixture, MixtureRows, Prior

Figure = dict[str, Any]


def mark(kind: str, x: Any, y: Any, colour: int = 0, **more: Any) -> dict[str, Any]:
    """Points, a line or bars, with four digits."""
    four = [[float(f"{value:.4g}") for value in np.asarray(values, dtype=float).ravel()] for values in (x, y)]
    return {"kind": kind, "x": four[0], "y": four[1], "colour": colour, **more}


def axis(label: str, least: float, most: float, **more: Any) -> dict[str, Any]:
    """An axis from least to most."""
    return {"label": label, "min": least, "max": most, **more}


def power_method() -> Figure:
    """The vector of the power method, step by step, over rows in the plane."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2)) @ np.array([[1.3, 0.3], [0.0, 1.0]])
    X -= X.mean(axis=0)
    S = X.T @ X / len(X)
    values, vectors = np.linalg.eigh(S)
    first = vectors[:, -1] * np.sign(vectors[0, -1])
    ratio = values[0] / values[1]
    x = np.array([-0.6, 0.8])
    frames = []
    for step in range(13):
        angle = np.degrees(np.arccos(min(1.0, abs(float(x @ first)))))
        says = f"{angle:.3g}° from the first component; the variance along the vector is {x @ S @ x:.4f}"
        frames.append({"label": f"{step}", "says": f"{says} of at most {values[1]:.4f}.", "marks": [line_along(x, 1)]})
        x = S @ x / np.linalg.norm(S @ x)
        x = x * np.sign(x @ first)
    return {
        "caption": f"The power method: x ← Sx/‖Sx‖. The tangent of the angle shrinks by λ₂/λ₁ = {ratio:.2f} a step.",
        "slider": "Steps",
        "x": axis("first column", -4.4, 4.4),
        "y": axis("second column", -2.7, 2.7),
        "fixed": [mark("points", X[:, 0], X[:, 1], 6), {**line_along(first, 0), "dashed": True}],
        "frames": frames,
    }


def line_along(v: Any, colour: int) -> dict[str, Any]:
    """A line through the origin along a vector."""
    return mark("line", [-5 * v[0], 5 * v[0]], [-5 * v[1], 5 * v[1]], colour)


def components() -> Figure:
    """What is left of the digits with k components, and what the discarded eigenvalues say."""
    X = load_digits().data
    pca = PCA().fit(X)
    lost = 1 - np.cumsum(pca.explained_variance_ratio_)
    counts = np.arange(1, 65)
    total = float(pca.explained_variance_.sum())
    frames = [
        {
            "label": f"{k}",
            "says": f"{k} numbers for each image of 64 lose {max(lost[k - 1], 0.0):.1%} of the variance: "
            f"J = {max(lost[k - 1], 0.0) * total:.4g} of {total:.4g}.",
            "marks": [
                mark("bars", counts, np.where(counts <= k, pca.explained_variance_ratio_, 0.0), 0),
                mark("points", [k], [max(lost[k - 1], 0.0)], 1, size=7),
            ],
        }
        for k in (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64)
    ]
    return {
        "caption": "Digits: the share of each component (bars), and the share that is lost by keeping the first k.",
        "slider": "Components kept",
        "start": 5,
        "x": axis("component", 0, 65),
        "y": axis("share of the variance", 0, 1),
        "fixed": [mark("line", counts, np.maximum(lost, 0.0), 1, width=1.5)],
        "frames": frames,
    }


def kernel_bandwidth() -> Figure:
    """The first two kernel components of two half moons, as the bandwidth changes."""
    X, moon = make_moons(120, noise=0.05, random_state=0)
    frames = []
    for gamma in (0.01, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 25.0, 50.0, 150.0, 500.0):
        model = KernelPCA(2, kernel=Gaussian(gamma)).fit(X)
        Z = model.eigenvectors_ * np.sqrt(len(X))  # each score divided by its deviation
        best = max(
            max(np.mean((Z[:, 0] > cut) == moon), np.mean((Z[:, 0] <= cut) == moon))
            for cut in np.linspace(Z[:, 0].min(), Z[:, 0].max(), 80)
        )
        if gamma <= 0.1:
            why = "the kernel is nearly linear, and no line parts the moons"
        elif gamma < 150:
            why = "near points resemble each other, far ones do not"
        else:
            why = "hardly any two points resemble each other"
        says = f"One cut of the first score parts {best:.0%} of the points rightly: {why}."
        frames.append({"label": f"γ = {gamma:g}", "says": says, "marks": [points_of(Z, moon)]})
    return {
        "caption": "Two half moons by their first two kernel components, k(x, x′) = exp(−γ‖x − x′‖²).",
        "slider": "Bandwidth",
        "start": 7,
        "x": axis("first score, in deviations", -4, 4),
        "y": axis("second score, in deviations", -4, 4),
        "fixed": [],
        "frames": frames,
    }


def points_of(Z: Any, groups: Any) -> dict[str, Any]:
    """Points in two colours."""
    return mark("points", Z[:, 0], Z[:, 1], groups=[int(group) for group in groups])


def ridge_shrinkage() -> Figure:
    """What λ leaves of each direction, the degrees of freedom and the leave-one-out error."""
    X = load_iris().data
    D = X - X.mean(axis=0)
    y = D @ np.array([1.0, -1.0, 0.5, 2.0]) + 0.3 * np.random.default_rng(0).standard_normal(len(D))
    alphas = np.geomspace(1e-2, 1e4, 25)
    path = RidgeCV(alphas).fit(D, y).path_
    variances = path.singular_values**2
    grid = np.geomspace(1e-2, 1e4, 60)
    curves = [mark("line", grid, s / (s + grid), j, width=1.5) for j, s in enumerate(variances)]
    frames = [
        {
            "label": f"λ = {lam:.3g}",
            "says": f"df = {path.dof[i] - 1:.2f} of 4 and the intercept; kept of each direction: "
            + ", ".join(f"{share:.0%}" for share in variances / (variances + lam))
            + f"; leave-one-out error {path.loo[i, 0]:.3g}.",
            "marks": [
                mark("points", [lam], [share], j, size=6) for j, share in enumerate(variances / (variances + lam))
            ],
        }
        for i, lam in enumerate(alphas)
    ]
    return {
        "caption": "What λ leaves of each direction of four columns: σ²/(σ²+λ), the small directions first to go.",
        "slider": "Penalty",
        "start": 8,
        "x": axis("λ", 1e-2, 1e4, log=True),
        "y": axis("share kept", 0, 1.02, ticks=[0, 0.25, 0.5, 0.75, 1]),
        "fixed": curves,
        "frames": frames,
    }


def kernel_ridge_curve() -> Figure:
    """The curve of a kernel ridge regression as λ goes from interpolation to nothing."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 40))
    truth = np.sin
    y = truth(x) + 0.3 * rng.standard_normal(40)
    at = np.linspace(0, 10, 160)
    kernel = Gaussian(1.0)
    K = kernel(x[:, None])
    frames = []
    for lam in (1e-6, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0):
        model = KernelRidge(lam, kernel=kernel).fit(x[:, None], y)
        f = model.predict(at[:, None])
        residuals, size = y - K @ model.dual_coef_, float(model.dual_coef_ @ K @ model.dual_coef_)
        df = float(np.trace(np.linalg.solve(K + lam * np.eye(40), K)))
        error = float(np.sqrt(np.mean((f - truth(at)) ** 2)))
        says = f"df = {df:.1f}; ‖Kα − y‖² = {residuals @ residuals:.3g}, αᵀKα = {size:.3g}; "
        frames.append(
            {
                "label": f"λ = {lam:g}",
                "says": f"{says}{error:.2f} from the true curve (root mean square).",
                "marks": [mark("line", at, f, 1, width=2.6)],
            }
        )
    return {
        "caption": "Kernel ridge regression of 40 points: λ small follows every point, λ large falls to 0. "
        "Dashed: the curve that the points were drawn from.",
        "slider": "Penalty",
        "start": 6,
        "x": axis("x", 0, 10),
        "y": axis("y", -2.2, 2.2),
        "fixed": [
            mark("points", x, y, 6, size=4),
            {**mark("line", at, truth(at), 0, width=1.5), "dashed": True},
        ],
        "frames": frames,
    }


def bernoulli_likelihood() -> Figure:
    """The likelihood of a coin as flips come in."""
    flips = np.random.default_rng(3).random(200) < 0.6
    theta = np.linspace(0.005, 0.995, 199)
    frames = []
    for n in (1, 2, 3, 5, 10, 20, 50, 100, 200):
        H = int(flips[:n].sum())
        log = H * np.log(theta) + (n - H) * np.log(1 - theta)
        says = f"{H} heads of {n}: the likelihood is highest at θ = H/n = {H / n:.3f}."
        frames.append({"label": f"n = {n}", "says": says, "marks": [mark("line", theta, np.exp(log - log.max()), 0)]})
    return {
        "caption": "The likelihood of θ, relative to its highest value, as a coin with θ = 0.6 is flipped more often.",
        "slider": "Flips",
        "start": 4,
        "x": axis("θ, the probability of heads", 0, 1),
        "y": axis("relative likelihood", 0, 1.05, ticks=[0, 0.25, 0.5, 0.75, 1]),
        "fixed": [],
        "frames": frames,
    }


def em_steps() -> Figure:
    """EM on the petals of iris, from three poor means: ellipses and log-likelihood step by step."""
    X = load_iris().data[:, 2:]
    data = MixtureRows.of(gramian.open(X))
    maximise = Maximiser("VVV", Prior.floor(data))
    mixture = Mixture.of([1 / 3] * 3, [[2.0, 1.5], [4.0, 0.5], [6.0, 1.0]], np.stack([np.eye(2)] * 3))
    circle = np.linspace(0, 2 * np.pi, 49)
    frames, heights = [], []
    for step in range(61):
        stats = data.expect(mixture)
        heights.append(stats.log_likelihood)
        if step in (*range(13), 15, 20, 25, 30, 40, 50, 60):
            groups = [int(j) for j in np.argmax(mixture.responsibilities(X), axis=1)]
            marks = [mark("points", X[:, 0], X[:, 1], groups=groups)]
            for j, (mean, S) in enumerate(zip(mixture.means, mixture.matrices, strict=True)):
                values, vectors = np.linalg.eigh(S)
                ring = mean + 2 * (np.column_stack([np.cos(circle), np.sin(circle)]) * np.sqrt(values)) @ vectors.T
                marks.append(mark("line", ring[:, 0], ring[:, 1], j))
            says = f"Log-likelihood {stats.log_likelihood:.3f}; weights "
            says += ", ".join(f"{weight:.2f}" for weight in mixture.weights)
            here = [mark("points", [step], [stats.log_likelihood], 1, size=6)]
            frames.append({"label": f"step {step}", "says": f"{says}.", "marks": marks, "below": here})
        mixture = maximise(stats, mixture)
    return {
        "caption": "EM on the petals of 150 flowers: ellipses at two standard deviations, colours by the likeliest "
        "component. No step lowers the log-likelihood.",
        "slider": "EM",
        "x": axis("petal length", 0, 8),
        "y": axis("petal width", -0.6, 3.2),
        "fixed": [],
        "below": {
            "caption": "The log-likelihood after each step of EM, which rises to its end.",
            "x": axis("step", 0, 60),
            "y": axis("log-likelihood", 1.04 * heights[0], 0.5 * heights[-1], ticks=[-500, -400, -300, -200, -100]),
            "fixed": [mark("line", np.arange(61), heights, 0)],
        },
        "frames": frames,
    }


def genotype_map() -> Figure:
    """The map that two components draw, as more SNPs are read."""
    frames, rng = [], np.random.default_rng(0)
    with TemporaryDirectory() as folder:
        study = simulate_europe(Path(folder, "europe.bed"), 4000, people=240)
        countries = sorted(set(study.country))
        groups = [countries.index(country) % 7 for country in study.country]
        for m in (50, 100, 200, 500, 1000, 2000, 4000):
            model = GenotypePCA(2).fit(study.genotypes.select(snps=np.sort(rng.permutation(4000)[:m])))
            moved = procrustes(model.eigenvectors_, study.positions)
            placed = moved.apply(model.eigenvectors_)
            says = f"Procrustes correlation with the map: {moved.correlation:.2f}."
            dots = mark("points", placed[:, 0], placed[:, 1], groups=groups)
            frames.append({"label": f"{m} SNPs", "says": says, "marks": [dots]})
    low, high = study.positions.min(axis=0) - 3, study.positions.max(axis=0) + 3
    return {
        "caption": "240 simulated people of 30 countries, placed by two components of their genotypes.",
        "slider": "Read",
        "start": 6,
        "x": axis("east, in degrees of latitude", float(low[0]), float(high[0])),
        "y": axis("north", float(low[1]), float(high[1])),
        "fixed": [],
        "frames": frames,
    }
