r"""Probabilistic PCA by maximum likelihood, from rows of which any part is observed.

The expectation-maximisation algorithm of Tipping and Bishop (1999), by one of two routes, with changes that leave its
fixed points alone: z may have a covariance of its own between steps (PX-EM, Liu, Rubin and Wu 1998), two steps are
extrapolated where that raises the likelihood (SQUAREM, Varadhan and Roland 2008), and it ends by the gradient, not by
the progress.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.likelihood import cells, latent
from gramian.likelihood.latent import Factor
from gramian.results import Optimum
from gramian.sources import Block, Source, memory_budget

__all__ = ["Factor", "fit_factor"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Rows = Callable[[Block], Matrix]

FLOOR = 1e-15  # of the total variance: noise below this is rounding, and the likelihood has no maximum
FEW = 32  # columns for which p×p matrices cost nothing
IDLE = 3  # rounds without gain before the rest is left to rounding
PATIENCE = 20  # passes before the other route is tried
NARROW = 1024  # columns up to which it is
MOST_MEMORY = 2**32  # bytes of sums that are not refused
NO_NOISE = "the components leave no noise: the likelihood grows without bound as the noise goes to 0"
ROUTES = ("auto", "cells", "latent")
ROUNDING = 1e-11  # of the parameters: steps shorter than this are not worth extrapolating
LONGEST = 256.0  # times a step that may be extrapolated


def fit_factor(
    source: Source,
    start: Factor,
    w: Vector | None = None,
    *,
    rows: Rows | None = None,
    tol: float = 1e-5,
    max_iterations: int = 1000,
    route: str = "auto",
) -> tuple[Factor, Optimum]:
    r"""Maximise the likelihood of the observed cells over μ, W and σ².

    .. math:: \ell = \sum_i w_i\ln N(x_{i,o_i};\ \mu_{o_i},\ W_{o_i}W_{o_i}^T+\sigma^2I)

    Every iteration reads the data once; ℓ never falls. Complete data have a closed form, to which this converges.

    Parameters
    ----------
    source : Source
        The rows; NaN cells are missing.
    start : Factor
        Parameters to start from.
    w : ndarray of shape (n,), optional
        Frequencies of the rows.
    rows : callable, optional
        What to make of a block: its values in float64, where they are not used as they are.
    tol : float, default=1e-5
        Gradient to reach, in standard errors of complete data; see :class:`gramian.results.Optimum`.
    max_iterations : int, default=1000
        Most passes over the data.
    route : {"auto", "cells", "latent"}, default="auto"
        What counts as unknown: the missing cells, with sums of p×p numbers, or z, with sums of p×k². Both climb the
        same likelihood; "auto" takes the cells of few columns, or where k is more than a quarter of them, or, up to
        1,024 columns, where z has not come to an end in 20 passes.

    Returns
    -------
    Factor, Optimum
        The parameters, and how well they maximise. The objective is −ℓ.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.likelihood import Factor, fit_factor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1)) @ np.array([[1.0, 2.0, -1.0]]) + 0.1 * rng.normal(size=(200, 3))
    >>> X[::7, 1] = np.nan
    >>> start = Factor(np.zeros(3), np.ones((3, 1)), 1.0)
    >>> found, certificate = fit_factor(gramian.open(X), start)
    >>> certificate.converged, bool(abs(found.noise - 0.01) < 0.002)
    (True, True)
    """
    every = np.ones(source.shape[0]) if w is None else w
    way: _Latent = (_Cells if _by_cells(start, route) else _Latent)(source, every, rows or _values)
    floor = FLOOR * (start.noise * len(start.mean) + float(np.sum(start.loading**2)))
    at = _look(way, Factor(start.mean, start.loading, max(start.noise, floor)), floor)
    trace, bound, idle = [-at.height], 1.0, 0
    while way.passes < max_iterations and at.slope > tol and idle < IDLE:
        new, between, bound = _two_steps(way, at, floor, bound)
        idle = 0 if _gained(at, new) or new.slope < at.slope else idle + 1  # rounding may hide what is left to gain
        if idle and new.height < at.height:
            bound = 1.0
            continue
        trace += [-min(between, new.height), -new.height]
        at = new
        if route == "auto" and type(way) is _Latent and way.passes > PATIENCE and len(at.theta.mean) <= NARROW:
            # a component too many, or a weak one: what counts as unknown is better changed
            way, bound = _Cells(source, every, rows or _values, way.passes), 1.0
            at = _look(way, at.theta, floor)
    return at.theta, _certificate(way, at, np.array(trace), tol, floor)


@dataclass(frozen=True, eq=False)
class _Place:
    """Parameters, what the data say of them, and the steepness of the likelihood there."""

    theta: Factor
    stats: Any
    slope: float

    @property
    def height(self) -> float:
        return float(self.stats.log_likelihood)


def _look(way: _Latent, theta: Factor, floor: float) -> _Place:
    stats = way.expect(theta)
    return _Place(theta, stats, way.gradient(theta, stats, floor))


def _two_steps(way: _Latent, at: _Place, floor: float, bound: float) -> tuple[_Place, float, float]:
    """Two steps, extrapolated unless that loses; the likelihood between them; and how far to extrapolate next."""
    one = way.maximise(at.theta, at.stats, floor)
    first = way.expect(one)
    between = float(first.log_likelihood)
    two = way.maximise(one, first, floor)
    jump, length = _extrapolate(at.theta, one, two, bound)
    new = _look(way, jump, floor)
    if not new.height >= between:  # too far: two plain steps do not lose
        return _look(way, two, floor), between, 1.0
    return new, between, min(4 * bound, LONGEST) if length >= bound else bound


def _gained(before: _Place, after: _Place) -> bool:
    """Whether the likelihood has risen by more than the rounding of its sum."""
    rounding = 4 * np.finfo(float).eps * (abs(before.height) + before.stats.cells)
    return bool(after.height > before.height + rounding)


class _Latent:
    """z is unknown: sums of p×k² numbers."""

    name = "EM over the latent variables, accelerated"

    def __init__(self, source: Source, w: Vector, rows: Rows, passes: int = 0) -> None:
        self.source, self.w, self.rows, self.passes = source, w, rows, passes

    def expect(self, factor: Factor) -> Any:
        """One pass of the expectation step."""
        self.passes += 1
        p, k = factor.loading.shape
        step = max(1, memory_budget() // 8 // (8 * (4 * p + 4 * (k + 1) ** 2)))
        return self.source.reduce(self._statistic(factor), lambda a, b: a.merge(b), step)

    def _statistic(self, factor: Factor) -> Callable[[Block], Any]:
        return lambda b: latent.expectation(self.rows(b), self.w[b.start : b.stop], factor)

    gradient: Callable[[Factor, Any, float], float] = staticmethod(latent.gradient)
    maximise: Callable[[Factor, Any, float], Factor] = staticmethod(latent.maximise)


class _Cells(_Latent):
    """The missing cells are unknown: sums of p×p numbers."""

    name = "EM over the missing cells, accelerated"

    def _statistic(self, factor: Factor) -> Callable[[Block], Any]:
        root = cells.root_of(factor)
        return lambda b: cells.complete_cells(self.rows(b), self.w[b.start : b.stop], factor, root)

    gradient = staticmethod(cells.gradient)
    maximise = staticmethod(cells.maximise)


def _by_cells(start: Factor, route: str) -> bool:
    """Many components leave little noise, which slows the other route; and p×p matrices are cheap for few columns."""
    if route not in ROUTES:
        raise ValueError(f"route must be one of {', '.join(ROUTES)}; got {route!r}.")
    p, k = start.loading.shape
    chosen = route == "cells" or (route == "auto" and (p <= FEW or 4 * k > p))
    needed = 8 * (5 * p**2 if chosen else 4 * p * (k + 1) ** 2)
    if needed > MOST_MEMORY:
        raise ValueError(
            f"Fitting {k} components to {p} columns with missing values takes {needed / 2**30:.1f} GiB for its sums. "
            "Ask for fewer components, or leave columns out."
        )
    return chosen


def _values(block: Block) -> Matrix:
    return np.asarray(block.values, dtype=np.float64)


def _extrapolate(theta: Factor, one: Factor, two: Factor, bound: float) -> tuple[Factor, float]:
    """θ + 2ar + a²v with r, v the first and second differences of the steps, and a = ‖r‖/‖v‖ between 1 and bound."""
    x, y, z = theta.vector, one.vector, two.vector
    r, v = y - x, (z - y) - (y - x)
    length, curve = float(np.linalg.norm(r)), float(np.linalg.norm(v))
    if length <= ROUNDING * float(np.linalg.norm(x)) or curve == 0.0:  # extrapolating rounding errors magnifies them
        return two, 1.0
    a = min(max(length / curve, 1.0), bound)
    return (two if a == 1.0 else theta.like(x + 2 * a * r + a**2 * v)), a


def _certificate(way: _Latent, at: _Place, trace: Vector, tol: float, floor: float) -> Optimum:
    notes: tuple[str, ...] = ()
    gradient, stats = at.slope, at.stats
    if at.theta.noise <= floor:
        notes = (NO_NOISE,)
        gradient = max(gradient, 2 * tol)  # the rest is as it should be, but there is no maximum to have reached
    reason = "values are missing" if stats.cells < stats.weight * len(at.theta.mean) else "asked for"
    method = f"maximum likelihood of the observed cells: {way.name}"
    return Optimum(method, reason, way.passes, len(trace) - 1, trace, gradient, tol, notes)
