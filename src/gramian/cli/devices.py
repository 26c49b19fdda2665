"""Data on a graphics card, and results back from it."""

from __future__ import annotations

from typing import Any

from gramian.sources import Source
from gramian.sources.devices import to_device

__all__ = ["on_device", "on_host"]


def on_device(source: Source, device: str) -> Source:
    """Return the source as it is for the CPU, else all of it as a tensor on the device."""
    return source if device == "cpu" else to_device(source, device)


def on_host(values: Any) -> Any:
    """Bring an array, or all fitted attributes of a model, from a device to NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.cli.devices import on_host
    >>> on_host(np.ones(2))
    array([1., 1.])
    """
    if hasattr(values, "cpu"):
        return values.detach().cpu().numpy()
    if hasattr(values, "get_params"):
        for name, value in vars(values).items():
            if hasattr(value, "cpu"):
                setattr(values, name, on_host(value))
    return values
