"""What was observed: every kind of data becomes the same records, or an error that names what is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramian.likelihood.sample import Binned, Censored, Intervals, Sample, as_sample

INF = float("inf")
# Freireich et al. (1963): weeks of remission under 6-mercaptopurine, + censored; as in Cox and Oakes (1984), table 1.1
WEEKS = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
EVENT = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]


def test_points_are_intervals_without_length():
    sample = as_sample([[1.0], [2.0]], sample_weight=[2, 0.5])
    np.testing.assert_array_equal(sample.lower, sample.upper)
    assert sample.plain
    assert sample.total == 2.5
    assert repr(sample) == "Sample: 2 points, 2.5 observations"


def test_binned_counts_are_weighted_intervals():
    sample = Binned([-INF, 0.0, 1.0, INF], [3, 0, 2])
    np.testing.assert_array_equal(sample.lower, [-INF, 0.0, 1.0])
    np.testing.assert_array_equal(sample.upper, [0.0, 1.0, INF])
    assert sample.total == 5.0
    assert len(sample.observed().lower) == 2
    assert not sample.plain


def test_censored_times_are_open_to_the_side_they_are_censored_on():
    right = Censored([1.0, 2.0], event=[True, False])
    np.testing.assert_array_equal(right.upper, [1.0, INF])
    left = Censored([1.0, 2.0], [1, 0], side="left")
    np.testing.assert_array_equal(left.lower, [1.0, -INF])
    np.testing.assert_array_equal(left.exact, [True, False])


def test_a_missing_limit_is_an_open_end():
    sample = Intervals([np.nan, 1.0, 3.0], [2.0, 1.0, np.nan])
    np.testing.assert_array_equal(sample.lower, [-INF, 1.0, 3.0])
    np.testing.assert_array_equal(sample.upper, [2.0, 1.0, INF])


def test_windows_are_gathered_with_the_weight_seen_through_them():
    sample = as_sample([2.0, 3.0, 4.0], sample_weight=[1, 2, 5], truncated=([0.0, 0.0, 1.0], INF))
    c, d, w = sample.windows()
    np.testing.assert_array_equal(c, [0.0, 1.0])
    np.testing.assert_array_equal(d, [INF, INF])
    np.testing.assert_array_equal(w, [3.0, 5.0])
    whole = as_sample([1.0]).windows()
    assert [len(part) for part in whole] == [0, 0, 0]
    open_for_one = as_sample([2.0, 3.0], truncated=([-INF, 0.0], INF)).windows()
    np.testing.assert_array_equal(open_for_one[2], [1.0])


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40))
def test_merging_equal_records_keeps_their_weight(values):
    merged = as_sample(values).merge_equal()
    found = dict(zip(merged.lower, merged.weight, strict=True))
    assert found == {float(v): values.count(v) for v in set(values)}
    mixed = Intervals(np.array(values) - np.arange(len(values)) % 2, values).merge_equal()
    assert mixed.total == len(values)
    assert len(np.unique(np.column_stack([mixed.lower, mixed.upper]), axis=0)) == len(mixed.lower)


def test_the_product_limit_is_the_published_one():
    times, S = Censored(WEEKS, EVENT).survival()
    np.testing.assert_array_equal(times, [6, 7, 10, 13, 16, 22, 23])
    # Cox and Oakes (1984), table 4.1
    np.testing.assert_allclose(S, [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], atol=5e-4)
    assert Intervals([1.0], [2.0]).survival() is None
    assert as_sample([1.0], truncated=(0, INF)).survival() is None


def test_without_censoring_the_product_limit_is_the_share_that_is_left():
    x = np.array([3.0, 1.0, 1.0, 2.0])
    times, S = as_sample(x).survival()
    np.testing.assert_allclose(S, [np.mean(x > t) for t in times], atol=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: as_sample([]), "empty"),
        (lambda: as_sample([1.0, np.nan]), "row 2 has nan"),
        (lambda: as_sample([[1.0, 2.0]]), "single numbers"),
        (lambda: as_sample([1.0], sample_weight=[-1]), "row 1 has -1"),
        (lambda: as_sample([1.0], sample_weight=[1, 2]), "sample_weight has shape"),
        (lambda: as_sample([1.0], sample_weight=[0]), "zero"),
        (lambda: as_sample(Binned([0, 1], [2]), sample_weight=[1]), "counts of binned data"),
        (lambda: as_sample([1.0], truncated=3), "two limits"),
        (lambda: as_sample([1.0], truncated=(3, 2)), "leave room"),
        (lambda: as_sample([1.0], truncated=([0, 0], 2)), "two numbers, or a number for each"),
        (lambda: as_sample([1.0, 5.0], truncated=(0, 2)), r"Record 1 \(5.0\) lies outside"),
        (lambda: as_sample(Intervals([1.0], [2.0]), truncated=(3, 9)), r"Record 0 \(1.0 to 2.0\)"),
        (lambda: Binned([0, 1, 2], [1]), "1 counts need 2 edges"),
        (lambda: Binned([0, 2, 1], [1, 1]), "edges 1 and 2 are 2.0 and 1.0"),
        (lambda: Binned([0, 1], [0]), "counts"),
        (lambda: Binned([0, 1], [-1]), "counts must be finite and not negative"),
        (lambda: Censored([1.0], [2]), "row 1 has"),
        (lambda: Censored([1.0], [1, 1]), "one entry for each of the 1 times"),
        (lambda: Censored([1.0], [1], side="up"), "'right' or 'left'; got 'up'"),
        (lambda: Censored([INF], [1]), "time must be finite"),
        (lambda: Intervals([2.0], [1.0]), "Row 1 is no interval"),
        (lambda: Intervals([1.0, 2.0], [1.0]), "two lists of one length"),
    ],
)
def test_wrong_data_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_units_change_ends_and_windows_together():
    sample = as_sample(Intervals([3.0, 5.0], [5.0, INF]), truncated=(1.0, INF)).rescale(1.0, 2.0)
    np.testing.assert_array_equal(sample.lower, [1.0, 2.0])
    np.testing.assert_array_equal(sample.upper, [2.0, INF])
    np.testing.assert_array_equal(sample.left, [0.0])
    assert isinstance(sample, Sample)


def test_hidden_and_complex_values_are_refused():
    with pytest.raises(ValueError, match="entry 2"):
        as_sample(np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]))
    with pytest.raises(ValueError, match="complex"):
        as_sample([1.0 + 1.0j, 2.0])
    assert as_sample(np.ma.masked_array([1.0, 2.0])).total == 2.0


def test_intervals_of_nothing_are_refused():
    with pytest.raises(ValueError, match="no observation"):
        Intervals([], [])
