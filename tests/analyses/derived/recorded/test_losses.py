"""Notes that report missing events."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.derived.recorded.losses import is_damaged, losses


@pytest.mark.parametrize(
    ("code", "message", "is_loss"),
    [
        ("damaged", "cut off", True),
        ("profiler-diagnostic", "12 events were dropped", True),
        ("profiler-diagnostic", "CUDA profiling was not requested", False),
        ("profiler-diagnostic", "Nsight Systems: Failed to load symbols for VMA 0x7f from [path]", False),
        ("profiler-diagnostic", "nvprof: 2 records have invalid timestamps due to insufficient buffer space", True),
        ("events-left-out", "12 events were dropped", False),
    ],
)
def test_only_a_damaged_file_and_1_kind_of_diagnostic_are_losses(code, message, is_loss):
    trace = tables(notes=[("first", "info", "read"), (code, "warning", message)])
    assert losses(trace) == ((message,) if is_loss else ())
    assert is_damaged(trace) == (code == "damaged")
