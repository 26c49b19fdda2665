r"""Penalties by formula: those of Hoerl, Kennard and Baldwin, and of Lawless and Wang; and GCV counted both ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_X_y

Array = npt.NDArray[np.float64]

RANK = 64 * 2.0**-52  # times √p and the largest singular value: what one that is 0 may be computed as


@dataclass(frozen=True)
class ClassicalPenalties:
    """Penalties for ``Ridge(alpha=…, scale=True)`` with an intercept.

    R's ``MASS::lm.ridge`` divides columns by standard deviations of denominator n where ``Ridge`` takes n − 1: its
    penalties are n/(n − 1) times these.

    Attributes
    ----------
    hoerl_kennard_baldwin, lawless_wang : float
        (p − 2)s²/‖ŵ‖² and (p − 2)s²n′/‖Zŵ‖², with the least squares solution of the standardised columns Z, its s²
        with n − p − 1 degrees of freedom, and n′ = n − 1.
    alphas : ndarray of shape (k,)
        Penalties that GCV was computed for.
    gcv : ndarray of shape (k,)
        (RSS/n)/(1 − (df + 1)/n)², the intercept counted among the degrees of freedom.
    gcv_slopes : ndarray of shape (k,)
        (RSS/n)/(1 − df/n)², of the slopes alone: n times what ``lm.ridge`` prints.
    """

    hoerl_kennard_baldwin: float
    lawless_wang: float
    alphas: Array
    gcv: Array
    gcv_slopes: Array


def classical_penalties(X: Any, y: Any, alphas: Any = ()) -> ClassicalPenalties:
    r"""Penalties that follow from least squares by formula, and GCV of any others, with the intercept counted or not.

    (A. Hoerl, R. Kennard and K. Baldwin, Commun. Stat. 4, 105, 1975; J. Lawless and P. Wang, Commun. Stat. A 5, 307,
    1976; G. Golub, M. Heath and G. Wahba, Technometrics 21, 215, 1979.)

    Parameters
    ----------
    X : array-like of shape (n, p)
        At least 3 independent columns, and more rows than columns and an intercept.
    y : array-like of shape (n,)
        The target.
    alphas : array-like of shape (k,), default=()
        Penalties to compute GCV for.

    Returns
    -------
    ClassicalPenalties
        The penalties.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from gramian.ridge import classical_penalties
    >>> found = classical_penalties(*load_diabetes(return_X_y=True))
    >>> round(found.hoerl_kennard_baldwin, 2), round(found.lawless_wang, 2)
    (5.45, 7.62)
    """
    X, y = check_X_y(X, y, dtype=np.float64, y_numeric=True)
    n, p = X.shape
    lam = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    if lam.ndim > 1 or not np.all(np.isfinite(lam) & (lam >= 0)):
        raise ValueError("alphas must be finite numbers, none negative.")
    if p < 3 or n <= p + 1:
        raise ValueError(
            f"{n} rows and {p} columns: 3 columns, and more rows than columns and an intercept, are needed."
        )
    X, y = X - X.mean(axis=0), y - y.mean()
    spread = np.std(X, axis=0, ddof=1)
    U, s, _ = np.linalg.svd(X / np.where(spread > 0, spread, 1.0), full_matrices=False)
    if s[-1] <= RANK * p**0.5 * s[0]:
        raise ValueError(f"The {p} columns are not independent of each other and the intercept: leave some out.")
    c = U.T @ y
    fitted, w = float(c @ c), c / s
    rest = float(np.sum((y - U @ c) ** 2))
    noise = rest / (n - p - 1)
    if fitted == 0.0:
        raise ValueError("y does not vary with the columns: there is no penalty to speak of.")
    shrunk = s[:, None] ** 2 / (s[:, None] ** 2 + lam)
    df, rss = shrunk.sum(axis=0), rest + ((1 - shrunk) ** 2).T @ c**2
    return ClassicalPenalties(
        hoerl_kennard_baldwin=(p - 2) * noise / float(w @ w),
        lawless_wang=(p - 2) * noise * (n - 1) / fitted,
        alphas=lam,
        gcv=rss / n / (1 - (df + 1) / n) ** 2,
        gcv_slopes=rss / n / (1 - df / n) ** 2,
    )
