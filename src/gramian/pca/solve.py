"""How a PCA is solved: how many components, by which solver, what is kept of the spectrum; and streams of rows."""

from __future__ import annotations

import math
import warnings
from contextlib import nullcontext
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import is_numpy_namespace

from gramian.compute.devices import like, refuse_beyond_device, to_numpy
from gramian.compute.rowspace import RowSpace
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_seed
from gramian.inputs.opening import refuse_non_finite
from gramian.operators import Data
from gramian.pca.problem import EPS, CentredProblem, PCAFit
from gramian.pca.rank import apply_rule
from gramian.results import NumericalWarning, SpectralCertificate, Spectrum, caller_level
from gramian.sources import DenseSource, Source, TensorSource, memory_budget
from gramian.sources.errors import Argument, SourceError
from gramian.spectral import Auto, Choice, Dense, Krylov, Power, Randomized
from gramian.spectral.auto import SpectralFacts, choose_spectral_solver
from gramian.spectral.rayleigh import count_roundings, fix_signs

Array = Any
Vector = npt.NDArray[np.float64]

BLOCK = 64  # unit vectors made orthogonal at a time
APART = 1e-3  # a unit vector nearer than this to the span of the others is passed over
MOST_WEIGHT = 1e60  # Σw beyond which squares of weighted sums may overflow
ALONE = 512  # rows or columns of a matrix that one core decomposes as fast as several


def warn(message: str) -> None:
    """Warn at the first line outside the package."""
    warnings.warn(message, NumericalWarning, stacklevel=caller_level())


def refuse_too_few(n: int, weight: float) -> None:
    """Raise an error where there is no variance to speak of, or weights that are no frequencies."""
    if n == 1 and weight < 2:
        raise ValueError("Found 1 sample (n_samples=1): variance needs at least two rows.")
    if weight == 0.0:
        raise ValueError("sample_weight is zero for every row: there is nothing to fit.")
    if weight <= 1.0 + 1e-9:
        raise ValueError(
            f"sample_weight sums to {weight:g}. Weights are frequencies and the variance is divided by their sum "
            "less 1: multiply weights that sum to 1 by the number of rows."
        )
    if not weight <= MOST_WEIGHT:
        raise ValueError(
            f"sample_weight sums to {weight:g}. Weights are frequencies: divide them by a constant so that they sum to "
            f"the number of rows, or at least to less than {MOST_WEIGHT:g}."
        )


def count_rows(weight: float, positive: int = 0) -> int:
    """Rows that a sum of frequencies stands for: repeated ones count, and so do positive weights below 1."""
    return max(int(weight * (1 + 1e-12)), positive)


def check_number(n_components: Any, limit: int, svd_solver: str) -> int | None:
    """Return the number of components asked for, or None where the whole spectrum decides."""
    if n_components is None:
        return max(1, limit - 1) if svd_solver == "arpack" else limit  # as scikit-learn's, which cannot find all
    fraction = isinstance(n_components, (float, np.floating)) and 0 < n_components < 1
    if fraction or isinstance(n_components, str):
        return None
    if isinstance(n_components, bool) or not isinstance(n_components, Integral) or not 0 <= int(n_components) <= limit:
        raise ValueError(
            f"n_components={n_components!r} must be between 0 and min(n_samples, n_features)={limit} with "
            f"svd_solver={svd_solver!r}, or a fraction of the variance between 0 and 1, or 'mle'."
        )
    return int(n_components)


def choose_solver(source: Source, k: int | None, pca: Any) -> Choice:
    """Return the solver asked for, or the rule's, for k components or (None) the whole spectrum."""
    n, p = source.shape
    item = 4 if source.dtype == source.xp.float32 else 8
    many = min(n, p) if k is None else max(1, min(k, n, p))
    rule = choose_spectral_solver(SpectralFacts(n, p, many, source.sparse, source.resident, item))
    asked = f"svd_solver={pca.svd_solver!r}"
    if pca.svd_solver == "covariance_eigh":
        return Choice("exact", asked, gram=p <= n)
    if pca.svd_solver == "full":
        return Choice("exact", asked)
    choice = rule if pca.svd_solver == "auto" else Choice(pca.svd_solver, asked)
    if k is None and choice.solver != "exact":
        raise SourceError(
            f"n_components={pca.n_components!r} needs the whole spectrum, of which ",
            Argument("svd_solver", pca.svd_solver),
            f" finds only part for data of shape {(n, p)} ({rule.reason}). Give n_components as a number, or use ",
            Argument("svd_solver", "full"),
            ".",
        )
    return choice


def solve(problem: CentredProblem, k: int | None, choice: Choice, pca: Any) -> Spectrum:
    """Call the solver chosen for k components, or for all."""
    A, tol, why, asked = problem.operator, pca.tol or None, choice.reason, pca.svd_solver
    k = min(A.shape) if k is None else max(1, min(k, *A.shape))
    cap = None if pca.iterated_power == "auto" else int(pca.iterated_power)
    # what a GPU leaves to the host is small: starting threads for it would take longer
    with quiet_blas() if A.device is not None and min(A.shape) <= ALONE else nullcontext():
        if asked == "full" and not A.sparse:
            return Dense("qr" if A.shape[0] >= A.shape[1] else "svd")(A, k, why)
        if choice.solver == "exact":
            return Dense()(A, k, why)
        seed = check_seed(pca.random_state)
        if asked == "auto":
            return Auto(tol, seed=seed)(A, k, choice)
        if asked == "randomized":
            return Randomized(tol, pca.n_oversamples, 500 if cap is None else cap, seed)(A, k, why)
        if asked == "power":
            return Power(tol, 1000 if cap is None else max(1, cap), seed)(A, k, why)
        return Krylov(tol, seed=seed)(A, k, why)


def solve_constant(source: Source, k: int | None) -> Spectrum:
    """Spectrum where all rows are equal: no variance, and any orthonormal directions will do."""
    refuse_non_finite(source)
    n, p = source.shape
    k = min(n, p) if k is None else max(1, min(k, n, p))
    remedy = ("Ask for a few components with ", ("n_components", None), ".")
    refuse_beyond_device(8 * p * k, None, f"The {k} directions of {p} columns", remedy)
    zero = np.zeros(k)
    certificate = SpectralCertificate("none needed", "all rows are equal", 1, zero, zero, 0.0, 0.0, tolerance=1e-12)
    return Spectrum(zero, like(source, np.eye(p, k)), None, certificate)


def cut_spectrum(
    spectrum: Spectrum, problem: CentredProblem, source: Source, k: int | None, pca: Any, reason: str = ""
) -> PCAFit:
    """Cut a spectrum to k components, or as many as the rule keeps, and warn of what is arbitrary in it.

    Parameters
    ----------
    spectrum, problem, source
        What was found, of which problem, from which rows: results are arrays of their type.
    k : int or None
        Components to keep; None where the rule ``pca.n_components`` decides by the spectrum.
    pca : PCA
        The estimator's parameters.
    reason : str, optional
        Why k was chosen.
    """
    xp, p, rule = source.xp, source.shape[1], pca.n_components
    weight, total, unit, right = problem.weight, problem.total, problem.unit, spectrum.right
    divisor, count = weight - 1.0, count_rows(weight, problem.rows)
    limit = min(count, p)
    every = spectrum.values
    if k is None or k > len(every):
        every = np.append(every, np.zeros(max(0, limit - len(every))))
    if k is None and total == 0.0:
        k = 1
    elif k is None:
        k, reason = apply_rule(rule, every**2 / divisor, weight, p)
    values = every[:k]

    # Rounding errors of size ε in an n×p matrix of unit variance have singular values up to ε(√n + √p), where the
    # largest one is at least √max(n, p): a share ε√min(n, p) of it at most, up to a small factor.
    root = limit**0.5
    single = 4 * 2.0**-23 * root
    computed = single if right.dtype == xp.float32 else 32 * 2.0**-52 * root
    stored = single if source.dtype == xp.float32 else computed
    known = 0 if total == 0.0 else int(np.count_nonzero(every > computed * every[0]))
    rank = known if stored == computed or total == 0.0 else int(np.count_nonzero(every > stored * every[0]))

    V = right[:, : min(known, k)]
    V = V if V.shape[1] == k else like(source, complete_basis(np, to_numpy(V), k))  # directions without variance
    # eq: pca-error
    rest = float(np.sum(every[k:] ** 2)) if len(every) >= limit else total - float(np.sum(values**2))
    noise = max(rest, 0.0) / (limit - k) if k < limit else 0.0
    # eq: pca-projected-variance
    variances = np.append(values**2, noise) / divisor
    with np.errstate(over="ignore", under="ignore"):
        own = variances / unit / unit
    if unit != 1.0 and np.any(~np.isfinite(own[:k]) | ((own[:k] < np.finfo(float).tiny) & (values > 0))):
        warn(
            "explained_variance_ is too large or too small for float64; components_, singular_values_ and "
            "explained_variance_ratio_ are right. Multiply the data by a constant to bring them near 1."
        )
    if total == 0.0:
        warn("All rows are equal: there is no variance to explain, and the components are arbitrary directions.")
    elif k == 0 and isinstance(rule, str):
        warn(
            f"n_components={rule!r} finds nothing that stands out of the noise: no component is kept. "
            "See gramian.rank_advice for what other rules say."
        )
    elif k > rank and rule is not None:
        warn(
            f"n_components={k} exceeds the rank of the centred data, {rank}: components from {rank + 1} on "
            f"have no variance and are arbitrary directions. Ask for at most {rank}."
        )
    if k > rank and pca.whiten and total > 0.0:
        warn(
            f"{k - rank} components without variance cannot be whitened: their scores are set to 0. "
            f"Ask for at most {rank} components."
        )
    # directions without variance are arbitrary: their residual is the level below which they count as such
    residuals = spectrum.certificate.residuals[:k]
    if len(residuals) < k or known < k:
        residuals = np.append(residuals, np.zeros(k - len(residuals)))
        residuals = np.where(np.arange(k) < known, residuals, np.maximum(residuals, computed))
    certificate = spectrum.certificate.with_(
        passes=spectrum.certificate.passes + problem.passes,
        values=values / unit,
        residuals=residuals,
        norm=spectrum.certificate.norm / unit,
        divisor=divisor,
        notes=(*spectrum.certificate.notes, *([f"{k} components by {rule}: {reason}"] if reason else [])),
    )
    return PCAFit(
        components=fix_signs(xp, V).T,
        variances=own[:k],
        ratios=values**2 / (total or 1.0),
        singular_values=values / unit,
        mean=problem.mean,
        scale=problem.scale,
        noise=float(own[k]),
        weight=weight,
        rank=min(rank, k),
        certificate=certificate,
    )


def complete_basis(xp: Any, V: Array, k: int) -> Array:
    """V with further orthonormal columns, k in all: e₁, e₂, … made orthogonal to what is there.

    They depend on the span of V alone, so that equal data give equal directions even where these are arbitrary.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.pca.solve import complete_basis
    >>> complete_basis(np, np.array([[1.0], [0.0], [0.0]]), 2)[:, 1].round().tolist() == [0, 1, 0]
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


def absorb_rows(state: RowSpace, source: Source, w: Array | None, pca: Any, batch: int | None = None) -> RowSpace:
    """Add a source's rows to the row factor of a stream, a few at a time."""
    p = source.shape[1]
    refuse_non_finite(source)
    known = isinstance(pca.n_components, (int, np.integer))
    wanted = check_number(pca.n_components, p, pca.svd_solver) if known else None
    room = memory_budget() // (8 * 8 * p)
    for block in source.blocks(max(1, min(room, batch or max(1024, 4 * p)))):
        part = None if w is None else np.asarray(w[block.start : block.stop])
        values = block.values.toarray() if source.sparse else np.asarray(block.values)
        with np.errstate(over="ignore", invalid="ignore"):
            state = state.update(values, part, max(room, 2 * (wanted or 50) + 20))
    return state


def empty_copy(source: Source) -> Source:
    """Return a source of the same kind with no rows: all that partial_fit needs to remember of its input."""
    p, xp = source.shape[1], source.xp
    if is_numpy_namespace(xp):
        return DenseSource(np.empty((0, p), source.dtype))
    return TensorSource(xp.empty((0, p), dtype=source.dtype, device=source.device))


def solve_stream(state: RowSpace, template: Source, pca: Any) -> PCAFit:
    r"""Decompose the row factor B = UΣVᵀ, for which BᵀB is AᵀA up to what was cut off.

    Where directions were cut off, ‖AᵀAv − σ²v‖ ≤ Δ, so that the residual is at most Δ/(σσ₁). B carries the rounding of
    sums over all rows, and of as many updates as there may have been, at most one a row: √n units more (n up to 2²²).
    """
    weight, p = state.weight, template.shape[1]
    refuse_too_few(state.rows, weight)
    k = check_number(pca.n_components, min(count_rows(weight, state.rows), p), pca.svd_solver)
    scale, B, squares, lost = None, state.factor, state.squares, state.discarded
    if pca.scale:
        scale = np.where(squares > 0, np.sqrt(squares / (weight - 1.0)), 1.0)
        B, squares, lost = B / scale, squares / scale**2, lost / float(np.min(scale)) ** 2
    problem = CentredProblem(Data(B), weight, state.rows, state.mean + state.low, scale, float(squares.sum()))
    spectrum = Dense("svd")(problem.operator, min(B.shape), "partial_fit keeps a row factor of the data")
    rounding = EPS * (count_roundings(state.rows, p) + math.sqrt(min(state.rows, 2**22)))
    certificate = spectrum.certificate.with_(passes=1, rounding=spectrum.certificate.rounding + rounding)
    if lost > 0.0:
        sigma = np.maximum(certificate.values, np.finfo(float).tiny)
        certificate = certificate.with_(
            method="row factor cut to its leading directions",
            residuals=certificate.residuals + lost / (sigma * certificate.norm),
            tolerance=pca.tol or 1e-6,
            notes=(f"every eigenvalue of the scatter matrix is too small by at most {lost:.3g}",),
        )
        remedy = "Raise scikit-learn's working_memory so that more directions are kept, or ask for fewer components."
        if k is None or k > len(sigma):
            raise ValueError(
                f"n_components={pca.n_components!r} needs more than the {len(sigma)} directions kept. {remedy}"
            )
        cut = certificate.with_(values=certificate.values[:k], residuals=certificate.residuals[:k])
        cut.warn_unless_converged(remedy)
    spectrum = Spectrum(spectrum.values, like(template, spectrum.right), None, certificate)
    return cut_spectrum(spectrum, problem, template, k, pca)
