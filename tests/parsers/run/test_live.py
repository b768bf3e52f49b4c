"""A real run that four collectors recorded at once: one clock, one owner of each row, and no duplicates."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.conftest import REPOSITORY
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.input.input_pipeline import InputPipelineAnalysis
from traceviz.api import open_trace, report_on
from traceviz.parsers.run.folder import UNFINISHED
from traceviz.report import Facts

pytestmark = pytest.mark.live

CLOCK_NS = 1_000_000
"""Tolerance of times to the wall clock: microseconds, unless a thread loses its core in between."""
WINDOW = range(4, 10)


@pytest.fixture(scope="module")
def run(torch_python, tmp_path_factory) -> Path:
    if shutil.which("nsys") is None:
        pytest.skip("nsys is not on PATH")
    folder = tmp_path_factory.mktemp("live")
    program = [torch_python, Path(__file__).with_name("marked_run.py"), folder / "moments.json"]
    recording = ["--with", "torch,nvtx,nsys,resources", "--steps", f"{WINDOW.start}:{WINDOW.stop}"]
    labels = ["--name", "marked", "--tag", "batch=4", "-o", folder / "run"]
    command = [sys.executable, "-m", "traceviz", "collect", *recording, *labels, "--", *program]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [*map(str, command)], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "run"


@pytest.fixture(scope="module")
def raw(run) -> dict:
    """The recording of each collector, read alone."""
    (torch,) = (run / "raw" / "torch").rglob("*.pt.trace.json.gz")
    recordings = {
        "nsys": run / "raw" / "nsys" / "report.sqlite",
        "torch": torch,
        "resources": run / "raw" / "resources",
    }
    return {name: open_trace(path) for name, path in recordings.items()}


def named(trace, table: str, name: str) -> pl.DataFrame:
    return trace.scan(table).filter(pl.col("name").cast(pl.String) == name).sort("start_ns").collect()


@pytest.mark.parametrize(("table", "count"), [("nvtx", 12), ("host_ops", len(WINDOW))])
def test_every_source_tells_a_moment_at_the_same_time_as_the_wall_clock(run, table, count):
    moments = json.loads((run.parent / "moments.json").read_text())
    moments = moments if table == "nvtx" else [moments[step] for step in WINDOW]
    trace = open_trace(run)
    ranges = named(trace, table, "moment")
    assert ranges.height == count
    starts = (ranges["start_ns"] + trace.run_facts()["t0_unix_ns"]).to_list()
    late = sorted(start - before for start, (before, _) in zip(starts, moments, strict=True))
    ends = [start + lasted for start, lasted in zip(starts, ranges["dur_ns"], strict=True)]
    early = sorted(after - end for end, (_, after) in zip(ends, moments, strict=True))
    assert -CLOCK_NS < late[count // 2] < CLOCK_NS  # the median: any one may be held up
    assert -CLOCK_NS < early[count // 2] < CLOCK_NS


OWNED = {
    "nsys": ("nvtx", "os_calls", "overhead"),
    "torch": ("host_ops", "op_args", "steps"),
    "resources": ("samples",),
}
"""Owner of each table of this run: without a GPU, there is no owner of device work."""
SURROGATES = {"process_id", "thread_id", "device_id", "op_id", "range_id", "parent_id", "group_id", "correlation_id"}


@pytest.mark.parametrize(("collector", "table"), [(name, table) for name, tables in OWNED.items() for table in tables])
def test_every_row_and_column_of_a_recording_is_in_the_tables_of_the_run(run, raw, collector, table):
    merged, alone = open_trace(run / "tables"), raw[collector]
    shift = alone.run_facts()["t0_unix_ns"] - merged.run_facts()["t0_unix_ns"]
    whole, part = (of.scan(table).collect() for of in (merged, alone))
    assert part.height > 0
    assert whole.height == part.height
    if "start_ns" in part.columns:
        part = part.with_columns(pl.col("start_ns") + shift)
    whole, part = (known_by_name(of, frame) for of, frame in ((merged, whole), (alone, part)))
    if table == "nvtx":  # of all ranges, the merge gives one another name: the step that only the program's end ended
        last = STEP & (pl.col("start_ns") == pl.col("start_ns").max().over(STEP))
        part = part.with_columns(pl.when(last).then(pl.lit(UNFINISHED)).otherwise("name").alias("name"))
        assert whole.filter(pl.col("name") == UNFINISHED).height == 1
    assert_frame_equal(whole, part, check_row_order=False, categorical_as_str=True)


STEP = pl.col("name").str.contains(r"^step \d+$")


def known_by_name(trace, frame: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the pid and tid in place of the numbers that a trace gives, and without those of rows."""
    processes = trace.scan("processes").select("process_id", "pid").collect()
    threads = trace.scan("threads").select("thread_id", "tid").collect()
    if "process_id" in frame.columns:
        frame = frame.join(processes, on="process_id", how="left")
    if "thread_id" in frame.columns:
        frame = frame.join(threads, on="thread_id", how="left")
    kept = [name for name in frame.columns if name not in SURROGATES]
    return frame.select(kept).with_columns(pl.col(pl.Categorical).cast(pl.String))


def test_no_table_of_the_run_is_of_a_recording_that_does_not_own_it(run):
    tables = open_trace(run)
    owned = {table for names in OWNED.values() for table in names}
    assert set(tables) - owned == {"run", "devices", "processes", "threads", "windows", "settings", "notes"}


def test_a_wait_that_nvtx_and_the_framework_recorded_is_one_stage(run):
    view = TraceView(open_trace(run))
    result = InputPipelineAnalysis().run(view)
    steady = training_steps(view).steady.height  # not the first, where the start of the profilers slowed it
    assert len(WINDOW) // 2 <= steady <= len(WINDOW)
    stages = {stage.name: (stage.kind, stage.calls, stage.capture_calls) for stage in result.stages}
    assert stages["single-process DataLoader (num_workers=0)"] == ("DataLoader", steady, len(WINDOW))
    assert stages["load data"][1:] == (steady, len(WINDOW))
    assert len(stages) == 2
    assert {stage.kind for stage in result.stages}.isdisjoint({"NVTX range"})


def test_the_program_goes_by_its_own_name_and_the_profilers_processes_are_no_part_of_it(run, raw):
    (pid,) = raw["torch"].arrow("processes")["pid"].to_pylist()
    names = {row["pid"]: row["name"] for row in open_trace(run).arrow("processes").to_pylist()}
    assert names[pid].startswith("python")
    assert "sh" not in names.values()  # which waits for it
    facts = {fact.key: fact.value for fact in report_on(run, sections={"capture"}).sections[0].blocks[0].facts}
    assert facts["processes"] == 1


def test_the_report_says_what_ran_and_who_recorded_it(run):
    blocks = report_on(run, sections={"run"}).sections[0].blocks
    facts = {fact.key: fact.value for block in blocks if isinstance(block, Facts) for fact in block.facts}
    assert (facts["name"], facts["tags"], facts["exit_code"]) == ("marked", "batch=4", 0)
    assert facts["command"] == "python marked_run.py moments.json"
    assert facts["status"].startswith("finished after ")
    assert {word.split()[0] for word in facts["recorded_by"].split(", ")} == {"nsys", "nvtx", "resources", "torch"}


def test_a_run_that_was_moved_reads_as_where_it_was_recorded(run, tmp_path):
    moved = shutil.copytree(run, tmp_path / "elsewhere")
    shutil.rmtree(moved / "tables")
    first, again = open_trace(run), open_trace(moved)
    assert set(first) == set(again)
    assert all(first.arrow(name).equals(again.arrow(name)) for name in first)
    assert first.rows("nvtx") > 12
