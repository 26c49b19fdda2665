"""Small files of every kind that the examples of the commands name, and a way to run commands."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from gramian.cli import main
from gramian.genetics import write_bed
from gramian.sources.plink import Genotypes, Snps


def write_rows(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    return path


def flowers(rng, n=60):
    kind = np.repeat(["rose", "tulip", "lily"], n // 3)
    base = {"rose": (5.0, 3.0, 1.5), "tulip": (6.0, 2.8, 4.5), "lily": (6.6, 3.0, 5.8)}
    for i, name in enumerate(kind):
        x = np.array(base[name]) + 0.3 * rng.normal(size=3)
        yield [f"p{i}", *(repr(float(v)) for v in x), repr(float(x.sum() + 0.1 * rng.normal())), name]


def moons(rng, n=80):
    t = np.pi * rng.random(n)
    for i, a in enumerate(t):
        upper = i % 2
        x, y = (np.cos(a), np.sin(a)) if upper else (1 - np.cos(a), 0.5 - np.sin(a))
        yield [*(repr(float(v)) for v in np.array([x, y]) + 0.05 * rng.normal(size=2)), "up" if upper else "down"]


def houses(rng, n=50):
    for _ in range(n):
        area, rooms, age = 60 + 80 * rng.random(), rng.integers(1, 7), 60 * rng.random()
        yield [area, rooms, age, 3 * area + 10 * rooms - age + 20 * rng.normal()]


def curve(rng, n=60):
    for x in np.linspace(0, 6, n):
        yield [x, np.sin(x) + 0.1 * rng.normal()]


def geyser(rng, n=120):
    for i in range(n):
        mean = (2.0, 55.0) if i % 3 == 0 else (4.4, 80.0)
        yield [mean[0] + 0.3 * rng.normal(), mean[1] + 6 * rng.normal()]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with the files that examples read, and models fitted to some of them."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    write_rows(folder / "flowers.csv", ["plant", "length", "width", "petal", "sum", "species"], flowers(rng))
    write_rows(folder / "more.csv", ["plant", "length", "width", "petal", "sum", "species"], flowers(rng, 12))
    write_rows(folder / "moons.csv", ["x", "y", "moon"], moons(rng))
    write_rows(folder / "houses.csv", ["area", "rooms", "age", "price"], houses(rng))
    write_rows(folder / "new-houses.csv", ["rooms", "age", "area"], ([r[1], r[2], r[0]] for r in houses(rng, 5)))
    write_rows(folder / "curve.csv", ["x", "y"], curve(rng))
    write_rows(folder / "geyser.csv", ["eruption", "waiting"], geyser(rng))
    write_rows(folder / "waiting.csv", ["minutes"], ([v] for v in rng.gamma(3.0, 2.0, 80)))
    died = rng.random(60) < 0.7
    write_rows(
        folder / "lifetimes.csv", ["weeks", "died"], zip(rng.weibull(1.5, 60) * 20, died.astype(int), strict=True)
    )
    write_cohort(folder, rng)
    return folder


def write_cohort(folder, rng):
    """Genotypes of 60 people on three chromosomes, a trait of theirs, and a covariate."""
    calls = rng.binomial(2, rng.uniform(0.2, 0.5, (45, 1)), (45, 60))
    height = calls.T @ rng.normal(size=45) + 4 * rng.normal(size=60)
    snps = Snps.numbered(45)
    snps.chromosome[:] = np.repeat(["1", "2", "3"], 15)
    write_bed(folder / "cohort.bed", Genotypes.from_calls(calls, snps=snps))
    side = (calls[:15].sum(axis=0) > np.median(calls[:15].sum(axis=0))).astype(int)
    people = [f"0\ts{i + 1}\t{'north' if north else 'south'}" for i, north in enumerate(side)]
    (folder / "groups.tsv").write_text("\n".join(["FID\tIID\tgroup", *people]) + "\n", "utf-8")
    for name, columns in {"traits": {"height": height}, "covariates": {"age": 20 + np.arange(60) % 50}}.items():
        rows = [f"0 s{i + 1} {value:g}" for i, value in enumerate(next(iter(columns.values())))]
        (folder / f"{name}.txt").write_text("\n".join([f"FID IID {next(iter(columns))}", *rows]) + "\n", "utf-8")


@pytest.fixture
def run(files, monkeypatch, tmp_path):
    """Run a command with the files of the session in reach, writing to a folder of the test's own."""
    for path in files.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)

    def call(*arguments, **settings):
        return CliRunner().invoke(main, [str(a) for a in arguments], **settings)

    return call


@pytest.fixture
def answer(run):
    """Run a command that must succeed, and return the JSON object it prints."""

    def call(*arguments, **settings):
        result = run(*arguments, "--json", **settings)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout, parse_constant=pytest.fail)

    return call


@pytest.fixture(scope="session")
def columns():
    """Read a CSV file as columns by name: numbers where they are, NaN where a cell is empty, else text."""

    def read(path):
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        return {name: _column([row[j] for row in rows]) for j, name in enumerate(header)}

    return read


def _column(cells):
    try:
        return np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return np.array(cells)
