"""The SHA-256 of sources."""

import hashlib
import json
import os

import pytest

from traceviz.archive.sources.hashes import files_in, relevant, source_sha256
from traceviz.core.errors import UnknownFormatError


def test_a_files_hash_is_its_sha256_and_its_size_is_told(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 3_000_000)
    assert source_sha256(tmp_path / "a") == (hashlib.sha256(b"x" * 3_000_000).hexdigest(), 3_000_000)


def test_a_folders_hash_is_that_of_the_lines_of_its_files(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b").write_bytes(b"2")
    (tmp_path / "a").write_bytes(b"1")
    lines = b"".join(
        name + b"\0" + hashlib.sha256(content).hexdigest().encode() + b"\n"
        for name, content in ((b"a", b"1"), (b"sub/b", b"2"))
    )
    assert source_sha256(tmp_path) == (hashlib.sha256(lines).hexdigest(), 2)


def make(folder, order):
    for name in order:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return source_sha256(folder)[0]


def test_2_folders_with_the_same_files_have_1_hash_wherever_and_whenever_made(tmp_path):
    names = ["manifest.json", "raw/a", "raw/b/c", "raw-b"]
    assert make(tmp_path / "one", names) == make(tmp_path / "elsewhere" / "two", reversed(names))


@pytest.mark.parametrize("change", ["content", "name", "more", "moved"])
def test_a_change_in_a_folder_changes_its_hash(tmp_path, change):
    before = make(tmp_path, ["a", "raw/b"])
    if change == "content":
        (tmp_path / "a").write_text("b")
    elif change == "name":
        (tmp_path / "a").rename(tmp_path / "A")
    elif change == "more":
        (tmp_path / "c").touch()
    else:
        (tmp_path / "raw" / "b").rename(tmp_path / "b")
    assert source_sha256(tmp_path)[0] != before


def test_links_pipes_and_empty_folders_are_no_part_of_a_folder(tmp_path):
    before = make(tmp_path / "run", ["a"])
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "run" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "run" / "folder").symlink_to(tmp_path)
    (tmp_path / "run" / "empty").mkdir()
    os.mkfifo(tmp_path / "run" / "pipe")
    assert source_sha256(tmp_path / "run")[0] == before
    assert files_in(tmp_path / "run") == ["a"]


def test_what_tensorboard_computed_beside_captures_changes_nothing(tmp_path):
    before = make(tmp_path, ["h1.xplane.pb", "h2.xplane.pb"])
    (tmp_path / "h1.overview_page.pb").write_bytes(b"cache")
    assert source_sha256(tmp_path)[0] == before
    assert relevant(["manifest.json", "h1.xplane.pb", "raw/a"]) == ["h1.xplane.pb", "manifest.json", "raw/a"]


def test_names_that_are_not_utf8_are_hashed_by_their_bytes(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / os.fsdecode(b"\xff")).write_bytes(b"1")
    line = b"\xff\0" + hashlib.sha256(b"1").hexdigest().encode() + b"\n"
    assert source_sha256(tmp_path / "d")[0] == hashlib.sha256(line).hexdigest()


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnknownFormatError, match="is no file"):
        source_sha256(tmp_path / "pipe")


def test_what_is_not_there_is_said_by_name(tmp_path):
    with pytest.raises(UnknownFormatError, match=r"gone\.sqlite"):
        source_sha256(tmp_path / "gone.sqlite")


RUN = {"kind": "traceviz.run", "version": 1, "name": "r", "status": "finished", "tags": {"a": "b"}, "problems": []}


def run_of(folder, *names, **stated):
    make(folder, names)
    (folder / "manifest.json").write_text(json.dumps({**RUN, **stated}))
    return folder


def hash_of(folder):
    return source_sha256(folder)[0]


def test_what_traceviz_makes_of_a_run_does_not_change_its_hash(tmp_path):
    before = hash_of(run_of(tmp_path / "run", "raw/torch/a", "inject.json"))
    (tmp_path / "run" / "inject.json").unlink()
    problems, overhead = [{"code": "no-tables", "message": "", "fix": ""}], {"tables_ns": 5}
    run_of(tmp_path / "run", "tables/run.parquet", "tables/manifest.json", "notes.txt", tables={"run": 1})
    assert hash_of(tmp_path / "run") == before
    run_of(tmp_path / "run", problems=problems, overhead=overhead)
    text = json.dumps(dict(reversed(json.loads((tmp_path / "run" / "manifest.json").read_text()).items())), indent=2)
    (tmp_path / "run" / "manifest.json").write_text(text)
    assert hash_of(tmp_path / "run") == before


@pytest.mark.parametrize("change", ["raw", "more", "tag", "status", "kind"])
def test_what_was_recorded_of_a_run_changes_its_hash(tmp_path, change):
    before = hash_of(run_of(tmp_path, "raw/torch/a", "tables/run.parquet"))
    if change == "raw":
        (tmp_path / "raw" / "torch" / "a").write_text("b")
    elif change == "more":
        make(tmp_path, ["raw/torch/b"])
    else:
        changed = {"tag": {"tags": {"a": "c"}}, "status": {"status": "failed"}, "kind": {"kind": "other"}}
        run_of(tmp_path, **changed[change])
    assert hash_of(tmp_path) != before


def test_of_a_run_whose_recordings_were_removed_the_tables_count(tmp_path):
    before = hash_of(run_of(tmp_path, "tables/run.parquet", "notes.txt"))
    (tmp_path / "notes.txt").unlink()
    assert hash_of(tmp_path) == before
    (tmp_path / "tables" / "run.parquet").write_text("other")
    assert hash_of(tmp_path) != before


def test_a_runs_hash_is_that_of_the_lines_of_what_was_recorded(tmp_path):
    run_of(tmp_path, "raw/a", "tables/b", name="ö")
    facts = b'{"kind":"traceviz.run","name":"\\u00f6","status":"finished","tags":{"a":"b"},"version":1}'
    lines = b"".join(
        name + b"\0" + hashlib.sha256(content).hexdigest().encode() + b"\n"
        for name, content in ((b"manifest.json", facts), (b"raw/a", b"raw/a"))
    )
    size = (tmp_path / "manifest.json").stat().st_size + len("raw/a")
    assert source_sha256(tmp_path) == (hashlib.sha256(lines).hexdigest(), size)
