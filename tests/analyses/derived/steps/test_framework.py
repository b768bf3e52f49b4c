"""Steps of framework traces: declared by the host or a device, annotated, or inferred from calls and modules."""

import polars as pl
import pytest

from tests.analyses.builders import trace
from tests.analyses.stacks import sampled
from traceviz.analyses.derived.judged_time import judged_words
from traceviz.analyses.derived.run_parts.parts import run_parts
from traceviz.analyses.derived.steps.framework import best_source
from traceviz.analyses.derived.steps.search import training_steps, training_thread
from traceviz.analyses.input.input_pipeline import InputPipelineAnalysis
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.run import analyze
from traceviz.analyses.steps.steps import StepAnalysis
from traceviz.report import Prose


def bounds_of(view):
    return list(training_steps(view).frame.select("start_ns", "end_ns").iter_rows())


def test_one_declared_step_is_judged_and_said_to_be_the_only_one():
    view = trace(
        steps=[(100, 900, 0, {"marker": "FunctionRun"})],
        host_ops=[(100, 60, "IteratorGetNext:IteratorGetNext", "input")],
        kernels=[(160, 840, "k")],
    )
    assert bounds_of(view) == [(100, 1000)]
    result = InputPipelineAnalysis().run(view)
    assert (result.verdict.value, result.wait_ns, result.step_ns) == ("moderately input-bound", 60, 900)
    texts = [b.text for b in StepAnalysis().describe(StepAnalysis().run(view)).blocks if isinstance(b, Prose)]
    assert texts[-1].startswith("Only one step was captured.")
    assert "Only one step was captured." in analyze(view.tables).verdict.sentence


def test_two_declared_steps_are_two():
    view = trace(steps=[(0, 100, 7), (100, 100, 8)])
    assert training_steps(view).frame["step"].to_list() == [7, 8]
    assert "Only 2 steps were captured." in analyze(view.tables).verdict.sentence


def test_devices_of_one_process_give_one_set_of_steps():
    steps = [(i * 100 + d, 90, i, {"device_id": d, "marker": "Steps"}) for i in range(4) for d in (0, 1)]
    view = trace(steps=steps, kernels=[(i * 100, 90, "fusion") for i in range(4)])
    assert training_steps(view).frame.height == 4
    assert bounds_of(view)[0] == (0, 100)


def test_a_device_knows_its_steps_better_than_the_host_that_runs_ahead():
    device = [(1000 + i * 100, 100, i, {"device_id": 0, "marker": "Steps"}) for i in range(4)]
    host = [(i * 10, 10, i, {"thread_id": 0, "device_id": None, "marker": "train"}) for i in range(4)]
    assert bounds_of(trace(steps=device + host))[0] == (1000, 1100)


def test_of_two_markers_the_one_that_covers_most_time_is_used():
    train = [(i * 100, 100, i, {"marker": "train", "device_id": None}) for i in range(4)]
    small = [(400 + i * 5, 5, i, {"marker": "EagerKernelExecute", "device_id": None}) for i in range(6)]
    assert training_steps(trace(steps=train + small)).marker == "train"


def test_the_thread_of_the_markers_is_the_training_thread():
    steps = [(i * 100, 100, i, {"thread_id": 3}) for i in range(4)]
    busier = [(i, 1, "op", "op", {"thread_id": 1}) for i in range(50)]
    view = trace(steps=steps, host_ops=[*busier, (0, 400, "train", "step", {"thread_id": 3})])
    assert training_thread(view, 0) == 3


@pytest.mark.parametrize(
    ("names", "thread"),
    [({0: "tf_Compute/12", 1: "python3"}, 1), ({0: "tf_Compute/12", 1: None}, 1), ({0: None, 1: None}, 0)],
)
def test_without_markers_pythons_thread_is_the_training_thread_however_busy_the_workers_are(names, thread):
    busy = [(i, 1, "MatMul:MatMul", "op", {"thread_id": 0}) for i in range(50)]
    view = trace(
        host_ops=[*busy, (0, 5, "main", "op", {"thread_id": 1})],
        threads=[(thread, 0, name, {"tid": 900 + thread}) for thread, name in names.items()],
    )
    assert training_thread(view, 0) == thread


def test_calls_of_a_compiled_function_that_repeat_are_steps():
    calls = [(i * 100 + 10, 60, "PjitFunction(update)", "op") for i in range(6)]
    view = trace(host_ops=calls)
    steps = training_steps(view)
    assert (steps.source, steps.marker, steps.confidence) == ("host_cycle", "PjitFunction(update)", 1.0)
    assert bounds_of(view) == [(i * 100 + 10, i * 100 + 110) for i in range(5)]


EACH = [(0, 30, "fetch"), (5, 10, "inner"), (40, 30, "forward"), (75, 20, "backward")]
REPEATS = {
    "a cycle of outermost calls": (
        [(i * 100 + start, dur, name, "runtime") for i in range(6) for start, dur, name in EACH],
        None,
        ("host_cycle", 5),
    ),
    "one small operation": ([(i * 10, 5, "MemoryAllocation", "runtime") for i in range(50)], None, ("none", 0)),
    "calls within a frame of Python": (
        [(0, 1000, "$train.py:1 <module>", "python"), *((i * 100, 60, "PjitFunction(f)", "op") for i in range(6))],
        None,
        ("host_cycle", 5),
    ),
    "annotations with a step-like name": (
        [(i * 100, 100, f"train_step {i}", "runtime") for i in range(5)],
        None,
        ("annotation", 5),
    ),
    "annotations with the user's marker": (
        [(i * 100, 100, "do_it", "runtime") for i in range(5)],
        "^do_it$",
        ("annotation", 5),
    ),
}


@pytest.mark.parametrize(("host_ops", "marker", "found"), REPEATS.values(), ids=REPEATS)
def test_the_source_of_steps_of_repeating_operations(host_ops, marker, found):
    steps = training_steps(trace(host_ops=host_ops, options=AnalysisOptions(step_marker=marker)))
    assert (steps.source, steps.frame.height) == found


def test_repeating_modules_of_the_busiest_device_are_steps():
    modules = [(i * 100 + d, 80 + d, f"jit_f({d}77)", "module", {"device_id": d}) for i in range(6) for d in (0, 1)]
    once = [(0, 1, "jit_init(5)", "module")]
    view = trace(device_ops=once + modules, kernels=[(i * 100, 80, "fusion.1") for i in range(6)])
    assert (training_steps(view).source, training_steps(view).marker) == ("module_cycle", "jit_f")
    assert bounds_of(view) == [(i * 100 + 1, i * 100 + 101) for i in range(5)]


@pytest.mark.parametrize(
    ("name", "ends"), [("validation", [100, 200, 300, 700, 800]), ("forward", [100, 200, 600, 700, 800])]
)
def test_a_range_of_other_work_between_repeating_modules_belongs_to_no_step(name, ends):
    """Modules of 80 ns each 100 ns, and after the third one a range of 300 ns in which another module runs."""
    starts = [0, 100, 200, 600, 700, 800]
    runs = [(start, 80, "jit_f(7)", "module") for start in starts] + [(290, 300, "jit_g(8)", "module")]
    work = [(start, lasts, "fusion.1") for start, lasts, *_ in runs]
    view = trace(device_ops=sorted(runs), kernels=sorted(work), host_ops=[(285, 310, name, "annotation")])
    expected = [end - 15 if name == "validation" and end == 300 else end for end in ends]
    assert bounds_of(view) == list(zip(starts, expected, strict=False))
    assert training_steps(view).source == "module_cycle"


def test_a_marker_with_too_few_annotations_says_how_many():
    view = trace(host_ops=[(0, 10, "do_it", "runtime")], options=AnalysisOptions(step_marker="do_it"))
    assert StepAnalysis().run(view).reason.startswith("--step-marker 'do_it' matches 1 ranges")


def test_first_steps_that_compile_are_warm_up():
    steps = [(i * 100, 100, i) for i in range(6)]
    view = trace(steps=steps, host_ops=[(5, 150, "XlaCompile", "compile"), (450, 5, "XlaCompile", "compile")])
    assert training_steps(view).frame["warmup"].to_list() == [True, True, False, False, False, False]


def test_where_every_step_compiles_none_is_warm_up():
    steps = [(i * 100, 100, i) for i in range(3)]
    view = trace(steps=steps, host_ops=[(i * 100, 50, "XlaCompile", "compile") for i in range(3)])
    assert not training_steps(view).frame["warmup"].any()


@pytest.mark.parametrize(
    ("framework", "advice"),
    [
        ("TensorFlow 2.21", 'Trace("train", step_num=i, _r=1)'),
        ("JAX", "jax.profiler.StepTraceAnnotation"),
        (None, "jax.profiler.StepTraceAnnotation"),
    ],
)
def test_without_steps_the_report_says_how_this_framework_marks_them(framework, advice):
    view = trace(host_ops=[(0, 5, "op", "op")], run={"framework": framework})
    assert advice in StepAnalysis().run(view).reason
    report = analyze(view.tables)
    assert report.verdict.code == "cannot-judge"
    assert advice in str(report.section("input_pipeline"))


MS = 1_000_000
ROUND = "boost.py:34 main > boost.py:14 objective"


def boosting(*, rounds=20, more=(), **tables):
    phases = [(n * 100 * MS, 90 * MS, "step", "found_update Booster.update", {"number": n}) for n in range(rounds)]
    stacks = [(n * 100 * MS, 100 * MS, ROUND, {"samples": 10}) for n in range(rounds)]
    return trace(span_ns=rounds * 100 * MS, phases=[*more, *phases], **sampled(*stacks), **tables)


def test_of_20_rounds_are_the_steps_of_the_trace_and_of_its_run():
    view = boosting()
    steps = training_steps(view)
    assert (steps.source, steps.frame.height, judged_words(view)) == ("counted", 20, "steps of the run")
    assert run_parts(view).steps == 20


def test_a_report_with_20_steps_does_not_say_that_there_are_none():
    report = analyze(boosting().tables)
    assert "no steps were found" not in report.verdict.sentence
    assert "Python: 100.0 % of the steps of the run is Python itself, mostly in objective" in report.verdict.sentence


@pytest.mark.parametrize(("rounds", "source"), [(2, "none"), (3, "counted")])
def test_needs_three(rounds, source):
    assert training_steps(boosting(rounds=rounds)).source == source


def test_of_a_run_of_which_a_profiler_recorded_operators_are_not_those_of_the_whole_run():
    assert training_steps(boosting(host_ops=[(0, MS, "aten::mm", "op")])).source == "none"


def test_5_calls_of_a_model_before_its_optimizer_is_found_are_no_steps_of_their_own():
    calls = [(n * MS, MS, "step", "torch_call", {"number": n}) for n in range(-5, 0)]
    view = boosting(more=calls)
    assert training_steps(view).frame.height == run_parts(view).steps == 20


def test_the_source_that_sees_learning_is_better_than_one_with_50_repeats():
    noted = pl.DataFrame({"name": ["torch_call"] * 50 + ["torch_optimizer"] * 11})
    assert best_source(noted) == ("torch_optimizer", False)
