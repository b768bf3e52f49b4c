"""Kernels that state a duration beyond the next kernel of their stream."""

import pytest

from tests.parsers.kineto import files as k
from tests.parsers.kineto.tables import notes, read, rows


def kernels(*times, stream=7, **more):
    return [k.kernel(f"k{start}", start, dur, correlation=start, stream=stream, **more) for start, dur in times]


LINE = [(start, 50) for start in range(100, 2_100, 100)]


def test_a_kernel_that_outlasts_the_next_is_cut_at_its_start_and_its_share_is_noted(tmp_path):
    trace = read(tmp_path, kernels(*[(t, 9_050 if t == 500 else d) for t, d in LINE]))
    assert dict(rows(trace, "kernels", "name", "dur_ns"))["k500"] == 100_000
    assert notes(trace)["kernels-cut"] == 1
    (message,) = [row["message"] for row in trace.arrow("notes").to_pylist() if row["code"] == "kernels-cut"]
    assert "89.5 % of the stated kernel time" in message  # 8,950 of 10,000 us
    assert trace.run_facts()["span_ns"] == 1_950_000


@pytest.mark.parametrize(
    "events",
    [
        kernels(*[(t, 120 if t == 500 else d) for t, d in LINE]),  # the next one started early, and ends later
        kernels(*[(t, 151 if t == 500 else d) for t, d in LINE]),  # rounded to microseconds
        kernels(*LINE) + kernels((500, 9_000), stream=8),  # another stream
        kernels(*[(t, 900 if t % 500 == 0 else d) for t, d in LINE]),  # a queue that runs kernels at the same time
        kernels(*LINE) + kernels((501, 9_000), args={"graph node id": 1}),
    ],
)
def test_overlaps_that_a_stream_can_have_are_left(tmp_path, events):
    trace = read(tmp_path, events)
    assert "kernels-cut" not in notes(trace)
    assert len(rows(trace, "kernels", "name")) == len(events)
