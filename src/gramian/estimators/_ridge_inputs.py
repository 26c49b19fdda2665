"""What ridge regression accepts: parameters, targets, penalties and weights, checked and named when wrong."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._weights import frequencies
from gramian.estimators._devices import Home, home_of, placed
from gramian.estimators._inputs import open_input
from gramian.estimators._parameters import one_of
from gramian.estimators._targets import check_targets, whole_numbers
from gramian.sources import Source, open_source

__all__ = [
    "ITERATIVE",
    "SOLVERS",
    "RidgeInputs",
    "Weights",
    "check_ridge",
    "open_ridge",
    "penalties",
    "penalty_grid",
    "weights_of",
]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ITERATIVE = ("cg", "lsqr", "sparse_cg", "sag", "saga")  # scikit-learn's names, all of them our block CGLS
SOLVERS = ("auto", "svd", "cholesky", "primal", "dual", *ITERATIVE)
WIDEST = 1e100  # the largest weight lies within 1/WIDEST and WIDEST


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
    home : Home
        Where X lived, and results go.
    """

    source: Source
    Y: Matrix
    weights: Weights
    ndim: int
    home: Home = field(default_factory=Home)

    def at(self, device: Any) -> RidgeInputs:
        """Return the same with X where an estimator with this ``device`` works on it."""
        return replace(self, source=placed(self.source, device))


def open_ridge(estimator: Any, X: Any, y: Any, sample_weight: Any) -> RidgeInputs:
    """Open X, record its columns on the estimator, and check y and the weights against it."""
    source = open_input(estimator, X, reset=True)
    Y, vector = check_targets(estimator, _read(y), source.shape[0])
    if Y.shape[1] == 0:
        raise ValueError("y has no columns: 0 targets were given, at least 1 is needed.")
    w = weights_of(sample_weight, source.shape[0])
    return RidgeInputs(source, Y, w, 1 if vector else 2, home_of(source))


def weights_of(sample_weight: Any, n: int) -> Weights:
    """Return the weights of n rows, checked.

    Examples
    --------
    >>> from gramian.estimators._ridge_inputs import weights_of
    >>> w = weights_of([2, 0, 1], 3)
    >>> w.counts, w.rows, w.count
    (True, 2, 3.0)
    """
    given = sample_weight.detach() if hasattr(sample_weight, "detach") else sample_weight
    w = frequencies(given, n)
    largest = int(np.argmax(w))
    if not 1 / WIDEST <= w[largest] <= WIDEST:
        raise ValueError(
            f"sample_weight: the largest is {w[largest]:g}, in row {largest}, and squares times weights would leave "
            f"the range of float64. Multiply all weights and alpha by {1 / w[largest]:.0e}: coefficients stay the same."
        )
    rows, mass = int(np.count_nonzero(w)), float(w.sum())
    return Weights(None if np.all(w == 1.0) else w, whole_numbers(w), rows, mass)


def _read(y: Any) -> Any:
    """Targets that are in a file or a Source as an array; others as they are."""
    if isinstance(y, (str, os.PathLike)):
        if Path(y).suffix.lower() != ".npy":
            raise ValueError(f"y = {os.fspath(y)!r}: targets are read from .npy files only; else pass an array.")
        return np.load(Path(y), mmap_mode="r")
    if isinstance(y, Source):
        return np.concatenate([np.array(block.values) for block in open_source(y).blocks()])
    return y


def penalties(alpha: Any, targets: int) -> Vector:
    """Return λ for each target."""
    given = np.asarray(alpha.detach().cpu() if hasattr(alpha, "detach") else alpha)
    if given.dtype.kind not in "biuf" and not all(isinstance(value, Real) for value in given.ravel()):
        raise ValueError(f"alpha must be a number, or one for each target; got {alpha!r}.")
    lam: Vector = given.astype(np.float64).ravel()
    if len(lam) not in (1, targets):
        raise ValueError(
            f"Number of targets and number of penalties do not correspond: {lam.size} != {targets}. Give one alpha, or "
            "one for each column of y."
        )
    lam = np.broadcast_to(lam, (targets,)).copy()
    bad = np.flatnonzero(~(np.isfinite(lam) & (lam >= 0)))
    if len(bad):
        raise ValueError(f"alpha must be finite and not negative; got {lam[bad[0]]}.")
    return lam


def penalty_grid(alphas: Any, zero: bool) -> Vector:
    """λ as an array, each of them named if it will not do."""
    values = np.atleast_1d(np.asarray(alphas, dtype=object))
    if values.ndim != 1 or not len(values):
        raise ValueError(f"alphas must be one or more numbers, got an array of shape {values.shape}.")
    for i, value in enumerate(values):
        name = "alphas" if len(values) == 1 else f"alphas[{i}]"
        if not isinstance(value, Real):
            raise TypeError(f"{name} must be an instance of float, not {type(value).__name__}.")
        if not (np.isfinite(float(value)) and (float(value) > 0 or (zero and float(value) == 0))):
            raise ValueError(
                f"{name} == {value}, must be {'>=' if zero else '>'} 0{'' if zero else ' unless cv is given'}."
            )
    return np.asarray(values, dtype=np.float64)


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
