"""Batches of a loader and updates of an optimizer mark the passes of a loop."""

import pytest

from tests.analyses.builders import trace
from traceviz.analyses.derived.steps.passes import batches_per_update
from traceviz.analyses.derived.steps.search import found_steps, training_steps
from traceviz.analyses.run import analyze
from traceviz.analyses.steps.steps import StepAnalysis
from traceviz.report import Prose

TORCH = {"framework": "PyTorch", "format": "kineto", "producer": "PyTorch profiler"}
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def take(at, lasts=10):
    return (at, lasts, LOADER, "input")


def update(at, name="Optimizer.step#AdamW.step"):
    return (at, 10, name, "annotation")


def operators(*starts):
    return [(start, 5, "aten::mm", "op") for start in starts]


def blocks(count, begin=0, each=100):
    """Return kernels of equal blocks, one after another without a pause."""
    part = each // 4
    names = ("qkv", "attention", "proj", "mlp")
    return [(begin + each * b + part * i, part, name) for b in range(count) for i, name in enumerate(names)]


def bounds_of(view):
    return list(training_steps(view).frame.select("start_ns", "end_ns").iter_rows())


def test_12_blocks_after_one_batch_are_one_pass_that_waits_for_input():
    view = trace(
        host_ops=[take(100, 5000), *operators(*range(8000, 8800, 50))],
        kernels=[(8000, 100, "patches"), *blocks(12, 8100), (9300, 50, "head")],
        run=TORCH,
        span_ns=9500,
    )
    assert bounds_of(view) == [(100, 9350)]
    report = analyze(view.tables)
    assert report.verdict.sentence.startswith("One pass: one batch is taken from the loader")
    assert "Highly input-bound: 54.1 % of steady step time waits for input" in report.verdict.sentence


def test_batches_of_an_evaluation_are_its_passes_though_kernels_vary():
    kernels = [(100 * step + 20, 10 + step, name) for step in range(6) for name in ("ab" * (step + 1))]
    view = trace(host_ops=[take(100 * step) for step in range(6)], kernels=kernels, run=TORCH)
    assert training_steps(view).source == "passes"
    assert bounds_of(view) == [(100 * step, 100 * step + 100) for step in range(5)]


def test_4_micro_batches_for_an_update_are_one_step():
    starts = range(0, 1200, 400)
    rows = [take(start + 90 * micro) for start in starts for micro in range(4)] + [
        update(start + 380) for start in starts
    ]
    view = trace(host_ops=sorted(rows), kernels=blocks(12), run=TORCH)
    assert bounds_of(view) == [(0, 400), (400, 800), (800, 1190)]
    assert batches_per_update(view) == 4
    texts = [b.text for b in StepAnalysis().describe(StepAnalysis().run(view)).blocks if isinstance(b, Prose)]
    assert any("Each step takes 4 batches" in text for text in texts)


def test_one_batch_for_an_update_needs_no_remark():
    rows = [take(start) for start in range(0, 400, 100)] + [update(start + 80) for start in range(0, 400, 100)]
    view = trace(host_ops=sorted(rows), kernels=blocks(4), run=TORCH)
    assert bounds_of(view) == [(0, 100), (100, 200), (200, 300), (300, 390)]
    assert batches_per_update(view) == 1


def test_batches_between_an_update_and_those_of_the_next_belong_to_another_loop():
    steps = (0, 100, 200, 800, 900)  # between 300 and 800 an evaluation takes 5 batches
    rows = [take(start) for start in steps] + [update(start + 80) for start in steps]
    rows += [take(start) for start in range(300, 800, 100)]
    view = trace(host_ops=sorted(rows), kernels=blocks(10), run=TORCH)
    assert bounds_of(view) == [(0, 100), (100, 200), (200, 290), (800, 900), (900, 990)]


@pytest.mark.parametrize("name", ["Optimizer.step#SGD.step", "## optimizer ##", "[pl][profile]optimizer_step"])
def test_updates_alone_mark_steps_from_update_to_update(name):
    view = trace(host_ops=[update(100 * step, name) for step in range(4)], kernels=blocks(4), run=TORCH)
    assert bounds_of(view) == [(10, 110), (110, 210), (210, 310)]


def test_2_updates_without_batches_are_no_loop():
    view = trace(host_ops=[update(0), update(100)], kernels=[(0, 90, "a"), (100, 90, "b")], run=TORCH)
    assert found_steps(view).source == "none"


MARKS = (
    "event/batch",
    "[pl][profile]run_training_batch",
    "[pl][profile][Strategy]DDPStrategy.training_step",
    "[pl][profile]run_training_epoch",
    "DeepSpeedEngine.forward",
    "PipelineEngine.train_batch",
    "train_iteration 7",
    "run_train_step",
)
OTHER_NAMES = ("optimizer.step", "event/eval_batch", "callback/event/batch_end", "DeepSpeedEngine.step", "env.step")


@pytest.mark.parametrize("name", MARKS)
def test_marks_of_frameworks_are_steps(name):
    rows = [(100 * step, 80, name, "annotation") for step in range(5)]
    assert training_steps(trace(host_ops=rows, kernels=blocks(5), run=TORCH)).source == "annotation"
    ranges = [(100 * step, 80, name) for step in range(5)]
    assert training_steps(trace(nvtx=ranges, kernels=blocks(5))).source == "nvtx"


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_names_of_parts_of_a_step_are_no_marks(name):
    ranges = [(100 * step, 80, name) for step in range(5)]
    assert training_steps(trace(nvtx=ranges, kernels=blocks(5))).source != "nvtx"


def test_50_equal_steps_of_kernels_alone_are_steps():
    assert training_steps(trace(kernels=blocks(50))).frame.height == 49


@pytest.mark.parametrize("count", [12, 32])
def test_blocks_between_an_embedding_and_a_head_are_layers(count):
    end = 100 * count + 80
    kernels = [
        (0, 80, "embed"),
        *blocks(count, 80),
        (end, 20, "norm"),
        (end + 20, 60, "vocabulary"),
        (end + 80, 9, "max"),
    ]
    assert training_steps(trace(kernels=kernels)).source == "none"


def test_a_loop_that_takes_its_input_from_the_host_may_end_with_other_work():
    copies = [(100 * step, 5, "h2d", "pinned", "device", 64) for step in range(32)]
    kernels = [*blocks(32), (3200, 20, "norm"), (3220, 60, "vocabulary"), (3280, 9, "max")]
    assert training_steps(trace(kernels=kernels, memcpy=copies)).frame.height == 31


def test_resnet_blocks_of_one_pass_of_a_unet_are_no_steps():
    down = [(100 * b + 20 * i, 20, n) for b in range(6) for i, n in enumerate(["norm", "conv", "silu", "conv", "add"])]
    up = [
        (900 + 150 * b + 30 * i, 30, n) for b in range(6) for i, n in enumerate(["cat", "norm", "wide", "silu", "wide"])
    ]
    assert training_steps(trace(kernels=[(0, 0, "in"), *down, (600, 300, "middle"), *up])).source == "none"
