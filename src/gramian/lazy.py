"""Packages whose names load when they are first asked for, so that an import loads no more than it needs."""

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def lazy_names(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` (PEP 562) of the package with this ``__name__``.

    The names and where they are defined are those of the imports under ``if TYPE_CHECKING:`` in the package's own file.
    A function that is called as its module, as ``fst`` of ``genetics.fst``, is what the name stands for.
    """
    module: Any = sys.modules[package]

    @cache
    def homes() -> dict[str, tuple[str, str]]:
        """Of each name the module that defines it, and its name there."""
        with open(module.__file__, encoding="utf-8") as file:
            branches = [node for node in ast.parse(file.read()).body if isinstance(node, ast.If)]
        imports = [node for branch in branches for node in branch.body if isinstance(node, ast.ImportFrom)]
        return {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}

    class LazyPackage(ModuleType):
        def __setattr__(self, name: str, value: Any) -> None:
            # the import system makes every module that it has loaded an attribute of its package
            if not (isinstance(value, ModuleType) and name in homes()):
                super().__setattr__(name, value)

    module.__class__ = LazyPackage

    def get(name: str) -> Any:
        where, original = homes().get(name, (package, name))
        if where != package:
            value = getattr(import_module(where), original)
            setattr(module, name, value)
            return value
        if not name.startswith("__") and find_spec(f"{package}.{name}") is not None:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted({*vars(module), *homes()})
