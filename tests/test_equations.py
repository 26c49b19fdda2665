"""Every equation of the notes has a place in the course, a call, a line of source and a test, and none is left over."""

import inspect
import re
import sys
from importlib import import_module, util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gramian
from gramian import KernelPCA, KernelRidge
from gramian.cli import COMMANDS
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


def test_no_combination_of_the_data_has_a_larger_mean_square_in_feature_space():
    """aᵀK²a is nλ at the components, and at most nλ₁ for every a with aᵀKa = 1; ‖a‖ = 1 is another condition."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 2))
    K = Gaussian(0.7)(X)
    model = KernelPCA(3, kernel=Gaussian(0.7), centre=False).fit(X)
    A = model.dual_coefficients_
    np.testing.assert_allclose(np.diag(A.T @ K @ A), 1.0, rtol=1e-9)
    np.testing.assert_allclose(np.diag(A.T @ K @ K @ A), model.eigenvalues_, rtol=1e-9)
    other = rng.normal(size=(30, 500))
    other /= np.sqrt(np.einsum("ij,ik,kj->j", other, K, other))
    assert np.einsum("ij,ij->j", K @ other, K @ other).max() <= model.eigenvalues_[0]
    assert not np.allclose(np.linalg.norm(A, axis=0), 1.0)


@pytest.mark.parametrize("repeated", [False, True], ids=["regular", "singular"])
def test_dual_coefficients_solve_the_normal_equations(repeated):
    """(K² + λK)α = Ky, whether K can be inverted or not."""
    rng = np.random.default_rng(1)
    X, y, lam = rng.normal(size=(30, 2)), rng.normal(size=30), 0.2
    X = np.repeat(X[:15], 2, axis=0) if repeated else X
    K = Gaussian(1.0)(X)
    a = KernelRidge(lam, kernel=Gaussian(1.0)).fit(X, y).dual_coef_
    np.testing.assert_allclose((K @ K + lam * K) @ a, K @ y, atol=1e-9 * np.linalg.norm(K @ y))


def test_every_public_name_has_a_page_in_the_reference(book):
    pages = {(name.package, name.name) for name in book.public_names()}
    values = {id(name.value) for name in book.public_names()}
    for package in book.packages():
        module = import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            assert (package, name) in pages or id(value) in values or isinstance(value, ModuleType), f"{package}.{name}"
    assert {f"gramian.{name}" for name in gramian.__all__ if util.find_spec(f"gramian.{name}")} < set(book.packages())


def test_every_public_function_says_what_it_takes_and_returns(book):
    """Its docstring has numpydoc's sections, in which every argument is named, and an example."""
    missing = []
    for public in book.public_names():
        if not inspect.isroutine(public.value):
            continue
        text = inspect.getdoc(public.value) or ""
        sections = set(re.findall(r"^(Parameters|Returns|Yields|Examples)\n-+$", text, re.MULTILINE))
        described = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+$|\Z)", text, re.MULTILINE | re.DOTALL)
        named = (
            set(re.findall(r"\w+", "\n".join(re.findall(r"^\S.*", described.group(1), re.M)))) if described else set()
        )
        signature = inspect.signature(public.value)
        missing += [f"{public.path}: {name}" for name in signature.parameters if name not in named]
        nothing = {"None", "Iterator[None]"}  # a block that is entered returns nothing
        if signature.return_annotation not in nothing and not sections & {"Returns", "Yields"}:
            missing.append(f"{public.path}: what it returns")
        if not text:
            missing.append(f"{public.path}: a docstring")
    assert missing == []


def test_the_first_page_names_the_pages_that_are_made_from_code(book):
    """The site turns these items into links."""
    text = (ROOT / "docs/index.md").read_text("utf-8")
    assert [title for title in book.MADE if f"\n- {title}:" not in text] == []


def test_every_command_is_in_the_table_of_commands():
    text = (ROOT / "docs/command-line.md").read_text("utf-8")
    rows = "\n".join(re.findall(r"^\|.*", text[: text.index("## What is read")], re.MULTILINE))
    assert set(COMMANDS) - set(re.findall(r"`([\w-]+)`", rows)) == set()


def test_each_worked_example_of_extending_is_short():
    """Fewer than 40 lines of code; that they run is tested with the other documents."""
    pages = sorted((ROOT / "docs/extend").glob("a-*.md"))
    assert len(pages) >= 5
    for page in pages:
        code = re.findall(r"^(?:>>>|\.\.\.) ", page.read_text("utf-8"), re.MULTILINE)
        assert 10 <= len(code) < 40, page.name
