"""Flame graphs have the figures of the sections on operators, modules and ranges: of samples and of public traces."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import traceviz
from tests.pictures.flame.trees import EVERYTHING, checked, paths
from tests.support.reports import tables_of
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.program.modules import ModulesAnalysis
from traceviz.analyses.program.operators import OperatorsAnalysis
from traceviz.analyses.program.ranges import RangesAnalysis
from traceviz.pictures.flame.division import division
from traceviz.pictures.flame.flames import called_operators, flames, operator_flames, range_flames
from traceviz.pictures.flame.modules import module_flames
from traceviz.pictures.flame.texts import operation_name, without_numbers
from traceviz.report import Skipped

ROOT = Path(__file__).parents[3] / "sample_traces"
SAMPLES = [*(ROOT / "kineto").iterdir(), *(ROOT / "synthetic").glob("torch_*"), *(ROOT / "synthetic").glob("*.sqlite")]
PUBLIC = Path(os.environ.get("TRACEVIZ_TRACES", "/nonexistent"))
TRACES = sorted([*PUBLIC.glob("kineto/*.json.gz"), *PUBLIC.glob("nsys/*.sqlite")])
API = {"launch_call", "sync_call", "memory_call", "api_call", "compilation"}


def opened(path):
    try:
        return TraceView(tables_of(path))
    except traceviz.TracevizError:
        pytest.skip(f"{path.name} cannot be read")


def whole(view, make):
    """Return all graphs of a kind, of the whole capture, with every node."""
    time = replace(division(view), host=None, device=None)
    return {flame.key: flame for flame in make(view, time, EVERYTHING) if flame is not None}


def sums(flame, names):
    """By name: time of nodes in no other node of the name, and time without the named nodes inside and API calls."""
    values = flame.times.sum(axis=1).tolist()
    total, own, around = {}, {}, []
    for node, (name, parent) in enumerate(zip(flame.names, flame.parents.tolist(), strict=True)):
        outer, last = around[parent] if parent >= 0 else ((), None)
        if name in names:
            own[name] = own.get(name, 0) + values[node]
            if name not in outer:
                total[name] = total.get(name, 0) + values[node]
        is_api = flame.families[node] in API and name not in names and (parent < 0 or not _is_api(flame, parent, names))
        if last is not None and (name in names or is_api):
            own[last] -= values[node]
        around.append(((*outer, name), name) if name in names else (outer, None if is_api else last))
    return total, own


def _is_api(flame, node, names):
    return flame.families[node] in API and flame.names[node] not in names


def check_operators(view):
    result = OperatorsAnalysis().run(view)
    if isinstance(result, Skipped):
        return
    found = whole(view, operator_flames)
    rows = {operation_name(row["name"], "op"): row for row in result.by_name.iter_rows(named=True)}
    annotated = set(view.host_names.filter(pl.col("category") != "op")["name"])
    shared = {name for name in rows if name not in annotated}
    assert shared
    if "operators-host" in found:
        total, own = sums(checked(found["operators-host"]), set(rows))
        called = [name for name in shared if rows[name]["calls"]]
        if called_operators(view).tree.nests:  # else calls end with those around them
            assert {name: total.get(name, 0) for name in called} == {name: rows[name]["host_ns"] for name in called}
            assert {name: own.get(name, 0) for name in called} == {name: rows[name]["host_self_ns"] for name in called}
    if "operators-device" in found and not result.graphs.graph_ns:
        _, own = sums(checked(found["operators-device"]), set(rows))
        for name in shared:
            if rows[name]["calls"]:
                assert own.get(name, 0) == rows[name]["device_self_ns"], name


def check_modules(view):
    result, found = ModulesAnalysis().run(view), whole(view, module_flames)
    if isinstance(result, Skipped):
        assert found == {}
        return
    rows = list(result.exact.iter_rows(named=True))
    kept = without_numbers if result.source == "ranges" else str
    host, device = {}, {}
    for row in rows:
        path_of = " > ".join(kept(name) for name in row["path"].split(" / "))
        host[path_of] = host.get(path_of, 0) + row["host_ns"]
        device[path_of] = device.get(path_of, 0) + row["device_ns"] + row["backward_ns"]
    for key, expected in (("modules-host", host), ("modules-device", device)):
        flame = found.get(key)
        values = (
            {} if flame is None else dict(zip(paths(checked(flame)), flame.times.sum(axis=1).tolist(), strict=True))
        )
        drawn = {name: value for name, value in values.items() if not name.endswith("(backward)")}
        assert drawn == {name: value for name, value in expected.items() if value}, key


def check_ranges(view):
    if not view.tables.rows("nvtx"):
        assert whole(view, range_flames) == {}
        return
    result = RangesAnalysis().run(view)
    flame = whole(view, range_flames).get("ranges-host")
    if flame is None:
        assert not result.by_name["total_ns"].sum()
        return
    own = flame.times.sum(axis=1)
    inner = np.flatnonzero(flame.parents >= 0)
    np.subtract.at(own, flame.parents[inner], flame.times.sum(axis=1)[inner])
    found, expected = {}, {}
    for name, parent, value in zip(flame.names, flame.parents.tolist(), own.tolist(), strict=True):
        if parent >= 0:
            found[name] = found.get(name, 0) + value
    for row in result.by_name.iter_rows(named=True):
        text = f"{row['domain']}: {row['name']}" if row["domain"] else row["name"] or ""
        name = without_numbers(text)
        expected[name] = expected.get(name, 0) + row["self_ns"]
    assert {name: value for name, value in found.items() if value} == {
        name: value for name, value in expected.items() if value
    }


def check_laws(view):
    """Check that the graphs of a page keep the rules for all graphs."""
    for flame in flames(view):
        checked(flame)
        assert len(flame.names) <= 3000


@pytest.mark.parametrize("path", sorted(SAMPLES), ids=lambda path: path.name)
def test_graphs_of_samples_have_the_times_of_their_sections(path):
    check_all(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name[-60:])
def test_graphs_of_public_traces_have_the_times_of_their_sections(path):
    check_all(path)


def check_all(path):
    view = opened(path)
    check_operators(view)
    check_modules(view)
    check_ranges(view)
    check_laws(view)
