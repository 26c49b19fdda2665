"""What is collected: tests and examples in ``src``; those of torch, Triton, Numba, fsspec where it is installed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "tests"
LOOPS = Path(__file__).parent / "src" / "gramian" / "compute" / "gpu"
TORCH, TRITON, NUMBA, FSSPEC = (find_spec(name) is not None for name in ("torch", "triton", "numba", "fsspec"))


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what only helps the tests, and modules that load torch, Triton, Numba or fsspec where it is absent.

    ``--doctest-modules`` imports every module it collects: one that helps the tests may need what is not installed.
    """
    if TESTS in collection_path.parents and collection_path.suffix == ".py":
        return not collection_path.name.startswith("test_") or None
    if not TORCH and (collection_path == LOOPS or LOOPS in collection_path.parents):
        return True
    if not NUMBA and collection_path == LOOPS.parent / "compiled.py":
        return True
    if not FSSPEC and collection_path == LOOPS.parents[1] / "sources" / "addresses.py":
        return True
    if not TRITON and collection_path.parent == LOOPS and collection_path.name in _of_triton():
        return True
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip examples elsewhere that show tensors."""
    if TORCH:
        return
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.dtest and any(map(_imports_torch, item.dtest.examples)):
            item.add_marker(pytest.mark.skip(reason="torch is not installed (gramian[gpu])"))


def _of_triton() -> set[str]:
    return {path.name for path in LOOPS.glob("triton_*.py")}


def _imports_torch(example: object) -> bool:
    source = str(getattr(example, "source", ""))
    return source.lstrip().startswith(("import ", "from ")) and "torch" in source
