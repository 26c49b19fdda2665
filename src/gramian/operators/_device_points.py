"""Points of a kernel on a device: uploaded, checked, or the reason why not."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.compute.devices import describe, host, is_tensor, put, refuse_beyond_device
from gramian.kernels import Kernel
from gramian.sources import Source, open_source
from gramian.sources.devices import uploaded

__all__ = ["first_rows", "natural", "obstacle", "placed", "settled", "tensor"]

Array = Any

REMEDY = "Use device='cpu', or fewer rows."


def obstacle(kernel: Kernel, X: Any) -> str:
    """Why a kernel of these points is not evaluated on a device; nothing where it is."""
    if sp.issparse(X) or getattr(X, "sparse", False) is True:
        return "sparse points are compared on the CPU."
    objects = kernel.takes_objects or len(_shape(X)) != 2
    if objects or (not kernel.automatic and kernel.formula(int(_shape(X)[1])) is None):
        return f"{kernel!r} has no formula that could be evaluated there."
    return ""


def _shape(X: Any) -> tuple[int, ...]:
    """Of an array, a Source, or rows in a list."""
    return tuple(X.shape) if hasattr(X, "shape") else np.shape(X)


def placed(kernel: Kernel, X: Any, device: Any, in_memory: bool) -> Any:
    """The points as a tensor on the device, or the Source of a file."""
    source: Any = X if sp.issparse(X) or kernel.takes_objects else open_source(X)
    reason = obstacle(kernel, source)
    if reason:
        raise ValueError(f"On {describe(device)}: {reason} Use device='cpu', or KernelOperator.")
    if source.resident:
        return tensor(source.values, device)
    if not in_memory:
        return source
    return tensor(uploaded(source, device), device)


def tensor(values: Any, device: Any) -> Array:
    """Numbers on the device, in float32 or float64; what does not fit there is refused with the figure."""
    if device.type != "cpu" and not (is_tensor(values) and values.device == device):
        refuse_beyond_device(values.nbytes, device, f"A table of {len(values):,} points", REMEDY)
    x = put(values, device)
    if not x.dtype.is_floating_point:
        return put(x, device, np.float64)
    return put(x, device, np.float32) if x.dtype.itemsize < 4 else x


def settled(kernel: Kernel, X: Any) -> tuple[Kernel, Any]:
    """The kernel with automatic parameters found from the points, and its formula."""
    if kernel.automatic and isinstance(X, Source):
        raise ValueError(
            f"{kernel!r} finds a parameter from data, and X is a file. Resolve it on rows in memory first."
        )
    kernel = kernel.resolved(host(X)) if kernel.automatic else kernel
    formula = kernel.formula(int(X.shape[1]))
    if formula is None:
        raise ValueError(f"{kernel!r} has no formula that a device could evaluate. Use device='cpu', KernelOperator.")
    return kernel, formula


def natural(X: Any, Z: Any) -> str:
    """float32 where all points are, else float64."""
    return "float32" if all("float32" in str(part.dtype) for part in (X, Z) if part is not None) else "float64"


def first_rows(file: Source, device: Any) -> Array:
    """The first block of a file: what says how precise products with it will be."""
    return tensor(next(iter(file.blocks(256))).values, device)
