"""Models and rows that are on a graphics card, brought to where NumPy can read them."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from gramian.compute.devices import host, is_tensor
from gramian.sources import Source
from gramian.sources.devices import to_host

__all__ = ["ground", "twin"]


def ground(x: Any) -> Any:
    """Return a tensor, a source of tensors, or a model with such attributes as NumPy can read it; all else as it is.

    A model stays as it is, and a twin of it is returned.

    Examples
    --------
    >>> from gramian.analysis._cards import ground
    >>> ground("iris.csv")
    'iris.csv'
    """
    if isinstance(x, Source):
        return to_host(x)
    if is_tensor(x):
        return host(x) if x.device.type != "cpu" else x
    if not isinstance(x, BaseEstimator):
        return x
    near = {name: ground(value) for name, value in vars(x).items() if is_tensor(value) or isinstance(value, Source)}
    moved = {name: value for name, value in near.items() if value is not vars(x)[name]}
    return twin(x, moved) if moved else x


def twin(model: Any, attributes: dict[str, Any]) -> Any:
    """Return a model with other attributes that shares the rest with the first, what it keeps for later too."""
    other = object.__new__(type(model))
    vars(other).update(vars(model) | attributes)
    return other
