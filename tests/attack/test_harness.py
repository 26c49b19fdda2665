"""Child processes for attacks: every way that a case can end is told, and the cases after it are run."""

import os
import signal
import time
from typing import Any

import numpy as np
import pytest

from attack.harness import Outcome, case_count, run_cases, seed


def act(what: str) -> Any:
    """End in one of several ways."""
    if what == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "hang":
        time.sleep(1000)
    if what == "allocate":
        np.ones(2**31)
    if what == "raise":
        raise KeyError(what)
    return what


def test_outcomes() -> None:
    cases = [(what,) for what in ("a", "crash", "raise", "hang", "allocate", "b")]
    found = run_cases(act, cases, seconds=2.0, memory=2**32)
    assert [outcome.how for outcome in found] == ["returned", "crashed", "raised", "hung", "raised", "returned"]
    assert found[0] == Outcome("returned", "a")
    assert str(-signal.SIGSEGV) in found[1].value
    assert isinstance(found[2].value, KeyError)
    assert isinstance(found[4].value, MemoryError)


def test_count_and_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRAMIAN_ATTACK_CASES", raising=False)
    monkeypatch.setenv("GRAMIAN_ATTACK_SEED", "7")
    assert (case_count(12), seed()) == (12, 7)
    monkeypatch.setenv("GRAMIAN_ATTACK_CASES", "10000")
    assert case_count(12) == 10000
