import pytest

from benchmarks.diagnosis.flaws import CLOCK_ERROR, Flaw, apply_flaw
from benchmarks.diagnosis.record import Kind
from benchmarks.diagnosis.training import train
from benchmarks.diagnosis.worlds import World

RECORD = train(World(2, steps=5, layers=3))


@pytest.mark.parametrize("flaw", Flaw)
def test_a_flaw_is_the_same_for_the_same_seed_and_invents_no_device_work(flaw):
    flawed = apply_flaw(RECORD, flaw, 9)

    assert flawed == apply_flaw(RECORD, flaw, 9)
    assert {span.correlation for span in flawed.device} <= {span.correlation for span in RECORD.device}
    assert (flawed == RECORD) is (flaw is Flaw.NONE)


def test_a_window_holds_whole_events_only():
    cut = apply_flaw(RECORD, Flaw.WINDOW, 9)

    assert 0.5 <= (cut.end - cut.start) / RECORD.end <= 0.8
    assert cut.start <= min(span.start for span in (*cut.spans, *cut.device))
    assert max(span.end for span in (*cut.spans, *cut.device)) <= cut.end


def test_lost_events_are_counted():
    flawed = apply_flaw(RECORD, Flaw.LOST_EVENTS, 9)

    assert flawed.lost == len(RECORD.device) - len(flawed.device) > 0


def test_the_device_clock_is_off_by_one_error():
    flawed = apply_flaw(RECORD, Flaw.CLOCK, 9)
    starts = {span.correlation: span.start for span in RECORD.device}
    errors = {span.start - starts[span.correlation] for span in flawed.device}

    assert len(errors) == 1
    assert CLOCK_ERROR[0] <= abs(errors.pop()) <= CLOCK_ERROR[1]


def test_annotations_steps_and_their_names_go():
    def count(flaw, kind):
        return sum(span.kind is kind for span in apply_flaw(RECORD, flaw, 9).spans)

    assert count(Flaw.NONE, Kind.STEP) == 5
    assert (
        count(Flaw.NO_STEPS, Kind.STEP)
        == count(Flaw.NO_ANNOTATIONS, Kind.STEP)
        == count(Flaw.ODD_NAMES, Kind.STEP)
        == 0
    )
    assert count(Flaw.NO_ANNOTATIONS, Kind.RANGE) == 0
    assert count(Flaw.ODD_NAMES, Kind.RANGE) == count(Flaw.NONE, Kind.RANGE) + 5
