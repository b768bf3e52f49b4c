"""Framework ops: self times, device times by op, eager execution and its threshold."""

import pytest

from tests.analyses import sections
from tests.analyses.builders import trace
from traceviz.analyses.derived.calls.op_names import parsed_ops
from traceviz.analyses.program.framework_ops import FrameworkOpsAnalysis
from traceviz.report import Grid, Skipped


def grid(view, number=0):
    return sections.grids(FrameworkOpsAnalysis(), view)[number]


def facts(view):
    return sections.facts(FrameworkOpsAnalysis(), view)


@pytest.mark.parametrize(
    ("text", "op", "kind"),
    [
        ("sequential/dense/MatMul:MatMul", "sequential/dense/MatMul", "MatMul"),
        ("IteratorGetNext/_3:_Send#from=a,to=b#::#edge_name=e#", "IteratorGetNext/_3", "_Send"),
        ("PjitFunction(train_step)", "train_step", "PjitFunction"),
        ("while.3::body.1::broadcast_add_fusion.12", "broadcast_add_fusion.12", "fusion"),
        ("dot.7", "dot.7", "dot"),
        ("jit(f)/jit(main)/dot_general", "jit(f)/jit(main)/dot_general", "dot_general"),
        ("jit(f)/jit(main)/dot_general:", "jit(f)/jit(main)/dot_general", "dot_general"),
        ("wrapped_tanh", "wrapped_tanh", "wrapped_tanh"),
    ],
)
def test_the_name_and_type_of_an_op_are_read_from_its_text(text, op, kind):
    import polars as pl

    assert parsed_ops(pl.Series([text])).row(0) == (text, op, kind)


def test_text_that_is_only_arguments_names_no_op():
    import polars as pl

    assert parsed_ops(pl.Series(["#edge_name=copy#", None, "a:B"]))["text"].to_list() == ["a:B"]


def test_self_time_leaves_out_ops_and_iterators_inside_but_not_the_runtime():
    view = trace(
        host_ops=[
            (0, 100, "outer:MatMul"),
            (10, 20, "inner:Cast"),
            (40, 30, "Iterator::Root", "pipeline"),
            (80, 10, "ExecutorState::Process", "runtime"),
            (50, 5, "elsewhere:Cast", "op", {"thread_id": 1}),
        ]
    )
    rows = {row["type"]: row for row in grid(view)}
    assert (rows["MatMul"]["host_ns"], rows["MatMul"]["host_self_ns"]) == (100, 50)
    assert (rows["Cast"]["calls"], rows["Cast"]["host_self_ns"], rows["Cast"]["ops"]) == (2, 25, 2)


def test_device_time_is_that_of_kernels_copies_and_fills_that_name_the_op():
    view = trace(
        host_ops=[(0, 5, "a/MatMul:MatMul")],
        kernels=[(0, 30, "k", {"op": "a/MatMul:MatMul"}), (40, 10, "k2", {"op": "b/Cast:Cast"}), (60, 7, "k3")],
        memcpy=[(80, 20, "h2d", "pinned", "device", 8, {"op": "a/MatMul:MatMul"})],
        memset=[(110, 40, 8, {"op": "c:Zero"})],
    )
    rows = [(row["op"], row["device_ns"], row["share_of_device_op_time"]) for row in grid(view, 1)]
    assert rows == [("a/MatMul", 50, 0.5), ("c", 40, 0.4), ("b/Cast", 10, 0.1)]
    assert facts(view)["device_ns"] == 100


def test_an_eager_call_counts_as_the_op_only_where_no_op_is_recorded_inside():
    view = trace(
        host_ops=[
            (0, 10, "EagerExecute: Mul", "runtime"),
            (1, 8, "EagerLocalExecute: Mul", "runtime"),
            (20, 10, "EagerLocalExecute: AddV2", "runtime"),
            (22, 5, "add:AddV2"),
            (40, 50, "EagerLocalExecute: __inference_step_7", "runtime"),
            (45, 20, "in_function:Relu"),
        ]
    )
    rows = {row["op"]: (row["calls"], row["host_ns"], row["eager_share"]) for row in grid(view, 1)}
    assert rows == {"Mul": (1, 8, 1.0), "add": (1, 5, 1.0), "in_function": (1, 20, 0.0)}
    assert facts(view)["eager_share"] == pytest.approx(2 / 3)


def test_an_op_directly_inside_one_of_its_name_is_the_same_call():
    view = trace(host_ops=[(0, 100, "PjitFunction(f)"), (5, 90, "PjitFunction(f)"), (20, 30, "PjitFunction(g)")])
    rows = {row["op"]: (row["calls"], row["host_ns"], row["host_self_ns"]) for row in grid(view, 1)}
    assert rows == {"f": (1, 100, 70), "g": (1, 30, 30)}


def test_host_time_of_an_op_that_only_the_device_names_is_not_known():
    view = trace(host_ops=[(0, 5, "a:Mul")], kernels=[(0, 30, "k", {"op": "b:Conv2D"})])
    rows = {row["op"]: (row["calls"], row["host_ns"], row["device_ns"]) for row in grid(view, 1)}
    assert rows == {"a": (1, 5, 0), "b": (0, None, 30)}


def test_what_the_trace_records_about_eager_wins_over_the_nesting():
    view = trace(
        host_ops=[(0, 5, "a:Mul"), (10, 5, "b:Mul")],
        op_args=[(0, "is_eager", {"integer": 1}), (1, "is_eager", {"integer": 0})],
    )
    assert facts(view)["eager_share"] == 0.5


def test_a_trace_without_ops_is_skipped_with_the_reason():
    outcome = FrameworkOpsAnalysis().run(trace(host_ops=[(0, 5, "loop", "runtime")]))
    assert outcome == Skipped("framework_ops", "the trace names no framework ops")


def eager_steps(per_step, start_ns, compiled=0):
    """Return four steps of 1000 ns, each with eager calls of ``start_ns`` and compiled ops of 1 ns."""
    host_ops = []
    for i in range(4):
        begin = 1000 * i
        host_ops += [(begin + 40 * j, start_ns, "EagerLocalExecute: Mul", "runtime") for j in range(per_step)]
        host_ops += [(begin + 20 * j, 1, "m:MatMul", "op", {"thread_id": 1}) for j in range(compiled)]
    return trace(steps=[(1000 * i, 1000, i) for i in range(4)], host_ops=host_ops)


@pytest.mark.parametrize(
    ("per_step", "start_ns", "compiled", "codes"),
    [
        (10, 5, 0, ["TV407"]),  # ten calls of 5 ns: exactly 5 % of 1000 ns
        (10, 4, 0, []),
        (9, 30, 0, []),  # too few per step
        (10, 5, 10, ["TV407"]),  # exactly half of the ops
        (10, 5, 11, []),
        (20, 30, 0, ["TV407"]),
    ],
)
def test_eager_execution_is_found_from_its_thresholds_on(per_step, start_ns, compiled, codes):
    analysis = FrameworkOpsAnalysis()
    findings = analysis.judge(analysis.run(eager_steps(per_step, start_ns, compiled)))
    assert [f.code for f in findings] == codes
    if findings:
        assert findings[0].cost_ns == 4 * per_step * start_ns


def test_time_in_which_a_device_works_costs_nothing():
    steps = [(1000 * i, 1000, i) for i in range(4)]
    host_ops = [(1000 * i + 50 * j, 40, "EagerLocalExecute: Mul", "runtime") for i in range(4) for j in range(20)]
    busy = trace(steps=steps, host_ops=host_ops, kernels=[(0, 4000, "k")])
    idle = trace(steps=steps, host_ops=host_ops, kernels=[(0, 1, "k"), (3999, 1, "k")])
    analysis = FrameworkOpsAnalysis()
    assert analysis.run(busy).eager.cost_ns == 0
    assert analysis.judge(analysis.run(busy)) == ()
    assert analysis.run(idle).eager.cost_ns == 4 * 20 * 40 - 1


def test_without_an_accelerator_the_op_itself_is_work_and_not_a_cost():
    steps = [(1000 * i, 1000, i) for i in range(4)]
    host_ops = []
    for i in range(4):
        for j in range(20):
            begin = 1000 * i + 50 * j
            host_ops += [
                (begin, 40, "EagerLocalExecute: Mul", "runtime"),
                (begin + 5, 30, "EagerKernelExecute", "runtime"),
            ]
    assert FrameworkOpsAnalysis().run(trace(steps=steps, host_ops=host_ops)).eager.cost_ns == 4 * 20 * 10


@pytest.mark.parametrize(
    ("op", "eager", "shown"),
    [(None, 0, set()), ("a:Add", 0, {"device_ns", "share_of_device_op_time"}), (None, 1, {"eager_share"})],
)
def test_columns_that_would_hold_nothing_but_0_are_for_machines(op, eager, shown):
    view = trace(
        host_ops=[(0, 10, "a:Add", "op")],
        op_args=[(0, "is_eager", {"integer": eager})],
        kernels=[(0, 5, "k", {"op": op})],
    )
    section = FrameworkOpsAnalysis().describe(FrameworkOpsAnalysis().run(view))
    grids = [block for block in section.blocks if isinstance(block, Grid)]
    for grid in grids:
        names = {column.name for column in grid.columns if column.importance < 9}
        assert names & {"device_ns", "share_of_device_op_time", "eager_share"} == shown


def test_eager_calls_of_2_processes_are_counted_each_in_the_steps_of_its_own():
    # process 1 has steps 1000 ns later: its first call is before them; a call inside one of its name is the same call
    def calls(process):
        own = {"thread_id": process, "process_id": process}
        begins = range(0, 4000, 500)
        inner = (102, 5, "PjitFunction(f)", "op", own)
        outer = [(begin + 1, 20, "EagerLocalExecute: Mul", "runtime", own) for begin in begins]
        return [*outer, (100, 10, "PjitFunction(f)", "op", own), inner]

    steps = [
        (1000 * (i + process), 1000, i, {"thread_id": process, "process_id": process})
        for i in range(3)
        for process in (0, 1)
    ]
    view = trace(steps=steps, host_ops=[*calls(0), *calls(1)])
    eager = FrameworkOpsAnalysis().run(view).eager
    assert (eager.calls, eager.eager_calls) == (6 + 1 + 6, 12)
