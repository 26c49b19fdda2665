"""Noise and heavy tails: R's mclust, SciPy's densities, and a naive EM as oracles."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import gramian
from gramian import GaussianMixture, RobustMixture
from gramian.mixture import Mixture
from gramian.mixture.models import MODELS
from gramian.results import NumericalWarning
from oracles import Array

R = json.loads((Path(__file__).parents[1] / "data" / "mclust_noise.json").read_text())["noise"]
NOISY = np.reshape(R["rows"], (-1, 2))
RNG = np.random.default_rng(11)
IRIS: Any = load_iris().data


def draw_t(n: int, nu: float, mean: Any, scale: Any) -> Array:
    return np.asarray(multivariate_t(mean, scale, nu).rvs(n, random_state=RNG))


TWO = np.concatenate([draw_t(200, 3.0, [0, 0], [[1, 0.5], [0.5, 2]]), draw_t(150, 8.0, [9, 3], [[2, 0], [0, 1]])])


@pytest.mark.parametrize("model", ["EII", "VVI", "EEE", "VVV"])
def test_mclust_with_noise(model: str) -> None:
    ours = RobustMixture(2, covariance_type=model, degrees_of_freedom=None, noise=True, tol=1e-7).fit(NOISY)
    expected = R[model]
    assert ours.certificate_.converged
    assert ours.log_likelihood_ == pytest.approx(expected["log_likelihood"][0], rel=1e-10)
    assert -ours.bic(NOISY) == pytest.approx(expected["bic"][0], rel=1e-10)
    order = np.argsort(ours.means_[:, 0])
    theirs = np.reshape(expected["means"], (-1, 2))
    back = np.argsort(theirs[:, 0])
    assert_allclose(ours.means_[order], theirs[back], rtol=1e-5)
    assert_allclose([*ours.weights_[order], ours.noise_weight_], [*np.array(expected["weights"])[:2][back], expected["weights"][2]], rtol=1e-4)  # fmt: skip  # noqa: E501
    assert set(ours.predict(NOISY)) == {-1, 0, 1}
    assert ours.predict_proba(NOISY).shape == (len(NOISY), 3)


def naive_em(X: Array, pi: Array, mu: Array, S: Array, nu: Array, steps: int) -> tuple[Array, Array, Array, Array]:
    """EM as in Peel and McLachlan (2000), with ν by bisection."""
    d = X.shape[1]
    for _ in range(steps):
        f = np.stack([p * multivariate_t(m, s, v).pdf(X) for p, m, s, v in zip(pi, mu, S, nu, strict=True)], axis=1)
        r = f / f.sum(axis=1, keepdims=True)
        new = []
        for k in range(len(pi)):
            D = X - mu[k]
            u = (nu[k] + d) / (nu[k] + np.einsum("ni,ij,nj->n", D, np.linalg.inv(S[k]), D))
            m = (r[:, k] * u) @ X / (r[:, k] @ u)
            s = ((r[:, k] * u)[:, None] * (X - m)).T @ (X - m) / r[:, k].sum()
            mean = r[:, k] @ (np.log(u) - u) / r[:, k].sum() + digamma((nu[k] + d) / 2) - np.log((nu[k] + d) / 2)
            low, high = 0.5, 1000.0
            for _ in range(200):
                middle = np.sqrt(low * high)
                rising = 1 + np.log(middle / 2) - digamma(middle / 2) + mean > 0
                low, high = (middle, high) if rising else (low, middle)
            new.append((r[:, k].mean(), m, s, low))
        pi, mu, S, nu = (np.array(part) for part in zip(*new, strict=True))
    return pi, mu, S, nu


def test_student_components_are_where_a_naive_em_stays() -> None:
    model = RobustMixture(2, tol=1e-8).fit(TWO)
    parameters = (model.weights_, model.means_, model.scale_matrices_, model.degrees_of_freedom_)
    for mine, after in zip(parameters, naive_em(TWO, *parameters, 3), strict=True):
        assert_allclose(mine, after, rtol=1e-6)
    density = sum(p * multivariate_t(m, s, v).pdf(TWO) for p, m, s, v in zip(*parameters, strict=True))
    assert_allclose(model.score_samples(TWO), np.log(density), rtol=1e-11)
    assert model.log_likelihood_ == pytest.approx(float(np.log(density).sum()), rel=1e-12)
    assert np.all(np.diff(model.certificate_.objective) < 1e-9)
    assert model.n_parameters_ == 1 + 4 + 6 + 2
    assert_allclose(model.covariances_[0], model.scale_matrices_[0] * model.degrees_of_freedom_[0] / (model.degrees_of_freedom_[0] - 2))  # fmt: skip  # noqa: E501
    plain = RobustMixture(2, tol=1e-6, accelerate=False).fit(TWO)
    assert plain.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-10)
    assert plain.n_iter_ > model.n_iter_


def test_common_given_and_no_tails_nest() -> None:
    heights = [
        RobustMixture(2, degrees_of_freedom=nu).fit(TWO).log_likelihood_ for nu in ("own", "common", 1000.0, None)
    ]
    assert heights[0] >= heights[1] >= heights[2] >= heights[3] - 1.0
    normal = GaussianMixture(2, n_init=5).fit(TWO)
    assert heights[3] == pytest.approx(normal.log_likelihood_, rel=1e-6)
    own = RobustMixture(1, degrees_of_freedom=None).fit(IRIS)
    assert_allclose(own.score_samples(IRIS), multivariate_normal(own.means_[0], own.scale_matrices_[0]).logpdf(IRIS))


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_covariance_model_rises_to_a_maximum(model: str) -> None:
    if len(model) != 3:
        pytest.skip("for one column")
    fit = RobustMixture(2, covariance_type=model, degrees_of_freedom="common", noise=True).fit(TWO)
    assert fit.certificate_.converged
    assert np.all(np.diff(fit.certificate_.objective) < 1e-9)


def test_outliers_do_not_move_the_components() -> None:
    clean = np.concatenate([RNG.normal(-3, 1, (100, 3)), RNG.normal(3, 1, (100, 3))])
    dirty = np.concatenate([clean, RNG.uniform(-60, 60, (30, 3))])
    for model in (RobustMixture(2).fit(dirty), RobustMixture(2, degrees_of_freedom=None, noise=True).fit(dirty)):
        assert_allclose(np.sort(model.means_[:, 0]), [-3, 3], atol=0.4)
    found = model.predict(dirty)
    assert np.mean(found[200:] == -1) > 0.9
    assert np.mean(found[:200] == -1) < 0.03


def test_weights_units_samples_and_files(tmp_path: Path) -> None:
    counts = RNG.integers(1, 3, size=len(TWO))
    weighted = RobustMixture(2, tol=1e-7).fit(TWO, sample_weight=counts)
    repeated = RobustMixture(2, tol=1e-7).fit(np.repeat(TWO, counts, axis=0))
    assert weighted.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-9)
    plain = RobustMixture(2, noise=True, random_state=1, tol=1e-7).fit(TWO)
    other = RobustMixture(2, noise=True, random_state=1, tol=1e-7).fit(TWO * [1e-3, 1e3] + 5.0)
    assert_allclose(np.sort(other.weights_), np.sort(plain.weights_), atol=1e-4)
    far = RobustMixture(2, noise=True).fit(TWO + 1e8)  # converges: no digits are lost by where the data lie
    assert_allclose(np.sort(far.weights_), np.sort(plain.weights_), atol=1e-4)
    drawn, labels = plain.sample(4000)
    assert drawn.shape == (4000, 2)
    assert np.mean(labels == -1) == pytest.approx(plain.noise_weight_, abs=0.03)
    np.save(tmp_path / "x.npy", TWO)
    assert_allclose(RobustMixture(2).fit(tmp_path / "x.npy").means_, RobustMixture(2).fit(TWO).means_, rtol=1e-6)
    gramian.save(plain, tmp_path / "model")
    again = gramian.load(tmp_path / "model")
    assert_allclose(again.predict_proba(TWO), plain.predict_proba(TWO), rtol=0, atol=0)
    given = RobustMixture(2, noise=np.exp(plain.log_volume_), tol=1e-7).fit(TWO)
    assert given.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-9)
    with pytest.raises(ValueError, match="no place"):
        given.sample(50)


def test_refusals() -> None:
    for bad, message in (
        ({"degrees_of_freedom": -1.0}, "degrees_of_freedom"),
        ({"degrees_of_freedom": "many"}, "degrees_of_freedom"),
        ({"noise": -2.0}, "noise"),
        ({"init_params": "magic"}, "init_params"),
        ({"tol": -1.0}, "tol"),
        ({"degrees_of_freedom": [3.0, 4.0]}, "degrees_of_freedom must be 'own', 'common', a positive number or None"),
        ({"noise": None}, "noise must be True, False or a positive volume"),
        ({"noise": "yes"}, "noise must be"),
        ({"tol": "small"}, "tol must be a number"),
    ):
        with pytest.raises(ValueError, match=message):
            RobustMixture(**bad).fit(TWO)
    with pytest.raises(ValueError, match=r"NaN: the first is in row \d+, column ., .*fit GaussianMixture"):
        RobustMixture().fit(np.where(TWO > 9, np.nan, TWO))
    with pytest.raises(ValueError, match=r"no volume: column 2 is constant\."):
        RobustMixture(noise=True).fit(TWO * [1.0, 0.0])
    with pytest.raises(ValueError, match=r"no volume: columns 1, 2 are constant\."):
        RobustMixture(noise=True).fit(TWO * [0.0, 0.0])
    with pytest.warns(NumericalWarning, match="has collapsed") as said:
        RobustMixture(4).fit(TWO[:10])
    assert not any("prior" in str(one.message) for one in said)
    with pytest.warns(ConvergenceWarning, match="Raise max_iter=1"):
        RobustMixture(2, max_iter=1).fit(TWO)


def test_tensors_come_back_as_tensors() -> None:
    torch = pytest.importorskip("torch")
    model = RobustMixture(2).fit(torch.tensor(TWO))
    assert torch.is_tensor(model.means_)
    assert torch.is_tensor(model.predict_proba(torch.tensor(TWO)))


KINDS_OF_TAILS: list[dict[str, Any]] = [
    {},
    {"degrees_of_freedom": None},
    {"degrees_of_freedom": "common"},
    {"degrees_of_freedom": 4.0},
]


@pytest.mark.parametrize("how", KINDS_OF_TAILS, ids=str)
def test_more_components_than_few_rows_determine_are_named(how: dict[str, Any]) -> None:
    X = np.random.default_rng(0).normal(size=(30, 5))
    with pytest.warns(NumericalWarning, match="RobustMixture: component . has collapsed"):
        model = RobustMixture(5, **how).fit(X)
    assert any("has collapsed" in note for note in model.certificate_.notes)
    with pytest.warns(NumericalWarning):
        normal = GaussianMixture(5).fit(X)
    assert {item.kind for item in model.diagnose(X)} >= {item.kind for item in normal.diagnose(X)}


def test_copies_of_a_row_and_too_few_rows() -> None:
    rng = np.random.default_rng(1)
    copies = np.concatenate([rng.normal(size=(100, 2)), np.tile([[8.0, 8.0]], (9, 1))])
    model = RobustMixture(2, degrees_of_freedom=None)
    with pytest.warns(NumericalWarning, match="collapsed .it holds 9 rows"):
        model.fit(copies)
    assert [item.kind for item in model.diagnose(copies)] == ["collapsed"]
    far = np.concatenate([rng.normal(size=(200, 4)), rng.normal(size=(3, 4)) + 40.0])
    with pytest.warns(NumericalWarning, match="collapsed .it holds 3 rows"):
        RobustMixture(2, degrees_of_freedom=None).fit(far)


@pytest.mark.parametrize("how", KINDS_OF_TAILS[:3], ids=str)
def test_a_component_of_too_few_rows_is_noted(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.concatenate([np.linspace(-2, 2, 40), [4.0, 4.6]])[:, None]
    start = Mixture.of([0.95, 0.05], [[0.0], [4.3]], [1.4, 0.1], "V")
    monkeypatch.setattr("gramian.mixture.robust.find_starts", lambda *_: iter([start]))
    model = RobustMixture(2, **how).fit(X)
    assert [item.kind for item in model.diagnose(X)] == ["spurious"]
    assert any("takes 2: its likelihood is that of chance" in note for note in model.certificate_.notes)


def test_constant_and_dependent_columns_are_named() -> None:
    rng = np.random.default_rng(3)
    A = rng.normal(size=(100, 2))
    with pytest.warns(NumericalWarning, match="column 3 is constant"):
        model = RobustMixture(2).fit(np.column_stack([A, np.full(100, 0.1)]))
    assert np.isfinite(model.log_likelihood_)
    with pytest.warns(NumericalWarning, match="column . is a combination of others"):
        noisy = RobustMixture(1, degrees_of_freedom=None, noise=True).fit(np.column_stack([A, A.sum(axis=1)]))
    assert noisy.noise_weight_ < 0.1  # a box whose one side is rounding would have taken all rows
    points = (rng.normal(size=(60, 3)) > 0.3).astype(float)  # no column follows from others
    with pytest.warns(NumericalWarning, match="component . has collapsed"):
        RobustMixture(2).fit(points)


def test_rows_without_weight_are_not_there_and_noise_is_not_negative() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3)) + np.repeat([[0.0], [5.0]], 30, axis=0)
    how: dict[str, Any] = {"degrees_of_freedom": None, "noise": True, "tol": 1e-7}
    some = RobustMixture(1, **how).fit(X, sample_weight=np.repeat([1.0, 0.0], 30))
    assert some.log_volume_ == pytest.approx(RobustMixture(1, **how).fit(X[:30]).log_volume_, rel=1e-12)
    for seed in range(4):
        Z = np.random.default_rng(seed).normal(size=(60, 3)) + np.repeat([[0.0], [5.0]], 30, axis=0)
        for scale in (1.0, [1e80, 1.0, 1e-80]):
            model = RobustMixture(2, degrees_of_freedom=None, noise=True).fit(Z * scale)
            assert model.noise_weight_ >= 0.0
            assert model.weights_.sum() + model.noise_weight_ == pytest.approx(1.0, abs=1e-12)
    tiny = RobustMixture(2, degrees_of_freedom=4.0).fit(X, sample_weight=np.full(60, 1e-200))
    assert_allclose(np.sort(tiny.weights_), [0.5, 0.5], atol=0.02)  # standard errors are that large


def test_sound_components_are_kept_before_collapsed_ones() -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(200, 4)), rng.normal(size=(3, 4)) + 40.0])
    model = RobustMixture(2, degrees_of_freedom=4.0).fit(X)
    assert model.converged_
    assert model.diagnose(X) == ()


def test_components_that_are_one_are_not_determined(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(4).normal(size=(40, 1))
    one = Mixture.of([0.5, 0.5], [[0.3], [0.3]], [1.0, 1.0], "V")
    monkeypatch.setattr("gramian.mixture.robust.find_starts", lambda *_: iter([one]))
    with pytest.warns(NumericalWarning, match="components 1 and 2 are one and the same"):
        model = RobustMixture(2, degrees_of_freedom=4.0).fit(X)
    assert not model.converged_
    assert not model.certificate_.determined
