"""The progress bar is drawn on terminals only, and is fed by whatever reports (done, total)."""

import io

import numpy as np
import pytest
from rich.console import Console

from gramian import PCA
from gramian.display.progress import progress_bar
from gramian.pca.bootstrap import bootstrap


def console(terminal):
    return Console(file=io.StringIO(), force_terminal=terminal, width=80)


def test_a_terminal_shows_text_and_count():
    screen = console(True)
    with progress_bar("Bootstrap", screen) as report:
        report(3, 7)
        report(7, 7, "residual 1e-9 [bold]")
    shown = screen.file.getvalue()
    assert "Bootstrap" in shown
    assert "7/7" in shown
    assert "residual 1e-9 [bold]" in shown


def test_a_file_shows_nothing(capsys):
    quiet = console(False)
    with progress_bar("Bootstrap", quiet) as report:
        report(3, 7)
    assert quiet.file.getvalue() == ""
    with progress_bar("Bootstrap") as report:  # standard error is no terminal here
        report(3, 7)
    assert capsys.readouterr() == ("", "")


def test_the_bootstrap_drives_it():
    X = np.random.default_rng(0).normal(size=(30, 3)) * [3, 2, 1]
    screen = console(True)
    with progress_bar("Bootstrap", screen) as report:
        found = bootstrap(PCA(1).fit(X), X, n_replicates=60, scores=False, progress=report)
    assert found.n_replicates == 60
    assert "60/60" in screen.file.getvalue()


def interrupted(screen):
    with progress_bar("Work", screen) as report:
        report(1, 2)
        raise KeyboardInterrupt


def test_the_bar_goes_away_when_the_work_is_interrupted():
    screen = console(True)
    with pytest.raises(KeyboardInterrupt):
        interrupted(screen)
    with progress_bar("Again", screen) as report:  # the console is free for another
        report(1, 1)
    assert "Again" in screen.file.getvalue()
