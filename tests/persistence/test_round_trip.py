"""A loaded model is the saved one, attribute by attribute and prediction by prediction, to the last bit."""

import dataclasses
import functools
import hashlib
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import kernels as gp

from gramian import (
    PCA,
    BayesianGaussianMixture,
    FactorAnalysis,
    GaussianMixture,
    IncrementalPCA,
    KernelLogisticRegression,
    KernelPCA,
    KernelPCACV,
    KernelRidge,
    KernelRidgeClassifier,
    KernelRidgeCV,
    MaximumLikelihood,
    MixtureDiscriminant,
    Nystroem,
    PolynomialMap,
    RBFSampler,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    RobustMixture,
    TruncatedSVD,
    kernels,
)
from gramian.analysis import fit_incomplete
from gramian.genetics.pca import GenotypePCA
from gramian.likelihood import Binned, Censored, Intervals
from gramian.likelihood.families import Binomial, Categorical
from gramian.mixture.models import MODELS
from gramian.mixture.parameters import Constraints
from gramian.persistence import load, save
from gramian.persistence.registry import ESTIMATORS

RNG = np.random.default_rng(0)
X = RNG.normal([0.0, 1.0, 2.0, -1.0], 1.0, (40, 4))
POSITIVE = np.abs(X) + 0.1
y = X @ [1.0, 2.0, 3.0, 4.0] + RNG.standard_normal(40)
Y = np.column_stack([y, X[:, 0] - y])
MISSING = X.copy()
MISSING[3, 1] = MISSING[5, 0] = np.nan
FRAME = pd.DataFrame(X, columns=["a", "größe", "c d", "$"])
COUNTS = RNG.poisson(3.0, (40, 1)).astype(float)
LABELS = np.where(y > np.median(y), "yes", "no")
THREE = np.digitize(y, np.quantile(y, [0.3, 0.7]))
GENOTYPES = RNG.binomial(2, np.repeat(RNG.uniform(0.1, 0.9, (2, 60)), 12, axis=0)).astype(float)
GENOTYPES[2, 5] = np.nan

Fit = Callable[[], Any]

GP = 2.0 * gp.RBF([1.0, 2.0, 1.0, 3.0]) + gp.WhiteKernel(0.1) * gp.Matern(nu=2.5) ** 2 + gp.DotProduct()

# By what each is for; the rows that predictions are compared at come last, X[:15] unless given.
CASES: dict[str, tuple[Fit, Any]] = {
    **{
        f"PCA {solver}": (lambda s=solver: PCA(2, svd_solver=s, whiten=True, scale=True).fit(X), X[:15])
        for solver in ("auto", "full", "covariance_eigh", "krylov", "randomized", "power")
    },
    "IncrementalPCA": (lambda: IncrementalPCA(2, batch_size=9).fit(X), X[:15]),
    "TruncatedSVD": (lambda: TruncatedSVD(2).fit(X), X[:15]),
    "BayesianGaussianMixture": (lambda: BayesianGaussianMixture(2).fit(X), X[:15]),
    "RobustMixture": (lambda: RobustMixture(2, noise=True).fit(X), X[:15]),
    "MixtureDiscriminant": (lambda: MixtureDiscriminant((1, 2)).fit(X, np.arange(40) % 2), X[:15]),
    "FactorAnalysis": (lambda: FactorAnalysis(2, rotation="promax").fit(X), X[:15]),
    "PCA by a rule": (lambda: PCA("mle").fit(X), X[:15]),
    "PCA float32": (lambda: PCA(2).fit(X.astype(np.float32)), X[:15].astype(np.float32)),
    "PCA big endian": (lambda: PCA(2).fit(X.astype(">f8")), X[:15]),
    "PCA sparse": (lambda: PCA(2).fit(sparse.csr_array(POSITIVE)), X[:15]),
    "PCA weights": (lambda: PCA(2).fit(X, sample_weight=np.arange(40.0)), X[:15]),
    "PCA frame": (lambda: PCA(2).fit(FRAME), FRAME[:15]),
    "PCA missing": (lambda: PCA(2).fit(MISSING), MISSING[:15]),
    "PCA missing, all": (lambda: PCA(scale=True).fit(MISSING), MISSING[:15]),
    "PCA missing, iterative": (lambda: fit_incomplete(PCA(2), MISSING, method="regularised"), MISSING[:15]),
    "PCA partial": (lambda: PCA(2).partial_fit(X[:20]).partial_fit(X[20:]), X[:15]),
    "PCA array parameter": (lambda: PCA(np.int64(2), tol=np.float32(0.0), random_state=7).fit(X), X[:15]),
    **{
        f"KernelPCA {name}": (lambda k=name: KernelPCA(2, kernel=k, centre=False).fit(POSITIVE), POSITIVE[:15])
        for name in ("linear", "poly", "sigmoid", "cosine", "laplacian", "chi2", "additive_chi2")
    },
    **{
        f"KernelPCA {solver}": (
            lambda s=solver: KernelPCA(2, kernel="rbf", eigen_solver=s, n_landmarks=20 if s == "nystrom" else None).fit(
                X
            ),
            X[:15],
        )
        for solver in ("dense", "krylov", "nystrom")
    },
    **{
        f"KernelPCA inverse {way}": (
            lambda i=way: KernelPCA(2, kernel="rbf", gamma=0.1, inverse=i, fit_inverse_transform=True).fit(X),
            X[:5],
        )
        for way in ("ridge", "mds", "regularised")
    },
    "KernelPCA weights": (lambda: KernelPCA(2, kernel="rbf").fit(X, sample_weight=np.arange(40.0)), X[:15]),
    "KernelPCA of batches": (lambda: KernelPCA(2, kernel="rbf").partial_fit(X).partial_fit(X + 1.0), X[:15]),
    "KernelPCACV": (lambda: KernelPCACV([1, 2]).fit(X), X[:15]),
    "KernelPCA sparse": (
        lambda: KernelPCA(2, kernel="rbf").fit(sparse.csr_matrix(POSITIVE * (POSITIVE > 1))),
        POSITIVE[:15],
    ),
    "KernelPCA precomputed": (lambda: KernelPCA(2, kernel="precomputed").fit(X @ X.T), X[:15] @ X.T),
    "KernelPCA of a Gaussian process": (lambda: KernelPCA(2, kernel=GP).fit(X), X[:15]),
    "Nystroem": (lambda: Nystroem("rbf", n_components=10, random_state=0).fit(X), X[:15]),
    "Nystroem landmarks": (lambda: Nystroem(kernels.Matern(), n_components=10, landmarks="rpcholesky").fit(X), X[:15]),
    "RBFSampler": (lambda: RBFSampler(n_components=20, random_state=0).fit(X), X[:15]),
    "PolynomialMap": (lambda: PolynomialMap().fit(X), X[:15]),
    **{
        f"Ridge {solver}": (lambda s=solver: Ridge([1.0, 2.0], solver=s).fit(X, Y), X[:15])
        for solver in ("auto", "svd", "cholesky", "dual", "cg")
    },
    "Ridge one target": (lambda: Ridge(0.5).fit(FRAME, y), FRAME[:15]),
    "Ridge least squares": (lambda: Ridge(0.0).fit(X, y), X[:15]),
    "Ridge sparse": (lambda: Ridge().fit(sparse.csr_array(POSITIVE), y), sparse.csr_array(POSITIVE[:15])),
    "RidgeCV": (lambda: RidgeCV("auto", store_cv_results=True, alpha_per_target=True).fit(X, Y), X[:15]),
    "RidgeClassifier": (lambda: RidgeClassifier(class_weight="balanced").fit(X, LABELS), X[:15]),
    "RidgeClassifierCV": (lambda: RidgeClassifierCV(store_cv_results=True).fit(X, THREE), X[:15]),
    "RidgeCV folds": (lambda: RidgeCV(cv=3, scoring="r2").fit(X, y), X[:15]),
    **{
        f"KernelRidge {solver}": (
            lambda s=solver: KernelRidge(
                0.5, kernel="rbf", solver=s, n_landmarks=15 if s == "landmarks" else None, fit_intercept=True
            ).fit(X, Y),
            X[:15],
        )
        for solver in ("eigh", "cholesky", "cg", "landmarks")
    },
    "KernelRidge one target": (lambda: KernelRidge(0.5, kernel="rbf", gamma="median").fit(X, y), X[:15]),
    "KernelRidge sparse": (
        lambda: KernelRidge(0.5, kernel="poly").fit(sparse.csc_array(POSITIVE), y),
        sparse.csr_array(POSITIVE[:15]),
    ),
    "KernelRidgeCV": (lambda: KernelRidgeCV(kernel="rbf").fit(X, y), X[:15]),
    "KernelRidgeCV kernels": (
        lambda: KernelRidgeCV(kernel=[kernels.Gaussian(1.0), kernels.Matern()]).fit(X, Y),
        X[:15],
    ),
    "KernelRidgeClassifier": (lambda: KernelRidgeClassifier().fit(X, LABELS), X[:15]),
    "KernelRidgeClassifier objects": (
        lambda: KernelRidgeClassifier(class_weight={"yes": 2.0, "no": 1.0}).fit(X, LABELS.astype(object)),
        X[:15],
    ),
    "KernelLogisticRegression": (lambda: KernelLogisticRegression(1.0).fit(X, LABELS), X[:15]),
    "KernelLogisticRegression three": (lambda: KernelLogisticRegression([0.1, 1.0]).fit(X, THREE), X[:15]),
    "KernelRidgeClassifier three": (lambda: KernelRidgeClassifier(class_weight="balanced").fit(X, THREE), X[:15]),
    **{
        f"GaussianMixture {model}": (lambda m=model: GaussianMixture(2, covariance_type=m).fit(X), X[:15])
        for model in (*MODELS, "full", "tied", "diag", "spherical")
    },
    "GaussianMixture prior": (lambda: GaussianMixture(2, prior="conjugate").fit(X), X[:15]),
    "GaussianMixture constraints": (
        lambda: GaussianMixture(2, constraints=Constraints(tied_weights=[0, 0])).fit(X),
        X[:15],
    ),
    "GaussianMixture starts": (
        lambda: GaussianMixture(2, n_init=3, init_params="random", random_state=1, means_init=X[:2]).fit(X),
        X[:15],
    ),
    "GaussianMixture missing": (lambda: GaussianMixture(2).fit(MISSING), MISSING[:15]),
    "GaussianMixture binned": (
        lambda: GaussianMixture().fit_binned([-np.inf, -1, 0, 1, np.inf], [16, 34, 34, 16]),
        X[:15, :1],
    ),
    "GaussianMixture partial": (lambda: GaussianMixture(2).partial_fit(X).partial_fit(X[::-1]), X[:15]),
    **{
        f"MaximumLikelihood {family}": (lambda f=family, d=data: MaximumLikelihood(f).fit(d), data[:15])
        for family, data in {
            "normal": X,
            "multivariate normal": FRAME,
            "student t": X[:, :2],
            "laplace": X[:, :1],
            "logistic": X[:, :1],
            "von mises": X[:, :1],
            "lognormal": POSITIVE,
            "exponential": POSITIVE,
            "gamma": POSITIVE,
            "weibull": POSITIVE[:, :2],
            "beta": 1 / (1 + POSITIVE[:, :1]),
            "poisson": COUNTS,
            "negative binomial": COUNTS,
            "geometric": COUNTS + 1,
            "bernoulli": np.minimum(COUNTS, 1),
            "gumbel_r": X[:, :2],
        }.items()
    },
    "MaximumLikelihood binomial": (lambda: MaximumLikelihood(Binomial(20)).fit(COUNTS), COUNTS[:15]),
    "MaximumLikelihood categorical": (
        lambda: MaximumLikelihood(Categorical(["no", "yes", "never"])).fit(LABELS[:, None]),
        LABELS[:15, None],
    ),
    "MaximumLikelihood scipy": (lambda: MaximumLikelihood(stats.genlogistic).fit(X[:, :1]), X[:15, :1]),
    "MaximumLikelihood truncated": (
        lambda: MaximumLikelihood("exponential", truncated=(0.0, 3.0)).fit(np.minimum(POSITIVE[:, :1], 3.0)),
        POSITIVE[:15, :1],
    ),
    "MaximumLikelihood held": (lambda: MaximumLikelihood("normal", fixed={"mean": 0.0}).fit(X), X[:15]),
    "MaximumLikelihood binned": (
        lambda: MaximumLikelihood("normal").fit(Binned([-np.inf, -1, 0, 1, np.inf], [16, 34, 34, 16])),
        X[:15, :1],
    ),
    "MaximumLikelihood censored": (
        lambda: MaximumLikelihood("weibull").fit(Censored([6.0, 6.0, 7.0, 9.0, 3.0], event=[1, 0, 1, 0, 1])),
        POSITIVE[:15, :1],
    ),
    "MaximumLikelihood intervals": (
        lambda: MaximumLikelihood("normal").fit(Intervals([0.0, 1.0, 2.0, -3.0], [0.0, 1.5, np.inf, 0.5])),
        X[:15, :1],
    ),
    **{
        f"GenotypePCA {solver}": (lambda s=solver: GenotypePCA(2, solver=s).fit(GENOTYPES), GENOTYPES[:5])
        for solver in ("exact", "krylov")
    },
    **{
        f"GenotypePCA {way}": (lambda w=way: GenotypePCA(2, missing=w, verbose=0).fit(GENOTYPES), GENOTYPES[:5])
        for way in ("pairwise", "least-squares")
    },
    "GenotypePCA verbose": (lambda: GenotypePCA(2, scaling="smartpca", verbose=True).fit(GENOTYPES), GENOTYPES[:5]),
}
KERNELS = (
    kernels.AdditiveChi2(),
    kernels.Chi2(0.3),
    kernels.Cosine(),
    kernels.Gaussian(0.7),
    kernels.Gaussian("median"),
    kernels.Gaussian((0.1, 0.2, 0.3, 0.4)),
    kernels.Laplacian(0.2),
    kernels.Linear(),
    kernels.Matern(),
    kernels.Polynomial(3, 0.5, 0.25),
    kernels.RationalQuadratic(),
    kernels.Sigmoid(0.01, 0.1),
    kernels.MatrixFunction(gp.PairwiseKernel(metric="laplacian")),
    2.0 * (kernels.Gaussian(0.1) + 0.5 * kernels.Linear()) * kernels.Matern(),
)
METHODS = (
    "transform",
    "predict",
    "predict_proba",
    "decision_function",
    "score_samples",
    "reconstruction_error",
    "novelty",
)


# Some fits have something to say about their data: that is not the matter here.
quiet = pytest.mark.filterwarnings("ignore::gramian.NumericalWarning", "ignore::sklearn.exceptions.ConvergenceWarning")


@functools.cache
def fitted(name: str) -> Any:
    return CASES[name][0]()


def copied(model: Any, folder: Any) -> Any:
    save(model, folder / "model.gramian")
    return load(folder / "model.gramian")


def assert_same(a: Any, b: Any, where: str = "model") -> None:
    """Every bit, type and memory order; caches, which are computed again when asked for, apart."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), where
        assert a.tolist() == b.tolist() if a.dtype.kind in "OU" else a.tobytes() == b.tobytes(), where
        assert not a.flags.f_contiguous or b.flags.f_contiguous, where
    elif sparse.issparse(a):
        for part in ("data", "indices", "indptr"):
            assert_same(getattr(a, part), getattr(b, part), f"{where}.{part}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (left, right) in enumerate(zip(a, b, strict=True)):
            assert_same(left, right, f"{where}[{i}]")
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            assert_same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, functools.partial):
        assert a.func is b.func
        assert_same(a.args, b.args, f"{where}.args")
    elif isinstance(a, BaseEstimator) or dataclasses.is_dataclass(a) or type(a).__module__.startswith("gramian"):
        assert_same(own(a), own(b), where)
    else:
        assert a is b or repr(a) == repr(b), where


def own(value: Any) -> dict[str, Any]:
    held = value.__getstate__() if "_groups" in vars(value) else vars(value)  # inverses to come are made when saved
    kept = {k: v for k, v in held.items() if k not in ("_posteriors", "_seen", "_sklearn_version")}
    return {k: v for k, v in kept.items() if not isinstance(getattr(type(value), k, None), cached_property)}


def answers(model: Any, rows: Any) -> list[Any]:
    """All that the model says of these rows."""
    found = [getattr(model, name)(rows) for name in METHODS if can(model, name, rows)]
    if can(model, "inverse_transform", rows):
        found.append(model.inverse_transform(model.transform(rows)))
    if isinstance(model, KernelRidge) and not sparse.issparse(rows):
        found.append(model.predict(rows, return_std=True, return_bound=True))
    return [vars(item) if dataclasses.is_dataclass(item) else item for item in found]


def can(model: Any, name: str, rows: Any) -> bool:
    if not hasattr(model, name):
        return False
    incomplete = isinstance(model, PCA) and name == "reconstruction_error" and np.isnan(np.asarray(rows)).any()
    matrix = isinstance(model, KernelPCA) and model.kernel == "precomputed" and name != "transform"
    pair = name == "inverse_transform" and isinstance(model, KernelPCA) and not model.fit_inverse_transform
    noise = name == "score_samples" and isinstance(model, PCA) and model.n_components_ == 4
    return not (incomplete or matrix or pair or noise)


@quiet
@pytest.mark.parametrize("name", CASES)
def test_every_estimator_comes_back_bit_for_bit(name, tmp_path):
    model, rows = fitted(name), CASES[name][1]
    before = answers(model, rows)
    again = copied(model, tmp_path)
    assert_same(model, again)
    found = answers(again, rows)
    assert len(found) >= 1
    assert_same(before, found, "answers")


def test_there_is_a_case_for_every_estimator_that_can_be_saved():
    assert {name.split(" ")[0] for name in CASES} == set(ESTIMATORS)


@quiet
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_every_kernel_comes_back_bit_for_bit(kernel, tmp_path):
    model = KernelRidge(1.0, kernel=kernel, solver="eigh").fit(POSITIVE, y)
    again = copied(model, tmp_path)
    assert_same(model, again)
    np.testing.assert_array_equal(again.predict(POSITIVE[:9] * 1.1), model.predict(POSITIVE[:9] * 1.1))
    assert repr(again.kernel_) == repr(model.kernel_)


def test_batches_go_on_where_they_were(tmp_path):
    for fit in (lambda: PCA(2).partial_fit(X[:25]), lambda: GaussianMixture(2).partial_fit(X[:25])):
        model = fit()
        again = copied(model, tmp_path)
        assert_same(model.partial_fit(X[25:]), again.partial_fit(X[25:]))


def test_a_fitted_family_can_be_questioned_and_fitted_again(tmp_path):
    model = MaximumLikelihood("gamma").fit(POSITIVE)
    first, second = model.estimates_[1], copied(model, tmp_path).estimates_[1]
    np.testing.assert_array_equal(first.profile().lower, second.profile().lower)
    np.testing.assert_array_equal(first.refit(POSITIVE[:, 0]).values, second.refit(POSITIVE[:, 0]).values)
    assert repr(first) == repr(second)


def test_the_output_that_was_set_and_the_names_of_columns_come_back(tmp_path):
    model = PCA(2).set_output(transform="pandas").fit(FRAME)
    again = copied(model, tmp_path)
    pd.testing.assert_frame_equal(again.transform(FRAME), model.transform(FRAME), check_exact=True)
    with pytest.raises(ValueError, match="feature"):
        again.transform(FRAME[FRAME.columns[::-1]])


def test_what_one_object_was_is_one_object_again(tmp_path):
    again = copied(fitted("KernelRidgeClassifier"), tmp_path)
    assert again.X_fit_ is again._model.X_fit_
    assert again.kernel_ is again._model.kernel_ is again.kernels_[0]


def test_loaded_arrays_belong_to_the_model(tmp_path):
    again = copied(fitted("PCA auto"), tmp_path)
    again.mean_ += 1.0  # neither read-only nor a window on the file
    np.testing.assert_array_equal(load(tmp_path / "model.gramian").mean_, fitted("PCA auto").mean_)
    assert again.components_.flags.aligned


def test_tensors_of_torch_come_back_as_arrays_and_predict_the_same(tmp_path):
    torch = pytest.importorskip("torch")
    rows = torch.tensor(X)
    for model in (PCA(2).fit(rows), PCA(2).partial_fit(rows), Ridge().fit(rows, torch.tensor(y))):
        predict = "transform" if isinstance(model, PCA) else "predict"
        before = getattr(model, predict)(rows)
        again = copied(model, tmp_path)
        assert not any(isinstance(value, torch.Tensor) for value in vars(again).values())
        assert torch.equal(before, getattr(again, predict)(rows))


WATCHED = """
import sys, hashlib, numpy as np, gramian.persistence as p
seen = []
p.inspect(sys.argv[1])
sys.addaudithook(lambda event, arguments: seen.append(event))
model = p.load(sys.argv[1])
bad = ("exec", "compile", "pickle", "marshal", "subprocess", "os", "ctypes")
print(*{event for event in seen if event.split(".")[0] in bad})
X = np.linspace(-1, 1, 40).reshape(10, 4)
print(hashlib.sha256(np.ascontiguousarray(model.predict(X)).tobytes()).hexdigest())
"""


def test_another_process_executes_nothing_and_predicts_the_same(tmp_path):
    model = fitted("KernelRidgeCV")
    save(model, tmp_path / "m")
    done = subprocess.run([sys.executable, "-c", WATCHED, str(tmp_path / "m")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = hashlib.sha256(model.predict(np.linspace(-1, 1, 40).reshape(10, 4)).tobytes()).hexdigest()
    assert done.stdout.split("\n")[:2] == ["", expected]
