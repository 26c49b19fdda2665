"""The thin methods of PCA take, and document, what the functions behind them take."""

import inspect
import re

import pytest

from gramian import PCA, analysis

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
