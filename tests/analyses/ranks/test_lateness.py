"""Lateness that all ranks share: hand-worked steps of two to four ranks, and ranks that are late alone."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.ranks import RanksAnalysis
from traceviz.analyses.registry import ANALYSES
from traceviz.analyses.run import analyze

US = 1_000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def job(inputs, compute=100, name=LOADER):
    """Return ranks whose steps start with so many µs of input, compute for 100 µs, and reduce together for 10 µs.

    ``inputs`` has the input of each rank, for each step in turn::

        rank 0   |-20-|--compute--|~~~~~wait~~~~~|transfer|
        rank 1   |------80--------|--compute-----|transfer|
    """
    kernels, marks, ranges, start = [], [], [], 0
    for step, times in enumerate(inputs):
        end = max(times) + compute + 10
        for rank, time in enumerate(times):
            at = {"process_id": rank, "device_id": rank}
            thread = {"process_id": rank, "thread_id": rank}
            marks.append((start * US, end * US, step, thread))
            if time and name:
                ranges.append((start * US, time * US, name, thread))
            kernels.append(((start + time) * US, compute * US, "gemm", at))
            begin = start + time + compute
            kernels.append((begin * US, (start + end - begin) * US, NCCL, at))
        start += end
    ranks = range(len(inputs[0]))
    processes = [(rank, "python", {"rank": rank}) for rank in ranks]
    threads = [(rank, rank, "python") for rank in ranks]
    return tables(kernels=kernels, steps=marks, nvtx=ranges, processes=processes, threads=threads)


def shared(trace_tables):
    return RanksAnalysis().run(TraceView(trace_tables)).shared


@pytest.mark.parametrize(("others", "key"), [(20, ""), (40, "host_compute")])
def test_work_of_the_host_is_shared_if_the_others_have_half_as_much_as_the_late_rank_has_more(others, key):
    # The late rank has 60 more than 20, or 40 more than 40.
    assert shared(job([(others, 80), (80, others)] * 3, name="prepare")) == key


@pytest.mark.parametrize("steps", [[(0, 80), (80, 0)], [(0, 80), (0, 80)]])
def test_waits_for_input_are_the_cause_even_if_only_the_late_rank_has_them(steps):
    assert shared(job(steps * 3)) == "input_wait"


def test_ranks_that_are_late_by_computing_share_nothing():
    view = job([(40, 40), (40, 40)] * 3)
    assert not shared(view)


def test_the_waits_are_reported_as_a_consequence_of_what_all_ranks_have():
    # Of 190 µs, each rank waits 60 on average for its cause, and 20 for the other rank (10.5 %).
    report = analyze(job([(40, 80), (80, 40)] * 3), sections=ANALYSES.names())
    assert report.verdict.cause == "input"
    consequence = "Because of it, ranks wait for one another for a further 10.5 % of the steady step time of a rank."
    assert consequence in report.verdict.sentence
    assert "as fast" not in report.verdict.sentence  # that would be the speed-up without the waits
    late = next(candidate for candidate in report.verdict.candidates if candidate.key == "late-collectives")
    assert late.reason == "A consequence of input: the late ranks are late by it."


def test_ranks_that_are_late_alone_are_what_leads():
    # Of 190 µs, each of four ranks is late by 80 in turn: 20 on average (10.5 %). The others wait for 60 (31.6 %).
    report = analyze(job([(80, 0, 0, 0), (0, 80, 0, 0), (0, 0, 80, 0), (0, 0, 0, 80)] * 2, name="prepare"))
    assert report.verdict.cause == "late-collectives"
    assert "Because of it" not in report.verdict.sentence


def test_a_rank_with_one_long_step_is_no_straggler():
    often = job([(40, 40, 40, 90)] * 6)
    once = job([*[(40, 41, 42, 40)] * 2, (40, 40, 40, 340), *[(42, 41, 40, 40)] * 3])
    codes = [{found.code for found in RanksAnalysis().judge(RanksAnalysis().run(TraceView(t)))} for t in (often, once)]
    assert ["TV501" in found for found in codes] == [True, False]
    result = RanksAnalysis().run(TraceView(once))
    assert [result.imbalance.slowest(rank) for rank in range(4)] == [3, 0, 2, 1]
    assert result.scores[3] > 3.5
