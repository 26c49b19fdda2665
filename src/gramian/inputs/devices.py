"""Estimators on devices: where the input lived, where it is worked on, and results back where they came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from gramian.compute.devices import host, is_tensor, put, resolve
from gramian.sources import DenseSource, Source
from gramian.sources.devices import to_device

__all__ = ["Home", "at_home", "bring_home", "home_of", "hosted", "in_numpy", "placed", "sent", "settle"]

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
    >>> from gramian.inputs.devices import home_of
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
    if is_dataclass(value) and not isinstance(value, type):
        changes = {f.name: sent(getattr(value, f.name), home) for f in fields(value) if f.init}
        changes = {name: new for name, new in changes.items() if _moved(new, getattr(value, name))}
        return replace(value, **changes) if changes else value
    return value


def _moved(new: Any, old: Any) -> bool:
    """Whether something was changed on its way home; a list of what stayed is a new list, and the same."""
    if type(new) in (tuple, list) and type(old) is type(new):
        return any(_moved(a, b) for a, b in zip(new, old, strict=True))
    return new is not old


def placed(source: Source, device: Any) -> Source:
    """Return a source where an estimator with this ``device`` works on it: as it is where None is asked for.

    Sparse data stay on the CPU for "auto", and are refused for a card.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.inputs.devices import placed
    >>> placed(gramian.open(np.ones((3, 2))), "cpu")
    DenseSource(3 x 2, float64)
    """
    if device is None:
        return source
    there = resolve(device, getattr(source, "values", None))
    if there is None:
        values = getattr(source, "values", None)
        return DenseSource(host(values), source.feature_names) if is_tensor(values) else source
    if source.device == there or (source.sparse and isinstance(device, str) and device == "auto"):
        return source
    return to_device(source, there)


def bring_home(estimator: Any, home: Home, names: Iterable[str]) -> None:
    """Move those of the attributes named that are arrays or tensors; certificates are NumPy's everywhere."""
    for name in names:
        value = vars(estimator).get(name)
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
    estimator._on_host = {name: (vars(estimator)[name], array) for name, array in kept.items()}


def hosted(estimator: Any) -> Any:
    """The estimator with its fitted arrays in NumPy: itself, unless it was fitted to tensors."""
    kept = vars(estimator).get("_on_host")
    if not kept:
        return estimator
    now = {name: vars(estimator)[name] for name in kept if name in vars(estimator)}
    # what somebody has put in the place of a fitted attribute counts, as it does for any estimator
    arrays = {name: kept[name][1] if value is kept[name][0] else host(value) for name, value in now.items()}
    other = twin(estimator, arrays)
    del other._on_host
    return other


def in_numpy(model: Any) -> Any:
    """A fitted model, of whatever class, without a tensor among its attributes: itself, unless there are some."""
    if not hasattr(model, "__dict__"):
        return model
    model = hosted(model)
    there = {name: host(value) for name, value in vars(model).items() if is_tensor(value)}
    return twin(model, there) if there else model


def at_home(method: F) -> F:
    """Decorate a method of a fitted estimator: it sees NumPy attributes, and its result goes where its input lives."""

    @wraps(method)
    def run(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        return sent(method(hosted(self), X, *args, **kwargs), home_of(X))

    return run  # type: ignore[return-value]


def twin(model: Any, attributes: dict[str, Any]) -> Any:
    """Return a model with other attributes that shares the rest with the first, what it keeps for later too."""
    other = object.__new__(type(model))
    vars(other).update(vars(model) | attributes)
    return other
