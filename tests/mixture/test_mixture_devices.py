"""Mixtures on a device: the fits of the CPU, tensors for tensors, and steps in a mode of less precision."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

import gramian
from gramian.compute.devices import gpu
from gramian.compute.mixture import Sums
from gramian.mixture.binned import Bins
from gramian.mixture.em import fit_mixture
from gramian.mixture.estimator import GaussianMixture
from gramian.mixture.parameters import Mixture
from gramian.mixture.rows import MixtureRows
from gramian.sources.devices import StreamedSource

HERE = torch.device("cpu")  # the loops of a GPU, without one
NAMES = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")
TOL = 1e-8  # gradient: the steps of few rows on the CPU are others, and meet those of a device at the optimum


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads of torch that wait for each other take longer than these small sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def clusters(n=400, d=3, k=3, seed=0):
    rng = np.random.default_rng(seed)
    means = 4.0 * rng.normal(size=(k, d))
    return means[rng.integers(0, k, n)] + rng.normal(size=(n, d)) * rng.uniform(0.5, 1.5, d)


def assert_same(one, two, rtol=1e-7):
    for name in NAMES:
        assert_allclose(np.asarray(getattr(one, name)), getattr(two, name), rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_device_gives_the_fit_of_the_cpu(kind, weighted):
    X = clusters()
    w = np.random.default_rng(1).integers(0, 3, len(X)) if weighted else None
    ours = GaussianMixture(3, covariance_type=kind, device=HERE, tol=TOL).fit(X, sample_weight=w)
    theirs = GaussianMixture(3, covariance_type=kind, tol=TOL).fit(X, sample_weight=w)
    assert_same(ours, theirs)
    assert all(type(getattr(ours, name)) is np.ndarray for name in NAMES)  # NumPy in, NumPy out
    assert ours.log_likelihood_ == pytest.approx(theirs.log_likelihood_, rel=1e-12)
    assert "torch on cpu in double mode" in ours.certificate_.precision
    assert theirs.certificate_.notes == ()


@pytest.mark.parametrize("device", [None, HERE])
def test_tensors_in_tensors_out(device):
    X = clusters()
    there = torch.tensor(X)
    model, plain = GaussianMixture(3, device=device, tol=TOL).fit(there), GaussianMixture(3, tol=TOL).fit(X)
    assert_same(model, plain)
    assert all(isinstance(getattr(model, name), torch.Tensor) for name in NAMES)
    for name in ("predict", "predict_proba", "score_samples"):
        answer, expected = getattr(model, name)(there), getattr(plain, name)(X)
        assert isinstance(answer, torch.Tensor)
        assert_allclose(answer.numpy(), expected, rtol=1e-6, atol=1e-9)
        assert isinstance(getattr(model, name)(X), np.ndarray)  # where this input lives
    for name in ("score", "aic", "bic", "icl"):
        assert getattr(model, name)(there) == pytest.approx(getattr(plain, name)(X), rel=1e-9)
    assert all(isinstance(part, torch.Tensor) for part in model.sample(5))
    assert_allclose(model.standard_errors(there).means, plain.standard_errors(X).means, rtol=1e-5)
    assert model.mixture_.n_components == 3
    assert isinstance(model.fit_predict(there), torch.Tensor)


def test_what_is_fitted_to_tensors_can_be_refitted_and_changed():
    X = clusters()
    model = GaussianMixture(3, device=HERE, warm_start=True).fit(torch.tensor(X))
    model.fit(torch.tensor(X))
    assert model.n_iter_ <= 1
    model.means_ = model.means_ + 1.0
    assert_allclose(model.mixture_.means, GaussianMixture(3).fit(X).means_ + 1.0, rtol=1e-5)
    model.fit(X)
    assert type(model.means_) is np.ndarray


def test_batches_on_a_device_are_those_of_the_cpu():
    X = clusters(600)
    one, two = GaussianMixture(3, device=HERE, tol=TOL), GaussianMixture(3, tol=TOL)
    for part in (slice(0, 300), slice(300, 450), slice(450, 600)):
        one.partial_fit(torch.tensor(X[part]))
        two.partial_fit(X[part])
    assert_same(one, two, rtol=1e-6)
    assert isinstance(one.means_, torch.Tensor)


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_any_numbers_are_summed_in_float64(dtype):
    X = np.round(clusters() * 8) / 8 if dtype != "int64" else np.round(clusters() * 8)
    model = GaussianMixture(2, device=HERE).fit(torch.tensor(X).to(getattr(torch, dtype)))
    assert_same(model, GaussianMixture(2).fit(X), rtol=1e-5)


def test_missing_cells_go_to_the_cpu_and_come_back():
    X = clusters(200, 2, 2)
    X[::7, 0] = np.nan
    model, plain = GaussianMixture(2, device=HERE).fit(torch.tensor(X)), GaussianMixture(2).fit(X)
    assert_same(model, plain)
    assert model.certificate_.notes == plain.certificate_.notes
    assert_allclose(model.score_samples(torch.tensor(X)).numpy(), plain.score_samples(X), rtol=1e-6)
    filled = model.impute(torch.tensor(X))
    assert isinstance(filled, torch.Tensor)
    assert_allclose(filled.numpy(), plain.impute(X), rtol=1e-6)


def test_refusals_name_what_is_wrong():
    X = clusters(50)
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="row 4"):
        GaussianMixture(2, device=HERE).fit(torch.tensor(X))
    with pytest.raises(ValueError, match="row 4, column 2"):
        GaussianMixture(1, device=HERE).fit(clusters(50)).predict(torch.tensor(X))
    with pytest.raises(ValueError, match="device 'nowhere'"):
        GaussianMixture(2, device="nowhere").fit(clusters(50))


def test_bins_and_rows_that_are_streamed():
    X = clusters(3000, 2, 2)
    edges = np.linspace(X[:, 0].min() - 0.1, X[:, 0].max() + 0.1, 60)
    counts = np.histogram(X[:, 0], edges)[0]
    assert_same(
        GaussianMixture(2, device=HERE).fit(Bins.of(edges, counts)), GaussianMixture(2).fit_binned(edges, counts)
    )
    streamed = MixtureRows.of(StreamedSource(gramian.open(X), HERE), None, HERE)
    at = Mixture.of([0.5, 0.5], X[:2], [np.eye(2)] * 2)
    assert streamed.device == HERE
    assert_allclose(streamed.expect(at).second, MixtureRows.of(gramian.open(X)).expect(at).second, rtol=1e-10)
    labels = np.arange(3000) % 2
    ours, theirs = (data.assign(labels, 2, "VVV").second for data in (streamed, MixtureRows.of(gramian.open(X))))
    assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.parametrize("tol", [1e-8, 1.0])
def test_steps_with_errors_come_first_and_the_rest_is_in_double(monkeypatch, tol):
    """Statistics of the accurate mode, here with all the error it may have, neither stall nor mislead a fit."""
    loops, rng, rough = gpu().mixture, np.random.default_rng(0), []
    whole = loops.expectation

    def expectation(X, w, parts, *, expanded, tolerance):
        found = whole(X, w, parts, expanded=expanded)
        if tolerance is None:
            return found
        rough.append(tolerance)
        factors = [1 + loops.ACCURATE * rng.uniform(-1, 1, np.shape(part)) for part in found]
        counts, first, second, height = (part * factor for part, factor in zip(found, factors, strict=True))
        return Sums(counts, first, 0.5 * (second + second.transpose(0, 2, 1)), float(height))

    monkeypatch.setattr(loops, "_may_be_single", lambda X, tolerance: tolerance is not None)
    monkeypatch.setattr(loops, "expectation", expectation)
    X = clusters(2000, 2, 3).astype(np.float32)
    start = Mixture.of(np.full(3, 1 / 3), X[:3], [4 * np.eye(2)] * 3)
    ours = fit_mixture(MixtureRows.of(gramian.open(X), None, HERE), start, tol=tol)
    theirs = fit_mixture(MixtureRows.of(gramian.open(X)), start, tol=tol)
    assert ours.optimum.converged
    assert len(rough) > 3
    assert ours.log_likelihood == pytest.approx(theirs.log_likelihood, abs=tol)
    assert (np.diff(ours.optimum.objective) <= 1e-12 * np.abs(ours.optimum.objective[1:])).all()
    assert len(ours.optimum.objective) < ours.optimum.iterations
    assert ours.optimum.passes == ours.optimum.iterations + 2
    (before,) = ours.optimum.notes
    assert "double mode" in ours.optimum.precision
    assert f"{len(rough) - 1} steps with statistics on torch on cpu in accurate mode" in before
    if tol == 1.0:
        return
    assert_allclose(ours.mixture.means, theirs.mixture.means, atol=1e-6)


def test_no_iterations_are_made_beyond_those_allowed(monkeypatch):
    monkeypatch.setattr(gpu().mixture, "_may_be_single", lambda X, tolerance: tolerance is not None)
    X = clusters(500, 2, 3, seed=4).astype(np.float32)
    with pytest.warns(Warning, match="max_iter=4"):
        model = GaussianMixture(3, max_iter=4, device=HERE, init_params="random").fit(X)
    assert model.n_iter_ == 4
    assert model.lower_bound_ == pytest.approx(model.score(X), rel=1e-9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("kind", ["full", "diag"])
def test_cuda_gives_the_fit_of_the_cpu(kind):
    X = clusters(20_000, 5).astype(np.float32)
    theirs = GaussianMixture(3, covariance_type=kind, tol=TOL).fit(X)
    model = GaussianMixture(3, covariance_type=kind, tol=TOL).fit(torch.tensor(X, device="cuda"))
    assert model.means_.is_cuda
    assert model.predict_proba(torch.tensor(X, device="cuda")).is_cuda
    assert_allclose(model.means_.cpu().numpy(), theirs.means_, rtol=1e-6)
    assert_same(GaussianMixture(3, covariance_type=kind, device="cuda", tol=TOL).fit(X), theirs, rtol=1e-6)
