"""A time window of a folder reads only those parts of its files that hold events of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.analyses.builders import tables
from traceviz import api
from traceviz.parsers.base import ReadOptions
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.trace import tables as stored
from traceviz.trace.row_groups import Window, groups_in
from traceviz.trace.selection import Selection
from traceviz.trace.tables import save
from traceviz.untrusted.parquet import open_parquet

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


def test_events_without_a_duration_and_samples_are_where_they_begin(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "ROW_GROUP", 1)
    calls = [(5, None, "read"), (25, None, "read")]
    save(tables(span_ns=50, os_calls=calls, samples=[(7, "cpu", 1.0), (30, "cpu", 2.0)]), tmp_path / "t")
    for name, expected in (("os_calls", [1]), ("samples", [1]), ("run", [0])):
        with open_parquet(tmp_path / "t" / f"{name}.parquet") as file:
            assert groups_in(file, (20, 40)) == expected


def test_a_report_of_a_window_is_the_same_whether_parts_were_left_out_or_not(folder, monkeypatch):
    window = Selection(15, 35)
    report = api.report_on(folder, selection=window)
    monkeypatch.setattr(Selection, "window", None)
    assert api.report_on(folder, selection=window) == report


def test_files_state_the_order_of_their_rows(folder):
    metadata = pq.read_metadata(folder / "kernels.parquet")
    assert metadata.row_group(2).sorting_columns == (pq.SortingColumn(metadata.schema.names.index("start_ns")),)
    assert pq.read_metadata(folder / "devices.parquet").row_group(0).sorting_columns == ()


def test_which_processes_used_a_device_is_told_by_events_of_any_time():
    assert Selection(5, 9).window == (5, 9)
    assert (Selection(5, 9, device=0).window, Selection(5, 9, rank=0).window) == (None, None)
