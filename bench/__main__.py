"""Gramian's PCA against scikit-learn's, workload by workload: ``python -m bench`` from the project's root."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from bench import report
from bench.runner import ROOT, Bench, Outcome, Settings, run_worker
from bench.workloads import CANDIDATES, WORKLOADS, Workload


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    made.add_argument("--only", action="append", metavar="NAME", help="workloads whose name contains NAME")
    made.add_argument("--scale", type=float, default=1.0, help="multiply both sides of every shape")
    made.add_argument("--list", action="store_true", help="name the workloads and stop")
    made.add_argument("--repeats", type=int, help="runs of every fit (default: 7 to 1, fewer for slower ones)")
    made.add_argument("--limit", type=float, default=300.0, metavar="S", help="seconds a fit may take (default 300)")
    made.add_argument("--keep", action="store_true", help="keep the data files in bench/.cache")
    made.add_argument("--out", type=Path, default=ROOT / "bench" / "results", help="folder for the tables")
    made.add_argument("--cache", type=Path, default=Settings.cache, help="folder for data and references")
    made.add_argument(
        "--candidate",
        choices=sorted(CANDIDATES),
        default="gramian",
        help="sklearn puts scikit-learn in our place: ratios near one check the harness",
    )
    return made


def chosen(only: list[str] | None) -> list[Workload]:
    """Return the workloads whose names contain one of ``only``, or all."""
    return [work for work in WORKLOADS if only is None or any(part in work.name for part in only)]


def stem(args: argparse.Namespace) -> str:
    """Return the name of the report, which tells a partial or a shrunken run from a whole one."""
    parts = [f"pca-{datetime.now(UTC):%Y-%m-%d}", *(args.only or [])]
    parts += [f"scale{args.scale:g}"] if args.scale != 1 else []
    parts += ["selfcheck"] if args.candidate != "gramian" else []
    return "-".join(parts)


def command_line(args: argparse.Namespace) -> str:
    """Return the command that gives the same figures, without the folders of this machine."""
    parts = ["python -m bench", *(f"--only {name}" for name in args.only or [])]
    parts += [f"--scale {args.scale:g}"] if args.scale != 1 else []
    parts += [f"--repeats {args.repeats}"] if args.repeats else []
    parts += [f"--limit {args.limit:g}"] if args.limit != parser().get_default("limit") else []
    parts += [f"--candidate {args.candidate}"] if args.candidate != "gramian" else []
    return " ".join(parts)


def main(argv: list[str] | None = None) -> int:
    """Run the chosen workloads; the report is rewritten after each, so a stopped run keeps what it has."""
    args = parser().parse_args(argv)
    workloads = chosen(args.only)
    if args.list or not workloads:
        print("\n".join(work.name for work in WORKLOADS))
        return 0 if args.list else 2
    settings = Settings(args.scale, args.candidate, args.limit, args.repeats, args.keep, args.cache.resolve())
    machine = run_worker("machine", "--scale", repr(args.scale))
    command = command_line(args)
    bench, outcomes = Bench(settings, machine), list[Outcome]()
    text = ""
    for workload in workloads:
        outcomes.append(bench.run(workload))
        text = report.markdown(outcomes, machine, settings, command)
        report.write(args.out, stem(args), text, report.document(outcomes, machine, command))
    print("\n" + text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
