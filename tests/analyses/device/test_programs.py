"""Device programs: modules, steps, classes of TPU time, infeed."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.device.programs import DeviceProgramsAnalysis
from traceviz.report import Grid, Skipped


def module(start, dur, name="jit_f(1)", **extra):
    return (start, dur, name, "module", extra)


def op(start, dur, name, category=None, **extra):
    return (start, dur, name, {"category": category, **extra})


def only_device(view):
    (device,) = DeviceProgramsAnalysis().run(view).devices
    return device


def test_the_classes_of_a_device_add_up_to_its_window():
    view = trace(
        device_ops=[module(100, 100), module(300, 100)],
        kernels=[
            op(100, 20, "infeed.1", "infeed"),
            op(120, 30, "fusion.3", "loop fusion"),
            op(150, 40, "all-reduce.2", "all-reduce"),
            op(300, 10, "copy-done.4", "copy-done"),
            op(310, 5, "outfeed", "outfeed"),
            op(320, 80, "fusion.3", "convolution fusion"),
        ],
        devices=[(0, "v6e", {"kind": "tpu", "ordinal": 0})],
    )
    device = only_device(view)
    assert dict(device.times) == {
        "infeed_ns": 20,
        "outfeed_ns": 5,
        "collective_ns": 40,
        "async_wait_ns": 10,
        "compute_ns": 110,
        "idle_ns": 115,
    }
    assert (device.window_ns, sum(device.times.values())) == (300, 300)
    assert (device.device, device.executions) == ("TPU 0 v6e", 2)


def test_an_op_belongs_to_its_class_by_name_where_the_category_says_nothing():
    kernels = [
        op(0, 10, "infeed"),
        op(10, 10, "all-gather-start.1"),
        op(20, 10, "collective-permute-done.2"),
        op(30, 5, "x"),
    ]
    times = only_device(trace(device_ops=[module(0, 40)], kernels=kernels)).times
    assert (times["infeed_ns"], times["collective_ns"], times["compute_ns"], times["idle_ns"]) == (10, 20, 5, 5)


def test_steps_are_those_that_the_device_declares():
    view = trace(
        device_ops=[module(0, 10), module(100, 10)],
        kernels=[],
        steps=[(0, 50, 0, {"device_id": 0}), (50, 70, 1, {"device_id": 0}), (0, 999, 0, {"device_id": None})],
    )
    assert (only_device(view).steps, only_device(view).step_ns, only_device(view).window_ns) == (2, 60.0, 120)


def test_without_declared_steps_the_module_that_repeats_most_gives_them_start_to_start():
    spans = [module(0, 900, "init"), *(module(1000 + 100 * i, 60) for i in range(4))]
    device = only_device(trace(device_ops=spans, kernels=[]))
    assert (device.steps, device.step_ns) == (4, 100.0)


def test_devices_are_kept_apart_and_modules_are_summed_over_them():
    spans = [module(0, 60), module(0, 40, device_id=1), (0, 100, "async-copy", "async_op", {"device_id": 1})]
    result = DeviceProgramsAnalysis().run(trace(device_ops=spans, kernels=[op(0, 30, "fusion", device_id=1)]))
    assert [device.times["compute_ns"] for device in result.devices] == [0, 30]
    assert [device.async_ns for device in result.devices] == [0, 100]
    assert result.modules.select("name", "calls", "total_ns").rows() == [("jit_f(1)", 2, 100)]


@pytest.mark.parametrize(("infeed", "codes"), [(49, []), (50, ["TV404"]), (300, ["TV404"])])
def test_waiting_for_infeed_is_found_from_5_percent_on(infeed, codes):
    kernels = [op(0, infeed, "infeed", "infeed"), op(infeed, 1000 - infeed, "fusion")]
    analysis = DeviceProgramsAnalysis()
    findings = analysis.judge(analysis.run(trace(device_ops=[module(0, 1000)], kernels=kernels)))
    assert [f.code for f in findings] == codes
    assert [f.cost_ns for f in findings] == [infeed] * len(codes)


def test_devices_without_programs_are_skipped_with_the_reason():
    outcome = DeviceProgramsAnalysis().run(trace(device_ops=[(0, 5, "scope", "scope")], kernels=[]))
    assert outcome == Skipped("device_programs", "the devices record no programs (XLA modules)")


@pytest.mark.parametrize(("wait", "codes"), [(49, []), (50, ["TV410"]), (800, ["TV410"])])
def test_waiting_for_copies_is_found_from_5_percent_on_and_names_the_largest_op(wait, codes):
    kernels = [
        op(0, 10, "copy-done.1", "copy-done"),
        op(10, wait - 10, "copy-done.2", "copy-done"),
        op(wait, 1000 - wait, "fusion"),
    ]
    analysis = DeviceProgramsAnalysis()
    findings = analysis.judge(analysis.run(trace(device_ops=[module(0, 1000)], kernels=kernels)))
    assert [f.code for f in findings] == codes
    assert [f.cost_ns for f in findings] == [wait] * len(codes)
    assert all(f"copy-done.2 (1 call, {wait - 10} ns)" in f.message for f in findings)


def test_what_is_waited_for_is_listed_by_op_and_a_device_without_waits_has_2_tables():
    analysis = DeviceProgramsAnalysis()
    waits = [op(0, 30, "copy-done", "copy-done"), op(40, 10, "copy-done", "copy-done"), op(60, 10, "send-done.1")]
    for kernels, tables in (([op(0, 70, "fusion")], 2), (waits, 3)):
        section = analysis.describe(analysis.run(trace(device_ops=[module(0, 100)], kernels=kernels)))
        grids = [block for block in section.blocks if isinstance(block, Grid)]
        assert len(grids) == tables
    assert [row[:4] for row in grids[-1].rows] == [("copy-done", 2, 40, 0.8), ("send-done.1", 1, 10, 0.2)]


def test_the_only_1_of_all_devices_waits_alone():
    kernels = [op(0, 30, "infeed.1", "infeed"), op(30, 40, "copy-done.2", "copy-done"), op(70, 30, "fusion.1")]
    view = trace(device_ops=[module(0, 100)], kernels=kernels, devices=[(0, None, {"kind": "tpu", "ordinal": 0})])
    analysis = DeviceProgramsAnalysis()
    infeed, copies = (finding.message for finding in analysis.judge(analysis.run(view)))
    assert infeed == "TPU 0 waits for infeed in 30.0 % of its time."
    assert copies.startswith("TPU 0 waits for asynchronous copies in 40.0 % of its time, most of all in copy-done.2")
