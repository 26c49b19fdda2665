"""What every rule for the number of components says of one set of data, and why the answers differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from scipy.special import chdtrc

from gramian.inputs.checks import check_integer
from gramian.inputs.devices import convert_to_numpy
from gramian.inputs.progress import Progress
from gramian.pca.estimator import PCA
from gramian.pca.problem import PCAFit
from gramian.pca.rank import (
    SPECTRUM_RULES,
    CrossValidation,
    RankChoice,
    cross_validate_rank,
    fit_whole,
    minka_choice,
    parallel_analysis,
    pluralize,
    tracy_widom_rank,
    variance_fraction,
)
from gramian.results.tables import Tabular
from gramian.sources import open_source

SIZE_ONLY = ("fraction",)  # rules that do not ask whether there is anything but noise
UNEQUAL = 2.0  # ratio of the largest noise variance to the smallest that is worth a note
HELPS = 0.5  # share of that ratio to which scaling must bring it to be advised
SURE = 1e-3  # and the probability below which chance does not make it
ALONE = 0.05  # columns with 1 − h below this hold too little noise to judge by
ROUNDING = 1e-12  # a variance below this share of the largest is rounding: a column without noise
NEED_ROWS = ("parallel", "cv")  # rules that cannot be used on all data: files, fractional weights, very few rows
# The two parallel analyses are all but one rule; what helps a reconstruction is not all that there is; and pieces of a
# stick are not noise. All others count once.
WEIGHTS = {"parallel": 0.5, "parallel-gaussian": 0.5, "gavish-donoho": 0.5, "broken-stick": 0.25}
ONE_NOISE = ("tracy-widom", "gavish-donoho", "mle")  # rules that assume noise of one variance
NOISE_RULES = ("parallel", "parallel-gaussian", "tracy-widom", "cv")

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


@dataclass(frozen=True, eq=False, repr=False)
class RankAdvice(Tabular):
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
    weights : dict of str to float
        How much each rule counts in ``consensus``, 1 unless given: 0 where the data show that what it assumes fails.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import rank_advice
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
    weights: dict[str, float] = field(default_factory=lambda: WEIGHTS)

    @property
    def votes(self) -> dict[int, tuple[str, ...]]:
        """Rules by their answer; those that measure size alone, or could not be used, are left out."""
        given = [(k, rule) for rule, k, _ in self._answers() if k is not None and rule not in SIZE_ONLY]
        return {k: tuple(rule for answer, rule in given if answer == k) for k in sorted({k for k, _ in given})}

    @property
    def agree(self) -> bool:
        """Whether all rules that tell components from noise, and could be used, give the same number."""
        return len(self.votes) == 1

    @property
    def consensus(self) -> int | None:
        """The number to take: the middle of the answers, each with its weight; None where no rule could be used."""
        weighed = {k: sum(self.weights.get(rule, 1.0) for rule in rules) for k, rules in self.votes.items()}
        if not weighed:
            return None
        sums = list(accumulate(weighed.values()))
        return next(k for k, total in zip(weighed, sums, strict=True) if 2 * total >= sums[-1])

    @property
    def reason(self) -> str:
        """One sentence: which rules say as many as ``consensus``, how far apart all are, and which do not count."""
        votes, consensus = self.votes, self.consensus
        if consensus is None:
            return "No rule could be used: " + " ".join(self.reasons)
        if self.agree:
            return "All rules agree."
        asked = [rule for rules in votes.values() for rule in rules]
        unfit = [rule for rule in asked if self.weights.get(rule, 1.0) == 0.0]
        counted = [k for k, rules in votes.items() if set(rules) - set(unfit)]
        backers = [rule for rule in votes[consensus] if rule not in unfit]
        of = f"{len(backers)} of {len(asked) - len(unfit)} rules"
        reason = f"{of} say{'s' * (len(backers) == 1)} so ({', '.join(backers)})"
        if counted[-1] > counted[0]:
            reason += f", the middle of answers from {counted[0]} to {counted[-1]}"
        return reason + (f"; {', '.join(unfit)} not counted, as the assumption fails." if unfit else ".")

    @property
    def explain(self) -> str:
        """Plain text: the number to take, which rules differ from it, and why they may."""
        votes, consensus = self.votes, self.consensus
        if consensus is None:
            return self.reason
        lines = [f"{pluralize(consensus)}: {self.reason[0].lower()}{self.reason[1:]}"]
        for k, rules in votes.items():
            for rule in rules if k != consensus else ():
                fewer, more = WHY.get(rule, ("it asks another question",) * 2)
                lines.append(f"{rule} says {k}, {f'fewer: {fewer}' if k < consensus else f'more: {more}'}.")
        size = "it measures size, not significance, and counts noise as variance to be explained"
        others = [(rule, n) for rule, n, _ in self._answers() if rule in SIZE_ONLY and n not in (None, consensus)]
        lines += [f"{rule} says {n}: {size}." for rule, n in others]
        unused = [f"{rule} could not be used: {reason}" for rule, k, reason in self._answers() if k is None]
        return "\n".join([*lines, *unused, *self.notes])

    def table(self) -> dict[str, Any]:
        """Return the columns, ready for ``pandas.DataFrame``."""
        return {"rule": list(self.rules), "n_components": list(self.n_components), "reason": list(self.reasons)}

    def _title(self) -> str:
        shown = "no rule could be used" if self.consensus is None else f"{self.consensus}. {self.reason}"
        return f"Number of components: {shown}"

    def _shown(self) -> dict[str, Any]:
        return self.table() | {"n_components": ["-" if k is None else k for k in self.n_components]}

    def _remarks(self) -> list[str]:
        return list(self.notes)

    def _answers(self) -> list[tuple[str, int | None, str]]:
        return list(zip(self.rules, self.n_components, self.reasons, strict=True))


def rank_advice(
    X: Any,
    *,
    sample_weight: Any = None,
    scale: bool = False,
    fraction: float = 0.9,
    alpha: float = 0.05,
    max_components: int | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> RankAdvice:
    r"""Ask every rule how many components the data have, and say why the answers differ.

    The rules are ``parallel`` and ``parallel-gaussian`` (:func:`gramian.pca.rank.parallel_analysis`),
    ``tracy-widom``, ``gavish-donoho``, ``broken-stick`` and ``fraction`` (:mod:`gramian.pca.rank`), ``cv``
    (:func:`gramian.pca.rank.cross_validate_rank`) and ``mle`` (Minka's evidence).

    Parameters
    ----------
    X : array-like, sparse matrix, frame, tensor, path or Source
        The data.
    sample_weight : array-like of shape (n,), optional
        Frequencies.
    scale : bool, default=False
        Divide columns by their standard deviations.
    fraction : float, default=0.9
        Share of the variance that the rule ``fraction`` asks for.
    alpha : float, default=0.05
        Probability of a false alarm in ``tracy-widom``.
    max_components : int, optional
        Most components that ``cv`` tries; None tries up to 100.
    random_state : int, RandomState, Generator or None, default=None
        Seed of draws and folds; None is a fixed seed.
    progress : callable, optional
        Called as ``progress(done, total, message)`` after each rule.

    Returns
    -------
    RankAdvice
        One row for each rule; ``explain`` says in words which differ and why.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gramian import rank_advice
    >>> advice = rank_advice(load_iris().data, scale=True)
    >>> dict(zip(advice.rules, advice.n_components, strict=True))["broken-stick"]
    1
    """
    if max_components is not None:
        check_integer("max_components", max_components)
    source, w, pca = convert_to_numpy(open_source(X)), convert_to_numpy(sample_weight), PCA(scale=scale)
    whole = fit_whole(pca, source, w)
    lam, n, p = whole.variances, whole.weight, len(whole.mean)

    parallel = partial(parallel_analysis, whole, source, sample_weight=w, random_state=random_state)
    rules: dict[str, Callable[[], RankChoice]] = {
        "parallel": lambda: parallel(null="permutation"),
        "parallel-gaussian": lambda: parallel(null="gaussian"),
        "tracy-widom": lambda: tracy_widom_rank(lam, n, p, alpha),
        "gavish-donoho": lambda: SPECTRUM_RULES["gavish-donoho"](lam, n, p),
        "broken-stick": lambda: SPECTRUM_RULES["broken-stick"](lam, n, p),
        "cv": lambda: cross_validate_rank(
            pca, source, max_components=max_components, sample_weight=w, random_state=random_state
        ),
        "mle": lambda: minka_choice(lam, n, p),
        "fraction": lambda: variance_fraction(lam, fraction),
    }
    choices: dict[str, RankChoice] = {}
    reasons: dict[str, str] = {}
    for done, (name, rule) in enumerate(rules.items(), start=1):
        try:
            choices[name] = rule()
            reasons[name] = choices[name].reason
        except ValueError as error:
            if name not in NEED_ROWS:
                raise
            reasons[name] = str(error)  # why the data do not allow the rule
        if progress is not None:
            progress(done, len(rules), name)
    answers = tuple(choices[name].n_components if name in choices else None for name in rules)

    # what the data show of the assumptions: unequal noise, and too few rows for Minka
    told = [choices[name].n_components for name in NOISE_RULES if name in choices]
    unequal = unequal_noise(whole, min(told, default=0))
    notes, weights = [], dict(WEIGHTS)
    if unequal is not None:
        if unequal_noise(whole, max(told, default=0)) is not None:  # components that are left in look the same
            weights |= dict.fromkeys(ONE_NOISE, 0.0)
        ratio, p_value, scaled_ratio = unequal
        if whole.scale is not None:
            remedy = "Scaling has not made it equal"
        else:  # advise scaling only where it would make the noise more nearly equal
            remedy = "scale=True may help" if scaled_ratio < HELPS * ratio else "Scaling would not make it equal"
        notes.append(
            f"Beyond the components the columns have noise of unequal variance (largest over smallest {ratio:.3g}, "
            f"p = {p_value:.1g}), where tracy-widom, gavish-donoho and mle assume one: they may keep too many. "
            f"{remedy}; parallel allows for it."
        )
    if n < 5 * p:
        weights["mle"] = 0.0
        notes.append(f"mle assumes many more rows than columns; there are {n:g} and {p}.")
    if isinstance(cv := choices.get("cv"), CrossValidation) and cv.at_the_end:
        weights["cv"] = 0.0
    return RankAdvice(tuple(rules), answers, tuple(reasons.values()), choices, tuple(notes), weights)


def unequal_noise(whole: PCAFit, k: int) -> tuple[float, float, float] | None:
    r"""Ratio of the largest to the smallest noise variance of the columns, and a p-value; None where they may be equal.

    With k components taken out, column j has noise of variance :math:`s_j^2=\sum_{l>k}\lambda_l v_{jl}^2/(1-h_j)`, and

    .. math:: \nu\Bigl[p\ln\overline{s^2}-\sum_j\ln s_j^2\Bigr]\Big/\Bigl(1+\frac{p+1}{3p\nu}\Bigr)\sim\chi^2_{p-1}

    with ν = n − 1 − k where the noise is equal (M. Bartlett, Proc. R. Soc. A 160, 268, 1937). The third number is the
    ratio that is left when columns are divided by their standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA, open
    >>> from gramian.pca.rank import fit_whole
    >>> from gramian.pca.advice import unequal_noise
    >>> X = np.random.default_rng(0).standard_normal((100, 4))
    >>> unequal_noise(fit_whole(PCA(), open(X), None), 0) is None
    True
    >>> unequal_noise(fit_whole(PCA(), open(X * [1, 1, 1, 5]), None), 0)[0] > 10
    True
    """
    free = 1 - np.sum(whole.components[:k] ** 2, axis=0)
    left = whole.variances[k:] @ whole.components[k:] ** 2
    judged = (free > ALONE) & (left > ROUNDING * np.max(whole.column_variances, initial=0.0))
    s = left[judged] / free[judged]
    freedom, p = whole.weight - 1 - k, len(s)
    if p < 2 or freedom < 1 or s.max() < UNEQUAL * s.min():
        return None
    statistic = freedom * (p * np.log(s.mean()) - np.log(s).sum()) / (1 + (p + 1) / (3 * p * freedom))
    chance = float(chdtrc(p - 1, statistic))
    relative = s / whole.column_variances[judged]
    return (float(s.max() / s.min()), chance, float(relative.max() / relative.min())) if chance < SURE else None
