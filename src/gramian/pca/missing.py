"""PCA of rows with missing cells: which method, and what its results are called."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import like, to_numpy
from gramian.pca.factor import NO_NOISE, Factor, Survey, fit_factor, survey
from gramian.pca.iterative import METHODS, Completion, iterative_pca
from gramian.pca.solve import (
    Fitted,
    Options,
    complete,
    fix_signs,
    number_of_components,
    refuse_too_few,
    requested,
    rows,
)
from gramian.pca.solve import fit as fit_complete
from gramian.results import Optimum
from gramian.sources import Block, Source, mapped

__all__ = ["LIKELIHOOD", "fit_incomplete", "fit_likelihood"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

LIKELIHOOD = "likelihood"
ALIASES = {"regularized": "regularised", "em": "least-squares"}  # as missMDA spells them


def fit_incomplete(
    pca: Any,
    source: Source,
    w: Any,
    options: Options,
    method: str,
    tol: float | None = None,
    max_iterations: int = 2000,
) -> Fitted:
    """Fit by one of three methods; complete rows are welcome too."""
    method = ALIASES.get(method.lower(), method)
    if method not in (LIKELIHOOD, *METHODS):
        raise ValueError(f"method must be one of {LIKELIHOOD}, {', '.join(METHODS)}; got {method!r}.")
    if max_iterations < 1:
        raise ValueError(f"max_iterations must be at least 1, got {max_iterations!r}.")
    weights = None if w is None else np.asarray(w.cpu() if hasattr(w, "cpu") else w, dtype=np.float64)
    refuse_too_few(source.shape[0], source.shape[0] if weights is None else float(weights.sum()))
    k = requested(options.n_components, min(source.shape), options.solver)
    if method != LIKELIHOOD:
        return _iterative(pca, source, weights, k, options, method, 1e-6 if tol is None else tol, max_iterations)
    tol = 1e-5 if tol is None else tol
    _refuse_rules(options.n_components)
    if k is None or options.n_components is None or k == source.shape[1]:
        rule = None if k is not None else options.n_components
        return _fit_all(source, weights, replace(options, n_components=rule), tol, max_iterations)
    return fit_likelihood(source, weights, k, options, tol, max_iterations)


def _iterative(
    pca: Any, source: Source, w: Vector | None, k: int | None, options: Options, method: str, tol: float, most: int
) -> Fitted:
    if k is None or options.n_components is None:
        raise ValueError(f"method={method!r} needs n_components as a number, got {options.n_components!r}.")
    found = iterative_pca(pca, source, k, w, method=method, tol=tol, max_iterations=most)
    return _of_completion(found, source, options.scale, method)


def _fit_all(source: Source, w: Vector | None, options: Options, tol: float, max_iterations: int) -> Fitted:
    """Fit the whole covariance, which is p − 1 components and noise; then keep all, or a fraction."""
    seen = survey(source, w)
    p, varied = source.shape[1], np.flatnonzero(seen.scatter > 0)
    rule, q = options.n_components, len(varied)
    if q < 2 or q > seen.rows - 2:
        raise ValueError(
            f"{seen.rows} rows with missing values do not determine all components of {p} columns, {q} of which vary. "
            "Give n_components as a smaller number."
        )
    # constant columns have no variance to estimate, and would leave the likelihood without a maximum
    part = source if q == p else mapped(source, lambda b: to_numpy(b.values, float)[:, varied], columns=q)
    found = fit_likelihood(part, w, q - 1, options, tol, max_iterations)
    named = found.attributes
    variances = np.append(np.asarray(named["explained_variance_"]), [named["noise_variance_"], *np.zeros(p - q)])
    if rule is not None:
        k = min(number_of_components(rule, variances, named["_weight"], p)[0], p - 1)
        chosen = fit_likelihood(source, w, k, options, tol, max_iterations)
        lost = found.warnings if named["certificate_"].has_maximum else []
        return Fitted(chosen.attributes, [*lost, *chosen.warnings])
    V = np.zeros((p, q - 1))
    V[varied] = np.asarray(named["components_"], dtype=np.float64).T
    scale = np.ones(p)
    scale[varied] = 1.0 if named["scale_"] is None else np.asarray(named["scale_"])
    mean = seen.mean.copy()
    mean[varied] = np.asarray(named["mean_"])
    total, certificate = float(variances.sum()), named["certificate_"]
    every = _named(
        source,
        complete(np, V, p),
        variances,
        total,
        0.0,
        named["_weight"],
        mean,
        scale if options.scale else None,
        certificate,
        LIKELIHOOD,
    )
    return Fitted(every.attributes, found.warnings)


def _refuse_rules(rule: Any) -> None:
    """Refuse rules for the number of components: they count rows as if every cell were observed."""
    if isinstance(rule, str):
        raise ValueError(
            f"n_components={rule!r} needs complete rows. Where cells are missing give a number or a fraction, such as "
            "the number with the largest held-out likelihood: cross_val_score(PCA(k), X) takes missing cells."
        )


def fit_likelihood(
    source: Source,
    w: Vector | None,
    k: int,
    options: Options,
    tol: float,
    max_iterations: int,
    start: Factor | None = None,
) -> Fitted:
    """Probabilistic PCA of the observed cells, columns divided by their observed deviations where asked."""
    seen = survey(source, w)
    most = min(seen.rows - 1, source.shape[1] - 1)
    if k > most:
        raise ValueError(
            f"n_components={k} must be at most {most}, less than the rows and the columns, where values are missing."
        )
    scale = seen.deviation if options.scale else np.ones(source.shape[1])

    def about_mean(block: Block) -> Matrix:
        return np.asarray((to_numpy(block.values, float) - seen.mean) / scale)

    start = _start(mapped(source, lambda b: np.nan_to_num(about_mean(b))), w, k, options) if start is None else start
    found, certificate = fit_factor(source, start, w, rows=about_mean, tol=tol, max_iterations=max_iterations)
    certificate = certificate.with_(
        passes=certificate.passes + 2,
        objective=certificate.objective + float(seen.count @ np.log(scale)),  # in the data's own units
        notes=(f"{seen.missing} of {seen.rows * len(scale)} cells are missing, assumed at random", *certificate.notes),
    )
    return _of_factor(found, seen, source, scale if options.scale else None, certificate)


def _start(filled: Source, w: Vector | None, k: int, options: Options) -> Factor:
    """Closed form for the rows with missing cells at their column's mean."""
    found = fit_complete(filled, w, replace(options, n_components=k, scale=False, whiten=False)).attributes
    variances = np.asarray(found["explained_variance_"])
    total = float(variances.sum()) + found["noise_variance_"] * (filled.shape[1] - k)
    noise = max(found["noise_variance_"], 1e-6 * total / filled.shape[1]) or 1.0
    W = np.asarray(found["components_"], dtype=np.float64).T * np.sqrt(np.maximum(variances - noise, 1e-3 * noise))
    return Factor(np.zeros(filled.shape[1]), W, noise)


def _of_factor(factor: Factor, seen: Survey, source: Source, scale: Vector | None, certificate: Optimum) -> Fitted:
    """Components and variances of μ, W, σ²: maximum likelihood divides by n, PCA by n − 1."""
    V, lengths, _ = np.linalg.svd(factor.loading, full_matrices=False)
    correction = seen.weight / (seen.weight - 1.0)
    noise = factor.noise * correction
    variances = lengths**2 * correction + noise
    mean = seen.mean + factor.mean * (1.0 if scale is None else scale)
    total = float(variances.sum()) + (len(mean) - len(variances)) * noise
    return _named(source, V, variances, total, noise, seen.weight, mean, scale, certificate, LIKELIHOOD)


def _of_completion(found: Completion, source: Source, scaled: bool, method: str) -> Fitted:
    scale = found.scale if scaled else None
    V, certificate = found.components.T, found.certificate
    return _named(
        source, V, found.variances, found.total, found.noise, found.weight, found.mean, scale, certificate, method
    )


def _named(
    source: Source,
    V: Matrix,
    variances: Vector,
    total: float,
    noise: float,
    weight: float,
    mean: Vector,
    scale: Vector | None,
    certificate: Optimum,
    method: str,
) -> Fitted:
    dtype = source.xp.float32 if source.dtype == source.xp.float32 else source.xp.float64
    attributes = {
        "components_": source.xp.astype(like(source, fix_signs(np, V).T), dtype),
        "explained_variance_": like(source, variances),
        "explained_variance_ratio_": like(source, variances / (total or 1.0)),
        "singular_values_": like(source, np.sqrt(variances * (weight - 1.0))),
        "mean_": like(source, mean),
        "scale_": like(source, scale),
        "noise_variance_": float(noise),
        "n_components_": len(variances),
        "n_samples_": rows(weight),
        "rank_": len(variances),
        "certificate_": certificate,
        "_weight": weight,
        "_missing_method": method,
    }
    return Fitted(attributes, _messages(certificate))


def _messages(certificate: Optimum) -> list[str]:
    if certificate.converged:
        return []
    if not certificate.has_maximum:
        return [
            f"The fit has no maximum: {NO_NOISE}. Components and means are as they should be; densities are not. Ask "
            "for fewer components, or use fit_incomplete(X, method='least-squares')."
        ]
    return [
        f"The fit with missing values did not converge: gradient {certificate.gradient:.1e} after "
        f"{certificate.iterations} iterations, tolerance {certificate.tolerance:.1e}. Call fit_incomplete with more "
        "max_iterations, a larger tol, fewer components, or method='regularised'."
    ]
