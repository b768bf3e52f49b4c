"""Classes are exclusive, add up to the step, and follow their priority."""

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given

from tests.analyses.builders import trace
from traceviz.analyses.derived.host.classes import CLASSES, host_classes
from traceviz.analyses.derived.host.input_fetches import INPUT_NAME, NOT_INPUT_NAME
from traceviz.analyses.derived.steps.search import training_steps
from traceviz.analyses.steps.breakdown import BreakdownAnalysis
from traceviz.report import Bars, Prose, Skipped

LOADING = "data loading"


def loop(**step):
    """Return four steps of 100 ns; the arguments give the events of one step, relative to its start."""
    tables = {"nvtx": [(i * 100, 100, f"step {i}") for i in range(4)]}
    for name, events in step.items():
        rows = [(i * 100 + start, *rest) for i in range(4) for start, *rest in events]
        tables[name] = tables.get(name, []) + rows
    return trace(**tables, span_ns=400)


def times(view):
    return {key: value / 4 for key, value in BreakdownAnalysis().run(view).times.items() if value}


def test_every_class_gets_its_part_of_a_hand_made_step():
    view = loop(
        nvtx=[(0, 30, LOADING)],
        kernels=[(50, 20, "sgemm"), (65, 15, "ncclDevKernel_AllReduce")],
        memcpy=[(30, 5, "h2d", "pinned", "device", 10), (80, 4, "d2h", "device", "pinned", 10)],
        memset=[(35, 2, 10)],
        cuda_api=[
            (40, 3, "cudaMalloc"),
            (44, 4, "cudaLaunchKernel"),
            (84, 6, "cudaStreamSynchronize"),
            (90, 1, "cuModuleLoadData"),
        ],
        os_calls=[(91, 5, "poll")],
    )
    assert times(view) == {
        "device_compute": 20,
        "communication": 10,
        "copy_d2h": 4,
        "copy_h2d": 5,
        "other_device": 2,
        "input_wait": 30,
        "synchronisation": 6,
        "allocation": 3,
        "kernel_launch": 4,
        "compilation": 1,
        "host_blocked": 5,
        "host_compute": 10,
    }


def test_a_busy_device_hides_what_the_host_does():
    view = loop(nvtx=[(0, 90, LOADING)], kernels=[(0, 100, "sgemm")], cuda_api=[(10, 50, "cudaMalloc")])
    assert times(view) == {"device_compute": 100}


def test_waiting_for_queued_work_counts_as_launch():
    view = trace(
        nvtx=[(i * 100, 100, f"step {i}") for i in range(4)],
        kernels=[(i * 100 + 50, 50, "sgemm", {"correlation_id": i}) for i in range(4)],
        cuda_api=[(i * 100 + 20, 10, "cuLaunchKernel", {"correlation_id": i}) for i in range(4)],
    )
    assert times(view)["kernel_launch"] == 30


def test_the_driver_api_counts_as_the_runtime_api_does():
    view = loop(
        kernels=[(90, 10, "k")],
        cuda_api=[(0, 20, "cuMemAlloc_v2"), (20, 30, "cuMemcpyHtoD_v2"), (50, 40, "cuCtxSynchronize")],
    )
    assert times(view) == {"device_compute": 10, "allocation": 20, "synchronisation": 70}


def test_loading_on_another_thread_is_no_wait():
    view = loop(nvtx=[(0, 80, LOADING, {"thread_id": 1})], kernels=[(80, 20, "k")])
    assert "input_wait" not in times(view)


def test_an_os_call_inside_a_cuda_call_is_not_host_blocked():
    view = loop(kernels=[(0, 10, "k")], cuda_api=[(10, 80, "cudaEventQuery")], os_calls=[(20, 40, "poll")])
    assert "host_blocked" not in times(view)


def test_two_ranks_are_broken_down_each_with_its_own_host():
    other = {"process_id": 1, "thread_id": 1}
    view = trace(
        nvtx=[(i * 100, 100, f"step {i}") for i in range(4)] + [(i * 100, 100, f"step {i}", other) for i in range(4)],
        kernels=[(i * 100, 60, "a") for i in range(4)]
        + [(i * 100, 20, "a", {"process_id": 1, "device_id": 1}) for i in range(4)],
    )
    result = BreakdownAnalysis().run(view)
    assert result.step_ns == 800
    assert result.times["device_compute"] == 240 + 80


def test_without_steps_there_is_nothing_to_break_down():
    assert isinstance(BreakdownAnalysis().run(trace(kernels=[(0, 10, "k")])), Skipped)


def test_classes_that_the_capture_cannot_see_are_named():
    text = str(BreakdownAnalysis().describe(BreakdownAnalysis().run(loop(kernels=[(0, 10, "k")]))))
    assert "Not recorded by this capture: synchronisation, allocation, kernel launch, compilation, host blocked" in text


def test_a_framework_on_the_host_alone_misses_no_device():
    steps = [(100 * i, 100, i, {"device_id": None}) for i in range(4)]
    waits = [(100 * i, 30, "IteratorGetNext:IteratorGetNext", "input") for i in range(4)]
    view = trace(steps=steps, host_ops=waits, devices=[])
    result = BreakdownAnalysis().run(view)
    assert (result.times["input_wait"], result.times["host_compute"]) == (120, 280)
    text = str(BreakdownAnalysis().describe(result))
    assert "No device was captured" in text
    assert "Not recorded" not in text


EVENT = st.tuples(st.integers(0, 390), st.integers(0, 200))


@given(
    kernels=st.lists(EVENT, min_size=1, max_size=8),
    copies=st.lists(EVENT, max_size=4),
    calls=st.lists(
        st.tuples(EVENT, st.sampled_from(["cudaMalloc", "cudaLaunchKernel", "cuCtxSynchronize", "cudaEventQuery"])),
        max_size=8,
    ),
    loading=st.lists(EVENT, max_size=3),
    os_calls=st.lists(EVENT, max_size=4),
)
def test_classes_add_up_to_the_step_whatever_overlaps(kernels, copies, calls, loading, os_calls):
    view = trace(
        nvtx=[(i * 100, 100, f"step {i}") for i in range(4)] + [(s, d, LOADING) for s, d in loading],
        kernels=[(s, d, "k") for s, d in kernels],
        memcpy=[(s, d, "h2d", "pinned", "device", 1) for s, d in copies],
        cuda_api=[(s, d, name) for (s, d), name in calls],
        os_calls=[(s, d, "poll") for s, d in os_calls],
    )
    result = BreakdownAnalysis().run(view)
    steady = training_steps(view).steady
    assert result.step_ns == (steady["end_ns"] - steady["start_ns"]).sum()
    sets = host_classes(view)[0].sets
    assert sum(part.total for part in sets.values()) == view.span_ns
    assert set(sets) == {c.key for c in CLASSES}


INPUT = "Data loading|enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__|load_batch|next batch|input"
INPUT += "|IteratorGetNext|Iterator::Prefetch|fetch data|preprocess|data"
OTHERS = "Copy to device|update|metadata|aten::data_ptr|DistributedDataParallel.forward|Forward pass|train"
OTHERS += "|loading weights|batch 12"


@pytest.mark.parametrize(
    ("name", "is_input"), [*((n, True) for n in INPUT.split("|")), *((n, False) for n in OTHERS.split("|"))]
)
def test_input_is_recognised_by_its_name(name, is_input):
    matches = pl.lit(name).str.contains(INPUT_NAME) & ~pl.lit(name).str.contains(NOT_INPUT_NAME)
    assert pl.select(matches).item() is is_input


def test_a_class_that_has_time_is_not_called_unrecorded():
    view = trace(
        run={"format": "xplane"},
        steps=[(0, 1_000, 0), (1_000, 1_000, 1)],
        kernels=[(500, 100, "k"), (1_500, 100, "k")],
        cuda_api=[(10, 20, "hipModuleLaunchKernel")],  # XLA passes on no waits of ROCm
        host_ops=[(200, 250, "$api.py:1 block_until_ready", "python")],
    )
    section = BreakdownAnalysis().describe(BreakdownAnalysis().run(view))
    (bars,) = (block for block in section.blocks if isinstance(block, Bars))
    assert {bar.key: bar.value for bar in bars.bars}["synchronisation"] == 250
    (unseen,) = (block.text for block in section.blocks if isinstance(block, Prose))
    assert "synchronisation" not in unseen
    assert "allocation" in unseen
