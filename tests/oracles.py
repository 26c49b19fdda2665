"""Slow and obviously right twins that the tests compare with."""

from collections.abc import Callable
from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

Array = NDArray[Any]
EPS = float(np.finfo(np.float64).eps)
# The identity keeps data as they are; other entries of a table of input kinds convert them.
Convert = Callable[[Array], Any]


@dataclass(frozen=True)
class Exact:
    """Principal components rounded to double precision only at the very end."""

    mean: Array
    scale: Array
    variances: Array
    singular_values: Array
    components: Array

    @property
    def ratios(self) -> Array:
        """Fractions of the total variance, in descending order."""
        return np.asarray(self.variances / self.variances.sum())


def exact_pca(X: ArrayLike, weights: ArrayLike | None = None, scale: bool = False) -> Exact:
    """PCA with 50 digits of the very numbers in X, by the eigenvectors of the p×p scatter matrix."""
    data = np.asarray(X)
    with mpmath.workdps(50):
        rows = [[mpmath.mpf(float(x)) for x in row] for row in data]
        w = [mpmath.mpf(1)] * len(rows) if weights is None else [mpmath.mpf(float(v)) for v in np.asarray(weights)]
        mean, spread, scatter = _scatter(rows, w, scale)
        values, vectors = mpmath.eigsy(scatter)
        order = sorted(range(len(values)), key=lambda i: -values[i])
        top = [max(values[i], mpmath.mpf(0)) for i in order]
        freedom = mpmath.fsum(w) - 1
        return Exact(
            mean=_floats(mean),
            scale=_floats(spread),
            variances=_floats([v / freedom for v in top]),
            singular_values=_floats([mpmath.sqrt(v) for v in top]),
            components=fix_signs(np.array([_floats(list(vectors[:, j])) for j in order])),
        )


def _scatter(rows: list[list[Any]], w: list[Any], scale: bool) -> tuple[list[Any], list[Any], Any]:
    """Weighted mean, column standard deviations (or ones) and Σ w (x−x̄)(x−x̄)ᵀ of the scaled data."""
    p, total = len(rows[0]), mpmath.fsum(w)
    mean = [mpmath.fsum(v * row[j] for v, row in zip(w, rows, strict=True)) / total for j in range(p)]
    centred = [[row[j] - mean[j] for j in range(p)] for row in rows]
    spread = [mpmath.mpf(1)] * p
    if scale:
        spread = [
            mpmath.sqrt(mpmath.fsum(v * r[j] ** 2 for v, r in zip(w, centred, strict=True)) / (total - 1))
            for j in range(p)
        ]
    scatter = mpmath.matrix(p, p)
    for i in range(p):
        for j in range(i + 1):
            dot = mpmath.fsum(v * r[i] * r[j] for v, r in zip(w, centred, strict=True))
            scatter[i, j] = scatter[j, i] = dot / (spread[i] * spread[j])
    return mean, spread, scatter


def _floats(values: list[Any]) -> Array:
    return np.array([float(v) for v in values])


@dataclass(frozen=True)
class Naive:
    """PCA as a textbook writes it, for data that behave."""

    mean: Array
    variances: Array
    singular_values: Array
    components: Array


def naive_pca(X: ArrayLike, weights: ArrayLike | None = None, scale: bool = False) -> Naive:
    """Centre, scale, weight, and call NumPy's SVD."""
    data = np.asarray(X, dtype=np.float64)
    w = np.ones(len(data)) if weights is None else np.asarray(weights, dtype=np.float64)
    mean = w @ data / w.sum()
    A = centred(data, w, scale)
    _, values, right = np.linalg.svd(A, full_matrices=False)
    return Naive(mean, values**2 / (w.sum() - 1), values, fix_signs(right))


def centred(X: ArrayLike, weights: ArrayLike | None = None, scale: bool = False) -> Array:
    """√w (x − x̄) / s, the matrix whose singular triplets PCA computes."""
    data = np.asarray(X, dtype=np.float64)
    w = np.ones(len(data)) if weights is None else np.asarray(weights, dtype=np.float64)
    shift = data[0]  # keeps the digits of data far from the origin
    rest = (data - shift) - w @ (data - shift) / w.sum()
    if scale:
        rest = rest / np.sqrt(w @ rest**2 / (w.sum() - 1))
    return np.asarray(np.sqrt(w)[:, None] * rest)


def minka_dimension(variances: ArrayLike, n: int) -> int:
    """The dimension of highest evidence, eq. (30) of Minka (2000), written as in the paper."""
    values = np.asarray(variances, dtype=np.float64)
    d = len(values)
    evidence = [-np.inf] + [_minka_evidence(values, k, n) for k in range(1, d)]
    return int(np.argmax(evidence))


def _minka_evidence(values: Array, k: int, n: int) -> float:
    d = len(values)
    v = values[k:].mean()
    log_uniform = -k * log(2) + sum(lgamma((d - i) / 2) - log(pi) * (d - i) / 2 for i in range(k))
    m = d * k - k * (k + 1) / 2
    hat = np.concatenate([values[:k], np.full(d - k, v)])
    pairs = [(i, j) for i in range(k) for j in range(i + 1, d)]
    log_az = sum(log((1 / hat[j] - 1 / hat[i]) * (values[i] - values[j]) * n) for i, j in pairs)
    fit = -n / 2 * np.log(values[:k]).sum() - n * (d - k) / 2 * log(v)
    return float(log_uniform + fit + (m + k) / 2 * log(2 * pi) - log_az / 2 - k / 2 * log(n))


def fix_signs(components: Array) -> Array:
    """Make the entry of largest magnitude in every row positive."""
    rows = np.arange(len(components))
    signs = np.sign(components[rows, np.abs(components).argmax(axis=1)])
    return np.asarray(components * np.where(signs == 0, 1.0, signs)[:, None])


def subspace_sine(V: ArrayLike, W: ArrayLike) -> float:
    """Sine of the largest angle from the rows of V to the span of the rows of W."""
    basis = np.linalg.qr(np.asarray(W, dtype=np.float64).T)[0]
    rest = np.asarray(V, dtype=np.float64).T
    return float(np.linalg.norm(rest - basis @ (basis.T @ rest), 2))


def residuals(A: Array, components: ArrayLike, values: ArrayLike) -> Array:
    """√(‖Av−σu‖² + ‖Aᵀu−σv‖²)/‖A‖ for each pair, with u the direction of Av."""
    V, sigma = np.asarray(components, dtype=np.float64).T, np.asarray(values, dtype=np.float64)
    AV = A @ V
    lengths = np.linalg.norm(AV, axis=0)
    U = np.divide(AV, lengths, out=np.zeros_like(AV), where=lengths > 0)
    squares = ((AV - sigma * U) ** 2).sum(axis=0) + ((A.T @ U - sigma * V) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(squares) / np.linalg.norm(A, 2))


def with_spectrum(n: int, p: int, values: ArrayLike, seed: int = 0, mean: float = 0.0) -> Array:
    """n×p data whose centred singular values are the ones given, up to rounding."""
    rng = np.random.default_rng(seed)
    sigma = np.asarray(values, dtype=np.float64)
    raw = rng.standard_normal((n, len(sigma)))
    left = np.linalg.qr(raw - raw.mean(axis=0))[0]
    right = np.linalg.qr(rng.standard_normal((p, len(sigma))))[0]
    return np.asarray(left * sigma @ right.T + mean)


def separated(n: int, p: int, seed: int = 0) -> Array:
    """Well-behaved data: a mean of a few units and singular values falling evenly from 10 to 0.1."""
    rank = min(n - 1, p)
    offset = np.random.default_rng(seed + 1).uniform(-3, 3, p)
    return np.asarray(with_spectrum(n, p, np.geomspace(10, 0.1, rank), seed) + offset)


def sparse_rows(n: int, p: int, density: float, seed: int = 0) -> Any:
    """A CSR array with uniform entries."""
    return sparse.random_array((n, p), density=density, rng=np.random.default_rng(seed), format="csr")
