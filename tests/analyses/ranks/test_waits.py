"""Waits of ranks in transfers between two of them: hand-worked steps of two stages of a pipeline."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.communication import CommunicationAnalysis
from traceviz.analyses.ranks.ranks import RanksAnalysis
from traceviz.analyses.ranks.waits import find_waits, known_waits
from traceviz.analyses.run import analyze

US = 1_000
SEND_RECV = "ncclDevKernel_SendRecv"


def stages(*works, transfer=10, idle=0, steps=4, takes_turns=False):
    """Return ranks that compute for so many µs in each step, and exchange data until the slowest has sent for 10 µs.

    With ``takes_turns``, ranks exchange their work after each step.

    Rank 0 then idles for ``idle`` µs::

        rank 0   |--compute--|~~~~~wait~~~~~|transfer|
        rank 1   |---------compute----------|transfer|
    """
    end = max(works) + transfer
    marks, kernels = [], []
    for step in range(steps):
        start = step * (end + idle)
        for rank, work in enumerate(works[::-1] if takes_turns and step % 2 else works):
            at = {"process_id": rank, "device_id": rank}
            kernels += [(start * US, work * US, "gemm", at), ((start + work) * US, (end - work) * US, SEND_RECV, at)]
            marks.append(
                (start * US, (end + (0 if rank else idle)) * US, step, {"process_id": rank, "thread_id": rank})
            )
    processes = [(rank, "python", {"rank": rank}) for rank in range(len(works))]
    threads = [(rank, rank, "python") for rank in range(len(works))]
    return tables(kernels=kernels, steps=marks, processes=processes, threads=threads)


def judged(analysis, view):
    return {found.code: found for found in analysis.judge(analysis.run(TraceView(view)))}


def test_what_a_stage_communicates_longer_than_the_one_with_most_work_is_a_wait_for_it():
    waits = find_waits(TraceView(stages(50, 90)), 0.1).of_ranks
    assert [waits[rank].for_work.total for rank in (0, 1)] == [4 * 40 * US, 0]
    assert [waits[rank].away.total for rank in (0, 1)] == [4 * 50 * US, 4 * 10 * US]
    # The wait is the first 40 of the 50 µs of each transfer.
    assert waits[0].for_work.starts.tolist() == [(100 * step + 50) * US for step in range(4)]


def test_exposed_communication_is_without_that_wait_and_uneven_work_is_named():
    view = stages(50, 90)
    communication = CommunicationAnalysis()
    times = communication.run(TraceView(view))
    assert (times.judged_exposed_ns, times.waiting_ns) == (2 * 4 * 10 * US, 4 * 40 * US)
    assert judged(RanksAnalysis(), view)["TV502"].cost_ns == 4 * 20 * US  # 90, and 70 on average
    verdict = analyze(view).verdict
    assert verdict.cause == "step-time-imbalance"


def test_ranks_that_work_most_in_turn_wait_for_one_another():
    view = stages(50, 90, takes_turns=True)
    found = judged(RanksAnalysis(), view)
    # In each step one of the two ranks waits for 40 of 100 µs: 20 on average over ranks.
    assert set(found) == {"TV503"}
    assert (found["TV503"].cost_ns, found["TV503"].share) == (4 * 20 * US, 0.2)
    assert "wait for one another for 20.0 %" in found["TV503"].message
    assert "late in turn" in found["TV503"].message
    assert analyze(view).verdict.cause == "late-collectives"


def test_ranks_with_equal_work_in_turn_do_not_wait():
    assert judged(RanksAnalysis(), stages(50, 52, transfer=48, takes_turns=True)) == {}  # 1 of 100 µs on average


def test_stages_with_equal_work_communicate_and_do_not_wait():
    view = stages(50, 50, transfer=50)
    assert CommunicationAnalysis().run(TraceView(view)).judged_exposed_ns == 2 * 4 * 50 * US
    assert "TV502" not in judged(RanksAnalysis(), view)
    assert analyze(view).verdict.cause == "exposed-communication"


@pytest.mark.parametrize(("idle", "wait"), [(0, 40), (40, 0)])
def test_a_rank_that_does_not_communicate_longer_does_not_wait(idle, wait):
    # Rank 1 has 40 µs less of its own. If only the steps of rank 0 are longer by that, rank 1 does not wait for it.
    works = (90, 50) if not idle else (50, 50)
    waits = find_waits(TraceView(stages(*works, idle=idle)), 0.1).of_ranks
    assert waits[1].for_work.total == 4 * wait * US


def test_processes_without_transfers_have_no_known_waits():
    assert known_waits(TraceView(stages(50, 90, transfer=0)), 0.1) != {}
    assert known_waits(TraceView(stages(50)), 0.1) == {}
