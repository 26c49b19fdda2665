"""Every equation of the notes has a place in the course, a call, a line of source and a test, and none is left over."""

import sys
from importlib import import_module, util
from pathlib import Path

import numpy as np
import pytest

import gramian
from gramian import KernelPCA, KernelRidge
from gramian.cli.demo_content import power_method
from gramian.kernels import Gaussian, Polynomial, polynomial_features

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def book():
    """What builds the site, and knows where labels stand."""
    folder = str(ROOT / "tools")
    sys.path.insert(0, folder)
    try:
        specification = util.spec_from_file_location("build_site", ROOT / "tools" / "build_site.py")
        module = util.module_from_spec(specification)
        sys.modules["build_site"] = module
        specification.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(folder)


@pytest.fixture(scope="module")
def data(book):
    return book.read_equations()


@pytest.fixture(scope="module")
def labels(data):
    return [equation["label"] for equation in data["equations"]]


def test_no_label_is_given_twice(labels):
    assert len(labels) == len(set(labels)) >= 50


def test_every_equation_stands_once_in_the_course_and_the_course_has_no_others(book, labels):
    found = [
        match["label"]
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if "_build" not in path.parts
        for match in book.EQUATION.finditer(path.read_text("utf-8"))
    ]
    assert sorted(found) == sorted(labels)


def test_every_equation_is_a_line_of_the_source_and_no_line_is_labelled_otherwise(book, labels):
    assert set(book.code_labels()) == set(labels)


def test_a_label_in_the_source_speaks_of_code(book):
    for places in book.code_labels().values():
        for file, line in places:
            spoken_of = (ROOT / file).read_text("utf-8").splitlines()[line - 1].strip()
            assert spoken_of
            assert not spoken_of.startswith("#"), f"{file}, line {line}"


def test_every_equation_has_a_test_that_is_there(book, data):
    for equation in data["equations"]:
        assert book.find_test(equation["test"])[1] > 0


def test_a_test_that_is_not_there_is_noticed(book):
    with pytest.raises(LookupError, match="test_that_is_not_there"):
        book.find_test("tests/test_equations.py::test_that_is_not_there")


def test_every_call_is_public(book, data):
    public = {name.path: name.value for name in book.public_names()}
    for equation in data["equations"]:
        for call in equation["call"]:
            assert book.public_call(call) in public, call
            owner, _, attribute = call.split("(")[0].removeprefix(book.public_call(call)).partition(".")
            value = public[book.public_call(call)]
            assert owner == ""
            # Methods are there, attributes of a fit are in the docstring.
            assert not attribute or hasattr(value, attribute) or attribute in value.__doc__, call


def test_every_equation_is_in_the_notes_and_every_entry_of_the_notes_is_an_equation(data, labels):
    entries = [entry["label"] for note in data["notes"] for entry in note["entries"]]
    assert set(entries) == set(labels)
    assert [note["key"] for note in data["notes"]] == ["000", "001", "002", "003", "004"]
    assert sum("slip" in entry for note in data["notes"] for entry in note["entries"]) >= 13


# What the other tests do not prove in the words of the notes.


def test_the_power_method_keeps_its_rate():
    """tan ∠(y_t, v₁) ≤ (λ₂/λ₁)ᵗ tan ∠(y₀, v₁), as the picture of the demo draws it."""
    picture, _, _ = power_method()
    found, bound = (np.asarray(line.get_ydata(), dtype=float) for line in picture.lines[:2])
    assert len(found) == 61
    assert np.all(found <= bound * (1 + 1e-6) + 1e-9)
    assert found[-1] < 1e-2 * found[0]


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_eigenvalues_of_the_kernel_matrix_are_n_times_the_variances(solver):
    """K̃a = nλa, with λ an eigenvalue of the covariance matrix of features that can be written down."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    phi = polynomial_features(X, 2, coef0=1.0, gamma=1.0)
    variances = np.linalg.eigvalsh(np.cov(phi.T, bias=True))[::-1][:4]
    model = KernelPCA(4, kernel=Polynomial(2, coef0=1.0, gamma=1.0), eigen_solver=solver, tol=1e-10).fit(X)
    np.testing.assert_allclose(model.eigenvalues_, 40 * variances, rtol=1e-8)
    np.testing.assert_allclose(model.transform(X).var(axis=0), variances, rtol=1e-8)


@pytest.mark.parametrize("repeated", [False, True], ids=["regular", "singular"])
def test_dual_coefficients_solve_the_normal_equations(repeated):
    """(K² + λK)α = Ky, whether K can be inverted or not."""
    rng = np.random.default_rng(1)
    X, y, lam = rng.normal(size=(30, 2)), rng.normal(size=30), 0.2
    X = np.repeat(X[:15], 2, axis=0) if repeated else X
    K = Gaussian(1.0)(X)
    a = KernelRidge(lam, kernel=Gaussian(1.0)).fit(X, y).dual_coef_
    np.testing.assert_allclose((K @ K + lam * K) @ a, K @ y, atol=1e-9 * np.linalg.norm(K @ y))


def test_the_packages_of_the_reference_are_all_that_are_public(book):
    listed = {name for name in gramian.__all__ if hasattr(import_module("gramian"), name)}
    modules = {f"gramian.{name}" for name in listed if util.find_spec(f"gramian.{name}") is not None}
    assert modules - set(book.PACKAGES) == set()
