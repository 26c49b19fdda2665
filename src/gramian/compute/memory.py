"""How much memory there is: asked before something large is made, not after it failed."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Return the bytes that can be had now without swapping: of the machine, or of this process's control group."""
    try:
        free = _read_number(Path("/proc/meminfo"), "MemAvailable") * 1024
    except (OSError, StopIteration):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 2**62
    try:
        most = (CGROUP / "memory.max").read_text("ascii").strip()
        used = int((CGROUP / "memory.current").read_text("ascii"))
        reclaimable = _read_number(CGROUP / "memory.stat", "inactive_file")
    except (OSError, StopIteration):
        return free
    return free if most == "max" else min(free, max(0, int(most) - used + reclaimable))


def _read_number(path: Path, name: str) -> int:
    """The number behind a name in one of the kernel's tables."""
    return next(int(line.split()[1]) for line in path.read_text("ascii").splitlines() if line.startswith(name))


def gibibytes(nbytes: float) -> str:
    """Return a number of bytes as people read it.

    Examples
    --------
    >>> from gramian.compute.memory import gibibytes
    >>> gibibytes(8 * 50_000**2), gibibytes(3e6)
    ('18.6 GiB', '2.9 MiB')
    """
    return f"{nbytes / 2**30:.1f} GiB" if nbytes >= 2**29 else f"{nbytes / 2**20:.1f} MiB"
