"""How well a model fits its data: what stands beside a certificate, which is about the arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt


class FitLevel(StrEnum):
    """What a measure of fit says against the model, the gravest first. None can say that a model is right.

    ``POOR`` is a model that the data reject, or that does no better than none; ``DOUBTFUL`` one to be looked at again;
    ``NOT_REJECTED`` one that a test found nothing against, which is no proof of it; ``FACT`` is for readers to judge.
    """

    POOR = "poor"
    DOUBTFUL = "doubtful"
    NOT_REJECTED = "not rejected"
    FACT = "fact"


# Where levels begin. Those of tests are how often a right model is called wrong: once in 100, and, as is the custom,
# once in 20. A share is doubtful from where most is on the other side. What is "high" beyond that depends on the field.
REJECTED = 0.01
SUSPECTED = 0.05
MOST = 0.5

PLANE = (
    "What a plot of scores leaves out is in the other components: two rows that lie together there may be far apart in "
    "these. Where the share is small, look at more components, or at more than their plots."
)


@dataclass(frozen=True)
class Quality:
    """One measure of how well a model fits its data, in numbers and words.

    Attributes
    ----------
    name : str
        Of the measure, for scripts: ``"r2_left_out"``.
    label : str
        The same for readers: "R², leave-one-out".
    value : float
        The measure; NaN where it is not known.
    text : str
        The value in words, with what follows from it.
    verdict : FitLevel
        Whether it speaks against the model.
    meaning : str
        What the measure is, and what it does not say.

    Examples
    --------
    >>> from gramian.results import Quality, FitLevel
    >>> Quality("p_value", "goodness of fit", 1e-19, "p = 1e-19: the family is rejected", FitLevel.POOR)
    ... # doctest: +ELLIPSIS
    Quality(name='p_value', label='goodness of fit', value=1e-19, ...
    """

    name: str
    label: str
    value: float
    text: str
    verdict: FitLevel = FitLevel.FACT
    meaning: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON."""
        return asdict(self) | {"verdict": self.verdict.value}


UNLIKE = 10.0  # standard deviation of one column over that of another from which units are taken to differ
DOMINANT = 0.6  # share of the variance that the columns of the largest units then have


def warn_of_units(deviations: npt.ArrayLike, names: Sequence[str], consequence: str, remedy: str) -> str | None:
    """Say where one column of large numbers stands for all, since it has another unit; None where none does.

    Parameters
    ----------
    deviations : array-like of shape (p,)
        Standard deviations of the columns.
    names : sequence of str
        Of the columns.
    consequence, remedy : str
        What follows from it for the model, and what to do unless the units are meant to count.

    Returns
    -------
    str or None
        The sentence.

    Examples
    --------
    >>> warn_of_units([1.0, 124.0], ["cyl", "disp"], "and makes the first component", "Scale it").partition(",")[0]
    'The columns seem to have unlike units'
    >>> warn_of_units([1.0, 2.0], ["a", "b"], "", "")
    """
    spread = np.asarray(deviations, dtype=np.float64)
    varies = spread[spread > 0]
    if len(varies) < 2 or not varies.max() >= UNLIKE * varies.min():
        return None
    largest = int(np.nanargmax(spread))
    relative = spread / spread[largest]  # squares of numbers near 1e300 are infinite
    share = 1.0 / float(np.nansum(relative**2))
    if share < DOMINANT:
        return None
    name = names[largest] if len(names[largest]) <= 40 else f"{names[largest][:39]}…"
    return (
        f"The columns seem to have unlike units, and were not scaled: {name} alone has {100 * share:.3g} % of the "
        f"variance, {consequence}. {remedy} unless the units are meant to count."
    )


def judge_chance(p: float) -> FitLevel:
    """What a p-value says against the model that it was computed under.

    Examples
    --------
    >>> [judge_chance(p).value for p in (0.002, 0.03, 0.4, float("nan"))]
    ['poor', 'doubtful', 'not rejected', 'fact']
    """
    if math.isnan(p):
        return FitLevel.FACT
    return FitLevel.POOR if p < REJECTED else FitLevel.DOUBTFUL if p < SUSPECTED else FitLevel.NOT_REJECTED


def find_gravest(measures: Sequence[Quality]) -> Quality | None:
    """The measure that says most against the model, the first of several; None of none.

    Parameters
    ----------
    measures : sequence of Quality
        Measures of one fit.

    Returns
    -------
    Quality or None
        One of them.
    """
    return min(measures, key=lambda measure: list(FitLevel).index(measure.verdict), default=None)


def measure_shares(shares: npt.ArrayLike, of: str = "the variance") -> list[Quality]:
    """How much of a variance components explain, and of three and more what the plane of the first two shows.

    Parameters
    ----------
    shares : array-like of shape (k,)
        Of each component.
    of : str, default="the variance"
        What they are shares of.

    Returns
    -------
    list of Quality
        One or two measures.

    Examples
    --------
    >>> [measure.text for measure in measure_shares([0.4, 0.05, 0.15])]
    ['60.0% of the variance, by 3 components', '45.0% of the variance, by the first 2: most is not in the plot']
    """
    known = np.asarray(shares, dtype=float)
    if not known.size or not np.isfinite(known).all():
        return []
    measures, k = [], len(known)
    for name, label, count in (("share_explained", "variance explained", k), ("share_in_plane", "shown by a plane", 2)):
        share, drawn = float(known[:count].sum()), count <= 2
        hidden = drawn and share < MOST
        text = f"{share:.1%} of {of}, by " + ("the first 2" if k > count else f"{k} component{'s' * (k != 1)}")
        text += ": most is not in the plot" * hidden
        level = FitLevel.DOUBTFUL if hidden else FitLevel.FACT
        measures.append(Quality(name, label, share, text, level, PLANE if drawn else ""))
    return measures[: 1 + (k > 2)]
