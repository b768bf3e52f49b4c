"""Limits of a capture: starts, durations, amounts and readings, each below, at and above its limit."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceviz.trace import schema
from traceviz.trace.plausible import FARTHEST_NS, LARGEST_SUM, LONGEST_NS, MOST, checked, elapsed, window_of
from traceviz.trace.rows_to_table import rows_to_table

DAY_NS = 86_400 * 10**9
NOW_NS = 1_790_000_000 * 10**9
INT64 = st.integers(-(2**63), 2**63 - 1)


def test_a_month_is_2_592_000_seconds():
    assert LONGEST_NS == 2_592_000 * 10**9


@pytest.mark.parametrize("zero", [0, NOW_NS, -5 * 10**9])
@pytest.mark.parametrize("span", [0, DAY_NS, LONGEST_NS - 1, LONGEST_NS])
def test_starts_within_30_days_are_all_plausible(zero: int, span: int):
    assert window_of(np.array([zero, zero + span, zero + 1])) is None


def test_a_start_30_days_and_1_nanosecond_after_the_others_is_not_plausible():
    starts = np.array([100, 200, 200, 200, 200 + LONGEST_NS, 200 + LONGEST_NS + 1])
    window = window_of(starts)
    assert window is not None
    assert window.has(starts).tolist() == [True, True, True, True, True, False]


@pytest.mark.parametrize("wrong", [-(2**63), 2**63 - 1, -1, 0])
def test_1_corrupt_start_among_4_at_a_time_of_day_is_left_out_and_moves_nothing(wrong: int):
    starts = np.array([NOW_NS, NOW_NS + 5, wrong, NOW_NS + 7, NOW_NS + 9])
    window = window_of(starts)
    assert window is not None
    assert starts[window.has(starts)].tolist() == [NOW_NS, NOW_NS + 5, NOW_NS + 7, NOW_NS + 9]


def test_elapsed_time_between_the_2_ends_of_64_bits_does_not_wrap():
    starts, ends = np.array([-(2**63), 5, 2**63 - 1]), np.array([2**63 - 1, 12, -(2**63)])
    assert elapsed(starts, ends).tolist() == [2 * FARTHEST_NS, 7, -2 * FARTHEST_NS]


@given(st.lists(st.integers(0, LONGEST_NS // 2), min_size=3, max_size=30), st.lists(INT64, max_size=2), INT64)
def test_fewer_than_half_of_the_events_never_make_healthy_ones_implausible(healthy, strays, zero):
    zero = max(-FARTHEST_NS // 2, min(zero, FARTHEST_NS // 2))
    good = np.array(healthy) + zero
    window = window_of(np.append(good, np.array(strays, np.int64)))
    assert window is None or bool(window.has(good).all())


@given(st.lists(INT64, min_size=1, max_size=20))
def test_plausible_starts_always_lie_within_60_days_and_subtract_within_64_bits(starts):
    column = np.array(starts, np.int64)
    window = window_of(column)
    kept = column if window is None else column[window.has(column)]
    if kept.size:
        first, last = int(kept.min()), int(kept.max())
        assert last - first <= 2 * LONGEST_NS
        assert -FARTHEST_NS <= first <= last <= FARTHEST_NS


def memsets(starts: list[int], durations: list[int | None], amounts: list[int | None]) -> pa.Table:
    rows = [
        {"start_ns": start, "dur_ns": lasting, "bytes": amount, "device_id": 0, "process_id": 0, "memory": "device"}
        for start, lasting, amount in zip(starts, durations, amounts, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema.table("memset").arrow)


def passed(**tables: pa.Table) -> tuple[dict[str, pa.Table], list[tuple[str, int, str]]]:
    """Return the tables as they leave, and the notes on them."""
    given_tables = [*tables.items(), ("notes", schema.table("notes").empty())]
    result = dict(checked(iter(given_tables)))
    return result, [(row["code"], row["count"], row["message"]) for row in result.pop("notes").to_pylist()]


def test_values_at_their_limits_stay_without_a_note():
    table = memsets([-2 * LONGEST_NS, 0, 2 * LONGEST_NS], [0, LONGEST_NS, None], [0, MOST, None])
    tables, notes = passed(memset=table)
    assert tables["memset"].equals(table)
    assert notes == []


def test_values_1_beyond_their_limits_are_left_out_with_2_notes_that_count_them():
    table = memsets([0, 1, 2, 3], [-1, LONGEST_NS + 1, 5, LONGEST_NS], [-1, 7, MOST + 1, MOST])
    tables, notes = passed(memset=table)
    assert tables["memset"]["dur_ns"].to_pylist() == [None, None, 5, LONGEST_NS]
    assert tables["memset"]["bytes"].to_pylist() == [None, 7, None, MOST]
    lasting = (
        "memset: rows that last longer than any capture, or less than nothing, kept without a duration, such as -1 ns."
    )
    size = "memset.bytes: values that no capture can hold, left out, such as -1."
    assert notes == [("durations-out-of-range", 2, lasting), ("values-out-of-range", 2, size)]


def test_rows_that_start_1_nanosecond_beyond_60_days_are_left_out():
    table = memsets([-2 * LONGEST_NS - 1, 4, 2 * LONGEST_NS + 1], [1, 2, 3], [1, 1, 1])
    tables, notes = passed(memset=table)
    assert tables["memset"]["dur_ns"].to_pylist() == [2]
    message = f"memset: rows at times that no capture holds together, left out, such as {-2 * LONGEST_NS - 1} ns."
    assert notes == [("times-out-of-range", 2, message)]


def test_a_sum_beyond_2_to_the_62_leaves_out_those_above_an_equal_share():
    rows = 5_000  # 5,000 pebibytes are more than 2**62 bytes: a share is 2**62 // 5,000
    share = LARGEST_SUM // rows
    amounts = [MOST] * (rows - 2) + [share, share + 1]
    tables, notes = passed(memset=memsets([0] * rows, [1] * rows, amounts))
    left = tables["memset"]["bytes"]
    assert left.to_pylist() == [None] * (rows - 2) + [share, None]
    assert [(code, count) for code, count, _ in notes] == [("values-out-of-range", rows - 1)]


def test_a_sum_of_exactly_2_to_the_62_stays():
    tables, notes = passed(memset=memsets([0] * 4096, [1] * 4096, [MOST] * 4096))
    assert sum(tables["memset"]["bytes"].to_pylist()) == LARGEST_SUM
    assert notes == []


@given(st.lists(st.tuples(INT64, INT64, INT64), min_size=1, max_size=12))
def test_what_passes_adds_up_within_64_bits_and_passes_again_unchanged(rows):
    starts, durations, amounts = zip(*rows, strict=True)
    once, _ = passed(memset=memsets(list(starts), list(durations), list(amounts)))
    twice, notes = passed(**once)
    assert twice["memset"].equals(once["memset"])
    assert notes == []
    for column in ("dur_ns", "bytes"):
        known = [value for value in once["memset"][column].to_pylist() if value is not None]
        assert all(value >= 0 for value in known)
        assert sum(known) <= LARGEST_SUM


def samples(values: list[float]) -> pa.Table:
    rows = [{"start_ns": at, "metric": "m", "unit": "", "value": value} for at, value in enumerate(values)]
    return pa.Table.from_pylist(rows, schema.table("samples").arrow)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, 1e300])
def test_1_reading_that_is_no_finite_number_is_left_out_and_2_stay(wrong: float):
    tables, notes = passed(samples=samples([1.5, wrong, 2.5]))
    assert tables["samples"]["value"].to_pylist() == [1.5, 2.5]
    assert [(code, count) for code, count, _ in notes] == [("values-out-of-range", 1)]


@pytest.mark.parametrize("value", [2.0**64, -(2.0**64), 0.0])
def test_counters_of_64_bits_stay(value: float):
    assert passed(samples=samples([value]))[1] == []


def test_ranges_after_1_that_is_left_out_are_numbered_anew_and_so_are_their_parents():
    rows = [
        {"start_ns": -(2**63), "range_id": 0, "parent_id": None},
        {"start_ns": 0, "range_id": 1, "parent_id": 0},
        {"start_ns": 1, "range_id": 2, "parent_id": 1},
    ]
    rest = {"process_id": 0, "thread_id": 0, "kind": "push_pop", "name": "a", "domain": "", "dur_ns": 1}
    table = pa.Table.from_pylist([{**rest, **row} for row in rows], schema.table("nvtx").arrow)
    tables, notes = passed(nvtx=table)
    assert tables["nvtx"].select(["start_ns", "range_id", "parent_id"]).to_pylist() == [
        {"start_ns": 0, "range_id": 0, "parent_id": None},
        {"start_ns": 1, "range_id": 1, "parent_id": 0},
    ]
    assert [(code, count) for code, count, _ in notes] == [("times-out-of-range", 1)]


def test_properties_follow_their_operations_where_1_is_left_out():
    rest = {"process_id": 0, "thread_id": 0, "name": "a", "category": "op", "dur_ns": 1}
    rows = [{**rest, "start_ns": 2**62, "op_id": 0}, {**rest, "start_ns": 3, "op_id": 1, "parent_id": 0}]
    operations = pa.Table.from_pylist(rows, schema.table("host_ops").arrow)
    properties = [{"op_id": 0, "key": "a", "integer": 2**63 - 1}, {"op_id": 1, "key": "b", "integer": -(2**63)}]
    tables, _ = passed(host_ops=operations, op_args=pa.Table.from_pylist(properties, schema.table("op_args").arrow))
    assert tables["op_args"].to_pylist() == [{"op_id": 0, "key": "b", "integer": -(2**63), "real": None, "text": None}]


def test_properties_of_the_last_operation_go_with_it_and_operations_may_have_any_number():
    rest = {"process_id": 0, "thread_id": 0, "name": "a", "category": "op", "dur_ns": 1}
    rows = [{**rest, "start_ns": 3, "op_id": 2**62}, {**rest, "start_ns": 2**62, "op_id": 2**62 + 1}]
    operations = pa.Table.from_pylist(rows, schema.table("host_ops").arrow)
    properties = [{"op_id": 2**62, "key": "a", "integer": 5}, {"op_id": 2**62 + 1, "key": "b", "integer": 6}]
    tables, _ = passed(host_ops=operations, op_args=pa.Table.from_pylist(properties, schema.table("op_args").arrow))
    assert tables["op_args"].select(["op_id", "key"]).to_pylist() == [{"op_id": 0, "key": "a"}]


class TestStacks:
    """Frames of folders, which may hold anything: following callers always ends."""

    def checked(self, frames, samples):
        names = ("stack_id", "parent_id", "function", "file", "line", "origin")
        listed = [dict(zip(names, (*row, "f", "f.py", 1, "program"), strict=True)) for row in frames]
        rows = [
            {"start_ns": 0, "dur_ns": 1, "process_id": 0, "thread_id": 0, "stack_id": stack, "samples": count}
            for stack, count in samples
        ]
        tables = {"stack_frames": listed, "stacks": rows}
        given = [(name, rows_to_table(name, rows)) for name, rows in tables.items()]
        return dict(checked(iter([*given, ("notes", schema.table("notes").empty())])))

    def test_sound_frames_are_left_as_they_are(self):
        tables = self.checked([(0, None), (1, 0), (2, 1), (3, 0)], [(3, 2)])
        assert tables["stack_frames"]["parent_id"].to_pylist() == [None, 0, 1, 0]
        assert (tables["stacks"]["stack_id"].to_pylist(), tables["notes"].num_rows) == ([3], 0)

    def test_circles_and_callers_that_are_not_there_are_cut(self):
        tables = self.checked([(5, 7), (7, 5), (9, 99), (9, 5), (-4, None)], [(9, 1), (7, 1), (8, 1), (-4, 1)])
        assert tables["stack_frames"]["stack_id"].to_pylist() == [0, 1, 2, 3]  # -4, 5, 7, 9
        assert tables["stack_frames"]["parent_id"].to_pylist() == [None, None, 1, None]
        assert tables["stacks"]["stack_id"].to_pylist() == [3, 2, 0]
        assert [row["count"] for row in tables["notes"].to_pylist()] == [2, 1]

    def test_a_stack_has_a_thousand_frames_at_most(self):
        tables = self.checked([(number, number - 1 if number else None) for number in range(2_500)], [(2_499, 1)])
        parents = tables["stack_frames"]["parent_id"].to_pylist()
        assert [number for number, parent in enumerate(parents) if parent is None] == [0, 1_000, 2_000]

    @pytest.mark.parametrize("count", [-1, 2**32 + 1, 2**63 - 1])
    def test_samples_that_no_capture_has_are_left_out(self, count):
        tables = self.checked([(0, None)], [(0, 3), (0, count)])
        assert (tables["stacks"]["samples"].to_pylist(), tables["notes"].num_rows) == ([3], 1)
