"""The CUDA API of two sides: shares of the captures, and calls and time of steady steps."""

from __future__ import annotations

from tests.compare.changes.sections import api_section, times_by_name
from tests.compare.sections_of import run, side
from traceviz.compare.changes.calls_and_copies import compare_api
from traceviz.compare.changes.events import Status


def test_the_api_is_compared_by_share_of_the_capture_and_by_step():
    base = side("base", run(2, api_section([("malloc", 750), ("launch", 248), ("query", 2)], [("launch", 4, 100)])))
    new = side("new", run(1, api_section([("launch", 400), ("sync", 600)], [("launch", 2, 50), ("sync", 1, 550)])))
    compared = compare_api(base, new)
    assert [(change.name, change.base_share, change.new_share) for change in compared.notable] == [
        ("malloc", 0.75, 0.0),
        ("sync", 0.0, 0.6),
        ("launch", 0.248, 0.4),
    ]
    assert [change.name for change in compared.changes if not change.is_notable] == ["query"]
    steady = {change.name: change.steady for change in compared.changes}
    assert (steady["launch"].status, steady["launch"].base_calls, steady["launch"].base_ns) == (Status.SAME, 2, 50)
    assert times_by_name([steady["sync"], steady["malloc"]]) == {
        "sync": (Status.NEW, 0, 550),
        "malloc": (Status.SAME, 0, 0),
    }
    assert (compared.base_ns, compared.new_ns) == (50, 600)


def test_shares_of_the_api_need_no_steps():
    base = side("base", run(0, api_section([("malloc", 3), ("launch", 1)], [])))
    compared = compare_api(base, side("new", run(1, api_section([("launch", 1)], [("launch", 1, 1)]))))
    assert [(change.name, change.base_share, change.new_share, change.steady) for change in compared.changes] == [
        ("launch", 0.25, 1.0, None),
        ("malloc", 0.75, 0.0, None),
    ]
    assert (compared.base_ns, compared.why_not) == (None, "")


def test_functions_that_no_step_calls_cost_steps_nothing():
    start_up = side("base", run(1, api_section([("malloc", 3)], [])))
    compared = compare_api(start_up, start_up)
    assert times_by_name(change.steady for change in compared.changes) == {"malloc": (Status.SAME, 0, 0)}
    assert (compared.base_ns, compared.new_ns) == (0, 0)
