r"""The steps of a kernel PCA fit, as functions: which solver, the eigenpairs, and the coefficients that follow.

With H = I − 1w̄ᵀ, w̄ = w/Σw, the matrix B = diag(√w) H K Hᵀ diag(√w) has unit eigenvectors u and eigenvalues λ. A
component is v = Σ_j α_j φ(x_j) with α = Hᵀ diag(√w) u/√λ, of length 1, and the score of a point x is

.. math:: \langle v, \varphi(x)-\bar\varphi\rangle = \sum_j \alpha_jk(x,x_j) - c,\qquad c = \bar w^TK\alpha

so that new points are centred with the training means by subtracting one number for each component.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import host
from gramian.estimators._kernel_pca_dense import dense_components
from gramian.estimators._kernel_pca_nystrom import nystrom_components
from gramian.estimators._kernel_pca_task import (
    DENSE,
    NOTHING,
    Decomposition,
    Task,
    choose,
    chosen_points,
    cleaned,
)
from gramian.operators import Data, FeatureCentred, Multiple, Operator, Shifted
from gramian.results import Certificate, NumericalWarning, Spectrum
from gramian.sources import memory_budget
from gramian.spectral import SymmetricKrylov
from gramian.spectral.rayleigh import warn_unless_converged

__all__ = ["DENSE", "Decomposition", "Task", "choose", "chosen_points", "decompose"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

CANCELS = 1e-3  # of the trace: below, float32 has too few digits for what centring leaves
FAST = 5e-4  # relative error of a card's fast mode, which iterates ...
FAST_FROM = 5e-5  # ... for tolerances from here on, where ...
FAST_CANCELS = 0.1  # ... centring leaves so much of the trace


def decompose(task: Task) -> Decomposition:
    """Find the leading eigenpairs of B and the coefficients of the components."""
    way, reason = choose(task.n, task.k, task.solver, task.device)
    if way == "nystrom":
        return nystrom_components(task, reason)
    K: Any = task.operator(np.float64, store=_kept(task, way))
    own = np.asarray(host(K.diagonal()), dtype=np.float64)
    K = Data(K.to_dense()) if way == "dense" and task.device is None else K  # evaluated once, whatever is asked of it
    B = FeatureCentred(K, task.w, centre=task.centre)
    twins = _twins(task, own) if way == "krylov" else []
    if not twins and _spread(B, task, own) <= max(NOTHING, 4 * B.epsilon) and not task.unknown:
        return _coefficients(B, task, _no_variance(task, reason), 0.0)
    found = dense_components(B, task, reason) if way == "dense" else _krylov(B, twins, task, own, reason)
    return _coefficients(B, task, *found)


def _kept(task: Task, way: str) -> bool | str:
    """Whether K in float64 is kept: for LAPACK, or where values are dear; on a device by the operator's own rule."""
    if task.device is not None:
        return False if way == "dense" else "auto"
    return way == "dense" or _costly(task)


def _spread(B: FeatureCentred, task: Task, own: Vector) -> float:
    """tr B as a share of the trace of K: what centring leaves."""
    whole = float(own @ task.frequencies)
    taken = float(task.frequencies.sum()) * float(B.means @ B.share) if task.centre else 0.0
    return (whole - taken) / abs(whole) if whole != 0.0 else 0.0


def _twins(task: Task, own: Vector) -> list[FeatureCentred]:
    """B in float32, where there are many products to make and centring leaves digits enough; on a card in two modes."""
    if task.n <= DENSE or not 1e-30 < float(np.max(own)) < 1e30 or _costly(task):
        return []
    # what fits is kept from the first product, one triangle
    kept = 2 * task.n**2 <= memory_budget() // 2 if task.device is None else "auto"
    twin = FeatureCentred(task.operator(np.float32, store=kept), task.w, centre=task.centre)
    left = _spread(twin, task, own)
    if left <= CANCELS:
        return []
    fast = _fast(task) if task.device is not None and task.tol >= FAST_FROM and left > FAST_CANCELS else None
    return [twin] if fast is None or fast.epsilon <= twin.epsilon else [fast, twin]


def _fast(task: Task) -> FeatureCentred:
    return FeatureCentred(task.operator(np.float32, tolerance=FAST), task.w, centre=task.centre)


def _costly(task: Task) -> bool:
    """Whether a value of the kernel costs a call of Python, so that every one is kept if it can be."""
    return task.kernel.takes_objects and 4 * task.n**2 <= memory_budget()


def _no_variance(task: Task, reason: str) -> Spectrum:
    """All features are equal, as far as K can tell: any directions will do."""
    warnings.warn(
        "All features are equal, as far as the kernel matrix can tell: there is no variance to explain. If the rows do "
        "differ, subtract their mean, or choose a narrower kernel.",
        NumericalWarning,
        stacklevel=5,
    )
    zero = np.zeros(task.k)
    certificate = Certificate("none needed", f"{reason}; all features are equal", 1, zero, zero, 0.0, 0.0, 1e-10)
    return Spectrum(zero, np.eye(task.n, task.k), None, certificate)


def _krylov(
    B: FeatureCentred, twins: list[FeatureCentred], task: Task, own: Vector, reason: str
) -> tuple[Spectrum, float]:
    """Block Krylov: iterated on tiles in float32 where that helps, projected and certified in float64."""
    most = task.max_iterations or 300
    result = SymmetricKrylov(task.tol, max_products=most, seed=task.seed).attempt(B, task.k, reason, twin=twins)
    lost = _size(B, task, own) / max(result.certificate.norm, np.finfo(float).tiny)
    certificate = result.certificate.with_(
        passes=sum(A.passes for A in (*twins, B)), rounding=4 * B.epsilon * max(1.0, lost)
    )
    warn_unless_converged(certificate, f"Raise tol, use eigen_solver='dense', or allow more than max_iter={most}.")
    result = replace(result, certificate=certificate)
    return result, _smallest(B, float(result.values[0]), task.seed) if task.unknown else 0.0


def _size(B: FeatureCentred, task: Task, own: Vector) -> float:
    """‖K‖ ≤ tr K of inner products; else about the largest row sum. What centring takes away was rounded with it."""
    trace = float(np.abs(own) @ task.frequencies)
    if not (task.unknown and task.centre):
        return trace
    return max(trace, float(task.frequencies.sum() * np.max(np.abs(host(B.means)))))


def _smallest(B: Operator, top: float, seed: int) -> float:
    """The smallest eigenvalue of B, as τ less the largest of τI − B with τ the largest of B.

    What Krylov finds is never below the smallest, so that a negative answer is proof.
    """
    top = max(top, np.finfo(float).tiny)
    shifted = Shifted(Multiple(B, -1.0), top)
    return top - float(SymmetricKrylov(1e-5, max_products=60, seed=seed).attempt(shifted, 1, "").values[0])


def _coefficients(B: FeatureCentred, task: Task, result: Spectrum, low: float) -> Decomposition:
    """α and c; directions without variance get the coefficient 0."""
    values, U = cleaned(result.values), np.asarray(host(result.right), dtype=np.float64)
    root = np.sqrt(task.frequencies)[:, None]
    inverse = np.divide(1.0, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    alpha, share = root * U * inverse, task.share
    means = np.zeros(task.n)
    if task.centre:
        alpha = alpha - share[:, None] * alpha.sum(axis=0)
        means = np.asarray(host(B.means), dtype=np.float64)
    offset, mean_square = means @ alpha, float(means @ share)
    return Decomposition(values, U, task.X, alpha, offset, share, mean_square, means, result.certificate, low)
