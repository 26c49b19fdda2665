"""What both regressions write: predictions, the path over λ, and how good the fit is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.cli.sources import rows_of
from gramian.cli.tables import Columns, row_keys
from gramian.display import LeaveOneOutDisplay, PredictionBandDisplay, ResidualsDisplay, RidgePathDisplay
from gramian.estimators import KernelRidgeCV
from gramian.sources.tables import Table

__all__ = ["PICTURES", "numeric_target", "path_table", "pictures", "prediction_table", "quality"]

Vector = NDArray[np.float64]

PICTURES = ("residuals", "path", "choice", "curve")


def numeric_target(table: Table, name: str) -> Vector:
    """Return the target as numbers; text is refused by name."""
    values = np.asarray(table.target)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"the target {name!r} is text, as {str(values[0])[:40]!r}: name a column of numbers")
    return values.astype(np.float64)


def prediction_table(table: Table, y: Vector, fitted: Vector) -> Columns:
    """Every row with its target, what was fitted, and the difference."""
    keys = row_keys(table)
    return {**keys, "observed": y, "fitted": fitted, "residual": y - fitted}


def quality(y: Vector, fitted: Vector) -> dict[str, float]:
    """Return the root mean squared error and R² on the rows of the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.cli.regression import quality
    >>> quality(np.array([0.0, 2.0]), np.array([1.0, 1.0]))
    {'rmse': 1.0, 'r2': 0.0}
    """
    rss, total = float(np.sum((y - fitted) ** 2)), float(np.sum((y - y.mean()) ** 2))
    return {"rmse": float(np.sqrt(rss / len(y))), "r2": 1.0 - rss / total if total > 0 else float("nan")}


def path_table(path: Any) -> Columns:
    """Every λ with its degrees of freedom and every criterion."""
    found = {"alpha": path.alphas, "degrees_of_freedom": path.dof}
    for name in ("loo", "gcv", "log_marginal_likelihood"):
        values = getattr(path, name, None)
        if values is not None:
            found[name] = np.asarray(values).reshape(len(path.alphas), -1)[:, 0]
    return found


def pictures(model: Any, table: Table, y: Vector, fitted: Vector, target: str) -> dict[str, Callable[[], Any]]:
    """What draws the residuals; the path over λ and the choice, where there was one; the curve over a single column."""
    drawn: dict[str, Callable[[], Any]] = {"residuals": partial(ResidualsDisplay.from_predictions, y, fitted)}
    if getattr(model, "path_", None) is not None:
        drawn["path"] = partial(RidgePathDisplay.from_estimator, model, names=table.names)
    if isinstance(model, KernelRidgeCV):
        drawn["choice"] = partial(LeaveOneOutDisplay.from_estimator, model)
    if table.source.shape[1] == 1:
        names = (table.names[0], target)
        drawn["curve"] = lambda: PredictionBandDisplay.from_estimator(
            model, rows_of(table.source)[:, 0], y, names=names
        )
    return drawn
