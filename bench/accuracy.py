"""How accurate a fit is, measured the same way whoever made it."""

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

from bench.reference import Array, Centred, Reference


@dataclass(frozen=True)
class Accuracy:
    """The worst residual, the largest angle to the true subspace in radians, the worst error of a value."""

    residual: float
    angle: float | None
    value_error: float


def worst_residual(a: Centred, values: Array, right: Array, norm: float) -> float:
    """Return max √(‖Av − σu‖² + ‖Aᵀu − σv‖²)/‖A‖ over the components, with u = Av/‖Av‖.

    A fitted PCA gives σ and v but no u; Av/‖Av‖ is the u that its v implies, the same for every solver.
    """
    product, lengths = a.normal(right)
    safe = np.where(lengths > 0, lengths, 1.0)
    forward = lengths - values
    backward = np.linalg.norm(product / safe - right * values, axis=0)
    return float(np.hypot(forward, backward).max() / norm)


def largest_angle(right: Array, reference: Reference) -> float | None:
    """Return the largest principal angle to the true subspace, or None when that is the whole space."""
    if reference.gap is None:
        return None
    return float(la.subspace_angles(right, reference.right).max())


def measure(a: Centred, values: Array, components: Array, reference: Reference) -> Accuracy:
    """Return the accuracy of ``singular_values_`` and ``components_`` (k×p) on centred data."""
    values, right = values.astype(np.float64), np.ascontiguousarray(components.T, dtype=np.float64)
    error = np.abs(values - reference.values[: values.size]).max() / reference.norm
    residual = worst_residual(a, values, right, reference.norm)
    return Accuracy(residual, largest_angle(right, reference), float(error))
