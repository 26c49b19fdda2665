"""What a PCA fit found, cut to the components asked for and given its names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis.rank import SPECTRUM_RULES
from gramian.compute.devices import host
from gramian.estimators._components import complete, enough_for_fraction, fix_signs, minka
from gramian.estimators._scores import beside
from gramian.results import Certificate
from gramian.sources import Source

__all__ = ["FITTED", "Fitted", "Found", "Options", "count", "named", "number_of_components", "rows"]

Array = Any
Vector = npt.NDArray[np.float64]

FITTED = (
    "certificate_",
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "mean_",
    "n_components_",
    "n_samples_",
    "noise_variance_",
    "rank_",
    "scale_",
    "singular_values_",
    "_missing_method",
    "_weight",
)


@dataclass(frozen=True)
class Options:
    """The constructor's choices, resolved."""

    n_components: Any
    solver: str
    tol: float | None
    max_iterations: int | None
    oversampling: int
    seed: int
    scale: bool
    whiten: bool


@dataclass(frozen=True, eq=False)
class Found:
    """What a solver found, before it is cut to the components asked for; in units of 1/unit."""

    values: Vector
    right: Array
    certificate: Certificate
    total: float
    weight: float
    count: int
    mean: Array
    scale: Array | None
    unit: float = 1.0


@dataclass(frozen=True, eq=False)
class Fitted:
    """The fitted attributes, and what the user should be warned about."""

    attributes: dict[str, Any]
    warnings: list[str]


def rows(weight: float) -> int:
    """Return how many rows a sum of frequencies stands for."""
    return int(weight * (1 + 1e-12))


def count(weight: float, positive: int) -> int:
    """Return how many rows can span a space: repeated ones count, and so do those with a weight below 1."""
    return max(rows(weight), positive)


def named(found: Found, source: Source, options: Options, asked: int | None, reason: str = "") -> Fitted:
    """Cut to the components asked for and give the results their names, in the array type of the data."""
    limit = min(found.count, source.shape[1])
    every = _pad(found.values, limit) if asked is None or asked > len(found.values) else found.values
    k, reason = (asked, reason) if asked is not None else _how_many(options.n_components, every, found, source.shape[1])
    values, divisor, total = every[:k], found.weight - 1.0, found.total or 1.0
    computed, stored = _noise_levels(found, source)
    rank, known = _above(every, stored, found), _above(every, computed, found)
    variances, messages = _in_units(values**2 / divisor, found.unit)
    noise, _ = _in_units(np.array([_noise(every, k, limit, found.total) / divisor]), found.unit)
    certificate = found.certificate.with_(
        values=values / found.unit,
        residuals=_with_arbitrary(_pad(found.certificate.residuals, k)[:k], known, computed),
        norm=found.certificate.norm / found.unit,
        divisor=divisor,
        notes=(*found.certificate.notes, *([f"{k} components by {options.n_components}: {reason}"] if reason else [])),
    )
    attributes = {
        "components_": _completed(source, found.right[:, : min(known, k)], k),
        "explained_variance_": beside(source, variances),
        "explained_variance_ratio_": beside(source, values**2 / total),
        "singular_values_": beside(source, values / found.unit),
        "mean_": beside(source, found.mean),
        "scale_": beside(source, found.scale),
        "noise_variance_": float(noise[0]),
        "n_components_": k,
        "n_samples_": rows(found.weight),
        "rank_": min(rank, k),
        "certificate_": certificate,
        "_weight": found.weight,
        "_missing_method": "likelihood",
    }
    return Fitted(attributes, messages + _rank_messages(options, k, rank, found.total))


def _how_many(n_components: Any, values: Vector, found: Found, p: int) -> tuple[int, str]:
    if found.total == 0.0:
        return 1, ""
    return number_of_components(n_components, values**2 / (found.weight - 1.0), found.weight, p)


def number_of_components(rule: Any, variances: Vector, weight: float, p: int) -> tuple[int, str]:
    """Return how many of all components a rule keeps, a fraction or a name, and why where the rule says so."""
    if rule == "mle":
        return minka(variances, rows(weight), p), ""
    if isinstance(rule, str):
        choice = SPECTRUM_RULES[rule](variances, weight, p)
        return choice.n_components, choice.reason
    return min(enough_for_fraction(variances / variances.sum(), float(rule)), len(variances)), ""


def _above(values: Vector, level: float, found: Found) -> int:
    """How many singular values stand above a share of the largest."""
    return 0 if found.total == 0.0 else int(np.count_nonzero(values > level * values[0]))


def _noise_levels(found: Found, source: Source) -> tuple[float, float]:
    """σ/σ₁ that the rounding of the computation, and that of the data, can make of nothing.

    Rounding errors of size ε in an n×p matrix of unit variance have singular values up to ε(√n + √p), beside a largest
    one of at least √max(n, p): a share ε√min(n, p) of it at most, up to a small factor.
    """
    root = min(found.count, source.shape[1]) ** 0.5
    single = 4 * 2.0**-23 * root
    computed = single if found.right.dtype == source.xp.float32 else 32 * 2.0**-52 * root
    return computed, single if source.dtype == source.xp.float32 else computed


def _with_arbitrary(residuals: Vector, known: int, level: float) -> Vector:
    """Residuals, those of arbitrary directions without variance at the level below which they count as such."""
    return np.where(np.arange(len(residuals)) < known, residuals, np.maximum(residuals, level))


def _pad(x: Vector, size: int) -> Vector:
    return np.concatenate([x, np.zeros(max(0, size - len(x)))])


def _completed(source: Source, V: Array, k: int) -> Array:
    """Vᵀ with signs fixed, completed to k rows by directions without variance."""
    xp = source.xp
    V = V if V.shape[1] == k else beside(source, complete(np, host(V), k))
    dtype = xp.float32 if source.dtype == xp.float32 else xp.float64
    return xp.astype(fix_signs(xp, V).T, dtype)


def _in_units(variances: Vector, unit: float) -> tuple[Vector, list[str]]:
    """Variances in the data's own units, and a warning where float64 cannot hold them."""
    if unit == 1.0:
        return variances, []
    with np.errstate(over="ignore", under="ignore"):
        out = variances / unit / unit
    bad = ~np.isfinite(out) | ((out < np.finfo(float).tiny) & (variances > 0))
    if not bad.any():
        return out, []
    message = (
        "explained_variance_ is too large or too small for float64; components_, singular_values_ and "
        "explained_variance_ratio_ are right. Multiply the data by a constant to bring them near 1."
    )
    return out, [message]


def _rank_messages(options: Options, k: int, rank: int, total: float) -> list[str]:
    if total == 0.0:
        return ["All rows are equal: there is no variance to explain, and the components are arbitrary directions."]
    messages = []
    if k == 0 and isinstance(options.n_components, str):
        messages.append(
            f"n_components={options.n_components!r} finds nothing that stands out of the noise: no component is kept. "
            "See gramian.rank_advice for what other rules say."
        )
    if options.n_components is not None and k > rank:
        messages.append(
            f"n_components={k} exceeds the rank of the centred data, {rank}: components from {rank} on (from 0) "
            f"have no variance and are arbitrary directions. Ask for at most {rank}."
        )
    if options.whiten and k > rank:
        messages.append(
            f"{k - rank} components without variance cannot be whitened: their scores are set to 0. "
            f"Ask for at most {rank} components."
        )
    return messages


def _noise(every: Vector, k: int, limit: int, total: float) -> float:
    """Mean of the squared singular values left out, summed directly where they are known."""
    if k >= limit:
        return 0.0
    rest = float(np.sum(every[k:] ** 2)) if len(every) >= limit else total - float(np.sum(every[:k] ** 2))
    return max(rest, 0.0) / (limit - k)
