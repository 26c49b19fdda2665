"""Samples of which a family's likelihood has no maximum, because it can concentrate on them without end."""

from __future__ import annotations

import numpy as np

from gramian.likelihood.families.base import NoMaximumError
from gramian.likelihood.sample import Sample

__all__ = ["refuse_concentration"]


def refuse_concentration(sample: Sample, family: str, how: str) -> None:
    """Raise where one value, or one interval, explains all records.

    Parameters
    ----------
    sample : Sample
        The records.
    family : str
        Its name.
    how : str
        What the parameters do as the family concentrates, as "sd → 0".
    """
    seen = sample.observed()
    points = np.unique(seen.lower[seen.exact])
    a, b = seen.lower[~seen.exact], seen.upper[~seen.exact]
    if len(points) == 1 and np.all((a <= points[0]) & (points[0] <= b)):
        rest = ", which also lies in every censoring interval" if len(a) else ""
        number = "There is 1 sample" if len(seen.lower) == 1 else f"All observed values are {points[0]:g}{rest}"
        raise NoMaximumError(
            f"{number}: the likelihood of the {family} family grows without bound as {how}, so there is no maximum. "
            "Values that differ are needed, or the width of their rounding: Intervals(x - h, x + h)."
        )
    if not len(points) and np.max(a) < np.min(b):
        low, high = float(np.max(a)), float(np.min(b))
        whole = "All observations are censored, and all" if np.isinf([low, high]).any() else "All observations"
        raise NoMaximumError(
            f"{whole} may lie in one interval, {low:g} to {high:g}: as {how} the {family} family can put all its "
            "probability there, so the likelihood nears 1 and has no maximum. Finer classes or exact values are needed."
        )
