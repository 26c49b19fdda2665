"""What families of labels and of rows share: their fit is a formula, which they supply whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Formula", "Joint"]

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Formula:
    """A fit by formula: what an :class:`~gramian.likelihood.Estimate` needs.

    Attributes
    ----------
    names : tuple of str
        The parameters.
    values, covariance : ndarray
        Estimates, and their covariance.
    loglik, n : float
        The log-likelihood and the number of observations.
    n_parameters : int
        How many are free.
    gradient : float
        The score in standard errors, measured where the formula leads.
    profile : object
        With ``ends(j, drop)``.
    notes : tuple of str
        What a reader should know.
    passes : int
        How often the data were read.
    """

    names: tuple[str, ...]
    values: Vector
    covariance: Matrix
    loglik: float
    n: float
    n_parameters: int
    gradient: float
    profile: Any
    notes: tuple[str, ...] = ()
    passes: int = 2


class Joint:
    """A family whose observations are no single numbers."""

    name: str
    discrete: bool = False

    def formula(self, data: Any, sample_weight: Any) -> tuple[Any, Formula]:
        """The family as fitted, and the fit."""
        raise TypeError("a family supplies this")

    def read(self, x: Any) -> Any:
        """Data as the family takes them."""
        raise TypeError("a family supplies this")

    def log_density(self, x: Any, values: Vector) -> Vector:
        """ln f(x), or ln P(x)."""
        raise TypeError("a family supplies this")

    def draw(self, values: Vector, size: int, rng: np.random.Generator) -> Any:
        """Random observations."""
        raise TypeError("a family supplies this")
