"""Framework ops and memory peaks, compared with xprof's own tools on the same captures."""

import pytest

from traceviz import api
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.memory import MemoryAnalysis
from traceviz.analyses.program.framework_ops import FrameworkOpsAnalysis

pytestmark = pytest.mark.oracle

SAMPLES = ("slow_map.xplane.pb.gz", "repaired.xplane.pb", "tfrecord.xplane.pb.gz", "generator.xplane.pb.gz")
PUBLIC = (
    "ecbme4040__e4040-2022fall-assign2-yg2820__2022_10_31_19_09_08__gaoyihaodeMacBook-Pro.local.xplane.pb",
    "ecbme4040__e4040-2022fall-assign2-yg2820__2022_11_04_21_26_12__instance-ecbm.xplane.pb",
    "tensorflow__profiler__34.83.195.179_6003.xplane.pb",
)

EVENT_US = 0.002
"""Our times are whole nanoseconds, floored at both ends of an event; xprof sums picoseconds."""


def host_ops(answer):
    """Return xprof's rows of host ops with time, without iterators: ``{(op, type): (occurrences, total, self)}``."""
    return {
        (row["operation"], row["type"]): (row["occurrences"], row["total_time"], row["total_self_time"])
        for row in answer[1]["rows"]
        if row["host_or_device"] == "Host" and row["type"] != "Dataset" and row["total_time"]
    }


def check_ops(file, ask_xprof):
    expected = host_ops(ask_xprof("framework_ops", file))
    by_op = FrameworkOpsAnalysis().run(TraceView(api.open_trace(file))).by_op
    measured = {(row["op"], row["type"]): row for row in by_op.iter_rows(named=True) if row["calls"]}
    assert expected
    assert set(expected) <= set(measured)
    for op, (occurrences, total_us, self_us) in expected.items():
        row = measured[op]
        assert row["calls"] <= occurrences, op  # xprof also counts memory events that name the op, without time
        assert row["host_ns"] / 1000 == pytest.approx(total_us, abs=EVENT_US * row["calls"]), op
        assert row["host_self_ns"] / 1000 == pytest.approx(self_us, abs=5 * EVENT_US * row["calls"]), op


@pytest.mark.parametrize("name", SAMPLES)
def test_host_times_of_ops_equal_xprofs_on_samples(name, samples, ask_xprof):
    check_ops(samples / "xplane" / name, ask_xprof)


@pytest.mark.parametrize("name", PUBLIC)
def test_host_times_of_ops_equal_xprofs_on_public_traces(name, public_traces, ask_xprof):
    check_ops(public_traces / "xplane" / name, ask_xprof)


@pytest.mark.parametrize(("name", "pools"), [(PUBLIC[1], 2), (PUBLIC[2], 4)])
def test_memory_peaks_equal_xprofs(name, pools, public_traces, ask_xprof):
    file = public_traces / "xplane" / name
    expected = ask_xprof("memory", file)["memoryProfilePerAllocator"]
    measured = {use.pool.label: use for use in MemoryAnalysis().run(TraceView(api.open_trace(file))).pools}
    assert len(measured) == pools
    assert set(measured) == set(expected)
    for pool, profile in expected.items():
        summary, use = profile["profileSummary"], measured[pool]
        peak = summary["peakStats"]
        assert use.peak_bytes == int(peak["peakBytesInUse"]) == int(peak["heapAllocatedBytes"])
        assert use.available_bytes == int(peak["freeMemoryBytes"])
        assert use.capacity_bytes == int(summary["memoryCapacity"])
        assert use.highest_bytes >= int(summary["peakBytesUsageLifetime"])
