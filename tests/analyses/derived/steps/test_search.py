"""Steps: declared by ranges, inferred from repeating ranges or kernels, warm-up kept apart."""

import numpy as np
import polars as pl
import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.judged_time import steady_time
from traceviz.analyses.derived.steps.search import count_lost_steps, training_steps
from traceviz.analyses.derived.steps.steps import STEP_NAME, fold_numbers, warmup_steps
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.run import analyze


def bounds_of(view):
    return list(training_steps(view).frame.select("start_ns", "end_ns").iter_rows())


def test_ranges_with_a_running_number_are_steps_and_end_where_they_end():
    view = trace(nvtx=[(0, 100, "step 0"), (100, 100, "step 1"), (200, 110, "step 2")])
    assert training_steps(view).source == "nvtx"
    assert training_steps(view).confidence == 1.0
    assert bounds_of(view) == [(0, 100), (100, 200), (200, 310)]
    assert training_steps(view).frame["step"].to_list() == [0, 1, 2]


def test_time_between_step_ranges_belongs_to_the_later_step():
    view = trace(nvtx=[(90, 10, "batch 0"), (190, 10, "batch 1"), (290, 10, "batch 2"), (390, 10, "batch 3")])
    assert bounds_of(view) == [(90, 100), (100, 200), (200, 300), (300, 400)]


def test_a_first_step_without_the_wait_that_the_others_include_is_warm_up():
    view = trace(nvtx=[(90, 10, "batch 0"), (190, 10, "batch 1"), (290, 10, "batch 2"), (390, 10, "batch 3")])
    assert training_steps(view).frame["warmup"].to_list() == [True, False, False, False]


def test_a_pause_far_longer_than_the_others_is_in_no_step():
    ranges = [(i * 100, 99, f"step {i}") for i in range(5)] + [
        (50_000 + i * 100, 99, f"step {5 + i}") for i in range(5)
    ]
    view = trace(nvtx=ranges)
    assert training_steps(view).frame["start_ns"].to_list()[5] == 50_000
    assert sum(end - start for start, end in bounds_of(view)) == 2 * (99 + 4 * 100)


def test_steps_of_two_epochs_do_not_include_what_lies_between_the_epochs():
    epochs = [(0, 400, "epoch 1"), (450, 400, "epoch 2")]
    steps = [(base + i * 100, 80, "step") for base in (0, 450) for i in range(4)]
    view = trace(nvtx=epochs + steps)
    assert bounds_of(view)[4] == (450, 530)
    assert bounds_of(view)[5] == (530, 630)


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
