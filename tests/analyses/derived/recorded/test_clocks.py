"""Clocks of devices that are off, and what becomes of the times of their work."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.derived.capture.launch_delays import launch_delays
from traceviz.analyses.derived.recorded.clocks import NOTE, ClockError, clock_errors, describe_clock_errors
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.run import analyze
from traceviz.report import Prose
from traceviz.report.findings.registry import record_of

COUNT = 20


def launches(delay_ns, count=COUNT, device=0, first=0):
    """Return calls 100 µs apart, and kernels that start ``delay_ns`` after them, the third one sooner than others."""
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
        (-1_001, COUNT, False),  # of one launch only, the third: joined with the wrong call
        (-2_001, COUNT, True),
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
    result = TraceView(trace).tables
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
    assert TraceView(trace).tables.run_facts()["span_ns"] == 1_900_000 + 5_000 + 1_000 + 10_000


def test_a_report_is_on_the_times_that_were_moved_and_says_so():
    calls, kernels = launches(200_000_000)
    report = analyze(tables(cuda_api=calls, kernels=kernels))
    assert [note.code for note in report.notes] == [NOTE]
    assert {fact.key: fact.value for fact in report.facts("launch")}["queue_median_ns"] == 4_000


def test_a_trace_whose_clocks_are_right_stays_as_it_is():
    calls, kernels = launches(6_000)
    trace = tables(cuda_api=calls, kernels=kernels)
    assert TraceView(trace).tables is trace
    assert TraceView(tables(kernels=kernels)).tables.rows("kernels") == COUNT


def idle_device(delay_ns):
    """Return twenty launches 100 µs apart of 10 µs kernels: idle nine tenths of the time, and in the program."""
    calls, kernels = launches(delay_ns)
    return tables(cuda_api=calls, kernels=kernels, os_calls=[])


def test_findings_and_sentences_on_idle_time_say_that_a_clock_was_moved():
    report = analyze(idle_device(-3_000_000))
    doubt = "The clock of GPU 0 was moved by 3.00 ms: idle times are as uncertain."
    (finding,) = (finding for finding in report.findings if finding.code == "TV201")
    assert finding.message.endswith(f"idle time). {doubt}")
    assert report.verdict.sentence.endswith(doubt)
    for slug in ("device_use", "idle_gaps"):
        assert [block.text for block in report.section(slug).blocks if isinstance(block, Prose)] == [doubt]


def test_of_clocks_that_are_right_nothing_is_said():
    report = analyze(idle_device(6_000))
    assert "TV201" in {finding.code for finding in report.findings}
    assert "clock" not in f"{report.verdict.sentence} {[finding.message for finding in report.findings]}"


def test_launches_that_wait_behind_one_another_say_nothing_of_a_clock():
    calls = [(1_000 * n, 500, "hipLaunchKernel", {"correlation_id": n + 1}) for n in range(40)]
    begin = 300_000_000  # held up by work from before the capture, and then one after the other
    kernels = [(begin + 10_000 * n, 10_000, "k", {"correlation_id": n + 1}) for n in range(40)]
    assert clock_errors(tables(cuda_api=calls, kernels=kernels)) == ()
    idle = [(begin + 30_000 * n, 10_000, "k", {"correlation_id": n + 1}) for n in range(40)]
    assert clock_errors(tables(cuda_api=calls, kernels=idle)) == (ClockError(0, 40, begin),)


def test_many_clocks_are_counted():
    errors = [ClockError(device, COUNT, -1_000_000 * (device + 1)) for device in range(3)]
    trace = tables(kernels=[(0, 1, "k", {"device_id": device}) for device in range(3)])
    assert describe_clock_errors(trace, tuple(errors[:2])) == (
        "The clocks of GPU 0 and GPU 1 were moved by up to 2.00 ms: idle times are as uncertain."
    )
    assert describe_clock_errors(trace, tuple(errors)).startswith("The clocks of 3 devices were moved by up to 3.00 ms")


def test_a_finding_that_rests_on_one_clock_only_has_no_doubt():
    assert record_of("TV201").compares_clocks
    assert record_of("TV203").compares_clocks
    assert not record_of("TV504").compares_clocks  # kernels of one device against each other


def test_delays_of_each_device_stand_beside_what_its_clock_was_moved_by():
    calls, kernels = launches(-3_000_000)
    more_calls, more_kernels = launches(7_000, device=1, first=COUNT)
    view = TraceView(tables(cuda_api=calls + more_calls, kernels=kernels + more_kernels[:15]))
    rows = [(row.device, row.launches, row.joined_share, row.smallest_ns, row.moved_ns) for row in launch_delays(view)]
    assert rows == [("GPU 0", 20, 1.0, 5_000, 3_005_000), ("GPU 1", 15, 1.0, 7_000, None)]


def test_a_device_none_of_whose_calls_is_known_has_no_delays():
    assert launch_delays(TraceView(tables(cuda_api=[(0, 1, "cudaFree")], kernels=[(0, 1, "k")]))) == ()
    assert launch_delays(TraceView(tables(kernels=[(0, 1, "k")]))) == ()


def test_work_is_not_joined_with_calls_that_carry_no_number():
    view = TraceView(tables(cuda_api=[(0, 1, "cudaFree")], kernels=[(5, 1, "k", {"correlation_id": 0})]))
    assert launch_delays(view) == ()
