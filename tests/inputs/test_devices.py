"""Where an estimator's arrays live: where its input was after a fit elsewhere, in NumPy for methods that work there."""

import copy
import pickle
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone

import gramian
from gramian import (
    PCA,
    GaussianMixture,
    KernelLogisticRegression,
    KernelPCA,
    KernelRidge,
    KernelRidgeClassifier,
    Ridge,
    RidgeCV,
)
from gramian.analysis import latent
from gramian.compute.devices import device_of, like
from gramian.inputs.devices import convert_to_numpy, like_input, store_like
from gramian.results import Certificate
from gramian.sources import DenseSource, TensorSource
from gramian.sources.devices import source_to_device

torch = pytest.importorskip("torch", reason="torch is not installed (gramian[gpu])")

from pretend import GPU, GPUTensor, pretend_gpu

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Pair:
    """A result with two arrays, a word and a list."""

    left: Any
    right: Any
    word: str = "kept"
    parts: Any = ()


class Doubler(BaseEstimator):
    """Works in NumPy and knows nothing of torch but where its input was."""

    def __init__(self, factor: float = 2.0, device: Any = None) -> None:
        self.factor = factor
        self.device = device

    def fit(self, X: Any) -> "Doubler":
        """Remember the column sums."""
        values = X.numpy() if isinstance(X, torch.Tensor) else np.asarray(X)
        self.sums_ = values.sum(axis=0)
        self.counts_ = np.arange(3)
        self.names_ = np.array(["a", "b"], dtype=object)
        self.seen_ = np.array([True, False])
        self._private = np.ones(2)
        store_like(self, X)
        return self

    @like_input
    def twice(self, X: Any, more: float = 0.0) -> Any:
        """Twice the sums, as many times as there are rows."""
        assert isinstance(self.sums_, np.ndarray)
        return Pair(self.factor * self.sums_, np.full(len(X), more))


def test_device_of_everything(tmp_path: Any) -> None:
    X = np.ones((3, 2))
    np.save(tmp_path / "x.npy", X)
    for data in (
        X,
        [[1.0]],
        sp.csr_array(X),
        gramian.open(X),
        tmp_path / "x.npy",
        gramian.open(tmp_path / "x.npy"),
        None,
    ):
        assert device_of(data) is None
    tensor = torch.ones(3, 2)
    assert device_of(tensor) == device_of(gramian.open(tensor)) == CPU
    with pretend_gpu() as device:
        assert device_of(tensor.to(device)) == GPU


@pytest.mark.parametrize(("place", "kind"), [(None, np.ndarray), (CPU, torch.Tensor), (GPU, GPUTensor)])
def test_results_go_where_the_input_lives(place: Any, kind: Any) -> None:
    given = SimpleNamespace(device=place)
    with pretend_gpu() as device:
        for array in (np.arange(3.0), torch.arange(3.0), torch.arange(3.0).to(device)):
            got = like(given, array)
            assert type(got) is kind
            assert np.array_equal(np.asarray(got.cpu() if kind is GPUTensor else got), [0.0, 1.0, 2.0])
        both = like(given, (np.ones(2), [torch.ones(1), "word"], 3))
        assert type(both) is tuple
        assert (type(both[0]), type(both[1][0]), both[1][1], both[2]) == (kind, kind, "word", 3)
        pair = like(given, Pair(np.ones(2), torch.ones(1), parts=[1, "two"]))
        assert (type(pair.left), type(pair.right), pair.word, pair.parts) == (kind, kind, "kept", [1, "two"])
    for other in (None, "word", 1.5, np.array(["a"], dtype=object), Pair):
        assert like(given, other) is other


def test_columns_of_a_frame_are_no_devices() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"xp": [1.0, 2.0], "device": [3.0, 4.0], "values": [5.0, 6.0]})
    result = np.ones(2)
    assert device_of(frame) is None
    assert like(frame, result) is result


def test_what_is_there_already_is_not_touched() -> None:
    array, tensor, pair = np.ones(2), torch.ones(2), Pair(np.ones(1), 2, parts=["a"])
    assert like(array, array) is array
    assert like(tensor, tensor) is tensor
    assert like(array, pair) is pair


def test_fitted_arrays_become_tensors_and_numpy_sees_arrays() -> None:
    X = np.arange(6.0).reshape(3, 2)
    plain = Doubler().fit(X)
    assert convert_to_numpy(plain) is plain
    model = Doubler().fit(torch.from_numpy(X))
    assert isinstance(model.sums_, torch.Tensor)
    assert isinstance(model.counts_, torch.Tensor)
    assert model.names_.dtype == object  # words, masks and private arrays stay NumPy's
    assert isinstance(model.seen_, np.ndarray)
    assert isinstance(model._private, np.ndarray)
    twin = convert_to_numpy(model)
    assert isinstance(twin.sums_, np.ndarray)
    assert isinstance(model.sums_, torch.Tensor)
    assert convert_to_numpy(twin) is twin
    model.fit(X)
    assert convert_to_numpy(model) is model
    assert isinstance(model.sums_, np.ndarray)


def test_an_attribute_that_was_replaced_counts() -> None:
    model = Doubler().fit(torch.ones(3, 2))
    model.sums_ = torch.tensor([7.0, 7.0])
    np.testing.assert_array_equal(convert_to_numpy(model).sums_, [7.0, 7.0])
    del model.counts_
    assert not hasattr(convert_to_numpy(model), "counts_")


def test_methods_answer_where_their_input_is() -> None:
    model = Doubler(3.0).fit(torch.ones(4, 2))
    for X, kind in ((np.ones((5, 2)), np.ndarray), (torch.ones(5, 2), torch.Tensor)):
        got = model.twice(X, more=0.5)
        assert type(got.left) is type(got.right) is kind
        np.testing.assert_array_equal(np.asarray(got.left), [12.0, 12.0])
    assert Doubler.twice.__doc__ == "Twice the sums, as many times as there are rows."


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["copy", "pickle"])
def test_copies_of_a_model_fitted_to_tensors(copied: Any) -> None:
    model = copied(Doubler(device=CPU).fit(torch.ones(4, 2)))
    assert isinstance(model.sums_, torch.Tensor)
    np.testing.assert_array_equal(convert_to_numpy(model).sums_, [4.0, 4.0])
    assert model.get_params() == {"factor": 2.0, "device": CPU}
    X = np.random.default_rng(0).standard_normal((30, 4))
    pca = copied(PCA(2, device=CPU).fit(torch.from_numpy(X)))
    np.testing.assert_allclose(pca.transform(torch.from_numpy(X)).numpy(), PCA(2).fit_transform(X), atol=1e-10)


@pytest.mark.parametrize(
    "model", [PCA(2, device=CPU), Ridge(device="cpu"), RidgeCV(device="auto"), Doubler(device=CPU)]
)
def test_clones_know_their_device(model: Any) -> None:
    again = clone(model)
    assert again.device == model.device
    assert again.get_params() == model.get_params()


def test_device_is_the_last_parameter() -> None:
    for cls in (PCA, Ridge, RidgeCV):
        assert list(cls.__init__.__annotations__)[-2:] == ["device", "return"]
        assert cls().device is None


def test_sources_go_where_device_says() -> None:
    X = np.arange(6.0).reshape(3, 2)
    array, tensor, sparse = gramian.open(X), gramian.open(torch.from_numpy(X)), gramian.open(sp.csr_array(X))
    for source in (array, tensor, sparse):
        assert source_to_device(source, None) is source
    assert source_to_device(array, "cpu") is array
    assert isinstance(source_to_device(tensor, "cpu"), DenseSource)
    assert source_to_device(tensor, CPU) is tensor
    assert isinstance(source_to_device(array, CPU), TensorSource)
    with pretend_gpu() as device:
        for name in ("cuda", "auto", device):
            assert source_to_device(array, name).device == device
        assert source_to_device(sparse, "auto") is sparse
        with pytest.raises(ValueError, match=r"[Ss]parse"):
            source_to_device(sparse, "cuda")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_auto_without_a_gpu_is_the_cpu() -> None:
    source = gramian.open(np.ones((3, 2)))
    assert source_to_device(source, "auto") is source
    with pytest.raises(ValueError, match=r"cuda.*'auto'"):
        source_to_device(source, "cuda")


def test_store_like_moves_the_attributes_named() -> None:
    model = Doubler()
    model.a_, model.b_, model.c_ = np.ones(2), torch.ones(2), Pair(np.ones(1), 0)
    store_like(model, torch.ones(1), ("a_", "c_", "missing_"))
    assert isinstance(model.a_, torch.Tensor)
    assert isinstance(model.c_.left, np.ndarray)
    store_like(model, np.ones(1), ("a_", "b_"))
    assert isinstance(model.a_, np.ndarray)
    assert isinstance(model.b_, np.ndarray)


def test_what_is_on_a_gpu_is_converted_to_numpy() -> None:
    model = Doubler()
    with pretend_gpu() as device:
        model.a_ = there = torch.ones(2).to(device)
        assert type(convert_to_numpy(there)) is type(convert_to_numpy(model).a_) is np.ndarray
        assert isinstance(convert_to_numpy(gramian.open(torch.ones(2, 2).to(device))), DenseSource)
        assert model.a_ is there
    model.a_ = here = torch.ones(2)
    assert type(convert_to_numpy(here)) is type(convert_to_numpy(model).a_) is np.ndarray
    assert convert_to_numpy("word") == "word"


def test_models_in_numpy() -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    plain, fitted = KernelRidge().fit(X, X[:, 0]), KernelRidge().fit(torch.from_numpy(X), X[:, 0])
    assert convert_to_numpy(plain) is plain
    np.testing.assert_array_equal(convert_to_numpy(fitted).dual_coef_, plain.dual_coef_)
    assert isinstance(convert_to_numpy(PCA(2).fit(torch.from_numpy(X))).components_, np.ndarray)
    assert isinstance(fitted.dual_coef_, torch.Tensor)
    assert convert_to_numpy((1, 2)) == (1, 2)


def test_what_a_model_keeps_for_later_is_kept_for_tensors_too() -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    model = KernelRidge(kernel="rbf").fit(torch.from_numpy(X), X[:, 0])
    first = model.predict(torch.from_numpy(X), return_std=True)[1]
    (kept,) = model._posteriors.values()
    assert torch.equal(model.predict(torch.from_numpy(X), return_std=True)[1], first)
    assert model._posteriors[float(model._lam[0])] is kept


@pytest.mark.parametrize("place", [CPU, GPU], ids=["cpu", "gpu"])
def test_rows_that_are_drawn_and_filled_in_are_where_the_fit_and_the_rows_are(place: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)) * [3, 2, 1], rng.standard_normal(30)
    gaps = np.where(np.eye(30, 3) > 0, np.nan, X)
    pca, ridge = PCA(2).fit(X), Ridge().fit(X, y)
    with pretend_gpu():
        there = torch.from_numpy(X).to(place)
        mine, mine_too = PCA(2).fit(there), Ridge().fit(there, y)
        filled = mine.impute(torch.from_numpy(gaps).to(place))
        posterior = latent(mine, torch.from_numpy(gaps).to(place))
        found = (filled, mine.sample(3, 0), posterior.mean, mine_too.coef_covariance())
        assert all(isinstance(x, torch.Tensor) and x.device == place for x in found)
        found = [x.cpu().numpy() for x in found]
    known = (pca.impute(gaps), pca.sample(3, 0), latent(pca, gaps).mean, ridge.coef_covariance())
    for got, wanted in zip(found, known, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda device: PCA(2, device=device),
        lambda device: KernelPCA(2, kernel="rbf", fit_inverse_transform=True, device=device),
        lambda device: Ridge(device=device),
        lambda device: RidgeCV(device=device),
        lambda device: KernelRidge(kernel="rbf", device=device),
        lambda device: KernelRidge(kernel="rbf", solver="landmarks", n_landmarks=9, device=device),
        lambda device: KernelLogisticRegression([0.1, 1.0], gamma=[0.1, 1.0], device=device),
        lambda device: KernelRidgeClassifier(gamma=[0.1, 1.0], device=device),
        lambda device: GaussianMixture(2, random_state=0, device=device),
    ],
)
def test_a_gpu_leaves_no_tensor_behind_in_a_fit_to_numpy(make: Any) -> None:
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((40, 3)), np.arange(40) % 2
    here = make(None).fit(X, y)
    with pretend_gpu():
        there = make("cuda").fit(X, y)
    query = "transform" if hasattr(here, "transform") else "predict"
    moved = pickle.loads(pickle.dumps(there)).set_params(device=None)  # where no GPU is
    np.testing.assert_allclose(getattr(moved, query)(X), getattr(here, query)(X), atol=1e-6)


def test_certificates_are_numpy_everywhere() -> None:
    for X in (np.random.default_rng(0).standard_normal((20, 3)), torch.ones(20, 3).cumsum(0) ** torch.arange(1, 4)):
        found = PCA(2).fit(X).certificate_
        assert isinstance(found, Certificate)
        assert type(found.values) is type(found.residuals) is np.ndarray
