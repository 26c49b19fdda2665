"""What is optional may be absent: everything imports, fits run, and what needs a package says which."""

import subprocess
import sys

import pytest

PRELUDE = """
import importlib.abc
import sys

ABSENT = set({absent!r})


class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Absent())
import numpy as np
import gramian

rng = np.random.default_rng(0)
X = rng.standard_normal((30, 3))
y = X[:, 0]
"""
FITS = ["PCA", "KernelPCA", "Ridge", "KernelRidge", "GaussianMixture", "GenotypePCA"]
EVERYTHING = """
names = [getattr(gramian, name) for name in gramian.__all__]
fits = {
    "PCA": gramian.PCA(2).fit(X).transform(X),
    "KernelPCA": gramian.KernelPCA(2, kernel="rbf").fit(X).transform(X),
    "Ridge": gramian.RidgeCV().fit(X, y).predict(X),
    "KernelRidge": gramian.KernelRidge(kernel="rbf").fit(X, y).predict(X),
    "GaussianMixture": gramian.GaussianMixture(2, random_state=0).fit(X).predict_proba(X),
    "GenotypePCA": gramian.GenotypePCA(2).fit(rng.integers(0, 3, (20, 50)).astype(np.int8)).eigenvalues_,
}
assert all(np.isfinite(np.asarray(found)).all() for found in fits.values())
assert not ABSENT & {name.partition(".")[0] for name in sys.modules}
print(len(names), *fits)
"""
FIRST_COMMAND = """
import pathlib, tempfile
from click.testing import CliRunner
from gramian.cli import main

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "x.csv")
    rows = [f"{'ab'[i % 2]},{row[0]},{row[1]},{row[2]}" for i, row in enumerate(X)]
    path.write_text("\\n".join(["kind,p,q,r", *rows]) + "\\n")
    done = CliRunner().invoke(main, ["pca", str(path), "--out", f"{folder}/out"])
    assert done.exit_code == 0, done.output
    print(*sorted(path.name for path in pathlib.Path(folder, "out").iterdir()))
"""
WITHOUT_TORCH = """
told = []
for model in (gramian.PCA(2, device="cuda"), gramian.Ridge(device="cuda"), gramian.KernelPCA(2, device="cuda"),
              gramian.KernelRidge(device="cuda"), gramian.GaussianMixture(2, device="cuda")):
    try:
        model.fit(X, y)
    except ImportError as error:
        told.append(str(error))
assert told == ["device 'cuda' needs torch: pip install \\"gramian[gpu]\\"."] * 5, told
assert gramian.PCA(2, device="auto").fit(X).n_components_ == 2
print("told")
"""


def output(code: str, absent: tuple[str, ...]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE.format(absent=absent) + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "absent",
    [
        ("bokeh", "dask", "distributed", "numba", "polars"),
        ("anndata", "h5py", "matplotlib", "pandas", "pyarrow", "zarr"),
    ],
    ids=lambda absent: "-".join(absent),
)
def test_everything_works_without(absent: tuple[str, ...]) -> None:
    found = output(EVERYTHING, absent).split()
    assert int(found[0]) > 20
    assert found[1:] == FITS


def test_everything_works_without_torch_and_a_card_names_the_extra() -> None:
    found = output(EVERYTHING + WITHOUT_TORCH, ("torch", "triton")).split()
    assert found[1:] == [*FITS, "told"]


def test_the_first_command_needs_no_extra() -> None:
    absent = ("anndata", "bokeh", "h5py", "pandas", "polars", "pyarrow", "python_calamine", "torch", "zarr")
    assert {"scores.csv", "scores.png", "loadings.csv", "model.gramian"} <= set(output(FIRST_COMMAND, absent).split())
