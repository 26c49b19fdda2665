"""What a rotation of loadings returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._elements import text_table

__all__ = ["Rotation"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Rotation:
    r"""Loadings after a rotation, and how well its criterion was met.

    Attributes
    ----------
    method : str
        Name of the criterion.
    names : tuple of str
        The variables.
    loadings : ndarray of shape (p, k)
        Rotated loadings (the pattern): AM for loadings A. Factors by falling variance, largest entries positive.
    rotation : ndarray of shape (k, k)
        M; orthogonal unless the method is promax.
    structure : ndarray of shape (p, k)
        Covariances of variables and factors, AMΦ: the loadings themselves where M is orthogonal.
    correlations : ndarray of shape (k, k)
        Φ = (MᵀM)⁻¹, the correlations of the factors.
    explained_variance : ndarray of shape (k,)
        What each factor explains: column sums of loadings × structure. They sum to the communalities.
    total_variance : float
        The variance of all variables, of which the factors explain a part; p where loadings alone were given, as of
        scaled variables.
    criterion : float
        The orthomax criterion at the rotation found, of the normalised loadings where they were normalised (of promax:
        varimax's, from which it starts).
    stationarity : float
        ‖ΛᵀG − GᵀΛ‖/‖ΛᵀΛ³‖ with 4G the criterion's gradient and Λ³ taken entry by entry: 0 exactly where no small
        rotation changes the criterion.
    tolerance : float
        What stationarity was asked to meet.
    iterations : int
        Sweeps over all pairs of factors.
    converged : bool
        Whether it met the tolerance, with no plane left in which the criterion would still rise by that much.
    """

    method: str
    names: tuple[str, ...]
    loadings: Matrix
    rotation: Matrix
    structure: Matrix
    correlations: Matrix
    explained_variance: Vector
    total_variance: float
    criterion: float
    stationarity: float
    tolerance: float
    iterations: int
    converged: bool

    @property
    def communalities(self) -> Vector:
        """What the factors explain of each variable's variance; no rotation changes them."""
        return np.asarray(np.sum(self.loadings * self.structure, axis=1))

    def table(self) -> dict[str, Any]:
        """Return the loadings as columns, ready for ``pandas.DataFrame``."""
        factors = {name: self.loadings[:, j] for j, name in enumerate(self.names_of_factors)}
        return {"name": list(self.names), **factors, "communality": self.communalities}

    def __repr__(self) -> str:
        met = "converged" if self.converged else "NOT converged"
        head = f"Rotation: {self.method}, {met} in {self.iterations} sweeps (stationarity {self.stationarity:.1e})"
        parts = [head, text_table(self.table()), text_table(self._shares())]
        if self.method == "promax":
            parts += ["correlations of the factors:", text_table(self._named(self.names_of_factors, self.correlations))]
        return "\n".join(parts)

    @property
    def names_of_factors(self) -> tuple[str, ...]:
        """Return factor0, factor1, …"""
        return tuple(f"factor{j}" for j in range(self.loadings.shape[1]))

    @property
    def explained_variance_ratio(self) -> Vector:
        """Share of the variance of all variables that each factor explains."""
        return np.asarray(self.explained_variance / self.total_variance)

    def _shares(self) -> dict[str, Any]:
        share = self.explained_variance_ratio
        return self._named(
            ("SS loadings", "proportion", "cumulative"), np.array([self.explained_variance, share, np.cumsum(share)])
        )

    def _named(self, rows: tuple[str, ...], values: Matrix) -> dict[str, Any]:
        """Columns of a table, one for each factor."""
        return {"": list(rows)} | {name: values[:, j] for j, name in enumerate(self.names_of_factors)}
