"""Tables that go to files in pieces are those that memory would hold, row by row and note by note."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.nsys.database import NEW, build, process, thread
from traceviz import api
from traceviz.core.process.temporary import HeldFile
from traceviz.parsers.base import ReadRequest
from traceviz.parsers.nsys import spilled
from traceviz.parsers.nsys.readers import NsysSqliteReader
from traceviz.parsers.shared.arrays.native import decoder
from traceviz.parsers.shared.sqlite import whole_tables
from traceviz.trace import spill
from traceviz.trace.spill import Spill, collected
from traceviz.trace.tables import TraceTables

pytestmark = pytest.mark.skipif(decoder() is None, reason="the package was built without a C compiler")
KERNELS, CALLS = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME"
NAMES = ["a", "b", "cudaLaunchKernel_v7000", "cudaGraphLaunch"]


def kernel(start: int, end: int | None, name: int = 1, grid: int | None = 3, correlation: int = 0) -> dict:
    where = {"deviceId": start % 2, "contextId": 1, "streamId": 7, "globalPid": process(5)}
    return {"start": start, "end": end, "demangledName": name, "gridX": grid, "correlationId": correlation, **where}


def call(start: int, end: int, correlation: int, name: int = 3, owner: int | None = thread(5, 6)) -> dict:
    what = {"eventClass": 0, "correlationId": correlation, "nameId": name, "returnValue": 0}
    return {"start": start, "end": end, "globalTid": owner, **what}


def read(path: Path, room: int | None) -> TraceTables:
    taken = None if room is None else Spill(room)
    return collected(NsysSqliteReader().tables(path, ReadRequest(spill=taken)), taken)


@pytest.fixture
def tiny(monkeypatch) -> None:
    """Pieces of a page or two, and no table too small to be worth a file."""
    monkeypatch.setattr(spilled, "PIECE_ROWS", 20)
    monkeypatch.setattr(spill, "_WORTH_A_FILE", 0)
    monkeypatch.setattr(whole_tables, "RANGE_BYTES", 4096)


def assert_same(path: Path) -> TraceTables:
    """Return the tables in files, equal to those in memory."""
    held, filed = read(path, None), read(path, 0)
    assert list(held) == list(filed)
    for name in held:
        one, other = (tables.arrow(name) for tables in (held, filed))
        assert one.schema.equals(other.schema)
        assert one.to_pylist() == other.to_pylist(), name
    return filed


def pieces_of(path: Path, monkeypatch) -> dict[str, int]:
    """Return the number of pieces of each table that went to a file in pieces."""
    seen: dict[str, int] = {}
    look = spilled._check_pieces

    def counted(name, *given):
        for piece in look(name, *given):
            seen[name] = seen.get(name, 0) + 1
            yield piece

    monkeypatch.setattr(spilled, "_check_pieces", counted)
    read(path, 0)
    return seen


def test_a_table_larger_than_its_room_goes_to_a_file_in_pieces(tmp_path, tiny, monkeypatch):
    rows = [kernel(10 * number + (25 if number % 7 == 3 else 0), 10 * number + 40) for number in range(2_000)]
    path = build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, NAMES)
    filed = assert_same(path)
    assert isinstance(filed.sources["kernels"], HeldFile)
    assert filed.rows("kernels") == 2_000
    assert pieces_of(path, monkeypatch)["kernels"] > 10


def test_repairs_of_all_pieces_are_noted_once(tmp_path, tiny):
    kernels = [kernel(10 * n, 10 * n - 5 if n % 9 == 0 else 10 * n + 5, 1 if n % 4 else 77, 2**40) for n in range(900)]
    calls = [call(10 * n, 10 * n + 3, n + 1, 3, None if n % 3 == 0 else thread(5, 6 + n % 5)) for n in range(900)]
    filed = assert_same(build(tmp_path / "x.sqlite", {KERNELS: kernels, CALLS: calls}, NEW, NAMES))
    notes = {(row["code"], row["message"].split(":")[0]): row["count"] for row in filed.arrow("notes").to_pylist()}
    assert notes["negative-duration", "kernels"] == 100
    assert notes["name-unknown", "kernels"] == 225
    assert notes["value-too-large", "kernels.grid_x"] == 900
    assert notes["owner-unknown", "cuda_api"] == 300


def test_calls_recorded_twice_are_counted_once_across_pieces(tmp_path, tiny):
    calls = [call(10 * n, 10 * n + 5, n // 2 + 1, 3) | {"end": 10 * n + 25} for n in range(600)]
    path = build(tmp_path / "x.sqlite", {CALLS: calls}, NEW, NAMES)
    assert assert_same(path).rows("cuda_api") == 600
    inside = [row for n in range(300) for row in (call(10 * n, 10 * n + 8, n + 1), call(10 * n + 1, 10 * n + 3, n + 1))]
    filed = assert_same(build(tmp_path / "y.sqlite", {CALLS: inside}, NEW, NAMES))
    assert filed.rows("cuda_api") == 300


def test_a_table_out_of_all_order_is_sorted_all_the_same(tmp_path, tiny):
    rows = [kernel((number * 7_919) % 2_003, 9_000) for number in range(2_000)]
    filed = assert_same(build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, NAMES))
    assert filed.arrow("kernels")["start_ns"].to_pylist() == sorted(filed.arrow("kernels")["start_ns"].to_pylist())


def test_values_that_no_capture_can_hold_are_left_out_of_files_too(tmp_path, tiny):
    rows = [kernel(10 * number, 10 * number + 5, grid=-3 if number == 1_234 else 4) for number in range(2_000)]
    filed = assert_same(build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, NAMES))
    assert filed.arrow("kernels")["grid_x"].null_count == 1


TIMES = st.integers(0, 400)


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.tuples(TIMES, TIMES, st.integers(1, 6), st.sampled_from([None, 1, 2**31, -1])), max_size=120),
    st.lists(st.tuples(TIMES, TIMES, st.integers(0, 50), st.integers(1, 5)), max_size=120),
)
def test_any_trace_reads_the_same_from_files(tmp_path_factory, kernels, calls):
    path = tmp_path_factory.getbasetemp() / "spilled.sqlite"
    path.unlink(missing_ok=True)
    tables = {KERNELS: [kernel(*row) for row in kernels], CALLS: [call(*row) for row in calls]}
    build(path, tables, NEW, NAMES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spilled, "PIECE_ROWS", 20)
        patch.setattr(spill, "_WORTH_A_FILE", 0)
        assert_same(path)


def test_the_limit_of_memory_decides(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(spill, "resident", lambda: 10**9)
    rows = [kernel(10 * number, 10 * number + 5) for number in range(2_000)]
    path = build(tmp_path / "x.sqlite", {KERNELS: rows}, NEW, NAMES)
    roomy = api.open_trace(path, read=api.ReadOptions(max_memory=4 * 10**9))
    assert isinstance(roomy.sources["kernels"], pa.Table)
    tight = api.open_trace(path, read=api.ReadOptions(max_memory=10**9 + 3))
    assert isinstance(tight.sources["kernels"], HeldFile)
    assert tight.arrow("kernels").to_pylist() == roomy.arrow("kernels").to_pylist()
