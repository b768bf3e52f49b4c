"""Scrubbing nsys databases: what goes is gone from the bytes of the file, what the report needs stays row by row."""

import json
import os
import sqlite3
from pathlib import Path

import pytest

from tests.scrub.leaky_database import NIC_GUID, OWN, PLANTED, build
from traceviz import api
from traceviz.core.errors import DamagedTraceError, OutputError, OutputExistsError, UnknownFormatError, UsageError
from traceviz.scrub import scrub
from traceviz.trace.names.framework_signs import name_and_version

UNTOUCHED = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUDA_GPU_MEMORY_USAGE_EVENTS",
    "GPU_METRICS",
    "OSRT_API",
    "PROFILER_OVERHEAD",
    "TARGET_INFO_CUDA_CONTEXT_INFO",
    "TARGET_INFO_CUDA_STREAM",
)


@pytest.fixture
def leaky(tmp_path: Path) -> Path:
    """A database with all planted secrets."""
    return build(tmp_path / "report.sqlite")


def rows(path: Path, query: str) -> list[tuple]:
    db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        return db.execute(query).fetchall()
    finally:
        db.close()


def tables(path: Path) -> set[str]:
    return {name for (name,) in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}


@pytest.mark.parametrize("place", PLANTED)
def test_no_planted_secret_is_left_in_the_bytes_of_the_output(leaky: Path, tmp_path: Path, place: str) -> None:
    assert PLANTED[place].encode() in leaky.read_bytes() or place == "GPU device path"
    scrub(leaky, tmp_path / "clean.sqlite")
    assert PLANTED[place].encode() not in (tmp_path / "clean.sqlite").read_bytes()


@pytest.mark.parametrize("name", ["ada7lovelace", "mallory9", "payroll", "gpu-node-17", "training", "AKIA"])
def test_no_person_machine_or_stranger_is_named_anywhere(leaky: Path, tmp_path: Path, name: str) -> None:
    scrub(leaky, tmp_path / "clean.sqlite")
    assert name.encode() not in (tmp_path / "clean.sqlite").read_bytes()


def test_events_of_the_report_stay_row_by_row(leaky: Path, tmp_path: Path) -> None:
    scrub(leaky, clean := tmp_path / "clean.sqlite")
    for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API", "ENUM_CUDA_MEMCPY_OPER"):
        assert rows(clean, f"SELECT * FROM {table}") == rows(leaky, f"SELECT * FROM {table}")
    numbers = "SELECT start, end, eventType, globalTid, textId, domainId FROM NVTX_EVENTS"
    assert rows(clean, numbers) == rows(leaky, numbers)
    assert len(rows(clean, numbers)) == 5


def test_names_survive_but_for_their_secret_parts(leaky: Path, tmp_path: Path) -> None:
    scrub(leaky, clean := tmp_path / "clean.sqlite")
    names = dict(rows(clean, "SELECT id, value FROM StringIds"))
    assert names == {
        1: "cudaLaunchKernel_v7000",
        2: "void train_step<ada::Tensor>(float*, (lambda at [path]/kernels.cu:12:5))",
        3: "train_step",
        8: "pt_main_thread",
        9: "read",
        10: "Iteration",
        11: "[path]/libmodel.so",
        12: "model::forward(int)",
    }
    texts = [text for (text,) in rows(clean, "SELECT text FROM NVTX_EVENTS")]
    assert texts == [
        None,
        "data loading",
        "load [removed] as [removed] from [path]/data.bin",
        "x" * 9_000 + "[removed]",
        "/job:localhost/task:0/device:GPU:0",
    ]


def test_only_rows_of_the_profiled_process_stay(leaky: Path, tmp_path: Path) -> None:
    scrub(leaky, clean := tmp_path / "clean.sqlite")
    assert rows(clean, "SELECT * FROM PROCESSES") == [(OWN, 7, "python3")]
    assert rows(clean, "SELECT globalTid FROM ThreadNames") == [(OWN + 7,)]
    assert rows(clean, "SELECT start FROM SCHED_EVENTS") == [(100,)]
    assert rows(clean, "SELECT id, symbol FROM SAMPLING_CALLCHAINS") == [(1, 12)]


def test_facts_of_the_report_stay_and_private_ones_go(leaky: Path, tmp_path: Path) -> None:
    scrub(leaky, clean := tmp_path / "clean.sqlite")
    assert rows(clean, "SELECT name, value FROM META_DATA_EXPORT") == [
        ("EXPORT_PRODUCT_VERSION", "2025.1.1.110"),
        ("EXPORT_SCHEMA_VERSION", "3.17.1"),
    ]
    assert rows(clean, "SELECT name FROM META_DATA_CAPTURE") == [
        ("CAPTURE_EVENT_TYPE",),
        ("PROCESS_0:CUDA_FLUSH_PERIOD",),
    ]
    assert rows(clean, "SELECT name, value FROM TARGET_INFO_SYSTEM_ENV") == [("NvDriverVersion", "52510517")]
    assert rows(clean, "SELECT name, uuid, smCount FROM TARGET_INFO_GPU") == [("NVIDIA H200", None, 132)]
    assert rows(clean, "SELECT * FROM TARGET_INFO_SESSION_START_TIME") == [(17, "2025-03-12T15:36:59", None)]
    assert rows(clean, "SELECT text FROM DIAGNOSTIC_EVENT") == [
        ("Loaded [path]/libcupti.so.12",),
        ("12 events were dropped on [removed].",),
    ]


def test_hardware_ids_are_renumbered_alike_in_all_tables(leaky: Path, tmp_path: Path) -> None:
    scrub(leaky, clean := tmp_path / "clean.sqlite")
    joined = "SELECT nicId FROM NET_NIC_METRIC m JOIN TARGET_INFO_NIC_INFO n ON n.GUID = m.deviceGuid ORDER BY m.start"
    assert rows(clean, joined) == rows(leaky, joined) == [(1,), (0,)]
    assert all(guid < 100 for (guid,) in rows(clean, "SELECT GUID FROM TARGET_INFO_NIC_INFO")), NIC_GUID


def test_an_unknown_table_keeps_its_numbers_and_loses_its_texts(leaky: Path, tmp_path: Path) -> None:
    scrub(leaky, clean := tmp_path / "clean.sqlite")
    assert rows(clean, "SELECT * FROM FUTURE_EVENTS") == [(1, None, None, 0.5)]


def test_the_result_lists_what_was_removed_and_the_bytes_searched(leaky: Path, tmp_path: Path) -> None:
    result = scrub(leaky, clean := tmp_path / "clean.sqlite")
    removed = dict(result.removed)
    assert result.output == clean
    assert result.verified_bytes == clean.stat().st_size
    assert removed["environment variables"] == 4
    assert removed["environments of processes, also of other people's"] == 1
    assert removed["command-line arguments"] == 2
    assert removed["captured output streams"] == 1
    assert removed["captured files"] == 1
    assert removed["host names"] == 3
    assert removed["user names"] == 2
    assert removed["processes outside the profiled tree"] == 1
    assert removed["threads outside the profiled tree"] == 1
    assert removed["scheduling events of other processes"] == 2
    assert removed["stack frames of other processes"] == 1
    assert removed["ids of hardware"] == 5
    assert list(removed) == sorted(removed)
    assert result.secrets >= 10


def test_a_clean_database_is_copied_and_scrubbing_twice_changes_nothing(leaky: Path, tmp_path: Path) -> None:
    scrub(leaky, once := tmp_path / "once.sqlite")
    result = scrub(once, twice := tmp_path / "twice.sqlite")
    assert result.secrets == 0
    for table in sorted(tables(once)):
        assert rows(twice, f"SELECT * FROM {table}") == rows(once, f"SELECT * FROM {table}"), table


def test_a_user_named_like_a_kernel_renames_no_kernel(tmp_path: Path) -> None:
    source = build(
        tmp_path / "max.sqlite",
        "UPDATE META_DATA_CAPTURE SET value = 'max' WHERE name = 'PROCESS_0:USER_NAME'",
        "UPDATE META_DATA_EXPORT SET value = 'max' WHERE name = 'EXPORT_USER'",
        "INSERT INTO StringIds VALUES (40, 'reduce<max>(float)')",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 40",
    )
    scrub(source, clean := tmp_path / "clean.sqlite")
    assert rows(clean, "SELECT value FROM StringIds WHERE id = 40") == [("reduce<max>(float)",)]


def test_a_secret_that_is_also_a_kernel_name_is_removed_there_too(tmp_path: Path) -> None:
    source = build(
        tmp_path / "x.sqlite",
        f"INSERT INTO StringIds VALUES (40, 'kernel {PLANTED['own variable']} 2')",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET demangledName = 40",
    )
    scrub(source, clean := tmp_path / "clean.sqlite")
    assert rows(clean, "SELECT value FROM StringIds WHERE id = 40") == [("kernel [removed] 2",)]


def test_a_secret_in_the_name_of_a_table_fails_and_leaves_no_output(tmp_path: Path) -> None:
    source = build(tmp_path / "x.sqlite", f'CREATE TABLE "T {PLANTED["own variable"]}" (x INTEGER)')
    with pytest.raises(OutputError, match="would have stayed"):
        scrub(source, tmp_path / "clean.sqlite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.sqlite"]


def test_gpu_metrics_in_json_keep_their_numbers_and_lose_other_members(tmp_path: Path) -> None:
    source = build(
        tmp_path / "x.sqlite",
        "CREATE TABLE GENERIC_EVENTS (timestamp INTEGER, typeId INTEGER, data TEXT)",
        """INSERT INTO GENERIC_EVENTS VALUES (1, 5, '{"GPC Clock": "12.5", "SMs Active": 7}')""",
        """INSERT INTO GENERIC_EVENTS VALUES (2, 6, '{"comm": "payroll-sync", "prio": 3}')""",
        "INSERT INTO GENERIC_EVENTS VALUES (3, 6, 'payroll-plain')",
    )
    scrub(source, clean := tmp_path / "clean.sqlite")
    assert [data for (data,) in rows(clean, "SELECT data FROM GENERIC_EVENTS")] == [
        '{"GPC Clock": "12.5", "SMs Active": 7}',
        '{"prio": 3}',
        "{}",
    ]


def test_the_profiled_program_keeps_its_name_although_it_is_an_argument(tmp_path: Path) -> None:
    source = build(tmp_path / "x.sqlite", "INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ARGUMENT_2', 'python3')")
    scrub(source, clean := tmp_path / "clean.sqlite")
    assert rows(clean, "SELECT name FROM PROCESSES") == [("python3",)]


def test_views_triggers_and_indexes_are_not_carried_over(tmp_path: Path) -> None:
    source = build(
        tmp_path / "x.sqlite",
        "CREATE VIEW v AS SELECT 'view-secret' AS x",
        "CREATE INDEX i ON OSRT_API (start) WHERE start > 1",
        "CREATE TRIGGER t AFTER INSERT ON OSRT_API BEGIN SELECT 'trigger-secret'; END",
    )
    scrub(source, clean := tmp_path / "clean.sqlite")
    assert rows(clean, "SELECT count(*) FROM sqlite_master WHERE type <> 'table'") == [(0,)]
    assert b"-secret'" not in clean.read_bytes()


def test_text_in_a_number_column_and_a_blob_in_a_text_column_do_not_pass(tmp_path: Path) -> None:
    source = build(
        tmp_path / "x.sqlite",
        "UPDATE OSRT_API SET start = 'smuggled text'",
        "UPDATE NVTX_EVENTS SET text = CAST('load /home/ada7lovelace/y' AS BLOB) WHERE start = 905",
    )
    scrub(source, clean := tmp_path / "clean.sqlite")
    assert rows(clean, "SELECT start, end FROM OSRT_API") == [(0, 900)]
    assert rows(clean, "SELECT text FROM NVTX_EVENTS WHERE start = 905") == [("load [path]/y",)]


def test_text_that_is_no_utf8_survives_byte_by_byte(tmp_path: Path) -> None:
    source = build(tmp_path / "x.sqlite", "UPDATE NVTX_EVENTS SET text = CAST(x'6FFF6B006F' AS TEXT) WHERE start = 905")
    scrub(source, clean := tmp_path / "clean.sqlite")
    assert rows(clean, "SELECT CAST(text AS BLOB) FROM NVTX_EVENTS WHERE start = 905") == [(b"o\xffk\x00o",)]


@pytest.mark.parametrize(
    "dropped", ["PROCESSES", "StringIds", "META_DATA_CAPTURE", "TARGET_INFO_GPU", "COMPOSITE_EVENTS"]
)
def test_a_schema_without_some_table_is_scrubbed_all_the_same(tmp_path: Path, dropped: str) -> None:
    source = build(tmp_path / "old.sqlite", f"DROP TABLE {dropped}")
    scrub(source, clean := tmp_path / "clean.sqlite")
    assert tables(clean) == tables(source)
    assert rows(clean, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL") == [(20,)]


def test_the_source_is_not_changed(leaky: Path, tmp_path: Path) -> None:
    before = leaky.read_bytes()
    leaky.chmod(0o400)
    scrub(leaky, tmp_path / "clean.sqlite")
    assert leaky.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "clean.sqlite",
        "clean.sqlite.scrubbed.json",
        "report.sqlite",
    ]


def test_an_existing_output_is_replaced_only_with_force(leaky: Path, tmp_path: Path) -> None:
    output = tmp_path / "clean.sqlite"
    output.write_text("mine")
    with pytest.raises(OutputExistsError):
        scrub(leaky, output)
    assert output.read_text() == "mine"
    scrub(leaky, output, force=True)
    assert len(rows(output, "SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL")) == 20


def test_the_source_cannot_be_its_own_output(leaky: Path) -> None:
    with pytest.raises(UsageError, match="is the trace itself"):
        scrub(leaky, leaky, force=True)


def test_a_report_says_how_to_export_it_first(tmp_path: Path) -> None:
    report = tmp_path / "x.nsys-rep"
    report.write_bytes(b"NVIDIA Tegra Profiler Report 1.\n" + bytes(100))
    with pytest.raises(UnknownFormatError, match="nsys export --type sqlite"):
        scrub(report, tmp_path / "out.sqlite")


@pytest.mark.parametrize("content", [b"", b"hello", b"version https://git-lfs.github.com/spec/v1\n"])
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "x.sqlite"
    source.write_bytes(content)
    with pytest.raises(UnknownFormatError, match="neither a SQLite database nor an XPlane file"):
        scrub(source, tmp_path / "out.sqlite")


def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "x.sqlite"
    db = sqlite3.connect(source)
    db.execute("CREATE TABLE customers (name TEXT)")
    db.close()
    with pytest.raises(UnknownFormatError, match="customers"):
        scrub(source, tmp_path / "out.sqlite")


def test_a_database_in_utf16_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "x.sqlite"
    db = sqlite3.connect(source)
    db.execute("PRAGMA encoding = 'UTF-16'")
    db.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
    db.close()
    with pytest.raises(DamagedTraceError, match="UTF-16"):
        scrub(source, tmp_path / "out.sqlite")


def test_a_truncated_database_leaves_no_output(leaky: Path, tmp_path: Path) -> None:
    leaky.write_bytes(leaky.read_bytes()[: leaky.stat().st_size // 2])
    with pytest.raises(DamagedTraceError, match="not a whole SQLite database"):
        scrub(leaky, tmp_path / "clean.sqlite")
    assert [path.name for path in tmp_path.iterdir()] == ["report.sqlite"]


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedTraceError, match=r"nothing\.sqlite does not exist"):
        scrub(tmp_path / "nothing.sqlite", tmp_path / "out.sqlite")


def test_a_source_that_may_not_be_read_is_named(leaky: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DamagedTraceError, match=r"report\.sqlite cannot be read.*Permission denied"):
        scrub(leaky, tmp_path / "clean.sqlite")


def without_messages(path: Path) -> dict:
    """Return the report of a trace for scripts, without the profiler's messages, whose paths are removed.

    The framework's version is left out, too: it is read from the environment.
    """
    document = json.loads(api.to_text(api.report_on(path), "json"))
    del document["run"]["source"], document["run_facts"]  # the file's name
    document["run"]["framework"] = name_and_version(document["run"]["framework"])[0]
    document["notes"] = [(note["code"], note["severity"], note["count"]) for note in document["notes"]]
    return document


def test_the_report_of_the_output_equals_that_of_the_source_but_for_secret_names(leaky: Path, tmp_path: Path) -> None:
    scrub(leaky, clean := tmp_path / "clean.sqlite")
    before, after = without_messages(leaky), without_messages(clean)
    for key in ("run", "verdict", "skipped", "notes"):
        assert after[key] == before[key]
    kernels = [next(s for s in report["sections"] if s["slug"] == "kernels") for report in (before, after)]
    facts = [section["blocks"][0] for section in kernels]
    assert facts[0] == facts[1]
    assert [fact["value"] for fact in facts[0]["facts"] if fact["key"] == "total_ns"] == [20 * 60]


def _public_databases() -> list[Path]:
    folder = os.environ.get("TRACEVIZ_TRACES")
    paths = sorted(Path(folder, "nsys").glob("*.sqlite")) if folder else []
    return [path for path in paths if path.read_bytes()[:15] == b"SQLite format 3"]


@pytest.mark.slow
@pytest.mark.parametrize("source", _public_databases() or [None], ids=lambda path: path.name if path else "none")
def test_public_databases_keep_their_events_and_lose_their_host(source: Path | None, tmp_path: Path) -> None:
    if source is None:
        pytest.skip("TRACEVIZ_TRACES is not set: no public traces")
    result = scrub(source, clean := tmp_path / "clean.sqlite")
    assert result.verified_bytes == clean.stat().st_size
    present = tables(source)
    for table in present & set(UNTOUCHED):
        assert rows(clean, f"SELECT * FROM {table}") == rows(source, f"SELECT * FROM {table}"), table
    for table, column in (("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName"), ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId")):
        names = f"SELECT value FROM {table} JOIN StringIds s ON s.id = {column} ORDER BY {table}.rowid"
        assert rows(clean, names) == rows(source, names)
    host = rows(source, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'")
    assert len(host) == 1
    assert rows(clean, "SELECT value FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'Hostname'") == []
    assert b"DeviceEnvironment" not in clean.read_bytes()
    assert dict(result.removed)["captured output streams"] >= 2
    assert without_messages(clean) == without_messages(source)
    if "NVTX_EVENTS" in present:
        assert rows(clean, "SELECT * FROM NVTX_EVENTS") == rows(source, "SELECT * FROM NVTX_EVENTS")
