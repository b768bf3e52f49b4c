"""The one door to a trace: what is checked, cast and sorted, and how traces are stored."""

import json
import shutil
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analyses.builders import tables
from traceviz.core.errors import DamagedTraceError, MissingTableError, OutputExistsError, SchemaError, UsageError
from traceviz.trace import schema
from traceviz.trace.spill import collected, spill_beyond
from traceviz.trace.tables import TraceTables, conform, load, read_manifest, save, with_known_texts, write_tables
from traceviz.trace.trace_folder import MANIFEST, is_trace_folder

OS_CALLS = {
    "start_ns": [30, 10, 20],
    "dur_ns": [1, None, 3],
    "process_id": [0, 0, 0],
    "thread_id": [0, 0, 1],
    "name": ["read", "poll", "read"],
}


def os_calls(**changed) -> pa.Table:
    return pa.table({**OS_CALLS, **changed})


def run(span_ns: int = 33) -> pa.Table:
    columns = {c.name: pa.nulls(1, c.type) for c in schema.table("run").columns}
    return pa.table({**columns, "format": ["nsys"], "producer": ["nsys"], "span_ns": [span_ns], "reader": ["test"]})


def trace() -> TraceTables:
    return TraceTables({"run": run(), "os_calls": os_calls(), "memset": schema.table("memset").empty()})


def test_conform_casts_to_the_declared_types_and_order_of_columns() -> None:
    shuffled = os_calls().select(["name", "thread_id", "dur_ns", "start_ns", "process_id"])
    assert conform("os_calls", shuffled).schema.equals(schema.table("os_calls").arrow)


def test_conform_sorts_whole_rows_by_start() -> None:
    table = conform("os_calls", os_calls())
    assert table.column("start_ns").to_pylist() == [10, 20, 30]
    assert table.column("name").to_pylist() == ["poll", "read", "read"]
    assert table.column("dur_ns").to_pylist() == [None, 3, 1]


def test_conform_drops_columns_that_are_not_declared() -> None:
    assert "extra" not in conform("os_calls", os_calls(extra=[1, 2, 3])).column_names


def test_conform_sorts_a_table_of_several_chunks() -> None:
    once = conform("os_calls", os_calls())
    both = conform("os_calls", pa.concat_tables([once, once]))
    assert both.column("start_ns").to_pylist() == [10, 10, 20, 20, 30, 30]


def test_columns_of_all_kinds_are_sorted_with_their_nulls() -> None:
    order = [5, 3, 8, 1, 1, 9, 0, 2]
    columns = {
        "start_ns": pa.array(order),
        "dur_ns": pa.array([None if start % 2 else 10 * start for start in order]),
        "device_id": pa.array([0] * 8, pa.int16()),
        "process_id": pa.array([start % 3 for start in order], pa.int32()),
        "name": pa.array([f"kernel {start}" for start in order]).dictionary_encode(),
        "achieved_occupancy": pa.array([None if start == 3 else start / 2 for start in order]),
    }
    table = conform("kernels", pa.table(columns).slice(1, 7))  # columns that start inside their memory
    table.validate(full=True)
    by_start = sorted(order[1:])
    assert table["start_ns"].to_pylist() == by_start == [0, 1, 1, 2, 3, 8, 9]
    assert table["dur_ns"].to_pylist() == [None if start % 2 else 10 * start for start in by_start]
    assert table["process_id"].to_pylist() == [start % 3 for start in by_start]
    assert table["device_id"].to_pylist() == [0] * 7
    assert table["name"].to_pylist() == [f"kernel {start}" for start in by_start]
    assert table["achieved_occupancy"].to_pylist() == [None if start == 3 else start / 2 for start in by_start]
    assert table["grid_x"].null_count == 7


def test_rows_of_equal_starts_keep_their_order_in_tables_longer_than_a_stretch(monkeypatch) -> None:
    monkeypatch.setattr("traceviz.trace.tables.ROW_GROUP", 7)
    starts = [number // 3 for number in range(60)][::-1]
    table = conform("os_calls", os_calls_at(starts))
    assert table["dur_ns"].to_pylist() == sorted(range(60), key=starts.__getitem__)


def os_calls_at(starts: list[int]) -> pa.Table:
    rows = len(starts)
    owner = {"process_id": [0] * rows, "thread_id": [0] * rows}
    return pa.table({"start_ns": starts, "dur_ns": list(range(rows)), **owner, "name": ["read"] * rows})


def test_tables_that_memory_has_no_room_for_go_to_files_that_go_with_the_trace(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("traceviz.trace.spill.resident", lambda: 0)
    large = os_calls_at(list(range(60_000, 0, -1)))
    kept = collected([("run", run()), ("os_calls", large)], spill_beyond(10**9))
    assert (list(tmp_path.iterdir()), kept.rows("os_calls")) == ([], 60_000)
    spilled = collected([("run", run()), ("os_calls", large)], spill_beyond(10**6))
    (folder,) = tmp_path.iterdir()
    assert [path.name for path in folder.iterdir()] == ["os_calls.parquet"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert spilled.arrow("os_calls").equals(kept.arrow("os_calls"))
    assert spilled.os_calls.select("start_ns").collect().height == 60_000
    another = spilled.replace({"run": run(34)})
    del spilled
    assert another.rows("os_calls") == 60_000
    del another
    assert list(tmp_path.iterdir()) == []


def test_conform_accepts_dictionaries_of_other_index_types() -> None:
    names = pa.array(["b", "a", "b"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    assert conform("os_calls", os_calls(name=names)).column("name").type == schema.NAME


def test_missing_columns_that_must_be_there_are_named() -> None:
    with pytest.raises(SchemaError, match=r"lacks the columns thread_id, name\."):
        conform("os_calls", os_calls().drop(["name", "dur_ns", "thread_id"]))


def test_a_missing_column_that_may_be_null_is_filled_with_nulls() -> None:
    table = conform("os_calls", os_calls().drop(["dur_ns"]))
    assert table.schema.equals(schema.table("os_calls").arrow)
    assert table.column("dur_ns").to_pylist() == [None, None, None]


def test_a_null_where_none_may_be_is_refused() -> None:
    with pytest.raises(SchemaError, match="column name may not hold nulls"):
        conform("os_calls", os_calls(name=["a", None, "b"]))


@pytest.mark.parametrize(("column", "values"), [("thread_id", ["x", "y", "z"]), ("thread_id", [2**40, 1, 2])])
def test_values_that_cannot_be_cast_are_refused(column: str, values: list) -> None:
    with pytest.raises(SchemaError, match=f"column {column} is not int32"):
        conform("os_calls", os_calls(**{column: values}))


def test_values_of_a_type_that_has_no_cast_are_refused() -> None:
    with pytest.raises(SchemaError, match="column name is not dictionary"):
        conform("os_calls", os_calls(name=[[1], [2], [3]]))


def test_an_undeclared_table_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="no table 'kernel'"):
        TraceTables({"kernel": os_calls()})
    with pytest.raises(SchemaError, match="Undeclared tables: kernel"):
        TraceTables({"kernel": Path("kernel.parquet")})


def test_tables_that_every_trace_has_are_there_and_empty() -> None:
    tables = TraceTables({})
    assert tuple(tables) == schema.REQUIRED
    assert [tables.rows(name) for name in tables] == [0] * len(schema.REQUIRED)


def test_absent_is_not_empty() -> None:
    tables = trace()
    assert "memset" in tables
    assert "kernels" not in tables
    assert tables.rows("memset") == tables.rows("kernels") == 0
    assert tables.memset.collect().height == 0
    with pytest.raises(MissingTableError, match=r"no table 'kernels'.*Present: .*os_calls"):
        _ = tables.kernels


def test_a_missing_table_is_also_an_attribute_error_so_that_hasattr_works() -> None:
    assert not hasattr(trace(), "kernels")
    assert hasattr(trace(), "os_calls")
    assert not hasattr(trace(), "no_such_table")


def test_an_attribute_is_a_lazy_frame() -> None:
    calls = trace().os_calls
    assert isinstance(calls, pl.LazyFrame)
    assert calls.select(pl.col("dur_ns").sum()).collect().item() == 4


def test_replace_leaves_the_original_as_it_was() -> None:
    tables = trace()
    changed = tables.replace({"os_calls": os_calls().slice(0, 1)})
    assert (tables.rows("os_calls"), changed.rows("os_calls")) == (3, 1)
    assert type(changed) is TraceTables


def test_run_facts_are_the_row_of_the_run() -> None:
    assert trace().run_facts()["span_ns"] == 33
    assert TraceTables({}).run_facts() == {}


def test_saving_and_loading_gives_the_same_tables(tmp_path: Path) -> None:
    tables = trace()
    save(tables, tmp_path / "t", provenance={"source": "x.sqlite"})
    loaded = load(tmp_path / "t")
    assert tuple(loaded) == tuple(tables)
    for name in tables:
        assert loaded.arrow(name).equals(tables.arrow(name)), name
        assert loaded.rows(name) == tables.rows(name)
        assert loaded.scan(name).collect().height == tables.rows(name)
    assert read_manifest(tmp_path / "t")["source"] == "x.sqlite"


@pytest.mark.parametrize("name", ["run[1]", "a*b", "what?"])
def test_folders_may_have_names_that_read_like_patterns(tmp_path: Path, name: str) -> None:
    save(trace(), tmp_path / name)
    assert load(tmp_path / name).scan("os_calls").collect().height == trace().rows("os_calls")


def test_unsorted_tables_are_written_in_order_one_row_group_at_a_time(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("traceviz.trace.tables.ROW_GROUP", 2)
    columns = {"process_id": [0] * 5, "thread_id": [0] * 5}
    names = pa.chunked_array([pa.array(["a", "b"]), pa.array(["c", "a", "b"])])
    rows = pa.table({"start_ns": [50, 10, 40, 10, 30], "dur_ns": [1, None, 3, 4, 5], "name": names, **columns})
    write_tables(tmp_path, [("os_calls", rows)], {})
    written = pq.ParquetFile(tmp_path / "os_calls.parquet")
    assert written.metadata.num_row_groups == 3
    assert written.read().column("dur_ns").to_pylist() == [None, 4, 5, 3, 1]
    assert load(tmp_path).arrow("os_calls").column("name").to_pylist() == ["b", "a", "b", "c", "a"]
    starts = [written.metadata.row_group(index).column(0).statistics for index in range(3)]
    assert [(group.min, group.max) for group in starts] == [(10, 10), (30, 40), (50, 50)]


def test_a_folder_is_replaced_only_with_force_and_only_if_it_is_ours(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    save(trace(), folder)
    with pytest.raises(OutputExistsError):
        save(TraceTables({}), folder)
    save(TraceTables({"run": run()}), folder, force=True)
    assert load(folder).rows("os_calls") == 0
    (folder / MANIFEST).unlink()
    with pytest.raises(OutputExistsError, match="not a traceviz folder"):
        save(trace(), folder, force=True)


def test_a_failure_while_writing_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    class FailsAtSecond(pq.ParquetWriter):
        def write_table(self, *arguments) -> None:
            written.append(arguments)
            if len(written) == 2:
                raise KeyboardInterrupt
            super().write_table(*arguments)

    monkeypatch.setattr(pq, "ParquetWriter", FailsAtSecond)
    with pytest.raises(KeyboardInterrupt):
        save(trace(), tmp_path / "t")
    assert len(written) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content", [None, "", "[1]", '{"kind": "other"}', "{", "\ud800".encode("utf-8", "surrogatepass")]
)
def test_a_folder_without_a_proper_manifest_is_not_ours(tmp_path: Path, content: str | bytes | None) -> None:
    if content is not None:
        (tmp_path / MANIFEST).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert not is_trace_folder(tmp_path)
    with pytest.raises(DamagedTraceError, match=MANIFEST.replace(".", r"\.")):
        load(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(trace(), tmp_path / "t")
    return tmp_path / "t"


def change_manifest(folder: Path, **changes) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, **changes}))


def test_a_folder_of_a_newer_schema_says_so(folder: Path) -> None:
    change_manifest(folder, schema_version=schema.SCHEMA_VERSION + 1)
    message = rf"schema version {schema.SCHEMA_VERSION + 1}; this traceviz reads 1 to {schema.SCHEMA_VERSION}"
    with pytest.raises(DamagedTraceError, match=rf"{message}\..*Install a newer traceviz"):
        load(folder)


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.5])
def test_a_folder_of_no_schema_at_all_is_refused(folder: Path, version) -> None:
    change_manifest(folder, schema_version=version)
    with pytest.raises(DamagedTraceError, match=f"schema version {version}; this traceviz reads 1 to"):
        load(folder)


@pytest.mark.parametrize("version", range(1, schema.SCHEMA_VERSION + 1))
def test_folders_of_all_schemas_so_far_are_read(folder: Path, version: int) -> None:
    change_manifest(folder, schema_version=version)
    assert load(folder).rows("os_calls") == 3


@pytest.mark.parametrize("bytes_left", [None, -9])
def test_a_missing_or_truncated_file_is_named(folder: Path, bytes_left: int | None) -> None:
    path = folder / "os_calls.parquet"
    content = path.read_bytes()
    path.unlink()
    if bytes_left is not None:
        path.write_bytes(content[:bytes_left])
    with pytest.raises(DamagedTraceError, match=r"os_calls\.parquet cannot be read"):
        load(folder)


def test_a_file_with_other_rows_than_the_manifest_says_is_refused(folder: Path) -> None:
    change_manifest(folder, tables={"os_calls": 4})
    with pytest.raises(DamagedTraceError, match="holds 3 rows; the manifest says 4"):
        load(folder)


def drop_from_file(path: Path, *columns: str) -> None:
    pq.write_table(pq.read_table(path).drop(list(columns)), path)


def test_a_file_that_lacks_a_column_that_must_be_there_is_refused(folder: Path) -> None:
    drop_from_file(folder / "os_calls.parquet", "dur_ns", "thread_id")
    with pytest.raises(DamagedTraceError, match=r"lacks the columns thread_id\."):
        load(folder)


def test_a_column_that_a_file_lacks_and_that_may_be_null_is_null_however_it_is_read(folder: Path) -> None:
    whole = load(folder).arrow("os_calls")
    drop_from_file(folder / "os_calls.parquet", "dur_ns")
    tables = load(folder)
    assert tables.arrow("os_calls").schema.equals(schema.table("os_calls").arrow)
    assert tables.arrow("os_calls").column("dur_ns").to_pylist() == [None, None, None]
    assert tables.arrow("os_calls").drop(["dur_ns"]).equals(whole.drop(["dur_ns"]))
    scanned = tables.os_calls.collect()
    assert scanned.columns == schema.table("os_calls").arrow.names
    assert (scanned.schema["dur_ns"], scanned["dur_ns"].to_list()) == (pl.Int64, [None, None, None])
    assert tables.os_calls.filter(pl.col("dur_ns").is_null()).select(pl.len()).collect().item() == 3


def test_names_that_a_file_lacks_are_null_names_in_both_views(tmp_path: Path) -> None:
    kernels = pa.table({"start_ns": [1, 2], "device_id": [0, 0], "process_id": [0, 0], "name": ["a", "b"]})
    save(TraceTables({"kernels": kernels}), tmp_path / "t")
    added = ["group_id", "op", "category", "module"]  # what the second version of the schema added
    drop_from_file(tmp_path / "t" / "kernels.parquet", *added)
    change_manifest(tmp_path / "t", schema_version=1)
    tables = load(tmp_path / "t")
    assert tables.arrow("kernels").select(added).to_pylist() == [dict.fromkeys(added)] * 2
    scanned = tables.kernels.select("name", *added).collect()
    assert [scanned.schema[name] for name in ("group_id", "op")] == [pl.Int64, scanned.schema["name"]]
    assert scanned.select(added).null_count().row(0) == (2, 2, 2, 2)
    joined = tables.kernels.group_by("op").agg(pl.len()).collect()
    assert joined.rows() == [(None, 2)]


def test_a_file_without_nullable_columns_can_be_saved_whole_again(folder: Path, tmp_path: Path) -> None:
    drop_from_file(folder / "os_calls.parquet", "dur_ns")
    save(load(folder), tmp_path / "again")
    assert pq.read_schema(tmp_path / "again" / "os_calls.parquet").names == schema.table("os_calls").arrow.names
    assert load(tmp_path / "again").arrow("os_calls").column("dur_ns").null_count == 3


@pytest.mark.parametrize("tables", [{"no_such_table": 1}, {"../os_calls": 3}, ["os_calls"], {"os_calls": "3"}, None])
def test_a_manifest_with_senseless_tables_is_damaged(folder: Path, tables) -> None:
    change_manifest(folder, tables=tables)
    with pytest.raises(DamagedTraceError):
        load(folder)


def test_a_trace_in_a_notebook_lists_its_tables_and_rows() -> None:
    trace = tables(kernels=[(0, 1, "k")], cuda_api=[])
    assert repr(trace) == "TraceTables(run: 1, devices: 1, processes: 1, threads: 0, kernels: 1, cuda_api: 0, notes: 0)"
    assert {"kernels", "cuda_api", "to_pandas"} <= set(dir(trace))
    assert "memcpy" not in dir(trace)


def test_one_table_is_a_frame_of_pandas_and_several_are_frames_by_name() -> None:
    trace = tables(kernels=[(0, 1, "k"), (5, 2, "k")], cuda_api=[])
    assert trace.to_pandas("kernels")["dur_ns"].sum() == 3
    assert list(trace.to_pandas("kernels", "cuda_api")) == ["kernels", "cuda_api"]
    assert set(trace.to_pandas()) == set(trace)
    with pytest.raises(MissingTableError):
        trace.to_pandas("memcpy")


def test_a_file_with_two_columns_of_one_name_is_refused(folder: Path) -> None:
    table = pq.read_table(folder / "os_calls.parquet")
    pq.write_table(table.append_column("name", table["name"]), folder / "os_calls.parquet")
    with pytest.raises(DamagedTraceError, match=r"os_calls\.parquet cannot be read") as raised:
        load(folder)
    assert raised.value.why == "Two columns are called 'name'."


@pytest.mark.parametrize(
    ("part", "damaged"), [(b"poll", b"po\xff\xfe"), (b"start_ns", b"start\xff\xfes"), (slice(30, 60), bytes(30))]
)
def test_a_text_or_a_column_that_is_no_utf8_or_a_damaged_page_is_an_error_that_names_the_file(
    folder: Path, part: bytes | slice, damaged: bytes
) -> None:
    path = folder / "os_calls.parquet"
    if part == b"poll":
        pq.write_table(os_calls(), path, compression="none")
    content = bytearray(path.read_bytes())
    if isinstance(part, slice):
        content[part] = damaged
    path.write_bytes(content if isinstance(part, slice) else content.replace(part, damaged))
    with pytest.raises(DamagedTraceError, match=r"os_calls\.parquet"):
        load(folder).arrow("os_calls")


@pytest.mark.parametrize("rows", [4, 2**31, 2**61])
def test_a_footer_that_counts_other_rows_than_there_are_is_refused(folder: Path, rows: int) -> None:
    path = folder / "os_calls.parquet"
    content = path.read_bytes()
    size = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - size : -8]
    count = footer.index(b"\x16\x06\x19")  # three rows, zigzag, behind the field's type; then the list of parts
    value, written = rows * 2, bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    zigzag = bytes([*written, value])
    forged = footer[: count + 1] + zigzag + footer[count + 2 :]
    path.write_bytes(content[: -8 - size] + forged + len(forged).to_bytes(4, "little") + b"PAR1")
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**manifest, "tables": {**manifest["tables"], "os_calls": rows}}))
    with pytest.raises(DamagedTraceError, match=f"The footer says {rows} rows, and its parts have another number"):
        load(folder)


def test_an_empty_table_has_no_file_and_is_there_with_0_rows(folder: Path) -> None:
    assert read_manifest(folder)["tables"]["memset"] == 0
    assert not (folder / "memset.parquet").exists()
    loaded = load(folder)
    assert "memset" in loaded
    assert "memcpy" not in loaded
    assert loaded.rows("memset") == 0
    assert loaded.arrow("memset").schema.equals(schema.table("memset").arrow)
    assert loaded.memset.collect().shape == (0, len(schema.table("memset").columns))


def test_a_file_without_rows_that_an_older_traceviz_wrote_is_read_and_must_have_none(folder: Path) -> None:
    pq.write_table(schema.table("memset").empty(), folder / "memset.parquet")
    assert load(folder).rows("memset") == 0
    shutil.copy(folder / "os_calls.parquet", folder / "memset.parquet")
    with pytest.raises(DamagedTraceError, match="holds 3 rows; the manifest says 0"):
        load(folder)


def test_columns_of_nulls_or_of_one_word_are_single_values_for_polars_and_read_the_same(monkeypatch):
    monkeypatch.setattr("traceviz.trace.tables._MANY", 1)
    rows = {"start_ns": [5, 7], "dur_ns": [1, 2], "process_id": [0, 0], "thread_id": [0, 0], "name": ["a", "a"]}
    calls = TraceTables({"run": run(), "cuda_api": pa.table({**rows, "domain": ["driver", "runtime"]})})
    frame = calls.cuda_api.collect()
    assert frame.columns == schema.table("cuda_api").arrow.names
    assert frame["name"].cast(pl.String).to_list() == ["a", "a"]
    assert frame["domain"].cast(pl.String).to_list() == ["driver", "runtime"]
    assert (frame["status"].null_count(), frame["correlation_id"].to_list()) == (2, [None, None])
    assert frame.schema == pl.from_arrow(calls.arrow("cuda_api").slice(0, 0)).schema
    assert calls.cuda_api.filter(pl.col("name") == "a").select("name", "domain").collect().height == 2


def test_columns_of_a_table_in_a_file_come_as_of_one_in_memory(folder: Path) -> None:
    end = pl.col("start_ns") + pl.col("dur_ns").fill_null(0)
    for columns in (
        ("name", "start_ns"),
        ("start_ns", end.alias("end_ns")),
        (pl.col("start_ns", "name"),),
        (pl.len(),),
    ):
        assert load(folder).select("os_calls", *columns).equals(trace().select("os_calls", *columns))


def test_pieces_of_a_table_are_its_rows_in_order_wherever_it_lies(folder: Path, monkeypatch) -> None:
    monkeypatch.setattr("traceviz.trace.tables.PIECE", 2)
    monkeypatch.setattr("traceviz.trace.tables.ROW_GROUP", 1)
    save(trace(), folder, force=True)
    for tables_ in (trace(), load(folder)):
        pieces = list(tables_.pieces("os_calls", "start_ns", "dur_ns"))
        assert [piece.rows() for piece in pieces] == [[(10, None), (20, 3)], [(30, 1)]]
        (nothing,) = tables_.pieces("memset", "start_ns", "bytes")
        assert nothing.rows() == []


def test_a_large_table_that_polars_has_seen_is_still_the_same_table(monkeypatch) -> None:
    monkeypatch.setattr("traceviz.trace.tables._MANY", 1)
    seen, untouched = trace(), trace()
    assert seen.select("os_calls", "start_ns")["start_ns"].to_list() == [10, 20, 30]
    assert (seen.rows("os_calls"), isinstance(seen.sources["os_calls"], pa.Table)) == (3, False)
    assert seen.arrow("os_calls").to_pylist() == untouched.arrow("os_calls").to_pylist()
    assert seen.arrow("os_calls").schema == untouched.arrow("os_calls").schema
    assert seen.replace({"run": run(99)}).select("os_calls", "dur_ns")["dur_ns"].to_list() == [None, 3, 1]


def test_texts_that_a_closed_set_lacks_are_replaced_with_a_note_when_a_trace_is_made() -> None:
    ops = [(0, 1, "a", "input"), (1, 1, "b", "teleport"), (2, 1, "c", "teleport")]
    made = tables(host_ops=ops)
    assert made.arrow("host_ops")["category"].to_pylist() == ["input", "runtime", "runtime"]
    (note,) = made.arrow("notes").to_pylist()
    assert note == {
        "code": "unknown-text",
        "severity": "warning",
        "count": 2,
        "message": "host_ops.category: texts that traceviz does not know, read as 'runtime', such as 'teleport'.",
    }
    assert TraceTables(dict(made.sources)).rows("notes") == 1


def test_a_word_of_a_dictionary_that_no_row_has_is_no_unknown_text() -> None:
    made = tables(host_ops=[(0, 1, "a", "input"), (1, 1, "b", "op")])
    ops = made.arrow("host_ops")
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["input", "op", "teleport"]))
    ops = ops.set_column(ops.column_names.index("category"), ops.schema.field("category"), words)
    assert with_known_texts("host_ops", ops) == (ops, [])
