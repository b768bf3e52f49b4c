"""Communication, hidden by compute and exposed."""

import random

from tests.analyses.builders import trace
from traceviz.analyses.communication import CommunicationAnalysis
from traceviz.report import Facts, Prose

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)"
GEMM = "ampere_sgemm_128x128_tn"


def run(**tables):
    return CommunicationAnalysis().run(trace(**tables))


def test_communication_is_exposed_where_no_compute_of_the_device_runs():
    # communication  |---------|      0..100, stream 2
    # compute            |---------|  60..160
    result = run(kernels=[(0, 100, NCCL, {"stream": 2}), (60, 100, GEMM)])
    assert (result.busy_ns, result.exposed_ns, result.overlap_share) == (100, 60, 0.4)


def test_compute_on_another_device_hides_nothing():
    result = run(kernels=[(0, 100, NCCL), (0, 100, GEMM, {"device_id": 1})])
    assert (result.exposed_ns, result.overlap_share) == (100, 0.0)


def test_two_collectives_at_once_are_two_totals_and_one_busy_time():
    result = run(kernels=[(0, 100, NCCL, {"stream": 2}), (50, 100, NCCL, {"stream": 3})])
    assert (int(result.by_name["total_ns"].sum()), result.busy_ns, result.exposed_ns) == (200, 150, 150)


def test_no_communication_has_no_overlap_share_rather_than_none_of_it():
    result = run(kernels=[(0, 100, GEMM)])
    section = CommunicationAnalysis().describe(result)
    facts = {fact.key: fact.value for block in section.blocks if isinstance(block, Facts) for fact in block.facts}
    assert (facts["total_ns"], facts["exposed_ns"], facts["overlap_share"], facts["calls"]) == (0, 0, None, 0)
    assert any(isinstance(block, Prose) for block in section.blocks)


def test_order_of_rows_and_origin_of_the_clock_change_nothing():
    rows = [(t, 30 + t % 7, NCCL if t % 3 else GEMM, {"stream": t % 4}) for t in range(0, 1000, 20)]
    shifted = [(t + 12_345, dur, name, extra) for t, dur, name, extra in rows]
    random.Random(1).shuffle(shifted)
    first, second = run(kernels=rows), run(kernels=shifted)
    assert first.exposed_ns == second.exposed_ns > 0
    assert first.by_name.equals(second.by_name)
