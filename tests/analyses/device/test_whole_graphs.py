"""CUDA graphs that were recorded as a whole: device work that keeps a device busy, and that is no kernel anywhere.

::

    host     |launch graph|         |launch|
    device                 |-- graph 4 --|    |kernel|
"""

from tests.analyses.builders import trace
from tests.analyses.sections import facts
from traceviz.analyses.derived.capture.kind import capture_kind
from traceviz.analyses.derived.device.work import kernel_busy
from traceviz.analyses.derived.host.classes import host_classes
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.device.copies import CopiesAnalysis
from traceviz.analyses.device.devices import DevicesAnalysis
from traceviz.analyses.device.gpu_efficiency import GpuEfficiencyAnalysis
from traceviz.analyses.device.idle_gaps import IdleGapsAnalysis
from traceviz.analyses.device.kernels import KernelsAnalysis
from traceviz.analyses.device.use import DeviceUseAnalysis
from traceviz.analyses.launch.launch import LaunchAnalysis
from traceviz.report import Prose, Skipped

MS = 1_000_000
CALL = {"correlation_id": 1}
GPU = {"sm_count": 108, "memory_bytes": 1 << 30}


def capture(**extra):
    """Return a capture of 10 ms with a graph of 6 ms and a kernel of 1 ms."""
    literals = {
        "cuda_api": [(0, MS, "cudaGraphLaunch", CALL), (MS, MS, "cudaLaunchKernel", {"correlation_id": 2})],
        "graphs": [(2 * MS, 6 * MS, 4, CALL)],
        "kernels": [(9 * MS, MS, "k", {"correlation_id": 2})],
        "devices": [(0, "GPU", {"ordinal": 0, **GPU})],
    }
    return trace(span_ns=10 * MS, **literals | extra)


def test_a_graph_keeps_its_device_busy():
    use = DeviceUseAnalysis().run(capture())
    assert (use.devices[0].busy_ns, use.devices[0].extent_ns) == (7 * MS, 8 * MS)
    assert facts(IdleGapsAnalysis(), capture())["idle_ns"] == MS


def test_a_graph_computes():
    assert host_classes(capture())[0].sets["device_compute"].total == 7 * MS
    assert kernel_busy(capture())[0].total == 7 * MS


def test_a_graph_is_no_kernel():
    view = capture()
    assert facts(KernelsAnalysis(), view)["calls"] == 1
    assert facts(KernelsAnalysis(), view)["total_ns"] == MS
    assert facts(LaunchAnalysis(), view)["kernels_without_launch"] == 0
    (device,) = DevicesAnalysis().run(view).devices
    assert (device.kernels, device.kernel_ns) == (1, 7 * MS)


def test_the_launch_of_a_graph_is_queued_until_the_graph_begins():
    by_name = {row["name"]: row for row in LaunchAnalysis().run(capture()).by_name.to_dicts()}
    graph = by_name["cudaGraphLaunch"]
    assert (graph["queued"], graph["queue_median_ns"], graph["kernels"], graph["kernel_total_ns"]) == (1, MS, 0, 0)


def test_a_device_that_only_runs_graphs_is_used():
    two = [(number, "GPU", {"ordinal": number, **GPU}) for number in range(2)]
    graphs = [(2 * MS, 6 * MS, 4, CALL), (2 * MS, 6 * MS, 4, {"device_id": 1})]
    one, both = (capture(devices=two, host_ops=[], graphs=found) for found in (graphs[:1], graphs))
    assert [DevicesAnalysis().run(view).computing for view in (one, both)] == [1, 2]


def test_how_kernels_in_graphs_fill_a_device_is_not_judged():
    skipped = GpuEfficiencyAnalysis().run(capture())
    assert isinstance(skipped, Skipped)
    assert "CUDA graphs that were recorded as a whole" in skipped.reason
    little = capture(graphs=[(2 * MS, MS, 4, CALL)])
    assert not isinstance(GpuEfficiencyAnalysis().run(little), Skipped)


def test_grids_beside_a_graph_are_not_the_only_ones():
    small = {"grid_x": 1, "correlation_id": 2}
    alone = capture(kernels=[(9 * MS, MS, "k", small)])
    beside = capture(kernels=[(3 * MS, MS, "k", small)])
    assert [DevicesAnalysis().run(view).small_busy_ns for view in (alone, beside)] == [MS, 0]


def test_the_section_on_kernels_says_which_graphs_hide_kernels():
    graphs = [(2 * MS, 2 * MS, 4, CALL), (4 * MS, 3 * MS, 5, CALL), (7 * MS, MS, None, CALL)]
    section = KernelsAnalysis().describe(KernelsAnalysis().run(capture(graphs=graphs)))
    (text,) = (block.text for block in section.blocks if isinstance(block, Prose))
    assert text.startswith(
        "CUDA graphs were recorded as a whole 3 × (6.00 ms, most of it in CUDA graph 5 (1 × in 3.00 ms)"
    )


def test_a_copy_beside_a_graph_is_not_exposed():
    copies = [(3 * MS, MS, "h2d", "pageable", "device", 1 << 20), (8 * MS, MS, "h2d", "pageable", "device", 1 << 20)]
    assert CopiesAnalysis().run(capture(memcpy=copies)).exposed_ns == MS


def test_steps_are_found_where_graphs_repeat():
    graphs = [(number * 10 * MS, 8 * MS, 4) for number in range(12)]
    after = [(start + dur + place * 100, 100, f"k{place}") for start, dur, _ in graphs for place in range(3)]
    steps = training_steps(trace(graphs=graphs, kernels=after))
    assert (steps.source, steps.marker, steps.frame.height) == ("kernel_cycle", "CUDA graph 4", 11)


def test_one_kernel_beside_graphs_is_no_benchmark_of_it():
    assert capture_kind(capture()).key != "one-kernel"
    assert capture_kind(capture(graphs=[])).key == "one-kernel"
