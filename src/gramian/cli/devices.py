"""Which device a command computes on, and models that do not ask for it when they are opened elsewhere."""

from __future__ import annotations

from typing import Any

import click

from gramian.compute.devices import resolve

__all__ = ["checked_device", "portable"]


def checked_device(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the device, or say before anything is read that this machine has none of that name."""
    try:
        resolve(value)
    except (ImportError, ValueError) as error:
        raise click.UsageError(f"--{error}", ctx=context) from error
    return value


def portable(model: Any) -> Any:
    """Return a fitted model that computes where it is opened: its file may go to a machine without a card.

    Examples
    --------
    >>> from gramian import PCA
    >>> from gramian.cli.devices import portable
    >>> portable(PCA(2, device="cuda"))
    PCA(n_components=2)
    """
    return model.set_params(device=None)
