"""PyTorch's DataLoader: which kind steps wait for, what ran inside, and what is only suspected without one."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.host.input_fetches import dispatching
from traceviz.analyses.input.dataloader import LABELS, loader_kind, loader_uses
from traceviz.analyses.input.input_pipeline import InputPipelineAnalysis
from traceviz.analyses.run import analyze
from traceviz.report import Grid

SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MULTI = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
ANALYSIS = InputPipelineAnalysis()
TORCH = {"framework": "PyTorch"}


def loop(waits, name=SINGLE, *, step=1000, inside=(), **more):
    """Return steps of ``step`` ns that take a batch for ``waits[i]`` ns, with ``inside`` running, and then compute."""
    begins = [i * step for i in range(len(waits))]
    host = [(begin, wait, name, "input") for begin, wait in zip(begins, waits, strict=True) if wait]
    host += [(begin + start, dur, *rest) for begin in begins for start, dur, *rest in inside]
    kernels = [(begin + wait, step - wait, "sgemm") for begin, wait in zip(begins, waits, strict=True)]
    return {
        "steps": [(begin, step, i, {"thread_id": 0}) for i, begin in enumerate(begins)],
        "host_ops": host,
        "kernels": kernels,
        "cuda_api": [],
        "run": TORCH,
        **more,
    }


def codes(**literals):
    return [finding.code for finding in analyze(tables(**literals)).findings]


@pytest.mark.parametrize(
    ("wait", "verdict", "codes"),
    [
        (49, "not-input-bound", []),
        (50, "moderately-input-bound", ["TV101", "TV108"]),
        (200, "highly-input-bound", ["TV101", "TV108"]),
    ],
)
def test_a_single_process_loader_is_named_where_steps_wait_for_input(wait, verdict, codes):
    report = analyze(tables(**loop([wait] * 5)))
    assert report.verdict.code == verdict
    assert [f.code for f in report.findings] == codes
    assert ("in the single-process DataLoader (num_workers=0)" in report.verdict.sentence) == bool(codes)


def test_what_the_training_process_did_in_its_loader_adds_up_to_the_wait():
    # __next__  |----------------------------| 500
    # stack        |-------------|              300, with cat 100
    # cat             |----|
    inside = [(50, 300, "aten::stack", "op"), (100, 100, "aten::cat", "op")]
    (use,) = loader_uses(trace(**loop([500] * 4, inside=inside)))
    assert use.inside.rows() == [("aten::stack", "op", 4, 800), (SINGLE, "input", 4, 800), ("aten::cat", "op", 4, 400)]
    assert (use.calls, use.total_ns, use.waited_ns, use.median_ns) == (4, 2000, 2000, 500)


def test_the_parts_are_shown_with_their_share_and_the_stage_is_the_loader_as_a_whole():
    result = ANALYSIS.run(trace(**loop([500] * 4, inside=[(0, 400, "aten::stack", "op")])))
    grids = [block for block in ANALYSIS.describe(result).blocks if isinstance(block, Grid)]
    names = [column.name for column in grids[0].columns]
    stage = dict(zip(names, grids[0].rows[0], strict=True))
    assert (stage["stage"], stage["kind"], stage["self_ns"]) == (LABELS["single-process"], "DataLoader", 2000)
    assert stage["share_of_input"] == 1.0
    assert "num_workers > 0" in stage["advice"]
    assert [(row[0], row[3], row[4]) for row in grids[1].rows] == [
        ("aten::stack", 1600, 0.8),
        ("reading, decoding (not recorded)", 400, 0.2),
    ]


def test_an_operation_behind_which_the_device_worked_is_no_part_of_the_wait():
    # the device works in the first 100 of 500 ns, in which all of cat runs
    steps = loop([500] * 4, inside=[(0, 100, "aten::cat", "op"), (200, 50, "aten::stack", "op")])
    steps["kernels"] += [(begin, 100, "sgemm") for begin, *_ in steps["steps"]]
    result = ANALYSIS.run(trace(**steps))
    grids = [block for block in ANALYSIS.describe(result).blocks if isinstance(block, Grid)]
    assert [(row[0], row[2], row[3], row[4]) for row in grids[1].rows] == [
        ("reading, decoding (not recorded)", 4, 1400, 0.875),
        ("aten::stack", 4, 200, 0.125),
    ]


def test_loading_behind_a_busy_device_is_no_wait_and_nothing_is_said_of_the_loader():
    busy = loop([500] * 4) | {"kernels": [(0, 4000, "sgemm")]}
    (use,) = loader_uses(trace(**busy))
    assert (use.total_ns, use.waited_ns) == (2000, 0)
    assert codes(**busy) == []


def test_slow_workers_are_told_apart_from_a_loader_without_any():
    (tv101, tv109) = analyze(tables(**loop([300] * 6, MULTI))).findings
    assert (tv101.code, tv109.code, tv109.cost_ns) == ("TV101", "TV109", 0)
    assert "raise num_workers" in tv101.advice[0]
    assert tv109.advice == ("Slow loader workers: see the advice of TV101.",)
    assert "6 calls, 300 ns each in the median" in tv109.message


def test_workers_that_start_anew_are_advice_where_there_are_workers_only():
    waits = [900, 5, 5, 5, 5, 5]
    ((multi,), (single,)) = (loader_uses(trace(**loop(waits, name))) for name in (MULTI, SINGLE))
    assert (multi.starts_late, single.starts_late) == (True, True)
    assert ["persistent_workers" in use.advice[0] for use in (multi, single)] == [True, False]


def test_an_operation_that_is_filed_as_input_and_is_no_loader_keeps_its_name():
    result = ANALYSIS.run(trace(**loop([500] * 4, inside=[(0, 400, "read image", "input", {"thread_id": 0})])))
    grids = [block for block in ANALYSIS.describe(result).blocks if isinstance(block, Grid)]
    assert "read image" in {row[0] for grid in grids for row in grid.rows}


def test_workers_that_keep_up_are_no_finding():
    assert codes(**loop([5] * 6, MULTI)) == []


@pytest.mark.parametrize(
    ("waits", "late"),
    [
        ([900, 5, 5, 5, 5, 5], True),
        ([900, 900, 5, 5, 5, 5], False),  # two of six are not rare
        ([300] * 6, False),
    ],
)
def test_a_wait_in_few_long_calls_points_to_workers_that_start_anew(waits, late):
    (use,) = loader_uses(trace(**loop(waits, MULTI)))
    assert (use.starts_late, use.longest_ns) == (late, max(waits))
    assert ("persistent_workers" in use.advice[0]) == late


@pytest.mark.parametrize(
    ("waits", "words"),
    [
        ([900] + [5] * 7, "1 of 8 calls has 96.3 % of that (900 ns, the median call 5 ns)"),
        ([900, *[5] * 9] * 4, "4 of 40 calls have 95.2 % of that (up to 900 ns, the median call 5 ns)"),
        ([900, 700, *[3] * 7], "2 of 9 calls have 98.7 % of that (up to 900 ns, the median call 3 ns)"),
        ([900, *[5] * 3] * 4, ""),  # four workers that deliver at the same time
        ([300, 320, 280, 310, 900, 300], ""),  # a slow batch among slow ones
    ],
)
def test_few_calls_with_most_of_the_wait_are_described_and_more_workers_are_no_advice(waits, words):
    report = analyze(tables(**loop(waits, MULTI)))
    assert bool(words) == ("persistent_workers=True" in report.findings[0].advice[0])
    assert bool(words) != any("num_workers" in line for line in report.findings[0].advice)
    if words:
        assert f"in the multi-process DataLoader: {words}; at best" in report.verdict.sentence
        assert all(words in finding.message for finding in report.findings if finding.code in {"TV101", "TV109"})


def test_pageable_batches_are_told_to_be_pinned():
    copies = [(i * 1000, 300, "h2d", "pageable", "device", 10**6) for i in range(5)]
    computing = [(i * 1000 + 300, 700, "sgemm") for i in range(5)]
    result = ANALYSIS.run(trace(**loop([0] * 5, memcpy=copies) | {"kernels": computing}))
    (stage,) = result.stages
    assert (stage.name, stage.self_ns) == ("copy to device from pageable memory", 1500)
    assert "pin_memory=True" in stage.advice


def test_the_loader_is_a_share_of_the_wait_besides_the_copies():
    # 100 ns of loading and 300 ns of copying in each step
    copies = [(i * 1000 + 100, 300, "h2d", "pinned", "device", 10**6) for i in range(5)]
    computing = [(i * 1000 + 400, 600, "sgemm") for i in range(5)]
    report = analyze(tables(**loop([100] * 5, memcpy=copies) | {"kernels": computing}))
    (finding,) = [f for f in report.findings if f.code == "TV108"]
    assert finding.evidence[0].value == 0.25


def test_a_capture_of_the_cpu_alone_judges_its_loader_too():
    cpu = {name: rows for name, rows in loop([400] * 5).items() if name not in {"kernels", "cuda_api"}}
    report = analyze(tables(**cpu, span_ns=5000))
    assert report.verdict.code == "highly-input-bound"
    assert report.fact("input_pipeline", "input_share") == 0.4
    assert [f.code for f in report.findings] == ["TV101", "TV108"]
    assert not [line for line in report.findings[0].advice if "to the device" in line]


def test_a_loader_that_fetches_ahead_on_another_thread_keeps_nobody_waiting():
    both = loop([10] * 5, MULTI)
    both["host_ops"] += [(i * 1000, 900, SINGLE, "input", {"thread_id": 1}) for i in range(5)]
    both["kernels"] = [(i * 1000 + 500, 500, "sgemm") for i in range(5)]
    assert ANALYSIS.run(trace(**both)).wait_ns == 50


def test_a_loader_in_nvtx_ranges_is_recognised_by_the_class_of_its_iterator():
    view = trace(
        nvtx=[(i * 1000, 1000, f"step {i}") for i in range(5)] + [(i * 1000, 600, SINGLE) for i in range(5)],
        kernels=[(i * 1000 + 600, 400, "k") for i in range(5)],
    )
    result = ANALYSIS.run(view)
    (use,) = result.loaders
    assert (use.kind, use.waited_ns, use.inside.height) == ("single-process", 3000, 0)
    assert [finding.code for finding in ANALYSIS.judge(result)] == ["TV101", "TV108"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (SINGLE, "single-process"),
        (MULTI, "multi-process"),
        ("enumerate(DataLoader)#MyIter.__next__", None),
        ("aten::stack", None),
    ],
)
def test_the_class_of_the_iterator_says_where_a_loader_works(name, kind):
    assert loader_kind(name) == kind


def launching(host_ops, kernels=None):
    """Return five steps of 1000 ns whose device works in the last 200, launched at 500."""
    return {
        "steps": [(i * 1000, 1000, i, {"thread_id": 0}) for i in range(5)],
        "host_ops": [(i * 1000 + start, dur, *rest) for i in range(5) for start, dur, *rest in host_ops],
        "cuda_api": [(i * 1000 + 500, 10, "cudaLaunchKernel", {"correlation_id": i}) for i in range(5)],
        "kernels": [(i * 1000 + 800, 200, "k", {"correlation_id": i}) for i in range(5)],
        "run": TORCH,
    }


@pytest.mark.parametrize(
    ("host_ops", "suspicious", "verdict"),
    [
        # the kernel is launched at 500 and starts at 800: 510..800 is the queue, 0..500 is host time
        ([(0, 600, "aten::linear", "op")], 0, "not input-bound"),
        ([(0, 600, "nn.Module: Net_0", "python")], 0, "not input-bound"),
        ([(0, 600, "Optimizer.step#SGD.step", "annotation")], 0, "not input-bound"),
        ([(0, 600, "epoch", "annotation")], 2500, "possibly input-bound"),
        ([(0, 400, "aten::stack", "op"), (450, 100, "aten::linear", "op")], 0, "cannot judge"),
        ([(0, 600, "train.py(12): main", "python")], 0, "cannot judge"),
        ([(0, 600, "torch/serialization.py(600): save", "python")], 0, "cannot judge"),
        ([(0, 600, "<built-in function sleep>", "python")], 0, "cannot judge"),
        ([(0, 600, "Optimizer.step#CPUAdam.step", "annotation"), (10, 480, "adam_step", "op")], 0, "not input-bound"),
    ],
)
def test_host_time_in_operations_that_launch_and_in_named_functions_is_not_suspected_of_loading(
    host_ops, suspicious, verdict
):
    result = ANALYSIS.run(trace(**launching(host_ops)))
    assert (result.host_ns, result.verdict.value) == (suspicious, verdict)


def test_python_functions_without_data_loading_ranges_leave_the_input_unjudged():
    result = ANALYSIS.run(trace(**launching([(0, 600, "train.py(12): main", "python")])))
    assert result.reason.text.startswith("no data-loading ranges were recorded, so the input cannot be told")
    assert 'record_function("data loading")' in result.remedy.text


def test_only_operations_that_launch_on_their_own_thread_prepare_device_work():
    ops = [(0, 600, "aten::linear", "op"), (400, 300, "aten::mm", "op", {"thread_id": 1})]
    view = trace(**launching(ops))
    busy = dispatching(view, 0)
    assert (busy.starts.tolist(), busy.total) == ([0, 1000, 2000, 3000, 4000], 3000)


def test_a_pytorch_trace_without_steps_is_told_how_to_mark_them():
    view = tables(kernels=[(0, 10, "k"), (20, 5, "m")], host_ops=[(0, 5, "aten::mm", "op")], run=TORCH)
    report = analyze(view)
    assert report.verdict.code == "cannot-judge"
    assert "prof.step()" in str(report.section("input_pipeline"))


@pytest.mark.parametrize(
    ("host_ops", "verdict"),
    [
        ([(0, 850, "DistributedDataParallel.forward", "annotation")], "not input-bound"),
        ([(0, 850, "autograd::engine::evaluate_function: AddmmBackward0", "op", {"thread_id": 1})], "not input-bound"),
        ([(0, 790, "Optimizer.step#SGD.step", "annotation")], "cannot judge"),
        ([(0, 850, "aten::stack", "op")], "cannot judge"),  # a loader's, or the model's
    ],
)
def test_on_the_cpu_alone_only_parts_of_training_are_known_to_be_no_loading(host_ops, verdict):
    rows = [(i * 1000 + start, dur, *rest) for i in range(5) for start, dur, *rest in host_ops]
    steps = [(i * 1000, 1000, i, {"thread_id": 0}) for i in range(5)]
    result = ANALYSIS.run(trace(steps=steps, host_ops=rows, run=TORCH, span_ns=5000))
    assert result.verdict.value == verdict


def test_what_ran_in_the_loader_during_warm_up_is_not_counted():
    # The first step waits 5,000 ns for its batch and is warm-up; seven others wait 500, 300 of it in aten::stack.
    marks = [(0, 6000, 0, {"thread_id": 0}), *((6000 + 1000 * i, 1000, i + 1, {"thread_id": 0}) for i in range(7))]
    host = [(0, 5000, SINGLE, "input"), (50, 300, "aten::stack", "op")]
    for i in range(7):
        host += [(6000 + 1000 * i, 500, SINGLE, "input"), (6050 + 1000 * i, 300, "aten::stack", "op")]
    kernels = [(5000, 1000, "sgemm"), *((6500 + 1000 * i, 500, "sgemm") for i in range(7))]
    (use,) = loader_uses(trace(steps=marks, host_ops=host, kernels=kernels, cuda_api=[], run=TORCH))
    assert use.calls == 7
    assert use.inside.rows() == [("aten::stack", "op", 7, 2100), (SINGLE, "input", 7, 1400)]
