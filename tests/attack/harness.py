"""Attacks: how many cases, from which seed, and child processes in which they may crash, hang or eat memory.

The short form runs with every test run. ``GRAMIAN_ATTACK_CASES=10000 GRAMIAN_ATTACK_SEED=… pytest tests/attack`` is the
long one: a failure names the seed and the case, and the same seed finds it again.
"""

import multiprocessing
import os
import resource
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

MEMORY = 2**33  # bytes of addresses, which libraries with threads take more of than of memory


def case_count(short: int) -> int:
    """How many cases to try: ``short``, unless GRAMIAN_ATTACK_CASES says another number."""
    return int(os.environ.get("GRAMIAN_ATTACK_CASES", short))


def seed() -> int:
    """The seed of all cases: 0, unless GRAMIAN_ATTACK_SEED says another."""
    return int(os.environ.get("GRAMIAN_ATTACK_SEED", 0))


class Outcome(NamedTuple):
    """What became of a case: the value that was returned, or how it ended.

    Attributes
    ----------
    how : {"returned", "raised", "crashed", "hung"}
        A crash is a process that ended by itself, by a signal or a call of ``exit``.
    value : object
        What was returned; else the exception, its type and text in words where it cannot be sent, or the exit status.
    """

    how: str
    value: Any


def run_in_child(function: Callable[..., Any], *args: Any, seconds: float = 60, memory: int = MEMORY) -> Outcome:
    """Call a function, found by its name at the top of its module, in a process of its own."""
    return run_cases(function, [args], seconds=seconds, memory=memory)[0]


def run_cases(
    function: Callable[..., Any], cases: Sequence[tuple[Any, ...]], *, seconds: float = 60, memory: int = MEMORY
) -> list[Outcome]:
    """Call a function with each of the arguments, one after the other, in one process as long as it lives.

    After a crash, or a case that takes more than ``seconds``, the rest goes on in another process.
    """
    outcomes: list[Outcome] = []
    context = multiprocessing.get_context("spawn")
    while len(outcomes) < len(cases):
        here, there = context.Pipe()
        child = context.Process(target=_work, args=(there, function, cases[len(outcomes) :], memory), daemon=True)
        child.start()
        there.close()
        try:
            here.recv()  # modules are imported
            while len(outcomes) < len(cases):
                if not here.poll(seconds):
                    outcomes.append(Outcome("hung", f"more than {seconds} s"))
                    break
                outcomes.append(here.recv())
        except EOFError:
            child.join()
            outcomes.append(Outcome("crashed", f"exit status {child.exitcode}"))
        finally:
            child.kill()
            child.join()
            here.close()
    return outcomes


def _work(pipe: Any, function: Callable[..., Any], cases: Sequence[tuple[Any, ...]], memory: int) -> None:
    """Send the outcome of each case as soon as it is there."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pipe.send("ready")
    for case in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                outcome = Outcome("returned", function(*case))
            except Exception as error:
                outcome = Outcome("raised", error)
        try:
            pipe.send(outcome)
        except Exception:  # an exception, or a value, that cannot be sent
            value = outcome.value
            text = f"{type(value).__name__}: {value}" if isinstance(value, Exception) else repr(value)
            pipe.send(Outcome(outcome.how, text))
