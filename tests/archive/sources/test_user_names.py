"""No name of a user gets into a scrubbed archive from the paths at which traces were found."""

import hashlib
import re

import pyarrow.parquet as pq
import pytest

from tests.archive.packing import packed_in
from tests.parsers.kineto.files import compressed, op, trace
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.sources.hashes import Item
from traceviz.archive.sources.names import (
    below_users,
    folder_below_users,
    mark_of_user,
    number_placeholders,
    users_of,
    without_user,
)


def test_home_folders_name_users_wherever_they_are_in_a_path():
    assert users_of(Item("/home/ada/runs/a.json", "a.json")) >= {"ada"}
    assert users_of(Item("s3://b/nethome/bob/t.zip", "t.zip/Users/eve/a.json", member="Users/eve/a.json")) == {
        "bob",
        "eve",
    }
    assert users_of(Item("/nowhere/user/home", "home")) == frozenset()
    assert users_of(Item("/home/root/a.json", "a.json")) == frozenset()


def test_the_owner_of_a_file_is_a_user(tmp_path, monkeypatch):
    monkeypatch.setattr("pathlib.Path.owner", lambda self: "carol")
    assert users_of(Item("/scratch/carol/a.json", "a.json")) == {"carol"}


def test_of_a_path_what_lies_below_the_folders_of_users_is_told():
    assert below_users("home/ada/adalovelace/ada.pt.json", {"ada"}) == "adalovelace/[removed].pt.json"
    assert below_users("ada/rank0.json", {"ada"}) == "rank0.json"
    assert below_users("runs/one.json", {"ada"}) == "runs/one.json"
    assert folder_below_users("home/ada/jobs/a", {"ada"}) == "jobs/a"
    assert folder_below_users("home/ada", {"ada"}) == ""
    assert folder_below_users("runs/a", {"ada"}) == "runs/a"
    assert without_user("ada", {"ada"}) == "[removed]"


def test_the_mark_of_a_user_is_that_of_the_innermost_folder_and_of_nobody_else():
    assert mark_of_user("home/ada/x/rank0.json", {"ada"}) == hashlib.sha256(b"ada").hexdigest()[:2]
    assert mark_of_user("x/ada", {"ada"}) == mark_of_user("x/y/z", {"ada"}) == ""


def small_trace(name, **header):
    """Return a trace of one operation, which is added in little time."""
    return compressed(trace([op(name, 0, 10)], header=header))


def test_jobs_of_users_stay_apart_and_no_job_is_called_after_nothing(tmp_path):
    for job in ("anna", "bert/jobA", "bert/jobB", "carl/jobB"):
        for rank in (0, 1):
            target = tmp_path / "home" / job / f"rank{rank}.pt.trace.json.gz"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(small_trace(f"{job} {rank}"))
    archive = Archive(tmp_path / "archive")
    assert archive.add(tmp_path / "home", runner=SerialRunner()).added == 8
    rows = archive.rows().select("job", "rank").sort("job", "rank", nulls_last=True).rows()
    bert, carl = (hashlib.sha256(user).hexdigest()[:2] for user in (b"bert", b"carl"))
    jobs = sorted([f"jobA ({bert})", f"jobB ({bert})", f"jobB ({carl})"])
    assert rows == [*((job, rank) for job in jobs for rank in (0, 1)), (None, 0), (None, 1)]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "home",
        "home/adalovelace",
        "home/adalovelace/proj/*",
        "home/adalovelace/proj/rank0.pt.trace.json.gz",
        ".zip",
        ".tar.gz",
    ],
)
def test_an_archive_does_not_hold_the_names_of_the_folders_of_users(tmp_path, source):
    folder = tmp_path / "source"
    for rank in (0, 1):
        target = folder / "home" / "adalovelace" / "proj" / f"rank{rank}.pt.trace.json.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(small_trace("aten::mm", distributedInfo={"rank": rank, "world_size": 2}))
    named = packed_in(folder, tmp_path / f"t{source}") if source.startswith(".") else folder / source
    archive = Archive(tmp_path / "archive")
    assert archive.add(named, runner=SerialRunner()).added in {1, 2}
    rows = archive.rows()
    assert len(set(rows["job"])) == 1
    assert re.fullmatch(r"(|.*/)proj( \([0-9a-f]{2}\))?", rows["job"][0])
    tables = [pq.read_table(path).to_pydict() for path in (tmp_path / "archive").rglob("*.parquet")]
    assert "adalovelace" not in str(tables)
    texts = [path.read_bytes() for path in (tmp_path / "archive").rglob("*") if path.is_file()]
    assert not any(b"adalovelace" in text for text in texts)


@pytest.mark.parametrize(
    ("name", "clean", "shown"),
    [
        ("gpu-7.xplane.pb", "[removed].xplane.pb", "[removed-510].xplane.pb"),
        ("GPU-7.trace.json", "[removed].trace.json", "[removed-510].trace.json"),
        ("gpu-8.xplane.pb", "[removed].xplane.pb", "[removed-515].xplane.pb"),
        (
            "run_gpu-7_ada_rank0.json",
            "run_[removed]_[removed]_rank0.json",
            "run_[removed-510]_[removed-398]_rank0.json",
        ),
        ("ada", "[removed]", "[removed-398]"),
        ("model.json", "model.json", "model.json"),
        # what is not the name with placeholders in it stays as it is
        ("/home/ada/a.json", "[path]/a.json", "[path]/a.json"),
        ("a.json", "b[removed].json", "b[removed].json"),
        (".json", "[removed].json", "[removed].json"),
        ("[removed-510].json", "[removed-510].json", "[removed-510].json"),
    ],
)
def test_placeholders_of_the_same_text_have_the_same_number(name, clean, shown):
    assert number_placeholders(name, clean) == shown
