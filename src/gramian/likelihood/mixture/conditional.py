r"""Mixture regression: what some columns are expected to be where others are known.

.. math:: E(y|x)=\sum_kr_k(x)\,m_k(x),\qquad
    \operatorname{Cov}(y|x)=\sum_kr_k(x)\bigl(C_k+m_k(x)m_k(x)^T\bigr)-E(y|x)E(y|x)^T

with :math:`r_k(x)` the responsibilities by x alone, and :math:`m_k(x), C_k` the regression of each component.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.likelihood.mixture import missing
from gramian.likelihood.mixture.given import column_numbers, numbers
from gramian.likelihood.mixture.parameters import Mixture

__all__ = ["regress"]

Array = npt.NDArray[np.float64]


def regress(mixture: Mixture, columns: Sequence[int], values: Any) -> tuple[Array, Array]:
    """Mean (n, u) and covariance (n, u, u) of the other columns, in their order, for rows of values of these.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.mixture import Mixture, regress
    >>> line = Mixture.of([1.0], [[0.0, 1.0]], [[[1.0, 2.0], [2.0, 5.0]]])
    >>> mean, covariance = regress(line, [0], [[3.0]])
    >>> mean.round(6), covariance.round(6)
    (array([[7.]]), array([[[1.]]]))
    """
    given = column_numbers(columns, len(mixture.origin))
    rest = np.setdiff1d(np.arange(len(mixture.origin)), given)
    X = np.atleast_2d(numbers("values", values))
    if X.shape[1] != len(given):
        raise ValueError(f"Each row must have {len(given)} values, for columns {given.tolist()}; got shape {X.shape}.")
    shares, centres, spread = missing.regression(X, mixture, given, rest)
    C = spread[:, :, None] * np.eye(len(rest)) if mixture.diagonal else spread
    mean = np.einsum("nk,nku->nu", shares, centres)
    away = centres - mean[:, None, :]
    covariance = np.einsum("nk,kuv->nuv", shares, C) + np.einsum("nk,nku,nkv->nuv", shares, away, away)
    return mean + mixture.origin[rest], covariance
