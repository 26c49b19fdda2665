"""Passes over blocks of rows in this process, in several, or on a Dask cluster, with the same bits in each.

A pass is cut into shares of consecutive blocks that depend on the data alone. A task makes one small statistic of a
share; the statistics of shares are merged two by two, neighbours first, so that it does not matter who finished first.
"""

from __future__ import annotations

import re
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from joblib.externals.loky import get_reusable_executor

SHARES = 64  # of a pass over a file, at most: the workers that one fit can use

T = TypeVar("T")
S = TypeVar("S")


class ClusterError(RuntimeError):
    """A pass ended because workers, or the scheduler that looks after them, were lost."""


def merge_tree(parts: Iterable[T], merge: Callable[[T, T], T]) -> T:
    """Merge parts two by two, neighbours first; at most one part of each height of the tree is kept.

    Examples
    --------
    >>> from gramian.compute.executor import merge_tree
    >>> merge_tree("abcdefg", lambda a, b: f"({a}{b})")
    '(((ab)(cd))((ef)g))'
    """
    waiting: list[tuple[int, T]] = []
    for total in parts:
        height = 0
        while waiting and waiting[-1][0] == height:
            total, height = merge(waiting.pop()[1], total), height + 1
        waiting.append((height, total))
    _, total = waiting.pop()
    while waiting:
        total = merge(waiting.pop()[1], total)
    return total


@dataclass(frozen=True)
class LazyItem:
    """An item that is made of what a Dask collection holds once it is computed, where it is computed.

    Attributes
    ----------
    collection : dask collection
        To be computed.
    build : callable
        The item, of its values.
    """

    collection: Any
    build: Callable[[Any], Any]

    def __str__(self) -> str:
        return f"A part of the Dask array ({self.collection.name})"


class Executor(ABC):
    """Runs tasks that need nothing but their arguments.

    Attributes
    ----------
    workers : int
        How many tasks run at a time.
    """

    workers: int = 1

    @abstractmethod
    def map(self, task: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
        """Yield ``task(item)`` of every item, in order."""

    def reduce(self, task: Callable[[S], T], items: Sequence[S], merge: Callable[[T, T], T]) -> T:
        """Merge ``task(item)`` of all items by :func:`merge_tree`; ``merge`` leaves its arguments as they are."""
        return merge_tree(self.map(task, items), merge)

    def describe(self) -> str:
        """Say where tasks run, for certificates; "" for this process."""
        return ""


class ThisProcess(Executor):
    """One task after another; each shares its tiles between the cores."""

    def map(self, task: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
        """Yield ``task(item)`` of every item, when it is asked for."""
        return map(task, items)


class Processes(Executor):
    """Worker processes on this machine (joblib's loky), kept for the next pass.

    Parameters
    ----------
    workers : int
        How many.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(self, task: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
        """Yield ``task(item)`` of every item, in order."""
        pool = get_reusable_executor(max_workers=self.workers)
        ready = (item.build(item.collection.compute()) if isinstance(item, LazyItem) else item for item in items)
        futures = [pool.submit(task, item) for item in ready]
        try:
            for future in futures:
                yield future.result()
        except GeneratorExit:
            raise
        except BaseException as error:
            for future in futures:
                future.cancel()
            if type(error).__name__ == "TerminatedWorkerError":
                raise ClusterError(
                    f"A worker process was ended while it worked, for want of memory perhaps ({self.workers} of them "
                    "share this machine's). Use fewer processes, or set scikit-learn's working_memory lower."
                ) from error
            raise

    def describe(self) -> str:
        """Say how many processes there are."""
        return f"{self.workers} processes"


class Dask(Executor):
    """The workers of a Dask cluster. What a lost worker was to do, and had done, is done again by another.

    Parameters
    ----------
    client : distributed.Client
        Connected to the scheduler.
    """

    def __init__(self, client: Any) -> None:
        self.client = client

    @property
    def workers(self) -> int:  # type: ignore[override]
        """How many workers there are now."""
        return len(self.client.scheduler_info(n_workers=-1)["workers"])

    def _submit(self, task: Callable[[S], T], items: Sequence[S]) -> list[Any]:
        """Futures of all tasks; the task itself is sent once, as the result of one of its own."""
        name = f"gramian-{uuid.uuid4().hex}"
        shared = self.client.submit(_Constant(task), key=f"{name}-task")
        parts = [(x.build, self.client.compute(x.collection)) if isinstance(x, LazyItem) else (None, x) for x in items]
        return [self.client.submit(_apply, shared, *part, key=f"{name}-{i}") for i, part in enumerate(parts)]

    def map(self, task: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
        """Yield ``task(item)`` of every item, in order."""
        futures = self._submit(task, items)
        for i, future in enumerate(futures):
            futures[i] = None  # its result leaves the cluster as soon as it is here
            yield self._result(future, items)

    def reduce(self, task: Callable[[S], T], items: Sequence[S], merge: Callable[[T, T], T]) -> T:
        """Merge on the cluster, by the same tree: one statistic comes back."""
        level = self._submit(task, items)
        while len(level) > 1:
            pairs = [
                self.client.submit(merge, *level[i : i + 2], pure=False) if i + 1 < len(level) else level[i]
                for i in range(0, len(level), 2)
            ]
            level = pairs
        result: T = self._result(level[0], items)
        return result

    def _result(self, future: Any, items: Sequence[Any]) -> Any:
        from distributed import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            number = re.fullmatch(r"gramian-[0-9a-f]+-(\d+)", str(error.task))
            what = f"{items[int(number[1])]}" if number else "A task"
            raise ClusterError(
                f"{what}: every worker that took it ended, for want of memory perhaps. Give workers more memory, or "
                "set scikit-learn's working_memory lower, which makes blocks shorter."
            ) from error
        except (OSError, TimeoutError) as error:
            raise self._lost(error) from error
        except BaseException as error:
            if type(error).__name__ in ("CancelledError", "FutureCancelledError", "FuturesCancelledError"):
                raise self._lost(error) from error
            raise

    def _lost(self, error: BaseException) -> Exception:
        if self.client.status == "running":
            return error if isinstance(error, Exception) else ClusterError(str(error))
        return ClusterError(
            f"The scheduler at {self.client.scheduler.address if self.client.scheduler else 'its address'} was lost in "
            "the middle of a pass. Start it again, connect a new client, and fit again; in a block of "
            "gramian.checkpoint(folder), or with --checkpoint FOLDER, the same line goes on from the last pass made."
        )

    def describe(self) -> str:
        """Say how many workers there are."""
        return f"Dask, {self.workers} workers"


class _Constant:
    """Something to be kept on the cluster as it is: a function of nothing that returns itself, and holds a value."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self


def _apply(task: _Constant, build: Callable[[Any], Any] | None, item: Any) -> Any:
    return task.value(item if build is None else build(item))


_last_used: ContextVar[str] = ContextVar("gramian_last_used", default="")


def begin_fit() -> None:
    """Forget who worked for the last fit."""
    _last_used.set("")


def record_use(executor: Executor) -> None:
    """Remember who works for this fit, for its certificate."""
    _last_used.set(executor.describe())


def describe_use() -> str:
    """Return who worked for this fit, or "" where this process did all of it."""
    return _last_used.get()


def connected_executor() -> Executor:
    """Return what runs passes now; where that is this process and a Dask client is connected, its cluster."""
    executor = current_executor()
    if executor is HERE and (distributed := sys.modules.get("distributed")) is not None:
        try:
            return Dask(distributed.default_client())
        except ValueError:  # there is none
            pass
    return executor


HERE = ThisProcess()
_current: ContextVar[Executor] = ContextVar("gramian_executor", default=HERE)


def current_executor() -> Executor:
    """Return what runs passes over files now."""
    return _current.get()


@contextmanager
def cluster(where: Any) -> Iterator[Executor]:
    """Run the passes of fits in this block by the workers of a cluster, which read the files themselves.

    Workers need the same version of Gramian and the files under the same names. The answer has the bits of a fit in
    this process. What is in memory, here, is worked on here.

    Parameters
    ----------
    where : distributed.Client or str
        A Dask client; the address of a scheduler, ``"tcp://host:8786"``; ``"local[8]"``, a Dask cluster of 8 workers
        on this machine, ended with the block; or ``"processes[8]"``, 8 processes without Dask.

    Yields
    ------
    Executor
        What runs the tasks.

    Examples
    --------
    >>> import numpy as np, tempfile, gramian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.random.default_rng(0).normal(size=(1000, 5)))
    ...     with gramian.cluster("processes[2]"):
    ...         model = gramian.PCA(2).fit(f"{folder}/x.npy")
    >>> model.certificate_.converged
    True
    """
    with _open_executor(where) as executor:
        token = _current.set(executor)
        try:
            yield executor
        finally:
            _current.reset(token)
            begin_fit()


@contextmanager
def _open_executor(where: Any) -> Iterator[Executor]:
    kind = re.fullmatch(r"(local|processes)\[(\d+)\]", where) if isinstance(where, str) else None
    if isinstance(where, Executor):
        yield where
        return
    if kind is not None and int(kind[2]) < 1:
        raise ValueError(f"cluster={where!r}: at least one worker is needed.")
    if kind is not None and kind[1] == "processes":
        yield Processes(int(kind[2]))
        return
    if isinstance(where, str) and kind is None and "://" not in where:
        raise ValueError(
            f"cluster={where!r}: give the address of a Dask scheduler (tcp://host:8786), local[8], or processes[8]."
        )
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ImportError('Clusters are run by Dask, which is not installed: pip install "gramian[cluster]"') from error
    if kind is not None:
        workers = LocalCluster(n_workers=int(kind[2]), threads_per_worker=1, dashboard_address=None)
        with workers, Client(workers) as client:
            yield Dask(client)
    elif isinstance(where, str):
        with Client(where) as client:
            yield Dask(client)
    elif isinstance(where, Client):
        yield Dask(where)
    else:
        raise TypeError(f"cluster={where!r}: give a distributed.Client, or text that names a cluster.")
