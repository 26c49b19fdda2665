r"""The maximisation step: statistics in, a mixture of the model out."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gramian.likelihood.mixture.constraints import Constraints
from gramian.likelihood.mixture.covariance import expected_log_likelihood, maximise_covariances
from gramian.likelihood.mixture.floor import POOLED, SHARED_SHAPE, lowest, raised
from gramian.likelihood.mixture.models import resolve_model
from gramian.likelihood.mixture.parameters import Mixture
from gramian.likelihood.mixture.prior import Prior
from gramian.likelihood.mixture.statistics import Statistics

__all__ = ["EMPTY", "Maximiser", "step_length"]

Array = npt.NDArray[np.float64]

EXACT = frozenset({"EII", "VII", "EEI", "VVI", "EEE", "VVV"})
EMPTY = 1e-12  # of the total weight: a component with less is left where it is


@dataclass(frozen=True, eq=False)
class Maximiser:
    """The maximisation step of one covariance model.

    Attributes
    ----------
    model : str
        One of the 14 models, or another name of one.
    prior : Prior or None
        Added to the log-likelihood. With none, nothing keeps a component from collapsing.
    constraints : Constraints
        What is held or shared.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.likelihood.mixture import Maximiser, Rows
    >>> data = Rows.of(gramian.open(np.array([[0.0], [2.0], [7.0], [9.0]])))
    >>> Maximiser("V")(data.assigned([0, 0, 1, 1], 2, "VII")).means
    array([[1.],
           [8.]])
    """

    model: str
    prior: Prior | None = None
    constraints: Constraints = field(default_factory=Constraints)

    def __call__(self, stats: Statistics, current: Mixture | None = None) -> Mixture:
        """Return the mixture that maximises the expected log-likelihood plus the prior's.

        Where means are held or shared, they are maximised at the current covariances, and covariances at the new
        means; the log-likelihood rises all the same.
        """
        model = resolve_model(self.model, stats.about.shape[1])
        N, rules = stats.counts, self.constraints
        kappa = 0.0 if self.prior is None else self.prior.shrinkage
        centres = stats.centres
        if self.prior is not None:
            centres = self.prior.shrunk(N, centres, stats.origin)
        centres = rules.means(N + kappa, centres, current)
        counts, scatter = N, stats.scatter(centres)
        if self.prior is not None:
            counts, scatter = self.prior.added(N, scatter, centres, stats.origin)
        own = model not in POOLED and (self.prior is None or self.prior.counts == 0.0)
        counts, scatter = _without_empty(stats, counts, scatter, current, own=own)
        counts, scatter = rules.covariances(counts, scatter, current)
        spread = self._covariances(model, counts, scatter, None if current is None else current.covariances)
        return Mixture(rules.weights(N, current), centres, spread, model, stats.origin)

    def _covariances(self, model: str, N: Array, T: Array, current: Array | None) -> Array:
        """The best covariances of the model; with the floor, those above it."""
        if self.prior is None or not self.prior.hard:
            return maximise_covariances(model, N, T, current)
        scale = self.prior.scale
        if model in SHARED_SHAPE:  # a component's own scatter may well be singular
            free = _attempt(model, N, T, current)
            if free is not None and lowest(model, free, scale).min() >= 1.0:
                return free
        above = raised(model, N, T, scale)
        found = maximise_covariances(model, N, above, current)
        if above is T or (model in EXACT and T.ndim == 2) or current is None or current.shape != found.shape:
            return found
        falls = expected_log_likelihood(found, N, T) < expected_log_likelihood(current, N, T)
        return current if falls and lowest(model, current, scale).min() >= 0.5 else found

    def log_prior(self, mixture: Mixture) -> float:
        """What is added to the log-likelihood."""
        return 0.0 if self.prior is None else self.prior.log_density(mixture)

    def free_parameters(self, mixture: Mixture) -> int:
        """How many parameters the model and the constraints leave free."""
        return self.constraints.free_parameters(mixture)


def _attempt(model: str, N: Array, T: Array, current: Array | None) -> Array | None:
    """The covariances without a floor, or none where the scatter of all components together is singular."""
    with np.errstate(all="ignore"):
        try:
            found = maximise_covariances(model, N, T, current)
        except np.linalg.LinAlgError:
            return None
    return found if np.isfinite(found).all() else None


def _without_empty(stats: Statistics, N: Array, T: Array, current: Mixture | None, *, own: bool) -> tuple[Array, Array]:
    """Give a component without rows its own covariance back, at a weight that moves no other.

    There is no need for that where all share one covariance, or where a prior gives it one.
    """
    empty = stats.counts <= EMPTY * stats.weight
    if not empty.any():
        return N, T
    if current is None:
        raise ValueError(f"No row is assigned to component {np.flatnonzero(empty)[0]}. Start from fewer components.")
    if not own:
        return N, T
    tiny = EMPTY * stats.weight
    shape = (-1, *(1,) * (T.ndim - 1))
    return np.where(empty, tiny, N), np.where(empty.reshape(shape), tiny * current.covariances, T)


def step_length(at: Mixture, to: Mixture, weight: float) -> float:
    r"""Length of a step in standard errors of complete data: the gradient's norm, where the step is one of EM.

    .. math:: \sum_k n\pi_k\Bigl[(\Delta\pi_k/\pi_k)^2 + \|L_k^{-1}\Delta\mu_k\|^2
        + \tfrac12\|L_k^{-1}\Delta\Sigma_kL_k^{-T}\|_F^2\Bigr]

    is ΔᵀIΔ with I the information of rows whose components are known; EM's step is I⁻¹ times the score, to first order.
    """
    taking = at.weights > 0
    share = np.where(taking, at.weights, 1.0)
    R, shift, change = at.roots, to.centres - at.centres, to.covariances - at.covariances
    if at.diagonal:
        lengths = np.sum((R * shift) ** 2, axis=1) + 0.5 * np.sum((R**2 * change) ** 2, axis=1)
    else:
        lengths = np.sum(np.einsum("kij,kj->ki", R, shift) ** 2, axis=1)
        lengths += 0.5 * np.sum((R @ change @ R.transpose(0, 2, 1)) ** 2, axis=(1, 2))
    square = weight * float(np.sum((to.weights - at.weights) ** 2 / share) + np.sum(at.weights * lengths))
    return float(np.sqrt(square))
