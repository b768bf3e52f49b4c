"""Step time by the classes of xprof and TensorBoard: which events count, as what, in which steps."""

import json

import pytest

from tests.analyses.builders import tables, trace
from traceviz import api
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.options import BASES, OURS, AnalysisOptions
from traceviz.analyses.run import analyze
from traceviz.analyses.steps.bases.kineto import KINETO
from traceviz.analyses.steps.bases.xprof import CLASSES, XPROF_RULES, xprof_steps
from traceviz.analyses.steps.breakdown import BreakdownAnalysis
from traceviz.core.errors import UsageError
from traceviz.report import Skipped
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select

MS = 1_000_000


def op(start, dur, name, category="runtime", group=0, **more):
    return (start, dur, name, category, {"group_id": group, **more})


def marker(start, dur, group=0, name="train"):
    return op(start, dur, name, "step", group)


def kernel(start, dur, name="sgemm", group=0, correlation=1, **more):
    return (start, dur, name, {"group_id": group, "correlation_id": correlation, **more})


def steps(basis, **literals):
    return xprof_steps(trace(**literals), XPROF_RULES[basis]).frame.to_dicts()


def classes(basis, **literals):
    """Step time and classes with time, of the only step."""
    (step,) = steps(basis, **literals)
    return {key: step[key] for key in ("step_ns", *(c.key for c in CLASSES)) if step[key]}


GPU_STEP = {
    "host_ops": [marker(0, 100), op(0, 30, "IteratorGetNextOp::DoCompute"), op(30, 20, "ExecutorState::Process")],
    "cuda_api": [(60, 5, "cuLaunchKernel", {"group_id": 0})],
    "kernels": [kernel(50, 10), kernel(70, 20), kernel(90, 5, "ncclDevKernel_AllReduce")],
    "memcpy": [(40, 4, "h2d", "pinned", "device", 64, {"group_id": 0, "correlation_id": 2})],
    "memset": [],
}


def test_xprof_leaves_out_the_host_where_there_is_a_gpu():
    assert classes("xprof", **GPU_STEP) == {
        "step_ns": 55,
        "device_compute": 34,  # 10 + 20 and the copy's 4
        "device_collectives": 5,
        "other": 16,
    }


def test_tensorboard_merges_host_and_device():
    assert classes("tensorboard", **GPU_STEP) == {
        "step_ns": 100,
        "infeed": 30,
        "kernel_launch": 10 + 6 + 5,  # the executor up to the copy and after it, and the launch
        "device_compute": 34,
        "device_collectives": 5,
        "other": 10,
    }


@pytest.mark.parametrize(
    ("name", "category", "xprof", "tensorboard"),
    [
        ("IteratorGetNext", "runtime", "infeed", "infeed"),
        ("iteratorgetnextasoptional:IteratorGetNextAsOptional", "runtime", "infeed", "infeed"),
        ("my_loader", "input", "infeed", "host_compute"),
        ("Iterator::Prefetch", "pipeline", "host_compute", "host_compute"),
        ("ExecutorState::Process", "runtime", "host_compute", "host_compute"),
        ("infeed/enqueue:InfeedEnqueueTuple", "op", "infeed", "infeed"),
        ("MEMCPYHtoD", "transfer", "infeed", "infeed"),
        ("MEMCPYHtoH", "transfer", "host_to_host", "host_to_host"),
        ("MemcpyH2D", "transfer", "host_compute", "host_compute"),
        ("dense/MatMul:MatMul", "op", "host_compute", "host_compute"),
        ("Profiled batch", "step", "host_compute", "host_compute"),
        ("EagerLocalExecute: AddV2", "runtime", "other", "other"),
        ("FunctionRun", "runtime", "other", "other"),
        ("train/loss", "runtime", "host_compute", "host_compute"),
    ],
)
def test_host_events_without_a_gpu_are_classified_by_name(name, category, xprof, tensorboard):
    for basis, key in (("xprof", xprof), ("tensorboard", tensorboard)):
        times = classes(basis, host_ops=[marker(0, 100), op(0, 1, "x"), op(10, 40, name, category)])
        assert times == {"step_ns": 100, **dict.fromkeys((key,), 40)} | (
            {"host_compute": 41, "other": 59}
            if key == "host_compute"
            else {"host_compute": 1, "other": 99}
            if key == "other"
            else {"host_compute": 1, "other": 59}
        )


def test_events_outside_the_step_time_do_not_count():
    times = classes("xprof", host_ops=[marker(10, 50), op(0, 30, "work"), op(55, 30, "work")])
    assert times == {"step_ns": 50, "host_compute": 25, "other": 25}


def test_of_several_markers_the_longest_is_the_step():
    both = [marker(0, 40), marker(0, 60, name="TraceContext"), op(0, 10, "work")]
    assert classes("xprof", host_ops=both)["step_ns"] == 60


def test_a_step_without_compute_is_left_out():
    assert steps("xprof", host_ops=[marker(0, 40), op(0, 10, "IteratorGetNext")]) == []
    only_nccl = {**GPU_STEP, "kernels": [kernel(0, 9, "ncclKernel")], "memcpy": []}
    assert steps("xprof", **only_nccl) == []


def test_a_gpu_step_is_the_longest_run_of_one_group_on_one_device():
    work = [kernel(0, 10), kernel(20, 10, group=1), kernel(30, 10), kernel(45, 5), kernel(60, 4, group=1)]
    rows = steps("xprof", kernels=work)
    assert [(step["step"], step["step_ns"], step["device_compute"]) for step in rows] == [("0", 20, 15), ("1", 10, 10)]


def test_a_host_marker_counts_where_it_encloses_the_device_run():
    inside = {"kernels": [kernel(20, 30)]}
    assert classes("tensorboard", host_ops=[marker(0, 100)], **inside)["step_ns"] == 100
    assert classes("tensorboard", host_ops=[marker(0, 40)], **inside)["step_ns"] == 30


def test_host_groups_that_no_device_worked_for_are_left_out():
    rows = steps("tensorboard", kernels=[kernel(0, 10)], host_ops=[marker(20, 10, 1), op(20, 5, "work", group=1)])
    assert [step["group_id"] for step in rows] == [0]


def test_device_work_without_a_known_launch_shapes_the_step_but_is_no_compute():
    assert classes("xprof", kernels=[kernel(0, 10), kernel(10, 10, correlation=None)]) == {
        "step_ns": 20,
        "device_compute": 10,
        "other": 10,
    }


@pytest.mark.parametrize(("count", "kept"), [(5, 5), (6, 4), (9, 7)])
def test_xprof_drops_first_and_last_of_more_than_five_steps(count, kept):
    ops = [row for i in range(count) for row in (marker(100 * i, 50, i), op(100 * i, 10, "work", group=i))]
    assert len(steps("xprof", host_ops=ops)) == kept
    assert len(steps("tensorboard", host_ops=ops)) == count


def test_steps_carry_the_names_of_their_markers():
    rows = steps(
        "xprof",
        host_ops=[marker(0, 50, 4), op(0, 10, "work", group=4)],
        steps=[(0, 50, 7, {"name": "train 7", "marker": "train", "group_id": 4, "device_id": None})],
    )
    assert [(step["step"], step["group_id"]) for step in rows] == [("train 7", 4)]


def test_an_instant_turns_the_idle_time_after_it_into_host_compute():
    times = classes("xprof", host_ops=[marker(0, 100), op(10, 5, "work"), op(40, 0, "instant"), op(90, 5, "work")])
    assert times == {"step_ns": 100, "host_compute": 5 + 55, "other": 40}


def test_classes_add_up_to_the_step_and_rows_to_the_total():
    (step,) = steps("tensorboard", **GPU_STEP)
    assert sum(step[c.key] for c in CLASSES) == step["step_ns"] == 100


def report(basis, **literals):
    return analyze(tables(**literals), AnalysisOptions(basis=basis), ["breakdown"])


def test_the_section_says_whose_rules_these_are_and_what_they_conclude():
    document = report("tensorboard", **GPU_STEP)
    assert (document.fact("breakdown", "basis"), document.fact("breakdown", "step_ns")) == ("tensorboard", 100)
    assert document.fact("breakdown", "input_share") == 0.3
    rows = {row["class"]: row["total_ns"] for row in document.rows("breakdown")}
    assert (rows["infeed"], rows["device_compute"], sum(rows.values())) == (30, 34, 100)
    text = " ".join(api.to_text(document, "terminal").split())
    assert "rules of TensorBoard's profiler plugin, as of TensorFlow 2.12, not ours: a step begins with" in text
    assert "Your program is HIGHLY input-bound because 30.0% of the total step time sampled is waiting" in text


def test_the_json_report_has_one_row_per_step():
    document = json.loads(api.to_text(report("xprof", **GPU_STEP), "json"))
    (section,) = document["sections"]
    per_step = next(block for block in section["blocks"] if block.get("title") == "Steps")["rows"]
    assert [(row["stepnum"], row["step_ns"], row["device_compute_ns"], row["other_ns"]) for row in per_step] == [
        ("0", 55, 34, 16)
    ]


def test_the_other_sections_stay_ours():
    report = analyze(tables(**GPU_STEP, span_ns=100), AnalysisOptions(basis="xprof"), ["kernels", "breakdown"])
    ours = analyze(tables(**GPU_STEP, span_ns=100), None, ["kernels"])
    assert report.section("kernels") == ours.section("kernels")
    assert report.fact("kernels", "calls") == 3


def skipped(basis, **literals):
    outcome = BreakdownAnalysis().run(TraceView(tables(**literals), AnalysisOptions(basis=basis)))
    assert isinstance(outcome, Skipped)
    return outcome.reason


@pytest.mark.parametrize("basis", ["xprof", "tensorboard"])
def test_a_trace_without_groups_is_skipped_with_a_reason(basis):
    reason = skipped(basis, kernels=[(0, 10, "k")], nvtx=[(0, 100, f"step {i}") for i in range(4)])
    assert "links no events to such steps; use --basis traceviz" in reason
    assert reason.startswith(f"{basis} breaks down")


def test_a_tpu_is_skipped_with_a_reason():
    devices = [(0, "TPU v4", {"kind": "tpu"})]
    assert "TPU" in skipped("xprof", devices=devices, kernels=[kernel(0, 10)])


def test_no_steps_is_said_in_the_words_of_the_original():
    assert "“No step time measured." in skipped("xprof", host_ops=[op(0, 10, "work")])


UNKNOWN_MARKERS = [("steps-from-annotations", "info", "Steps come from “Profiled batch”.")]


def test_steps_that_the_original_does_not_know_are_not_passed_off_as_its_own():
    ops = [marker(0, 50), op(0, 10, "work")]
    assert "does not know what marks the steps" in skipped("xprof", host_ops=ops, notes=UNKNOWN_MARKERS)
    assert len(steps("xprof", host_ops=ops)) == 1


def test_with_a_gpu_such_steps_are_shown_with_a_caveat():
    document = report("xprof", **GPU_STEP, notes=UNKNOWN_MARKERS)
    assert document.fact("breakdown", "step_ns") == 55
    assert "may divide them otherwise" in " ".join(api.to_text(document, "terminal").split())
    assert "may divide them otherwise" not in " ".join(api.to_text(report("xprof", **GPU_STEP), "terminal").split())


def test_an_unknown_basis_lists_the_known_ones():
    with pytest.raises(UsageError, match=r"no basis .vtune.\. Known: kineto, tensorboard, traceviz, xprof"):
        report("vtune", **GPU_STEP)


@pytest.mark.parametrize("basis", ["xprof", "tensorboard"])
def test_steps_that_a_time_window_cut_are_left_out_and_2_whole_ones_stay(basis):
    numbers = range(4)
    whole = tables(
        host_ops=[event for i in numbers for event in (marker(1000 * i, 1000, i), op(1000 * i, 900, "work", group=i))],
        steps=[(1000 * i, 1000, i, {"marker": "train", "group_id": i, "name": f"train {i}"}) for i in numbers],
        devices=[],
    )
    view = TraceView(select(whole, Selection(start_ns=500, end_ns=3500)))
    frame = xprof_steps(view, XPROF_RULES[basis]).frame
    assert frame.select("step", "step_ns").rows() == [("train 1", 1000), ("train 2", 1000)]


def test_the_option_knows_every_basis():
    assert set(BASES) == {OURS, *XPROF_RULES, KINETO}
