"""Clocks of devices that are off, and what becomes of the times of their work."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.derived.clocks import NOTE, ClockError, aligned, clock_errors
from traceviz.analyses.run import analyze

COUNT = 20


def launches(delay_ns, count=COUNT, device=0, first=0):
    """Calls 100 µs apart, and kernels that begin ``delay_ns`` after them, the third one sooner than the others."""
    calls, kernels = [], []
    for number in range(count):
        start, key = 100_000 * number, {"correlation_id": first + number + 1}
        late = 0 if number == 2 else 1_000
        calls.append((start, 2_000, "cudaLaunchKernel", key))
        kernels.append((start + delay_ns + late, 10_000, "k", {**key, "device_id": device}))
    return calls, kernels


@pytest.mark.parametrize(
    ("delay_ns", "count", "off"),
    [
        (5_000, COUNT, False),
        (-1_000, COUNT, False),  # within the precision of clocks
        (-1_001, COUNT, True),
        (99_999_999, COUNT, False),
        (100_000_000, COUNT, True),
        (100_000_000, COUNT - 1, False),  # a few may all wait behind one long kernel
    ],
)
def test_a_clock_is_off_where_all_of_20_launches_are_too_early_or_100_ms_late(delay_ns, count, off):
    calls, kernels = launches(delay_ns, count)
    expected = (ClockError(0, count, delay_ns),) if off else ()
    assert clock_errors(tables(cuda_api=calls, kernels=kernels)) == expected


def test_times_of_a_device_whose_clock_is_off_are_moved_and_those_of_others_stay():
    calls, kernels = launches(-3_000_000)
    more_calls, more_kernels = launches(7_000, device=1, first=COUNT)
    copies = [
        (3_000_000, 5, "h2d", "pinned", "device", 8),
        (9_000_000, 5, "h2d", "pinned", "device", 8, {"device_id": 1}),
    ]
    trace = tables(
        cuda_api=calls + more_calls, kernels=kernels + more_kernels, memcpy=copies, notes=[("a", "info", "b")]
    )
    result = aligned(trace)
    starts = {device: [] for device in (0, 1)}
    for row in result.arrow("kernels").to_pylist():
        starts[row["device_id"]].append(row["start_ns"])
    assert starts[0][:3] == [6_000, 106_000, 205_000]
    assert starts[1][:3] == [8_000, 108_000, 207_000]
    assert result.arrow("kernels")["start_ns"].to_pylist() == sorted(starts[0] + starts[1])
    assert sorted(result.arrow("memcpy")["start_ns"].to_pylist()) == [6_005_000, 9_000_000]
    note = result.arrow("notes").to_pylist()[-1]
    assert (note["code"], note["severity"]) == (NOTE, "warning")
    assert note["message"].startswith("The clock of GPU 0 is off: its work seems to begin 3.00 ms before its launches.")


def test_the_capture_lasts_as_long_as_what_was_moved():
    calls, kernels = launches(-3_000_000)
    trace = tables(cuda_api=calls, kernels=kernels)
    assert trace.run_facts()["span_ns"] == 1_902_000
    assert aligned(trace).run_facts()["span_ns"] == 1_900_000 + 5_000 + 1_000 + 10_000


def test_a_report_is_on_the_times_that_were_moved_and_says_so():
    calls, kernels = launches(200_000_000)
    report = analyze(tables(cuda_api=calls, kernels=kernels))
    assert [note.code for note in report.notes] == [NOTE]
    assert {fact.key: fact.value for fact in report.facts("launch")}["queue_median_ns"] == 4_000


def test_a_trace_whose_clocks_are_right_stays_as_it_is():
    calls, kernels = launches(6_000)
    trace = tables(cuda_api=calls, kernels=kernels)
    assert aligned(trace) is trace
    assert aligned(tables(kernels=kernels)).rows("kernels") == COUNT
