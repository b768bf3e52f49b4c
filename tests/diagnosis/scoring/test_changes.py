from dataclasses import replace

import pytest

from benchmarks.diagnosis.captures import Capture, write_capture
from benchmarks.diagnosis.knobs import Format, Knob
from benchmarks.diagnosis.scoring.changes import Change, score_cause, score_equal
from benchmarks.diagnosis.truth import run
from benchmarks.diagnosis.worlds import World
from traceviz.api import report_on

pytestmark = pytest.mark.process
WORLD = World(3, steps=8, layers=1, operators=3, workers=0, spread=0.02)
KINETO = Capture(Format.KINETO)


@pytest.mark.parametrize(
    ("cause", "steps", "expected"),
    [
        (Knob.SLOW_LOADER, 8, Change.NAMED),
        (Knob.SLEEP, 8, Change.EFFECT),  # this capture holds only its effect
        (Knob.START_UP, 8, Change.OUTSIDE),
        (Knob.SLOW_LOADER, 3, Change.UNJUDGED),
    ],
)
def test_the_change_between_a_world_without_and_with_a_cause_is_named(cause, steps, expected, tmp_path):
    world = replace(WORLD, steps=steps, strengths={cause: 1.0})
    pair = run(world.without(cause)), run(world)

    assert score_cause(pair, cause, KINETO, 3, tmp_path) is expected


def test_two_runs_of_a_healthy_world_do_not_differ(tmp_path):
    other = run(replace(WORLD, seed=4))

    assert score_equal((run(WORLD), other), KINETO, (3, 4), tmp_path) is Change.QUIET


def test_runs_that_differ_are_no_equal_pair(tmp_path):
    slow = run(replace(WORLD, strengths={Knob.SLOW_LOADER: 1.0}))

    assert score_equal((run(WORLD), slow), KINETO, (3, 3), tmp_path) is Change.FALSE


def test_a_comparison_with_a_report_at_hand_has_the_same_score(tmp_path):
    world = replace(WORLD, strengths={Knob.SLOW_LOADER: 1.0})
    pair = run(WORLD), run(world)
    report = report_on(*write_capture(pair[1], KINETO, 3, tmp_path))

    assert score_cause(pair, Knob.SLOW_LOADER, KINETO, 3, tmp_path, report=report) is Change.NAMED
