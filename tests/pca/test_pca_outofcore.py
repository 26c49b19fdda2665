"""Memory stays within bounds that do not grow with the file."""

import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import sklearn

from gramian import PCA

ROWS, COLUMNS = 100_000, 200  # 80 MB in float32

SCRIPT = """
import sys
import numpy as np
import sklearn
from gramian import PCA

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))

solver, path, kind = sys.argv[1:]
# A small fit first, so that what the libraries allocate once is not counted.
PCA(3, svd_solver=solver, random_state=0).fit(np.random.default_rng(0).standard_normal((500, 200)))
data = np.load(path, mmap_mode="r") if kind == "memmap" else path
before = peak()
with sklearn.config_context(working_memory=16):
    fitted = PCA(3, svd_solver=solver, random_state=0).fit(data)
    print(peak() - before, *fitted.explained_variance_, sep=",")
"""


@pytest.fixture(scope="module")
def big_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file five times the working memory, with three strong directions."""
    path = tmp_path_factory.mktemp("data") / "big.npy"
    data = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(ROWS, COLUMNS))
    rng = np.random.default_rng(0)
    chunk = rng.standard_normal((10_000, COLUMNS), dtype=np.float32)
    chunk[:, :3] *= np.array([9.0, 6.0, 4.0], dtype=np.float32)
    for start in range(0, ROWS, len(chunk)):
        data[start : start + len(chunk)] = chunk + 5
    data.flush()
    return path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(("solver", "kind"), [("auto", "path"), ("auto", "memmap"), ("krylov", "path")])
def test_peak_memory(big_file: Path, solver: str, kind: str) -> None:
    command = [sys.executable, "-c", SCRIPT, solver, str(big_file), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    increase, *variances = map(float, done.stdout.split(","))
    assert increase < 40, f"{increase:.0f} MB for a file of 80 MB"
    np.testing.assert_allclose(variances, [81, 36, 16], rtol=0.05)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
def test_peak_memory_of_a_fortran_file(tmp_path: Path) -> None:
    rows = ROWS
    data = np.lib.format.open_memmap(
        tmp_path / "f.npy", mode="w+", dtype=np.float32, shape=(rows, COLUMNS), fortran_order=True
    )
    rng = np.random.default_rng(0)
    for j in range(COLUMNS):
        data[:, j] = rng.standard_normal(rows, dtype=np.float32) * (9.0 if j == 0 else 1.0)
    data.flush()
    command = [sys.executable, "-c", SCRIPT, "auto", str(tmp_path / "f.npy"), "path"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout.split(",")[0]) < 40


@pytest.mark.parametrize("solver", ["auto", "krylov", "randomized"])
def test_a_file_with_many_columns_needs_less_memory_than_its_size(tmp_path: Path, solver: str) -> None:
    """The 1,500² Gram matrix is 18 MB: with 4 MB of working memory another way must be found."""
    X = np.random.default_rng(0).standard_normal((8000, 1500), dtype=np.float32)
    X[:, :3] *= np.array([9.0, 6.0, 4.0], dtype=np.float32)
    np.save(tmp_path / "wide.npy", X)
    tracemalloc.start()
    try:
        with sklearn.config_context(working_memory=4):
            PCA(3, svd_solver=solver, random_state=0).fit(tmp_path / "wide.npy")
        peak = tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()
    assert peak < 32, f"{peak:.0f} MB for a file of 46 MB"
