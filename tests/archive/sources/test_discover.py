"""Discovery in folders, behind patterns and URLs, and files that are left alone."""

import http.server
import os
import shutil
import socket
import tempfile
import threading
from pathlib import Path

import fsspec
import pytest

from tests.archive.packing import SUFFIX, TRACE, codes, fetched, find_items, hashes, packed_in, tar_of, trace, zip_of
from traceviz.archive.sources import discover
from traceviz.archive.sources.discover import fetch, items
from traceviz.archive.sources.hashes import Limits, source_sha256
from traceviz.archive.sources.recognise import is_trace, jobs, whole_folders
from traceviz.archive.storage.spool import SPOOL
from traceviz.core.errors import UnknownFormatError, UsageError

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"
PACKED = ("t.zip", "t.tar", "t.tar.gz", "t.tar.zst")


@pytest.fixture(autouse=True)
def own_spool(tmp_path_factory, monkeypatch):
    place = tmp_path_factory.mktemp("tmp")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    yield place
    SPOOL.release()
    assert [entry for folder in place.iterdir() for entry in folder.iterdir()] == []


def write(folder, files):
    """Return files with the bytes given for their paths."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def run_folder(folder):
    return write(
        folder,
        {"manifest.json": b'{"kind": "traceviz.run", "version": 1}', f"raw/torch/a{SUFFIX}": trace(), "raw/log": b""},
    )


def test_of_a_project_folder_the_traces_are_taken_and_the_rest_is_counted(tmp_path):
    write(
        tmp_path / "project",
        {
            "README.md": b"NVPROF is profiling",
            "train.py": TRACE,
            "plot.png": b"\x89PNG",
            "MANIFEST.tsv": b"a\tb",
            "empty.json": b"",
            "empty.nsys-rep": b"",
            "config.json": b'{"a": 1}',
            "notes.txt": b"hello",
            "weights.pt": b"PK\x03\x04",
            "data.npz": b"PK\x03\x04",
            "LICENSE": b"Apache",
            ".git/a.sqlite": b"1",
            "mlflow.db": b"SQLite format 3\0" + bytes(5000),
            f"runs/a{SUFFIX}": trace(),
            "runs/b.json": trace("b"),
            "lfs.json": POINTER,
            "lfs.png": POINTER,
            "broken.sqlite": b"garbage",
            ".hidden.sqlite": b"1",
        },
    )
    taken, refused = find_items(tmp_path / "project")
    assert set(taken) == {
        f"project/{name}" for name in ("broken.sqlite", "empty.nsys-rep", f"runs/a{SUFFIX}", "runs/b.json", "lfs.json")
    }
    assert {one.code for one in refused} == {"no-trace"}
    assert len(refused) == 14


@pytest.mark.parametrize("kind", PACKED)
def test_a_packed_project_gives_the_same_traces_and_counts_the_same(tmp_path, kind):
    folder = write(
        tmp_path / "project",
        {"a.sqlite": b"1", "b.json": trace(), "c.json": b"{}", "README": b"x", "d.txt": b"", ".e.sqlite": b"1"},
    )
    taken, refused = find_items(folder)
    packed, left = find_items(packed_in(folder, tmp_path / kind))
    assert [name.partition("/")[2] for name in packed] == [name.partition("/")[2] for name in taken]
    assert [(one.name.partition("/")[2], one.code) for one in left] == [
        (one.name.partition("/")[2], one.code) for one in refused
    ]
    assert len(taken) == 2


def test_a_file_that_was_named_is_an_item_whatever_it_is(tmp_path):
    write(tmp_path, {"README.md": b"hello", "empty": b""})
    taken, refused = find_items(tmp_path / "README.md", tmp_path / "empty")
    assert (list(taken), refused) == (["README.md", "empty"], [])
    assert taken["README.md"].size == 5


def test_a_run_folder_is_1_item_and_what_is_in_it_is_none(tmp_path):
    run_folder(tmp_path / "runs" / "one")
    run_folder(tmp_path / "runs" / "two")
    taken, refused = find_items(tmp_path / "runs")
    assert {name: item.kind for name, item in taken.items()} == {"runs/one": "folder", "runs/two": "folder"}
    assert refused == []
    assert fetch(taken["runs/one"], tmp_path / "unused", Limits()) == tmp_path / "runs" / "one"


@pytest.mark.parametrize("part", ["", "manifest.json", "raw"])
def test_a_run_is_found_by_its_folder_its_manifest_and_its_recordings(tmp_path, part):
    taken, _ = find_items(run_folder(tmp_path / "one") / part)
    assert [(item.name, item.url, item.folder) for item in taken.values()] == [("one", str(tmp_path / "one"), True)]


@pytest.mark.parametrize(
    "files",
    [
        {"manifest.json": b'{"kind": "traceviz.trace"}', "kernels.parquet": b"PAR1"},
        {"resources.json": b'{"kind": "traceviz.resources"}', "part-0.parquet": b"PAR1"},
        {"StringIds.parquet": b"PAR1", "NVTX_EVENTS.parquet": b"PAR1"},
        {"manifest.json": b'{"kind": "traceviz.run"}', "raw/x.json": b"{}", ".hidden": b"1"},
    ],
)
def test_folders_that_are_1_trace_have_1_hash_in_a_folder_and_packed(tmp_path, files):
    write(tmp_path / "source" / "deep" / "unit", files)
    alone = source_sha256(tmp_path / "source" / "deep" / "unit")[0]
    assert hashes(tmp_path / "source", tmp_path / "of") == {"deep/unit": alone}
    for kind in PACKED:
        made = packed_in(tmp_path / "source", tmp_path / kind)
        taken, refused = find_items(made)
        assert [(item.kind, item.folder) for item in taken.values()] == [("member", True)]
        assert refused == []
        assert hashes(made, tmp_path / f"of-{kind}") == {"deep/unit": alone}


def test_an_archive_file_that_is_a_run_itself_gives_a_folder_named_after_it(tmp_path):
    made = packed_in(run_folder(tmp_path / "one"), tmp_path / "my-run.tar.gz")
    (item,) = find_items(made)[0].values()
    (tmp_path / "room").mkdir()
    path = fetched(item, tmp_path / "room")
    assert path.name == "my-run"
    assert source_sha256(path) == source_sha256(tmp_path / "one")


def test_a_manifest_of_something_else_makes_no_trace_of_a_folder(tmp_path):
    write(
        tmp_path / "source", {"manifest.json": b'{"kind": "other"}', "a.sqlite": b"1", "d/manifest.json": b"[" * 9999}
    )
    assert list(find_items(tmp_path / "source")[0]) == ["source/a.sqlite"]


def test_an_archive_of_traceviz_is_not_added_to_an_archive(tmp_path):
    write(
        tmp_path / "source",
        {
            "A/archive.json": b'{"kind": "traceviz.archive"}',
            "A/traces/format=nsys/trace_id=1/manifest.json": b'{"kind": "traceviz.trace"}',
            "b.sqlite": b"1",
        },
    )
    taken, refused = find_items(tmp_path / "source")
    assert (list(taken), codes(refused)) == (["source/b.sqlite"], {"source/A": "archive"})
    assert codes(find_items(tmp_path / "source" / "A")[1]) == {"A": "archive"}


LOGS = "logs/train/plugins/profile"


def test_every_run_of_a_log_folder_counts_not_only_the_newest(tmp_path):
    write(
        tmp_path,
        {
            f"{LOGS}/2026_11_01_00_00_00/h.xplane.pb": b"1",
            f"{LOGS}/2026_11_02_00_00_00/h1.xplane.pb": b"2",
            f"{LOGS}/2026_11_02_00_00_00/h2.xplane.pb": b"3",
            f"{LOGS}/2026_11_02_00_00_00/h1.trace.json.gz": b"4",
            f"{LOGS}/2026_11_02_00_00_00/ALL_HOSTS.op_stats.pb": b"5",
            f"{LOGS}/2026_11_01_00_00_00/h.trace.json.gz": b"6",
            "logs/train/events.out.tfevents.1.h": b"7",
        },
    )
    taken, refused = find_items(tmp_path / "logs")
    runs = "logs/train/plugins/profile/2026_11_0"
    assert {name: item.folder for name, item in taken.items()} == {
        f"{runs}1_00_00_00/h.xplane.pb": False,
        f"{runs}2_00_00_00": True,
    }
    assert taken[f"{runs}2_00_00_00"].size == 2
    assert {one.code for one in refused} == {"no-trace"}
    assert len(refused) == 2
    for kind in PACKED:
        made = packed_in(tmp_path / "logs", tmp_path / kind)
        assert hashes(made, tmp_path / f"of-{kind}") == hashes(tmp_path / "logs", tmp_path / f"by-{kind}")


def test_captures_that_only_lie_in_1_folder_are_traces_of_their_own(tmp_path):
    write(tmp_path / "mine", {"a.xplane.pb": b"1", "b.xplane.pb": b"2"})
    assert list(find_items(tmp_path / "mine")[0]) == ["mine/a.xplane.pb", "mine/b.xplane.pb"]


def test_files_named_after_ranks_are_of_the_job_of_their_folder(tmp_path):
    write(tmp_path / "runs", {f"job{j}/rank{r}{SUFFIX}": trace(f"{j}{r}") for j in (1, 2) for r in range(3)})
    taken, _ = find_items(tmp_path / "runs")
    assert {item.job for item in taken.values()} == {"runs/job1", "runs/job2"}
    assert taken[f"runs/job2/rank1{SUFFIX}"].job == "runs/job2"
    named = find_items(*sorted((tmp_path / "runs" / "job1").iterdir()))[0]
    assert {item.job for item in named.values()} == {"job1"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["rank0.json"], {}),
        (["a.json", "b.json"], {}),
        (["j/rank0.json", "j/rank1.json"], {"j/rank0.json": "j", "j/rank1.json": "j"}),
        (["rank0/a.json", "rank1/a.json"], {"rank0/a.json": "", "rank1/a.json": ""}),
        (["a_rank0.json", "a_rank-1.json"], {}),
        (["j/rank0.json", "j/rank1.json", "j/b.json"], dict.fromkeys(("j/rank0.json", "j/rank1.json"), "j/rank*.json")),
    ],
)
def test_jobs_are_told_by_names_that_differ_by_the_rank_only(names, expected):
    assert jobs(names) == expected


def test_links_in_folders_are_refused_and_a_link_that_was_named_is_followed(tmp_path):
    write(tmp_path / "secret", {"s.sqlite": b"secret"})
    write(tmp_path / "runs", {"a.sqlite": b"1"})
    (tmp_path / "runs" / "b.sqlite").symlink_to(tmp_path / "secret" / "s.sqlite")
    (tmp_path / "runs" / "folder").symlink_to(tmp_path / "secret")
    (tmp_path / "runs" / "loop").symlink_to(tmp_path / "runs")
    taken, refused = find_items(tmp_path / "runs")
    assert list(taken) == ["runs/a.sqlite"]
    assert codes(refused) == dict.fromkeys(("runs/b.sqlite", "runs/folder", "runs/loop"), "link")
    taken, refused = find_items(tmp_path / "runs" / "folder")
    assert (list(taken), refused) == (["folder/s.sqlite"], [])
    taken, refused = find_items(f"{tmp_path}/runs/*")
    assert (list(taken), len(refused)) == (["a.sqlite"], 3)


def test_a_run_folder_with_links_is_fetched_without_them(tmp_path):
    write(tmp_path / "secret", {"s.sqlite": b"secret"})
    run = run_folder(tmp_path / "one")
    before = source_sha256(run)
    (run / "raw" / "s.sqlite").symlink_to(tmp_path / "secret" / "s.sqlite")
    (run / "raw" / "more").symlink_to(tmp_path / "secret")
    taken, refused = find_items(run)
    assert sorted(one.code for one in refused) == ["link", "link"]
    (tmp_path / "room").mkdir()
    path = fetched(taken["one"], tmp_path / "room")
    assert path.parent == tmp_path / "room" / "into"
    assert source_sha256(path) == source_sha256(run) == before
    assert not list(path.rglob("s.sqlite"))


def test_a_file_that_became_a_link_or_a_pipe_is_not_fetched(tmp_path):
    write(tmp_path, {"runs/a.sqlite": b"1", "runs/b.sqlite": b"2", "secret": b"3"})
    taken, _ = find_items(tmp_path / "runs")
    (tmp_path / "runs" / "a.sqlite").unlink()
    (tmp_path / "runs" / "a.sqlite").symlink_to(tmp_path / "secret")
    (tmp_path / "runs" / "b.sqlite").unlink()
    os.mkfifo(tmp_path / "runs" / "b.sqlite")
    for item in taken.values():
        with pytest.raises(UnknownFormatError, match="not there any more"):
            fetch(item, tmp_path / "into", Limits())


def test_pipes_sockets_and_devices_are_never_opened(tmp_path):
    write(tmp_path / "runs", {"a.sqlite": b"1"})
    os.mkfifo(tmp_path / "runs" / "pipe.sqlite")
    with socket.socket(socket.AF_UNIX) as listening:
        where = Path.cwd()
        os.chdir(tmp_path / "runs")  # the path of a socket has a limit
        try:
            listening.bind("socket.sqlite")
        finally:
            os.chdir(where)
        taken, refused = find_items(tmp_path / "runs", tmp_path / "runs" / "pipe.sqlite", "/dev/null")
    assert list(taken) == ["runs/a.sqlite"]
    assert sorted(codes(refused).items()) == [
        (name, "device") for name in ("null", "pipe.sqlite", "runs/pipe.sqlite", "runs/socket.sqlite")
    ]


def test_a_source_that_is_not_there_is_an_error_before_the_first_item(tmp_path):
    write(tmp_path, {"a.sqlite": b"1"})
    listed = items([str(tmp_path / "a.sqlite"), str(tmp_path / "gone.sqlite")], Limits())
    with pytest.raises(UsageError, match=r"There is no .*gone\.sqlite"):
        next(listed)
    with pytest.raises(UsageError, match=r"Nothing matches .*\*\.nvvp"):
        find_items(f"{tmp_path}/*.nvvp")
    with pytest.raises(UsageError, match="cannot be reached"):
        find_items("nosuchprotocol://bucket/a.sqlite")


def test_patterns_are_expanded_also_through_folders_and_a_path_with_brackets_is_a_path(tmp_path):
    write(tmp_path, {"a/x.sqlite": b"1", "a/b/y.sqlite": b"2", "a/[1].sqlite": b"3", "a/z.nvvp": b"4"})
    assert [item.url for item in find_items(f"{tmp_path}/**/*.sqlite")[0].values()] == [
        f"{tmp_path}/a/{name}" for name in ("[1].sqlite", "b/y.sqlite", "x.sqlite")
    ]
    assert list(find_items(tmp_path / "a" / "[1].sqlite")[0]) == ["[1].sqlite"]


def test_what_is_named_twice_is_found_once(tmp_path):
    write(tmp_path, {"a/x.sqlite": b"1"})
    listed = list(items([str(tmp_path / "a"), str(tmp_path / "a" / "x.sqlite"), f"file://{tmp_path}/a"], Limits()))
    assert [item.name for item in listed] == ["a/x.sqlite"]


def test_archive_files_in_folders_are_looked_into_and_a_broken_one_stops_nothing(tmp_path):
    write(tmp_path / "runs", {"a.sqlite": b"1", "broken.tar.gz": b"\x1f\x8b\x08", "z.sqlite": b"2"})
    zip_of(tmp_path / "runs" / "old.zip", [("b.sqlite", b"3")])
    tar_of(tmp_path / "runs" / "old.tar.zst", [("c.sqlite", b"4")])
    (tmp_path / "runs" / "many.zip").write_bytes(b"PK\x03\x04 and no more")
    taken, refused = find_items(tmp_path / "runs")
    assert set(taken) == {
        f"runs/{name}" for name in ("a.sqlite", "z.sqlite", "old.zip/b.sqlite", "old.tar.zst/c.sqlite")
    }
    assert codes(refused) == {"runs/broken.tar.gz": "no-trace", "runs/many.zip": "cut"}


def test_files_larger_than_the_limit_are_refused(tmp_path):
    write(tmp_path / "runs", {"a.sqlite": bytes(101), "b.sqlite": bytes(100)})
    run_folder(tmp_path / "runs" / "one")
    taken, refused = find_items(tmp_path / "runs", limits=Limits(bytes=100))
    assert list(taken) == ["runs/b.sqlite"]
    assert codes(refused) == {"runs/a.sqlite": "too-large", "runs/one": "too-large"}


def test_a_folder_that_may_not_be_read_is_said(tmp_path, monkeypatch):
    write(tmp_path / "runs", {"a.sqlite": b"1", "closed/b.sqlite": b"2"})
    scandir = os.scandir

    def refusing(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    taken, refused = find_items(tmp_path / "runs")
    assert (list(taken), codes(refused)) == (["runs/a.sqlite"], {"runs/closed": "unreadable"})


def test_names_of_files_that_a_terminal_would_obey_are_shown_as_codes(tmp_path):
    write(tmp_path / "runs", {"a\x1b[31m\n.sqlite": b"1"})
    (tmp_path / "runs" / os.fsdecode(b"\xff.sqlite")).write_bytes(b"2")
    taken, _ = find_items(tmp_path / "runs")
    assert set(taken) == {"runs/a\\x1b[31m\\n.sqlite", "runs/\\xff.sqlite"}
    assert fetch(taken["runs/\\xff.sqlite"], tmp_path, Limits()).read_bytes() == b"2"


def test_what_a_readers_own_samples_are_is_told_by_their_first_bytes(samples):
    for path in sorted((samples / "synthetic").iterdir()):
        if path.is_file():
            assert is_trace("renamed", path.read_bytes()[: 1 << 18]), path.name


def test_a_list_of_devices_before_the_events_hides_no_trace(tmp_path):
    long = b'{"deviceList": [%s], ' % b", ".join([b'{"id": 1, "text": "%s"}' % (b"x" * 100)] * 1000)
    write(tmp_path / "runs", {"a.json": long + trace()[1:]})
    assert list(find_items(tmp_path / "runs")[0]) == ["runs/a.json"]


def test_a_folder_of_many_runs_is_told_by_reading_each_manifest_once():
    names = [
        f"run{number}/{name}" for number in range(3000) for name in ("manifest.json", "raw/a", "raw/b/manifest.json")
    ]
    reads = []

    def read(name, count):
        reads.append(name)
        return b'{"kind": "traceviz.run"}'

    assert len(whole_folders(names, read, "")[0]) == 3000
    assert len(reads) == 3000


@pytest.fixture
def memory():
    """A file system that is not this machine's."""
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()


def upload(filesystem, folder, prefix):
    for path in folder.rglob("*"):
        if path.is_file():
            filesystem.pipe_file(f"{prefix}/{path.relative_to(folder).as_posix()}", path.read_bytes())


def mixed(folder):
    run_folder(folder / "one")
    write(folder, {"a.sqlite": b"1", "b.json": trace(), "README": b"x", f"{LOGS}/r/h1.xplane.pb": b"2"})
    write(folder, {f"{LOGS}/r/h2.xplane.pb": b"3", "r.nsys-rep": b"4", "r.sqlite": b"5"})
    zip_of(folder / "old.zip", [("c.sqlite", b"6")])
    tar_of(folder / "old.tar.zst", [("d.sqlite", b"7")])
    return folder


def test_a_prefix_of_an_object_store_gives_what_the_folder_gives(tmp_path, memory):
    upload(memory, mixed(tmp_path / "source"), "/bucket/source")
    expected = hashes(tmp_path / "source", tmp_path / "local")
    assert len(expected) == 8
    assert hashes("memory://bucket/source", tmp_path / "remote") == expected
    assert hashes("memory://bucket/source/", tmp_path / "slash") == expected
    upload(memory, write(tmp_path / "only", {"x.sqlite": b"8"}), "/bucket/other")
    assert list(find_items("memory://bucket/*/x.sqlite")[0]) == ["x.sqlite"]


def test_a_remote_archive_file_is_fetched_once(tmp_path, memory, monkeypatch):
    made = zip_of(tmp_path / "t.zip", [(f"{number}.sqlite", b"%d" % number) for number in range(50)])
    memory.pipe_file("/bucket/t.zip", made.read_bytes())
    fetches = []
    unpacked = discover.members._unpack
    monkeypatch.setattr(discover.members, "_unpack", lambda *given: fetches.append(1) or unpacked(*given))
    assert len(hashes("memory://bucket/t.zip", tmp_path / "of")) == 50
    assert len(fetches) == 1


def test_keys_of_an_object_store_that_lead_elsewhere_are_refused(tmp_path, memory):
    memory.store.clear()
    for key in ("/bucket/r/../../evil.sqlite", "/bucket/r//x.sqlite", "/bucket/r/a\\b.sqlite", "/bucket/r/a.sqlite"):
        memory.store[key] = type("File", (fsspec.implementations.memory.MemoryFile,), {})(memory, key, b"1")
    taken, refused = find_items("memory://bucket/r")
    assert list(taken) == ["r/a.sqlite"]
    assert {one.code for one in refused} == {"unsafe-name"}
    assert len(refused) == 3


def test_a_remote_report_of_nsys_is_fetched_with_the_export_beside_it(tmp_path, memory):
    upload(memory, write(tmp_path / "source", {"r.nsys-rep": b"1", "r.sqlite": b"2"}), "/bucket/s")
    (tmp_path / "room").mkdir()
    path = fetched(find_items("memory://bucket/s")[0]["s/r.nsys-rep"], tmp_path / "room")
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["r.nsys-rep", "r.sqlite"]


def test_a_url_that_leads_to_nothing_is_refused_and_stops_nothing(tmp_path, memory):
    write(tmp_path, {"a.sqlite": b"1"})
    taken, refused = find_items("memory://bucket/gone.sqlite", tmp_path / "a.sqlite")
    assert (list(taken), codes(refused)) == (["a.sqlite"], {"gone.sqlite": "unreachable"})


def test_a_remote_file_that_grew_past_the_limit_is_not_fetched(tmp_path, memory):
    memory.pipe_file("/bucket/a.sqlite", b"1")
    (item,) = find_items("memory://bucket/a.sqlite")[0].values()
    memory.pipe_file("/bucket/a.sqlite", bytes(5000))
    with pytest.raises(Exception, match="too large"):
        fetch(item, tmp_path, Limits(bytes=1000))


@pytest.fixture
def web(tmp_path):
    """Address of a server of ``tmp_path``/web, and the requests that it got."""
    (tmp_path / "web").mkdir()
    requests = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given):
            super().__init__(*given, directory=str(tmp_path / "web"))

        def log_message(self, *given):
            requests.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    thread.join()
    server.server_close()


def test_pages_of_the_web_are_1_file_each_and_signatures_are_not_shown(tmp_path, web):
    address, _ = web
    write(tmp_path / "web", {f"a{SUFFIX}": trace(), "größe 1.sqlite": b"1"})
    zip_of(tmp_path / "web" / "t.zip", [("b.sqlite", b"2")])
    taken, refused = find_items(
        f"{address}/a{SUFFIX}?token=secret", f"{address}/gr%C3%B6%C3%9Fe%201.sqlite", f"{address}/t.zip"
    )
    assert list(taken) == [f"a{SUFFIX}", "größe 1.sqlite", "t.zip/b.sqlite"]
    for number, (item, content) in enumerate(zip(taken.values(), (trace(), b"1", b"2"), strict=True)):
        (tmp_path / f"room{number}").mkdir()
        assert fetched(item, tmp_path / f"room{number}").read_bytes() == content
    _, refused = find_items(f"{address}/gone.sqlite?token=secret")
    assert codes(refused) == {"gone.sqlite": "unreachable"}
    assert "secret" not in refused[0].why + refused[0].name


def test_the_samples_have_the_same_hashes_in_folders_and_packed(tmp_path, samples):
    folder = shutil.copytree(samples, tmp_path / "samples", ignore=shutil.ignore_patterns("recorded"))  # zip files
    expected = hashes(folder, tmp_path / "local")
    assert sum("/rank" in name for name in expected) == 6
    for kind in ("t.zip", "t.tar.zst"):
        assert hashes(packed_in(folder, tmp_path / kind), tmp_path / f"of-{kind}") == expected
