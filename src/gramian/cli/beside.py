"""Work that is done in the background while results are being written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Beside"]


class Beside:
    """A function that is called in a thread of its own, and whose answer is waited for when it is needed.

    The thread ends with the process: Ctrl-C does not wait for it.

    Parameters
    ----------
    work : callable
        What to do.

    Examples
    --------
    >>> from gramian.cli.beside import Beside
    >>> later = Beside(lambda: 6 * 7)
    >>> later.start()
    >>> later.result()
    42
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self._answer = work, None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def result(self) -> Any:
        """Wait for the answer; what the function raised is raised here."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answer

    def _run(self) -> None:
        try:
            self._answer = self._work()
        except Exception as error:
            self._error = error
