"""The table of a choice between mixtures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["CRITERIA", "MixtureChoice"]

Matrix = npt.NDArray[np.float64]

CRITERIA = ("bic", "aic", "icl")
SHOWN = 3  # best ones in a representation


@dataclass(frozen=True, repr=False, eq=False)
class MixtureChoice:
    """Mixtures of several sizes and covariance models, compared on the same data.

    Attributes
    ----------
    criterion : str
        What was chosen by: "bic", "aic", "icl" or "lrt".
    n_components : tuple of int
        Numbers of components tried: rows of the tables.
    covariance_types : tuple of str
        Models tried: columns of the tables.
    bic, aic, icl, log_likelihood : ndarray of shape (sizes, models)
        Of each fit; the lower the better but for the last. NaN where there is no fit.
    n_parameters : ndarray of shape (sizes, models)
        Free parameters.
    problems : tuple of tuple of str
        Why a fit is not eligible: it failed, or a component collapsed or is empty; "" where all is well.
    converged : ndarray of shape (sizes, models)
        Whether the gradient met the tolerance.
    best : GaussianMixture
        The chosen one, fitted.
    test : LikelihoodRatioTest or None
        The tests behind criterion "lrt".
    """

    criterion: str
    n_components: tuple[int, ...]
    covariance_types: tuple[str, ...]
    bic: Matrix
    aic: Matrix
    icl: Matrix
    log_likelihood: Matrix
    n_parameters: Matrix
    problems: tuple[tuple[str, ...], ...]
    converged: npt.NDArray[np.bool_]
    best: Any
    test: Any = field(default=None)

    @property
    def eligible(self) -> npt.NDArray[np.bool_]:
        """Which fits may be chosen: those without a problem."""
        return np.array([[not text for text in row] for row in self.problems])

    def ranked(self, criterion: str | None = None) -> list[tuple[str, int, float]]:
        """Models, sizes and values of the eligible fits, best first."""
        values = getattr(self, self._which(criterion))
        places = [(i, j) for i, j in np.argwhere(self.eligible & np.isfinite(values))]
        ordered = sorted(places, key=lambda at: float(values[at[0], at[1]]))
        return [(self.covariance_types[j], self.n_components[i], float(values[i, j])) for i, j in ordered]

    def table(self) -> dict[str, Any]:
        """Return one line for each fit."""
        rows, columns = len(self.n_components), len(self.covariance_types)
        table: dict[str, Any] = {
            "n_components": np.repeat(self.n_components, columns),
            "covariance_type": list(self.covariance_types) * rows,
        }
        names = (*CRITERIA, "log_likelihood", "n_parameters", "converged")
        table |= {name: getattr(self, name).ravel() for name in names}
        return table | {"problem": [text for row in self.problems for text in row]}

    def _which(self, criterion: str | None) -> str:
        name = self.criterion if criterion is None else criterion
        return "bic" if name == "lrt" else name

    def __repr__(self) -> str:
        ranked = self.ranked()
        tried = int(np.size(self.bic))
        head = f"MixtureChoice by {self.criterion}: {self.best.covariance_type}, {self.best.n_components} components"
        lines = [f"{head}, of {tried} fits"]
        name = self._which(None)
        for model, k, value in ranked[:SHOWN]:
            lines.append(f"  {model:<9} {k:>2}  {name} {value:.4f}  (+{value - ranked[0][2]:.4f})")
        left = tried - int(np.count_nonzero(self.eligible))
        if left:
            lines.append(f"  {left} fits are not eligible: see table()")
        slow = int(np.count_nonzero(self.eligible & ~self.converged))
        if slow:
            lines.append(f"  {slow} fits did not converge: raise max_iter")
        return "\n".join([*lines, *([repr(self.test)] if self.test is not None else [])])
