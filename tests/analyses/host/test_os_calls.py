"""Operating-system calls by function."""

from tests.analyses import sections
from tests.analyses.builders import trace
from traceviz.analyses.host.os_calls import OsCallsAnalysis
from traceviz.report import Prose


def rows(view):
    return sections.grids(OsCallsAnalysis(), view)[0]


def test_calls_are_counted_and_summed_by_function_the_longest_first():
    view = trace(os_calls=[(0, 10, "read"), (5, 100, "poll"), (20, 30, "read"), (60, 20, "read")])
    poll, read = rows(view)
    assert (poll["name"], poll["calls"], poll["total_ns"], poll["stddev_ns"]) == ("poll", 1, 100, 0.0)
    assert (read["name"], read["calls"], read["total_ns"], read["median_ns"]) == ("read", 3, 60, 20.0)
    assert (read["max_ns"], read["mean_ns"], read["min_ns"], read["stddev_ns"]) == (30, 20.0, 10, 10.0)
    assert read["share_of_os_time"] == 60 / 160


def test_the_median_of_two_calls_is_their_mean():
    assert rows(trace(os_calls=[(0, 10, "read"), (20, 21, "read")]))[0]["median_ns"] == 15.5


def test_a_call_that_never_returned_is_counted_and_adds_no_time():
    row = rows(trace(os_calls=[(0, None, "futex"), (0, 4, "futex")]))[0]
    assert (row["calls"], row["total_ns"], row["median_ns"]) == (2, 4, 4.0)


def test_waiting_threads_add_up_to_more_than_wall_time_and_the_section_says_so():
    view = trace(os_calls=[(0, 100, "futex"), (0, 100, "futex", {"thread_id": 1})])
    section = OsCallsAnalysis().describe(OsCallsAnalysis().run(view))
    facts = sections.facts(OsCallsAnalysis(), view)
    assert (view.span_ns, facts["total_ns"], facts["threads"]) == (100, 200, 2)
    assert any(isinstance(block, Prose) and "summed over threads" in block.text for block in section.blocks)


def test_no_calls_give_no_rows():
    assert rows(trace(os_calls=[])) == []
