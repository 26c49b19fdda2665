"""What a cell shows: numbers with the digits that matter, and text that is never taken for a command."""

from __future__ import annotations

import html
import json
import math
import re
from typing import Any

__all__ = ["as_json", "count", "exact", "guarded", "is_missing", "isolated", "plain", "short", "shown"]

NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)?|[.,]\d+)([eE][+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)
FORMULA = "=+-@＝＋－＠"  # with their full-width forms, which some spreadsheets take for the same
MATHS = re.compile(r"\$(?=\$)|\\(?=[()\[\]])")
JOINER = "\N{WORD JOINER}"


def guarded(text: str) -> str:
    r"""A cell as text: what a spreadsheet would take for a formula gets an apostrophe in front.

    Cells that begin with ``=``, ``+``, ``-`` or ``@``, after blanks or not, or with a tab or a line end, are guarded
    unless they are plain numbers (OWASP, "CSV Injection").

    Parameters
    ----------
    text : str
        The cell.

    Returns
    -------
    str
        The cell, safe to open in a spreadsheet.

    Examples
    --------
    >>> from gramian.display.report import guarded
    >>> guarded("=1+1"), guarded("-2.5e3"), guarded("@name"), guarded("wine")
    ("'=1+1", '-2.5e3', "'@name", 'wine')
    """
    bare = text.strip()
    if text[:1] not in ("\t", "\r", "\n") and bare[:1] not in tuple(FORMULA):
        return text
    return text if text == bare and NUMBER.fullmatch(bare) else f"'{text}"


def short(text: str, most: int = 120) -> str:
    """A long text without its middle: its ends tell it from others.

    Examples
    --------
    >>> short("abcdefghij", 5)
    'ab…ij'
    """
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[: most - 1 - half]}…{text[-half:]}"


def plain(text: str) -> str:
    r"""Text for a picture in which no ``$$`` or ``\(`` begins a formula: Bokeh would fetch what typesets it.

    Examples
    --------
    >>> plain("$$x$$") == "$$x$$", len(plain("$$x$$"))
    (False, 7)
    """
    return MATHS.sub(lambda found: found.group() + JOINER, text)


def isolated(text: str) -> str:
    """Text of unknown direction as HTML: escaped, and without effect on the text around it.

    Examples
    --------
    >>> isolated("<b>")
    '<bdi>&lt;b&gt;</bdi>'
    """
    return f"<bdi>{html.escape(text)}</bdi>"


def is_missing(value: Any) -> bool:
    """Whether there is nothing to show: None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def count(number: float) -> str:
    """A whole number with its thousands apart.

    Examples
    --------
    >>> count(1234567)
    '1,234,567'
    """
    return f"{number:,.0f}"


def shown(value: Any, percent: bool = False) -> str:
    """A value for readers: five digits, powers of ten where there would be many noughts.

    Examples
    --------
    >>> shown(0.123456789), shown(1.5e-9), shown(True), shown(None), shown(0.25, percent=True)
    ('0.12346', '1.50e-09', 'yes', '–', '25.0 %')
    """
    if is_missing(value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if not isinstance(value, float):
        return str(value)
    if percent:
        return f"{100 * value:.2g} %" if 0 < abs(value) < 0.01 else f"{100 * value:.1f} %"
    size = abs(value)
    return f"{value:.2e}" if math.isfinite(value) and size and not 1e-4 <= size < 1e6 else f"{value:.5g}"


def exact(value: Any) -> str:
    """A value for machines: every digit of a number; text guarded."""
    if is_missing(value):
        return ""
    return repr(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else guarded(shown(value))


def as_json(value: Any) -> str:
    r"""JSON that can stand in a script element, whatever text is in it.

    Examples
    --------
    >>> as_json(["</script>"])
    '["\\u003c/script>"]'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # A surrogate that stands alone cannot be written as UTF-8.
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)
