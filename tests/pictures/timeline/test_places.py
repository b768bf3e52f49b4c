"""Places of findings in the timeline."""

import numpy as np
import pytest

from tests.analyses.builders import trace
from traceviz.pictures.timeline.places import FINDERS, places
from traceviz.report import Fact, Finding, Severity
from traceviz.report.findings.registry import records

PLACED = [record.code for record in records() if record.place]


def found(code, *facts):
    return Finding(code, "slug", Severity.WARNING, "message", facts, (), 1, 0.5, "steady step time")


def place(view, code, *facts):
    shown = places(view, [found(code, *facts)])
    return (shown[0].start_ns, shown[0].end_ns, shown[0].lane, shown[0].label) if shown else None


def loop(**more):
    """Return six steps: input, a launch, a kernel, a wait; the fourth step waits longest for input."""
    nvtx, calls, kernels = [], [], []
    for step in range(6):
        start, late = 1000 * step, 100 if step == 3 else 0
        nvtx += [(start, 1000, f"step {step}"), (start, 200 + late, "data loading")]
        calls += [(start + 400, 10, "cudaLaunchKernel", {"correlation_id": step})]
        calls += [(start + 700, 100, "cudaMalloc"), (start + 850, 50, "cudaDeviceSynchronize")]
        kernels += [(start + 420, 200, "ampere_sgemm_128x64_nn", {"correlation_id": step})]
    return trace(nvtx=nvtx, cuda_api=calls, kernels=kernels, **more)


def test_waiting_for_input_is_seen_where_a_step_waits_longest():
    assert place(loop(), "TV101") == (3000, 3300, "classes-0", "the longest wait for input, 300 ns in step 3")


@pytest.mark.parametrize(
    ("code", "start", "end", "words"),
    [
        ("TV203", 850, 900, "the longest wait for a device that then idles"),
        ("TV301", 700, 800, "the longest allocation without device work"),
        ("TV202", 400, 420, "the longest kernel launch without device work"),
    ],
)
def test_classes_of_idle_time_are_seen_where_they_last_longest(code, start, end, words):
    begin, last, lane, label = place(loop(), code)
    assert (begin % 1000, last % 1000, lane) == (start, end, "classes-0")
    assert label.startswith(words)


def test_what_no_steady_step_has_has_no_place():
    assert place(loop(), "TV211") is None


def test_kernels_are_seen_in_the_lane_of_their_stream():
    volta = [(10, 20, "volta_sgemm_128x64_nn"), (40, 90, "volta_sgemm_32x32_sliced1x4_nn", {"stream": 9})]
    assert place(trace(kernels=[*volta, (200, 500, "ampere_h16816gemm")]), "TV405")[:3] == (40, 130, "device-0-0-9")


def test_pageable_copies_are_seen_at_the_longest():
    copies = [(0, 10, "h2d", "pageable", "device", 9), (20, 50, "h2d", "pageable", "device", 9)]
    view = trace(memcpy=[*copies, (100, 90, "h2d", "pinned", "device", 9)], kernels=[(95, 4, "k")])
    assert place(view, "TV302") == (20, 70, "device-0-0-7", "the longest pageable copy, 50 ns")


def test_memory_is_seen_around_its_highest_use():
    use = [(at, "alloc", 1, {"in_use_bytes": 100 if at == 5000 else at // 100}) for at in range(0, 10_000, 1000)]
    view = trace(memory_events=use, kernels=[(0, 10_000, "k")])
    assert place(view, "TV402") == (4900, 5100, "", "around the highest use of memory, 200 ns")


def test_a_straggler_is_seen_in_its_slowest_step():
    steps = [
        (1000 * step + (90 if rank == 2 and step > 3 else 0), 900, step, {"process_id": rank})
        for rank in range(3)
        for step in range(5)
    ]
    view = trace(steps=steps, nvtx=[(0, 10, "a", {"process_id": rank, "thread_id": rank}) for rank in range(3)])
    assert place(view, "TV501", Fact("rank", "rank", 2, "id")) == (
        *(3000, 4090, "steps-2"),
        "the slowest step of rank 2, 1.09 µs in step 3",
    )
    assert place(view, "TV502")[:3] == (3000, 4090, "steps-2")


def test_operators_are_seen_at_the_longest_call_of_that_name():
    view = trace(host_ops=[(0, 10, "aten::mm", "op"), (20, 30, "aten::mm", "op"), (60, 90, "aten::add", "op")])
    shown = place(view, "TV606", Fact("largest", "most of it", "aten::mm"))
    assert shown == (20, 50, "ops-0-0", "the longest call of the operator with most time, aten::mm, 30 ns")


def test_one_place_for_a_code_in_the_order_of_the_findings():
    shown = places(loop(), [found(code) for code in ("TV301", "TV101", "TV301", "TV901", "TV605")])
    assert [one.code for one in shown] == ["TV301", "TV101"]


def test_every_finder_serves_a_record():
    assert set(FINDERS) == {record.place.finder for record in records() if record.place}
    assert len(PLACED) >= 52


@pytest.mark.parametrize("code", PLACED)
def test_a_trace_of_nothing_has_no_places(code):
    assert place(trace(), code) is None
    assert place(trace(nvtx=[(0, 10, "a")]), code, Fact("rank", "rank", 0), Fact("largest", "", None)) in (
        None,
        *((0, 10, lane, label) for lane in ("classes-0",) for label in _LABELS),
    )


_LABELS = (
    "the longest idle time that may be input, 10 ns",
    *(
        f"the longest {words}, 10 ns"
        for words in ("time without device work", "work of the host without device work", "time between migrations")
    ),
)


def test_places_lie_in_the_capture():
    view = loop()
    for code in PLACED:
        shown = place(view, code, Fact("rank", "rank", 0), Fact("largest", "", "k"))
        assert shown is None or 0 <= shown[0] < shown[1] <= np.int64(6000)
