"""Traces with any contents of fields: they are read, or refused with a message, and the tables keep their contract."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.kineto import files as k
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.kineto.readers import KinetoReader
from traceviz.trace.tables import TraceTables

NASTY = st.sampled_from(
    [
        *(
            None,
            True,
            -1,
            0,
            2**15,
            2**31,
            2**63 - 1,
            -(2**63),
            2**64,
            10**17,
            1e300,
            -5.5,
            9.2e15,
            -9.2e15,
            float("nan"),
        ),
        *("", "x", "0x1f", "-7", "\0", "nccl", "Memcpy (", "ProfilerStep#" + "9" * 30, [], [1, 2], {}, {"a": 1}),
    ]
).map(deepcopy)  # what is put into an event may be spoilt itself
CATEGORIES = st.sampled_from(
    [
        *("cpu_op", "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_sync", "overhead", "python_function"),
        *("gpu_user_annotation", "user_annotation", "Trace", "unheard of", None, 5),
    ]
)
EVENTS = [
    k.step(1, 0, 100),
    k.op("a", 1, 5, external=3, shapes=[[1]], sequence=2),
    k.runtime("cudaLaunchKernel", 2, 1, correlation=4),
    k.kernel("k", 5, 3, correlation=4, external=3),
    k.copy(9, 2),
    k.fill(12, 1),
    k.sync("Event Sync", 13, 1),
    k.device_annotation("range", 3, 9),
    k.memory(4, 100, in_use=5),
    k.collective(20, 4),
    k.frame("f", 0, 50, number=1, parent=2),
    k.thread_name("t"),
    {"ph": "B", "name": "b", "pid": 1, "tid": 2, "ts": 3},
    {"ph": "E", "name": "b", "pid": 1, "tid": 2, "ts": 4},
]


@st.composite
def spoilt(draw: st.DrawFn) -> dict[str, Any]:
    """Return an event with foreign values in some fields."""
    event: dict[str, Any] = json.loads(json.dumps(draw(st.sampled_from(EVENTS))))
    for _ in range(draw(st.integers(0, 3))):
        field = draw(st.sampled_from(sorted(event)))
        if isinstance(event[field], dict) and event[field]:
            event[field][draw(st.sampled_from(sorted(event[field])))] = draw(NASTY)
        else:
            event[field] = draw(CATEGORIES if field == "cat" else NASTY)
    return event


HEADERS = st.dictionaries(
    st.sampled_from(["deviceProperties", "distributedInfo", "baseTimeNanoseconds", "cuda_runtime_version"]),
    NASTY | st.sampled_from([[{"id": 0}], [{"id": 2**40, "name": 5}], [5], {"rank": "x"}, {"rank": 2**33, "a": [{}]}]),
    max_size=2,
)


SPOILT = st.lists(spoilt(), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The folder for traces."""
    return tmp_path_factory.mktemp("hostile") / "spoilt.json"


@settings(max_examples=15)
@given(events=SPOILT, header=HEADERS)
def test_spoilt_fields_cost_values_and_never_the_reader(file, events, header):
    check(file, events, header)


@pytest.mark.slow
@settings(max_examples=120)
@given(events=SPOILT, header=HEADERS)
def test_spoilt_fields_of_hundreds_of_traces_never_cost_the_reader(file, events, header):
    check(file, events, header)


def check(file: Path, events: list[dict[str, Any]], header: dict[str, Any]) -> None:
    """Read a trace of ``events``: it is refused, or its rows lie in its span and refer to its processes."""
    file.write_bytes(k.trace(events, header))
    try:
        trace = TraceTables(dict(KinetoReader().read(file, ReadRequest())))
    except DamagedTraceError:
        return
    span = trace.run_facts()["span_ns"]
    for name in ("kernels", "memcpy", "memset", "cuda_api", "host_ops", "sync", "overhead", "steps"):
        for row in trace.arrow(name).to_pylist() if name in trace else []:
            assert 0 <= row["start_ns"] <= row["start_ns"] + (row["dur_ns"] or 0) <= span
            assert row["process_id"] < trace.rows("processes")


def test_half_of_a_surrogate_pair_in_the_facts_of_a_file_is_the_replacement_character(tmp_path):
    header = {
        "schemaVersion": "1\udc80",
        "trace_id": "\ud83d\ude00\ud800",
        "deviceProperties": [k.gpu(0, "A\udfff")],
        "note \ud800": ["\ud800"],
    }
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps({**header, "traceEvents": [k.kernel("k", 1, 2)]}))
    tables = TraceTables(dict(KinetoReader().read(path, ReadRequest())))
    assert tables.run_facts()["source_schema"] == "1\ufffd"
    assert tables.arrow("devices")["name"].to_pylist() == ["A\ufffd"]
    settings = dict(tables.settings.select("key", "value").collect().iter_rows())
    assert settings["trace_id"] == "\U0001f600\ufffd"
    assert settings["note \ufffd"] == '["\\ud800"]'
