"""xprof accepts every XPlane sample, and makes statements that traceviz should not make."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from tests.conftest import REPOSITORY

from .conftest import Ask

pytestmark = pytest.mark.oracle

SAMPLES = REPOSITORY / "sample_traces"
MANIFEST: list[dict[str, Any]] = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text(encoding="utf-8"))["trace"]
FILES = {entry["file"]: entry for entry in MANIFEST if ".xplane.pb" in entry["file"]}
DERIVED_LINES = range(-559_038_737, -559_037_737)
"""Ids of the lines that xprof adds."""
KERAS = next(entry["file"] for entry in FILES.values() if "folder" in entry)


def conclusion(ask_xprof: Ask, name: str) -> tuple[int, str]:
    """Return the number of steps in xprof, and the first words of its verdict."""
    _, table, *_ = ask_xprof("input_pipeline", SAMPLES / name)
    return len(table["rows"]), table["properties"]["input_conclusion"]


@pytest.mark.parametrize("name", sorted(FILES))
def test_xprof_reads_as_many_events_as_the_manifest_lists(name: str, ask_xprof: Ask) -> None:
    """Apart from what it adds: a region for each start and stop in a thread pool, and lines derived from others."""
    planes = ask_xprof("grouped", SAMPLES / name)["planes"]
    lines = [line for plane in planes for line in plane["lines"] if line["id"] not in DERIVED_LINES]
    events = [event for line in lines for event in line["event"] if event != "ThreadpoolListener::Region"]
    assert len(events) == FILES[name]["events"]


@pytest.mark.parametrize("story", ["slow_map", "tfrecord", "generator"])
def test_xprof_calls_the_slow_pipelines_highly_input_bound_and_leaves_out_two_steps(story: str, ask_xprof: Ask) -> None:
    steps, words = conclusion(ask_xprof, f"xplane/{story}.xplane.pb.gz")
    assert steps == 10
    assert "HIGHLY input-bound" in words


def test_xprof_calls_the_repaired_pipeline_not_input_bound(ask_xprof: Ask) -> None:
    steps, words = conclusion(ask_xprof, "xplane/repaired.xplane.pb")
    assert steps == 10
    assert "NOT input-bound" in words


@pytest.mark.parametrize("name", [KERAS, "xplane/jax_plain.xplane.pb.gz"])
def test_xprof_sees_no_steps_where_keras_or_nobody_marks_them(name: str, ask_xprof: Ask) -> None:
    steps, words = conclusion(ask_xprof, name)
    assert steps == 0
    assert words.startswith("No step time measured")


def test_xprof_does_not_see_that_a_gpu_waits_for_its_input(ask_xprof: Ask) -> None:
    steps, words = conclusion(ask_xprof, "synthetic/gpu_keras_input_bound.xplane.pb")
    assert steps == 10
    assert "NOT input-bound because only 0.0%" in words


@pytest.mark.parametrize(("name", "kernels"), [("gpu_keras_input_bound", 60), ("gpu_jax_healthy", 192)])
def test_xprof_reads_the_kernels_of_the_synthetic_captures(name: str, kernels: int, ask_xprof: Ask) -> None:
    rows = ask_xprof("kernel_stats", SAMPLES / "synthetic" / f"{name}.xplane.pb")["rows"]
    compute = [row for row in rows if not row["kernel_name"].startswith("Memcpy")]
    assert sum(row["occurrences"] for row in compute) == kernels
    assert {row["registers_per_thread"] for row in compute} <= {40, 64}


def test_xprof_gives_the_steps_of_the_tpu_to_those_of_the_host(ask_xprof: Ask) -> None:
    planes = ask_xprof("grouped", SAMPLES / "synthetic" / "tpu_infeed_wait.xplane.pb")["planes"]
    groups = {(plane["name"], line["name"]): line["group_id"] for plane in planes for line in plane["lines"]}
    assert groups["/device:TPU:0", "Steps"] == list(range(12))
    assert sorted(set(groups["/host:CPU", "python3"])) == list(range(12))
