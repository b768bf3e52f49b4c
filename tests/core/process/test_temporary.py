"""Temporary files go with the block that made them, else with the process."""

import subprocess
import sys
from pathlib import Path

import pytest

from traceviz.core.errors import OutputError
from traceviz.core.files import new_folder
from traceviz.core.process.temporary import drop, drop_all, note, temporary_folder


def test_a_temporary_folder_is_private_and_goes_with_its_block(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with temporary_folder("traceviz-test-") as folder:
        (folder / "sub").mkdir()
        assert (folder.parent, folder.name[:14], folder.stat().st_mode & 0o777) == (tmp_path, "traceviz-test-", 0o700)
    assert list(tmp_path.iterdir()) == []


def test_a_name_may_be_noted_without_a_file_and_a_link_is_removed_and_not_followed(tmp_path):
    (tmp_path / "kept").mkdir()
    link, nothing = note(tmp_path, "a"), note(tmp_path, "a")
    link.symlink_to(tmp_path / "kept")
    drop(link)
    drop(nothing)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_what_a_block_had_no_time_to_remove_is_removed_at_the_end(tmp_path):
    note(tmp_path, "file-").write_text("half")
    note(tmp_path, "folder-").mkdir()
    drop_all()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.process
def test_the_end_of_the_process_is_such_an_end(tmp_path):
    program = "import sys, pathlib\nfrom traceviz.core.process.temporary import note\n"
    program += "note(pathlib.Path(sys.argv[1]), 'a').mkdir()"
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "old").touch()
    real = Path.rename

    def rename(path, target):
        if target == folder and not (path / "old").exists():
            raise OSError(5, "Input/output error")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with (
        pytest.raises(OutputError, match="Input/output error"),
        new_folder(folder, force=True, replaceable=lambda _: True) as temporary,
    ):
        (temporary / "new").touch()
    monkeypatch.undo()
    assert [path.name for path in folder.iterdir()] == ["old"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
