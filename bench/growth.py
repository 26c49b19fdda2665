"""How the time of a fit grows with its rows: ``python -m bench.growth``.

For each method the rows double from line to line. Beside our time stand the exponent of its growth since the line
before, scikit-learn's time with the fastest of its solvers that is as accurate, and a
floor: what the arithmetic that any exact method has to do, or the reading of the data, takes at the machine's own
speed. scikit-learn is left out once it would take longer than ``--limit``.
"""

import argparse
import json
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import machine
from bench.anywhere import Nursery, Shape, compare_solvers, peers


@dataclass(frozen=True)
class Family:
    """One method on data of one kind, from so many rows to so many."""

    name: str
    shape: Shape
    first: int
    last: int

    @property
    def sizes(self) -> list[int]:
        """Rows that double."""
        count = 1 + round(math.log2(self.last / self.first))
        return [self.first * 2**i for i in range(count)]

    def floor(self, rows: int, speed: dict[str, float]) -> float:
        """Seconds that the least arithmetic and reading take."""
        p, gflops = self.shape.cols, 1e9 * speed["gflops_float64"]
        read = 8.0 * rows * p / (1e9 * speed["bandwidth_gb_s"])
        match self.shape.kind:
            case "PCA" | "Ridge" | "RidgeCV":  # one symmetric product
                return max(read, rows * p * p / gflops)
            case "KernelPCA":  # every pair of rows compared once
                return rows * rows * p / gflops
            case "KernelRidge" if self.shape.option == "linear":  # a problem of p features
                return max(read, rows * p * p / gflops)
            case "KernelRidge":  # ... and a Cholesky factor, for an answer whatever the kernel and λ
                return (rows * rows * p + rows**3 / 3) / gflops
            case _:  # one pass
                return read


FAMILIES = (
    Family("PCA of p = 200, all components", Shape("PCA", 1, 0, 200, 200), 12_500, 400_000),
    Family("PCA of p = 2,000, k = 10", Shape("PCA", 1, 0, 2_000, 10), 2_500, 40_000),
    Family("RidgeCV of p = 100, 13 λ", Shape("RidgeCV", 1, 0, 100), 12_500, 400_000),
    Family("KernelPCA of p = 10, Gaussian, k = 5", Shape("KernelPCA", 1, 0, 10, 5, option="rbf"), 1_250, 20_000),
    Family("KernelPCA of p = 10, polynomial, k = 5", Shape("KernelPCA", 1, 0, 10, 5, option="poly"), 1_250, 20_000),
    Family("KernelRidge of p = 10, Gaussian, λ = 1", Shape("KernelRidge", 1, 0, 10, option="rbf"), 1_250, 20_000),
    Family("KernelRidge of p = 10, linear, λ = 1", Shape("KernelRidge", 1, 0, 10, option="linear"), 1_250, 80_000),
    Family(
        "GaussianMixture of p = 10, K = 5, full, whole fits",
        Shape("GaussianMixture", 1, 0, 10, 5, option="full"),
        12_500,
        400_000,
    ),
)


def measure_growth(
    family: Family, nursery: Nursery, limit: float, speed: dict[str, float], say: Callable[[str], None] = print
) -> list[dict[str, Any]]:
    """Return one line of the table for each size; a solver that would go over the limit is asked no more."""
    lines: list[dict[str, Any]] = []
    left, before = ["ours", *peers(family.shape)], dict[str, float]()
    for rows in family.sizes:
        shape = replace(family.shape, rows=rows)
        # no exponent is above 3: a solver whose last time eightfold is over the limit is left out
        left = [name for name in left if 8 * before.get(name, 0.0) <= (math.inf if name == "ours" else limit)]
        together = nursery.run(shape, limit, left)
        every = {name: together.get(name, {"failure": "left out"}) for name in ["ours", *peers(shape)]}
        found = compare_solvers(shape, limit, 1, None, False, every)
        before = {name: one["seconds"] for name, one in together.items() if "failure" not in one}
        left = [name for name in left if name in before]
        exponent = math.log2(found["ours"] / lines[-1]["ours"]) if lines and lines[-1]["ours"] else None
        lines.append(found | {"rows": rows, "exponent": exponent, "floor": family.floor(rows, speed)})
        say(_row(lines[-1]))
        if "ours" not in left:
            break
    return lines


HEAD = ("rows", "Gramian", "exponent", "scikit-learn", "ratio", "floor", "Gramian/floor", "method")


def _row(line: dict[str, Any]) -> str:
    """Return a line of the table."""
    theirs = "" if line["theirs"] is None else f"{_time(line['theirs'])} ({line['rival']})"
    ratio = "" if line["ratio"] is None else f"{line['ratio']:.2f}"
    exponent = "" if line["exponent"] is None else f"{line['exponent']:.2f}"
    ours = line["failure"] or _time(line["ours"]) + ("" if line["accurate"] else " !")
    over = "" if line["failure"] else f"{line['ours'] / line['floor']:.1f}"
    cells = [f"{line['rows']:,}", ours, exponent, theirs, ratio, _time(line["floor"]), over, line["method"]]
    return "| " + " | ".join(cells) + " |"


def _time(seconds: float) -> str:
    """Return a time with three digits and its unit."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def main(argv: Sequence[str] | None = None, say: Callable[[str], None] = print) -> int:
    """Measure and print; the report is rewritten after each method, so a stopped run keeps what it has."""
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="methods whose name contains NAME")
    parser.add_argument("--scale", type=float, default=1.0, help="multiply all numbers of rows")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a fit of scikit-learn may take")
    parser.add_argument("--out", type=Path, help="write the report and all figures to this name .md and .json")
    args = parser.parse_args(argv)
    facts, speed = machine.describe(), machine.probe(256, 1_500)
    said = "".join(f" --only {name!r}" for name in args.only or []) + f" --scale {args.scale:g}" * (args.scale != 1)
    head = ["# How time grows with rows", "", f"`python -m bench.growth{said} --limit {args.limit:g}`", ""]
    head += [", ".join(f"{name} {value}" for name, value in (facts | speed).items())]
    head += [f"Python {platform.python_version()}", "", "Times are medians; data from seed 1; `!` marks what is less"]
    head += ["accurate than the others. The floor is at the speed of one large product, by all cores.", ""]
    text, tables = "\n".join(head), dict[str, list[dict[str, Any]]]()
    say(text)
    nursery = Nursery(processor=False)
    for family in FAMILIES:
        if args.only and not any(name in family.name for name in args.only):
            continue
        scaled = replace(family, first=round(family.first * args.scale), last=round(family.last * args.scale))
        top = f"## {family.name}\n\n| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|"
        say(top)
        tables[family.name] = measure_growth(scaled, nursery, args.limit, speed, say)
        text += top + "\n" + "\n".join(_row(line) for line in tables[family.name]) + "\n\n"
        if args.out:
            args.out.with_suffix(".md").write_text(text, encoding="utf-8")
            record = {"machine": facts | speed, "tables": tables}
            args.out.with_suffix(".json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    nursery.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
