"""Predictions of reports against reruns of the simulator."""

from benchmarks.diagnosis.captures import Capture
from benchmarks.diagnosis.knobs import Format, Knob
from benchmarks.diagnosis.predictions import check_seed, summarize


def test_a_prediction_holds_the_step_time_without_the_cause():
    (checked,) = check_seed(164, [Capture(Format.KINETO_STACKS)])
    assert (checked.knob, checked.is_inside, checked.hidden) == (Knob.GARBAGE_COLLECTION, True, False)
    assert round(checked.true, 2) == 0.53
    assert 1 < checked.width < 1.3
    assert summarize([checked]).endswith("inside: 100.0 %, median width: 1.24, predictions: 1")


def test_a_capture_that_shows_no_events_of_the_cause_has_no_prediction():
    assert check_seed(164, [Capture(Format.NVPROF)]) == []
