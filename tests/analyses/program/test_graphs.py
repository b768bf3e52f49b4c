"""Launches of CUDA graphs: of the operators, modules and ranges in which nodes were made, or that name the graph.

::

    ns         0          50         100            200               400
    capture    [mm: 1]    [add: 2]   11 of 1, 12 of 2
    replay                                          [launch graph]    [launch graph]
    device                                              11 12              11 12 13
"""

from itertools import pairwise

import polars as pl
import pytest

from tests.analyses.builders import trace
from tests.analyses.program import test_modules as modules
from tests.analyses.program import test_operators as operators
from traceviz.analyses.derived.launch.join import node_origins, work_with_calls
from traceviz.analyses.program.modules import ModulesAnalysis
from traceviz.analyses.program.operators import OperatorsAnalysis
from traceviz.analyses.program.ranges import RangesAnalysis
from traceviz.report import Grid, Prose, Skipped

LAUNCHES = [(210, 20, "cudaGraphLaunch", {"correlation_id": 1}), (410, 20, "cudaGraphLaunch", {"correlation_id": 2})]
OPERATORS = [(0, 40, "aten::mm"), (50, 30, "aten::add"), (200, 100, "replay"), (400, 100, "replay")]
NODES = [(10, 1, None), (60, 2, None), (100, 11, 1), (101, 12, 2)]
PARTS = {11: ("scores", "layers.0.attention"), 12: ("merge", "layers.0.attention"), 13: (None, None)}


def kernel(start, dur, node, call):
    return (start, dur, "k", {"graph_node_id": node, "correlation_id": call})


KERNELS = [kernel(300, 40, 11, 1), kernel(350, 10, 12, 1)]
KERNELS += [kernel(500, 30, 11, 2), kernel(540, 20, 12, 2), kernel(600, 5, 13, 2)]


def of_graph(**extra):
    captured = {"host_ops": OPERATORS, "cuda_api": LAUNCHES, "kernels": KERNELS, "graph_nodes": NODES}
    return {**captured, "run": operators.PYTORCH, **extra}


def named(**extra):
    """Return the same graph, captured before the trace started, with parts that the program names."""
    nodes = [(300, node, {"thread_id": None, "part": part, "module": module}) for node, (part, module) in PARTS.items()]
    return of_graph(host_ops=OPERATORS[2:], graph_nodes=nodes, **extra)


def words(analysis, view):
    section = analysis.describe(analysis.run(view))
    return [block.text for block in section.blocks if isinstance(block, Prose) and block.text.startswith("Graphs")]


def test_copies_of_copies_lead_to_the_node_that_was_made_first():
    chain = [(number, number + 1, number or None) for number in range(6)]
    view = trace(graph_nodes=[*chain, (7, 40, None, {"process_id": 1, "thread_id": 3})])
    origins = node_origins(view).sort("process_id", "graph_node_id")
    assert origins["made_ns"].to_list() == [0] * 6 + [7]
    assert origins["made_thread_id"].to_list() == [0] * 6 + [3]


def test_copies_in_a_circle_end():
    circle = [(0, 1, 2), (1, 2, 3), (2, 3, 1)]
    assert node_origins(trace(graph_nodes=circle)).height == 3


def test_copies_of_nodes_that_were_made_before_the_trace_have_no_origin():
    assert node_origins(trace(graph_nodes=[(5, 11, 1)])).select("graph_node_id", "made_ns").rows() == [(11, None)]


@pytest.mark.parametrize(("name", "by_graph"), [("hipGraphLaunch", True), ("hipLaunchKernel", False)])
def test_work_without_nodes_is_of_a_graph_by_the_call_that_launched_it(name, by_graph):
    view = trace(cuda_api=[(0, 5, name, {"correlation_id": 1})], kernels=[(10, 5, "k", {"correlation_id": 1})])
    assert work_with_calls(view)["by_graph"].to_list() == [by_graph]


def test_operators_have_the_kernels_of_the_nodes_that_were_made_in_them():
    rows = operators.rows(trace(**of_graph()))
    assert {name: row["device_self_ns"] for name, row in rows.items()} == {
        "aten::mm": 40 + 30,
        "aten::add": 10 + 20,
        "replay": 5,
    }
    facts = operators.facts(trace(**of_graph()))
    assert (facts["graph_share"], facts["graph_unknown_share"]) == (1.0, 5 / 105)
    assert facts["attributed_share"] == 1.0


def test_who_launched_the_graph_has_its_work_in_total():
    rows = operators.rows(trace(**of_graph()))
    assert (rows["replay"]["calls"], rows["replay"]["device_ns"]) == (2, 105)


def test_work_of_a_graph_that_is_captured_and_launched_in_one_operator_is_in_its_total_once():
    around = [(0, 450, "region"), *((start, dur, name) for start, dur, name in OPERATORS[:2])]
    rows = operators.rows(trace(**of_graph(host_ops=around)))
    assert (rows["region"]["device_self_ns"], rows["region"]["device_ns"]) == (5, 105)


def test_operators_of_a_graph_work_in_the_steps_that_launch_it():
    steps = [(start, 200, number) for number, start in enumerate((200, 400))]
    rows = operators.rows(trace(**of_graph(steps=steps)))
    assert (rows["aten::mm"]["calls_per_step"], rows["aten::mm"]["device_self_per_step_ns"]) == (0.0, 35.0)
    assert rows["replay"]["device_self_per_step_ns"] == 2.5


def test_parts_that_the_program_names_stand_for_operators_that_were_not_recorded():
    rows = operators.rows(trace(**named()))
    assert {name: (row["calls"], row["device_self_ns"]) for name, row in rows.items()} == {
        "scores": (0, 70),
        "merge": (0, 30),
        "replay": (2, 5),
    }
    assert rows["replay"]["device_ns"] == 105


def test_modules_that_the_program_names_stand_inside_the_module_that_launched_the_graph():
    frames = [(200, 100, "nn.Module: Net_0", "python"), (400, 100, "nn.Module: Net_0", "python")]
    view = trace(**named() | {"host_ops": frames})
    exact = {row["path"]: (row["calls"], row["device_ns"], row["device_self_ns"]) for row in modules.grids(view)[0]}
    assert exact == {
        "Net_0": (2, 105, 5),
        "Net_0 / layers": (None, 100, 0),
        "Net_0 / layers / 0": (None, 100, 0),
        "Net_0 / layers / 0 / attention": (None, 100, 100),
    }
    assert modules.facts(view)["graph_unknown_share"] == 5 / 105


def test_modules_are_named_by_parts_of_graphs_where_nothing_else_names_them():
    view = trace(**named())
    exact = {row["path"]: row["device_ns"] for row in modules.grids(view)[0]}
    assert exact == {"layers": 100, "layers / 0": 100, "layers / 0 / attention": 100}
    assert modules.facts(view)["source"] == "the program, for parts of graphs"


@pytest.mark.parametrize(("dots", "levels"), [(63, 64), (64, 1)])
def test_a_name_with_too_many_dots_is_no_path(dots, levels):
    nodes = [(300, 11, {"thread_id": None, "module": ".".join("m" * (dots + 1))})]
    assert len(modules.grids(trace(**named() | {"graph_nodes": nodes}))[0]) == levels


def test_work_of_the_backward_pass_in_a_graph_counts_as_such():
    view = trace(**named() | {"graph_nodes": [(300, 11, {"part": "loss", "phase": "backward", "thread_id": None})]})
    (row,) = modules.grids(view)[0]
    assert (row["path"], row["device_ns"], row["backward_ns"]) == ("loss", 0, 70)


def test_modules_have_the_kernels_of_the_nodes_that_were_made_in_them():
    frames = [(0, 90, "nn.Module: Net_0", "python"), (50, 40, "nn.Module: Add_0", "python")]
    view = trace(**of_graph(host_ops=[*frames, *OPERATORS]))
    exact = {row["path"]: row["device_self_ns"] for row in modules.grids(view)[0]}
    assert exact == {"Net_0": 70, "Net_0 / Add_0": 30}
    assert modules.facts(view)["graph_unknown_share"] == 5 / 105


def test_operators_with_a_module_hierarchy_take_the_work_of_their_nodes_there():
    stated = [(0, "Module Hierarchy", {"text": "TOP(Net)::forward.first(Linear)::forward."})]
    view = trace(**of_graph(op_args=stated))
    exact = {row["path"]: row["device_self_ns"] for row in modules.grids(view)[0]}
    assert exact == {"TOP(Net)": 0, "TOP(Net) / first(Linear)": 70}
    assert modules.facts(view)["graph_unknown_share"] == 35 / 105


def test_what_is_not_known_of_graphs_is_said_in_words():
    lost = of_graph(graph_nodes=[])
    (text,) = words(OperatorsAnalysis(), trace(**lost))
    assert text.startswith("Graphs launched 100.0 % of the device work. Of it only the launch of the graph is known")
    (text,) = words(ModulesAnalysis(), trace(**named()))
    assert "Of 4.8 % of it only the launch of the graph is known, and not the module inside" in text
    assert words(OperatorsAnalysis(), trace(**of_graph(kernels=KERNELS[:4]))) == []


def test_traces_without_graphs_say_nothing_of_them():
    view = trace(**operators.linear())
    assert not {"graph_share", "graph_unknown_share"} & set(operators.facts(view))
    assert words(OperatorsAnalysis(), view) == []


def test_graphs_recorded_as_a_whole_belong_to_who_launched_them_and_hide_their_operators():
    graphs = [(300, 60, 4, {"correlation_id": 1}), (500, 80, 4, {"correlation_id": 2})]
    view = trace(**of_graph(kernels=[(700, 60, "k", {"correlation_id": 9})], graphs=graphs))
    assert operators.rows(view)["replay"]["device_self_ns"] == 140
    facts = operators.facts(view)
    assert (facts["graph_share"], facts["graph_unknown_share"]) == (0.7, 1.0)


def test_ranges_have_the_device_time_of_nodes_that_were_made_inside_them():
    ranges = [(0, 90, "capture"), (50, 30, "add"), (200, 100, "replay"), (400, 100, "replay")]
    (grid,) = (block for block in range_blocks(nvtx=ranges) if isinstance(block, Grid))
    names = [column.name for column in grid.columns]
    rows = {row[1]: dict(zip(names, row, strict=True)) for row in grid.rows}
    assert {name: row["graph_ns"] for name, row in rows.items()} == {"capture": 100, "add": 30, "replay": 0}
    assert {name: row["device_busy_ns"] for name, row in rows.items()} == {"capture": 0, "add": 0, "replay": 105}


def test_ranges_without_known_nodes_have_no_such_column():
    (grid,) = (block for block in range_blocks(nvtx=[(0, 90, "capture")], graph_nodes=[]) if isinstance(block, Grid))
    assert "graph_ns" not in {column.name for column in grid.columns}


def range_blocks(**extra):
    analysis = RangesAnalysis()
    result = analysis.run(trace(**of_graph(**extra)))
    assert not isinstance(result, Skipped)
    return analysis.describe(result).blocks


def test_every_piece_of_work_keeps_its_time_whoever_it_belongs_to():
    everything = sum(dur for _, dur, *_ in KERNELS)
    views = [trace(**of_graph()), trace(**named()), trace(**of_graph(graph_nodes=[]))]
    sums = [pl.Series([row["device_self_ns"] for row in operators.rows(view).values()]).sum() for view in views]
    assert sums[0] == everything
    assert all(one == other for one, other in pairwise(sums))
