"""The benchmark over random shapes: what it draws, what it counts as accurate, what it prints."""

import json
from dataclasses import replace

import numpy as np
import pytest
import sklearn.decomposition
from bench.anywhere import CLASSES, Shape, Timing, build, draw_shape, is_accurate, make_data, measure_fit, peers

from bench import anywhere


@pytest.mark.parametrize("kind", CLASSES)
def test_shapes_stay_within_the_limit_and_repeat_with_the_seed(kind):
    """Two streams of one seed draw the same problems; no table is larger than asked."""
    rng, twin = np.random.default_rng([3, 1]), np.random.default_rng([3, 1])
    shapes = [draw_shape(kind, rng, 1e6) for _ in range(200)]
    assert shapes == [draw_shape(kind, twin, 1e6) for _ in range(200)]
    for shape in shapes:
        assert shape.rows * shape.cols * shape.density <= 1e6 * 1.01
        assert shape.rows >= 50
        assert 0 <= shape.components < max(shape.rows, 2)
    assert max(s.rows for s in shapes) > 20 * min(s.rows for s in shapes)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_solver_and_ours_are_accurate_by_the_measure(kind):
    """On an easy problem the residual of ours and of scikit-learn's exact solver is at rounding."""
    shape = Shape(kind, 5, 80, 6, 2 if kind in {"PCA", "KernelPCA", "GaussianMixture"} else 0, alpha=0.5)
    shape = replace(shape, option={"GaussianMixture": "full", "PCA": ""}.get(kind, "rbf"))
    X, y = make_data(shape)
    supervised = kind in {"Ridge", "RidgeCV", "KernelRidge"}
    for solver in ("ours", peers(shape)[0]):
        model = build(shape, solver)
        model = model.fit(X, y) if supervised else model.fit(X)
        residual, objective = measure_fit(shape, model, X, y)
        assert residual <= 1e-9
        assert np.isfinite(objective)


def test_a_missing_leading_component_is_not_accurate():
    """Exact eigenvectors of the wrong components have small residuals; the lost energy tells."""
    shape = Shape("PCA", 2, 200, 8, 2, spectrum="fast")
    X, y = make_data(shape)
    model = sklearn.decomposition.PCA(3).fit(X)
    best = float(np.sum(model.singular_values_[:2] ** 2))
    model.components_, model.singular_values_ = model.components_[1:], model.singular_values_[1:]
    residual, objective = measure_fit(shape, model, X, y)
    wrong = Timing("wrong", [0.1], residual, objective)
    right = Timing("right", [0.1], 1e-12, best)
    assert residual < 1e-9
    assert not is_accurate(wrong, right, "PCA", "float64", best)
    assert is_accurate(right, right, "PCA", "float64", best)


def test_an_inaccurate_fit_of_ours_opens_no_door():
    """A residual of ours above the base does not admit peers that are as bad."""
    ours, peer = Timing("ours", [0.1], 1e-2), Timing("peer", [0.1], 5e-3)
    assert not is_accurate(peer, ours, "Ridge", "float64", 0.0)
    assert not is_accurate(ours, ours, "Ridge", "float64", 0.0)


def test_a_run_prints_seed_ratio_and_new_over_old(tmp_path):
    """A whole run with one small shape, against this same tree: the figures are in the record."""
    said: list[str] = []
    out = tmp_path / "found"
    options = ["--only", "Ridge", "--shapes", "1", "--most", "2000", "--rounds", "1", "--seed", "7"]
    anywhere.main([*options, "--tree", str(anywhere.ROOT), "--out", str(out)], say=said.append)
    record = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    [outcome] = record["outcomes"]["Ridge"]
    times = [run["seconds"][0] for name, run in outcome["all"].items() if name in {outcome["rival"], "ours"}]
    assert record["seed"] == 7
    assert outcome["ratio"] == pytest.approx(outcome["theirs"] / outcome["ours"])
    assert set(times) == {outcome["ours"], outcome["theirs"]}
    assert outcome["after_before"] > 0
    assert "seed 7" in said[0]
    assert f"{outcome['ratio']:.2f}" in out.with_suffix(".md").read_text(encoding="utf-8")


def test_one_process_finds_what_a_process_for_each_solver_finds():
    """Times and accuracies of all solvers from one worker; a solver that fails is named and stops no other."""
    shape = Shape("PCA", 4, 60, 5, 2)
    found = anywhere.run_together(
        {"shape": vars(shape), "solvers": ["ours", "full", "no such"], "limit": 60.0, "processor": True}
    )
    assert set(found) == {"ours", "full", "no such"}
    assert "svd_solver" in found["no such"]["failure"]
    for name in ("ours", "full"):
        assert found[name]["residual"] < 1e-10
        assert 0.0 < found[name]["seconds"] < 60.0
    alike = dict.fromkeys(("ours", *peers(shape)), found["full"])
    outcome = anywhere.compare_solvers(shape, 60.0, 2, None, False, alike)
    assert outcome["ratio"] == 1.0
    assert outcome["accurate"]


def test_mixtures_count_with_the_starts_they_need_and_default_against_default():
    """Peers whose optimum is lower do not count, unless none reaches ours: then the most starts are a bound."""
    shape = Shape("GaussianMixture", 4, 60, 3, 2, option="diag")

    def found(**objectives: float) -> dict[str, dict[str, object]]:
        seconds = {"ours": 1.0, "default": 2.0, "n_init=3": 5.0, "n_init=10": 16.0, "n_init=30": 50.0}
        return {
            name: {"residual": 0.0, "objective": objectives[name], "method": "", "seconds": seconds[name]}
            if name in objectives
            else {"failure": "not needed"}
            for name in seconds
        }

    low = found(ours=-1.0, default=-2.0, **{"n_init=3": -1.0005})
    outcome = anywhere.compare_solvers(shape, 60.0, 2, None, False, low)
    assert (outcome["rival"], outcome["ratio"], outcome["default"]) == ("n_init=3", 5.0, 2.0)
    never = found(ours=-1.0, default=-2.0, **{"n_init=3": -2.0, "n_init=10": -1.5, "n_init=30": -1.5})
    assert anywhere.compare_solvers(shape, 60.0, 2, None, False, never)["ratio"] == 50.0
    worse = anywhere.compare_solvers(shape, 60.0, 2, None, False, found(ours=-1.0, default=-0.5))
    assert worse["default"] is None
    assert not worse["accurate"]


def test_more_starts_are_tried_only_where_fewer_end_lower():
    shape = Shape("GaussianMixture", 4, 80, 3, 2, option="diag")
    task = {"shape": vars(shape), "solvers": ["ours", *peers(shape)], "limit": 60.0, "processor": True, "spend": 0.01}
    found = anywhere.run_together(task)
    assert "objective" in found["default"]
    assert "not needed" in found["n_init=30"]["failure"]
