"""Where a warning belongs: at the line of the person who called, not in this package."""

from __future__ import annotations

import sys

__all__ = ["caller_level"]

BETWEEN = ("gramian", "joblib", "sklearn")  # packages that call each other on the way here


def caller_level() -> int:
    """Return the ``stacklevel`` with which the caller of this function warns at the first line outside the package.

    Examples
    --------
    >>> from gramian.linear._caller import caller_level
    >>> caller_level() >= 1
    True
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        frame, level = frame.f_back, level + 1
    return level
