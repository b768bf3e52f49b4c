"""Files and folders appear complete or not at all."""

import os
from pathlib import Path

import pytest

from traceviz.core.errors import OutputError, OutputExistsError
from traceviz.core.files import check_folder_free, new_file, new_folder


def anything(_: Path) -> bool:
    return True


def nothing(_: Path) -> bool:
    return False


def test_a_new_file_appears_when_its_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with new_file(path, force=False) as temporary:
        temporary.write_text("text")
        assert not path.exists()
        assert temporary.parent == tmp_path  # a rename within one file system
    assert path.read_text() == "text"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_block_leaves_no_file_and_the_old_one_intact(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(error), new_file(path, force=True) as temporary:  # noqa: PT012 (the block is what fails)
        temporary.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_file_is_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(OutputExistsError, match="--force"), new_file(path, force=False):
        pytest.fail("must not get here")
    with new_file(path, force=True) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_a_file_in_a_folder_that_does_not_exist_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"), new_file(tmp_path / "no" / "out.txt", force=False):
        pytest.fail("must not get here")


def test_a_file_never_replaces_a_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with (
        pytest.raises(OutputExistsError, match="not a regular file"),
        new_file(tmp_path / "out", force=True) as temporary,
    ):
        temporary.write_text("x")
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_a_new_file_may_be_read_by_others(tmp_path: Path) -> None:
    with new_file(tmp_path / "out", force=False) as temporary:
        temporary.write_text("x")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o644


def test_a_new_folder_appears_when_its_block_ends(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    with new_folder(folder, force=False, replaceable=nothing) as temporary:
        (temporary / "a").write_text("x")
        assert not folder.exists()
    assert [path.name for path in folder.iterdir()] == ["a"]
    assert [path.name for path in folder.parent.iterdir()] == ["out"]
    assert folder.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_block_leaves_no_folder_and_the_old_one_intact(tmp_path: Path, error: type[BaseException]) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "old").write_text("old")
    with pytest.raises(error), new_folder(folder, force=True, replaceable=anything) as temporary:  # noqa: PT012
        (temporary / "half").write_text("x")
        raise error
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "old"]


def test_a_folder_of_ours_is_replaced_with_force(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "old").write_text("old")
    with pytest.raises(OutputExistsError):
        check_folder_free(folder, force=False, replaceable=anything)
    with new_folder(folder, force=True, replaceable=anything) as temporary:
        (temporary / "new").write_text("new")
    assert [path.name for path in folder.iterdir()] == ["new"]


def test_somebody_elses_folder_is_not_replaced_even_with_force(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("important")
    with pytest.raises(OutputExistsError, match="not replaced, even with --force"):
        check_folder_free(tmp_path, force=True, replaceable=nothing)


def test_a_file_in_the_place_of_the_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("important")
    with (
        pytest.raises(OutputExistsError),
        new_folder(tmp_path / "out", force=True, replaceable=anything),
    ):
        pytest.fail("must not get here")
    assert (tmp_path / "out").read_text() == "important"


def test_an_empty_folder_is_free(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with new_folder(tmp_path / "out", force=False, replaceable=nothing) as temporary:
        (temporary / "a").write_text("x")
    assert (tmp_path / "out" / "a").read_text() == "x"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_may_not_be_written_is_an_output_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="-o"), new_folder(tmp_path / "out", force=False, replaceable=nothing):
        pytest.fail("must not get here")


def test_a_parent_that_is_a_file_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(OutputError, match="cannot be written"),
        new_folder(tmp_path / "file" / "out", force=False, replaceable=nothing),
    ):
        pytest.fail("must not get here")
