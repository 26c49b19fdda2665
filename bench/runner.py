"""Start the jobs, one fresh process each, in alternating order. Standard library only, to stay small."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.floor import Count, Speed, count
from bench.verdict import Runs, Verdict, judge
from bench.workloads import CANDIDATES, Peer, Workload

ROOT = Path(__file__).resolve().parent.parent


class JobError(RuntimeError):
    """A job that ended without a result; its message is a short reason."""


@dataclass(frozen=True)
class Settings:
    """How to run: the size, who stands for us, the limits, where the data go."""

    scale: float = 1.0
    candidate: str = "gramian"
    limit: float = 300.0
    repeats: int | None = None
    keep: bool = False
    cache: Path = ROOT / "bench" / ".cache"


@dataclass(frozen=True)
class Outcome:
    """Everything measured on one workload."""

    workload: Workload
    facts: dict[str, Any]
    runs: list[Runs]
    floor: Count
    verdict: Verdict


@dataclass
class Bench:
    """Runs workloads with one set of settings and tells ``say`` how it goes."""

    settings: Settings
    machine: dict[str, Any]
    say: Callable[[str], None] = field(default=print)

    def run(self, workload: Workload) -> Outcome:
        """Prepare the data, run every solver in alternating order, judge, and tidy up."""
        small = workload.scaled(self.settings.scale)
        self.say(f"{workload.name}: preparing {small.rows:,}×{small.cols:,}")
        try:
            facts = self._job("prepare", workload)
            runs = self._rounds(workload, small)
        finally:
            if not self.settings.keep:
                self._remove_data(small)
        floor = count(small, facts["nonzeros"], self._speed(small))
        return Outcome(small, facts, runs, floor, judge(small, runs, facts["gap"], floor))

    def _rounds(self, workload: Workload, small: Workload) -> list[Runs]:
        """Run round after round, every second one backwards, until each solver has had its repetitions."""
        solvers: Sequence[Peer] = (CANDIDATES[self.settings.candidate], *workload.peers)
        runs = {peer.name: Runs(peer.name, peer.role) for peer in solvers}
        number = 0
        while waiting := [peer for peer in solvers if self._due(runs[peer.name], number)]:
            for peer in waiting[:: -1 if number % 2 else 1]:
                self._one(workload, small, peer, runs[peer.name])
            number += 1
        return list(runs.values())

    def _due(self, entry: Runs, number: int) -> bool:
        """Return whether a solver takes part in round ``number``."""
        if entry.failure:
            return False
        if not entry.seconds:
            return True
        wanted = self.settings.repeats or repetitions(entry.seconds[0])
        return number < wanted

    def _one(self, workload: Workload, small: Workload, peer: Peer, entry: Runs) -> None:
        """Run one fit; measure its accuracy the first time, since the seeds make all runs alike."""
        if small.kind == "map":
            self._read_through(small)
        options = ["--solver", self._solver_key(peer), "--limit", str(self.settings.limit)]
        try:
            entry.add(self._job("fit", workload, *options, *([] if entry.seconds else ["--evaluate"])))
        except JobError as error:
            entry.failure = str(error)
            self.say(f"  {peer.name}: {error}")
        else:
            self.say(f"  {peer.name}: {entry.seconds[-1]:.3f} s, peak {entry.peak[-1] / 1e6:,.0f} MB")

    def _solver_key(self, peer: Peer) -> str:
        """Return the name by which the worker knows a peer."""
        return self.settings.candidate if peer.role == "ours" else peer.name

    def _job(self, job: str, workload: Workload, *options: str) -> dict[str, Any]:
        """Run one worker on ``workload`` and return what it printed."""
        shared = ["--workload", workload.name, "--scale", repr(self.settings.scale)]
        return run_worker(job, *shared, "--cache", str(self.settings.cache), *options)

    def _speed(self, workload: Workload) -> Speed:
        """Return the machine's speed in the precision of the data."""
        flops = self.machine[f"gflops_{workload.dtype}"]
        return Speed(self.machine["bandwidth_gb_s"] * 1e9, flops * 1e9)

    def _read_through(self, workload: Workload) -> None:
        """Read the file once, so that every fit finds it in the page cache and no fit pays for the disk."""
        with (self.settings.cache / f"{workload.key}.npy").open("rb", buffering=0) as file:
            while file.read(1 << 24):
                pass

    def _remove_data(self, workload: Workload) -> None:
        """Delete the data files, and keep the reference."""
        for file in self.settings.cache.glob(f"{workload.key}.*npy"):
            file.unlink()
        for file in self.settings.cache.glob(f"{workload.key}.*partial"):
            file.unlink()


def repetitions(first: float) -> int:
    """Return how often to run a fit that first took so many seconds: 7, 5, 3 or once."""
    return next((times for limit, times in ((0.5, 7), (3.0, 5), (15.0, 3)) if first < limit), 1)


def run_worker(job: str, *options: str) -> dict[str, Any]:
    """Run ``python -m bench.worker`` afresh and return its result.

    Raises
    ------
    JobError
        If it ended by the time limit, by a signal or by an error.
    """
    command = [sys.executable, "-m", "bench.worker", job, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGALRM:
        raise JobError("over the time limit")
    if done.returncode == -signal.SIGKILL:
        raise JobError("killed, most likely out of memory")
    if done.returncode:
        raise JobError(f"failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
