"""Flame graphs from tables: nesting, recursion, device work by what launched it, classes of step time, steady steps."""

import numpy as np
import polars as pl
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.analyses.builders import trace
from tests.analyses.stacks import sampled
from tests.pictures.flame.trees import by_class, checked, flame_of, times
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.pictures.flame.flames import flames
from traceviz.pictures.flame.folding import OTHER, Bounds

PYTORCH = {"framework": "PyTorch"}
STEPS = [(0, 100, 0), (100, 100, 1), (200, 100, 2)]


def linear(**extra):
    """Return ``aten::linear`` around ``aten::addmm``, which launches 50 ns by a call of 10; again after 60 ns."""
    return {
        "host_ops": [
            (0, 40, "aten::linear"),
            (10, 25, "aten::addmm"),
            (60, 30, "aten::linear"),
            (65, 20, "aten::addmm"),
        ],
        "cuda_api": [
            (15, 10, "cudaLaunchKernel", {"correlation_id": 1}),
            (70, 10, "cudaLaunchKernel", {"correlation_id": 2}),
        ],
        "kernels": [
            (100, 50, "void gemm<float>(int)", {"correlation_id": 1}),
            (150, 30, "void gemm<float>(int)", {"correlation_id": 2}),
        ],
        "run": PYTORCH,
        **extra,
    }


def test_calls_of_one_path_are_one_node_with_the_calls_of_the_api_inside():
    assert times(flame_of(trace(**linear()), "operators-host")) == {
        "training thread": 70,
        "training thread > aten::linear": 70,
        "training thread > aten::linear > aten::addmm": 45,
        "training thread > aten::linear > aten::addmm > cudaLaunchKernel": 20,
    }


def test_device_work_lies_in_the_operators_that_launched_it_and_is_named_by_its_function():
    flame = flame_of(trace(**linear()), "operators-device")
    assert times(flame) == {
        "training thread": 80,
        "training thread > aten::linear": 80,
        "training thread > aten::linear > aten::addmm": 80,
        "training thread > aten::linear > aten::addmm > gemm": 80,
    }
    assert flame.families[-2:] == ("matmul", "gemm")


def test_recursion_is_kept_level_by_level():
    nested = [(0, 100, "f"), (10, 80, "f"), (20, 50, "f"), (75, 10, "g")]
    assert times(flame_of(trace(host_ops=nested, run=PYTORCH), "operators-host")) == {
        "training thread": 100,
        "training thread > f": 100,
        "training thread > f > f": 80,
        "training thread > f > f > f": 50,
        "training thread > f > f > g": 10,
    }


def test_calls_that_cross_end_with_the_call_that_they_began_in():
    crossing = [(0, 50, "outer"), (40, 30, "late")]
    flame = checked(flame_of(trace(host_ops=crossing, run=PYTORCH), "operators-host"))
    assert times(flame)["training thread > outer > late"] == 10


def test_only_time_in_steady_steps_counts_and_steps_are_said():
    ops = [(-0, 90, "aten::mm"), (110, 30, "aten::mm"), (190, 40, "aten::mm"), (310, 50, "aten::mm")]
    view = trace(host_ops=ops, steps=STEPS, run=PYTORCH, span_ns=400)
    flame = flame_of(view, "operators-host")
    assert (flame.whole, flame.steps) == ("3 steady steps", 3)
    assert times(flame)["training thread > aten::mm"] == 90 + 30 + 40


def test_device_work_counts_whole_if_it_was_launched_in_a_steady_step_wherever_it_runs():
    calls = [(250, 5, "cudaLaunchKernel", {"correlation_id": 1}), (320, 5, "cudaLaunchKernel", {"correlation_id": 2})]
    kernels = [(290, 40, "k", {"correlation_id": 1}), (340, 20, "k", {"correlation_id": 2})]
    busy = [(start, 10, "k", {"correlation_id": 9}) for start in (10, 110, 210)]
    view = trace(
        host_ops=[(240, 30, "aten::mm"), (310, 30, "aten::mm")],
        cuda_api=calls,
        kernels=[*busy, *kernels],
        steps=STEPS,
        run=PYTORCH,
    )
    assert times(flame_of(view, "operators-device"))["training thread > aten::mm > k"] == 40


def test_time_is_divided_by_the_class_that_the_rank_is_in_meanwhile():
    view = trace(
        host_ops=[(0, 30, "DataLoader.__next__", "input"), (30, 60, "aten::mm"), (95, 5, "aten::add")],
        cuda_api=[(35, 5, "cudaLaunchKernel", {"correlation_id": 1})],
        kernels=[(50, 30, "k", {"correlation_id": 1})],
        run=PYTORCH,
    )
    split = by_class(flame_of(view, "operators-host"))
    # The launch takes 35 to 40, and its work waits until 50; what is left of the operator is the host's
    assert split["training thread > aten::mm"] == {"device_compute": 30, "kernel_launch": 15, "host_compute": 15}
    assert split["training thread > DataLoader.__next__"] == {"input_wait": 30}
    sets = host_classes(view)[0].sets
    assert sets["device_compute"].total == 30


def test_running_numbers_of_annotations_are_one_node_and_names_of_operators_stay():
    ops = [(0, 10, "ProfilerStep#1", "annotation"), (20, 10, "ProfilerStep#2", "annotation"), (40, 5, "aten::conv2d")]
    assert set(times(flame_of(trace(host_ops=ops, run=PYTORCH), "operators-host"))) == {
        "training thread",
        "training thread > ProfilerStep#N",
        "training thread > aten::conv2d",
    }


def test_operators_of_tensorflow_lie_in_a_node_of_their_type_without_arguments():
    ops = [(0, 30, "a/MatMul:MatMul#id=1#"), (30, 20, "b/MatMul:MatMul"), (50, 5, "Cast:Cast")]
    assert times(flame_of(trace(host_ops=ops), "operators-host")) == {
        "training thread": 55,
        "training thread > MatMul": 50,
        "training thread > MatMul > a/MatMul": 30,
        "training thread > MatMul > b/MatMul": 20,
        "training thread > Cast": 5,
    }


def test_device_work_without_a_call_lies_in_the_scopes_of_its_operator():
    kernels = [
        (0, 10, "k1", {"op": "model/dense/MatMul:MatMul"}),
        (10, 5, "k2", {"op": "model/Relu:Relu"}),
        (20, 7, "x"),
    ]
    found = times(flame_of(trace(kernels=kernels), "operators-device"))
    assert found["device work by operator > model"] == 15
    assert found["device work by operator > model > dense > MatMul:MatMul > k1"] == 10
    assert found["launched by an unknown call > x"] == 7


def test_threads_are_told_apart_by_what_they_are_and_not_by_their_number():
    view = trace(
        host_ops=[(0, 50, "aten::mm"), (0, 20, "decode", {"thread_id": 1}), (30, 10, "decode", {"thread_id": 2})],
        threads=[(0, 0, "MainThread"), (1, 0, "loader 17"), (2, 0, "loader 18")],
        run=PYTORCH,
    )
    assert times(flame_of(view, "operators-host")) == {
        "training thread": 50,
        "training thread > aten::mm": 50,
        "thread loader N": 30,
        "thread loader N > decode": 30,
    }


def test_the_thread_that_trains_comes_first_however_much_others_wait():
    rows = sampled((0, 10, "a.py:1 main"), (0, 500, "b.py:1 wait", {"thread_id": 1}))
    view = trace(**rows, threads=[(0, 0, "MainThread"), (1, 0, "waiter 3")], span_ns=500)
    flame = flame_of(view, "stacks-samples")
    assert flame.names == ("training thread", "main (a.py)", "thread waiter N", "wait (b.py)")


def test_threads_of_processes_that_are_no_ranks_say_so():
    view = trace(
        host_ops=[(0, 50, "aten::mm"), (0, 20, "decode", {"process_id": 1, "thread_id": 1})],
        processes=[(0, "python", {"rank": 0}), (1, "python")],
        threads=[(0, 0, "MainThread"), (1, 1, "MainThread")],
        run=PYTORCH,
    )
    assert times(flame_of(view, "operators-host"))["worker process: MainThread > decode"] == 20


def test_ranges_nest_on_their_threads_with_their_domain_and_the_work_launched_in_them():
    view = trace(
        nvtx=[(0, 100, "step 1"), (10, 50, "forward", {"domain": "net"}), (200, 60, "step 2")],
        cuda_api=[(20, 5, "cudaLaunchKernel", {"correlation_id": 1})],
        kernels=[(30, 20, "k", {"correlation_id": 1})],
    )
    assert times(flame_of(view, "ranges-host"))["training thread > step N"] == 160
    assert times(flame_of(view, "ranges-device"))["training thread > step N > net: forward > k"] == 20


def test_backward_work_lies_in_the_module_of_its_forward_operator():
    numbered = {"Sequence number": 4}
    ops = [
        (0, 50, "nn.Module: Net_0", "python"),
        (10, 20, "nn.Module: Linear_0", "python"),
        (12, 15, "aten::linear", "op"),
        (100, 30, "AddmmBackward0", "op", {"thread_id": 1}),
    ]
    ids = {op[2]: number for number, op in enumerate(ops)}
    args = [
        *(
            (ids[name], key, {"integer": value})
            for name in ("aten::linear", "AddmmBackward0")
            for key, value in numbered.items()
        ),
        (ids["AddmmBackward0"], "Fwd thread id", {"integer": 1}),
    ]
    view = trace(
        host_ops=ops,
        op_args=args,
        cuda_api=[
            (15, 5, "cudaLaunchKernel", {"correlation_id": 1}),
            (110, 5, "cudaLaunchKernel", {"correlation_id": 2, "thread_id": 1}),
        ],
        kernels=[(30, 10, "k", {"correlation_id": 1}), (120, 25, "k", {"correlation_id": 2})],
        run=PYTORCH,
    )
    assert times(flame_of(view, "modules-device")) == {
        "Net_0": 35,
        "Net_0 > Linear_0": 35,
        "Net_0 > Linear_0 > (backward)": 25,
    }
    assert times(flame_of(view, "modules-host")) == {"Net_0": 50, "Net_0 > Linear_0": 20}


def test_sampled_stacks_are_functions_with_the_line_that_comes_first():
    rows = sampled(
        (0, 40, "train.py:90 main > train.py:41 load"),
        (40, 20, "train.py:95 main > train.py:42 load > PIL/Image.py:9 open"),
    )
    flame = flame_of(trace(**rows, span_ns=60), "stacks-samples")
    assert times(flame) == {
        "training thread": 60,
        "training thread > main (train.py)": 60,
        "training thread > main (train.py) > load (train.py)": 60,
        "training thread > main (train.py) > load (train.py) > open (Image.py)": 20,
    }
    assert flame.places == ("", "train.py:90", "train.py:41", "PIL/Image.py:9")
    assert flame.families == ("thread", "python", "python", "library")


def test_time_outside_of_the_capture_is_of_no_class():
    flame = flame_of(trace(**sampled((-50, 80, "a.py:1 f")), span_ns=30), "stacks-samples")
    assert by_class(flame)["training thread"] == {"host_compute": 30, "outside": 50}


def test_small_nodes_are_one_beside_those_that_stay():
    ops = [(0, 1000, "aten::big"), (1000, 3, "a"), (1003, 2, "b"), (1005, 4, "c")]
    found = times(flame_of(trace(host_ops=ops, run=PYTORCH), "operators-host", Bounds(least=0.01)))
    assert found == {"training thread": 1009, "training thread > aten::big": 1000, f"training thread > {OTHER}": 9}


def test_graphs_of_a_page_share_the_nodes_that_it_may_have(monkeypatch):
    ops = [(start, 1, f"op{start}") for start in range(300)]
    ranges = [(start, 1, f"range {chr(300 + start)}") for start in range(300)]
    view = trace(host_ops=ops, nvtx=ranges, run=PYTORCH)
    assert [len(flame.names) for flame in flames(view)] == [301, 301]
    monkeypatch.setattr("traceviz.pictures.flame.flames._MOST_TOGETHER", 100)
    shared = flames(view)
    assert [len(flame.names) for flame in shared] == [50, 50]
    assert [int(flame.times[flame.parents < 0].sum()) for flame in shared] == [300, 300]


def test_recursion_is_drawn_to_a_depth_of_200():
    deep = [(level, 1000 - 2 * level, "f") for level in range(400)]
    flame = flame_of(trace(host_ops=deep, run=PYTORCH), "operators-host", Bounds(least=0.0))
    assert (len(flame.names), flame.names[-1], int(flame.times[-1].sum())) == (200, OTHER, 1000 - 2 * 198)


def test_a_trace_without_calls_has_no_graph():
    assert flames(trace(host_ops=[], run=PYTORCH)) == ()


def test_names_are_bounded():
    flame = flame_of(trace(host_ops=[(0, 10, "x" * 10_000)], run=PYTORCH), "operators-host")
    assert max(map(len, flame.names)) <= 2000


@st.composite
def calls(draw):
    """Return calls of two threads that may nest, repeat and cross."""
    names = st.sampled_from(["f", "g", "h"])
    rows = draw(
        st.lists(st.tuples(st.integers(0, 300), st.integers(0, 200), names, st.integers(0, 1)), min_size=1, max_size=25)
    )
    return [(start, length, name, {"thread_id": thread}) for start, length, name, thread in rows]


@given(ops=calls(), stepped=st.booleans(), least=st.sampled_from([0.0, 0.05, 0.3]))
@settings(max_examples=60, deadline=None)
def test_no_node_has_less_than_what_is_in_it_and_threads_have_no_more_than_their_time(ops, stepped, least):
    steps = {"steps": STEPS} if stepped else {}
    view = trace(host_ops=ops, run=PYTORCH, threads=[(0, 0, "main"), (1, 0, "other")], span_ns=600, **steps)
    for flame in flames(view, Bounds(least=least)):
        checked(flame)
        tops = flame.times[flame.parents < 0].sum(axis=1)
        assert (tops <= (300 if stepped else 600)).all()


@given(ops=calls())
@settings(max_examples=60, deadline=None)
def test_the_outermost_nodes_have_all_time_in_which_a_call_runs(ops):
    assume(not _cross(ops))
    view = trace(host_ops=ops, run=PYTORCH, threads=[(0, 0, "main"), (1, 0, "other")], span_ns=600)
    total = 0
    for thread in (0, 1):
        busy = np.zeros(600, bool)
        for start, length, _, extra in ops:
            if extra["thread_id"] == thread:
                busy[start : start + length] = True
        total += int(busy.sum())
    found = [
        flame.times[flame.parents < 0].sum() for flame in flames(view, Bounds(0.0)) if flame.key == "operators-host"
    ]
    assert sum(found) == total


def _cross(ops):
    spans = [(extra["thread_id"], start, start + length) for start, length, _, extra in ops]
    return any(a[0] == b[0] and a[1] < b[1] < a[2] < b[2] for a in spans for b in spans)


def test_no_more_nodes_than_allowed():
    ops = [(start, 1, f"op{start}") for start in range(500)]
    flame = flame_of(trace(host_ops=ops, run=PYTORCH), "operators-host", Bounds(least=0.0, most=50))
    assert len(flame.names) <= 50
    assert flame.times[0].sum() == 500
    assert pl.Series(flame.names).n_unique() == len(flame.names)
