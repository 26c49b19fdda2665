"""Names that came from data, made fit to be drawn: nothing in them is a command to the picture."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.text import Text

__all__ = ["as_names", "as_ticks", "clean", "name_axes", "natural", "set_plain", "short"]

AXIS = 60  # letters of the name of an axis
LONGEST = 24  # letters of a name: more would take the room of the picture


def clean(name: Any) -> str:
    r"""A name on one line, without control characters and marks that reverse the direction of text.

    Examples
    --------
    >>> from gramian.display._text import clean
    >>> clean("two\nlines\x00")
    'two lines'
    """
    text = "".join(" " if c in "\n\r\t\v\f\u2028\u2029" else c for c in str(name))
    return "".join(c for c in text if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn")).strip()


def short(name: Any, longest: int = LONGEST) -> str:
    """A long name without its middle: its ends tell it from others.

    Examples
    --------
    >>> from gramian.display._text import short
    >>> short("the pressure in the upper chamber", 16)
    'the pres…chamber'
    """
    text = clean(name)
    half = (longest - 1) // 2
    return text if len(text) <= longest else f"{text[: longest - 1 - half]}…{text[-half:]}"


def as_names(names: Iterable[Any] | None, count: int, what: str, usual: str) -> list[str]:
    """The names given, which must be so many; or the usual ones, as x1, x2, …"""
    if names is None:
        return [usual.format(j + 1) for j in range(count)]
    found = [str(name) for name in names]
    if len(found) != count:
        raise ValueError(f"{what} has {len(found)} entries for {count}.")
    return found


def set_plain(texts: Iterable[Text], names: Sequence[Any] | None = None, longest: int = LONGEST) -> None:
    """Write names, letter by letter: a dollar is a dollar and starts no formula."""
    drawn = list(texts)
    for text, name in zip(drawn, [text.get_text() for text in drawn] if names is None else names, strict=True):
        text.set_parse_math(False)
        text.set_text(short(name, longest))


def name_axes(ax: Axes, x: Any, y: Any) -> None:
    """Name both axes by names that came from data."""
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    set_plain([ax.xaxis.label, ax.yaxis.label], [x, y], AXIS)


def as_ticks(names: Iterable[Any], longest: int = LONGEST) -> list[str]:
    r"""Names for the ticks of an axis, which reads a pair of dollars as a formula unless they are escaped.

    Examples
    --------
    >>> from gramian.display._text import as_ticks
    >>> as_ticks(["price in $"])
    ['price in \\$']
    """
    return [short(name, longest).replace("$", r"\$") for name in names]


def natural(name: str) -> list[tuple[int, int, str]]:
    """A key by which "group 2" comes before "group 10".

    Examples
    --------
    >>> from gramian.display._text import natural
    >>> sorted(["b10", "b2", "a"], key=natural)
    ['a', 'b2', 'b10']
    """
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part[:18]), part) if part[0] in "0123456789" else (1, 0, part) for part in parts]
