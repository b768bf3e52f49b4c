"""Exports of nsys are cached: the second report of a trace is made from the tables of the first."""

import errno
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.parsers.nsys.database import build, kernel
from tests.parsers.nsys.fake import REPORT, fake_nsys
from tests.support.command import run
from traceviz import api
from traceviz.core import nsys_program
from traceviz.core.errors import DamagedTraceError, MissingToolError, TracevizWarning, UnreadableError, UsageError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.exports import KEPT, tables_of
from traceviz.parsers.registry import identify
from traceviz.trace import tables as traceviz_tables
from traceviz.trace.folder_cache import MARKER

pytestmark = pytest.mark.process

KERNEL_COUNT = 300
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
ROUTE = "nsys-rep, nsys export --type=sqlite (nsys 2022.4.2.1)"


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """Temporary folders are made here, and must be gone in the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TRACEVIZ_CACHE", str(folder))
    return folder


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(REPORT)
    return path


class Exports:
    """An nsys that exports one database, and how often it did."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.log = folder / "exports.log"
        calls = [{"start": at, "end": at + 2, "nameId": 2, "globalTid": 1, "correlationId": at} for at in range(40)]
        host = {"name": "HOST_NAME", "value": "secret-host"}
        rows = {
            KERNELS: [kernel(at, at + 1) for at in range(KERNEL_COUNT)],
            RUNTIME: calls,
            "META_DATA_CAPTURE": [host],
        }
        self.database = build(folder / "good.sqlite", rows, names=["k", "cudaLaunchKernel"])
        self.install()

    def install(self, before="", version="2022.4.2.1"):
        """Put the program in place; ``before`` it exports, it does this."""
        count = f"open({str(self.log)!r}, 'a').write('x')"
        body = f"{count}\n{before}\nshutil.copy({str(self.database)!r}, output)"
        fake_nsys(self.folder, self.monkeypatch, body, version=version)
        answers = {"--version": f"NVIDIA Nsight Systems version {version}-df9881f", "--help": "sqlite, text. --lazy="}
        self.monkeypatch.setattr(nsys_program, "output_of", lambda _, *words: answers[words[-1]])  # saves processes

    @property
    def count(self):
        return len(self.log.read_text()) if self.log.exists() else 0


@pytest.fixture
def exports(tmp_path, monkeypatch):
    return Exports(tmp_path, monkeypatch)


def entries(place):
    """Return the folders that were kept."""
    folder = place / "exports"
    return sorted(entry for entry in folder.iterdir() if entry.name != MARKER) if folder.exists() else []


def kernels(report, **options):
    return api.open_trace(report, **options).rows("kernels")


def route(report, **options):
    return api.open_trace(report, read=api.ReadOptions(**options)).run_facts()["reader"]


def said(report, sections=("capture", "cuda_api", "kernels"), **options):
    """Return a report as JSON, without the note that its export was cached."""
    read = api.ReadOptions(**options)
    return api.to_text(api.report_on(report, sections=sections, read=read), "json").replace(f", {KEPT}", "")


def contents(report, **options):
    """Return all tables, without the note that they were cached."""
    trace = api.open_trace(report, read=api.ReadOptions(**options))
    rows = {name: trace.arrow(name).to_pylist() for name in trace}
    return {**rows, "run": [{**rows["run"][0], "reader": rows["run"][0]["reader"].removesuffix(f", {KEPT}")}]}


def test_the_second_report_exports_nothing_and_says_the_same(place, exports, report):
    assert route(report) == ROUTE
    assert said(report) == said(report, cache=False)
    assert exports.count == 2
    assert contents(report) == contents(report, cache=False)
    assert exports.count == 3
    assert (route(report), len(entries(place))) == (f"{ROUTE}, {KEPT}", 1)


def test_another_question_finds_its_tables_in_what_was_kept_for_the_first(place, exports, report):
    said(report, sections=("kernels",))
    kept = said(report, sections=("cuda_api",))
    assert exports.count == 1
    assert kept == said(report, sections=("cuda_api",), cache=False)
    assert "cudaLaunchKernel" in kept


def test_converting_gives_the_same_tables_from_what_was_kept(tmp_path, place, exports, report):
    for name in ("first", "second"):
        api.convert(report, tmp_path / name)
    api.convert(report, tmp_path / "none", read=api.ReadOptions(cache=False))
    assert exports.count == 2
    for name in ("kernels", "cuda_api", "threads"):
        contents = {(tmp_path / folder / f"{name}.parquet").read_bytes() for folder in ("first", "second", "none")}
        assert len(contents) == 1


@pytest.mark.parametrize("value", ["", "0"])
def test_an_empty_name_or_0_switches_the_cache_off(tmp_path, monkeypatch, exports, report, value):
    monkeypatch.setenv("TRACEVIZ_CACHE", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    assert [kernels(report), kernels(report)] == [KERNEL_COUNT] * 2
    assert exports.count == 2
    assert sorted(tmp_path.iterdir()) == sorted([*before, exports.log])


def test_the_option_passes_by_what_was_kept_and_keeps_nothing(place, exports, report):
    done = run("report", report, "--no-cache", "--format", "json")
    assert (done.returncode, done.stderr, exports.count, entries(place)) == (0, "", 1, [])
    assert kernels(report) == KERNEL_COUNT
    assert (exports.count, len(entries(place))) == (2, 1)


def test_every_command_that_reads_traces_uses_what_was_kept(tmp_path, place, exports, report):
    other = tmp_path / "other.nsys-rep"
    other.write_bytes(REPORT + b"2")
    for words in (["doctor", report], ["compare", report, other], ["convert", report, "-o", tmp_path / "out"]):
        assert run(*words).returncode == 0
    assert (exports.count, len(entries(place))) == (2, 2)


def test_doctor_refuses_the_option_without_a_trace():
    done = run("doctor", "--no-cache")
    assert done.returncode == 2
    assert "--no-cache is about a TRACE, and none is named" in done.stderr


def test_ranks_of_a_job_are_kept_each_for_itself(tmp_path, place, exports):
    files = [tmp_path / f"rank{rank}.nsys-rep" for rank in range(2)]
    for rank, file in enumerate(files):
        file.write_bytes(REPORT + bytes([rank]))
    assert [api.open_trace(*files).rows("kernels") for _ in range(2)] == [2 * KERNEL_COUNT] * 2
    assert (exports.count, len(entries(place))) == (2, 2)


def test_a_stream_is_kept_too(tmp_path, monkeypatch, place, exports):
    path = tmp_path / "run.qdstrm"
    path.write_bytes(b"U3w[END]NVIDIA Nsight System Stream 2022.4.2.1-df9881f!\n")
    importer = tmp_path / "QdstrmImporter"
    importer.write_text(f"#!{sys.executable}\nimport shutil, sys\nshutil.copy(sys.argv[2], sys.argv[4])\n")
    importer.chmod(0o755)
    monkeypatch.setattr(nsys_program, "find_importer", lambda: importer)
    expected = f"nsys-qdstrm, QdstrmImporter, {ROUTE.removeprefix('nsys-rep, ')}"
    assert [route(path), route(path)] == [expected, f"{expected}, {KEPT}"]
    assert exports.count == 1


def test_another_content_or_version_exports_again_and_another_name_does_not(
    tmp_path, monkeypatch, place, exports, report
):
    kernels(report)
    report = report.rename(tmp_path / "other.nsys-rep")
    assert (kernels(report), exports.count) == (KERNEL_COUNT, 1)
    report.write_bytes(REPORT + b" ")
    assert (kernels(report), exports.count) == (KERNEL_COUNT, 2)
    exports.install(version="2023.1.1.1")
    assert (route(report), exports.count) == (ROUTE.replace("2022.4.2.1", "2023.1.1.1"), 3)
    monkeypatch.setattr("traceviz.version.__version__", "99.0")
    assert (kernels(report), exports.count) == (KERNEL_COUNT, 4)


def test_private_data_is_neither_kept_nor_missing_where_it_is_asked_for(place, exports, report):
    with_host = [api.open_trace(report, read=api.ReadOptions(keep_private=True)) for _ in range(2)]
    assert (exports.count, entries(place)) == (2, [])
    kernels(report)
    assert not any(b"secret-host" in file.read_bytes() for entry in entries(place) for file in entry.iterdir())
    assert route(report, keep_private=True) == ROUTE
    assert exports.count == 4
    assert [tables.rows("kernels") for tables in with_host] == [KERNEL_COUNT] * 2


def test_what_is_kept_is_for_this_user_alone(place, exports, report):
    kernels(report)
    (entry,) = entries(place)
    assert [folder.stat().st_mode & 0o777 for folder in (place, entry.parent, entry)] == [0o700, 0o700, 0o700]


def truncated(entry):
    file = entry / "kernels.parquet"
    file.write_bytes(file.read_bytes()[:-100])


def spoilt(entry):
    """Damage bytes of a page; readers find them after other tables have been given out."""
    file = entry / "cuda_api.parquet"
    content = bytearray(file.read_bytes())
    content[4:40] = b"\xff" * 36
    file.write_bytes(content)


def without_table(entry):
    (entry / "kernels.parquet").unlink()


def without_manifest(entry):
    (entry / "manifest.json").unlink()


def with_nonsense(entry):
    (entry / "manifest.json").write_text("{")


def cut_to_nothing(entry):
    """Change files as after a power failure."""
    for file in entry.iterdir():
        file.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncated, spoilt, without_table, without_manifest, with_nonsense, cut_to_nothing])
def test_what_is_damaged_is_thrown_away_and_made_again(place, exports, report, damage):
    whole = contents(report)
    (entry,) = entries(place)
    damage(entry)
    assert contents(report) == whole
    assert (exports.count, entries(place)) == (2, [entry])
    assert route(report).endswith(KEPT)


def with_folder(entry):
    (entry / "more").mkdir()


def with_a_file_of_the_user(entry):
    (entry / "thesis.txt").write_text("precious")


def with_a_link(entry):
    (entry / "kernels.parquet").rename(entry.parent.parent / "elsewhere")
    (entry / "kernels.parquet").symlink_to(entry.parent.parent / "elsewhere")


def as_a_file(entry):
    for file in entry.iterdir():
        file.unlink()
    entry.rmdir()
    entry.write_text("precious")


def as_a_link(entry):
    entry.symlink_to(entry.rename(entry.parent.parent / "elsewhere"))


@pytest.mark.parametrize("change", [with_folder, with_a_file_of_the_user, with_a_link, as_a_file, as_a_link])
def test_an_entry_that_holds_what_traceviz_did_not_write_is_neither_read_nor_removed(place, exports, report, change):
    whole = contents(report)
    (entry,) = entries(place)
    change(entry)
    before = tree(place)
    assert [contents(report), contents(report)] == [whole, whole]
    assert exports.count == 3
    assert tree(place) == before


def tree(folder):
    """Return all that lies below a folder, links not followed, with the contents of files."""
    return {
        str(path.relative_to(folder)): path.readlink() if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("where", ["a-file/cache", "/proc/no-such-folder", "/dev/null"])
def test_where_nothing_can_be_written_reports_are_as_ever(tmp_path, monkeypatch, exports, report, where):
    (tmp_path / "a-file").write_text("")
    monkeypatch.setenv("TRACEVIZ_CACHE", str(tmp_path / where))
    assert [kernels(report), kernels(report)] == [KERNEL_COUNT] * 2
    assert exports.count == 2


def test_a_full_disk_costs_no_second_export(monkeypatch, place, exports, report):
    full = type("Usage", (), {"free": 100})
    monkeypatch.setattr("traceviz.trace.folder_cache.shutil.disk_usage", lambda _: full)
    assert kernels(report) == KERNEL_COUNT
    assert (exports.count, entries(place)) == (1, [])


def test_a_cache_on_another_disk_gets_a_copy(monkeypatch, place, exports, report):
    rename = Path.rename

    def renamed(path, target):
        if path.name == "tables":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", renamed)
    assert contents(report) == contents(report)
    (entry,) = entries(place)
    assert (exports.count, entry.stat().st_mode & 0o777) == (1, 0o700)


def test_what_a_killed_process_left_is_removed_after_a_day(place, exports, report):
    (place / "exports").mkdir(mode=0o700, parents=True)
    for name, age_h in ((".000000000000", 25), (".111111111111", 23)):
        folder = place / "exports" / name
        folder.mkdir(mode=0o700)
        (folder / "kernels.parquet").write_text("half")
        at = time.time() - age_h * 3600
        os.utime(folder, (at, at))
    kernels(report)
    assert [entry.name for entry in entries(place)][:-1] == [".111111111111"]


def test_a_full_folder_of_temporary_files_leaves_the_plain_way(monkeypatch, place, exports, report):
    def write(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(traceviz_tables, "write_tables", write)
    assert kernels(report) == KERNEL_COUNT
    assert entries(place) == []


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o707])
def test_a_folder_that_others_can_read_or_write_is_passed_by(place, exports, report, mode):
    (place / "exports").mkdir(parents=True)
    (place / "exports").chmod(mode)
    with pytest.warns(TracevizWarning, match="other users can read or write it"):
        assert [kernels(report), kernels(report)] == [KERNEL_COUNT] * 2
    assert (exports.count, entries(place)) == (2, [])


def test_links_in_the_place_of_the_cache_are_not_followed(tmp_path, place, exports, report):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    place.mkdir()
    (place / "exports").symlink_to(elsewhere)
    with pytest.warns(TracevizWarning, match="it is a link"):
        kernels(report)
    assert list(elsewhere.iterdir()) == []


def test_a_folder_of_the_user_stays_as_it_is_and_the_report_says_the_same(monkeypatch, place, exports, report):
    whole = contents(report, cache=False)
    foreign = place / "exports"
    foreign.mkdir(mode=0o700, parents=True)
    (foreign / ".git").mkdir()
    (foreign / ".git" / "HEAD").write_text("precious")
    (foreign / "thesis").mkdir()
    (foreign / "thesis" / "data.bin").write_bytes(bytes(200_000))
    for path in (foreign / ".git", foreign / "thesis"):
        os.utime(path, (1_000, 1_000))
    before = tree(place)
    monkeypatch.setenv("TRACEVIZ_CACHE_SIZE", "100kB")
    with pytest.warns(TracevizWarning, match=r"holds '\.git', which traceviz did not write\. Set TRACEVIZ_CACHE"):
        assert [contents(report), contents(report)] == [whole, whole]
    assert (exports.count, tree(place)) == (3, before)


def test_the_command_line_says_once_why_the_cache_is_not_used(tmp_path, place, exports, report):
    (place / "exports" / "thesis").mkdir(parents=True)
    (place / "exports").chmod(0o700)
    other = tmp_path / "other.nsys-rep"
    other.write_bytes(REPORT + b"2")
    done = run("compare", report, other)
    assert done.returncode == 0
    (warning,) = (line for line in done.stderr.splitlines() if "warning" in line)
    assert warning == (
        f"warning: The cache {place / 'exports'} is not used: it holds 'thesis', which traceviz did not write. "
        "Set TRACEVIZ_CACHE to a new folder of yours, or to 0 for no cache."
    )


def test_a_cache_of_an_earlier_version_without_a_marker_is_adopted(place, exports, report):
    kernels(report)
    (place / "exports" / MARKER).unlink()
    assert route(report).endswith(KEPT)
    report.write_bytes(REPORT + b"2")
    kernels(report)
    assert (exports.count, len(entries(place)), (place / "exports" / MARKER).is_file()) == (2, 2, True)


def test_a_read_only_cache_is_read_and_not_written(monkeypatch, tmp_path, place, exports, report):
    """As root, who may write everything, the system call has to fail."""
    kernels(report)
    before = tree(place)
    rename, opened = Path.rename, Path.open

    def refuse(path):
        if place in Path(path).parents:
            raise OSError(errno.EROFS, "Read-only file system", str(path))

    def renamed(path, target):
        refuse(target)
        return rename(path, target)

    def open_file(path, mode="r", *others, **named):
        if mode[0] != "r":
            refuse(path)
        return opened(path, mode, *others, **named)

    monkeypatch.setattr(Path, "rename", renamed)
    monkeypatch.setattr(Path, "open", open_file)
    monkeypatch.setattr(os, "utime", lambda path, *_: refuse(path))
    assert route(report).endswith(KEPT)
    other = tmp_path / "other.nsys-rep"
    other.write_bytes(REPORT + b"2")
    assert [kernels(other), kernels(other)] == [KERNEL_COUNT] * 2
    assert (exports.count, tree(place)) == (3, before)


@pytest.mark.slow
def test_reports_that_read_and_evict_at_once_all_say_the_same(tmp_path, monkeypatch, place, exports):
    """Room for one entry, and three processes that report on three recordings in turn: each evicts what others read."""
    files = [tmp_path / f"{name}.nsys-rep" for name in "abc"]
    for number, file in enumerate(files):
        file.write_bytes(REPORT + bytes([number]))
    kernels(files[0])
    one = sum(file.stat().st_size for file in entries(place)[0].iterdir())
    monkeypatch.setenv("TRACEVIZ_CACHE_SIZE", str(one * 3 // 2))
    program = (
        "import sys; from traceviz import api\n"
        "for path in 2 * sys.argv[1:]:\n"
        "    tables = api.open_trace(path)\n"
        "    print(tables.rows('kernels'), tables.rows('cuda_api'))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, *map(str, files[at:] + files[:at])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for at in range(3)
    ]
    assert [process.communicate(timeout=240) for process in started] == [(f"{KERNEL_COUNT} 40\n" * 6, "")] * 3
    left = entries(place)
    assert all(re.fullmatch("[0-9a-f]{64}", entry.name) for entry in left)
    assert sum(file.stat().st_size for entry in left for file in entry.iterdir()) <= one * 3 // 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_another_user_put_there_is_not_read(place, exports, report):
    kernels(report)
    (entry,) = entries(place)
    os.chown(entry, 12345, 12345)
    assert route(report) == ROUTE
    assert exports.count == 2


def test_an_export_beside_the_report_is_not_kept_for_it(tmp_path, monkeypatch, place, report):
    fake_nsys(tmp_path, monkeypatch, "print('Version number is invalid')\nsys.exit(1)")
    build(report.with_suffix(".sqlite"), {KERNELS: [kernel(1, 2)]}, names=["k"])
    assert kernels(report) == 1
    assert entries(place) == []


def test_a_report_that_changes_while_it_is_exported_is_not_kept(place, exports, report):
    exports.install(before="open(words[-1], 'ab').write(b'more')")
    assert kernels(report) == KERNEL_COUNT
    assert entries(place) == []


def test_an_export_that_fails_is_said_and_leaves_nothing(tmp_path, monkeypatch, place, exports, report):
    exports.install(before="print('disk full')\nsys.exit(1)")
    with pytest.raises(DamagedTraceError, match="disk full"):
        kernels(report)
    assert (exports.count, entries(place)) == (1, [])


def test_missing_nsys_is_said_as_ever(tmp_path, monkeypatch, place, report):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(nsys_program.OVERRIDE, raising=False)
    monkeypatch.setattr(nsys_program, "INSTALLED_AT", ())
    with pytest.raises(MissingToolError, match=r"2024\.6\.2\.25"):
        kernels(report)


def test_a_report_that_cannot_be_opened_any_more_is_said_by_its_reader(monkeypatch, place, exports, report):
    monkeypatch.setattr("traceviz.api.readers_of", lambda files, _: [_reader(files[0])])
    with pytest.raises((DamagedTraceError, UnreadableError), match=r"run\.nsys-rep"):
        kernels(report)


def _reader(path):
    """Return the reader of a file that is gone a moment later."""
    reader = identify(path)
    path.unlink()
    return reader


def test_the_least_recently_used_go_where_there_is_too_much(tmp_path, monkeypatch, place, exports):
    files = [tmp_path / f"{name}.nsys-rep" for name in "abc"]
    for number, file in enumerate(files):
        file.write_bytes(REPORT + bytes([number]))
    kernels(files[0])
    kernels(files[1])
    for entry in entries(place):
        os.utime(entry, (1_000, 1_000))
    kernels(files[0])  # used again: the other one is older now
    one = sum(file.stat().st_size for file in entries(place)[0].iterdir())
    monkeypatch.setenv("TRACEVIZ_CACHE_SIZE", str(one * 5 // 2))
    kernels(files[2])
    assert (exports.count, len(entries(place))) == (3, 2)
    assert [KEPT in route(file) for file in (files[0], files[2])] == [True, True]
    assert exports.count == 3


def test_what_is_larger_than_the_bound_is_not_kept(monkeypatch, place, exports, report):
    monkeypatch.setenv("TRACEVIZ_CACHE_SIZE", "1kB")
    assert kernels(report) == KERNEL_COUNT
    assert (exports.count, entries(place)) == (1, [])


def test_a_bound_that_is_no_size_is_said(monkeypatch, place, exports, report):
    monkeypatch.setenv("TRACEVIZ_CACHE_SIZE", "much")
    with pytest.raises(UsageError, match="TRACEVIZ_CACHE_SIZE is 'much', which is no size"):
        kernels(report)


def test_processes_that_keep_the_same_at_once_both_report(tmp_path, place, exports, report):
    exports.install(before="time.sleep(0.5)")
    program = f"from traceviz import api; print(api.open_trace({str(report)!r}).rows('kernels'))"
    started = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[0] for process in started] == [f"{KERNEL_COUNT}\n"] * 2
    (entry,) = entries(place)
    assert (entry / "manifest.json").is_file()
    assert route(report).endswith(KEPT)


def test_an_entry_that_vanishes_while_it_is_read_is_made_again(place, exports, report):
    expected = sorted(api.open_trace(report))
    stream = tables_of(report, identify(report), ReadRequest(cache=True))
    read = dict([next(stream)])
    for file in entries(place)[0].iterdir():
        file.unlink()
    rest = [*stream]
    names = [*read, *(name for name, _ in rest)]
    assert (len(names), sorted(names)) == (len(set(names)), expected)
    assert exports.count == 2


def test_a_reader_that_is_abandoned_leaves_no_temporary_files(place, exports, report):
    stream = tables_of(report, identify(report), ReadRequest(cache=True))
    assert next(stream)[0] == "run"
    with suppress(StopIteration):
        stream.close()
    assert len(entries(place)) == 1


def test_without_a_name_the_cache_is_where_the_user_has_caches(tmp_path, monkeypatch, exports, report):
    monkeypatch.delenv("TRACEVIZ_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/no/place")
    kernels(report)
    assert len(entries(tmp_path / "home" / ".cache" / "traceviz")) == 1
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    kernels(report)
    assert len(entries(tmp_path / "xdg" / "traceviz")) == 1


@pytest.mark.skipif(nsys_program.find_nsys() is None, reason="nsys is not installed")
def test_the_installed_nsys_exports_a_sample_once(samples, place):
    sample = samples / "nsys" / "nvtx_loop.nsys-rep"
    first, second = (api.open_trace(sample) for _ in range(2))
    assert second.run_facts()["reader"] == f"{first.run_facts()['reader']}, {KEPT}"
    assert second.rows("nvtx") == first.rows("nvtx") > 0
    assert contents(sample) == contents(sample, cache=False)
    assert len(entries(place)) == 1
