"""Work shared between cores: one Python thread per core, each with single-threaded BLAS on tiles in its cache.

Tiles that fit a core's cache multiply faster than one large product whose operand is streamed by all BLAS
threads: at 20,000×2,000 times 24 columns, AᵀAV takes 0.055 s this way and 0.103 s with two BLAS threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

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
    return max((lib["num_threads"] for lib in _controller().info()), default=1)


class _SharedLimit:
    """Keep BLAS single-threaded while any caller needs it.

    Two fits running in two user threads would otherwise each save and restore the setting in the wrong
    order and leave BLAS limited for good.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.threads = 1

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self.lock:
            if self.depth == 0:
                self.threads = n_threads()
                self.limiter = _controller().limit(limits=1)
            self.depth += 1
        try:
            yield
        finally:
            with self.lock:
                self.depth -= 1
                if self.depth == 0:
                    self.limiter.restore_original_limits()


_limit = _SharedLimit()


def quiet_blas() -> AbstractContextManager[None]:
    """Keep BLAS to one thread for a while; our own threads go on.

    BLAS threads spin for some 25 ms after each call in case another follows, and meanwhile take a core from ours: with
    small BLAS calls between tiled products, a pass of 0.056 s took 0.09 s.
    """
    return _limit()


def quiet_if_small(size: int) -> AbstractContextManager[None]:
    """Keep BLAS to one thread where square matrices are too small to share: starting its threads would take longer."""
    return quiet_blas() if size <= ONE_CORE else nullcontext()


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Threads kept for the next call: starting them takes as long as a small product."""
    return ThreadPoolExecutor(workers, thread_name_prefix="gramian")


if hasattr(os, "register_at_fork"):  # a forked child has none of its parent's threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def parallel(work: Callable[[Sequence[S]], T], items: Sequence[S], *, serial: bool = False) -> list[T]:
    """Split items into one share per thread and return ``work(share)`` for each, in a fixed order.

    The split depends on the number of threads alone, so sums of the returned parts are reproducible. With ``serial``
    this thread does all of it.

    Examples
    --------
    >>> from gramian.compute.threads import parallel
    >>> sum(parallel(sum, [1, 2, 3, 4, 5]))
    15
    """
    workers = 1 if serial else min(n_threads(), len(items))
    if workers <= 1:
        return [work(items)]
    shares = [items[i::workers] for i in range(workers)]
    stop = threading.Event()

    def work_until_stopped(share: Sequence[S]) -> T:
        return work(_Interruptible(share, stop))

    with _limit():
        tasks = [_pool(workers).submit(work_until_stopped, share) for share in shares]
        try:
            return [task.result() for task in tasks]
        except BaseException:  # Ctrl-C included: let the other threads stop at their next tile
            stop.set()
            wait(tasks)
            raise


class _Interruptible(Sequence[S]):
    """A sequence whose iteration ends early once ``stop`` is set."""

    def __init__(self, items: Sequence[S], stop: threading.Event) -> None:
        self._items, self._stop = items, stop

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self._items[index]

    def __iter__(self) -> Iterator[S]:
        for item in self._items:
            if self._stop.is_set():
                return
            yield item
