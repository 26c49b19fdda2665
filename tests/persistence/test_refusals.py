"""What cannot be saved is refused with the reason and the remedy, and leaves no file; and the list is complete."""

import ast
import dataclasses
import importlib
import inspect
import json
import pkgutil
import typing
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

import gramian
from gramian import (
    PCA,
    KernelPCA,
    KernelRidge,
    MaximumLikelihood,
    Ridge,
    RidgeCV,
    genetics,
    kernel_pca,
    kernel_ridge,
    kernels,
    likelihood,
    mixture,
    pca,
    persistence,
    ridge,
)
from gramian.likelihood.families import Custom
from gramian.persistence import save
from gramian.persistence.registry import CLASSES, ESTIMATORS

HERE = Path(__file__).parent
X = np.random.default_rng(0).standard_normal((20, 3))
y = X[:, 0]


def common(a, b):
    return float(a @ b)


def unit_normal(x, m):
    return -0.5 * (x - m) ** 2 - 0.5 * np.log(2 * np.pi)


class Own(PCA):
    pass


class OwnKernel(RBF):
    pass


def with_attribute(value):
    model = PCA(2).fit(X)
    model.extra_ = value
    return model


def circle():
    items = []
    items.append(items)
    return items


def deep():
    kernel = kernels.Linear()
    for _ in range(150):
        kernel = kernel + kernels.Linear()
    return with_attribute(kernel)


HARMLESS = "a model file holds nothing that can execute"
REFUSED = {
    "function": (
        lambda: KernelPCA(1, kernel=common).fit(X),
        f"KernelPCA.kernel is a Python function .common.: {HARMLESS}",
    ),
    "remedy": (
        lambda: KernelPCA(1, kernel=common).fit(X),
        "Use a kernel of gramian.kernels .* or kernel='precomputed'",
    ),
    "Callable": (
        lambda: KernelRidge(kernel=kernels.Callable(common)).fit(X, y),
        "KernelRidge.kernel is a Python function",
    ),
    "in a sum": (
        lambda: KernelRidge(kernel=kernels.Linear() + 2.0 * kernels.Callable(common)).fit(X, y),
        "KernelRidge.kernel.second.kernel is a Python function",
    ),
    "matrix function": (
        lambda: KernelRidge(kernel=kernels.MatrixFunction(lambda A, B: A @ B.T)).fit(X, y),
        "KernelRidge.kernel.function is a Python function",
    ),
    "own kernel": (lambda: KernelPCA(1, kernel=OwnKernel()).fit(X), "KernelPCA.kernel is a"),
    "own class": (lambda: Own(1).fit(X), "derived from PCA, whose code would not be in the file. Save a PCA"),
    "custom family": (
        lambda: MaximumLikelihood(Custom(unit_normal, {"m": 0.0})).fit(X[:, :1]),
        "MaximumLikelihood.family is a family given by Python functions",
    ),
    "scoring": (
        lambda: RidgeCV(scoring=lambda model, A, b: 0.0).fit(X, y),
        r"RidgeCV.scoring is a Python function .* model.set_params\(scoring=…\)",
    ),
    "progress": (
        lambda: gramian.GenotypePCA(1, verbose=lambda *progress: None).fit(np.arange(60).reshape(6, 10) * 7 % 3),
        r"GenotypePCA.verbose is a Python function .* model.set_params\(verbose=…\)",
    ),
    "splitter": (lambda: RidgeCV(cv=KFold(3)).fit(X, y), "RidgeCV.cv is a KFold of sklearn"),
    "random state": (
        lambda: PCA(1, random_state=np.random.RandomState(0)).fit(X),
        r"PCA.random_state is a RandomState, whose state is no seed.*set_params\(random_state=0\)",
    ),
    "pipeline": (lambda: make_pipeline(PCA(2), Ridge()).fit(X, y), "Pipeline cannot be saved: save its parts"),
    "search": (
        lambda: GridSearchCV(Ridge(), {"alpha": [1.0]}).fit(X, y),
        "GridSearchCV cannot be saved: save its parts",
    ),
    "scikit-learn": (lambda: TruncatedSVD(1).fit(X), "it is no estimator of Gramian. Gramian saves .*GaussianMixture"),
    "no estimator": (lambda: {"a": 1}, "dict cannot be saved: it is no estimator"),
    "objects": (lambda: with_attribute(np.array([1, None])), "PCA.extra_ is an array of Python objects"),
    "long double": (lambda: with_attribute(np.zeros(2, np.longdouble)), "an array of dtype (float128|longdouble)"),
    "masked": (lambda: with_attribute(np.ma.zeros(2)), "PCA.extra_ is a MaskedArray"),
    "half a pair": (lambda: with_attribute(["a", "\ud800"]), "PCA.extra_.1: .* half a surrogate pair"),
    "half a pair in an array": (lambda: with_attribute(np.array(["\ud800"])), "half a surrogate pair"),
    "module": (lambda: with_attribute(json), "PCA.extra_ is a module"),
    "class": (lambda: with_attribute(PCA), "PCA.extra_ is a"),
    "bound method": (lambda: with_attribute(X.sum), "PCA.extra_ is a Python function"),
    "set": (lambda: with_attribute({1, 2}), "PCA.extra_ is a set of builtins"),
    "circle": (lambda: with_attribute(circle()), "refers to itself"),
    "deep": (deep, "nested more than 100 levels deep"),
}


@pytest.mark.filterwarnings("ignore::gramian.NumericalWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_saved_is_refused_with_the_reason(name, tmp_path):
    make, reason = REFUSED[name]
    with pytest.raises(ValueError, match=reason):
        save(make(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_unfitted_models_are_refused(tmp_path):
    for estimator in ESTIMATORS.values():
        with pytest.raises(NotFittedError, match="fitted"):
            save(estimator(), tmp_path / "m")


@pytest.mark.parametrize("metadata", [{"a": np.nan}, {"a": {1}}, {"a": X}, {"a": "\ud800"}, {("a", 1): 2}])
def test_metadata_must_be_json(metadata, tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        save(PCA(1).fit(X), tmp_path / "m", metadata=metadata)


def test_places_that_cannot_be_written_to_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        save(PCA(1).fit(X), tmp_path / "nowhere" / "m")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(PCA(1).fit(X), tmp_path)


def public_estimators():
    """Every public class of the package with a constructor of scikit-learn's kind and a fit."""
    for module in (gramian, pca, kernel_pca, ridge, kernel_ridge, likelihood, mixture, genetics):
        for info in pkgutil.iter_modules(module.__path__):
            if not info.name.startswith("_"):
                part = importlib.import_module(f"{module.__name__}.{info.name}")
                names = [name for name in getattr(part, "__all__", ()) if isinstance(getattr(part, name), type)]
                yield from (getattr(part, n) for n in names if issubclass(getattr(part, n), BaseEstimator))


def test_every_estimator_is_on_the_list():
    found = {cls for cls in public_estimators() if hasattr(cls, "fit")}
    assert len(found) >= 12
    assert {cls.__name__ for cls in found} - set(ESTIMATORS) == set()


def classes_in(hint):
    """The classes that an annotation names."""
    if isinstance(hint, type) and not typing.get_args(hint):
        return {hint}
    return {cls for part in typing.get_args(hint) for cls in classes_in(part)}


@pytest.mark.parametrize("name", [name for name, cls in CLASSES.items() if dataclasses.is_dataclass(cls)])
def test_what_a_class_on_the_list_consists_of_is_on_the_list(name):
    hints = typing.get_type_hints(CLASSES[name], vars(importlib.import_module(CLASSES[name].__module__)))
    fields = {field.name for field in dataclasses.fields(CLASSES[name])}
    ours = {cls for field in fields for cls in classes_in(hints[field]) if cls.__module__.startswith("gramian")}
    abstract = {cls for cls in ours if inspect.isabstract(cls) or getattr(cls, "_is_protocol", False)}
    assert {cls.__name__ for cls in ours - abstract if cls not in CLASSES.values()} == set()


def test_names_that_files_hold_stay():
    # A name once written is in files for ever: add to the list, and never take away.
    known = json.loads((HERE / "names_format_1.json").read_text())
    assert set(known) <= set(CLASSES)


def test_no_module_of_the_package_can_unpickle_or_evaluate():
    for info in pkgutil.iter_modules(persistence.__path__):
        tree = ast.parse(Path(persistence.__path__[0], f"{info.name}.py").read_text("utf-8"))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        called = {
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not imported & {"pickle", "joblib", "marshal", "shelve", "importlib", "dill", "cloudpickle"}
        assert not called & {"eval", "exec", "compile", "__import__"}
