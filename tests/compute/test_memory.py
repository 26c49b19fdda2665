"""Memory that can be had: the machine's, a control group's of either version, and what limits of the process leave."""

import os
import subprocess
import sys

import pytest

from gramian.compute import memory

GIB = 2**30


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A /proc with 64 GiB free, and a function that writes files below the folder of the test."""
    monkeypatch.setattr(memory, "PROC", tmp_path / "proc")

    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("proc/meminfo", f"MemTotal: 1 kB\nMemAvailable:  {64 * 2**20} kB\n")
    write("proc/self/status", "VmSize: 0 kB\nVmData: 0 kB\n")
    monkeypatch.setattr(memory, "_left_by_limits", lambda: iter(()))
    return write


def mount_groups(write, tmp_path, version: int, path: str, root: str = "/") -> str:
    """Say where the groups are mounted and which is this process's; return the place of the mount."""
    place = "groups" if version == 2 else "groups/memory"
    kind, options = ("cgroup2", "rw") if version == 2 else ("cgroup", "rw,memory")
    controllers = "" if version == 2 else "memory"
    write("proc/self/cgroup", f"5:cpu,cpuacct:/elsewhere\n4:{controllers}:{path}\n")
    others = "30 20 0:25 / /nowhere rw - cgroup cgroup rw,cpu,cpuacct\n31 20 8:1 / / rw - ext4 /dev/sda rw\n"
    write("proc/self/mountinfo", f"{others}32 20 0:26 {root} {tmp_path}/{place} rw,nosuid - {kind} {kind} {options}\n")
    return place


def write_group(write, folder: str, version: int, limit: str, used: int, droppable: int = 0) -> None:
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    write(f"{folder}/{names[0]}", f"{limit}\n")
    write(f"{folder}/{names[1]}", f"{used}\n")
    # the group's own pages and, in version 1, those of all below it
    pages = f"inactive_file {droppable}\n" if version == 2 else f"inactive_file 1\ntotal_inactive_file {droppable}\n"
    write(f"{folder}/memory.stat", f"anon 5\n{pages}")


def test_without_groups_the_machine_is_all_there_is(machine):
    assert memory.available_memory() == 64 * GIB


@pytest.mark.parametrize("version", [1, 2])
def test_the_group_of_the_process_leaves_its_limit_less_what_is_used_and_cannot_be_dropped(machine, tmp_path, version):
    place = mount_groups(machine, tmp_path, version, "/jobs/a")
    write_group(machine, f"{place}/jobs/a", version, str(10 * GIB), 7 * GIB, GIB)
    assert memory.available_memory() == 4 * GIB


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("narrow", ["", "/jobs", "/jobs/a", "/jobs/a/b"])
def test_the_narrowest_group_on_the_way_up_decides(machine, tmp_path, version, narrow):
    place = mount_groups(machine, tmp_path, version, "/jobs/a/b")
    unlimited = "max" if version == 2 else str(2**63 - 4096)
    for folder in ("/jobs", "/jobs/a", "/jobs/a/b", ""):
        write_group(machine, place + folder, version, str(3 * GIB) if folder == narrow else unlimited, GIB)
    assert memory.available_memory() == 2 * GIB


@pytest.mark.parametrize("version", [1, 2])
def test_a_container_sees_its_group_as_the_root_of_the_mount(machine, tmp_path, version):
    place = mount_groups(machine, tmp_path, version, "/docker/abc", root="/docker/abc")
    write_group(machine, place, version, str(5 * GIB), 2 * GIB)
    assert memory.available_memory() == 3 * GIB


@pytest.mark.parametrize("version", [1, 2])
def test_a_path_outside_the_mount_ends_at_its_root(machine, tmp_path, version):
    place = mount_groups(machine, tmp_path, version, "/docker/abc", root="/other")
    write_group(machine, place, version, str(5 * GIB), 2 * GIB)
    assert memory.available_memory() == 3 * GIB


def test_a_soft_limit_counts_and_a_full_group_leaves_nothing(machine, tmp_path):
    place = mount_groups(machine, tmp_path, 2, "/a")
    write_group(machine, f"{place}/a", 2, "max", 3 * GIB)
    machine(f"{place}/a/memory.high", str(4 * GIB))
    assert memory.available_memory() == GIB
    machine(f"{place}/a/memory.high", str(2 * GIB))
    assert memory.available_memory() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="limits of the process are read from Linux's tables")
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_a_limit_on_the_process_counts_less_what_it_has_taken(kind):
    code = (
        "import resource, numpy; from gramian.compute.memory import available_memory, _read_number, PROC;"
        f"kind, name = resource.{kind}, {'VmSize:' if kind == 'RLIMIT_AS' else 'VmData:'!r};"
        "taken = _read_number(PROC / 'self/status', name) * 1024;"
        "resource.setrlimit(kind, (taken + 2**28, resource.RLIM_INFINITY));"
        "print(available_memory())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 2**27 < int(done.stdout) <= 2**28


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about glibc's way to give memory back")
def test_memory_that_is_freed_is_kept_for_the_next_array():
    """Arrays of some megabytes made again and again touch no new pages: a fit of middle size makes dozens."""
    code = (
        "import resource, numpy as np, gramian.compute.memory\n"
        "def work():\n"
        "    a = np.ones(150_000); b = a + 1.0; c = b * a\n"
        "for _ in range(3): work()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "for _ in range(50): work()\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)"
    )
    # Dask's nannies set a threshold of their own, in the environment of whoever starts them
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=own)
    assert int(done.stdout) < 5000  # 42,300 pages otherwise
