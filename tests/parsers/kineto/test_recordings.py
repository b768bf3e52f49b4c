"""Files that tools merged from the recordings of several processes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.parsers.kineto import files as k
from tests.parsers.kineto.tables import notes, read, rows
from traceviz.api import open_trace
from traceviz.trace.tables import TraceTables

RANKS = 3
STEPS = 20

Events = list[k.Event]
Merge = Callable[[Sequence[Events]], Events]


def recorded(rank: int, *, device: int | None = None, slower: float = 1.0) -> Events:
    """Return the recording of one rank: steps of an operation that launches a kernel, with a growing device queue.

    Ids are the same in all ranks, and their times are nearly so.
    """
    pid, device = 4000 + rank, rank if device is None else device
    place = {"pid": pid, "tid": pid}
    events: Events = [k.process_name("python", pid=pid), k.process_name("python", pid=device)]
    free = 0.0
    for step in range(STEPS):
        at, name = 100.0 * step + 0.25 * rank, f"op{rank}_{step % 3}"
        begin = max(free, at + 12)
        free = begin + 110 * slower
        events += [
            k.annotation(f"ProfilerStep#{step}", at, 95, **place),
            k.op(name, at + 5, 30, external=step + 1, **place),
            k.runtime("cudaLaunchKernel", at + 8, 3, correlation=500 + step, external=step + 1, **place),
            k.kernel(f"kernel{rank}_{step % 3}", begin, 110 * slower, correlation=500 + step, device=device),
            k.device_annotation(f"range{rank}", begin, 110 * slower, device=device),
            k.sync("Stream Sync", at + 40, 5, correlation=900 + step, device=device),
        ]
    return events


def merged_as(rename: Callable[[int, int | str], int | str]) -> Merge:
    """Return a tool that writes one recording after the other, with new names of processes and devices."""
    return lambda ranks: [
        {**event, "pid": rename(rank, event["pid"])} for rank, events in enumerate(ranks) for event in events
    ]


def offset(ranks: Sequence[Events]) -> Events:
    """Return a tool that adds numbers to all ids and to the names of processes and devices."""
    events = []
    for rank, own in enumerate(ranks):
        for event in own:
            args = {**event.get("args", {})}
            args |= {key: args[key] + 10**6 * rank for key in ("correlation", "External id") if key in args}
            events.append({**event, "pid": event["pid"] + 10**6 * rank, **({"args": args} if args else {})})
    return events


def shuffled(merge: Merge) -> Merge:
    def mixed(ranks: Sequence[Events]) -> Events:
        events = merge(ranks)
        random.Random(35).shuffle(events)
        return events

    return mixed


LABELLED = merged_as(lambda rank, pid: f"[TP{rank:02}-DP00] {pid}")
BEHIND = merged_as(lambda rank, pid: f"{pid} (rank {rank})")
GLUED = merged_as(lambda rank, pid: f"rank{rank}_{pid}")
NUMBERED = merged_as(lambda _, pid: pid)
MERGES: dict[str, Merge] = {
    "labels": LABELLED,
    "labels_behind": BEHIND,
    "glued": GLUED,
    "as_they_are": NUMBERED,
    "offset": offset,
    "labels_shuffled": shuffled(LABELLED),
    "labels_behind_shuffled": shuffled(BEHIND),
    "shuffled": shuffled(NUMBERED),
    "offset_shuffled": shuffled(offset),
    "negative": merged_as(lambda rank, pid: -pid if pid == 4000 + rank else pid),
    "words": merged_as(lambda rank, pid: f"{'abc'[rank]}" if pid == 4000 + rank else pid),
}


def described(trace: TraceTables) -> list[tuple[object, ...]]:
    """Return kernels with their process, device, call and operation, none of them by a number that a reader gives."""
    calls = {(row["process_id"], row["correlation_id"]): row["start_ns"] for row in trace.arrow("cuda_api").to_pylist()}
    ranks = dict(rows(trace, "processes", "process_id", "rank"))
    ordinals = dict(rows(trace, "devices", "device_id", "ordinal"))
    return sorted(
        (
            ranks[row["process_id"]],
            ordinals[row["device_id"]],
            row["name"],
            row["start_ns"],
            calls[row["process_id"], row["correlation_id"]],
            row["op"],
        )
        for row in trace.arrow("kernels").to_pylist()
    )


def folder_of(tmp_path: Path, ranks: Sequence[Events]) -> TraceTables:
    """Return the recordings as files of their own."""
    folder = tmp_path / "ranks"
    folder.mkdir(parents=True)
    for rank, events in enumerate(ranks):
        info = {
            "distributedInfo": {"rank": rank, "world_size": len(ranks)},
            "baseTimeNanoseconds": 1_700_000_000 * 10**9,
        }
        (folder / f"rank{rank}.pt.trace.json").write_bytes(k.trace(events, info))
    return open_trace(folder)


@pytest.mark.parametrize("merge", MERGES.values(), ids=MERGES)
def test_merged_file_holds_what_the_files_hold(tmp_path, merge):
    ranks = [recorded(rank) for rank in range(RANKS)]
    alone = folder_of(tmp_path, ranks)
    trace = read(tmp_path, merge(ranks))
    assert described(trace) == described(alone)
    assert len(described(trace)) == RANKS * STEPS
    assert notes(trace)["recordings-in-one-file"] == RANKS
    assert not {"correlations-repeated", "ranks-begin-together"} & set(notes(trace))
    assert rows(trace, "processes", "rank", "pid", "name") == [
        (rank, pid, "python") for rank, (pid,) in enumerate(rows(trace, "processes", "pid"))
    ]
    for table in ("steps", "host_ops", "cuda_api", "sync", "device_ops"):
        assert trace.rows(table) == alone.rows(table), table
    assert rows(trace, "device_ops", "start_ns", "name") == rows(alone, "device_ops", "start_ns", "name")
    assert len(rows(trace, "devices", "ordinal")) == RANKS


def test_ranks_that_call_their_device_by_one_number_have_a_device_each(tmp_path):
    ranks = [recorded(rank, device=0) for rank in range(RANKS)]
    for name in ("labels", "glued", "as_they_are", "offset", "offset_shuffled"):
        trace = read(tmp_path, MERGES[name](ranks))
        assert [entry[:3] for entry in described(trace)] == [
            entry[:3] for entry in described(folder_of(tmp_path / name, ranks))
        ]
        assert rows(trace, "devices", "ordinal") == [(0,)] * RANKS, name


def test_ids_of_64_bits_repeat_between_ranks(tmp_path):
    large = 2**62
    ranks = [recorded(rank) for rank in range(RANKS)]
    expected = described(folder_of(tmp_path, ranks))
    for event in (event for events in ranks for event in events):
        args = event.get("args", {})
        args.update({key: args[key] + large for key in ("correlation", "External id") if key in args})
    trace = read(tmp_path, shuffled(LABELLED)(ranks))
    assert described(trace) == expected
    assert max(rows(trace, "cuda_api", "correlation_id")) == (large + 500 + STEPS - 1,)


def test_events_without_a_process_belong_to_the_recording_around_them(tmp_path):
    ranks = [recorded(rank) for rank in range(RANKS)]
    for rank, events in enumerate(ranks):
        events.insert(len(events) // 2, k.annotation(f"missing{rank}", 900, 5, tid=1, pid="none"))
    merged = NUMBERED(ranks)
    for event in merged:
        if event["pid"] == "none":
            del event["pid"]
    trace = read(tmp_path, merged)
    ranks_of = dict(rows(trace, "processes", "process_id", "rank"))
    found = [(ranks_of[process], name) for process, name in rows(trace, "host_ops", "process_id", "name")]
    assert {pair for pair in found if pair[1].startswith("missing")} == {
        (rank, f"missing{rank}") for rank in range(RANKS)
    }


def test_slow_rank_and_a_rank_of_two_devices_keep_their_own_work(tmp_path):
    second = [
        {**event, "pid": 5, "args": {**event["args"], "device": 5}}
        for event in recorded(0, device=0)
        if event.get("cat") == "kernel"
    ]
    ranks = [[*recorded(0), *second], recorded(1, slower=2.5), recorded(2, slower=0.2)]
    expected = described(folder_of(tmp_path, ranks))
    for name in ("labels", "labels_shuffled", "as_they_are", "offset_shuffled"):
        assert described(read(tmp_path, MERGES[name](ranks))) == expected, name


def test_a_file_of_several_processes_with_ids_of_their_own_is_one_recording(tmp_path):
    """The file states that two processes share a device."""
    events = [
        *(
            k.runtime("cudaLaunchKernel", 10 * place, 2, correlation=1 + place, pid=100 + place % 2)
            for place in range(8)
        ),
        *(k.kernel("k", 10 * place + 5, 3, correlation=1 + place) for place in range(8)),
    ]
    trace = read(tmp_path, events)
    assert "recordings-in-one-file" not in notes(trace)
    assert rows(trace, "devices", "ordinal") == [(0,)]
    assert rows(trace, "kernels", "process_id", "correlation_id") == [(place % 2, 1 + place) for place in range(8)]


def test_work_that_no_recorded_call_launched_stays_with_its_recording(tmp_path):
    ranks = [recorded(rank) for rank in range(RANKS)]
    for rank, events in enumerate(ranks):
        events += [k.kernel(f"earlier{rank}", 0.5, 2, correlation=7, device=rank)]
    trace = read(tmp_path, LABELLED(ranks))
    ranks_of = dict(rows(trace, "processes", "process_id", "rank"))
    found = [(ranks_of[process], name) for process, name in rows(trace, "kernels", "process_id", "name")]
    assert {pair for pair in found if "earlier" in pair[1]} == {(rank, f"earlier{rank}") for rank in range(RANKS)}
    assert "launches-missing" in notes(trace)


def test_external_ids_are_those_of_the_process_that_launched(tmp_path):
    """Both processes of one recording have an operation 7; the calls are on threads without operations."""
    events = [
        *(k.op(f"op{pid}", 0, 100, external=7, pid=pid, tid=1) for pid in (100, 200)),
        *(k.runtime("cudaLaunchKernel", 10, 2, correlation=pid, external=7, pid=pid, tid=2) for pid in (100, 200)),
        *(k.kernel(f"kernel{pid}", 20 + pid, 5, correlation=pid, external=7) for pid in (100, 200)),
    ]
    assert rows(read(tmp_path, events), "kernels", "name", "op") == [("kernel100", "op100"), ("kernel200", "op200")]
