"""PCA of a stream: the rows that partial_fit keeps, and the problem they pose."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_numpy_namespace

from gramian.compute.devices import like
from gramian.compute.rowspace import RowSpace
from gramian.inputs.opening import refuse_non_finite
from gramian.operators import Data
from gramian.pca.problem import CentredProblem, PCAFit
from gramian.pca.solve import check_number, count_rows, cut_spectrum, refuse_too_few
from gramian.results import Spectrum
from gramian.sources import DenseSource, Source, TensorSource, memory_budget
from gramian.spectral import Dense

Array = Any


def absorb_rows(state: RowSpace, source: Source, w: Array | None, pca: Any) -> RowSpace:
    """Add a source's rows to the row factor of a stream, a few at a time."""
    p = source.shape[1]
    refuse_non_finite(source)
    known = isinstance(pca.n_components, (int, np.integer))
    wanted = check_number(pca.n_components, p, pca.svd_solver) if known else None
    room = memory_budget() // (8 * 8 * p)
    for block in source.blocks(max(1, min(room, max(1024, 4 * p)))):
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

    Where directions were cut off, ‖AᵀAv − σ²v‖ ≤ Δ, so that the residual is at most Δ/(σσ₁).
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
    certificate = spectrum.certificate.with_(passes=1)
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
