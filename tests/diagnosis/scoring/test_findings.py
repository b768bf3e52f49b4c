import pytest

from benchmarks.diagnosis.captures import Capture
from benchmarks.diagnosis.flaws import Flaw
from benchmarks.diagnosis.knobs import Format, Knob
from benchmarks.diagnosis.record import DeviceSpan, Record, Work
from benchmarks.diagnosis.scoring.findings import FindingScore, has_word, score_findings
from benchmarks.diagnosis.truth import Truth
from benchmarks.diagnosis.worlds import World
from traceviz.report import Candidate, Finding, Report, Severity, Verdict
from traceviz.report.verdicts import VerdictCode

NSYS = Capture(Format.NSYS)


def finding(slug, share):
    return Finding("TV000", slug, Severity.WARNING, "", (), (), 1, share)


def scored(gains, findings=(), *, cause="", candidates=(), sentence="", capture=NSYS):
    candidates = tuple(Candidate(key, key, 1, share, "", "measured", "", "") for key, share in candidates)
    verdict = Verdict(VerdictCode.CANNOT_JUDGE, sentence, cause, candidates)
    return score_findings(
        Truth(World(1), Record((), (), (), 1, 100), gains), capture, Report((), verdict, (), findings)
    )


def test_a_finding_is_true_if_a_cause_that_it_names_has_a_gain():
    findings = finding("exposed-allocation", 0.2), finding("os-wait", 0.2), finding("straggler", 0.2)
    found = scored({Knob.ALLOCATION: 0.02, Knob.SLEEP: 0.019}, (*findings, finding("device-mostly-idle", 0.4)))

    assert found.true == ("exposed-allocation", "os-wait")  # os-wait is a symptom of the allocation
    assert found.false == ("straggler",)
    assert found.other == ("device-mostly-idle",)


def test_a_finding_with_a_small_share_is_a_remark():
    assert scored({}, (finding("straggler", 0.049), finding("single-process-loader", None))) == FindingScore()
    assert scored({}, (finding("straggler", 0.05),)).false == ("straggler",)


def test_idle_time_after_the_read_of_a_loss_is_an_effect_if_the_host_is_slow():
    after_reads = (finding("synchronisation-exposes-idle", 0.2),)

    assert scored({Knob.ALLOCATION: 0.4}, after_reads).other == ("synchronisation-exposes-idle",)
    assert scored({Knob.RESULT_READS: 0.4}, after_reads).true == ("synchronisation-exposes-idle",)
    assert scored({Knob.LAYOUT: 0.4}, after_reads).false == ("synchronisation-exposes-idle",)


@pytest.mark.parametrize(("late", "is_true"), [(8, True), (7, False)])
def test_ranks_that_are_late_by_chance_are_late(late, is_true):
    # Rank 0 waits in its collective for rank 1: 8 of 400 ns of both are 2 %.
    device = tuple(
        DeviceSpan(rank, 20, Work.COLLECTIVE, "", start, 150, correlation=1)
        for rank, start in ((0, 100), (1, 100 + late))
    )
    record = Record((), device, (), 2, 200)
    verdict = Verdict(VerdictCode.CANNOT_JUDGE, "")
    report = Report((), verdict, (), (finding("late-collectives", 0.2),))
    found = score_findings(Truth(World(1), record, {}), NSYS, report)

    assert bool(found.true) is is_true
    assert bool(found.false) is not is_true


@pytest.mark.parametrize(
    ("named", "is_found"),
    [
        ({"findings": (finding("checkpoint-in-loop", None),)}, True),
        ({"cause": "saving"}, True),
        ({"candidates": [("saving", 0.02)]}, True),
        ({"candidates": [("saving", 0.019)]}, False),
        ({"candidates": [("os_call", 0.2)]}, False),
        ({"candidates": [("os_call", 0.2)], "sentence": "write in save_checkpoint"}, True),
    ],
)
def test_a_cause_is_found_by_its_name_or_by_a_symptom_with_its_place(named, is_found):
    found = scored({Knob.CHECKPOINT: 0.05}, **named)

    assert (found.found, found.missed) == ((("checkpoint",), ()) if is_found else ((), ("checkpoint",)))


def test_a_cause_without_evidence_or_with_a_small_gain_need_not_be_found():
    no_ranges = Capture(Format.NSYS, Flaw.NO_ANNOTATIONS)

    assert scored({Knob.CHECKPOINT: 0.05}, capture=no_ranges) == FindingScore()
    assert scored({Knob.CHECKPOINT: 0.049, Knob.SLOW_KERNELS: 0.5}) == FindingScore()


def test_a_word_is_no_part_of_a_longer_word():
    assert has_word("save", "mostly in save (serialization.py)")
    assert not has_word("save", "saved, save_checkpoint")
