"""Scrubbing ``parquetdir`` exports of Nsight Systems."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.archive.everything import holding
from tests.parsers.nsys.database import to_parquet
from tests.scrub.leaky_database import PLANTED, build
from traceviz.api import report_on
from traceviz.core.errors import DamagedTraceError, OutputError
from traceviz.scrub import MANIFEST, scrub, secrets_in
from traceviz.scrub.formats.nsys_parquet import scrub_nsys_parquet

IN_TABLES = {name: text for name, text in PLANTED.items() if name != "deleted row"}


def exported(folder, *, inline_names=False):
    build(folder / "leaky.sqlite")
    return to_parquet(folder / "leaky.sqlite", folder / "export", inline_names=inline_names)


def columns(folder, table):
    return pq.read_table(folder / f"{table}.parquet").to_pydict()


@pytest.mark.parametrize("inline_names", [False, True])
def test_no_secret_is_left_in_any_name_byte_or_text(tmp_path, inline_names):
    source = exported(tmp_path, inline_names=inline_names)
    assert {name for name, text in IN_TABLES.items() if not holding(source, text.encode())} <= {"blob"}
    scrub(source, tmp_path / "clean")
    assert {
        name: where for name, text in PLANTED.items() if (where := holding(tmp_path / "clean", text.encode()))
    } == {}


@pytest.mark.parametrize("inline_names", [False, True])
def test_it_is_read_as_the_scrubbed_database_is(tmp_path, inline_names):
    source = exported(tmp_path, inline_names=inline_names)
    scrub(source, tmp_path / "clean")
    scrub(tmp_path / "leaky.sqlite", tmp_path / "clean.sqlite")
    of_export, expected = report_on(tmp_path / "clean"), report_on(tmp_path / "clean.sqlite")
    assert of_export.sections == expected.sections


def test_names_stay_where_the_source_has_them(tmp_path):
    source = exported(tmp_path, inline_names=True)
    scrub(source, tmp_path / "clean")
    kernels, calls = (columns(tmp_path / "clean", f"CUPTI_ACTIVITY_KIND_{kind}") for kind in ("KERNEL", "RUNTIME"))
    assert kernels["start"] == columns(source, "CUPTI_ACTIVITY_KIND_KERNEL")["start"]
    assert calls["nameId"] == columns(source, "CUPTI_ACTIVITY_KIND_RUNTIME")["nameId"]
    (name,) = set(columns(source, "CUPTI_ACTIVITY_KIND_KERNEL")["demangledName"])
    assert set(kernels["demangledName"]) == {name.replace(PLANTED["folder"], "[path]")}


def test_what_was_removed_is_counted_as_of_the_database(tmp_path):
    source = exported(tmp_path)
    result = scrub(source, tmp_path / "clean")
    counts = json.loads((tmp_path / "clean" / MANIFEST).read_text())["removed"]
    assert counts == dict(result.removed)
    of_database = dict(scrub(tmp_path / "leaky.sqlite", tmp_path / "clean.sqlite").removed)
    for kind in ("environment variables", "command-line arguments", "captured output streams", "user names"):
        assert counts[kind] == of_database[kind] > 0


def test_its_environment_is_known_to_who_converts_it(tmp_path):
    texts = {secret.text for secret in secrets_in(exported(tmp_path))}
    for name in ("own variable", "stranger's variable", "argument", "user", "host"):
        assert PLANTED[name].encode() in texts


def test_numbers_of_all_types_stay_and_what_is_neither_number_nor_text_goes(tmp_path):
    source = tmp_path / "export"
    source.mkdir()
    kinds = {
        "start": pa.array([1, None, 3], pa.int64()),
        "large": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "flag": pa.array([True, None, False]),
        "share": pa.array([0.5, None, 1.5], pa.float32()),
        "nested": pa.array([["hidden-7f3a9c-quagga"], [], None], pa.list_(pa.string())),
        "text": pa.array(["hidden-7f3a9c-quagga", None, "x"]),
    }
    pq.write_table(pa.table(kinds), source / "OSRT_API.parquet")
    pq.write_table(pa.table({"id": [1], "value": ["read"]}), source / "StringIds.parquet")
    scrub(source, tmp_path / "clean")
    after = columns(tmp_path / "clean", "OSRT_API")
    assert {name: after[name] for name in ("start", "large", "flag", "share")} == {
        name: kinds[name].to_pylist() for name in ("start", "large", "flag", "share")
    }
    assert (after["nested"], after["text"]) == ([None] * 3, [None] * 3)
    assert holding(tmp_path / "clean", b"quagga") == []


def test_metadata_and_other_files_do_not_pass(tmp_path):
    source = exported(tmp_path)
    path = source / "NVTX_EVENTS.parquet"
    pq.write_table(pq.read_table(path).replace_schema_metadata({"made": "extra-metadata"}), path)
    (source / "notes.txt").write_text("extra-file")
    (source / "link.parquet").symlink_to(source / "StringIds.parquet")
    scrub(source, tmp_path / "clean")
    assert holding(tmp_path / "clean", b"extra-") == []
    assert not (tmp_path / "clean/link.parquet").exists()


def test_a_secret_in_the_name_of_a_table_is_refused_with_no_output(tmp_path):
    source = exported(tmp_path)
    pq.write_table(pa.table({"x": [1]}), source / f"{PLANTED['argument']}.parquet")
    (tmp_path / "clean").mkdir()
    with pytest.raises(OutputError):
        scrub_nsys_parquet(source, tmp_path / "clean", secrets_in(source))
    with pytest.raises(OutputError):
        scrub(source, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    source = exported(tmp_path)
    path = source / "NVTX_EVENTS.parquet"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DamagedTraceError):
        scrub(source, tmp_path / "clean")
    assert not (tmp_path / "clean").exists()


def test_scrubbing_twice_changes_nothing_more(tmp_path):
    scrub(exported(tmp_path), tmp_path / "once")
    scrub(tmp_path / "once", tmp_path / "twice")
    for path in (tmp_path / "once").glob("*.parquet"):
        assert pq.read_table(path).equals(pq.read_table(tmp_path / "twice" / path.name)), path.name
