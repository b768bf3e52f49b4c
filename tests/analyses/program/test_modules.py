"""Modules: the tree from frames, hierarchy or ranges; forward by containment, backward through the forward operator."""

import pytest

from tests.analyses import sections
from tests.analyses.builders import trace
from tests.analyses.program.test_operators import PYTORCH, backward_pass
from traceviz.analyses.program.modules import ModulesAnalysis
from traceviz.report import Grid, Skipped


def section(view):
    analysis = ModulesAnalysis()
    return analysis.describe(analysis.run(view))


def grids(view):
    return sections.grids(ModulesAnalysis(), view)


def facts(view):
    return sections.facts(ModulesAnalysis(), view)


def frame(start, dur, name):
    return (start, dur, f"nn.Module: {name}", "python")


def two_layers(**extra):
    """Return a net of two linear layers; the second launches 300 ns, the net itself 100 ns."""
    return {
        "host_ops": [
            frame(0, 100, "Net_0"),
            (5, 90, "net.py(7): forward", "python"),
            frame(10, 20, "Linear_0"),
            frame(40, 30, "Linear_1"),
            (45, 20, "aten::linear"),
            (80, 10, "aten::relu"),
        ],
        "cuda_api": [
            (50, 5, "cudaLaunchKernel", {"correlation_id": 1}),
            (82, 5, "cudaLaunchKernel", {"correlation_id": 2}),
        ],
        "kernels": [(100, 300, "k", {"correlation_id": 1}), (500, 100, "k", {"correlation_id": 2})],
        "run": PYTORCH,
        **extra,
    }


def test_modules_nest_by_the_time_of_their_calls_and_python_frames_between_are_left_out():
    exact = {row["path"]: row for row in grids(trace(**two_layers()))[0]}
    assert set(exact) == {"Net_0", "Net_0 / Linear_0", "Net_0 / Linear_1"}
    assert (exact["Net_0"]["host_ns"], exact["Net_0"]["host_self_ns"]) == (100, 50)
    assert (exact["Net_0"]["device_ns"], exact["Net_0"]["device_self_ns"]) == (400, 100)
    assert exact["Net_0 / Linear_1"]["share_of_device_time"] == 0.75


def test_a_module_that_does_nothing_but_call_another_has_no_time_of_its_own():
    view = trace(host_ops=[frame(0, 50, "Net_0"), frame(0, 50, "Linear_0")], run=PYTORCH)
    exact = {row["path"]: row["host_self_ns"] for row in grids(view)[0]}
    assert exact == {"Net_0": 0, "Net_0 / Linear_0": 50}


def test_modules_of_one_class_side_by_side_are_one_row_for_people():
    rows = grids(trace(**two_layers()))[1]
    assert [(row["name"], row["instances"], row["calls"], row["device_ns"]) for row in rows] == [
        ("Net", 1, 1, 400),
        ("  Linear", 2, 2, 300),
    ]


def test_parts_below_one_percent_are_left_to_programs():
    view = trace(
        **two_layers(
            host_ops=[frame(0, 1000, "Net_0"), frame(10, 9, "Small_0"), frame(100, 10, "Large_0")],
            kernels=[],
            cuda_api=[],
        )
    )
    exact, people = grids(view)
    assert len(exact) == 3
    assert [row["name"] for row in people] == ["Net", "  Large"]


def test_backward_work_belongs_to_the_module_of_its_forward_operator():
    base = backward_pass()
    modules = [(0, 70, "nn.Module: Net_0", "python"), (38, 24, "nn.Module: ReLU_0", "python")]
    numbers = {0: 1, 1: 2, 2: 4, 3: 5, 4: 6, 5: 7}  # where the operators are among the sorted rows
    args = [(numbers[op], key, value) for op, key, value in base["op_args"]]
    view = trace(**backward_pass(host_ops=[modules[0], *base["host_ops"], modules[1]], op_args=args))
    exact = {row["path"]: row for row in grids(view)[0]}
    assert (exact["Net_0 / ReLU_0"]["backward_ns"], exact["Net_0"]["backward_ns"]) == (70, 110)
    assert facts(view)["inside_share"] == 1.0


def test_work_of_a_part_that_runs_in_the_backward_pass_is_not_counted_as_backward_work_again():
    base = backward_pass()
    parts = [(0, 90, "forward", "annotation"), (101, 38, "wait for others", "annotation", {"thread_id": 1})]
    numbers = {0: 1, 1: 2, 2: 3, 3: 4, 4: 6, 5: 7}
    args = [(numbers[op], key, value) for op, key, value in base["op_args"]]
    view = trace(**backward_pass(host_ops=[parts[0], *base["host_ops"], parts[1]], op_args=args))
    times = {row["name"]: (row["device_ns"], row["backward_ns"]) for row in grids(view)[0]}
    assert times == {"forward": (0, 40), "wait for others": (70, 0)}
    assert facts(view)["inside_share"] == 1.0


def test_the_hierarchy_that_operators_state_makes_the_tree_where_no_module_is_a_frame():
    path = "TOP(Net)::forward.layer1(Block)::forward.0(Linear)::forward."
    view = trace(
        **two_layers(
            host_ops=[(0, 50, "aten::linear"), (10, 20, "aten::addmm"), (60, 10, "aten::relu")],
            op_args=[
                (0, "Module Hierarchy", {"text": path}),
                (1, "Module Hierarchy", {"text": path}),
                (2, "Module Hierarchy", {"text": "TOP(Net)::forward."}),
            ],
            cuda_api=[(12, 5, "cudaLaunchKernel", {"correlation_id": 1})],
        )
    )
    rows = grids(view)[1]
    assert [(row["name"], row["host_ns"], row["device_ns"]) for row in rows] == [
        ("TOP(Net)", 60, 300),
        ("  layer1(Block)", 50, 300),
        ("    Linear", 50, 300),
    ]
    assert facts(view)["source"] == "the module hierarchy of operators"


def test_ranges_of_the_program_stand_in_where_no_module_is_named():
    view = trace(
        **two_layers(host_ops=[(0, 60, "forward", "annotation"), (75, 25, "loss", "annotation"), (45, 20, "aten::mm")])
    )
    rows = grids(view)[1]
    assert [(row["name"], row["calls"], row["device_ns"]) for row in rows] == [("forward", 1, 300), ("loss", 1, 100)]


def test_a_capture_of_the_host_only_orders_and_shows_parts_by_host_time():
    tables = {key: value for key, value in two_layers().items() if key not in {"cuda_api", "kernels"}}
    people = [block for block in section(trace(**tables)).blocks if isinstance(block, Grid)][1]
    names = {column.name for column in people.columns if column.importance < 9}
    assert names == {"name", "instances", "calls", "host_ns", "host_self_ns", "share_of_host_time"}
    assert [row[0] for row in people.rows] == ["Net", "  Linear"]


@pytest.mark.parametrize(
    ("ops", "asks"), [([], True), ([(0, 10, "aten::mm")], True), ([(0, 10, "net.py(7): forward", "python")], False)]
)
def test_a_trace_that_names_no_parts_says_what_to_record(ops, asks):
    outcome = ModulesAnalysis().run(trace(host_ops=ops, run=PYTORCH))
    assert isinstance(outcome, Skipped)
    assert ("with_stack=True" in outcome.reason) == asks
    assert "record_function" in outcome.reason


def test_parts_of_another_framework_are_no_modules():
    assert isinstance(
        ModulesAnalysis().run(trace(host_ops=[(0, 9, "a", "annotation")], run={"format": "xplane"})), Skipped
    )
