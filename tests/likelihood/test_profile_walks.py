"""How the ends of a profile are sought, on deviances that are known formulas instead of fits."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gramian.likelihood.families.base import POSITIVE, REAL, UNIT
from gramian.likelihood.fit import fit
from gramian.likelihood.intervals import ConfidenceIntervals, LineProfile, _is_flat, _ProfileDeviance

DROP = 4.0
INF = math.inf


class Walk:
    """A deviance that is a formula, in place of one that is fitted; where it was asked is kept in order."""

    def __init__(self, formula: Any, first: float) -> None:
        self.formula, self.asked = formula, []
        self.values, self.ends = {first: 0.0}, {}

    def __call__(self, phi: float) -> float:
        if phi not in self.values:
            self.asked.append(phi)
        return self.values.setdefault(phi, float(self.formula(phi)))

    find_crossing = _ProfileDeviance.find_crossing
    own: Any = ()


def seen_from(
    formula: Any,
    *,
    first: float = 0.0,
    spread: float = 1.0,
    link: Any = REAL,
    kind: str = "",
    wall: Any = None,
    value: float = -10.0,
) -> tuple[LineProfile, Walk]:
    """The profile of one parameter, by a formula of its coordinate φ."""
    walls = {} if wall is None else {0: wall}
    parameter = SimpleNamespace(link=link, kind=kind)
    family = SimpleNamespace(parameters=[parameter], walls=lambda sample: walls, to_units=lambda theta, unit: theta)
    problem: Any = SimpleNamespace(family=family, sample=None)
    profile = LineProfile(problem, np.array([first]), np.array([spread]), value, None, 1e-9)  # type: ignore[arg-type]
    walk = Walk(formula, first)
    profile.walks[0] = walk  # type: ignore[assignment]
    return profile, walk


@pytest.mark.parametrize("spread", [0.25, 1.0, 3.0])
def test_a_parabola_ends_where_its_formula_says_and_is_found_at_once(spread: float) -> None:
    profile, walk = seen_from(lambda phi: ((phi - 5.0) / spread) ** 2, first=5.0, spread=spread)
    assert profile.ends(0, DROP) == pytest.approx((5.0 - 2 * spread, 5.0 + 2 * spread), rel=1e-12)
    # √4 standard errors away is where a parabola ends: nothing further is looked at
    assert max(abs(phi - 5.0) for phi in walk.asked) == pytest.approx(2 * spread)
    asked = len(walk.asked)
    profile.ends(0, DROP)
    assert len(walk.asked) == asked  # found once


@pytest.mark.parametrize("spread", [0.0, -1.0, math.nan, INF])
def test_without_a_standard_error_the_walk_begins_with_a_half_and_doubles(spread: float) -> None:
    profile, walk = seen_from(lambda phi: (phi / 10.0) ** 2, spread=spread)
    assert profile.ends(0, DROP)[1] == pytest.approx(20.0)
    upward = [phi for phi in walk.asked if phi > 0]
    assert upward[:7] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]


def test_logarithms_walk_in_shorter_steps() -> None:
    profile, walk = seen_from(lambda phi: phi**2 / 4.0, spread=5.0, link=POSITIVE)
    low, high = profile.ends(0, DROP)
    assert (low, high) == pytest.approx((math.exp(-4.0), math.exp(4.0)))
    downward = [-phi for phi in walk.asked if phi < 0]
    assert downward[:5] == [1.0, 1.5, 2.25, 3.375, 5.0625]
    profile, walk = seen_from(lambda phi: phi**2, spread=0.5, link=UNIT)
    assert profile.ends(0, DROP) == pytest.approx((1 / (1 + math.exp(2.0)), 1 / (1 + math.exp(-2.0))))


def test_a_profile_that_rises_has_no_end_there_but_rounding_is_forgiven() -> None:
    profile, _ = seen_from(lambda phi: -1e-4 * (phi > 0) + phi**2 * (phi < 0))
    low, high = profile.ends(0, DROP)
    assert low == pytest.approx(-2.0)
    assert math.isnan(high)
    slip = 5e-6  # below 1e-6 of a value of 10, above 1e-6 of one of 1
    for value, rises in ((-10.0, False), (10.0, False), (-1.0, True), (0.0, True)):
        profile, _ = seen_from(lambda phi: phi**2 if abs(phi) > 3 else -slip * (phi > 0), value=value)
        assert math.isnan(profile.ends(0, DROP)[1]) == rises
    # and by so much at any step: here at the third, of a value of 1 by less than twice that
    profile, _ = seen_from(lambda phi: -1.5e-6 if phi > 3 else abs(phi), value=-1.0)
    assert math.isnan(profile.ends(0, DROP)[1])
    # of a value below 1 it is 1e-6 of 1
    profile, _ = seen_from(lambda phi: phi**2 if abs(phi) > 3 else -5e-7 * (phi > 0), value=-0.1)
    assert profile.ends(0, DROP)[1] == pytest.approx(3.0, abs=1e-6)


@pytest.mark.parametrize(
    ("link", "reach", "ends"), [(REAL, 1e12, (-INF, INF)), (POSITIVE, 30.0, (0.0, INF)), (UNIT, 30.0, (0.0, 1.0))]
)
def test_what_grows_slowly_is_followed_as_far_as_a_coordinate_means_something(
    link: Any, reach: float, ends: tuple[float, float]
) -> None:
    """Never flat, never there: the walk ends at its furthest point, and not after it."""
    scale = math.log1p(reach)
    profile, walk = seen_from(lambda phi: 3.0 * math.log1p(abs(phi)) / scale, link=link)
    assert profile.ends(0, DROP) == ends
    assert (min(walk.asked), max(walk.asked)) == pytest.approx((-reach, reach))
    crossed, _ = seen_from(lambda phi: 4.1 * math.log1p(abs(phi)) / scale, link=link)
    at = math.expm1(4.0 / 4.1 * scale)
    assert crossed._ends(0, DROP) == pytest.approx((-at, at), rel=1e-9)


def test_far_is_counted_from_where_the_maximum_lies() -> None:
    profile, walk = seen_from(lambda phi: 0.1 * math.log1p(abs(phi - 7.0)), first=7.0, link=POSITIVE)
    assert profile.ends(0, DROP) == (0.0, INF)
    assert (min(walk.asked), max(walk.asked)) == pytest.approx((7.0 - 37.0, 7.0 + 37.0))


def test_angles_end_on_the_other_side_of_the_circle() -> None:
    profile, walk = seen_from(lambda phi: 1 - math.cos(phi - 1.0), first=1.0, kind="angle")
    assert profile.ends(0, DROP) == pytest.approx((1.0 - math.pi, 1.0 + math.pi))
    assert max(abs(phi - 1.0) for phi in walk.asked) == pytest.approx(math.pi)


def test_a_wall_is_as_far_as_the_walk_goes_below_and_nothing_above() -> None:
    profile, walk = seen_from(lambda phi: 0.01 * phi**2, first=math.log(4.0), link=POSITIVE, wall=2.0)
    low, high = profile.ends(0, DROP)
    assert low == 2.0  # exactly
    assert min(walk.asked) == pytest.approx(math.log(2.0))
    assert math.log(high) == pytest.approx(20.0)
    # before the wall the end is where the deviance says
    profile, _ = seen_from(lambda phi: 100 * (phi - math.log(4.0)) ** 2, first=math.log(4.0), link=POSITIVE, wall=2.0)
    assert math.log(profile.ends(0, DROP)[0]) == pytest.approx(math.log(4.0) - 0.2)


def test_a_plateau_is_crossed_before_it_is_called_flat() -> None:
    """A maximum at infinity: inwards the deviance is 0 for long, and then it grows."""
    rising = lambda phi: 0.0 if phi < -3.0 else (phi + 3.0) ** 2  # noqa: E731
    profile, _ = seen_from(rising, first=-20.0, spread=INF, link=POSITIVE)
    assert math.log(profile.ends(0, DROP)[1]) == pytest.approx(-1.0)
    profile, _ = seen_from(lambda phi: rising(-phi), first=20.0, spread=INF, link=POSITIVE)
    assert math.log(profile.ends(0, DROP)[0]) == pytest.approx(1.0)
    # with a standard error, or nearer than what stands for infinity, five equal values are the end of it
    for first, spread in ((-20.0, 1.0), (-9.0, INF)):
        profile, walk = seen_from(rising, first=first, spread=spread, link=POSITIVE)
        assert (profile.ends(0, DROP)[1] == INF) == (max(walk.asked) < -3.0)
    profile, _ = seen_from(rising, first=-20.0, spread=1.0, link=POSITIVE)
    assert profile.ends(0, DROP)[1] == INF
    # once the plateau has been left, a limit is a limit
    limit = lambda phi: 2.0 / (1 + math.exp(-9 * (phi + 12.0)))  # noqa: E731
    profile, walk = seen_from(limit, first=-20.0, spread=INF, link=POSITIVE)
    assert profile.ends(0, DROP)[1] == INF
    assert max(walk.asked) < 20.0  # and not followed to the end of the range, 50 further


def limits(gains: list[float], below: float) -> list[float]:
    """Values with these gains, the last of them so far below 0."""
    return list(-below - np.append(np.cumsum(gains[::-1])[::-1], 0.0))


@pytest.mark.parametrize(
    ("gains", "below", "flat"),
    [
        (
            [0.5, 5e-4, 2.9e-4, 1.7e-4],
            1.0,
            True,
        ),  # each at most 0.6 of the one before, the last a 1000th of what is left
        ([0.5, 5e-4, 3e-4, 1.9e-4], 1.0, False),  # one is more
        ([0.5, 4e-4, 3e-4, 1.5e-4], 1.0, False),
        ([9.0, 5.0, 3e-3, 1.1e-3], 1.0, False),  # shrinking, but not small beside what is left
        ([9.0, 5.0, 3e-3, 0.9e-3], 1.0, True),
        ([9.0, 5.0, 3e-3, 1.1e-3], 2.0, True),
        ([9.0, 5.0, 3e-3, 0.4e-3], 0.5, True),
        ([9.0, 5.0, 3e-3, 0.6e-3], 0.5, False),
        ([9.0, 8e-10, 9e-10, 9e-10], 1.0, True),  # nothing but rounding
        ([9.0, 2e-9, 9e-10, 9e-10], 1.0, False),
        ([1e-4, 1e-5], 1.0, False),  # too few to tell
        ([1e-3, 1e-4, 1e-5], 1.0, False),
        ([1e-2, 1e-3, 1e-4, 1e-5], 1.0, True),
        ([1e-2, -1e-3, 1e-4, -1e-5], 1.0, True),  # up and down towards a limit
        ([1.0, 1.0, 5e-4, 2.5e-4, 1e-4], 1.0, True),  # only the last three count
        ([0.1, 1.0, 5e-4, 2.5e-4, 1e-4], 1.0, True),
    ],
)
def test_what_is_flat(gains: list[float], below: float, flat: bool) -> None:
    assert _is_flat(limits(gains, below)) is flat


def test_a_curve_has_nine_points_on_each_side_up_to_the_drop_and_none_below_0() -> None:
    profile, _ = seen_from(lambda phi: phi**2, spread=1.0)
    curve = profile.curve(0, DROP)
    np.testing.assert_allclose(curve[:, 0], np.linspace(-2, 2, 17), atol=1e-9)
    np.testing.assert_allclose(curve[:, 1], curve[:, 0] ** 2, atol=1e-9)
    # what rounds below 0 is 0; an open side goes as far as was looked, without what is beyond twice the drop
    profile, walk = seen_from(lambda phi: phi**2 if phi < 0 else -1e-9 * (phi < 3) + 1.0 * (phi >= 3), spread=1.0)
    curve = profile.curve(0, DROP)
    assert curve[:, 1].min() == 0.0
    assert curve[-1, 0] == max(walk.values)
    profile, _ = seen_from(
        lambda phi: phi**2 if phi < 0 else (9.0 if 0.2 < phi < 0.3 else 8.0 if 0.4 < phi < 0.6 else phi**2)
    )
    curve = profile.curve(0, DROP)
    assert curve[:, 1].max() == 8.0  # one of 9 would lie beyond twice the drop
    assert len(curve) == 16


def test_intervals_are_found_by_name_and_shown() -> None:
    found = ConfidenceIntervals(
        ("a", "b"), np.array([1.0, 2.0]), np.array([0.5, 1.5]), np.array([3.0, 4.0]), 0.9, "Wald"
    )
    assert found["b"] == (1.5, 4.0)
    assert found.table() == {
        "parameter": ["a", "b"], "estimate": found.estimate, "lower": found.lower, "upper": found.upper
    }  # fmt: skip
    with pytest.raises(KeyError, match="no interval for 'c'; there is for a, b"):
        found["c"]
    assert repr(found).splitlines()[0] == "90% confidence intervals, Wald:"


def test_the_others_climb_from_a_limit_and_from_the_familys_start() -> None:
    """A Student t of nearly normal rows: the profile of the location is that of the normal, df at its limit."""
    x = stats.norm.ppf((np.arange(25) + 0.5) / 25)
    est, normal = fit("student t", x), fit("normal", x)
    found, closed = est.profile(names="location")["location"], normal.profile(names="mean")["mean"]
    assert found == pytest.approx(closed, abs=2e-3)
