"""Groups of XPlane captures: which events belong to which step, by rules that real captures and these cases obey."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.xplane.files import Ref, Unsigned, event, line, plane, space
from traceviz.parsers.shared.arrays.nesting import Links, enclosing, nearest, nest_sorted, spread
from traceviz.parsers.xplane.decode.scan import read_space
from traceviz.parsers.xplane.groups.groups import Groups, group, group_with_annotations

ROOT = {"_r": 1}


def grouped(*planes: bytes) -> Groups:
    """Return groups of a file with these planes."""
    return group(read_space(space(*planes)))


def annotated(*planes: bytes) -> Groups:
    """Return the same, if annotations may mark steps."""
    return group_with_annotations(read_space(space(*planes)))


def ids(groups: Groups, place: int = 0) -> list[int]:
    """Return groups of the events of one plane."""
    return groups.planes[place].group_id.tolist()


def host(*lines: object, **given: object) -> bytes:
    """Return the plane of the host's threads."""
    return plane("/host:CPU", *lines, **given)


def producer(number: int, context: int = 2) -> dict[str, int]:
    """Return stats of an event that something elsewhere waits for."""
    return {"_pt": context, "_p": number}


def consumer(number: int, context: int = 2) -> dict[str, int]:
    """Return stats of an event that something elsewhere caused."""
    return {"_ct": context, "_c": number}


# Nesting


def nested(*spans: tuple[int, int]) -> list[int]:
    """Return parents of events of one line, given as start and end."""
    start, end = np.array(spans, np.int64).reshape(-1, 2).T
    return enclosing(np.zeros(start.size, np.int32), start, end - start).tolist()


@pytest.mark.parametrize(
    ("spans", "parents"),
    [
        ([(0, 100), (10, 50), (20, 30), (60, 70)], [-1, 0, 1, 0]),
        ([(5, 9), (5, 9), (5, 9)], [-1, 0, 1]),  # of equal spans the first is the parent
        ([(0, 10), (10, 10), (11, 11)], [-1, 0, -1]),  # an instant belongs to what ends at that moment
        ([(0, 100), (10, 50), (40, 60), (45, 55)], [-1, 0, 0, 2]),  # spans that overlap in part are siblings
        ([(60, 70), (20, 30), (10, 50), (0, 100)], [3, 2, 3, -1]),  # events out of order
        ([], []),
    ],
)
def test_the_innermost_event_around_an_event_is_its_parent(spans, parents):
    assert nested(*spans) == parents


def test_events_of_different_lines_do_not_nest():
    line_of = np.array([0, 0, 1, 1], np.int32)
    assert enclosing(line_of, np.array([0, 1, 2, 3]), np.array([9, 1, 2, 1])).tolist() == [-1, 0, -1, 2]


SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 12)), max_size=30)


@given(SPANS)
def test_nesting_is_what_a_stack_finds(spans):
    rows = sorted((number, start, -(start + dur)) for number, start, dur in spans)
    expected, stack = [], []
    for position, (number, _, end) in enumerate(rows):
        while stack and (rows[stack[-1]][0] != number or -rows[stack[-1]][2] < -end):
            stack.pop()
        expected.append(stack[-1] if stack else -1)
        stack.append(position)
    columns = np.array(rows, np.int64).reshape(-1, 3).T
    line_of, start, end = columns[0].astype(np.int32), columns[1], -columns[2]
    assert nest_sorted(line_of, start, end).tolist() == expected
    assert enclosing(line_of, start, end - start).tolist() == expected


def test_the_nearest_wanted_ancestor_is_the_event_itself_where_it_is_wanted():
    parent = np.array([-1, 0, 1, 2, -1], np.int32)
    assert nearest(parent, np.array([False, True, False, False, False])).tolist() == [-1, 0, 0, 0, -1]
    assert nearest(parent, np.array([True, False, False, True, True])).tolist() == [0, 0, 0, 1, 2]


# Spreading


def links(nodes: int, *pairs: tuple[int, int]) -> tuple[Links, Links]:
    """Return links from causes to effects, and back."""
    cause, effect = np.array(pairs, np.int64).reshape(-1, 2).T
    return Links.between(nodes, cause, effect), Links.between(nodes, effect, cause)


def owners(nodes: int, pairs: list[tuple[int, int]], roots: list[int], levels: list[int], *, every: bool) -> list[int]:
    """Return the root that claims each node."""
    children, parents = links(nodes, *pairs)
    return spread(children, parents, np.array(roots, np.int32), np.array(levels, np.int32), every=every).tolist()


def test_a_root_claims_what_can_be_reached_and_was_not_claimed_before():
    pairs = [(0, 1), (1, 2), (3, 2), (3, 4)]
    assert owners(6, pairs, [0, 3], [1, 1], every=False) == [0, 0, 0, 1, 1, -1]
    assert owners(6, pairs, [3, 0], [1, 1], every=False) == [1, 1, 0, 0, 0, -1]


def test_a_root_below_a_root_of_its_own_level_claims_nothing():
    assert owners(3, [(0, 1), (1, 2)], [1, 0], [1, 1], every=False) == [1, 1, 1]
    assert owners(3, [(0, 1), (1, 2)], [1, 0], [2, 1], every=False) == [1, 0, 0]
    assert owners(3, [(0, 1), (1, 2)], [1, 0], [1, 1], every=True) == [1, 0, 0]


def test_roots_that_cause_each_other_claim_nothing():
    assert owners(3, [(0, 1), (1, 0), (1, 2)], [0, 1], [1, 1], every=False) == [-1, -1, -1]


def test_without_the_compiled_scanner_the_groups_are_the_same(monkeypatch):
    file = host(
        line(1, event("train", 0, 100, ROOT), event("call", 10, 20, producer(7))),
        line(2, event("work", 50, 90, consumer(7)), event("part", 60, 10)),
    )
    expected = ids(grouped(file))
    monkeypatch.setenv("TRACEVIZ_SCANNER", "protobuf")
    assert ids(grouped(file)) == expected == [0, 0, 0, 0]


# Groups on the host


def test_a_step_holds_what_it_encloses_and_what_it_causes_on_other_threads():
    groups = grouped(
        host(
            line(1, event("train", 0, 100, {**ROOT, "step_num": 7}), event("call", 10, 20, producer(3))),
            line(2, event("late", 150, 40, consumer(3)), event("part", 160, 5), event("other", 300, 1)),
        )
    )
    assert ids(groups) == [0, 0, 0, 0, -1]
    assert [(each.name, each.step, each.explicit) for each in groups.groups] == [("train 7", 7, True)]
    assert groups.planes[0].marker.tolist() == [True, False, False, False, False]


def test_groups_are_numbered_by_level_and_time_and_inner_roots_of_the_same_level_begin_none():
    groups = grouped(
        host(
            line(
                1,
                event("train", 100, 50, ROOT),
                event("train", 110, 5, ROOT),
                event("epoch", 200, 100, {"_r": 2}),
                event("train", 210, 5, ROOT),
            ),
            line(2, event("train", 0, 10, ROOT)),
        )
    )
    assert ids(groups) == [2, 2, 0, 0, 1]
    assert [each.roots[0].level for each in groups.groups] == [2, 1, 1]


def test_what_the_framework_runs_is_a_group_without_a_marker():
    groups = grouped(host(line(1, event("FunctionRun", 0, 9, {**ROOT, "id": 5}), event("a:MatMul", 1, 2))))
    assert ids(groups) == [0, 0]
    assert groups.planes[0].marker.sum() == 0
    assert [(each.name, each.explicit, each.roots[0].name) for each in groups.groups] == [("0", False, "FunctionRun")]


def test_functions_of_the_input_pipeline_are_no_steps():
    groups = grouped(
        host(
            line(1, event("FunctionRun", 0, 9, {**ROOT, "id": 5}), event("FunctionRun", 20, 9, {**ROOT, "id": 6})),
            line(2, event("InstantiatedCapturedFunction::Run", 0, 9, {"id": 5})),
        )
    )
    assert ids(groups) == [-1, 0, -1]


def test_unsigned_step_ids_read_as_zero_as_in_xprof():
    groups = grouped(
        host(
            line(1, event("FunctionRun", 0, 9, {**ROOT, "id": Unsigned(2**63 + 5)})),
            line(2, event("InstantiatedCapturedFunction::Run", 0, 9, {"id": Unsigned(2**63 + 6)})),
        )
    )
    assert ids(groups) == [-1, -1]


def test_asynchronous_events_neither_enclose_nor_are_enclosed():
    groups = grouped(host(line(1, event("train", 0, 100, ROOT), event("async", 10, 50, {"_a": 1}), event("b", 20, 5))))
    assert ids(groups) == [0, -1, 0]


def test_the_region_of_a_thread_pool_ends_what_it_outlasts():
    region = (event("ThreadpoolListener::StartRegion", 5, 0, consumer(1, 15)), event("b", 6, 2))
    stop = event("ThreadpoolListener::StopRegion", 30, 0)
    with_stop = grouped(host(line(1, event("train", 0, 20, ROOT), *region, stop)))
    without = grouped(host(line(1, event("train", 0, 20, ROOT), *region)))
    assert (ids(without), ids(with_stop)) == ([0, 0, 0], [0, -1, -1, -1])


def test_an_executor_causes_the_input_it_fetched_in_the_same_iteration():
    groups = grouped(
        host(
            line(1, event("train", 0, 99, ROOT), event("ExecutorState::Process", 1, 2, {"id": 4, "iter_num": 0})),
            line(2, event("IteratorGetNextOp::DoCompute", 50, 9, {"id": 4, "iter_num": 0})),
            line(3, event("IteratorGetNextOp::DoCompute", 50, 9, {"id": 5, "iter_num": 0})),
        )
    )
    assert ids(groups) == [0, 0, 0, -1]


def test_a_crowd_of_producers_and_consumers_is_not_connected():
    def of(count: int) -> list[int]:
        producers = (event("p", 10 * n, 1, {**producer(1), **ROOT}) for n in range(count))
        return ids(
            grouped(host(line(1, *producers), line(2, *(event("c", 10 * n, 1, consumer(1)) for n in range(64)))))
        )

    assert of(63)[63:] == [0] * 64
    assert of(64)[64:] == [-1] * 64


@pytest.mark.parametrize(("pid", "group_id"), [(None, -1), (12, 0), (Unsigned(12), 0), (13, -1)])
def test_connections_hold_within_a_process(pid, group_id):
    there = {} if pid is None else {"_pid": pid}
    main = host(line(1, event("train", 0, 9, {**ROOT, **producer(3)})), stats={"process_id": 12})
    assert ids(grouped(main, plane("/host:other", line(1, event("c", 20, 9, {**consumer(3), **there})))), 1) == [
        group_id
    ]


def test_iterations_of_a_loop_in_a_graph_are_the_only_groups():
    def turn(start: int, iteration: int) -> object:
        return event("ExecutorState::Process", start, 9, {"id": 3, "iter_num": iteration})

    train = event("train", 0, 100, ROOT)
    groups = grouped(host(line(1, train, turn(10, 0), turn(20, 1), turn(40, 1), turn(60, 2))))
    assert ids(groups) == [-1, 0, 1, 1, 2]
    assert [(each.name, each.step, each.explicit) for each in groups.groups] == [
        ("0", 0, False),
        ("1", 1, False),
        ("2", 2, False),
    ]
    assert [each.name for each in annotated(host(line(1, train, turn(10, 0), turn(20, 1)))).groups] == ["train 0"]


def test_nothing_is_grouped_where_old_loop_operations_ran():
    assert ids(grouped(host(line(1, event("train", 0, 9, ROOT), event("WhileOp-StartBody", 1, 2))))) == [-1, -1]


def test_a_group_is_named_after_its_kind_of_graph():
    groups = grouped(host(line(1, event("train", 0, 9, {**ROOT, "graph_type": Ref("eval"), "iter_num": 4}))))
    assert groups.groups[0].name == "eval 4"


# Devices


def test_a_kernel_is_in_the_group_of_its_launch_and_what_nobody_launched_in_that_before_it():
    groups = grouped(
        host(
            line(
                1,
                event("train", 0, 50, ROOT),
                event("cuLaunchKernel", 10, 5, {"correlation_id": 8}),
                event("train", 60, 50, ROOT),
                event("cuLaunchKernel", 70, 5, {"correlation_id": 9}),
            )
        ),
        plane(
            "/device:GPU:0",
            line(13, event("before", 1, 2), event("k", 30, 5, {"correlation_id": 8}), event("alone", 40, 5)),
            line(14, event("copy", 35, 1), event("k", 90, 5, {"correlation_id": 9}), event("after", 200, 1)),
        ),
    )
    assert ids(groups) == [0, 0, 1, 1]
    assert ids(groups, 1) == [-1, 0, 0, 0, 1, 1]


def test_an_operation_with_a_correlation_id_is_no_launch():
    device = plane("/device:GPU:0", line(1, event("k", 30, 5, {"correlation_id": 8})))
    for name, expected in (("cuLaunchKernel", 0), ("a/b:MatMul", -1), ("FunctionRun", -1), ("jit:foo", 0)):
        launch = event(name, 10, 5, {"correlation_id": 8})
        assert ids(grouped(host(line(1, event("train", 0, 50, ROOT), launch)), device), 1) == [expected]


def test_cores_of_tpus_step_together_where_the_host_tells_nothing():
    def core(number: int) -> bytes:
        modules = line(2, event("jit_f", 100, 50), event("jit_f", 200, 50), name="XLA Modules")
        operations = line(3, event("fusion", 110, 5), event("copy", 151, 9), event("dot", 210, 5), name="XLA Ops")
        return plane(f"/device:TPU:{number}", modules, operations)

    groups = grouped(host(line(1, event("work", 0, 9))), core(0), core(1))
    assert ids(groups) == [-1]
    assert ids(groups, 1) == ids(groups, 2) == [0, 1, 0, -1, 1]
    assert [(each.name, len(each.roots), each.explicit) for each in groups.groups] == [("0", 2, False), ("1", 2, False)]


def test_a_launch_on_the_host_takes_a_module_of_a_tpu_into_its_step():
    launch = {"device_ordinal": 1, "queue_id": 0, "run_id": (1 << 27) + 5}
    modules = (
        event("jit_f", 100, 50, {"queue_id": 0, "run_id": 5}),
        event("jit_f", 200, 50, {"queue_id": 0, "run_id": 6}),
    )
    done = event("CompleteCallbacks", 300, 5, launch)
    groups = grouped(
        host(line(1, event("train", 0, 50, ROOT), event("DoEnqueueProgram", 10, 5, launch)), line(2, done)),
        plane("/device:TPU:1", line(2, *modules, name="XLA Modules"), line(3, event("dot", 110, 5), name="XLA Ops")),
    )
    assert (ids(groups), ids(groups, 1)) == ([0, 0, 0], [0, -1, 0])


def test_consecutive_steps_of_one_group_on_a_tpu_also_hold_what_lies_between_them():
    steps = (event("1", 100, 20, consumer(1)), event("2", 200, 20, consumer(1)), event("3", 300, 20))
    operations = (event("a", 110, 5), event("gap", 150, 5), event("b", 310, 5))
    groups = grouped(
        host(line(1, event("train", 0, 50, {**ROOT, **producer(1)}))),
        plane("/device:TPU:0", line(1, *steps, name="Steps"), line(3, *operations, name="XLA Ops")),
    )
    assert ids(groups, 1) == [0, 0, -1, 0, 0, -1]


# Markers that xprof does not take


def test_profiled_batches_are_steps_where_there_are_no_others():
    batches = [event("Profiled batch", 100 * n, 90, {"step_num": n + 5}) for n in range(2)]
    file = host(
        line(1, batches[0], event("FunctionRun", 10, 50, ROOT), batches[1], event("FunctionRun", 110, 50, ROOT))
    )
    assert [each.explicit for each in grouped(file).groups] == [False, False]
    groups = annotated(file)
    assert groups.added
    assert [(each.name, each.step, each.explicit) for each in groups.groups] == [
        ("Profiled batch 5", 5, True),
        ("Profiled batch 6", 6, True),
    ]
    assert (ids(groups), groups.planes[0].marker.tolist()) == ([0, 0, 1, 1], [True, False, True, False])


def test_annotations_change_nothing_where_steps_are_marked():
    file = host(line(1, event("train", 0, 9, ROOT), event("Profiled batch", 20, 9, {"step_num": 1})))
    groups = annotated(file)
    assert (groups.added, ids(groups)) == (False, [0, -1])


# Files that came grouped


def test_a_file_that_came_grouped_keeps_its_groups():
    file = space(
        host(
            line(
                1,
                event("train", 0, 9, {**ROOT, "group_id": 4, "step_name": "train 17"}),
                event("a", 1, 2, {"group_id": 4}),
                event("FunctionRun", 20, 9, {**ROOT, "group_id": 6}),
                event("b", 40, 1),
            )
        ),
        plane("/device:GPU:0", line(13, event("k", 5, 1, {"group_id": 6})), line(14, event("alone", 50, 1))),
    )
    groups = group(read_space(file))
    assert groups.kept
    assert (ids(groups), ids(groups, 1)) == ([4, 4, 6, -1], [6, -1])
    assert groups.planes[0].marker.tolist() == [True, False, False, False]
    assert [(each.id, each.name, each.step, each.explicit) for each in groups.groups] == [
        (4, "train 17", 17, True),
        (6, "6", None, False),
    ]
    assert [each.roots[0].name for each in groups.groups] == ["train", "FunctionRun"]


def test_a_file_without_events_has_no_groups():
    for groups in (grouped(), grouped(host()), annotated(plane("/device:TPU:0", line(1, name="XLA Modules")))):
        assert groups.groups == ()
        assert sum(each.group_id.size for each in groups.planes) == 0
