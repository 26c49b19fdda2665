"""What Ctrl-C and a request to end do: an exception, so that every temporary file is removed, and a prompt end."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

__all__ = ["Terminated", "leave", "stop_on_signals"]

AGAIN = 10.0  # seconds after which a stop that nothing came of is tried again


class Terminated(BaseException):
    """The process was asked to end."""


def stop_on_signals() -> None:
    """Turn SIGINT and SIGTERM into exceptions of the main thread.

    Python drops an exception that is raised while a finaliser or a callback from C runs; then it is raised again.
    """
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _terminate)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _try_again()
    raise KeyboardInterrupt


def _terminate(number: int, frame: FrameType | None) -> None:
    _try_again()
    raise Terminated


def _try_again() -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, AGAIN)


def leave(code: int) -> NoReturn:
    """End now: what is to be done at the end is done, but threads that still compute are not waited for."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
