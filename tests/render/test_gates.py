"""Input for build servers: one case or command per gate, well-formed for any trace."""

from xml.etree import ElementTree as ET

import pytest

from tests.render.sample_report import sample_report
from traceviz.gates.gates import GateResult, Outcome, add_gate_section
from traceviz.render.options import RenderOptions
from traceviz.render.registry import renderer
from traceviz.report import Fact, Report, Verdict
from traceviz.testing import HOSTILE_NAMES

RESULTS = (
    GateResult("input_wait", "budget", "<= 5%", "46.3 %", Outcome.FAILED, side="new"),
    GateResult("peak_memory", "budget", "<= 8GB", "not measured", Outcome.UNKNOWN, "no memory_events table"),
    GateResult("findings", "findings", "no error", "none", Outcome.PASSED),
)


def render(name, results=RESULTS, report=None):
    return renderer(name).render(add_gate_section(report or sample_report(), results), RenderOptions())


def test_junit_has_one_case_per_gate_with_a_failure_and_an_error():
    suites = ET.fromstring(render("junit"))
    (suite,) = suites
    counts = {"tests": "3", "failures": "1", "errors": "1"}
    assert suites.attrib == counts
    assert suite.attrib == {"name": f"traceviz: {sample_report().run[0].value}", **counts, "skipped": "0"}
    cases = {case.get("name"): (case.get("classname"), [*case]) for case in suite.iter("testcase")}
    assert {name: (kind, [one.tag for one in inside]) for name, (kind, inside) in cases.items()} == {
        "new: input_wait <= 5%": ("traceviz.budget", ["failure"]),
        "peak_memory <= 8GB": ("traceviz.budget", ["error"]),
        "findings: no error": ("traceviz.findings", []),
    }
    assert cases["new: input_wait <= 5%"][1][0].attrib == {
        "type": "budget",
        "message": "new: input_wait: 46.3 %, and the limit is <= 5%.",
    }
    assert cases["peak_memory <= 8GB"][1][0].get("message") == "peak_memory: no memory_events table."
    verdict = sample_report().verdict
    assert suite.find("system-out").text == f"{verdict.headline}. {verdict.consequence}."


def test_junit_is_ascii_whatever_the_verdict_says():
    assert render("junit").isascii()
    assert "3.0&#215; faster" in render("junit")


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:20]))
def test_hostile_names_leave_junit_well_formed(name):
    result = GateResult(name, "budget", name, name, Outcome.FAILED, name, name)
    report = Report((Fact("source", "trace", name),), Verdict(name, name))
    (suite,) = ET.fromstring(render("junit", (result,), report))
    assert [child.tag for child in suite] == ["testcase", "system-out"]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=lambda name: ascii(name[:20]))
def test_hostile_names_begin_no_command_of_their_own(name):
    hostile = f"{name}\n::error::forged\r\n::set-output name=a::b"
    result = GateResult(hostile, "budget", hostile, hostile, Outcome.FAILED, hostile, hostile)
    report = Report((Fact("source", "trace", hostile),), Verdict(hostile, hostile))
    lines = render("github", (result,), report).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error", "::notice"]
    title = lines[0].removeprefix("::error title=").partition("::")[0]
    assert not {":", ","} & set(title)


def test_github_tells_of_gates_then_findings_then_the_verdict():
    lines = render("github").splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning", "::warning", "::notice"]
    failed = "new: input_wait: 46.3 %25, and the limit is <= 5%25."
    assert lines[0] == f"::error title=Gate new%3A input_wait <= 5%25 failed::{failed}"
    assert lines[1].startswith("::error title=Gate peak_memory <= 8GB cannot be judged::peak_memory: no memory")
    assert lines[2].startswith("::warning title=TV101 input-bound::Steady steps wait 130 ms")
    assert lines[2].endswith("(7.40 s at stake, 61.7 %25 of the time of steady steps)")
    assert lines[4].endswith(" 1 of 3 gates passed.")


def test_a_report_without_gates_has_no_case_and_no_tally():
    assert 'tests="0"' in render("junit", ())
    assert "gates passed" not in render("github", ())


@pytest.mark.parametrize("name", ["terminal", "markdown"])
def test_no_gate_is_hidden_however_many_there_are(name):
    many = tuple(GateResult(f"gate{n}", "budget", "<= 5%", "1 %", Outcome.PASSED) for n in range(40))
    text = render(name, many)
    assert [n for n in range(40) if f"gate{n}" not in text] == []
