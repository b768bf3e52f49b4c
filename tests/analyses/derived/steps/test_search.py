"""Steps: declared by ranges, inferred from repeating ranges or kernels, warm-up kept apart."""

import numpy as np
import polars as pl
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.judged_time import host_time, steady_time
from traceviz.analyses.derived.steps.bounds import cut_beside_whole
from traceviz.analyses.derived.steps.search import count_lost_steps, training_steps
from traceviz.analyses.derived.steps.steps import STEP_NAME, fold_numbers, warmup_steps
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.run import analyze
from traceviz.analyses.steps.steps import StepAnalysis


def bounds_of(view):
    return list(training_steps(view).frame.select("start_ns", "end_ns").iter_rows())


def test_ranges_with_a_running_number_are_steps_and_end_where_they_end():
    view = trace(nvtx=[(0, 100, "step 0"), (100, 100, "step 1"), (200, 110, "step 2")])
    assert training_steps(view).source == "nvtx"
    assert training_steps(view).confidence == 1.0
    assert bounds_of(view) == [(0, 100), (100, 200), (200, 310)]
    assert training_steps(view).frame["step"].to_list() == [0, 1, 2]


BATCHES = [(90, 10, "batch 0"), (190, 10, "batch 1"), (290, 10, "batch 2"), (390, 10, "batch 3")]


def test_a_step_owns_the_time_from_its_start_to_the_next_and_the_last_is_cut():
    steps = training_steps(trace(nvtx=BATCHES))
    assert bounds_of(trace(nvtx=BATCHES)) == [(90, 190), (190, 290), (290, 390), (390, 400)]
    assert steps.frame["cut"].to_list() == [False, False, False, True]
    assert steps.steady.height == 3


MARKED = {
    "if marks nearly touch, the last step is no worse than the others": (
        {"nvtx": [(i * 100, 95, f"step {i}") for i in range(5)]},
        [(0, 100), (100, 200), (200, 300), (300, 400), (400, 495)],
    ),
    "a pause that nothing claims belongs to the loop, however long": (
        {"nvtx": [(base + i * 100, 99, "step") for base in (0, 50_000) for i in range(2)]},
        [(0, 100), (100, 50_000), (50_000, 50_100), (50_100, 50_199)],
    ),
    "an annotation of a framework claims the time between two declared steps": (
        {
            "steps": [(0, 100, 0), (100, 100, 1), (500, 100, 2)],
            "host_ops": [(210, 280, "evaluate", "annotation")],
        },
        [(0, 100), (100, 210), (500, 600)],
    ),
    "an evaluation on another thread claims nothing": (
        {"nvtx": [*((i * 300, 100, f"step {i}") for i in range(3)), (100, 200, "validation", {"thread_id": 3})]},
        [(0, 300), (300, 600), (600, 700)],
    ),
    "parents around single steps are no epochs": (
        {"nvtx": [r for i in range(3) for r in ((i * 100, 90, f"round {i}"), (i * 100 + 20, 40, "step"))]},
        [(20, 120), (120, 220), (220, 260)],
    ),
    "marks that overlap or nest count no time twice": (
        {"nvtx": [(0, 120, "step"), (100, 120, "step"), (110, 10, "step"), (200, 100, "step")]},
        [(0, 100), (100, 200), (200, 300)],
    ),
}


@pytest.mark.parametrize(("marks", "bounds"), MARKED.values(), ids=MARKED)
def test_a_marked_step_lasts_to_the_start_of_the_next(marks, bounds):
    assert bounds_of(trace(**marks)) == bounds


def test_a_cut_step_is_judged_where_it_is_all_there_is():
    view = trace(nvtx=[(i * 100, 50, f"step {i}") for i in range(4)] + [(0, 400, "x")], span_ns=400)
    kept = training_steps(view).frame.filter(pl.col("step") == 3)
    assert kept["cut"].item()
    assert not kept.with_columns(cut_beside_whole())["cut"].item()


@pytest.mark.parametrize(
    ("name", "begin", "dur", "end"),
    [
        ("validation", 480, 300, 480),
        ("save_checkpoint", 440, 330, 440),
        ("runEvaluation", 500, 200, 500),
        ("validation", 500, 150, 800),  # less than half of the 400 between the marks
        ("data loading", 420, 370, 800),
        ("latest results", 420, 370, 800),
        ("invalidate cache", 420, 370, 800),
    ],
)
def test_time_between_marks_that_an_evaluation_or_a_checkpoint_fills_by_half_is_not_the_loops(name, begin, dur, end):
    marks = [(i * 100, 100, f"step {i}") for i in range(4)] + [(800 + i * 100, 100, f"step {4 + i}") for i in range(4)]
    view = trace(nvtx=[*marks, (begin, dur, name)])
    assert bounds_of(view)[3:5] == [(300, end), (800, 900)]


def test_the_last_step_of_each_of_two_epochs_is_cut_where_it_ends():
    epochs = [(0, 400, "epoch 1"), (450, 400, "epoch 2")]
    steps = [(base + i * 100, 80, "step") for base in (0, 450) for i in range(4)]
    view = trace(nvtx=epochs + steps)
    assert bounds_of(view)[3:5] == [(300, 380), (450, 550)]
    assert training_steps(view).frame["cut"].to_list() == [False, False, False, True] * 2


def test_the_outer_of_two_step_like_families_is_used():
    ranges = [r for i in range(4) for r in ((i * 100, 100, f"step {i}"), (i * 100 + 10, 50, f"batch {i}"))]
    assert training_steps(trace(nvtx=ranges)).marker == "step #"


def test_the_users_marker_replaces_the_built_in_names():
    ranges = [(i * 100, 100, f"step {i}") for i in range(4)] + [(i * 50, 40, "tick") for i in range(8)]
    view = trace(nvtx=ranges, options=AnalysisOptions(step_marker="^tick$"))
    assert training_steps(view).frame.height == 8


def test_a_marker_that_matches_nothing_gives_no_steps():
    view = trace(nvtx=[(i * 100, 100, f"step {i}") for i in range(4)], options=AnalysisOptions(step_marker="nope"))
    assert training_steps(view).source == "none"


@pytest.mark.parametrize(
    "name", ["step", "Step 12", "iteration", "train", "batch_3", "ProfilerStep#7", "training step 1", "iter 5"]
)
def test_step_like_names_are_recognised(name):
    assert pl.select(pl.lit(name).str.replace_all(r"\d+", "#").str.contains(STEP_NAME)).item()


@pytest.mark.parametrize(
    "name", ["Optimizer.step#Adam.step", "stepwise", "Train epoch", "forward", "aten::batch_norm", "data step loader"]
)
def test_other_names_are_not_steps(name):
    assert not pl.select(pl.lit(name).str.replace_all(r"\d+", "#").str.contains(STEP_NAME)).item()


def test_fewer_than_three_ranges_are_no_loop():
    assert training_steps(trace(nvtx=[(0, 10, "step 0"), (10, 10, "step 1")])).source == "none"


def test_repeating_ranges_without_step_names_are_inferred_as_steps():
    ranges = [
        r
        for i in range(6)
        for r in ((i * 100, 60, "load"), (i * 100 + 60, 15, "forward"), (i * 100 + 75, 20, "backward"))
    ]
    view = trace(nvtx=ranges, kernels=[(i * 100 + 62, 30, "k") for i in range(6)])
    assert training_steps(view).source == "nvtx_cycle"
    assert training_steps(view).confidence == 1.0
    assert bounds_of(view) == [(i * 100, i * 100 + 100) for i in range(5)]


@pytest.mark.parametrize(
    ("name", "source"), [("Trainer.run_one {}", "nvtx"), ("layer {}", "none"), ("Trainer.run_one", "none")]
)
def test_outermost_ranges_that_are_counted_up_are_steps_whatever_their_name(name, source):
    ranges = [r for i in range(5) for r in ((i * 100, 90, name.format(i + 7)), (i * 100 + 10, 20, "forward"))]
    view = trace(nvtx=ranges, kernels=[(i * 100 + 12, 70, "k") for i in range(5)])
    assert training_steps(view).source == source
    if source == "nvtx":
        assert training_steps(view).frame["step"].to_list() == [7, 8, 9, 10, 11]
        assert bounds_of(view)[0] == (0, 100)


def test_counted_ranges_around_little_of_the_device_work_are_no_steps():
    view = trace(nvtx=[(i * 100, 90, f"probe {i}") for i in range(4)], kernels=[(0, 10, "k"), (900, 100, "m")])
    assert training_steps(view).source == "none"


def test_repeating_kernels_are_inferred_as_steps_that_begin_after_the_longest_pause():
    kernels = [k for i in range(6) for k in ((i * 100, 10, "a"), (i * 100 + 12, 10, "b"), (i * 100 + 24, 10, "b"))]
    view = trace(kernels=kernels)
    assert training_steps(view).source == "kernel_cycle"
    assert training_steps(view).marker == "a"
    assert bounds_of(view) == [(i * 100, i * 100 + 100) for i in range(5)]


def test_kernels_without_a_cycle_give_no_steps():
    names = np.random.default_rng(3).integers(0, 40, 200)
    assert training_steps(trace(kernels=[(i * 10, 5, f"k{n}") for i, n in enumerate(names)])).source == "none"


def test_slow_first_steps_are_warm_up():
    assert warmup_steps(np.array([900, 400] + [100] * 20)).tolist() == [True, True] + [False] * 20


def test_of_two_kinds_of_steps_the_slower_ones_are_no_warm_up():
    """Two workers load in turns: every other step waits. More than half are quick, so that the median is quick."""
    assert not warmup_steps(np.array([8, *[8, 232] * 29])).any()


def test_a_slow_step_in_the_middle_is_not_warm_up():
    assert not warmup_steps(np.array([100] * 12 + [900] + [100] * 12)).any()


def test_declared_steps_of_the_trace_win_over_ranges():
    view = trace(steps=[(0, 50, 7), (50, 50, 8), (100, 50, 9)], nvtx=[(i * 10, 10, "step") for i in range(15)])
    assert training_steps(view).source == "trace"
    assert training_steps(view).frame["step"].to_list() == [7, 8, 9]


def test_shifted_and_shuffled_rows_give_the_same_steps():
    ranges = [(i * 100, 90, f"step {i}") for i in range(6)]
    shifted = [(start + 77, dur, name) for start, dur, name in reversed(ranges)]
    lengths = [[end - start for start, end in bounds_of(trace(nvtx=r))] for r in (ranges, shifted)]
    assert lengths[0] == lengths[1]


def test_numbers_fold():
    assert pl.DataFrame({"n": ["op 12, seq = 3"]}).select(fold_numbers("n")).item() == "op #, seq = #"


def test_steps_of_a_process_without_device_work_are_left_out():
    steps = [(i * 100, 100, f"step {i}", {"process_id": p, "thread_id": p}) for p in (0, 1) for i in range(4)]
    view = trace(nvtx=steps, kernels=[(i * 100, 50, "k") for i in range(4)])
    assert training_steps(view).frame["process_id"].unique().to_list() == [0]
    assert list(steady_time(view)) == [0]


def test_where_all_2_steps_would_be_lost_they_are_judged_all_the_same():
    notes = [("profiler-diagnostic", "error", "The profiler: CUPTI failed")]
    view = trace(steps=[(0, 100, 0), (100, 100, 1)], kernels=[(10, 20, "k")], notes=notes)
    assert (training_steps(view).steady.height, count_lost_steps(view)) == (2, 0)


@pytest.mark.parametrize(("kernels", "steady", "lost"), [(3, 2, 2), (1, 0, 4), (0, 4, 0)])
def test_steps_whose_device_work_lay_behind_the_end_of_a_file_are_not_judged(kernels, steady, lost):
    view = trace(
        steps=[(i * 100, 100, i) for i in range(4)],
        kernels=[(i * 100 + 10, 80, "k") for i in range(kernels)],
        notes=[("damaged", "warning", "The file ends inside an event.")],
    )
    assert (training_steps(view).steady.height, count_lost_steps(view)) == (steady, lost)
    report = analyze(view.tables)
    assert "TV901" in [finding.code for finding in report.findings]
    cut_off = "the file is cut off, and device work of its 4 steps is missing" in report.verdict.sentence
    assert cut_off == (not steady)


HOST = [0, 10, 20, 30, 130, 230]
"""Start of each step on the host: the first three only launch, the others wait for space in the queue."""


def ahead(lag=5, lasts=90, **others):
    """Return six steps whose work takes 90 of 100 on the device, from ``lag`` on, launched at their start."""
    ends = [*HOST[1:], 330]
    marks = [(start, end - start, step) for step, (start, end) in enumerate(zip(HOST, ends, strict=True))]
    calls = [(start + 1, 2, "cudaLaunchKernel", {"correlation_id": step}) for step, start in enumerate(HOST)]
    work = [(lag + 100 * step, lasts, "k", {"correlation_id": step}) for step in range(6)]
    return trace(**{"steps": marks, "cuda_api": calls, "kernels": work, **others})


def test_6_steps_last_from_their_first_work_to_that_of_the_next():
    view = ahead()
    assert bounds_of(view) == [*((5 + 100 * step, 105 + 100 * step) for step in range(5)), (505, 595)]
    assert host_time(view)[0].total == 330
    result = StepAnalysis().run(view)
    facts = {fact.key: fact.value for fact in StepAnalysis().describe(result).blocks[0].facts}
    assert (facts["median_ns"], facts["device_median_ns"], facts["host_median_ns"]) == (100, 100, 55)


def test_the_last_step_is_cut_where_the_device_idles_between_steps():
    steps = training_steps(ahead(lasts=60))
    assert steps.frame["cut"].to_list() == [*[False] * 5, True]
    assert steps.frame["end_ns"].to_list()[-2:] == [505, 565]


@pytest.mark.parametrize(
    "others",
    [
        {"kernels": [(start + 2, 5, "k", {"correlation_id": step}) for step, start in enumerate(HOST)]},
        {"kernels": [(5 + 100 * step, 90, "k", {"correlation_id": step}) for step in range(5)]},
        {"kernels": [(5 + 100 * step, 90, "k", {"correlation_id": 5 - step}) for step in range(6)]},
        {"cuda_api": []},
    ],
    ids=["work within its step", "a step without work", "work in another order", "no calls"],
)
def test_6_marks_stay_as_they_are_where_work_does_not_follow_them(others):
    assert bounds_of(ahead(**others))[0] == (0, 10)
    assert training_steps(ahead(**others)).host is None


def test_marks_stay_where_host_and_device_take_equally_long():
    marks = [(100 * step, 100, step) for step in range(6)]
    calls = [(100 * step + 90, 2, "cudaLaunchKernel", {"correlation_id": step}) for step in range(6)]
    work = [(100 * step + 105, 90, "k", {"correlation_id": step}) for step in range(6)]
    assert bounds_of(trace(steps=marks, cuda_api=calls, kernels=work))[0] == (0, 100)


def test_steps_with_the_same_number_stay_those_of_the_host():
    ends = [*HOST[1:], 330]
    marks = [(start, end - start, step % 3) for step, (start, end) in enumerate(zip(HOST, ends, strict=True))]
    assert training_steps(ahead(steps=marks)).host is None


def test_the_cycle_of_the_thread_that_waits_for_others_marks_the_steps():
    """A backward pass of two layers runs on thread 1 while thread 0, whose range covers each step, waits for it."""
    ranges, kernels = [], []
    for step in range(5):
        at = 100 * step
        ranges += [
            (at, 100, f"pass {'abcde'[step]}"),
            (at + 1, 9, "load"),
            (at + 10, 40, "forward"),
            (at + 50, 49, "wait"),
        ]
        for layer in (at + 50, at + 70):
            ranges += [(layer, 4, "mm", {"thread_id": 1}), (layer + 5, 4, "relu", {"thread_id": 1})]
        kernels.append((at + 10, 85, "gemm"))
    threads = [(0, 0, "main"), (1, 0, "autograd")]
    steps = training_steps(trace(nvtx=ranges, kernels=kernels, threads=threads))
    assert (steps.source, steps.thread_id) == ("nvtx_cycle", {0: 0})
    assert steps.frame["start_ns"].to_list() == [1, 101, 201, 301]
