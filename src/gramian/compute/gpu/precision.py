r"""Which arithmetic a kernel product needs, so that it is as precise as it says.

A tile of kernel values comes from a matrix product of prepared points on tensor cores, or from their differences; its
product with V comes from one or two fp16 pieces of the tile, or from the tile as it is. The cheapest way whose
predicted error is within the promise is taken. With t the argument of the kernel that the matrix product gives (t = −u
for distances) and x, z the prepared points about their common origin, the errors of t are:

* **one fp16 part** perturbs each coordinate by 2^(−12.3) of itself, and t by 2^(−12.3)√(Σ (x_j − z_j)²(x_j² + z_j²)).
  The points are rotated at random before they are rounded, so that the errors of their coordinates are independent
  however regular the data are.
* **two fp16 parts** leave what tensor cores cut off when they add: emulated, at most 2⁻²⁴(1.5 + 4)(|x|² + |z|²)/2. The
  norms of each 20 features are stored with them, so that this does not grow with the number of features.
* **float64** products: 2⁻⁵³(4 + p/16)(|x|² + |z|²)/2.

The error of K, relative to K in the Frobenius norm, is predicted as the mean square of f′ times the error of t over a
sample of 4,096 pairs, relative to that of f, and must be within the budget of the mode; a bound from the point farthest
out must be within four times of it. Otherwise values come from **differences**, in float32 where that leaves no more
than the rounding of the points, 2^(−24.5)|x|, and of u, 2⁻²⁴u, and else in float64 (2^(−52.5)|x|). Matérn 1/2,
whose slope at u = 0 has no bound, the Laplacian and the chi-squared kernels are computed from differences always.

Kernel values below 2⁻¹⁶ of the largest possible one are kept as fp16 pieces with an absolute, not a relative error;
where the sample says that typical values are that small, the tile is multiplied as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from gramian.compute.gpu.points import Frame, Spread, arguments, find_frame, slopes, values

Tensor = Any

ERRORS = {"fast": 5e-4, "accurate": 2e-6, "double": 1e-13}
# what of the promise may be spent on t; the rest is for the sums and, if fast, for one fp16 piece of a tile
BUDGETS = {"fast": 3e-4, "accurate": 1.3e-6, "double": 5e-14}
FARTHEST = 4.0  # pairs far out may be off by so many times the promise
WEAK = 2.0**-16  # values below this part of the largest are not multiplied as fp16 pieces
SAMPLE = 64  # rows and columns of a sample of pairs
# sup |d ln f/dt|; α for "rational"; inner products have none
STEEPEST = {"exp": math.log(2), "matern32": 1 / 2, "matern52": 1 / 6, "rational": math.nan, "power": 0.0, "tanh": 0.0}


@dataclass(frozen=True, eq=False)
class Arithmetic:
    """How tiles are computed and multiplied.

    Attributes
    ----------
    mode : str
        The promise.
    parts : int
        fp16 parts of a point (or one in float64) in a matrix product; 0 for differences.
    pieces : int
        fp16 pieces of a tile that is multiplied by several columns; 0 for the tile itself.
    dtype : torch.dtype
        Of points for differences, and of sums within a tile.
    bound : float
        No value of f is larger in magnitude.
    error : float
        Relative error of K.
    frame : Frame
        What points are prepared with.
    """

    mode: str
    parts: int
    pieces: int
    dtype: Any
    bound: float
    error: float
    frame: Frame

    @property
    def words(self) -> str:
        """As a certificate names it."""
        if self.parts and self.dtype == torch.float64:
            return "matrix products in float64"
        if self.parts:
            return f"fp16 tensor cores, {'one part' if self.parts == 1 else 'two parts'}"
        return f"differences in {'float64' if self.dtype == torch.float64 else 'float32'}"


def choose_arithmetic(
    formula: Any, X: Tensor, Z: Tensor | None, dtype: Any, tolerance: float | None, triton: bool
) -> Arithmetic:
    """Return the cheapest arithmetic that keeps the promise that follows from dtype and tolerance."""
    frame, spread = find_frame(formula, X, Z, triton)
    fast = triton and tolerance is not None and tolerance >= ERRORS["fast"]
    mode = "double" if dtype == torch.float64 else "fast" if fast else "accurate"
    sample = _take_sample(formula, frame, X, X if Z is None else Z)
    parts = _count_parts(formula, mode, spread, sample) if triton else 0
    near = Z is None and formula.geometry != "inner"  # the largest value is there, on the diagonal
    wide = mode == "double" or (not parts and _difference_error(formula, spread, sample, near) > BUDGETS["accurate"])
    if not parts and mode == "fast":
        mode = "accurate"
    bound = math.inf if formula.profile == "identity" else 1.0  # of |f|; infinite where it is not worth knowing
    if formula.profile == "power":
        degree, base = formula.parameters
        with np.errstate(over="ignore"):
            bound = float(np.float64(spread.peak + abs(base)) ** degree)
    strong = math.isfinite(bound) and (near or sample.size > WEAK * bound)
    pieces = 0 if wide or not strong else 1 if mode == "fast" else 2
    error = max(ERRORS[mode], 2**-52.5 * math.sqrt(spread.peak))  # the latter where float64 itself is not enough
    return Arithmetic(mode, parts, pieces, torch.float64 if wide else torch.float32, bound, error, frame)


def _count_parts(formula: Any, mode: str, spread: Spread, sample: _Sample) -> int:
    """How many parts of the points give t well enough in matrix products; 0 if no number does."""
    if formula.profile not in STEEPEST or formula.geometry not in ("squared", "inner") or not spread.width:
        return 0
    steepest = formula.parameters[0] if formula.profile == "rational" else STEEPEST[formula.profile]
    cut = 2.0**-53 * (4 + spread.width / 16) if mode == "double" else 2.0**-24 * (1.5 + 4)
    ways = [(1 if mode == "double" else 2, cut * sample.rate, cut * spread.peak)]
    if mode == "fast":
        ways.insert(0, (1, 2**-12.27 * sample.rough, 2**-11.27 * math.sqrt(spread.quartic_peak)))
    for parts, typical, farthest in ways:
        if typical <= BUDGETS[mode] and steepest * farthest <= FARTHEST * BUDGETS[mode]:
            return parts
    return 0


def _difference_error(formula: Any, spread: Spread, sample: _Sample, near: bool) -> float:
    """Predicted error of differences, or of inner products feature by feature, in float32."""
    if not spread.peak < 1e30:
        return math.inf
    if formula.geometry == "inner":
        return 2.0**-23 * sample.rate
    steep = max(1.0, formula.parameters[0]) if formula.profile == "rational" else 1.0
    points = 2**-24.5 * math.sqrt(spread.peak * steep)
    return points if near else max(points, 2.0**-24 * sample.far)


class _Sample(NamedTuple):
    """A sample of pairs: the size of f, and that of f′ times each error, relative to it.

    ``rate`` is for errors of (|x|² + |z|²)/2, or |x||z|; ``rough`` for those of one fp16 part; ``far`` for those of u.
    """

    size: float = 0.0
    rate: float = 0.0
    rough: float = 0.0
    far: float = 0.0


def _take_sample(formula: Any, frame: Frame, X: Tensor, Z: Tensor) -> _Sample:
    if not (len(X) and len(Z) and X.shape[1]):
        return _Sample()
    x, z = _draw_rows(X, 0), _draw_rows(Z, 1)
    kernel, near = (formula.profile, formula.parameters), (frame.displace(x), frame.displace(z))
    size, u = _rms(values(formula.geometry, *kernel, *near)), arguments(formula.geometry, *near)
    if formula.profile == "identity":
        return _Sample(size)
    A, B = frame.rotate(x) / frame.gain, frame.rotate(z) / frame.gain
    a, b = (A * A).sum(dim=1)[:, None], (B * B).sum(dim=1)
    if formula.geometry == "inner":
        errors = (a * b).sqrt(), ((A * A) @ (B * B).T * 2).sqrt(), u
    else:
        difference = (A[:, None] - B).square_()
        errors = (a + b) / 2, (difference * (A.square()[:, None] + B.square())).sum(dim=2).sqrt(), u
    slope = slopes(*kernel, u)
    return _Sample(size, *(_rms(slope * error) / size if size else math.inf for error in errors))


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt())


def _draw_rows(X: Tensor, seed: int) -> Tensor:
    """Some rows."""
    rows = torch.randint(len(X), (SAMPLE,), generator=torch.Generator().manual_seed(seed))
    return X[rows.to(X.device)]
