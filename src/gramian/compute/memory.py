"""How much memory there is: asked before something large is made, not after it failed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

if sys.platform != "win32":
    import resource

PROC = Path("/proc")

# files of a control group: its limits, what it uses, and what of that are pages of files that can be dropped
VERSION_1 = ("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"
VERSION_2 = ("memory.max", "memory.high"), "memory.current", "inactive_file"
UNLIMITED = 2**62  # what version 1 writes for no limit is larger

# A fit of middle size makes dozens of arrays of about a megabyte. glibc begins by giving each of them back to the
# system when it is freed, and every page of the next one is a fault: three arrays of 1.2 MB took 1.3 ms, and 0.1 ms
# without that. When a block is freed that was larger than its threshold, glibc keeps blocks up to that size from then
# on (mallopt(3), M_MMAP_THRESHOLD), and at most twice as much unused. This one is never written, so it costs nothing.
# Other allocators do nothing with it.
with suppress(MemoryError):
    np.empty(2**25 - 2**13, np.uint8)

WORKING = 1024.0  # MiB: what scikit-learn's working_memory is until somebody sets it


def working_memory() -> float:
    """scikit-learn's ``working_memory`` in MiB. Nobody has set it where scikit-learn is not loaded: it loads slowly.

    Examples
    --------
    >>> from sklearn import config_context
    >>> from gramian.compute.memory import working_memory
    >>> with config_context(working_memory=100):
    ...     working_memory()
    100
    """
    get: Any = getattr(sys.modules.get("sklearn"), "get_config", None)
    return WORKING if get is None else get()["working_memory"]


def limit_working_memory(mebibytes: float) -> AbstractContextManager[Any]:
    """Set ``working_memory`` as long as the context lasts."""
    found: AbstractContextManager[Any] = import_module("sklearn").config_context(working_memory=mebibytes)
    return found


def available_memory() -> int:
    """Return the bytes that can be had now without swapping.

    The least of what the machine has, what is left to the control group of this process and to each group above it
    (version 1 or 2), and what ``ulimit -v`` and ``ulimit -d`` leave to the process.
    """
    try:
        free = _read_number(PROC / "meminfo", "MemAvailable:") * 1024
    except (OSError, StopIteration):
        free = 2**62 if sys.platform == "win32" else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(0, min([free, *_left_to_groups(), *_left_by_limits()]))


@cache
def _groups(proc: Path) -> list[tuple[Path, tuple[str, ...], str, str]]:
    """Folders of the control groups of this process, the innermost first, and the names of their files.

    A line of ``/proc/self/cgroup`` is ``number:controllers:path``, with no controllers in version 2. A mount shows the
    tree from its own root on, so that a path within a container may begin with what is not visible there.
    """
    try:
        lines = (proc / "self/cgroup").read_text("utf-8").splitlines()
        mounts = (proc / "self/mountinfo").read_text("utf-8").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        for mount in mounts:
            before, _, after = mount.partition(" - ")
            kind, _, options = after.split(" ", 2)
            if kind != ("cgroup" if controllers else "cgroup2"):
                continue
            if controllers and "memory" not in options.split(","):
                continue
            root, place = PurePosixPath(before.split(" ")[3]), Path(before.split(" ")[4])
            group = PurePosixPath(path)
            inside = group.relative_to(root) if group.is_relative_to(root) else PurePosixPath()
            for folder in (place / inside, *(place / part for part in inside.parents)):
                found.append((folder, *(VERSION_1 if controllers else VERSION_2)))
    return found


def _left_to_groups() -> Iterator[int]:
    """Bytes left below each limit of each control group of this process."""
    for folder, limits, usage, droppable in _groups(PROC):
        for limit in limits:
            try:
                most = (folder / limit).read_text("ascii").strip()
                if most != "max" and int(most) < UNLIMITED:
                    used = int((folder / usage).read_text("ascii"))
                    yield int(most) - used + _read_number(folder / "memory.stat", f"{droppable} ")
            except (OSError, StopIteration):
                continue


def _left_by_limits() -> Iterator[int]:
    """Bytes left below the limits on this process's address space and on its data."""
    if sys.platform == "win32":
        return
    for kind, name in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
        most = resource.getrlimit(kind)[0]
        if most != resource.RLIM_INFINITY:
            try:
                yield most - _read_number(PROC / "self/status", name) * 1024
            except (OSError, StopIteration):
                yield most


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
