"""Exclusive parts of the judged time: one number for the headline and for findings, and places over the same time."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.causes.parts import find_place, limit_to_parts, part_times
from traceviz.analyses.run import analyze

GPU = [(0, 100, "gemm"), (900, 100, "gemm")]
"""Device work at both ends of 1,000 ns: 800 ns between."""
ENDS = [(0, 1_000, "main.py(1): main", "python"), (10_000, 1, "aten::add", "op")]
"""A frame around everything, and an event that makes the capture longer than it."""


def share_of(report, key):
    return next(candidate.share for candidate in report.verdict.candidates if candidate.key == key)


@pytest.mark.parametrize(("launch", "host"), [(200, 0.5), (0, 0.5)])
def test_launches_are_no_work_of_the_host_in_the_headline_nor_in_the_finding(launch, host):
    calls = [(700, launch, "cudaLaunchKernel")] if launch else []
    report = analyze(tables(kernels=GPU, cuda_api=calls, host_ops=[(100, 500, "aten::linear", "op")]))
    (bound,) = (finding for finding in report.findings if finding.code == "TV205")
    assert (share_of(report, "host"), bound.share) == (host, host)
    assert f"In {host:.1%}".replace("%", " %") in bound.message
    assert all(candidate.share <= 1 for candidate in report.verdict.candidates)


def test_parts_add_up_to_the_judged_time():
    view = trace(
        kernels=GPU,
        memcpy=[(650, 50, "h2d", "pinned", "device", 8)],
        cuda_api=[(700, 150, "cudaLaunchKernel"), (600, 50, "cudaMalloc")],
        host_ops=[(100, 500, "aten::linear", "op")],
    )
    times = part_times(view)
    assert sum(times.values()) == 1_000
    assert times["device_compute"] == 200
    assert (times["host"], times["kernel_launch"], times["allocation"], times["copy_h2d"]) == (500, 150, 50, 50)


@pytest.mark.parametrize(("cost", "limited"), [(900, 800), (800, 800), (10, 10)])
def test_a_finding_has_at_most_the_parts_that_it_explains(cost, limited):
    view = trace(kernels=GPU, host_ops=[(100, 800, "aten::linear", "op")])
    assert limit_to_parts(view, "TV205", cost, 1_000) == limited
    assert limit_to_parts(view, "TV208", cost, 1_000) == cost  # no part of it was recorded, so nothing limits it


class TestPlace:
    def test_calls_that_nest_in_one_of_their_name_count_once(self):
        # walk has 300 of 800 ns, and 900 if its three levels were added
        walk = [(100, 300, "walk"), (100, 300, "walk"), (100, 300, "walk")]
        view = trace(kernels=GPU, nvtx=walk, host_ops=[*ENDS, (400, 500, "aten::linear", "op")])
        assert find_place(view, "host") != "walk"

    @pytest.mark.parametrize(("length", "place"), [(399, False), (400, True), (720, True)])
    def test_is_named_from_half_of_the_time_on(self, length, place):
        rest = (100 + length, 800 - length, "aten::linear", "op")
        view = trace(kernels=GPU, nvtx=[(100, length, "a gather")], host_ops=[rest, ENDS[1]])
        assert (find_place(view, "host") == "a gather") == place

    def test_is_over_the_time_of_the_part_alone(self):
        # sync is around 500 ns, none of which is work of the host
        view = trace(
            kernels=GPU,
            nvtx=[(100, 200, "prepare"), (300, 600, "sync")],
            cuda_api=[(300, 600, "cudaDeviceSynchronize")],
            host_ops=[(150, 150, "aten::linear", "op"), ENDS[1]],
        )
        assert find_place(view, "host") == "prepare"

    def test_is_no_short_call_that_ends_within_the_time_it_starts_before(self):
        crossing = [(100, 20, "enter"), (110, 780, "aten::linear", "op")]
        view = trace(kernels=GPU, nvtx=crossing[:1], host_ops=[crossing[1], ENDS[1]])
        assert find_place(view, "host") == "aten::linear"

    def test_is_the_frame_of_the_program_and_not_that_of_a_library_inside(self):
        frames = [
            (100, 800, "train.py(7): prepare", "python"),
            (100, 800, "torch/nn/modules/module.py(1): _call_impl", "python"),
        ]
        view = trace(kernels=GPU, host_ops=[*frames, ENDS[1]])
        assert find_place(view, "host") == "prepare (train.py)"


@pytest.mark.parametrize(
    ("overhead", "share"),
    [((950, 50), None), ((100, 300), 0.3)],  # while a device works nothing is lost
)
def test_the_profiler_and_communication_are_never_more_than_the_whole(overhead, share):
    kernels = [(0, 100, "gemm"), (400, 600, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")]
    report = analyze(tables(kernels=kernels, overhead=[(*overhead, "flush", {"thread_id": None})]))
    found = [finding.share for finding in report.findings if finding.code == "TV902"]
    assert found == ([] if share is None else [share])
    assert report.verdict.cause == "exposed-communication"
    named = [c.share for c in report.verdict.candidates if c.key not in {"communication", "profiler"}]
    assert sum(named) <= 1
