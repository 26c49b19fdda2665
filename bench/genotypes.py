"""Genotype PCA against PLINK 1.9 and PLINK 2: ``python -m bench.genotypes --folder FOLDER``.

3,192 people on a map, 1 % of the genotypes missing, 10 components. Each program runs as a fresh process on the same
``.bed`` file, from start to its ``.eigenvec`` and ``.eigenval`` files; wall time and peak memory are those of the
process. The agreement is the smallest |cos| between the components that stand out of the noise and those of our exact
mode. Programs that are not installed are left out and named.
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
# A process begins with the peak memory of the one that started it, so a small one starts each program.
LAUNCH = """
import os, sys, time
start = time.perf_counter()
child = os.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
sys.stderr.write(f"\\n{time.perf_counter() - start} {usage.ru_maxrss}\\n")
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
    seconds, kilobytes = done.stderr.strip().splitlines()[-1].split()
    vectors = eigenvectors(out.with_suffix(".eigenvec"))
    return Run(name, float(seconds), float(kilobytes) / 1024, vectors, done.stdout)


def eigenvectors(path: Path) -> Any:
    """The numbers of an ``.eigenvec`` file of either version of PLINK."""
    lines = [line.split() for line in path.read_text("utf-8").splitlines()]
    rows = lines[1:] if lines[0][0].startswith("#") else lines
    return np.array([row[-COMPONENTS:] for row in rows], dtype=float)


def worker(bed: Path, solver: str, out: Path) -> None:
    """Our side: fit, and write the same two files."""
    model = gramian.GenotypePCA(COMPONENTS, solver=solver).fit(bed)
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
            command = [sys.executable, "-m", "bench.genotypes", "--worker", str(bed), solver, str(out)]
            runs.append(shown(run(name, command, out)))
    for name, (program, options) in PEERS.items():
        if (only is None or name in only) and shutil.which(program):
            threads = ["--threads", str(os.cpu_count())]
            command = [program, "--bfile", str(bed.with_suffix("")), *options, *threads, "--out", str(out)]
            runs.append(shown(run(name, command, out)))
    return runs


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
    made.add_argument("--worker", nargs=3, metavar=("BED", "SOLVER", "OUT"), help=argparse.SUPPRESS)
    made.add_argument("--folder", type=Path, help="where the simulated files are kept")
    made.add_argument("--snps", type=int, action="append", help="number of SNPs; 100,000 and 500,568 unless given")
    made.add_argument("--only", action="append", choices=[*OURS, *PEERS])
    args = made.parse_args(argv)
    if args.worker:
        worker(Path(args.worker[0]), args.worker[1], Path(args.worker[2]))
        return 0
    if args.folder is None:
        made.error("--folder is needed")
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
