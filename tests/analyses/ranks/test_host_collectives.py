"""Findings on collectives of the host: their threshold as a share of the steps, and their text."""

import pytest

from tests.analyses.builders import tables, trace
from traceviz.analyses.derived.view import TraceView
from traceviz.analyses.ranks.host_collectives import PARTLY_COMPARED, HostCollectives, HostCollectivesAnalysis
from traceviz.report import Severity, Skipped

ANALYSIS = HostCollectivesAnalysis()
US = 1_000


def raised(view):
    return ANALYSIS.judge(ANALYSIS.run(view))


def waits(share, name="gloo:all_reduce"):
    """Return a job of five steps: a collective on another thread takes a share (of 1000), with no other work."""
    steps = [(i * US, US, i) for i in range(5)]
    reduces = [(i * US, share, name, "annotation", {"thread_id": 1}) for i in range(5)]
    return trace(steps=steps, host_ops=[(i * US + 999, 1, "aten::mm", "op") for i in range(5)] + reduces)


@pytest.mark.parametrize(
    ("share", "severity"), [(99, None), (100, Severity.WARNING), (199, Severity.WARNING), (200, Severity.ERROR)]
)
def test_a_tenth_of_the_steps_is_a_finding_and_a_fifth_an_error(share, severity):
    findings = raised(waits(share))
    assert [(f.severity, f.cost_ns, f.share) for f in findings] == (
        [(severity, 5 * share, share / 1_000)] * bool(severity)
    )


def test_of_one_rank_it_is_said_that_the_wait_for_late_ranks_is_not_known():
    (finding,) = raised(waits(400))
    assert "For 40.0 % of the steady step time, the program waits in collectives on the host" in finding.message
    assert finding.message.endswith("only a capture of several ranks tells it apart.")
    assert not any(text.startswith("MPI:") for text in finding.advice)


def test_advice_about_mpi_is_given_where_mpi_was_recorded():
    steps = [(i * US, US, i) for i in range(3)]
    (finding,) = raised(trace(steps=steps, nvtx=[(i * US, 500, "MPI_Allreduce") for i in range(3)]))
    assert finding.cost_ns == 1_500
    assert {text.partition(":")[0] for text in finding.advice[1:]} == {"MPI"}


def test_sending_and_receiving_is_called_a_transfer():
    steps = [(i * US, US, i) for i in range(3)]
    calls = [(i * US + start, 200, name) for i in range(3) for start, name in ((0, "MPI_Send"), (500, "MPI_Recv"))]
    (finding,) = raised(trace(steps=steps, nvtx=calls))
    assert "the program waits in transfers between ranks on the host" in finding.message


def test_a_wait_for_a_late_rank_belongs_to_the_finding_about_late_ranks():
    # rank 0 waits from 100 to 900 for rank 1, which computes; both then transfer until 950
    marks = [(i * US, US, i, {"process_id": rank, "thread_id": rank}) for rank in (0, 1) for i in range(4)]
    computes = [
        (i * US, (100, 900)[rank], "aten::mm", "op", {"process_id": rank, "thread_id": rank})
        for rank in (0, 1)
        for i in range(4)
    ]
    reduces = [
        (
            *(i * US + (100, 900)[rank], (850, 50)[rank], "gloo:all_reduce", "annotation"),
            {"process_id": rank, "thread_id": 2 + rank},
        )
        for rank in (0, 1)
        for i in range(4)
    ]
    result = ANALYSIS.run(trace(steps=marks, host_ops=computes + reduces))
    assert (result.waiting_ns, result.judged_exposed_ns) == (4 * 800, 2 * 4 * 50)
    assert ANALYSIS.judge(result) == ()


def test_what_compute_hides_is_silent():
    steps = [(i * US, US, i) for i in range(3)]
    computes = [(i * US, 950, "aten::mm", "op") for i in range(3)]
    reduces = [(i * US + 100, 800, "gloo:all_reduce", "annotation", {"thread_id": 1}) for i in range(3)]
    result = ANALYSIS.run(trace(steps=steps, host_ops=computes + reduces))
    assert (result.exposed_ns, ANALYSIS.judge(result)) == (0, ())


def test_without_collectives_there_is_no_section():
    assert isinstance(ANALYSIS.run(trace(host_ops=[(0, 10, "aten::mm", "op")])), Skipped)


def test_a_wait_for_work_between_two_ranks_is_a_part_and_the_finding_says_so():
    at = {rank: {"process_id": rank, "thread_id": rank} for rank in (0, 1)}
    ops, steps = [], []
    for step in range(4):
        for rank, work in ((0, 20), (1, 60)):
            ops += [
                (100 * step, work, "aten::mm", "op", at[rank]),
                (100 * step + work, 100 - work, "gloo:recv", "annotation", at[rank]),
            ]
            steps.append((100 * step, 100, step, at[rank]))
    view = tables(host_ops=ops, steps=steps, processes=[(rank, "python", {"rank": rank}) for rank in (0, 1)])
    found = HostCollectivesAnalysis().run(TraceView(view))
    assert isinstance(found, HostCollectives)
    assert (found.judged_exposed_ns, found.waiting_ns) == (2 * 4 * 40, 4 * 40)
    assert found.caveat == PARTLY_COMPARED
