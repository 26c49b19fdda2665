"""What every rule for the number of components says of one set of data."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from gramian.inputs.devices import convert_to_numpy
from gramian.pca.estimator import PCA
from gramian.pca.rank import (
    SPECTRUM_RULES,
    RankAdvice,
    RankChoice,
    WholeFit,
    checked,
    cross_validate_rank,
    most,
    nothing,
    parallel_analysis_of,
    tracy_widom_rank,
    variance_fraction,
    whole_fit,
)
from gramian.pca.solve import minka
from gramian.sources import Source, open_source

__all__ = ["minka_choice", "rank_advice"]

Vector = npt.NDArray[np.float64]
Progress = Callable[[int, int], None]

DRAWS, QUANTILE = 100, 0.95  # of parallel analysis
UNEQUAL = 2.0  # ratio of the largest noise variance to the smallest that is worth a note
HELPS = 0.5  # share of that ratio to which scaling must bring it to be advised
SURE = 1e-3  # and the probability below which chance does not make it
ALONE = 0.05  # columns with 1 − h below this hold too little noise to judge by
ROUNDING = 1e-12  # a variance below this share of the largest is rounding: a column without noise
NEED_ROWS = ("parallel", "cv")  # rules that cannot be used on all data: files, fractional weights, very few rows
NOISE_RULES = ("parallel", "parallel-gaussian", "tracy-widom", "cv")


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
        Called with (rules asked, rules in all).

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
    if max_components is not None and (not isinstance(max_components, Integral) or max_components < 1):
        raise ValueError(f"max_components={max_components!r} must be a number of components, at least 1.")
    source, pca = convert_to_numpy(open_source(X)), PCA(scale=scale)
    sample_weight = convert_to_numpy(sample_weight)
    whole = whole_fit(pca, source, sample_weight)
    lam, n, p = whole.eigenvalues, whole.n, whole.p
    rules: dict[str, Callable[[], RankChoice]] = {
        "parallel": lambda: _parallel(whole, source, "permutation", sample_weight, random_state),
        "parallel-gaussian": lambda: _parallel(whole, source, "gaussian", sample_weight, random_state),
        "tracy-widom": lambda: tracy_widom_rank(lam, n, p, alpha),
        "gavish-donoho": lambda: SPECTRUM_RULES["gavish-donoho"](lam, n, p),
        "broken-stick": lambda: SPECTRUM_RULES["broken-stick"](lam, n, p),
        "cv": lambda: cross_validate_rank(
            pca, source, max_components=max_components, sample_weight=sample_weight, random_state=random_state
        ),
        "mle": lambda: minka_choice(lam, n, p),
        "fraction": lambda: variance_fraction(lam, fraction),
    }
    return _advice(_ask_all(rules, progress), whole)


def _parallel(whole: WholeFit, source: Source, null: str, sample_weight: Any, random_state: Any) -> RankChoice:
    return parallel_analysis_of(whole, source, null, DRAWS, QUANTILE, sample_weight, random_state, None)


def _ask_all(rules: dict[str, Callable[[], RankChoice]], progress: Progress | None) -> dict[str, RankChoice | str]:
    """Return the answers by rule, or why there is none where the data do not allow the rule."""
    answers: dict[str, RankChoice | str] = {}
    for done, (name, rule) in enumerate(rules.items(), start=1):
        answers[name] = _asked(rule) if name in NEED_ROWS else rule()
        if progress is not None:
            progress(done, len(rules))
    return answers


def minka_choice(eigenvalues: npt.ArrayLike, n: float, p: int) -> RankChoice:
    """Minka's estimate as a RankChoice: :func:`gramian.pca.solve.minka`, which never answers 0.

    Examples
    --------
    >>> from gramian.pca.advice import minka_choice
    >>> minka_choice([9.0, 7.0, 1.01, 1.0, 0.99], 1000, 5).n_components
    2
    """
    lam = checked(eigenvalues, n, p)
    if lam[0] == 0.0:
        return nothing("mle", lam)
    k = minka(lam, n, p)
    reason = (
        f"The evidence of probabilistic PCA is largest for {k} of 1 to {min(most(n, p), max(p - 1, 1))} components."
    )
    return RankChoice("mle", k, reason, lam, np.full(len(lam), np.nan))


def _asked(rule: Callable[[], RankChoice]) -> RankChoice | str:
    """Return the answer, or why there is none."""
    try:
        return rule()
    except ValueError as error:
        return str(error)


def _advice(answers: dict[str, RankChoice | str], whole: WholeFit) -> RankAdvice:
    choices = {name: answer for name, answer in answers.items() if isinstance(answer, RankChoice)}
    return RankAdvice(
        rules=tuple(answers),
        n_components=tuple(choices[name].n_components if name in choices else None for name in answers),
        reasons=tuple(choices[name].reason if name in choices else str(answer) for name, answer in answers.items()),
        choices=choices,
        notes=_notes(choices, whole),
    )


def _notes(choices: dict[str, RankChoice], whole: WholeFit) -> tuple[str, ...]:
    """What the data show of the assumptions: unequal noise, and too few rows for Minka."""
    told = [choices[name].n_components for name in NOISE_RULES if name in choices]
    unequal = unequal_noise(whole, min(told, default=0))
    notes = []
    if unequal is not None:
        ratio, p_value, scaled_ratio = unequal
        notes.append(
            f"Beyond the components the columns have noise of unequal variance (largest over smallest {ratio:.3g}, "
            f"p = {p_value:.1g}), where tracy-widom, gavish-donoho and mle assume one: they may keep too many. "
            + _remedy(whole, ratio, scaled_ratio)
        )
    if "mle" in choices and whole.n < 5 * whole.p:
        notes.append(f"mle assumes many more rows than columns; there are {whole.n:g} and {whole.p}.")
    return tuple(notes)


def _remedy(whole: WholeFit, ratio: float, scaled_ratio: float) -> str:
    """Advise scaling only where it would make the noise more nearly equal."""
    if whole.scale is not None:
        return "Scaling has not made it equal; parallel allows for it."
    if scaled_ratio < HELPS * ratio:
        return "scale=True may help; parallel allows for it."
    return "Scaling would not make it equal; parallel allows for it."


def unequal_noise(whole: WholeFit, k: int) -> tuple[float, float, float] | None:
    r"""Ratio of the largest to the smallest noise variance of the columns, and a p-value; None where they may be equal.

    With k components taken out, column j has noise of variance :math:`s_j^2=\sum_{l>k}\lambda_l v_{jl}^2/(1-h_j)`, and

    .. math:: \nu\Bigl[p\ln\overline{s^2}-\sum_j\ln s_j^2\Bigr]\Big/\Bigl(1+\frac{p+1}{3p\nu}\Bigr)\sim\chi^2_{p-1}

    with ν = n − 1 − k where the noise is equal (M. Bartlett, Proc. R. Soc. A 160, 268, 1937). The third number is the
    ratio that is left when columns are divided by their standard deviations.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA, open
    >>> from gramian.pca.rank import whole_fit
    >>> from gramian.pca.advice import unequal_noise
    >>> X = np.random.default_rng(0).standard_normal((100, 4))
    >>> unequal_noise(whole_fit(PCA(), open(X), None), 0) is None
    True
    >>> unequal_noise(whole_fit(PCA(), open(X * [1, 1, 1, 5]), None), 0)[0] > 10
    True
    """
    free = 1 - np.sum(whole.components[:k] ** 2, axis=0)
    left = whole.eigenvalues[k:] @ whole.components[k:] ** 2
    judged = (free > ALONE) & (left > ROUNDING * np.max(whole.variances, initial=0.0))
    s = left[judged] / free[judged]
    freedom, p = whole.n - 1 - k, len(s)
    if p < 2 or freedom < 1 or s.max() < UNEQUAL * s.min():
        return None
    statistic = freedom * (p * np.log(s.mean()) - np.log(s).sum()) / (1 + (p + 1) / (3 * p * freedom))
    chance = float(chdtrc(p - 1, statistic))
    relative = s / whole.variances[judged]
    return (float(s.max() / s.min()), chance, float(relative.max() / relative.min())) if chance < SURE else None
