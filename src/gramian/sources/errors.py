"""Errors that know their file and the arguments they speak of. Light to import: the command line needs them first."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple


class Argument(NamedTuple):
    """An argument that an error speaks of, with the value that is meant, if one is.

    Parameters
    ----------
    name : str
        Of the argument.
    value : object, optional
        The value that is meant.
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        return f"{self.name}=" if self.value is None else f"{self.name}={self.value!r}"


class SourceError(ValueError):
    """Data that cannot be used as they are: what is wrong, in which file, and which arguments would help.

    Parameters
    ----------
    *parts : str or Argument
        The text. Arguments stand in it as such, so that a command line can name its options instead.
    path : path-like, optional
        The file it is about.
    missing : bool, default False
        Whether missing cells are what is wrong, so that leaving them out or filling them in would help.

    Examples
    --------
    >>> from gramian.sources.errors import Argument, SourceError
    >>> error = SourceError("no row is complete: use ", Argument("missing", "mean"), ".", path="a.csv")
    >>> print(error)
    a.csv: no row is complete: use missing='mean'.
    >>> error.text(lambda argument: f"--{argument.name} {argument.value}")
    'no row is complete: use --missing mean.'
    """

    def __init__(
        self, *parts: str | Argument, path: str | os.PathLike[str] | None = None, missing: bool = False
    ) -> None:
        super().__init__(*parts)
        self.parts, self.path, self.missing = parts, path, missing

    def text(self, spell: Callable[[Argument], str] = str) -> str:
        """The text without the file, its arguments spelled by ``spell``."""
        return "".join(spell(part) if isinstance(part, Argument) else part for part in self.parts)

    def __str__(self) -> str:
        return self.text() if self.path is None else f"{self.path}: {self.text()}"
