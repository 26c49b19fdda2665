"""Which hot loops serve an array."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from array_api_compat import is_numpy_namespace, is_torch_namespace

from gramian.compute import cpu, reference
from gramian.compute.devices import gpu

__all__ = ["dense_loops"]


def dense_loops(xp: Any) -> ModuleType:
    """Return the loops for dense arrays of a namespace: tiles in cache for NumPy, chunks on its device for torch.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.compute.loops import dense_loops
    >>> dense_loops(np).__name__
    'gramian.compute.cpu'
    """
    if is_numpy_namespace(xp):
        return cpu
    if is_torch_namespace(xp):
        dense: ModuleType = gpu().dense
        return dense
    return reference
