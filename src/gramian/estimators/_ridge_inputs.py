"""What ridge regression accepts: parameters, targets, penalties and weights, checked and named when wrong."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from gramian.analysis._weights import frequencies
from gramian.estimators._inputs import open_input
from gramian.estimators._parameters import one_of
from gramian.sources import Source, open_source

__all__ = ["ITERATIVE", "SOLVERS", "RidgeInputs", "Weights", "check_ridge", "open_ridge", "penalties", "weights_of"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ITERATIVE = ("cg", "lsqr", "sparse_cg", "sag", "saga")  # scikit-learn's names, all of them our block CGLS
SOLVERS = ("auto", "svd", "cholesky", "primal", "dual", *ITERATIVE)


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of rows, and what they stand for.

    Attributes
    ----------
    values : ndarray of shape (n,) or None
        w; None where every row counts once.
    counts : bool
        Whether all are whole numbers: then a weight of 2 is the row twice. Others are precisions.
    rows : int
        How many are positive.
    mass : float
        Σw.
    """

    values: Vector | None
    counts: bool
    rows: int
    mass: float

    @property
    def count(self) -> float:
        """N: Σw for counts, the number of rows with a positive weight for precisions."""
        return self.mass if self.counts else float(self.rows)

    @property
    def log_sum(self) -> float:
        """Σ ln w of precisions; 0 for counts."""
        if self.values is None or self.counts:
            return 0.0
        return float(np.sum(np.log(self.values[self.values > 0])))

    @property
    def root(self) -> Vector | None:
        """√w, or None."""
        return None if self.values is None else np.sqrt(self.values)


@dataclass(frozen=True, eq=False)
class RidgeInputs:
    """Data, targets and weights that fit together.

    Attributes
    ----------
    source : Source
        X.
    Y : ndarray of shape (n, t)
        Targets, in float64.
    weights : Weights
        Of the rows.
    ndim : int
        Dimensions of y as it was given.
    """

    source: Source
    Y: Matrix
    weights: Weights
    ndim: int


def open_ridge(estimator: Any, X: Any, y: Any, sample_weight: Any) -> RidgeInputs:
    """Open X, record its columns on the estimator, and check y and the weights against it."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    source = open_input(estimator, X, reset=True)
    Y, ndim = _targets(y, source.shape[0])
    return RidgeInputs(source, Y, weights_of(sample_weight, source.shape[0]), ndim)


def weights_of(sample_weight: Any, n: int) -> Weights:
    """Return the weights of n rows, checked.

    Examples
    --------
    >>> from gramian.estimators._ridge_inputs import weights_of
    >>> w = weights_of([2, 0, 1], 3)
    >>> w.counts, w.rows, w.count
    (True, 2, 3.0)
    """
    w = frequencies(sample_weight, n)
    counts = bool(np.all(w == np.floor(w)))
    rows, mass = int(np.count_nonzero(w)), float(w.sum())
    return Weights(None if np.all(w == 1.0) else w, counts, rows, mass)


def _targets(y: Any, n: int) -> tuple[Matrix, int]:
    """Y of shape (n, t) in float64, and how many dimensions y had."""
    if isinstance(y, (str, os.PathLike)):
        if Path(y).suffix.lower() != ".npy":
            raise ValueError(f"y = {os.fspath(y)!r}: targets are read from .npy files only; else pass an array.")
        y = np.load(Path(y), mmap_mode="r")
    elif isinstance(y, Source):
        y = np.concatenate([np.array(block.values) for block in open_source(y).blocks()])
    y = y.cpu() if hasattr(y, "cpu") else y
    values = check_array(y, ensure_2d=False, allow_nd=False, dtype="numeric", ensure_all_finite=False, input_name="y")
    out: Matrix = np.asarray(values, dtype=np.float64)
    if out.ndim == 0 or out.ndim > 2:
        raise ValueError(f"y should be a 1d array, or 2d with one column for each target; got shape {out.shape}.")
    if len(out) != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n} rows and y has {len(out)}."
        )
    ndim, out = out.ndim, out.reshape(n, -1)
    if out.shape[1] == 0:
        raise ValueError("y has no columns: 0 targets were given, at least 1 is needed.")
    _refuse_non_finite_targets(out, ndim)
    return out, ndim


def _refuse_non_finite_targets(Y: Matrix, ndim: int) -> None:
    bad = np.argwhere(~np.isfinite(Y))
    if len(bad):
        i, j = bad[0]
        what = "NaN" if np.isnan(Y[i, j]) else "infinity (inf)"
        where = f"row {i}" if ndim == 1 else f"row {i}, column {j}"
        raise ValueError(f"Input y contains {what}: the first is in {where}, counted from 0. Remove such rows.")


def penalties(alpha: Any, targets: int) -> Vector:
    """Return λ for each target."""
    lam: Vector = np.asarray(alpha, dtype=np.float64)
    if lam.ndim > 1 or (lam.ndim == 1 and len(lam) not in (1, targets)):
        raise ValueError(
            f"Number of targets and number of penalties do not correspond: {lam.size} != {targets}. Give one alpha, or "
            "one for each column of y."
        )
    lam = np.broadcast_to(lam.ravel(), (targets,)).copy()
    bad = np.flatnonzero(~(np.isfinite(lam) & (lam >= 0)))
    if len(bad):
        raise ValueError(f"alpha must be finite and not negative; got {lam[bad[0]]}.")
    return lam


def check_ridge(model: Any) -> None:
    """Raise an error that names the parameter of a Ridge, what it is, and what it may be."""
    if model.positive:
        raise ValueError(
            "positive=True is not offered: it is another problem, without a closed form. Use sklearn.linear_model."
            "Ridge(positive=True), or scipy.optimize.nnls of X and y with √alpha·I and zeros stacked below."
        )
    if model.solver == "lbfgs":
        raise ValueError(
            "solver='lbfgs' is for positive=True only, which is not offered here: use sklearn.linear_model."
            f"Ridge(positive=True). Without it, solver may be one of {', '.join(SOLVERS)}."
        )
    one_of("solver", model.solver, SOLVERS)
    one_of("fit_intercept", model.fit_intercept, (True, False))
    if not (isinstance(model.tol, Real) and 0.0 <= float(model.tol) < np.inf):
        raise ValueError(f"tol must be a number that is not negative, got {model.tol!r}.")
    if model.max_iter is not None and not (isinstance(model.max_iter, Integral) and int(model.max_iter) >= 1):
        raise ValueError(f"max_iter must be a positive integer or None, got {model.max_iter!r}.")
