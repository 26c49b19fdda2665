"""Files elsewhere, by fsspec: in its memory, and on disk by an address."""

import pickle
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner
from sklearn import config_context

import gramian
from gramian.cli import main
from gramian.compute.executor import cluster
from gramian.sources import read_table
from gramian.sources.addresses import Address, FetchedSource
from gramian.sources.errors import SourceError
from gramian.sources.files import checksum
from gramian.sources.parts import PartsSource

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (gramian[remote])")
NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def X() -> Any:
    return np.random.default_rng(0).normal(size=(997, 4)) + np.arange(4)


@pytest.fixture(params=["memory", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where files are: ``local`` is fsspec's name for files of this machine that is not translated to a path."""
    if request.param == "local":
        yield f"local://{tmp_path}"
        return
    yield "memory://study"
    fsspec.filesystem("memory").rm("/study", recursive=True)


def put(address: str, write: Any) -> str:
    with fsspec.open(address, "wb") as file:
        write(file)
    return address


def write_parquet(X: Any) -> Any:
    pl = pytest.importorskip("polars")
    return lambda file: pl.DataFrame(X, schema=NAMES).write_parquet(file, row_group_size=100)


def test_arrays_and_tables_are_read_in_parts(place: str, X: Any, tmp_path: Path) -> None:
    array, fortran = put(f"{place}/x.npy", lambda f: np.save(f, X)), np.asfortranarray(X)
    other, table = put(f"{place}/f.npy", lambda f: np.save(f, fortran)), put(f"{place}/x.parquet", write_parquet(X))
    with config_context(working_memory=0.01):
        for address in (array, other, table):
            source = gramian.open(address)
            assert not source.resident
            assert len(list(source.blocks())) > 2
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(source)).to_array(), X)
            np.testing.assert_array_equal(source.between(200, 400).to_array(), X[200:400])
        np.save(tmp_path / "own.npy", X)
        here = gramian.PCA(2).fit(tmp_path / "own.npy")
        np.testing.assert_array_equal(gramian.PCA(2).fit(array).components_, here.components_)
    assert read_table(table, target="b").source.feature_names == ["a", "c", "d"]
    np.testing.assert_array_equal(read_table(table, target="b").target, X[:, 1])


def test_parts_are_one_table_in_natural_order(place: str, X: Any) -> None:
    for i, part in enumerate([X[:300], X[300:310], X[310:]]):
        put(f"{place}/part-{i * 5}.npy", lambda f, part=part: np.save(f, part))
    put(f"{place}/_SUCCESS", lambda f: f.write(b""))
    for address in (f"{place}/part-*.npy", place):
        source = gramian.open(address)
        assert isinstance(source, PartsSource)
        np.testing.assert_array_equal(source.to_array(), X)
    with pytest.raises(SourceError, match="no file"):
        gramian.open(f"{place}/none-*.npy")


def test_zarr_arrays_are_read_chunk_by_chunk(place: str, X: Any, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    zarr.create_array(tmp_path / "own.zarr", data=X, chunks=(100, 4))
    system, name = Address(f"{place}/x.zarr").find()
    system.put(str(tmp_path / "own.zarr") + "/", name + "/", recursive=True)
    with config_context(working_memory=0.01):
        source = gramian.open(f"{place}/x.zarr")
        assert not source.resident
        np.testing.assert_array_equal(source.to_array(), X)
    run = CliRunner().invoke(main, ["pca", f"{place}/x.zarr", "-k", "2", "--json"])
    assert run.exit_code == 0, run.output
    assert f'"{checksum(tmp_path / "own.zarr")}"' in run.stdout


def test_other_files_are_fetched_and_copies_removed(place: str, X: Any, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    text = "\n".join([",".join(NAMES), *(",".join(map(repr, row)) for row in X.tolist())]).encode()
    lines = put(f"{place}/x.csv", lambda f: f.write(text))
    np.testing.assert_array_equal(gramian.open(lines).to_array(), X)
    np.testing.assert_array_equal(read_table(lines).source.to_array(), X)
    S = sp.random_array((50, 8), density=0.2, format="csr", rng=1)
    sparse = put(f"{place}/s.npz", lambda f: sp.save_npz(f, S))
    np.testing.assert_array_equal(gramian.open(sparse).to_array().toarray(), S.toarray())
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["x"] = X
    stored = put(f"{place}/x.h5", lambda f: f.write((tmp_path / "own.h5").read_bytes()))
    with config_context(working_memory=0.01):
        source = gramian.open(stored)
        assert isinstance(source, FetchedSource)
        again = pickle.loads(pickle.dumps(source))
        np.testing.assert_array_equal(again.between(0, 997).to_array(), X)
        np.testing.assert_array_equal(source.to_array(), X)
        copies = [Path(tempfile.gettempdir(), Path(s.inner().path).parent.name) for s in (source,)]
        assert all(copy.exists() for copy in copies)
        del source, again
    assert not any(copy.exists() for copy in copies)


def test_workers_read_addresses_themselves(tmp_path: Path, X: Any) -> None:
    address = put(f"local://{tmp_path}/x.npy", lambda f: np.save(f, X))
    with config_context(working_memory=0.02):
        here = gramian.PCA(2).fit(str(tmp_path / "x.npy"))
        with cluster("processes[1]"):
            there = gramian.PCA(2).fit(address)
    np.testing.assert_array_equal(there.components_, here.components_)
    assert there.certificate_.executor == "1 processes"


def test_names_on_disk_and_what_cannot_be_read(tmp_path: Path, X: Any) -> None:
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_array_equal(gramian.open(f"file://{tmp_path}/x.npy").to_array(), X)
    for address, named in {
        "memory://none.npy": "no such file",
        "nowhere://x.npy": "nowhere",
        "memory://x": "x",
        "postgresql://me:secret@localhost/x": "sql",
    }.items():
        with pytest.raises((SourceError, FileNotFoundError), match=named) as caught:
            gramian.open(address)
        assert "secret" not in str(caught.value)
    assert str(Address("ftp://me:secret@host/x.npy")) == "ftp://me@host/x.npy"


def test_commands_read_addresses(place: str, X: Any, tmp_path: Path) -> None:
    address = put(f"{place}/x.parquet", write_parquet(X))
    out = str(tmp_path / "out")
    for words in (["pca", address, "-k", "2", "--out", out, "--no-pictures", "--json"], ["info", address, "--json"]):
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, result.output
        assert '"rows": 997' in result.stdout
    result = CliRunner().invoke(main, ["pca", f"{place}/none.parquet"])
    assert result.exit_code in (2, 3)
    assert "no such file" in result.output.lower()
