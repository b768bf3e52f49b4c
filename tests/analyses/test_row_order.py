"""Tables of sections do not depend on the order of rows, nor on the origin of the clock."""

import random

import pytest

from tests.analyses import sections
from tests.analyses.builders import trace
from traceviz.analyses.device.copies import CopiesAnalysis
from traceviz.analyses.device.kernels import KernelsAnalysis
from traceviz.analyses.program.ranges import RangesAnalysis
from traceviz.analyses.ranks.communication import CommunicationAnalysis
from traceviz.analyses.ranks.ranks import RanksAnalysis

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)"
COPIES = [(i * 50, 60, "h2d" if i % 3 else "d2h", "pinned", "device", i * 9) for i in range(40)]
KERNELS = [
    (t, 30 + t % 7, NCCL if t % 3 else "gemm", {"stream": t % 4, "correlation_id": t}) for t in range(0, 1000, 20)
]
CALLS = [(t, 3, "cudaLaunchKernel", {"correlation_id": t}) for t in range(0, 1000, 20)]
RANGES = [row for i in range(30) for row in ((i * 100, 90, f"step {i % 3}"), (i * 100 + 10, 50, "inner"))]


def ranks(*computes):
    """Return steps of ranks that compute for some time and then reduce together until the last one is ready."""
    of = [{"process_id": rank, "device_id": rank} for rank in range(len(computes))]
    kernels = [(200 * step, compute, "gemm", at) for at, compute in zip(of, computes, strict=True) for step in range(6)]
    kernels += [(start + dur, 160 - dur, NCCL, at) for start, dur, _, at in kernels]
    steps = [(200 * step, 200, step, {"process_id": rank, "thread_id": rank}) for rank in range(3) for step in range(6)]
    return {"kernels": kernels, "steps": steps}


@pytest.mark.parametrize(
    ("analysis", "literals"),
    [
        (CopiesAnalysis(), {"memcpy": COPIES, "kernels": [(i * 80, 30, "k") for i in range(20)]}),
        (KernelsAnalysis(), {"kernels": KERNELS}),
        (CommunicationAnalysis(), {"kernels": KERNELS}),
        (RangesAnalysis(), {"nvtx": RANGES, "cuda_api": CALLS, "kernels": KERNELS}),
        (RanksAnalysis(), ranks(100, 120, 150)),
    ],
    ids=lambda value: getattr(value, "slug", ""),
)
def test_shuffled_rows_and_a_clock_that_starts_999_ns_later_change_no_table(analysis, literals):
    mixed = {
        name: [(start + 999, *rest) for start, *rest in random.Random(3).sample(rows, len(rows))]
        for name, rows in literals.items()
    }
    tables = sections.grids(analysis, trace(**literals))
    assert tables == sections.grids(analysis, trace(**mixed))
    assert any(table for table in tables)
