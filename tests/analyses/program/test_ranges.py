"""NVTX ranges on the host, and their projection on the device."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.program.ranges import RangesAnalysis
from traceviz.report import Facts, Grid, Prose


def section(view, analysis=None):
    analysis = analysis or RangesAnalysis()
    return analysis.describe(analysis.run(view))


def grids(view, analysis=None):
    return [block for block in section(view, analysis).blocks if isinstance(block, Grid)]


def rows(view, number=0, analysis=None):
    grid = grids(view, analysis)[number]
    names = [column.name for column in grid.columns]
    return {row[names.index("name")]: dict(zip(names, row, strict=True)) for row in grid.rows}


def launch(start, dur, correlation, **extra):
    return (start, dur, "cudaLaunchKernel", {"correlation_id": correlation, **extra})


def work(start, dur, correlation, **extra):
    return (start, dur, "k", {"correlation_id": correlation, **extra})


def test_ranges_are_counted_by_domain_and_name_and_marks_are_not_ranges():
    view = trace(
        nvtx=[(0, 10, "step"), (20, 30, "step"), (60, 5, "step", {"domain": "NCCL"}), (70, 0, "here", {"kind": "mark"})]
    )
    times = {(row[0], row[1]): row[2:4] for row in grids(view)[0].rows}
    assert times == {("", "step"): (2, 40), ("NCCL", "step"): (1, 5)}


def test_self_time_is_without_the_ranges_directly_inside():
    # step |------------------| 0..100
    # fwd    |-------|          10..50, with gemm 20..30
    # bwd               |----|  60..90
    view = trace(nvtx=[(0, 100, "step"), (10, 40, "fwd"), (20, 10, "gemm"), (60, 30, "bwd")])
    assert {name: row["self_ns"] for name, row in rows(view).items()} == {"step": 30, "fwd": 30, "gemm": 10, "bwd": 30}


def test_ranges_within_others_are_said_to_count_in_all_columns_but_self():
    def words(*ranges):
        return [block.text for block in section(trace(nvtx=list(ranges))).blocks if isinstance(block, Prose)]

    nested, apart = words((0, 100, "compute"), (10, 40, "data loading")), words((0, 10, "a"), (10, 40, "b"))
    assert any("all columns but Self" in text for text in nested)
    assert not any("Self" in text for text in apart)
    assert len(nested) == len(apart) + 1


def test_self_times_of_properly_nested_ranges_add_up_to_the_outermost():
    view = trace(nvtx=[(0, 100, "a"), (0, 100, "b"), (5, 20, "c"), (30, 70, "d"), (40, 60, "e")])
    assert sum(row["self_ns"] for row in rows(view).values()) == 100


def test_device_time_of_a_range_is_that_of_the_work_launched_inside_it():
    # calls   1: 10..15, 2: 30..35      work 1: 40..60, 2: 80..100: busy 40, span 60
    view = trace(
        nvtx=[(0, 50, "step"), (5, 15, "first")],
        cuda_api=[launch(10, 5, 1), launch(30, 5, 2)],
        kernels=[work(40, 20, 1), work(80, 20, 2)],
    )
    assert (rows(view)["step"]["device_span_ns"], rows(view)["step"]["device_busy_ns"]) == (60, 40)
    assert (rows(view)["first"]["device_span_ns"], rows(view)["first"]["device_busy_ns"]) == (20, 20)


def test_overlapping_work_is_busy_once():
    view = trace(
        nvtx=[(0, 50, "step")],
        cuda_api=[launch(1, 1, 1), launch(3, 1, 2), launch(5, 1, 3)],
        kernels=[work(100, 50, 1), work(110, 10, 2)],
        memcpy=[(140, 30, "h2d", "pinned", "device", 8, {"correlation_id": 3})],
    )
    assert (rows(view)["step"]["device_span_ns"], rows(view)["step"]["device_busy_ns"]) == (70, 70)


def test_a_call_that_outlasts_the_range_does_not_belong_to_it():
    view = trace(nvtx=[(0, 12, "r")], cuda_api=[launch(10, 5, 1)], kernels=[work(20, 5, 1)])
    assert (rows(view)["r"]["device_span_ns"], rows(view)["r"]["device_busy_ns"]) == (0, 0)


def test_a_call_of_another_thread_or_process_does_not_belong_to_the_range():
    view = trace(
        nvtx=[(0, 50, "r")],
        cuda_api=[launch(10, 5, 1, thread_id=1), launch(20, 5, 1, thread_id=2, process_id=1)],
        kernels=[work(20, 5, 1), work(30, 5, 1, process_id=1)],
    )
    assert rows(view)["r"]["device_busy_ns"] == 0


def test_each_instance_has_its_own_span():
    view = trace(
        nvtx=[(0, 10, "step"), (1_000, 10, "step")],
        cuda_api=[launch(1, 1, 1), launch(1_001, 1, 2)],
        kernels=[work(5, 20, 1), work(1_005, 20, 2)],
    )
    assert (rows(view)["step"]["device_span_ns"], rows(view)["step"]["device_busy_ns"]) == (40, 40)


def test_start_end_ranges_may_cross_threads_and_have_no_device_time():
    view = trace(nvtx=[(0, 50, "r", {"kind": "start_end"})], cuda_api=[launch(10, 5, 1)], kernels=[work(20, 5, 1)])
    times = rows(view)["r"]
    assert (times["total_ns"], times["self_ns"], times["device_busy_ns"]) == (50, 50, None)


def test_without_cuda_calls_device_time_is_not_known_rather_than_zero():
    view = trace(nvtx=[(0, 50, "r")], kernels=[work(20, 5, 1)])
    assert rows(view)["r"]["device_busy_ns"] is None
    assert any(isinstance(block, Prose) for block in section(view).blocks)


def test_ranges_that_never_ended_are_said_and_not_counted():
    view = trace(nvtx=[(0, None, "open"), (5, 5, "r")])
    facts = {fact.key: fact.value for block in section(view).blocks if isinstance(block, Facts) for fact in block.facts}
    assert (facts["calls"], facts["unfinished"], list(rows(view))) == (1, 1, ["r"])


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (
            ["aten::to, op_id = {}", "aten::mm, seq = {}, op_id = 3"],
            ["aten::to, op_id = N", "aten::mm, seq = N, op_id = N"],
        ),
        (["Batch {}", "step_{}", "ProfilerStep#{}"], ["Batch N", "step_N", "ProfilerStep#N"]),
    ],
)
def test_running_numbers_are_folded_for_people_and_kept_for_machines(names, folded):
    view = trace(nvtx=[(100 * i, 10, name.format(i)) for i in range(1, 301) for name in names])
    exact, short = grids(view)
    assert (exact.audience, len(exact.rows)) == ("machine", 300 * len(names))
    assert (short.audience, sorted(rows(view, 1))) == ("all", sorted(folded))
    assert all(row["calls"] == 300 for row in rows(view, 1).values())


def test_names_whose_numbers_are_their_identity_are_not_folded():
    view = trace(nvtx=[(100 * i, 10, f"conv{i}x{i}") for i in range(300)])
    assert [grid.audience for grid in grids(view)] == ["all"]


def test_few_names_are_shown_as_they_are():
    assert [grid.audience for grid in grids(trace(nvtx=[(100 * i, 10, f"Batch {i}") for i in range(10)]))] == ["all"]


def test_a_capture_without_ranges_says_so_in_one_sentence():
    analysis = RangesAnalysis()
    blocks = analysis.describe(analysis.run(trace(nvtx=[]))).blocks
    assert [block for block in blocks if getattr(block, "audience", "all") == "all"] == [
        Prose("No range was recorded.")
    ]
    assert len([block for block in blocks if isinstance(block, Grid)]) == 1
