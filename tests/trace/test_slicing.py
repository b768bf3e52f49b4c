"""A part of a trace: window, device, rank."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.memory import MemoryAnalysis
from traceviz.core.errors import UsageError
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select


def spans(part, name="kernels"):
    return part.scan(name).select("start_ns", "dur_ns").collect().rows()


def test_nothing_selected_is_the_same_trace():
    whole = tables(kernels=[(0, 10, "k")])
    assert select(whole, Selection()) is whole


def test_a_window_cuts_what_reaches_over_its_edges_and_starts_at_zero():
    part = select(tables(kernels=[(0, 10, "a"), (15, 10, "b"), (28, 10, "c"), (50, 5, "d")]), Selection(20, 30))
    assert spans(part) == [(0, 5), (8, 2)]
    assert part.run_facts()["span_ns"] == 10


def test_wall_clock_time_moves_with_the_window():
    part = select(tables(kernels=[(0, 100, "a")], run={"t0_unix_ns": 1000}), Selection(20, 30))
    assert part.run_facts()["t0_unix_ns"] == 1020


def test_an_event_that_never_ended_stays_so():
    part = select(tables(cuda_api=[(5, None, "a"), (8, 30, "b")]), Selection(0, 20))
    assert spans(part, "cuda_api") == [(5, None), (8, 12)]


def test_an_instant_on_the_begin_is_in_and_on_the_end_is_out():
    part = select(
        tables(nvtx=[(10, 0, "in", {"kind": "mark"}), (20, 0, "out", {"kind": "mark"}), (0, 50, "all")]),
        Selection(10, 20),
    )
    assert spans(part, "nvtx") == [(0, 10), (0, 0)]


def test_a_device_keeps_its_work_and_every_call():
    whole = tables(kernels=[(0, 1, "a"), (2, 1, "b", {"device_id": 1})], cuda_api=[(0, 1, "x")])
    part = select(whole, Selection(device=1))
    assert (part.rows("kernels"), part.rows("cuda_api")) == (1, 1)


def test_a_rank_keeps_only_its_own_events():
    whole = tables(
        kernels=[(0, 1, "a"), (2, 1, "b", {"process_id": 1})], cuda_api=[(0, 1, "x", {"process_id": 1, "thread_id": 1})]
    )
    part = select(whole, Selection(rank=0))
    assert (part.rows("kernels"), part.rows("cuda_api")) == (1, 0)


def test_the_report_says_that_it_is_a_part():
    part = select(tables(kernels=[(0, 100, "a")]), Selection(20, 30, device=0))
    assert [note["message"][:53] for note in part.arrow("notes").to_pylist()] == [
        "Only a part was analysed: from 2e-08 s to 3e-08 s; ev",
        "Only a part was analysed: device 0.",
    ]


@pytest.mark.parametrize(
    ("window", "why"),
    [(Selection(30, 20), "is empty"), (Selection(5, 5), "is empty"), (Selection(500, None), "after the capture ends")],
)
def test_an_empty_window_is_refused(window, why):
    with pytest.raises(UsageError, match=why):
        select(tables(kernels=[(0, 100, "a")]), window)


def test_steps_that_a_window_may_have_cut_are_not_counted():
    whole = tables(nvtx=[(i * 100, 100, f"step {i}") for i in range(10)])
    assert training_steps(TraceView(select(whole, Selection(150, 850)))).frame["step"].to_list() == [2, 3, 4, 5, 6, 7]
    assert training_steps(TraceView(whole)).frame.height == 10


def test_a_rank_keeps_only_its_own_process():
    whole = tables(kernels=[(0, 1, "a"), (2, 1, "b", {"process_id": 1})], cuda_api=[])
    assert select(whole, Selection(rank=1)).rows("processes") == 1


def test_an_unknown_device_or_rank_names_those_that_exist():
    whole = tables(kernels=[(0, 1, "a"), (0, 1, "a", {"device_id": 1})])
    with pytest.raises(UsageError, match="Known: 0, 1"):
        select(whole, Selection(device=7))
    with pytest.raises(UsageError, match="no rank '3'"):
        select(whole, Selection(rank=3))


def test_a_device_keeps_the_steps_that_the_host_marked():
    whole = tables(kernels=[(0, 1, "a")], steps=[(0, 5, 0, {"device_id": None}), (5, 5, 1, {"device_id": 1})])
    part = select(whole, Selection(device=0))
    assert part.arrow("steps").column("device_id").to_pylist() == [None]


def test_the_devices_of_other_ranks_and_other_devices_are_not_said_to_be_unused():
    whole = tables(
        kernels=[(0, 1, "a"), (2, 1, "b", {"process_id": 1, "device_id": 1})],
        devices=[(number, None, {"ordinal": number}) for number in range(3)],
    )
    assert select(whole, Selection(rank=0)).arrow("devices").column("device_id").to_pylist() == [0, 2]
    assert select(whole, Selection(device=1)).arrow("devices").column("device_id").to_pylist() == [1]


def test_a_rank_keeps_the_device_on_which_it_only_has_memory():
    whole = tables(
        kernels=[(0, 1, "a")],
        memory_events=[(0, "alloc", 10, {"process_id": 1}), (0, "alloc", 5, {"process_id": 1, "device_id": None})],
        host_ops=[(0, 1, "x", "op", {"process_id": 1, "thread_id": 1})],
    )
    part = select(whole, Selection(rank=1))
    assert [device["device_id"] for device in part.arrow("devices").to_pylist()] == [0]
    assert MemoryAnalysis().run(TraceView(part)).pools[0].peak_bytes == 10


def test_a_rank_keeps_the_settings_of_the_capture():
    settings = [("world_size", "2", {"process_id": None}), ("rank", "0"), ("rank", "1", {"process_id": 1})]
    whole = tables(kernels=[(0, 1, "a"), (2, 1, "b", {"process_id": 1})], settings=settings)
    part = select(whole, Selection(rank=1))
    assert [(row["key"], row["value"]) for row in part.arrow("settings").to_pylist()] == [
        ("world_size", "2"),
        ("rank", "1"),
    ]


def test_ranks_that_there_are_are_named_in_order_and_no_process_without_one():
    processes = [(number, "python", {"rank": rank}) for number, rank in enumerate((0, 2, 10, None))]
    whole = tables(processes=processes, kernels=[(0, 1, "a", {"process_id": process}) for process in range(3)])
    with pytest.raises(UsageError) as refused:
        select(whole, Selection(rank=3))
    assert (refused.value.what, refused.value.fix) == ("There is no rank '3'.", "Known: 0, 2, 10.")


def test_where_no_process_states_its_rank_those_with_device_work_go_by_their_numbers():
    whole = tables(
        processes=[(number, "python") for number in range(3)],
        threads=[(number, number, "main") for number in range(3)],
        memcpy=[(0, 1, "h2d", "pinned", "device", 4, {"process_id": 1})],
        kernels=[(0, 1, "a", {"process_id": 2})],
    )
    with pytest.raises(UsageError, match=r"Known: 1, 2\."):
        select(whole, Selection(rank=3))
    assert select(whole, Selection(rank=1)).rows("memcpy") == 1
    assert select(whole, Selection(rank=1)).rows("kernels") == 0


def test_an_unknown_device_names_each_number_once():
    devices = [(0, "A", {"ordinal": 0}), (1, "A", {"ordinal": 0}), (2, "B", {"ordinal": None})]
    with pytest.raises(UsageError, match=r"Known: 0\."):
        select(tables(devices=devices, kernels=[(0, 1, "a")]), Selection(device=7))


class TestStacks:
    FRAMES = ((0, None, "main", "train.py", 3, "program"),)

    def test_samples_at_an_edge_count_as_far_as_they_lie_in_the_window(self):
        stacks = [(-20, 10, 0, 1), (0, 40, 0, 4, {"cpu_ns": 20}), (90, 100, 0, 10)]
        part = select(tables(stacks=stacks, stack_frames=self.FRAMES, kernels=[(0, 100, "k")]), Selection(10, 100))
        assert part.scan("stacks").select("start_ns", "dur_ns", "samples", "cpu_ns").collect().rows() == [
            (0, 30, 3, 15),
            (80, 10, 1, None),
        ]

    def test_a_rank_keeps_its_run_as_a_whole_and_its_workers(self):
        owners = [(number, {"process_id": number, "thread_id": number}) for number in range(4)]
        ranks = {0: 0, 1: 1}
        workers = {0: "program", 1: "program", 2: "worker", 3: "worker"}
        whole = tables(
            kernels=[(0, 100, "k", {"process_id": rank}) for rank in ranks],
            stacks=[(-50, 200, 0, 20, own) for _, own in owners],
            stack_frames=self.FRAMES,
            phases=[(-60, 300, "program", workers[number], own) for number, own in owners],
            processes=[(number, "python", {"pid": 10 + number, "rank": ranks.get(number)}) for number in workers],
            threads=[(number, number, None) for number in workers],
            settings=[("process.parent_pid", str(10 + of), {"process_id": own}) for own, of in ((2, 1), (3, 2))],
        )
        part = select(whole, Selection(rank=1))
        assert part.scan("stacks").select("start_ns", "dur_ns", "process_id").collect().rows() == [
            (-50, 200, 1),
            (-50, 200, 2),
            (-50, 200, 3),
        ]
        assert (part.rows("phases"), TraceView(part).ranks) == (3, (1,))
