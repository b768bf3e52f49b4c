"""Flame graphs of tables in files, and of traces that lack one table or another."""

from pathlib import Path

import pytest

from tests.pictures.flame.trees import checked
from tests.support.reports import tables_of
from traceviz.analyses.derived.view import TraceView
from traceviz.pictures.flame import folded
from traceviz.pictures.flame.flames import flames
from traceviz.trace import schema
from traceviz.trace.tables import TraceTables, load, save

SAMPLES = Path(__file__).parents[3] / "sample_traces"
NAMES = [
    "synthetic/two_ranks.sqlite",
    "synthetic/torch_cuda_graphs.pt.trace.json.gz",
    "synthetic/gpu_keras_input_bound.xplane.pb",
    "synthetic/tpu_infeed_wait.xplane.pb",
    "kineto/stacks_memory.pt.trace.json.gz",
    "xplane/slow_map.xplane.pb.gz",
]


def texts(tables):
    return {flame.key: folded(checked(flame)) for flame in flames(TraceView(tables))}


@pytest.mark.parametrize("name", NAMES)
def test_tables_in_files_have_the_graphs_of_tables_in_memory(tmp_path, monkeypatch, name):
    tables = tables_of(SAMPLES / name)
    in_memory = texts(tables)
    save(tables, tmp_path / "folder")
    monkeypatch.setattr("traceviz.trace.tables.PIECE", 100)
    monkeypatch.setattr("traceviz.analyses.derived.view.LARGE_RESULT", 1)
    assert texts(load(tmp_path / "folder")) == in_memory
    assert len(in_memory) >= 1


@pytest.mark.parametrize("name", NAMES)
def test_a_table_that_is_missing_or_empty_leaves_graphs_of_the_others(name):
    tables = tables_of(SAMPLES / name)
    known = {table: tables.arrow(table) for table in tables}
    for at, table in enumerate(sorted(set(known) - {"run"})):
        others = {key: rows for key, rows in known.items() if key != table}
        if (at + NAMES.index(name)) % 2:  # every table is missing in half of the samples, and empty in the others
            others[table] = schema.table(table).empty()
        texts(TraceTables(others))
    assert texts(TraceTables({"run": known["run"]})) == {}
