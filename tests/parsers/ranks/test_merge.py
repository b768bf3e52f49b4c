"""Several traces as one: ranks, numbers, clocks, and the notes on them."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analyses.builders import tables
from traceviz.core.errors import UsageError
from traceviz.parsers.ranks.merge import combine
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables

EVENTS = [name for name in schema.TABLES if schema.table(name).is_events]
DAY_NS = 86_400 * 10**9


def part(rank=None, t0=1_000, shift=0, **literals):
    """Return tables of one capture: one process with this rank, whose clock's zero is at ``t0`` of the wall clock."""
    named = {"processes": [(0, "python", {"rank": rank, "pid": 10 + (rank or 0)})], **literals}
    moved = {
        name: [(row[0] + shift, *row[1:]) if name in EVENTS else row for row in rows] for name, rows in named.items()
    }
    built = tables(run={"t0_unix_ns": None if t0 is None else t0 - shift}, **moved)
    return {name: built.arrow(name) for name in built}


def training(rank, t0=1_000, shift=0, seed=0):
    """Return a little of everything."""
    return part(
        rank,
        t0,
        shift,
        kernels=[(10 + seed, 20, "gemm", {"group_id": 3, "correlation_id": 1}), (40, 5, f"ncclAllReduce{seed}")],
        cuda_api=[(5, 3, "cudaLaunchKernel", {"correlation_id": 1})],
        host_ops=[(0, 50, "step", "step"), (4, 20 + seed, f"op{seed}", "op"), (4, 10, "inner", "op")],
        op_args=[(1, "External id", {"integer": seed}), (2, "Call stack", {"text": "a.py"})],
        nvtx=[(0, 50, "outer"), (seed + 1, 5, "inner")],
        settings=[("backend", "nccl", {"process_id": None}), ("rank", str(rank), {"process_id": None})],
    )


def content(trace):
    return {name: TraceTables(trace).arrow(name).to_pylist() for name in trace}


def notes(trace):
    return {note["code"]: note["message"] for note in trace["notes"].to_pylist()}


def test_stacks_of_ranks_share_frames_and_keep_who_called_whom():
    def rank(number, own):
        frames = [(0, None, "main", "train.py", 1, "program"), (1, 0, own, "train.py", 2, "program")]
        return part(number, stacks=[(number, 10, 1, 3), (20, 5, 0, 1)], stack_frames=frames)

    together = combine([rank(0, "load"), rank(1, "save"), rank(2, "load")], ["a", "b", "c"])
    frames = together["stack_frames"].to_pylist()
    assert [(row["stack_id"], row["parent_id"], row["function"]) for row in frames] == [
        (0, None, "main"),
        (1, 0, "load"),
        (2, 0, "save"),
    ]
    assert together["stacks"].select(["process_id", "stack_id", "samples"]).to_pylist() == [
        {"process_id": rank, "stack_id": stack, "samples": samples}
        for rank, stack, samples in ((0, 1, 3), (1, 2, 3), (2, 1, 3), (0, 0, 1), (1, 0, 1), (2, 0, 1))
    ]


def test_a_loader_of_a_run_is_no_rank_of_the_job():
    """Two runs on CPUs, each with one worker of a loader: two ranks, and not four."""
    runs = [
        part(
            None,
            processes=[(0, "python", {"pid": pid}), (1, "python", {"pid": pid + 1})],
            phases=[(0, 50, "program", "program"), (0, 50, "program", "worker", {"process_id": 1})],
        )
        for pid in (10, 20)
    ]
    assert [row["rank"] for row in combine(runs, ["a", "b"])["processes"].to_pylist()] == [0, 1, None, None]


def test_a_single_trace_comes_back_as_it_is():
    trace = training(4)
    assert content(combine([trace], ["a"])) == content(trace)


def test_no_trace_is_refused():
    with pytest.raises(UsageError, match="no trace to read"):
        combine([], [])


def test_two_ranks_are_put_on_one_clock():
    both = combine([training(0, t0=1_000), training(1, t0=1_007)], ["a", "b"])
    run = both["run"].to_pylist()[0]
    assert (run["t0_unix_ns"], run["span_ns"]) == (1_000, 57)
    assert both["kernels"]["start_ns"].to_pylist() == [10, 17, 40, 47]
    assert both["kernels"]["process_id"].to_pylist() == [0, 1, 0, 1]
    assert set(notes(both)) == {"devices-assumed"}  # both compute on a GPU 0 without an id


def test_ranks_order_processes_threads_and_devices_whatever_order_the_traces_have():
    parts = {rank: training(rank, seed=rank) for rank in (5, 0, 3)}
    found = [
        content(combine([parts[rank] for rank in order], [f"t{rank}" for rank in order]))
        for order in itertools.permutations(parts)
    ]
    assert [row["rank"] for row in found[0]["processes"]] == [0, 3, 5]
    assert [row["process_id"] for row in found[0]["threads"]] == [0, 1, 2]
    assert [row["device_id"] for row in found[0]["devices"]] == [0, 1, 2]
    assert all(other == found[0] for other in found[1:])


def test_parents_and_properties_follow_their_operations():
    both = content(combine([training(0, seed=0), training(1, t0=1_002, seed=1)], ["a", "b"]))
    ops = {row["op_id"]: row for row in both["host_ops"]}
    assert sorted(ops) == list(range(6))
    assert [row["op_id"] for row in both["host_ops"]] == sorted(ops)  # numbered in order of start
    names = {(ops[row["parent_id"]]["name"], row["name"]) for row in ops.values() if row["parent_id"] is not None}
    assert names == {("step", "op0"), ("step", "op1"), ("op0", "inner"), ("op1", "inner")}
    assert all(ops[row["parent_id"]]["process_id"] == row["process_id"] for row in ops.values() if row["parent_id"])
    properties = {(ops[row["op_id"]]["name"], row["integer"]) for row in both["op_args"] if row["key"] == "External id"}
    assert properties == {("op0", 0), ("op1", 1)}
    ranges = {row["range_id"]: row for row in both["nvtx"]}
    assert {(r["process_id"], ranges[r["parent_id"]]["process_id"]) for r in ranges.values() if r["parent_id"]} <= {
        (0, 0),
        (1, 1),
    }


def test_groups_of_two_traces_are_told_apart_and_correlations_stay():
    both = combine([training(0), training(1)], ["a", "b"])["kernels"].to_pylist()
    grouped = [row for row in both if row["group_id"] is not None]
    assert len({row["group_id"] for row in grouped}) == 2
    assert [row["correlation_id"] for row in grouped] == [1, 1]


def test_a_table_that_one_rank_lacks_is_kept_and_said():
    cpu_only = part(1, host_ops=[(0, 5, "op", "op")])
    both = combine([training(0), cpu_only], ["a", "b"])
    assert both["kernels"].num_rows == 2
    assert both["host_ops"].num_rows == 4
    message = notes(both)["rank-lacks-tables"]
    assert message.startswith("Not recorded of rank 1, but of other ranks: kernels, cuda_api, nvtx")


def test_a_table_that_nobody_has_stays_absent():
    assert "os_calls" not in combine([training(0), training(1)], ["a", "b"])


@pytest.mark.parametrize(
    ("names", "ranks"),
    [
        (("rank1.json", "rank0.json"), [1, 0]),
        (("job_rank-12.json.gz", "job_rank-3.json.gz"), [12, 3]),
        (("Rank 7/trace.json", "rank_8/trace.json"), [7, 8]),
        (("rank0/rank2.json", "rank0/rank4.json"), [2, 4]),
    ],
)
def test_ranks_that_the_traces_do_not_state_come_from_their_names(names, ranks):
    both = combine([part(kernels=[(0, 1, f"k{rank}")]) for rank in ranks], names)
    owners = {row["process_id"]: row["rank"] for row in both["processes"].to_pylist()}
    assert {row["name"]: owners[row["process_id"]] for row in both["kernels"].to_pylist()} == {
        f"k{rank}": rank for rank in ranks
    }
    assert "Ranks were taken from the names" in notes(both)["rank-from-name"]


@pytest.mark.parametrize("names", [("before.json", "after.json"), ("crank1.json", "frankfurt2.json")])
def test_ranks_that_nobody_states_are_numbered_as_given_and_said(names):
    both = combine([part(kernels=[(0, 1, "k")]), part(kernels=[(0, 1, "k")])], names)
    assert both["processes"]["rank"].to_pylist() == [0, 1]
    assert f"rank 0 is {names[0]}, rank 1 is {names[1]}" in notes(both)["rank-from-position"]


def test_numbers_that_others_state_are_not_given_twice():
    both = combine([training(0), part(kernels=[(0, 1, "k")])], ["a", "b"])
    assert both["processes"]["rank"].to_pylist() == [0, 1]


def test_only_processes_with_device_work_become_ranks():
    launcher = part(
        processes=[(0, "torchrun"), (1, "worker"), (2, "worker")],
        kernels=[(0, 1, "k", {"process_id": 1}), (0, 1, "k", {"process_id": 2})],
    )
    both = combine([launcher, part(kernels=[(0, 1, "k")])], ["a", "b"])
    assert [(row["name"], row["rank"]) for row in both["processes"].to_pylist()] == [
        ("worker", 0),
        ("worker", 1),
        ("python", 2),
        ("torchrun", None),
    ]


def test_two_captures_of_one_rank_are_refused_by_name():
    with pytest.raises(UsageError, match=r"first\.json and second\.json are two captures of rank 3"):
        combine([training(3), training(3)], ["first.json", "second.json"])


@pytest.mark.parametrize(
    ("begins", "why"),
    [((None, 5), "not known of rank 0"), ((0, DAY_NS), "do not overlap"), ((0, DAY_NS), "traceviz compare")],
)
def test_clocks_that_do_not_fit_let_all_ranks_begin_together(begins, why):
    both = combine([training(rank, t0=begin) for rank, begin in enumerate(begins)], ["a", "b"])
    run = both["run"].to_pylist()[0]
    assert (run["t0_unix_ns"], run["span_ns"]) == (None, 50)
    assert both["kernels"]["start_ns"].to_pylist() == [10, 10, 40, 40]
    assert why in notes(both)["ranks-begin-together"]


def test_captures_that_follow_each_other_without_a_gap_share_a_clock():
    both = combine([training(rank, t0=1_000 + 30 * rank) for rank in range(3)], "abc")
    assert both["run"]["span_ns"].to_pylist() == [110]


def test_devices_of_different_ranks_are_different_and_those_only_seen_are_counted_once():
    def node(rank, host):
        devices = [(number, "H100", {"ordinal": number, "memory_bytes": host}) for number in range(4)]
        return part(rank, kernels=[(0, 1, "k", {"device_id": rank})], devices=devices)

    both = combine([node(0, 1), node(1, 1)], ["a", "b"])
    assert [row["ordinal"] for row in both["devices"].to_pylist()] == [0, 1, 2, 3]
    assert both["kernels"]["device_id"].to_pylist() == [0, 1]


def test_the_first_device_of_two_ranks_is_two_devices_unless_they_state_the_same_id():
    def rank_on(rank, uuid):
        return part(rank, kernels=[(0, 1, "k")], devices=[(0, "H100", {"ordinal": 0, "uuid": uuid})])

    for uuids, count in (((None, None), 2), (("GPU-a", "GPU-b"), 2), (("GPU-a", "GPU-a"), 1)):
        both = combine([rank_on(rank, uuid) for rank, uuid in enumerate(uuids)], ["a", "b"])
        assert (both["devices"].num_rows, len(set(both["kernels"]["device_id"].to_pylist()))) == (count, count)


def on_node(rank, *work, size=8, uuid=None):
    """Return a rank whose trace lists all devices of its node; it runs kernels on ``work``, most on the first."""
    devices = [(number, "H100", {"ordinal": number, "uuid": uuid and f"GPU-{uuid}-{number}"}) for number in range(size)]
    kernels = [(at, 1, "k", {"device_id": device}) for at, device in enumerate((*work, *work[:1]))]
    return part(rank, kernels=kernels, devices=devices)


def counted_devices(*parts):
    """Return devices named and used of several combined traces, and whether a note reports the assumption."""
    trace = combine(parts, [f"t{number}" for number in range(len(parts))])
    used = set(trace["kernels"]["device_id"].to_pylist())
    return trace["devices"].num_rows, len(used), "devices-assumed" in notes(trace)


def test_8_ranks_that_each_list_the_8_devices_of_their_node_have_8_devices():
    assert counted_devices(*(on_node(rank, rank) for rank in range(8))) == (8, 8, False)


@pytest.mark.parametrize("second", [8, 9, 15])
def test_devices_of_another_node_are_others_and_that_is_said(second):
    assert counted_devices(on_node(0, 0), on_node(second, second % 8)) == (16, 2, True)


def test_16_ranks_of_2_nodes_have_16_devices_whatever_order_their_traces_are_in():
    assert counted_devices(*(on_node(rank, rank % 8) for rank in reversed(range(16)))) == (16, 16, True)


def test_a_little_work_on_the_device_of_another_rank_makes_no_further_device():
    assert counted_devices(on_node(0, 0), on_node(1, 1, 0), on_node(2, 2, 0)) == (8, 3, True)


def test_ranks_that_each_see_one_device_as_their_first_have_as_many_devices():
    assert counted_devices(*(on_node(rank, 0, size=1) for rank in range(3))) == (3, 3, True)


def test_ids_settle_which_devices_are_the_same_also_where_one_is_written_without_its_prefix():
    first, second = on_node(0, 0, uuid="a"), on_node(8, 0, uuid="a")
    devices = second["devices"].to_pylist()
    bare = pa.Table.from_pylist(
        [{**row, "uuid": row["uuid"].removeprefix("GPU-")} for row in devices], second["devices"].schema
    )
    assert counted_devices(first, {**second, "devices": bare}) == (8, 1, False)
    assert counted_devices(first, on_node(8, 0, uuid="b")) == (16, 2, False)


def test_traces_that_keep_the_name_of_their_machine_tell_nodes_apart():
    def named(rank, host):
        trace = on_node(rank, rank)
        place = trace["run"].schema.get_field_index("host")
        return {**trace, "run": trace["run"].set_column(place, trace["run"].schema.field(place), pa.array([host]))}

    assert counted_devices(named(0, "a"), named(1, "a")) == (8, 2, False)
    assert counted_devices(named(0, "a"), named(1, "b")) == (16, 2, False)


def test_settings_that_all_state_are_of_the_capture_and_others_of_their_process():
    both = combine([training(0), training(1)], ["a", "b"])["settings"].to_pylist()
    assert [(row["process_id"], row["key"], row["value"]) for row in both] == [
        (None, "backend", "nccl"),
        (0, "rank", "0"),
        (1, "rank", "1"),
    ]


def test_notes_are_said_once_and_with_their_rank_where_they_differ():
    def noted(rank, *messages):
        return part(
            rank, kernels=[(0, 1, "k")], notes=[("code", "info", message, {"count": 2}) for message in messages]
        )

    both = combine(
        [noted(0, "All.", "12 rows lost."), noted(1, "All.", "7 rows lost."), noted(2, "All.", "Odd.")], "abc"
    )
    found = [(row["message"], row["count"]) for row in both["notes"].to_pylist() if row["code"] == "code"]
    assert found == [("All.", 2), ("Rank 0: 12 rows lost. (1 more rank says the like)", 4), ("Rank 2: Odd.", 2)]


def test_facts_of_different_captures_stand_side_by_side():
    first, second = training(0), training(1)
    second["run"] = second["run"].set_column(0, second["run"].schema.field(0), pa.array(["nvprof"]))
    run = combine([first, second], ["a", "b"])["run"].to_pylist()[0]
    assert (run["format"], run["producer"]) == ("literal + nvprof", "test")


def test_a_bundle_can_be_combined_again():
    three = [training(rank, t0=1_000 + rank, seed=rank) for rank in range(3)]
    at_once = content(combine(three, "abc"))
    in_turn = content(combine([combine(three[:2], "ab"), three[2]], ["ab", "c"]))
    for name in ("kernels", "processes", "threads", "devices", "host_ops", "op_args", "nvtx", "run"):
        without_groups = [[{**row, "group_id": None} for row in found[name]] for found in (at_once, in_turn)]
        assert without_groups[0] == without_groups[1]


def test_properties_without_their_operations_keep_apart():
    alone = [{name: table for name, table in training(rank).items() if name != "host_ops"} for rank in (0, 1)]
    assert combine(alone, ["a", "b"])["op_args"]["op_id"].to_pylist() == [1, 2, 4, 5]


@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=2, max_size=5), st.integers(0, 40))
def test_totals_add_up_and_a_clock_that_is_set_back_changes_nothing(ranks, moved):
    parts = [training(rank, t0=1_000 + late, seed=seed) for rank, (late, seed) in enumerate(ranks)]
    names = [f"t{rank}" for rank in range(len(ranks))]
    tables = combine(parts, names)
    for name in (*schema.DEVICE_WORK, "cuda_api", "host_ops", "op_args", "nvtx"):
        own = [one[name] for one in parts if name in one]
        if own:
            assert tables[name].num_rows == sum(table.num_rows for table in own)
            if name != "op_args":
                assert sum(tables[name]["dur_ns"].to_pylist()) == sum(sum(t["dur_ns"].to_pylist()) for t in own)
                assert tables[name]["start_ns"].to_pylist() == sorted(tables[name]["start_ns"].to_pylist())
    last = max(range(len(ranks)), key=lambda rank: ranks[rank][0])
    room = min(moved, ranks[last][0] - min(late for late, _ in ranks))
    late, seed = ranks[last]
    parts[last] = training(last, t0=1_000 + late, shift=room, seed=seed)
    assert content(combine(parts, names)) == content(tables)


@pytest.mark.parametrize(("begins", "ranks"), [((0, 60), (None, None)), ((0, DAY_NS), (None, None))])
def test_2_runs_one_after_the_other_are_no_job(begins, ranks):
    runs = [as_run(training(rank, t0=begin)) for rank, begin in zip(ranks, begins, strict=True)]
    with pytest.raises(UsageError, match=r"These are 2 runs, not the ranks of one job.*traceviz compare"):
        combine(runs, ["slow", "repaired"])


@pytest.mark.parametrize(("begins", "ranks"), [((0, 60), (0, 1)), ((0, 30), (None, None))])
def test_2_runs_at_one_time_or_that_state_their_ranks_are_a_job(begins, ranks):
    runs = [as_run(training(rank, t0=begin)) for rank, begin in zip(ranks, begins, strict=True)]
    assert sorted(combine(runs, ["a", "b"])["processes"]["rank"].to_pylist()) == [0, 1]


def as_run(tables):
    """Return the tables as ``traceviz collect`` leaves them."""
    rows = [{**row, "format": "run"} for row in tables["run"].to_pylist()]
    return {**tables, "run": pa.Table.from_pylist(rows, schema.table("run").arrow)}
