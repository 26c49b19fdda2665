"""Samples of which a family's likelihood has no maximum, because it can concentrate on them without end."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gramian.likelihood.families.base import NoMaximumError
from gramian.likelihood.sample import INF, Sample

__all__ = ["refuse_concentration"]

Vector = npt.NDArray[np.float64]


def refuse_concentration(
    sample: Sample, family: str, how: str, at: float | None = None, support: tuple[float, float] = (-INF, INF)
) -> None:
    """Raise where one value, one interval, or the edge that all classes share, explains all records.

    Parameters
    ----------
    sample : Sample
        The records.
    family : str
        Its name.
    how : str
        What the parameters do as the family concentrates, as "sd → 0".
    at : float, optional
        The only value at which it can, where the location is held.
    support : tuple of float
        Where the family has its values.
    """
    seen = sample.observed()
    points = np.unique(seen.lower[seen.exact])
    a, b = seen.lower[~seen.exact], seen.upper[~seen.exact]
    if len(points) == 1 and np.all((a <= points[0]) & (points[0] <= b)) and _is(points[0], at):
        rest = ", which also lies in every censoring interval" if len(a) else ""
        number = "There is 1 sample" if len(seen.lower) == 1 else f"All observed values are {points[0]:g}{rest}"
        raise NoMaximumError(
            f"{number}: the likelihood of the {family} family grows without bound as {how}, so there is no maximum. "
            "Values that differ are needed, or the width of their rounding: Intervals(x - h, x + h)."
        )
    if not len(points) and np.max(a) < np.min(b) and (at is None or np.max(a) < at < np.min(b)):
        low, high = float(np.max(a)), float(np.min(b))
        whole = "All observations are censored, and all" if np.isinf([low, high]).any() else "All observations"
        raise NoMaximumError(
            f"{whole} may lie in one interval, {low:g} to {high:g}: as {how} the {family} family can put all its "
            "probability there, so the likelihood nears 1 and has no maximum. Finer classes or exact values are needed."
        )
    if not len(points) and at is None and np.max(a) == np.min(b):
        _refuse_touching(a, b, family, how, support)


def _refuse_touching(a: Vector, b: Vector, family: str, how: str, support: tuple[float, float]) -> None:
    """Classes that meet at one edge: near it any shares of them can be had, and nothing is left for other classes."""
    edge = float(np.max(a))
    covered = np.all(a[b == edge] <= support[0]) and np.all(b[a == edge] >= support[1])
    if not covered:  # else any width of the family has these shares
        raise NoMaximumError(
            f"All observations lie in classes that meet at {edge:g}: as {how} at this edge the {family} family nears "
            "their shares, so the likelihood has no maximum. Finer classes or exact values are needed."
        )


def _is(point: float, at: float | None) -> bool:
    return at is None or bool(abs(point - at) <= 4.0 * np.finfo(np.float64).eps * max(abs(point), abs(at)))
