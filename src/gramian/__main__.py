"""``python -m gramian``: the command ``gramian``, whose imports Ctrl-C ends without a traceback."""

import os
import signal

for _number in (signal.SIGINT, signal.SIGTERM):  # until the command has its own way to stop
    signal.signal(_number, lambda number, frame: os._exit(128 + number))

from gramian.cli import main  # noqa: E402

if __name__ == "__main__":
    main(prog_name="gramian")
