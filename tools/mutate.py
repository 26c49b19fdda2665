"""Make small wrong changes in the modules that compute what users rely on, and see whether their tests notice.

Usage: python tools/mutate.py [--module NAME] [--sample N] [--minutes M] [--seed N] [--jobs N]

cosmic-ray makes the changes, one at a time: an operator, a comparison, a number, a truth value, a sign, and, by
:class:`NameReplacer`, ``any`` for ``all`` and the like. ``tools/mutate.toml`` names the modules and the tests of each;
``tools/survivors.toml`` lists changes that no test can notice because they change nothing, each with its reason. All of
it happens in copies of the tree in a temporary folder. The exit status is 1 where less than 90 % are noticed.

Each run of the tests is a fork of a process that has loaded everything but Gramian and the tests. It ends with the
first failure, and the quickest tests come first, as they were timed without any change.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names
from parso.python.tree import Name

ROOT = Path(__file__).resolve().parents[1]
NOTICED = 0.9  # the least share of changes that the tests must notice
UNSEEN = ("check_finite",)  # arguments that change no result: SciPy computes the same of finite numbers it looked at
# Loaded once, before the forks; what is not there is not needed by the tests either.
HEAVY = (
    "hypothesis", "matplotlib.figure", "mpmath", "numpy", "pytest", "rich.console", "scipy.linalg", "scipy.optimize",
    "bokeh.plotting", "h5py", "pandas", "pyarrow.csv", "pyarrow.parquet", "scipy.sparse.linalg", "scipy.stats",
    "sklearn.utils.estimator_checks", "torch", "zarr",
)  # fmt: skip
PYTEST = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning")
PAIRS = (
    "all any", "max min", "maximum minimum", "argmax argmin", "nanmax nanmin", "fmax fmin", "floor ceil", "left right",
    "lower upper", "append extend", "zeros ones", "mean sum", "first last", "row column",
)  # fmt: skip
SWAPPED = {a: b for pair in PAIRS for a, b in (pair.split(), pair.split()[::-1])}


class NameReplacer(Operator):
    """``any`` for ``all``, ``min`` for ``max`` and others that are easily confused, where they are called."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Where a name can be put for another."""
        if isinstance(node, Name) and node.value in SWAPPED and not node.is_definition():
            after = node.get_next_leaf()
            if after is not None and after.value == "(":
                yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Put the other name."""
        node.value = SWAPPED[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[Any, ...]:
        """None: cosmic-ray tests its own operators by them."""
        return ()


@dataclass(frozen=True)
class Mutant:
    """One change of a module: its text after the change, and the line that changed, before and after."""

    number: int
    code: str
    line: int
    before: str
    after: str

    @property
    def shown(self) -> tuple[str, str]:
        """The line before and after, as :file:`survivors.toml` has it."""
        return self.before.strip(), self.after.strip()


def find_mutants(source: str, wanted: Sequence[str]) -> list[Mutant]:
    """Every change of a module by the operators wanted, without those that only touch type annotations.

    cosmic-ray parses afresh for each change, so it is given one function or class of the module at a time.
    """
    kinds = [get_operator(name) for name in operator_names() if any(fnmatch(name, like) for like in wanted)]
    operators, quiet = [*(kind() for kind in kinds), NameReplacer()], _annotated(source)
    found: dict[tuple[int, str], Mutant] = {}
    head = ""
    for part in get_ast(source).children:
        text = part.get_code()
        first, nodes = head.count("\n"), list(ast_nodes(get_ast(text)))
        for operator in operators:
            places = [(*place, node) for node in nodes for place in operator.mutation_positions(node)]
            for occurrence, ((line, column), _, node) in enumerate(places):
                if any(begin <= (first + line, column) < end for begin, end in quiet):
                    continue
                if node.parent.type in ("parameters", "param", "argument") and node.type == "operator":
                    continue  # the star of a signature, which cosmic-ray takes for a product
                try:
                    changed = str(mutate_code(text, operator, occurrence))
                except AttributeError:  # cosmic-ray replaces exceptions by name, and fails where one is a tuple of them
                    continue
                pairs = enumerate(zip(text.splitlines(), changed.splitlines(), strict=False))
                i, (before, after) = next((i, pair) for i, pair in pairs if _differ(*pair))
                mutant = Mutant(
                    len(found), head + changed + source[len(head) + len(text) :], first + i + 1, before, after
                )
                found.setdefault((first + i, after), mutant)
        head += text
    return sorted(found.values(), key=lambda mutant: mutant.line)


def _differ(before: str, after: str) -> bool:
    return re.sub(r"\s+", "", before) != re.sub(r"\s+", "", after)


def _annotated(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations, decorators, what is for mypy alone, which checks what they say, and what is unseen stand."""
    parts: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            parts += node.decorator_list
        if isinstance(node, ast.FunctionDef):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
            parts += [node.returns, *(argument.annotation for argument in every if argument is not None)]
        elif isinstance(node, ast.AnnAssign):
            parts.append(node.annotation)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            parts.append(node.test)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
            parts.append(node.args[0])
        elif isinstance(node, ast.keyword) and node.arg in UNSEEN:
            parts.append(node.value)
    spans = [part for part in parts if part is not None]
    return [((s.lineno, s.col_offset), (s.end_lineno or s.lineno, s.end_col_offset or 0)) for s in spans]


def copy_tree(folder: Path) -> None:
    """Copy every file of the project that git knows or would add; without git, every file that is not hidden."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        names = listed.stdout.splitlines()
    else:
        tops = ("bench", "docs", "src", "tests", "tools")
        names = [str(file.relative_to(ROOT)) for top in tops for file in (ROOT / top).rglob("*")]
        names += [file.name for file in ROOT.iterdir() if not file.name.startswith(".")]
        names = [name for name in names if "__pycache__" not in name]
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


class QuickestFirst:
    """A plugin of pytest that times the tests where nobody has, and runs the quickest first, file by file."""

    def __init__(self, tree: Path) -> None:
        self.file = tree / "seconds.json"
        self.known: dict[str, float] = json.loads(self.file.read_text("utf-8")) if self.file.exists() else {}
        self.seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Sort files by the time of all their tests, so that what a file sets up once is set up once, then tests."""
        files: dict[str, float] = {}
        for item in items:
            files[str(item.path)] = files.get(str(item.path), 0.0) + self.known.get(item.nodeid, 0.0)
        items.sort(key=lambda item: (files[str(item.path)], str(item.path), self.known.get(item.nodeid, 0.0)))

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add up what a test took."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        """Keep the times of the first run."""
        if not self.known:
            self.file.write_text(json.dumps(self.seconds), encoding="utf-8")


def run_tests(tree: Path, tests: Sequence[str], limit: float | None) -> bool | None:
    """Whether the tests pass in this tree; None where they took longer than the limit."""
    child = os.fork()
    if not child:
        os.setsid()
        os.chdir(tree)
        sys.path.insert(0, str(tree / "src"))
        path = os.pathsep.join(filter(None, (str(tree / "src"), os.environ.get("PYTHONPATH"))))
        os.environ |= {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
        sys.dont_write_bytecode = True
        with open(tree / "tests.log", "wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        status = 3
        try:
            import pytest

            status = int(pytest.main([*PYTEST, *tests], plugins=[QuickestFirst(tree)]))
            if not str(sys.modules["gramian"].__file__).startswith(str(tree)):
                status = 4
        finally:
            sys.stdout.flush()
            os._exit(status)
    end = time.monotonic() + (limit or 3600.0)
    while time.monotonic() < end:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(code) == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def judge(
    tree: Path,
    path: str,
    source: str,
    mutants: Sequence[Mutant],
    tests: Sequence[str],
    limit: float,
    end: float,
    out: Any,
) -> None:
    """Try each change in one copy of the tree; say of each whether the tests noticed, or None where time was up."""
    for mutant in mutants:
        left = end - time.monotonic()
        passed = None
        if left > 0:
            (tree / path).write_text(mutant.code, encoding="utf-8")
            passed = run_tests(tree, tests, min(limit, left))
            (tree / path).write_text(source, encoding="utf-8")
        out.put((mutant.number, None if passed is None and time.monotonic() >= end else passed is not True))


def try_module(
    name: str,
    settings: dict[str, Any],
    sample: int | None,
    seed: int,
    jobs: int,
    trees: Sequence[Path],
    end: float = math.inf,
) -> tuple[int, int, int]:
    """Try the changes of one module, print those unnoticed; return how many were noticed, tried and harmless.

    Where there is an end, changes come in random order, and those that are not tried until then are not counted.
    """
    path = f"src/{name.replace('.', '/')}.py"
    source = (ROOT / path).read_text("utf-8")
    tests = [*settings["modules"][name], path]
    for tree in trees:
        (tree / "seconds.json").unlink(missing_ok=True)
    begin = time.monotonic()
    if run_tests(trees[0], tests, None) is not True:
        print((trees[0] / "tests.log").read_text("utf-8")[-3000:])
        raise SystemExit(f"{name}: its tests fail without any change.")
    unchanged = time.monotonic() - begin
    limit = 20.0 + 4.0 * jobs * unchanged
    for tree in trees[1:]:
        shutil.copy2(trees[0] / "seconds.json", tree)
    every = find_mutants(source, settings["operators"])
    count = len(every) if sample is None else min(sample, len(every))
    mutants = random.Random(seed).sample(every, count) if count < len(every) or end < math.inf else every
    drawn = (
        f"{len(mutants)} of {len(every)} changes, drawn with seed {seed}"
        if mutants is not every
        else f"all {len(every)} changes"
    )
    print(f"{name}: {drawn}; its tests take {unchanged:.1f} s", flush=True)
    listed = tomllib.loads((ROOT / "tools" / "survivors.toml").read_text("utf-8")).get("survivor", ())
    mine = [entry for entry in listed if entry["module"] == name]
    lines = {entry["before"] for entry in mine if "after" not in entry}  # however they are changed
    changes = {(entry["before"], after) for entry in mine for after in entry.get("after", ())}
    tried = [mutant for mutant in mutants if mutant.shown not in changes and mutant.shown[0] not in lines]
    accepted = len(mutants) - len(tried)
    fork = multiprocessing.get_context("fork")
    out = fork.SimpleQueue()
    workers = [
        fork.Process(target=judge, args=(tree, path, source, tried[j::jobs], tests, limit, end, out))
        for j, tree in enumerate(trees)
    ]
    for worker in workers:
        worker.start()
    by_number, noticed, done = {mutant.number: mutant for mutant in tried}, 0, 0
    for _ in tried:
        number, seen = out.get()
        if seen is None:
            continue
        noticed, done = noticed + seen, done + 1
        if not seen:
            before, after = by_number[number].shown
            place = f"{path}:{by_number[number].line}: not noticed ({done}/{len(tried)})"
            print(f"{place}\n  - {before}\n  + {after}", flush=True)
    for worker in workers:
        worker.join()
    share, rest = noticed / max(done, 1), f"; {len(tried) - done} not tried in time" if done < len(tried) else ""
    print(f"{name}: {noticed} of {done} changes noticed, {share:.1%}; {accepted} harmless{rest}", flush=True)
    return noticed, done, accepted


def main() -> int:
    """Try the modules asked for; return the exit status."""
    settings = tomllib.loads((ROOT / "tools" / "mutate.toml").read_text("utf-8"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--module", action="append", choices=sorted(settings["modules"]), help="may be repeated")
    parser.add_argument("--sample", type=int, help="at most so many changes of a module, drawn at random")
    parser.add_argument("--minutes", type=float, help="stop after so long; modules get equal shares of what is left")
    parser.add_argument("--seed", type=int, default=0, help="of the sample [default: 0]")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="copies of the tree that are tested at a time"
    )
    given = parser.parse_args()
    last = math.inf if given.minutes is None else time.monotonic() + 60 * given.minutes
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for heavy in HEAVY:
        with suppress(ImportError):
            import_module(heavy)
    results = {}
    with tempfile.TemporaryDirectory(prefix="gramian-mutate-") as folder:
        trees = [Path(folder, str(j)) for j in range(given.jobs)]
        for tree in trees:
            copy_tree(tree)
        names = given.module or list(settings["modules"])
        for i, name in enumerate(names):
            share = (last - time.monotonic()) / (len(names) - i)
            end = time.monotonic() + share if last < math.inf else math.inf
            results[name] = try_module(name, settings, given.sample, given.seed, given.jobs, trees, end)
    weak = [name for name, (noticed, tried, _) in results.items() if noticed < NOTICED * tried]
    noticed, tried, accepted = (sum(column) for column in zip(*results.values(), strict=True))
    share = noticed / max(tried, 1)
    print(f"{len(results)} modules: {noticed} of {tried} changes noticed, {share:.1%}; {accepted} harmless")
    print(*(f"Less than {NOTICED:.0%} noticed: {name}" for name in weak), sep="\n", end="\n" if weak else "")
    return 1 if weak else 0


if __name__ == "__main__":
    sys.exit(main())
