"""Files appear whole or not at all, alone and together."""

from pathlib import Path

import pytest

from gramian.sources.writing import write_whole, write_whole_folder


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
