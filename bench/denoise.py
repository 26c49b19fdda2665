"""Denoise handwritten digits by linear and by kernel PCA with every pre-image method: ``python -m bench.denoise``.

Components come from clean training images. Test images get noise, are projected on k components, and taken back to
pixels. The figure is the mean squared error from the clean image, and the share of rows that converged.
The bandwidth of the Gaussian kernel is a multiple of the median distance of the training images (``--width``).
"""

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from gramian import PCA
from gramian.display import ReconstructionDisplay
from gramian.kernel_pca.estimator import KernelPCA
from gramian.kernel_pca.preimages import fit_ridge_inverse, preimages, ridge_points
from gramian.kernels import Gaussian, Kernel, median_distance
from gramian.results import NumericalWarning

Array = NDArray[np.float64]

ROOT = Path(__file__).parents[1]
USPS = ROOT.parent / "shared" / "data" / "usps"
COUNTS = (16, 32, 64, 128, 256)
WIDTHS = (0.5, 0.7, 1.0, 1.5, 2.0)
SPECKLED = 0.2  # of the pixels, half of them white and half black
SEARCHES = ("fixed-point", "regularised", "mds")
COLUMNS = ("linear PCA", *SEARCHES, "ridge", "ridge of the scores")
ALPHA = 1.0
SHOWN = 12
HEAD = """\
# Denoising digits

`python -m bench.denoise`: components come from clean training images; test images get noise, are projected on k
components and taken back to pixels. The figures are mean squared errors from the clean images. Every row converged
unless a share is given. The kernel is Gaussian, its bandwidth a multiple of the median distance of the training images
(k = exp(−‖x − z‖²/2σ²)). "ridge" learns with the kernel of the images, as scikit-learn does, "ridge of the scores" with
a Gaussian kernel of the scores' own median distance, both with α = 1. Linear PCA with as many components as pixels
gives the noise back, and has no more.
"""


@dataclass(frozen=True)
class Images:
    """Clean training and test images, grey levels from ``low`` to ``high``."""

    name: str
    train: Array
    test: Array
    low: float
    high: float

    @property
    def side(self) -> int:
        """Pixels on each side."""
        return int(np.sqrt(self.train.shape[1]))

    def noisy(self, rng: np.random.Generator) -> dict[str, Array]:
        """Gaussian noise, its deviation a quarter of the range of grey levels, and salt and pepper."""
        gaussian = self.test + 0.25 * (self.high - self.low) * rng.standard_normal(self.test.shape)
        lot, speckled = rng.random(self.test.shape), self.test.copy()
        speckled[lot < SPECKLED] = self.high
        speckled[lot < SPECKLED / 2] = self.low
        return {"Gaussian": gaussian, "salt and pepper": speckled}


@dataclass(frozen=True)
class Model:
    """A kernel PCA cut to k components, with what pre-images need: P = φ̄ + Σ z v and its products with φ(x_i)."""

    kernel: Kernel
    X: Array
    alpha: Array
    offset: Array
    scores: Array
    means: Array
    mean_square: float

    def cut(self, k: int) -> "Model":
        """Keep the leading k."""
        parts = self.alpha[:, :k], self.offset[:k], self.scores[:, :k]
        return Model(self.kernel, self.X, *parts, self.means, self.mean_square)

    def transform(self, X: Array) -> Array:
        """Scores of new images."""
        return np.asarray(self.kernel(X, self.X) @ self.alpha - self.offset)

    def back(self, Z: Array, start: Array, method: str) -> tuple[Array, float]:
        """Pre-images of scores, and the share that converged; ‖P‖² and ⟨P, φ(x)⟩ follow from the scores."""
        G = Z @ self.alpha.T + 1.0 / len(self.X)
        products = self.means + Z @ (self.scores + self.offset).T
        norms = self.mean_square + 2 * Z @ self.offset + np.sum(Z**2, axis=1)
        found = preimages(self.kernel, self.X, G, method=method, start=start, products=products, norms=norms)
        return found.points, float(found.converged.mean())


def sets(rows: int, test: int, seed: int) -> Iterator[Images]:
    """Yield scikit-learn's digits, and USPS where it is there."""
    rng = np.random.default_rng(seed)
    digits = load_digits().data / 16.0
    digits = digits[rng.permutation(len(digits))]
    yield Images("scikit-learn's 8×8 digits", digits[:1197], digits[1197 : 1197 + test], 0.0, 1.0)
    if (USPS / "train.npz").exists():
        train, new = (np.load(USPS / f"{part}.npz")["X"].astype(np.float64) for part in ("train", "test"))
        chosen = rng.permutation(len(train))[:rows], rng.permutation(len(new))[:test]
        yield Images("USPS, 16×16", train[chosen[0]], new[chosen[1]], -1.0, 1.0)


def fitted(images: Images, width: float) -> Model:
    """Fit kernel PCA with all the components of the table."""
    kernel = Gaussian(bandwidth=width * median_distance(images.train))
    model = KernelPCA(max(COUNTS), kernel=kernel, tol=1e-8).fit(images.train)
    means = np.asarray(kernel(images.train).mean(axis=0))
    return Model(
        kernel,
        images.train,
        model.dual_coefficients_,
        model.offset_,
        model.transform(images.train),
        means,
        float(means.mean()),
    )


def linear(images: Images, noisy: Array, k: int) -> Array | None:
    """Project on k principal components of the pixels, if there are as many."""
    if k > images.train.shape[1]:
        return None
    pca = PCA(n_components=k).fit(images.train)
    return np.asarray(pca.inverse_transform(pca.transform(noisy)))


def denoised(images: Images, noisy: Array, model: Model) -> dict[str, tuple[Array | None, float]]:
    """Return the images of every column, and the share of rows that converged."""
    Z, own = model.transform(noisy), Gaussian(bandwidth=median_distance(model.scores))
    found: dict[str, tuple[Array | None, float]] = {COLUMNS[0]: (linear(images, noisy, Z.shape[1]), 1.0)}
    found |= {method: model.back(Z, noisy, method) for method in SEARCHES}
    for name, kernel in zip(COLUMNS[4:], (model.kernel, own), strict=True):
        dual = fit_ridge_inverse(kernel, model.scores, model.X, ALPHA)
        found[name] = ridge_points(kernel, model.scores, dual, Z), 1.0
    return found


def cell(images: Images, result: tuple[Array | None, float]) -> str:
    """Return the mean squared error, and the share converged where it is not all."""
    points, share = result
    if points is None:
        return "–"
    error = f"{np.mean((points - images.test) ** 2):.4f}"
    return error if share == 1.0 else f"{error} ({share:.0%} converged)"


def table(images: Images, noisy: Array, model: Model) -> list[str]:
    """Return the lines of a table, one for each number of components."""
    lines = ["| components | " + " | ".join(COLUMNS) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for k in COUNTS:
        found = denoised(images, noisy, model.cut(k))
        lines.append(f"| {k} | " + " | ".join(cell(images, found[name]) for name in COLUMNS) + " |")
    return lines


def widths(images: Images, noises: dict[str, Array]) -> list[str]:
    """Return a table of the regularised fixed point and of MDS by the bandwidth, at 64 and 256 components."""
    tried = [(k, method, noise) for noise in noises for k in (64, 256) for method in ("regularised", "mds")]
    lines = ["| width | " + " | ".join(f"{noise}: {m}, {k}" for k, m, noise in tried) + " |"]
    lines.append("|---" * (1 + len(tried)) + "|")
    for width in WIDTHS:
        model, found = fitted(images, width), []
        for k, method, noise in tried:
            part = model.cut(k)
            found.append(cell(images, part.back(part.transform(noises[noise]), noises[noise], method)))
        lines.append(f"| {width:g} | " + " | ".join(found) + " |")
    return lines


def picture(images: Images, noises: dict[str, Array], model: Model, k: int, path: Path) -> None:
    """Draw a dozen test images: clean, with each noise, and denoised by linear PCA and three pre-images."""
    ways = {}
    for name, noisy in noises.items():
        found = denoised(images, noisy, model.cut(k))
        ways[name] = noisy[:SHOWN]
        for method in ("linear PCA", "regularised", "mds", "ridge of the scores"):
            points = found[method][0]
            if points is not None:
                ways[f"{method} ({name[0].lower()})"] = points[:SHOWN]
    shape = (images.side, images.side)
    ReconstructionDisplay.from_predictions(images.test[:SHOWN], ways, image_shape=shape).save(path)


def study(images: Images, options: argparse.Namespace) -> list[str]:
    """Return one data set's part of the report; its picture is saved beside it."""
    noises = images.noisy(np.random.default_rng(options.seed + 1))
    model = fitted(images, options.width)
    lines = [f"## {images.name}", "", f"{len(images.train)} training and {len(images.test)} test images."]
    lines[-1] += f" {model.kernel!r}: {options.width:g} × the median distance."
    for name, noisy in noises.items():
        error = np.mean((noisy - images.test) ** 2)
        lines += [
            "",
            f"{name.capitalize()} noise, mean squared error {error:.4f} before:",
            "",
            *table(images, noisy, model),
        ]
    lines += ["", "By the bandwidth, as a multiple of the median distance:", "", *widths(images, noises), ""]
    name = f"denoise-{options.date}-{images.side}x{images.side}.png"
    k = images.side**2 // 2
    picture(images, noises, model, k, options.out / name)
    note = f"{SHOWN} of the test images (the errors are theirs alone), with noise and denoised by {k} components:"
    return [*lines, note, "", f"![Digits with noise, and denoised]({name})", ""]


def main() -> None:
    """Read the command line, run, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.denoise", description=__doc__)
    parser.add_argument("--rows", type=int, default=4000, help="training images of USPS")
    parser.add_argument("--test", type=int, default=300, help="test images of each set")
    parser.add_argument("--width", type=float, default=1.0, help="bandwidth over the median distance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--date", default="2026-11-15", help="in the names of the files")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results")
    options = parser.parse_args()
    warnings.simplefilter("ignore", NumericalWarning)  # the table says how many rows converged
    text = [HEAD]
    for images in sets(options.rows, options.test, options.seed):
        text += study(images, options)
        print("\n".join(text))
    (options.out / f"denoise-{options.date}.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
