"""What the constructor of GaussianMixture accepts, and what a fit makes of it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.inputs.checks import check_choice
from gramian.mixture.binned import Bins
from gramian.mixture.em import Fit, fit_mixture
from gramian.mixture.models import Constraints, Maximiser, Prior
from gramian.mixture.parameters import Mixture, numbers, resolve_model
from gramian.mixture.rows import Rows

__all__ = [
    "PARAMETERS",
    "STARTS",
    "attributes",
    "check_parameters",
    "covariance_shape",
    "covariances_from",
    "maximiser_of",
    "mixture_from",
    "one_normal",
    "seeded",
]

Array = npt.NDArray[np.float64]

PARAMETERS = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")


def attributes(mixture: Mixture, kind: str) -> dict[str, Array]:
    """The parameters under scikit-learn's names, in the shapes that a ``covariance_type`` has there.

    ``precisions_cholesky_`` is C with Σ⁻¹ = CCᵀ: the transposed inverse of the Cholesky factor.

    Examples
    --------
    >>> from gramian.mixture.options import attributes
    >>> from gramian.mixture import Mixture
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


STARTS = ("kmeans", "k-means++", "random", "random_from_data", "hierarchical")


def check_parameters(model: Any) -> None:
    """Raise an error that names the parameter, what it is, and what it may be."""
    for name, least in (("n_components", 1), ("max_iter", 0), ("n_init", 1), ("verbose_interval", 1)):
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    _not_negative("tol", model.tol)
    if isinstance(model.decay, bool) or not isinstance(model.decay, Real) or not 0.5 <= float(model.decay) <= 1.0:
        raise ValueError(f"decay must be a number between 0.5 and 1, got {model.decay!r}.")
    check_choice("init_params", model.init_params, STARTS)
    if model.reg_covar is not None:
        _not_negative("reg_covar", model.reg_covar)
    if model.prior is not None and not isinstance(model.prior, Prior):
        check_choice("prior", model.prior, ("conjugate",))
    if model.prior is not None and model.reg_covar is not None:
        raise ValueError("reg_covar and prior both keep components from collapsing: give one of them.")
    if model.constraints is not None and not isinstance(model.constraints, Constraints):
        raise ValueError(f"constraints must be a gramian.mixture.Constraints, got {model.constraints!r}.")
    _check_held(model)


def _not_negative(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be a number of at least 0, got {value!r}.")


def _check_held(model: Any) -> None:
    """What is held is held at the value given."""
    for part, given in (("weights", "weights_init"), ("means", "means_init"), ("covariances", "precisions_init")):
        held = None if model.constraints is None else getattr(model.constraints, f"fixed_{part}")
        if held is not None and np.any(held) and getattr(model, given) is None:
            raise ValueError(f"constraints hold {part} that are not given: set {given}.")


def seeded(random_state: Any) -> np.random.RandomState:
    """The generator of a fit: None is a fixed seed, so that fits repeat."""
    if random_state is None or isinstance(random_state, Integral):
        return np.random.RandomState(0 if random_state is None else int(random_state))
    if isinstance(random_state, np.random.RandomState):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(int(random_state.integers(2**31 - 1)))
    raise ValueError(f"random_state must be None, a whole number or a generator, got {random_state!r}.")


def maximiser_of(model: Any, data: Rows | Bins) -> Maximiser:
    """The maximisation step that the constructor's arguments ask for, on these data."""
    letters = resolve_model(model.covariance_type, len(data.origin))
    rules = Constraints() if model.constraints is None else model.constraints
    return Maximiser(letters, _prior(model, letters, data), rules)


def _prior(model: Any, letters: str, data: Rows | Bins) -> Prior | None:
    if isinstance(model.prior, Prior):
        return model.prior
    if model.prior == "conjugate":
        if not data.weight > 1.0:
            raise ValueError(
                "prior='conjugate' takes the covariance of the data with the divisor Σw − 1, and the weights sum to "
                f"{data.weight:g}. Weights are frequencies: let them sum to the number of observations."
            )
        whole = one_normal(data)
        unbiased = whole.mixture.covariances[0] * (data.weight / (data.weight - 1.0))
        return Prior.conjugate(unbiased, whole.mixture.means[0], letters, model.n_components)
    if model.reg_covar is None:
        return Prior.floor(data)
    if model.reg_covar == 0.0:
        return None
    # as much as scikit-learn adds to the variances, of components of average size
    return Prior(np.full(len(data.origin), model.reg_covar * data.weight / model.n_components))


def one_normal(data: Rows | Bins, max_iterations: int = 1000) -> Fit:
    """One normal distribution fitted to data: for complete rows one step, their mean and covariance."""
    variances = np.where(data.variances > 0, data.variances, 1.0)
    start = Mixture.of([1.0], np.zeros((1, len(variances))), np.diag(variances), "EEE", data.origin)
    return fit_mixture(data, start, Maximiser("EEE", Prior.floor(data)), max_iterations=max_iterations)
