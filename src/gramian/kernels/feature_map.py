"""The feature map of the polynomial kernels, written out."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, factorial, prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.kernels.polynomial import Polynomial

__all__ = ["monomials", "polynomial_features"]

Array = npt.NDArray[Any]


def monomials(p: int, degree: int, homogeneous: bool = False) -> list[tuple[int, ...]]:
    """Return the monomials of p variables up to a degree (or of that degree), each as its variables with repetition.

    Examples
    --------
    >>> from gramian.kernels import monomials
    >>> monomials(2, 2, homogeneous=True)
    [(0, 0), (0, 1), (1, 1)]
    """
    degrees = (degree,) if homogeneous else range(degree + 1)
    return [term for q in degrees for term in combinations_with_replacement(range(p), q)]


def polynomial_features(X: Any, degree: int = 2, coef0: float = 1.0, gamma: float | None = None) -> Array:
    r"""φ(x) with φ(x)·φ(z) = (γ x·z + c)^q, one column for each monomial.

    By the multinomial theorem the column of x₁^{a₁}⋯x_p^{a_p}, with a₀ = q − Σ a_j, is

    .. math:: \sqrt{\frac{q!}{a_0!\,a_1!\cdots a_p!}\,c^{a_0}\gamma^{q-a_0}}\;x_1^{a_1}\cdots x_p^{a_p}

    There are C(p + q, q) columns, or C(p + q − 1, q) for c = 0, ordered by degree: for q = 2, c = 0, p = 2 they are
    (x₁², √2 x₁x₂, x₂²).

    Parameters
    ----------
    X : array of shape (n, p)
        The points.
    degree : int, default=2
        q.
    coef0 : float, default=1.0
        c ≥ 0.
    gamma : float, optional
        γ; 1/p where not given.

    Returns
    -------
    ndarray of shape (n, number of monomials)
        In float64.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import polynomial_features
    >>> polynomial_features(np.array([[1.0, 3.0]]), 2, coef0=0, gamma=1).round(4)
    array([[1.    , 4.2426, 9.    ]])
    """
    kernel = Polynomial(degree, coef0, gamma)
    if kernel.coef0 < 0:
        raise ValueError(f"coef0 must not be negative for a feature map to exist, got {coef0!r}.")
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"Expected rows of features (2 dimensions), got shape {X.shape}.")
    n, p = X.shape
    factor, q = 1.0 / p if kernel.gamma is None else kernel.gamma, kernel.degree
    terms = monomials(p, q, homogeneous=kernel.coef0 == 0)
    out = np.empty((n, len(terms)))
    for column, term in enumerate(terms):
        weight = _multinomial(q, term) * kernel.coef0 ** (q - len(term)) * factor ** len(term)
        out[:, column] = np.prod(X[:, term], axis=1) * np.sqrt(weight)
    return out


def _multinomial(q: int, term: tuple[int, ...]) -> int:
    """q!/(a₀! a₁! ⋯) of a monomial of degree q − a₀."""
    counts = [term.count(j) for j in set(term)]
    return comb(q, len(term)) * factorial(len(term)) // prod(factorial(a) for a in counts)
