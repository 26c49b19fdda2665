r"""From decision values to probabilities: a sigmoid fitted to predictions of rows that were left out.

Platt (1999) fits

.. math:: P(y=1\mid f) = \frac1{1+e^{-(af+b)}},\qquad
    \min_{a,b}\ -\sum_i w_i\big[t_i\ln p_i+(1-t_i)\ln(1-p_i)\big]

with targets t = (N₊+1)/(N₊+2) and 1/(N₋+2) in place of 1 and 0, so that the optimum is finite even where the classes do
not overlap. Values f of the training rows themselves are too good; those left out are honest, and free for kernel ridge
regression. The problem is convex, of two unknowns: Newton's method with halved steps, after Lin, Lin and Weng (2007).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

__all__ = ["Sigmoid", "common_sigmoid", "fit_sigmoid", "probabilities"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ITERATIONS = 100
ENOUGH = 1e-14  # of the total weight: what a Newton step would still gain


@dataclass(frozen=True)
class Sigmoid:
    """P(y = 1 | f) = 1/(1 + exp(−(af + b))).

    Attributes
    ----------
    slope, offset : float
        a, never negative, and b.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._calibration import Sigmoid
    >>> Sigmoid(2.0, 0.0)(np.array([-1.0, 0.0, 1.0])).round(4)
    array([0.1192, 0.5   , 0.8808])
    """

    slope: float
    offset: float

    def __call__(self, values: npt.ArrayLike) -> Vector:
        """Return the probabilities of decision values."""
        return np.asarray(expit(self.slope * np.asarray(values, dtype=np.float64) + self.offset))


def fit_sigmoid(values: Vector, positive: npt.NDArray[np.bool_], w: Vector | None = None) -> Sigmoid:
    """Fit a sigmoid to decision values of rows that were left out.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Decision values f.
    positive : ndarray of bool of shape (n,)
        Which rows are of the class.
    w : ndarray of shape (n,), optional
        Weights.

    Returns
    -------
    Sigmoid
        Constant where larger values do not go with the class: then they carry no information.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._calibration import fit_sigmoid
    >>> f = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
    >>> fit_sigmoid(f, f > 0)(f).round(2)
    array([0.12, 0.27, 0.38, 0.62, 0.73, 0.88])
    """
    w = np.ones(len(values)) if w is None else w
    high, low = float(w[positive].sum()), float(w[~positive].sum())
    t = np.where(positive, (high + 1.0) / (high + 2.0), 1.0 / (low + 2.0))
    middle = float(w @ values / w.sum())
    spread = float(np.sqrt(w @ (values - middle) ** 2 / w.sum()))
    flat = Sigmoid(0.0, _logit(float(w @ t / w.sum())))
    if not spread > 0.0:
        return flat
    a, b = _newton((values - middle) / spread, t, w, flat.offset)
    return Sigmoid(a / spread, b - a * middle / spread) if a > 0.0 else flat


def _newton(z: Vector, t: Vector, w: Vector, offset: float) -> tuple[float, float]:
    """Minimise the cross-entropy over (a, b), from (0, the logit of the mean target)."""
    Z, at = np.column_stack([z, np.ones(len(z))]), np.array([0.0, offset])
    loss = _entropy(Z @ at, t, w)
    for _ in range(ITERATIONS):
        p = expit(Z @ at)
        gradient = Z.T @ (w * (p - t))
        curvature = Z.T @ (Z * (w * p * (1.0 - p))[:, None])
        step = np.linalg.solve(curvature + 1e-12 * np.trace(curvature) * np.eye(2), gradient)
        gain = float(gradient @ step)
        size, new = 1.0, _entropy(Z @ (at - step), t, w)
        while new > loss - 1e-4 * size * gain and size > 1e-10:
            size /= 2
            new = _entropy(Z @ (at - size * step), t, w)
        if size > 1e-10:
            at, loss = at - size * step, new
        if gain <= ENOUGH * w.sum() or size <= 1e-10:
            break
    return float(at[0]), float(at[1])


def _entropy(values: Vector, t: Vector, w: Vector) -> float:
    """−Σ w[t ln p + (1−t) ln(1−p)] without overflow."""
    return float(w @ (np.logaddexp(0.0, values) - t * values))


def _logit(p: float) -> float:
    return float(np.log(p) - np.log1p(-p))


def common_sigmoid(values: Matrix, Y: Matrix, w: Vector | None = None) -> Sigmoid:
    """One sigmoid for all classes, fitted to all pairs of a row and a class: of two classes b = 0 by symmetry.

    With one increasing function for all, the class of highest probability is that of the largest decision value.

    Parameters
    ----------
    values, Y : ndarray of shape (n, t)
        Decision values of rows left out, and ±1: one column for two classes, otherwise one for each.
    w : ndarray of shape (n,), optional
        Weights.
    """
    if Y.shape[1] == 1:
        values, Y = np.hstack([values, -values]), np.hstack([Y, -Y])
    each = None if w is None else np.repeat(w, Y.shape[1])
    return fit_sigmoid(values.ravel(), Y.ravel() > 0, each)


def probabilities(values: Matrix, sigmoid: Sigmoid) -> Matrix:
    """Probabilities of the classes, to sum 1: of two from one column of values, of more from one for each.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._calibration import Sigmoid, probabilities
    >>> probabilities(np.array([[1.0, 0.0, -1.0]]), Sigmoid(2.0, 0.0)).round(3)
    array([[0.587, 0.333, 0.079]])
    """
    if values.shape[1] == 1:
        return np.hstack([sigmoid(-values), sigmoid(values)])
    P = sigmoid(values)
    total = P.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(P, total, out=np.full_like(P, 1.0 / P.shape[1]), where=total > 0))
