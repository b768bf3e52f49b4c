"""Resources of several sides over time: one axis, one height."""

from __future__ import annotations

import pytest

from tests.compare.sections_of import facts, run, section, side, table
from traceviz.compare.changes.resources import SLICES, amounts, on_axis, over_time
from traceviz.report import Lane, Timeline

S = 1_000_000_000


def sampled(label, seconds, *lanes, **most):
    """Return a side of runs of these seconds, with the most that was sampled of each metric by name."""
    rows = ((name.replace("_", " "), "", "", 0.0, 0.0, value) for name, value in most.items())
    metrics = table("Metrics", "metric device unit mean p95 max", *rows)
    timelines = (Timeline("Over the run", 0, time * S, lanes) for time in seconds)
    return side(label, *(run(1, section("host", facts(cores=4), timeline, metrics)) for timeline in timelines))


def memory(share, words):
    return Lane("memory", (share,) * SLICES, words)


def lanes_of(timeline):
    return {lane.label: lane for lane in timeline.lanes}


def test_a_run_of_half_the_time_ends_in_the_middle_of_the_common_axis():
    timeline = over_time((sampled("long", [8], memory(0.5, "1 GB")), sampled("short", [4], memory(0.25, "1 GB"))))
    assert (timeline.start_ns, timeline.end_ns) == (0, 8 * S)
    assert lanes_of(timeline)["memory, long"].values == (0.5,) * SLICES
    assert lanes_of(timeline)["memory, short"].values == (0.25,) * (SLICES // 2) + (None,) * (SLICES // 2)


def test_heights_are_those_of_the_side_that_takes_most():
    small = sampled("small", [8], memory(1.0, "1 GB"), program_memory=1e9)
    large = sampled("large", [8], memory(0.5, "4 GB"), program_memory=4e9)
    lanes = lanes_of(over_time((small, large)))
    assert (lanes["memory, small"].values[0], lanes["memory, small"].whole) == (0.25, "4 GB")
    assert (lanes["memory, large"].values[0], lanes["memory, large"].whole) == (0.5, "4 GB")


def test_shares_of_a_saved_report_beyond_the_full_height_are_the_full_height():
    lanes = lanes_of(over_time((sampled("a", [8], memory(1e308, "1 GB")), sampled("b", [4], memory(-3.0, "1 GB")))))
    assert [lane.values[0] for lane in lanes.values()] == [1.0, 0.0]


def test_a_height_that_is_not_known_stays_that_of_the_side():
    lanes = lanes_of(over_time((sampled("a", [8], memory(1.0, "1 GB")), sampled("b", [8], memory(0.5, "4 GB")))))
    assert [(lane.values[0], lane.whole) for lane in lanes.values()] == [(1.0, "1 GB"), (0.5, "4 GB")]


def test_a_lane_of_a_device_is_told_from_that_of_the_host():
    lanes = (memory(1.0, "1 GB"), Lane("GPU 0 power", (0.5,) * SLICES, "300 W"))
    power = table("Metrics", "metric device unit mean p95 max", ("GPU power", "GPU 0 NVIDIA T4", "W", 0.0, 0.0, 300.0))
    weak = table("Metrics", "metric device unit mean p95 max", ("GPU power", "GPU 0 NVIDIA L4", "W", 0.0, 0.0, 75.0))
    sides = [
        side(name, run(1, section("host", Timeline("Over the run", 0, 8 * S, lanes), metrics)))
        for name, metrics in (("a", power), ("b", weak))
    ]
    found = lanes_of(over_time(sides))
    assert (found["GPU 0 power, a"].values[0], found["GPU 0 power, b"].values[0]) == (0.5, 0.125)
    assert found["memory, b"].values[0] == 1.0


def test_of_3_repeats_the_one_of_middle_length_is_shown_and_of_3_sides_only_what_the_program_takes():
    lanes = (memory(1.0, "1 GB"), Lane("busiest core", (1.0,) * SLICES, "100 %"))
    sides = [sampled(name, seconds, *lanes) for name, seconds in (("a", [3, 9, 5]), ("b", [4]), ("c", [4]))]
    assert over_time(sides[:2]).end_ns == 5 * S
    assert len(over_time(sides[:2]).lanes) == 4
    assert [lane.label for lane in over_time(sides).lanes] == ["memory, a", "memory, b", "memory, c"]
    assert over_time((sides[0], side("none", run(1)))) is None


def test_devices_of_other_products_are_beside_each_other():
    sides = []
    for name, product in (("a", "NVIDIA T4"), ("b", "NVIDIA H100 80GB HBM3")):
        lanes = Lane(f"GPU 0 {product}", (0.5,)), Lane("TPU 1", (1.0,))
        sides.append(side(name, run(1, section("device_use", Timeline("Utilisation", 0, S, lanes)))))
    assert [lane.label for lane in over_time(sides, "device_use").lanes] == [
        *("GPU 0, a", "GPU 0, b"),
        *("TPU 1, a", "TPU 1, b"),
    ]


@pytest.mark.parametrize(
    ("values", "span", "end", "first", "last"),
    [((1.0, 3.0), 10, 10, 1.0, 3.0), ((1.0, None), 30, 60, 1.0, None), ((2.0,) * 120, 60, 60, 2.0, 2.0)],
)
def test_values_keep_their_place_on_a_longer_axis(values, span, end, first, last):
    placed = on_axis(values, span, end)
    assert (placed[0], placed[-1]) == (first, last)


def test_amounts_say_what_full_height_is_and_leave_out_what_is_not_known():
    cpu = Lane("CPU, program", (0.5,) * SLICES, "4 cores")
    small = sampled("small", [8], cpu, memory(1.0, "1 GB"), Lane("threads", (1.0,)), program_memory=1e9)
    large = sampled("large", [4], cpu, memory(0.5, "4 GB"), program_memory=4e9)
    known = [tuple(row) for row in amounts((small, large)).rows]
    assert known == [
        ("CPU, small", "CPU", "small", "4 cores", "ratio", 1.0),
        ("CPU, large", "CPU", "large", "4 cores", "ratio", 1.0),
        ("memory, small", "memory", "small", "4 GB", "bytes", 4e9),
        ("memory, large", "memory", "large", "4 GB", "bytes", 4e9),
        ("threads, small", "threads", "small", "", "ratio", 1.0),
    ]
    assert amounts((small, sampled("other", [4], memory(0.5, "4 GB")))).rows[-1][1] == "threads"
    assert amounts((small,)) is None
