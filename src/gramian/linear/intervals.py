r"""Intervals from errors of rows left out, whatever the law of the noise: jackknife+, full and split conformal.

A regression that is linear in its targets, f(x) = Σ s_i(x) y_i, predicts without row i

.. math:: f_{-i}(x)=f(x)-s_i(x)\,e_i,\qquad e_i=y_i-f_{-i}(x_i)=\frac{r_i}{1-h_i},

since leaving a row out is the same as giving it the target that the others predict. All of the following is that, and
counting: no regression is fitted again.

**Jackknife+** (Barber, Candès, Ramdas and Tibshirani, 2021): from the ⌊α(n+1)⌋-th smallest of f₋ᵢ(x) − |eᵢ| to the
⌈(1−α)(n+1)⌉-th smallest of f₋ᵢ(x) + |eᵢ|, with 1 − α the level. A new observation lies in it with a probability of at
least 1 − 2α, and in practice of about 1 − α.

**Full conformal** (Vovk, Gammerman and Shafer, 2005) with errors left out as scores: the targets y for which at least
⌊α(n+1)⌋ of the n rows have errors no smaller than the new one, when each is predicted by all others, (x, y) among them.
With u = s(x), δ = y − f(x) and τ = 1 + Var f(x)/s the error of row i is (τr_i − u_iδ)/(τ(1 − h_i) + u_i²), so that each
row has two values of δ up to which it counts. A new observation lies in it with a probability of at least 1 − α.

**Split conformal**: f(x) ± the ⌈(1−α)(m+1)⌉-th smallest |y − f| of m rows that the fit has not seen, with a probability
of at least 1 − α.

All three need rows that are exchangeable, the new one among them; the first two also a regression that treats all rows
alike, with λ and kernel that were not chosen by these rows. Where they were, the rest is only nearly so; split
conformal is exact whatever was chosen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


def tail_count(level: float, n: int) -> int:
    """⌊α(n+1)⌋, α = 1 − level, where rounding of α does not count."""
    return int(np.floor((1.0 - level) * (n + 1) + 1e-9 * (n + 1)))


def jackknife_plus(f: Vector, smoother: Matrix, errors: Vector, level: float) -> tuple[Vector, Vector]:
    """Ends of the interval at each of b points.

    Parameters
    ----------
    f : ndarray of shape (b,)
        Predictions.
    smoother : ndarray of shape (b, n)
        s_i(x).
    errors : ndarray of shape (n,)
        e_i.
    level : float
        1 − α.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.intervals import jackknife_plus
    >>> y = np.array([0.0, 1.0, 2.0, 3.0, 4.0])  # the mean: s = 1/5, e = (y − 2)5/4
    >>> jackknife_plus(np.array([2.0]), np.full((1, 5), 0.2), (y - 2) * 1.25, 2 / 3)
    (array([0.]), array([4.]))
    """
    n = len(errors)
    k = tail_count(level, n)
    if k < 1:
        return np.full(len(f), -np.inf), np.full(len(f), np.inf)
    without = f[:, None] - smoother * errors
    size = np.abs(errors)
    lower = np.partition(without - size, k - 1, axis=1)[:, k - 1]
    upper = np.partition(without + size, n - k, axis=1)[:, n - k]
    return lower, upper


def full_conformal(
    f: Vector, smoother: Matrix, residuals: Vector, left: Vector, growth: Vector, level: float
) -> tuple[Vector, Vector]:
    """Ends of the smallest interval that holds the conformal set, at each of b points.

    Parameters
    ----------
    f : ndarray of shape (b,)
        Predictions.
    smoother : ndarray of shape (b, n)
        u = s(x).
    residuals, left : ndarray of shape (n,)
        r_i, and 1 − h_i > 0.
    growth : ndarray of shape (b,)
        τ.
    level : float
        1 − α.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.intervals import full_conformal
    >>> y = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> f, u, h = np.array([2.0]), np.full((1, 5), 0.2), np.full(5, 0.8)
    >>> full_conformal(f, u, y - 2.0, h, np.array([1.2]), 2 / 3)  # the mean again
    (array([0.]), array([4.]))
    """
    n = len(residuals)
    k = tail_count(level, n)
    if k < 1:
        return np.full(len(f), -np.inf), np.full(len(f), np.inf)
    tau = growth[:, None]
    own = tau * left + smoother**2
    shift = tau * residuals
    ends = []
    for side in (1.0, -1.0):  # δ > 0, and δ < 0 as the same of −u
        u = side * smoother
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(shift >= 0, shift / (own + u), -shift / (own - u))
        reach = np.where(np.abs(u) >= own, np.inf, reach)  # such a row never stops to count
        ends.append(np.partition(reach, n - k, axis=1)[:, n - k])
    return f - ends[1], f + ends[0]


def split_conformal(f: Vector, errors: Vector, level: float) -> tuple[Vector, Vector]:
    """f ∓ the ⌈(1−α)(m+1)⌉-th smallest of m errors of rows that the fit has not seen.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.intervals import split_conformal
    >>> split_conformal(np.zeros(1), np.array([3.0, -1.0, 2.0]), 0.75)
    (array([-3.]), array([3.]))
    """
    m = len(errors)
    k = tail_count(level, m)
    half = np.inf if k < 1 else float(np.sort(np.abs(errors))[m - k])
    return f - half, f + half


def by_column(f: Matrix, ends: Callable[[int], tuple[Vector, Vector]]) -> tuple[Matrix, Matrix]:
    """Lower and upper ends of the shape of f, from those of each column."""
    pairs = [ends(j) for j in range(f.shape[1])]
    return np.column_stack([pair[0] for pair in pairs]), np.column_stack([pair[1] for pair in pairs])
