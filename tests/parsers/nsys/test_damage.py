"""Exports that were damaged or that no profiler wrote: the trace stays if its rest is sound."""

import sqlite3
from contextlib import closing

import pyarrow.parquet as pq
import pytest

from tests.parsers.nsys.database import build, call, kernel, nvtx_range, process, to_parquet
from tests.support.traces import notes, read
from traceviz.core.errors import DamagedTraceError

KERNELS, RUNTIME, NVTX = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"
GPU = {"id": 0, "name": "A100", "smCount": 108, "maxWarpsPerSm": 64, "threadsPerWarp": 32, "totalMemory": 1 << 36}


@pytest.mark.parametrize(
    ("column", "cell", "ours"),
    [
        ("smCount", 108_000_000_756, "sm_count"),
        ("maxWarpsPerSm", 2**40, "max_threads_per_sm"),
        ("threadsPerWarp", 2**62, "max_threads_per_sm"),
    ],
)
def test_a_fact_of_a_device_that_its_column_cannot_hold_is_null_and_the_rest_is_read(tmp_path, column, cell, ours):
    tables = {KERNELS: [kernel(1, 2)], "TARGET_INFO_GPU": [{**GPU, column: cell}]}
    trace = read(build(tmp_path / "x.sqlite", tables, names=["gemm"]))
    (device,) = trace.arrow("devices").to_pylist()
    assert (device[ours], device["name"], device["memory_bytes"]) == (None, "A100", 1 << 36)
    assert trace.rows("kernels") == 1
    assert notes(trace)["value-unfit"].startswith(f"devices.{ours}: values that the column cannot hold, left out, such")


def test_a_device_number_of_63_bits_is_a_device_without_a_number(tmp_path):
    rows = [{**kernel(1, 2), "deviceId": 2**63 - 1}, {**kernel(3, 4), "globalPid": process(9), "deviceId": 2**63 - 1}]
    trace = read(build(tmp_path / "x.sqlite", {KERNELS: rows}, names=["gemm"]))
    assert trace.arrow("devices")["ordinal"].to_pylist() == [None]
    assert trace.arrow("kernels")["device_id"].to_pylist() == [0, 0]
    assert "value-unfit" in notes(trace)


def test_more_devices_than_device_ids_are_refused(tmp_path):
    rows = [{**kernel(number, number + 1), "deviceId": number} for number in range(2**15 + 1)]
    with pytest.raises(DamagedTraceError, match="Column device_id of table devices cannot hold 32768"):
        read(build(tmp_path / "x.sqlite", {KERNELS: rows}, names=["gemm"]))


def test_ranges_without_the_column_of_their_kind_are_read_and_noted(tmp_path):
    path = build(tmp_path / "x.sqlite", {NVTX: [nvtx_range(1, 5, text="step")], RUNTIME: [call(1, 2)]}, names=["f"])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"ALTER TABLE {NVTX} DROP COLUMN eventType")
    trace = read(path)
    assert (trace.rows("nvtx"), trace.rows("cuda_api")) == (1, 1)
    assert "no column eventType" in notes(trace)["nvtx-kinds-unknown"]


def test_a_damaged_page_of_a_parquet_folder_is_an_error_that_names_the_table(tmp_path):
    rows = [call(number, number + 1) for number in range(2000)]
    folder = to_parquet(build(tmp_path / "x.sqlite", {RUNTIME: rows}, names=["f"]), tmp_path / "x_pqtdir")
    file = folder / f"{RUNTIME}.parquet"
    pq.write_table(pq.read_table(file), file, compression="zstd", use_dictionary=False)
    content = bytearray(file.read_bytes())
    content[40:140] = bytes(100)
    file.write_bytes(content)
    with pytest.raises(DamagedTraceError, match=f"Table {RUNTIME} of x_pqtdir is damaged"):
        read(folder)


def test_a_parquet_file_with_two_columns_of_one_name_is_an_error_that_names_both(tmp_path):
    folder = to_parquet(build(tmp_path / "x.sqlite", {RUNTIME: [call(1, 2)]}, names=["f"]), tmp_path / "x_pqtdir")
    file = folder / f"{RUNTIME}.parquet"
    table = pq.read_table(file)
    pq.write_table(table.append_column("start", table["start"]), file)
    with pytest.raises(DamagedTraceError, match="damaged") as raised:
        read(folder)
    assert raised.value.why == "Two columns are called 'start'."


def test_a_table_of_texts_without_its_texts_is_an_error_that_names_the_column(tmp_path):
    folder = to_parquet(build(tmp_path / "x.sqlite", {KERNELS: [kernel(1, 2)]}, names=["k"]), tmp_path / "d")
    texts = pq.read_table(folder / "StringIds.parquet")
    pq.write_table(texts.rename_columns(["id", "other"]), folder / "StringIds.parquet")
    with pytest.raises(DamagedTraceError, match=r"Table StringIds of d is damaged. It has no column value."):
        read(folder)


@pytest.mark.parametrize("as_parquet", [False, True])
@pytest.mark.parametrize(
    ("wrong", "code", "left"),
    [
        (kernel(-(2**63), 5), "times-out-of-range", [(0, 10), (50, 10)]),
        (kernel(2**63 - 1, 2**63 - 1), "times-out-of-range", [(0, 10), (50, 10)]),
        (kernel(130, 2**63 - 1), "durations-out-of-range", [(0, 10), (30, None), (50, 10)]),
        (kernel(130, -(2**63)), "negative-duration", [(0, 10), (30, None), (50, 10)]),
        (kernel(130, -1), "negative-duration", [(0, 10), (30, None), (50, 10)]),
    ],
)
def test_1_corrupt_time_leaves_time_zero_and_the_span_of_60_ns_as_they_are(tmp_path, wrong, code, left, as_parquet):
    tables = {KERNELS: [kernel(100, 110), wrong, kernel(150, 160)], RUNTIME: [call(101, 102)]}
    path = build(tmp_path / "x.sqlite", tables, names=["f"])
    trace = read(to_parquet(path, tmp_path / "x_pqtdir") if as_parquet else path)
    kernels = trace.arrow("kernels").select(["start_ns", "dur_ns"]).to_pylist()
    assert [(row["start_ns"], row["dur_ns"]) for row in kernels] == left
    assert trace.run_facts()["span_ns"] == 60
    assert [(row["code"], row["count"]) for row in trace.arrow("notes").to_pylist()] == [(code, 1)]


def test_a_recording_of_29_days_has_no_note(tmp_path):
    month = 29 * 86_400 * 10**9
    trace = read(build(tmp_path / "x.sqlite", {KERNELS: [kernel(5, 10), kernel(month, month + 5)]}, names=["f"]))
    assert (trace.run_facts()["span_ns"], trace.rows("notes")) == (month, 0)


def test_an_export_without_a_plausible_time_is_refused(tmp_path):
    path = build(tmp_path / "x.sqlite", {KERNELS: [kernel(2**63 - 1, 2**63 - 1)] * 3}, names=["f"])
    with pytest.raises(DamagedTraceError, match=r"The times of x\.sqlite are impossible"):
        read(path)
