"""What an object is made of, and the object made again from that, without its constructor."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cached_property
from typing import Any

from sklearn.base import BaseEstimator

__all__ = ["parameters_of", "rebuild", "state_of"]


def state_of(value: Any) -> dict[str, Any]:
    """The attributes of an object, less what it can compute again (:class:`~functools.cached_property`)."""
    if is_dataclass(value):
        state = {field.name: getattr(value, field.name) for field in fields(value)}
        state |= {name: item for name, item in vars(value).items() if name not in state}
    else:  # __getstate__ is where estimators leave out what can be made again
        state = dict(value.__getstate__() or {})
    return {name: item for name, item in state.items() if not _is_cache(type(value), name)}


def _is_cache(cls: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(cls, name, None), cached_property)


def rebuild(cls: type, state: dict[str, Any]) -> Any:
    """An object with these attributes; no code of the class runs, and no method can be hidden by a value."""
    for name in state:
        if not _is_data(cls, name):
            raise ValueError(f"{cls.__name__} has no attribute {name!r} that a file may set")
    if is_dataclass(cls):
        state = {field.name: _field(cls, field, state) for field in fields(cls)}
    elif issubclass(cls, BaseEstimator):
        state = {**{name: state.get(name, default) for name, default in parameters_of(cls).items()}, **state}
    made: Any = object.__new__(cls)
    for name, value in state.items():
        object.__setattr__(made, name, value)
    return made


def parameters_of(cls: Any) -> dict[str, Any]:
    """The constructor's parameters and their defaults."""
    signature = inspect.signature(cls.__init__)
    return {name: item.default for name, item in signature.parameters.items() if name != "self"}


def _is_data(cls: Any, name: str) -> bool:
    if not name.isidentifier() or name.startswith("__"):
        return False
    if is_dataclass(cls):
        return name in {field.name for field in fields(cls)}
    known = inspect.getattr_static(cls, name, None)
    return not (callable(known) or hasattr(known, "__get__"))


def _field(cls: type, field: Field[Any], state: dict[str, Any]) -> Any:
    if field.name in state:
        return state[field.name]
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    raise ValueError(f"{cls.__name__} lacks {field.name!r}")
