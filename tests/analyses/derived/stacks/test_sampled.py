"""Sampled stacks and recorded functions as rows of one kind."""

from typing import Any

import pytest

from tests.analyses.builders import trace
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.stacks.sampled import main_thread, sampled_stacks, time_by_stack
from traceviz.core.arrays.intervals import IntervalSet

MAIN = "train.py:90 main"
DECODE = f"{MAIN} > torch/utils/data/dataloader.py:733 __next__ > data.py:41 decode_jpeg > PIL/Image.py:3000 open"
WORKER = {"thread_id": 1}


def test_a_row_says_what_for_where_in_the_program_and_what_the_innermost_frame_is() -> None:
    view = trace(**sampled((0, 40, DECODE), (40, 10, MAIN)))
    rows = sampled_stacks(view).select("kind", "activity", "location", "function", "leaf", "samples").rows()
    assert rows == [
        ("input", "compute", "data.py:41 decode_jpeg", "data.py decode_jpeg", "PIL/Image.py:3000 open", 4),
        ("python", "python", "train.py:90 main", "train.py main", "train.py:90 main", 1),
    ]


def test_without_a_frame_of_the_program_the_library_says_where() -> None:
    view = trace(**sampled((0, 10, "threading.py:1002 _bootstrap > tqdm/_monitor.py:60 run > threading.py:331 wait")))
    assert sampled_stacks(view).select("kind", "activity", "location").row(0) == (
        "logging",
        "lock",
        "tqdm/_monitor.py:60 run",
    )


def test_time_in_a_part_of_the_run_takes_the_share_of_each_row_that_lies_in_it() -> None:
    """
    main     |--decode 40--|--main 20--|
    worker   |-------wait 60-----------|
    within           |------- 40 ------|
    """
    rows = ((0, 40, DECODE, {"cpu_ns": 36}), (40, 20, MAIN, {"cpu_ns": 20}))
    view = trace(**sampled(*rows, (0, 60, "pool.py:5 run > threading.py:331 wait", WORKER)))
    table = time_by_stack(view, IntervalSet.span(20, 60), 0, 0)
    columns = ("kind", "location", "thread_id", "time_ns", "samples", "cpu_ns")
    assert table.select(columns).rows() == [
        ("input", "data.py:41 decode_jpeg", 0, 20, 2.0, 18.0),
        ("python", "train.py:90 main", 0, 20, 2.0, 20.0),
    ]
    everyone = time_by_stack(view, IntervalSet.span(20, 60), 0)
    assert everyone["time_ns"].to_list() == [40, 20, 20]
    assert everyone["kind"][0] == "lock"
    assert time_by_stack(view, IntervalSet.span(20, 60), 0)["samples"].sum() == 4 + 2 + 2
    assert not time_by_stack(view, IntervalSet.span(100, 200), 0).height


def test_recorded_functions_are_exact_rows_of_the_innermost_one_without_samples() -> None:
    """
    |--- main 100 ----------------------|
       |-- decode 40 --|     |-sleep-|
    """
    view = trace(
        host_ops=[
            (0, 100, "train.py(90): main", "python"),
            (10, 40, "train.py(41): decode_jpeg", "python"),
            (60, 20, "<built-in function sleep>", "python"),
            (5, 90, "aten::mm", "op"),
        ]
    )
    rows = sampled_stacks(view).select("start_ns", "end_ns", "kind", "location", "samples").rows()
    assert rows == [
        (0, 10, "python", "train.py:90 main", None),
        (10, 50, "input", "train.py:41 decode_jpeg", None),
        (50, 60, "python", "train.py:90 main", None),
        (60, 80, "sleep", "train.py:90 main", None),
        (80, 100, "python", "train.py:90 main", None),
    ]
    assert time_by_stack(view, IntervalSet.span(0, 100), 0)["samples"].null_count() == 3


def test_samples_count_where_a_trace_has_both() -> None:
    view = trace(**sampled((0, 10, MAIN)), host_ops=[(0, 100, "train.py(90): main", "python")])
    assert sampled_stacks(view)["end_ns"].to_list() == [10]


@pytest.mark.parametrize(
    ("tables", "thread"),
    [
        ({"phases": [(0, 10, "step", "loop", {"thread_id": 3})], "threads": [(2, 0, "MainThread"), (3, 0, "x")]}, 3),
        ({"threads": [(1, 0, "worker"), (2, 0, "MainThread")]}, 2),
        ({"threads": [(1, 0, "w", {"tid": 9}), (2, 0, None, {"tid": 77})], "processes": [(0, "p", {"pid": 77})]}, 2),
        ({"threads": [(1, 0, "a"), (2, 0, "b")]}, 1),
        ({"threads": []}, None),
    ],
    ids=["steps", "name", "first thread", "most time", "none"],
)
def test_the_main_thread_leads_steps_else_has_that_name_else_is_the_first_one(
    tables: dict[str, Any], thread: int | None
) -> None:
    rows = [(0, 50, MAIN, {"thread_id": 1}), (0, 20, MAIN, {"thread_id": 2})] if tables["threads"] else []
    assert main_thread(trace(**sampled(*rows), **tables), 0) == thread


def test_a_trace_without_stacks_has_no_rows() -> None:
    view = trace(kernels=[(0, 10, "gemm")])
    assert sampled_stacks(view).height == 0
    assert time_by_stack(view, IntervalSet.span(0, 10), 0).height == 0
    assert main_thread(view, 0) is None
