"""Notes that report missing events: lost, refused, not supported, or of an optional tracer."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.capture.capture import Capture
from traceviz.analyses.derived.capture.kind import capture_kind
from traceviz.analyses.derived.recorded.losses import are_kernels_replayed, find_refusal, is_damaged, losses
from traceviz.analyses.device.idle_gaps import IdleGapsAnalysis
from traceviz.report import Skipped


@pytest.mark.parametrize(
    ("code", "message", "is_loss"),
    [
        ("damaged", "cut off", True),
        ("profiler-diagnostic", "12 events were dropped", True),
        ("profiler-diagnostic", "CUDA profiling was not requested", False),
        ("profiler-diagnostic", "Nsight Systems: Failed to load symbols for VMA 0x7f from [path]", False),
        ("profiler-diagnostic", "nvprof: 2 records have invalid timestamps due to insufficient buffer space", True),
        ("profiler-diagnostic", "Nsight Systems: cuDNN tracing failed to initialize", False),
        ("profiler-diagnostic", "Nsight Systems: Failed to start collection of context switches", False),
        ("profiler-diagnostic", "Nsight Systems: OpenGL injection failure", False),
        ("events-left-out", "12 events were dropped", False),
    ],
)
def test_only_a_damaged_file_and_1_kind_of_diagnostic_are_losses(code, message, is_loss):
    trace = tables(notes=[("first", "info", "read"), (code, "warning", message)])
    assert losses(trace) == ((message,) if is_loss else ())
    assert is_damaged(trace) == (code == "damaged")


PRIVILEGES = "The profiler: Subscribe failed with error CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
DRIVER = "Nsight Systems: Installed CUDA driver version (14.2) is not supported by this build of Nsight Systems."


@pytest.mark.parametrize(
    ("message", "words", "remedy"),
    [
        (PRIVILEGES, "did not permit", "CAP_SYS_ADMIN"),
        ("nvprof: ERR_NVGPUCTRPERM - The user does not have permission to profile", "did not permit", "CAP_SYS_ADMIN"),
        (DRIVER, "does not support this driver", "newer Nsight Systems"),
        ("The profiler: CUPTI_ERROR_NOT_COMPATIBLE", "does not support this driver", "newer Nsight Systems"),
        ("The profiler: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "another tool", "End the other profiler"),
    ],
)
def test_a_refusal_is_no_loss_and_has_a_remedy_of_its_own(message, words, remedy):
    view = trace(host_ops=[(0, 100, "aten::mm")], notes=[("profiler-diagnostic", "error", message)])
    found = find_refusal(view.tables)
    assert words in found.words
    assert remedy in found.remedy
    assert losses(view.tables) == ()
    assert capture_kind(view).key == "no-device-work"
    (finding,) = Capture().judge(Capture().run(view))
    assert (finding.code, finding.advice) == ("TV901", (found.remedy,))


@pytest.mark.parametrize(
    "message",
    [
        "Nsight Systems: Unable to collect CPU IP samples: permission denied",
        "Nsight Systems: cuDNN trace: this device is not supported",
        "Nsight Systems: No CUDA events collected. Does the process use CUDA?",
    ],
)
def test_other_messages_refuse_no_device_work(message):
    view = trace(host_ops=[(0, 100, "aten::mm")], notes=[("profiler-diagnostic", "warning", message)])
    assert find_refusal(view.tables) is None
    assert capture_kind(view).key == "cpu-only"


def test_a_profiler_that_recorded_device_work_was_not_refused():
    view = trace(kernels=[(0, 100, "gemm")], notes=[("profiler-diagnostic", "warning", DRIVER)])
    assert find_refusal(view.tables) is None


@pytest.mark.parametrize(
    ("note", "replayed"),
    [
        (("kernels-replayed", "warning", "measured"), True),
        (("profiler-diagnostic", "warning", "nvprof: Some kernel(s) will be replayed on device 0"), True),
        (("profiler-diagnostic", "warning", "nvprof: Profiling results"), False),
    ],
)
def test_idle_time_between_replayed_kernels_is_not_judged(note, replayed):
    view = trace(kernels=[(0, 10, "gemm"), (10_000_000, 10, "gemm")], cuda_api=[], notes=[note])
    assert are_kernels_replayed(view.tables) is replayed
    assert (capture_kind(view).key == "counters") is replayed
    assert isinstance(IdleGapsAnalysis().run(view), Skipped) is replayed
