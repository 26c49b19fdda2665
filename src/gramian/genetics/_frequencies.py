r"""Allele frequencies that differ between people by a chosen F_ST: smoothly over a map, or between populations.

On a map, a SNP of ancestral frequency p = sin²θ has in place x the frequency

.. math:: f(x) = \sin^2(\theta + \sigma g(x)), \qquad E\,g(x)g(y) = C(x,y) \approx e^{-\|x-y\|^2/2\ell^2},

with a new Gaussian field g for each SNP. The angular transformation keeps f between 0 and 1 without clipping and makes
its variance, 4σ²p(1 − p) where σ is small, a fixed share of p(1 − p): F_ST is the same for all SNPs. The cosine of a
Gaussian variable has a mean in closed form, so the σ of a wanted F_ST is found exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.optimize import brentq

__all__ = ["Frequencies", "balding_nichols", "expected_fst", "map_features", "smooth_field"]

Single = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
# ancestral frequencies and a generator in, frequencies of SNPs × people out
Frequencies = Callable[[Vector, np.random.Generator], Single]

LANDMARKS = 400  # places from which the field is interpolated
KEPT = 1e-3  # share of the field's variance that may be left out
PEOPLE = 1500  # pairs of so many are looked at to find σ
WILDEST = 2.0  # σ, beyond which frequencies have turned round the circle and F_ST grows no more


def balding_nichols(ancestry: Matrix, fst: float) -> Frequencies:
    r"""Frequencies of independent populations, mixed in people in the proportions of the rows of ``ancestry``.

    .. math:: f_k \sim \mathrm{Beta}\bigl(p\tfrac{1-F}F, (1-p)\tfrac{1-F}F\bigr)

    has mean p and variance F p(1 − p) (Balding and Nichols, Genetica 96, 3, 1995), so that Hudson's F_ST between any
    two populations is F.
    """
    mixed = np.asarray(ancestry.T, dtype=np.float32)

    def frequencies(p: Vector, rng: np.random.Generator) -> Single:
        drawn = np.repeat(p[:, None], len(mixed), axis=1)
        if fst:
            drift = (1 - fst) / fst
            drawn = rng.beta(drawn * drift, (1 - drawn) * drift)
        return np.asarray(np.clip(drawn.astype(np.float32) @ mixed, 0.0, 1.0))

    return frequencies


def smooth_field(features: Matrix, groups: npt.NDArray[np.intp], fst: float, maf: tuple[float, float]) -> Frequencies:
    """Frequencies that vary over a map as the module says, with a mean F_ST between groups as asked."""
    sigma = _amplitude(features, groups, fst, maf) if fst else 0.0
    angles = np.vstack([np.ones(len(features)), 2 * sigma * features.T]).astype(np.float32)

    def frequencies(p: Vector, rng: np.random.Generator) -> Single:
        weights = rng.standard_normal((len(p), len(angles)), dtype=np.float32)
        weights[:, 0] = 2 * np.arcsin(np.sqrt(p))
        f = weights @ angles
        np.cos(f, out=f)
        f *= -0.5
        f += 0.5  # sin²(x/2) = (1 − cos x)/2
        return f

    return frequencies


def map_features(positions: Matrix, length: float) -> Matrix:
    """Φ with ΦΦᵀ ≈ exp(−‖x − y‖²/2ℓ²) less its mean over people: by Nyström's method, the fewest columns that do."""
    places = np.unique(positions, axis=0)
    landmarks = places[:: -(-len(places) // LANDMARKS)]
    values, vectors = eigh(_kernel(landmarks, landmarks, length))
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int(np.searchsorted(np.cumsum(values), (1 - KEPT) * values.sum())) + 1
    features = _kernel(positions, landmarks, length) @ (vectors[:, :rank] / np.sqrt(values[:rank]))
    return np.asarray(features - features.mean(axis=0))


def _kernel(A: Matrix, B: Matrix, length: float) -> Matrix:
    squares = np.sum(A**2, axis=1)[:, None] + np.sum(B**2, axis=1) - 2 * A @ B.T
    return np.asarray(np.exp(-np.maximum(squares, 0.0) / (2 * length**2)))


def expected_fst(features: Matrix, groups: npt.NDArray[np.intp], sigma: float, maf: tuple[float, float]) -> Matrix:
    r"""Hudson's F_ST between groups on the map, :math:`E(f_a-f_b)^2 / E\bigl(f_a(1-f_b)+f_b(1-f_a)\bigr)`.

    :math:`f_a` is the mean frequency of the people of group a. With X = 2θ + 2σg(x), f = (1 − cos X)/2 and

    .. math::
        E\cos X\cos Y = \tfrac12\cos4\theta\,e^{-2\sigma^2(C_{xx}+C_{yy}+2C_{xy})}
            + \tfrac12 e^{-2\sigma^2(C_{xx}+C_{yy}-2C_{xy})},

    averaged over ancestral frequencies that are uniform between the ends of ``maf``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics._frequencies import expected_fst
    >>> fst = expected_fst(np.eye(2), np.arange(2), 0.05, (0.3, 0.3))  # independent: about 4σ² = 0.01
    >>> round(float(fst[0, 1]), 4)
    0.0099
    """
    low, high = maf
    mean, square = (low + high) / 2, (low**2 + low * high + high**2) / 3
    C, W = features @ features.T, _averages(groups)
    own = np.diag(C)
    both, s = own[:, None] + own, 2 * sigma**2
    cosines = (1 - 2 * mean) * np.exp(-s * own)
    products = 0.5 * ((1 - 8 * (mean - square)) * np.exp(-s * (both + 2 * C)) + np.exp(-s * (both - 2 * C)))
    f = W @ (1 - cosines) / 2
    ff = W @ (1 - cosines[:, None] - cosines + products) @ W.T / 4
    own_square = np.diag(ff)
    return np.asarray((own_square[:, None] + own_square - 2 * ff) / (f[:, None] + f - 2 * ff))


def _averages(groups: npt.NDArray[np.intp]) -> Matrix:
    """W with W @ v the means of v in the groups."""
    member = (np.arange(groups.max() + 1)[:, None] == groups).astype(np.float64)
    return np.asarray(member / member.sum(axis=1, keepdims=True))


def _amplitude(features: Matrix, groups: npt.NDArray[np.intp], fst: float, maf: tuple[float, float]) -> float:
    """The σ for which F_ST, averaged over the pairs of groups, is as asked."""
    rows = _spread_over_groups(groups)
    pairs = np.triu_indices(int(groups.max()) + 1, 1)

    def excess(sigma: float) -> float:
        return float(expected_fst(features[rows], groups[rows], sigma, maf)[pairs].mean()) - fst

    if not len(pairs[0]) or not excess(WILDEST) > 0:
        most = excess(WILDEST) + fst if len(pairs[0]) else 0.0
        raise ValueError(
            f"fst={fst}: frequencies on this map reach {most:.3g} at most. Ask for less, choose a smaller length, or "
            "give groups without positions."
        )
    return float(brentq(excess, 0.0, WILDEST, xtol=1e-7))


def _spread_over_groups(groups: npt.NDArray[np.intp]) -> Any:
    """At most some 1,500 people, of every group the same share and at least one."""
    if len(groups) <= PEOPLE:
        return slice(None)
    order = np.argsort(groups, kind="stable")
    first = np.concatenate([[True], np.diff(groups[order]) > 0])
    every = np.arange(len(groups)) % -(-len(groups) // PEOPLE) == 0
    return order[first | every]
