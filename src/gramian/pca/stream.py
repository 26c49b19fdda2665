"""PCA of a stream: what partial_fit gathers, and the decomposition of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_numpy_namespace

from gramian.compute.devices import like
from gramian.compute.rowspace import RowSpace
from gramian.inputs.opening import refuse_non_finite
from gramian.operators import Data
from gramian.pca.solve import Fitted, Found, Options, count, named, refuse_too_few, requested
from gramian.results import SpectralCertificate
from gramian.sources import DenseSource, Source, TensorSource, memory_budget
from gramian.spectral import Dense

__all__ = ["absorb", "conclude", "template"]

Array = Any


def absorb(state: RowSpace, source: Source, w: Array | None, options: Options) -> RowSpace:
    """Add a source's rows to what partial_fit has gathered, a few at a time."""
    p = source.shape[1]
    refuse_non_finite(source)
    known = isinstance(options.n_components, (int, np.integer))
    wanted = requested(options.n_components, p, options.solver) if known else None
    limit = max(memory_budget() // (8 * 8 * p), 2 * (wanted or 50) + 20)
    step = max(1, min(memory_budget() // (8 * 8 * p), max(1024, 4 * p)))
    for block in source.blocks(step):
        part = None if w is None else np.asarray(w[block.start : block.stop])
        values = block.values.toarray() if source.sparse else np.asarray(block.values)
        with np.errstate(over="ignore", invalid="ignore"):
            state = state.update(values, part, limit)
    return state


def template(source: Source) -> Source:
    """Return a source of the same kind with no rows: all that partial_fit needs to remember of its input."""
    p, xp = source.shape[1], source.xp
    if is_numpy_namespace(xp):
        return DenseSource(np.empty((0, p), source.dtype))
    return TensorSource(xp.empty((0, p), dtype=source.dtype, device=source.device))


def conclude(state: RowSpace, source: Source, options: Options) -> Fitted:
    """Decompose the row factor: B = UΣVᵀ, with residual Δ/(σσ₁) where directions were cut off."""
    weight, p = state.weight, source.shape[1]
    refuse_too_few(state.rows, weight)
    asked = requested(options.n_components, min(count(weight, state.rows), p), options.solver)
    scale, B, squares, lost = None, state.factor, state.squares, state.discarded
    if options.scale:
        scale = np.where(squares > 0, np.sqrt(squares / (weight - 1.0)), 1.0)
        B, squares, lost = B / scale, squares / scale**2, lost / float(np.min(scale)) ** 2
    result = Dense("svd")(Data(B), min(B.shape), "partial_fit keeps a row factor of the data")
    certificate = result.certificate.with_(passes=1)
    if lost > 0.0:
        certificate = _cut_certificate(certificate, lost, options.tol or 1e-6)
        remedy = "Raise scikit-learn's working_memory so that more directions are kept, or ask for fewer components."
        kept = len(certificate.values)
        if asked is None or asked > kept:
            raise ValueError(
                f"n_components={options.n_components!r} needs more than the {kept} directions that were kept. {remedy}"
            )
        cut = certificate.with_(values=certificate.values[:asked], residuals=certificate.residuals[:asked])
        cut.warn_unless_converged(remedy)
    right = like(source, result.right)
    mean = state.mean + state.low
    found = Found(
        result.values, right, certificate, float(squares.sum()), weight, count(weight, state.rows), mean, scale
    )
    return named(found, source, options, asked)


def _cut_certificate(certificate: SpectralCertificate, lost: float, tolerance: float) -> SpectralCertificate:
    r"""‖AᵀAv − σ²v‖ ≤ Δ, so that the residual is at most Δ/(σσ₁)."""
    sigma = np.maximum(certificate.values, np.finfo(float).tiny)
    return certificate.with_(
        method="row factor cut to its leading directions",
        residuals=certificate.residuals + lost / (sigma * certificate.norm),
        tolerance=tolerance,
        notes=(f"every eigenvalue of the scatter matrix is too small by at most {lost:.3g}",),
    )
