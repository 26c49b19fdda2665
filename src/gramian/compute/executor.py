"""Passes over blocks of rows in this process, in several, or on a Dask cluster, with the same bits in each.

A pass is cut into shares of consecutive blocks that depend on the data alone. A task makes one small statistic of a
share; the statistics of shares are merged two by two, neighbours first, so that it does not matter who finished first.
"""

from __future__ import annotations

import asyncio
import pickle
import re
import sys
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from joblib.externals.loky import get_reusable_executor

from gramian.compute.memory import available_memory, gibibytes

SHARES = 64  # of a pass: the workers that one fit can use
MOST_SHARES = 1024  # of a long pass over rows, where each share has so many blocks:
BLOCKS = 16
AHEAD = 2  # tasks for each worker that are under way at a time, where results come here one by one
ATTEMPTS = 10  # of a pass, where Dask gives up one task after another and none of them is at fault
DEATHS = 3  # workers that a task may end before it is named
OPENED = 6  # things that a worker keeps open for the next task
SLACK = 200 * 2**20  # bytes that Python and its libraries take in a worker
PATIENCE = 60.0  # seconds that a pass waits while its cluster has no worker
LOOK = 5.0  # seconds, at most, between two looks at whether there is one

T = TypeVar("T")
S = TypeVar("S")


class ClusterError(RuntimeError):
    """A pass ended because workers, or the scheduler that looks after them, were lost.

    Its text ends with what of the fit was saved, and what to do to go on from there.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} {describe_saved()}")


def describe_saved() -> str:
    """Say what of the fit would be left if it ended now, and how to go on from that."""
    return _saved.get()()


@contextmanager
def saved_as(describe: Callable[[], str]) -> Iterator[None]:
    """Let :func:`describe_saved` say this in the block, which keeps passes somewhere."""
    token = _saved.set(describe)
    try:
        yield
    finally:
        _saved.reset(token)


_saved: ContextVar[Callable[[], str]] = ContextVar(
    "gramian_saved",
    default=lambda: (
        "Nothing of the fit was saved: in a block of gramian.checkpoint(folder), or with --checkpoint FOLDER, every "
        "pass is, and the same lines go on from the last one."
    ),
)


def count_shares(blocks: int) -> int:
    """Return how many shares a pass over so many blocks is cut into.

    Examples
    --------
    >>> [count_shares(blocks) for blocks in (10, 64, 1000, 2000, 100_000)]
    [10, 64, 64, 125, 1024]
    """
    return min(blocks, max(SHARES, min(MOST_SHARES, blocks // BLOCKS)))


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


def name_item(task: Any, item: Any) -> str:
    """Say in words what a task was to work on: by its method ``describe`` where it has one."""
    return str(task.describe(item) if hasattr(task, "describe") else item)


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
        """Yield ``task(item)`` of every item, in order; those of a few items are made ahead."""

    def reduce(self, task: Callable[[S], T], items: Sequence[S], merge: Callable[[T, T], T]) -> T:
        """Merge ``task(item)`` of all items by :func:`merge_tree`; ``merge`` leaves its arguments as they are."""
        return merge_tree(self.map(task, items), merge)

    def describe(self) -> str:
        """Say where tasks run, for certificates; "" for this process."""
        return ""

    def room(self) -> tuple[int, str]:
        """Return the least memory that a task can have, in bytes, and where that is."""
        return available_memory(), "this process"

    def check_room(self, nbytes: float, what: str) -> None:
        """Refuse a pass whose tasks would take more memory than a worker has.

        Parameters
        ----------
        nbytes : float
            What a task is predicted to take.
        what : str
            What that is made of.
        """
        have, where = self.room()
        if nbytes + SLACK > have:
            raise MemoryError(
                f"a task takes {gibibytes(nbytes + SLACK)} ({what}, and Python with its libraries), and {where} has "
                f"{gibibytes(have)} for it. Give workers more memory or fewer threads each, or set scikit-learn's "
                "working_memory lower, which makes blocks shorter."
            )


class ThisProcess(Executor):
    """One task after another; each shares its tiles between the cores."""

    def map(self, task: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
        """Yield ``task(item)`` of every item, when it is asked for."""
        return map(task, items)


class Processes(Executor):
    """Worker processes on this machine (joblib's loky), kept for the next pass.

    When one ends, new ones take what it and the others had not done. A task that was under way both times that workers
    ended runs alone the third time, so that it is known to be the one where it ends its worker again.

    Parameters
    ----------
    workers : int
        How many.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(self, task: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
        """Yield ``task(item)`` of every item, in order."""
        record_use(self)
        lost: Counter[int] = Counter()
        futures: dict[int, Future[T]] = {}

        def submit(i: int) -> None:
            item: Any = items[i]
            ready = item.build(item.collection.compute()) if isinstance(item, LazyItem) else item
            futures[i] = get_reusable_executor(max_workers=self.workers).submit(task, ready)

        try:
            for i in range(len(items)):
                while True:
                    with suppress(BrokenProcessPool):  # a worker that ended just now: seen by the futures below
                        if lost[i] < DEATHS - 1:
                            for j in range(i, min(i + AHEAD * self.workers, len(items))):
                                if j not in futures and lost[j] < DEATHS - 1:
                                    submit(j)
                        elif i not in futures:
                            wait(futures.values())
                            submit(i)
                    try:
                        if i in futures:
                            futures[i].result()
                            break
                    except BrokenProcessPool as error:
                        wait(futures.values())
                        ended = [j for j, future in futures.items() if _is_broken(future)]
                        lost.update(ended)
                        record_retries(len(ended))
                        if lost[i] >= DEATHS:
                            raise ClusterError(
                                f"{name_item(task, items[i])}: {DEATHS} worker processes ended while they worked on it,"
                                f" the last on nothing else, for want of memory perhaps ({self.workers} share this "
                                "machine's). Use fewer processes, or set scikit-learn's working_memory lower."
                            ) from error
                        for j in ended:
                            del futures[j]
                yield futures.pop(i).result()
        finally:
            for future in futures.values():
                future.cancel()

    def describe(self) -> str:
        """Say how many processes there are."""
        return f"{self.workers} processes"

    def room(self) -> tuple[int, str]:
        """Return the share that each process has of what is free."""
        return available_memory() // self.workers, f"each of {self.workers} processes"


def _is_broken(future: Future[Any]) -> bool:
    return future.done() and not future.cancelled() and isinstance(future.exception(), BrokenProcessPool)


class _SuspectError(Exception):
    """A task was with so many workers that ended that Dask gives it up; ``number`` is that of its item.

    It may be innocent: Dask counts whatever a worker had to do when it ended.
    """

    def __init__(self, number: int | None) -> None:
        super().__init__(number)
        self.number = number


class _Watch:
    """A pass on a Dask cluster, which is ended where there is nobody to make it.

    Dask lets a task wait for a worker without end. A thread looks every few seconds: where some were lost whose cluster
    can replace them, it is asked to; where there was none that works for too long, what is waited for is cancelled.
    """

    def __init__(self, client: Any, patience: float) -> None:
        self.name, self.client, self.patience = uuid.uuid4().hex, client, patience
        self.awaited: list[Any] = []
        self.reason = ""  # why it was ended
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="gramian-watch", daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _look(self) -> None:
        last, step = time.monotonic(), min(1.0, self.patience / 4)
        while not self._over.wait(step):
            step = min(LOOK, self.patience / 4)
            try:
                workers = self.client.scheduler_info(n_workers=-1)["workers"]
            except Exception:  # what becomes of a pass whose scheduler is lost, Dask says itself
                last = time.monotonic()
                continue
            if any(_is_able(worker) for worker in workers.values()):
                last, self.reason = time.monotonic(), ""
            elif time.monotonic() - last >= self.patience:
                there = f", and the {len(workers)} there are take no work, for want of memory perhaps"
                self.reason = (
                    f"No worker is left: the cluster at {self.client.scheduler.address} had none for "
                    f"{self.patience:g} s{there if workers else ''}. Their logs say why they ended. Start workers; "
                    "patience= of gramian.cluster, or --patience, says for how long a pass waits for them."
                )
                with suppress(Exception):  # the next look tries again
                    self.client.cancel(self.awaited)
            with suppress(Exception):
                self._replace(len(workers))

    def wait(self, futures: list[Any]) -> None:
        """Wait until tasks have ended, well or not."""
        import distributed

        self.awaited = futures
        distributed.wait(futures)

    def _replace(self, count: int) -> None:
        """Ask a cluster that was begun with the client for the workers that it gave up.

        A ``LocalCluster`` gives up a worker whose nanny is not back 15 s after the worker ended, or has closed as some
        ways to end close it too, and asks nobody for another. Nothing happens where all are there or on their way.
        """
        cluster: Any = getattr(self.client, "cluster", None)
        wanted = len(getattr(cluster, "worker_spec", ()))
        if count < wanted and len(cluster.workers) < wanted:
            cluster.scale(wanted)


def _is_able(worker: dict[str, Any]) -> bool:
    """Whether a worker takes tasks, or has one under way after which it may."""
    counts = worker.get("metrics", {}).get("task_counts", {})
    return bool(worker.get("status", "running") == "running" or counts.get("executing", 0))


class Dask(Executor):
    """The workers of a Dask cluster. What a lost worker was to do, and had done, is done again by another.

    Parameters
    ----------
    client : distributed.Client
        Connected to the scheduler.
    patience : float, default=60
        Seconds that a pass waits while there is no worker, before it is given up.
    """

    def __init__(self, client: Any, patience: float = PATIENCE) -> None:
        if not patience > 0:
            raise ValueError(f"patience={patience!r}: give the seconds that a pass may wait for a worker.")
        self.client, self.patience = client, patience

    @property
    def workers(self) -> int:  # type: ignore[override]
        """How many workers there are now."""
        return len(self._describe_workers())

    def _describe_workers(self) -> dict[str, Any]:
        found: dict[str, Any] = self.client.scheduler_info(n_workers=-1).get("workers", {})  # none once it is lost
        return found

    def room(self) -> tuple[int, str]:
        """Return the least that a worker has for each of its threads."""
        limits = [(w["memory_limit"] // w["nthreads"], a) for a, w in self._describe_workers().items() if w["nthreads"]]
        limits = [(limit, address) for limit, address in limits if limit]  # 0 is no limit
        if not limits:
            return sys.maxsize, "a worker"
        least, address = min(limits)
        return least, f"a thread of the worker {address}"

    def map(self, task: Callable[[S], T], items: Sequence[S]) -> Iterator[T]:
        """Yield ``task(item)`` of every item, in order."""
        with self._watch() as watch:
            name = watch.name
            shared = self.client.submit(_Constant(_Sealed(task)), key=f"gramian-task-{name}")
            ahead, futures = max(4, AHEAD * self.workers), {}
            for i in range(len(items)):
                for j in range(i, min(i + ahead, len(items))):
                    if j not in futures:
                        futures[j] = self._submit(shared, items[j], (f"gramian-share-{name}", j))
                try:
                    result: T = self._result(watch, futures[i])
                except _SuspectError:
                    watch.wait([future for future in futures.values() if future is not None])
                    result = self._run_alone(task, items, i)
                yield result
                futures[i] = None  # its result leaves the cluster

    def reduce(self, task: Callable[[S], T], items: Sequence[S], merge: Callable[[T, T], T]) -> T:
        """Merge on the cluster, by the same tree: one statistic comes back."""
        for _ in range(ATTEMPTS):
            try:
                return self._reduce(task, items, merge)
            except _SuspectError as error:
                if error.number is not None:
                    self._run_alone(task, items, error.number)
        raise ClusterError(
            f"Workers end again and again, whatever they work on: a pass was begun {ATTEMPTS} times. See their logs."
        )

    def _run_alone(self, task: Callable[[S], T], items: Sequence[S], i: int) -> T:
        """Do a task that was under way whenever a worker ended, with nothing beside it: was it that, or its company?"""
        with self._watch() as watch:
            shared = self.client.submit(_Constant(_Sealed(task)), key=f"gramian-task-{watch.name}")
            try:
                result: T = self._result(watch, self._submit(shared, items[i], (f"gramian-share-{watch.name}", i)))
                return result
            except _SuspectError as error:
                raise ClusterError(
                    f"{name_item(task, items[i])}: every worker that took it ended, the last ones with nothing else to "
                    "do, for want of memory perhaps. Give workers more memory, or set scikit-learn's working_memory "
                    "lower, which makes blocks shorter."
                ) from error

    def _reduce(self, task: Callable[[S], T], items: Sequence[S], merge: Callable[[T, T], T]) -> T:
        with self._watch() as watch:
            name = watch.name
            shared = self.client.submit(_Constant(_Sealed(task)), key=f"gramian-task-{name}")
            level = [self._submit(shared, item, (f"gramian-share-{name}", i)) for i, item in enumerate(items)]
            height, shared_merge = 0, _Sealed(merge)
            while len(level) > 1:
                height += 1
                level = [
                    self.client.submit(
                        _merge, shared_merge, *level[i : i + 2], key=(f"gramian-merge-{name}", height, i)
                    )
                    if i + 1 < len(level)
                    else level[i]
                    for i in range(0, len(level), 2)
                ]
            result: T = self._result(watch, level[0])
            return result

    def _submit(self, shared: Any, item: Any, key: tuple[str, int]) -> Any:
        """Begin a task; the function was sent once, as the result of a task of its own.

        The first part of a key makes the tasks of a pass a group, of which Dask hands a worker no more than it has
        threads for: a slow worker takes fewer, and one that ends takes few with it.
        """
        if isinstance(item, LazyItem):
            return self.client.submit(_apply, shared, item.build, self.client.compute(item.collection), key=key)
        return self.client.submit(_apply, shared, None, _Sealed(item), key=key)

    @contextmanager
    def _watch(self) -> Iterator[_Watch]:
        """Name the tasks of a pass, end it where no worker is left, and count those that were done again."""
        watch, begun = _Watch(self.client, self.patience), time.time()
        try:
            record_use(self)
            with watch:
                yield watch
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, ClusterError | _SuspectError):
                raise
            if watch.reason:
                raise ClusterError(watch.reason) from error
            if self.client.status != "running":
                raise ClusterError(
                    f"The scheduler at {self.client.scheduler.address if self.client.scheduler else 'its address'} was "
                    "lost in the middle of a pass. Start it again, and connect a new client."
                ) from error
            if isinstance(error, asyncio.CancelledError | CancelledError):
                raise ClusterError("Others cancelled the tasks of a pass, or restarted the workers.") from error
            raise
        with suppress(Exception):  # a figure is not worth a fit
            record_retries(self.client.run_on_scheduler(_count_lost_tasks, name=watch.name, since=begun - 60.0))

    def _result(self, watch: _Watch, future: Any) -> Any:
        from distributed import KilledWorker

        watch.awaited = [future]
        try:
            return future.result().open()
        except KilledWorker as error:
            number = re.search(r"gramian-share-[0-9a-f]+'?, (\d+)", str(error.task))
            raise _SuspectError(int(number[1]) if number else None) from error

    def describe(self) -> str:
        """Say how many workers there are."""
        return f"Dask, {self.workers} workers"


def _count_lost_tasks(dask_scheduler: Any, name: str, since: float) -> int:
    """Count the tasks of a pass that workers had under way, or had done, when they were lost; on the scheduler."""
    lost = 0
    for when, event in dask_scheduler.get_events("all"):
        if when >= since and isinstance(event, dict) and event.get("action") == "remove-worker":
            keys = [*event.get("processing-tasks", ()), *event.get("lost-computed-tasks", ())]
            lost += sum(name in str(key) for key in keys)
    return lost


class _Sealed:
    """A value as bytes, which becomes memory of its own where it is opened.

    Dask hands over arrays as views of what came from the network, at any address. Where numbers do not lie at multiples
    of their size, NumPy sums them in another order, and the last bits differ.
    """

    def __init__(self, value: Any) -> None:
        from distributed.protocol.pickle import dumps  # which knows functions too

        self.data: bytes = dumps(value)

    def open(self) -> Any:
        return pickle.loads(self.data)

    def __sizeof__(self) -> int:
        """What Dask counts against a worker's memory, and weighs before it sends it to another."""
        return object.__sizeof__(self) + len(self.data)


class _Constant:
    """Something to be kept on the cluster as it is: a function of nothing that returns itself, and holds a value."""

    def __init__(self, value: _Sealed) -> None:
        self.token, self.sealed = uuid.uuid4().hex, value

    def __call__(self) -> Any:
        return self

    def open(self) -> Any:
        """The value, opened once for all tasks of a worker."""
        return open_once(self.token, self.sealed.open)


def _apply(task: _Constant, build: Callable[[Any], Any] | None, item: Any) -> _Sealed:
    return _Sealed(task.open()(item.open() if build is None else build(item)))


def _merge(merge: _Sealed, one: _Sealed, other: _Sealed) -> _Sealed:
    return _Sealed(merge.open()(one.open(), other.open()))


_opened: OrderedDict[str, Any] = OrderedDict()
_opening = threading.RLock()  # what is opened may open something itself


def open_once(token: str, make: Callable[[], T]) -> T:
    """Return ``make()``, or what it returned in this process before for the same token; a few are kept.

    For what many tasks of a fit need of a file: the points that a kernel compares with all others.

    Examples
    --------
    >>> from gramian.compute.executor import open_once
    >>> open_once("a token", lambda: [1]) is open_once("a token", lambda: [2])
    True
    """
    with _opening:  # one reads, the others wait for it
        if token not in _opened:
            _opened[token] = make()
        _opened.move_to_end(token)
        while len(_opened) > OPENED:
            _opened.popitem(last=False)
        found: T = _opened[token]
        return found


_last_used: ContextVar[str] = ContextVar("gramian_last_used", default="")
_retries: ContextVar[int] = ContextVar("gramian_retries", default=0)


def begin_fit() -> None:
    """Forget who worked for the last fit."""
    _last_used.set("")
    _retries.set(0)


def record_use(executor: Executor) -> None:
    """Remember who works for this fit, for its certificate."""
    _last_used.set(executor.describe())


def record_retries(count: int) -> None:
    """Remember that so many tasks of this fit were done again, for workers were lost."""
    _retries.set(_retries.get() + count)


def describe_use() -> str:
    """Return who worked for this fit, or "" where this process did all of it; and how many tasks were done again."""
    retries = _retries.get()
    again = f", {retries} tasks done again as workers were lost" if retries > 1 else ", 1 task done again"
    return _last_used.get() + (again if retries else "")


def find_executor() -> Executor:
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
def cluster(where: Any, *, patience: float = PATIENCE) -> Iterator[Executor]:
    """Run the passes of fits in this block by the workers of a cluster, which read the files themselves.

    Workers need the same version of Gramian and the files under the same names. The answer has the bits of a fit in
    this process. What is in memory, here, is worked on here.

    Parameters
    ----------
    where : distributed.Client or str
        A Dask client; the address of a scheduler, ``"tcp://host:8786"``; ``"local[8]"``, a Dask cluster of 8 workers
        on this machine, ended with the block; or ``"processes[8]"``, 8 processes without Dask.
    patience : float, default=60
        Seconds that a pass waits while a Dask cluster has no worker, before it ends with :class:`ClusterError`. More
        where workers come from a queue; ``float("inf")`` waits for ever.

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
    with _open_executor(where, patience) as executor:
        token = _current.set(executor)
        try:
            yield executor
        finally:
            _current.reset(token)
            begin_fit()


@contextmanager
def _open_executor(where: Any, patience: float) -> Iterator[Executor]:
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
            yield Dask(client, patience)
    elif isinstance(where, str):
        with Client(where) as client:
            yield Dask(client, patience)
    elif isinstance(where, Client):
        yield Dask(where, patience)
    else:
        raise TypeError(f"cluster={where!r}: give a distributed.Client, or text that names a cluster.")
