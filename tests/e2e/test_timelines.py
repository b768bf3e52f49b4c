"""Timelines of real traces hold what was recorded: each event once, with the times that independent tools sum up."""

import csv
import functools
from collections import Counter
from itertools import chain

import numpy as np
import polars as pl
import pytest

from tests.support.reports import report_of, tables_of
from tests.support.unpacking import unpacked
from traceviz import api
from traceviz.core.errors import TracevizError
from traceviz.report.pictures.packed import packed
from traceviz.trace import schema

SAMPLES = (
    "kineto/two_ranks",
    "kineto/stacks_memory.pt.trace.json.gz",
    "nsys/nvtx_loop.sqlite",
    "synthetic/launch_bound.sqlite",
    "synthetic/torch_four_ranks_straggler",
    "synthetic/tpu_infeed_wait.xplane.pb",
    "synthetic/nvprof_trace.csv",
    "xplane/slow_map.xplane.pb.gz",
)
NSYS = (
    "GindaChen__nsys-ai__mock.sqlite",
    "NVIDIA__Fuser__64ee035__report1.sqlite",
    "NVIDIA__Fuser__a049892__report1.sqlite",
    "hpcgroup__pipit__perlmutter-cloverleaf-cuda.sqlite",
)
TABLES = {"cuda_api": "api", "os_calls": "os", "nvtx": "ranges", "host_ops": "ops", "device_ops": "device_ops"}
"""Tables whose rows are spans of lanes of a kind."""


@functools.cache
def pictured(path, events=None):
    return api.pictured(path, events=events)


def times(shown, kind):
    """Return calls and time by name, in all lanes of a kind."""
    calls, total = Counter(), Counter()
    for lane in shown.lanes:
        for row in lane.rows if lane.kind == kind else ():
            for name, last in zip(row.names.tolist(), row.durations.tolist(), strict=True):
                calls[shown.names[name]] += 1
                total[shown.names[name]] += last
    return {name: (calls[name], total[name]) for name in calls}


def starts(shown, kind):
    parts = [row.starts for lane in shown.lanes if lane.kind == kind for row in lane.rows]
    return np.sort(np.concatenate(parts)).tolist() if parts else []


@pytest.mark.parametrize("name", SAMPLES)
def test_every_event_of_a_sample_is_there_once(repository, name):
    path = repository / "sample_traces" / name
    shown, tables = pictured(path)[1].timeline, tables_of(path)
    events = [row.events for lane in shown.lanes for row in lane.rows]
    assert np.concatenate([*events, np.empty(0, np.int64)]).tolist() == list(range(shown.kept))
    assert shown.kept == shown.events
    for table, kind in TABLES.items():
        known = tables.select(table, "start_ns")["start_ns"].to_list() if table in tables else []
        assert starts(shown, kind) == sorted(known)
    work = chain(*(tables.select(table, "start_ns")["start_ns"] for table in schema.DEVICE_WORK if table in tables))
    assert len(starts(shown, "device")) == len(list(work))


@pytest.mark.parametrize("name", SAMPLES)
def test_no_two_spans_of_a_row_overlap_and_all_lie_in_the_timeline(repository, name):
    shown = pictured(repository / "sample_traces" / name)[1].timeline
    for lane in shown.lanes:
        for row in lane.rows:
            ends = row.starts + row.durations
            assert (row.starts[1:] >= ends[:-1]).all()
            assert row.starts.min(initial=0) >= min(shown.start_ns, 0)
            assert ends.max(initial=0) <= shown.end_ns


@pytest.mark.parametrize("name", SAMPLES)
def test_streams_take_the_time_that_their_tables_sum_up_to(repository, name):
    path = repository / "sample_traces" / name
    shown, tables = pictured(path)[1].timeline, tables_of(path)
    columns = ("process_id", "device_id", "stream", "dur_ns")
    work = [tables.select(table, *columns) for table in schema.DEVICE_WORK if table in tables]
    known = {
        f"device-{process}-{device}-{-1 if stream is None else stream}": total
        for process, device, stream, total in (
            pl.concat(work).group_by(columns[:3]).agg(pl.col("dur_ns").sum()).iter_rows() if work else ()
        )
    }
    ours = {
        lane.key: sum(int(row.durations.sum()) for row in lane.rows) for lane in shown.lanes if lane.kind == "device"
    }
    assert ours == known
    assert ("synthetic" not in str(path) or "summary" in str(path)) or sum(ours.values()) > 10_000_000


@pytest.mark.parametrize("name", SAMPLES)
def test_the_report_beside_pictures_is_the_report_alone(repository, name):
    path = repository / "sample_traces" / name
    assert pictured(path)[0] == report_of(path)
    assert len(api.to_text(pictured(path)[0], "json")) > 1000


@pytest.mark.parametrize("name", SAMPLES)
def test_what_goes_into_the_page_comes_out_again(repository, name):
    pictures = pictured(repository / "sample_traces" / name)[1]
    texts = packed(pictures.timeline, pictures.places)
    back, places = unpacked(texts)
    assert places == pictures.places
    assert starts(back, "device") == starts(pictures.timeline, "device")
    assert back.names == pictures.timeline.names
    assert len(texts.header) + len(texts.data) < 70_000


@pytest.mark.parametrize("name", NSYS)
def test_kernels_and_calls_take_the_time_that_nsys_says(public_traces, name):
    shown = pictured(public_traces / "nsys" / name)[1].timeline
    kernels, calls = Counter(), Counter()
    with (public_traces / "expected" / "nsys" / name / "cuda_gpu_kern_sum.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            kernels[row["Name"]] += int(row["Total Time (ns)"])
            calls[row["Name"]] += int(row["Instances"])
    ours = times(shown, "device")
    assert {name: ours.get(name) for name in kernels} == {name: (calls[name], kernels[name]) for name in kernels}
    with (public_traces / "expected" / "nsys" / name / "cuda_api_sum.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    api_ns = sum(total for _, total in times(shown, "api").values())
    assert api_ns == sum(int(row["Total Time (ns)"]) for row in rows) > 1000


def test_a_window_has_the_times_of_the_whole_trace(repository):
    path = repository / "sample_traces" / "synthetic" / "input_bound.sqlite"
    whole = pictured(path)[1].timeline
    selection = api.Selection(start_ns=200_000_000, end_ns=400_000_000)
    report, pictures = api.pictured(path, selection=selection)
    part = pictures.timeline
    assert (part.start_ns, part.end_ns) == (200_000_000, 400_000_000)
    inside = [start for start in starts(whole, "device") if 200_000_000 < start < 400_000_000]
    assert [start for start in starts(part, "device") if start > 200_000_000] == inside
    assert len(inside) > 100
    assert all(200_000_000 <= place.start_ns < 400_000_000 for place in pictures.places)
    assert report == api.report_on(path, selection=selection)


def test_sections_change_the_report_and_not_the_pictures(repository):
    path = repository / "sample_traces" / "synthetic" / "launch_bound.sqlite"
    report, pictures = api.pictured(path, sections=["kernels"])
    assert [section.slug for section in report.sections] == ["kernels"]
    assert pictures.timeline.events == pictured(path)[1].timeline.events == 5940


def test_no_events_are_no_timeline(repository):
    path = repository / "sample_traces" / "synthetic" / "launch_bound.sqlite"
    _, pictures = pictured(path, 0)
    assert (pictures.timeline, pictures.places) == (None, ())
    assert len(pictures.flames) == 4


def test_beyond_the_budget_the_page_has_the_steps_that_tell_most(repository):
    path = repository / "sample_traces" / "synthetic" / "launch_bound.sqlite"
    shown = pictured(path, 1500)[1].timeline
    assert shown.events == 5940
    assert 1000 < shown.kept < 1600
    assert any("the slowest step" in one.reason for one in shown.details)
    assert any("TV202" in one.reason for one in shown.details)
    assert any(lane.levels[0] for lane in shown.lanes if lane.kind == "device")


@pytest.mark.slow
def test_every_public_trace_has_a_timeline_or_is_refused_in_words(public_traces, public_cases):
    made = 0
    for path in sorted(chain(public_traces.glob("*/*"), public_cases.glob("*/*"))):
        if "expected" in path.parts:
            continue
        try:
            _, pictures = api.pictured(path)
        except TracevizError:
            continue
        if pictures.timeline is None:  # a summary, which has no single event
            continue
        texts = packed(pictures.timeline, pictures.places)
        assert len(texts.header) + len(texts.data) < 8_000_000
        assert pictures.timeline.kept == sum(row.starts.size for lane in pictures.timeline.lanes for row in lane.rows)
        made += 1
    assert made >= 40


def test_a_summary_without_a_single_event_has_no_timeline(repository):
    report, pictures = pictured(repository / "sample_traces/synthetic/nvprof_summary.csv")
    assert pictures.timeline is None
    assert [section.slug for section in report.sections].count("totals") == 1
