"""Queries of a real PostgreSQL server, started here by the user that runs the tests (as root, by another).

Skipped where the server (Debian's package ``postgresql``) or the driver is not installed; GRAMIAN_REQUIRE_POSTGRESQL=1
asks for both.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn import config_context

import gramian
from gramian.cli import main
from gramian.sources import read_table
from gramian.sources.errors import SourceError

REQUIRED = os.environ.get("GRAMIAN_REQUIRE_POSTGRESQL") == "1"
if REQUIRED:
    import adbc_driver_postgresql.dbapi as adbc
else:
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="ADBC is not installed (gramian[postgresql])")
ROWS = 3000
TABLE = f"""
create table visits as
select i as visit, 20 + i % 60 as age, (i * 0.37)::numeric(10, 2) as spent, sin(i)::float8 as mood,
       case when i % 50 = 0 then null else (i * i % 91)::int end as clicks, 'p' || i as name
from generate_series(1, {ROWS}) i
"""
NUMBERS = "select age, spent, mood, clicks from visits order by visit"


def find_programs() -> Path:
    """Where the server is: on the path, or in Debian's folder of the newest version."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    folders = [folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()]
    if not folders:
        assert not REQUIRED, "GRAMIAN_REQUIRE_POSTGRESQL=1 and no server is installed (Debian: postgresql)"
        pytest.skip("no PostgreSQL server is installed (Debian: postgresql)")
    return folders[-1]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server that listens on a socket in a folder of its own, and holds one table."""
    programs, folder = find_programs(), tempfile.mkdtemp(prefix="gramian-pg-")
    other: dict[str, Any] = {}
    if os.getuid() == 0:  # which the server refuses to run as
        import pwd

        owner = next(pwd.getpwnam(name) for name in ("postgres", "nobody"))
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        other = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **other}
    data, server = f"{folder}/data", None
    try:
        words = ["-D", data, "-A", "trust", "-U", "tester", "-N", "-E", "UTF8", "--locale=C"]
        subprocess.run([programs / "initdb", *words], check=True, **quiet)
        words = ["-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        server = subprocess.Popen([programs / "postgres", *words], **quiet)
        address = f"postgresql://tester@/postgres?host={folder}"
        until = time.monotonic() + 60
        while True:
            try:
                with adbc.connect(address) as connection, connection.cursor() as cursor:
                    cursor.execute(TABLE)
                    connection.commit()
                    break
            except adbc.Error:
                assert server.poll() is None, "the server ended"
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        yield address
    finally:
        if server is not None:
            server.terminate()
            server.wait()
        shutil.rmtree(folder)


def expected() -> Any:
    i = np.arange(1, ROWS + 1)
    clicks = np.where(i % 50 == 0, np.nan, i * i % 91)
    return np.column_stack([20 + i % 60, np.round(i * 37.0) / 100, np.sin(i), clicks])


@pytest.mark.parametrize("memory", [0.01, 1024], ids=["in a file", "in memory"])
@pytest.mark.parametrize("form", ["reader", "stream"])
def test_results_of_adbc_are_tables(address: str, memory: float, form: str) -> None:
    with adbc.connect(address) as connection, connection.cursor() as cursor, config_context(working_memory=memory):
        cursor.execute(NUMBERS)
        source = gramian.open(cursor.fetch_record_batch() if form == "reader" else cursor.fetch_arrow())
        assert source.resident == (memory > 1)
        assert source.feature_names == ["age", "spent", "mood", "clicks"]
        for _ in range(2):
            np.testing.assert_allclose(source.to_array(), expected(), rtol=1e-14, atol=1e-14)


def test_a_query_of_a_server_is_a_table(address: str) -> None:
    query = "select name, age, spent, mood from visits where visit <= 100 order by visit;"
    table = read_table(address, sql=query, target="spent", id="name")
    np.testing.assert_allclose(table.source.to_array(), expected()[:100, [0, 2]], atol=1e-14)
    np.testing.assert_array_equal(table.target, expected()[:100, 1])
    assert table.ids is not None
    assert table.ids.tolist() == [f"p{i}" for i in range(1, 101)]
    assert len(table.checksum()) == 64
    assert table.checksum() == read_table(address, sql=query, target="spent", id="name").checksum()
    assert table.checksum() != read_table(address, sql="select age from visits").checksum()


@pytest.mark.parametrize(
    "wrong",
    ["select nothing from visits", "drop table visits", "delete from visits", "select * from", "set work_mem = '4MB'"],
)
def test_what_gives_no_table_is_refused_and_nothing_is_written(address: str, wrong: str) -> None:
    before = set(Path(tempfile.gettempdir()).glob("gramian-*/query.parquet"))
    with pytest.raises(SourceError, match="query"):
        read_table(address, sql=wrong)
    assert set(Path(tempfile.gettempdir()).glob("gramian-*/query.parquet")) <= before
    assert read_table(address, sql="select count(*) as n from visits").source.to_array() == ROWS


def test_the_command_reads_a_server_and_shows_no_password(address: str, tmp_path: Path) -> None:
    spoken = address.replace("tester@", "tester:secret@")
    query = "select age, spent, mood from visits"
    result = CliRunner().invoke(main, ["pca", spoken, "--sql", query, "--out", str(tmp_path / "out"), "--json"])
    assert result.exit_code == 0, result.output
    assert '"rows": 3000' in result.stdout
    assert "secret" not in result.output
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or b"secret" not in path.read_bytes(), path
    for wrong in (["--sql", "select nothing"], []):
        result = CliRunner().invoke(main, ["pca", spoken, *wrong])
        assert result.exit_code in (2, 3)
        assert "secret" not in result.output
    absent = "postgresql://me:secret@localhost:1/none"
    result = CliRunner().invoke(main, ["pca", absent, "--sql", query])
    assert result.exit_code == 3
    assert "secret" not in result.output
