"""Traceviz folders that another program wrote: ids that others refer to are those of rows."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analyses.builders import tables
from traceviz.core.errors import DamagedTraceError
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.trace.tables import save


def written(folder: Path) -> Path:
    copies = [(start, 5, "h2d", "pinned", "device", 8) for start in (5, 15)]
    save(tables(kernels=[(0, 10, "k"), (20, 10, "k")], memcpy=copies), folder)
    return folder


def change(folder: Path, name: str, column: str, values: list[int]) -> None:
    path = folder / f"{name}.parquet"
    table = pq.read_table(path)
    at = table.column_names.index(column)
    pq.write_table(table.set_column(at, column, pa.array(values, table.field(at).type)), path)


def read(folder: Path) -> dict[str, int]:
    return {name: table.num_rows for name, table in TracevizFolderReader().read(folder, ReadRequest())}


def test_a_folder_as_it_was_written_is_read(tmp_path):
    assert read(written(tmp_path / "t"))["kernels"] == 2


@pytest.mark.parametrize(
    ("name", "column", "values", "wrong"),
    [
        ("kernels", "device_id", [0, 1], 1),
        ("kernels", "device_id", [-1, 0], -1),
        ("kernels", "process_id", [2**31 - 1, 0], 2**31 - 1),
        ("processes", "process_id", [2**24 + 1], 2**24 + 1),
    ],
)
def test_an_id_of_nothing_is_refused_with_table_and_column(tmp_path, name, column, values, wrong):
    folder = written(tmp_path / "t")
    change(folder, name, column, values)
    with pytest.raises(
        DamagedTraceError, match=rf"Column {column} of .*{name}\.parquet holds {wrong}, which is the id"
    ):
        read(folder)


@pytest.mark.parametrize("span", [-1, 2**63 - 1, 60 * 86_400 * 10**9 + 1])
def test_a_span_below_0_or_above_60_days_is_refused(tmp_path, span):
    folder = written(tmp_path / "t")
    change(folder, "run", "span_ns", [span])
    with pytest.raises(DamagedTraceError, match=f"took {span} ns, which no capture takes"):
        read(folder)


def test_an_id_between_those_of_the_rows_is_refused_as_well(tmp_path):
    folder = tmp_path / "t"
    save(tables(kernels=[(0, 10, "k"), (20, 10, "k")], processes=[(0, "a", {"pid": 1}), (1, "b", {"pid": 2})]), folder)
    change(folder, "processes", "process_id", [0, 7])
    change(folder, "kernels", "process_id", [0, 7])
    assert not (folder / "threads.parquet").exists()  # no call, no thread, no row
    assert read(folder)["kernels"] == 2
    change(folder, "kernels", "process_id", [0, 3])
    with pytest.raises(DamagedTraceError, match=r"Column process_id of .*kernels\.parquet holds 3, which is the id"):
        read(folder)


def kept(folder: Path) -> tuple[list[tuple[int, int | None]], list[tuple[str, int]]]:
    """Return starts and durations of the kernels that those get who ask for tables, and the notes."""
    read_tables = dict(TracevizFolderReader().tables(folder, ReadRequest()))
    rows = [(row["start_ns"], row["dur_ns"]) for row in read_tables["kernels"].to_pylist()]
    return rows, [(row["code"], row["count"]) for row in read_tables["notes"].to_pylist()]


def test_what_ends_with_the_capture_stays_and_what_ends_1_nanosecond_later_has_no_duration(tmp_path):
    folder = written(tmp_path / "t")
    change(folder, "run", "span_ns", [30])
    assert kept(folder) == ([(0, 10), (20, 10)], [])
    change(folder, "kernels", "dur_ns", [31, 11])
    assert kept(folder) == ([(0, None), (20, None)], [("durations-out-of-range", 2)])
    change(folder, "kernels", "dur_ns", [2**62, 11])  # a duration of no capture does not hide the other
    assert kept(folder)[0] == [(0, None), (20, None)]


def test_what_begins_after_the_capture_is_left_out(tmp_path):
    folder = written(tmp_path / "t")
    change(folder, "run", "span_ns", [40])
    change(folder, "kernels", "start_ns", [30, 41])
    assert kept(folder) == ([(30, 10)], [("times-out-of-range", 1)])


def test_what_lies_after_the_capture_is_told_from_what_no_capture_holds(tmp_path):
    folder = written(tmp_path / "t")
    change(folder, "run", "span_ns", [40])
    change(folder, "kernels", "start_ns", [41, 2**62])
    change(folder, "memcpy", "dur_ns", [36, -1])
    read_notes = dict(TracevizFolderReader().tables(folder, ReadRequest()))["notes"].to_pylist()
    assert sorted(note["message"] for note in read_notes) == [
        "kernels: rows at times that no capture holds together, left out, such as 4611686018427387904 ns.",
        "kernels: rows that begin after the capture, left out, such as 41 ns.",
        "memcpy: rows that end after the capture, kept without a duration, such as 36 ns.",
        "memcpy: rows that last longer than any capture, or less than nothing, kept without a duration, such as -1 ns.",
    ]


def test_samples_and_windows_may_lie_beside_the_events(tmp_path):
    folder = tmp_path / "t"
    save(tables(kernels=[(0, 10, "k")], windows=[(5, 90, "all")], samples=[(95, "cpu", 1.0)]), folder)
    change(folder, "run", "span_ns", [10])
    read_tables = dict(TracevizFolderReader().tables(folder, ReadRequest()))
    assert [read_tables[name].num_rows for name in ("windows", "samples", "notes")] == [1, 1, 0]
    assert read_tables["windows"]["dur_ns"].to_pylist() == [90]


def test_a_folder_without_a_description_of_the_run_is_refused(tmp_path):
    folder = written(tmp_path / "t")
    manifest = json.loads((folder / "manifest.json").read_text())
    without = {name: rows for name, rows in manifest["tables"].items() if name != "run"}
    (folder / "manifest.json").write_text(json.dumps({**manifest, "tables": without}))
    with pytest.raises(DamagedTraceError) as raised:
        read(folder)
    assert "run.parquet does not describe a trace" in raised.value.what
    assert "It has 0 rows" in raised.value.why
