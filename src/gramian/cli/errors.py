"""What ends a command: exit codes, one readable line for each, and a traceback only where it was asked for."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread
from types import FrameType
from typing import Any, NoReturn, TextIO

import click

DONE, FAILED, BAD_USAGE, BAD_DATA, UNMET, STOPPED, BROKEN_PIPE, TERMINATED = 0, 1, 2, 3, 4, 130, 141, 143


class DataError(click.ClickException):
    """The data cannot be used as they are."""

    exit_code = BAD_DATA


class OutputError(click.ClickException):
    """The results cannot be written where they were to go."""

    exit_code = FAILED


@dataclass
class Invocation:
    """What was typed after ``gramian``, where answers go, and whether a traceback is wanted where that fails."""

    arguments: list[str]
    debug: bool = False
    answers: TextIO | None = None


def answer_stream() -> TextIO:
    """Standard output as it was when the command began.

    While it runs, libraries, bars and other threads may put another stream in its place: what they print is not to be
    mixed with the answer, and the answer not to be lost with what they swallow.
    """
    context = click.get_current_context(silent=True)
    invocation = None if context is None else context.find_object(Invocation)
    stream = sys.stdout if invocation is None or invocation.answers is None else invocation.answers
    return sys.stdout if stream.closed else stream


def open_missing_streams() -> None:
    """Give a process that was begun without standard streams, as by ``>&-``, ones that say so where they are used.

    The first file that it opens would otherwise take the place of one, and be written to by whoever prints.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)  # takes the lowest number, which is this
        if getattr(sys, name) is None:  # what is written to standard output fails, as the results are lost
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def one_line(text: object) -> str:
    r"""Return a text on one line, without anything that could move the cursor or colour the screen.

    Examples
    --------
    >>> from gramian.cli.errors import one_line
    >>> one_line("a\x1b[31mb\n  c")
    'a�[31mb c'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(str(text).split()))


@contextmanager
def write_errors(place: object) -> Iterator[None]:
    """Turn a full disk, a folder that may not be written to and the like into one line."""
    try:
        yield
    except FileExistsError as error:
        raise OutputError(
            f"{place} holds files now that were not there when this run began: add --force to replace them, or choose "
            "another --out."
        ) from error
    except OSError as error:
        raise OutputError(f"cannot write to {place}: {error.strerror or error}. Choose another --out.") from error


def run_and_explain(work: Callable[[], Any], invocation: Invocation) -> int:
    """Run a command; say on one line what stopped it, if anything did, and return the exit code."""
    try:
        code = work()
        answers = invocation.answers
        if answers is not None and not answers.closed:
            answers.flush()
        sys.stdout.flush()
        return code if isinstance(code, int) else DONE
    except (click.Abort, Terminated) as stop:
        click.echo(STOPPED_TEXT, err=True)
        return TERMINATED if isinstance(stop, Terminated) else STOPPED
    except (BrokenPipeError, SystemExit):  # whoever read the output has read enough; rich answers that by an exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return BAD_USAGE
    except Exception as error:
        if invocation.debug:
            click.echo("".join(traceback.format_exception(error)), err=True, nl=False)
        code, text = FAILED, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if isinstance(error, click.ClickException):
            code, text = error.exit_code, error.format_message()
        elif isinstance(error, OSError) and error.strerror:  # a full disk behind standard output, say
            text = f"{error.strerror}: {error.filename or 'standard output'}."
        else:
            text = f"{text.rstrip('.')}. This is unexpected: --debug shows where it happened."
        if isinstance(error, click.UsageError):
            where = f" Try '{error.ctx.command_path} --help'." if error.ctx is not None else ""
            text = f"{text}{'' if text.endswith(('.', '?')) else '.'}{where}"
        click.echo(f"Error: {one_line(text)}", err=True)
        return code


PATIENCE = 1.0  # seconds that unwinding may take before the process is ended as it is
STOPPED_TEXT = "Stopped. Nothing half done is left behind."
_stopping: list[int] = []  # the exit code, once the process was asked to end


class Terminated(BaseException):
    """The process was asked to end."""


def stop_on_signals() -> None:
    """Turn SIGINT and SIGTERM into exceptions of the main thread, and end the process where none comes through.

    Python drops an exception that is raised while a finaliser or a callback from C runs, raises none as long as a call
    of C lasts, and any library may catch it: a thread of its own, which the signal wakes, waits a moment and then ends
    the process. A second signal ends it at once.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if _stopping:
            leave(_stopping[0])
        _stopping.append(128 + number)
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    def show_unraisable(dropped: Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt | Terminated):
            sys.__unraisablehook__(dropped)

    def end_when_woken() -> None:
        number = os.read(wake, 1)[0]
        time.sleep(PATIENCE)
        _remove_partial_folders()
        os.write(2, f"{STOPPED_TEXT}\n".encode())
        os._exit(128 + number)

    sys.unraisablehook = show_unraisable
    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    wake, signalled = os.pipe()
    if os.name == "posix":
        os.set_blocking(signalled, False)
        Thread(target=end_when_woken, daemon=True).start()
        signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)


def stop_code() -> int:
    """The exit code of a process that was asked to end, else 0."""
    return _stopping[0] if _stopping else DONE


def leave(code: int) -> NoReturn:
    """End now: what is to be done at the end is done, but threads that still compute are not waited for.

    Python's own way to end takes long, and a signal that comes meanwhile is answered with a traceback or not at all.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _remove_partial_folders()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


def _remove_partial_folders() -> None:
    writing: Any = sys.modules.get("gramian.sources.writing")  # not loaded: nothing was written
    if writing is not None:
        writing.remove_living()
