r"""Expectation-maximisation: the maximisation step, the ascent with extrapolated steps, and mini-batches.

An expectation step turns data and a mixture into statistics (``data.expect(mixture)``), a maximisation step statistics
into a mixture (:class:`Maximiser`). Three statistics on the way up are extrapolated where that gains (SQUAREM, Varadhan
and Roland 2008, on statistics rather than parameters, so that what comes out is always a mixture of the model).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import quiet_blas
from gramian.mixture.binned import Bins
from gramian.mixture.diagnose import Diagnosis, describe_coincident, diagnose, find_coincident
from gramian.mixture.models import POOLED, maximise_above, maximise_covariances, per_component, resolve_model
from gramian.mixture.parameters import Constraints, Mixture, Prior, SufficientStatistics
from gramian.mixture.rows import MixtureRows
from gramian.results import Optimum

Array = npt.NDArray[np.float64]
Watch = Callable[[int, float], None]  # is told the number of steps and the log-likelihood

EMPTY = 1e-12  # of the total weight: a component with less is left where it is
LONGEST = 1024.0  # times a step that may be extrapolated
LEAST = 0.01  # of the variances so far, that extrapolated ones must have
ROUNDING = 1e-13  # of the objective, that a step may lose
IDLE = 3  # rounds without gain before the rest is left to rounding
TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, eq=False)
class Maximiser:
    """The maximisation step of one covariance model.

    Attributes
    ----------
    model : str
        One of the 14 models, or another name of one.
    prior : Prior or None
        Added to the log-likelihood. With none, nothing keeps a component from collapsing.
    constraints : Constraints
        What is held or shared.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Maximiser, MixtureRows
    >>> data = MixtureRows.of(gramian.open(np.array([[0.0], [2.0], [7.0], [9.0]])))
    >>> Maximiser("V")(data.assign([0, 0, 1, 1], 2, "VII")).means
    array([[1.],
           [8.]])
    """

    model: str
    prior: Prior | None = None
    constraints: Constraints = field(default_factory=Constraints)

    def __call__(self, stats: SufficientStatistics, current: Mixture | None = None) -> Mixture:
        """Return the mixture that maximises the expected log-likelihood plus the prior's.

        Where means are held or shared, they are maximised at the current covariances, and covariances at the new
        means; the log-likelihood rises all the same.
        """
        model = resolve_model(self.model, stats.about.shape[1])
        prior, rules, N, origin = self.prior, self.constraints, stats.counts, stats.origin
        empty = EMPTY * stats.weight >= N
        if current is None and empty.any():
            raise ValueError(
                f"No row is assigned to component {np.flatnonzero(empty)[0] + 1}. Start from fewer components."
            )
        if prior is None:
            # eq: em-maximisation
            centres = rules.means(N, stats.centres, current)
            counts, scatter = N, stats.shift(centres).second
        else:
            centres = rules.means(N + prior.shrinkage, prior.shrink(N, stats.centres, origin), current)
            counts, scatter = prior.add(N, stats.shift(centres).second, centres, origin)
        if scatter.ndim == 3:  # of a component of one row it is all rounding, which has no symmetry
            scatter = 0.5 * (scatter + scatter.transpose(0, 2, 1))
        own = model not in POOLED and (prior is None or prior.counts == 0.0)
        if own and current is not None and empty.any():  # an empty one keeps its covariance, and moves no other
            tiny = EMPTY * stats.weight
            counts = np.where(empty, tiny, counts)
            scatter = np.where(per_component(empty, scatter), tiny * current.covariances, scatter)
        counts, scatter = rules.covariances(counts, scatter, current)
        known = None if current is None else current.covariances
        if prior is not None and prior.hard:
            spread = maximise_above(model, counts, scatter, prior.scale, known)
        else:
            spread = maximise_covariances(model, counts, scatter, known)
        return Mixture(rules.weights(N, current), centres, spread, model, origin)

    @property
    def is_free(self) -> bool:
        """Whether there is neither a prior nor a constraint: a floor is none, as long as nothing comes near it."""
        return self.constraints.is_empty and (self.prior is None or self.prior.hard)

    def log_prior(self, mixture: Mixture) -> float:
        """What is added to the log-likelihood."""
        return 0.0 if self.prior is None or self.prior.hard else self.prior.log_density(mixture)


@dataclass(frozen=True, eq=False, repr=False)
class MixtureFit:
    """A fitted mixture.

    Attributes
    ----------
    mixture : Mixture
        The parameters.
    statistics : SufficientStatistics
        Of the data, at these parameters.
    optimum : Optimum
        How they were found. The objective is −(log-likelihood + log prior).
    diagnoses : tuple of Diagnosis
        Components that are empty or have collapsed.
    """

    mixture: Mixture
    statistics: SufficientStatistics
    optimum: Optimum
    diagnoses: tuple[Diagnosis, ...]

    @property
    def log_likelihood(self) -> float:
        """Of the data, without the prior."""
        return self.statistics.log_likelihood

    def __repr__(self) -> str:
        return f"{self.mixture!r}\nlog-likelihood {self.log_likelihood:.6f}\n{self.optimum!r}"


def fit_mixture(
    data: MixtureRows | Bins,
    start: Mixture,
    maximiser: Maximiser | None = None,
    *,
    tol: float = 1e-5,
    max_iter: int = 1000,
    accelerate: bool = True,
    watch: Watch | None = None,
    give_up: bool = False,
) -> MixtureFit:
    r"""Maximise the likelihood of a mixture.

    .. math:: \ell = \sum_iw_i\ln\sum_k\pi_kN(x_i;\mu_k,\Sigma_k)

    Parameters
    ----------
    data : MixtureRows or Bins
        What was observed.
    start : Mixture
        Parameters to start from; one maximisation step brings them into the model.
    maximiser : Maximiser, optional
        Model, prior and constraints: those of the start, with the floor of :meth:`Prior.floor`, unless given.
    tol : float, default=1e-5
        Gradient to reach: length of the next step of EM, in standard errors of complete data.
    max_iter : int, default=1000
        Most steps, each one pass over the data.
    accelerate : bool, default=True
        Whether to extrapolate. The path differs, the maximum does not.
    watch : callable, optional
        Called with the number of steps and the log-likelihood after each round.
    give_up : bool, default=False
        Whether to stop where a component has collapsed: the likelihood has no maximum there.

    Returns
    -------
    MixtureFit
        Mixture, statistics, certificate, diagnoses.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Mixture, MixtureRows, fit_mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (300, 1)), rng.normal(6, 2, (700, 1))])
    >>> fit = fit_mixture(MixtureRows.of(gramian.open(X)), Mixture.of([0.5, 0.5], [[-1.0], [8.0]], [1.0, 1.0], "V"))
    >>> fit.optimum.converged, fit.mixture.weights.round(1)
    (True, array([0.3, 0.7]))
    """
    maximise = Maximiser(start.model, Prior.floor(data)) if maximiser is None else maximiser
    maximise.constraints.check(start)
    start, before, began = start.shift_origin(data.origin), 0, list[float]()
    modes: tuple[str, ...] = ()
    where: dict[str, Any] = {}
    with quiet_blas():
        if isinstance(data, MixtureRows) and data.device is not None:
            where = {"device": str(data.device), "precision": data.describe_precision()}
            rough = data.lower_precision(start) if max_iter > 0 else None
            if rough is not None and rough.tolerance is not None:  # the first steps in a quicker mode of the device
                # a relative error e of the statistics moves a step by up to e√n(1 + d) standard errors
                blur = rough.tolerance * float(np.sqrt(data.weight)) * (1 + len(data.origin))
                first = MixtureAscent(rough, maximise, rough.tolerance)
                start = first.run(start, max(tol, blur), max_iter, accelerate, watch)[0].mixture
                before = first.passes - 1
                said = rough.describe_precision()
                modes = (f"before the objective's first value, {before} steps with {said}",)
        elif (
            isinstance(data, MixtureRows)
            and data.is_kept(start)
            and accelerate
            and max_iter > 0
            and maximise.is_free
            and start.model == maximise.model
            and MixtureAscent(data, maximise).evaluate(start).slope > tol
        ):  # few rows; where their steps end, the careful ones look again and go on
            (climbed,) = data.climb([start], tol, max_iter - 1)
            start, began, before = climbed.mixture, climbed.heights[:-1], max(climbed.passes - 1, 0)
            if watch is not None:
                for i, height in enumerate(began):
                    watch(i, height)
        ascent = MixtureAscent(data, maximise, before=before, give_up=give_up)
        at, heights, idle = ascent.run(start, tol, max_iter - before, accelerate, watch)
    diagnoses = diagnose(at.mixture, at.stats, maximise.prior)
    notes = tuple(item.message for item in diagnoses)
    if idle and at.slope > tol:
        notes += ("stopped where rounding hides what is left to gain",)
    same = find_coincident(at.mixture)
    same = same if same is None or maximise.constraints.is_empty else None
    if same is not None:
        notes += (describe_coincident(same),)
    posterior = maximise.prior is not None and maximise.prior.counts > 0
    what = "maximum a posteriori for" if posterior else "maximum likelihood of a mixture of"
    steps, how = before + ascent.passes - 1, "SQUAREM and Anderson's mixing" if began else "SQUAREM"
    optimum = Optimum(
        f"EM, accelerated ({how} on the statistics)" if accelerate else "EM",
        f"{what} {at.mixture.n_components} normals, model {at.mixture.model}",
        steps + (2 if before else 1),  # one more to look again, in float64, at where the first steps led
        steps,
        -np.array(began + heights),
        at.slope,
        same is None,
        tolerance=tol,
        notes=modes + notes,
        **where,
    )
    return MixtureFit(at.mixture, at.stats, optimum, diagnoses)


@dataclass(frozen=True, eq=False)
class MixtureIterate:
    """A mixture, what the data say of it, and where the next step leads."""

    mixture: Mixture
    stats: SufficientStatistics
    height: float
    maximise: Maximiser

    @cached_property
    def next(self) -> Mixture:
        """The mixture that one step of EM leads to."""
        return self.maximise(self.stats, self.mixture)

    @cached_property
    def slope(self) -> float:
        """The length of that step, in standard errors of complete data."""
        same = self.next.model == self.mixture.model and self.next.diagonal == self.mixture.diagonal
        return step_length(self.mixture, self.next, self.stats.weight) if same else np.inf


@dataclass(eq=False)
class MixtureAscent:
    """Steps of EM, and the passes they took; ``error`` is that of sums, relative, ``before`` the steps made already."""

    data: MixtureRows | Bins
    maximise: Maximiser
    error: float = 0.0
    before: int = 0
    passes: int = 0
    give_up: bool = False

    def run(
        self, start: Mixture, tol: float, most: int, accelerate: bool, watch: Watch | None
    ) -> tuple[MixtureIterate, list[float], bool]:
        """Steps until the gradient is small, or nothing is gained, or there were enough: the end, heights, if idle."""
        at = self.evaluate(start)
        heights = [at.height]
        if most > 0 and at.slope > tol:
            first, at = at, self.evaluate(at.next)
            # a start that is not of the model counts from the first step that is
            heights = [first.height, at.height] if self.is_ascent(first, at) else [at.height]
        longest, idle = 1.0, 0
        while self.passes <= most and at.slope > tol and idle < IDLE:
            jumps = accelerate and self.passes + 2 <= most
            path = [at]
            while len(path) < (3 if jumps else 2):
                new = self.evaluate(path[-1].next)
                if not self.is_ascent(path[-1], new):
                    break  # rounding would make it a step down
                path.append(new)
            if len(path) == 3:
                longest = self.extrapolate(path, longest)
            elif jumps:
                longest = 1.0
            heights += [place.height for place in path[1:]]
            gained = path[-1].height > at.height + max(4 * np.finfo(float).eps, self.error) * (
                abs(at.height) + at.stats.weight
            )
            idle = 0 if gained or path[-1].slope < at.slope else idle + 1
            at = path[-1]
            if watch is not None:
                watch(self.before + self.passes - 1, at.stats.log_likelihood)
            if self.give_up and diagnose(at.mixture, at.stats, self.maximise.prior):
                break
        return at, heights, idle >= IDLE

    def evaluate(self, mixture: Mixture) -> MixtureIterate:
        """One pass over the data, at a mixture."""
        self.passes += 1
        stats = self.data.expect(mixture)
        return MixtureIterate(mixture, stats, stats.log_likelihood + self.maximise.log_prior(mixture), self.maximise)

    def is_ascent(self, old: MixtureIterate, new: MixtureIterate) -> bool:
        """Whether a step goes up, or down by no more than the rounding of sums."""
        return bool(new.height >= old.height - max(ROUNDING, self.error) * (abs(old.height) + old.stats.weight))

    def extrapolate(self, path: list[MixtureIterate], longest: float) -> float:
        """Add to two steps a third, extrapolated one, if it goes up; return how far to extrapolate next.

        That is M(T₀ + 2a(T₁−T₀) + a²(T₂−2T₁+T₀)), with a brought nearer to 1 until there is such a mixture.
        """
        two = path[2]
        T0, T1, T2 = (place.stats for place in path)
        far = _extrapolation(T0, T1, T2, two.mixture)
        a = step = min(max(far, 1.0), longest)
        jump = None
        for _ in range(4 if T2.diagonal == T0.diagonal else 0):
            if step <= 1.0:
                break
            T = T2.scale(step * step).merge(T1.scale(2 * step * (1 - step))).merge(T0.scale((1 - step) ** 2))
            if _is_possible(T, T2):
                jump = self.maximise(replace(T, weight=T2.weight), two.mixture)
                break
            step = 1.0 + (step - 1.0) / 4
        new = self.evaluate(two.next if jump is None else jump)
        if not new.height >= two.height:
            return 1.0 if jump is None else max(1.0, a / 4)
        path.append(new)
        return min(4 * longest, LONGEST) if far >= longest else longest


def _extrapolation(T0: SufficientStatistics, T1: SufficientStatistics, T2: SufficientStatistics, at: Mixture) -> float:
    """‖T₁−T₀‖/‖T₂−2T₁+T₀‖ in the units of the components: how far the steps can be extrapolated."""
    if T0.diagonal != T2.diagonal:
        return 1.0
    vectors, R = [], at.roots
    for stats in (T0, T1, T2):  # about the centres, in the components' standard deviations
        stats = stats.shift(at.centres)
        if at.diagonal:
            first, second = stats.first * R, stats.second * R**2
        else:
            first = (R @ stats.first[:, :, None])[:, :, 0]
            second = (R @ stats.second @ R.transpose(0, 2, 1)).reshape(len(R), -1)
        rows = np.concatenate([stats.counts[:, None], first, second * math.sqrt(0.5)], axis=1)
        rows *= np.where(stats.counts > 0, 1.0 / np.sqrt(np.maximum(stats.counts, TINY)), 0.0)[:, None]
        vectors.append(rows.ravel())
    a, b, c = vectors
    size, curve = float(np.linalg.norm(b - a)), float(np.linalg.norm((c - b) - (b - a)))
    if size <= 1e-11 * float(np.linalg.norm(b)) or curve == 0.0:  # extrapolating rounding errors magnifies them
        return 1.0
    return size / curve


def _is_possible(stats: SufficientStatistics, near: SufficientStatistics) -> bool:
    """Whether extrapolated statistics are those of some data: positive counts and scatter."""
    if not (stats.masses >= 0.1 * near.masses).all() or not np.isfinite(stats.second).all():
        return False
    live = near.counts > 0
    T, S = (v.shift(v.centres).second[live] / per_component(v.counts[live], v.second) for v in (stats, near))
    rest = T - LEAST * S
    if stats.diagonal:
        return bool((rest >= 0).all())
    spread = np.diagonal(S, axis1=1, axis2=2)
    size = np.sqrt(np.where(spread > 0, spread, 1.0))
    return bool((np.linalg.eigvalsh(rest / (size[:, :, None] * size[:, None, :])) >= -1e-10).all())


def step_length(at: Mixture, to: Mixture, weight: float) -> float:
    r"""Length of a step in standard errors of complete data: the gradient's norm, where the step is one of EM.

    .. math:: \sum_k n\pi_k\Bigl[(\Delta\pi_k/\pi_k)^2 + \|L_k^{-1}\Delta\mu_k\|^2
        + \tfrac12\|L_k^{-1}\Delta\Sigma_kL_k^{-T}\|_F^2\Bigr]

    is ΔᵀIΔ with I the information of rows whose components are known; EM's step is I⁻¹ times the score, to first order.
    """
    share = np.where(at.weights > 0, at.weights, 1.0)
    R, shift, change = at.roots, to.centres - at.centres, to.covariances - at.covariances
    if at.diagonal:
        lengths = np.sum((R * shift) ** 2, axis=1) + 0.5 * np.sum((R**2 * change) ** 2, axis=1)
    else:
        lengths = np.sum(np.einsum("kij,kj->ki", R, shift) ** 2, axis=1)
        lengths += 0.5 * np.sum((R @ change @ R.transpose(0, 2, 1)) ** 2, axis=(1, 2))
    square = weight * float(np.sum((to.weights - at.weights) ** 2 / share) + np.sum(at.weights * lengths))
    return float(np.sqrt(square))


class Stepwise:
    r"""Mini-batches: statistics that forget, and a maximisation step after each batch (Cappé and Moulines 2009).

    .. math:: T \leftarrow (1-\eta_t)T + \eta_tT_{batch},\qquad \eta_t=(t+2)^{-\alpha}

    Parameters
    ----------
    maximiser : Maximiser
        Model, prior and constraints.
    alpha : float, default=0.6
        Between 0.5, which forgets fast, and 1, which weighs all batches alike.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Maximiser, Mixture, MixtureRows, Stepwise
    >>> rng, fit = np.random.default_rng(0), Stepwise(Maximiser("V"))
    >>> at = Mixture.of([0.5, 0.5], [[-1.0], [7.0]], [4.0, 4.0], "V")
    >>> for _ in range(50):
    ...     X = np.concatenate([rng.normal(0, 1, (30, 1)), rng.normal(6, 1, (70, 1))])
    ...     at = fit.step(at, MixtureRows.of(gramian.open(X)).expect(at))
    >>> at.means.round(0)
    array([[0.],
           [6.]])
    """

    def __init__(self, maximiser: Maximiser, alpha: float = 0.6) -> None:
        if not 0.5 <= alpha <= 1.0:
            raise ValueError(f"alpha must be between 0.5 and 1; got {alpha}.")
        self.maximiser, self.alpha = maximiser, alpha
        self.seen, self.heights = 0.0, list[float]()  # weight of all batches, and mean log-likelihoods of each
        self.statistics: SufficientStatistics | None = None

    def step(self, mixture: Mixture, batch: SufficientStatistics) -> Mixture:
        """Take in the statistics of a batch at a mixture; return the next mixture.

        Sums are kept per unit of weight and handed to the maximiser at the weight of all batches so far.
        """
        sums = batch.scale(1.0 / batch.weight)
        if self.statistics is not None:
            rate = (len(self.heights) + 2.0) ** -self.alpha
            sums = self.statistics.scale(1 - rate).merge(sums.scale(rate))
        self.statistics = sums.shift(mixture.centres)
        self.seen += batch.weight
        self.heights.append(batch.log_likelihood / batch.weight)
        return self.maximiser(self.statistics.scale(self.seen), mixture)
