"""Scrubbing traceviz folders."""

import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from traceviz.core.errors import DamagedTraceError, OutputError, OutputExistsError, UnknownFormatError
from traceviz.scrub import scrub, scrub_folder, scrub_tables
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables, load, save
from traceviz.trace.trace_folder import MANIFEST

UUID = "b50ecd63-f853-a457-8c3d-f47e6ed6e20e"


def table(of: str, **columns: list) -> pa.Table:
    """Return rows of table ``of``; other columns are null, or 0, empty or the first known text if not nullable."""
    declared = schema.table(of)
    count = len(next(iter(columns.values())))

    def filled(column: schema.Column) -> pa.Array:
        if column.nullable:
            return pa.nulls(count, pa.string() if column.type == schema.NAME else column.type)
        text = column.values[0] if column.values else ""
        return pa.array([text] * count if column.type in (schema.TEXT, schema.NAME) else [0] * count)

    return pa.table({c.name: pa.array(columns[c.name]) if c.name in columns else filled(c) for c in declared.columns})


def trace() -> TraceTables:
    return TraceTables(
        {
            "run": table(
                "run",
                format=["nsys"],
                host=["gpu-node-17"],
                command=["python3 train.py --api-key abcd1234efgh"],
                span_ns=[4_000],
            ),
            "devices": table("devices", name=["NVIDIA H200"], uuid=[UUID]),
            "processes": table("processes", pid=[7], name=["/home/ada/venv/bin/python3"]),
            "threads": table("threads", tid=[7], name=["pt_main_thread"]),
            "nvtx": table(
                "nvtx",
                start_ns=[0, 10, 20, 30],
                dur_ns=[5, 5, 5, 5],
                range_id=[0, 1, 2, 3],
                name=["load /home/ada/a/x.bin", "load /home/ada/b/x.bin", "key abcd1234efgh on gpu-node-17", "train"],
            ),
            "kernels": table("kernels", start_ns=[1], dur_ns=[9], name=["f<(lambda at /home/ada/k.cu:1:2)>"]),
            "notes": table(
                "notes", code=["N1"], severity=["info"], message=[f"Loaded /weird/place/lib.so on device {UUID}."]
            ),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(
        trace(),
        tmp_path / "trace",
        provenance={"source": {"path": "/home/ada/report.sqlite", "sha256": "ab12"}, "log": ["see /home/ada/x.log"]},
    )
    return tmp_path / "trace"


def texts(folder: Path) -> str:
    """Return everything that a person could read in a folder, decoded."""
    frames = [str(load(folder).arrow(name).to_pydict()) for name in load(folder)]
    return "".join([*frames, (folder / MANIFEST).read_text()])


def test_no_secret_is_left_in_any_column_or_the_manifest(folder: Path, tmp_path: Path) -> None:
    secrets = ["ada", "gpu-node-17", "abcd1234efgh", UUID, "/home", "/weird", "--api-key"]
    before = texts(folder)
    assert [secret for secret in secrets if secret not in before] == []
    scrub(folder, tmp_path / "clean")
    after = texts(tmp_path / "clean")
    assert [secret for secret in secrets if secret in after] == []


def test_names_lose_their_secret_parts_and_equal_ones_are_merged(folder: Path, tmp_path: Path) -> None:
    scrub(folder, clean := tmp_path / "clean")
    tables = load(clean)
    assert tables.nvtx.collect()["name"].to_list() == [
        "load [path]/x.bin",
        "load [path]/x.bin",
        "key [removed] on [removed]",
        "train",
    ]
    counted = tables.nvtx.group_by("name").agg(pl.len()).collect()
    assert counted.sort("len")["len"].to_list() == [1, 1, 2]
    assert tables.kernels.collect()["name"].to_list() == ["f<(lambda at [path]/k.cu:1:2)>"]
    assert tables.arrow("processes").column("name").to_pylist() == ["python3"]
    assert tables.arrow("notes").column("message").to_pylist() == ["Loaded [path]/lib.so on device [removed]."]


def test_numbers_are_untouched(folder: Path, tmp_path: Path) -> None:
    scrub(folder, clean := tmp_path / "clean")
    before, after = load(folder), load(clean)
    assert list(after) == list(before)
    for name in before:
        numbers = [c.name for c in schema.table(name).columns if c.type not in (schema.TEXT, schema.NAME)]
        assert after.arrow(name).select(numbers).equals(before.arrow(name).select(numbers)), name
        assert after.rows(name) == before.rows(name)


def test_manifest_and_result_list_what_was_removed(folder: Path, tmp_path: Path) -> None:
    result = scrub(folder, clean := tmp_path / "clean")
    expected = {"command lines": 1, "host names": 1, "ids of hardware": 1, "texts cleaned of paths and secrets": 6}
    assert dict(result.removed) == expected
    manifest = json.loads((clean / MANIFEST).read_text())
    assert manifest["redacted"] == expected
    assert manifest["source"] == {"path": "report.sqlite", "sha256": "ab12"}
    assert manifest["log"] == ["see [path]/x.log"]
    assert result.verified_bytes > 100


def test_metadata_and_columns_that_are_not_declared_do_not_pass(folder: Path, tmp_path: Path) -> None:
    path = folder / "threads.parquet"
    threads = pq.read_table(path).append_column("extra", pa.array(["extra-text"]))
    pq.write_table(threads.replace_schema_metadata({"pandas": "extra-metadata"}), path)
    (folder / "notes.txt").write_text("extra-file")
    scrub(folder, clean := tmp_path / "clean")
    assert b"extra-" not in b"".join(file.read_bytes() for file in clean.iterdir())
    assert pq.read_schema(clean / "threads.parquet").metadata in (None, {})
    assert "notes.txt" not in {file.name for file in clean.iterdir()}


def test_scrubbing_twice_changes_nothing_more(folder: Path, tmp_path: Path) -> None:
    scrub(folder, tmp_path / "once")
    result = scrub(tmp_path / "once", tmp_path / "twice")
    assert result.removed == ()
    for name in load(folder):
        assert load(tmp_path / "twice").arrow(name).equals(load(tmp_path / "once").arrow(name)), name


def test_an_empty_trace_is_scrubbed(tmp_path: Path) -> None:
    save(TraceTables({}), tmp_path / "trace")
    result = scrub(tmp_path / "trace", tmp_path / "clean")
    assert result.removed == ()
    assert load(tmp_path / "clean").rows("run") == 0


def test_other_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    with pytest.raises(UnknownFormatError, match="not one that traceviz wrote"):
        scrub(tmp_path / "documents", tmp_path / "clean")


def test_an_existing_folder_is_replaced_only_with_force(folder: Path, tmp_path: Path) -> None:
    scrub(folder, clean := tmp_path / "clean")
    with pytest.raises(OutputExistsError):
        scrub(folder, clean)
    assert scrub(folder, clean, force=True).output == clean


def test_a_damaged_folder_leaves_no_output(folder: Path, tmp_path: Path) -> None:
    (folder / "nvtx.parquet").write_bytes(b"PAR1 no longer")
    with pytest.raises(DamagedTraceError, match=r"nvtx\.parquet cannot be read"):
        scrub(folder, tmp_path / "clean")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trace"]


def framework_trace() -> TraceTables:
    """Return a framework's profiler trace: Python frames, arguments of operations, settings."""
    frames = ["$/home/ada/proj/train.py:12 step", "$builtins len", "Iterator::Root::Map", "on gpu-node-17"]
    arguments = [
        ("file", None, "/weird/place/data.bin"),
        ("shape", None, "(float[2])"),
        ("session_id", 77, None),
        ("source", None, "users/ada/model.py:3"),
        ("note", None, "see /weird/place/log.txt"),
    ]
    settings = [
        ("host_tracer_level", "2"),
        ("jax_version", "0.10.2"),
        ("repository_path", "/home/ada/repo"),
        ("hostname", "gpu-node-17"),
        ("motto", "free text"),
    ]
    return TraceTables(
        {
            "host_ops": table("host_ops", start_ns=[0, 1, 2, 3], dur_ns=[9, 1, 1, 1], op_id=[0, 1, 2, 3], name=frames),
            "op_args": pa.table(
                {
                    "op_id": [0] * 5,
                    "key": [key for key, _, _ in arguments],
                    "integer": pa.array([whole for _, whole, _ in arguments], pa.int64()),
                    "text": [text for _, _, text in arguments],
                }
            ),
            "settings": pa.table({"key": [key for key, _ in settings], "value": [value for _, value in settings]}),
            "kernels": table(
                "kernels", start_ns=[1], dur_ns=[9], name=["gemm"], op=["net/home/ada"], module=["/home/ada/m.hlo"]
            ),
            "device_ops": table("device_ops", start_ns=[0], name=["jit_f(/home/ada/x.py)"], kind=["module"]),
        }
    )


@pytest.fixture
def scrubbed_framework(tmp_path: Path) -> TraceTables:
    save(framework_trace(), tmp_path / "trace")
    scrub(tmp_path / "trace", tmp_path / "clean")
    return load(tmp_path / "clean")


def test_python_frames_keep_their_file_and_function(scrubbed_framework: TraceTables) -> None:
    names = scrubbed_framework.arrow("host_ops").column("name").to_pylist()
    assert names == ["$train.py:12 step", "$builtins len", "Iterator::Root::Map", "on [removed]"]


def test_arguments_of_operations_lose_private_texts_and_keep_numbers(scrubbed_framework: TraceTables) -> None:
    rows = scrubbed_framework.arrow("op_args").select(["key", "integer", "text"]).to_pylist()
    assert {row["key"]: row["text"] for row in rows} == {
        "file": "[removed]",
        "shape": "(float[2])",
        "session_id": None,
        "source": "model.py:3",
        "note": "see [path]/log.txt",
    }
    assert [row["integer"] for row in rows] == [None, None, 77, None, None]


def test_settings_keep_versions_and_numbers_only(scrubbed_framework: TraceTables) -> None:
    rows = scrubbed_framework.arrow("settings").select(["key", "value"]).to_pylist()
    assert {row["key"]: row["value"] for row in rows} == {
        "host_tracer_level": "2",
        "jax_version": "0.10.2",
        "repository_path": "[removed]",
        "hostname": "[removed]",
        "motto": "[removed]",
    }


def test_names_of_compiled_programs_lose_their_paths(scrubbed_framework: TraceTables) -> None:
    assert scrubbed_framework.arrow("device_ops").column("name").to_pylist() == ["jit_f([path]/x.py)"]
    assert scrubbed_framework.arrow("kernels").column("module").to_pylist() == ["[path]/m.hlo"]
    assert scrubbed_framework.arrow("kernels").column("op").to_pylist() == ["net/home/[removed]"]


def test_what_was_private_is_counted(tmp_path: Path) -> None:
    save(framework_trace(), tmp_path / "trace")
    removed = dict(scrub(tmp_path / "trace", tmp_path / "clean").removed)
    assert removed["private properties"] == 4  # the file, and three settings
    assert removed["texts cleaned of paths and secrets"] == 7


def test_tables_scrubbed_in_memory_are_written_as_those_of_a_folder_to_the_byte(tmp_path):
    facts = {"source": "/home/adalovelace/x.sqlite", "format": "nsys"}
    save(trace(), tmp_path / "trace", provenance=facts)
    for name in ("from-folder", "from-memory"):
        (tmp_path / name).mkdir()
    removed, secrets, _ = scrub_folder(tmp_path / "trace", tmp_path / "from-folder")
    clean, (removed_here, secrets_here, _) = scrub_tables(trace(), facts, tmp_path / "from-memory")
    assert (removed_here, secrets_here) == (removed, secrets)
    names = sorted(path.name for path in (tmp_path / "from-folder").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "from-memory").iterdir())
    for name in names:
        assert (tmp_path / "from-memory" / name).read_bytes() == (tmp_path / "from-folder" / name).read_bytes()
    written = load(tmp_path / "from-memory")
    assert list(clean) == list(written)
    assert all(clean.arrow(name).equals(written.arrow(name)) for name in written)
    assert clean.run_facts()["host"] is None


def test_a_secret_that_would_stay_in_memory_is_found_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("traceviz.scrub.formats.tables._scrub_column", lambda rows, _, column, *__: rows[column.name])
    with pytest.raises(OutputError, match=r"would have stayed in the output, in run\.host"):
        scrub_tables(trace(), {}, tmp_path)
    assert list(tmp_path.iterdir()) == []
