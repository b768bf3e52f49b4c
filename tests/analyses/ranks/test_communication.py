"""Communication, hidden by compute and exposed."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.ranks.collectives import bus_factor
from traceviz.analyses.ranks.communication import CommunicationAnalysis
from traceviz.analyses.run import analyze
from traceviz.report import Facts, Grid, Prose

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


@pytest.mark.parametrize(
    ("name", "ranks", "factor"),
    [
        ("allreduce", 2, 1.0),
        ("allreduce_coalesced", 8, 1.75),
        ("_allgather_base", 8, 0.875),
        ("reduce_scatter_tensor_coalesced", 4, 0.75),
        ("all_to_allv", 4, 0.75),
        ("broadcast", 4, 1.0),
        ("reduce", None, 1.0),
        ("allreduce", None, None),
        ("barrier", 4, None),
    ],
)
def test_the_bus_factor_is_that_of_nccl_tests(name, ranks, factor):
    assert bus_factor(name, ranks) == factor


def test_bandwidths_are_message_over_time_and_its_product_with_the_bus_factor():
    # 1000 floats = 4,000 bytes, in 1,000 ns and in 3,000 ns: 8,000 bytes in 4,000 ns = 2 GB/s; times 2 * 3/4 on 4 ranks
    described = {"group": "0", "group_size": 4, "dtype": "Float", "in_elements": 1000, "out_elements": 1000}
    result = run(
        kernels=[(0, 1000, NCCL), (2000, 3000, NCCL), (4000, 1000, GEMM)],
        collectives=[(0, 1000, "allreduce", described), (2000, 3000, "allreduce", described)],
    )
    (row,) = result.collectives.iter_rows(named=True)
    assert (row["calls"], row["mean_bytes"], row["total_ns"], row["exposed_ns"]) == (2, 4000.0, 4000, 3000)
    assert (row["algorithm_bandwidth"], row["bus_bandwidth"]) == (2e9, 3e9)


def test_a_gather_counts_what_it_receives():
    described = {"group_size": 4, "dtype": "BFloat16", "in_elements": 100, "out_elements": 400}
    (row,) = run(kernels=[], collectives=[(0, 100, "_allgather_base", described)]).collectives.iter_rows(named=True)
    assert (row["mean_bytes"], row["algorithm_bandwidth"], row["bus_bandwidth"]) == (800.0, 8e9, 6e9)


def test_a_collective_without_sizes_has_times_and_no_bandwidth():
    (row,) = run(kernels=[], collectives=[(0, 100, "allreduce"), (100, 50, "allreduce")]).collectives.iter_rows(
        named=True
    )
    assert (row["calls"], row["total_ns"]) == (2, 150)
    assert (row["mean_bytes"], row["algorithm_bandwidth"], row["bus_bandwidth"]) == (None, None, None)


def test_sizes_are_those_of_each_type_and_group():
    result = run(
        kernels=[],
        collectives=[
            (0, 10, "allreduce", {"dtype": "Float", "group": "0", "in_elements": 1}),
            (10, 20, "allreduce", {"dtype": "Long", "group": "0", "in_elements": 1}),
            (30, 30, "allreduce", {"dtype": "Float", "group": "1", "in_elements": 1}),
        ],
    )
    rows = result.collectives.select("group", "dtype", "mean_bytes", "total_ns").rows()
    assert rows == [("1", "Float", 4.0, 30), ("0", "Long", 8.0, 20), ("0", "Float", 4.0, 10)]


def steps_with_collectives(exposed, *, name=NCCL):
    """Return four steps of 1000 ns whose collective outlasts compute by ``exposed`` ns."""
    rows = [(i * 1000, 1000 - exposed, GEMM) for i in range(4)]
    rows += [(i * 1000 + 500, 500, name, {"stream": 2}) for i in range(4)]
    return {"kernels": rows, "steps": [(i * 1000, 1000, i) for i in range(4)]}


@pytest.mark.parametrize(("exposed", "codes"), [(99, []), (100, ["TV504"]), (300, ["TV504"])])
def test_exposed_communication_is_a_finding_from_a_tenth_of_the_steps_on(exposed, codes):
    analysis = CommunicationAnalysis()
    assert [finding.code for finding in analysis.judge(analysis.run(trace(**steps_with_collectives(exposed))))] == codes


def test_the_finding_states_the_exposed_time_of_the_steps_and_what_hides_the_rest():
    (finding,) = [f for f in analyze(tables(**steps_with_collectives(300))).findings if f.code == "TV504"]
    assert (finding.cost_ns, finding.share, finding.share_of) == (1200, 0.3, "steady step time")
    assert "compute hides 40.0 % of the communication" in finding.message


def test_a_copy_is_no_communication():
    view = {**steps_with_collectives(300, name=GEMM), "memcpy": [(900, 100, "p2p", "device", "device", 8)]}
    result = run(**view)
    assert (result.busy_ns, result.judged_exposed_ns, result.overlap_share) == (0, 0, None)


def test_collectives_are_a_grid_of_their_own_behind_the_kernels():
    result = run(kernels=[(0, 100, NCCL)], collectives=[(0, 100, "allreduce", {"group": "0"})])
    grids = [block for block in CommunicationAnalysis().describe(result).blocks if isinstance(block, Grid)]
    assert [(grid.columns[0].name, len(grid.rows)) for grid in grids] == [("name", 1), ("name", 1)]
    assert grids[1].title == "Collectives"


def two_ranks(early, late):
    """Return two ranks whose collective ends at 900 of each of 4 steps of 1000 ns; one is ``early``, one ``late``."""
    kernels, steps, described = [], [], []
    for i in range(4):
        for process, start in enumerate((early, late)):
            extra = {"process_id": process, "device_id": process}
            kernels += [(i * 1000, start, GEMM, extra), (i * 1000 + start, 900 - start, NCCL, {**extra, "stream": 2})]
            described += [(i * 1000 + start, 900 - start, "allreduce", {**extra, "group": "0", "group_size": 2})]
            steps += [(i * 1000, 1000, i, {"process_id": process, "thread_id": process})]
    processes = [(0, "a", {"rank": 0}), (1, "b", {"rank": 1})]
    return {"kernels": kernels, "steps": steps, "collectives": described, "processes": processes}


def test_waiting_for_a_late_rank_is_no_communication_that_could_be_hidden():
    # rank 0 is in the collective from 300 on, rank 1 from 800 on: 100 transfer and, on rank 0, 500 wait
    result = run(**two_ranks(300, 800))
    assert (result.exposed_ns, result.waiting_ns, result.judged_exposed_ns) == (4 * 700, 4 * 500, 4 * 200)
    assert [finding.cost_ns for finding in CommunicationAnalysis().judge(result)] == [800]


def test_of_one_rank_alone_nothing_is_known_of_waiting():
    result = run(**steps_with_collectives(300))
    assert (result.waiting_ns, result.judged_exposed_ns) == (None, 1200)


def sharded(gather_ns, place="FSDP::all_gather"):
    """Return steps of 1000 ns: parameters are gathered, a layer computes, and gradients are reduced for 100 ns."""
    kernels, calls, ranges = [], [], []
    for n in range(4):
        gather, reduce = {"correlation_id": 10 * n, "stream": 2}, {"correlation_id": 10 * n + 1, "stream": 2}
        kernels += [
            (n * 1_000, gather_ns, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage)", gather),
            (n * 1_000 + gather_ns, 900 - gather_ns, GEMM),
            (n * 1_000 + 900, 100, NCCL, reduce),
        ]
        calls += [(n * 1_000, 5, "cudaLaunchKernelExC", gather), (n * 1_000 + 20, 5, "cudaLaunchKernelExC", reduce)]
        ranges += [
            (n * 1_000, 10, f"{place} (layers.{n})", "annotation"),
            (n * 1_000 + 15, 20, f"FSDP::post_backward_reduce (layers.{n})", "annotation"),
        ]
    calls = [(start, dur, name, {"correlation_id": key["correlation_id"]}) for start, dur, name, key in calls]
    return {
        "kernels": kernels,
        "cuda_api": calls,
        "host_ops": ranges,
        "steps": [(n * 1_000, 1_000, n) for n in range(4)],
    }


@pytest.mark.parametrize(("gather_ns", "place"), [(200, "FSDP::all_gather"), (400, "unshard"), (200, "exchange")])
def test_gathering_of_sharded_parameters_is_named_with_its_place_and_leads_to_advice_of_its_own(gather_ns, place):
    tables = sharded(gather_ns, place)
    result = run(**tables)
    (finding,) = CommunicationAnalysis().judge(result)
    facts = {fact.key: fact.value for fact in finding.evidence}
    gathered = place != "exchange"
    assert facts["exposed_ns"] == 4 * (gather_ns + 100)
    assert facts.get("gathering_ns") == (4 * gather_ns if gathered else None)
    assert (f"of sharded parameters in {place}" in finding.message) == gathered
    assert finding.advice[0].startswith("PyTorch with sharded parameters") == gathered


def test_gathering_that_is_the_smaller_part_of_communication_is_not_what_it_mostly_is():
    (finding,) = CommunicationAnalysis().judge(run(**sharded(90)))
    assert {fact.key: fact.value for fact in finding.evidence}["gathering_ns"] == 4 * 90
    assert "sharded" not in finding.message
