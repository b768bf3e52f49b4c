"""Traceviz folders that somebody else wrote: ids that others refer to are those of rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analyses.builders import tables
from traceviz.errors import DamagedTraceError
from traceviz.parsers.base import ReadOptions
from traceviz.parsers.traceviz_folder import TracevizFolderReader
from traceviz.tables import save


def written(folder: Path) -> Path:
    save(tables(kernels=[(0, 10, "k"), (20, 10, "k")]), folder)
    return folder


def change(folder: Path, name: str, column: str, values: list[int]) -> None:
    path = folder / f"{name}.parquet"
    table = pq.read_table(path)
    at = table.column_names.index(column)
    pq.write_table(table.set_column(at, column, pa.array(values, table.field(at).type)), path)


def read(folder: Path) -> dict[str, int]:
    return {name: table.num_rows for name, table in TracevizFolderReader().read(folder, ReadOptions())}


def test_a_folder_as_it_was_written_is_read(tmp_path: Path) -> None:
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
def test_an_id_of_nothing_is_refused_with_table_and_column(
    tmp_path: Path, name: str, column: str, values: list[int], wrong: int
) -> None:
    folder = written(tmp_path / "t")
    change(folder, name, column, values)
    with pytest.raises(
        DamagedTraceError, match=rf"Column {column} of .*{name}\.parquet holds {wrong}, which is the id"
    ):
        read(folder)


@pytest.mark.parametrize("span", [-1, 2**63 - 1, 60 * 86_400 * 10**9 + 1])
def test_a_span_below_0_or_above_60_days_is_refused(tmp_path: Path, span: int) -> None:
    folder = written(tmp_path / "t")
    change(folder, "run", "span_ns", [span])
    with pytest.raises(DamagedTraceError, match=f"took {span} ns, which no capture takes"):
        read(folder)


def test_an_id_between_those_of_the_rows_is_refused_as_well(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    save(tables(kernels=[(0, 10, "k"), (20, 10, "k")], processes=[(0, "a", {"pid": 1}), (1, "b", {"pid": 2})]), folder)
    change(folder, "processes", "process_id", [0, 7])
    change(folder, "kernels", "process_id", [0, 7])
    change(folder, "threads", "process_id", [0] * pq.read_metadata(folder / "threads.parquet").num_rows)
    assert read(folder)["kernels"] == 2
    change(folder, "kernels", "process_id", [0, 3])
    with pytest.raises(DamagedTraceError, match=r"Column process_id of .*kernels\.parquet holds 3, which is the id"):
        read(folder)
