"""Files of tables state when the events of each part begin and end, so that a time window reads only what it needs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analyses.builders import tables
from traceviz import api
from traceviz import tables as stored
from traceviz.parsers.base import ReadOptions
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.row_groups import Window, groups_in, stated, times_of
from traceviz.selection import Selection
from traceviz.tables import save

KERNELS = [(0, 100, "reaches over all others"), (10, 5, "k"), (20, 5, "k"), (30, 0, "k"), (40, 5, "k"), (50, 5, "k")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose kernels lie in row groups of two rows: from 0 to 100, 20 to 30, and 40 to 55."""
    monkeypatch.setattr(stored, "ROW_GROUP", 2)
    save(tables(span_ns=200, kernels=KERNELS), tmp_path / "t")
    return tmp_path / "t"


def starts(folder: Path, window: Window | None) -> list[int]:
    read = dict(TracevizFolderReader().read(folder, ReadOptions(window=window)))
    return read["kernels"]["start_ns"].to_pylist()


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (None, [0, 10, 20, 30, 40, 50]),
        ((None, 20), [0, 10]),
        ((None, 21), [0, 10, 20, 30]),
        ((30, None), [0, 10, 20, 30, 40, 50]),
        ((31, 40), [0, 10]),
        ((101, None), []),
        ((56, 60), [0, 10]),
    ],
)
def test_parts_are_left_out_only_where_all_their_events_lie_outside_of_the_window(folder, window, expected):
    assert starts(folder, window) == expected


def test_a_report_of_a_window_is_the_same_whether_parts_were_left_out_or_not(folder, tmp_path, monkeypatch):
    window = Selection(15, 35)
    report = api.report_on(folder, selection=window)
    monkeypatch.setattr(Selection, "window", None)
    whole = api.report_on(folder, selection=window)
    assert report == whole
    assert whole.run


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"traceviz.times": "no JSON"},
        {"traceviz.times": "[[0, 1]]"},
        {"traceviz.times": "[[0, 1], [2, 3], 7]"},
        {"traceviz.times": json.dumps([[0, None]] * 3)},
        {"traceviz.times": "[" * 100_000},
    ],
)
def test_a_file_that_does_not_say_when_its_parts_begin_and_end_is_read_whole(folder, metadata):
    path = folder / "kernels.parquet"
    table = pq.read_table(path)
    with pq.ParquetWriter(path, table.schema) as writer:
        for begin in (0, 2, 4):
            writer.write_table(table.slice(begin, 2))
        writer.add_key_value_metadata(metadata)
    assert starts(folder, (101, None)) == [0, 10, 20, 30, 40, 50]


def test_the_times_of_rows_without_a_duration_are_those_of_their_starts():
    samples = pa.table({"start_ns": [3, 8, 5]})
    unended = pa.table({"start_ns": [3, 8], "dur_ns": [9, None]})
    assert [times_of(samples), times_of(unended), times_of(pa.table({"device_id": [0]}))] == [(3, 8), (3, 12), None]
    assert stated([(3, 12)]) == {"traceviz.times": "[[3, 12]]"}


def test_files_state_the_order_of_their_rows(folder):
    metadata = pq.read_metadata(folder / "kernels.parquet")
    assert metadata.row_group(2).sorting_columns == (pq.SortingColumn(metadata.schema.names.index("start_ns")),)
    assert groups_in(metadata, (101, None)) == []
    assert pq.read_metadata(folder / "devices.parquet").row_group(0).sorting_columns == ()


def test_which_processes_used_a_device_is_told_by_events_of_any_time():
    assert Selection(5, 9).window == (5, 9)
    assert (Selection(5, 9, device=0).window, Selection(5, 9, rank=0).window) == (None, None)
