"""Reports contradict neither themselves nor their traces: samples that other tests report on, and faults put back."""

import pytest

from scripts.consistent import Fault, faults
from tests.conftest import REPOSITORY
from tests.support.reports import report_of
from traceviz.report import (
    Candidate,
    Claim,
    Column,
    Fact,
    Facts,
    Finding,
    Grid,
    Report,
    Section,
    Severity,
    Skipped,
    Verdict,
)
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


def finding(code, slug, share, *advice, of=STEPS, **evidence):
    known = tuple(Fact(key, key, value, "ns") for key, value in evidence.items())
    return Finding(code, slug, Severity.ERROR, "A message.", known, advice, round(1000 * share), share, of)


def facts(**values):
    return Facts(
        tuple(Fact(key, key, value, "text" if isinstance(value, str) else "count") for key, value in values.items())
    )


def table(slug, *rows, title="", heading="Heading", unit="text", bar=False):
    columns = tuple(Column(key, f"{heading} {place}", unit, bar=bar) for place, key in enumerate(rows[0]))
    return Section(slug, slug, (Grid(columns, tuple(tuple(row.values()) for row in rows), title),))


def report(sentence="", candidates=(), findings=(), sections=(), *, parts=(), skipped=(), framework=None, **capture):
    verdict = Verdict(VerdictCode.NOT_INPUT_BOUND, sentence, candidates=tuple(candidates), parts=tuple(parts))
    run = (Fact("framework", "framework", framework),)
    return Report(
        run, verdict, (Section("capture", "Capture", (facts(**capture),)), *sections), tuple(findings), tuple(skipped)
    )


def part(key, share, of=STEPS):
    return Claim(key, key, round(1000 * share), share, of, "measured", "")


def idle(outside):
    """Return parts of a capture of 1000 ns that is judged for 500, and its devices' idle time."""
    return {
        "parts": [part("device_compute", 0.9, "time"), part("host", 0.1, "time")],
        "sections": [Section("device_use", "", (facts(idle_ns=100 + outside),))],
        "span_ns": 1000,
        "devices": 1,
        "processes": 1,
    }


PIN = "Copy from pinned memory."
CALLS = [table("cuda_api", {"name": "cudaMalloc"})]


def copies(memory):
    return table("copies", {"kind": "h2d", "src_memory": memory})


def kernels(name):
    return table("kernels", {"name": name, "family": "gemm"})


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
        (
            "two numbers",
            report("", [candidate("host", 0.4)], parts=[part("device_compute", 0.5), part("host", 0.5)]),
            report("", [candidate("host", 0.5)], parts=[part("device_compute", 0.5), part("host", 0.5)]),
        ),
        (
            "two numbers",
            report("Host-bound: in 30.0 % of it.", [candidate("host", 0.4, leads=True, reason="")]),
            report("Host-bound: in 40.0 % of it.", [candidate("host", 0.4, leads=True, reason="")]),
        ),
        (
            "place of another set",
            report("In 20.0 % of it devices wait, above all in load (35.0 % of it)."),
            report("In 20.0 % of it devices wait, above all in load (15.0 % of it)."),
        ),
        (
            "counted twice",
            report(sections=[table("operators", {"share": 1.64}, {"share": 0.2}, unit="ratio", bar=True)]),
            report(sections=[table("operators", {"share": 0.64}, {"share": 0.2}, unit="ratio", bar=True)]),
        ),
        (
            "a sleeping helper",
            report("In 20.0 % of it the program waits, above all in TMonitor.run (_monitor.py:60)."),
            report("In 20.0 % of it the program waits, above all in run (loop.py:60)."),
        ),
        (
            "good without its base",
            report("Healthy: the device computes in 90.0 % of it.", **idle(60)),
            report("Healthy: the device computes in 90.0 % of it.", **idle(40)),
        ),
        (
            "good without its base",
            report("Not input-bound (0.0 %).", **idle(60)),
            report("In steady steps, 50.0 % of the captured time: not input-bound (0.0 %).", **idle(60)),
        ),
        (
            "something was recorded",
            report("In 20.0 % of it no device works, and what the host did meanwhile was not recorded.", (), (), CALLS),
            report("In 20.0 % of it no device works, and nothing recorded says what the host does.", (), (), CALLS),
        ),
        (
            "something was recorded",
            report("In 20.0 % of it nothing was recorded of what the program does.", cpu_samples=800),
            report("In 20.0 % of it nothing was recorded of what the program does.", cpu_samples=0),
        ),
        (
            "steps without steps",
            report(sections=[table("ranks", {"steps": 0}, heading="Steps")], steps_source="none found"),
            report(sections=[table("ranks", {"steps": 9}, heading="Steps")], steps_source="NVTX ranges"),
        ),
        (
            "measured after all",
            report(sections=CALLS, skipped=[Skipped("cuda_api", "Absent.", ("cuda_api",))]),
            report(sections=CALLS, skipped=[Skipped("memory", "Absent.", ("memory_events",))]),
        ),
        (
            "advice against the capture",
            report("", (), [finding("TV206", "a", 0.5, PIN)], [copies("pinned")]),
            report("", (), [finding("TV206", "a", 0.5, PIN)], [copies("pageable")]),
        ),
        (
            "advice against the capture",
            report("", (), [finding("TV405", "a", 0.5, "Use TF32.")], [kernels("matmul(float*, float*, int)")]),
            report("", (), [finding("TV405", "a", 0.5, "Use TF32.")], [kernels("ampere_sgemm_128x64_nn")]),
        ),
        (
            "advice against the capture",
            report("", (), [finding("TV504", "a", 0.5, "Wait less. PyTorch: no_sync().")], framework="JAX 0.4"),
            report("", (), [finding("TV504", "a", 0.5, "Wait less. PyTorch: no_sync().")], framework="PyTorch 2.4"),
        ),
        (
            "advice against the capture",
            report("", (), [finding("TV205", "a", 0.5, "Compile the step.", operator_ns=100)]),
            report("", (), [finding("TV205", "a", 0.5, "Compile the step.", operator_ns=300)]),
        ),
    ],
)
def test_a_fault_put_back_is_found_and_its_healthy_twin_is_not(kind, contradicts, holds):
    found = faults(contradicts)
    assert found
    assert {fault.kind for fault in found} == {kind}
    assert all(isinstance(fault, Fault) and fault.text for fault in found)
    assert faults(holds) == []
