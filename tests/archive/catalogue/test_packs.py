"""Tables of many small traces in one file: the same answers, and never those of a trace that is gone or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analyses.builders import tables
from tests.archive.small_archives import GEMM, RELU, add_trace, new_archive
from traceviz.archive.catalogue import packs, segments
from traceviz.archive.query.engine import Engine
from traceviz.archive.storage.layout import trace_parts
from traceviz.archive.storage.store import LAST
from traceviz.archive.upkeep.removal import remove
from traceviz.archive.upkeep.verify import repair, verify

IDS = ("a000000000000001", "b000000000000002", "c000000000000003")
BY_TRACE = "SELECT trace_id, format, count(*) AS n, sum(dur_ns) AS ns FROM kernels GROUP BY ALL ORDER BY trace_id"


@pytest.fixture(autouse=True)
def _packs_of_two(monkeypatch):
    monkeypatch.setattr(packs, "FEWEST", 2)


@pytest.fixture
def store(tmp_path):
    made = new_archive(tmp_path / "archive")
    add_trace(made, IDS[0], tables(kernels=[(0, 100, GEMM), (200, 50, RELU)]), source_bytes=1000)
    add_trace(made, IDS[1], tables(kernels=[(0, 7, GEMM)], cuda_api=[(0, 30, "cudaLaunchKernel")]), source_bytes=1000)
    add_trace(made, IDS[2], tables(kernels=[(0, 9, GEMM)]), format_name="xplane", source_bytes=packs.LARGEST + 1)
    return made


def packed(store):
    packs.pack(store, segments.read(store))
    return [sorted(pack.ids) for pack in packs.packs(store)]


def asked(store, query=BY_TRACE, rows=None):
    with Engine(store, rows) as engine:
        answer = engine.sql(query).to_pylist()
        assert engine.missing == ()
    return [tuple(row.values()) for row in answer]


ALL = [(IDS[0], "nsys", 2, 150), (IDS[1], "nsys", 1, 7), (IDS[2], "xplane", 1, 9)]


def test_a_pack_of_2_traces_and_a_large_trace_beside_it_give_the_answer_of_3_traces(store):
    assert asked(store) == ALL
    assert packed(store) == [[IDS[0], IDS[1]]]
    assert asked(store) == ALL


def test_tables_of_a_pack_are_read_from_the_pack(store):
    packed(store)
    for trace_id in IDS[:2]:  # only its manifest shows that a trace exists
        Path(store.url_of(*trace_parts("nsys", trace_id), "kernels.parquet")).unlink()
    assert asked(store) == ALL


def test_of_a_pack_of_2_traces_only_the_asked_one_is_read(store, monkeypatch):
    packed(store)
    monkeypatch.setattr(packs, "FEWEST", 1)
    rows = segments.read(store)
    assert asked(store, rows=rows.filter(rows["trace_id"] == IDS[1])) == ALL[1:2]


def test_a_trace_that_was_written_anew_with_1_kernel_is_not_answered_from_its_pack(store):
    packed(store)
    add_trace(store, IDS[0], tables(kernels=[(0, 11, GEMM)]), source_bytes=1000)
    assert packs.packs(store) == []
    assert asked(store) == [(IDS[0], "nsys", 1, 11), *ALL[1:]]
    assert packed(store) == [[IDS[0], IDS[1]]]
    assert len(store.names(packs.FOLDER)) == 1
    assert asked(store)[0] == (IDS[0], "nsys", 1, 11)


def test_no_copy_of_a_removed_trace_stays_and_the_2_others_are_answered(store):
    packed(store)
    assert remove(store, [IDS[0]]) == 1
    assert store.names(packs.FOLDER) == []
    assert asked(store) == ALL[1:]


def test_a_pack_that_another_version_made_is_not_used_and_made_again_with_2_traces(store, monkeypatch):
    monkeypatch.setattr(packs, "_DECLARED", "other columns")
    packed(store)
    monkeypatch.undo()
    monkeypatch.setattr(packs, "FEWEST", 2)
    assert packs.packs(store) == []
    assert asked(store) == ALL
    assert packed(store) == [[IDS[0], IDS[1]]]


def test_a_trace_that_goes_while_it_is_packed_leaves_no_pack_of_its_2_kernels(store, monkeypatch):
    write = packs._write

    def write_and_remove(store, traces, table, target):
        write(store, traces, table, target)
        store.remove(*trace_parts("nsys", IDS[0]))

    monkeypatch.setattr(packs, "_write", write_and_remove)
    assert packed(store) == []
    assert store.names(packs.FOLDER) == []


@pytest.mark.parametrize("file", ["kernels.parquet", LAST])
def test_1_damaged_file_of_a_pack_is_a_fault_and_repair_removes_the_copy(store, file):
    packed(store)
    (name,) = store.names(packs.FOLDER)
    before = {fault.kind for fault in verify(store).faults}
    path = Path(store.url_of(packs.FOLDER, name, file))
    data = bytearray(path.read_bytes())
    data[10] ^= 255
    path.write_bytes(data)
    faults = [fault for fault in verify(store).faults if fault.kind == "packed"]
    assert "packed" not in before
    assert [fault.name for fault in faults] == [f"packed/{name}"]
    repair(store, tuple(faults))
    assert store.names(packs.FOLDER) == []
    assert asked(store) == ALL


def test_a_damaged_table_of_1_trace_is_not_packed_and_the_add_goes_on(store):
    Path(store.url_of(*trace_parts("nsys", IDS[0]), "kernels.parquet")).write_bytes(b"no table")
    assert packed(store) == []
    assert store.names(packs.FOLDER) == []


def test_a_pack_of_which_1_byte_is_gone_is_not_used(store):
    packed(store)
    (name,) = store.names(packs.FOLDER)
    path = Path(store.url_of(packs.FOLDER, name, "kernels.parquet"))
    path.write_bytes(path.read_bytes()[:-1])
    assert asked(store) == ALL
    assert [fault.why for fault in verify(store, quick=True).faults if fault.kind == "packed"] == [
        "kernels.parquet has another size than its manifest.json says"
    ]
