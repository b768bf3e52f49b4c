"""The first sentences of a report."""

import pytest

from tests.analyses.builders import tables
from traceviz.analyses.run import analyze
from traceviz.analyses.verdict import _largest
from traceviz.report import Finding, Severity


def found(code, slug, severity, share, share_of, *, cost_ns=5):
    return Finding(code, slug, severity, "", (), (), cost_ns, share, share_of)


def test_the_largest_problem_is_the_first_finding_that_costs_time_and_is_not_about_the_input():
    findings = (
        found("TV101", "input-bound", Severity.ERROR, 0.5, "steps"),
        found("TV202", "cheap", Severity.INFO, 0.4, "steps"),
        found("TV403", "memory-grows", Severity.WARNING, 0.35, "steps", cost_ns=0),
        found("TV301", "allocation-in-steps", Severity.WARNING, 0.3, "steady step time"),
        found("TV302", "pageable-copies", Severity.WARNING, 0.2, "captured time"),
    )
    assert _largest(findings) == "Largest problem: allocation in steps (30.0 % of the steady step time)."
    assert _largest(findings[:3]) == ""
    assert (
        _largest((found("TV901", "lost", Severity.WARNING, None, "it"),)) == "Largest problem: lost (0.0 % of the it)."
    )


@pytest.mark.parametrize(("busy", "names_rest"), [(500, False), (499, True)])
def test_what_the_host_does_meanwhile_is_told_where_the_device_idles_more_than_half(busy, names_rest):
    # busy in the first and the last part of 1000 ns, without steps
    view = tables(
        kernels=[(0, busy - 100, "k"), (900, 100, "k")],
        os_calls=[(busy - 50, 300, "poll")],
        host_ops=[(0, 1000, "work")],
    )
    sentence = analyze(view).verdict.sentence
    assert f"The device is busy in {busy / 10:.1f} % of the time from first to last device work" in sentence
    assert ("; the rest is mostly " in sentence) == names_rest
