"""What a rule for the number of components answers, and what several answer together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RankAdvice", "RankChoice", "counted", "leading", "used_up"]

Vector = npt.NDArray[np.float64]

SHOWN = 8  # rows of a representation
SIZE_ONLY = ("fraction",)  # rules that do not ask whether there is anything but noise

# Why a rule may keep fewer or more components than the others: what it assumes, or asks instead.
WHY = {
    "parallel": (
        "each eigenvalue is compared with one of permuted data, which hold the variance of the strong components too: "
        "weak components behind strong ones are missed",
        "permuting columns breaks every tie between them, correlated noise included, and is fair only where rows are "
        "exchangeable: no time series, no repeated measurements",
    ),
    "parallel-gaussian": (
        "each eigenvalue is compared with one of noise that holds the variance of the strong components too: weak "
        "components behind strong ones are missed",
        "its noise is normal and independent: outlying rows and correlated noise make larger eigenvalues",
    ),
    "tracy-widom": (
        "it is a test: a component near the edge of detection is kept only where chance would seldom make it",
        "it assumes independent noise of the same variance in every column: unequal variances pass as signal, and so "
        "does correlated noise (for which there is gramian.analysis.tracy_widom_rank(..., effective=True))",
    ),
    "gavish-donoho": (
        "it keeps what lowers the error of a reconstruction, which takes a stronger component than detection does: for "
        "a square matrix it cuts at 4/√3, where noise ends at 2",
        "it takes the noise from the median eigenvalue, which is too low where columns have unequal noise",
    ),
    "broken-stick": (
        "it compares with a stick broken at random, not with noise: many weak components that share the variance fall "
        "short of its long first pieces",
        "it compares with a stick broken at random, not with noise: among few or strongly unequal columns its pieces "
        "are shorter than what noise makes",
    ),
    "cv": (
        "it keeps what predicts a variable from the others: a component of one variable predicts none",
        "it keeps what predicts held-out cells at all, be it a little, and correlated noise predicts too",
    ),
    "mle": (
        "its approximation is made for many more rows than columns",
        "its approximation is made for many more rows than columns and noise of one variance, and it never answers 0",
    ),
}


def leading(above: npt.NDArray[np.bool_]) -> int:
    """Return how many come before the first False.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis.rank_choice import leading
    >>> leading(np.array([True, True, False, True]))
    2
    """
    return int(len(above) if above.all() else np.argmin(above))


@dataclass(frozen=True, eq=False, repr=False)
class RankChoice:
    """The number of components by one rule, and how it came to it.

    Attributes
    ----------
    rule : str
        Name of the rule.
    n_components : int
        Components to keep; 0 where nothing stands out of the noise.
    reason : str
        One sentence: what decided.
    values, thresholds : ndarray of shape (m,)
        What was compared, by component, and what it had to exceed; a threshold is NaN where the rule had stopped.

    Examples
    --------
    >>> from gramian.analysis.rank import broken_stick
    >>> broken_stick([3.0, 0.6, 0.3, 0.1])
    broken-stick: 1 component
      λ2 is 15 % of the variance, and a stick broken at random has a piece 2 of 27.1 % on average.
      component       value   threshold
              1        0.75      0.5208  kept
              2        0.15      0.2708
              3       0.075      0.1458
              4       0.025      0.0625
    """

    rule: str
    n_components: int
    reason: str
    values: Vector
    thresholds: Vector

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``."""
        number = np.arange(1, len(self.values) + 1)
        return {
            "component": number,
            "value": self.values,
            "threshold": self.thresholds,
            "kept": number <= self.n_components,
        }

    def __repr__(self) -> str:
        head = [f"{self.rule}: {counted(self.n_components)}", f"  {self.reason}"]
        shown = max(SHOWN, self.n_components + 2)
        return "\n".join(head + self._lines()[: shown + 1])

    def _lines(self) -> list[str]:
        rows = zip(self.values, self.thresholds, strict=True)
        head = f"  {'component':>9} {'value':>11} {'threshold':>11}"
        lines = [f"  {i:>9} {v:>11.4g} {t:>11.4g}" for i, (v, t) in enumerate(rows, start=1)]
        return [head] + [line + "  kept" * (i < self.n_components) for i, line in enumerate(lines)]


def counted(k: int) -> str:
    """Return "1 component", "2 components"."""
    return f"{k} component" + "s" * (k != 1)


def used_up(k: int) -> str:
    """Return the reason to stop where the eigenvalue after the k-th is 0.

    Examples
    --------
    >>> from gramian.analysis.rank_choice import used_up
    >>> used_up(2)
    'λ3 is 0: the 2 components before it hold all the variance.'
    """
    return f"λ{k + 1} is 0: the {counted(k)} before it {'holds' if k == 1 else 'hold'} all the variance."


def _listed(numbers: Sequence[int]) -> str:
    """Return "0, 1 and 12"."""
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


@dataclass(frozen=True, eq=False, repr=False)
class RankAdvice:
    """What each rule says of the same data, and why they differ.

    Attributes
    ----------
    rules : tuple of str
        Names of the rules.
    n_components : tuple of int or None
        Their answers; None where a rule could not be used.
    reasons : tuple of str
        One sentence each.
    choices : dict of str to RankChoice
        The whole answers of the rules that could be used.
    notes : tuple of str
        What was seen in the data that a rule assumes away.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.estimators._advice import rank_advice
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 8)) * 3 + rng.standard_normal((200, 8))
    >>> advice = rank_advice(X)
    >>> advice.consensus, advice.n_components[advice.rules.index("tracy-widom")]
    (2, 2)
    """

    rules: tuple[str, ...]
    n_components: tuple[int | None, ...]
    reasons: tuple[str, ...]
    choices: dict[str, RankChoice] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def votes(self) -> dict[int, tuple[str, ...]]:
        """Rules by their answer; those that measure size alone, or could not be used, are left out."""
        given = [(k, rule) for rule, k in self._asked() if k is not None]
        return {k: tuple(rule for answer, rule in given if answer == k) for k in sorted({k for k, _ in given})}

    @property
    def agree(self) -> bool:
        """Whether all rules that tell components from noise, and could be used, give the same number."""
        return len(self.votes) == 1

    @property
    def consensus(self) -> int | None:
        """The answer most rules give; None where there is a tie between several (see ``leaders``), or no answer."""
        leaders = self.leaders
        return leaders[0] if len(leaders) == 1 else None

    @property
    def leaders(self) -> tuple[int, ...]:
        """The answers that the largest number of rules give: more than one where there is a tie."""
        backing = max(map(len, self.votes.values()), default=0)
        return tuple(k for k, rules in self.votes.items() if len(rules) == backing)

    @property
    def explain(self) -> str:
        """Plain text: what most rules say, which of them differ, and why they may."""
        if not self.votes:
            return "No rule could be used: " + " ".join(self.reasons)
        parts = [self._head(), *self._differences(), *self._sizes(), *self._unused(), *self.notes]
        return "\n".join(parts)

    def _head(self) -> str:
        if self.consensus is None:
            backing = len(self.votes[self.leaders[0]])
            return f"There is a {self._tie()}. Each has {backing} rule{'s' * (backing != 1)} behind it."
        asked, backers = sum(map(len, self.votes.values())), self.votes[self.consensus]
        return f"{len(backers)} of {asked} rules say {counted(self.consensus)}: {', '.join(backers)}."

    def _tie(self) -> str:
        return f"tie between {_listed(self.leaders)}: no recommendation"

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``."""
        return {"rule": list(self.rules), "n_components": list(self.n_components), "reason": list(self.reasons)}

    def __repr__(self) -> str:
        width = max(len(rule) for rule in self.rules)
        rows = zip(self.rules, self.n_components, self.reasons, strict=True)
        lines = [f"  {rule:<{width}}  {'-' if k is None else k:>3}  {reason}" for rule, k, reason in rows]
        head = f"Number of components: {self._verdict()}"
        return "\n".join([head, *lines, *self.notes])

    def _verdict(self) -> str:
        if not self.votes:
            return "no rule could be used"
        if self.consensus is None:
            return self._tie()
        backing, asked = len(self.votes[self.consensus]), sum(map(len, self.votes.values()))
        share = "all rules agree" if self.agree else f"{backing} of {asked} rules"
        return f"{self.consensus} ({share}{', no majority' * (2 * backing <= asked)})"

    def _asked(self) -> list[tuple[str, int | None]]:
        pairs = zip(self.rules, self.n_components, strict=True)
        return [(rule, k) for rule, k in pairs if rule not in SIZE_ONLY]

    def _differences(self) -> list[str]:
        """Say why a rule keeps fewer or more than most; in a tie, than the middle of the answers that tie."""
        out, usual = [], (self.leaders[0] + self.leaders[-1]) / 2
        for k, rules in self.votes.items():
            for rule in rules if k != self.consensus else ():
                fewer, more = WHY.get(rule, ("it asks another question",) * 2)
                if k == usual:
                    out.append(f"{rule} says {k}.")
                else:
                    out.append(f"{rule} says {k}, {'fewer' if k < usual else 'more'}: {fewer if k < usual else more}.")
        return out

    def _sizes(self) -> list[str]:
        pairs = zip(self.rules, self.n_components, strict=True)
        return [
            f"{rule} says {k}: it measures size, not significance, and counts noise as variance to be explained."
            for rule, k in pairs
            if rule in SIZE_ONLY and k is not None and k != self.consensus
        ]

    def _unused(self) -> list[str]:
        rows = zip(self.rules, self.n_components, self.reasons, strict=True)
        return [f"{rule} could not be used: {reason}" for rule, k, reason in rows if k is None]
