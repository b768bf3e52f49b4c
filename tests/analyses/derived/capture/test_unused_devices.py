"""Unused GPUs while a framework computes on the CPU; no finding without a sign of it, or if no GPU is wanted."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.derived.capture.unused_devices import unused_devices
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.run import analyze
from traceviz.trace.selection import Selection
from traceviz.trace.slicing import select

MS = 1_000_000
GPU = [(0, "NVIDIA H100", {"ordinal": 0, "kind": "gpu"})]
TORCH = {"framework": "PyTorch"}
BACKWARD = [(step * 10 * MS, 4 * MS, "autograd::engine::evaluate_function: MmBackward0", "op") for step in range(10)]
FORWARD = [(step * 10 * MS, 4 * MS, "aten::mm", "op") for step in range(10)]
STEPS = [(step * 10 * MS, 10 * MS, step) for step in range(10)]


def sampled(*values, device=0, last=100 * MS, metric="GPU utilisation"):
    """Return the utilisation of a device in percent, at even distances up to ``last``."""
    distance = last // max(len(values) - 1, 1)
    return [(number * distance, metric, value, {"device_id": device}) for number, value in enumerate(values)]


def on_cpu(**given):
    """Return a trace in which PyTorch trains on the CPU for 100 ms, with samples of the machine's one GPU."""
    parts = {
        "devices": GPU,
        "host_ops": [*BACKWARD, *FORWARD],
        "steps": STEPS,
        "samples": sampled(0, 0, 1, 0, 0),
        **given,
    }
    return tables(**{"run": TORCH, **{name: rows for name, rows in parts.items() if rows is not None}})


def nsys(calls=(), **given):
    """Return the same as nsys records it, which traces CUDA and finds none."""
    ranges = [(step * 10 * MS, 10 * MS, f"step {step}", {"domain": "traceviz"}) for step in range(10)]
    parts = {"host_ops": None, "steps": None, "samples": None, "kernels": [], "memcpy": [], "cuda_api": list(calls)}
    return on_cpu(**{"run": {"framework": None, "format": "nsys"}, "nvtx": ranges, **parts, **given})


def found(trace):
    return unused_devices(TraceView(trace))


def test_a_gpu_whose_samples_show_no_use_while_pytorch_trains_on_the_cpu_is_a_finding():
    finding = next(finding for finding in analyze(on_cpu()).findings if finding.code == "TV411")
    assert finding.message == (
        "The program computes on the CPU, and 1 GPU (NVIDIA H100) is there and not used at all: 5 samples of its "
        "utilisation show 1 % at most."
    )
    assert (finding.severity.value, finding.cost_ns) == ("error", 100 * MS)


@pytest.mark.parametrize(
    "samples",
    [
        sampled(0, 0, 3, 0, 0),  # something uses it
        sampled(0, 0, 0, 0),  # too few
        sampled(0, 0, 0, 0, 0, last=49 * MS),  # of less than half of the time
        sampled(0, 0, 0, 0, 0, metric="GPU power"),
        None,
    ],
)
def test_what_no_sample_shows_is_not_said(samples):
    assert found(on_cpu(samples=samples)) is None


def test_all_of_several_gpus_must_be_seen_to_do_nothing():
    two = [(number, "NVIDIA H100", {"ordinal": number, "kind": "gpu"}) for number in (0, 1)]
    idle = sampled(0, 0, 0, 0, 0)
    assert found(on_cpu(devices=two, samples=idle)) is None
    outcome = found(on_cpu(devices=two, samples=idle + sampled(0, 0, 0, 0, 0, device=1)))
    assert (outcome.count, outcome.words) == (2, "2 GPUs (2 × NVIDIA H100)")
    assert found(on_cpu(devices=two, samples=idle + sampled(0, 9, 0, 0, 0, device=1))) is None


def test_a_capture_of_cuda_without_a_call_that_makes_work_shows_it_as_well():
    assert found(nsys()).shown_by == "device work was traced, and not one call of the program makes any"
    asks = [(0, 10, "cudaGetDeviceCount", {"correlation_id": 1})]
    assert found(nsys(asks)) is not None
    launches = [(0, 10, "cudaLaunchKernel", {"correlation_id": 1})]
    assert found(nsys(launches)) is None
    assert found(nsys(kernels=None, memcpy=None, cuda_api=None)) is None  # CUDA was not traced


@pytest.mark.parametrize(("message", "is_said"), [("Events were lost.", False), ("No CUDA events collected.", True)])
def test_lost_events_show_nothing_unless_the_profiler_saw_that_there_were_none(message, is_said):
    notes = [
        ("profiler-diagnostic", "warning", text) for text in ("Not all CUDA events might have been collected.", message)
    ]
    assert (found(nsys(notes=notes)) is not None) == is_said


def test_a_framework_that_is_built_for_the_cpu_uses_no_gpu_of_the_machine():
    settings = [("machine.gpus.0.name", "H200"), ("machine.gpus.1.name", "H200"), ("version.torch", "2.13.0+cpu")]
    settings = [(*row, {"process_id": None}) for row in settings]
    outcome = found(on_cpu(devices=[], samples=None, settings=settings))
    assert outcome.words == "2 GPUs (2 × H200)"
    assert outcome.shown_by == "PyTorch 2.13.0+cpu is built for the CPU alone"
    also = [("version.jax", "0.6", {"process_id": None})]
    assert found(on_cpu(devices=[], samples=None, settings=settings + also)) is None
    assert found(on_cpu(devices=[], samples=None, settings=settings[2:])) is None


@pytest.mark.parametrize(
    ("states", "shown_by"),
    [
        (["none-found"], "TensorFlow 2.20.0 finds none, as its log says"),
        (["none-found", "cpu-build"], "TensorFlow 2.20.0 is built for the CPU alone"),
        (["not-used"], "TensorFlow 2.20.0 was never asked to use one"),
        (["used"], None),
        (["used", "none-found"], None),
        ([], None),
    ],
)
def test_what_the_framework_itself_makes_of_gpus_counts(states, shown_by):
    settings = [("machine.gpus.0.name", "H200"), ("version.tensorflow", "2.20.0")]
    settings += [(f"collector.tensorflow.processes.{at}.accelerators", state) for at, state in enumerate(states)]
    outcome = found(on_cpu(devices=[], samples=None, settings=[(*row, {"process_id": None}) for row in settings]))
    assert (outcome and outcome.shown_by) == shown_by


@pytest.mark.parametrize(
    ("key", "value", "is_said"),
    [
        ("env.CUDA_VISIBLE_DEVICES", "", False),
        ("env.CUDA_VISIBLE_DEVICES", "-1", False),
        ("env.CUDA_VISIBLE_DEVICES", "0", True),
        ("env.JAX_PLATFORMS", "cpu", False),
        ("env.JAX_PLATFORMS", "cuda,cpu", True),
    ],
)
def test_a_program_from_which_gpus_are_hidden_wants_none(key, value, is_said):
    assert (found(on_cpu(settings=[(key, value, {"process_id": None})])) is not None) == is_said


def test_programs_without_a_framework_and_those_that_use_a_gpu_are_left_alone():
    assert found(on_cpu(run={"framework": None})) is None
    assert found(on_cpu(kernels=[(0, 5, "gemm")])) is None
    assert found(on_cpu(devices=[(0, "CPU", {"kind": "cpu"})])) is None
    assert found(select(on_cpu(), Selection(10 * MS, 90 * MS))) is None


def test_a_program_that_does_not_train_may_mean_the_cpu():
    finding = next(f for f in analyze(on_cpu(host_ops=FORWARD)).findings if f.code == "TV411")
    assert finding.severity.value == "info"
