"""The thin methods of PCA take, and document, what the functions behind them take."""

import inspect
import re

import numpy as np
import pytest

from gramian import PCA, NumericalWarning, analysis

METHODS = ["rotate", "rotated_scores", "biplot", "monitor", "bootstrap", "describe", "eigenvalue_errors"]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_what_its_function_takes(name: str) -> None:
    _, *ours = inspect.signature(getattr(PCA, name)).parameters.values()
    _, *theirs = inspect.signature(getattr(analysis, name)).parameters.values()
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


@pytest.mark.parametrize("name", ["rotate", "rotated_scores", "biplot", "monitor", "bootstrap"])
def test_help_says_what_each_argument_is(name: str) -> None:
    method = getattr(PCA, name)
    text = inspect.getdoc(method) or ""
    documented = re.findall(r"^(\w+) : ", text.split("Parameters\n")[1].split("Returns\n")[0], re.MULTILINE)
    assert documented == list(inspect.signature(method).parameters)[1:]


def test_a_model_without_components_says_so() -> None:
    X = np.random.default_rng(0).normal(size=(60, 5))
    with pytest.warns(NumericalWarning, match="no component is kept"):
        pca = PCA("parallel").fit(X)
    assert pca.n_components_ == 0
    for call in (lambda: pca.bootstrap(X), lambda: pca.monitor(X), pca.rotate, pca.eigenvalue_errors):
        with pytest.raises(ValueError, match=r"no component: .* a rule that found nothing .*PCA\(n_components=1\)"):
            call()
    with pytest.raises(ValueError, match="no component"):
        pca.biplot(X)
