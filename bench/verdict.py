"""Who was accurate, who was fastest, and by how much: plain rules on plain records."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.floor import Count
from bench.workloads import Workload

BASE_RESIDUAL = {"float64": 1e-6, "float32": 1e-4}
BASE_ANGLE = 1e-3
# With a residual of 1e-6 an angle is at most about 1e-6 over the gap, so below this gap 1e-3 cannot be asked.
LEAST_GAP = 1e-3


@dataclass
class Runs:
    """All runs of one solver on one workload, or why there are none."""

    solver: str
    role: str
    seconds: list[float] = field(default_factory=list)
    above: list[int] = field(default_factory=list)
    peak: list[int] = field(default_factory=list)
    residual: float | None = None
    angle: float | None = None
    value_error: float | None = None
    method: str | None = None
    passes: float | None = None
    warnings: list[str] = field(default_factory=list)
    failure: str | None = None

    @property
    def time(self) -> float | None:
        """The median time of a fit, None if it never finished."""
        return None if self.failure or not self.seconds else median(self.seconds)

    def add(self, result: dict[str, Any]) -> None:
        """Take in one run of the worker."""
        self.seconds.append(result["seconds"])
        self.above.append(max(0, result["peak"] - result["before"]))
        self.peak.append(result["peak"])
        self.method, self.passes, self.warnings = result["method"], result["passes"], result["warnings"]
        if "accuracy" in result:
            found = result["accuracy"]
            self.residual, self.angle, self.value_error = (
                found["residual"],
                found["angle"],
                found["value_error"],
            )


@dataclass(frozen=True)
class Verdict:
    """The outcome on one workload."""

    status: dict[str, str]
    rival: str | None
    ratio: float | None
    met: bool | None
    memory_met: bool | None
    over_floor: float | None


def judged_by_angle(gap: float | None) -> bool:
    """Return whether the spectrum has a gap after the k-th value, so that the subspace is well defined."""
    return gap is not None and gap >= LEAST_GAP


def accurate(runs: Runs, dtype: str, gap: float | None, ours: Runs | None) -> bool:
    """Return whether a fit meets max(base, 10× ours) in its residual and, where there is a gap, its angle.

    Pass ``ours=None`` to hold a fit to the base alone, as ours is.
    """
    if runs.residual is None:
        return False
    slack_residual = 10 * ours.residual if ours and ours.residual is not None else 0.0
    slack_angle = 10 * ours.angle if ours and ours.angle is not None else 0.0
    if not runs.residual <= max(BASE_RESIDUAL[dtype], slack_residual):
        return False
    return not judged_by_angle(gap) or runs.angle is None or runs.angle <= max(BASE_ANGLE, slack_angle)


def judge(workload: Workload, runs: list[Runs], gap: float | None, floor: Count) -> Verdict:
    """Return who counts, the fastest of them, and the ratio of its time to ours."""
    ours = next(entry for entry in runs if entry.role == "ours")
    fine = accurate(ours, workload.dtype, gap, None)
    # A fit of ours that misses the base must not open the door to peers as bad as itself.
    status = {entry.solver: _status(entry, workload.dtype, gap, ours if fine else None) for entry in runs}
    status[ours.solver] = _status(ours, workload.dtype, gap, None)
    times = {
        entry.solver: entry.time
        for entry in runs
        if entry.role == "peer" and entry.time is not None
        if not workload.must_be_accurate or status[entry.solver] == "accurate"
    }
    rival = min(times, key=lambda name: times[name], default=None)
    ratio = times[rival] / ours.time if rival and ours.time else None
    return Verdict(
        status=status,
        rival=rival,
        ratio=ratio,
        met=None if ratio is None else fine and ratio >= workload.target,
        memory_met=_memory_met(workload, ours),
        over_floor=ours.time / floor.seconds if ours.time else None,
    )


def _status(entry: Runs, dtype: str, gap: float | None, ours: Runs | None) -> str:
    """Return the word the table shows for a solver."""
    return entry.failure or ("accurate" if accurate(entry, dtype, gap, ours) else "inaccurate")


def _memory_met(workload: Workload, ours: Runs) -> bool | None:
    """Return whether our peak stayed below the limit, where the workload has one."""
    if workload.memory_target_mb is None or not ours.peak:
        return None
    return max(ours.peak) <= workload.memory_target_mb * 1e6
