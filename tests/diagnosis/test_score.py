from dataclasses import replace

import pytest

from benchmarks.diagnosis.captures import Capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.knobs import Format, Knob
from benchmarks.diagnosis.record import DeviceSpan, Kind, Record, Span, Work
from benchmarks.diagnosis.score import Grade, find_gains_within, grade, read_report, score_capture
from benchmarks.diagnosis.truth import Truth, find_truth
from benchmarks.diagnosis.worlds import World
from traceviz.report import Verdict
from traceviz.report.verdicts import VerdictCode

RECORD = Record((), (), (), 1, 100)
NSYS, KINETO = Capture(Format.NSYS), Capture(Format.KINETO)


def graded(gains, lead, sentence="", capture=NSYS):
    verdict = Verdict(VerdictCode.CANNOT_JUDGE, sentence, lead)
    return grade(Truth(World(1), RECORD, gains), capture, verdict)


@pytest.mark.parametrize(
    ("lead", "sentence", "expected"),
    [
        ("saving", "", Grade.RIGHT),
        ("os_call", "Host blocked: the program waits (write in save_checkpoint).", Grade.RIGHT),
        ("os_call", "Host blocked: the program waits (write).", Grade.WEAK),
        ("unexplained", "", Grade.WEAK),
        ("healthy", "", Grade.WRONG),
        ("allocation", "", Grade.FALSE_BLAME),
    ],
)
def test_a_report_is_right_if_it_names_the_cause_or_the_place_of_its_symptom(lead, sentence, expected):
    assert graded({Knob.CHECKPOINT: 0.4}, lead, sentence) is expected


def test_a_cause_without_evidence_may_stay_unexplained():
    assert graded({Knob.SLEEP: 0.4}, "unexplained", capture=KINETO) is Grade.HONEST
    assert graded({Knob.SLEEP: 0.4}, "unexplained", capture=NSYS) is Grade.WEAK
    assert graded({Knob.SLEEP: 0.4}, "allocation", capture=KINETO) is Grade.FALSE_BLAME
    assert graded({Knob.SLOW_LOADER: 0.4}, "host", capture=KINETO) is Grade.WEAK
    assert graded({Knob.SLOW_LOADER: 0.4}, "host", capture=Capture(Format.KINETO, Flaw.NO_ANNOTATIONS)) is Grade.HONEST


@pytest.mark.parametrize(("gain", "expected"), [(0.37, Grade.RIGHT), (0.35, Grade.WRONG), (0.019, Grade.FALSE_BLAME)])
def test_a_second_cause_is_as_good_as_the_first_from_nine_tenths_of_its_gain(gain, expected):
    assert graded({Knob.SLOW_LOADER: 0.4, Knob.ALLOCATION: gain}, "allocation") is expected


@pytest.mark.parametrize(
    ("lead", "sentence", "expected"),
    [
        ("healthy", "", Grade.RIGHT),
        ("host", "The device computes in 93 %; the largest other part: work of the host (5.4 %).", Grade.RIGHT),
        ("host", "Host-bound: the device waits.", Grade.FALSE_BLAME),
        ("unexplained", "", Grade.HONEST),
    ],
)
def test_a_healthy_world_is_blamed_for_nothing(lead, sentence, expected):
    assert graded({}, lead, sentence) is expected
    assert graded({Knob.LOGGING: 0.049}, lead, sentence) is expected


def test_the_report_on_a_small_world_is_scored():
    truth = find_truth(World(1, steps=5, layers=3, workers=0, strengths={Knob.SLOW_LOADER: 1.0}))
    scored = score_capture(truth, KINETO)

    assert (scored.cause, scored.lead, scored.grade) == ("slow-loader", "input", Grade.RIGHT)
    assert scored.gains == {"slow-loader": pytest.approx(0.467, abs=0.005)}


def test_findings_and_numbers_are_scored_with_the_sentence_and_comparisons_on_request():
    world = World(1, steps=6, layers=3, workers=0, strengths={Knob.SLOW_LOADER: 1.0})
    scored = score_capture(find_truth(world), KINETO, compares=True)

    assert scored.findings.true == ("input-bound",)
    assert scored.findings.found == ("slow-loader",)
    assert max(scored.errors.values()) < 0.001
    assert scored.change is not None
    assert score_capture(find_truth(world), KINETO).change is None


def test_a_file_that_cannot_be_read_has_a_report_with_the_error(tmp_path):
    (tmp_path / "a.json").write_text("{")

    assert read_report([tmp_path / "a.json"]).verdict.cause == "error"


def test_a_cause_that_happens_once_may_have_a_clause_of_its_own_after_the_best_that_recurs():
    gains = {Knob.START_UP: 0.5, Knob.SLOW_LOADER: 0.3, Knob.ALLOCATION: 0.1}
    stacks, clause = Capture(Format.KINETO_STACKS), "Steady steps are 50 % of the captured time; 50 % is before them."

    assert graded(gains, "input", clause, stacks) is Grade.RIGHT
    assert graded(gains, "input", "", stacks) is Grade.WRONG
    assert graded(gains, "allocation", clause, stacks) is Grade.WRONG


def test_the_greatest_of_the_causes_that_a_capture_shows_is_honest():
    gains = {Knob.SLEEP: 0.4, Knob.SLOW_LOADER: 0.3, Knob.ALLOCATION: 0.1}

    assert graded(gains, "input", capture=KINETO) is Grade.HONEST
    assert graded(gains, "allocation", capture=KINETO) is Grade.WRONG
    assert graded(gains, "input", capture=NSYS) is Grade.WRONG


def test_a_window_that_cuts_the_first_use_holds_nothing_of_it():
    """The window of seed 1 is 25 to 76 of 100 ns. Half of a gain of 0.5 is 25 ns: a call from 30 to 60 ns has that."""
    window, gains = Capture(Format.NSYS, Flaw.WINDOW), {Knob.FIRST_USE: 0.5, Knob.ALLOCATION: 0.2}
    kernel = DeviceSpan(0, 7, Work.KERNEL, "gemm", 61, 65, 1)
    cut, within = (
        replace(RECORD, device=(kernel,), spans=(Span(0, 1, Kind.API, "cudaLaunchKernel", start, 60, 1),))
        for start in (20, 30)
    )

    assert find_gains_within(Truth(World(1), cut, gains), window) == {Knob.ALLOCATION: 0.2}
    assert find_gains_within(Truth(World(1), within, gains), window) == gains
    assert find_gains_within(Truth(World(1), cut, gains), NSYS) == gains


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Exposed communication: 40 % (mostly recv).", Grade.RIGHT),
        ("Late collectives: ranks are late in turn.", Grade.WEAK),
    ],
)
def test_a_bubble_is_named_by_the_exchange_between_stages_and_uneven_stages_are_not(sentence, expected):
    assert graded({Knob.PIPELINE_BUBBLE: 0.4}, "exposed-communication", sentence) is expected
    assert graded({Knob.UNEVEN_STAGES: 0.4}, "exposed-communication", sentence) is Grade.WEAK
    assert graded({Knob.UNEVEN_STAGES: 0.4}, "straggler", sentence) is Grade.RIGHT
