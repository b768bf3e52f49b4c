"""Steps last equally long in a report, its breakdown, its JSON, a comparison and an archive, with what lies between.

Every trace is taken by its file, as users do.
"""

import os
from pathlib import Path

import numpy as np
import pytest

import traceviz
from tests.analyses.builders import tables
from traceviz.archive.archive import Archive
from traceviz.archive.runners.local import SerialRunner
from traceviz.compare.sides.load_sides import load_report
from traceviz.compare.sides.sides import Side, steady_steps
from traceviz.core.errors import TracevizError
from traceviz.trace.tables import write_tables

US = 1_000
MARKS = [(1000 * step, 300 + 10 * step, f"batch {step}") for step in range(8)]
LOADING = [(1000 * step + 500, 480, "data loading") for step in range(8)]
CHECKPOINT = (8000, 5000, "checkpoint")
LATER = [(14_000 + 1000 * step, 300, f"batch {8 + step}") for step in range(4)]


def durations(steps):
    """Return durations of steady steps, as ``(process, start)`` orders them."""
    steady = [row for row in steps if not row["warmup"] and not row["cut"]]
    return [row["dur_ns"] for row in sorted(steady, key=lambda row: (row["process"], row["start_ns"]))]


def rows_of(report, slug, title):
    grids = [grid for grid in report.grids(slug) if grid.title == title]
    return [
        dict(zip([column.name for column in grid.columns], row, strict=True)) for grid in grids for row in grid.rows
    ]


def figures(report):
    """Return a report's data on steady steps: their durations, also by the breakdown, and its figures."""
    of_steps = durations(rows_of(report, "steps", "Every step"))
    of_classes = [row["dur_ns"] for row in rows_of(report, "breakdown", "By step")]
    assert sorted(of_steps) == sorted(of_classes) == sorted(steady_steps(report).tolist())
    facts = {fact.key: fact.value for fact in report.facts("steps")}
    assert facts.get("median_ns") == (round(float(np.median(of_steps))) if of_steps else None)
    assert facts.get("mean_ns") == (round(float(np.mean(of_steps))) if of_steps else None)
    assert not of_steps or sum(of_steps) == sum(row["total_ns"] for row in report.rows("breakdown"))
    return sorted(of_steps)


def check(source, folder):
    """Return the steady steps of a trace, which are the same by every way to them."""
    report = traceviz.report_on(source)
    steps = figures(report)
    if not steps:
        return steps
    saved = folder / "report.json"
    saved.write_text(traceviz.to_text(report, "json"))
    assert figures(load_report(saved)) == steps
    sides = [Side("file", (report,)), Side("saved", (load_report(saved),))]
    assert [side.rank_steps for side in sides] == [len(steps)] * 2
    assert all(sum(int(times.sum()) for times in side.classes.values()) == sum(steps) for side in sides)
    archive = Archive(folder / "archive")
    archive.add(source, runner=SerialRunner())
    row = archive.rows().filter(archive.rows()["state"] == "ready").row(0, named=True)
    assert figures(archive.show(row["trace_id"])) == steps
    assert row["steps"] == len(steps)
    assert row["step_median"] == round(float(np.median(steps)))
    assert row["step_mean"] == pytest.approx(float(np.mean(steps)))
    return steps


def test_10_steps_with_loading_between_their_marks_and_a_checkpoint_agree_everywhere(tmp_path):
    ranges = [*MARKS, *LOADING[:7], CHECKPOINT, *LATER]
    trace = tables(
        nvtx=[(start * US, dur * US, name) for start, dur, name in ranges],
        kernels=[((start + 50) * US, 200 * US, "k") for start, *_ in MARKS + LATER],
    )
    place = tmp_path / "trace.traceviz"
    place.mkdir()
    write_tables(place, ((name, trace.arrow(name)) for name in trace), {})
    # seven whole steps, one until the checkpoint starts (7000 to 8000), three more; the last is cut
    assert check(place, tmp_path) == [1000 * US] * 11


def readable(variable, *formats):
    folder = os.environ.get(variable)
    if not folder:
        return []
    return [path for name in formats for path in sorted((Path(folder) / name).iterdir()) if path.is_file()]


PUBLIC = [
    path
    for variable in ("TRACEVIZ_TRACES", "TRACEVIZ_CASES")
    for path in readable(variable, "nsys", "xplane", "kineto")
]


@pytest.mark.slow
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_steps_of_public_traces_agree_everywhere(path, tmp_path):
    try:
        check(path, tmp_path)
    except TracevizError as error:
        pytest.skip(error.what)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("nsys/nvtx_loop.sqlite", "synthetic/two_ranks.sqlite", "synthetic/gpu_keras_input_bound.xplane.pb"),
        *("synthetic/tpu_infeed_wait.xplane.pb", "kineto/workers.pt.trace.json.gz"),
        "xplane/jax_annotated.xplane.pb.gz",
    ],
)
def test_steps_of_samples_agree_everywhere(name, samples, tmp_path):
    assert len(check(samples / name, tmp_path)) >= 11


AI_PROFILER = (
    ("TRACES", "baseline_nvtx", 154),
    ("CASES", "firstOptimization", 118),
    ("CASES", "secondOptimization", 135),
)
"""Mean steps in ms from the authors' study and the ranges themselves, independent of the median."""


@pytest.mark.slow
@pytest.mark.parametrize(("variable", "name", "mean_ms"), AI_PROFILER)
def test_mean_steps_of_a_study_are_those_of_its_loops(variable, name, mean_ms):
    found = [path for path in readable(f"TRACEVIZ_{variable}", "nsys") if name in path.name]
    if not found:
        pytest.skip(f"TRACEVIZ_{variable} names no folder with {name}")
    mean = traceviz.report_on(found[0], sections=["steps"]).fact("steps", "mean_ns")
    assert mean / 1e6 == pytest.approx(mean_ms, abs=1.5)
