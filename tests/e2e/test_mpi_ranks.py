"""Ranks of a program of MPI, from what nsys writes to the first sentence."""

from tests.parsers.nsys.database import NEW, build, thread
from traceviz import api

MS = 1_000_000
STEPS = 8


def rank_file(path, process, rank, arrives):
    """Return a rank whose steps of 100 ms arrive at their collective after so many ms; all leave it after 90."""
    own = {"globalTid": thread(process, process)}
    steps = [
        {"start": i * 100 * MS, "end": (i * 100 + 99) * MS, "eventType": 59, "text": f"step {i}", **own}
        for i in range(STEPS)
    ]
    reduces = [
        {"start": (i * 100 + arrives) * MS, "end": (i * 100 + 90) * MS, "textId": 1, **own} for i in range(STEPS)
    ]
    tables = {"NVTX_EVENTS": steps, "MPI_COLLECTIVES_EVENTS": reduces, "MPI_RANKS": [{"rank": rank, **own}]}
    return build(path, tables, NEW, ["MPI_Allreduce"])


def test_the_rank_that_computes_longest_waits_least_and_is_named(tmp_path):
    early = rank_file(tmp_path / "early.sqlite", 100, 4, arrives=20)
    late = rank_file(tmp_path / "late.sqlite", 101, 5, arrives=80)
    report = api.analyze(api.open_trace(early, late))
    rows = {row["rank"]: row for row in report.rows("ranks")}
    assert [round(rows[rank]["communication_share"], 2) for rank in (4, 5)] == [0.70, 0.10]
    finding = next(finding for finding in report.findings if finding.code == "TV503")
    assert "rank 5 needs most time for its own work" in finding.message
    assert "arrives last at 8 of 8 collectives" in finding.message


def test_one_rank_alone_says_how_long_it_waits_and_that_others_may_be_late(tmp_path):
    report = api.report_on(rank_file(tmp_path / "early.sqlite", 100, 4, arrives=20))
    finding = next(finding for finding in report.findings if finding.code == "TV506")
    assert finding.cost_ns == STEPS * 70 * MS
    assert "only a capture of several ranks tells it apart" in finding.message
