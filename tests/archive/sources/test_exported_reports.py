"""A report of nsys and its export next to it are one recording: only the export is added."""

import shutil

import fsspec
import pytest

from tests.archive.packing import codes, fetched, find_items, packed_in
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import SerialRunner
from traceviz.archive.sources.exported_reports import (
    companions,
    export_of,
    find_exported,
    find_exported_by_name,
    reports_by_export,
    with_report_advice,
)
from traceviz.archive.sources.hashes import Item, Limits
from traceviz.cli.main import main
from traceviz.scrub import secrets_in

EXPORT = b"SQLite format 3\0" + bytes(84)
REPORT = b"NVIDIA Tegra Profiler Report and more"
PACKED = ("t.zip", "t.tar", "t.tar.gz", "t.tar.zst")


@pytest.fixture
def runs(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.nsys-rep").write_bytes(REPORT)
        (folder / f"{name}.sqlite").write_bytes(EXPORT + name.encode())
    return folder


def names_of(taken):
    return sorted(name.rpartition("/")[2] for name in taken)


def test_reports_are_left_out_and_each_is_named(runs):
    taken, refused = find_items(runs)
    assert names_of(taken) == ["a.sqlite", "b.sqlite"]
    assert codes(refused) == {"runs/a.nsys-rep": "exported", "runs/b.nsys-rep": "exported"}
    assert "a.sqlite beside it" in refused[0].why
    assert taken["runs/a.sqlite"].report == "a.nsys-rep"


@pytest.mark.parametrize("kind", PACKED)
def test_reports_are_left_out_of_archive_files(runs, tmp_path, kind):
    taken, refused = find_items(packed_in(runs, tmp_path / kind))
    assert names_of(taken) == ["a.sqlite", "b.sqlite"]
    assert set(codes(refused).values()) == {"exported"}
    assert [item.report for item in taken.values()] == ["a.nsys-rep", "b.nsys-rep"]


@pytest.mark.parametrize(
    "content", [b"", b"SQLite format 3", b"version https://git-lfs.github.com/spec/v1\n", b"PAR1" * 10]
)
def test_what_only_has_the_name_of_an_export_leaves_the_report_in(runs, content):
    (runs / "a.sqlite").write_bytes(content)
    taken, refused = find_items(runs)
    assert "a.nsys-rep" in names_of(taken)
    assert codes(refused) == {"runs/b.nsys-rep": "exported"}
    assert taken["runs/a.sqlite"].report == ""


@pytest.mark.parametrize("packed", [None, *PACKED])
def test_an_export_that_is_too_large_to_be_added_leaves_the_report_in(runs, tmp_path, packed):
    (runs / "a.sqlite").write_bytes(EXPORT + bytes(1000))
    source = packed_in(runs, tmp_path / packed) if packed else runs
    taken, refused = find_items(source, limits=Limits(bytes=500))
    assert "a.nsys-rep" in names_of(taken)
    assert set(codes(refused).values()) == {"exported", "too-large"}


def test_an_export_in_another_folder_is_another_recording(runs):
    (runs / "deep").mkdir()
    (runs / "a.sqlite").rename(runs / "deep" / "a.sqlite")
    assert names_of(find_items(runs)[0]) == ["a.nsys-rep", "a.sqlite", "b.sqlite"]


def test_a_report_that_is_named_alone_is_added(runs):
    taken, refused = find_items(runs / "a.nsys-rep")
    assert (names_of(taken), refused) == (["a.nsys-rep"], [])


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("also", ["a.sqlite", ".", "*"])
def test_a_report_that_is_named_together_with_its_export_is_left_out(runs, also, order):
    taken, refused = find_items(*[runs / "a.nsys-rep", runs / also][::order])
    assert "a.nsys-rep" not in names_of(taken)
    assert "a.sqlite" in names_of(taken)
    assert taken[next(name for name in taken if name.endswith("a.sqlite"))].report == "a.nsys-rep"
    assert set(codes(refused).values()) == {"exported"}


def test_ranks_are_of_one_job_though_their_reports_lie_beside_them(tmp_path):
    folder = tmp_path / "job7"
    folder.mkdir()
    for rank in (0, 1):
        (folder / f"rank{rank}.nsys-rep").write_bytes(REPORT)
        (folder / f"rank{rank}.sqlite").write_bytes(EXPORT)
    assert {item.job for item in find_items(folder)[0].values()} == {"job7"}
    assert {item.job for item in find_items(*sorted(folder.iterdir()))[0].values()} == {"job7"}


def test_the_export_of_a_report_has_its_name_but_for_the_ending():
    assert export_of("s3://b/x.y.nsys-rep") == "s3://b/x.y.sqlite"
    assert export_of("runs/old.qdrep") == "runs/old.sqlite"
    assert export_of("x.sqlite") == export_of(".nsys-rep.json") == export_of("runs/.nsys-rep") == ""


def test_exports_are_asked_for_once_and_one_may_stand_for_two_reports():
    asked = []

    def heads(wanted):
        for name, count in wanted:
            asked.append((name, count))
            yield name, EXPORT[:count]

    pairs = find_exported(["a.nsys-rep", "a.qdrep", "a.sqlite", "b.nsys-rep"], heads)
    assert pairs == {"a.nsys-rep": "a.sqlite", "a.qdrep": "a.sqlite"}
    assert asked == [("a.sqlite", 16)]
    assert reports_by_export(pairs) == {"a.sqlite": "a.nsys-rep, a.qdrep"}


def test_an_export_that_cannot_be_read_is_no_reason(tmp_path):
    assert find_exported(["a.nsys-rep", "a.sqlite"], lambda wanted: ((name, None) for name, _ in wanted)) == {}
    named = [str(tmp_path / "a.nsys-rep"), str(tmp_path)]
    assert find_exported_by_name(named) == {}


def test_a_long_error_is_cut_and_the_advice_is_not():
    item = Item("runs/a.sqlite", "a.sqlite", report="a.nsys-rep")
    message = with_report_advice("x" * 2000, item, 300)
    assert len(message) == 300
    assert message.endswith(
        "a.nsys-rep beside it was left out, as it is the same recording: to add that instead, name it alone."
    )
    assert with_report_advice("x" * 2000, Item("a", "a"), 300) == "x" * 300


def test_an_add_counts_them_and_says_of_a_damaged_export_what_to_do(tmp_path, samples):
    runs = tmp_path / "runs"
    runs.mkdir()
    for name in ("good", "bad"):
        shutil.copy(samples / "nsys" / "nvtx_loop.nsys-rep", runs / f"{name}.nsys-rep")
    shutil.copy(samples / "nsys" / "nvtx_loop.sqlite", runs / "good.sqlite")
    whole = (samples / "nsys" / "nvtx_loop.sqlite").read_bytes()
    (runs / "bad.sqlite").write_bytes(whole[: len(whole) // 3])
    done = Archive(tmp_path / "a").add(runs, runner=SerialRunner())
    assert (done.added, done.ignored, done.refused) == (1, 0, ())
    assert [one.name for one in done.left_out] == ["runs/bad.nsys-rep", "runs/good.nsys-rep"]
    (bad,) = done.quarantined
    assert bad.source == "bad.sqlite"
    assert "bad.nsys-rep beside it was left out" in bad.error
    assert "name it alone" in bad.error


def test_the_summary_says_that_they_were_left_out(tmp_path, samples, capsys, in_process):
    shutil.copytree(samples / "nsys", tmp_path / "nsys")
    with pytest.raises(SystemExit) as ended:
        main(["archive", "add", str(tmp_path / "a"), str(tmp_path / "nsys"), "--workers", "1", "--strict"])
    assert ended.value.code == 0
    assert "left out: 1 report whose export lies beside it." in capsys.readouterr().out


def test_what_is_looked_at_with_a_file_lies_beside_it():
    assert companions("s3://b/x.nsys-rep") == ("s3://b/x.sqlite",)
    assert companions("runs/x.sqlite") == ("runs/x.nsys-rep", "runs/x.qdrep", "runs/x.qdstrm")
    assert companions("runs/.sqlite") == companions("x.json") == ()


@pytest.mark.parametrize("place", [*PACKED, "memory://exported/runs"])
def test_with_an_export_its_report_is_fetched_which_alone_has_the_command_line(runs, tmp_path, place):
    if "://" in place:
        filesystem = fsspec.filesystem("memory")
        for path in runs.iterdir():
            filesystem.pipe_file(f"/exported/runs/{path.name}", path.read_bytes())
        source = place
    else:
        source = packed_in(runs, tmp_path / place)
    for item in find_items(source)[0].values():
        room = tmp_path / item.report
        room.mkdir()
        path = fetched(item, room)
        assert sorted(entry.name for entry in path.parent.iterdir()) == [item.report, path.name]
        assert path.with_name(item.report).read_bytes() == REPORT


def test_a_report_that_is_too_large_is_not_fetched_with_its_export(tmp_path):
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe_file("/exported/large/a.nsys-rep", REPORT * 100)
    filesystem.pipe_file("/exported/large/a.sqlite", EXPORT)
    (item,) = find_items("memory://exported/large", limits=Limits(bytes=500))[0].values()
    assert [entry.name for entry in fetched(item, tmp_path, Limits(bytes=500)).parent.iterdir()] == ["a.sqlite"]


@pytest.mark.parametrize("kind", PACKED)
def test_of_a_packed_export_the_same_secrets_are_known_as_of_one_on_disk(tmp_path, samples, kind):
    wanted = secrets_in(samples / "nsys" / "nvtx_loop.sqlite")
    alone = shutil.copy(samples / "nsys" / "nvtx_loop.sqlite", tmp_path / "alone.sqlite")
    assert len(secrets_in(alone)) < len(wanted)
    (item,) = find_items(packed_in(samples / "nsys", tmp_path / kind))[0].values()
    (tmp_path / "room").mkdir()
    assert secrets_in(fetched(item, tmp_path / "room")) == wanted
