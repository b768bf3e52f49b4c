"""Adding traces: each once, independent of the others; an interrupted add resumes."""

import os
import shutil
import subprocess
import sys
import time

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.made_sources import (
    GARBAGE,
    INPUT_BOUND,
    LAUNCH_BOUND,
    POINTER,
    RANKS,
    READABLE,
    UNREADABLE,
    files_of,
    make_sources,
)
from traceviz.archive.archive import Archive
from traceviz.archive.catalogue import segments as catalogue
from traceviz.archive.ingest import add as adding
from traceviz.archive.runners.base import RunnerError
from traceviz.archive.runners.local import LocalRunner, SerialRunner
from traceviz.archive.storage.layout import ROWS
from traceviz.archive.storage.leases import ABANDONED_S
from traceviz.core.errors import OutputError, UsageError

SERIAL = SerialRunner()


def names(rows, state="ready"):
    return set(rows.filter(pl.col("state") == state)["source"])


def test_every_trace_is_added_and_what_cannot_be_read_is_quarantined_with_its_reason(tmp_path, samples):
    done = Archive(tmp_path / "a").add(make_sources(tmp_path / "s", samples), runner=SERIAL)
    assert (done.added, done.known, done.refused) == (5, 0, ())
    errors = {trace.source: trace.error for trace in done.quarantined}
    assert set(errors) == UNREADABLE
    assert errors[POINTER].startswith("unknown-format: ")
    assert "git-lfs" in errors[POINTER]
    assert errors[GARBAGE].startswith("damaged: ")
    assert not done.is_complete
    rows = Archive(tmp_path / "a").rows()
    assert names(rows) == READABLE
    assert names(rows, "quarantined") == UNREADABLE


def test_a_second_add_changes_no_byte(filled):
    place = filled / "archive"
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    done = Archive(place).add(filled / "sources", runner=SERIAL, tags={"branch": "other"})
    assert (done.added, done.known, done.mended) == (0, 5, 0)
    assert {trace.source for trace in done.still_quarantined} == UNREADABLE
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_the_same_content_under_two_names_is_one_trace(tmp_path, samples):
    sources = tmp_path / "s"
    sources.mkdir()
    for name in ("one.sqlite", "two.sqlite"):
        shutil.copy(samples / "synthetic" / "launch_bound.sqlite", sources / name)
    done = Archive(tmp_path / "a").add(sources, runner=SERIAL)
    assert (done.added, done.known) == (1, 1)


class Backwards:
    """A runner that is done with the last item first."""

    def map(self, function, arguments):
        return SERIAL.map(function, reversed(list(arguments)))


@pytest.mark.parametrize(
    "runner",
    [SERIAL, Backwards(), pytest.param(LocalRunner(2), marks=pytest.mark.slow)],
    ids=["serial", "backwards", "local"],
)
def test_of_several_names_of_a_trace_the_first_counts_whoever_is_done_first(tmp_path, samples, runner):
    sources = tmp_path / "s"
    for name in ("job1/rank0", "job1/rank1", "job2/rank0", "job2/rank1"):
        target = sources / f"{name}.pt.trace.json.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(samples / "kineto" / "two_ranks" / RANKS[int(name[-1])], target)
    (sources / "job1" / GARBAGE).write_text("{")
    (sources / "job2" / f"other{GARBAGE}").write_text("{")
    archive = Archive(tmp_path / "a")
    done = archive.add(sources, runner=runner, keep_private=True)
    assert (done.added, done.known, len(done.quarantined)) == (2, 2, 1)
    assert done.quarantined[0].source == f"s/job1/{GARBAGE}"
    rows = archive.rows().filter(pl.col("state") == "ready").sort("rank")
    job = "s/job1/rank*.pt.trace.json.gz"
    assert rows.select("rank", "job", "source").rows() == [
        (0, job, f"s/job1/{RANKS[0]}"),
        (1, job, f"s/job1/{RANKS[1]}"),
    ]
    assert set(archive.rows().filter(pl.col("state") == "quarantined")["source"]) == {f"s/job1/{GARBAGE}"}
    own = [pq.read_table(path) for path in (tmp_path / "a").rglob(ROWS)]
    assert {table["job"][0].as_py() for table in own} == {job}
    assert archive.verify().faults == ()


@pytest.mark.parametrize("content", [{}, {"notes.txt": "no trace"}, {"old.zip": "PK"}])
def test_where_nothing_is_found_no_archive_is_made(tmp_path, content):
    (tmp_path / "s").mkdir()
    for name, text in content.items():
        (tmp_path / "s" / name).write_text(text)
    done = Archive(tmp_path / "a").add(tmp_path / "s", runner=SERIAL)
    assert (done.added, done.known, done.quarantined) == (0, 0, ())
    with pytest.raises(UsageError, match="There is no"):
        Archive(tmp_path / "a").add(tmp_path / "nowhere", runner=SERIAL)
    assert not (tmp_path / "a").exists()


def test_when_a_trace_was_added_first_stays_when_it_is_mended_or_tried_again(filled):
    archive = Archive(filled / "archive")
    before = dict(archive.rows().select("trace_id", "added_ns").iter_rows())
    shutil.rmtree(next((filled / "archive" / "traces").glob("format=nsys/*")))
    done = archive.add(filled / "sources", runner=SERIAL, retry=True)
    assert (done.mended, len(done.quarantined)) == (1, 2)
    assert dict(archive.rows().select("trace_id", "added_ns").iter_rows()) == before


def test_tables_are_the_same_whatever_runner(filled_once, tmp_path):
    Archive(tmp_path / "a").add(filled_once / "sources", runner=LocalRunner(1))
    tables = files_of(tmp_path / "a")
    assert tables == files_of(filled_once / "archive")
    assert len(tables) == 44  # 9 are empty


def test_quarantined_traces_are_tried_again_when_asked_and_by_another_version(filled, monkeypatch):
    archive = Archive(filled / "archive")
    assert len(archive.add(filled / "sources", runner=SERIAL, retry=True).quarantined) == 2
    rows = pl.from_arrow(catalogue.read_segment(archive.store, catalogue.segments(archive.store)[-1]))
    assert set(rows["state"]) == {"quarantined"}
    monkeypatch.setattr(adding, "__version__", "999")
    done = archive.add(filled / "sources", runner=SERIAL)
    assert len(done.quarantined) == 2
    assert done.still_quarantined == ()


def test_an_add_whose_catalogue_was_never_written_is_taken_up_without_converting(filled, monkeypatch):
    archive = Archive(filled / "archive")
    for name in catalogue.segments(archive.store):
        archive.store.remove(catalogue.FOLDER, name)
    assert archive.rows().is_empty()
    monkeypatch.setattr("traceviz.archive.ingest.ingest._hold_tables", _fails)
    done = archive.add(filled / "sources", runner=SERIAL)
    assert (done.added, done.taken_up, len(done.quarantined)) == (5, 5, 2)
    assert names(archive.rows()) == READABLE
    assert archive.rows().filter(pl.col("state") == "ready")["tags"].to_arrow().to_pylist()[0] == [("branch", "main")]


def _fails(*_):
    raise AssertionError("it was converted again")


@pytest.mark.parametrize("harm", ["folder", "file", "size"])
def test_a_trace_whose_folder_lost_something_is_converted_again(filled, harm):
    archive = Archive(filled / "archive")
    folder = next((filled / "archive" / "traces").glob("format=nsys/*"))
    if harm == "folder":
        shutil.rmtree(folder)
    elif harm == "file":
        (folder / "kernels.parquet").unlink()
    else:
        (folder / "kernels.parquet").write_bytes(b"PAR1")
    done = archive.add(filled / "sources", runner=SERIAL)
    assert (done.mended, done.known, done.added) == (1, 4, 0)
    assert archive.verify().faults == ()


@pytest.fixture
def unlisted(filled):
    """Sources, and an archive whose catalogue is lost: what is converted there need not be converted again."""
    shutil.rmtree(filled / "archive" / "catalogue")
    return filled


def test_rows_are_written_after_so_many_traces(unlisted, monkeypatch):
    monkeypatch.setattr(adding, "FLUSH_TRACES", 2)
    archive = Archive(unlisted / "archive")
    archive.add(unlisted / "sources", runner=SERIAL)
    segments = [catalogue.read_segment(archive.store, name) for name in catalogue.segments(archive.store)]
    assert [len(rows) for rows in segments] == [2, 2, 2, 1]


class Interrupted:
    """A runner that is interrupted after so many results."""

    def __init__(self, count, error):
        self.count, self.error = count, error

    def map(self, function, arguments):
        for number, done in enumerate(SERIAL.map(function, arguments)):
            if number == self.count:
                raise self.error
            yield done


def test_what_was_added_before_an_interruption_is_in_the_catalogue(unlisted):
    sources, archive = unlisted / "sources", Archive(unlisted / "archive")
    with pytest.raises(KeyboardInterrupt):
        archive.add(sources, runner=Interrupted(3, KeyboardInterrupt()))
    assert archive.rows()["trace_id"].n_unique() == 3
    archive.add(sources, runner=SERIAL)
    assert names(archive.rows()) == READABLE
    assert archive.verify().faults == ()


class Failing:
    """A runner with an error in place of the results of items of a name."""

    def __init__(self, name, error):
        self.name, self.error = name, error

    def map(self, function, arguments):
        for argument, result in SERIAL.map(function, arguments):
            is_it = getattr(argument, "name", "").endswith(self.name)
            yield argument, self.error if is_it else result


def test_a_trace_that_kills_who_reads_it_is_quarantined_and_the_others_are_added(unlisted):
    runner = Failing("input_bound.sqlite", RunnerError("worker-died", "SIGSEGV, twice"))
    done = Archive(unlisted / "archive").add(unlisted / "sources", runner=runner)
    assert done.added == 4
    errors = {trace.source: trace.error for trace in done.quarantined}
    assert errors["input_bound.sqlite"] == "worker-died: SIGSEGV, twice"


def test_a_full_disk_ends_the_add_and_what_was_added_stays(tmp_path, samples):
    full = RunnerError("failed", "full", OutputError("There is no room to write a trace.", "No space left on device"))
    archive = Archive(tmp_path / "a")
    with pytest.raises(OutputError, match=r"no room .* 2 traces were added before\."):
        archive.add(make_sources(tmp_path / "s", samples), runner=Failing(POINTER, full))
    assert names(archive.rows()) == {INPUT_BOUND, LAUNCH_BOUND}
    assert archive.verify().faults == ()


@pytest.mark.slow
def test_a_limit_on_file_sizes_ends_the_add_with_a_clear_error(tmp_path, samples):
    sources = make_sources(tmp_path / "s", samples)
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000));"
        "from traceviz.cli.main import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", program, "archive", "add", str(tmp_path / "a"), str(sources), "--workers", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 3, ended.stderr
    assert "There is no room to write a trace." in ended.stderr
    assert "Traceback" not in ended.stderr
    archive = Archive(tmp_path / "a")
    assert {fault.kind for fault in archive.verify().faults} <= {"unlisted"}
    archive.add(sources, runner=SERIAL)
    assert archive.verify().faults == ()
    assert names(archive.rows()) == READABLE


def test_a_folder_with_other_things_does_not_become_an_archive(tmp_path, samples):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(UsageError, match=r"holds thesis\.tex"):
        Archive(tmp_path).add(samples / "synthetic" / "launch_bound.sqlite", runner=SERIAL)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_somebody_left_in_work_a_day_ago_is_removed_and_what_is_new_stays(filled):
    old, new = (filled / "archive" / "work" / name for name in ("traceviz-old", "traceviz-new"))
    old.mkdir(parents=True)
    new.mkdir()
    long_ago = time.time() - 2 * ABANDONED_S
    os.utime(old, (long_ago, long_ago))
    Archive(filled / "archive").add(filled / "sources", runner=SERIAL)
    assert not old.exists()
    assert new.exists()


def test_rows_of_a_clock_that_is_behind_still_count(filled):
    archive = Archive(filled / "archive")
    trace_id = archive.rows().filter(pl.col("source") == RANKS[0])["trace_id"][0]
    archive.remove(trace_id)
    rows = pl.from_arrow(catalogue.read_segment(archive.store, catalogue.segments(archive.store)[-1]))
    ahead = pa.table(rows.with_columns(pl.lit(2**62).alias("changed_ns")).to_arrow())
    catalogue.append(archive.store, ahead)  # another machine recorded its removal, in the far future
    archive.add(filled / "sources", runner=SERIAL)
    assert set(archive.rows().filter(pl.col("trace_id") == trace_id)["state"]) == {"ready"}


def test_progress_counts_every_trace(unlisted):
    reports = []
    archive = Archive(unlisted / "archive")
    archive.add(unlisted / "sources", runner=SERIAL, progress=lambda *report: reports.append(report))
    assert [done for _, done, _ in reports] == [1, 2, 3, 4, 5, 6, 7]
    assert reports[-1] in {("adding traces", 7, 7), ("adding traces", 7, None)}
