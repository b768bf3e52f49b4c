"""Copies by kind and memory, and the two ways in which they hold the device up."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.device.copies import CopiesAnalysis
from traceviz.report import Grid, Prose, Severity

MB = 1_000_000


def run(**tables):
    return CopiesAnalysis().run(trace(**tables))


def findings(**tables):
    return {finding.code: finding for finding in CopiesAnalysis().judge(run(**tables))}


def rows(result, number=0):
    grid = [block for block in CopiesAnalysis().describe(result).blocks if isinstance(block, Grid)][number]
    names = [column.name for column in grid.columns]
    return [dict(zip(names, row, strict=True)) for row in grid.rows]


def test_copies_are_summed_by_kind_and_memory_with_their_effective_bandwidth():
    result = run(
        memcpy=[
            (0, 1_000, "h2d", "pinned", "device", 10_000),
            (2_000, 3_000, "h2d", "pinned", "device", 30_000),
            (9_000, 500, "d2h", "device", "pageable", 8),
        ]
    )
    pinned, pageable = rows(result)
    assert (pinned["kind"], pinned["calls"], pinned["bytes"], pinned["total_ns"]) == ("h2d", 2, 40_000, 4_000)
    assert pinned["bandwidth"] == 10e9  # bytes per second
    assert (pinned["mean_bytes"], pinned["small_calls"]) == (20_000.0, 2)
    assert (pageable["src_memory"], pageable["dst_memory"], pageable["bytes"]) == ("device", "pageable", 8)


def test_fills_are_rows_of_kind_memset():
    result = run(memcpy=[], memset=[(0, 10, 1_000), (20, 30, 3_000)])
    row = rows(result)[0]
    assert (row["kind"], row["src_memory"], row["dst_memory"], row["calls"]) == ("memset", None, "device", 2)
    assert (row["bytes"], row["total_ns"], row["median_ns"], row["bandwidth"]) == (4_000, 40, 20.0, 100e9)


def test_the_grid_by_kind_has_the_distribution_of_times_and_sizes():
    result = run(
        memcpy=[(i * 100, d, "d2d", "device", "device", b) for i, (d, b) in enumerate([(1, 4), (3, 8), (8, 6)])]
    )
    row = rows(result, 1)[0]
    assert (row["calls"], row["total_ns"], row["median_ns"], row["min_ns"], row["max_ns"]) == (3, 12, 3.0, 1, 8)
    assert (row["median_bytes"], row["min_bytes"], row["max_bytes"], row["stddev_bytes"]) == (6.0, 4, 8, 2.0)


def test_a_copy_is_exposed_where_no_kernel_of_its_device_runs():
    copy = (0, 100, "h2d", "pinned", "device", 8)
    assert run(memcpy=[copy], kernels=[(40, 100, "k")]).exposed_ns == 40
    assert run(memcpy=[copy], kernels=[(40, 100, "k", {"device_id": 1})]).exposed_ns == 100
    assert run(memcpy=[copy, copy]).exposed_ns == 100


STEPS = [(i * MB, MB, i) for i in range(20)]
"""Twenty steps of 1 ms."""


def steps_with_copy(dur, memory="pageable", kind="h2d", size=MB, kernels=()):
    ends = ("device", memory) if kind == "d2h" else (memory, "device")
    return {
        "steps": STEPS,
        "memcpy": [(start, dur, kind, *ends, size) for start, _, _ in STEPS],
        "kernels": [(start + 500_000, 400_000, "k") for start, _, _ in STEPS] + list(kernels),
    }


@pytest.mark.parametrize(
    ("dur", "severity"), [(9_000, None), (11_000, "info"), (49_000, "info"), (51_000, "warning"), (201_000, "error")]
)
def test_exposed_pageable_copies_weigh_by_their_share_of_steady_steps(dur, severity):
    finding = findings(**steps_with_copy(dur)).get("TV302")
    assert (finding.severity if finding else None) == (Severity(severity) if severity else None)
    if finding:
        assert finding.share == pytest.approx(dur / MB, rel=1e-6)


@pytest.mark.parametrize("kind", ["h2d", "d2h"])
def test_pageable_memory_is_judged_in_both_directions_whatever_the_call(kind):
    finding = findings(**steps_with_copy(100_000, kind=kind))["TV302"]
    assert finding.share == pytest.approx(0.1)
    assert {fact.key: fact.value for fact in finding.evidence}["bytes"] % MB == 0


def test_pinned_small_and_hidden_copies_raise_nothing():
    hiding = [(start, 500_000, "k2", {"stream": 8}) for start, _, _ in STEPS]
    assert findings(**steps_with_copy(300_000, memory="pinned")) == {}
    assert findings(**steps_with_copy(300_000, size=64 * 1024)) == {}
    assert findings(**steps_with_copy(300_000, kernels=hiding)) == {}


def test_without_steps_a_small_share_may_be_loading_and_stays_silent():
    tables = {"memcpy": [(0, 40_000, "h2d", "pageable", "device", MB)], "kernels": [(960_000, 40_000, "once")]}
    assert findings(**tables) == {}
    tables["memcpy"] = [(0, 60_000, "h2d", "pageable", "device", MB)]
    assert findings(**tables)["TV302"].share == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("name", "raised"),
    [("cudaMemcpy", True), ("cuMemcpyHtoD_v2", True), ("cudaMemcpyAsync", False), ("cudaMemset", False)],
)
def test_blocking_copy_calls_of_both_apis_count_where_no_kernel_runs(name, raised):
    # the call waits 600 µs, and a kernel runs for 400 µs of it: 200 µs of each step are exposed
    calls = [(start + 400_000, 600_000, name) for start, _, _ in STEPS]
    raised_findings = findings(**steps_with_copy(10, memory="pinned"), cuda_api=calls)
    assert ("TV303" in raised_findings) == raised
    if raised:
        assert raised_findings["TV303"].share == pytest.approx(0.2)


def test_blocking_copies_outside_steady_steps_raise_nothing():
    calls = [(0, 900_000, "cudaMemcpy")]
    assert findings(memcpy=[], kernels=[(900_000, 100_000, "once")], cuda_api=calls) == {}


def test_a_capture_without_copies_says_so_in_one_sentence():
    analysis = CopiesAnalysis()
    blocks = analysis.describe(analysis.run(trace(memcpy=[], memset=[], kernels=[(0, 5, "k")]))).blocks
    shown = [block for block in blocks if getattr(block, "audience", "all") == "all"]
    assert shown == [Prose("Nothing was copied or filled.")]
    assert [block.title for block in blocks if isinstance(block, Grid)] == ["", "By kind", "In steady steps"]
    assert len(blocks) == 5


def test_sizes_that_nobody_recorded_are_unknown_and_not_zero():
    view = trace(memcpy=[(0, 10, "d2d", "device", "device", None), (20, 10, "h2d", "pinned", "device", 4_000)])
    result = CopiesAnalysis().run(view)
    sizes = result.by_memory.select("kind", "bytes", "bandwidth", "small_calls", "mean_bytes").sort("kind").rows()
    assert sizes == [("d2d", None, None, None, None), ("h2d", 4_000, 4_000 / 10 * 1e9, 1, 4_000.0)]
    alone = CopiesAnalysis().run(trace(memcpy=[(0, 10, "d2d", "device", "device", None)], memset=[(20, 5, None)]))
    facts = {fact.key: fact.value for block in CopiesAnalysis().describe(alone).blocks[:1] for fact in block.facts}
    assert (facts["bytes"], facts["calls"]) == (None, 2)


def offloading(dur, memory="pinned"):
    """Return steps of 1 ms, in each a copy of 2 MB that FSDP calls before a layer, and later a kernel."""
    tables = steps_with_copy(dur, memory, size=2 * MB)
    names = [(start, 10_000, f"FSDP::pre_forward (blocks.{n})", "annotation") for n, (start, _, _) in enumerate(STEPS)]
    return {**tables, "host_ops": names}


@pytest.mark.parametrize(
    ("dur", "severity"), [(99_000, None), (101_000, "warning"), (199_000, "warning"), (201_000, "error")]
)
def test_copies_of_parameters_are_a_finding_from_10_percent_of_step_time_on(dur, severity):
    finding = findings(**offloading(dur)).get("TV505")
    assert (finding and finding.severity.name.lower()) == severity


def test_copies_of_parameters_are_named_with_their_place_and_are_no_pageable_copies_besides():
    found = findings(**offloading(300_000, "pageable"))
    assert set(found) == {"TV505"}
    facts = {fact.key: fact.value for fact in found["TV505"].evidence}
    assert facts == {
        "parameter_calls": 20,
        "parameter_bytes": 40 * MB,
        "parameter_exposed_ns": 6 * MB,
        "parameter_place": "FSDP::pre_forward",
    }
    assert any("pinned" in line for line in found["TV505"].advice)
    assert not any("in pinned" in line for line in findings(**offloading(300_000))["TV505"].advice)


def test_copies_of_parameters_that_kernels_hide_cost_nothing():
    tables = offloading(300_000)
    tables["kernels"] = [(start, 900_000, "k") for start, _, _ in STEPS]
    assert not findings(**tables)


def test_a_blocking_call_with_pageable_memory_is_one_finding_that_says_both_and_where():
    begins = [step * 1_000 for step in range(4)]
    keys = [{"correlation_id": step} for step in range(4)]
    found = findings(
        steps=[(begin, 1_000, step) for step, begin in enumerate(begins)],
        kernels=[(begin, 500, "k") for begin in begins],
        cuda_api=[(begin + 500, 400, "cudaMemcpy", key) for begin, key in zip(begins, keys, strict=True)],
        memcpy=[
            (begin + 510, 380, "d2h", "device", "pageable", 100_000, key)
            for begin, key in zip(begins, keys, strict=True)
        ],
        nvtx=[(begin + 450, 500, "save") for begin in begins],
    )
    assert set(found) == {"TV303"}
    assert found["TV303"].message == (
        "4 blocking copy calls from or to pageable host memory of 400 kB in all leave the device without a kernel for "
        "1.60 µs, 40.0 % of the steady step time (mostly in save)."
    )


def test_an_asynchronous_copy_of_pageable_memory_says_the_operator_that_makes_it():
    begins = [step * 1_000 for step in range(4)]
    keys = [{"correlation_id": step} for step in range(4)]
    found = findings(
        steps=[(begin, 1_000, step) for step, begin in enumerate(begins)],
        kernels=[(begin, 500, "k") for begin in begins],
        cuda_api=[(begin + 500, 400, "cudaMemcpyAsync", key) for begin, key in zip(begins, keys, strict=True)],
        memcpy=[
            (begin + 510, 380, "h2d", "pageable", "device", 100_000, key)
            for begin, key in zip(begins, keys, strict=True)
        ],
        host_ops=[(begin + 450, 500, "aten::to", "op") for begin in begins],
    )
    assert ("place", "aten::to") in {(fact.key, fact.value) for fact in found["TV302"].evidence}
    assert "TV303" not in found
