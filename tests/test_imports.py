"""Who may import whom, what a plain ``import gramian`` may load, and that ``__all__`` is in order."""

import ast
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path

import pytest

import gramian

ROOT = Path(gramian.__file__).parent

# The three storeys. A package may import itself and what stands to its left; a method another method's public names.
CORE = ["compute", "kernels", "results", "sources", "operators", "spectral", "linear", "inputs"]
METHODS = ["pca", "kernel_pca", "ridge", "kernel_ridge", "likelihood", "mixture", "genetics"]

# In the core not everything to the left may be imported: a dotted name allows one module of a package, not all of it.
MAY_IMPORT: dict[str, set[str]] = {
    "compute": set(),
    "kernels": set(),
    "results": {"compute.executor", "compute.threads"},
    "sources": {"compute"},
    "operators": {"compute", "kernels", "sources"},
    "spectral": {
        "operators.base",
        "results",
        "compute.devices",
        "compute.dense",
        "compute.factor",
        "compute.threads",
    },
    "linear": {
        "operators.base",
        "results",
        "compute.devices",
        "compute.dense",
        "compute.factor",
        "compute.threads",
    },
    "inputs": {"compute", "kernels", "results", "sources", "operators"},
}
MAY_IMPORT |= {method: {*CORE, *METHODS[:place]} for place, method in enumerate(METHODS)}
MAY_IMPORT |= {
    # what users import by one name, from the methods it belongs to
    "analysis": {"pca", "mixture", "results"},
    "persistence": {*CORE, *METHODS},
    "display": {*CORE, *METHODS},
    "cli": {*CORE, *METHODS, "persistence", "display", *gramian.__all__},
    "__init__": {*CORE, *METHODS, "analysis", "persistence"},
    "__main__": {"cli"},
}

# Packages that load when used. Each has one home, and only they may be imported inside a function.
HEAVY = {"anndata", "bokeh", "dask", "distributed", "duckdb", "h5py", "matplotlib", "numba", "pandas", "polars"} | {
    "pyarrow",
    "torch",
    "triton",
    "zarr",
}


@dataclass(frozen=True)
class Import:
    """An import as written: the module that has it, what it names, and whether it is inside a function."""

    module: str
    target: str
    line: int
    inside_function: bool

    @property
    def layer(self) -> str:
        return layer_of(self.module)

    @property
    def crosses(self) -> bool:
        """Whether the target is in another package."""
        return layer_of(self.target) != self.layer

    @property
    def private(self) -> bool:
        """Whether some part of the target's name has a leading underscore."""
        return any(part.startswith("_") for part in self.target.split("."))

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


def layer_of(module: str) -> str:
    """``gramian.sources.base`` is in the layer ``sources``; the package itself is ``__init__``."""
    return [*module.split("."), "__init__"][1]


def imports_of(source: str, module: str, is_package: bool) -> list[Import]:
    package = module if is_package else module.rpartition(".")[0]
    found = []

    def visit(node: ast.AST, inside: bool) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(module, alias.name, node.lineno, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module
            found.extend(Import(module, f"{base}.{alias.name}", node.lineno, inside) for alias in node.names)
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside or function)

    visit(ast.parse(source), False)
    return found


def breaches(imports: list[Import]) -> list[str]:
    ours = [item for item in imports if item.target.startswith("gramian") and layer_of(item.target) != "lazy"]
    others = [item for item in imports if item.target.partition(".")[0] != "gramian"]
    return [
        *(f"{item}: not allowed in {item.layer}" for item in ours if not allowed(item)),
        *(f"{item}: private to its package" for item in ours if item.crosses and item.private),
        *(f"{item}: inside a function" for item in imports if hidden(item)),
        *second_homes(others),
    ]


def allowed(item: Import) -> bool:
    below = {item.layer} | MAY_IMPORT[item.layer]
    target = item.target.removeprefix("gramian.")
    return any(target == name or target.startswith(f"{name}.") for name in below)


def hidden(item: Import) -> bool:
    return item.inside_function and item.target.partition(".")[0] not in HEAVY


def second_homes(imports: list[Import]) -> list[str]:
    homes: dict[str, set[str]] = {}
    for item in imports:
        homes.setdefault(item.target.partition(".")[0], set()).add(item.layer)
    return [
        f"{name} has more than one home: {sorted(homes[name])}"
        for name in sorted(HEAVY & set(homes))
        if len(homes[name]) > 1
    ]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PATHS = sorted(ROOT.rglob("*.py"))


def test_every_import_of_the_package_follows_the_rules():
    found = [
        item
        for path in PATHS
        for item in imports_of(path.read_text("utf-8"), module_name(path), path.name == "__init__.py")
    ]
    assert len(PATHS) > 10
    assert breaches(found) == []


@pytest.mark.parametrize(
    ("module", "code", "complaint"),
    [
        ("gramian.compute.dense", "from gramian.sources import Source", "not allowed in compute"),
        ("gramian.results", "import gramian.spectral.dense", "not allowed in results"),
        ("gramian.spectral.dense", "from gramian.operators.data import Data", "not allowed in spectral"),
        ("gramian.spectral.dense", "from gramian import PCA", "not allowed in spectral"),
        ("gramian.spectral.dense", "from ..pca import estimator", "not allowed in spectral"),
        ("gramian.pca.estimator", "from gramian.ridge import Ridge", "not allowed in pca"),
        ("gramian.genetics.pca", "from gramian.pca.rank import _rule", "private to its package"),
        ("gramian.display.base", "from gramian.cli import pca", "not allowed in display"),
        ("gramian.cli.pca", "def f():\n    import json", "inside a function"),
        (
            "gramian.cli.pca",
            "def f():\n    if True:\n        from gramian import sources",
            "inside a function",
        ),
    ],
)
def test_the_checker_sees_a_breach(module, code, complaint):
    (found,) = breaches(imports_of(code, module, is_package=False))
    assert complaint in found


def test_the_checker_sees_a_second_home():
    layers = ("sources", "display")
    found = [imports_of("import polars.x", f"gramian.{layer}.m", False)[0] for layer in layers]
    assert breaches(found) == ["polars has more than one home: ['display', 'sources']"]


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("gramian.spectral.dense", "from gramian.operators.base import Operator\nfrom .krylov import Krylov"),
        ("gramian.sources.arrays", "def f():\n    import polars as pl"),
        ("gramian.pca.estimator", "from gramian.spectral import Auto\nimport numpy as np"),
    ],
)
def test_the_checker_lets_good_imports_pass(module, code):
    assert breaches(imports_of(code, module, is_package=False)) == []


def test_no_two_classes_have_the_same_name():
    homes: dict[str, list[str]] = {}
    for path in PATHS:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_plain_import_loads_nothing_heavy():
    # scikit-learn itself loads pandas and rich where they are installed; Gramian may add nothing to that.
    added = loaded_by("import gramian") - loaded_by("import sklearn.decomposition")
    assert "gramian" in added
    assert not added & (HEAVY | {"click", "rich"})


def order(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then functions, each in alphabetical order: as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def imported(path: Path):
    """A module, or a skip where it is one of the compiled loops and what they are written in is not installed."""
    try:
        return import_module(module_name(path))
    except ModuleNotFoundError as error:
        gpu = ROOT / "compute" / "gpu" in path.parents and error.name in ("torch", "triton")
        if not gpu and not (path == ROOT / "compute" / "compiled.py" and error.name == "numba"):
            raise
        return pytest.skip(f"{error.name} is not installed (gramian[{'gpu' if gpu else 'compiled'}])")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_public_names_are_sorted_and_exist(path):
    module = imported(path)
    names = getattr(module, "__all__", [])
    assert list(names) == sorted(set(names), key=order)
    assert [name for name in names if not hasattr(module, name)] == []


def test_every_public_name_is_found_and_nothing_else():
    code = (
        "import gramian; [getattr(gramian, name) for name in gramian.__all__]; "
        "print(sorted(set(gramian.__all__) - set(dir(gramian))))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        gramian.nonsense  # noqa: B018


def modules_loaded_by(statement: str) -> set[str]:
    """The packages of ours that a statement loads: ``pca``, ``sources``, …"""
    code = f"{statement}; import sys; print(*{{name for name in sys.modules if name.startswith('gramian.')}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {layer_of(name) for name in done.stdout.split()}


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("PCA", {"cli", "display", "genetics", "kernel_pca", "kernel_ridge", "likelihood", "mixture", "ridge"}),
        ("Ridge", {"cli", "display", "genetics", "kernel_pca", "kernel_ridge", "likelihood", "mixture", "kernels"}),
        ("GaussianMixture", {"cli", "display", "genetics", "kernel_pca", "kernel_ridge", "likelihood", "ridge"}),
    ],
)
def test_a_method_loads_no_other(name, others):
    assert modules_loaded_by(f"from gramian import {name}") & (others | {"analysis", "persistence"}) == set()


def test_a_plain_import_loads_no_library():
    code = "import gramian, sys; print(sorted({'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_pruning_starts_without_the_methods_and_scikit_learn():
    loaded = loaded_by("import gramian.cli.prune")
    assert "numpy" in loaded
    assert not loaded & (HEAVY | {"sklearn"})


def test_a_function_stays_what_a_package_means_by_its_name_when_its_module_is_loaded():
    code = (
        "import gramian.genetics.fst, gramian.genetics.heritability; from gramian.genetics import fst, heritability; "
        "from gramian.genetics import relatives; print(fst.__name__, heritability.__name__, relatives.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "fst heritability gramian.genetics.relatives\n"
