"""How much memory there is: asked before something large is made, not after it failed."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Return the bytes that can be had now without swapping: of the machine, or of this process's own limit."""
    return min(_machine(), _limit())


def gibibytes(nbytes: float) -> str:
    """Return a number of bytes as people read it.

    Examples
    --------
    >>> from gramian.compute.memory import gibibytes
    >>> gibibytes(8 * 50_000**2), gibibytes(3e6)
    ('18.6 GiB', '2.9 MiB')
    """
    return f"{nbytes / 2**30:.1f} GiB" if nbytes >= 2**29 else f"{nbytes / 2**20:.1f} MiB"


def refuse_beyond_memory(nbytes: float, what: str, remedy: str) -> None:
    """Raise a MemoryError that says what would take how much, unless it can be had."""
    free = available_memory()
    if nbytes > free:
        raise MemoryError(f"{what} would take {gibibytes(nbytes)}, and {gibibytes(free)} are available. {remedy}")


def _machine() -> int:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**62


def _limit() -> int:
    """What a control group leaves this process, where there is one."""
    try:
        most = (CGROUP / "memory.max").read_text("ascii").strip()
        used = (CGROUP / "memory.current").read_text("ascii").strip()
        reclaimable = next(
            int(line.split()[1])
            for line in (CGROUP / "memory.stat").read_text("ascii").splitlines()
            if line.startswith("inactive_file")
        )
    except (OSError, StopIteration):
        return 2**62
    return 2**62 if most == "max" else max(0, int(most) - int(used) + reclaimable)
