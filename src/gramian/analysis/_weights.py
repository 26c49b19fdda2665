"""Frequencies of rows, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["frequencies"]


def frequencies(sample_weight: Any, n: int) -> npt.NDArray[np.float64]:
    """Return one weight for each of n rows, 1 by default: finite, none negative, not all of them 0.

    Examples
    --------
    >>> from gramian.analysis._weights import frequencies
    >>> frequencies([2, 0, 1], 3)
    array([2., 0., 1.])
    """
    if sample_weight is None:
        return np.ones(n)
    given = sample_weight.cpu() if hasattr(sample_weight, "cpu") else sample_weight
    w: npt.NDArray[np.float64] = np.asarray(given, dtype=np.float64)
    w = np.full(n, float(w)) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"sample_weight has shape {w.shape}; expected one weight for each of the {n} rows.")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise ValueError(f"sample_weight must be finite and not negative; row {bad[0]} has {w[bad[0]]}.")
    if not w.any():
        raise ValueError("sample_weight is zero for every row: there is nothing to look at.")
    return w
