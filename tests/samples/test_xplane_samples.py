"""The XPlane samples match the manifest, and show their stories, without any analysis."""

from __future__ import annotations

import gzip
import tomllib
from typing import Any

import make_synthetic_xplane
import numpy as np
import pytest
from xplane_program import US
from xplane_stories import ITERATOR_IDS, STORIES, Story

from tests.conftest import REPOSITORY
from traceviz.parsers.xplane.decode.raw import Plane, Space
from traceviz.parsers.xplane.decode.scan import read_space

SAMPLES = REPOSITORY / "sample_traces"
MANIFEST: list[dict[str, Any]] = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text(encoding="utf-8"))["trace"]
ENTRIES = {entry["file"]: entry for entry in MANIFEST if ".xplane.pb" in entry["file"]}

stories = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)


def space_of(name: str) -> Space:
    raw = (SAMPLES / name).read_bytes()
    return read_space(gzip.decompress(raw) if name.endswith(".gz") else raw)


def plane_of(space: Space, name: str) -> Plane:
    return next(plane for plane in space.planes if plane.name == name)


def spans(plane: Plane, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return starts and ends of the events called ``name``, by start, in picoseconds."""
    chosen = np.flatnonzero(np.array(plane.names, dtype=object)[plane.events.name] == name)
    starts = plane.start_ps(0)[chosen]
    order = np.argsort(starts)
    return starts[order], (starts + plane.events.dur_ps[chosen])[order]


def step_and_wait(name: str) -> tuple[float, float]:
    """Return the median step, and median of what is left of a step without waiting for its batch, in milliseconds."""
    host = plane_of(space_of(name), "/host:CPU")
    (starts, ends), (asked, given) = spans(host, "train"), spans(host, "EagerLocalExecute: IteratorGetNext")
    assert np.all((starts < asked) & (given < ends))
    steps = ends - starts
    return float(np.median(steps)) / 1e9, float(np.median(steps - (given - asked))) / 1e9


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_a_capture_holds_as_many_events_and_stats_as_the_manifest_says(name: str) -> None:
    space = space_of(name)
    found = sum(len(plane.events) for plane in space.planes), sum(len(plane.stats) for plane in space.planes)
    assert found == (ENTRIES[name]["events"], ENTRIES[name]["stats"])
    assert space.damage == ()


@pytest.mark.parametrize(
    ("story", "low", "high"), [("slow_map", 0.5, 0.7), ("tfrecord", 0.5, 0.7), ("generator", 0.5, 0.7)]
)
def test_a_slow_pipeline_holds_the_model_for_more_than_half_of_a_step(story: str, low: float, high: float) -> None:
    step, rest = step_and_wait(f"xplane/{story}.xplane.pb.gz")
    assert low < 1 - rest / step < high


def test_the_repaired_pipeline_takes_the_step_that_the_slow_one_would_without_its_wait() -> None:
    _, best_case = step_and_wait("xplane/slow_map.xplane.pb.gz")
    step, rest = step_and_wait("xplane/repaired.xplane.pb")
    assert step == pytest.approx(best_case, rel=0.10)
    assert 1 - rest / step < 0.03


def test_keras_marks_its_seven_profiled_batches_and_gives_them_no_root_level() -> None:
    (name,) = (entry["file"] for entry in ENTRIES.values() if "folder" in entry)
    host = plane_of(space_of(name), "/host:CPU")
    starts, _ = spans(host, "Profiled batch")
    assert starts.size == ENTRIES[name]["steps"] == 7
    marked = host.names.index("Profiled batch")
    roots = host.stats_of("_r").event
    assert np.count_nonzero(host.events.name[roots] == marked) == 0


@pytest.mark.parametrize(("name", "marks"), [("jax_annotated", 12), ("jax_plain", 0)])
def test_jax_marks_steps_only_where_it_is_asked_to(name: str, marks: int) -> None:
    host = plane_of(space_of(f"xplane/{name}.xplane.pb.gz"), "/host:CPU")
    assert spans(host, "train")[0].size == marks
    assert np.unique(spans(host, "PjitFunction(train_step)")[0]).size >= 12


def test_the_committed_files_hold_exactly_what_the_generator_makes() -> None:
    assert make_synthetic_xplane.check() == []


@stories
def test_the_same_story_told_twice_gives_the_same_bytes(story: Story) -> None:
    assert story.space().encoded() == story.space().encoded()


@pytest.mark.parametrize("name", ["gpu_keras_input_bound", "gpu_jax_healthy"])
def test_every_device_event_starts_after_the_call_that_launched_it(name: str) -> None:
    space = space_of(f"synthetic/{name}.xplane.pb")
    host, device = plane_of(space, "/host:CPU"), plane_of(space, "/device:GPU:0")
    calls, work = host.stats_of("correlation_id"), device.stats_of("correlation_id")
    called = dict(zip(calls.value.tolist(), host.start_ps(0)[calls.event].tolist(), strict=True))
    delays = [
        start - called[number]
        for number, start in zip(work.value.tolist(), device.start_ps(0)[work.event].tolist(), strict=True)
    ]
    assert len(delays) == len(device.events) >= 84
    assert min(delays) >= 5 * US * 1000


def test_the_device_of_the_input_bound_story_idles_while_the_iterator_is_asked() -> None:
    space = space_of("synthetic/gpu_keras_input_bound.xplane.pb")
    host, device = plane_of(space, "/host:CPU"), plane_of(space, "/device:GPU:0")
    asked, given = spans(host, "IteratorGetNextOp::DoCompute")
    starts = device.start_ps(0)
    busy = [
        (int(np.sum((starts < end) & (starts + device.events.dur_ps > begin))))
        for begin, end in zip(asked, given, strict=True)
    ]
    assert busy == [0] * 12
    steps = spans(host, "Profiled batch")
    assert 0.40 < float(np.sum(given - asked) / np.sum(steps[1] - steps[0])) < 0.50


def test_iterator_ids_lie_on_both_sides_of_what_fits_into_int64() -> None:
    assert sorted({number >= 2**63 for number in ITERATOR_IDS}) == [False, True]


def test_a_capture_with_dropped_events_lacks_them_and_says_so() -> None:
    whole = space_of("synthetic/gpu_keras_input_bound.xplane.pb")
    cut = space_of("synthetic/gpu_events_dropped.xplane.pb")
    events = [len(plane_of(space, "/device:GPU:0").events) for space in (whole, cut)]
    assert events == [84, 49]
    assert [text[:27] for text in cut.warnings] == ["Detected GPU events dropped"]
    assert tuple(whole.warnings) == ()


def test_the_tpu_spends_close_to_half_of_its_steps_in_its_infeed() -> None:
    device = plane_of(space_of("synthetic/tpu_infeed_wait.xplane.pb"), "/device:TPU:0")
    categories = {device.names[name]: stats["hlo_category"] for name, stats in device.name_stats.items()}
    (infeed,) = (name for name, category in categories.items() if category == "infeed")
    starts, ends = spans(device, infeed)
    module = spans(device, "jit_train_step(11)")
    assert 0.45 < float(np.sum(ends - starts) / np.sum(module[1] - module[0])) < 0.50
