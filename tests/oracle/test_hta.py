"""Busy time, compute and overlap with communication, compared with HolisticTraceAnalysis on the same captures."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from traceviz import api
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.device.use import DeviceUseAnalysis
from traceviz.analyses.ranks.communication import CommunicationAnalysis
from traceviz.core.arrays.intervals import IntervalSet

pytestmark = pytest.mark.oracle

SCRIPT = Path(__file__).with_name("hta_oracle.py")
RANKS = [f"synthetic/torch_four_ranks_straggler/rank{rank}.pt.trace.json.gz" for rank in range(4)]
SAMPLED = [f"kineto/facebookresearch__HolisticTraceAnalysis__sampled_rank-{rank}.json.gz" for rank in range(2)]
NCCL = ["kineto/facebookresearch__HolisticTraceAnalysis__nccl_data.json.gz"]
FLOAT_US = 0.01
"""HolisticTraceAnalysis adds up microseconds as floats."""
FLOAT_PERCENT = 0.0051
"""It gives shares with two decimals."""

Ask = Callable[[list[Path]], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def ask_hta(hta_python: str, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Asks HolisticTraceAnalysis about the captures of ranks."""
    home = tmp_path_factory.mktemp("hta")

    def ask(files: list[Path]) -> list[dict[str, Any]]:
        command = [hta_python, str(SCRIPT), *map(str, files)]
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return ask


def check(files: list[Path], ask_hta: Ask) -> int:
    """Compare every rank's times with theirs; return how much work the devices did."""
    events = 0
    for file, expected in zip(files, ask_hta(files), strict=True):
        trace = TraceView(api.open_trace(file))
        (device,) = DeviceUseAnalysis().run(trace).devices
        share = CommunicationAnalysis().run(trace).overlap_share
        times = compute_us(trace), device.busy_ns / 1000, (device.extent_ns - device.busy_ns) / 1000
        compute, other, idle = expected["compute_us"], expected["other_us"], expected["idle_us"]
        assert times == pytest.approx((compute, compute + other, idle), abs=FLOAT_US)
        assert 100 * share == pytest.approx(expected["overlap_percent"], abs=FLOAT_PERCENT)
        events += trace.device_work.height
    return events


def compute_us(trace: TraceView) -> float:
    """Return the time in which at least one kernel runs that does not communicate."""
    names = [name for name, kernel in trace.kernel_classes.items() if kernel.family == "communication"]
    kernels = trace.frame("kernels", "start_ns", "dur_ns", "name")
    kernels = kernels.filter(~pl.col("name").cast(pl.String).is_in(names))
    return IntervalSet.of(kernels["start_ns"], kernels["start_ns"] + kernels["dur_ns"]).total / 1000


def test_four_synthetic_ranks_have_their_busy_idle_and_overlapping_times(samples: Path, ask_hta: Ask) -> None:
    assert check([samples / name for name in RANKS], ask_hta) == 4 * 12 * 15


def test_two_sampled_ranks_have_their_busy_idle_and_overlapping_times(public_traces: Path, ask_hta: Ask) -> None:
    assert check([public_traces / name for name in SAMPLED], ask_hta) == 2358


def test_a_rank_with_nccl_kernels_and_copies_has_their_times(public_traces: Path, ask_hta: Ask) -> None:
    assert check([public_traces / name for name in NCCL], ask_hta) == 3774
