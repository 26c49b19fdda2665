"""Data on a graphics card, and results back from it."""

from __future__ import annotations

from typing import Any

import click

from gramian.sources import Source
from gramian.sources.devices import to_device

__all__ = ["on_device", "on_host"]


def on_device(source: Source, device: str) -> Source:
    """Return the source as it is for the CPU, else all of it as a tensor on the device."""
    if device == "cpu":
        return source
    try:
        return to_device(source, device)
    except ValueError as error:
        if str(error).startswith("device "):  # the machine has none, whatever the data
            raise click.UsageError(f"--{error}") from error
        raise


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
