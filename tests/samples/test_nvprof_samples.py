"""The synthetic nvprof files match their generator, and their twins of Nsight Systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import make_synthetic
import make_synthetic_nvprof as nvprof
import polars as pl
import pytest

from traceviz import api
from traceviz.report import Grid

DATABASES = [sample for sample in nvprof.SAMPLES if sample.is_database]
BY_FILE = {sample.file: sample for sample in nvprof.SAMPLES}


def twin(sample: nvprof.Sample) -> Path:
    return make_synthetic.FOLDER / f"{sample.program}.sqlite"


def shared(frame: pl.LazyFrame) -> list[dict[str, Any]]:
    """Return rows without what the two name differently: threads have other ids, kernels of TensorFlow other names."""
    rows = frame.drop("thread_id", "name", "graph_node_id", strict=False).collect()
    return [dict(sorted(row.items())) for row in rows.to_dicts()]


def test_the_committed_files_hold_exactly_what_the_generator_makes() -> None:
    assert nvprof.check() == []


@pytest.mark.parametrize("sample", DATABASES, ids=lambda sample: sample.file)
@pytest.mark.parametrize("table", ["kernels", "memcpy", "memset", "cuda_api"])
def test_events_of_a_database_are_those_of_its_twin_to_the_nanosecond(sample: nvprof.Sample, table: str) -> None:
    ours, other = api.open_trace(sample.path), api.open_trace(twin(sample))
    first, second = (trace.scan("cuda_api").select("start_ns").min().collect().item() for trace in (ours, other))
    moved = pl.col("start_ns") - first, pl.col("start_ns") - second
    assert ours.rows(table) >= (1 if table == "memset" else 30)
    assert shared(ours.scan(table).with_columns(moved[0])) == shared(other.scan(table).with_columns(moved[1]))


def grid_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the CUDA API share by function, as a report shows it."""
    blocks = api.report_on(path, sections=("cuda_api",)).section("cuda_api").blocks
    grid = next(block for block in blocks if isinstance(block, Grid))
    names = [column.name for column in grid.columns]
    rows = [dict(zip(names, row, strict=True)) for row in grid.rows]
    return {row["name"]: row for row in rows}


@pytest.mark.parametrize("file", ["nvprof_torch_input_bound.nvvp", "nvprof_tensorflow_pageable.nvvp"])
def test_the_api_share_is_the_same_table_whichever_profiler_wrote_the_file(file: str) -> None:
    ours, other = grid_of(BY_FILE[file].path), grid_of(twin(BY_FILE[file]))
    assert len(ours) >= 5
    for name, row in other.items():
        same = {key: value for key, value in row.items() if key != "share_of_wall"}  # the captures start differently
        assert {key: value for key, value in ours[name].items() if key != "share_of_wall"} == same


def test_a_printed_trace_has_the_kernels_of_its_twin() -> None:
    sample = BY_FILE["nvprof_trace.csv"]
    ours, other = (
        api.open_trace(path).kernels.select("dur_ns", "name", "grid_x").collect()
        for path in (sample.path, twin(sample))
    )
    assert ours.height == other.height == 510
    assert ours["dur_ns"].to_list() == other["dur_ns"].to_list()
    assert ours["name"].cast(pl.String).to_list() == other["name"].cast(pl.String).to_list()


def test_a_printed_summary_has_the_totals_of_its_twin() -> None:
    sample = BY_FILE["nvprof_summary.csv"]
    printed = api.open_trace(sample.path).totals.filter(pl.col("kind").is_in(["runtime", "driver"]))
    totals = printed.select("name", "calls", "total_ns").collect()
    calls = grid_of(twin(sample))
    assert {name: (count, total) for name, count, total in totals.rows()} == {
        name: (row["calls"], row["total_ns"]) for name, row in calls.items()
    }


@pytest.mark.parametrize("sample", DATABASES, ids=lambda sample: sample.file)
def test_every_database_says_that_it_is_synthetic(sample: nvprof.Sample) -> None:
    command = api.open_trace(sample.path, read=api.ReadOptions(keep_private=True)).run_facts()["command"]
    assert command == f"python3 synthetic, not a recording: {sample.tells}"
