"""Work shared between cores: one Python thread per core, each with single-threaded BLAS on tiles in its cache.

Tiles that fit a core's cache multiply faster than one large product whose operand is streamed by all BLAS
threads: at 20,000×2,000 times 24 columns, AᵀAV takes 0.055 s this way and 0.103 s with two BLAS threads.

What BLAS returns depends, in the last bits, on how many threads it has, and a sum on the order of its terms. Sums over
tiles are therefore made in shares that depend on the tiles alone, each with single-threaded BLAS, and merged in a fixed
order (:func:`parallel_sum`): the same bits whatever the number of threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ContextDecorator
from functools import cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

SHARES = 16  # of a sum, whatever the number of threads: with more, sums over few tiles have more to merge

T = TypeVar("T")
S = TypeVar("S")

ONE_CORE = 512  # rows of a square matrix that one core factors as fast as several


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def n_threads() -> int:
    """Return how many threads BLAS may use now: the user's own limit, however it was set."""
    if _limit.depth:
        return _limit.threads
    return max((lib.get_num_threads() or 1 for lib in _controller().lib_controllers), default=1)


class _SharedLimit(ContextDecorator):
    """Keep BLAS single-threaded while any caller needs it.

    Two fits running in two user threads would otherwise each save and restore the setting in the wrong
    order and leave BLAS limited for good.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.threads = 1

    def __enter__(self) -> None:
        with self.lock:
            if self.depth == 0:
                # asked of the libraries themselves: threadpoolctl's own context takes 100 µs, as long as a small fit
                self.restore = [(lib, lib.get_num_threads()) for lib in _controller().lib_controllers]
                self.threads = max((threads or 1 for _, threads in self.restore), default=1)
                for lib, threads in self.restore:
                    if threads != 1:
                        lib.set_num_threads(1)
            self.depth += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                for lib, threads in self.restore:
                    if threads != 1:
                        lib.set_num_threads(threads)


_limit = _SharedLimit()


def quiet_blas() -> _SharedLimit:
    """Keep BLAS to one thread for a while, or, as a decorator, in a function; our own threads go on.

    What is computed meanwhile has the same bits for any number of threads.

    BLAS threads spin for some 25 ms after each call in case another follows, and meanwhile take a core from ours: with
    small BLAS calls between tiled products, a pass of 0.056 s took 0.09 s.
    """
    return _limit


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Threads kept for the next call: starting them takes as long as a small product."""
    return ThreadPoolExecutor(workers, thread_name_prefix="gramian")


if hasattr(os, "register_at_fork"):  # a forked child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def parallel(work: Callable[[Sequence[S]], T], items: Sequence[S], *, serial: bool = False) -> list[T]:
    """Split items into one share per thread and return ``work(share)`` for each, BLAS with one thread in all of them.

    For work whose results do not depend on how items are shared, each written to its own place: sums are for
    :func:`parallel_sum`. With ``serial`` this thread does all of it.

    Examples
    --------
    >>> from gramian.compute.threads import parallel
    >>> sum(parallel(sum, [1, 2, 3, 4, 5]))
    15
    """
    workers = 1 if serial else min(n_threads(), len(items))
    if workers <= 1:
        with _limit:
            return [work(items)]
    shares = [items[i::workers] for i in range(workers)]
    stop = threading.Event()

    def work_until_stopped(share: Sequence[S]) -> T:
        return work(_Interruptible(share, stop))

    with _limit:
        tasks = [_pool(workers - 1).submit(work_until_stopped, share) for share in shares[1:]]
        try:
            return [work_until_stopped(shares[0]), *(task.result() for task in tasks)]
        except BaseException:  # Ctrl-C included: let the other threads stop at their next tile
            stop.set()
            wait(tasks)
            raise


def parallel_each(work: Callable[[S], None], items: Sequence[S]) -> None:
    """Call ``work`` with each item, BLAS with one thread: the next one goes to the thread that is free first.

    Examples
    --------
    >>> from gramian.compute.threads import parallel_each
    >>> seen = set()
    >>> parallel_each(seen.add, range(5))
    >>> sorted(seen)
    [0, 1, 2, 3, 4]
    """
    upcoming = iter(items)

    def work_on_items(threads: Sequence[int]) -> None:
        for item in threads.share(upcoming) if isinstance(threads, _Interruptible) else upcoming:
            work(item)

    parallel(work_on_items, range(min(n_threads(), len(items))))


def split_runs(items: Sequence[S]) -> list[Sequence[S]]:
    """Split items into the runs that :func:`parallel_sum` sums: as many as items, and at most 16.

    Examples
    --------
    >>> from gramian.compute.threads import split_runs
    >>> split_runs(range(40))[:2]
    [range(0, 2), range(2, 5)]
    """
    count = min(SHARES, len(items))
    return [items[len(items) * i // count : len(items) * (i + 1) // count] for i in range(count)]


def parallel_sum(
    work: Callable[[Sequence[S]], T], items: Sequence[S], merge: Callable[[T, T], T], *, serial: bool = False
) -> T:
    """Sum over items: ``work(share)`` of runs of them, merged two by two, with the same bits for any number of threads.

    There are as many runs as items, and at most 16; run i is merged with its neighbour as soon as both are there, pairs
    of runs with the next pair, and so on: a tree that depends on the number of items alone. At most log₂ 16 sums and
    one for each thread are kept at a time.

    Parameters
    ----------
    work : callable
        The sum over a sequence of items.
    items : sequence
        At least one.
    merge : callable
        The sum of two sums, of which the first may be overwritten.
    serial : bool, default=False
        Whether this thread does all of it.

    Examples
    --------
    >>> from operator import add
    >>> from gramian.compute.threads import parallel_sum
    >>> parallel_sum(sum, [1, 2, 3, 4, 5], add)
    15
    """
    count = min(SHARES, len(items))
    if count <= 1:
        return parallel(work, items, serial=True)[0]
    waiting: dict[tuple[int, int], T] = {}  # sums whose neighbour is not there yet, by height and place in the tree
    lock, next_run = threading.Lock(), enumerate(split_runs(items))

    def work_on_runs(threads: Sequence[int]) -> None:
        # each thread takes the next run when it is done with one: which thread sums a run does not show in its bits
        for place, run in next_run:
            total = work(threads.share(run) if isinstance(threads, _Interruptible) else run)
            width, height = count, 0
            while width > 1:
                if place ^ 1 < width:  # the last of an odd number has no neighbour, and goes up alone
                    with lock:
                        if (height, place ^ 1) not in waiting:
                            waiting[height, place] = total
                            break
                        other = waiting.pop((height, place ^ 1))
                    total = merge(total, other) if place % 2 == 0 else merge(other, total)
                width, height, place = (width + 1) // 2, height + 1, place // 2
            else:
                waiting[height, 0] = total

    parallel(work_on_runs, range(min(n_threads(), count)), serial=serial)
    return waiting.popitem()[1]


def add_to(total: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sum of two arrays, in the memory of the first; what overflows is infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        total += other
    return total


class _Interruptible(Sequence[S]):
    """A sequence whose iteration ends early once ``stop`` is set."""

    def __init__(self, items: Sequence[S], stop: threading.Event) -> None:
        self._items, self._stop = items, stop

    def share(self, items: Any) -> _Interruptible[Any]:
        """Return other items, in a sequence or an iterator, that end with this one."""
        return _Interruptible(items, self._stop)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._items[index]

    def __iter__(self) -> Iterator[S]:
        for item in self._items:
            if self._stop.is_set():
                return
            yield item
