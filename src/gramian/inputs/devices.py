"""Estimators on devices: results where the input lived, and fitted models in NumPy for methods that work there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from gramian.compute.devices import device_of, is_tensor, like, to_device, to_numpy
from gramian.sources import Source
from gramian.sources.devices import source_to_numpy

F = TypeVar("F", bound=Callable[..., Any])


def like_input(method: F) -> F:
    """Decorate a method of a fitted estimator: it sees NumPy attributes, and its result goes where its input lives."""

    @wraps(method)
    def run(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        return like(X, method(convert_to_numpy(self), X, *args, **kwargs))

    return run  # type: ignore[return-value]


def store_like(estimator: Any, given: Any, names: Iterable[str] | None = None) -> None:
    """Move fitted arrays to where the input lived, as scikit-learn's rules for the array API say.

    With ``names`` those attributes alone, in either direction. Without, all public numeric arrays of an estimator that
    works in NumPy; the arrays are kept next to the tensors, and :func:`convert_to_numpy` takes them from there.
    """
    own = vars(estimator)
    if names is not None:
        for name in names:
            value = own.get(name)  # certificates, which have arrays too, are NumPy's everywhere
            if is_tensor(value) or isinstance(value, np.ndarray):
                own[name] = like(given, value)
        return
    own.pop("_numpy_attributes", None)
    device = device_of(given)
    if device is None:
        return
    public = {name: value for name, value in own.items() if name.endswith("_") and not name.startswith("_")}
    kept = {k: v for k, v in public.items() if isinstance(v, np.ndarray) and v.dtype.kind in "fiu"}
    own.update({name: to_device(array, device) for name, array in kept.items()})
    own["_numpy_attributes"] = {name: (own[name], array) for name, array in kept.items()}


def convert_to_numpy(x: Any) -> Any:
    """Return x without tensors: a tensor, a source, or a copy of a fitted model that has some; all else as it is.

    Examples
    --------
    >>> from gramian.inputs.devices import convert_to_numpy
    >>> convert_to_numpy("iris.csv")
    'iris.csv'
    """
    if is_tensor(x):
        return to_numpy(x)
    if isinstance(x, Source):
        return source_to_numpy(x)
    own = getattr(x, "__dict__", {})
    kept, moved = own.get("_numpy_attributes", {}), {}
    for name, value in own.items():
        if is_tensor(value) or isinstance(value, Source):
            # what somebody has put in the place of a fitted attribute counts, as it does for any estimator
            tensor, array = kept.get(name, (None, None))
            moved[name] = array if value is tensor else convert_to_numpy(value)
    if all(value is own[name] for name, value in moved.items()):
        return x
    other = copy_with(x, moved)
    vars(other).pop("_numpy_attributes", None)
    return other


def copy_with(model: Any, attributes: dict[str, Any]) -> Any:
    """Return a model with other attributes that shares the rest with the first, what it keeps for later too."""
    other = object.__new__(type(model))
    vars(other).update(vars(model) | attributes)
    return other
