"""Inducing points of a kernel ridge regression: k(rows, centres) on its device, and the model of the centres."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from gramian.estimators._centres import Centres
from gramian.estimators._kernel_certificates import longest_squares
from gramian.estimators._kernel_matrices import dense, refuse_beyond
from gramian.estimators._kernel_task import Task
from gramian.linear.inducing import Decomposed, Inducing, InducingFit, choose_method, needed_bytes, on_card

__all__ = ["decompose_centres", "fit_centres"]

Vector = npt.NDArray[np.float64]


def fit_centres(task: Task, chosen: Centres, reason: str) -> InducingFit:
    """Fit the coefficients of the centres by passes over all rows; what is not converged is left to the caller."""
    A = task.between(task.points, chosen.points)
    way, _ = choose_method(*A.shape, task.Y.shape[1], resident=A.resident, card=on_card(A))
    solver = Inducing(tol=task.tol, max_iterations=task.max_iterations, report=task.report)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        return solver(A, _inner(task, chosen, way), task.Y, task.lam, reason=reason, **_known(task, chosen))


def decompose_centres(task: Task, chosen: Centres, copies: Vector | None) -> Decomposed:
    """Decompose the model of the centres: every λ from two passes over the rows."""
    A = task.between(task.points, chosen.points)
    return Inducing().decompose(A, _inner(task, chosen, "direct"), task.Y, copies=copies, **_known(task, chosen))


def _inner(task: Task, chosen: Centres, way: str) -> Any:
    """k(Z, Z) of the centres where it is evaluated, unless matrices of that size do not fit there."""
    m = len(chosen.indices)
    card, remedy = getattr(task.device, "type", "cpu") != "cpu", "Use fewer centres (n_centres)."
    refuse_beyond(needed_bytes(m, way, card), task.device, f"solver='inducing' with {m} centres", remedy)
    return dense(task.between(chosen.points))


def _known(task: Task, chosen: Centres) -> dict[str, Any]:
    """What the solver is to know of the rows."""
    rows = {"weights": task.w, "counts": task.counts, "intercept": task.intercept}
    return {**rows, "indices": chosen.indices, "diagonal": longest_squares(task)}
