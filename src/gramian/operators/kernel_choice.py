"""Which kernel operator: NumPy's on the CPU, or torch's on a device."""

from __future__ import annotations

from typing import Any

from gramian.compute.devices import resolve
from gramian.kernels import Kernel
from gramian.operators._device_points import obstacle
from gramian.operators.kernel import KernelOperator
from gramian.operators.kernel_device import DeviceKernelOperator
from gramian.sources import Source

__all__ = ["kernel_device", "kernel_operator"]


def kernel_operator(
    kernel: Any,
    X: Any,
    Z: Any = None,
    *,
    dtype: Any = None,
    store: bool | str = "auto",
    device: Any = None,
    tolerance: float | None = None,
) -> KernelOperator | DeviceKernelOperator:
    """Return the operator k(X, Z): a :class:`KernelOperator` on the CPU, a :class:`DeviceKernelOperator` elsewhere.

    Parameters
    ----------
    kernel, X, Z, dtype, store
        As of both.
    device : None, str or torch.device
        None is NumPy on the CPU; a name is resolved by :func:`gramian.compute.devices.resolve`.
    tolerance : float, optional
        Relative error that products in float32 on a device may have.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import kernel_operator
    >>> kernel_operator("rbf", np.ones((3, 2)))
    KernelOperator(3 x 3, float64)
    """
    where = resolve(device, X) if isinstance(device, str) else device
    if where is None:
        return KernelOperator(kernel, X, Z, dtype=dtype, store=store)
    return DeviceKernelOperator(kernel, X, Z, device=where, dtype=dtype, tolerance=tolerance, store=store)


def kernel_device(device: Any, kernel: Kernel, X: Any, like: Any = None) -> Any:
    """Return where an estimator evaluates a kernel: a ``torch.device``, or None for NumPy on the CPU.

    What no card can evaluate (functions, precomputed matrices, objects, sparse points) goes to the CPU, unless a device
    was asked for by name: then it is refused.

    Parameters
    ----------
    device : None, str or torch.device
        What was asked for, as :func:`gramian.compute.devices.resolve` takes it.
    kernel : Kernel
        With its parameters found.
    X : array, tensor, Source, sparse matrix or sequence
        The points.
    like : the same, optional
        The points as they were handed in, where X was made of them: it says where the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> from gramian.operators import kernel_device
    >>> kernel_device(None, Gaussian(1.0), np.ones((3, 2))) is None
    True
    """
    given = X if like is None else like
    found = resolve(device, getattr(given, "values", None) if isinstance(given, Source) else given)
    reason = "" if found is None else obstacle(kernel, X)
    if reason and not (device is None or (isinstance(device, str) and device == "auto")):
        raise ValueError(f"device={device!r}: {reason} Use device='cpu', which is NumPy.")
    return None if reason else found
