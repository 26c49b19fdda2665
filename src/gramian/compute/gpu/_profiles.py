r"""Kernel values in plain torch: u of all pairs of two sets of prepared points, and f(u).

Points come scaled (and, where only differences count, about a common origin), so that u needs no parameter; for
``profile="exp"`` they are scaled once more, such that e⁻ᵘ becomes 2⁻ᵘ, which is what cards compute.
"""

from __future__ import annotations

import math
from typing import Any

import torch

__all__ = ["LOG2E", "arguments", "slopes", "stretch", "values"]

Tensor = Any

LOG2E = math.log2(math.e)


def stretch(geometry: str, profile: str) -> float:
    """What prepared points are multiplied by, beyond the scale of the formula, so that e⁻ᵘ becomes 2⁻ᵘ."""
    if profile != "exp":
        return 1.0
    return math.sqrt(LOG2E) if geometry == "squared" else LOG2E


def values(geometry: str, profile: str, parameters: tuple[float, ...], X: Tensor, Z: Tensor) -> Tensor:
    """f(u) for all rows of X and Z."""
    return _PROFILES[profile](arguments(geometry, X, Z), *parameters)


def arguments(geometry: str, X: Tensor, Z: Tensor) -> Tensor:
    """u for all rows of X and Z."""
    return _GEOMETRIES[geometry](X, Z)


def slopes(profile: str, parameters: tuple[float, ...], u: Tensor) -> Tensor:
    """|f′(u)|."""
    return _SLOPES[profile](u, *parameters)


def _squared(X: Tensor, Z: Tensor) -> Tensor:
    """Σ (x − z)² from differences: exactly 0 for identical points."""
    return torch.cdist(X, Z, compute_mode="donot_use_mm_for_euclid_dist").square_()


def _absolute(X: Tensor, Z: Tensor) -> Tensor:
    """Σ |x − z|."""
    return torch.cdist(X, Z, p=1.0)


def _chi2(X: Tensor, Z: Tensor) -> Tensor:
    """Σ (x − z)²/(x + z), feature by feature."""
    tiny, total = torch.finfo(X.dtype).tiny, X.new_zeros(X.shape[0], Z.shape[0])
    for x, z in zip(X.T, Z.T, strict=True):
        difference = x[:, None] - z
        total += difference * (difference / (x[:, None] + z).clamp_(min=tiny))
    return total


def _inner(X: Tensor, Z: Tensor) -> Tensor:
    """x·z; on a card in float64, for it may be set to multiply float32 with ten bits."""
    if X.is_cuda and X.dtype == torch.float32:
        return (X.double() @ Z.double().T).float()
    return X @ Z.T


def _rational(u: Tensor, alpha: float) -> Tensor:
    return torch.log1p(u).mul_(-alpha).exp_()


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


_GEOMETRIES = {"squared": _squared, "absolute": _absolute, "chi2": _chi2, "inner": _inner}
_PROFILES: dict[str, Any] = {
    "exp": lambda u: torch.exp2(u.neg_()),
    "matern12": lambda u: torch.exp(u.sqrt_().neg_()),
    "matern32": _matern32,
    "matern52": _matern52,
    "rational": _rational,
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
