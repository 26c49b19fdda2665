"""How well a model fits its data: what stands beside a certificate, which is about the arithmetic alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class FitLevel(StrEnum):
    """What a measure of fit says of the model: that it fits, that it does not, or a fact to be judged by the reader."""

    GOOD = "good"
    POOR = "poor"
    FACT = "fact"


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
        Whether it speaks for the model or against it.

    Examples
    --------
    >>> from gramian.results import Quality, FitLevel
    >>> Quality("p_value", "goodness of fit", 1e-19, "p = 1e-19: the family does not describe the data", FitLevel.POOR)
    ... # doctest: +ELLIPSIS
    Quality(name='p_value', label='goodness of fit', value=1e-19, ...
    """

    name: str
    label: str
    value: float
    text: str
    verdict: FitLevel = FitLevel.FACT

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain Python values, ready for JSON."""
        return asdict(self) | {"verdict": self.verdict.value}
