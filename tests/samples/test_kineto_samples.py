"""The PyTorch samples match the manifest, and show their stories, read with Python's JSON alone."""

from __future__ import annotations

import gzip
import json
import re
import statistics
import tomllib
from collections import Counter
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any

import make_synthetic_kineto
import pytest
from kineto_program import COLLECTIVE_STREAM, COMPUTE_STREAM
from kineto_stories import FIRST_STEP, SINGLE, STEPS, STORIES, WORKERS

from tests.conftest import REPOSITORY

SAMPLES = REPOSITORY / "sample_traces"
MANIFEST: list[dict[str, Any]] = tomllib.loads((SAMPLES / "MANIFEST.toml").read_text(encoding="utf-8"))["trace"]
ENTRIES = {entry["file"]: entry for entry in MANIFEST if entry["file"].endswith(".pt.trace.json.gz")}
SYNTHETIC = sorted(name for name, entry in ENTRIES.items() if entry["synthetic"])
RECORDED = sorted(set(ENTRIES) - set(SYNTHETIC))

Event = dict[str, Any]

synthetic = pytest.mark.parametrize("name", SYNTHETIC)


@cache
def trace_of(name: str) -> dict[str, Any]:
    """Return the file with exact times."""
    return json.loads(gzip.decompress((SAMPLES / name).read_bytes()), parse_float=Decimal)


def events(name: str, category: str, containing: str = "") -> list[Event]:
    """Return events of a category, by start."""
    chosen = [event for event in trace_of(name)["traceEvents"] if event.get("cat") == category]
    return sorted((event for event in chosen if containing in event["name"]), key=lambda event: event["ts"])


def end(event: Event) -> Decimal:
    return event["ts"] + event["dur"]


def steps_of(name: str) -> list[Event]:
    return events(name, "user_annotation", "ProfilerStep#")


def wait_share(name: str) -> float:
    """Return the part of the steps in the range of the DataLoader."""
    waits = events(name, "user_annotation", "enumerate(DataLoader)")
    return float(sum(wait["dur"] for wait in waits) / sum(step["dur"] for step in steps_of(name)))


def median_step_ms(name: str) -> float:
    return float(statistics.median(step["dur"] for step in steps_of(name))) / 1000


def test_the_committed_files_hold_exactly_what_the_generator_makes() -> None:
    assert make_synthetic_kineto.check() == []
    assert len(SYNTHETIC) == len(STORIES) + 3


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_a_capture_is_small_and_holds_as_many_events_as_the_manifest_says(name: str) -> None:
    assert len(trace_of(name)["traceEvents"]) == ENTRIES[name]["events"]
    assert ENTRIES[name]["bytes"] < 150_000


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_names_no_path_but_that_of_its_own_passing_file(name: str) -> None:
    text = gzip.decompress((SAMPLES / name).read_bytes()).decode()
    assert re.fullmatch(r"/tmp/tmp\w{8}\.json", trace_of(name)["traceName"])
    assert [path for path in re.findall(r'"[^"\s]*/[a-z]+/[^"\s]*"', text) if path.startswith('"/')] == [
        f'"{trace_of(name)["traceName"]}"'
    ]
    assert trace_of(name)["host_name"] == "sample"


@pytest.mark.parametrize(
    ("story", "low", "high"), [("slow", 0.5, 0.75), ("workers", 0.2, 0.6), ("repaired", 0.0, 0.04)]
)
def test_a_loader_holds_the_training_process_for_the_share_of_its_story(story: str, low: float, high: float) -> None:
    assert low <= wait_share(f"kineto/{story}.pt.trace.json.gz") < high


def test_the_repaired_loader_makes_steps_at_least_twice_as_fast_as_the_slow_one() -> None:
    slow, repaired = (median_step_ms(f"kineto/{story}.pt.trace.json.gz") for story in ("slow", "repaired"))
    assert slow / repaired > 2


def test_without_a_schedule_no_step_is_marked_and_batches_still_are() -> None:
    name = "kineto/without_steps.pt.trace.json.gz"
    assert steps_of(name) == []
    assert len(events(name, "user_annotation", SINGLE)) == 5


def test_stacks_and_memory_are_in_the_recording_that_is_named_after_them() -> None:
    name = "kineto/stacks_memory.pt.trace.json.gz"
    assert {key: trace_of(name)[key] for key in ("with_stack", "profile_memory", "record_shapes")} == {
        "with_stack": 1,
        "profile_memory": 1,
        "record_shapes": 1,
    }
    found = Counter(event.get("cat") for event in trace_of(name)["traceEvents"])
    assert found["python_function"] > 1000
    assert found["cpu_instant_event"] > 500


def test_two_recorded_ranks_know_their_places_and_the_first_waits_longer_for_the_second() -> None:
    names = [f"kineto/two_ranks/rank{rank}.pt.trace.json.gz" for rank in range(2)]
    places = [trace_of(name)["distributedInfo"] for name in names]
    assert [(place["rank"], place["world_size"], place["backend"]) for place in places] == [
        (0, 2, "gloo"),
        (1, 2, "gloo"),
    ]
    waits = [sum(event["dur"] for event in events(name, "user_annotation", "gloo:all_reduce")) for name in names]
    assert waits[0] > 2 * waits[1]


@synthetic
def test_every_story_marks_twelve_steps_once_on_the_host_and_once_on_the_device(name: str) -> None:
    numbers = [f"ProfilerStep#{number}" for number in range(FIRST_STEP, FIRST_STEP + STEPS)]
    assert [step["name"] for step in steps_of(name)] == numbers
    copies = [event for event in events(name, "gpu_user_annotation", "ProfilerStep") if event["tid"] == COMPUTE_STREAM]
    assert [copy["name"] for copy in copies] == numbers


@synthetic
def test_work_starts_after_its_call_began_and_follows_the_work_before_it(name: str) -> None:
    calls = {call["args"]["correlation"]: call for call in events(name, "cuda_runtime")}
    work = sorted(events(name, "kernel") + events(name, "gpu_memcpy"), key=lambda event: event["ts"])
    assert len(work) >= 96
    assert min(event["ts"] - calls[event["args"]["correlation"]]["ts"] for event in work) >= 6
    for stream in (COMPUTE_STREAM, COLLECTIVE_STREAM):
        mine = [event for event in work if event["tid"] == stream]
        assert all(second["ts"] - end(first) >= 1 for first, second in pairwise(mine))


@synthetic
def test_arrows_lead_from_calls_to_work_with_the_same_number(name: str) -> None:
    arrows = events(name, "ac2g")
    starts = {arrow["id"] for arrow in arrows if arrow["ph"] == "s"}
    ends = Counter(arrow["id"] for arrow in arrows if arrow["ph"] == "f")
    work = Counter(event["args"]["correlation"] for event in events(name, "kernel") + events(name, "gpu_memcpy"))
    assert starts == set(work)
    assert ends == work


@pytest.mark.parametrize(
    ("story", "loader", "low", "high"),
    [
        ("healthy", WORKERS, 0.0, 0.02),
        ("input_bound_single", SINGLE, 0.85, 0.99),
        ("input_bound_workers", WORKERS, 0.85, 0.99),
    ],
)
def test_a_synthetic_loader_is_of_the_kind_of_its_story(story: str, loader: str, low: float, high: float) -> None:
    name = f"synthetic/torch_{story}.pt.trace.json.gz"
    assert len(events(name, "user_annotation", loader)) == STEPS
    assert low < wait_share(name) < high


def test_small_kernels_keep_the_device_busy_only_where_a_graph_launches_them() -> None:
    busy = {}
    for story in ("launch_bound", "cuda_graphs"):
        kernels = events(f"synthetic/torch_{story}.pt.trace.json.gz", "kernel")
        span = end(kernels[-1]) - kernels[0]["ts"]
        busy[story] = float(sum(kernel["dur"] for kernel in kernels) / span)
    assert 0.5 < busy["launch_bound"] < 0.75
    assert 0.85 < busy["cuda_graphs"] < 1
    graph = events("synthetic/torch_cuda_graphs.pt.trace.json.gz", "kernel")
    nodes = [kernel for kernel in graph if "graph node id" in kernel["args"]]
    assert len(nodes) == 48 * STEPS
    assert len({kernel["args"]["correlation"] for kernel in nodes}) == STEPS


def test_four_ranks_end_their_collectives_together_and_the_third_always_comes_last() -> None:
    names = [f"synthetic/torch_four_ranks_straggler/rank{rank}.pt.trace.json.gz" for rank in range(4)]
    collectives = [events(name, "kernel", "ncclDevKernel_AllReduce") for name in names]
    assert [len(found) for found in collectives] == [STEPS] * 4
    for together in zip(*collectives, strict=True):
        assert len({end(kernel) for kernel in together}) == 1
        assert max(range(4), key=lambda rank: together[rank]["ts"]) == 2
    assert [trace_of(name)["distributedInfo"]["rank"] for name in names] == [0, 1, 2, 3]


def test_the_memory_story_reserves_nearly_all_of_the_device_and_the_healthy_one_does_not() -> None:
    shares = {}
    for story in ("healthy", "memory_nearly_full"):
        name = f"synthetic/torch_{story}.pt.trace.json.gz"
        (device,) = trace_of(name)["deviceProperties"]
        reserved = max(event["args"]["Total Reserved"] for event in events(name, "cpu_instant_event"))
        shares[story] = reserved / device["totalGlobalMem"]
    assert shares["healthy"] < 0.6
    assert shares["memory_nearly_full"] > 0.95
