"""Cells that are missing, as a mixture expects them from those that are there: mixture regression."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from gramian.likelihood.mixture import Mixture
from gramian.likelihood.mixture.missing import regression

__all__ = ["expected_cells", "fill_cells"]

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]


def fill_cells(X: Array, mixture: Mixture) -> Array:
    """X with every NaN replaced by its expectation given the row's other cells.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._mixture_cells import fill_cells
    >>> from gramian.likelihood.mixture import Mixture
    >>> one = Mixture.of([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.5, 1.0]]])
    >>> fill_cells(np.array([[2.0, np.nan]]), one)
    array([[2., 1.]])
    """
    return expected_cells(X, mixture)[0]


def expected_cells(X: Array, mixture: Mixture) -> tuple[Array, Array]:
    r"""E(x|x_o) and the standard deviations of x|x_o, which are 0 where a cell is observed.

    With shares r_k, means m_k and variances v_k of the components given x_o, the law of total variance is
    :math:`\sum_kr_kv_k+\sum_kr_k(m_k-\bar m)^2`.
    """
    out, deviations = np.array(X, dtype=np.float64), np.zeros(X.shape)
    for rows, seen, hidden in _patterns(np.isnan(X)):
        shares, centres, spread = regression(out[np.ix_(rows, seen)], mixture, seen, hidden)
        variances = spread if spread.ndim == 2 else np.diagonal(spread, axis1=1, axis2=2)
        mean = np.einsum("nk,nku->nu", shares, centres)
        within = shares @ variances
        between = np.einsum("nk,nku->nu", shares, (centres - mean[:, None]) ** 2)
        out[np.ix_(rows, hidden)] = mean + mixture.origin[hidden]
        deviations[np.ix_(rows, hidden)] = np.sqrt(np.maximum(within + between, 0.0))
    return out, deviations


def _patterns(missing: npt.NDArray[np.bool_]) -> Iterator[tuple[Index, Index, Index]]:
    """Rows that lack the same cells, the cells they have, and those they lack; complete rows are left out."""
    some = np.flatnonzero(missing.any(axis=1))
    if not len(some):
        return
    _, which = np.unique(np.packbits(missing[some], axis=1), axis=0, return_inverse=True)
    for kind in range(int(which.max()) + 1):
        rows = some[which.ravel() == kind]
        yield rows, np.flatnonzero(~missing[rows[0]]), np.flatnonzero(missing[rows[0]])
