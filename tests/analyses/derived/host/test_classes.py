"""Classes of step time in framework traces: input of an executor, a TPU's infeed, programs that run on the host."""

import polars as pl
import pytest

from tests.analyses.builders import tables, trace
from tests.analyses.input.test_tfdata import sequential
from tests.analyses.pipelines import training
from traceviz.analyses.derived.host.classes import host_classes, measured
from traceviz.analyses.derived.recorded.xla_ops import role_expr
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.input.input_pipeline import InputPipelineAnalysis
from traceviz.analyses.options import AnalysisOptions
from traceviz.analyses.registry import ENTRIES
from traceviz.analyses.run import analyze
from traceviz.core.arrays.intervals import union_all
from traceviz.report import Skipped
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

ANALYSIS = InputPipelineAnalysis()
STEPS = [(i * 1000, 1000, i, {"group_id": i, "thread_id": 0, "marker": "train"}) for i in range(4)]
TPU = [(0, "v5e", {"kind": "tpu", "ordinal": 0})]


def waits(view):
    return host_classes(view)[0].input_wait


def markers():
    return [(i * 1000, 1000, "train", "step", {"group_id": i}) for i in range(4)]


def test_the_executor_takes_the_batch_on_behalf_of_the_step():
    taken = [(i * 1000 + 100, 300, "IteratorGetNext", "input", {"thread_id": 5, "group_id": i}) for i in range(4)]
    view = trace(steps=STEPS, host_ops=markers() + taken, kernels=[(i * 1000 + 350, 600, "k") for i in range(4)])
    times = host_classes(view)[0].sets
    assert times["input_wait"].total == 4 * 250
    assert ANALYSIS.run(view).input_share == 0.25


def test_without_groups_any_thread_may_take_the_batch():
    taken = [(i * 1000, 300, "IteratorGetNext", "input", {"thread_id": 5}) for i in range(4)]
    assert waits(trace(steps=[(i * 1000, 1000, i) for i in range(4)], host_ops=taken)).total == 1200


def test_a_batch_taken_between_two_markers_on_the_training_thread_counts():
    steps = [(i * 1000 + 400, 600, i, {"thread_id": 0, "group_id": i}) for i in range(4)]
    taken = [(i * 1000, 400, "IteratorGetNext", "input", {"group_id": None}) for i in range(4)]
    computed = [(i * 1000 + 400, 600, "train", "step", {"group_id": i}) for i in range(4)]
    result = ANALYSIS.run(trace(steps=steps, host_ops=taken + computed))
    assert (result.step_ns, result.wait_ns) == (3000, 1200)


def test_annotations_of_the_program_that_are_named_like_loading_count():
    loads = [(i * 1000, 400, "data loading", "runtime") for i in range(4)]
    other = [(i * 1000 + 400, 100, "Handle input event recording", "runtime") for i in range(4)]
    assert waits(trace(steps=STEPS, host_ops=markers() + loads + other)).total == 1600


def test_the_users_input_range_may_be_an_annotation():
    host_ops = [(i * 1000, 400, "grab", "runtime") for i in range(4)]
    view = trace(steps=STEPS, host_ops=markers() + host_ops, options=AnalysisOptions(input_range="^grab$"))
    result = ANALYSIS.run(view)
    assert (result.verdict, result.wait_ns, result.stages[0].name) == ("highly input-bound", 1600, "grab")


def test_a_program_on_the_host_waits_in_earnest_and_has_a_best_case():
    taken = [(i * 1000, 500, "IteratorGetNext", "input", {"group_id": i}) for i in range(4)]
    result = ANALYSIS.run(trace(steps=STEPS, host_ops=markers() + taken))
    assert (result.verdict, result.caveat, result.best_case_speedup) == ("highly input-bound", "", 2.0)
    heading = [c.label for c in ANALYSIS.describe(result).blocks[1].columns if c.name == "self_ns"]
    assert heading == ["Steps waited"]


def test_the_best_case_is_the_median_step_without_its_wait():
    waited = (900, 500, 400, 500)
    taken = [(i * 1000, dur, "IteratorGetNext", "input", {"group_id": i}) for i, dur in enumerate(waited)]
    assert ANALYSIS.run(trace(steps=STEPS, host_ops=markers() + taken)).best_case_step_ns == 500


def test_the_share_is_split_into_waiting_and_copying_where_both_occur():
    taken = [(i * 1000, 200, "IteratorGetNext", "input", {"group_id": i}) for i in range(4)]
    copies = [(i * 1000 + 200, 100, "h2d", "pinned", "device", 1) for i in range(4)]
    view = trace(steps=STEPS, host_ops=markers() + taken, memcpy=copies, kernels=[(900, 100, "k")])
    facts = {fact.key: fact.value for fact in ANALYSIS.describe(ANALYSIS.run(view)).blocks[0].facts}
    assert (facts["waiting_share"], facts["copy_share"], facts["input_share"]) == (0.2, 0.1, 0.3)


def test_a_program_of_a_device_that_was_not_recorded_has_only_an_upper_bound():
    taken = [(i * 1000, 500, "IteratorGetNext", "input", {"group_id": i}) for i in range(4)]
    result = ANALYSIS.run(trace(steps=STEPS, host_ops=markers() + taken, cuda_api=[(900, 5, "cuLaunchKernel")]))
    assert (result.caveat[:17], result.best_case_speedup) == ("1 launch calls we", None)


def test_a_host_program_whose_input_cannot_be_seen_is_not_judged_and_told_how_to_show_it():
    result = ANALYSIS.run(trace(steps=STEPS, host_ops=markers()))
    assert result.verdict == "cannot judge"
    assert 'jax.profiler.TraceAnnotation("data loading")' in result.remedy


@pytest.mark.parametrize(("framework", "absent"), [("JAX", "tf.profiler"), ("TensorFlow", "jax.profiler")])
def test_how_to_show_the_input_is_said_for_the_framework_of_the_trace(framework, absent):
    remedy = ANALYSIS.run(trace(steps=STEPS, host_ops=markers(), run={"framework": framework})).remedy
    assert ("data loading" in remedy, absent in remedy) == (True, False)


def test_a_host_program_that_takes_batches_at_once_is_not_input_bound():
    taken = [(i * 1000, 20, "IteratorGetNext", "input", {"group_id": i}) for i in range(4)]
    assert ANALYSIS.run(trace(steps=STEPS, host_ops=markers() + taken)).verdict == "not input-bound"


def test_a_tpu_that_waits_for_its_infeed_waits_for_input_and_is_idle():
    kernels = [
        kernel
        for i in range(4)
        for kernel in (
            (i * 1000, 300, "infeed.5", {"category": "infeed"}),
            (i * 1000 + 300, 500, "fusion.2", {"category": "loop fusion"}),
            (i * 1000 + 800, 100, "all-reduce.1", {"category": "all-reduce"}),
            (i * 1000 + 900, 50, "outfeed.3", {"category": "outfeed"}),
            (i * 1000 + 950, 50, "copy-done.1", {"category": "copy-done"}),
        )
    ]
    steps = [(i * 1000, 1000, i, {"marker": "Steps"}) for i in range(4)]
    view = trace(steps=steps, kernels=kernels, devices=TPU)
    totals = {key: owned.total // 4 for key, owned in host_classes(view)[0].sets.items() if owned.total}
    expected = {"input_wait": 300, "device_compute": 500, "communication": 100, "copy_d2h": 50, "other_device": 50}
    assert totals == expected
    assert union_all(view.device_busy.values()).total == 4 * 700
    assert ANALYSIS.run(view).verdict == "highly input-bound"


@pytest.mark.parametrize(
    ("name", "category", "role"),
    [
        ("infeed-done.1", None, "infeed"),
        ("fusion.3", "convolution fusion", "compute"),
        ("all-gather-start.2", None, "communication"),
        ("x", "collective-permute", "communication"),
        ("copy-start.2", "copy-start", "transfer"),
        ("copy.4", "data formatting", "compute"),
        ("recv-done.1", None, "transfer"),
    ],
)
def test_xla_operations_have_roles(name, category, role):
    frame = pl.DataFrame({"name": [name], "category": [category]}, schema={"name": pl.String, "category": pl.String})
    assert frame.select(role_expr()).item() == role


def test_compiling_is_a_class_of_its_own():
    view = trace(steps=STEPS, host_ops=[*markers(), (2100, 200, "XlaCompile", "compile")])
    assert host_classes(view)[0].sets["compilation"].total == 200


@pytest.mark.parametrize(
    ("name", "key"), [("TransferToDevice", "copy_h2d"), ("MemcpyD2H", "copy_d2h"), ("ToLiteral", "copy_d2h")]
)
def test_transfers_that_only_the_host_tells_of_count_where_no_device_was_recorded(name, key):
    host_ops = [*markers(), (2100, 200, name, "transfer")]
    assert host_classes(trace(steps=STEPS, host_ops=host_ops))[0].sets[key].total == 200
    with_device = trace(steps=STEPS, host_ops=host_ops, kernels=[(0, 10, "k")])
    assert host_classes(with_device)[0].sets[key].total == 0


def test_what_a_framework_trace_could_see_is_said():
    host_ops = [*markers(), (0, 10, "Iterator::Root", "pipeline", {"thread_id": 4})]
    assert measured(trace(steps=STEPS, host_ops=host_ops)) == {"host_compute", "compilation", "input_wait"}
    assert "input_wait" not in measured(trace(steps=STEPS, host_ops=markers()))


def test_the_verdict_names_the_stage_of_tf_data():
    sentence = analyze(trace(**training(5, sequential)).tables).verdict.sentence
    assert sentence == (
        "No device work was captured: nothing of a device was recorded. Highly input-bound: 70.0 % of steady step time "
        "waits for input, mostly for Map (tf.data); at best 3.3× as fast without the wait. Also: unexplained (30.0 %)."
    )


def test_ranks_on_several_hosts_are_judged_together():
    host_ops, steps = [], []
    for process, wait in ((0, 400), (1, 200)):
        own = {"process_id": process, "thread_id": process}
        for i in range(4):
            steps.append((i * 1000, 1000, i, {**own, "marker": "train", "group_id": 10 * process + i}))
            host_ops.append((i * 1000, wait, "IteratorGetNext", "input", {**own, "group_id": 10 * process + i}))
    result = ANALYSIS.run(trace(steps=steps, host_ops=host_ops))
    assert (result.step_ns, result.wait_ns, result.input_share) == (8000, 2400, 0.3)
    assert [(stage.name, stage.calls, stage.self_ns) for stage in result.stages] == [("IteratorGetNext", 8, 2400)]


FRAMEWORK_TABLES = {"steps", "host_ops", "op_args", "kernels", "device_ops", "memcpy", "cuda_api"}
OF_FRAMEWORK_TRACES = [entry for entry in ENTRIES if FRAMEWORK_TABLES.issuperset(entry.needs)]


def test_most_analyses_have_what_they_need_in_a_framework_trace():
    assert {entry.slug for entry in ENTRIES} - {entry.slug for entry in OF_FRAMEWORK_TRACES} == {
        *("run", "totals", "memory", "host", "ranges", "os_calls", "quality")
    }


@pytest.mark.parametrize("entry", OF_FRAMEWORK_TRACES, ids=lambda entry: entry.slug)
def test_every_analysis_of_a_framework_trace_reads_only_the_tables_that_it_declares(entry):
    kernels = [(i * 1000 + 700, 300, "fusion", {"op": "MatMul:MatMul", "group_id": i}) for i in range(5)]
    modules = [(i * 1000 + 700, 300, "jit_f(7)", "module") for i in range(5)]
    whole = tables(**training(5, sequential, kernels=kernels, device_ops=modules, memcpy=[], cuda_api=[]))
    assert entry.missing(frozenset(whole)) == ()
    analysis, declared = entry.load(), {*entry.tables, *schema.REQUIRED}
    reduced = TraceTables({name: whole.arrow(name) for name in whole if name in declared})
    outcomes = [analysis.run(TraceView(part)) for part in (whole, reduced)]
    texts = [repr(o if isinstance(o, Skipped) else analysis.describe(o)) for o in outcomes]
    assert texts[0] == texts[1] or analysis.slug == "capture"


@pytest.mark.parametrize("name", ["$api.py:3154 block_until_ready", "CommonPjRtBuffer::Await", "BlockHostUntilDone"])
def test_a_wait_of_the_framework_is_synchronisation_but_for_what_is_launched_meanwhile(name):
    waits = [(100, 400, name, "python", {"thread_id": 0})]
    launches = [(150, 50, "hipModuleLaunchKernel", {"thread_id": 1})]  # a pool of threads launches while it waits
    view = trace(host_ops=waits, kernels=[(300, 100, "k")], cuda_api=launches, span_ns=600)
    sets = host_classes(view)[0].sets
    assert (sets["synchronisation"].total, sets["kernel_launch"].total) == (400 - 100 - 50, 50)
    assert sets["host_compute"].total == 600 - 400


def test_where_the_host_is_the_device_a_wait_of_the_framework_is_its_work():
    view = trace(host_ops=[(100, 400, "CommonPjRtBuffer::Await", "runtime")], span_ns=600)
    assert host_classes(view)[0].sets["synchronisation"].total == 0
