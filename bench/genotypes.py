"""Genotype PCA against PLINK 1.9 and PLINK 2: ``python -m bench.genotypes --folder FOLDER``.

3,192 people on a map, 1 % of the genotypes missing, 10 components. Each program runs as a fresh process on the same
``.bed`` file, from start to its ``.eigenvec`` and ``.eigenval`` files; wall time and peak memory are those of the
process. The agreement is the smallest |cos| between the components that stand out of the noise and those of our exact
mode. Programs that are not installed are left out and named.

With ``--tolerances`` the same table is made of ``GenotypePCA`` at tolerances of 1e-4, 1e-5 and 1e-6 beside
``plink2 --pca approx``, with the processor seconds of each.

With ``--cohort 3192x500568`` (people × SNPs of three populations, neighbours correlated, 1 % missing) the steps before
the components are measured instead: pruning, kinship of all pairs, and ``gramian pca --auto`` from the file to its
report beside ``plink2 --pca approx`` alone. Lists of both programs are compared line by line. ``--steps`` takes some of
them; ``--note`` adds a line to the results, such as what else the machine did.
"""

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np

import gramian
from bench.machine import describe, probe
from gramian.genetics.simulation import simulate_genotypes

ROOT = Path(__file__).parents[1]
PEOPLE, COMPONENTS = 3_192, 10
PEERS = {
    "plink2 --pca": ("plink2", ["--pca", str(COMPONENTS)]),
    "plink2 --pca approx": ("plink2", ["--pca", str(COMPONENTS), "approx"]),
    "plink1.9 --pca": ("plink1.9", ["--pca", str(COMPONENTS)]),
}
OURS = {"gramian": "krylov", "gramian, exact": "exact"}
TOLERANCES = ("1e-4", "1e-5", "1e-6")
# A process begins with the peak memory of the one that started it, so a small one starts each program.
LAUNCH = """
import os, sys, time
start = time.perf_counter()
child = os.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
processor = usage.ru_utime + usage.ru_stime
sys.stderr.write(f"\\n{time.perf_counter() - start} {usage.ru_maxrss} {processor}\\n")
sys.exit(os.waitstatus_to_exitcode(status))
"""
REST = 5.0  # seconds between runs: the processor's clock recovers


@dataclass(frozen=True)
class Run:
    """One program's time, memory and eigenvectors."""

    name: str
    seconds: float
    megabytes: float
    vectors: Any
    said: str
    processor: float = 0.0  # seconds of all cores


def simulated(folder: Path, snps: int) -> Path:
    """The file of so many SNPs, made once."""
    path = folder / f"people-{snps}.bed"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        print(f"simulating {PEOPLE} × {snps}", flush=True)
        places = np.random.default_rng(0).uniform(0, 1, (PEOPLE, 2))
        simulate_genotypes(path, snps, positions=places, fst=0.005, missing=0.01, seed=1)
    return path


def run(name: str, command: list[str], out: Path) -> Run:
    """Run a command, whole, and read what it wrote."""
    sleep(REST)
    done = subprocess.run([sys.executable, "-S", "-c", LAUNCH, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stdout}{done.stderr}")
    seconds, kilobytes, processor = map(float, done.stderr.strip().splitlines()[-1].split())
    vectors = eigenvectors(out.with_suffix(".eigenvec")) if out.with_suffix(".eigenvec").exists() else None
    return Run(name, seconds, kilobytes / 1024, vectors, done.stdout, processor)


def eigenvectors(path: Path) -> Any:
    """The numbers of an ``.eigenvec`` file of either version of PLINK."""
    lines = [line.split() for line in path.read_text("utf-8").splitlines()]
    rows = lines[1:] if lines[0][0].startswith("#") else lines
    return np.array([row[-COMPONENTS:] for row in rows], dtype=float)


def worker(bed: Path, solver: str, tol: float, out: Path) -> None:
    """Our side: fit, and write the same two files."""
    model = gramian.GenotypePCA(COMPONENTS, solver=solver, tol=tol).fit(bed)
    names = zip(model.samples_.fid, model.samples_.iid, model.eigenvectors_.tolist(), strict=True)
    rows = [f"{fid} {iid} {' '.join(f'{x:.6g}' for x in u)}\n" for fid, iid, u in names]
    out.with_suffix(".eigenvec").write_text("".join(rows), encoding="utf-8")
    out.with_suffix(".eigenval").write_text("".join(f"{x:.6g}\n" for x in model.eigenvalues_), encoding="utf-8")
    found = model.certificate_
    residual = found.residuals[: model.n_separated_].max(initial=0.0)
    print(
        f"{found.method}; {found.passes} passes; {model.n_separated_} separated; residual {residual:.1e}; "
        f"tolerance {found.tolerance:g} {'met' if found.converged else 'NOT met'}"
    )


def compared(folder: Path, snps: int, only: list[str] | None) -> list[Run]:
    """Every program on one file."""
    bed, out = simulated(folder, snps), folder / "out"
    bed.read_bytes()  # into the page cache, for all alike
    runs = []
    for name, solver in OURS.items():
        if only is None or name in only:
            command = [sys.executable, "-m", "bench.genotypes", "--worker", str(bed), solver, TOLERANCES[0], str(out)]
            runs.append(shown(run(name, command, out)))
    for name, (program, options) in PEERS.items():
        if (only is None or name in only) and shutil.which(program):
            threads = ["--threads", str(os.cpu_count())]
            command = [program, "--bfile", str(bed.with_suffix("")), *options, *threads, "--out", str(out)]
            runs.append(shown(run(name, command, out)))
    return runs


def tolerance_table(bed: Path, times: int, threads: int) -> list[str]:
    """A row for ``GenotypePCA`` at each tolerance and for ``plink2 --pca approx``, against our exact mode."""
    out = bed.with_name("components")
    runs: dict[str, Run] = {}
    commands = {
        f"gramian, tol={tol}": [sys.executable, "-m", "bench.genotypes", "--worker", str(bed), "krylov", tol, str(out)]
        for tol in TOLERANCES
    }
    exact = [sys.executable, "-m", "bench.genotypes", "--worker", str(bed), "exact", TOLERANCES[0], str(out)]
    commands["gramian, exact"] = exact
    if shutil.which("plink2"):
        options = ["--pca", str(COMPONENTS), "approx", "--threads", str(threads), "--out", str(out)]
        commands["plink2 --pca approx"] = ["plink2", "--bfile", str(bed.with_suffix("")), *options]
    for _ in range(times):
        for name, command in commands.items():
            with_threads = command if command[0] == "plink2" else ["env", f"OPENBLAS_NUM_THREADS={threads}", *command]
            found = shown(run(name, with_threads, out))
            if name not in runs or found.seconds < runs[name].seconds:
                runs[name] = found
    reference = runs["gramian, exact"]
    separated = int(reference.said.split(" separated")[0].split()[-1])
    lines = [
        f"{separated} of {COMPONENTS} components stand out of the noise; smallest |cos| of these with our exact mode.",
        "",
        "| program | s | CPU s | peak MB | smallest \\|cos\\| | said |",
        "|---|---|---|---|---|---|",
    ]
    for name, found in runs.items():
        cosines = np.abs(np.sum(found.vectors[:, :separated] * reference.vectors[:, :separated], axis=0))
        said = found.said.strip().splitlines()[-1] if name.startswith("gramian") else ""
        lines.append(
            f"| {name} | {found.seconds:.2f} | {found.processor:.2f} | {found.megabytes:.0f} | "
            f"{cosines.min(initial=1.0):.6f} | {said} |"
        )
    return lines


@dataclass(frozen=True)
class StepOfCohort:
    """What plink2 and we do to the same fileset, and the lists that have to be the same, by their endings."""

    name: str
    theirs: list[str]
    ours: list[str]
    lists: tuple[tuple[str, str], ...] = ()


PRUNE_LISTS, KING_LISTS = ((".prune.in",) * 2, (".prune.out",) * 2), ((".king.cutoff.in.id",) * 2,)
STEPS = {
    **{
        f"prune {' '.join(window)}": StepOfCohort(
            f"`--indep-pairwise {' '.join(window)}`",
            ["--indep-pairwise", *window],
            # the Debian plink2 has the order of PLINK 1.9; that of PLINK 2 since 2023 is ours by default
            ["prune", "FILE", "--indep-pairwise", *window, "--order", "plink1", "--out", "OUT"],
            PRUNE_LISTS,
        )
        for window in (["50", "5", "0.2"], ["200", "20", "0.2"], ["1000", "100", "0.2"], ["500kb", "1", "0.2"])
    },
    "king cutoff": StepOfCohort(
        "`--king-cutoff 0.0884`",
        ["--king-cutoff", "0.0884"],
        ["king", "FILE", "--cutoff", "0.0884", "--out", "OUT"],
        KING_LISTS,
    ),
    "king table": StepOfCohort(
        "`--make-king-table`, all pairs", ["--make-king-table"], ["king", "FILE", "--out", "OUT"], ((".kin0",) * 2,)
    ),
    "auto": StepOfCohort(
        "`gramian pca --auto` beside `plink2 --pca 10 approx`",
        ["--pca", str(COMPONENTS), "approx"],
        ["pca", "FILE", "--auto", "-k", str(COMPONENTS), "--out", "OUT.results"],
    ),
}


def cohort(folder: Path, people: int, snps: int) -> Path:
    """The file of three populations whose neighbouring SNPs are correlated, made once."""
    path = folder / f"cohort-{people}x{snps}.bed"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        print(f"simulating {people} × {snps}", flush=True)
        groups = [f"pop{3 * i // people + 1}" for i in range(people)]
        simulate_genotypes(path, snps, groups=groups, fst=0.01, ld=0.5, missing=0.01, seed=1)
    return path


def measured(bed: Path, step: StepOfCohort, times: int, threads: int, compare: bool) -> tuple[Run, Run | None, str]:
    """Ours, and plink2's if it is there, each the fastest of some runs, and whether their lists are the same."""
    here, there = bed.with_name("ours"), bed.with_name("theirs")
    named = {"FILE": str(bed), "OUT": str(here), "OUT.results": f"{here}.results"}
    command = [sys.executable, "-m", "gramian", *(named.get(word, word) for word in step.ours), "--force"]
    command += ["--threads", str(threads)]
    theirs = ["plink2", "--bfile", str(bed.with_suffix("")), *step.theirs, "--threads", str(threads)]
    compare = compare and shutil.which("plink2") is not None
    ours_all, theirs_all = [], []
    for _ in range(times):  # in turns: what else the machine does befalls both
        ours_all.append(run("gramian", command, here))
        if compare:
            theirs_all.append(run("plink2", [*theirs, "--out", str(there)], there))
    ours = min(ours_all, key=lambda found: found.seconds)
    peer = min(theirs_all, key=lambda found: found.seconds) if theirs_all else None
    same = [
        Path(f"{here}{mine}").read_bytes() == Path(f"{there}{other}").read_bytes()
        for mine, other in (step.lists if peer else ())
    ]
    verdict = ("equal" if all(same) else "NOT equal") if same else ""
    for found in (ours, peer):
        if found is not None:
            said = f"{found.name} {found.seconds:.2f} s, CPU {found.processor:.2f} s, {found.megabytes:.0f} MB"
            print(f"{step.name}: {said} {verdict}", flush=True)
    return ours, peer, verdict


def cohort_table(bed: Path, names: list[str], times: int, threads: int, compare: bool) -> list[str]:
    """A row for each step: seconds of the wall and of processors, memory, and the ratio of the times."""
    lines = [
        "| step | gramian: s, CPU s, MB | plink2: s, CPU s, MB | plink2 ÷ gramian, s; CPU s | lists |",
        "|---|---|---|---|---|",
    ]
    for name in names:
        ours, peer, verdict = measured(bed, STEPS[name], times, threads, compare)
        cells = [
            f"{found.seconds:.2f}, {found.processor:.2f}, {found.megabytes:.0f}" if found else ""
            for found in (ours, peer)
        ]
        ratio = f"{peer.seconds / ours.seconds:.1f}; {peer.processor / ours.processor:.1f}" if peer else ""
        lines.append(f"| {STEPS[name].name} | {cells[0]} | {cells[1]} | {ratio} | {verdict} |")
    return lines


def compile_loops() -> str:
    """Compile our loops before anything is measured, and say how long that took: it is done once on each machine."""
    code = (
        "import time, numpy as np; from gramian.compute import bits; bits.LONG = 0.0; start = time.perf_counter()\n"
        "assert bits.compiled_loops(1.0) is not None\n"
        "from gramian.genetics import king, prune; from gramian.sources.plink import Genotypes\n"
        "G = Genotypes.from_calls(np.random.default_rng(0).integers(0, 3, (200, 60)))\n"
        "king(G, least=0.1), king(G), prune(G), prune(G, order='plink1'), G.counts()\n"
        "print(f'{time.perf_counter() - start:.1f}')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        return "Numba is not installed: no loops were compiled."
    return f"Our loops were compiled before, or found compiled, in {done.stdout.strip()} s."


def measure_cohorts(args: Any) -> int:
    """Run the steps on each cohort, and add the tables to the results of the day."""
    lines = [
        "# From raw genotypes to components",
        "",
        " ".join((__doc__ or "").split()),
        "",
        "; ".join(versions()) + ".",
    ]
    lines += ["", f"Machine: {describe()}; {probe()}.", "", " ".join([compile_loops(), *args.note])]
    for shape in args.cohort:
        people, snps = map(int, shape.lower().split("x"))
        bed = cohort(args.folder, people, snps)
        bed.read_bytes()  # into the page cache, for both alike
        steps = [] if args.steps == ["none"] else args.steps or list(STEPS)
        table = cohort_table(bed, steps, args.times, args.threads, not args.ours_alone)
        threads = f"{args.threads} thread{'s' * (args.threads > 1)} each"
        lines += ["", f"## {people:,} × {snps:,}, {threads}, fastest of {args.times}", "", *table]
        if args.tolerances:
            lines += ["", "### Components", "", *tolerance_table(bed, args.times, args.threads)]
    out = ROOT / "bench" / "results" / f"genotypes-{datetime.now(UTC):%Y-%m-%d}.md"
    before = out.read_text("utf-8") + "\n" if out.exists() else ""
    out.write_text(before + "\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    return 0


def shown(found: Run) -> Run:
    """Print as it comes."""
    print(
        f"{found.name}: {found.seconds:.1f} s, {found.megabytes:.0f} MB. {found.said.strip().splitlines()[-1]}",
        flush=True,
    )
    return found


def table(runs: list[Run], separated: int) -> list[str]:
    """Ratios to our two ways, and the agreement of the separated components."""
    times = {found.name: found.seconds for found in runs}
    reference = next((r for r in runs if r.name == "gramian, exact"), runs[0]).vectors[:, :separated]
    lines = [
        "| program | seconds | ÷ ours | ÷ ours, exact | peak MB | smallest \\|cos\\| |",
        "|---|---|---|---|---|---|",
    ]
    for found in runs:
        cosines = np.abs(np.sum(found.vectors[:, :separated] * reference, axis=0))
        ratios = " | ".join(f"{found.seconds / times[ours]:.1f}" if ours in times else "" for ours in OURS)
        lines.append(
            f"| {found.name} | {found.seconds:.2f} | {ratios} | {found.megabytes:.0f} | "
            f"{cosines.min(initial=1.0):.6f} |"
        )
    return lines


def versions() -> list[str]:
    """What was compared with what."""
    found = [f"gramian {gramian.__version__}"]
    for program in dict.fromkeys(program for program, _ in PEERS.values()):
        if not shutil.which(program):
            found.append(f"{program} not installed")
            continue
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        found.append(said.strip().splitlines()[0] if said.strip() else program)
    return found


def main(argv: list[str] | None = None) -> int:
    """Run all sizes, print and write the tables."""
    made = argparse.ArgumentParser(prog="python -m bench.genotypes", description=__doc__)
    made.add_argument("--worker", nargs=4, metavar=("BED", "SOLVER", "TOL", "OUT"), help=argparse.SUPPRESS)
    made.add_argument("--folder", type=Path, help="where the simulated files are kept")
    made.add_argument("--snps", type=int, action="append", help="number of SNPs; 100,000 and 500,568 unless given")
    made.add_argument("--only", action="append", choices=[*OURS, *PEERS])
    made.add_argument("--cohort", action="append", help="people x SNPs, as 3192x500568: the steps before components")
    made.add_argument("--tolerances", action="store_true", help="of --cohort: GenotypePCA beside plink2 --pca approx")
    made.add_argument("--steps", action="append", choices=[*STEPS, "none"], help="of --cohort; all unless given")
    made.add_argument("--times", type=int, default=1, help="runs of each step of --cohort, of which the fastest counts")
    made.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of each program in --cohort")
    made.add_argument("--ours-alone", action="store_true", help="of --cohort: without plink2, which may take long")
    made.add_argument("--note", action="append", default=[], help="a line for the results")
    args = made.parse_args(argv)
    if args.worker:
        bed, solver, tol, out = args.worker
        worker(Path(bed), solver, float(tol), Path(out))
        return 0
    if args.folder is None:
        made.error("--folder is needed")
    if args.cohort:
        return measure_cohorts(args)
    lines = ["# Genotype PCA", "", " ".join((__doc__ or "").split()), "", "; ".join(versions()) + ".", ""]
    lines += [f"Machine: {describe()}; {probe()}.", ""]
    for snps in args.snps or (100_000, 500_568):
        runs = compared(args.folder, snps, args.only)
        separated = next((int(r.said.split(" separated")[0].split()[-1]) for r in runs if r.name in OURS), COMPONENTS)
        lines += [
            f"## {PEOPLE:,} × {snps:,}: {separated} components stand out of the noise",
            "",
            *table(runs, separated),
            "",
        ]
        lines += [f"- {r.name}: {r.said.strip().splitlines()[-1]}" for r in runs if r.name in OURS] + [""]
    out = ROOT / "bench" / "results" / f"genotypes-{datetime.now(UTC):%Y-%m-%d}.md"
    out.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
