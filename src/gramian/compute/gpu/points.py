r"""Kernel values in plain torch: u of all pairs of two sets of prepared points, and f(u).

Points come scaled (and, where only differences count, about a common origin), so that u needs no parameter; for
``profile="exp"`` they are scaled once more, such that e⁻ᵘ becomes 2⁻ᵘ, which is what GPUs compute.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from gramian.compute.devices import to_device

Tensor = Any

LOG2E = math.log2(math.e)


def values(geometry: str, profile: str, parameters: tuple[float, ...], X: Tensor, Z: Tensor) -> Tensor:
    """f(u) for all rows of X and Z."""
    return _PROFILES[profile](arguments(geometry, X, Z), *parameters)


def arguments(geometry: str, X: Tensor, Z: Tensor) -> Tensor:
    """u for all rows of X and Z."""
    return _GEOMETRIES[geometry](X, Z)


def slopes(profile: str, parameters: tuple[float, ...], u: Tensor) -> Tensor:
    """|f′(u)|."""
    return _SLOPES[profile](u, *parameters)


def _chi2(X: Tensor, Z: Tensor) -> Tensor:
    """Σ (x − z)²/(x + z), feature by feature."""
    tiny, total = torch.finfo(X.dtype).tiny, X.new_zeros(X.shape[0], Z.shape[0])
    for x, z in zip(X.T, Z.T, strict=True):
        difference = x[:, None] - z
        total += difference * (difference / (x[:, None] + z).clamp_(min=tiny))
    return total


def _inner(X: Tensor, Z: Tensor) -> Tensor:
    """x·z; on a GPU in float64, for it may be set to multiply float32 with ten bits."""
    if X.is_cuda and X.dtype == torch.float32:
        return (X.double() @ Z.double().T).float()
    return X @ Z.T


def _matern32(u: Tensor) -> Tensor:
    r = u.sqrt_()
    return (1 + r) * torch.exp(-r)


def _matern52(u: Tensor) -> Tensor:
    r = u.sqrt_()
    return (1 + r * (1 + r / 3)) * torch.exp(-r)


def _power(u: Tensor, degree: float, base: float) -> Tensor:
    """(u + b)^q by squaring from the highest bit of q down."""
    start = u + base
    total = start
    for bit in f"{int(degree):b}"[1:]:
        total = total * total
        total = total * start if bit == "1" else total
    return total


_GEOMETRIES: dict[str, Any] = {
    # from differences: exactly 0 for identical points
    "squared": lambda X, Z: torch.cdist(X, Z, compute_mode="donot_use_mm_for_euclid_dist").square_(),
    "absolute": lambda X, Z: torch.cdist(X, Z, p=1.0),
    "chi2": _chi2,
    "inner": _inner,
}
_PROFILES: dict[str, Any] = {
    "exp": lambda u: torch.exp2(u.neg_()),
    "matern12": lambda u: torch.exp(u.sqrt_().neg_()),
    "matern32": _matern32,
    "matern52": _matern52,
    "rational": lambda u, alpha: torch.log1p(u).mul_(-alpha).exp_(),
    "identity": lambda u: u,
    "power": _power,
    "tanh": lambda u, base: torch.tanh(u + base),
}
_SLOPES: dict[str, Any] = {
    "exp": lambda u: math.log(2) * torch.exp2(-u),
    "matern12": lambda u: torch.exp(-u.sqrt()) / (2 * u.sqrt().clamp(min=1e-30)),
    "matern32": lambda u: torch.exp(-u.sqrt()) / 2,
    "matern52": lambda u: (1 + u.sqrt()) * torch.exp(-u.sqrt()) / 6,
    "rational": lambda u, alpha: alpha * (1 + u) ** (-alpha - 1),
    "power": lambda u, degree, base: degree * (u + base).abs() ** (degree - 1),
    "tanh": lambda u, base: 1 - torch.tanh(u + base).square(),
}


PAD = 128  # rows are padded to a multiple of the largest tile
BLOCK = 64  # numbers in a row of prepared points that are multiplied at a time, where there are more than two such
BLOCK64 = 32  # ... of float64
UNROLL = 4  # features of differences at a time: their number is padded to a multiple
NUMBERS = 2**24  # prepared at a time, in float64
LARGEST = 2.0**10  # coordinate of points whose inner products are taken as fp16


@dataclass(frozen=True)
class Spread:
    """How far prepared points lie from their origin: |x|² and Σ x_j⁴, mean and largest, and the largest |x_j|."""

    width: int
    mean: float = 0.0
    peak: float = 0.0
    quartic: float = 0.0
    quartic_peak: float = 0.0
    largest: float = 0.0


@dataclass(frozen=True, eq=False)
class Frame:
    """What points are prepared with.

    Attributes
    ----------
    origin, scale : tensors (p,) or ()
        f = s∘(x − o), in the scale in which the profile wants u.
    radial : bool
        Whether u is a squared distance, so that −u = g·h − |g|²/2 − |h|²/2 with g = √2 f.
    rotation : tensor (p, p) or None
        A random one, which changes neither distances nor inner products.
    gain : float
        A power of two that points of inner products are multiplied by, for the range of fp16.
    """

    origin: Tensor
    scale: Tensor
    radial: bool
    rotation: Tensor | None = None
    gain: float = 1.0

    def displace(self, X: Tensor) -> Tensor:
        """The points for differences, in float64."""
        return (X.double() - self.origin) * self.scale

    def rotate(self, X: Tensor) -> Tensor:
        """The points for matrix products, in float64."""
        F = self.displace(X)
        F = F if self.rotation is None else F @ self.rotation
        return F * (math.sqrt(2.0) if self.radial else self.gain)

    def by_features(self, X: Tensor, dtype: Any) -> Tensor:
        """The points for differences, one feature after another, padded with zeros."""
        n, p = X.shape
        out = torch.zeros((_round_up(p, UNROLL), _round_up(n, PAD)), dtype=dtype, device=X.device)
        for rows in _chunks(n, p):
            out[:p, rows] = self.displace(X[rows]).T
        return out

    def by_rows(self, X: Tensor, parts: int, left: bool) -> Tensor:
        """The points for matrix products: rows whose inner product is t; 0 parts means float64."""
        n, p = X.shape
        width, per, total = layout(p, parts, self.radial)
        dtype = torch.float16 if parts else torch.float64
        out = torch.zeros((_round_up(n, PAD), total), dtype=dtype, device=X.device)
        for rows in _chunks(n, p):
            F = self.rotate(X[rows])
            for i, j in enumerate(range(0, p, per)):
                columns = _columns(F[:, j : j + per], parts, left, self.radial)
                out[rows, i * width : i * width + columns.shape[1]] = columns
        return out


def layout(p: int, parts: int, radial: bool) -> tuple[int, int, int]:
    """How points with p features lie in rows: width of a block, features in it, width of all.

    Examples
    --------
    >>> from gramian.compute.gpu.points import layout
    >>> layout(20, 1, True), layout(20, 2, True), layout(100, 2, True)
    ((32, 20, 32), (64, 20, 64), (64, 20, 320))
    """
    extra = (4 if parts else 2) if radial else 0
    copies = 2 * max(parts, 1) - 1
    most = BLOCK if parts else BLOCK64
    whole = copies * p + extra
    if whole <= most:
        width = max(16, 2 ** math.ceil(math.log2(whole)))
        return width, p, width
    per = (most - extra) // copies
    return most, per, most * -(-p // per)


def _columns(F: Tensor, parts: int, left: bool, radial: bool) -> Tensor:
    """[h, h, ℓ, q, 1] or [h, ℓ, h, 1, q] with F = h + ℓ and q = −|h + ℓ|²/2, which as fp16 numbers are two pieces."""
    if not parts:
        q = (F * F).sum(dim=1, keepdim=True).mul_(-0.5)
        norms = [q, torch.ones_like(q)] if left else [torch.ones_like(q), q]
        return torch.cat([F, *norms], dim=1) if radial else F
    high = F.half()
    low = (F - high.double()).half()
    points = [high] if parts == 1 else [high, high, low] if left else [high, low, high]
    if not radial:
        return torch.cat(points, dim=1)
    # norms of the points as rounded: those of identical points then are at distance 0, and none has moved
    kept = high.double() if parts == 1 else high.double() + low.double()
    q = (kept * kept).sum(dim=1, keepdim=True).mul_(-0.5)
    pieces, ones = [q.half(), (q - q.half().double()).half()], [torch.ones_like(q).half()] * 2
    return torch.cat([*points, *pieces, *ones] if left else [*points, *ones, *pieces], dim=1)


def find_frame(formula: Any, X: Tensor, Z: Tensor | None, turn: bool) -> tuple[Frame, Spread]:
    """Find origin and scale of two sets of points, and how far they lie from that origin."""
    right = X if Z is None else Z
    # what points are multiplied by, beyond the scale of the formula, so that e⁻ᵘ becomes 2⁻ᵘ
    unit = 1.0 if formula.profile != "exp" else math.sqrt(LOG2E) if formula.geometry == "squared" else LOG2E
    scale = to_device(np.asarray(formula.scale, dtype=np.float64) * unit, X.device)
    centred = formula.geometry in ("squared", "absolute") and len(right) > 0
    origin = right.mean(dim=0, dtype=torch.float64) if centred else torch.zeros_like(scale)
    rotation, p = None, X.shape[1]
    if turn and formula.geometry in ("squared", "inner") and p > 1:
        G = torch.randn((p, p), generator=torch.Generator().manual_seed(p), dtype=torch.float64)
        rotation = torch.linalg.qr(G.to(X.device))[0]
    frame = Frame(origin, scale, formula.geometry == "squared", rotation)
    spread = _spread(frame, (X,) if Z is None else (X, Z))
    if frame.radial or not 0 < spread.largest < math.inf:
        return frame, spread
    gain = 2.0 ** math.floor(math.log2(LARGEST / max(spread.largest, 1e-150)))  # its square is a number too
    return replace(frame, gain=gain), spread


def _spread(frame: Frame, sets: tuple[Tensor, ...]) -> Spread:
    """One pass over the points."""
    p, count = sets[0].shape[1], sum(len(X) for X in sets)
    sums, peaks = np.zeros(2), np.zeros(3)
    for X in sets:
        for rows in _chunks(len(X), p):
            F = frame.rotate(X[rows])
            squares = F * F
            norms, quartics = squares.sum(dim=1), (squares * squares).sum(dim=1)
            found = torch.stack([norms.sum(), quartics.sum(), norms.max(), quartics.max(), squares.max()]).cpu().numpy()
            sums, peaks = sums + found[:2], np.maximum(peaks, found[2:])
    if not count or not p:
        return Spread(p)
    mean, quartic = (float(total) / count for total in sums)
    return Spread(p, mean, float(peaks[0]), quartic, float(peaks[1]), math.sqrt(float(peaks[2])))


def _round_up(n: int, step: int) -> int:
    return max(step, -(-n // step) * step)


def _chunks(n: int, p: int) -> Iterator[slice]:
    step = max(1, NUMBERS // max(1, p))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))
