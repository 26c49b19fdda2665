"""Damaged files of every format: read as what they still say, or refused by name; never a crash or a hang.

A flipped bit of a number cannot be noticed where a format keeps no checksum. Where it keeps one (zip, gzip, model
files), what is read must be what was written.
"""

from __future__ import annotations

import gzip
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from attack.harness import case_count, run_cases, seed
from gramian import PCA
from gramian.persistence import ModelFileError, load, save
from gramian.sources import SourceError
from gramian.sources.tables import read_table

X = np.random.default_rng(0).integers(-99, 99, (12, 4)) / 8
SPARSE = sp.random_array((12, 5), density=0.3, rng=np.random.default_rng(0), format="csr")
INTERESTING = (0x00, 0x01, 0x7F, 0x80, 0xFF, 0x0A, 0x22, 0x2C, 0x2D, 0x30, 0x39)
SECONDS = 60  # for a file of a kilobyte, on a machine that is busy with other tests


def frame() -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=list("abcd")).assign(e=np.arange(12), label=["u", "v"] * 6)


def write_hdf5(path: Path) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        file["plain"] = X
        file.create_dataset("group/packed", data=X, chunks=(5, 2), compression="gzip", fletcher32=True)


def write_h5ad(path: Path, values: Any) -> None:
    import anndata
    import pandas as pd

    n, p = values.shape
    cells, genes = (pd.Index([f"{i}" for i in range(m)], dtype=object) for m in (n, p))
    kinds = pd.Categorical.from_codes(np.arange(n) % 2, pd.Index(["u", "v"], dtype=object))
    obs = pd.DataFrame({"kind": kinds, "y": np.arange(n)}, index=cells)
    anndata.AnnData(values, obs, pd.DataFrame(index=genes)).write_h5ad(path)


def write_zarr(path: Path, version: int) -> None:
    import zarr

    if path.suffix == ".zip":
        with zarr.storage.ZipStore(path, mode="w") as store:
            zarr.create_array(store, data=X, chunks=(5, 2))
    else:
        zarr.create_array(path, data=X, chunks=(5, 2), zarr_format=version)


def write_bed(path: Path) -> None:
    genotypes = np.random.default_rng(1).integers(0, 256, 3 * 5, dtype=np.uint8)  # 12 samples take 3 bytes
    path.write_bytes(b"\x6c\x1b\x01" + genotypes.tobytes())
    path.with_suffix(".bim").write_text("".join(f"1 rs{j} 0 {100 * j} A G\n" for j in range(5)))
    path.with_suffix(".fam").write_text("".join(f"f{i} i{i} 0 0 1 -9\n" for i in range(12)))


def write_arrow_stream(path: Path) -> None:
    import pyarrow as pa

    table = pa.Table.from_pandas(frame())
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


CSV = "a,b,c,d\n" + "\n".join(",".join(map(str, row)) for row in X) + "\n"
WRITERS: dict[str, Callable[[Path], Any]] = {
    "c.npy": lambda path: np.save(path, X),
    "fortran.npy": lambda path: np.save(path, np.asfortranarray(X)),
    "integers.npy": lambda path: np.save(path, np.arange(24).reshape(12, 2)),
    "dense.npz": lambda path: np.savez(path, x=X),
    "packed.npz": lambda path: np.savez_compressed(path, x=X),
    "sparse.npz": lambda path: sp.save_npz(path, SPARSE),
    "csc.npz": lambda path: sp.save_npz(path, SPARSE.tocsc(), compressed=False),
    "coo.npz": lambda path: sp.save_npz(path, SPARSE.tocoo(), compressed=False),
    "coordinate.mtx": lambda path: scipy.io.mmwrite(path, SPARSE),
    "array.mtx": lambda path: scipy.io.mmwrite(path, X),
    "packed.mtx.gz": lambda path: path.write_bytes(
        gzip.compress(b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n")
    ),
    "text.csv": lambda path: path.write_text(CSV),
    "quoted.csv": lambda path: path.write_text('n;"a b";c\n' + "".join(f'"r {i}";{i},5;"{i}"\n' for i in range(12))),
    "packed.csv.gz": lambda path: path.write_bytes(gzip.compress(CSV.encode())),
    "table.parquet": lambda path: frame().to_parquet(path),
    "packed.parquet": lambda path: frame().to_parquet(path, compression="gzip", row_group_size=5),
    "table.feather": lambda path: frame().to_feather(path),
    "plain.feather": lambda path: frame().to_feather(path, compression="uncompressed"),
    "stream.arrow": write_arrow_stream,
    "x.h5": write_hdf5,
    "dense.h5ad": lambda path: write_h5ad(path, X),
    "sparse.h5ad": lambda path: write_h5ad(path, SPARSE),
    "columns.h5ad": lambda path: write_h5ad(path, SPARSE.tocsc()),
    "v2.zarr": lambda path: write_zarr(path, 2),
    "v3.zarr": lambda path: write_zarr(path, 3),
    "x.zarr.zip": lambda path: write_zarr(path, 3),
    "x.bed": write_bed,
    "x.gramian": lambda path: save(PCA(2).fit(X), path),
}
DATASETS = {"x.h5": "group/packed"}
CHECKED = (
    "dense.npz",
    "packed.npz",
    "sparse.npz",
    "csc.npz",
    "coo.npz",
    "packed.mtx.gz",
    "packed.csv.gz",
    "x.zarr.zip",
)


def mutate(raw: bytes, rng: np.random.Generator) -> bytes:
    """Damage some bytes in one of several ways; most of a file's structure is in its beginning and its end."""
    n = len(raw)

    def place() -> int:
        where = rng.random()
        if where < 0.3:
            return int(rng.integers(0, min(n, 256)))
        return int(rng.integers(max(0, n - 256), n)) if where < 0.5 else int(rng.integers(0, n))

    data, at, length = bytearray(raw), place(), int(rng.integers(1, 33))
    kind = rng.integers(0, 9)
    if kind <= 2:
        for _ in range(int(rng.integers(1, 5))):
            data[place()] ^= 1 << int(rng.integers(0, 8))
    elif kind == 3:
        for _ in range(int(rng.integers(1, 5))):
            data[place()] = int(rng.choice(INTERESTING))
    elif kind == 4:
        del data[at:]
    elif kind == 5:
        data[at:at] = data[at : at + length]
    elif kind == 6:
        data[at : at + length] = bytes(len(data[at : at + length]))
    elif kind == 7:
        data[at:at] = rng.bytes(length)
    else:
        del data[at : at + length]
    return bytes(data)


def read_values(path: Path, name: str) -> Any:
    """All numbers of a file, looked at as a fit would; None where a warning says that some are not stored."""
    if name == "x.gramian":
        model = load(path)
        return np.asarray(model.components_)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        table = read_table(path, dataset=DATASETS.get(name), categorical="drop")
        n, p = table.source.shape
        blocks = [b.values.toarray() if table.source.sparse else np.array(b.values) for b in table.source.blocks()]
    values = np.concatenate(blocks)
    assert values.shape == (n, p) == (n, len(table.names))
    assert values.dtype.kind in "fiub"
    return None if any("chunks" in str(warning.message) for warning in told) else values


def read_damaged(folder: Path, name: str, number: int) -> str:
    """Damage a copy of a file, read it, and say what became of it: "read" or "refused"; all else is raised."""
    rng = np.random.default_rng([number, *name.encode()])
    copy = folder / "damaged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder / name, copy)
    files = sorted(file for file in copy.rglob("*") if file.is_file())
    victim = files[int(rng.integers(len(files)))]
    if len(files) > 4 and rng.random() < 0.1:
        victim.unlink()
    else:
        victim.write_bytes(mutate(victim.read_bytes(), rng))
    path = copy / name
    try:
        values = read_values(path, name)
    except (SourceError, ModelFileError, MemoryError, FileNotFoundError) as error:
        if copy.name not in str(error):
            raise AssertionError("the file is not named") from error
        return "refused"
    if values is not None and (name in CHECKED or name == "x.gramian"):
        whole = read_values(folder / name / name, name)
        assert values.shape == whole.shape
        assert np.array_equal(values, whole, equal_nan=True), "damage that a checksum would tell went unnoticed"
    return "read"


# one child process for each: imports take longer than a dozen small files
GROUPS = {
    "arrays": ("npy", "npz", "mtx", "bed", "gramian", "gz"),
    "tables": ("csv", "parquet", "feather", "arrow"),
    "hdf5": ("h5", "h5ad"),
    "zarr": ("zarr", "zip"),
}
PACKAGES = {"tables": ("pandas", "pyarrow"), "hdf5": ("anndata", "h5py", "pandas"), "zarr": ("zarr",)}


@pytest.mark.parametrize("group", GROUPS)
def test_damaged_files_are_read_or_refused(tmp_path: Path, group: str) -> None:
    for package in PACKAGES.get(group, ("pyarrow",)):
        pytest.importorskip(package)
    names = [name for name in WRITERS if name.rpartition(".")[2] in GROUPS[group]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            (tmp_path / name).mkdir()
            WRITERS[name](tmp_path / name / name)
            assert read_values(tmp_path / name / name, name).size
    first, count = 10**6 * seed(), case_count(5 if group == "hdf5" else 10)  # each of these in a child of its own
    cases = [(tmp_path, name, first + i) for name in names for i in range(count)]
    outcomes = run_cases(read_damaged, cases, seconds=SECONDS, memory=2**32)
    bad = [(*case[1:], outcome) for case, outcome in zip(cases, outcomes, strict=True) if outcome.how != "returned"]
    assert not bad, f"{len(bad)} of {len(cases)} cases (seed {seed()}): {bad[:5]}"
    assert {outcome.value for outcome in outcomes} == {"read", "refused"}


def test_every_format_is_attacked() -> None:
    assert {name.rpartition(".")[2] for name in WRITERS} == {suffix for group in GROUPS.values() for suffix in group}
