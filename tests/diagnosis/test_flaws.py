import pytest

from benchmarks.diagnosis.flaws import CLOCK_DRIFT, CLOCK_ERROR, LAYER, OF_FILES, SECOND_LAUNCHER, Flaw, apply_flaw
from benchmarks.diagnosis.record import Kind
from benchmarks.diagnosis.training import train
from benchmarks.diagnosis.worlds import World

RECORD = train(World(2, steps=5, layers=3))
TWO_RANKS = train(World(2, steps=5, layers=3, ranks=2))


@pytest.mark.parametrize("flaw", Flaw)
def test_a_flaw_is_the_same_for_the_same_seed_and_invents_no_device_work(flaw):
    flawed = apply_flaw(RECORD, flaw, 9)

    assert flawed == apply_flaw(RECORD, flaw, 9)
    assert {span.correlation for span in flawed.device} <= {span.correlation for span in RECORD.device}
    assert (flawed == RECORD) is (flaw in {Flaw.NONE, *OF_FILES})


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


def test_each_rank_has_a_window_of_its_own():
    cut = apply_flaw(TWO_RANKS, Flaw.RANK_WINDOWS, 9)
    first, second = ([span for span in (*cut.spans, *cut.device) if span.rank == rank] for rank in range(2))

    assert min(span.start for span in first) != min(span.start for span in second)
    assert all(
        0 < max(s.end for s in own) - min(s.start for s in own) <= 0.9 * TWO_RANKS.end for own in (first, second)
    )


def test_the_error_of_a_drifting_clock_grows():
    flawed = apply_flaw(RECORD, Flaw.CLOCK_DRIFT, 9)
    starts = {span.correlation: span.start for span in RECORD.device}
    errors = [abs(span.start - starts[span.correlation]) for span in sorted(flawed.device, key=lambda span: span.start)]

    assert errors == sorted(errors)
    assert CLOCK_DRIFT[0] / 2 < errors[-1] <= CLOCK_DRIFT[1]


def test_calls_go_and_all_else_stays():
    flawed = apply_flaw(RECORD, Flaw.NO_CALLS, 9)

    assert {span.kind for span in RECORD.spans} - {span.kind for span in flawed.spans} == {Kind.API}
    assert flawed.device == RECORD.device


def test_a_second_thread_launches_a_part_of_the_backward_pass():
    flawed = apply_flaw(RECORD, Flaw.SEVERAL_LAUNCHERS, 9)

    def calls(record, thread):
        return sum(span.kind is Kind.API and span.thread == thread for span in record.spans)

    assert calls(flawed, 2) > 0
    assert calls(flawed, SECOND_LAUNCHER) > 0
    assert calls(flawed, 2) + calls(flawed, SECOND_LAUNCHER) == calls(RECORD, 2)
    # What lies within an operator moves with it.
    assert len(flawed.spans) == len(RECORD.spans)
    for outer in flawed.spans:
        if outer.thread == SECOND_LAUNCHER and outer.name.startswith("autograd::engine"):
            inside = [s for s in flawed.spans if outer.start <= s.start and s.end <= outer.end and s.thread == 2]
            assert inside == []


def test_layers_have_one_name_and_a_range():
    flawed = apply_flaw(RECORD, Flaw.REPEATED_LAYERS, 9)

    assert {span.name for span in flawed.spans if span.name.startswith("nn.Module")} == {"nn.Module: Block_0"}
    assert sum(span.kind is Kind.RANGE and span.name == LAYER for span in flawed.spans) == 5 * 3
