"""What a PCA fit found, cut to the components asked for and given its names."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from gramian.compute.devices import like, to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.opening import refuse_non_finite
from gramian.pca.problem import Problem, pca_problem
from gramian.pca.rank import SPECTRUM_RULES, RankChoice
from gramian.results import SpectralCertificate, Spectrum
from gramian.sources import Source
from gramian.spectral import Auto, Choice, Dense, Krylov, Power, Randomized
from gramian.spectral.auto import Facts, choose

__all__ = [
    "FITTED",
    "Fitted",
    "Found",
    "Options",
    "complete",
    "count",
    "enough_for_fraction",
    "fit",
    "fix_signs",
    "minka",
    "named",
    "number_of_components",
    "refuse_too_few",
    "requested",
    "rows",
]

Array = Any
Vector = npt.NDArray[np.float64]

BLOCK = 64  # unit vectors made orthogonal at a time
APART = 1e-3  # a unit vector nearer than this to the span of the others is passed over
TIE = 1e-5  # entries this close to the largest count as equally large


def requested(n_components: Any, limit: int, solver: str) -> int | None:
    """Return the number of components asked for, or None where the whole spectrum decides."""
    if n_components is None:
        return max(1, limit - 1) if solver == "arpack" else limit  # as scikit-learn's arpack, which cannot find all
    if isinstance(n_components, str):
        return None
    if isinstance(n_components, (float, np.floating)) and 0 < n_components < 1:
        return None
    if isinstance(n_components, bool) or not isinstance(n_components, Integral) or not 0 <= int(n_components) <= limit:
        raise ValueError(
            f"n_components={n_components!r} must be between 0 and min(n_samples, n_features)={limit} with "
            f"svd_solver={solver!r}, or a fraction of the variance between 0 and 1, or 'mle'."
        )
    return int(n_components)


def enough_for_fraction(ratios: Vector, fraction: float) -> int:
    """Smallest number of components whose variance exceeds the fraction asked, as scikit-learn counts it."""
    return int(np.searchsorted(np.cumsum(ratios), fraction, side="right")) + 1


def minka(spectrum: Vector, n: float, p: int) -> int:
    r"""Minka's estimate of the dimension: the k that maximises the evidence of probabilistic PCA.

    .. math::
        \ln p(D|k) = \ln p(U) - \tfrac n2\sum_{i\le k}\ln\lambda_i - \tfrac{n(p-k)}2\ln\hat v
            + \tfrac{m+k}2\ln 2\pi - \tfrac12\ln|A_Z| - \tfrac k2\ln n

    with v̂ the mean of the p − k eigenvalues left over. Eigenvalues beyond the rank count as zeros, so n may be
    smaller than p. (T. Minka, Automatic choice of dimensionality for PCA, 2000.)

    Parameters
    ----------
    spectrum : ndarray
        Eigenvalues, descending; those not given are 0.
    n, p : float, int
        Rows and columns.

    Examples
    --------
    >>> from gramian.pca.solve import minka
    >>> import numpy as np
    >>> minka(np.array([9.0, 7.0, 1.01, 1.0, 0.99]), 1000, 5)
    2
    """
    lam = spectrum[spectrum > max(p, 2) * np.finfo(float).eps * spectrum[0]]
    last = min(len(lam), p - 1)
    if last < 1:
        return 1
    evidence = [_evidence(lam, k, n, p) for k in range(1, last + 1)]
    return int(np.argmax(evidence)) + 1


def _evidence(lam: Vector, k: int, n: float, p: int) -> float:
    """Minka's equation (30) in Laplace's approximation, for k components."""
    v = float(lam[k:].sum()) / (p - k)
    if v <= 0:
        return -math.inf
    i = np.arange(1, k + 1)
    uniform = -k * math.log(2.0) + float(np.sum(gammaln((p - i + 1) / 2) - math.log(math.pi) * (p - i + 1) / 2))
    fit = -n / 2 * float(np.log(lam[:k]).sum()) - n * (p - k) / 2 * math.log(v)
    free = p * k - k * (k + 1) / 2
    volume = math.log(2 * math.pi) * (free + k) / 2
    return uniform + fit + volume - _log_hessian(lam, k, n, p, v) / 2 - k * math.log(n) / 2


def _log_hessian(lam: Vector, k: int, n: float, p: int, v: float) -> float:
    """ln|A_Z| = Σ_{i≤k} Σ_{j>i} ln (1/λ̂_j − 1/λ̂_i)(λ_i − λ_j) n, ties floored at rounding."""
    total = 0.0
    smooth = np.concatenate([lam[:k], np.full(len(lam) - k, v)])
    for i in range(k):
        gaps = np.maximum(lam[i] - lam[i + 1 :], np.finfo(float).eps * lam[i])
        inverse = np.maximum(1 / smooth[i + 1 :] - 1 / lam[i], np.finfo(float).eps / lam[i])
        total += float(np.sum(np.log(gaps) + np.log(inverse) + math.log(n)))
        zeros = p - len(lam)
        if zeros:
            lost = max(1 / v - 1 / lam[i], np.finfo(float).eps / lam[i])
            total += zeros * (math.log(lam[i]) + math.log(lost) + math.log(n))
    return total


def complete(xp: Any, V: Array, k: int) -> Array:
    """V with further orthonormal columns, k in all: e₁, e₂, … made orthogonal to what is there.

    They depend on the span of V alone, so that equal data give equal directions even where these are arbitrary.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.solve import complete
    >>> complete(np, np.array([[1.0], [0.0], [0.0]]), 2)[:, 1].round().tolist() == [0, 1, 0]
    True
    """
    p, filled, j = V.shape[0], V.shape[1], 0
    out = xp.concat([V, xp.zeros((p, k - filled), dtype=V.dtype)], axis=1)
    while filled < k:
        width = min(BLOCK, k - filled, p - j)
        E = xp.eye(p, width, k=-j, dtype=V.dtype)
        for _ in range(2):
            E = E - out[:, :filled] @ (out[:, :filled].T @ E)
        Q, R = xp.linalg.qr(E)
        pivots = xp.linalg.diagonal(R)
        Q = xp.where(pivots < 0, -Q, Q)
        far = np.abs(np.asarray(pivots)) > APART
        width = width if far.all() else 1  # near the span somewhere: one at a time from here
        if far[0]:
            out[:, filled : filled + width] = Q[:, :width]
            filled += width
        j += width
    return out


def fix_signs(xp: Any, V: Array) -> Array:
    """Turn each column of V so that its entry largest in size is positive; the first one if several tie.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.solve import fix_signs
    >>> fix_signs(np, np.array([[0.6], [-0.8]])).ravel()
    array([-0.6,  0.8])
    """
    if V.shape[1] == 0:
        return V
    size = xp.abs(V)
    top = xp.max(size, axis=0)
    first = xp.argmax(xp.astype(size >= (1 - TIE) * top[None, :], xp.int8), axis=0)
    chosen = xp.take_along_axis(V, first[None, :], axis=0)
    return xp.where(chosen < 0, -V, V)


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
    certificate: SpectralCertificate
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
        "explained_variance_": like(source, variances),
        "explained_variance_ratio_": like(source, values**2 / total),
        "singular_values_": like(source, values / found.unit),
        "mean_": like(source, found.mean),
        "scale_": like(source, found.scale),
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
    V = V if V.shape[1] == k else like(source, complete(np, to_numpy(V), k))
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


ALONE = 512  # rows or columns of a matrix that one core decomposes as fast as several


def fit(source: Source, w: Array | None, options: Options, choice: RankChoice | None = None) -> Fitted:
    """Choose, take the statistics, solve, name; a rule that looked at the rows has made its choice already."""
    n, p = source.shape
    weight = float(n) if w is None else float(source.xp.sum(w))
    refuse_too_few(n, weight)
    positive = n if w is None else int(source.xp.count_nonzero(w))
    limit = min(count(weight, positive), p)
    asked = requested(options.n_components, limit, options.solver) if choice is None else choice.n_components
    most = min(n, p)
    k = most if asked is None else max(1, min(asked, most))
    way = _choose(source, k, options, whole=asked is None)
    problem = pca_problem(source, w, scale=options.scale, full=way.gram, exact=way.solver == "exact", tol=options.tol)
    found = _solve(problem, k, way, options) if problem.total > 0.0 else _nothing(problem, source, k)
    return named(found, source, options, asked, "" if choice is None else choice.reason)


def refuse_too_few(n: int, weight: float) -> None:
    """Raise an error where there is no variance to speak of."""
    if n == 1 and weight < 2:
        raise ValueError("Found 1 sample (n_samples=1): variance needs at least two rows.")
    if weight == 0.0:
        raise ValueError("sample_weight is zero for every row: there is nothing to fit.")
    if weight <= 1.0 + 1e-9:
        raise ValueError(
            f"sample_weight sums to {weight:g}. Weights are frequencies and the variance is divided by their sum "
            "less 1: multiply weights that sum to 1 by the number of rows."
        )


def _choose(source: Source, k: int, options: Options, whole: bool) -> Choice:
    """Return the solver asked for, or the rule's."""
    n, p = source.shape
    item = 4 if source.dtype == source.xp.float32 else 8
    rule = choose(Facts(n, p, k, source.sparse, source.resident, item))
    named_solver = f"svd_solver={options.solver!r}"
    if options.solver == "covariance_eigh":
        return Choice("exact", named_solver, gram=p <= n)
    if options.solver == "full":
        return Choice("exact", named_solver)
    partial = rule.solver if options.solver == "auto" else options.solver
    if whole and partial != "exact":
        raise ValueError(
            f"n_components={options.n_components!r} needs the whole spectrum, of which {named_solver} finds only part "
            f"for data of shape {(n, p)} ({rule.reason}). Give n_components as a number, or use svd_solver='full'."
        )
    return rule if options.solver == "auto" else Choice(options.solver, named_solver)


def _solve(problem: Problem, k: int, choice: Choice, options: Options) -> Found:
    """Call the solver, and add the statistics' passes to its certificate."""
    # what a card leaves to the host is small: starting threads for it would take longer
    alone = problem.A.device is not None and min(problem.A.shape) <= ALONE
    with quiet_blas() if alone else nullcontext():
        result = _call(problem, k, choice, options)
    certificate = result.certificate.with_(passes=result.certificate.passes + problem.passes)
    moments = problem.moments
    return Found(
        result.values,
        result.right,
        certificate,
        problem.total,
        moments.weight,
        count(moments.weight, moments.rows),
        problem.mean,
        problem.scale,
        problem.unit,
    )


def _call(problem: Problem, k: int, choice: Choice, options: Options) -> Spectrum:
    A, tol, seed, cap, why = problem.A, options.tol, options.seed, options.max_iterations, choice.reason
    if options.solver == "auto":
        return Auto(tol, seed=seed)(A, k, choice)
    if options.solver == "full" and not A.sparse:
        return Dense("qr" if A.shape[0] >= A.shape[1] else "svd")(A, k, why)
    if choice.solver == "exact":
        return Dense()(A, k, why)
    if options.solver == "randomized":
        return Randomized(tol, options.oversampling, 500 if cap is None else cap, seed)(A, k, why)
    if options.solver == "power":
        return Power(tol, 1000 if cap is None else max(1, cap), seed)(A, k, why)
    return Krylov(tol, seed=seed)(A, k, why)


def _nothing(problem: Problem, source: Source, k: int) -> Found:
    """All rows are equal: no variance, and any orthonormal directions will do."""
    refuse_non_finite(source)
    zero = np.zeros(k)
    certificate = SpectralCertificate(
        "none needed", "all rows are equal", problem.passes + 1, zero, zero, 0.0, 0.0, tolerance=1e-12
    )
    right = like(source, np.eye(source.shape[1], k))
    moments = problem.moments
    seen = count(moments.weight, moments.rows)
    return Found(zero, right, certificate, 0.0, moments.weight, seen, problem.mean, problem.scale)
