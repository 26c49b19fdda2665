"""The benchmark of growth: sizes double, exponents follow from times, solvers over the limit are asked no more."""

import pytest
from bench.anywhere import Nursery, Shape
from bench.growth import FAMILIES, Family, measure_growth

SPEED = {"gflops_float64": 1.0, "bandwidth_gb_s": 8.0}


class FakeNursery(Nursery):
    """Solvers whose times grow as the rows cubed, and of which ours is twice as fast."""

    def __init__(self):
        self.asked = []

    def run(self, shape, limit, solvers=None, *, busy=False, spend=0.5):
        self.asked.append((shape.rows, list(solvers)))
        fine = {"residual": 0.0, "objective": 1.0, "method": "a factor"}
        time = (shape.rows / 100) ** 3
        return {name: {"seconds": time if name == "ours" else 2 * time, **fine} for name in solvers}


def test_exponents_ratios_and_who_is_left_out():
    family, nursery = Family("a kernel", Shape("KernelRidge", 1, 0, 10, option="rbf"), 100, 800), FakeNursery()
    said = []
    lines = measure_growth(family, nursery, 20.0, SPEED, said.append)
    assert [line["rows"] for line in lines] == [100, 200, 400, 800]
    assert [line["exponent"] for line in lines[1:]] == pytest.approx([3.0, 3.0, 3.0])
    assert [names for _, names in nursery.asked] == [["ours", "default"], ["ours", "default"], ["ours"], ["ours"]]
    assert [line["ratio"] for line in lines] == [2.0, 2.0, None, None]
    assert lines[0]["floor"] == pytest.approx((1e4 * 10 + 1e6 / 3) / 1e9)
    assert said[1].startswith("| 200 | 8 s | 3.00 | 16 s (default) | 2.00 |")


def test_a_fit_that_fails_ends_its_table():
    class Failing(FakeNursery):
        def run(self, shape, limit, solvers=None, *, busy=False, spend=0.5):
            return {name: {"failure": "killed"} for name in solvers}

    said = []
    family = Family("a kernel", Shape("KernelRidge", 1, 0, 10, option="rbf"), 100, 800)
    lines = measure_growth(family, Failing(), 20.0, SPEED, said.append)
    assert len(lines) == 1
    assert "killed" in said[0]


def test_floors_are_positive_and_rise():
    for family in FAMILIES:
        floors = [family.floor(rows, SPEED) for rows in family.sizes]
        assert floors == sorted(floors)
        assert floors[0] > 0


def test_a_nursery_forks_a_process_for_each_shape_and_outlives_it():
    nursery = Nursery(processor=True)
    try:
        found = nursery.run(Shape("Ridge", 3, 60, 4), 60.0, ["ours", "cholesky"])
        assert found["ours"]["residual"] < 1e-10
        assert "died" not in str(nursery.run(Shape("Ridge", 3, 60, 4), 60.0, ["ours"]))
        lost = nursery.run(Shape("Ridge", 3, 0, 4), 60.0, ["ours"])  # no rows: the process ends, the next does not
        assert "failure" in lost["ours"]
        assert nursery.run(Shape("Ridge", 3, 60, 4), 60.0, ["ours"])["ours"]["seconds"] > 0
    finally:
        nursery.close()
