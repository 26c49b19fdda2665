"""The optima that several starts of a mixture led to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from gramian.likelihood.mixture import Fit, Mixture

__all__ = ["Landscape", "landscape_of"]

Array = npt.NDArray[np.float64]

NEAR = 0.05  # standard deviations between means of components that count as the same
LEVEL = 1e-2  # units of log-likelihood between optima that count as the same


@dataclass(frozen=True, repr=False, eq=False)
class Landscape:
    """Distinct optima, by falling objective.

    Attributes
    ----------
    log_likelihoods : ndarray of shape (m,)
        Of each optimum, without the prior's share.
    counts : ndarray of shape (m,)
        How many starts led to it.
    converged : ndarray of shape (m,)
        Whether one of these met the tolerance.
    problems : tuple of str
        Components that are empty or have collapsed there; "" where all is well.
    mixtures : tuple of Mixture
        Their parameters.
    kept : int
        Which one the estimator has: the highest without such components, if there is one.
    """

    log_likelihoods: Array
    counts: npt.NDArray[np.int64]
    converged: npt.NDArray[np.bool_]
    problems: tuple[str, ...]
    mixtures: tuple[Mixture, ...]
    kept: int

    def table(self) -> dict[str, Any]:
        """Return one line for each optimum."""
        return {
            "log_likelihood": self.log_likelihoods,
            "starts": self.counts,
            "converged": self.converged,
            "problems": list(self.problems),
            "kept": np.arange(len(self.counts)) == self.kept,
        }

    def __repr__(self) -> str:
        m = len(self.counts)
        lines = [f"Landscape: {m} optim{'um' if m == 1 else 'a'} from {int(self.counts.sum())} starts"]
        for i in range(m):
            state = "" if self.converged[i] else ", not converged"
            what = f", {self.problems[i]}" if self.problems[i] else ""
            mark = " (kept)" if i == self.kept else ""
            lines.append(f"  log-likelihood {self.log_likelihoods[i]:.6g} from {self.counts[i]}{state}{what}{mark}")
        return "\n".join(lines)


def landscape_of(fits: Sequence[Fit], kept: int) -> Landscape:
    """Gather the fits into distinct optima; ``kept`` is the index of the one that was chosen."""
    order = sorted(range(len(fits)), key=lambda i: float(fits[i].optimum.objective[-1]))
    groups: list[list[int]] = []
    for i in order:
        home = next((group for group in groups if same_optimum(fits[group[0]], fits[i])), None)
        if home is None:
            groups.append([i])
        else:
            home.append(i)
    heads = [fits[kept] if kept in group else fits[group[0]] for group in groups]
    return Landscape(
        np.array([fit.log_likelihood for fit in heads]),
        np.array([len(group) for group in groups], dtype=np.int64),
        np.array([any(fits[i].optimum.converged for i in group) for group in groups]),
        tuple(_problems(fit) for fit in heads),
        tuple(fit.mixture for fit in heads),
        next(j for j, group in enumerate(groups) if kept in group),
    )


def same_optimum(a: Fit, b: Fit) -> bool:
    """Whether two fits are the same up to the order of components and what a tolerance leaves open."""
    if abs(float(a.optimum.objective[-1] - b.optimum.objective[-1])) > LEVEL:
        return False
    # distances between means in the standard deviations of a's components, best matched
    R = a.mixture.roots
    away = a.mixture.centres[:, None] - b.mixture.centres[None]
    y = away * R[:, None] if a.mixture.diagonal else np.einsum("kij,klj->kli", R, away)
    distances = np.sqrt(np.sum(y**2, axis=2))
    rows, columns = linear_sum_assignment(distances)
    live = a.mixture.weights[rows] > 0
    return bool((distances[rows, columns][live] <= NEAR).all())


def _problems(fit: Fit) -> str:
    return ", ".join(f"component {item.component} {item.kind}" for item in fit.diagnoses)
