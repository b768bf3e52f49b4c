"""Reports contradict neither themselves nor their traces: samples that other tests report on, and faults put back."""

import pytest

from scripts.consistent import Fault, faults
from tests.conftest import REPOSITORY
from tests.support.reports import report_of
from traceviz.report import Candidate, Fact, Facts, Finding, Report, Section, Severity, Verdict
from traceviz.report.verdicts import VerdictCode

STEPS = "steady step time"
SAMPLES = (
    "kineto/slow.pt.trace.json.gz",
    "kineto/workers.pt.trace.json.gz",
    "nsys/nvtx_loop.sqlite",
    "synthetic/input_bound.sqlite",
    "synthetic/torch_input_bound_single.pt.trace.json.gz",
    "synthetic/torch_launch_bound.pt.trace.json.gz",
    "xplane/jax_annotated.xplane.pb.gz",
)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_has_no_contradiction(sample):
    assert faults(report_of(REPOSITORY / "sample_traces" / sample)) == []


def candidate(key, share, *, leads=False, of=STEPS, reason="Smaller."):
    return Candidate(key, key.replace("-", " "), round(1000 * share), share, of, "measured", "", reason, leads)


def finding(code, slug, share, *advice, of=STEPS):
    return Finding(code, slug, Severity.ERROR, "A message.", (), advice, round(1000 * share), share, of)


def report(sentence="", candidates=(), findings=(), **capture):
    facts = tuple(
        Fact(key, key, value, "text" if isinstance(value, str) else "count") for key, value in capture.items()
    )
    verdict = Verdict(VerdictCode.NOT_INPUT_BOUND, sentence, candidates=tuple(candidates))
    return Report((), verdict, (Section("capture", "Capture", (Facts(facts),)),), tuple(findings))


@pytest.mark.parametrize(
    ("kind", "contradicts", "holds"),
    [
        (
            "two numbers",
            report("", [candidate("host", 0.401)], [finding("TV205", "host-bound", 0.527)], devices=1),
            report("", [candidate("host", 0.401)], [finding("TV205", "host-bound", 0.401)], devices=1),
        ),
        (
            "more than the whole",
            report("", [candidate("profiler", 0.67), candidate("communication", 0.628)]),
            report("", [candidate("profiler", 0.37), candidate("communication", 0.628)]),
        ),
        (
            "not most",
            report("From first to last device work, mostly exposed communication (5.0 %)."),
            report("From first to last device work, mostly exposed communication (50.0 %)."),
        ),
        (
            "not the largest",
            report("", [candidate("host", 0.3, leads=True, reason=""), candidate("communication", 0.5)]),
            report("", [candidate("host", 0.5, leads=True, reason=""), candidate("communication", 0.3)]),
        ),
        (
            "advice twice",
            report("", (), [finding("TV101", "a", 0.5, "Load ahead."), finding("TV108", "b", 0.1, "Load ahead.")]),
            report("", (), [finding("TV101", "a", 0.5, "Load ahead."), finding("TV108", "b", 0.1, "Load less.")]),
        ),
        (
            "advice against the capture",
            report("", (), [finding("TV205", "a", 0.5, "Use torch.compile.")], kind="graph capture"),
            report("", (), [finding("TV205", "a", 0.5, "Use torch.compile.")], kind="training"),
        ),
        (
            "advice against the capture",
            report("", (), [finding("TV504", "a", 0.5, "Tune DistributedDataParallel.")], devices=1),
            report("", (), [finding("TV504", "a", 0.5, "Tune DistributedDataParallel.")], devices=1, ranks="1 of 8"),
        ),
        (
            "no base",
            report("", (), [finding("TV205", "a", 0.5, of="")]),
            report("", (), [finding("TV205", "a", 0.5)]),
        ),
    ],
)
def test_a_fault_put_back_is_found_and_its_healthy_twin_is_not(kind, contradicts, holds):
    found = faults(contradicts)
    assert found
    assert {fault.kind for fault in found} == {kind}
    assert all(isinstance(fault, Fault) and fault.text for fault in found)
    assert faults(holds) == []
