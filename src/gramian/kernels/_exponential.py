r"""The exponential that this processor computes fastest: eˣ, or 2ˣ with its exponent multiplied by log₂e beforehand.

NumPy's vectorised 2ˣ takes half the time of its eˣ in float32 (4.8 against 2.2·10⁹ a second on one core with AVX-512)
and less in float64; where it has no vectorised 2ˣ, eˣ is used. Results below the smallest normal number are a hundred
times as slow as others, so exponents are kept above :func:`lowest`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

try:
    from numpy.lib.introspect import opt_func_info
except ImportError:  # pragma: no cover  # NumPy 2.0 cannot say, and its eˣ is always vectorised
    opt_func_info = None  # type: ignore[assignment]

__all__ = ["RATE", "at_least", "exponential", "lowest"]

Array = npt.NDArray[Any]


def _vectorised(name: str) -> bool:
    """Whether NumPy has a loop of its own for this processor."""
    if opt_func_info is None:  # pragma: no cover
        return False
    loops = opt_func_info(func_name=f"^{name}$").get(name, {}).values()
    return bool(loops) and not any("baseline" in loop["current"] for loop in loops)


exponential: Any = np.exp2 if _vectorised("exp2") else np.exp
RATE = float(np.log2(np.e)) if exponential is np.exp2 else 1.0  # exponential(RATE x) = eˣ


@cache
def lowest(dtype: np.dtype[Any]) -> float:
    """Return an exponent whose exponential is next to the smallest normal number."""
    return (int(np.finfo(dtype).minexp) + 1) * RATE / float(np.log2(np.e))


def at_least(t: Array, floor: float) -> Array:
    """Raise t to the floor in place; most tiles only need the look at their least entry."""
    if t.size and t.min() < floor:
        # an array of floors: NumPy's loop for a single number is half as fast
        np.maximum(t, np.full(t.shape[1], floor, t.dtype), out=t)
    return t
