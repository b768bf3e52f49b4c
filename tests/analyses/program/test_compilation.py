"""Compilation: totals, first steps apart, and recompilation in steady steps."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.program.compilation import CompilationAnalysis
from traceviz.report import Grid, Prose

US = 1_000


def steps(durations):
    starts = [sum(durations[:i]) for i in range(len(durations))]
    return [(start, dur, i) for i, (start, dur) in enumerate(zip(starts, durations, strict=True))], starts


def compiling(which, dur, extra=()):
    """Return ten steps of 10 ms; those in ``which`` compile for ``dur`` ns, after 1 ms."""
    marks, starts = steps([10_000 * US] * 10)
    host_ops = [(starts[i] + 1_000 * US, dur, "backend_compile", "compile") for i in which]
    return trace(steps=marks, host_ops=[*host_ops, (0, 1, "a:Mul"), *extra])


def codes(view):
    analysis = CompilationAnalysis()
    return [finding.code for finding in analysis.judge(analysis.run(view))]


def test_compilation_of_the_first_step_is_kept_apart_and_is_no_finding():
    marks, starts = steps([900_000 * US] + [10_000 * US] * 9)
    view = trace(steps=marks, host_ops=[(starts[0], 800_000 * US, "XlaCompile", "compile"), (starts[1], 5, "a:Mul")])
    result = CompilationAnalysis().run(view)
    assert (result.total_ns, result.warmup_ns, result.steady_ns) == (800_000 * US, 800_000 * US, 0)
    assert codes(view) == []


@pytest.mark.parametrize(
    ("which", "dur", "expected"),
    [
        ((4, 7), 500 * US, ["TV401"]),  # 1 ms of 100 ms: exactly 1 %
        ((4, 7), 499 * US, []),
        ((4,), 5_000 * US, []),  # one step is an accident
        ((2, 4, 6, 8), 5_000 * US, ["TV401"]),
        (range(10), 99 * US, []),  # bookkeeping
    ],
)
def test_recompilation_is_found_from_its_thresholds_on(which, dur, expected):
    assert codes(compiling(which, dur)) == expected


def test_the_finding_names_what_compiles_and_costs_the_time_without_device_work():
    view = compiling((3, 5), 2_000 * US, [(35_000 * US, 500 * US, "trace_to_jaxpr", "compile")])
    analysis = CompilationAnalysis()
    (finding,) = analysis.judge(analysis.run(view))
    assert finding.cost_ns == 4_500 * US
    assert '"backend_compile"' in finding.message
    assert "2 of 10 steady steps" in finding.message


def test_compilation_that_a_busy_device_hides_costs_nothing():
    marks, starts = steps([10_000 * US] * 10)
    ops = [(starts[i], 5_000 * US, "backend_compile", "compile") for i in (3, 6)]
    view = trace(steps=marks, host_ops=ops, kernels=[(0, 100_000 * US, "k")])
    result = CompilationAnalysis().run(view)
    assert (result.steady_ns, result.exposed_ns) == (10_000 * US, 0)
    assert codes(view) == []


def test_nested_phases_count_once_and_threads_overlap():
    view = trace(
        host_ops=[
            (0, 100, "compile", "compile"),
            (10, 50, "dce", "compile"),
            (50, 100, "codegen", "compile", {"thread_id": 1}),
        ]
    )
    result = CompilationAnalysis().run(view)
    assert result.by_name.select("name", "total_ns").rows() == [("codegen", 100), ("compile", 100)]
    assert result.total_ns == 150


def test_a_call_that_tensorflow_traced_first_counts_as_compilation():
    marks, starts = steps([10_000 * US] * 10)
    calls = [(start, 4_000 * US, "train_step", "runtime") for start in starts]
    traced = [
        (i, "tf_function_call", {"text": "traced-nonXla" if i in {3, 4} else "notTraced-nonXla"}) for i in range(10)
    ]
    view = trace(steps=marks, host_ops=calls, op_args=traced)
    result = CompilationAnalysis().run(view)
    assert (result.steps_with, result.steady_ns) == (2, 8_000 * US)
    assert codes(view) == ["TV401"]


def test_loading_of_device_code_counts():
    view = trace(
        host_ops=[], cuda_api=[(0, 70, "cuModuleLoadData"), (100, 10, "cuLaunchKernel")], kernels=[(110, 5, "k")]
    )
    assert CompilationAnalysis().run(view).by_name.rows() == [("cuModuleLoadData", 1, 70, 0, 0)]


def test_a_capture_without_compilation_says_so():
    analysis = CompilationAnalysis()
    blocks = analysis.describe(analysis.run(trace(host_ops=[(0, 1, "a:Mul")]))).blocks
    assert blocks[0] == Prose("No tracing, compiling or loading of code was recorded.")
    assert [block.rows for block in blocks if isinstance(block, Grid)] == [()]


@pytest.mark.parametrize(("times", "expected"), [(1, []), (2, ["TV401"])])
def test_2_processes_that_compile_once_each_do_not_compile_again(times, expected):
    marks, starts = steps([10_000 * US] * 10)
    both = [(*mark, {"process_id": rank, "thread_id": rank}) for rank in (0, 1) for mark in marks]
    host_ops = [
        (starts[4 + i] + 1_000 * US, 5_000 * US, "backend_compile", "compile", {"process_id": rank, "thread_id": rank})
        for i in range(times)
        for rank in (0, 1)
    ]
    assert codes(trace(steps=both, host_ops=host_ops)) == expected
