"""Mini-batches: expectation-maximisation on statistics that forget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gramian.compute.threads import quiet_blas
from gramian.mixture.diagnose import Diagnosis, diagnose
from gramian.mixture.models import Maximiser, Prior, step_length
from gramian.mixture.parameters import Mixture
from gramian.mixture.rows import Rows
from gramian.mixture.statistics import Data, Statistics
from gramian.results import Optimum

__all__ = ["Fit", "Stepwise", "blend", "fit_mixture", "length", "possible"]

Array = npt.NDArray[np.float64]

LEAST = 0.01  # of the variances so far, that extrapolated ones must have


def blend(zero: Statistics, one: Statistics, two: Statistics, a: float) -> Statistics:
    """(1−a)²T₀ + 2a(1−a)T₁ + a²T₂, which is T₂ for a = 1."""
    total = two.scaled(a * a).merge(one.scaled(2 * a * (1 - a))).merge(zero.scaled((1 - a) ** 2))
    return replace(total, weight=two.weight)


def possible(stats: Statistics, near: Statistics) -> bool:
    """Whether extrapolated statistics are those of some data: positive counts and scatter."""
    if not (stats.counts >= 0.1 * near.counts).all() or not np.isfinite(stats.second).all():
        return False
    live = near.counts > 0
    shape = (-1, *(1,) * (stats.second.ndim - 1))
    T, S = (v.scatter(v.centres)[live] / v.counts[live].reshape(shape) for v in (stats, near))
    rest = T - LEAST * S
    if stats.diagonal:
        return bool((rest >= 0).all())
    size = np.sqrt(np.maximum(np.diagonal(S, axis1=1, axis2=2), np.finfo(float).tiny))
    return bool((np.linalg.eigvalsh(rest / (size[:, :, None] * size[:, None, :])) >= -1e-10).all())


def length(zero: Statistics, one: Statistics, two: Statistics, mixture: Mixture) -> float:
    """‖T₁−T₀‖/‖T₂−2T₁+T₀‖ in the units of the components: how far the steps can be extrapolated."""
    if zero.diagonal != two.diagonal:
        return 1.0
    a, b, c = (_whitened(stats, mixture) for stats in (zero, one, two))
    r, v = b - a, (c - b) - (b - a)
    size, curve = float(np.linalg.norm(r)), float(np.linalg.norm(v))
    if size <= 1e-11 * float(np.linalg.norm(b)) or curve == 0.0:  # extrapolating rounding errors magnifies them
        return 1.0
    return size / curve


def _whitened(stats: Statistics, mixture: Mixture) -> Array:
    """Statistics about a mixture's centres, in its components' standard deviations, as one vector."""
    moved, R = stats.moved(mixture.centres), mixture.roots
    unit = 1.0 / np.sqrt(np.maximum(moved.counts, np.finfo(float).tiny))
    if mixture.diagonal:
        first, second = moved.first * R, moved.second * R**2
    else:
        first = np.einsum("kij,kj->ki", R, moved.first)
        second = (R @ moved.second @ R.transpose(0, 2, 1)).reshape(len(R), -1)
    live = (moved.counts > 0)[:, None]
    rows = np.concatenate([moved.counts[:, None], first, second / np.sqrt(2.0)], axis=1)
    return np.asarray(np.where(live, unit[:, None] * rows, 0.0)).ravel()


Watch = Callable[[int, float], None]  # is told the number of steps and the log-likelihood

LONGEST = 1024.0  # times a step that may be extrapolated
ROUNDING = 1e-13  # of the objective, that a step may lose
IDLE = 3  # rounds without gain before the rest is left to rounding
STOPPED = "stopped where rounding hides what is left to gain"
PLAIN, ACCELERATED = "EM", "EM, accelerated (SQUAREM on the statistics)"


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A fitted mixture.

    Attributes
    ----------
    mixture : Mixture
        The parameters.
    statistics : Statistics
        Of the data, at these parameters.
    optimum : Optimum
        How they were found. The objective is −(log-likelihood + log prior).
    diagnoses : tuple of Diagnosis
        Components that are empty or have collapsed.
    """

    mixture: Mixture
    statistics: Statistics
    optimum: Optimum
    diagnoses: tuple[Diagnosis, ...]

    @property
    def log_likelihood(self) -> float:
        """Of the data, without the prior."""
        return self.statistics.log_likelihood

    def __repr__(self) -> str:
        return f"{self.mixture!r}\nlog-likelihood {self.log_likelihood:.6f}\n{self.optimum!r}"


def fit_mixture(
    data: Data,
    start: Mixture,
    maximiser: Maximiser | None = None,
    *,
    tol: float = 1e-5,
    max_iterations: int = 1000,
    accelerate: bool = True,
    watch: Watch | None = None,
) -> Fit:
    r"""Maximise the likelihood of a mixture.

    .. math:: \ell = \sum_iw_i\ln\sum_k\pi_kN(x_i;\mu_k,\Sigma_k)

    Parameters
    ----------
    data : Rows or Bins
        What was observed.
    start : Mixture
        Parameters to start from; one maximisation step brings them into the model.
    maximiser : Maximiser, optional
        Model, prior and constraints: those of the start, with the floor of :meth:`Prior.floor`, unless given.
    tol : float, default=1e-5
        Gradient to reach: length of the next step of EM, in standard errors of complete data.
    max_iterations : int, default=1000
        Most steps, each one pass over the data.
    accelerate : bool, default=True
        Whether to extrapolate. The path differs, the maximum does not.
    watch : callable, optional
        Called with the number of steps and the log-likelihood after each round.

    Returns
    -------
    Fit
        Mixture, statistics, certificate, diagnoses.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Mixture, Rows, fit_mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (300, 1)), rng.normal(6, 2, (700, 1))])
    >>> fit = fit_mixture(Rows.of(gramian.open(X)), Mixture.of([0.5, 0.5], [[-1.0], [8.0]], [1.0, 1.0], "V"))
    >>> fit.optimum.converged, fit.mixture.weights.round(1)
    (True, array([0.3, 0.7]))
    """
    step = Maximiser(start.model, Prior.floor(data)) if maximiser is None else maximiser
    step.constraints.check(start)
    with quiet_blas():
        first = start.measured_from(data.origin)
        near, before, notes = _approached(data, first, step, tol, max_iterations, accelerate, watch)
        climb = _Climb(data, step, before=before, notes=notes)
        at, trace, idle = _climbed(climb, near, tol, max_iterations - before, accelerate, watch)
    return _fit(at, climb, np.array(trace), tol, ACCELERATED if accelerate else PLAIN, idle >= IDLE)


def _approached(
    data: Data, start: Mixture, step: Maximiser, tol: float, most: int, accelerate: bool, watch: Watch | None
) -> tuple[Mixture, int, tuple[str, ...]]:
    """Steps in a quicker mode, if there is one: where they lead, how many they were, and what to say of the modes.

    A relative error e of the statistics moves a step by up to e√n(1 + d) standard errors: so far they are of use.
    """
    if not isinstance(data, Rows) or not data.precision:
        return start, 0, ()
    rough = data.rough(start) if most > 0 else None
    if rough is None or rough.tolerance is None:
        return start, 0, (data.precision,)
    climb = _Climb(rough, step, rough.tolerance)
    blur = rough.tolerance * float(np.sqrt(data.weight)) * (1 + len(data.origin))
    at, _, _ = _climbed(climb, start, max(tol, blur), most, accelerate, watch)
    steps = climb.passes - 1
    return (
        at.mixture,
        steps,
        (data.precision, f"before the objective's first value, {steps} steps with {rough.precision}"),
    )


def _climbed(
    climb: _Climb, start: Mixture, tol: float, most: int, accelerate: bool, watch: Watch | None
) -> tuple[_Place, list[float], int]:
    """Steps until the gradient is small, or nothing is gained, or there were enough: the end, heights, idle rounds."""
    at, trace = climb.first_step(start, tol if most > 0 else np.inf)
    bound, idle = 1.0, 0
    while climb.passes <= most and at.slope > tol and idle < IDLE:
        if accelerate and climb.passes + 2 <= most:
            new, heights, bound = climb.three_steps(at, bound)
        else:
            new, heights = climb.one_step(at)
        idle = 0 if climb.gained(at, new) or new.slope < at.slope else idle + 1
        trace, at = trace + heights, new
        if watch is not None:
            watch(climb.before + climb.passes - 1, at.stats.log_likelihood)
    return at, trace, idle


@dataclass(frozen=True, eq=False)
class _Place:
    """A mixture, what the data say of it, and where the next step leads."""

    mixture: Mixture
    stats: Statistics
    step: Maximiser

    @cached_property
    def height(self) -> float:
        return self.stats.log_likelihood + self.step.log_prior(self.mixture)

    @cached_property
    def next(self) -> Mixture:
        return self.step(self.stats, self.mixture)

    @cached_property
    def slope(self) -> float:
        same = self.next.model == self.mixture.model and self.next.diagonal == self.mixture.diagonal
        return step_length(self.mixture, self.next, self.stats.weight) if same else np.inf


class _Climb:
    """The passes over the data, counted; ``error`` is that of sums, relative, ``before`` the steps made already."""

    def __init__(
        self, data: Data, step: Maximiser, error: float = 0.0, before: int = 0, notes: tuple[str, ...] = ()
    ) -> None:
        self.data, self.step, self.error, self.before, self.notes, self.passes = data, step, error, before, notes, 0

    def holds(self, old: _Place, new: _Place) -> bool:
        """Whether a step goes up, or down by no more than the rounding of sums."""
        return bool(new.height >= old.height - max(ROUNDING, self.error) * (abs(old.height) + old.stats.weight))

    def gained(self, old: _Place, new: _Place) -> bool:
        """Whether the objective has risen by more than the rounding of its sum."""
        rounding = max(4 * np.finfo(float).eps, self.error) * (abs(old.height) + old.stats.weight)
        return bool(new.height > old.height + rounding)

    def look(self, mixture: Mixture) -> _Place:
        self.passes += 1
        return _Place(mixture, self.data.expect(mixture), self.step)

    def first_step(self, start: Mixture, tol: float) -> tuple[_Place, list[float]]:
        """The start and the step from it: a start that is not of the model counts from the first that is."""
        at = self.look(start)
        if at.slope <= tol:
            return at, [at.height]
        new = self.look(at.next)
        return new, [at.height, new.height] if self.holds(at, new) else [new.height]

    def one_step(self, at: _Place) -> tuple[_Place, list[float]]:
        """A step, and the height after it; none where rounding would make it a step down."""
        new = self.look(at.next)
        return (new, [new.height]) if self.holds(at, new) else (at, [])

    def three_steps(self, at: _Place, bound: float) -> tuple[_Place, list[float], float]:
        """Two steps and an extrapolation; the height after each that was taken; how far to extrapolate next."""
        one, first = self.one_step(at)
        two, second = self.one_step(one) if first else (one, first)
        if not second:
            return two, first, 1.0
        far = length(at.stats, one.stats, two.stats, two.mixture)
        a = min(max(far, 1.0), bound)
        jump = self._extrapolated(at, one, two, a)
        new = self.look(two.next if jump is None else jump)
        if not new.height >= two.height:
            return two, first + second, 1.0 if jump is None else max(1.0, a / 4)
        return new, [*first, *second, new.height], min(4 * bound, LONGEST) if far >= bound else bound

    def _extrapolated(self, at: _Place, one: _Place, two: _Place, a: float) -> Mixture | None:
        """M(T₀ + 2a(T₁−T₀) + a²(T₂−2T₁+T₀)), with a brought nearer to 1 until that is a mixture."""
        if two.stats.diagonal != at.stats.diagonal:
            return None
        for _ in range(4):
            if a <= 1.0:
                return None
            stats = blend(at.stats, one.stats, two.stats, a)
            if possible(stats, two.stats):
                return self.step(stats, two.mixture)
            a = 1.0 + (a - 1.0) / 4
        return None


def _fit(at: _Place, climb: _Climb, trace: Array, tol: float, method: str, idle: bool) -> Fit:
    found = diagnose(at.mixture, at.stats, climb.step.prior)
    notes = tuple(item.message for item in found) + ((STOPPED,) if idle and at.slope > tol else ())
    notes += climb.notes
    reason = f"maximum likelihood of a mixture of {at.mixture.n_components} normals, model {at.mixture.model}"
    if climb.step.prior is not None and climb.step.prior.counts > 0:
        reason = f"maximum a posteriori for {at.mixture.n_components} normals, model {at.mixture.model}"
    steps = climb.before + climb.passes - 1
    passes = steps + (2 if climb.before else 1)  # one more to look again, in float64, at where the first steps led
    optimum = Optimum(method, reason, passes, steps, -trace, at.slope, tolerance=tol, notes=notes)
    return Fit(at.mixture, at.stats, optimum, found)


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
    >>> from gramian.mixture import Maximiser, Mixture, Rows, Stepwise
    >>> rng, fit = np.random.default_rng(0), Stepwise(Maximiser("V"))
    >>> at = Mixture.of([0.5, 0.5], [[-1.0], [7.0]], [4.0, 4.0], "V")
    >>> for _ in range(50):
    ...     X = np.concatenate([rng.normal(0, 1, (30, 1)), rng.normal(6, 1, (70, 1))])
    ...     at = fit.step(at, Rows.of(gramian.open(X)).expect(at))
    >>> at.means.round(0)
    array([[0.],
           [6.]])
    """

    def __init__(self, maximiser: Maximiser, alpha: float = 0.6) -> None:
        if not 0.5 <= alpha <= 1.0:
            raise ValueError(f"alpha must be between 0.5 and 1; got {alpha}.")
        self.maximiser, self.alpha = maximiser, alpha
        self.batches, self.seen = 0, 0.0
        self.statistics: Statistics | None = None

    def step(self, mixture: Mixture, batch: Statistics) -> Mixture:
        """Take in the statistics of a batch at a mixture; return the next mixture.

        Sums are kept per unit of weight and handed to the maximiser at the weight of all batches so far.
        """
        fresh = batch.scaled(1.0 / batch.weight)
        rate = 1.0 if self.statistics is None else (self.batches + 2.0) ** -self.alpha
        kept = fresh if self.statistics is None else self.statistics.scaled(1 - rate).merge(fresh.scaled(rate))
        self.statistics = kept.moved(mixture.centres)
        self.batches, self.seen = self.batches + 1, self.seen + batch.weight
        return self.maximiser(self.statistics.scaled(self.seen), mixture)
