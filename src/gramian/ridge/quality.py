"""How well a regression predicts: R² and the typical error of rows left out, and of the rows fitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.results import FitLevel, Quality

LEFT_OUT = (
    "Each row was predicted by the fit to all others, exactly: what to expect of new rows that are drawn as these "
    "were, or a little less where the same errors chose λ. R² is 1 where all are predicted exactly, and 0 where the "
    "mean of the target would do as well."
)
TRAINING = "Of rows that took part in the fit: new rows are predicted worse."


def measure_regression(
    model: Any, observed: npt.ArrayLike, fitted: npt.ArrayLike, left_out: Any = None, names: Sequence[str] = ()
) -> list[Quality]:
    r"""R² and root mean squared error of rows left out, where they are known, and then of the rows fitted.

    .. math:: R^2 = 1 - \frac{\sum_i(y_i-f_i)^2}{\sum_i(y_i-\bar y)^2}

    Parameters
    ----------
    model : Ridge, RidgeCV, KernelRidge or KernelRidgeCV
        Fitted. Where it chose λ, its path knows the errors of rows left out.
    observed, fitted : array of shape (n,) or (n, t)
        Targets, and what the model predicts for the same rows.
    left_out : array of the same shape, optional
        What a fit to all others predicts for each row: needed of models without a path.
    names : sequence of str, optional
        Of several targets.

    Returns
    -------
    list of Quality
        Each measure for one target after the other, those of rows left out first.

    Examples
    --------
    >>> from gramian import Ridge
    >>> from gramian.ridge.quality import measure_regression
    >>> X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]
    >>> [measure.name for measure in measure_regression(Ridge(1.0), y, Ridge(1.0).fit(X, y).predict(X))]
    ['r2', 'rmse']
    """
    Y, F = (np.asarray(part, dtype=float).reshape(len(np.asarray(part)), -1) for part in (observed, fitted))
    path, t = getattr(model, "path_", None), Y.shape[1]
    errors = {"": np.mean((Y - F) ** 2, axis=0)}
    if path is not None:  # at the λ chosen, of each target its own
        nearest = np.argmin(np.abs(np.asarray(path.alphas)[:, None] - np.broadcast_to(model.alpha_, t)), axis=0)
        errors = {"_left_out": np.asarray(path.loo)[nearest, np.arange(t)], **errors}
    elif left_out is not None:
        errors = {"_left_out": np.mean((Y - np.reshape(left_out, Y.shape)) ** 2, axis=0), **errors}
    found: list[Quality] = []
    for tail, squares in errors.items():
        label, rows = ("leave-one-out", "rows left out of the fit") if tail else ("training", "the rows fitted")
        shares, roots = [], []
        for j, (square, variance) in enumerate(zip(squares.tolist(), Y.var(axis=0).tolist(), strict=True)):
            if not np.isfinite(square):
                continue
            whose, of = (f" {names[j]}", f", {names[j]}") if t > 1 else ("", "")
            r2 = 1.0 - square / variance if variance > 0 else float("nan")
            useless = bool(tail) and r2 <= 0
            text = "no better than their mean" if useless else f"{r2:.1%} of their variance is explained"
            text = f"{r2:.4g}: of {rows}, {text}" if variance > 0 else "not defined: the target does not vary"
            level = FitLevel.POOR if useless else FitLevel.FACT
            meaning = LEFT_OUT if tail else TRAINING
            shares.append(Quality(f"r2{tail}{whose}", f"R², {label}{of}", r2, text, level, meaning))
            text = f"{square**0.5:.4g}, in units of the target"
            roots.append(Quality(f"rmse{tail}{whose}", f"typical error, {label}{of}", square**0.5, text))
        found += shares + roots
    return found
