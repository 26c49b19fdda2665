"""The table, as Markdown and as JSON. Standard library only."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.runner import Outcome, Settings
from bench.verdict import Runs

SUMMARY = (
    "workload",
    "ours",
    "fastest accurate peer",
    "its time",
    "ratio",
    "target",
    "met",
    "floor",
    "ours/floor",
    "passes (least)",
    "peak above data",
    "peak",
)
METHOD = """\
Every fit ran in a fresh process after a tiny warm-up fit; times are medians, and the order of the
solvers alternates. *Peak* is the largest resident size of the process, *above data* what the fit added
to the interpreter and the loaded data. *Residual* is the worst √(‖Av−σu‖²+‖Aᵀu−σv‖²)/‖A‖ and *angle* the
largest principal angle to the true subspace, both measured after the fit and in the same way for all. A
peer is *accurate* with a residual of at most max(10⁻⁶, 10× ours) (10⁻⁴ in float32) and, where σ_k and
σ_{k+1} are a thousandth of σ_1 apart, an angle of at most max(10⁻³, 10× ours). Only accurate peers enter
the ratio; for the memory map, which scikit-learn fits out of core in one way only, that one enters it
whatever its accuracy."""
DETAIL = (
    "solver",
    "time",
    "range",
    "runs",
    "peak above data",
    "peak",
    "residual",
    "angle",
    "status",
    "theirs/ours",
)


def markdown(outcomes: Sequence[Outcome], machine: dict[str, Any], settings: Settings, command: str) -> str:
    """Return the whole report."""
    parts = [_header(machine, settings, command), _summary(outcomes), *(_section(o) for o in outcomes)]
    return "\n\n".join(parts) + "\n"


def document(outcomes: Sequence[Outcome], machine: dict[str, Any], command: str) -> dict[str, Any]:
    """Return the same, every run included, ready for JSON."""
    return {"command": command, "machine": machine, "workloads": [asdict(outcome) for outcome in outcomes]}


def write(folder: Path, stem: str, text: str, content: dict[str, Any]) -> tuple[Path, Path]:
    """Write ``stem.md`` and ``stem.json``, each under a temporary name first."""
    folder.mkdir(parents=True, exist_ok=True)
    files = folder / f"{stem}.md", folder / f"{stem}.json"
    for file, body in zip(files, (text, json.dumps(content, indent=1) + "\n"), strict=True):
        partial = file.with_name(file.name + ".partial")
        partial.write_text(body, encoding="utf-8")
        partial.replace(file)
    return files


def _header(machine: dict[str, Any], settings: Settings, command: str) -> str:
    """Return the title, the machine, the versions and how the figures were taken."""
    scale = "" if settings.scale == 1 else f"\n\n**Shrunk to scale {settings.scale:g}: ratios mean nothing.**"
    lines = [f"- {name}: {value}" for name, value in machine.items()]
    return f"# PCA: Gramian against scikit-learn{scale}\n\n`{command}`\n\n" + "\n".join(lines) + f"\n\n{METHOD}"


def _summary(outcomes: Sequence[Outcome]) -> str:
    """Return the table with one line per workload."""
    rows = [_summary_row(outcome) for outcome in outcomes]
    return "## Summary\n\n" + table(SUMMARY, rows)


def _summary_row(outcome: Outcome) -> list[str]:
    """Return the cells of one workload."""
    verdict, work = outcome.verdict, outcome.workload
    ours = next(entry for entry in outcome.runs if entry.role == "ours")
    fine = verdict.status[ours.solver] == "accurate"
    rival = next((entry for entry in outcome.runs if entry.solver == verdict.rival), None)
    name = "none" if rival is None else f"{rival.solver} ({verdict.status[rival.solver]})"
    limit = "" if work.memory_target_mb is None else f", ≤ {work.memory_target_mb:,.0f} MB"
    passes = "?" if ours.passes is None else f"{ours.passes:g}"
    return [
        work.name,
        _seconds(ours.time) + ("" if fine else f" ({verdict.status[ours.solver]})"),
        name,
        _seconds(rival.time if rival else None),
        _times(verdict.ratio),
        f"{work.target:g}×{limit}",
        _met(verdict.met, verdict.memory_met),
        _seconds(outcome.floor.seconds),
        _times(verdict.over_floor),
        f"{passes} ({outcome.floor.passes})",
        _megabytes(ours.above),
        _megabytes(ours.peak),
    ]


def _section(outcome: Outcome) -> str:
    """Return the table of all solvers on one workload, the skipped ones and the warnings."""
    work, facts = outcome.workload, outcome.facts
    asked = "all components" if work.components is None else f"k = {work.components}"
    gap = "" if facts["gap"] is None else f", (σ_k − σ_{{k+1}})/σ_1 = {facts['gap']:.1e}"
    spread = f"σ_1/σ_k = {facts['first'] / facts['last']:.3g}"
    about = f"{work.rows:,}×{work.cols:,} {work.dtype}, {asked}, {spread}{gap}."
    ours = next(entry for entry in outcome.runs if entry.role == "ours")
    rows = [_detail_row(entry, outcome.verdict.status[entry.solver], ours) for entry in outcome.runs]
    notes = [f"- {skip.name}: not run, {skip.reason}" for skip in work.skipped]
    notes += [f"- {entry.solver} warned: {text}" for entry in outcome.runs for text in entry.warnings]
    return "\n\n".join([f"## {work.name}", about, table(DETAIL, rows), *(["\n".join(notes)] if notes else [])])


def _detail_row(entry: Runs, status: str, ours: Runs) -> list[str]:
    """Return the cells of one solver."""
    method = f" → {entry.method}" if entry.method and entry.method not in entry.solver else ""
    spread = f"{min(entry.seconds):.3g}–{max(entry.seconds):.3g}" if len(entry.seconds) > 1 else ""
    ratio = entry.time / ours.time if entry.time and ours.time else None
    return [
        entry.solver + method,
        _seconds(entry.time),
        spread,
        str(len(entry.seconds)),
        _megabytes(entry.above),
        _megabytes(entry.peak),
        _small(entry.residual),
        _small(entry.angle),
        status + ("; context only" if entry.role == "context" else ""),
        _times(ratio),
    ]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "∣") for cell in line) + " |" for line in lines)


def _seconds(value: float | None) -> str:
    """Return a time to three figures."""
    return "–" if value is None else f"{value:.3g} s"


def _times(value: float | None) -> str:
    """Return a ratio."""
    return "–" if value is None else f"{value:.2f}×"


def _small(value: float | None) -> str:
    """Return an error to two figures."""
    return "–" if value is None else f"{value:.1e}"


def _megabytes(values: Sequence[int]) -> str:
    """Return the largest of some sizes."""
    return f"{max(values) / 1e6:,.0f} MB" if values else "–"


def _met(met: bool | None, memory_met: bool | None) -> str:
    """Return yes or no, and the memory target's own where there is one."""
    words = {None: "–", True: "yes", False: "no"}
    return words[met] if memory_met is None else f"{words[met]}, memory {words[memory_met]}"
