"""Several files as one table, and tables that other programs hand over batch by batch."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import gramian
from gramian.sources.errors import SourceError
from gramian.sources.parts import PartsSource

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
NAMES = ["a", "b", "c", "d", "e"]


@pytest.fixture
def X() -> Any:
    return np.random.default_rng(0).normal(size=(997, 5)) + np.arange(5)


def cut(X: Any) -> list[Any]:
    return [X[:10], X[10:10], X[10:500], X[500:]]


def write_npy(folder: Path, X: Any) -> str:
    for i, part in enumerate(cut(X)):
        np.save(folder / f"part-{3 * i + 4}.npy", part)  # 4, 7, 10, 13: natural order is not that of the alphabet
    return str(folder / "*.npy")


def write_parquet(folder: Path, X: Any) -> str:
    for i, part in enumerate(cut(X)):
        pl.DataFrame(part, schema=NAMES).write_parquet(folder / f"{i}.parquet")
    (folder / "_SUCCESS").touch()
    return str(folder)


def write_csv(folder: Path, X: Any) -> str:
    for i, part in enumerate([X[:300], X[300:]]):
        np.savetxt(folder / f"{i}.csv", part, "%.17g", ",", header=",".join(NAMES), comments="")
    return str(folder / "*.csv")


def write_zarr(folder: Path, X: Any) -> str:
    zarr = pytest.importorskip("zarr")
    for i, part in enumerate([X[:300], X[300:]]):
        zarr.save(str(folder / f"{i}.zarr"), part)
    return str(folder)


@pytest.mark.parametrize("write", [write_npy, write_parquet, write_csv, write_zarr])
def test_parts_are_one_table(tmp_path: Path, X: Any, write: Any) -> None:
    source = gramian.open(write(tmp_path, X))
    assert isinstance(source, PartsSource)
    assert source.shape == X.shape
    np.testing.assert_array_equal(source.to_array(), X)
    for rows in (1, 7, 400, 5000):
        blocks = [(b.start, b.stop, np.array(b.values)) for b in source.blocks(rows)]
        assert [b[0] for b in blocks] == list(range(0, len(X), rows))
        np.testing.assert_array_equal(np.concatenate([b[2] for b in blocks]), X)


def test_parts_give_the_bits_of_one_file(tmp_path: Path, X: Any) -> None:
    np.save(tmp_path / "all.npy", X)
    (tmp_path / "parts").mkdir()
    one, many = str(tmp_path / "all.npy"), write_npy(tmp_path / "parts", X)
    a, b = gramian.PCA(3).fit(one), gramian.PCA(3).fit(many)
    np.testing.assert_array_equal(a.components_, b.components_)
    np.testing.assert_array_equal(gramian.Ridge().fit(one, X[:, 0]).coef_, gramian.Ridge().fit(many, X[:, 0]).coef_)
    np.testing.assert_array_equal(a.transform(one), b.transform(many))


def test_parts_beyond_memory_are_opened_again(tmp_path: Path, X: Any) -> None:
    from sklearn import config_context

    with config_context(working_memory=0.01):
        source = gramian.open(write_csv(tmp_path, X))
        np.testing.assert_array_equal(source.to_array(), X)
        (tmp_path / "1.csv").write_text("a,b,c,d,e\n1,2,3,4,5\n")
        with pytest.raises(SourceError, match=r"1\.csv"):
            source.to_array()


def test_sparse_parts_stay_sparse(tmp_path: Path) -> None:
    S = sp.random_array((90, 8), density=0.2, format="csr", random_state=1)
    for i in range(3):
        sp.save_npz(tmp_path / f"{i}.npz", S[30 * i : 30 * i + 30])
    source = gramian.open(tmp_path)
    assert source.sparse
    np.testing.assert_array_equal(source.to_array().toarray(), S.toarray())
    for block in source.blocks(40):
        assert sp.issparse(block.values)


@pytest.mark.parametrize(
    ("names", "named"),
    [(["a", "x"], "'x'"), (["a"], "1 columns"), (["b", "a"], "'b'")],
)
def test_parts_with_other_columns_are_refused(tmp_path: Path, names: list[str], named: str) -> None:
    pl.DataFrame(np.eye(2), schema=["a", "b"]).write_parquet(tmp_path / "0.parquet")
    pl.DataFrame(np.ones((2, len(names))), schema=names).write_parquet(tmp_path / "1.parquet")
    with pytest.raises(SourceError, match=named) as error:
        gramian.open(tmp_path)
    assert Path(str(error.value.path)).name == "1.parquet"


def test_patterns_and_folders_without_a_table(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no file"):
        gramian.open(tmp_path / "*.npy")
    with pytest.raises(SourceError, match="no table"):
        gramian.open(tmp_path)
    np.save(tmp_path / "a.npy", np.eye(2))
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SourceError, match="several kinds"):
        gramian.open(tmp_path)


def relation(X: Any, folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    pl.DataFrame(X, schema=NAMES).write_parquet(folder / "x.parquet")
    return duckdb.connect().sql(f"select * from '{folder}/x.parquet'")


def dataset(X: Any, folder: Path) -> Any:
    return pytest.importorskip("pyarrow.dataset").dataset(write_parquet(folder, X), format="parquet")


STREAMS = {
    "DuckDB relation": relation,
    "pyarrow data set": dataset,
    "pyarrow scanner": lambda X, folder: dataset(X, folder).scanner(batch_size=100),
    "pyarrow reader": lambda X, folder: pa.RecordBatchReader.from_stream(pl.DataFrame(X, schema=NAMES)),
    "pyarrow table": lambda X, folder: pl.DataFrame(X, schema=NAMES).to_arrow(),
    "lazy frame": lambda X, folder: pl.scan_parquet(f"{write_parquet(folder, X)}/*.parquet"),
}


@pytest.mark.parametrize("memory", [0.005, 1024], ids=["in a file", "in memory"])
@pytest.mark.parametrize("kind", STREAMS)
def test_streams_are_tables(tmp_path: Path, X: Any, kind: str, memory: float) -> None:
    from sklearn import config_context

    with config_context(working_memory=memory):
        source = gramian.open(STREAMS[kind](X, tmp_path))
        assert source.resident == (memory > 1)
        assert source.feature_names == NAMES
        for _ in range(2):
            np.testing.assert_array_equal(source.to_array(), X)
        spool = getattr(source, "path", None)
        del source
        assert spool is None or not spool.exists()


@pytest.mark.parametrize("kind", STREAMS)
def test_estimators_take_streams(tmp_path: Path, X: Any, kind: str) -> None:
    model = gramian.PCA(2).fit(STREAMS[kind](X, tmp_path))
    np.testing.assert_array_equal(model.components_, gramian.PCA(2).fit(X).components_)
    assert model.feature_names_in_.tolist() == NAMES


def test_streams_keep_float32_and_missing_cells() -> None:
    table = pa.table({"a": pa.array([1.5, None, 3.0], pa.float32()), "b": pa.array([1, 2, 3], pa.float32())})
    source = gramian.open(table)
    assert source.dtype == np.float32
    np.testing.assert_array_equal(source.to_array(), np.array([[1.5, 1], [np.nan, 2], [3, 3]], np.float32))


def test_streams_with_text_are_refused_by_column() -> None:
    with pytest.raises(SourceError, match="town"):
        gramian.open(pa.table({"a": [1.0], "town": ["Rome"]}))
    with pytest.raises(ValueError, match="column 'a'"):
        gramian.open(pa.table({"a": [1, 2**60 + 1]}))
    with pytest.raises(SourceError, match="ChunkedArray"):
        gramian.open(pa.chunked_array([[1.0, 2.0]]))


@pytest.fixture
def people(tmp_path: Path) -> tuple[Path, Path]:
    """One table, whole and in two files; the second has a town that the first does not have."""
    lines = ["name,town,height,weight"]
    lines += [f"p{i},{['Rome', 'Oslo', 'Bern'][i // 14]},{150 + i},{50 + i % 7}" for i in range(40)]
    (tmp_path / "parts").mkdir()
    (tmp_path / "all.csv").write_text("\n".join(lines))
    (tmp_path / "parts" / "1.csv").write_text("\n".join(lines[:25]))
    (tmp_path / "parts" / "2.csv").write_text("\n".join([lines[0], *lines[25:]]))
    return tmp_path / "all.csv", tmp_path / "parts"


@pytest.mark.parametrize("memory", [0.0001, 1024], ids=["in blocks", "in memory"])
@pytest.mark.parametrize("categorical", ["label", "onehot", "drop"])
def test_tables_in_several_files_are_read_as_one(people: tuple[Path, Path], categorical: str, memory: float) -> None:
    from sklearn import config_context

    from gramian.sources import read_table

    given: dict[str, Any] = {"target": "weight", "id": "name", "categorical": categorical}
    whole = read_table(people[0], **given)
    with config_context(working_memory=memory):
        for name in (people[1], people[1] / "*.csv"):
            parts = read_table(name, **given)
            assert sorted(parts.names) == sorted(whole.names)
            order = [parts.names.index(column) for column in whole.names]
            np.testing.assert_array_equal(parts.source.to_array()[:, order], whole.source.to_array())
            for role in ("target", "label", "ids"):
                np.testing.assert_array_equal(getattr(parts, role), getattr(whole, role))
            assert len(parts.checksum()) == 64
            assert parts.source.resident == (memory > 1)


def test_commands_read_patterns(people: tuple[Path, Path], tmp_path: Path) -> None:
    from click.testing import CliRunner

    from gramian.cli import main

    def scores(name: str, out: str) -> str:
        result = CliRunner().invoke(main, ["pca", name, "--out", str(tmp_path / out), "--no-pictures"])
        assert result.exit_code == 0, result.output
        return (tmp_path / out / "scores.csv").read_text()

    assert scores(str(people[0]), "a") == scores(str(people[1] / "*.csv"), "b")
    result = CliRunner().invoke(main, ["pca", str(tmp_path / "none" / "*.csv")])
    assert result.exit_code == 2
    assert "none" in result.output


def test_queries_of_a_database_are_tables(people: tuple[Path, Path], tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed (gramian[sql])")
    from gramian.sources import read_table

    database = tmp_path / "people.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.sql(f"create table people as select * from '{people[0]}'")
    query = "select name, town, height, weight from people where height >= 160 order by height;"
    table = read_table(database, sql=query, target="weight", id="name", label="town")
    whole = read_table(people[0], target="weight", id="name", label="town")
    np.testing.assert_array_equal(table.source.to_array(), whole.source.to_array()[10:])
    np.testing.assert_array_equal(table.ids, whole.ids[10:])
    assert table.checksum() != read_table(database, sql="select height from people").checksum()
    files = read_table(":memory:", sql=f"select height, weight from '{people[1]}/*.csv'")
    assert files.source.shape == (40, 2)
    spool = [path for path in Path(tempfile.gettempdir()).glob("gramian-*/query.parquet") if path.is_file()]
    for wrong in ("select nothing from people", "drop table people", "select * from", "set threads = 2"):
        with pytest.raises(SourceError, match="query"):
            read_table(database, sql=wrong)
    assert {*Path(tempfile.gettempdir()).glob("gramian-*/query.parquet")} <= {*spool}
    assert read_table(database, sql="select count(*) as n from people").source.to_array() == 40
    with pytest.raises(FileNotFoundError, match="none"):
        read_table(tmp_path / "none.duckdb", sql=query)


def test_info_describes_several_files_as_their_table(people: tuple[Path, Path]) -> None:
    from click.testing import CliRunner

    from gramian.cli import main

    def columns(name: Path) -> Any:
        result = CliRunner().invoke(main, ["info", str(name), "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["columns"]

    assert columns(people[1]) == columns(people[1] / "*.csv") == columns(people[0])
    numbers = people[1] / "2.csv"
    (people[1] / "3.csv").write_text("name,town,height,weight\nq,Rome,tall,\n")
    height = columns(people[1])[2]
    assert (height["type"], height["different"], height["missing"]) == ("text", 41, 0)
    numbers.write_text("name,height\nr,170\n")
    result = CliRunner().invoke(main, ["info", str(people[1])])
    assert result.exit_code == 3
    assert str(numbers) in result.output


@pytest.mark.parametrize("name", ["", "*.csv"], ids=["folder", "pattern"])
def test_commands_name_the_file_that_is_wrong_among_several(people: tuple[Path, Path], name: str) -> None:
    from click.testing import CliRunner

    from gramian.cli import main

    with (people[1] / "2.csv").open("a") as file:
        file.write("\nx,Rome\n")
    result = CliRunner().invoke(main, ["pca", str(people[1] / name)])
    assert result.exit_code == 3
    assert f"{people[1] / '2.csv'}: line 18" in result.output
