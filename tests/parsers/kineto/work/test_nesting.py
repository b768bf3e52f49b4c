"""Nesting, pairing and links of random events match the definition, compiled or not."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.kineto import files as k
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.kineto.decode.document import decode
from traceviz.parsers.kineto.events import pair
from traceviz.parsers.kineto.readers import KinetoReader
from traceviz.parsers.kineto.tables import tables_of
from traceviz.parsers.shared.arrays.native import SCANNER_VARIABLE
from traceviz.trace.tables import TraceTables

pytestmark = pytest.mark.process

SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 8), st.integers(1, 2)), min_size=1, max_size=25)
MARKS = st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers(1, 2)), max_size=25)


@pytest.fixture(params=["", "protobuf"], ids=["compiled", "numpy"])
def route(request, monkeypatch):
    monkeypatch.setenv(SCANNER_VARIABLE, request.param)


def tables(tmp_path: Path, data: bytes) -> TraceTables:
    file = tmp_path / "x.json"
    file.write_bytes(data)
    return TraceTables(dict(KinetoReader().read(file, ReadRequest())))


def parents(spans: list[tuple[int, int, int]]) -> list[tuple[str, str | None]]:
    """Return the name of each event and of its parent: the last before it by start and falling end that encloses it."""
    order = sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][1], i))
    parents_ = []
    for place, i in enumerate(order):
        start, dur, tid = spans[i]
        above = [j for j in order[:place] if spans[j][2] == tid and spans[j][0] + spans[j][1] >= start + dur]
        parents_.append((f"e{i}", f"e{above[-1]}" if above else None))
    return sorted(parents_)


@pytest.mark.usefixtures("route")
@settings(max_examples=15)
@given(spans=SPANS)
def test_parent_is_the_nearest_event_before_that_ends_no_earlier(tmp_path_factory, spans):
    events = [k.op(f"e{i}", start, dur, tid=tid) for i, (start, dur, tid) in enumerate(spans)]
    rows = tables(tmp_path_factory.mktemp("x"), k.trace(events)).arrow("host_ops").to_pylist()
    name = {row["op_id"]: row["name"] for row in rows}
    assert sorted((row["name"], name.get(row["parent_id"])) for row in rows) == parents(spans)
    depth = {row["op_id"]: row["depth"] for row in rows}
    assert all(row["depth"] == (0 if row["parent_id"] is None else depth[row["parent_id"]] + 1) for row in rows)


@given(marks=MARKS)
def test_pairs_of_begins_and_ends_are_those_of_a_stack(marks):
    begun = np.array([mark[0] for mark in marks], dtype=bool)
    start = np.array([mark[1] for mark in marks], dtype=np.int64)
    tid = np.array([mark[2] for mark in marks], dtype=np.int32)
    dur = np.full(len(marks), -1, np.int64)
    frame = {"begun": begun, "ended": ~begun, "pid": np.zeros(len(marks), np.int32), "tid": tid, "start": start}
    strays = pair(pl.DataFrame(frame), dur)
    expected, lost = [-1] * len(marks), 0
    stacks: dict[int, list[int]] = defaultdict(list)
    for i in sorted(range(len(marks)), key=lambda i: marks[i][1]):
        stack = stacks[marks[i][2]]
        if marks[i][0]:
            stack.append(i)
        elif stack:
            opened = stack.pop()
            expected[opened] = marks[i][1] - marks[opened][1]
        else:
            lost += 1
    assert (dur.tolist(), strays) == (expected, lost)


CALLS = st.lists(
    st.tuples(
        st.integers(0, 30), st.integers(0, 4), st.integers(1, 2), st.sampled_from(["op", "note", "call", "kernel"])
    ),
    min_size=1,
    max_size=9,
)


def _event(i: int, start: int, dur: int, tid: int, category: str) -> dict[str, Any]:
    if category == "op":
        return k.op(f"op{i}", start, dur * 3, tid=tid)
    if category == "note":
        return k.annotation(f"note{i}", start, dur * 4, tid=tid)
    if category == "call":
        return k.runtime("cudaLaunchKernel", start, dur, correlation=start + 1, tid=tid)
    return k.kernel(f"k{i}", start + 5, dur, correlation=start + 1)


def _behalf(events: list[dict[str, Any]], kernel: dict[str, Any]) -> str | None:
    """Return the last call with its id that started before it, else the first; the innermost op around that."""
    same = [
        e for e in events if e["cat"] == "cuda_runtime" and e["args"]["correlation"] == kernel["args"]["correlation"]
    ]
    if not same:
        return None
    before = [e for e in same if e["ts"] <= kernel["ts"]]
    call = before[-1] if before else same[0]
    end = call["ts"] + call["dur"]
    around = [
        e
        for e in events
        if e["cat"] in {"cpu_op", "user_annotation"}
        and e["tid"] == call["tid"]
        and e["ts"] <= call["ts"]
        and e["ts"] + e["dur"] >= end
    ]
    for category in ("cpu_op", "user_annotation"):
        inner = [e for e in around if e["cat"] == category]
        if inner:
            return str(max(inner, key=lambda e: (e["ts"], -e["dur"], events.index(e)))["name"])
    return None


def _nests(events: list[dict[str, Any]]) -> bool:
    """Return whether no two events of one thread overlap in part."""
    spans = [(e["tid"], e["ts"], e["ts"] + e["dur"]) for e in events if e["cat"] != "kernel"]
    return not any(a[0] == b[0] and a[1] < b[1] < a[2] < b[2] for a in spans for b in spans)


@pytest.mark.usefixtures("route")
@settings(max_examples=15)
@given(drawn=CALLS)
def test_op_of_a_kernel_is_the_innermost_around_the_call_that_set_it_off(tmp_path_factory, drawn):
    events = [_event(i, *fields) for i, fields in enumerate(drawn)]
    if not _nests(events):
        return
    trace = tables(tmp_path_factory.mktemp("x"), k.trace(events))
    ops = {row["name"]: row["op"] for row in trace.arrow("kernels").to_pylist()} if "kernels" in trace else {}
    assert ops == {e["name"]: _behalf(events, e) for e in events if e["cat"] == "kernel"}


@settings(max_examples=8)
@given(drawn=CALLS, shift=st.integers(0, 10**9))
def test_shifted_clock_changes_only_the_time_of_day(tmp_path_factory, drawn, shift):
    folder = tmp_path_factory.mktemp("x")
    events = [_event(i, *fields) for i, fields in enumerate(drawn)]
    moved = [{**e, "ts": e["ts"] + shift} for e in events]
    first, second = (tables(folder, k.trace(fields)) for fields in (events, moved))
    for name in set(first) - {"run"}:
        assert first.arrow(name).to_pylist() == second.arrow(name).to_pylist()


def test_a_hundred_thousand_events_nest_in_a_chain_and_in_a_row(tmp_path):
    file = tmp_path / "x.json"
    file.write_bytes(k.trace([k.op("a", 0, 1)]))
    raw = decode(file)
    rows = 50_000
    start = np.r_[np.arange(rows), np.arange(rows) * 2 + 3 * rows]
    dur = np.r_[2 * rows - 2 * np.arange(rows), np.ones(rows, np.int64)]
    frame = pl.concat([raw.events] * (2 * rows)).with_columns(
        pl.Series("start_ns", start.astype(np.int64)), pl.Series("dur_ns", dur.astype(np.int64))
    )
    made = dict(tables_of(type(raw)(raw.header, frame), file, ReadRequest(frozenset({"host_ops"}))))
    depth = made["host_ops"]["depth"].to_numpy()
    assert (depth[rows - 1], depth[rows], made["host_ops"].num_rows) == (rows - 1, 0, 2 * rows)


@pytest.mark.usefixtures("route")
def test_what_was_not_read_is_noted_in_alphabetical_order_by_every_decoder(tmp_path):
    odd = [{**k.op("a", 0, 1), "ph": phase} for phase in ("later", "early", "middle")]
    streams = [k.kernel("k", 2, 1, stream="no number"), k.kernel("k", 3, 1, stream=1.5)]
    notes = tables(tmp_path, k.trace([k.op("a", 0, 9), *odd, *streams])).arrow("notes").to_pylist()
    messages = [note["message"] for note in notes if note["code"] in {"values-repaired", "unread-events"}]
    assert [message.rpartition(": ")[2] if ":" in message else message[:-14] for message in messages] == [
        "values of stream that are no number.",
        "values of stream that are no whole number.",
        "Events of phase early",
        "Events of phase later",
        "Events of phase middle",
    ]
