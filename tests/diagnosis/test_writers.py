"""Each capture opens and holds what the record holds."""

import json
from dataclasses import replace

import polars as pl
import pytest

import traceviz
from benchmarks.diagnosis.captures import KINETO, Capture, flaws_of, formats_of, write_capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.knobs import Format, Knob
from benchmarks.diagnosis.record import DeviceSpan, Kind, Migration, Record, Span, ThreadFacts, Work
from benchmarks.diagnosis.training import train
from benchmarks.diagnosis.worlds import World
from benchmarks.diagnosis.writers.nsys import AGES

RECORD = train(World(7, steps=4, layers=3, ranks=2, strengths={Knob.SLOW_LOADER: 1.0}, workers=0))


@pytest.mark.parametrize(
    ("format_", "age"),
    [(name, age) for name in (Format.NSYS, *KINETO) for age in range(len(AGES))]
    + [(name, 2) for name in (Format.XPLANE, Format.TRACE_JSON, Format.NVPROF, Format.RUN)],
)
def test_a_capture_opens_with_all_device_work_of_the_record(format_, age, tmp_path):
    paths = write_capture(RECORD, Capture(format_, age=age), 7, tmp_path)
    tables = traceviz.open(*paths)
    copies = [span for span in RECORD.device if span.work.is_copy]

    assert tables.kernels.collect().height == len(RECORD.device) - len(copies)
    assert tables.memcpy.collect().height == len(copies)
    kernel_ns = sum(span.end - span.start for span in RECORD.device if not span.work.is_copy)
    assert tables.kernels.collect()["dur_ns"].sum() == kernel_ns
    assert traceviz.analyze(tables).verdict.cause == "input"


def test_calls_join_their_device_work_in_each_rank(tmp_path):
    for format_ in Format:
        if format_ is Format.XPLANE_TPU:
            continue
        folder = tmp_path / format_
        folder.mkdir()
        tables = traceviz.open(*write_capture(RECORD, Capture(format_), 7, folder))
        # Each process counts its calls from 1.
        launch = ["process_id", "correlation_id"]
        calls = set(tables.cuda_api.select(launch).collect().rows())
        kernels = set(tables.kernels.select(launch).collect().rows())

        assert kernels <= calls, format_
        assert len(kernels) == sum(not span.work.is_copy for span in RECORD.device)
        assert min(number for _, number in calls) == 1


def test_the_record_has_what_the_tests_above_count():
    assert sum(span.kind is Kind.STEP for span in RECORD.spans) == 4 * 2
    assert sum(span.work is Work.COLLECTIVE for span in RECORD.device) == 4 * 2 * 3


def test_a_tpu_has_one_module_for_each_step_whose_infeed_takes_the_time_of_the_loader(tmp_path):
    tables = traceviz.open(*write_capture(RECORD, Capture(Format.XPLANE_TPU), 7, tmp_path))
    infeed = tables.kernels.collect().filter(pl.col("name").cast(pl.String).str.contains("infeed"))
    waits = sum(span.end - span.start for span in RECORD.spans if "DataLoader" in span.name)

    assert infeed.height == 4 * 2
    assert waits < infeed["dur_ns"].sum() < 1.2 * waits
    assert traceviz.analyze(tables).verdict.cause == "input"


def test_programs_on_tpus_have_only_causes_that_they_can_have():
    def formats(*knobs, **given):
        return formats_of(World(1, strengths=dict.fromkeys(knobs, 1.0), **given))

    assert Format.XPLANE_TPU in formats()
    assert Format.XPLANE_TPU in formats(Knob.SLOW_WORKERS)
    assert Format.XPLANE_TPU not in formats(Knob.SLOW_WORKERS, Knob.SMALL_KERNELS)
    assert Format.XPLANE_TPU not in formats(serves=True)


def test_flaws_are_those_that_a_format_can_have():
    assert Flaw.MERGED_RANKS in flaws_of(Format.KINETO, World(1, ranks=2))
    assert Flaw.MERGED_RANKS not in flaws_of(Format.KINETO, World(1))
    assert Flaw.CUT_FILE not in flaws_of(Format.NSYS, World(1))
    assert Flaw.NO_STEPS not in flaws_of(Format.KINETO, World(1, serves=True))


def test_a_read_on_an_amd_device_is_one_call_that_waits(tmp_path):
    tables = traceviz.open(*write_capture(RECORD, Capture(Format.KINETO_ROCM), 7, tmp_path))
    calls = tables.cuda_api.collect()["name"].cast(pl.String).value_counts()
    names = dict(calls.rows())

    # Each of 4 steps on 2 ranks reads its loss, and copies its batch from pinned memory.
    assert names["hipMemcpyWithStream"] == names["hipMemcpyAsync"] == 4 * 2
    assert not any(name.startswith("cuda") for name in names)


def test_merged_ranks_are_one_file_with_the_work_of_all(tmp_path):
    capture = Capture(Format.KINETO, Flaw.MERGED_RANKS)
    (path,) = write_capture(RECORD, capture, 7, tmp_path)
    kernels = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "kernel"]

    assert len({event["pid"] for event in kernels}) == 2
    assert len(kernels) == sum(not span.work.is_copy for span in RECORD.device)


def test_a_file_is_cut_off_before_its_end(tmp_path):
    whole = write_capture(RECORD, Capture(Format.KINETO), 7, tmp_path)[0].read_text()
    cut = write_capture(RECORD, Capture(Format.KINETO, Flaw.CUT_FILE), 7, tmp_path)[0].read_text()

    assert whole.startswith(cut)
    assert 0.75 <= len(cut) / len(whole) <= 0.98


GRAPH = Record(
    (Span(0, 1, Kind.API, "cudaGraphLaunch", 0, 10_000, 1),),
    tuple(
        DeviceSpan(0, 7, Work.KERNEL, f"kernel_{node}", 20_000 * node, 20_000 * node + 15_000, 1, graph=5, node=node)
        for node in (1, 2, 3)
    ),
    (ThreadFacts(0, 1, "python", 0),),
    1,
    80_000,
)
"""One launch of a graph of three kernels."""


@pytest.mark.parametrize("format_", [Format.NSYS, Format.KINETO, Format.KINETO_ROCM, Format.CUPTI_MONITOR])
def test_kernels_of_a_graph_belong_to_one_call(format_, tmp_path):
    tables = traceviz.open(*write_capture(GRAPH, Capture(format_), 7, tmp_path))
    kernels = tables.kernels.collect()

    assert kernels["correlation_id"].to_list() == [1, 1, 1]
    assert kernels["dur_ns"].to_list() == [15_000] * 3


def test_a_graph_that_is_traced_as_a_whole_hides_its_kernels(tmp_path):
    tables = traceviz.open(*write_capture(GRAPH, Capture(Format.NSYS, age=1), 7, tmp_path))

    assert tables.kernels.collect().height == 0


@pytest.mark.parametrize("format_", [Format.NSYS, Format.NVPROF])
def test_migrations_are_in_captures_that_record_managed_memory(format_, tmp_path):
    moves = (Migration(0, True, 1_000, 3_000, 65_536, 4, 4_096), Migration(0, False, 5_000, 6_000, 4_096, 1, 8_192))
    record = replace(GRAPH, migrations=moves)
    tables = traceviz.open(*write_capture(record, Capture(format_), 7, tmp_path))
    copies = tables.memcpy.collect().sort("start_ns")

    assert copies["bytes"].to_list() == [65_536, 4_096]
    assert copies["dur_ns"].to_list() == [2_000, 1_000]


def test_a_run_folder_has_the_stacks_of_each_process_all_the_time(tmp_path):
    record = train(World(3, steps=40, layers=2, spread=0, workers=2, strengths={Knob.SLEEP: 2.0}))
    (run,) = write_capture(record, Capture(Format.RUN), 3, tmp_path)
    tables = traceviz.open(run)
    stacks = tables.stacks.collect()
    shares = stacks.group_by("process_id").agg(pl.col("dur_ns").sum())["dur_ns"].to_list()

    assert len(list((run / "raw" / "stacks").iterdir())) == 1 + 2
    assert all(abs(share - record.end) <= 10_000_000 for share in shares)
    assert traceviz.analyze(tables).verdict.sentence.startswith("Sleep: ")
