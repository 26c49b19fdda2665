"""All rules on one set of data: what is said, and that it says why."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from gramian import PCA
from gramian import open as open_source
from gramian.pca.advice import RankAdvice, rank_advice
from gramian.pca.noise import unequal_noise
from gramian.pca.rank import fit_whole, minka_choice
from oracles import minka_dimension, naive_pca, separated

Array = NDArray[np.float64]
RULES = (
    *("parallel", "parallel-gaussian", "sign-flip", "tracy-widom", "gavish-donoho", "edge-differences", "screenot"),
    *("broken-stick", "cv", "bi-cv", "mle", "fraction"),
)


def spiked(n: int, p: int, strengths: list[float], seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.standard_normal((p, len(strengths))))[0]
    return np.asarray(rng.standard_normal((n, len(strengths))) * strengths @ V.T + rng.standard_normal((n, p)))


def test_every_rule_is_asked_and_clear_data_find_them_at_one() -> None:
    advice = rank_advice(spiked(200, 10, [6.0, 5.0]))
    assert advice.rules == RULES
    assert advice.agree
    assert advice.consensus == 2
    assert advice.votes == {2: RULES[:-1]}
    assert "2 components: all rules agree" in advice.explain
    assert "All rules agree" in repr(advice)


def test_disagreement_is_explained_by_what_the_rules_assume() -> None:
    advice = rank_advice(spiked(300, 40, [5.0, 3.0, 1.5]))
    by_rule = dict(zip(advice.rules, advice.n_components, strict=True))
    assert not advice.agree
    assert advice.consensus == by_rule["tracy-widom"] == 3
    assert by_rule["broken-stick"] == 2
    assert "broken-stick says 2, fewer" in advice.explain
    assert "weak components behind strong ones" in advice.explain
    assert "size, not significance" in advice.explain


def test_unequal_noise_is_seen_and_said() -> None:
    X = np.random.default_rng(0).standard_normal((300, 8)) * np.geomspace(1, 4, 8)
    advice = rank_advice(X)
    by_rule = dict(zip(advice.rules, advice.n_components, strict=True))
    assert by_rule["parallel"] == 0
    assert by_rule["tracy-widom"] is not None
    assert by_rule["tracy-widom"] > 0
    assert "unequal variance" in advice.explain
    assert "unequal variance" not in rank_advice(X, scale=True).explain


def test_bartletts_statistic_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    X = np.random.default_rng(1).standard_normal((50, 4)) * [1.0, 1.0, 1.3, 2.0]
    found = unequal_noise(fit_whole(PCA(), open_source(X), None), 0)
    assert found is not None
    assert found[1] == pytest.approx(stats.bartlett(*X.T).pvalue, rel=1e-8)
    assert found[0] == pytest.approx(X.var(axis=0).max() / X.var(axis=0).min())


def test_equal_noise_beside_components_is_not_called_unequal() -> None:
    notes = [unequal_noise(fit_whole(PCA(), open_source(spiked(100, 12, [8.0, 4.0], i)), None), 2) for i in range(40)]
    assert sum(note is not None for note in notes) <= 1


def test_a_rule_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", spiked(200, 10, [6.0, 5.0]))
    advice = rank_advice(tmp_path / "x.npy")
    assert advice.n_components[0] is None
    assert "memory" in advice.reasons[0]
    assert advice.consensus == 2
    assert "parallel could not be used" in advice.explain
    few = rank_advice(spiked(5, 4, [6.0]))
    assert few.n_components[few.rules.index("cv")] is None
    assert "n_folds=7" in few.reasons[few.rules.index("cv")]


def test_weights_are_repetition() -> None:
    X, w = spiked(80, 6, [6.0, 3.0]), np.random.default_rng(0).integers(1, 4, 80)
    ours, theirs = rank_advice(X, sample_weight=w), rank_advice(np.repeat(X, w, axis=0))
    for rule in ("parallel", "parallel-gaussian", "tracy-widom", "gavish-donoho", "broken-stick", "mle", "fraction"):
        assert ours.choices[rule].n_components == theirs.choices[rule].n_components
        assert ours.choices[rule].thresholds == pytest.approx(theirs.choices[rule].thresholds, nan_ok=True)


def test_minka_as_written_in_the_paper() -> None:
    lam = naive_pca(separated(200, 8)).variances
    assert minka_choice(lam, 200, 8).n_components == minka_dimension(lam, 200)
    assert minka_choice(np.zeros(3), 10, 3).n_components == 0


def test_equal_rows() -> None:
    with pytest.warns(UserWarning, match="equal"):
        advice = rank_advice(np.ones((20, 3)))
    assert advice.consensus == 0
    assert advice.agree


def test_it_reads_well() -> None:
    pandas = pytest.importorskip("pandas")
    seen: list[tuple[int, int]] = []
    advice = rank_advice(spiked(60, 6, [6.0]), progress=lambda done, total, _: seen.append((done, total)))
    frame = pandas.DataFrame(advice.table())
    assert frame.columns.tolist() == ["rule", "n_components", "reason"]
    assert frame.rule.tolist() == list(RULES)
    assert all(reason.endswith(".") for reason in advice.reasons)
    assert repr(advice).count("\n") >= len(RULES)
    assert seen == [(i, len(RULES)) for i in range(1, len(RULES) + 1)]


def test_settings_reach_their_rules() -> None:
    X = spiked(100, 8, [6.0, 3.0])
    few, many = (rank_advice(X, fraction=f).choices["fraction"].n_components for f in (0.3, 0.99))
    assert few < many
    lax, strict = (rank_advice(X, alpha=a).choices["tracy-widom"].thresholds[0] for a in (0.4, 1e-6))
    assert lax < strict
    with pytest.raises(ValueError, match="fraction"):
        rank_advice(X, fraction=90)


def test_without_any_answer() -> None:
    none = RankAdvice(("cv",), (None,), ("n_folds=7 is too many.",))
    assert none.consensus is None
    assert not none.agree
    assert "No rule could be used" in none.explain
    assert "no rule could be used" in repr(none)


def test_the_number_is_the_middle_of_what_the_rules_say_by_their_weights() -> None:
    rules = ("parallel", "tracy-widom", "gavish-donoho", "mle", "fraction")
    apart = RankAdvice(rules, (0, 12, 1, 5, 3), ("Because.",) * 5)
    assert apart.consensus == 5  # 0 and 1 count half, 5 and 12 once
    assert "parallel says 0, fewer" in apart.explain
    assert "tracy-widom says 12, more" in apart.explain
    assert "from 0 to 12" in repr(apart)
    assert RankAdvice(rules, (1, 3, 3, 1, 9), ("Because.",) * 5).consensus == 1
    unfit = RankAdvice(rules, (1, 3, 3, 3, 9), ("Because.",) * 5, weights=dict.fromkeys(rules[1:], 0.0))
    assert unfit.consensus == 1
    assert "not counted" in unfit.reason
    beside = RankAdvice(rules, (2, 3, 3, 3, 9), ("Because.",) * 5, weights={"mle": 0.0})
    assert beside.consensus == 3
    assert "2 of 3 rules" in beside.reason  # what is not counted is no reason either
    assert beside.reason.count("mle") == 1


@pytest.mark.parametrize(("n", "p", "spread"), [(400, 45, 8.0), (800, 60, 8.0), (2000, 100, 3.0)])
def test_many_groups_apart_are_not_taken_for_noise(n: int, p: int, spread: float) -> None:
    """40 groups span 39 directions of much the same variance, in which rules that look at shares see none, or a few."""
    rng = np.random.default_rng(2)
    X = spread * rng.normal(size=(40, p))[rng.integers(0, 40, n)] + rng.normal(size=(n, p))
    advice = rank_advice(X)
    assert advice.consensus is not None
    assert 35 <= advice.consensus <= 39


@pytest.mark.parametrize("transposed", [False, True])
def test_rows_in_the_order_of_their_groups_are_no_correlated_noise(transposed: bool) -> None:
    """What is left of rows of a group is correlated by −1/(rows of the group), since their mean was taken out."""
    rng = np.random.default_rng(0)
    X = np.repeat(6.0 * rng.normal(size=(40, 60)), 10, axis=0) + rng.normal(size=(400, 60))
    advice = rank_advice(X - X.mean(axis=0) if not transposed else (X - X.mean(axis=0)).T)
    assert advice.noise is not None
    assert not advice.noise.ordered
    assert advice.consensus == 39


def test_one_column_makes_sense_by_every_rule() -> None:
    advice = rank_advice(np.random.default_rng(0).gamma(2.0, size=(60, 1)))
    by_rule = dict(zip(advice.rules, advice.n_components, strict=True))
    assert by_rule["parallel"] == by_rule["parallel-gaussian"] == by_rule["tracy-widom"] == 0
    assert advice.consensus == 0
    assert "λ0" not in repr(advice)


def test_advice_never_names_what_was_done_already() -> None:
    X = np.random.default_rng(0).standard_normal((300, 8)) * np.geomspace(1, 4, 8)
    assert "scale=True may help" in rank_advice(X).explain
    # equal variances, of which one column is noise and the others are not
    Y = spiked(300, 8, [4.0, 4.0], 3)
    Y[:, 0] = 3 * np.random.default_rng(1).standard_normal(300)
    Y /= Y.std(axis=0, ddof=1)
    equal, scaled = rank_advice(Y), rank_advice(Y, scale=True)
    assert "Scaling would not make it equal" in equal.explain
    assert "Scaling has not made it equal" in scaled.explain
    for advice in (equal, scaled):
        assert "scale=True" not in advice.explain
        assert "gramian.analysis.tracy_widom_rank(..., effective=True)" in advice.explain


def test_cross_validation_tries_as_many_as_asked() -> None:
    X = spiked(200, 10, [6.0, 5.0, 4.0])
    advice = rank_advice(X, max_components=2)
    assert len(advice.choices["cv"].values) == 2
    assert "largest number tried" in advice.reasons[advice.rules.index("cv")]
    with pytest.raises(ValueError, match="max_components"):
        rank_advice(X, max_components=0)


def test_where_cells_are_missing_held_out_cells_answer() -> None:
    X = spiked(120, 6, [6.0, 5.0], seed=2)
    X[np.random.default_rng(1).random(X.shape) < 0.15] = np.nan
    advice = rank_advice(X, random_state=0)
    assert (advice.rules, advice.consensus, advice.interval) == (("cv",), 2, (2, 2))
    assert advice.reason.startswith("By cells held out: they predict")
    assert "Cells are missing" in advice.explain
    assert rank_advice(X, max_components=1).consensus == 1
