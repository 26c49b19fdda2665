"""Files appear whole or not at all, alone and together."""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from gramian.sources.writing import PARTIAL, REPLACED, PlaceTakenError, claim, write_whole, write_whole_folder


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_fails_leaves_nothing_behind_and_the_old_file_in_place(tmp_path: Path, error: type[BaseException]) -> None:
    old = tmp_path / "a.txt"
    old.write_text("old")

    def fail(part: Path) -> None:
        part.write_text("half")
        raise error

    with pytest.raises(error), write_whole(old, overwrite=True) as part:
        fail(part)
    with pytest.raises(error), write_whole_folder(tmp_path / "new" / "deep") as folder:
        fail(folder / "b.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert old.read_text() == "old"


def test_files_that_cannot_all_be_put_in_their_place_are_put_back(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(FileNotFoundError), write_whole_folder(tmp_path, ["a.txt", "b.txt"], overwrite=True) as folder:
        (folder / "a.txt").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "old"


def test_files_that_are_there_are_replaced_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for text, overwrite in (("first", False), ("second", True)):
        with write_whole(path, overwrite=overwrite) as part:
            part.write_text(text)
    with pytest.raises(FileExistsError, match=r"a\.txt"), write_whole(path):
        pytest.fail("refused before anything is written")
    with pytest.raises(FileExistsError, match=r"a\.txt"), write_whole_folder(tmp_path) as folder:
        (folder / "a.txt").write_text("third")
    assert path.read_text() == "second"


def test_a_link_stays_one_and_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with write_whole(tmp_path / "link") as part:
        part.write_text("whole")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "whole"
    with pytest.raises(IsADirectoryError), write_whole(tmp_path, overwrite=True):
        pytest.fail("refused before anything is written")
    with pytest.raises(FileNotFoundError, match="nowhere"), write_whole(tmp_path / "nowhere" / "a"):
        pytest.fail("refused before anything is written")


def test_a_reader_of_the_old_file_keeps_it_and_the_new_one_comes_by_a_rename(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with path.open() as reader:
        with write_whole(path, overwrite=True) as part:
            part.write_text("new")
            written = part.stat().st_ino
        assert reader.read() == "old"
    assert path.stat().st_ino == written
    assert path.read_text() == "new"


def test_a_folder_that_was_not_there_comes_by_one_rename(tmp_path: Path) -> None:
    home = tmp_path / "deep" / "out"
    with write_whole_folder(home) as folder:
        (folder / "a.txt").write_text("a")
        assert not home.exists()
        written = folder.stat().st_ino
    assert home.stat().st_ino == written
    assert home.stat().st_mode == (tmp_path / "deep").stat().st_mode
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


@pytest.mark.parametrize("there", ["file", "folder"])
def test_what_another_program_wrote_meanwhile_is_not_replaced(tmp_path: Path, there: str) -> None:
    target = tmp_path / "out"
    stack = ExitStack()
    if there == "file":
        target.mkdir()
        part = stack.enter_context(write_whole(target / "a.txt"))
    else:
        part = stack.enter_context(write_whole_folder(target)) / "a.txt"
        target.mkdir()
    part.write_text("ours")
    (target / "a.txt").write_text("theirs")
    with pytest.raises(FileExistsError, match=r"a\.txt"):
        stack.close()
    assert (target / "a.txt").read_text() == "theirs"
    assert list(tmp_path.rglob(f"{PARTIAL}*")) == []


def test_where_there_are_no_hard_links_a_file_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    with write_whole(tmp_path / "a.txt") as part:
        part.write_text("whole")
    assert (tmp_path / "a.txt").read_text() == "whole"
    stack = ExitStack()
    stack.enter_context(write_whole(tmp_path / "b.txt")).write_text("ours")
    (tmp_path / "b.txt").write_text("theirs")
    with pytest.raises(FileExistsError):
        stack.close()
    assert (tmp_path / "b.txt").read_text() == "theirs"


@pytest.mark.parametrize("exists", [False, True])
def test_a_place_is_written_by_one_at_a_time(tmp_path: Path, exists: bool) -> None:
    home = tmp_path / "out"
    if exists:
        home.mkdir()
    with write_whole_folder(home) as folder:
        (folder / "a.txt").write_text("first")
        with pytest.raises(PlaceTakenError, match="out"), write_whole_folder(home, overwrite=True):
            pytest.fail("refused before anything is written")
        with write_whole_folder(tmp_path / "other") as beside:  # other places are free
            (beside / "b.txt").write_text("other")
    with write_whole_folder(home, overwrite=True) as folder:
        (folder / "a.txt").write_text("second")
    assert [path.name for path in home.iterdir()] == ["a.txt"]
    assert (home / "a.txt").read_text() == "second"


def test_a_claim_leaves_nothing_and_clears_what_was_abandoned(tmp_path: Path) -> None:
    (tmp_path / f"{PARTIAL}abandoned").mkdir()
    (tmp_path / f"{PARTIAL}abandoned" / "half.txt").write_text("half")
    (tmp_path / f"{PARTIAL}file").write_text("no folder: not ours")
    (tmp_path / "precious" / REPLACED).mkdir(parents=True)
    (tmp_path / "precious" / "a.txt").write_text("mine")
    (tmp_path / f"{PARTIAL}link").symlink_to(tmp_path / "precious")
    with claim(tmp_path / "out"), claim(tmp_path / "new" / "out"):
        assert (tmp_path / "new").is_dir()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {f"{PARTIAL}file", f"{PARTIAL}link", "precious"}
    assert (tmp_path / "precious" / "a.txt").read_text() == "mine"


KILLED = """
import os, sys
from pathlib import Path
from gramian.sources.writing import write_whole_folder

rename, count = os.rename, int(sys.argv[1])
for moment in range(count):
    if os.fork():
        os.wait()
        continue
    done = 0

    def rename_until(start, end):
        global done
        if done == moment:
            os._exit(9)  # as kill -9: nothing is cleaned up
        done += 1
        rename(start, end)

    os.rename = rename_until
    with write_whole_folder(Path(sys.argv[2], str(moment)), overwrite=True) as folder:
        for name in "abd":
            (folder / name).write_text("new")
    os._exit(0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no locks that end with a process")
def test_a_program_killed_at_any_moment_leaves_no_mixture_and_the_next_one_mends_it(tmp_path: Path) -> None:
    """Old files a, b, c; new ones a, b, d; and somebody else's notes, which stay whatever happens."""
    moments, old, new = 7, {"a": "old", "b": "old", "c": "old"}, {"a": "new", "b": "new", "c": "old", "d": "new"}
    for moment in range(moments):
        home = tmp_path / str(moment)
        home.mkdir()
        for name, text in {**old, "notes": "mine"}.items():
            (home / name).write_text(text)
    subprocess.run([sys.executable, "-c", KILLED, str(moments), str(tmp_path)], check=True)
    mended = []
    for moment in range(moments):
        home = tmp_path / str(moment)
        there = {path.name: path.read_text() for path in home.iterdir() if path.is_file()}
        assert there.pop("notes") == "mine"
        assert len({there[name] for name in "abd" if name in there}) <= 1, there  # of one run
        assert (home / "c").read_text() == "old"
        if "d" not in there:
            (home / "d").write_text("mine")  # what appears meanwhile is not replaced
        with claim(home):
            pass
        there = {path.name: path.read_text() for path in home.iterdir()}
        assert there.pop("notes") == "mine"
        mended.append(there)
    before, after = {**old, "d": "mine"}, {**new, "d": "mine"}
    assert mended == [before, before, before, after, after, after, new]
