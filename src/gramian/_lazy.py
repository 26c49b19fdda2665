"""Packages whose names load when they are first asked for, so that an import loads no more than it needs."""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: dict[str, str], aliases: dict[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    homes : dict of str to str
        For each module of the package the public names it holds, separated by spaces.
    aliases : dict of str to str, optional
        For a public name the one that it has in its module, where they differ.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name in home:
            value = getattr(import_module(f"{package}.{home[name]}"), (aliases or {}).get(name, name))
            setattr(sys.modules[package], name, value)
            return value
        if not name.startswith("__") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home, *vars(sys.modules[package]).get("__all__", ())})

    return get, names
