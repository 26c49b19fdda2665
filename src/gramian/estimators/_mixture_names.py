"""Between a mixture and the attributes and arguments that scikit-learn's estimator has for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.likelihood.mixture import Mixture, resolve_model
from gramian.likelihood.mixture.given import numbers

__all__ = ["PARAMETERS", "attributes", "covariance_shape", "covariances_from", "mixture_from"]

Array = npt.NDArray[np.float64]

PARAMETERS = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")


def attributes(mixture: Mixture, kind: str) -> dict[str, Array]:
    """The parameters under scikit-learn's names, in the shapes that a ``covariance_type`` has there.

    ``precisions_cholesky_`` is C with Σ⁻¹ = CCᵀ: the transposed inverse of the Cholesky factor.

    Examples
    --------
    >>> from gramian.estimators._mixture_names import attributes
    >>> from gramian.likelihood.mixture import Mixture
    >>> attributes(Mixture.of([1.0], [[0.0, 0.0]], [4.0], "VII"), "spherical")["precisions_cholesky_"]
    array([0.5])
    """
    if kind in ("spherical", "diag"):
        spread, C = mixture.covariances, mixture.roots
        P = C**2
    else:
        spread = mixture.matrices
        C = mixture.roots[:, :, None] * np.eye(spread.shape[1]) if mixture.diagonal else mixture.roots
        C = np.ascontiguousarray(C.transpose(0, 2, 1))
        P = C @ C.transpose(0, 2, 1)
    cut: Any = {"spherical": (slice(None), 0), "tied": 0}.get(kind, slice(None))
    arrays = (mixture.weights, mixture.means, spread[cut], P[cut], C[cut])
    return {name: np.array(value) for name, value in zip(PARAMETERS, arrays, strict=True)}


def covariance_shape(kind: str, k: int, d: int) -> tuple[int, ...]:
    """The shape of ``covariances_`` and ``precisions_``: scikit-learn's for its names, else (k, d, d)."""
    return {"spherical": (k,), "diag": (k, d), "tied": (d, d)}.get(kind, (k, d, d))


def covariances_from(precisions: Any, kind: str, k: int, d: int, *, factored: bool = False) -> Array:
    """Covariances of shape (k, d) or (k, d, d) from precisions, or from factors C with Σ⁻¹ = CCᵀ."""
    P = numbers("precisions", precisions)
    shape = covariance_shape(kind, k, d)
    if P.shape != shape:
        raise ValueError(f"Precisions of covariance_type={kind!r} must have shape {shape}; they have {P.shape}.")
    if P.ndim <= 2 and kind != "tied":
        P = P**2 if factored else P
        if not (P > 0).all():
            raise ValueError("Precisions must be positive.")
        return np.array(np.broadcast_to(1.0 / P if kind == "diag" else 1.0 / P[:, None], (k, d)))
    P = P @ np.swapaxes(P, -1, -2) if factored else P
    P = np.broadcast_to(P, (k, d, d))
    symmetric = np.allclose(P, np.swapaxes(P, -1, -2))
    if not symmetric or not (np.linalg.eigvalsh(P) > 0).all():
        raise ValueError("Precisions must be symmetric and positive definite.")
    S = np.linalg.inv(P)
    return np.asarray((S + np.swapaxes(S, -1, -2)) / 2)


def mixture_from(owner: Any) -> Mixture:
    """The mixture that an estimator's attributes say it is, from whatever put them there."""
    means = np.atleast_2d(np.asarray(owner.means_, dtype=np.float64))
    (k, d), kind = means.shape, getattr(owner, "_kind", owner.covariance_type)
    model = resolve_model(kind, d)
    spread = covariances_from(owner.precisions_cholesky_, kind, k, d, factored=True)
    origin = means.mean(axis=0)
    if model in ("EII", "VII", "EEI", "VEI", "EVI", "VVI") and spread.ndim == 3:
        spread = np.array(np.diagonal(spread, axis1=1, axis2=2))
    return Mixture.of(owner.weights_, means - origin, spread, model, origin)
