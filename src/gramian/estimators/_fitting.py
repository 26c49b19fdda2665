"""The steps of a PCA fit, as functions: which solver, the statistics, the spectrum."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from gramian.analysis.rank import RankChoice
from gramian.compute.threads import quiet_blas
from gramian.estimators._components import requested
from gramian.estimators._fitted import Fitted, Found, Options, count, named
from gramian.estimators._inputs import refuse_non_finite
from gramian.estimators._problem import Problem, pca_problem
from gramian.estimators._scores import beside
from gramian.results import Certificate, Spectrum
from gramian.sources import Source
from gramian.spectral import Auto, Choice, Dense, Krylov, Power, Randomized
from gramian.spectral.auto import Facts, choose

__all__ = ["fit", "refuse_too_few"]

Array = Any

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
    certificate = Certificate("none needed", "all rows are equal", problem.passes + 1, zero, zero, 0.0, 0.0, 1e-12)
    right = beside(source, np.eye(source.shape[1], k))
    moments = problem.moments
    seen = count(moments.weight, moments.rows)
    return Found(zero, right, certificate, 0.0, moments.weight, seen, problem.mean, problem.scale)
