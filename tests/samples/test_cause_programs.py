"""Small programs with one cause each, as collect recorded them: the shipped runs, and their reports."""

from __future__ import annotations

import re
import zipfile
from collections import Counter

import polars as pl
import polars.selectors as cs
import pytest

import traceviz
from scripts import cause_programs, causes
from scripts.causes import GOOD
from tests.samples.test_manifest import PRIVATE
from tests.support.leading import leading
from traceviz.trace.tables import TraceTables

PROGRAMS = {program["name"]: program for program in cause_programs.programs()}
TRUTHS = {truth.name.removesuffix(".zip"): truth for truth in causes.truths() if truth.collection == "causes"}
ISSUE = {
    *("torch_slow_decode", "torch_slow_workers", "keras_slow_sequence", "keras_sequential_map", "tf_sequential_map"),
    *("tf_generator", "jax_slow_augment", "tf_retracing", "jax_recompiles", "torch_checkpoint_fsync"),
    *("torch_slow_generator", "torch_gil_threads", "torch_tiny_matmuls", "torch_batch_of_one", "torch_ddp_straggler"),
    *("torch_slow_validation", "jax_loader_sleeps", "torch_starved_queue"),
}
"""Programs that users recorded; of half of them, reports once named something else."""
QUICK = {"torch_slow_decode", "torch_json_metrics", "torch_slow_validation", "torch_gil_threads", "jax_healthy"}
HEALTHY = {name for name in PROGRAMS if name.endswith("_healthy")}
names = pytest.mark.parametrize("name", sorted(PROGRAMS))


def tables_of(name: str) -> dict[str, bytes]:
    with zipfile.ZipFile(cause_programs.RECORDED / f"{name}.zip") as archive:
        return {entry: archive.read(entry) for entry in archive.namelist()}


def has_calls_of_the_system(name: str) -> bool:
    with zipfile.ZipFile(cause_programs.RECORDED / f"{name}.zip") as archive:
        return "os_calls.parquet" in archive.namelist()


WITH_NSYS = set(filter(has_calls_of_the_system, PROGRAMS))


def test_every_program_has_a_cause_and_a_recording_and_each_framework_a_healthy_one():
    written = {path.stem for path in (cause_programs.CAUSES / "programs").glob("*.py")}
    recorded = {path.stem for path in cause_programs.RECORDED.glob("*.zip")}
    assert set(PROGRAMS) == set(TRUTHS) == written == recorded
    assert len(PROGRAMS) >= 24
    assert len(ISSUE) == 18
    assert set(PROGRAMS) >= ISSUE
    healthy = Counter(name.partition("_")[0] for name in HEALTHY)
    assert healthy == {"torch": 1, "keras": 1, "tf": 1, "jax": 1}


def test_recordings_are_small():
    sizes = {path.name: path.stat().st_size for path in cause_programs.RECORDED.glob("*.zip")}
    assert {name for name, size in sizes.items() if size > 1_000_000} == set()
    assert sum(sizes.values()) < 12_000_000


def test_recordings_are_those_of_the_defaults_next_to_nsys():
    assert len(WITH_NSYS) == len(PROGRAMS) == 33
    assert WITH_NSYS >= HEALTHY


def test_what_identifies_the_machine_is_not_packed(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTER_ADDRESS", "gpu-17.internal.example")
    pl.DataFrame({"value": ["harmless"]}).write_parquet(tmp_path / "settings.parquet")
    cause_programs._check_nothing_private(tmp_path)
    pl.DataFrame({"value": ["on gpu-17.internal.example:80"]}).write_parquet(tmp_path / "settings.parquet")
    with pytest.raises(SystemExit, match=r"settings\.parquet of .* still holds a value of this machine: gpu-17"):
        cause_programs._check_nothing_private(tmp_path)


@names
def test_recordings_hold_stacks_of_the_whole_run_and_nothing_private(name):
    tables = tables_of(name)
    assert {"stacks.parquet", "stack_frames.parquet", "phases.parquet", "scrubbed.json"} <= set(tables)
    for entry, raw in tables.items():
        assert PRIVATE.findall(raw) == [], entry
        if entry.endswith(".parquet"):
            texts = pl.read_parquet(raw).select(~(cs.numeric() | cs.boolean()))
            distinct = "\n".join(str(text) for column in texts for text in column.unique())
            assert PRIVATE.findall(distinct.encode()) == [], entry


def test_frames_of_the_program_name_its_file_alone():
    frames = pl.read_parquet(tables_of("torch_slow_decode")["stack_frames.parquet"])
    own = set(frames.filter(pl.col("origin") == "program")["file"]) - {"<string>"}
    assert own == {"torch_slow_decode.py"}


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    return [] if name in QUICK else [pytest.mark.slow]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in sorted(PROGRAMS)])
def test_the_first_sentence_names_the_cause(name):
    truth = TRUTHS[name]
    scored = causes.judge(truth, causes.say(cause_programs.RECORDED / f"{name}.zip"))
    assert scored.judgement in GOOD, f"{scored.reason}: {scored.said.sentence}"
    assert re.search(r"want a core|oversubscri", scored.said.sentence) is None


SEEN_BY_STACKS = {
    *("gil", "garbage collection", "locks", "logging", "python", "saving", "serialization", "small operators"),
    "starved",
}
"""Leading cause by samples of stacks and hooks, which no profiler of a framework has."""
one_per_profiler = {"torch_healthy", "tf_healthy", "jax_healthy"}
nsys_names = [
    pytest.param(name, marks=[] if name in one_per_profiler else [pytest.mark.slow]) for name in sorted(WITH_NSYS)
]


@pytest.mark.parametrize("name", nsys_names)
def test_what_leads_is_what_the_best_single_recording_names(name):
    """nsys adds waits and no cause. What the framework's profiler explains leads, unless stacks show more."""
    with cause_programs.unpacked(cause_programs.RECORDED / f"{name}.zip") as folder:
        run = traceviz.open(folder)
        sources = {row["source"] for row in run.arrow("windows").to_pylist()}
        assert sources >= {"nsys", "stacks", "resources"}
        merged = leading(traceviz.analyze(run).verdict.sentence)
        tables = {table: run.arrow(table) for table in run if table not in {"os_calls", "nvtx"}}
        without_nsys = leading(traceviz.analyze(TraceTables(tables)).verdict.sentence)
        profiled = causes.recorded_by(run, causes.PROFILERS)
        assert profiled is not None
        alone = leading(traceviz.analyze(profiled).verdict.sentence)
    assert merged == without_nsys
    assert merged != "host blocked"
    assert alone in {merged, "unexplained"} or merged in SEEN_BY_STACKS or merged.startswith("the function ")
    assert name not in HEALTHY or (merged, alone) == ("the program computes", "the program computes")
