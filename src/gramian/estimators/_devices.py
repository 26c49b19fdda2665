"""Estimators on devices: where the input lived, where it is worked on, and results back where they came from."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from gramian.compute.devices import host, is_tensor, put

__all__ = ["Home", "at_home", "bring_home", "home_of", "hosted", "sent", "settle"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Home:
    """Where numbers lived: NumPy where ``device`` is None, else tensors of torch on a device."""

    device: Any = None


def home_of(X: Any) -> Home:
    """Where an input lives; of a Source, where its values do.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._devices import home_of
    >>> home_of(np.ones(2))
    Home(device=None)
    """
    values: Any = X if is_tensor(X) else getattr(X, "values", None)
    return Home(values.device) if is_tensor(values) else Home()


def sent(value: Any, home: Home) -> Any:
    """A result at home: arrays by themselves, in tuples and in the fields of dataclasses; anything else as it is."""
    if is_tensor(value):
        return host(value) if home.device is None else value.to(home.device)
    if isinstance(value, np.ndarray):
        return value if home.device is None or value.dtype.kind not in "fiub" else put(value, home.device)
    if type(value) in (tuple, list):
        return type(value)(sent(part, home) for part in value)
    if home.device is not None and is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: sent(getattr(value, f.name), home) for f in fields(value) if f.init}
        return replace(value, **{k: v for k, v in changes.items() if v is not getattr(value, k)})
    return value


def bring_home(estimator: Any, home: Home) -> None:
    """Move every array and tensor among the attributes of an estimator that was fitted elsewhere."""
    for name, value in vars(estimator).items():
        if is_tensor(value) or isinstance(value, np.ndarray):
            setattr(estimator, name, sent(value, home))


def settle(estimator: Any, home: Home) -> None:
    """Turn the fitted arrays of an estimator that works in NumPy into tensors, as scikit-learn's array API rules say.

    The arrays themselves are kept, and :func:`hosted` works with them. Strings, objects and masks stay NumPy's.
    """
    estimator.__dict__.pop("_on_host", None)
    if home.device is None:
        return
    mine = {k: v for k, v in vars(estimator).items() if k.endswith("_") and not k.startswith("_")}
    kept = {k: v for k, v in mine.items() if isinstance(v, np.ndarray) and v.dtype.kind in "fiu"}
    for name, value in kept.items():
        setattr(estimator, name, put(value, home.device))
    estimator._on_host = kept


def hosted(estimator: Any) -> Any:
    """The estimator with its fitted arrays in NumPy: itself, unless it was fitted to tensors."""
    kept = getattr(estimator, "_on_host", None)
    if not kept:
        return estimator
    twin = copy.copy(estimator)
    twin.__dict__.update(kept)
    twin.__dict__.pop("_on_host")
    return twin


def at_home(method: F) -> F:
    """Decorate a method of a fitted estimator: it sees NumPy attributes, and its result goes where its input lives."""

    @wraps(method)
    def run(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        return sent(method(hosted(self), X, *args, **kwargs), home_of(X))

    return run  # type: ignore[return-value]
