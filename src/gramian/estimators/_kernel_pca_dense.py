"""Kernel PCA by the whole matrix: LAPACK on the CPU, its like on a card."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.compute.devices import refuse_beyond_device
from gramian.estimators._kernel_pca_task import Task, dense_bytes
from gramian.operators import FeatureCentred
from gramian.results import Certificate, Spectrum
from gramian.spectral.rayleigh import norms, orthogonality, small, warn_unless_converged

__all__ = ["dense_components"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


def dense_components(B: FeatureCentred, task: Task, reason: str) -> tuple[Spectrum, float]:
    """The eigendecomposition of B, residuals by one product; and its smallest eigenvalue where that is not known."""
    n, k, xp = task.n, task.k, B.xp
    if task.device is not None:
        what = f"The eigendecomposition of {n} rows"
        refuse_beyond_device(dense_bytes(n), task.device, what, "Use eigen_solver='krylov', which stores no matrix.")
    # entries that are large beside what centring leaves of them have lost digits before LAPACK sees them
    largest = _largest(B) * float(np.max(task.frequencies))
    M = _centred_matrix(B) if task.device is None else B.to_dense()
    values, vectors, low = _eigen(M, task) if task.device is None else _eigen_there(xp, M, k)
    norm = max(float(np.max(np.abs(values), initial=0.0)), np.finfo(float).tiny)
    residuals = np.sqrt(2) * norms(xp, M @ vectors - vectors * B.asarray(values)) / norm
    rounding = 4 * B.epsilon * max(1.0, largest * n**0.5 / norm)
    certificate = Certificate(
        "dense: eigendecomposition of the centred kernel matrix",
        reason,
        1,
        values,
        residuals,
        norm,
        orthogonality(xp, vectors),
        max(task.tol, 1e-10),
        rounding,
        notes=(B.precision,) if B.precision else (),
    )
    warn_unless_converged(certificate, "Subtract the mean from the data, or scale them.")
    return Spectrum(values, vectors, None, certificate), low if task.unknown else 0.0


def _eigen(M: Matrix, task: Task) -> tuple[Vector, Matrix, float]:
    """The k largest eigenpairs by LAPACK, and the smallest eigenvalue where it is asked for."""
    n, k = task.n, task.k
    values, vectors = scipy.linalg.eigh(M, subset_by_index=[n - k, n - 1], check_finite=False)
    if vectors.shape[1] < k:  # LAPACK finds no part of a spectrum that is one large cluster
        values, vectors = scipy.linalg.eigh(M, check_finite=False)
    low = float(scipy.linalg.eigvalsh(M, subset_by_index=[0, 0])[0]) if task.unknown else 0.0
    return values[::-1][:k].copy(), np.ascontiguousarray(vectors[:, ::-1][:, :k]), low


def _eigen_there(xp: Any, M: Any, k: int) -> tuple[Vector, Any, float]:
    """The same on a device, which knows whole decompositions alone."""
    values, vectors = xp.linalg.eigh(M)
    values = small(values)
    return values[::-1][:k].copy(), xp.flip(vectors[:, -k:], axis=1), float(values[0])


def _largest(B: FeatureCentred) -> float:
    """The largest entry of K in size."""
    return max(float(B.xp.max(B.xp.abs(block))) for _, _, block in B.A.rows())


def _centred_matrix(B: FeatureCentred) -> Matrix:
    """B as a matrix: two rank-one corrections in place of two products."""
    K = np.array(B.A.to_dense())
    if B.centre:
        row = B.share @ K
        K -= row[None, :]
        K -= (K @ B.share)[:, None]
    if B.root is not None:
        K *= B.root[:, None] * B.root[None, :]
    return K
