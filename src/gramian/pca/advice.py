"""What every rule for the number of components says of one set of data, and why the answers differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_integer
from gramian.inputs.devices import convert_to_numpy
from gramian.inputs.progress import Progress
from gramian.pca.estimator import PCA
from gramian.pca.missing import choose_by_held_out_cells
from gramian.pca.noise import JUDGED, NoiseDiagnosis, diagnose_noise, unequal_noise
from gramian.pca.rank import (
    SPECTRUM_RULES,
    CrossValidation,
    RankChoice,
    bi_cross_validate,
    cross_validate_rank,
    deflated_analysis,
    fit_whole,
    max_rank,
    minka_choice,
    parallel_analysis,
    pluralize,
    tracy_widom_rank,
    variance_fraction,
)
from gramian.results.tables import Tabular
from gramian.sources import Source, SourceError, open_source

SIZE_ONLY = ("fraction",)  # rules that do not ask whether there is anything but noise
HELPS = 0.5  # share of the ratio of noise variances to which scaling must bring it to be advised
# rules that cannot be used on all data: files, fractional weights, very few rows
NEED_ROWS = ("parallel", "sign-flip", "neighbours", "cv", "bi-cv")
# The two parallel analyses are all but one rule, which the deflated one supersedes; what helps a reconstruction is not
# all that there is; and pieces of a stick are not noise. All others count once.
WEIGHTS = {
    "parallel": 0.5,
    "parallel-gaussian": 0.5,
    "sign-flip": 1.5,
    "gavish-donoho": 0.5,
    "broken-stick": 0.25,
    "bi-cv": 0.5,
    "edge-differences": 0.0,  # made for correlated noise, and blind to weak components where there is none
    "screenot": 0.0,
}
# Where the noise is correlated, only rules that allow for it count: that of neighbours where there is an order to keep,
# else sign-flip as the most there can be, next to the least that edge-differences sees.
ALLOW_FOR_IT = ("edge-differences", "screenot")
ONE_NOISE = ("tracy-widom", "gavish-donoho", "mle")  # rules that assume noise of one variance
NORMAL_NOISE = ("parallel-gaussian", "tracy-widom", "mle")  # rules that assume normal noise
NOISE_RULES = ("parallel", "parallel-gaussian", "tracy-widom", "cv")
DETECTING = (
    "sign-flip",
    "tracy-widom",
    "edge-differences",
    "screenot",
    "neighbours",
    "runs",
)  # whose answers make the range

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
    "sign-flip": (
        "noise exceeds its level once in a hundred sets: a component near the edge of detection is left out",
        "flipped signs break correlations of the noise as well as components",
    ),
    "neighbours": (
        "its draws keep what a component shares between neighbours: smooth ones are compared with too much",
        "its draws keep what ties neighbours, and break other correlations of the noise",
    ),
    "runs": (
        "it counts the directions in which runs of like rows differ, and none that varies within them alone",
        "it compares runs of like rows with the noise within them, and needs no direction of noise alone",
    ),
    "edge-differences": (
        "it sees components only where a gap ends them: weak ones that go over into the noise make none",
        "it takes any wide gap for the end of the components, that between strong ones and weak ones too",
    ),
    "screenot": (
        "it keeps what lowers the error of a reconstruction, which takes a stronger component than detection does",
        "it is made for many rows and columns, and takes the end of the noise from few eigenvalues",
    ),
    "bi-cv": (
        "it predicts from half of the rows and columns, which show less than all",
        "it keeps what predicts held-out blocks at all, and correlated noise predicts too",
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
    noise : NoiseDiagnosis or None
        What the noise is like, by which the weights were chosen.
    at_most : int or None
        The most that a test at any level would keep, where the noise is not correlated.

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
    noise: NoiseDiagnosis | None = None
    at_most: int | None = None

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
    def interval(self) -> tuple[int, int] | None:
        """Fewest and most components that can be defended: by the tests that count, and their most lenient level.

        Where no test of noise counts, all rules that count. It is no confidence interval: a component below the edge of
        detection is in no answer.
        """
        consensus = self.consensus
        if consensus is None:
            return None
        counted = {rule: k for rule, k, _ in self._answers() if k is not None and self.weights.get(rule, 1.0) > 0}
        tests = [k for rule, k in counted.items() if rule in DETECTING]
        every = [k for rule, k in counted.items() if rule not in SIZE_ONLY]
        given = [consensus, *(tests or every), *([] if self.at_most is None else [self.at_most])]
        return min(given), max(given)

    @property
    def reason(self) -> str:
        """Which rules say as many as ``consensus``, how far apart they are, which do not count; and what the noise is.

        Where the noise is correlated, the range stands first: no rule can say more.
        """
        said, interval = self._count_votes(), self.interval
        if self.noise is None or interval is None:
            return said
        low, high = interval
        span = f"between {low} and {high}" if high > low else f"{low}"
        if self.noise.runs is not None:
            return f"{self.noise.runs.reason} {self.noise.describe()} No other rule counts."
        if self.noise.correlated:
            more = f"{span}, and no rule can say more" if high > low else f"the rules that allow for it say {low}"
            return f"The noise, or what looks like it, is correlated: {more}. {said} {self.noise.describe()}"
        if high > low:
            said += f" The tests allow for {low} to {high}."
        return said if self.noise.white or not self.noise.judged else f"{said} {self.noise.describe()}"

    def _count_votes(self) -> str:
        votes, consensus = self.votes, self.consensus
        if consensus is None:
            return "No rule could be used: " + " ".join(self.reasons)
        if len(self.rules) == 1:
            return self.reasons[0]
        if self.agree:
            return "All rules agree."
        asked = [rule for rules in votes.values() for rule in rules]
        unfit = [rule for rule in asked if self.weights.get(rule, 1.0) == 0.0]
        broken = [rule for rule in unfit if WEIGHTS.get(rule, 1.0) > 0]
        counted = [k for k, rules in votes.items() if set(rules) - set(unfit)]
        backers = [rule for rule in votes[consensus] if rule not in unfit]
        of = f"{len(backers)} of {len(asked) - len(unfit)} rules"
        reason = f"{of} say{'s' * (len(backers) == 1)} so ({', '.join(backers)})"
        if counted[-1] > counted[0]:
            reason += f", the middle of answers from {counted[0]} to {counted[-1]}"
        return reason + (f"; {', '.join(broken)} not counted, as the assumption fails." if broken else ".")

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


@quiet_blas()
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
    (:func:`gramian.pca.rank.cross_validate_rank`) and ``mle`` (Minka's evidence). Where cells are missing ``cv``
    alone is asked, by cells held out.

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
    try:
        whole = fit_whole(pca, source, w)
    except SourceError as error:
        if not error.missing:
            raise
        return _advise_with_gaps(PCA(scale=scale, random_state=random_state), source, w, max_components)
    lam, n, p = whole.variances, whole.weight, len(whole.mean)

    noise = diagnose_noise(whole, source, w, random_state)
    parallel = partial(parallel_analysis, whole, source, sample_weight=w, random_state=random_state)
    deflated = partial(deflated_analysis, whole, source, sample_weight=w, random_state=random_state)
    rules: dict[str, Callable[[], RankChoice]] = {
        "parallel": lambda: parallel(null="permutation"),
        "parallel-gaussian": lambda: parallel(null="gaussian"),
        "sign-flip": lambda: noise.flips if noise.flips.rule == "sign-flip" else deflated(null="signs"),
        "tracy-widom": lambda: tracy_widom_rank(lam, n, p, alpha),
        "gavish-donoho": lambda: SPECTRUM_RULES["gavish-donoho"](lam, n, p),
        "edge-differences": lambda: SPECTRUM_RULES["edge-differences"](lam, n, p),
        "screenot": lambda: SPECTRUM_RULES["screenot"](lam, n, p),
        "broken-stick": lambda: SPECTRUM_RULES["broken-stick"](lam, n, p),
        "cv": lambda: cross_validate_rank(
            pca, source, max_components=max_components, sample_weight=w, random_state=random_state
        ),
        "bi-cv": lambda: bi_cross_validate(whole, source, sample_weight=w, random_state=random_state),
        "mle": lambda: minka_choice(lam, n, p),
        "fraction": lambda: variance_fraction(lam, fraction),
    }
    if (runs := noise.runs) is not None:
        rules["runs"] = lambda: runs
    if noise.ordered:  # worth asking only where there is an order to keep
        rules["neighbours"] = lambda: deflated(null="columns" if noise.columns is not None else "rows")
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
    at_most: int | None = noise.flips.at_most
    if unequal is not None:
        most = max(told, default=0)
        # components that are left in look the same; and where too little is left to see it, fewer tell
        hidden = noise.unequal is not None and max_rank(n, p) - most < JUDGED
        if hidden or unequal_noise(whole, most) is not None:
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
    if noise.heavy_tails:
        weights |= dict.fromkeys(NORMAL_NOISE, 0.0)
    if n < 5 * p:
        weights["mle"] = 0.0
        notes.append(f"mle assumes many more rows than columns; there are {n:g} and {p}.")
    if isinstance(cv := choices.get("cv"), CrossValidation) and cv.at_the_end:
        weights["cv"] = 0.0
    if noise.runs is not None:  # the only rule that knows the noise where components leave no direction to it
        weights, at_most = {name: float(name == "runs") for name in rules}, None
        notes.append("Rules that look for noise beyond the components do not count: groups are in all of the variance.")
    elif noise.correlated:
        edge = choices["edge-differences"]
        counted = dict.fromkeys(ALLOW_FOR_IT, 1.0) if len(edge.values) else {}
        # shifts keep any dependence in time; mean correlations by distance are a model, and flips the most there can be
        counted |= {"neighbours": 3.0 if noise.columns is None else 1.0} if noise.ordered else {"sign-flip": 1.0}
        if any(name in choices for name in counted):
            weights, at_most = {name: counted.get(name, 0.0) for name in rules}, None
        notes.append("Rules that take the noise of a cell for independent of the others do not count.")
    elif noise.n_components > noise.flips.n_components:  # those that stop before the noise is white see no noise
        short = [name for name, k in zip(rules, answers, strict=True) if k is not None and k < noise.n_components]
        weights |= dict.fromkeys(short, 0.0)
    return RankAdvice(tuple(rules), answers, tuple(reasons.values()), choices, tuple(notes), weights, noise, at_most)


def _advise_with_gaps(pca: PCA, source: Source, w: Any, max_components: int | None) -> RankAdvice:
    """Where cells are missing one question is left, and it is answered: how many predict cells held out best?"""
    choice = choose_by_held_out_cells(pca, source, w, max_components=max_components)
    reason = f"By cells held out: {choice.reason}"
    note = "Cells are missing. The other rules compare variances with those of complete tables, and were not asked."
    return RankAdvice(("cv",), (choice.n_components,), (reason,), {"cv": choice}, (note,))
