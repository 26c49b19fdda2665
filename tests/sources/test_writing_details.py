"""Details of whole files that only a wrong change would show: names in messages, locks that are not there, JSON."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

from gramian.sources import writing
from gramian.sources.writing import (
    PARTIAL,
    REPLACED,
    REPLACING,
    PlaceTakenError,
    claim,
    refuse_existing,
    remove_abandoned,
    remove_living,
    write_json,
    write_whole,
    write_whole_folder,
)


def test_messages_name_the_first_file_and_its_folder(tmp_path: Path) -> None:
    paths = [tmp_path / "none" / "a.csv", tmp_path / "other" / "b.csv"]
    with pytest.raises(FileNotFoundError, match=r"none.*a\.csv"):
        refuse_existing(paths)
    for name in "xy":
        (tmp_path / name).mkdir()
    with pytest.raises(IsADirectoryError, match="x is a folder"):
        refuse_existing([tmp_path / "a", tmp_path / "x", tmp_path / "y"])


def test_a_file_that_is_missing_is_looked_for_in_the_folder_of_the_first(tmp_path: Path) -> None:
    refuse_existing([tmp_path / "a", tmp_path / "none" / "b"])  # files go to one folder, that of the first


def test_the_place_of_the_first_name_is_the_one_that_is_claimed(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    with claim(tmp_path / "a"), pytest.raises(PlaceTakenError), write_whole_folder(tmp_path, names):
        pass
    for other in "bc":
        with claim(tmp_path / other), write_whole_folder(tmp_path, names, overwrite=True) as folder:
            for name in names:
                (folder / name).write_text(name)


def test_folders_on_the_way_are_made_and_removed_again(tmp_path: Path) -> None:
    with pytest.raises(KeyError), write_whole_folder(tmp_path / "one" / "two" / "three"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with write_whole_folder(tmp_path / "one" / "two") as folder:
        (folder / "a").write_text("a")
    assert (tmp_path / "one" / "two" / "a").read_text() == "a"


@pytest.mark.parametrize("absent", ["module", "file system"])
def test_without_locks_files_are_written_and_nothing_is_taken_for_abandoned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: str
) -> None:
    left = tmp_path / f"{PARTIAL}abc"
    left.mkdir()
    (left / "precious").write_text("of a program that may be alive")
    if absent == "module":
        monkeypatch.setattr(writing, "fcntl", None)
    else:

        def flock(handle: int, how: int) -> None:
            raise OSError(errno.ENOLCK, "no locks")

        monkeypatch.setattr(writing.fcntl, "flock", flock)
    with write_whole(tmp_path / "a") as part:
        part.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
    assert (left / "precious").exists()


def test_a_folder_that_vanishes_before_it_is_locked_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, times = os.open, []

    def vanishing(path: object, *how: object) -> int:
        if PARTIAL in str(path) and not times:
            times.append(path)
            os.rmdir(str(path))
        return plain(path, *how)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", vanishing)
    with write_whole(tmp_path / "a") as part:
        part.write_text("whole")
    assert (tmp_path / "a").read_text() == "whole"
    assert len(times) == 1


def test_only_abandoned_folders_are_removed_and_each_of_them(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (outside / REPLACED).mkdir()  # as if new files waited there
    home = tmp_path / "home"
    home.mkdir()
    (home / f"{PARTIAL}link").symlink_to(outside)
    for name in ("1", "2", "3", "4"):
        (home / f"{PARTIAL}{name}").mkdir()
    for taken in ("1", "3"):  # held: whichever is met first, the others are still removed
        held = writing._lock(home / f"{PARTIAL}{taken}")
        assert held is not None
        remove_abandoned(home)
        assert sorted(path.name[len(PARTIAL) :] for path in home.iterdir()) == sorted(["link", taken])
        os.close(held[0])
        for name in ("1", "2", "3", "4"):
            (home / f"{PARTIAL}{name}").mkdir(exist_ok=True)
    assert (outside / "kept").exists()


@pytest.mark.parametrize("stage", [None, REPLACING, REPLACED])
def test_a_process_that_ends_removes_what_it_began_unless_old_files_wait_there(
    tmp_path: Path, stage: str | None
) -> None:
    with write_whole(tmp_path / "a") as part:
        if stage is not None:
            (part.parent / stage).mkdir()
        remove_living()
        assert part.parent.exists() == (stage is not None)
        part.parent.mkdir(exist_ok=True)
        part.write_text("whole")
    remove_living()  # nothing of this process is left, and nothing is wrong with that
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_living_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    with claim(tmp_path / "a"):
        (hidden,) = tmp_path.iterdir()
        hidden.rmdir()
        remove_living()


def test_json_is_strict_readable_and_ends_its_last_line(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"λ": [np.nan, np.inf, 1.5], "n": {"k": np.int64(3)}})
    text = (tmp_path / "a.json").read_text("utf-8")
    assert json.loads(text) == {"λ": [None, None, 1.5], "n": {"k": 3}}
    assert text.startswith('{\n  "λ": [\n    null')
    assert text.endswith("}\n")
