"""Steps of both sides are timed in the same way: on devices if one of them is, on the host if one cannot be."""

from pathlib import Path

import pytest

from tests.compare.sections_of import run, section, side, table
from traceviz.compare.comparability import remarks
from traceviz.compare.options import CompareOptions
from traceviz.compare.sides.load_sides import align_step_time, are_mixed, step_time
from traceviz.compare.sides.sides import Side

OF_HOST = run(3, section("steps", table("Every step", "step dur_ns", (0, 5))))
OF_DEVICES = run(3, section("steps", table("Every step", "step dur_ns host_dur_ns", (0, 5, 1))))


def sides_of(**programs):
    """Return sides of programs that can be timed in the given ways, and how often each was read in which way."""
    reads = []

    def read(path, wanted):
        reads.append((path.name, wanted))
        return {"host": OF_HOST, "device": OF_DEVICES}[programs[path.name].get(wanted, programs[path.name]["auto"])]

    def sided(analyse):
        return [Side(name, (analyse(Path(name)),)) for name in programs], []

    sides, _ = align_step_time(sided, read)
    return [step_time(side.reports[0]) for side in sides], reads


AHEAD = {"auto": "device", "device": "device", "host": "host"}
AS_MARKED = {"auto": "host", "device": "device", "host": "host"}
NEVER_ON_DEVICE = {"auto": "host", "device": "host", "host": "host"}


@pytest.mark.parametrize(
    ("base", "new", "timed"),
    [
        (AS_MARKED, AS_MARKED, ["host", "host"]),
        (AHEAD, AHEAD, ["device", "device"]),
        (AS_MARKED, AHEAD, ["device", "device"]),
        (AHEAD, NEVER_ON_DEVICE, ["host", "host"]),
    ],
)
def test_steps_are_those_of_devices_if_both_sides_have_them_and_else_of_the_host(base, new, timed):
    assert sides_of(base=base, new=new)[0] == timed


def test_only_what_was_timed_in_the_other_way_is_analysed_once_more():
    assert sides_of(base=AHEAD, new=AS_MARKED)[1] == [("base", "auto"), ("new", "auto"), ("new", "device")]


def test_saved_reports_that_are_timed_in_two_ways_are_remarked_on():
    mixed = remarks(side("a", OF_HOST), side("b", OF_DEVICES), CompareOptions())
    alike = remarks(side("a", OF_HOST), side("b", OF_HOST), CompareOptions())
    assert "step-time" in {remark.code for remark in mixed}
    assert "step-time" not in {remark.code for remark in alike}


def test_reports_without_steps_are_timed_in_no_way():
    assert step_time(run(0)) is None
    assert not are_mixed([run(0), OF_DEVICES])
